// Tier 30: idempotent producers (C): exactly once, in order, across retries,
// pipelines, restarts and kills.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { JSON_TYPE, Stream, TEXT, producer, uniqueName } from './lib/http.mjs';
import { Raw, exchange, head } from './lib/raw.mjs';
import { startServer } from './lib/server.mjs';
import { rounds } from './lib/wait.mjs';

const server = await startServer(['--checkpoint-bytes', '4MiB', '--wal-segment', '1MiB']);
after(() => server.dispose());

async function freshStream(type = TEXT, body, headers) {
    const stream = new Stream(server, uniqueName(), type);
    await stream.create(headers, body);
    return stream;
}

function post(stream, body, lines, type = 'text/plain') {
    return exchange(server, head('POST', stream.path,
        [`Content-Type: ${type}`, `Content-Length: ${Buffer.byteLength(body)}`, ...lines]) + body);
}

describe('C1, C2: headers', () => {
    test('C1: only digits up to 2^53-1 are numbers; a refusal touches nothing', async () => {
        const stream = await freshStream();
        const bad = ['1abc', '1e3', '1.5', '0x10', '-1', '-0', '9007199254740992', '00', '01', '+1', '', 'abc', '1 2', '1,2',
                     '99999999999999999999', '18446744073709551616', 'NaN', 'Infinity', '0b1', '1_0', '\uff11', '0.0', '"0"',
                     '9'.repeat(300)];
        for (const value of bad) {
            const bytes = Buffer.from(value).toString('latin1');
            for (const lines of [[`Producer-Epoch: ${bytes}`, 'Producer-Seq: 0'], ['Producer-Epoch: 0', `Producer-Seq: ${bytes}`]]) {
                const reply = await post(stream, 'x', ['Producer-Id: p', ...lines]);
                assert.equal(reply.status, 400, lines.join());
            }
        }
        assert.equal((await stream.get()).text, '');
        assert.equal((await stream.post('a', producer('p', 0, 0))).status, 200, 'untouched');
        assert.equal((await stream.post('b', producer('q', '9007199254740991', 0))).status, 200);
        const gap = await stream.post('c', producer('q', '9007199254740991', '9007199254740991'));
        assert.equal(gap.status, 409);
        assert.equal(gap.headers['producer-received-seq'], '9007199254740991');
        assert.equal((await stream.get()).text, 'ab');
    });

    test('C2: each proper subset and an empty id are 400', async () => {
        const stream = await freshStream();
        const all = ['Producer-Id: p', 'Producer-Epoch: 0', 'Producer-Seq: 0'];
        for (let mask = 1; mask < 7; mask++) {
            const lines = all.filter((_, i) => mask & (1 << i));
            assert.equal((await post(stream, 'x', lines)).status, 400, lines.join());
            const closing = await exchange(server, head('POST', stream.path, [...lines, 'Stream-Closed: true', 'Content-Length: 0']));
            assert.equal(closing.status, 400, 'also for a close');
        }
        for (const id of ['Producer-Id:', 'Producer-Id:   ']) {
            assert.equal((await post(stream, 'x', [id, ...all.slice(1)])).status, 400);
        }
        assert.equal((await post(stream, 'x', [`Producer-Id: ${'p'.repeat(5000)}`, ...all.slice(1)])).status, 400);
        const reply = await stream.get();
        assert.equal(reply.text, '');
        assert.equal((await stream.head()).closed, false);
        assert.equal((await post(stream, 'x', all)).status, 200);
    });

    test('C2: ids are opaque bytes, each its own producer', async () => {
        const stream = await freshStream();
        const ids = ['p', 'P', 'p p', 'p,q', 'p/q', 'a=b', '"p"', '-1', '0', 'é'.normalize('NFC'), 'é'.normalize('NFD'), '漢',
                     'x'.repeat(200), '__proto__', '%70', 'p\u00a0', '🙂'];
        for (const id of ids) {
            const bytes = Buffer.from(id).toString('latin1');
            const lines = [`Producer-Id: ${bytes}`, 'Producer-Epoch: 0', 'Producer-Seq: 0'];
            assert.equal((await post(stream, 'x', lines)).status, 200, id);
            assert.equal((await post(stream, 'x', lines)).status, 204, id);
        }
        assert.equal((await stream.get()).text, 'x'.repeat(ids.length));
    });
});

describe('C: sequences and epochs', () => {
    test('C3: epochs fence, a new one starts at 0', async () => {
        const stream = await freshStream();
        assert.equal((await stream.post('a', producer('p', 3, 0))).status, 200);
        const jump = await stream.post('x', producer('p', 4, 1));
        assert.equal(jump.status, 400);
        assert.equal((await stream.post('b', producer('p', 3, 1))).status, 200, 'the refused epoch left no trace');
        const fresh = await stream.post('c', producer('p', 5, 0));
        assert.equal(fresh.status, 200);
        assert.equal(fresh.headers['producer-epoch'], '5');
        assert.equal(fresh.headers['producer-seq'], '0');
        for (const seq of [0, 1, 2]) {
            const zombie = await stream.post('z', producer('p', 3, seq));
            assert.equal(zombie.status, 403);
            assert.equal(zombie.headers['producer-epoch'], '5');
        }
        assert.equal((await stream.post('d', producer('p', 5, 1))).status, 200);
        assert.equal((await stream.get()).text, 'abcd');
        assert.equal((await stream.post('x', producer('new', 0, 1))).status === 200, false, 'a first seq other than 0');
    });

    test('C4: a gap is refused and does not poison the producer', async () => {
        const stream = await freshStream();
        assert.equal((await stream.post('a', producer('p', 0, 0))).status, 200);
        const gap = await stream.post('c', producer('p', 0, 2));
        assert.equal(gap.status, 409);
        assert.equal(gap.headers['producer-expected-seq'], '1');
        assert.equal(gap.headers['producer-received-seq'], '2');
        assert.equal(gap.closed, false);
        assert.equal((await stream.post('b', producer('p', 0, 1))).status, 200);
        assert.equal((await stream.post('c', producer('p', 0, 2))).status, 200);
        assert.equal((await stream.get()).text, 'abc');
    });

    test('C5: a duplicate answers 204 with the highest accepted seq', async () => {
        const stream = await freshStream();
        let last;
        for (const [seq, body] of ['A', 'B', 'C'].entries()) {
            last = await stream.append(body, producer('p', 0, seq));
            assert.equal(last.headers['producer-seq'], String(seq));
        }
        for (const seq of [1, 0, 2]) {
            const again = await stream.post('Z', producer('p', 0, seq));
            assert.equal(again.status, 204);
            assert.equal(again.headers['producer-seq'], '2');
            assert.equal(again.headers['producer-epoch'], '0');
            assert.equal(again.next, last.next);
        }
        const { next } = await stream.append('D');
        assert.equal((await stream.post('Z', producer('p', 0, 1))).next, next, 'next is the tail');
        assert.equal((await stream.get()).text, 'ABCD');
    });

    test('C7: a duplicate is recognized before Stream-Seq, and a Stream-Seq conflict advances nothing', async () => {
        const stream = await freshStream();
        assert.equal((await stream.post('a', { ...producer('p', 0, 0), 'Stream-Seq': 'a' })).status, 200);
        assert.equal((await stream.post('a', { ...producer('p', 0, 0), 'Stream-Seq': 'a' })).status, 204);
        const conflict = await stream.post('b', { ...producer('p', 0, 1), 'Stream-Seq': 'a' });
        assert.equal(conflict.status, 409);
        assert.match(conflict.json().detail, /sequence/i);
        assert.equal((await stream.post('b', { ...producer('p', 0, 1), 'Stream-Seq': 'b' })).status, 200);
        assert.equal((await stream.post('c', { ...producer('p', 0, 5), 'Stream-Seq': 'z' })).status, 409);
        assert.equal((await stream.post('c', { 'Stream-Seq': 'c' })).status, 204, 'a gap advances no Stream-Seq');
        assert.equal((await stream.get()).text, 'abc');
    });

    test('C8: twenty pipelined requests on one connection are all accepted in order', async () => {
        for (let round = 0; round < rounds(25); round++) {
            const stream = await freshStream();
            const raw = await Raw.open(server);
            let packet = '';
            for (let seq = 0; seq < 20; seq++) {
                packet += head('POST', stream.path, ['Content-Type: text/plain', 'Content-Length: 3', 'Producer-Id: p',
                    'Producer-Epoch: 0', `Producer-Seq: ${seq}`]) + `${String(seq).padStart(2, '0')};`;
            }
            raw.send(packet);
            for (let seq = 0; seq < 20; seq++) {
                const reply = await raw.response();
                assert.equal(reply.status, 200, `seq ${seq}: ${reply.text}`);
                assert.equal(reply.headers['producer-seq'], String(seq));
            }
            raw.destroy();
            assert.equal((await stream.get()).text,
                         Array.from({ length: 20 }, (_, seq) => `${String(seq).padStart(2, '0')};`).join(''));
        }
    });

    test('C8: twenty connections fired together, gaps retried: every seq once, in order', async () => {
        for (let round = 0; round < rounds(10); round++) {
            const stream = await freshStream();
            await Promise.all(Array.from({ length: 20 }, async (_, seq) => {
                for (;;) {
                    const reply = await stream.post(`${seq};`, producer('p', 0, seq));
                    if (reply.status === 200) {
                        return;
                    }
                    assert.equal(reply.status, 409);
                    assert.ok(Number(reply.headers['producer-expected-seq']) < seq);
                }
            }));
            assert.equal((await stream.get()).text, Array.from({ length: 20 }, (_, seq) => `${seq};`).join(''));
        }
    });

    test('C8: the same request on twenty connections at once is stored once', async () => {
        for (let round = 0; round < rounds(20); round++) {
            const stream = await freshStream(JSON_TYPE);
            const replies = await Promise.all(Array.from({ length: 20 }, () => stream.post('[1,2]', producer('p', 0, 0))));
            assert.equal(replies.filter((reply) => reply.status === 200).length, 1);
            assert.equal(replies.filter((reply) => reply.status === 204).length, 19);
            assert.equal((await stream.get()).text, '[1,2]');
        }
    });

    test('C8: a duplicate is not answered before the original is safe', async () => {
        // A 204 promises the data; right after it a kill must not lose them.
        for (let round = 0; round < 5; round++) {
            const stream = await freshStream();
            const one = await Raw.open(server);
            const two = await Raw.open(server);
            const request = head('POST', stream.path, ['Content-Type: text/plain', 'Content-Length: 1', 'Producer-Id: p',
                'Producer-Epoch: 0', 'Producer-Seq: 0']) + 'x';
            one.send(request);
            two.send(request);
            const fast = await Promise.race([one.response(), two.response()]);
            assert.ok([200, 204].includes(fast.status));
            await server.crashAndRestart();
            one.destroy();
            two.destroy();
            assert.equal((await stream.get()).text, 'x');
            assert.equal((await stream.post('x', producer('p', 0, 0))).status, 204);
        }
    });

    test('C11: delete and create reset the state; state is per stream', async () => {
        const one = await freshStream();
        const two = await freshStream();
        for (let seq = 0; seq <= 7; seq++) {
            await one.append('x', producer('p', 0, seq));
        }
        assert.equal((await two.post('y', producer('p', 0, 0))).status, 200);
        assert.equal((await two.post('y', producer('p', 1, 0))).status, 200);
        assert.equal((await one.post('x', producer('p', 0, 8))).status, 200, 'the epoch of another stream does not count');
        await one.remove();
        await one.create();
        assert.equal((await one.post('new', producer('p', 0, 0))).status, 200);
        assert.equal((await one.get()).text, 'new');
    });

    test('C13: a bad body or type of a duplicate is 400 or 409 and never appended', async () => {
        const stream = await freshStream(JSON_TYPE);
        await stream.append('1', producer('p', 0, 0));
        assert.equal((await stream.post('{', producer('p', 0, 0))).status, 400);
        assert.equal((await stream.post('[]', producer('p', 0, 0))).status, 400);
        assert.equal((await stream.post('1', { ...producer('p', 0, 0), 'Content-Type': 'text/plain' })).status, 409);
        assert.equal((await stream.post('2', producer('p', 0, 0))).status, 204);
        assert.equal((await stream.post('{', producer('p', 0, 1))).status, 400);
        assert.equal((await stream.post('2', producer('p', 0, 1))).status, 200, 'a bad body does not use up the seq');
        assert.equal((await stream.get()).text, '[1,2]');
    });

    test('C15: an empty body with producer headers and no close is 400', async () => {
        const stream = await freshStream();
        assert.equal((await stream.post('', producer('p', 0, 0))).status, 400);
        assert.equal((await stream.post('x', producer('p', 0, 0))).status, 200);
    });

    test('C15: errors before the producer check leave the producer alone', async () => {
        const own = await startServer(['--max-body', '1KiB']);
        try {
            const stream = new Stream(own, uniqueName());
            await stream.create();
            const big = 'x'.repeat(1025);
            assert.equal((await stream.post(big, { ...producer('p', 0, 0), 'Stream-Seq': 'z' })).status, 413);
            const chunked = await exchange(own, head('POST', stream.path, ['Content-Type: text/plain', 'Producer-Id: p',
                'Producer-Epoch: 0', 'Producer-Seq: 0', 'Stream-Seq: z', 'Transfer-Encoding: chunked']) +
                `400\r\n${'x'.repeat(1024)}\r\n1\r\nx\r\n0\r\n\r\n`);
            assert.equal(chunked.status, 413, 'L4');
            assert.equal((await stream.post('x', { ...producer('p', 0, 0), 'Stream-Seq': 'a' })).status, 200);
            assert.equal((await stream.get()).text, 'x');
        } finally {
            await own.dispose();
        }
    });
});

describe('C10: producers over restarts', () => {
    test('C10: kill right after the answer, replay the last, go on with the next', async () => {
        const stream = await freshStream();
        const json = await freshStream(JSON_TYPE);
        for (let seq = 0; seq < 8; seq++) {
            for (const [target, body] of [[stream, `${seq};`], [json, `[${seq},"x"]`]]) {
                const reply = await target.post(body, producer('p', 0, seq));
                assert.equal(reply.status, 200, `seq ${seq}: ${reply.text}`);
            }
            await server.crashAndRestart();
            for (const [target, body] of [[stream, `${seq};`], [json, `[${seq},"x"]`]]) {
                const replay = await target.post(body, producer('p', 0, seq));
                assert.equal(replay.status, 204, `replay of ${seq}`);
                assert.equal(replay.headers['producer-seq'], String(seq));
            }
        }
        assert.equal((await stream.get()).text, '0;1;2;3;4;5;6;7;');
        assert.deepEqual((await json.get()).json(), Array.from({ length: 8 }, (_, seq) => [seq, 'x']).flat());
    });

    test('C10: the state also survives clean restarts, checkpoints and eviction', async () => {
        const own = await startServer(['--checkpoint-interval', '1s', '--checkpoint-bytes', '1MiB', '--wal-segment', '1MiB']);
        try {
            const streams = await Promise.all(Array.from({ length: 20 }, async (_, i) => {
                const stream = new Stream(own, `s${i}`);
                await stream.create();
                await stream.append('a', { ...producer('p', 2, 0), 'Stream-Seq': 'm' });
                return stream;
            }));
            const filler = new Stream(own, 'filler');
            await filler.create();
            for (let i = 0; i < 6; i++) {
                await filler.append('f'.repeat(600_000));
            }
            for (const again of ['restart', 'crashAndRestart', 'restart']) {
                await own[again]();
                for (const stream of streams) {
                    assert.equal((await stream.post('a', producer('p', 2, 0))).status, 204);
                    assert.equal((await stream.post('a', producer('p', 1, 0))).status, 403);
                    assert.equal((await stream.post('a', { 'Stream-Seq': 'm' })).status, 409);
                }
            }
            for (const stream of streams) {
                assert.equal((await stream.post('b', { ...producer('p', 2, 1), 'Stream-Seq': 'n' })).status, 200);
                assert.equal((await stream.get()).text, 'ab');
            }
        } finally {
            await own.dispose();
        }
    });
});

describe('C14: many producers of one stream', () => {
    test('C14: the cap is 65,536, one more is 429, the known ones go on', { timeout: 240_000 }, async () => {
        const stream = await freshStream();
        const lanes = 256;
        const raws = await Promise.all(Array.from({ length: lanes }, () => Raw.open(server)));
        const total = 65_536;
        const one = (id, seq = 0) => head('POST', stream.path, ['Content-Type: text/plain', 'Content-Length: 1',
            `Producer-Id: ${id}`, 'Producer-Epoch: 0', `Producer-Seq: ${seq}`]) + 'x';
        await Promise.all(raws.map(async (raw, lane) => {
            for (let at = lane; at < total; at += lanes * 64) {
                const ids = [];
                for (let i = 0; i < 64 && at + lanes * i < total; i++) {
                    ids.push(at + lanes * i);
                }
                raw.send(ids.map((id) => one(`producer-${id}`)).join(''));
                for (const id of ids) {
                    const reply = await raw.response();
                    assert.equal(reply.status, 200, `${id}: ${reply.text}`);
                }
            }
        }));
        const over = await raws[0].send(one('one-too-many')).response();
        assert.equal(over.status, 429, over.text);
        assert.equal((await raws[0].send(one('producer-7')).response()).status, 204);
        assert.equal((await raws[0].send(one('producer-7', 1)).response()).status, 200);
        raws.forEach((raw) => raw.destroy());
        await server.crashAndRestart();
        assert.equal((await stream.post('x', producer('producer-65535', 0, 0))).status, 204);
        assert.equal((await stream.post('x', producer('producer-7', 0, 1))).status, 204);
        assert.equal((await stream.post('x', producer('yet-another', 0, 0))).status, 429);
        assert.equal((await stream.get()).body.length, total + 1);
    });
});
