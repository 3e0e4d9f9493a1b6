// What is wrong with a request is said precisely: the code, a sentence, and where in the body or query.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { request } from './lib/http.mjs';
import { DOCUMENT, METHODS, resolve } from './lib/openapi.mjs';
import { Raw, exchange, head } from './lib/raw.mjs';
import { assertRefused, headerLines, nobody, rawStream, serveFor } from './lib/serve.mjs';

const MIB = 1 << 20;

async function makeWorld(t, flags, options) {
    const server = await serveFor(t, flags, options);
    const { owner, house } = server;
    const thread = await owner.createThread(house.id);
    const sandbox = await owner.mint(thread.id, owner.agent.id, {
        types: ['chat', 'pi.*', 'signal.thread.*'].slice(0, 2),
    });
    const ids = {
        '/api/houses/{id}': house.id,
        '/api/threads/{id}': thread.id,
        '/api/agents/{id}': owner.agent.id,
        '{agentId}': owner.agent.id,
        '{token}': '0'.repeat(64),
        '{name}': `arbe-thread-${thread.id}`,
    };
    const fill = (path) =>
        Object.entries(ids).reduce(
            (text, [from, to]) => text.replace(from, from.startsWith('/') ? from.replace('{id}', to) : to),
            path,
        );
    return { server, owner, house, thread, sandbox, fill };
}

// Operations that take a body.
function takers() {
    return Object.entries(DOCUMENT.paths).flatMap(([path, item]) =>
        METHODS.filter((method) => item[method]?.requestBody).map((method) => ({
            path,
            method: method.toUpperCase(),
            operation: item[method],
        })),
    );
}

test('bodies that are no JSON, no object, or too large are refused by each route that takes one', async (t) => {
    const { owner, sandbox, fill } = await makeWorld(t);
    for (const { path, method, operation } of takers()) {
        const caller = path === '/api/stream/{name}' ? sandbox : owner;
        const target = fill(path);
        const schema = resolve(operation.requestBody.content['application/json'].schema);
        for (const body of [
            '{',
            '{"a":1,}',
            "{'a':1}",
            '{"a":01}',
            '{} {}',
            'nothing',
            '\ufeff{}',
            '{"a":"\u0001"}',
            Buffer.from([0x7b, 0xff, 0x7d]),
        ]) {
            await caller.refused(400, 'validation.malformed_json', method, target, body);
        }
        for (const body of ['"x"', '1', 'null', 'true', ...(schema.oneOf ? ['[]'] : ['[]', '[{}]'])]) {
            await caller.refused(400, 'validation.invalid_input', method, target, body);
        }
        if (operation.requestBody.required) {
            await caller.refused(400, 'validation.malformed_json', method, target, '');
        }
        const most = schema.oneOf ? 8 * MIB : MIB;
        const error = await caller.refused(413, 'validation.too_large', method, target, Buffer.alloc(most + 1, 0x20));
        assert.match(error.message, /\d/, 'the sentence says what is accepted');
    }
});

test('members and parameters that are not known are refused by name', async (t) => {
    const { owner, sandbox, house, fill } = await makeWorld(t);
    for (const { path, method, operation } of takers()) {
        const schema = resolve(operation.requestBody.content['application/json'].schema);
        const one = schema.oneOf ? schema.oneOf[0] : schema;
        if (resolve(one).additionalProperties === false) {
            const caller = path === '/api/stream/{name}' ? sandbox : owner;
            // What is known is looked at first, and here it is right.
            const known = {
                name: 'x',
                role: 'member',
                key: 'x',
                parentId: house.id,
                agentId: owner.agent.id,
                payload: { type: 'chat', text: 'x' },
            };
            const body = Object.fromEntries(
                Object.keys(resolve(one).properties)
                    .filter((name) => name in known && !(path.includes('invites/') && name === 'name'))
                    .map((name) => [name, known[name]]),
            );
            const error = await caller.refused(400, 'validation.invalid_input', method, fill(path), {
                ...body,
                noSuch: 1,
            });
            assert.equal(error.context.field, 'noSuch', `${method} ${path}`);
        }
    }
    for (const [path, item] of Object.entries(DOCUMENT.paths)) {
        if (!item.get?.parameters?.some((one) => one.in === 'query') || path.endsWith('/stream')) {
            continue;
        }
        const required = item.get.parameters.some(({ name }) => name === 'house_id') ? `house_id=${house.id}&` : '';
        const error = await owner.refused(
            400,
            'validation.invalid_input',
            'GET',
            `${fill(path)}?${required}no_such=1`,
        );
        assert.equal(error.context.field, 'no_such', path);
        for (const { name, schema } of item.get.parameters) {
            const rules = resolve(schema);
            const bad =
                rules.type === 'integer'
                    ? ['0', String(rules.maximum + 1), '-1', '1.0', '0x1', '', '1e1', '99999999999999999999']
                    : rules.enum
                      ? ['x', '']
                      : name === 'cursor' || name === 'after'
                        ? ['', '%FF']
                        : ['', '%FF', 'x'.repeat(999)];
            for (const value of bad) {
                const target = `${fill(path)}?${name === 'house_id' ? '' : required}${name}=${value}`;
                const { context } = await owner.refused(400, 'validation.invalid_input', 'GET', target);
                assert.equal(context.field, name, target);
            }
            const twice = await owner.refused(
                400,
                'validation.invalid_input',
                'GET',
                `${fill(path)}?${name}=1&${name}=1`,
            );
            assert.match(twice.message, /once/);
        }
    }
});

test('each member of a body is checked, and named', async (t) => {
    const { server, owner, house, thread } = await makeWorld(t);
    const { agent } = await owner.createAgent('Bot');
    await owner.ask(201, 'PUT', `/api/houses/${house.id}/members/${agent.id}`, { role: 'member' });
    const names = [1, null, '', 'x'.repeat(201), 'a\nb', '\u0000', '\ud800', '\u202e'.slice(1) + '\u0085', ['x']];
    const texts = names.filter((value) => value !== null && value !== 'a\nb');
    const entries = `/api/threads/${thread.id}/entries`;
    const table = [
        ['POST', '/api/houses', {}, 'name', [undefined, ...names]],
        ['PATCH', `/api/houses/${house.id}`, {}, 'name', [undefined, ...names]],
        [
            'PUT',
            `/api/houses/${house.id}/members/${agent.id}`,
            {},
            'role',
            [undefined, null, '', 'admin', 'Owner', 1],
        ],
        ['POST', `/api/houses/${house.id}/invites`, {}, 'role', [null, 'admin', 1]],
        ['POST', `/api/houses/${house.id}/invites`, {}, 'expiresIn', [0, -1, 2592001, 1.5, '60', null, 1e300]],
        ['POST', '/api/agents', {}, 'name', [undefined, ...names]],
        ['POST', '/api/agents', { name: 'x' }, 'kind', ['robot', '', null, 1]],
        ['POST', '/api/agents', { name: 'x' }, 'description', [1, '', 'x'.repeat(4097), '\u0000']],
        ['POST', '/api/agents', { name: 'x' }, 'model', texts],
        ['POST', '/api/agents', { name: 'x' }, 'systemPrompt', [1, '', 'x'.repeat(65537), '\u0007']],
        ['PATCH', `/api/agents/${agent.id}`, {}, 'name', names],
        ['PATCH', `/api/agents/${agent.id}`, {}, 'model', texts],
        ['POST', '/api/agents/keys', {}, 'agentId', [1, null, '', 'x'.repeat(65)]],
        ['POST', '/api/agents/keys', {}, 'name', texts],
        ['POST', '/api/threads', {}, 'parentId', [undefined, null, 1, '', 'x'.repeat(65)]],
        ['POST', '/api/threads', { parentId: house.id }, 'name', texts],
        ['POST', '/api/threads', { parentId: house.id }, 'houseId', [1, thread.id]],
        [
            'POST',
            '/api/threads',
            { parentId: house.id },
            'tags',
            [
                'x',
                null,
                [''],
                [1],
                ['x'.repeat(65)],
                Array(33)
                    .fill()
                    .map((_, i) => `t${i}`),
            ],
        ],
        ['POST', '/api/threads', { parentId: house.id }, 'environmentId', texts],
        ['POST', '/api/threads', { parentId: house.id }, 'status', ['running', 'none', 1, null]],
        ['PATCH', `/api/threads/${thread.id}`, {}, 'name', texts],
        ['PATCH', `/api/threads/${thread.id}`, {}, 'pinned', [1, 'true', null]],
        ['PATCH', `/api/threads/${thread.id}`, {}, 'tags', ['x', null, ['']]],
        ['PATCH', `/api/threads/${thread.id}`, {}, 'status', ['none', 1, null]],
        ['POST', `/api/threads/${thread.id}/sandbox-tokens`, {}, 'agentId', [undefined, null, 1, '']],
        [
            'POST',
            `/api/threads/${thread.id}/sandbox-tokens`,
            { agentId: agent.id },
            'expiresIn',
            [0, 86401, '1', null],
        ],
        ['POST', `/api/threads/${thread.id}/sandbox-tokens`, { agentId: agent.id }, 'types', ['chat', null, []]],
        [
            'POST',
            entries,
            { payload: { type: 'chat', text: 'x' } },
            'id',
            ['', 'x'.repeat(97), 'a/b', 'a b', 'é', 'arbe.x', 1],
        ],
        ['POST', entries, { payload: { type: 'chat', text: 'x' } }, 'ts', ['now', true]],
        ['POST', entries, { payload: { type: 'chat', text: 'x' } }, 'authorId', [1, '']],
        ['POST', entries, {}, 'payload', [undefined, null, 'x', []]],
    ];
    for (const [method, path, rest, name, values] of table) {
        for (const value of values) {
            const error = await owner.refused(400, 'validation.invalid_input', method, path, {
                ...rest,
                ...(value === undefined ? {} : { [name]: value }),
            });
            assert.match(
                error.context?.field ?? '',
                new RegExp(`^${name}\\b`),
                `${method} ${path} ${name} ${JSON.stringify(value)}: ${error.message}`,
            );
        }
    }
    const payloads = [
        ['type', { text: 'x' }],
        ['type', { type: 1 }],
        ['type', { type: 'note' }],
        ['text', { type: 'chat' }],
        ['text', { type: 'chat', text: 1 }],
        ['text', { type: 'chat', text: '' }],
        ['replyTo', { type: 'chat', text: 'x', replyTo: 'a/b' }],
        ['attachments', { type: 'chat', text: 'x', attachments: {} }],
        [
            'attachments[1].size',
            {
                type: 'chat',
                text: 'x',
                attachments: [
                    { name: 'a', mediaType: 'b', size: 1, url: 'c' },
                    { name: 'a', mediaType: 'b', size: -1, url: 'c' },
                ],
            },
        ],
    ];
    for (const [field, payload] of payloads) {
        const error = await owner.refused(400, 'validation.invalid_input', 'POST', entries, { payload });
        assert.equal(error.context.field, `payload.${field}`);
    }
    const long = await owner.refused(413, 'validation.too_large', 'POST', entries, {
        payload: { type: 'chat', text: 'x'.repeat(65537) },
    });
    assert.equal(long.context.field, 'payload.text');
    await owner.say(thread.id, 'x'.repeat(65536));
    for (const [key, value] of [
        ['triggerMode', 'never'],
        ['depthCap', -1],
        ['perAgent', []],
    ]) {
        const error = await owner.refused(
            400,
            'validation.invalid_input',
            'PATCH',
            `/api/houses/${house.id}/config`,
            { dispatch: { [key]: value } },
        );
        assert.match(error.context.field, new RegExp(`dispatch\\.${key}`));
        const made = await owner.refused(400, 'validation.invalid_input', 'POST', '/api/threads', {
            parentId: house.id,
            config: { dispatch: { [key]: value } },
        });
        assert.equal(made.context.field, `config.${error.context.field}`);
        assert.equal(made.message, `config.${error.message}`);
    }
    const none = await owner.refused(400, 'validation.invalid_input', 'POST', '/api/threads', {
        parentId: house.id,
        config: [],
    });
    assert.equal(none.context.field, 'config');
    assert.equal((await owner.history(thread.id)).length, 2, 'nothing of all this was stored');
    assert.deepEqual(
        await nobody(server)
            .refused(401, 'auth.unauthenticated', 'GET', '/api/me')
            .then((error) => Object.keys(error)),
        ['code', 'message', 'suggestion', 'recoverable'],
    );
});

test('a body of nobody or of a session must say that it is JSON', async (t) => {
    const { server, owner, house } = await makeWorld(t);
    const page = await owner.signIn();
    const body = JSON.stringify({ name: 'x' });
    for (const type of [
        'text/plain',
        'application/x-www-form-urlencoded',
        'multipart/form-data; boundary=x',
        'application/jsonx',
        '',
    ]) {
        const headers = { 'Content-Type': type };
        assertRefused(await page.call('POST', '/api/houses', body, { headers }), 415, 'validation.unsupported_media');
        assertRefused(
            await nobody(server).call('POST', '/api/session', body, { headers }),
            415,
            'validation.unsupported_media',
        );
        await owner.ask(201, 'POST', '/api/houses', body, { headers }); // as curl says it
    }
    for (const type of ['application/json', 'application/json; charset=utf-8', 'Application/JSON ;x=y']) {
        await page.ask(201, 'POST', '/api/houses', body, { headers: { 'Content-Type': type } });
    }
    assert.equal((await owner.list('/api/houses', 'houses')).filter(({ name }) => name === 'x').length, 8);
    assert.ok(house.id);
});

test('there is no other route, and no other method', async (t) => {
    const { server, owner, fill } = await makeWorld(t);
    const all = ['GET', 'PUT', 'POST', 'PATCH', 'DELETE'];
    for (const [path, item] of Object.entries(DOCUMENT.paths)) {
        const target = fill(path).replace(/\{\w+\}/g, 'x');
        const known = METHODS.filter((method) => item[method]).map((method) => method.toUpperCase());
        for (const method of all.filter((one) => !known.includes(one))) {
            const reply = await owner.call(method, target);
            assertRefused(reply, 405, 'request.method_not_allowed', `${method} ${target}`);
            const allow = reply.headers.allow.split(', ');
            assert.deepEqual(
                allow.filter((one) => all.includes(one)).sort(),
                known.filter((one) => one !== 'HEAD').sort(),
                target,
            );
        }
    }
    for (const path of [
        '/api',
        '/api/',
        '/api/nothing',
        '/api/houses/',
        '/api/houses//members',
        '/api/me/',
        '/API/me',
        '/api/threads/a/b/c/d/e/f/g',
    ]) {
        const reply = await request(server.base, 'GET', path, { headers: owner.headers });
        if (path === '/API/me') {
            assert.equal(reply.status, 404, path);
        } else {
            assertRefused(reply, 404, 'request.unknown_route', path);
        }
    }
    for (const path of ['/api/houses/%zz', '/api/%', '/api/houses/%4']) {
        assertRefused(
            await request(server.base, 'GET', path, { headers: owner.headers }),
            400,
            'validation.invalid_input',
            path,
        );
    }
    const spelt = await request(server.base, 'GET', '/api/%6de', { headers: owner.headers });
    assert.equal(spelt.status, 200, 'another spelling of a path is the same path');
});

test('heads and bodies that break HTTP are refused in the words of the API', async (t) => {
    const { server, owner, thread } = await makeWorld(t);
    const lines = headerLines(owner);
    const long = await exchange(server, head('GET', '/api/me', [...lines, `X-Long: ${'x'.repeat(1 << 17)}`]));
    assert.equal(long.status, 431);
    const target = `/api/threads/${thread.id}/entries`;
    const announced = await exchange(server, head('POST', target, [...lines, 'Content-Length: 99999999']));
    assert.equal(announced.status, 413, 'it is not waited for');
    assert.equal(announced.json().error.code, 'validation.too_large');
    const raw = await Raw.open(server);
    t.after(() => raw.destroy());
    raw.send(head('POST', target, [...lines, 'Transfer-Encoding: chunked', 'Content-Type: application/json']));
    raw.send(`${(2 * MIB).toString(16)}\r\n${' '.repeat(2 * MIB)}\r\n0\r\n\r\n`);
    const chunked = await raw.response();
    assert.equal(chunked.status, 413);
    assert.equal(chunked.json().error.code, 'validation.too_large');
    const small = JSON.stringify({ payload: { type: 'chat', text: 'in chunks' } });
    const good = await exchange(
        server,
        head('POST', target, [...lines, 'Transfer-Encoding: chunked', 'Expect: 100-continue']) +
            `5\r\n${small.slice(0, 5)}\r\n${(small.length - 5).toString(16)}\r\n${small.slice(5)}\r\n0\r\n\r\n`,
    );
    assert.ok([100, 201].includes(good.status), good.text);
});

test('too many requests are 429 with a time to wait', async (t) => {
    const { server, owner } = await makeWorld(t, ['--max-request-rate', '20']);
    let reply;
    do {
        reply = await request(server.base, 'GET', '/api/me', { headers: owner.headers });
    } while (reply.status === 200);
    assertRefused(reply, 429, 'request.rate_limited');
    assert.match(reply.headers['retry-after'], /^[1-9]\d*$/);
    assert.equal(reply.json().error.recoverable, true);
});

test('a thread whose stream was closed takes no more', async (t) => {
    const { server, owner, thread } = await makeWorld(t, [], { secret: true });
    assert.equal((await rawStream(server, thread.id).close()).status, 204);
    const entries = `/api/threads/${thread.id}/entries`;
    await owner.refused(409, 'thread.closed', 'POST', entries, { payload: { type: 'chat', text: 'x' } });
    await owner.refused(409, 'thread.closed', 'POST', entries, { id: 'mine', payload: { type: 'chat', text: 'x' } });
    assert.equal((await owner.history(thread.id)).length, 1);
});
