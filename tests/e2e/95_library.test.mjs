// Tier 90: libarbe shows what include/arbe declares, and nothing else; each header stands alone, in C and in C++.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { BIN } from './lib/server.mjs';

const ROOT = resolve(import.meta.dirname, '../..');
const BUILD = dirname(BIN);
const HEADERS = readdirSync(join(ROOT, 'include/arbe')).filter((name) => name.endsWith('.h')).sort();

function run(program, args, input = '') {
    const { status, stdout, stderr, error } = spawnSync(program, args, { cwd: ROOT, encoding: 'utf8', input });
    assert.equal(error, undefined, `${program}: ${error}`);
    assert.equal(status, 0, `${program} ${args.join(' ')}:\n${stderr}${stdout}`);
    return stdout;
}

// The functions that the headers declare: a name before a parenthesis, in what is neither comment nor type of a callback.
function declared() {
    const names = new Set();
    for (const header of HEADERS) {
        const text = readFileSync(join(ROOT, 'include/arbe', header), 'utf8').replace(/\/\*[^]*?\*\//g, '').replace(/^#.*$/gm, '');
        for (const statement of text.split(';').filter((one) => !/^\s*(typedef|enum)\b/.test(one))) {
            const name = /^[\w\s*]*?\b((?:stream|scoped|t3)_\w+)\s*\(/.exec(statement.replace(/^[^]*[{}]/, ''))?.[1];
            if (name) {
                names.add(name);
            }
        }
    }
    return [...names].sort();
}

// Names that `nm` lists as defined for others; the version of the interface is no function.
const shown = (...args) => run('nm', [...args, '--defined-only', '--format=posix']).split('\n')
    .map((line) => line.split(' ')).filter(([name, kind]) => kind && kind !== 'A').map(([name]) => name.replace(/@.*/, '')).sort();

describe('libarbe', { timeout: 120_000 }, () => {
    test('the headers declare something, and the map lists just that', () => {
        const map = readFileSync(join(ROOT, 'src/client/libarbe.map'), 'utf8');
        assert.ok(declared().length > 60);
        assert.deepEqual([...map.matchAll(/^ +(\w+);$/gm)].map((hit) => hit[1]).sort(), declared());
    });

    test('libarbe.so shows the functions of the headers, and only those', () => {
        assert.deepEqual(shown('-D', join(BUILD, 'libarbe.so')), declared());
    });

    test('libarbe.a does so too', () => {
        assert.deepEqual(shown('-g', join(BUILD, 'libarbe.a')), declared());
    });

    test('programs that link it ask for libarbe.so.0', () => {
        assert.match(run('readelf', ['-d', join(BUILD, 'libarbe.so')]), /SONAME.*\[libarbe\.so\.0\]/);
    });

    for (const [compiler, language, standard] of [['gcc', 'c', 'c99'], ['clang', 'c', 'c11'], ['clang', 'c++', 'c++11'], ['clang', 'c++', 'c++20']]) {
        test(`each header stands alone, and twice, in ${standard} (${compiler})`, () => {
            for (const header of HEADERS) {
                const flags = ['-Iinclude', '-Wall', '-Wextra', '-Wpedantic', '-Werror'];
                run(compiler, [`-x${language}`, `-std=${standard}`, ...flags, '-fsyntax-only', '-'],
                    `#include "arbe/${header}"\n#include "arbe/${header}"\nint main(void) { return 0; }\n`);
            }
        });
    }
});
