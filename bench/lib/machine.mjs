// What the machine is, and what a process on it uses.
import { execFileSync } from 'node:child_process';
import { closeSync, fdatasyncSync, openSync, readFileSync, readdirSync, rmSync, writeSync }
    from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const TICKS_A_SECOND = 100; // USER_HZ, the same on every Linux of amd64 and arm64

function output(command, args) {
    try {
        return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
            .trim();
    } catch (error) {
        // wrk -v answers with its usage and a failure.
        return String(error.stdout ?? '').trim();
    }
}

export function median(values) {
    const sorted = [...values].sort((x, y) => x - y);
    const middle = sorted.length >> 1;
    return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

// Median microseconds of a 4 KiB write with fdatasync: what one durable append alone costs here.
function syncCost(dir) {
    const file = path.join(dir, 'sync-probe');
    const fd = openSync(file, 'w');
    const block = Buffer.alloc(4096, 1);
    const times = [];
    for (let i = 0; i < 100; i++) {
        writeSync(fd, block, 0, block.length, 0);
        const start = process.hrtime.bigint();
        fdatasyncSync(fd);
        times.push(Number(process.hrtime.bigint() - start) / 1000);
        writeSync(fd, block, 0, block.length, i * 4096);
    }
    closeSync(fd);
    rmSync(file);
    return Math.round(median(times));
}

export function describe(workDir) {
    const [fs, disk] = output('df', ['--output=fstype,source', workDir]).split('\n').at(-1)
        .trim().split(/\s+/);
    const nginx = spawnVersion('nginx', ['-v']);
    return {
        date: new Date().toISOString(),
        cores: os.availableParallelism?.() ?? os.cpus().length,
        cpu: os.cpus()[0].model.trim(),
        memory_mib: Math.round(os.totalmem() / 1048576),
        kernel: `${os.type()} ${os.release()}`,
        fs,
        disk,
        fdatasync_p50_us: syncCost(workDir),
        load_before: os.loadavg().map((x) => Number(x.toFixed(2))),
        node: process.version,
        nginx: nginx.replace(/^.*nginx\//, ''),
        wrk: (output('wrk', ['-v']).match(/wrk (?:debian\/)?(\S+)/) ?? [, 'none'])[1],
    };
}

// nginx prints its version on standard error.
function spawnVersion(command, args) {
    try {
        return execFileSync('/bin/sh', ['-c', `${command} ${args.join(' ')} 2>&1`],
            { encoding: 'utf8' }).trim();
    } catch {
        return 'none';
    }
}

// The process and its direct children (nginx's workers).
function family(pid) {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    return [pid, ...(children ? children.split(' ').map(Number) : [])];
}

export function cpuSeconds(pid) {
    let ticks = 0;
    for (const one of family(pid)) {
        // The name in the second field may hold spaces; count from behind its bracket.
        const fields = readFileSync(`/proc/${one}/stat`, 'utf8').split(') ')[1].split(' ');
        ticks += Number(fields[11]) + Number(fields[12]);
    }
    return ticks / TICKS_A_SECOND;
}

// KiB: everything resident, and the part that is the process's own rather than mapped files.
export function memory(pid) {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const field = (name) => Number(status.match(new RegExp(`^${name}:\\s+(\\d+)`, 'm'))[1]);
    return { rss_kib: field('VmRSS'), anon_kib: field('RssAnon'), file_kib: field('RssFile') };
}

export function descriptors(pid) {
    return readdirSync(`/proc/${pid}/fd`).length;
}
