// Section b: catch-up reads, beside nginx serving the same bytes as a file.
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from './client.mjs';
import { summarise } from './appends.mjs';
import { wrk } from './programs.mjs';

const SIZES = [
    { name: '1KiB', bytes: 1024, at_least: 0.8 },
    { name: '1MiB', bytes: 1048576, at_least: 0.9 },
];
const CONNECTIONS = 64;
const TYPE = 'application/octet-stream';
const PACK_WAIT_MS = 3000;

// arbe twice: the bytes just written and still in memory, and the bytes in a pack alone, which
// takes a checkpoint and a restart.
const VARIANTS = [
    { label: 'arbe, fresh', server: 'arbe' },
    { label: 'arbe, packed', server: 'arbe', settings: { flags: ['--checkpoint-interval', '1s'] },
        restart_after_ms: PACK_WAIT_MS },
    { label: 'rust', server: 'rust' },
    { label: 'node', server: 'node' },
    { label: 'nginx', server: 'nginx', root: '/plain/' },
    { label: 'nginx, open files cached', server: 'nginx', root: '/cached/' },
];

function address(variant, size) {
    return variant.root ? variant.root + size.name : `/v1/stream/bench/${size.name}?offset=-1`;
}

async function streamsMake(server, bodies) {
    const client = new Client(server, 1);
    for (const size of SIZES) {
        const path = `/v1/stream/bench/${size.name}`;
        await client.must('PUT', path, { type: TYPE });
        await client.must('POST', path, { type: TYPE, body: bodies[size.name] });
    }
    client.close();
}

async function bodiesCheck(server, variant, bodies) {
    const client = new Client(server, 1);
    for (const size of SIZES) {
        const { body } = await client.must('GET', address(variant, size));
        if (!body.equals(bodies[size.name])) {
            throw new Error(`${variant.label} does not serve the ${size.name} it was given`);
        }
    }
    client.close();
}

async function restart(servers, server, variant) {
    await sleep(variant.restart_after_ms);
    await server.stop();
    return servers[variant.server]({ ...variant.settings, dir: server.dir });
}

async function turn(servers, variant, bodies, seconds) {
    const settings = variant.server === 'nginx' ? { files: bodies } : variant.settings;
    let server = await servers[variant.server](settings);
    try {
        if (variant.server !== 'nginx') {
            await streamsMake(server, bodies);
        }
        if (variant.restart_after_ms) {
            server = await restart(servers, server, variant);
        }
        await bodiesCheck(server, variant, bodies);
        const results = {};
        for (const size of SIZES) {
            const url = server.url + address(variant, size);
            results[size.name] = await wrk(server, url,
                { connections: CONNECTIONS, seconds, script: 'read.lua' });
        }
        return results;
    } finally {
        await servers.finish(server);
    }
}

function goals(rows) {
    const list = [];
    for (const size of SIZES) {
        const rate = (label) => rows.find((row) => row.server === label &&
            row.size === size.name)?.per_second;
        for (const label of ['arbe, fresh', 'arbe, packed']) {
            if (rate(label) && rate('nginx')) {
                const what = `catch-up ${size.name}, ${label} / nginx`;
                list.push({ what, value: rate(label) / rate('nginx'), at_least: size.at_least });
                list.push({ what: `${what}, open files cached`,
                    value: rate(label) / rate('nginx, open files cached') });
            }
            if (rate(label) && rate('rust')) {
                list.push({ what: `catch-up ${size.name}, ${label} / rust`,
                    value: rate(label) / rate('rust'), at_least: 1 });
            }
        }
    }
    return list;
}

export async function catchup({ servers, options, progress, available }) {
    const bodies = Object.fromEntries(SIZES.map((size) => [size.name, randomBytes(size.bytes)]));
    const names = available(['arbe', 'rust', 'node', 'nginx']);
    const variants = VARIANTS.filter((variant) => names.includes(variant.server));
    const turns = variants.map(() => []);
    for (let round = 1; round <= options.rounds; round++) {
        for (const [i, variant] of variants.entries()) {
            progress(`b: round ${round}, ${variant.label}`);
            turns[i].push(await turn(servers, variant, bodies, options.seconds));
        }
    }
    const rows = SIZES.flatMap((size) => variants.map((variant, i) => ({
        server: variant.label, size: size.name,
        ...summarise(turns[i].map((one) => one[size.name])),
    })));
    return {
        title: `catch-up reads of one stream or file, ${CONNECTIONS} connections`,
        columns: [['server', 'server'], ['size', 'size'], ['per_second', 'reads/s', 0],
            ['mib_per_second', 'MiB/s', 0], ['p50_ms', 'p50 ms', 2], ['p99_ms', 'p99 ms', 2],
            ['cpu_us', 'cpu us/op', 1], ['failed', 'failed'], ['rounds', 'rounds']],
        rows,
        goals: goals(rows),
    };
}
