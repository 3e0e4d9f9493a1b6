// Section a: durable appends.
import { Client } from './client.mjs';
import { median } from './machine.mjs';
import { wrk } from './programs.mjs';

const STREAMS = 1000;
const BODY_BYTES = 256;
const PATH = '/v1/stream/bench/append-';
const TYPE = 'application/octet-stream';
const WARM_UP_S = 1;
const SUSTAINED_FACTOR = 4; // long enough to have checkpoints in it

async function streamsMake(server) {
    const client = new Client(server);
    await client.each(STREAMS, (i) => client.must('PUT', PATH + i, { type: TYPE }));
    client.close();
}

async function measure(server, load, seconds, over) {
    try {
        await wrk(server, server.url, { ...load, seconds: WARM_UP_S });
        return await wrk(server, server.url, { ...load, seconds });
    } finally {
        over.abort();
    }
}

// One turn of one server, with a new data directory; `prepare` is called with it first, and `beside`
// runs along with the load until its signal says that it is over.
export async function turn(servers, name, connections, seconds,
    { prepare = async () => {}, beside = async () => {} } = {}) {
    const server = await servers[name]();
    try {
        if (name !== 'nginx') {
            await streamsMake(server);
        }
        await prepare(server);
        const load = { connections, script: 'append.lua', args: [PATH, STREAMS, BODY_BYTES] };
        const over = new AbortController();
        const [result] = await Promise.all([measure(server, load, seconds, over),
            beside(server, over.signal)]);
        return result;
    } finally {
        await servers.finish(server);
    }
}

export function summarise(turns) {
    const of = (key) => median(turns.map((one) => one[key]));
    return {
        per_second: of('per_second'), p50_ms: of('p50_ms'), p99_ms: of('p99_ms'),
        mib_per_second: of('mib_per_second'), cpu_us: of('cpu_us'),
        failed: turns.reduce((sum, one) => sum + one.bad, 0),
        rounds: turns.map((one) => Math.round(one.per_second)),
    };
}

function goals(rows, connections) {
    const rate = (name) => rows.find((row) => row.server === name &&
        row.connections === connections)?.per_second;
    const list = [];
    for (const [peer, target] of [['node', 20], ['nginx', 0.5], ['rust', 1]]) {
        if (rate('arbe') && rate(peer)) {
            list.push({ what: `appends, ${connections} connections, arbe / ${peer}`,
                value: rate('arbe') / rate(peer), at_least: target });
        }
    }
    return list;
}

async function sustained({ servers, options, progress }) {
    const seconds = options.seconds * SUSTAINED_FACTOR;
    progress(`a: arbe alone for ${seconds} s`);
    const turns = [await turn(servers, 'arbe', 64, seconds)];
    return { server: `arbe, ${seconds} s`, connections: 64, ...summarise(turns) };
}

export async function appends(run) {
    const { servers, options, progress, available } = run;
    const names = available(['arbe', 'rust', 'node', 'nginx']);
    const rows = [];
    for (const connections of [64, 256]) {
        const turns = Object.fromEntries(names.map((name) => [name, []]));
        for (let round = 1; round <= options.rounds; round++) {
            for (const name of names) {
                progress(`a: ${connections} connections, round ${round}, ${name}`);
                turns[name].push(await turn(servers, name, connections, options.seconds));
            }
        }
        for (const name of names) {
            rows.push({ server: name, connections, ...summarise(turns[name]) });
        }
    }
    if (names.includes('arbe') && !options.quick) {
        rows.push(await sustained(run));
    }
    return {
        title: `durable appends: ${BODY_BYTES} B bodies, ${STREAMS} streams ` +
            '(nginx: return 204 to the same requests)',
        columns: [['server', 'server'], ['connections', 'conns'], ['per_second', 'appends/s', 0],
            ['p50_ms', 'p50 ms', 2], ['p99_ms', 'p99 ms', 2], ['cpu_us', 'cpu us/op', 1],
            ['failed', 'failed'], ['rounds', 'rounds']],
        rows,
        goals: [...goals(rows, 64), ...goals(rows, 256)],
    };
}
