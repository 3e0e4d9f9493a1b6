// Tier 60: --max-streams and --max-bytes: 507 above, no trace of what was
// refused, and counts that go back exactly, however a stream ends and however
// the server does.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { JSON_TYPE, OCTETS, Stream, TEXT, assertProblem, producer, request, uniqueName } from './lib/http.mjs';
import { Faults, buildFaultLibrary } from './lib/faults.mjs';
import { testUnless } from './lib/impossible.mjs';
import { serverFor } from './lib/server.mjs';
import { eventually, inParallel, randomFrom, rounds } from './lib/wait.mjs';

const { library, impossible } = buildFaultLibrary();
const faultTest = testUnless(impossible);
const named = (server, name = uniqueName(), type = TEXT) => new Stream(server, name, type);

async function made(server, name, headers, body, type) {
    const stream = named(server, name, type);
    await stream.create(headers, body);
    return stream;
}

// Creates streams until one is refused; gives those that were not.
async function fillStreams(server) {
    const streams = [];
    for (;;) {
        const stream = named(server);
        const reply = await stream.put();
        if (reply.status !== 201) {
            assertProblem(reply, 507);
            assert.match(reply.json().detail, /at most \d+ streams.*delete/);
            assert.equal((await stream.head()).status, 404, 'no trace');
            return streams;
        }
        streams.push(stream);
    }
}

// What the server says that it holds.
async function assertCounted(server, streams, bytes) {
    const { text } = await request(server.base, 'GET', '/metrics');
    assert.equal(Number(/^arbe_streams (\d+)$/m.exec(text)[1]), streams);
    assert.equal(Number(/^arbe_stream_bytes (\d+)$/m.exec(text)[1]), bytes);
}

// How many bytes still fit, found by asking for one at a time.
async function roomLeft(stream, most = 1000) {
    for (let count = 0; count <= most; count++) {
        const reply = await stream.post('x');
        if (reply.status !== 204) {
            assertProblem(reply, 507);
            return count;
        }
    }
    throw new Error('there is no limit');
}

describe('--max-streams', { concurrency: true, timeout: 120_000 }, () => {
    test('one more is refused without a trace; a deletion makes room for one', async (t) => {
        const server = await serverFor(t, ['--max-streams', '3']);
        const streams = await fillStreams(server);
        assert.equal(streams.length, 3);
        assert.equal((await streams[0].put()).status, 200, 'creating it again is no creation');
        assert.equal((await streams[0].put({ 'Stream-Closed': 'true' })).status, 409);
        assert.equal((await streams[0].post('')).status, 400);
        await streams[1].append('appends are not limited');
        assert.equal((await streams[1].remove()).status, 204);
        assert.equal((await streams[1].remove()).status, 404);
        assert.equal((await fillStreams(server)).length, 1);
        // The name of a refused creation is free for who comes when there is room.
        const late = named(server);
        assertProblem(await late.put({}, 'body'), 507);
        assert.equal((await streams[0].remove()).status, 204);
        assert.equal((await late.put({}, 'another body')).status, 201);
        assert.equal((await late.get()).text, 'another body');
    });

    test('a stream that expires makes room, whether somebody asks for it or not', async (t) => {
        const server = await serverFor(t, ['--max-streams', '2']);
        // Five seconds each, so that a slow machine sees it full before, too.
        const [kept, gone] = [await made(server), await made(server, uniqueName(), { 'Stream-TTL': '5' })];
        assert.equal((await fillStreams(server)).length, 0);
        await eventually('room', async () => (await named(server, 'next').put()).status === 201);
        assert.equal((await gone.head()).status, 404);
        assert.equal((await kept.head()).status, 200);
        // In the place of an expired stream there is room for one of its name.
        await kept.remove();
        const short = await made(server, 'short', { 'Stream-Expires-At': new Date(Date.now() + 5_000).toISOString() });
        assert.equal((await fillStreams(server)).length, 0);
        await eventually('its turn', async () => (await short.put({ 'Stream-Closed': 'true' })).status === 201);
        assert.equal((await fillStreams(server)).length, 0);
    });

    faultTest('a log that fails takes back what it did not keep', async (t) => {
        const faults = new Faults(library);
        t.after(() => faults.dispose());
        const server = await serverFor(t, ['--max-streams', '3', '--max-bytes', '100'], { env: faults.env });
        const kept = await made(server, 'kept', {}, 'x'.repeat(10));
        const going = await made(server, 'going', {}, 'y'.repeat(20));
        faults.set('sync wal EIO');
        const replies = await Promise.all([named(server, 'never').put({}, 'z'.repeat(30)), kept.post('more'), going.remove()]);
        assert.ok(replies.every(({ status }) => status === 503), replies.map(({ text }) => text).join());
        await assertCounted(server, 2, 30);
        faults.clear();
        await server.crash();
        await server.start();
        // What of it the disk kept all the same is for recovery to say; the count is of what there is.
        const there = (await Promise.all(['kept', 'going', 'never'].map((name) => named(server, name).get())))
            .filter(({ status }) => status === 200);
        await assertCounted(server, there.length, there.reduce((sum, { body }) => sum + body.length, 0));
    });

    test('a deleted source counts until its last fork goes, and then with all that goes', async (t) => {
        const server = await serverFor(t, ['--max-streams', '4']);
        const source = await made(server, 'source', {}, 'abc');
        const fork = await made(server, 'fork', { 'Stream-Forked-From': source.path });
        const second = await made(server, 'second', { 'Stream-Forked-From': fork.path });
        assert.equal((await source.remove()).status, 204);
        assert.equal((await source.head()).status, 410);
        assert.equal((await fork.remove()).status, 204);
        assert.equal((await fillStreams(server)).length, 1, 'both are kept for the third');
        const refused = named(server, 'refused');
        assertProblem(await refused.put({ 'Stream-Forked-From': second.path }), 507);
        assert.equal((await second.remove()).status, 204);
        assert.equal((await source.head()).status, 404);
        assert.equal((await fillStreams(server)).length, 3);
    });

    test('of many at once exactly as many get in as there is room for, again and again', async (t) => {
        const server = await serverFor(t, ['--max-streams', '20']);
        for (let round = 0; round < rounds(10); round++) {
            const tries = Array.from({ length: 60 }, (_, i) => named(server, `r${round % 3}-${i}`));
            const statuses = await inParallel(30, tries.map((stream) => async () => (await stream.put({}, 'x')).status));
            const inside = tries.filter((_, i) => statuses[i] === 201);
            assert.equal(inside.length, 20, statuses.join());
            assert.ok(statuses.every((status) => status === 201 || status === 507), statuses.join());
            await inParallel(30, inside.map((stream) => () => stream.remove()));
        }
        assert.equal((await fillStreams(server)).length, 20);
    });

    test('the count outlives kills, checkpoints and other limits', async (t) => {
        const flags = ['--checkpoint-interval', '50ms', '--wal-segment', '1MiB'];
        const server = await serverFor(t, [...flags, '--max-streams', '10']);
        const streams = await fillStreams(server);
        for (let round = 0; round < 6; round++) {
            if (round % 2 === 0) {
                await server.crash();
            } else {
                await server.stop();
            }
            await server.start();
            assert.equal((await fillStreams(server)).length, 0);
            await streams.shift().remove();
            await streams.shift().remove();
            streams.push(...await fillStreams(server));
            assert.equal(streams.length, 10);
        }
        await server.crash();
        await server.start([...flags, '--max-streams', '4']);
        assertProblem(await named(server).put(), 507);
        for (const stream of streams.splice(0, 7)) {
            assert.equal((await stream.head()).status, 200);
            assert.equal((await stream.remove()).status, 204);
        }
        assert.equal((await fillStreams(server)).length, 1);
        await server.crash();
        await server.start([...flags, '--max-streams', '0']);
        await made(server);
    });
});

describe('--max-bytes', { concurrency: true, timeout: 120_000 }, () => {
    test('the last byte fits, the next is refused and leaves no trace', async (t) => {
        const server = await serverFor(t, ['--max-bytes', '1000']);
        const stream = await made(server, 's', {}, 'x'.repeat(400));
        await stream.append('y'.repeat(599), producer('p', 0, 0));
        const before = (await stream.head()).next;
        const refused = await stream.post('zz', { ...producer('p', 0, 1), 'Stream-Seq': 'b' });
        assertProblem(refused, 507);
        assert.match(refused.json().detail, /at most 1000 bytes.*room for 1 more/);
        assertProblem(await stream.post('zz', { 'Stream-Closed': 'true' }), 507);
        const head = await stream.head();
        assert.equal(head.next, before);
        assert.equal(head.closed, false);
        assert.equal((await stream.post('y', producer('p', 0, 0))).status, 204, 'a duplicate is told to be one');
        await stream.append('z', { ...producer('p', 0, 1), 'Stream-Seq': 'a' });
        const other = named(server, 'other');
        assertProblem(await other.put({}, '!'), 507);
        assert.equal((await other.head()).status, 404);
        assert.equal((await other.put()).status, 201, 'no bytes need no room');
        assert.equal((await stream.close()).status, 204);
        assert.equal((await stream.remove()).status, 204);
        assert.equal(await roomLeft(other), 1000);
    });

    test('JSON counts as it is stored, and inherited bytes once', async (t) => {
        const server = await serverFor(t, ['--max-bytes', '100']);
        const json = await made(server, 'json', {}, '[ 1, 22 ]', JSON_TYPE); // "1,22," of 100
        const fork = await made(server, 'fork', { 'Stream-Forked-From': json.path }, '[333]', JSON_TYPE); // "333,"
        const probe = await made(server, 'probe', {}, undefined, OCTETS);
        assert.equal(await roomLeft(probe), 100 - 5 - 4);
        await json.remove();
        assertProblem(await probe.post('x'), 507);
        await fork.remove();
        assert.equal(await roomLeft(probe), 5 + 4);
        await probe.remove();
        assert.equal(await roomLeft(await made(server, 'all')), 100);
    });

    test('of many appends at once exactly those are taken for which there is room', async (t) => {
        const server = await serverFor(t, ['--max-bytes', '5000']);
        const streams = await Promise.all(Array.from({ length: 8 }, () => made(server)));
        const sizes = Array.from({ length: 120 }, () => 100);
        const statuses = await inParallel(40, sizes.map((size, i) => async () =>
            (await streams[i % 8].post('x'.repeat(size))).status));
        assert.equal(statuses.filter((status) => status === 204).length, 50, statuses.join());
        const stored = await Promise.all(streams.map(async (stream) => (await stream.get()).body.length));
        assert.equal(stored.reduce((a, b) => a + b), 5000);
        await streams[0].remove();
        assert.equal(await roomLeft(streams[1], 5000), stored[0]);
    });

    // A naive count beside random operations and kills.
    test('the count is exact after any history', async (t) => {
        const limit = 20_000;
        const flags = ['--max-bytes', String(limit), '--checkpoint-interval', '40ms', '--wal-segment', '1MiB'];
        const server = await serverFor(t, flags);
        const random = randomFrom(Number(process.env.SEED ?? 63));
        const streams = new Map(); // name to its own bytes
        const used = () => [...streams.values()].reduce((a, b) => a + b, 0);
        for (let step = 0; step < rounds(400); step++) {
            if (step % 20 === 0) {
                await assertCounted(server, streams.size, used());
            }
            const stream = named(server, `n${random.below(12)}`);
            const size = random.below(1500);
            const known = streams.has(stream.name);
            const fits = used() + size <= limit;
            const body = Buffer.alloc(size, 'x');
            switch (random.below(8)) {
            case 0:
                assert.equal((await stream.remove()).status, known ? 204 : 404);
                streams.delete(stream.name);
                break;
            case 1:
                if (random.below(3) === 0) {
                    await server.crash();
                    await server.start();
                }
                break;
            default:
                if (!known) {
                    assert.equal((await stream.put({}, body)).status, fits ? 201 : 507, `step ${step}`);
                    if (fits) {
                        streams.set(stream.name, size);
                    }
                } else if (size > 0) {
                    assert.equal((await stream.post(body)).status, fits ? 204 : 507, `step ${step}`);
                    streams.set(stream.name, streams.get(stream.name) + (fits ? size : 0));
                }
            }
        }
        for (const name of streams.keys()) {
            assert.equal((await named(server, name).remove()).status, 204);
        }
        await assertCounted(server, 0, 0);
        const all = named(server, 'all');
        assert.equal((await all.put({}, Buffer.alloc(limit))).status, 201);
        assertProblem(await all.post('x'), 507);
    });
});
