// Random requests to the API, made from docs/openapi.json and then spoilt: whatever comes, the server says what was
// wrong, never 500, and goes on. The seed is printed; ARBE_SEED repeats it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DOCUMENT, METHODS, resolve } from './lib/openapi.mjs';
import { Raw } from './lib/raw.mjs';
import { Caller, bearer, nobody, serveFor } from './lib/serve.mjs';
import { randomFrom, rounds, withDeadline } from './lib/wait.mjs';

const SEED = Number(process.env.ARBE_SEED ?? Date.now() % 1e9);
const LANES = 6;

const OPERATIONS = Object.entries(DOCUMENT.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => ({
        path,
        method: method.toUpperCase(),
        operation: item[method],
        item,
    })),
);

const TEXTS = [
    '',
    'x',
    'owner',
    'null',
    '\u0000',
    '\ud800',
    '\u{1f600}',
    '"\\',
    'a'.repeat(201),
    'b'.repeat(5000),
    '../..',
    '%00',
    '\u202e',
    "' OR 1=1 --",
    '__proto__',
    'arbe.deleted.x',
    '0',
    '-1',
    '\r\nX: y',
];
const NUMBERS = [0, 1, -1, 0.5, 2 ** 31, 2 ** 53, 1e300, -1e-300, 86400];

// Texts of JSON that JavaScript would not write.
const ODD_JSON = [
    '{"a":1,"a":2}',
    '{"name":"\\ud800"}',
    '['.repeat(200) + ']'.repeat(200),
    '{"a":'.repeat(80) + '1' + '}'.repeat(80),
    '1e999',
    '-0',
    '123456789012345678901234567890',
    '"\\u0000"',
    '{"":{}}',
    ' \t\r\n{} ',
    '{"payload":{"type":"chat","text":"\\udc00"}}',
    '\u00ef\u00bb\u00bf{}',
];

class Maker {
    constructor(random, ids) {
        this.random = random;
        this.ids = ids;
    }

    odds(n) {
        return this.random.below(n) === 0;
    }

    text() {
        return this.odds(3) && this.ids.length > 0 ? this.random.pick(this.ids) : this.random.pick(TEXTS);
    }

    anything(depth = 0) {
        const kind = this.random.below(depth > 3 ? 4 : 6);
        switch (kind) {
            case 0:
                return this.text();
            case 1:
                return this.random.pick(NUMBERS);
            case 2:
                return this.random.pick([true, false, null]);
            case 3:
                return [];
            case 4:
                return Array.from({ length: this.random.below(4) }, () => this.anything(depth + 1));
            default:
                return Object.fromEntries(
                    Array.from({ length: this.random.below(4) }, () => [this.text(), this.anything(depth + 1)]),
                );
        }
    }

    string(schema) {
        if (schema.enum) {
            return this.random.pick(schema.enum);
        }
        return this.odds(2) && this.ids.length > 0 ? this.random.pick(this.ids) : `text ${this.random.below(100)}`;
    }

    // Something that mostly fits a schema.
    like(given, depth = 0) {
        const schema = resolve(given);
        if (this.odds(25) || depth > 6) {
            return this.anything();
        }
        const choice = schema.oneOf ?? schema.anyOf;
        if (choice) {
            return this.like(this.random.pick(choice), depth + 1);
        }
        if ('const' in schema) {
            return schema.const;
        }
        switch ([schema.type].flat()[0]) {
            case 'object':
                return this.object(schema, depth);
            case 'array':
                return Array.from({ length: this.random.below(4) }, () => this.like(schema.items ?? {}, depth + 1));
            case 'string':
                return this.string(schema);
            case 'integer':
            case 'number':
                return this.odds(4) ? this.random.pick(NUMBERS) : this.random.between(schema.minimum ?? 0, 100);
            case 'boolean':
                return this.odds(2);
            case 'null':
                return null;
            default:
                return this.anything();
        }
    }

    object(schema, depth) {
        const object = {};
        for (const [name, member] of Object.entries(schema.properties ?? {})) {
            const required = schema.required?.includes(name) ?? false;
            if (required ? !this.odds(20) : this.odds(2)) {
                object[name] = this.like(member, depth + 1);
            }
        }
        if (this.odds(10)) {
            object[this.text()] = this.anything();
        }
        return object;
    }

    body(operation) {
        if (!operation.requestBody) {
            return this.odds(10) ? this.random.pick(ODD_JSON) : undefined;
        }
        if (this.odds(12)) {
            return this.random.pick(ODD_JSON);
        }
        const bytes = Buffer.from(
            JSON.stringify(this.like(operation.requestBody.content['application/json'].schema)) ?? '',
        );
        return this.odds(6) ? this.spoil(bytes) : bytes;
    }

    // Some bytes changed, taken out or put in.
    spoil(bytes) {
        const spoilt = [...bytes];
        for (let i = this.random.between(1, 4); i > 0; i--) {
            const at = this.random.below(spoilt.length + 1);
            spoilt.splice(
                at,
                this.random.below(3),
                ...Array.from({ length: this.random.below(3) }, () => this.random.below(256)),
            );
        }
        return Buffer.from(spoilt);
    }

    target({ path, operation, item }) {
        const filled = path.replace(/\{\w+\}/g, () =>
            this.odds(8)
                ? encodeURIComponent(this.random.pick(TEXTS.filter((text) => text !== '' && text.isWellFormed())))
                : this.random.pick([...this.ids, 'x']),
        );
        const query = [...(item.parameters ?? []), ...(operation.parameters ?? [])]
            .filter((one) => one.in === 'query' && one.name !== 'live' && (one.required || this.odds(3)))
            .map(({ name, schema }) => `${name}=${encodeURIComponent(String(this.like(schema)).toWellFormed())}`);
        if (this.odds(20)) {
            query.push(this.random.pick(['%', '%zz', 'x', '=', '&&', 'limit=1&limit=2', 'cursor=%ff', 'raw=1']));
        }
        return query.length === 0 ? filled : `${filled}?${query.join('&')}`;
    }

    headers() {
        const all = {
            'Content-Type': ['application/json', 'text/plain', '', 'application/json; charset="x', '*/*'],
            Origin: ['null', 'http://x', 'x'.repeat(3000)],
            Cookie: [
                'arbe_session=x',
                `arbe_session=${'0'.repeat(64)}`,
                'a=b; '.repeat(100),
                'arbe_session=; arbe_session=',
            ],
            Authorization: [
                'Bearer',
                'Bearer x',
                `Bearer ${'eyJ.'.repeat(1000)}`,
                'Basic eDp5',
                `Bearer arbe_${'f'.repeat(64)}`,
            ],
            'If-None-Match': ['*', '"x"', '""""', 'W/"'],
            'Accept-Encoding': ['gzip', 'br;q=x'],
            Range: ['bytes=0-'],
            'X-Forwarded-For': ['1.2.3.4'],
        };
        return Object.fromEntries(
            Object.entries(all)
                .filter(() => this.odds(12))
                .map(([name, values]) => [name, this.random.pick(values)]),
        );
    }
}

async function makeWorld(t) {
    const server = await serveFor(t, ['--durability', 'memory', '--log-level', 'warn', '--sse-lifetime', '50ms']);
    const { owner, house } = server;
    const member = await owner.invite(house.id, 'Member');
    const bot = await owner.createAgent('Bot');
    await owner.ask(201, 'PUT', `/api/houses/${house.id}/members/${bot.agent.id}`, { role: 'member' });
    const thread = await owner.createThread(house.id);
    const said = await owner.say(thread.id, 'hello', { id: 'hello' });
    const sandbox = await owner.mint(thread.id, bot.agent.id, {
        types: ['chat', 'pi.*', 'signal.files.*', 'signal.thread.status_changed'],
    });
    const callers = [owner, owner, member, member, bot, sandbox, sandbox, nobody(server), await member.signIn()];
    const ids = [house.id, thread.id, thread.id, member.agent.id, bot.agent.id, said.id, `arbe-thread-${thread.id}`];
    return { server, callers, ids, owner };
}

function learn(ids, reply) {
    for (const [, id] of reply.text.matchAll(/"(?:id|threadId|token)":"([\w~.-]+)"/g)) {
        if (ids.length < 60) {
            ids.push(id);
        } else {
            ids[7 + (ids.turn = ((ids.turn ?? 0) + 1) % 53)] = id;
        }
    }
}

test(`random requests are answered, and never by 500 (ARBE_SEED=${SEED})`, async (t) => {
    const { server, callers, ids } = await makeWorld(t);
    const statuses = new Map();
    const lane = async (number) => {
        const maker = new Maker(randomFrom(SEED + number), ids);
        for (let i = 0; i < rounds(350); i++) {
            const one = maker.random.pick(OPERATIONS);
            const [target, body, headers, caller] = [
                maker.target(one),
                maker.body(one.operation),
                maker.headers(),
                maker.random.pick(callers),
            ];
            const what =
                `ARBE_SEED=${SEED}, lane ${number}, request ${i}: ${one.method} ${target} ${body ?? ''}`.slice(
                    0,
                    2000,
                );
            const reply = await caller.call(one.method, target, body, { headers }).catch((error) => {
                throw new Error(`${what}: ${error.message}`);
            });
            assert.ok(reply.status < 500 || reply.status === 503, `${what}: ${reply.status} ${reply.text}`);
            learn(ids, reply);
            statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
        }
    };
    await Promise.all(Array.from({ length: LANES }, (_, number) => lane(number)));
    for (const status of [200, 201, 400, 401, 403, 404]) {
        assert.ok(statuses.get(status) > 0, `${status} is among the answers: ${[...statuses].join(' ')}`);
    }
    await server.crashAndRestart();
    assert.equal(
        await nobody(server)
            .call('GET', '/api/me')
            .then(({ status }) => status),
        401,
    );
    assert.ok(!/error/.test(server.log.replace(/invalid|malformed/g, '')), server.tail());
});

test(`spoilt heads end in an answer or a closed connection (ARBE_SEED=${SEED})`, async (t) => {
    const { server, owner, callers, ids } = await makeWorld(t);
    const maker = new Maker(randomFrom(SEED), ids);
    for (let i = 0; i < rounds(250); i++) {
        const one = maker.random.pick(OPERATIONS);
        const body = maker.body(one.operation) ?? '';
        const caller = maker.random.pick(callers);
        const lines = [
            `${one.method} ${maker.target(one)} HTTP/1.1`,
            'Host: arbe.test',
            'Connection: close',
            `Content-Length: ${Buffer.byteLength(body)}`,
            ...Object.entries(caller.headers).map(([name, value]) => `${name}: ${value}`),
        ];
        const text = Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), Buffer.from(body)]);
        const raw = await Raw.open(server);
        raw.socket.end(maker.spoil(text));
        const answer = (await withDeadline(raw.rest(), `end of ${text.toString('latin1').slice(0, 500)}`)).toString(
            'latin1',
        );
        assert.ok(
            answer === '' || /^HTTP\/1\.1 (1\d\d|2\d\d|304|4\d\d|501|503|505) /.test(answer),
            `ARBE_SEED=${SEED}, ${i}: ${answer.slice(0, 300)}`,
        );
        raw.destroy();
    }
    await bearer(server, 'x'.repeat(9000))
        .call('POST', `/api/stream/${ids[6]}`, {})
        .then(({ status }) => assert.ok(status >= 400 && status < 500));
    await new Caller(server, owner.headers).get('/api/me');
});
