// Tier 30: subscriptions when the disk is slow, fails or is full, and when the server is told to end.
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { OCTETS, Stream, request, uniqueName } from './lib/http.mjs';
import { Buffers } from './lib/fill.mjs';
import { Faults, buildFaultLibrary, fillDisk, mountImpossible, mountTiny } from './lib/faults.mjs';
import { testUnless } from './lib/impossible.mjs';
import { parseMetrics } from './lib/prometheus.mjs';
import { Raw, head } from './lib/raw.mjs';
import { Server, serverFor, startServer } from './lib/server.mjs';
import { CONTROL, LONG_LEASE_MS, Receiver, Subscription, WakeReader, acksOf, assertError, assertStatus, control,
         jsonStream } from './lib/subscriptions.mjs';
import { eventually } from './lib/wait.mjs';

const FLAGS = ['--webhooks-allow-loopback', '--long-poll-timeout', '2s'];
const OK = { ok: true, next_wake: false };
const done = (delivery) => delivery.answer({ done: true });
const tailOf = async (stream) => (await stream.head()).next;
const { library, impossible } = buildFaultLibrary();
const faultTest = testUnless(impossible);
const fullDiskTest = testUnless(mountImpossible());

async function pullWorld(server, name = uniqueName('in')) {
    const wake = jsonStream(server, `wake/${name}`);
    await wake.create({}, '[]');
    const subscription = new Subscription(server, name);
    const config = { type: 'pull-wake', pattern: `${name}/**`, wake_stream: wake.name, lease_ttl_ms: LONG_LEASE_MS };
    await subscription.create(config);
    return { wake, subscription, config, events: new WakeReader(wake), stream: jsonStream(server, `${name}/a`) };
}

async function withFaults(t, body) {
    const faults = new Faults(library);
    const server = new Server(FLAGS, { env: faults.env });
    t.after(() => faults.dispose());
    try {
        await server.start();
        await body(server, faults);
    } catch (error) {
        faults.clear();
        server.expectGone();
        await server.kill('SIGKILL');
        error.message += `\n${server.tail()}`;
        throw error;
    } finally {
        faults.clear();
        await server.dispose();
    }
}

// Sends a request and does not wait for its answer.
async function fire(server, method, path, document, headers = []) {
    const body = JSON.stringify(document);
    const raw = await Raw.open(server);
    await raw.sendAll(Buffer.from(head(method, CONTROL + path, [`Content-Length: ${Buffer.byteLength(body)}`, ...headers]) + body));
    return raw;
}

describe('a disk that is slow or fails', { timeout: 240_000 }, () => {
    faultTest('nothing is answered, sent or shown before it is safe', async (t) => {
        await withFaults(t, async (server, faults) => {
            const receiver = await Receiver.open(t, done);
            const { subscription, stream, wake } = await pullWorld(server);
            await stream.create({}, '[1]');
            const hook = new Subscription(server, uniqueName('hook'));
            await hook.create({ type: 'webhook', streams: [`${hook.id}/a`], webhook: { url: receiver.url }, lease_ttl_ms: LONG_LEASE_MS });
            const claim = await subscription.claimed();
            const events = (await wake.readMessages()).messages.length;

            faults.set('sync wal hold');
            const fresh = new Subscription(server, uniqueName('fresh'));
            const put = await fire(server, 'PUT', fresh.path, { type: 'pull-wake', pattern: 'x/*', wake_stream: 'w' });
            const ack = await fire(server, 'POST', `${subscription.path}/ack`,
                                   { wake_id: claim.wake_id, generation: claim.generation, acks: acksOf(claim), done: true },
                                   [`Authorization: Bearer ${claim.token}`]);
            const append = jsonStream(server, `${hook.id}/a`).create({}, '[1]');
            await faults.hit();
            assert.equal(receiver.deliveries.length, 0);
            assert.equal((await wake.readMessages()).messages.length, events);
            assert.equal(put.bytes + ack.bytes, 0, 'no answer yet');
            faults.clear();
            assert.equal((await put.response('PUT')).status, 201);
            assert.deepEqual((await ack.response('POST')).json(), OK);
            await append;
            await receiver.next();
            put.destroy();
            ack.destroy();
            await server.crashAndRestart();
            assertStatus(await fresh.get(), 200);
            assertError(await subscription.ack(claim, { done: true }), 409, 'FENCED');
        });
    });

    faultTest('once the log has failed requests are 503, and a restart has what was answered before', async (t) => {
        await withFaults(t, async (server, faults) => {
            const { subscription, stream, events } = await pullWorld(server);
            await stream.create({}, '[1]');
            const claim = await subscription.claimed();
            faults.set('sync wal EIO');
            const fresh = new Subscription(server, uniqueName('fresh'));
            const config = { type: 'pull-wake', pattern: 'x/*', wake_stream: 'w' };
            // Whether the first one is on the disk nobody knows, so nobody is asked to send it again.
            const unknown = await fresh.put(config);
            assertError(unknown, 503, 'UNAVAILABLE');
            assert.match(unknown.json().error.message, /outcome is unknown/);
            assert.equal(unknown.headers['retry-after'], undefined);
            for (const ask of [() => subscription.ack(claim, { acks: acksOf(claim), done: true }),
                               () => subscription.remove(), () => subscription.link(['y']), () => fresh.put(config)]) {
                const reply = await ask();
                assertError(reply, 503, 'UNAVAILABLE');
                assert.match(reply.headers['retry-after'], /^\d+$/);
            }
            const metrics = parseMetrics((await request(server.base, 'GET', '/metrics')).text);
            assert.deepEqual(metrics.all('arbe_errors_total'), { UNKNOWN: 1, FAILED: 4 });
            assert.equal((await control(server, 'GET', '/jwks.json')).status, 200);
            faults.clear();
            server.expectGone();
            await server.kill('SIGKILL');
            await server.start();
            // Each of those was either taken whole or not at all; the lease is the same.
            const after = await subscription.get();
            assert.ok([200, 404].includes(after.status));
            if (after.status === 200) {
                const reply = await subscription.ack(claim, { acks: acksOf(claim), done: true });
                assert.ok([200, 409].includes(reply.status), `${reply.status} ${reply.text}`);
            }
            assertStatus(await fresh.remove(), 204);
            assertStatus(await fresh.put(config), 201);
            assert.ok(events);
        });
    });
});

describe('a full disk', { timeout: 240_000 }, () => {
    fullDiskTest('requests are refused until there is room; deletion goes on; nothing is lost', async () => {
        const tiny = mountTiny('24m');
        const server = await startServer([...FLAGS, '--wal-segment', '1MiB', '--checkpoint-bytes', '4MiB', '--checkpoint-interval', '1s'],
                                         { dir: join(tiny.dir, 'data') });
        try {
            const { subscription, stream, config } = await pullWorld(server);
            const spare = new Subscription(server, uniqueName('spare'));
            await spare.create({ ...config, streams: Array.from({ length: 100 }, (_, i) => `s/${i}`) });
            const gone = new Subscription(server, uniqueName('gone'));
            await gone.create({ ...config, pattern: 'none/*' });
            await stream.create({}, '[1]');
            const big = new Stream(server, 'big', OCTETS);
            await big.create();
            const filler = join(tiny.dir, 'filler');
            fillDisk(filler);
            for (let i = 0, status = 204; status === 204 && i < 2_000; i++) {
                ({ status } = await big.post(Buffers.numbered(i, 100_000)));
            }
            const refused = await eventually('a request is refused', async () => {
                const one = new Subscription(server, uniqueName('more'));
                const reply = await one.put({ ...config, description: 'x'.repeat(4_000), streams: Array.from({ length: 1_000 }, (_, i) => `t/${i}`) });
                return reply.status === 201 ? null : reply;
            });
            assert.ok([507, 503].includes(refused.status), `${refused.status} ${refused.text}`);
            assert.match(refused.json().error.code, /^(OUT_OF_SPACE|UNAVAILABLE)$/);
            assertStatus(await subscription.get(), 200);
            assertStatus(await gone.remove(), 204);
            rmSync(filler);
            await eventually('requests are taken again', async () => {
                const reply = await subscription.claim();
                return reply.status === 200 || (reply.status === 409 && reply.json().error.code === 'ALREADY_CLAIMED');
            });
            await server.crashAndRestart();
            assert.equal((await spare.read()).streams.filter((one) => one.link_type === 'explicit').length, 100);
            assertError(await gone.get(), 404, 'SUBSCRIPTION_NOT_FOUND');
            assertError(await subscription.claim(), 409, 'ALREADY_CLAIMED');
        } finally {
            try {
                await server.dispose();
            } finally {
                tiny.unmount();
            }
        }
    });
});

describe('SIGTERM', () => {
    test('a webhook under way may still answer, and is not sent again', async (t) => {
        const server = await serverFor(t, FLAGS);
        const receiver = await Receiver.open(t);
        const subscription = new Subscription(server, uniqueName('hook'));
        await subscription.create({ type: 'webhook', pattern: `${subscription.id}/*`, webhook: { url: receiver.url }, lease_ttl_ms: LONG_LEASE_MS });
        const stream = jsonStream(server, `${subscription.id}/a`);
        await stream.create({}, '[1]');
        const first = await receiver.next();
        const stopped = server.stop();
        await eventually('it drains', () => /draining/.test(server.log));
        done(first);
        await stopped;
        await server.start();
        assert.equal((await subscription.linkTo(stream.name)).acked_offset, await tailOf(stream));
        await stream.append('[2]');
        const second = await receiver.next();
        assert.equal(second.body.generation, 2);
        done(second);
    });

    test('a receiver that never answers does not hold up the end', async (t) => {
        const server = await serverFor(t, FLAGS);
        const receiver = await Receiver.open(t);
        for (let i = 0; i < 40; i++) {
            const subscription = new Subscription(server, `hung-${i}`);
            await subscription.create({ type: 'webhook', pattern: 'hung/*', webhook: { url: receiver.url }, lease_ttl_ms: LONG_LEASE_MS });
        }
        await jsonStream(server, 'hung/a').create({}, '[1]');
        await receiver.next();
        await server.stop();
        await server.start();
        receiver.rule = done;
        receiver.deliveries.filter((one) => !one.res.writableEnded && !one.res.destroyed).forEach(done);
        for (let i = 0; i < 40; i++) {
            const subscription = new Subscription(server, `hung-${i}`);
            await eventually(`${subscription.id} is served`, async () =>
                (await subscription.linkTo('hung/a')).acked_offset === await tailOf(jsonStream(server, 'hung/a')));
        }
    });
});

describe('settings', () => {
    test('URLs that are given out begin with --public-url', async (t) => {
        const receiver = await Receiver.open(t, done);
        const server = await serverFor(t, [...FLAGS, '--public-url', 'https://streams.example/base/']);
        const subscription = new Subscription(server, 'a b');
        const made = await subscription.create({ type: 'webhook', pattern: 'in/*', webhook: { url: receiver.url } });
        assert.equal(made.webhook.signing.jwks_url, `https://streams.example/base${CONTROL}/jwks.json`);
        await jsonStream(server, 'in/a').create({}, '[1]');
        const { body } = await receiver.next();
        assert.equal(body.callback_url, `https://streams.example/base${CONTROL}/subscriptions/a%20b/callback`);
    });

    test('the rules for URLs hold for new subscriptions; those that are there are told as they are', async (t) => {
        const server = await serverFor(t, FLAGS);
        const subscription = new Subscription(server, 'a');
        const config = { type: 'webhook', pattern: 'in/*', webhook: { url: 'http://127.0.0.1:9/hook' } };
        const { created_at } = await subscription.create(config);
        await server.restart([]);
        assert.equal(assertStatus(await subscription.put(config), 200).json().created_at, created_at);
        assertError(await new Subscription(server, 'b').put(config), 400, 'WEBHOOK_URL_REJECTED');
        assertStatus(await subscription.remove(), 204);
        assertError(await subscription.put(config), 400, 'WEBHOOK_URL_REJECTED');
    });

    test('in memory they work like any other, and are gone with the streams', async (t) => {
        const server = await serverFor(t, [...FLAGS, '--durability', 'memory']);
        const { subscription, stream, events } = await pullWorld(server);
        await stream.create({}, '[1]');
        assert.equal((await events.of(subscription)).generation, 1);
        const claim = await subscription.claimed();
        assert.deepEqual(assertStatus(await subscription.ack(claim, { acks: acksOf(claim), done: true }), 200).json(), OK);
        await server.restart();
        assertError(await subscription.get(), 404, 'SUBSCRIPTION_NOT_FOUND');
        const again = await pullWorld(server);
        await again.stream.create({}, '[1]');
        await again.events.of(again.subscription, 1);
    });
});
