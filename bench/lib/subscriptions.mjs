// Section g: what subscriptions cost appends to streams that none of them matches.
import { summarise, turn } from './appends.mjs';
import { Client } from './client.mjs';

const SUBSCRIPTIONS = 10000;
const CONNECTIONS = 64;
const BASE = '/v1/stream/__ds/subscriptions/';

// A third names streams, a third has a pattern of its own, a third one that begins with "**", which
// has to be followed through every name. The streams of the load are bench/append-0 and so on.
function definition(i) {
    const member = [
        { streams: [`bench/named-${i}`] },
        { pattern: `bench-${i}/*` },
        { pattern: `**/append-${i}/**/end` },
    ][i % 3];
    return JSON.stringify({ type: 'pull-wake', wake_stream: 'bench/wake', ...member });
}

async function subscribe(server) {
    const client = new Client(server);
    await client.each(SUBSCRIPTIONS, (i) => client.must('PUT', `${BASE}bench-${i}`,
        { type: 'application/json', body: definition(i) }));
    client.close();
}

export async function subscriptions({ servers, options, progress, available }) {
    const title = 'durable appends that no subscription matches, 64 connections';
    if (available(['arbe']).length === 0) {
        return { title, columns: [], rows: [], goals: [] };
    }
    const kinds = [['none', undefined], [`${SUBSCRIPTIONS}`, subscribe]];
    const turns = kinds.map(() => []);
    for (let round = 1; round <= options.rounds; round++) {
        for (const [k, [label, prepare]] of kinds.entries()) {
            progress(`g: round ${round}, subscriptions: ${label}`);
            turns[k].push(await turn(servers, 'arbe', CONNECTIONS, options.seconds, prepare));
        }
    }
    const rows = kinds.map(([label], k) => ({ subscriptions: label, ...summarise(turns[k]) }));
    return {
        title,
        columns: [['subscriptions', 'subscriptions'], ['per_second', 'appends/s', 0],
            ['p50_ms', 'p50 ms', 2], ['p99_ms', 'p99 ms', 2], ['cpu_us', 'cpu us/op', 1],
            ['failed', 'failed'], ['rounds', 'rounds']],
        rows,
        goals: [{ what: `appends, ${SUBSCRIPTIONS} subscriptions / none`,
            value: rows[1].per_second / rows[0].per_second, at_least: 0.95 }],
    };
}
