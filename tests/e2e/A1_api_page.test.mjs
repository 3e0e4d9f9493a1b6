// docs/api.md is a test: its lines run, in order, against a fresh server, and it leaves out nothing that
// docs/openapi.json has (which is held against the program by A0_openapi).
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { DOCUMENT, METHODS, operationOf } from './lib/openapi.mjs';
import { serveFor } from './lib/serve.mjs';
import { startPeer, threadShell } from './lib/t3_peer.mjs';
import { endGroup, follow, runStep, stepsOf } from './lib/tour.mjs';
import { eventually } from './lib/wait.mjs';

const PAGE = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8');
const sourceOf = (path) => readFileSync(new URL(`../../src/${path}`, import.meta.url), 'utf8');
const ERRORS = sourceOf('thread/api_error.h');

// The requests of a step: its curl lines.
function requestsOf({ command }) {
    return command
        .split(/^curl /m)
        .slice(1)
        .map((line) => {
            const target = /\$ARBE(\/\S*?)"?\s*$/m.exec(line)[1].replace(/\$(\w+)/g, '$1');
            const plain = / --json /.test(line) ? 'POST' : 'GET';
            return { method: /-X (\w+)/.exec(line)?.[1] ?? (line.startsWith('-sI') ? 'HEAD' : plain), target };
        });
}

test('its lines work as they are written', async (t) => {
    const cwd = mkdtempSync(join(tmpdir(), 'arbe-e2e-'));
    t.after(() => rmSync(cwd, { recursive: true }));
    const peer = await startPeer();
    t.after(() => peer.stop());
    const run = { latestRunId: 'r-1', latestRunRequestedAt: '2026-11-05T00:01:00.000Z', status: 'running' };
    peer.list(threadShell('t-1', { title: 'One' }), threadShell('t-2', { title: 'Two', ...run }));
    const server = await serveFor(t, ['--t3', `mac=${peer.base}`], { env: { HOME: '/nonexistent' } });
    await eventually('the board', async () => (await server.owner.get('/api/board')).hosts[0].state === 'live');
    const known = { ARBE: server.base, KEY: server.owner.key };
    const steps = stepsOf(PAGE);
    assert.ok(
        steps.every(({ expected }) => expected !== undefined),
        'each line is shown with its answer',
    );
    for (const step of steps) {
        if (/live=sse|board\/stream/.test(step.command)) {
            const follower = follow(step, { known, cwd });
            t.after(() => endGroup(follower.child));
            await follower.caught;
            endGroup(follower.child);
        } else {
            Object.assign(known, await runStep(step, { known, cwd }));
        }
    }
});

test('each route has a line, and its method and path in words', () => {
    const shown = stepsOf(PAGE)
        .flatMap(requestsOf)
        .map(({ method, target }) => {
            const found = operationOf(method, target);
            assert.ok(found, `${method} ${target} is a route`);
            return `${method} ${found.template}`;
        });
    for (const [path, item] of Object.entries(DOCUMENT.paths)) {
        for (const method of METHODS.filter((one) => item[one]).map((one) => one.toUpperCase())) {
            assert.ok(shown.includes(`${method} ${path}`), `${method} ${path} has a curl line`);
            const words = `\`${method} ${path.replace(/\{(\w+)\}/g, ':$1')}`;
            assert.ok(PAGE.includes(`${words}\``) || PAGE.includes(`${words}?`), `${words} is told of`);
        }
    }
});

test('each parameter of a query is told of', () => {
    for (const item of Object.values(DOCUMENT.paths)) {
        for (const { name } of METHODS.flatMap((one) => item[one]?.parameters ?? [])) {
            assert.match(PAGE, new RegExp(`[?&\`]${name}[=\`]`), name);
        }
    }
});

test('its table of payloads is that of the program', () => {
    const header = sourceOf('thread/payload.h');
    let fields = sourceOf('thread/payload.c');
    const families = [...fields.matchAll(/#define (\w+_ROWS)\(type\)((?:.*\\\n)+.*)\n/g)];
    fields = /fields\[\] = \{([^]*?)\n\};/.exec(fields)[1];
    for (const [, name, rows] of families) {
        fields = fields.replace(new RegExp(`\\b${name}\\((\\w+)\\)`, 'g'), (_, type) => rows.replaceAll('(type,', `(${type},`));
    }
    const rows = [...fields.matchAll(/ROW\((\w+),\s*"(\w+)",\s*\w+,\s*(\w+)/g)];
    const wanted = [...header.matchAll(/X\((\w+), "([a-z_.]+)"\)/g)].map(([, type, text]) => {
        const own = rows.filter(([, shape]) => shape === `PAYLOAD_${type}`);
        return [text, own.map(([, , name, there]) => `\`${name}${there === 'NEEDED' ? '' : '?'}\``).join(', ')];
    });
    assert.ok(wanted.length >= 33 && rows.length > 60);
    const [, table] = /^\| type \| fields \|\n\|---\|---\|\n((?:\|.*\n)+)/m.exec(PAGE);
    const told = [...table.matchAll(/^\| `([a-z_.]+)` \| (.*?) ?\|$/gm)].map(([, text, own]) => [text, own]);
    assert.deepEqual(told, wanted);
});

test('its known keys of a config are those of the program', () => {
    const known = /\} keys\[\] = \{([^]*?)\n\};/.exec(sourceOf('thread/config.c'))[1];
    for (const [, section, name] of known.matchAll(/\{SECTION_(\w+), "(\w+)"/g)) {
        const key = section === 'ROOT' ? name : `${section.toLowerCase()}.${name}`;
        assert.match(PAGE, new RegExp(`\`${key}[.\`]`), key);
    }
});

test('its table of errors is that of the program', () => {
    const wanted = [...ERRORS.matchAll(/X\(\w+, "([a-z_.]+)", (\d+), (true|false),/g)].map(
        ([, code, status, again]) => `${code} ${status} ${again === 'true' ? 'yes' : ''}`,
    );
    const told = [...PAGE.matchAll(/^\| `([a-z_.]+)` \| (\d+) \| (yes|) ?\|/gm)].map(
        ([, code, status, again]) => `${code} ${status} ${again}`,
    );
    assert.deepEqual(told, wanted);
});
