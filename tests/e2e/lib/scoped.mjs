// The test program tests/client/scoped.c as a child process, and a stand-in for the app: the few
// routes that a scoped client needs, before the real server of streams.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import http from 'node:http';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { request } from './http.mjs';
import { BIN } from './server.mjs';
import { DEADLINE_MS, sleep, withDeadline } from './wait.mjs';

const beside = join(dirname(BIN), 'tests/client/scoped');
const PROGRAM = existsSync(beside) ? beside : join(import.meta.dirname, '../../../build/tests/client/scoped');

const alive = new Set();
process.on('exit', stopScoped);

// `said` is all that the program has told, `last` its end.
export class Scoped {
    constructor(base, token, thread, command, options = {}, input = '') {
        const args = Object.entries(options).map(([key, value]) => `${key}=${value}`);
        this.said = [];
        this.waiters = [];
        this.last = null;
        this.errors = '';
        this.child = spawn(PROGRAM, [base, thread, command, ...args],
                           { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, ARBE_TOKEN: token } });
        alive.add(this.child);
        this.child.stdin.on('error', () => {});
        this.child.stdin.end(input);
        this.child.stderr.on('data', (chunk) => { this.errors += chunk; });
        createInterface({ input: this.child.stdout }).on('line', (line) => {
            const said = JSON.parse(line);
            if (said.end !== undefined) {
                this.last = said;
            } else {
                this.said.push(said);
            }
            this.wake();
        });
        this.exited = new Promise((done) => {
            this.child.on('close', (code, signal) => {
                alive.delete(this.child);
                this.exit = { code, signal };
                this.wake();
                done();
            });
        });
    }

    wake() {
        this.waiters.splice(0).forEach((waiter) => waiter());
    }

    get entries() {
        return this.said.filter((one) => one.entry).map((one) => one.entry);
    }

    async until(what, probe, ms = DEADLINE_MS) {
        const end = Date.now() + ms;
        while (!probe(this)) {
            if (this.exit) {
                throw new Error(`${what}: it ended: ${JSON.stringify(this.last)} ${this.errors}`);
            }
            await withDeadline(new Promise((done) => this.waiters.push(done)), what, end - Date.now());
        }
    }

    async end(ms = DEADLINE_MS) {
        await withDeadline(this.exited, `end of the program (${JSON.stringify(this.last)})`, ms);
        if (this.exit.signal !== null || this.errors !== '' || this.last === null) {
            throw new Error(`the program died: ${JSON.stringify(this.exit)} ${this.errors}`);
        }
        return this.last;
    }
}

const refusal = (code, message) => JSON.stringify({ error: { code, message } });
const BY_CODE = { 'auth.unauthenticated': 401, 'auth.forbidden': 403, 'record.not_found': 404, 'streams.unavailable': 503 };

// Ends the programs that a failed test has left behind: a tail would keep the tests from ending.
export function stopScoped() {
    for (const child of alive) {
        child.kill('SIGKILL');
    }
}

// Members are tokens; `threads` maps ids to what is known of each. Appends to one thread follow each
// other, with a producer's claim, so that each is stored once however often it is tried.
export class StandIn {
    constructor(server) {
        this.server = server;
        this.members = new Map(); // token -> agent
        this.threads = new Map();
        this.requests = [];
        this.http = http.createServer((req, res) => this.serve(req, res).catch(() => res.destroy()));
        this.http.keepAliveTimeout = 200; // so that kept connections end under the client, too
    }

    async start() {
        await new Promise((done) => this.http.listen(0, '127.0.0.1', done));
        this.port = this.http.address().port;
        this.base = `http://127.0.0.1:${this.port}`;
        return this;
    }

    async stop() {
        this.http.closeAllConnections();
        await new Promise((done) => this.http.close(done));
    }

    async createThread(id) {
        await request(this.server.base, 'PUT', `/v1/stream/arbe-thread-${id}`, { headers: { 'Content-Type': 'application/json' } });
        this.threads.set(id, { posted: new Map(), order: Promise.resolve(), seq: 0 });
    }

    refuse(res, code, message) {
        res.writeHead(BY_CODE[code], { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' });
        res.end(refusal(code, message));
    }

    async serve(req, res) {
        const url = new URL(req.url, 'http://app');
        const [, id, rest] = /^\/api\/threads\/([^/]+)\/(stream|entries)$/.exec(url.pathname) ?? [];
        const author = this.members.get(req.headers.authorization?.replace('Bearer ', ''));
        this.requests.push(`${req.method} ${req.url}`);
        if (author === undefined) {
            this.refuse(res, 'auth.unauthenticated', 'a valid API key is needed');
        } else if (!this.threads.has(id)) {
            this.refuse(res, 'record.not_found', 'there is no such thread');
        } else if (author === null) {
            this.refuse(res, 'auth.forbidden', 'you are not a member of this house');
        } else if (rest === 'stream') {
            this.proxy(req, res, `/v1/stream/arbe-thread-${id}${url.search}`);
        } else {
            await this.post(req, res, this.threads.get(id), `/v1/stream/arbe-thread-${id}`, author);
        }
    }

    proxy(req, res, path) {
        const upstream = http.request({ port: this.server.port, host: '127.0.0.1', method: req.method, path, agent: false }, (answer) => {
            res.writeHead(answer.statusCode, answer.headers);
            answer.pipe(res);
            answer.on('aborted', () => res.destroy());
        });
        upstream.on('error', () => (res.headersSent ? res.destroy() : this.refuse(res, 'streams.unavailable', 'no streams')));
        res.on('close', () => upstream.destroy());
        upstream.end();
    }

    async post(req, res, thread, path, author) {
        let body = '';
        for await (const chunk of req) {
            body += chunk;
        }
        const { id, payload } = JSON.parse(body);
        const isNew = !thread.posted.has(id);
        if (isNew) {
            const entry = { id, ts: Date.now(), authorId: author, payload };
            thread.posted.set(id, this.append(thread, path, entry));
        }
        const entry = await thread.posted.get(id);
        res.writeHead(isNew ? 201 : 200, { 'Content-Type': 'application/json' });
        res.end(JSON.stringify(entry));
    }

    // What the server itself writes, too.
    append(thread, path, entry) {
        thread.order = thread.order.then(async () => {
            const headers = { 'Content-Type': 'application/json', 'Producer-Id': 'app', 'Producer-Epoch': '0', 'Producer-Seq': String(thread.seq++) };
            for (;;) {
                const reply = await request(this.server.base, 'POST', path, { headers, body: JSON.stringify(entry), fresh: true }).catch(() => null);
                if (reply !== null && reply.status < 300) {
                    return entry;
                }
                await sleep(10);
            }
        });
        return thread.order;
    }

    write(id, entry) {
        return this.append(this.threads.get(id), `/v1/stream/arbe-thread-${id}`, entry);
    }
}
