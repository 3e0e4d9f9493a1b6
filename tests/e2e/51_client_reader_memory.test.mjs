// Tier 50: what a reader of the C library holds does not grow with what it
// reads, nor with what waits for it while it is not asked.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { JSON_TYPE, OCTETS, Stream, uniqueName } from './lib/http.mjs';
import { Reader } from './lib/reader.mjs';
import { startServer } from './lib/server.mjs';
import { SANITIZER, eventually } from './lib/wait.mjs';

const MIB = 1 << 20;
const TOTAL = SANITIZER ? 64 * MIB : 1024 * MIB;
const BLOCK = 4 * MIB;
const HWM_KIB_MAX = 16 * 1024;

const server = await startServer(['--durability', 'memory', '--checkpoint-bytes', '64MiB']);
after(() => server.dispose());
const base = `${server.base}/v1/stream/`;

function words(from, bytes) {
    const block = Buffer.alloc(bytes);
    for (let i = 0; i < bytes / 8; i++) {
        block.writeUInt32LE(from + i, i * 8);
    }
    return block;
}

// Messages of about a kilobyte, numbered.
function numbers(from, bytes) {
    const pad = 'x'.repeat(1000);
    const messages = [];
    for (let i = 0; i < bytes / 1024; i++) {
        messages.push(`{"n":${from + i},"pad":"${pad}"}`);
    }
    return { body: `[${messages.join(',')}]`, count: messages.length };
}

// A disk that is slower than the writer makes the server refuse for a while.
async function append(stream, body) {
    await eventually('room for a block', async () => {
        const { status, text } = await stream.post(body);
        assert.ok(status === 204 || (status === 503 && /too much is waiting/.test(text)), `${status} ${text}`);
        return status === 204;
    });
}

function checkMemory(end) {
    console.log(`${end.units} units, ${end.hwm_kib} KiB at most`);
    if (!SANITIZER) {
        assert.ok(end.hwm_kib > 0 && end.hwm_kib < HWM_KIB_MAX, `${end.hwm_kib} KiB were resident`);
    }
}

describe('memory', { timeout: 400_000 }, () => {
    test('tails of 1 GiB of bytes, while it is written', async () => {
        const stream = new Stream(server, uniqueName(), OCTETS);
        await stream.create();
        const readers = ['long-poll', 'sse'].map((live) =>
            new Reader(base, stream.name, { live, check: 'words', until: TOTAL / 8 }));
        for (let at = 0; at < TOTAL; at += BLOCK) {
            await append(stream, words(at / 8, BLOCK));
        }
        for (const reader of readers) {
            const end = await reader.end(300_000);
            assert.deepEqual([end.end, end.units], ['END', TOTAL / 8], JSON.stringify(end));
            checkMemory(end);
        }
        await stream.remove();
    });

    test('1 GiB of messages, page by page and by events', async () => {
        const stream = new Stream(server, uniqueName(), JSON_TYPE);
        await stream.create();
        const tail = new Reader(base, stream.name, { live: 'sse', unit: 'messages', check: 'numbers', offset: '-1' });
        let count = 0;
        for (let at = 0; at < TOTAL; at += BLOCK) {
            const batch = numbers(count, BLOCK);
            await append(stream, batch.body);
            count += batch.count;
        }
        await stream.close();
        const pages = new Reader(base, stream.name, { unit: 'messages', check: 'numbers' });
        for (const reader of [tail, pages]) {
            const end = await reader.end(300_000);
            assert.deepEqual([end.end, end.units], ['END', count], JSON.stringify(end));
            checkMemory(end);
        }
        await stream.remove();
    });

    test('a reader that is not asked holds little and makes the server wait', async () => {
        for (const live of ['catch-up', 'sse']) {
            const stream = new Stream(server, uniqueName(), OCTETS);
            await stream.create();
            for (let at = 0; at < 16 * BLOCK; at += BLOCK) {
                await append(stream, words(at / 8, BLOCK));
            }
            const reader = new Reader(base, stream.name, { live, ask: 1 });
            for (let asked = 1; reader.data.length < 4 * MIB; asked++) {
                reader.ask();
                await reader.until('a piece', (r) => r.pieces.length === asked);
            }
            for (const [at, word] of [[0, 0], [4 * MIB - 8, MIB / 2 - 1]]) {
                assert.equal(reader.data.readUInt32LE(at), word);
            }
            reader.child.stdin.end();
            checkMemory(await reader.end());
            await stream.remove();
        }
    });
});
