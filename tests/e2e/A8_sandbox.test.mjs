// Sandboxes: tokens that let one write to one thread as one agent for a while; batches, the status that they move, and
// what they spend.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Caller, bearer, serveFor } from './lib/serve.mjs';
import { eventually } from './lib/wait.mjs';

const base64 = (value) =>
    Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
const chunk = (delta) => ({ type: 'pi.chunk', contentIndex: 0, block: 'text', delta });
const claimsOf = (token) => JSON.parse(Buffer.from(token.split('.')[1], 'base64url'));
const status = (to) => ({ type: 'signal.thread.status_changed', status: to });

function sign(key, claims, header = { alg: 'HS256', typ: 'JWT' }, hash = 'sha256') {
    const text = `${base64(header)}.${base64(claims)}`;
    return `${text}.${createHmac(hash, key).update(text).digest('base64url')}`;
}

async function makeWorld(t, flags, options) {
    const server = await serveFor(t, flags, options);
    const { owner, house } = server;
    const bot = await owner.createAgent('Bot');
    await owner.ask(201, 'PUT', `/api/houses/${house.id}/members/${bot.agent.id}`, { role: 'member' });
    const thread = await owner.createThread(house.id);
    const stream = `arbe-thread-${thread.id}`;
    return { server, owner, house, bot, thread, stream, path: `/api/stream/${stream}` };
}

test('a token says for whom, where, what and how long', async (t) => {
    const { server, owner, bot, thread, stream } = await makeWorld(t);
    const path = `/api/threads/${thread.id}/sandbox-tokens`;
    const made = await bot.ask(201, 'POST', path, { agentId: bot.agent.id });
    assert.equal(made.stream, stream);
    const claims = claimsOf(made.token);
    assert.equal(JSON.parse(Buffer.from(made.token.split('.')[0], 'base64url')).alg, 'HS256');
    assert.deepEqual(
        [claims.iss, claims.aud, claims.sub, claims.stream, claims.exp - claims.iat, claims.exp * 1000],
        ['arbe', 'sandbox', bot.agent.id, stream, 3600, made.expiresAt],
    );
    assert.ok(!claims.types.includes('chat'), 'chat where it is listed only');
    assert.ok(
        ['pi.chunk', 'signal.files.added', 'signal.environment.ready', 'signal.thread.pi_failed'].every((one) =>
            claims.types.includes(one),
        ),
    );
    const few = claimsOf(
        (await owner.ask(201, 'POST', path, { agentId: bot.agent.id, types: ['chat', 'pi.*'], expiresIn: 86400 }))
            .token,
    );
    assert.deepEqual(few.types, ['chat', 'pi.chunk', 'pi.assistant', 'pi.tool_result', 'pi.compaction']);
    assert.equal(few.exp - few.iat, 86400);
    for (const type of [
        'signal.house.created',
        'signal.entry.deleted',
        'note',
        '*',
        'pi',
        'signal.dispatch.started',
    ]) {
        const error = await owner.refused(400, 'validation.invalid_input', 'POST', path, {
            agentId: bot.agent.id,
            types: ['chat', type],
        });
        assert.equal(error.context.field, 'types[1]', type);
    }
    const stranger = await owner.createAgent('Stranger');
    await owner.refused(403, 'auth.forbidden', 'POST', path, { agentId: stranger.agent.id });
    await owner.refused(404, 'record.not_found', 'POST', path, { agentId: thread.id });
    assert.ok(server.running);
});

test('what is not such a token is refused, and nothing is stored', async (t) => {
    const { server, owner, house, bot, thread, stream, path } = await makeWorld(t);
    const key = readFileSync(join(server.dir, 'keys/sandbox.key'));
    const now = Math.floor(Date.now() / 1000);
    const minted = (await bot.ask(201, 'POST', `/api/threads/${thread.id}/sandbox-tokens`, { agentId: bot.agent.id }))
        .token;
    const good = {
        iss: 'arbe',
        aud: 'sandbox',
        sub: bot.agent.id,
        stream,
        types: ['pi.chunk'],
        epoch: claimsOf(minted).epoch,
        iat: now,
        nbf: now,
        exp: now + 600,
    };
    const without = (name) => Object.fromEntries(Object.entries(good).filter(([one]) => one !== name));
    const body = { payload: chunk('x') };
    await bearer(server, sign(key, good)).ask(201, 'POST', path, body);
    const parts = minted.split('.');
    const flip = (text, at) => text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1);
    const bad = {
        expired: sign(key, { ...good, iat: now - 7200, nbf: now - 7200, exp: now - 3600 }),
        'not yet': sign(key, { ...good, nbf: now + 3600 }),
        'of another key': sign(Buffer.alloc(32, 1), good),
        'alg none': `${base64({ alg: 'none', typ: 'JWT' })}.${base64(good)}.`,
        'alg none with the MAC of a good one': `${base64({ alg: 'none' })}.${parts[1]}.${parts[2]}`,
        'alg None, signed': sign(key, good, { alg: 'none', typ: 'JWT' }),
        HS512: sign(key, good, { alg: 'HS512', typ: 'JWT' }, 'sha512'),
        'HS256 called HS512': sign(key, good, { alg: 'HS512', typ: 'JWT' }),
        'for another issuer': sign(key, { ...good, iss: 'elsewhere' }),
        'for another audience': sign(key, { ...good, aud: 'arbe' }),
        'claims that are tampered with': [parts[0], flip(parts[1], 20), parts[2]].join('.'),
        'a MAC that is tampered with': [parts[0], parts[1], flip(parts[2], 3)].join('.'),
        'a head that is tampered with': [flip(parts[0], 5), parts[1], parts[2]].join('.'),
        'a MAC that is cut': minted.slice(0, -1),
        'two parts': parts.slice(0, 2).join('.'),
        'four parts': `${minted}.x`,
        'types that are a text': sign(key, { ...good, types: 'pi.chunk' }),
        'of another epoch': sign(key, { ...good, epoch: good.epoch + 1 }),
        'times that are texts': sign(key, { ...good, exp: String(now + 600) }),
        'claims that are an array': sign(key, '[]'),
        'claims that are no JSON': sign(key, 'x'),
        nothing: '',
        ...Object.fromEntries(
            ['iss', 'aud', 'sub', 'stream', 'types', 'epoch', 'exp', 'nbf'].map((name) => [
                `without ${name}`,
                sign(key, without(name)),
            ]),
        ),
    };
    for (const [what, token] of Object.entries(bad)) {
        const reply = await bearer(server, token).call('POST', path, body);
        assert.equal(reply.status, 401, `${what}: ${reply.text}`);
        assert.equal(reply.json().error.code, 'auth.unauthenticated', what);
        assert.match(reply.json().error.message, /\w \w+ \w/, what);
    }
    const other = await owner.createThread(house.id);
    const sandbox = bearer(server, minted);
    await sandbox.refused(403, 'auth.forbidden', 'POST', `/api/stream/arbe-thread-${other.id}`, body);
    await sandbox.refused(403, 'auth.forbidden', 'POST', '/api/stream/something', body);
    const type = await sandbox.refused(403, 'auth.forbidden', 'POST', path, { payload: { type: 'chat', text: 'x' } });
    assert.equal(type.context.field, 'payload.type');
    for (const payload of [
        { type: 'signal.house.created' },
        { type: 'signal.entry.deleted', entryId: 'x' },
        { type: 'signal.thread.created' },
    ]) {
        await sandbox.refused(403, 'auth.forbidden', 'POST', path, { payload });
    }
    const author = await sandbox.refused(403, 'auth.forbidden', 'POST', path, { ...body, authorId: owner.agent.id });
    assert.equal(author.context.field, 'authorId');
    const talker = await bot.mint(thread.id, bot.agent.id, { types: ['chat'] });
    await talker.ask(201, 'POST', path, { payload: { type: 'chat', text: 'as the bot' }, authorId: bot.agent.id });
    await talker.refused(403, 'auth.forbidden', 'POST', path, body);
    for (const caller of [owner, bot, new Caller(server)]) {
        await caller.refused(401, 'auth.unauthenticated', 'POST', path, body);
    }
    const history = await owner.history(thread.id);
    assert.deepEqual(
        history.slice(1).map(({ authorId, payload }) => [authorId, payload.type]),
        [
            [bot.agent.id, 'pi.chunk'],
            [bot.agent.id, 'chat'],
        ],
    );
    assert.equal((await owner.history(other.id)).length, 1);
});

test("a token ends with its time, its agent's membership, its agent and its thread", async (t) => {
    const { server, owner, house, bot, thread, path } = await makeWorld(t);
    const body = { payload: chunk('x') };
    const short = await bot.ask(201, 'POST', `/api/threads/${thread.id}/sandbox-tokens`, {
        agentId: bot.agent.id,
        expiresIn: 1,
    });
    const early = await bot.mint(thread.id);
    await eventually('the time of the token is over', () => Date.now() > short.expiresAt + 1000);
    await bearer(server, short.token).refused(401, 'auth.unauthenticated', 'POST', path, body);
    await early.ask(201, 'POST', path, body);
    const members = `/api/houses/${house.id}/members/${bot.agent.id}`;
    await owner.ask(204, 'DELETE', members);
    await early.refused(403, 'auth.forbidden', 'POST', path, body);
    await owner.ask(201, 'PUT', members, { role: 'member' });
    await early.refused(401, 'auth.unauthenticated', 'POST', path, body);
    const sandbox = await bot.mint(thread.id);
    await server.crashAndRestart(); // the key is kept
    await sandbox.ask(201, 'POST', path, body);
    await owner.ask(200, 'PUT', members, { role: 'owner' });
    await sandbox.ask(201, 'POST', path, body);
    const { agent } = await owner.createAgent('Short-lived');
    await owner.ask(201, 'PUT', `/api/houses/${house.id}/members/${agent.id}`, { role: 'member' });
    const orphan = await owner.mint(thread.id, agent.id);
    await orphan.ask(201, 'POST', path, body);
    await owner.ask(204, 'DELETE', `/api/agents/${agent.id}`);
    await orphan.refused(403, 'auth.forbidden', 'POST', path, body);
    await owner.ask(204, 'DELETE', `/api/threads/${thread.id}`);
    await sandbox.refused(404, 'record.not_found', 'POST', path, body);
});

test('the tokens of a member can be ended, and new ones are good at once', async (t) => {
    const { server, owner, house, bot, thread, path } = await makeWorld(t);
    const body = { payload: chunk('x') };
    const route = `/api/houses/${house.id}/members/${bot.agent.id}/sandbox-tokens`;
    const elsewhere = await owner.createThread(house.id);
    const second = await owner.createHouse('Another');
    await owner.ask(201, 'PUT', `/api/houses/${second.id}/members/${bot.agent.id}`, { role: 'member' });
    const inSecond = await owner.createThread(second.id);
    const kept = [
        [await owner.mint(thread.id), path],
        [await bot.mint(inSecond.id), `/api/stream/arbe-thread-${inSecond.id}`],
    ];
    const guest = await owner.invite(house.id, 'Guest');
    await guest.refused(403, 'auth.forbidden', 'DELETE', route);
    await owner.refused(404, 'record.not_found', 'DELETE', route.replace(bot.agent.id, thread.id));
    const stranger = await owner.createAgent('Stranger');
    await owner.refused(404, 'record.not_found', 'DELETE', route.replace(bot.agent.id, stranger.agent.id));
    // By an owner who made it, and by itself; what is minted in between, within one second, is told apart.
    for (const who of [owner, bot, bot]) {
        const ended = [
            [await bot.mint(thread.id), path],
            [await owner.mint(elsewhere.id, bot.agent.id), `/api/stream/arbe-thread-${elsewhere.id}`],
        ];
        for (const [sandbox, where] of ended) {
            await sandbox.ask(201, 'POST', where, body);
        }
        await who.ask(204, 'DELETE', route);
        for (const [sandbox, where] of ended) {
            const error = await sandbox.refused(401, 'auth.unauthenticated', 'POST', where, body);
            assert.match(error.message, /was ended/);
            assert.match(error.suggestion, /sandbox-tokens/);
        }
        await (await bot.mint(thread.id)).ask(201, 'POST', path, body);
    }
    const last = await bot.mint(thread.id);
    await bot.ask(204, 'DELETE', route);
    await server.crashAndRestart();
    await last.refused(401, 'auth.unauthenticated', 'POST', path, body);
    for (const [sandbox, where] of kept) {
        await sandbox.ask(201, 'POST', where, body);
    }
});

test('a batch is stored whole and in order, or not at all', async (t) => {
    const { server, owner, bot, thread, path } = await makeWorld(t);
    const sandbox = await bot.mint(thread.id);
    const batch = Array.from({ length: 1000 }, (_, i) => ({ id: `b-${i}`, payload: chunk(String(i)) }));
    const answer = await sandbox.ask(201, 'POST', path, batch);
    assert.deepEqual([answer.ids, answer.stored, answer.duplicates], [batch.map(({ id }) => id), 1000, 0]);
    assert.deepEqual(
        (await owner.history(thread.id)).slice(1).map(({ id }) => id),
        answer.ids,
    );
    const bad = [
        [
            [...batch.slice(0, 3).map((one) => ({ ...one, id: undefined })), { payload: { type: 'pi.chunk' } }],
            400,
            'validation.invalid_input',
            '[3].payload.contentIndex',
        ],
        [
            [{ payload: chunk('x') }, { payload: { type: 'chat', text: 'x' } }],
            403,
            'auth.forbidden',
            '[1].payload.type',
        ],
        [
            [{ payload: chunk('x') }, { payload: chunk('x'), authorId: owner.agent.id }],
            403,
            'auth.forbidden',
            '[1].authorId',
        ],
        [[{ payload: chunk('x') }, 7], 400, 'validation.invalid_input', undefined],
        [
            [{ payload: chunk('x') }, { payload: status('nothing') }],
            400,
            'validation.invalid_input',
            '[1].payload.status',
        ],
        [
            [{ payload: chunk('x') }, { payload: status('completed') }, { payload: status('idle') }],
            409,
            'thread.illegal_status',
            '[2].payload.status',
        ],
        [[], 400, 'validation.invalid_input', undefined],
        [Array.from({ length: 1001 }, () => ({ payload: chunk('x') })), 400, 'validation.invalid_input', undefined],
    ];
    for (const [entries, code, name, field] of bad) {
        const error = await sandbox.refused(code, name, 'POST', path, entries);
        assert.equal(field === undefined ? undefined : error.context?.field, field, error.message);
    }
    assert.equal((await owner.history(thread.id)).length, 1001, 'nothing of these was stored');
    assert.equal((await owner.get(`/api/threads/${thread.id}`)).status, 'open', 'and nothing moved');
    assert.ok(server.running);
});

test('what a sandbox repeats is stored once, also across a crash and among many at once', async (t) => {
    const { server, owner, bot, thread, path } = await makeWorld(t);
    const sandbox = await bot.mint(thread.id);
    const batch = (from, count) =>
        Array.from({ length: count }, (_, i) => ({ id: `e-${from + i}`, payload: chunk(String(from + i)) }));
    assert.equal((await sandbox.ask(201, 'POST', path, batch(0, 10))).stored, 10);
    const overlap = await sandbox.ask(201, 'POST', path, [...batch(5, 10), ...batch(12, 2)]);
    assert.deepEqual([overlap.stored, overlap.duplicates], [5, 7]);
    const replies = await Promise.all(
        Array.from({ length: 16 }, (_, n) =>
            sandbox.call('POST', path, batch(100 + (n % 4) * 5, 10), { fresh: true }),
        ),
    );
    assert.ok(
        replies.every((reply) => reply.status === 201),
        replies.map((reply) => reply.text).join('\n'),
    );
    assert.equal(
        replies.reduce((sum, reply) => sum + reply.json().stored, 0),
        25,
        'each was new to one of them',
    );
    await server.crashAndRestart();
    const again = await sandbox.ask(201, 'POST', path, batch(0, 15));
    assert.deepEqual([again.stored, again.duplicates], [0, 15]);
    const ids = (await owner.history(thread.id)).map(({ id }) => id);
    assert.equal(ids.length, 1 + 15 + 25);
    assert.equal(new Set(ids).size, ids.length);
});

test('a batch that moves the status is repeated without harm', async (t) => {
    const { server, owner, bot, thread, path } = await makeWorld(t);
    const sandbox = await bot.mint(thread.id);
    const begin = [
        { id: 'begin', payload: status('running') },
        { id: 'said', payload: chunk('x') },
    ];
    const end = [{ id: 'end', payload: status('completed') }];
    await sandbox.ask(201, 'POST', path, begin);
    await sandbox.ask(201, 'POST', path, begin);
    assert.equal((await owner.get(`/api/threads/${thread.id}`)).status, 'running');
    await sandbox.ask(201, 'POST', path, end);
    await sandbox.ask(201, 'POST', path, end);
    // What was moved once is not moved again by an answer that was lost.
    const late = await sandbox.ask(201, 'POST', path, begin);
    assert.deepEqual([late.ids, late.stored, late.duplicates], [['begin', 'said'], 0, 2]);
    assert.equal((await owner.get(`/api/threads/${thread.id}`)).status, 'completed');
    await server.crashAndRestart();
    assert.equal((await owner.get(`/api/threads/${thread.id}`)).status, 'completed');
    assert.deepEqual(
        (await owner.history(thread.id)).slice(1).map(({ id }) => id),
        ['begin', 'said', 'end'],
    );
});

test('signals move the status, by the table, and the log agrees with the record', async (t) => {
    const { owner, house, bot } = await makeWorld(t);
    const table = [
        [[status('running')], 'running'],
        [[status('running'), status('idle')], 'idle'],
        [[status('running'), { type: 'signal.thread.pi_failed', reason: 'out of tokens' }], 'failed'],
        [[{ type: 'signal.thread.pi_session_orphaned' }], 'failed'],
        [[status('completed'), status('running'), status('cancelled')], 'cancelled'],
        [[chunk('x')], 'open'],
        [[status('open')], 'open'],
        [[status('completed'), { type: 'signal.thread.pi_failed', reason: 'late' }], undefined],
    ];
    for (const [payloads, wanted] of table) {
        const { id } = await owner.createThread(house.id);
        const sandbox = await bot.mint(id);
        const body = payloads.map((payload) => ({ payload }));
        if (wanted === undefined) {
            await sandbox.refused(409, 'thread.illegal_status', 'POST', `/api/stream/arbe-thread-${id}`, body);
        } else {
            await sandbox.ask(201, 'POST', `/api/stream/arbe-thread-${id}`, body);
        }
        assert.equal((await owner.get(`/api/threads/${id}`)).status, wanted ?? 'open');
        const stored = (await owner.history(id)).slice(1);
        assert.deepEqual(
            stored.map(({ payload }) => payload),
            wanted === undefined ? [] : payloads,
        );
        assert.ok(
            stored.every(({ authorId }) => authorId === bot.agent.id),
            'stamped with the agent',
        );
    }
});

test('what was spent is counted once for each entry, by agent and by model', async (t) => {
    const { server, owner, house, bot, thread, path } = await makeWorld(t);
    const sandbox = await bot.mint(thread.id);
    const own = await owner.mint(thread.id);
    const assistant = (model, usage, more = {}) => ({
        type: 'pi.assistant',
        content: [],
        provider: 'p',
        model,
        stopReason: 'stop',
        usage,
        ...more,
    });
    const entries = [
        {
            id: 'u1',
            payload: assistant('m', {
                input: 10,
                output: 5,
                cacheRead: 3,
                cacheWrite: 2,
                totalTokens: 20,
                cost: { total: 0.25 },
            }),
        },
        {
            id: 'u2',
            payload: assistant(
                'n',
                { input: 1, output: 1 },
                { invocationId: 'trace', durationMs: 'bad', message: -1 },
            ),
        },
        {
            id: 'u3',
            payload: {
                type: 'pi.compaction',
                summary: 's',
                tokensBefore: 9,
                usage: { input: 100, output: 0, cost: { total: 1.5 } },
            },
        },
    ];
    await sandbox.ask(201, 'POST', path, entries);
    await sandbox.ask(201, 'POST', path, entries);
    await own.ask(201, 'POST', path, { id: 'u4', payload: assistant('m', { input: 7, output: 7 }) });
    await own.refused(400, 'validation.invalid_input', 'POST', path, {
        payload: assistant('m', { input: -1, output: 7 }),
    });
    await sandbox.ask(201, 'POST', path, [
        { id: 'u5', payload: status('running') },
        { id: 'u6', payload: assistant('m', { input: 1, output: 0 }) },
    ]);
    const check = async () => {
        const sum = await owner.get(`/api/threads/${thread.id}/usage`);
        assert.deepEqual(sum.total, {
            inputTokens: 119,
            outputTokens: 13,
            cacheReadTokens: 3,
            cacheWriteTokens: 2,
            costUsd: 1.75,
            events: 5,
        });
        assert.deepEqual(
            sum.byAgent.map(({ agentId, events }) => [agentId, events]).sort(),
            [
                [bot.agent.id, 4],
                [owner.agent.id, 1],
            ].sort(),
        );
        assert.deepEqual(
            sum.byModel.map(({ model, inputTokens }) => [model, inputTokens]).sort(),
            [
                [null, 100],
                ['p/m', 18],
                ['p/n', 1],
            ].sort(),
        );
        assert.deepEqual(await owner.get(`/api/houses/${house.id}/usage`), sum);
        const empty = await owner.get(`/api/threads/${house.primaryThreadId}/usage`);
        assert.deepEqual([empty.total.events, empty.byAgent, empty.byModel], [0, [], []]);
    };
    await check();
    await server.crashAndRestart();
    await check();
    await sandbox.ask(201, 'POST', path, entries);
    await check();
    const kept = (await owner.history(thread.id)).find(({ id }) => id === 'u2').payload;
    assert.deepEqual(
        kept,
        assistant('n', { input: 1, output: 1 }, { invocationId: 'trace' }),
        'bad trace fields are left out',
    );
});
