// What is secret is shown once, to whom it is for, and stands in no log and no file.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Caller, bearer, nobody, proxied, serveFor } from './lib/serve.mjs';

function filesBelow(dir) {
    return readdirSync(dir, { withFileTypes: true }).flatMap((entry) =>
        entry.isDirectory() ? filesBelow(join(dir, entry.name)) : [join(dir, entry.name)],
    );
}

for (const format of ['text', 'json']) {
    test(`keys, invites, sessions and tokens of sandboxes are never logged, as ${format}`, async (t) => {
        const server = await serveFor(t, ['--log-level', 'debug', '--log-format', format]);
        const { owner, house } = server;
        const firstStart = server.log;
        server.log = '';
        const secrets = { 'first key': owner.key };
        const invite = async () => (await owner.ask(201, 'POST', `/api/houses/${house.id}/invites`, {})).token;
        const [used, unused, unknown] = [await invite(), await invite(), 'ab'.repeat(32)];
        Object.assign(secrets, { used, unused, unknown });
        const member = await nobody(server).ask(201, 'POST', `/api/invites/${used}`, { name: 'New' });
        secrets['key of an invite'] = member.apiKey;
        for (const [method, path] of [
            ['POST', `/api/invites/${used}`],
            ['POST', `/api/invites/${unknown}`],
            ['GET', `/api/invites/${unused}`],
            ['POST', `/api/invites/${unused}?x=1`],
            ['POST', `/api/invites/${unused}/more`],
            ['POST', `/api/%69nvites/${unused}`],
            ['POST', `/api//invites/${unused}`],
            ['DELETE', `/api/invites/${unused}`],
            ['POST', `/%61pi/invites/${unused}`],
            ['POST', `/api/invites/%${unused}`],
            ['GET', `/invite/${unused}`],
            ['GET', `//invite/${unused}?x`],
            ['GET', `/in%56ite%2f${unused}`],
            ['GET', `/api/./Invites/${unused}`],
        ]) {
            await nobody(server)
                .call(method, path, '{')
                .catch((error) => assert.match(error.message, /describe|JSON/));
        }
        const made = await owner.ask(201, 'POST', '/api/agents/keys', { name: 'one more' });
        secrets['one more key'] = made.key;
        const one = bearer(server, made.key, { agent: owner.agent, key: made.key });
        const page = await one.signIn();
        secrets.session = /arbe_session=(.*)/.exec(page.headers.Cookie)[1];
        await page.get('/api/me');
        const thread = await owner.createThread(house.id);
        const minted = await owner.ask(201, 'POST', `/api/threads/${thread.id}/sandbox-tokens`, {
            agentId: owner.agent.id,
        });
        secrets['token of a sandbox'] = minted.token;
        await bearer(server, minted.token).ask(201, 'POST', `/api/stream/${minted.stream}`, {
            payload: { type: 'signal.files.added', path: '/x' },
        });
        await bearer(server, minted.token).refused(401, 'auth.unauthenticated', 'GET', '/api/me');
        for (const headers of [
            { Authorization: `Basic ${owner.key}` },
            { Authorization: owner.key },
            { Cookie: `arbe_session=${owner.key}` },
        ]) {
            await new Caller(server, headers).refused(401, 'auth.unauthenticated', 'GET', '/api/me');
        }
        await nobody(server).refused(401, 'auth.unauthenticated', 'POST', '/api/session', { key: `${owner.key}0` });
        const bot = await owner.createAgent('Bot');
        secrets['key of a bot'] = bot.key;
        await proxied(bot, thread.id).get();
        secrets.text = 'what people say is theirs';
        await owner.say(thread.id, secrets.text);
        await owner.ask(204, 'DELETE', `/api/agents/keys/${made.id}`);
        await server.stop();
        assert.ok(server.log.includes('/api/threads/'), 'requests are logged');
        assert.ok(server.log.includes('/api/invites/'), 'those of invites too, but for what follows');
        for (const [what, secret] of Object.entries(secrets)) {
            for (const part of [secret, secret.replace(/^arbe_/, '').slice(0, 24), secret.slice(-24)]) {
                assert.ok(!server.log.includes(part), `${what} stands in the log`);
            }
        }
        assert.equal(firstStart.split(owner.key).length, 2, 'the first key is printed once');
        delete secrets.text; // which is stored, of course
        const database = filesBelow(server.dir);
        assert.ok(database.some((path) => path.endsWith('app.db')));
        for (const path of database) {
            assert.equal(statSync(path).mode & 0o077, 0, `${path} is for the owner of the server alone`);
            const content = readFileSync(path);
            for (const [what, secret] of Object.entries(secrets)) {
                assert.ok(!content.includes(secret), `${what} stands in ${path}`);
            }
        }
        await server.start();
    });
}
