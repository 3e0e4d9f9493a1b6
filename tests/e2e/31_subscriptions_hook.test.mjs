// Tier 30: webhooks (PROTOCOL.md 7.1): what is sent, what answers and callbacks do, and the traps in it.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { uniqueName } from './lib/http.mjs';
import { startServer } from './lib/server.mjs';
import { CONTROL, LONG_LEASE_MS, Receiver, SHORT_LEASE_MS, Subscription, acksOf, assertError, assertSigned, assertStatus,
         jsonStream } from './lib/subscriptions.mjs';
import { eventually, rounds } from './lib/wait.mjs';

const server = await startServer(['--webhooks-allow-loopback']);
after(() => server.dispose());

const OK = { ok: true, next_wake: false };
const done = (delivery) => delivery.answer({ done: true });

// A receiver, a subscription that posts to it, and a stream that it follows.
async function world(t, { rule, lease = LONG_LEASE_MS, id = uniqueName('hook'), ...more } = {}) {
    const name = uniqueName('in');
    const receiver = await Receiver.open(t, rule);
    const subscription = new Subscription(server, id);
    const config = { type: 'webhook', pattern: `${name}/**`, webhook: { url: receiver.url }, lease_ttl_ms: lease, ...more };
    await subscription.create(config);
    t.after(() => subscription.remove());
    return { name, receiver, subscription, config, stream: jsonStream(server, `${name}/a`) };
}

const tailOf = async (stream) => (await stream.head()).next;

async function ackedUpTo(subscription, stream) {
    const tail = await tailOf(stream);
    await eventually(`${stream.name} is acked up to ${tail}`, async () =>
        (await subscription.linkTo(stream.name))?.acked_offset === tail);
}

describe('what is sent', () => {
    test('a signed POST of JSON that tells all links', async (t) => {
        const { receiver, subscription, stream, name } = await world(t, { id: uniqueName('a/b é') });
        assertStatus(await subscription.link([`${name}/later`]), 204);
        await stream.create({}, '[{"n":1}]');
        const delivery = await receiver.next();
        assert.equal(delivery.method, 'POST');
        assert.equal(delivery.path, '/hook');
        assert.match(delivery.headers['content-type'], /^application\/json/);
        await assertSigned(server, delivery);
        const { wake_id, callback_token, streams, ...rest } = delivery.body;
        assert.deepEqual(rest, { subscription_id: subscription.id, generation: 1,
                                 callback_url: `${server.base}${CONTROL}/subscriptions/${encodeURIComponent(subscription.id)}/callback` });
        assert.match(wake_id, /^w_[0-9a-f]{24}$/);
        assert.match(callback_token, /^[\w-]+\.[\w-]+$/);
        const zero = '0000000000000000_0000000000000000';
        assert.deepEqual(streams.sort((a, b) => (a.path < b.path ? -1 : 1)), [
            { path: stream.name, link_type: 'glob', acked_offset: '-1', tail_offset: await tailOf(stream), has_pending: true },
            { path: `${name}/later`, link_type: 'explicit', acked_offset: zero, tail_offset: zero, has_pending: false },
        ]);
        done(delivery);
    });

    test('the callback URL that was sent works as it is', async (t) => {
        const { receiver, subscription, stream } = await world(t, { id: uniqueName('a/b "é" %') });
        await stream.create({}, '[1]');
        const { body, answer } = await receiver.next();
        const reply = await fetch(body.callback_url, {
            method: 'POST', headers: { Authorization: `Bearer ${body.callback_token}` },
            body: JSON.stringify({ wake_id: body.wake_id, generation: body.generation, acks: acksOf(body), done: true }),
        });
        assert.equal(reply.status, 200);
        assert.deepEqual(await reply.json(), OK);
        assert.ok(answer);
        await ackedUpTo(subscription, stream);
    });
});

describe('answers', () => {
    test('done acks what was sent; what came since wakes again', async (t) => {
        const { receiver, subscription, stream } = await world(t);
        await stream.create({}, '[1]');
        const first = await receiver.next();
        await stream.append('[2]');
        done(first);
        const second = await receiver.next();
        assert.equal(second.body.generation, 2);
        assert.notEqual(second.body.wake_id, first.body.wake_id);
        assert.equal(second.body.streams[0].acked_offset, first.body.streams[0].tail_offset);
        done(second);
        await ackedUpTo(subscription, stream);
        assert.equal(receiver.deliveries.length, 2);
        assert.equal((await subscription.read()).status, 'active');
    });

    test('any other 2xx leaves the lease; its end wakes again', async (t) => {
        for (const [status, body] of [[200, '{}'], [200, 'no json'], [204, ''], [202, '{"done":false}'], [200, '{"done":"true"}'], [200, '[]'],
                                      [200, 'null'], [200, '{"done":1}'], [200, '']]) {
            const { receiver, stream, subscription } = await world(t, { lease: SHORT_LEASE_MS });
            await stream.create({}, '[1]');
            (await receiver.next()).answer(status === 204 ? undefined : body, status);
            const again = await receiver.next();
            assert.equal(again.body.generation, 2, `${status} ${body}`);
            assert.equal(again.body.streams[0].acked_offset, '-1');
            done(again);
            assert.equal((await subscription.read()).status, 'active');
            await subscription.remove();
        }
    });

    test('a callback acks and ends the wake; said again it is fenced', async (t) => {
        const { receiver, subscription, stream } = await world(t);
        await stream.create({}, '[1]');
        const { body, ...first } = await receiver.next();
        assert.ok(first);
        receiver.deliveries[0].answer({});
        assert.deepEqual(assertStatus(await subscription.callback(body, { acks: acksOf(body), done: true }), 200).json(), OK);
        assertError(await subscription.callback(body, { acks: acksOf(body), done: true }), 409, 'FENCED');
        assert.equal((await subscription.linkTo(stream.name)).acked_offset, await tailOf(stream));
        // The next append wakes with the next generation, which fences the old token.
        await stream.append('[2]');
        const second = await receiver.next();
        assert.equal(second.body.generation, 2);
        assertError(await subscription.callback(body, { done: true }), 409, 'FENCED');
        assertError(await subscription.callback(second.body, { done: true }, body.callback_token), 409, 'FENCED');
        assert.deepEqual(assertStatus(await subscription.callback(second.body, { done: true }), 200).json(), { ok: true, next_wake: true });
        const third = await receiver.next();
        assert.equal(third.body.generation, 3);
        done(third);
    });

    test('a callback while the webhook still waits for its answer', async (t) => {
        const { receiver, subscription, stream } = await world(t);
        await stream.create({}, '[1]');
        const first = await receiver.next();
        assert.deepEqual(assertStatus(await subscription.callback(first.body, { acks: acksOf(first.body), done: true }), 200).json(), OK);
        await stream.append('[2]');
        const second = await receiver.next();
        done(first);
        done(second);
        await ackedUpTo(subscription, stream);
    });

    test('callback: the same checks as for ack', async (t) => {
        const { receiver, subscription, stream } = await world(t);
        await stream.create({}, '[1]');
        const { body } = await receiver.next();
        const token = { Authorization: 'Bearer x.y' };
        assertError(await subscription.send('POST', '/callback', '{'), 401, 'TOKEN_INVALID');
        assertError(await subscription.send('POST', '/callback', '{', token), 400, 'INVALID_REQUEST');
        assertError(await subscription.send('POST', '/callback', { wake_id: 'x', generation: 9 }, token), 401, 'TOKEN_INVALID');
        assertError(await subscription.send('POST', '/callback', {}, { Authorization: `bearer ${body.callback_token}` }), 401, 'TOKEN_INVALID');
        assertError(await subscription.callback({ ...body, wake_id: 'w_0' }, { done: true }), 409, 'FENCED');
        assertError(await subscription.callback({ ...body, generation: 7 }, { done: true }), 409, 'FENCED');
        for (const acks of [{}, [null], [{ stream: stream.name }], [{ stream: stream.name, offset: 5 }]]) {
            const reply = await subscription.callback(body, { acks });
            assert.ok([400, 409].includes(reply.status), `${JSON.stringify(acks)}: ${reply.status}`);
        }
        assertError(await subscription.callback(body, { acks: [{ stream: 'x', offset: '-1' }], done: true }), 409, 'INVALID_OFFSET');
        assertError(await subscription.claim(), 400, 'INVALID_REQUEST');
        assert.deepEqual(assertStatus(await subscription.callback(body, { acks: [{ path: stream.name, offset: await tailOf(stream) }], done: true }),
                                      200).json(), OK);
    });
});

describe('the traps', () => {
    test('trap 1: an answer that comes after the lease does not end the next wake', async (t) => {
        const { receiver, subscription, stream } = await world(t, { lease: SHORT_LEASE_MS });
        await stream.create({}, '[1]');
        const first = await receiver.next();
        const second = await receiver.next();
        assert.equal(second.body.generation, 2);
        done(first);
        // The receiver has answered; whatever the server made of it is seen in the next wake, which the lease brings.
        second.answer({});
        const third = await receiver.next();
        assert.equal(third.body.streams[0].acked_offset, '-1', 'the late answer acked nothing');
        assert.equal(third.body.streams[0].has_pending, true);
        receiver.rule = done;
        done(third);
        await ackedUpTo(subscription, stream);
    });

    test('trap 2: an answer does not take a cursor back', async (t) => {
        const { receiver, subscription, stream } = await world(t);
        await stream.create({}, '[1]');
        const first = await receiver.next();
        await stream.append('[2]');
        const tail = await tailOf(stream);
        assertStatus(await subscription.callback(first.body, { acks: [{ stream: stream.name, offset: tail }] }), 200);
        done(first);
        await stream.append('[3]');
        const second = await receiver.next();
        assert.equal(second.body.streams[0].acked_offset, tail);
        assert.equal(second.body.generation, 2);
        done(second);
        await ackedUpTo(subscription, stream);
    });

    test('trap 3: an answer to a deleted subscription does nothing', async (t) => {
        const { receiver, subscription, stream, config } = await world(t);
        await stream.create({}, '[1]');
        const first = await receiver.next();
        await stream.append('[2]');
        assertStatus(await subscription.remove(), 204);
        done(first);
        assertError(await subscription.callback(first.body, { acks: acksOf(first.body), done: true }), 404, 'SUBSCRIPTION_NOT_FOUND');
        // Made anew, the first thing that is sent is for what is appended from here on.
        await subscription.create(config);
        const tail = await tailOf(stream);
        await stream.append('[3]');
        const next = await receiver.next();
        assert.ok(next.body.generation > first.body.generation);
        assert.equal(next.body.streams[0].acked_offset, tail);
        assertError(await subscription.callback(first.body, { done: true }), 409, 'FENCED');
        done(next);
        await ackedUpTo(subscription, stream);
        assert.equal(receiver.deliveries.length, 2);
    });

    test('trap 4: a receiver that is down is asked less and less, whatever the lease', async (t) => {
        let busy = 0;
        let most = 0;
        const rule = (delivery) => {
            busy++;
            most = Math.max(most, busy);
            delivery.answer('down', 500);
            delivery.gone.then(() => busy--);
        };
        const { receiver, subscription, stream } = await world(t, { rule, lease: SHORT_LEASE_MS });
        await stream.create({}, '[1]');
        const seen = [await receiver.next()];
        await eventually('it is marked', async () => (await subscription.read()).status === 'failed');
        for (let attempt = 1; attempt <= 3; attempt++) {
            await stream.append('[2]');   // Nor does an append bring the next attempt forward.
            seen.push(await receiver.next());
            const gap = seen[attempt].at - seen[attempt - 1].at;
            assert.ok(gap >= 800 * 2 ** (attempt - 1) - 20, `attempt ${attempt + 1} after ${gap} ms`);
            await assertSigned(server, seen[attempt]);
        }
        assert.equal(most, 1, 'never two at once');
        receiver.rule = done;
        await ackedUpTo(subscription, stream);
        assert.equal((await subscription.read()).status, 'active');
    });

    test('a retry tells the same wake, and what has come since', async (t) => {
        const { receiver, subscription, stream } = await world(t);
        await stream.create({}, '[1]');
        const first = await receiver.next();
        await stream.append('[2]');
        first.answer('no', 503);
        const second = await receiver.next();
        assert.equal(second.body.wake_id, first.body.wake_id);
        assert.equal(second.body.generation, first.body.generation);
        assert.equal(second.body.streams[0].tail_offset, await tailOf(stream));
        second.drop();
        const third = await receiver.next();
        assert.equal(third.body.wake_id, first.body.wake_id);
        done(third);
        await ackedUpTo(subscription, stream);
    });

    test('a receiver that does not listen is marked, and served once it does', async (t) => {
        const { receiver, subscription, stream } = await world(t);
        await receiver.close();
        await stream.create({}, '[1]');
        await eventually('it is marked', async () => (await subscription.read()).status === 'failed');
        receiver.rule = done;
        await receiver.listen(receiver.port);
        await ackedUpTo(subscription, stream);
        assert.equal((await subscription.read()).status, 'active');
    });

    test('a redirect is not followed: it is a failure', async (t) => {
        const elsewhere = await Receiver.open(t, done);
        const { receiver, subscription, stream } = await world(t);
        await stream.create({}, '[1]');
        (await receiver.next()).answer({ done: true }, 307, { Location: elsewhere.url });
        await eventually('it is marked', async () => (await subscription.read()).status === 'failed');
        done(await receiver.next());
        await ackedUpTo(subscription, stream);
        assert.equal(elsewhere.deliveries.length, 0);
    });

    test('a deleted subscription is not retried', async (t) => {
        let receiver = null;
        await eventually('a deletion before the first retry', async () => {
            const one = await world(t, { rule: (delivery) => delivery.answer('down', 500) });
            await one.stream.create({}, '[1]');
            const first = await one.receiver.next();
            await eventually('it is marked', async () => (await one.subscription.read()).status === 'failed');
            assertStatus(await one.subscription.remove(), 204);
            receiver = one.receiver;
            return Date.now() - first.at < 800; // the retry comes no earlier than that
        });
        // Another subscription's second attempt is due later than the first one's would have been.
        const other = await world(t, { rule: (delivery) => delivery.answer('down', 500) });
        await other.stream.create({}, '[1]');
        await other.receiver.next();
        await other.receiver.next();
        await other.receiver.next();
        assert.equal(receiver.deliveries.length, 1);
    });
});

describe('no lost wake', () => {
    test('appends during a wake in flight always lead to another wake', async (t) => {
        const { receiver, subscription, stream } = await world(t, { rule: (delivery) => setImmediate(() => done(delivery)) });
        await stream.create();
        for (let i = 0; i < rounds(300); i++) {
            await stream.append('[1]');
        }
        await ackedUpTo(subscription, stream);
        const generations = receiver.deliveries.map((one) => one.body.generation);
        assert.deepEqual(generations, generations.map((_, i) => i + 1), 'one wake after another');
    });

    test('many subscriptions over one stream are all served', async (t) => {
        const receiver = await Receiver.open(t, done);
        const name = uniqueName('in');
        const stream = jsonStream(server, `${name}/a`);
        const all = Array.from({ length: rounds(40) }, (_, i) => new Subscription(server, `${name}-${i}`));
        for (const [i, one] of all.entries()) {
            await one.create({ type: 'webhook', pattern: i % 2 ? `${name}/*` : '**/a', streams: [`${name}/a`], webhook: { url: receiver.url },
                               lease_ttl_ms: LONG_LEASE_MS });
        }
        await stream.create({}, '[1]');
        await stream.append('[2]');
        for (const one of all) {
            await ackedUpTo(one, stream);
            assertStatus(await one.remove(), 204);
        }
    });
});
