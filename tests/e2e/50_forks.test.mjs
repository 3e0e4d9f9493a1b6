// Tier 50: forks (J): inheritance, sub-offsets, soft deletion and its clean-up.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { JSON_TYPE, OCTETS, Stream, TEXT, producer, uniqueName } from './lib/http.mjs';
import { startServer } from './lib/server.mjs';
import { Sse } from './lib/sse.mjs';
import { eventually, inParallel, randomFrom, rounds } from './lib/wait.mjs';

const server = await startServer(['--checkpoint-bytes', '4MiB', '--wal-segment', '1MiB']);
after(() => server.dispose());

async function freshStream(type = TEXT, body, headers) {
    const stream = new Stream(server, uniqueName('src'), type);
    await stream.create(headers, body);
    return stream;
}

function forkHeaders(source, offset, sub) {
    return {
        'Stream-Forked-From': source.path,
        ...(offset === undefined ? {} : { 'Stream-Fork-Offset': offset }),
        ...(sub === undefined ? {} : { 'Stream-Fork-Sub-Offset': String(sub) }),
    };
}

// PUT without a content type, as forks usually are made.
function putFork(stream, headers, body) {
    return stream.send('PUT', { headers, body });
}

async function fork(source, offset, sub, headers = {}) {
    const stream = new Stream(server, uniqueName('fork'), source.type);
    const reply = await putFork(stream, { ...forkHeaders(source, offset, sub), ...headers });
    assert.equal(reply.status, 201, reply.text);
    return stream;
}

describe('J: creating forks', () => {
    test('J1: without a content type it is the source’s', async () => {
        for (const type of [TEXT, JSON_TYPE, 'image/png', 'text/plain; charset=utf-8']) {
            const source = await freshStream(type, '[1]');
            const made = await fork(source);
            assert.equal((await made.head()).headers['content-type'], type);
            assert.equal((await made.get()).text, '[1]');
        }
        const source = await freshStream(TEXT, 'x');
        const other = new Stream(server, uniqueName());
        assert.equal((await other.put({ ...forkHeaders(source), 'Content-Type': 'text/html' })).status, 409);
        assert.equal((await other.put({ ...forkHeaders(source), 'Content-Type': 'TEXT/plain; a=b' })).status, 201);
    });

    test('J2: a failed fork leaves no reference to its source', async () => {
        const source = new Stream(server, uniqueName('src'));
        const taken = await freshStream(TEXT, 'other');
        const far = (await (await freshStream(TEXT, 'x'.repeat(500))).head()).next;
        const failures = [
            [{ 'Content-Type': 'text/html' }, 409], [{ 'Stream-Fork-Offset': far }, 400], [{ 'Stream-Fork-Offset': 'bad' }, 400],
            [{ 'Stream-TTL': '01' }, 400], [{ 'Stream-TTL': '5', 'Stream-Expires-At': '2099-01-01T00:00:00Z' }, 400],
            [{ 'Stream-Expires-At': 'x' }, 400], [{ 'Stream-Fork-Sub-Offset': '-1' }, 400],
            [{ 'Stream-Fork-Offset': '-1', 'Stream-Fork-Sub-Offset': '99' }, 400], [{ 'Stream-Fork-Sub-Offset': '1' }, 400],
        ];
        for (const [headers, status] of failures) {
            await source.create({}, 'abc');
            const target = new Stream(server, uniqueName());
            const reply = await putFork(target, { ...forkHeaders(source), ...headers });
            assert.equal(reply.status, status, JSON.stringify(headers));
            assert.equal((await target.head()).status, 404, 'nothing was made');
            assert.equal((await putFork(taken, { ...forkHeaders(source), ...headers })).status >= 400, true);
            assert.equal((await taken.put(forkHeaders(source))).status, 409, 'the target is in use');
            assert.equal((await source.remove()).status, 204);
            assert.equal((await source.get()).status, 404, 'gone, not 410');
        }
        await source.create({}, 'new');
        assert.equal((await source.get()).text, 'new');
        assert.equal((await taken.get()).text, 'other');
    });

    test('J3: the same fork again is 200, with another place or source 409', async () => {
        const source = await freshStream(TEXT, 'abc');
        const other = await freshStream(TEXT, 'abc');
        const { next } = await source.head();
        const made = await fork(source, next);
        assert.equal((await putFork(made, forkHeaders(source, next))).status, 200);
        assert.equal((await putFork(made, forkHeaders(source, next, 0))).status, 200, 'sub-offset 0 is as absent');
        assert.equal((await putFork(made, forkHeaders(source, '-1'))).status, 409);
        assert.equal((await putFork(made, forkHeaders(other, next))).status, 409);
        assert.equal((await made.put()).status, 409, 'a plain PUT');
        const plain = await freshStream(TEXT, 'abc');
        assert.equal((await putFork(plain, forkHeaders(source, next))).status, 409);
        await made.append('own');
        assert.equal((await putFork(made, forkHeaders(source, next))).status, 200, 'also after appends');
        const counted = await source.remove();
        assert.equal(counted.status, 204);
        await made.remove();
        await eventually('one reference, not three', async () => (await source.get()).status === 404);
    });

    test('J7: at the start, at the tail, at an append boundary, and bad places', async () => {
        const source = await freshStream(TEXT);
        const empty = (await source.head()).next;
        const one = (await source.append('one')).next;
        const two = (await source.append('two')).next;
        assert.equal((await (await fork(source, '-1')).get()).text, '');
        assert.equal((await (await fork(source, empty)).get()).text, '');
        assert.equal((await (await fork(source, one)).get()).text, 'one');
        assert.equal((await (await fork(source, two)).get()).text, 'onetwo');
        assert.equal((await (await fork(source)).get()).text, 'onetwo');
        const far = (await (await freshStream(TEXT, 'x'.repeat(100))).head()).next;
        for (const offset of [far, 'bad', '', '0x0', '-2', 'a,b', '9'.repeat(40), `${one}0`, one.slice(1)]) {
            const target = new Stream(server, uniqueName());
            const reply = await putFork(target, forkHeaders(source, offset));
            assert.equal(reply.status, 400, `${offset}: ${reply.status}`);
            assert.equal((await target.head()).status, 404);
        }
        const atNow = await putFork(new Stream(server, uniqueName()), forkHeaders(source, 'now'));
        assert.ok([201, 400].includes(atNow.status));
        const missing = new Stream(server, uniqueName('missing'));
        assert.equal((await putFork(new Stream(server, uniqueName()), forkHeaders(missing))).status, 404);
        const self = new Stream(server, uniqueName());
        assert.equal((await putFork(self, forkHeaders(self))).status, 404);
        assert.equal((await putFork(source, forkHeaders(source))).status, 409);
        const onlyOffset = await putFork(new Stream(server, uniqueName()), { 'Stream-Fork-Offset': one });
        assert.equal(onlyOffset.status, 400, 'an offset needs Stream-Forked-From');
    });

    test('J7: offsets of the fork are those of its source up to the fork, and go on from there', async () => {
        const source = await freshStream(TEXT, 'abc');
        const { next } = await source.head();
        await source.append('def');
        const made = await fork(source, next);
        assert.equal((await made.head()).next, next);
        const own = await made.append('XYZ');
        assert.ok(own.next > next);
        assert.equal((await made.from(next)).text, 'XYZ');
        assert.equal((await made.get()).text, 'abcXYZ');
        assert.equal((await source.get()).text, 'abcdef', 'the source is untouched');
        await source.append('ghi');
        assert.equal((await made.get()).text, 'abcXYZ');
    });

    test('J6: closed sources, bodies, closed forks', async () => {
        const source = await freshStream(TEXT, 'abc');
        await source.close();
        const made = await fork(source);
        assert.equal((await made.get()).closed, false, 'a fork starts open');
        await made.append('d');
        const closed = await fork(source, undefined, undefined, { 'Stream-Closed': 'true' });
        const read = await closed.get();
        assert.equal(read.text, 'abc');
        assert.ok(read.closed);
        const withBody = new Stream(server, uniqueName());
        const reply = await withBody.put(forkHeaders(source), '+body');
        if (reply.status === 201) {
            assert.equal((await withBody.get()).text, 'abc+body');
        } else {
            assert.equal(reply.status, 400);
        }
    });

    test('J14: a fork has no producer state and no Stream-Seq memory', async () => {
        const source = await freshStream(TEXT);
        for (let seq = 0; seq <= 4; seq++) {
            await source.append(`${seq}`, producer('p', 3, seq));
        }
        await source.append('s', { 'Stream-Seq': 'z' });
        const made = await fork(source);
        assert.notEqual((await made.post('x', producer('p', 3, 5))).status, 200);
        assert.equal((await made.post('A', producer('p', 0, 0))).status, 200);
        assert.equal((await made.post('B', { 'Stream-Seq': 'a' })).status, 204);
        assert.equal((await source.post('5', producer('p', 3, 5))).status, 200, 'the source keeps its own');
        assert.equal((await source.post('t', { 'Stream-Seq': 'a' })).status, 409);
        assert.equal((await made.get()).text, '01234sAB');
    });

    test('J12: a PUT with an escaped source path finds it', async () => {
        const source = new Stream(server, `${uniqueName()}%20%C3%A9%2Fx`);
        await source.create({}, 'abc');
        const made = new Stream(server, uniqueName());
        assert.equal((await putFork(made, { 'Stream-Forked-From': source.path })).status, 201);
        assert.equal((await made.get()).text, 'abc');
    });
});

describe('J5: sub-offsets', () => {
    test('J5: bytes past the anchor; again, chained, and after restarts', async () => {
        const source = await freshStream(OCTETS);
        const zero = (await source.head()).next;
        const { next } = await source.append('abcdef');
        await source.append('ghi');
        const made = await fork(source, zero, 3);
        assert.equal((await made.get()).text, 'abc');
        assert.equal((await putFork(made, forkHeaders(source, zero, 3))).status, 200);
        assert.equal((await putFork(made, forkHeaders(source, zero, 4))).status, 409);
        assert.equal((await putFork(made, forkHeaders(source, zero))).status, 409);
        await made.append('XY');
        const chained = await fork(made);
        await chained.append('!');
        const deeper = await fork(made, zero, 2);
        assert.equal((await deeper.get()).text, 'ab');
        const whole = await fork(source, zero, 6);
        assert.equal((await whole.get()).text, 'abcdef');
        const second = await fork(source, next, 1);
        assert.equal((await second.get()).text, 'abcdefg');
        const check = async () => {
            assert.equal((await made.get()).text, 'abcXY');
            assert.equal((await chained.get()).text, 'abcXY!');
            assert.equal((await deeper.get()).text, 'ab');
            assert.equal((await second.get()).text, 'abcdefg');
            assert.equal((await source.get()).text, 'abcdefghi');
            assert.equal((await putFork(made, forkHeaders(source, zero, 3))).status, 200);
        };
        await check();
        await server.crashAndRestart();
        await check();
        await server.restart();
        await check();
        await source.remove();
        assert.equal((await made.get()).text, 'abcXY');
    });

    test('J5: refused sub-offsets', async () => {
        const source = await freshStream(OCTETS);
        const zero = (await source.head()).next;
        const { next } = await source.append('abcdef');
        await source.append('ghi');
        const tail = (await source.head()).next;
        const put = async (headers) => {
            const target = new Stream(server, uniqueName(), OCTETS);
            const { status } = await putFork(target, headers);
            if (status >= 400) {
                assert.equal((await target.head()).status, 404);
            }
            return status;
        };
        for (const sub of ['0', '1']) {
            assert.equal(await put({ 'Stream-Fork-Sub-Offset': sub }), 400, 'without Forked-From');
        }
        assert.equal(await put(forkHeaders(source, undefined, 1)), 400, 'without Fork-Offset');
        assert.equal(await put(forkHeaders(source, zero, 7)), 400, 'past the next append boundary');
        assert.equal(await put(forkHeaders(source, next, 4)), 400);
        assert.equal(await put(forkHeaders(source, tail, 1)), 400);
        for (const sub of ['-1', '+1', '01', '1.0', '1e0', 'x', '', '0x1', ' ', '9'.repeat(20), '9'.repeat(40), '18446744073709551615',
                           '9223372036854775807', '1,1', '1 1']) {
            assert.equal(await put(forkHeaders(source, zero, sub)), 400, sub);
        }
        assert.equal(await put(forkHeaders(source, zero, 0)), 201);
    });

    test('J5: JSON counts flattened messages', async () => {
        const source = await freshStream(JSON_TYPE);
        const zero = (await source.head()).next;
        const { next } = await source.append('[1,[2,2],{"three":3}]');
        await source.append('4');
        for (const [sub, wanted] of [[0, []], [1, [1]], [2, [1, [2, 2]]], [3, [1, [2, 2], { three: 3 }]]]) {
            const made = await fork(source, zero, sub);
            assert.deepEqual((await made.get()).json(), wanted);
            await made.append('"own"');
            assert.deepEqual((await made.get()).json(), [...wanted, 'own']);
        }
        assert.deepEqual((await (await fork(source, next, 1)).get()).json(), [1, [2, 2], { three: 3 }, 4]);
        for (const [offset, sub] of [[zero, 4], [next, 2], [zero, 1000]]) {
            const target = new Stream(server, uniqueName(), JSON_TYPE);
            assert.equal((await putFork(target, forkHeaders(source, offset, sub))).status, 400, `${sub}`);
        }
        await server.crashAndRestart();
        assert.deepEqual((await (await fork(source, zero, 2)).get()).json(), [1, [2, 2]]);
    });

    test('J5: sub-offsets on old data, long checkpointed', async () => {
        const source = await freshStream(OCTETS);
        const anchors = [(await source.head()).next];
        for (let i = 0; i < 30; i++) {
            anchors.push((await source.append(`${String(i).padStart(3, '0')}-`)).next);
        }
        await server.restart();
        for (const i of [0, 7, 29]) {
            const made = await fork(source, anchors[i], 2);
            const text = (await made.get()).text;
            assert.equal(text.length, i * 4 + 2);
            assert.ok(text.endsWith(String(i).padStart(3, '0').slice(0, 2)));
            const over = new Stream(server, uniqueName(), OCTETS);
            assert.equal((await putFork(over, forkHeaders(source, anchors[i], 5))).status, 400);
        }
    });
});

describe('J4: soft deletion', () => {
    test('J4, I13: every operation on a soft-deleted stream', async () => {
        const source = await freshStream(TEXT, 'abc');
        const { next } = await source.head();
        const made = await fork(source);
        assert.equal((await source.remove()).status, 204);
        for (const [name, reply] of Object.entries({
            get: await source.get(), head: await source.head(), post: await source.post('x'), close: await source.close(),
            remove: await source.remove(), poll: await source.poll(next), now: await source.get('offset=now'),
            sse: await source.get('offset=-1&live=sse'), producer: await source.post('x', producer('p', 0, 0)),
        })) {
            assert.equal(reply.status, 410, name);
        }
        for (const headers of [{}, { 'Content-Type': JSON_TYPE }, { 'Stream-Closed': 'true' }, { 'Stream-TTL': '5' }]) {
            assert.equal((await source.put(headers)).status, 409);
        }
        const another = new Stream(server, uniqueName());
        assert.equal((await putFork(another, forkHeaders(source))).status, 409, 'a fork from it');
        assert.equal((await another.head()).status, 404);
        assert.equal((await putFork(made, forkHeaders(source, next))).status === 201, false);
        assert.equal((await made.get()).text, 'abc');
        await made.append('d');
        await server.crashAndRestart();
        assert.equal((await source.get()).status, 410, 'also after a kill');
        assert.equal((await made.get()).text, 'abcd');
        assert.equal((await made.remove()).status, 204);
        await eventually('J13: the name is free again', async () => (await source.get()).status === 404);
        assert.equal((await source.put({}, 'new')).status, 201);
        assert.equal((await source.get()).text, 'new');
    });

    test('J4: a fork of a fork when the middle is deleted; the clean-up cascades', async () => {
        const first = await freshStream(TEXT, 'a');
        const second = await fork(first);
        await second.append('b');
        const third = await fork(second);
        await third.append('c');
        await second.remove();
        assert.equal((await second.get()).status, 410);
        assert.equal((await third.get()).text, 'abc');
        await first.remove();
        assert.equal((await first.get()).status, 410);
        await server.crashAndRestart();
        assert.equal((await third.get()).text, 'abc');
        assert.equal((await second.get()).status, 410);
        await third.remove();
        await eventually('all names are free', async () => (await first.get()).status === 404 && (await second.get()).status === 404);
        await server.crashAndRestart();
        assert.equal((await first.get()).status, 404);
        assert.equal((await second.put()).status, 201);
    });

    test('J4: several forks hold the source until the last is gone', async () => {
        const source = await freshStream(TEXT, 'x');
        const forks = await Promise.all(Array.from({ length: 10 }, () => fork(source)));
        await source.remove();
        for (const made of forks.slice(0, -1)) {
            assert.equal((await made.remove()).status, 204);
            assert.equal((await source.get()).status, 410);
        }
        await forks.at(-1).remove();
        await eventually('the source is gone', async () => (await source.get()).status === 404);
    });

    test('J4: a live reader of a fork does not notice the deletion of its source', async () => {
        const source = await freshStream(TEXT, 'abc');
        const made = await fork(source);
        const sse = await Sse.open(made, '-1');
        assert.equal(await sse.data(), 'abc');
        await sse.control();
        await source.remove();
        await made.append('own');
        assert.equal(await sse.data(), 'own');
        sse.close();
    });
});

describe('J: reads over the stitch', () => {
    test('J8: source 1000 bytes, fork at 600, append, kill: 600 and own', async () => {
        const source = await freshStream(OCTETS, Buffer.alloc(600, 'a'));
        const { next } = await source.head();
        await source.append(Buffer.alloc(400, 'b'));
        const made = await fork(source, next);
        await made.append('own');
        const check = async () => {
            const wanted = `${'a'.repeat(600)}own`;
            assert.equal((await made.get()).text, wanted);
            assert.equal((await made.from(next)).text, 'own');
        };
        await check();
        await server.crashAndRestart();
        await check();
        await made.append('+');
        await server.crashAndRestart();
        assert.equal((await made.from(next)).text, 'own+');
        await server.restart();
        assert.equal((await made.get()).text, `${'a'.repeat(600)}own+`);
    });

    test('F11: SSE on a fork: inherited, own, then live; never the source’s later bytes', async () => {
        for (const type of [TEXT, JSON_TYPE]) {
            const source = await freshStream(type, '[1]');
            const made = await fork(source);
            await made.append('[2]');
            await source.append('[666]');
            const sse = await Sse.open(made, '-1');
            const { parts } = await sse.caughtUp();
            assert.equal(parts.join(''), type === TEXT ? '[1][2]' : parts.join(''));
            if (type === JSON_TYPE) {
                assert.deepEqual(parts.flatMap((part) => JSON.parse(part)), [1, 2]);
                assert.equal((await made.get()).text, '[1,2]', 'one array over the boundary');
            }
            await source.append('[667]');
            await made.append('[3]');
            const data = await sse.data();
            assert.equal(data.replace(/\s/g, ''), '[3]');
            sse.close();
        }
    });

    test('J9: a long chain of forks reads right, too long a one is refused with a reason', async () => {
        let last = await freshStream(TEXT, '0;');
        let text = '0;';
        let refused = null;
        for (let i = 1; i < 80; i++) {
            const made = new Stream(server, uniqueName('fork'));
            const reply = await putFork(made, forkHeaders(last));
            if (reply.status !== 201) {
                refused = reply;
                break;
            }
            text += `${i};`;
            await made.append(`${i};`);
            last = made;
        }
        assert.equal((await last.get()).text, text);
        if (refused) {
            assert.equal(refused.status, 400);
            assert.match(refused.json().detail, /\d/);
        }
        await server.crashAndRestart();
        assert.equal((await last.get()).text, text);
    });

    test('L7: forks, appends, reads and deletes at the same time', async () => {
        const random = randomFrom(7);
        const source = await freshStream(TEXT, 'base;');
        await inParallel(24, Array.from({ length: rounds(400) }, (_, i) => async () => {
            const kind = random.below(4);
            if (kind === 0) {
                await source.append(`${i};`);
            } else if (kind === 1) {
                assert.match((await source.get()).text, /^base;(\d+;)*$/);
            } else {
                const made = await fork(source);
                const before = (await made.get()).text;
                await made.append('own;');
                assert.equal((await made.get()).text, `${before}own;`);
                assert.equal((await made.remove()).status, 204);
            }
        }));
        await source.remove();
        await eventually('no reference is left', async () => (await source.get()).status === 404);
    });
});
