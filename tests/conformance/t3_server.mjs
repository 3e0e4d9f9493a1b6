// The server that T3 Code clients meet: Effect's own RpcServer with JSON messages, one for each WebSocket. What it
// answers is for `host` to say; tests/e2e/lib/t3_peer.mjs is one.
import * as NodeHttpServer from '@effect/platform-node/NodeHttpServer';
import * as Cause from 'effect/Cause';
import * as Deferred from 'effect/Deferred';
import * as Effect from 'effect/Effect';
import * as Fiber from 'effect/Fiber';
import * as Layer from 'effect/Layer';
import * as Queue from 'effect/Queue';
import * as References from 'effect/References';
import * as Schema from 'effect/Schema';
import * as Stream from 'effect/Stream';
import * as HttpServerRequest from 'effect/http/HttpServerRequest';
import * as HttpServerResponse from 'effect/http/HttpServerResponse';
import * as Rpc from 'effect/rpc/Rpc';
import * as RpcGroup from 'effect/rpc/RpcGroup';
import * as RpcSerialization from 'effect/rpc/RpcSerialization';
import * as RpcServer from 'effect/rpc/RpcServer';
import http from 'node:http';
import https from 'node:https';

const threadId = Schema.String.check(Schema.isPattern(/\S/));
const resuming = {
    afterSequence: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))),
    requestCompletionMarker: Schema.optionalKey(Schema.Boolean),
};
const PAYLOADS = {
    'orchestration.subscribeShell': { stream: true, fields: resuming },
    'orchestration.subscribeThread': { stream: true, fields: { threadId, ...resuming } },
    'orchestration.getThreadProjection': { stream: false, fields: { threadId } },
};

const group = RpcGroup.make(...Object.entries(PAYLOADS).map(([method, { stream, fields }]) => Rpc.make(method, {
    payload: Schema.Struct(fields), success: Schema.Unknown, error: Schema.Unknown, stream,
})));

// A request that streams. What is offered while a chunk waits for its ack comes as one chunk after it.
class StreamCall {
    constructor(queue) {
        this.queue = queue;
    }

    offer(...items) {
        Queue.offerAllUnsafe(this.queue, items);
    }

    end() {
        Queue.endUnsafe(this.queue);
    }

    fail(error) {
        Queue.failCauseUnsafe(this.queue, Cause.fail(error));
    }

    die(defect) {
        Queue.failCauseUnsafe(this.queue, Cause.die(defect));
    }

    interrupt() {
        Queue.failCauseUnsafe(this.queue, Cause.interrupt());
    }
}

// A request with one answer.
class UnaryCall {
    constructor(resume) {
        this.resume = resume;
    }

    succeed(value) {
        this.resume(Effect.succeed(value));
    }

    fail(error) {
        this.resume(Effect.fail(error));
    }

    die(defect) {
        this.resume(Effect.die(defect));
    }

    interrupt() {
        this.resume(Effect.interrupt);
    }
}

function handlersFor(host, connection) {
    const begin = (call, method, payload, { requestId }) => {
        Object.assign(call, { connection, method, payload, id: String(requestId) });
        call.over = new Promise((done) => { call.ended = done; });
        host.called(call);
        return call;
    };
    const stream = (method) => (payload, meta) => Stream.unwrap(Effect.map(Queue.unbounded(), (queue) => {
        const call = begin(new StreamCall(queue), method, payload, meta);
        return Stream.onExit(Stream.fromQueue(queue), () => Effect.sync(() => call.ended()));
    }));
    const unary = (method) => (payload, meta) => Effect.suspend(() => {
        let call;
        return Effect.onExit(Effect.callback((resume) => {
            call = begin(new UnaryCall(resume), method, payload, meta);
        }), () => Effect.sync(() => call.ended()));
    });
    return group.toLayer(Effect.succeed(Object.fromEntries(Object.entries(PAYLOADS).map(
        ([method, of]) => [method, of.stream ? stream(method) : unary(method)],
    ))));
}

// Effect's JSON, which tells the host what passes. What it returns of a message that came is what the server sees.
function tappedJson(host, connection) {
    const { makeUnsafe, ...json } = RpcSerialization.json;
    return Layer.succeed(RpcSerialization.RpcSerialization, RpcSerialization.RpcSerialization.of({
        ...json,
        makeUnsafe() {
            const parser = makeUnsafe();
            return {
                decode: (data) => parser.decode(data).filter((message) => host.received(connection, message)),
                encode(message) {
                    host.sent(connection, message);
                    return parser.encode(message);
                },
            };
        },
    }));
}

const answer = ({ status, headers, body }) => body === undefined ? HttpServerResponse.empty({ status, headers })
    : HttpServerResponse.jsonUnsafe(body, { status, headers });

// A WebSocket until it ends, or until the connection's close() ends it as a server does that closes.
const serveSocket = (host, connection, fatalDefects) => Effect.gen(function* () {
    const closing = yield* Deferred.make();
    connection.close = () => Deferred.doneUnsafe(closing, Effect.void);
    host.opened(connection);
    const rpc = yield* RpcServer.toHttpEffectWebsocket(group, { disableTracing: true, disableFatalDefects: !fatalDefects })
        .pipe(Effect.provide(Layer.provideMerge(handlersFor(host, connection), tappedJson(host, connection))));
    return yield* Effect.raceFirst(rpc, Effect.as(Deferred.await(closing), HttpServerResponse.empty()))
        .pipe(Effect.onExit(() => Effect.sync(() => host.closed(connection))));
});

const serveRequest = (host, fatalDefects) => Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest;
    const { socket } = request.source;
    const asked = { method: request.method, url: request.url, headers: { ...request.headers }, socket };
    if (request.headers.upgrade === undefined) {
        const body = yield* request.text;
        return answer(yield* Effect.promise(async () => host.request({ ...asked, body })));
    }
    const refusal = host.upgrade(asked);
    return refusal === null ? yield* serveSocket(host, { ...asked }, fatalDefects) : answer(refusal);
});

// Listens on 127.0.0.1 until stop(). `tls` ({ key, cert }) makes it wss. With `fatalDefects` a handler that breaks is
// told to the whole connection, without as the end of its request: T3 Code has been seen to do either.
export async function serveT3(host, { port = 0, tls = null, fatalDefects = true } = {}) {
    const server = tls === null ? http.createServer() : https.createServer(tls);
    const sockets = new Set();
    server.on('connection', (socket) => {
        sockets.add(socket);
        socket.on('close', () => sockets.delete(socket));
    });
    const fiber = await new Promise((done, failed) => {
        const running = Effect.runFork(Effect.gen(function* () {
            const listening = yield* NodeHttpServer.make(() => server, { port, host: '127.0.0.1', disablePreemptiveShutdown: true });
            yield* listening.serve(serveRequest(host, fatalDefects));
            done(running);
            yield* Effect.never;
        }).pipe(
            Effect.scoped,
            Effect.provide(NodeHttpServer.layerHttpServices),
            Effect.provideService(References.MinimumLogLevel, 'None'),
        ));
        running.addObserver((exit) => failed(new Error(`the T3 server ended: ${JSON.stringify(exit)}`)));
    });
    return {
        port: server.address().port,
        sockets,
        async stop() {
            sockets.forEach((socket) => socket.destroy());
            await Effect.runPromise(Fiber.interrupt(fiber));
        },
    };
}
