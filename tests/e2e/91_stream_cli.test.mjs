// Tier 90: arbe stream: what each command does, says, and ends with.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { JSON_TYPE, uniqueName } from './lib/http.mjs';
import { lastingPort } from './lib/port.mjs';
import { serverFor, startServer, tempDir } from './lib/server.mjs';
import { Shell } from './lib/shell.mjs';

const top = tempDir();
const server = await startServer();
after(async () => {
    await server.dispose();
    rmSync(top, { recursive: true, force: true });
});
const shell = new Shell({ ARBE_URL: server.base });
const lines = (text) => text.split('\n').filter((line) => line !== '');
const objects = (text) => lines(text).map((line) => JSON.parse(line));

async function refused(args, code, pattern, options) {
    const result = await shell.run(args, options);
    assert.equal(result.code, code, `${args.join(' ')}: ${result.stderr}${result.stdout}`);
    assert.match(result.stderr, pattern);
    assert.equal(lines(result.stderr).length, 1, `one line: ${result.stderr}`);
    return result;
}

describe('create, append, read', { timeout: 300_000 }, () => {
    test('nothing is printed when all is well and nobody looks', async () => {
        const name = uniqueName('quiet');
        for (const args of [['create', name, '--type', 'json'], ['append', name, '[1,2]'], ['close', name], ['delete', name]]) {
            const { code, stdout, stderr } = await shell.run(args);
            assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: '', stderr: '' }, args.join(' '));
        }
    });

    test('messages from the command line and from stdin, one a line when read', async () => {
        const name = uniqueName('json');
        await shell.good(['create', name, '--type', 'json']);
        await shell.good(['append', name, '{"a": 1}']);
        await shell.good(['append', name], { input: '[2,\n "three"]' });
        await shell.good(['append', name, '--', '-4']);
        await shell.good(['append', name, '{\n "b":\r\n 5 }']);
        await shell.good(['append', name, 'not "JSON"', '--text']);
        assert.equal(await shell.good(['read', name]), '{"a": 1}\n2\n"three"\n-4\n{  "b":   5 }\n"not \\"JSON\\""\n');
        assert.equal(await shell.good(['read', name, '--count', '2']), '{"a": 1}\n2\n');
        await refused(['append', name, 'not JSON'], 1, /JSON/);
    });

    test('bytes are bytes', async () => {
        const name = uniqueName('bytes');
        const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, i) => (i * i) % 256));
        await shell.good(['create', name]);
        await shell.good(['append', name], { input: bytes });
        const running = shell.start('read', name);
        assert.equal((await running.end()).code, 0);
        assert.deepEqual(Buffer.concat(running.bytes), bytes);
        const parts = objects(await shell.good(['read', name, '--json'])).map((one) => Buffer.from(one.base64 ?? one.text ?? '', one.base64 ? 'base64' : 'utf8'));
        assert.deepEqual(Buffer.concat(parts), bytes);
    });

    test('--from goes on where --json said that reading can go on', async () => {
        const name = uniqueName('from');
        await shell.good(['create', name, '--type', 'text']);
        await shell.good(['append', name, 'one\ntwo\n']);
        const [first] = objects(await shell.good(['read', name, '--json']));
        assert.deepEqual(first, { text: 'one\ntwo\n', next_offset: first.next_offset, up_to_date: true });
        await shell.good(['append', name, 'three\nfour\nfive']);
        assert.equal(await shell.good(['read', name, '--from', first.next_offset]), 'three\nfour\nfive');
        assert.equal(await shell.good(['read', name, '--from=-1', '--count', '3']), 'one\ntwo\nthree\n');
        assert.equal(await shell.good(['read', name, '--from', 'now']), '');
        await refused(['read', name, '--from', 'nowhere'], 1, /offset/);
    });

    test('--count of lines tells no offset behind what it left out', async () => {
        const name = uniqueName('count');
        await shell.good(['create', name, '--type', 'text']);
        await shell.good(['append', name, 'one\ntwo\n', '--close']);
        const read = async (count) => objects(await shell.good(['read', name, '--json', '--count', count]));
        assert.deepEqual(await read('1'), [{ text: 'one\n' }]);
        const [all] = await read('2');
        assert.deepEqual(all, { text: 'one\ntwo\n', next_offset: all.next_offset, up_to_date: true, closed: true });
        assert.equal(await shell.good(['read', name, '--from', all.next_offset]), '');
        const [follow] = objects(await shell.good(['follow', name, '--json', '--count', '1']));
        assert.deepEqual(follow, { text: 'one\n' });
    });

    test('a configuration that is there is fine, another one is a conflict', async () => {
        const name = uniqueName('conf');
        const [made] = objects(await shell.good(['create', name, '--type', 'json', '--ttl', '2h', '--json']));
        assert.deepEqual([made.created, made.content_type], [true, JSON_TYPE]);
        assert.equal(objects(await shell.good(['create', name, '--type', 'json', '--ttl', '2h', '--json']))[0].created, undefined);
        assert.equal(objects(await shell.good(['head', name, '--json']))[0].ttl_seconds, 7200);
        await refused(['create', name, '--type', 'text'], 4, /exists|configuration/);
        await refused(['create', name, '--ttl', '1500ms'], 2, /whole seconds/);
        await refused(['create', name, '--ttl', '1h', '--expires-at', '2040-01-01T00:00:00Z'], 2, /exclude/);
        const dated = uniqueName('dated');
        await shell.good(['create', dated, '--expires-at', '2040-01-01T00:00:00Z', '--closed']);
        const [head] = objects(await shell.good(['head', dated, '--json']));
        assert.equal(Date.parse(head.expires_at), Date.parse('2040-01-01T00:00:00Z'));
        assert.equal(head.closed, true);
    });

    test('--close, --seq, --producer', async () => {
        const name = uniqueName('flags');
        await shell.good(['create', name, '--type', 'text']);
        await shell.good(['append', name, 'a', '--seq', '001']);
        await refused(['append', name, 'b', '--seq', '001'], 4, /[Ss]eq/);
        await shell.good(['append', name, 'c', '--producer', 'me']);
        await shell.good(['append', name, 'd', '--producer', 'me']);
        const [end] = objects(await shell.good(['append', name, 'e', '--close', '--json']));
        assert.equal(end.closed, true);
        assert.equal(await shell.good(['read', name]), 'acde');
        await refused(['append', name, 'f'], 5, /closed/);
        await shell.good(['close', name]);
    });

    test('an empty message is refused, but for text that becomes a string', async () => {
        const [text, json] = [uniqueName('text'), uniqueName('json')];
        await shell.good(['create', text, '--type', 'text']);
        await shell.good(['create', json, '--type', 'json']);
        for (const flags of [[], ['--producer', 'me']]) {
            await refused(['append', text, '', ...flags], 2, /nothing to append/);
            await refused(['append', text, '', '--text', ...flags], 2, /nothing to append/);
            await refused(['append', json, ...flags], 2, /nothing to append/, { input: '' });
            await shell.good(['append', json, '', '--text', ...flags]);
        }
        assert.deepEqual(objects(await shell.good(['read', json])), ['', '']);
        for (const [name, flags, messages] of [
            [text, [], []], [uniqueName('t'), ['--producer', 'me'], []],
            [json, ['--text'], ['', '', '']], [uniqueName('j'), ['--text', '--producer', 'me'], ['']], [uniqueName('j'), [], []],
        ]) {
            await shell.run(['create', name, '--type', /^j/.test(name) ? 'json' : 'text']);
            assert.equal(objects(await shell.good(['append', name, '', '--close', '--json', ...flags]))[0].closed, true);
            assert.deepEqual(objects(await shell.good(['read', name])), messages);
        }
    });

    test('text that is no UTF-8 is not made a string of other characters', async () => {
        const [text, json] = [uniqueName('text'), uniqueName('json')];
        await shell.good(['create', text, '--type', 'text']);
        await shell.good(['create', json, '--type', 'json']);
        const input = Buffer.from('a\xffb', 'latin1');
        await refused(['append', json, '--text', '--close'], 1, /the message is not UTF-8/, { input });
        await refused(['append', json, '--text', '--producer', 'me'], 1, /the message is not UTF-8/, { input });
        await refused(['append', json, '--text', '--lines'], 1, /line 2 is not UTF-8/, { input: Buffer.concat([Buffer.from('ä\n'), input]) });
        assert.deepEqual(objects(await shell.good(['read', json])), ['ä']);
        await shell.good(['append', text, '--text'], { input });
        assert.equal(objects(await shell.good(['read', text, '--json']))[0].base64, input.toString('base64'));
    });

    test('a message from stdin has a largest size', async () => {
        const name = uniqueName('large');
        await shell.good(['create', name]);
        const running = shell.line(`head -c ${257 << 20} /dev/zero | arbe stream append ${name}`);
        const { code, stderr } = await running.end();
        assert.equal(code, 1);
        assert.match(stderr, /at most 256 MiB; --lines/);
    });
});

describe('append --lines', { timeout: 300_000 }, () => {
    test('each line is a message, in order', async () => {
        const name = uniqueName('lines');
        const numbers = Array.from({ length: 20_000 }, (_, i) => i);
        await shell.good(['create', name, '--type', 'json']);
        const [told] = objects(await shell.good(['append', name, '--lines', '--json', '--close'], { input: `${numbers.join('\n')}\n\n  \n` }));
        assert.equal(told.closed, true);
        assert.deepEqual(objects(await shell.good(['read', name])), numbers);
    });

    test('text keeps its line ends, and the last line needs none', async () => {
        const name = uniqueName('text');
        await shell.good(['create', name, '--type', 'text']);
        await shell.good(['append', name, '--lines'], { input: 'one\r\n\ntwo\nthree' });
        assert.equal(await shell.good(['read', name]), 'one\r\n\ntwo\nthree');
        const strings = uniqueName('strings');
        await shell.good(['create', strings, '--type', 'json']);
        await shell.good(['append', strings, '--lines', '--text'], { input: 'a "b"\n\nc' });
        assert.deepEqual(objects(await shell.good(['read', strings])), ['a "b"', '', 'c']);
    });

    test('lines come as they are given, not when the input ends', async () => {
        const name = uniqueName('slow');
        await shell.good(['create', name, '--type', 'json']);
        const running = shell.start('append', name, '--lines');
        const follower = shell.start('follow', name);
        running.type('1\n2');
        await follower.until(/^1\n$/);
        running.type('3\n');
        await follower.until(/^1\n23\n$/);
        running.child.stdin.end();
        assert.equal((await running.end()).code, 0);
        follower.kill('SIGTERM');
        assert.equal((await follower.end()).code, 143);
    });

    test('a bad line is named, and those before it are stored', async () => {
        const name = uniqueName('bad');
        await shell.good(['create', name, '--type', 'json']);
        await refused(['append', name, '--lines'], 1, /line 3 is not JSON/, { input: '1\n2\n{3\n4\n' });
        assert.deepEqual(objects(await shell.good(['read', name])), [1, 2]);
        await refused(['append', name, '5', '--lines'], 2, /stdin/);
    });

    test('a bad line does not hide that those before it could not be stored', async () => {
        const name = uniqueName('both');
        await shell.good(['create', name, '--type', 'json', '--closed']);
        const { code, stderr } = await shell.run(['append', name, '--lines'], { input: '1\n{2\n' });
        assert.equal(code, 1);
        assert.equal(lines(stderr).length, 3, stderr);
        assert.match(stderr, /line 2 is not JSON.*\n.*closed.*\n.*of 1 messages at least the first 0 are stored\n/);
        const told = await shell.run(['append', name, '--lines', '--json'], { input: '1\n{2\n' });
        assert.deepEqual(objects(told.stderr).map((one) => one.error ?? one), ['FAILED', 'CLOSED', { appended: 1, stored: 0 }]);
    });

    test('to a closed stream it tells how many are stored', async () => {
        const name = uniqueName('closed');
        await shell.good(['create', name, '--type', 'json', '--closed']);
        const { code, stderr } = await shell.run(['append', name, '--lines'], { input: '1\n2\n' });
        assert.equal(code, 5);
        assert.match(stderr, /closed/);
        assert.match(stderr, /of 2 messages at least the first 0 are stored/);
    });
});

describe('head, close, delete, fork, list', { timeout: 300_000 }, () => {
    test('head tells people and machines', async () => {
        const name = uniqueName('head');
        await shell.good(['create', name, '--type', 'text']);
        await shell.good(['append', name, '12345']);
        const told = await shell.good(['head', name]);
        assert.match(told, new RegExp(`^stream: ${name}\ncontent-type: text/plain\nnext-offset: [0-9_]+\nclosed: no\n`));
        const [object] = objects(await shell.good(['head', name, '--json']));
        assert.equal(object.next_offset, /next-offset: (.*)/.exec(told)[1]);
        await shell.good(['close', name]);
        assert.match(await shell.good(['head', name]), /closed: yes/);
    });

    test('delete goes on after one that is not there', async () => {
        const [a, b] = [uniqueName('a'), uniqueName('b')];
        await shell.good(['create', a]);
        await shell.good(['create', b]);
        await refused(['delete', a, uniqueName('none'), b], 3, /none/);
        await refused(['head', b], 3, /no such stream/);
    });

    test('a fork has the beginning of its source', async () => {
        const [a, b, c] = ['a', 'b', 'c'].map((one) => uniqueName(one));
        await shell.good(['create', a, '--type', 'json']);
        await shell.good(['append', a, '[1,2,3]']);
        const at = objects(await shell.good(['head', a, '--json']))[0].next_offset;
        await shell.good(['append', a, '[4,5]']);
        await shell.good(['fork', a, b, '--at', at, '--skip', '1']);
        await shell.good(['append', b, '"own"']);
        assert.equal(await shell.good(['read', b]), '1\n2\n3\n4\n"own"\n');
        await shell.good(['fork', a, c]);
        assert.equal(await shell.good(['read', c]), '1\n2\n3\n4\n5\n');
        await refused(['fork', uniqueName('none'), uniqueName('d')], 3, /no stream to fork/);
        await refused(['fork', 'http://127.0.0.1:1/v1/stream/a', 'd'], 2, /arbe stream copy/);
    });

    test('list: names, details, objects; only what has the prefix', async () => {
        const prefix = `${uniqueName('list')}/`;
        const names = ['a', 'b/c', 'b/d e', 'z'].map((one) => prefix + one);
        for (const name of names) {
            await shell.good(['create', name, '--type', 'text']);
        }
        assert.deepEqual(lines(await shell.good(['list', prefix])), names);
        assert.deepEqual(lines(await shell.good(['list', `${prefix}b/`])), names.slice(1, 3));
        assert.match(await shell.good(['list', `${prefix}a`, '--details']), /^[0-9_]+ {2}open {4}text\/plain +\S+\/a\n$/);
        assert.deepEqual(objects(await shell.good(['list', prefix, '--json'])).map((one) => one.stream), names);
        assert.equal(await shell.good(['list', `${prefix}none`]), '');
        await shell.good(['delete', ...names]);
    });

    test('names are kept as they are', async () => {
        const name = `${uniqueName('odd')}/ä b?c#d%25&=+`;
        await shell.good(['create', name, '--type', 'text']);
        await shell.good(['append', name, 'x']);
        assert.equal(await shell.good(['read', name]), 'x');
        assert.deepEqual(lines(await shell.good(['list', name.slice(0, name.indexOf('/'))])), [name]);
        const url = `${server.base}/v1/stream/${name.split('/').map((part) => encodeURIComponent(part).replaceAll('%2525', '%25')).join('/')}`;
        assert.equal(await shell.good(['read', url]), 'x');
    });
});

describe('wrong usage and exit codes', { timeout: 300_000 }, () => {
    test('2: it makes no sense', async () => {
        for (const [args, pattern] of [
            [[], /which command/], [['nonsense'], /nonsense/], [['read'], /which stream/], [['copy', 'a'], /two streams/],
            [['read', 'a', 'b'], /one word too many: "b"/], [['read', 'a', '--nonsense'], /--nonsense/], [['read', 'a', '-x'], /-x/],
            [['read', 'a', '--form', '-1'], /did you mean --from/], [['read', 'a', '--from'], /--from needs a value/],
            [['read', 'a', '--count', '0'], /--count/], [['read', ''], /name/], [['read', '/a'], /slash/],
            [['tail', 'a', '--sse', '--long-poll'], /exclude/], [['read', 'a', '--url', 'x'], /http/],
            [['read', 'a', '--url', 'http://u:p@h/'], /password/], [['read', 'a', '--url', 'http://h/?x'], /query/],
            [['read', 'a', '--url', 'http://h', '--profile', 'p'], /exclude/], [['read', 'http://h/a?offset=1'], /query/],
            [['read', 'a', '--profile', 'none'], /no profile "none"/], [['read', 'http://h/%zz'], /hex/],
            [['read', 'http://other/v1/stream/a', '--url', 'http://h'], /not below/], [['read', 'http://h/v1/stream/'], /names no stream/],
            [['append', 'a', 'x', '--lines'], /stdin/], [['append', 'a', '--lines', '--seq', '1'], /--seq/],
        ]) {
            await refused(args, 2, pattern);
        }
    });

    test('help of all and of each, on stdout', async () => {
        const all = await shell.good(['--help']);
        const names = [...all.matchAll(/^ {2}arbe stream (\w+)/gm)].map((found) => found[1]);
        assert.deepEqual(names, ['create', 'append', 'read', 'tail', 'follow', 'head', 'close', 'delete', 'fork', 'list', 'copy', 'bench']);
        for (const name of names) {
            assert.match(await shell.good([name, '--help']), new RegExp(`^Usage: arbe stream ${name} `));
        }
        for (const text of [all, ...await Promise.all(names.map((name) => shell.good([name, '--help'])))]) {
            assert.deepEqual(text.split('\n').filter((line) => line.length > 100), []);
        }
    });

    test('7: nobody answers; the sentence names the address', async () => {
        const port = await lastingPort();
        await refused(['head', 'a', '--url', `http://127.0.0.1:${port}`], 7, new RegExp(`127.0.0.1:${port}.*[Cc]onnection refused`));
        const { stderr } = await shell.run(['head', 'a', '--json', '--retries', '0', '--url', `http://127.0.0.1:${port}`]);
        assert.deepEqual(Object.keys(JSON.parse(stderr)), ['error', 'stream', 'status', 'outcome_unknown', 'message']);
        assert.equal(JSON.parse(stderr).error, 'NETWORK');
    });

    test('7: no answer in time', async (t) => {
        const silent = net.createServer(() => {}).listen(0, '127.0.0.1');
        t.after(() => silent.close());
        await new Promise((done) => silent.on('listening', done));
        await refused(['head', 'a', '--timeout', '200ms', '--retries', '0', '--url', `http://127.0.0.1:${silent.address().port}`], 7, /time|ms/);
    });

    test('a full disk of stdout is an error', async () => {
        const name = uniqueName('full');
        await shell.good(['create', name, '--type', 'text']);
        await shell.good(['append', name, 'x']);
        for (const command of [`read ${name}`, `head ${name}`, '--help']) {
            const { code } = await shell.line(`arbe stream ${command} >/dev/full`).end();
            assert.equal(code, 1, command);
        }
    });
});

describe('what servers say', { timeout: 300_000 }, () => {
    // A server that answers every request alike.
    async function answering(t, status, headers = {}, body = '') {
        const server = http.createServer((_, answer) => answer.writeHead(status, headers).end(body)).listen(0, '127.0.0.1');
        t.after(() => server.close());
        await once(server, 'listening');
        return `http://127.0.0.1:${server.address().port}`;
    }
    const problem = (detail) => [{ 'Content-Type': 'application/problem+json' }, JSON.stringify({ type: 'about:blank', detail })];

    test('each refusal has its exit code and its sentence', async (t) => {
        for (const [status, code, error] of [[401, 6, 'UNAUTHORIZED'], [403, 6, 'FORBIDDEN'], [404, 3, 'NOT_FOUND'], [410, 3, 'GONE'],
            [400, 1, 'REJECTED'], [429, 7, 'BUSY'], [503, 7, 'BUSY'], [500, 1, 'SERVER']]) {
            const url = await answering(t, status, ...problem(`because of ${status}`));
            for (const args of [['append', 'x', 'y', '--type', 'text'], ['delete', 'x'], ['create', 'x']]) {
                const { stderr } = await refused([...args, '--retries', '0', '--json', '--url', url], code, new RegExp(`because of ${status}`));
                assert.deepEqual([JSON.parse(stderr).error, JSON.parse(stderr).status], [error, status]);
            }
        }
    });

    test('an answer that never comes leaves an append unknown, and says so', async (t) => {
        const rude = net.createServer((socket) => {
            socket.on('error', () => {});
            socket.once('data', () => socket.destroy());
        }).listen(0, '127.0.0.1');
        t.after(() => rude.close());
        await once(rude, 'listening');
        const url = `http://127.0.0.1:${rude.address().port}`;
        await refused(['append', 'x', 'y', '--type', 'text', '--url', url], 7, /\(it may have taken effect\)$/m);
        const { stderr } = await shell.run(['append', 'x', 'y', '--type', 'text', '--json', '--url', url]);
        assert.equal(JSON.parse(stderr).outcome_unknown, true);
    });

    test('a certificate must be trusted, or be named', async (t) => {
        const [key, cert] = [join(top, 'key.pem'), join(top, 'cert.pem')];
        const made = spawnSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, '-days', '2',
            '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']);
        assert.equal(made.status, 0, String(made.stderr));
        const secure = https.createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (_, answer) => {
            answer.writeHead(200, { 'Content-Type': 'text/plain', 'Stream-Next-Offset': '7' }).end();
        }).listen(0, '127.0.0.1');
        t.after(() => secure.close());
        await once(secure, 'listening');
        const url = `https://localhost:${secure.address().port}`;
        await refused(['head', 'x', '--url', url], 6, /certificate/);
        assert.match(await shell.good(['head', 'x', '--url', url, '--ca-file', cert]), /next-offset: 7/);
        assert.match(await shell.good(['head', 'x', '--url', url], { env: { ARBE_CA_FILE: cert } }), /next-offset: 7/);
        await refused(['head', 'x', '--url', `https://127.0.0.1:${secure.address().port}`, '--ca-file', cert], 6, /certificate|127\.0\.0\.1/);
    });

    test('closed standard streams are not mistaken for connections', async () => {
        const name = uniqueName('shut');
        await shell.good(['create', name, '--type', 'text']);
        await shell.good(['append', name, 'x']);
        for (const [shut, code] of [['>&-', 1], ['>&- 2>&-', 1], ['<&-', 0], ['2>&-', 0], ['<&- >&- 2>&-', 1]]) {
            const { code: ended } = await shell.line(`arbe stream read ${name} ${shut}`).end();
            assert.equal(ended, code, shut);
        }
        assert.equal((await shell.line(`arbe stream append ${name} <&-`).end()).code, 1);
        assert.equal(await shell.good(['read', name]), 'x');
    });
});

describe('secrets and profiles', { timeout: 300_000 }, () => {
    const home = join(top, 'home');
    const secrets = join(home, 'secrets');
    mkdirSync(secrets, { recursive: true });
    writeFileSync(join(secrets, 'a'), 'the-secret\n', { mode: 0o600 });
    writeFileSync(join(secrets, 'wrong'), 'another\n', { mode: 0o600 });
    writeFileSync(join(secrets, 'open'), 'the-secret\n', { mode: 0o644 });
    const profiles = join(home, 'arbe/profiles');
    mkdirSync(join(home, 'arbe'));
    const write = (text, mode = 0o600) => {
        rmSync(profiles, { force: true });
        writeFileSync(profiles, text, { mode });
        chmodSync(profiles, mode);
    };
    const env = { XDG_CONFIG_HOME: home };

    test('a profile brings URL and secret; so does a URL that is below it', async (t) => {
        const guarded = await serverFor(t, ['--secret-file', join(secrets, 'a')]);
        const user = new Shell(env);
        write(`# mine\n[home]\n  url = ${guarded.base}/v1/stream/\nsecret-file = ../secrets/a\n\n[other]\nurl=http://127.0.0.1:1/\n`);
        await user.good(['create', 'x', '--type', 'text', '--profile', 'home']);
        await user.good(['append', `${guarded.base}/v1/stream/x`, 'one']);
        assert.equal(await user.good(['read', 'x', '--url', guarded.base + '/v1/stream']), 'one');
        assert.equal(await user.good(['read', 'x'], { env: { ARBE_PROFILE: 'home' } }), 'one');
        assert.equal(await user.good(['read', 'x', '--url', `${guarded.base}/v1/stream/`, '--secret-file', join(secrets, 'a')], { env: { XDG_CONFIG_HOME: top } }), 'one');
        assert.equal(await user.good(['read', 'x'], { env: { XDG_CONFIG_HOME: top, ARBE_URL: guarded.base, ARBE_SECRET_FILE: join(secrets, 'a') } }), 'one');
        write(`[default]\nurl = ${guarded.base}/v1/stream/\nsecret-file = ~/secrets/a\n`);
        assert.equal(await user.good(['read', 'x'], { env: { HOME: home } }), 'one');
        for (const [args, extra] of [[['--url', guarded.base], { XDG_CONFIG_HOME: top }], [['--profile', 'default', '--secret-file', join(secrets, 'wrong')], {}]]) {
            const { code, stderr } = await user.run(['read', 'x', ...args], { env: extra });
            assert.equal(code, 6, stderr);
        }
        const open = await user.run(['read', 'x', '--secret-file', join(secrets, 'open')]);
        assert.equal(open.code, 1);
        assert.match(open.stderr, /chmod 600/);
    });

    // A server that notes what it is asked; each stream of it is missing.
    async function spyFor(t) {
        const seen = [];
        const spy = net.createServer((socket) => {
            socket.on('error', () => {});
            socket.on('data', (data) => {
                seen.push(String(data));
                socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
            });
        }).listen(0, '127.0.0.1');
        t.after(() => spy.close());
        await new Promise((done) => spy.on('listening', done));
        return { base: `http://127.0.0.1:${spy.address().port}`, seen };
    }

    test('a secret is not sent to a server that it is not of', async (t) => {
        const { base, seen } = await spyFor(t);
        const user = new Shell({ ...env, ARBE_SECRET_FILE: join(secrets, 'a'), ARBE_URL: server.base });
        write(`[home]\nurl = ${base}/v1/stream/team\nsecret-file = ../secrets/a\n`);
        for (const stream of [`${base}/v1/stream/x`, `${base}/v1/stream/teamwork`]) {
            assert.equal((await user.run(['head', stream])).code, 3);
        }
        assert.equal((await user.run(['head', 'x', '--url', base])).code, 3);
        assert.ok(seen.length >= 3 && seen.every((text) => !/authorization/i.test(text)), seen.join());
        assert.equal((await user.run(['head', `${base}/v1/stream/team/x`])).code, 3);
        assert.match(seen.at(-1), /authorization: bearer the-secret/i);
    });

    test('a copy does not bring the secret of its source to another server', async (t) => {
        const { base, seen } = await spyFor(t);
        const secret = { ARBE_SECRET_FILE: join(secrets, 'a') };
        const name = uniqueName('src');
        await shell.good(['create', name]);
        write(`[away]\nurl = ${base}/v1/stream/\n`);
        for (const [args, extra] of [
            [[name, `${base}/v1/stream/x`, '--secret-file', join(secrets, 'a')], { ARBE_URL: server.base }],
            [[name, `${base}/v1/stream/x`], { ...secret, ARBE_URL: server.base }],
            [[name, name, '--to-url', base], { ...secret, ARBE_URL: server.base }],
            [[name, name, '--to-profile', 'away'], { ...secret, ARBE_URL: server.base }],
            [[name, name, '--url', server.base, '--to-url', base], secret],
            [[name, name, '--url', server.base, '--to-profile', 'away'], secret],
        ]) {
            seen.length = 0;
            await new Shell({ ...env, ...extra }).run(['copy', ...args]);
            assert.ok(seen.length > 0 && seen.every((text) => !/authorization/i.test(text)), `${args}: ${seen}`);
        }
    });

    test('a copy within one server has the secret at both ends', async (t) => {
        const guarded = await serverFor(t, ['--secret-file', join(secrets, 'a')]);
        const secret = { ARBE_SECRET_FILE: join(secrets, 'a') };
        const user = new Shell({ XDG_CONFIG_HOME: top, ...secret });
        await user.good(['create', 'x', '--type', 'text', '--url', guarded.base]);
        for (const [args, extra] of [
            [['x', 'b'], { ARBE_URL: guarded.base }],
            [['x', 'c', '--to-url', guarded.base], { ARBE_URL: guarded.base }],
            [['x', 'd', '--url', guarded.base, '--to-url', `${guarded.base}/v1/stream/`], {}],
            [['x', `${guarded.base}/v1/stream/e`, '--url', guarded.base], {}],
        ]) {
            await user.good(['copy', ...args], { env: extra });
        }
        const open = uniqueName('open');
        await shell.good(['create', open, '--type', 'text']);
        await user.good(['copy', open, 'f', '--url', server.base, '--to-url', guarded.base], { env: { ARBE_URL: guarded.base } });
        assert.equal(await user.good(['list', '--url', guarded.base]), 'b\nc\nd\ne\nf\nx\n');
    });

    test('a file of profiles that is not good is refused, with the line', async () => {
        for (const [text, pattern] of [
            ['url = x\n', /profiles:1: a profile begins/], ['[a]\nurl = http://h/\n[a]\nurl = http://h/\n', /:3: there are two/],
            ['[a]\nsecret = x\n', /:2: a secret has no place here/], ['[a]\nurl = http://h/\ncolour = red\n', /:3: "colour" is not known/],
            ['[a]\n', /"a" has no url/], ['[a]\nurl = http://h/\nurl = http://h/\n', /:3: url stands/], ['[a\n', /:1: a profile begins/],
            ['[a]\nurl =\n', /:2: url needs a value/], ['[a]\nnothing\n', /:2: a line is/],
        ]) {
            write(text);
            const { code, stderr } = await new Shell(env).run(['read', 'x']);
            assert.equal(code, 2, `${text}${stderr}`);
            assert.match(stderr, pattern);
        }
        write('[a]\nurl = http://h/\n', 0o666);
        const { code, stderr } = await new Shell(env).run(['read', 'x']);
        assert.equal(code, 1);
        assert.match(stderr, /chmod go-w/);
    });
});
