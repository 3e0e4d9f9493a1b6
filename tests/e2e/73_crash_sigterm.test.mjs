// Tier 70: an orderly end (K13): parked appends are answered, readers end
// cleanly, the process goes within its bound, and nothing is lost.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Stream, TEXT, uniqueName } from './lib/http.mjs';
import { Raw, head } from './lib/raw.mjs';
import { serverFor } from './lib/server.mjs';
import { Sse } from './lib/sse.mjs';
import { rounds, sleep } from './lib/wait.mjs';

describe('K13: SIGTERM', { timeout: 300_000 }, () => {
    test('K13: under load with long-polls and SSE open', async (t) => {
        const server = await serverFor(t);
        for (let round = 0; round < rounds(6); round++) {
            const stream = new Stream(server, uniqueName(), TEXT);
            const quiet = new Stream(server, uniqueName(), TEXT);
            await stream.create();
            await quiet.create({}, 'quiet');
            const acked = [];
            const asked = new Set();
            let ending = false;
            const writers = Array.from({ length: 8 }, async (_, writer) => {
                for (let i = 0; ; i++) {
                    const key = `${writer}-${i}`;
                    asked.add(key);
                    let reply;
                    try {
                        reply = await stream.post(`${key};`, {}, { fresh: i % 3 === 0 });
                    } catch (error) {
                        assert.ok(ending, `the connection broke: ${error}`);
                        return;
                    }
                    if (reply.status !== 204) {
                        assert.equal(reply.status, 503, reply.text);
                        assert.ok(ending);
                        return;
                    }
                    acked.push(key);
                }
            });
            const polls = await Promise.all([1, 2, 3].map(async () => {
                const raw = await Raw.open(server);
                raw.send(head('GET', `${quiet.path}?offset=now&live=long-poll`));
                return raw;
            }));
            const sses = await Promise.all([1, 2, 3].map(() => Sse.open(quiet, 'now')));
            for (const sse of sses) {
                await sse.control();
            }
            const idle = await Raw.open(server);
            await sleep(200);
            await quiet.head();
            ending = true;
            const { code } = await server.kill('SIGTERM');
            assert.equal(code, 0, server.tail());
            await Promise.all(writers);
            for (const raw of polls) {
                const reply = await raw.response();
                assert.equal(reply.status, 204);
                raw.destroy();
            }
            for (const sse of sses) {
                await sse.end();
                assert.ok(!sse.text.includes('streamClosed'));
            }
            assert.equal((await idle.endOfConnection()).extra, '');
            await server.start();
            const text = (await stream.readAll()).body.toString();
            const there = text.split(';').slice(0, -1);
            assert.equal(new Set(there).size, there.length);
            for (const key of acked) {
                assert.ok(there.includes(key), `${key} is lost`);
            }
            for (const key of there) {
                assert.ok(asked.has(key));
            }
        }
    });

    test('K13: SIGINT ends it in the same way; a half-sent request does not hold it up', async (t) => {
        const server = await serverFor(t);
        const stream = new Stream(server, 's', TEXT);
        await stream.create({}, 'x');
        const half = await Raw.open(server);
        half.send(head('POST', stream.path, ['Content-Type: text/plain', 'Content-Length: 100']) + 'half');
        const slow = await Raw.open(server);
        slow.send('GET /v1/str');
        await stream.head();
        server.exitWanted = true;
        const { code, signal } = await server.kill('SIGINT');
        assert.deepEqual({ code, signal }, { code: 0, signal: null }, server.tail());
        half.destroy();
        slow.destroy();
        await server.start();
        assert.equal((await stream.get()).text, 'x');
    });

    test('K13: a start after a clean stop and a start after a kill give the same', async (t) => {
        const server = await serverFor(t);
        const stream = new Stream(server, 's', TEXT);
        await stream.create({}, 'a');
        for (let i = 0; i < 4; i++) {
            await server[i % 2 ? 'restart' : 'crashAndRestart']();
            await stream.append(`${i}`);
        }
        assert.equal((await stream.get()).text, 'a0123');
    });
});
