// Tier B7: arbe t3 and arbe board without memory, or with a disk that fails: whatever fails is said, and what is there was
// there before or is new, whole. Of memory each allocation of the program's own fails in its turn, once or from there on.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe } from 'node:test';
import { Faults, buildFaultLibrary, eachAllocation } from './lib/faults.mjs';
import { testUnless } from './lib/impossible.mjs';
import { tempDir } from './lib/server.mjs';
import { Shell } from './lib/shell.mjs';
import { startPeer, threadShell, threadUpdated } from './lib/t3_peer.mjs';
import { Terminal } from './lib/terminal.mjs';

const memory = buildFaultLibrary('faultmem');
const disk = buildFaultLibrary();
const memoryTest = testUnless(memory.impossible);
const diskTest = testUnless(disk.impossible);
const NO_MEMORY = /^(arbe|\{"error").*(out of memory|memory ran out|Cannot allocate memory)/m;

async function workshop(t) {
    const peer = await startPeer({ token: 'tok' });
    t.after(() => peer.stop());
    peer.list(threadShell('t-1', { title: 'One', status: 'running' }));
    return { peer, shell: new Shell({ ARBE_T3_TOKEN: 'tok' }, []) };
}

// A user at a server that can end a token, who may be signed in as "mac".
async function user(t) {
    const peer = await startPeer({ token: null, pairing: 'PAIR' });
    t.after(() => peer.stop());
    peer.sessions.endsItself = true;
    const home = tempDir();
    const dir = join(home, '.config/arbe');
    const token = join(dir, 't3-tokens/mac');
    const shell = new Shell({ HOME: home }, ['t3']);
    const read = (path) => (existsSync(path) ? readFileSync(path, 'utf8') : null);
    return {
        peer, dir, shell,
        kept: () => ({ hosts: read(join(dir, 't3')), token: read(token) }),
        login(env) {
            peer.pair('PAIR');
            return shell.run(['login', peer.url, '--host', 'mac'], { input: 'PAIR\n', env });
        },
        // Nothing is left half done: no other files, none that others may read, no lock.
        assertTidy() {
            for (const path of [dir, join(dir, 't3-tokens')].filter(existsSync)) {
                assert.deepEqual(readdirSync(path).filter((name) => name.startsWith('.')), []);
            }
            for (const path of [join(dir, 't3'), token].filter(existsSync)) {
                assert.equal(statSync(path).mode & 0o777, 0o600);
            }
        },
        // No token is good that is neither here nor named.
        assertKnown({ stderr }, where) {
            for (const session of peer.sessions.tokens.values()) {
                assert.ok(session.revoked || session.token === read(token) || stderr.includes(session.sessionId), `${where}: ${session.sessionId} is good:\n${stderr}`);
                session.revoked ||= session.token !== read(token);
            }
        },
    };
}

// It does all that it does with enough memory, or says that there is none.
function assertSaid({ code, signal, stdout, stderr }, where, wanted) {
    assert.equal(signal, null, where);
    if (code === 0) {
        assert.equal(stdout, wanted, where);
    } else {
        assert.equal(code, 1, where);
        assert.match(stderr, NO_MEMORY, where);
    }
}

// Both kinds of a command that only reads.
async function whole(command) {
    const wanted = (await command({})).stdout;
    assert.notEqual(wanted, '');
    for (const ever of [false, true]) {
        await eachAllocation(memory.library, command, (end, where) => assertSaid(end, where, wanted), { ever });
    }
}

describe('without memory', { timeout: 600_000, concurrency: true }, () => {
    memoryTest('arbe board fold', async () => {
        const shell = new Shell({}, ['board', 'fold']);
        const items = [threadUpdated('t-1', { title: 'One', status: 'running' }), threadUpdated('t-2', { title: 'Two' })];
        await whole((env) => shell.run([], { input: `${JSON.stringify(items)}\n`, env }));
    });

    memoryTest('arbe board --once', async (t) => {
        const { peer, shell } = await workshop(t);
        for (const form of [[], ['--json']]) {
            await whole((env) => shell.run(['board', '--once', ...form, '--t3', `mac=${peer.base}`], { env }));
        }
    });

    memoryTest('arbe t3 probe', async (t) => {
        const { peer, shell } = await workshop(t);
        for (const form of [[], ['--json']]) {
            await whole((env) => shell.run(['t3', 'probe', peer.base, ...form], { env }));
        }
    });

    memoryTest('arbe t3 list', async (t) => {
        const { login, shell } = await user(t);
        await login({});
        await whole((env) => shell.run(['list'], { env }));
    });

    // A board that goes on is whole again when memory is.
    memoryTest('arbe board, as lines', async (t) => {
        const { peer, shell } = await workshop(t);
        await eachAllocation(memory.library, async (env) => {
            const board = new Shell({ ...shell.env, ...env }, ['board']).start('--json', '--t3', `mac=${peer.base}`);
            await board.until((text) => /"title":"One"/.test(text) && /"state":"live"/.test(text)).catch(() => {});
            board.kill('SIGTERM');
            return await board.end();
        }, ({ code, signal, stdout, stderr }, where) => {
            assert.equal(signal, null, where);
            if (code === 143) {
                assert.match(stdout, /"title":"One"/, where);
            } else {
                assert.match(stderr, NO_MEMORY, where);
            }
        });
    });

    // The terminal is given back before it is said.
    memoryTest('arbe board, live', async (t) => {
        const { peer, shell } = await workshop(t);
        await eachAllocation(memory.library, async (env) => {
            const terminal = new Terminal(['board', '--t3', `mac=${peer.base}`], { env: { ARBE_T3_TOKEN: 'tok', ...env } });
            const isOver = () => terminal.told.some((line) => line.startsWith('exit'));
            await terminal.until(({ screen }) => isOver() || (/ One /.test(screen) && screen.includes('mac live')));
            terminal.type('/one\r');
            await terminal.until(({ screen }) => isOver() || /^\/one  Esc clear/m.test(screen));
            terminal.type('q');
            const end = await terminal.end();
            return { end, screen: terminal.screen };
        }, ({ end, screen }, where) => {
            assert.match(end, /^exit [01] same$/, where);
            if (end === 'exit 1 same') {
                assert.match(screen, NO_MEMORY, where);
            }
        });
    });

    memoryTest('arbe t3 login: no token is lost', async (t) => {
        const { kept, login, assertKnown, assertTidy } = await user(t);
        for (const ever of [false, true]) {
            let before = kept();
            await eachAllocation(memory.library, login, (end, where) => {
                assertKnown(end, where);
                assertTidy();
                if (end.code === 0) {
                    assert.match(end.stderr, /is kept in .*\n.*good for 30 days\n.*shows its threads\n$/, where);
                } else {
                    assert.match(end.stderr, NO_MEMORY, where);
                    assert.deepEqual(kept(), before, where);
                }
                before = kept();
            }, { ever });
        }
    });

    memoryTest('arbe t3 logout', async (t) => {
        const { kept, login, shell, assertKnown, assertTidy } = await user(t);
        for (const ever of [false, true]) {
            await eachAllocation(memory.library, async (env) => {
                if (kept().token === null) {
                    await login({});
                }
                return await shell.run(['logout', 'mac'], { env });
            }, (end, where) => {
                assertTidy();
                if (end.code === 0) {
                    assert.deepEqual(kept().token, null, where);
                    assertKnown(end, where);
                } else {
                    assert.match(end.stderr, NO_MEMORY, where);
                }
            }, { ever });
        }
    });
});

// The hosts' file and the token are written as .t3.PID.* and .mac.PID.*, and renamed.
describe('on a disk that fails', { timeout: 120_000 }, () => {
    const faultsFor = (t) => {
        const faults = new Faults(disk.library);
        t.after(() => faults.dispose());
        return faults;
    };

    diskTest('arbe t3 login leaves what was there, and ends what it was given', async (t) => {
        const { kept, login, assertKnown, assertTidy } = await user(t);
        const faults = faultsFor(t);
        for (let round = 0; round < 2; round++) {
            const before = kept();
            for (const [part, what] of [['.t3.', 'the hosts\' file'], ['.mac.', 'the token']]) {
                for (const fault of ['write ? ENOSPC', 'sync ? EIO', 'sync ? EDQUOT']) {
                    faults.set(fault.replace('?', part));
                    const end = await login(faults.env);
                    assert.equal(end.code, 1, end.stderr);
                    assert.match(end.stderr, new RegExp(`^arbe t3 login: cannot write ${what} .*: (No space|Input/output error|Disk quota).*; its session was ended\n$`));
                    assert.deepEqual(kept(), before);
                    assertTidy();
                    assertKnown(end, `${fault} ${part}`);
                }
            }
            faults.clear();
            assert.equal((await login(faults.env)).code, 0);
        }
    });

    // The disk fails between the token and the hosts' file, and so does what would put the old token back.
    diskTest('arbe t3 login says that it lost a token, and ends that, too', async (t) => {
        const { peer, kept, login, assertKnown, assertTidy } = await user(t);
        const faults = faultsFor(t);
        await login({});
        const { hosts, token } = kept();
        faults.set('write .t3. hold 1');
        const running = login(faults.env);
        await faults.hit();
        faults.set('sync .t3. EIO', 'write .mac. EIO');
        const end = await running;
        assert.equal(end.code, 1);
        assert.match(end.stderr, /^arbe t3 login: the token that was here before is lost: it cannot be put back\narbe t3 login: cannot write the hosts' file /);
        assert.equal(kept().hosts, hosts);
        assert.ok(peer.sessions.tokens.get(token).revoked);
        assertTidy();
        assertKnown(end, 'lost');
        assert.equal((await login({})).code, 0);
    });

    diskTest('arbe t3 logout ends the token first', async (t) => {
        const { peer, kept, login, shell, assertTidy } = await user(t);
        const faults = faultsFor(t);
        await login({});
        const { hosts, token } = kept();
        faults.set('sync .t3. EIO');
        const { code, stderr } = await shell.run(['logout', 'mac'], { env: faults.env });
        assert.equal(code, 1);
        assert.match(stderr, /cannot write the hosts' file .*: Input\/output error\n.*its token was ended; --forget removes what is still here\n$/);
        assert.ok(peer.sessions.tokens.get(token).revoked);
        assert.deepEqual(kept(), { hosts, token: null });
        assertTidy();
        await shell.run(['logout', 'mac', '--forget']);
        assert.equal(kept().hosts, '');
    });
});
