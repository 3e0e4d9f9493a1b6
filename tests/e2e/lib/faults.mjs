// Builds and drives lib/faultfs.c and lib/faultmem.c, and mounts tiny file systems; says what a
// machine cannot do.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SANITIZER, eventually } from './wait.mjs';

// Gives { library, impossible }: the path, and why there is none, or an empty text.
export function buildFaultLibrary(name = 'faultfs') {
    if (SANITIZER) {
        return { library: null, impossible: `faults cannot be injected below -fsanitize=${SANITIZER}` };
    }
    const dir = mkdtempSync(join(tmpdir(), `arbe-${name}-`));
    process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
    const library = join(dir, `${name}.so`);
    const source = new URL(`${name}.c`, import.meta.url).pathname;
    const built = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl', '-lpthread'],
                            { encoding: 'utf8' });
    if (built.status !== 0) {
        return { library: null, impossible: `faults cannot be injected, cc says: ${built.stderr ?? built.error}` };
    }
    return { library, impossible: '' };
}

// Runs `command`, which takes an environment, again and again. Each time another allocation of the program's own fails:
// that one alone, or `ever` those behind it, too. `check` is given what each run gave, but for the last, which had enough.
export async function eachAllocation(library, command, check, { ever = false } = {}) {
    const dir = mkdtempSync(join(tmpdir(), 'arbe-faultmem-'));
    const hit = join(dir, 'hit');
    try {
        for (let count = 0; count < 1000; count++) {
            rmSync(hit, { force: true });
            const env = { LD_PRELOAD: library, FAULTMEM: `${ever ? 'ever' : 'once'} ${count}`, FAULTMEM_HIT: hit };
            const result = await command(env);
            if (!existsSync(hit)) {
                assert.notEqual(count, 0, 'none fails');
                return;
            }
            await check(result, env.FAULTMEM);
        }
    } finally {
        rmSync(dir, { recursive: true, force: true });
    }
    throw new Error('there is no end of allocations');
}

let tag = 0;

// The control file of one server.
export class Faults {
    constructor(library) {
        this.dir = mkdtempSync(join(tmpdir(), 'arbe-faults-'));
        this.control = join(this.dir, 'control');
        this.hits = `${this.control}.hits`;
        this.env = { LD_PRELOAD: library, FAULTFS_CTL: this.control };
    }

    // lines: "CALL PATH-PART ACTION [COUNT]"
    set(...lines) {
        const text = lines.map((line) => {
            const [call, part, action, count = '0'] = line.split(' ');
            return `${call} ${part} ${action} ${count} ${++tag}\n`;
        });
        writeFileSync(`${this.control}.new`, text.join(''));
        rmSync(this.hits, { force: true });
        renameSync(`${this.control}.new`, this.control);
    }

    clear() {
        this.set();
    }

    hitCount() {
        return existsSync(this.hits) ? readFileSync(this.hits, 'utf8').trimEnd().split('\n').length : 0;
    }

    async hit(count = 1) {
        await eventually(`${count} faults were hit`, () => this.hitCount() >= count, { every: 2 });
    }

    dispose() {
        rmSync(this.dir, { recursive: true, force: true });
    }
}

// A file system of `size` in memory, or null where mounting is not allowed.
export function mountTiny(size) {
    const dir = mkdtempSync(join(tmpdir(), 'arbe-tiny-'));
    const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=0700`, 'arbe-test', dir], { encoding: 'utf8' });
    if (mounted.status !== 0) {
        rmSync(dir, { recursive: true, force: true });
        return null;
    }
    const tiny = {
        dir,
        unmount() {
            spawnSync('umount', ['-l', dir]);
            rmSync(dir, { recursive: true, force: true });
            process.off('exit', tiny.unmount);
        },
    };
    process.on('exit', tiny.unmount);
    return tiny;
}

// Why there are no tiny file systems here; empty where there are.
export function mountImpossible() {
    const tiny = mountTiny('1m');
    tiny?.unmount();
    return tiny === null ? 'a tmpfs cannot be mounted' : '';
}

// Fills a file system to the last byte; the file's removal frees it.
export function fillDisk(path) {
    writeFileSync(path, '');
    for (const size of [1 << 20, 1 << 16, 4096, 512, 1]) {
        const block = Buffer.alloc(size, 'f');
        for (;;) {
            try {
                appendFileSync(path, block);
            } catch (error) {
                if (error.code !== 'ENOSPC') {
                    throw error;
                }
                break;
            }
        }
    }
}
