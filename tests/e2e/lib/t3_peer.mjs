// A T3 Code server for tests: Effect's RpcServer (tests/conformance/t3_server.mjs), the part of T3's HTTP that is about
// tokens, and what a test wants of it: it answers as it is told, notes whatever comes, and breaks in every way.
//
//   const peer = await startPeer({ token: 'tok', pairing: 'PAIR-1' });
//   peer.list(threadShell('t-1', { title: 'One' }));    // in the snapshot that shells begin with
//   peer.push(threadUpdated('t-1', { title: 'Uno' }));  // to each shell that is subscribed, and in later snapshots
//   peer.close(); peer.drop(); peer.revoke(); await peer.stop(); await peer.start(); // again on the same port
//
// A test answers by itself where it says so: peer.answers[method] = (call) => {...}, which may also do nothing and leave
// the call to what `await peer.call(method, n)` gives. A call has method, payload, id, connection, `over` (a promise of
// its end), and fail(error), die(defect), interrupt(); a stream offer(...items) and end(), the other succeed(value).
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { serveT3 } from '../../conformance/t3_server.mjs';
import { lastingPort } from './port.mjs';
import { tempDir } from './server.mjs';
import { projectionOf, shellSnapshot, threadSnapshot } from './t3_items.mjs';
import { READ, SCOPES, Sessions } from './t3_sessions.mjs';
import { DEADLINE_MS, withDeadline } from './wait.mjs';

export * from './t3_items.mjs';
export { READ, SCOPES } from './t3_sessions.mjs';

export const SHELL = 'orchestration.subscribeShell';
export const THREAD = 'orchestration.subscribeThread';
export const PROJECTION = 'orchestration.getThreadProjection';

// A server's key and certificate for such names ("DNS:localhost", "IP:127.0.0.1") by an authority made for it:
// { caFile, key, cert }.
export function makeCertificate(...names) {
    const dir = tempDir();
    const file = (name) => join(dir, name);
    const openssl = (...args) => {
        const { status, stderr, error } = spawnSync('openssl', args, { encoding: 'utf8' });
        if (status !== 0) {
            throw new Error(`openssl ${args[0]}: ${stderr ?? error}`);
        }
    };
    const fresh = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
    writeFileSync(file('extensions'), `subjectAltName=${names.join(',')}\n`);
    openssl('req', '-x509', ...fresh, '-days', '2', '-subj', '/CN=arbe test authority', '-keyout', file('ca.key'), '-out', file('ca.pem'));
    openssl('req', ...fresh, '-subj', '/CN=arbe test server', '-keyout', file('key.pem'), '-out', file('request'));
    openssl('x509', '-req', '-in', file('request'), '-CA', file('ca.pem'), '-CAkey', file('ca.key'), '-set_serial', '1', '-days', '2',
            '-extfile', file('extensions'), '-out', file('cert.pem'));
    return { caFile: file('ca.pem'), key: readFileSync(file('key.pem')), cert: readFileSync(file('cert.pem')) };
}

function takenApart({ url, ...rest }) {
    const { pathname, searchParams } = new URL(url, 'http://peer');
    return { ...rest, url, path: pathname, query: Object.fromEntries(searchParams) };
}

// A message of the server, as its bytes.
function frame(text) {
    const payload = Buffer.from(text);
    const head = Buffer.alloc(payload.length < 126 ? 2 : payload.length < 65536 ? 4 : 10);
    head[0] = 0x81;
    head[1] = { 2: payload.length, 4: 126, 10: 127 }[head.length];
    if (head.length === 4) {
        head.writeUInt16BE(payload.length, 2);
    } else if (head.length === 10) {
        head.writeBigUInt64BE(BigInt(payload.length), 2);
    }
    return Buffer.concat([head, payload]);
}

class Peer {
    // token: what clients need, with these scopes; null: nothing. pairing: a credential that can be exchanged once.
    // protocol: what upgrades must ask for; null: nothing, as old servers. host: the name in `base` and `url`.
    // fatalDefects, tls: see t3_server.mjs.
    constructor({ token = null, scopes = SCOPES, pairing = null, protocol = 2, host = '127.0.0.1', fatalDefects = true, tls = null }) {
        this.options = { fatalDefects, tls };
        this.host = host;
        this.sessions = new Sessions({ anyone: token === null && pairing === null, protocol });
        this.threads = new Map();
        this.answers = {
            [SHELL]: (call) => call.offer(this.snapshot()),
            [THREAD]: (call) => call.offer(threadSnapshot(call.payload.threadId)),
            [PROJECTION]: (call) => call.succeed(projectionOf(call.payload.threadId)),
        };
        this.upgrades = []; // { path, query, headers, status }: all, also those that were refused
        this.requests = []; // HTTP: { method, path, query, headers, body, status, answer }
        this.connections = []; // { path, query, headers, session, open, received, sent }, the last two messages
        this.calls = []; // of all connections
        this.deaf = false; // the server sees nothing of what clients send; it is noted all the same
        this.port = 0;
        this.server = null;
        this.waiters = [];
        if (token !== null) {
            this.grant(token, scopes);
        }
        if (pairing !== null) {
            this.pair(pairing);
        }
    }

    get base() {
        return `${this.options.tls === null ? 'http' : 'https'}://${this.host}:${this.port}`;
    }

    get url() {
        return `${this.base.replace('http', 'ws')}/ws`;
    }

    async start() {
        this.server = await serveT3(this.hooks(), { port: this.port || await lastingPort(), ...this.options });
        this.port = this.server.port;
        return this;
    }

    // Nobody listens afterwards, and every connection is cut.
    async stop() {
        const { server } = this;
        this.server = null;
        await server?.stop();
    }

    // ------------------------------------------------------------------------- what the server asks

    hooks() {
        return {
            upgrade: (asked) => this.admit(asked),
            request: (asked) => this.answerRequest(takenApart(asked)),
            opened: (connection) => this.note(this.connections, Object.assign(connection, takenApart(connection), {
                open: true, received: [], sent: [],
            })),
            closed: (connection) => this.wake(Object.assign(connection, { open: false })),
            received: (connection, message) => this.note(connection.received, message) && !this.deaf,
            sent: (connection, message) => this.note(connection.sent, message),
            called: (call) => this.answerCall(call),
        };
    }

    // What the session may do is settled here: a token that is revoked later takes nothing from a connection.
    admit(asked) {
        const { socket: _, ...upgrade } = takenApart(asked);
        const { session, refusal } = this.sessions.checkUpgrade(upgrade);
        asked.session = session;
        this.note(this.upgrades, { ...upgrade, status: refusal?.status ?? 101 });
        return refusal ?? null;
    }

    // What a test answers itself may take its time.
    async answerRequest({ socket: _, ...asked }) {
        const request = { ...asked };
        this.note(this.requests, request);
        const { status, headers, body } = await this.sessions.answer(asked);
        Object.assign(request, { status, answer: body });
        return { status, headers, body };
    }

    answerCall(call) {
        call.finished = false;
        call.over.then(() => this.wake(Object.assign(call, { finished: true })));
        this.note(this.calls, call);
        if (!call.connection.session.scopes.includes(READ)) {
            call.fail({ _tag: 'EnvironmentAuthorizationError', message: `${READ} is required.`, requiredScope: READ });
        } else {
            this.answers[call.method](call);
        }
    }

    // --------------------------------------------------------------------------------- telling

    // What the next shell begins with.
    snapshot() {
        const at = (place) => [...this.threads.values()].filter(({ location }) => location === place).map(({ thread }) => thread);
        return shellSnapshot(at('active'), at('archive'));
    }

    list(...threads) {
        threads.forEach((thread) => this.threads.set(thread.id, { thread, location: thread.archivedAt === null ? 'active' : 'archive' }));
    }

    push(...items) {
        for (const { kind, ...item } of items) {
            if (kind === 'thread.updated') {
                this.threads.set(item.thread.id, item);
            } else if (kind === 'thread.removed') {
                this.threads.delete(item.threadId);
            }
        }
        this.open(SHELL).forEach((call) => call.offer(...items));
    }

    // Calls of a method that are under way.
    open(method) {
        return this.calls.filter((call) => call.method === method && !call.finished && call.connection.open);
    }

    // Sends a message that Effect's server would not: a text, or something that becomes JSON.
    send(connection, message) {
        connection.socket.write(frame(typeof message === 'string' ? message : JSON.stringify(message)));
    }

    // -------------------------------------------------------------------------------- breaking

    // Ends all connections, or one, as a server does that closes.
    close(connection) {
        this.standing(connection).forEach((one) => one.close());
    }

    // Cuts them below the WebSocket.
    drop(connection) {
        this.standing(connection).forEach(({ socket }) => socket.destroy());
    }

    standing(connection) {
        return connection === undefined ? this.connections.filter(({ open }) => open) : [connection];
    }

    // --------------------------------------------------------------------------------- tokens

    // A token that is good from now on.
    grant(token, scopes = [READ]) {
        return this.sessions.grant(token, scopes).token;
    }

    // Those tokens, or all, are refused from now on; connections that stand stay.
    revoke(...tokens) {
        this.sessions.revoke(tokens);
    }

    // A credential that can be exchanged once.
    pair(credential, scopes = SCOPES) {
        this.sessions.pairings.set(credential, scopes);
        return credential;
    }

    // -------------------------------------------------------------------------------- waiting

    note(list, what) {
        list.push(what);
        this.wake();
        return true;
    }

    wake() {
        this.waiters.splice(0).forEach((waiter) => waiter());
    }

    // What probe() gives, as soon as that is truthy. It is asked again whenever something has come.
    async until(what, probe, ms = DEADLINE_MS) {
        const end = Date.now() + ms;
        for (;;) {
            const value = probe(this);
            if (value) {
                return value;
            }
            await withDeadline(new Promise((done) => this.waiters.push(done)), what, end - Date.now());
        }
    }

    // The n-th call of a method, from 0.
    async call(method, n = 0) {
        return this.until(`call ${n} of ${method}`, () => this.calls.filter((call) => call.method === method)[n]);
    }

    // The n-th connection, from 0.
    async connection(n = 0) {
        return this.until(`connection ${n}`, () => this.connections[n]);
    }

    // What clients sent with that tag: of one call, or on all connections.
    received(tag, call) {
        return this.messages('received', tag, call);
    }

    // What the server sent.
    sent(tag, call) {
        return this.messages('sent', tag, call);
    }

    messages(way, tag, call) {
        const connections = call === undefined ? this.connections : [call.connection];
        return connections.flatMap((connection) => connection[way]).filter((message) => message._tag === tag &&
            (call === undefined || String(message.requestId ?? message.id) === call.id));
    }
}

export async function startPeer(options = {}) {
    return new Peer(options).start();
}
