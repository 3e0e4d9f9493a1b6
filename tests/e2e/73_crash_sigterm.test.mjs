// Tier 70: an orderly end (K13): parked appends are answered, readers end
// cleanly, the process goes within its bound, and nothing is lost.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Stream, TEXT, uniqueName } from './lib/http.mjs';
import { liveReaders } from './lib/prometheus.mjs';
import { Raw, head } from './lib/raw.mjs';
import { serverFor } from './lib/server.mjs';
import { Sse } from './lib/sse.mjs';
import { connectionsTo, isStuck } from './lib/tcp.mjs';
import { eventually, rounds } from './lib/wait.mjs';

// Reads one answer, or null when the connection came to an end before its first byte.
async function answerOf(raw, method) {
    raw.gather();
    const consumed = raw.bytes - raw.buffer.length;
    try {
        return await raw.response(method);
    } catch (error) {
        assert.ok(raw.ended, String(error));
        assert.equal(raw.bytes, consumed, `half an answer: ${error}`);
        return null;
    }
}

// All kinds of clients at once, and what became of each append that they asked for.
class Crowd {
    constructor(server, name) {
        this.server = server;
        this.stream = new Stream(server, name, TEXT);
        this.quiet = new Stream(server, `${name}-quiet`, TEXT);
        this.outcomes = new Map(); // key: 'unknown', 'acked', 'refused'
        this.ending = false;
    }

    count(outcome) {
        return [...this.outcomes.values()].filter((one) => one === outcome).length;
    }

    request(key) {
        this.outcomes.set(key, 'unknown');
        return head('POST', this.stream.path, ['Content-Type: text/plain', `Content-Length: ${key.length + 1}`]) + `${key};`;
    }

    // Takes the answer to the append of `key`; false when there will be no other on this connection.
    note(key, reply) {
        if (reply === null) {
            assert.ok(this.ending, 'a connection ended before SIGTERM');
            return false;
        }
        if (reply.status === 204) {
            this.outcomes.set(key, 'acked');
            return !/close/i.test(reply.headers.connection ?? '');
        }
        assert.equal(reply.status, 503, reply.text);
        assert.match(reply.json().detail, /shutting down/);
        assert.match(reply.headers['retry-after'], /^\d+$/);
        assert.ok(this.ending);
        this.outcomes.set(key, 'refused');
        return false;
    }

    // One request after another on one connection.
    async write(lane) {
        const raw = await Raw.open(this.server);
        for (let i = 0; ; i++) {
            const key = `w${lane}-${i}`;
            raw.send(this.request(key));
            if (!this.note(key, await answerOf(raw))) {
                break;
            }
        }
        if (!raw.finished) {
            await raw.endOfConnection();
        }
        assert.ok(raw.finished, `reset: ${raw.reset}`);
        raw.destroy();
    }

    // A connection for each request. In the moment in which the socket is closed the kernel may reset one.
    async knock(lane) {
        for (let i = 0; ; i++) {
            const key = `k${lane}-${i}`;
            let raw;
            try {
                raw = await Raw.open(this.server);
            } catch (error) {
                assert.ok(this.ending, String(error));
                return;
            }
            raw.send(this.request(key));
            const more = this.note(key, await answerOf(raw));
            raw.destroy();
            if (!more) {
                return;
            }
        }
    }

    // Many requests at a time.
    async pipeline(lane) {
        const raw = await Raw.open(this.server);
        for (let i = 0; ; i++) {
            const keys = Array.from({ length: 50 }, (_, n) => `p${lane}-${i}-${n}`);
            raw.send(keys.map((key) => this.request(key)).join(''));
            for (const key of keys) {
                if (!this.note(key, await answerOf(raw))) {
                    await raw.endOfConnection();
                    assert.ok(raw.finished, `reset: ${raw.reset}`);
                    raw.destroy();
                    return;
                }
            }
        }
    }

    // Bodies that are not whole when the signal comes: one is finished then, one never, one drips.
    async sendBodies() {
        this.bodies = await Promise.all(['late', 'never', 'drip'].map(async (key) => {
            const raw = await Raw.open(this.server);
            const text = this.request(key.padEnd(100, '.'));
            raw.send(text.slice(0, -60));
            return { key: key.padEnd(100, '.'), raw, rest: text.slice(-60) };
        }));
        this.half = await Raw.open(this.server);
        this.half.send(`GET ${this.stream.path} HT`);
    }

    finishBody() {
        this.bodies[0].raw.send(this.bodies[0].rest);
        let at = 0;
        this.drip = setInterval(() => {
            if (at < 50 && !this.bodies[2].raw.ended) {
                this.bodies[2].raw.send(this.bodies[2].rest[at++]);
            }
        }, 250);
    }

    async begin() {
        await this.stream.create();
        await this.quiet.create({}, 'quiet');
        this.polls = await Promise.all(Array.from({ length: 8 }, async () => {
            const raw = await Raw.open(this.server);
            raw.send(head('GET', `${this.quiet.path}?offset=now&live=long-poll`));
            return raw;
        }));
        this.sses = await Promise.all(Array.from({ length: 8 }, () => Sse.open(this.quiet, 'now')));
        await Promise.all(this.sses.map((sse) => sse.control()));
        await this.sendBodies();
        const lanes = (count, run) => Array.from({ length: count }, (_, lane) => run.call(this, lane));
        this.running = Promise.all([...lanes(64, this.write), ...lanes(8, this.knock), ...lanes(4, this.pipeline)]);
        this.running.catch(() => {}); // told by end()
    }

    async end() {
        await this.running;
        for (const raw of this.polls) {
            assert.equal((await answerOf(raw)).status, 204);
            raw.destroy();
        }
        for (const sse of this.sses) {
            await sse.end();
            assert.ok(!sse.text.includes('streamClosed'));
        }
        for (const { key, raw } of this.bodies) {
            const reply = await answerOf(raw);
            assert.ok(reply, `${key}: no answer`);
            this.note(key, reply);
            raw.destroy();
        }
        clearInterval(this.drip);
        assert.deepEqual(this.bodies.map(({ key }) => this.outcomes.get(key)), ['acked', 'refused', 'refused']);
        assert.equal((await answerOf(this.half)).status, 503);
        this.half.destroy();
    }

    async verify() {
        const there = (await this.stream.readAll()).body.toString().split(';').slice(0, -1);
        const set = new Set(there);
        assert.equal(set.size, there.length, 'nothing is stored twice');
        for (const [key, outcome] of this.outcomes) {
            assert.ok(outcome !== 'acked' || set.delete(key), `${key} is lost`);
            assert.ok(outcome !== 'refused' || !set.has(key), `${key} was refused and is stored`);
        }
        for (const key of set) {
            assert.equal(this.outcomes.get(key), 'unknown', key);
        }
    }
}

describe('K13: SIGTERM', { timeout: 300_000 }, () => {
    test('K13: under load with long-polls and SSE open', async (t) => {
        const server = await serverFor(t);
        for (let round = 0; round < rounds(6); round++) {
            const stream = new Stream(server, uniqueName(), TEXT);
            const quiet = new Stream(server, uniqueName(), TEXT);
            await stream.create();
            await quiet.create({}, 'quiet');
            const acked = [];
            const asked = new Set();
            let ending = false;
            const writers = Array.from({ length: 8 }, async (_, writer) => {
                for (let i = 0; ; i++) {
                    const key = `${writer}-${i}`;
                    asked.add(key);
                    let reply;
                    try {
                        reply = await stream.post(`${key};`, {}, { fresh: i % 3 === 0 });
                    } catch (error) {
                        assert.ok(ending, `the connection broke: ${error}`);
                        return;
                    }
                    if (reply.status !== 204) {
                        assert.equal(reply.status, 503, reply.text);
                        assert.ok(ending);
                        return;
                    }
                    acked.push(key);
                }
            });
            const polls = await Promise.all([1, 2, 3].map(async () => {
                const raw = await Raw.open(server);
                raw.send(head('GET', `${quiet.path}?offset=now&live=long-poll`));
                return raw;
            }));
            const sses = await Promise.all([1, 2, 3].map(() => Sse.open(quiet, 'now')));
            for (const sse of sses) {
                await sse.control();
            }
            const idle = await Raw.open(server);
            await eventually('the polls wait and the writers write', async () => acked.length >= 50 &&
                await liveReaders(server, 'long_poll') === polls.length);
            ending = true;
            const { code } = await server.kill('SIGTERM');
            assert.equal(code, 0, server.tail());
            await Promise.all(writers);
            for (const raw of polls) {
                const reply = await raw.response();
                assert.equal(reply.status, 204);
                raw.destroy();
            }
            for (const sse of sses) {
                await sse.end();
                assert.ok(!sse.text.includes('streamClosed'));
            }
            assert.equal((await idle.endOfConnection()).extra, '');
            await server.start();
            const text = (await stream.readAll()).body.toString();
            const there = text.split(';').slice(0, -1);
            assert.equal(new Set(there).size, there.length);
            for (const key of acked) {
                assert.ok(there.includes(key), `${key} is lost`);
            }
            for (const key of there) {
                assert.ok(asked.has(key));
            }
        }
    });

    test('K13: whoever asks meanwhile gets a whole answer or a clean end, and what was acknowledged is kept', async (t) => {
        const server = await serverFor(t, ['--long-poll-timeout', '60s']);
        const big = new Stream(server, 'big', TEXT);
        const size = 12 << 20;
        await big.create({}, 'b'.repeat(size));
        for (let round = 0; round < 2; round++) {
            const crowd = new Crowd(server, uniqueName());
            await crowd.begin();
            const download = await Raw.open(server);
            download.send(head('GET', `${big.path}?offset=-1`));
            await download.more();
            download.socket.pause();
            await eventually('load', () => crowd.count('acked') >= rounds(500));
            crowd.ending = true;
            const gone = server.kill('SIGTERM');
            server.child.kill('SIGTERM');
            crowd.finishBody();
            download.socket.resume();
            await eventually('draining is under way', () => server.log.includes('draining'));
            server.child?.kill('SIGTERM'); // again and later: nothing more comes of it
            const page = await download.response();
            assert.equal(page.status, 200);
            assert.equal(page.body.length, Number(page.headers['content-length']));
            download.destroy();
            await crowd.end();
            assert.deepEqual(await gone, { code: 0, signal: null }, server.tail());
            server.log = '';
            await server.start();
            await crowd.verify();
        }
    });

    test('K13: a request that had come before the signal is answered, on connections old and new', async (t) => {
        const server = await serverFor(t, ['--workers', '1']);
        const stream = new Stream(server, 's', TEXT);
        await stream.create({}, 'x');
        // More of them than the event loop looks at in one turn, so that the end finds some unread.
        const old = await Promise.all(Array.from({ length: 400 }, () => Raw.open(server)));
        await Promise.all(old.map(async (raw) => {
            raw.send(head('HEAD', stream.path));
            assert.equal((await raw.response('HEAD')).status, 200);
        }));
        server.child.kill('SIGSTOP');
        const fresh = await Promise.all(Array.from({ length: 100 }, () => Raw.open(server)));
        const all = [...old, ...fresh];
        await Promise.all(all.map((raw) => raw.sendAll(head('HEAD', stream.path))));
        await eventually('every request is in its socket', () => connectionsTo(server.port).filter(({ unread }) => unread > 0).length === all.length);
        const gone = server.kill('SIGTERM');
        server.child.kill('SIGCONT');
        await Promise.all(all.map(async (raw) => {
            const reply = await raw.response('HEAD');
            if (reply.status === 503) {
                assert.match(reply.headers.connection, /close/);
                assert.match(reply.headers['retry-after'], /^\d+$/);
            } else {
                assert.equal(reply.status, 200);
            }
            assert.deepEqual(await raw.endOfConnection(), { extra: '', reset: null });
            raw.destroy();
        }));
        assert.deepEqual(await gone, { code: 0, signal: null }, server.tail());
    });

    test('K13: SIGINT ends it in the same way; a half-sent request does not hold it up', async (t) => {
        const server = await serverFor(t);
        const stream = new Stream(server, 's', TEXT);
        await stream.create({}, 'x');
        const half = await Raw.open(server);
        half.send(head('POST', stream.path, ['Content-Type: text/plain', 'Content-Length: 100']) + 'half');
        const slow = await Raw.open(server);
        slow.send('GET /v1/str');
        await stream.head();
        server.exitWanted = true;
        const { code, signal } = await server.kill('SIGINT');
        assert.deepEqual({ code, signal }, { code: 0, signal: null }, server.tail());
        half.destroy();
        slow.destroy();
        await server.start();
        assert.equal((await stream.get()).text, 'x');
    });

    test('K13: a live reader that takes nothing is not waited for; who downloads is, while there is time', async (t) => {
        const server = await serverFor(t, ['--read-page', '64MiB']); // more than sockets hold
        const stream = new Stream(server, 's', TEXT);
        await stream.create({}, 'x'.repeat(32 << 20));
        for (const [query, dropped] of [['&live=sse', false], ['', true]]) {
            const raw = await Raw.open(server);
            raw.send(head('GET', `${stream.path}?offset=-1${query}`));
            await raw.head();
            raw.socket.pause();
            await eventually('it takes nothing', () => isStuck(server, raw));
            server.log = '';
            assert.deepEqual(await server.kill('SIGTERM'), { code: 0, signal: null }, server.tail());
            // The order of the server's own timers: what is told after nine seconds did not come to be.
            assert.equal(/draining: connections that take nothing are dropped/.test(server.log), dropped, server.tail());
            raw.destroy();
            await server.start();
        }
    });

    test('K13: a start after a clean stop and a start after a kill give the same', async (t) => {
        const server = await serverFor(t);
        const stream = new Stream(server, 's', TEXT);
        await stream.create({}, 'a');
        for (let i = 0; i < 4; i++) {
            await server[i % 2 ? 'restart' : 'crashAndRestart']();
            await stream.append(`${i}`);
        }
        assert.equal((await stream.get()).text, 'a0123');
    });
});
