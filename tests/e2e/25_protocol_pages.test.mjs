// Tier 20: reads that are cut into pages (R11, R7), with a small page so that
// every stream is longer than one.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, describe, test } from 'node:test';
import { JSON_TYPE, OCTETS, Stream, TEXT, uniqueName } from './lib/http.mjs';
import { Follower } from './lib/follow.mjs';
import { Raw, head } from './lib/raw.mjs';
import { startServer } from './lib/server.mjs';
import { Sse, fromBase64 } from './lib/sse.mjs';
import { SANITIZER, inParallel, rounds } from './lib/wait.mjs';

const PAGE = 4096;
const server = await startServer(['--read-page', '4096', '--checkpoint-bytes', '4MiB', '--wal-segment', '1MiB']);
after(() => server.dispose());

async function freshStream(type = TEXT, body, headers) {
    const stream = new Stream(server, uniqueName(), type);
    await stream.create(headers, body);
    return stream;
}

function pattern(size, seed = 1) {
    const bytes = Buffer.alloc(size);
    for (let i = 0; i < size; i++) {
        bytes[i] = (i * 131 + (i >> 8) * 7 + seed) & 0xff;
    }
    return bytes;
}

describe('R11: pages', () => {
    test('R11: bytes come in pages that say what they are', async () => {
        const stream = await freshStream(OCTETS);
        const bytes = pattern(50_001);
        await stream.append(bytes);
        const tail = await stream.append('end', { 'Stream-Closed': 'true' });
        let offset = '-1';
        const parts = [];
        for (;;) {
            const reply = await stream.from(offset);
            assert.equal(reply.status, 200);
            assert.ok(reply.body.length <= PAGE);
            parts.push(reply.body);
            const atEnd = reply.next === tail.next;
            assert.equal(reply.upToDate, atEnd, 'up-to-date only at the end');
            assert.equal(reply.closed, atEnd, 'closed only at the end');
            assert.ok(reply.headers['cache-control']);
            const same = await stream.from(offset, { 'If-None-Match': reply.headers.etag });
            assert.equal(same.status, 304);
            assert.equal(same.headers['stream-next-offset'], reply.next);
            if (atEnd) {
                break;
            }
            assert.ok(reply.next > offset || offset === '-1');
            offset = reply.next;
        }
        assert.ok(Buffer.concat(parts).equals(Buffer.concat([bytes, Buffer.from('end')])));
        assert.ok(parts.length >= 13);
    });

    test('R11: a full page of history may be cached and its ETag outlives appends and the close', async () => {
        const stream = await freshStream(OCTETS, pattern(3 * PAGE));
        const first = await stream.get();
        assert.equal(first.upToDate, false);
        assert.match(first.headers['cache-control'], /max-age=60/);
        assert.match(first.headers['cache-control'], /public/);
        await stream.append('more');
        await stream.close();
        const again = await stream.get('offset=-1', { 'If-None-Match': first.headers.etag });
        assert.equal(again.status, 304);
    });

    test('R11: JSON is cut only between messages, a long one comes whole', async () => {
        const stream = await freshStream(JSON_TYPE);
        const values = Array.from({ length: 400 }, (_, i) => ({ i, s: 's'.repeat((i * 7) % 90) }));
        for (let i = 0; i < values.length; i += 20) {
            await stream.append(JSON.stringify(values.slice(i, i + 20)));
        }
        const long = 'L'.repeat(3 * PAGE);
        await stream.append(JSON.stringify([long, 'between', long]));
        await stream.append('"last"');
        const { messages, pages } = { ...(await stream.readMessages()), ...(await stream.readAll()) };
        assert.deepEqual(messages, [...values, long, 'between', long, 'last']);
        assert.ok(pages.every((page) => page.length <= PAGE + 2 || JSON.parse(page.toString()).length === 1));
        assert.ok(pages.every((page) => JSON.parse(page.toString()).length >= 1));
    });

    test('R11: every page boundary of a JSON stream is a good offset in every mode', async () => {
        const stream = await freshStream(JSON_TYPE);
        await stream.append(JSON.stringify(Array.from({ length: 3000 }, (_, i) => i)));
        const page = await stream.get();
        assert.equal(page.upToDate, false);
        const rest = await stream.readMessages(page.next);
        const first = page.json();
        assert.equal(rest.messages[0], first.at(-1) + 1);
        const sse = await Sse.open(stream, page.next);
        const { parts } = await sse.caughtUp();
        assert.deepEqual(parts.flatMap((part) => JSON.parse(part)), rest.messages);
        sse.close();
        const poll = await stream.poll(page.next);
        assert.equal(poll.json()[0], rest.messages[0]);
        assert.ok(poll.body.length <= PAGE + 2);
    });

    test('R11: long-poll is paged too and follows to the end', async () => {
        const stream = await freshStream(OCTETS);
        const bytes = pattern(100_000, 3);
        await stream.append(bytes);
        const first = await stream.poll('-1');
        assert.ok(first.body.length <= PAGE);
        assert.equal(first.upToDate, false);
        assert.ok(first.headers['stream-cursor']);
        await stream.close();
        const follower = new Follower(stream);
        assert.ok((await follower.untilClosed()).equals(bytes));
    });

    test('R11: SSE of a long history: whole, in order, up-to-date only at the end', async () => {
        for (const type of [TEXT, OCTETS]) {
            const stream = await freshStream(type);
            const text = 'line of text\n'.repeat(3000);
            await stream.append(text);
            await stream.close();
            const sse = await Sse.open(stream, '-1');
            await sse.end();
            const data = sse.events.filter((event) => event.event === 'data');
            const joined = type === TEXT ? data.map((event) => event.data).join('')
                : Buffer.concat(data.map((event) => fromBase64(event.data))).toString();
            assert.equal(joined, text);
            for (const [i, event] of sse.events.entries()) {
                assert.equal(event.event, i % 2 ? 'control' : 'data', 'a control after every data event');
                if (event.event === 'control') {
                    const control = JSON.parse(event.data);
                    assert.equal(Boolean(control.streamClosed), i === sse.events.length - 1);
                }
            }
        }
    });

    test('R11: text is cut anywhere but UTF-8 stays readable over SSE', async () => {
        const stream = await freshStream('text/plain; charset=utf-8');
        const text = 'añ漢😀'.repeat(4000);
        await stream.append(text);
        await stream.close();
        const sse = await Sse.open(stream, '-1');
        await sse.end();
        assert.equal(sse.events.filter((event) => event.event === 'data').map((event) => event.data).join(''), text);
    });

    test('R7: 64 parallel reads at different offsets of one big stream', async () => {
        const stream = await freshStream(OCTETS);
        const block = 1000;
        const nexts = ['-1'];
        const bytes = pattern(200 * block, 9);
        for (let i = 0; i < 200; i++) {
            nexts.push((await stream.append(bytes.subarray(i * block, (i + 1) * block))).next);
        }
        await server.restart();   // from files, not from memory
        const check = async (i) => {
            const reply = await stream.from(nexts[i]);
            const wanted = bytes.subarray(i * block, i * block + PAGE);
            assert.ok(reply.body.equals(wanted), `from block ${i}`);
        };
        await inParallel(64, Array.from({ length: rounds(600) }, (_, i) => () => check((i * 53) % 200)));
    });

    test('R1: pages read while the stream grows join without gap or overlap', async () => {
        const stream = await freshStream(OCTETS);
        const bytes = pattern(300_000, 5);
        const writing = (async () => {
            for (let at = 0; at < bytes.length; at += 7_001) {
                await stream.append(bytes.subarray(at, at + 7_001));
            }
            await stream.close();
        })();
        const readers = Array.from({ length: 3 }, () => new Follower(stream).untilClosed());
        const catchUp = (async () => {
            const parts = [];
            let offset = '-1';
            for (;;) {
                const reply = await stream.from(offset);
                parts.push(reply.body);
                offset = reply.next;
                if (reply.closed) {
                    return Buffer.concat(parts);
                }
            }
        })();
        await writing;
        for (const body of [...await Promise.all(readers), await catchUp]) {
            assert.ok(body.equals(bytes));
        }
    });
});

describe('J10: pages over the stitch of a fork', () => {
    test('J10: a chain three deep reads source first, capped pages tell the truth', async () => {
        const parts = [pattern(3 * PAGE + 100, 1), pattern(3 * PAGE + 200, 2), pattern(3 * PAGE + 300, 3)];
        const first = await freshStream(OCTETS, parts[0]);
        const second = new Stream(server, uniqueName(), OCTETS);
        await second.create({ 'Stream-Forked-From': first.path });
        await second.append(parts[1]);
        const third = new Stream(server, uniqueName(), OCTETS);
        await third.create({ 'Stream-Forked-From': second.path });
        await third.append(parts[2]);
        await first.append('not inherited');
        const { body, pages } = await third.readAll();
        assert.ok(body.equals(Buffer.concat(parts)));
        assert.ok(pages.length >= 10);
        for (const again of ['restart', 'crashAndRestart']) {
            await server[again]();
            assert.ok((await third.readAll()).body.equals(Buffer.concat(parts)), again);
        }
        const json = new Stream(server, uniqueName(), JSON_TYPE);
        await json.create({}, JSON.stringify(Array.from({ length: 2000 }, (_, i) => i)));
        const fork = new Stream(server, uniqueName(), JSON_TYPE);
        await fork.create({ 'Stream-Forked-From': json.path });
        await fork.append(JSON.stringify(Array.from({ length: 2000 }, (_, i) => 2000 + i)));
        assert.deepEqual((await fork.readMessages()).messages, Array.from({ length: 4000 }, (_, i) => i));
    });
});

describe('R11: memory', () => {
    test('R11, L17: sixteen slow readers of a big stream leave the memory flat', { timeout: 240_000 }, async () => {
        const own = await startServer([]);
        try {
            const total = SANITIZER ? 32 << 20 : 128 << 20;
            const stream = new Stream(own, uniqueName(), OCTETS);
            await stream.create();
            const block = pattern(4 << 20, 4);
            for (let at = 0; at < total; at += block.length) {
                await stream.append(block);
            }
            await own.restart();
            const rss = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${own.pid}/status`, 'utf8'))[1]);
            await stream.get();
            const before = rss();
            // Each asks for everything, many pages on one connection, and reads nothing.
            const raws = await Promise.all(Array.from({ length: 16 }, () => Raw.open(own)));
            for (const raw of raws) {
                raw.socket.pause();
                for (let i = 0; i < 10; i++) {
                    raw.send(head('GET', `${stream.path}?offset=-1`));
                }
            }
            // Others are served meanwhile, and their pages are right.
            const { body } = await stream.readAll();
            assert.equal(body.length, total);
            const grown = rss() - before;
            if (!SANITIZER) {
                assert.ok(grown < 160 * 1024, `RSS grew by ${grown} KiB`);
            }
            raws.forEach((raw) => raw.destroy());
            assert.equal((await stream.head()).status, 200);
        } finally {
            await own.dispose();
        }
    });
});
