// A socket that sends exactly the bytes it is given, and a reader of HTTP/1.1
// answers that trusts nothing: for malformed input, pipelining and cut-offs.
import assert from 'node:assert/strict';
import net from 'node:net';
import { withDeadline } from './wait.mjs';

export class Raw {
    static async open(server, options = {}) {
        const socket = net.connect({ host: '127.0.0.1', port: server.port, ...options });
        socket.setNoDelay(true);
        const raw = new Raw(socket);
        await withDeadline(new Promise((done, fail) => {
            socket.once('connect', done);
            socket.once('error', fail);
        }), 'connection');
        return raw;
    }

    constructor(socket) {
        this.socket = socket;
        this.buffer = Buffer.alloc(0);
        this.ended = false;   // there will be no more bytes
        this.finished = false; // the peer sent FIN
        this.reset = null;    // the error that ended it, if any
        this.bytes = 0;
        this.wake = () => {};
        this.chunks = [];
        socket.on('data', (chunk) => {
            this.bytes += chunk.length;
            this.chunks.push(chunk);
            this.wake();
        });
        socket.on('end', () => {
            this.ended = true;
            this.finished = true;
            this.wake();
        });
        socket.on('error', (error) => {
            this.reset = error;
            this.ended = true;
            this.wake();
        });
        socket.on('close', () => {
            this.ended = true;
            this.wake();
        });
    }

    send(data) {
        this.socket.write(typeof data === 'string' ? Buffer.from(data, 'latin1') : data);
        return this;
    }

    // Sends and waits until the kernel has taken it all.
    async sendAll(data) {
        await withDeadline(new Promise((done) => {
            this.socket.write(data, () => done());
        }), 'room to send');
    }

    gather() {
        if (this.chunks.length > 0) {
            this.buffer = Buffer.concat([this.buffer, ...this.chunks]);
            this.chunks = [];
        }
    }

    // Waits for more bytes; false when there will be none.
    async more() {
        if (this.chunks.length === 0 && !this.ended) {
            await withDeadline(new Promise((done) => { this.wake = done; }), 'bytes from the server');
        }
        const got = this.chunks.length > 0;
        this.gather();
        return got;
    }

    async take(count) {
        this.gather();
        while (this.buffer.length < count) {
            if (!(await this.more())) {
                throw new Error(`connection ended ${count - this.buffer.length} bytes early`);
            }
        }
        const part = this.buffer.subarray(0, count);
        this.buffer = this.buffer.subarray(count);
        return part;
    }

    async takeUntil(mark) {
        this.gather();
        let from = 0;
        for (;;) {
            const at = this.buffer.indexOf(mark, from, 'latin1');
            if (at >= 0) {
                const part = this.buffer.subarray(0, at);
                this.buffer = this.buffer.subarray(at + mark.length);
                return part.toString('latin1');
            }
            from = Math.max(0, this.buffer.length - mark.length);
            if (!(await this.more())) {
                throw new Error(`connection ended before ${JSON.stringify(mark)}; had ` +
                    JSON.stringify(this.buffer.toString('latin1').slice(0, 300)));
            }
        }
    }

    // Reads one head: { status, reason, version, headers, list }.
    async head() {
        const lines = (await this.takeUntil('\r\n\r\n')).split('\r\n');
        const found = /^HTTP\/(1\.[01]) (\d{3}) ?(.*)$/.exec(lines[0]);
        assert.ok(found, `status line ${JSON.stringify(lines[0])}`);
        const headers = {};
        const list = [];
        for (const line of lines.slice(1)) {
            const header = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/.exec(line);
            assert.ok(header, `header line ${JSON.stringify(line)}`);
            const name = header[1].toLowerCase();
            headers[name] = name in headers ? `${headers[name]}, ${header[2]}` : header[2];
            list.push([header[1], header[2]]);
        }
        return { version: found[1], status: Number(found[2]), reason: found[3], headers, list };
    }

    // Reads one whole answer. `method` matters for HEAD.
    async response(method = 'GET') {
        const head = await this.head();
        const { status, headers } = head;
        let body = Buffer.alloc(0);
        if (method === 'HEAD' || status === 204 || status === 304 || status < 200) {
            body = Buffer.alloc(0);
        } else if (/chunked/i.test(headers['transfer-encoding'] ?? '')) {
            const parts = [];
            for (let chunk = await this.chunk(); chunk.length > 0; chunk = await this.chunk()) {
                parts.push(chunk);
            }
            body = Buffer.concat(parts);
        } else if ('content-length' in headers) {
            assert.match(headers['content-length'], /^\d+$/);
            body = Buffer.from(await this.take(Number(headers['content-length'])));
        } else {
            body = await this.rest();
        }
        const text = body.toString('utf8');
        return { ...head, body, text, next: headers['stream-next-offset'],
                 json: () => JSON.parse(text) };
    }

    async chunk() {
        const line = await this.takeUntil('\r\n');
        assert.match(line, /^[0-9a-fA-F]+(;.*)?$/, 'chunk size line');
        const size = parseInt(line, 16);
        const data = Buffer.from(await this.take(size));
        assert.equal((await this.take(2)).toString('latin1'), '\r\n');
        return data;
    }

    // Everything until the peer ends the connection.
    async rest() {
        while (await this.more()) {
            // keep reading
        }
        const all = this.buffer;
        this.buffer = Buffer.alloc(0);
        return all;
    }

    // Insists that the server ends the connection, and says how.
    async endOfConnection() {
        const extra = await this.rest();
        return { extra: extra.toString('latin1'), reset: this.reset };
    }

    destroy() {
        this.socket.destroy();
    }

    // Ends the connection with RST instead of FIN.
    resetNow() {
        this.socket.resetAndDestroy();
    }
}

// One exchange on a fresh connection.
export async function exchange(server, data, method) {
    const raw = await Raw.open(server);
    try {
        return await raw.send(data).response(method);
    } finally {
        raw.destroy();
    }
}

export function head(method, target, headers = [], version = 'HTTP/1.1') {
    const lines = [`${method} ${target} ${version}`, 'Host: arbe.test', ...headers];
    return `${lines.join('\r\n')}\r\n\r\n`;
}
