/* build/client-adapter: lets a driver in another language try the client library. It takes commands
 * from its input, one JSON object a line, and answers each with one line, in order; the protocol is
 * that of the public client suite of Durable Streams (protocol.ts there), and docs/HACKING.md tells
 * how to run it. Only the library's public headers are used for streams.
 *
 * One process serves a whole run. "init" begins anew with a server. */
#include "client/adapter/handlers.h"

#include "base/attr.h"

#include <stdio.h>
#include <stdlib.h>

#define LINE_BYTES_MAX ((size_t)256 << 20)

/* Each of them is a thing that the library does. */
static const char *const features[] = {"batching",     "sse",        "longPoll",
                                       "auto",         "streaming",  "dynamicHeaders",
                                       "retryOptions", "batchItems", "strictZeroValidation"};

static void handle_init(struct session *s, const struct command *c, struct reply *r)
{
    const char *url = command_text(c, "serverUrl");
    struct stream_error error;

    if (url == NULL) {
        reply_refusal(r, "INVALID_ARGUMENT", "init has a serverUrl");
        return;
    }
    if (session_open(s, url, (int)command_number(c, "timeoutMs", 0), &error) != STREAM_OK) {
        reply_error(r, &error, false);
        return;
    }
    reply_success(r);
    reply_text(r, "clientName", "libarbe");
    reply_text(r, "clientVersion", stream_client_version());
    reply_open(r, "features", '{');
    for (size_t i = 0; i < ARRAY_COUNT(features); i++) {
        reply_flag(r, features[i], true);
    }
    reply_shut(r, '}');
}

static void set_dynamic(struct session *s, const struct command *c, struct reply *r, bool is_param)
{
    const char *name = command_text(c, "name");
    const char *kind = command_text(c, "valueType");

    if (name == NULL || kind == NULL) {
        reply_refusal(r, "INVALID_ARGUMENT", "a dynamic value has a name and a valueType");
        return;
    }
    session_set_dynamic(s, name, is_param, kind, command_text(c, "initialValue"));
    reply_success(r);
}

static void handle_set_header(struct session *s, const struct command *c, struct reply *r)
{
    set_dynamic(s, c, r, false);
}

static void handle_set_param(struct session *s, const struct command *c, struct reply *r)
{
    set_dynamic(s, c, r, true);
}

static void handle_clear(struct session *s, const struct command *c, struct reply *r)
{
    (void)c; /* it has no members */
    session_clear_dynamics(s);
    reply_success(r);
}

static void handle_shutdown(struct session *s, const struct command *c, struct reply *r)
{
    (void)s; /* main ends it */
    (void)c;
    reply_success(r);
}

static const struct {
    const char *type;
    handler handle;
    bool has_path; /* needs a client and a path */
} commands[] = {
    {"init", handle_init, false},
    {"create", handle_create, true},
    {"connect", handle_connect, true},
    {"append", handle_append, true},
    {"read", handle_read, true},
    {"head", handle_head, true},
    {"delete", handle_delete, true},
    {"close", handle_close, true},
    {"idempotent-append", handle_produce, true},
    {"idempotent-append-batch", handle_produce_batch, true},
    {"idempotent-close", handle_produce_close, true},
    {"idempotent-detach", handle_detach, true},
    {"set-dynamic-header", handle_set_header, false},
    {"set-dynamic-param", handle_set_param, false},
    {"clear-dynamic", handle_clear, false},
    {"validate", handle_validate, false},
    {"benchmark", handle_benchmark, false},
    {"shutdown", handle_shutdown, false},
};

static void dispatch(struct session *s, const struct command *c, struct reply *r)
{
    for (size_t i = 0; i < ARRAY_COUNT(commands); i++) {
        if (strcmp(commands[i].type, r->type) != 0) {
            continue;
        }
        bool is_first = commands[i].handle == handle_init || commands[i].handle == handle_shutdown;

        if (s->client == NULL && !is_first) {
            reply_refusal(r, "INVALID_ARGUMENT", "the first command is init");
        } else if (commands[i].has_path && command_text(c, "path") == NULL) {
            reply_refusal(r, "INVALID_ARGUMENT", "the command has a path");
        } else {
            session_set_fields(s, c);
            commands[i].handle(s, c, r);
        }
        return;
    }
    reply_refusal(r, "NOT_SUPPORTED", "there is no such command");
}

/* False after the last command, or when nobody listens any more. */
static bool serve(struct session *s, struct slice line, struct reply *r)
{
    struct arena arena;
    struct command c;
    bool goes_on;

    arena_init(&arena, LINE_BYTES_MAX);
    r->type = "unknown";
    if (!command_read(&c, line, &arena)) {
        reply_refusal(r, "PARSE_ERROR", "the command is not a JSON object");
    } else {
        const char *type = command_text(&c, "type");

        r->type = type != NULL ? type : r->type;
        dispatch(s, &c, r);
    }
    goes_on = reply_send(r) && strcmp(r->type, "shutdown") != 0;
    session_clear_fields(s);
    arena_finish(&arena);
    return goes_on;
}

int main(void)
{
    struct session session;
    struct reply reply = {.type = ""};
    char *line = NULL;
    size_t size = 0;
    ssize_t len;

    session_init(&session);
    buf_init(&reply.out, LINE_BYTES_MAX);
    while ((len = getline(&line, &size, stdin)) > 0) {
        struct slice text = slice_trim((struct slice){line, (size_t)len - (line[len - 1] == '\n')});

        if (text.len > 0 && !serve(&session, text, &reply)) {
            break;
        }
    }
    free(line);
    buf_finish(&reply.out);
    session_finish(&session);
    return 0;
}
