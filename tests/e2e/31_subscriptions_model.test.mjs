// Tier 30: random requests, kills and restarts against a naive model of subscriptions. One client, leases that do not
// end: every answer is then determined, but for generations, of which only the order is.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { serverFor } from './lib/server.mjs';
import { LONG_LEASE_MS, Subscription, assertError, assertStatus, jsonStream } from './lib/subscriptions.mjs';
import { eventually, randomFrom, rounds } from './lib/wait.mjs';

const ZERO = '0000000000000000_0000000000000000';
const NAMES = ['m/a', 'm/b', 'm/c/d', 'n/a', 'n/b/c/d', 'o'];
// None of them matches a wake stream: what others are told there would be work like any other.
const PATTERNS = ['m/*', 'm/**', '*/a', '**/d', '**/b/**', 'n/b/*/d', 'o', undefined];

function matches(pattern, name) {
    const [head, ...rest] = pattern;
    if (head === undefined) {
        return name.length === 0;
    }
    if (head === '**') {
        return matches(rest, name) || (name.length > 0 && matches(pattern, name.slice(1)));
    }
    return name.length > 0 && (head === '*' || head === name[0]) && matches(rest, name.slice(1));
}

class Model {
    constructor() {
        this.tails = new Map();         // stream -> tail
        this.subscriptions = new Map(); // id -> { config, links, claim, generation }
        this.generations = new Map();   // id -> the highest seen, also of those that were deleted
    }

    globs({ pattern }, name) {
        return pattern !== undefined && matches(pattern.split('/'), name.split('/'));
    }

    create(id, config) {
        const links = new Map();
        for (const name of this.tails.keys()) {
            if (this.globs(config, name)) {
                links.set(name, { link_type: 'glob', acked_offset: this.tails.get(name) });
            }
        }
        this.subscriptions.set(id, { config, links, claim: null });
        this.link(id, config.streams);
    }

    link(id, names) {
        const { links } = this.subscriptions.get(id);
        for (const name of names) {
            links.set(name, { link_type: 'explicit', acked_offset: links.get(name)?.acked_offset ?? this.tails.get(name) ?? ZERO });
        }
    }

    unlink(id, name) {
        const { config, links } = this.subscriptions.get(id);
        const link = links.get(name);
        if (link && this.tails.has(name) && this.globs(config, name)) {
            link.link_type = 'glob';
        } else {
            links.delete(name);
        }
    }

    grew(name, tail) {
        this.tails.set(name, tail);
        for (const { config, links } of this.subscriptions.values()) {
            if (this.globs(config, name) && !links.has(name)) {
                links.set(name, { link_type: 'glob', acked_offset: '-1' });
            }
        }
    }

    removed(name) {
        this.tails.delete(name);
        this.subscriptions.forEach(({ links }) => links.delete(name));
    }

    // As GET tells the links, sorted.
    view(id) {
        return [...this.subscriptions.get(id).links].map(([path, link]) => ({ path, ...link })).sort((a, b) => (a.path < b.path ? -1 : 1));
    }

    // As a claim tells them.
    pending(id) {
        return this.view(id).map((link) => {
            const tail_offset = this.tails.get(link.path) ?? ZERO;
            const from = link.acked_offset === '-1' ? ZERO : link.acked_offset;
            return { ...link, tail_offset, has_pending: tail_offset > from };
        });
    }
}

const sorted = (streams) => [...streams].sort((a, b) => (a.path < b.path ? -1 : 1));

class Run {
    constructor(server, seed) {
        this.server = server;
        this.random = randomFrom(seed);
        this.model = new Model();
    }

    async all(what) {
        for (const id of this.model.subscriptions.keys()) {
            const wanted = this.model.view(id);
            let found;
            await eventually(`${what}: the links of ${id}`, async () => {
                found = sorted((await new Subscription(this.server, id).read()).streams);
                return JSON.stringify(found) === JSON.stringify(wanted);
            }, { ms: 10_000 }).catch(() => assert.deepEqual(found, wanted, `${what}: the links of ${id}`));
        }
    }

    async step() {
        const { random, model, server } = this;
        const id = `s${random.below(3)}`;
        const subscription = new Subscription(server, id);
        const there = model.subscriptions.get(id);
        const name = random.pick(NAMES);
        const stream = jsonStream(server, name);
        switch (random.below(11)) {
        case 0:
        case 1: {
            if (model.tails.has(name)) {
                model.grew(name, (await stream.append('[1]')).next);
            } else {
                model.grew(name, (await stream.create({}, '[1]')).next);
            }
            return `append ${name}`;
        }
        case 2:
            if (random.below(3) === 0 && model.tails.has(name)) {
                assertStatus(await stream.remove(), 204);
                model.removed(name);
            }
            return `remove ${name}`;
        case 3:
            await this.put(subscription, there);
            return `put ${id}`;
        case 4:
            if (random.below(4) === 0) {
                assertStatus(await subscription.remove(), 204);
                model.subscriptions.delete(id);
            }
            return `delete ${id}`;
        case 5: {
            const names = NAMES.filter(() => random.below(4) === 0);
            const reply = await subscription.link(names);
            if (there) {
                assertStatus(reply, 204);
                model.link(id, names);
            } else {
                assertError(reply, 404, 'SUBSCRIPTION_NOT_FOUND');
            }
            return `link ${id} ${names}`;
        }
        case 6: {
            const reply = await subscription.unlink(random.below(2) ? name : encodeURIComponent(name));
            if (there) {
                assertStatus(reply, 204);
                model.unlink(id, name);
            } else {
                assertError(reply, 404, 'SUBSCRIPTION_NOT_FOUND');
            }
            return `unlink ${id} ${name}`;
        }
        case 7:
        case 8:
            await this.claim(subscription, there);
            return `claim ${id}`;
        default:
            if (there?.claim) {
                await this.finish(subscription, there);
            }
            return `finish ${id}`;
        }
    }

    async put(subscription, there) {
        const pattern = this.random.pick(PATTERNS);
        const streams = NAMES.filter(() => this.random.below(3) === 0);
        if (pattern === undefined && streams.length === 0) {
            streams.push('m/a');
        }
        const config = { type: 'pull-wake', wake_stream: `wake/${subscription.id}`, lease_ttl_ms: LONG_LEASE_MS, pattern, streams };
        if (there && this.random.below(2)) {
            assert.deepEqual(sorted(assertStatus(await subscription.put(there.config), 200).json().streams), this.model.view(subscription.id));
        } else if (there) {
            const same = pattern === there.config.pattern && streams.join() === there.config.streams.join();
            assertStatus(await subscription.put(config), same ? 200 : 409);
        } else {
            const made = await subscription.create(config);
            this.model.create(subscription.id, config);
            assert.deepEqual(sorted(made.streams), this.model.view(subscription.id));
        }
    }

    async claim(subscription, there) {
        const { model } = this;
        const { id } = subscription;
        const reply = await subscription.claim();
        if (!there) {
            assertError(reply, 404, 'SUBSCRIPTION_NOT_FOUND');
            return;
        }
        if (there.claim) {
            assert.equal(assertError(reply, 409, 'ALREADY_CLAIMED').generation, there.claim.generation);
            return;
        }
        const wanted = model.pending(id);
        if (reply.status === 409) {
            assertError(reply, 409, 'NO_PENDING_WORK');
            assert.deepEqual(wanted.filter((one) => one.has_pending), [], 'nothing is pending');
            return;
        }
        const claim = assertStatus(reply, 200).json();
        assert.deepEqual(sorted(claim.streams), wanted);
        assert.ok(claim.generation > (model.generations.get(id) ?? 0), `generation ${claim.generation} of ${id}`);
        model.generations.set(id, claim.generation);
        there.old = there.claim ?? there.old;
        there.claim = claim;
    }

    async finish(subscription, there) {
        const { random, model } = this;
        const { claim } = there;
        if (random.below(4) === 0) {
            // Whatever is stale changes nothing.
            assertError(await subscription.ack({ ...claim, wake_id: 'w_0' }, { done: true }), 409, 'FENCED');
            assertError(await subscription.ack({ ...claim, generation: claim.generation - 1 }, { done: true }), 409, 'FENCED');
        }
        if (random.below(4) === 0) {
            assertStatus(await subscription.release(claim), 204);
            there.claim = null;
            return;
        }
        // Acks of streams that are still linked, up to where they are now or were.
        const acks = claim.streams.filter((one) => there.links.has(one.path) && model.tails.has(one.path) && random.below(3))
            .map((one) => ({ stream: one.path, offset: random.below(2) ? model.tails.get(one.path) : one.tail_offset }))
            .filter(({ stream, offset }) => {
                const { acked_offset } = there.links.get(stream);
                return offset >= (acked_offset === '-1' ? ZERO : acked_offset) && offset <= model.tails.get(stream);
            });
        const done = random.below(3) > 0;
        const { ok, next_wake } = assertStatus(await subscription.ack(claim, { acks, done }), 200).json();
        acks.forEach(({ stream, offset }) => { there.links.get(stream).acked_offset = offset; });
        assert.equal(ok, true);
        if (done) {
            there.claim = null;
            assert.equal(next_wake, model.pending(subscription.id).some((one) => one.has_pending));
            assertError(await subscription.ack(claim, { done: true }), 409, 'FENCED');
        }
    }

    async restart() {
        if (this.random.below(2)) {
            await this.server.crashAndRestart();
        } else {
            await this.server.restart();
        }
    }
}

describe('a model', () => {
    for (const seed of [1, 2, 3]) {
        test(`random requests, kills and restarts, seed ${seed}`, { timeout: 240_000 }, async (t) => {
            const server = await serverFor(t, ['--checkpoint-interval', '200ms']);
            const run = new Run(server, seed);
            for (let i = 0; i < 3; i++) {
                await jsonStream(server, `wake/s${i}`).create({}, '[]');
            }
            const log = [];
            try {
                for (let i = 0; i < rounds(600); i++) {
                    log.push(await run.step());
                    if (run.random.below(60) === 0) {
                        log.push('restart');
                        await run.restart();
                        await run.all(`after step ${i}`);
                    }
                }
                await run.all('at the end');
            } catch (error) {
                error.message += `\nlast steps: ${log.slice(-30).join('; ')}`;
                throw error;
            }
        });
    }
});
