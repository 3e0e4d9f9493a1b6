// Tier 30: subscriptions across kill -9, restart and SIGTERM: what was answered stays, what was under way goes on.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { uniqueName } from './lib/http.mjs';
import { serverFor } from './lib/server.mjs';
import { LONG_LEASE_MS, Receiver, SHORT_LEASE_MS, Subscription, WakeReader, acksOf, assertError, assertSigned, assertStatus, control,
         jsonStream } from './lib/subscriptions.mjs';
import { eventually, randomFrom, rounds, sleep } from './lib/wait.mjs';

const FLAGS = ['--webhooks-allow-loopback', '--long-poll-timeout', '2s'];
const OK = { ok: true, next_wake: false };
const done = (delivery) => delivery.answer({ done: true });
const tailOf = async (stream) => (await stream.head()).next;
const WAYS = { 'kill -9': (server) => server.crashAndRestart(), restart: (server) => server.restart() };

async function pullWorld(server, { lease = LONG_LEASE_MS, name = uniqueName('in') } = {}) {
    const wake = jsonStream(server, `wake/${name}`);
    await wake.create({}, '[]');
    const subscription = new Subscription(server, name);
    const config = { type: 'pull-wake', pattern: `${name}/**`, wake_stream: wake.name, lease_ttl_ms: lease };
    await subscription.create(config);
    return { wake, subscription, config, events: new WakeReader(wake), stream: jsonStream(server, `${name}/a`) };
}

async function hookWorld(t, server, { rule, lease = LONG_LEASE_MS, name = uniqueName('in') } = {}) {
    const receiver = await Receiver.open(t, rule);
    const subscription = new Subscription(server, name);
    const config = { type: 'webhook', pattern: `${name}/**`, webhook: { url: receiver.url }, lease_ttl_ms: lease };
    await subscription.create(config);
    return { receiver, subscription, config, stream: jsonStream(server, `${name}/a`) };
}

async function ackedUpTo(subscription, stream) {
    const tail = await tailOf(stream);
    await eventually(`${stream.name} is acked up to ${tail}`, async () =>
        (await subscription.linkTo(stream.name))?.acked_offset === tail);
}

for (const [way, again] of Object.entries(WAYS)) {
    describe(`after ${way}`, () => {
        test('definitions, links, cursors and deletions are as they were answered', async (t) => {
            const server = await serverFor(t, FLAGS);
            const { subscription, stream, config } = await pullWorld(server);
            await stream.create({}, '[1]');
            const claim = await subscription.claimed();
            assertStatus(await subscription.ack(claim, { acks: acksOf(claim), done: true }), 200);
            assertStatus(await subscription.link(['x/a', 'x/b']), 204);
            assertStatus(await subscription.unlink('x/b'), 204);
            const hook = await hookWorld(t, server, { rule: done });
            const gone = new Subscription(server, 'gone');
            await gone.create(config);
            assertStatus(await gone.remove(), 204);
            const before = [await subscription.read(), await hook.subscription.read()];
            await again(server);
            const after = [await subscription.read(), await hook.subscription.read()];
            // The port is another one, so the URLs of the server are.
            before[1].webhook.signing.jwks_url = after[1].webhook.signing.jwks_url;
            assert.deepEqual(after, before);
            assertError(await gone.get(), 404, 'SUBSCRIPTION_NOT_FOUND');
            assertStatus(await subscription.put(config), 200);
            assertError(await subscription.put({ ...config, description: 'x' }), 409, 'SUBSCRIPTION_ALREADY_EXISTS');
            assertError(await subscription.claim(), 409, 'NO_PENDING_WORK');
            assert.ok((await control(server, 'GET', '/jwks.json')).json().keys.some((key) => key.kid === before[1].webhook.signing.kid));
        });

        test('a live lease keeps holder, generation and token', async (t) => {
            const server = await serverFor(t, FLAGS);
            const { subscription, stream } = await pullWorld(server);
            await stream.create({}, '[1]');
            const claim = await subscription.claimed('worker-7');
            await again(server);
            const error = assertError(await subscription.claim('worker-8'), 409, 'ALREADY_CLAIMED');
            assert.equal(error.current_holder, 'worker-7');
            assert.equal(error.generation, claim.generation);
            assertStatus(await subscription.ack(claim, { acks: acksOf(claim) }), 200);
            await again(server);
            assert.deepEqual(assertStatus(await subscription.ack(claim, { done: true }), 200).json(), OK);
            assertError(await subscription.claim(), 409, 'NO_PENDING_WORK');
        });

        test('a lease that ended meanwhile makes a new generation', async (t) => {
            const server = await serverFor(t, FLAGS);
            const { subscription, stream, events } = await pullWorld(server, { lease: SHORT_LEASE_MS });
            await stream.create({}, '[1]');
            const claim = await subscription.claimed();
            await again(server);
            assert.ok((await events.of(subscription, claim.generation + 1)).ts);
            for (const verb of ['ack', 'release']) {
                assertError(await subscription.speak(verb, claim, { done: true }), 409, 'FENCED');
            }
            const next = await subscription.claimed();
            assert.equal(next.generation, claim.generation + 1);
            assert.equal(next.streams[0].acked_offset, '-1');
        });

        test('a lease that ended while nobody ran makes a new generation, too', async (t) => {
            const server = await serverFor(t, FLAGS);
            const { subscription, stream, events } = await pullWorld(server, { lease: SHORT_LEASE_MS });
            await stream.create({}, '[1]');
            const claim = await subscription.claimed();
            const over = Date.now() + SHORT_LEASE_MS;
            await (way === 'restart' ? server.stop() : server.crash());
            await eventually('the lease is over', () => Date.now() > over, { every: 50 });
            await server.start();
            assert.equal((await events.of(subscription, claim.generation + 1)).stream, stream.name);
            assertError(await subscription.ack(claim, { done: true }), 409, 'FENCED');
            assert.equal((await subscription.claimed('worker-2')).generation, claim.generation + 1);
        });

        test('an id that was deleted keeps its generation, and old tokens stay fenced', async (t) => {
            const server = await serverFor(t, FLAGS);
            const { subscription, stream, config } = await pullWorld(server);
            await stream.create({}, '[1]');
            let claim = await subscription.claimed();
            const first = claim;
            for (let i = 0; i < 3; i++) {
                assertStatus(await subscription.release(claim), 204);
                claim = await subscription.claimed();
            }
            assertStatus(await subscription.remove(), 204);
            await again(server);
            assertError(await subscription.ack(claim, { done: true }), 404, 'SUBSCRIPTION_NOT_FOUND');
            await subscription.create(config);
            await again(server);
            await stream.append('[2]');
            const next = await subscription.claimed();
            assert.equal(next.generation, claim.generation + 1);
            for (const old of [first, claim]) {
                assertError(await subscription.ack(old, { done: true }), 409, 'FENCED');
                assertError(await subscription.ack(next, { done: true }, old.token), 409, 'FENCED');
            }
            assertStatus(await subscription.ack(next, { acks: acksOf(next), done: true }), 200);
        });

        test('what became pending and was never told is told', async (t) => {
            const server = await serverFor(t, FLAGS);
            const { subscription, stream, events } = await pullWorld(server);
            await stream.create({}, '[1]');
            const claim = await subscription.claimed();
            await stream.append('[2]');
            assertStatus(await subscription.ack(claim, { acks: acksOf(claim) }), 200);
            await again(server);
            assert.deepEqual(assertStatus(await subscription.ack(claim, { done: true }), 200).json(), { ok: true, next_wake: true });
            await events.of(subscription, 2);
            // A stream that was only just made, too.
            const fresh = jsonStream(server, `${subscription.id}/fresh`);
            await fresh.create({}, '[1]');
            await again(server);
            const next = await subscription.claimed();
            const link = next.streams.find((one) => one.path === fresh.name);
            assert.equal(link?.acked_offset, '-1');
            assert.equal(link.has_pending, true);
        });

        test('a webhook in flight is sent again: the same wake while its lease lives', async (t) => {
            const server = await serverFor(t, FLAGS);
            const { receiver, subscription, stream } = await hookWorld(t, server);
            await stream.create({}, '[1]');
            const first = await receiver.next();
            await again(server);
            const second = await receiver.next();
            assert.equal(second.body.wake_id, first.body.wake_id);
            assert.equal(second.body.generation, first.body.generation);
            await assertSigned(server, second);
            // The token of before is still good, and the wake ends once.
            assert.deepEqual(assertStatus(await subscription.callback(first.body, { acks: acksOf(first.body), done: true }), 200).json(), OK);
            assertError(await subscription.callback(second.body, { done: true }), 409, 'FENCED');
            done(second);
            await stream.append('[2]');
            const third = await receiver.next();
            assert.equal(third.body.generation, 2);
            done(third);
            await ackedUpTo(subscription, stream);
        });

        test('the retry schedule goes on', async (t) => {
            const server = await serverFor(t, FLAGS);
            const { receiver, subscription, stream } = await hookWorld(t, server, { rule: (one) => one.answer('down', 500) });
            await stream.create({}, '[1]');
            const first = await receiver.next();
            await eventually('it is marked', async () => (await subscription.read()).status === 'failed');
            await again(server);
            assert.equal((await subscription.read()).status, 'failed');
            const second = await receiver.next();
            assert.ok(second.at - first.at >= 780, `the second attempt after ${second.at - first.at} ms`);
            assert.equal(second.body.wake_id, first.body.wake_id);
            assert.equal(second.body.generation, first.body.generation);
            const third = await receiver.next();
            assert.ok(third.at - second.at >= 1_580, `the third attempt after ${third.at - second.at} ms`);
            receiver.rule = done;
            await ackedUpTo(subscription, stream);
            assert.equal((await subscription.read()).status, 'active');
        });
    });
}

describe('kill -9 at any moment', () => {
    test('a pull-wake worker processes everything that was acknowledged, and generations only rise', { timeout: 240_000 }, async (t) => {
        const server = await serverFor(t, FLAGS);
        const { subscription, stream, events } = await pullWorld(server, { lease: 2_000 });
        await stream.create();
        const random = randomFrom(0x31);
        const state = { up: true, ending: false, written: [], seen: new Set(), generation: 0, acked: '-1' };

        // Connections break when the server dies; everything else is a failure of the test.
        const trying = async (what) => {
            try {
                return await what();
            } catch (error) {
                if (error instanceof assert.AssertionError) {
                    throw error;
                }
                await sleep(5);
                return null;
            }
        };
        const write = async () => {
            for (let i = 0; !state.ending; i++) {
                const reply = await trying(() => stream.post(JSON.stringify([{ i }])));
                if (reply?.status === 204) {
                    state.written.push(i);
                }
            }
        };
        const workOnce = async () => {
            const reply = await trying(() => subscription.claim());
            if (reply?.status !== 200) {
                return;
            }
            const claim = reply.json();
            assert.ok(claim.generation > state.generation, `generation ${claim.generation} after ${state.generation}`);
            state.generation = claim.generation;
            const link = claim.streams.find((one) => one.path === stream.name);
            assert.ok(link.acked_offset >= state.acked, `the cursor went back from ${state.acked} to ${link.acked_offset}`);
            const got = await trying(() => stream.readMessages(link.acked_offset));
            if (got === null) {
                return;
            }
            got.messages.forEach(({ i }) => state.seen.add(i));
            const ack = await trying(() => subscription.ack(claim, { acks: [{ stream: stream.name, offset: got.next }], done: true }));
            if (ack?.status === 200) {
                state.acked = got.next;
            } else if (ack) {
                assert.ok([409, 503].includes(ack.status), `ack: ${ack.status} ${ack.text}`);
            }
        };
        const work = async () => {
            while (!state.ending) {
                await workOnce();
            }
        };
        const both = Promise.all([write(), work()]);
        both.catch(() => { state.ending = true; });
        for (let round = 0; round < rounds(20) && !state.ending; round++) {
            await sleep(random.between(0, 120));
            await server.crashAndRestart();
        }
        state.ending = true;
        await both;
        // What is left is claimed once the last lease is over; at the end all that was acknowledged has been seen.
        const last = await eventually('the rest is worked off', async () => {
            await workOnce();
            const reply = await subscription.claim();
            if (reply.status === 200) {
                assertStatus(await subscription.release(reply.json()), 204);
                state.generation = reply.json().generation;
            }
            return reply.status === 409 && reply.json().error.code === 'NO_PENDING_WORK';
        });
        assert.ok(last);
        const missing = state.written.filter((i) => !state.seen.has(i));
        assert.deepEqual(missing, [], `${state.written.length} written`);
        assert.ok(events);
    });

    test('each wake is told in the wake stream, whenever the server dies', { timeout: 240_000 }, async (t) => {
        const server = await serverFor(t, FLAGS);
        const { subscription, stream, events } = await pullWorld(server);
        await stream.create();
        const random = randomFrom(0x34);
        let generation = 0;
        for (let round = 0; round < rounds(40); round++) {
            const tail = await tailOf(stream);
            // The server dies at any moment from the append on, which may have been answered by then.
            const kill = sleep(random.between(0, 8)).then(() => server.crash());
            await stream.post('[1]').catch(() => null);
            await kill;
            await server.start();
            if (await tailOf(stream) === tail) {
                continue;   // It was never taken.
            }
            // Nothing but the event brings the worker here.
            const event = await events.next((one) => one.generation > generation, `event after generation ${generation}`);
            const claim = await subscription.claimed();
            assert.ok(claim.generation >= event.generation);
            generation = claim.generation;
            assertStatus(await subscription.ack(claim, { acks: acksOf(claim), done: true }), 200);
        }
    });

    test('webhooks: every acknowledged append is delivered in some wake', { timeout: 240_000 }, async (t) => {
        const server = await serverFor(t, FLAGS);
        const { receiver, subscription, stream } = await hookWorld(t, server, { rule: done, lease: 2_000 });
        await stream.create();
        const random = randomFrom(0x32);
        let acknowledged = 0;
        for (let round = 0; round < rounds(20); round++) {
            const kill = sleep(random.between(0, 60)).then(() => server.crash());
            let up = true;
            kill.then(() => { up = false; });
            while (up) {
                const reply = await stream.post('[1]').catch(() => null);
                acknowledged += reply?.status === 204 ? 1 : 0;
            }
            await kill;
            await server.start();
        }
        await ackedUpTo(subscription, stream);
        const { messages } = await stream.readMessages();
        assert.ok(messages.length >= acknowledged);
        // A generation is one wake, though it may have been sent more than once.
        const wakes = new Map();
        let newest = 0;
        for (const { body } of receiver.deliveries) {
            assert.equal(wakes.get(body.generation) ?? body.wake_id, body.wake_id, `generation ${body.generation}`);
            wakes.set(body.generation, body.wake_id);
            assert.ok(body.generation >= newest, `generation ${body.generation} after ${newest}`);
            newest = body.generation;
        }
    });

    test('webhooks to receivers that fail in every way: all is acked in the end', { timeout: 240_000 }, async (t) => {
        const server = await serverFor(t, FLAGS);
        const random = randomFrom(0x35);
        const callbacks = [];
        const moods = [done, (one) => one.answer('down', 500), (one) => one.drop(), (one) => one.answer({}), (one) => one.answer('no json'),
                       (one) => {
                           one.answer({});
                           const subscription = new Subscription(server, one.body.subscription_id);
                           callbacks.push(subscription.callback(one.body, { acks: acksOf(one.body), done: true }).catch(() => null));
                       }];
        const receiver = await Receiver.open(t, (one) => random.pick(moods)(one));
        const streams = [];
        const subscriptions = [];
        for (let i = 0; i < 6; i++) {
            const subscription = new Subscription(server, `moody-${i}`);
            await subscription.create({ type: 'webhook', pattern: `moody/${i}/*`, webhook: { url: receiver.url }, lease_ttl_ms: SHORT_LEASE_MS });
            subscriptions.push(subscription);
            streams.push(jsonStream(server, `moody/${i}/a`));
            await streams[i].create();
        }
        for (let round = 0; round < rounds(10); round++) {
            for (const stream of streams) {
                await stream.append('[1]');
            }
            await sleep(random.between(0, 400));
            await server.crashAndRestart();
        }
        receiver.rule = done;
        for (let i = 0; i < 6; i++) {
            await ackedUpTo(subscriptions[i], streams[i]);
        }
        for (const reply of await Promise.all(callbacks)) {
            assert.ok([200, 409, 503].includes(reply?.status ?? 200), `callback: ${reply?.status} ${reply?.text}`);
        }
        for (const { id } of subscriptions) {
            let newest = 0;
            for (const { body } of receiver.deliveries.filter((one) => one.body.subscription_id === id)) {
                assert.ok(body.generation >= newest, `${id}: generation ${body.generation} after ${newest}`);
                newest = body.generation;
            }
        }
    });

    test('control requests: what was answered is there, the rest is whole or absent', { timeout: 240_000 }, async (t) => {
        const server = await serverFor(t, FLAGS);
        const random = randomFrom(0x33);
        const known = new Map();   // id -> what GET must show: undefined for gone, null for either
        const config = (i) => ({ type: 'pull-wake', pattern: `p${i}/*`, streams: [`s${i}/a`, `s${i}/b`], wake_stream: 'wake/none' });
        for (let round = 0; round < rounds(15); round++) {
            let up = true;
            const lane = async (lane) => {
                for (let i = 0; up; i++) {
                    const id = `r${round}-${lane}-${i % 5}`;
                    const subscription = new Subscription(server, id);
                    const there = known.get(id);
                    known.set(id, null);
                    try {
                        if (there) {
                            assertStatus(await subscription.remove(), 204);
                            known.set(id, undefined);
                        } else {
                            known.set(id, await subscription.create(config(i)));
                        }
                    } catch (error) {
                        if (error instanceof assert.AssertionError) {
                            throw error;
                        }
                        return;
                    }
                }
            };
            const lanes = Promise.all([0, 1, 2, 3].map(lane));
            lanes.catch(() => {});
            await sleep(random.between(0, 60));
            await server.crash();
            up = false;
            await lanes;
            await server.start();
            for (const [id, wanted] of known) {
                const reply = await new Subscription(server, id).get();
                if (wanted === undefined) {
                    assertError(reply, 404, 'SUBSCRIPTION_NOT_FOUND');
                } else if (wanted !== null) {
                    assert.deepEqual(assertStatus(reply, 200).json(), wanted);
                } else if (reply.status === 200) {
                    assert.deepEqual(reply.json().streams.length, 2, 'all of it');
                    known.set(id, reply.json());
                } else {
                    assertError(reply, 404, 'SUBSCRIPTION_NOT_FOUND');
                    known.set(id, undefined);
                }
            }
        }
        assert.ok(known.size > 0);
    });
});

describe('SIGTERM', () => {
    test('it drains while a webhook is in flight, which is sent again afterwards', async (t) => {
        const server = await serverFor(t, FLAGS);
        const { receiver, subscription, stream } = await hookWorld(t, server);
        await stream.create({}, '[1]');
        const first = await receiver.next();
        await server.stop();
        await first.gone;
        await server.start();
        const second = await receiver.next();
        assert.equal(second.body.wake_id, first.body.wake_id);
        done(second);
        await ackedUpTo(subscription, stream);
    });

    test('it drains under control requests: each is answered whole or not at all', async (t) => {
        const server = await serverFor(t, FLAGS);
        const answered = [];
        const lanes = Array.from({ length: 8 }, async (_, lane) => {
            for (let i = 0; ; i++) {
                const subscription = new Subscription(server, `t${lane}-${i}`);
                const page = await control(server, 'GET', '/streams').catch(() => null);
                assert.ok([200, 503].includes(page?.status ?? 200), `${page?.status} ${page?.text}`);
                const reply = await subscription.put({ type: 'pull-wake', pattern: 'none/*', wake_stream: 'w' }).catch(() => null);
                if (reply === null) {
                    return;
                }
                assert.ok([201, 503].includes(reply.status), `${reply.status} ${reply.text}`);
                if (reply.status === 201) {
                    answered.push(subscription);
                }
            }
        });
        await eventually('some are answered', () => answered.length > 50);
        await server.stop();
        await Promise.all(lanes);
        await server.start();
        for (const one of answered) {
            assertStatus(await one.get(), 200);
        }
    });
});
