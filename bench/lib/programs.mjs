// Runs the load programs: wrk with our scripts, and our own fanout.
import { execFileSync, spawn } from 'node:child_process';
import path from 'node:path';
import { BENCH_DIR, ROOT_DIR } from './options.mjs';
import { cpuSeconds } from './machine.mjs';

const CFLAGS = ['-std=gnu11', '-O2', '-g', '-Wall', '-Wextra', '-Wshadow', '-Wconversion',
    '-Wstrict-prototypes', '-Wmissing-prototypes', '-Wformat=2', '-Wcast-align',
    '-Wimplicit-fallthrough', '-Wundef', '-Werror', '-pthread'];

// Runs a program to its end; resolves with { code, out, err }.
function run(command, args, env = {}) {
    return new Promise((resolve, reject) => {
        const child = spawn(command, args, {
            stdio: ['ignore', 'pipe', 'pipe'],
            env: { ...process.env, ...env },
        });
        let out = '';
        let err = '';
        child.stdout.setEncoding('utf8').on('data', (text) => { out += text; });
        child.stderr.setEncoding('utf8').on('data', (text) => { err += text; });
        child.once('error', reject);
        child.once('close', (code) => resolve({ code, out, err }));
    });
}

// One run of wrk against a server; the server's processor time is taken over the same span.
export async function wrk(server, url, { connections, seconds, script, args = [] }) {
    const before = cpuSeconds(server.pid);
    const { code, out, err } = await run('wrk', [`-t${Math.min(2, connections)}`, `-c${connections}`, `-d${seconds}s`,
        '--latency', '--timeout', '20s', '-s', path.join(BENCH_DIR, script), url, '--', ...args],
    { BENCH_REPORT_LUA: path.join(BENCH_DIR, 'report.lua') });
    const line = out.match(/^WRK (\{.*\})$/m);
    if (code !== 0 || !line) {
        throw new Error(`wrk on ${server.name} failed: ${err || out}`);
    }
    const result = JSON.parse(line[1]);
    const cpu = cpuSeconds(server.pid) - before;
    return {
        // An answer that refuses is no work done.
        per_second: (result.requests - result.bad_status) / (result.duration_us / 1e6),
        mib_per_second: result.bytes / 1048576 / (result.duration_us / 1e6),
        p50_ms: result.p50_us / 1000,
        p99_ms: result.p99_us / 1000,
        cpu_us: result.requests ? (cpu * 1e6) / result.requests : 0,
        bad: result.bad_status + result.broken,
    };
}

// What libarbe.a wants of others: LIBLIBS of the Makefile.
const LIBRARY_LIBS = ['-lcurl', '-lutf8proc', '-lwebsockets', '-lssl', '-lcrypto'];

// Folds shell snapshots and events with the library beside the program; returns what board.c printed.
export async function boardFold(options, threads, snapshots) {
    const program = path.join(options.work, 'board');
    const library = path.join(path.dirname(options.arbe), 'libarbe.a');
    execFileSync(process.env.CC ?? 'cc', [...CFLAGS, `-I${path.join(ROOT_DIR, 'include')}`, '-o', program,
        path.join(BENCH_DIR, 'board.c'), path.join(BENCH_DIR, 'hist.c'), library, ...LIBRARY_LIBS],
    { stdio: ['ignore', 'inherit', 'inherit'] });
    const { code, out, err } = await run(program, [threads, snapshots]);
    if (code !== 0) {
        throw new Error(`board failed: ${err}`);
    }
    return JSON.parse(out);
}

export function fanoutBuild(options) {
    const program = path.join(options.work, 'fanout');
    const sources = ['fanout.c', 'reply.c', 'hist.c'].map((name) => path.join(BENCH_DIR, name));
    execFileSync(process.env.CC ?? 'cc', [...CFLAGS, '-o', program, ...sources],
        { stdio: ['ignore', 'inherit', 'inherit'] });
    return program;
}

// Messages from one writer to many subscribers; resolves with what fanout printed.
export async function fanout(program, server, path, { subscribers, rate, seconds }) {
    const before = cpuSeconds(server.pid);
    const { out, err } = await run(program, ['--port', server.port, '--path', path,
        '--subscribers', subscribers, '--rate', rate, '--seconds', seconds]);
    if (!out.startsWith('{')) {
        throw new Error(`fanout on ${server.name} failed: ${err}`);
    }
    return { ...JSON.parse(out), cpu_s: cpuSeconds(server.pid) - before, note: err.trim() };
}

// Subscribers of any answer of events, in which `feed(ready)` has the server tell rate x seconds messages in events called
// `event`; resolves as fanout does.
export function fanoutFed(program, server, path, { subscribers, rate, seconds, event, key }, feed) {
    return new Promise((resolve, reject) => {
        const child = spawn(program, ['--port', server.port, '--path', path, '--subscribers', subscribers,
            '--rate', rate, '--seconds', seconds, '--fed', event],
        { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, FANOUT_KEY: key } });
        let before;
        let out = '';
        let err = '';
        child.stderr.setEncoding('utf8').on('data', (text) => { err += text; });
        child.stdout.setEncoding('utf8').on('data', (text) => {
            out += text;
            if (before === undefined && /^ready \d+\n/.test(out)) {
                before = cpuSeconds(server.pid);
                feed().then(() => child.stdin.end(), reject);
            }
        });
        child.stdin.on('error', () => {}); // it has everything already
        child.once('error', reject);
        child.once('close', () => {
            const line = out.match(/^\{.*$/m);
            if (line) {
                resolve({ ...JSON.parse(line[0]), cpu_s: cpuSeconds(server.pid) - before, note: err.trim() });
            } else {
                reject(new Error(`fanout on ${server.name} failed: ${err}`));
            }
        });
    });
}

// Opens idle subscribers, calls `look()` while they are open, and lets them go.
export function fanoutIdle(program, server, path, subscribers, look) {
    return new Promise((resolve, reject) => {
        const child = spawn(program, ['--idle', '--port', server.port, '--path', path,
            '--subscribers', subscribers], { stdio: ['pipe', 'pipe', 'pipe'] });
        let err = '';
        let seen;
        child.stderr.setEncoding('utf8').on('data', (text) => { err += text; });
        child.stdout.setEncoding('utf8').once('data', async (text) => {
            seen = { ...(await look()), ready: Number(text.replace(/\D/g, '')) };
            child.stdin.end();
        });
        child.once('error', reject);
        child.once('close', () => (seen ? resolve(seen)
            : reject(new Error(`fanout on ${server.name} failed: ${err}`))));
    });
}
