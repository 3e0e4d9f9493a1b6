// Tier B3: arbe board. The real program on a real terminal, or none, reads real servers; screens are what a terminal's
// emulator shows.
import assert from 'node:assert/strict';
import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { buildFaultLibrary } from './lib/faults.mjs';
import { testUnless } from './lib/impossible.mjs';
import { tempDir } from './lib/server.mjs';
import { Shell } from './lib/shell.mjs';
import { SHELL, startPeer, threadRemoved, threadShell, threadUpdated } from './lib/t3_peer.mjs';
import { Terminal } from './lib/terminal.mjs';
import { SANITIZER } from './lib/wait.mjs';

const HOUR_MS = 3600_000;
const FOOT = 'q quit  j/k select  Enter show  / filter  g by host  r retry  ? help';
const SHORT_FOOT = 'q quit  / filter  g by host  r retry  ? help';
const shell = new Shell({}, ['board']);
const dir = tempDir();
after(() => rmSync(dir, { recursive: true, force: true }));

// Half an hour more, so that hours stay what they are while a test runs.
const ago = (hours) => new Date(Date.now() - (hours + 0.5) * HOUR_MS).toISOString();
const said = (text) => ({ id: `m-${text}`, role: 'assistant', text, updatedAt: ago(1) });
const ASKED = { id: 'q-1', kind: 'command', createdAt: ago(1) };
const thread = (title, status, hours, text) => ({
    title, status, latestVisibleMessage: text === undefined ? null : said(text),
    ...(hours === undefined ? {} : { latestRunId: 'r-1', latestRunRequestedAt: ago(hours) }),
});

async function peerFor(t, options) {
    const peer = await startPeer(options);
    t.after(() => peer.stop());
    return peer;
}

// A server that two threads are on.
async function workshop(t, options) {
    const peer = await peerFor(t, options);
    peer.list(threadShell('t-1', thread('Fix the login', 'failed', 3, 'Which of the two?')),
              threadShell('t-2', thread('Refactor the store', 'running', 2, 'I am looking at it')));
    return peer;
}

// A hosts' file that has tokens: { mac: [peer, token] }.
let files = 0;
function hostsFile(hosts) {
    const file = join(dir, `t3-${++files}`);
    const sections = Object.entries(hosts).map(([host, [peer, token]]) => {
        writeFileSync(`${file}-${host}`, `${token}\n`, { mode: 0o600 });
        return `[${host}]\nurl = ${peer.base}\nsecret-file = ${file}-${host}\n`;
    });
    writeFileSync(file, sections.join(''));
    return file;
}

function boardFor(t, args, options) {
    const terminal = new Terminal(['board', ...args], options);
    t.after(() => terminal.dispose());
    return terminal;
}

// The board of one host, as soon as it has a row.
async function boardOf(t, peer, options = {}) {
    const terminal = boardFor(t, ['--t3', `mac=${peer.base}`], { columns: 76, rows: 9, ...options });
    await terminal.until('mac live');
    return terminal;
}

const FIRST = [
    'Threads by state                              2 threads, 1 running, 1 failed',
    'mac live',
    'running 1',
    '  Refactor the store        mac     2h  I am looking at it',
    'failed 1',
    '  Fix the login             mac     3h  Which of the two?',
    '', '', FOOT,
];

describe('arbe board: screens', { timeout: 240_000 }, () => {
    test('rows by state, newest activity first; changes show at once', async (t) => {
        const peer = await workshop(t);
        const terminal = await boardOf(t, peer);
        await terminal.shows(FIRST.join('\n'));
        assert.ok(terminal.isOwn && !terminal.hasCursor);
        peer.push(threadUpdated('t-3', thread('Docs', 'running', 1, 'Writing')), threadUpdated('t-1', thread('Fix the login', 'idle', 3, 'Done.')));
        await terminal.shows([
            'Threads by state                                        3 threads, 2 running',
            'mac live',
            'running 2',
            '  Docs                      mac     1h  Writing',
            '  Refactor the store        mac     2h  I am looking at it',
            'idle 1',
            '  Fix the login             mac     3h  Done.',
            '', FOOT].join('\n'));
        peer.push(threadRemoved('t-2'), threadRemoved('t-3'));
        await terminal.shows([
            'Threads by state                                                    1 thread',
            'mac live', 'idle 1', '  Fix the login             mac     3h  Done.', '', '', '', '', FOOT].join('\n'));
    });

    test('two hosts, by state and by host', async (t) => {
        const [mac, box] = [await workshop(t), await peerFor(t)];
        box.list(threadShell('t-1', thread('Same id, other host', 'running', 1)));
        const terminal = boardFor(t, ['--t3', `mac=${mac.base}`, '--t3', `box=${box.base}`], { columns: 60, rows: 10 });
        await terminal.until('mac live  box live');
        await terminal.shows([
            'Threads by state              3 threads, 2 running, 1 failed',
            'mac live  box live',
            'running 2',
            '  Same id, other host                             box     1h',
            '  Refactor the store                              mac     2h',
            'failed 1',
            '  Fix the login                                   mac     3h',
            '', '', SHORT_FOOT].join('\n'));
        terminal.type('g');
        await terminal.shows([
            'Threads by host               3 threads, 2 running, 1 failed',
            'mac live  box live',
            'mac: 2 threads',
            '  Refactor the store                       running        2h',
            '  Fix the login                            failed         3h',
            'box: 1 thread',
            '  Same id, other host                      running        1h',
            '', '', SHORT_FOOT.replace('by host', 'by state')].join('\n'));
        terminal.type('g');
        await terminal.until('Threads by state');
    });

    test('who asks somebody something comes first, whatever its state', async (t) => {
        const peer = await workshop(t);
        const terminal = await boardOf(t, peer);
        peer.push(threadUpdated('t-2', { ...thread('Refactor the store', 'running', 2, 'May I?'), pendingRuntimeRequest: ASKED }));
        await terminal.shows([
            'Threads by state                             2 threads, 1 asks you, 1 failed',
            'mac live',
            'asks you 1',
            '  Refactor the store        mac     2h  May I?',
            'failed 1',
            '  Fix the login             mac     3h  Which of the two?',
            '', '', FOOT].join('\n'));
        assert.equal(terminal.cellOf('asks you 1').getFgColor(), 3);
        terminal.type('/asks');
        await terminal.until('1 of 2 threads');
        assert.match(terminal.screen, /\nasks you 1\n {2}Refactor the store /);
        terminal.type('\x1b');
        await terminal.until('failed 1');
        terminal.type('g');
        await terminal.until(/\n {2}Refactor the store +asks you +2h/);
        terminal.type('gj\r');
        await terminal.until('\nstate    asks you (running)\n');
        terminal.type('x');
        peer.push(threadUpdated('t-2', thread('Refactor the store', 'running', 2, 'I am looking at it')));
        await terminal.until(/1 running, 1 failed\n.*\nrunning 1\n> Refactor the store/s);
    });

    test('the filter works while it is typed', async (t) => {
        const terminal = await boardOf(t, await workshop(t));
        terminal.type('/STORE');
        await terminal.shows([
            'Threads by state                                   1 of 2 threads, 1 running',
            'mac live',
            'running 1',
            '  Refactor the store        mac     2h  I am looking at it',
            '', '', '', '',
            '/STORE                                         Enter keeps it, Esc clears it'].join('\n'));
        terminal.type('q');
        await terminal.until('Nothing matches "STOREq": Esc shows all.');
        terminal.type('\x7f\r');
        await terminal.until('/STORE  Esc clear');
        terminal.type('\x1b');
        await terminal.shows(FIRST.join('\n'));
    });

    // The clock stands still, so that however long the rest of a key takes, it comes in time. By the second size that is
    // shown the escape has been read.
    const clock = buildFaultLibrary('stillclock');
    testUnless(clock.impossible)('half an arrow key is no Esc, whatever happens meanwhile; Esc alone is', async (t) => {
        const peer = await workshop(t);
        const still = join(dir, 'still');
        const terminal = await boardOf(t, peer, { env: { LD_PRELOAD: clock.library, STILLCLOCK: still } });
        terminal.type('/login\r');
        await terminal.until(/^\/login  Esc clear/m);
        writeFileSync(still, '');
        terminal.type('\x1b');
        for (const columns of [74, 72, 70, 68]) {
            peer.push(threadUpdated('t-2', thread(`Refactored for ${columns}`, 'running', 2)));
            terminal.resize(columns, 9);
            await terminal.until(({ screen }) => screen.split('\n')[0].length === columns);
            assert.match(terminal.screen, /^\/login  Esc clear/m);
        }
        terminal.type('[B');
        await terminal.until(/^> Fix the login/m);
        assert.match(terminal.screen, /^\/login  Esc clear/m);
        rmSync(still);
        terminal.type('\x1b');
        await terminal.until('Refactored for 68');
        assert.doesNotMatch(terminal.screen, /Esc clear/);
    });

    test('rows are selected, and shown whole', async (t) => {
        const terminal = await boardOf(t, await workshop(t), { rows: 11 });
        terminal.type('\x1b[B\x1b[B');
        await terminal.until('> Fix the login');
        assert.ok(terminal.cellOf('> Fix the login').isInverse());
        assert.match(terminal.screen, /2\/2$/);
        terminal.type('\x1b[A');
        await terminal.until('> Refactor');
        terminal.type('\r');
        await terminal.until('any key goes back');
        assert.match(terminal.screen, /\ntitle    Refactor the store\nhost     mac\nstate    running\nactive   .*Z \(2h ago\)\nthread   t-2\nmessage  I am looking at it\n/);
        terminal.type('x');
        await terminal.until('> Refactor');
    });

    test('help', async (t) => {
        const terminal = await boardOf(t, await workshop(t), { rows: 16 });
        terminal.type('?');
        await terminal.until('groups by host or by state');
        terminal.type('q');
        await terminal.until('Fix the login');
    });

    test('a window of any size', async (t) => {
        const terminal = await boardOf(t, await workshop(t));
        terminal.resize(30, 5);
        await terminal.shows('2 threads, 1 running, 1 failed\nmac live\nrunning 1\n  Refactor the store        2h\nq quit  / filter  ? help');
        terminal.resize(1, 1);
        await terminal.shows('…');
        terminal.resize(20, 2);
        await terminal.shows('  Refactor the store\nq quit  ? help');
        terminal.resize(76, 9);
        await terminal.shows(FIRST.join('\n'));
    });

    test('what others wrote commands no terminal, and keeps its columns', async (t) => {
        const peer = await peerFor(t);
        const odd = '\x1b[2J\x1b]0;title\x07\u009b31mred\u202eback\r\nend';
        const wide = '你好 e\u0301 👩‍💻 ❤️ end';
        peer.list(threadShell('t-1', thread(odd, 'running', 1, odd)), threadShell('t-2', thread(wide, 'running', 2, wide)));
        const terminal = await boardOf(t, peer);
        await terminal.until(/mac {5}2h/);
        const [first, second] = terminal.screen.split('\n').slice(3);
        assert.equal(first, '  ?[2J?]0;title??31mredba…  mac     1h  ?[2J?]0;title??31mredback end');
        assert.match(second, /^ {2}你好 e\u0301 .* end +mac {5}2h {2}你好 e\u0301 .* end$/);
        const told = terminal.raw.replace(/\x1b\[[0-9;?]*[a-zA-Z]/g, '');
        assert.doesNotMatch(told, /[\x00-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae/);
    });

    test('colours, unless somebody wants none', async (t) => {
        const peer = await workshop(t);
        const terminal = await boardOf(t, peer);
        assert.equal(terminal.cellOf('running 1').getFgColor(), 2);
        assert.equal(terminal.cellOf('failed 1').getFgColor(), 1);
        const plain = await boardOf(t, peer, { env: { NO_COLOR: '1' } });
        assert.ok(plain.cellOf('failed 1').isFgDefault() && plain.cellOf('failed 1').isBold());
        const utf8 = await boardOf(t, peer, { columns: 28, env: { LC_ALL: 'C.UTF-8' } });
        assert.match(utf8.screen, /…/);
    });

    test('ten thousand rows', async (t) => {
        const peer = await peerFor(t);
        peer.list(...Array.from({ length: 10_000 }, (_, i) => threadShell(`t-${i}`, thread(`Thread ${i}`, 'running', 1 + i, 'said'))));
        const terminal = await boardOf(t, peer, { rows: 24 });
        await terminal.until('10000 threads');
        terminal.type('\x1b[F');
        await terminal.until('> Thread 9999');
        terminal.type('/9998');
        await terminal.until('1 of 10000 threads');
        assert.match(terminal.screen, /> Thread 9998 /);
        terminal.type('\x1b');
        await terminal.until('9999/10000');
        peer.push(threadUpdated('t-9998', thread('Last but one', 'failed', 0)));
        await terminal.until(/\nfailed 1\n> Last but one /);
    });
});

describe('arbe board: hosts', { timeout: 240_000 }, () => {
    test('lost, and back', async (t) => {
        const peer = await workshop(t);
        const terminal = await boardOf(t, peer);
        await peer.stop();
        await terminal.until(/\nmac lost: .*; trying again\n/s);
        assert.match(terminal.screen, /Fix the login/); // what was known stays, and is dim
        assert.ok(terminal.cellOf('Fix the login').isDim());
        const before = terminal.raw.length;
        terminal.type('r'); // tried at once, it stays lost: no line blinks away
        terminal.type('\x0c');
        await terminal.until(({ raw }) => raw.length > before + 200);
        assert.doesNotMatch(terminal.raw.slice(before), /connecting/);
        peer.list(threadShell('t-3', thread('New meanwhile', 'idle')));
        await peer.start();
        await terminal.until('mac live');
        await terminal.until('New meanwhile');
        assert.ok(!terminal.cellOf('Fix the login').isDim());
    });

    test('refused: why, and what to do; then r connects', async (t) => {
        const peer = await workshop(t, { token: 'good-token' });
        const terminal = boardFor(t, ['--t3-hosts', hostsFile({ mac: [peer, 'bad-token'] })], { columns: 100, rows: 16 });
        await terminal.until('There is no host to read from.');
        assert.match(terminal.screen, /\nmac refused: .*; sign in with: arbe t3\s+login http.* --host mac --t3-hosts .*r tries again\n/s);
        assert.ok(!terminal.screen.includes('bad-token'));
        peer.grant('bad-token');
        terminal.type('r');
        await terminal.until('mac live');
        await terminal.until('Fix the login');
        assert.ok(peer.upgrades.length >= 2);
    });

    test('refused for its token file: the cure of that alone, which r then finds', async (t) => {
        const peer = await workshop(t, { token: 'good-token' });
        const file = hostsFile({ mac: [peer, 'good-token'] });
        chmodSync(`${file}-mac`, 0o644);
        const terminal = boardFor(t, ['--t3-hosts', file], { columns: 100, rows: 12 });
        await terminal.until(/; run: chmod\s+600 .*; then r\s+tries again\n/s);
        assert.doesNotMatch(terminal.screen, /login/);
        chmodSync(`${file}-mac`, 0o600);
        terminal.type('r');
        await terminal.until('mac live');
    });

    test('the advice for a token that is refused cures it', async (t) => {
        const peer = await workshop(t, { token: 'good-token', pairing: 'PAIR-1' });
        const file = join(dir, 'cure');
        await new Shell({}, ['t3']).good(['login', peer.base, '--host', 'mac', '--t3-hosts', file], { input: 'PAIR-1\n' });
        const token = readFileSync(join(dir, 't3-tokens', 'mac'), 'utf8').trim();
        peer.revoke(token);
        const terminal = boardFor(t, ['--t3-hosts', file], { columns: 400, rows: 12 });
        await terminal.until('; then r tries again');
        const [, command] = /sign in with: arbe (.*); then r/.exec(terminal.screen);
        peer.pair('PAIR-2');
        await new Shell({}, []).good(command.split(' '), { input: 'PAIR-2\n' });
        terminal.type('r');
        await terminal.until('mac live');
    });

    test('nothing yet, and nothing at all', async (t) => {
        const peer = await peerFor(t);
        peer.answers['orchestration.subscribeShell'] = () => {};
        const terminal = boardFor(t, ['--t3', `mac=${peer.base}`]);
        await terminal.until('mac catching up');
        assert.match(terminal.screen, /Nothing yet: waiting for what the hosts tell\./);
        (await peer.call('orchestration.subscribeShell')).offer(peer.snapshot());
        await terminal.until('No threads yet.');
    });

    test('the commands of the README sign in, and show the board', async (t) => {
        const peer = await workshop(t, { pairing: 'PAIR-1' });
        const section = readFileSync(new URL('../../README.md', import.meta.url), 'utf8').split('## What T3 Code is doing')[1].split('\n## ')[0];
        const [login, board, ...others] = [...section.matchAll(/^ {4}build\/arbe (.*)$/gm)].map(([, words]) => words.split(' '));
        const env = { XDG_CONFIG_HOME: join(dir, 'readme') };
        assert.deepEqual([login[1], board, others], ['login', ['board'], []]);
        await new Shell(env, []).good(login.map((word) => (word.startsWith('http') ? peer.base : word)), { input: 'PAIR-1\n' });
        const terminal = boardFor(t, [], { env });
        await terminal.until('mac live');
        await terminal.until('Fix the login');
    });

    test('no host is known', async () => {
        for (const args of [[], ['--once']]) {
            const { code, stdout, stderr } = await shell.run(args);
            assert.deepEqual({ code, stdout }, { code: 1, stdout: '' });
            assert.match(stderr, /^arbe board: no T3 Code server is known yet; sign in to one with arbe t3 login URL, or /);
        }
    });
});

describe('arbe board: ways out', { timeout: 240_000 }, () => {
    // The program has ended as it should, and the terminal is as it was.
    async function left(terminal, how) {
        assert.equal(await terminal.end(), `${how} same`);
        assert.ok(!terminal.isOwn && terminal.hasCursor && terminal.emulator.modes.wraparoundMode);
        assert.equal(terminal.screen, '');
    }

    test('q', async (t) => {
        const terminal = await boardOf(t, await workshop(t));
        terminal.type('q');
        await left(terminal, 'exit 0');
    });

    for (const [name, how] of [['SIGINT', 130], ['SIGTERM', 143], ['SIGHUP', 129], ['SIGQUIT', 131]]) {
        test(name, async (t) => {
            const terminal = await boardOf(t, await workshop(t));
            terminal.signal(name);
            await left(terminal, `exit ${how}`);
        });
    }

    test('Ctrl-C, also while the filter is typed', async (t) => {
        const terminal = await boardOf(t, await workshop(t));
        terminal.type('/xyz');
        await terminal.until('Nothing matches');
        terminal.type('\x03');
        await left(terminal, 'exit 130');
    });

    test('Ctrl-Z gives the terminal back, and fg takes it again', async (t) => {
        const peer = await workshop(t);
        const terminal = await boardOf(t, peer);
        terminal.type('\x1a');
        await terminal.until(({ told }) => told.at(-1) === 'stopped same');
        await terminal.until(({ isOwn, hasCursor }) => !isOwn && hasCursor);
        peer.push(threadUpdated('t-1', thread('Fixed meanwhile', 'idle', 3)));
        terminal.resize(70, 9);
        terminal.signal('SIGCONT');
        await terminal.until('Fixed meanwhile');
        assert.ok(terminal.isOwn && !terminal.hasCursor);
        terminal.type('q');
        await left(terminal, 'exit 0');
    });

    test('a window that is closed', async (t) => {
        const terminal = await boardOf(t, await workshop(t));
        terminal.hangUp();
        assert.match(await terminal.end(), /^exit 129 /);
    });

    test('a terminal that takes nothing holds up no signal, nor the servers', async (t) => {
        const peer = await workshop(t);
        const terminal = await boardOf(t, peer);
        terminal.hold();
        let round = 0;
        const busy = () => peer.push(...Array.from({ length: 20 }, (_, i) => threadUpdated(`t-${i}`, thread(`Round ${round++}`, 'running', i))));
        for (let i = 0; i < 50; i++) {
            busy();
            await peer.until('an ack of it', () => true);
        }
        terminal.signal('SIGTERM');
        await terminal.until(({ told }) => /^exit 143 same$/.test(told.at(-1)));
    });
});

describe('arbe board: lines', { timeout: 240_000 }, () => {
    const lines = (text) => text.split('\n').filter(Boolean);
    const rowOf = (text) => lines(text).map((line) => JSON.parse(line));

    test('plain: a line for each row that changes, hosts on stderr', async (t) => {
        const peer = await workshop(t);
        const running = shell.start('--t3', `mac=${peer.base}`);
        await running.until(/Fix[^]*Refactor|Refactor[^]*Fix/);
        await running.until(/mac: live\n/, 'stderr');
        assert.deepEqual(lines(running.stdout).sort(), ['mac  failed  Fix the login — Which of the two?', 'mac  running  Refactor the store — I am looking at it']);
        peer.push(threadUpdated('t-1', thread('Fix\x1bed\u202e', 'idle', 3)));
        await running.until(/mac {2}idle {2}Fix\?ed\n/);
        peer.push(threadRemoved('t-1'));
        await running.until(/mac {2}gone {2}Fix\?ed\n/);
        await peer.stop();
        await running.until(/arbe board: mac: lost: .*; trying again\n/, 'stderr');
        running.kill('SIGTERM');
        const { code, stderr } = await running.end();
        assert.equal(code, 143);
        assert.match(stderr, /^arbe board: mac: connecting\narbe board: mac: catching up\narbe board: mac: live\narbe board: mac: lost: .*\n/);
        assert.equal(stderr.match(/mac: connecting/g).length, 1, 'a lost host is lost until another connection stands');
    });

    test('--json: rows, gone, hosts', async (t) => {
        const peer = await workshop(t);
        const running = shell.start('--t3', `mac=${peer.base}`, '--json', '--snippet-length', '5');
        await running.until(/"live"/);
        const told = rowOf(running.stdout);
        const rows = told.filter(({ type }) => type === 'row').map(({ row }) => row).sort((a, b) => (a.thread_id < b.thread_id ? -1 : 1));
        assert.deepEqual(Object.keys(rows[0]), ['thread_id', 'title', 'state', 'last_turn_at', 'last_message_snippet', 'host']);
        assert.deepEqual(rows.map(({ thread_id: id, title, state, last_message_snippet: snippet, host }) => [id, title, state, snippet, host]),
            [['t-1', 'Fix the login', 'failed', 'Which', 'mac'], ['t-2', 'Refactor the store', 'running', 'I am ', 'mac']]);
        assert.deepEqual(told.at(-1), { type: 'host', host: 'mac', state: 'live', full: false, error: null });
        peer.push(threadRemoved('t-1'));
        await running.until(/"gone"/);
        assert.deepEqual(rowOf(running.stdout).at(-1), { type: 'gone', thread_id: 't-1', host: 'mac' });
        await peer.stop();
        await running.until(/"lost"/);
        const { error } = rowOf(running.stdout).find(({ state }) => state === 'lost');
        assert.ok(error.code.length > 0 && error.message.length > 0);
        running.kill('SIGINT');
        const { code, stderr } = await running.end();
        assert.deepEqual({ code, stderr }, { code: 130, stderr: '' });
    });

    test('who asks somebody something says so, in each form, and once', async (t) => {
        const peer = await workshop(t);
        const [plain, json] = [[], ['--json']].map((form) => shell.start('--t3', `mac=${peer.base}`, ...form));
        await plain.until(/Refactor/);
        await json.until(/"live"/);
        const push = (pendingRuntimeRequest) => peer.push(threadUpdated('t-2', {
            ...peer.threads.get('t-2').thread, title: 'Refactor', latestVisibleMessage: null, pendingRuntimeRequest,
        }));
        push(ASKED);
        await plain.until(/asks you/);
        await json.until(/"asks":true/);
        push(ASKED);
        push(null);
        await plain.until(/asks you.*running {2}Refactor\n/s);
        await json.until(/"asks":true.*"title":"Refactor"/s);
        for (const running of [plain, json]) {
            running.kill('SIGINT');
            assert.equal((await running.end()).code, 130);
        }
        assert.deepEqual(lines(plain.stdout).filter((line) => line.endsWith('  Refactor')), ['mac  asks you  Refactor', 'mac  running  Refactor']);
        assert.deepEqual(rowOf(json.stdout).filter(({ row }) => row?.title === 'Refactor').map(({ row }) => row.asks), [true, undefined]);
        peer.list(threadShell('t-3', { ...thread('Docs', 'completed'), hasActionableProposedPlan: true }));
        const asked = await shell.run(['--t3', `mac=${peer.base}`, '--once']);
        assert.match(asked.stdout, /^mac {2}asks you {2}- {2}Docs$/m);
        const { row } = rowOf((await shell.run(['--t3', `mac=${peer.base}`, '--once', '--json'])).stdout).find((line) => line.row?.title === 'Docs');
        assert.deepEqual([row.state, row.asks, Object.keys(row).at(-1)], ['completed', true, 'asks']);
    });

    test('all hosts refused: exit 1, with the sentence', async (t) => {
        const peer = await workshop(t, { token: 'good' });
        const file = hostsFile({ mac: [peer, 'bad'] });
        const plain = await shell.run(['--t3-hosts', file]);
        assert.deepEqual([plain.code, plain.stdout], [1, '']);
        assert.match(plain.stderr, /mac: refused: .*; sign in with: arbe t3 login \S+ --host mac --t3-hosts \S+\narbe board: there is no host left to read from\n$/);
        const json = await shell.run(['--t3-hosts', file, '--json']);
        assert.equal(json.code, 1);
        assert.equal(rowOf(json.stdout).at(-1).error.code, 'AUTH');
        assert.equal((await shell.run([], { env: { ARBE_T3_HOSTS_FILE: file } })).code, 1);
        // A token's file that others may read has one cure, and it is not another token.
        chmodSync(`${file}-mac`, 0o644);
        const open = await shell.run(['--t3-hosts', file]);
        assert.match(open.stderr, /mac: refused: the secret file .* \(mode 644\); run: chmod 600 [^ ]*-mac\n/);
    });

    test('--once prints what there is, newest activity first, and ends', async (t) => {
        const peer = await workshop(t);
        peer.list(threadShell('t-0', thread('Never ran', 'idle')));
        const [asked, started] = ['t-1', 't-2'].map((id) => peer.threads.get(id).thread.latestRunRequestedAt);
        const good = await shell.run(['--t3', `mac=${peer.base}`, '--once']);
        assert.deepEqual(good, { code: 0, signal: null, stderr: '',
            stdout: `mac  running  ${started}  Refactor the store — I am looking at it\nmac  failed  ${asked}  Fix the login — Which of the two?\n` +
                'mac  idle  -  Never ran\n' });
        const gone = await peerFor(t);
        await gone.stop();
        const half = await shell.run(['--t3', `mac=${peer.base}`, '--t3', `box=${gone.base}`, '--once']);
        assert.deepEqual([half.code, half.stdout], [1, good.stdout]);
        assert.match(half.stderr, /^arbe board: box: lost: /);
        const json = await shell.run(['--t3', `mac=${peer.base}`, '--once', '--json']);
        assert.deepEqual(rowOf(json.stdout).map(({ type }) => type), ['row', 'row', 'row', 'host']);
        assert.deepEqual(rowOf(json.stdout).slice(0, 3).map(({ row }) => row.thread_id), ['t-2', 't-1', 't-0']);
        assert.equal(json.code, 0);
    });

    test('--once leaves out a host that tells nothing in time, and says so', async (t) => {
        const peer = await workshop(t);
        const silent = await peerFor(t);
        silent.answers[SHELL] = () => {};
        const hosts = ['--t3', `box=${silent.base}`, '--t3', `mac=${peer.base}`, '--once', '--timeout', SANITIZER ? '10s' : '4s'];
        const plain = await shell.run(hosts);
        assert.deepEqual([plain.code, lines(plain.stdout).length], [1, 2], plain.stderr);
        assert.equal(plain.stderr, 'arbe board: box: catching up: no snapshot in time\n');
        const json = await shell.run([...hosts, '--json']);
        assert.deepEqual([json.code, json.stderr], [1, plain.stderr]);
        assert.deepEqual(rowOf(json.stdout).slice(2), [
            { type: 'host', host: 'box', state: 'catching up', full: false, error: { code: 'TIMEOUT', message: 'no snapshot in time' } },
            { type: 'host', host: 'mac', state: 'live', full: false, error: null },
        ]);
    });

    test('--once says that some of what a host told was broken', async (t) => {
        const peer = await workshop(t);
        peer.list({ title: 'A thread without an id' });
        for (const form of [[], ['--json']]) {
            const { code, stdout, stderr } = await shell.run(['--t3', `mac=${peer.base}`, '--once', ...form]);
            assert.deepEqual([code, lines(stdout).length], [0, 2 + form.length], stderr);
            assert.equal(stderr, 'arbe board: mac: live; 1 broken item left out\n');
        }
    });

    test('a host with more threads than a board holds is told in each form', async (t) => {
        const peer = await peerFor(t);
        const threads = Array.from({ length: 100_001 }, (_, i) => ({ id: `t-${i}`, title: null, status: 'idle' }));
        const snapshot = { kind: 'snapshot', snapshot: { schemaVersion: 2, snapshotSequence: 1, projects: [], threads } };
        peer.answers[SHELL] = ({ id, connection }) => peer.send(connection, { _tag: 'Chunk', requestId: String(id), values: [snapshot] });
        const told = /^arbe board: mac: live; some of its threads are left out/m;
        for (const form of [[], ['--json']]) {
            const { code, stdout, stderr } = await shell.run(['--t3', `mac=${peer.base}`, '--once', ...form]);
            assert.deepEqual([code, lines(stdout).length], [1, 100_000 + form.length], stderr);
            assert.match(stderr, told);
            if (form.length > 0) {
                assert.deepEqual(JSON.parse(lines(stdout).at(-1)), { type: 'host', host: 'mac', state: 'live', full: true, error: null });
            }
        }
    });

    test('a pipe that is closed ends it without a word', async (t) => {
        const peer = await workshop(t);
        const running = shell.line(`arbe board --t3 mac=${peer.base} | head -n 1; echo "\${PIPESTATUS:-}" >&2`);
        const { stdout } = await running.end();
        assert.equal(lines(stdout).length, 1);
        const quiet = shell.start('--t3', `mac=${peer.base}`);
        await quiet.until(/Refactor/);
        quiet.child.stdout.destroy();
        const { code, signal, stderr } = await quiet.end();
        assert.deepEqual({ code, signal }, { code: null, signal: 'SIGPIPE' });
        assert.doesNotMatch(stderr, /output/);
    });

    test('a reader that is slow gets the newest, and the servers go on', async (t) => {
        const peer = await workshop(t);
        const running = shell.start('--t3', `mac=${peer.base}`, '--json');
        await running.until(/"live"/);
        running.child.stdout.pause();
        const [ROUNDS, THREADS] = [20, 500];
        for (let i = 0; i < ROUNDS; i++) {
            peer.push(...Array.from({ length: THREADS }, (_, j) => threadUpdated(`t-${j}`, thread(`Round ${i} of ${j}`, 'running', 1, 'x'.repeat(150)))));
            await peer.until('an ack of it', () => JSON.stringify(peer.sent('Chunk').at(-1)).includes(`Round ${i} of ${THREADS - 1}"`) &&
                peer.received('Ack').length === peer.sent('Chunk').length);
        }
        running.child.stdout.resume();
        await running.until((text) => text.split(`Round ${ROUNDS - 1} of `).length > THREADS);
        assert.ok(lines(running.stdout).length < ROUNDS * THREADS, 'what is told is not what is old by then');
        running.kill('SIGTERM');
        assert.equal((await running.end()).code, 143);
    });

    test('TERM=dumb, or keys that come from elsewhere: lines', async (t) => {
        const peer = await workshop(t);
        const dumb = boardFor(t, ['--t3', `mac=${peer.base}`], { env: { TERM: 'dumb' } });
        await dumb.until('mac  failed  Fix the login');
        assert.ok(!dumb.isOwn);
        assert.ok(!dumb.raw.includes('\x1b'));
        dumb.type('\x03');
        assert.equal(await dumb.end(), 'exit 130 same');
    });

    test('wrong usage is 2', async () => {
        for (const args of [['word'], ['--nothing'], ['--snippet-length', '0'], ['--t3', 'mac=ftp://x'], ['--t3', '='], ['--timeout', '5s'], ['--t3', '--json']]) {
            const { code, stdout, stderr } = await shell.run(args);
            assert.deepEqual({ code, stdout }, { code: 2, stdout: '' });
            assert.match(stderr, /^arbe board: /);
        }
        assert.match((await shell.run(['mac'])).stderr, /no command "mac".*; a host is named with --t3$/m);
        // With --json what keeps it from beginning is an object, as of other commands.
        for (const [args, code, word] of [
            [['--json', 'word'], 2, 'client.usage'], [['--json', '--nothing'], 2, 'client.usage'], [['--json', '--t3', 'mac=ftp://x'], 2, 'client.usage'],
            [['--json', '--t3-hosts', '/nowhere/t3'], 1, 'client.file'], [['--json'], 1, 't3.no_host'],
        ]) {
            const ended = await shell.run(args);
            assert.deepEqual([ended.code, ended.stdout], [code, ''], ended.stderr);
            const { error } = JSON.parse(ended.stderr);
            assert.equal(error.code, word);
            assert.match(error.message, /^[a-z"-].+/);
        }
        assert.match((await shell.run(['--t3-hosts', '/nowhere/t3'])).stderr, /^arbe board: cannot open the hosts' file \/nowhere\/t3: /);
        const help = await shell.good(['--help']);
        for (const word of ['--t3 HOST=URL', '--t3-hosts FILE', '--allow-http', 'ARBE_T3_HOSTS_FILE', 'ARBE_T3_TOKEN', '--json', '--once', '--snippet-length N', 'arbe board fold']) {
            assert.ok(help.includes(word), word);
        }
        assert.equal(await shell.good(['--json', '--help']), help);
    });
});
