// Tier 90: arbe stream copy: every byte and message once, whatever breaks, however many copies are at work.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { uniqueName } from './lib/http.mjs';
import { lastingPort } from './lib/port.mjs';
import { serverFor, startServer } from './lib/server.mjs';
import { Shell } from './lib/shell.mjs';
import { rounds, sleep } from './lib/wait.mjs';

const server = await startServer(['--read-page', '64KiB']);
const other = await startServer(['--read-page', '64KiB']);
after(async () => {
    await server.dispose();
    await other.dispose();
});
const shell = new Shell({ ARBE_URL: server.base });
const there = new Shell({ ARBE_URL: other.base });
const numbers = (count, from = 0) => Array.from({ length: count }, (_, i) => from + i);
const objects = (text) => text.split('\n').filter((line) => line !== '').map((line) => JSON.parse(line));
const bytesOf = (count, seed) => Buffer.from(Array.from({ length: count }, (_, i) => (Math.imul(i + seed, 2654435761) >>> 13) & 255));

async function source(count, type = 'json') {
    const name = uniqueName('src');
    await shell.good(['create', name, '--type', type]);
    if (count > 0) {
        await shell.good(['append', name, '--lines'], { input: numbers(count).map((i) => `${i}\n`).join('') });
    }
    return name;
}

async function raw(user, name) {
    const running = user.start('read', name);
    assert.equal((await running.end()).code, 0);
    return Buffer.concat(running.bytes);
}

describe('copy', { timeout: 300_000 }, () => {
    test('JSON and bytes, to another server, with type and closed flag', async () => {
        const json = await source(30_000);
        const [told] = objects(await shell.good(['copy', json, json, '--to-url', other.base, '--json']));
        assert.deepEqual(told, { stream: json, messages: 30_000, copied: 30_000, closed: false });
        assert.deepEqual(objects(await there.good(['read', json])), numbers(30_000));
        await shell.good(['append', json, '{"a" : [1, {"b": "c d"}]}', '--close']);
        const [more] = objects(await shell.good(['copy', json, json, '--to-url', other.base, '--json']));
        assert.deepEqual(more, { stream: json, messages: 30_001, copied: 1, closed: true });
        const [again] = objects(await shell.good(['copy', json, json, '--to-url', other.base, '--json']));
        assert.deepEqual(again, { stream: json, messages: 30_001, copied: 0, closed: true });
        const [head] = objects(await there.good(['head', json, '--json']));
        assert.deepEqual([head.closed, head.content_type], [true, 'application/json']);
        assert.equal(await there.good(['read', json]), await shell.good(['read', json]));

        const name = uniqueName('bytes');
        const bytes = bytesOf(3_000_000, 1);
        await shell.good(['create', name, '--type', 'image/png']);
        await shell.good(['append', name], { input: bytes });
        await shell.good(['copy', name, `${other.base}/v1/stream/${name}`]);
        assert.deepEqual(await raw(there, name), bytes);
        assert.equal(objects(await there.good(['head', name, '--json']))[0].content_type, 'image/png');
    });

    test('to a server that takes less at a time', async (t) => {
        const small = await serverFor(t, ['--max-body', '20KiB']);
        const far = new Shell({ ARBE_URL: small.base });
        const json = await source(0);
        const long = (length) => JSON.stringify('x'.repeat(length - 2));
        const messages = [...numbers(10_000).map(String), long(20_000), ...numbers(50).map(String), long(20_480 - 2), long(700), long(19_000)];
        await shell.good(['append', json, '--lines'], { input: messages.join('\n') });
        const [told] = objects(await shell.good(['copy', json, json, '--to-url', small.base, '--json']));
        assert.deepEqual([told.messages, told.copied], [messages.length, messages.length]);
        assert.equal(await far.good(['read', json]), `${messages.join('\n')}\n`);
        await shell.good(['append', json, long(20_480)]);
        await shell.good(['append', json, '1']);
        const { code, stderr } = await shell.run(['copy', json, json, '--to-url', small.base]);
        assert.equal(code, 1);
        assert.match(stderr, /^arbe stream copy: .*20480.*\n$/);

        const name = uniqueName('bytes');
        const bytes = bytesOf(500_000, 3);
        await shell.good(['create', name]);
        await shell.good(['append', name], { input: bytes });
        await shell.good(['copy', name, name, '--to-url', small.base]);
        assert.deepEqual(await raw(far, name), bytes);
    });

    test('an empty source, and an empty one that is closed', async () => {
        const name = await source(0);
        await shell.good(['copy', name, `${name}-2`]);
        await shell.good(['close', name]);
        await shell.good(['copy', name, `${name}-2`]);
        assert.equal(objects(await shell.good(['head', `${name}-2`, '--json']))[0].closed, true);
    });

    test('goes on where the destination ends, at any byte or message', async () => {
        const json = await source(500);
        for (const have of [1, 99, 499]) {
            const to = uniqueName('to');
            await shell.good(['create', to, '--type', 'json']);
            await shell.good(['append', to, JSON.stringify(numbers(have), null, 1)]);
            const [told] = objects(await shell.good(['copy', json, to, '--json']));
            assert.equal(told.copied, 500 - have);
            assert.deepEqual(objects(await shell.good(['read', to])), numbers(500));
        }
        const name = uniqueName('b');
        const bytes = bytesOf(300_000, 2);
        await shell.good(['create', name]);
        await shell.good(['append', name], { input: bytes });
        for (const have of [1, 65_536, 65_537, 299_999]) {
            const to = uniqueName('to');
            await shell.good(['create', to]);
            await shell.good(['append', to], { input: bytes.subarray(0, have) });
            await shell.good(['copy', name, to]);
            assert.deepEqual(await raw(shell, to), bytes);
        }
    });

    test('a destination that holds something else is left alone', async () => {
        const json = await source(10);
        const to = uniqueName('to');
        await shell.good(['create', to, '--type', 'json']);
        await shell.good(['append', to, '[0,1,2,99]']);
        const { code, stderr } = await shell.run(['copy', json, to]);
        assert.equal(code, 4, stderr);
        assert.match(stderr, /differ after 3 messages/);
        assert.deepEqual(objects(await shell.good(['read', to])), [0, 1, 2, 99]);
        await shell.good(['copy', json, to, '--trust']);
        assert.deepEqual(objects(await shell.good(['read', to])), [0, 1, 2, 99, 4, 5, 6, 7, 8, 9]);
        const longer = uniqueName('longer');
        await shell.good(['create', longer, '--type', 'json']);
        await shell.good(['append', longer, JSON.stringify(numbers(11))]);
        assert.equal((await shell.run(['copy', json, longer])).code, 4);
        const text = uniqueName('text');
        await shell.good(['create', text, '--type', 'text']);
        assert.match((await shell.run(['copy', json, text])).stderr, /holds application\/json, and .* text\/plain/);
        const closed = uniqueName('closed');
        await shell.good(['create', closed, '--type', 'json', '--closed']);
        assert.equal((await shell.run(['copy', json, closed])).code, 5);
        assert.equal((await shell.run(['copy', uniqueName('none'), to])).code, 3);
    });

    test('appends of somebody else to the destination are found out', async () => {
        const json = await source(10);
        const to = uniqueName('to');
        await shell.good(['create', to, '--type', 'json']);
        await shell.good(['append', to, '[0,1]', '--seq', 'zzz']);
        const { code, stderr } = await shell.run(['copy', json, to, '--retries', '1']);
        assert.equal(code, 4, stderr);
        assert.deepEqual(objects(await shell.good(['read', to])), [0, 1]);
    });

    test('killed at any moment and started again, several at a time: each message once', async () => {
        const json = await source(rounds(20_000));
        const to = uniqueName('to');
        for (let i = 0; i < 6; i++) {
            const copies = [0, 1, 2].map(() => shell.start('copy', json, to));
            await sleep(5 + 10 * i);
            copies.forEach((copy) => copy.kill('SIGKILL'));
            await Promise.all(copies.map((copy) => copy.end()));
        }
        const last = await Promise.all([0, 1, 2].map(() => shell.run(['copy', json, to])));
        assert.ok(last.some(({ code }) => code === 0), last.map(({ stderr }) => stderr).join());
        assert.deepEqual(objects(await shell.good(['read', to])), numbers(rounds(20_000)));
    });

    test('--follow goes on through kills of both servers until the source is closed', async (t) => {
        const lasting = async () => serverFor(t, ['--listen', `127.0.0.1:${await lastingPort()}`]);
        const [from, to] = [await lasting(), await lasting()];
        const [here, far] = [new Shell({ ARBE_URL: from.base }), new Shell({ ARBE_URL: to.base })];
        await here.good(['create', 'a', '--type', 'json']);
        const copy = here.start('copy', 'a', 'b', '--follow', '--to-url', to.base, '--json');
        const follow = far.line('until arbe stream follow b 2>&- ; do sleep 0.05; done');
        let at = 0;
        for (const victim of [from, to, from, to]) {
            await here.good(['append', 'a', JSON.stringify(numbers(100, at))]);
            at += 100;
            await follow.until((text) => text.split('\n').length > at - 50);
            await victim.crashAndRestart();
        }
        await here.good(['append', 'a', JSON.stringify(numbers(100, at)), '--close']);
        assert.equal((await copy.end()).code, 0, copy.stderr);
        assert.deepEqual(objects(copy.stdout), [{ stream: 'b', messages: 500, copied: 500, closed: true }]);
        assert.deepEqual(objects(await far.good(['read', 'b'])), numbers(500));
        assert.equal((await follow.end()).code, 0);
        assert.deepEqual(objects(follow.stdout), numbers(500));
    });

    test('a copy does not need anybody to read its stdout', async () => {
        const json = await source(50);
        const copy = shell.line(`{ arbe stream copy ${json} ${json}-2 --follow; echo code $? >&2; } | true`);
        const follow = shell.line(`until arbe stream follow ${json}-2 2>&-; do sleep 0.05; done`);
        await follow.until(/^49$/m);
        await shell.good(['append', json, '50', '--close']);
        assert.equal((await copy.end()).stderr, 'code 0\n');
        await follow.end();
        assert.deepEqual(objects(follow.stdout), numbers(51));
    });

    test('Ctrl-C ends a copy; the next one goes on', async () => {
        const json = await source(100);
        const to = uniqueName('to');
        const copy = shell.start('copy', json, to, '--follow');
        const follow = shell.line(`until arbe stream follow ${to} --count 100 2>&-; do sleep 0.05; done`);
        await follow.end();
        copy.kill('SIGINT');
        assert.deepEqual(await copy.end(), { code: 130, signal: null, stdout: '', stderr: '' });
        const [told] = objects(await shell.good(['copy', json, to, '--json']));
        assert.deepEqual([told.messages, told.copied], [100, 0]);
    });
});
