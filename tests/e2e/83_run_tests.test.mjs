// Tier 80: tools/run-tests counts what passed, what failed, and what this machine cannot run, and mixes up none of them.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { tempDir } from './lib/server.mjs';

const TOOL = new URL('../../tools/run-tests', import.meta.url).pathname;
const NODE_TEST = "import { test } from 'node:test';\n";
const PASSES = `${NODE_TEST}test('a', () => {});\n`;
const CANNOT = `${NODE_TEST}test('a', { skip: 'there is no moon' }, () => { throw new Error(); });\n`;
const FAILS = `${NODE_TEST}test('a', () => { throw new Error('not today'); });\n`;

const ODD_TEST = `#include "unit/base/unit.h"
#include <pthread.h>
static void *fails(void *context)
{
    assert_int_equal(7, 8);
    return context;
}
static void test(void **state)
{
    pthread_t thread;
    (void)pthread_create(&thread, NULL, fails, state);
    (void)pthread_join(thread, NULL);
}
int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test)};
    return UNIT_RUN(tests);
}
`;

// Runs it over a tree with those e2e tests and unit tests, each of which is the TAP that it prints.
function runOver(t, e2e, units = {}) {
    const top = tempDir();
    t.after(() => rmSync(top, { recursive: true, force: true }));
    for (const dir of ['tools', 'tests/e2e', 'tests/unit', 'build/tests/unit']) {
        mkdirSync(join(top, dir), { recursive: true });
    }
    copyFileSync(TOOL, join(top, 'tools/run-tests'));
    for (const [name, text] of Object.entries(e2e)) {
        writeFileSync(join(top, `tests/e2e/${name}.test.mjs`), text);
    }
    for (const [name, tap] of Object.entries(units)) {
        writeFileSync(join(top, `tests/unit/${name}_test.c`), '');
        writeFileSync(join(top, `build/tests/unit/${name}_test`), `#!/bin/sh\ncat <<END\n${tap}END\n`, { mode: 0o755 });
    }
    const tally = join(top, 'tally');
    const ran = spawnSync(process.execPath, [join(top, 'tools/run-tests'), '--only', 'e2e,unit', '--tally', tally, '--label', 'it'],
                          { encoding: 'utf8' });
    return { code: ran.status, text: ran.stdout, lines: ran.stdout.trimEnd().split('\n'), tally: readFileSync(tally, 'utf8') };
}

describe('run-tests', { timeout: 120_000 }, () => {
    test('a test that is skipped has not passed, and says why', (t) => {
        const { code, text, lines, tally } = runOver(t, { good: PASSES, moon: PASSES + CANNOT.slice(NODE_TEST.length) },
                                                     { some: '1..3\nok 1 - a\nok 2 # SKIP b\nok 3 - c\n' });
        assert.deepEqual(lines.slice(-2), ['it: 2 cannot run here', 'it: 4 passed, 0 failed']);
        assert.match(text, /^e2e +moon +1 passed .* 1 cannot run here: there is no moon$/m);
        assert.match(text, /^unit +some +2 passed .* 1 cannot run here$/m);
        assert.doesNotMatch(text, /^e2e +good .*cannot/m);
        assert.equal(tally, 'it 4 0 2\n');
        assert.equal(code, 0);
    });

    test('a program of which nothing can run here is no failure; one without tests is', (t) => {
        const all = runOver(t, { moon: CANNOT });
        assert.deepEqual(all.lines.slice(-2), ['it: 1 cannot run here', 'it: 0 passed, 0 failed']);
        assert.equal(all.code, 0);
        const none = runOver(t, { good: PASSES, none: '' });
        assert.match(none.text, /ran no test/);
        assert.equal(none.lines.at(-1), 'it: 1 passed, 1 failed');
        assert.equal(none.code, 1);
        assert.equal(runOver(t, {}).code, 1);
    });

    test('what starts first because it takes longest is there', () => {
        const [, list] = /^const LONGEST = \[([^\]]*)\]/m.exec(readFileSync(TOOL, 'utf8'));
        const names = [...list.matchAll(/"([^"]+)"/g)].map((found) => found[1]);
        assert.ok(names.length > 0);
        const file = { unit: (name) => `${name}_test.c`, sim: (name) => `${name}_sim.c`, e2e: (name) => `${name}.test.mjs` };
        const missing = names.filter((name) => {
            const [, tier, rest] = /^(\w+)\/(.*)$/.exec(name);
            return file[tier] && !existsSync(join(TOOL, '../../tests', tier, file[tier](rest)));
        });
        assert.deepEqual(missing, []);
    });

    test('an assertion that fails on a thread of its own says where, and what it found', (t) => {
        const top = tempDir();
        t.after(() => rmSync(top, { recursive: true, force: true }));
        const [source, program] = [join(top, 'odd_test.c'), join(top, 'odd_test')];
        writeFileSync(source, ODD_TEST);
        const tests = join(TOOL, '../../tests');
        const built = spawnSync('cc', ['-D_GNU_SOURCE', '-pthread', `-I${tests}`, '-o', program, source, join(tests, 'unit/libthreads.c'), '-lcmocka'],
                                { encoding: 'utf8' });
        assert.equal(built.status, 0, built.stderr);
        const { signal, stderr } = spawnSync(program, { encoding: 'utf8' });
        assert.equal(signal, 'SIGABRT');
        assert.match(stderr, /on a thread that is not the test's:\n0x7 != 0x8\n.*odd_test\.c:5: error/);
    });

    test('what failed is counted, and is the last word', (t) => {
        const { code, text, lines, tally } = runOver(t, { bad: FAILS, moon: CANNOT }, { some: '1..3\nok 1 - a\nok 2 # SKIP b\n' });
        assert.match(text, /not today/);
        assert.match(text, /1 of its tests did not run/);
        assert.equal(lines.at(-1), 'it: 1 passed, 2 failed');
        assert.equal(tally, 'it 1 2 2\n');
        assert.equal(code, 1);
    });
});
