// A long-poll client that trusts only Stream-Next-Offset and Stream-Cursor.
import assert from 'node:assert/strict';

export class Follower {
    constructor(stream, offset = '-1') {
        this.stream = stream;
        this.offset = offset;
        this.cursor = null;
        this.parts = [];
        this.bytes = 0;
        this.timeouts = 0;
        this.closed = false;
    }

    // One poll. Returns the reply.
    async poll(options) {
        const cursor = this.cursor === null ? '' : `&cursor=${this.cursor}`;
        const reply = await this.stream.poll(this.offset, cursor, {}, options);
        if (reply.status === 204) {
            this.timeouts++;
            assert.equal(reply.body.length, 0);
            assert.ok(reply.upToDate, 'a 204 says up-to-date');
            if (this.offset !== '-1' && this.offset !== 'now') {
                assert.equal(reply.next, this.offset, 'a 204 stays at the requested place');
            }
        } else {
            assert.equal(reply.status, 200, reply.text);
            if (this.offset !== '-1' && this.offset !== 'now') {
                assert.ok(reply.next >= this.offset, 'next never goes back');
            }
            this.parts.push(reply.body);
            this.bytes += reply.body.length;
        }
        this.offset = reply.next;
        this.cursor = reply.headers['stream-cursor'] ?? null;
        this.closed = reply.closed;
        return reply;
    }

    // Polls until `bytes` bytes have come or the stream is closed.
    async untilBytes(bytes) {
        while (this.bytes < bytes && !this.closed) {
            await this.poll();
        }
        return this.body;
    }

    async untilClosed() {
        while (!this.closed) {
            await this.poll();
        }
        return this.body;
    }

    get body() {
        return Buffer.concat(this.parts);
    }
}
