// Tier C: what --max-request-rate and --max-write-rate mean for the API: those who are somebody share them, and who is
// nobody uses up nothing of it.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { assertRefused, bearer, nobody, serveFor } from './lib/serve.mjs';
import { eventually } from './lib/wait.mjs';

const WRONG = `arbe_${'0'.repeat(64)}`;
const MANY = 60;

// The first of many calls at once that is refused: one after the other they may be slow enough for the rate.
function refusalOf(call) {
    return eventually('a refusal', async () => {
        const replies = await Promise.all(Array.from({ length: MANY }, call));
        return replies.find(({ status }) => status === 429);
    }, { every: 0 });
}

describe('rates of the API', { concurrency: true, timeout: 120_000 }, () => {
    test('requests above the rate are refused in words, and served again later', async (t) => {
        const server = await serveFor(t, ['--max-request-rate', '20']);
        const refused = await refusalOf(() => server.owner.call('GET', '/api/me'));
        assertRefused(refused, 429, 'request.rate_limited');
        assert.match(refused.headers['retry-after'], /^[1-9]\d*$/);
        assert.match(refused.json().error.message, /at most 20 requests per second \(--max-request-rate\)/);
        await eventually('it is served again', async () =>
            (await server.owner.call('GET', '/api/me')).status === 200);
    });

    test('wrong keys and no keys use up nothing of the requests', async (t) => {
        const server = await serveFor(t, ['--max-request-rate', '20']);
        await eventually('the bucket is full again', async () =>
            (await server.owner.call('GET', '/api/me')).status === 200);
        const liar = bearer(server, WRONG);
        for (let i = 0; i < MANY; i++) {
            assertRefused(await liar.call('GET', '/api/me'), 401, 'auth.unauthenticated');
            assertRefused(await nobody(server).call('GET', '/api/houses'), 401, 'auth.unauthenticated');
        }
        assert.equal((await server.owner.call('GET', '/api/me')).status, 200);
    });

    test('bodies of who is not known yet use up nothing of the bytes; those of members do', async (t) => {
        const server = await serveFor(t, ['--max-write-rate', '64KiB']);
        const path = `/api/threads/${server.house.primaryThreadId}/entries`;
        const chat = { payload: { type: 'chat', text: 'x'.repeat(20_000) } };
        const liar = bearer(server, WRONG);
        for (let i = 0; i < 20; i++) {
            assertRefused(await liar.call('POST', path, chat), 401, 'auth.unauthenticated');
        }
        assert.equal((await server.owner.call('POST', path, chat)).status, 201);
        const refused = await refusalOf(() => server.owner.call('POST', path, chat));
        assertRefused(refused, 429, 'request.rate_limited');
        assert.match(refused.json().error.message, /--max-write-rate/);
    });
});
