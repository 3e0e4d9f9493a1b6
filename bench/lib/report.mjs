// Turns what was measured into text, or JSON.

function cell(value, digits) {
    if (value === undefined || value === null) {
        return '-';
    }
    if (Array.isArray(value)) {
        return value.join(' ');
    }
    return typeof value === 'number' && digits !== undefined
        ? value.toLocaleString('en-US', { minimumFractionDigits: digits,
            maximumFractionDigits: digits })
        : String(value);
}

function table(columns, rows) {
    const lines = [columns.map(([, label]) => label),
        ...rows.map((row) => columns.map(([key, , digits]) => cell(row[key], digits)))];
    const widths = columns.map((_, i) => Math.max(...lines.map((line) => line[i].length)));
    const left = columns.map(([key]) => typeof rows[0]?.[key] !== 'number');
    return lines.map((line) => '  ' + line.map((text, i) =>
        (left[i] ? text.padEnd(widths[i]) : text.padStart(widths[i]))).join('  ').trimEnd());
}

// A goal has at_least, under or exactly; without any it is only told.
export function met({ value, at_least, under, exactly }) {
    if (at_least !== undefined) {
        return value >= at_least;
    }
    if (under !== undefined) {
        return value < under;
    }
    return exactly !== undefined ? value === exactly : undefined;
}

function goalLine(goal) {
    const { what, value, at_least, under, exactly } = goal;
    const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
    const target = at_least !== undefined ? `target >= ${at_least}`
        : under !== undefined ? `target < ${under}`
            : exactly !== undefined ? `target = ${exactly}` : '';
    const verdict = met(goal);
    const shown = value.toFixed(Number.isInteger(value) ? 0 : digits);
    return `  = ${shown.padStart(8)}  ${what}` + (target ? `  (${target}: ` +
        `${verdict ? 'met' : 'MISSED'})` : '');
}

function machineLines(machine) {
    const m = machine;
    return [
        `arbe bench, ${m.date}`,
        `  ${m.cores} cores, ${m.cpu}, ${m.memory_mib} MiB, ${m.kernel}, load ` +
            m.load_before.join(' '),
        `  disk ${m.fs} on ${m.disk}, fdatasync of 4 KiB: p50 ${m.fdatasync_p50_us} us`,
        `  arbe ${m.arbe}; @durable-streams/server ${m.reference} on node ${m.node}; ` +
            `nginx ${m.nginx}; wrk ${m.wrk}`,
        `  durable-streams in Rust: ${m.rust}`,
        `  ${m.seconds} s a measurement, medians of ${m.rounds} round(s)`,
    ];
}

export function text({ machine, sections, missing, errors }) {
    const lines = machineLines(machine);
    missing.forEach((why) => lines.push(`  not measured: ${why}`));
    for (const [id, section] of Object.entries(sections)) {
        lines.push('', `${id}. ${section.title}`);
        if (section.rows.length > 0) {
            lines.push(...table(section.columns, section.rows));
        }
        section.goals.forEach((goal) => lines.push(goalLine(goal)));
        (section.notes ?? []).forEach((note) => lines.push(`  note: ${note}`));
    }
    errors.forEach((error) => lines.push('', `FAILED ${error}`));
    return lines.join('\n') + '\n';
}

export function json({ machine, sections, missing, errors }) {
    const plain = Object.fromEntries(Object.entries(sections).map(([id, section]) => [id, {
        title: section.title, rows: section.rows, notes: section.notes ?? [],
        goals: section.goals.map((goal) => ({ ...goal, met: met(goal) ?? null })),
    }]));
    return JSON.stringify({ machine, missing, errors, sections: plain }, null, 2) + '\n';
}
