// Commands of the program as a shell runs them: with input, signals, pipes and terminals.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { BIN } from './server.mjs';
import { DEADLINE_MS, eventually, withDeadline } from './wait.mjs';

const alive = new Set();
process.on('exit', () => alive.forEach((child) => child.kill('SIGKILL')));

// The environment without settings of whoever runs the tests; HOME is nowhere, so that there are no profiles.
function environment(extra) {
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(ARBE_|XDG_|NO_COLOR)/.test(name)));
    return { ...env, HOME: '/nonexistent', TERM: 'xterm', ...extra };
}

const quoted = (word) => `'${word.replaceAll("'", "'\\''")}'`;

export class Shell {
    // `before` is what stands before the words of every command.
    constructor(env = {}, before = ['stream']) {
        this.env = environment(env);
        this.before = before;
    }

    // Starts arbe with `args`, which are words of arbe stream; the result collects what it prints.
    start(...args) {
        return new Running(BIN, [...this.before, ...args], this.env);
    }

    // Runs it to its end: { code, signal, stdout, stderr }.
    async run(args, { input, env = {} } = {}) {
        const running = new Running(BIN, [...this.before, ...args], { ...this.env, ...env });
        running.child.stdin.on('error', () => {}); // it may end without reading all
        running.child.stdin.end(input);
        return await running.end();
    }

    // The same, which must go well; gives what it printed.
    async good(args, options) {
        const { code, signal, stdout, stderr } = await this.run(args, options);
        assert.deepEqual({ code, signal }, { code: 0, signal: null }, `arbe ${[...this.before, ...args].join(' ')}: ${stderr}`);
        return stdout;
    }

    // Starts a line of a shell, where "arbe" is the program.
    line(text) {
        return new Running('sh', ['-c', `arbe() { ${quoted(BIN)} "$@"; }; ${text}`], this.env);
    }

    // Starts arbe with `args` on a terminal of its own; all that it shows comes as stdout. `redirect` is for the
    // shell, such as ">FILE".
    terminal(args, redirect = '') {
        const command = `exec ${[BIN, ...this.before, ...args].map(quoted).join(' ')} ${redirect}`;
        return new Running('script', ['-qec', command, '/dev/null'], { ...this.env, SHELL: '/bin/sh' });
    }
}

class Running {
    constructor(program, args, env) {
        this.child = spawn(program, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
        this.what = args.join(' ');
        this.stdout = '';
        this.stderr = '';
        this.bytes = [];
        this.watchers = new Set();
        alive.add(this.child);
        this.child.stdin.on('error', () => {});
        this.child.stdout.on('data', (chunk) => {
            this.bytes.push(chunk);
            this.stdout += chunk;
            this.watchers.forEach((look) => look());
        });
        this.child.stderr.on('data', (chunk) => {
            this.stderr += chunk;
            this.watchers.forEach((look) => look());
        });
        this.closed = new Promise((done, fail) => {
            this.child.on('error', fail);
            this.child.on('close', (code, signal) => {
                alive.delete(this.child);
                done({ code, signal });
            });
        });
        this.closed.catch(() => {});
    }

    // Waits until stdout matches (or a function of it says so).
    async until(wanted, where = 'stdout') {
        const is = typeof wanted === 'function' ? wanted : (text) => wanted.test(text);
        let look;
        const seen = new Promise((done) => {
            look = () => is(this[where]) && done(true);
            this.watchers.add(look);
            look();
        });
        const first = await withDeadline(Promise.race([seen, this.closed]), `${wanted} from ${this.what}`)
            .finally(() => this.watchers.delete(look));
        assert.ok(first === true || is(this[where]),
            `${this.what} ended (${first.code ?? first.signal}) without ${wanted}:\n${this.stdout}${this.stderr}`);
    }

    // Waits until it has taken signals over: from then on one ends it in its own way.
    async ready() {
        const SIGINT_BIT = 1n << 1n;
        await eventually('handler of signals', () => {
            const status = readFileSync(`/proc/${this.child.pid}/status`, 'utf8');
            return (BigInt(`0x${/SigCgt:\s*([0-9a-f]+)/.exec(status)[1]}`) & SIGINT_BIT) !== 0n;
        });
    }

    type(text) {
        this.child.stdin.write(text);
    }

    kill(signal) {
        this.child.kill(signal);
    }

    // Waits for its end.
    async end(ms = DEADLINE_MS) {
        const { code, signal } = await withDeadline(this.closed, `end of ${this.what}`, ms);
        return { code, signal, stdout: this.stdout, stderr: this.stderr };
    }
}
