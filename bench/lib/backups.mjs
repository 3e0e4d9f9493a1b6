// Section h: a backup of a server that takes appends at a steady rate meanwhile.
import { execFile } from 'node:child_process';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Client } from './client.mjs';
import { median } from './machine.mjs';

const RATE = 5000;
const TURN_MS = 4; // appends that are due go out together this often
const BODY_BYTES = 256;
const STREAMS = 1000;
const FILL_BYTES = 256 * 1024; // of each stream before the clock starts
const CONNECTIONS = 256;
const PATH = '/v1/stream/bench/backup-';
const TYPE = 'application/octet-stream';
const start = promisify(execFile);

async function fill(server) {
    const client = new Client(server);
    const body = Buffer.alloc(FILL_BYTES, 'f');
    await client.each(STREAMS, (i) => client.must('PUT', PATH + i, { type: TYPE, body }));
    client.close();
}

// Sends appends by the clock, whatever becomes of those before, and times each from when it was due.
class Load {
    constructor(server) {
        this.client = new Client(server, CONNECTIONS);
        this.body = Buffer.alloc(BODY_BYTES, 'a');
        this.sent = 0;
        this.pending = new Set();
    }

    async append(due, into) {
        const path = PATH + (this.sent++ % STREAMS);
        const answer = await this.client.send('POST', path, { type: TYPE, body: this.body })
            .catch(() => null);
        if (answer?.status === 204) {
            into.times.push(performance.now() - due);
        } else {
            into.failed++;
        }
    }

    // Goes on until `end` is settled; resolves with what the appends of that time took.
    async during(end) {
        const into = { times: [], failed: 0 };
        const began = performance.now();
        let going = true;
        end.finally(() => { going = false; }).catch(() => {}); // the caller awaits it too
        for (let count = 0; going; await sleep(TURN_MS)) {
            for (; count < ((performance.now() - began) * RATE) / 1000; count++) {
                const one = this.append(began + (count * 1000) / RATE, into);
                this.pending.add(one);
                one.then(() => this.pending.delete(one));
            }
        }
        const seconds = (performance.now() - began) / 1000;
        const answered = into.times.length; // in time; the others count for the percentiles alone
        await Promise.all(this.pending);
        return { ...into, answered, seconds };
    }

    close() {
        this.client.close();
    }
}

function summarise(state, turns) {
    const times = turns.flatMap((one) => one.times).sort((a, b) => a - b);
    const at = (share) => times[Math.min(times.length - 1, Math.floor(times.length * share))];
    return {
        state,
        per_second: median(turns.map((one) => one.answered / one.seconds)),
        p50_ms: at(0.5), p99_ms: at(0.99), max_ms: times.at(-1),
        failed: turns.reduce((sum, one) => sum + one.failed, 0),
        seconds: median(turns.map((one) => one.seconds)),
    };
}

// One backup under the load, which must be good.
async function backup(arbe, server, load, out) {
    const made = start(arbe, ['streams', 'backup', '--json', path.join(server.dir, 'data'), out]);
    const turn = await load.during(made);
    const said = JSON.parse((await made).stdout);
    await start(arbe, ['streams', 'verify', out]); // fails unless everything is right
    return { ...turn, mib: said.bytes / 1048576 };
}

export async function backups({ servers, options, progress, available }) {
    const title = `a backup while ${RATE} appends of ${BODY_BYTES} B a second go on`;
    if (available(['arbe']).length === 0) {
        return { title, columns: [], rows: [], goals: [] };
    }
    progress('h: filling');
    const server = await servers.arbe();
    const alone = [];
    const beside = [];
    try {
        await fill(server);
        const load = new Load(server);
        for (let round = 1; round <= options.rounds; round++) {
            progress(`h: round ${round}`);
            alone.push(await load.during(sleep(options.seconds * 1000)));
            const out = path.join(server.dir, `out-${round}`);
            beside.push(await backup(options.arbe, server, load, out));
            servers.discard(out);
        }
        load.close();
    } finally {
        await servers.finish(server);
    }
    const rows = [summarise('alone', alone),
        { ...summarise('during a backup', beside), mib: median(beside.map((one) => one.mib)) }];
    return {
        title,
        columns: [['state', 'state'], ['per_second', 'appends/s', 0], ['p50_ms', 'p50 ms', 2],
            ['p99_ms', 'p99 ms', 2], ['max_ms', 'max ms', 1], ['failed', 'failed'],
            ['seconds', 'seconds', 2], ['mib', 'MiB copied', 0]],
        rows,
        goals: [{ what: 'appends that failed', value: rows[0].failed + rows[1].failed, exactly: 0 },
            { what: 'appends, p99 during a backup / alone',
                value: rows[1].p99_ms / rows[0].p99_ms }],
    };
}
