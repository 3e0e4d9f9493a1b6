// Tier 60: what the server says on stderr: at start, about requests at debug
// level and only there, at every level and in both formats.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Stream, TEXT, request } from './lib/http.mjs';
import { Raw, exchange, head } from './lib/raw.mjs';
import { run, serverFor, tempDir } from './lib/server.mjs';
import { Sse } from './lib/sse.mjs';
import { eventually } from './lib/wait.mjs';

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const SECRET = 'correct-horse-battery-staple';

// Lines of text as { time, level, message, fields }.
function textLines(log) {
    return log.split('\n').filter((line) => /^\d{4}-/.test(line)).map((line) => {
        const hit = /^(\S+) (debug|info |warn |error) (.*)$/.exec(line);
        assert.ok(hit, line);
        assert.match(hit[1], TIME);
        assert.match(line, /^[\x20-\x7e]*$/, 'nothing but what can be read');
        const fields = {};
        for (const [, key, value] of hit[3].matchAll(/ ([\w-]+)=("(?:[^"\\]|\\.)*"|[^" ]+)/g)) {
            fields[key] = value;
        }
        return { level: hit[2].trim(), message: hit[3].replace(/ [\w-]+=.*/, ''), fields };
    });
}

function jsonLines(log) {
    return log.split('\n').filter((line) => line.startsWith('{')).map((line) => {
        const { time, level, message, ...fields } = JSON.parse(line);
        assert.match(time, TIME);
        return { level, message, fields };
    });
}

const requests = (lines) => lines.filter((line) => line.message.startsWith('request'));

describe('logs: start', { timeout: 300_000 }, () => {
    test('settings, recovery and address, a line each, and never the secret', async (t) => {
        const settings = tempDir();
        t.after(() => rmSync(settings, { recursive: true }));
        const file = join(settings, 'secret');
        writeFileSync(file, `${SECRET}\n`, { mode: 0o600 });
        for (const [format, parse] of [['text', textLines], ['json', jsonLines]]) {
            const server = await serverFor(t, ['--secret-file', file, '--log-format', format, '--read-page', '1MiB']);
            const stream = new Stream(server, 's', TEXT, { Authorization: `Bearer ${SECRET}` });
            await stream.create({}, 'x');
            await stream.append('y');
            await request(server.base, 'GET', stream.path);
            server.log = '';
            await server.crashAndRestart();
            const lines = parse(server.log);
            assert.deepEqual(lines.map((line) => line.level), ['info', 'info', 'info']);
            const [first, recovery, address] = lines;
            assert.equal(first.message, 'settings');
            assert.equal(first.fields['secret-file'], file);
            assert.equal(first.fields['read-page'], '1MiB');
            assert.equal(first.fields['sse-heartbeat'], '15s');
            assert.equal(first.fields['log-level'], 'info');
            assert.match(recovery.message, /^0 streams in the catalog; log: 2 records, \d+ bytes replayed/);
            assert.match(address.message, new RegExp(`^listening on 127\\.0\\.0\\.1:${server.port} `));
            await server.stop();
            assert.ok(!server.log.includes(SECRET));
        }
    });

    test('a level drops what is below it', async (t) => {
        for (const level of ['warn', 'error']) {
            const server = await serverFor(t, ['--log-level', level]);
            const stream = new Stream(server, 's', TEXT);
            await stream.create();
            await server.stop();
            assert.deepEqual(textLines(server.log), []);
        }
    });
});

describe('logs: requests', { timeout: 300_000 }, () => {
    test('at info there is no line for a request', async (t) => {
        const server = await serverFor(t);
        const stream = new Stream(server, 's', TEXT);
        await stream.create();
        await stream.get();
        await exchange(server, 'NO REQUEST\r\n\r\n');
        await server.stop();
        assert.deepEqual(requests(textLines(server.log)), []);
    });

    test('at debug there is one for each, with the same fields in both formats', async (t) => {
        for (const [format, parse] of [['text', textLines], ['json', jsonLines]]) {
            const server = await serverFor(t, ['--log-level', 'debug', '--log-format', format]);
            const raw = await Raw.open(server);
            const remote = `127.0.0.1:${raw.socket.localPort}`;
            const ask = async (method, target, lines = [], body = '') => {
                raw.send(head(method, target, [...lines, `Content-Length: ${body.length}`]) + body);
                return await raw.response(method);
            };
            await ask('PUT', '/v1/stream/s', ['Content-Type: text/plain'], 'hello');
            await ask('POST', '/v1/stream/s?token=hidden', ['Content-Type: text/plain', 'Authorization: Bearer hidden'], 'hello');
            await ask('GET', '/v1/stream/s?offset=-1');
            await ask('HEAD', '/v1/stream/s');
            const missing = await ask('GET', '/v1/stream/%22a%20b%22?offset=-1');
            const patched = await ask('PATCH', '/v1/stream/s');
            raw.destroy();
            await server.stop();
            const lines = requests(parse(server.log));
            assert.ok(!server.log.includes('hidden'), 'neither query nor headers');
            assert.deepEqual(lines.map(({ fields }) => [fields.method, fields.path, Number(fields.status), Number(fields.bytes)]), [
                ['PUT', '/v1/stream/s', 201, 0],
                ['POST', '/v1/stream/s', 204, 0],
                ['GET', '/v1/stream/s', 200, 10],
                ['HEAD', '/v1/stream/s', 200, 0],
                ['GET', '/v1/stream/%22a%20b%22', 404, missing.body.length],
                ['PATCH', '/v1/stream/s', 405, patched.body.length],
            ]);
            for (const { level, message, fields } of lines) {
                assert.equal(level, 'debug');
                assert.equal(message, 'request');
                assert.equal(fields.remote, remote);
                assert.match(String(fields.duration_ms), /^\d+(\.\d+)?$/);
                assert.deepEqual(Object.keys(fields), ['method', 'path', 'status', 'bytes', 'duration_ms', 'remote']);
            }
        }
    });

    test('what is no request, what is refused, and what is cut off', async (t) => {
        const server = await serverFor(t, ['--log-level', 'debug']);
        await exchange(server, 'G\x1b[2J /x HTTP/1.1\r\n\r\n');
        await exchange(server, head('GET', `/${'a'.repeat(9000)}`));
        await exchange(server, head('GET', `/v1/stream/${'b'.repeat(2000)}`));
        const stream = new Stream(server, 's', TEXT);
        await stream.create();
        const half = await Raw.open(server);
        half.send(head('POST', stream.path, ['Content-Type: text/plain', 'Content-Length: 100']) + 'half');
        await eventually('it was seen', async () => {
            const reply = await request(server.base, 'GET', '/metrics');
            return /^arbe_connections [2-9]/m.test(reply.text);
        });
        half.destroy();
        await eventually('the end was seen', () => server.log.includes('not answered'));
        await server.stop();
        const lines = requests(textLines(server.log)).filter(({ fields }) => fields.path !== '/metrics');
        assert.deepEqual(lines.map(({ message, fields }) => [message, fields.method, fields.path, fields.status]), [
            ['request', 'other', '""', '400'],
            ['request', 'other', '""', '414'],
            ['request', 'GET', `/v1/stream/${'b'.repeat(501)}...`, '414'],
            ['request', 'PUT', '/v1/stream/s', '201'],
            ['request that was not answered', 'POST', '/v1/stream/s', '0'],
        ]);
    });

    test('a live answer has its line when it ends, with all its bytes', async (t) => {
        const server = await serverFor(t, ['--log-level', 'debug', '--log-format', 'json', '--long-poll-timeout', '50ms']);
        const stream = new Stream(server, 's', TEXT);
        await stream.create({}, 'first');
        const sse = await Sse.open(stream, '-1');
        await sse.data();
        await sse.control();
        await eventually('the line of the PUT', () => requests(jsonLines(server.log)).length > 0);
        assert.equal(requests(jsonLines(server.log)).length, 1, 'the PUT');
        await stream.append('second');
        await sse.data();
        await sse.control();
        const bytes = Buffer.byteLength(sse.text);
        sse.close();
        assert.equal((await stream.poll((await stream.head()).next)).status, 204);
        await server.stop();
        const lines = requests(jsonLines(server.log)).map(({ fields }) => fields);
        const live = lines.find((line) => line.method === 'GET' && line.status === 200);
        assert.equal(live.bytes, bytes);
        assert.ok(live.duration_ms > 0);
        assert.match(live.remote, /^127\.0\.0\.1:\d+$/);
        const poll = lines.find((line) => line.method === 'GET' && line.status === 204);
        assert.equal(poll.path, stream.path);
        assert.ok(poll.duration_ms > 0);
    });

    test('a start that fails is told in the file of the log and in its format', async (t) => {
        const dir = tempDir();
        t.after(() => rmSync(dir, { recursive: true }));
        mkdirSync(join(dir, 'data'));
        writeFileSync(join(dir, 'data', 'letter.txt'), 'dear');
        const args = ['streams', '--listen', '127.0.0.1:0', '--data', join(dir, 'data'), '--log-format', 'json'];
        const failure = (log) => {
            const { level, message } = JSON.parse(log.trim().split('\n').at(-1));
            assert.equal(level, 'error');
            assert.match(message, /holds other things/);
        };
        const piped = await run(args);
        assert.equal(piped.code, 1);
        failure(piped.stderr);
        const filed = await run([...args, '--log-file', join(dir, 'log')]);
        assert.equal(filed.code, 1);
        failure(readFileSync(join(dir, 'log'), 'utf8'));
        assert.match(filed.stderr, /^arbe streams: .*holds other things/);
    });

    test('SIGHUP takes another level from the configuration file', async (t) => {
        const dir = tempDir();
        t.after(() => rmSync(dir, { recursive: true }));
        const file = join(dir, 'arbe.conf');
        writeFileSync(file, 'log-level = warn\n');
        const server = await serverFor(t, ['--config', file]);
        const ask = () => request(server.base, 'GET', '/health');
        const reload = async (level) => {
            writeFileSync(file, `log-level = ${level}\n`);
            server.child.kill('SIGHUP');
        };
        await ask();
        assert.deepEqual(textLines(server.log), []);
        await reload('debug');
        await eventually('it was reloaded', () => server.log.includes('SIGHUP: reloaded'));
        await ask();
        await eventually('the line is there', () => requests(textLines(server.log)).length === 1);
        await reload('info');
        await eventually('it was reloaded again', () => server.log.match(/SIGHUP: reloaded/g).length === 2);
        await ask();
        await server.stop();
        assert.equal(requests(textLines(server.log)).length, 1);
    });
});
