// docs/openapi.json says what the program does: it is held against the tables and handlers in the source. That the
// answers are as it says is looked at by every test that talks to the API (lib/serve.mjs).
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { DOCUMENT, METHODS, eachSchema, resolve, validate } from './lib/openapi.mjs';

const SRC = new URL('../../src/', import.meta.url);
const read = (name) => readFileSync(new URL(name, SRC), 'utf8');
const { schemas } = DOCUMENT.components;

function matches(text, pattern) {
    return [...text.matchAll(pattern)].map((found) => found.slice(1));
}

const routes = matches(read('app/route.c'), /\{HTTP_(\w+), "([^"]+)", ROUTE_(\w+), ROUTE_\w+,\s+(\w+)\}/g).map(
    ([method, pattern, guard, handler]) => ({
        method: method.toLowerCase(),
        path: pattern.replace(/:(\w+)/g, '{$1}'),
        guard,
        handler,
    }),
);

// Functions of src/app by file and name, so that what a handler reads can be followed through those that it calls.
const functions = new Map();
for (const file of readdirSync(new URL('app/', SRC)).filter((name) => name.endsWith('.c'))) {
    for (const [isStatic, name, body] of matches(
        read(`app/${file}`),
        /^(static )?(?:\w+[ *]+)+(\w+)\([^;{]*?\)\n\{\n([^]*?)^\}/gm,
    )) {
        functions.set(isStatic ? `${file}:${name}` : name, { file, body });
    }
}

// All that a handler's own file does for it, as one text.
function reachOf(handler) {
    const { file } = functions.get(handler);
    const seen = new Set();
    const follow = (name) => {
        if (seen.has(name)) {
            return '';
        }
        seen.add(name);
        const { body } = functions.get(name);
        const called = matches(body, /\b(\w+)\b/g).map(([word]) => `${file}:${word}`);
        return (
            body +
            called
                .filter((word) => functions.has(word))
                .map(follow)
                .join('')
        );
    };
    return follow(handler);
}

function sorted(list) {
    return [...new Set(list)].sort();
}

function operations() {
    return Object.entries(DOCUMENT.paths).flatMap(([path, item]) =>
        METHODS.filter((method) => item[method]).map((method) => ({ path, method, item, operation: item[method] })),
    );
}

test('every route of the program is described, and no other', () => {
    assert.ok(routes.length > 30, 'the table of routes was read');
    const wanted = [...routes.map(({ method, path }) => `${method} ${path}`), 'head /api/threads/{id}/stream'];
    assert.deepEqual(
        operations()
            .map(({ method, path }) => `${method} ${path}`)
            .sort(),
        wanted.sort(),
    );
    const ids = operations().map(({ operation }) => operation.operationId);
    assert.equal(new Set(ids).size, ids.length, 'each operation has a name of its own');
});

test('it says who may come', () => {
    const KEYS = [{ apiKey: [] }, { session: [] }];
    const wanted = {
        AGENT: [KEYS],
        SANDBOX: [[{ sandboxToken: [] }]],
        FREE: [[]], // signing in looks at no credentials
        OPEN: [[{}, ...KEYS]],
    };
    for (const { method, path, guard } of routes) {
        const { security } = DOCUMENT.paths[path][method];
        assert.ok(
            wanted[guard].some((one) => JSON.stringify(one) === JSON.stringify(security)),
            `${method} ${path}`,
        );
    }
});

test('parameters of paths and queries are those that the handlers know', () => {
    for (const { method, path, handler } of routes) {
        const told = [...(DOCUMENT.paths[path].parameters ?? []), ...(DOCUMENT.paths[path][method].parameters ?? [])];
        const names = (where) => told.filter((one) => one.in === where).map(({ name }) => name);
        assert.deepEqual(names('path'), matches(path, /\{(\w+)\}/g).flat(), `${method} ${path}`);
        const text = reachOf(handler);
        const known = matches(text, /\bparams_\w+\(&?p, "(\w+)"/g).flat();
        if (text.includes('paging_read(')) {
            known.push('cursor', 'limit');
        }
        if (handler === 'thread_stream') {
            const [, names] = /\bnames\[PARAMETER_COUNT\] = \{(.*)\}/.exec(read('serve/query.c'));
            known.push(...matches(names, /"(\w+)"/g).flat());
        }
        assert.deepEqual(sorted(names('query')), sorted(known), `query of ${method} ${path}`);
    }
});

test('members of bodies are those that the handlers know', () => {
    const EXTERNAL = {
        entry_post: matches(read('thread/entry.c'), /\{"(\w+)", &v->\w+\}/g).flat(),
    };
    for (const { method, path, handler } of routes) {
        if (handler === 'sandbox_write' || /config_change$/.test(handler)) {
            continue; // entries as they are posted, and configs, which are open
        }
        const { requestBody } = DOCUMENT.paths[path][method];
        const schema = requestBody && resolve(requestBody.content['application/json'].schema);
        const known =
            EXTERNAL[handler] ??
            matches(
                reachOf(handler),
                /\b(?:input_(?:text|texts|number|flag|value)|read_status)\(\s*&?in, "(\w+)"/g,
            ).flat();
        assert.deepEqual(sorted(Object.keys(schema?.properties ?? {})), sorted(known), `body of ${method} ${path}`);
    }
});

test('the codes of errors are those of the program, in its order', () => {
    const codes = matches(read('thread/api_error.h'), /X\(\w+, "([a-z_.]+)", \d+/g).flat();
    assert.ok(codes.length > 20);
    assert.deepEqual(schemas.Error.properties.error.properties.code.enum, codes);
});

const payloadTypes = matches(read('thread/payload.h'), /X\((\w+), +"([a-z_.]+)"\)/g);

test('the types of payloads are those of the program, in its order', () => {
    const types = payloadTypes.map(([, text]) => text);
    assert.ok(types.length > 30);
    assert.deepEqual(
        schemas.Payload.oneOf.map(({ $ref }) => $ref.split('/').at(-1)),
        types,
    );
    for (const type of types) {
        assert.equal(schemas[type].properties.type.const, type);
        assert.ok(schemas[type].required.includes('type'));
        assert.equal(schemas[type].additionalProperties, undefined, 'extra members are kept');
    }
});

// The rows of the table in payload.c: { shape, name, kind, presence, words, of }.
function payloadRows() {
    const source = read('thread/payload.c');
    const body = /^static const struct field fields\[\] = \{\n([^]*?)^\};/m.exec(source)[1];
    const groups = Object.fromEntries(
        matches(source, /^#define (\w+_ROWS)\(type\)([^]*?[^\\])\n\n?(?=#define|static)/gm),
    );
    const all = body.replace(/(\w+_ROWS)\((\w+)\)/g, (_, name, type) => groups[name].replace(/\btype\b/g, type));
    return matches(all, /ROW\((\w+),\s*"(\w+)",\s*(\w+),\s*(\w+)((?:,\s*\.\w+ = \w+)*)\)/g).map(
        ([shape, name, kind, presence, rest]) => ({
            shape,
            name,
            kind,
            presence,
            ...Object.fromEntries(matches(rest, /\.(\w+) = (\w+)/g)),
        }),
    );
}

const SHAPES = {
    SHAPE_ATTACHMENT: 'Attachment',
    SHAPE_TEXT: 'TextBlock',
    SHAPE_THINKING: 'ThinkingBlock',
    SHAPE_TOOL_CALL: 'ToolCallBlock',
    SHAPE_IMAGE: 'ImageBlock',
    SHAPE_USAGE: 'TokenUsage',
    SHAPE_COST: 'TokenCost',
};
const EXAMPLES = {
    STRING: '',
    TEXT: 'x',
    ID: 'x',
    IDS: ['x'],
    ENTRY_ID: 'x.1',
    WHOLE: 0,
    NUMBER: 0.5,
    BOOL: false,
    ANY: 1,
    MAP: {},
    LIST: [],
    BLOCKS: [],
};
const WRONG = {
    STRING: 1,
    TEXT: '',
    ID: '',
    IDS: 'x',
    ENTRY_ID: 'x/1',
    WHOLE: 0.5,
    NUMBER: -1,
    BOOL: 0,
    MAP: [],
    LIST: {},
    BLOCKS: {},
    WORD: 'no such word',
    OBJECT: [],
};

test('the fields of payloads are those of the program', () => {
    const rows = payloadRows();
    assert.ok(rows.length > 80, `${rows.length} rows were read`);
    const words = Object.fromEntries(
        matches(read('thread/payload.c'), /\*const (\w+)\[\] = \{([^}]*)NULL\}/g).map(([name, list]) => [
            name,
            matches(list, /"(\w+)"/g).flat(),
        ]),
    );
    words.statuses = matches(read('thread/status.h'), /X\(\w+, "(\w+)"\)/g).flat();
    const named = { ...SHAPES, ...Object.fromEntries(payloadTypes.map(([name, text]) => [`PAYLOAD_${name}`, text])) };
    const seen = new Map(Object.values(named).map((name) => [name, []]));
    for (const row of rows) {
        const schema = schemas[named[row.shape]];
        const field = schema.properties[row.name];
        const at = `${named[row.shape]}.${row.name}`;
        assert.ok(field, `${at} is described`);
        seen.get(named[row.shape]).push(row.name);
        const needed = row.presence === 'NEEDED';
        assert.equal(schema.required?.includes(row.name) ?? false, needed, `whether ${at} must be there`);
        const good =
            row.kind === 'WORD'
                ? words[row.words]
                : row.kind === 'OBJECT'
                  ? [{ input: 1, output: 1 }]
                  : [EXAMPLES[row.kind]];
        for (const value of good) {
            assert.deepEqual(validate(field, value, at), [], `${at} takes ${JSON.stringify(value)}`);
        }
        if (row.kind !== 'ANY') {
            const bad = WRONG[row.kind];
            assert.notDeepEqual(validate(field, bad, at), [], `${at} does not take ${JSON.stringify(bad)}`);
            assert.equal(validate(field, null, at).length === 0, !needed, `whether ${at} may be null`);
        }
        if (row.of !== undefined) {
            assert.ok(JSON.stringify(field).includes(`/${SHAPES[row.of]}"`), `${at} is of ${SHAPES[row.of]}`);
        }
        if (row.kind === 'BLOCKS') {
            const types = field.items.oneOf.map((one) => resolve(one).properties.type.const);
            assert.deepEqual(types, words[row.words], at);
        }
    }
    for (const [name, known] of seen) {
        const { properties } = schemas[name];
        const told = Object.keys(properties).filter(
            (field) => field !== 'type' || properties.type.const === undefined,
        );
        assert.deepEqual(told.sort(), sorted(known), name);
    }
});

test('it is whole: each reference leads somewhere, each schema is used, each keyword is known to the validator', () => {
    const text = JSON.stringify(DOCUMENT);
    const refs = sorted(matches(text, /"\$ref":"([^"]+)"/g).flat());
    refs.forEach(($ref) => resolve({ $ref }));
    assert.deepEqual(
        sorted(refs.filter((one) => one.includes('/schemas/')).map((one) => one.split('/').at(-1))),
        Object.keys(schemas).sort(),
    );
    let count = 0;
    eachSchema((schema) => {
        count++;
        validate(schema, {});
        validate(schema, []);
    });
    assert.ok(count > 200);
    assert.match(DOCUMENT.openapi, /^3\.1\./);
});
