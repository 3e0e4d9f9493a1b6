// While there is no secret, the streams of threads do not exist for the control API: it tells of none, takes the name
// of none, and nothing that was stored earlier tells of one either.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SECRET, serveFor } from './lib/serve.mjs';
import { LONG_LEASE_MS, Subscription, acksOf, assertError, assertStatus, control, jsonStream } from './lib/subscriptions.mjs';
import { eventually } from './lib/wait.mjs';

const RESERVED = /arbe-thread-/;

async function makeWorld(t, options = {}) {
    const server = await serveFor(t, [], options);
    const { owner, house } = server;
    const threads = [await owner.createThread(house.id), await owner.createThread(house.id)];
    await owner.say(threads[0].id, 'hello');
    return { server, owner, threads, name: `arbe-thread-${threads[0].id}` };
}

// One name, as clients may spell it in JSON.
function spellings(name) {
    return [name, `/${name}`, `/${name}//`, `%61${name.slice(1)}`, name.replaceAll('-', '%2D'), `/%61${name.slice(1)}/`];
}

function assertKept(reply) {
    assert.match(assertError(reply, 403, 'FORBIDDEN').message, /^names that begin with arbe-thread- are the threads' own: .*\/api/);
}

// All pages from `after` on.
async function listed(server, query, limit, { headers = {}, after = '' } = {}) {
    const names = [];
    for (;;) {
        const { streams, next_after } = assertStatus(
            await control(server, 'GET', `/streams?limit=${limit}${query}${after}`, undefined, { headers }),
            200,
        ).json();
        names.push(...streams.map((one) => one.path));
        if (next_after === undefined) {
            return names;
        }
        assert.equal(streams.length, limit, 'a page that is not the last one is full');
        assert.equal(next_after, names.at(-1));
        after = `&after=${encodeURIComponent(next_after)}`;
    }
}

const pull = (more) => ({ type: 'pull-wake', wake_stream: 'wakes', lease_ttl_ms: LONG_LEASE_MS, ...more });

test('without a secret the listing has every stream but those of threads, on whatever pages', async (t) => {
    const { server, name } = await makeWorld(t);
    const others = ['a', 'arbe-thread', 'arbe-thread.', 'arbe-threads', 'z'];
    for (const other of others) {
        await jsonStream(server, other).create();
    }
    for (const limit of [1, 2, 3, 4, 5, 6, 1000]) {
        assert.deepEqual(await listed(server, '', limit), others, `limit ${limit}`);
        assert.deepEqual(await listed(server, '&prefix=arbe-t', limit), others.slice(1, 4));
        assert.deepEqual(await listed(server, '&prefix=%61rbe-thread-', limit), []);
        assert.deepEqual(await listed(server, `&prefix=${name}`, limit), []);
        assert.deepEqual(await listed(server, '', limit, { after: `&after=${name}` }), others.slice(2));
    }
});

test('without a secret no request about a subscription names a stream of a thread', async (t) => {
    const { server, name } = await makeWorld(t);
    const before = new Subscription(server, 'before');
    await jsonStream(server, 'wakes').create();
    const other = jsonStream(server, 'other');
    await other.create();
    await before.create(pull({ streams: ['other'] }));
    await other.append('[1]');
    const claim = await before.claimed();
    const never = new Subscription(server, 'never');
    for (const one of [...spellings(name), 'arbe-thread-', 'arbe-thread-made-later', `${name}/below`]) {
        for (const sub of [before, never]) {
            assertKept(await sub.put(pull({ streams: ['other'], wake_stream: one })));
            assertKept(await sub.put(pull({ streams: ['other', one] })));
            assertKept(await sub.put({ type: 'webhook', streams: [one], webhook: { url: 'https://a.example/' } }));
            assertKept(await sub.link(['other', one]));
            assertKept(await sub.unlink(encodeURIComponent(one)));
        }
        assertKept(await before.ack(claim, { acks: [{ stream: one, offset: claim.streams[0].tail_offset }] }));
    }
    assertError(await never.get(), 404, 'SUBSCRIPTION_NOT_FOUND');
    const { streams } = await before.read();
    assert.deepEqual(streams.map((one) => one.path), ['other']);
    assertStatus(await before.ack(claim, { acks: acksOf(claim), done: true }), 200);
});

test('without a secret no pattern matches the stream of a thread', async (t) => {
    const { server, owner, threads, name } = await makeWorld(t);
    await jsonStream(server, 'wakes').create();
    const subs = ['*', '**', name, `%61${name.slice(1)}`].map((pattern, i) => [new Subscription(server, `s${i}`), pattern]);
    for (const [sub, pattern] of subs) {
        await sub.create(pull({ pattern }));
    }
    await owner.say(threads[0].id, 'more');
    const made = await owner.createThread(server.house.id);
    await owner.say(made.id, 'first');
    await jsonStream(server, 'other').create({}, '[1]');
    for (const [sub] of subs.slice(0, 2)) {
        await eventually('a stream of others is found', async () => (await sub.linkTo('other')) !== undefined);
        assert.doesNotMatch(JSON.stringify(await sub.claimed()), RESERVED);
        const { streams } = await sub.read();
        assert.deepEqual(streams.map((one) => one.path), ['other']);
    }
    for (const [sub] of subs.slice(2)) {
        assert.deepEqual((await sub.read()).streams, []);
        assertError(await sub.claim(), 409, 'NO_PENDING_WORK');
    }
    assert.doesNotMatch((await jsonStream(server, 'wakes').get()).text, RESERVED);
});

test('what was stored while `arbe streams` ran on the directory tells of no thread', async (t) => {
    const { server, owner, threads, name } = await makeWorld(t);
    await server.stop();
    server.command = 'streams';
    await server.start();
    const [wakes, other] = [jsonStream(server, 'wakes'), jsonStream(server, 'other')];
    await wakes.create();
    await other.create();
    const named = new Subscription(server, 'named');
    const found = new Subscription(server, 'found');
    const told = new Subscription(server, 'told');
    await named.create(pull({ streams: [name, 'other'] }));
    await found.create(pull({ pattern: '**' }));
    await told.create(pull({ streams: ['other'], wake_stream: `arbe-thread-${threads[1].id}` }));
    assert.match(JSON.stringify(await found.read()), RESERVED);
    await server.stop();
    server.command = 'serve';
    await server.start();
    const entries = await owner.history(threads[1].id);
    await owner.say(threads[0].id, 'private');
    await other.append('[1]');
    for (const sub of [named, found, told]) {
        await eventually('there is something to claim', async () => {
            const reply = await sub.claim();
            assert.doesNotMatch(reply.text, RESERVED);
            return reply.status === 200;
        });
    }
    for (const sub of [named, found]) {
        assert.doesNotMatch(JSON.stringify(await sub.read()), RESERVED);
    }
    assert.doesNotMatch((await wakes.get()).text, RESERVED);
    assert.deepEqual(await owner.history(threads[1].id), entries, 'no wake event came in');
    assertKept(await named.unlink(name));
    await server.crashAndRestart();
    assert.doesNotMatch(JSON.stringify([await named.read(), await found.read()]), RESERVED);
});

test('with a secret the streams of threads are streams like others', async (t) => {
    const { server, owner, threads, name } = await makeWorld(t, { secret: true });
    const headers = { Authorization: `Bearer ${SECRET}` };
    const names = await listed(server, '', 1, { headers });
    assert.ok(threads.every((one) => names.includes(`arbe-thread-${one.id}`)), `${names}`);
    await jsonStream(server, 'wakes', headers).create();
    const sub = new Subscription(server, 's', { headers });
    await sub.create(pull({ pattern: '*', streams: [name] }));
    await owner.say(threads[0].id, 'more');
    await eventually('it is found', async () => (await sub.linkTo(name)) !== undefined);
    assertStatus(await sub.unlink(name), 204);
    assertStatus(await sub.link([name]), 204);
});
