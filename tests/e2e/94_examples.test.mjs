// Tier 90: the library as others use it: installed, found by pkg-config, and the examples compiled and run; the program
// of the README too.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { after, afterEach, beforeEach, describe, test } from 'node:test';
import { uniqueName } from './lib/http.mjs';
import { BIN, startServer, tempDir } from './lib/server.mjs';
import { Shell } from './lib/shell.mjs';
import { PROJECTION, projectionOf, startPeer, threadRemoved, threadShell, threadUpdated } from './lib/t3_peer.mjs';
import { SANITIZER, withDeadline } from './lib/wait.mjs';

const ROOT = resolve(import.meta.dirname, '../..');
const top = tempDir();
const server = await startServer();
const shell = new Shell({ ARBE_URL: server.base });
const url = `${server.base}/v1/stream/`;
after(async () => {
    await server.dispose();
    rmSync(top, { recursive: true, force: true });
});

function good(program, args, env = {}) {
    const { status, stdout, stderr, error } = spawnSync(program, args, { cwd: ROOT, encoding: 'utf8', env: { ...process.env, ...env } });
    assert.equal(error, undefined);
    assert.equal(status, 0, `${program} ${args.join(' ')}:\n${stderr}${stdout}`);
    assert.equal(stderr, '', `${program} ${args.join(' ')} says nothing`);
    return stdout;
}

const prefix = join(top, 'usr');
good('make', ['-s', 'install', `B=${dirname(BIN)}`, '-o', 'all', `PREFIX=${prefix}`, `SYSCONFDIR=${top}/etc`]);
const pkg = { PKG_CONFIG_PATH: join(prefix, 'lib/pkgconfig') };
const config = (...args) => good('pkg-config', args, pkg).trim().split(/\s+/);

// As somebody with strict warnings would compile it, in C and in C++.
function compile(source, program, { cc = 'gcc', std = 'c11', flags = [...config('--cflags', '--libs', 'arbe'), `-Wl,-rpath,${join(prefix, 'lib')}`] } = {}) {
    const san = SANITIZER ? [`-fsanitize=${SANITIZER}`] : [];
    const compiler = SANITIZER.includes('thread') ? 'clang' : cc;
    good(compiler, [`-std=${std}`, '-D_POSIX_C_SOURCE=200809L', '-O1', '-g', '-Wall', '-Wextra', '-Wshadow', '-Wconversion', '-Werror', ...san,
        source, '-o', program, ...flags]);
    return program;
}

// Runs a program to its end, or until stdout matches and then `then` has ended it.
async function run(program, args, { input, until, then, env = {} } = {}) {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, ...env } });
    let stdout = '';
    let stderr = '';
    child.stdin.on('error', () => {});
    child.stdin.write(input ?? '');
    if (!until) {
        child.stdin.end();
    }
    child.stderr.on('data', (chunk) => { stderr += chunk; });
    const seen = new Promise((done) => child.stdout.on('data', (chunk) => {
        stdout += chunk;
        if (until?.test(stdout)) {
            done();
        }
    }));
    const end = new Promise((done) => child.on('close', (code, signal) => done({ code, signal })));
    if (until) {
        await withDeadline(Promise.race([seen, end]), `${until} from ${program}`).catch((error) => {
            child.kill('SIGKILL');
            throw new Error(`${error.message}\n${stdout}${stderr}`);
        });
        await then(child);
    }
    return { ...await withDeadline(end, `end of ${program}`), stdout, stderr };
}

describe('the library, installed', { timeout: 300_000 }, () => {
    test('pkg-config tells how to use it, also statically', () => {
        const words = config('--cflags', '--libs', 'arbe').filter((word) => !word.startsWith('-I/usr/include'));
        assert.deepEqual(words, [`-I${prefix}/include`, `-L${prefix}/lib`, '-larbe']);
        assert.equal(`arbe ${config('--modversion', 'arbe')[0]}`, good(BIN, ['--version']).trim());
        for (const library of ['-lcurl', '-lutf8proc', '-lwebsockets']) {
            assert.ok(config('--static', '--libs', 'arbe').includes(library), library);
        }
    });

    test('every header stands alone, in C and in C++', () => {
        for (const header of readdirSync(join(prefix, 'include/arbe'))) {
            const source = join(top, 'alone.c');
            writeFileSync(source, `#include <arbe/${header}>\nint main(void) { return 0; }\n`);
            compile(source, join(top, 'alone'));
            compile(source, join(top, 'alone'), { std: 'c99' });
            good('g++', ['-x', 'c++', '-std=c++11', '-Wall', '-Wextra', '-Werror', '-fsyntax-only', source, ...config('--cflags', 'arbe')]);
        }
    });

    test('the manual names every function of the headers and every error', () => {
        const page = ['libarbe.3', 'libarbe-scoped.3', 'libarbe-board.3', 'libarbe-t3.3'].map((name) => readFileSync(join(ROOT, 'docs/man', name), 'utf8')).join('');
        const text = readdirSync(join(prefix, 'include/arbe')).map((name) => readFileSync(join(prefix, 'include/arbe', name), 'utf8')).join('');
        for (const [name] of text.matchAll(/(?:STREAM|T3_BOARD|T3_RPC)_ERROR_[A-Z]+\b(?=,)/g)) {
            assert.ok(page.includes(name), name);
        }
        for (const [name] of page.matchAll(/\b(?:stream|scoped|t3)_[a-z_]+(?= ?\(\))/g)) {
            assert.ok(new RegExp(`\\b${name}\\(`).test(text), `${name} is in the manual only`);
        }
        for (const [, name] of text.matchAll(/^[a-z][a-z *]*?(?:struct \w+ \*)?((?:stream|scoped|t3)_[a-z_]+)\(/gm)) {
            assert.ok(page.includes(name), `${name} is not in the manual`);
        }
    });

    test('it is used from the sources and below a DESTDIR as the manual says', () => {
        const source = join(top, 'used.c');
        writeFileSync(source, '#include <arbe/t3_board.h>\n#include <stdio.h>\nint main(void) { return puts(t3_board_code_name(T3_BOARD_OK)) < 0; }\n');
        const said = (flags) => good(compile(source, join(top, 'used'), { flags }), []);
        assert.equal(said(['-Iinclude', `-L${dirname(BIN)}`, '-larbe', `-Wl,-rpath,${resolve(dirname(BIN))}`]), 'OK\n');
        const destination = join(top, 'dest');
        good('make', ['-s', 'install', `B=${dirname(BIN)}`, '-o', 'all', `DESTDIR=${destination}`]);
        const lib = join(destination, 'usr/local/lib');
        const env = { PKG_CONFIG_SYSROOT_DIR: destination, PKG_CONFIG_PATH: join(lib, 'pkgconfig') };
        assert.equal(said([...good('pkg-config', ['--cflags', '--libs', 'arbe'], env).trim().split(/\s+/), `-Wl,-rpath,${lib}`]), 'OK\n');
    });
});

describe('examples', { timeout: 300_000 }, () => {
    const names = readdirSync(join(ROOT, 'examples')).filter((name) => name.endsWith('.c')).map((name) => name.slice(0, -2));
    const program = (name) => join(top, name);

    test('all compile without a warning, and tell how they are called', async () => {
        assert.deepEqual(names, ['event_loop', 'follow', 'produce', 't3_board']);
        for (const name of names) {
            compile(join(ROOT, 'examples', `${name}.c`), program(name));
            const { code, stderr } = await run(program(name), []);
            assert.equal(code, 2);
            assert.match(stderr, /^usage: /);
        }
    });

    test('produce and follow: each line once, in order', async () => {
        const name = uniqueName('numbers');
        const lines = Array.from({ length: 10_000 }, (_, i) => `line "${i}"`);
        const produced = await run(program('produce'), [url, name], { input: `${lines.join('\n')}\n` });
        assert.deepEqual([produced.code, produced.stderr], [0, '10000 messages are stored\n']);
        const followed = await run(program('follow'), [url, name]);
        assert.deepEqual([followed.code, followed.stderr], [0, '']);
        assert.deepEqual(followed.stdout.trimEnd().split('\n').map((line) => JSON.parse(line)), lines);
        const missing = await run(program('follow'), [url, uniqueName('none')]);
        assert.deepEqual([missing.code, missing.stdout], [1, '']);
        assert.match(missing.stderr, /^follow: .*no such stream/);
    });

    test('follow ends at once when it is interrupted', async () => {
        const name = uniqueName('open');
        await shell.good(['create', name, '--type', 'json']);
        await shell.good(['append', name, '1']);
        const { code, signal, stdout } = await run(program('follow'), [url, name], { until: /1\n/, then: (child) => child.kill('SIGINT') });
        assert.deepEqual({ code, signal, stdout }, { code: 1, signal: null, stdout: '1\n' });
    });

    test('event_loop: what is typed comes back', async () => {
        const name = uniqueName('chat');
        const { code, stdout, stderr } = await run(program('event_loop'), [url, name], {
            input: 'hello\n', until: /hello\n/, then: () => shell.good(['close', name]),
        });
        assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: 'hello\n', stderr: '' });
    });

    test('the program of the README has at most 40 lines, appends and tails', async () => {
        const text = /^```c\n([^]*?)^```$/m.exec(readFileSync(join(ROOT, 'README.md'), 'utf8'))?.[1];
        assert.ok(text, 'README.md has a block of C');
        assert.ok(text.trimEnd().split('\n').length <= 40, 'of at most 40 lines');
        const name = uniqueName('readme');
        const source = join(top, 'readme.c');
        writeFileSync(source, text.replace('http://127.0.0.1:4437/v1/stream/', url).replaceAll('"greetings"', `"${name}"`));
        assert.ok(readFileSync(source, 'utf8').includes(name), 'it works on the stream "greetings"');
        compile(source, join(top, 'readme'));
        const { code, stdout, stderr } = await run(join(top, 'readme'), [], { until: /hello/, then: () => shell.good(['append', name, '{"text":"bye"}', '--close']) });
        assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: '{"text":"hello"}\n{"text":"bye"}\n', stderr: '' });
    });
});

describe('programs for T3 servers', { timeout: 300_000 }, () => {
    const TOKEN = 'a-token-of-tests-0123456789';
    let peer;
    beforeEach(async () => {
        peer = await startPeer({ token: TOKEN });
        peer.list(threadShell('t-1', { title: 'One' }));
    });
    afterEach(() => peer.stop());

    // Each program of a page's examples, compiled.
    function programsOf(name) {
        const text = readFileSync(join(ROOT, 'docs/man', name), 'utf8').replace(/^[^]*^\.SH EXAMPLES$/m, '');
        const sources = [...text.matchAll(/^\.nf\n([^]*?)^\.fi$/gm)].map(([, source]) => source.replaceAll('\\-', '-').replaceAll('\\e', '\\'));
        return sources.map((source, n) => {
            writeFileSync(join(top, `${name}.${n}.c`), source);
            return compile(join(top, `${name}.${n}.c`), join(top, `${name}.${n}`));
        });
    }

    test('t3_board: rows as they change, through a break, until the token is refused', async () => {
        const file = join(top, 'token');
        writeFileSync(file, `${TOKEN}\n`);
        const program = compile(join(ROOT, 'examples/t3_board.c'), join(top, 't3_board'));
        const { code, stdout, stderr } = await run(program, [peer.base, file], {
            until: /^row\tt-1\t.*\tOne\t\n/m,
            then: async () => {
                const consumed = (count) => peer.until(`acknowledgement ${count}`, () => peer.received('Ack').length >= count);
                await consumed(1);
                peer.push(threadUpdated('t-1', { title: 'U\u001bn\no' }));
                await consumed(2);
                peer.push(threadRemoved('t-1'));
                await consumed(3);
                peer.list(threadShell('t-2', { title: 'Two' }));
                peer.drop();
                await consumed(4);
                peer.revoke();
                peer.drop();
            },
        });
        assert.equal(code, 1);
        assert.deepEqual(stdout.split('\n').map((line) => line.split('\t')).map(([kind, id,, title]) => [kind, id, title]), [
            ['row', 't-1', 'One'], ['row', 't-1', 'U n o'], ['gone', 't-1', 'U n o'], ['row', 't-2', 'Two'], ['', undefined, undefined],
        ]);
        assert.match(stderr, /^live$/m);
        assert.match(stderr, /^lost: /m);
        assert.match(stderr, /\nt3_board: [^\n]*does not accept the token \(HTTP 401\)\n$/);
    });

    test('t3_board: without its file or with a wrong token it says so and ends', async () => {
        const program = compile(join(ROOT, 'examples/t3_board.c'), join(top, 't3_board'));
        const refusals = [
            [[peer.base, join(top, 'no-file')], {}, /cannot read .*no-file: No such file/],
            [[peer.base], { T3_TOKEN: 'wrong' }, /does not accept the token/],
            [[peer.base], { T3_TOKEN: '' }, /wants a token, and none was given/],
            [['ftp://peer'], {}, /the URL of the server is not good/],
        ];
        for (const [args, env, sentence] of refusals) {
            const { code, stdout, stderr } = await run(program, args, { env });
            assert.deepEqual([code, stdout], [1, '']);
            assert.match(stderr.trimEnd().split('\n').at(-1), new RegExp(`^t3_board: .*${sentence.source}`));
        }
    });

    test('the program of libarbe-board(3)', async () => {
        const [program, ...others] = programsOf('libarbe-board.3');
        assert.equal(others.length, 0);
        const board = await run(program, [], { input: JSON.stringify(projectionOf('t-1', { title: 'One' })) });
        assert.deepEqual(board, { code: 0, signal: null, stdout: 't-1: One\n', stderr: '' });
        const wrong = await run(program, [], { input: 'no JSON' });
        assert.deepEqual([wrong.code, wrong.stdout], [1, '']);
        assert.match(wrong.stderr, /^[^\n]+\n$/);
    });

    test('the programs of libarbe-t3(3)', async () => {
        const [projection, follow, ...others] = programsOf('libarbe-t3.3');
        assert.equal(others.length, 0);
        const env = { T3_TOKEN: TOKEN };
        const one = await run(projection, [peer.url, 't-1'], { env });
        assert.deepEqual([one.code, one.stderr, JSON.parse(one.stdout)], [0, '', projectionOf('t-1')]);
        peer.answers[PROJECTION] = (call) => call.fail({ _tag: 'OrchestrationV2GetThreadProjectionError', threadId: 't-1', message: 'no such thread' });
        const failed = await run(projection, [peer.url, 't-1'], { env });
        assert.deepEqual([failed.code, failed.stdout], [1, '']);
        assert.match(failed.stderr, /no such thread\n$/);
        const followed = await run(follow, [peer.url], { env, until: /"kind":"snapshot"/, then: () => { peer.revoke(); peer.drop(); } });
        assert.deepEqual([followed.code, JSON.parse(followed.stdout)], [1, [peer.snapshot()]]);
        assert.match(followed.stderr, /does not accept the token \(HTTP 401\)\n$/);
        for (const args of [[projection, [peer.url, 't-1']], [follow, [peer.url]]]) {
            const { code, stderr } = await run(...args, { env: { T3_TOKEN: 'wrong' } });
            assert.equal(code, 1);
            assert.match(stderr, /does not accept the token/);
        }
    });
});
