// Tier 80: the command (L20, R17, R23): what it says, and how it ends.
import assert from 'node:assert/strict';
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { Stream, TEXT, request } from './lib/http.mjs';
import { BIN, Server, run, serverFor, startServer, tempDir } from './lib/server.mjs';

const top = tempDir();
after(() => rmSync(top, { recursive: true, force: true }));

let count = 0;
const freshDir = () => join(top, `d${count++}`);
const streams = (flags, options) => run(['streams', '--listen', '127.0.0.1:0', '--data', freshDir(), ...flags], options);

function assertRefusal({ code, stderr, stdout }, wanted, pattern) {
    assert.equal(code, wanted, `exit ${code}\n${stderr}`);
    assert.match(stderr, /\S+ \S+ \S+/, 'a sentence on stderr');
    assert.equal(stdout, '', 'nothing on stdout');
    if (pattern) {
        assert.match(stderr, pattern);
    }
}

// Runs it on a directory that it may not write to: as another user, where it is root that runs this. That user reaches
// neither this tree nor the temporary files of the tests, so the program goes along.
async function runLocked() {
    const place = mkdtempSync('/tmp/arbe-locked-');
    const [dir, program] = [join(place, 'dir'), join(place, 'arbe')];
    chmodSync(place, 0o755);
    copyFileSync(BIN, program);
    mkdirSync(dir, { mode: 0o555 });
    try {
        const other = process.getuid() === 0 ? { uid: 65534, gid: 65534 } : {};
        return await run(['streams', '--listen', '127.0.0.1:0', '--data', dir], { program, ...other });
    } finally {
        rmSync(place, { recursive: true, force: true });
    }
}

describe('L20, R23: flags', { timeout: 300_000 }, () => {
    test('help and version', async () => {
        for (const args of [['--help'], ['streams', '--help']]) {
            const { code, stdout, stderr } = await run(args);
            assert.equal(code, 0);
            assert.ok(stdout.length > 100 && stderr === '');
            assert.match(stdout, /streams/);
        }
        for (const words of [['streams'], ['board'], ['t3', 'login']]) {
            assert.deepEqual(await run(['help', ...words]), await run([...words, '--help']));
        }
        assert.match((await run(['help', 'nothing'])).stderr, /there is no command "nothing"/);
        const help = (await run(['streams', '--help'])).stdout;
        for (const flag of ['listen', 'data', 'durability', 'workers', 'secret-file', 'public-url', 'webhooks-allow-loopback', 'long-poll-timeout', 'sse-lifetime',
                            'sse-heartbeat', 'read-page', 'max-body', 'max-connections', 'max-streams', 'max-bytes', 'max-request-rate', 'max-write-rate',
                            'max-waiters', 'wal-segment', 'checkpoint-bytes',
                            'checkpoint-interval', 'cors-origin', 'log-format', 'log-level', 'insecure']) {
            assert.ok(help.includes(`--${flag}`), flag);
        }
        const version = await run(['--version']);
        assert.equal(version.code, 0);
        assert.match(version.stdout, /\d+\.\d+/);
    });

    test('standard descriptors that are closed are not taken by files', async (t) => {
        const server = await serverFor(t, [], { ulimit: 'exec 0<&- 2>&-' });
        for (const fd of [0, 2]) {
            assert.equal(readlinkSync(`/proc/${server.pid}/fd/${fd}`), '/dev/null');
        }
        await new Stream(server, 's', TEXT).create({}, 'x');
    });

    test('L20: unknown commands, flags and stray words', async () => {
        assertRefusal(await run([]), 2);
        assertRefusal(await run(['nonsense']), 2, /nonsense/);
        assertRefusal(await streams(['--nonsense']), 2, /nonsense/);
        assertRefusal(await streams(['--nonsense=5']), 2);
        assertRefusal(await streams(['stray']), 2, /stray/);
        assertRefusal(await streams(['-x']), 2);
        assertRefusal(await streams(['--read-page']), 2);
        assertRefusal(await streams(['--']), 2);
        assertRefusal(await streams(['']), 2);
    });

    test('R23: bad numbers in every flag, from the command line and the environment', async () => {
        const numbers = {
            workers: ['abc', '-1', '', '1e9', '18446744073709551616', '0', '1.5', '0x2', ' 1', '1 ', 'NaN', '+1', '2s'],
            'max-streams': ['abc', '-1', '', '1MiB', '1000000000001'],
            'max-bytes': ['abc', '-1', '1XiB', '1048577GiB'],
            'max-request-rate': ['abc', '-1', '1.5', '1/s'],
            'max-write-rate': ['abc', '-1', '1MiB/s'],
            'max-waiters': ['abc', '-1'],
            'max-connections': ['abc', '-1', '', '1e9', '18446744073709551616', '0', '1MiB'],
            'read-page': ['abc', '-1', '', '1e9', '18446744073709551616', '0', '4MB4', '4 MiB', 'MiB', '4.5MiB', '99999999999GiB'],
            'max-body': ['abc', '-1', '', '1e9', '18446744073709551616', '0', '16EiB'],
            'wal-segment': ['abc', '-1', '', '1e9', '18446744073709551616', '0', '1'],
            'checkpoint-bytes': ['abc', '-1', '', '1e9', '18446744073709551616'],
            'checkpoint-interval': ['abc', '-1', '', '1e9', '18446744073709551616', '30', '30 s', '-5s', 'NaNs'],
            'long-poll-timeout': ['abc', '-1', '', '1e9', '18446744073709551616s', '30', '1.5.s', 's', '99999999999999h'],
            'sse-lifetime': ['abc', '-1s', '', '1e9', '30x'],
            'sse-heartbeat': ['abc', '-1s', '', '1e9', '1e3s'],
            durability: ['abc', '', 'SYNC', 'none', 'sync,os'],
            'log-format': ['abc', '', 'JSON', 'xml'],
            'log-level': ['abc', '', 'INFO', 'debug,info', '1'],
            listen: ['', 'abc', ':', '127.0.0.1', '127.0.0.1:', '127.0.0.1:abc', '127.0.0.1:65536', '127.0.0.1:-1', '127.0.0.1:1e3',
                     'example.com:80', '[::1', '256.0.0.1:1', '127.0.0.1:0x50', 'http://127.0.0.1:1'],
            data: [''],
            'cors-origin': ['', 'abc', 'https://a b', 'ftp://x', 'https://a.example/path', 'https://a\r\nX: y'],
            'public-url': ['', 'abc', 'ftp://x', 'http://', 'http://a b', 'http://a\nb'],
        };
        const jobs = [];
        for (const [flag, values] of Object.entries(numbers)) {
            for (const value of values) {
                const args = ['streams', ...(flag === 'listen' ? [] : ['--listen', '127.0.0.1:0']),
                              ...(flag === 'data' ? [] : ['--data', freshDir()])];
                jobs.push(async () => {
                    const what = `--${flag} ${JSON.stringify(value)}`;
                    for (const result of [await run([...args, `--${flag}`, value]), await run([...args, `--${flag}=${value}`]),
                                          await run(args, { env: { [`ARBE_${flag.toUpperCase().replaceAll('-', '_')}`]: value } })]) {
                        assert.equal(result.code, 2, `${what}: exit ${result.code} ${result.stderr}`);
                        assert.match(result.stderr, /\S+ \S+ \S+/, what);
                        assert.ok(result.stderr.trim().split('\n').length <= 3, `${what}: ${result.stderr}`);
                    }
                });
            }
        }
        const { inParallel } = await import('./lib/wait.mjs');
        await inParallel(4, jobs);
        assert.deepEqual(readdirSync(top), [], 'no directory was made for a refused setting');
    });

    test('R23: good values in all their units', async (t) => {
        const server = await serverFor(t, ['--workers', '2', '--read-page=1KiB', '--max-body', '2MiB', '--max-connections', '50',
            '--long-poll-timeout=20ms', '--sse-lifetime', '1m', '--sse-heartbeat', '1s', '--wal-segment', '1MiB', '--checkpoint-bytes', '8MiB',
            '--checkpoint-interval', '1h', '--cors-origin', 'https://a.example', '--log-format', 'json', '--durability', 'os',
            '--public-url', 'https://x.example']);
        const stream = new Stream(server, 's', TEXT);
        await stream.create({}, 'x'.repeat(2000));
        assert.equal((await stream.get()).body.length, 1024);
        assert.equal((await stream.poll('now')).status, 204);
    });

    test('the environment gives defaults that flags overrule', async (t) => {
        const server = await serverFor(t, ['--read-page', '10'], { env: { ARBE_READ_PAGE: '20', ARBE_LONG_POLL_TIMEOUT: '20ms' } });
        const stream = new Stream(server, 's', TEXT);
        await stream.create({}, 'x'.repeat(100));
        assert.equal((await stream.get()).body.length, 10);
        assert.equal((await stream.poll('now')).status, 204);
    });

    test('without a secret it listens on loopback only', async () => {
        for (const listen of ['0.0.0.0:0', '[::]:0']) {
            assertRefusal(await run(['streams', '--listen', listen, '--data', freshDir()]), 2, /insecure|secret/);
        }
    });
});

describe('R17, K10: places', { timeout: 300_000 }, () => {
    test('a port in use is refused in a sentence', async () => {
        const holder = net.createServer().listen(0, '127.0.0.1');
        await new Promise((done) => holder.once('listening', done));
        const { port } = holder.address();
        const result = await run(['streams', '--listen', `127.0.0.1:${port}`, '--data', freshDir()]);
        holder.close();
        assertRefusal(result, 1, new RegExp(`in use|${port}`));
    });

    test('a port that another arbe uses is refused too', async (t) => {
        const server = await serverFor(t);
        const result = await run(['streams', '--listen', `127.0.0.1:${server.port}`, '--data', freshDir()]);
        assertRefusal(result, 1);
        assert.equal((await request(server.base, 'GET', '/v1/stream/none')).status, 404);
    });

    test('a second process on the same directory is refused, the first goes on', async (t) => {
        const server = await serverFor(t);
        const stream = new Stream(server, 's', TEXT);
        await stream.create({}, 'x');
        const result = await run(['streams', '--listen', '127.0.0.1:0', '--data', server.dir]);
        assertRefusal(result, 1, /another|use|lock/i);
        await stream.append('y');
        await server.crashAndRestart();
        assert.equal((await stream.get()).text, 'xy', 'a kill leaves no lock behind');
    });

    test('directories that cannot be used', async () => {
        const file = join(top, 'file');
        writeFileSync(file, 'x');
        for (const dir of [file, join(file, 'below'), '/proc/arbe-data', '/dev/null', join(top, 'a'.repeat(5000))]) {
            assertRefusal(await run(['streams', '--listen', '127.0.0.1:0', '--data', dir]), 1);
        }
        rmSync(file);
        assertRefusal(await runLocked(), 1, /this user may not do that there/);
    });

    test('what is wrong with a directory is said in words about files', async () => {
        const [missing, locked, linked] = [join(top, 'no', 'such', 'place'), join(top, 'lock-is-dir'), join(top, 'lock-is-link')];
        mkdirSync(join(locked, 'lock'), { recursive: true });
        mkdirSync(linked);
        symlinkSync('/nowhere', join(linked, 'lock'));
        writeFileSync(join(top, 'file'), 'x');
        for (const [dir, words] of [[missing, /stand in does not exist/], [join(top, 'file'), /in the way/],
                                    [join(top, 'file', 'below'), /in the way/], [locked, /lock: .*in the way/],
                                    [linked, /lock: .*in the way/]]) {
            const result = await run(['streams', '--listen', '127.0.0.1:0', '--data', dir]);
            assertRefusal(result, 1);
            assert.match(result.stderr, words);
            assert.doesNotMatch(result.stderr, /the stream|such stream|configuration|disk reported/);
        }
        for (const path of [join(top, 'file'), locked, linked]) {
            rmSync(path, { recursive: true });
        }
    });

    test('L19: a directory that others may read becomes private, unless it is not for streams alone', async () => {
        const mode = (dir) => statSync(dir).mode & 0o777;
        const once = async (dir) => {
            const server = new Server([], { dir });
            await server.start();
            await server.stop();
        };
        const own = freshDir();
        mkdirSync(own);
        chmodSync(own, 0o755);
        await once(own);
        assert.equal(mode(own), 0o700);
        chmodSync(own, 0o777);
        await once(own);
        assert.equal(mode(own), 0o700, 'also one with streams in it');
        const shared = freshDir();
        await once(shared);
        writeFileSync(join(shared, 'letter.txt'), 'dear');
        chmodSync(shared, 0o755);
        await once(shared);
        await once(shared);
        assert.equal(mode(shared), 0o755);
        assert.equal(mode(join(shared, 'catalog')), 0o700, 'what is made in it is private by itself');
        [own, shared].forEach((dir) => rmSync(dir, { recursive: true }));
    });

    test('a directory that holds something else is not taken, unless it has streams already', async () => {
        const dir = freshDir();
        mkdirSync(dir);
        chmodSync(dir, 0o755);
        writeFileSync(join(dir, 'letter.txt'), 'dear');
        const args = ['streams', '--listen', '127.0.0.1:0', '--data', dir];
        const refused = await run(args);
        assertRefusal(refused, 1);
        assert.match(refused.stderr, /holds other things, such as letter\.txt; give an empty directory/);
        assert.deepEqual(readdirSync(dir), ['letter.txt']);
        assert.equal(statSync(dir).mode & 0o777, 0o755);
        // What a fresh file system has, and hidden files, are no reason.
        rmSync(join(dir, 'letter.txt'));
        mkdirSync(join(dir, 'lost+found'));
        writeFileSync(join(dir, '.keep'), '');
        const server = new Server([], { dir });
        await server.start();
        await new Stream(server, 's').create({}, 'x');
        await server.crash();
        writeFileSync(join(dir, 'letter.txt'), 'dear');
        await server.start();
        assert.equal((await new Stream(server, 's').get()).text, 'x');
        await server.stop();
        assert.ok(existsSync(join(dir, 'letter.txt')));
        rmSync(dir, { recursive: true });
    });

    test('secret files: missing, empty, readable by others, fine with a line end', async (t) => {
        assertRefusal(await streams(['--secret-file', join(top, 'none')]), 1);
        const empty = join(top, 'empty');
        for (const content of ['', '\n', '  \n']) {
            writeFileSync(empty, content, { mode: 0o600 });
            const result = await streams(['--secret-file', empty]);
            assert.ok([1, 2].includes(result.code), JSON.stringify(content));
        }
        for (const [i, content] of ['secret-secret-secret', 'secret-secret-secret\n', 'secret-secret-secret\r\n'].entries()) {
            const file = join(top, `secret-${i}`);
            writeFileSync(file, content, { mode: 0o644 });
            assertRefusal(await streams(['--secret-file', file]), 1, /chmod/);
            chmodSync(file, 0o600);
            const server = await startServer(['--secret-file', file]);
            t.after(() => server.dispose());
            const reply = await request(server.base, 'GET', '/v1/stream/none', { headers: { Authorization: 'Bearer secret-secret-secret' } });
            assert.equal(reply.status, 404, JSON.stringify(content));
            assert.ok(!server.log.includes('secret-secret'), 'the secret is not in the log');
        }
    });

    test('L18: what the log says is one line each, in text and in JSON', async (t) => {
        const server = await startServer(['--log-format', 'json']);
        t.after(() => server.dispose());
        await new Stream(server, 'x%0Ay', TEXT).put().catch(() => {});
        const lines = server.log.split('\n').filter((line) => line.startsWith('{'));
        for (const line of lines) {
            assert.doesNotThrow(() => JSON.parse(line), line);
        }
    });

    test('/health answers', async (t) => {
        const server = await serverFor(t);
        const reply = await request(server.base, 'GET', '/health');
        assert.equal(reply.status, 200);
    });
});

describe('tools: wrong usage', { timeout: 300_000 }, () => {
    const tools = { verify: 1, backup: 2, restore: 2, stats: 1 };

    test('each has help, which exits with 0', async () => {
        const all = (await run(['streams', '--help'])).stdout;
        for (const tool of Object.keys(tools)) {
            assert.match(all, new RegExp(`arbe streams ${tool} `));
            const { code, stdout, stderr } = await run(['streams', tool, '--help']);
            assert.equal(code, 0);
            assert.match(stdout, new RegExp(`^Usage: arbe streams ${tool} `));
            assert.equal(stderr, '');
        }
    });

    test('operands and flags that make no sense exit with 2', async () => {
        for (const [tool, count] of Object.entries(tools)) {
            const words = Array(count).fill('/nowhere');
            assertRefusal(await run(['streams', tool, ...words.slice(1)]), 2, /is missing/);
            assertRefusal(await run(['streams', tool, ...words, 'more']), 2, /"more"/);
            assertRefusal(await run(['streams', tool, ...words, '--nonsense']), 2, /--nonsense/);
            assertRefusal(await run(['streams', tool, ...words.slice(1), '']), 2, /empty path/);
            assertRefusal(await run(['streams', tool, ...words, '--', '--json']), 2, /"--json"/);
        }
        assertRefusal(await run(['streams', 'verfy', '/nowhere']), 2, /verify, backup/);
    });
});
