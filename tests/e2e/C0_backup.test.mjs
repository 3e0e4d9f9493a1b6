// Tier C: backup, restore and verify of a directory with records of threads: while they are written to, killed,
// damaged.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Faults, buildFaultLibrary } from './lib/faults.mjs';
import { testUnless } from './lib/impossible.mjs';
import { serveFor, startServe, withKey } from './lib/serve.mjs';
import { run } from './lib/server.mjs';
import { begin, freshPath, good, refused } from './lib/tool.mjs';
import { eventually, randomFrom, rounds } from './lib/wait.mjs';

const FLAGS = ['--checkpoint-interval', '50ms', '--checkpoint-bytes', '256KiB', '--wal-segment', '256KiB'];
const WRITERS = 8;
const THREADS = 5;
const USAGE = {
    input: 100, output: 20, cacheRead: 0, cacheWrite: 0, totalTokens: 120,
    cost: { input: 0.5, output: 0.25, cacheRead: 0, cacheWrite: 0, total: 0.75 },
};
const ASSISTANT = { type: 'pi.assistant', content: [{ type: 'text', text: 'Done.' }], provider: 'p', model: 'm', usage: USAGE, stopReason: 'stop' };
const { library, impossible } = buildFaultLibrary();
const faultTest = testUnless(impossible);

// The owner and a house of a restored directory.
async function serveRestored(t, dir, source) {
    const server = await serveFor(t, FLAGS, { dir });
    server.owner = withKey(server, source.owner.key, source.owner.agent);
    server.house = source.house;
    return server;
}

// People and a sandbox that write, threads that come and go, entries that are deleted; and what was acknowledged.
class Load {
    constructor(server, seed) {
        this.server = server;
        this.random = randomFrom(seed);
        this.acked = new Map();   // thread id: entry ids
        this.passing = new Map(); // thread id: 'there', 'asked', 'gone'
        this.deleted = new Set(); // "thread/entry"
        this.usage = new Map();   // thread id: events
        this.posts = 0;
        this.going = true;
    }

    async start() {
        const { owner, house } = this.server;
        this.threads = [];
        for (let i = 0; i < THREADS; i++) {
            const { id } = await owner.createThread(house.id, { name: `Thread ${i}`, tags: [`t${i}`] });
            this.threads.push(id);
            this.acked.set(id, []);
            this.usage.set(id, 0);
        }
        this.sandboxes = await Promise.all(this.threads.map((id) => owner.mint(id)));
        this.tasks = [...Array.from({ length: WRITERS }, (_, w) => this.write(w)), this.spend(), this.churn()];
        this.ended = Promise.all(this.tasks);
        this.ended.catch(() => {}); // stop() tells it
        return this;
    }

    async write(writer) {
        const thread = this.threads[writer % THREADS];
        for (let n = 0; this.going; n++) {
            const id = `w${writer}-${n}`;
            await this.server.owner.say(thread, `${id} ${'x'.repeat(this.random.below(300))}`, { id });
            this.acked.get(thread).push(id);
            this.posts++;
            if (n % 10 === 9) {
                await this.server.owner.ask(201, 'DELETE', `/api/threads/${thread}/entries/${id}`);
                this.deleted.add(`${thread}/${id}`);
            }
        }
    }

    async spend() {
        for (let n = 0; this.going; n++) {
            const at = n % THREADS;
            const id = `s-${n}`;
            await this.sandboxes[at].ask(201, 'POST', `/api/stream/arbe-thread-${this.threads[at]}`, { id, payload: ASSISTANT });
            this.acked.get(this.threads[at]).push(id);
            this.usage.set(this.threads[at], this.usage.get(this.threads[at]) + 1);
        }
    }

    async churn() {
        const { owner, house } = this.server;
        const made = [];
        while (this.going) {
            const { id } = await owner.createThread(house.id, { name: 'Passing' });
            this.passing.set(id, 'there');
            await owner.say(id, 'soon gone', { id: 'only' });
            this.acked.set(id, ['only']);
            made.push(id);
            if (made.length > 5) {
                const old = made.shift();
                this.passing.set(old, 'asked');
                await owner.ask(204, 'DELETE', `/api/threads/${old}`);
                this.passing.set(old, 'gone');
            }
        }
    }

    async stop() {
        this.going = false;
        await this.ended;
    }

    // What was acknowledged by now.
    seen() {
        return {
            acked: new Map([...this.acked].map(([id, ids]) => [id, [...ids]])),
            passing: new Map(this.passing), deleted: new Set(this.deleted), usage: new Map(this.usage),
        };
    }
}

// What one thread of the restored server says. A deletion that was asked for meanwhile may have taken the stream.
async function compareThread(load, before, restored, thread) {
    const entries = await restored.owner.history(thread.id);
    const ids = entries.map((entry) => entry.id);
    const has = new Set(ids);
    assert.equal(has.size, ids.length, `${thread.id}: an entry is there twice`);
    if (!['asked', 'gone'].includes(load.passing.get(thread.id))) {
        const last = entries.reduce((most, entry) => Math.max(most, entry.ts), 0);
        const lost = (before.acked.get(thread.id) ?? []).filter((id) => !has.has(id));
        assert.equal(thread.lastEntryTs ?? 0, last, `${thread.id}: the list is not right`);
        assert.deepEqual(lost, [], `${thread.id}: entries were lost`);
    }
    return entries;
}

async function compare(load, before, restored) {
    const { owner, house } = restored;
    const threads = await owner.list(`/api/threads?house_id=${house.id}`, 'threads');
    const listed = new Set(threads.map(({ id }) => id));
    const activity = threads.map((thread) => thread.lastEntryTs ?? thread.createdAt);
    assert.deepEqual(activity, [...activity].sort((a, b) => b - a), 'the list is in the order of activity');
    for (const [id, state] of before.passing) {
        assert.ok(state !== 'gone' || !listed.has(id), `${id} was deleted before, and is there`);
        assert.ok(load.passing.get(id) !== 'there' || listed.has(id), `${id} was there all the time, and is not`);
    }
    for (const thread of threads) {
        const entries = await compareThread(load, before, restored, thread);
        if (!load.threads.includes(thread.id)) {
            continue;
        }
        const has = new Set(entries.map((entry) => entry.id));
        for (const pair of before.deleted) {
            const [of, id] = pair.split('/');
            assert.ok(of !== thread.id || has.has(`arbe.deleted.${id}`), `${pair}: the tombstone was lost`);
        }
        const { total } = await owner.get(`/api/threads/${thread.id}/usage`);
        const spent = entries.filter((entry) => entry.payload.type === ASSISTANT.type).length;
        // Spend is recorded before its entry is appended, and one entry was on its way.
        assert.ok(total.events >= before.usage.get(thread.id) && total.events <= spent + 1,
                  `${thread.id}: ${total.events} events of spend, ${before.usage.get(thread.id)} before, ${spent} entries`);
        assert.equal(total.costUsd, total.events * USAGE.cost.total);
        assert.deepEqual((await owner.list(`/api/threads?house_id=${house.id}&tag=${thread.tags[0]}`, 'threads')).map(({ id }) => id), [thread.id]);
    }
}

// It goes on as if nothing had happened.
async function goesOn(load, before, restored) {
    for (const thread of load.threads) {
        const entries = await restored.owner.history(thread);
        const id = before.acked.get(thread).at(-1);
        const first = entries.find((entry) => entry.id === id);
        const again = await restored.owner.ask(200, 'POST', `/api/threads/${thread}/entries`, { id, payload: { type: 'chat', text: 'again' } });
        assert.deepEqual(again, first, 'a repeated post is answered with the first entry');
        await restored.owner.say(thread, 'after', { id: 'after' });
        assert.equal((await restored.owner.history(thread)).length, entries.length + 1);
    }
}

describe('backup of threads under load', { timeout: 300_000 }, () => {
    test('has all that was acknowledged before it began, once', async (t) => {
        const server = await serveFor(t, FLAGS);
        const load = await new Load(server, 6).start();
        for (let round = 0; round < rounds(4); round++) {
            await eventually('some load', () => load.posts > (round + 1) * rounds(100));
            const before = load.seen();
            const out = freshPath('out');
            const dir = freshPath('dir');
            await good(['backup', server.dir, out]);
            assert.match(await good(['verify', server.dir]), /in use by a server[^]*everything is right/);
            assert.match(await good(['verify', out]), /everything is right/);
            await good(['restore', out, dir]);
            for (const path of [out, dir]) {
                assert.equal(statSync(join(path, 'app.db')).mode & 0o777, 0o600);
                assert.ok(!existsSync(join(path, 'app.db-wal')));
            }
            if (round < rounds(4) - 1) {
                continue;
            }
            const restored = await serveRestored(t, dir, server);
            await load.stop();
            await compare(load, before, restored);
            await goesOn(load, before, restored);
            await restored.stop();
            assert.match(await good(['verify', dir]), /everything is right/);
        }
    });

    faultTest('threads that go while the records are copied can be read, and written to', async (t) => {
        const server = await serveFor(t, FLAGS);
        const { id } = await server.owner.createThread(server.house.id, { name: 'Going' });
        const { id: stays } = await server.owner.createThread(server.house.id, { name: 'Staying' });
        await server.owner.say(id, 'gone', { id: 'gone' });
        const faults = new Faults(library);
        t.after(() => faults.dispose());
        const out = freshPath('out');
        const dir = freshPath('dir');
        faults.set(`write ${out}/app.db hold`);
        const backup = begin(['backup', server.dir, out], faults.env);
        await faults.hit();
        await server.owner.ask(204, 'DELETE', `/api/threads/${id}`);
        const { id: late } = await server.owner.createThread(server.house.id, { name: 'Late' });
        await server.owner.say(stays, 'late', { id: 'late' });
        faults.clear();
        const { code, text } = await backup.end();
        assert.equal(code, 0, text);
        await good(['restore', out, dir]);
        const restored = await serveRestored(t, dir, server);
        await restored.owner.refused(404, 'record.not_found', 'GET', `/api/threads/${late}`);
        assert.deepEqual(await restored.owner.history(id), []);
        const entry = await restored.owner.say(id, 'here again', { id: 'gone' });
        assert.deepEqual(await restored.owner.history(id), [entry]);
        assert.equal((await restored.owner.history(stays)).at(-1).id, 'late');
        const threads = await restored.owner.list(`/api/threads?house_id=${server.house.id}`, 'threads');
        assert.deepEqual(threads.slice(0, 2).map((thread) => thread.id), [id, stays]);
    });
});

describe('backup of threads that does not come to its end', { timeout: 300_000 }, () => {
    faultTest('one that is killed is none, and a killed restore is no directory of records', async (t) => {
        const server = await serveFor(t, FLAGS);
        const faults = new Faults(library);
        t.after(() => faults.dispose());
        for (const place of ['app.db', 'wal', 'catalog', 'keys', 'manifest']) {
            const out = freshPath('out');
            faults.set(`write ${out}/${place} hold`);
            const backup = begin(['backup', server.dir, out], faults.env);
            await faults.hit();
            await server.owner.say(server.house.primaryThreadId, `during ${place}`, { id: `during-${place}` });
            backup.child.kill('SIGKILL');
            assert.equal((await backup.end()).signal, 'SIGKILL');
            faults.clear();
            assert.ok(!existsSync(join(out, 'manifest')));
            await refused(['restore', out, freshPath('dir')], /is no backup/);
        }
        const out = freshPath('out');
        await good(['backup', server.dir, out]);
        for (const place of ['app.db', 'wal', 'catalog', 'keys']) {
            const dir = freshPath('dir');
            faults.set(`write ${dir}/${place} hold`);
            const restore = begin(['restore', out, dir], faults.env);
            await faults.hit();
            restore.child.kill('SIGKILL');
            assert.equal((await restore.end()).signal, 'SIGKILL');
            faults.clear();
            assert.ok(!existsSync(join(dir, 'app.db')) && !existsSync(join(dir, 'catalog', 'data.mdb')));
            await refused(['restore', out, dir], /is not empty/);
        }
        assert.match(await good(['verify', server.dir]), /everything is right/);
    });

    faultTest('no room for the records is told, and nothing is left', async (t) => {
        const server = await serveFor(t, FLAGS);
        const faults = new Faults(library);
        t.after(() => faults.dispose());
        const out = freshPath('out');
        faults.set(`write ${out}/app.db ENOSPC`);
        const { code, text } = await begin(['backup', server.dir, out], faults.env).end();
        assert.equal(code, 1, text);
        assert.match(text, /app\.db: database or disk is full/);
        assert.deepEqual(readdirSync(out, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()), []);
        await server.owner.say(server.house.primaryThreadId, 'still here');
    });
});

// Changes the first byte of the last page of app.db, which says what kind of page it is.
function damage(path) {
    const bytes = readFileSync(path);
    const whole = Buffer.from(bytes);
    bytes[bytes.length - 4096] ^= 0xff;
    writeFileSync(path, bytes);
    return () => writeFileSync(path, whole);
}

describe('verify of the records', { timeout: 300_000 }, () => {
    test('finds damage, in use and not, and in a backup', async (t) => {
        const server = await serveFor(t, FLAGS);
        await server.owner.createThread(server.house.id, { name: 'One' });
        await server.stop(); // what the log of app.db has is in it now
        const out = freshPath('out');
        const path = join(server.dir, 'app.db');
        await good(['backup', server.dir, out]);
        const undo = damage(path);
        const found = await run(['streams', 'verify', server.dir]);
        assert.equal(found.code, 1);
        assert.match(found.stdout, /^damage: app\.db: [^\n]*page [^\n]*$/im);
        const json = (await run(['streams', 'verify', '--json', server.dir])).stdout.trim().split('\n').map((line) => JSON.parse(line));
        assert.ok(json.some((line) => line.finding === 'damage' && line.file === 'app.db'));
        assert.equal(json.at(-1).damages, json.length - 1);
        undo();
        await server.start();
        assert.match(await good(['verify', server.dir]), /in use by a server[^]*everything is right/);
        await server.crash(); // and what a crash left
        assert.match(await good(['verify', server.dir]), /not in use[^]*everything is right/);
        await server.start();
        const undoCopy = damage(join(out, 'app.db'));
        const copy = await run(['streams', 'verify', out]);
        assert.equal(copy.code, 1);
        assert.match(copy.stdout, /^damage: app\.db: its bytes do not match their checksum in the manifest: restore refuses this backup$/m);
        await refused(['restore', out, freshPath('dir')], /app\.db does not match its checksum: it is damaged/);
        undoCopy();
        assert.match(await good(['verify', out]), /everything is right/);
    });

    test('and backup leave a stopped directory as it was', async () => {
        const server = await startServe(FLAGS);
        try {
            await server.owner.say(server.house.primaryThreadId, 'hello');
            await server.stop();
            const look = () => readdirSync(server.dir, { recursive: true }).sort().map((name) => {
                const info = statSync(join(server.dir, name));
                return [name, info.mtimeMs, info.ctimeMs, info.mode, info.isFile() ? readFileSync(join(server.dir, name)).toString('base64') : ''];
            });
            const before = look();
            await good(['verify', server.dir]);
            await good(['backup', server.dir, freshPath('out')]);
            assert.deepEqual(look(), before);
            await server.start();
        } finally {
            await server.dispose();
        }
    });
});
