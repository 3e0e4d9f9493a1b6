// Readers of the board that arbe serve keeps, and servers that watch peers (t3_peer.mjs).
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Raw, head } from './raw.mjs';
import { headerLines, startServe } from './serve.mjs';
import { validate } from './openapi.mjs';
import { Sse } from './sse.mjs';

const schema = (name) => ({ $ref: `#/components/schemas/${name}` });

const keyOf = ({ host, thread_id: id }) => `${host}/${id}`;

// What somebody knows who reads the events: rows by "host/thread", hosts by name.
export class BoardReader extends Sse {
    // Opens the stream as caller; `known` is a reader whose board this one goes on with.
    static async open(caller, { after, id, known, version } = {}) {
        const raw = await Raw.open(caller.server);
        const target = `/api/board/stream${after === undefined ? '' : `?after=${encodeURIComponent(after)}`}`;
        raw.send(head('GET', target, [...headerLines(caller), ...(id === undefined ? [] : [`Last-Event-ID: ${id}`])], version));
        const reader = new BoardReader(raw, await raw.head());
        assert.equal(reader.status, 200);
        assert.match(reader.headers['content-type'], /^text\/event-stream/);
        assert.match(reader.headers['cache-control'], /no-store/);
        reader.rows = new Map(known?.rows);
        reader.hosts = new Map(known?.hosts);
        reader.cursor = id ?? after;
        reader.done = reader.pump();
        reader.done.catch(() => {});
        return reader;
    }

    constructor(raw, first) {
        super(raw, first);
        this.told = []; // { event, data, id }
        this.number = 0n;
    }

    line(line) {
        const [, id] = /^id: (.*)$/.exec(line) ?? [];
        if (id !== undefined) {
            this.lastId = id;
        } else if (line === '' && this.type !== '') {
            this.take({ event: this.type, data: JSON.parse(this.lines.join('\n')), id: this.lastId });
            this.lastId = undefined;
        }
        super.line(line);
    }

    take(told) {
        const { event, data, id } = told;
        this.told.push(told);
        if (event === 'reset') {
            assert.equal(id, undefined);
            this.rows.clear();
            this.hosts.clear();
            this.number = 0n;
            return;
        }
        const [, number] = /^[0-9a-f]{16}-(\d+)$/.exec(id);
        assert.ok(BigInt(number) > this.number || (event === 'current' && BigInt(number) === this.number), 'cursors ascend');
        this.number = BigInt(number);
        this.cursor = id;
        if (event === 'row') {
            assert.deepEqual(validate(schema('BoardRow'), data), []);
            this.rows.set(keyOf(data), data);
        } else if (event === 'gone') {
            assert.deepEqual(Object.keys(data), ['thread_id', 'host']);
            this.rows.delete(keyOf(data));
        } else if (event === 'host') {
            assert.deepEqual(validate(schema('BoardHost'), data), []);
            this.hosts.set(data.host, data);
        } else {
            assert.equal(event, 'current');
            assert.deepEqual(data, {});
        }
    }

    count(event) {
        return this.told.filter((one) => one.event === event).length;
    }

    async current(times = 1) {
        await this.until('current', () => this.count('current') >= times);
        return this;
    }

    async hostIs(host, state) {
        await this.until(`${host} ${state}`, () => this.hosts.get(host)?.state === state);
        return this.hosts.get(host);
    }

    async title(key, title) {
        await this.until(`the title ${title}`, () => this.rows.get(key)?.title === title);
    }
}

// A hosts' file, with a token file for each that has one: { file, setToken(host, token) }. `hosts`: { mac: { url, token? } }.
export function hostsFile(t, hosts) {
    const dir = mkdtempSync(join(tmpdir(), 'arbe-e2e-'));
    t.after(() => rmSync(dir, { recursive: true }));
    const file = join(dir, 't3');
    const setToken = (host, token) => writeFileSync(join(dir, `${host}.token`), `${token}\n`, { mode: 0o600 });
    const sections = Object.entries(hosts).map(([host, { url, token, caFile }]) => {
        if (token !== undefined) {
            setToken(host, token);
        }
        return [`[${host}]`, `url = ${url}`, ...(token === undefined ? [] : [`secret-file = ${host}.token`]),
                ...(caFile === undefined ? [] : [`ca-file = ${caFile}`]), ''].join('\n');
    });
    writeFileSync(file, sections.join('\n'), { mode: 0o600 });
    return { file, setToken };
}

// arbe serve that watches `hosts`, as above, for as long as the test lasts. No host of whoever runs the tests is known to it.
export async function boardServer(t, hosts, flags = [], options = {}) {
    const { file, setToken } = hostsFile(t, hosts);
    const server = await startServe([...(Object.keys(hosts).length > 0 ? ['--t3-hosts', file] : []), ...flags], {
        env: { HOME: '/nonexistent' }, ...options,
    });
    t.after(() => server.dispose());
    return Object.assign(server, { setToken });
}

// The whole board as caller gets it, page by page.
export async function wholeBoard(caller, limit = 1000) {
    const rows = [];
    let first;
    for (let after = ''; ;) {
        const page = await caller.get(`/api/board?limit=${limit}${after}`);
        first ??= page;
        rows.push(...page.rows);
        if (page.nextAfter === null) {
            return { cursor: first.cursor, hosts: first.hosts, rows };
        }
        assert.ok(page.rows.length > 0 && page.rows.length <= limit);
        after = `&after=${encodeURIComponent(page.nextAfter)}`;
    }
}
