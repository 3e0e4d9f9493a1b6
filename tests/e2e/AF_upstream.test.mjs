// Tier A: threads whose streams another server has (--streams-url): whoever reads them through the API is told what
// that server says to who asks it directly, and never its secret. That server is the Node reference server, and ours.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { JSON_TYPE, Stream, request } from './lib/http.mjs';
import { testUnless } from './lib/impossible.mjs';
import { Raw, head } from './lib/raw.mjs';
import { assertRefused, headerLines, nobody, proxied, startServe } from './lib/serve.mjs';
import { Server, startServer, tempDir } from './lib/server.mjs';
import { Sse } from './lib/sse.mjs';
import { eventually, withDeadline } from './lib/wait.mjs';

const SECRET = 'the-other-servers-secret-0123456789';
const POLL = ['--long-poll-timeout', '1s'];
const REFERENCE = new URL('../conformance/reference.mjs', import.meta.url).pathname;
const noReference = existsSync(new URL('../conformance/node_modules', import.meta.url))
    ? '' : 'the reference server is not installed (tools/bootstrap check)';

const secrets = tempDir();
const secretFile = join(secrets, 'secret');
writeFileSync(secretFile, SECRET, { mode: 0o600 });
writeFileSync(join(secrets, 'wrong'), `not-${SECRET}`, { mode: 0o600 });
after(() => rmSync(secrets, { recursive: true, force: true }));

async function startReference() {
    const server = new Server(POLL);
    server.program = REFERENCE;
    return await server.start();
}

// The app before that server.
async function startApp(other, file = secretFile, flags = []) {
    const app = await startServe(['--streams-url', `${other.base}/v1/stream`, '--streams-secret-file', file, ...flags]);
    app.other = other;
    app.told = [];
    return app;
}

async function dispose(app) {
    assert.ok(!app.told.join('\n').includes(SECRET), 'the secret was told');
    assert.ok(!app.log.includes(SECRET), 'the secret was logged');
    await app.dispose();
}

async function appFor(t, other, file, flags) {
    const app = await startApp(other, file, flags);
    t.after(() => dispose(app));
    return app;
}

const createThread = async (app) => (await app.owner.createThread(app.house.id)).id;

// The stream as the other server has it; the API's is proxied(caller, thread).
function direct(app, thread) {
    return new Stream(app.other, `arbe-thread-${thread}`, JSON_TYPE, { Authorization: `Bearer ${SECRET}` });
}

function follow(caller, thread, offset = '-1') {
    return Sse.open(proxied(caller, thread), offset, { headers: headerLines(caller) });
}

// What is between two hops, and what is another one each time.
const OWN = new Set(['connection', 'keep-alive', 'transfer-encoding', 'date', 'stream-cursor']);

function fields(reply) {
    const list = [];
    for (let i = 0; i < reply.rawHeaders.length; i += 2) {
        const name = reply.rawHeaders[i].toLowerCase();
        if (!OWN.has(name)) {
            list.push([name, reply.rawHeaders[i + 1]]);
        }
    }
    return list;
}

// Asks both, which must say the same; gives what was said.
async function same(app, thread, method, query, headers = {}) {
    const [told, wanted] = await Promise.all([proxied(app.owner, thread).send(method, { query, headers }),
                                              direct(app, thread).send(method, { query, headers })]);

    app.told.push(told.rawHeaders.join('\n'), told.text);
    assert.equal(told.status, wanted.status, `${method} ?${query}: ${told.text}`);
    assert.deepEqual(fields(told), fields(wanted), `${method} ?${query}`);
    assert.equal('stream-cursor' in told.headers, 'stream-cursor' in wanted.headers, `cursor of ?${query}`);
    assert.deepEqual(told.body, wanted.body, `${method} ?${query}`);
    return told;
}

const texts = (events) => events.filter((one) => one.event === 'data')
    .flatMap((one) => JSON.parse(one.data)).filter((entry) => entry.payload.type === 'chat').map((entry) => entry.payload.text);

function suite(name, startOther, run) {
    describe(name, () => {
        let app;
        let other;

        before(async () => {
            if (run === test || noReference === '') {
                other = await startOther();
                app = await startApp(other);
            }
        });
        after(async () => {
            await (app && dispose(app));
            await other?.dispose();
        });

        run('catch-up, HEAD, ETag and refusals are the other server\'s own', async () => {
            const thread = await createThread(app);
            await app.owner.say(thread, 'one');
            const middle = (await same(app, thread, 'GET', 'offset=-1')).next;
            await app.owner.say(thread, 'two');
            const all = await same(app, thread, 'GET', 'offset=-1');
            assert.equal(all.status, 200);
            assert.ok(all.upToDate);
            assert.ok(all.json().some((entry) => entry.payload.text === 'two'));
            assert.equal((await same(app, thread, 'GET', `offset=${middle}`)).json().length, 1);
            assert.equal((await same(app, thread, 'GET', '')).status, 200);
            assert.equal((await same(app, thread, 'GET', 'offset=now')).status, 200);
            assert.equal((await same(app, thread, 'HEAD', '')).status, 200);
            const { etag } = all.headers;
            assert.equal((await same(app, thread, 'GET', 'offset=-1', { 'If-None-Match': etag })).status, 304);
            assert.equal((await same(app, thread, 'GET', 'offset=-1', { 'If-None-Match': '"another"' })).status, 200);
            assert.equal((await same(app, thread, 'GET', 'offset=nonsense!')).status, 400);
            assert.equal((await same(app, thread, 'GET', 'offset=-1&offset=-1')).status, 400);
            assert.equal((await same(app, thread, 'GET', 'live=long-poll')).status, 400);
        });

        run('a long-poll waits, is woken, and is told that there is nothing', async () => {
            const thread = await createThread(app);
            const { next } = await same(app, thread, 'GET', 'offset=-1');
            const both = same(app, thread, 'GET', `offset=${next}&live=long-poll`);
            await app.owner.say(thread, 'woken');
            const woken = await both;
            assert.equal(woken.status, 200);
            assert.match(woken.text, /woken/);
            assert.ok(woken.headers['stream-cursor']);
            const nothing = await same(app, thread, 'GET', `offset=${woken.next}&live=long-poll&cursor=${woken.headers['stream-cursor']}`);
            assert.equal(nothing.status, 204);
            assert.ok(nothing.upToDate);
        });

        run('events come one by one, as the other server sends them', async () => {
            const thread = await createThread(app);
            await app.owner.say(thread, 'before');
            const sse = await follow(app.owner, thread);
            const wanted = await Sse.open(direct(app, thread), '-1', { headers: [`Authorization: Bearer ${SECRET}`] });
            assert.equal(sse.status, 200);
            const names = (h) => Object.keys(h).filter((one) => !OWN.has(one)).sort();
            assert.deepEqual(names(sse.headers), names(wanted.headers));
            for (let i = 0; i < 10; i++) {
                await app.owner.say(thread, `live ${i}`);
                await sse.until(`live ${i}`, () => texts(sse.events).includes(`live ${i}`));
                await wanted.until(`live ${i}`, () => texts(wanted.events).includes(`live ${i}`));
            }
            assert.deepEqual(texts(sse.events), texts(wanted.events));
            assert.ok(!sse.text.includes(SECRET));
            sse.raw.destroy();
            wanted.raw.destroy();
        });

        run('a closed stream is told as one, and ends who follows', async () => {
            const thread = await createThread(app);
            const sse = await follow(app.owner, thread);
            await app.owner.say(thread, 'last');
            await sse.until('the last entry', () => texts(sse.events).includes('last'));
            assert.ok((await direct(app, thread).close()).status < 300);
            await withDeadline(sse.done, 'end of the events');
            assert.ok(sse.cleanEnd);
            assert.equal(JSON.parse(sse.events.at(-1).data).streamClosed, true);
            const all = await same(app, thread, 'GET', 'offset=-1');
            assert.ok(all.closed);
            assert.ok((await same(app, thread, 'HEAD', '')).closed);
            const poll = await same(app, thread, 'GET', `offset=${all.next}&live=long-poll`);
            assert.equal(poll.status, 204);
            assert.ok(poll.closed);
        });

        run('a stream that is gone is told as one', async () => {
            const thread = await createThread(app);
            assert.ok((await direct(app, thread).remove()).status < 300);
            assert.ok([404, 410].includes((await same(app, thread, 'GET', 'offset=-1')).status));
        });

        run('who is no member reads nothing; who is removed stops reading', async () => {
            const thread = await createThread(app);
            assert.equal((await proxied(nobody(app), thread).get()).status, 401);
            const guest = await app.owner.invite(app.house.id, 'Guest');
            const sse = await follow(guest, thread);
            await app.owner.say(thread, 'seen');
            await sse.until('an entry', () => texts(sse.events).includes('seen'));
            const { next } = await proxied(guest, thread).head();
            const raw = await Raw.open(app);
            raw.send(head('GET', `${proxied(guest, thread).path}?offset=${next}&live=long-poll`, headerLines(guest)));
            // The answer to a second request on another connection comes when the first is under way, as a rule.
            assert.equal((await proxied(guest, thread).get()).status, 200);
            const begun = Date.now();
            await app.owner.ask(204, 'DELETE', `/api/houses/${app.house.id}/members/${guest.agent.id}`);
            await withDeadline(sse.done, 'end of the events');
            assert.ok(sse.cleanEnd);
            const waiting = await raw.head();
            assert.ok(Date.now() - begun < 5000, 'within 5 s');
            // Unless its time had come just before.
            assert.ok([403, 204].includes(waiting.status), `${waiting.status}`);
            raw.destroy();
            const refused = await proxied(guest, thread).get();
            assert.equal(refused.status, 403);
            assert.equal(refused.json().error.code, 'auth.forbidden');
        });
    });
}

suite('our own server has the streams', () => startServer(['--secret-file', secretFile, ...POLL]), test);
suite('the reference server has the streams', startReference, testUnless(noReference));

test('a server that does not take the secret, or is gone, is told as one', async (t) => {
    const other = await startServer(['--secret-file', secretFile]);
    t.after(() => other.dispose());
    const app = await appFor(t, other);
    const wrong = await appFor(t, other, join(secrets, 'wrong'));
    const refused = await proxied(wrong.owner, wrong.house.primaryThreadId).get();
    assert.equal(refused.status, 503);
    assert.equal(refused.json().error.code, 'streams.unavailable');
    assert.equal(refused.headers['retry-after'], '1');
    await eventually('the line in the log', () => /does not take the secret/.test(wrong.log));

    const thread = app.house.primaryThreadId;
    const sse = await follow(app.owner, thread);
    await sse.until('an event', () => sse.events.length > 0);
    other.expectGone();
    await other.crash();
    await withDeadline(sse.done, 'end of the events');
    assert.ok(!sse.cleanEnd, 'the last chunk is missing');
    const gone = await proxied(app.owner, thread).get();
    assert.equal(gone.status, 503);
    assert.equal(gone.json().error.code, 'streams.unavailable');
    assert.ok(!gone.text.includes(SECRET));
});

test('the end of the app ends who follows, and tells who waits to come again', async (t) => {
    const other = await startServer(['--secret-file', secretFile]);
    t.after(() => other.dispose());
    const app = await appFor(t, other);
    const thread = app.house.primaryThreadId;
    const sse = await follow(app.owner, thread, 'now');
    await sse.until('an event', () => sse.events.length > 0);
    const raw = await Raw.open(app);
    raw.send(head('GET', `${proxied(app.owner, thread).path}?offset=now&live=long-poll`, headerLines(app.owner)));
    await eventually('the long-poll at the other server', async () => {
        const metrics = await request(other.base, 'GET', '/metrics', { headers: direct(app, thread).extra });
        return /^\w+\{mode="long_poll"\} 1$/m.test(metrics.text);
    });
    app.expectGone();
    const end = app.stop();
    await withDeadline(sse.done, 'end of the events');
    assert.ok(sse.cleanEnd);
    const waiting = await raw.head();
    assert.equal(waiting.status, 503);
    await end;
    raw.destroy();
});

test('who follows counts for --max-waiters, as where the streams are here', async (t) => {
    const other = await startServer(['--secret-file', secretFile]);
    t.after(() => other.dispose());
    const app = await appFor(t, other, secretFile, ['--max-waiters', '1']);
    const thread = app.house.primaryThreadId;
    const waiters = async () => {
        const { text } = await request(app.base, 'GET', '/metrics');
        return ['sse', 'long_poll'].map((mode) => Number(new RegExp(`^arbe_waiters\\{mode="${mode}"\\} (\\d+)`, 'm').exec(text)[1]));
    };
    const sse = await follow(app.owner, thread, 'now');
    await sse.until('an event', () => sse.events.length > 0);
    assert.deepEqual(await waiters(), [1, 0]);
    for (const live of ['long-poll', 'sse']) {
        const refused = await proxied(app.owner, thread).send('GET', { query: `offset=now&live=${live}` });
        assertRefused(refused, 503, 'server.busy');
        assert.match(refused.json().error.message, /--max-waiters/);
        assert.equal(refused.headers['retry-after'], '1');
    }
    assert.equal((await proxied(app.owner, thread).get()).status, 200, 'who reads what is there is not counted');
    sse.raw.destroy();
    await eventually('the place is free', async () => (await waiters())[0] === 0);
    const raw = await Raw.open(app);
    raw.send(head('GET', `${proxied(app.owner, thread).path}?offset=now&live=long-poll`, headerLines(app.owner)));
    await eventually('it waits', async () => (await waiters())[1] === 1);
    await app.owner.say(thread, 'woken');
    assert.equal((await raw.head()).status, 200);
    await eventually('and no more', async () => (await waiters())[1] === 0);
    raw.destroy();
});

// Accepts connections and never says anything, but that it fails to whoever asks by a method of `fails`: its URL, the
// requests that it keeps waiting, and the first of them.
async function startSilent(t, fails = []) {
    const sockets = new Set();
    const waiting = [];
    let hear;
    const heard = new Promise((resolve) => { hear = resolve; });
    const server = createServer((socket) => {
        sockets.add(socket);
        socket.on('error', () => {});
        socket.on('data', (bytes) => {
            const [line] = bytes.toString().split('\r\n');
            if (fails.includes(line.split(' ')[0])) {
                socket.write('HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n');
            } else {
                waiting.push(line);
                hear();
            }
        });
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => {
        sockets.forEach((socket) => socket.destroy());
        server.close();
    });
    return { url: `http://127.0.0.1:${server.address().port}/v1/stream`, heard, waiting };
}

// The app before a server that was well until now, and from now on hangs.
async function beforeHanging(t) {
    const other = await startServer(['--secret-file', secretFile]);
    t.after(() => {
        other.child?.kill('SIGCONT');
        return other.dispose();
    });
    const app = await appFor(t, other);
    await app.owner.say(app.house.primaryThreadId, 'before');
    other.child.kill('SIGSTOP');
    await eventually('all of its threads are stopped', () => readdirSync(`/proc/${other.pid}/task`).every((task) =>
        /\) T /.test(readFileSync(`/proc/${other.pid}/task/${task}/stat`, 'utf8'))));
    return app;
}

test('a server that hangs holds up nobody who asks for records, and is told as one', async (t) => {
    const app = await beforeHanging(t);
    const path = `/api/threads/${app.house.primaryThreadId}/entries`;
    let answered = 0;
    const call = async (...args) => {
        const reply = await app.owner.call(...args);
        answered++;
        return reply;
    };
    // More than the application has threads.
    const asked = [
        ...Array.from({ length: 6 }, () => call('GET', path)),
        ...Array.from({ length: 2 }, (_, i) => call('POST', path, { id: `mine-${i}`, payload: { type: 'chat', text: 'late' } })),
    ];
    for (let i = 0; i < 20; i++) {
        await app.owner.get('/api/me');
    }
    assert.equal(answered, 0, 'they wait meanwhile');
    for (const reply of await Promise.all(asked)) {
        assertRefused(reply, 503, 'streams.unavailable');
        assert.doesNotMatch(reply.text, /127\.0\.0\.1|arbe-thread/, 'what is inside is the operator\'s');
    }
    await eventually('the line in the log', () => /warn .*cannot \w+ "arbe-thread-.*within 3000 ms/.test(app.log));
});

test('SIGTERM while the other server hangs: all are told, within 10 s', async (t) => {
    const app = await beforeHanging(t);
    const path = `/api/threads/${app.house.primaryThreadId}`;
    const connections = async () => {
        const metrics = await request(app.base, 'GET', '/metrics');
        return Number(/^arbe_connections (\d+)/m.exec(metrics.text)[1]);
    };
    const before = await connections();
    const call = (method, where, body) => app.owner.call(method, path + where, body, { fresh: true });
    const asked = [
        ...Array.from({ length: 20 }, () => call('GET', '/entries')),
        ...Array.from({ length: 3 }, () => call('GET', '/stream?offset=-1')),
        call('POST', '/entries', { payload: { type: 'chat', text: 'late' } }),
    ];
    await eventually('the requests are there', async () => await connections() >= before + asked.length);
    await app.owner.get('/api/me'); // and what was asked on them has been sent
    app.expectGone();
    const begun = Date.now();
    assert.deepEqual(await app.kill('SIGTERM'), { code: 0, signal: null }, app.tail());
    assert.ok(Date.now() - begun < 10_000, `${Date.now() - begun} ms`);
    for (const reply of await Promise.all(asked)) {
        assert.equal(reply.status, 503, reply.text);
        assert.doesNotMatch(reply.text, /127\.0\.0\.1|arbe-thread/);
        assert.match(reply.json().error.code, /^(streams\.(unavailable|outcome_unknown)|server\.draining)$/);
    }
});

// Sends SIGTERM to an app that has asked `silent` for the first time: nothing more is asked then, not even once again.
async function endsAtOnce(app, silent) {
    assert.deepEqual(await app.kill('SIGTERM'), { code: 0, signal: null }, app.tail());
    assert.equal(silent.waiting.length, 1, silent.waiting.join('\n'));
}

test('SIGTERM during a start before a server that never answers ends it', async (t) => {
    const silent = await startSilent(t);
    const app = new Server(['--streams-url', silent.url], { command: 'serve' });
    t.after(() => app.dispose());
    app.launch();
    await withDeadline(silent.heard, 'a question at the start');
    await endsAtOnce(app, silent);
});

test('SIGTERM while what is owed since the start waits for an answer ends it', async (t) => {
    const silent = await startSilent(t, ['GET']);
    const app = new Server(['--streams-url', silent.url], { command: 'serve' });
    t.after(() => app.dispose());
    await app.start();
    await withDeadline(silent.heard, 'the stream that the house\'s thread is owed');
    assert.match(silent.waiting[0], /^PUT .*arbe-thread-/);
    await endsAtOnce(app, silent);
});
