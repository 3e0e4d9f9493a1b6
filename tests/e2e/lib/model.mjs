// A model of one stream under load and kills. It knows what was acknowledged,
// what was asked and never answered, and so what a server may and must show.
import assert from 'node:assert/strict';
import { JSON_TYPE, OCTETS, TEXT, producer } from './http.mjs';

// Appends are lines "writer:number:padding\n", or JSON arrays of such texts.
export class ModelStream {
    constructor(stream) {
        this.stream = stream;
        this.type = stream.type;
        this.json = stream.type === JSON_TYPE;
        this.created = 'no';        // no, asked, yes
        this.deleted = 'no';
        this.closed = 'no';
        this.prefix = null;         // keys inherited by a fork
        this.settled = [];          // keys that were there at the last look
        this.acked = [];            // { key, next } since then
        this.unknown = new Map();   // key: asked, outcome unknown
        this.producers = new Map(); // id: { seq: next to use, pending: { seq, key } or null }
        this.seen = '-1';           // the farthest place that any reader was shown
        this.seenText = '';         // text that a follower was shown, from the start
        this.seenClosed = false;
    }

    key(writer, number, padding) {
        return `${writer}:${number}:${'p'.repeat(padding)}`;
    }

    body(key) {
        return this.json ? JSON.stringify([key]) : `${key}\n`;
    }

    parse(text) {
        if (this.json) {
            return JSON.parse(text);
        }
        assert.ok(text === '' || text.endsWith('\n'), `${this.stream.path}: a torn record ${JSON.stringify(text.slice(-80))}`);
        return text.split('\n').slice(0, -1);
    }

    // One append without a producer. False when no answer came.
    async append(writer, number, padding, headers = {}) {
        const key = this.key(writer, number, padding);
        this.unknown.set(key, 'asked');
        const reply = await this.ask(() => this.stream.post(this.body(key), headers, { fresh: false }));
        if (!reply) {
            return false;
        }
        this.settle(key, reply, 204);
        return reply.status === 204;
    }

    async appendAs(id, padding) {
        let state = this.producers.get(id);
        if (!state) {
            state = { seq: 0, pending: null };
            this.producers.set(id, state);
        }
        const seq = state.seq;
        const key = this.key(id, seq, padding);
        state.pending = { seq, key };
        this.unknown.set(key, 'asked');
        const reply = await this.ask(() => this.stream.post(this.body(key), producer(id, 0, seq)));
        if (!reply) {
            return false;
        }
        state.pending = null;
        if (reply.status === 200) {
            state.seq++;
        }
        this.settle(key, reply, 200);
        return reply.status === 200;
    }

    settle(key, reply, good) {
        this.unknown.delete(key);
        if (reply.status === good) {
            this.acked.push({ key, next: reply.next });
            return;
        }
        // A refusal must have a reason that the model knows of.
        const reason = reply.status === 409 ? this.closed !== 'no' : [404, 410].includes(reply.status) && this.deleted !== 'no';
        assert.ok(reason, `${this.stream.path}: ${reply.status} ${reply.text}`);
    }

    // null when the connection broke, which only a kill may do.
    async ask(send) {
        try {
            return await send();
        } catch (error) {
            if (this.onBroken) {
                this.onBroken(error);
            }
            return null;
        }
    }

    async create(headers = {}, body) {
        this.created = 'asked';
        const reply = await this.ask(() => this.stream.put(headers, body));
        if (reply) {
            assert.equal(reply.status, 201, `${this.stream.path}: ${reply.text}`);
            this.created = 'yes';
        }
        return Boolean(reply);
    }

    async close() {
        this.closed = 'asked';
        const reply = await this.ask(() => this.stream.close());
        if (reply) {
            assert.ok(reply.status === 204 || (this.deleted !== 'no' && reply.status >= 400), reply.text);
            this.closed = reply.status === 204 ? 'yes' : this.closed;
        }
        return Boolean(reply);
    }

    async remove() {
        this.deleted = 'asked';
        const reply = await this.ask(() => this.stream.remove());
        if (reply) {
            assert.equal(reply.status, 204, reply.text);
            this.deleted = 'yes';
        }
        return Boolean(reply);
    }

    // A long-poll follower that notes everything it is shown, until it breaks.
    async follow(stop) {
        let offset = '-1';
        let text = '';
        while (!stop()) {
            const from = offset;
            const reply = await this.ask(() => this.stream.poll(from));
            if (!reply || reply.status >= 400) {
                return;
            }
            if (reply.status === 200) {
                text += this.json ? this.parse(reply.text).map((key) => `${key}\n`).join('') : reply.text;
            }
            offset = reply.next;
            if (text.length >= this.seenText.length) {
                this.seenText = text;
            }
            this.seen = offset > this.seen || this.seen === '-1' ? offset : this.seen;
            if (reply.closed) {
                this.seenClosed = true;
                return;
            }
        }
    }

    // After a restart: everything that was promised is there, and nothing else.
    async verify() {
        const head = await this.stream.head();
        if (!this.verifyExistence(head)) {
            return;
        }
        const retried = await this.settleProducers();
        const { body, pages, next, closed } = await this.stream.readAll();
        const all = this.json ? pages.flatMap((page) => JSON.parse(page.toString())) : this.parse(body.toString());
        const inherited = this.prefix ?? [];
        const where = this.stream.path;
        assert.deepEqual(all.slice(0, inherited.length), inherited, `${where}: the inherited part`);
        const keys = all.slice(inherited.length);
        this.verifyKeys(keys, retried);
        await this.verifyPlaces(keys);
        this.verifySeen(all, next, closed);
        if (this.closed === 'yes') {
            assert.ok(closed, `${where}: closed and now open`);
        }
        // All that was unknown is settled now: there for ever, or never to come.
        this.closed = closed ? 'yes' : 'no';
        this.settled = keys;
        this.acked = [];
        this.unknown.clear();
    }

    // Whether there is a stream to look at.
    verifyExistence(head) {
        const where = this.stream.path;
        const gone = [404, 410].includes(head.status);
        if (this.created === 'no') {
            return false;
        }
        if (this.created === 'asked' && head.status === 404) {
            this.created = 'no';
            return false;
        }
        if (this.deleted === 'yes') {
            assert.ok(gone, `${where}: deleted and now ${head.status}`);
            return false;
        }
        if (this.deleted === 'asked' && gone) {
            this.deleted = 'yes';
            return false;
        }
        assert.equal(head.status, 200, `${where}: lost`);
        this.created = 'yes';
        this.deleted = 'no';
        return true;
    }

    verifyKeys(keys, retried) {
        const where = this.stream.path;
        assert.deepEqual(keys.slice(0, this.settled.length), this.settled, `${where}: what was there before`);
        const places = new Map(keys.map((key, i) => [key, i]));
        assert.equal(places.size, keys.length, `${where}: something is there twice`);
        const asked = new Set([...this.acked.map(({ key }) => key), ...this.unknown.keys()]);
        for (const key of keys.slice(this.settled.length)) {
            assert.ok(asked.has(key), `${where}: nobody wrote ${key.slice(0, 60)}`);
        }
        for (const key of [...this.acked.map((one) => one.key), ...retried]) {
            assert.ok(places.has(key), `${where}: acknowledged ${key.slice(0, 60)} is lost`);
        }
        this.acked.sort((a, b) => (a.next < b.next ? -1 : 1));
        for (let i = 1; i < this.acked.length; i++) {
            const [before, after] = [this.acked[i - 1], this.acked[i]];
            assert.ok(before.next < after.next, `${where}: two appends with one offset`);
            assert.ok(places.get(before.key) < places.get(after.key), `${where}: order changed`);
        }
    }

    // Retries what producers never got an answer for; gives the keys that are there by now.
    async settleProducers() {
        const there = [];
        for (const [id, state] of this.producers) {
            if (!state.pending) {
                continue;
            }
            const { seq, key } = state.pending;
            const reply = await this.stream.post(this.body(key), producer(id, 0, seq));
            state.pending = null;
            if (reply.status === 409 && reply.closed) {
                continue;
            }
            assert.ok([200, 204].includes(reply.status), `${this.stream.path}: retry of ${id} ${seq}: ${reply.status} ${reply.text}`);
            state.seq = seq + 1;
            there.push(key);
        }
        return there;
    }

    // Reading from an acknowledged offset begins right behind that append.
    async verifyPlaces(keys) {
        const last = this.acked.length - 1;
        for (const i of new Set([0, Math.floor(last / 2), last])) {
            if (i < 0 || i > last) {
                continue;
            }
            const { key, next } = this.acked[i];
            const rest = await this.stream.readAll(next);
            const after = this.json ? rest.pages.flatMap((page) => JSON.parse(page.toString())) : this.parse(rest.body.toString());
            assert.deepEqual(after, keys.slice(keys.indexOf(key) + 1), `${this.stream.path}: from ${next}`);
        }
    }

    // K5, D8: what any reader was shown is still true.
    verifySeen(all, next, closed) {
        const where = this.stream.path;
        const whole = all.map((key) => `${key}\n`).join('');
        assert.ok(whole.startsWith(this.seenText), `${where}: a reader was shown what is now gone`);
        assert.ok(this.seen === '-1' || next >= this.seen, `${where}: the tail went back`);
        if (this.seenClosed) {
            assert.ok(closed, `${where}: a reader was told of the end`);
        }
    }
}

export const MODEL_TYPES = [TEXT, JSON_TYPE, OCTETS];
