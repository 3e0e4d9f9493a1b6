// Tier 60: every cap has a defined answer and the server recovers (L4, L5,
// L16, L19, L21), and one descriptor per connection, none per stream.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { after, describe, test } from 'node:test';
import { JSON_TYPE, Stream, TEXT, assertProblem, producer, uniqueName } from './lib/http.mjs';
import { Raw, exchange, head } from './lib/raw.mjs';
import { serverFor, startServer } from './lib/server.mjs';
import { Sse } from './lib/sse.mjs';
import { SANITIZER, eventually, rounds, sleep } from './lib/wait.mjs';

const server = await startServer(['--max-body', '64KiB']);
after(() => server.dispose());

async function freshStream(type = TEXT, body, headers, on = server) {
    const stream = new Stream(on, uniqueName(), type);
    await stream.create(headers, body);
    return stream;
}

const fdCount = (on) => readdirSync(`/proc/${on.pid}/fd`).length;

// CPU time of the process so far, in clock ticks.
function cpuTicks(on) {
    const fields = readFileSync(`/proc/${on.pid}/stat`, 'utf8').split(') ')[1].split(' ');
    return Number(fields[11]) + Number(fields[12]);
}

describe('L4: the body cap', () => {
    test('L4: exactly the cap fits, one byte more is 413 in both framings and on PUT', async () => {
        const stream = await freshStream();
        const cap = 64 * 1024;
        assert.equal((await stream.post(Buffer.alloc(cap, 'x'))).status, 204);
        assertProblem(await stream.post(Buffer.alloc(cap + 1, 'x'), { ...producer('p', 0, 0), 'Stream-Seq': 'z' }), 413);
        const chunked = (size) => exchange(server, head('POST', stream.path,
            ['Content-Type: text/plain', 'Transfer-Encoding: chunked', 'Stream-Seq: z', 'Producer-Id: p', 'Producer-Epoch: 0', 'Producer-Seq: 0']) +
            `${(size - 10).toString(16)}\r\n${'y'.repeat(size - 10)}\r\na\r\n${'y'.repeat(10)}\r\n0\r\n\r\n`);
        assert.equal((await chunked(cap + 1)).status, 413);
        assert.equal((await chunked(cap + 11)).status, 413);
        assert.equal((await stream.head()).next, (await stream.get()).next);
        assert.equal((await stream.get()).body.length, cap);
        const good = await exchange(server, head('POST', stream.path, ['Content-Type: text/plain', 'Transfer-Encoding: chunked',
            'Producer-Id: p', 'Producer-Epoch: 0', 'Producer-Seq: 0', 'Stream-Seq: a']) + '1\r\nz\r\n0\r\n\r\n');
        assert.equal(good.status, 200, 'producer and Stream-Seq are untouched');
        const target = new Stream(server, uniqueName());
        assert.equal((await target.put({}, Buffer.alloc(cap + 1))).status, 413);
        assert.equal((await target.head()).status, 404);
    });

    test('L4: a length of terabytes is refused at once', async () => {
        const stream = await freshStream();
        for (const length of ['1099511627776', '9223372036854775807']) {
            const reply = await exchange(server, head('POST', stream.path, ['Content-Type: text/plain', `Content-Length: ${length}`]));
            assert.equal(reply.status, 413, length);
        }
    });

    test('L4: long protocol headers are refused, not cut', async () => {
        const stream = await freshStream();
        for (const headers of [{ 'Stream-Seq': 's'.repeat(300) }, { ...producer('p'.repeat(300), 0, 0) }]) {
            assert.equal((await stream.post('x', headers)).status, 400);
        }
        assert.equal((await stream.post('x', { 'Stream-Seq': 's'.repeat(256) })).status, 204);
        assert.equal((await stream.post('x', producer('p'.repeat(256), 0, 0))).status, 200);
        const made = new Stream(server, uniqueName());
        assert.equal((await made.put({ 'Content-Type': `text/plain; a=${'x'.repeat(300)}` })).status, 400);
        assert.equal((await made.head()).status, 404);
    });
});

describe('L5: descriptors and connections', () => {
    test('L5: out of descriptors: no busy loop, it recovers', { timeout: 120_000 }, async (t) => {
        const own = await serverFor(t, [], { ulimit: 'ulimit -n 200' });
        const stream = new Stream(own, 'x');
        await stream.create({}, 'x');
        const raws = [];
        for (let i = 0; i < 500; i++) {
            try {
                raws.push(await Raw.open(own));
            } catch {
                break;
            }
        }
        assert.ok(raws.length > 150);
        const before = cpuTicks(own);
        await sleep(700);
        assert.ok(cpuTicks(own) - before < 40, `${cpuTicks(own) - before} ticks of CPU in 0.7 s`);
        raws.forEach((raw) => raw.destroy());
        // Until the server has seen them go it may say that it is full.
        await eventually('room again', async () => {
            const reply = await stream.get('offset=-1', {}, { fresh: true });
            assert.ok([200, 503].includes(reply.status), reply.text);
            return reply.status === 200 && reply.text === 'x';
        });
        await stream.append('y');
    });

    test('L5: more connections than --max-connections get 503 or wait, and leave room when they go', async (t) => {
        const own = await serverFor(t, ['--max-connections', '20']);
        const setUp = async () => {
            const stream = new Stream(own, 'x');
            const reply = await stream.put({}, 'x', { fresh: true });
            assert.ok([200, 201].includes(reply.status));
        };
        await setUp();
        const raws = [];
        for (let i = 0; i < 60; i++) {
            raws.push(await Raw.open(own));
        }
        const statuses = [];
        for (const raw of raws) {
            raw.send(head('HEAD', '/v1/stream/x'));
        }
        for (const raw of raws.slice(0, 20)) {
            statuses.push((await raw.response('HEAD')).status);
        }
        assert.ok(statuses.filter((status) => status === 200).length >= 10, statuses.join());
        raws.forEach((raw) => raw.destroy());
        await eventually('room again', async () => {
            try {
                const raw = await Raw.open(own);
                raw.send(head('HEAD', '/v1/stream/x'));
                const { status } = await raw.response('HEAD');
                raw.destroy();
                return status === 200;
            } catch {
                return false;
            }
        });
    });

    test('L5: above --max-connections everybody is told so with 503, and nobody is reset', async (t) => {
        const own = await serverFor(t, ['--max-connections', '10']);
        const holders = await Promise.all(Array.from({ length: 10 }, () => Raw.open(own)));
        for (const raw of holders) {
            raw.send(head('HEAD', '/v1/stream/x'));
            assert.equal((await raw.response('HEAD')).status, 404);
        }
        // A few are answered as any request is, the many beyond those at once.
        const open = [];
        for (let i = 0; i < rounds(300); i++) {
            const raw = await Raw.open(own);
            raw.send(head('PUT', '/v1/stream/x', ['Content-Type: text/plain', 'Content-Length: 1']) + 'x');
            open.push(raw);
        }
        for (const raw of open) {
            const reply = await raw.response();
            assert.equal(reply.status, 503);
            assert.equal(reply.headers['retry-after'], '1');
            assert.match(reply.headers.connection, /close/i);
            assert.match(reply.json().detail, /too many connections/);
        }
        // Those that ask for nothing are closed, so that they do not keep others from being told.
        const silent = await Raw.open(own);
        assert.equal((await silent.rest()).toString('latin1').replace(/^HTTP\/1.1 503 [^]*$/, ''), '');
        [...holders, ...open, silent].forEach((raw) => raw.destroy());
        await eventually('room again', async () => {
            const raw = await Raw.open(own);
            raw.send(head('HEAD', '/v1/stream/x'));
            const { status } = await raw.response('HEAD');
            raw.destroy();
            return status === 404;
        });
    });

    test('L5: streams cost no descriptor, connections one each, and none leaks', async () => {
        const before = fdCount(server);
        const raw = await Raw.open(server);
        const count = rounds(2000);
        for (let i = 0; i < count; i++) {
            raw.send(head('PUT', `/v1/stream/fd-${i}`, ['Content-Type: text/plain', 'Content-Length: 1']) + 'x');
        }
        for (let i = 0; i < count; i++) {
            assert.equal((await raw.response()).status, 201);
        }
        assert.ok(fdCount(server) <= before + 20, `${before} to ${fdCount(server)}`);
        const without = fdCount(server); // those of tests before have been closed by now, if not at the beginning
        const idle = await Promise.all(Array.from({ length: 100 }, () => Raw.open(server)));
        await eventually('they are accepted', () => fdCount(server) >= without + 95);
        assert.ok(fdCount(server) <= before + 130);
        idle.forEach((one) => one.destroy());
        raw.destroy();
        await eventually('all are closed', () => fdCount(server) <= before + 20);
    });
});

describe('L16: slow and silent clients', { concurrency: true }, () => {
    test('L16: half a head in five hundred connections holds up nobody', async () => {
        const raws = await Promise.all(Array.from({ length: rounds(500) }, () => Raw.open(server)));
        for (const raw of raws) {
            raw.send('GET /v1/stream/x HTTP/1.1\r\nHost: x\r\nX-Slow: ');
        }
        const stream = await freshStream();
        for (let i = 0; i < 50; i++) {
            await stream.append('x');
        }
        assert.equal((await stream.get()).body.length, 50);
        raws.forEach((raw) => raw.destroy());
    });

    test('L16: half a body in two hundred connections holds up nobody', async () => {
        const stream = await freshStream();
        const raws = await Promise.all(Array.from({ length: rounds(200) }, () => Raw.open(server)));
        for (const raw of raws) {
            raw.send(head('POST', stream.path, ['Content-Type: text/plain', 'Content-Length: 60000']) + 'x'.repeat(30_000));
        }
        for (let i = 0; i < 20; i++) {
            await stream.append('y');
        }
        assert.equal((await stream.get()).text, 'y'.repeat(20));
        raws.forEach((raw) => raw.destroy());
    });

    test('L16: uploads that announce much and send little leave room for writes of others', async () => {
        const stream = await freshStream();
        const raws = await Promise.all(Array.from({ length: rounds(1000) }, () => Raw.open(server)));
        for (const raw of raws) {
            raw.send(head('POST', stream.path, ['Content-Type: text/plain', 'Content-Length: 60000000']) + 'x');
        }
        for (let i = 0; i < 20; i++) {
            await stream.append('y'.repeat(5000));
        }
        assert.equal((await stream.get()).body.length, 100_000);
        raws.forEach((raw) => raw.destroy());
    });

    test('L16: a head that never ends is cut off by time, however steadily it drips', { timeout: 120_000 }, async () => {
        const silent = await Raw.open(server);
        silent.send('GET /v1/stream/x HTTP/1.1\r\nHost: x\r\n');
        const dripping = await Raw.open(server);
        dripping.send('GET /v1/stream/x HTTP/1.1\r\nHost: x\r\nX-Drip: ');
        const drip = setInterval(() => dripping.send('d'), 500);
        try {
            for (const raw of [silent, dripping]) {
                const bytes = (await raw.rest()).toString('latin1');
                assert.ok(bytes === '' || /^HTTP\/1\.1 408/.test(bytes), bytes.slice(0, 100));
            }
        } finally {
            clearInterval(drip);
            silent.destroy();
            dripping.destroy();
        }
    });
});

describe('L21: what the server does for health and for its directory', () => {
    test('L19: the data directory is private', async () => {
        assert.equal(statSync(server.dir).mode & 0o077, 0);
        for (const name of readdirSync(server.dir, { recursive: true })) {
            const { mode } = statSync(`${server.dir}/${name}`);
            assert.equal(mode & 0o077, 0, `${name} has mode ${(mode & 0o777).toString(8)}`);
        }
    });

    test('L19: a directory that the server makes itself is private too', async (t) => {
        const own = await serverFor(t, [], { dir: `${server.dir}-new`, ownDir: true });
        assert.equal(statSync(own.dir).mode & 0o777, 0o700);
    });

    test('L12: many waiters on one stream and on many', async () => {
        const stream = await freshStream();
        const all = await Promise.all(Array.from({ length: rounds(300) }, () => Sse.open(stream, 'now')));
        await stream.append('to all');
        for (const sse of all) {
            await sse.until('the data', () => sse.events.some((event) => event.data === 'to all'));
            sse.close();
        }
        assert.equal(JSON_TYPE, 'application/json');
    });
});

describe('R16, C14: bookkeeping of dead streams', { timeout: 240_000 }, () => {
    test('R16: creating and deleting many streams leaves neither memory nor files behind', async (t) => {
        const own = await serverFor(t, ['--checkpoint-bytes', '1MiB', '--wal-segment', '1MiB', '--checkpoint-interval', '1s']);
        const rss = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${own.pid}/status`, 'utf8'))[1]);
        const disk = () => readdirSync(own.dir, { recursive: true })
            .map((name) => {
                try {
                    const info = statSync(`${own.dir}/${name}`);
                    return info.isFile() ? info.blocks * 512 : 0;
                } catch {
                    return 0;
                }
            }).reduce((a, b) => a + b, 0);
        const raws = await Promise.all(Array.from({ length: 64 }, () => Raw.open(own)));
        const cycle = (count) => Promise.all(raws.map(async (raw, lane) => {
            for (let at = lane; at < count; at += 64 * 10) {
                let packet = '';
                for (let i = 0; i < 10; i++) {
                    const path = `/v1/stream/dead-${at + 64 * i}`;
                    packet += head('PUT', path, ['Content-Type: text/plain', 'Content-Length: 200']) + 'x'.repeat(200) +
                        head('POST', path, ['Content-Type: text/plain', 'Content-Length: 1', 'Producer-Id: p', 'Producer-Epoch: 0',
                            'Producer-Seq: 0']) + 'y' + head('DELETE', path);
                }
                raw.send(packet);
                for (let i = 0; i < 10; i++) {
                    for (const wanted of [201, 200, 204]) {
                        assert.equal((await raw.response()).status, wanted);
                    }
                }
            }
        }));
        await cycle(rounds(3000));
        const [memory, bytes] = [rss(), disk()];
        await cycle(rounds(9000));
        if (!SANITIZER) {   // which keep what is freed for a while
            assert.ok(rss() - memory < 30 * 1024, `RSS grew by ${rss() - memory} KiB`);
        }
        await eventually('disk use is flat', () => disk() - bytes < 12 << 20);
        raws.forEach((raw) => raw.destroy());
        await own.crashAndRestart();
        assert.equal((await new Stream(own, 'dead-5').head()).status, 404);
    });
});
