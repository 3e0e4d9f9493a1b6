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
async function restart(servers, name, dir) {
    const start = performance.now();
    const server = await servers[name]({ dir, stepMs: RETRY_MS });
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

// What one server says at each step, by name of the step.
async function life(servers, name, settle, progress) {
    let server = await servers[name]();
    const { dir } = server;
    const steps = {};
    const note = (step, more) => { steps[step] = { ...memory(server.pid), fds: descriptors(server.pid), ...more }; };
    const again = async (step) => {
        await server.kill();
        const { server: next, elapsed } = await restart(servers, name, dir);
        server = next;
        note(step, { start_ms: elapsed });
    };
    try {
        note('started, empty');
        progress(`e: making ${STREAMS} streams, ${name}`);
        await streamsMake(server);
        note('all just written');
        await again('restarted after kill -9');
        progress(`e: idle for ${settle / 1000} s`);
        await sleep(settle);
        note('idle');
        await again('restarted once idle');
    } finally {
        await servers.finish(server);
    }
    return steps;
}

export async function footprint({ servers, options, progress, available }) {
    const settle = options.quick ? SETTLE_QUICK_MS : SETTLE_MS;
    const lives = {};
    const notes = [];
    for (const name of available(['arbe', 'rust'])) {
        try {
            lives[name] = await life(servers, name, settle, progress);
        } catch (error) {
            if (name === 'arbe') {
                throw error;
            }
            notes.push(`${name} did not get through: ${error.message}`); // it holds a descriptor for each stream
        }
    }
    const rows = Object.entries(lives).flatMap(([server, steps]) =>
        Object.entries(steps).map(([state, look]) => ({ server, state, ...look })));
    return { title: `${STREAMS} idle streams of one 100 B append`, rows, notes,
        goals: lives.arbe ? goals(lives.arbe) : [],
        columns: [['server', 'server'], ['state', 'state'], ['rss_kib', 'RSS KiB', 0],
            ['anon_kib', 'anon KiB', 0], ['file_kib', 'mapped KiB', 0], ['fds', 'fds'],
            ['start_ms', 'start ms', 0]] };
}

function goals(steps) {
    const idle = steps.idle;
    return [
        { what: 'idle streams, RSS once idle, MB', value: idle.rss_kib / 1000, under: 30 },
        { what: 'idle streams, RSS just written, MB', value: steps['all just written'].rss_kib / 1000 },
        { what: 'descriptors for each stream (the packs are a few)',
            value: (idle.fds - steps['started, empty'].fds) / STREAMS, under: 0.001 },
        { what: 'start after kill -9, all in the log, ms',
            value: steps['restarted after kill -9'].start_ms, under: 1000 },
        { what: 'start after kill -9, once idle, ms',
            value: steps['restarted once idle'].start_ms, under: 1000 },
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
