// The stream of a thread through the API: what any Durable Streams reader is told there is what the stream itself
// answers who has the server's secret. Who may not read is let go of, also in the middle.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Stream, assertProblem, request } from './lib/http.mjs';
import { liveReaders } from './lib/prometheus.mjs';
import { Raw, head } from './lib/raw.mjs';
import { SECRET, assertRefused, bearer, headerLines, nobody, proxied, rawStream, serveFor } from './lib/serve.mjs';
import { Sse } from './lib/sse.mjs';
import { eventually, withDeadline } from './lib/wait.mjs';

const BOUND_MS = 5_000; // within which a reader who may not read any more is gone

async function makeWorld(t, flags = [], options = { secret: true }) {
    const server = await serveFor(t, flags, options);
    const { owner, house } = server;
    const member = await owner.invite(house.id, 'Member');
    const thread = await owner.createThread(house.id);
    return { server, owner, member, house, thread };
}

// What may differ between two answers to the same question is the time that they tell.
function comparable({ status, headers, body }) {
    const { date, ...rest } = headers;
    assert.ok(date);
    return { status, headers: rest, body: body.toString('latin1') };
}

async function sameAsRaw(world, ask, what) {
    const [raw, seen] = [
        await ask(rawStream(world.server, world.thread.id)),
        await ask(proxied(world.member, world.thread.id)),
    ];
    assert.deepEqual(comparable(seen), comparable(raw), what);
    return seen;
}

test('catching up, HEAD, offsets and ETags are those of the stream', async (t) => {
    const world = await makeWorld(t, ['--read-page', '2KiB']);
    for (let i = 0; i < 30; i++) {
        await world.member.say(world.thread.id, `m${i} ${'x'.repeat(i * 10)}`);
    }
    const first = await sameAsRaw(world, (stream) => stream.get('offset=-1'), 'the first page');
    assert.equal(first.status, 200);
    assert.ok(!first.upToDate && first.headers.etag);
    for (const query of [
        '',
        'offset=now',
        'offset=0',
        'offset=',
        'offset=x',
        'offset=-2',
        `offset=${first.next}`,
        `offset=${first.next}&unknown=1`,
        `offset=${first.next}&offset=${first.next}`,
        'live=long-poll',
        'live=sse',
        'live=never&offset=-1',
        'offset=%2D1',
        'offset=-1&cursor=x',
        'offset=9999999999999999_9999999999999999',
    ]) {
        await sameAsRaw(world, (stream) => stream.get(query), `GET ?${query}`);
    }
    await sameAsRaw(world, (stream) => stream.head(), 'HEAD');
    for (const tag of [first.headers.etag, `W/${first.headers.etag}`, '*', `"x", ${first.headers.etag}`]) {
        const reply = await sameAsRaw(
            world,
            (stream) => stream.get('offset=-1', { 'If-None-Match': tag }),
            `If-None-Match: ${tag}`,
        );
        assert.equal(reply.status, 304);
    }
    await sameAsRaw(world, (stream) => stream.get('offset=-1', { 'If-None-Match': '"other"' }), 'another ETag');
    const pages = await proxied(world.member, world.thread.id).readMessages();
    assert.deepEqual(pages, await rawStream(world.server, world.thread.id).readMessages());
    assert.deepEqual(pages.messages, await world.owner.history(world.thread.id));
});

test('long-polls are those of the stream: at once, in time, with cursors, and at the end', async (t) => {
    const world = await makeWorld(t, ['--long-poll-timeout', '300ms']);
    const said = await world.member.say(world.thread.id, 'first');
    const { next } = await rawStream(world.server, world.thread.id).get();
    const wholeSecond = ({ headers, ...rest }) => ({
        ...rest,
        headers: { ...headers, 'stream-cursor': headers['stream-cursor'] && 'some' },
    });
    const both = async (ask) => {
        const replies = await Promise.all([
            ask(rawStream(world.server, world.thread.id)),
            ask(proxied(world.member, world.thread.id)),
        ]);
        assert.deepEqual(...replies.map((reply) => wholeSecond(comparable(reply))));
        return replies[1];
    };
    assert.equal((await both((stream) => stream.poll('-1'))).status, 200);
    const idle = await both((stream) => stream.poll(next));
    assert.equal(idle.status, 204);
    assert.ok(idle.upToDate && idle.headers['stream-cursor']);
    await both((stream) => stream.poll(next, `&cursor=${idle.headers['stream-cursor']}`));
    await both((stream) => stream.poll('now'));
    assert.equal((await rawStream(world.server, world.thread.id).close()).status, 204);
    const closed = await both((stream) => stream.poll(next));
    assert.ok(closed.closed);
    await both((stream) => stream.get(`offset=${next}`));
    await both((stream) => stream.head());
    assert.deepEqual((await world.owner.history(world.thread.id)).at(-1), said);
});

test('a long-poll and an SSE reader are told of a post', async (t) => {
    const world = await makeWorld(t);
    const stream = proxied(world.member, world.thread.id);
    const raw = rawStream(world.server, world.thread.id);
    const open = (one, caller) => Sse.open(one, '-1', { headers: headerLines(caller) });
    const [seen, direct] = await Promise.all([open(stream, world.member), open(raw, bearer(world.server, SECRET))]);
    t.after(() => [seen, direct].forEach((sse) => sse.close()));
    assert.equal(seen.status, 200);
    const { date: _, ...headers } = seen.headers;
    const { date: __, ...directHeaders } = direct.headers;
    assert.deepEqual(headers, directHeaders);
    const { next } = await stream.get();
    const poll = stream.poll(next);
    const said = await world.owner.say(world.thread.id, 'live');
    assert.deepEqual((await poll).json(), [said]);
    for (const sse of [seen, direct]) {
        await sse.until('the post', () => sse.text.includes('"live"'));
    }
    const data = (sse) => sse.events.filter(({ event }) => event === 'data').map((one) => one.data);
    const offsets = (sse) =>
        sse.events.filter(({ event }) => event === 'control').map((one) => JSON.parse(one.data).streamNextOffset);
    await eventually(
        'both have the same',
        () => data(seen).join() === data(direct).join() && offsets(seen).at(-1) === offsets(direct).at(-1),
    );
});

// Two readers of a thread, who are live before this resolves, and `others` are: who has left is counted a little longer.
async function live(server, caller, threadId, others = 0) {
    const stream = proxied(caller, threadId);
    await eventually('who has left is gone', async () => (await waiters(server)) === others);
    const sse = await Sse.open(stream, 'now', { headers: headerLines(caller) });
    assert.equal(sse.status, 200);
    const poll = stream.poll((await stream.get()).next, '', {}, { fresh: true });
    poll.catch(() => {});
    await eventually('both readers wait', async () => (await waiters(server)) === others + 2);
    return { sse, poll };
}

async function waiters(server) {
    return (await liveReaders(server, 'sse')) + (await liveReaders(server, 'long_poll'));
}

async function assertGone({ sse, poll }, since, what) {
    const [reply] = await withDeadline(Promise.all([poll, sse.done]), `end of live reads: ${what}`);
    const took = Date.now() - since;
    assert.ok(took < BOUND_MS, `${what}: ${took} ms`);
    assert.ok([200, 204].includes(reply.status), `${what}: ${reply.status}`);
    assert.ok(!reply.text.includes('secret of others'));
    assert.ok(sse.cleanEnd, `${what}: an orderly end`);
    assert.ok(!sse.text.includes('secret of others'), what);
}

test('who may not read any more is let go of within five seconds, and nobody else is', async (t) => {
    const { server, owner, house } = await makeWorld(t, [], {}); // whose counts of live readers need no secret
    const path = (one) => `/api/houses/${house.id}/members/${one.agent.id}`;
    const cases = {
        'taken out by an owner': async (one) => [one, 403, () => owner.ask(204, 'DELETE', path(one))],
        left: async (one) => [one, 403, () => one.ask(204, 'DELETE', path(one))],
        'its key was revoked': async (one) => {
            const { key, id } = await one.ask(201, 'POST', '/api/agents/keys', {});
            return [
                bearer(server, key, { agent: one.agent }),
                401,
                () => one.ask(204, 'DELETE', `/api/agents/keys/${id}`),
            ];
        },
        'signed out': async (one) => {
            const page = await one.signIn();
            return [page, 401, () => page.ask(204, 'DELETE', '/api/session')];
        },
        'the key of its session was revoked': async (one) => {
            const { key, id } = await one.ask(201, 'POST', '/api/agents/keys', {});
            const page = await bearer(server, key, { key, agent: one.agent }).signIn();
            return [page, 401, () => one.ask(204, 'DELETE', `/api/agents/keys/${id}`)];
        },
        'the agent was deleted': async (one) => [
            one,
            401,
            () => one.ask(204, 'DELETE', `/api/agents/${one.agent.id}`),
        ],
        'the thread was deleted': async (one, thread) => [
            one,
            404,
            () => owner.ask(204, 'DELETE', `/api/threads/${thread.id}`),
        ],
    };
    for (const [what, prepare] of Object.entries(cases)) {
        const thread = await owner.createThread(house.id);
        const [caller, status, act] = await prepare(await owner.invite(house.id, 'Guest'), thread);
        const readers = await live(server, caller, thread.id);
        const others = await live(server, owner, thread.id, 2);
        await act();
        const since = Date.now();
        if (status !== 404) {
            const said = await owner.say(thread.id, 'secret of others');
            assert.deepEqual((await others.poll).json().at(-1), said, 'others read on');
            await others.sse.until('the post', () => others.sse.text.includes('secret of others'));
        }
        await assertGone(readers, since, what);
        assert.equal(others.sse.ended, status === 404, what);
        others.sse.close();
        const again = await proxied(caller, thread.id).get();
        assert.equal(again.status, status, what);
    }
});

test('a house that is deleted takes its readers along', async (t) => {
    const { server, owner } = await makeWorld(t, [], {});
    const house = await owner.createHouse('Going');
    const thread = await owner.createThread(house.id);
    const readers = await live(server, owner, thread.id);
    await owner.ask(204, 'DELETE', `/api/houses/${house.id}`);
    await assertGone(readers, Date.now(), 'the house was deleted');
});

test('a session reads live as a page does, from its cookie alone', async (t) => {
    const world = await makeWorld(t);
    const page = await world.member.signIn({ origin: undefined });
    const sse = await Sse.open(proxied(page, world.thread.id), 'now', { headers: headerLines(page) });
    t.after(() => sse.close());
    const said = await world.owner.say(world.thread.id, 'for the page');
    await sse.until('the post', () => sse.text.includes(said.id));
});

test('what concerns one connection stays with it, and the secret is nowhere', async (t) => {
    const world = await makeWorld(t);
    const target = `/api/threads/${world.thread.id}/stream?offset=-1`;
    const raw = await Raw.open(world.server);
    t.after(() => raw.destroy());
    const lines = headerLines(world.member);
    raw.send(
        head('GET', target, [
            ...lines,
            'Connection: keep-alive, X-Mine',
            'X-Mine: 1',
            'TE: trailers',
            'Keep-Alive: timeout=99',
        ]),
    );
    const first = await raw.response();
    raw.send(head('HEAD', `/api/threads/${world.thread.id}/stream`, lines));
    const second = await raw.response('HEAD');
    raw.send(head('GET', target, [...lines, 'Connection: close']));
    const third = await raw.response();
    assert.deepEqual([first.status, second.status, third.status], [200, 200, 200]);
    assert.match(third.headers.connection, /close/i);
    const { extra } = await raw.endOfConnection();
    assert.equal(extra, '');
    for (const reply of [first, second, third]) {
        const text = JSON.stringify(reply.list) + reply.text;
        assert.ok(!text.includes(SECRET) && !/x-mine|authorization|trailer|proxy-/i.test(text), text);
    }
    // The secret is for streams; below /api it is nobody's key.
    await bearer(world.server, SECRET).refused(
        401,
        'auth.unauthenticated',
        'GET',
        `/api/threads/${world.thread.id}/stream`,
    );
    for (const method of ['PUT', 'POST', 'DELETE']) {
        const reply = await request(world.server.base, method, `/api/threads/${world.thread.id}/stream`, {
            headers: world.owner.headers,
            body: '[1]',
        });
        assertRefused(reply, 405, 'request.method_not_allowed');
    }
    assert.equal((await world.owner.history(world.thread.id)).length, 1);
});

test('without a secret nobody reaches the streams of threads but through the API', async (t) => {
    const { server, owner, thread } = await makeWorld(t, [], {});
    await owner.say(thread.id, 'private');
    for (const name of [
        `arbe-thread-${thread.id}`,
        `%61rbe-thread-${thread.id}`,
        `arbe%2Dthread-${thread.id}`,
        'arbe-thread-',
        'arbe-thread-new',
        `arbe-thread-${thread.id}/`,
    ]) {
        const stream = new Stream(server, name, 'application/json');
        for (const reply of [
            await stream.get(),
            await stream.poll('-1'),
            await stream.get('offset=-1&live=sse'),
            await stream.put(),
            await stream.post('[1]'),
            await stream.close(),
            await stream.remove(),
        ]) {
            assert.ok(reply.status >= 400 && reply.status < 500, `${name}: ${reply.status} ${reply.text}`);
            assert.ok(!reply.text.includes('private'));
        }
        assert.ok((await stream.head()).status >= 400);
    }
    assertProblem(await new Stream(server, `arbe-thread-${thread.id}`).get(), 403);
    for (const source of [`/v1/stream/arbe-thread-${thread.id}`, `/v1/stream/%61rbe-thread-${thread.id}`]) {
        const fork = new Stream(server, 'a-fork', 'application/json');
        const reply = await fork.put({ 'Stream-Forked-From': source });
        assert.ok(reply.status >= 400, `a fork of ${source}: ${reply.status}`);
        assert.equal((await fork.head()).status, 404);
    }
    const other = new Stream(server, 'other', 'application/json');
    await other.create();
    for (const target of [
        `arbe-thread-${thread.id}`,
        `/arbe-thread-${thread.id}/`,
        `%61rbe-thread-${thread.id}`,
        'arbe-thread-made-later',
    ]) {
        const reply = await request(server.base, 'PUT', '/v1/stream/__ds/subscriptions/s', {
            body: JSON.stringify({ type: 'pull-wake', streams: ['other'], wake_stream: target }),
        });
        assert.equal(reply.status, 403, `wake events for ${target}: ${reply.text}`);
    }
    await other.append('[1]');
    assert.equal((await owner.history(thread.id)).length, 2, 'nothing came in from outside');
    assert.equal((await nobody(server).call('GET', `/api/threads/${thread.id}/stream?offset=-1`)).status, 401);
});

test('with a secret who has it works with the streams of threads as with others', async (t) => {
    const world = await makeWorld(t);
    await world.owner.say(world.thread.id, 'hello');
    const fork = new Stream(world.server, 'a-fork', 'application/json', { Authorization: `Bearer ${SECRET}` });
    await fork.create({ 'Stream-Forked-From': `/v1/stream/arbe-thread-${world.thread.id}` });
    assert.deepEqual((await fork.readMessages()).messages, await world.owner.history(world.thread.id));
    const sub = await request(world.server.base, 'PUT', '/v1/stream/__ds/subscriptions/s', {
        headers: { Authorization: `Bearer ${SECRET}` },
        body: JSON.stringify({
            type: 'pull-wake',
            streams: ['a-fork'],
            wake_stream: `arbe-thread-${world.thread.id}`,
        }),
    });
    assert.equal(sub.status, 201, sub.text);
    assertProblem(await new Stream(world.server, `arbe-thread-${world.thread.id}`).get(), 401);
});

test('the end of the server ends live reads cleanly', async (t) => {
    const { server, owner, thread } = await makeWorld(t, [], {});
    const { sse, poll } = await live(server, owner, thread.id);
    await server.stop();
    await sse.end();
    assert.equal((await poll).status, 204);
    await server.start();
    assert.equal((await proxied(owner, thread.id).get()).status, 200);
});

test('HEAD is answered like GET, without the body', async (t) => {
    const { owner, house, thread } = await makeWorld(t);
    for (const path of [
        '/api/me',
        '/api/houses',
        `/api/houses/${house.id}`,
        `/api/threads?house_id=${house.id}`,
        `/api/threads/${thread.id}/entries`,
        `/api/threads/${thread.id}/config`,
        '/api/threads/none',
        '/api/nothing',
    ]) {
        const [one, other] = await Promise.all(
            ['GET', 'HEAD'].map((method) => request(owner.server.base, method, path, { headers: owner.headers })),
        );
        assert.equal(other.status, one.status, path);
        assert.equal(other.headers['content-length'], one.headers['content-length'], path);
        assert.equal(other.headers['content-type'], one.headers['content-type'], path);
        assert.equal(other.body.length, 0);
    }
});
