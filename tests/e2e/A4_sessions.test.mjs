// Signing in and out, what a page may do with the cookie, and how keys end.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Caller, assertRefused, nobody, serveFor, withKey } from './lib/serve.mjs';

function signIn(server, key, headers) {
    return nobody(server).call('POST', '/api/session', { key }, { headers });
}

test('a session is a cookie that scripts and other sites do not get', async (t) => {
    const server = await serveFor(t);
    const { owner } = server;
    const reply = await signIn(server, owner.key);
    assert.equal(reply.status, 200);
    assert.equal(reply.json().agent.id, owner.agent.id);
    assert.equal(reply.headers['set-cookie'].length, 1);
    const [pair, ...attributes] = reply.headers['set-cookie'][0].split('; ');
    assert.match(pair, /^arbe_session=[0-9a-f]{64}$/);
    assert.deepEqual(attributes.sort(), ['HttpOnly', 'Max-Age=2592000', 'Path=/', 'SameSite=Lax']);
    const other = await signIn(server, owner.key);
    assert.notEqual(other.headers['set-cookie'][0], reply.headers['set-cookie'][0]);
});

test('behind https the cookie is Secure, and the public URL is the origin', async (t) => {
    const server = await serveFor(t, ['--public-url', 'https://arbe.example/below']);
    const reply = await signIn(server, server.owner.key);
    const [cookie] = reply.headers['set-cookie'][0].split(';');
    assert.match(reply.headers['set-cookie'][0], /; Secure$/);
    const page = (origin) => new Caller(server, { Cookie: cookie, Origin: origin });
    await page('https://arbe.example').ask(201, 'POST', '/api/houses', { name: 'x' });
    for (const origin of [
        server.base,
        'http://arbe.example',
        'https://arbe.example:444',
        'https://arbe.example.test',
        'null',
    ]) {
        await page(origin).refused(403, 'auth.bad_origin', 'POST', '/api/houses', { name: 'x' });
    }
    const { url } = await server.owner.ask(201, 'POST', `/api/houses/${server.house.id}/invites`, {});
    assert.match(url, /^https:\/\/arbe\.example\/below\/invite\/[0-9a-f]{64}$/);
});

test('with a cookie a change must come from a page of the server itself', async (t) => {
    const server = await serveFor(t);
    const { owner } = server;
    const page = await owner.signIn();
    const { Cookie } = page.headers;
    await page.ask(201, 'POST', '/api/houses', { name: 'x' });
    const origins = [
        undefined,
        'null',
        '',
        'http://127.0.0.1',
        `https://127.0.0.1:${server.port}`,
        `${server.base}/`,
        `${server.base}0`,
        `http://127.0.0.1:${server.port}.elsewhere.test`,
        'http://elsewhere.test',
    ];
    for (const origin of origins) {
        const foreign = new Caller(server, { Cookie, ...(origin === undefined ? {} : { Origin: origin }) });
        for (const [method, path, body] of [
            ['POST', '/api/houses', { name: 'x' }],
            ['PATCH', `/api/agents/${owner.agent.id}`, { name: 'x' }],
            ['PUT', `/api/houses/${server.house.id}/members/${owner.agent.id}`, { role: 'owner' }],
            ['DELETE', '/api/session'],
        ]) {
            await foreign.refused(403, 'auth.bad_origin', method, path, body);
        }
        assert.equal((await foreign.get('/api/me')).agent.id, owner.agent.id, 'reading is no change');
    }
    assert.equal((await owner.get('/api/houses')).houses.length, 2);
    // Who shows a key is no page, and the cookie beside it counts for nothing.
    const both = new Caller(server, {
        Cookie,
        Authorization: `Bearer ${owner.key}`,
        Origin: 'http://elsewhere.test',
    });
    await both.ask(201, 'POST', '/api/houses', { name: 'x' });
});

test('signing out ends the session, and no other', async (t) => {
    const server = await serveFor(t);
    const [one, two] = [await server.owner.signIn(), await server.owner.signIn()];
    const reply = await one.call('DELETE', '/api/session');
    assert.equal(reply.status, 204);
    assert.match(reply.headers['set-cookie'][0], /^arbe_session=; .*Max-Age=0/);
    await one.refused(401, 'auth.unauthenticated', 'GET', '/api/me');
    await two.get('/api/me');
    await nobody(server).ask(204, 'DELETE', '/api/session');
    await server.owner.get('/api/me');
    await server.crashAndRestart();
    two.headers.Origin = server.base; // the port is another
    await two.get('/api/me');
    await one.refused(401, 'auth.unauthenticated', 'GET', '/api/me');
});

test('a cookie that is not good any more keeps nobody from signing in or out', async (t) => {
    const server = await serveFor(t);
    const { owner } = server;
    const page = await owner.signIn();
    await page.ask(204, 'DELETE', '/api/session');
    const { Cookie, Origin } = page.headers;
    for (const cookie of [Cookie, 'arbe_session=of-something-else', `${Cookie}; ${Cookie}`]) {
        const headers = { Cookie: cookie, Origin };
        assert.equal((await signIn(server, owner.key, headers)).status, 200, cookie);
        const out = await new Caller(server, headers).call('DELETE', '/api/session');
        assert.equal(out.status, 204, out.text);
        assert.match(out.headers['set-cookie'][0], /^arbe_session=; /, 'the page forgets it');
        await new Caller(server, headers).refused(401, 'auth.unauthenticated', 'GET', '/api/me');
    }
    const { token } = await owner.ask(201, 'POST', `/api/houses/${server.house.id}/invites`, {});
    await new Caller(server, { Cookie, Origin }).ask(201, 'POST', `/api/invites/${token}`, { name: 'New' });
});

test('who fails ten times to sign in waits', async (t) => {
    const server = await serveFor(t);
    const { owner, house } = server;
    const wrong = `arbe_${'0'.repeat(64)}`;
    for (let i = 0; i < 10; i++) {
        // Claims of invites that there are not count as well: tokens are not to be guessed.
        const reply =
            i % 2 === 0
                ? await signIn(server, i % 4 === 0 ? wrong : 'nonsense')
                : await nobody(server).call('POST', `/api/invites/${'0'.repeat(64)}`, { name: 'x' });
        assertRefused(reply, i % 2 === 0 ? 401 : 404, i % 2 === 0 ? 'auth.unauthenticated' : 'invite.unusable');
    }
    const { token } = await owner.ask(201, 'POST', `/api/houses/${house.id}/invites`, {});
    for (const refused of [
        await signIn(server, wrong),
        await nobody(server).call('POST', `/api/invites/${'0'.repeat(64)}`, { name: 'x' }),
    ]) {
        assertRefused(refused, 429, 'auth.rate_limited');
        const wait = Number(refused.headers['retry-after']);
        assert.ok(wait >= 1 && wait <= 60, refused.headers['retry-after']);
        assert.equal(refused.json().error.recoverable, true);
    }
    // Who has the right one is not concerned, though others behind the same proxy guess.
    assert.equal((await signIn(server, owner.key)).status, 200);
    await nobody(server).ask(201, 'POST', `/api/invites/${token}`, { name: 'x' });
    await owner.get('/api/me');
});

test('a page of another origin signs nobody in; what is signed in already is not looked at', async (t) => {
    const server = await serveFor(t);
    const { key } = server.owner;
    const from = (origin, headers = {}) =>
        nobody(server).call('POST', '/api/session', { key }, { headers: { Origin: origin, ...headers } });
    assertRefused(await from('http://evil.example'), 403, 'auth.bad_origin');
    assertRefused(await from('http://127.0.0.1:1'), 403, 'auth.bad_origin');
    const first = await from(server.base);
    assert.equal(first.status, 200);
    const cookie = first.headers['set-cookie'][0].split(';')[0];
    const again = await nobody(server).call('POST', '/api/session', { key }, { headers: { Cookie: cookie } });
    assert.equal(again.status, 200);
});

test('a good key does not use up what is there for bad ones', async (t) => {
    const server = await serveFor(t);
    for (let i = 0; i < 25; i++) {
        assert.equal((await signIn(server, server.owner.key)).status, 200);
    }
});

test('who shows what cannot be a key is told so', async (t) => {
    const server = await serveFor(t);
    for (const value of [
        'Bearer',
        'Basic eDp5',
        `Bearer arbe_${'0'.repeat(64)}`,
        'Bearer arbe_x',
        `Token ${server.owner.key}`,
        `Bearer ${server.owner.key.toUpperCase()}`,
        `Bearer ${server.owner.key}0`,
        server.owner.key,
    ]) {
        await new Caller(server, { Authorization: value }).refused(401, 'auth.unauthenticated', 'GET', '/api/me');
    }
    await new Caller(server, { Authorization: `bearer ${server.owner.key}` }).get('/api/me');
    await new Caller(server, { Authorization: [`Bearer ${server.owner.key}`, `Bearer ${server.owner.key}`] }).refused(
        401,
        'auth.unauthenticated',
        'GET',
        '/api/me',
    );
});

test('a key is shown once, known by its hash, and ends with its sessions when it is revoked', async (t) => {
    const server = await serveFor(t);
    const { owner } = server;
    const made = await owner.ask(201, 'POST', '/api/agents/keys', { name: 'laptop' });
    const laptop = withKey(server, made.key, owner.agent);
    const page = await laptop.signIn();
    assert.equal(made.lastUsedAt, null);
    await page.get('/api/me');
    await laptop.get('/api/me');
    const { keys } = await owner.get('/api/agents/keys');
    assert.deepEqual(keys.map(({ name }) => name).sort(), ['first start', 'laptop']);
    assert.ok(keys.every(({ lastUsedAt }) => lastUsedAt > 0));
    assert.ok(!JSON.stringify(keys).includes('arbe_'));
    await owner.ask(204, 'DELETE', `/api/agents/keys/${made.id}`);
    await laptop.refused(401, 'auth.unauthenticated', 'GET', '/api/me');
    await page.refused(401, 'auth.unauthenticated', 'GET', '/api/me');
    assertRefused(await signIn(server, made.key), 401, 'auth.unauthenticated');
    await owner.get('/api/me');
    const revoked = (await owner.get('/api/agents/keys')).keys.find(({ id }) => id === made.id);
    assert.ok(revoked.revokedAt >= revoked.createdAt);
    await owner.ask(204, 'DELETE', `/api/agents/keys/${made.id}`);
    assert.equal(
        (await owner.get('/api/agents/keys')).keys.find(({ id }) => id === made.id).revokedAt,
        revoked.revokedAt,
    );
    await server.crashAndRestart();
    await laptop.refused(401, 'auth.unauthenticated', 'GET', '/api/me');
    await owner.get('/api/me');
});
