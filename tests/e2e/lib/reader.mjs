// The test program tests/client/reader.c as a child process, and a relay that
// gives a server a lasting address and breaks connections as it is told.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import net from 'node:net';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { BIN } from './server.mjs';
import { DEADLINE_MS, withDeadline } from './wait.mjs';

const beside = join(dirname(BIN), 'tests/client/reader');
const PROGRAM = existsSync(beside) ? beside : join(import.meta.dirname, '../../../build/tests/client/reader');

const alive = new Set();
process.on('exit', () => {
    for (const child of alive) {
        child.kill('SIGKILL');
    }
});

// Each piece is { data: Buffer, next, up, closed }; `end` is what the program
// said last: { end: 'END' or the name of an error, message, units, hwm_kib, ... }.
export class Reader {
    constructor(base, name, options = {}) {
        const args = Object.entries(options).map(([key, value]) => `${key}=${value}`);
        this.pieces = [];
        this.waiters = [];
        this.last = null;
        this.errors = '';
        this.child = spawn(PROGRAM, [base, name, ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
        alive.add(this.child);
        this.child.stdin.on('error', () => {});
        this.child.stderr.on('data', (chunk) => { this.errors += chunk; });
        createInterface({ input: this.child.stdout }).on('line', (line) => this.take(line));
        this.exited = new Promise((done) => {
            this.child.on('close', (code, signal) => {
                alive.delete(this.child);
                this.exit = { code, signal };
                this.wake();
                done();
            });
        });
    }

    take(line) {
        const said = JSON.parse(line);
        if (said.end === undefined && said.hex !== undefined) {
            this.pieces.push({ ...said, data: Buffer.from(said.hex, 'hex') });
        } else {
            this.last = said;
        }
        this.wake();
    }

    wake() {
        for (const waiter of this.waiters.splice(0)) {
            waiter();
        }
    }

    get data() {
        return Buffer.concat(this.pieces.map((piece) => piece.data));
    }

    get text() {
        return this.data.toString('utf8');
    }

    // Messages of a reader with unit=messages.
    get messages() {
        return this.pieces.filter((piece) => piece.data.length > 0).map((piece) => piece.data.toString('utf8'));
    }

    async until(what, probe, ms = DEADLINE_MS) {
        const end = Date.now() + ms;
        while (!probe(this)) {
            if (this.exit) {
                throw new Error(`${what}: the reader ended: ${JSON.stringify(this.last)} ${this.errors}`);
            }
            await withDeadline(new Promise((done) => this.waiters.push(done)), what, end - Date.now());
        }
    }

    ask() {
        this.child.stdin.write('\n');
    }

    signal(name) {
        this.child.kill(name);
    }

    async end(ms = DEADLINE_MS) {
        await withDeadline(this.exited, `end of the reader (${JSON.stringify(this.last)})`, ms);
        if (this.exit.signal !== null || this.errors !== '' || this.last === null) {
            throw new Error(`the reader died: ${JSON.stringify(this.exit)} ${this.errors}`);
        }
        return this.last;
    }

    async stop() {
        this.child.kill('SIGKILL');
        await this.exited;
    }
}

// A reader that goes to its end.
export async function readToEnd(base, name, options = {}) {
    const reader = new Reader(base, name, options);
    await reader.end();
    return reader;
}

// Forwards connections to target.port as it is at the time. `budget()` gives
// how many bytes of answers a connection carries before it is cut (RST or FIN);
// Infinity: all.
export class Relay {
    constructor(target, budget = () => Infinity) {
        this.target = target;
        this.budget = budget;
        this.sockets = new Set();
        this.cuts = 0;
        this.server = net.createServer((client) => this.serve(client));
    }

    async start() {
        await new Promise((done) => this.server.listen(0, '127.0.0.1', done));
        this.base = `http://127.0.0.1:${this.server.address().port}`;
        return this;
    }

    serve(client) {
        const upstream = net.connect(this.target.port, '127.0.0.1');
        let left = this.budget();
        const both = [client, upstream];
        const drop = () => both.forEach((socket) => socket.destroy());
        for (const socket of both) {
            this.sockets.add(socket);
            socket.setNoDelay(true);
            socket.on('error', drop);
            socket.on('close', () => {
                this.sockets.delete(socket);
                drop();
            });
        }
        client.pipe(upstream);
        upstream.on('data', (chunk) => {
            const part = chunk.length <= left ? chunk : chunk.subarray(0, left);
            left -= part.length;
            if (client.destroyed) {
                return;
            }
            if (!client.write(part)) {
                upstream.pause();
                client.once('drain', () => upstream.resume());
            }
            if (left === 0) {
                this.cuts++;
                upstream.destroy();
                client.end();
            }
        });
        upstream.on('end', () => client.end());
    }

    async stop() {
        for (const socket of this.sockets) {
            socket.destroy();
        }
        await new Promise((done) => this.server.close(done));
    }
}
