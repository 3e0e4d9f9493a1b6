// The command line of bench/run.
import { parseArgs } from 'node:util';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const SECTIONS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k'];
export const BENCH_DIR = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
export const ROOT_DIR = path.dirname(BENCH_DIR);

const USAGE = `usage: bench/run [--quick] [--json] [--only a,c] [--seconds N] [--rounds N]
                 [--arbe FILE] [--rust FILE] [--node-modules DIR] [--work DIR] [--keep]

Runs arbe, the Node reference server, nginx and, where it is installed, the Rust server of the crate
durable-streams in turn on this machine and prints what each did and how they compare. Sections:
  a  durable appends           256 B bodies, 1,000 streams, 64 and 256 connections
  b  catch-up reads            1 KiB and 1 MiB, 64 connections
  c  SSE fan-out               1,000 subscribers of one stream, 50 appends a second
  d  memory of idle SSE        2,000 and 10,000 subscribers
  e  idle streams              20,000 streams: memory, descriptors, restart after kill -9
  f  descriptors               500 connections
  g  subscriptions             appends that none of 10,000 matches, alone and beside churn
  h  backup                    while 5,000 appends a second go on
  i  threads                   entries beside raw appends; pages of a house with 10,000 threads
  j  board                     shell snapshots and events of T3 Code, folded
  k  board, live               1,000 readers of the server's board beside as many of a raw stream

  --quick             2 seconds a measurement and one round: a look, not a result
  --seconds N         length of one measurement (10)
  --rounds N          how often the servers take turns; medians are shown (3)
  --only LIST         sections, by letter
  --json              the result as JSON on standard output, progress on standard error
  --arbe FILE         the program to measure ($ARBE_BIN, or build/arbe)
  --rust FILE         the Rust server, of cargo install durable-streams (durable-streams-server in $PATH)
  --node-modules DIR  where @durable-streams/server is (tests/conformance/node_modules)
  --work DIR          data directories go below it (build/bench); it must be on a real disk
  --keep              do not remove the data directories

exit: 0 measured (whether or not a target was met), 1 something could not be measured,
      2 wrong usage
`;

export class UsageError extends Error {}

function positive(name, text) {
    if (!/^[1-9][0-9]{0,5}$/.test(text)) {
        throw new UsageError(`--${name} takes a whole number above 0, not "${text}"`);
    }
    return Number(text);
}

function sections(text) {
    const list = text.split(',').map((s) => s.trim());
    const unknown = list.find((s) => !SECTIONS.includes(s));
    if (unknown !== undefined) {
        throw new UsageError(`--only knows ${SECTIONS.join(',')}, not "${unknown}"`);
    }
    return list;
}

function parse(argv) {
    const flag = { type: 'boolean', default: false };
    const text = { type: 'string' };
    try {
        return parseArgs({
            args: argv,
            options: {
                quick: flag, json: flag, keep: flag, help: { ...flag, short: 'h' },
                only: text, seconds: text, rounds: text, arbe: text, rust: text, work: text,
                'node-modules': text,
            },
        }).values;
    } catch (error) {
        throw new UsageError(error.message);
    }
}

function inPath(name) {
    return (process.env.PATH ?? '').split(':').map((dir) => path.join(dir, name)).find(existsSync);
}

// Returns the settings of a run, or null after --help has been answered.
export function readOptions(argv) {
    const given = parse(argv);
    if (given.help) {
        process.stdout.write(USAGE);
        return null;
    }
    const options = {
        quick: given.quick,
        json: given.json,
        keep: given.keep,
        only: given.only === undefined ? SECTIONS : sections(given.only),
        seconds: given.seconds ? positive('seconds', given.seconds) : given.quick ? 2 : 10,
        rounds: given.rounds ? positive('rounds', given.rounds) : given.quick ? 1 : 3,
        arbe: path.resolve(given.arbe ?? process.env.ARBE_BIN ?? path.join(ROOT_DIR, 'build/arbe')),
        rust: given.rust ? path.resolve(given.rust) : inPath('durable-streams-server'),
        nodeModules: path.resolve(
            given['node-modules'] ?? path.join(ROOT_DIR, 'tests/conformance/node_modules')),
        work: path.resolve(given.work ?? path.join(ROOT_DIR, 'build/bench')),
    };
    for (const name of ['arbe', 'rust']) {
        if (given[name] && !existsSync(options[name])) {
            throw new UsageError(`--${name} ${given[name]}: no such file`);
        }
    }
    return options;
}

export function usage() {
    return USAGE;
}
