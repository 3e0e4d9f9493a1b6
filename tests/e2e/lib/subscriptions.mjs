// The control API as a client sees it, and a webhook receiver whose every answer a test chooses.
import assert from 'node:assert/strict';
import { createPublicKey, verify } from 'node:crypto';
import http from 'node:http';
import { JSON_TYPE, Stream, request } from './http.mjs';
import { lastingPort } from './port.mjs';
import { withDeadline } from './wait.mjs';

export const CONTROL = '/v1/stream/__ds';

// Long enough that no test, however slow the machine, sees it end.
export const LONG_LEASE_MS = 600_000;
// The shortest there is, for tests that wait for its end.
export const SHORT_LEASE_MS = 1_000;

export function control(server, method, path, body, { headers = {}, ...options } = {}) {
    const payload = body === undefined || typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
    return request(server.base, method, CONTROL + path, { headers, body: payload, ...options });
}

// Every refusal of the control API explains itself in one shape.
export function assertError(reply, status, code) {
    assert.equal(reply.status, status, `expected ${status} ${code}, got ${reply.status}: ${reply.text}`);
    assert.match(reply.headers['content-type'] ?? '', /^application\/json/);
    assert.match(reply.headers['cache-control'] ?? '', /no-store/);
    const { error } = reply.json();
    assert.equal(error.code, code);
    assert.match(error.message, /\S+ \S+/, 'the message is a sentence');
    return error;
}

export function assertStatus(reply, status) {
    assert.equal(reply.status, status, `expected ${status}, got ${reply.status}: ${reply.text}`);
    return reply;
}

// One subscription of one server. `server` is read at each call, so that a handle stays good across restarts.
export class Subscription {
    constructor(server, id, { headers = {} } = {}) {
        this.server = server;
        this.id = id;
        this.headers = headers;
        this.path = `/subscriptions/${encodeURIComponent(id)}`;
    }

    send(method, suffix, body, headers = {}) {
        return control(this.server, method, this.path + suffix, body, { headers: { ...this.headers, ...headers } });
    }

    put(config) {
        return this.send('PUT', '', config);
    }

    get() {
        return this.send('GET', '');
    }

    remove() {
        return this.send('DELETE', '');
    }

    link(streams) {
        return this.send('POST', '/streams', { streams });
    }

    unlink(path) {
        return this.send('DELETE', `/streams/${path}`);
    }

    claim(worker = 'worker-1') {
        return this.send('POST', '/claim', { worker });
    }

    // callback, ack and release: `wake` is what a claim or a webhook gave.
    speak(verb, wake, more = {}, token = wake.token ?? wake.callback_token) {
        const { wake_id, generation } = wake;
        return control(this.server, 'POST', `${this.path}/${verb}`, { wake_id, generation, ...more },
                       { headers: token === undefined ? {} : { Authorization: `Bearer ${token}` } });
    }

    callback(wake, more, token) {
        return this.speak('callback', wake, more, token);
    }

    ack(wake, more, token) {
        return this.speak('ack', wake, more, token);
    }

    release(wake, more, token) {
        return this.speak('release', wake, more, token);
    }

    // Creates it and insists on 201; the document.
    async create(config) {
        return assertStatus(await this.put(config), 201).json();
    }

    async read() {
        return assertStatus(await this.get(), 200).json();
    }

    // Claims and insists on 200; the document.
    async claimed(worker) {
        return assertStatus(await this.claim(worker), 200).json();
    }

    // The link to `path` as GET shows it, or undefined.
    async linkTo(path) {
        return (await this.read()).streams.find((one) => one.path === path);
    }
}

// All that is pending in a wake or claim, as acks.
export function acksOf(wake) {
    return wake.streams.filter((one) => one.has_pending).map((one) => ({ stream: one.path, offset: one.tail_offset }));
}

export function jsonStream(server, name, headers) {
    return new Stream(server, name, JSON_TYPE, headers);
}

// One request that a receiver got; the test, or the receiver's rule, answers it.
class Delivery {
    constructor(req, res, raw) {
        this.headers = req.headers;
        this.path = req.url;
        this.method = req.method;
        this.raw = raw;
        this.body = JSON.parse(raw);
        this.at = Date.now();
        this.res = res;
        this.gone = new Promise((done) => res.on('close', done));
    }

    // `document` undefined: no body.
    answer(document, status = 200, headers = {}) {
        if (document === undefined) {
            this.res.writeHead(status, headers).end();
            return;
        }
        const text = typeof document === 'string' ? document : JSON.stringify(document);
        this.res.writeHead(status, { 'Content-Type': 'application/json', ...headers });
        this.res.end(text);
    }

    // Ends the connection without an answer.
    drop() {
        this.res.destroy();
    }
}

// Listens on loopback. `rule(delivery, index)` answers each request; without one, the test calls answer().
export class Receiver {
    static async open(t, rule) {
        const receiver = new Receiver(rule);
        await receiver.listen(await lastingPort());
        t.after(() => receiver.close());
        return receiver;
    }

    constructor(rule) {
        this.rule = rule;
        this.deliveries = [];
        this.at = 0;
        this.waiters = [];
        this.http = null;
    }

    async listen(port) {
        this.http = http.createServer((req, res) => this.take(req, res));
        await new Promise((done, fail) => this.http.listen(port, '127.0.0.1', done).on('error', fail));
        this.port = this.http.address().port;
        this.url = `http://127.0.0.1:${this.port}/hook`;
    }

    take(req, res) {
        const chunks = [];
        req.on('data', (chunk) => chunks.push(chunk));
        req.on('error', () => {});
        res.on('error', () => {});
        req.on('end', () => {
            const delivery = new Delivery(req, res, Buffer.concat(chunks).toString('utf8'));
            this.deliveries.push(delivery);
            this.rule?.(delivery, this.deliveries.length - 1);
            this.waiters.splice(0).forEach((wake) => wake());
        });
    }

    // The next delivery, in order, that `wanted` accepts; those before it are passed over.
    async next(wanted = () => true, what = 'webhook') {
        const wait = async () => {
            for (;;) {
                while (this.at < this.deliveries.length) {
                    const delivery = this.deliveries[this.at++];
                    if (wanted(delivery)) {
                        return delivery;
                    }
                }
                await new Promise((done) => this.waiters.push(done));
            }
        };
        return await withDeadline(wait(), what);
    }

    // Refuses connections from now on.
    async close() {
        this.http?.closeAllConnections();
        await new Promise((done) => (this.http ? this.http.close(done) : done()));
        this.http = null;
    }
}

// Checks the signature of a delivery against the keys that the server publishes.
export async function assertSigned(server, delivery) {
    const found = /^t=(\d+),kid=([\w-]+),ed25519=([\w-]{86})$/.exec(delivery.headers['webhook-signature'] ?? '');
    assert.ok(found, `Webhook-Signature: ${delivery.headers['webhook-signature']}`);
    const { keys } = assertStatus(await control(server, 'GET', '/jwks.json'), 200).json();
    const jwk = keys.find((key) => key.kid === found[2]);
    assert.ok(jwk, `key ${found[2]} is published`);
    const key = createPublicKey({ key: { kty: jwk.kty, crv: jwk.crv, x: jwk.x }, format: 'jwk' });
    assert.ok(verify(null, Buffer.from(`${found[1]}.${delivery.raw}`), key, Buffer.from(found[3], 'base64url')),
              'the signature is good');
}

// Reads the events of a wake stream in order, waiting for those that are still to come.
export class WakeReader {
    constructor(stream) {
        this.stream = stream;
        this.offset = '-1';
        this.events = [];
        this.at = 0;
    }

    // The next event, in order, that `wanted` accepts.
    async next(wanted = () => true, what = 'wake event') {
        const wait = async () => {
            for (;;) {
                while (this.at < this.events.length) {
                    const event = this.events[this.at++];
                    if (wanted(event)) {
                        return event;
                    }
                }
                const reply = await this.stream.poll(this.offset);
                assert.ok([200, 204].includes(reply.status), `wake stream: ${reply.status} ${reply.text}`);
                this.offset = reply.next;
                this.events.push(...(reply.status === 200 ? reply.json() : []));
            }
        };
        return await withDeadline(wait(), what);
    }

    of(subscription, generation) {
        return this.next((event) => event.subscription_id === subscription.id &&
                         (generation === undefined || event.generation === generation),
                         `wake ${generation ?? ''} of ${subscription.id}`);
    }
}
