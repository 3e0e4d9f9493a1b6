// What threads are owed while their streams are away: it is kept, told as what it is, and made good.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertAgreed } from './lib/agreed.mjs';
import { JSON_TYPE, Stream } from './lib/http.mjs';
import { lastingPort } from './lib/port.mjs';
import { serveFor } from './lib/serve.mjs';
import { Server } from './lib/server.mjs';
import { eventually } from './lib/wait.mjs';

test('what threads are owed when the server is killed they are given at the next start, in order', async (t) => {
    const streams = new Server(['--listen', `127.0.0.1:${await lastingPort()}`]);
    t.after(() => streams.dispose());
    await streams.start();
    const server = await serveFor(t, ['--streams-url', `${streams.base}/v1/stream`]);
    const { owner } = server;
    const house = await owner.createHouse('Busy');
    const bot = await owner.createAgent('Bot');
    const thread = await owner.createThread(house.id, { name: 'First' });
    const gone = await owner.createThread(house.id, { name: 'First' });
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
    await streams.start();
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

test('a thread whose stream is owed is not told as one that is not there', async (t) => {
    const streams = new Server(['--listen', `127.0.0.1:${await lastingPort()}`]);
    t.after(() => streams.dispose());
    await streams.start();
    const { owner, house } = await serveFor(t, ['--streams-url', `${streams.base}/v1/stream`]);
    await streams.crash();
    const { id } = await owner.createThread(house.id);
    const read = () => owner.call('GET', `/api/threads/${id}/entries`);
    assert.equal((await read()).status, 503);
    await streams.start();
    const page = await eventually('the page', async () => {
        const reply = await read();
        assert.ok([200, 503].includes(reply.status), reply.text);
        const told = reply.status === 200 && reply.json();
        return told && told.entries.length > 0 && told; // the stream comes before its first entry
    });
    assert.deepEqual(
        page.entries.map(({ payload }) => payload.type),
        ['signal.thread.created'],
    );
});

test('what is owed at a start without the streams is given once they come, and nobody need ask', async (t) => {
    const streams = new Server(['--listen', `127.0.0.1:${await lastingPort()}`]);
    t.after(() => streams.dispose());
    await streams.start();
    const server = await serveFor(t, ['--streams-url', `${streams.base}/v1/stream`]);
    await streams.crash();
    const { id } = await server.owner.createThread(server.house.id);
    await server.crash();
    await server.start();
    await streams.start();
    const stream = new Stream(streams, `arbe-thread-${id}`, JSON_TYPE);
    const told = await eventually('the first entry', async () => {
        const reply = await stream.get();
        return reply.status === 200 && reply.json().length > 0 && reply.json();
    });
    assert.deepEqual(
        told.map(({ payload }) => payload.type),
        ['signal.thread.created'],
    );
});
