// Section j: the board of T3 threads, in this process's library: what a shell snapshot and what one event takes to fold.
// Section k: the server's board, read live by many, beside a raw stream that as many read.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from './client.mjs';
import { median } from './machine.mjs';
import { boardFold, fanout, fanoutFed } from './programs.mjs';

// The goals are those of the first. An event must not cost more where there are more rows.
const SIZES = [[5_000, 60], [50_000, 6]];

export async function board({ options, progress }) {
    const columns = [['threads', 'threads', 0], ['snapshot_mib', 'MiB', 1], ['snapshot_ms', 'snapshot ms', 1],
        ['snapshot_p99_ms', 'p99 ms', 1], ['event_us', 'event us', 2], ['event_p99_us', 'p99 us', 2], ['row_bytes', 'bytes a row', 0]];
    const title = 'board: processor time to fold a shell snapshot and an event';
    if (!existsSync(path.join(path.dirname(options.arbe), 'libarbe.a'))) {
        return { title, columns, rows: [], goals: [] };
    }
    const rows = [];
    for (const [threads, snapshots] of SIZES) {
        progress(`j: ${threads} threads`);
        const one = await boardFold(options, threads, options.quick ? Math.ceil(snapshots / 6) : snapshots);
        rows.push({ ...one, snapshot_mib: one.bytes / 1048576, snapshot_ms: one.snapshot_us / 1000, snapshot_p99_ms: one.snapshot_p99_us / 1000 });
    }
    return { title, columns, rows, goals: [
        { what: `ms to fold a shell snapshot of ${rows[0].threads} threads`, value: rows[0].snapshot_ms, under: 50 },
        { what: 'us to fold one event', value: rows[0].event_us, under: 20 },
        { what: `event with ${rows[1].threads} rows / with ${rows[0].threads}`, value: rows[1].event_us / rows[0].event_us },
    ] };
}

const READERS = 1000;
const RATE = 50;
const RUN_S = 10;
const THREADS = 5000;
const FILLING = 'x'.repeat(120); // an event is then about as long as one of a raw stream

// Changes one thread after another, each with its number and the moment in the title, by the clock.
async function change(peer, threadUpdated, count) {
    const began = performance.now();
    for (let i = 1; i <= count; i++) {
        await sleep(began + (i * 1000) / RATE - performance.now());
        const now = String(process.hrtime.bigint()).padStart(20, '0');
        peer.push(threadUpdated(`t-${i % THREADS}`, { title: `@${String(i).padStart(10, '0')},${now},${FILLING}` }));
    }
}

// Where readers begin who know all there is.
async function newest(client, key) {
    const answer = await client.must('GET', '/api/board?limit=1', { headers: { Authorization: `Bearer ${key}` } });
    return JSON.parse(answer.body).cursor;
}

async function liveTurns(run, peer, { threadUpdated }, server) {
    const seconds = run.options.quick ? run.options.seconds : RUN_S;
    const load = { subscribers: READERS, rate: RATE, seconds };
    const key = /\barbe_[0-9a-f]{64}\b/.exec(server.log)[0];
    const turns = { 'raw stream': [], board: [] };
    const client = new Client(server);
    for (let round = 0; round < run.options.rounds; round++) {
        run.progress(`k: round ${round + 1}`);
        turns['raw stream'].push(await fanout(run.program(), server, `/v1/stream/bench-raw-${round}`, load));
        const path = `/api/board/stream?after=${await newest(client, key)}`;
        turns.board.push(await fanoutFed(run.program(), server, path, { ...load, event: 'row', key },
            () => change(peer, threadUpdated, RATE * seconds)));
    }
    client.close();
    return turns;
}

export async function boardLive(run) {
    const t3 = await import('../../tests/e2e/lib/t3_peer.mjs');
    const peer = await t3.startPeer({});
    peer.list(...Array.from({ length: THREADS }, (_, i) => t3.threadShell(`t-${i}`)));
    const server = await run.servers.serve({ flags: ['--t3', `mac=${peer.base}`] });
    try {
        await peer.call(t3.SHELL);
        const turns = await liveTurns(run, peer, t3, server);
        const of = (what, value) => median(turns[what].map(value));
        const each = (one) => (one.cpu_s * 1e6) / one.deliveries;
        const lost = (one) => one.missing + one.duplicates + one.out_of_order + one.dropped + one.refused + one.unsent;
        const rows = Object.entries(turns).map(([what, list]) => ({ what, deliveries: list[0].deliveries,
            lost: list.reduce((sum, one) => sum + lost(one), 0), p50_ms: of(what, (one) => one.p50_us / 1000),
            p99_ms: of(what, (one) => one.p99_us / 1000), max_ms: of(what, (one) => one.max_us / 1000), cpu_us: of(what, each) }));
        const ratio = (value) => median(turns.board.map((one, i) => value(one) / value(turns['raw stream'][i])));
        return {
            title: `board, live: ${READERS} readers, ${THREADS} threads, ${RATE} changes a second; time from the T3 server to the ` +
                'reader, and of a raw stream from the writer',
            columns: [['what', 'what'], ['deliveries', 'deliveries', 0], ['lost', 'lost'], ['p50_ms', 'p50 ms', 2],
                ['p99_ms', 'p99 ms', 2], ['max_ms', 'max ms', 2], ['cpu_us', 'cpu us/event', 2]],
            rows,
            goals: [
                { what: 'board, p99 from the T3 server to a reader, ms', value: rows[1].p99_ms, under: 20 },
                { what: 'board, changes lost, doubled, disordered; readers dropped', value: rows[1].lost, exactly: 0 },
                { what: 'CPU time of a change to a reader / of a raw event', value: ratio(each) },
                { what: 'p99 of a change / of a raw event', value: ratio((one) => one.p99_us) },
            ],
        };
    } finally {
        await run.servers.finish(server);
        await peer.stop();
    }
}
