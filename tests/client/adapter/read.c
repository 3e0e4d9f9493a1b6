/* Reading, by the step form, since every read of a driver has a time limit. Pieces are gathered
 * into chunks, each of which ends where the server gave an offset. */
#include "client/adapter/handlers.h"

#include "base/base64.h"
#include "base/utf8.h"

#include <poll.h>
#include <stdlib.h>
#include <time.h>

#define CHUNK_BYTES_MAX ((size_t)256 << 20)

struct reading {
    struct session *session;
    struct stream_reader *reader;
    bool messages;         /* pieces are JSON messages, and a chunk is an array of them */
    bool live;             /* it would go on for ever */
    bool until_up_to_date; /* the driver said so */
    long chunks_max;       /* 0: not said */
    long chunks;           /* so far */
    int64_t deadline_ms;
    struct buf chunk; /* the one at hand */
    struct buf list;  /* what the reply will say of the whole ones */
    char offset[STREAM_OFFSET_BYTES];
    bool up_to_date;
    bool closed;
};

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* always there on Linux */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void add_piece(struct reading *g, const struct stream_piece_view *piece)
{
    if (piece->len == 0) {
        return;
    }
    if (g->messages) {
        buf_append_char(&g->chunk, g->chunk.len == 0 ? '[' : ',');
    }
    buf_append(&g->chunk, (struct slice){piece->data, piece->len});
}

/* As text where it is text, else as base64. */
static void end_chunk(struct reading *g)
{
    struct reply list = {.out = g->list};

    if (g->chunk.len == 0) {
        return;
    }
    if (g->messages) {
        buf_append_char(&g->chunk, ']');
    }
    reply_open(&list, NULL, '{');
    if (utf8_valid_prefix(buf_slice(&g->chunk)) == g->chunk.len) {
        reply_bytes(&list, "data", buf_slice(&g->chunk));
    } else {
        char *text = malloc(BASE64_LEN(g->chunk.len));

        if (text == NULL) {
            abort();
        }
        reply_bytes(&list, "data", (struct slice){text, base64_encode(text, buf_slice(&g->chunk))});
        reply_flag(&list, "binary", true);
        free(text);
    }
    reply_text(&list, "offset", g->offset);
    reply_shut(&list, '}');
    g->list = list.out;
    g->chunks++;
    buf_clear(&g->chunk);
}

/* Waits for more. False when time is up. */
static bool wait_more(struct reading *g)
{
    struct pollfd fd = {.fd = stream_client_fd(g->session->client), .events = POLLIN};
    int64_t left = g->deadline_ms - now_ms();

    if (left <= 0) {
        return false;
    }
    (void)poll(&fd, 1, (int)left); /* whatever it was, the reader is asked again */
    stream_client_step(g->session->client);
    return true;
}

/* Whether this is all that the driver wants. A live read that has no bound ends with the first
 * data behind which nothing is left. */
static bool is_enough(const struct reading *g)
{
    if (g->chunks_max > 0 && g->chunks >= g->chunks_max) {
        return true;
    }
    if (!g->live || !g->up_to_date) {
        return false;
    }
    return g->until_up_to_date || (g->chunks_max == 0 && g->chunks > 0);
}

/* STREAM_OK at the end, however it came; else the error. */
static int gather(struct reading *g, struct stream_error *ret_error)
{
    struct stream_piece_view piece;
    int rc;

    for (;;) {
        rc = stream_reader_step(g->reader, &piece, ret_error);
        if (rc == STREAM_WAIT) {
            if (!wait_more(g)) {
                return STREAM_OK;
            }
            continue;
        }
        if (rc != STREAM_OK) {
            return rc == STREAM_END ? STREAM_OK : rc;
        }
        add_piece(g, &piece);
        if (piece.next_offset != NULL) {
            memcpy(g->offset, piece.next_offset, strlen(piece.next_offset) + 1);
            g->up_to_date = piece.up_to_date != 0;
            g->closed = piece.closed != 0;
            end_chunk(g);
            if (is_enough(g)) {
                return STREAM_OK;
            }
        }
    }
}

static enum stream_live live_of(const struct command *c)
{
    const char *text = command_text(c, "live");

    if (command_flag(c, "live")) {
        return STREAM_AUTO;
    }
    if (text == NULL) {
        return STREAM_CATCH_UP;
    }
    return strcmp(text, "sse") == 0 ? STREAM_SSE : STREAM_LONG_POLL;
}

static void reply_reading(struct reading *g, struct reply *r)
{
    struct stream_info info;

    stream_reader_info(g->reader, &info);
    reply_success(r);
    reply_number(r, "status", info.status);
    reply_open(r, "chunks", '[');
    buf_append(&r->out, buf_slice(&g->list));
    reply_shut(r, ']');
    if (g->offset[0] != '\0') {
        reply_text(r, "offset", g->offset);
    }
    reply_flag(r, "upToDate", g->up_to_date);
    reply_flag(r, "streamClosed", g->closed);
    if (info.cursor[0] != '\0') {
        reply_text(r, "cursor", info.cursor);
    }
    if (info.etag[0] != '\0') {
        reply_open(r, "headers", '{');
        reply_text(r, "etag", info.etag);
        reply_shut(r, '}');
    }
    session_reply_sent(g->session, r);
}

void handle_read(struct session *s, const struct command *c, struct reply *r)
{
    const char *path = command_text(c, "path");
    struct stream_read_options options = {
        .offset = command_text(c, "offset"),
        .live = live_of(c),
        .unit = session_is_json(s, path) ? STREAM_MESSAGES : STREAM_BYTES,
    };
    struct reading g = {
        .session = s,
        .messages = options.unit == STREAM_MESSAGES,
        .live = options.live != STREAM_CATCH_UP,
        .until_up_to_date = command_flag(c, "waitForUpToDate"),
        .chunks_max = (long)command_number(c, "maxChunks", 0),
        .deadline_ms = now_ms() + (int64_t)command_number(c, "timeoutMs", 5000),
    };
    struct stream_error error;
    int code = stream_client_read(s->client, session_name(path), &options, &g.reader, &error);

    buf_init(&g.chunk, CHUNK_BYTES_MAX);
    buf_init(&g.list, CHUNK_BYTES_MAX);
    if (code == STREAM_OK) {
        code = gather(&g, &error);
    }
    if (code == STREAM_OK) {
        reply_reading(&g, r);
    } else {
        reply_error(r, &error, options.offset != NULL);
    }
    stream_reader_free(g.reader);
    buf_finish(&g.chunk);
    buf_finish(&g.list);
}
