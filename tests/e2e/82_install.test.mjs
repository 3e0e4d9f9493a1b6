// Tier 80: what make install puts where, and that manual, completions and unit match the program.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { after, describe, test } from 'node:test';
import { BIN, tempDir } from './lib/server.mjs';

const ROOT = resolve(import.meta.dirname, '../..');
const top = tempDir();
after(() => rmSync(top, { recursive: true, force: true }));

function command(program, args, { env = {}, input } = {}) {
    const { status, stdout, stderr, error } = spawnSync(program, args, {
        cwd: ROOT, encoding: 'utf8', input, env: { ...process.env, PATH: `${dirname(BIN)}:${process.env.PATH}`, ...env },
    });
    assert.equal(error, undefined, `${program}: ${error}`);
    return { status, stdout, stderr };
}

function good(program, args, options) {
    const result = command(program, args, options);
    assert.equal(result.status, 0, `${program} ${args.join(' ')}: ${result.stderr}${result.stdout}`);
    return result.stdout;
}

// The flags that a help text lists, and the words below a line that ends in a colon.
const flagsOf = (help) => [...help.matchAll(/^ {2}(--[a-z0-9-]+)/gm)].map((found) => found[1]);
const toolsOf = (help) => [...help.matchAll(/^ {2}arbe [a-z0-9]+ ([a-z][a-z-]*)/gm)].map((found) => found[1]);
const GROUPS = ['agent', 'auth', 'config', 'house', 'thread']; // of the API
// The commands of such a group, some of which are two words.
const commandsOf = (group) => [...good(BIN, [group, '--help']).matchAll(new RegExp(`^ {2}arbe ${group} ((key |entries )?[a-z]+)`, 'gm'))]
    .map((found) => found[1]);

// make finds the program that the tests run, built or not by this very make, and never builds another one.
function install(destination, ...variables) {
    return good('make', ['-s', 'install', `B=${dirname(BIN)}`, '-o', 'all', `DESTDIR=${destination}`, ...variables]);
}

const listed = (dir) => readdirSync(dir, { recursive: true }).map(String).filter((name) => statSync(join(dir, name)).isFile()).sort();

describe('make install', { timeout: 120_000 }, () => {
    test('every file has its place, rights and prefix', () => {
        const usr = join(top, 'usr');
        install(usr, 'PREFIX=/usr');
        assert.deepEqual(listed(usr).filter((name) => !/include|\/lib\/libarbe|pkgconfig|man3/.test(name)), [
            'etc/arbe/serve.conf',
            'etc/arbe/streams.conf',
            'usr/bin/arbe',
            'usr/lib/systemd/system/arbe-streams.service',
            'usr/lib/systemd/system/arbe.service',
            'usr/lib/sysusers.d/arbe.conf',
            'usr/lib/tmpfiles.d/arbe.conf',
            'usr/share/bash-completion/completions/arbe',
            'usr/share/man/man1/arbe-board.1',
            'usr/share/man/man1/arbe-serve.1',
            'usr/share/man/man1/arbe-stream.1',
            'usr/share/man/man1/arbe-streams.1',
            'usr/share/man/man1/arbe-t3.1',
            'usr/share/man/man1/arbe-threads.1',
            'usr/share/man/man1/arbe.1',
            'usr/share/zsh/site-functions/_arbe',
        ]);
        for (const name of listed(usr)) {
            assert.equal(statSync(join(usr, name)).mode & 0o777, name === 'usr/bin/arbe' ? 0o755 : 0o644, name);
        }
        const unit = readFileSync(join(usr, 'usr/lib/systemd/system/arbe-streams.service'), 'utf8');
        assert.match(unit, /^ExecStart=\/usr\/bin\/arbe streams /m);
        assert.ok(!unit.includes('@'.concat('PREFIX')));
    });

    test('settings that are there are kept', () => {
        const dir = join(top, 'kept');
        mkdirSync(join(dir, 'etc/arbe'), { recursive: true });
        writeFileSync(join(dir, 'etc/arbe/streams.conf'), 'listen = [::1]:1\n');
        install(dir);
        assert.equal(readFileSync(join(dir, 'etc/arbe/streams.conf'), 'utf8'), 'listen = [::1]:1\n');
        statSync(join(dir, 'usr/local/bin/arbe'));
    });

    for (const name of ['streams', 'serve']) {
        test(`the sample settings of ${name} are settings, also with every comment taken off`, () => {
            const sample = readFileSync(join(ROOT, `tools/install/${name}.conf`), 'utf8');
            const file = join(top, `sample-${name}.conf`);
            writeFileSync(file, sample.replace(/^# ([a-z-]+ = )/gm, '$1'));
            const printed = good(BIN, [name, '--print-config', '--config', file]);
            assert.ok(printed.includes(`# from ${file}:`));
        });
    }
});

describe('the manual', { timeout: 120_000 }, () => {
    const page = (name) => readFileSync(join(ROOT, 'docs/man', name), 'utf8').replaceAll('\\-', '-');

    test('tells of every command, tool and flag, and of no other', () => {
        const help = good(BIN, ['streams', '--help']);
        const text = page('arbe-streams.1');
        for (const word of [...flagsOf(help), ...toolsOf(help)]) {
            assert.match(text, new RegExp(`^\\.(B|BR|BI|TP)?.*${word}\\b`, 'm'), word);
        }
        const known = new Set(flagsOf(help));
        for (const tool of toolsOf(help)) {
            flagsOf(good(BIN, ['streams', tool, '--help'])).forEach((flag) => known.add(flag));
        }
        for (const [flag] of text.matchAll(/--[a-z][a-z0-9-]+/g)) {
            assert.ok(known.has(flag) || flag === '--help', `${flag} is in the manual only`);
        }
        const client = page('arbe-stream.1');
        const commands = toolsOf(good(BIN, ['stream', '--help']));
        const all = new Set(commands.flatMap((name) => flagsOf(good(BIN, ['stream', name, '--help']))));
        assert.ok(commands.length >= 12 && all.size > 20);
        for (const word of [...all, ...commands]) {
            assert.match(client, new RegExp(`^\\.(B|BI) .*${word}\\b`, 'm'), word);
        }
        for (const [flag] of client.matchAll(/--[a-z][a-z0-9-]+/g)) {
            assert.ok(all.has(flag) || flag === '--', `${flag} is in the manual only`);
        }
        // Those that arbe streams has as well are told there.
        const serve = page('arbe-serve.1');
        for (const flag of flagsOf(good(BIN, ['serve', '--help']))) {
            assert.match(known.has(flag) ? text : serve, new RegExp(`^\\.(B|BI) .*${flag}\\b`, 'm'), flag);
        }
        for (const [, name] of good(BIN, ['--help']).matchAll(/^ {2}([a-z]+) {2,}/gm)) {
            assert.match(page('arbe.1'), new RegExp(`^\\.B ${name}$`, 'm'), name);
        }
    });

    test('tells of every command of the API, in its part, with its flags', () => {
        const [, ...parts] = page('arbe-threads.1').split(/^\.SH /m);
        const part = Object.fromEntries(parts.map((one) => [one.split('\n')[0], one]));
        const shared = part['FLAGS OF EVERY COMMAND'];
        const told = new Set();
        for (const group of GROUPS) {
            const own = part[`ARBE ${group.toUpperCase()}`];
            for (const name of commandsOf(group)) {
                assert.match(own, new RegExp(`^\\.(B|BI) "?${name}\\b`, 'm'), `${group} ${name}`);
                for (const flag of flagsOf(good(BIN, [group, ...name.split(' '), '--help']))) {
                    told.add(flag);
                    // What several groups have is told once.
                    const where = ['--house', '--limit'].includes(flag) ? part['ARBE THREAD'] : own + shared;
                    assert.match(where, new RegExp(`^\\.(B|BI) .*${flag}\\b`, 'm'), `${group} ${name} ${flag}`);
                }
            }
        }
        for (const [flag] of page('arbe-threads.1').matchAll(/--[a-z][a-z0-9-]+/g)) {
            assert.ok(told.has(flag), `${flag} is in the manual only`);
        }
    });

    test('tells of every command of the board, with its flags', () => {
        const text = page('arbe-board.1');
        const told = new Set();
        for (const name of ['', ...toolsOf(good(BIN, ['board', '--help']))]) {
            assert.match(text, new RegExp(`^\\.(B|BI) ${name || 'arbe board'}\\b`, 'm'), name);
            for (const flag of flagsOf(good(BIN, ['board', ...(name ? [name] : []), '--help']))) {
                told.add(flag);
                assert.match(text, new RegExp(`^\\.(B|BI) .*${flag}\\b`, 'm'), flag);
            }
        }
        assert.ok(told.size >= 6);
        for (const [flag] of text.matchAll(/--[a-z][a-z0-9-]+/g)) {
            assert.ok(told.has(flag), `${flag} is in the manual only`);
        }
    });

    test('has a line for each code of a T3 host\'s error, and for no other', () => {
        const codes = [...readFileSync(join(ROOT, 'include/arbe/t3_rpc.h'), 'utf8').matchAll(/^ +T3_RPC_ERROR_([A-Z]+),/gm)].map((found) => found[1]);
        const section = page('arbe-board.1').split('.SH ERRORS\n')[1].split('.SH ')[0];
        assert.deepEqual([...section.matchAll(/^\.TP\n\.B ([A-Z]+)\n[a-z].+$/gm)].map((found) => found[1]), codes);
        assert.ok(codes.length > 10);
        assert.match(readFileSync(join(ROOT, 'docs/api.md'), 'utf8'), /with a\s`code` of those in\s`arbe-board\(1\)`/);
    });

    test('tells of every command of t3, with its flags', () => {
        const text = page('arbe-t3.1');
        const told = new Set();
        for (const name of toolsOf(good(BIN, ['t3', '--help']))) {
            assert.match(text, new RegExp(`^\\.B ${name}$`, 'm'), name);
            assert.match(text, new RegExp(`^\\.B arbe t3 ${name}$`, 'm'), name);
            for (const flag of flagsOf(good(BIN, ['t3', name, '--help']))) {
                told.add(flag);
                assert.match(text, new RegExp(`^\\.(B|BI) .*${flag}\\b`, 'm'), flag);
            }
        }
        assert.ok(told.size >= 8);
        for (const [flag] of text.matchAll(/--[a-z][a-z0-9-]+/g)) {
            assert.ok(told.has(flag), `${flag} is in the manual only`);
        }
    });

    test('is sound roff', () => {
        for (const name of readdirSync(join(ROOT, 'docs/man'))) {
            const { status, stderr } = command('groff', ['-man', '-Tutf8', '-ww', '-z', join('docs/man', name)]);
            assert.equal(status, 0);
            assert.equal(stderr, '', name);
        }
    });
});

describe('completions', { timeout: 120_000 }, () => {
    const shells = {
        bash: (words) => good('bash', ['-c', `
            source tools/install/arbe.bash
            COMP_WORDS=("$@")
            COMP_CWORD=$(($# - 1))
            _arbe
            printf '%s\\n' "\${COMPREPLY[@]}"`, 'bash', ...words]),
        zsh: (words) => good('zsh', ['-f', '-c', `
            compadd() { shift; print -rl -- "$@" }
            _files() { print -r -- "files $*" }
            words=("$@")
            CURRENT=$#
            source tools/install/_arbe`, 'zsh', ...words]),
    };
    const help = good(BIN, ['streams', '--help']);

    for (const [name, complete] of Object.entries(shells)) {
        const offers = (...words) => complete(words).split('\n').filter((word) => word.startsWith(words.at(-1)) && word !== '').sort();

        test(`${name}: commands, tools, flags and values come from the help`, () => {
            assert.deepEqual(offers('arbe', ''), [...GROUPS, 'board', 'serve', 'stream', 'streams', 't3'].sort());
            assert.deepEqual(offers('arbe', 'streams', ''), toolsOf(help).sort());
            assert.deepEqual(offers('arbe', 'streams', '--'), flagsOf(help).sort());
            assert.deepEqual(offers('arbe', 'streams', '--sse-'), ['--sse-heartbeat', '--sse-lifetime']);
            assert.deepEqual(offers('arbe', 'streams', '--durability', ''), ['memory', 'os', 'sync']);
            assert.deepEqual(offers('arbe', 'streams', '--workers', ''), []);
            assert.ok(offers('arbe', 'streams', 'verify', '--').includes('--json'));
            assert.deepEqual(offers('arbe', 'stream', ''), toolsOf(good(BIN, ['stream', '--help'])).sort());
            assert.deepEqual(offers('arbe', 'stream', 'tail', '--'), flagsOf(good(BIN, ['stream', 'tail', '--help'])).sort());
            assert.deepEqual(offers('arbe', 'stream', 'create', '--type', 't'), ['text']);
            assert.deepEqual(offers('arbe', 'stream', 'tail', ''), []);
            assert.deepEqual(offers('arbe', 'serve', '--streams-'), ['--streams-secret-file', '--streams-url']);
            for (const group of GROUPS) {
                const names = commandsOf(group);
                assert.deepEqual(offers('arbe', group, ''), [...new Set(names.map((one) => one.split(' ')[0]))].sort());
                for (const name of names) {
                    const words = name.split(' ');
                    assert.deepEqual(offers('arbe', group, ...words, '--'), flagsOf(good(BIN, [group, ...words, '--help'])).sort());
                }
            }
            assert.deepEqual(offers('arbe', 'thread', 'entries', ''), ['create', 'read']);
            assert.deepEqual(offers('arbe', 'board', ''), toolsOf(good(BIN, ['board', '--help'])).sort());
            assert.deepEqual(offers('arbe', 'board', '--'), flagsOf(good(BIN, ['board', '--help'])).sort());
            assert.deepEqual(offers('arbe', 'board', 'fold', '--'), flagsOf(good(BIN, ['board', 'fold', '--help'])).sort());
            assert.deepEqual(offers('arbe', 't3', ''), toolsOf(good(BIN, ['t3', '--help'])).sort());
            assert.deepEqual(offers('arbe', 't3', 'login', '--'), flagsOf(good(BIN, ['t3', 'login', '--help'])).sort());
            assert.deepEqual(offers('arbe', 'agent', 'key', 'r'), ['revoke']);
            assert.deepEqual(offers('arbe', 'thread', 'list', ''), []);
            assert.deepEqual(offers('arbe', 'house', 'add', 'x', '--role', ''), ['member', 'owner']);
            writeFileSync(join(top, 'profiles'), '[home]\nurl = http://h\n [ work ] \nurl = http://w\n');
            process.env.ARBE_PROFILES = join(top, 'profiles');
            assert.deepEqual(offers('arbe', 'stream', 'copy', '--to-profile', ''), ['home', 'work']);
            assert.deepEqual(offers('arbe', 'stream', 'copy', '--profile', 'w'), ['work']);
            delete process.env.ARBE_PROFILES;
            writeFileSync(join(top, 't3'), '[mac]\nurl = http://m\n[box]\nurl = http://b\n');
            process.env.ARBE_T3_HOSTS_FILE = join(top, 't3');
            assert.deepEqual(offers('arbe', 't3', 'logout', ''), ['box', 'mac']);
            assert.deepEqual(offers('arbe', 't3', 'probe', 'm'), ['mac']);
            assert.deepEqual(offers('arbe', 't3', 'login', ''), []);
            assert.deepEqual(offers('arbe', 'board', '--t3', ''), ['box', 'mac']);
            writeFileSync(join(top, 't3-other'), '[other]\nurl = http://o\n');
            assert.deepEqual(offers('arbe', 't3', 'probe', '--t3-hosts', join(top, 't3-other'), ''), ['other']);
            assert.deepEqual(offers('arbe', 'board', '--t3-hosts', join(top, 't3-other'), '--t3', 'o'), ['other']);
            delete process.env.ARBE_T3_HOSTS_FILE;
        });
    }

    test('files and directories', () => {
        copyFileSync(join(ROOT, 'tools/install/streams.conf'), join(top, 'a.conf'));
        assert.ok(shells.bash(['arbe', 'streams', '--config', join(top, 'a.')]).includes('a.conf'));
        assert.ok(!shells.bash(['arbe', 'streams', '--data', join(top, 'a.')]).includes('a.conf'));
        assert.match(shells.zsh(['arbe', 'streams', '--config', '']), /^files $/m);
        assert.match(shells.zsh(['arbe', 'streams', 'verify', '']), /^files -\/$/m);
    });
});

describe('the unit', { timeout: 120_000 }, () => {
    for (const name of ['arbe-streams.service', 'arbe.service']) {
        test(`${name} is sound, and leaves the service little`, () => {
            const dir = join(top, `unit-${name}`);
            install(dir, 'PREFIX=/usr');
            const unit = join(dir, 'usr/lib/systemd/system', name);
            // The program that it names has to be there to be verified.
            writeFileSync(unit, readFileSync(unit, 'utf8').replace('/usr/bin/arbe', BIN));
            const { stderr, status } = command('systemd-analyze', ['verify', '--man=no', unit]);
            assert.equal(status, 0, stderr);
            assert.ok(!/arbe/.test(stderr), stderr);
            const { stdout } = command('systemd-analyze', ['security', '--offline=yes', '--threshold=20', unit]);
            assert.match(stdout, new RegExp(`Overall exposure level for ${name}: [01]\\.`));
        });
    }

    test('its user and its directories are described', () => {
        assert.match(readFileSync(join(ROOT, 'tools/install/arbe.sysusers'), 'utf8'), /^u arbe - "[^"]+" \/var\/lib\/arbe$/m);
        const dirs = readFileSync(join(ROOT, 'tools/install/arbe.tmpfiles'), 'utf8');
        assert.match(dirs, /^d \/var\/lib\/arbe 0700 arbe arbe$/m);
    });
});
