// Drives build/client-adapter: the C client library, told by lines of JSON what
// to do with which stream. One process serves all tests of a file.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { uniqueName } from './http.mjs';
import { liveReaders } from './prometheus.mjs';
import { Proxy } from './proxy.mjs';
import { BIN, Server } from './server.mjs';
import { DEADLINE_MS, eventually, withDeadline } from './wait.mjs';

export const ADAPTER = process.env.ARBE_ADAPTER ?? join(dirname(BIN), 'client-adapter');

const alive = new Set();
process.on('exit', () => alive.forEach((child) => child.kill('SIGKILL')));

export class Adapter {
    constructor() {
        this.waiting = [];
        this.stderr = '';
        this.child = spawn(ADAPTER, { stdio: ['pipe', 'pipe', 'pipe'] });
        alive.add(this.child);
        this.exited = new Promise((done) => {
            this.child.on('error', (error) => done({ code: null, signal: String(error) }));
            this.child.on('close', (code, signal) => done({ code, signal }));
        });
        this.exited.then(() => {
            alive.delete(this.child);
            this.waiting.splice(0).forEach(({ fail }) => fail(new Error(`the adapter ended\n${this.stderr}`)));
        });
        this.child.stdin.on('error', () => {});
        this.child.stderr.on('data', (chunk) => { this.stderr += chunk; });
        createInterface({ input: this.child.stdout }).on('line', (line) => {
            this.waiting.shift().done(JSON.parse(line));
        });
    }

    // Answers come in order, so commands may be sent before earlier ones are done.
    send(command) {
        const line = typeof command === 'string' ? command : JSON.stringify(command);
        const answer = new Promise((done, fail) => this.waiting.push({ done, fail }));
        this.child.stdin.write(`${line}\n`);
        return withDeadline(answer, `answer to ${line.slice(0, 200)}`);
    }

    async stop() {
        assert.deepEqual(await this.send({ type: 'shutdown' }), { type: 'shutdown', success: true });
        const end = await withDeadline(this.exited, 'exit of the adapter');
        assert.deepEqual(end, { code: 0, signal: null }, this.stderr);
        assert.equal(this.stderr, '');
    }
}

// It went well: gives the answer.
export function well(answer) {
    assert.equal(answer.success, true, JSON.stringify(answer));
    return answer;
}

// It did not: with the code, and the status where one is wanted (null: there is none).
export function refused(answer, code, status) {
    assert.equal(answer.type, 'error', JSON.stringify(answer));
    assert.equal(answer.success, false);
    assert.equal(answer.errorCode, code, JSON.stringify(answer));
    if (status === null) {
        assert.ok(!('status' in answer), JSON.stringify(answer));
    } else if (status !== undefined) {
        assert.equal(answer.status, status, JSON.stringify(answer));
    }
    assert.match(answer.message, /\w \w/, 'the message is a sentence');
    return answer;
}

export function text(answer) {
    const parts = well(answer).chunks.map(
        (chunk) => (chunk.binary ? Buffer.from(chunk.data, 'base64') : Buffer.from(chunk.data)));
    return Buffer.concat(parts).toString('latin1');
}

const latin1 = (what) => Buffer.from(what).toString('latin1');

// One stream, as the library sees it.
export class Subject {
    constructor(rig, name = uniqueName('c')) {
        this.rig = rig;
        this.name = name;
        this.wire = `/v1/stream/${name}`;
    }

    send(type, members = {}) {
        return this.rig.adapter.send({ type, path: `/${this.name}`, ...members });
    }

    create(members) {
        return this.send('create', members);
    }

    head(members) {
        return this.send('head', members);
    }

    remove(members) {
        return this.send('delete', members);
    }

    close(members) {
        return this.send('close', members);
    }

    append(data, members) {
        return Buffer.isBuffer(data) ? this.send('append', { data: data.toString('base64'), binary: true, ...members })
            : this.send('append', { data, ...members });
    }

    // With a producer's claim, as the library's user would make one by hand.
    claim(data, id, epoch, seq, members) {
        return this.append(data, { producerId: id, producerEpoch: epoch, producerSeq: seq, ...members });
    }

    produce(data, members) {
        return this.send('idempotent-append', { data, producerId: 'p', epoch: 0, autoClaim: false, ...members });
    }

    produceBatch(items, members) {
        return this.send('idempotent-append-batch', { items, producerId: 'p', epoch: 0, autoClaim: false, ...members });
    }

    produceClose(members) {
        return this.send('idempotent-close', { producerId: 'p', epoch: 0, autoClaim: false, ...members });
    }

    detach(members) {
        return this.send('idempotent-detach', { producerId: 'p', epoch: 0, ...members });
    }

    read(members) {
        return this.send('read', { timeoutMs: DEADLINE_MS - 5000, ...members });
    }

    // Live, up to the tail.
    follow(live, members) {
        return this.read({ live, waitForUpToDate: true, ...members });
    }

    // Starts a live read from `offset` and gives its promise once the server has it.
    async listen(live, offset, members) {
        const before = this.rig.proxy.seen(this.wire).filter((r) => r.query.has('live')).length;
        const waiting = async () => await liveReaders(this.rig.server, 'long_poll') + await liveReaders(this.rig.server, 'sse');
        if (offset === 'now') {
            await eventually('no other reader waits', async () => await waiting() === 0);
        }
        const reading = this.read({ live, offset, maxChunks: 1, ...members });
        reading.catch(() => {}); // told where it is awaited
        await this.rig.proxy.untilLive(this.wire, before + 1);
        if (offset === 'now') { // what it is depends on when the server reads it, not on when the proxy does
            await eventually('it waits', async () => await waiting() === 1);
        }
        return { reading };
    }

    // Reads and insists on what is there; gives the answer.
    async reads(wanted, members) {
        const answer = await this.read(members);
        assert.equal(text(answer), latin1(wanted));
        return answer;
    }

    async tail() {
        return well(await this.head()).offset;
    }
}

// A server, a proxy before it, and an adapter that knows the proxy alone.
export class Rig {
    async start(flags = []) {
        this.server = await new Server(flags).start();
        this.proxy = await new Proxy(this.server).start();
        this.adapter = new Adapter();
        this.hello = await this.adapter.send({ type: 'init', serverUrl: `${this.proxy.base}/v1/stream` });
        well(this.hello);
        return this;
    }

    // A stream of the type, with these appended in turn.
    async stream(contentType, ...data) {
        const subject = new Subject(this);
        well(await subject.create({ contentType }));
        subject.offsets = [];
        for (const one of data) {
            subject.offsets.push(well(await subject.append(one)).offset);
        }
        return subject;
    }

    async stop() {
        try {
            await this.adapter.stop();
        } finally {
            await this.proxy.stop();
            await this.server.dispose();
        }
    }
}
