// Tier 40: behind a proxy with its default buffering (E14): events and long-polls
// come through at once.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { after, describe } from 'node:test';
import { Stream, TEXT, uniqueName } from './lib/http.mjs';
import { testUnless } from './lib/impossible.mjs';
import { lastingPort } from './lib/port.mjs';
import { startServer, tempDir } from './lib/server.mjs';
import { Sse } from './lib/sse.mjs';
import { eventually } from './lib/wait.mjs';

const found = spawnSync('nginx', ['-v'], { encoding: 'utf8', env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` } });
const impossible = found.status === 0 ? '' : 'there is no nginx';
const test = testUnless(impossible);

async function startProxy(server) {
    const dir = tempDir();
    const port = await lastingPort();
    writeFileSync(join(dir, 'nginx.conf'), `
daemon off; master_process off; pid ${dir}/pid; error_log ${dir}/error.log;
events { worker_connections 200; }
http {
    access_log off; client_body_temp_path ${dir}/b; proxy_temp_path ${dir}/p; fastcgi_temp_path ${dir}/f;
    uwsgi_temp_path ${dir}/u; scgi_temp_path ${dir}/s;
    server { listen 127.0.0.1:${port}; location / { proxy_pass ${server.base}; } }
}
`);
    const child = spawn('nginx', ['-p', dir, '-e', join(dir, 'error.log'), '-c', join(dir, 'nginx.conf')],
                        { stdio: 'ignore', env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` } });
    const kill = () => child.kill('SIGKILL');
    process.on('exit', kill);
    const proxy = {
        port,
        base: `http://127.0.0.1:${port}`,
        async stop() {
            const gone = new Promise((done) => child.once('exit', done));
            child.kill('SIGKILL');
            await gone;
            process.off('exit', kill);
            rmSync(dir, { recursive: true, force: true });
        },
    };
    await eventually('the proxy listens', () => new Promise((done) => {
        const socket = net.connect(port, '127.0.0.1');
        socket.on('connect', () => { socket.destroy(); done(true); });
        socket.on('error', () => done(false));
    }));
    return proxy;
}

const server = await startServer(['--sse-heartbeat', '60s', '--sse-lifetime', '120s']);
const proxy = impossible ? null : await startProxy(server);
after(async () => {
    await proxy?.stop();
    await server.dispose();
});

// Through the proxy; appends go straight to the server.
const pair = async (body) => {
    const direct = new Stream(server, uniqueName(), TEXT);
    await direct.create({}, body);
    return [direct, new Stream(proxy, direct.name, TEXT)];
};

describe('E14: behind nginx', () => {
    test('E14: SSE events come through one by one, no heartbeat needed', async () => {
        const [direct, proxied] = await pair('first');
        const sse = await Sse.open(proxied, '-1');
        assert.equal(sse.status, 200);
        assert.equal(await sse.data(), 'first');
        await sse.control();
        for (let i = 0; i < 20; i++) {
            await direct.append(`${i}`);
            assert.equal(await sse.data(), `${i}`);
            await sse.control();
        }
        await direct.append('last', { 'Stream-Closed': 'true' });
        assert.equal(await sse.data(), 'last');
        assert.equal((await sse.control()).streamClosed, true);
        await sse.end();
    });

    test('E14: long-polls, appends, reads and conditional reads', async () => {
        const [direct, proxied] = await pair('x');
        const { next, headers } = await proxied.get();
        const waiting = proxied.poll(next);
        await direct.append('y');
        assert.equal((await waiting).text, 'y');
        assert.equal((await proxied.post('z')).status, 204);
        assert.equal((await proxied.get('offset=-1', { 'If-None-Match': headers.etag })).text, 'xyz');
        const again = await proxied.get();
        assert.equal((await proxied.get('offset=-1', { 'If-None-Match': again.headers.etag })).status, 304);
        assert.equal((await proxied.post('w', { 'Stream-Closed': 'true' })).status, 204);
        assert.equal((await direct.get()).text, 'xyzw');
        assert.equal((await proxied.remove()).status, 204);
        assert.equal((await proxied.get()).status, 404);
    });
});
