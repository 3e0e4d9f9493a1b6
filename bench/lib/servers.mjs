// Starts and stops the servers that are measured, one at a time, each with a new data directory.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';

const START_TIMEOUT_MS = 20000;
const STOP_TIMEOUT_MS = 15000;
const LOG_BYTES_MAX = 8192;
const ADDRESS = /listening on http:\/\/127\.0\.0\.1:(\d+)/;
const running = new Set();

// Nothing that was started may outlive the run.
process.on('exit', () => running.forEach((server) => server.child.kill('SIGKILL')));

class Server {
    constructor(name, dir, child) {
        this.name = name;
        this.dir = dir;
        this.child = child;
        this.pid = child.pid;
        this.log = '';
        this.port = 0;
        this.ended = new Promise((resolve) => child.once('close', resolve));
        this.child.once('error', (error) => { this.log += error.message; });
        running.add(this);
        this.ended.then(() => running.delete(this));
        for (const pipe of [child.stdout, child.stderr]) {
            pipe.setEncoding('utf8');
            pipe.on('data', (text) => { this.log = (this.log + text).slice(-LOG_BYTES_MAX); });
        }
    }

    get url() {
        return `http://127.0.0.1:${this.port}`;
    }

    async kill() {
        this.child.kill('SIGKILL');
        await this.ended;
    }

    async stop() {
        this.child.kill('SIGTERM');
        const late = setTimeout(() => this.child.kill('SIGKILL'), STOP_TIMEOUT_MS);
        await this.ended;
        clearTimeout(late);
    }
}

// Waits until the server has printed its address. `step` shortens the wait where it is measured.
async function addressAwait(server, stepMs = 5) {
    const deadline = Date.now() + START_TIMEOUT_MS;
    while (!server.port) {
        const match = server.log.match(ADDRESS);
        if (match) {
            server.port = Number(match[1]);
        } else if (server.child.exitCode !== null || !server.pid || Date.now() > deadline) {
            throw new Error(`${server.name} did not start: ${server.log.trim() || 'no output'}`);
        } else {
            await sleep(stepMs);
        }
    }
    return server;
}

function portOpen(port) {
    return new Promise((resolve) => {
        const socket = net.connect(port, '127.0.0.1');
        socket.once('connect', () => { socket.destroy(); resolve(true); });
        socket.once('error', () => resolve(false));
    });
}

function portFind() {
    return new Promise((resolve, reject) => {
        const probe = net.createServer();
        probe.once('error', reject);
        probe.listen(0, '127.0.0.1', () => {
            const { port } = probe.address();
            probe.close(() => resolve(port));
        });
    });
}

// Waits until a server that was told its port answers there.
async function portAwait(server, port, stepMs = 10) {
    const deadline = Date.now() + START_TIMEOUT_MS;
    while (!(await portOpen(port))) {
        if (server.child.exitCode !== null || !server.pid || Date.now() > deadline) {
            throw new Error(`${server.name} did not start: ${server.log.trim()}`);
        }
        await sleep(stepMs);
    }
    server.port = port;
    return server;
}

function nginxConfig(dir, port) {
    // Both sides get what they would get from an expert: two workers, a socket each, no log.
    // Whoever starts it as root has files only root may read.
    return `daemon off;
worker_processes 2;
${process.getuid() === 0 ? 'user root;' : ''}
pid ${dir}/nginx.pid;
error_log ${dir}/error.log;
events { worker_connections 4096; }
http {
    access_log off;
    sendfile on;
    tcp_nopush on;
    tcp_nodelay on;
    keepalive_timeout 3600;
    keepalive_requests 1000000000;
    default_type application/octet-stream;
    client_body_temp_path ${dir}/body;
    proxy_temp_path ${dir}/proxy;
    fastcgi_temp_path ${dir}/fastcgi;
    uwsgi_temp_path ${dir}/uwsgi;
    scgi_temp_path ${dir}/scgi;
    server {
        listen 127.0.0.1:${port} reuseport backlog=4096;
        location /v1/stream/ { return 204; }
        location /plain/ { alias ${dir}/files/; }
        location /cached/ {
            alias ${dir}/files/;
            open_file_cache max=100 inactive=1h;
            open_file_cache_valid 1h;
        }
    }
}
`;
}

export class Servers {
    constructor(options) {
        this.options = options;
    }

    // Why a server cannot be used here, or undefined.
    missing(name) {
        const { arbe, nodeModules } = this.options;
        if (name === 'arbe' && !existsSync(arbe)) {
            return `${arbe} is not built`;
        }
        if (name === 'rust' && !this.options.rust) {
            return 'durable-streams-server is not in $PATH (cargo install durable-streams)';
        }
        if (name === 'node' && !existsSync(path.join(nodeModules, '@durable-streams/server'))) {
            return `@durable-streams/server is not in ${nodeModules}`;
        }
        return undefined;
    }

    referenceVersion() {
        const file = path.join(this.options.nodeModules, '@durable-streams/server/package.json');
        return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : 'none';
    }

    // It does not tell its version.
    rustVersion() {
        return this.options.rust ?? 'none';
    }

    dirMake(name) {
        return mkdtempSync(path.join(this.options.work, `${name}-`));
    }

    launch(name, dir, command, args, env = {}) {
        const child = spawn(command, args, {
            stdio: ['ignore', 'pipe', 'pipe'],
            env: { ...process.env, ...env },
        });
        return new Server(name, dir, child);
    }

    // Starts arbe on a directory, a new one unless `dir` is given.
    arbe({ dir = this.dirMake('arbe'), flags = [], stepMs } = {}) {
        const args = ['streams', '--listen', '127.0.0.1:0', '--data', path.join(dir, 'data'),
            '--durability', 'sync', ...flags];
        return addressAwait(this.launch('arbe', dir, this.options.arbe, args), stepMs);
    }

    // Starts arbe serve on a new directory; what it says of the first owner's key is in its log.
    serve({ flags = [] } = {}) {
        const dir = this.dirMake('serve');
        return addressAwait(this.launch('arbe', dir, this.options.arbe,
            ['serve', '--listen', '127.0.0.1:0', '--data', path.join(dir, 'data'), '--durability', 'sync', ...flags]));
    }

    node() {
        const dir = this.dirMake('node');
        const data = path.join(dir, 'data');
        mkdirSync(data);
        const script = fileURLToPath(new URL('reference.mjs', import.meta.url));
        const args = [script, this.options.nodeModules, data];
        return addressAwait(this.launch('node', dir, process.execPath, args,
            { NODE_ENV: 'production' }));
    }

    // Starts nginx; `files` (name to bytes) are what it serves below /plain/ and /cached/.
    async nginx({ files = {} } = {}) {
        const dir = this.dirMake('nginx');
        mkdirSync(path.join(dir, 'files'));
        for (const [name, bytes] of Object.entries(files)) {
            writeFileSync(path.join(dir, 'files', name), bytes);
        }
        const port = await portFind();
        const config = path.join(dir, 'nginx.conf');
        writeFileSync(config, nginxConfig(dir, port));
        return portAwait(this.launch('nginx', dir, 'nginx', ['-p', dir, '-c', config]), port);
    }

    // Starts the Rust server on a directory, a new one unless `dir` is given; as it is, but for the port.
    async rust({ dir = this.dirMake('rust'), stepMs } = {}) {
        const port = await portFind();
        const args = ['--port', String(port), '--data-dir', path.join(dir, 'data')];
        return portAwait(this.launch('rust', dir, this.options.rust, args), port, stepMs);
    }

    async finish(server) {
        await server.stop();
        this.discard(server.dir);
    }

    discard(dir) {
        if (!this.options.keep) {
            rmSync(dir, { recursive: true, force: true });
        }
    }
}
