// Tier 50: idempotent producers of the C library, and the claims that any writer
// may make by hand, seen through build/client-adapter.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { Rig, Subject, refused, text, well } from './lib/adapter.mjs';
import { JSON_TYPE, OCTETS, TEXT, request } from './lib/http.mjs';

const rig = await new Rig().start();
after(() => rig.stop());

const messages = (s) => s.read().then((answer) => JSON.parse(text(answer) || '[]'));
const numbered = (count, make) => Array.from({ length: count }, (_, i) => make(i));

describe('a producer', () => {
    test('stores one message', async () => {
        const s = await rig.stream(TEXT);
        const answer = well(await s.produce('hello'));
        assert.deepEqual([answer.status, answer.duplicate, answer.offset], [200, false, await s.tail()]);
        await s.reads('hello');
    });

    test('goes on where it was', async () => {
        const s = await rig.stream(TEXT);
        for (const c of 'abc') {
            well(await s.produce(c, { epoch: 4 }));
        }
        await s.reads('abc');
        const claims = rig.proxy.seen(s.wire, 'POST').map(
            ({ headers: h }) => [h['producer-id'], h['producer-epoch'], h['producer-seq']]);
        assert.deepEqual(claims, [['p', '4', '0'], ['p', '4', '1'], ['p', '4', '2']]);
    });

    test('stores one JSON value', async () => {
        const s = await rig.stream(JSON_TYPE);
        well(await s.produce('{"message": "hello"}'));
        assert.deepEqual(await messages(s), [{ message: 'hello' }]);
    });

    test('makes one request of many messages', async () => {
        const s = await rig.stream(JSON_TYPE);
        well(await s.produceBatch(numbered(300, (i) => `{"id": ${i}}`)));
        assert.deepEqual(await messages(s), numbered(300, (id) => ({ id })));
        assert.equal(rig.proxy.seen(s.wire, 'POST').length, 1);
    });

    test('keeps arrays whole', async () => {
        const s = await rig.stream(JSON_TYPE);
        well(await s.produceBatch(['[1, 2, 3]', '[4, 5, 6]', '[]']));
        assert.deepEqual(await messages(s), [[1, 2, 3], [4, 5, 6], []]);
    });

    test('stores one array that is alone as one message', async () => {
        const s = await rig.stream(JSON_TYPE);
        well(await s.produce('[1, 2]'));
        assert.deepEqual(await messages(s), [[1, 2]]);
    });

    test('stores every kind of JSON', async () => {
        const s = await rig.stream(JSON_TYPE);
        well(await s.produceBatch(['42', '"string"', 'null', 'true', '{"obj": 1}']));
        assert.deepEqual(await messages(s), [42, 'string', null, true, { obj: 1 }]);
    });

    test('joins what is no JSON', async () => {
        const s = await rig.stream(TEXT);
        well(await s.produceBatch(['Hello', ' ', 'World']));
        await s.reads('Hello World');
        assert.equal(rig.proxy.seen(s.wire, 'POST').length, 1);
    });

    test('that gives the same again changes nothing', async () => {
        const s = await rig.stream(JSON_TYPE);
        const items = ['{"msg": "first"}', '{"msg": "second"}'];
        assert.equal(well(await s.produceBatch(items)).duplicate, false);
        assert.equal(well(await s.produceBatch(items)).duplicate, true);
        assert.deepEqual(await messages(s), [{ msg: 'first' }, { msg: 'second' }]);
    });

    for (const autoClaim of [false, true]) {
        for (const type of [TEXT, JSON_TYPE]) {
            test(`with five requests at once keeps the order, ${type}${autoClaim ? ', claiming' : ''}`, async () => {
                const s = await rig.stream(type);
                const items = numbered(60, (i) => (type === TEXT ? `m-${i} ` : `{"id": ${i}}`));
                well(await s.produceBatch(items, { maxInFlight: 5, autoClaim }));
                if (type === TEXT) {
                    await s.reads(items.join(''));
                } else {
                    assert.deepEqual(await messages(s), numbered(60, (id) => ({ id })));
                }
                assert.ok(rig.proxy.seen(s.wire, 'POST').length >= 60, 'a request for each');
            });
        }
    }

    test('writes to a stream whose type it has to ask for', async () => {
        const s = new Subject(rig);
        const put = await request(rig.server.base, 'PUT', s.wire, { headers: { 'Content-Type': JSON_TYPE } });
        assert.equal(put.status, 201);
        well(await s.produceBatch(['1', '2']));
        assert.equal((await request(rig.server.base, 'GET', `${s.wire}?offset=-1`)).text, '[1,2]');
    });

    test('fails on what is no JSON, and stores none of it', async () => {
        const s = await rig.stream(JSON_TYPE);
        assert.equal((await s.produce('no json')).success, false);
        assert.deepEqual(await messages(s), []);
    });

    test('that is fenced says by which epoch', async () => {
        const s = await rig.stream(TEXT);
        well(await s.claim('newer', 'p', 7, 0));
        const answer = refused(await s.produce('old', { epoch: 3 }), 'UNEXPECTED_STATUS', 403);
        assert.equal(answer.details.name, 'FENCED');
        assert.equal(answer.details.currentEpoch, 7);
        refused(await s.produce('old again', { epoch: 3 }), 'UNEXPECTED_STATUS', 403);
        await s.reads('newer');
    });

    for (const [what, run] of [
        ['one message', (s, m) => s.produce('recovered', { autoClaim: true, ...m })],
        ['a batch', (s, m) => s.produceBatch(['reco', 'ver', 'ed'], { autoClaim: true, ...m })],
        ['many at once', (s, m) => s.produceBatch(['r', 'e', 'c', 'o', 'v', 'e', 'r', 'e', 'd'], { autoClaim: true, maxInFlight: 4, ...m })],
    ]) {
        test(`that claims goes beyond whoever was there, ${what}`, async () => {
            const s = await rig.stream(TEXT);
            well(await s.claim('other,', 'p', 5, 0));
            well(await run(s));
            await s.reads('other,recovered');
        });
    }
});

describe('a producer closes', () => {
    test('the stream, once all is stored', async () => {
        const s = await rig.stream(TEXT);
        well(await s.produce('message'));
        const answer = well(await s.produceClose());
        assert.deepEqual([answer.status, answer.finalOffset], [200, await s.tail()]);
        assert.equal(well(await s.head()).streamClosed, true);
        assert.equal((await s.reads('message')).streamClosed, true);
    });

    test('with a last message', async () => {
        const s = await rig.stream(TEXT);
        well(await s.produce('message,'));
        well(await s.produceClose({ data: 'last' }));
        assert.equal((await s.reads('message,last')).streamClosed, true);
        assert.equal(rig.proxy.seen(s.wire, 'POST').length, 2);
    });

    for (const [what, first, second] of [
        ['without a message', undefined, undefined],
        ['with the same message', 'A', 'A'],
        ['with another message, which does not count', 'A', 'B'],
    ]) {
        test(`twice, ${what}`, async () => {
            const s = await rig.stream(TEXT);
            well(await s.produce('x'));
            const answer = well(await s.produceClose({ data: first }));
            assert.deepEqual(well(await s.produceClose({ data: second })), answer);
            assert.equal((await s.reads(`x${first ?? ''}`)).streamClosed, true);
        });
    }

    test('not what another one has closed', async () => {
        const s = await rig.stream(TEXT);
        well(await s.produce('x', { producerId: 'one' }));
        well(await s.produceClose({ producerId: 'one' }));
        refused(await s.produceClose({ producerId: 'two' }), 'STREAM_CLOSED', 409);
        refused(await s.produceClose({ producerId: 'three', data: 'x' }), 'STREAM_CLOSED', 409);
        refused(await s.produce('x', { producerId: 'four' }), 'STREAM_CLOSED', 409);
        assert.equal((await s.reads('x')).streamClosed, true);
    });

    test('nothing by letting go', async () => {
        const s = await rig.stream(TEXT);
        well(await s.produce('one,'));
        assert.equal(well(await s.detach()).status, 200);
        assert.equal(well(await s.head()).streamClosed, false);
        well(await s.append('two'));
        assert.equal((await s.reads('one,two')).streamClosed, false);
        well(await s.detach());
    });
});

// Rows of [data, epoch, seq, answer]: 'new', 'again', or [code, status, details].
const GAP = (expectedSeq) => ['SEQUENCE_CONFLICT', 409, { expectedSeq }];
const FENCED = (currentEpoch) => ['UNEXPECTED_STATUS', 403, { currentEpoch }];
const WRONG = ['UNEXPECTED_STATUS', 400, {}];

async function claims(s, id, rows) {
    for (const [data, epoch, seq, wanted] of rows) {
        const answer = await s.claim(data, id, epoch, seq);
        if (typeof wanted === 'string') {
            assert.equal(well(answer).duplicate, wanted === 'again', `${epoch}/${seq}: ${JSON.stringify(answer)}`);
            assert.equal(answer.producerEpoch, epoch);
            continue;
        }
        const [code, status, details] = wanted;
        refused(answer, code, status);
        for (const [name, value] of Object.entries(details)) {
            assert.equal(answer.details[name], value, JSON.stringify(answer));
        }
    }
}

describe('claims by hand', () => {
    for (const [what, rows, left] of [
        ['the first of all is 0', [['a', 0, 0, 'new']], 'a'],
        ['they count up', [['a', 0, 0, 'new'], ['b', 0, 1, 'new'], ['c', 0, 2, 'new']], 'abc'],
        ['a gap is refused with what is awaited', [['a', 0, 0, 'new'], ['c', 0, 2, GAP(1)]], 'a'],
        ['a new one begins at 0', [['x', 0, 5, GAP(0)]], ''],
        ['a gap can be filled', [['a', 0, 0, 'new'], ['c', 0, 2, GAP(1)], ['b', 0, 1, 'new'], ['c', 0, 2, 'new']], 'abc'],
        ['the same is taken once', [['a', 0, 0, 'new'], ['a', 0, 0, 'again']], 'a'],
        ['a repeat of the first leaves the count', [['a', 0, 0, 'new'], ['a', 0, 0, 'again'], ['b', 0, 1, 'new']], 'ab'],
        ['a repeat with other data is a repeat', [['original', 0, 0, 'new'], ['different', 0, 0, 'again']], 'original'],
        ['old ones are repeats too',
         [...'abcdef'].map((c, i) => [c, 0, i, 'new']).concat([['b', 0, 1, 'again'], ['a', 0, 0, 'again'], ['g', 0, 6, 'new']]),
         'abcdefg'],
        ['a higher epoch begins at 0', [['a', 0, 0, 'new'], ['b', 0, 1, 'new'], ['c', 1, 0, 'new'], ['d', 1, 1, 'new']], 'abcd'],
        ['a higher epoch does not begin elsewhere', [['a', 0, 0, 'new'], ['b', 1, 5, WRONG]], 'a'],
        ['epochs may be passed over', [['a', 0, 0, 'new'], ['b', 10, 0, 'new'], ['c', 5, 0, FENCED(10)]], 'ab'],
        ['a lower epoch is fenced', [['a', 1, 0, 'new'], ['b', 0, 0, FENCED(1)]], 'a'],
        ['an epoch does not go back', [['a', 2, 0, 'new'], ['b', 1, 0, FENCED(2)]], 'a'],
        ['epoch 0 is fenced as others are', [['a', 5, 0, 'new'], ['b', 0, 0, FENCED(5)], ['c', 4, 0, FENCED(5)]], 'a'],
        ['whoever was there before is fenced', [['A0', 0, 0, 'new'], ['B0', 1, 0, 'new'], ['A1', 0, 1, FENCED(1)]], 'A0B0'],
        ['epochs may be large', [['a', 2147483640, 0, 'new'], ['b', 100, 0, FENCED(2147483640)]], 'a'],
        ['each epoch counts by itself',
         [['a', 0, 0, 'new'], ['b', 0, 1, 'new'], ['c', 0, 2, 'new'], ['d', 1, 0, 'new'], ['e', 1, 1, 'new']], 'abcde'],
    ]) {
        test(what, async () => {
            const s = await rig.stream(TEXT);
            await claims(s, 'hand', rows);
            await s.reads(left);
        });
    }

    test('JSON stays in order', async () => {
        const s = await rig.stream(JSON_TYPE);
        await claims(s, 'hand', [['{"seq": 0}', 0, 0, 'new'], ['{"seq": 1}', 0, 1, 'new'], ['{"seq": 2}', 0, 2, 'new']]);
        assert.deepEqual(await messages(s), [{ seq: 0 }, { seq: 1 }, { seq: 2 }]);
    });

    test('a batch of JSON is one claim', async () => {
        const s = await rig.stream(JSON_TYPE);
        await claims(s, 'hand', [['[{"id":1},{"id":2},{"id":3}]', 0, 0, 'new'], ['[{"id":1},{"id":2},{"id":3}]', 0, 0, 'again'],
                                 ['{"other": "data"}', 0, 0, 'again'], ['[{"id":4}]', 0, 1, 'new']]);
        assert.deepEqual(await messages(s), [{ id: 1 }, { id: 2 }, { id: 3 }, { id: 4 }]);
    });

    test('what is refused for other reasons uses none up', async () => {
        const s = await rig.stream(JSON_TYPE);
        await claims(s, 'hand', [['{"m": 1}', 0, 0, 'new'], ['no json', 0, 1, WRONG], ['{"m": 2}', 0, 1, 'new'], ['{"m": 3}', 0, 2, 'new']]);
        assert.deepEqual(await messages(s), [{ m: 1 }, { m: 2 }, { m: 3 }]);
    });

    test('go together with Stream-Seq', async () => {
        const s = await rig.stream(TEXT);
        well(await s.claim('a', 'hand', 0, 0, { seq: 1 }));
        refused(await s.claim('b', 'hand', 0, 1, { seq: 1 }), 'SEQUENCE_CONFLICT', 409);
        well(await s.claim('b', 'hand', 0, 1, { seq: 2 }));
        await s.reads('ab');
    });

    test('of several producers do not meet, in any order', async () => {
        const s = await rig.stream(TEXT);
        for (const [data, id, seq] of [['A0', 'a', 0], ['B0', 'b', 0], ['A1', 'a', 1], ['B1', 'b', 1], ['A2', 'a', 2]]) {
            await claims(s, id, [[data, 0, seq, 'new']]);
        }
        await s.reads('A0B0A1B1A2');
    });

    test('of one producer in two streams do not meet', async () => {
        const a = await rig.stream(TEXT);
        const b = await rig.stream(TEXT);
        await claims(a, 'shared', [['a', 5, 0, 'new']]);
        await claims(b, 'shared', [['b', 0, 0, 'new']]);
        await claims(a, 'shared', [['x', 0, 1, FENCED(5)]]);
        await a.reads('a');
        await b.reads('b');
    });

    test('are forgotten with the stream', async () => {
        const s = await rig.stream(TEXT);
        await claims(s, 'hand', [['old', 0, 0, 'new'], ['old', 0, 1, 'new']]);
        well(await s.remove());
        well(await s.create({ contentType: TEXT }));
        await claims(s, 'hand', [['anew', 0, 0, 'new']]);
        await s.reads('anew');
    });

    for (const id of ['service:instance:123', 'region/zone/host', '550e8400-e29b-41d4-a716-446655440000', 'x'.repeat(200), 'with space', 'a=b&c;d,e']) {
        test(`by the name of ${id.slice(0, 40)}`, async () => {
            const s = await rig.stream(TEXT);
            await claims(s, id, [['x', 0, 0, 'new'], ['x', 0, 0, 'again']]);
            await s.reads('x');
        });
    }

    for (const [what, claim] of [
        ['without a name', { producerId: '', producerEpoch: 0, producerSeq: 0 }],
        ['with an epoch below 0', { producerId: 'p', producerEpoch: -1, producerSeq: 0 }],
        ['with a number below 0', { producerId: 'p', producerEpoch: 0, producerSeq: -1 }],
    ]) {
        test(`${what} are refused before anything is sent`, async () => {
            const s = await rig.stream(OCTETS);
            refused(await s.append('x', claim), 'INVALID_ARGUMENT', null);
            assert.equal(rig.proxy.seen(s.wire, 'POST').length, 0);
        });
    }

    for (const [what, headers] of [
        ['a name alone', { 'Producer-Id': 'p' }],
        ['no number', { 'Producer-Id': 'p', 'Producer-Epoch': '0' }],
        ['a number with letters', { 'Producer-Id': 'p', 'Producer-Epoch': '0', 'Producer-Seq': '1abc' }],
        ['a number with an exponent', { 'Producer-Id': 'p', 'Producer-Epoch': '1e3', 'Producer-Seq': '0' }],
        ['a number below 0', { 'Producer-Id': 'p', 'Producer-Epoch': '-1', 'Producer-Seq': '0' }],
    ]) {
        test(`that are broken get the server's sentence: ${what}`, async () => {
            const s = await rig.stream(TEXT);
            refused(await s.append('x', { headers }), 'UNEXPECTED_STATUS', 400);
            await s.reads('');
        });
    }
});
