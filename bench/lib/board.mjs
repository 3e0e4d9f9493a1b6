// Section j: the board of T3 threads, in this process's library: what a shell snapshot and what one event takes to fold.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { boardFold } from './programs.mjs';

// The goals are those of the first. An event must not cost more where there are more rows.
const SIZES = [[5_000, 60], [50_000, 6]];

export async function board({ options, progress }) {
    const columns = [['threads', 'threads', 0], ['snapshot_mib', 'MiB', 1], ['snapshot_ms', 'snapshot ms', 1],
        ['snapshot_p99_ms', 'p99 ms', 1], ['event_us', 'event us', 2], ['event_p99_us', 'p99 us', 2], ['row_bytes', 'bytes a row', 0]];
    const title = 'board: processor time to fold a shell snapshot and an event';
    if (!existsSync(path.join(path.dirname(options.arbe), 'libarbe.a'))) {
        return { title, columns, rows: [], goals: [] };
    }
    const rows = [];
    for (const [threads, snapshots] of SIZES) {
        progress(`j: ${threads} threads`);
        const one = await boardFold(options, threads, options.quick ? Math.ceil(snapshots / 6) : snapshots);
        rows.push({ ...one, snapshot_mib: one.bytes / 1048576, snapshot_ms: one.snapshot_us / 1000, snapshot_p99_ms: one.snapshot_p99_us / 1000 });
    }
    return { title, columns, rows, goals: [
        { what: `ms to fold a shell snapshot of ${rows[0].threads} threads`, value: rows[0].snapshot_ms, under: 50 },
        { what: 'us to fold one event', value: rows[0].event_us, under: 20 },
        { what: `event with ${rows[1].threads} rows / with ${rows[0].threads}`, value: rows[1].event_us / rows[0].event_us },
    ] };
}
