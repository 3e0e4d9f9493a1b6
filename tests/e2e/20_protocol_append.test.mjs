// Tier 20: create, append and read: what is acknowledged is there, once, in
// order, and the offset of a place is the same text on every path.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import {
    JSON_TYPE, OCTETS, Stream, TEXT, assertIncreasing, producer, uniqueName,
} from './lib/http.mjs';
import { Follower } from './lib/follow.mjs';
import { Raw, exchange, head } from './lib/raw.mjs';
import { startServer } from './lib/server.mjs';
import { Sse } from './lib/sse.mjs';
import { inParallel, randomFrom, rounds } from './lib/wait.mjs';

const server = await startServer();
after(() => server.dispose());

async function freshStream(type = TEXT, body, headers) {
    const stream = new Stream(server, uniqueName(), type);
    await stream.create(headers, body);
    return stream;
}

describe('A: appends', () => {
    test('A1: fifty parallel appends get fifty different offsets', async () => {
        const stream = await freshStream(OCTETS);
        const random = randomFrom(1);
        const bodies = Array.from({ length: 50 }, (_, i) => Buffer.alloc(random.between(1024, 4096), 65 + i % 58));
        bodies.forEach((body, i) => body.writeUInt32BE(i, 0));
        const total = bodies.reduce((sum, body) => sum + body.length, 0);
        const follower = new Follower(stream, (await stream.head()).next);
        const followed = follower.untilBytes(total);
        const replies = await Promise.all(bodies.map((body) => stream.append(body)));
        const nexts = replies.map((reply) => reply.next).sort();
        assertIncreasing(nexts);
        assert.equal((await stream.head()).next, nexts.at(-1));
        const all = (await stream.get()).body;
        assert.equal(all.length, total);
        const order = replies.map((reply, i) => [reply.next, bodies[i]]).sort((a, b) => (a[0] < b[0] ? -1 : 1));
        assert.deepEqual(all, Buffer.concat(order.map(([, body]) => body)));
        for (let i = 0; i < order.length; i++) {
            const rest = (await stream.from(order[i][0])).body;
            assert.deepEqual(rest, Buffer.concat(order.slice(i + 1).map(([, body]) => body)));
        }
        assert.deepEqual(await followed, all);
    });

    test('A1: parallel appends to many streams do not mix', async () => {
        const streams = await Promise.all(Array.from({ length: 20 }, () => freshStream()));
        await inParallel(64, streams.flatMap((stream, s) => Array.from({ length: 25 }, (_, i) => () =>
            stream.append(`${s}:${i};`))));
        for (const [s, stream] of streams.entries()) {
            const parts = (await stream.get()).text.split(';').slice(0, -1);
            assert.deepEqual(parts.toSorted(), Array.from({ length: 25 }, (_, i) => `${s}:${i}`).toSorted());
        }
    });

    test('A2: a read right after the answer always has the bytes', async () => {
        const stream = await freshStream();
        const writer = await Raw.open(server);
        const reader = await Raw.open(server);
        let { next } = await stream.head();
        for (let i = 0; i < rounds(1000); i++) {
            writer.send(head('POST', stream.path, ['Content-Type: text/plain', 'Content-Length: 4']) +
                        String(i).padStart(4, '0'));
            const wrote = await writer.response();
            assert.equal(wrote.status, 204);
            reader.send(head('GET', `${stream.path}?offset=${next}`));
            const read = await reader.response();
            assert.equal(read.text, String(i).padStart(4, '0'));
            assert.equal(read.next, wrote.next);
            next = wrote.next;
        }
        writer.destroy();
        reader.destroy();
    });

    test('A5: the same token for the same place on every path, in append order', async () => {
        for (const type of [TEXT, JSON_TYPE, OCTETS]) {
            const stream = await freshStream(type);
            const tokens = [(await stream.head()).next];
            for (let i = 0; i < 120; i++) {
                const { next } = await stream.append('1');
                if (i > 12 && i % 20) {
                    tokens.push(next);
                    continue;
                }
                assert.equal((await stream.head()).next, next);
                assert.equal((await stream.get()).next, next);
                assert.equal((await stream.from(tokens.at(-1))).next, next);
                assert.equal((await stream.from(next)).next, next);
                assert.equal((await stream.get('offset=now')).next, next);
                assert.equal((await stream.poll(tokens.at(-1))).next, next);
                const sse = await Sse.open(stream, tokens.at(-1));
                await sse.data();
                assert.equal((await sse.control()).streamNextOffset, next);
                sse.close();
                const live = await Sse.open(stream, 'now');
                assert.equal((await live.control()).streamNextOffset, next);
                live.close();
                assert.equal((await stream.put()).next, next);
                tokens.push(next);
            }
            assertIncreasing(tokens);
            assert.equal(new Set(tokens.map((token) => token.length)).size, 1, 'fixed width');
            for (const token of tokens) {
                assert.match(token, /^[A-Za-z0-9._~-]+$/, 'URL-safe');
                assert.ok(token !== '-1' && token !== 'now');
            }
        }
    });

    test('A5: the tail of an empty stream orders before every other and reads from the start', async () => {
        const stream = await freshStream();
        const empty = await stream.head();
        const { next } = await stream.append('x');
        assert.ok(empty.next < next);
        assert.equal((await stream.from(empty.next)).text, 'x');
    });

    test('A7: an append whose client resets at once is whole and wakes readers, or is not there', async () => {
        for (let i = 0; i < rounds(40); i++) {
            const stream = await freshStream();
            const before = (await stream.head()).next;
            const follower = new Follower(stream, before);
            const first = follower.poll();
            const raw = await Raw.open(server);
            await raw.sendAll(Buffer.from(head('POST', stream.path,
                ['Content-Type: text/plain', 'Content-Length: 6']) + 'reset!'));
            raw.resetNow();
            // Whatever the reader has after another append is the truth; the two may come in any order.
            await stream.append('marker');
            await first;
            const text = (await follower.untilBytes((await stream.get()).body.length)).toString();
            // The server may take up the reset request after all of this: what was read stays as it was.
            const final = (await stream.get()).text;
            assert.ok(['marker', 'reset!marker', 'markerreset!'].includes(final), final);
            assert.ok(final.startsWith(text), `${text}, then ${final}`);
        }
    });

    test('A7: a disconnected append that took hold wakes a waiter without another append', async () => {
        const stream = await freshStream();
        const waiting = stream.poll((await stream.head()).next);
        const raw = await Raw.open(server);
        raw.send(head('POST', stream.path, ['Content-Type: text/plain', 'Content-Length: 5']) + 'hello');
        // The client half-closes after the whole request: it is complete and counts.
        raw.socket.end();
        assert.equal((await waiting).text, 'hello');
        await raw.rest();
        raw.destroy();
    });

    test('A8: twenty thousand one-byte chunks are one append', async () => {
        const stream = await freshStream();
        const count = 20_000;
        const before = await stream.head();
        const raw = await Raw.open(server);
        raw.send(head('POST', stream.path, ['Content-Type: text/plain', 'Transfer-Encoding: chunked']));
        raw.send(`${'1\r\nc\r\n'.repeat(count)}0\r\n\r\n`);
        const reply = await raw.response();
        raw.destroy();
        assert.equal(reply.status, 204);
        const read = await stream.from(before.next);
        assert.equal(read.text, 'c'.repeat(count));
        const sse = await Sse.open(stream, '-1');
        const { parts } = await sse.caughtUp();
        assert.equal(parts.length, 1);
        sse.close();
    });

    test('A8: a body that trickles in does not hold up other writers', async () => {
        const stream = await freshStream();
        const slow = await Raw.open(server);
        slow.send(head('POST', stream.path, ['Content-Type: text/plain', 'Transfer-Encoding: chunked']) +
                  '4\r\nslow\r\n');
        for (let i = 0; i < 5; i++) {
            await stream.append('fast');
        }
        slow.send('0\r\n\r\n');
        assert.equal((await slow.response()).status, 204);
        slow.destroy();
        assert.equal((await stream.get()).text, 'fastfastfastfastfastslow');
    });

    test('A10: delete and create at once: empty, another ETag, old offsets harmless', async () => {
        const stream = await freshStream(TEXT, 'old');
        const old = await stream.get();
        for (let i = 0; i < rounds(50); i++) {
            assert.equal((await stream.remove()).status, 204);
            await stream.create();
            const empty = await stream.get();
            assert.equal(empty.text, '');
            assert.notEqual(empty.headers.etag, old.headers.etag);
            assert.equal(empty.closed, false);
            const stale = await stream.from(old.next);
            assert.ok([200, 400].includes(stale.status));
            assert.equal(stale.status === 200 ? stale.text : '', '');
            await stream.append('old');
        }
    });

    test('A10: a create without appends is there after a restart, clean or not', async () => {
        const clean = await freshStream(JSON_TYPE);
        await server.restart();
        assert.equal((await clean.head()).status, 200);
        const killed = await freshStream(TEXT, undefined, { 'Stream-TTL': '5000' });
        const shut = await freshStream(TEXT, undefined, { 'Stream-Closed': 'true' });
        await server.crashAndRestart();
        assert.equal((await killed.head()).headers['stream-ttl'], '5000');
        assert.equal((await shut.head()).closed, true);
        assert.equal((await clean.get()).text, '[]');
    });
});

describe('D10: create', () => {
    test('D10: PUT answers and the headers of 201 and 200', async () => {
        const stream = new Stream(server, uniqueName(), 'text/plain; charset=utf-8');
        const created = await stream.put({}, 'abc');
        assert.equal(created.status, 201);
        assert.ok(created.headers.location.endsWith(stream.path));
        assert.match(created.headers['content-type'], /^text\/plain/);
        const again = await stream.put();
        assert.equal(again.status, 200);
        assert.equal(again.next, created.next);
        const withBody = await stream.put({}, 'ignored');
        assert.equal(withBody.status, 200);
        assert.equal((await stream.get()).text, 'abc', 'a repeated PUT appends nothing');
        assert.equal((await stream.put({ 'Content-Type': 'text/html' })).status, 409);
        assert.equal((await stream.put({ 'Stream-TTL': '60' })).status, 409);
    });

    test('D10: twenty parallel PUTs make one stream', async () => {
        const stream = new Stream(server, uniqueName());
        const replies = await Promise.all(Array.from({ length: 20 }, (_, i) => stream.put({}, `body ${i}`)));
        const statuses = replies.map((reply) => reply.status);
        assert.equal(statuses.filter((status) => status === 201).length, 1, statuses.join());
        assert.equal(statuses.filter((status) => status === 200).length, 19, statuses.join());
        const winner = statuses.indexOf(201);
        assert.equal((await stream.get()).text, `body ${winner}`);
    });

    test('I8: TTL and expiry are part of the configuration', async () => {
        const ttl = await freshStream(TEXT, undefined, { 'Stream-TTL': '600' });
        assert.equal((await ttl.put({ 'Stream-TTL': '600' })).status, 200);
        assert.equal((await ttl.put({ 'Stream-TTL': '601' })).status, 409);
        assert.equal((await ttl.put()).status, 409);
        const at = '2099-01-01T00:00:00Z';
        assert.equal((await ttl.put({ 'Stream-Expires-At': at })).status, 409);
        const expires = await freshStream(TEXT, undefined, { 'Stream-Expires-At': at });
        assert.equal((await expires.put({ 'Stream-Expires-At': at })).status, 200);
        assert.equal((await expires.put({ 'Stream-Expires-At': '2099-01-01T00:00:01Z' })).status, 409);
        assert.equal((await expires.put()).status, 409);
        assert.equal((await expires.put({ 'Stream-Expires-At': '2099-01-01T01:00:00+01:00' })).status, 200,
                     'the same instant');
    });

    test('L13: content types on PUT and POST', async () => {
        const raw = async (method, path, lines, body = '') => await exchange(server,
            head(method, path, [...lines, `Content-Length: ${body.length}`]) + body);
        const path = () => `/v1/stream/${uniqueName()}`;
        const bare = path();
        assert.equal((await raw('PUT', bare, [])).status, 201);
        assert.equal((await exchange(server, head('HEAD', bare), 'HEAD')).headers['content-type'], OCTETS);
        const empty = path();
        assert.equal((await raw('PUT', empty, ['Content-Type:'])).status, 201);
        assert.equal((await exchange(server, head('HEAD', empty), 'HEAD')).headers['content-type'], OCTETS);
        for (const type of ['garbage', 'text', '/', 'text/', '/plain', 'te xt/plain', 'text/pl ain', 'a/b/c',
                            'text/plain, text/html', ';charset=utf-8', 'text;plain', 'tex\xe9t/plain']) {
            assert.equal((await raw('PUT', path(), [`Content-Type: ${type}`])).status, 400, type);
        }
        const stream = await freshStream();
        assert.equal((await raw('POST', stream.path, [], 'x')).status, 400, 'no type');
        assert.equal((await raw('POST', stream.path, ['Content-Type:'], 'x')).status, 400, 'empty type');
        for (const type of ['garbage', 'text', '/']) {
            const { status } = await raw('POST', stream.path, [`Content-Type: ${type}`], 'x');
            assert.ok([400, 409].includes(status), `${type}: ${status}`);
        }
        assert.equal((await raw('POST', stream.path, ['Content-Type: text/html'], 'x')).status, 409);
        assert.equal((await raw('POST', stream.path, ['Content-Type: text/plainx'], 'x')).status, 409);
        assert.equal((await raw('POST', stream.path, ['Content-Type: text/plai'], 'x')).status, 409);
        for (const type of ['text/plain', 'TEXT/Plain', 'text/plain; charset=utf-8', 'text/plain;a=b;c="d;e"',
                            ' text/plain ', 'text/plain;', 'text/plain ; charset=x']) {
            assert.equal((await raw('POST', stream.path, [`Content-Type: ${type}`], 'x')).status, 204, type);
        }
        assert.equal((await stream.get()).text, 'x'.repeat(7));
    });

    test('L13: the content type of GET is the one it was made with', async () => {
        for (const type of ['text/plain; charset=utf-8', 'Application/JSON', 'image/png', 'x/y;a="b c"']) {
            const stream = await freshStream(type);
            assert.equal((await stream.get()).headers['content-type'].toLowerCase(), type.toLowerCase());
            assert.equal((await stream.head()).headers['content-type'].toLowerCase(), type.toLowerCase());
        }
    });

    test('L11: PUT 201, 200; POST 204, 200 for a producer; DELETE 204', async () => {
        const stream = new Stream(server, uniqueName());
        assert.equal((await stream.put()).status, 201);
        assert.equal((await stream.put()).status, 200);
        assert.equal((await stream.post('x')).status, 204);
        assert.equal((await stream.post('x', producer('p', 0, 0))).status, 200);
        assert.equal((await stream.post('x', producer('p', 0, 0))).status, 204);
        assert.equal((await stream.post('')).status, 400, 'an empty append');
        assert.equal((await stream.remove()).status, 204);
        assert.equal((await stream.remove()).status, 404, 'I14');
    });

    test('B6: bodies come back byte for byte', async () => {
        const stream = await freshStream(OCTETS);
        const all = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
        const zeros = Buffer.alloc(70_000);
        const big = Buffer.alloc(3_000_000, 'abcdefghijk');
        for (const body of [all, zeros, big]) {
            await stream.append(body);
        }
        assert.ok((await stream.readAll()).body.equals(Buffer.concat([all, zeros, big])));
    });
});

describe('M: Stream-Seq', () => {
    test('M1: sequences compare byte by byte', async () => {
        const sequence = async (first, second) => {
            const stream = await freshStream();
            const post = (value, body) => exchange(server, head('POST', stream.path,
                ['Content-Type: text/plain', 'Content-Length: 1', `Stream-Seq: ${value}`]) + body);
            assert.equal((await post(first, 'a')).status, 204, first);
            const reply = await post(second, 'b');
            assert.equal((await stream.get()).text, reply.status === 204 ? 'ab' : 'a');
            if (reply.status !== 204) {
                assert.equal(reply.status, 409);
                assert.match(reply.text, /sequence/i, 'D13');
            }
            return reply.status;
        };
        const utf8 = Buffer.from('é').toString('latin1');
        for (const [low, high] of [['10', '2'], ['09', '9'], ['10', '100'], ['Z', 'a'], ['a', 'b'], ['a', 'aa'],
                                   ['z', utf8], ['9', 'A'], ['0', '00'], ['-1', '0'], ['A', 'a'], ['!', '~'],
                                   ['1e3', '2'], [utf8, `${utf8}a`]]) {
            assert.equal(await sequence(low, high), 204, `${low} then ${high}`);
            assert.equal(await sequence(high, low), 409, `${high} then ${low}`);
        }
        for (const same of ['a', '0', 'z'.repeat(60)]) {
            assert.equal(await sequence(same, same), 409);
        }
    });

    test('M1: a refused sequence leaves the last one as it was', async () => {
        const stream = await freshStream();
        await stream.append('a', { 'Stream-Seq': 'm' });
        assert.equal((await stream.post('x', { 'Stream-Seq': 'a' })).status, 409);
        assert.equal((await stream.post('x', { 'Stream-Seq': 'z', 'Content-Type': 'text/html' })).status, 409);
        assert.equal((await stream.post('', { 'Stream-Seq': 'z' })).status, 400);
        await stream.append('b');
        await stream.append('c', { 'Stream-Seq': 'n' });
        assert.equal((await stream.get()).text, 'abc');
    });

    test('M2: sequences are per stream and survive a kill', async () => {
        const one = await freshStream();
        const two = await freshStream();
        await one.append('a', { 'Stream-Seq': 'm' });
        await two.append('a', { 'Stream-Seq': 'a' });
        await server.crashAndRestart();
        assert.equal((await one.post('x', { 'Stream-Seq': 'm' })).status, 409);
        assert.equal((await one.post('x', { 'Stream-Seq': 'n' })).status, 204);
        assert.equal((await two.post('x', { 'Stream-Seq': 'b' })).status, 204);
        await server.restart();
        assert.equal((await one.post('x', { 'Stream-Seq': 'n' })).status, 409);
    });

    test('M1: twenty parallel writers with the same sequence: one wins', async () => {
        const stream = await freshStream();
        const replies = await Promise.all(Array.from({ length: 20 }, () => stream.post('x', { 'Stream-Seq': 's' })));
        assert.equal(replies.filter((reply) => reply.status === 204).length, 1);
        assert.equal((await stream.get()).text, 'x');
    });
});
