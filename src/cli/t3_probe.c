/* arbe t3 probe: the shell first, and when that has come, its first thread, twice: as a stream and
 * as a projection. What servers say in errors may hold data, so only the kind of an error is
 * shown. */
#include "cli/t3_call.h"

#include "arbe/t3_rpc.h"
#include "base/json_value.h"
#include "base/limits.h"
#include "cli/interrupt.h"
#include "cli/shape.h"
#include "t3/wake.h"

#include <stdio.h>

#define SHELL      "orchestration.subscribeShell"
#define THREAD     "orchestration.subscribeThread"
#define PROJECTION "orchestration.getThreadProjection"

#define PRINT_BYTES_MAX (64u * MIB)
#define CLOSE_MS        2000 /* the connection takes a second at most */
#define INDENT          2u
#define NO_TOKEN        "; no token for it is here: arbe t3 login gets one, or ARBE_T3_TOKEN has it"

enum state {
    ASK_NOT,    /* it was not asked for */
    ASK_WAITS,  /* it was, and has not come */
    ASK_CAME,   /* enough of it has come */
    ASK_FAILED, /* `why` */
};

/* One of the three requests. */
struct ask {
    const char *method;
    enum state state;
    uint64_t id;
    size_t chunks;
    size_t items;
    struct shape *shape;
    enum t3_rpc_code why;
};

struct probe {
    struct t3_call *call;
    struct t3_rpc *rpc;
    struct ask shell;
    struct ask thread;
    struct ask projection;
    unsigned version;      /* of orchestration; 0: not told yet */
    uint64_t deadline_ms;  /* of the monotonic clock */
    bool tokenless;        /* it was asked without a token */
    bool closed;           /* the connection has ended */
    struct errmsg failure; /* why it cannot be done; empty: it can */
    int code;              /* of that */
};

/* ------------------------------------------------------------------ failures */

static int code_of(enum t3_rpc_code code)
{
    switch (code) {
    case T3_RPC_ERROR_AUTH:
    case T3_RPC_ERROR_SCOPE:
        return ERR_PERM;
    case T3_RPC_ERROR_VERSION:
    case T3_RPC_ERROR_METHOD:
        return ERR_MISMATCH;
    case T3_RPC_ERROR_NETWORK:
    case T3_RPC_ERROR_TLS:
    case T3_RPC_ERROR_TIMEOUT:
        return ERR_AGAIN;
    default:
        return ERR_FAILED;
    }
}

static void fail(struct probe *p, enum t3_rpc_code code, const char *sentence)
{
    bool quotes = code == T3_RPC_ERROR_DEFECT || code == T3_RPC_ERROR_FAILED ||
                  code == T3_RPC_ERROR_DIED; /* the server */

    if (p->code == 0) {
        p->code = err_set(&p->failure, code_of(code), "%.200s%s",
                          quotes ? "the server broke, or could not do it" : sentence,
                          code == T3_RPC_ERROR_AUTH && p->tokenless ? NO_TOKEN : "");
    }
}

/* ------------------------------------------------------------------ asking */

/* A connection that has ended meanwhile is told by an event, which says why. */
static void asked(struct probe *p, struct ask *ask, const struct t3_rpc_error *error)
{
    ask->state = ASK_WAITS;
    if (error->code != T3_RPC_OK && error->code != T3_RPC_ERROR_CLOSED) {
        fail(p, error->code, error->message);
    }
}

static void subscribe(struct probe *p, struct ask *ask, const char *payload)
{
    struct t3_rpc_error error = {.code = T3_RPC_OK};

    (void)t3_rpc_subscribe(p->rpc, ask->method, payload, &ask->id, &error); /* as error says */
    asked(p, ask, &error);
}

static void call_once(struct probe *p, struct ask *ask, const char *payload)
{
    struct t3_rpc_error error = {.code = T3_RPC_OK};

    (void)t3_rpc_call(p->rpc, ask->method, payload, &ask->id, &error); /* likewise */
    asked(p, ask, &error);
}

/* Asks for a thread; servers of the first version have no projections. */
static void ask_for_thread(struct probe *p, struct slice id)
{
    char memory[T3_ID_BYTES_MAX * 8];
    struct buf payload;

    buf_init_fixed(&payload, memory, sizeof(memory));
    buf_append(&payload, SLICE("{\"threadId\":"));
    buf_append(&payload, id);
    buf_append(&payload, SLICE("}"));
    buf_append_char(&payload, '\0');
    if (!payload.failed) { /* an id that long is none */
        subscribe(p, &p->thread, payload.ptr);
        if (p->version != 1) {
            call_once(p, &p->projection, payload.ptr);
        }
    }
}

/* ------------------------------------------------------------------ what came */

static bool find(struct slice object, const char *name, enum json_kind kind, struct slice *ret)
{
    return json_kind(object) == JSON_OBJECT &&
           json_object_find(object, slice_of(name), ret, NULL) == 1 && json_kind(*ret) == kind;
}

/* The id of the first thread of a list. */
static bool first_id(struct slice snapshot, const char *list, struct slice *ret_id)
{
    struct slice threads;
    struct slice thread;
    struct json_walk walk;

    if (!find(snapshot, list, JSON_ARRAY, &threads)) {
        return false;
    }
    json_walk_begin(&walk, threads);
    return json_walk_element(&walk, &thread) && find(thread, "id", JSON_STRING, ret_id);
}

/* A snapshot of the shell, not one that only adds to it, tells version and threads. */
static void take_snapshot(struct probe *p, struct slice item)
{
    struct slice kind;
    struct slice snapshot;
    struct slice ignored;
    struct slice id;

    if (p->shell.state != ASK_WAITS || !find(item, "kind", JSON_STRING, &kind) ||
        !json_string_equal(kind, SLICE("snapshot")) ||
        !find(item, "snapshot", JSON_OBJECT, &snapshot) ||
        find(item, "resolvedRepositoryIdentityRoots", JSON_ARRAY, &ignored)) {
        return;
    }
    p->shell.state = ASK_CAME;
    p->version = find(snapshot, "schemaVersion", JSON_NUMBER, &ignored) ? 2 : 1;
    if (first_id(snapshot, "threads", &id) || first_id(snapshot, "archivedThreads", &id)) {
        ask_for_thread(p, id);
    }
}

static void take_chunk(struct probe *p, struct ask *ask, struct slice chunk)
{
    struct json_walk walk;
    struct slice item;
    struct t3_rpc_error error;

    ask->chunks++;
    shape_add_each(ask->shape, chunk);
    json_walk_begin(&walk, json_kind(chunk) == JSON_ARRAY ? chunk : SLICE("[]"));
    while (json_walk_element(&walk, &item)) {
        ask->items++;
        if (ask == &p->shell) {
            take_snapshot(p, item);
        }
    }
    if (ask == &p->thread) {
        ask->state = ASK_CAME;
    }
    /* What has been closed meanwhile is told by an event. */
    (void)t3_rpc_ack(p->rpc, ask->id, &error);
}

static struct ask *ask_of(struct probe *p, uint64_t id)
{
    struct ask *const asks[] = {&p->shell, &p->thread, &p->projection};

    for (size_t i = 0; i < ARRAY_COUNT(asks); i++) {
        if (id != 0 && asks[i]->id == id) {
            return asks[i];
        }
    }
    return NULL;
}

/* The shell is needed; a thread may have gone meanwhile. */
static void take_error(struct probe *p, struct ask *ask, const struct t3_rpc_error *error)
{
    char sentence[160];

    ask->state = ASK_FAILED;
    ask->why = error->code;
    if (ask == &p->shell) {
        (void)snprintf(sentence, sizeof(sentence), "%s failed: %s", ask->method,
                       error->code == T3_RPC_ERROR_SCOPE    ? "the token may not read"
                       : error->code == T3_RPC_ERROR_METHOD ? "the server does not know it"
                       : error->code == T3_RPC_ERROR_CLOSED ? "the server ended it"
                                                            : t3_rpc_code_name(error->code));
        fail(p, error->code, sentence);
    }
}

/* A stream that ends before enough of it came has failed, too. */
static void take_done(struct probe *p, struct ask *ask, struct slice json)
{
    if (ask == &p->projection) {
        shape_add(ask->shape, json);
        ask->state = ASK_CAME;
    } else if (ask->state == ASK_WAITS) {
        take_error(p, ask, &(const struct t3_rpc_error){.code = T3_RPC_ERROR_CLOSED});
    }
}

static void take_event(struct probe *p, const struct t3_rpc_event *event)
{
    struct ask *ask = ask_of(p, event->id);
    struct slice json = {"null", 4};

    if (event->json != NULL &&
        json_text_read((struct slice){event->json, event->len}, &json, NULL) != 0) {
        json = SLICE("null"); /* the connection has read it already */
    }
    switch (event->kind) {
    case T3_RPC_EVENT_OPEN:
        break;
    case T3_RPC_EVENT_CHUNK:
        if (ask != NULL) {
            take_chunk(p, ask, json);
        }
        break;
    case T3_RPC_EVENT_DONE:
        if (ask != NULL) {
            take_done(p, ask, json);
        }
        break;
    case T3_RPC_EVENT_ERROR:
        if (ask != NULL) {
            take_error(p, ask, &event->error);
        }
        break;
    case T3_RPC_EVENT_CLOSED:
        p->closed = true;
        fail(p, event->error.code, event->error.message);
        break;
    }
}

static bool waits(const struct probe *p)
{
    return p->code == 0 && !p->closed &&
           (p->shell.state == ASK_WAITS || p->thread.state == ASK_WAITS ||
            p->projection.state == ASK_WAITS);
}

/* Takes events while there is something to wait for. */
static void run(struct probe *p)
{
    struct t3_rpc_event event;

    while (waits(p) && interrupt_signal() == 0) {
        uint64_t now = t3_now_ms();

        if (t3_rpc_next(p->rpc, 0, &event) == 1) {
            take_event(p, &event);
        } else if (now >= p->deadline_ms) {
            fail(p, T3_RPC_ERROR_TIMEOUT,
                 "the server did not tell all in time; --timeout gives "
                 "it longer");
        } else {
            struct pollfd fd = {.fd = t3_rpc_fd(p->rpc), .events = POLLIN};

            (void)interrupt_poll(&fd, 1, (int)(p->deadline_ms - now)); /* the loop looks again */
        }
    }
}

/* Unsubscribes and takes leave; what still comes is not looked at. */
static void take_leave(struct probe *p)
{
    struct t3_rpc_event event = {.kind = T3_RPC_EVENT_OPEN};
    uint64_t end = t3_now_ms() + CLOSE_MS;
    uint64_t now;

    if (p->closed) {
        return;
    }
    t3_rpc_interrupt(p->rpc, p->shell.id);
    t3_rpc_interrupt(p->rpc, p->thread.id);
    t3_rpc_close(p->rpc);
    while (event.kind != T3_RPC_EVENT_CLOSED && (now = t3_now_ms()) < end &&
           t3_rpc_next(p->rpc, (int)(end - now), &event) == 1) {
    }
}

/* ------------------------------------------------------------------ telling */

/* What is printed lacks something that came. */
static void fail_memory(struct probe *p)
{
    fail(p, T3_RPC_ERROR_MEMORY, err_text(ERR_NOMEM));
}

static void print_text(struct probe *p, const struct ask *ask, const char *of_what)
{
    struct out *o = &p->call->out;
    struct buf text;

    if (ask->state == ASK_NOT) {
        return;
    }
    out_format(o, "%s%s%s", out_bold(o), ask->method, out_plain(o));
    if (ask->chunks > 0) {
        out_format(o, "%s: %zu chunk%s, %zu item%s\n", of_what, ask->chunks,
                   ask->chunks == 1 ? "" : "s", ask->items, ask->items == 1 ? "" : "s");
    } else if (ask->state == ASK_FAILED) {
        out_format(o, "%s: failed (%s)\n", of_what, t3_rpc_code_name(ask->why));
    } else {
        out_format(o, "%s%s\n", of_what, ask->state == ASK_WAITS ? ": nothing came" : "");
    }
    if (ask->chunks > 0 || ask->state == ASK_CAME) {
        buf_init(&text, PRINT_BYTES_MAX);
        buf_append_format(&text, "%*s", (int)INDENT, "");
        shape_print(ask->shape, INDENT, &text);
        buf_append_char(&text, '\n');
        if (text.failed) {
            fail_memory(p);
        }
        out_add(o, text.failed ? SLICE("  ...\n") : buf_slice(&text));
        buf_finish(&text);
    }
    out_end_message(o);
}

static void print_member(struct probe *p, const char *name, const struct ask *ask)
{
    struct out *o = &p->call->out;
    struct buf text;

    out_format(o, ",\"%s\":", name);
    if (ask->state == ASK_NOT) {
        out_add(o, SLICE("null"));
        return;
    }
    buf_init(&text, PRINT_BYTES_MAX);
    shape_json(ask->shape, &text);
    out_format(o, "{\"method\":\"%s\",\"chunks\":%zu,\"items\":%zu,\"error\":", ask->method,
               ask->chunks, ask->items);
    if (ask->state == ASK_FAILED) {
        out_format(o, "\"%s\"", t3_rpc_code_name(ask->why));
    } else {
        out_add(o, SLICE("null"));
    }
    if (text.failed) {
        fail_memory(p);
    }
    out_add(o, SLICE(",\"shape\":"));
    out_add(o, text.failed ? SLICE("null") : buf_slice(&text));
    out_add(o, SLICE("}"));
    buf_finish(&text);
}

static void print(struct probe *p)
{
    struct out *o = &p->call->out;

    if (p->call->set.json) {
        out_format(o, "{\"orchestration\":%s",
                   p->version == 2   ? "2"
                   : p->version == 1 ? "1"
                                     : "null");
        print_member(p, "shell", &p->shell);
        print_member(p, "thread", &p->thread);
        print_member(p, "projection", &p->projection);
        out_add(o, SLICE(",\"wrote\":false}\n"));
        out_end_message(o);
        return;
    }
    print_text(p, &p->shell, "");
    print_text(p, &p->thread, ", of the first thread");
    print_text(p, &p->projection, ", of that thread");
    if (p->version == 1) {
        t3_call_tell(p->call, "this server speaks the first version of orchestration (V1), which "
                              "arbe board does not read: a newer T3 Code does better");
    }
    t3_call_tell(p->call, "subscribed to " SHELL "%s%s; unsubscribed; nothing was written",
                 p->thread.id != 0 ? " and " THREAD : "",
                 p->projection.id != 0 ? ", called " PROJECTION : "");
}

/* ------------------------------------------------------------------ the command */

static int connect_to(struct probe *p, const struct t3_host *host, struct errmsg *msg)
{
    char token[T3_READER_TOKEN_BYTES];
    struct t3_rpc_options options;
    struct t3_rpc_error error;
    int code = t3_host_token(host, token, msg);

    if (code == 0) {
        t3_rpc_options_init(&options);
        p->tokenless = token[0] == '\0';
        options.token = p->tokenless ? NULL : token;
        options.ca_file = p->call->set.ca_file != NULL ? p->call->set.ca_file : host->ca_file;
        options.connect_timeout_ms = (int)p->call->set.timeout_ms;
        if (t3_rpc_connect(host->url, &options, &p->rpc, &error) != T3_RPC_OK) {
            code = err_set(msg, code_of(error.code), "%s", error.message);
        }
    }
    explicit_bzero(token, sizeof(token));
    return code;
}

static bool make_shapes(struct probe *p)
{
    p->shell.shape = shape_create();
    p->thread.shape = shape_create();
    p->projection.shape = shape_create();
    return p->shell.shape != NULL && p->thread.shape != NULL && p->projection.shape != NULL;
}

static void finish(struct probe *p)
{
    t3_rpc_free(p->rpc);
    shape_destroy(p->shell.shape);
    shape_destroy(p->thread.shape);
    shape_destroy(p->projection.shape);
}

int t3_probe(struct t3_call *call)
{
    struct probe p = {
        .call = call,
        .shell = {.method = SHELL},
        .thread = {.method = THREAD},
        .projection = {.method = PROJECTION},
        .deadline_ms = t3_now_ms() + call->set.timeout_ms,
    };
    struct t3_hosts hosts = {.list = NULL};
    struct errmsg msg = {{0}};
    int code = make_shapes(&p) ? 0 : err_set(&msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));

    const struct t3_hosts_flags flags = {.file = call->set.hosts_file,
                                         .allow_http = call->set.allow_http};

    code = code == 0 ? t3_hosts_load_one(call->operands[0], &flags, &hosts, &msg) : code;
    code = code == 0 ? connect_to(&p, &hosts.list[0], &msg) : code;
    if (code == 0) {
        subscribe(&p, &p.shell, "{}");
        run(&p);
        take_leave(&p);
        if (p.shell.chunks > 0 && interrupt_signal() == 0) {
            print(&p); /* also where not all came */
        }
        code = p.code;
        msg = p.failure;
    }
    t3_hosts_finish(&hosts);
    finish(&p);
    return code == 0 && interrupt_signal() == 0 ? 0 : t3_call_fail(call, code, &msg);
}
