// Section g: what subscriptions cost appends to streams that none of them matches, alone and while
// streams that they match come and go.
import { setTimeout as sleep } from 'node:timers/promises';
import { summarise, turn } from './appends.mjs';
import { Client } from './client.mjs';

const SUBSCRIPTIONS = 10000;
const CONNECTIONS = 64;
const PATTERNS = Math.floor(SUBSCRIPTIONS / 3);
const LANES = 8;
const CYCLE_MS = 40; // at most LANES * 1000 / CYCLE_MS streams a second come and go
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
    await client.must('PUT', '/v1/stream/bench/wake', { type: 'application/json' });
    await client.each(SUBSCRIPTIONS, (i) => client.must('PUT', `${BASE}bench-${i}`,
        { type: 'application/json', body: definition(i) }));
    client.close();
}

// Makes streams with a message and deletes them, each the match of one of the patterns. The pace is
// bounded, so that the load is held up by what the server does and not by this process.
async function churn(server, signal) {
    const client = new Client(server, LANES);
    const lane = async (k) => {
        for (let i = k; !signal.aborted; i += LANES) {
            const path = `/v1/stream/bench-${3 * (i % PATTERNS) + 1}/x`;
            await client.must('PUT', path, { type: 'application/json', body: '[1]' });
            await client.must('DELETE', path);
            await sleep(CYCLE_MS);
        }
    };
    try {
        await Promise.all(Array.from({ length: LANES }, (_, k) => lane(k)));
    } finally {
        client.close();
    }
}

export async function subscriptions({ servers, options, progress, available }) {
    const title = 'durable appends that no subscription matches, 64 connections ' +
        `(churn: up to ${LANES * 1000 / CYCLE_MS} other streams a second come and go)`;
    if (available(['arbe']).length === 0) {
        return { title, columns: [], rows: [], goals: [] };
    }
    const kinds = [
        ['none', {}],
        [`${SUBSCRIPTIONS}`, { prepare: subscribe }],
        ['none, churn', { beside: churn }],
        [`${SUBSCRIPTIONS}, churn`, { prepare: subscribe, beside: churn }],
    ];
    const turns = kinds.map(() => []);
    for (let round = 1; round <= options.rounds; round++) {
        for (const [k, [label, extra]] of kinds.entries()) {
            progress(`g: round ${round}, subscriptions: ${label}`);
            turns[k].push(await turn(servers, 'arbe', CONNECTIONS, options.seconds, extra));
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
