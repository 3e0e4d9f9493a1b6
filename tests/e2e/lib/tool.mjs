// Tools of `arbe streams`, and directories for them that go with the test.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { after } from 'node:test';
import { BIN, run, tempDir } from './server.mjs';
import { withDeadline } from './wait.mjs';

const top = tempDir();
after(() => rmSync(top, { recursive: true, force: true }));
let count = 0;

// A path where nothing is yet.
export const freshPath = (name) => join(top, `${name}${count++}`);

// Runs a tool, which must go well; gives what it printed.
export async function good(args) {
    const { code, stdout, stderr } = await run(['streams', ...args]);
    assert.equal(code, 0, `arbe streams ${args.join(' ')}: exit ${code}\n${stdout}${stderr}`);
    assert.equal(stderr, '', 'nothing on stderr where it is no terminal');
    return stdout;
}

// Runs one that must say why it does not do it.
export async function refused(args, pattern, options) {
    const { code, stdout, stderr } = await run(['streams', ...args], options);
    assert.equal(code, 1, `exit ${code}\n${stdout}${stderr}`);
    assert.match(stderr, pattern);
    assert.equal(stdout, '');
}

// Starts one without waiting for its end.
export function begin(args, env = {}) {
    const child = spawn(BIN, ['streams', ...args], { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
    let text = '';
    child.stdout.on('data', (chunk) => { text += chunk; });
    child.stderr.on('data', (chunk) => { text += chunk; });
    const end = new Promise((done) => child.on('close', (code, signal) => done({ code, signal, text })));
    return { child, end: () => withDeadline(end, `exit of ${args.join(' ')}`) };
}
