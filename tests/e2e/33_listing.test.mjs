// Tier 30: the listing of streams, GET /v1/stream/__ds/streams: complete, ordered, paged, and true after everything
// that makes streams come and go.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { JSON_TYPE, Stream, TEXT, uniqueName } from './lib/http.mjs';
import { serverFor, startServer } from './lib/server.mjs';
import { CONTROL, assertError, assertStatus, control, jsonStream } from './lib/subscriptions.mjs';
import { eventually, inParallel } from './lib/wait.mjs';

const shared = await startServer();
after(() => shared.dispose());

async function page(server, query = {}) {
    const text = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&');
    const document = assertStatus(await control(server, 'GET', `/streams${text === '' ? '' : `?${text}`}`), 200).json();
    assert.deepEqual(Object.keys(document).filter((one) => !['streams', 'next_after'].includes(one)), []);
    return document;
}

// All pages, joined.
async function listed(server, prefix = '', limit = 1_000) {
    const all = [];
    for (let query = { prefix, limit }; ;) {
        const { streams, next_after } = await page(server, query);
        assert.ok(streams.length <= limit);
        all.push(...streams);
        if (next_after === undefined) {
            return all;
        }
        query = { ...query, after: next_after };
    }
}

const namesOf = (streams) => streams.map((one) => one.path);
const bytewise = (names) => [...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));

describe('what is told', () => {
    test('of each stream: path, content type, next offset, closed, creation, expiry', async () => {
        const prefix = `${uniqueName('what')}/`;
        const before = Date.now();
        const text = new Stream(shared, `${prefix}a`, 'text/plain; charset=utf-8');
        const json = new Stream(shared, `${prefix}b`, JSON_TYPE);
        const fork = new Stream(shared, `${prefix}c`, JSON_TYPE);
        const expires = new Date(before + 3_600_000).toISOString();
        await text.create({ 'Stream-TTL': '3600' }, 'hello');
        await json.create({ 'Stream-Expires-At': expires }, '[1]');
        await json.close();
        await fork.create({ 'Stream-Forked-From': json.path });
        const streams = await listed(shared, prefix);
        assert.equal(streams.length, 3);
        for (const [i, stream] of [text, json, fork].entries()) {
            const head = await stream.head();
            const { created_at, ttl_seconds, expires_at, ...rest } = streams[i];
            assert.deepEqual(rest, { path: stream.name, content_type: head.headers['content-type'], next_offset: head.next, closed: head.closed });
            assert.match(created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
            assert.ok(Math.abs(Date.parse(created_at) - before) < 60_000);
            assert.equal(ttl_seconds, i === 0 ? 3_600 : undefined);
            if (i === 1) {
                assert.equal(Date.parse(expires_at), Date.parse(expires));
            }
        }
        assert.equal(streams[0].expires_at, undefined);
    });

    test('names as they are, whatever they hold, in the order of their bytes', async () => {
        const prefix = `${uniqueName('odd')}/`;
        const escaped = ['a', 'A', 'a/b', 'a//b', 'a/', '%22%5C', '%F0%9F%8E%89', '%C3%A9', 'a%2Fb', 'a%25b', 'a%20b', "a'b", '~', '%EF%BF%BD', '*'];
        for (const name of escaped) {
            await new Stream(shared, prefix + name).create();
        }
        const wanted = escaped.map((name) => prefix + decodeURIComponent(name.replace(/%2F/g, '%252F').replace(/%25b/g, '%2525b')));
        for (const limit of [1, 2, 7, 1_000]) {
            assert.deepEqual(namesOf(await listed(shared, prefix, limit)), bytewise(wanted), `limit ${limit}`);
        }
    });

    test('a prefix is of bytes, not of segments', async () => {
        const base = uniqueName('pre');
        for (const name of ['x', 'xa', 'x/a', 'y', 'é']) {
            await new Stream(shared, `${base}-${encodeURI(name)}`).create();
        }
        assert.deepEqual(namesOf(await listed(shared, `${base}-x`)), [`${base}-x`, `${base}-x/a`, `${base}-xa`]);
        assert.deepEqual(namesOf(await listed(shared, `${base}-é`)), [`${base}-é`]);
        assert.deepEqual(await listed(shared, `${base}-z`), []);
        assert.deepEqual(namesOf(await listed(shared, `${base}-x/a`)), [`${base}-x/a`]);
    });

    test('after is exclusive, and need not be there', async () => {
        const base = `${uniqueName('after')}/`;
        for (const name of ['b', 'd', 'f']) {
            await new Stream(shared, base + name).create();
        }
        const behind = async (name) => namesOf((await page(shared, { prefix: base, after: base + name })).streams).map((one) => one.slice(base.length));
        assert.deepEqual(await behind('a'), ['b', 'd', 'f']);
        assert.deepEqual(await behind('b'), ['d', 'f']);
        assert.deepEqual(await behind('c'), ['d', 'f']);
        assert.deepEqual(await behind('f'), []);
        assert.deepEqual(namesOf((await page(shared, { prefix: base, after: 'zzz' })).streams), []);
        assert.deepEqual(namesOf((await page(shared, { prefix: base, after: '!' })).streams).length, 3);
    });

    test('queries that are not understood are refused', async () => {
        for (const query of ['limit=0', 'limit=1001', 'limit=-1', 'limit=x', 'limit=', 'limit=1&limit=2', 'prefix=a&prefix=a', 'after=%zz', 'prefix=%',
                             'prefx=a', 'offset=-1', 'live=sse', `prefix=${'x'.repeat(481)}`, `after=${'x'.repeat(481)}`]) {
            assertError(await control(shared, 'GET', `/streams?${query}`), 400, 'INVALID_REQUEST');
        }
        for (const query of ['', '&', 'prefix=', 'after=', `prefix=${'x'.repeat(480)}`, '%6Cimit=1']) {
            assertStatus(await control(shared, 'GET', `/streams?${query}`), 200);
        }
        assertStatus(await control(shared, 'HEAD', '/streams?limit=1'), 200);
        assert.equal((await control(shared, 'GET', '/streams')).headers['cache-control'], 'no-store');
        assert.ok(CONTROL);
    });
});

describe('coming and going', () => {
    test('what was answered shows: creation, appends, closing, deletion', async () => {
        const prefix = `${uniqueName('go')}/`;
        const streams = Array.from({ length: 10 }, (_, i) => jsonStream(shared, `${prefix}${i}`));
        for (const stream of streams) {
            await stream.create();
            assert.ok(namesOf(await listed(shared, prefix)).includes(stream.name));
        }
        await streams[3].append('[1,2]');
        await streams[4].close();
        await streams[5].remove();
        await streams[6].remove();
        await streams[6].create({}, '[1]');
        const now = await listed(shared, prefix);
        assert.deepEqual(namesOf(now), streams.filter((_, i) => i !== 5).map((one) => one.name));
        assert.equal(now[3].next_offset, (await streams[3].head()).next);
        assert.equal(now[4].closed, true);
        assert.equal(now.find((one) => one.path === streams[6].name).next_offset, (await streams[6].head()).next);
    });

    test('a deleted source that forks still use is not listed, its forks are', async () => {
        const prefix = `${uniqueName('fork')}/`;
        const source = jsonStream(shared, `${prefix}source`);
        const fork = jsonStream(shared, `${prefix}fork`);
        await source.create({}, '[1]');
        await fork.create({ 'Stream-Forked-From': source.path });
        await source.remove();
        assert.deepEqual(namesOf(await listed(shared, prefix)), [fork.name]);
    });

    test('expired streams are not listed', async () => {
        const prefix = `${uniqueName('old')}/`;
        await new Stream(shared, `${prefix}never`, TEXT).create({ 'Stream-TTL': '0' });
        await new Stream(shared, `${prefix}soon`, TEXT).create({ 'Stream-TTL': '1' });
        await new Stream(shared, `${prefix}at`, TEXT).create({ 'Stream-Expires-At': new Date(Date.now() + 1_000).toISOString() });
        await new Stream(shared, `${prefix}stays`, TEXT).create({ 'Stream-TTL': '3600' });
        await eventually('only one is left', async () => {
            const names = namesOf(await listed(shared, prefix));
            assert.ok(!names.includes(`${prefix}never`));
            return names.length === 1 && names[0] === `${prefix}stays`;
        });
    });

    test('5,000 streams, paged, across checkpoints, restart and kill -9', { timeout: 240_000 }, async (t) => {
        const server = await serverFor(t, ['--checkpoint-interval', '200ms', '--durability', 'os']);
        const total = 5_000;
        const name = (i) => `many/${String(i * 7_919 % 100_000).padStart(5, '0')}/${i % 3 ? 'x' : 'é'}`;
        await inParallel(16, Array.from({ length: total }, (_, i) => async () => {
            const stream = new Stream(server, name(i).replace('é', '%C3%A9'));
            await stream.create({}, i % 2 ? 'abc' : undefined);
            if (i % 5 === 0) {
                assertStatus(await stream.remove(), 204);
            }
        }));
        const wanted = bytewise(Array.from({ length: total }, (_, i) => i).filter((i) => i % 5).map(name));
        const check = async () => {
            for (const limit of [1_000, 999, 250]) {
                const found = await listed(server, 'many/', limit);
                assert.deepEqual(namesOf(found), wanted, `limit ${limit}`);
            }
            assert.equal((await page(server)).streams.length, 1_000, 'a page is full while there is more');
        };
        await check();
        await server.crashAndRestart();
        await check();
        await server.restart();
        await check();
    });

    test('long names make short pages', async () => {
        const prefix = `${uniqueName('long')}/`;
        const names = Array.from({ length: 700 }, (_, i) => prefix + String(i).padStart(3, '0').padEnd(479 - prefix.length, '"'));
        await inParallel(16, names.map((name) => () => new Stream(shared, encodeURI(name)).create()));
        const reply = await control(shared, 'GET', `/streams?prefix=${prefix}`);
        assert.ok(reply.body.length < 256 * 1024 + 4096, `${reply.body.length}`);
        const first = assertStatus(reply, 200).json();
        assert.equal(first.next_after, first.streams.at(-1).path);
        assert.deepEqual(namesOf(await listed(shared, prefix)), names);
    });

    test('listing while streams are made and removed: those that stay are told, each once', async () => {
        const prefix = `${uniqueName('busy')}/`;
        const stay = Array.from({ length: 100 }, (_, i) => `${prefix}stay-${String(i).padStart(3, '0')}`);
        await inParallel(8, stay.map((name) => () => new Stream(shared, name).create()));
        let ending = false;
        const churn = Array.from({ length: 4 }, async (_, lane) => {
            for (let i = 0; !ending; i++) {
                const stream = new Stream(shared, `${prefix}stay-${String(i % 100).padStart(3, '0')}-${lane}`);
                await stream.create();
                assertStatus(await stream.remove(), 204);
            }
        });
        for (let round = 0; round < 20; round++) {
            const names = namesOf(await listed(shared, prefix, 1 + round * 7));
            assert.equal(new Set(names).size, names.length);
            assert.deepEqual(names, bytewise(names));
            assert.deepEqual(names.filter((one) => /stay-\d+$/.test(one)), stay);
        }
        ending = true;
        await Promise.all(churn);
    });
});
