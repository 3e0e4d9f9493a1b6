// Reads Server-Sent Events as a browser does (WHATWG HTML 9.2): LF, CR and
// CRLF all end a line, one space after the colon is dropped.
import assert from 'node:assert/strict';
import { Raw, head } from './raw.mjs';
import { withDeadline } from './wait.mjs';

export class Sse {
    static async open(stream, offset, { query = '', headers = [], version, rawOptions } = {}) {
        const raw = await Raw.open(stream.server, rawOptions);
        const target = `${stream.path}?offset=${encodeURIComponent(offset)}&live=sse${query}`;
        raw.send(head('GET', target, headers, version));
        const first = await raw.head();
        const sse = new Sse(raw, first);
        if (first.status === 200) {
            sse.done = sse.pump();
            sse.done.catch(() => {});
        }
        return sse;
    }

    constructor(raw, first) {
        this.raw = raw;
        this.status = first.status;
        this.headers = first.headers;
        this.version = first.version;
        this.events = [];
        this.at = 0;
        this.comments = 0;
        this.ended = false;
        this.cleanEnd = false;
        this.failure = null;
        this.text = '';
        this.waiters = [];
        this.lineBuffer = '';
        this.decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
        this.resetEvent();
    }

    resetEvent() {
        this.type = '';
        this.lines = [];
    }

    notify() {
        const waiters = this.waiters;
        this.waiters = [];
        waiters.forEach((wake) => wake());
    }

    async pump() {
        try {
            if (/chunked/i.test(this.headers['transfer-encoding'] ?? '')) {
                for (;;) {
                    const chunk = await this.chunkNoDeadline();
                    if (chunk === null) {
                        break;
                    }
                    this.feed(this.decoder.decode(chunk, { stream: true }));
                }
                this.cleanEnd = true;
            } else {
                while (await this.moreNoDeadline()) {
                    const part = this.raw.buffer;
                    this.raw.buffer = Buffer.alloc(0);
                    this.feed(this.decoder.decode(part, { stream: true }));
                }
                this.cleanEnd = this.raw.reset === null;
            }
        } catch (error) {
            this.failure = error;
        }
        this.ended = true;
        this.notify();
    }

    async moreNoDeadline() {
        const { raw } = this;
        if (raw.buffer.length > 0) {
            return true;
        }
        if (raw.chunks.length === 0 && !raw.ended) {
            await new Promise((done) => { raw.wake = done; });
        }
        const got = raw.chunks.length > 0;
        raw.gather();
        return got;
    }

    async chunkNoDeadline() {
        const { raw } = this;
        // Waiting for the first byte of a chunk may take as long as it takes.
        if (!(await this.moreNoDeadline())) {
            throw new Error('ended without the last chunk');
        }
        const chunk = await raw.chunk();
        return chunk.length === 0 ? null : chunk;
    }

    feed(text) {
        this.text += text;
        this.lineBuffer += text;
        for (;;) {
            const at = this.lineBuffer.search(/[\r\n]/);
            if (at < 0) {
                break;
            }
            const cr = this.lineBuffer[at] === '\r';
            if (cr && at + 1 === this.lineBuffer.length) {
                break;   // the LF of a CRLF may still come
            }
            const width = cr && this.lineBuffer[at + 1] === '\n' ? 2 : 1;
            const line = this.lineBuffer.slice(0, at);
            this.lineBuffer = this.lineBuffer.slice(at + width);
            this.line(line);
        }
        this.notify();
    }

    line(line) {
        if (line === '') {
            if (this.lines.length > 0 || this.type !== '') {
                this.events.push({ event: this.type || 'message', data: this.lines.join('\n'),
                                   lines: this.lines });
            }
            this.resetEvent();
            return;
        }
        if (line.startsWith(':')) {
            this.comments++;
            return;
        }
        const colon = line.indexOf(':');
        const field = colon < 0 ? line : line.slice(0, colon);
        let value = colon < 0 ? '' : line.slice(colon + 1);
        if (value.startsWith(' ')) {
            value = value.slice(1);
        }
        if (field === 'event') {
            this.type = value;
        } else if (field === 'data') {
            this.lines.push(value);
        } else {
            assert.ok(field === 'id' || field === 'retry', `unknown SSE field ${JSON.stringify(line)}`);
        }
    }

    // Waits until check() is truthy; fails when the stream ends before.
    async until(what, check) {
        const wait = async () => {
            for (;;) {
                const value = check();
                if (value) {
                    return value;
                }
                if (this.ended) {
                    throw new Error(`SSE ended before ${what}: ${this.failure ?? ''}\n${this.text.slice(-500)}`);
                }
                await new Promise((done) => this.waiters.push(done));
            }
        };
        return await withDeadline(wait(), `${what} over SSE`);
    }

    // The next event, in order.
    async next() {
        await this.until('the next event', () => this.events.length > this.at);
        return this.events[this.at++];
    }

    // The next event, which must be a control; its data parsed.
    async control() {
        const event = await this.next();
        assert.equal(event.event, 'control', `a control event, got ${JSON.stringify(event)}`);
        return JSON.parse(event.data);
    }

    // The next event, which must be data; its text.
    async data() {
        const event = await this.next();
        assert.equal(event.event, 'data', `a data event, got ${JSON.stringify(event)}`);
        return event.data;
    }

    // Reads on until `count` bytes or messages are joined; gives the joined text of data
    // events up to a control event that says upToDate or streamClosed.
    async caughtUp() {
        const parts = [];
        for (;;) {
            const event = await this.next();
            if (event.event === 'data') {
                parts.push(event.data);
            } else {
                const control = JSON.parse(event.data);
                if (control.upToDate || control.streamClosed) {
                    return { parts, control };
                }
            }
        }
    }

    // Insists that the server ends the response in an orderly way.
    async end() {
        await withDeadline(this.done, 'end of the SSE response');
        assert.equal(this.failure, null);
        assert.ok(this.cleanEnd, `the SSE response was cut: ${this.raw.reset}`);
    }

    close() {
        this.raw.destroy();
    }
}

export function fromBase64(text) {
    const joined = text.replace(/[\r\n]/g, '');
    assert.equal(joined.length % 4, 0, 'base64 length is a multiple of 4');
    assert.match(joined, /^[A-Za-z0-9+/]*={0,2}$/);
    return Buffer.from(joined, 'base64');
}
