// Tier 60: requests and bytes per second, and live readers at a time: 429 and
// 503 with Retry-After and a sentence, and all is well again afterwards.
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { Stream, TEXT, assertProblem, request } from './lib/http.mjs';
import { liveReaders } from './lib/prometheus.mjs';
import { Raw, head } from './lib/raw.mjs';
import { serverFor, tempDir } from './lib/server.mjs';
import { Sse } from './lib/sse.mjs';
import { eventually } from './lib/wait.mjs';

function assertRefused(reply, status, sentence) {
    assertProblem(reply, status);
    assert.match(reply.headers['retry-after'] ?? '', /^[1-9]\d*$/);
    assert.match(reply.json().detail, sentence);
}

const count = (list, value) => list.filter((one) => one === value).length;

describe('--max-request-rate', { concurrency: true, timeout: 120_000 }, () => {
    test('above it 429; health is free; waiting helps', async (t) => {
        const server = await serverFor(t, ['--max-request-rate', '20']);
        const started = Date.now();
        const raw = await Raw.open(server);
        raw.send(head('GET', '/v1/stream/x').repeat(400));
        const replies = [];
        while (replies.length < 400) {
            replies.push(await raw.response());
        }
        const statuses = replies.map(({ status }) => status);
        const seconds = (Date.now() - started) / 1000;
        assert.ok(count(statuses, 404) >= 20, statuses.join());
        assert.ok(count(statuses, 404) <= 20 + 20 * seconds, `${statuses.join()} in ${seconds} s`);
        assert.equal(count(statuses, 404) + count(statuses, 429), 400);
        assertRefused(replies.find(({ status }) => status === 429), 429, /at most 20 requests per second/);
        for (let i = 0; i < 50; i++) {
            assert.equal((await request(server.base, 'GET', '/health')).status, 200);
        }
        const stream = new Stream(server, 'x');
        assert.match((await request(server.base, 'OPTIONS', stream.path)).headers['access-control-expose-headers'], /retry-after/i);
        await eventually('it is served again', async () => (await stream.put({}, 'x')).status === 201);
        raw.destroy();
    });

    test('who has not the secret uses up nothing of it; the control API does', async (t) => {
        const dir = tempDir();
        t.after(() => rmSync(dir, { recursive: true }));
        const file = `${dir}/secret`;
        writeFileSync(file, 'a-long-and-secret-secret\n', { mode: 0o600 });
        const server = await serverFor(t, ['--max-request-rate', '1', '--secret-file', file]);
        const stranger = new Stream(server, 'x');
        for (let i = 0; i < 20; i++) {
            assert.equal((await stranger.get()).status, 401);
        }
        const friend = new Stream(server, 'x', TEXT, { Authorization: 'Bearer a-long-and-secret-secret' });
        assert.equal((await friend.put()).status, 201);
        const reply = await eventually('a refusal', async () => {
            const one = await request(server.base, 'GET', '/v1/stream/__ds/streams', { headers: friend.extra });
            return one.status === 429 && one;
        }, { every: 0 });
        assert.match(reply.headers['retry-after'], /^[1-9]\d*$/);
        assert.equal(reply.json().error.code, 'LIMIT_REACHED');
    });
});

describe('--max-write-rate', { concurrency: true, timeout: 120_000 }, () => {
    test('bodies above it are refused and not stored; reads and empty bodies are free', async (t) => {
        const server = await serverFor(t, ['--max-write-rate', '1000']);
        const stream = new Stream(server, 'x');
        await stream.create();
        // More than a second brings goes through once, and is paid for by those behind it.
        await stream.append('a'.repeat(30_000));
        const refused = await stream.post('b');
        assertRefused(refused, 429, /at most 1000 bytes of request bodies per second/);
        assert.ok(Number(refused.headers['retry-after']) >= 20, refused.headers['retry-after']);
        assertRefused(await new Stream(server, 'y').put({}, 'c'), 429, /bytes/);
        assert.equal((await new Stream(server, 'y').head()).status, 404);
        assert.equal((await stream.get()).body.length, 30_000);
        assert.equal((await stream.close()).status, 204);
    });

    test('a refused body keeps the connection in order; one that waits to be asked is not asked', async (t) => {
        const server = await serverFor(t, ['--max-write-rate', '1000']);
        const stream = new Stream(server, 'x');
        await stream.create({}, 'a'.repeat(30_000));
        const raw = await Raw.open(server);
        raw.send(head('POST', stream.path, ['Content-Type: text/plain', 'Content-Length: 5']) + 'GET /' + head('HEAD', stream.path));
        assert.equal((await raw.response()).status, 429);
        assert.equal((await raw.response('HEAD')).status, 200);
        raw.send(head('POST', stream.path, ['Content-Type: text/plain', 'Content-Length: 5', 'Expect: 100-continue']));
        assert.equal((await raw.response()).status, 429);
        raw.destroy();
    });

    test('a chunked body pays as it comes', async (t) => {
        const server = await serverFor(t, ['--max-write-rate', '1000']);
        const stream = new Stream(server, 'x');
        await stream.create();
        const raw = await Raw.open(server);
        const post = head('POST', stream.path, ['Content-Type: text/plain', 'Transfer-Encoding: chunked']);
        raw.send(`${post}4e20\r\n${'x'.repeat(20_000)}\r\n0\r\n\r\n`);
        assert.equal((await raw.response()).status, 204);
        raw.send(`${post}1\r\nx\r\n0\r\n\r\n`);
        const refused = await raw.response();
        assert.equal(refused.status, 429);
        assert.ok(Number(refused.headers['retry-after']) >= 10, refused.headers['retry-after']);
        assert.equal((await stream.get()).body.length, 20_000);
        raw.destroy();
    });

    test('what was announced and does not come is given back', async (t) => {
        const server = await serverFor(t, ['--max-write-rate', '1000']);
        const stream = new Stream(server, 'x');
        await stream.create();
        const announced = 36_000_000; // which ten hours would pay for
        const announce = () => eventually('it is let in', async () => {
            const raw = await Raw.open(server);
            raw.send(head('POST', stream.path, ['Content-Type: text/plain', `Content-Length: ${announced}`, 'Expect: 100-continue']));
            if ((await raw.head()).status === 100) {
                return raw;
            }
            raw.destroy();
            return null;
        }, { every: 100 });
        const owed = async () => Number((await stream.post('y')).headers['retry-after'] ?? 0);

        const silent = await announce();
        assert.ok(await owed() > 30_000);
        silent.destroy();
        await eventually('all is given back', async () => (await stream.post('z'.repeat(900))).status === 204, { every: 100 });
        const half = await announce();
        await half.sendAll('x'.repeat(announced / 2));
        half.socket.end();
        const left = await eventually('a part is given back', async () => {
            const seconds = await owed();
            return seconds < 30_000 && seconds;
        });
        assert.ok(left > 15_000 && left <= announced / 2 / 1000, `${left}`);
        half.destroy();
    });

    test('who has not the secret uses up nothing of it, by no route; other caps hold', async (t) => {
        const dir = tempDir();
        t.after(() => rmSync(dir, { recursive: true }));
        const file = `${dir}/secret`;
        writeFileSync(file, 'a-long-and-secret-secret\n', { mode: 0o600 });
        const server = await serverFor(t, ['--max-write-rate', '1', '--secret-file', file]);
        const friend = new Stream(server, 'x', TEXT, { Authorization: 'Bearer a-long-and-secret-secret' });
        assert.equal((await friend.put()).status, 201);
        const body = JSON.stringify({ generation: 1, wake_id: 'w', acks: [{ stream: 'x'.repeat(400), offset: '-1' }] }).padEnd(60_000);
        for (const verb of ['callback', 'ack', 'release']) {
            const raw = await Raw.open(server);
            const post = (field) => head('POST', `/v1/stream/__ds/subscriptions/a/${verb}`, ['Authorization: Bearer a.b', field]);
            raw.send(post(`Content-Length: ${body.length}`) + body);
            assert.equal((await raw.response()).status, 404);
            raw.send(`${post('Transfer-Encoding: chunked')}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`);
            assert.equal((await raw.response()).status, 404);
            raw.send(`${post('Content-Length: 65537')}${'x'.repeat(65_537)}`);
            assert.equal((await raw.response()).status, 413);
            raw.destroy();
        }
        assert.equal((await friend.post('y')).status, 204);
    });

    test('writers that heed Retry-After all get through', async (t) => {
        const server = await serverFor(t, ['--max-write-rate', '4KiB']);
        const stream = new Stream(server, 'x');
        await stream.create();
        await Promise.all(Array.from({ length: 8 }, async (_, i) => {
            await eventually('its turn', async () => {
                const reply = await stream.post(String(i).repeat(1024));
                assert.ok([204, 429].includes(reply.status), reply.text);
                return reply.status === 204;
            }, { every: 100 });
        }));
        assert.equal((await stream.get()).body.length, 8 * 1024);
    });
});

describe('--max-waiters', { concurrency: true, timeout: 120_000 }, () => {
    test('one live reader more is told to come again; reads that need not wait are served', async (t) => {
        const server = await serverFor(t, ['--max-waiters', '3', '--long-poll-timeout', '60s']);
        const stream = new Stream(server, 'x');
        await stream.create({}, 'abc');
        const sse = [await Sse.open(stream, 'now'), await Sse.open(stream, 'now')];
        const poll = stream.poll('now');
        await eventually('it waits', async () => await liveReaders(server, 'long_poll') === 1);
        assertRefused(await stream.get('live=sse&offset=now'), 503, /live readers/);
        assertRefused(await stream.poll('now'), 503, /live readers/);
        assert.equal((await stream.poll('-1')).text, 'abc');
        assert.equal((await stream.get()).text, 'abc');
        // Whoever goes makes room, whether it hangs up or was answered.
        sse[0].close();
        const late = await eventually('room', async () => {
            const one = await Raw.open(server);
            one.send(head('GET', `${stream.path}?live=sse&offset=now`));
            const { status } = await one.head();
            if (status === 200) {
                return one;
            }
            one.destroy();
            return null;
        });
        assertRefused(await stream.poll('now'), 503, /live readers/);
        await stream.append('d');
        assert.equal((await poll).text, 'd');
        const next = stream.poll('now');
        await eventually('it waits', async () => await liveReaders(server, 'long_poll') === 1);
        assertRefused(await stream.get('live=sse&offset=now'), 503, /live readers/);
        await stream.close();
        assert.equal((await next).closed, true);
        // A closed stream lets everybody go.
        assert.equal((await stream.poll('now')).status, 204);
        late.destroy();
        sse[1].close();
    });
});
