// Tier 40: readers that do not read (E17, R25, L17): bounded memory, nobody
// else held up, and those who wake up late still get every byte or an end.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, describe, test } from 'node:test';
import { JSON_TYPE, OCTETS, Stream, uniqueName } from './lib/http.mjs';
import { Raw, head } from './lib/raw.mjs';
import { startServer } from './lib/server.mjs';
import { Sse, fromBase64 } from './lib/sse.mjs';
import { SANITIZER, eventually, rounds } from './lib/wait.mjs';

const server = await startServer(['--checkpoint-bytes', '16MiB']);
after(() => server.dispose());

function rssKib() {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))[1]);
}

async function freshStream(type = OCTETS) {
    const stream = new Stream(server, uniqueName(), type);
    await stream.create();
    return stream;
}

// Opens SSE and stops reading right after the head has come.
async function stalled(stream) {
    const raw = await Raw.open(server);
    raw.send(head('GET', `${stream.path}?offset=now&live=sse`));
    await raw.head();
    raw.socket.pause();
    return raw;
}

describe('E17, R25', { timeout: 300_000 }, () => {
    test('E17: stalled SSE readers do not make memory grow with the stream', async () => {
        const stream = await freshStream();
        const raws = await Promise.all(Array.from({ length: rounds(400) }, () => stalled(stream)));
        const block = Buffer.alloc(1 << 20, 7);
        const total = SANITIZER ? 16 : 64;
        await stream.append(block);
        const before = rssKib();
        for (let i = 1; i < total; i++) {
            await stream.append(block);
        }
        const grown = rssKib() - before;
        if (!SANITIZER) {
            // Copies for each reader would be 25 GiB; one for all of them, hot and cached, is well under this.
            assert.ok(grown < 700 * 1024, `RSS grew by ${grown} KiB`);
        }
        assert.equal((await stream.readAll()).body.length, total << 20);
        raws.forEach((raw) => raw.destroy());
    });

    test('R25: one stalled reader holds up none of the others', async () => {
        const stream = await freshStream(JSON_TYPE);
        const bad = await stalled(stream);
        const good = await Promise.all(Array.from({ length: 30 }, () => Sse.open(stream, 'now')));
        for (const sse of good) {
            await sse.control();
        }
        const text = JSON.stringify('x'.repeat(50_000));
        const count = rounds(60);
        for (let i = 0; i < count; i++) {
            await stream.append(text);
        }
        await stream.close();
        for (const sse of good) {
            await sse.end();
            const got = sse.events.filter((event) => event.event === 'data').flatMap((event) => JSON.parse(event.data));
            assert.equal(got.length, count);
        }
        bad.destroy();
    });

    test('E17: a stalled reader that wakes up gets every byte, or an end it can resume from', async () => {
        const stream = await freshStream();
        const sse = await Sse.open(stream, 'now');
        await sse.control();
        sse.raw.socket.pause();
        const blocks = [];
        for (let i = 0; i < 20; i++) {
            blocks.push(Buffer.alloc(700_000, i));
            await stream.append(blocks.at(-1));
        }
        await stream.close();
        sse.raw.socket.resume();
        await sse.done;
        const parts = [];
        let offset = null;
        let closed = false;
        let pending = null;
        for (const event of sse.events) {
            if (event.event === 'data') {
                pending = fromBase64(event.data);
            } else {
                if (pending) {
                    parts.push(pending);
                    pending = null;
                }
                const control = JSON.parse(event.data);
                offset = control.streamNextOffset;
                closed = Boolean(control.streamClosed);
            }
        }
        if (!closed) {
            parts.push((await stream.readAll(offset)).body);
        }
        assert.ok(Buffer.concat(parts).equals(Buffer.concat(blocks)));
    });

    test('E17: readers that vanish are forgotten', async () => {
        const stream = await freshStream();
        const fds = () => Number(/FDSize:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))[1]);
        assert.ok(fds() > 0);
        for (let i = 0; i < 3; i++) {
            const raws = await Promise.all(Array.from({ length: 100 }, () => stalled(stream)));
            raws.forEach((raw) => raw.resetNow());
        }
        await stream.append('x');
        const { readdirSync } = await import('node:fs');
        await eventually('descriptors are closed', () => readdirSync(`/proc/${server.pid}/fd`).length < 100);
    });

    test('L17: many slow readers of big pages; writers and small reads go on', async () => {
        const stream = await freshStream();
        for (let i = 0; i < 8; i++) {
            await stream.append(Buffer.alloc(1 << 20, i));
        }
        const raws = await Promise.all(Array.from({ length: rounds(200) }, async () => {
            const raw = await Raw.open(server);
            raw.socket.pause();
            raw.send(head('GET', `${stream.path}?offset=-1`).repeat(3));
            return raw;
        }));
        const before = rssKib();
        const other = await freshStream();
        for (let i = 0; i < 200; i++) {
            await other.append('x');
        }
        assert.equal((await other.get()).body.length, 200);
        if (!SANITIZER) {
            assert.ok(rssKib() - before < 200 * 1024);
        }
        // One of them wakes up and finds all its three answers whole.
        raws[0].socket.resume();
        for (let i = 0; i < 3; i++) {
            const reply = await raws[0].response();
            assert.equal(reply.body.length, 4 << 20);
            assert.equal(reply.body[0], 0);
            assert.equal(reply.body.at(-1), 3);
        }
        raws.forEach((raw) => raw.destroy());
    });
});
