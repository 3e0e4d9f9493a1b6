// Tier B1: one connection to a T3 Code server (arbe/t3_rpc.h), whose RPC is Effect's own.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { after, afterEach, describe, test } from 'node:test';
import { PROJECTION, SHELL, THREAD, makeCertificate, projectionOf, shellSnapshot, startPeer, threadShell, threadUpdated } from './lib/t3_peer.mjs';
import { T3Client } from './lib/t3_client.mjs';
import { SANITIZER, rounds } from './lib/wait.mjs';

const TOKEN = 'a-token-of-tests-0123456789';
const PINGS = { ping: 100, missed: 30 }; // three seconds, since a test's own server may be kept waiting
const open = [];

async function peerWith(options = {}) {
    const peer = await startPeer({ token: TOKEN, ...options });
    open.push(() => peer.stop());
    return peer;
}

// A client that was told of nothing yet.
function clientOf(url, options = {}) {
    const client = new T3Client('rpc', url, { token: TOKEN, ...options });
    open.push(() => { client.child.kill('SIGKILL'); return client.exited; });
    return client;
}

// A peer and a client that is connected to it.
async function connected({ peer: peerOptions, ...options } = {}) {
    const peer = await peerWith(peerOptions);
    const client = clientOf(peer.url, options);
    assert.equal((await client.made).code, undefined);
    await client.next('open', 0);
    return { peer, client, connection: peer.connections[0] };
}

// How a connection ended. Afterwards nothing follows.
async function closed(client) {
    const { code, status, message, after: next, readable, json } = await client.next('closed', 0);
    assert.deepEqual({ next, readable }, { next: 0, readable: 0 });
    assert.ok(message.length > 0 && !message.includes('\n'), JSON.stringify(message));
    assert.ok(!JSON.stringify(client.said).includes(TOKEN), 'nothing tells the token');
    return { code, status, message, json };
}

// How a connection ends that never stands.
async function refusedBy(url, options) {
    const client = clientOf(url, options);
    assert.equal((await client.made).code, undefined);
    const how = await closed(client);
    await client.end();
    return how;
}

afterEach(async () => {
    for (const close of open.splice(0).reverse()) {
        await close();
    }
});

const inBothForms = (name, body) => ['poll', 'block'].forEach((form) => test(`${name} (${form})`, () => body(form)));
const timeout = SANITIZER ? 300_000 : 60_000;

describe('streams and calls', { timeout }, () => {
    inBothForms('a subscription and a call, from the upgrade to the end', async (form) => {
        const { peer, client, connection } = await connected({ form });
        peer.list(threadShell('t-1', { title: 'Ümlaut "quoted" \u0000 \ud83d\ude00' }));
        assert.equal(connection.headers.authorization, `Bearer ${TOKEN}`);
        assert.deepEqual(connection.query, { orchestrationProtocol: '2' });
        assert.equal(connection.path, '/ws');
        assert.match(connection.headers['user-agent'], /^arbe\//);
        for (const absent of ['cookie', 'sec-websocket-protocol', 'sec-websocket-extensions']) {
            assert.equal(connection.headers[absent], undefined, absent);
        }
        const shell = await client.begin('subscribe', SHELL);
        assert.deepEqual((await client.next('chunk', shell)).json, [peer.snapshot()]);
        const call = await client.begin('call', PROJECTION, { threadId: 't-1' });
        assert.deepEqual((await client.next('done', call)).json, projectionOf('t-1'));
        assert.notEqual(call, shell);
        assert.deepEqual(await client.do('ack', shell), { did: 'ack', id: shell });
        peer.calls[0].end();
        assert.equal((await client.next('done', shell)).json, null);
        assert.deepEqual(peer.received('Request').map(({ headers: _, ...request }) => request), [
            { _tag: 'Request', id: String(shell), tag: SHELL, payload: {} },
            { _tag: 'Request', id: String(call), tag: PROJECTION, payload: { threadId: 't-1' } },
        ]);
        client.tell('close');
        assert.equal((await closed(client)).code, 'CLOSED');
        await peer.until('the end of the connection', () => !connection.open);
        await client.end();
    });

    test('requests before the connection stands are sent when it does', async () => {
        const peer = await peerWith();
        const client = clientOf(peer.url);
        const [shell, call] = [client.begin('subscribe', SHELL), client.begin('call', PROJECTION, { threadId: 't-1' })];
        await client.made;
        await client.next('open');
        assert.deepEqual([(await client.next('chunk')).id, (await client.next('done')).id], [await shell, await call]);
        await client.end();
    });

    test('a chunk that is not acknowledged holds back its own stream only, and has one ack', async () => {
        const { peer, client } = await connected();
        const shell = await client.begin('subscribe', SHELL);
        const thread = await client.begin('subscribe', THREAD, { threadId: 't-1' });
        await client.next('chunk', shell);
        await client.next('chunk', thread);
        const [shellCall, threadCall] = peer.calls;
        peer.push(threadUpdated('t-1'));
        for (let i = 0; i < 3; i++) {
            threadCall.offer({ kind: 'event', sequence: i });
            await client.do('ack', thread);
            assert.deepEqual((await client.next('chunk', thread)).json, [{ kind: 'event', sequence: i }]);
        }
        const call = await client.begin('call', PROJECTION, { threadId: 't-1' });
        await client.next('done', call);
        assert.deepEqual([peer.sent('Chunk', shellCall).length, peer.received('Ack', shellCall).length], [1, 0]);
        await client.do('ack', shell);
        assert.deepEqual((await client.next('chunk', shell)).json, [threadUpdated('t-1')]);
        assert.deepEqual([peer.received('Ack', shellCall).length, peer.received('Ack', threadCall).length], [1, 3]);
        await client.end();
    });

    test('an acknowledgement without a chunk is an error, and is not sent', async () => {
        const { peer, client } = await connected();
        const shell = await client.begin('subscribe', SHELL);
        await client.next('chunk', shell);
        await client.do('ack', shell);
        const call = await client.begin('call', PROJECTION, { threadId: 't-1' });
        for (const id of [shell, call, 99]) {
            const { code, message } = await client.do('ack', id);
            assert.equal(code, 'ARGUMENT', `${id}: ${message}`);
        }
        await client.next('done', call);
        assert.equal(peer.received('Ack').length, 1);
        await client.end();
    });

    test('what piles up behind a chunk comes as one: 5,000 items, and no ack is missed', async () => {
        const { peer, client } = await connected();
        const shell = await client.begin('subscribe', SHELL);
        await client.next('chunk', shell);
        const items = Array.from({ length: 5000 }, (_, i) => threadUpdated(`t-${i}`, {}, { sequence: i }));
        items.forEach((item) => peer.push(item));
        await client.do('ack', shell);
        assert.deepEqual((await client.next('chunk', shell)).json, items);
        peer.calls[0].end();
        await client.do('ack', shell);
        await client.next('done', shell);
        assert.equal(peer.received('Ack').length, 2);
        await client.end();
    });

    test('two streams and calls interleave for a while', async () => {
        const { peer, client } = await connected({ ack: 'auto', form: 'block', requests: 1000 });
        const shell = await client.begin('subscribe', SHELL);
        const thread = await client.begin('subscribe', THREAD, { threadId: 't-1' });
        await peer.until('both calls', () => peer.calls.length === 2);
        const count = rounds(300);
        const calls = [];
        for (let i = 0; i < count; i++) {
            peer.push(threadUpdated('t-1', {}, { sequence: i }));
            peer.calls[1].offer({ kind: 'event', sequence: i });
            calls.push(client.begin('call', PROJECTION, { threadId: `t-${i}` }));
            await calls.at(-1);
        }
        peer.calls.slice(0, 2).forEach((call) => call.end());
        await client.until('the end of all', () => client.events.filter(({ event }) => event === 'done').length === count + 2);
        const items = (id) => client.events.filter((event) => event.event === 'chunk' && event.id === id).flatMap(({ json }) => json);
        const numbers = Array.from({ length: count }, (_, i) => i);
        assert.deepEqual(items(shell).slice(1).map(({ sequence }) => sequence), numbers);
        assert.deepEqual(items(thread).slice(1).map(({ sequence }) => sequence), numbers);
        for (const [i, id] of (await Promise.all(calls)).entries()) {
            assert.equal(client.events.find((event) => event.event === 'done' && event.id === id).json.thread.id, `t-${i}`);
        }
        assert.equal(peer.received('Ack').length, peer.sent('Chunk').length);
        await client.end();
    });

    for (const [size, name] of [[70 << 10, '70 KiB'], [3 << 20, '3 MiB']]) {
        test(`a message of ${name}`, async () => {
            const { peer, client } = await connected({ ack: 'auto', ...(size > 1 << 20 ? { show: 'len' } : {}) });
            const shell = await client.begin('subscribe', SHELL);
            await client.next('chunk', shell);
            const item = { kind: 'long', text: 'é\u0001"x'.repeat(size / 8) };
            peer.push(item);
            const { json, len } = await client.next('chunk', shell);
            assert.ok(size > 1 << 20 ? len === Buffer.byteLength(JSON.stringify([item])) : json[0].text === item.text);
            const call = await client.begin('call', PROJECTION, { threadId: 'x'.repeat(size / 64) });
            await client.next('done', call);
            await client.end();
        });
    }

    test('the end of a subscription: Interrupt is sent, and nothing of it is told any more', async () => {
        const { peer, client } = await connected();
        const shell = await client.begin('subscribe', SHELL);
        await client.next('chunk', shell); // not acknowledged
        peer.push(threadUpdated('t-1'));
        await client.do('interrupt', shell);
        assert.equal((await client.do('ack', shell)).code, 'ARGUMENT');
        await peer.calls[0].over;
        assert.equal(peer.received('Interrupt', peer.calls[0]).length, 1);
        const call = await client.begin('call', PROJECTION, { threadId: 't-1' });
        await client.do('interrupt', 4711);
        await client.do('interrupt', shell);
        await client.next('done', call);
        assert.deepEqual([peer.received('Interrupt').length, peer.received('Ack').length], [1, 0]);
        await client.end();
    });

    test('a call that is given up', async () => {
        const { peer, client } = await connected();
        peer.answers[PROJECTION] = () => {};
        const call = await client.begin('call', PROJECTION, { threadId: 't-1' });
        const asked = await peer.call(PROJECTION);
        await client.do('interrupt', call);
        await asked.over;
        const shell = await client.begin('subscribe', SHELL);
        await client.next('chunk', shell);
        await client.end();
    });

    test('a call of a method that is a stream fails, and the rest goes on', async () => {
        const { client } = await connected();
        const call = await client.begin('call', SHELL);
        const { code, message } = await client.next('error', call);
        assert.equal(code, 'PROTOCOL');
        assert.match(message, /subscribe/);
        await client.next('done', await client.begin('call', PROJECTION, { threadId: 't-1' }));
        await client.end();
    });

    test('calls from several threads while another takes the events', async () => {
        const { peer, client } = await connected({ form: 'block', requests: 10_000 });
        const threads = 8;
        const each = rounds(100);
        assert.deepEqual(await client.do('storm', threads, each), { did: 'storm', refused: 0 });
        const wanted = threads * Math.ceil(each / 2);
        await client.until('all answers', () => client.events.filter(({ event }) => event === 'done').length === wanted);
        const ids = client.events.filter(({ event }) => event === 'done').map(({ id }) => id);
        assert.equal(new Set(ids).size, wanted);
        const requests = peer.received('Request').map(({ id }) => id);
        assert.equal(new Set(requests).size, requests.length);
        await client.end();
        await peer.until('the end of all calls', () => peer.calls.every((call) => call.finished));
    });
});

for (const fatalDefects of [true, false]) {
    describe(`failures, where a defect ends ${fatalDefects ? 'all' : 'its request'}`, { timeout }, () => {
        const connect = () => connected({ peer: { fatalDefects } });

        // A server that goes on after it told a defect; the client cannot know what of it is lost.
        async function defect(client, id, cause) {
            if (fatalDefects) {
                const { code, json } = await closed(client);
                assert.deepEqual([code, json], ['DEFECT', cause]);
            } else {
                const { code, json } = await client.next('error', id);
                assert.deepEqual([code, json], ['DIED', [{ _tag: 'Die', defect: cause }]]);
                await client.next('done', await client.begin('call', PROJECTION, { threadId: 't-1' }));
            }
            await client.end();
        }

        test('a defect in a stream', async () => {
            const { peer, client } = await connect();
            const shell = await client.begin('subscribe', SHELL);
            await client.next('chunk', shell);
            await client.do('ack', shell);
            peer.calls[0].die(new TypeError('boom'));
            await defect(client, shell, { name: 'TypeError', message: 'boom' });
        });

        test('a defect behind a chunk comes after its acknowledgement', async () => {
            const { peer, client } = await connect();
            const shell = await client.begin('subscribe', SHELL);
            await client.next('chunk', shell);
            peer.calls[0].die('text');
            await client.next('done', await client.begin('call', PROJECTION, { threadId: 't-1' }));
            await client.do('ack', shell);
            await defect(client, shell, 'text');
        });

        test('a defect in a call', async () => {
            const { peer, client } = await connect();
            const answer = peer.answers[PROJECTION];
            peer.answers[PROJECTION] = (call) => { call.die(new RangeError('no')); peer.answers[PROJECTION] = answer; };
            const call = await client.begin('call', PROJECTION, { threadId: 't-1' });
            await defect(client, call, { name: 'RangeError', message: 'no' });
        });

        test('a sentence does not repeat the token that a server quotes, whole or cut', async () => {
            const { peer, client } = await connect();
            for (const [text, told] of [[`no session for ${TOKEN}.`, 'no session for ***.'], [`${'x'.repeat(180)}${TOKEN}`, `${'x'.repeat(180)}***`]]) {
                peer.answers[PROJECTION] = (call) => call.fail({ _tag: 'OrchestrationV2GetThreadProjectionError', threadId: 't-1', message: text });
                const { code, message } = await client.next('error', await client.begin('call', PROJECTION, { threadId: 't-1' }));
                assert.equal(code, 'FAILED');
                assert.ok(message.endsWith(told), message);
            }
            await client.end();
        });

        test('an unknown method', async () => {
            const { client } = await connect();
            for (const verb of ['call', 'subscribe']) {
                const id = await client.begin(verb, 'orchestration.noSuchThing');
                const { code, message, json } = await client.next('error', id);
                assert.equal(code, 'METHOD');
                assert.match(message, /orchestration\.noSuchThing/);
                assert.equal(json[0]._tag, 'Die');
            }
            await client.end();
        });

        test('a payload that the method does not take', async () => {
            const { client } = await connect();
            const { code, json, message } = await client.next('error', await client.begin('call', PROJECTION, { thread: 't-1' }));
            assert.deepEqual([code, json[0]._tag], ['DIED', 'Die']);
            assert.match(message, /threadId/);
            await client.next('error', await client.begin('subscribe', SHELL, { afterSequence: -1 }));
            await client.end();
        });

        test('an error that the method declares, of a call and of a stream', async () => {
            const { peer, client } = await connect();
            const error = { _tag: 'OrchestrationV2GetThreadProjectionError', threadId: 't-9', message: 'There is no such thread.' };
            peer.answers[PROJECTION] = (call) => call.fail(error);
            peer.answers[THREAD] = (call) => { call.offer({ kind: 'synchronized' }); call.fail(error); };
            const wanted = { code: 'FAILED', json: [{ _tag: 'Fail', error }] };
            for (const [verb, method] of [['call', PROJECTION], ['subscribe', THREAD]]) {
                const id = await client.begin(verb, method, { threadId: 't-9' });
                if (verb === 'subscribe') {
                    await client.next('chunk', id);
                    await client.do('ack', id);
                }
                const { code, json, message } = await client.next('error', id);
                assert.deepEqual({ code, json }, wanted);
                assert.match(message, /There is no such thread\./);
            }
            await client.end();
        });

        test('a token without the scope', async () => {
            const peer = await peerWith({ fatalDefects, scopes: ['access:read'] });
            const client = clientOf(peer.url);
            await client.made;
            await client.next('open');
            for (const [verb, method, payload] of [['subscribe', SHELL, {}], ['call', PROJECTION, { threadId: 't-1' }]]) {
                const { code, message, json } = await client.next('error', await client.begin(verb, method, payload));
                assert.deepEqual([code, json[0].error.requiredScope], ['SCOPE', 'orchestration:read']);
                assert.match(message, /orchestration:read/);
            }
            await client.end();
        });

        test('a request that the server interrupts', async () => {
            const { peer, client } = await connect();
            peer.answers[PROJECTION] = (call) => call.interrupt();
            const { code } = await client.next('error', await client.begin('call', PROJECTION, { threadId: 't-1' }));
            assert.equal(code, 'INTERRUPTED');
            await client.end();
        });
    });
}

describe('the end of a connection', { timeout }, () => {
    inBothForms('the server closes, is cut off, or dies', async (form) => {
        for (const [how, wanted] of [['close', 'CLOSED'], ['drop', 'NETWORK'], ['stop', 'NETWORK']]) {
            const { peer, client } = await connected({ form });
            await client.next('chunk', await client.begin('subscribe', SHELL));
            await peer[how]();
            assert.equal((await closed(client)).code, wanted, how);
            const { code } = await client.do('call', PROJECTION);
            assert.equal(code, 'CLOSED');
            assert.equal((await client.do('ack', 1)).code, 'CLOSED');
            await client.do('interrupt', 1);
            await client.end();
        }
    });

    test('what came before the end is told before it', async () => {
        const { peer, client, connection } = await connected({ ack: 'auto' });
        const shell = await client.begin('subscribe', SHELL);
        await client.next('chunk', shell);
        await peer.until('its ack', () => peer.received('Ack').length === 1);
        peer.send(connection, { _tag: 'Chunk', requestId: String(shell), values: [{ kind: 'last' }] });
        peer.send(connection, { _tag: 'Exit', requestId: String(shell), exit: { _tag: 'Success', value: null } });
        peer.close();
        assert.deepEqual((await client.next('chunk', shell)).json, [{ kind: 'last' }]);
        await client.next('done', shell);
        await closed(client);
        await client.end();
    });

    test('a close frame without a code, and what old servers write behind it', async () => {
        const { connection, client } = await connected();
        connection.socket.write(Buffer.concat([Buffer.from([0x88, 0]), Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')]));
        assert.equal((await closed(client)).code, 'CLOSED');
        await client.end();
    });

    for (const [how, stall] of [
        ['answers no pings', (peer) => { peer.deaf = true; }],
        ['reads nothing more', (peer) => peer.connections[0].socket.pause()],
    ]) {
        test(`a server that ${how}`, async () => {
            const { peer, client, connection } = await connected({ ...PINGS, form: 'block' });
            await peer.until('pings', () => peer.received('Ping').length >= 5);
            assert.ok(connection.open);
            stall(peer);
            const { code, message } = await closed(client);
            assert.equal(code, 'TIMEOUT');
            assert.match(message, /does not answer/);
            await client.end();
        });
    }

    test('a server that does not answer the close either', async () => {
        for (const end of ['close', 'free']) {
            const { peer, client, connection } = await connected();
            await client.next('chunk', await client.begin('subscribe', SHELL));
            connection.socket.pause();
            for (let i = 0; i < 100; i++) {
                await client.begin('call', PROJECTION, { threadId: 'x'.repeat(100_000) });
            }
            if (end === 'close') {
                client.tell('close');
                assert.equal((await closed(client)).code, 'CLOSED');
            }
            await client.end();
            peer.drop(connection);
        }
    });

    test('cut off while several threads make requests', async () => {
        const { peer, client } = await connected({ form: 'block' });
        client.tell('storm', 8, 0);
        await peer.until('some requests', () => peer.received('Request').length > 50);
        peer.drop();
        await client.until('the end', () => client.events.some(({ event }) => event === 'closed'));
        assert.equal((await client.answer()).did, 'storm');
        await client.end();
    });

    test('freed while chunks wait, a call runs and the server sends', async () => {
        const { peer, client } = await connected();
        const shell = await client.begin('subscribe', SHELL);
        await client.next('chunk', shell);
        peer.answers[PROJECTION] = () => {};
        await client.begin('call', PROJECTION, { threadId: 't-1' });
        peer.push({ kind: 'long', text: 'x'.repeat(3 << 20) });
        await client.do('ack', shell);
        await peer.until('the long chunk', () => peer.sent('Chunk').length === 2);
        await client.end();
        await peer.until('the end of all calls', () => peer.calls.every((call) => call.finished));
    });

    test('200 connections leave neither descriptor nor thread behind', async () => {
        const { peer, client } = await connected();
        const count = rounds(200);
        assert.deepEqual(await client.do('churn', count), { did: 'churn', bad: 0, fds: 0, threads: 0 });
        await peer.until('the end of all but one', () => peer.connections.filter(({ open: stands }) => stands).length === 1);
        await client.end();
    });
});

describe('what the server may not do', { timeout }, () => {
    for (const [name, message] of [
        ['no JSON', '{"_tag":"Pong"'], ['an empty message', ''], ['several values', '{"_tag":"Pong"}\n{"_tag":"Pong"}'],
        ['no object', 'null'], ['a chunk without values', { _tag: 'Chunk', requestId: '1' }],
        ['an exit of nothing', { _tag: 'Exit', requestId: '1', exit: null }],
        ['a chunk before the last was acknowledged', [2, 3].map((n) => ({ _tag: 'Chunk', requestId: '1', values: [n] }))],
        ['a chunk of a request that was never made', { _tag: 'Chunk', requestId: '77', values: [1] }],
    ]) {
        test(name, async () => {
            const { peer, client, connection } = await connected();
            peer.answers[SHELL] = () => {};
            assert.equal(await client.begin('subscribe', SHELL), 1);
            await peer.call(SHELL);
            for (const one of [message].flat()) {
                peer.send(connection, one);
            }
            if (Array.isArray(message)) {
                await client.next('chunk', 1);
            }
            assert.equal((await closed(client)).code, 'PROTOCOL');
            await client.end();
        });
    }

    for (const [name, bytes] of [
        ['a binary message', [0x82, 15, ...Buffer.from('{"_tag":"Pong"}')]], ['text that is no UTF-8', [0x81, 4, 0x22, 0xc3, 0x28, 0x22]],
        ['an extension that was not agreed on', [0xc1, 2, 0x7b, 0x7d]], ['a frame of an unknown kind', [0x83, 0]],
        ['a ping that is too long', [0x89, 126, 0, 200, ...new Array(200).fill(0)]],
        ['a message that goes on though none was begun', [0x80, 2, 0x7b, 0x7d]],
        ['a length that there cannot be', [0x81, 127, ...new Array(8).fill(255), 0x7b, 0x7d]],
    ]) {
        test(`${name}`, async () => {
            const { client, connection } = await connected();
            connection.socket.write(Buffer.from(bytes));
            assert.equal((await closed(client)).code, 'PROTOCOL');
            await client.end();
        });
    }

    test('what it may add: unknown messages and members, and what was on its way', async () => {
        const { peer, client, connection } = await connected();
        peer.answers[SHELL] = () => {};
        const call = await client.begin('call', PROJECTION, { threadId: 't-1' });
        await client.next('done', call);
        const shell = await client.begin('subscribe', SHELL);
        await peer.call(SHELL);
        for (const message of [
            { _tag: 'News', requestId: '1' }, { _tag: 'Pong', more: [1] }, { _tag: 'Chunk', requestId: String(call), values: [1] },
            `\n{ "more": { "_tag": "Exit" }, "values" : [ 1,\r\n "two" ] , "requestId" : "${shell}", "_tag" : "Chunk" }\n`,
        ]) {
            peer.send(connection, message);
        }
        assert.deepEqual((await client.next('chunk', shell)).json, [1, 'two']);
        peer.send(connection, { _tag: 'Exit', requestId: String(shell), exit: { _tag: 'Failure', cause: [{ _tag: 'New' }] } });
        const { code } = await client.next('error', shell);
        assert.equal(code, 'DIED');
        await client.end();
    });

    test('a message in pieces, with a ping between them', async () => {
        const { connection, client } = await connected();
        const text = Buffer.from(JSON.stringify({ _tag: 'Defect', defect: 'in pieces' }));
        const [head, tail] = [text.subarray(0, 20), text.subarray(20)];
        connection.socket.write(Buffer.from([0x01, head.length, ...head, 0x89, 2, 104, 105, 0x80, tail.length, ...tail]));
        const { code, json } = await closed(client);
        assert.deepEqual([code, json], ['DEFECT', 'in pieces']);
        await client.end();
    });

    test('a program that takes no events holds the server up, not its own memory', async () => {
        const { peer, client } = await connected({ message: 1_000_000, show: 'len', ...PINGS });
        const size = 500_000;
        const count = 40;
        peer.answers[THREAD] = (call) => call.offer({ text: 'x'.repeat(size) });
        await client.do('pause');
        for (let i = 0; i < count; i++) {
            await client.begin('subscribe', THREAD, { threadId: `t-${i}` });
        }
        await peer.until('all calls', () => peer.calls.length === count);
        const pings = peer.received('Ping').length; // their answers stand behind the chunks, and cannot be read
        await peer.until('more pings', () => peer.received('Ping').length > pings + PINGS.missed + 2);
        const { hwm_kib: kib } = await client.do('resume');
        assert.ok(SANITIZER || kib < 30_000, `${kib} KiB`);
        const ids = new Set();
        for (let i = 0; i < count; i++) {
            const { id, len } = await client.next('chunk');
            assert.ok(len > size);
            ids.add(id);
        }
        assert.equal(ids.size, count);
        await client.next('done', await client.begin('call', PROJECTION, { threadId: 't-1' }));
        await client.end();
    });

    test('limits: bytes, depth, and requests under way', async () => {
        const nest = (depth) => JSON.parse('['.repeat(depth) + ']'.repeat(depth));
        for (const [options, item] of [[{ message: 2000 }, { text: 'x'.repeat(2000) }], [{ depth: 20 }, { deep: nest(20) }]]) {
            const { peer, client } = await connected(options);
            peer.answers[SHELL] = (call) => call.offer({ text: 'x'.repeat(1000), deep: nest(10) });
            const shell = await client.begin('subscribe', SHELL);
            await client.next('chunk', shell);
            peer.push(item);
            await client.do('ack', shell);
            assert.equal((await closed(client)).code, 'LIMIT', JSON.stringify(options));
            await client.end();
        }
        const { client } = await connected({ requests: 2 });
        const shells = [await client.begin('subscribe', SHELL), await client.begin('subscribe', SHELL)];
        assert.equal((await client.do('call', PROJECTION, { threadId: 't-1' })).code, 'LIMIT');
        await client.next('chunk', shells[0]);
        await client.next('chunk', shells[1]);
        await client.do('interrupt', shells[0]);
        await client.next('done', await client.begin('call', PROJECTION, { threadId: 't-1' }));
        await client.end();
    });
});

describe('no connection', { timeout }, () => {
    test('a token that is wrong, missing, or revoked', async () => {
        const peer = await peerWith();
        for (const token of ['another-token', null]) {
            const { code, status } = await refusedBy(peer.url, { token });
            assert.deepEqual([code, status], ['AUTH', 401]);
        }
        const client = clientOf(peer.url);
        await client.made;
        await client.next('open');
        peer.revoke(TOKEN);
        await client.next('chunk', await client.begin('subscribe', SHELL)); // what stands stays
        assert.equal((await refusedBy(peer.url)).code, 'AUTH');
        await client.end();
        assert.deepEqual(peer.upgrades.map(({ status }) => status), [401, 401, 101, 401]);
    });

    test('a server of another orchestration protocol', async () => {
        const peer = await peerWith({ protocol: 3 });
        const { code, status } = await refusedBy(peer.url);
        assert.deepEqual([code, status], ['VERSION', 426]);
    });

    test('URLs: forms that are taken, and the query that is kept', async () => {
        const peer = await peerWith();
        for (const url of [peer.base, `${peer.base}/`, peer.url, `${peer.url}?clientSurface=cli`]) {
            const client = clientOf(url);
            await client.made;
            await client.next('open');
            await client.end();
        }
        assert.deepEqual(peer.upgrades.map(({ path }) => path), ['/ws', '/ws', '/ws', '/ws']);
        assert.deepEqual(peer.upgrades.at(-1).query, { clientSurface: 'cli', orchestrationProtocol: '2' });
        const { code, status } = await refusedBy(`${peer.base}/elsewhere`);
        assert.deepEqual([code, status], ['HTTP', 404]);
    });

    test('URLs that are none', async () => {
        for (const url of ['', 'nonsense', 'ftp://127.0.0.1/', 'ws://', 'ws://127.0.0.1:99999/', 'ws://user:secret@127.0.0.1/', 'ws://127.0.0.1/ x']) {
            const client = new T3Client('rpc', url, { token: TOKEN });
            const { code, message } = await client.made;
            await client.exited;
            assert.equal(code, 'ARGUMENT', url);
            assert.ok(message.length > 0 && !message.includes('secret'), message);
        }
    });

    // A server that does with each connection what it is told.
    async function listener(serve) {
        const sockets = new Set();
        const server = net.createServer((socket) => {
            sockets.add(socket);
            socket.on('error', () => {});
            serve(socket);
        });
        server.listen(0, '127.0.0.1');
        await once(server, 'listening');
        open.push(() => {
            sockets.forEach((socket) => socket.destroy());
            server.close();
        });
        return `ws://127.0.0.1:${server.address().port}`;
    }

    test('nobody listens, nobody answers, or somebody else does', async () => {
        const peer = await peerWith();
        await peer.stop();
        assert.equal((await refusedBy(peer.url)).code, 'NETWORK');
        assert.equal((await refusedBy(await listener(() => {}), { connect: 50 })).code, 'TIMEOUT');
        assert.equal((await refusedBy(await listener((socket) => socket.destroy()))).code, 'NETWORK');
        const page = await listener((socket) => socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi')));
        const { code, status } = await refusedBy(page);
        assert.deepEqual([code, status], ['HTTP', 200]);
    });

    test('answers that are no good upgrade', async () => {
        const upgrade = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n';
        for (const [answer, ...codes] of [
            [`${upgrade}Sec-WebSocket-Accept: d3Jvbmc=\r\n\r\n`, 'PROTOCOL'], [`${upgrade}\r\n`, 'PROTOCOL'],
            ['SSH-2.0-OpenSSH_9.2\r\n', 'PROTOCOL', 'NETWORK', 'HTTP'], [`${upgrade}X: ${'x'.repeat(1 << 20)}`, 'PROTOCOL', 'NETWORK'],
            ['HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n', 'HTTP'],
            ['HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n', 'AUTH'],
        ]) {
            const url = await listener((socket) => socket.once('data', () => socket.end(answer)));
            const { code, message } = await refusedBy(url);
            assert.ok(codes.includes(code), `${answer.slice(0, 60)}: ${code} ${message}`);
        }
    });

    test('given up while a connection is made', async () => {
        const silent = await listener(() => {});
        for (const url of [silent, silent.replace('ws:', 'wss:'), silent.replace('127.0.0.1', 'localhost')]) {
            const client = clientOf(url);
            await client.made;
            await client.end();
            const other = clientOf(url);
            await other.made;
            other.tell('close');
            assert.equal((await closed(other)).code, 'CLOSED');
            await other.end();
        }
        assert.equal((await refusedBy(silent.replace('ws:', 'wss:'), { connect: 50 })).code, 'TIMEOUT');
    });

    test('nothing is sent where a URL is no server of T3, but the upgrade', async () => {
        const heard = [];
        const url = await listener((socket) => socket.on('data', (chunk) => {
            heard.push(chunk);
            socket.end('HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n');
        }));
        const { code, status } = await refusedBy(url);
        assert.deepEqual([code, status], ['HTTP', 302]); // and the token goes nowhere else
        assert.equal(Buffer.concat(heard).toString().split('\r\n\r\n').length, 2);
    });
});

describe('TLS', { timeout }, () => {
    test('an authority that is given, one that is not known, and a name that is not the certificate\'s', async () => {
        const good = makeCertificate('DNS:localhost', 'IP:127.0.0.1');
        const peer = await peerWith({ tls: good });
        const client = clientOf(peer.url, { ca: good.caFile });
        await client.made;
        await client.next('open');
        peer.list(threadShell('t-1'));
        assert.deepEqual((await client.next('chunk', await client.begin('subscribe', SHELL))).json, [shellSnapshot([threadShell('t-1')])]);
        await client.end();
        peer.host = 'localhost';
        const named = clientOf(peer.url, { ca: good.caFile });
        await named.made;
        await named.next('open');
        await named.end();

        assert.equal((await refusedBy(peer.url)).code, 'TLS');
        const other = makeCertificate('DNS:elsewhere.test');
        assert.equal((await refusedBy(peer.url, { ca: other.caFile })).code, 'TLS');
        const elsewhere = await peerWith({ tls: other });
        assert.equal((await refusedBy(elsewhere.url, { ca: other.caFile })).code, 'TLS');
        elsewhere.host = 'localhost';
        assert.equal((await refusedBy(elsewhere.url, { ca: other.caFile })).code, 'TLS');
        assert.deepEqual([peer.upgrades.length, elsewhere.upgrades.length], [2, 0]);
    });

    test('a server without TLS where wss is asked for', async () => {
        const peer = await peerWith();
        const { code } = await refusedBy(peer.url.replace('ws:', 'wss:'));
        assert.ok(['TLS', 'NETWORK'].includes(code), code);
        assert.equal(peer.upgrades.length, 0);
    });

    test('100 connections over TLS leave nothing behind', async () => {
        const certificate = makeCertificate('DNS:localhost');
        const { client } = await connected({ peer: { tls: certificate, host: 'localhost' }, ca: certificate.caFile });
        assert.deepEqual(await client.do('churn', rounds(100)), { did: 'churn', bad: 0, fds: 0, threads: 0 });
        await client.end();
    });
});

after(() => assert.equal(open.length, 0));
