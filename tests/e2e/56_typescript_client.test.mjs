// Tier 50: the public TypeScript client, @durable-streams/client, against our
// server: create, append, batch, tails, a server that is killed, its producer.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { JSON_TYPE, OCTETS, TEXT, uniqueName } from './lib/http.mjs';
import { Proxy } from './lib/proxy.mjs';
import { Server } from './lib/server.mjs';
import { eventually, rounds, sleep, withDeadline } from './lib/wait.mjs';

const HOME = new URL('../conformance/node_modules/@durable-streams/client/dist/index.js', import.meta.url);
const { DurableStream, IdempotentProducer, StaleEpochError, stream } = await import(HOME);

const server = await new Server([]).start();
// The server's address changes when it starts anew, the proxy's does not.
const proxy = await new Proxy(server).start();
after(async () => {
    await proxy.stop();
    await server.dispose();
});

const backoffOptions = { initialDelay: 10, maxDelay: 200, multiplier: 1.5, maxRetries: Infinity };
const urlOf = (name) => `${proxy.base}/v1/stream/${name}`;

async function create(contentType, members = {}) {
    const name = uniqueName('ts');
    const handle = await DurableStream.create({ url: urlOf(name), contentType, backoffOptions, ...members });
    return { name, url: urlOf(name), handle, wire: `/v1/stream/${name}` };
}

const numbers = (from, to) => Array.from({ length: to - from }, (_, i) => ({ n: from + i }));
const append = (s, n) => s.handle.append(JSON.stringify({ n }));
const readJson = async (url, offset) => await (await stream({ url, offset, live: false })).json();

// Gathers what comes, from where it was, until the stream ends or breaks.
async function gather(s, live, tail) {
    const res = await stream({
        url: s.url, offset: tail.offset, live, signal: tail.signal, backoffOptions,
        sseResilience: { logWarnings: false, backoffMaxDelay: 50 },
    });
    if (s.handle.contentType === JSON_TYPE) {
        res.subscribeJson((batch) => {
            tail.got.push(...batch.items);
            tail.offset = batch.offset;
        });
    } else {
        res.subscribeBytes((chunk) => {
            tail.got.push(...chunk.data);
            tail.offset = chunk.offset;
        });
    }
    await res.closed;
    return res.streamClosed;
}

// A tail, until it is stopped. Where the client gives up, such as on events that
// broke off too often, its user goes on from the last offset.
function follow(s, live, offset) {
    const stop = new AbortController();
    const tail = { got: [], offset, signal: stop.signal, stop: () => stop.abort() };
    tail.ended = (async () => {
        while (!tail.signal.aborted) {
            try {
                if (await gather(s, live, tail)) {
                    return;
                }
            } catch {
                await sleep(10);
            }
        }
    })();
    return tail;
}

// The producer gives up when a connection breaks: this asks again.
async function patient(...request) {
    for (;;) {
        try {
            const reply = await fetch(...request);
            if (reply.status < 500) {
                return reply;
            }
            await reply.arrayBuffer();
        } catch (error) {
            if (error.name === 'AbortError') {
                throw error;
            }
        }
        await sleep(10);
    }
}

const arrives = (tail, count) => eventually(`${count} arrive`, () => tail.got.length >= count);

describe('the TypeScript client', () => {
    for (const type of [TEXT, JSON_TYPE, OCTETS]) {
        test(`creates, finds and deletes, ${type}`, async () => {
            const s = await create(type);
            const head = await DurableStream.head({ url: s.url });
            assert.deepEqual([head.exists, head.contentType, head.streamClosed], [true, type, false]);
            assert.ok(head.offset);
            assert.equal((await DurableStream.connect({ url: s.url })).contentType, type);
            await DurableStream.create({ url: s.url, contentType: type });
            await DurableStream.delete({ url: s.url });
            assert.equal((await DurableStream.head({ url: s.url })).exists, false);
        });
    }

    test('is told what is wrong', async () => {
        const s = await create(TEXT);
        await assert.rejects(DurableStream.create({ url: s.url, contentType: JSON_TYPE }), { status: 409 });
        await assert.rejects(stream({ url: urlOf('absent-ts'), live: false }), { status: 404 });
        await assert.rejects(stream({ url: s.url, live: false, offset: 'none' }), { status: 400 });
        await s.handle.append('a', { seq: '2' });
        await assert.rejects(s.handle.append('b', { seq: '1' }), { status: 409 });
    });

    test('appends and reads text', async () => {
        const s = await create('text/plain; charset=utf-8');
        await s.handle.append('日本語 ');
        await s.handle.append('🎉');
        const res = await stream({ url: s.url, live: false });
        assert.equal(await res.text(), '日本語 🎉');
        assert.equal(res.upToDate, true);
        assert.equal(res.offset, (await s.handle.head()).offset);
    });

    test('appends and reads bytes', async () => {
        const s = await create(OCTETS);
        const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
        await s.handle.append(bytes);
        assert.deepEqual(await (await stream({ url: s.url, live: false })).body(), bytes);
    });

    test('appends and reads JSON, from any offset', async () => {
        const s = await create(JSON_TYPE);
        await append(s, 0);
        const { offset } = await s.handle.head();
        await append(s, 1);
        await append(s, 2);
        assert.deepEqual(await readJson(s.url), numbers(0, 3));
        assert.deepEqual(await readJson(s.url, offset), numbers(1, 3));
        assert.deepEqual(await readJson(s.url, 'now'), []);
    });

    for (const [type, one, all] of [
        [JSON_TYPE, (n) => JSON.stringify({ n }), async (url) => (await readJson(url)).map(({ n }) => n)],
        [TEXT, (n) => `${n} `, async (url) => (await (await stream({ url, live: false })).text()).trim().split(' ').map(Number)],
    ]) {
        test(`batches what is appended at once, ${type}`, async () => {
            const s = await create(type);
            await Promise.all(Array.from({ length: 500 }, (_, n) => s.handle.append(one(n))));
            assert.deepEqual(await all(s.url), Array.from({ length: 500 }, (_, n) => n));
            assert.ok(proxy.seen(s.wire, 'POST').length < 100, 'fewer requests than appends');
        });
    }

    for (const live of ['long-poll', 'sse', true]) {
        test(`tails JSON, ${live}`, async () => {
            const s = await create(JSON_TYPE);
            await append(s, 0);
            const tail = follow(s, live);
            await proxy.untilLive(s.wire);
            for (let n = 1; n < 50; n++) {
                await append(s, n);
            }
            await arrives(tail, 50);
            tail.stop();
            assert.deepEqual(tail.got, numbers(0, 50));
            assert.equal(tail.offset, (await s.handle.head()).offset);
        });

        test(`tails bytes, ${live}`, async () => {
            const s = await create(OCTETS);
            const tail = follow(s, live);
            await proxy.untilLive(s.wire);
            for (let n = 0; n < 50; n++) {
                await s.handle.append(Uint8Array.from([n, 0, 255, 10]));
            }
            await arrives(tail, 200);
            tail.stop();
            assert.deepEqual(tail.got, Array.from({ length: 50 }, (_, n) => [n, 0, 255, 10]).flat());
        });

        test(`tails to the end of a closed stream, ${live}`, async () => {
            const s = await create(JSON_TYPE);
            const tail = follow(s, live);
            await proxy.untilLive(s.wire);
            await append(s, 0);
            const { finalOffset } = await s.handle.close({ body: JSON.stringify({ n: 1 }) });
            await withDeadline(tail.ended, 'end of the tail');
            await arrives(tail, 2);
            assert.deepEqual(tail.got, numbers(0, 2));
            assert.equal(tail.offset, finalOffset);
            await assert.rejects(append(s, 2), { status: 409 });
        });

        test(`a tail goes on when the server is started anew, ${live}`, async () => {
            const s = await create(JSON_TYPE);
            const tail = follow(s, live);
            let n = 0;
            for (let round = 0; round < rounds(6); round++) {
                for (let i = 0; i < 5; i++) {
                    await append(s, n++);
                }
                await arrives(tail, round % 2 === 0 ? n : 0);
                await (round % 2 === 0 ? server.crashAndRestart() : server.restart());
            }
            await append(s, n++);
            await arrives(tail, n);
            tail.stop();
            assert.deepEqual(tail.got, numbers(0, n));
        });
    }

    test('resumes from its offset after the server was started anew', async () => {
        const s = await create(JSON_TYPE);
        await append(s, 0);
        await append(s, 1);
        const first = await stream({ url: s.url, live: false });
        assert.deepEqual(await first.json(), numbers(0, 2));
        await server.crashAndRestart();
        assert.deepEqual(await readJson(s.url, first.offset), []);
        await append(s, 2);
        await server.restart();
        assert.deepEqual(await readJson(s.url, first.offset), numbers(2, 3));
        const tail = follow(s, 'sse', first.offset);
        await append(s, 3);
        await arrives(tail, 2);
        tail.stop();
        assert.deepEqual(tail.got, numbers(2, 4));
    });
});

describe('its producer', () => {
    const produce = (s, id, options) => {
        const errors = [];
        const producer = new IdempotentProducer(s.handle, id, { lingerMs: 1, onError: (e) => errors.push(e), ...options });
        return { producer, errors };
    };

    test('stores all, in order, in few requests', async () => {
        const s = await create(JSON_TYPE);
        const { producer, errors } = produce(s, 'p', { maxInFlight: 5 });
        for (const message of numbers(0, 5000)) {
            producer.append(JSON.stringify(message));
        }
        await producer.flush();
        assert.deepEqual(errors, []);
        assert.deepEqual(await readJson(s.url), numbers(0, 5000));
        assert.ok(proxy.seen(s.wire, 'POST').length < 500);
        await producer.detach();
    });

    test('stores all once while the server is killed again and again', async () => {
        const s = await create(JSON_TYPE);
        const { producer, errors } = produce(s, 'p', { maxInFlight: 4, maxBatchBytes: 200, fetch: patient });
        const count = 50 * rounds(20);
        for (let n = 0; n < count; n++) {
            producer.append(JSON.stringify({ n }));
            if (n % 50 === 49) {
                await sleep(2);
                await server.crashAndRestart();
            }
        }
        await withDeadline(producer.flush(), 'flush');
        assert.deepEqual(errors, []);
        assert.deepEqual(await readJson(s.url), numbers(0, count));
        await producer.detach();
    });

    test('that gives the same again changes nothing', async () => {
        const s = await create(TEXT);
        for (let i = 0; i < 2; i++) {
            const { producer, errors } = produce(s, 'p', { epoch: 3 });
            producer.append('once');
            await producer.flush();
            assert.deepEqual(errors, []);
            await producer.detach();
        }
        assert.equal(await (await stream({ url: s.url, live: false })).text(), 'once');
    });

    test('is fenced by a newer one, or goes beyond it', async () => {
        const s = await create(TEXT);
        const newer = produce(s, 'p', { epoch: 5 });
        newer.producer.append('newer,');
        await newer.producer.flush();
        const old = produce(s, 'p', { epoch: 2 });
        old.producer.append('old,');
        await assert.rejects(old.producer.flush().then(() => Promise.reject(old.errors[0])),
                             (error) => error instanceof StaleEpochError && error.currentEpoch === 5);
        const claiming = produce(s, 'p', { autoClaim: true });
        claiming.producer.append('claimed');
        await claiming.producer.flush();
        assert.deepEqual(claiming.errors, []);
        assert.equal(await (await stream({ url: s.url, live: false })).text(), 'newer,claimed');
    });

    test('closes with a last message, once', async () => {
        const s = await create(TEXT);
        const { producer } = produce(s, 'p');
        producer.append('a,');
        const { finalOffset } = await producer.close('end');
        assert.equal((await producer.close('end')).finalOffset, finalOffset);
        const head = await s.handle.head();
        assert.deepEqual([head.streamClosed, head.offset], [true, finalOffset]);
        assert.equal(await (await stream({ url: s.url, live: false })).text(), 'a,end');
    });
});
