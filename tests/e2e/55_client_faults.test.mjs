// Tier 50: what the C library sends, and what it does when the network or the
// server fails: seen at a proxy, and through build/client-adapter.
import assert from 'node:assert/strict';
import { after, afterEach, describe, test } from 'node:test';
import { Rig, Subject, refused, text, well } from './lib/adapter.mjs';
import { JSON_TYPE, OCTETS, TEXT } from './lib/http.mjs';

const rig = await new Rig().start();
after(() => rig.stop());
afterEach(() => rig.proxy.heal());

const sent = (s, method) => rig.proxy.seen(s.wire, method);

describe('fields that a caller adds', () => {
    const headers = { 'X-Its-Own': 'value', 'X-Another': 'with spaces, and commas', Authorization: 'Bearer abc' };

    for (const [what, method, run] of [
        ['create', 'PUT', (s) => s.create({ headers })],
        ['append', 'POST', (s) => s.append('x', { headers })],
        ['read', 'GET', (s) => s.read({ headers })],
        ['head', 'HEAD', (s) => s.head({ headers })],
        ['connect', 'HEAD', (s) => s.send('connect', { headers })],
        ['produce', 'POST', (s) => s.produce('x', { headers })],
        ['delete', 'DELETE', (s) => s.remove({ headers })],
    ]) {
        test(`go along with ${what}, and with nothing after it`, async () => {
            const s = new Subject(rig);
            if (what !== 'create') {
                well(await s.create({ contentType: TEXT }));
            }
            well(await run(s));
            const got = sent(s, method).at(-1).headers;
            for (const [name, value] of Object.entries(headers)) {
                assert.equal(got[name.toLowerCase()], value);
            }
            await s.head();
            assert.ok(!('x-its-own' in sent(s, 'HEAD').at(-1).headers));
        });
    }

    test('that would break the request are refused', async () => {
        const s = await rig.stream(TEXT);
        for (const bad of [{ 'X-A': 'a\r\nX-B: b' }, { 'X A': 'x' }, { '': 'x' }]) {
            refused(await s.append('x', { headers: bad }), 'INVALID_ARGUMENT', null);
        }
        assert.equal(sent(s, 'POST').length, 0);
    });
});

describe('fields and parameters that are made anew for each request', () => {
    afterEach(async () => well(await rig.adapter.send({ type: 'clear-dynamic' })));

    const dynamic = (type, members) => rig.adapter.send({ type, ...members }).then(well);

    test('a counting field, with each append', async () => {
        const s = await rig.stream(TEXT);
        await dynamic('set-dynamic-header', { name: 'X-Count', valueType: 'counter' });
        for (const n of ['1', '2', '3']) {
            assert.deepEqual(well(await s.append('x')).headersSent, { 'X-Count': n });
        }
        assert.deepEqual(sent(s, 'POST').map((r) => r.headers['x-count']), ['1', '2', '3']);
    });

    test('a counting field, with each read', async () => {
        const s = await rig.stream(TEXT, 'data');
        await dynamic('set-dynamic-header', { name: 'X-Count', valueType: 'counter' });
        assert.deepEqual((await s.reads('data')).headersSent, { 'X-Count': '1' });
        assert.deepEqual((await s.reads('data')).headersSent, { 'X-Count': '2' });
        assert.deepEqual(sent(s, 'GET').map((r) => r.headers['x-count']), ['1', '2']);
    });

    test('a counting field, with each try', async () => {
        const s = await rig.stream(TEXT, 'data');
        await dynamic('set-dynamic-header', { name: 'X-Count', valueType: 'counter' });
        rig.proxy.spoil(s.wire, { status: 503 }, 2);
        await s.reads('data');
        assert.deepEqual(sent(s, 'GET').map((r) => r.headers['x-count']), ['1', '2', '3']);
    });

    test('a counting parameter', async () => {
        const s = await rig.stream(TEXT, 'data');
        await dynamic('set-dynamic-param', { name: 'request_id', valueType: 'counter' });
        assert.deepEqual((await s.reads('data')).paramsSent, { request_id: '1' });
        assert.deepEqual((await s.reads('data')).paramsSent, { request_id: '2' });
        assert.deepEqual(sent(s, 'GET').map((r) => r.query.get('request_id')), ['1', '2']);
    });

    test('a time', async () => {
        const s = await rig.stream(TEXT, 'data');
        await dynamic('set-dynamic-param', { name: 't', valueType: 'timestamp' });
        await s.reads('data');
        assert.ok(Math.abs(Number(sent(s, 'GET')[0].query.get('t')) - Date.now()) < 3_600_000);
    });

    test('a token that changes', async () => {
        const s = await rig.stream(TEXT);
        for (const token of ['Bearer one', 'Bearer two']) {
            await dynamic('set-dynamic-header', { name: 'Authorization', valueType: 'token', initialValue: token });
            assert.deepEqual(well(await s.append('x')).headersSent, { Authorization: token });
        }
        assert.deepEqual(sent(s, 'POST').map((r) => r.headers.authorization), ['Bearer one', 'Bearer two']);
    });

    test('what a call says itself outranks them', async () => {
        const s = await rig.stream(TEXT);
        await dynamic('set-dynamic-header', { name: 'X-Who', valueType: 'token', initialValue: 'always' });
        well(await s.append('x', { headers: { 'x-who': 'once' } }));
        assert.equal(sent(s, 'POST')[0].headers['x-who'], 'once');
    });

    test('are gone once they are cleared', async () => {
        const s = await rig.stream(TEXT);
        await dynamic('set-dynamic-header', { name: 'X-Count', valueType: 'counter' });
        await dynamic('clear-dynamic');
        assert.ok(!('headersSent' in well(await s.append('x'))));
        assert.ok(!('x-count' in sent(s, 'POST')[0].headers));
    });
});

describe('a failure that passes', () => {
    for (const [what, fault, count] of [
        ['500', { status: 500 }, 1],
        ['500, twice', { status: 500 }, 2],
        ['502', { status: 502 }, 1],
        ['503', { status: 503 }, 1],
        ['504', { status: 504 }, 1],
        ['503 that comes late', { delay: 200, status: 503 }, 1],
        ['a connection that breaks', { drop: true }, 1],
        ['a connection that breaks twice', { drop: true }, 2],
        ['an answer that is late', { delay: 700 }, 1],
    ]) {
        const tries = fault.status || fault.drop ? count + 1 : 1;

        test(`${what}: a read goes on`, async () => {
            const s = await rig.stream(TEXT, 'data');
            rig.proxy.spoil(s.wire, { method: 'GET', ...fault }, count);
            await s.reads('data');
            assert.equal(sent(s, 'GET').length, tries);
        });

        test(`${what}: an append that may be sent twice goes on`, async () => {
            const s = await rig.stream(TEXT);
            rig.proxy.spoil(s.wire, { method: 'POST', ...fault }, count);
            well(await s.append('data'));
            await s.reads('data');
            assert.equal(sent(s, 'POST').length, tries);
        });

        test(`${what}: a producer goes on`, async () => {
            const s = await rig.stream(TEXT);
            rig.proxy.spoil(s.wire, { method: 'POST', ...fault }, count);
            well(await s.produceBatch(['a', 'b', 'c']));
            await s.reads('abc');
        });

        for (const live of ['long-poll', 'sse']) {
            test(`${what}: reading live goes on, ${live}`, async () => {
                const s = await rig.stream(TEXT, 'before');
                rig.proxy.spoil(s.wire, { live, ...fault }, count);
                const { reading } = await s.listen(live, s.offsets[0]);
                await rig.proxy.untilLive(s.wire, tries);
                const post = await fetch(`${rig.server.base}${s.wire}`, { method: 'POST', body: 'after', headers: { 'Content-Type': TEXT } });
                assert.equal(post.status, 204);
                assert.equal(text(await reading), 'after');
            });
        }
    }

    test('429 with Retry-After: not before that', async () => {
        const s = await rig.stream(TEXT, 'data');
        rig.proxy.spoil(s.wire, { status: 429, retryAfter: '1' });
        await s.reads('data');
        const [first, second] = sent(s, 'GET');
        assert.ok(second.at - first.at >= 950, `${second.at - first.at} ms`);
    });

    test('a failure of one method leaves the others alone', async () => {
        const s = await rig.stream(TEXT);
        rig.proxy.spoil(s.wire, { status: 503, method: 'POST' });
        await s.reads('');
        assert.equal(sent(s, 'GET').length, 1);
        well(await s.append('x'));
        assert.equal(sent(s, 'POST').length, 2);
        await s.reads('x');
    });

    test('that does not pass is given up, with what the server said last', async () => {
        const s = await rig.stream(TEXT, 'data');
        rig.proxy.spoil(s.wire, { status: 500, text: 'the disk is on fire\n' }, 50);
        const answer = refused(await s.read(), 'UNEXPECTED_STATUS', 500);
        assert.match(answer.message, /the disk is on fire/);
        assert.equal(sent(s, 'GET').length, 6);
        rig.proxy.heal();
        await s.reads('data');
    });

    test('that does not pass, in the network', async () => {
        const s = await rig.stream(TEXT, 'data');
        rig.proxy.spoil(s.wire, { drop: true }, 50);
        refused(await s.read(), 'NETWORK_ERROR', null);
    });
});

describe('a failure that does not pass is not tried again', () => {
    for (const [status, code] of [
        [400, 'UNEXPECTED_STATUS'], [401, 'UNEXPECTED_STATUS'], [403, 'UNEXPECTED_STATUS'], [404, 'NOT_FOUND'],
        [405, 'UNEXPECTED_STATUS'], [410, 'NOT_FOUND'], [413, 'UNEXPECTED_STATUS'],
    ]) {
        test(String(status), async () => {
            const s = await rig.stream(TEXT, 'data');
            rig.proxy.spoil(s.wire, { status, text: 'because of the moon' });
            const answer = refused(await s.read(), code, status);
            assert.match(answer.message, /because of the moon/);
            assert.ok(answer.message.includes(s.name), answer.message);
            assert.equal(sent(s, 'GET').length, 1);
        });
    }
});

describe('JSON that is broken is an error, never less than there is', () => {
    for (const [what, data, fault] of [
        ['cut within a string', '{"key": "a long value that is cut"}', { cut: 10 }],
        ['cut within an array', '[{"item": 1}, {"item": 2}, {"item": 3}]', { cut: 15 }],
        ['cut behind a message', '[1,2,3]', { cut: 3 }],
        ['cut to almost nothing', '{"data": "valid"}', { cut: 1 }],
        ['garbled', '{"valid": "json"}', { garble: true }],
    ]) {
        test(`${what}; and the next read is as if nothing had been`, async () => {
            const s = await rig.stream(JSON_TYPE, data);
            rig.proxy.spoil(s.wire, { method: 'GET', ...fault });
            refused(await s.read(), 'PARSE_ERROR');
            assert.deepEqual(JSON.parse(text(await s.read())), [JSON.parse(data)].flat());
        });
    }
});

describe('events', () => {
    for (const event of [{ type: 'of-the-future', data: '{"some":"thing"}' }, { type: 'future-2', data: 'no json' }, { type: 'future-3', data: '' }]) {
        test(`of a kind that is not known are passed over: ${event.type}`, async () => {
            const s = await rig.stream(TEXT, 'before');
            rig.proxy.spoil(s.wire, { live: 'sse', event });
            const { reading } = await s.listen('sse', s.offsets[0]);
            await fetch(`${rig.server.base}${s.wire}`, { method: 'POST', body: 'after', headers: { 'Content-Type': TEXT } });
            assert.equal(text(await reading), 'after');
            assert.equal(sent(s, 'GET').filter((r) => r.query.get('live') === 'sse').length, 1);
        });
    }

    for (const [what, data] of [
        ['no JSON', '{invalid json here'], ['nothing', ''], ['no object', '[1]'],
        ['no offset', '{"upToDate":true}'], ['an offset that is no text', '{"streamNextOffset":7}'],
    ]) {
        for (const type of [TEXT, OCTETS, JSON_TYPE]) {
            test(`of control with ${what}: an error, ${type}`, async () => {
                const s = await rig.stream(type, '1');
                rig.proxy.spoil(s.wire, { live: 'sse', event: { type: 'control', data } }, 50);
                refused(await s.read({ live: 'sse', offset: s.offsets[0], maxChunks: 1 }), 'PARSE_ERROR');
            });
        }
    }

    test('of base64 that is none: an error', async () => {
        const s = await rig.stream(OCTETS, Buffer.from([1]));
        rig.proxy.spoil(s.wire, { live: 'sse', event: { type: 'data', data: '!!!' } }, 50);
        refused(await s.read({ live: 'sse', offset: s.offsets[0], maxChunks: 1 }), 'PARSE_ERROR');
    });

    test('of JSON that is none: an error', async () => {
        const s = await rig.stream(JSON_TYPE, '1');
        rig.proxy.spoil(s.wire, { live: 'sse', event: { type: 'data', data: '{"a":' } }, 50);
        refused(await s.read({ live: 'sse', offset: s.offsets[0], maxChunks: 1 }), 'PARSE_ERROR');
    });
});
