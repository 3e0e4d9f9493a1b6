// Tier 60: a full disk (K7, K17, R4): 507, nothing stored, and all is well once
// there is room again.
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe } from 'node:test';
import { JSON_TYPE, OCTETS, Stream, TEXT, assertProblem, producer } from './lib/http.mjs';
import { Buffers } from './lib/fill.mjs';
import { fillDisk, mountImpossible, mountTiny } from './lib/faults.mjs';
import { testUnless } from './lib/impossible.mjs';
import { startServer } from './lib/server.mjs';
import { eventually, rounds } from './lib/wait.mjs';

const FLAGS = ['--wal-segment', '1MiB', '--checkpoint-bytes', '4MiB', '--checkpoint-interval', '1s'];
const test = testUnless(mountImpossible());

async function onTinyDisk(size, body, flags = []) {
    const tiny = mountTiny(size);
    const server = await startServer([...FLAGS, ...flags], { dir: join(tiny.dir, 'data') });
    try {
        await body(server, tiny);
    } finally {
        try {
            await server.dispose();
        } finally {
            tiny.unmount();
        }
    }
}

// Appends until the disk is full; gives what was acknowledged.
async function appendUntilFull(stream, block, headers = () => ({})) {
    const acked = [];
    for (let i = 0; i < 2000; i++) {
        const body = block(i);
        const reply = await stream.post(body, headers(i));
        if (reply.status >= 500) {
            return { acked, refused: reply, at: i, body };
        }
        assert.ok([200, 204].includes(reply.status), `${reply.status} ${reply.text}`);
        acked.push(body);
    }
    throw new Error('the disk never got full');
}

describe('K7: appends on a full disk', { timeout: 240_000 }, () => {
    test('K7: refused appends do not come back, the producer retries with success, all survives a kill', async () => {
        await onTinyDisk('24m', async (server, tiny) => {
            const small = new Stream(server, 'small', JSON_TYPE);
            await small.create({}, '["first"]');
            const stream = new Stream(server, 'big', OCTETS);
            await stream.create();
            const { acked, refused, at, body } = await appendUntilFull(stream, (i) => Buffers.numbered(i, 300_000),
                                                                      (i) => producer('p', 0, i));
            assertProblem(refused, [507, 503]);
            const tail = await stream.head();
            assert.ok((await stream.readAll()).body.equals(Buffer.concat(acked)), 'reads go on and show just what was acked');
            const again = await stream.post(body, producer('p', 0, at));
            assert.ok(again.status >= 500 || again.status === 200, String(again.status));
            await server.crash();
            // Room is made; recovery must work from here in any case.
            fillDisk(join(tiny.dir, 'ballast'));
            rmSync(join(tiny.dir, 'ballast'));
            const { spawnSync } = await import('node:child_process');
            spawnSync('mount', ['-o', 'remount,size=64m', tiny.dir]);
            await server.start();
            assert.equal((await stream.head()).next >= tail.next, true);
            const retried = await stream.post(body, producer('p', 0, at));
            assert.equal(retried.status, again.status === 200 ? 204 : 200);
            assert.ok((await stream.readAll()).body.equals(Buffer.concat([...acked, body])));
            await small.append('"last"');
            assert.equal((await small.get()).text, '["first","last"]');
            await server.crashAndRestart();
            assert.ok((await stream.readAll()).body.equals(Buffer.concat([...acked, body])));
        });
    });

    test('K7: without a producer: "A" fails, room is made, "B" is accepted: only "B"', async () => {
        await onTinyDisk('24m', async (server, tiny) => {
            const stream = new Stream(server, 's', TEXT);
            await stream.create({}, 'start;');
            const ballast = join(tiny.dir, 'ballast');
            fillDisk(ballast);
            const nexts = [];
            let text = 'start;';
            let refusals = 0;
            // Space that was reserved before may still take some of them.
            for (let i = 0; i < 400 && refusals < 3; i++) {
                const body = `A${i}-${'a'.repeat(20_000)};`;
                const reply = await stream.post(body);
                if (reply.status === 204) {
                    assert.equal(refusals, 0, 'once full it stays full');
                    text += body;
                    nexts.push(reply.next);
                } else {
                    assertProblem(reply, 507);
                    refusals++;
                }
            }
            assert.equal(refusals, 3);
            assert.equal((await stream.readAll()).body.toString(), text);
            rmSync(ballast);
            const reply = await eventually('B is accepted', async () => {
                const one = await stream.post('B;');
                assert.ok([204, 507, 503].includes(one.status), `${one.status} ${one.text}`);
                return one.status === 204 && one;
            });
            assert.equal((await stream.readAll()).body.toString(), `${text}B;`);
            assert.equal((await stream.head()).next, reply.next);
            await server.crashAndRestart();
            assert.equal((await stream.readAll()).body.toString(), `${text}B;`);
            await stream.append('C;');
            assert.equal((await stream.readAll()).body.toString(), `${text}B;C;`);
        });
    });

    test('K17: a create on a full disk makes no phantom', async () => {
        await onTinyDisk('24m', async (server, tiny) => {
            const ballast = join(tiny.dir, 'ballast');
            const first = new Stream(server, 'first', TEXT);
            await first.create({}, 'x');
            fillDisk(ballast);
            let refused = null;
            const made = [];
            for (let i = 0; i < 400 && !refused; i++) {
                const stream = new Stream(server, `s${i}`, TEXT);
                const reply = await stream.put({}, 'b'.repeat(20_000));
                if (reply.status === 201) {
                    made.push(stream);
                } else {
                    assertProblem(reply, 507);
                    refused = stream;
                }
            }
            assert.ok(refused);
            assert.equal((await refused.head()).status, 404);
            assert.equal((await refused.get()).status, 404);
            assert.equal((await first.get()).text, 'x', 'reads go on');
            rmSync(ballast);
            await eventually('the create succeeds', async () => {
                const { status } = await refused.put({}, 'now');
                assert.ok([201, 507, 503].includes(status));
                return status === 201;
            });
            assert.equal((await refused.get()).text, 'now');
            await server.crashAndRestart();
            assert.equal((await refused.get()).text, 'now');
            for (const stream of made) {
                assert.equal((await stream.get()).body.length, 20_000);
            }
        });
    });

    for (const [how, flags] of [['checkpoints at work', ['--checkpoint-interval', '500ms']],
                                ['all in the log', ['--checkpoint-interval', '100s', '--checkpoint-bytes', '64MiB']]]) {
        test(`R4: deletes make a disk usable that we filled ourselves, ${how}`, async () => {
            await onTinyDisk('24m', async (server) => {
                const streams = Array.from({ length: 8 }, (_, i) => new Stream(server, `s${i}`, OCTETS));
                const texts = streams.map(() => []);
                await Promise.all(streams.map((stream) => stream.create()));
                let refusals = 0;
                for (let i = 0; refusals < 100; i++) {
                    const body = Buffers.numbered(i, refusals > 20 ? 4000 : 250_000);
                    const reply = await streams[i % 8].post(body);
                    if (reply.status === 204) {
                        texts[i % 8].push(body);
                    } else {
                        assertProblem(reply, [507, 503]);
                        refusals++;
                    }
                }
                for (const stream of streams.slice(0, 7)) {
                    assert.equal((await stream.remove()).status, 204);
                }
                for (let i = 0; i < 6; i++) {
                    const body = Buffers.numbered(i, 1_000_000);
                    await eventually('room', async () => (await streams[7].post(body)).status === 204);
                    texts[7].push(body);
                }
                assert.ok((await streams[7].readAll()).body.equals(Buffer.concat(texts[7])));
                await server.crashAndRestart();
                assert.ok((await streams[7].readAll()).body.equals(Buffer.concat(texts[7])));
            }, flags);
        });
    }

    test('R4: on a disk that is full to the last byte the server stops well, starts, and reads', async () => {
        await onTinyDisk('24m', async (server, tiny) => {
            const stream = new Stream(server, 's', OCTETS);
            await stream.create();
            const { acked } = await appendUntilFull(stream, (i) => Buffers.numbered(i, 300_000));
            fillDisk(join(tiny.dir, 'ballast'));
            await server.stop();
            await server.start();
            assert.ok((await stream.readAll()).body.equals(Buffer.concat(acked)));
            await server.crash();
            await server.start();
            assert.ok((await stream.readAll()).body.equals(Buffer.concat(acked)));
            assertProblem(await stream.post(Buffers.numbered(1, 3_000_000)), [507, 503]);
            assert.equal((await stream.remove()).status, 204);
            rmSync(join(tiny.dir, 'ballast'));
            await eventually('room', async () => (await new Stream(server, 'next', OCTETS).put({}, 'x')).status === 201);
        });
    });

    test('R4: deleted and expired bytes are given back to the disk', async () => {
        await onTinyDisk('32m', async (server) => {
            const block = 'z'.repeat(500_000);
            // Four times the disk in all, never more than a little at once.
            for (let i = 0; i < rounds(250); i++) {
                const stream = new Stream(server, `s${i % 3}`, TEXT);
                const put = await eventually('room for the next one', async () => {
                    const reply = await stream.put(i % 2 ? { 'Stream-TTL': '0' } : {}, block);
                    assert.ok([201, 507, 503].includes(reply.status), `${reply.status} ${reply.text}`);
                    return reply.status === 201;
                });
                assert.ok(put);
                if (i % 2 === 0) {
                    assert.equal((await stream.remove()).status, 204);
                }
            }
            const normal = new Stream(server, 'normal', TEXT);
            await eventually('a normal create', async () => (await normal.put({}, block)).status === 201);
            assert.equal((await normal.get()).body.length, block.length);
        });
    });
});
