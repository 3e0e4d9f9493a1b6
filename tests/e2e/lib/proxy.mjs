// A proxy between a client and one server. It notes every request, and spoils
// answers as a test wishes: late, dropped, refused, cut short, garbled.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { pipeline } from 'node:stream';
import { eventually, sleep } from './wait.mjs';

export class Proxy {
    // server: a Server, whose address is looked up for each request.
    constructor(server) {
        this.server = server;
        this.requests = [];
        this.faults = [];
        this.agent = new http.Agent({ keepAlive: true, maxSockets: Infinity });
        this.http = http.createServer((req, res) => {
            this.serve(req, res).catch(() => res.destroy());
        });
    }

    async start() {
        this.http.listen(0, '127.0.0.1');
        await once(this.http, 'listening');
        this.base = `http://127.0.0.1:${this.http.address().port}`;
        return this;
    }

    async stop() {
        this.http.close();
        this.http.closeAllConnections();
        this.agent.destroy();
    }

    // The next `count` requests that match get the fault. What may be asked for:
    // method, live (a mode, or 'none'); delay (ms), drop, status with retryAfter and
    // text, cut (bytes that are left of the body), garble, event { type, data }.
    spoil(path, fault, count = 1) {
        this.faults.push({ path, count, ...fault });
    }

    heal() {
        this.faults = [];
    }

    // What came for one stream so far, in order.
    seen(path, method) {
        return this.requests.filter((r) => r.path === path && (method === undefined || r.method === method));
    }

    async untilLive(path, count = 1) {
        await eventually('a live request', () => this.seen(path).filter((r) => r.query.has('live')).length >= count);
    }

    takeFault(note) {
        const at = this.faults.findIndex((f) => f.path === note.path && f.count > 0 &&
            (f.method === undefined || f.method === note.method) &&
            (f.live === undefined || f.live === (note.query.get('live') ?? 'none')));
        if (at < 0) {
            return {};
        }
        this.faults[at].count--;
        return this.faults[at];
    }

    async serve(req, res) {
        const url = new URL(req.url, 'http://proxy');
        const note = {
            method: req.method, path: decodeURIComponent(url.pathname), query: url.searchParams,
            headers: req.headers, at: Date.now(),
        };
        const fault = this.takeFault(note);
        this.requests.push(note);
        const chunks = [];
        for await (const chunk of req) {
            chunks.push(chunk);
        }
        note.body = Buffer.concat(chunks);
        if (fault.delay !== undefined) {
            await sleep(fault.delay);
        }
        if (fault.drop) {
            req.socket.destroy();
            return;
        }
        if (fault.status !== undefined) {
            const retry = fault.retryAfter === undefined ? {} : { 'Retry-After': fault.retryAfter };
            res.writeHead(fault.status, { 'Content-Type': 'text/plain', ...retry });
            res.end(fault.text ?? 'not now\n');
            return;
        }
        await this.forward(req, note, fault, res);
    }

    async forward(req, note, fault, res) {
        const headers = { ...req.headers };
        if (fault.cut !== undefined || fault.garble) {
            delete headers['accept-encoding'];
        }
        const { hostname, port } = new URL(this.server.base);
        const up = http.request({
            hostname, port, method: req.method, path: req.url, headers, agent: this.agent,
        });
        up.on('error', () => res.destroy());
        res.on('close', () => up.destroy());
        up.end(note.body);
        const [answer] = await once(up, 'response');
        note.status = answer.statusCode;
        if (fault.cut === undefined && !fault.garble) {
            res.writeHead(answer.statusCode, answer.headers);
            if (fault.event !== undefined) {
                res.write(`event: ${fault.event.type}\ndata: ${fault.event.data}\n\n`);
            }
            res.flushHeaders();
            pipeline(answer, res, () => {}); // what breaks on one side breaks on the other
            return;
        }
        let body = Buffer.concat(await answer.toArray());
        assert.ok(body.length > 0, 'there is no body to spoil');
        if (fault.cut !== undefined) {
            body = body.subarray(0, fault.cut);
        } else {
            body.write('X');
        }
        // It looks whole: only what it says is broken.
        const { 'transfer-encoding': _, ...rest } = answer.headers;
        res.writeHead(answer.statusCode, { ...rest, 'content-length': body.length });
        res.end(body);
    }
}
