// Tier 30: subscriptions as they are made, read, changed and removed (PROTOCOL.md 6).
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { uniqueName } from './lib/http.mjs';
import { startServer } from './lib/server.mjs';
import { CONTROL, LONG_LEASE_MS, Subscription, assertError, assertStatus, control, jsonStream } from './lib/subscriptions.mjs';
import { eventually } from './lib/wait.mjs';

const server = await startServer(['--webhooks-allow-loopback']);
after(() => server.dispose());

const ZERO = '0000000000000000_0000000000000000';
const HOOK = { url: 'http://127.0.0.1:9/hook' };
const space = () => uniqueName('space');
const pull = (more) => ({ type: 'pull-wake', wake_stream: 'wake/nowhere', lease_ttl_ms: LONG_LEASE_MS, ...more });
const webhook = (more) => ({ type: 'webhook', webhook: HOOK, ...more });

function assertLink(document, path, wanted) {
    const link = document.streams.find((one) => one.path === path);
    assert.deepEqual(link, wanted && { path, ...wanted }, `the link to ${path}`);
}

describe('create', () => {
    test('a webhook subscription, as it is told back', async () => {
        const subscription = new Subscription(server, uniqueName());
        const before = Date.now();
        const made = await subscription.create(webhook({ pattern: 'none/*', description: 'a "b" é', lease_ttl_ms: 1_000 }));
        const { created_at, webhook: hook, ...rest } = made;
        assert.equal(rest.id, subscription.id);
        assert.equal(rest.subscription_id, subscription.id);
        assert.equal(rest.type, 'webhook');
        assert.equal(rest.pattern, 'none/*');
        assert.deepEqual(rest.streams, []);
        assert.equal(rest.lease_ttl_ms, 1_000);
        assert.equal(rest.status, 'active');
        assert.equal(rest.description, 'a "b" é');
        assert.equal(rest.wake_stream ?? null, null);
        assert.match(created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
        assert.ok(Math.abs(Date.parse(created_at) - before) < 60_000);
        assert.equal(hook.url, HOOK.url);
        assert.equal(hook.signing.alg, 'ed25519');
        assert.match(hook.signing.kid, /^ds_/);
        assert.equal(hook.signing.jwks_url, `${server.base}${CONTROL}/jwks.json`);
        assert.doesNotMatch(JSON.stringify(made), /secret|private|token/i);
        assert.deepEqual(await subscription.read(), made);
        assert.equal((await subscription.read()).created_at, created_at);
    });

    test('a pull-wake subscription; its lease is half a minute unless told otherwise', async () => {
        const subscription = new Subscription(server, uniqueName());
        const { lease_ttl_ms, ...config } = pull({ streams: ['none/a'] });
        const made = await subscription.create(config);
        assert.equal(lease_ttl_ms, LONG_LEASE_MS);
        assert.equal(made.type, 'pull-wake');
        assert.equal(made.wake_stream, 'wake/nowhere');
        assert.equal(made.lease_ttl_ms, 30_000);
        assert.equal(made.webhook ?? null, null);
        assert.equal(made.pattern ?? null, null);
        assert.equal(made.description ?? null, null);
        assert.deepEqual(made.streams, [{ path: 'none/a', link_type: 'explicit', acked_offset: ZERO }]);
    });

    test('the host that a client names makes no URL', async () => {
        const subscription = new Subscription(server, uniqueName());
        const reply = await subscription.send('PUT', '', webhook({ pattern: 'none/*' }), { Host: 'evil.example', 'X-Forwarded-Host': 'evil.example' });
        assertStatus(reply, 201);
        assert.doesNotMatch(reply.text, /evil/);
    });

    test('fields that are wrong or missing are refused with a sentence, and make nothing', async () => {
        const subscription = new Subscription(server, uniqueName());
        const good = pull({ pattern: 'none/*' });
        const wrong = [
            {}, { pattern: 'a' }, { ...good, type: undefined }, { ...good, type: 'x' }, { ...good, type: 1 }, { ...good, type: null },
            { ...good, type: 'Webhook' }, { ...good, type: ['pull-wake'] },
            { ...good, pattern: undefined }, { ...good, pattern: '' }, { ...good, pattern: 5 }, { ...good, pattern: null },
            { ...good, pattern: undefined, streams: [] }, { ...good, pattern: undefined, streams: 'a' }, { ...good, pattern: undefined, streams: {} },
            { ...good, streams: [1] }, { ...good, streams: ['a', null] }, { ...good, streams: [['a']] },
            { ...good, lease_ttl_ms: 999 }, { ...good, lease_ttl_ms: 600_001 }, { ...good, lease_ttl_ms: 1_000.5 }, { ...good, lease_ttl_ms: -1 },
            { ...good, lease_ttl_ms: '1000' }, { ...good, lease_ttl_ms: 1e300 }, { ...good, lease_ttl_ms: {} },
            { ...good, wake_stream: undefined }, { ...good, wake_stream: '' }, { ...good, wake_stream: 1 },
            { ...webhook({ pattern: 'a' }), webhook: undefined }, { ...webhook({ pattern: 'a' }), webhook: {} },
            { ...webhook({ pattern: 'a' }), webhook: { url: '' } }, { ...webhook({ pattern: 'a' }), webhook: { url: 5 } },
            { ...webhook({ pattern: 'a' }), webhook: HOOK.url }, { ...webhook({ pattern: 'a' }), webhook: null },
        ];
        for (const config of wrong) {
            const error = assertError(await subscription.put(config), 400, 'INVALID_REQUEST');
            assert.doesNotMatch(error.message, /undefined|NaN|\[object/);
        }
        assertError(await subscription.get(), 404, 'SUBSCRIPTION_NOT_FOUND');
    });

    test('paths and patterns that no stream could have are refused', async () => {
        const subscription = new Subscription(server, uniqueName());
        for (const path of ['a/../b', '.', 'a%zz', '%00', 'a\u0000b', '__ds/x', '%5F%5Fds/x', 'x'.repeat(481)]) {
            assertError(await subscription.put(pull({ streams: [path] })), 400, 'INVALID_REQUEST');
            assertError(await subscription.put(pull({ pattern: 'a', wake_stream: path })), 400, 'INVALID_REQUEST');
        }
        assertError(await subscription.get(), 404, 'SUBSCRIPTION_NOT_FOUND');
    });

    test('caps: description, segments of a pattern, webhook URL', async () => {
        const subscription = new Subscription(server, uniqueName());
        const tooMuch = [pull({ pattern: 'a', description: 'x'.repeat(4_097) }),
                         pull({ pattern: Array(65).fill('a').join('/') }),
                         webhook({ pattern: 'a', webhook: { url: `http://127.0.0.1:9/${'x'.repeat(2_048)}` } })];
        for (const config of tooMuch) {
            const reply = await subscription.put(config);
            assert.equal(reply.status, 400, reply.text);
            assert.match(reply.json().error.code, /^(INVALID_REQUEST|WEBHOOK_URL_REJECTED)$/);
        }
        const most = pull({ pattern: Array(64).fill('a').join('/'), description: 'x'.repeat(4_096) });
        assert.equal((await subscription.create(most)).description.length, 4_096);
    });

    test('URLs that a webhook may not have', async () => {
        const subscription = new Subscription(server, uniqueName());
        for (const url of ['http://10.0.0.1/hook', 'https://10.0.0.1/hook', 'http://a.example/', 'ftp://a.example/', 'https://192.168.1.1/',
                           'https://169.254.169.254/latest', 'https://172.16.0.1/', 'file:///etc/passwd', 'nonsense',
                           'https://', 'https://u:p@a.example/', 'https://100.64.0.1/', 'https://0x7f.1/', 'https://2130706433/',
                           'http://[::ffff:10.0.0.1]/', 'https://[::ffff:10.0.0.1]/', 'https://[::ffff:a00:1]/']) {
            assertError(await subscription.put(webhook({ pattern: 'a', webhook: { url } })), 400, 'WEBHOOK_URL_REJECTED');
        }
        assertStatus(await subscription.put(webhook({ pattern: 'a', webhook: { url: 'https://a.example/hook?x=1' } })), 201);
    });

    test('without the flag loopback is refused too', async (t) => {
        const strict = await startServer();
        t.after(() => strict.dispose());
        for (const url of ['http://127.0.0.1:9/', 'http://localhost:9/', 'https://[::1]/', 'https://127.0.0.1/', 'https://localhost/']) {
            assertError(await new Subscription(strict, 'a').put(webhook({ pattern: 'a', webhook: { url } })), 400, 'WEBHOOK_URL_REJECTED');
        }
    });
});

describe('re-confirm', () => {
    test('the same configuration is 200 with the present state, however it is written', async () => {
        const name = space();
        const subscription = new Subscription(server, uniqueName());
        const config = webhook({ pattern: `${name}/**`, streams: [`${name}/b`, `${name}/a`], description: 'd' });
        const made = await subscription.create(config);
        const same = [config, { ...config, lease_ttl_ms: 30_000 }, { ...config, streams: [`${name}/a`, `${name}/b`, `${name}/a`] },
                      { ...config, streams: [`/${name}/a/`, `${name}/b`] }, { ...config, pattern: `/${name}/**/` },
                      { ...config, unknown: 1, wake_stream: 5 }, Object.fromEntries(Object.entries(config).reverse())];
        for (const one of same) {
            assert.deepEqual(assertStatus(await subscription.put(one), 200).json(), made, JSON.stringify(one));
        }
    });

    test('any other configuration is 409 and changes nothing', async () => {
        const name = space();
        const subscription = new Subscription(server, uniqueName());
        const config = webhook({ pattern: `${name}/*`, streams: [`${name}/a`], description: 'd', lease_ttl_ms: 5_000 });
        const made = await subscription.create(config);
        const others = [{ pattern: `${name}/**` }, { pattern: undefined }, { streams: [`${name}/a`, `${name}/b`] }, { streams: undefined },
                        { description: 'e' }, { description: undefined }, { lease_ttl_ms: 5_001 }, { lease_ttl_ms: undefined },
                        { webhook: { url: `${HOOK.url}2` } }, { type: 'pull-wake', wake_stream: 'w' }];
        for (const other of others) {
            assertError(await subscription.put({ ...config, ...other }), 409, 'SUBSCRIPTION_ALREADY_EXISTS');
        }
        assert.deepEqual(await subscription.read(), made);
    });

    test('twenty at once make one', async () => {
        const subscription = new Subscription(server, uniqueName());
        const replies = await Promise.all(Array.from({ length: 20 }, () => subscription.put(pull({ pattern: 'none/*' }))));
        assert.deepEqual(replies.map((one) => one.status).sort(), [...Array(19).fill(200), 201]);
    });

    test('it does not look for streams again', async () => {
        const name = space();
        const subscription = new Subscription(server, uniqueName());
        const config = pull({ pattern: `${name}/*` });
        await subscription.create(config);
        await jsonStream(server, `${name}/empty`).create();
        assert.deepEqual(assertStatus(await subscription.put(config), 200).json().streams, []);
    });
});

describe('links', () => {
    test('streams that exist start at their tail; those that do not, at their beginning', async () => {
        const name = space();
        const there = jsonStream(server, `${name}/there`);
        const other = jsonStream(server, `${name}/other`);
        await there.create({}, '[1,2]');
        await other.create({}, '[3]');
        const subscription = new Subscription(server, uniqueName());
        const made = await subscription.create(pull({ pattern: `${name}/t*`, streams: [`${name}/there`, `${name}/later`] }));
        assertLink(made, `${name}/there`, { link_type: 'explicit', acked_offset: (await there.head()).next });
        assertLink(made, `${name}/later`, { link_type: 'explicit', acked_offset: ZERO });
        assertLink(made, `${name}/other`, undefined);
        // Nothing of what was there is pending.
        assertError(await subscription.claim(), 409, 'NO_PENDING_WORK');
    });

    test('a glob links what matches: * is a segment, ** any number', async () => {
        const name = space();
        const names = ['a', 'a/b', 'a/b/c', 'b', 'ab', 'a*b', '*', '**'].map((one) => `${name}/${one}`);
        for (const one of names) {
            await jsonStream(server, one.replaceAll('*', '%2A')).create({}, '[1]');
        }
        const patterns = { '*': ['a', 'b', 'ab', 'a*b', '*', '**'], 'a/*': ['a/b'], '**': ['a', 'a/b', 'a/b/c', 'b', 'ab', 'a*b', '*', '**'],
                           'a/**': ['a', 'a/b', 'a/b/c'], '**/c': ['a/b/c'], 'a*': [], 'a': ['a'], 'a*b': ['a*b'], '**/b': ['a/b', 'b'],
                           '%2A': ['*'], '%2a/**': ['*'], '*/b/**': ['a/b', 'a/b/c'], 'a/**/c': ['a/b/c'], '?': [], '[ab]': [], '{a,b}': [] };
        for (const [pattern, wanted] of Object.entries(patterns)) {
            const subscription = new Subscription(server, uniqueName());
            const made = await subscription.create(pull({ pattern: `${name}/${pattern}` }));
            assert.deepEqual(made.streams.map((one) => one.path).sort(), wanted.map((one) => `${name}/${one}`).sort(), pattern);
            assert.ok(made.streams.every((one) => one.link_type === 'glob'));
        }
    });

    test('many ** in a pattern cost no more than one', async () => {
        const name = space();
        const deep = `${name}/${Array(60).fill('a').join('/')}`;
        await jsonStream(server, deep).create({}, '[1]');
        const subscription = new Subscription(server, uniqueName());
        const made = await subscription.create(pull({ pattern: `${name}/${Array(30).fill('**/a').join('/')}/**/b` }));
        assert.deepEqual(made.streams, []);
    });

    test('one form of a path: escapes are decoded as in URLs', async () => {
        const name = space();
        await jsonStream(server, `${name}/%C3%A9%20x`).create({}, '[1]');
        await jsonStream(server, `${name}/a%2Fb`).create({}, '[1]');
        const subscription = new Subscription(server, uniqueName());
        const made = await subscription.create(pull({ streams: [`${name}/%C3%A9%20x`, `${name}/é x`, `${name}/a%2fb`] }));
        assert.deepEqual(made.streams.map((one) => one.path).sort(), [`${name}/a%2Fb`, `${name}/é x`].sort());
        assert.ok(made.streams.every((one) => one.acked_offset !== ZERO), 'both were found');
        assertStatus(await subscription.unlink(encodeURIComponent(`${name}/a%2Fb`)), 204);
        assertStatus(await subscription.unlink(encodeURIComponent(`${name}/é x`)), 204);
        assert.deepEqual((await subscription.read()).streams, []);
    });

    test('members are added at their tail and removed; both are idempotent', async () => {
        const name = space();
        const stream = jsonStream(server, `${name}/a`);
        await stream.create({}, '[1]');
        const subscription = new Subscription(server, uniqueName());
        await subscription.create(pull({ pattern: 'none/*' }));
        assertStatus(await subscription.link([`${name}/a`, `/${name}/b/`]), 204);
        const tail = (await stream.head()).next;
        assertLink(await subscription.read(), `${name}/a`, { link_type: 'explicit', acked_offset: tail });
        assertLink(await subscription.read(), `${name}/b`, { link_type: 'explicit', acked_offset: ZERO });
        await stream.append('[2]');
        assertStatus(await subscription.link([`${name}/a`]), 204);
        assertLink(await subscription.read(), `${name}/a`, { link_type: 'explicit', acked_offset: tail });
        for (const path of [encodeURIComponent(`${name}/b`), `${name}/b`, `${name}/never`, `/${name}/b`]) {
            assertStatus(await subscription.unlink(path), 204);
        }
        assert.deepEqual((await subscription.read()).streams.map((one) => one.path), [`${name}/a`]);
        assertStatus(await subscription.link([]), 204);
        assert.equal((await subscription.read()).pattern, 'none/*');
    });

    test('an explicit link hides a glob link and gives it back', async () => {
        const name = space();
        const stream = jsonStream(server, `${name}/a`);
        await stream.create({}, '[1]');
        const tail = (await stream.head()).next;
        const subscription = new Subscription(server, uniqueName());
        await subscription.create(pull({ pattern: `${name}/*` }));
        assertLink(await subscription.read(), `${name}/a`, { link_type: 'glob', acked_offset: tail });
        await stream.append('[2]');
        assertStatus(await subscription.link([`${name}/a`]), 204);
        assertLink(await subscription.read(), `${name}/a`, { link_type: 'explicit', acked_offset: tail });
        assertStatus(await subscription.unlink(`${name}/a`), 204);
        assertLink(await subscription.read(), `${name}/a`, { link_type: 'glob', acked_offset: tail });
        assertStatus(await subscription.unlink(`${name}/a`), 204);
        assertLink(await subscription.read(), `${name}/a`, { link_type: 'glob', acked_offset: tail });
    });

    test('membership refuses what is wrong, whole', async () => {
        const subscription = new Subscription(server, uniqueName());
        await subscription.create(pull({ pattern: 'none/*' }));
        for (const streams of [undefined, null, 'a', 5, {}, [1], ['a', ''], ['a', null], ['a', ['b']], ['a', 'b/../c'], ['a', '__ds/x']]) {
            assertError(await subscription.send('POST', '/streams', { streams }), 400, 'INVALID_REQUEST');
        }
        assert.deepEqual((await subscription.read()).streams, []);
        const unknown = new Subscription(server, uniqueName());
        assertError(await unknown.link(['a']), 404, 'SUBSCRIPTION_NOT_FOUND');
        assertError(await unknown.unlink('a'), 404, 'SUBSCRIPTION_NOT_FOUND');
        for (const path of ['%00', 'a/../b', '%2E%2E']) {
            const reply = await control(server, 'DELETE', `${subscription.path}/streams/${path}`);
            assert.equal(reply.status, 400, `${path}: ${reply.status}`);
        }
    });

    test('a deleted stream loses its links; a new one of its name joins by glob only', async () => {
        const name = space();
        const stream = jsonStream(server, `${name}/a`);
        await stream.create({}, '[1,2,3]');
        const byGlob = new Subscription(server, uniqueName());
        const byName = new Subscription(server, uniqueName());
        await byGlob.create(pull({ pattern: `${name}/*` }));
        await byName.create(pull({ streams: [`${name}/a`] }));
        assertStatus(await stream.remove(), 204);
        await stream.create({}, '[4]');
        await waitForLink(byGlob, `${name}/a`, '-1');
        const claim = await byGlob.claimed();
        assert.equal(claim.streams[0].acked_offset, '-1');
        assert.equal(claim.streams[0].has_pending, true);
        assert.deepEqual((await byName.read()).streams, []);
        assertError(await byName.claim(), 409, 'NO_PENDING_WORK');
    });
});

describe('streams that end by themselves', () => {
    test('one that expires, and one that lives on for its forks only, lose their links', async () => {
        const name = space();
        const short = jsonStream(server, `${name}/short`);
        const source = jsonStream(server, `${name}/source`);
        await short.create({ 'Stream-TTL': '1' }, '[1]');
        await source.create({}, '[1]');
        await jsonStream(server, `elsewhere/${name}`).create({ 'Stream-Forked-From': source.path });
        const subscription = new Subscription(server, uniqueName());
        const made = await subscription.create(pull({ pattern: `${name}/*`, streams: [`${name}/short`, `${name}/source`] }));
        assert.equal(made.streams.length, 2);
        assertStatus(await source.remove(), 204);
        await eventually('both links are gone', async () => (await subscription.read()).streams.length === 0);
        assertError(await subscription.claim(), 409, 'NO_PENDING_WORK');
    });
});

// A link that an append makes is made after the append was answered.
async function waitForLink(subscription, path, acked) {
    await eventually(`${path} is linked at ${acked}`, async () => (await subscription.linkTo(path))?.acked_offset === acked);
}

describe('read and delete', () => {
    test('an unknown id is 404 everywhere but in DELETE', async () => {
        const unknown = new Subscription(server, uniqueName());
        assertError(await unknown.get(), 404, 'SUBSCRIPTION_NOT_FOUND');
        assertError(await unknown.claim(), 404, 'SUBSCRIPTION_NOT_FOUND');
        for (const verb of ['callback', 'ack', 'release']) {
            assertError(await unknown.speak(verb, { wake_id: 'w', generation: 1, token: 'x.y' }), 404, 'SUBSCRIPTION_NOT_FOUND');
        }
        assertStatus(await unknown.remove(), 204);
        assertStatus(await unknown.remove(), 204);
    });

    test('a deleted subscription is gone, and its id may be used anew', async () => {
        const subscription = new Subscription(server, uniqueName());
        await subscription.create(pull({ pattern: 'none/*' }));
        assertStatus(await subscription.remove(), 204);
        assertError(await subscription.get(), 404, 'SUBSCRIPTION_NOT_FOUND');
        await subscription.create(webhook({ pattern: 'other/*' }));
        assert.equal((await subscription.read()).type, 'webhook');
    });

    test('ten thousand links fit, one more does not', async () => {
        const subscription = new Subscription(server, uniqueName());
        const name = space();
        await subscription.create(pull({ pattern: 'none/*' }));
        for (let at = 0; at < 10_000; at += 1_000) {
            assertStatus(await subscription.link(Array.from({ length: 1_000 }, (_, i) => `${name}/${at + i}`)), 204);
        }
        const reply = await subscription.link([`${name}/more`]);
        assertError(reply, 429, 'LIMIT_REACHED');
        assert.match(reply.json().error.message, /10,?000/);
        const { streams } = await subscription.read();
        assert.equal(streams.length, 10_000);
        assert.equal(new Set(streams.map((one) => one.path)).size, 10_000);
        assertStatus(await subscription.unlink(`${name}/0`), 204);
        assertStatus(await subscription.link([`${name}/more`]), 204);
        assertStatus(await subscription.remove(), 204);
    });
});
