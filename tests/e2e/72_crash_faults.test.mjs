// Tier 70: failed and slow disk calls (A4, D8, I10, K5, K7, K14), by a library
// that is loaded before the server.
import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { JSON_TYPE, OCTETS, Stream, TEXT, assertProblem, producer, uniqueName } from './lib/http.mjs';
import { Buffers } from './lib/fill.mjs';
import { Faults, buildFaultLibrary } from './lib/faults.mjs';
import { testUnless } from './lib/impossible.mjs';
import { Raw, head } from './lib/raw.mjs';
import { Server } from './lib/server.mjs';
import { Sse } from './lib/sse.mjs';
import { eventually, sleep } from './lib/wait.mjs';

const { library, impossible } = buildFaultLibrary();
const test = testUnless(impossible);

async function withFaults(flags, body) {
    const faults = new Faults(library);
    const server = new Server(flags, { env: faults.env });
    try {
        await server.start();
        await body(server, faults);
    } catch (error) {
        // What went wrong first is what counts, not that the server then ends badly too.
        faults.clear();
        server.expectGone();
        await server.kill('SIGKILL');
        error.message += `\n${server.tail()}`;
        throw error;
    } finally {
        faults.clear();
        try {
            await server.dispose();
        } finally {
            faults.dispose();
        }
    }
}

async function made(server, type = TEXT, body, headers) {
    const stream = new Stream(server, uniqueName(), type);
    await stream.create(headers, body);
    return stream;
}

// Starts a request without waiting for its answer.
async function fire(stream, lines, body = '', method = 'POST') {
    const raw = await Raw.open(stream.server);
    await raw.sendAll(Buffer.from(head(method, stream.path, [`Content-Type: ${stream.type}`, `Content-Length: ${body.length}`, ...lines]) + body));
    return raw;
}

describe('K5, D8: while a sync is on its way nothing of it is shown', { timeout: 300_000 }, () => {
    test('K5: no read, HEAD, long-poll, SSE or next shows bytes that are not safe', async () => {
        await withFaults(['--long-poll-timeout', '300ms'], async (server, faults) => {
            const stream = await made(server, TEXT, 'safe;');
            const { next, headers } = await stream.get();
            const sse = await Sse.open(stream, '-1');
            await sse.data();
            await sse.control();
            faults.set('sync wal hold');
            const raw = await fire(stream, [], 'unsafe;');
            await faults.hit();
            for (let i = 0; i < 5; i++) {
                const read = await stream.get();
                assert.equal(read.text, 'safe;');
                assert.equal(read.next, next);
                assert.equal((await stream.head()).next, next);
                assert.equal((await stream.get('offset=now')).next, next);
                assert.equal((await stream.get('offset=-1', { 'If-None-Match': headers.etag })).status, 304);
            }
            assert.equal((await stream.poll(next)).status, 204);
            assert.equal(sse.events.length, 2);
            faults.clear();
            assert.equal((await raw.response()).status, 204);
            assert.equal((await stream.poll(next)).text, 'unsafe;');
            assert.equal(await sse.data(), 'unsafe;');
            sse.close();
            raw.destroy();
        });
    });

    test('K5: killed in the middle of a sync: what was shown before is there', async () => {
        await withFaults([], async (server, faults) => {
            const stream = await made(server, JSON_TYPE, '[1]');
            await stream.append('2', producer('p', 0, 0));
            faults.set('sync wal hold');
            const raw = await fire(stream, ['Producer-Id: p', 'Producer-Epoch: 0', 'Producer-Seq: 1'], '3');
            const fresh = new Stream(server, uniqueName(), TEXT);
            const put = await fire(fresh, [], 'x', 'PUT');
            await faults.hit();
            assert.equal((await stream.get()).text, '[1,2]');
            // A look at a stream that is being made may wait for how that ends, or is told that there is none.
            const look = await fire(fresh, [], '', 'HEAD');
            await server.crash();
            const told = (await look.rest()).toString('latin1');
            assert.ok(told === '' || /^HTTP\/1\.1 404/.test(told), told);
            look.destroy();
            raw.destroy();
            put.destroy();
            faults.clear();
            await server.start();
            assert.match((await stream.get()).text, /^\[1,2(,3)?\]$/);
            assert.ok([200, 204].includes((await stream.post('3', producer('p', 0, 1))).status));
            assert.equal((await stream.get()).text, '[1,2,3]');
            assert.ok([200, 201].includes((await fresh.put()).status));
        });
    });

    test('D8: a close that is not safe yet is told to nobody', async () => {
        await withFaults(['--long-poll-timeout', '300ms'], async (server, faults) => {
            const stream = await made(server, TEXT, 'x');
            const { next } = await stream.head();
            const sse = await Sse.open(stream, next);
            await sse.control();
            faults.set('sync wal hold');
            const raw = await fire(stream, ['Stream-Closed: true']);
            await faults.hit();
            assert.equal((await stream.head()).closed, false);
            assert.equal((await stream.get()).closed, false);
            const poll = await stream.poll(next);
            assert.equal(poll.status, 204);
            assert.equal(poll.closed, false);
            // A refusal because of the close tells of it too, so it has to wait.
            const second = await fire(stream, [], 'late');
            assert.equal(sse.events.length, 1);
            faults.clear();
            assert.equal((await raw.response()).status, 204);
            const late = await second.response();
            assert.equal(late.status, 409);
            assert.equal(late.headers['stream-closed'], 'true');
            assert.equal((await sse.control()).streamClosed, true);
            await sse.end();
            raw.destroy();
            second.destroy();
        });
    });

    test('D8: a close whose sync fails: whoever was told of the end was told the truth', async () => {
        await withFaults([], async (server, faults) => {
            const stream = await made(server, TEXT, 'x');
            const waiting = await fire(stream, [], '', 'GET');
            waiting.destroy();
            faults.set('sync wal EIO');
            const reply = await stream.post('last', { 'Stream-Closed': 'true' });
            assert.equal(reply.status, 503);
            assert.equal(reply.closed, false);
            assert.equal((await stream.head()).closed, false);
            assert.equal((await stream.get()).text, 'x');
            faults.clear();
            await server.crashAndRestart();
            const after = await stream.get();
            assert.ok((after.text === 'x' && !after.closed) || (after.text === 'xlast' && after.closed));
        });
    });

    test('I10: a delete that is not safe yet is not told', async () => {
        await withFaults([], async (server, faults) => {
            const stream = await made(server, TEXT, 'x');
            faults.set('sync wal hold');
            const raw = await fire(stream, [], '', 'DELETE');
            await faults.hit();
            assert.equal((await stream.get()).status, 200, 'still there for readers');
            faults.clear();
            assert.equal((await raw.response()).status, 204);
            raw.destroy();
            await server.crashAndRestart();
            assert.equal((await stream.get()).status, 404);
        });
    });

    test('K5: a slow sync holds up writers but no reader and no other connection', async () => {
        await withFaults([], async (server, faults) => {
            const stream = await made(server, TEXT, 'x');
            faults.set('sync wal hold');
            const raws = [];
            for (let i = 0; i < 50; i++) {
                raws.push(await fire(stream, [], `${i};`));
            }
            await faults.hit();
            for (let i = 0; i < 20; i++) {
                assert.equal((await stream.get('offset=-1', {}, { fresh: true })).text, 'x');
            }
            faults.clear();
            const nexts = [];
            for (const raw of raws) {
                const reply = await raw.response();
                assert.equal(reply.status, 204);
                nexts.push(reply.next);
                raw.destroy();
            }
            assert.equal(new Set(nexts).size, 50);
            assert.equal((await stream.get()).text.split(';').length, 51);
        });
    });
});

describe('K7, A4: failed writes and syncs', { timeout: 300_000 }, () => {
    for (const [call, flaw] of [['sync', 'sync wal EIO'], ['write', 'write wal EIO'], ['torn write', 'write wal short 1']]) {
        test(`K7: after a failed ${call} the outcome is unknown, reads go on, a restart settles it`, async () => {
            await withFaults([], async (server, faults) => {
                const stream = await made(server, TEXT, 'good;');
                await stream.append('p0;', producer('p', 0, 0));
                faults.set(flaw);
                const reply = await stream.post('p1;', producer('p', 0, 1));
                if (call === 'torn write') {
                    // A short write is continued; nobody notices.
                    assert.equal(reply.status, 200);
                    assert.equal((await stream.get()).text, 'good;p0;p1;');
                    await server.crashAndRestart();
                    assert.equal((await stream.get()).text, 'good;p0;p1;');
                    return;
                }
                assertProblem(reply, 503);
                assert.equal(reply.headers['retry-after'], undefined, 'a plain append must not be asked again');
                assert.match(reply.json().detail, /unknown/i);
                assert.equal(reply.next, undefined);
                const again = await stream.post('p1;', producer('p', 0, 1));
                assert.equal(again.status, 503, 'nothing is retried in place');
                assert.equal((await stream.put()).status === 201, false);
                const other = new Stream(server, uniqueName());
                assertProblem(await other.put(), 503);
                assertProblem(await stream.remove(), 503);
                const read = await stream.get();
                assert.equal(read.text, 'good;p0;');
                assert.equal((await stream.head()).next, read.next);
                faults.clear();
                await server.crashAndRestart();
                const retried = await stream.post('p1;', producer('p', 0, 1));
                assert.ok([200, 204].includes(retried.status));
                assert.equal((await stream.get()).text, 'good;p0;p1;');
                assert.equal((await other.head()).status, 404);
                await stream.append('end');
                await server.crashAndRestart();
                assert.equal((await stream.get()).text, 'good;p0;p1;end');
            });
        });
    }

    test('K7: many parked appends all get 503 and none is half there', async () => {
        await withFaults([], async (server, faults) => {
            const streams = await Promise.all(Array.from({ length: 10 }, () => made(server, TEXT, 's;')));
            faults.set('sync wal hold');
            const first = await fire(streams[0], [], 'a;');
            await faults.hit();
            const raws = [first];
            for (let i = 0; i < 40; i++) {
                raws.push(await fire(streams[i % 10], [], `${i};`));
            }
            faults.set('sync wal EIO');
            for (const raw of raws) {
                const reply = await raw.response();
                assert.ok([204, 503].includes(reply.status), String(reply.status));
                raw.destroy();
            }
            for (const stream of streams) {
                assert.match((await stream.get()).text, /^s;(a;)?$/);
            }
            faults.clear();
            await server.crashAndRestart();
            for (const stream of streams) {
                assert.match((await stream.get()).text, /^s;(a;)?(\d+;)*$/);
                assert.equal((await stream.post('more')).status, 204);
            }
        });
    });

    test('A4: the server can still be stopped cleanly after its log failed', async () => {
        await withFaults([], async (server, faults) => {
            const stream = await made(server, TEXT, 'x');
            faults.set('sync wal EIO');
            assert.equal((await stream.post('y')).status, 503);
            faults.clear();
            server.expectGone();
            const end = await server.kill('SIGTERM');
            assert.equal(end.signal, null, 'it ends by itself');
            await server.start();
            assert.match((await stream.get()).text, /^xy?$/);
        });
    });

    test('K13: a last checkpoint that never ends is left out: exit code 0, and nothing is lost', async () => {
        await withFaults(['--checkpoint-interval', '1h'], async (server, faults) => {
            const stream = await made(server, TEXT, 'x');
            await stream.append('y');
            faults.set('sync packs hold');
            server.expectGone();
            assert.deepEqual(await server.kill('SIGTERM'), { code: 0, signal: null }, server.tail());
            assert.equal(faults.hitCount(), 1, 'the checkpoint was under way');
            assert.match(server.log, /the last checkpoint took too long and was left out/);
            faults.clear();
            await server.start();
            assert.equal((await stream.get()).text, 'xy');
        });
    });

    test('K13: a request that is never answered ends it with exit code 1', async () => {
        await withFaults(['--checkpoint-interval', '1h'], async (server, faults) => {
            const stream = await made(server, TEXT, 'x');
            faults.set('sync wal hold');
            const raw = await fire(stream, [], 'y');
            await faults.hit();
            server.expectGone();
            assert.deepEqual(await server.kill('SIGTERM'), { code: 1, signal: null }, server.tail());
            assert.match(server.log, /draining took too long; giving up/);
            assert.equal((await raw.endOfConnection()).extra, '');
            raw.destroy();
            faults.clear();
            await server.start();
            assert.match((await stream.get()).text, /^xy?$/);
        });
    });

    test('A4, K17: no room for a new log file: 507 or 503, then all is well again', async () => {
        await withFaults(['--wal-segment', '64KiB', '--checkpoint-bytes', '128KiB'], async (server, faults) => {
            const stream = await made(server, OCTETS);
            faults.set('alloc wal ENOSPC', 'write packs ENOSPC');
            const acked = [];
            let refused = null;
            for (let i = 0; i < 200 && !refused; i++) {
                const body = Buffers.numbered(i, 20_000);
                const reply = await stream.post(body);
                if (reply.status === 204) {
                    acked.push(body);
                } else {
                    refused = reply;
                }
            }
            assert.ok(refused, 'at last there is no room');
            assertProblem(refused, [507, 503]);
            faults.clear();
            const last = Buffers.numbered(999, 1000);
            await eventually('appends go on', async () => (await stream.post(last)).status === 204, { every: 50 });
            assert.ok((await stream.readAll()).body.equals(Buffer.concat([...acked, last])));
            await server.crashAndRestart();
            assert.ok((await stream.readAll()).body.equals(Buffer.concat([...acked, last])));
        });
    });

    test('K16: one failed sync of the catalog stops nothing for good, and is told', async () => {
        await withFaults(['--wal-segment', '64KiB', '--checkpoint-bytes', '64KiB', '--checkpoint-interval', '200ms'],
                         async (server, faults) => {
            const health = async () => (await fetch(`${server.base}/health`)).status;
            const stream = await made(server, OCTETS);
            faults.set('sync catalog EIO');
            await stream.append('a'.repeat(1000));
            await faults.hit();
            await eventually('health tells', async () => await health() === 503);
            faults.clear();
            await eventually('health is good again', async () => await health() === 200);
            await eventually('the log tells', () => /checkpoints of .* work again/.test(server.log));
            assert.equal((server.log.match(/checkpoints of .* fail/g) ?? []).length, 1);
        });
    });

    test('K16: failing checkpoints lose nothing and are made up for', async () => {
        await withFaults(['--wal-segment', '256KiB', '--checkpoint-bytes', '512KiB', '--checkpoint-interval', '100ms'], async (server, faults) => {
            const stream = await made(server, OCTETS);
            const parts = [];
            for (const flaw of ['sync packs EIO 1', 'write packs EIO 1', 'sync catalog EIO 1', 'write packs short 3', 'write catalog EIO 1']) {
                faults.set(flaw);
                for (let i = 0; i < 4; i++) {
                    const part = Buffers.numbered(parts.length, 150_000);
                    const reply = await stream.post(part);
                    assert.ok([204, 503].includes(reply.status), `${flaw}: ${reply.status}`);
                    if (reply.status === 204) {
                        parts.push(part);
                    }
                }
                await sleep(150);
                assert.ok((await stream.readAll()).body.equals(Buffer.concat(parts)), flaw);
            }
            faults.clear();
            await server.crashAndRestart();
            assert.ok((await stream.readAll()).body.equals(Buffer.concat(parts)));
            await server.restart();
            assert.ok((await stream.readAll()).body.equals(Buffer.concat(parts)));
        });
    });
});

describe('K14: a read error in the middle of an answer', { timeout: 300_000 }, () => {
    test('K14: the connection is cut; no well-formed answer has a gap', async () => {
        await withFaults([], async (server, faults) => {
            const stream = await made(server, OCTETS);
            const small = await made(server, TEXT, 'small');
            const parts = Array.from({ length: 10 }, (_, i) => Buffers.numbered(i, 700_000));
            for (const part of parts) {
                await stream.append(part);
            }
            const all = Buffer.concat(parts);
            await server.restart();   // from packs, not from memory
            for (const flaw of ['read packs EIO 1', 'read packs EIO', 'read packs short 5']) {
                faults.set(flaw);
                let got = Buffer.alloc(0);
                let offset = '-1';
                for (;;) {
                    let reply;
                    try {
                        reply = await stream.from(offset);
                    } catch {
                        break;   // cut off
                    }
                    if (reply.status >= 500) {
                        break;
                    }
                    got = Buffer.concat([got, reply.body]);
                    assert.ok(got.equals(all.subarray(0, got.length)), `${flaw}: wrong bytes`);
                    if (reply.upToDate) {
                        assert.equal(got.length, all.length, `${flaw}: a false end`);
                        break;
                    }
                    offset = reply.next;
                }
                const sse = await Sse.open(stream, '-1');
                if (sse.status === 200) {
                    await Promise.race([sse.done, sse.until('the tail', () => sse.text.includes('upToDate'))]).catch(() => {});
                    sse.close();
                }
                faults.clear();
                assert.ok((await stream.readAll()).body.equals(all), `${flaw}: whole again`);
                assert.equal((await small.get()).text, 'small');
            }
        });
    });
});
