// Tier B0: arbe board fold. Chunks go in, rows come out, each case by the sentence that it shows.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Shell } from './lib/shell.mjs';

const shell = new Shell({}, ['board', 'fold']);
const HOST = 'studio';

const at = (minute, second = 0) => `2027-03-14T09:${String(minute).padStart(2, '0')}:${String(second).padStart(2, '0')}.000Z`;
const row = (id, rest = {}) => ({ thread_id: id, title: null, state: null, last_turn_at: null, last_message_snippet: null, host: HOST, ...rest });

// What servers send. Whatever a projection has besides is there, to be passed over.
const thread = (id, title, rest = {}) => ({ id, title, archivedAt: null, deletedAt: null, ...rest });
const projectionOf = (threadRecord, rest = {}) => ({
    thread: threadRecord, runs: [], messages: [], providerTurns: [], attempts: [], nodes: [], ...rest, updatedAt: at(59, 59),
});
const projected = (...args) => ({ kind: 'snapshot', snapshotSequence: 71, projection: projectionOf(...args) });
const shellOf = (threads, archivedThreads = []) => ({
    kind: 'snapshot', snapshot: { schemaVersion: 2, snapshotSequence: 71, projects: [], threads, archivedThreads },
});
const event = (type, threadId, payload) => ({ kind: 'event', sequence: 72, event: { id: 'e-5', threadId, occurredAt: at(59, 59), type, payload } });
const run = (id, ordinal, status, [requestedAt, startedAt = null, completedAt = null], rest = {}) => ({
    id, ordinal, status, requestedAt, startedAt, completedAt, ...rest,
});
const latestRun = (id, requested, started = null, completed = null) => ({
    latestRunId: id, latestRunRequestedAt: requested, latestRunStartedAt: started, latestRunCompletedAt: completed,
});
const message = (id, text, createdAt, updatedAt = createdAt, role = 'assistant') => ({ id, role, text, createdAt, updatedAt });
const updated = (record, location = 'active') => ({ kind: 'thread.updated', sequence: 73, location, thread: record });
const removed = (threadId, location = 'active') => ({ kind: 'thread.removed', sequence: 74, location, threadId });

async function fold(lines, { host = HOST, args = [] } = {}) {
    const input = lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('');
    const { code, stdout, stderr } = await shell.run(['--host', host, ...args], { input });
    return { code, stderr, rows: stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line)) };
}

// Folds lines that are all good, and compares what comes of them.
async function folds(lines, want, options) {
    assert.deepEqual(await fold(lines, options), { code: 0, stderr: '', rows: want });
}

describe('arbe board fold: rows', { timeout: 60_000 }, () => {
    test('shell status is retained as a string; archived rows use "archived"', () => folds([
        [shellOf([thread('t-1', 'Paint the shed', { status: 'preparing' }), thread('t-2', 'Count the bees', { status: 'hibernating' })],
            [thread('t-3', 'Last winter', { status: 'completed', archivedAt: at(1) })])],
    ], [
        row('t-1', { title: 'Paint the shed', state: 'preparing' }),
        row('t-2', { title: 'Count the bees', state: 'hibernating' }),
        row('t-3', { title: 'Last winter', state: 'archived' }),
    ]));

    test('thread.updated carries a thread record, thread.removed a threadId and a location', () => folds([
        [shellOf([thread('t-1', 'Paint the shed', { status: 'idle' }), thread('t-2', 'Count the bees', { status: 'idle' })],
            [thread('t-3', 'Mend the gate', { status: 'completed', archivedAt: at(1) }), thread('t-4', 'Sell the cart', { status: 'failed', archivedAt: at(1) })])],
        [updated(thread('t-2', 'Count them twice', { status: 'running', ...latestRun('r-1', at(2)),
            latestVisibleMessage: { id: 'm-1', role: 'user', text: 'how many?', updatedAt: at(2) } })),
        updated(thread('t-5', 'Buy seeds', { status: 'idle' }))],
        [removed('t-1'), removed('t-4', 'archive'), removed('t-6')],
    ], [
        row('t-2', { title: 'Count them twice', state: 'running', last_turn_at: at(2), last_message_snippet: 'how many?' }),
        row('t-3', { title: 'Mend the gate', state: 'archived' }),
        row('t-5', { title: 'Buy seeds', state: 'idle' }),
    ]));

    test('a thread projection uses its newest run by ordinal', () => folds([
        [projected(thread('t-1', 'Many tries'), { runs: [
            run('r-9', 9, 'failed', [at(1), at(1, 1), at(1, 30)]), run('r-10', 10, 'running', [at(2), at(2, 1)]),
            run('r-2', 2, 'completed', [at(0, 10), at(0, 11), at(0, 30)])] })],
    ], [row('t-1', { title: 'Many tries', state: 'running', last_turn_at: at(2, 1) })]));

    test('or "idle" when no run exists', () => folds([
        [projected(thread('t-1', 'Nothing done'), { messages: [message('m-1', 'good morning', at(0, 1))] })],
    ], [row('t-1', { title: 'Nothing done', state: 'idle', last_message_snippet: 'good morning' })]));

    test('thread metadata events preserve the existing run state', () => folds([
        [projected(thread('t-1', 'Draft'), { runs: [run('r-1', 1, 'waiting', [at(1), at(1, 5)])], messages: [message('m-1', 'half of it', at(1))] })],
        [event('thread.metadata-updated', 't-1', { id: 't-1', title: 'Report', updatedAt: at(30) })],
    ], [row('t-1', { title: 'Report', state: 'waiting', last_turn_at: at(1, 5), last_message_snippet: 'half of it' })]));

    test('last_turn_at is the latest activity of run and turn', () => folds([
        [projected(thread('t-1', 'Asked for')), projected(thread('t-2', 'At work')), projected(thread('t-3', 'Over'))],
        [event('run.created', 't-1', run('r-1', 1, 'queued', [at(1)])),
            event('run.created', 't-2', run('r-1', 1, 'running', [at(1), at(1, 2)], { workStartedAt: at(1, 9) })),
            event('run.created', 't-3', run('r-1', 1, 'running', [at(1), at(1, 2)]))],
        [event('run.updated', 't-3', run('r-1', 1, 'completed', [at(1), at(1, 2), at(2)]))],
        [event('provider-turn.updated', 't-3', { id: 'pt-1', runAttemptId: 'at-1', status: 'completed', startedAt: at(1, 3), completedAt: at(2, 1) })],
    ], [
        row('t-1', { title: 'Asked for', state: 'queued', last_turn_at: at(1) }),
        row('t-2', { title: 'At work', state: 'running', last_turn_at: at(1, 9) }),
        row('t-3', { title: 'Over', state: 'completed', last_turn_at: at(2, 1) }),
    ]));

    test('shell rows use the corresponding latest-run summary timestamps', () => folds([
        [shellOf([
            thread('t-1', 'In line', { status: 'queued', ...latestRun('r-1', at(1)) }),
            thread('t-2', 'Begun', { status: 'running', ...latestRun('r-2', at(1), at(1, 10)) }),
            thread('t-3', 'Broken', { status: 'failed', ...latestRun('r-3', at(1), at(1, 10), at(1, 20)) }),
            thread('t-4', 'Unused', { status: 'idle', updatedAt: at(40), latestUserMessageAt: at(41) })])],
    ], [
        row('t-1', { title: 'In line', state: 'queued', last_turn_at: at(1) }),
        row('t-2', { title: 'Begun', state: 'running', last_turn_at: at(1, 10) }),
        row('t-3', { title: 'Broken', state: 'failed', last_turn_at: at(1, 20) }),
        row('t-4', { title: 'Unused', state: 'idle' }),
    ]));

    test('values absent from sparse events are preserved', () => folds([
        [projected(thread('t-1', 'Ledger'), { runs: [run('r-1', 1, 'running', [at(1), at(1, 1)])], messages: [message('m-1', 'balanced it', at(1))] })],
        [event('run.updated', 't-1', { id: 'r-1', status: 'completed' })],
        [event('thread.visited', 't-1', { id: 't-1' }), event('message.updated', 't-1', { id: 'm-1', updatedAt: at(5) })],
    ], [row('t-1', { title: 'Ledger', state: 'completed', last_turn_at: at(1, 1), last_message_snippet: 'balanced it' })]));

    test('deleted threads are removed', () => folds([
        [projected(thread('t-1', 'Away')), projected(thread('t-2', 'Here'))],
        [event('thread.deleted', 't-1', thread('t-1', 'Away', { deletedAt: at(9) }))],
    ], [row('t-2', { title: 'Here', state: 'idle' })]));

    test('a projection object is a per-thread catch-up', () => folds([
        [shellOf([thread('t-1', 'As of noon', { status: 'running', ...latestRun('r-1', at(1), at(1, 1)) }), thread('t-2', 'Neighbour', { status: 'waiting' })])],
        projectionOf(thread('t-1', 'As of one'), { runs: [run('r-1', 1, 'completed', [at(1), at(1, 1), at(3)])], messages: [message('m-1', 'all read', at(2, 59))] }),
    ], [
        row('t-1', { title: 'As of one', state: 'completed', last_turn_at: at(3), last_message_snippet: 'all read' }),
        row('t-2', { title: 'Neighbour', state: 'waiting' }),
    ]));

    test('unrelated and unknown records are ignored', () => folds([
        [projected(thread('t-1', 'Untouched'), { runs: [run('r-1', 1, 'running', [at(1), at(1, 1)])], messages: [message('m-1', 'as it was', at(1))] })],
        [event('node.updated', 't-1', { id: 'n-1', status: 'failed', startedAt: at(20), title: 'intruder' }),
            event('run-attempt.updated', 't-1', { id: 'at-1', runId: 'r-1', status: 'failed', completedAt: at(20) }),
            event('turn-item.updated', 't-1', { id: 'x', type: 'assistant_message', text: 'intruder' }),
            event('plan.updated', 't-1', { id: 'p', title: 'intruder', status: 'completed' }),
            { kind: 'project.updated', sequence: 130, project: { id: 't-1', title: 'intruder' } },
            { kind: 'moon.rose', thread: { id: 't-1', title: 'intruder', status: 'failed' } }, { kind: 'synchronized' }],
    ], [row('t-1', { title: 'Untouched', state: 'running', last_turn_at: at(1, 1), last_message_snippet: 'as it was' })]));
});

describe('arbe board fold: who is asked', { timeout: 60_000 }, () => {
    const asked = { pendingRuntimeRequest: { id: 'q-1', kind: 'command', createdAt: at(2) }, hasActionableProposedPlan: false };
    const proposed = { pendingRuntimeRequest: null, hasActionableProposedPlan: true };
    const nobody = { pendingRuntimeRequest: null, hasActionableProposedPlan: false };

    test('a request that is pending, or a plan to be accepted, adds "asks":true; an archived thread asks nobody', () => folds([
        [shellOf([thread('t-1', 'May I?', { status: 'running', ...asked }), thread('t-2', 'Shall I?', { status: 'completed', ...proposed }),
            thread('t-3', 'Hm', { status: 'running', ...nobody }), thread('t-4', 'Hm', { status: 'running' })],
        [thread('t-5', 'Put away', { status: 'running', archivedAt: at(1), ...asked })])],
    ], [
        row('t-1', { title: 'May I?', state: 'running', asks: true }), row('t-2', { title: 'Shall I?', state: 'completed', asks: true }),
        row('t-3', { title: 'Hm', state: 'running' }), row('t-4', { title: 'Hm', state: 'running' }),
        row('t-5', { title: 'Put away', state: 'archived' }),
    ]));

    test('it is the last member, and not there where nobody is asked', async () => {
        const input = JSON.stringify([updated(thread('a', 'A', asked)), updated(thread('b', 'B', nobody))]);
        const { stdout } = await shell.run(['--host', 'h'], { input });
        const same = '"state":null,"last_turn_at":null,"last_message_snippet":null,"host":"h"';
        assert.equal(stdout, `{"thread_id":"a","title":"A",${same},"asks":true}\n{"thread_id":"b","title":"B",${same}}\n`);
    });

    test('a thread that is updated says it anew; without the two members it asks nobody', () => folds([
        [shellOf([thread('t-1', 'A', asked), thread('t-2', 'B', asked), thread('t-3', 'C', nobody)])],
        [updated(thread('t-1', 'A', nobody)), updated(thread('t-2', 'B')), updated(thread('t-3', 'C', proposed))],
    ], [row('t-1', { title: 'A' }), row('t-2', { title: 'B' }), row('t-3', { title: 'C', asks: true })]));

    test('of a projection the requests that are pending count', () => folds([
        [shellOf([thread('t-1', 'A', asked), thread('t-2', 'B', nobody)])],
        projectionOf(thread('t-1', 'A'), { runtimeRequests: [{ id: 'q-1', status: 'resolved', createdAt: at(2) }] }),
        projectionOf(thread('t-2', 'B'), { runtimeRequests: [{ id: 'q-2', status: 'pending', createdAt: at(2) }] }),
    ], [row('t-1', { title: 'A', state: 'idle' }), row('t-2', { title: 'B', state: 'idle', asks: true })]));

    test('events of requests tell it, and so does the end of the run; others leave it', () => folds([
        [shellOf(['t-1', 't-2', 't-3', 't-4'].map((id) => thread(id, id, { status: 'running', ...latestRun('r-1', at(1)), ...nobody })))],
        ['t-1', 't-2', 't-3', 't-4'].map((id) => event('runtime-request.updated', id, { id: 'q-1', kind: 'command', status: 'pending', createdAt: at(2) })),
        [event('runtime-request.updated', 't-1', { id: 'q-1', kind: 'command', status: 'resolved', createdAt: at(2) }),
            event('run.updated', 't-2', run('r-1', 1, 'interrupted', [at(1)])), event('run.updated', 't-3', run('r-1', 1, 'running', [at(1)])),
            event('thread.metadata-updated', 't-4', { id: 't-4', title: 'Four' })],
    ], [
        row('t-1', { title: 't-1', state: 'running', last_turn_at: at(1) }), row('t-2', { title: 't-2', state: 'interrupted', last_turn_at: at(1) }),
        row('t-3', { title: 't-3', state: 'running', last_turn_at: at(1), asks: true }),
        row('t-4', { title: 'Four', state: 'running', last_turn_at: at(1), asks: true }),
    ]));
});

describe('arbe board fold: what is late', { timeout: 60_000 }, () => {
    test('a late completion of an older run cannot replace the current summary', () => folds([
        [projected(thread('t-1', 'Again'), { runs: [run('r-1', 1, 'running', [at(1), at(1, 1)])] })],
        [event('run.created', 't-1', run('r-2', 2, 'queued', [at(5)])), event('run.updated', 't-1', run('r-1', 1, 'completed', [at(1), at(1, 1), at(4)]))],
    ], [row('t-1', { title: 'Again', state: 'queued', last_turn_at: at(5) })]));

    test('nor can an edit to a historical message', () => folds([
        [projected(thread('t-1', 'Letters'), { messages: [message('m-1', 'dear Ann', at(1), at(1), 'user'), message('m-2', 'dear Bob', at(2))] })],
        [event('message.updated', 't-1', message('m-1', 'dear Eve', at(1), at(9), 'user'))],
    ], [row('t-1', { title: 'Letters', state: 'idle', last_message_snippet: 'dear Bob' })]));

    test('shell summaries omit run ordinals: the known run id and request time stand in for them', () => folds([
        [shellOf([thread('t-1', 'By its request', { status: 'running', ...latestRun('r-2', at(5), at(5, 1)) })])],
        [event('run.updated', 't-1', run('r-1', 1, 'completed', [at(1), at(1, 1), at(4)]))],
        [event('run.updated', 't-1', run('r-2', 2, 'completed', [at(5), at(5, 1), at(8)]))],
        [event('run.updated', 't-1', run('r-1', 1, 'failed', [at(1), at(1, 1), at(4)]))],
    ], [row('t-1', { title: 'By its request', state: 'completed', last_turn_at: at(8) })]));
});

describe('arbe board fold: snippets', { timeout: 60_000 }, () => {
    const talk = (...texts) => [texts.map((text, i) => projected(thread(`t-${i + 1}`, ' A\ttitle  is   kept '), { messages: [message('m-1', text, at(0, 1))] }))];
    const said = (...texts) => texts.map((text, i) => row(`t-${i + 1}`, { title: ' A\ttitle  is   kept ', state: 'idle', last_message_snippet: text }));

    test('collapse white space', () => folds(talk('red\n\n\tgreen  blue\r\n \tgrey', '\tblack '), said('red green blue grey', 'black')));

    test('keep at most 160 graphemes', () => {
        const technologist = '\u{1f469}\u200d\u{1f4bb}';
        return folds(talk('a'.repeat(200), 'e\u0301'.repeat(200), technologist.repeat(160), technologist.repeat(161)),
            said('a'.repeat(160), 'e\u0301'.repeat(160), technologist.repeat(160), technologist.repeat(160)));
    });

    test('--snippet-length overrides that', async () => {
        await folds(talk('oaks'.repeat(100)), said('oaks'.repeat(60)), { args: ['--snippet-length', '240'] });
        await folds(talk('oaks'.repeat(100)), said('o'), { args: ['--snippet-length', '1'] });
        for (const wrong of ['0', '1001', 'x']) {
            assert.equal((await fold([], { args: ['--snippet-length', wrong] })).code, 2);
        }
    });

    test('what no UTF-8 can hold, and NUL, come through as JSON', () => folds(
        [`[{"kind":"event","event":{"threadId":"t-1","type":"message.updated","payload":{"id":"m","text":"a\\u0000b\\ud800c"}}}]`],
        [row('t-1', { last_message_snippet: 'a\0b\ufffdc' })]));
});

describe('arbe board fold: examples of the contract', { timeout: 60_000 }, () => {
    const time = '2026-11-05T00:00:00.000Z';
    const later = '2026-11-05T00:01:00.000Z';
    const initial = [{
        kind: 'snapshot', snapshotSequence: 123, projection: {
            thread: { id: 'redacted', title: 'Example', archivedAt: null, deletedAt: null }, runs: [],
            messages: [{ id: 'redacted', role: 'user', text: 'Example message', createdAt: time, updatedAt: time }],
            providerTurns: [], attempts: [], nodes: [], subagents: [], providerSessions: [], providerThreads: [], runtimeRequests: [],
            plans: [], turnItems: [], visibleTurnItems: [], checkpointScopes: [], checkpoints: [], contextHandoffs: [], contextTransfers: [],
            updatedAt: time,
        },
    }];
    const update = { kind: 'event', sequence: 124, event: { id: 'redacted', threadId: 'redacted', occurredAt: later, type: 'message.updated',
        payload: { id: 'redacted', threadId: 'redacted', text: 'Updated message', updatedAt: later } } };
    const example = (text) => [row('redacted', { title: 'Example', state: 'idle', last_message_snippet: text })];

    test('an initial chunk, and the update after it', async () => {
        await folds([initial], example('Example message'));
        await folds([initial, [update]], example('Updated message'));
    });

    test('a marked snapshot enriches projects, and is not an empty board', () => folds([[
        { kind: 'snapshot', snapshot: { schemaVersion: 2, snapshotSequence: 123, projects: [],
            threads: [{ id: 'redacted', title: 'Example', status: 'idle', latestVisibleMessage: null }], archivedThreads: [] } },
        { kind: 'snapshot', resolvedRepositoryIdentityRoots: ['/redacted'],
            snapshot: { schemaVersion: 2, snapshotSequence: 123, projects: [], threads: [], archivedThreads: [] } },
    ]], example(null)));
});

describe('arbe board fold: the command', { timeout: 60_000 }, () => {
    test('prints rows one a line, sorted by thread id, members in order', async () => {
        const { stdout } = await shell.run(['--host', 'h'], { input: JSON.stringify([shellOf([thread('b', 'B'), thread('a', null), thread('B', '"')])]) });
        assert.equal(stdout, [['B', '"\\""'], ['a', 'null'], ['b', '"B"']].map(([id, title]) =>
            `{"thread_id":"${id}","title":${title},"state":null,"last_turn_at":null,"last_message_snippet":null,"host":"h"}\n`).join(''));
    });

    test('skips what is broken, counts it on stderr, and goes on', async () => {
        const good = [updated(thread('t', 'T', { status: 'idle' }))];
        const rows = [row('t', { title: 'T', state: 'idle' })];
        assert.deepEqual(await fold([good, '', '[3,{"kind":"thread.removed"}]']),
            { code: 0, stderr: 'arbe board fold: 2 items skipped\n', rows });
        const { stderr, ...rest } = await fold([JSON.stringify(good).slice(0, -3), good, '7', ' \r']);
        assert.deepEqual(rest, { code: 0, rows });
        assert.match(stderr, /^arbe board fold: 2 items skipped; line 1: not valid JSON at byte \d+: the text ends inside an object\n$/);
    });

    test('input of which no line is anything is a failure, with the first line that is none', async () => {
        const none = await fold(['{"a":1}', '', '[7]', '{', 'x']);
        assert.deepEqual({ code: none.code, rows: none.rows }, { code: 1, rows: [] });
        assert.match(none.stderr, /^arbe board fold: 4 items skipped, and no line is a chunk or a projection of T3 Code; line 4: not valid JSON .*\n$/);
        await folds([[]], []); // a chunk of nothing is one
        await folds(['', ' '], []);
    });

    test('a server of the first protocol is named as one', async () => {
        const { code, stderr, rows } = await fold([[shellOf([])], [{ kind: 'snapshot', snapshot: { snapshotSequence: 1, projects: [], threads: [], updatedAt: at(1) } }]]);
        assert.deepEqual({ code, rows }, { code: 1, rows: [] });
        assert.match(stderr, /^arbe board fold: line 2: the server speaks the first version of T3's orchestration protocol \(a snapshot without schemaVersion\)/);
    });

    test('nothing in is nothing out; a label is needed; wrong usage is 2', async () => {
        await folds([], []);
        for (const args of [['--host', ''], ['--host', 'x'.repeat(256)], ['word'], ['--nothing']]) {
            const { code, stdout, stderr } = await shell.run(args, { input: '' });
            assert.deepEqual({ code, stdout }, { code: 2, stdout: '' });
            assert.match(stderr, /^arbe board fold: /);
        }
        const file = await shell.run(['chunks.ndjson'], { input: '' });
        assert.deepEqual(file, { code: 2, signal: null, stdout: '',
            stderr: 'arbe board fold: it reads stdin, not the file "chunks.ndjson": arbe board fold <FILE\n' });
        assert.match(await shell.good(['--help']), /--snippet-length N/);
    });

    test('a line may be long, and may come in pieces', async () => {
        const threads = Array.from({ length: 3000 }, (_, i) => thread(`t-${String(i).padStart(4, '0')}`, 'x'.repeat(100), { status: 'idle' }));
        const { code, rows } = await fold([[shellOf(threads)], [removed('t-0000')]]);
        assert.deepEqual([code, rows.length, rows[0].thread_id], [0, 2999, 't-0001']);
    });
});
