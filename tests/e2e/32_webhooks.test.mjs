// Tier 30: how webhooks leave the server: whom it calls and whom not, what it takes from a receiver, and the keys that
// it signs with, also while they change.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash, createPublicKey, verify } from 'node:crypto';
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, rmdirSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { describe, test } from 'node:test';
import { request, uniqueName } from './lib/http.mjs';
import { testUnless } from './lib/impossible.mjs';
import { run, serverFor, tempDir } from './lib/server.mjs';
import { LONG_LEASE_MS, Receiver, Subscription, assertError, assertStatus, control, jsonStream } from './lib/subscriptions.mjs';
import { eventually, rounds } from './lib/wait.mjs';

const LOOPBACK = '--webhooks-allow-loopback';
const done = (delivery) => delivery.answer({ done: true });
const rootTest = testUnless(process.getuid() === 0 ? '' : 'only root can give a directory to another user');

const hookTo = (url, name) => ({ type: 'webhook', pattern: `${name}/**`, webhook: { url }, lease_ttl_ms: LONG_LEASE_MS });

// A subscription that posts to `url`, and a stream that wakes it.
async function subscribe(server, url) {
    const name = uniqueName('in');
    const subscription = new Subscription(server, uniqueName('hook'));
    await subscription.create(hookTo(url, name));
    return { subscription, stream: jsonStream(server, `${name}/a`) };
}

const statusOf = async (subscription) => (await subscription.read()).status;
const failed = (subscription) => eventually('the delivery failed', async () => (await statusOf(subscription)) === 'failed');
const active = (subscription) => eventually('the delivery went through', async () => (await statusOf(subscription)) === 'active');

// One sample of /metrics.
async function metric(server, name) {
    const lines = assertStatus(await request(server.base, 'GET', '/metrics'), 200).text.split('\n');
    const line = lines.find((one) => one.startsWith(`${name} `));
    assert.ok(line, `${name} is told`);
    return Number(line.split(' ')[1]);
}

async function jwksOf(server) {
    const reply = assertStatus(await control(server, 'GET', '/jwks.json'), 200);
    assert.match(reply.headers['content-type'], /^application\/jwk-set\+json/);
    assert.match(reply.headers['cache-control'], /max-age=300/);
    return reply.json().keys;
}

// The kid of a delivery whose signature is good by one of `keys`.
function signerOf(delivery, keys) {
    const [, at, kid, signature] = /^t=(\d+),kid=([\w-]+),ed25519=([\w-]{86})$/.exec(delivery.headers['webhook-signature']);
    const jwk = keys.find((one) => one.kid === kid);
    assert.ok(jwk, `${kid} is among ${keys.map((one) => one.kid)}`);
    assert.ok(Math.abs(Date.now() / 1000 - Number(at)) < 300, 'it was signed just now');
    const key = createPublicKey({ key: { kty: jwk.kty, crv: jwk.crv, x: jwk.x }, format: 'jwk' });
    assert.ok(verify(null, Buffer.from(`${at}.${delivery.raw}`), key, Buffer.from(signature, 'base64url')));
    assert.ok(!verify(null, Buffer.from(`${at}.${delivery.raw} `), key, Buffer.from(signature, 'base64url')));
    return kid;
}

describe('whom it calls', () => {
    test('a redirect is a failure and leads nowhere', async (t) => {
        const server = await serverFor(t, [LOOPBACK]);
        const target = await Receiver.open(t, done);
        const receiver = await Receiver.open(t, (delivery) => delivery.answer(undefined, 307, { Location: target.url }));
        const { subscription, stream } = await subscribe(server, receiver.url);
        await stream.create({}, '[1]');
        await receiver.next();
        await failed(subscription);
        assert.equal(target.deliveries.length, 0);
    });

    test('the proxy that the environment names is not asked', async (t) => {
        const proxy = await Receiver.open(t, done);
        const env = Object.fromEntries(['http_proxy', 'https_proxy', 'all_proxy', 'ALL_PROXY'].map((name) => [name, proxy.url]));
        const server = await serverFor(t, [LOOPBACK], { env });
        const receiver = await Receiver.open(t, done);
        const { stream } = await subscribe(server, receiver.url);
        await stream.create({}, '[1]');
        await receiver.next();
        assert.equal(proxy.deliveries.length, 0);
    });

    test('a certificate that nobody vouches for is not enough', async (t) => {
        const server = await serverFor(t, [LOOPBACK]);
        const dir = tempDir();
        t.after(() => rmSync(dir, { recursive: true, force: true }));
        const made = spawnSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
                                           '-keyout', `${dir}/key`, '-out', `${dir}/cert`, '-days', '1', '-subj', '/CN=localhost',
                                           '-addext', 'subjectAltName=DNS:localhost'], { encoding: 'utf8' });
        assert.equal(made.status, 0, made.stderr);
        let requests = 0;
        const https = createServer({ key: readFileSync(`${dir}/key`), cert: readFileSync(`${dir}/cert`) }, (req, res) => {
            requests++;
            res.end();
        });
        await new Promise((ready) => https.listen(0, '127.0.0.1', ready));
        t.after(() => https.close());
        const { subscription, stream } = await subscribe(server, `https://localhost:${https.address().port}/`);
        await stream.create({}, '[1]');
        await failed(subscription);
        assert.equal(requests, 0);
    });

    test('without the flag nothing on this machine is called, whenever the subscription was made', async (t) => {
        const server = await serverFor(t, [LOOPBACK]);
        const receiver = await Receiver.open(t, done);
        const { subscription, stream } = await subscribe(server, receiver.url);
        await server.restart([]);
        for (const url of [receiver.url, 'http://localhost/', 'https://localhost/', 'https://127.0.0.1/', 'https://[::1]/',
                           'https://0x7f.1/', 'https://2130706433/', 'https://127.1/', 'https://169.254.169.254/',
                           'http://example.com/']) {
            assertError(await new Subscription(server, uniqueName('hook')).put(hookTo(url, 'x')), 400, 'WEBHOOK_URL_REJECTED');
        }
        await stream.create({}, '[1]');
        await failed(subscription);
        assert.equal(receiver.deliveries.length, 0);
        assert.ok(await metric(server, 'arbe_webhooks_unanswered_total{reason="address"}') > 0);
        await server.restart([LOOPBACK]);
        await receiver.next();
    });
});

describe('what it takes from a receiver', () => {
    test('a reply over 64 KiB is no answer; the next attempt may be better', async (t) => {
        const server = await serverFor(t, [LOOPBACK]);
        const pad = (size) => `{"done":true,"pad":"${'x'.repeat(size - 22)}"}`;
        const receiver = await Receiver.open(t);
        const { subscription, stream } = await subscribe(server, receiver.url);
        await stream.create({}, '[1]');
        const first = await receiver.next();
        first.answer(pad(65537));
        await failed(subscription);
        const second = await receiver.next();
        second.answer(pad(65536));
        assert.equal(second.body.wake_id, first.body.wake_id);
        await active(subscription);
        const { next } = await stream.head();
        await eventually('it is acked', async () => (await subscription.linkTo(stream.name)).acked_offset === next);
    });

    test('a receiver that hangs keeps neither the others from their webhooks nor the server from its end', async (t) => {
        const server = await serverFor(t, [LOOPBACK]);
        const slow = await Receiver.open(t);
        const quick = await Receiver.open(t, done);
        const name = uniqueName('in');
        for (let i = 0; i < rounds(60); i++) {
            await new Subscription(server, `slow-${i}`).create(hookTo(slow.url, name));
        }
        const { stream } = await subscribe(server, quick.url);
        await jsonStream(server, `${name}/a`).create({}, '[1]');
        await eventually('the slow receiver is busy', () => slow.deliveries.length >= Math.min(16, rounds(60)));
        assert.ok(slow.deliveries.length <= 16, 'and has no more than its share');
        await eventually('the others wait', async () =>
            await metric(server, 'arbe_webhooks{state="active"}') === Math.min(16, rounds(60)) &&
            await metric(server, 'arbe_webhooks{state="waiting"}') === Math.max(0, rounds(60) - 16));
        await stream.create({}, '[1]');
        for (let i = 0; i < rounds(20); i++) {
            await quick.next();
            await stream.append('[2]');
        }
        const before = Date.now();
        await server.stop();
        assert.ok(Date.now() - before < 10_000);
        assert.ok(slow.deliveries.length <= 16);
    });

    test('the log names the host of a failing receiver, and nothing that may be secret', async (t) => {
        const server = await serverFor(t, [LOOPBACK]);
        const receiver = await Receiver.open(t);
        const { subscription, stream } = await subscribe(server, `http://127.0.0.1:${receiver.port}/hook/topsecret?key=topsecret`);
        await stream.create({}, '["topsecret"]');
        const delivery = await receiver.next();
        delivery.answer('private', 500);
        await failed(subscription);
        done(await receiver.next());
        await active(subscription);
        await server.stop();
        assert.match(server.log, new RegExp(`webhooks to 127\\.0\\.0\\.1:${receiver.port} fail: it answers with status 500`));
        for (const secret of ['topsecret', 'private', delivery.body.callback_token, delivery.body.wake_id]) {
            assert.ok(!server.log.includes(secret), secret);
        }
    });
});

describe('keys', () => {
    const rotate = async (dir) => {
        const { code, stdout, stderr } = await run(['streams', 'rotate-key', '--json', dir]);
        assert.equal(code, 0, stderr);
        return JSON.parse(stdout);
    };

    // Lets the keys of a stopped server be `ms` older.
    function age(dir, ms) {
        const file = `${dir}/keys/keys.pem`;
        const body = readFileSync(file, 'utf8').replace(/sha256 \w+\n$/, '')
            .replace(/ (made|signs) (\d+)/g, (all, word, at) => ` ${word} ${Number(at) - ms}`);
        writeFileSync(file, `${body}sha256 ${createHash('sha256').update(body).digest('hex')}\n`);
    }

    test('are made once, for the owner alone, and kept', async (t) => {
        const server = await serverFor(t, [LOOPBACK]);
        const before = await jwksOf(server);
        assert.equal(before.length, 1);
        assert.deepEqual(Object.keys(before[0]).sort(), ['alg', 'crv', 'kid', 'kty', 'use', 'x']);
        const thumbprint = createHash('sha256').update(`{"crv":"Ed25519","kty":"OKP","x":"${before[0].x}"}`).digest('base64url');
        assert.equal(before[0].kid, `ds_${thumbprint}`);
        assert.equal(statSync(`${server.dir}/keys`).mode & 0o777, 0o700);
        assert.equal(statSync(`${server.dir}/keys/keys.pem`).mode & 0o777, 0o600);
        await server.crashAndRestart();
        assert.deepEqual(await jwksOf(server), before);
    });

    test('change under load: every signature is good by the keys of some minutes ago', async (t) => {
        const server = await serverFor(t, [LOOPBACK]);
        const receiver = await Receiver.open(t, done);
        const { stream } = await subscribe(server, receiver.url);
        await stream.create({}, '[0]');
        const cached = await jwksOf(server);
        let stop = false;
        const load = (async () => {
            while (!stop) {
                await receiver.next();
                await stream.append('[1]');
            }
        })();
        const rotation = await rotate(server.dir);
        assert.equal(rotation.old, cached[0].kid);
        const both = await eventually('the new key is published', async () => {
            const keys = await jwksOf(server);
            return keys.length === 2 && keys;
        });
        assert.deepEqual(both.map((key) => key.kid), [rotation.old, rotation.new]);
        const count = receiver.deliveries.length;
        await eventually('more deliveries', () => receiver.deliveries.length > count + rounds(50));
        stop = true;
        await load;
        for (const delivery of receiver.deliveries) {
            assert.equal(signerOf(delivery, cached), rotation.old);
        }
        const again = await run(['streams', 'rotate-key', server.dir]);
        assert.equal(again.code, 1);
        assert.match(again.stderr, /the last rotation has not ended/);

        // Six minutes later the new key signs, and who has the keys of before can tell.
        await server.stop();
        age(server.dir, 360_000);
        await server.start();
        assert.deepEqual(await jwksOf(server), both);
        const at = receiver.deliveries.length;
        await stream.append('[2]');
        await eventually('a delivery', () => receiver.deliveries.length > at);
        assert.equal(signerOf(receiver.deliveries.at(-1), both), rotation.new);

        // And seven more later the old one is gone, from the file as well.
        await server.stop();
        age(server.dir, 390_000);
        await server.start();
        assert.deepEqual((await jwksOf(server)).map((key) => key.kid), [rotation.new]);
        await eventually('the old key is erased', () => !readFileSync(`${server.dir}/keys/keys.pem`, 'utf8').includes(rotation.old));
    });

    test('that are missing or damaged keep the server from starting, if subscriptions depend on them', async (t) => {
        const server = await serverFor(t, [LOOPBACK]);
        const file = `${server.dir}/keys/keys.pem`;
        await server.stop();
        rmSync(file);
        await server.start(); // nothing depended on them
        const receiver = await Receiver.open(t, done);
        const { stream } = await subscribe(server, receiver.url);
        await server.stop();
        const kept = readFileSync(file);

        const refused = async (pattern) => {
            const { code, stderr } = await run(['streams', '--listen', '127.0.0.1:0', '--data', server.dir]);
            assert.equal(code, 1);
            assert.match(stderr, pattern);
        };
        const verified = async (code, pattern) => {
            const { code: got, stdout } = await run(['streams', 'verify', server.dir]);
            assert.equal(got, code, stdout);
            assert.match(stdout, pattern);
        };
        await verified(0, /everything is right/);
        rmSync(file);
        await refused(/keys\.pem is missing, but subscriptions depend on it/);
        await verified(1, /damage: keys\/keys\.pem: it is missing, but subscriptions depend on it/);
        assert.ok(!existsSync(file), 'and none were made');
        writeFileSync(file, Buffer.concat([kept.subarray(0, 100), Buffer.from('x'), kept.subarray(101)]));
        await refused(/keys\.pem is damaged/);
        await verified(1, /damage: keys\/keys\.pem: its bytes do not match their checksum/);

        const stranger = tempDir();
        const nothing = await run(['streams', 'replace-keys', stranger]);
        assert.equal(nothing.code, 1);
        assert.match(nothing.stderr, /is no data directory/);
        rmdirSync(stranger); // nothing was put into it
        const replaced = await run(['streams', 'replace-keys', server.dir]);
        assert.equal(replaced.code, 0, replaced.stderr);
        assert.ok(existsSync(`${file}.damaged`));
        await server.start();
        await stream.create({}, '[1]');
        signerOf(await receiver.next(), await jwksOf(server));
        const running = await run(['streams', 'replace-keys', server.dir]);
        assert.equal(running.code, 1);
        assert.match(running.stderr, /a server runs on/);
        await server.stop();
        renameSync(file, `${file}.mine`);
        writeFileSync(file, kept, { mode: 0o600 });
        await server.start(); // a backup is as good
    });

    rootTest('are not touched by another user, whose file the server could not read', async (t) => {
        const dir = tempDir();
        t.after(() => rmSync(dir, { recursive: true, force: true }));
        mkdirSync(`${dir}/wal`);
        assert.equal((await run(['streams', 'replace-keys', dir])).code, 0);
        const before = readFileSync(`${dir}/keys/keys.pem`, 'utf8');
        chownSync(dir, 65534, 65534);
        chmodSync(dir, 0o755);
        const { code, stderr } = await run(['streams', 'rotate-key', dir]);
        assert.equal(code, 1);
        assert.match(stderr, /belongs to user 65534/);
        assert.equal(readFileSync(`${dir}/keys/keys.pem`, 'utf8'), before);
    });
});
