// Tier 90: arbe stream read, tail and follow where things happen: live data, servers that are killed, signals, pipes
// that close, terminals.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { uniqueName } from './lib/http.mjs';
import { lastingPort } from './lib/port.mjs';
import { serverFor, startServer, tempDir } from './lib/server.mjs';
import { Shell } from './lib/shell.mjs';
import { rounds, sleep } from './lib/wait.mjs';

const top = tempDir();
const server = await startServer();
after(async () => {
    await server.dispose();
    rmSync(top, { recursive: true, force: true });
});
const shell = new Shell({ ARBE_URL: server.base });
const objects = (text) => text.split('\n').filter((line) => line !== '').map((line) => JSON.parse(line));
const WAYS = [[], ['--sse'], ['--long-poll']];
const UP_TO_DATE = /"up_to_date":true/;

async function made(type = 'json') {
    const name = uniqueName('live');
    await shell.good(['create', name, '--type', type]);
    return name;
}

describe('tail and follow', { timeout: 300_000 }, () => {
    for (const way of WAYS) {
        test(`what comes is printed at once, and a close ends it (${way[0] ?? 'by what works'})`, async () => {
            const name = await made();
            await shell.good(['append', name, '[1,2]']);
            const tail = shell.start('tail', name, '--json', ...way);
            const follow = shell.start('follow', name, ...way);
            await tail.until(UP_TO_DATE);
            await follow.until(/^1\n2\n$/);
            await shell.good(['append', name, '[3,4]']);
            await tail.until(/"data":4/);
            await follow.until(/^1\n2\n3\n4\n$/);
            await shell.good(['append', name, '5', '--close']);
            for (const running of [tail, follow]) {
                assert.deepEqual(await running.end(), { code: 0, signal: null, stdout: running.stdout, stderr: '' });
            }
            assert.deepEqual(objects(tail.stdout).flatMap((one) => one.data ?? []), [3, 4, 5]);
            assert.equal(objects(tail.stdout).at(-1).closed, true);
            assert.equal(follow.stdout, '1\n2\n3\n4\n5\n');
        });

        test(`bytes and text, live (${way[0] ?? 'by what works'})`, async () => {
            for (const type of ['text', 'bytes']) {
                const name = await made(type);
                const follow = shell.start('follow', name, ...way);
                await shell.good(['append', name, 'zwölf\n']);
                await follow.until(/^zwölf\n$/);
                await shell.good(['append', name, 'Böxkämpfer']);
                await follow.until(/\nBöxkämpfer$/);
                await shell.good(['close', name]);
                assert.equal((await follow.end()).code, 0);
            }
        });
    }

    test('--count ends it', async () => {
        const name = await made();
        const tail = shell.start('tail', name, '--json', '--count', '2');
        await tail.until(UP_TO_DATE);
        await shell.good(['append', name, '[1,2,3]']);
        assert.equal((await tail.end()).code, 0);
        assert.deepEqual(objects(tail.stdout).flatMap((one) => one.data ?? []), [1, 2]);
    });

    test('a stream that is not there, and one that goes', async () => {
        assert.equal((await shell.run(['tail', uniqueName('none')])).code, 3);
        const name = await made();
        const follow = shell.start('follow', name, '--json');
        await follow.until(UP_TO_DATE);
        await shell.good(['delete', name]);
        const { code, stderr } = await follow.end();
        assert.equal(code, 3, stderr);
    });

    test('no server at the start is told soon', async () => {
        assert.equal((await shell.run(['tail', 'x', '--url', 'http://127.0.0.1:1'])).code, 7);
    });

    test('each line once and in order, from a shell pipe to another, while the server is killed', async (t) => {
        const mortal = await serverFor(t, ['--listen', `127.0.0.1:${await lastingPort()}`]);
        const own = new Shell({ ARBE_URL: mortal.base });
        const count = rounds(4000);
        await own.good(['create', 'through', '--type', 'json']);
        const follow = own.start('follow', 'through', '--count', String(count));
        const feed = own.start('append', 'through', '--lines', '--retries', '1000');
        let at = 0;
        for (let kill = 0; kill < 5; kill++) {
            for (const end = at + count / 5; at < end; at++) {
                feed.type(`${at}\n`);
            }
            await follow.until((text) => text.split('\n').length > at - count / 10);
            await mortal.crashAndRestart();
        }
        feed.child.stdin.end();
        assert.deepEqual(await feed.end(), { code: 0, signal: null, stdout: '', stderr: '' });
        assert.equal((await follow.end()).code, 0);
        assert.deepEqual(objects(follow.stdout), Array.from({ length: count }, (_, i) => i));
        assert.deepEqual(objects(await own.good(['read', 'through'])).length, count);
    });
});

describe('signals and pipes', { timeout: 300_000 }, () => {
    for (const way of WAYS) {
        test(`a signal ends it, with its exit code (${way[0] ?? 'by what works'})`, async () => {
            const name = await made();
            await shell.good(['append', name, '[1,2]']);
            for (const [signal, code] of [['SIGINT', 130], ['SIGTERM', 143], ['SIGHUP', 129]]) {
                const follow = shell.start('follow', name, ...way);
                await follow.until(/2\n/);
                follow.kill(signal);
                assert.deepEqual(await follow.end(), { code, signal: null, stdout: '1\n2\n', stderr: '' });
            }
        });
    }

    test('what was printed is whole messages, whenever the signal comes', async () => {
        const name = await made();
        const message = JSON.stringify({ text: 'x'.repeat(3000) });
        await shell.good(['append', name, '--lines'], { input: `${message}\n`.repeat(5000) });
        for (let i = 0; i < rounds(20); i++) {
            // Nobody reads, so that the signal finds a write half done; when exactly is left to chance.
            const running = shell.start('read', name);
            running.child.stdout.pause();
            await running.ready();
            await sleep(3 * i);
            running.kill('SIGTERM');
            await sleep(i);
            running.child.stdout.resume();
            const { code, stdout } = await running.end();
            assert.equal(code, 143);
            assert.equal(stdout, `${message}\n`.repeat(stdout.length / (message.length + 1)));
        }
        const stuck = shell.start('read', name);
        stuck.child.stdout.pause();
        await stuck.ready();
        await sleep(100);
        stuck.kill('SIGINT');
        await sleep(50);
        stuck.kill('SIGINT');
        stuck.child.stdout.resume();
        const { code, signal } = await stuck.end();
        assert.ok(code === 130 || signal === 'SIGINT', 'the second one ends it whatever it waits for');
    });

    test('a signal while stdin or a server is waited for', async () => {
        const name = await made();
        for (const args of [['append', name], ['append', name, '--lines']]) {
            const running = shell.start(...args);
            running.type('"never ');
            await running.ready();
            await sleep(50);
            running.kill('SIGINT');
            assert.equal((await running.end()).code, 130);
        }
        assert.equal(await shell.good(['read', name]), '');
        const waiting = shell.start('head', name, '--retries', '1000', '--url', 'http://127.0.0.1:1');
        await waiting.ready();
        await sleep(100);
        waiting.kill('SIGINT');
        assert.deepEqual(await waiting.end(), { code: 130, signal: null, stdout: '', stderr: '' });
    });

    test('a reader that goes away ends it without a word, also when nothing comes', async () => {
        const name = await made();
        await shell.good(['append', name, '--lines'], { input: '1\n'.repeat(50_000) });
        for (const command of ['read', 'follow', 'follow --sse', 'follow --long-poll']) {
            const { stdout, stderr } = await shell.line(`{ arbe stream ${command} ${name}; echo code $? >&2; } | head -n 2`).end();
            assert.equal(stdout, '1\n1\n');
            assert.equal(stderr, 'code 141\n');
        }
        const idle = await shell.line(`{ arbe stream tail ${name}; echo code $? >&2; } | true`).end();
        assert.equal(idle.stderr, 'code 141\n');
        const ignored = await shell.line(`trap '' PIPE; { arbe stream read ${name}; echo code $? >&2; } | true`).end();
        assert.match(ignored.stderr, /could not be written: Broken pipe\n(.*\n)*code 1\n/);
    });
});

describe('terminals', { timeout: 300_000 }, () => {
    test('Ctrl-C ends a tail at once; talk and colours are for terminals', async () => {
        const name = await made();
        const tail = shell.terminal(['follow', name]);
        await tail.until(/following/);
        await shell.good(['append', name, '[1,2]']);
        await tail.until(/1\r\n2\r\n/);
        tail.type('\x03');
        assert.equal((await tail.end()).code, 130);
        assert.match(tail.stdout, /Ctrl-C ends it/);
        const head = shell.terminal(['head', name]);
        await head.end();
        assert.match(head.stdout, /\x1b\[2mstream:\x1b\[0m /);
        for (const env of [{ NO_COLOR: '1' }, { TERM: 'dumb' }]) {
            const plain = new Shell({ ARBE_URL: server.base, ...env }).terminal(['head', name]);
            await plain.end();
            assert.ok(!plain.stdout.includes('\x1b'), plain.stdout);
        }
    });

    test('names cannot write to the terminal what they like', async (t) => {
        const hostile = http.createServer((_, answer) => answer.end(JSON.stringify({ streams: [{ path: 'a\x1b[31m\x07b' }] }))).listen(0, '127.0.0.1');
        t.after(() => hostile.close());
        await once(hostile, 'listening');
        const list = shell.terminal(['list', '--url', `http://127.0.0.1:${hostile.address().port}`]);
        const { code, stdout } = await list.end();
        assert.ok(!/[\x1b\x07]/.test(stdout), stdout);
        assert.ok(code === 0 ? stdout === 'a?[31m?b\r\n' : code === 1, stdout);
        const name = await made();
        const told = shell.terminal(['create', name, '--type', 'json']);
        await told.end();
        assert.match(told.stdout, /it was there already/);
    });

    test('a copy shows a bar, and no trace of it in what is piped', async () => {
        const name = await made('bytes');
        await shell.good(['append', name], { input: Buffer.alloc(30 << 20, 'x') });
        const copy = shell.terminal(['copy', name, `${name}-2`]);
        assert.equal((await copy.end()).code, 0);
        assert.match(copy.stdout, /\r\[#+-*\] +\d+% {2}copying {2}\d+ bytes {2}[\d.]+ MiB copied {2}[\d.]+ [KM]iB\/s\x1b\[K/);
        assert.match(copy.stdout, /\r\x1b\[K"live-[^"]+" has all 31457280 bytes of "live-[^"]+", 31457280 of them new\r\n$/);
        const piped = await shell.run(['copy', name, `${name}-3`]);
        assert.deepEqual(piped, { code: 0, signal: null, stdout: '', stderr: '' });
    });

    test('bench: rates, percentiles, bars; numbers for machines; nothing is left behind', async () => {
        const file = join(top, 'bench');
        const bench = shell.terminal(['bench', '--time', '1s', '--connections', '2'], `>${file}`);
        assert.equal((await bench.end()).code, 0, bench.stdout);
        assert.match(bench.stdout, /\r\[[#-]+\]/);
        const text = readFileSync(file, 'utf8');
        assert.match(text, /^appends of 100 bytes on 2 connections: \d+\/s, [\d.]+ \w+\/s\n {4}p50 [\d.]+ \w+, p90 .*, p99 .*, p99.9 .*, max [\d.]+ \w+\n/);
        assert.match(text, /\n {4}to +[\d.]+ [mu]?s +[\d.]+% #+\n/);
        assert.match(text, /\nmessages through one producer, batched: \d+\/s/);
        assert.match(text, /\nfrom an append to a reader by server-sent events:\n {4}p50 /);
        assert.ok(!text.includes('\x1b'));
        const [told] = objects(await shell.good(['bench', '--time', '1s', '--size', '1KiB', '--json']));
        assert.deepEqual(Object.keys(told), ['url', 'appends', 'producer', 'tail']);
        assert.ok(told.appends.count > 0 && told.producer.count > 0 && told.tail.count > 0);
        assert.ok(told.appends.latency.p50_us <= told.appends.latency.p99_us && told.appends.latency.p99_us <= told.appends.latency.max_us);
        const interrupted = shell.terminal(['bench', '--time', '1h']);
        await interrupted.until(/\[#*-+\]/);
        interrupted.type('\x03');
        assert.equal((await interrupted.end()).code, 130);
        assert.equal(await shell.good(['list', 'arbe-bench']), '');
    });
});
