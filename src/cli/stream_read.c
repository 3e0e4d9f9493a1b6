/* arbe stream read, tail, follow: what a stream holds, on stdout.
 *
 * The happy path: HEAD tells what kind of stream it is; a reader brings pieces; each is shown; what
 * is shown is written out whenever nothing more is there yet. It ends at the tail, at the end of a
 * closed stream, after --count messages, at a signal, or when nobody reads stdout any more. */
#include "cli/stream_call.h"

#include "base/base64.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/interrupt.h"

#include <errno.h>
#include <stdlib.h>

struct reading {
    struct stream_call *call;
    struct stream_peer peer;
    struct stream_reader *reader;
    bool json;     /* the stream's messages are JSON */
    uint64_t left; /* messages or lines to show; UINT64_MAX: no end */
};

static void add_base64(struct out *o, struct slice bytes)
{
    char text[BASE64_LEN(3 * KIB)];

    while (bytes.len > 0) {
        size_t run = bytes.len < 3 * KIB ? bytes.len : 3 * KIB;

        out_add(o, (struct slice){text, base64_encode(text, (struct slice){bytes.ptr, run})});
        bytes = (struct slice){bytes.ptr + run, bytes.len - run};
    }
}

/* An object with what the piece has: data, text or base64; next_offset; up_to_date; closed. */
static void show_object(struct reading *r, const struct stream_piece_view *piece)
{
    struct out *o = &r->call->out;
    struct slice data = {piece->data, piece->len};
    const char *separator = "{";

    if (piece->len > 0) {
        bool text = !r->json && utf8_valid(data);

        out_format(o, "{\"%s\":", r->json ? "data" : text ? "text" : "base64");
        if (r->json) {
            out_add_json(o, data);
        } else if (text) {
            out_add_string(o, data);
        } else {
            out_add(o, SLICE("\""));
            add_base64(o, data);
            out_add(o, SLICE("\""));
        }
        separator = ",";
    }
    if (piece->next_offset != NULL) {
        out_format(o, "%s\"next_offset\":", separator);
        out_add_string(o, slice_of(piece->next_offset));
        separator = ",";
    }
    if (piece->up_to_date) {
        out_format(o, "%s\"up_to_date\":true", separator);
        separator = ",";
    }
    if (piece->closed) {
        out_format(o, "%s\"closed\":true", separator);
    }
    out_add(o, SLICE("}\n"));
    out_end_message(o);
}

/* Cuts bytes behind the last line that is wanted. What the piece tells of the place behind them
 * would then lead past bytes that nobody was shown. */
static void cut_lines(struct reading *r, struct stream_piece_view *piece)
{
    const char *at = piece->data;
    size_t rest = piece->len;

    while (r->left > 0 && rest > 0) {
        const char *end = memchr(at, '\n', rest);

        if (end == NULL) {
            return;
        }
        rest -= (size_t)(end + 1 - at);
        at = end + 1;
        r->left--;
    }
    if (rest > 0) {
        piece->len -= rest;
        piece->next_offset = NULL;
        piece->up_to_date = 0;
        piece->closed = 0;
    }
}

static void show(struct reading *r, struct stream_piece_view *piece)
{
    struct out *o = &r->call->out;

    if (r->left != UINT64_MAX && piece->len > 0) {
        if (r->json) {
            r->left--;
        } else {
            cut_lines(r, piece);
        }
    }
    if (r->call->set.json) {
        if (piece->len > 0 || piece->up_to_date || piece->closed) {
            show_object(r, piece);
        }
    } else if (piece->len > 0) {
        if (r->json) {
            out_add_json(o, (struct slice){piece->data, piece->len});
            out_add(o, SLICE("\n"));
        } else {
            out_add(o, (struct slice){piece->data, piece->len});
        }
        out_end_message(o);
    }
}

static int pump(struct reading *r)
{
    struct out *o = &r->call->out;
    struct stream_error error = {0};

    while (r->left > 0 && !out_is_over(o)) {
        struct stream_piece_view piece = {0};
        int rc = stream_reader_step(r->reader, &piece, &error);

        if (rc == STREAM_OK) {
            show(r, &piece);
        } else if (rc == STREAM_WAIT) {
            out_flush(o);
            stream_call_wait(&r->peer, o);
        } else if (rc == STREAM_END) {
            return COMMAND_GOOD;
        } else {
            return stream_call_fail(r->call, r->peer.site.name, &error);
        }
    }
    return interrupt_signal() == 0 ? COMMAND_GOOD : COMMAND_INTERRUPTED + interrupt_signal();
}

/* A first request, which fails soon when there is no server; a live reader does not. */
static int look(struct stream_call *call, struct reading *r)
{
    struct stream_info info = {0};
    struct stream_error error = {0};
    int code = stream_call_open(call, call->operands[0], STREAM_CALL_RETRIES, &r->peer);

    if (code != 0) {
        return code;
    }
    if (stream_client_head(r->peer.client, r->peer.site.name, &info, &error) != STREAM_OK) {
        code = stream_call_fail(call, r->peer.site.name, &error);
    }
    r->json = stream_call_is_json(info.content_type);
    return code;
}

static int run(struct stream_call *call, const char *from, enum stream_live live)
{
    struct reading r = {.call = call, .left = call->set.count ? call->set.count : UINT64_MAX};
    const struct stream_read_options options = {
        .offset = call->set.from != NULL ? call->set.from : from,
        .live = live,
        .unit = STREAM_MESSAGES,
    };
    struct stream_read_options bytes = options;
    struct stream_error error = {0};
    int code = look(call, &r);

    bytes.unit = STREAM_BYTES;
    if (code == 0 && live != STREAM_CATCH_UP) {
        code = stream_call_reopen(call, STREAM_RETRY_FOREVER, &r.peer);
    }
    if (code == 0 && stream_client_read(r.peer.client, r.peer.site.name, r.json ? &options : &bytes,
                                        &r.reader, &error) != STREAM_OK) {
        code = stream_call_fail(call, r.peer.site.name, &error);
    }
    if (code == 0) {
        call->out.lines = r.json || call->set.json;
        if (live != STREAM_CATCH_UP) {
            stream_call_tell(call, "following \"%s\" from %s; Ctrl-C ends it", r.peer.site.name,
                             strcmp(options.offset, "-1") == 0 ? "its beginning" : options.offset);
        }
        code = pump(&r);
    }
    stream_reader_free(r.reader);
    stream_call_close(&r.peer);
    return code;
}

int stream_call_read(struct stream_call *call)
{
    return run(call, "-1", STREAM_CATCH_UP);
}

static int run_live(struct stream_call *call, const char *from)
{
    if (call->set.sse && call->set.long_poll) {
        return stream_call_usage(call, "--sse and --long-poll exclude each other");
    }
    return run(call, from,
               call->set.sse         ? STREAM_SSE
               : call->set.long_poll ? STREAM_LONG_POLL
                                     : STREAM_AUTO);
}

int stream_call_tail(struct stream_call *call)
{
    return run_live(call, "now");
}

int stream_call_follow(struct stream_call *call)
{
    return run_live(call, "-1");
}
