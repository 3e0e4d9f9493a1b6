// Tier B4: arbe t3. Tokens that can only read, and the shapes of what a server tells; the peer is Effect's own server.
import assert from 'node:assert/strict';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { tempDir } from './lib/server.mjs';
import { Shell } from './lib/shell.mjs';
import { PROJECTION, READ, SHELL, THREAD, makeCertificate, projectionOf, shellSnapshot, shellSnapshotV1, startPeer, threadShell } from './lib/t3_peer.mjs';
import { eventually } from './lib/wait.mjs';

const mode = (path) => (statSync(path).mode & 0o777).toString(8);
const names = (dir) => (existsSync(dir) ? readdirSync(dir).sort() : []);

// A user with a home of their own: { home, shell, file, token(host) }.
function user(env = {}) {
    const home = tempDir();
    const dir = join(home, '.config/arbe');
    return {
        home, dir, file: join(dir, 't3'),
        shell: new Shell({ HOME: home, ...env }, ['t3']),
        token: (host) => join(dir, 't3-tokens', host),
        hosts: () => (existsSync(join(dir, 't3')) ? readFileSync(join(dir, 't3'), 'utf8') : ''),
        keep(text) {
            mkdirSync(dir, { recursive: true });
            writeFileSync(join(dir, 't3'), text);
        },
    };
}

async function peerFor(t, options = {}) {
    const peer = await startPeer({ token: null, pairing: 'PAIR-1', ...options });
    t.after(() => peer.stop());
    return peer;
}

// Insists on a refusal: exit code, and a sentence on stderr that holds none of the secrets.
async function refused(running, code, sentence, secrets = []) {
    const { code: got, stdout, stderr } = await running;
    assert.equal(got, code, `${stdout}${stderr}`);
    assert.match(stderr, sentence);
    for (const secret of secrets) {
        assert.ok(!`${stdout}${stderr}`.includes(secret), `${secret} in ${stderr}`);
    }
    return stderr;
}

const asked = (peer) => peer.requests.map(({ method, path }) => `${method} ${path}`);

describe('arbe t3 login', { timeout: 120_000 }, () => {
    test('keeps a token that can only read, in files that only the user may read', async (t) => {
        const peer = await peerFor(t);
        const { shell, dir, file, hosts, token } = user();
        const { code, stdout, stderr } = await shell.run(['login', peer.url, '--host', 'mac'], { input: 'PAIR-1\n' });
        assert.deepEqual({ code, stdout }, { code: 0, stdout: '' }, stderr);
        assert.match(stderr, /^arbe t3 login: mac: a token that can only read is kept in .*\/t3-tokens\/mac\narbe t3 login: it is good for 30 days\narbe t3 login: arbe board shows its threads\n$/);
        assert.equal(hosts(), `[mac]\nurl = ${peer.url}\nsecret-file = t3-tokens/mac\n`);
        assert.deepEqual([mode(file), mode(token('mac')), mode(join(dir, 't3-tokens')), mode(dir)], ['600', '600', '700', '700']);
        assert.deepEqual(names(join(dir, 't3-tokens')), ['mac']);
        const kept = readFileSync(token('mac'), 'utf8');
        assert.deepEqual(peer.sessions.tokens.get(kept).scopes, [READ]);
        assert.match(peer.sessions.tokens.get(kept).label, /^arbe/);
        assert.ok(!stderr.includes(kept));
        // The credential goes out once, after it is known who answers, and the token is tried.
        assert.deepEqual(asked(peer), ['GET /.well-known/t3/environment', 'POST /oauth/token', 'GET /api/auth/session']);
        assert.equal(peer.requests[0].headers.authorization, undefined);
        assert.equal(peer.requests.filter(({ body }) => body.includes('PAIR-1')).length, 1);
    });

    test('answers in JSON, and calls a host as it calls itself', async (t) => {
        const peer = await peerFor(t);
        const { shell, token } = user();
        peer.sessions.answers['GET /.well-known/t3/environment'] = () => ({ status: 200, body: { environmentId: 'e', label: "  Ada's \u0007 Mac/Book! ", serverVersion: '0.1.1' } });
        const answer = JSON.parse(await shell.good(['login', peer.base, '--json'], { input: 'PAIR-1' }));
        assert.deepEqual(answer, {
            host: 'Ada-s-Mac-Book', url: peer.base, scope: READ, expires_in: 30 * 24 * 3600 - 1, server_version: '0.1.1', token_file: token('Ada-s-Mac-Book'), renewed: false,
        });
    });

    test('takes a pairing link, of that server only', async (t) => {
        const peer = await peerFor(t);
        const { shell, hosts } = user();
        await refused(shell.run(['login', peer.url], { input: 'http://127.0.0.1:9/pair#token=PAIR-1' }), 1, /link is of http:\/\/127\.0\.0\.1:9, and not of /, ['PAIR-1']);
        await refused(shell.run(['login', peer.url], { input: 'http://u:sesame@h/pair#token=PAIR-1' }), 1, /ends in \/pair#token=/, ['PAIR-1', 'sesame']);
        await refused(shell.run(['login', peer.url], { input: `${peer.base}/pair` }), 1, /ends in \/pair#token=/);
        await refused(shell.run(['login', peer.url], { input: `${peer.base}/pair#token=` }), 1, /no credential/);
        assert.equal(hosts(), '');
        await shell.good(['login', peer.url, '--host', 'a'], { input: `${peer.base}/pair#token=PAIR-1\n` });
        peer.pair('PAIR-2');
        await shell.good(['login', peer.url, '--host', 'a'], { input: `${peer.base}/pair?token=PAIR-2` });
        // T3's hosted page is only on the way to the server that its link names.
        peer.pair('PAIR-3');
        const hosted = (base) => `https://app.example/pair?host=${encodeURIComponent(`${base}/`)}&label=a#token=PAIR-3`;
        await refused(shell.run(['login', peer.url], { input: hosted('http://127.0.0.1:9') }), 1, /link is of http:\/\/127\.0\.0\.1:9, and not of /, ['PAIR-3']);
        await refused(shell.run(['login', hosted(peer.base)], { input: '' }), 2, new RegExp(`give ${peer.base}, and paste`), ['PAIR-3']);
        await shell.good(['login', peer.url, '--host', 'a'], { input: hosted(peer.base) });
    });

    test('a pairing link for the URL: says what to give instead, and does not repeat it', async (t) => {
        const peer = await peerFor(t);
        const { shell } = user();
        for (const link of [`${peer.base}/pair#token=PAIR-1`, `${peer.base}/pair?token=PAIR-1`]) {
            await refused(shell.run(['login', link], { input: 'PAIR-1' }), 2,
                          new RegExp(`that is a pairing link: give ${peer.base}, and paste the link when asked`), ['PAIR-1']);
        }
        await refused(shell.run(['login', 'http://u:sesame@h/pair#token=PAIR-1'], { input: '' }), 2, /must not hold a user name or a password/, ['PAIR-1', 'sesame']);
        assert.deepEqual(asked(peer), []);
    });

    test('a URL that the hosts\' file has is renewed under its name, and gets no second one', async (t) => {
        const peer = await peerFor(t);
        const { shell, hosts, keep, dir } = user();
        await shell.good(['login', peer.url, '--host', 'mac'], { input: 'PAIR-1' });
        peer.pair('PAIR-2');
        const { code, stderr } = await shell.run(['login', peer.base], { input: 'PAIR-2' });
        assert.equal(code, 0, stderr);
        assert.match(stderr, /^arbe t3 login: mac: renewed: a token that can only read is kept in /m);
        assert.equal(hosts(), `[mac]\nurl = ${peer.base}\nsecret-file = t3-tokens/mac\n`);
        assert.deepEqual(names(join(dir, 't3-tokens')), ['mac']);
        peer.pair('PAIR-3');
        for (const more of [[], ['--replace']]) {
            await refused(shell.run(['login', peer.base, '--host', 'box', ...more], { input: 'PAIR-3' }), 1, /this URL is that of "mac" already.*twice/);
        }
        assert.equal(peer.sessions.pairings.size, 1); // it was not spent
        assert.deepEqual(JSON.parse(await shell.good(['login', peer.base, '--json'], { input: 'PAIR-3' })).renewed, true);
        // Two of one URL, as somebody may have written them.
        keep(`[a]\nurl = ${peer.url}\n[b]\nurl = ${peer.base}\n`);
        peer.pair('PAIR-4');
        await refused(shell.run(['login', peer.url], { input: 'PAIR-4' }), 2, /"a" and "b" have this URL: --host says which/);
        await shell.good(['login', peer.url, '--host', 'b'], { input: 'PAIR-4' });
        await refused(new Shell({ HOME: join(dir, '../..') }, ['board']).run(['--once']), 2, /the host "b" is the same server as "a"/);
    });

    test('one server under two names of this machine is one: its link is taken, a second name is not', async (t) => {
        const peer = await peerFor(t);
        const { shell, hosts, home } = user();
        const local = peer.base.replace('127.0.0.1', 'localhost');
        await shell.good(['login', peer.base, '--host', 'mac'], { input: `${local}/pair#token=PAIR-1\n` });
        peer.pair('PAIR-2');
        const before = peer.requests.length;
        for (const more of [[], ['--host', 'box'], ['--host', 'box', '--replace'], ['--host', 'mac']]) {
            await refused(shell.run(['login', local, ...more], { input: 'PAIR-2' }), 1,
                          new RegExp(`this server is "mac" already.*give the URL that it has there, ${peer.base}`));
        }
        assert.equal(peer.requests.length, before); // nobody was asked
        const board = new Shell({ HOME: home }, ['board']);
        await refused(board.run(['--once', '--t3', 'mac', '--t3', `box=${local}`]), 2, /the host "box" is the same server as "mac"/);
        await shell.good(['login', local, '--host', 'mac', '--replace'], { input: 'PAIR-2' });
        assert.equal(hosts(), `[mac]\nurl = ${local}\nsecret-file = t3-tokens/mac\n`);
    });

    test('says how the board is shown of another hosts\' file', async (t) => {
        const peer = await peerFor(t);
        const { shell, home } = user();
        const file = join(home, 'mine');
        const { stderr } = await shell.run(['login', peer.url, '--t3-hosts', file], { input: 'PAIR-1' });
        assert.match(stderr, new RegExp(`: arbe board --t3-hosts ${file} shows its threads\n$`));
        peer.pair('PAIR-2');
        const again = await shell.run(['login', peer.url], { input: 'PAIR-2', env: { ARBE_T3_HOSTS_FILE: file } });
        assert.match(again.stderr, /renewed.*\n.*\n.*: arbe board shows its threads\n$/);
    });

    // 0.0.0.0 is this machine, and no address of the loopback: to arbe it could be any.
    test('tokens go over plain http only where that is allowed, by each command', async (t) => {
        const peer = await peerFor(t, { host: '0.0.0.0' });
        peer.list(threadShell('t-1'));
        const { home, shell, hosts, keep } = user();
        const board = new Shell({ HOME: home }, ['board', '--once']);
        const open = /not encrypted, and its token could be read on the way: use https, or "allow-http = true" in its section/;
        const bare = { env: { ARBE_T3_TOKEN: 'tok-secret' } };
        await refused(shell.run(['probe', peer.url], bare), 2, open, ['tok-secret']);
        await refused(board.run(['--t3', `mac=${peer.url}`], bare), 2, open, ['tok-secret']);
        await refused(shell.run(['login', peer.url, '--host', 'mac'], { input: 'PAIR-1' }), 2, /not encrypted.*--allow-http/, ['PAIR-1']);
        assert.deepEqual([peer.requests.length, peer.upgrades.length], [0, 0]);
        await shell.good(['login', peer.url, '--host', 'mac', '--allow-http'], { input: 'PAIR-1' });
        assert.match(hosts(), /\nallow-http = true\n/);
        await shell.good(['probe', 'mac']);
        assert.match(await board.good([]), /^mac  idle /);
        peer.pair('PAIR-2');
        await shell.good(['login', peer.url], { input: 'PAIR-2' }); // the section says so
        keep(hosts().replace('allow-http = true\n', ''));
        const before = peer.requests.length + peer.upgrades.length;
        for (const [running, code] of [[shell.run(['probe', 'mac']), 2], [shell.run(['probe', peer.url]), 2], [board.run([]), 2], [shell.run(['logout', 'mac']), 1]]) {
            await refused(running, code, /not encrypted, and its token could be read on the way/);
        }
        assert.equal(peer.requests.length + peer.upgrades.length, before);
        await shell.good(['probe', 'mac', '--allow-http']);
        await board.good(['--allow-http']);
        peer.sessions.endsItself = true;
        await shell.good(['logout', 'mac', '--allow-http']);
        // Where there is no token there is nothing to read.
        assert.match((await board.run(['--t3', `mac=${peer.url}`])).stderr, /mac: refused/);
    });

    test('asks on a terminal without showing what is typed', async (t) => {
        const peer = await peerFor(t);
        const { shell, token } = user();
        const terminal = shell.terminal(['login', peer.url, '--host', 'mac']);
        await terminal.until(/Pairing code or link: /);
        terminal.type('PAIR-1\n');
        const { code, stdout } = await terminal.end();
        assert.equal(code, 0, stdout);
        assert.ok(!stdout.includes('PAIR-1'), stdout);
        assert.equal(mode(token('mac')), '600');
    });

    test('says what is wrong with a credential or a server, and keeps nothing', async (t) => {
        const peer = await peerFor(t);
        const { shell, dir } = user();
        const login = (input = 'PAIR-1') => shell.run(['login', peer.url], { input });
        const answering = (route, answer) => { peer.sessions.answers = { [route]: () => answer }; };
        await refused(login('PAIR-X'), 1, /does not take this pairing credential: it is wrong, was used already, or has expired/, ['PAIR-X']);
        await refused(login(''), 1, /no line on stdin for a pairing code or link of T3 Code \(t3 auth pairing create makes one\)/);
        await refused(login('two words'), 1, /visible ASCII/, ['two words']);
        peer.pair('PAIR-2', ['terminal:operate']);
        await refused(login('PAIR-2'), 1, /does not grant orchestration:read/, ['PAIR-2']);
        for (const [route, answer, sentence] of [
            ['POST /oauth/token', { status: 400, body: { code: 'invalid_request', reason: 'invalid_scope' } }, /does not know the scope orchestration:read/],
            ['POST /oauth/token', { status: 400, body: { reason: 'PAIR-1 is odd' } }, /answered POST \/oauth\/token with 400\n/],
            ['POST /oauth/token', { status: 404 }, /has no POST \/oauth\/token \(404\): its version is too old/],
            ['POST /oauth/token', { status: 426 }, /another protocol/],
            ['POST /oauth/token', { status: 500, body: { code: 'internal_error', reason: 'access_token_issuance_failed' } }, /with 500 \(access_token_issuance_failed\)/],
            ['POST /oauth/token', { status: 201, body: { access_token: 'tok_quoted', reason: 'tok_quoted' } }, /with 201 \(\*\*\*\); end its session: t3 auth session revoke ID\n/],
            ['POST /oauth/token', { status: 200, body: { access_token: '', token_type: 'Bearer' } }, /no bearer token/],
            ['POST /oauth/token', { status: 200, body: { access_token: 'a b', token_type: 'Bearer', scope: READ } }, /no bearer token that can be kept; end its session: t3 auth session revoke ID\n/],
            ['POST /oauth/token', { status: 200, body: { access_token: 'a\r\nb', token_type: 'Bearer', scope: READ } }, /no bearer token that can be kept; end its session/],
            ['POST /oauth/token', { status: 200, body: { access_token: 'x'.repeat(4096), token_type: 'Bearer', scope: READ } }, /no bearer token that can be kept; end its session/],
            ['POST /oauth/token', { status: 200, body: { access_token: 'x', token_type: 'DPoP', scope: READ } }, /no bearer token/],
            ['POST /oauth/token', { status: 200, body: { access_token: 'x', token_type: 'Bearer', scope: 'y'.repeat(70_000) } }, /more than 65536 bytes/],
            ['GET /api/auth/session', { status: 200, body: { authenticated: false } }, /does not take the token/],
            ['GET /api/auth/session', { status: 503 }, /answered GET \/api\/auth\/session with 503/],
            ['GET /.well-known/t3/environment', { status: 404 }, /no T3 Code server: GET .* was answered with 404/],
            ['GET /.well-known/t3/environment', { status: 200, body: {} }, /no T3 Code server: GET .* 200, and nothing that T3 says/],
            ['GET /.well-known/t3/environment', { status: 200, body: { environmentId: 'e', serverVersion: '9.9', orchestrationProtocolVersion: 3 } },
                /\(version 9\.9\) speaks orchestration protocol 3, and arbe speaks 2/],
        ]) {
            peer.pair('PAIR-1');
            peer.requests.length = 0;
            answering(route, answer);
            await refused(login(), 1, sentence, ['PAIR-1']);
            if (route.startsWith('GET /.well-known')) {
                assert.equal(asked(peer).length, 1, 'the credential was not sent');
            }
        }
        assert.deepEqual(names(dir), []);
    });

    test('a sentence does not repeat what a server quotes of credential or token', async (t) => {
        const peer = await peerFor(t, { pairing: 'pair_hidden_words' });
        const { shell } = user();
        const login = () => shell.run(['login', peer.url, '--host', 'mac'], { input: 'pair_hidden_words' });
        peer.sessions.answers['POST /oauth/token'] = () => ({ status: 400, body: { reason: 'no_pair_hidden_words' } });
        await refused(login(), 1, /with 400 \(no_\*\*\*\)/, ['pair_hidden']);
        peer.sessions.answers['POST /oauth/token'] = () => ({ status: 200, body: { access_token: 'token_hidden_words', token_type: 'Bearer', scope: READ } });
        peer.sessions.answers['GET /api/auth/session'] = () => ({ status: 500, body: { reason: 'token_hidden_words' } });
        await refused(login(), 1, /with 500 \(\*\*\*\); end its session/, ['token_hidden']);
    });

    test('a credential is spent once', async (t) => {
        const peer = await peerFor(t);
        const { shell } = user();
        await shell.good(['login', peer.url, '--host', 'mac'], { input: 'PAIR-1' });
        await refused(shell.run(['login', peer.url, '--host', 'mac'], { input: 'PAIR-1' }), 1, /used already/, ['PAIR-1']);
    });

    test('a token that is too long to keep is ended', async (t) => {
        const peer = await peerFor(t);
        const { shell, dir } = user();
        const long = 'x'.repeat(5000);
        peer.grant(long);
        peer.sessions.endsItself = true;
        peer.sessions.answers['POST /oauth/token'] = () => ({ status: 200, body: { access_token: long, token_type: 'Bearer', scope: READ } });
        await refused(shell.run(['login', peer.url], { input: 'PAIR-1' }), 1, /no bearer token that can be kept; its session was ended/, ['xxxx']);
        assert.ok(peer.sessions.tokens.get(long).revoked);
        assert.deepEqual(names(dir), []);
    });

    test('an answer to the exchange that cannot be read may hold a token: it says so, and how to end that', async (t) => {
        const { shell, dir } = user();
        const maybe = /; a token may have been given out: t3 auth session list there tells, and t3 auth session revoke ID ends it\n$/;
        let exchange;
        const server = createServer((request, response) => {
            if (request.method === 'POST') {
                exchange(request, response);
            } else {
                response.end(JSON.stringify({ environmentId: 'e', label: 'mac', orchestrationProtocolVersion: 2 }));
            }
        }).listen(0, '127.0.0.1');
        await new Promise((done) => server.once('listening', done));
        t.after(() => { server.closeAllConnections(); server.close(); });
        const url = `http://127.0.0.1:${server.address().port}`;
        const token = { access_token: 'tok-unread', token_type: 'Bearer', scope: READ };
        const answers = [
            [(_, response) => response.end(JSON.stringify({ ...token, more: 'x'.repeat(65536) })), /more than 65536 bytes/],
            [(_, response) => response.end(JSON.stringify(token).slice(0, -1)), /no bearer token that can be kept/],
            [(_, response) => response.end('{"access_token":"tok-unread","access_token":"tok-unread"}'), /no bearer token that can be kept/],
            [(_, response) => response.end(JSON.stringify({ value: token })), /no bearer token that can be kept/],
            [(_, response) => { response.statusCode = 202; response.end(); }, /with 202/],
            [(_, response) => { response.write(JSON.stringify(token)); response.destroy(); }, /no answer from/],
            [(request) => request.resume(), /no answer from/, '--timeout', '1s'],
        ];
        for (const [answer, sentence, ...more] of answers) {
            exchange = answer;
            const said = await refused(shell.run(['login', url, ...more], { input: 'PAIR-1' }), 1, sentence, ['PAIR-1', 'tok-unread']);
            assert.match(said, maybe);
        }
        let running;
        exchange = () => running.kill('SIGINT');
        running = shell.start('login', url);
        running.child.stdin.end('PAIR-1\n');
        const { code, stderr } = await running.end();
        assert.equal(code, 130);
        assert.match(stderr, /^arbe t3 login: interrupted;/);
        assert.match(stderr, maybe);
        // One that was refused gave out nothing.
        exchange = (_, response) => { response.statusCode = 500; response.end('no'); };
        assert.doesNotMatch(await refused(shell.run(['login', url], { input: 'PAIR-1' }), 1, /with 500/), maybe);
        assert.deepEqual(names(dir), []);
    });

    test('a token that may do more than read is ended and not kept', async (t) => {
        const peer = await peerFor(t);
        const { shell, dir } = user();
        const wide = [READ, 'access:write'];
        const given = (token, scope) => { peer.sessions.answers['POST /oauth/token'] = () => ({ status: 200, body: { access_token: token, token_type: 'Bearer', scope } }); };
        peer.grant('tok-wide', wide);
        given('tok-wide', wide.join(' '));
        await refused(shell.run(['login', peer.url], { input: 'PAIR-1' }), 1, /may do more than read \(orchestration:read access:write\), so it is not kept; end its session: t3 auth session revoke ID/, ['tok-wide']);
        given('tok-wide', READ); // what it says of it is not believed
        await refused(shell.run(['login', peer.url], { input: 'PAIR-1' }), 1, /may do more than read/, ['tok-wide']);
        given('tok-wide', undefined);
        peer.sessions.endsItself = true;
        await refused(shell.run(['login', peer.url], { input: 'PAIR-1' }), 1, /not kept; its session was ended/, ['tok-wide']);
        assert.ok(peer.sessions.tokens.get('tok-wide').revoked);
        peer.grant('tok-read');
        given('tok-read', undefined);
        peer.sessions.answers['GET /api/auth/session'] = () => ({ status: 200, body: { authenticated: true } });
        await refused(shell.run(['login', peer.url], { input: 'PAIR-1' }), 1, /does not say what the token/, ['tok-read']);
        assert.deepEqual(names(dir), []);
    });

    test('sends nothing secret where others could read it, and follows no redirect', async (t) => {
        const seen = [];
        const other = createServer((request, response) => { seen.push(request.url); response.end(); }).listen(0, '127.0.0.1');
        await new Promise((done) => other.once('listening', done));
        t.after(() => other.close());
        const peer = await peerFor(t);
        const { shell } = user();
        await refused(shell.run(['login', 'http://t3.example.org'], { input: 'PAIR-1' }), 2, /not encrypted.*--allow-http/, ['PAIR-1']);
        peer.sessions.answers['POST /oauth/token'] = () => ({ status: 307, headers: { location: `http://127.0.0.1:${other.address().port}/` } });
        await refused(shell.run(['login', peer.url], { input: 'PAIR-1' }), 1, /answered POST \/oauth\/token with 307/, ['PAIR-1']);
        // A proxy of the environment would read what is not encrypted.
        peer.sessions.answers = {};
        const proxy = `http://127.0.0.1:${other.address().port}`;
        await shell.good(['login', peer.url, '--host', 'mac'], { input: 'PAIR-1', env: { http_proxy: proxy, HTTP_PROXY: proxy, all_proxy: proxy } });
        assert.deepEqual(seen, []);
    });

    test('a server that is not there, or silent', async (t) => {
        const peer = await peerFor(t);
        const { shell } = user();
        const silent = createServer(() => {}).listen(0, '127.0.0.1');
        await new Promise((done) => silent.once('listening', done));
        t.after(() => { silent.closeAllConnections(); silent.close(); });
        await refused(shell.run(['login', peer.base.replace('http', 'https')], { input: 'PAIR-1' }), 1, /speaks no TLS; perhaps http:\/\/ is meant/);
        await refused(shell.run(['probe', peer.base.replace('http', 'https')]), 1, /speak no TLS; perhaps http:\/\/ is meant/);
        await peer.stop();
        await refused(shell.run(['login', peer.url], { input: 'PAIR-1' }), 1, /no answer from 127\.0\.0\.1:\d+: /);
        await refused(shell.run(['login', `http://127.0.0.1:${silent.address().port}`, '--timeout', '100ms'], { input: 'PAIR-1' }), 1, /no answer from/);
        const error = JSON.parse(await refused(shell.run(['login', peer.url, '--json'], { input: 'PAIR-1' }), 1, /./)).error;
        assert.equal(error.code, 't3.unreachable');
    });

    test('a certificate must be good, or its authority be named', async (t) => {
        const { caFile, ...tls } = makeCertificate('IP:127.0.0.1');
        const peer = await peerFor(t, { tls });
        const { shell, hosts } = user();
        await refused(shell.run(['login', peer.url], { input: 'PAIR-1' }), 1, /no answer from .*certificate/i);
        // A path that would be more than a line of the hosts' file, before anything is asked.
        const odd = join(dirname(caFile), 'ca\nallow-http = true');
        copyFileSync(caFile, odd);
        await refused(shell.run(['login', peer.url, '--ca-file', odd], { input: 'PAIR-1' }), 2, /hosts' file cannot have .*as ca-file/);
        assert.deepEqual(asked(peer), []);
        await shell.good(['login', peer.url, '--host', 'mac', '--ca-file', caFile], { input: 'PAIR-1' });
        assert.match(hosts(), new RegExp(`ca-file = ${caFile}\n`));
        peer.sessions.endsItself = true;
        await shell.good(['logout', 'mac']); // the file says it now
    });

    test('a host keeps its URL unless that is wanted otherwise', async (t) => {
        const peer = await peerFor(t);
        const { shell, hosts, keep, token } = user();
        keep('# mine\n[box]\n# inside\nurl = http://h\n# about mac\n[mac]\nurl = http://other:1\n\n# the end\n');
        await refused(shell.run(['login', peer.url, '--host', 'mac'], { input: 'PAIR-1' }), 1, /"mac" is http:\/\/other:1 already.*--replace/);
        assert.equal(peer.sessions.pairings.size, 1);
        await shell.good(['login', peer.url, '--host', 'mac', '--replace'], { input: 'PAIR-1' });
        assert.equal(hosts(), `# mine\n[box]\n# inside\nurl = http://h\n# about mac\n[mac]\nurl = ${peer.url}\nsecret-file = t3-tokens/mac\n\n# the end\n`);
        // Once more: the token before is ended, where the server lets it.
        const before = readFileSync(token('mac'), 'utf8');
        peer.sessions.endsItself = true;
        peer.pair('PAIR-2');
        await shell.good(['login', peer.url, '--host', 'mac'], { input: 'PAIR-2' });
        assert.ok(peer.sessions.tokens.get(before).revoked);
        assert.ok(!peer.sessions.tokens.get(readFileSync(token('mac'), 'utf8')).revoked);
        for (const host of ['a/b', '.x', 'a b', 'a=b', '[a]', '', '..', 'x'.repeat(201)]) {
            await refused(shell.run(['login', peer.url, '--host', host], { input: 'PAIR-3' }), 2, /no name for a host|empty value/);
        }
    });

    test('a hosts\' file that others may write is not touched', async (t) => {
        const peer = await peerFor(t);
        const { shell, hosts, keep, file } = user();
        keep('[box]\nurl = http://h\n');
        chmodSync(file, 0o666);
        await refused(shell.run(['login', peer.url], { input: 'PAIR-1' }), 1, /the hosts' file .* may be written by others .*chmod go-w/);
        assert.equal(hosts(), '[box]\nurl = http://h\n');
        assert.deepEqual(asked(peer), []);
    });

    test('what cannot be kept is ended', async (t) => {
        const peer = await peerFor(t);
        const { shell, dir } = user();
        peer.sessions.endsItself = true;
        mkdirSync(join(dir, 't3-tokens', 'test', 'x'), { recursive: true, mode: 0o700 }); // no file
        await refused(shell.run(['login', peer.url], { input: 'PAIR-1' }), 1, /cannot write the token .*; its session was ended/);
        assert.ok([...peer.sessions.tokens.values()].every(({ revoked }) => revoked));
    });

    test('a hosts\' file that takes no more leaves all as it was, and the new token is ended', async (t) => {
        const peer = await peerFor(t);
        const { shell, dir, hosts, keep, token } = user();
        peer.sessions.endsItself = true;
        await shell.good(['login', peer.url, '--host', 'mac'], { input: 'PAIR-1' });
        const before = readFileSync(token('mac'), 'utf8');
        const full = hosts() + '#'.repeat(65536 - hosts().length);
        keep(full);
        const ca = join(dir, 'ca.pem');
        writeFileSync(ca, '');
        const other = await peerFor(t);
        other.sessions.endsItself = true;
        for (const [at, args] of [[peer, [peer.url, '--ca-file', ca]], [other, [other.url, '--host', 'box']],
            [other, [other.url, '--host', 'mac', '--replace', '--ca-file', ca]]]) {
            at.pair('PAIR-2');
            await refused(shell.run(['login', ...args], { input: 'PAIR-2' }), 2, /would have more than 65536 bytes; its session was ended/);
            assert.equal(hosts(), full);
            assert.deepEqual(names(join(dir, 't3-tokens')), ['mac']);
            assert.equal(readFileSync(token('mac'), 'utf8'), before);
            assert.deepEqual([...peer.sessions.tokens].filter(([, { revoked }]) => !revoked).map(([one]) => one), [before]);
            assert.ok([...other.sessions.tokens.values()].every(({ revoked }) => revoked));
        }
    });

    test('a host that is replaced has its token ended where that is good, or says how', async (t) => {
        const [old, other] = [await peerFor(t), await peerFor(t)];
        const { shell, token } = user();
        await shell.good(['login', old.url, '--host', 'mac'], { input: 'PAIR-1' });
        const first = readFileSync(token('mac'), 'utf8');
        old.sessions.endsItself = true;
        await shell.good(['login', other.url, '--host', 'mac', '--replace'], { input: 'PAIR-1' });
        assert.ok(old.sessions.tokens.get(first).revoked);
        const second = readFileSync(token('mac'), 'utf8');
        old.pair('PAIR-2');
        const { code, stderr } = await shell.run(['login', old.url, '--host', 'mac', '--replace'], { input: 'PAIR-2' });
        assert.equal(code, 0);
        assert.match(stderr, /still good; to end it, on that other server's machine: t3 auth session revoke /);
        assert.ok(!other.sessions.tokens.get(second).revoked);
    });

    test('many at once: all are kept, the file is whole, and its tokens are those that are good', async (t) => {
        for (const [count, name, servers] of [[16, (i) => `h${i}`, 16], [12, () => 'mac', 1]]) {
            const peers = await Promise.all(Array.from({ length: servers }, () => peerFor(t)));
            const { shell, dir, hosts } = user();
            peers.forEach((peer) => { peer.sessions.endsItself = true; });
            const ended = await Promise.all(Array.from({ length: count }, (_, i) => {
                const peer = peers[i % servers];
                peer.pair(`PAIR-${i}`);
                return shell.run(['login', peer.url, '--host', name(i)], { input: `PAIR-${i}` });
            }));
            assert.deepEqual(ended.filter(({ code }) => code !== 0), []);
            const sections = [...new Set(Array.from({ length: count }, (_, i) => name(i)))].sort();
            assert.deepEqual([...hosts().matchAll(/^\[(.*)\]\nurl = ws:.*\nsecret-file = .*$/gm)].map((found) => found[1]).sort(), sections);
            assert.equal(hosts().split('\n').filter(Boolean).length, 3 * sections.length);
            assert.deepEqual(names(join(dir, 't3-tokens')), sections);
            const kept = sections.map((one) => readFileSync(join(dir, 't3-tokens', one), 'utf8'));
            const good = peers.flatMap(({ sessions }) => [...sessions.tokens.values()]).filter(({ revoked }) => !revoked);
            assert.deepEqual(good.map(({ token }) => token).sort(), kept.sort());
            assert.deepEqual(names(dir), ['t3', 't3-tokens']);
            assert.deepEqual((await Promise.all(sections.map((one) => shell.run(['logout', one])))).filter(({ code }) => code !== 0), []);
            assert.deepEqual([hosts().trim(), names(join(dir, 't3-tokens'))], ['', []]);
        }
    });

    test('waits for another one with a sentence, up to --timeout, and looks at the file again before the credential is spent', async (t) => {
        const peer = await peerFor(t);
        peer.pair('PAIR-2');
        peer.pair('PAIR-3');
        const { shell, hosts } = user();
        let release;
        const held = new Promise((done) => { release = done; });
        peer.sessions.answers['GET /api/auth/session'] = () => held;
        const first = shell.start('login', peer.url, '--host', 'mac');
        first.child.stdin.end('PAIR-1\n');
        await peer.until('the look at the token', () => peer.requests.length === 3);
        const second = shell.terminal(['login', peer.base.replace('127.0.0.1', 'localhost'), '--host', 'mac']);
        await second.until(/Pairing code or link: /);
        second.type('PAIR-2\n');
        await second.until(/another arbe t3 login or logout changes the hosts; waiting for it/);
        const third = shell.terminal(['login', peer.url, '--host', 'box']);
        await third.until(/Pairing code or link: /);
        third.type('PAIR-3\n');
        await third.until(/waiting for it/);
        third.type('\x03'); // Ctrl-C ends the wait
        assert.equal((await third.end()).code, 130);
        const waiting = /^arbe t3 login: another arbe t3 login or logout changes the hosts; waiting for it\n/;
        const late = await refused(shell.run(['login', peer.url, '--host', 'box', '--timeout', '2s'], { input: 'PAIR-3' }), 1,
                                   /login or logout still changes the hosts in .*\/t3; nothing was spent/, ['PAIR-3']);
        assert.match(late, waiting);
        const { error } = JSON.parse(await refused(shell.run(['login', peer.url, '--host', 'box', '--timeout', '2s', '--json'], { input: 'PAIR-3' }), 1, /still changes/));
        assert.equal(error.code, 't3.conflict');
        peer.sessions.answers = {};
        release({ status: 200, body: { authenticated: true, scopes: [READ] } });
        assert.equal((await first.end()).code, 0);
        const { code, stdout } = await second.end();
        assert.equal(code, 1, stdout);
        assert.match(stdout, /this server is "mac" already.* ws:/);
        assert.deepEqual([...peer.sessions.pairings.keys()].sort(), ['PAIR-2', 'PAIR-3']);
        assert.deepEqual(hosts().match(/^\[.*\]$/gm), ['[mac]']);
    });

    test('a place where others could put or swap files is refused before anything is spent', async (t) => {
        const peer = await peerFor(t);
        const { shell, dir, home } = user();
        const login = () => shell.run(['login', peer.url], { input: 'PAIR-1' });
        mkdirSync(dir, { recursive: true, mode: 0o700 });
        chmodSync(dir, 0o777);
        await refused(login(), 1, /directory of the hosts' file may be written by others \(mode 777\); run: chmod go-w /);
        chmodSync(dir, 0o700);
        writeFileSync(join(dir, 't3-tokens'), '');
        await refused(login(), 1, /directory of the tokens, .*, is none/);
        rmSync(join(dir, 't3-tokens'));
        mkdirSync(join(home, 'elsewhere'), { mode: 0o700 });
        symlinkSync(join(home, 'elsewhere'), join(dir, 't3-tokens'));
        await refused(login(), 1, /directory of the tokens, .*, is a link/);
        rmSync(join(dir, 't3-tokens'));
        mkdirSync(join(dir, 't3-tokens'));
        chmodSync(join(dir, 't3-tokens'), 0o720);
        await refused(login(), 1, /directory of the tokens may be written by others/);
        assert.deepEqual(asked(peer), []);
        assert.deepEqual(names(join(home, 'elsewhere')), []);
        assert.equal(peer.sessions.pairings.size, 1);
    });

    test('secrets stand in no argument of a process', async (t) => {
        const peer = await peerFor(t);
        const { shell } = user();
        let release;
        const held = new Promise((done) => { release = done; });
        peer.sessions.answers['POST /oauth/token'] = () => held;
        const running = shell.start('login', peer.url, '--host', 'mac');
        running.child.stdin.end('PAIR-1\n');
        await peer.until('the exchange', () => peer.requests.length >= 1);
        const commands = readFileSync(`/proc/${running.child.pid}/cmdline`, 'utf8') + readFileSync(`/proc/${running.child.pid}/environ`, 'utf8');
        assert.ok(commands.includes('login') && !commands.includes('PAIR-1'));
        release({ status: 401 });
        assert.equal((await running.end()).code, 1);
    });

    test('Ctrl-C when there is a token already: it is not kept, and how to end it is told', async (t) => {
        const peer = await peerFor(t);
        const { shell, dir } = user();
        let release;
        const held = new Promise((done) => { release = done; });
        peer.sessions.answers['GET /api/auth/session'] = () => held;
        const running = shell.start('login', peer.url);
        running.child.stdin.end('PAIR-1\n');
        await peer.until('the look at the token', () => peer.requests.length === 3);
        running.kill('SIGINT');
        const { code, stderr } = await running.end();
        release({ status: 503 });
        assert.equal(code, 130);
        assert.equal(stderr, 'arbe t3 login: interrupted; end its session: t3 auth session revoke session-1\n');
        assert.deepEqual(names(dir), []);
    });

    test('Ctrl-C ends the wait for an answer', async (t) => {
        const { shell, dir } = user();
        let arrived;
        const asked = new Promise((done) => { arrived = done; });
        const silent = createServer(arrived).listen(0, '127.0.0.1');
        await new Promise((done) => silent.once('listening', done));
        t.after(() => { silent.closeAllConnections(); silent.close(); });
        const running = shell.start('login', `http://127.0.0.1:${silent.address().port}`);
        await asked;
        running.kill('SIGINT');
        assert.deepEqual(await running.end(), { code: 130, signal: null, stdout: '', stderr: '' });
        assert.deepEqual(names(dir), []);
    });
});

describe('arbe t3 logout and list', { timeout: 120_000 }, () => {
    async function signedIn(t, rest = {}) {
        const peer = await peerFor(t);
        const one = user();
        await one.shell.good(['login', peer.url, '--host', 'mac'], { input: 'PAIR-1' });
        peer.requests.length = 0;
        Object.assign(peer.sessions, rest);
        return { peer, kept: readFileSync(one.token('mac'), 'utf8'), ...one };
    }

    test('ends the session, and removes token and section', async (t) => {
        const { peer, shell, hosts, dir, kept } = await signedIn(t, { endsItself: true });
        const { code, stdout, stderr } = await shell.run(['logout', 'mac']);
        assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: '', stderr: 'arbe t3 logout: mac: its token was ended, and is not here any more\n' });
        assert.ok(peer.sessions.tokens.get(kept).revoked);
        assert.equal(hosts(), '');
        assert.deepEqual(names(join(dir, 't3-tokens')), []);
        await refused(shell.run(['logout', 'mac']), 2, /there is no host "mac" in the hosts' file/);
    });

    test('a server that knows no way: tells what to do, and keeps what is here', async (t) => {
        const { peer, shell, hosts, token, kept } = await signedIn(t);
        const { code, stdout, stderr } = await shell.run(['logout', 'mac']);
        assert.deepEqual({ code, stdout }, { code: 1, stdout: '' });
        assert.match(stderr, /the token of mac may still be good: the server answered POST \/api\/auth\/clients\/revoke with 403 \(access:write\)/);
        assert.match(stderr, /on the server's machine: t3 auth session revoke session-1\n/);
        assert.match(stderr, /it stays here as it was; --forget removes it\n$/);
        assert.ok(!stderr.includes(kept));
        assert.deepEqual(asked(peer), ['POST /api/auth/session/revoke', 'POST /api/auth/clients/revoke']);
        assert.equal(readFileSync(token('mac'), 'utf8'), kept);
        const forgot = await shell.run(['logout', 'mac', '--forget', '--json']);
        assert.equal(forgot.code, 1);
        assert.deepEqual(JSON.parse(forgot.stdout), { host: 'mac', revoked: false, removed: true, session: 'session-1' });
        assert.equal(JSON.parse(forgot.stderr).error.code, 't3.not_revoked');
        assert.equal(hosts(), '');
        assert.ok(!existsSync(token('mac')));
    });

    test('a token that is ended already is removed', async (t) => {
        const { peer, shell, hosts } = await signedIn(t, { endsItself: true });
        peer.revoke();
        const { code, stderr } = await shell.run(['logout', 'mac']);
        assert.equal(code, 0, stderr);
        assert.match(stderr, /did not take the token any more/);
        assert.equal(hosts(), '');
    });

    test('a page of HTML that says 200 is no end of a session', async (t) => {
        const { peer, shell, token } = await signedIn(t);
        peer.sessions.answers['POST /api/auth/session/revoke'] = () => ({ status: 200, body: { revoked: false } });
        peer.sessions.answers['POST /api/auth/clients/revoke'] = () => ({ status: 200, body: {} });
        await refused(shell.run(['logout', 'mac']), 1, /may still be good: the server answered POST .* with 200/);
        assert.ok(existsSync(token('mac')));
        await peer.stop();
        await refused(shell.run(['logout', 'mac']), 1, /may still be good: no answer from/);
        assert.ok(existsSync(token('mac')));
    });

    test('a file that login did not write stays', async (t) => {
        const peer = await peerFor(t);
        const { shell, hosts, keep, dir } = user();
        peer.grant('tok-mine');
        peer.sessions.endsItself = true;
        keep(`[mac]\nurl = ${peer.url}\nsecret-file = mine\n[bare]\nurl = http://h\n`);
        writeFileSync(join(dir, 'mine'), 'tok-mine\n', { mode: 0o600 });
        const { code, stderr } = await shell.run(['logout', 'mac']);
        assert.equal(code, 0, stderr);
        assert.match(stderr, /mine is not where arbe t3 login keeps the token of \w+, and stays/);
        assert.ok(peer.sessions.tokens.get('tok-mine').revoked);
        assert.equal(hosts(), '[bare]\nurl = http://h\n');
        assert.ok(existsSync(join(dir, 'mine')));
        assert.match((await shell.run(['logout', 'bare'])).stderr, /bare had no token/);
        assert.equal(hosts(), '');
    });

    test('list tells hosts, URLs and tokens, but no secret', async (t) => {
        const { peer, shell, keep, hosts, kept } = await signedIn(t);
        keep(`${hosts()}\n[box]\nurl = https://box/?token=sesame\n[user]\nurl = http://me:sesame@h\n[gone]\nurl = http://gone\nsecret-file = nowhere\n`);
        const text = await shell.good(['list']);
        const wide = peer.url.length;
        assert.equal(text, `mac   ${peer.url}  with a token\nbox   ${'(no good URL)'.padEnd(wide)}  without a token\n` +
            `user  ${'(no good URL)'.padEnd(wide)}  without a token\n` +
            `gone  ${'http://gone'.padEnd(wide)}  its token cannot be read\n`);
        const rows = (await shell.good(['list', '--json'])).trim().split('\n').map((line) => JSON.parse(line));
        assert.deepEqual(rows, [
            { host: 'mac', url: peer.url, token: true }, { host: 'box', url: '(no good URL)', token: false }, { host: 'user', url: '(no good URL)', token: false }, { host: 'gone', url: 'http://gone', token: false },
        ]);
        assert.ok(!text.includes(kept) && !JSON.stringify([text, rows]).includes('sesame'));
        const nobody = user();
        assert.match((await nobody.shell.run(['list'])).stderr, /there is no host in the hosts' file .*\/t3; arbe t3 login URL adds one/);
        assert.equal((await nobody.shell.run(['list', '--t3-hosts', '/nowhere/t3'])).code, 0);
    });
});

describe('arbe t3 probe', { timeout: 120_000 }, () => {
    const SECRET = 'SESAME-';
    let count = 0;
    const secret = () => `${SECRET}${count++} \u001b]0;x`;
    // Every string a secret, every number one, and maps whose keys are.
    const marked = (value) => (typeof value === 'string' ? secret() : typeof value === 'number' ? 471100 + count++
        : Array.isArray(value) ? value.map(marked) : value === null || typeof value !== 'object' ? value
            : Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, marked(inner)])));
    const keyed = () => ({ [secret()]: { id: secret() }, [`${SECRET}x`]: null, plain: secret() });

    async function probed(t, prepare = () => {}, args = []) {
        const peer = await startPeer({ token: 'tok-1', scopes: [READ] });
        t.after(() => peer.stop());
        prepare(peer);
        const { shell } = user({ ARBE_T3_TOKEN: 'tok-1' });
        const ended = await shell.run(['probe', peer.url, ...args]);
        return { peer, shell, ...ended };
    }

    // A snapshot of everything, with secrets at every place but the names of members.
    const named = () => ({ hidden_sesame_too: 1, hidden_sesame: { hidden_sesame: 1 } });
    const item = () => ({ type: secret(), input: named(), output: [named(), [1]], labels: named(), toolInput: named(), content: [named()], payload: named() });

    function seed(peer) {
        const id = secret();
        const shellItem = shellSnapshot([{ ...marked(threadShell(id, { extra: 'x', list: ['a', 1, null] })), id, byBranch: keyed() }]);
        shellItem.snapshot.projects = [{ id: secret(), scripts: [keyed(), { [secret()]: [keyed()] }] }];
        const odd = { 'x-trace': 1 };
        peer.answers[SHELL] = (call) => call.offer(shellItem, { kind: 'synchronized' });
        const projection = () => ({ ...marked(projectionOf(id)), turnItems: [item()], runs: [keyed()], nodes: [{ ...item(), ...odd, session: named() }] });
        peer.answers[THREAD] = (call) => call.offer({ kind: 'snapshot', snapshotSequence: 4711, projection: projection() });
        peer.answers[PROJECTION] = (call) => call.succeed(projection());
        return id;
    }

    test('shows names and types, and no value or key of a map, whatever is in them', async (t) => {
        for (const args of [[], ['--json']]) {
            const { code, stdout, stderr } = await probed(t, seed, args);
            assert.equal(code, 0, stderr);
            assert.ok(!`${stdout}${stderr}`.includes(SECRET) && !stdout.includes('hidden_sesame') && !`${stdout}${stderr}`.includes('4711'), stdout);
            for (const name of ['schemaVersion', 'latestVisibleMessage', 'modelSelection', 'instanceId', 'turnItems', 'byBranch']) {
                assert.ok(stdout.includes(name), name);
            }
            if (args.length === 0) {
                assert.match(stdout, /byBranch: \{\.\.\.\}\n/);
                assert.match(stdout, /runs: \[\{string: string \| \{\.\.\.\} \| null\}\]/);
                assert.match(stdout, /nodes: \[\{string: string \| number \| \[\[number\] \| \{\.\.\.\}\] \| \{\.\.\.\}\}\]/);
                assert.match(stdout, /list: \[string \| number \| null\]/);
                assert.match(stdout, /input: \{\.\.\.\}\n +output: \[\[number\] \| \{\.\.\.\}\]\n +labels: \{\.\.\.\}\n/);
                assert.match(stdout, /^orchestration\.subscribeShell: 1 chunk, 2 items\n  \{\n    kind: string\n    snapshot\?: \{\n      schemaVersion: number\n/);
                assert.match(stdout, /^orchestration\.getThreadProjection, of that thread\n  \{\n    thread: \{/m);
            }
        }
    });

    test('only reads: three methods, an Ack for each chunk, an Interrupt for each stream, and it says so', async (t) => {
        const { peer, code, stderr } = await probed(t, (one) => one.list(threadShell('t-1'), threadShell('t-2')));
        assert.equal(code, 0, stderr);
        assert.equal(stderr, 'arbe t3 probe: subscribed to orchestration.subscribeShell and orchestration.subscribeThread, ' +
            'called orchestration.getThreadProjection; unsubscribed; nothing was written\n');
        await eventually('the end of the connection', () => peer.connections.every(({ open }) => !open));
        assert.equal(peer.connections.length, 1);
        const { received } = peer.connections[0];
        const requests = received.filter(({ _tag }) => _tag === 'Request');
        assert.deepEqual(requests.map(({ tag, payload }) => [tag, payload]), [
            [SHELL, {}], [THREAD, { threadId: 't-1' }], [PROJECTION, { threadId: 't-1' }],
        ]);
        assert.deepEqual([...new Set(received.map(({ _tag }) => _tag))].filter((tag) => tag !== 'Ping').sort(), ['Ack', 'Interrupt', 'Request']);
        assert.deepEqual(received.filter(({ _tag }) => _tag === 'Interrupt').map(({ requestId }) => String(requestId)).sort(),
            requests.slice(0, 2).map(({ id }) => String(id)).sort());
        assert.deepEqual(peer.requests, []); // no HTTP
    });

    test('a shell without threads, an archived one, and a thread that fails', async (t) => {
        const none = await probed(t);
        assert.equal(none.code, 0, none.stderr);
        assert.match(none.stderr, /subscribed to orchestration\.subscribeShell; unsubscribed/);
        assert.ok(!none.stdout.includes(THREAD));
        const archived = await probed(t, (peer) => peer.list(threadShell('t-9', { archivedAt: '2026-11-05T00:00:00.000Z' })));
        assert.match(archived.stdout, /^orchestration\.subscribeThread, of the first thread: 1 chunk, 1 item$/m);
        const failing = await probed(t, (peer) => {
            peer.list(threadShell('t-1'));
            peer.answers[THREAD] = (call) => call.fail({ _tag: 'OrchestrationV2GetThreadProjectionError', threadId: 't-1', message: SECRET });
        });
        assert.equal(failing.code, 0, failing.stderr);
        assert.match(failing.stdout, /subscribeThread, of the first thread: failed \(FAILED\)\n/);
        assert.match(failing.stdout, /getThreadProjection, of that thread\n/);
        const broken = await probed(t, (peer) => {
            peer.list(threadShell('t-1'));
            peer.answers[PROJECTION] = (call) => call.die(SECRET);
        });
        assert.equal(broken.code, 1);
        assert.match(broken.stdout, /schemaVersion: number/); // what came is shown all the same
        assert.match(broken.stderr, /the server broke, or could not do it\n$/);
        assert.ok(![failing, broken].some(({ stdout, stderr }) => `${stdout}${stderr}`.includes(SECRET)));
    });

    test('a shell that ends before it has told its threads is a failure', async (t) => {
        for (const args of [[], ['--json']]) {
            const silent = await probed(t, (peer) => { peer.answers[SHELL] = (call) => call.end(); }, args);
            assert.deepEqual([silent.code, silent.stdout], [1, ''], silent.stderr);
            assert.match(silent.stderr, /orchestration\.subscribeShell failed: the server ended it/);
        }
        const early = await probed(t, (peer) => {
            peer.answers[SHELL] = (call) => {
                call.offer({ kind: 'synchronized' });
                call.end();
            };
        });
        assert.equal(early.code, 1);
        assert.match(early.stdout, /subscribeShell: 1 chunk, 1 item\n/);
        assert.match(early.stderr, /subscribeShell failed: the server ended it\n$/);
    });

    test('JSON says the same', async (t) => {
        const { code, stdout, stderr } = await probed(t, (peer) => peer.list(threadShell('t-1')), ['--json']);
        assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
        const answer = JSON.parse(stdout);
        assert.deepEqual([answer.orchestration, answer.wrote], [2, false]);
        assert.deepEqual([answer.shell.method, answer.shell.chunks, answer.shell.items], [SHELL, 1, 1]);
        assert.deepEqual(answer.shell.shape.members.map(({ name, optional }) => [name, optional]), [['kind', false], ['snapshot', false]]);
        assert.deepEqual(answer.projection.shape.members.find(({ name }) => name === 'runs').shape, { types: ['array'] });
        assert.equal(answer.thread.error, null);
    });

    test('a server of the first version is named, and not asked for projections', async (t) => {
        const { peer, code, stdout, stderr } = await probed(t, (one) => {
            one.sessions.protocol = null;
            one.answers[SHELL] = (call) => call.offer(shellSnapshotV1([{ id: 't-1', title: 'One' }]));
            one.answers[THREAD] = (call) => call.offer({ kind: 'snapshot', snapshot: { snapshotSequence: 1, thread: { id: 't-1', messages: [] } } });
        });
        assert.equal(code, 0, stderr);
        assert.match(stderr, /speaks the first version of orchestration \(V1\), which arbe board does not read/);
        assert.match(stdout, /messages: \[\]/);
        assert.ok(!peer.calls.some(({ method }) => method === PROJECTION));
    });

    test('what ends it: no token, a wrong one, another scope, another protocol, nobody there, no answer in time', async (t) => {
        const peer = await startPeer({ token: 'tok-1' });
        t.after(() => peer.stop());
        const { shell } = user();
        const probe = (token, ...args) => shell.run(['probe', peer.url, ...args], { env: token === null ? {} : { ARBE_T3_TOKEN: token } });
        await refused(probe(null), 1, /401.*; no token for it is here: arbe t3 login gets one, or ARBE_T3_TOKEN has it\n$/);
        assert.ok(!(await refused(probe('tok-wrong'), 1, /401/, ['tok-wrong'])).includes('is here'));
        peer.grant('tok-other', ['terminal:operate']);
        await refused(probe('tok-other'), 1, /subscribeShell failed: the token may not read/, ['tok-other']);
        peer.answers[SHELL] = () => {};
        await refused(probe('tok-1', '--timeout', '3s'), 1, /did not tell all in time; --timeout/);
        peer.answers[SHELL] = (call) => call.die(SECRET);
        assert.ok(!(await refused(probe('tok-1'), 1, /arbe t3 probe: /)).includes(SECRET));
        peer.sessions.protocol = 3;
        await refused(probe('tok-1'), 1, /426|protocol/);
        await peer.stop();
        await refused(probe('tok-1'), 1, /arbe t3 probe: ./);
        await refused(shell.run(['probe', 'nobody']), 2, /there is no host "nobody"/);
        await refused(shell.run(['probe', 'http://u:sesame@h']), 2, /must not hold a user name or a password/, ['sesame']);
        await refused(shell.run(['probe']), 2, /which server\? usage: /);
        await refused(shell.run(['probe', 'x=ftp://h']), 2, /it must begin with http/);
    });

    test('takes the token of a host by its name or URL, and of no other host', async (t) => {
        const peer = await peerFor(t);
        const { shell, hosts, keep } = user();
        await shell.good(['login', peer.url, '--host', 'mac'], { input: 'PAIR-1' });
        await shell.good(['probe', 'mac']);
        await shell.good(['probe', peer.base]);
        await shell.good(['probe', `mac=${peer.base}`]);
        assert.equal(new Set(peer.upgrades.map(({ headers }) => headers.authorization)).size, 1);
        const other = await startPeer({ token: 'tok-other' });
        t.after(() => other.stop());
        await refused(shell.run(['probe', other.url]), 1, /401/);
        await refused(shell.run(['probe', `mac=${other.url}`]), 2, /has another URL in/);
        assert.deepEqual(other.upgrades.map(({ headers }) => headers.authorization), [undefined]);
        keep(hosts());
    });

    test('Ctrl-C ends it', async (t) => {
        const peer = await startPeer({ token: 'tok-1' });
        t.after(() => peer.stop());
        peer.answers[SHELL] = () => {};
        const { shell } = user({ ARBE_T3_TOKEN: 'tok-1' });
        const running = shell.start('probe', peer.url);
        await peer.call(SHELL);
        running.kill('SIGINT');
        assert.deepEqual(await running.end(), { code: 130, signal: null, stdout: '', stderr: '' });
        await eventually('the end of the connection', () => peer.connections.every(({ open }) => !open));
    });
});
