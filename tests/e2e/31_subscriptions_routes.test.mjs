// Tier 30: the reserved part of the URL space: which paths, methods, bodies and secrets it takes.
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { JSON_TYPE, Stream, request, uniqueName } from './lib/http.mjs';
import { Raw, exchange, head } from './lib/raw.mjs';
import { serverFor, startServer, tempDir } from './lib/server.mjs';
import { CONTROL, LONG_LEASE_MS, Subscription, assertError, assertStatus, control } from './lib/subscriptions.mjs';
import { eventually } from './lib/wait.mjs';

const server = await startServer(['--webhooks-allow-loopback']);
after(() => server.dispose());

const SECTIONS = { 'x-content-type-options': /^nosniff$/, 'cross-origin-resource-policy': /^cross-origin$/,
                   'access-control-allow-origin': /^\*$/, 'access-control-expose-headers': /Stream-Next-Offset/ };
const config = { type: 'pull-wake', pattern: 'none/*', wake_stream: 'wake/none', lease_ttl_ms: LONG_LEASE_MS };

// Path below __ds, and what it knows.
const ROUTES = [
    ['/jwks.json', ['GET', 'HEAD']],
    ['/streams', ['GET', 'HEAD']],
    ['/subscriptions/r', ['GET', 'HEAD', 'PUT', 'DELETE']],
    ['/subscriptions/r/streams', ['POST']],
    ['/subscriptions/r/streams/a', ['DELETE']],
    ['/subscriptions/r/streams/a/b', ['DELETE']],
    ['/subscriptions/r/streams/a%2Fb', ['DELETE']],
    ['/subscriptions/r/callback', ['POST']],
    ['/subscriptions/r/claim', ['POST']],
    ['/subscriptions/r/ack', ['POST']],
    ['/subscriptions/r/release', ['POST']],
];
const METHODS = ['GET', 'HEAD', 'PUT', 'POST', 'DELETE', 'PATCH', 'FROB'];

const raw = (method, path, { headers = [], body } = {}) => {
    const length = body === undefined ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
    return exchange(server, head(method, path, [...headers, ...length]) + (body ?? ''), method);
};

describe('routes', () => {
    test('a method that a path does not know is 405, with those that it does', async () => {
        for (const [path, known] of ROUTES) {
            for (const method of METHODS.filter((one) => !known.includes(one))) {
                const reply = await raw(method, CONTROL + path);
                assert.equal(reply.status, 405, `${method} ${path}`);
                assert.deepEqual(reply.headers.allow.split(', ').sort(), [...known, 'OPTIONS'].sort(), `${method} ${path}`);
                if (method !== 'HEAD') {
                    assertError(reply, 405, 'METHOD_NOT_ALLOWED');
                }
            }
        }
    });

    test('what is not a route is 404 in JSON, and never a stream', async () => {
        const paths = ['', '/', '//', '/x', '/jwks', '/jwks.json/', '/jwks.json/x', '/streams/', '/streams/x', '/subscriptions',
                       '/subscriptions/', '/subscriptions//', '/subscriptions//claim', '/subscriptions/r/', '/subscriptions/r/x',
                       '/subscriptions/r/claim/', '/subscriptions/r/streams/', '/subscriptions%2Fr', '/Subscriptions/r'];
        for (const path of paths) {
            for (const method of METHODS) {
                const reply = await raw(method, CONTROL + path, { headers: ['Content-Type: text/plain'] });
                assert.equal(reply.status, 404, `${method} ${path}: ${reply.status}`);
                if (method !== 'HEAD') {
                    assertError(reply, 404, 'SUBSCRIPTION_NOT_FOUND');
                }
            }
        }
        // Whoever looks for a list of them is told where each is.
        assert.match((await control(server, 'GET', '/subscriptions')).json().error.message, /not listed; one is at __ds\/subscriptions\/ID/);
        assert.match((await control(server, 'GET', '/x')).json().error.message, /below __ds are jwks.json, streams, subscriptions\/ID/);
        const { streams } = assertStatus(await control(server, 'GET', '/streams'), 200).json();
        assert.deepEqual(streams.filter((one) => /__ds|%5f/i.test(one.path)), []);
    });

    test('an encoded __ds is the same place', async () => {
        await new Subscription(server, 'spelt').create(config);
        for (const name of ['%5F%5Fds', '%5f%5fds', '_%5Fds', '__d%73', '%5F%5F%64%73']) {
            const found = await raw('GET', `/v1/stream/${name}/subscriptions/spelt`);
            assert.equal(found.status, 200, name);
            assert.equal(found.json().id, 'spelt');
            assertError(await raw('PUT', `/v1/stream/${name}/x`, { body: 'x', headers: ['Content-Type: text/plain'] }),
                        404, 'SUBSCRIPTION_NOT_FOUND');
            assert.equal((await raw('GET', `/v1/stream/${name}/%6awks.json`)).status, 200);
        }
        // Neighbours are streams like others.
        for (const name of ['__dsx', '__DS', 'a/__ds/subscriptions/spelt']) {
            assert.equal((await new Stream(server, name).put()).status, 201, name);
        }
    });

    test('an id is decoded after the path was split', async () => {
        for (const [escaped, id] of [['a%2Fb', 'a/b'], ['a%2Fclaim', 'a/claim'], ['%E2%82%AC', '€'], ['a%252Fb', 'a%2Fb'],
                                     ['a%20b', 'a b'], ['claim', 'claim'], ['streams', 'streams'], ['a+b', 'a+b'],
                                     ['%22', '"'], ['...', '...']]) {
            const made = assertStatus(await control(server, 'PUT', `/subscriptions/${escaped}`, config), 201);
            assert.equal(made.json().id, id);
            assert.equal(made.json().subscription_id, id);
            assert.equal((await new Subscription(server, id).read()).id, id);
            assertStatus(await control(server, 'DELETE', `/subscriptions/${escaped}`), 204);
        }
        assertError(await new Subscription(server, 'a').get(), 404, 'SUBSCRIPTION_NOT_FOUND');
    });

    test('a broken escape, and an id that no URL could carry, are 400', async () => {
        for (const id of ['%', '%2', '%zz', 'a%', '%00', 'a%0Ab', '%7F', '%FF', '%C3', '%2e', '%2E%2e']) {
            for (const suffix of ['', '/claim', '/streams/x']) {
                const method = suffix === '' ? 'GET' : suffix === '/claim' ? 'POST' : 'DELETE';
                assertError(await raw(method, `${CONTROL}/subscriptions/${id}${suffix}`), 400, 'INVALID_REQUEST');
            }
        }
        for (const path of ['/%', '/%zz/x', '/subscriptions/a/%zz', '/subscriptions/a/streams/%', '/subscriptions/a/streams/b/%g1']) {
            assertError(await raw('DELETE', CONTROL + path), 400, 'INVALID_REQUEST');
        }
    });

    test('an id has at most 256 bytes, decoded', async () => {
        const longest = 'é'.repeat(128);
        const subscription = new Subscription(server, longest);
        await subscription.create(config);
        assert.equal((await subscription.read()).id, longest);
        assertStatus(await subscription.remove(), 204);
        for (const method of ['PUT', 'GET', 'DELETE']) {
            assertError(await new Subscription(server, `${longest}x`).send(method, '', method === 'PUT' ? config : undefined),
                        400, 'INVALID_REQUEST');
        }
    });

    test('every answer has the headers that every answer has', async () => {
        const subscription = new Subscription(server, uniqueName());
        const replies = [await subscription.put(config), await subscription.get(), await subscription.put({ ...config, description: 'x' }),
                         await subscription.send('POST', '/claim', '{'), await control(server, 'GET', '/jwks.json'),
                         await control(server, 'GET', '/streams'), await control(server, 'GET', '/nothing'),
                         await subscription.send('GET', '/claim'), await subscription.remove()];
        assert.deepEqual(replies.map((one) => one.status), [201, 200, 409, 400, 200, 200, 404, 405, 204]);
        for (const { headers } of replies) {
            for (const [name, wanted] of Object.entries(SECTIONS)) {
                assert.match(headers[name] ?? '', wanted, name);
            }
            assert.ok(headers['cache-control']);
        }
    });

    test('HEAD is GET without the body; OPTIONS is a preflight', async () => {
        const subscription = new Subscription(server, uniqueName());
        await subscription.create(config);
        for (const path of [subscription.path, '/jwks.json', '/streams']) {
            const got = await raw('GET', CONTROL + path);
            const headed = await raw('HEAD', CONTROL + path);
            assert.equal(headed.status, 200);
            assert.equal(headed.headers['content-length'], String(got.body.length), path);
            assert.equal(headed.headers['content-type'], got.headers['content-type']);
        }
        assert.equal((await raw('HEAD', `${CONTROL}/subscriptions/never`)).status, 404);
        for (const path of [subscription.path, '/jwks.json', '/nothing']) {
            const reply = await raw('OPTIONS', CONTROL + path, { headers: ['Origin: https://a.example', 'Access-Control-Request-Method: PUT'] });
            assert.equal(reply.status, 204);
            assert.match(reply.headers['access-control-allow-methods'], /PUT/);
            assert.match(reply.headers['access-control-allow-headers'], /Authorization/);
        }
    });

    test('the public keys may be cached for five minutes', async () => {
        const reply = assertStatus(await control(server, 'GET', '/jwks.json'), 200);
        assert.match(reply.headers['content-type'], /^application\/jwk-set\+json/);
        assert.equal(reply.headers['cache-control'], 'public, max-age=300');
        const { keys } = reply.json();
        assert.equal(keys.length, 1);
        const { kid, x, ...rest } = keys[0];
        assert.deepEqual(rest, { kty: 'OKP', crv: 'Ed25519', use: 'sig', alg: 'EdDSA' });
        assert.match(kid, /^ds_[\w-]{43}$/);
        assert.match(x, /^[\w-]{43}$/);
    });
});

describe('bodies', () => {
    // A valid PUT of exactly `bytes` bytes: white space belongs to JSON.
    const padded = (bytes) => JSON.stringify(config).padEnd(bytes, ' ');

    test('a body has at most 64 KiB, by length and by chunks', async () => {
        const id = uniqueName();
        const path = `${CONTROL}/subscriptions/${id}`;
        const chunked = (text) => exchange(server, head('PUT', path, ['Transfer-Encoding: chunked']) +
            `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`, 'PUT');

        assertError(await raw('PUT', path, { body: padded(65_537) }), 413, 'REQUEST_TOO_LARGE');
        assertError(await chunked(padded(65_537)), 413, 'REQUEST_TOO_LARGE');
        assertError(await new Subscription(server, id).get(), 404, 'SUBSCRIPTION_NOT_FOUND');
        assertStatus(await raw('PUT', path, { body: padded(65_536) }), 201);
        assertStatus(await chunked(padded(65_536)), 200);
    });

    test('over the server\'s own cap the answer has the same form', async (t) => {
        const small = await serverFor(t, ['--max-body', '1KiB']);
        const subscription = new Subscription(small, 'a');
        assertError(await subscription.put(padded(1_025)), 413, 'REQUEST_TOO_LARGE');
        assertStatus(await subscription.put(padded(1_024)), 201);
    });

    test('a body that is too large is refused before it is sent', async () => {
        const reply = await exchange(server, head('PUT', `${CONTROL}/subscriptions/x`,
            ['Content-Length: 65537', 'Expect: 100-continue']), 'PUT');
        assertError(reply, 413, 'REQUEST_TOO_LARGE');
        const raws = await Raw.open(server);
        raws.send(head('PUT', `${CONTROL}/subscriptions/${uniqueName()}`, [`Content-Length: ${padded(200).length}`, 'Expect: 100-continue']));
        assert.equal((await raws.head()).status, 100);
        assert.equal((await raws.send(padded(200)).response('PUT')).status, 201);
        raws.destroy();
    });

    test('a body whose framing is broken is 400 in the same form', async () => {
        for (const body of ['zz\r\n', '5\r\nabcdefg\r\n', '-1\r\n']) {
            assertError(await exchange(server, head('PUT', `${CONTROL}/subscriptions/x`, ['Transfer-Encoding: chunked']) + body, 'PUT'),
                        400, 'INVALID_REQUEST');
        }
    });

    test('what is no JSON is 400; an empty body is an empty object; the content type is not looked at', async () => {
        const subscription = new Subscription(server, uniqueName());
        await subscription.create(config);
        const posts = ['/streams', '/claim', '/callback', '/ack', '/release'];
        for (const body of ['{', '}', 'x', '{"a":1}x', '{a:1}', "{'a':1}", '\u0000', '{"a":1,}', '\ufeff{}', '[1', 'nul', '"']) {
            assertError(await subscription.send('PUT', '', body), 400, 'INVALID_REQUEST');
            for (const suffix of posts) {
                assertError(await subscription.send('POST', suffix, body, { Authorization: 'Bearer x' }), 400, 'INVALID_REQUEST');
            }
        }
        const bad = Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]);
        assertError(await subscription.send('PUT', '', bad), 400, 'INVALID_REQUEST');
        assertError(await subscription.send('PUT', '', '{"type":'.concat('['.repeat(3_000))), 400, 'INVALID_REQUEST');
        for (const suffix of ['', '/streams', '/claim']) {
            assertError(await subscription.send(suffix === '' ? 'PUT' : 'POST', suffix), 400, 'INVALID_REQUEST');
        }
        for (const type of ['text/plain', 'application/xml', 'x', JSON_TYPE]) {
            assertStatus(await subscription.send('PUT', '', config, { 'Content-Type': type }), 200);
        }
    });

    test('JSON of the wrong shape is 400 and never 500', async () => {
        const subscription = new Subscription(server, uniqueName());
        await subscription.create(config);
        for (const body of ['null', '1', '"x"', 'true', '[]', '[{}]']) {
            assertError(await subscription.send('PUT', '', body), 400, 'INVALID_REQUEST');
            for (const suffix of ['/streams', '/claim']) {
                assertError(await subscription.send('POST', suffix, body), 400, 'INVALID_REQUEST');
            }
            for (const suffix of ['/callback', '/ack', '/release']) {
                const reply = await subscription.send('POST', suffix, body, { Authorization: 'Bearer x.y' });
                assert.ok([400, 401].includes(reply.status), `${suffix} ${body}: ${reply.status} ${reply.text}`);
            }
        }
    });

    test('a body of GET and DELETE is read away', async () => {
        const subscription = new Subscription(server, uniqueName());
        await subscription.create(config);
        assertStatus(await subscription.send('GET', '', '{"x"'), 200);
        assertStatus(await subscription.send('DELETE', '', 'nonsense'), 204);
    });
});

describe('connections', () => {
    test('pipelined requests are answered in order', async () => {
        const path = `${CONTROL}/subscriptions/${uniqueName()}`;
        const body = JSON.stringify(config);
        const put = head('PUT', path, [`Content-Length: ${body.length}`]) + body;
        const raws = await Raw.open(server);
        raws.send(put + head('GET', path) + put + head('DELETE', path) + head('GET', path) + head('GET', '/health'));
        const statuses = [];
        for (const method of ['PUT', 'GET', 'PUT', 'DELETE', 'GET', 'GET']) {
            statuses.push((await raws.response(method)).status);
        }
        assert.deepEqual(statuses, [201, 200, 200, 204, 404, 200]);
        raws.destroy();
    });

    test('a client that closed its sending side is still answered', async () => {
        const body = JSON.stringify(config);
        const raws = await Raw.open(server, { allowHalfOpen: true });
        raws.socket.end(head('PUT', `${CONTROL}/subscriptions/${uniqueName()}`, [`Content-Length: ${body.length}`]) + body);
        assert.equal((await raws.response('PUT')).status, 201);
        raws.destroy();
    });

    test('a client that goes while its request is under way harms nobody', async () => {
        const ids = Array.from({ length: 50 }, () => uniqueName());
        const body = JSON.stringify(config);
        for (const id of ids) {
            const raws = await Raw.open(server);
            await raws.sendAll(head('PUT', `${CONTROL}/subscriptions/${id}`, [`Content-Length: ${body.length}`]) + body);
            raws.resetNow();
        }
        // Each was either taken whole or not at all.
        for (const id of ids) {
            const reply = await new Subscription(server, id).get();
            assert.ok([200, 404].includes(reply.status), `${id}: ${reply.status}`);
        }
        await eventually('the last one can be made', async () => {
            const { status } = await new Subscription(server, ids.at(-1)).put(config);
            return status === 200 || status === 201;
        });
    });

    test('a connection too many is refused in the form of what it asks for', async (t) => {
        const full = await serverFor(t, ['--max-connections', '1']);
        const holder = await Raw.open(full);
        assert.equal((await holder.send(head('GET', `${CONTROL}/jwks.json`)).response()).status, 200);
        const reply = await exchange(full, head('GET', `${CONTROL}/jwks.json`));
        assertError(reply, 503, 'UNAVAILABLE');
        assert.match(reply.headers['retry-after'], /^\d+$/);
        assert.equal((await exchange(full, head('GET', '/v1/stream/x'))).headers['content-type'], 'application/problem+json');
        holder.destroy();
    });

    test('HTTP/1.0 is served', async () => {
        const body = JSON.stringify(config);
        const path = `${CONTROL}/subscriptions/${uniqueName()}`;
        assert.equal((await exchange(server, head('PUT', path, [`Content-Length: ${body.length}`], 'HTTP/1.0') + body, 'PUT')).status, 201);
        assert.equal((await exchange(server, head('GET', path, [], 'HTTP/1.0'))).status, 200);
    });
});

describe('with a secret', () => {
    const SECRET = 'correct-horse-battery-staple';
    const settings = tempDir();
    const file = join(settings, 'secret');
    writeFileSync(file, `${SECRET}\n`, { mode: 0o600 });
    after(() => rmSync(settings, { recursive: true }));
    const good = { Authorization: `Bearer ${SECRET}` };

    test('all but the keys and what has a token of its own needs it', async (t) => {
        const locked = await serverFor(t, ['--secret-file', file]);
        const owner = new Subscription(locked, 'a', { headers: good });
        const stranger = new Subscription(locked, 'a');
        const wake = new Stream(locked, 'wake/a', JSON_TYPE, good);
        const stream = new Stream(locked, 'in/a', JSON_TYPE, good);
        await wake.create({}, '[]');
        await owner.create({ type: 'pull-wake', pattern: 'in/*', wake_stream: 'wake/a', lease_ttl_ms: LONG_LEASE_MS });
        await stream.create({}, '[{"n":1}]');

        for (const [method, suffix, body] of [['GET', ''], ['PUT', '', config], ['DELETE', ''], ['POST', '/streams', { streams: ['x'] }],
                                              ['DELETE', '/streams/x'], ['POST', '/claim', { worker: 'w' }], ['GET', '/nothing'],
                                              ['PATCH', '']]) {
            const reply = assertStatus(await stranger.send(method, suffix, body), 401);
            assertError(reply, 401, 'UNAUTHORIZED');
            assert.match(reply.headers['www-authenticate'], /^Bearer/);
        }
        for (const path of ['/streams', '', '/', '/x', '/jwks', '/subscriptions', '/%zz']) {
            assertError(await control(locked, 'GET', path), 401, 'UNAUTHORIZED');
        }
        for (const name of ['%5F%5Fds', '__%64s']) {
            assert.equal((await request(locked.base, 'DELETE', `/v1/stream/${name}/subscriptions/a`)).status, 401);
        }
        assertStatus(await control(locked, 'GET', '/jwks.json'), 200);

        const claim = await owner.claimed();
        // The secret is no token, and a token is no secret.
        assertError(await stranger.ack(claim, {}, SECRET), 401, 'TOKEN_INVALID');
        assertError(await stranger.send('POST', '/ack', {}), 401, 'TOKEN_INVALID');
        assertError(await stranger.send('GET', '', undefined, { Authorization: `Bearer ${claim.token}` }), 401, 'UNAUTHORIZED');
        assertStatus(await stranger.ack(claim), 200);
        assertStatus(await stranger.release(claim), 204);
        assert.equal((await owner.read()).status, 'active');
    });

    test('nothing changed for strangers, and nothing was told them', async (t) => {
        const locked = await serverFor(t, ['--secret-file', file]);
        const stranger = new Subscription(locked, 'a');
        assertStatus(await stranger.put(config), 401);
        const owner = new Subscription(locked, 'a', { headers: good });
        assertError(await owner.get(), 404, 'SUBSCRIPTION_NOT_FOUND');
        await owner.create(config);
        const there = assertStatus(await stranger.get(), 401);
        const missing = assertStatus(await new Subscription(locked, 'b').get(), 401);
        assert.equal(there.text, missing.text);
        assertStatus(await stranger.remove(), 401);
        assertStatus(await owner.get(), 200);
    });
});
