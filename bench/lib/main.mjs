// Measures arbe beside its peers; bench/run starts this.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import path from 'node:path';
import { appends } from './appends.mjs';
import { backups } from './backups.mjs';
import { board, boardLive } from './board.mjs';
import { catchup } from './catchup.mjs';
import { connections, footprint } from './footprint.mjs';
import { idle, live } from './live.mjs';
import { describe } from './machine.mjs';
import { UsageError, readOptions, usage } from './options.mjs';
import { fanoutBuild } from './programs.mjs';
import { json, text } from './report.mjs';
import { Servers } from './servers.mjs';
import { subscriptions } from './subscriptions.mjs';
import { threads } from './threads.mjs';

const MEASURES = { a: appends, b: catchup, c: live, d: idle, e: footprint, f: connections,
    g: subscriptions, h: backups, i: threads, j: board, k: boardLive };

function arbeVersion(file) {
    return existsSync(file)
        ? execFileSync(file, ['--version'], { encoding: 'utf8' }).trim().replace(/^arbe /, '')
        : 'none';
}

async function measure(options) {
    const servers = new Servers(options);
    const missing = ['arbe', 'node'].map((name) => servers.missing(name)).filter(Boolean);
    const machine = { ...describe(options.work), arbe: arbeVersion(options.arbe),
        reference: servers.referenceVersion(), rust: servers.rustVersion(), seconds: options.seconds, rounds: options.rounds };
    if (machine.fs === 'tmpfs') {
        throw new UsageError(`--work is on tmpfs, where nothing is durable: ${options.work}`);
    }
    let built;
    const run = {
        servers,
        options,
        progress: (what) => process.stderr.write(`  ... ${what}\n`),
        available: (names) => names.filter((name) => !servers.missing(name)),
        program: () => (built ??= fanoutBuild(options)),
    };
    const sections = {};
    const errors = [];
    for (const id of options.only) {
        try {
            sections[id] = await MEASURES[id](run);
        } catch (error) {
            // One broken section does not take the others' figures with it.
            errors.push(`${id}: ${error.message}`);
            process.stderr.write(`  !!! ${id}: ${error.message}\n`);
        }
    }
    return { machine, sections, missing, errors };
}

async function main(argv) {
    const options = readOptions(argv);
    if (!options) {
        return 0;
    }
    mkdirSync(options.work, { recursive: true });
    options.work = mkdtempSync(path.join(options.work, 'run-'));
    // A signal has to remove what was started and made, as the end of a run does.
    for (const signal of ['SIGINT', 'SIGTERM']) {
        process.once(signal, () => process.exit(1));
    }
    process.on('exit', () => {
        if (!options.keep) {
            rmSync(options.work, { recursive: true, force: true });
        }
    });
    const result = await measure(options);
    process.stdout.write(options.json ? json(result) : text(result));
    return result.errors.length + result.missing.length > 0 ? 1 : 0;
}

try {
    process.exitCode = await main(process.argv.slice(2));
} catch (error) {
    process.stderr.write(`bench/run: ${error.message}\n`);
    if (error instanceof UsageError) {
        process.stderr.write(`\n${usage()}`);
    }
    process.exitCode = error instanceof UsageError ? 2 : 1;
}
