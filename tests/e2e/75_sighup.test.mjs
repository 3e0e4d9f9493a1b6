// Tier 70: SIGHUP: new settings, secret and log file for a server that works on, and what the service manager hears.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { Stream, TEXT, request } from './lib/http.mjs';
import { liveReaders } from './lib/prometheus.mjs';
import { Raw, head } from './lib/raw.mjs';
import { serverFor, tempDir } from './lib/server.mjs';
import { eventually, withDeadline } from './lib/wait.mjs';

const top = tempDir();
after(() => rmSync(top, { recursive: true, force: true }));

let count = 0;
function file(text) {
    const path = join(top, `f${count++}`);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
}

// Sends SIGHUP and waits for the line that says how it went.
async function reload(server, pattern) {
    const before = server.log.length;
    server.child.kill('SIGHUP');
    await eventually(`a line like ${pattern}`, () => pattern.test(server.log.slice(before)));
}

const bearer = (secret) => ({ Authorization: `Bearer ${secret}` });
const status = async (server, secret) =>
    (await request(server.base, 'GET', '/v1/stream/none', { headers: bearer(secret) })).status;

describe('SIGHUP', { timeout: 300_000 }, () => {
    test('a new secret under load: no connection breaks, nothing acknowledged is lost', async (t) => {
        const path = file('first-secret-first');
        const server = await serverFor(t, ['--secret-file', path]);
        const secrets = ['first-secret-first', 'second-secret-second', 'third-secret-third'];
        let current = 0;
        const call = (method, name, secret, body) => request(server.base, method, `/v1/stream/${name}`,
            { headers: { ...bearer(secret), 'Content-Type': TEXT }, body });
        for (let i = 0; i < 4; i++) {
            assert.equal((await call('PUT', `s${i}`, secrets[0])).status, 201);
        }
        let ending = false;
        const writers = Array.from({ length: 8 }, async (_, writer) => {
            const acked = [];
            for (let i = 0; !ending; i++) {
                const key = `${writer}-${i};`;
                const before = current;
                const { status: got, text } = await call('POST', `s${writer % 4}`, secrets[before], key);
                // The secret of before or after a reload may be asked for while one is under way.
                assert.ok([204, 401].includes(got), `${got} ${text}`);
                if (got === 204) {
                    acked.push(key);
                }
            }
            return acked;
        });
        for (let next = 1; next < secrets.length; next++) {
            writeFileSync(path, secrets[next]);
            await reload(server, /SIGHUP: reloaded/);
            current = next;
            assert.equal(await status(server, secrets[next]), 404);
            assert.equal(await status(server, secrets[next - 1]), 401, 'the old one is refused at once');
        }
        ending = true;
        const acked = await Promise.all(writers);
        for (let i = 0; i < 4; i++) {
            const { text } = await call('GET', `s${i}?offset=-1`, secrets.at(-1));
            for (const key of [...acked[i], ...acked[i + 4]]) {
                assert.ok(text.includes(key), key);
            }
        }
        assert.ok(acked.flat().length > 0);
        assert.ok(!server.log.includes('secret-second'), 'a secret is not logged');
    });

    test('a waiting reader is not disturbed', async (t) => {
        const server = await serverFor(t, []);
        const stream = new Stream(server, 's', TEXT);
        await stream.create({}, 'x');
        const reading = stream.poll((await stream.head()).next);
        await reload(server, /SIGHUP: reloaded/);
        await stream.append('y');
        assert.equal((await reading).text, 'y');
    });

    test('the limits of a server change while it serves', async (t) => {
        const config = file('max-streams = 1\nmax-waiters = 1\n');
        const server = await serverFor(t, ['--config', config]);
        const stream = (name) => new Stream(server, name, TEXT);
        await stream('a').create({}, 'x');
        assert.equal((await stream('b').put()).status, 507);
        const reading = stream('a').poll('now');
        await eventually('it waits', async () => await liveReaders(server, 'long_poll') === 1);
        const crowded = () => eventually('the cap', async () => {
            const raw = await Raw.open(server);
            raw.send(head('GET', '/v1/stream/a?live=sse&offset=now'));
            const got = (await raw.head()).status;
            raw.destroy();
            return got === 503;
        });
        await crowded();
        writeFileSync(config, 'max-streams = 2\nmax-bytes = 10\nmax-waiters = 0\n');
        await reload(server, /SIGHUP: reloaded/);
        assert.equal((await stream('b').put()).status, 201);
        assert.equal((await stream('c').put()).status, 507);
        assert.equal((await stream('b').post('x'.repeat(10))).status, 507);
        const second = stream('a').poll('now');
        await eventually('both wait', async () => await liveReaders(server, 'long_poll') === 2);
        writeFileSync(config, 'max-request-rate = 1\nmax-write-rate = 1\n');
        await reload(server, /SIGHUP: reloaded/);
        await eventually('a rate', async () => (await stream('c').head()).status === 429);
        writeFileSync(config, '');
        await reload(server, /SIGHUP: reloaded/);
        assert.equal((await stream('c').put()).status, 201);
        await stream('a').append('y'.repeat(100));
        assert.equal((await reading).text, 'y'.repeat(100), 'who waits is not disturbed');
        assert.equal((await second).text, 'y'.repeat(100));
    });

    test('what is wrong leaves everything as it was, and says so', async (t) => {
        const secret = file('first-secret-first');
        const config = file(`secret-file = ${secret}\n`);
        const server = await serverFor(t, ['--config', config]);
        writeFileSync(config, `secret-file = ${secret}\nread-pgae = 1\n`);
        await reload(server, /SIGHUP: the settings stay as they were: .*:2: there is no setting "read-pgae"/);
        writeFileSync(config, '');
        await reload(server, /SIGHUP: the settings stay as they were: .*takes a restart/);
        writeFileSync(config, `secret-file = ${secret}\n`);
        chmodSync(secret, 0o644);
        await reload(server, /SIGHUP: the settings stay as they were: .*chmod/);
        rmSync(secret);
        await reload(server, /SIGHUP: the settings stay as they were: cannot open/);
        assert.equal(await status(server, 'first-secret-first'), 404);
        assert.equal(await status(server, 'other'), 401);
    });

    test('what takes a restart is told, the rest is taken', async (t) => {
        const secret = file('first-secret-first');
        const config = file(`secret-file = ${secret}\nread-page = 1KiB\n`);
        const server = await serverFor(t, ['--config', config]);
        writeFileSync(secret, 'second-secret-second');
        writeFileSync(config, `secret-file = ${secret}\nread-page = 2KiB\n`);
        await reload(server, /SIGHUP: reloaded, but read-page takes a restart to change/);
        assert.equal(await status(server, 'second-secret-second'), 404);
    });

    test('the cap on connections', async (t) => {
        const config = file('max-connections = 2');
        const server = await serverFor(t, ['--config', config]);
        const ask = async () => {
            const raw = await Raw.open(server);
            raw.send(head('GET', '/v1/stream/none'));
            return { raw, status: (await raw.response()).status };
        };
        const held = [await ask(), await ask()];
        assert.deepEqual(held.map((one) => one.status), [404, 404]);
        const refused = await ask();
        assert.equal(refused.status, 503);
        writeFileSync(config, 'max-connections = 20');
        await reload(server, /SIGHUP: reloaded/);
        const more = await ask();
        assert.equal(more.status, 404);
        [...held, refused, more].forEach(({ raw }) => raw.destroy());
    });

    test('the log file is opened anew, and no line is lost', async (t) => {
        const path = join(top, 'arbe.log');
        const server = await serverFor(t, ['--log-file', path]);
        const first = readFileSync(path, 'utf8');
        assert.match(first, /listening on/);
        renameSync(path, `${path}.1`);
        server.child.kill('SIGHUP');
        await eventually('a line in the new file', () => existsSync(path) && /SIGHUP: reloaded/.test(readFileSync(path, 'utf8')));
        assert.equal(readFileSync(`${path}.1`, 'utf8'), first);
        await server.stop();
        assert.match(readFileSync(path, 'utf8'), /SIGTERM: draining/);
    });

    test('many at once, and one while draining', async (t) => {
        const server = await serverFor(t);
        for (let i = 0; i < 200; i++) {
            server.child.kill('SIGHUP');
        }
        await eventually('a reload', () => /SIGHUP: reloaded/.test(server.log));
        const stopped = server.kill('SIGTERM');
        server.child?.kill('SIGHUP');
        assert.equal((await stopped).code, 0, server.tail());
    });
});

describe('the service manager', { timeout: 120_000 }, () => {
    const listener = join(top, 'listener');
    const source = new URL('lib/notify_listener.c', import.meta.url).pathname;
    const built = spawnSync('cc', ['-o', listener, source], { encoding: 'utf8' });
    assert.equal(built.status, 0, built.stderr);

    test('hears of start, reload and stop', async (t) => {
        const socket = join(top, 'notify');
        const child = spawn(listener, [socket], { stdio: ['ignore', 'pipe', 'inherit'] });
        t.after(() => child.kill('SIGKILL'));
        let heard = '';
        child.stdout.on('data', (chunk) => { heard += chunk; });
        const hears = (text) => eventually(text, () => heard.includes(text));
        await hears('bound\n');
        const server = await serverFor(t, [], { env: { NOTIFY_SOCKET: socket } });
        await hears('READY=1\n');
        server.child.kill('SIGHUP');
        await eventually('the end of a reload', () => /RELOADING=1 MONOTONIC_USEC=\d+\nREADY=1\n/.test(heard));
        await withDeadline(server.stop(), 'end');
        await hears('STOPPING=1\n');
    });
});
