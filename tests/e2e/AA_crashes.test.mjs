// Threads across kill -9: conversations lose nothing and repeat nothing, and records agree with what threads were told.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { headerLines, proxied, serveFor } from './lib/serve.mjs';
import { Server } from './lib/server.mjs';
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

// What threads and houses were told, folded into what should be.
function fold(history) {
    const state = {
        name: undefined,
        status: 'open',
        members: new Map(),
        types: history.map(({ payload }) => payload.type),
    };
    for (const {
        authorId,
        payload: { type, ...rest },
    } of history) {
        if (type.endsWith('.renamed')) {
            state.name = rest.name;
        } else if (type === 'signal.thread.status_changed') {
            state.status = rest.status;
        } else if (type === 'signal.house.created') {
            state.members.set(authorId, 'owner');
        } else if (type === 'signal.house.member_added') {
            state.members.set(rest.agentId, rest.role);
        } else if (type === 'signal.house.member_removed') {
            state.members.delete(rest.agentId);
        }
    }
    return state;
}

async function assertAgreed(owner, houseId, threadIds, what) {
    const house = await owner.get(`/api/houses/${houseId}`);
    const told = fold(await owner.history(house.primaryThreadId));
    assert.deepEqual(told.types.slice(0, 2), ['signal.house.created', 'signal.thread.created'], what);
    assert.equal(told.name ?? 'Busy', house.name, `${what}: the name of the house`);
    const members = await owner.list(`/api/houses/${houseId}/members`, 'members');
    assert.deepEqual(
        new Map(members.map(({ agentId, role }) => [agentId, role])),
        new Map([...told.members].sort()),
        what,
    );
    const threads = await owner.list(`/api/threads?house_id=${houseId}`, 'threads');
    for (const thread of threads.filter(({ id }) => id !== house.primaryThreadId)) {
        const { name, status, types } = fold(await owner.history(thread.id));
        assert.equal(types[0], 'signal.thread.created', what);
        assert.equal(types.filter((type) => type === 'signal.thread.created').length, 1, what);
        assert.equal(name ?? 'First', thread.name, `${what}: the name of ${thread.id}`);
        assert.equal(status, thread.status, `${what}: the status of ${thread.id}`);
    }
    for (const id of threadIds) {
        const there = threads.some((one) => one.id === id);
        const reply = await owner.call('GET', `/api/threads/${id}/stream?offset=-1`);
        assert.equal(reply.status, there ? 200 : 404, `${what}: the stream of ${id}`);
    }
}

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

test('what threads are owed when the server is killed they are given at the next start, in order', async (t) => {
    const streams = new Server([], { keepDir: true, ownDir: true });
    t.after(() => streams.dispose());
    await streams.start();
    const server = await serveFor(t, ['--streams-url', `http://127.0.0.1:${streams.port}/v1/stream`]);
    const { owner } = server;
    const house = await owner.createHouse('Busy');
    const bot = await owner.createAgent('Bot');
    const thread = await owner.createThread(house.id, { name: 'First' });
    const gone = await owner.createThread(house.id, { name: 'First' });
    const { port } = streams;
    await streams.crash();
    // The streams are away: records change all the same, and are answered.
    await owner.ask(200, 'PATCH', `/api/threads/${thread.id}`, { name: 'Second' });
    await owner.ask(200, 'PATCH', `/api/threads/${thread.id}`, { status: 'running' });
    const late = await owner.createThread(house.id, { name: 'First' });
    await owner.ask(201, 'PUT', `/api/houses/${house.id}/members/${bot.agent.id}`, { role: 'owner' });
    await owner.ask(200, 'PATCH', `/api/houses/${house.id}`, { name: 'Renamed' });
    await owner.ask(204, 'DELETE', `/api/threads/${gone.id}`);
    const refused = await owner.call('POST', `/api/threads/${thread.id}/entries`, {
        payload: { type: 'chat', text: 'x' },
    });
    assert.equal(refused.status, 503, refused.text);
    await server.crash();
    streams.launch(['--listen', `127.0.0.1:${port}`]);
    await streams.listening;
    await server.start();
    await eventually(
        'the threads are told',
        async () =>
            (await owner.call('GET', `/api/threads/${late.id}/entries`)).status === 200 &&
            (await owner.history(thread.id)).length >= 3,
    );
    assert.deepEqual(
        (await owner.history(thread.id)).map(({ payload }) => payload.type),
        ['signal.thread.created', 'signal.thread.renamed', 'signal.thread.status_changed'],
    );
    await assertAgreed(owner, house.id, [thread.id, late.id, gone.id], 'after the start');
    await owner.say(late.id, 'good');
});
