// Tier 30: pull-wake (PROTOCOL.md 7.2 and 7.3): wake events, claims, acks, fences, leases.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { TEXT, Stream, uniqueName } from './lib/http.mjs';
import { startServer } from './lib/server.mjs';
import { LONG_LEASE_MS, SHORT_LEASE_MS, Subscription, WakeReader, acksOf, assertError, assertStatus,
         jsonStream } from './lib/subscriptions.mjs';
import { eventually, inParallel, rounds } from './lib/wait.mjs';

const server = await startServer(['--webhooks-allow-loopback', '--long-poll-timeout', '5s']);
after(() => server.dispose());

const ZERO = '0000000000000000_0000000000000000';
const OK = { ok: true, next_wake: false };

// A name space of its own, a wake stream outside of it and a subscription over both kinds of links.
async function world({ lease = LONG_LEASE_MS, wakeStream = true, ...more } = {}) {
    const name = uniqueName('in');
    const wake = jsonStream(server, `wake/${name}`);
    if (wakeStream) {
        await wake.create({}, '[]');
    }
    const subscription = new Subscription(server, uniqueName('sub'));
    const config = { type: 'pull-wake', pattern: `${name}/**`, wake_stream: wake.name, lease_ttl_ms: lease, ...more };
    await subscription.create(config);
    return { name, wake, subscription, config, events: new WakeReader(wake), stream: jsonStream(server, `${name}/a`) };
}

// A held lease: subscription, stream with `count` messages pending, and the claim.
async function claimed(options) {
    const all = await world(options);
    await all.stream.create({}, '[1]');
    await all.events.of(all.subscription);
    return { ...all, claim: await all.subscription.claimed() };
}

const tailOf = async (stream) => (await stream.head()).next;

describe('wake events', () => {
    test('an append writes one event, in the form of the protocol', async () => {
        const { stream, subscription, events } = await world();
        const before = Date.now();
        await stream.create({}, '[{"n":1}]');
        const event = await events.of(subscription);
        const { ts, ...rest } = event;
        assert.deepEqual(rest, { type: 'wake', subscription_id: subscription.id, stream: stream.name, generation: 1 });
        assert.ok(Number.isInteger(ts) && Math.abs(ts - before) < 120_000, `ts ${ts}`);
        // Further appends while it is not claimed write none.
        await stream.append('[2]');
        await stream.append('[3]');
        const claim = await subscription.claimed();
        assert.equal(claim.generation, 1);
        assertStatus(await subscription.ack(claim, { acks: acksOf(claim), done: true }), 200);
        await stream.append('[4]');
        assert.equal((await events.next()).generation, 2, 'the next event of the stream is that of the next wake');
    });

    test('what wakes: creation with data, appends, producers; what does not: duplicates, closing, reads, an empty creation', async () => {
        const { name, subscription, events } = await world();
        const quiet = jsonStream(server, `${name}/quiet`);
        await quiet.create();
        await quiet.get();
        await quiet.close();
        const empty = new Stream(server, `${name}/text`, TEXT);
        await empty.create();
        assertError(await subscription.claim(), 409, 'NO_PENDING_WORK');

        const producer = jsonStream(server, `${name}/p`);
        await producer.create();
        const headers = { 'Producer-Id': 'p', 'Producer-Epoch': '0', 'Producer-Seq': '0' };
        await producer.append('[1]', headers);
        assert.equal((await events.of(subscription)).generation, 1);
        const claim = await subscription.claimed();
        assert.deepEqual(claim.streams.filter((one) => one.has_pending).map((one) => one.path), [producer.name]);
        assert.deepEqual(assertStatus(await subscription.ack(claim, { acks: acksOf(claim), done: true }), 200).json(), OK);
        assert.equal((await producer.post('[1]', headers)).status, 204, 'a duplicate');
        assertError(await subscription.claim(), 409, 'NO_PENDING_WORK');

        await jsonStream(server, `${name}/c`).create({}, '[1]');
        assert.equal((await events.of(subscription)).generation, 2);
    });

    test('an append that also closes wakes', async () => {
        const { stream, subscription, events } = await world();
        await stream.create();
        assertStatus(await stream.post('[1]', { 'Stream-Closed': 'true' }), 204);
        assert.equal((await events.of(subscription)).stream, stream.name);
    });

    test('a fork wakes with its first own data, which makes all of it pending', async () => {
        const name = uniqueName('in');
        const source = jsonStream(server, `elsewhere/${name}`);
        await source.create({}, '[1,2,3]');
        const { subscription, events } = await world({ pattern: `${name}/*` });
        const fork = jsonStream(server, `${name}/f`);
        await fork.create({ 'Stream-Forked-From': source.path });
        assertError(await subscription.claim(), 409, 'NO_PENDING_WORK');
        await fork.append('[4]');
        await events.of(subscription);
        const claim = await subscription.claimed();
        assert.deepEqual(claim.streams, [{ path: fork.name, link_type: 'glob', acked_offset: '-1',
                                           tail_offset: await tailOf(fork), has_pending: true }]);
    });

    test('trap 9: an empty stream is not pending', async () => {
        const { name, stream, subscription, events } = await world();
        const empty = jsonStream(server, `${name}/empty`);
        await empty.create({}, '[]');
        await stream.create({}, '[1]');
        await events.of(subscription);
        const claim = await subscription.claimed();
        for (const one of claim.streams) {
            assert.equal(one.has_pending, one.path === stream.name, one.path);
        }
        assert.deepEqual(assertStatus(await subscription.ack(claim, { acks: acksOf(claim), done: true }), 200).json(), OK);
        assertError(await subscription.claim(), 409, 'NO_PENDING_WORK');
    });

    test('wake events wake nobody: neither the pattern ** nor a chain of wake streams loops', async () => {
        const name = uniqueName('loop');
        const make = async (id, pattern, wakeName) => {
            const wake = jsonStream(server, wakeName);
            await wake.create({}, '[]');
            const subscription = new Subscription(server, `${name}-${id}`);
            await subscription.create({ type: 'pull-wake', pattern, wake_stream: wakeName, lease_ttl_ms: LONG_LEASE_MS });
            return { subscription, events: new WakeReader(wake), wake };
        };
        const all = await make('all', `${name}/**`, `${name}/wake/all`);
        const other = await make('other', `${name}/**`, `${name}/wake/other`);
        const data = jsonStream(server, `${name}/data`);
        for (let generation = 1; generation <= rounds(10); generation++) {
            await (generation === 1 ? data.create({}, '[1]') : data.append('[1]'));
            for (const one of [all, other]) {
                assert.equal((await one.events.of(one.subscription)).generation, generation);
                const claim = await one.subscription.claimed();
                assert.equal(claim.generation, generation);
                assert.deepEqual(assertStatus(await one.subscription.ack(claim, { acks: [{ stream: data.name, offset: await tailOf(data) }], done: true }),
                                              200).json(), OK, 'nothing else is pending');
                assert.equal(await one.subscription.linkTo(one.wake.name), undefined, 'no subscription follows its own wake stream');
            }
        }
        assert.equal((await all.wake.readMessages()).messages.length, rounds(10));
    });

    test('the wake stream appears later: the event is written then', async () => {
        const { stream, subscription, wake } = await world({ wakeStream: false });
        await stream.create({}, '[1]');
        await eventually('the wake is made', async () => (await subscription.claim()).status === 200);
        const late = await world({ wakeStream: false });
        await late.stream.create({}, '[1]');
        await late.wake.create({}, '[]');
        assert.equal((await late.events.of(late.subscription)).generation, 1);
        assert.equal((await wake.head()).status, 404, 'nobody made a wake stream by itself');
    });

    test('trap 7: a wake stream that was removed or is no JSON holds up nothing for ever', async () => {
        const { stream, subscription, wake, events } = await world();
        await wake.remove();
        const text = new Stream(server, wake.name, TEXT);
        await text.create();
        await stream.create({}, '[1]');
        await text.remove();
        await wake.create({}, '[]');
        assert.equal((await events.of(subscription)).generation, 1);
        const claim = await subscription.claimed();
        assert.equal(claim.generation, 1);
    });

    test('trap 7: so does a wake stream that was closed; a claim needs no event', async () => {
        const { stream, subscription, wake, events } = await world();
        await wake.close();
        await stream.create({}, '[1]');
        const claim = await subscription.claimed();
        assertStatus(await subscription.release(claim), 204);
        await wake.remove();
        await wake.create({}, '[]');
        assert.ok((await events.of(subscription)).generation > claim.generation);
    });
});

describe('claim', () => {
    test('it tells all links, a token and the lease', async () => {
        const { name, stream, subscription, claim } = await claimed({ streams: [] });
        assert.match(claim.wake_id, /^w_[0-9a-f]{24}$/);
        assert.equal(claim.generation, 1);
        assert.equal(claim.lease_ttl_ms, LONG_LEASE_MS);
        assert.match(claim.token, /^[\w-]+\.[\w-]+$/);
        assert.deepEqual(claim.streams, [{ path: stream.name, link_type: 'glob', acked_offset: '-1',
                                           tail_offset: await tailOf(stream), has_pending: true }]);
        assert.deepEqual(Object.keys(claim).sort(), ['generation', 'lease_ttl_ms', 'streams', 'token', 'wake_id']);
        const payload = JSON.parse(Buffer.from(claim.token.split('.')[0], 'base64url').toString());
        assert.equal(payload.sub, `subscription:${subscription.id}`);
        assert.equal(payload.epoch, 1);
        assert.ok(payload.exp > Date.now() / 1000 && payload.exp < Date.now() / 1000 + 3_700);
        assert.ok(payload.jti);
        assert.ok(name);
    });

    test('a held one is told to others with its holder', async () => {
        const { subscription, claim } = await claimed();
        for (const worker of ['worker-2', 'worker-1']) {
            const error = assertError(await subscription.claim(worker), 409, 'ALREADY_CLAIMED');
            assert.equal(error.current_holder, 'worker-1');
            assert.equal(error.generation, claim.generation);
        }
    });

    test('of many workers one gets it', async () => {
        const { stream, subscription, events } = await world();
        await stream.create({}, '[1]');
        await events.of(subscription);
        const replies = await Promise.all(Array.from({ length: 20 }, (_, i) => subscription.claim(`w${i}`)));
        assert.equal(replies.filter((one) => one.status === 200).length, 1);
        assert.equal(replies.filter((one) => one.status === 409).length, 19);
    });

    test('it needs no event: what is behind can be claimed at once', async () => {
        const { stream, subscription } = await world();
        await stream.create({}, '[1]');
        assert.equal((await subscription.claimed()).generation, 1);
    });

    test('a worker is a name of 1 to 256 bytes; that is looked at first', async () => {
        const { subscription } = await claimed();
        const unknown = new Subscription(server, uniqueName());
        for (const worker of [undefined, null, '', 5, {}, ['a'], 'x'.repeat(257)]) {
            for (const one of [subscription, unknown]) {
                assertError(await one.send('POST', '/claim', { worker }), 400, 'INVALID_REQUEST');
            }
        }
        const { stream, subscription: other } = await world();
        await stream.create({}, '[1]');
        assertStatus(await other.claim('é'.repeat(128)), 200);
    });

    test('a webhook subscription is not claimed', async () => {
        const hook = new Subscription(server, uniqueName());
        await hook.create({ type: 'webhook', pattern: 'none/*', webhook: { url: 'http://127.0.0.1:9/' } });
        assertError(await hook.claim(), 400, 'INVALID_REQUEST');
        for (const verb of ['ack', 'release']) {
            assertError(await hook.speak(verb, { wake_id: 'w', generation: 1, token: 'x.y' }), 400, 'INVALID_REQUEST');
        }
    });
});

describe('ack and release', () => {
    test('done: acks, ends the lease, and tells whether there is more', async () => {
        const { stream, subscription, claim, events } = await claimed();
        assert.deepEqual(assertStatus(await subscription.ack(claim, { acks: acksOf(claim), done: true }), 200).json(), OK);
        assert.equal((await subscription.linkTo(stream.name)).acked_offset, await tailOf(stream));
        assertError(await subscription.claim(), 409, 'NO_PENDING_WORK');

        await stream.append('[2]');
        const second = await subscription.claimed();
        await stream.append('[3]');
        assert.deepEqual(assertStatus(await subscription.ack(second, { acks: acksOf(second), done: true }), 200).json(),
                         { ok: true, next_wake: true });
        assert.equal((await events.of(subscription, 3)).stream, stream.name);
        const third = await subscription.claimed();
        assert.equal(third.generation, 3);
        assert.equal(third.streams[0].acked_offset, second.streams[0].tail_offset);
    });

    test('done without acks leaves the work, and wakes again', async () => {
        const { subscription, claim, events } = await claimed();
        assert.deepEqual(assertStatus(await subscription.ack(claim, { done: true }), 200).json(), { ok: true, next_wake: true });
        await events.of(subscription, 2);
        const again = await subscription.claimed();
        assert.equal(again.streams[0].acked_offset, '-1');
        assert.notEqual(again.wake_id, claim.wake_id);
    });

    test('without done the lease stays and the cursor moves', async () => {
        const { stream, subscription, claim } = await claimed();
        await stream.append('[2]');
        assertStatus(await subscription.ack(claim, { acks: acksOf(claim) }), 200);
        assert.equal((await subscription.linkTo(stream.name)).acked_offset, claim.streams[0].tail_offset);
        assertStatus(await subscription.ack(claim), 200);
        assertStatus(await subscription.ack(claim, { acks: [] }), 200);
        assertError(await subscription.claim('other'), 409, 'ALREADY_CLAIMED');
        // Equal to what is acked is fine; so is the tail as it is now.
        assertStatus(await subscription.ack(claim, { acks: acksOf(claim) }), 200);
        assertStatus(await subscription.ack(claim, { acks: [{ path: stream.name, offset: await tailOf(stream) }], done: true }), 200);
        assertError(await subscription.claim(), 409, 'NO_PENDING_WORK');
    });

    test('release leaves the work and wakes again', async () => {
        const { subscription, claim, events } = await claimed();
        const reply = assertStatus(await subscription.release(claim), 204);
        assert.equal(reply.body.length, 0);
        await events.of(subscription, 2);
        assert.equal((await subscription.claimed()).generation, 2);
        assertError(await subscription.release(claim), 409, 'FENCED');
    });

    test('trap 5, authorization: exactly "Bearer " and a token of this subscription', async () => {
        const { subscription, claim } = await claimed();
        const other = await claimed();
        const [payload, mac] = claim.token.split('.');
        const forged = Buffer.from(JSON.stringify({ ...JSON.parse(Buffer.from(payload, 'base64url')), epoch: 2 })).toString('base64url');
        const wrong = [undefined, '', 'Bearer', 'Bearer ', `bearer ${claim.token}`, `BEARER ${claim.token}`, `Basic ${claim.token}`, claim.token,
                       `Bearer${claim.token}`, `Bearer ${other.claim.token}`, `Bearer ${claim.token}x`, `Bearer ${claim.token.slice(0, -1)}`,
                       `Bearer ${payload}`, `Bearer ${payload}.`, `Bearer .${mac}`, `Bearer ${forged}.${mac}`, `Bearer ${mac}.${payload}`,
                       `Bearer ${claim.token}.x`, `Bearer ${'x'.repeat(5_000)}`, 'Bearer null', `Bearer ${claim.token}, Bearer y`];
        const body = { wake_id: claim.wake_id, generation: claim.generation, done: true, acks: acksOf(claim) };
        for (const value of wrong) {
            for (const suffix of ['/ack', '/release']) {
                const reply = await subscription.send('POST', suffix, body, value === undefined ? {} : { Authorization: value });
                assertError(reply, 401, 'TOKEN_INVALID');
            }
        }
        assertError(await subscription.claim(), 409, 'ALREADY_CLAIMED');
    });

    test('fences: wake id, generation, and an ended wake', async () => {
        const { subscription, claim, stream } = await claimed();
        const stale = [{ wake_id: 'w_000000000000000000000000' }, { wake_id: `${claim.wake_id}0` }, { generation: 0 }, { generation: 2 }];
        for (const verb of ['ack', 'release']) {
            for (const one of stale) {
                assertError(await subscription.speak(verb, { ...claim, ...one }, { acks: acksOf(claim), done: true }), 409, 'FENCED');
            }
        }
        assertStatus(await subscription.ack(claim, { acks: acksOf(claim), done: true }), 200);
        for (const verb of ['ack', 'release']) {
            assertError(await subscription.speak(verb, claim), 409, 'FENCED');
        }
        await stream.append('[2]');
        const second = await subscription.claimed();
        assertError(await subscription.ack(claim, { done: true }), 409, 'FENCED');
        // The old token with the new wake's numbers, and the other way round.
        assertError(await subscription.ack(second, { done: true }, claim.token), 409, 'FENCED');
        assertError(await subscription.ack(claim, { done: true }, second.token), 409, 'FENCED');
        assertStatus(await subscription.ack(second, { done: true }), 200);
    });

    test('trap 5: odd wake ids and generations are refused', async () => {
        const { subscription, claim } = await claimed();
        for (const one of [{ wake_id: undefined }, { wake_id: null }, { wake_id: 5 }, { wake_id: {} }, { generation: undefined }, { generation: null },
                           { generation: '1' }, { generation: 1.5 }, { generation: -1 }, { generation: 1e300 }, { generation: [1] }]) {
            for (const verb of ['ack', 'release']) {
                const reply = await subscription.speak(verb, { ...claim, ...one });
                assert.ok([400, 409].includes(reply.status), `${verb} ${JSON.stringify(one)}: ${reply.status} ${reply.text}`);
            }
        }
        assertStatus(await subscription.ack(claim), 200);
    });

    test('trap 5: acks of the wrong shape are refused', async () => {
        const { stream, subscription, claim } = await claimed();
        const good = acksOf(claim)[0];
        for (const acks of [{}, 'x', 5, [null], [5], ['x'], [[]], [{}], [{ ...good, offset: 5 }], [{ ...good, offset: null }],
                            [{ stream: good.stream }], [{ offset: good.offset }], [{ ...good, stream: 5 }], [{ ...good, stream: '' }],
                            [good, null], [{ ...good, offset: {} }]]) {
            const reply = await subscription.ack(claim, { acks, done: true });
            assert.ok([400, 409].includes(reply.status), `${JSON.stringify(acks)}: ${reply.status} ${reply.text}`);
            assert.match(reply.json().error.code, /^(INVALID_REQUEST|INVALID_OFFSET)$/);
        }
        for (const done of ['x', 5, null, {}]) {
            const reply = await subscription.ack(claim, { done });
            assert.ok([200, 400].includes(reply.status));
        }
        assertError(await subscription.claim(), 409, 'ALREADY_CLAIMED');
        assert.equal((await subscription.linkTo(stream.name)).acked_offset, '-1');
    });

    test('offsets that cannot be acked, all or nothing', async () => {
        const { name, stream, subscription, claim } = await claimed();
        const second = jsonStream(server, `${name}/b`);
        await second.create({}, '[1]');
        await eventually('the second is linked', () => subscription.linkTo(second.name));
        const first = acksOf(claim)[0];
        const beyond = '0000000000000000_0000000000000999';
        const wrong = [{ ...first, offset: '-1' }, { ...first, offset: beyond },
                       { stream: `${name}/never`, offset: ZERO }, { stream: name, offset: ZERO }];
        for (const one of wrong) {
            for (const acks of [[one], [first, one], [one, first], [{ stream: second.name, offset: await tailOf(second) }, one]]) {
                const reply = await subscription.ack(claim, { acks, done: true });
                assertError(reply, 409, 'INVALID_OFFSET');
            }
        }
        for (const offset of ['now', '', 'x', '0', `${first.offset}0`]) {
            const reply = await subscription.ack(claim, { acks: [{ ...first, offset }], done: true });
            assert.ok([400, 409].includes(reply.status), `${offset}: ${reply.status} ${reply.text}`);
        }
        assert.equal((await subscription.linkTo(stream.name)).acked_offset, '-1');
        assert.equal((await subscription.linkTo(second.name)).acked_offset, '-1');
        assertError(await subscription.claim(), 409, 'ALREADY_CLAIMED');

        await stream.append('[2]');
        const tail = await tailOf(stream);
        assertStatus(await subscription.ack(claim, { acks: [{ ...first, offset: tail }] }), 200);
        assertError(await subscription.ack(claim, { acks: [first] }), 409, 'INVALID_OFFSET');
        assert.equal((await subscription.linkTo(stream.name)).acked_offset, tail, 'a cursor never goes back');
    });

    test('the order of the checks', async () => {
        const { subscription, claim } = await claimed();
        const hook = new Subscription(server, uniqueName());
        await hook.create({ type: 'webhook', pattern: 'none/*', webhook: { url: 'http://127.0.0.1:9/' } });
        const unknown = new Subscription(server, uniqueName());
        const token = { Authorization: 'Bearer x.y' };
        for (const suffix of ['/ack', '/release']) {
            assertError(await unknown.send('POST', suffix, '{'), 401, 'TOKEN_INVALID');
            assertError(await unknown.send('POST', suffix, '{', token), 400, 'INVALID_REQUEST');
            const stale = { wake_id: 'stale', generation: 9 };
            assertError(await unknown.send('POST', suffix, stale, token), 404, 'SUBSCRIPTION_NOT_FOUND');
            assertError(await hook.send('POST', suffix, stale, token), 400, 'INVALID_REQUEST');
            assertError(await subscription.send('POST', suffix, stale, token), 401, 'TOKEN_INVALID');
        }
        assertError(await subscription.ack({ ...claim, generation: 9 }, { acks: [{ stream: 'x', offset: '-1' }] }), 409, 'FENCED');
    });

    test('trap 6: a claim\'s token works on /ack, not on /callback', async () => {
        const { subscription, claim } = await claimed();
        const reply = await subscription.callback(claim, { acks: acksOf(claim), done: true });
        assert.ok([400, 401].includes(reply.status), `${reply.status} ${reply.text}`);
        assertError(await subscription.claim(), 409, 'ALREADY_CLAIMED');
    });

    test('trap 8: a stream made anew, shorter than what was acked, is pending again', async () => {
        const { stream, subscription } = await world();
        await stream.create({}, `[${Array(100).fill(1)}]`);
        const first = await subscription.claimed();
        assertStatus(await subscription.ack(first, { acks: acksOf(first), done: true }), 200);
        assertStatus(await stream.remove(), 204);
        await stream.create({}, '[1]');
        const second = await eventually('the new stream is claimed', async () => {
            const reply = await subscription.claim();
            return reply.status === 200 && reply.json();
        });
        assert.deepEqual(second.streams, [{ path: stream.name, link_type: 'glob', acked_offset: '-1',
                                            tail_offset: await tailOf(stream), has_pending: true }]);
    });

    test('a deleted subscription takes no ack; made anew, it keeps the old tokens out', async () => {
        const { stream, subscription, claim, config } = await claimed();
        assertStatus(await subscription.remove(), 204);
        for (const verb of ['ack', 'release']) {
            assertError(await subscription.speak(verb, claim, { done: true }), 404, 'SUBSCRIPTION_NOT_FOUND');
        }
        await subscription.create(config);
        await stream.append('[2]');
        const again = await subscription.claimed();
        assert.ok(again.generation > claim.generation, `generation ${again.generation} after ${claim.generation}`);
        for (const verb of ['ack', 'release']) {
            assertError(await subscription.speak(verb, claim, { done: true }), 409, 'FENCED');
            assertError(await subscription.speak(verb, again, { done: true }, claim.token), 409, 'FENCED');
        }
        assertStatus(await subscription.ack(again, { acks: acksOf(again), done: true }), 200);
    });
});

describe('leases', () => {
    test('an expired lease frees the work: a new wake, a new event, old tokens fenced', async () => {
        const { subscription, events, claim } = await claimed({ lease: SHORT_LEASE_MS });
        assert.equal((await events.of(subscription, 2)).generation, 2);
        assertError(await subscription.ack(claim, { acks: acksOf(claim), done: true }), 409, 'FENCED');
        assertError(await subscription.release(claim), 409, 'FENCED');
        const again = await subscription.claimed('worker-2');
        assert.equal(again.generation, 2);
        assert.equal(again.streams[0].acked_offset, '-1', 'a fenced ack moved nothing');
    });

    test('an ack extends it', async () => {
        const { subscription, stream, claim } = await claimed({ lease: 4_000 });
        // Each ack begins a new lease: as long as acks come in time, no lease ends.
        const begun = Date.now();
        let last = begun;
        await eventually('more than two leases have gone by', async () => {
            const reply = await subscription.ack(claim);
            if (reply.status === 409 && Date.now() - last > 2_000) {
                return true;   // The machine was too slow for this lease; nothing can be said.
            }
            assertStatus(reply, 200);
            last = Date.now();
            return last - begun > 9_000;
        }, { every: 200 });
        assert.ok(stream);
    });

    test('a wake that nobody claims waits without a lease', async () => {
        const { subscription, stream, events } = await world({ lease: SHORT_LEASE_MS });
        await stream.create({}, '[1]');
        await events.of(subscription, 1);
        // Another subscription's lease of the same length ends in the meantime.
        const other = await claimed({ lease: SHORT_LEASE_MS });
        await other.events.of(other.subscription, 2);
        assert.equal((await subscription.claimed()).generation, 1);
    });
});

describe('no lost wake', () => {
    test('an append in the middle of everything always leads to another wake', async () => {
        const { stream, subscription, events } = await world();
        await stream.create();
        const total = rounds(100);
        const seen = new Set();
        const write = async () => {
            for (let i = 0; i < total; i++) {
                await stream.append(JSON.stringify([{ i }]));
            }
        };
        // The worker acts on wake events alone: a lost one would leave it waiting.
        const work = async () => {
            while (seen.size < total) {
                await events.of(subscription);
                const reply = await subscription.claim();
                if (reply.status === 409) {
                    continue;
                }
                const claim = assertStatus(reply, 200).json();
                const [{ acked_offset, tail_offset }] = claim.streams;
                for (const { i } of (await stream.readMessages(acked_offset)).messages) {
                    seen.add(i);
                }
                assertStatus(await subscription.ack(claim, { acks: [{ stream: stream.name, offset: tail_offset }], done: true }), 200);
            }
        };
        await Promise.all([write(), work()]);
        assert.equal(seen.size, total);
    });

    test('many streams, many appenders, one subscription', async () => {
        const { name, subscription, events } = await world();
        const streams = Array.from({ length: 20 }, (_, i) => jsonStream(server, `${name}/deep/${i}`));
        const appends = streams.flatMap((stream) => [() => stream.create({}, '[1]')]);
        await inParallel(8, appends);
        await events.of(subscription, 1);
        await inParallel(8, Array.from({ length: rounds(200) }, (_, i) => () => streams[i % 20].append('[2]')));
        let acked = new Map();
        for (;;) {
            const reply = await subscription.claim();
            if (reply.status === 409) {
                assert.equal(reply.json().error.code, 'NO_PENDING_WORK');
                break;
            }
            const claim = assertStatus(reply, 200).json();
            acked = new Map(claim.streams.map((one) => [one.path, one.tail_offset]));
            assertStatus(await subscription.ack(claim, { acks: acksOf(claim), done: true }), 200);
        }
        for (const stream of streams) {
            assert.equal(acked.get(stream.name), await tailOf(stream), stream.name);
        }
    });
});
