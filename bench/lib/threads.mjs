// Section i: threads. What an entry costs beside a raw append of the same bytes to the same server, and what a page of
// a house with many threads takes, at rest and while half of them are written to.
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from './client.mjs';
import { cpuSeconds, median } from './machine.mjs';
import { wrk } from './programs.mjs';

const TARGETS = 16; // threads, and raw streams beside them
const ROUNDS = 5; // of each kind, in turn: the machine is not always the same
const ROUND_S = 2;
const TEXT = 'hello, this is a message of usual length for a chat between people who know each other';
const THREADS = 10_000;
const WRITTEN = 5_000;
const WRITES_PER_SECOND = 1_000; // each of them every five seconds
const WRITERS = 50;
const LOOKS = 300;
const RAW = '/v1/stream/bench-raw-';

class House {
    constructor(server) {
        this.server = server;
        this.key = /\barbe_[0-9a-f]{64}\b/.exec(server.log)[0];
        this.client = new Client(server);
        this.threads = [];
    }

    async api(method, path, value) {
        const answer = await this.client.must(method, `/api${path}`, {
            headers: { Authorization: `Bearer ${this.key}` },
            ...(value ? { type: 'application/json', body: JSON.stringify(value) } : {}),
        });
        return JSON.parse(answer.body);
    }

    async open() {
        this.id = (await this.api('GET', '/houses')).houses[0].id;
    }

    async fill(count) {
        const first = this.threads.length;
        await this.client.each(count, async (i) => {
            this.threads[first + i] = (await this.api('POST', '/threads', { parentId: this.id })).threadId;
        });
    }

    say(thread, payload) {
        return this.api('POST', `/threads/${thread}/entries`, { payload });
    }

    list(cursor, limit = 50) {
        const more = cursor ? `&cursor=${encodeURIComponent(cursor)}` : '';
        return this.api('GET', `/threads?house_id=${this.id}&limit=${limit}${more}`);
    }
}

// ------------------------------------------------------------------------------------------------ entries

function loads(house, stored) {
    const posted = JSON.stringify({ payload: stored.payload });
    const numbers = Array.from({ length: TARGETS }, (_, i) => i);
    const entries = ['/api/threads/', '/entries', posted, house.key, ...house.threads.slice(0, TARGETS)];
    return {
        'raw append': ['raw', TARGETS, RAW, '', JSON.stringify(stored), '-', ...numbers],
        'POST entry': ['post', TARGETS, ...entries],
        'POST entry, own id': ['own', TARGETS, ...entries],
    };
}

function summarise(what, connections, turns) {
    const of = (key) => median(turns.map((one) => one[key]));
    return { what, connections, per_second: of('per_second'), cpu_us: of('cpu_us'), p50_ms: of('p50_ms'),
        p99_ms: of('p99_ms'), failed: turns.reduce((sum, one) => sum + one.bad, 0) };
}

async function entries({ progress, options }, house) {
    const { server } = house;
    const stored = await house.say(house.threads[0], { type: 'chat', text: TEXT });
    for (let i = 0; i < TARGETS; i++) {
        await house.client.must('PUT', RAW + i, { type: 'application/json' });
    }
    const rows = [];
    const goals = [];
    for (const connections of [1, 64]) {
        const turns = {};
        for (let round = 0; round < (options.quick ? 1 : ROUNDS); round++) {
            progress(`i: entries, ${connections} connections, round ${round + 1}`);
            for (const [what, args] of Object.entries(loads(house, stored))) {
                const load = { connections, seconds: ROUND_S, script: 'entries.lua', args };
                (turns[what] ??= []).push(await wrk(server, server.url, load));
            }
        }
        const ratio = (what, key) => median(turns[what].map((one, i) => one[key] / turns['raw append'][i][key]));
        rows.push(...Object.entries(turns).map(([what, list]) => summarise(what, connections, list)));
        goals.push(
            { what: `CPU time of an entry / of a raw append, ${connections} connections`,
                value: ratio('POST entry', 'cpu_us'), under: 1.5 },
            { what: `raw appends / entries a second, ${connections} connections`,
                value: 1 / ratio('POST entry', 'per_second'), under: 1.5 },
            { what: `CPU time of an entry with an id of its own / of a raw append, ${connections} connections`,
                value: ratio('POST entry, own id', 'cpu_us') });
    }
    return { rows, goals };
}

// --------------------------------------------------------------------------------------------------- lists

// `alone`: the server does nothing else, so that its processor time is that of the pages.
async function looks(house, what, cursor, count, alone) {
    const times = [];
    const before = cpuSeconds(house.server.pid);
    for (let i = 0; i < count; i++) {
        const began = performance.now();
        await house.list(cursor);
        times.push(performance.now() - began);
    }
    times.sort((a, b) => a - b);
    const cpu_us = alone ? ((cpuSeconds(house.server.pid) - before) * 1e6) / count : undefined;
    return { what, connections: 1, per_second: (1000 * count) / times.reduce((sum, one) => sum + one, 0),
        p50_ms: times[count >> 1], p99_ms: times[Math.floor(count * 0.99)], cpu_us, failed: 0 };
}

// The cursor of the page in the middle.
async function middle(house) {
    let cursor;
    for (let i = 0; i < THREADS / 2 / 200; i++) {
        cursor = (await house.list(cursor, 200)).nextCursor;
    }
    return cursor;
}

// Writes to WRITTEN threads by the clock, until `end` is aborted.
async function write(house, end) {
    const client = new Client(house.server, WRITERS);
    const headers = { Authorization: `Bearer ${house.key}` };
    const body = JSON.stringify({ payload: { type: 'chat', text: TEXT } });
    const began = performance.now();
    const pending = new Set();
    for (let count = 0; !end.aborted; await sleep(5)) {
        for (; count < ((performance.now() - began) * WRITES_PER_SECOND) / 1000 && pending.size < WRITERS; count++) {
            const path = `/api/threads/${house.threads[TARGETS + (count % WRITTEN)]}/entries`;
            const one = client.must('POST', path, { type: 'application/json', headers, body })
                .finally(() => pending.delete(one));
            pending.add(one);
        }
    }
    await Promise.all(pending);
    client.close();
}

async function lists({ progress, options }, house) {
    const count = options.quick ? LOOKS / 10 : LOOKS;
    progress(`i: ${THREADS} threads are made`);
    await house.fill(THREADS - house.threads.length);
    progress('i: pages at rest');
    const rows = [await looks(house, 'page of 50, the first', undefined, count, true),
        await looks(house, 'page of 50, in the middle', await middle(house), count, true)];
    const end = new AbortController();
    const writing = write(house, end.signal);
    progress(`i: pages while ${WRITTEN} threads are written to`);
    await sleep(5000); // until each was written to once
    for (const [what, cursor] of [['the first', undefined], ['in the middle', await middle(house)]]) {
        rows.push(await looks(house, `page of 50, ${what}, while ${WRITTEN} are written to`, cursor, count, false));
    }
    end.abort();
    await writing;
    return { rows, goals: rows.map((row) => ({ what: `ms, p50: ${row.what}`, value: row.p50_ms, under: 5 })) };
}

export async function threads(run) {
    const server = await run.servers.serve();
    const house = new House(server);
    try {
        await house.open();
        await house.fill(TARGETS);
        const posted = await entries(run, house);
        const listed = await lists(run, house);
        return {
            title: `threads: entries of ${TEXT.length} characters in ${TARGETS} threads; a house of ${THREADS} threads`,
            columns: [['what', 'what'], ['connections', 'conns'], ['per_second', 'requests/s', 0],
                ['cpu_us', 'cpu us/op', 1], ['p50_ms', 'p50 ms', 2], ['p99_ms', 'p99 ms', 2], ['failed', 'failed']],
            rows: [...posted.rows, ...listed.rows],
            goals: [...posted.goals, ...listed.goals],
        };
    } finally {
        house.client.close();
        await run.servers.finish(server);
    }
}
