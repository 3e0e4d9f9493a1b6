// Tier 51: producers of the C library: every message exactly once and in order,
// whatever becomes of the server, of connections and of other producers.
// ARBE_SEED repeats a run.
import assert from 'node:assert/strict';
import net from 'node:net';
import { after, before, describe, test } from 'node:test';
import { JSON_TYPE, Stream, TEXT, producer, uniqueName } from './lib/http.mjs';
import { lastingPort } from './lib/port.mjs';
import { Producer, stopProducers } from './lib/producer.mjs';
import { Relay } from './lib/reader.mjs';
import { Server, serverFor } from './lib/server.mjs';
import { DEADLINE_MS, randomFrom, rounds, sleep } from './lib/wait.mjs';

const seed = Number(process.env.ARBE_SEED ?? Date.now() % 1000000);
console.log(`seed ${seed}`);
const random = randomFrom(seed);

// Time for all that piled up while the server was killed: each batch may take a sync of a slow disk.
const BACKLOG_MS = 4 * DEADLINE_MS;
after(stopProducers); // those of a test that failed

// The numbers of one producer's messages must be 0, 1, 2 and on.
function assertRun(messages, id, count) {
    const mine = messages.filter((message) => message.p === id);
    mine.forEach((message, at) => assert.equal(message.n, at, `message ${at} of ${id}`));
    assert.equal(mine.length, count, `messages of ${id}`);
}

// Forwards connections, each of which carries its requests late by a time of its own choice.
async function startDelays(server, longest) {
    const relay = net.createServer((client) => {
        const upstream = net.connect(server.port, '127.0.0.1');
        const drop = () => [client, upstream].forEach((socket) => socket.destroy());
        [client, upstream].forEach((socket) => socket.on('error', drop).on('close', drop));
        upstream.pipe(client);
        let sent = Promise.resolve();
        client.on('data', (chunk) => {
            sent = sent.then(() => sleep(random.below(longest))).then(() => !upstream.destroyed && upstream.write(chunk));
        });
    });
    await new Promise((done) => relay.listen(0, '127.0.0.1', done));
    return { base: `http://127.0.0.1:${relay.address().port}`, stop: () => relay.close() };
}

async function open(server, options = {}, { id = 'p', base = server.base, type = JSON_TYPE } = {}) {
    const stream = new Stream(server, uniqueName(), type);
    await stream.create();
    return { stream, line: new Producer(base, stream.name, id, options) };
}

describe('a producer survives', { timeout: 400_000 }, () => {
    test('kills of the server, which refuses connections meanwhile', async (t) => {
        const server = new Server(['--listen', `127.0.0.1:${await lastingPort()}`, '--checkpoint-interval', '1s']);
        await server.start();
        t.after(() => server.dispose());
        const { stream, line } = await open(server, { batch: 20, linger: 1 });
        let count = 0;
        const kills = rounds(50);
        for (let i = 0; i < kills; i++) {
            const more = random.between(100, 1000);
            const appended = line.good(`append ${more}`);
            count += more;
            await sleep(random.below(30));
            await server.crashAndRestart();
            await appended;
        }
        const { stored } = await line.good('flush', BACKLOG_MS);
        assert.equal(stored, count);
        await line.end();
        assertRun((await stream.readMessages()).messages, 'p', count);
        console.log(`${kills} kills, ${count} messages`);
    });

    test('kills of the server and answers that are cut off', async (t) => {
        const server = await serverFor(t, ['--checkpoint-interval', '1s']);
        const relay = await new Relay(server, () => (random.below(3) === 0 ? Infinity : random.between(1, 4000))).start();
        t.after(() => relay.stop());
        const many = [];
        for (let i = 0; i < 3; i++) {
            const batch = random.between(1, 50);
            const { stream, line } = await open(server, { batch, linger: i, flight: 1 + 3 * i }, { base: relay.base });
            many.push({ stream, line, batch, count: 0 });
        }
        const kills = rounds(20);
        for (let i = 0; i < kills; i++) {
            const appends = many.map((one) => {
                const more = random.between(1, 20 * one.batch);
                one.count += more;
                return one.line.good(`append ${more}`);
            });
            await sleep(random.below(50));
            await server.crashAndRestart();
            await Promise.all(appends);
        }
        for (const { stream, line, count } of many) {
            const end = await line.good('close', BACKLOG_MS);
            assert.equal(end.closed, 1);
            assert.equal(end.stored, count + 1);
            await line.end();
            const { messages, closed } = await stream.readMessages();
            assertRun(messages, 'p', count + 1);
            assert.ok(closed);
        }
        console.log(`${kills} kills, ${relay.cuts} cuts`);
        assert.ok(relay.cuts > 0);
    });
});

describe('a producer with several batches in flight', { timeout: 120_000 }, () => {
    test('keeps the order when requests overtake each other', async (t) => {
        const server = await serverFor(t, ['--durability', 'memory']);
        const relay = await startDelays(server, 10);
        t.after(() => relay.stop());
        const { stream, line } = await open(server, { batch: 10, flight: 8 }, { base: relay.base });
        await line.good('append 2000');
        assert.equal((await line.good('close')).stored, 2001);
        assertRun((await stream.readMessages()).messages, 'p', 2001);
        await line.end();
    });
});

describe('several producers', { timeout: 120_000 }, () => {
    const server = new Server([]);
    before(() => server.start());
    after(() => server.dispose());

    test('of one id that claim fence each other', async () => {
        const { stream, line } = await open(server, { claim: 1, batch: 3 });
        const lines = [line];
        let epoch = -1;
        const counts = [];
        for (let i = 0; i < 5; i++) {
            await lines[i].good('append 100');
            const flushed = await lines[i].good('flush');
            assert.ok(flushed.epoch > epoch);
            epoch = flushed.epoch;
            counts.push(100);
            if (i > 0) {
                await lines[i - 1].tell('append 10');
                const fenced = await lines[i - 1].tell('flush');
                assert.equal(fenced.code, 'FENCED');
                assert.equal(fenced.current, epoch);
                assert.equal(lines[i - 1].failure.first_lost, 100);
                await lines[i - 1].end();
            }
            lines.push(new Producer(server.base, stream.name, 'p', { claim: 1 }));
        }
        const { messages } = await stream.readMessages();
        assert.deepEqual(messages.map(({ n }) => n), counts.flatMap((count) => Array.from({ length: count }, (_, n) => n)));
        await Promise.all(lines.slice(4).map((one) => one.end()));
    });

    test('of one id that start at once: one of them stays', async () => {
        const { stream, line } = await open(server, { claim: 1, batch: 5 });
        const lines = [line, ...Array.from({ length: 4 }, () => new Producer(server.base, stream.name, 'p', { claim: 1, batch: 5 }))];
        await Promise.all(lines.map((one) => one.tell('append 500')));
        const ends = await Promise.all(lines.map((one) => one.tell('flush')));
        const { messages } = await stream.readMessages();
        assert.ok(ends.filter(({ code }) => code === 'OK').length >= 1, JSON.stringify(ends));
        ends.forEach(({ code }) => assert.ok(code === 'OK' || code === 'FENCED', code));
        // What each was told to be stored is there: runs from 0, as long as the counts say, or longer
        // where the answer came after the end.
        const runs = [];
        const epochs = ends.map((end) => end.stored).sort((a, b) => a - b);
        for (const { n } of messages) {
            if (n === 0) {
                runs.push(0);
            }
            assert.equal(n, runs.at(-1), 'in order, once');
            runs[runs.length - 1]++;
        }
        const told = epochs.filter((stored) => stored > 0);
        runs.sort((a, b) => a - b).slice(-told.length).forEach((run, at) => assert.ok(run >= told[at], `${runs} ${told}`));
        await Promise.all(lines.map((one) => one.end()));
    });

    test('of one id and one epoch: the second one hears of it', async () => {
        const { stream, line } = await open(server, { epoch: 3 });
        await line.good('append 10');
        await line.good('flush');
        const second = new Producer(server.base, stream.name, 'p', { epoch: 3 });
        await second.good('append 5');
        const hears = await second.tell('flush');
        assert.equal(hears.code, 'SEQUENCE');
        assert.deepEqual(second.failure, { failed: 'SEQUENCE', first_lost: 0, unknown: 1 });
        assert.match(hears.message, /epoch 3 .* begin with a higher one/);
        await line.good('append 10');
        await line.good('flush');
        assertRun((await stream.readMessages()).messages, 'p', 20);
        await Promise.all([line.end(), second.end()]);
    });

    test('of one id and epoch, one after the other, that replay', async () => {
        const { stream, line } = await open(server, { batch: 4 });
        await line.good('append 8');
        await line.good('flush');
        await line.stop();
        const again = new Producer(server.base, stream.name, 'p', { batch: 4, replay: 1 });
        await again.good('append 20');
        assert.equal((await again.good('flush')).stored, 20);
        assertRun((await stream.readMessages()).messages, 'p', 20);
        await again.end();
    });

    test('of different ids do not disturb each other', async () => {
        const { stream, line } = await open(server, { batch: 10 });
        const other = new Producer(server.base, stream.name, 'other', { batch: 7 });
        await Promise.all([line.good('append 3000'), other.good('append 3000')]);
        await Promise.all([line.good('flush'), other.good('flush')]);
        const { messages } = await stream.readMessages();
        assertRun(messages, 'p', 3000);
        assertRun(messages, 'other', 3000);
        await Promise.all([line.end(), other.end()]);
    });
});

describe('a producer', { timeout: 120_000 }, () => {
    test('joins texts without anything between', async (t) => {
        const server = await serverFor(t);
        const { stream, line } = await open(server, { text: 1 }, { type: TEXT });
        await line.good('append 1000');
        assert.equal((await line.good('close')).closed, 1);
        assert.equal((await line.tell('append 1')).code, 'CLOSED');
        assert.equal((await line.good('end')).closed, 1);
        const { body, closed } = await stream.readAll();
        assert.equal(body.toString(), Array.from({ length: 1001 }, (_, n) => `p-${n};`).join(''));
        assert.ok(closed);
        await line.end();
    });

    test('cuts up what the server finds too large', async (t) => {
        const server = await serverFor(t, ['--max-body', '20KiB']);
        const { stream, line } = await open(server, { pad: 1000, linger: 1000 });
        await line.good('append 500');
        assert.equal((await line.good('flush')).stored, 500);
        assertRun((await stream.readMessages()).messages, 'p', 500);
        await line.end();

        const huge = new Producer(server.base, stream.name, 'huge', { pad: 30_000 });
        await huge.good('append 1');
        const refused = await huge.tell('flush');
        assert.deepEqual([refused.code, refused.status], ['REJECTED', 413]);
        assert.deepEqual(huge.failure, { failed: 'REJECTED', first_lost: 0, unknown: 0 });
        await huge.end();
    });

    test('hears when the stream is closed, deleted or not there', async (t) => {
        const server = await serverFor(t);
        const { stream, line } = await open(server);
        await line.good('append 1');
        await line.good('flush');
        await stream.close();
        await line.good('append 1');
        assert.equal((await line.tell('flush')).code, 'CLOSED');
        assert.deepEqual(line.failure, { failed: 'CLOSED', first_lost: 1, unknown: 0 });
        await line.end();

        const missing = new Producer(server.base, 'missing', 'p');
        assert.equal((await missing.tell('append 1')).code, 'NOT_FOUND');
        await new Stream(server, 'missing', JSON_TYPE).create();
        await missing.good('append 2');
        await missing.good('flush');
        await new Stream(server, 'missing', JSON_TYPE).remove();
        await missing.good('append 1');
        assert.equal((await missing.tell('flush')).code, 'NOT_FOUND');
        assert.deepEqual(missing.failure, { failed: 'NOT_FOUND', first_lost: 2, unknown: 0 });
        await missing.end();
    });

    test('hears when the server has forgotten it', async (t) => {
        const server = await serverFor(t);
        const { stream, line } = await open(server);
        await line.good('append 1');
        await line.good('flush');
        await stream.remove();
        await stream.create();
        await line.good('append 1');
        const hears = await line.tell('flush');
        assert.equal(hears.code, 'SEQUENCE');
        assert.match(hears.message, /forgotten/);
        assert.equal((await stream.readMessages()).messages.length, 0);
        await line.end();
    });

    test('claims an epoch above one in force, and with a given one hears of it', async (t) => {
        const server = await serverFor(t);
        const { stream, line } = await open(server, { claim: 1 });
        await stream.append('{"p":"before"}', producer('p', 9_000_000, 0));
        await line.good('append 3');
        assert.ok((await line.good('flush')).epoch > 9_000_000);
        await line.end();
        const stale = new Producer(server.base, stream.name, 'p', { epoch: 5 });
        await stale.good('append 1');
        const fenced = await stale.tell('flush');
        assert.equal(fenced.code, 'FENCED');
        assert.ok(fenced.current > 9_000_000);
        assertRun((await stream.readMessages()).messages, 'p', 3);
        await stale.end();
    });

    test('aborts at once by a signal, though the server is gone, and goes on after a stall otherwise', async (t) => {
        const server = new Server(['--listen', `127.0.0.1:${await lastingPort()}`]);
        await server.start();
        t.after(() => server.dispose());
        const { stream, line } = await open(server);
        await line.good('append 10');
        await line.good('flush');
        const patient = new Producer(server.base, stream.name, 'patient', { retries: 2, delay: 1, queued: 3000 });
        await patient.good('append 1');
        await patient.good('flush');
        await server.crash();
        await line.good('append 10');
        const flushed = line.tell('flush');
        await sleep(20);
        line.abort();
        assert.equal((await flushed).code, 'ABORTED');
        assert.equal(line.failure.failed, 'ABORTED');
        assert.equal(line.failure.first_lost, 10);
        await line.end();

        const stuck = await patient.tell('append 1000'); /* more than may wait */
        assert.equal(stuck.code, 'NETWORK');
        assert.ok(stuck.appended > 1 && stuck.appended < 200);
        assert.equal((await patient.tell('flush')).code, 'NETWORK');
        await server.start();
        await patient.good('append 300');
        assert.equal((await patient.good('flush')).stored, stuck.appended + 300);
        assertRun((await stream.readMessages()).messages, 'patient', stuck.appended + 300);
        assert.equal(patient.failure, null);
        await patient.end();
    });
});
