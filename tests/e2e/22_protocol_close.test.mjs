// Tier 20: closing (D) and what readers are told of it, in every mode.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { JSON_TYPE, OCTETS, Stream, TEXT, producer, uniqueName } from './lib/http.mjs';
import { Follower } from './lib/follow.mjs';
import { Raw, exchange, head } from './lib/raw.mjs';
import { startServer } from './lib/server.mjs';
import { Sse } from './lib/sse.mjs';
import { inParallel, rounds } from './lib/wait.mjs';

const server = await startServer();
after(() => server.dispose());

async function freshStream(type = TEXT, body, headers) {
    const stream = new Stream(server, uniqueName(), type);
    await stream.create(headers, body);
    return stream;
}

describe('D: close', () => {
    test('D1: closing changes the ETag at the start and at the tail', async () => {
        for (const type of [TEXT, JSON_TYPE, OCTETS]) {
            for (const body of ['[1]', undefined]) {
                const stream = await freshStream(type, body);
                const { next } = await stream.head();
                const start = await stream.get();
                const tail = await stream.from(next);
                await stream.close();
                for (const [query, open] of [['offset=-1', start], [`offset=${next}`, tail]]) {
                    const reply = await stream.get(query, { 'If-None-Match': open.headers.etag });
                    assert.equal(reply.status, 200, 'the open-time ETag does not match');
                    assert.ok(reply.closed);
                    assert.notEqual(reply.headers.etag, open.headers.etag);
                    const same = await stream.get(query, { 'If-None-Match': reply.headers.etag });
                    assert.equal(same.status, 304);
                }
            }
        }
    });

    test('D2: an append to a closed stream: 409, Stream-Closed, the final offset', async () => {
        const stream = await freshStream(TEXT, 'abc');
        const closing = await stream.close();
        assert.equal(closing.status, 204);
        assert.ok(closing.closed);
        for (const headers of [{}, { 'Content-Type': 'text/html' }, { 'Stream-Seq': 'a' }, producer('p', 0, 0),
                               producer('p', 0, 7)]) {
            const reply = await stream.post('x', headers);
            assert.equal(reply.status, 409, JSON.stringify(headers));
            assert.ok(reply.closed);
            assert.equal(reply.next, closing.next);
            assert.match(reply.headers['cache-control'], /no-store/, 'R10');
        }
        assert.equal((await stream.get()).text, 'abc');
    });

    test('D4: close-only does not care about a content type', async () => {
        const types = [[], ['Content-Type: text/html'], ['Content-Type: garbage'], ['Content-Type:'],
                       ['Content-Type: application/json']];
        for (const type of types) {
            for (const length of [['Content-Length: 0'], ['Transfer-Encoding: chunked']]) {
                const stream = await freshStream(JSON_TYPE);
                const body = length[0].startsWith('T') ? '0\r\n\r\n' : '';
                const send = (lines) => exchange(server, head('POST', stream.path, [...type, ...length, ...lines]) + body);
                assert.equal((await send([])).status, 400, 'no body and no Stream-Closed');
                assert.equal((await send(['Stream-Closed: false'])).status, 400);
                for (let i = 0; i < 3; i++) {
                    const reply = await send(['Stream-Closed: true']);
                    assert.equal(reply.status, 204, type.join());
                    assert.equal(reply.headers['stream-closed'], 'true');
                    assert.ok(reply.next);
                }
            }
        }
        assert.equal((await new Stream(server, uniqueName('missing')).close()).status, 404);
    });

    test('D4: a POST without a length is an empty body', async () => {
        const stream = await freshStream();
        assert.equal((await exchange(server, head('POST', stream.path))).status, 400);
        assert.equal((await exchange(server, head('POST', stream.path, ['Stream-Closed: true']))).status, 204);
    });

    test('D5: append-and-close on a closed stream is 409 with Stream-Closed', async () => {
        const stream = await freshStream(TEXT, 'abc');
        assert.equal((await stream.post('last', { 'Stream-Closed': 'true' })).status, 204);
        const reply = await stream.post('last', { 'Stream-Closed': 'true' });
        assert.equal(reply.status, 409);
        assert.ok(reply.closed);
        assert.equal((await stream.get()).text, 'abclast');
    });

    test('D5: a refused append-and-close leaves the stream open', async () => {
        const stream = await freshStream(JSON_TYPE);
        for (const [body, headers] of [['{', {}], ['[]', {}], ['1', { 'Content-Type': 'text/plain' }],
                                       ['1', producer('p', 0, 3)], ['1', producer('p', 'x', 0)]]) {
            const reply = await stream.post(body, { 'Stream-Closed': 'true', ...headers });
            assert.ok([400, 409].includes(reply.status), `${body}: ${reply.status}`);
            assert.equal((await stream.head()).closed, false);
        }
        await stream.append('1');
        assert.equal((await stream.get()).text, '[1]');
    });

    test('D9: EOF in each mode once closed', async () => {
        const stream = await freshStream(TEXT, 'abc');
        await stream.close();
        const { next } = await stream.head();
        const start = await stream.get();
        assert.ok(start.closed && start.upToDate);
        const tail = await stream.from(next);
        assert.equal(tail.status, 200);
        assert.equal(tail.text, '');
        assert.ok(tail.closed && tail.upToDate);
        const poll = await stream.poll(next);
        assert.equal(poll.status, 204);
        assert.ok(poll.closed && poll.upToDate);
        const pollStart = await stream.poll('-1');
        assert.equal(pollStart.status, 200);
        assert.ok(pollStart.closed);
        for (const [offset, events] of [['-1', 2], [next, 1]]) {
            const sse = await Sse.open(stream, offset);
            await sse.end();
            assert.equal(sse.events.length, events);
            const control = JSON.parse(sse.events.at(-1).data);
            assert.equal(control.streamClosed, true);
            assert.equal(control.streamNextOffset, next);
        }
    });

    test('D10: the four combinations of PUT and closure', async () => {
        const open = {};
        const closed = { 'Stream-Closed': 'true' };
        for (const existing of [open, closed]) {
            for (const asked of [open, closed]) {
                const stream = await freshStream(TEXT, 'abc', existing);
                const reply = await stream.put(asked);
                assert.equal(reply.status, existing === asked ? 200 : 409);
                assert.equal((await stream.head()).closed, existing === closed);
                assert.equal((await stream.get()).text, 'abc');
            }
        }
        const later = await freshStream(TEXT, 'abc');
        await later.close();
        assert.equal((await later.put()).status, 409, 'closed later');
        assert.equal((await later.put(closed)).status, 200);
        const answer = await new Stream(server, uniqueName()).put(closed, 'x');
        assert.equal(answer.status, 201);
        assert.ok(answer.closed);
    });

    test('D11: a duplicate shows the true state, not the header of the request', async () => {
        const stream = await freshStream();
        await stream.append('a', producer('p', 0, 0));
        const reply = await stream.post('a', { ...producer('p', 0, 0), 'Stream-Closed': 'true' });
        assert.equal(reply.status, 204);
        assert.equal(reply.headers['stream-closed'], undefined);
        assert.equal((await stream.head()).closed, false);
        await stream.append('b', producer('p', 0, 1));
    });

    test('D12: a producer closes and its retry is a success', async () => {
        const stream = await freshStream();
        await stream.append('a', producer('p', 0, 0));
        const closing = { ...producer('p', 0, 1), 'Stream-Closed': 'true' };
        const first = await stream.post('last', closing);
        assert.equal(first.status, 200);
        assert.ok(first.closed);
        for (let i = 0; i < 2; i++) {
            const again = await stream.post('last', closing);
            assert.equal(again.status, 204);
            assert.ok(again.closed);
            assert.equal(again.next, first.next);
        }
        for (const headers of [producer('p', 0, 2), producer('q', 0, 0), producer('p', 1, 0)]) {
            const other = await stream.post('x', headers);
            assert.equal(other.status, 409, JSON.stringify(headers));
            assert.ok(other.closed);
        }
        assert.equal((await stream.get()).text, 'alast');
    });

    test('D12: close-only by a producer, retried', async () => {
        const stream = await freshStream(TEXT, 'a');
        const closing = { ...producer('p', 0, 0), 'Stream-Closed': 'true' };
        const first = await stream.send('POST', { headers: closing });
        assert.ok([200, 204].includes(first.status));
        assert.ok(first.closed);
        const again = await stream.send('POST', { headers: closing });
        assert.equal(again.status, 204);
        assert.ok(again.closed);
        await server.crashAndRestart();
        assert.equal((await stream.send('POST', { headers: closing })).status, 204);
        assert.equal((await stream.post('x', producer('p', 0, 1))).status, 409);
    });

    test('D13: the sentence of a 409 names the reason', async () => {
        const stream = await freshStream();
        await stream.append('a', { 'Stream-Seq': 'b' });
        assert.match((await stream.post('x', { 'Stream-Seq': 'a' })).json().detail, /sequence/i);
        assert.match((await stream.post('x', { 'Content-Type': 'text/html' })).json().detail, /content.type/i);
        await stream.close();
        assert.match((await stream.post('x')).json().detail, /closed/i);
    });

    test('D8: closed stays closed over kills and restarts', async () => {
        const stream = await freshStream(TEXT, 'abc');
        await stream.post('last', { 'Stream-Closed': 'true' });
        const { next } = await stream.head();
        for (const again of ['crashAndRestart', 'restart', 'crashAndRestart']) {
            await server[again]();
            const reply = await stream.get();
            assert.equal(reply.text, 'abclast');
            assert.ok(reply.closed);
            assert.equal(reply.next, next);
            assert.equal((await stream.post('x')).status, 409);
        }
    });
});

describe('D7: the last message and the close are one step for live readers', () => {
    test('D7: long-poll gets the bytes and the close together', async () => {
        await inParallel(8, Array.from({ length: rounds(200) }, (_, i) => async () => {
            const stream = await freshStream(i % 2 ? JSON_TYPE : TEXT);
            const { next } = await stream.head();
            const waiting = stream.poll(next);
            await stream.append('"last"', { 'Stream-Closed': 'true' });
            const reply = await waiting;
            assert.equal(reply.status, 200);
            assert.equal(reply.text, i % 2 ? '["last"]' : '"last"');
            assert.ok(reply.closed);
            assert.ok(reply.upToDate);
        }));
    });

    test('D7: SSE gets data, then the control with the close, then the end', async () => {
        await inParallel(8, Array.from({ length: rounds(200) }, (_, i) => async () => {
            const stream = await freshStream(i % 2 ? OCTETS : TEXT);
            const sse = await Sse.open(stream, i % 3 ? 'now' : '-1');
            await sse.control();
            const { next } = await stream.append('last', { 'Stream-Closed': 'true' });
            assert.equal(await sse.data(), i % 2 ? Buffer.from('last').toString('base64') : 'last');
            const control = await sse.control();
            assert.equal(control.streamNextOffset, next);
            assert.equal(control.streamClosed, true);
            await sse.end();
            assert.equal(sse.events.length, 3);
        }));
    });

    test('D7: close-only ends waiting readers at once', async () => {
        for (let i = 0; i < rounds(50); i++) {
            const stream = await freshStream(TEXT, 'a');
            const { next } = await stream.head();
            const waiting = stream.poll(next);
            const sse = await Sse.open(stream, next);
            await sse.control();
            await stream.close();
            const reply = await waiting;
            assert.equal(reply.status, 204);
            assert.ok(reply.closed && reply.upToDate);
            assert.equal(reply.next, next);
            const control = await sse.control();
            assert.equal(control.streamClosed, true);
            await sse.end();
        }
    });

    test('D7: a reader that follows a burst and its close loses nothing', async () => {
        await inParallel(4, Array.from({ length: rounds(40) }, () => async () => {
            const stream = await freshStream();
            const follower = new Follower(stream);
            const followed = follower.untilClosed();
            const sse = await Sse.open(stream, '-1');
            for (let i = 0; i < 10; i++) {
                await stream.append(`${i},`);
            }
            await stream.append('end', { 'Stream-Closed': 'true' });
            await sse.end();
            const wanted = '0,1,2,3,4,5,6,7,8,9,end';
            assert.equal((await followed).toString(), wanted);
            assert.equal(sse.events.filter((e) => e.event === 'data').map((e) => e.data).join(''), wanted);
            for (const [i, event] of sse.events.entries()) {
                if (event.event === 'control' && JSON.parse(event.data).streamClosed) {
                    assert.equal(i, sse.events.length - 1);
                }
            }
        }));
    });
});

describe('R2: append-and-close is one step among writers', () => {
    test('R2: a racing append is before the last bytes or refused', async () => {
        const one = await Raw.open(server);
        const two = await Raw.open(server);
        for (let i = 0; i < rounds(1000); i++) {
            const closeOnly = i % 4 === 3;
            const stream = await freshStream();
            const body = closeOnly ? '' : 'final';
            const closing = head('POST', stream.path, ['Content-Type: text/plain',
                `Content-Length: ${body.length}`, 'Stream-Closed: true']) + body;
            const racing = head('POST', stream.path, ['Content-Type: text/plain', 'Content-Length: 5']) + 'racer';
            if (i % 2) {
                one.send(closing);
                two.send(racing);
            } else {
                two.send(racing);
                one.send(closing);
            }
            const [closed, raced] = await Promise.all([one.response(), two.response()]);
            assert.equal(closed.status, 204);
            const read = await stream.get();
            assert.ok(read.closed);
            assert.equal(read.text, raced.status === 204 ? `racer${body}` : body);
            assert.equal(read.next, closed.next);
            assert.equal((await stream.head()).next, closed.next);
            if (raced.status !== 204) {
                assert.equal(raced.status, 409);
                assert.equal(raced.headers['stream-closed'], 'true');
                assert.equal(raced.next, closed.next);
            }
        }
        one.destroy();
        two.destroy();
    });

    test('R2: twenty closers with different bodies: one wins', async () => {
        for (let round = 0; round < rounds(20); round++) {
            const stream = await freshStream();
            const replies = await Promise.all(Array.from({ length: 20 }, (_, i) =>
                stream.post(`body ${i}`, { 'Stream-Closed': 'true' })));
            const won = replies.findIndex((reply) => reply.status === 204);
            assert.equal(replies.filter((reply) => reply.status === 204).length, 1);
            assert.equal((await stream.get()).text, `body ${won}`);
        }
    });
});
