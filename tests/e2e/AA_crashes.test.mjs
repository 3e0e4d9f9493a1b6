// Threads across kill -9: conversations lose nothing and repeat nothing, and records agree with what threads were told.
import assert from 'node:assert/strict';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { assertAgreed } from './lib/agreed.mjs';
import { headerLines, proxied, serveFor } from './lib/serve.mjs';
import { run } from './lib/server.mjs';
import { Sse } from './lib/sse.mjs';
import { eventually, inParallel, randomFrom, rounds, withDeadline } from './lib/wait.mjs';

// A server that is killed while others talk to it; who finds it gone waits until it is back.
class Mortal {
    constructor(server) {
        this.server = server;
        this.back = Promise.resolve();
        this.kills = 0;
    }

    async kill() {
        let tell;
        this.back = new Promise((done) => {
            tell = done;
        });
        this.kills++;
        await this.server.crash();
        await this.server.start();
        tell();
    }

    // Does it until it is answered by a server that lives.
    async insist(act) {
        for (;;) {
            const reply = await act().catch(() => undefined);
            if (reply !== undefined && reply.status < 500) {
                return reply;
            }
            await withDeadline(this.back, 'server that is back');
        }
    }
}

// Follows by long-poll, trusting only Stream-Next-Offset.
async function followByPoll(mortal, caller, threadId, seen, until) {
    const stream = proxied(caller, threadId);
    for (let offset = '-1'; !until(seen);) {
        const reply = await mortal.insist(() => stream.poll(offset, '', {}, { fresh: true }));
        assert.ok([200, 204].includes(reply.status), reply.text);
        if (reply.status === 200) {
            seen.push(...reply.json());
        }
        offset = reply.next;
    }
}

// Follows by server-sent events: what came counts when the event with the offset behind it has come.
async function followBySse(mortal, caller, threadId, seen, until) {
    let offset = '-1';
    while (!until(seen)) {
        const sse = await Sse.open(proxied(caller, threadId), offset, { headers: headerLines(caller) }).catch(
            () => undefined,
        );
        let at = 0;
        let pending = [];
        const take = () => {
            for (; at < sse.events.length; at++) {
                const { event, data } = sse.events[at];
                if (event === 'data') {
                    pending.push(...JSON.parse(data));
                } else if (event === 'control') {
                    seen.push(...pending);
                    pending = [];
                    offset = JSON.parse(data).streamNextOffset;
                }
            }
            return until(seen);
        };
        if (sse !== undefined) {
            await sse.until('the end', take).catch(() => {}); // it was cut: then again, from the offset
            take();
            sse.close();
        }
        await withDeadline(mortal.back, 'server that is back');
    }
}

test('two who talk, and follow each other live, across kills: nothing is lost, nothing comes twice', async (t) => {
    const server = await serveFor(t);
    const { owner, house } = server;
    const other = await owner.invite(house.id, 'Other');
    const { id } = await owner.createThread(house.id);
    const mortal = new Mortal(server);
    const count = rounds(60);
    const kills = 5;
    const acknowledged = [];
    const talk = async (one, name) => {
        for (let i = 0; i < count; i++) {
            const body = { id: `${name}-${i}`, payload: { type: 'chat', text: `${name} says ${i}` } };
            const reply = await mortal.insist(() =>
                one.call('POST', `/api/threads/${id}/entries`, body, { fresh: true }),
            );
            assert.ok([200, 201].includes(reply.status), reply.text);
            acknowledged.push(reply.json());
        }
    };
    const all = (seen) => seen.length >= 1 + 2 * count;
    const [polled, pushed] = [[], []];
    const followers = [followByPoll(mortal, owner, id, polled, all), followBySse(mortal, other, id, pushed, all)];
    const talkers = Promise.all([talk(owner, 'a'), talk(other, 'b')]);
    for (let i = 1; i <= kills; i++) {
        await eventually('some more posts', () => acknowledged.length >= (i * 2 * count) / (kills + 2));
        await mortal.kill();
    }
    await talkers;
    await Promise.all(followers);
    const history = await owner.history(id);
    assert.deepEqual(polled, history, 'by long-poll: all, once, in order');
    assert.deepEqual(pushed, history, 'by server-sent events as well');
    assert.equal(new Set(history.map((one) => one.id)).size, 1 + 2 * count);
    for (const name of ['a', 'b']) {
        const ids = history.map((one) => one.id).filter((one) => one.startsWith(`${name}-`));
        assert.deepEqual(
            ids,
            Array.from({ length: count }, (_, i) => `${name}-${i}`),
            'who talks is told in the order of its talk',
        );
    }
    const stored = new Map(history.map((one) => [one.id, one]));
    for (const entry of acknowledged) {
        assert.deepEqual(stored.get(entry.id), entry, 'what was answered is what is stored');
    }
    assert.equal(mortal.kills, kills);
});

test('a kill in the middle of changes leaves records and threads agreed, in the order of the effects', async (t) => {
    const server = await serveFor(t);
    const { owner } = server;
    const seed = Date.now() % 1e9;
    const random = randomFrom(seed);
    const house = await owner.createHouse('Busy');
    const bots = await inParallel(
        2,
        Array.from({ length: 4 }, (_, i) => () => owner.createAgent(`Bot ${i}`)),
    );
    const threadIds = [];
    for (let i = 0; i < 6; i++) {
        threadIds.push((await owner.createThread(house.id, { name: 'First' })).id);
    }
    const change = async (n) => {
        const thread = random.pick(threadIds);
        const member = `/api/houses/${house.id}/members/${random.pick(bots).agent.id}`;
        const acts = [
            async () => {
                const reply = await owner.call(
                    'POST',
                    '/api/threads',
                    { parentId: house.id, name: 'First' },
                    { fresh: true },
                );
                threadIds.push(reply.json().threadId);
            },
            () => owner.call('PATCH', `/api/threads/${thread}`, { name: `n${n}` }, { fresh: true }),
            () =>
                owner.call(
                    'PATCH',
                    `/api/threads/${thread}`,
                    { status: random.pick(['idle', 'running', 'completed']) },
                    { fresh: true },
                ),
            () => owner.call('PATCH', `/api/threads/${thread}`, { name: `m${n}`, status: 'idle' }, { fresh: true }),
            () => owner.call('PUT', member, { role: random.pick(['member', 'owner']) }, { fresh: true }),
            () => owner.call('DELETE', member, undefined, { fresh: true }),
            () => owner.call('PATCH', `/api/houses/${house.id}`, { name: `House ${n}` }, { fresh: true }),
            () => owner.call('DELETE', `/api/threads/${thread}`, undefined, { fresh: true }),
        ];
        await random.pick(acts)();
    };
    for (let round = 0; round < rounds(8); round++) {
        let done = 0;
        const wanted = random.between(0, 12);
        const changes = Array.from({ length: 24 }, (_, i) =>
            change(round * 100 + i)
                .then(() => {
                    done++;
                })
                .catch(() => {}),
        );
        await eventually('some changes', () => done >= wanted);
        await server.crash();
        await Promise.all(changes);
        await server.start();
        await assertAgreed(owner, house.id, threadIds, `round ${round}, seed ${seed}`);
    }
});

test('records that were lost are no first start', async (t) => {
    const server = await serveFor(t);
    const { owner, house } = server;
    const entry = await owner.ask(201, 'POST', `/api/threads/${house.primaryThreadId}/entries`, {
        payload: { type: 'chat', text: 'kept' },
    });
    await server.stop();
    const kept = ['app.db', 'app.db-wal', 'app.db-shm'].filter((name) => existsSync(join(server.dir, name)));
    kept.forEach((name) => renameSync(join(server.dir, name), join(server.dir, `${name}.away`)));
    const refused = await run(['serve', '--listen', '127.0.0.1:0', '--data', server.dir]);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /app\.db has no records: it was lost\. Bring it back from a backup/);
    assert.doesNotMatch(refused.stdout + refused.stderr, /first start/);
    ['app.db', 'app.db-wal', 'app.db-shm'].forEach((name) => rmSync(join(server.dir, name), { force: true }));
    kept.forEach((name) => renameSync(join(server.dir, `${name}.away`), join(server.dir, name)));
    await server.start();
    const { entries } = await owner.get(`/api/threads/${house.primaryThreadId}/entries`);
    assert.deepEqual(entries.at(-1), entry);
});
