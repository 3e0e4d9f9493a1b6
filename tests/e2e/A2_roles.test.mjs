// Each route by each kind of caller: who may, and what the others are told.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertRefused, nobody, serveFor } from './lib/serve.mjs';
import { DOCUMENT, METHODS, operationOf } from './lib/openapi.mjs';

const ROLES = ['owner', 'member', 'outsider', 'bot', 'sandbox', 'nobody', 'page', 'foreignPage'];
const CODES = {
    401: 'auth.unauthenticated',
    403: 'auth.forbidden',
    404: 'record.not_found',
    409: 'house.last_owner',
};

// A house with an owner, a member, a bot that the member made, and somebody who has nothing to do with it. The member
// also comes by a page's session; foreignPage is a page of another origin with that session's cookie.
async function makeWorld(t) {
    const server = await serveFor(t, ['--sse-lifetime', '20ms']); // the board's stream ends, too
    const { owner, house } = server;
    const elsewhere = await owner.createHouse('Elsewhere');
    const member = await owner.invite(house.id, 'Member');
    const outsider = await owner.invite(elsewhere.id, 'Outsider');
    const bot = await member.createAgent('Bot');
    await owner.ask(201, 'PUT', `/api/houses/${house.id}/members/${bot.agent.id}`, { role: 'member' });
    const thread = await owner.createThread(house.id, { name: 'Thread' });
    const world = {
        server,
        house,
        thread,
        owner,
        member,
        outsider,
        bot,
        sandbox: await bot.mint(thread.id, bot.agent.id),
        nobody: nobody(server),
        page: await member.signIn(),
        foreignPage: await member.signIn({ origin: 'http://elsewhere.test' }),
    };
    return world;
}

const houseOf = async (w) => {
    const house = await w.owner.createHouse('Other');
    for (const one of [w.member, w.bot]) {
        await w.owner.ask(201, 'PUT', `/api/houses/${house.id}/members/${one.agent.id}`, { role: 'member' });
    }
    return { house: house.id };
};
const withStranger = async (w) => {
    const target = await houseOf(w);
    const { agent } = await w.owner.createAgent('Stranger');
    return { ...target, agent: agent.id };
};
const withGuest = async (w) => {
    const target = await withStranger(w);
    await w.owner.ask(201, 'PUT', `/api/houses/${target.house}/members/${target.agent}`, { role: 'member' });
    return target;
};
const botOf = async (w) => {
    const one = await w.member.createAgent('Another');
    await w.owner.ask(201, 'PUT', `/api/houses/${w.house.id}/members/${one.agent.id}`, { role: 'member' });
    const { keys } = await one.get('/api/agents/keys');
    return { agent: one.agent.id, key: keys[0].id };
};
const threadOf = async (w) => ({ thread: (await w.owner.createThread(w.house.id)).id });
const entryOf = async (w) => ({ entry: (await w.member.say(w.thread.id, 'to be deleted')).id });
const inviteOf = async (w) => {
    const house = await w.owner.createHouse('New');
    return { token: (await w.owner.ask(201, 'POST', `/api/houses/${house.id}/invites`, {})).token };
};
const fixed = async () => ({});

// What is answered to whom, in the order of ROLES.
const anyAgent = (good) => [good, good, good, good, 401, 401, good, 'origin'];
const members = (good) => [good, good, 403, good, 401, 401, good, 'origin'];
const owners = (good) => [good, 403, 403, 403, 401, 401, 403, 'origin'];
const makers = (good) => [403, good, 403, 403, 401, 401, good, 'origin'];
const unasked = (good) => [...Array(7).fill(good), 'origin']; // what is shown is not looked at
const everybody = (good) => [good, good, good, good, 401, good, good, 'origin'];

const chat = { payload: { type: 'chat', text: 'x' } };
const chunk = { payload: { type: 'pi.chunk', contentIndex: 0, block: 'text', delta: 'x' } };
const H = (w, target) => target.house ?? w.house.id;
const T = (w, target) => target.thread ?? w.thread.id;

const TABLE = [
    ['POST', () => '/api/session', (w) => ({ key: w.member.key }), fixed, unasked(200)],
    ['GET', () => '/api/me', undefined, fixed, anyAgent(200)],
    ['GET', () => '/api/houses', undefined, fixed, anyAgent(200)],
    ['POST', () => '/api/houses', () => ({ name: 'Mine' }), fixed, anyAgent(201)],
    ['GET', (w) => `/api/houses/${w.house.id}`, undefined, fixed, members(200)],
    ['PATCH', (w, target) => `/api/houses/${H(w, target)}`, () => ({ name: 'Renamed' }), houseOf, owners(200)],
    ['DELETE', (w, target) => `/api/houses/${H(w, target)}`, undefined, houseOf, owners(204)],
    ['GET', (w) => `/api/houses/${w.house.id}/members`, undefined, fixed, members(200)],
    [
        'PUT',
        (w, target) => `/api/houses/${target.house}/members/${target.agent}`,
        () => ({ role: 'member' }),
        withStranger,
        owners(201),
    ],
    [
        'PUT',
        (w, target) => `/api/houses/${target.house}/members/${target.agent}`,
        () => ({ role: 'owner' }),
        withGuest,
        owners(200),
    ],
    [
        'DELETE',
        (w, target) => `/api/houses/${target.house}/members/${target.agent}`,
        undefined,
        withGuest,
        owners(204),
    ],
    [
        'DELETE',
        (w, target) => `/api/houses/${target.house}/members/${target.agent}/sandbox-tokens`,
        undefined,
        withGuest,
        owners(204),
    ],
    ['POST', (w) => `/api/houses/${w.house.id}/invites`, () => ({}), fixed, owners(201)],
    [
        'POST',
        (w, target) => `/api/invites/${target.token}`,
        (w, role) => (role === 'nobody' ? { name: 'New' } : {}),
        inviteOf,
        [409, 200, 200, 200, 401, 201, 200, 'origin'],
        { 409: 'record.conflict' },
    ],
    ['GET', (w) => `/api/houses/${w.house.id}/usage`, undefined, fixed, members(200)],
    ['GET', () => '/api/agents', undefined, fixed, anyAgent(200)],
    ['GET', (w) => `/api/agents?house_id=${w.house.id}`, undefined, fixed, members(200)],
    ['POST', () => '/api/agents', () => ({ name: 'New Bot' }), fixed, anyAgent(201)],
    ['GET', (w) => `/api/agents/${w.bot.agent.id}`, undefined, fixed, members(200)],
    ['PATCH', (w, target) => `/api/agents/${target.agent}`, () => ({ name: 'Renamed' }), botOf, makers(200)],
    ['DELETE', (w, target) => `/api/agents/${target.agent}`, undefined, botOf, makers(204)],
    [
        'GET',
        (w) => `/api/agents/keys?agent_id=${w.bot.agent.id}`,
        undefined,
        fixed,
        [403, 200, 403, 200, 401, 401, 200, 'origin'],
    ],
    ['GET', () => '/api/agents/keys', undefined, fixed, anyAgent(200)],
    ['POST', () => '/api/agents/keys', () => ({}), fixed, anyAgent(201)],
    [
        'POST',
        () => '/api/agents/keys',
        (w) => ({ agentId: w.bot.agent.id }),
        fixed,
        [403, 201, 403, 201, 401, 401, 201, 'origin'],
    ],
    ['DELETE', (w, target) => `/api/agents/keys/${target.key}`, undefined, botOf, makers(204)],
    ['GET', (w) => `/api/threads?house_id=${w.house.id}`, undefined, fixed, members(200)],
    ['POST', () => '/api/threads', (w) => ({ parentId: w.house.id }), fixed, members(201)],
    ['POST', () => '/api/threads', (w) => ({ parentId: w.thread.id }), fixed, members(201)],
    ['POST', () => '/api/threads', (w) => ({ parentId: w.bot.agent.id, houseId: w.house.id }), fixed, members(201)],
    ['GET', (w) => `/api/threads/${w.thread.id}`, undefined, fixed, members(200)],
    ['PATCH', (w) => `/api/threads/${w.thread.id}`, () => ({ pinned: true }), fixed, members(200)],
    ['DELETE', (w, target) => `/api/threads/${target.thread}`, undefined, threadOf, owners(204)],
    ['GET', (w) => `/api/threads/${w.thread.id}/agents`, undefined, fixed, members(200)],
    ['GET', (w) => `/api/threads/${w.thread.id}/usage`, undefined, fixed, members(200)],
    ...['houses', 'threads'].flatMap((kind) => [
        ['GET', (w) => `/api/${kind}/${w[kind.slice(0, -1)].id}/config`, undefined, fixed, members(200)],
        [
            'PATCH',
            (w) => `/api/${kind}/${w[kind.slice(0, -1)].id}/config`,
            () => ({ flags: { a: 1 } }),
            fixed,
            members(200),
        ],
        ['DELETE', (w) => `/api/${kind}/${w[kind.slice(0, -1)].id}/config`, undefined, fixed, members(204)],
    ]),
    ['GET', (w) => `/api/threads/${w.thread.id}/entries`, undefined, fixed, members(200)],
    ['POST', (w) => `/api/threads/${w.thread.id}/entries`, () => chat, fixed, members(201)],
    [
        'DELETE',
        (w, target) => `/api/threads/${w.thread.id}/entries/${target.entry}`,
        undefined,
        entryOf,
        [201, 201, 403, 403, 401, 401, 201, 'origin'],
    ],
    ['GET', (w) => `/api/threads/${w.thread.id}/stream?offset=-1`, undefined, fixed, members(200)],
    ['HEAD', (w) => `/api/threads/${w.thread.id}/stream`, undefined, fixed, members(200)],
    [
        'POST',
        (w) => `/api/threads/${w.thread.id}/sandbox-tokens`,
        (w) => ({ agentId: w.bot.agent.id }),
        fixed,
        members(201),
    ],
    [
        'POST',
        (w) => `/api/threads/${w.thread.id}/sandbox-tokens`,
        (w) => ({ agentId: w.owner.agent.id }),
        fixed,
        owners(201),
    ],
    [
        'POST',
        (w) => `/api/stream/arbe-thread-${w.thread.id}`,
        () => chunk,
        fixed,
        [401, 401, 401, 401, 201, 401, 401, 401],
    ],
    ['GET', () => '/api/board', undefined, fixed, anyAgent(200)],
    ['GET', () => '/api/board/stream', undefined, fixed, anyAgent(200)],
    ['DELETE', () => '/api/session', undefined, fixed, everybody(204)], // last, since it ends the page's
];

function expectAnswer(reply, wanted, { codes, method, what }) {
    const changes = method !== 'GET' && method !== 'HEAD';
    if (wanted !== 'origin') {
        assert.equal(reply.status, wanted, `${what}: ${reply.text}`);
        if (wanted >= 400 && method !== 'HEAD') {
            assertRefused(reply, wanted, codes[wanted], what);
        }
    } else if (changes) {
        assertRefused(reply, 403, 'auth.bad_origin', what);
    } else {
        assert.equal(reply.status, 200, `${what}: reading is no change`);
    }
}

test('who may do what', async (t) => {
    const w = await makeWorld(t);
    for (const [method, pathOf, bodyOf, make, wanted, codes] of TABLE) {
        for (const [i, role] of ROLES.entries()) {
            const target = await make(w);
            const path = pathOf(w, target);
            const reply = await w[role].call(method, path, bodyOf?.(w, role));
            expectAnswer(reply, wanted[i], {
                codes: { ...CODES, ...codes },
                method,
                what: `${role}: ${method} ${path}`,
            });
        }
    }
    const seen = new Set(
        TABLE.map(([method, pathOf]) => {
            const path = pathOf(w, { house: 'x', agent: 'x', thread: 'x', entry: 'x', token: 'x', key: 'x' });
            return `${method} ${operationOf(method, path).template}`;
        }),
    );
    for (const [path, item] of Object.entries(DOCUMENT.paths)) {
        for (const method of METHODS.filter((one) => item[one])) {
            assert.ok(seen.has(`${method.toUpperCase()} ${path}`), `${method} ${path} is in the table`);
        }
    }
});

test('what is not there is 404 for whoever is signed in, and what was deleted is not there', async (t) => {
    const { owner, house } = await serveFor(t);
    const gone = await owner.createHouse('Gone');
    const inGone = await owner.createThread(gone.id);
    const thread = await owner.createThread(house.id);
    const { agent } = await owner.createAgent('Gone');
    await owner.ask(204, 'DELETE', `/api/houses/${gone.id}`);
    await owner.ask(204, 'DELETE', `/api/threads/${thread.id}`);
    await owner.ask(204, 'DELETE', `/api/agents/${agent.id}`);
    const none = '01900000-0000-7000-8000-000000000000';
    for (const id of [none, gone.id, 'x', '%00', '%C3%A9', "'", '-', 'x'.repeat(64)]) {
        for (const [method, rest, body] of [
            ['GET', ''],
            ['PATCH', '', { name: 'x' }],
            ['DELETE', ''],
            ['GET', '/members'],
            ['GET', '/config'],
            ['GET', '/usage'],
            ['PATCH', '/config', {}],
            ['DELETE', '/config'],
            ['POST', '/invites', {}],
            ['DELETE', `/members/${owner.agent.id}`],
            ['PUT', `/members/${owner.agent.id}`, { role: 'owner' }],
        ]) {
            await owner.refused(404, 'record.not_found', method, `/api/houses/${id}${rest}`, body);
        }
        await owner.refused(404, 'record.not_found', 'GET', `/api/threads?house_id=${id}`);
        await owner.refused(404, 'record.not_found', 'POST', '/api/threads', { parentId: id });
    }
    for (const id of [none, thread.id, inGone.id, 'x']) {
        for (const [method, rest, body] of [
            ['GET', ''],
            ['PATCH', '', { name: 'x' }],
            ['DELETE', ''],
            ['GET', '/agents'],
            ['GET', '/config'],
            ['GET', '/usage'],
            ['PATCH', '/config', {}],
            ['DELETE', '/config'],
            ['GET', '/entries'],
            ['POST', '/entries', chat],
            ['DELETE', '/entries/x'],
            ['GET', '/stream?offset=-1'],
            ['POST', '/sandbox-tokens', { agentId: owner.agent.id }],
        ]) {
            await owner.refused(404, 'record.not_found', method, `/api/threads/${id}${rest}`, body);
        }
    }
    for (const id of [none, agent.id]) {
        await owner.refused(404, 'record.not_found', 'PATCH', `/api/agents/${id}`, { name: 'x' });
        await owner.refused(404, 'record.not_found', 'DELETE', `/api/agents/${id}`);
        await owner.refused(404, 'record.not_found', 'POST', '/api/agents/keys', { agentId: id });
        await owner.refused(404, 'record.not_found', 'PUT', `/api/houses/${house.id}/members/${id}`, {
            role: 'member',
        });
        await owner.refused(404, 'record.not_found', 'DELETE', `/api/houses/${house.id}/members/${id}`);
    }
    await owner.refused(404, 'record.not_found', 'GET', `/api/agents/${none}`);
    await owner.refused(404, 'record.not_found', 'DELETE', `/api/agents/keys/${none}`);
    await owner.refused(404, 'invite.unusable', 'POST', `/api/invites/${'0'.repeat(64)}`, {});
});
