// A plain client over node:http for well-formed requests, and helpers that
// know how a stream URL is made. Malformed input goes through raw.mjs.
import assert from 'node:assert/strict';
import http from 'node:http';
import { DEADLINE_MS } from './wait.mjs';

const agent = new http.Agent({ keepAlive: true, maxSockets: Infinity, maxFreeSockets: 512 });
const single = new http.Agent({ keepAlive: false, maxSockets: Infinity });

export const TEXT = 'text/plain';
export const JSON_TYPE = 'application/json';
export const OCTETS = 'application/octet-stream';

class Reply {
    constructor(message, body) {
        this.status = message.statusCode;
        this.headers = message.headers;
        this.rawHeaders = message.rawHeaders;
        this.body = body;
    }

    get text() {
        return this.body.toString('utf8');
    }

    get next() {
        return this.headers['stream-next-offset'];
    }

    get closed() {
        return this.headers['stream-closed'] === 'true';
    }

    get upToDate() {
        return this.headers['stream-up-to-date'] === 'true';
    }

    json() {
        return JSON.parse(this.text);
    }
}

export function request(base, method, path, { headers = {}, body, fresh = false, signal } = {}) {
    const { hostname, port } = new URL(base);
    const payload = body === undefined ? undefined
        : Buffer.isBuffer(body) ? body : Buffer.from(body);
    const sent = { ...headers };
    const names = Object.keys(sent).map((name) => name.toLowerCase());
    if (payload !== undefined && !names.includes('transfer-encoding')) {
        sent['Content-Length'] = payload.length;
    } else if (payload === undefined && (method === 'POST' || method === 'PUT')) {
        sent['Content-Length'] = 0;
    }
    return new Promise((resolve, reject) => {
        const req = http.request({
            hostname, port, method, path, headers: sent, signal,
            agent: fresh ? single : agent,
        });
        const timer = setTimeout(() => {
            req.destroy(new Error(`${method} ${path}: no whole answer in ${DEADLINE_MS} ms`));
        }, DEADLINE_MS);
        const fail = (error) => {
            clearTimeout(timer);
            reject(error);
        };
        req.on('error', fail);
        req.on('response', (message) => {
            const chunks = [];
            message.on('data', (chunk) => chunks.push(chunk));
            message.on('error', fail);
            message.on('end', () => {
                clearTimeout(timer);
                if (!message.complete) {
                    reject(new Error(`${method} ${path}: truncated answer`));
                    return;
                }
                resolve(new Reply(message, Buffer.concat(chunks)));
            });
        });
        req.end(payload);
    });
}

// Requests on one stream of one server. `server` is read at each call, so a
// handle stays good across restarts.
export class Stream {
    constructor(server, name, type = TEXT, extra = {}) {
        this.server = server;
        this.name = name;
        this.type = type;
        this.extra = extra;
        this.path = `/v1/stream/${name}`;
    }

    send(method, { query = '', headers = {}, body, ...options } = {}) {
        const suffix = query === '' ? '' : `?${query}`;
        return request(this.server.base, method, this.path + suffix,
                       { headers: { ...this.extra, ...headers }, body, ...options });
    }

    put(headers = {}, body, options) {
        return this.send('PUT', {
            headers: { 'Content-Type': this.type, ...headers }, body, ...options,
        });
    }

    post(body, headers = {}, options) {
        return this.send('POST', {
            headers: { 'Content-Type': this.type, ...headers }, body, ...options,
        });
    }

    close(headers = {}) {
        return this.send('POST', { headers: { 'Stream-Closed': 'true', ...headers } });
    }

    get(query = 'offset=-1', headers = {}, options) {
        return this.send('GET', { query, headers, ...options });
    }

    from(offset, headers = {}) {
        return this.get(`offset=${encodeURIComponent(offset)}`, headers);
    }

    poll(offset, extra = '', headers = {}, options) {
        const query = `live=long-poll&offset=${encodeURIComponent(offset)}${extra}`;
        return this.get(query, headers, options);
    }

    head(headers = {}) {
        return this.send('HEAD', { headers });
    }

    remove(headers = {}) {
        return this.send('DELETE', { headers });
    }

    // Creates it and insists on 201.
    async create(headers = {}, body) {
        const reply = await this.put(headers, body);
        assert.equal(reply.status, 201, `PUT ${this.path}: ${reply.status} ${reply.text}`);
        return reply;
    }

    // Appends and insists on success.
    async append(body, headers = {}) {
        const reply = await this.post(body, headers);
        const wanted = Object.keys(headers).some((h) => /^producer-id$/i.test(h)) ? 200 : 204;
        assert.equal(reply.status, wanted, `POST ${this.path}: ${reply.status} ${reply.text}`);
        return reply;
    }

    // Reads the whole stream page by page and joins the bodies.
    async readAll(offset = '-1', { pagesMax = 100_000 } = {}) {
        const parts = [];
        let reply;
        for (let page = 0; ; page++) {
            assert.ok(page < pagesMax, `${this.path}: no end after ${pagesMax} pages`);
            reply = await this.from(offset);
            assert.equal(reply.status, 200, `GET ${this.path} ${offset}: ${reply.status} ${reply.text}`);
            parts.push(reply.body);
            if (reply.upToDate) {
                break;
            }
            assert.notEqual(reply.next, offset, `${this.path}: a page that does not move`);
            offset = reply.next;
        }
        return { body: Buffer.concat(parts), pages: parts, next: reply.next, closed: reply.closed };
    }

    // The messages of a JSON stream, page by page.
    async readMessages(offset = '-1') {
        const { pages, next, closed } = await this.readAll(offset);
        return { messages: pages.flatMap((page) => JSON.parse(page.toString())), next, closed };
    }
}

let count = 0;
export function uniqueName(prefix = 's') {
    return `${prefix}-${process.pid}-${++count}`;
}

export function producer(id, epoch, seq) {
    return { 'Producer-Id': id, 'Producer-Epoch': String(epoch), 'Producer-Seq': String(seq) };
}

export function assertIncreasing(offsets) {
    for (let i = 1; i < offsets.length; i++) {
        assert.ok(offsets[i - 1] < offsets[i], `${offsets[i - 1]} is not before ${offsets[i]}`);
    }
}

// Every error explains itself in the same shape, and is never cached.
export function assertProblem(reply, status) {
    const statuses = [status].flat();
    assert.ok(statuses.includes(reply.status),
              `expected ${statuses.join(' or ')}, got ${reply.status}: ${reply.text}`);
    assert.match(reply.headers['content-type'] ?? '', /^application\/problem\+json/);
    assert.match(reply.headers['cache-control'] ?? '', /no-store/);
    const problem = reply.json();
    assert.equal(problem.status, reply.status);
    assert.equal(typeof problem.title, 'string');
    assert.equal(typeof problem.detail, 'string');
    assert.match(problem.detail, /\s/, 'detail is a sentence');
}
