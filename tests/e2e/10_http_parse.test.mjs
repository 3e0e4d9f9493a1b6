// Tier 10: what the HTTP parser takes and refuses, byte by byte.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { Stream, TEXT, assertProblem, uniqueName } from './lib/http.mjs';
import { Raw, exchange, head } from './lib/raw.mjs';
import { startServer } from './lib/server.mjs';

const server = await startServer(['--max-body', '1MiB']);
after(() => server.dispose());

async function freshStream(body) {
    const stream = new Stream(server, uniqueName());
    await stream.create({}, body);
    return stream;
}

// The input gets one of these statuses, and the connection ends after it.
async function assertRefused(data, statuses = [400]) {
    const raw = await Raw.open(server);
    try {
        raw.send(data);
        const reply = await raw.response();
        assert.ok(statuses.includes(reply.status),
                  `${JSON.stringify(String(data).slice(0, 200))}: ${reply.status} ${reply.text}`);
        assert.match(reply.headers.connection ?? '', /close/i);
        assert.match(reply.headers['cache-control'] ?? '', /no-store/);
        const { extra } = await raw.endOfConnection();
        assert.equal(extra, '', 'nothing after the refusal');
        return reply;
    } finally {
        raw.destroy();
    }
}

describe('L1: request smuggling is refused and the connection closed', () => {
    // A second request hides in what a lax parser would take for the body.
    const hidden = 'DELETE /v1/stream/victim HTTP/1.1\r\nHost: x\r\n\r\n';
    const variants = {
        'both lengths': ['Content-Length: 4', 'Transfer-Encoding: chunked'],
        'both lengths, the other order': ['Transfer-Encoding: chunked', 'Content-Length: 4'],
        'two different lengths': ['Content-Length: 4', 'Content-Length: 5'],
        'two equal lengths': ['Content-Length: 4', 'Content-Length: 4'],
        'a plus sign': ['Content-Length: +4'],
        'a list of equal lengths': ['Content-Length: 4,4'],
        'a list of lengths': ['Content-Length: 4, 5'],
        'hexadecimal': ['Content-Length: 0x4'],
        'negative': ['Content-Length: -1'],
        'decimal point': ['Content-Length: 4.0'],
        'exponent': ['Content-Length: 4e0'],
        'empty length': ['Content-Length: '],
        'inner space': ['Content-Length: 4 4'],
        'twenty digits': ['Content-Length: 99999999999999999999'],
        'two to the 64th plus four': ['Content-Length: 18446744073709551620'],
        'underscore': ['Content-Length: 4_0'],
        'letters after': ['Content-Length: 4abc'],
        'gzip then chunked': ['Transfer-Encoding: gzip, chunked'],
        'chunked twice': ['Transfer-Encoding: chunked, chunked'],
        'chunked twice, two lines': ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'],
        'chunked then identity': ['Transfer-Encoding: chunked, identity'],
        'identity': ['Transfer-Encoding: identity'],
        'xchunked': ['Transfer-Encoding: xchunked'],
        'chunkedx': ['Transfer-Encoding: chunkedx'],
        'quoted': ['Transfer-Encoding: "chunked"'],
        'with parameter': ['Transfer-Encoding: chunked;q=1'],
        'vertical tab before': ['Transfer-Encoding: \x0bchunked'],
        'form feed after': ['Transfer-Encoding: chunked\x0c'],
        'empty coding': ['Transfer-Encoding: '],
        'empty element': ['Transfer-Encoding: ,chunked'],
        'folded value': ['X-A: b', ' folded'],
        'folded transfer coding': ['Transfer-Encoding:', ' chunked'],
        'folded with a tab': ['X-A: b', '\tfolded'],
        'space before the colon': ['Content-Length : 4'],
        'tab before the colon': ['Transfer-Encoding\t: chunked'],
        'space before the name': [' Content-Length: 4'],
        'space inside the name': ['Content Length: 4'],
        'no colon': ['Content-Length 4'],
        'no name': [': 4'],
        'NUL in a value': ['X-A: a\0b'],
        'NUL in a name': ['X\0A: b'],
        'bare CR in a value': ['X-A: a\rTransfer-Encoding: chunked'],
        'control character in a value': ['X-A: a\x01b'],
        'DEL in a value': ['X-A: a\x7fb'],
        'non-ASCII name': ['Content-Length\xe9: 4'],
        'bracket in a name': ['X[A]: b'],
    };
    for (const [name, lines] of Object.entries(variants)) {
        test(`L1: ${name}`, async () => {
            const stream = await freshStream();
            const more = lines.some((line) => /length|encoding/i.test(line)) ? [] : ['Content-Length: 4'];
            await assertRefused(head('POST', stream.path,
                                     ['Content-Type: text/plain', ...lines, ...more]) +
                                `0\r\n\r\n${hidden}`, [400, 501]);
            const reply = await stream.get();
            assert.equal(reply.text, '', 'nothing was appended');
        });
    }

    const rawVariants = {
        'bare LF after the request line': (p) => `GET ${p} HTTP/1.1\nHost: x\r\n\r\n`,
        'bare LF between headers': (p) => `GET ${p} HTTP/1.1\r\nHost: x\nX-A: b\r\n\r\n`,
        'bare LF everywhere': (p) => `GET ${p} HTTP/1.1\nHost: x\n\n`,
        'bare CR after the request line': (p) => `GET ${p} HTTP/1.1\rHost: x\r\r`,
        'first header line folded': (p) => `GET ${p} HTTP/1.1\r\n Host: x\r\n\r\n`,
        'no Host': (p) => `GET ${p} HTTP/1.1\r\n\r\n`,
        'two Hosts': (p) => `GET ${p} HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n`,
        'no version': (p) => `GET ${p}\r\n\r\n`,
        'two spaces after the method': (p) => `GET  ${p} HTTP/1.1\r\nHost: x\r\n\r\n`,
        'two spaces before the version': (p) => `GET ${p}  HTTP/1.1\r\nHost: x\r\n\r\n`,
        'tab for space': (p) => `GET\t${p}\tHTTP/1.1\r\nHost: x\r\n\r\n`,
        'space in the target': (p) => `GET ${p} a HTTP/1.1\r\nHost: x\r\n\r\n`,
        'leading space': (p) => ` GET ${p} HTTP/1.1\r\nHost: x\r\n\r\n`,
        'NUL in the target': (p) => `GET ${p}\0 HTTP/1.1\r\nHost: x\r\n\r\n`,
        'lower-case http': (p) => `GET ${p} http/1.1\r\nHost: x\r\n\r\n`,
        'HTTP/1.1 with space after': (p) => `GET ${p} HTTP/1.1 \r\nHost: x\r\n\r\n`,
        'HTTP/11.1': (p) => `GET ${p} HTTP/11.1\r\nHost: x\r\n\r\n`,
        'HTTP/1.': (p) => `GET ${p} HTTP/1.\r\nHost: x\r\n\r\n`,
        'empty method': (p) => ` ${p} HTTP/1.1\r\nHost: x\r\n\r\n`,
        'method with a comma': (p) => `GE,T ${p} HTTP/1.1\r\nHost: x\r\n\r\n`,
        'target without a slash': () => 'GET stream HTTP/1.1\r\nHost: x\r\n\r\n',
        'binary': () => '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n',
    };
    for (const [name, make] of Object.entries(rawVariants)) {
        test(`L1: ${name}`, async () => {
            const stream = await freshStream();
            await assertRefused(make(stream.path), [400, 505]);
        });
    }

    test('L1: HTTP/2 preface and other versions get 400 or 505', async () => {
        const stream = await freshStream();
        await assertRefused('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', [400, 505]);
        await assertRefused(`GET ${stream.path} HTTP/2.0\r\nHost: x\r\n\r\n`, [400, 505]);
        await assertRefused(`GET ${stream.path} HTTP/0.9\r\nHost: x\r\n\r\n`, [400, 505]);
    });

    test('L1: white space around the one good transfer coding is fine', async () => {
        const stream = await freshStream();
        for (const line of ['Transfer-Encoding:  chunked ', 'transfer-encoding:chunked',
                            'TRANSFER-ENCODING: Chunked', 'Transfer-Encoding:\tchunked\t']) {
            const reply = await exchange(server, head('POST', stream.path,
                ['Content-Type: text/plain', line]) + '1\r\nx\r\n0\r\n\r\n');
            assert.equal(reply.status, 204, `${line}: ${reply.text}`);
        }
        assert.equal((await stream.get()).text, 'xxxx');
    });
});

describe('L2: the chunked decoder', () => {
    const post = (stream, body) => head('POST', stream.path,
        ['Content-Type: text/plain', 'Transfer-Encoding: chunked']) + body;
    const bad = {
        'size of sixteen Fs': 'FFFFFFFFFFFFFFFF\r\nx',
        'size of seventeen digits': '10000000000000001\r\nx',
        'size of 2^63': '8000000000000000\r\nx',
        'negative size': '-1\r\nx\r\n0\r\n\r\n',
        'plus sign': '+1\r\nx\r\n0\r\n\r\n',
        'letter after the size': '1g\r\nx\r\n0\r\n\r\n',
        '0x prefix': '0x1\r\nx\r\n0\r\n\r\n',
        'empty size': '\r\nx\r\n0\r\n\r\n',
        'space before the size': ' 1\r\nx\r\n0\r\n\r\n',
        'extension without a size': ';a=b\r\nx\r\n0\r\n\r\n',
        'huge extension': `1;a=${'b'.repeat(70_000)}\r\nx\r\n0\r\n\r\n`,
        'no CRLF after the data': '1\r\nxy\r\n0\r\n\r\n',
        'LF after the data': '1\r\nx\n0\r\n\r\n',
        'CR only after the data': '1\r\nx\r0\r\n\r\n',
        'LF after the size': '1\nx\r\n0\r\n\r\n',
        'CR and a letter after the size': '1\rzx\r\n0\r\n\r\n',
        'bad trailer line': '1\r\nx\r\n0\r\nno colon\r\n\r\n',
        'NUL in an extension': '1;\0\r\nx\r\n0\r\n\r\n',
        'endless trailer': `1\r\nx\r\n0\r\n${'X-T: yyyyyyyyyyyyyyyyyyyyyyy\r\n'.repeat(3000)}\r\n`,
        'trailer line without end': `1\r\nx\r\n0\r\nX-T: ${'y'.repeat(70_000)}\r\n\r\n`,
    };
    for (const [name, body] of Object.entries(bad)) {
        test(`L2: ${name} is refused and nothing appended`, async () => {
            const stream = await freshStream();
            await assertRefused(post(stream, body), [400, 413, 431]);
            assert.equal((await stream.get()).text, '');
        });
    }

    test('L2: extensions, trailers, upper-case and zero-padded sizes are fine', async () => {
        const stream = await freshStream();
        const raw = await Raw.open(server);
        raw.send(post(stream, '1;a=b;c="d"\r\na\r\n0000000A\r\n0123456789\r\n00\r\nX-Trailer: 1\r\n\r\n'));
        assert.equal((await raw.response()).status, 204);
        raw.send(post(stream, 'a\r\nabcdefghij\r\n0\r\n\r\n'));
        assert.equal((await raw.response()).status, 204);
        raw.destroy();
        assert.equal((await stream.get()).text, 'a0123456789abcdefghij');
    });

    test('L2: one byte per packet gives the same result', async () => {
        const stream = await freshStream();
        const raw = await Raw.open(server);
        for (const byte of Buffer.from(post(stream, '3;x=y\r\nabc\r\n2\r\n\r\n\r\n0\r\nA: b\r\n\r\n'))) {
            await raw.sendAll(Buffer.from([byte]));
        }
        assert.equal((await raw.response()).status, 204);
        raw.destroy();
        assert.equal((await stream.get()).text, 'abc\r\n');
    });

    test('L2: a body cut off in the middle appends nothing', async () => {
        const stream = await freshStream();
        for (const part of ['5\r\nab', '2\r\nab\r\n', '2\r\nab\r\n0\r\n']) {
            const raw = await Raw.open(server);
            await raw.sendAll(Buffer.from(post(stream, part)));
            raw.socket.end();
            await raw.rest();
            raw.destroy();
        }
        const raw = await Raw.open(server);
        await raw.sendAll(Buffer.from(head('POST', stream.path,
            ['Content-Type: text/plain', 'Content-Length: 10']) + 'short'));
        raw.socket.end();
        await raw.rest();
        raw.destroy();
        const reply = await stream.get();
        assert.equal(reply.text, '');
        assert.equal((await stream.head()).headers['stream-next-offset'], reply.next);
    });

    test('L2: an empty chunked body is an empty body', async () => {
        const stream = await freshStream();
        const reply = await exchange(server, post(stream, '0\r\n\r\n'));
        assert.equal(reply.status, 400);
        const close = await exchange(server, head('POST', stream.path,
            ['Stream-Closed: true', 'Transfer-Encoding: chunked']) + '0\r\n\r\n');
        assert.equal(close.status, 204);
    });
});

describe('requests in pieces and in packs', () => {
    test('L16: a head that comes one byte at a time is answered', async () => {
        const stream = await freshStream('data');
        const raw = await Raw.open(server);
        for (const byte of Buffer.from(head('GET', `${stream.path}?offset=-1`, ['X-A: b']))) {
            await raw.sendAll(Buffer.from([byte]));
        }
        const reply = await raw.response();
        assert.equal(reply.text, 'data');
        raw.destroy();
    });

    test('L23: forty mixed requests pipelined in one packet are answered in order', async () => {
        const stream = await freshStream();
        const raw = await Raw.open(server);
        let packet = '';
        for (let i = 0; i < 20; i++) {
            packet += head('POST', stream.path, ['Content-Type: text/plain', 'Content-Length: 2']) +
                String(i).padStart(2, '0');
            packet += head('GET', `${stream.path}?offset=-1`);
        }
        raw.send(packet);
        let text = '';
        for (let i = 0; i < 20; i++) {
            assert.equal((await raw.response()).status, 204);
            text += String(i).padStart(2, '0');
            assert.equal((await raw.response()).text, text);
        }
        raw.destroy();
    });

    test('L23: pipelined answers keep their order when the first has to wait', async () => {
        const stream = await freshStream('x');
        const tail = (await stream.head()).next;
        const raw = await Raw.open(server);
        raw.send(head('GET', `${stream.path}?offset=${tail}&live=long-poll`) +
                 head('GET', `${stream.path}?offset=-1`) + head('HEAD', stream.path));
        await stream.append('y');
        const first = await raw.response();
        assert.equal(first.status, 200);
        assert.equal(first.text, 'y');
        assert.equal((await raw.response()).text, 'xy');
        assert.equal((await raw.response('HEAD')).status, 200);
        raw.destroy();
    });

    test('L23: empty lines before a request are ignored', async () => {
        const stream = await freshStream('x');
        const reply = await exchange(server, '\r\n' + head('GET', `${stream.path}?offset=-1`));
        assert.equal(reply.text, 'x');
    });

    test('L23: Connection: close is obeyed, in any case and in a list', async () => {
        const stream = await freshStream('x');
        for (const line of ['Connection: close', 'connection: Close', 'Connection: foo, close']) {
            const raw = await Raw.open(server);
            raw.send(head('GET', `${stream.path}?offset=-1`, [line]));
            const reply = await raw.response();
            assert.equal(reply.text, 'x');
            assert.match(reply.headers.connection, /close/i);
            const { extra, reset } = await raw.endOfConnection();
            assert.equal(extra, '');
            assert.equal(reset, null);
            raw.destroy();
        }
    });

    test('L23: HTTP/1.0 is served, closes by default and never gets chunks', async () => {
        const stream = await freshStream('x');
        const raw = await Raw.open(server);
        raw.send(`GET ${stream.path}?offset=-1 HTTP/1.0\r\n\r\n`);
        const reply = await raw.response();
        assert.equal(reply.text, 'x');
        assert.equal(reply.headers['transfer-encoding'], undefined);
        assert.equal((await raw.endOfConnection()).extra, '');
        raw.destroy();
        await assertRefused(`POST ${stream.path} HTTP/1.0\r\nContent-Type: text/plain\r\n` +
                            'Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n');
    });

    test('L23: after an error with an unread body the next answer is not mixed up', async () => {
        const raw = await Raw.open(server);
        const body = Buffer.alloc(900 * 1024, 'GET / HTTP/1.1\r\n\r\n');
        raw.send(head('POST', `/v1/stream/${uniqueName('missing')}`,
                      ['Content-Type: text/plain', `Content-Length: ${body.length}`]));
        raw.send(body);
        const reply = await raw.response();
        assert.equal(reply.status, 404);
        if (/close/i.test(reply.headers.connection ?? '')) {
            assert.equal((await raw.endOfConnection()).extra, '');
        } else {
            const stream = await freshStream('x');
            raw.send(head('GET', `${stream.path}?offset=-1`));
            assert.equal((await raw.response()).text, 'x');
        }
        raw.destroy();
    });

    test('L23: a refused big body still lets the client read the answer', async () => {
        const stream = await freshStream();
        for (const framing of ['length', 'chunks']) {
            const raw = await Raw.open(server);
            const size = 10 << 20;
            const lines = ['Content-Type: text/plain'];
            if (framing === 'length') {
                raw.send(head('POST', stream.path, [...lines, `Content-Length: ${size}`]));
                raw.send(Buffer.alloc(size, 'x'));
            } else {
                raw.send(head('POST', stream.path, [...lines, 'Transfer-Encoding: chunked']));
                raw.send(`${size.toString(16)}\r\n`);
                raw.send(Buffer.alloc(size, 'x'));
                raw.send('\r\n0\r\n\r\n');
            }
            const reply = await raw.response();
            assert.equal(reply.status, 413);
            assert.match(reply.headers['content-type'], /problem\+json/);
            raw.destroy();
        }
        assert.equal((await stream.get()).text, '');
    });

    test('L23: Expect: 100-continue is honoured before the body and refused for a bad head', async () => {
        const stream = await freshStream();
        const raw = await Raw.open(server);
        raw.send(head('POST', stream.path,
                      ['Content-Type: text/plain', 'Content-Length: 2', 'Expect: 100-continue']));
        assert.equal((await raw.response()).status, 100);
        raw.send('ok');
        assert.equal((await raw.response()).status, 204);
        raw.destroy();
        const tooBig = await exchange(server, head('POST', stream.path,
            ['Content-Type: text/plain', `Content-Length: ${1 << 30}`, 'Expect: 100-continue']));
        assert.equal(tooBig.status, 413);
        const unknown = await exchange(server, head('POST', stream.path,
            ['Content-Type: text/plain', 'Content-Length: 2', 'Expect: tea']) + 'ok');
        assert.ok([417, 400].includes(unknown.status));
        assert.equal((await stream.get()).text, 'ok');
    });
});

describe('L22: methods', () => {
    for (const method of ['PATCH', 'TRACE', 'get', 'Post', 'PROPFIND', 'FOO', 'M-SEARCH', 'QUERY']) {
        test(`L22: ${method} gets 405 with Allow`, async () => {
            const stream = await freshStream('x');
            const reply = await exchange(server, head(method, stream.path, ['Content-Length: 0']));
            assert.equal(reply.status, 405, reply.text);
            for (const allowed of ['GET', 'HEAD', 'PUT', 'POST', 'DELETE', 'OPTIONS']) {
                assert.match(reply.headers.allow, new RegExp(`\\b${allowed}\\b`));
            }
            assert.equal((await stream.get()).text, 'x');
        });
    }

    test('L22: CONNECT is refused', async () => {
        const reply = await exchange(server, 'CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n');
        assert.ok([400, 405].includes(reply.status), String(reply.status));
    });

    test('L22: OPTIONS * and OPTIONS of a stream are answered without a body', async () => {
        const star = await exchange(server, 'OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n');
        assert.ok([200, 204].includes(star.status), String(star.status));
        assert.equal(star.text, '');
        const reply = await exchange(server, head('OPTIONS', '/v1/stream/any'));
        assert.equal(reply.status, 204);
    });

    test('L22: GET * is refused', async () => {
        const reply = await exchange(server, 'GET * HTTP/1.1\r\nHost: x\r\n\r\n');
        assert.ok([400, 404].includes(reply.status), String(reply.status));
    });

    test('L22: an absolute-form target names the same stream', async () => {
        const stream = await freshStream('x');
        const reply = await exchange(server,
            head('GET', `http://arbe.test${stream.path}?offset=-1`));
        assert.equal(reply.status, 200, reply.text);
        assert.equal(reply.text, 'x');
    });

    test('L22: an absolute-form target without a path means the root', async () => {
        for (const target of ['http://arbe.test', 'http://arbe.test?offset=-1', 'HTTPS://arbe.test:1?']) {
            const reply = await exchange(server, head('GET', target));
            assert.equal(reply.status, 404, `${target}: ${reply.text}`);
        }
        assert.equal((await exchange(server, head('OPTIONS', 'http://arbe.test'))).status, 204);
    });

    test('L22: a long unknown method is refused, not kept in memory', async () => {
        const raw = await Raw.open(server);
        raw.send(`${'A'.repeat(100_000)} / HTTP/1.1\r\nHost: x\r\n\r\n`);
        const reply = await raw.response();
        assert.ok([400, 405, 414, 431, 501].includes(reply.status), String(reply.status));
        raw.destroy();
    });

    test('L22: HEAD has the headers of GET and no body, also for errors', async () => {
        const stream = await freshStream('abc');
        const raw = await Raw.open(server);
        raw.send(head('HEAD', stream.path) + head('HEAD', '/v1/stream/never-made') +
                 head('GET', `${stream.path}?offset=-1`));
        assert.equal((await raw.response('HEAD')).status, 200);
        assert.equal((await raw.response('HEAD')).status, 404);
        assert.equal((await raw.response()).text, 'abc');
        raw.destroy();
    });
});

describe('L10: header names are case-insensitive', () => {
    test('L10: odd cases of every protocol header', async () => {
        const name = `/v1/stream/${uniqueName()}`;
        const raw = await Raw.open(server);
        raw.send(head('PUT', name, ['cOnTeNt-TyPe: text/plain', 'sTrEaM-tTl: 500', 'content-length: 0']));
        assert.equal((await raw.response()).status, 201);
        raw.send(head('HEAD', name));
        assert.equal((await raw.response('HEAD')).headers['stream-ttl'], '500');
        raw.send(head('POST', name, ['CONTENT-TYPE: text/plain', 'PRODUCER-ID: p', 'producer-epoch: 0',
                                     'pRODUCER-sEQ: 0', 'STREAM-SEQ: a', 'CONTENT-LENGTH: 1']) + 'x');
        const first = await raw.response();
        assert.equal(first.status, 200);
        assert.equal(first.headers['producer-seq'], '0');
        raw.send(head('POST', name, ['content-type: text/plain', 'stream-seq: a', 'content-length: 1']) + 'y');
        assert.equal((await raw.response()).status, 409);
        raw.send(head('POST', name, ['STREAM-CLOSED: TRUE', 'content-length: 0']));
        const closed = await raw.response();
        assert.equal(closed.status, 204);
        assert.equal(closed.headers['stream-closed'], 'true');
        raw.send(head('GET', `${name}?offset=-1`));
        const read = await raw.response();
        raw.send(head('GET', `${name}?offset=-1`, [`IF-NONE-MATCH: ${read.headers.etag}`]));
        assert.equal((await raw.response()).status, 304);
        raw.destroy();
    });

    test('L10: Stream-Closed counts only with the value true', async () => {
        const stream = await freshStream();
        for (const value of ['false', 'yes', '1', '', 'truee', 'true, true', '"true"']) {
            assert.equal((await stream.post('x', { 'Stream-Closed': value })).status, 204, value);
        }
        assert.equal((await stream.post('x', { 'Stream-Closed': 'TrUe' })).status, 204);
        assert.equal((await stream.head()).closed, true);
        assert.equal((await stream.get()).text, 'xxxxxxxx');
    });
});

describe('caps of a request head', () => {
    test('L14: a request target over 8 KiB gets 414', async () => {
        for (const size of [9 * 1024, 15 * 1024, 64 * 1024, 1 << 20]) {
            const raw = await Raw.open(server);
            raw.send(head('GET', `/v1/stream/${'a'.repeat(size)}`));
            const reply = await raw.response();
            assert.ok(reply.status === 414 || (size > 16 * 1024 && reply.status === 431),
                      `${size}: ${reply.status}`);
            raw.destroy();
        }
        const stream = await freshStream('x');
        const reply = await stream.get(`offset=-1&pad=${'p'.repeat(7000)}`);
        assert.equal(reply.text, 'x', 'a long query under the cap is fine');
    });

    test('L16: a header block over 16 KiB gets 431', async () => {
        const stream = await freshStream('x');
        for (const lines of [[`X-A: ${'a'.repeat(17_000)}`], [`X-A: ${'a'.repeat(1 << 20)}`],
                             Array.from({ length: 60 }, (_, i) => `X-${i}: ${'a'.repeat(400)}`)]) {
            const raw = await Raw.open(server);
            raw.send(head('GET', stream.path, lines));
            const reply = await raw.response();
            assert.equal(reply.status, 431);
            assert.match(reply.headers.connection, /close/i);
            raw.destroy();
        }
        const good = await exchange(server,
            head('GET', `${stream.path}?offset=-1`, [`X-A: ${'a'.repeat(14_000)}`]));
        assert.equal(good.text, 'x');
    });

    test('L16: more than 100 headers get 431', async () => {
        const stream = await freshStream('x');
        const many = (count) => Array.from({ length: count }, (_, i) => `X-${i}: a`);
        assert.equal((await exchange(server, head('GET', stream.path, many(101)))).status, 431);
        assert.equal((await exchange(server, head('GET', stream.path, many(5000)))).status, 431);
        assert.equal((await exchange(server, head('GET', stream.path, many(90)))).status, 200);
    });

    test('L1: a protocol header given twice is refused or read as a list, never half of it', async () => {
        const stream = await freshStream();
        const twice = (a, b) => exchange(server, head('POST', stream.path,
            ['Content-Type: text/plain', 'Content-Length: 1', a, b]) + 'x');
        for (const pair of [['Producer-Seq: 0', 'Producer-Seq: 1'],
                            ['Producer-Epoch: 0', 'Producer-Epoch: 0']]) {
            const reply = await exchange(server, head('POST', stream.path,
                ['Content-Type: text/plain', 'Content-Length: 1', 'Producer-Id: p',
                 ...(pair[0].includes('Seq') ? ['Producer-Epoch: 0'] : ['Producer-Seq: 0']),
                 ...pair]) + 'x');
            assert.equal(reply.status, 400, pair.join());
        }
        const type = await twice('Content-Type: text/plain', 'X-A: b');
        assert.ok([400, 409].includes(type.status), String(type.status));
        const ttl = await exchange(server, head('PUT', `/v1/stream/${uniqueName()}`,
            ['Stream-TTL: 5', 'Stream-TTL: 6', 'Content-Length: 0']));
        assert.equal(ttl.status, 400);
        assert.equal((await stream.get()).text, '');
    });

    test('L11: every error says what was wrong in a problem document', async () => {
        const missing = new Stream(server, uniqueName('missing'));
        assertProblem(await missing.get(), 404);
        assertProblem(await missing.post('x'), 404);
        assertProblem(await missing.remove(), 404);
        const stream = await freshStream('x');
        assertProblem(await stream.get('offset=%20'), 400);
        assertProblem(await stream.post('x', { 'Content-Type': 'text/html' }), 409);
        assertProblem(await stream.post(Buffer.alloc((1 << 20) + 1)), 413);
        assertProblem(await stream.send('PATCH'), 405);
        assert.equal(stream.type, TEXT);
    });
});
