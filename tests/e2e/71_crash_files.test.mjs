// Tier 70: damaged, cut, zeroed and missing files (K1, K2, K4, K8, K10): the
// server boots with what proves itself, or refuses; it never deletes.
import assert from 'node:assert/strict';
import {
    closeSync, cpSync, existsSync, ftruncateSync, mkdirSync, openSync, readFileSync, readdirSync, renameSync, rmSync, statSync,
    writeFileSync, writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { JSON_TYPE, OCTETS, Stream, TEXT, producer } from './lib/http.mjs';
import { Buffers } from './lib/fill.mjs';
import { Server, run, tempDir } from './lib/server.mjs';
import { randomFrom, rounds, sleep } from './lib/wait.mjs';

const top = tempDir();
const LAST = 'last;'.padEnd(9000, 'v');   // more than two pages
after(() => rmSync(top, { recursive: true, force: true }));

// A directory with streams whose last append is `victim`'s, left by a kill so that the log holds all.
async function makeDirectory(name, { checkpointed = false } = {}) {
    const dir = join(top, name);
    const server = new Server(['--wal-segment', '1MiB', '--checkpoint-interval', '1h'], { dir });
    await server.start();
    const text = new Stream(server, 'text', TEXT);
    const json = new Stream(server, 'json', JSON_TYPE);
    const bytes = new Stream(server, 'bytes', OCTETS);
    const victim = new Stream(server, 'victim', TEXT);
    await text.create({}, 'text;');
    await json.create({}, '[1,2]');
    await bytes.create({ 'Stream-Closed': 'true' }, Buffers.numbered(3, 50_000));
    await victim.create({}, 'start;');
    if (checkpointed) {
        await server.restart();
    }
    await json.append('[3]', producer('p', 0, 0));
    await victim.append(LAST);
    await server.crash();
    return { dir };
}

function newestLog(dir) {
    const names = readdirSync(join(dir, 'wal')).filter((name) => /^wal-[0-9a-f]+$/.test(name));
    const withEnd = names.map((name) => {
        const path = join(dir, 'wal', name);
        const bytes = readFileSync(path);
        let end = bytes.length;
        while (end > 4096 && bytes[end - 1] === 0) {
            end--;
        }
        return { path, end, size: bytes.length };
    }).filter(({ end }) => end > 4096);
    withEnd.sort((a, b) => (a.path < b.path ? -1 : 1));
    return withEnd.at(-1);
}

function edit(path, at, bytes) {
    const fd = openSync(path, 'r+');
    writeSync(fd, bytes, 0, bytes.length, at);
    closeSync(fd);
}

function truncate(path, size) {
    const fd = openSync(path, 'r+');
    ftruncateSync(fd, size);
    closeSync(fd);
}

let copies = 0;
function copyOf(dir) {
    const copy = join(top, `copy-${copies++}`);
    // A killed server leaves the socket that backups come through.
    cpSync(dir, copy, { recursive: true, filter: (source) => !statSync(source).isSocket() });
    return copy;
}

// Boots on a damaged copy and looks at everything. `lost` says whether the victim's last append may be gone.
async function bootsWell(dir, what, { lost = 'may' } = {}) {
    const server = new Server(['--wal-segment', '1MiB'], { dir });
    try {
        await server.start();
    } catch (error) {
        throw new Error(`${what}: ${error.message}`);
    }
    try {
        const text = new Stream(server, 'text', TEXT);
        const json = new Stream(server, 'json', JSON_TYPE);
        const bytes = new Stream(server, 'bytes', OCTETS);
        const victim = new Stream(server, 'victim', TEXT);
        assert.equal((await text.get()).text, 'text;', what);
        assert.equal((await json.get()).text, '[1,2,3]', what);
        assert.equal((await json.post('[3]', producer('p', 0, 0))).status, 204, what);
        const closed = await bytes.get();
        assert.ok(closed.closed && closed.body.equals(Buffers.numbered(3, 50_000)), what);
        const seen = (await victim.get()).text;
        assert.ok(seen === 'start;' || seen === `start;${LAST}`, `${what}: ${JSON.stringify(seen.slice(0, 80))}`);
        if (lost === 'no') {
            assert.notEqual(seen, 'start;', what);
        }
        await victim.append('again;');
        await text.append('more;');
        assert.equal((await victim.get()).text, `${seen}again;`, what);
        await server.crashAndRestart();
        assert.equal((await victim.get()).text, `${seen}again;`, `${what}, after a second start`);
        assert.equal((await text.get()).text, 'text;more;', what);
        assert.equal((await json.get()).text, '[1,2,3]', what);
        return seen;
    } finally {
        await server.dispose();
        rmSync(dir, { recursive: true, force: true });
    }
}

describe('K1, K2, K4: the end of the log', { timeout: 300_000 }, () => {
    test('K1: garbage behind the last record', async () => {
        const { dir } = await makeDirectory('garbage');
        const random = randomFrom(5);
        for (const count of [1, 2, 7, 20, 64, 500, 5000]) {
            const copy = copyOf(dir);
            const { path, end } = newestLog(copy);
            const at = Math.ceil(end / 8) * 8;
            edit(path, at, Buffer.from(Array.from({ length: count }, () => random.between(1, 255))));
            await bootsWell(copy, `${count} bytes of garbage`, { lost: 'no' });
        }
    });

    test('K1, K2: the last record cut, zeroed or garbled at every kind of place', async () => {
        const { dir } = await makeDirectory('torn');
        const random = randomFrom(6);
        const steps = [1, 2, 3, 4, 7, 8, 16, 30, 60, 100, 200, 290].slice(0, rounds(12));
        for (const back of steps) {
            for (const how of ['zeros', 'garble', 'cut']) {
                const copy = copyOf(dir);
                const { path, end, size } = newestLog(copy);
                if (how === 'zeros') {
                    edit(path, end - back, Buffer.alloc(back));
                } else if (how === 'garble') {
                    edit(path, end - back, Buffer.from([readFileSync(path)[end - back] ^ (1 << random.below(8))]));
                } else {
                    truncate(path, end - back);
                    if (back % 2) {
                        truncate(path, size);   // of the right length again, with a hole
                    }
                }
                const seen = await bootsWell(copy, `${how} ${back} from the end`);
                assert.equal(seen, 'start;', `${how} ${back}: a damaged record proves itself`);
            }
        }
    });

    test('K2: a zeroed page and a zeroed sector over the end', async () => {
        const { dir } = await makeDirectory('page');
        for (const unit of [4096, 512]) {
            for (const before of [0, 1]) {
                const copy = copyOf(dir);
                const { path, end } = newestLog(copy);
                edit(path, (Math.floor((end - 1) / unit) - before) * unit, Buffer.alloc(unit));
                assert.equal(await bootsWell(copy, `a zeroed unit of ${unit}`), 'start;');
            }
        }
    });

    test('K1: a log file cut in the part that is only reserved loses nothing', async () => {
        const { dir } = await makeDirectory('reserved');
        for (const keep of [0, 1, 4095, 50_000]) {
            const copy = copyOf(dir);
            const { path, end } = newestLog(copy);
            truncate(path, Math.ceil(end / 8) * 8 + keep);
            await bootsWell(copy, `reserved part cut to ${keep}`, { lost: 'no' });
        }
    });

    test('K1: an empty, a zero and a foreign file in the log directory', async () => {
        const { dir } = await makeDirectory('foreign');
        const plants = {
            'wal-00000000ffffffff': Buffer.alloc(0),
            'wal-00000000fffffffe': Buffer.alloc(1 << 20),
            'wal-00000000fffffffd': Buffer.alloc(1 << 20, 0x5a),
            'README': Buffer.from('not a log'),
            'wal-xyz': Buffer.from('not a log'),
        };
        for (const [name, content] of Object.entries(plants)) {
            const copy = copyOf(dir);
            writeFileSync(join(copy, 'wal', name), content);
            await bootsWell(copy, `a file ${name} of ${content.length} bytes`, { lost: 'no' });
        }
    });

    test('K4: a record cut off at the kill leaves no torn bytes', async () => {
        for (let i = 0; i < rounds(6); i++) {
            const server = new Server([], {});
            await server.start();
            try {
                const quiet = new Stream(server, 'quiet', TEXT);
                await quiet.create({}, 'before;');
                const big = `${'B'.repeat(3_000_000)};`;
                const pending = quiet.post(big).catch(() => null);
                await sleep(i * 4);
                await server.crash();
                await pending;
                await server.start();
                const text = (await quiet.readAll()).body.toString();
                assert.ok(text === 'before;' || text === `before;${big}`, `${text.length} bytes`);
            } finally {
                await server.dispose();
            }
        }
    });
});

describe('K8, K10: broken and missing parts', { timeout: 300_000 }, () => {
    // Either it refuses with a sentence, or it serves; in both cases the files are still there.
    async function refusesOrServes(copy, what) {
        const before = readdirSync(copy, { recursive: true }).length;
        const server = new Server([], { dir: copy });
        try {
            await server.start();
        } catch {
            assert.equal(server.running, false);
            const { code, stderr } = await run(['streams', '--listen', '127.0.0.1:0', '--data', copy]);
            assert.equal(code, 1, `${what}: exit code`);
            assert.match(stderr, /\w+ \w+ \w+/, `${what}: a sentence`);
            server.expectGone();
            assert.ok(readdirSync(copy, { recursive: true }).length >= before - 1, `${what}: files were deleted`);
            return 'refused';
        }
        const text = new Stream(server, 'text', TEXT);
        const reply = await text.get();
        await server.stop();
        return reply.status === 200 && reply.text === 'text;' ? 'whole' : `lost: ${reply.status}`;
    }

    test('K10: a missing log is refused, and all is there again when it is back', async () => {
        const { dir } = await makeDirectory('nolog');
        for (const what of ['directory', 'files']) {
            const copy = copyOf(dir);
            const aside = `${copy}-aside`;
            renameSync(join(copy, 'wal'), aside);
            if (what === 'files') {
                mkdirSync(join(copy, 'wal'), { mode: 0o700 });
            }
            assert.equal(await refusesOrServes(copy, `missing log ${what}`), 'refused');
            rmSync(join(copy, 'wal'), { recursive: true, force: true });
            renameSync(aside, join(copy, 'wal'));
            await bootsWell(copy, 'the log is back', { lost: 'no' });
        }
    });

    test('K10: a missing catalog is refused, not replaced by an empty one', async () => {
        const { dir } = await makeDirectory('nocatalog', { checkpointed: true });
        const copy = copyOf(dir);
        const aside = `${copy}-aside`;
        renameSync(join(copy, 'catalog'), aside);
        assert.equal(await refusesOrServes(copy, 'missing catalog'), 'refused');
        rmSync(join(copy, 'catalog'), { recursive: true, force: true });
        renameSync(aside, join(copy, 'catalog'));
        await bootsWell(copy, 'the catalog is back', { lost: 'no' });
    });

    test('K8: a garbled or cut catalog never makes the data vanish quietly', async () => {
        const { dir } = await makeDirectory('badcatalog', { checkpointed: true });
        const random = randomFrom(8);
        const file = 'catalog/data.mdb';
        assert.ok(existsSync(join(dir, file)));
        const { size } = statSync(join(dir, file));
        for (const how of ['empty', 'half', 'head', 'noise']) {
            const copy = copyOf(dir);
            const path = join(copy, file);
            if (how === 'empty') {
                truncate(path, 0);
            } else if (how === 'half') {
                truncate(path, Math.floor(size / 2));
            } else if (how === 'head') {
                edit(path, 0, Buffer.alloc(Math.min(size, 8192), 0xee));
            } else {
                edit(path, 0, Buffer.from(Array.from({ length: 200 }, () => random.below(256))));
            }
            const packs = existsSync(join(copy, 'packs')) ? readdirSync(join(copy, 'packs')).length : 0;
            const outcome = await refusesOrServes(copy, `catalog ${how}`);
            assert.ok(['refused', 'whole'].includes(outcome), `catalog ${how}: ${outcome}`);
            assert.ok((existsSync(join(copy, 'packs')) ? readdirSync(join(copy, 'packs')).length : 0) >= packs, 'packs are kept');
        }
    });

    test('K14, L8: a pack cut short: the answer is cut off or an error, never a false end', async () => {
        const dir = join(top, 'shortpack');
        const server = new Server([], { dir });
        await server.start();
        const stream = new Stream(server, 'big', OCTETS);
        await stream.create();
        const parts = Array.from({ length: 12 }, (_, i) => Buffers.numbered(i, 300_000));
        for (const part of parts) {
            await stream.append(part);
        }
        const small = new Stream(server, 'small', TEXT);
        await small.create({}, 'small');
        await server.stop();
        const packs = readdirSync(join(dir, 'packs')).map((name) => join(dir, 'packs', name)).filter((path) => statSync(path).size > 1 << 20);
        assert.ok(packs.length >= 1);
        for (const path of packs) {
            truncate(path, Math.floor(statSync(path).size / 2));
        }
        try {
            await server.start();
        } catch {
            server.expectGone();
            return;   // refusing a damaged directory is an answer too
        }
        try {
            const all = Buffer.concat(parts);
            let got = Buffer.alloc(0);
            let offset = '-1';
            for (;;) {
                let reply;
                try {
                    reply = await stream.from(offset);
                } catch {
                    break;   // cut off: a client sees that
                }
                if (reply.status >= 500) {
                    break;
                }
                got = Buffer.concat([got, reply.body]);
                assert.ok(got.equals(all.subarray(0, got.length)), 'no wrong bytes');
                if (reply.upToDate) {
                    assert.equal(got.length, all.length, 'a false end');
                    break;
                }
                offset = reply.next;
            }
            const cpu = () => readFileSync(`/proc/${server.pid}/stat`, 'utf8').split(') ')[1].split(' ').slice(11, 13).reduce((a, b) => a + Number(b), 0);
            const before = cpu();
            await sleep(400);
            assert.ok(cpu() - before < 25, 'no busy loop');
            const other = await small.get().catch(() => null);
            assert.ok(other === null || other.status >= 500 || other.text === 'small');
        } finally {
            await server.dispose();
        }
    });

    test('K10: other sizes and worker counts open the same directory', async () => {
        const { dir } = await makeDirectory('settings', { checkpointed: true });
        const server = new Server([], { dir });
        for (const flags of [['--wal-segment', '128KiB'], ['--workers', '1'], ['--workers', '7', '--wal-segment', '4MiB'],
                             ['--checkpoint-bytes', '1MiB'], ['--read-page', '7'], ['--durability', 'os'], ['--durability', 'sync']]) {
            await server.start(flags);
            assert.equal((await new Stream(server, 'json', JSON_TYPE).get('offset=-1')).status, 200, flags.join(' '));
            assert.deepEqual((await new Stream(server, 'json', JSON_TYPE).readMessages()).messages, [1, 2, 3], flags.join(' '));
            await server.crash();
        }
        const memory = await run(['streams', '--listen', '127.0.0.1:0', '--data', dir, '--durability', 'memory']);
        assert.equal(memory.code, 1, 'a durable directory is not opened in memory mode');
        assert.match(memory.stderr, /\w+ \w+ \w+/);
        await server.start();
        assert.deepEqual((await new Stream(server, 'json', JSON_TYPE).readMessages()).messages, [1, 2, 3]);
        await server.dispose();
    });

    test('R17: memory mode forgets, and says so by being empty at the next start', async () => {
        const server = new Server(['--durability', 'memory'], {});
        await server.start();
        const stream = new Stream(server, 's', TEXT);
        await stream.create({}, 'x');
        await stream.append('y');
        assert.equal((await stream.get()).text, 'xy');
        await server.restart();
        assert.equal((await stream.get()).status, 404);
        await stream.create({}, 'z');
        await server.crashAndRestart();
        assert.equal((await stream.get()).status, 404);
        await server.dispose();
    });
});
