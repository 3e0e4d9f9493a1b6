// Tier 40: Server-Sent Events (E): framing that no payload can break, and a
// connection that ends cleanly.
import assert from 'node:assert/strict';
import http from 'node:http';
import { after, describe, test } from 'node:test';
import { JSON_TYPE, OCTETS, Stream, TEXT, uniqueName } from './lib/http.mjs';
import { Raw, head } from './lib/raw.mjs';
import { startServer } from './lib/server.mjs';
import { Sse, fromBase64 } from './lib/sse.mjs';
import { rounds, withDeadline } from './lib/wait.mjs';

const server = await startServer(['--sse-lifetime', '1h']); // longer than any test, however slow the machine
const quick = await startServer(['--sse-heartbeat', '50ms', '--sse-lifetime', '600ms']);
after(async () => {
    await server.dispose();
    await quick.dispose();
});

async function freshStream(type = TEXT, body, headers, on = server) {
    const stream = new Stream(on, uniqueName(), type);
    await stream.create(headers, body);
    return stream;
}

// The data of a whole closed stream over SSE, both from the past and live.
async function bothWays(type, bodies) {
    const stream = await freshStream(type);
    const live = await Sse.open(stream, '-1');
    await live.control();
    for (const body of bodies) {
        await stream.append(body);
    }
    await stream.close();
    await live.end();
    const past = await Sse.open(stream, '-1');
    await past.end();
    for (const sse of [live, past]) {
        const kinds = sse.events.map((event) => event.event);
        assert.ok(kinds.every((kind) => kind === 'data' || kind === 'control'), kinds.join());
        assert.ok(kinds.every((kind, i) => kind !== 'data' || kinds[i + 1] === 'control'), 'a control after each data');
        const last = JSON.parse(sse.events.at(-1).data);
        assert.equal(last.streamClosed, true);
        assert.equal(last.streamNextOffset, (await stream.head()).next);
    }
    const data = (sse) => sse.events.filter((event) => event.event === 'data').map((event) => event.data);
    return { live: data(live), past: data(past), stream };
}

describe('E: text', () => {
    // A text/event-stream cannot carry CR: it becomes a line break.
    const asLines = (text) => text.replaceAll('\r\n', '\n').replaceAll('\r', '\n');

    const texts = {
        'E1: several lines': 'a\nb\n\nc',
        'E1: a trailing newline': 'a\n',
        'E1: only newlines': '\n\n\n',
        'E1: one newline': '\n',
        'E1: newlines around': '\n\na\n\n',
        'E2: a lone CR cannot forge a control event': 'safe\r\revent: control\rdata: {"streamNextOffset":"zzz"}',
        'E2: CRLF cannot either': 'safe\r\n\r\nevent: control\r\ndata: {"streamNextOffset":"zzz"}\r\n\r\n',
        'E2: LF cannot either': 'safe\n\nevent: control\ndata: {"streamNextOffset":"zzz","streamClosed":true}\n\n',
        'E2: mixed line ends': 'a\r\n\rb\n\r\r\nc\r',
        'E2: CR at the end': 'a\r',
        'E2: CRLF at the end': 'a\r\n',
        'E2: field names': 'data: x\nid: 1\nretry: 5\nevent: y\n: comment',
        'E2: other line separators are no line ends': 'a\u2028b\u2029c\u0085d\u000be\u000cf',
        'E4: leading spaces': '  indented\n x',
        'E4: only spaces': '   ',
        'E4: a leading tab and colon': '\tx\n:y\n y: z',
        'E1: NUL and controls': 'a\u0000b\u0001\u001b[0m',
        'E1: a BOM first': '\ufeffbom',
        'E1: wide characters': 'ñ漢😀\n😀',
        'E1: a long line': 'x'.repeat(200_000),
        'E1: many lines': 'line\n'.repeat(20_000),
    };
    for (const [name, text] of Object.entries(texts)) {
        test(name, async () => {
            const { live, past, stream } = await bothWays(TEXT, [text]);
            assert.equal(live.join(''), asLines(text));
            assert.equal(past.join(''), asLines(text));
            assert.equal((await stream.readAll()).body.toString(), text, 'GET keeps the bytes');
        });
    }

    test('E2: CR and LF in two appends, CR split between pages', async () => {
        const { live } = await bothWays(TEXT, ['a\r', '\nb', '\r\n', 'event: control\r', '\rdata: x']);
        // Appends that are near each other may come in one event; the lines are what counts.
        assert.equal(live.join('').replace(/\n+/g, '\n'), 'a\nb\nevent: control\ndata: x');
    });

    test('E2: no page is cut within CRLF', async () => {
        for (const before of [65_534, 65_535, 65_536, 131_071]) {
            const text = `${'x'.repeat(before)}\r\n${'y'.repeat(10)}`;
            const { live, past } = await bothWays(TEXT, [text]);
            assert.ok(past.length > 1);
            assert.equal(past.join(''), asLines(text));
            assert.equal(live.join(''), asLines(text));
        }
        const many = 'line\r\n'.repeat(50_000);
        assert.equal((await bothWays(TEXT, [many])).past.join(''), asLines(many));
    });

    test('E2: a character that comes in two appends comes whole', async () => {
        const stream = await freshStream();
        const live = await Sse.open(stream, '-1');
        await live.control();
        const bytes = Buffer.from('a😀é漢');
        const starts = [];
        for (let i = 0; i < bytes.length; i++) {
            const before = (await stream.head()).next;
            await stream.append(bytes.subarray(i, i + 1));
            if ((bytes[i] & 0xc0) !== 0x80) {
                starts.push(before);
            }
        }
        await live.until('all of it', () => live.events.filter((event) => event.event === 'data')
            .map((event) => event.data).join('') === 'a😀é漢');
        for (const event of live.events.filter((one) => one.event === 'control')) {
            const { streamNextOffset } = JSON.parse(event.data);
            assert.ok(starts.includes(streamNextOffset) || streamNextOffset === (await stream.head()).next);
        }
        // A half that is never completed is shown as such at the end, and to those who come later.
        await stream.append(Buffer.from([0x62, 0xe2, 0x82]));
        await live.until('the start', () => live.events.some((event) => event.data === 'b'));
        const late = await Sse.open(stream, '-1');
        const { parts, control } = await late.caughtUp();
        assert.equal(parts.join(''), 'a😀é漢b');
        assert.ok(control.streamNextOffset < (await stream.head()).next);
        const rest = await Sse.open(stream, control.streamNextOffset);
        assert.equal((await rest.control()).streamNextOffset, control.streamNextOffset);
        await stream.close();
        for (const sse of [live, late, rest]) {
            await sse.end();
            assert.equal(sse.events.filter((event) => event.event === 'data').at(-1).data, '\ufffd\ufffd');
        }
    });

    test('E4: a line that begins with a space gets one more', async () => {
        const stream = await freshStream(TEXT, ' a\n\n  b\n');
        const sse = await Sse.open(stream, '-1');
        await sse.caughtUp();
        sse.close();
        const data = sse.text.split('\n').filter((line) => line.startsWith('data:'));
        assert.deepEqual(data.slice(0, 4), ['data:  a', 'data:', 'data:   b', 'data:']);
    });

    test('E2: text that is not UTF-8 breaks nothing', async () => {
        const stream = await freshStream(TEXT, Buffer.from([0x61, 0xff, 0xfe, 0x0d, 0x0a, 0xc3, 0x62]));
        await stream.close();
        const raw = await Raw.open(server);
        raw.send(head('GET', `${stream.path}?offset=-1&live=sse`));
        const reply = await raw.response();
        raw.destroy();
        const text = reply.body.toString('latin1');
        assert.equal(text.match(/event: control/g).length, 1);
        assert.match(text, /"streamClosed":true/);
        assert.ok(reply.body.includes(Buffer.from('a\ufffd\ufffd\ndata:\ufffdb\n')), 'an event stream is UTF-8');
    });
});

describe('E5: JSON and base64', () => {
    test('E5: each JSON data event is a whole array, with a control after each', async () => {
        const { live, past } = await bothWays(JSON_TYPE, ['{"k":1}', '[2,3]', '"\\n\\r"', '[[4]]']);
        for (const events of [live, past]) {
            assert.deepEqual(events.flatMap((text) => {
                const value = JSON.parse(text);
                assert.ok(Array.isArray(value), 'R28: the array wrap stays');
                return value;
            }), [{ k: 1 }, 2, 3, '\n\r', [4]]);
        }
    });

    test('E5: each base64 data event decodes by itself', async () => {
        const bodies = Array.from({ length: 10 }, (_, i) => Buffer.alloc(i % 4 + 1, i));
        bodies.push(Buffer.from(Array.from({ length: 256 }, (_, i) => i)), Buffer.alloc(100_001, 0xa5));
        const { live, past } = await bothWays(OCTETS, bodies);
        for (const events of [live, past]) {
            assert.ok(Buffer.concat(events.map(fromBase64)).equals(Buffer.concat(bodies)));
        }
        assert.equal(live.length >= 1, true);
    });

    test('E10: base64 for all types other than text and JSON, and only for those', async () => {
        const wanted = {
            'image/png': true, 'application/x-protobuf': true, 'application/ndjson': true, 'application/octet-stream': true,
            'application/vnd.api+json': true, 'application/xml': true, 'textual/plain': true, 'application/jsonp': true,
            'application/text': true, 'text/plain; charset=utf-8': false, 'TEXT/Plain': false, 'text/html': false, 'text/json': false,
            'application/json': false, 'application/json; charset=utf-8': false, 'Application/JSON': false, 'text/event-stream': false,
            'text/x-whatever': false, 'model/text': true, 'x/text': true,
        };
        for (const [type, base64] of Object.entries(wanted)) {
            const stream = await freshStream(type, '[1]');
            const sse = await Sse.open(stream, '-1');
            assert.equal(sse.status, 200);
            assert.match(sse.headers['content-type'], /^text\/event-stream/);
            assert.equal(sse.headers['stream-sse-data-encoding'], base64 ? 'base64' : undefined, type);
            const data = await sse.data();
            if (base64) {
                assert.equal(fromBase64(data).toString(), '[1]', type);
            } else if (/json$/i.test(type.split(';')[0]) && !/^text/i.test(type)) {
                assert.deepEqual(JSON.parse(data), [1]);
            } else {
                assert.equal(data, '[1]', type);
            }
            sse.close();
        }
    });

    test('E11: no data event without data', async () => {
        for (const type of [JSON_TYPE, TEXT, OCTETS]) {
            const stream = await freshStream(type, undefined, {}, quick);
            const sse = await Sse.open(stream, '-1');
            await sse.end();
            assert.ok(sse.events.length >= 1);
            assert.ok(sse.events.every((event) => event.event === 'control'), JSON.stringify(sse.events));
        }
    });

    test('E8: control fields have their names and nothing of the headers', async () => {
        const stream = await freshStream(TEXT, 'x');
        const sse = await Sse.open(stream, '-1');
        await sse.data();
        const control = await sse.control();
        assert.deepEqual(Object.keys(control).sort(), ['streamCursor', 'streamNextOffset', 'upToDate']);
        assert.equal(typeof control.streamNextOffset, 'string');
        assert.match(control.streamCursor, /^\d+$/);
        assert.equal(control.upToDate, true);
        await stream.close();
        const last = await sse.control();
        assert.equal(last.streamClosed, true);
        await sse.end();
    });

    test('F4: the SSE cursor is greater than the one sent', async () => {
        const stream = await freshStream(TEXT, 'x');
        const first = await Sse.open(stream, 'now');
        const { streamCursor } = await first.control();
        first.close();
        const again = await Sse.open(stream, 'now', { query: `&cursor=${streamCursor}` });
        assert.ok(BigInt((await again.control()).streamCursor) > BigInt(streamCursor));
        again.close();
        for (const cursor of ['abc', '-5', '9'.repeat(30), '']) {
            const sse = await Sse.open(stream, 'now', { query: `&cursor=${cursor}` });
            assert.ok([200, 400].includes(sse.status));
            sse.close();
        }
    });
});

describe('E: following', () => {
    test('E9: events arrive as appends do, offsets can be resumed from', async () => {
        const stream = await freshStream(TEXT);
        const sse = await Sse.open(stream, '-1');
        await sse.control();
        for (let i = 0; i < 20; i++) {
            const { next } = await stream.append(`${i};`);
            assert.equal(await sse.data(), `${i};`);
            const control = await sse.control();
            assert.equal(control.streamNextOffset, next);
            assert.equal(control.upToDate, true);
            if (i % 5 === 0) {
                const resumed = await Sse.open(stream, next);
                await resumed.control();
                resumed.close();
                assert.equal((await stream.from(next)).text, '');
            }
        }
        sse.close();
    });

    test('E9: a hundred readers and a fast writer: all get everything in order', async () => {
        const stream = await freshStream(JSON_TYPE);
        const readers = await Promise.all(Array.from({ length: 100 }, () => Sse.open(stream, '-1')));
        const count = rounds(200);
        for (let i = 0; i < count; i++) {
            await stream.append(`[${i}]`);
        }
        await stream.close();
        for (const sse of readers) {
            await sse.end();
            const got = sse.events.filter((event) => event.event === 'data').flatMap((event) => JSON.parse(event.data));
            assert.deepEqual(got, Array.from({ length: count }, (_, i) => i));
        }
    });

    test('E9: readers that join in the middle of a burst miss and repeat nothing', async () => {
        const stream = await freshStream(TEXT);
        const count = rounds(150);
        const readers = [];
        for (let i = 0; i < count; i++) {
            const [, sse] = await Promise.all([stream.append(`${i};`), Sse.open(stream, '-1')]);
            readers.push(sse);
        }
        await stream.close();
        const whole = (await stream.get()).text;
        for (const sse of readers) {
            await sse.end();
            assert.equal(sse.events.filter((event) => event.event === 'data').map((event) => event.data).join(''), whole);
        }
    });

    test('E19: deletion ends the response; the next generation is not shown', async () => {
        for (let i = 0; i < rounds(30); i++) {
            const stream = await freshStream(TEXT, 'old');
            const sse = await Sse.open(stream, 'now');
            await sse.control();
            const raw = await Raw.open(server);
            raw.send(head('DELETE', stream.path) + head('PUT', stream.path, ['Content-Type: text/plain', 'Content-Length: 3']) + 'new' +
                     head('POST', stream.path, ['Content-Type: text/plain', 'Content-Length: 4']) + 'more');
            for (const wanted of [204, 201, 204]) {
                assert.equal((await raw.response()).status, wanted);
            }
            raw.destroy();
            await withDeadline(sse.done, 'end of the response');
            assert.ok(sse.events.every((event) => event.event !== 'data'), JSON.stringify(sse.events));
            assert.ok(!sse.text.includes('streamClosed'), 'deletion is no EOF');
        }
    });

    test('E: bad requests are refused before the stream of events begins', async () => {
        const stream = await freshStream(TEXT, 'x');
        for (const [query, status] of [['live=sse', 400], ['offset=bad&live=sse', 400], ['offset=-1&live=SSE', 400]]) {
            const reply = await stream.get(query);
            assert.equal(reply.status, status);
            assert.match(reply.headers['content-type'], /problem\+json/);
        }
        const missing = await Sse.open(new Stream(server, uniqueName('missing')), '-1');
        assert.equal(missing.status, 404);
        missing.close();
    });
});

describe('E13, E16: the connection', () => {
    test('E13: a clean end, no RST, whatever the client has pipelined', async () => {
        for (let i = 0; i < rounds(60); i++) {
            const stream = await freshStream(TEXT, 'a');
            const raw = await Raw.open(server);
            raw.send(head('GET', `${stream.path}?offset=-1&live=sse`));
            raw.send(head('GET', `${stream.path}?offset=-1`));
            const first = await raw.head();
            assert.equal(first.status, 200);
            await stream.append('last', { 'Stream-Closed': 'true' });
            const closes = /close/i.test(first.headers.connection ?? '');
            if (/chunked/i.test(first.headers['transfer-encoding'] ?? '')) {
                let text = '';
                for (let chunk = await raw.chunk(); chunk.length > 0; chunk = await raw.chunk()) {
                    text += chunk;
                }
                assert.match(text, /"streamClosed":true/);
                if (closes) {
                    assert.equal((await raw.endOfConnection()).reset, null);
                } else {
                    assert.equal((await raw.response()).text, 'alast', 'true keep-alive');
                }
            } else {
                assert.ok(closes, 'a body without end needs Connection: close');
                const { extra, reset } = await raw.endOfConnection();
                assert.equal(reset, null);
                assert.match(extra, /"streamClosed":true/);
                assert.doesNotMatch(extra, /HTTP\/1/);
            }
            raw.destroy();
        }
    });

    test('E13: a keep-alive agent can go on after SSE', async () => {
        const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
        const get = (path) => new Promise((done, fail) => {
            http.get({ port: server.port, host: '127.0.0.1', path, agent }, (message) => {
                let text = '';
                message.on('data', (chunk) => { text += chunk; });
                message.on('end', () => done(text));
                message.on('error', fail);
            }).on('error', fail);
        });
        for (let i = 0; i < rounds(30); i++) {
            const stream = await freshStream(TEXT, 'x', { 'Stream-Closed': 'true' });
            assert.match(await get(`${stream.path}?offset=-1&live=sse`), /"streamClosed":true/);
            assert.equal(await get(`${stream.path}?offset=-1`), 'x');
        }
        agent.destroy();
    });

    test('E14: HTTP/1.0 and Accept-Encoding: gzip get the events at once and unencoded', async () => {
        const stream = await freshStream(TEXT, 'x');
        const raw = await Raw.open(server);
        raw.send(`GET ${stream.path}?offset=-1&live=sse HTTP/1.0\r\nHost: x\r\n\r\n`);
        const first = await raw.head();
        assert.equal(first.status, 200);
        assert.equal(first.headers['transfer-encoding'], undefined);
        let text = '';
        const until = async (mark) => {
            while (!mark.test(text)) {
                assert.ok(raw.buffer.length > 0 || await raw.more(), `ended after ${text}`);
                text += raw.buffer.toString();
                raw.buffer = Buffer.alloc(0);
            }
        };
        await until(/event: control/);
        await stream.append('y');
        await until(/data: ?y/);
        raw.destroy();
        const zipped = await Sse.open(stream, '-1', { headers: ['Accept-Encoding: gzip, br', 'Accept: text/event-stream'] });
        assert.equal(zipped.headers['content-encoding'], undefined);
        assert.equal(await zipped.data(), 'xy');
        zipped.close();
    });

    test('E14: proxies are told not to buffer', async () => {
        const stream = await freshStream(TEXT, 'x');
        const sse = await Sse.open(stream, '-1');
        assert.ok(sse.headers['x-accel-buffering'] === 'no' || /no-transform|no-cache|no-store/.test(sse.headers['cache-control']));
        sse.close();
    });

    test('E16: heartbeats on a quiet stream, then a clean end at the lifetime', async () => {
        const stream = await freshStream(TEXT, 'x', {}, quick);
        const sse = await Sse.open(stream, 'now');
        await sse.end();
        assert.ok(sse.comments + sse.events.length >= 4, `${sse.comments} comments, ${sse.events.length} events`);
        assert.ok(sse.events.every((event) => event.event === 'control'));
        assert.ok(!sse.text.includes('streamClosed'));
        const { streamNextOffset } = JSON.parse(sse.events.at(-1).data);
        assert.equal(streamNextOffset, (await stream.head()).next);
    });

    test('E16: a reader that reconnects at each lifetime end loses nothing', async () => {
        const stream = await freshStream(TEXT, undefined, {}, quick);
        const count = 60;
        let done = false;
        const writing = (async () => {
            for (let i = 0; i < count; i++) {
                await stream.append(`${i};`);
                await new Promise((wake) => setTimeout(wake, 25));
            }
            await stream.close();
            done = true;
        })();
        let offset = '-1';
        let text = '';
        let closed = false;
        let connections = 0;
        while (!closed) {
            const sse = await Sse.open(stream, offset);
            connections++;
            await sse.end();
            for (const event of sse.events) {
                if (event.event === 'data') {
                    text += event.data;
                } else {
                    const control = JSON.parse(event.data);
                    offset = control.streamNextOffset;
                    closed = Boolean(control.streamClosed);
                }
            }
        }
        await writing;
        assert.ok(done && connections > 1);
        assert.equal(text, Array.from({ length: count }, (_, i) => `${i};`).join(''));
    });
});
