// Tier B6: what T3 servers send, under valgrind. The sanitizers see only what is built with them: not libwebsockets, which can
// write behind its own buffers when it is told the wrong thing in the middle of a frame.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { BIN } from './lib/server.mjs';
import { SANITIZER } from './lib/wait.mjs';

// Valgrind and a sanitizer do not go together; there the sanitizer looks at our part.
const VALGRIND = ['valgrind', '--quiet', '--error-exitcode=99', '--leak-check=full', '--fair-sched=try'];
const PROGRAM = join(dirname(BIN), 'tests/unit/t3/rpc_socket_test');

async function run([program, ...args]) {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding('utf8').on('data', (text) => { output += text; });
    }
    const [code, signal] = await once(child, 'close');
    return { code, signal, output };
}

describe('connections to hostile servers', { timeout: 300_000 }, () => {
    test('nobody writes where nothing is, libwebsockets included', async () => {
        const { code, signal, output } = await run([...(SANITIZER === '' ? VALGRIND : []), PROGRAM]);
        assert.deepEqual({ code, signal }, { code: 0, signal: null }, output);
        assert.match(output, /test_hostile_frames[^]*test_rejected_in_the_middle/);
        assert.doesNotMatch(output, /^==\d+==/m);
    });
});
