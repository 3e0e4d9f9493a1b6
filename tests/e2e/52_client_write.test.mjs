// Tier 50: what the C library does when streams are made, written, closed and
// deleted, seen through build/client-adapter.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { after, describe, test } from 'node:test';
import { ADAPTER, Adapter, Rig, Subject, refused, well } from './lib/adapter.mjs';
import { JSON_TYPE, OCTETS, TEXT, uniqueName } from './lib/http.mjs';
import { SANITIZER } from './lib/wait.mjs';

const rig = await new Rig().start();
after(() => rig.stop());

const absent = () => new Subject(rig, uniqueName('absent'));

describe('the adapter', () => {
    test('has every feature', () => {
        assert.equal(rig.hello.clientName, 'libarbe');
        assert.match(rig.hello.clientVersion, /^\d+\.\d+\.\d+/);
        const wanted = ['batching', 'sse', 'longPoll', 'auto', 'streaming', 'dynamicHeaders', 'retryOptions',
                        'batchItems', 'strictZeroValidation'];
        assert.deepEqual(rig.hello.features, Object.fromEntries(wanted.map((name) => [name, true])));
    });

    // What it computes until it answers, for how long it waits for a processor is not its own doing; a sanitizer has
    // its own start.
    test('starts with 50 ms of work', async () => {
        const TICK_MS = 10;
        const most = SANITIZER ? 5000 : 50;
        let best = Infinity;
        for (let i = 0; i < 20 && best >= most; i++) {
            const child = spawn(ADAPTER, { stdio: ['pipe', 'pipe', 'inherit'] });
            child.stdin.write(`${JSON.stringify({ type: 'init', serverUrl: 'http://127.0.0.1:9/' })}\n`);
            await once(child.stdout, 'data');
            const [user, system] = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ').at(-1).split(' ').slice(11, 13);
            best = Math.min(best, (Number(user) + Number(system)) * TICK_MS);
            child.kill();
            await once(child, 'exit');
        }
        assert.ok(best < most, `${best} ms`);
    });

    test('answers what it cannot make sense of, and goes on', async () => {
        const other = new Adapter();
        refused(await other.send('{"type":'), 'PARSE_ERROR');
        refused(await other.send('[]'), 'PARSE_ERROR');
        refused(await other.send({ type: 'head', path: '/x' }), 'INVALID_ARGUMENT');
        refused(await other.send({ type: 'init', serverUrl: 'gopher://127.0.0.1/' }), 'INVALID_ARGUMENT');
        well(await other.send({ type: 'init', serverUrl: `${rig.server.base}/v1/stream/` }));
        refused(await other.send({ type: 'dance' }), 'NOT_SUPPORTED');
        refused(await other.send({ type: 'head' }), 'INVALID_ARGUMENT');
        refused(await other.send({ type: 'validate', target: { target: 'me' } }), 'NOT_SUPPORTED');
        await other.stop();
    });

    for (const op of [
        { op: 'create', contentType: TEXT },
        { op: 'roundtrip', size: 100, live: 'sse', contentType: JSON_TYPE },
        { op: 'roundtrip', size: 100, live: 'long-poll' },
        { op: 'throughput_append', count: 5000, size: 100, concurrency: 10 },
    ]) {
        test(`times ${op.op} ${op.live ?? ''}`, async () => {
            const answer = well(await rig.adapter.send({
                type: 'benchmark', iterationId: 'i7', operation: { path: `/${uniqueName('b')}`, ...op },
            }));
            assert.equal(answer.iterationId, 'i7');
            assert.match(answer.durationNs, /^[1-9]\d*$/);
        });
    }

    test('times reads and appends of a stream that is there', async () => {
        const s = await rig.stream(JSON_TYPE, '[1,2,3]');
        const time = (op) => rig.adapter.send({ type: 'benchmark', iterationId: 'i', operation: { path: `/${s.name}`, ...op } });
        assert.equal(well(await time({ op: 'append', size: 10 })).metrics.bytesTransferred, 10);
        assert.equal(well(await time({ op: 'throughput_read' })).metrics.messagesProcessed, 4);
        assert.ok(well(await time({ op: 'read', offset: s.offsets[0] })).metrics.bytesTransferred >= 10);
    });
});

describe('creating', () => {
    for (const [given, kept] of [
        [undefined, OCTETS], [OCTETS, OCTETS], [TEXT, TEXT], [JSON_TYPE, JSON_TYPE],
        ['text/plain; charset=utf-8', 'text/plain; charset=utf-8'],
        ['application/x-of-its-own', 'application/x-of-its-own'],
    ]) {
        test(`type ${given ?? 'unsaid'}`, async () => {
            const s = new Subject(rig);
            assert.equal(well(await s.create({ contentType: given })).status, 201);
            const head = well(await s.head());
            assert.equal(head.status, 200);
            assert.equal(head.contentType, kept);
        });
    }

    test('once more, in the same way, finds what is there', async () => {
        const s = new Subject(rig);
        assert.equal(well(await s.create({ contentType: TEXT })).status, 201);
        well(await s.append('kept'));
        assert.equal(well(await s.create({ contentType: TEXT })).status, 200);
        await s.reads('kept');
    });

    test('once more, in another way, is a conflict', async () => {
        const s = await rig.stream(TEXT);
        refused(await s.create({ contentType: JSON_TYPE }), 'CONFLICT', 409);
        refused(await s.create({ contentType: TEXT, closed: true }), 'CONFLICT', 409);
    });

    test('with a time to live', async () => {
        const s = new Subject(rig);
        assert.equal(well(await s.create({ ttlSeconds: 3600 })).status, 201);
        const head = well(await s.head());
        assert.ok(head.ttlSeconds > 3500 && head.ttlSeconds <= 3600, JSON.stringify(head));
        assert.ok(head.offset);
    });

    test('with an end in time', async () => {
        const s = new Subject(rig);
        const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
        assert.equal(well(await s.create({ expiresAt })).status, 201);
        assert.equal(Date.parse(well(await s.head()).expiresAt), Date.parse(expiresAt));
        refused(await new Subject(rig).create({ expiresAt, ttlSeconds: 5 }), 'INVALID_ARGUMENT', null);
    });

    test('with its first content', async () => {
        const s = new Subject(rig);
        assert.equal(well(await s.create({ contentType: TEXT, data: 'first' })).status, 201);
        well(await s.append(', second'));
        await s.reads('first, second');
    });

    test('closed and empty', async () => {
        const s = new Subject(rig);
        assert.equal(well(await s.create({ contentType: TEXT, closed: true })).status, 201);
        assert.equal(well(await s.head()).streamClosed, true);
        const answer = await s.reads('');
        assert.deepEqual([answer.chunks, answer.upToDate, answer.streamClosed], [[], true, true]);
    });

    test('closed, with all it will ever hold, in one request', async () => {
        const s = new Subject(rig);
        assert.equal(well(await s.create({ contentType: TEXT, closed: true, data: 'all of it' })).status, 201);
        assert.equal((await s.reads('all of it')).streamClosed, true);
        assert.equal(rig.proxy.seen(s.wire).filter((r) => r.method !== 'GET').length, 1);
    });

    test('closed, with a time to live', async () => {
        const s = new Subject(rig);
        assert.equal(well(await s.create({ contentType: TEXT, closed: true, ttlSeconds: 60 })).status, 201);
        const head = well(await s.head());
        assert.equal(head.streamClosed, true);
        assert.ok(head.ttlSeconds > 0 && head.ttlSeconds <= 60);
    });
});

describe('appending', () => {
    for (const [what, type, ...data] of [
        ['text', TEXT, 'Good day'],
        ['several texts, which join in order', TEXT, 'one ', 'two ', 'three'],
        ['ten short ones', TEXT, ...'0123456789'],
        ['bytes', OCTETS, Buffer.from('bytes and no text')],
        ['all bytes there are', OCTETS, Buffer.from(Array.from({ length: 256 }, (_, i) => i))],
        ['10 KiB', TEXT, 'x'.repeat(10 << 10)],
        ['3 MiB', OCTETS, Buffer.alloc(3 << 20, 'abcdefg')],
        ['many scripts', 'text/plain; charset=utf-8', 'Grüße 世界 🌍 Привет ـ مرحبا'],
    ]) {
        test(what, async () => {
            const s = await rig.stream(type, ...data);
            assert.equal((await s.reads(Buffer.concat(data.map((d) => Buffer.from(d))))).upToDate, true);
        });
    }

    test('gives the offset behind it, which rises', async () => {
        const s = await rig.stream(TEXT, 'a', 'b', 'c');
        assert.deepEqual([...s.offsets].sort(), s.offsets);
        assert.equal(new Set(s.offsets).size, 3);
        assert.equal(await s.tail(), s.offsets[2]);
    });

    test('nothing is refused before anything is sent', async () => {
        const s = await rig.stream(TEXT);
        refused(await s.append(''), 'INVALID_ARGUMENT', null);
        assert.equal(rig.proxy.seen(s.wire, 'POST').length, 0);
    });

    test('takes the type that the stream has, without asking', async () => {
        const s = await rig.stream(JSON_TYPE, '{"a":1}');
        assert.deepEqual(rig.proxy.seen(s.wire).map((r) => r.method), ['PUT', 'POST']);
        assert.equal(rig.proxy.seen(s.wire, 'POST')[0].headers['content-type'], JSON_TYPE);
    });

    test('what is no JSON is refused by the server of a JSON stream', async () => {
        const s = await rig.stream(JSON_TYPE);
        refused(await s.append('no json'), 'UNEXPECTED_STATUS', 400);
    });

    test('of many that are given at once, in their order', async () => {
        const s = await rig.stream(TEXT);
        const answers = await Promise.all(Array.from('abcdefgh', (c) => s.append(c)));
        answers.forEach(well);
        assert.equal((await s.reads('abcdefgh')).upToDate, true);
    });
});

describe('Stream-Seq', () => {
    for (const [what, numbers, wanted] of [
        ['rises', [1, 2], [true, true]],
        ['may leave gaps', [10, 100, 1000], [true, true, true]],
        ['may be as large as numbers get', [Number.MAX_SAFE_INTEGER], [true]],
        ['must not fall', [1, 2, 1], [true, true, false]],
        ['must not stand still', [5, 5], [true, false]],
        ['need not be there', [undefined, undefined], [true, true]],
        ['refuses one of several and takes those after it', [1, 2, 1, 3], [true, true, false, true]],
    ]) {
        test(what, async () => {
            const s = await rig.stream(TEXT);
            const answers = await Promise.all(numbers.map((seq, i) => s.append(String(i), { seq })));
            answers.forEach((answer, i) => {
                if (!wanted[i]) {
                    refused(answer, 'SEQUENCE_CONFLICT', 409);
                }
            });
            await s.reads(numbers.map((_, i) => (wanted[i] ? i : '')).join(''));
        });
    }
});

describe('what is not there', () => {
    for (const [what, run] of [
        ['append', (s) => s.append('x')],
        ['connect', (s) => s.send('connect')],
        ['head', (s) => s.head()],
        ['delete', (s) => s.remove()],
        ['close', (s) => s.close()],
        ['close with a last message', (s) => s.close({ data: 'x', contentType: TEXT })],
        ['produce', (s) => s.produce('x')],
        ['read', (s) => s.read()],
        ['read from now', (s) => s.read({ offset: 'now' })],
        ['long-poll', (s) => s.read({ live: 'long-poll' })],
        ['long-poll from now', (s) => s.read({ live: 'long-poll', offset: 'now' })],
        ['events', (s) => s.read({ live: 'sse' })],
        ['events from now', (s) => s.read({ live: 'sse', offset: 'now' })],
        ['live in any way', (s) => s.read({ live: true })],
    ]) {
        test(`${what}: says so, and of which stream`, async () => {
            const s = absent();
            assert.ok(refused(await run(s), 'NOT_FOUND', 404).message.includes(s.name));
            assert.ok(rig.proxy.seen(s.wire).length <= 2, 'and is not tried again');
        });

        test(`${what}, once it is deleted`, async () => {
            const s = await rig.stream(TEXT, 'gone');
            well(await s.remove());
            refused(await run(s), 'NOT_FOUND');
        });
    }
});

describe('a life', () => {
    test('from create to delete', async () => {
        const s = await rig.stream(TEXT, 'a whole life');
        assert.equal((await s.reads('a whole life')).upToDate, true);
        assert.equal(well(await s.remove()).status, 200);
        refused(await s.read(), 'NOT_FOUND', 404);
        refused(await s.remove(), 'NOT_FOUND', 404);
    });

    test('connecting finds what is there', async () => {
        const s = await rig.stream(TEXT, 'here');
        const answer = well(await s.send('connect'));
        assert.deepEqual([answer.status, answer.offset], [200, s.offsets[0]]);
        await s.reads('here');
    });

    test('HEAD tells type and offset', async () => {
        const s = await rig.stream(JSON_TYPE, '{"k": 1}');
        const head = well(await s.head());
        assert.equal(head.contentType, JSON_TYPE);
        assert.equal(head.offset, s.offsets[0]);
        assert.equal(head.streamClosed, false);
    });

    test('HEAD of an empty stream has an offset', async () => {
        assert.ok(await (await rig.stream(TEXT)).tail());
    });

    test('two streams do not meet', async () => {
        const a = await rig.stream(TEXT, 'of a');
        const b = await rig.stream(TEXT, 'of b');
        await a.reads('of a');
        await b.reads('of b');
        well(await a.remove());
        await b.reads('of b');
    });

    test('a name is free again once its stream is deleted', async () => {
        const s = await rig.stream(TEXT, 'old');
        well(await s.remove());
        assert.equal(well(await s.create({ contentType: TEXT })).status, 201);
        await s.reads('');
    });

    test('a stream that was made anew with another type is written as that', async () => {
        const s = await rig.stream(TEXT, 'old');
        well(await s.remove());
        well(await s.create({ contentType: JSON_TYPE }));
        well(await s.append('[1]'));
        await s.reads('[1]');
    });
});

describe('closing', () => {
    test('an empty stream', async () => {
        const s = await rig.stream(TEXT);
        assert.equal(well(await s.close()).finalOffset, await s.tail());
        assert.equal(well(await s.head()).streamClosed, true);
    });

    for (const type of [TEXT, JSON_TYPE]) {
        test(`a stream with content, ${type}`, async () => {
            const s = await rig.stream(type, '7');
            assert.equal(well(await s.head()).streamClosed, false);
            assert.equal(well(await s.close()).finalOffset, s.offsets[0]);
            assert.equal(well(await s.head()).streamClosed, true);
        });
    }

    test('with a last message, at once', async () => {
        const s = await rig.stream(TEXT, 'begin, ');
        const before = await s.tail();
        const { finalOffset } = well(await s.close({ data: 'end' }));
        assert.ok(finalOffset > before);
        assert.equal(rig.proxy.seen(s.wire, 'POST').length, 2);
        assert.equal((await s.reads('begin, end')).streamClosed, true);
        assert.equal(await s.tail(), finalOffset);
    });

    test('an empty one with its only message', async () => {
        const s = await rig.stream(TEXT);
        well(await s.close({ data: 'only', contentType: TEXT }));
        assert.equal((await s.reads('only')).streamClosed, true);
    });

    test('twice is as once', async () => {
        const s = await rig.stream(TEXT, 'x');
        const first = well(await s.close());
        assert.deepEqual(well(await s.close()), first);
        assert.equal(well(await s.head()).streamClosed, true);
    });

    test('ends appends', async () => {
        const s = await rig.stream(TEXT);
        well(await s.close());
        refused(await s.append('late'), 'STREAM_CLOSED', 409);
        refused(await s.close({ data: 'late', contentType: TEXT }), 'STREAM_CLOSED', 409);
        await s.reads('');
    });

    test('does not keep a stream from being deleted', async () => {
        const s = await rig.stream(TEXT, 'x');
        well(await s.close());
        assert.equal(well(await s.remove()).status, 200);
        refused(await s.head(), 'NOT_FOUND', 404);
        refused(await s.append('x'), 'NOT_FOUND', 404);
    });
});

describe('options that make no sense are refused by name', () => {
    const validate = (target) => rig.adapter.send({ type: 'validate', target });

    for (const [what, members, name] of [
        ['good ones', { maxRetries: 3, initialDelayMs: 100, maxDelayMs: 5000, multiplier: 2 }, null],
        ['no retry', { maxRetries: 0 }, null],
        ['a multiplier of 1', { multiplier: 1 }, null],
        ['fewer than no retries', { maxRetries: -1 }, 'maxRetries'],
        ['no first pause', { initialDelayMs: 0 }, 'initialDelayMs'],
        ['a first pause below nothing', { initialDelayMs: -100 }, 'initialDelayMs'],
        ['a longest pause below the first', { initialDelayMs: 1000, maxDelayMs: 500 }, 'maxDelayMs'],
        ['pauses that shrink', { multiplier: 0.5 }, 'multiplier'],
    ]) {
        test(`retries: ${what}`, async () => {
            const answer = await validate({ target: 'retry-options', ...members });
            if (name === null) {
                well(answer);
            } else {
                assert.ok(refused(answer, 'INVALID_ARGUMENT', null).message.includes(name), answer.message);
            }
        });
    }

    for (const [what, members, name] of [
        ['good ones', { producerId: 'p', epoch: 0, maxBatchBytes: 1 << 20 }, null],
        ['no name', { producerId: '' }, 'producerId'],
        ['an epoch below 0', { epoch: -1 }, 'epoch'],
        ['batches of no bytes', { maxBatchBytes: 0 }, 'maxBatchBytes'],
        ['batches of fewer bytes', { maxBatchBytes: -1 }, 'maxBatchBytes'],
        ['batches of no messages', { maxBatchItems: 0 }, 'maxBatchItems'],
        ['batches of fewer messages', { maxBatchItems: -1 }, 'maxBatchItems'],
    ]) {
        test(`producers: ${what}`, async () => {
            const answer = await validate({ target: 'idempotent-producer', producerId: 'p', ...members });
            if (name === null) {
                well(answer);
            } else {
                assert.ok(refused(answer, 'INVALID_ARGUMENT', null).message.includes(name), answer.message);
            }
        });
    }
});
