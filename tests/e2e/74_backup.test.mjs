// Tier 70: backup, restore and verify with the real program: under load, killed,
// on a full disk, with files that cannot be read.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { JSON_TYPE, Stream, TEXT, producer, request } from './lib/http.mjs';
import { Faults, buildFaultLibrary, mountImpossible, mountTiny } from './lib/faults.mjs';
import { testUnless } from './lib/impossible.mjs';
import { Server, run, serverFor } from './lib/server.mjs';
import { begin, freshPath, good, refused } from './lib/tool.mjs';
import { eventually, randomFrom, rounds } from './lib/wait.mjs';

const FLAGS = ['--checkpoint-interval', '50ms', '--checkpoint-bytes', '256KiB', '--wal-segment', '256KiB'];
const WRITERS = 24;
const STREAMS = 12;
const { library, impossible } = buildFaultLibrary();
const faultTest = testUnless(impossible);
const fullDiskTest = testUnless(mountImpossible());

// Appends as fast as the machine lets it, with producers, forks, deletions and
// creations going on, and keeps what was acknowledged.
class Load {
    constructor(server, seed) {
        this.server = server;
        this.random = randomFrom(seed);
        this.streams = Array.from({ length: STREAMS }, (_, i) => new Stream(server, `load/${i}`, i % 3 === 2 ? JSON_TYPE : TEXT));
        this.acked = this.streams.map(() => new Array(WRITERS).fill(-1));
        this.passing = new Map(); // name: 'there', 'asked', 'gone'
        this.forks = new Map();   // name: index of the source
        this.appends = 0;
        this.going = true;
    }

    async create() {
        for (const stream of this.streams) {
            await stream.create();
        }
    }

    start() {
        this.tasks = [...Array.from({ length: WRITERS }, (_, w) => this.write(w)), this.churn()];
        return this;
    }

    async write(writer) {
        const at = writer % STREAMS;
        const stream = this.streams[at];
        const json = stream.type === JSON_TYPE;
        for (let n = 0; this.going; n++) {
            const text = `${writer}:${n}:${'x'.repeat(this.random.below(300))}`;
            const headers = writer % 2 ? producer(`w${writer}`, 0, n) : {};
            await stream.append(json ? JSON.stringify([text]) : `${text}\n`, headers);
            this.acked[at][writer] = n;
            this.appends++;
        }
    }

    async churn() {
        for (let n = 0; this.going; n++) {
            const name = `passing/${n}`;
            const stream = new Stream(this.server, name, TEXT);
            this.passing.set(name, 'asked');
            await stream.create({}, 'p'.repeat(this.random.below(2000)));
            this.passing.set(name, 'there');
            const source = this.random.below(STREAMS);
            const fork = new Stream(this.server, `fork/${n}`, this.streams[source].type);
            await fork.create({ 'Stream-Forked-From': this.streams[source].path });
            this.forks.set(fork.name, source);
            if (n >= 5) {
                const old = `passing/${n - 5}`;
                this.passing.set(old, 'asked');
                await new Stream(this.server, old, TEXT).remove();
                this.passing.set(old, 'gone');
            }
        }
    }

    async stop() {
        this.going = false;
        await Promise.all(this.tasks);
    }

    // What was acknowledged by now.
    seen() {
        return { acked: this.acked.map((row) => [...row]), passing: new Map(this.passing), forks: new Map(this.forks) };
    }
}

// The restored server holds a prefix of each stream's history, and all of `before`.
async function compare(load, before, restored) {
    for (const [i, stream] of load.streams.entries()) {
        const whole = await stream.readAll();
        const part = await new Stream(restored, stream.name, stream.type).readAll();
        const last = new Array(WRITERS).fill(-1);
        const keys = stream.type === JSON_TYPE ? part.pages.flatMap((page) => JSON.parse(page.toString()))
            : part.body.toString().split('\n').slice(0, -1);
        const all = stream.type === JSON_TYPE ? whole.pages.flatMap((page) => JSON.parse(page.toString()))
            : whole.body.toString().split('\n').slice(0, -1);
        assert.deepEqual(keys, all.slice(0, keys.length), `${stream.name}: no prefix`);
        for (const key of keys) {
            const [writer, n] = key.split(':').map(Number);
            assert.equal(n, last[writer] + 1, `${stream.name}: a gap of writer ${writer}`);
            last[writer] = n;
        }
        for (let w = 0; w < WRITERS; w++) {
            assert.ok(last[w] >= before.acked[i][w],
                      `${stream.name}: writer ${w} is at ${last[w]}, and ${before.acked[i][w]} was acknowledged before`);
        }
    }
    for (const [name, state] of before.passing) {
        const { status } = await new Stream(restored, name, TEXT).head();
        const now = load.passing.get(name);
        assert.ok(state !== 'gone' || status === 404, `${name} was deleted before, and is there`);
        assert.ok(state !== 'there' || now !== 'there' || status === 200, `${name} was there before, and is not: ${status}`);
    }
    for (const [name, source] of before.forks) {
        const fork = await new Stream(restored, name, load.streams[source].type).readAll();
        const live = await new Stream(load.server, name, load.streams[source].type).readAll();
        assert.ok(fork.body.equals(live.body), `${name}: a fork differs`);
    }
}

describe('backup under load', { timeout: 300_000 }, () => {
    test('is a prefix of the acknowledged history, without a gap, and has all from before it began', async (t) => {
        const server = await serverFor(t, FLAGS);
        const load = new Load(server, 74);
        await load.create();
        load.start();
        for (let round = 0; round < rounds(4); round++) {
            await eventually('some load', () => load.appends > (round + 1) * rounds(1500));
            const before = load.seen();
            const out = freshPath('out');
            const dir = freshPath('dir');
            const said = JSON.parse(await good(['backup', '--json', server.dir, out]));
            assert.equal(said.running, true);
            assert.ok(said.files >= 3 && said.position > 0);
            assert.ok(JSON.parse((await good(['verify', '--json', server.dir])).trimEnd().split('\n').at(-1)).running);
            assert.match(await good(['verify', out]), /everything is right/);
            await good(['restore', out, dir]);
            assert.match(await good(['verify', dir]), /everything is right/);
            for (const file of readdirSync(out, { recursive: true })) {
                const info = statSync(join(out, file));
                assert.equal(info.mode & 0o777, info.isDirectory() ? 0o700 : 0o600, file);
            }
            const restored = await serverFor(t, FLAGS, { dir });
            if (round === 0) {
                await compare(load, before, restored);
            } else {
                load.last = { before, restored };
            }
            if (round < rounds(4) - 1) {
                await restored.stop();
            }
        }
        await load.stop();
        await compare(load, load.last.before, load.last.restored);
        // It goes on: producers know where they were.
        const stream = new Stream(load.last.restored, 'load/1', TEXT);
        await stream.append('after\n');
        await load.last.restored.crashAndRestart();
        assert.ok((await stream.readAll()).body.toString().endsWith('after\n'));
        await load.last.restored.stop();
        assert.match(await good(['verify', load.last.restored.dir]), /everything is right/);
    });

    test('verify finds nothing after kills under load', async () => {
        const server = await new Server(FLAGS).start();
        try {
            for (let round = 0; round < rounds(5); round++) {
                const load = new Load(server, round);
                load.streams.forEach((stream, i) => { stream.name = `k${round}/${i}`; stream.path = `/v1/stream/${stream.name}`; });
                await load.create();
                load.churn = async () => {};
                const ended = Promise.allSettled(load.start().tasks); // some answers never come
                await eventually('some load', () => load.appends > 200);
                await server.crash();
                load.going = false;
                await ended;
                assert.match(await good(['verify', server.dir]), /everything is right/);
                await server.start();
                assert.match(await good(['verify', server.dir]), /in use by a server[^]*everything is right/);
            }
        } finally {
            await server.dispose();
        }
    });
});

async function filled(t) {
    const server = await serverFor(t, FLAGS);
    const stream = new Stream(server, 'filled', TEXT);
    await stream.create();
    for (let i = 0; i < 20; i++) {
        await stream.append(`${i}:${'f'.repeat(100_000)}\n`);
    }
    await eventually('a pack', () => readdirSync(join(server.dir, 'packs')).length > 0);
    return { server, stream };
}

describe('backup that does not come to its end', { timeout: 300_000 }, () => {
    test('targets that are not new are refused, and so is what is no backup', async (t) => {
        const { server } = await filled(t);
        const full = freshPath('full');
        mkdirSync(full);
        writeFileSync(join(full, 'mine'), 'precious');
        await refused(['backup', server.dir, full], /is not empty/);
        assert.equal(readFileSync(join(full, 'mine'), 'utf8'), 'precious');
        await refused(['restore', full, freshPath('dir')], /is no backup/);
        await refused(['backup', freshPath('nowhere'), freshPath('out')], /cannot open|no data directory/);
        await refused(['verify', freshPath('nowhere')], /cannot list/);
        const none = freshPath('out');
        for (const tool of [['verify', full], ['stats', full], ['backup', full, none]]) {
            await refused(tool, /is no data directory/);
        }
        assert.ok(!existsSync(none), 'nothing is made for what cannot be');
        for (const inner of [join(server.dir, 'copy'), `${server.dir}/a/../b/`, server.dir]) {
            await refused(['backup', server.dir, inner], /lie in one another/);
        }
        const out = freshPath('out');
        await good(['backup', server.dir, out]);
        await refused(['restore', out, join(out, 'dir')], /lie in one another/);
        await refused(['--data', out, '--listen', '127.0.0.1:0'], /it is a backup; .*arbe streams restore/);
        await refused(['restore', out, server.dir], /is not empty/);
        await refused(['backup', server.dir, out], /is not empty/);
    });

    faultTest('a tool that reads keeps a server from starting, and says so', async (t) => {
        const { server } = await filled(t);
        await server.stop();
        const faults = new Faults(library);
        t.after(() => faults.dispose());
        faults.set('read packs hold');
        const verify = begin(['verify', server.dir], faults.env);
        await faults.hit();
        await assert.rejects(server.start(), /another process uses this data directory/);
        assert.match(await good(['verify', server.dir]), /everything is right/); // several may read
        faults.clear();
        assert.equal((await verify.end()).code, 0);
        await server.start();
    });

    const withFaults = async (t, body) => {
        const faults = new Faults(library);
        t.after(() => faults.dispose());
        await body(await filled(t), faults, freshPath('out'));
    };

    faultTest('a backup that is killed is none, and the server goes on', async (t) => {
        await withFaults(t, async ({ server, stream }, faults, out) => {
            for (const place of ['wal', 'catalog', 'packs', 'manifest']) {
                const target = `${out}-${place}`;
                faults.set(`write ${target}/${place} hold`);
                const backup = begin(['backup', server.dir, target], faults.env);
                await faults.hit();
                await stream.append(`during ${place}\n`);
                backup.child.kill('SIGKILL');
                assert.equal((await backup.end()).signal, 'SIGKILL');
                faults.clear();
                assert.ok(!existsSync(join(target, 'manifest')));
                await refused(['restore', target, freshPath('dir')], /is no backup/);
            }
            await good(['backup', server.dir, out]);
            assert.match(await good(['verify', server.dir]), /everything is right/);
        });
    });

    faultTest('a server that is killed meanwhile leaves no backup, and loses nothing', async (t) => {
        await withFaults(t, async ({ server, stream }, faults, out) => {
            faults.set(`write ${out}/packs hold`);
            const backup = begin(['backup', server.dir, out], faults.env);
            await faults.hit();
            await server.crash();
            faults.clear();
            const { code, text } = await backup.end();
            assert.equal(code, 1, text);
            assert.match(text, /the server let go of its files meanwhile/);
            await refused(['restore', out, freshPath('dir')], /is no backup/);
            assert.match(await good(['verify', server.dir]), /everything is right/);
            await good(['backup', server.dir, freshPath('out')]); // of the stopped directory
            await server.start();
            assert.equal((await stream.readAll()).body.toString().split('\n').length, 21);
        });
    });

    faultTest('so it is when the server stops as it should', async (t) => {
        await withFaults(t, async ({ server }, faults, out) => {
            faults.set(`write ${out}/packs hold`);
            const backup = begin(['backup', server.dir, out], faults.env);
            await faults.hit();
            await server.stop();
            faults.clear();
            assert.equal((await backup.end()).code, 1);
            assert.match(await good(['verify', server.dir]), /everything is right/);
        });
    });

    faultTest('files that cannot be read, written or synced', async (t) => {
        await withFaults(t, async ({ server }, faults, out) => {
            for (const [call, what] of [['read', `${server.dir}/packs`], ['read', `${server.dir}/wal`], ['read', `${server.dir}/catalog`],
                                        ['write', `${out}/packs`], ['write', `${out}/catalog`], ['sync', `${out}/wal`]]) {
                faults.set(`${call} ${what} EIO`);
                await refused(['backup', server.dir, out], /the disk reported an error/, { env: faults.env });
                faults.clear();
                assert.deepEqual(readdirSync(out, { recursive: true }).filter((name) => statSync(join(out, name)).isFile()), [],
                                 'what was made is taken away');
            }
            faults.set(`write ${out}/packs ENOSPC`);
            await refused(['backup', server.dir, out], /no space is left/, { env: faults.env });
            faults.clear();
            await good(['backup', server.dir, out]); // there is nothing in the way
            const dir = freshPath('dir');
            faults.set(`write ${dir}/packs ENOSPC`);
            await refused(['restore', out, dir], /no space is left/, { env: faults.env });
            faults.clear();
            await good(['restore', out, dir]);
            faults.set(`read ${server.dir}/packs EIO`);
            const { code, stdout } = await run(['streams', 'verify', server.dir], { env: faults.env });
            assert.equal(code, 1);
            assert.match(stdout, /^damage: packs\/pack-.*the disk reported an error/m);
        });
    });

    fullDiskTest('a disk that is too small is told at once', async (t) => {
        const { server } = await filled(t);
        const tiny = mountTiny('1m');
        t.after(() => tiny.unmount());
        await refused(['backup', server.dir, join(tiny.dir, 'out')], /no room: the backup takes/);
    });
});

describe('verify and restore with the program', { timeout: 300_000 }, () => {
    test('damage is told on stdout, a line each, with exit code 1', async (t) => {
        const { server } = await filled(t);
        await server.stop();
        const pack = readdirSync(join(server.dir, 'packs'))[0];
        const path = join(server.dir, 'packs', pack);
        const bytes = readFileSync(path);
        bytes[200] ^= 1;
        writeFileSync(path, bytes);
        const text = await run(['streams', 'verify', server.dir]);
        assert.equal(text.code, 1);
        assert.match(text.stdout, new RegExp(`^damage: packs/${pack}: at \\d+: stream \\d+, bytes \\d+ to \\d+: they do not match their checksum`, 'm'));
        assert.match(text.stdout, /(1 thing is|\d+ things are) wrong\n$/);
        const json = await run(['streams', 'verify', '--json', server.dir]);
        const lines = json.stdout.trimEnd().split('\n').map((line) => JSON.parse(line));
        assert.equal(lines[0].finding, 'damage');
        assert.equal(lines[0].file, `packs/${pack}`);
        assert.equal(lines.at(-1).damages, lines.length - 1);
        bytes[200] ^= 1;
        writeFileSync(path, bytes);
        assert.match(await good(['verify', server.dir]), /everything is right/);
        await server.start();
    });

    test('in a backup the end of the log is checked too, and so is all that restore would refuse', async (t) => {
        const { server } = await filled(t);
        await server.crash(); // its last records are in the log alone
        const out = freshPath('out');
        const { position } = JSON.parse(await good(['backup', '--json', server.dir, out]));
        const [log] = readdirSync(join(out, 'wal'));
        const from = parseInt(log.slice('wal-'.length), 16);
        const damaged = async (name, at, pattern) => {
            const path = join(out, name);
            const bytes = readFileSync(path);
            bytes[at] ^= 1;
            writeFileSync(path, bytes);
            const { code, stdout } = await run(['streams', 'verify', out]);
            assert.equal(code, 1, stdout);
            assert.match(stdout, pattern);
            assert.equal((await run(['streams', 'restore', out, freshPath('dir')])).code, 1);
            bytes[at] ^= 1;
            writeFileSync(path, bytes);
        };
        const checksum = new RegExp(`^damage: wal/${log}: its bytes do not match their checksum in the manifest: restore refuses`, 'm');
        await damaged(`wal/${log}`, 4096 + position - from - 20, checksum); // in the last record
        await damaged(`wal/${log}`, 4000, checksum); // what nobody reads
        await damaged('manifest', 30, /^damage: manifest: it was cut or changed/m);
        truncateSync(join(out, 'wal', log), 4096);
        assert.match((await run(['streams', 'verify', out])).stdout, /its size is not that of the manifest/);
        rmSync(join(out, 'wal', log));
        assert.match((await run(['streams', 'verify', out])).stdout, /it cannot be opened/);
        await server.start();
    });

    test('verify, stats and backup change nothing in a directory that is not in use', async (t) => {
        const { server } = await filled(t);
        await server.crash();
        const look = () => readdirSync(server.dir, { recursive: true }).sort().map((name) => {
            const info = statSync(join(server.dir, name));
            return [name, info.mtimeMs, info.ctimeMs, info.mode, info.isFile() ? readFileSync(join(server.dir, name)).toString('base64') : ''];
        });
        const before = look();
        await good(['verify', server.dir]);
        await good(['stats', server.dir]);
        await good(['backup', server.dir, freshPath('out')]);
        assert.deepEqual(look(), before);
        await server.start();
    });

    test('keys are in a backup, and damaged ones are told', async (t) => {
        const { server } = await filled(t);
        const keys = join(server.dir, 'keys', 'keys.pem');
        const subscription = await request(server.base, 'PUT', '/v1/stream/__ds/subscriptions/kept', {
            headers: { 'Content-Type': JSON_TYPE },
            body: JSON.stringify({ type: 'pull-wake', streams: ['filled'], wake_stream: 'wakes' }),
        });
        assert.ok([200, 201].includes(subscription.status), subscription.text);
        assert.ok(existsSync(keys));
        const out = freshPath('out');
        await good(['backup', server.dir, out]);
        assert.deepEqual(readFileSync(join(out, 'keys', 'keys.pem')), readFileSync(keys));
        const dir = freshPath('dir');
        await good(['restore', out, dir]);
        const restored = await serverFor(t, FLAGS, { dir });
        const { status } = await request(restored.base, 'GET', '/v1/stream/__ds/subscriptions/kept');
        assert.equal(status, 200);
        await restored.stop();
        const bytes = readFileSync(join(dir, 'keys', 'keys.pem'));
        bytes[bytes.length >> 1] ^= 1;
        writeFileSync(join(dir, 'keys', 'keys.pem'), bytes);
        const { code, stdout } = await run(['streams', 'verify', dir]);
        assert.equal(code, 1);
        assert.match(stdout, /^damage: keys\/keys.pem: its bytes do not match/m);
        rmSync(join(dir, 'keys', 'keys.pem'));
        assert.match((await run(['streams', 'verify', dir])).stdout, /^damage: keys\/keys.pem: it is missing/m);
    });

    test('stats tells what is there, also while it is served', async (t) => {
        const { server } = await filled(t);
        const fork = new Stream(server, 'fork-of-it', TEXT);
        await fork.create({ 'Stream-Forked-From': '/v1/stream/filled' });
        await eventually('a checkpoint', async () => JSON.parse(await good(['stats', '--json', server.dir])).streams === 2);
        const said = JSON.parse(await good(['stats', '--json', server.dir]));
        assert.equal(said.running, true);
        assert.equal(said.forks, 1);
        assert.equal(said.largest[0].name, 'filled');
        assert.equal(said.largest[0].bytes, said.streamBytes);
        assert.ok(said.liveBytes > 2_000_000 && said.packBytes >= said.liveBytes && said.logFiles > 0);
        await new Stream(server, 'no%C2%9B31mcolour', TEXT).create({}, 'x');
        await eventually('a checkpoint', async () => JSON.parse(await good(['stats', '--json', server.dir])).streams === 3);
        const text = await good(['stats', server.dir]);
        assert.match(text, /^ .* no\?31mcolour$/m);
        assert.match(text, /in use by a server/);
        assert.match(text, /^streams    3, .* 1 forks/m);
        assert.match(text, /^largest .* filled$/m);
        await server.stop();
        assert.match(await good(['stats', server.dir]), /not in use/);
        await refused(['stats', freshPath('nowhere')], /cannot open/);
        await server.start();
    });

    test('memory mode: verify works, backup refuses', async (t) => {
        const server = await serverFor(t, [...FLAGS, '--durability', 'memory']);
        const stream = new Stream(server, 'passing', TEXT);
        await stream.create({}, 'soon gone');
        await eventually('a pack', () => readdirSync(join(server.dir, 'packs')).length > 0);
        assert.match(await good(['verify', server.dir]), /memory mode\neverything is right/);
        await refused(['backup', server.dir, freshPath('out')], /memory mode/);
        await server.crash();
        assert.match(await good(['verify', server.dir]), /everything is right/);
        await server.start();
    });
});
