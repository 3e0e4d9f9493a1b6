// The README is a test: every sh block of its tours runs, in order, against a fresh server, and prints what the
// text block after it shows.
import assert from 'node:assert/strict';
import { readFileSync, rmSync } from 'node:fs';
import { test } from 'node:test';
import { startServe } from './lib/serve.mjs';
import { BIN, tempDir } from './lib/server.mjs';
import { endGroup, follow, runStep, stepsOf } from './lib/tour.mjs';

const README = new URL('../../README.md', import.meta.url);
const BOOTSTRAP = new URL('../../tools/bootstrap', import.meta.url);
const TOURS = ['A conversation', 'A tour of one minute', 'Waking a worker'];
const ADDRESS = '127.0.0.1:4437';
const FOLLOWS = /live=(sse|long-poll)|entries read/;
const ANSWERS = ['please', '"live"', '"waited for"']; // what a follower waits for

function sectionOf(markdown, tour) {
    const section = markdown.split(/^## /m).find((one) => one.startsWith(tour));
    assert.ok(section, `README.md has a section "${tour}"`);
    return section;
}

test('the tours of the README work as they are written', async (t) => {
    const server = await startServe();
    const home = tempDir();
    const followers = [];
    t.after(async () => {
        followers.forEach(({ child }) => endGroup(child));
        await server.dispose();
        rmSync(home, { recursive: true });
    });
    const known = { KEY: server.owner.key, ARBE_URL: server.base, XDG_CONFIG_HOME: home };
    const readme = readFileSync(README, 'utf8');
    const steps = TOURS.flatMap((tour) => stepsOf(sectionOf(readme, tour)));
    assert.ok(steps.length >= 15, 'the tours have their steps');
    for (const { command, expected } of steps) {
        const real = command.replaceAll(ADDRESS, `127.0.0.1:${server.port}`).replaceAll('build/arbe', BIN);
        assert.ok(real !== command, `a command of the tour talks to the server, or is the program: ${command}`);
        if (FOLLOWS.test(command)) {
            const follower = follow({ command: real, expected }, { known });
            followers.push(follower);
            await Promise.race([follower.begun, follower.caught]);
            continue;
        }
        await runStep({ command: real, expected }, { known });
        if (ANSWERS.some((answer) => command.includes(answer))) {
            await Promise.all(followers.map(({ caught }) => caught));
        }
    }
    await Promise.all(followers.map(({ caught }) => caught));
    assert.equal(followers.length, 5, 'the tours follow a thread, as people and as a bot, by SSE, by long-poll, and for a wake');
});

test('what ./run hints at works, whatever the first thread is called by now', async (t) => {
    const server = await startServe();
    const home = tempDir();
    t.after(async () => {
        await server.dispose();
        rmSync(home, { recursive: true });
    });
    const id = server.house.primaryThreadId;
    await server.owner.ask(200, 'PATCH', `/api/threads/${id}`, { name: 'Renamed' });
    const run = readFileSync(new URL('../../run', import.meta.url), 'utf8');
    const hints = [...run.matchAll(/^ {2}build\/arbe (.*)$/gm)].map(([, words]) => words);
    assert.equal(hints.length, 4);
    const [login, ...others] = hints.map((words) => `'${BIN}' ${words.replace('http://$listen', server.base).replace(/\bID\b/, id)}`);
    const command = [`echo "$KEY" | ${login}`, ...others].join('\n');
    await runStep({ command: `${command} --once`, expected: `…\n${id} …Renamed\n…\n{"id":…"hi there"}}` },
        { known: { KEY: server.owner.key, XDG_CONFIG_HOME: home } });
});

test('it says what ./run installs', () => {
    const names = { gcc: 'a C compiler', make: 'make', 'liblmdb-dev': 'LMDB', 'libssl-dev': 'OpenSSL',
        'libcurl4-openssl-dev': 'libcurl', 'libjwt-dev': 'libjwt', 'libsqlite3-dev': 'SQLite', 'libutf8proc-dev': 'utf8proc',
        'libwebsockets-dev': 'libwebsockets', curl: 'curl' };
    const bootstrap = readFileSync(BOOTSTRAP, 'utf8');
    const built = /^build_packages="([^"]*)"/m.exec(bootstrap)[1].split(/[\s\\]+/);
    const also = /^run\)\n {4}need_packages \$build_packages (\w+)/m.exec(bootstrap)[1];
    const wanted = [...built, also].filter((name) => name !== 'libc6-dev'); // which is a part of any C compiler
    const [, told] = /installs what is missing \(([^)]*)\)/.exec(readFileSync(README, 'utf8'));
    assert.deepEqual(told.split(/,\s+/), wanted.map((name) => names[name]));
});
