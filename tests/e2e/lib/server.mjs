// Starts, stops, kills and restarts one real server process on its own data
// directory, and learns its address from the line that it prints.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { DEADLINE_MS, withDeadline } from './wait.mjs';

const ROOT = resolve(import.meta.dirname ?? new URL('.', import.meta.url).pathname, '../../..');
export const BIN = resolve(process.env.ARBE_BIN ?? join(ROOT, 'build/arbe'));

const SANITIZER_REPORT =
    /AddressSanitizer|LeakSanitizer|ThreadSanitizer|UndefinedBehaviorSanitizer|runtime error:/;
const LOG_CHARS_MAX = 1 << 20;

const alive = new Set();
process.on('exit', () => {
    for (const child of alive) {
        child.kill('SIGKILL');
    }
});

export function tempDir() {
    return mkdtempSync(join(process.env.ARBE_E2E_TMP ?? tmpdir(), 'arbe-e2e-'));
}

// Runs the program to its end and gives { code, signal, stdout, stderr }.
export async function run(args, { env = {}, uid, gid, timeout = DEADLINE_MS, program = BIN } = {}) {
    const child = spawn(program, args, {
        stdio: ['ignore', 'pipe', 'pipe'], env: cleanEnv(env), uid, gid,
    });
    alive.add(child);
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (chunk) => { stdout += chunk; });
    child.stderr.on('data', (chunk) => { stderr += chunk; });
    const end = new Promise((done, fail) => {
        child.on('error', fail);
        child.on('close', (code, signal) => done({ code, signal }));
    });
    try {
        const { code, signal } = await withDeadline(end, `exit of arbe ${args.join(' ')}`, timeout);
        return { code, signal, stdout, stderr };
    } finally {
        alive.delete(child);
        child.kill('SIGKILL');
    }
}

function cleanEnv(extra) {
    const env = { ...process.env };
    for (const name of Object.keys(env)) {
        // Settings can come from the environment; the tests choose their own.
        if (name.startsWith('ARBE_')) {
            delete env[name];
        }
    }
    return { ...env, ...extra };
}

export class Server {
    constructor(flags, { dir, env = {}, ulimit, keepDir = false, ownDir, command = 'streams' } = {}) {
        this.flags = flags;
        this.command = command;
        this.ownsDir = ownDir ?? (dir === undefined && !keepDir);
        this.dir = dir ?? tempDir();
        this.env = env;
        this.ulimit = ulimit;
        this.child = null;
        this.log = '';
        this.port = 0;
        this.reported = false;
        this.program = BIN;
    }

    get base() {
        return `http://127.0.0.1:${this.port}`;
    }

    get pid() {
        return this.child.pid;
    }

    get running() {
        return this.child !== null;
    }

    // Launches the process; resolves when it listens, rejects when it ends, or does not listen: then there is none left.
    async start(flags = this.flags) {
        this.launch(flags);
        try {
            await withDeadline(this.listening, 'line with the address');
        } catch (error) {
            await this.kill();
            throw error;
        }
        return this;
    }

    launch(flags = this.flags) {
        assert.equal(this.child, null, 'the server is already running');
        const args = [this.command, '--listen', '127.0.0.1:0', '--data', this.dir, ...flags];
        const command = this.ulimit ? ['sh', ['-c', `${this.ulimit}; exec "$0" "$@"`, this.program, ...args]]
            : [this.program, args];
        const child = spawn(command[0], command[1], {
            stdio: ['ignore', 'pipe', 'pipe'],
            env: cleanEnv(this.env),
        });
        this.child = child;
        this.exitWanted = false;
        alive.add(child);
        this.exited = new Promise((done) => {
            child.on('error', (error) => {
                this.log += `\n${error}`;
                done({ code: null, signal: 'ENOENT' });
            });
            child.on('close', (code, signal) => {
                alive.delete(child);
                this.child = null;
                done({ code, signal });
            });
        });
        const heard = new Promise((done) => {
            let text = '';
            const onData = (chunk) => {
                this.log = (this.log + chunk).slice(-LOG_CHARS_MAX);
                if (text !== null) {
                    text += chunk;
                    const found = /listening on http:\/\/127\.0\.0\.1:(\d+)[/\n]/.exec(text);
                    if (found) {
                        text = null;
                        this.port = Number(found[1]);
                        done();
                    }
                }
            };
            child.stdout.on('data', onData);
            child.stderr.on('data', onData);
        });
        this.listening = Promise.race([
            heard,
            this.exited.then(({ code, signal }) => {
                throw new Error(`the server ended (${code ?? signal}) before it listened:\n` +
                    this.log.slice(-4000));
            }),
        ]);
        this.listening.catch(() => {});
    }

    async kill(signal = 'SIGKILL') {
        if (this.child) {
            this.exitWanted = true;
            this.child.kill(signal);
            return await withDeadline(this.exited, `exit after ${signal}`);
        }
        return null;
    }

    // A graceful stop, which must succeed.
    async stop() {
        const end = await this.kill('SIGTERM');
        if (end) {
            this.checkLog();
            assert.deepEqual(end, { code: 0, signal: null }, `exit after SIGTERM\n${this.tail()}`);
        }
    }

    async restart(flags = this.flags) {
        await this.stop();
        return await this.start(flags);
    }

    async crash() {
        assert.ok(this.child, `the server was already gone:\n${this.tail()}`);
        const end = await this.kill('SIGKILL');
        assert.equal(end.signal, 'SIGKILL', `the server died by itself:\n${this.tail()}`);
        this.checkLog();
    }

    async crashAndRestart(flags = this.flags) {
        await this.crash();
        return await this.start(flags);
    }

    checkLog() {
        assert.ok(!SANITIZER_REPORT.test(this.log), `sanitizer report:\n${this.log.slice(-20000)}`);
    }

    tail() {
        return this.log.slice(-3000);
    }

    // Stops the server and removes its directory, even when the stop fails.
    async dispose() {
        try {
            assert.ok(this.child || this.exitWanted !== false || this.port === 0,
                      `the server ended by itself:\n${this.tail()}`);
            await this.stop();
            this.checkLog();
        } finally {
            if (this.child) {
                await this.kill('SIGKILL');
            }
            if (this.ownsDir) {
                rmSync(this.dir, { recursive: true, force: true });
            }
        }
    }

    // For tests that end the process themselves before dispose().
    expectGone() {
        this.exitWanted = true;
    }
}

export async function startServer(flags = [], options = {}) {
    return await new Server(flags, options).start();
}

// A server that lives as long as the test t.
export async function serverFor(t, flags = [], options = {}) {
    const server = new Server(flags, options);
    t.after(() => server.dispose());
    return await server.start();
}
