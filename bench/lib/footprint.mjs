// Sections e and f: what idle streams and open connections cost.
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from './client.mjs';
import { descriptors, memory } from './machine.mjs';

const STREAMS = 20000;
const BODY = 'b'.repeat(100);
const PATH = '/v1/stream/bench/idle-';
const TYPE = 'text/plain';
const SETTLE_MS = 40000; // a default checkpoint interval, and some
const SETTLE_QUICK_MS = 3000;
const SAMPLES = 100;
const RETRY_MS = 1;
const CONNECTIONS = 500;

function look(server, state) {
    return { state, ...memory(server.pid), fds: descriptors(server.pid) };
}

async function streamsMake(server) {
    const client = new Client(server);
    await client.each(STREAMS, async (i) => {
        await client.must('PUT', PATH + i, { type: TYPE });
        await client.must('POST', PATH + i, { type: TYPE, body: BODY });
    });
    client.close();
    await sleep(500); // the server sees its connections end
}

// Milliseconds from the start of the process to its first good answer, over a given directory.
async function restart(servers, dir) {
    const start = performance.now();
    const server = await servers.arbe({ dir, stepMs: RETRY_MS });
    const client = new Client(server, 1);
    for (;;) {
        const answer = await client.send('HEAD', PATH + (STREAMS - 1)).catch(() => null);
        if (answer?.status === 200) {
            break;
        }
        if (performance.now() - start > 60000) {
            throw new Error(`no good answer after a restart, last ${answer?.status}`);
        }
        await sleep(RETRY_MS);
    }
    const elapsed = performance.now() - start;
    await samplesCheck(client);
    client.close();
    return { server, elapsed };
}

// A start is worth nothing if what was acknowledged is not there.
async function samplesCheck(client) {
    for (let i = 0; i < SAMPLES; i++) {
        const path = PATH + Math.floor((i * STREAMS) / SAMPLES);
        const { body } = await client.must('GET', `${path}?offset=-1`);
        if (body.toString() !== BODY) {
            throw new Error(`${path} holds ${body.length} bytes after kill -9, not 100`);
        }
    }
}

export async function footprint({ servers, options, progress, available }) {
    if (available(['arbe']).length === 0) {
        return { title: 'idle streams', columns: [], rows: [], goals: [] };
    }
    const settle = options.quick ? SETTLE_QUICK_MS : SETTLE_MS;
    let server = await servers.arbe();
    const { dir } = server;
    const rows = [];
    try {
        rows.push(look(server, 'started, empty'));
        progress(`e: making ${STREAMS} streams`);
        await streamsMake(server);
        rows.push(look(server, 'all just written'));
        await server.kill();
        progress('e: restart from the log');
        const first = await restart(servers, dir);
        server = first.server;
        rows.push({ ...look(server, 'restarted from the log'), start_ms: first.elapsed });
        progress(`e: idle for ${settle / 1000} s`);
        await sleep(settle);
        rows.push(look(server, `idle for ${settle / 1000} s`));
        await server.kill();
        const second = await restart(servers, dir);
        server = second.server;
        rows.push({ ...look(server, 'restarted once idle'), start_ms: second.elapsed });
    } finally {
        await servers.finish(server);
    }
    return { title: `${STREAMS} idle streams of one 100 B append`, rows, goals: goals(rows),
        columns: [['state', 'state'], ['rss_kib', 'RSS KiB', 0], ['anon_kib', 'anon KiB', 0],
            ['file_kib', 'mapped KiB', 0], ['fds', 'fds'], ['start_ms', 'start ms', 0]] };
}

function goals(rows) {
    const [empty, written, log, idle, again] = rows;
    return [
        { what: 'idle streams, RSS once idle, MB', value: idle.rss_kib / 1000, under: 30 },
        { what: 'idle streams, RSS just written, MB', value: written.rss_kib / 1000 },
        { what: 'descriptors for each stream (the packs are a few)', value: (idle.fds - empty.fds) / STREAMS, under: 0.001 },
        { what: 'start after kill -9, all in the log, ms', value: log.start_ms, under: 1000 },
        { what: 'start after kill -9, once idle, ms', value: again.start_ms, under: 1000 },
    ];
}

// A connection that has had one answer and stays.
function connectionOpen(port) {
    return new Promise((resolve, reject) => {
        const socket = net.connect(port, '127.0.0.1', () => {
            socket.write('HEAD /v1/stream/bench/none HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
        });
        socket.once('error', reject);
        socket.once('data', () => resolve(socket));
    });
}

export async function connections({ servers, progress, available }) {
    const title = `descriptors with ${CONNECTIONS} connections`;
    if (available(['arbe']).length === 0) {
        return { title, columns: [], rows: [], goals: [] };
    }
    progress('f: connections');
    const server = await servers.arbe();
    try {
        const before = descriptors(server.pid);
        const sockets = await Promise.all(
            Array.from({ length: CONNECTIONS }, () => connectionOpen(server.port)));
        const open = descriptors(server.pid);
        sockets.forEach((socket) => socket.destroy());
        await sleep(500);
        const after = descriptors(server.pid);
        return {
            title,
            columns: [['before', 'before'], ['open', 'open'], ['after', 'after']],
            rows: [{ before, open, after }],
            goals: [{ what: 'descriptors for each connection',
                value: (open - before) / CONNECTIONS, exactly: 1 }],
        };
    } finally {
        await servers.finish(server);
    }
}
