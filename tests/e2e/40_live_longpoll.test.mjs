// Tier 40: long-polling (F): every byte once, woken at once, never told of
// bytes that it did not get.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { JSON_TYPE, Stream, TEXT, uniqueName } from './lib/http.mjs';
import { Follower } from './lib/follow.mjs';
import { Raw, head } from './lib/raw.mjs';
import { startServer } from './lib/server.mjs';
import { inParallel, randomFrom, rounds, sleep } from './lib/wait.mjs';

const server = await startServer();                                       // polls last 30 s
const hasty = await startServer(['--long-poll-timeout', '20ms']);         // polls end at once
after(async () => {
    await server.dispose();
    await hasty.dispose();
});

async function freshStream(type = TEXT, body, on = server) {
    const stream = new Stream(on, uniqueName(), type);
    await stream.create({}, body);
    return stream;
}

// Opens a poll and waits until the server has surely read it: a second request
// on the same connection could be answered only after it, so ask another way.
async function waitingPoll(stream, offset, extra = '') {
    const raw = await Raw.open(stream.server);
    raw.send(head('GET', `${stream.path}?offset=${offset}&live=long-poll${extra}`));
    await stream.head();
    return raw;
}

describe('F1: appends around the deadline', () => {
    test('F1: nothing is skipped or repeated, a 204 stays where it was asked', async () => {
        const random = randomFrom(42);
        await inParallel(8, Array.from({ length: 8 }, (_, lane) => async () => {
            const stream = await freshStream(lane % 2 ? JSON_TYPE : TEXT, undefined, hasty);
            const follower = new Follower(stream, (await stream.head()).next);
            const count = rounds(100);
            const writing = (async () => {
                for (let i = 0; i < count; i++) {
                    await sleep(random.between(14, 26));
                    await stream.append(lane % 2 ? `[${i}]` : `${i};`);
                }
                await stream.close();
            })();
            // Follower.poll() itself checks that a 204 does not move.
            await follower.untilClosed();
            await writing;
            if (lane % 2) {
                const messages = follower.parts.flatMap((part) => JSON.parse(part.toString()));
                assert.deepEqual(messages, Array.from({ length: count }, (_, i) => i));
            } else {
                assert.equal(follower.body.toString(), Array.from({ length: count }, (_, i) => `${i};`).join(''));
            }
            assert.ok(follower.timeouts > 0);
        }));
    });

    test('R8: polls that come and go at a high rate never sleep through data', async () => {
        const stream = await freshStream(TEXT, undefined, hasty);
        const start = (await stream.head()).next;
        const total = rounds(400);
        const followers = Array.from({ length: 24 }, () => new Follower(stream, start));
        const following = followers.map((follower) => follower.untilClosed());
        for (let i = 0; i < total; i++) {
            await stream.append(`${String(i).padStart(4, '0')};`);
            if (i % 10 === 0) {
                await sleep(19);   // let deadlines fall together with the next append
            }
        }
        await stream.close();
        const whole = (await stream.get()).text;
        for (const body of await Promise.all(following)) {
            assert.equal(body.toString(), whole);
        }
    });

    test('F1: now as the place: a timeout tells the tail, and nothing after it is lost', async () => {
        const stream = await freshStream(TEXT, 'old', hasty);
        let stop = false;
        const writing = (async () => {
            for (let i = 0; !stop; i++) {
                await stream.append('n');
                await sleep(7);
            }
        })();
        for (let i = 0; i < rounds(40); i++) {
            const reply = await stream.poll('now');
            if (reply.status === 200) {
                assert.match(reply.text, /^n+$/);
            }
            const rest = await stream.from(reply.next);
            assert.match(rest.text, /^n*$/);
        }
        stop = true;
        await writing;
    });
});

describe('F: waking', () => {
    test('F2: a poll at the tail is woken by the append', async () => {
        const stream = await freshStream(TEXT, 'x');
        for (let i = 0; i < rounds(200); i++) {
            const { next } = await stream.head();
            const raw = await waitingPoll(stream, next);
            const { next: after } = await stream.append(`${i}`);
            const reply = await raw.response();
            assert.equal(reply.status, 200);
            assert.equal(reply.text, `${i}`);
            assert.equal(reply.next, after);
            assert.equal(reply.headers['stream-up-to-date'], 'true', 'F5');
            raw.destroy();
        }
    });

    test('F2: hundreds of polls of one stream are all woken by one append', async () => {
        const stream = await freshStream();
        const { next } = await stream.head();
        const raws = await Promise.all(Array.from({ length: 300 }, () => waitingPoll(stream, next)));
        await stream.append('wake');
        for (const raw of raws) {
            const reply = await raw.response();
            assert.equal(reply.text, 'wake');
            raw.destroy();
        }
    });

    test('F2: polls of different streams are woken each by its own', async () => {
        const streams = await Promise.all(Array.from({ length: 50 }, () => freshStream()));
        const raws = await Promise.all(streams.map(async (stream) => waitingPoll(stream, (await stream.head()).next)));
        for (const [i, stream] of streams.toReversed().entries()) {
            await stream.append(`${i}`);
        }
        for (const [i, raw] of raws.entries()) {
            assert.equal((await raw.response()).text, `${49 - i}`);
            raw.destroy();
        }
    });

    test('F2: a poll behind the tail is answered at once with everything', async () => {
        const stream = await freshStream(TEXT, 'abc');
        const reply = await stream.poll('-1');
        assert.equal(reply.text, 'abc');
        assert.ok(reply.upToDate);
        assert.ok(reply.headers.etag);
    });

    test('F2: a poller that goes away leaves no trace', async () => {
        const stream = await freshStream();
        const { next } = await stream.head();
        for (let i = 0; i < rounds(100); i++) {
            const raw = await waitingPoll(stream, next);
            if (i % 2) {
                raw.resetNow();
            } else {
                raw.destroy();
            }
        }
        await stream.append('x');
        assert.equal((await stream.poll(next)).text, 'x');
    });

    test('F10: a half-closed poller still gets its answer', async () => {
        const stream = await freshStream();
        const raw = await waitingPoll(stream, (await stream.head()).next);
        raw.socket.end();
        await stream.append('x');
        // A client that sent FIN may be treated as gone, but never as something else.
        const bytes = (await raw.rest()).toString('latin1');
        assert.ok(bytes === '' || /^HTTP\/1\.1 200/.test(bytes), bytes.slice(0, 80));
    });

    test('F2: append and close from another poller keep their order', async () => {
        const stream = await freshStream();
        const follower = new Follower(stream);
        const following = follower.untilClosed();
        for (let i = 0; i < 50; i++) {
            await stream.append(`${i};`);
        }
        await stream.append('z', { 'Stream-Closed': 'true' });
        assert.equal((await following).toString(), `${Array.from({ length: 50 }, (_, i) => `${i};`).join('')}z`);
    });
});

describe('F4, F5: cursors and up-to-date', () => {
    test('F4: every live answer has a cursor that is greater than the one sent', async () => {
        const stream = await freshStream(TEXT, 'x', hasty);
        const { next } = await stream.head();
        const first = await stream.poll(next);
        assert.equal(first.status, 204);
        assert.match(first.headers['stream-cursor'], /^\d+$/);
        let cursor = first.headers['stream-cursor'];
        for (let i = 0; i < 5; i++) {
            for (const offset of [next, '-1']) {
                const reply = await stream.poll(offset, `&cursor=${cursor}`);
                const given = BigInt(reply.headers['stream-cursor']);
                assert.ok(given > BigInt(cursor), `${given} after ${cursor}`);
                cursor = String(given);
            }
        }
        const now = BigInt(Math.floor((Date.now() / 1000 - Date.UTC(2024, 9, 9) / 1000) / 20));
        for (const far of [now + 1_000_000n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 63n - 1n, 2n ** 63n]) {
            const reply = await stream.poll(next, `&cursor=${far}`);
            const given = BigInt(reply.headers['stream-cursor']);
            assert.ok(given > far, `${given} after ${far}`);
        }
        const behind = await stream.poll(next, '&cursor=5');
        assert.ok(BigInt(behind.headers['stream-cursor']) >= now - 1n, 'a cursor of long ago gives the present one');
    });

    test('F4: the jitter is not always the same', async () => {
        const stream = await freshStream(TEXT, 'x', hasty);
        const { headers } = await stream.poll('-1');
        const cursor = BigInt(headers['stream-cursor']) + 10_000n;
        const given = new Set();
        for (let i = 0; i < 12; i++) {
            given.add((await stream.poll('-1', `&cursor=${cursor}`)).headers['stream-cursor']);
        }
        assert.ok(given.size > 1, [...given].join());
    });

    test('F4: garbage cursors are no server error', async () => {
        const stream = await freshStream(TEXT, 'x', hasty);
        for (const cursor of ['abc', '-5', '', '9'.repeat(30), '9'.repeat(300), '1.5', '1e9', '0x10', '%00', '%ff', '18446744073709551615',
                              '18446744073709551616', '9223372036854775807', '+1', '00', '%20', 'null', '4294967295',
                              '9007199254740991', '9007199254740992']) {
            for (const offset of ['-1', 'now']) {
                const reply = await stream.poll(offset, `&cursor=${cursor}`);
                assert.ok([200, 204, 400].includes(reply.status), `${cursor}: ${reply.status}`);
                if (reply.status !== 400) {
                    assert.match(reply.headers['stream-cursor'], /^\d+$/);
                }
            }
        }
    });

    test('F5: a 204 has its headers and no body', async () => {
        for (const type of [TEXT, JSON_TYPE]) {
            const stream = await freshStream(type, type === TEXT ? 'x' : '[1]', hasty);
            const { next } = await stream.head();
            const reply = await stream.poll(next);
            assert.equal(reply.status, 204);
            assert.equal(reply.next, next);
            assert.ok(reply.upToDate);
            assert.ok(reply.headers['stream-cursor']);
            assert.match(reply.headers['cache-control'], /no-store/);
            assert.equal(reply.body.length, 0);
            assert.equal(reply.headers['content-length'] ?? '0', '0');
        }
    });

    test('F7: the default wait is under 60 s and --long-poll-timeout sets it', async () => {
        const stream = await freshStream(TEXT, 'x', hasty);
        const before = process.hrtime.bigint();
        assert.equal((await stream.poll('now')).status, 204);
        assert.ok(process.hrtime.bigint() - before >= 15_000_000n, 'it did wait');
    });
});

describe('F8: polls and deletion', () => {
    test('F8: a waiting poll ends with 404 or 410 when its stream is deleted', async () => {
        for (let i = 0; i < rounds(50); i++) {
            const stream = await freshStream(TEXT, 'x');
            const raw = await waitingPoll(stream, (await stream.head()).next);
            assert.equal((await stream.remove()).status, 204);
            assert.ok([404, 410].includes((await raw.response()).status));
            raw.destroy();
        }
    });

    test('F8: a poll is not woken by the next generation', async () => {
        for (let i = 0; i < rounds(50); i++) {
            const stream = await freshStream(TEXT, 'x');
            const raw = await waitingPoll(stream, (await stream.head()).next);
            raw.send('');
            const other = await Raw.open(server);
            other.send(head('DELETE', stream.path) + head('PUT', stream.path, ['Content-Type: text/plain', 'Content-Length: 4']) +
                       'next' + head('POST', stream.path, ['Content-Type: text/plain', 'Content-Length: 4']) + 'more');
            assert.equal((await other.response()).status, 204);
            assert.equal((await other.response()).status, 201);
            assert.equal((await other.response()).status, 204);
            const reply = await raw.response();
            assert.ok([404, 410].includes(reply.status), `${reply.status} ${reply.text}`);
            raw.destroy();
            other.destroy();
        }
    });

    test('F8: a waiting poll of a stream that gets forks and is soft-deleted ends with 410 or 404', async () => {
        const stream = await freshStream(TEXT, 'x');
        const fork = new Stream(server, uniqueName());
        await fork.create({ 'Stream-Forked-From': stream.path });
        const raw = await waitingPoll(stream, (await stream.head()).next);
        await stream.remove();
        assert.ok([404, 410].includes((await raw.response()).status));
        raw.destroy();
    });
});

describe('F11: polls of a fork', () => {
    test('F11: in the inherited range at once; at the tail only for its own appends', async () => {
        const source = await freshStream(TEXT, '0123456789', hasty);
        const middle = (await source.head()).next;
        await source.append('abcdef');
        const fork = new Stream(hasty, uniqueName());
        await fork.create({ 'Stream-Forked-From': source.path });
        const inherited = await fork.poll(middle);
        assert.equal(inherited.status, 200);
        assert.equal(inherited.text, 'abcdef');
        const tail = inherited.next;
        const waiting = fork.poll(tail);
        await source.append('not for the fork');
        const reply = await waiting;
        assert.equal(reply.status, 204);
        assert.equal(reply.next, tail);
        const slow = new Stream(server, uniqueName());
        const base = await freshStream(TEXT, 'base');
        await slow.create({ 'Stream-Forked-From': base.path });
        const raw = await waitingPoll(slow, (await slow.head()).next);
        await base.append('x');
        await slow.append('own');
        assert.equal((await raw.response()).text, 'own');
        raw.destroy();
    });
});
