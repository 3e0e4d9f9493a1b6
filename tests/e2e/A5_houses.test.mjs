// Houses, their members and invites, and agents who come and go; and what their threads are told of it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nobody, serveFor } from './lib/serve.mjs';
import { eventually } from './lib/wait.mjs';

// What a thread was told, as "type name=value".
async function told(caller, threadId) {
    return (await caller.history(threadId)).map(({ authorId, payload: { type, ...rest } }) => ({
        type,
        by: authorId,
        ...rest,
    }));
}

test('the first start makes an owner, a house and a key, once', async (t) => {
    const server = await serveFor(t);
    const { owner, house } = server;
    assert.equal(house.role, 'owner');
    assert.deepEqual(await told(owner, house.primaryThreadId), [
        { type: 'signal.house.created', by: owner.agent.id },
        { type: 'signal.thread.created', by: owner.agent.id },
    ]);
    server.log = '';
    await server.restart();
    assert.ok(!server.log.includes('arbe_'), 'a later start prints no key');
    await owner.get('/api/me');
});

test('an invite lets in one of twenty who claim it at once', async (t) => {
    const server = await serveFor(t);
    const { owner, house } = server;
    for (const role of ['member', 'owner']) {
        const { token } = await owner.ask(201, 'POST', `/api/houses/${house.id}/invites`, { role });
        const replies = await Promise.all(
            Array.from({ length: 20 }, (_, i) =>
                nobody(server).call('POST', `/api/invites/${token}`, { name: `${role} ${i}` }, { fresh: true }),
            ),
        );
        const good = replies.filter(({ status }) => status === 201);
        assert.equal(good.length, 1, replies.map(({ status }) => status).join(' '));
        // Those who fail ten times within the minute are told to wait.
        assert.ok(replies.every(({ status }) => [201, 404, 429].includes(status)));
        const { agent, house: joined } = good[0].json();
        assert.deepEqual(joined, { ...house, role });
        const { agents } = await owner.get(`/api/agents?q=${encodeURIComponent(agent.name)}`);
        assert.deepEqual(
            agents.filter(({ name }) => name === agent.name),
            [agent],
        );
        if (role === 'member') {
            await server.restart(); // forgets the failures
        }
    }
    const members = await owner.list(`/api/houses/${house.id}/members`, 'members');
    assert.deepEqual(members.map(({ role }) => role).sort(), ['member', 'owner', 'owner']);
    assert.equal((await owner.list('/api/agents', 'agents')).length, 3, 'nobody else came to be');
    const signals = (await told(owner, house.primaryThreadId)).slice(2);
    assert.deepEqual(
        signals.map(({ type, role }) => `${type} ${role}`),
        ['signal.house.member_added member', 'signal.house.member_added owner'],
    );
    assert.deepEqual(
        signals.map(({ by }) => by),
        signals.map(({ agentId }) => agentId),
        'who joins is who caused it',
    );
});

test('an invite ends with its time, with its use, and with its house', async (t) => {
    const server = await serveFor(t);
    const { owner, house } = server;
    const short = await owner.ask(201, 'POST', `/api/houses/${house.id}/invites`, { expiresIn: 1 });
    const long = await owner.ask(201, 'POST', `/api/houses/${house.id}/invites`, {});
    const week = 7 * 24 * 3600 * 1000;
    assert.ok(Math.abs(long.expiresAt - Date.now() - week) < 3600 * 1000);
    await eventually('the time of the invite is over', () => Date.now() > short.expiresAt);
    await nobody(server).refused(404, 'invite.unusable', 'POST', `/api/invites/${short.token}`, { name: 'Late' });
    await nobody(server).ask(201, 'POST', `/api/invites/${long.token}`, { name: 'In time' });
    await nobody(server).refused(404, 'invite.unusable', 'POST', `/api/invites/${long.token}`, { name: 'Too late' });
    const gone = await owner.createHouse('Gone');
    const orphan = await owner.ask(201, 'POST', `/api/houses/${gone.id}/invites`, {});
    await owner.ask(204, 'DELETE', `/api/houses/${gone.id}`);
    await nobody(server).refused(404, 'invite.unusable', 'POST', `/api/invites/${orphan.token}`, { name: 'Lost' });
});

test('who is there already joins by an invite, and one that raises its role raises it', async (t) => {
    const server = await serveFor(t);
    const { owner, house } = server;
    const member = await owner.invite(house.id, 'Member');
    const other = await owner.createHouse('Other');
    const invite = async (role) => (await owner.ask(201, 'POST', `/api/houses/${other.id}/invites`, { role })).token;
    const first = await invite('member');
    const joined = await member.ask(200, 'POST', `/api/invites/${first}`, {});
    assert.deepEqual(joined, { agent: member.agent, house: { ...other, role: 'member' } });
    const second = await invite('member');
    await member.refused(409, 'record.conflict', 'POST', `/api/invites/${second}`, {});
    await member.ask(200, 'POST', `/api/invites/${await invite('owner')}`, {});
    assert.equal((await member.get(`/api/houses/${other.id}`)).role, 'owner');
    await nobody(server).ask(201, 'POST', `/api/invites/${second}`, { name: 'Another' }); // it was not used up
});

test('a house keeps an owner, whoever wants to go, and however many at once', async (t) => {
    const server = await serveFor(t);
    const { owner, house } = server;
    const path = (one, of = house) => `/api/houses/${of.id}/members/${one.agent.id}`;
    const member = await owner.invite(house.id, 'Member');
    await owner.refused(409, 'house.last_owner', 'DELETE', path(owner));
    await owner.refused(409, 'house.last_owner', 'PUT', path(owner), { role: 'member' });
    await owner.refused(409, 'house.last_owner', 'DELETE', `/api/agents/${owner.agent.id}`);
    const list = async () => (await owner.get(`/api/houses/${house.id}/members`)).members;
    const { addedAt } = (await list()).find(({ agentId }) => agentId === member.agent.id);
    const changed = await owner.ask(200, 'PUT', path(member), { role: 'owner' });
    assert.equal(changed.addedAt, addedAt, 'it is a member since it came');
    assert.deepEqual((await list()).find(({ agentId }) => agentId === member.agent.id), changed);
    // Two owners, who both go: one must stay.
    const replies = await Promise.all([owner, member].map((one) => one.call('DELETE', path(one))));
    assert.deepEqual(replies.map(({ status }) => status).sort(), [204, 409]);
    const [left, stayed] = replies[0].status === 204 ? [owner, member] : [member, owner];
    await left.refused(403, 'auth.forbidden', 'GET', `/api/houses/${house.id}`);
    await left.refused(403, 'auth.forbidden', 'GET', `/api/threads/${house.primaryThreadId}`);
    const { members } = await stayed.get(`/api/houses/${house.id}/members`);
    assert.deepEqual(
        members.map(({ agentId, role }) => [agentId, role]),
        [[stayed.agent.id, 'owner']],
    );
    assert.deepEqual((await left.get('/api/me')).houses, []);
});

test('an owner who is made a member may no more what owners may', async (t) => {
    const { owner, house } = await serveFor(t);
    const second = await owner.invite(house.id, 'Second', 'owner');
    const thread = await second.createThread(house.id);
    await second.say(thread.id, 'I may post'); // and now it is known by heart
    await owner.ask(200, 'PUT', `/api/houses/${house.id}/members/${second.agent.id}`, { role: 'member' });
    await second.refused(403, 'auth.forbidden', 'DELETE', `/api/threads/${thread.id}`);
    await second.say(thread.id, 'I still may');
});

test('each change of a house is told in its primary thread, by who made it', async (t) => {
    const { owner } = await serveFor(t);
    const house = await owner.createHouse('One');
    const bot = await owner.createAgent('Bot');
    const member = await owner.invite(house.id, 'Member');
    await owner.ask(200, 'PATCH', `/api/houses/${house.id}`, { name: 'Two "quoted" \u00e9 \\' });
    await owner.ask(200, 'PATCH', `/api/houses/${house.id}`, { name: 'Two "quoted" \u00e9 \\' }); // changes nothing
    await owner.ask(201, 'PUT', `/api/houses/${house.id}/members/${bot.agent.id}`, { role: 'member' });
    await owner.ask(200, 'PUT', `/api/houses/${house.id}/members/${bot.agent.id}`, { role: 'owner' });
    await member.ask(204, 'DELETE', `/api/houses/${house.id}/members/${member.agent.id}`);
    await owner.ask(204, 'DELETE', `/api/agents/${bot.agent.id}`);
    const by = owner.agent.id;
    await eventually(
        'the signals of an agent that goes',
        async () => (await told(owner, house.primaryThreadId)).length === 8,
    );
    assert.deepEqual(await told(owner, house.primaryThreadId), [
        { type: 'signal.house.created', by },
        { type: 'signal.thread.created', by },
        { type: 'signal.house.member_added', by: member.agent.id, agentId: member.agent.id, role: 'member' },
        { type: 'signal.house.renamed', by, name: 'Two "quoted" \u00e9 \\' },
        { type: 'signal.house.member_added', by, agentId: bot.agent.id, role: 'member' },
        { type: 'signal.house.member_added', by, agentId: bot.agent.id, role: 'owner' },
        { type: 'signal.house.member_removed', by: member.agent.id, agentId: member.agent.id },
        { type: 'signal.house.member_removed', by, agentId: bot.agent.id },
    ]);
});

test('an agent that is deleted leaves its name behind, and nothing else', async (t) => {
    const server = await serveFor(t);
    const { owner, house } = server;
    const member = await owner.invite(house.id, 'Alice Doe');
    const other = await owner.invite(house.id, 'Other');
    const page = await member.signIn();
    const { entries } = await member.get(`/api/threads/${house.primaryThreadId}/entries`);
    const said = await member.say(house.primaryThreadId, 'I was here');
    await member.ask(204, 'DELETE', `/api/agents/${member.agent.id}`);
    for (const one of [member, page]) {
        await one.refused(401, 'auth.unauthenticated', 'GET', '/api/me');
        await one.refused(
            401,
            'auth.unauthenticated',
            'GET',
            `/api/threads/${house.primaryThreadId}/stream?offset=-1`,
        );
    }
    const tombstone = await owner.get(`/api/agents/${member.agent.id}`);
    assert.deepEqual(await other.get(`/api/agents/${member.agent.id}`), tombstone, 'who reads its entries knows its name');
    assert.equal(tombstone.name, 'Alice Doe');
    assert.equal(tombstone.handle, 'alice-doe');
    assert.ok(tombstone.deletedAt >= tombstone.createdAt);
    const history = await owner.history(house.primaryThreadId);
    assert.deepEqual(
        history.find(({ id }) => id === said.id),
        said,
        'what it wrote stays',
    );
    assert.ok(history.length > entries.length);
    assert.deepEqual(
        (await owner.get(`/api/houses/${house.id}/members`)).members.map(({ agentId }) => agentId),
        [owner.agent.id, other.agent.id],
    );
    assert.ok((await owner.list('/api/agents', 'agents')).every(({ id }) => id !== member.agent.id));
    await server.crashAndRestart();
    assert.equal((await owner.get(`/api/agents/${member.agent.id}`)).name, 'Alice Doe');
    await member.refused(401, 'auth.unauthenticated', 'GET', '/api/me');
});

test('agents are found by how name or handle begins, among those that one may see', async (t) => {
    const { owner, house } = await serveFor(t);
    const elsewhere = await owner.createHouse('Elsewhere');
    const member = await owner.invite(house.id, 'Zoë Über');
    const stranger = await owner.invite(elsewhere.id, 'Zoo Keeper');
    const mine = await member.createAgent('Zoo Bot', {
        kind: 'bot',
        description: 'line one\nline two',
        systemPrompt: 'Be kind.',
    });
    const found = async (caller, query) =>
        (await caller.list(`/api/agents?${query}`, 'agents')).map(({ name }) => name).sort();
    assert.deepEqual(await found(member, 'q=zo'), ['Zoo Bot', 'Zoë Über']);
    assert.deepEqual(await found(member, 'q=ZOO'), ['Zoo Bot']);
    assert.deepEqual(await found(owner, 'q=zoo'), ['Zoo Keeper'], 'a bot in no house is seen by who made it');
    assert.deepEqual(await found(stranger, ''), ['Owner', 'Zoo Keeper']);
    assert.deepEqual(await found(owner, `house_id=${elsewhere.id}`), ['Owner', 'Zoo Keeper']);
    assert.deepEqual(await found(owner, 'q=%25'), [], 'a percent sign is one');
    assert.deepEqual(await found(owner, 'q=_oo'), []);
    await stranger.refused(403, 'auth.forbidden', 'GET', `/api/agents/${mine.agent.id}`);
    assert.deepEqual(await mine.get(`/api/agents/${mine.agent.id}`), mine.agent);
    assert.equal(mine.agent.description, 'line one\nline two');
    const changed = await member.ask(200, 'PATCH', `/api/agents/${mine.agent.id}`, {
        name: 'Otto',
        description: null,
    });
    assert.deepEqual(changed, { ...mine.agent, name: 'Otto', handle: 'otto', description: null });
});

test('lists come in pages, each item once, also while the list changes', async (t) => {
    const { owner } = await serveFor(t);
    const house = await owner.createHouse('Many');
    const names = Array.from({ length: 25 }, (_, i) => `Bot ${String(i).padStart(2, '0')}`);
    for (const name of names) {
        const { agent } = await owner.createAgent(name);
        await owner.ask(201, 'PUT', `/api/houses/${house.id}/members/${agent.id}`, { role: 'member' });
    }
    for (const limit of [1, 7, 200]) {
        const members = await owner.list(`/api/houses/${house.id}/members`, 'members', limit);
        assert.deepEqual(members.map(({ name }) => name).sort(), [...names, 'Owner'].sort());
        assert.equal((await owner.list(`/api/agents?house_id=${house.id}`, 'agents', limit)).length, 26);
        assert.equal((await owner.list('/api/houses', 'houses', limit)).length, 2);
    }
    const page = await owner.get(`/api/houses/${house.id}/members?limit=10`);
    await owner.ask(204, 'DELETE', `/api/houses/${house.id}/members/${page.members.at(-1).agentId}`);
    const rest = [];
    for (let { nextCursor } = page; nextCursor !== null;) {
        const next = await owner.get(
            `/api/houses/${house.id}/members?limit=10&cursor=${encodeURIComponent(nextCursor)}`,
        );
        rest.push(...next.members);
        nextCursor = next.nextCursor;
    }
    assert.deepEqual([...page.members, ...rest].map(({ name }) => name).sort(), [...names, 'Owner'].sort());
    for (const cursor of ['x', '%00', '0', '~', `${'9'.repeat(500)}`]) {
        const reply = await owner.call('GET', `/api/houses/${house.id}/members?cursor=${cursor}`);
        assert.ok([200, 400].includes(reply.status), `${cursor}: ${reply.status} ${reply.text}`);
    }
});
