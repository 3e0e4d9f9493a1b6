// Tier 10: conditional requests, caching, security headers and CORS.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { JSON_TYPE, Stream, TEXT, producer, request, uniqueName } from './lib/http.mjs';
import { Raw, exchange, head } from './lib/raw.mjs';
import { Sse } from './lib/sse.mjs';
import { startServer } from './lib/server.mjs';

const server = await startServer(['--long-poll-timeout', '50ms', '--max-body', '1MiB']);
after(() => server.dispose());

async function freshStream(body, type) {
    const stream = new Stream(server, uniqueName(), type);
    await stream.create({}, body);
    return stream;
}

describe('G: conditional requests', () => {
    test('G1: If-None-Match in every legal form is compared weakly', async () => {
        const stream = await freshStream('x');
        const { etag } = (await stream.get()).headers;
        assert.match(etag, /^(W\/)?"[^"]*"$/);
        const strong = etag.replace(/^W\//, '');
        const matching = ['*', strong, `W/${strong}`, `"other", ${strong}`, `"a","b",W/${strong}`,
                          `${strong}, "other"`, ` ${strong} `, `"a",,${strong}`, `"a, b", ${strong}`];
        for (const value of matching) {
            const reply = await stream.get('offset=-1', { 'If-None-Match': value });
            assert.equal(reply.status, 304, value);
            assert.equal(reply.body.length, 0);
        }
        const bare = strong.slice(1, -1);
        for (const value of ['"other"', `"${bare}x"`, `"x${bare}"`, `"x", W/"y"`, `"a, ${bare}"`, '""']) {
            assert.equal((await stream.get('offset=-1', { 'If-None-Match': value })).status, 200, value);
        }
        for (const value of [bare, `w/${strong}`, '', ',', '"', `"${bare}`, `${bare}"`, 'W/', '**']) {
            const { status } = await stream.get('offset=-1', { 'If-None-Match': value });
            assert.ok([200, 400].includes(status), `${value}: ${status}`);
        }
    });

    test('G1: two If-None-Match lines are one list', async () => {
        const stream = await freshStream('x');
        const { etag } = (await stream.get()).headers;
        const reply = await exchange(server, head('GET', `${stream.path}?offset=-1`,
            ['If-None-Match: "other"', `If-None-Match: ${etag}`]));
        assert.equal(reply.status, 304);
    });

    test('G2: a 304 keeps ETag, Cache-Control and the offset', async () => {
        const stream = await freshStream('x');
        const full = await stream.get();
        const reply = await stream.get('offset=-1', { 'If-None-Match': full.headers.etag });
        assert.equal(reply.status, 304);
        for (const name of ['etag', 'cache-control', 'stream-next-offset']) {
            assert.equal(reply.headers[name], full.headers[name], name);
        }
        assert.equal(reply.headers['x-content-type-options'], 'nosniff');
        assert.ok(reply.headers['content-length'] === undefined || reply.headers['content-length'] !== '0' ||
                  full.body.length === 0, 'no false length');
    });

    test('G2: a connection goes on after a 304', async () => {
        const stream = await freshStream('x');
        const { etag } = (await stream.get()).headers;
        const raw = await Raw.open(server);
        const conditional = head('GET', `${stream.path}?offset=-1`, [`If-None-Match: ${etag}`]);
        raw.send(conditional + conditional + head('GET', `${stream.path}?offset=-1`));
        assert.equal((await raw.response()).status, 304);
        assert.equal((await raw.response()).status, 304);
        assert.equal((await raw.response()).text, 'x');
        raw.destroy();
    });

    test('G8: an append changes the ETag of a read to the tail, not of history before a page end', async () => {
        const stream = await freshStream('one');
        const first = await stream.get();
        await stream.append('two');
        const again = await stream.get('offset=-1', { 'If-None-Match': first.headers.etag });
        assert.equal(again.status, 200);
        assert.equal(again.text, 'onetwo');
        assert.notEqual(again.headers.etag, first.headers.etag);
    });

    test('G8: the ETag of an empty read at the tail changes with the next append', async () => {
        const stream = await freshStream('one');
        const { next } = await stream.head();
        const empty = await stream.from(next);
        assert.equal(empty.text, '');
        assert.ok(empty.headers.etag);
        assert.equal((await stream.from(next, { 'If-None-Match': empty.headers.etag })).status, 304);
        await stream.append('two');
        assert.equal((await stream.from(next, { 'If-None-Match': empty.headers.etag })).text, 'two');
    });

    test('G1: ETags differ between offsets, between streams and between generations', async () => {
        const stream = await freshStream('same');
        const other = await freshStream('same');
        const { etag } = (await stream.get()).headers;
        assert.notEqual((await other.get()).headers.etag, etag);
        await stream.append('x');
        const [a, b] = [await stream.get(), await stream.from((await other.head()).next)];
        assert.notEqual(a.headers.etag, b.headers.etag);
        await stream.remove();
        await stream.create({}, 'same');
        assert.notEqual((await stream.get()).headers.etag, etag, 'A10: recreated');
        assert.equal((await stream.get('offset=-1', { 'If-None-Match': etag })).text, 'same');
    });

    test('G1: an ETag survives a restart or changes, but never matches other bytes', async () => {
        const stream = await freshStream('x');
        const { etag } = (await stream.get()).headers;
        await server.restart();
        const reply = await stream.get('offset=-1', { 'If-None-Match': etag });
        assert.ok([200, 304].includes(reply.status));
        await stream.append('y');
        assert.equal((await stream.get('offset=-1', { 'If-None-Match': etag })).text, 'xy');
    });

    test('B5: offset=now has no ETag and is never 304', async () => {
        for (const type of [TEXT, JSON_TYPE]) {
            const stream = await freshStream(type === TEXT ? 'x' : '[1]', type);
            const reply = await stream.get('offset=now', { 'If-None-Match': '*' });
            assert.equal(reply.status, 200);
            assert.equal(reply.headers.etag, undefined);
            assert.match(reply.headers['cache-control'], /no-store/);
        }
    });
});

describe('G: every answer says how it may be cached', () => {
    // Gathers one answer of every status that the server gives.
    async function gather() {
        const replies = {};
        const missing = new Stream(server, uniqueName('missing'));
        const stream = new Stream(server, uniqueName());
        const note = (name, reply) => { replies[name] = reply; };
        note('put 201', await stream.put({}, 'x'));
        note('put 200', await stream.put());
        note('put 409', await stream.put({ 'Content-Type': 'text/html' }));
        note('put 400', await stream.put({ 'Stream-TTL': '01' }));
        note('post 204', await stream.post('x'));
        note('post 400', await stream.post(''));
        note('post 404', await missing.post('x'));
        note('post 409 type', await stream.post('x', { 'Content-Type': 'text/html' }));
        note('post 413', await stream.post(Buffer.alloc((1 << 20) + 1)));
        note('producer 200', await stream.post('x', producer('p', 5, 0)));
        note('producer 204', await stream.post('x', producer('p', 5, 0)));
        note('producer 400', await stream.post('x', producer('p', 6, 1)));
        note('producer 403', await stream.post('x', producer('p', 4, 0)));
        note('producer 409', await stream.post('x', producer('p', 5, 2)));
        note('seq 204', await stream.post('x', { 'Stream-Seq': 'b' }));
        note('seq 409', await stream.post('x', { 'Stream-Seq': 'a' }));
        note('get 200', await stream.get());
        note('get 304', await stream.get('offset=-1', { 'If-None-Match': '*' }));
        note('get 400', await stream.get('offset=bad,bad'));
        note('get 404', await missing.get());
        note('now 200', await stream.get('offset=now'));
        note('head 200', await stream.head());
        note('head 404', await missing.head());
        note('poll 200', await stream.poll('-1'));
        note('poll 204', await stream.poll('now'));
        note('poll 404', await missing.poll('-1'));
        note('sse 404', await missing.get('offset=-1&live=sse'));
        note('method 405', await stream.send('PATCH'));
        note('options 204', await stream.send('OPTIONS'));
        note('root 404', await request(server.base, 'GET', '/nowhere'));
        const fork = new Stream(server, uniqueName('fork'));
        note('fork 201', await fork.put({ 'Stream-Forked-From': stream.path }));
        note('close 204', await stream.close());
        note('post 409 closed', await stream.post('x'));
        note('get 200 closed', await stream.get());
        note('poll 204 closed', await stream.poll((await stream.head()).next));
        note('delete soft 204', await stream.remove());
        note('get 410', await stream.get());
        note('head 410', await stream.head());
        note('delete 410', await stream.remove());
        note('put 409 soft', await stream.put());
        note('delete 204', await fork.remove());
        note('delete 404', await missing.remove());
        note('parser 400', await exchange(server, 'BAD\r\n\r\n'));
        note('parser 431', await exchange(server, head('GET', '/', [`X: ${'x'.repeat(20_000)}`])));
        note('parser 414', await exchange(server, head('GET', `/v1/stream/${'x'.repeat(2000)}`)));
        return replies;
    }

    test('G4, G5, R10: Cache-Control, nosniff and resource policy on every status', async () => {
        const replies = await gather();
        for (const [name, reply] of Object.entries(replies)) {
            const wanted = Number(/\d{3}/.exec(name)[0]);
            assert.equal(reply.status, wanted, `${name}: ${reply.text}`);
            assert.equal(reply.headers['x-content-type-options'], 'nosniff', name);
            assert.equal(reply.headers['cross-origin-resource-policy'], 'cross-origin', name);
            const cache = reply.headers['cache-control'];
            assert.ok(cache, `${name} has Cache-Control`);
            if (!['get 200', 'get 200 closed', 'get 304', 'poll 200'].includes(name) &&
                name !== 'options 204') {
                assert.match(cache, /no-store/, name);
            }
            if (reply.status >= 400 && !name.startsWith('head')) {
                assert.match(reply.headers['content-type'], /^application\/problem\+json/, name);
                const problem = JSON.parse(reply.text);
                assert.equal(problem.status, reply.status, name);
                assert.ok(problem.title && problem.detail, name);
            }
        }
    });

    test('G4: SSE says no-store or no-cache, never a time', async () => {
        const stream = await freshStream('x');
        const sse = await Sse.open(stream, '-1');
        assert.match(sse.headers['cache-control'], /no-(store|cache)/);
        assert.equal(sse.headers['x-content-type-options'], 'nosniff');
        assert.match(sse.headers['content-type'], /^text\/event-stream/);
        sse.close();
    });

    test('L11: a problem document quotes hostile input safely', async () => {
        const stream = await freshStream('x');
        const reply = await exchange(server,
            head('GET', `${stream.path}?offset="%22%3Cscript%3E\\x%0a%00`));
        assert.equal(reply.status, 400);
        assert.ok(JSON.parse(reply.text).detail);
    });
});

describe('CORS', () => {
    test('G5: preflight lists every method and header of the protocol', async () => {
        const reply = await request(server.base, 'OPTIONS', '/v1/stream/any', { headers: {
            Origin: 'https://example.com', 'Access-Control-Request-Method': 'POST',
            'Access-Control-Request-Headers': 'content-type,producer-id',
        } });
        assert.equal(reply.status, 204);
        assert.equal(reply.headers['access-control-allow-origin'], '*');
        const methods = reply.headers['access-control-allow-methods'];
        for (const method of ['GET', 'HEAD', 'PUT', 'POST', 'DELETE']) {
            assert.match(methods, new RegExp(`\\b${method}\\b`));
        }
        const allowed = reply.headers['access-control-allow-headers'].toLowerCase();
        for (const name of ['content-type', 'authorization', 'stream-ttl', 'stream-expires-at', 'stream-seq',
                            'stream-closed', 'stream-forked-from', 'stream-fork-offset',
                            'stream-fork-sub-offset', 'producer-id', 'producer-epoch', 'producer-seq',
                            'if-none-match']) {
            assert.ok(allowed.includes(name), `${name} in ${allowed}`);
        }
    });

    test('G5: scripts may read every header of the protocol, also on errors', async () => {
        const stream = await freshStream('x');
        const missing = new Stream(server, uniqueName('missing'));
        for (const reply of [await stream.get('offset=-1', { Origin: 'https://a.example' }),
                             await missing.get('offset=-1', { Origin: 'https://a.example' }),
                             await stream.post('y', { Origin: 'https://a.example' })]) {
            assert.equal(reply.headers['access-control-allow-origin'], '*');
            const exposed = reply.headers['access-control-expose-headers'].toLowerCase();
            for (const name of ['stream-next-offset', 'stream-cursor', 'stream-up-to-date', 'stream-closed',
                                'etag', 'producer-epoch', 'producer-seq', 'producer-expected-seq',
                                'producer-received-seq', 'stream-sse-data-encoding', 'location']) {
                assert.ok(exposed.includes(name), `${name} in ${exposed}`);
            }
        }
    });

    test('G5: --cors-origin names the one origin', async (t) => {
        const own = await startServer(['--cors-origin', 'https://app.example']);
        t.after(() => own.dispose());
        const reply = await request(own.base, 'GET', '/v1/stream/none', { headers: { Origin: 'https://app.example' } });
        assert.equal(reply.headers['access-control-allow-origin'], 'https://app.example');
        const evil = await request(own.base, 'GET', '/v1/stream/none', { headers: { Origin: 'https://evil.example' } });
        assert.notEqual(evil.headers['access-control-allow-origin'], 'https://evil.example');
        assert.notEqual(evil.headers['access-control-allow-origin'], '*');
    });
});

describe('R20: nothing is built from the Host header', () => {
    test('R20: a Host that is none is refused, or Location does not repeat it', async () => {
        for (const host of ['evil.example/x', '"', 'a b', 'a:b:c', '<script>', 'a@b', 'a\\b', '']) {
            const path = `/v1/stream/${uniqueName()}`;
            const reply = await exchange(server,
                `PUT ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 0\r\n\r\n`);
            if (reply.status === 201) {
                const { location } = reply.headers;
                assert.ok(location === path || new URL(location).pathname === path, location);
            } else {
                assert.equal(reply.status, 400);
            }
        }
    });

    test('R20: --public-url is used for Location when it is given', async (t) => {
        const own = await startServer(['--public-url', 'https://streams.example/base']);
        t.after(() => own.dispose());
        const stream = new Stream(own, 'a');
        const { location } = (await stream.put({ Host: 'evil.example' })).headers;
        assert.doesNotMatch(location, /evil/);
    });
});
