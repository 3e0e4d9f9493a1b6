// Tier 60: /metrics and /health. Every number that can be known is checked
// exactly, the format strictly, and the table in docs/operations.md both ways.
import assert from 'node:assert/strict';
import { closeSync, openSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Faults, buildFaultLibrary } from './lib/faults.mjs';
import { testUnless } from './lib/impossible.mjs';
import { OCTETS, Stream, TEXT, producer, request } from './lib/http.mjs';
import { lastingPort } from './lib/port.mjs';
import { parseMetrics } from './lib/prometheus.mjs';
import { Raw, exchange, head } from './lib/raw.mjs';
import { headerLines, nobody, proxied, serveFor, startServe } from './lib/serve.mjs';
import { Server, serverFor, tempDir } from './lib/server.mjs';
import { Sse } from './lib/sse.mjs';
import { LONG_LEASE_MS, Receiver, Subscription, WakeReader, acksOf, jsonStream } from './lib/subscriptions.mjs';
import { eventually, rounds } from './lib/wait.mjs';

async function scrape(server, headers = {}) {
    const reply = await request(server.base, 'GET', '/metrics', { headers });
    assert.equal(reply.status, 200, reply.text);
    assert.equal(reply.headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8');
    assert.match(reply.headers['cache-control'], /no-store/);
    return parseMetrics(reply.text);
}

const REQUESTS = 'arbe_http_requests_total';
const count = (metrics, name) => metrics.value(`${name}_count`);

describe('metrics: known traffic, known numbers', { timeout: 300_000 }, () => {
    test('requests by method and status, errors by kind, bytes and appends', async (t) => {
        const server = await serverFor(t, ['--workers', '4', '--max-body', '1KiB', '--read-page', '1KiB']);
        const stream = new Stream(server, 'a-name-that-nobody-is-told', TEXT);
        await stream.create({}, 'first;');
        assert.equal((await stream.put()).status, 200);
        for (let i = 0; i < 7; i++) {
            await stream.append('0123456789', {}, { fresh: true });
        }
        await stream.append('p', producer('p', 0, 0));
        assert.equal((await stream.post('p', producer('p', 0, 0))).status, 204, 'a duplicate');
        assert.equal((await stream.post('q', producer('p', 0, 5))).status, 409, 'a gap');
        assert.equal((await stream.post('x', { 'Content-Type': OCTETS })).status, 409, 'another type');
        assert.equal((await stream.post('')).status, 400, 'no body');
        assert.equal((await stream.post('x'.repeat(1025))).status, 413);
        assert.equal((await stream.get()).text.length, 77);
        assert.equal((await stream.get('offset=now')).status, 200);
        assert.equal((await stream.get('offset=never')).status, 400);
        assert.equal((await stream.head()).status, 200);
        assert.equal((await new Stream(server, 'none').get()).status, 404);
        assert.equal((await new Stream(server, 'none').remove()).status, 404);
        assert.equal((await request(server.base, 'OPTIONS', stream.path)).status, 204);
        assert.equal((await exchange(server, head('PATCH', stream.path), 'PATCH')).status, 405);
        assert.equal((await exchange(server, 'NO REQUEST\r\n\r\n')).status, 400);
        assert.equal((await stream.close()).status, 204);
        assert.equal((await stream.post('late')).status, 409);
        assert.equal((await stream.remove()).status, 204);

        const metrics = await scrape(server);
        assert.deepEqual(metrics.all(REQUESTS), {
            'other 400': 1, 'PATCH 405': 1,
            'GET 200': 2, 'GET 400': 1, 'GET 404': 1,
            'HEAD 200': 1,
            'PUT 200': 1, 'PUT 201': 1,
            'POST 200': 1, 'POST 204': 9, 'POST 400': 1, 'POST 409': 3, 'POST 413': 1,
            'DELETE 204': 1, 'DELETE 404': 1,
            'OPTIONS 204': 1,
        });
        assert.deepEqual(metrics.all('arbe_errors_total'),
                         { NOTFOUND: 2, CONFLICT: 2, INVALID: 2, TOOBIG: 1, CLOSED: 1 });
        const sent = 'first;'.length + 70 + 'p'.length * 2 + 'q'.length + 'x'.length + 'late'.length;
        assert.equal(metrics.value('arbe_http_request_body_bytes_total'), sent);
        assert.equal(count(metrics, 'arbe_append_duration_seconds'), 10);
        assert.equal(metrics.value('arbe_log_commit_records_sum'), 1 + 7 + 1 + 1 + 1, 'create, appends, close, delete');
        assert.ok(metrics.value('arbe_log_written_bytes_total') >= 77);
        assert.equal(metrics.value('arbe_budget_bytes', { budget: 'staged' }), 0);
        assert.equal(metrics.value('arbe_budget_bytes', { budget: 'bodies' }), 0);
        assert.equal(metrics.value('arbe_budget_limit_bytes', { budget: 'bodies' }), 256 << 20);
        assert.equal(metrics.value('arbe_log_failed'), 0);
        assert.equal(metrics.value('arbe_checkpoint_failing'), 0);
        assert.equal(metrics.value('arbe_build_info', { version: '0.1.0' }), 1);

        const again = await scrape(server);
        assert.equal(again.all(REQUESTS)['GET 200'], 3, 'a scrape counts, once it was answered');
    });

    test('bodies of answers: pages, JSON brackets, SSE frames, nothing for HEAD', async (t) => {
        const server = await serverFor(t);
        const bytes = async () => {
            const reply = await request(server.base, 'GET', '/metrics');
            const metrics = parseMetrics(reply.text);
            // The scrape's own answer is not among them yet.
            return { total: metrics.value('arbe_http_response_body_bytes_total'), own: reply.body.length };
        };
        const stream = new Stream(server, 's', 'application/json');
        await stream.create({}, '["abc",1]');
        let before = await bytes();
        const step = async (what, work) => {
            const wanted = await work();
            const after = await bytes();
            assert.equal(after.total - before.total - before.own, wanted, what);
            before = after;
        };
        await step('a page', async () => (await stream.get()).body.length);
        await step('HEAD', async () => {
            await request(server.base, 'HEAD', '/metrics');
            await stream.head();
            return 0;
        });
        await step('a problem', async () => (await new Stream(server, 'none').get()).body.length);
        await step('SSE', async () => {
            const sse = await Sse.open(stream, '-1');
            await sse.data();
            await sse.control();
            const { length } = Buffer.from(sse.text);
            sse.close();
            return length;
        });
    });

    test('connections and waiters go up and down', async (t) => {
        const server = await serverFor(t, ['--max-connections', '10', '--workers', '2']);
        const stream = new Stream(server, 's', TEXT);
        const own = await Raw.open(server);
        const ask = async () => {
            own.send(head('GET', '/metrics'));
            const reply = await own.response();
            assert.equal(reply.status, 200);
            return parseMetrics(reply.body.toString());
        };
        own.send(head('PUT', stream.path, ['Content-Type: text/plain', 'Content-Length: 1']) + 'x');
        assert.equal((await own.response()).status, 201);
        let metrics = await ask();
        assert.equal(metrics.value('arbe_connections'), 1);
        assert.equal(metrics.value('arbe_connections_limit'), 10);
        const polls = await Promise.all([1, 2].map(async () => {
            const raw = await Raw.open(server);
            raw.send(head('GET', `${stream.path}?offset=now&live=long-poll`));
            return raw;
        }));
        const sses = await Promise.all([1, 2, 3].map(() => Sse.open(stream, 'now')));
        metrics = await eventually('all wait', async () => {
            const now = await ask();
            return now.value('arbe_waiters', { mode: 'long_poll' }) === 2 && now;
        });
        assert.equal(metrics.value('arbe_waiters', { mode: 'sse' }), 3);
        assert.equal(metrics.value('arbe_connections'), 6);
        const rest = await Promise.all([1, 2, 3, 4].map(() => Raw.open(server)));
        await eventually('they are in', async () => (await ask()).value('arbe_connections') === 10);
        const refused = await Raw.open(server);
        refused.send(head('GET', '/health'));
        assert.equal((await refused.response()).status, 503);
        metrics = await ask();
        assert.equal(metrics.value('arbe_connections_accepted_total'), 10);
        assert.equal(metrics.value('arbe_connections_refused_total'), 1);
        assert.equal(metrics.all(REQUESTS)['GET 503'], 1, 'a refusal is an answer');
        own.send(head('POST', stream.path, ['Content-Type: text/plain', 'Content-Length: 1']) + 'y');
        assert.equal((await own.response()).status, 204);
        for (const poll of polls) {
            assert.equal((await poll.response()).status, 200);
        }
        assert.equal((await ask()).value('arbe_waiters', { mode: 'long_poll' }), 0);
        for (const one of [...polls, ...rest, refused]) {
            one.destroy();
        }
        sses.forEach((sse) => sse.close());
        metrics = await eventually('they are gone', async () => {
            const now = await ask();
            return now.value('arbe_connections') === 1 && now;
        });
        assert.deepEqual(metrics.all('arbe_waiters'), {});
        own.destroy();
    });

    test('checkpoints, packs, log and compaction', async (t) => {
        const server = await serverFor(t, ['--checkpoint-interval', '50ms', '--wal-segment', '64KiB']);
        const streams = Array.from({ length: 5 }, (_, i) => new Stream(server, `s${i}`, OCTETS));
        for (const stream of streams) {
            await stream.create({}, Buffer.alloc(10_000, 'x'));
        }
        const du = (name) => readdirSync(join(server.dir, name))
            .reduce((sum, file) => sum + statSync(join(server.dir, name, file)).size, 0);
        let metrics = await eventually('all is saved', async () => {
            const now = await scrape(server);
            return now.value('arbe_packs') > 0 && now.value('arbe_budget_bytes', { budget: 'log' }) === 0 && now;
        });
        assert.ok(count(metrics, 'arbe_checkpoint_duration_seconds') >= 1);
        assert.equal(metrics.value('arbe_streams'), 5);
        assert.equal(metrics.value('arbe_stream_bytes'), 50_000);
        assert.equal(metrics.value('arbe_streams_loaded'), 5);
        assert.equal(metrics.value('arbe_pack_live_bytes') >= 50_000, true);
        assert.equal(metrics.value('arbe_pack_bytes'), du('packs'));
        assert.equal(metrics.value('arbe_packs'), readdirSync(join(server.dir, 'packs')).length);
        assert.equal(metrics.value('arbe_log_file_bytes'), du('wal'));
        assert.equal(metrics.value('arbe_budget_bytes', { budget: 'hot' }), 0);
        for (const stream of streams) {
            await stream.remove();
        }
        metrics = await eventually('the packs are gone', async () => {
            const now = await scrape(server);
            return now.value('arbe_packs') === 0 && now;
        });
        assert.ok(count(metrics, 'arbe_compaction_duration_seconds') >= 1);
        assert.equal(metrics.value('arbe_streams'), 0);
        assert.equal(metrics.value('arbe_stream_bytes'), 0);
        assert.equal(metrics.value('arbe_checkpoint_failures_total'), 0);
        assert.equal(metrics.value('arbe_compaction_failures_total'), 0);
    });

    test('one batch of the log holds many records when many write at once', async (t) => {
        const server = await serverFor(t);
        const streams = Array.from({ length: 32 }, (_, i) => new Stream(server, `s${i}`, TEXT));
        await Promise.all(streams.map((stream) => stream.create()));
        const each = rounds(50);
        await Promise.all(streams.map(async (stream) => {
            for (let i = 0; i < each; i++) {
                await stream.append('x');
            }
        }));
        const metrics = await scrape(server);
        assert.equal(metrics.value('arbe_log_commit_records_sum'), 32 + 32 * each);
        assert.equal(count(metrics, 'arbe_log_commit_records'), count(metrics, 'arbe_log_commit_duration_seconds'));
        assert.ok(count(metrics, 'arbe_log_commit_records') < 32 + 32 * each, 'some were shared');
        assert.equal(count(metrics, 'arbe_append_duration_seconds'), 32 * each);
    });

    test('subscriptions: webhooks and wake events by result, wakes, links, leases', async (t) => {
        const server = await serverFor(t, ['--webhooks-allow-loopback']);
        const receiver = await Receiver.open(t, (delivery, index) => {
            if (index === 0) {
                delivery.answer('no', 500);
            } else {
                delivery.answer({ done: true });
            }
        });
        const hook = new Subscription(server, 'a-hook-that-nobody-is-told');
        await hook.create({ type: 'webhook', pattern: 'in/*', webhook: { url: receiver.url } });
        const wake = jsonStream(server, 'wake');
        await wake.create();
        const pull = new Subscription(server, 'pull');
        await pull.create({ type: 'pull-wake', pattern: 'in/*', wake_stream: 'wake', lease_ttl_ms: LONG_LEASE_MS });
        await jsonStream(server, 'in/a').create({}, '[1]');
        await new WakeReader(wake).of(pull);
        const claim = await pull.claimed();
        let metrics = await eventually('the webhook went through', async () => {
            const now = await scrape(server);
            return now.all('arbe_subscription_deliveries_total').ok === 1 &&
                now.value('arbe_subscription_leases') === 1 && now;
        });
        assert.deepEqual(metrics.all('arbe_subscription_deliveries_total'), { ok: 1, failed: 1 });
        assert.deepEqual(metrics.all('arbe_subscription_events_total'), { ok: 1 });
        assert.deepEqual(metrics.all('arbe_subscription_deliveries_pending'), {});
        assert.equal(metrics.value('arbe_subscriptions'), 2);
        assert.equal(metrics.value('arbe_subscription_links'), 2);
        assert.equal(metrics.value('arbe_subscription_wakes_total'), 2);
        assert.equal((await pull.ack(claim, { acks: acksOf(claim), done: true })).status, 200);
        assert.equal((await hook.remove()).status, 204);
        // The gauges follow the answers.
        metrics = await eventually('all is done', async () => {
            const now = await scrape(server);
            return ['leases', 'queue'].every((what) => now.value(`arbe_subscription_${what}`) === 0) &&
                now.value('arbe_subscription_links') === 1 && now;
        });
        assert.equal(metrics.value('arbe_subscriptions'), 1);
    });

    test('threads: entries, duplicates, refusals by code, calls, writes of the last entry\'s time', async (t) => {
        const server = await serveFor(t);
        const { owner, house } = server;
        const entries = async () => (await scrape(server)).value('arbe_thread_entries_total');
        const thread = await owner.createThread(house.id);
        assert.equal(await entries(), 3, 'of the house, of its thread, of the other thread');
        await owner.say(thread.id, 'one');
        await owner.say(thread.id, 'two', { id: 'mine' });
        const path = `/api/threads/${thread.id}/entries`;
        const chat = { payload: { type: 'chat', text: 'x' } };
        await owner.ask(200, 'POST', path, { id: 'mine', ...chat });
        await owner.refused(400, 'validation.invalid_input', 'POST', path, { payload: { type: 'none' } });
        await owner.refused(404, 'record.not_found', 'POST', '/api/threads/none/entries', chat);
        await owner.refused(404, 'record.not_found', 'GET', '/api/threads/none');
        await nobody(server).refused(401, 'auth.unauthenticated', 'POST', path, chat);
        const sandbox = await owner.mint(thread.id);
        const write = (status, ...ids) => sandbox.ask(status, 'POST', `/api/stream/arbe-thread-${thread.id}`,
            ids.map((id) => ({ id, payload: { type: 'pi.chunk', contentIndex: 0, block: 'text', delta: id } })));
        await write(201, 'a', 'b');
        await write(201, 'b', 'c');
        await write(400);
        const metrics = await scrape(server);
        assert.equal(metrics.value('arbe_thread_entries_total'), 3 + 2 + 3);
        assert.equal(metrics.value('arbe_thread_duplicates_total'), 2);
        assert.deepEqual(metrics.all('arbe_thread_posts_refused_total'),
                         { 'validation.invalid_input': 2, 'record.not_found': 1, 'auth.unauthenticated': 1 });
        await eventually('no call is left', async () => // its thread may have answered and not gone
            Object.keys((await scrape(server)).all('arbe_thread_calls')).length === 0);
        for (const name of ['outbox_waiting', 'outbox_oldest_seconds', 'relays', 'records_failed']) {
            assert.equal(metrics.value(`arbe_thread_${name}`), 0, name);
        }
        await eventually('the times of both threads are written', async () =>
            (await scrape(server)).value('arbe_thread_recency_writes_total') >= 2);
    });

    test('threads at another server: what streams are owed, and for how long; reads under way', async (t) => {
        const streams = await serverFor(t, ['--listen', `127.0.0.1:${await lastingPort()}`]);
        const server = await serveFor(t, ['--streams-url', `${streams.base}/v1/stream`]);
        const { owner, house } = server;
        const follow = await Sse.open(proxied(owner, house.primaryThreadId), 'now', { headers: headerLines(owner) });
        await follow.until('an event', () => follow.events.length > 0);
        assert.equal((await scrape(server)).value('arbe_thread_relays'), 1);
        await streams.crash();
        await eventually('it ends', async () => (await scrape(server)).value('arbe_thread_relays') === 0);
        await owner.createThread(house.id);
        const owed = await eventually('it is owed', async () => {
            const now = await scrape(server);
            return now.value('arbe_thread_outbox_oldest_seconds') > 0 && now;
        });
        assert.equal(owed.value('arbe_thread_outbox_waiting'), 2, 'a stream and its first entry');
        const first = owed.value('arbe_thread_outbox_oldest_seconds');
        await eventually('it grows old, however often it is tried', async () =>
            (await scrape(server)).value('arbe_thread_outbox_oldest_seconds') > first + 0.5);
        await streams.start();
        await eventually('nothing is owed', async () => {
            const now = await scrape(server);
            return now.value('arbe_thread_outbox_waiting') === 0 && now.value('arbe_thread_outbox_oldest_seconds') === 0;
        });
    });

    test('in memory mode there is no log to count', async (t) => {
        const server = await serverFor(t, ['--durability', 'memory']);
        const stream = new Stream(server, 's', TEXT);
        await stream.create();
        await stream.append('x');
        const metrics = await scrape(server);
        assert.equal(count(metrics, 'arbe_log_commit_records'), 0);
        assert.equal(metrics.value('arbe_log_file_bytes'), 0);
        assert.equal(count(metrics, 'arbe_append_duration_seconds'), 1);
    });

    test('scrapes under load are well-formed and never go back', async (t) => {
        const server = await serverFor(t, ['--workers', '3', '--checkpoint-interval', '50ms']);
        const stream = new Stream(server, 's', TEXT);
        await stream.create();
        let writing = true;
        let acked = 0;
        const writers = Array.from({ length: 8 }, async () => {
            while (writing) {
                await stream.append('0123456789');
                acked++;
            }
        });
        let last = null;
        for (let i = 0; i < rounds(60); i++) {
            const before = acked;
            const now = await scrape(server);
            for (const { name, type, samples } of now.families.values()) {
                for (const one of samples.filter(() => type !== 'gauge')) {
                    assert.ok(one.value >= (last?.value(one.name, Object.fromEntries(one.labels)) ?? 0), name);
                }
            }
            const seen = count(now, 'arbe_append_duration_seconds');
            assert.ok(seen >= before && seen <= acked + 8, `${before} <= ${seen} <= ${acked} + 8`);
            last = now;
        }
        writing = false;
        await Promise.all(writers);
        assert.equal(count(await scrape(server), 'arbe_append_duration_seconds'), acked);
    });
});

describe('metrics: what an operator may rely on', { timeout: 300_000 }, () => {
    test('the table in docs/operations.md is complete and right', async (t) => {
        const docs = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');
        const all = [...docs.matchAll(/^\| `((?:arbe|process)_\w+)` \| (\w+) \|([^|]*)\|/gm)];
        const check = async (server, rows) => {
            const stream = new Stream(server, 'secret-name', TEXT);
            await stream.create();
            const reply = await request(server.base, 'GET', '/metrics');
            const metrics = parseMetrics(reply.text);
            assert.ok(!reply.text.includes('secret-name'), 'no name of a stream is told');
            assert.deepEqual(rows.map((row) => row[1]), [...metrics.families.keys()]);
            for (const [, name, type, labels] of rows) {
                assert.equal(metrics.family(name).type, type, name);
                const named = [...labels.matchAll(/`(\w+)`/g)].map((hit) => hit[1]);
                assert.deepEqual([...metrics.labels(name)].sort(), named.sort(), `labels of ${name}`);
            }
        };
        await check(await serverFor(t), all.filter((row) => !/^arbe_(thread|board)_/.test(row[1])));
        await check(await serveFor(t), all);
    });

    test('with a secret /metrics asks for it, and /health does not', async (t) => {
        const settings = tempDir();
        t.after(() => rmSync(settings, { recursive: true }));
        const file = join(settings, 'secret');
        writeFileSync(file, 'correct-horse-battery-staple\n', { mode: 0o600 });
        const server = await serverFor(t, ['--secret-file', file]);
        for (const method of ['GET', 'HEAD', 'POST']) {
            assert.equal((await request(server.base, method, '/metrics')).status, 401, method);
        }
        const wrong = { Authorization: 'Bearer correct-horse-battery-stapler' };
        assert.equal((await request(server.base, 'GET', '/metrics', { headers: wrong })).status, 401);
        const right = { Authorization: 'Bearer correct-horse-battery-staple' };
        const metrics = await scrape(server, right);
        assert.equal(metrics.all(REQUESTS)['GET 401'], 2);
        assert.deepEqual((await request(server.base, 'GET', '/health')).json(), { status: 'ready' });
    });

    test('only GET and HEAD', async (t) => {
        const server = await serverFor(t);
        for (const path of ['/metrics', '/health']) {
            for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
                const reply = await request(server.base, method, path);
                assert.equal(reply.status, 405);
                assert.equal(reply.headers.allow, 'GET, HEAD, OPTIONS');
            }
            const got = await request(server.base, 'HEAD', path);
            assert.equal(got.status, 200);
            assert.equal(got.body.length, 0);
            assert.ok(Number(got.headers['content-length']) > 10);
            assert.equal((await request(server.base, 'GET', `${path}?a=b`)).status, 200);
        }
        assert.equal((await request(server.base, 'GET', '/metrics/')).status, 404);
    });

    test('/health says draining to a connection that was open before', async (t) => {
        const server = await serverFor(t);
        const raw = await Raw.open(server);
        raw.send('GET /health HTTP/1.1\r\nHost: x\r\n');
        const other = await Raw.open(server);
        other.send('GET /v1/stream/a HTTP/1.1\r\nHost: x\r\n');
        // Both heads have begun, for later requests on the same workers are answered.
        for (let i = 0; i < 4; i++) {
            await request(server.base, 'GET', '/health', { fresh: true });
        }
        server.expectGone();
        server.child.kill('SIGTERM');
        await eventually('it drains', () => server.log.includes('draining'));
        await assert.rejects(eventually('it still accepts', async () => {
            const late = await Raw.open(server);
            late.destroy();
            return false;
        }, { every: 5 }), /ECONN/);
        raw.send('\r\n');
        const reply = await raw.response();
        assert.equal(reply.status, 503);
        assert.equal(JSON.parse(reply.body).status, 'draining');
        other.send('\r\n');
        assert.equal((await other.response()).status, 503);
        assert.deepEqual(await server.exited, { code: 0, signal: null });
    });
});

const { library, impossible } = buildFaultLibrary();
const faultTest = testUnless(impossible);

describe('metrics and health: when the disk fails', { timeout: 300_000 }, () => {
    async function withFaults(flags, body) {
        const faults = new Faults(library);
        const server = new Server(flags, { env: faults.env });
        try {
            await server.start();
            await body(server, faults);
        } finally {
            faults.clear();
            server.expectGone();
            await server.dispose().catch(() => {});
            faults.dispose();
        }
    }
    const health = (server) => request(server.base, 'GET', '/health');

    faultTest('a failed log', async () => {
        await withFaults([], async (server, faults) => {
            const stream = new Stream(server, 's', TEXT);
            await stream.create();
            assert.deepEqual((await health(server)).json(), { status: 'ready' });
            faults.set('sync wal EIO');
            assert.equal((await stream.post('x')).status, 503);
            assert.equal((await stream.post('y')).status, 503);
            const reply = await health(server);
            assert.equal(reply.status, 503);
            assert.match(reply.headers['content-type'], /^application\/json/);
            assert.equal(reply.json().status, 'log_failed');
            assert.match(reply.json().detail, /restart/);
            assert.ok(!reply.text.includes(server.dir), 'nothing of the inside');
            const metrics = await scrape(server);
            assert.equal(metrics.value('arbe_log_failed'), 1);
            assert.deepEqual(metrics.all('arbe_errors_total'), { UNKNOWN: 1, FAILED: 1 });
            assert.equal(metrics.value('arbe_log_commit_records_sum'), 1);
            await eventually('the line in the log', () => / error +the log in .* failed/.test(server.log));
        });
    });

    faultTest('a failed checkpoint, and that it is over is no error', async () => {
        await withFaults(['--checkpoint-interval', '100ms'], async (server, faults) => {
            const stream = new Stream(server, 's', OCTETS);
            faults.set('sync packs EIO');
            await stream.create({}, 'x'.repeat(1000));
            await faults.hit();
            await eventually('health tells', async () => (await health(server)).status === 503);
            const reply = await health(server);
            assert.equal(reply.json().status, 'checkpoint_failed');
            assert.ok(!reply.text.includes(server.dir), 'nothing of the inside');
            let metrics = await scrape(server);
            assert.equal(metrics.value('arbe_checkpoint_failing'), 1);
            assert.ok(metrics.value('arbe_checkpoint_failures_total') >= 1);
            const before = count(metrics, 'arbe_checkpoint_duration_seconds');
            faults.clear();
            await eventually('health is good again', async () => (await health(server)).status === 200);
            metrics = await scrape(server);
            assert.equal(metrics.value('arbe_checkpoint_failing'), 0);
            assert.equal(count(metrics, 'arbe_checkpoint_duration_seconds'), before + 1);
            await eventually('both lines in the log', () => / error +checkpoints of .* fail/.test(server.log) &&
                / info +checkpoints of .* work again/.test(server.log));
        });
    });

    const failedRecords = async (server, pattern) => {
        const reply = await health(server);
        assert.equal(reply.status, 503);
        assert.equal(reply.json().status, 'records_failed');
        assert.match(reply.json().detail, pattern);
        assert.ok(!reply.text.includes(server.dir), 'nothing of the inside');
        assert.equal((await scrape(server)).value('arbe_thread_records_failed'), 1);
        const lines = () => server.log.match(/ error +the records of threads have failed: app\.db: /g) ?? [];
        await eventually('the line in the log', () => lines().length > 0);
        assert.equal(lines().length, 1, server.log);
    };

    test('records that are damaged where nothing looked at the start', async (t) => {
        const server = await startServe();
        t.after(() => {
            server.expectGone();
            return server.crash().finally(() => server.dispose());
        });
        const { owner } = server;
        await owner.ask(201, 'POST', '/api/agents', { name: 'One' });
        assert.deepEqual((await health(server)).json(), { status: 'ready' });
        for (const [name, header] of [['app.db', 4096], ['app.db-wal', 32]]) {
            const path = join(server.dir, name);
            const fd = openSync(path, 'r+');
            writeSync(fd, Buffer.alloc(statSync(path).size - header, 0xff), 0, undefined, header);
            closeSync(fd);
        }
        // A change makes those who read look at the file again.
        await owner.call('POST', '/api/agents', { name: 'Two' });
        for (let i = 0; i < 3; i++) {
            await owner.refused(500, 'server.internal', 'GET', '/api/houses');
        }
        await failedRecords(server, /damaged.* verify .* backup/);
    });

    faultTest('records whose disk fails', async (t) => {
        const faults = new Faults(library);
        const server = await startServe([], { env: faults.env });
        t.after(async () => {
            faults.clear();
            await server.dispose();
            faults.dispose();
        });
        faults.set('sync app.db-wal EIO');
        for (let i = 0; i < 2; i++) {
            const reply = await server.owner.call('POST', '/api/agents', { name: 'One' });
            assert.ok([500, 503].includes(reply.status), reply.text);
        }
        faults.clear();
        await server.owner.ask(201, 'POST', '/api/agents', { name: 'Two' });
        await failedRecords(server, /disk.* restart/);
        await server.restart();
        assert.deepEqual((await health(server)).json(), { status: 'ready' });
    });

    faultTest('commits are as slow as the disk', async () => {
        await withFaults([], async (server, faults) => {
            const stream = new Stream(server, 's', TEXT);
            await stream.create();
            faults.set('sync wal hold');
            const pending = stream.post('x');
            await faults.hit();
            const metrics = await scrape(server);
            assert.ok(metrics.value('arbe_budget_bytes', { budget: 'staged' }) > 0);
            assert.equal(count(metrics, 'arbe_append_duration_seconds'), 0);
            const began = performance.now();
            await eventually('a while', () => performance.now() - began > 70);
            faults.clear();
            assert.equal((await pending).status, 204);
            const after = await scrape(server);
            for (const name of ['arbe_log_commit_duration_seconds', 'arbe_append_duration_seconds']) {
                assert.ok(after.value(`${name}_sum`) >= 0.07, name);
            }
        });
    });
});
