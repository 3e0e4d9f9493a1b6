// The test program tests/client/t3.c as a child process: a connection to a T3 server, or a reader of one.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { BIN } from './server.mjs';
import { DEADLINE_MS, withDeadline } from './wait.mjs';

const beside = join(dirname(BIN), 'tests/client/t3');
const PROGRAM = existsSync(beside) ? beside : join(import.meta.dirname, '../../../build/tests/client/t3');

const alive = new Set();
process.on('exit', () => alive.forEach((child) => child.kill('SIGKILL')));

export class T3Client {
    // `kind` is rpc or reader, `token` may be null; the rest are options of the program, several values a list.
    constructor(kind, url, { token = null, ...options } = {}) {
        const args = Object.entries(options).flatMap(([name, value]) => [value].flat().map((one) => `${name}=${one}`));
        const { ARBE_T3_TOKEN: _, ...env } = process.env;
        this.said = []; // all lines
        this.events = []; // those of them that were not taken
        this.answers = [];
        this.last = null;
        this.errors = '';
        this.waiters = [];
        this.exit = null;
        this.child = spawn(PROGRAM, [kind, url, ...args], {
            stdio: ['pipe', 'pipe', 'pipe'], env: token === null ? env : { ...env, ARBE_T3_TOKEN: token },
        });
        alive.add(this.child);
        this.child.stdin.on('error', () => {});
        this.child.stderr.on('data', (chunk) => { this.errors += chunk; });
        createInterface({ input: this.child.stdout }).on('line', (line) => this.take(line));
        this.exited = new Promise((done) => {
            this.child.on('error', (error) => { this.errors += error; });
            this.child.on('close', (code, signal) => {
                alive.delete(this.child);
                this.exit = { code, signal };
                this.wake();
                done();
            });
        });
        this.made = this.begun([options.subscribe ?? []].flat().length);
    }

    take(line) {
        const said = JSON.parse(line);
        this.said.push(said);
        if (said.event !== undefined) {
            this.events.push(said);
        } else if (said.did !== undefined) {
            this.answers.push(said);
        } else {
            this.last = said;
        }
        this.wake();
    }

    wake() {
        this.waiters.splice(0).forEach((waiter) => waiter());
    }

    async until(what, probe) {
        const end = Date.now() + DEADLINE_MS;
        for (;;) {
            const value = probe();
            if (value) {
                return value;
            }
            const so = () => `${what}; so far ${JSON.stringify(this.said).slice(-1500)} ${this.errors}`;
            if (this.exit !== null) {
                throw new Error(`the program ended before ${so()}`);
            }
            await withDeadline(new Promise((done) => this.waiters.push(done)), 'line of the program', end - Date.now())
                .catch((error) => { throw new Error(`${error.message}, wanted: ${so()}`); });
        }
    }

    // Whether the library took the options, and then the first subscriptions.
    async begun(subscriptions) {
        const made = await this.answer();
        for (let i = 0; i < subscriptions && made.code === undefined; i++) {
            const { code } = await this.answer();
            assert.equal(code, undefined);
        }
        return made;
    }

    async answer() {
        return this.until('an answer', () => this.answers.shift());
    }

    // A command, and what came of it.
    async do(...words) {
        this.tell(...words);
        return this.answer();
    }

    // Without waiting for an answer.
    tell(...words) {
        this.child.stdin.write(`${words.map((word) => typeof word === 'object' ? JSON.stringify(word) : word).join(' ')}\n`);
    }

    // A request that must be accepted. Gives its id.
    async begin(...words) {
        const { id, ...rest } = await this.do(...words);
        assert.ok(id > 0, `${words[0]}: ${JSON.stringify(rest)}`);
        return id;
    }

    // Takes the next event, which must be of that kind.
    async next(kind, id) {
        const event = await this.until(`event ${kind}`, () => this.events.shift());
        assert.ok(event.event === kind && (id === undefined || event.id === id), `wanted ${kind} ${id ?? ''}, not ${JSON.stringify(event).slice(0, 600)}`);
        return event;
    }

    // Takes the next events of a reader, which must tell these states; gives the last.
    async states(...wanted) {
        let event;
        for (const state of wanted) {
            event = await this.next('state');
            assert.equal(event.state, state, JSON.stringify(event));
        }
        return event;
    }

    // Frees everything; nothing may be left of it.
    async end() {
        this.child.stdin.end();
        await withDeadline(this.exited, `end of the program (${JSON.stringify(this.said).slice(-500)})`);
        assert.deepEqual([this.exit, this.errors], [{ code: 0, signal: null }, '']);
        assert.deepEqual(this.last, { end: true, fds: 0, threads: 0 });
    }
}
