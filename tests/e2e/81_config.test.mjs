// Tier 81: where settings come from: file, environment, command line, and what is said about wrong ones.
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { Stream, TEXT } from './lib/http.mjs';
import { run, serverFor, tempDir } from './lib/server.mjs';

const top = tempDir();
after(() => rmSync(top, { recursive: true, force: true }));

let count = 0;
function file(text) {
    const path = join(top, `conf-${count++}`);
    writeFileSync(path, text);
    return path;
}

async function printed(args, env = {}) {
    const { code, stdout, stderr } = await run(['streams', '--print-config', ...args], { env });
    assert.equal(code, 0, stderr);
    assert.equal(stderr, '');
    return stdout;
}

const values = (text) => Object.fromEntries(text.split('\n').filter((line) => line && !line.startsWith('#'))
    .map((line) => line.split(' = ')));

describe('--config and --print-config', { timeout: 120_000 }, () => {
    test('the file is weaker than the environment, which is weaker than the command line', async () => {
        const path = file('read-page = 1KiB\nmax-body = 1MiB\nworkers = 1\n');
        const text = await printed(['--config', path, '--workers', '3'], { ARBE_MAX_BODY: '2MiB', ARBE_WORKERS: '2' });
        const all = values(text);
        assert.equal(all['read-page'], '1KiB');
        assert.equal(all['max-body'], '2MiB');
        assert.equal(all.workers, '3');
        assert.equal(all['sse-lifetime'], '60s');
        assert.ok(text.includes(`# from ${path}:1\nread-page`));
        assert.ok(text.includes('# from the environment\nmax-body'));
        assert.ok(text.includes('# from the command line\nworkers'));
    });

    test('the environment can name the file', async () => {
        const path = file('read-page = 1KiB');
        assert.equal(values(await printed([], { ARBE_CONFIG: path }))['read-page'], '1KiB');
    });

    test('what is printed is a file that gives the same', async () => {
        const secret = file('secret-secret-secret');
        const first = await printed(['--secret-file', secret, '--listen', '[::1]:0', '--durability', 'os', '--insecure', '--checkpoint-interval',
                                     '90s', '--public-url', 'https://a.example/x', '--read-page', '12345']);
        const again = await printed(['--config', file(first)]);
        assert.deepEqual(values(again), values(first));
        assert.ok(!first.includes('secret-secret'), 'a secret is not printed');
    });

    test('--print-config needs no data directory and starts nothing', async () => {
        await printed(['--data', join(top, 'no', 'such', 'place'), '--listen', '127.0.0.1:1']);
    });

    test('a server runs by its file', async (t) => {
        const path = file('# a comment\n\n  read-page=10  \nlong-poll-timeout = 20ms\r\n');
        const server = await serverFor(t, ['--config', path]);
        const stream = new Stream(server, 's', TEXT);
        await stream.create({}, 'x'.repeat(100));
        assert.equal((await stream.get()).body.length, 10);
        assert.equal((await stream.poll('now')).status, 204);
    });

    test('what is wrong is refused with file, line and the nearest name', async () => {
        for (const [text, words] of [['read-pgae = 1', /:1: there is no setting "read-pgae"; did you mean "read-page"/],
                                     ['\nread-page = lots', /:2: read-page: "lots" is not good: it takes a size/],
                                     ['read-page', /:1: "read-page" is not good: a line is name = value/],
                                     ['read-page = 1KiB\nread-page = 2KiB', /:2: "read-page" stands in line 1 already/],
                                     ['config = /etc/x', /:1: config cannot stand in a file/],
                                     ['listen = everywhere', /--listen: "everywhere" is not good/],
                                     ['a\0b', /zero byte/], ['#'.repeat(70000), /at most 65536 bytes/]]) {
            const { code, stdout, stderr } = await run(['streams', '--config', file(text)]);
            assert.equal(code, 2, stderr);
            assert.equal(stdout, '');
            assert.match(stderr, words);
        }
        const missing = await run(['streams', '--config', join(top, 'none')]);
        assert.equal(missing.code, 1);
        assert.match(missing.stderr, /cannot open the configuration file .*none: No such file/);
    });

    test('a misspelt variable is refused, a foreign one is not', async () => {
        const { code, stderr } = await run(['streams', '--print-config'], { env: { ARBE_SECRET_FIL: '/x' } });
        assert.equal(code, 2);
        assert.match(stderr, /ARBE_SECRET_FIL sets nothing; did you mean ARBE_SECRET_FILE/);
        await printed([], { ARBE_URL: 'http://x', ARBE_TESTING: '1' });
    });
});
