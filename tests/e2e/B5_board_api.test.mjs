// Tier B5: the board in the server. What T3 hosts tell is what the API shows, in pages and live; readers who come again
// are told what changed, and hosts that break or hang hold up nobody.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmodSync, chownSync, copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { BoardReader, boardServer, hostsFile, wholeBoard } from './lib/board.mjs';
import { request } from './lib/http.mjs';
import { liveReaders, parseMetrics } from './lib/prometheus.mjs';
import { assertRefused, bearer, nobody } from './lib/serve.mjs';
import { BIN, run } from './lib/server.mjs';
import { isStuck } from './lib/tcp.mjs';
import { startPeer, threadRemoved, threadShell, threadUpdated } from './lib/t3_peer.mjs';
import { eventually, randomFrom, rounds, withDeadline } from './lib/wait.mjs';

const TOKEN = 'tok-of-the-tests-4c9f';

async function peerFor(t, options = { token: TOKEN }) {
    const peer = await startPeer(options);
    t.after(() => peer.stop());
    return peer;
}

const at = (minute) => `2026-11-05T00:${String(minute).padStart(2, '0')}:00.000Z`;
// A thread whose newest run was asked for then.
const active = (minute) => ({ latestRunId: 'r-1', latestRunRequestedAt: at(minute), status: 'running' });

// A peer "mac" with those threads, a server that watches it, and its owner.
async function world(t, threads, flags = []) {
    const peer = await peerFor(t);
    peer.list(...threads);
    const server = await boardServer(t, { mac: { url: peer.base, token: TOKEN } }, flags);
    return { peer, server, owner: server.owner };
}

async function isLive(owner, host = 'mac') {
    const reader = await BoardReader.open(owner);
    await reader.hostIs(host, 'live');
    return reader;
}

describe('what is shown', { timeout: 300_000 }, () => {
    test('two hosts: rows and hosts at once, then whatever changes', async (t) => {
        const [mac, box] = [await peerFor(t), await peerFor(t, {})];
        mac.list(threadShell('t-1', { title: 'One', ...active(1) }), threadShell('t-2', { title: 'Two' }));
        box.list(threadShell('t-1', { title: 'Eins', ...active(2) }));
        const server = await boardServer(t, { mac: { url: mac.base, token: TOKEN }, box: { url: box.url } });
        const reader = await isLive(server.owner);
        await reader.hostIs('box', 'live');
        assert.deepEqual(await wholeBoard(server.owner), {
            cursor: reader.cursor,
            hosts: [
                { host: 'mac', state: 'live', full: false, error: null },
                { host: 'box', state: 'live', full: false, error: null },
            ],
            rows: [
                { thread_id: 't-1', title: 'Eins', state: 'running', last_turn_at: at(2), last_message_snippet: null, host: 'box' },
                { thread_id: 't-1', title: 'One', state: 'running', last_turn_at: at(1), last_message_snippet: null, host: 'mac' },
                { thread_id: 't-2', title: 'Two', state: 'idle', last_turn_at: null, last_message_snippet: null, host: 'mac' },
            ],
        });
        assert.equal(reader.rows.size, 3);

        const before = reader.told.length;
        mac.push(threadUpdated('t-2', { title: 'Zwei' }));
        await reader.title('mac/t-2', 'Zwei');
        box.push(threadRemoved('t-1'));
        await reader.until('gone', () => !reader.rows.has('box/t-1'));
        box.push(threadUpdated('t-9', { title: 'Nine' }));
        await reader.title('box/t-9', 'Nine');
        assert.deepEqual(reader.told.slice(before).map(({ event, data }) => [event, data.thread_id, data.host]), [
            ['row', 't-2', 'mac'], ['gone', 't-1', 'box'], ['row', 't-9', 'box'],
        ]);
        assert.deepEqual((await wholeBoard(server.owner)).rows.map(({ title }) => title), ['One', 'Nine', 'Zwei']);
        reader.close();
    });

    test('that somebody is asked is told once, as a member more; a row that asks nobody has none', async (t) => {
        const { peer, owner } = await world(t, [threadShell('t-1', { title: 'One', ...active(1) })]);
        const reader = await isLive(owner);
        const request = { id: 'q-1', kind: 'command', createdAt: at(2) };
        const row = { thread_id: 't-1', title: 'One', state: 'running', last_turn_at: at(1), last_message_snippet: null, host: 'mac' };
        const before = reader.told.length;
        for (const rest of [{ pendingRuntimeRequest: request }, { pendingRuntimeRequest: { ...request, id: 'q-2' } }]) {
            peer.push(threadUpdated('t-1', { title: 'One', ...active(1), ...rest }));
        }
        await reader.until('the question', () => reader.rows.get('mac/t-1').asks === true);
        assert.deepEqual((await wholeBoard(owner)).rows, [{ ...row, asks: true }]);
        peer.push(threadUpdated('t-1', { title: 'One', ...active(1) }));
        await reader.until('the answer', () => !('asks' in reader.rows.get('mac/t-1')));
        assert.deepEqual(reader.told.slice(before).map(({ data }) => data), [{ ...row, asks: true }, row]);
        assert.deepEqual((await wholeBoard(owner)).rows, [row]);
        reader.close();
    });

    test('pages are in order, also around rows that move or go', async (t) => {
        const threads = Array.from({ length: 23 }, (_, i) => threadShell(`t-${i}`, i % 3 === 0 ? {} : active(i % 7)));
        const { peer, owner } = await world(t, threads);
        const reader = await isLive(owner);
        const expected = threads
            .map(({ id, latestRunRequestedAt: time }) => ({ id, time: time ?? '' }))
            .sort((a, b) => (a.time === b.time ? (a.id < b.id ? -1 : 1) : a.time < b.time ? 1 : -1))
            .map(({ id }) => id);
        for (const limit of [1, 4, 23, 1000]) {
            assert.deepEqual((await wholeBoard(owner, limit)).rows.map((row) => row.thread_id), expected, `by ${limit}`);
        }
        const page = await owner.get('/api/board?limit=5');
        peer.push(threadRemoved(expected[4]), threadUpdated(expected[5], { title: 'moved', ...active(59) }));
        await reader.title(`mac/${expected[5]}`, 'moved');
        const next = await owner.get(`/api/board?limit=3&after=${encodeURIComponent(page.nextAfter)}`);
        assert.deepEqual(next.rows.map((row) => row.thread_id), expected.slice(6, 9));
        reader.close();
    });

    test('a page ends at 256 KiB', async (t) => {
        const title = 'x'.repeat(4000);
        const { owner } = await world(t, Array.from({ length: 100 }, (_, i) => threadShell(`t-${i}`, { title })));
        (await isLive(owner)).close();
        const page = await owner.get('/api/board?limit=1000');
        assert.ok(page.rows.length > 50 && page.rows.length < 100 && page.nextAfter !== null, `${page.rows.length} rows`);
        assert.equal((await wholeBoard(owner)).rows.length, 100);
    });

    test('without hosts all is empty, and the stream stays open', async (t) => {
        const server = await boardServer(t, {}, ['--sse-heartbeat', '50ms']);
        assert.deepEqual((({ cursor, ...rest }) => rest)(await server.owner.get('/api/board')), { hosts: [], rows: [], nextAfter: null });
        const reader = await BoardReader.open(server.owner);
        await reader.current();
        await reader.until('signs of life', () => reader.comments > 2);
        assert.deepEqual(reader.told.map(({ event }) => event), ['reset', 'current']);
        assert.ok(!reader.ended);
        reader.close();
    });
});

describe('who comes again', { timeout: 300_000 }, () => {
    test('is told what changed since, each row once', async (t) => {
        const { peer, server, owner } = await world(t, [threadShell('t-1'), threadShell('t-2'), threadShell('t-3')]);
        const first = await isLive(owner);
        first.close();
        const watch = await BoardReader.open(owner);
        for (let i = 0; i < 20; i++) {
            peer.push(threadUpdated('t-2', { title: `Title ${i}` }));
        }
        peer.push(threadRemoved('t-3'));
        await watch.until('gone', () => watch.rows.get('mac/t-2')?.title === 'Title 19' && watch.rows.size === 2);
        const wanted = [['row', 't-2'], ['gone', 't-3'], ['current', undefined]];
        for (const how of [{ id: first.cursor }, { after: first.cursor }, { after: 'x', id: first.cursor }]) {
            const again = await BoardReader.open(owner, { ...how, known: first });
            await again.current();
            assert.deepEqual(again.told.map(({ event, data }) => [event, data.thread_id]), wanted, JSON.stringify(how));
            assert.deepEqual(again.rows, watch.rows);
            again.close();
        }
        const page = await owner.get('/api/board');
        const none = await BoardReader.open(owner, { after: page.cursor });
        await none.current();
        assert.deepEqual(none.told, [{ event: 'current', data: {}, id: page.cursor }]);
        peer.push(threadUpdated('t-1', { title: 'live' }));
        await none.title('mac/t-1', 'live');
        none.close();
        watch.close();
        assert.ok(server.running);
    });

    test('and takes nothing does not hold up the end of the server', async (t) => {
        const title = 'x'.repeat(4000); // more than sockets hold
        const { server, owner } = await world(t, Array.from({ length: 4000 }, (_, i) => threadShell(`t-${i}`, { title })));
        (await isLive(owner)).close();
        const reader = await BoardReader.open(owner);
        reader.raw.socket.pause();
        await eventually('it takes nothing', () => isStuck(server, reader.raw));
        await server.stop();
        assert.doesNotMatch(server.log, /connections that take nothing are dropped/);
        reader.close();
    });

    test('with a cursor that says nothing begins anew', async (t) => {
        const { owner } = await world(t, [threadShell('t-1')]);
        const first = await isLive(owner);
        const [epoch, number] = first.cursor.split('-');
        const other = `${epoch[0] === '0' ? '1' : '0'}${epoch.slice(1)}`;
        for (const how of [{}, { after: `${other}-${number}` }, { after: `${epoch}-${BigInt(number) + 1000n}` }, { id: 'of-another-server' }]) {
            const again = await BoardReader.open(owner, how);
            await again.current();
            assert.equal(again.told[0].event, 'reset', JSON.stringify(how));
            assert.deepEqual(again.rows, first.rows);
            assert.deepEqual(again.hosts, first.hosts);
            again.close();
        }
        first.close();
    });

    test('after a restart of the server begins anew', async (t) => {
        const { server, owner } = await world(t, [threadShell('t-1')]);
        const first = await isLive(owner);
        await server.restart();
        await first.end();
        const again = await BoardReader.open(owner, { id: first.cursor, known: first });
        await again.current();
        assert.equal(again.told[0].event, 'reset');
        await again.hostIs('mac', 'live');
        assert.deepEqual(again.rows, first.rows);
        again.close();
    });

    test('when more went meanwhile than is remembered begins anew', async (t) => {
        const count = 4100;
        const { peer, owner } = await world(t, [threadShell('stays')]);
        const first = await isLive(owner);
        first.close();
        const watch = await BoardReader.open(owner);
        const names = Array.from({ length: count }, (_, i) => `t-${i}`);
        peer.push(...names.map((id) => threadUpdated(id)));
        await watch.until('all', () => watch.rows.size === count + 1);
        const late = watch.cursor;
        peer.push(...names.map((id) => threadRemoved(id)));
        await watch.until('none', () => watch.rows.size === 1);
        const again = await BoardReader.open(owner, { id: late, known: watch });
        await again.current();
        assert.deepEqual(again.told.map(({ event }) => event), ['reset', 'row', 'host', 'current']);
        assert.deepEqual(again.rows, watch.rows);
        again.close();
        watch.close();
    });
});

describe('hosts that break', { timeout: 300_000 }, () => {
    test('a lost one keeps its rows, is said to be lost, and comes back', async (t) => {
        const { peer, server, owner } = await world(t, [threadShell('t-1', { title: 'One' }), threadShell('t-2')]);
        const reader = await isLive(owner);
        await peer.stop();
        const lost = await reader.hostIs('mac', 'lost');
        assert.match(lost.error.code, /^(NETWORK|CLOSED)$/);
        assert.match(lost.error.message, /\w \w/);
        assert.equal(reader.rows.size, 2);
        assert.equal((await wholeBoard(owner)).rows.length, 2);
        peer.threads.delete('t-2');
        peer.list(threadShell('t-1', { title: 'Uno' }));
        await peer.start();
        await reader.hostIs('mac', 'live');
        assert.deepEqual([...reader.rows.values()].map(({ title }) => title), ['Uno']);
        assert.match(server.log, /T3 host "mac" is live/);
        reader.close();
    });

    test('a revoked token: refused, told so, tried again at SIGHUP with the new one', async (t) => {
        const { peer, server, owner } = await world(t, [threadShell('t-1')]);
        const reader = await isLive(owner);
        peer.revoke(TOKEN);
        peer.drop();
        const refused = await reader.hostIs('mac', 'refused');
        assert.equal(refused.error.code, 'AUTH');
        assert.equal(reader.rows.size, 1);
        await eventually('a line of the log', () => /T3 host "mac" refused/.test(server.log));
        server.setToken('mac', peer.grant('tok-another-8aa1'));
        server.child.kill('SIGHUP');
        await reader.hostIs('mac', 'live');
        reader.close();
    });

    test('a token that changes in its file is used at the next connection', async (t) => {
        const { peer, server, owner } = await world(t, [threadShell('t-1')]);
        const reader = await isLive(owner);
        server.setToken('mac', peer.grant('tok-another-8aa1'));
        peer.revoke(TOKEN);
        peer.drop();
        await reader.hostIs('mac', 'lost');
        await reader.hostIs('mac', 'live');
        assert.equal(peer.upgrades.at(-1).headers.authorization, 'Bearer tok-another-8aa1');
        reader.close();
    });

    test('nothing of tokens, titles or addresses is told where it does not belong', async (t) => {
        const { peer, server, owner } = await world(t, [threadShell('t-1', { title: 'a title of somebody' })]);
        const reader = await isLive(owner);
        peer.revoke(TOKEN);
        peer.drop();
        await reader.hostIs('mac', 'refused');
        const { text } = await owner.call('GET', '/api/board');
        const metrics = (await request(server.base, 'GET', '/metrics')).text;
        for (const told of [text, reader.text, metrics]) {
            assert.ok(!told.includes(TOKEN) && !told.includes(String(peer.port)), told);
        }
        assert.ok(!metrics.includes('mac'));
        await server.stop();
        assert.ok(!server.log.includes(TOKEN));
        assert.ok(!server.log.includes('a title of somebody'));
    });

    test('one that takes connections and says nothing holds up neither start, requests nor the end', async (t) => {
        const sockets = [];
        const hung = createServer((socket) => sockets.push(socket.on('error', () => {})));
        await new Promise((done) => hung.listen(0, '127.0.0.1', done));
        t.after(() => {
            sockets.forEach((socket) => socket.destroy());
            hung.close();
        });
        const peer = await peerFor(t);
        peer.list(threadShell('t-1'));
        const server = await boardServer(t, {
            hung: { url: `http://127.0.0.1:${hung.address().port}` },
            mac: { url: peer.base, token: TOKEN },
        });
        const reader = await isLive(server.owner);
        await eventually('a connection to it', () => sockets.length > 0);
        assert.equal(reader.hosts.get('hung').state, 'connecting');
        await server.stop();
        await reader.end();
        assert.doesNotMatch(server.log, /took too long/);
    });
});

describe('who may', { timeout: 300_000 }, () => {
    test('somebody signed in, whoever; nobody else', async (t) => {
        const { owner, server } = await world(t, [threadShell('t-1')]);
        (await isLive(owner)).close();
        for (const path of ['/api/board', '/api/board/stream']) {
            await nobody(server).refused(401, 'auth.unauthenticated', 'GET', path);
            await bearer(server, `arbe_${'0'.repeat(64)}`).refused(401, 'auth.unauthenticated', 'GET', path);
            for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
                const reply = await request(server.base, method, path, { headers: owner.headers });
                assertRefused(reply, 405, 'request.method_not_allowed', `${method} ${path}`);
                assert.equal(reply.headers.allow, 'GET, HEAD, OPTIONS');
            }
            assert.equal((await request(server.base, 'OPTIONS', path)).status, 204);
            const bare = await request(server.base, 'HEAD', path, { headers: owner.headers });
            assert.equal(bare.status, 200);
            assert.equal(bare.body.length, 0);
            assert.match(bare.headers['content-type'], path.endsWith('stream') ? /^text\/event-stream/ : /^application\/json/);
        }
        const stranger = await owner.createAgent('In no house');
        assert.equal((await wholeBoard(stranger)).rows.length, 1);
        const page = await owner.signIn();
        assert.equal((await wholeBoard(page)).rows.length, 1);
        for (const caller of [stranger, page]) {
            const reader = await BoardReader.open(caller);
            await reader.current();
            assert.equal(reader.rows.size, 1);
            reader.close();
        }
    });

    test('what is asked wrongly is refused in words', async (t) => {
        const { owner } = await world(t, []);
        const { cursor } = await owner.get('/api/board');
        for (const [path, field] of [
            ['/api/board?limit=0', 'limit'], ['/api/board?limit=1001', 'limit'], ['/api/board?limit=x', 'limit'],
            ['/api/board?after=', 'after'], ['/api/board?after=x', 'after'], [`/api/board?after=${cursor}`, 'after'],
            [`/api/board?after=${'A'.repeat(3000)}`, 'after'], ['/api/board?befor=1', 'befor'],
            ['/api/board/stream?after=', 'after'], ['/api/board/stream?after=x', 'after'], ['/api/board/stream?after=-1', 'after'],
            [`/api/board/stream?after=${cursor}0x`, 'after'], [`/api/board/stream?after=${'0'.repeat(200)}`, 'after'],
            ['/api/board/stream?limit=1', 'limit'],
        ]) {
            const error = await owner.refused(400, 'validation.invalid_input', 'GET', path);
            assert.equal(error.context.field, field, path);
        }
    });

    test('a stream ends when the key or session does that it was asked with, and no other', async (t) => {
        const { peer, server, owner } = await world(t, [threadShell('t-1')]);
        const others = await isLive(owner);
        const guest = await owner.createAgent('Guest');
        const { key, id } = await guest.ask(201, 'POST', '/api/agents/keys', {});
        const page = await guest.signIn();
        const cases = [
            [bearer(server, key), () => guest.ask(204, 'DELETE', `/api/agents/keys/${id}`)],
            [page, () => page.ask(204, 'DELETE', '/api/session')],
            [guest, () => guest.ask(204, 'DELETE', `/api/agents/${guest.agent.id}`)],
        ];
        for (const [i, [caller, act]] of cases.entries()) {
            const reader = await BoardReader.open(caller);
            await reader.current();
            await act();
            await reader.end();
            await caller.refused(401, 'auth.unauthenticated', 'GET', '/api/board/stream');
            peer.push(threadUpdated('t-1', { title: `after ${i}` }));
            await others.title('mac/t-1', `after ${i}`);
            assert.ok(!reader.text.includes(`after ${i}`));
        }
        assert.ok(!others.ended);
        others.close();
    });

    test('live readers are counted, and refused above --max-waiters', async (t) => {
        const { server, owner } = await world(t, [], ['--max-waiters', '2']);
        const readers = [await isLive(owner), await isLive(owner)];
        assert.equal(await liveReaders(server, 'sse'), 2);
        await owner.refused(503, 'server.busy', 'GET', '/api/board/stream');
        readers[0].close();
        await eventually('its place', async () => (await liveReaders(server, 'sse')) === 1);
        const next = await isLive(owner);
        next.close();
        readers[1].close();
        await eventually('all are gone', async () => (await liveReaders(server, 'sse')) === 0);
    });
});

describe('live readers', { timeout: 300_000 }, () => {
    test('an answer ends by itself, and who goes on misses nothing', async (t) => {
        const { peer, owner } = await world(t, [threadShell('t-1')], ['--sse-lifetime', '100ms']);
        let reader = await BoardReader.open(owner);
        for (let i = 0; i < rounds(10); i++) {
            peer.push(threadUpdated('t-1', { title: `Title ${i}` }));
            await reader.end();
            reader = await BoardReader.open(owner, { id: reader.cursor, known: reader });
        }
        await eventually('the last title', async () => {
            await reader.end();
            reader = await BoardReader.open(owner, { id: reader.cursor, known: reader });
            return reader.rows.get('mac/t-1')?.title === `Title ${rounds(10) - 1}`;
        });
        reader.close();
    });

    test('one that takes nothing holds up nobody, and gets what is so by then', async (t) => {
        const count = 400;
        const { peer, owner } = await world(t, Array.from({ length: count }, (_, i) => threadShell(`t-${i}`)));
        const good = await isLive(owner);
        const slow = await BoardReader.open(owner);
        await slow.current();
        slow.raw.socket.pause();
        const last = rounds(60);
        for (let n = 1; n <= last; n++) {
            const title = `${n} ${'x'.repeat(3000)}`;
            peer.push(...Array.from({ length: count }, (_, i) => threadUpdated(`t-${i}`, { title })));
            await good.until(`round ${n}`, () => good.rows.get(`mac/t-${count - 1}`)?.title === title);
        }
        slow.raw.socket.resume();
        await slow.until('the last round', () => slow.rows.get(`mac/t-${count - 1}`)?.title.startsWith(`${last} `));
        assert.deepEqual(slow.rows, good.rows);
        assert.ok(slow.count('row') < good.count('row') / 2, `${slow.count('row')} of ${good.count('row')} rows`);
        slow.close();
        good.close();
    });

    test('one that misses more than is remembered begins anew in the middle', async (t) => {
        const names = Array.from({ length: 4500 }, (_, i) => `t-${i}`);
        const title = 'x'.repeat(4000);
        const { peer, owner } = await world(t, [threadShell('stays'), ...names.map((id) => threadShell(id, { title }))]);
        const good = await isLive(owner);
        const slow = await BoardReader.open(owner);
        slow.raw.socket.pause(); // 18 MB are more than sockets hold
        for (let at = 0; at < names.length; at += 1500) {
            peer.push(...names.slice(at, at + 1500).map((id) => threadRemoved(id)));
            await good.until('fewer rows', () => good.rows.size === names.length + 1 - at - 1500);
        }
        assert.equal(good.count('reset'), 1);
        slow.raw.socket.resume();
        await slow.current();
        assert.deepEqual(slow.told.filter(({ event }) => event !== 'row').map(({ event }) => event), ['reset', 'reset', 'host', 'current']);
        assert.ok(slow.count('row') > 1 && slow.count('row') < names.length);
        assert.deepEqual(slow.rows, good.rows);
        slow.close();
        good.close();
    });

    test('whatever happens, who reads and comes back has the board', async (t) => {
        const random = randomFrom(20261201);
        const peers = { mac: await peerFor(t), box: await peerFor(t) };
        const server = await boardServer(t, Object.fromEntries(Object.entries(peers).map(([host, { base }]) => [host, { url: base, token: TOKEN }])));
        let reader = await isLive(server.owner);
        await reader.hostIs('box', 'live');
        for (let n = 0; n < rounds(150); n++) {
            const host = random.pick(['mac', 'box']);
            const id = `t-${random.below(8)}`;
            const what = random.below(10);
            if (what < 6) {
                peers[host].push(threadUpdated(id, { title: `Title ${n}`, ...(random.below(2) ? active(random.below(60)) : {}) }));
            } else if (what < 8) {
                peers[host].push(threadRemoved(id));
            } else if (what === 8) {
                peers[host].drop();
            } else {
                reader.close();
                reader = await BoardReader.open(server.owner, { id: reader.cursor, known: reader });
                await reader.current();
                assert.equal(reader.count('reset'), 0);
            }
        }
        for (const [host, peer] of Object.entries(peers)) {
            await eventually(`${host} is live`, () => peer.open('orchestration.subscribeShell').length > 0);
            peer.push(threadUpdated('last', { title: 'the end' }));
            await reader.title(`${host}/last`, 'the end');
        }
        const { rows } = await wholeBoard(server.owner);
        assert.deepEqual(rows.map((row) => JSON.stringify(row)).sort(), [...reader.rows.values()].map((row) => JSON.stringify(row)).sort());
        for (const [host, peer] of Object.entries(peers)) {
            const titles = [...peer.threads.values()].map(({ thread }) => `${thread.id} ${thread.title}`).sort();
            const shown = rows.filter((row) => row.host === host).map((row) => `${row.thread_id} ${row.title}`).sort();
            assert.deepEqual(shown, titles, host);
        }
        reader.close();
    });

    test('HTTP/1.0 has no chunks, and the same events', async (t) => {
        const { peer, server, owner } = await world(t, [threadShell('t-1')]);
        (await isLive(owner)).close();
        const reader = await BoardReader.open(owner, { version: 'HTTP/1.0' });
        assert.equal(reader.headers['transfer-encoding'], undefined);
        await reader.current();
        peer.push(threadUpdated('t-1', { title: 'Uno' }));
        await reader.title('mac/t-1', 'Uno');
        await server.stop();
        await reader.end();
    });

    test('SIGTERM ends streams cleanly', async (t) => {
        const { server, owner } = await world(t, [threadShell('t-1')]);
        const readers = await Promise.all(Array.from({ length: 20 }, () => BoardReader.open(owner)));
        await Promise.all(readers.map((reader) => reader.current()));
        await server.stop();
        await Promise.all(readers.map((reader) => reader.end()));
    });
});

describe('the operator', { timeout: 300_000 }, () => {
    test('is told of hosts that cannot be: exit code 2 and a sentence, before anything is opened', async (t) => {
        const { file } = hostsFile(t, { mac: { url: 'http://127.0.0.1:1' } });
        const [wrong, bare] = [`${file}.wrong.conf`, `${file}.bare.conf`];
        writeFileSync(wrong, '# hosts\nt3 = mac\n');
        writeFileSync(bare, 't3 = http://127.0.0.1:1\n');
        const cases = [
            [['--t3', 'mac=ftp://x'], /--t3: .*it must begin with http/],
            [['--t3', '=http://127.0.0.1:1'], /--t3.*name for a host/],
            [['--t3', 'a b=http://127.0.0.1:1'], /--t3.*name for a host/],
            [['--t3', 'mac'], /there is no host "mac"/],
            [['--t3', 'mac=http://127.0.0.1:1', '--t3', 'mac=http://127.0.0.1:2'], /mac.*twice/],
            [['--t3', 'mac=http://localhost:1', '--t3', 'box=http://127.0.0.1:1/'], /"box" is the same server as "mac"/],
            [['--t3-hosts', file, '--t3', 'mac=http://127.0.0.1:2'], /another URL/],
            [['--t3-hosts', `${file}.none`], /cannot open|no such/i, 1],
            [['--config', wrong], /wrong\.conf:2: t3: there is no host "mac"/],
            [['--config', bare], /bare\.conf:1: t3 takes HOST=URL/],
        ];
        for (const [flags, sentence, code = 2] of cases) {
            const end = await run(['serve', '--listen', '127.0.0.1:0', '--data', `${file}.data`, ...flags], { env: { HOME: '/nonexistent' } });
            assert.equal(end.code, code, `${flags}: ${end.stderr}`);
            assert.match(end.stderr, sentence);
            assert.doesNotMatch(end.stderr, /recover|listening/);
        }
    });

    test('hosts may stand in the environment; the settings in force show them', async (t) => {
        const peer = await peerFor(t, {});
        peer.list(threadShell('t-1'));
        const other = await peerFor(t, {});
        const server = await boardServer(t, {}, [], { env: { HOME: '/nonexistent', ARBE_T3: `mac=${peer.base} box=${other.base}` } });
        (await isLive(server.owner)).close();
        (await isLive(server.owner, 'box')).close();
        const { stdout } = await run(['serve', '--print-config'], { env: { ARBE_T3: 'mac=http://127.0.0.1:1 box=http://127.0.0.1:2' } });
        assert.match(stdout, /^t3 = mac=http:\/\/127\.0\.0\.1:1 box=http:\/\/127\.0\.0\.1:2$/m);
    });

    test('hosts may stand in the configuration file; others there take a restart', async (t) => {
        const peer = await peerFor(t, {});
        const { file } = hostsFile(t, {});
        const config = `${file}.conf`;
        writeFileSync(config, `t3 = mac=${peer.base}\n`);
        const server = await boardServer(t, {}, ['--config', config]);
        const reader = await isLive(server.owner);
        writeFileSync(config, `t3 = mac=${peer.base} box=${peer.base}\n`);
        server.child.kill('SIGHUP');
        await eventually('a line of the log', () => /SIGHUP: reloaded, but t3 takes a restart to change/.test(server.log));
        assert.deepEqual([...reader.hosts.keys()], ['mac']);
        reader.close();
    });

    test('the user\'s own hosts\' file is not that of the server, whatever the environment says', async (t) => {
        const peer = await peerFor(t);
        const { file } = hostsFile(t, { mac: { url: peer.base, token: TOKEN } });
        const server = await boardServer(t, {}, [], { env: { HOME: '/nonexistent', ARBE_T3_HOSTS_FILE: file } });
        const { hosts, rows } = await server.owner.get('/api/board');
        assert.deepEqual([hosts, rows], [[], []]);
        assert.deepEqual(peer.upgrades, []);
    });

    // 0.0.0.0 is this machine, and no address of the loopback: to arbe it could be any.
    test('a token goes over plain http only where the hosts\' file allows it', async (t) => {
        const peer = await peerFor(t, { token: TOKEN, host: '0.0.0.0' });
        const { file } = hostsFile(t, { mac: { url: peer.base, token: TOKEN } });
        const serve = (flags, env = {}) => run(['serve', '--listen', '127.0.0.1:0', '--data', `${file}.data`, ...flags], { env: { HOME: '/nonexistent', ...env } });
        for (const end of [await serve(['--t3-hosts', file]), await serve(['--t3', `mac=${peer.base}`], { ARBE_T3_TOKEN: TOKEN })]) {
            assert.equal(end.code, 2, end.stderr);
            assert.match(end.stderr, /mac: 0\.0\.0\.0:\d+ is not encrypted, and its token could be read on the way: use https, or "allow-http = true" in its section of the hosts' file/);
            assert.ok(!end.stderr.includes(TOKEN));
        }
        assert.deepEqual(peer.upgrades, []);
        writeFileSync(file, `${readFileSync(file, 'utf8')}allow-http = true\n`);
        const server = await boardServer(t, {}, ['--t3-hosts', file]);
        (await isLive(server.owner)).close();
    });

    // As root the commands run as another user, as those of the manual do; else as whoever runs the tests.
    test('the service: the commands of the manual and the sample settings go together', async (t) => {
        const peer = await peerFor(t, { token: null, pairing: 'PAIR-1' });
        const dir = mkdtempSync('/tmp/arbe-e2e-'); // TMPDIR may be closed to others
        t.after(() => rmSync(dir, { recursive: true }));
        const id = process.getuid() === 0 ? { uid: 65534, gid: 65534 } : {};
        const bin = join(dir, 'arbe');
        copyFileSync(BIN, bin);
        chmodSync(bin, 0o755);
        chownSync(dir, id.uid ?? process.getuid(), id.gid ?? process.getgid());
        const file = (name) => readFileSync(join(import.meta.dirname, '../..', name), 'utf8');
        const here = (text) => text.replaceAll('/var/lib/arbe', dir).replaceAll('https://mac.example', peer.base);
        const [, login] = /^sudo -u arbe arbe (t3 login .*)$/m.exec(file('docs/operations.md'));
        const [, setting] = /^echo '(.*)' \| sudo tee -a \/etc\/arbe\/serve\.conf$/m.exec(file('docs/operations.md'));
        assert.ok(file('tools/install/serve.conf').includes(`# ${setting}\n`));
        assert.match(file('tools/install/arbe.service'), /^User=arbe$[^]*^StateDirectory=arbe$/m);
        const start = (args, input = '') => {
            const child = spawn(bin, args, { ...id, env: { PATH: process.env.PATH, HOME: '/nonexistent' } });
            const ended = new Promise((done) => child.on('close', done));
            const state = { child, ended, said: '' };
            child.stdout.resume();
            child.stderr.setEncoding('utf8').on('data', (text) => { state.said += text; });
            child.stdin.end(input);
            return state;
        };
        const signedIn = start(here(login).split(' '), 'PAIR-1');
        assert.equal(await signedIn.ended, 0, signedIn.said);
        writeFileSync(join(dir, 'conf'), `${here(setting)}\n`);
        const server = start(['serve', '--config', join(dir, 'conf'), '--data', join(dir, 'serve'), '--listen', '127.0.0.1:0']);
        t.after(() => server.child.kill('SIGKILL'));
        await eventually('a live host', () => /T3 host "mac" is live/.test(server.said));
        server.child.kill('SIGTERM');
        assert.equal(await server.ended, 0, server.said);
    });

    test('a token in the environment is that of the one host', async (t) => {
        const peer = await peerFor(t);
        peer.list(threadShell('t-1'));
        const env = { HOME: '/nonexistent', ARBE_T3_TOKEN: TOKEN };
        const server = await boardServer(t, {}, ['--t3', `mac=${peer.base}`], { env });
        (await isLive(server.owner)).close();
        const two = await run(['serve', '--data', `${server.dir}.none`, '--t3', 'a=http://127.0.0.1:1', '--t3', 'b=http://127.0.0.1:2'], { env });
        assert.equal(two.code, 2);
        assert.match(two.stderr, /ARBE_T3_TOKEN is for one host/);
        assert.ok(!two.stderr.includes(TOKEN) && !server.log.includes(TOKEN));
    });

    test('sees rows and hosts in /metrics', async (t) => {
        const { peer, server, owner } = await world(t, [threadShell('t-1'), threadShell('t-2')]);
        const reader = await isLive(owner);
        const scrape = async () => parseMetrics((await request(server.base, 'GET', '/metrics')).text);
        let metrics = await scrape();
        assert.equal(metrics.value('arbe_board_rows'), 2);
        assert.deepEqual(metrics.all('arbe_board_hosts'), { live: 1 });
        peer.revoke(TOKEN);
        peer.drop();
        await reader.hostIs('mac', 'refused');
        metrics = await scrape();
        assert.deepEqual(metrics.all('arbe_board_hosts'), { refused: 1 });
        assert.equal(metrics.value('arbe_board_rows'), 2);
        reader.close();

        const docs = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');
        const told = [...docs.matchAll(/^\| `(arbe_board_\w+)` \| (\w+) \|([^|]*)\|/gm)];
        assert.deepEqual(told.map((row) => row[1]), [...metrics.families.keys()].slice(-2));
        for (const [, name, type, labels] of told) {
            assert.equal(metrics.family(name).type, type, name);
            assert.deepEqual([...metrics.labels(name)], [...labels.matchAll(/`(\w+)`/g)].map((hit) => hit[1]), name);
        }
    });
});
