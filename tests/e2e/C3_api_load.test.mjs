// All of the API at once: people and bots post, list, follow and delete, members and keys come and go, and the server
// is told to end in the middle of it. What was acknowledged is there afterwards, once, and lists are in order.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { headerLines, proxied, serveFor, withKey } from './lib/serve.mjs';
import { Sse } from './lib/sse.mjs';
import { SANITIZER, eventually, randomFrom } from './lib/wait.mjs';

const SEED = Number(process.env.ARBE_SEED ?? Date.now() % 1_000_000);
const ROUNDS = SANITIZER ? 2 : 3;
const POSTS = SANITIZER ? 150 : 400; // acknowledged before the server is told to end
const POSTERS = 12;

class Load {
    constructor(server, random) {
        this.server = server;
        this.random = random;
        this.stopping = false;
        this.stored = new Map(); // of threads: ids of entries that were acknowledged
        this.count = 0;
        this.ids = 0;
    }

    async prepare() {
        const { owner, house } = this.server;
        this.members = [];
        for (const name of ['Ann', 'Bob', 'Cleo']) {
            this.members.push(await owner.invite(house.id, name));
        }
        this.guest = await owner.invite(house.id, 'Guest');
        this.bot = await owner.createAgent('Bot');
        await owner.ask(201, 'PUT', `/api/houses/${house.id}/members/${this.bot.agent.id}`, { role: 'member' });
        this.threads = [];
        for (let i = 0; i < 6; i++) {
            const thread = await owner.createThread(house.id, { name: `t${i}`, tags: [`tag${i % 2}`] });
            this.threads.push(thread.id);
            this.stored.set(thread.id, new Set());
        }
    }

    // Runs a load until the end is near. What fails then fails because of that.
    async forever(step) {
        while (!this.stopping) {
            try {
                await step();
            } catch (error) {
                if (!this.stopping) {
                    throw error;
                }
            }
        }
    }

    acknowledged(threadId, id) {
        this.stored.get(threadId).add(id);
        this.count++;
    }

    // Entries with an id of the client's are posted twice, sometimes at once.
    async post() {
        const { random } = this;
        const who = random.pick(this.members);
        const threadId = random.pick(this.threads);
        const path = `/api/threads/${threadId}/entries`;
        const body = { payload: { type: 'chat', text: 'x'.repeat(random.between(1, 400)) } };
        if (random.below(3) > 0) {
            this.acknowledged(threadId, (await who.ask(201, 'POST', path, body)).id);
            return;
        }
        body.id = `own-${this.ids++}`;
        const replies = await Promise.all([who.call('POST', path, body), who.call('POST', path, body)]);
        assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 201], replies[0].text);
        this.acknowledged(threadId, body.id);
    }

    async list() {
        const filter = this.random.pick(['', '&tag=tag1', '&status=open', '&limit=3']);
        const found = await this.random.pick(this.members).get(`/api/threads?house_id=${this.server.house.id}${filter}`);
        const times = found.threads.map(({ lastEntryTs, createdAt }) => lastEntryTs ?? createdAt);
        assert.deepEqual(times, [...times].sort((a, b) => b - a), 'newest activity first');
    }

    // The guest reads while it may, and is let go of when it may not.
    async follow() {
        const threadId = this.random.pick(this.threads);
        if (this.random.below(2) === 0) {
            const reply = await this.guest.call('GET', `/api/threads/${threadId}/stream?offset=now&live=long-poll`);
            assert.ok([200, 204, 403].includes(reply.status), reply.text);
            return;
        }
        const sse = await Sse.open(proxied(this.guest, threadId), 'now', { headers: headerLines(this.guest) });
        assert.ok([200, 403].includes(sse.status), `${sse.status}`);
        try {
            await sse.done;
        } finally {
            sse.close();
        }
    }

    async revoke() {
        const { owner, house } = this.server;
        const member = `/api/houses/${house.id}/members/${this.guest.agent.id}`;
        await owner.ask(204, 'DELETE', member);
        const { id, key } = await owner.ask(201, 'POST', '/api/agents/keys', { name: 'short' });
        await withKey(this.server, key).get('/api/me');
        await owner.ask(204, 'DELETE', `/api/agents/keys/${id}`);
        await withKey(this.server, key).refused(401, 'auth.unauthenticated', 'GET', '/api/me');
        await owner.ask(201, 'PUT', member, { role: 'member' });
    }

    async comeAndGo() {
        const { owner, house } = this.server;
        const thread = await owner.createThread(house.id);
        await this.members[0].say(thread.id, 'soon gone');
        await owner.ask(204, 'DELETE', `/api/threads/${thread.id}`);
    }

    async sandbox() {
        const threadId = this.threads[0];
        const box = await this.server.owner.mint(threadId, this.bot.agent.id);
        const status = this.random.pick(['running', 'idle']);
        const { ids } = await box.ask(201, 'POST', `/api/stream/arbe-thread-${threadId}`, [
            { payload: { type: 'signal.thread.status_changed', status } },
        ]);
        this.acknowledged(threadId, ids[0]);
    }

    start() {
        const lanes = [this.list, this.list, this.follow, this.follow, this.follow, this.revoke, this.comeAndGo,
            this.sandbox, ...Array(POSTERS).fill(this.post)];
        this.stopping = false;
        return Promise.all(lanes.map((step) => this.forever(() => step.call(this))));
    }

    async check() {
        const { owner, house } = this.server;
        for (const [threadId, ids] of this.stored) {
            const entries = await owner.history(threadId);
            const times = new Map();
            for (const { id } of entries) {
                times.set(id, (times.get(id) ?? 0) + 1);
            }
            for (const [id, count] of times) {
                assert.equal(count, 1, `${id} is there once`);
            }
            for (const id of ids) {
                assert.ok(times.has(id), `${id} was acknowledged`);
            }
            const { lastEntryTs } = await owner.get(`/api/threads/${threadId}`);
            assert.equal(lastEntryTs, Math.max(...entries.map(({ ts }) => ts)), 'the newest entry counts');
        }
        const all = await owner.list(`/api/threads?house_id=${house.id}`, 'threads', 2);
        const times = all.map(({ lastEntryTs, createdAt }) => lastEntryTs ?? createdAt);
        assert.deepEqual(times, [...times].sort((a, b) => b - a), 'newest activity first');
    }
}

test(`all at once, and an end in the middle (ARBE_SEED=${SEED})`, async (t) => {
    const server = await serveFor(t);
    const load = new Load(server, randomFrom(SEED));
    await load.prepare();
    for (let round = 0; round < ROUNDS; round++) {
        load.count = 0;
        const ended = load.start();
        await Promise.race([ended, eventually(`${POSTS} posts`, () => load.count >= POSTS)]);
        load.stopping = true;
        await server.stop();
        await ended;
        await server.start();
        await server.owner.call('PUT', `/api/houses/${server.house.id}/members/${load.guest.agent.id}`,
            { role: 'member' });
        await load.check();
    }
});
