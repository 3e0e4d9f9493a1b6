// Tier B2: a reader of a T3 Code server (arbe/t3_reader.h), through everything that breaks.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, test } from 'node:test';
import { tempDir } from './lib/server.mjs';
import { SHELL, THREAD, startPeer, threadShell, threadUpdated } from './lib/t3_peer.mjs';
import { T3Client } from './lib/t3_client.mjs';
import { SANITIZER } from './lib/wait.mjs';

const TOKEN = 'a-token-of-tests-0123456789';
const DELAY = 20;
const MAX_DELAY = 60;
const open = [];

async function peerWith(options = {}) {
    const peer = await startPeer({ token: TOKEN, ...options });
    open.push(() => peer.stop());
    return peer;
}

// A reader with a subscription to the shell, id 1, unless told otherwise.
async function readerOf(peer, options = {}) {
    const reader = new T3Client('reader', peer.url, { token: TOKEN, delay: DELAY, max_delay: MAX_DELAY, ack: 'auto', subscribe: SHELL, ...options });
    open.push(() => { reader.child.kill('SIGKILL'); return reader.exited; });
    assert.equal((await reader.made).code, undefined);
    return reader;
}

// Its next events: a connection, and the shell's first chunk, acknowledged.
async function comesAlive(reader, peer, id = 1) {
    await reader.states('connecting', 'catching up');
    const { fresh, json } = await reader.next('chunk', id);
    assert.deepEqual([fresh, json], [1, [peer.snapshot()]]);
    await reader.states('live');
}

async function liveReader({ peer: peerOptions, ...options } = {}) {
    const peer = await peerWith(peerOptions);
    peer.list(threadShell('t-1', { title: 'One' }));
    const reader = await readerOf(peer, options);
    await comesAlive(reader, peer);
    return { peer, reader };
}

// A pause is the n-th of them, from 0, shortened by up to a half. ANY: which one depends on how long the connection was
// live, so on how busy the machine is.
const ANY = -1;
function assertPause(delay, n) {
    const least = n === ANY ? DELAY : Math.min(DELAY * 1.5 ** n, MAX_DELAY);
    const most = n === ANY ? MAX_DELAY : least;
    assert.ok(delay >= Math.floor(least / 2) && delay <= Math.ceil(most), `pause ${n} is ${delay} ms, of ${least} to ${most}`);
}

async function lost(reader, code, n = 0) {
    const event = await reader.states('lost');
    assert.equal(event.code, code, event.message);
    assert.ok(event.message.length > 0);
    assertPause(event.delay_ms, n);
    return event;
}

async function refused(reader, code, status = 0) {
    const event = await reader.states('refused');
    assert.deepEqual([event.code, event.status], [code, status], event.message);
    assert.ok(event.message.length > 0 && !JSON.stringify(reader.said).includes(TOKEN), event.message);
}

// A refused reader tries nothing by itself: its pauses would have been over long ago by the time that another reader,
// which is begun now, has been through some of them.
async function staysRefused(reader, peer) {
    const before = peer.upgrades.length;
    const other = await peerWith();
    await other.stop();
    const clock = await readerOf(other);
    for (let n = 0; n < 6; n++) {
        await clock.states('connecting', 'lost');
    }
    await clock.end();
    assert.deepEqual([peer.upgrades.length, reader.events.length], [before, 0]);
}

afterEach(async () => {
    for (const close of open.splice(0).reverse()) {
        await close();
    }
});

const inBothForms = (name, body) => ['poll', 'block'].forEach((form) => test(`${name} (${form})`, () => body(form)));
const timeout = SANITIZER ? 300_000 : 60_000;

describe('a reader', { timeout }, () => {
    inBothForms('comes alive, and tells what changes', async (form) => {
        const { peer, reader } = await liveReader({ form });
        for (const title of ['Two', 'Three']) {
            peer.push(threadUpdated('t-1', { title }));
            const { fresh, json, state } = await reader.next('chunk', 1);
            assert.deepEqual([fresh, json[0].thread.title, state], [0, title, 'live']);
        }
        await peer.until('three acks', () => peer.received('Ack').length === 3);
        await reader.end();
    });

    test('is live when every first chunk is acknowledged, not when it came', async () => {
        const peer = await peerWith();
        const reader = await readerOf(peer, { ack: 'no', subscribe: [SHELL, `${THREAD} {"threadId":"t-1"}`] });
        await reader.states('connecting', 'catching up');
        const ids = [(await reader.next('chunk')).id, (await reader.next('chunk')).id];
        assert.deepEqual([...ids].sort(), [1, 2]);
        await reader.do('ack', ids[0]);
        peer.calls[ids[0] - 1].offer({ kind: 'more' });
        const more = await reader.next('chunk', ids[0]);
        assert.deepEqual([more.state, more.fresh], ['catching up', 0]);
        await reader.do('ack', ids[1]);
        await reader.states('live');
        await reader.do('ack', ids[0]);
        await peer.until('three acks', () => peer.received('Ack').length === 3);
        await reader.end();
    });

    const breaks = [
        ['the server closes', (peer) => peer.close(), 'CLOSED'],
        ['the connection is cut', (peer) => peer.drop(), 'NETWORK'],
        ['a defect', (peer) => peer.calls.at(-1).die(new Error('boom')), 'DEFECT'],
        ['nonsense', (peer) => peer.send(peer.connections.at(-1), 'nonsense'), 'PROTOCOL'],
    ];
    inBothForms('connects and subscribes anew after each break, with a new snapshot and no cursor', async (form) => {
        const { peer, reader } = await liveReader({ form });
        for (const [i, [what, breakIt, code]] of breaks.entries()) {
            breakIt(peer);
            await lost(reader, code, ANY);
            peer.list(threadShell('t-1', { title: what }), threadShell(`t-2${i}`));
            await comesAlive(reader, peer);
            peer.push(threadUpdated('t-1', { title: 'live again' }));
            assert.equal((await reader.next('chunk', 1)).fresh, 0);
        }
        assert.equal(peer.connections.length, breaks.length + 1);
        assert.ok(peer.calls.every(({ payload }) => payload.afterSequence === undefined));
        assert.equal(new Set(peer.calls.map(({ payload }) => JSON.stringify(payload))).size, 1);
        await reader.end();
    });

    test('one stream that the server breaks off or ends begins again alone', async () => {
        const { peer, reader } = await liveReader({ peer: { fatalDefects: false } });
        const thread = await reader.begin('subscribe', THREAD, { threadId: 't-1' });
        await reader.states('catching up');
        assert.equal((await reader.next('chunk', thread)).fresh, 1);
        await reader.states('live');
        const breaks = [[(call) => call.die('text'), 'DIED'], [(call) => call.end(), 'CLOSED']];
        for (const [breakIt, code] of breaks) {
            breakIt(peer.calls.at(-1));
            const broken = await reader.next('broken', thread);
            assert.equal(broken.code, code, broken.message);
            assertPause(broken.delay_ms, ANY);
            await reader.states('catching up');
            assert.equal((await reader.next('chunk', thread)).fresh, 1);
            await reader.states('live');
            peer.push(threadUpdated('t-1', { title: code }));
            assert.equal((await reader.next('chunk', 1)).fresh, 0);
        }
        assert.deepEqual(peer.calls.map(({ method }) => method), [SHELL, THREAD, THREAD, THREAD]);
        assert.equal(peer.upgrades.length, 1);
        await reader.end();
    });

    test('waits longer and longer for a server that is away, and is alive when it is back', async () => {
        const { peer, reader } = await liveReader();
        await peer.stop();
        await lost(reader, 'NETWORK', 0);
        for (let n = 1; n < 6; n++) {
            await reader.states('connecting');
            await lost(reader, 'NETWORK', n);
        }
        await peer.start();
        await reader.until('a connection', () => reader.events.some(({ state }) => state === 'live'));
        while (reader.events[1]?.state === 'lost') {
            await reader.states('connecting', 'lost');
        }
        await comesAlive(reader, peer);
        peer.drop();
        await lost(reader, 'NETWORK', ANY);
        await reader.end();
    });

    test('does not hammer a server that takes connections and breaks them', async () => {
        const peer = await peerWith();
        peer.answers[SHELL] = ({ connection }) => connection.close();
        const reader = await readerOf(peer);
        for (let n = 0; n < 6; n++) {
            await reader.states('connecting', 'catching up');
            await lost(reader, 'CLOSED', n);
        }
        await reader.end();
    });

    test('notices a server that answers no more', async () => {
        const { peer, reader } = await liveReader({ ping: 100, missed: 30 });
        peer.deaf = true;
        await lost(reader, 'TIMEOUT');
        peer.deaf = false;
        await comesAlive(reader, peer);
        await reader.end();
    });

    test('retry connects at once; while a connection stands it does nothing', async () => {
        const { peer, reader } = await liveReader({ delay: 600_000, max_delay: 600_000 });
        await reader.do('retry');
        peer.drop();
        const { delay_ms: delay } = await reader.states('lost');
        assert.ok(delay >= 300_000 && delay <= 600_000, `${delay}`);
        await reader.do('retry');
        await comesAlive(reader, peer);
        assert.equal(peer.upgrades.length, 2);
        await reader.end();
    });

    test('a chunk of a connection that is gone needs no acknowledgement', async () => {
        const peer = await peerWith();
        const reader = await readerOf(peer, { ack: 'no' });
        await reader.states('connecting', 'catching up');
        await reader.next('chunk', 1);
        peer.drop();
        await lost(reader, 'NETWORK');
        await reader.do('ack', 1);
        await reader.states('connecting', 'catching up');
        assert.equal((await reader.next('chunk', 1)).fresh, 1);
        assert.equal(peer.received('Ack').length, 0);
        await reader.do('ack', 1);
        await reader.states('live');
        await peer.until('one ack', () => peer.received('Ack').length === 1);
        await reader.end();
    });

    test('ends while a connection is made, stands, waits, or is refused', async () => {
        const peer = await peerWith();
        await (await readerOf(peer)).end();
        for (const state of ['catching up', 'live', 'lost', 'refused']) {
            const reader = await readerOf(peer);
            const told = () => reader.events.some((event) => event.state === state);
            if (state === 'lost' || state === 'refused') {
                await reader.until('live', () => reader.events.some((event) => event.state === 'live'));
                if (state === 'refused') {
                    peer.revoke();
                }
                peer.drop();
            }
            await reader.until(state, told);
            await reader.end();
        }
    });
});

describe('subscriptions of a reader', { timeout }, () => {
    test('come and go while it is live; what is gone stays gone on the next connection', async () => {
        const { peer, reader } = await liveReader();
        const thread = await reader.begin('subscribe', THREAD, { threadId: 't-1' });
        await reader.states('catching up');
        assert.equal((await reader.next('chunk', thread)).fresh, 1);
        await reader.states('live');
        await reader.do('unsubscribe', thread);
        await reader.do('unsubscribe', 99);
        const call = await peer.call(THREAD);
        await call.over;
        peer.close();
        await lost(reader, 'CLOSED');
        await comesAlive(reader, peer);
        assert.deepEqual(peer.calls.map(({ method }) => method), [SHELL, THREAD, SHELL]);
        assert.equal((await reader.do('subscribe', SHELL, '[]')).code, 'ARGUMENT');
        await reader.end();
    });

    test('one fails with an error of its own, and the others go on', async () => {
        const error = { _tag: 'OrchestrationV2GetThreadProjectionError', threadId: 't-9', message: 'There is no such thread.' };
        const { peer, reader } = await liveReader();
        peer.answers[THREAD] = (call) => call.fail(error);
        const thread = await reader.begin('subscribe', THREAD, { threadId: 't-9' });
        const told = await reader.until('the error', () => reader.events.find(({ event }) => event === 'error'));
        assert.deepEqual([told.id, told.code, told.json], [thread, 'FAILED', [{ _tag: 'Fail', error }]]);
        await reader.until('live', () => reader.events.at(-1)?.state === 'live');
        reader.events.splice(0);
        peer.push(threadUpdated('t-1', { title: 'Two' }));
        await reader.next('chunk', 1);
        peer.close();
        await lost(reader, 'CLOSED');
        await comesAlive(reader, peer);
        assert.equal(peer.calls.filter(({ method }) => method === THREAD).length, 1);
        await reader.end();
    });
});

describe('tokens and refusals', { timeout }, () => {
    const tokenFile = (token) => {
        const file = join(tempDir(), 'token');
        const write = (text) => writeFileSync(file, text, { mode: 0o600 });
        write(`${token}\n`);
        return { file, write };
    };

    test('the token is read at each connection', async () => {
        const { file, write } = tokenFile(TOKEN);
        const { peer, reader } = await liveReader({ token: null, token_file: file });
        peer.revoke();
        write(`${peer.grant('another-token-9876')}\n`);
        peer.drop();
        await lost(reader, 'NETWORK');
        await comesAlive(reader, peer);
        assert.deepEqual(peer.upgrades.map(({ headers, status }) => [headers.authorization, status]),
                         [[`Bearer ${TOKEN}`, 101], ['Bearer another-token-9876', 101]]);
        await reader.end();
    });

    test('a token that was revoked is refused until told to retry', async () => {
        const { file, write } = tokenFile(TOKEN);
        const { peer, reader } = await liveReader({ token: null, token_file: file });
        peer.revoke();
        peer.drop();
        await lost(reader, 'NETWORK');
        await reader.states('connecting');
        await refused(reader, 'AUTH', 401);
        await staysRefused(reader, peer);
        await reader.do('retry'); // still the old one
        await reader.states('connecting');
        await refused(reader, 'AUTH', 401);
        write(`${peer.grant('another-token-9876')}\n`);
        await reader.do('retry');
        await comesAlive(reader, peer);
        await reader.end();
    });

    test('no token is to be had', async () => {
        const { file, write } = tokenFile('');
        const peer = await peerWith();
        const reader = await readerOf(peer, { token: null, token_file: file });
        await reader.states('connecting');
        await refused(reader, 'AUTH');
        assert.match(reader.said.at(-1).message, /no token in the file/);
        assert.equal(peer.upgrades.length, 0);
        write(TOKEN);
        await reader.do('retry');
        await comesAlive(reader, peer);
        await reader.end();
    });

    test('a server of another orchestration protocol', async () => {
        const peer = await peerWith({ protocol: 3 });
        const reader = await readerOf(peer);
        await reader.states('connecting');
        await refused(reader, 'VERSION', 426);
        await staysRefused(reader, peer);
        peer.sessions.protocol = 2;
        await reader.do('retry');
        await comesAlive(reader, peer);
        await reader.end();
    });

    test('a token without the scope', async () => {
        const peer = await peerWith({ scopes: ['access:read'] });
        const reader = await readerOf(peer);
        await reader.states('connecting', 'catching up');
        await refused(reader, 'SCOPE');
        await peer.until('the end of the connection', () => !peer.connections[0].open);
        await staysRefused(reader, peer);
        peer.grant(TOKEN);
        await reader.do('retry');
        await comesAlive(reader, peer);
        await reader.end();
    });

    test('a method that the server does not know', async () => {
        const peer = await peerWith();
        const reader = await readerOf(peer, { subscribe: 'orchestration.noSuchThing' });
        await reader.states('connecting', 'catching up');
        await refused(reader, 'METHOD');
        await reader.do('unsubscribe', 1);
        const shell = await reader.begin('subscribe', SHELL);
        await reader.do('retry');
        await comesAlive(reader, peer, shell);
        await reader.end();
    });

    test('the program refuses what came', async () => {
        const { peer, reader } = await liveReader();
        await reader.do('refuse', 'it speaks the first protocol');
        await refused(reader, 'VERSION');
        assert.equal(reader.said.at(-1).message, 'it speaks the first protocol');
        await peer.until('the end of the connection', () => !peer.connections[0].open);
        await staysRefused(reader, peer);
        await reader.do('retry');
        await comesAlive(reader, peer);
        await reader.end();
    });
});
