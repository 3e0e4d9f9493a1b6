// The README is a test: every sh block of its tours runs, in order, against a fresh server, and prints what the
// text block after it shows. In an expected line … stands for anything; a line that is only … for any lines.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { startServer } from './lib/server.mjs';

const README = new URL('../../README.md', import.meta.url);
const BOOTSTRAP = new URL('../../tools/bootstrap', import.meta.url);
const TOURS = ['A tour of one minute', 'Waking a worker'];
const ADDRESS = '127.0.0.1:4437';
const FOLLOWS = /live=(sse|long-poll)/;
const WAIT_MS = 20_000;

// A tour as a list of { command, expected }, expected being undefined where the README shows no output.
function stepsOf(markdown, tour) {
    const section = markdown.split(/^## /m).find((one) => one.startsWith(tour));
    assert.ok(section, `README.md has a section "${tour}"`);
    const steps = [];
    for (const [, kind, body] of section.matchAll(/^```(\w+)\n([^]*?)^```$/gm)) {
        if (kind === 'sh') {
            steps.push({ command: body, expected: undefined });
        } else {
            assert.equal(kind, 'text', 'a block of the tour is sh or text');
            steps.at(-1).expected = body;
        }
    }
    return steps;
}

function patternOf(expected) {
    const lines = expected.trimEnd().split('\n').map((line) => {
        if (line === '…') {
            return '(?:[^]*\\n)?';
        }
        const literal = line.split('…').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
        return `${literal.join('.*')}(?:\\n|$)`;
    });
    return new RegExp(`^${lines.join('')}`);
}

// Starts commands whose last one follows the stream. `begun` resolves when that one has been reached and, for SSE, has
// been answered; `caught` when it has printed what is expected. sh -x tells on stderr which command is reached.
function follow(command, expected) {
    const child = spawn('sh', ['-xc', command], { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    const pattern = patternOf(expected);
    let printed = '';
    let complaint = '';
    let begin;
    const begun = new Promise((done) => { begin = done; });
    child.stderr.on('data', (chunk) => {
        complaint += chunk;
        if (complaint.includes('live=long-poll')) {
            begin();
        }
    });
    const caught = new Promise((done, fail) => {
        const timer = setTimeout(() => fail(new Error(
            `after ${WAIT_MS} ms still not as expected:\n${command}\nexpected:\n${expected}\n` +
            `printed:\n${printed}${complaint}`)), WAIT_MS);
        child.stdout.on('data', (chunk) => {
            printed += chunk;
            begin();
            if (pattern.test(printed)) {
                clearTimeout(timer);
                done();
            }
        });
    });
    caught.catch(() => {});
    return { child, begun, caught };
}

function endGroup(child) {
    try {
        process.kill(-child.pid, 'SIGKILL');
    } catch {
        // It has ended by itself.
    }
}

test('the tours of the README work as they are written', async (t) => {
    const server = await startServer();
    const followers = [];
    t.after(async () => {
        followers.forEach(({ child }) => endGroup(child));
        await server.dispose();
    });
    const readme = readFileSync(README, 'utf8');
    const steps = TOURS.flatMap((tour) => stepsOf(readme, tour));
    assert.ok(steps.length >= 12, 'the tours have their steps');
    for (const { command, expected } of steps) {
        const real = command.replaceAll(ADDRESS, `127.0.0.1:${server.port}`);
        assert.ok(real.includes(`:${server.port}/`), `a command of the tour talks to the server: ${command}`);
        if (FOLLOWS.test(command)) {
            const follower = follow(real, expected);
            followers.push(follower);
            await Promise.race([follower.begun, follower.caught]);
            continue;
        }
        const { stdout } = await promisify(execFile)('sh', ['-ec', real], { timeout: WAIT_MS });
        if (expected !== undefined) {
            assert.match(stdout, patternOf(expected), command);
        }
        if (command.includes('"live"') || command.includes('"waited for"')) {
            await Promise.all(followers.map(({ caught }) => caught));
        }
    }
    await Promise.all(followers.map(({ caught }) => caught));
    assert.equal(followers.length, 3, 'the tours follow by SSE, by long-poll, and for a wake');
});

test('it says what ./run installs', () => {
    const names = { gcc: 'a C compiler', make: 'make', 'liblmdb-dev': 'LMDB', 'libssl-dev': 'OpenSSL',
        'libcurl4-openssl-dev': 'libcurl', 'libjwt-dev': 'libjwt', 'libsqlite3-dev': 'SQLite', curl: 'curl' };
    const bootstrap = readFileSync(BOOTSTRAP, 'utf8');
    const built = /^build_packages="([^"]*)"/m.exec(bootstrap)[1].split(' ');
    const also = /^run\)\n {4}need_packages \$build_packages (\w+)/m.exec(bootstrap)[1];
    const wanted = [...built, also].filter((name) => name !== 'libc6-dev'); // which is a part of any C compiler
    const [, told] = /installs what is missing \(([^)]*)\)/.exec(readFileSync(README, 'utf8'));
    assert.deepEqual(told.split(', '), wanted.map((name) => names[name]));
});
