// Tier 50: readers of the C library, against the real server and against servers
// that break off, lie, refuse, or say nothing at all.
import assert from 'node:assert/strict';
import http from 'node:http';
import net from 'node:net';
import { after, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { JSON_TYPE, OCTETS, Stream, TEXT, uniqueName } from './lib/http.mjs';
import { Reader, readToEnd } from './lib/reader.mjs';
import { startServer } from './lib/server.mjs';
import { eventually, sleep } from './lib/wait.mjs';

const server = await startServer(['--long-poll-timeout', '300ms']);
after(() => server.dispose());
const base = `${server.base}/v1/stream/`;

async function freshStream(type, ...bodies) {
    const stream = new Stream(server, uniqueName(), type);
    await stream.create();
    for (const body of bodies) {
        await stream.append(body);
    }
    return stream;
}

// A server that plays: the n-th request is answered by the n-th player, the
// last one answers all further ones. Requests are kept as { at, query }.
async function stage(t, ...players) {
    const requests = [];
    const stub = http.createServer((request, response) => {
        const url = new URL(request.url, 'http://stub');
        requests.push({ at: Date.now(), query: Object.fromEntries(url.searchParams) });
        players[Math.min(requests.length, players.length) - 1](response, url.searchParams);
    });
    stub.keepAliveTimeout = 0;
    await new Promise((done) => stub.listen(0, '127.0.0.1', done));
    t.after(() => {
        stub.closeAllConnections?.();
        stub.close();
    });
    return { base: `http://127.0.0.1:${stub.address().port}/v1/stream/`, requests };
}

const page = (body, next, fields = {}, status = 200) => (response) => {
    response.writeHead(status, { 'Content-Type': JSON_TYPE, 'Stream-Next-Offset': next, ...fields });
    response.end(body);
};
const UP = { 'Stream-Up-To-Date': 'true' };
const CLOSED = { ...UP, 'Stream-Closed': 'true' };
const tail = page('[]', '0', UP);

// The head and the beginning of a body; then the connection ends, or is left.
const partly = (body, next, fields, { leave = false, reset = false } = {}) => (response) => {
    response.writeHead(200, { 'Content-Type': JSON_TYPE, 'Stream-Next-Offset': next, ...fields });
    response.write(body);
    if (!leave) {
        setTimeout(() => (reset ? response.socket.resetAndDestroy() : response.socket.destroy()), 20);
    }
};
const events = (body, fields = {}, leave = false) => (response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream', ...fields });
    response.write(body);
    if (!leave) {
        response.end();
    }
};
const data = (text) => `event: data\ndata: ${text}\n\n`;
const control = (fields) => `event: control\ndata: ${JSON.stringify(fields)}\n\n`;
const refuse = (status, fields = {}, body = '') => (response) => {
    response.writeHead(status, fields);
    response.end(body);
};

describe('against the server', { timeout: 120_000 }, () => {
    test('catch-up: JSON and bytes, whole and from an offset, in every form', async () => {
        const json = await freshStream(JSON_TYPE, '[1,{"a":[2]}]', '"three"');
        const bytes = await freshStream(OCTETS, Buffer.from([0, 1, 255]), Buffer.from('abc'));
        for (const form of ['next', 'step']) {
            const messages = await readToEnd(base, json.name, { form, unit: 'messages' });
            assert.deepEqual(messages.messages, ['1', '{"a":[2]}', '"three"']);
            assert.equal(messages.last.end, 'END');
            assert.equal(messages.last.type, JSON_TYPE);
            const { next, up } = messages.pieces.at(-1);
            assert.deepEqual([next, up], [(await json.head()).next, 1]);
            const raw = await readToEnd(base, bytes.name, { form });
            assert.equal(raw.data.toString('latin1'), '\0\x01\xffabc');
        }
        const all = await readToEnd(base, json.name, { form: 'all' });
        assert.equal(Buffer.from(all.last.hex, 'hex').toString(), '[1,{"a":[2]},"three"]');
        const few = await readToEnd(base, json.name, { form: 'all', max: 10 });
        assert.equal(few.last.end, 'REJECTED');
        const none = await readToEnd(base, json.name, { offset: 'now', unit: 'messages' });
        assert.deepEqual([none.messages, none.pieces.at(-1).up], [[], 1]);
    });

    for (const live of ['long-poll', 'sse', 'auto']) {
        for (const form of ['next', 'step']) {
            test(`${live}, ${form}: what is there, what comes, and the end of a closed stream`, async () => {
                const stream = await freshStream(JSON_TYPE, '[1,2]');
                const reader = new Reader(base, stream.name, { live, form, unit: 'messages' });
                await reader.until('the tail', (r) => r.pieces.some((piece) => piece.up));
                for (const body of ['[3,4]', '{"five":5}', '[[6],"7"]']) {
                    const before = reader.pieces.length;
                    await stream.append(body);
                    await reader.until('news', (r) => r.pieces.slice(before).some((piece) => piece.next));
                }
                await stream.close();
                const end = await reader.end();
                assert.deepEqual([end.end, end.closed], ['END', 1]);
                assert.deepEqual(reader.messages, ['1', '2', '3', '4', '{"five":5}', '[6]', '"7"']);
                assert.equal(reader.pieces.at(-1).closed, 1);
                const again = await readToEnd(base, stream.name, { live, form, unit: 'messages', offset: end.next });
                assert.deepEqual([again.messages, again.pieces.at(-1).closed], [[], 1]);
            });
        }
    }

    test('each offset that is told is one to resume at', async () => {
        const stream = await freshStream(JSON_TYPE, '[1,2]', '[3]', '[4,5]');
        await stream.close();
        const reader = await readToEnd(base, stream.name, { live: 'sse', unit: 'messages' });
        let before = 0;
        for (const piece of reader.pieces) {
            before += piece.data.length > 0 ? 1 : 0;
            if (piece.next) {
                const rest = await readToEnd(base, stream.name, { offset: piece.next, unit: 'messages' });
                assert.deepEqual(rest.messages, reader.messages.slice(before));
            }
        }
    });

    test('text: events make LF of CR LF, all else is exact', async () => {
        const stream = await freshStream(TEXT, 'a\r\nb\r', '\nc \u2028\u0085');
        for (const live of ['long-poll', 'sse', 'auto']) {
            const reader = new Reader(base, stream.name, { live, offset: 'now' });
            await reader.until('the tail', (r) => r.pieces.length > 0);
            await stream.append('  x\r\ny\n\nz\u20ac');
            await reader.until('news', (r) => r.data.length > 0 && r.pieces.at(-1).next);
            assert.equal(reader.text, live === 'sse' ? '  x\ny\n\nz\u20ac' : '  x\r\ny\n\nz\u20ac');
            await reader.stop();
        }
    });

    test('bytes over events are exact', async () => {
        const stream = await freshStream(OCTETS);
        const reader = new Reader(base, stream.name, { live: 'sse' });
        await reader.until('the tail', (r) => r.pieces.length > 0);
        const sent = Buffer.alloc(300_000, 'aé\r\n\0');
        await stream.append(sent);
        await stream.close();
        await reader.end();
        assert.ok(reader.data.equals(sent));
    });

    test('a stream that is deleted ends a tail with what the server says', async () => {
        for (const live of ['long-poll', 'sse']) {
            const stream = await freshStream(JSON_TYPE, '[1]');
            const reader = new Reader(base, stream.name, { live, unit: 'messages' });
            await reader.until('the tail', (r) => r.pieces.length > 0);
            await stream.remove();
            const end = await reader.end();
            assert.ok(['NOT_FOUND', 'GONE'].includes(end.end), JSON.stringify(end));
        }
    });

    test('long-polls that run out go on, and are not told', async () => {
        const stream = await freshStream(JSON_TYPE);
        const reader = new Reader(base, stream.name, { live: 'long-poll', poll: 200, unit: 'messages' });
        await reader.until('the tail', (r) => r.pieces.length > 0);
        await sleep(900); // some of them
        await stream.append('[1]');
        await reader.until('news', (r) => r.messages.length > 0);
        assert.equal(reader.pieces.length, 2);
        await reader.stop();
    });

    test('a stream of text has no messages', async () => {
        const stream = await freshStream(TEXT, 'hello');
        const { last } = await readToEnd(base, stream.name, { unit: 'messages' });
        assert.equal(last.end, 'FORMAT');
        assert.match(last.message, /text\/plain/);
    });
});

describe('bodies that break off', { timeout: 120_000 }, () => {
    for (const reset of [false, true]) {
        test(`with a length, and in chunks (${reset ? 'RST' : 'FIN'})`, async (t) => {
            const stub = await stage(t,
                                     partly('[1,2,{"a"', '3', { 'Content-Length': 100 }, { reset }),
                                     partly('[1,2,{"a":3},4]', '4', {}, { reset }),
                                     page('[1,2,{"a":3},4,5]', '5', UP));
            const reader = await readToEnd(stub.base, 's', { unit: 'messages' });
            assert.equal(reader.last.end, 'END', reader.last.message);
            assert.deepEqual(reader.messages, ['1', '2', '{"a":3}', '4', '5']);
            assert.deepEqual(stub.requests.map((request) => request.query.offset), ['-1', '-1', '-1']);
        });
    }

    test('bytes, in pieces that were handed out already', async (t) => {
        const whole = Buffer.alloc(400_000, 'abcdefg');
        const stub = await stage(t,
                                 partly(whole.subarray(0, 200_000), '9', { 'Content-Type': OCTETS, 'Content-Length': 400_000 }),
                                 partly(whole.subarray(0, 100_000), '9', { 'Content-Type': OCTETS }),
                                 page(whole, '9', { 'Content-Type': OCTETS, ...UP }));
        const reader = await readToEnd(stub.base, 's');
        assert.ok(reader.data.equals(whole));
        assert.equal(reader.pieces.at(-1).next, '9');
    });

    test('compressed', async (t) => {
        const packed = gzipSync('[1,2,3]');
        const fields = { 'Content-Encoding': 'gzip' };
        const stub = await stage(t,
                                 partly(packed.subarray(0, 15), '3', { ...fields, 'Content-Length': packed.length }),
                                 page(packed, '3', { ...fields, ...UP }));
        const reader = await readToEnd(stub.base, 's', { unit: 'messages' });
        assert.deepEqual([reader.messages, reader.last.end], [['1', '2', '3'], 'END'], reader.last.message);
    });

    test('a body that ends well in the middle of its JSON is no page', async (t) => {
        const stub = await stage(t, page('[{"key":"some', '3', UP));
        const { last } = await readToEnd(stub.base, 's', { unit: 'messages' });
        assert.deepEqual([last.end, last.status], ['FORMAT', 200]);
        assert.match(last.message, /breaks off/);
        assert.equal(stub.requests.length, 1);
    });

    test('events, between and within', async (t) => {
        const stub = await stage(t, tail,
                                 events(data('[1,2]') + control({ streamNextOffset: '2', streamCursor: 'c' }) + 'event: data\ndata: [3,4,5'),
                                 events(data('[3,4,5,6]') + 'event: control\ndata: {"streamNextOffset":'),
                                 events(data('[3,4,5,6]') + control({ streamNextOffset: '6', streamClosed: true }), {}, true));
        const reader = await readToEnd(stub.base, 's', { live: 'sse', unit: 'messages' });
        assert.deepEqual([reader.messages, reader.last.end], [['1', '2', '3', '4', '5', '6'], 'END'], reader.last.message);
        assert.deepEqual(stub.requests.map(({ query }) => `${query.offset} ${query.cursor ?? ''}`),
                         ['-1 ', '0 ', '2 c', '2 c']);
    });

    test('a server that answers with less and less', async (t) => {
        const stub = await stage(t, partly('[1,2,3,4', '4'), page('[1]', '1', UP));
        const { last } = await readToEnd(stub.base, 's', { unit: 'messages' });
        assert.equal(last.end, 'FORMAT');
        assert.match(last.message, /shorter/);
    });
});

describe('answers that are not as they should be', { timeout: 120_000 }, () => {
    const cases = [
        ['garbage as events', [tail, events('<html>\nnot found\n</html>')], 'FORMAT', /no server-sent events/],
        ['a page instead of events', [tail, page('[1]', '1')], 'FORMAT', /text\/event-stream/],
        ['a control event that is no JSON', [tail, events('event: control\ndata: {oops\n\n')], 'FORMAT', /control event/],
        ['a control event without data', [tail, events('event: control\ndata:\n\n')], 'FORMAT', /control event/],
        ['a control event without an offset', [tail, events(control({ upToDate: true }))], 'FORMAT', /streamNextOffset/],
        ['data that do not move the offset', [tail, events(data('[1]') + control({ streamNextOffset: '0' }))], 'FORMAT', /next offset/],
        ['an offset that goes back', [page('[1]', '5', UP), events(control({ streamNextOffset: '3' }))], 'FORMAT', /before/],
        ['a data event that is no array', [tail, events(data('{"a":1}') + control({ streamNextOffset: '1' }))], 'FORMAT', /array/],
        ['base64 that is none', [tail, events(data('Zm9*'), { 'Stream-SSE-Data-Encoding': 'base64' })], 'FORMAT', /base64|messages/],
        ['a page without an offset', [(response) => { response.writeHead(200, {}); response.end('[]'); }], 'FORMAT', /Stream-Next-Offset/],
        ['a page of HTML', [page('<html>', '1', { 'Content-Type': 'text/html' })], 'FORMAT', /text\/html/],
        ['a message that is too long', [page(`["${'x'.repeat(2000)}"]`, '1', UP)], 'FORMAT', /1000 bytes/],
        ['410', [tail, refuse(410, { 'Content-Type': 'application/problem+json' }, '{"detail":"the offset is gone"}')], 'GONE', /the offset is gone/],
        ['401', [refuse(401)], 'UNAUTHORIZED', /token/],
        ['403', [refuse(403)], 'FORBIDDEN', /allow/],
        ['404', [refuse(404, { 'Content-Type': 'text/plain' }, 'nothing here\nmore')], 'NOT_FOUND', /nothing here \(status 404\)/],
        ['400', [refuse(400, { 'Content-Type': JSON_TYPE }, '{"error":{"message":"bad offset"}}')], 'REJECTED', /bad offset/],
        ['302', [refuse(302, { Location: 'http://127.0.0.1:1/' })], 'FORMAT', /redirect/],
    ];
    for (const [what, players, code, words] of cases) {
        test(what, async (t) => {
            const stub = await stage(t, ...players);
            const { last } = await readToEnd(stub.base, 's', { live: 'sse', unit: 'messages', message: 1000 });
            assert.equal(last.end, code, last.message);
            assert.match(last.message, words);
            assert.equal(stub.requests.length, players.length, 'asked again though that does not help');
        });
    }

    test('AUTO goes over to long-polls where there are no events', async (t) => {
        const poll = page('[1]', '1', CLOSED);
        for (const player of [page('[]', '0', UP), refuse(400), refuse(405), refuse(501)]) {
            const stub = await stage(t, tail, (response, query) => (query.get('live') === 'sse' ? player : poll)(response));
            const reader = await readToEnd(stub.base, 's', { live: 'auto', unit: 'messages' });
            assert.deepEqual([reader.messages, reader.last.end], [['1'], 'END'], reader.last.message);
            assert.deepEqual(stub.requests.map(({ query }) => query.live), [undefined, 'sse', 'long-poll']);
        }
    });

    test('AUTO goes over to long-polls where events are swallowed', async (t) => {
        const held = events('', {}, true);
        const poll = page('[1]', '1', CLOSED);
        const stub = await stage(t, tail, (response, query) => (query.get('live') === 'sse' ? held : poll)(response));
        const reader = await readToEnd(stub.base, 's', { live: 'auto', unit: 'messages' });
        assert.deepEqual([reader.messages, reader.last.end], [['1'], 'END'], reader.last.message);
    });

    test('long-polls echo each cursor, and a missing one keeps the last', async (t) => {
        const stub = await stage(t, tail,
                                 page('[1]', '1', { 'Stream-Cursor': 'c1' }), page('', '1', { 'Stream-Cursor': 'c2', ...UP }, 204),
                                 page('[2]', '2'), page('', '2', CLOSED, 204), page('[]', '2', CLOSED));
        const reader = await readToEnd(stub.base, 's', { live: 'long-poll', unit: 'messages' });
        assert.deepEqual(reader.messages, ['1', '2']);
        assert.deepEqual(stub.requests.map(({ query }) => `${query.live ?? ''} ${query.offset} ${query.cursor ?? ''}`),
                         [' -1 ', 'long-poll 0 ', 'long-poll 1 c1', 'long-poll 1 c2', 'long-poll 2 c2', ' 2 ']);
    });
});

describe('failures that pass', { timeout: 120_000 }, () => {
    test('429 with Retry-After is waited for', async (t) => {
        const stub = await stage(t, refuse(429, { 'Retry-After': '1' }), refuse(503), page('[1]', '1', UP));
        const reader = await readToEnd(stub.base, 's', { unit: 'messages', delay: 1, max_delay: 1 });
        assert.deepEqual(reader.messages, ['1']);
        assert.ok(stub.requests[1].at - stub.requests[0].at >= 990);
    });

    test('until there were retries enough', async (t) => {
        const stub = await stage(t, refuse(503, { 'Retry-After': '0' }, 'busy'));
        const { last } = await readToEnd(stub.base, 's', { retries: 2, delay: 1, max_delay: 1 });
        assert.deepEqual([last.end, last.status, last.retry_after_ms, stub.requests.length], ['BUSY', 503, 0, 3]);
    });

    test('a server that accepts and says nothing', async (t) => {
        const stub = await stage(t, () => {});
        const { last } = await readToEnd(stub.base, 's', { request: 1000, retries: 1, delay: 1 });
        assert.equal(last.end, 'TIMEOUT', last.message);
        await eventually('both requests', () => stub.requests.length === 2);
    });

    test('events without a heartbeat are asked for again', async (t) => {
        const stub = await stage(t, tail, events(data('[1]') + control({ streamNextOffset: '1' }), {}, true),
                                 events(data('[2]') + control({ streamNextOffset: '2', streamClosed: true })));
        const reader = await readToEnd(stub.base, 's', { live: 'sse', unit: 'messages', idle: 3000 });
        assert.deepEqual([reader.messages, reader.last.end], [['1', '2'], 'END'], reader.last.message);
    });

    test('nobody listens; a server that closes at once', async (t) => {
        const holder = net.createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
        await new Promise((done) => holder.once('listening', done));
        const address = `http://127.0.0.1:${holder.address().port}/`;
        t.after(() => holder.close());
        const closes = await readToEnd(address, 's', { retries: 1, delay: 1 });
        assert.equal(closes.last.end, 'NETWORK', closes.last.message);
        const refused = await readToEnd('http://127.0.0.1:1/', 's', { retries: 1, delay: 1 });
        assert.equal(refused.last.end, 'NETWORK', refused.last.message);
    });
});

describe('abort', { timeout: 120_000 }, () => {
    const half = partly('[1,2,{"a"', '3', { 'Content-Length': 1000 }, { leave: true });
    // What it is, what the server does, options, and the pieces that come before.
    const places = [
        ['in the middle of a page', [half], {}, 0],
        ['in the middle of an event', [tail, events(`${data('[1]')}event: data\ndata: [2,3`, {}, true)], { live: 'sse' }, 3],
        ['while a long-poll waits', [tail, () => {}], { live: 'long-poll' }, 1],
        ['in a pause before a retry', [tail, refuse(503)], { live: 'long-poll', delay: 600_000, max_delay: 600_000 }, 1],
        ['before any answer', [() => {}], {}, 0],
    ];
    for (const signal of ['SIGUSR1', 'SIGUSR2']) {
        for (const form of ['next', 'step']) {
            for (const [where, players, options, pieces] of places) {
                test(`${where} (${signal}, ${form})`, async (t) => {
                    const stub = await stage(t, ...players);
                    const reader = new Reader(stub.base, 's', { unit: 'messages', form, ...options });
                    await reader.until('what comes before', (r) => r.pieces.length === pieces);
                    await eventually('the request', () => stub.requests.length === players.length);
                    const from = Date.now();
                    reader.signal(signal);
                    const end = await reader.end();
                    assert.equal(end.end, 'ABORTED', end.message);
                    console.log(`aborted ${where}: ${Date.now() - from} ms, the end of the program included`);
                });
            }
        }
    }
});
