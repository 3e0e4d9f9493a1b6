// Tier 70: kill -9 under load (C10, D8, I10, J8, K5, R26), again and again on
// one directory, against a model of what was acknowledged. ARBE_KILLS sets how
// often, ARBE_SEED repeats a run.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { JSON_TYPE, Stream, TEXT } from './lib/http.mjs';
import { ModelStream, MODEL_TYPES } from './lib/model.mjs';
import { Server } from './lib/server.mjs';
import { SANITIZER, randomFrom, sleep } from './lib/wait.mjs';

const KILLS = Number(process.env.ARBE_KILLS ?? (SANITIZER ? 6 : 20));
const SEED = Number(process.env.ARBE_SEED ?? Date.now() % 1_000_000);

class Hunt {
    constructor(server, random) {
        this.server = server;
        this.random = random;
        this.models = [];
        this.count = 0;
        this.killing = false;
        this.broken = [];
    }

    model(type, name = `m${this.count++}`) {
        const model = new ModelStream(new Stream(this.server, name, type));
        model.onBroken = (error) => {
            if (!this.killing) {
                this.broken.push(error);
            }
        };
        this.models.push(model);
        return model;
    }

    padding() {
        const { random } = this;
        return random.below(20) === 0 ? random.between(5_000, 60_000) : random.between(0, 300);
    }

    // Each load is a loop that ends when the server is gone.
    async plainWriter(model, writer) {
        for (let i = 0; !this.killing && await model.append(writer, `${this.round}-${i}`, this.padding()); i++) {
            // go on
        }
    }

    async producerWriter(model, id) {
        while (!this.killing && model.closed === 'no') {
            await model.appendAs(id, this.padding());
        }
    }

    // Creates, appends, then closes or deletes or forks.
    async lifecycle(lane) {
        while (!this.killing) {
            const model = this.model(this.random.pick(MODEL_TYPES));
            if (!(await model.create())) {
                return;
            }
            let whole = true;
            for (let i = 0; i < this.random.between(0, 4) && whole; i++) {
                whole = await model.append(`l${lane}`, `${this.round}-${i}`, this.padding());
            }
            const what = this.random.below(4);
            if (what === 0) {
                await model.close();
            } else if (what === 1) {
                await model.remove();
            } else if (what === 2 && whole) {
                await this.fork(model, lane);
            }
        }
    }

    async fork(source, lane) {
        const made = this.model(source.type);
        made.prefix = [...(source.prefix ?? []), ...source.settled, ...source.acked.map(({ key }) => key)];
        if (!(await made.create({ 'Stream-Forked-From': source.stream.path }))) {
            return;
        }
        if (await made.append(`f${lane}`, `${this.round}-0`, this.padding())) {
            if (this.random.below(2)) {
                await source.remove();
            }
            await made.append(`f${lane}`, `${this.round}-1`, this.padding());
        }
    }

    async oneRound(round, [text, json]) {
        this.round = round;
        this.killing = false;
        const { random } = this;
        const own = this.model(random.pick([TEXT, JSON_TYPE]));
        await own.create();
        const loads = [
            this.plainWriter(text, 'a'), this.plainWriter(text, 'b'), this.plainWriter(json, 'a'),
            this.producerWriter(text, 'p0'), this.producerWriter(text, 'p1'), this.producerWriter(json, 'p0'),
            this.producerWriter(own, 'q0'), this.producerWriter(own, 'q1'), this.plainWriter(own, 'c'),
            ...[0, 1, 2, 3].map((lane) => this.lifecycle(lane)),
            text.follow(() => this.killing), json.follow(() => this.killing), own.follow(() => this.killing),
        ];
        await sleep(random.between(150, 600));
        if (random.below(3) === 0) {
            // The kill falls together with the close of a stream that is being read.
            loads.push(own.close());
        }
        this.killing = true;
        await this.server.crash();
        await Promise.all(loads);
        assert.deepEqual(this.broken.map(String), [], 'connections broke before the kill');
        // Sometimes recovery itself is killed, early or late.
        for (let again = random.below(3); again > 0; again--) {
            this.server.launch();
            await sleep(random.below(60));
            await this.server.kill('SIGKILL');
        }
        await this.server.start();
        await this.verify();
    }

    async verify() {
        this.kept = 0;
        for (const model of this.models) {
            await model.verify();
            this.kept += model.settled.length;
        }
        // Dead and finished streams need not be looked at for ever.
        const keep = this.models.slice(0, 2);
        const rest = this.models.slice(2).filter((model) => model.created === 'yes');
        this.models = [...keep, ...rest.slice(-120)];
    }
}

function hunt(name, flags, kills, seed) {
    test(`${name} (${kills} kills, ARBE_SEED=${seed})`, { timeout: 120_000 + kills * 20_000 }, async (t) => {
        const random = randomFrom(seed);
        const server = new Server(flags);
        await server.start();
        try {
            const it = new Hunt(server, random);
            const long = [it.model(TEXT, 'long-text'), it.model(JSON_TYPE, 'long-json')];
            await long[0].create();
            await long[1].create();
            for (let round = 0; round < kills; round++) {
                await it.oneRound(round, long);
            }
            await server.restart();
            await it.verify();
            t.diagnostic(`${it.kept} records in ${it.count} streams and 2 long ones stood the kills`);
        } catch (error) {
            error.message += `\nARBE_SEED=${seed}\n${server.tail()}`;
            throw error;
        } finally {
            await server.dispose();
        }
    });
}

describe('kill -9 under load', () => {
    hunt('C10, D8, I10, J8, K5: small segments, checkpoints all the time',
         ['--wal-segment', '1MiB', '--checkpoint-bytes', '2MiB', '--checkpoint-interval', '200ms', '--long-poll-timeout', '300ms'],
         Math.ceil(KILLS * 0.6), SEED);
    hunt('R26: default sizes, everything in the log', ['--long-poll-timeout', '300ms'], Math.ceil(KILLS * 0.25), SEED + 1);
    hunt('K5: --durability os survives a kill too',
         ['--durability', 'os', '--wal-segment', '1MiB', '--checkpoint-bytes', '4MiB', '--checkpoint-interval', '300ms',
          '--long-poll-timeout', '300ms'], Math.ceil(KILLS * 0.25), SEED + 2);
});
