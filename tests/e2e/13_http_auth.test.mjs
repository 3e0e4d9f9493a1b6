// Tier 10: the shared secret (R22) and what the server answers without it.
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { Stream, TEXT, request, uniqueName } from './lib/http.mjs';
import { exchange, head } from './lib/raw.mjs';
import { startServer, tempDir } from './lib/server.mjs';
import { Sse } from './lib/sse.mjs';

const SECRET = 'correct-horse-battery-staple';
const settings = tempDir();
const secretFile = join(settings, 'secret');
writeFileSync(secretFile, `${SECRET}\n`, { mode: 0o600 });
const server = await startServer(['--secret-file', secretFile]);
after(async () => {
    await server.dispose();
    rmSync(settings, { recursive: true });
});

const good = { Authorization: `Bearer ${SECRET}` };

describe('R22: with a secret every stream request needs it', () => {
    test('R22: no method, name or query gets by without it', async () => {
        const names = ['a', 'subscribe', 'health', 'x/subscribe', 'metrics', '__ds/x', 'a%2Fsubscribe',
                       'health/../a', 'public', '.well-known/x', 'subscribe/../a', '__ds/subscribe'];
        for (const name of names) {
            for (const method of ['GET', 'HEAD', 'PUT', 'POST', 'DELETE', 'PATCH']) {
                for (const query of ['', '?subscribe', '?live=sse&offset=-1', '?token=x']) {
                    const framing = method === 'POST' || method === 'PUT'
                        ? ['Content-Type: text/plain', 'Content-Length: 1'] : [];
                    const reply = await exchange(server, head(method, `/v1/stream/${name}${query}`, framing) +
                                                 (framing.length ? 'x' : ''), method);
                    const allowed = [401, ...(name.includes('..') ? [400] : []),
                                     ...(name.startsWith('__ds') ? [404] : []),
                                     ...(method === 'PATCH' ? [405] : [])];
                    assert.ok(allowed.includes(reply.status), `${method} ${name}${query}: ${reply.status}`);
                }
            }
        }
        assert.equal((await request(server.base, 'GET', '/v1/stream/a', { headers: good })).status, 404);
    });

    test('R22: a 401 names the scheme and says nothing about the stream', async () => {
        const stream = new Stream(server, uniqueName(), TEXT, good);
        await stream.create({}, 'x');
        const there = await request(server.base, 'GET', stream.path);
        const missing = await request(server.base, 'GET', '/v1/stream/missing');
        for (const reply of [there, missing]) {
            assert.equal(reply.status, 401);
            assert.match(reply.headers['www-authenticate'], /^Bearer/);
            assert.match(reply.headers['cache-control'], /no-store/);
            assert.match(reply.headers['content-type'], /^application\/problem\+json/);
            assert.equal(reply.next, undefined);
            assert.equal(reply.headers.etag, undefined);
        }
        assert.equal(there.text, missing.text);
    });

    test('R22: wrong secrets of every kind', async () => {
        const wrong = ['', 'Bearer', 'Bearer ', `Bearer ${SECRET}x`, `Bearer ${SECRET.slice(0, -1)}`,
                       `Bearer x${SECRET}`, `Basic ${SECRET}`, SECRET, `Bearer ${SECRET.toUpperCase()}`,
                       `Bearer ${SECRET} ${SECRET}`, `Bearer "${SECRET}"`, `Bearer${SECRET}`,
                       `Bearer ${'x'.repeat(5000)}`, `Bearer ${SECRET}, Bearer y`];
        for (const value of wrong) {
            const { status } = await request(server.base, 'GET', '/v1/stream/a', { headers: { Authorization: value } });
            assert.equal(status, 401, value);
        }
        const twice = await exchange(server, head('GET', '/v1/stream/a',
            ['Authorization: Bearer wrong', `Authorization: Bearer ${SECRET}`]));
        assert.ok([400, 401].includes(twice.status));
    });

    test('R22: the scheme is case-insensitive', async () => {
        for (const scheme of ['bearer', 'BEARER', 'Bearer']) {
            const { status } = await request(server.base, 'GET', '/v1/stream/none',
                                             { headers: { Authorization: `${scheme} ${SECRET}` } });
            assert.equal(status, 404, scheme);
        }
    });

    test('R22: an unauthorized write changes nothing', async () => {
        const stream = new Stream(server, uniqueName(), TEXT, good);
        await stream.create({}, 'x');
        const stranger = new Stream(server, stream.name);
        assert.equal((await stranger.post('evil')).status, 401);
        assert.equal((await stranger.close()).status, 401);
        assert.equal((await stranger.remove()).status, 401);
        const reply = await stream.get();
        assert.equal(reply.text, 'x');
        assert.equal(reply.closed, false);
    });

    test('R22: a preflight needs no secret', async () => {
        const reply = await request(server.base, 'OPTIONS', '/v1/stream/a', { headers: {
            Origin: 'https://a.example', 'Access-Control-Request-Method': 'GET',
            'Access-Control-Request-Headers': 'authorization',
        } });
        assert.equal(reply.status, 204);
        assert.match(reply.headers['access-control-allow-headers'], /authorization/i);
    });

    test('R22: SSE and long-poll work with it, and reads are private', async () => {
        const stream = new Stream(server, uniqueName(), TEXT, good);
        await stream.create({}, 'x');
        const sse = await Sse.open(stream, '-1', { headers: [`Authorization: Bearer ${SECRET}`] });
        assert.equal(await sse.data(), 'x');
        sse.close();
        assert.equal((await stream.poll('-1')).text, 'x');
        const cache = (await stream.get()).headers['cache-control'];
        assert.doesNotMatch(cache, /public/);
    });
});
