// Tier 20: JSON mode (H): message boundaries, validation, bytes kept exactly.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { JSON_TYPE, Stream, TEXT, assertIncreasing, uniqueName } from './lib/http.mjs';
import { exchange, head } from './lib/raw.mjs';
import { startServer } from './lib/server.mjs';
import { Sse } from './lib/sse.mjs';

const server = await startServer();
after(() => server.dispose());

async function freshStream(body, type = JSON_TYPE) {
    const stream = new Stream(server, uniqueName(), type);
    await stream.create({}, body);
    return stream;
}

// The text of the messages as they are stored, after the outer brackets.
async function stored(stream) {
    const { text } = await stream.get();
    assert.doesNotThrow(() => JSON.parse(text), text.slice(0, 200));
    return text.slice(1, -1);
}

describe('H1, H2: arrays', () => {
    test('H1: empty arrays', async () => {
        const stream = await freshStream();
        const before = (await stream.head()).next;
        for (const body of ['[]', ' [ ] ', '[\n]', '\t[]\r\n', '[ \t\r\n ]']) {
            assert.equal((await stream.post(body)).status, 400, JSON.stringify(body));
        }
        assert.equal((await stream.head()).next, before);
        for (const body of ['[]', ' [ ] ', undefined]) {
            const made = await freshStream(body);
            assert.equal((await made.get()).text, '[]');
            assert.equal((await made.head()).next, before, 'no zero-length record');
            await made.append('1');
            assert.equal((await made.get()).text, '[1]');
        }
        assert.equal((await stream.post('[]', { 'Stream-Closed': 'true' })).status, 400);
        assert.equal((await stream.head()).closed, false);
    });

    test('H2: one level is flattened, and only one', async () => {
        const stream = await freshStream();
        for (const body of ['[[1,2],[3,4]]', '[[]]', '[[[1]]]', '{"a":[1]}', '[{},{}]', '[[[]],[]]']) {
            await stream.append(body);
        }
        assert.deepEqual((await stream.get()).json(),
                         [[1, 2], [3, 4], [], [[1]], { a: [1] }, {}, {}, [[]], []]);
    });

    test('H2: a batch has one offset behind it and reads begin at every batch', async () => {
        const stream = await freshStream();
        const nexts = [(await stream.head()).next];
        for (const body of ['[1,2,3]', '4', '[[5]]', '["x,y]"]']) {
            nexts.push((await stream.append(body)).next);
        }
        assertIncreasing(nexts);
        assert.deepEqual((await stream.from(nexts[1])).json(), [4, [5], 'x,y]']);
        assert.deepEqual((await stream.from(nexts[3])).json(), ['x,y]']);
        assert.deepEqual((await stream.from(nexts[4])).json(), []);
    });

    test('H2: PUT flattens in the same way', async () => {
        assert.equal((await (await freshStream('[[1,2],[3]]')).get()).text, '[[1,2],[3]]');
        assert.equal((await (await freshStream('{"a":1}')).get()).text, '[{"a":1}]');
        assert.equal((await new Stream(server, uniqueName(), JSON_TYPE).put({}, '{')).status, 400);
    });

    test('H10: null, false, 0 and "" are messages', async () => {
        const stream = await freshStream();
        for (const body of ['null', 'false', '0', '""', '[null]', '[false,0,"",{}]', 'true', '-0', '[[]]']) {
            await stream.append(body);
        }
        assert.equal((await stream.get()).text, '[null,false,0,"",null,false,0,"",{},true,-0,[]]');
    });
});

describe('H4: which types are JSON mode', () => {
    test('H4: spellings of application/json', async () => {
        for (const type of ['application/json', 'application/json; charset=utf-8', 'Application/JSON',
                            'application/json;', 'application/json;charset="utf-8";a=b', 'APPLICATION/json ; x=y']) {
            const stream = await freshStream('[1,2]', type);
            for (const post of ['application/json', 'Application/JSON; charset=utf-8', 'application/json;', type]) {
                assert.equal((await stream.post('[3]', { 'Content-Type': post })).status, 204, post);
            }
            const { status } = await exchange(server, head('POST', stream.path,
                ['Content-Type:   application/json   ', 'Content-Length: 1']) + '4');
            assert.equal(status, 204);
            assert.equal((await stream.get()).text, '[1,2,3,3,3,3,4]');
        }
    });

    test('H4: types that only look like it are plain bytes', async () => {
        for (const type of ['application/vnd.api+json', 'text/json', 'application/json5', 'application/jsonl',
                            'application/x-json', 'application/json+x', 'application/ndjson', 'json/application',
                            'application/problem+json']) {
            const stream = await freshStream('[1,2]', type);
            assert.equal((await stream.post('{', { 'Content-Type': type })).status, 204, type);
            assert.equal((await stream.get()).text, '[1,2]{');
            assert.equal((await stream.post('1', { 'Content-Type': JSON_TYPE })).status, 409);
        }
    });

    test('H4: only ASCII letters fold', async () => {
        const stream = await freshStream('[1]');
        for (const type of ['APPLİCATION/JSON', 'applıcation/json', 'application/jſon']) {
            const bytes = Buffer.from(type).toString('latin1');
            const reply = await exchange(server, head('POST', stream.path,
                [`Content-Type: ${bytes}`, 'Content-Length: 1']) + '2');
            assert.ok([400, 409].includes(reply.status), type);
        }
        assert.equal((await stream.get()).text, '[1]');
    });
});

describe('H5: bytes are kept', () => {
    const exact = ['12345678901234567890', '1.0', '1e400', '-0', '1E+2', '0.1e-7', '-1.5E-300', '{"a":1,"a":2}',
                   '{"2":1,"1":2}', '"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', '"\\/"', '"\\u0041\\u00e9"',
                   '{"__proto__":1}', '{"":0}', '"é\u2028\u2029"', '"\ud83d\ude00"', '"\x7f"', '{"a" : [ 1 , 2 ]}',
                   '123123e100000', '0e+1', '[1, 2 ,\n3]', '"[,]"', '"\\"]"', '{"k":"]}"}', '"\\\\"', '"\\b\\f\\n\\r\\t"'];

    test('H5: each value comes back as it was sent, outer white space trimmed', async () => {
        const stream = await freshStream();
        const wrap = (value) => (value.startsWith('[') ? `[${value}]` : value);
        for (const value of exact) {
            await stream.append(wrap(value));
            await stream.append(` \t\r\n${wrap(value)}\n `);
            await stream.append(`[ ${value} ,\n${value}\t]`);
        }
        assert.equal(await stored(stream), exact.flatMap((v) => [v, v, v, v]).join(','));
        await server.crashAndRestart();
        assert.equal(await stored(stream), exact.flatMap((v) => [v, v, v, v]).join(','));
    });

    test('H5: SSE and long-poll give the same bytes of compact messages', async () => {
        const stream = await freshStream();
        const values = exact.filter((value) => !/[\r\n]/.test(value));
        for (const value of values) {
            await stream.append(`[${value}]`);
        }
        const sse = await Sse.open(stream, '-1');
        const { parts } = await sse.caughtUp();
        sse.close();
        assert.deepEqual(parts.flatMap((part) => JSON.parse(part)), values.map((value) => JSON.parse(value)));
        assert.equal((await stream.poll('-1')).text, (await stream.get()).text);
    });

    test('E7: pretty-printed JSON with CR, CRLF and tabs between tokens over SSE', async () => {
        const stream = await freshStream();
        const bodies = ['{\n\t"a": [\n\t\t1,\n\t\t2\n\t]\n}', '{\r\n"a"\r:\r1\r\n}', '[\r1\r,\r{"b":\r\n"c"}\r]',
                        '{"text":"line\\nline\\rline"}'];
        const live = await Sse.open(stream, 'now');
        await live.control();
        for (const body of bodies) {
            await stream.append(body);
        }
        const wanted = [{ a: [1, 2] }, { a: 1 }, 1, { b: 'c' }, { text: 'line\nline\rline' }];
        const catchUp = await Sse.open(stream, '-1');
        const { parts } = await catchUp.caughtUp();
        assert.deepEqual(parts.flatMap((part) => JSON.parse(part)), wanted);
        catchUp.close();
        const got = [];
        while (got.length < wanted.length) {
            const event = await live.next();
            if (event.event === 'data') {
                got.push(...JSON.parse(event.data));
            }
        }
        assert.deepEqual(got, wanted);
        live.close();
        assert.deepEqual((await stream.get()).json(), wanted);
    });
});

describe('H: validation', () => {
    const bad = [
        '', ' ', '{', '}', '[', ']', '[1,]', '[,1]', '[1,,2]', '[1 2]', '{"a"}', '{"a":}', '{"a":1,}', '{a:1}', "{'a':1}",
        '{"a":1 "b":2}', '{1:1}', '1 2', '[1] [2]', '[1]x', 'x', 'nul', 'nulll', 'True', 'NaN', 'Infinity', '-', '+1', '01',
        '-01', '1.', '.5', '1e', '1e+', '0x1', '1_0', '"', '"a', '"\\"', '"\\x"', '"\\u12"', '"\\u12g4"', '"\n"', '"\t"',
        '"\x00"', '"\x1f"', '[1]\x00', '\x00', '\x0b1', '\u00a01', '//c\n1', '/**/1', '{"a":1}}', '[[1]', '[1]]', '\f1',
        '{"a":[}', '[{]}', ',', ':', '"a":1', '--1', '1e1.5', '[1,2', '{"a":1', '\u2028', '\\u0041', '[undefined]',
    ];
    test('H6: malformed text is 400 and nothing is stored', async () => {
        const stream = await freshStream('[1]');
        const { next } = await stream.head();
        for (const body of bad) {
            const reply = await stream.post(body);
            assert.equal(reply.status, 400, JSON.stringify(body));
        }
        for (const body of bad.filter((text) => text.trim() !== '')) {
            assert.equal((await stream.post(`[1,${body}]`)).status === 204 && !isJson(`[1,${body}]`), false, body);
        }
        const after = await stream.readMessages();
        assert.ok(after.messages.length >= 1);
        assert.ok((await stream.head()).next >= next);
    });

    function isJson(text) {
        try {
            JSON.parse(text);
            return true;
        } catch {
            return false;
        }
    }

    test('H6: a bad element refuses the whole batch', async () => {
        const stream = await freshStream('[1]');
        for (const body of ['[2,3,x]', '[2,"\n"]', '[2,01]', '[{"a":1},{"a":}]']) {
            assert.equal((await stream.post(body)).status, 400);
        }
        assert.equal((await stream.get()).text, '[1]');
    });

    test('H6: invalid UTF-8 is 400', async () => {
        const stream = await freshStream();
        const sequences = [[0xff], [0xc3], [0xc3, 0x28], [0xc0, 0xaf], [0xe0, 0x80, 0xaf], [0xed, 0xa0, 0x80],
                           [0xf4, 0x90, 0x80, 0x80], [0xf8, 0x88, 0x80, 0x80, 0x80], [0x80], [0xfe], [0xe2, 0x82]];
        for (const bytes of sequences) {
            const body = Buffer.concat([Buffer.from('"a'), Buffer.from(bytes), Buffer.from('b"')]);
            assert.equal((await stream.post(body)).status, 400, bytes.map((b) => b.toString(16)).join());
            const key = Buffer.concat([Buffer.from('{"'), Buffer.from(bytes), Buffer.from('":1}')]);
            assert.equal((await stream.post(key)).status, 400);
        }
        for (const text of ['"\u0080"', '"\u07ff"', '"\u0800"', '"\uffff"', '"\u{10000}"', '"\u{10ffff}"']) {
            assert.equal((await stream.post(text)).status, 204, text);
        }
        assert.equal((await stream.get()).json().length, 6);
    });

    test('H7: a BOM is refused', async () => {
        const stream = await freshStream();
        const bom = Buffer.from([0xef, 0xbb, 0xbf]);
        for (const body of [Buffer.concat([bom, Buffer.from('{"a":1}')]), Buffer.concat([Buffer.from('['), bom, Buffer.from('1]')]),
                            bom, Buffer.concat([Buffer.from(' '), bom, Buffer.from('1')]),
                            Buffer.from([0xfe, 0xff, 0, 0x31]), Buffer.from([0x31, 0, 0x32, 0])]) {
            assert.equal((await stream.post(body)).status, 400);
        }
        assert.equal((await stream.get()).text, '[]');
        assert.equal((await new Stream(server, uniqueName(), JSON_TYPE).put({}, Buffer.concat([bom, Buffer.from('1')]))).status, 400);
        const inside = `"${bom.toString()}x"`;
        await stream.append(inside);
        assert.equal((await stream.get()).text, `[${inside}]`, 'inside a string it is a character');
    });

    test('H8: depth', async () => {
        const stream = await freshStream();
        const nested = (depth) => '['.repeat(depth) + ']'.repeat(depth);
        const objects = (depth) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
        for (const depth of [100, 512]) {
            assert.equal((await stream.post(nested(depth))).status, 204, String(depth));
            assert.equal((await stream.post(objects(depth))).status, 204, String(depth));
        }
        const around = await stream.post(nested(1000));
        assert.ok([204, 400].includes(around.status));
        for (const depth of [1500, 100_000, 1_000_000]) {
            assert.equal((await stream.post(nested(depth))).status, 400, String(depth));
            assert.equal((await stream.post('['.repeat(depth))).status, 400);
            assert.equal((await stream.post(objects(depth))).status, 400);
        }
        assert.doesNotThrow(async () => (await stream.get()).json());
    });

    test('H11: a batch of 100,000 messages and one 20 MB string', async () => {
        const stream = await freshStream();
        const batch = Array.from({ length: 100_000 }, (_, i) => i);
        await stream.append(JSON.stringify(batch));
        assert.deepEqual((await stream.readMessages()).messages, batch);
        const big = JSON.stringify('x'.repeat(20_000_000));
        const { next } = await stream.head();
        await stream.append(big);
        const reply = await stream.from(next);
        assert.equal(reply.body.length, big.length + 2, 'one value over the page size comes whole');
        assert.ok(reply.upToDate);
        await stream.append('"after"');
        assert.equal((await stream.from(reply.next)).text, '["after"]');
    });

    test('H12: reads of a JSON stream are always an array, with its own type', async () => {
        const stream = await freshStream('[{"a":1}]');
        for (const reply of [await stream.get(), await stream.get('offset=now'), await stream.poll('-1'),
                             await stream.from((await stream.head()).next)]) {
            assert.match(reply.headers['content-type'], /^application\/json/);
            assert.ok(Array.isArray(reply.json()));
        }
        assert.equal(stream.type === TEXT, false);
    });
});
