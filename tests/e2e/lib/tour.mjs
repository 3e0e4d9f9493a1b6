// Pages that are tests: their sh blocks run in order, and print what the text block after them shows. In an expected
// line … stands for anything; a line that is only … for any lines; $NAME for what stands there, kept for later.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { promisify } from 'node:util';

const WAIT_MS = 20_000;

// The blocks of one part of a page as a list of { command, expected }, expected being undefined where none is shown.
export function stepsOf(section) {
    const steps = [];
    for (const [, kind, body] of section.matchAll(/^```(\w+)\n([^]*?)^```$/gm)) {
        if (kind === 'sh') {
            steps.push({ command: body, expected: undefined });
        } else {
            assert.equal(kind, 'text', 'a block of the tour is sh or text');
            steps.at(-1).expected = body;
        }
    }
    return steps;
}

const literal = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

// `known` has the values of names that were met before.
export function patternOf(expected, known = {}) {
    const met = new Set();
    const part = (text) =>
        text
            .split(/(\$[A-Z_]+)/)
            .map((one, i) => {
                const name = one.slice(1);
                if (i % 2 === 0) {
                    return literal(one);
                }
                if (Object.hasOwn(known, name)) {
                    return literal(known[name]);
                }
                const again = met.has(name);
                met.add(name);
                return again ? `\\k<${name}>` : `(?<${name}>[^"]+)`;
            })
            .join('');
    const lines = expected
        .trimEnd()
        .split('\n')
        .map((line) => {
            if (line === '…') {
                return '(?:[^]*\\n)?';
            }
            return `${line.split('…').map(part).join('[^\\n]*')}(?:\\n|$)`;
        });
    return new RegExp(`^${lines.join('')}`);
}

// Runs a step to its end; gives the values of names that it met.
export async function runStep({ command, expected }, { known = {}, cwd } = {}) {
    const { stdout } = await promisify(execFile)('sh', ['-ec', command], {
        timeout: WAIT_MS,
        cwd,
        env: { ...process.env, ...known },
    });
    if (expected === undefined) {
        return {};
    }
    const pattern = patternOf(expected, known);
    assert.match(stdout, pattern, command);
    return { ...pattern.exec(stdout).groups };
}

// Starts commands whose last one follows a stream. `begun` resolves when that one has been reached and, for SSE, has
// been answered; `caught` when it has printed what is expected. sh -x tells on stderr which command is reached.
export function follow({ command, expected }, { known = {}, cwd } = {}) {
    const child = spawn('sh', ['-xc', command], {
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: true,
        cwd,
        env: { ...process.env, ...known },
    });
    const pattern = patternOf(expected, known);
    let printed = '';
    let complaint = '';
    let begin;
    const begun = new Promise((done) => {
        begin = done;
    });
    child.stderr.on('data', (chunk) => {
        complaint += chunk;
        if (complaint.includes('live=long-poll')) {
            begin();
        }
    });
    const caught = new Promise((done, fail) => {
        const timer = setTimeout(
            () =>
                fail(
                    new Error(
                        `after ${WAIT_MS} ms still not as expected:\n${command}\nexpected:\n${expected}\n` +
                            `printed:\n${printed}${complaint}`,
                    ),
                ),
            WAIT_MS,
        );
        child.stdout.on('data', (chunk) => {
            printed += chunk;
            begin();
            if (pattern.test(printed)) {
                clearTimeout(timer);
                done();
            }
        });
    });
    caught.catch(() => {});
    return { child, begun, caught };
}

export function endGroup(child) {
    try {
        process.kill(-child.pid, 'SIGKILL');
    } catch {
        // It has ended by itself.
    }
}
