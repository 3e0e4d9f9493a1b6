// Holds JSON against docs/openapi.json: a validator of the few keywords that the file uses (another one is an error,
// so that nothing in it goes unchecked), and the way from a request to what is said of it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

export const DOCUMENT = JSON.parse(readFileSync(new URL('../../../docs/openapi.json', import.meta.url), 'utf8'));
export const METHODS = ['get', 'head', 'put', 'post', 'patch', 'delete'];

export function resolve(node) {
    let found = node;
    while (found?.$ref !== undefined) {
        found = found.$ref
            .slice(2)
            .split('/')
            .reduce((at, name) => at?.[name], DOCUMENT);
        assert.ok(found, `${node.$ref} leads somewhere`);
    }
    return found;
}

function kindOf(value) {
    if (value === null || Array.isArray(value)) {
        return value === null ? 'null' : 'array';
    }
    return typeof value;
}

function isOfType(value, type) {
    return type === 'integer' ? Number.isInteger(value) : kindOf(value) === type;
}

const patterns = new Map();

function patternOf(text) {
    if (!patterns.has(text)) {
        patterns.set(text, new RegExp(text, 'u'));
    }
    return patterns.get(text);
}

function checkMembers(schema, value, at, wrong) {
    for (const [name, member] of Object.entries(value)) {
        const known = Object.hasOwn(schema.properties ?? {}, name);
        if (known) {
            check(schema.properties[name], member, `${at}.${name}`, wrong);
        } else if (schema.additionalProperties === false) {
            wrong.push(`${at}.${name} is not described`);
        }
    }
}

function countFitting(schemas, value, at) {
    return schemas.filter((one) => validate(one, value, at).length === 0).length;
}

// A text's length is told in characters by JSON Schema, and in bytes by arbe, so only its least is looked at exactly.
const KEYWORDS = {
    type: (wanted, value) => [wanted].flat().some((type) => isOfType(value, type)),
    enum: (wanted, value) => wanted.includes(value),
    const: (wanted, value) => value === wanted,
    minimum: (wanted, value) => typeof value !== 'number' || value >= wanted,
    maximum: (wanted, value) => typeof value !== 'number' || value <= wanted,
    minLength: (wanted, value) => typeof value !== 'string' || value.length >= wanted,
    maxLength: (wanted, value) => typeof value !== 'string' || value.length <= wanted,
    pattern: (wanted, value) => typeof value !== 'string' || patternOf(wanted).test(value),
    minItems: (wanted, value) => !Array.isArray(value) || value.length >= wanted,
    maxItems: (wanted, value) => !Array.isArray(value) || value.length <= wanted,
    required: (wanted, value) => kindOf(value) !== 'object' || wanted.every((name) => Object.hasOwn(value, name)),
    anyOf: (wanted, value, at) => countFitting(wanted, value, at) > 0,
    oneOf: (wanted, value, at) => countFitting(wanted, value, at) === 1,
    properties: () => true, // with additionalProperties, below
    additionalProperties: () => true,
    items: () => true, // below
    description: () => true,
    default: () => true,
};

function check(given, value, at, wrong) {
    const schema = resolve(given);
    for (const [keyword, wanted] of Object.entries(schema)) {
        assert.ok(Object.hasOwn(KEYWORDS, keyword), `the validator knows the keyword ${keyword}`);
        if (!KEYWORDS[keyword](wanted, value, at)) {
            wrong.push(
                `${at} breaks ${keyword} ${JSON.stringify(wanted).slice(0, 200)}: ` +
                    `${JSON.stringify(value)?.slice(0, 300)}`,
            );
        }
    }
    if (kindOf(value) === 'object') {
        checkMembers(schema, value, at, wrong);
    } else if (Array.isArray(value) && schema.items !== undefined) {
        value.forEach((item, i) => check(schema.items, item, `${at}[${i}]`, wrong));
    }
}

// What is wrong with the value, as sentences.
export function validate(schema, value, at = '$') {
    const wrong = [];
    check(schema, value, at, wrong);
    return wrong;
}

// Every schema of the file, also those within others.
export function eachSchema(visit, node = DOCUMENT.components.schemas, within = true) {
    for (const [name, child] of Object.entries(node ?? {})) {
        if (within) {
            visit(child, name);
        }
        const { properties, items, oneOf, anyOf } = child;
        eachSchema(visit, properties ?? {});
        eachSchema(visit, { ...(items ? { items } : {}) });
        eachSchema(visit, [...(oneOf ?? []), ...(anyOf ?? [])]);
    }
}

const templates = Object.keys(DOCUMENT.paths)
    .map((template) => ({
        template,
        // A segment with a name of its own is stronger than one that takes any text.
        weight: template.split('/').filter((segment) => segment.startsWith('{')).length,
        pattern: new RegExp(`^${template.replace(/\{\w+\}/g, '[^/]+')}$`),
    }))
    .sort((a, b) => a.weight - b.weight);

// { template, operation } of a request, or undefined when the file has no such path or method.
export function operationOf(method, target) {
    const path = target.split('?')[0];
    const found = templates.find(({ pattern }) => pattern.test(path));
    const operation = found && DOCUMENT.paths[found.template][method.toLowerCase()];
    return operation && { template: found.template, operation };
}

function answerOf(operation, status) {
    const range = `${String(status)[0]}XX`;
    return resolve(operation.responses[status] ?? operation.responses[range]);
}

// Insists that the answer is one that the file describes.
export function assertDescribed(method, target, reply) {
    const found = operationOf(method, target);
    if (found === undefined) {
        // Of what is not there, only refusals are told.
        assert.ok(reply.status >= 400, `${method} ${target}: ${reply.status} of a route that is not described`);
        return;
    }
    const told = `${method} ${found.template}: ${reply.status}`;
    const answer = answerOf(found.operation, reply.status);
    assert.ok(answer, `${told} is described`);
    for (const name of Object.keys(reply.headers)) {
        if (name === 'set-cookie') {
            assert.ok(answer.headers?.['Set-Cookie'], `${told} may set a cookie`);
        }
    }
    if (method === 'HEAD' || reply.status === 204 || reply.status === 304) {
        assert.equal(reply.body.length, 0, `${told} has no body`);
        return;
    }
    const type = reply.headers['content-type']?.split(';')[0];
    const content = answer.content?.[type];
    assert.ok(content, `${told} as ${type} is described`);
    if (type.endsWith('json')) {
        const wrong = validate(content.schema, JSON.parse(reply.body.toString('utf8')));
        assert.deepEqual(wrong, [], `${told} is as described`);
    }
}
