// Tier 10: odd but legal requests, and a storm of mutated ones with a seed
// (ARBE_SEED repeats it): no crash, no 500, no bystander harmed.
import assert from 'node:assert/strict';
import net from 'node:net';
import { after, describe, test } from 'node:test';
import { JSON_TYPE, Stream, TEXT, request, uniqueName } from './lib/http.mjs';
import { Raw, exchange, head } from './lib/raw.mjs';
import { startServer } from './lib/server.mjs';
import { randomFrom, rounds } from './lib/wait.mjs';

const server = await startServer(['--long-poll-timeout', '20ms', '--sse-lifetime', '100ms', '--sse-heartbeat', '20ms', '--max-body', '16MiB',
    '--read-page', '4KiB', '--wal-segment', '1MiB', '--checkpoint-bytes', '1MiB', '--checkpoint-interval', '200ms']);
after(() => server.dispose());

async function freshStream(body, type = TEXT) {
    const stream = new Stream(server, uniqueName(), type);
    await stream.create({}, body);
    return stream;
}

describe('odd but legal', () => {
    test('L1: a body on GET, HEAD, DELETE and OPTIONS is read over, never taken for a request', async () => {
        const stream = await freshStream('x');
        const body = `DELETE ${stream.path} HTTP/1.1\r\nHost: x\r\n\r\n`;
        for (const method of ['GET', 'HEAD', 'OPTIONS', 'PATCH']) {
            for (const chunked of [false, true]) {
                const raw = await Raw.open(server);
                const framing = chunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`;
                raw.send(head(method, stream.path, [framing]) + (chunked ? `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n` : body));
                raw.send(head('GET', `${stream.path}?offset=-1`));
                const first = await raw.response(method);
                assert.ok(first.status < 500);
                if (!/close/i.test(first.headers.connection ?? '')) {
                    const second = await raw.response();
                    assert.equal(second.status, 200, method);
                    assert.equal(second.text, 'x');
                }
                raw.destroy();
            }
        }
        assert.equal((await stream.get()).text, 'x');
        const gone = await exchange(server, `${head('DELETE', stream.path, ['Content-Length: 4'])}body`);
        assert.ok([204, 400].includes(gone.status));
    });

    test('L23: ten megabytes to a missing stream, then a GET on the same connection', async () => {
        const stream = await freshStream('x');
        const raw = await Raw.open(server);
        const size = 10 << 20;
        raw.send(head('POST', `/v1/stream/${uniqueName('missing')}`, ['Content-Type: text/plain', `Content-Length: ${size}`]));
        raw.send(Buffer.alloc(size, 'GET / HTTP/1.1\r\n\r\n'));
        raw.send(head('GET', `${stream.path}?offset=-1`));
        const reply = await raw.response();
        assert.equal(reply.status, 404);
        if (/close/i.test(reply.headers.connection ?? '')) {
            await raw.endOfConnection();
        } else {
            assert.equal((await raw.response()).text, 'x');
        }
        raw.destroy();
    });

    test('L22: headers that mean nothing here are ignored', async () => {
        const stream = await freshStream('abcdef');
        for (const lines of [['Range: bytes=0-1'], ['Accept-Encoding: gzip, br, zstd'], ['Upgrade: h2c', 'Connection: Upgrade, HTTP2-Settings',
            'HTTP2-Settings: x'], ['TE: trailers'], ['If-Modified-Since: Sat, 29 Oct 2094 19:43:31 GMT'], ['If-Match: "x"'], ['Accept: image/png'],
            ['Cookie: a=b; c'], ['X-Http-Method-Override: DELETE'], ['X-Original-URL: /v1/stream/other'], ['Forwarded: for=1.2.3.4'],
            ['Keep-Alive: timeout=99999'], ['Content-Type: application/json'], ['Stream-Closed: true'], ['Stream-TTL: x'], ['Empty:']]) {
            const reply = await exchange(server, head('GET', `${stream.path}?offset=-1`, lines));
            assert.equal(reply.status, 200, lines.join());
            assert.equal(reply.text, 'abcdef');
            assert.equal(reply.headers['content-encoding'], undefined);
        }
        assert.equal((await stream.head()).closed, false);
    });

    test('L13: a content coding on a body is refused or stored as it is, never guessed at', async () => {
        const stream = await freshStream();
        const reply = await stream.post('plain', { 'Content-Encoding': 'gzip' });
        const read = await stream.get();
        assert.equal(read.text, reply.status === 204 ? 'plain' : '');
        assert.ok([204, 400, 415].includes(reply.status));
    });

    test('E14: PUT and POST with chunked bodies and with Expect', async () => {
        const path = `/v1/stream/${uniqueName()}`;
        const raw = await Raw.open(server);
        raw.send(head('PUT', path, ['Content-Type: text/plain', 'Transfer-Encoding: chunked', 'Expect: 100-continue']));
        assert.equal((await raw.response()).status, 100);
        raw.send('3\r\nabc\r\n0\r\n\r\n');
        assert.equal((await raw.response()).status, 201);
        raw.send(head('GET', `${path}?offset=-1`));
        assert.equal((await raw.response()).text, 'abc');
        raw.destroy();
    });

    test('L14: a fragment, a port and user data in the target do no harm', async () => {
        const stream = await freshStream('x');
        for (const target of [`${stream.path}#frag`, `http://user:pass@arbe.test${stream.path}`, `http://arbe.test:99999${stream.path}`,
                              `https://arbe.test${stream.path}`, `//arbe.test${stream.path}`, 'http://', 'http:///', '?', '#']) {
            const { status } = await exchange(server, head('GET', target));
            assert.ok([200, 400, 404].includes(status), `${target}: ${status}`);
        }
    });

    test('L5: a thousand connections, one request each', async () => {
        const stream = await freshStream('x');
        for (let i = 0; i < rounds(1000); i += 50) {
            await Promise.all(Array.from({ length: 50 }, async () => {
                assert.equal((await request(server.base, 'GET', `${stream.path}?offset=-1`, { fresh: true })).text, 'x');
            }));
        }
    });
});

// A generator of plausible requests, and a mutator of their bytes.
class Storm {
    constructor(random) {
        this.random = random;
        this.types = ['text/plain', JSON_TYPE, 'application/octet-stream', 'text/plain; charset=utf-8', 'garbage', ''];
        this.bodies = ['', 'x', '[1,2]', '[]', '{"a":[1,"\\u00e9"]}', '[[1],[2]]', 'null', ' [ 1 , 2 ] ', 'a\r\nb', '\xff\xfe',
                       `"${'x'.repeat(5000)}"`, JSON.stringify(Array.from({ length: 500 }, (_, i) => i))];
        this.names = ['sa', 'sb', 'sc', 'sd/e', '%2F', '%20', '__ds', '..', '\xe9'];
        this.tokens = ['-1', 'now', `${'0'.repeat(16)}_${'0'.repeat(16)}`, `${'0'.repeat(16)}_${'0'.repeat(15)}3`,
                       `${'0'.repeat(16)}_${'9'.repeat(16)}`, 'x', ''];
    }

    oneIn(n) {
        return this.random.below(n) === 0;
    }

    headers(method) {
        const { random } = this;
        const pick = (list) => random.pick(list);
        const lines = ['Host: x'];
        const maybe = (n, ...more) => this.oneIn(n) && lines.push(...more);
        maybe(1, `Content-Type: ${pick(this.types)}`);
        maybe(4, `Stream-Closed: ${pick(['true', 'false'])}`);
        maybe(4, `Producer-Id: ${pick(['p', 'q', ''])}`, `Producer-Epoch: ${random.below(3)}`, `Producer-Seq: ${random.below(5)}`);
        maybe(6, `Stream-Seq: ${pick(['a', 'b', 'zz', ''])}`);
        maybe(6, `Stream-TTL: ${pick(['0', '1', '60', 'x'])}`);
        maybe(6, `If-None-Match: ${pick(['*', '"x"', 'W/', '"0:0:1"'])}`);
        if (method === 'PUT') {
            maybe(3, `Stream-Forked-From: /v1/stream/${pick(this.names)}`);
            maybe(4, `Stream-Fork-Offset: ${pick(this.tokens)}`);
            maybe(5, `Stream-Fork-Sub-Offset: ${pick(['0', '1', '2', '99'])}`);
        }
        return lines;
    }

    request() {
        const { random } = this;
        const method = random.pick(['GET', 'GET', 'GET', 'PUT', 'POST', 'POST', 'POST', 'DELETE', 'HEAD', 'OPTIONS', 'PATCH']);
        const query = method === 'GET' ? `?offset=${random.pick(this.tokens)}${random.pick(['', '&live=long-poll', '&live=sse', '&cursor=5'])}` : '';
        const lines = this.headers(method);
        let body = '';
        if (method === 'PUT' || method === 'POST') {
            body = random.pick(this.bodies);
            if (this.oneIn(2)) {
                lines.push(`Content-Length: ${body.length}`);
            } else {
                lines.push('Transfer-Encoding: chunked');
                body = this.chunks(body);
            }
        }
        return `${method} /v1/stream/${random.pick(this.names)}${query} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`;
    }

    chunks(body) {
        const size = this.random.between(1, 700);
        let out = '';
        for (let at = 0; at < body.length; at += size) {
            const part = body.slice(at, at + size);
            out += `${part.length.toString(16)}\r\n${part}\r\n`;
        }
        return `${out}0\r\n\r\n`;
    }

    packet() {
        const { random } = this;
        let text = '';
        for (let i = random.between(1, 6); i > 0; i--) {
            text += this.request();
        }
        const bytes = [...Buffer.from(text, 'latin1')];
        for (let n = random.below(3) ? random.below(4) : 0; n > 0; n--) {
            const at = random.below(bytes.length);
            [() => { bytes[at] = random.below(256); },
             () => bytes.splice(at, random.between(1, 8)),
             () => bytes.splice(at, 0, ...bytes.slice(at, at + random.below(30))),
             () => bytes.splice(at, 0, random.pick([0, 10, 13, 32, 58, 255, 45, 48])),
             () => { bytes[at] ^= 1 << random.below(8); }][random.below(5)]();
        }
        return Buffer.from(bytes);
    }
}

// Sends a packet, whole or in two parts, and gives all that comes until the server or a short patience ends it.
function shoot(packet, random) {
    return new Promise((done) => {
        const socket = net.connect(server.port, '127.0.0.1');
        let got = '';
        const finish = () => {
            clearTimeout(timer);
            socket.destroy();
            done(got);
        };
        const timer = setTimeout(finish, random.between(10, 120));
        socket.on('data', (chunk) => { got += chunk.toString('latin1'); });
        socket.on('error', () => {});
        socket.on('close', finish);
        const cut = random.below(4) ? packet.length : random.below(packet.length);
        socket.write(packet.subarray(0, cut), () => socket.write(packet.subarray(cut)));
    });
}

const SEED = Number(process.env.ARBE_SEED ?? Date.now() % 1_000_000);
test(`L1, L2, L7: a storm of mutated requests (ARBE_SEED=${SEED})`, { timeout: 240_000 }, async () => {
    const bystander = await freshStream('I was here');
    await bystander.close();
    const random = randomFrom(SEED);
    const storm = new Storm(random);
    const end = Date.now() + 5_000;
    await Promise.all(Array.from({ length: 16 }, async () => {
        while (Date.now() < end && server.running) {
            const packet = storm.packet();
            const got = await shoot(packet, random);
            assert.doesNotMatch(got, /HTTP\/1\.1 500/, JSON.stringify(packet.toString('latin1')).slice(0, 2000));
        }
    }));
    assert.ok(server.running, server.tail());
    const reply = await bystander.get();
    assert.equal(reply.text, 'I was here');
    assert.ok(reply.closed);
    // Whatever the storm has stored can be read, is the same after a kill, and JSON is JSON.
    const look = async () => {
        const seen = [];
        for (const name of ['sa', 'sb', 'sc', 'sd/e', '%2F', '%20']) {
            const stream = new Stream(server, name);
            const { status, headers } = await stream.head();
            if (status !== 200 || headers['stream-ttl'] !== undefined) {
                continue;
            }
            const { pages, next, closed } = await stream.readAll();
            seen.push([name, headers['content-type'], pages.map((page) => page.toString('latin1')), next, closed]);
        }
        return seen;
    };
    // Requests whose sockets are gone may still be on their way through the server.
    let before = await look();
    for (let again = await look(); JSON.stringify(again) !== JSON.stringify(before); again = await look()) {
        before = again;
    }
    for (const [, , pages] of before.filter(([, one]) => /^application\/json/i.test(one))) {
        pages.forEach((page) => JSON.parse(Buffer.from(page, 'latin1').toString()));
    }
    await server.crashAndRestart();
    assert.deepEqual(await look(), before);
});
