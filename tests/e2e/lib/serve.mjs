// arbe serve for tests: the server, and people and agents who talk to its API. Every answer is held against
// docs/openapi.json.
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { JSON_TYPE, Stream, request } from './http.mjs';
import { assertDescribed } from './openapi.mjs';
import { Server, tempDir } from './server.mjs';

export const SECRET = 'a-secret-of-the-tests';

// Somebody, by the key or cookie that it shows. `server` is read at each call, so that somebody outlives a restart.
export class Caller {
    constructor(server, headers = {}, known = {}) {
        this.server = server;
        this.headers = headers;
        Object.assign(this, known);
    }

    // A body that is no text or bytes is sent as JSON.
    async call(method, path, body, { headers = {}, ...options } = {}) {
        const raw = body === undefined || typeof body === 'string' || Buffer.isBuffer(body);
        const reply = await request(this.server.base, method, path, {
            headers: { ...this.headers, ...(body === undefined ? {} : { 'Content-Type': JSON_TYPE }), ...headers },
            body: raw ? body : JSON.stringify(body),
            ...options,
        });
        assertDescribed(method, path, reply);
        return reply;
    }

    // Insists on the status and gives what was answered.
    async ask(status, method, path, body, options) {
        const reply = await this.call(method, path, body, options);
        assert.equal(reply.status, status, `${method} ${path}: ${reply.status} ${reply.text}`);
        assert.match(reply.headers['cache-control'] ?? '', path.includes('/stream?') ? /./ : /no-store/);
        return reply.body.length === 0 ? undefined : reply.json();
    }

    get(path) {
        return this.ask(200, 'GET', path);
    }

    // Insists on a refusal of that code; gives the error.
    async refused(status, code, method, path, body, options) {
        const reply = await this.call(method, path, body, options);
        assertRefused(reply, status, code, `${method} ${path}`);
        return reply.json().error;
    }

    // Says something in a thread; gives the entry.
    say(threadId, text, more = {}) {
        return this.ask(201, 'POST', `/api/threads/${threadId}/entries`, {
            ...more,
            payload: { type: 'chat', text },
        });
    }

    // All entries of a thread, page by page.
    async history(threadId, limit = 1000) {
        const entries = [];
        for (let after = ''; ;) {
            const page = await this.get(`/api/threads/${threadId}/entries?limit=${limit}${after}`);
            entries.push(...page.entries);
            if (page.upToDate) {
                return entries;
            }
            after = `&after=${encodeURIComponent(page.nextAfter)}`;
        }
    }

    // Everything of a list, page by page.
    async list(path, name, limit = 200) {
        const items = [];
        for (let cursor = ''; ;) {
            const page = await this.get(`${path}${path.includes('?') ? '&' : '?'}limit=${limit}${cursor}`);
            items.push(...page[name]);
            if (page.nextCursor === null) {
                return items;
            }
            cursor = `&cursor=${encodeURIComponent(page.nextCursor)}`;
        }
    }

    async createThread(parentId, more = {}) {
        return (await this.ask(201, 'POST', '/api/threads', { parentId, ...more })).thread;
    }

    async createHouse(name = 'A house') {
        return await this.ask(201, 'POST', '/api/houses', { name });
    }

    async createAgent(name, more = {}) {
        const { agent, apiKey } = await this.ask(201, 'POST', '/api/agents', { name, ...more });
        return withKey(this.server, apiKey, agent);
    }

    // Somebody new, who joins a house of this caller.
    async invite(houseId, name, role = 'member') {
        const { token } = await this.ask(201, 'POST', `/api/houses/${houseId}/invites`, { role });
        const { agent, apiKey } = await nobody(this.server).ask(201, 'POST', `/api/invites/${token}`, { name });
        return withKey(this.server, apiKey, agent);
    }

    // The same one by a session cookie, with the page's Origin unless it is not to have one.
    async signIn({ origin = this.server.base } = {}) {
        const reply = await nobody(this.server).call('POST', '/api/session', { key: this.key });
        assert.equal(reply.status, 200, reply.text);
        const cookie = reply.headers['set-cookie'][0].split(';')[0];
        const headers = { Cookie: cookie, ...(origin ? { Origin: origin } : {}) };
        return new Caller(this.server, headers, { agent: this.agent, key: this.key });
    }

    async mint(threadId, agentId = this.agent.id, more = {}) {
        const { token } = await this.ask(201, 'POST', `/api/threads/${threadId}/sandbox-tokens`, {
            agentId,
            ...more,
        });
        return bearer(this.server, token);
    }
}

export function assertRefused(reply, status, code, what = '') {
    assert.equal(reply.status, status, `${what}: ${reply.status} ${reply.text}`);
    assert.match(reply.headers['content-type'], /^application\/json/);
    assert.match(reply.headers['cache-control'], /no-store/);
    const { error } = reply.json();
    assert.equal(error.code, code, `${what}: ${reply.text}`);
    assert.match(error.message, /\w \w/, 'a sentence says why');
}

export function nobody(server) {
    return new Caller(server);
}

export function bearer(server, token, known = {}) {
    return new Caller(server, { Authorization: `Bearer ${token}` }, known);
}

export function withKey(server, key, agent) {
    return bearer(server, key, { key, agent });
}

// arbe serve, and the file of its secret beside its data.
class ServeServer extends Server {
    constructor(flags, { secret = false, dir = tempDir(), ...options }) {
        const file = secret ? `${dir}.secret` : undefined;
        super([...flags, ...(secret ? ['--secret-file', file] : [])], { ...options, dir, command: 'serve' });
        this.secretFile = file;
        if (secret) {
            writeFileSync(file, SECRET, { mode: 0o600 });
        }
    }

    async dispose() {
        try {
            await super.dispose();
        } finally {
            if (this.secretFile) {
                rmSync(this.secretFile, { force: true });
            }
        }
    }
}

// A server whose first start has been seen: `owner` owns `house`. With `secret` streams are open to who has it.
export async function startServe(flags = [], options = {}) {
    const server = new ServeServer(flags, { ...options, ownDir: options.dir === undefined });
    await server.start();
    const key = /\barbe_[0-9a-f]{64}\b/.exec(server.log)?.[0];
    if (key !== undefined) {
        server.owner = withKey(server, key);
        const { agent, houses } = await server.owner.get('/api/me');
        server.owner.agent = agent;
        server.house = houses[0];
    }
    return server;
}

// One that lives as long as the test t.
export async function serveFor(t, flags, options) {
    const server = await startServe(flags, options);
    t.after(() => server.dispose());
    return server;
}

// The stream of a thread: raw, with the server's secret; and as `caller` sees it through the API.
export function rawStream(server, threadId) {
    return new Stream(server, `arbe-thread-${threadId}`, JSON_TYPE, { Authorization: `Bearer ${SECRET}` });
}

export function proxied(caller, threadId) {
    const stream = new Stream(caller.server, threadId, JSON_TYPE, caller.headers);
    stream.path = `/api/threads/${threadId}/stream`;
    return stream;
}

// Headers as lines, for sockets (raw.mjs, sse.mjs).
export function headerLines(caller) {
    return Object.entries(caller.headers).map(([name, value]) => `${name}: ${value}`);
}
