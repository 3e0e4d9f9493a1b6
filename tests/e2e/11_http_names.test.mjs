// Tier 10: stream names and paths (L14, A10b): distinct URLs are distinct
// streams, and no name leads out of the data directory or into its files.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { after, describe, test } from 'node:test';
import { Stream, uniqueName } from './lib/http.mjs';
import { exchange, head } from './lib/raw.mjs';
import { startServer } from './lib/server.mjs';

const server = await startServer();
after(() => server.dispose());

// Sends a target as the bytes it is; Node's own client would refuse some.
async function send(method, target, { body, headers = [] } = {}) {
    const framing = method === 'PUT' || method === 'POST'
        ? ['Content-Type: text/plain', `Content-Length: ${body?.length ?? 0}`] : [];
    return await exchange(server, head(method, target, [...framing, ...headers]) + (body ?? ''), method);
}

const root = '/v1/stream/';

describe('L14: names that are refused', () => {
    const bad = {
        '%00': 'NUL', 'a%00b': 'NUL inside', '%ff': 'lone FF', '%c3': 'cut UTF-8',
        '%c3%28': 'bad continuation', '%c0%ae%c0%ae': 'overlong dots', '%c0%af': 'overlong slash',
        '%ed%a0%80': 'surrogate', '%f4%90%80%80': 'over U+10FFFF', '%e0%80%af': 'overlong, three bytes',
        '%': 'lone percent', '%z': 'percent and a letter', '%zz': 'not hex', '%2': 'cut escape',
        'a%': 'percent at the end', '%%41': 'double percent', '%u0041': 'percent u',
        '.': 'dot', '..': 'dot dot', 'a/..': 'dot dot at the end', 'a/../b': 'dot dot inside',
        './a': 'dot first', 'a/./b': 'dot inside', '%2e%2e': 'encoded dot dot', '%2E': 'encoded dot',
        '.%2e': 'half encoded', '%2e./a': 'half encoded first', '../../etc/passwd': 'way out',
        '%2e%2e/%2e%2e/etc/passwd': 'encoded way out',
        '%0a': 'LF', '%0d%0aX: y': 'CRLF', '%09': 'tab', '%7f': 'DEL', '%1b%5b0m': 'escape',
        'a%01': 'control',
    };
    for (const [name, what] of Object.entries(bad)) {
        test(`L14: ${what} (${name})`, async () => {
            const target = root + name.replaceAll(' ', '%20');
            for (const method of ['PUT', 'GET', 'POST', 'HEAD', 'DELETE']) {
                const reply = await send(method, target, { body: method === 'POST' ? 'x' : undefined });
                assert.equal(reply.status, 400, `${method} ${name}`);
            }
        });
    }

    test('L14: raw invalid UTF-8 and raw control bytes', async () => {
        for (const name of ['\xff', 'a\xc3', '\xc0\xae', 'a\x7f', 'a\x01', 'a\x0b']) {
            assert.equal((await send('PUT', root + name)).status, 400, JSON.stringify(name));
        }
    });

    test('L14: no name at all, other roots and near misses are 404', async () => {
        for (const target of ['/v1/stream/', '/v1/stream', '/v1/streams/a', '/v1/streama', '/',
                              '/v2/stream/a', '/V1/stream/a', '/v1/Stream/a', '//v1/stream/a',
                              '/v1//stream/a', '/v1/stream?a', '/etc/passwd', '/x/../v1/stream/a']) {
            for (const method of ['GET', 'PUT']) {
                const { status } = await send(method, target);
                assert.ok([404, 400].includes(status), `${method} ${target}: ${status}`);
            }
        }
    });

    test('L14: __ds is reserved in every method, also encoded', async () => {
        for (const name of ['__ds', '__ds/', '__ds/subscriptions', '__ds/subscriptions/a/b', '%5f_ds/a',
                            '__%64s', '__ds/a/b']) {
            for (const method of ['PUT', 'GET', 'POST', 'HEAD', 'DELETE']) {
                const { status } = await send(method, root + name, { body: method === 'POST' ? 'x' : undefined });
                assert.equal(status, 404, `${method} ${name}`);
            }
        }
        for (const name of ['__dsx', 'a/__ds', '__d', '_ds', '__DS']) {
            assert.equal((await send('PUT', root + name)).status, 201, `${name} is not reserved`);
        }
    });

    test('L14: a fork source is held to the same rules', async () => {
        for (const source of ['/v1/stream/%00', '/v1/stream/..', '/v1/stream/a/../b', '/v1/stream/%zz']) {
            const { status } = await send('PUT', root + uniqueName(),
                                          { headers: [`Stream-Forked-From: ${source}`] });
            assert.ok([400, 404].includes(status), `${source}: ${status}`);
        }
        for (const source of ['/etc/passwd', '/v1/stream/', '/v1/stream/__ds/a', '', 'nope', '/v1/stream/never']) {
            const { status } = await send('PUT', root + uniqueName(),
                                          { headers: [`Stream-Forked-From: ${source}`] });
            assert.ok([400, 404].includes(status), `${source}: ${status}`);
        }
    });
});

describe('L14: lengths', () => {
    test('L14: 480 bytes fit, more get 414', async () => {
        const ascii = 'n'.repeat(480);
        assert.equal((await send('PUT', root + ascii)).status, 201);
        assert.equal((await send('PUT', `${root}${ascii}n`)).status, 414);
        assert.equal((await send('GET', `${root}${ascii}n`)).status, 414);
        assert.equal((await send('PUT', root + '%61'.repeat(480))).status, 201, 'counted after decoding');
        assert.equal((await send('PUT', root + '%c3%a9'.repeat(240))).status, 201);
        assert.equal((await send('PUT', root + '%c3%a9'.repeat(241))).status, 414);
        for (const size of [4096, 7000]) {
            assert.equal((await send('PUT', root + 'p'.repeat(size))).status, 414, String(size));
        }
    });

    test('A10: long names that share a long prefix are two streams', async () => {
        const prefix = 'x'.repeat(299);
        const names = ['a', 'b', 'c', 'A', '0', '-', ''].map((end) => prefix + end);
        for (const name of names) {
            const stream = new Stream(server, name);
            await stream.create({}, `I am ${name.slice(299)}`);
        }
        for (const name of names) {
            assert.equal((await new Stream(server, name).get()).text, `I am ${name.slice(299)}`);
        }
        await new Stream(server, names[0]).remove();
        assert.equal((await new Stream(server, names[1]).get()).status, 200);
        assert.equal((await new Stream(server, names[0]).get()).status, 404);
    });
});

describe('L14: distinct names are distinct streams', () => {
    test('L14: each of these keeps its own bytes', async () => {
        const names = [
            'd', 'd/', 'd//', '/d', 'd/e', 'd//e', 'd/e/', 'D', 'd%20', 'd+', 'd%2B%20', 'd%2Fe', 'd%252Fe',
            'd%25', 'd%2525', 'CON', 'con', 'NUL', 'aux.txt', 'wal', '.meta', '.lock', 'lock', 'LOCK',
            'data.mdb', 'lock.mdb', 'catalog', 'packs', 'wal/0', '...', '.a', 'a.', '..a', 'a..', '~', '~root',
            '-', '-1', 'now', 'null', 'undefined', '%7Bid%7D', '%5C', '..%5C..', 'C:%5Cx', '%3Fq', '%23f',
            'a;b', 'a=b', 'a,b', 'a&b', '%22', "'", '%60', '$(x)', '!', '@', '*', '(', '[x]',
            '%E2%80%8B', '%E2%80%AE', '%F0%9F%92%A9', 'caf%C3%A9', 'cafe%CC%81', '%C4%B0', '%C4%B1', 'i', 'I',
            '%E2%84%AA', 'K', 'k', '%EF%BC%8F', '%EF%BC%8E%EF%BC%8E', '__proto__', 'constructor',
        ];
        for (const name of names) {
            const reply = await send('PUT', root + name, { body: `bytes of ${name}` });
            assert.equal(reply.status, 201, `PUT ${name}: ${reply.text}`);
        }
        for (const name of names) {
            const reply = await send('GET', `${root}${name}?offset=-1`);
            assert.equal(reply.text, `bytes of ${name}`, name);
        }
        await server.restart();
        for (const name of names) {
            const reply = await send('GET', `${root}${name}?offset=-1`);
            assert.equal(reply.text, `bytes of ${name}`, `${name} after a restart`);
        }
        for (const name of names) {
            assert.equal((await send('DELETE', root + name)).status, 204, name);
        }
    });

    test('L14: spellings of one name are one stream', async () => {
        const same = [
            ['one%61', 'onea'], ['one%c3%a9', 'one%C3%A9'], ['one-\xc3\xa9', 'one-%C3%A9'],
            ['one%7e', 'one~'], ['one%2f', 'one%2F'], ['one-%2d', 'one--'], ['one%20x', 'one%20%78'],
        ];
        for (const [first, second] of same) {
            assert.equal((await send('PUT', root + first, { body: 'x' })).status, 201, first);
            assert.equal((await send('PUT', root + second)).status, 200, second);
            assert.equal((await send('GET', `${root}${second}?offset=-1`)).text, 'x');
            assert.equal((await send('DELETE', root + second)).status, 204);
            assert.equal((await send('GET', root + first)).status, 404);
        }
    });

    test('L14: a query is no part of the name', async () => {
        const name = uniqueName('query');
        assert.equal((await send('PUT', `${root}${name}?a=b`, { body: 'x' })).status, 201);
        assert.equal((await send('GET', `${root}${name}?offset=-1&x=/../..`)).text, 'x');
        assert.equal((await send('GET', `${root}${name}?`)).text, 'x');
        assert.equal((await send('GET', `${root}${name}?&&`)).text, 'x');
    });

    test('L14: Location can be fetched and names the same stream', async () => {
        for (const name of ['loc/a%20b', 'loc%2Fx', 'loc-%C3%A9', 'loc//y', 'loc%25']) {
            const reply = await send('PUT', root + name, { body: 'x' });
            const { location } = reply.headers;
            assert.ok(location, name);
            const target = location.replace(/^http:\/\/[^/]*/, '');
            assert.equal((await send('GET', `${target}?offset=-1`)).text, 'x', location);
        }
    });

    test('L14: no name makes a file of its own in the data directory', async () => {
        const before = readdirSync(server.dir).sort();
        for (const name of ['evil.txt', 'etc/passwd', '%5C..%5Cx', '.hidden', 'wal/evil']) {
            await send('PUT', root + name, { body: 'x' });
        }
        assert.deepEqual(readdirSync(server.dir).sort(), before);
    });
});
