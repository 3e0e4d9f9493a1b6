// Threads: where they stand in lists, their parents and status, what they cost, and what their configuration is.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serveFor } from './lib/serve.mjs';
import { inParallel, randomFrom } from './lib/wait.mjs';

const STATUSES = ['open', 'idle', 'running', 'completed', 'failed', 'cancelled'];
const ENDS = ['completed', 'failed', 'cancelled'];

const idsOf = (threads) => threads.map(({ id }) => id);

async function listed(caller, houseId, query = '', limit) {
    return await caller.list(`/api/threads?house_id=${houseId}${query}`, 'threads', limit);
}

test('a list has the newest activity first: during a burst, after it, after a restart and a crash', async (t) => {
    const server = await serveFor(t);
    const { owner, house } = server;
    const seed = Date.now() % 1e9;
    const random = randomFrom(seed);
    const threads = await inParallel(
        4,
        Array.from({ length: 30 }, (_, i) => () => owner.createThread(house.id, { name: `t${i}` })),
    );
    const last = new Map([...threads.map(({ id, createdAt }) => [id, createdAt])]);
    const check = async (when) => {
        for (const limit of [7, 200]) {
            const all = await listed(owner, house.id, '', limit);
            assert.equal(new Set(idsOf(all)).size, 31, `${when}: each once (seed ${seed})`);
            const ranks = all.map(({ lastEntryTs, id }) => [lastEntryTs, id]);
            const sorted = [...ranks].sort((a, b) => b[0] - a[0] || (a[1] < b[1] ? 1 : -1));
            assert.deepEqual(ranks, sorted, `${when}: in order (seed ${seed})`);
            for (const { id, lastEntryTs } of all.filter(({ id: one }) => last.has(one))) {
                assert.equal(lastEntryTs, last.get(id), `${when}: ${id} (seed ${seed})`);
            }
        }
    };
    for (const { id } of threads) {
        const [created] = await owner.history(id);
        last.set(id, created.ts);
    }
    await check('new');
    const burst = async (count) => {
        for (let i = 0; i < count; i++) {
            const { id } = random.pick(threads);
            last.set(id, (await owner.say(id, `m${i}`)).ts);
        }
    };
    for (let i = 0; i < 5; i++) {
        await burst(10);
        await check('in the burst');
    }
    await server.restart();
    await check('after a restart');
    await burst(20);
    await server.crashAndRestart();
    await check('after a crash');
});

test('lists are chosen by parent, tag, status and pin', async (t) => {
    const { owner, house } = await serveFor(t);
    const bot = await owner.createAgent('Bot');
    await owner.ask(201, 'PUT', `/api/houses/${house.id}/members/${bot.agent.id}`, { role: 'member' });
    const other = await owner.createHouse('Other');
    await owner.createThread(other.id, { tags: ['a'] });
    const one = await owner.createThread(house.id, { tags: ['a', 'b', 'a'] });
    const two = await owner.createThread(one.id, { tags: ['b'], status: 'idle' });
    const dm = await owner.createThread(bot.agent.id, { houseId: house.id });
    assert.deepEqual(one.tags, ['a', 'b'], 'a tag is kept once');
    await owner.ask(200, 'PATCH', `/api/threads/${two.id}`, { pinned: true });
    const table = [
        ['', [dm.id, two.id, one.id, house.primaryThreadId]],
        ['&tag=a', [one.id]],
        ['&tag=b', [two.id, one.id]],
        ['&tag=c', []],
        ['&tag=%61', [one.id]],
        ['&status=idle', [two.id]],
        ['&status=open', [dm.id, one.id, house.primaryThreadId]],
        ['&status=running', []],
        ['&pinned=1', [two.id]],
        ['&pinned=0', [dm.id, two.id, one.id, house.primaryThreadId]],
        [`&parent_id=${one.id}`, [two.id]],
        [`&parent_id=${bot.agent.id}`, [dm.id]],
        [`&parent_id=${house.id}`, [one.id, house.primaryThreadId]],
        ['&tag=b&status=idle&pinned=1', [two.id]],
        ['&tag=b&status=open', [one.id]],
    ];
    for (const [query, wanted] of table) {
        for (const limit of [1, 200]) {
            assert.deepEqual(idsOf(await listed(owner, house.id, query, limit)), wanted, query);
        }
    }
    await owner.ask(200, 'PATCH', `/api/threads/${one.id}`, { tags: ['c'], name: 'Named', environmentId: 'env-1' });
    assert.deepEqual(idsOf(await listed(owner, house.id, '&tag=b')), [two.id]);
    assert.deepEqual(idsOf(await listed(owner, house.id, '&tag=c')), [one.id]);
    await owner.say(one.id, 'newest');
    assert.equal((await listed(owner, house.id))[0].id, one.id);
    const changed = await owner.ask(200, 'PATCH', `/api/threads/${one.id}`, {
        name: null,
        environmentId: null,
        tags: [],
    });
    assert.deepEqual([changed.name, changed.environmentId, changed.tags], [null, null, []]);
    const unpinned = await owner.ask(200, 'PATCH', `/api/threads/${two.id}`, { pinned: false });
    assert.equal(unpinned.pinnedAt, null);
    await owner.ask(204, 'DELETE', `/api/threads/${two.id}`);
    assert.deepEqual(idsOf(await listed(owner, house.id, '&tag=b')), []);
});

test('a walk through pages meets each thread once, whatever is posted meanwhile', async (t) => {
    const { owner, house } = await serveFor(t);
    const threads = await inParallel(
        4,
        Array.from({ length: 24 }, () => () => owner.createThread(house.id)),
    );
    const quiet = threads.slice(0, 12);
    const met = [];
    for (let cursor = ''; cursor !== null;) {
        const page = await owner.get(`/api/threads?house_id=${house.id}&limit=5${cursor}`);
        met.push(...idsOf(page.threads));
        await owner.say(threads[12 + (met.length % 12)].id, 'meanwhile');
        cursor = page.nextCursor === null ? null : `&cursor=${encodeURIComponent(page.nextCursor)}`;
    }
    for (const { id } of quiet) {
        assert.equal(met.filter((one) => one === id).length, 1, 'a thread in which nothing happens is met once');
    }
    assert.equal(new Set(met).size, met.length, 'none is met twice: they only move up, behind the walker');
});

test('a status moves as the table says, and each move is told', async (t) => {
    const { owner, house } = await serveFor(t);
    const legal = (from, to) =>
        from === to ||
        from === 'open' ||
        from === 'idle' ||
        (from === 'running' ? to !== 'open' : to === 'running' || to === 'open');
    for (const from of STATUSES) {
        for (const to of STATUSES) {
            const { id } = await owner.createThread(house.id);
            if (from !== 'open') {
                await owner.ask(200, 'PATCH', `/api/threads/${id}`, { status: from });
            }
            const before = (await owner.history(id)).length;
            const path = `/api/threads/${id}`;
            if (legal(from, to)) {
                assert.equal((await owner.ask(200, 'PATCH', path, { status: to })).status, to);
            } else {
                const error = await owner.refused(409, 'thread.illegal_status', 'PATCH', path, {
                    status: to,
                    name: 'No',
                });
                assert.match(error.message, new RegExp(`${from}.*${to}`));
                assert.equal((await owner.get(path)).name, null, 'nothing of it is done');
            }
            const signals = (await owner.history(id)).slice(before).map(({ payload }) => payload);
            const moved = legal(from, to) && from !== to;
            assert.deepEqual(
                signals,
                moved ? [{ type: 'signal.thread.status_changed', status: to }] : [],
                `${from} to ${to}`,
            );
        }
    }
});

test('of two who move a status at once, no move is lost and the log tells the order', async (t) => {
    const { owner, house } = await serveFor(t);
    const { id } = await owner.createThread(house.id, { status: 'idle' });
    const replies = await Promise.all(
        Array.from({ length: 12 }, (_, i) =>
            owner.call('PATCH', `/api/threads/${id}`, { status: ENDS.concat('running')[i % 4] }, { fresh: true }),
        ),
    );
    assert.ok(
        replies.every(({ status }) => [200, 409].includes(status)),
        replies.map(({ status }) => status).join(' '),
    );
    const moves = (await owner.history(id)).map(({ payload }) => payload.status).filter(Boolean);
    let at = 'idle';
    for (const status of moves) {
        assert.ok(
            at === 'idle' || at === 'running' || status === 'running',
            `${at} to ${status} in ${moves.join(' ')}`,
        );
        assert.notEqual(status, at);
        at = status;
    }
    assert.equal((await owner.get(`/api/threads/${id}`)).status, at);
});

test('a direct message is seeded so that its agent always answers', async (t) => {
    const server = await serveFor(t);
    const { owner, house } = server;
    const member = await owner.invite(house.id, 'Member');
    const bot = await owner.createAgent('Bot');
    await member.refused(403, 'auth.forbidden', 'POST', '/api/threads', { parentId: bot.agent.id });
    await owner.ask(201, 'PUT', `/api/houses/${house.id}/members/${bot.agent.id}`, { role: 'member' });
    const dm = await member.createThread(bot.agent.id, {
        config: { dispatch: { depthCap: 2, perAgent: { x: {} } }, mine: [1] },
    });
    assert.deepEqual(dm.parent, { kind: 'agent', id: bot.agent.id });
    assert.equal(dm.houseId, house.id);
    const path = `/api/threads/${dm.id}/config`;
    const { patch } = await member.get(`${path}?raw=1`);
    assert.deepEqual(patch, {
        dispatch: { perAgent: { [bot.agent.id]: { triggerMode: 'always' }, x: {} }, depthCap: 2 },
        mine: [1],
    });
    const of = async (id) => (await member.get(`${path}?agent_id=${id}`)).resolved.dispatch;
    assert.equal((await of(bot.agent.id)).triggerMode, 'always');
    assert.equal((await of(owner.agent.id)).triggerMode, 'mention');
    const other = await owner.createHouse('Other');
    for (const one of [member, bot]) {
        await owner.ask(201, 'PUT', `/api/houses/${other.id}/members/${one.agent.id}`, { role: 'member' });
    }
    const asked = await member.refused(400, 'validation.invalid_input', 'POST', '/api/threads', {
        parentId: bot.agent.id,
    });
    assert.equal(asked.context.field, 'houseId');
    assert.equal((await member.createThread(bot.agent.id, { houseId: other.id })).houseId, other.id);
    const third = await owner.createHouse('Third');
    await member.refused(403, 'auth.forbidden', 'POST', '/api/threads', {
        parentId: bot.agent.id,
        houseId: third.id,
    });
});

test('configuration is resolved from defaults, house, thread and agent', async (t) => {
    const { owner, house } = await serveFor(t);
    const { id } = await owner.createThread(house.id);
    const [ofHouse, ofThread] = [`/api/houses/${house.id}/config`, `/api/threads/${id}/config`];
    const defaults = await owner.get(ofThread);
    assert.deepEqual(
        defaults.chain.map(({ scope, id: one, patch }) => [
            scope,
            one,
            scope === 'default' || Object.keys(patch).length,
        ]),
        [
            ['default', null, true],
            ['house', house.id, 0],
            ['thread', id, 0],
        ],
    );
    assert.deepEqual(defaults.resolved, defaults.chain[0].patch);
    const first = {
        dispatch: { triggerMode: 'ambient', gateWindow: 3, perAgent: { a: { triggerMode: 'always' } } },
        extra: { list: [1, 2], keep: '\u00e9' },
    };
    assert.deepEqual((await owner.ask(200, 'PATCH', ofHouse, first)).patch, first);
    const second = { dispatch: { triggerMode: null, perAgent: { a: { gateWindow: 5 } } }, extra: { list: [3] } };
    await owner.ask(200, 'PATCH', ofThread, second);
    const { resolved } = await owner.get(ofThread);
    assert.equal(resolved.dispatch.triggerMode, 'mention', 'null brings the default back');
    assert.equal(resolved.dispatch.gateWindow, 3);
    assert.deepEqual(
        resolved.extra,
        { list: [3], keep: '\u00e9' },
        'arrays replace, objects merge, unknown keys are kept',
    );
    const forAgent = await owner.get(`${ofThread}?agent_id=a`);
    assert.equal(forAgent.resolved.dispatch.triggerMode, 'always');
    assert.equal(forAgent.resolved.dispatch.gateWindow, 5);
    assert.equal(forAgent.chain.length, 4);
    assert.deepEqual(forAgent.chain[3], { scope: 'agent', id: 'a', patch: { triggerMode: 'always', gateWindow: 5 } });
    assert.deepEqual((await owner.get(`${ofHouse}?agent_id=a`)).chain.slice(2), [
        { scope: 'agent', id: 'a', patch: { triggerMode: 'always' } },
    ]);
    assert.deepEqual((await owner.get(`${ofThread}?agent_id=b`)).chain[3], { scope: 'agent', id: 'b', patch: {} });
    assert.equal((await owner.get(ofHouse)).resolved.dispatch.triggerMode, 'ambient');
    const merged = await owner.ask(200, 'PATCH', ofThread, { dispatch: { depthCap: 1 }, extra: null });
    assert.deepEqual(merged.patch, { dispatch: { ...second.dispatch, depthCap: 1 }, extra: null });
    await owner.ask(204, 'DELETE', ofThread);
    await owner.ask(204, 'DELETE', ofHouse);
    await owner.ask(204, 'DELETE', ofHouse);
    assert.deepEqual(await owner.get(ofThread), defaults);
});

test('patches that come at once are all merged', async (t) => {
    const { owner, house } = await serveFor(t);
    const path = `/api/houses/${house.id}/config`;
    const replies = await Promise.all(
        Array.from({ length: 16 }, (_, i) => owner.call('PATCH', path, { [`key${i}`]: i }, { fresh: true })),
    );
    const { patch } = await owner.get(`${path}?raw=1`);
    for (const [i, reply] of replies.entries()) {
        assert.ok([200, 503].includes(reply.status), reply.text);
        assert.equal(patch[`key${i}`], reply.status === 200 ? i : undefined, `patch ${i}: ${reply.status}`);
    }
});

test('a thread is renamed, and deleted with its stream, in the order of the effects', async (t) => {
    const { owner, house } = await serveFor(t);
    const member = await owner.invite(house.id, 'Member');
    const thread = await member.createThread(house.id, { name: 'First' });
    await member.ask(200, 'PATCH', `/api/threads/${thread.id}`, { name: 'Second', status: 'running' });
    await member.say(thread.id, 'between');
    await owner.ask(200, 'PATCH', `/api/threads/${thread.id}`, { name: null });
    await owner.ask(200, 'PATCH', `/api/threads/${thread.id}`, { status: 'idle' });
    const history = await member.history(thread.id);
    assert.deepEqual(
        history.map(({ authorId, payload: { type, name, status, text } }) => [
            type,
            name ?? status ?? text,
            authorId,
        ]),
        [
            ['signal.thread.created', undefined, member.agent.id],
            ['signal.thread.renamed', 'Second', member.agent.id],
            ['signal.thread.status_changed', 'running', member.agent.id],
            ['chat', 'between', member.agent.id],
            ['signal.thread.renamed', '', owner.agent.id],
            ['signal.thread.status_changed', 'idle', owner.agent.id],
        ],
    );
    assert.ok(history.every(({ ts }, i) => i === 0 || ts >= history[i - 1].ts));
    const child = await member.createThread(thread.id);
    await owner.ask(204, 'DELETE', `/api/threads/${thread.id}`);
    await owner.refused(404, 'record.not_found', 'GET', `/api/threads/${thread.id}/stream?offset=-1`);
    await owner.refused(404, 'record.not_found', 'DELETE', `/api/threads/${thread.id}`);
    await owner.refused(404, 'record.not_found', 'POST', '/api/threads', { parentId: thread.id });
    assert.deepEqual((await owner.get(`/api/threads/${child.id}`)).parent, { kind: 'thread', id: thread.id });
    await owner.refused(409, 'thread.primary', 'DELETE', `/api/threads/${house.primaryThreadId}`);
});

test('a page of threads ends by its bytes, too, and the next one begins right there', async (t) => {
    const { owner, house } = await serveFor(t);
    const tags = Array.from({ length: 32 }, (_, i) => `${i}-`.padEnd(60, 't'));
    const made = await inParallel(4, Array.from({ length: 180 }, () => () => owner.createThread(house.id, { tags })));
    const path = `/api/threads?house_id=${house.id}&limit=200`;
    const page = await owner.call('GET', path);
    assert.ok(page.body.length > 256 << 10 && page.body.length < 260 << 10, `${page.body.length} bytes`);
    const all = idsOf(await listed(owner, house.id));
    assert.deepEqual([...all].sort(), [...idsOf(made), house.primaryThreadId].sort(), 'each once');
});
