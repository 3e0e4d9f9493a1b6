// Tier C: arbe auth, house, agent, config and thread as people and scripts use them, against the real server: every
// command, every refusal, terminals, signals, and two people who follow one thread while the server is killed.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { lastingPort } from './lib/port.mjs';
import { serveFor, startServe } from './lib/serve.mjs';
import { tempDir } from './lib/server.mjs';
import { Shell } from './lib/shell.mjs';
import { rounds } from './lib/wait.mjs';

const top = tempDir();
const server = await startServe();
after(async () => {
    await server.dispose();
    rmSync(top, { recursive: true, force: true });
});

const objects = (text) => text.split('\n').filter((line) => line !== '').map((line) => JSON.parse(line));
const UUID = '[0-9a-f]{8}-[0-9a-f-]{27}';

// A shell of somebody who has a directory for a login, and none yet.
function fresh(env = {}) {
    const home = mkdtempSync(join(top, 'home-'));
    const shell = new Shell({ XDG_CONFIG_HOME: home, ...env }, []);
    shell.login = join(home, 'arbe/login');
    return shell;
}

// One of somebody who is signed in; `json` gives what a command answers.
async function signedIn(key, base = server.base) {
    const shell = fresh();
    await shell.good(['auth', 'login', '--url', base], { input: `${key}\n` });
    shell.json = async (...args) => objects(await shell.good([...args, '--json']));
    // Insists on a refusal: its exit code and the dotted code; gives the error.
    shell.refused = async (code, dotted, args, options) => {
        const plain = await shell.run(args, options);
        assert.equal(plain.code, code, `${args.join(' ')}: ${plain.code} ${plain.stderr}`);
        assert.equal(plain.stdout, '');
        assert.match(plain.stderr, /^error: \S.* .*\n(→ .*\n)?$/);
        const { stderr } = await shell.run([...args, '--json'], options);
        const { error } = JSON.parse(stderr);
        assert.equal(error.code, dotted, stderr);
        assert.equal(typeof error.recoverable, 'boolean');
        assert.ok(plain.stderr.includes(error.message), `${plain.stderr} ${stderr}`);
        return error;
    };
    return shell;
}

const ann = await signedIn(server.owner.key);

describe('auth', { timeout: 300_000 }, () => {
    test('login takes a key from stdin, a file or the environment, and keeps it for its owner alone', async () => {
        const file = join(top, 'key');
        writeFileSync(file, `${server.owner.key}\n`, { mode: 0o600 });
        const ways = [
            [['--url', `${server.base}/`], { input: `${server.owner.key}\r\n` }],
            [['--url', server.base, '--key-file', file], {}],
            [[], { env: { ARBE_API_KEY: server.owner.key, ARBE_URL: `${server.base}/v1/stream/` } }],
        ];
        for (const [flags, options] of ways) {
            const shell = fresh();
            assert.equal(await shell.good(['auth', 'login', ...flags], options), '');
            assert.equal(statSync(shell.login).mode & 0o777, 0o600);
            assert.match(await shell.good(['auth', 'whoami']), new RegExp(`^agent: Owner\nhandle: owner\nid: ${server.owner.agent.id}\n` +
                `server: ${server.base}\nhouse: ${server.house.name}\n$`));
            const [who] = objects(await shell.good(['auth', 'whoami', '--json']));
            assert.deepEqual(who, { url: server.base, agent: server.owner.agent, house: server.house });
            await shell.good(['auth', 'logout']);
            assert.ok(!existsSync(shell.login));
            await shell.good(['auth', 'logout']);
        }
    });

    test('a terminal asks, and does not show what is typed', async () => {
        const shell = fresh();
        const login = shell.terminal(['auth', 'login', '--url', server.base]);
        await login.until(/API key: /);
        login.type(`${server.owner.key}\n`);
        assert.equal((await login.end()).code, 0);
        assert.ok(!login.stdout.includes(server.owner.key.slice(0, 12)), login.stdout);
        assert.match(login.stdout, /signed in to http.* as Owner \(@owner\)\r\nhouse: Home\r\n/);
        const broken = fresh().terminal(['auth', 'login', '--url', server.base]);
        await broken.until(/API key: /);
        broken.type('arbe_\x03');
        assert.equal((await broken.end()).code, 130);
    });

    test('what is no good key is not kept', async () => {
        const shell = fresh();
        const login = (input, ...flags) => shell.run(['auth', 'login', '--url', server.base, ...flags], { input });
        const open = join(top, 'open');
        writeFileSync(open, server.owner.key, { mode: 0o644 });
        for (const [input, flags, code, sentence] of [
            [`arbe_${'0'.repeat(64)}\n`, [], 6, /^error: .+\n→ arbe auth login/], ['', [], 1, /no line on stdin/], ['two words\n', [], 1, /ASCII/],
            ['', ['--key-file', open], 1, /may be read or written by others/], ['', ['--key-file', join(top, 'none')], 1, /cannot open/],
            ['', [server.owner.key], 2, /one word too many/],
        ]) {
            const told = await login(input, ...flags);
            assert.equal(told.code, code, told.stderr);
            assert.match(told.stderr, sentence);
            assert.ok(!existsSync(shell.login));
        }
        const away = await shell.run(['auth', 'login', '--url', 'http://127.0.0.1:1', '--retries', '0'], { input: 'arbe_x\n' });
        assert.equal(away.code, 7);
        assert.match(away.stderr, /^error: .+\n→ is arbe serve running at http:\/\/127\.0\.0\.1:1\?\n$/);
        const nobody = await shell.run(['thread', 'list']);
        assert.equal(nobody.code, 6);
        assert.match(nobody.stderr, /^error: not signed in to http:\/\/127\.0\.0\.1:4437\n→ arbe auth login/);
    });

    test('a login that others may read is refused; a key is for its own server only', async (t) => {
        const shell = await signedIn(server.owner.key);
        const seen = [];
        const other = http.createServer((request, answer) => {
            seen.push(request.headers.authorization);
            answer.end('{}');
        }).listen(0, '127.0.0.1');
        t.after(() => other.close());
        await once(other, 'listening');
        const url = `http://127.0.0.1:${other.address().port}`;
        for (const env of [{}, { ARBE_URL: url }]) {
            const { code, stderr } = await shell.run(['auth', 'whoami', ...(env.ARBE_URL ? [] : ['--url', url])], { env });
            assert.equal(code, 6);
            assert.match(stderr, /not signed in/);
        }
        await shell.run(['house', 'join'], { input: `${url}/invite/${'0'.repeat(64)}\n` });
        await shell.run(['house', 'join', '--name', 'X'], { input: `${url}/invite/${'0'.repeat(64)}\n` });
        assert.deepEqual(seen.filter((one) => one !== undefined), []);
        chmodSync(shell.login, 0o644);
        const refused = await shell.run(['auth', 'whoami']);
        assert.equal(refused.code, 1);
        assert.match(refused.stderr, /may be read or written by others .*chmod 600/);
    });

    test('a URL has a scheme', async () => {
        for (const url of ['127.0.0.1:4437', 'ftp://127.0.0.1', 'localhost']) {
            const ways = [[['auth', 'login', '--url', url], {}], [['house', 'list', '--url', url], {}], [['house', 'list'], { env: { ARBE_URL: url } }],
                [['house', 'join'], { input: `${url}/invite/${'0'.repeat(64)}\n` }]];
            for (const [args, options] of ways) {
                const { message } = await ann.refused(2, 'client.usage', args, options);
                assert.equal(message, `a URL begins with http:// or https://, not "${url}"`);
            }
        }
    });

    test('another key of the environment does not use what is selected', async () => {
        const bob = await server.owner.createAgent('Bob', { kind: 'human' });
        const { stderr, code } = await ann.run(['thread', 'list'], { env: { ARBE_API_KEY: bob.key } });
        assert.equal(code, 2);
        assert.match(stderr, /you are in no house\n→ arbe house create NAME/);
    });
});

describe('house', { timeout: 300_000 }, () => {
    test('made, shown, renamed, selected, deleted', async () => {
        const me = await signedIn((await server.owner.createAgent('Maker', { kind: 'human' })).key);
        const id = (await me.good(['house', 'create', 'Garden'])).trim();
        assert.match(id, new RegExp(`^${UUID}$`));
        assert.match(readFileSync(me.login, 'utf8'), new RegExp(`^house = ${id}$`, 'm'), 'the first one is selected');
        const [other] = await me.json('house', 'create', 'Shed');
        assert.equal(other.role, 'owner');
        assert.match(await me.good(['house', 'view']), new RegExp(`^house: Garden\nid: ${id}\nrole: owner\nthread: ${UUID}\ncreated: \\d{4}-`));
        const listed = await me.good(['house', 'list']);
        assert.match(listed, new RegExp(`^${id} \\* owner {2}Garden$`, 'm'));
        assert.match(listed, new RegExp(`^${other.id}   owner {2}Shed$`, 'm'));
        assert.equal((await me.json('house', 'list', '--limit', '1')).length, 1);
        await me.good(['house', 'select', 'Shed']);
        assert.equal((await me.json('house', 'view', 'house'))[0].id, other.id);
        assert.equal((await me.json('house', 'edit', '--name', 'Old shed'))[0].name, 'Old shed');
        await me.refused(2, 'client.usage', ['house', 'edit']);
        await me.good(['house', 'delete', other.id]);
        assert.match(readFileSync(me.login, 'utf8'), /^# house =/m);
        assert.equal((await me.json('house', 'view'))[0].name, 'Garden', 'the only one is meant');
        await me.refused(3, 'client.ref_unknown', ['house', 'view', 'Old shed']);
        await me.refused(3, 'record.not_found', ['house', 'view', other.id]);
        const { code, stderr } = await me.run(['house', 'select', 'Garden'], { env: { ARBE_API_KEY: server.owner.key } });
        assert.notEqual(code, 0, stderr);
    });

    test('invites let one person in, members come and go, owners stay', async () => {
        const me = await signedIn((await server.owner.createAgent('Host', { kind: 'human' })).key);
        await me.good(['house', 'create', 'Inn']);
        const link = (await me.good(['house', 'invite', '--role', 'member', '--expires', '1h'])).trim();
        assert.match(link, new RegExp(`^${server.base}/invite/[0-9a-f]{64}$`), 'as a whole, also of a server that knows no URL of its own');
        const token = link.slice(-64);
        const guest = fresh({ ARBE_URL: server.base });
        const lost = await guest.run(['house', 'join'], { input: `${token}\n` });
        assert.equal(lost.code, 2);
        assert.match(lost.stderr, /→ --name NAME joins as somebody new/);
        const file = join(top, 'token');
        writeFileSync(file, `${token}\n`, { mode: 0o600 });
        assert.match(await guest.good(['house', 'join', '--name', 'Gast', '--token-file', file]), /^house: Inn\n/);
        assert.match(await guest.good(['auth', 'whoami']), /^agent: Gast\n(.*\n)*house: Inn\n$/);
        assert.equal(statSync(guest.login).mode & 0o777, 0o600);
        assert.equal((await fresh({ ARBE_URL: server.base }).run(['house', 'join', '--name', 'Late'], { input: `${token}\n` })).code, 3);
        await me.refused(2, 'client.usage', ['house', 'join'], { input: 'no-invite\n' });

        const fresher = (await me.good(['house', 'invite'])).trim();
        const joining = guest.terminal(['house', 'join', '--name', 'Neu']);
        await joining.until(/invite: /);
        joining.type(`${fresher}\n`);
        assert.equal((await joining.end()).code, 0, joining.stdout);
        assert.match(joining.stdout, /signed in to \S+ as Neu .*\r\n(.*\r\n)*the login of before is replaced/);
        assert.match(await guest.good(['auth', 'whoami']), /^agent: Neu\n/, 'a name means somebody new, whoever is signed in');

        const [invite] = await me.json('house', 'invite', '--role', 'owner');
        assert.deepEqual(Object.keys(invite).sort(), ['expiresAt', 'id', 'role', 'token', 'url']);
        assert.equal(invite.url, `${server.base}/invite/${invite.token}`, 'as a whole here as well');
        const inviting = me.terminal(['house', 'invite']);
        assert.equal((await inviting.end()).code, 0);
        assert.match(inviting.stdout, /^http\S+\r\nfor one person, until .*\r\nused by: arbe house join, which reads it from stdin/);
        const second = await signedIn((await server.owner.createAgent('Second', { kind: 'human' })).key);
        await second.good(['house', 'join'], { input: `${server.base}/invite/${invite.token}\n` });
        assert.match(await second.good(['house', 'members', 'Inn']), new RegExp(`^${UUID} owner {2}human Second @second$`, 'm'));

        await me.good(['agent', 'create', 'Inn Bot']);
        assert.equal((await me.json('house', 'add', '@inn-bot'))[0].role, 'member');
        assert.equal((await me.json('house', 'add', '@inn-bot', '--role', 'owner'))[0].role, 'owner');
        assert.equal((await me.json('house', 'members')).length, 5);
        await me.refused(2, 'validation.invalid_input', ['house', 'add', '@inn-bot', '--role', 'king']);
        for (const args of [['edit', '--name', 'Mine'], ['delete', 'Inn'], ['invite'], ['add', '@inn-bot'], ['remove', '@inn-bot'],
                            ['revoke', '@inn-bot']]) {
            const { code, stderr } = await guest.run(['house', ...args]);
            assert.equal(code, 6, `${args}: ${stderr}`);
        }
        await guest.good(['house', 'remove', 'me']);
        assert.equal((await guest.run(['house', 'view'])).code, 6);
        await me.good(['house', 'revoke', '@inn-bot']);
        await me.good(['house', 'remove', '@inn-bot']);
        await me.refused(3, 'record.not_found', ['house', 'revoke', '@inn-bot']);
        await me.good(['house', 'remove', 'Second']);
        await me.refused(4, 'house.last_owner', ['house', 'remove', 'me']);
    });
});

describe('agent and config', { timeout: 300_000 }, () => {
    test('agents and their keys', async () => {
        const prompt = join(top, 'prompt.md');
        writeFileSync(prompt, 'You are\nbrief.\n');
        const made = await ann.good(['agent', 'create', 'Test Bot', '--model', 'x/y', '--description', 'tries', '--system-prompt-file', prompt]);
        assert.match(made, new RegExp(`^agent: Test Bot\nhandle: test-bot\nkind: bot\n(.*\n)*key: arbe_[0-9a-f]{64}\n$`));
        const key = made.trim().slice(-69);
        const [bot] = await ann.json('agent', 'view', '@test-bot');
        assert.equal(bot.systemPrompt, 'You are\nbrief.\n');
        assert.match(await ann.good(['agent', 'view']), /^agent: Owner\n/);
        assert.equal((await ann.json('agent', 'view', bot.id.slice(0, 13)))[0].id, bot.id);
        assert.match(await ann.good(['agent', 'list']), new RegExp(`^${bot.id} bot {3}Test Bot @test-bot$`, 'm'));
        assert.ok(!(await ann.good(['agent', 'list', '--house', 'house'])).includes('Test Bot'));
        assert.equal((await ann.json('agent', 'edit', '@test-bot', '--name', 'Best Bot'))[0].handle, 'best-bot');
        await ann.refused(2, 'client.usage', ['agent', 'edit', '@best-bot']);
        await ann.refused(2, 'validation.invalid_input', ['agent', 'create', 'X', '--kind', 'robot']);
        await ann.refused(2, 'validation.invalid_input', ['agent', 'create', '']);
        await ann.refused(3, 'client.ref_unknown', ['agent', 'view', '@test-bot']);

        const [second] = await ann.json('agent', 'key', 'create', '@best-bot', '--name', 'laptop');
        assert.match(second.key, /^arbe_[0-9a-f]{64}$/);
        const listed = await ann.good(['agent', 'key', 'list', 'Best Bot']);
        assert.match(listed, new RegExp(`^${second.id} made \\S+ \\S+ used - +good {4}laptop$`, 'm'));
        assert.ok(!/arbe_/.test(listed));
        const asBot = (args) => ann.run(args, { env: { ARBE_API_KEY: second.key } });
        assert.equal((await asBot(['auth', 'whoami'])).code, 0);
        await ann.good(['agent', 'key', 'revoke', 'laptop', '--agent', '@best-bot']);
        assert.equal((await asBot(['auth', 'whoami'])).code, 6);
        await ann.refused(3, 'client.ref_unknown', ['agent', 'key', 'revoke', 'laptop', '--agent', '@best-bot']);
        assert.equal((await ann.run(['agent', 'delete', server.owner.agent.id], { env: { ARBE_API_KEY: key } })).code, 6);
        await ann.good(['agent', 'delete', '@best-bot']);
        assert.match(await ann.good(['agent', 'view', bot.id]), /^deleted: \d/m);
    });

    test('config of houses and threads', async () => {
        const thread = (await ann.good(['thread', 'create', 'house', '--patch', '{"flags":{"a":1}}'])).trim();
        assert.equal(await ann.good(['config', 'get', 'thread', thread, '--raw']), '{"flags":{"a":1}}\n');
        await ann.good(['config', 'set', 'house'], { input: '{"dispatch":{"entryLimit":7}}\n' });
        await ann.good(['config', 'set', 'thread', thread, '--patch', '{"dispatch":{"perAgent":{"x":{"triggerMode":"always"}}}}']);
        const [got] = await ann.json('config', 'get', 'thread', thread);
        assert.equal(got.resolved.dispatch.entryLimit, 7);
        assert.deepEqual(got.chain.map(({ scope }) => scope), ['default', 'house', 'thread']);
        assert.match(await ann.good(['config', 'get', 'thread', thread]), /^default: \{.*\nhouse: \{.*\nthread: \{.*\nresolved: \{.*\n$/);
        const [mine] = await ann.json('config', 'get', 'house', '--agent', 'me');
        assert.deepEqual(mine.chain.map(({ scope }) => scope), ['default', 'house', 'agent']);
        await ann.good(['config', 'delete', 'house', 'house']);
        assert.equal(await ann.good(['config', 'get', 'house', '--raw']), '{}\n');
        await ann.refused(2, 'validation.invalid_input', ['config', 'set', 'thread', thread, '--patch', '{"dispatch":{"entryLimit":"x"}}']);
        await ann.refused(2, 'validation.malformed_json', ['config', 'set', 'thread', thread, '--patch', '{']);
        await ann.refused(2, 'validation.malformed_json', ['config', 'set', 'house', '--patch', 'x']);
        await ann.refused(2, 'client.usage', ['config', 'get', 'thread']);
        await ann.refused(2, 'client.usage', ['config', 'get', 'app']);
    });
});

describe('thread', { timeout: 300_000 }, () => {
    test('made, listed, shown, changed, labelled, deleted', async () => {
        const id = (await ann.good(['thread', 'create', 'house', '--name', 'Plans', '--tags', 'a, b', '--env', 'box', '--status', 'idle'])).trim();
        const [child] = await ann.json('thread', 'create', 'Plans', '--name', 'Detail');
        assert.deepEqual(child.thread.parent, { kind: 'thread', id });
        assert.match(await ann.good(['thread', 'list']), new RegExp(`^${id} idle {6}\\d{4}-\\S+ \\d\\d:\\d\\d Plans #a #b$`, 'm'));
        const names = async (...flags) => (await ann.json('thread', 'list', ...flags)).map(({ name }) => name);
        assert.deepEqual(await names('--tag', 'b'), ['Plans']);
        assert.deepEqual(await names('--parent', 'Plans'), ['Detail']);
        assert.deepEqual(await names('--status', 'idle'), ['Plans']);
        assert.deepEqual(await names('--limit', '1'), ['Detail']);
        assert.match(await ann.good(['thread', 'view', id.slice(0, 20)]), new RegExp(`^thread: Plans\nid: ${id}\nstatus: idle\n` +
            `house: ${server.house.id}\nparent: house ${server.house.id}\ntags: #a #b\nenvironment: box\nlast entry: `));
        const [changed] = await ann.json('thread', 'update', 'Plans', '--name', 'Plan', '--status', 'running', '--pin');
        assert.ok(changed.pinnedAt > 0 && changed.status === 'running' && changed.name === 'Plan');
        assert.deepEqual(await names('--pinned'), ['Plan']);
        assert.equal((await ann.json('thread', 'update', 'Plan', '--unpin'))[0].pinnedAt, null);
        assert.deepEqual((await ann.json('thread', 'label', 'Plan', 'c', 'a'))[0].tags, ['a', 'b', 'c']);
        assert.deepEqual((await ann.json('thread', 'label', 'Plan', 'b', 'x', '--remove'))[0].tags, ['a', 'c']);
        await ann.refused(2, 'client.usage', ['thread', 'update', 'Plan']);
        await ann.refused(2, 'client.usage', ['thread', 'update', 'Plan', '--pin', '--unpin']);
        await ann.refused(4, 'thread.illegal_status', ['thread', 'update', 'Plan', '--status', 'open']);
        await ann.refused(2, 'validation.invalid_input', ['thread', 'update', 'Plan', '--status', 'done']);
        await ann.refused(2, 'validation.invalid_input', ['thread', 'list', '--status', 'done']);
        await ann.refused(4, 'thread.primary', ['thread', 'delete', server.house.primaryThreadId]);
        await ann.good(['thread', 'delete', 'Plan']);
        await ann.refused(3, 'record.not_found', ['thread', 'view', id]);
        await ann.refused(2, 'client.usage', ['thread', 'create', 'house', '--patch', '{']);
    });

    test('wrong usage is told with exit code 2', async () => {
        for (const [args, sentence] of [
            [['thread'], /which command\?/], [['thread', 'entries'], /which command\? arbe thread entries --help/], [['thread', 'entries', 'write'], /"entries write"/],
            [['thread', 'x'], /"x"/], [['thread', 'view'], /which thread\?/], [['thread', 'view', 'a', 'b'], /one word too many: "b"/],
            [['thread', 'list', '--stats', 'x'], /did you mean --status\?/], [['thread', 'list', '--limit', '0'], /--limit/], [['house', 'create'], /which name\?/],
            [['thread', 'label', 'x'], /which tags\?/], [['thread', 'list', '-x'], /-x/], [['agent', 'key'], /which command\?/], [['config', 'get'], /house or a thread\?/],
        ]) {
            const { code, stdout, stderr } = await ann.run(args);
            assert.deepEqual([code, stdout], [2, ''], args.join(' '));
            assert.match(stderr, /^error: /);
            assert.match(stderr, sentence);
        }
        for (const group of ['agent', 'auth', 'config', 'house', 'thread']) {
            assert.match(await ann.good([group, '--help']), new RegExp(`^Usage: arbe ${group} COMMAND`));
        }
        assert.match(await ann.good(['thread', 'entries', 'read', '--help']), /dispatch ends or the thread's status becomes completed, failed or cancelled/);
        assert.match(await ann.good(['thread', 'entries', '--help']), /^Usage: arbe thread entries COMMAND(.*\n)*.*entries read/);
    });

    test('an ambiguous reference lists what it may mean', async () => {
        const ids = [];
        for (let i = 0; i < 3; i++) {
            ids.push((await ann.good(['thread', 'create', 'house', '--name', 'Twice'])).trim());
        }
        const { code, stderr } = await ann.run(['thread', 'view', 'Twice']);
        assert.equal(code, 2);
        assert.match(stderr, /^error: "Twice" means 3 records\n→ say which by its id:\n/);
        ids.forEach((id) => assert.ok(stderr.includes(`  thread ${id} Twice\n`), stderr));
        const told = JSON.parse((await ann.run(['thread', 'view', 'Twice', '--json'])).stderr).error;
        assert.equal(told.code, 'client.ref_ambiguous');
        assert.deepEqual(told.context.candidates.map(({ kind, id, name }) => `${kind} ${id} ${name}`).sort(),
                         ids.map((id) => `thread ${id} Twice`).sort());
        assert.equal((await ann.run(['thread', 'view', ids[0].slice(0, 8)])).code, 2);
        await ann.refused(3, 'client.ref_unknown', ['thread', 'view', ids[0].slice(0, 7)]);
        await ann.refused(3, 'client.ref_unknown', ['thread', 'view', 'Thrice']);
    });

    test('a thread is found among hundreds, and only in its house', async () => {
        const house = await server.owner.createHouse('Many');
        const names = Array.from({ length: 230 }, (_, i) => `thread ${i}`);
        for (const name of names) {
            await server.owner.createThread(house.id, { name });
        }
        assert.equal((await ann.json('thread', 'view', 'thread 0', '--house', 'Many'))[0].name, 'thread 0');
        assert.equal((await ann.json('thread', 'list', '--house', 'Many')).length, 231);
        await ann.refused(3, 'client.ref_unknown', ['thread', 'view', 'thread 0']);
        await ann.good(['house', 'delete', 'Many']);
    });
});

// A bot in the owner's house that may write what sandboxes write into the thread.
async function sandboxFor(threadId, name = 'Runner') {
    const bot = await server.owner.createAgent(name);
    await server.owner.ask(201, 'PUT', `/api/houses/${server.house.id}/members/${bot.agent.id}`, { role: 'member' });
    const sandbox = await server.owner.mint(threadId, bot.agent.id);
    return (...payloads) => sandbox.ask(201, 'POST', `/api/stream/arbe-thread-${threadId}`, payloads.map((payload) => ({ payload })));
}

const USAGE = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } };
const assistant = (content, more = {}) => ({ type: 'pi.assistant', content, provider: 'p', model: 'm', usage: USAGE, stopReason: 'stop', ...more });
const says = (text) => assistant([{ type: 'text', text }]);
const status = (word, reason) => ({ type: 'signal.thread.status_changed', status: word, ...(reason ? { reason } : {}) });
const newThread = async (...flags) => (await ann.good(['thread', 'create', 'house', ...flags])).trim();

describe('entries', { timeout: 300_000 }, () => {
    test('posted by word or stdin, once for an id; read as JSON lines, from an offset', async () => {
        const id = await newThread();
        const posted = await ann.good(['thread', 'entries', 'create', id, 'one', '--id', 'e1']);
        assert.equal(posted, `thread: ${id}\nentry: e1\n`);
        const again = (text, ...flags) => ann.run(['thread', 'entries', 'create', id, text, '--id', 'e1', ...flags]);
        assert.deepEqual(await again('one'), { code: 0, signal: null, stdout: posted, stderr: '' }, 'the same again is no news');
        assert.deepEqual(await again('two'), { code: 0, signal: null, stdout: posted,
            stderr: 'warning: an entry e1 with another text was there before; nothing was stored\n' });
        const told = await again('two', '--json');
        assert.deepEqual([told.code, told.stderr, JSON.parse(told.stdout).payload.text], [0, '', 'one']);
        const [reply] = await (async () => objects(await ann.good(['thread', 'entries', 'create', id, '--reply-to', 'e1', '--json'], { input: 'two\nlines\n\n' })))();
        assert.deepEqual(reply.payload, { type: 'chat', text: 'two\nlines', replyTo: 'e1' });
        const read = objects(await ann.good(['thread', 'entries', 'read', id, '--once']));
        assert.deepEqual(read, await server.owner.history(id));
        assert.deepEqual(read.slice(-2).map(({ payload }) => payload.text), ['one', 'two\nlines']);
        const withOffsets = objects(await ann.good(['thread', 'entries', 'read', id, '--once', '--offsets']));
        const { nextOffset, upToDate } = withOffsets.at(-1);
        assert.equal(upToDate, true);
        await ann.good(['thread', 'entries', 'create', id, 'three']);
        const rest = objects(await ann.good(['thread', 'entries', 'read', id, '--once', '--from', nextOffset]));
        assert.deepEqual(rest.map(({ payload }) => payload.text), ['three']);
        await ann.refused(2, 'client.usage', ['thread', 'entries', 'create', id], { input: '\n' });
        await ann.refused(2, 'validation.invalid_input', ['thread', 'entries', 'create', id, 'x', '--reply-to', 'not an id']);
        await ann.refused(2, 'client.usage', ['thread', 'entries', 'read', id, '--once', '--follow']);
        await ann.refused(3, 'record.not_found', ['thread', 'entries', 'read', server.house.id]);
        await ann.refused(3, 'record.not_found', ['thread', 'entries', 'create', server.house.id, 'x']);
    });

    test('what is no UTF-8 is refused, not mended', async () => {
        const id = await newThread();
        const bytes = Buffer.from([0x61, 0xff, 0xc3, 0x28]);
        const { message } = await ann.refused(2, 'client.usage', ['thread', 'entries', 'create', id], { input: bytes });
        assert.equal(message, 'stdin is not UTF-8, which a text must be');
        const prompt = join(top, 'bytes');
        writeFileSync(prompt, bytes);
        await ann.refused(2, 'client.usage', ['agent', 'create', 'Bytes', '--system-prompt-file', prompt]);
        for (const words of [`thread entries create ${id} "$(printf 'a\\377')"`, `thread update ${id} --name "$(printf 'a\\377')"`]) {
            const { code, stderr } = await ann.line(`arbe ${words}`).end();
            assert.equal(code, 2, stderr);
            assert.equal(stderr, 'error: a word is not UTF-8, which a text must be\n');
        }
        assert.deepEqual((await server.owner.history(id)).map(({ payload }) => payload.type), ['signal.thread.created']);
        await ann.good(['thread', 'entries', 'create', id], { input: 'Grüße 🐻' });
        assert.equal((await server.owner.history(id)).at(-1).payload.text, 'Grüße 🐻');
    });

    test('a repeated post gets the first answer, whichever thread of the server is faster', async () => {
        const thread = await server.owner.createThread(server.house.id);
        for (let i = 0; i < rounds(300); i++) {
            const entry = { id: `e${i}`, payload: { type: 'chat', text: 'x' } };
            const first = await server.owner.ask(201, 'POST', `/api/threads/${thread.id}/entries`, entry);
            assert.deepEqual(await server.owner.ask(200, 'POST', `/api/threads/${thread.id}/entries`, entry), first);
        }
    });

    test('an agent is written to in a talk of one\'s own, made once', async () => {
        const bot = await server.owner.createAgent('Talk Bot');
        await ann.good(['house', 'add', bot.agent.id]);
        const [first, second, third] = [await ann.good(['thread', 'entries', 'create', '@talk-bot', 'a']),
            await ann.good(['thread', 'entries', 'create', 'Talk Bot', 'b']), await ann.good(['thread', 'entries', 'create', bot.agent.id, 'c'])];
        const [thread] = /(?<=^thread: )\S+/.exec(first);
        assert.ok(second.includes(thread) && third.includes(thread));
        const [record] = await ann.json('thread', 'view', thread);
        assert.deepEqual(record.parent, { kind: 'agent', id: bot.agent.id });
        assert.equal((await ann.json('thread', 'list', '--parent', '@talk-bot')).length, 1);
        const bob = await signedIn((await server.owner.invite(server.house.id, 'Bob Other')).key);
        assert.ok(!(await bob.good(['thread', 'entries', 'create', '@talk-bot', 'mine'])).includes(thread));
    });

    test('reading ends with the run: exit code 1 if it failed, 0 else; --follow goes on', async () => {
        const id = await newThread('--status', 'idle');
        const write = await sandboxFor(id, 'Ender');
        const reading = ann.start('thread', 'entries', 'read', id);
        const following = ann.start('thread', 'entries', 'read', id, '--follow');
        for (const one of [reading, following]) {
            await one.until(/signal\.thread\.created/);
        }
        await ann.good(['thread', 'entries', 'create', id, 'go']);
        await write(says('working'), status('failed', 'no disk'));
        const { code, stdout, stderr } = await reading.end();
        assert.equal(code, 1, stderr);
        assert.equal(objects(stdout).at(-1).payload.reason, 'no disk');
        assert.equal((await ann.run(['thread', 'entries', 'read', id])).code, 1, 'at rest');
        await write(status('running'), says('better'), status('completed'));
        assert.equal((await ann.run(['thread', 'entries', 'read', id])).code, 0);
        await following.until(/"completed"/);
        following.kill('SIGINT');
        assert.equal((await following.end()).code, 130);
        assert.deepEqual(objects(following.stdout), await server.owner.history(id));
    });

    test('result and diagnose', async () => {
        const id = await newThread();
        const write = await sandboxFor(id, 'Thinker');
        await ann.refused(3, 'client.no_result', ['thread', 'result', id]);
        assert.equal((await ann.json('thread', 'diagnose', id))[0].stage, 'empty');
        await ann.good(['thread', 'entries', 'create', id, 'why?']);
        assert.equal((await ann.json('thread', 'diagnose', id))[0].stage, 'posted');
        await write(says('first'), says('because\nof that'), assistant([{ type: 'toolCall', id: 'c', name: 'bash', arguments: { command: 'ls' } }]));
        assert.equal(await ann.good(['thread', 'result', id]), 'because\nof that\n');
        assert.equal((await ann.json('thread', 'result', id))[0].payload.type, 'pi.assistant');
        assert.match(await ann.good(['thread', 'diagnose', id]), /^status: open\nmessage: Owner, \d.*\nanswers: 3\nworking: an agent is at work\n$/);
        await write(status('failed', 'oom'));
        const [told] = await ann.json('thread', 'diagnose', id);
        assert.deepEqual([told.stage, told.reason, told.status, told.answers], ['failed', 'oom', 'failed', 3]);
    });

    test('a thread that is deleted, and a member who is removed, end what is read', async () => {
        const house = await server.owner.createHouse('Ends');
        const guest = await server.owner.invite(house.id, 'Guest');
        const shell = await signedIn(guest.key);
        const removed = shell.start('thread', 'entries', 'read', house.primaryThreadId);
        await removed.until(/created/);
        await server.owner.ask(204, 'DELETE', `/api/houses/${house.id}/members/${guest.agent.id}`);
        assert.equal((await removed.end()).code, 6);
        assert.match(removed.stderr, /^error: .+\n/);
        const thread = await server.owner.createThread(house.id);
        const deleted = ann.start('thread', 'entries', 'read', thread.id);
        await deleted.until(/created/);
        await ann.good(['thread', 'delete', thread.id]);
        assert.equal((await deleted.end()).code, 3);
    });
});

describe('terminals and signals', { timeout: 300_000 }, () => {
    test('lines for people: who, when, what; signals are sentences, tools a line, chunks nothing', async () => {
        const id = await newThread('--name', 'Show');
        const write = await sandboxFor(id, 'Show Bot');
        await ann.good(['thread', 'entries', 'create', id, 'look\nat this']);
        await ann.good(['thread', 'update', id, '--name', 'Shown']);
        await write({ type: 'pi.chunk', contentIndex: 0, block: 'text', delta: 'HIDDEN' },
                    assistant([{ type: 'text', text: 'I see.' }, { type: 'toolCall', id: 'c', name: 'bash', arguments: { command: 'make\ntest' } }]),
                    { type: 'pi.tool_result', toolCallId: 'c', toolName: 'bash', content: [{ type: 'text', text: 'boom\nHIDDEN' }], isError: true },
                    status('failed', 'gave up'));
        const read = ann.terminal(['thread', 'entries', 'read', id]);
        assert.equal((await read.end()).code, 1);
        const lines = read.stdout.replaceAll(/\x1b\[[0-9;]*m/g, '').split('\r\n');
        const clock = '\\d\\d:\\d\\d';
        const wanted = ['--- \\d{4}-\\d\\d-\\d\\d ---', `${clock} \\* Owner made the thread`, `${clock} Owner: look`, ' {6}at this',
            `${clock} \\* Owner renamed the thread to "Shown"`, `${clock} Show Bot: I see\\.`, `${clock} > bash: make`, `${clock} > bash failed: boom`,
            `${clock} \\* Show Bot set the thread to failed: gave up`, ''];
        assert.equal(lines.length, wanted.length, read.stdout);
        wanted.forEach((pattern, at) => assert.match(lines[at], new RegExp(`^${pattern}$`)));
        assert.ok(read.stdout.includes('\x1b[1mOwner:\x1b[0m look'), JSON.stringify(read.stdout));
        for (const env of [{ NO_COLOR: '1' }, { TERM: 'dumb' }]) {
            const plain = new Shell({ ...ann.env, ...env }, []);
            plain.env = { ...ann.env, ...env };
            const shown = plain.terminal(['thread', 'entries', 'read', id, '--once']);
            assert.equal((await shown.end()).code, 0);
            assert.ok(!shown.stdout.includes('\x1b'), shown.stdout);
        }
        const asJson = ann.terminal(['thread', 'entries', 'read', id, '--json', '--once']);
        await asJson.end();
        assert.equal(objects(asJson.stdout.replaceAll('\r', '')).length, (await server.owner.history(id)).length);
    });

    test('what was deleted is not shown to people, and is there for machines', async () => {
        const id = await newThread();
        for (const [entry, text] of [['keep', 'stays'], ['gone', 'SECRET']]) {
            await ann.good(['thread', 'entries', 'create', id, text, '--id', entry]);
        }
        const live = ann.terminal(['thread', 'entries', 'read', id, '--follow']);
        await live.until(/SECRET/);
        await server.owner.ask(201, 'DELETE', `/api/threads/${id}/entries/gone`);
        await live.until(/Owner deleted a message/);
        live.type('\x03');
        assert.equal((await live.end()).code, 130);
        for (const flag of ['--once', '--follow']) {
            const shown = ann.terminal(['thread', 'entries', 'read', id, flag]);
            await shown.until(/Owner deleted a message/);
            shown.kill('SIGTERM');
            const { stdout } = await shown.end();
            assert.ok(!stdout.includes('SECRET'), stdout);
            assert.match(stdout, /Owner:\S* stays\r\n.*\d\d:\d\d Owner: \(deleted\)/);
        }
        assert.ok((await ann.good(['thread', 'entries', 'read', id, '--once'])).includes('SECRET'));
    });

    test('what others write never reaches the terminal raw', async () => {
        const nasty = 'a\x1b]0;owned\x07b\u009b31mc\rd';
        const id = await newThread();
        const write = await sandboxFor(id, 'Nasty');
        await ann.good(['thread', 'entries', 'create', id, nasty]);
        await write(assistant([{ type: 'text', text: nasty }, { type: 'toolCall', id: 'c', name: nasty, arguments: { command: nasty } }]),
                    status('completed', nasty));
        await ann.good(['thread', 'label', id, 'ok']);
        const plain = new Shell({}, []);
        plain.env = { ...ann.env, NO_COLOR: '1' };
        for (const args of [['entries', 'read', id, '--once'], ['entries', 'read', id, '--once', '--json'], ['result', id], ['diagnose', id], ['view', id], ['list']]) {
            const shown = plain.terminal(['thread', ...args]);
            assert.equal((await shown.end()).code, 0);
            assert.ok(!/[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f]/.test(shown.stdout), JSON.stringify(shown.stdout));
        }
        const read = plain.terminal(['thread', 'entries', 'read', id, '--once']);
        await read.end();
        assert.match(read.stdout, /Owner: a\?]0;owned\?b\?31mc\?d\r\n/);
    });

    test('Ctrl-C ends reading at once, on a terminal and in a pipe', async () => {
        const id = await newThread();
        const read = ann.terminal(['thread', 'entries', 'read', id]);
        await read.until(/made the thread/);
        read.type('\x03');
        assert.equal((await read.end()).code, 130);
        for (const [signal, code] of [['SIGINT', 130], ['SIGTERM', 143], ['SIGHUP', 129]]) {
            const piped = ann.start('thread', 'entries', 'read', id);
            await piped.until(/created/);
            piped.kill(signal);
            const told = await piped.end();
            assert.deepEqual([told.code, told.stderr], [code, '']);
        }
        const waiting = ann.start('auth', 'whoami', '--url', 'http://127.0.0.1:1', '--retries', '1000');
        waiting.child.stdin.end();
        assert.equal((await waiting.end()).code, 6, 'no key is for that server');
        const stdin = ann.start('thread', 'entries', 'create', id);
        stdin.type('never ');
        await stdin.ready();
        stdin.kill('SIGINT');
        assert.equal((await stdin.end()).code, 130);
        assert.equal((await server.owner.history(id)).length, 1);
    });

    test('Ctrl-C in the middle of a body, and while a server stays silent', async (t) => {
        let seen;
        const began = () => new Promise((done) => { seen = done; });
        const slow = http.createServer((request, answer) => {
            answer.setHeader('Content-Type', 'application/json');
            if (request.url.startsWith('/api/threads/') && request.url.includes('/agents')) {
                answer.end('{"agents":[],"nextCursor":null}');
            } else if (request.url.includes('/stream')) {
                answer.writeHead(200, { 'Stream-Next-Offset': '1', 'Content-Length': '1000' });
                answer.write('[{"id":"1","ts":1,"payload":{"type":"chat","text":"ha', () => seen());
            } else {
                seen();
            }
        }).listen(0, '127.0.0.1');
        t.after(() => {
            slow.closeAllConnections();
            slow.close();
        });
        await once(slow, 'listening');
        const shell = fresh({ ARBE_URL: `http://127.0.0.1:${slow.address().port}`, ARBE_API_KEY: 'arbe_x' });
        for (const args of [['thread', 'entries', 'read', server.house.primaryThreadId], ['auth', 'whoami'], ['thread', 'list']]) {
            const arrived = began();
            const running = shell.start(...args);
            await arrived;
            running.kill('SIGINT');
            const told = await running.end();
            assert.deepEqual([told.code, told.stderr], [130, ''], args.join(' '));
        }
    });

    test('a reader of the pipe that goes away ends it without a word', async () => {
        const id = await newThread();
        const { stderr } = await ann.line(`{ arbe thread entries read ${id}; echo code $? >&2; } | true`).end();
        assert.equal(stderr, 'code 141\n');
    });
});

describe('two people', { timeout: 300_000 }, () => {
    test('follow one thread while the server is killed and started again: each entry once, in order', async (t) => {
        const mortal = await serveFor(t, ['--listen', `127.0.0.1:${await lastingPort()}`]);
        const bob = await mortal.owner.invite(mortal.house.id, 'Bob');
        const shells = [await signedIn(mortal.owner.key, mortal.base), await signedIn(bob.key, mortal.base)];
        const thread = mortal.house.primaryThreadId;
        const readers = shells.map((shell) => shell.start('thread', 'entries', 'read', 'Home', '--follow'));
        const watcher = shells[0].terminal(['thread', 'entries', 'read', 'Home', '--follow']);
        let said = 0;
        for (let round = 0; round < 3; round++) {
            for (let i = 0; i < 4; i++, said++) {
                await shells[said % 2].good(['thread', 'entries', 'create', thread, `word ${said}`, '--retries', '100']);
            }
            for (const reader of [...readers, watcher]) {
                await reader.until(new RegExp(`word ${said - 1}\\b`));
            }
            await mortal.crash();
            const late = shells[round % 2].start('thread', 'entries', 'create', thread, `word ${said++}`, '--id', `late-${round}`, '--retries', '100');
            await mortal.start();
            assert.equal((await late.end()).code, 0, late.stderr);
        }
        for (const reader of [...readers, watcher]) {
            await reader.until(new RegExp(`word ${said - 1}\\b`));
            reader.kill('SIGINT');
        }
        const history = await mortal.owner.history(thread);
        const words = history.filter(({ payload }) => payload.type === 'chat').map(({ payload }) => payload.text);
        assert.deepEqual(words, Array.from({ length: said }, (_, i) => `word ${i}`));
        for (const reader of readers) {
            assert.equal((await reader.end()).code, 130);
            assert.deepEqual(objects(reader.stdout), history);
        }
        await watcher.end();
        const shown = [...watcher.stdout.matchAll(/(Owner|Bob):\S* (word \d+)/g)].map((found) => found[2]);
        assert.deepEqual(shown, words);
    });
});
