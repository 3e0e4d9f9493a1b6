// Entries: stored once, as they came, by whom they are; read page by page, and deleted by a tombstone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { request } from './lib/http.mjs';
import { DOCUMENT } from './lib/openapi.mjs';
import { rawStream, serveFor } from './lib/serve.mjs';
import { inParallel, rounds } from './lib/wait.mjs';

const chat = (text, more = {}) => ({ type: 'chat', text, ...more });
const entriesOf = (threadId) => `/api/threads/${threadId}/entries`;

async function makeThread(t, flags, options) {
    const server = await serveFor(t, flags, options);
    const { owner, house } = server;
    const member = await owner.invite(house.id, 'Member');
    const thread = await owner.createThread(house.id);
    return { server, owner, member, house, thread, path: entriesOf(thread.id) };
}

test('an entry is what was posted, by whom it was, when it was', async (t) => {
    const { owner, member, thread, path } = await makeThread(t);
    const before = Date.now();
    const entry = await member.ask(201, 'POST', path, { payload: chat('Hello'), ts: 5 });
    assert.match(entry.id, /^[0-9a-f-]{36}$/);
    assert.equal(entry.authorId, member.agent.id);
    assert.ok(entry.ts >= before - 1000 && entry.ts <= Date.now() + 1000, 'the server says when');
    const own = await member.ask(201, 'POST', path, { id: 'own~1', authorId: member.agent.id, payload: chat('I') });
    assert.equal(own.authorId, member.agent.id);
    const error = await member.refused(403, 'auth.forbidden', 'POST', path, {
        authorId: owner.agent.id,
        payload: chat('not I'),
    });
    assert.equal(error.context.field, 'authorId');
    const history = await owner.history(thread.id);
    assert.deepEqual(history.slice(1), [entry, own]);
});

test('people and bots post chat, and nothing else', async (t) => {
    const { server, owner, thread, path } = await makeThread(t);
    const types = DOCUMENT.components.schemas.Payload.oneOf.map(({ $ref }) => $ref.split('/').at(-1));
    const usage = { input: 1, output: 1 };
    const whole = {
        text: 'x',
        contentIndex: 0,
        block: 'text',
        delta: 'x',
        content: [],
        provider: 'p',
        model: 'm',
        usage,
        stopReason: 's',
        toolCallId: 'x',
        toolName: 'x',
        isError: false,
        summary: 'x',
        tokensBefore: 1,
        entryId: 'x',
        name: 'x',
        status: 'idle',
        reason: 'x',
        agentId: 'x',
        role: 'member',
        environmentId: 'x',
        path: 'x',
        agentIds: [],
        dispatchId: 'x',
        triggerEntryId: 'x',
    };
    for (const type of types.filter((one) => one !== 'chat')) {
        const error = await owner.refused(403, 'auth.forbidden', 'POST', path, { payload: { type, ...whole } });
        assert.equal(error.context.field, 'payload.type', type);
    }
    assert.equal((await owner.history(thread.id)).length, 1);
    assert.ok(server.running);
});

test('what is not known in a payload is kept byte for byte', async (t) => {
    const { server, member, thread, path } = await makeThread(t, [], { secret: true });
    const payloads = [
        '{"type":"chat","text":"big","n":123456789012345678901234567890.0e-10,"dup":1,"dup":2}',
        '{ "extra" : { "a" : [ 1 , 2.50 , -0 , 1E5 ] } , "text" : "sp\\u0061ced \\/ \\ud83d\\ude00 \u{1f600}" ,\t"type" : "chat" }',
        '{"type":"chat","text":"\\ud83d\\ude00","half":"\\ud800","empty":"","null":null,"deep":[[[[{}]]]]}',
        '{"\\u0074ype":"chat","te\\u0078t":"spelt otherwise"}',
        '{"type":"chat","text":"e\u0301 and \u00e9 stay two","__proto__":{"x":1},"constructor":0}',
    ];
    for (const [i, payload] of payloads.entries()) {
        const reply = await member.call('POST', path, `{"payload":${payload},"id":"p${i}"}`);
        assert.equal(reply.status, 201, reply.text);
        assert.ok(reply.text.includes(`"payload":${payload}}`), reply.text);
        const again = await member.call('POST', path, `{"payload":${payload},"id":"p${i}"}`);
        assert.equal(again.status, 200);
        assert.equal(again.text.trimEnd(), reply.text.trimEnd(), 'the first entry, as it is stored');
    }
    const { body } = await rawStream(server, thread.id).readAll();
    const page = await member.call('GET', path);
    for (const payload of payloads) {
        assert.ok(body.includes(Buffer.from(`"payload":${payload}}`)), payload);
        assert.ok(page.text.includes(`"payload":${payload}}`), payload);
    }
});

test('one id that sixteen post at once is stored once', async (t) => {
    const { server, owner, member, thread, path } = await makeThread(t);
    const count = rounds(12);
    for (let i = 0; i < count; i++) {
        const id = `same-${i}`;
        const replies = await Promise.all(
            Array.from({ length: 16 }, (_, n) =>
                [owner, member][n % 2].call('POST', path, { id, payload: chat(`from ${n}`) }, { fresh: true }),
            ),
        );
        const first = replies.find(({ status }) => status === 201);
        assert.deepEqual(
            replies.map(({ status }) => status).sort(),
            [...Array(15).fill(200), 201],
            'one is the first',
        );
        assert.ok(
            replies.every(({ text }) => text.trimEnd() === first.text.trimEnd()),
            'and all are answered with it',
        );
    }
    const check = async () => {
        const ids = (await owner.history(thread.id)).map(({ id }) => id);
        assert.equal(ids.length, count + 1);
        assert.equal(new Set(ids).size, count + 1);
    };
    await check();
    await server.crashAndRestart();
    for (let i = 0; i < count; i++) {
        const first = (await owner.history(thread.id)).find(({ id }) => id === `same-${i}`);
        assert.deepEqual(await member.ask(200, 'POST', path, { id: `same-${i}`, payload: chat('late') }), first);
    }
    await check();
    await server.restart();
    await member.ask(200, 'POST', path, { id: 'same-0', payload: chat('later') });
    await check();
});

test('the same id is another entry in another thread', async (t) => {
    const { owner, house, path } = await makeThread(t);
    const other = await owner.createThread(house.id);
    await owner.ask(201, 'POST', path, { id: 'x', payload: chat('here') });
    const there = await owner.ask(201, 'POST', entriesOf(other.id), { id: 'x', payload: chat('there') });
    assert.equal(there.payload.text, 'there');
});

test('an id that was posted before a crash is known after it, whatever was answered', async (t) => {
    const { server, owner, thread, path } = await makeThread(t);
    for (let round = 0; round < 3; round++) {
        const ids = Array.from({ length: 40 }, (_, i) => `r${round}-${i}`);
        const post = (id) => owner.call('POST', path, { id, payload: chat(id) }, { fresh: true });
        const firsts = ids.map((id) => post(id).catch(() => undefined));
        await Promise.race(firsts);
        await server.crash();
        const answered = await Promise.all(firsts);
        await server.start();
        const replies = await inParallel(
            8,
            ids.map((id) => () => post(id)),
        );
        for (const [i, reply] of replies.entries()) {
            assert.ok([200, 201].includes(reply.status), reply.text);
            if (answered[i]?.status === 201) {
                assert.equal(reply.status, 200, `${ids[i]} was acknowledged before the crash`);
                assert.equal(reply.text.trimEnd(), answered[i].text.trimEnd());
            }
        }
        const stored = (await owner.history(thread.id))
            .map(({ id }) => id)
            .filter((id) => id.startsWith(`r${round}-`));
        assert.deepEqual(stored.sort(), ids.sort(), 'each once');
    }
});

test('history is read in pages that fit together, in any size', async (t) => {
    const { owner, thread, path } = await makeThread(t);
    const posted = await inParallel(
        8,
        Array.from({ length: 60 }, (_, i) => () => owner.say(thread.id, `m${i}`, i % 3 ? {} : { id: `id-${i}` })),
    );
    const all = await owner.history(thread.id);
    assert.deepEqual(
        all
            .slice(1)
            .map(({ id }) => id)
            .sort(),
        posted.map(({ id }) => id).sort(),
    );
    for (const limit of [1, 7, 61, 1000]) {
        assert.deepEqual(await owner.history(thread.id, limit), all, `limit ${limit}`);
    }
    const { nextAfter, upToDate } = await owner.get(`${path}?limit=61`);
    assert.ok(upToDate);
    const after = `after=${encodeURIComponent(nextAfter)}`;
    assert.deepEqual((await owner.get(`${path}?${after}`)).entries, []);
    const late = await owner.say(thread.id, 'late');
    assert.deepEqual((await owner.get(`${path}?${after}`)).entries, [late]);
    for (const bad of ['x', '0', `${nextAfter}~x`, `${nextAfter}~-1`, '~', '%20', `${nextAfter}~99999999999`]) {
        const error = await owner.refused(400, 'validation.invalid_input', 'GET', `${path}?after=${bad}`);
        assert.equal(error.context.field, 'after', bad);
    }
});

test('deleting appends a tombstone: the author may, an owner may, others may not', async (t) => {
    const { server, owner, member, house, thread, path } = await makeThread(t, [], { secret: true });
    const other = await owner.invite(house.id, 'Other');
    const said = [];
    for (const n of [1, 2, 3]) {
        said.push(await member.say(thread.id, `to go ${n}`, { id: `go-${n}` }));
    }
    await other.refused(403, 'auth.forbidden', 'DELETE', `${path}/go-1`);
    const tombstone = await member.ask(201, 'DELETE', `${path}/go-1`);
    assert.deepEqual(tombstone, {
        id: 'arbe.deleted.go-1',
        ts: tombstone.ts,
        authorId: member.agent.id,
        payload: { type: 'signal.entry.deleted', entryId: 'go-1' },
    });
    assert.deepEqual(await member.ask(200, 'DELETE', `${path}/go-1`), tombstone, 'twice is once');
    assert.deepEqual(await owner.ask(200, 'DELETE', `${path}/go-1`), tombstone, 'by another as well');
    assert.equal((await owner.ask(201, 'DELETE', `${path}/go-2`)).authorId, owner.agent.id);
    const both = await Promise.all(
        Array.from({ length: 10 }, () => member.call('DELETE', `${path}/go-3`, undefined, { fresh: true })),
    );
    assert.deepEqual(both.map(({ status }) => status).sort(), [...Array(9).fill(200), 201]);
    await server.crashAndRestart();
    await member.ask(200, 'DELETE', `${path}/go-1`);
    await member.ask(200, 'POST', path, { id: 'go-1', payload: chat('again') });
    const { messages } = await rawStream(server, thread.id).readMessages();
    for (const list of [messages, await owner.history(thread.id)]) {
        assert.deepEqual(
            list.filter(({ id }) => id.startsWith('go-')),
            said,
            'raw reads keep what was deleted',
        );
        assert.equal(list.filter(({ payload }) => payload.type === 'signal.entry.deleted').length, 3);
    }
});

test('only chat of this thread is deleted', async (t) => {
    const { owner, member, house, thread, path } = await makeThread(t);
    const said = await member.say(thread.id, 'x', { id: 'said' });
    const tombstone = await member.ask(201, 'DELETE', `${path}/said`);
    await member.refused(409, 'entry.not_deletable', 'DELETE', `${path}/${tombstone.id}`);
    const [created] = await owner.history(thread.id);
    await owner.refused(409, 'entry.not_deletable', 'DELETE', `${path}/${created.id}`);
    const sandbox = await member.mint(thread.id);
    const { ids } = await sandbox.ask(201, 'POST', `/api/stream/arbe-thread-${thread.id}`, {
        payload: { type: 'pi.tool_result', toolCallId: 'c', toolName: 'n', content: [], isError: false },
    });
    const error = await member.refused(409, 'entry.not_deletable', 'DELETE', `${path}/${ids[0]}`);
    assert.match(error.message, /pi\.tool_result/);
    const other = await owner.createThread(house.id);
    await member.refused(404, 'record.not_found', 'DELETE', `${entriesOf(other.id)}/${said.id}`);
    for (const id of ['none', 'x'.repeat(97), '%00', '%22', 'a%2Fb', '..%2f', '%F0%9F%98%80']) {
        await member.refused(404, 'record.not_found', 'DELETE', `${path}/${id}`);
    }
    assert.equal((await owner.history(thread.id)).length, 4);
});

test('a log with types of a later version, and with what is no entry, is read without harm', async (t) => {
    const { server, owner, member, thread, path } = await makeThread(t, [], { secret: true });
    const later = '{"id":"later","ts":1,"authorId":"x","payload":{"type":"hologram.v2","text":5},"new":true}';
    await rawStream(server, thread.id).append(`[${later},{"no":"entry"},7,"text",null]`);
    await member.say(thread.id, 'behind it', { id: 'behind' });
    await member.ask(200, 'POST', path, { id: 'behind', payload: chat('again') });
    // Not held against the document, which knows no later version.
    const read = async (target) => await request(server.base, 'GET', target, { headers: owner.headers });
    const page = await read(path);
    assert.equal(page.status, 200, page.text);
    assert.ok(page.text.includes(later));
    await owner.refused(409, 'entry.not_deletable', 'DELETE', `${path}/later`);
    const taken = await request(server.base, 'POST', path, {
        headers: member.headers,
        body: JSON.stringify({ id: 'later', payload: chat('taken') }),
    });
    assert.equal(taken.status, 200, 'its id is one like others');
    assert.equal(taken.text.trimEnd(), later);
    await server.crashAndRestart();
    await member.ask(200, 'POST', path, { id: 'behind', payload: chat('again') });
    await member.ask(201, 'DELETE', `${path}/behind`);
    const followed = await read(`/api/threads/${thread.id}/stream?offset=-1`);
    assert.equal(JSON.parse(followed.text).length, 8);
    assert.ok((await owner.get(`/api/threads/${thread.id}`)).lastEntryTs > 1);
});

test('pages end by their bytes, too, and the next one begins right there', async (t) => {
    const { owner, thread, path } = await makeThread(t);
    const most = (256 + 65) << 10; // and the last item
    for (let i = 0; i < 10; i++) {
        await owner.say(thread.id, `${i}`.padEnd(60_000, '.'));
        await owner.createAgent(`Bot ${i}`, { kind: 'bot', systemPrompt: `${i}`.padEnd(64_000, '.') });
    }
    const page = await owner.call('GET', `${path}?limit=1000`);
    assert.ok(page.body.length > 256 << 10 && page.body.length < most, `${page.body.length} bytes of entries`);
    assert.equal(page.json().upToDate, false);
    const texts = (await owner.history(thread.id)).slice(1).map(({ payload }) => payload.text[0]);
    assert.equal(texts.join(''), '0123456789');

    const agents = await owner.call('GET', '/api/agents?limit=200&q=Bot');
    assert.ok(agents.body.length > 256 << 10 && agents.body.length < most, `${agents.body.length} bytes of agents`);
    const names = (await owner.list('/api/agents?q=Bot', 'agents')).map(({ name }) => name);
    assert.deepEqual(names.sort(), Array.from({ length: 10 }, (_, i) => `Bot ${i}`));
});
