// Tier 50: readers of the C library follow streams whose server is killed again
// and again, over connections that break in the middle of bodies: everything
// comes exactly once and in order.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { JSON_TYPE, OCTETS, Stream, uniqueName } from './lib/http.mjs';
import { Reader, Relay } from './lib/reader.mjs';
import { Server } from './lib/server.mjs';
import { eventually, randomFrom, rounds, sleep } from './lib/wait.mjs';

const seed = Number(process.env.ARBE_SEED ?? Date.now() % 1000000);
console.log(`seed ${seed}`);
const random = randomFrom(seed);

const server = new Server(['--checkpoint-interval', '1s']);
await server.start();
after(() => server.dispose());

// Some connections break after so many bytes, some in the first head, most never.
const relay = await new Relay(server, () => (random.below(3) > 0 ? Infinity : random.between(1, 400_000))).start();
after(() => relay.stop());

function jsonBatch(from) {
    const count = random.between(1, 20);
    const large = random.below(20) === 0;
    const messages = [];
    for (let i = 0; i < count; i++) {
        const pad = 'x"],[{\\'.repeat(random.between(0, 20)) + (large ? '-'.repeat(30_000) : '');
        messages.push(`{"n":${from + i},"pad":${JSON.stringify(pad)}}`);
    }
    return { body: `[${messages.join(',')}]`, units: count };
}

function wordBatch(from) {
    const count = random.below(20) === 0 ? random.between(20_000, 60_000) : random.between(1, 200);
    const body = Buffer.alloc(count * 8);
    for (let i = 0; i < count; i++) {
        body.writeBigUInt64LE(BigInt(from + i), i * 8);
    }
    return { body, units: count };
}

// Appends until told to stop; each append is tried until it is known to be in.
class Writer {
    constructor(type, batch) {
        this.stream = new Stream(server, uniqueName(), type);
        this.batch = batch;
        this.units = 0;
        this.seq = 0;
        this.stopped = false;
    }

    async append() {
        const { body, units } = this.batch(this.units);
        const headers = { 'Producer-Id': 'w', 'Producer-Epoch': '0', 'Producer-Seq': String(this.seq) };
        for (;;) {
            const reply = await this.stream.post(body, headers, { fresh: true }).catch(() => null);
            if (reply !== null && (reply.status === 200 || reply.status === 204)) {
                break;
            }
            assert.ok(reply === null || reply.status >= 500, `append: ${reply?.status} ${reply?.text}`);
            await sleep(5);
        }
        this.seq++;
        this.units += units;
    }

    run() {
        this.done = (async () => {
            while (!this.stopped) {
                await this.append();
                await sleep(random.below(8));
            }
        })();
    }
}

async function close(stream) {
    await eventually('the stream is closed', async () => {
        const reply = await stream.close().catch(() => null);
        return reply !== null && reply.status < 300;
    });
}

describe('a tail survives', { timeout: 400_000 }, () => {
    test('kills of the server and broken connections: every unit once and in order', async () => {
        const writers = [new Writer(JSON_TYPE, jsonBatch), new Writer(OCTETS, wordBatch)];
        await Promise.all(writers.map((writer) => writer.stream.create()));
        const base = `${relay.base}/v1/stream/`;
        const readers = [];
        for (const live of ['long-poll', 'sse', 'auto']) {
            for (const form of live === 'auto' ? ['step'] : ['next']) {
                const common = { live, form, retries: -1, delay: 5, max_delay: 50 };
                readers.push([writers[0], new Reader(base, writers[0].stream.name, { ...common, unit: 'messages', check: 'numbers' })]);
                readers.push([writers[1], new Reader(base, writers[1].stream.name, { ...common, check: 'words' })]);
            }
        }
        writers.forEach((writer) => writer.run());
        const kills = rounds(100);
        for (let i = 0; i < kills; i++) {
            const wanted = writers.map((writer) => writer.seq + random.between(1, 4));
            await eventually('appends go on', () => writers.every((writer, at) => writer.seq >= wanted[at]));
            await server.crashAndRestart();
        }
        writers.forEach((writer) => { writer.stopped = true; });
        await Promise.all(writers.map((writer) => writer.done));
        await Promise.all(writers.map((writer) => close(writer.stream)));
        for (const [writer, reader] of readers) {
            const end = await reader.end(60_000);
            assert.deepEqual([end.end, end.units, end.closed], ['END', writer.units, 1], JSON.stringify(end));
        }
        console.log(`${kills} kills, ${relay.cuts} cuts, ${writers.map((writer) => writer.units).join(' and ')} units`);
        assert.ok(relay.cuts > 0);
    });
});
