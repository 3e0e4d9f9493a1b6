/* What the commands of `arbe stream` share. */
#include "cli/stream_call.h"

#include "base/json.h"
#include "base/limits.h"
#include "base/media_type.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A line on stderr: for people, or an object for machines. */
static void say(const struct stream_call *call, const char *code, const char *sentence)
{
    struct buf line;

    buf_init(&line, 64 * KIB);
    if (call->set.json) {
        buf_append_format(&line, "{\"error\":\"%s\",\"message\":", code);
        json_append_string(&line, slice_of(sentence));
        buf_append(&line, SLICE("}\n"));
    } else {
        buf_append_format(&line, "arbe stream %s: %s\n", call->name, sentence);
    }
    (void)fwrite(line.ptr, 1, line.len, stderr);
    buf_finish(&line);
}

int stream_call_usage(const struct stream_call *call, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    say(call, "USAGE", text);
    return COMMAND_USAGE;
}

int stream_call_cannot(const struct stream_call *call, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    say(call, "FAILED", text);
    return COMMAND_FAILED;
}

int stream_call_conflict(const struct stream_call *call, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    say(call, "CONFLICT", text);
    return COMMAND_CONFLICT;
}

void stream_call_tell(const struct stream_call *call, const char *format, ...)
{
    va_list args;

    if (call->set.json || isatty(STDERR_FILENO) != 1) {
        return;
    }
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
}

int stream_call_exit(const struct stream_error *error)
{
    return exit_code_of(error->code);
}

static void say_error_json(const char *name, const struct stream_error *error)
{
    struct buf line;

    buf_init(&line, 64 * KIB);
    buf_append_format(&line, "{\"error\":\"%s\",\"stream\":", stream_error_name(error->code));
    json_append_string(&line, slice_of(name));
    buf_append_format(&line, ",\"status\":%d,\"outcome_unknown\":%s,\"message\":", error->status,
                      error->outcome_unknown ? "true" : "false");
    json_append_string(&line, slice_of(error->message));
    buf_append(&line, SLICE("}\n"));
    (void)fwrite(line.ptr, 1, line.len, stderr);
    buf_finish(&line);
}

int stream_call_fail(const struct stream_call *call, const char *name,
                     const struct stream_error *error)
{
    if (interrupt_signal() == 0) {
        if (call->set.json) {
            say_error_json(name, error);
        } else {
            (void)fprintf(stderr, "arbe stream %s: %s%s\n", call->name, error->message,
                          error->outcome_unknown ? " (it may have taken effect)" : "");
        }
    }
    return stream_call_exit(error);
}

static void abort_client(void *client)
{
    stream_client_abort(client);
}

/* Makes the client for the site. 0, or an exit code. */
static int connect_peer(const struct stream_call *call, int retries, struct stream_peer *peer)
{
    struct stream_client_options options;
    struct stream_error error = {0};

    stream_client_options_init(&options);
    options.bearer = peer->site.secret[0] == '\0' ? NULL : peer->site.secret;
    options.ca_file = peer->site.ca_file[0] == '\0' ? NULL : peer->site.ca_file;
    options.retry.max_retries = call->set.retries == UINT64_MAX ? retries : (int)call->set.retries;
    if (call->set.timeout_ms != 0) {
        options.request_timeout_ms = (int)call->set.timeout_ms;
    }
    if (call->set.connections != 0) {
        options.max_connections = (int)call->set.connections + 2;
    }
    if (stream_client_new(peer->site.url, &options, &peer->client, &error) != STREAM_OK) {
        return stream_call_fail(call, peer->site.url, &error);
    }
    interrupt_watch(abort_client, peer->client);
    return 0;
}

int stream_call_open_site(const struct stream_call *call, const struct site_wish *wish, int retries,
                          struct stream_peer *ret_peer)
{
    struct stream_peer peer = {.client = NULL};
    struct errmsg msg = {{0}};
    int code = site_choose(wish, &peer.site, &msg);

    if (code == ERR_INVALID) {
        return stream_call_usage(call, "%s", msg.text);
    }
    if (code != 0) {
        return stream_call_cannot(call, "%s", msg.text);
    }
    code = connect_peer(call, retries, &peer);
    if (code == 0) {
        *ret_peer = peer;
    }
    return code;
}

int stream_call_reopen(const struct stream_call *call, int retries, struct stream_peer *peer)
{
    interrupt_forget(peer->client);
    stream_client_free(peer->client);
    peer->client = NULL;
    return connect_peer(call, retries, peer);
}

int stream_call_open(const struct stream_call *call, const char *stream, int retries,
                     struct stream_peer *ret_peer)
{
    const struct site_wish wish = {
        .stream = stream,
        .url = call->set.url,
        .profile = call->set.profile,
        .secret_file = call->set.secret_file,
        .ca_file = call->set.ca_file,
    };

    return stream_call_open_site(call, &wish, retries, ret_peer);
}

void stream_call_close(struct stream_peer *peer)
{
    interrupt_forget(peer->client);
    stream_client_free(peer->client);
    *peer = (struct stream_peer){.client = NULL};
}

void stream_call_wait(const struct stream_peer *peer, struct out *out)
{
    struct pollfd fds[] = {
        {.fd = stream_client_fd(peer->client), .events = POLLIN},
        {.fd = out == NULL ? -1 : STDOUT_FILENO}, /* errors are always told */
    };

    if (interrupt_poll(fds, 2, -1) > 0 && (fds[1].revents & POLLERR) != 0) {
        out->error = EPIPE;
    }
}

const char *stream_call_type(const char *type)
{
    static const char *const shorts[][2] = {
        {"json", "application/json"},
        {"text", "text/plain"},
        {"bytes", "application/octet-stream"},
    };

    for (size_t i = 0; type != NULL && i < ARRAY_COUNT(shorts); i++) {
        if (strcmp(type, shorts[i][0]) == 0) {
            return shorts[i][1];
        }
    }
    return type;
}

bool stream_call_is_json(const char *content_type)
{
    return media_type_is_json(slice_of(content_type));
}

/* Appends ,"name":"text" where there is a text. */
static void add_member(struct out *o, const char *name, const char *text)
{
    if (text[0] != '\0') {
        out_format(o, ",\"%s\":", name);
        out_add_string(o, slice_of(text));
    }
}

static void print_json(struct out *o, const char *name, const struct stream_info *info)
{
    out_add(o, SLICE("{\"stream\":"));
    out_add_string(o, slice_of(name));
    add_member(o, "content_type", info->content_type);
    add_member(o, "next_offset", info->next_offset);
    out_format(o, ",\"closed\":%s", info->closed ? "true" : "false");
    if (info->status == 201 || info->created) {
        out_format(o, ",\"created\":%s", info->created ? "true" : "false");
    }
    if (info->duplicate) {
        out_add(o, SLICE(",\"duplicate\":true"));
    }
    if (info->ttl_seconds > 0) {
        out_format(o, ",\"ttl_seconds\":%lld", (long long)info->ttl_seconds);
    }
    add_member(o, "expires_at", info->expires_at);
    add_member(o, "etag", info->etag);
    out_add(o, SLICE("}\n"));
}

static void print_line(struct out *o, const char *name, const char *text)
{
    if (text[0] != '\0') {
        out_format(o, "%s%s:%s ", out_dim(o), name, out_plain(o));
        out_add_shown(o, slice_of(text));
        out_add(o, SLICE("\n"));
    }
}

void stream_call_print(struct stream_call *call, const char *name, const struct stream_info *info)
{
    struct out *o = &call->out;

    if (call->set.json) {
        print_json(o, name, info);
    } else {
        print_line(o, "stream", name);
        print_line(o, "content-type", info->content_type);
        print_line(o, "next-offset", info->next_offset);
        print_line(o, "closed", info->closed ? "yes" : "no");
        if (info->ttl_seconds > 0) {
            out_format(o, "%sttl:%s %llds\n", out_dim(o), out_plain(o),
                       (long long)info->ttl_seconds);
        }
        print_line(o, "expires-at", info->expires_at);
        print_line(o, "etag", info->etag);
    }
    out_end_message(o);
}

ssize_t stream_call_read_some(char *out, size_t size)
{
    struct pollfd stdin_fd = {.fd = STDIN_FILENO, .events = POLLIN};

    if (interrupt_poll(&stdin_fd, 1, -1) == 0) {
        errno = EINTR;
        return -1;
    }
    return read(STDIN_FILENO, out, size);
}

int stream_call_read_stdin(const struct stream_call *call, char **ret_data, size_t *ret_len)
{
    const size_t max = STDIN_BYTES_MAX; /* and one byte that is too much */
    struct buf data;
    int code = 0;

    buf_init(&data, max + 1);
    while (code == 0) {
        size_t room = data.max - data.len;
        char *place = buf_reserve(&data, room < 64 * KIB ? room : 64 * KIB);
        ssize_t got = place == NULL ? 0 : stream_call_read_some(place, data.cap - data.len);

        if (got > 0) {
            buf_advance(&data, (size_t)got);
        }
        if (place == NULL) {
            code = stream_call_cannot(call, "%s", err_text(ERR_NOMEM));
        } else if (data.len > max) {
            code = stream_call_cannot(call,
                                      "a message from stdin has at most %u MiB; --lines makes many "
                                      "of one",
                                      STDIN_BYTES_MAX / MIB);
        } else if (interrupt_signal() != 0) {
            code = COMMAND_INTERRUPTED + interrupt_signal();
        } else if (got == 0) {
            break;
        } else if (got < 0 && errno != EINTR) {
            code = stream_call_cannot(call, "cannot read stdin: %s", strerror(errno));
        }
    }
    if (code != 0) {
        buf_finish(&data);
        return code;
    }
    *ret_data = data.ptr;
    *ret_len = data.len;
    return 0;
}
