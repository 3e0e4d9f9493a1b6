// Sections c and d: SSE subscribers, busy and idle.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { memory } from './machine.mjs';
import { fanout, fanoutIdle } from './programs.mjs';

const SUBSCRIBERS = 1000;
const RATE = 50;
const RUN_S = 20;
const SETTLE_MS = 1000;
const SPARE_DESCRIPTORS = 200;
const IDLE_KIB_UNDER = 4;

function lost(result) {
    return result.missing + result.duplicates + result.out_of_order + result.dropped +
        result.refused;
}

export async function live({ servers, options, progress, available, program }) {
    const seconds = options.quick ? options.seconds : RUN_S;
    const rows = [];
    for (const name of available(['arbe', 'rust', 'node'])) {
        progress(`c: ${name}`);
        const server = await servers[name]();
        try {
            const result = await fanout(program(), server, '/v1/stream/bench/fanout',
                { subscribers: SUBSCRIBERS, rate: RATE, seconds });
            rows.push({ server: name, ...result, lost: lost(result),
                p50_ms: result.p50_us / 1000, p99_ms: result.p99_us / 1000,
                max_ms: result.max_us / 1000, ack_p99_ms: result.ack_p99_us / 1000,
                late_ms: result.late_max_us / 1000 });
        } finally {
            await servers.finish(server);
        }
    }
    const arbe = rows.find((row) => row.server === 'arbe');
    return {
        title: `SSE fan-out: ${SUBSCRIBERS} subscribers of one stream, ${RATE} appends a second ` +
            `for ${seconds} s; time from send to arrival`,
        columns: [['server', 'server'], ['appends', 'appends'], ['unsent', 'unsent'],
            ['deliveries', 'deliveries', 0], ['missing', 'missing'],
            ['duplicates', 'double'], ['out_of_order', 'disorder'], ['dropped', 'dropped'],
            ['p50_ms', 'p50 ms', 2], ['p99_ms', 'p99 ms', 2], ['max_ms', 'max ms', 2],
            ['ack_p99_ms', 'ack p99', 2], ['late_ms', 'late max', 2], ['cpu_s', 'cpu s', 2]],
        rows,
        goals: arbe ? [
            { what: 'fan-out, p99 delivery, ms', value: arbe.p99_ms, under: 20 },
            { what: 'fan-out, messages lost, doubled, disordered; subscribers dropped',
                value: arbe.lost, exactly: 0 },
            { what: 'fan-out, appends that the schedule left no time for',
                value: arbe.unsent, exactly: 0 },
        ] : [],
    };
}

function descriptorLimit() {
    const limits = readFileSync('/proc/self/limits', 'utf8');
    return Number(limits.match(/^Max open files\s+(\d+)/m)[1]);
}

async function idleTurn(servers, name, program, subscribers) {
    // The default cap on connections is not what is measured here.
    const flags = ['--max-connections', String(subscribers + SPARE_DESCRIPTORS)];
    const server = await servers[name](name === 'arbe' ? { flags } : undefined);
    try {
        const before = memory(server.pid);
        const open = await fanoutIdle(program, server, '/v1/stream/bench/idle', subscribers,
            async () => {
                await sleep(SETTLE_MS);
                return memory(server.pid);
            });
        return { server: name, subscribers: open.ready, before_kib: before.rss_kib,
            open_kib: open.rss_kib, rss_each: (open.rss_kib - before.rss_kib) / open.ready,
            anon_each: (open.anon_kib - before.anon_kib) / open.ready };
    } finally {
        await servers.finish(server);
    }
}

export async function idle({ servers, progress, available, program }) {
    const rows = [];
    const notes = [];
    for (const subscribers of [2000, 10000]) {
        if (subscribers + SPARE_DESCRIPTORS > descriptorLimit()) {
            notes.push(`${subscribers} subscribers need more descriptors than ulimit -n allows`);
            continue;
        }
        for (const name of available(subscribers > 2000 ? ['arbe', 'rust'] : ['arbe', 'rust', 'node'])) {
            progress(`d: ${subscribers} subscribers, ${name}`);
            rows.push(await idleTurn(servers, name, program(), subscribers));
        }
    }
    return {
        title: 'memory of idle SSE subscribers of one stream',
        columns: [['server', 'server'], ['subscribers', 'subscribers'],
            ['before_kib', 'RSS before KiB', 0], ['open_kib', 'RSS open KiB', 0],
            ['rss_each', 'KiB each', 2], ['anon_each', 'anon KiB each', 2]],
        rows,
        notes,
        goals: rows.filter((row) => row.server === 'arbe').map((row) => ({
            what: `KiB for each of ${row.subscribers} idle subscribers`,
            value: row.rss_each, under: IDLE_KIB_UNDER })),
    };
}
