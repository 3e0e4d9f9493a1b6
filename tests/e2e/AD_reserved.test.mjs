// While there is no secret, the streams of threads do not exist for the control API.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serveFor } from './lib/serve.mjs';
import { assertStatus, control, jsonStream } from './lib/subscriptions.mjs';

const RESERVED = /arbe-thread-/;

async function makeWorld(t, options = {}) {
    const server = await serveFor(t, [], options);
    const { owner, house } = server;
    const threads = [await owner.createThread(house.id), await owner.createThread(house.id)];
    await owner.say(threads[0].id, 'hello');
    return { server, owner, threads, name: `arbe-thread-${threads[0].id}` };
}

// All pages from `after` on.
async function listed(server, query, limit, { headers = {}, after = '' } = {}) {
    const names = [];
    for (;;) {
        const { streams, next_after } = assertStatus(
            await control(server, 'GET', `/streams?limit=${limit}${query}${after}`, undefined, { headers }),
            200,
        ).json();
        names.push(...streams.map((one) => one.path));
        if (next_after === undefined) {
            return names;
        }
        assert.equal(streams.length, limit, 'a page that is not the last one is full');
        assert.equal(next_after, names.at(-1));
        after = `&after=${encodeURIComponent(next_after)}`;
    }
}

test('without a secret the listing has every stream but those of threads, on whatever pages', async (t) => {
    const { server, name } = await makeWorld(t);
    const others = ['a', 'arbe-thread', 'arbe-thread.', 'arbe-threads', 'z'];
    for (const other of others) {
        await jsonStream(server, other).create();
    }
    for (const limit of [1, 2, 3, 4, 5, 6, 1000]) {
        assert.deepEqual(await listed(server, '', limit), others, `limit ${limit}`);
        assert.deepEqual(await listed(server, '&prefix=arbe-t', limit), others.slice(1, 4));
        assert.deepEqual(await listed(server, '&prefix=%61rbe-thread-', limit), []);
        assert.deepEqual(await listed(server, `&prefix=${name}`, limit), []);
        assert.deepEqual(await listed(server, '', limit, { after: `&after=${name}` }), others.slice(2));
    }
});
