// Tier 50: the scoped client, over connections that break and while servers are killed: with arbe
// serve, and with a stand-in for the app, which does what no app does on purpose.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, afterEach, describe, test } from 'node:test';
import { request, uniqueName } from './lib/http.mjs';
import { Relay } from './lib/reader.mjs';
import { Scoped, StandIn, stopScoped } from './lib/scoped.mjs';
import { serverFor, startServer } from './lib/server.mjs';
import { eventually, randomFrom, rounds } from './lib/wait.mjs';

const seed = Number(process.env.ARBE_SEED ?? Date.now() % 1000000);
console.log(`seed ${seed}`);
const random = randomFrom(seed);

const server = await startServer(['--long-poll-timeout', '300ms']);
after(() => server.dispose());
const app = await new StandIn(server).start();
after(() => app.stop());
afterEach(stopScoped);
app.members.set('arbe_ann', 'ann');
app.members.set('arbe_bob', 'bob');

async function freshThread() {
    const id = uniqueName('t');
    await app.createThread(id);
    return id;
}

const chat = (text) => JSON.stringify({ type: 'chat', text });
const signal = (id, type, fields = {}) => ({ id, ts: 1, payload: { type: `signal.${type}`, ...fields } });
const scoped = (thread, command, options, input, token = 'arbe_ann') => new Scoped(app.base, token, thread, command, options, input);

async function done(thread, command, options, input, token) {
    const program = scoped(thread, command, options, input, token);
    await program.end();
    return program;
}

describe('the scoped client', { timeout: 300_000 }, () => {
    for (const form of ['next', 'start']) {
        test(`posts, and reads what was posted (${form})`, async () => {
            const thread = await freshThread();
            const posted = await done(thread, 'post', { form }, `${chat('one')}\n{"type":"chat","text":"two","x":1.50}\n`);
            assert.deepEqual(posted.said.map((one) => one.status), [201, 201]);
            const again = await done(thread, 'post', { form, id: posted.entries[0].id }, `${chat('other')}\n`);
            assert.deepEqual([again.said[0].status, again.entries[0]], [200, posted.entries[0]]);
            const tail = await done(thread, 'tail', { catch_up: 1, form: form === 'start' ? 'step' : 'next' });
            assert.deepEqual(tail.entries, posted.entries);
            assert.equal(tail.last.end, 'END');
            const resumed = await done(thread, 'tail', { catch_up: 1, offset: tail.said.find((one) => one.next).next });
            assert.ok(resumed.entries.length < 2);
        });
    }

    test('two members talk while streams are killed and connections break: each entry once, in one order', async (t) => {
        const thread = await freshThread();
        const relay = await new Relay(app, () => (random.below(3) > 0 ? Infinity : random.between(1, 5_000))).start();
        t.after(() => relay.stop());
        const patience = { retries: -1, delay: 5, max_delay: 50 };
        const count = rounds(200);
        const tails = ['next', 'step'].map((form) => new Scoped(relay.base, 'arbe_bob', thread, 'tail', { ...patience, form, until: 2 * count }));
        const posters = ['ann', 'bob'].map((who) => new Scoped(relay.base, `arbe_${who}`, thread, 'post', patience,
            Array.from({ length: count }, (_, i) => `${chat(`${who} ${i}`)}\n`).join('')));
        const kills = rounds(20);
        for (let i = 1; i <= kills; i++) {
            const wanted = Math.floor(count * i / (kills + 1));
            await eventually('posts go on', () => posters.some((poster) => poster.said.length >= wanted));
            await server.crashAndRestart();
        }
        for (const poster of posters) {
            assert.deepEqual(await poster.end(120_000), { end: 'END' });
            assert.equal(poster.said.length, count);
        }
        for (const tail of tails) {
            assert.equal((await tail.end(60_000)).end, 'END');
            assert.equal(new Set(tail.entries.map((entry) => entry.id)).size, 2 * count);
            for (const who of ['ann', 'bob']) {
                const texts = tail.entries.filter((entry) => entry.authorId === who).map((entry) => entry.payload.text);
                assert.deepEqual(texts, Array.from({ length: count }, (_, i) => `${who} ${i}`));
            }
        }
        assert.deepEqual(tails[0].entries, tails[1].entries);
        console.log(`${kills} kills, ${relay.cuts} cuts`);
        assert.ok(relay.cuts > 0);
    });

    test('two members talk while all of arbe serve is killed: each entry once, in one order', async (t) => {
        const serve = await serverFor(t, ['--long-poll-timeout', '300ms'], { command: 'serve' });
        const [ann] = await eventually('the key', () => /arbe_[0-9a-f]{64}/.exec(serve.log));
        const ask = async (method, path, body) => {
            const headers = { Authorization: `Bearer ${ann}`, 'Content-Type': 'application/json' };
            const reply = await request(serve.base, method, path, { headers, body: body && JSON.stringify(body) });
            assert.ok(reply.status < 300, `${method} ${path}: ${reply.status} ${reply.text}`);
            return JSON.parse(reply.text);
        };
        const { agent: { id: annId }, houses: [house] } = await ask('GET', '/api/me');
        const { agent: { id: bobId }, apiKey: bob } = await ask('POST', '/api/agents', { name: 'Bob' });
        await ask('PUT', `/api/houses/${house.id}/members/${bobId}`, { role: 'member' });
        const { threadId } = await ask('POST', '/api/threads', { parentId: house.id, name: 'talk' });
        const relay = await new Relay(serve, () => (random.below(3) > 0 ? Infinity : random.between(1, 5_000))).start();
        t.after(() => relay.stop());
        const patience = { retries: -1, delay: 5, max_delay: 50 };
        const count = rounds(100);
        const mine = (entries) => entries.filter((entry) => entry.payload.type === 'chat');
        const tails = ['next', 'step'].map((form) => new Scoped(relay.base, bob, threadId, 'tail', { ...patience, form }));
        const posters = [ann, bob].map((key) => new Scoped(relay.base, key, threadId, 'post', patience,
            Array.from({ length: count }, (_, i) => `${chat(String(i))}\n`).join('')));
        const kills = rounds(10);
        for (let i = 1; i <= kills; i++) {
            const wanted = Math.floor(count * i / (kills + 1));
            await eventually('posts go on', () => posters.some((poster) => poster.said.length >= wanted));
            await serve.crashAndRestart();
        }
        for (const poster of posters) {
            assert.deepEqual(await poster.end(120_000), { end: 'END' });
        }
        for (const tail of tails) {
            await tail.until('all of it', ({ entries }) => mine(entries).length >= 2 * count);
            tail.child.kill('SIGUSR1');
            assert.equal((await tail.end()).end, 'ABORTED');
            assert.equal(new Set(tail.entries.map((entry) => entry.id)).size, tail.entries.length);
            for (const [at, who] of [annId, bobId].entries()) {
                const posted = mine(tail.entries).filter((entry) => entry.authorId === who);
                assert.deepEqual(posted, posters[at].entries);
                assert.deepEqual(posted.map((entry) => entry.payload.text), Array.from({ length: count }, (_, i) => String(i)));
            }
        }
        assert.deepEqual(mine(tails[0].entries), mine(tails[1].entries));
        console.log(`${kills} kills of arbe serve, ${relay.cuts} cuts`);
    });

    test('a key that is none, a stranger, a thread that is none: final at once, in the words of the app', async () => {
        const thread = await freshThread();
        app.members.set('arbe_eve', null);
        for (const [token, id, end, code] of [
            ['arbe_nobody', thread, 'UNAUTHORIZED', 'auth.unauthenticated'],
            ['arbe_eve', thread, 'FORBIDDEN', 'auth.forbidden'],
            ['arbe_ann', 'none', 'NOT_FOUND', 'record.not_found'],
        ]) {
            for (const command of ['tail', 'observe', 'post']) {
                app.requests.length = 0;
                const { last } = await done(id, command, {}, `${chat('hi')}\n`, token);
                assert.deepEqual([last.end, last.code], [end, code]);
                assert.doesNotMatch(last.message, /cannot|status/);
                assert.equal(app.requests.length, 1);
            }
        }
    });

    test('a member who is removed in the middle of a tail', async () => {
        const thread = await freshThread();
        app.members.set('arbe_dan', 'dan');
        const tail = scoped(thread, 'tail', {}, '', 'arbe_dan');
        await tail.until('the tail', ({ said }) => said.some((one) => one.up));
        app.members.set('arbe_dan', null);
        const last = await tail.end();
        assert.deepEqual([last.end, last.code, last.message], ['FORBIDDEN', 'auth.forbidden', 'you are not a member of this house']);
    });

    test('signals end it at once, while a poll hangs', async () => {
        const thread = await freshThread();
        const quiet = new StandIn(server);
        quiet.proxy = (req, res, path) => (path.includes('live=') ? undefined : StandIn.prototype.proxy.call(quiet, req, res, path));
        quiet.members = app.members;
        quiet.threads = app.threads;
        await quiet.start();
        for (const [command, name] of [['tail', 'SIGUSR1'], ['tail', 'SIGUSR2'], ['observe', 'SIGUSR1'], ['observe', 'SIGUSR2']]) {
            quiet.requests.length = 0;
            const program = new Scoped(quiet.base, 'arbe_ann', thread, command);
            await eventually('the poll', () => quiet.requests.some((one) => one.includes('live=long-poll')));
            program.child.kill(name);
            const last = await program.end();
            assert.deepEqual([last.end, last.code], ['ABORTED', 'client.aborted']);
        }
        await quiet.stop();
    });

    test('an observer: the past, the present, and the end of what a post set off', async () => {
        const thread = await freshThread();
        await app.write(thread, signal('s0', 'dispatch.started', { dispatchId: 'd0', agentId: 'a', triggerEntryId: 'c0' }));
        await app.write(thread, signal('e0', 'dispatch.completed', { dispatchId: 'd0', agentId: 'a', triggerEntryId: 'c0' }));
        const rest = await done(thread, 'observe', { at_rest: 1 });
        assert.deepEqual(rest.said.slice(2), [{ backfilled: true }, { settled: 'completed', by: 'e0', reason: '' }]);
        const posted = await done(thread, 'post', { id: 'c1' }, `${chat('do it')}\n`);
        const observers = ['next', 'step'].map((form) => scoped(thread, 'observe', { form, trigger: posted.entries[0].id }));
        for (const observer of observers) {
            await observer.until('the tail', ({ said }) => said.some((one) => one.backfilled));
        }
        await app.write(thread, signal('s1', 'dispatch.started', { dispatchId: 'd1', agentId: 'a', triggerEntryId: 'c1' }));
        await server.crashAndRestart();
        await app.write(thread, signal('k1', 'dispatch.skipped', { agentId: 'b', triggerEntryId: 'c1', reason: 'quiet' }));
        await app.write(thread, signal('e1', 'dispatch.failed', { dispatchId: 'd1', agentId: 'a', triggerEntryId: 'c1', reason: 'no model' }));
        for (const observer of observers) {
            const last = await observer.end();
            assert.equal(last.end, 'END');
            assert.deepEqual(observer.said.at(-1), { settled: 'failed', by: 'e1', reason: 'no model' });
            assert.deepEqual(observer.entries.map((entry) => entry.id), ['s0', 'e0', 'c1', 's1', 'k1', 'e1']);
        }
    });

    test('the layers stay apart: the scoped client knows no path of a stream and no secret', () => {
        const names = ['client', 'error', 'entry', 'exchange', 'page', 'request', 'tail', 'observer'];
        const text = names.map((name) => readFileSync(new URL(`../../src/client/scoped_${name}.c`, import.meta.url), 'utf8')).join('');
        assert.doesNotMatch(text, /arbe-thread-|v1\/stream|secret/i);
    });
});
