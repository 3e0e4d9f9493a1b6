/* Operations that the driver wants timed. */
#include "client/adapter/handlers.h"

#include <stdlib.h>
#include <time.h>

struct measured {
    size_t bytes;
    size_t messages;
};

static long long now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* always there on Linux */
    return (long long)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* As many bytes as the driver asks for, which are JSON as well; the command's. */
static struct slice payload(const struct command *op)
{
    size_t size = (size_t)command_number(op, "size", 1);
    char *bytes = arena_try_alloc(op->arena, size);

    if (bytes == NULL) {
        abort();
    }
    memset(bytes, '4', size);
    return (struct slice){bytes, size};
}

static int create(struct session *s, const struct command *op, struct stream_error *ret_error)
{
    struct stream_create_options options = {.content_type = command_text(op, "contentType")};

    return stream_client_create(s->client, session_name(command_text(op, "path")), &options, NULL,
                                ret_error);
}

static int append(struct session *s, const struct command *op, struct measured *m,
                  struct stream_error *ret_error)
{
    struct slice data = payload(op);

    m->bytes += data.len;
    return stream_client_append(s->client, session_name(command_text(op, "path")), data.ptr,
                                data.len, NULL, NULL, ret_error);
}

/* Reads to the tail, or, live, up to the first data. */
static int read_stream(struct session *s, const struct command *op,
                       const struct stream_read_options *options, struct measured *m,
                       struct stream_error *ret_error)
{
    struct stream_piece_view piece;
    struct stream_reader *reader = NULL;
    int rc = stream_client_read(s->client, session_name(command_text(op, "path")), options, &reader,
                                ret_error);

    while (rc == STREAM_OK) {
        rc = stream_reader_next(reader, &piece, ret_error);
        if (rc == STREAM_OK) {
            m->bytes += piece.len;
            m->messages += piece.len > 0;
            if (piece.len > 0 && options->live != STREAM_CATCH_UP) {
                break;
            }
        }
    }
    stream_reader_free(reader);
    return rc == STREAM_END ? STREAM_OK : rc;
}

static int round_trip(struct session *s, const struct command *op, struct measured *m,
                      struct stream_error *ret_error)
{
    const char *live = command_text(op, "live");
    struct stream_read_options options = {
        .live = live != NULL && strcmp(live, "sse") == 0 ? STREAM_SSE : STREAM_LONG_POLL};
    int code = create(s, op, ret_error);

    code = code == STREAM_OK ? append(s, op, m, ret_error) : code;
    return code == STREAM_OK ? read_stream(s, op, &options, m, ret_error) : code;
}

static int produce(struct session *s, const struct command *op, struct measured *m,
                   struct stream_error *ret_error)
{
    size_t count = (size_t)command_number(op, "count", 1);
    struct slice data = payload(op);
    struct stream_producer_options options;
    struct stream_producer *producer = NULL;
    struct stream_error ignored;

    stream_producer_options_init(&options);
    options.auto_claim = 1;
    (void)create(s, op, &ignored); /* it may be there with another type */
    int code = stream_producer_new(s->client, session_name(command_text(op, "path")), "benchmark",
                                   &options, &producer, ret_error);

    for (size_t i = 0; code == STREAM_OK && i < count; i++) {
        code = stream_producer_append(producer, data.ptr, data.len, ret_error);
    }
    code = code == STREAM_OK ? stream_producer_flush(producer, NULL, ret_error) : code;
    stream_producer_free(producer);
    m->bytes = count * data.len;
    m->messages = count;
    return code;
}

static int run(struct session *s, const struct command *op, const char *what, struct measured *m,
               struct stream_error *ret_error)
{
    struct stream_read_options options = {.offset = command_text(op, "offset")};

    if (strcmp(what, "create") == 0) {
        return create(s, op, ret_error);
    }
    if (strcmp(what, "append") == 0) {
        return append(s, op, m, ret_error);
    }
    if (strcmp(what, "roundtrip") == 0) {
        return round_trip(s, op, m, ret_error);
    }
    if (strcmp(what, "throughput_append") == 0) {
        return produce(s, op, m, ret_error);
    }
    options.unit = strcmp(what, "throughput_read") == 0 ? STREAM_MESSAGES : STREAM_BYTES;
    return read_stream(s, op, &options, m, ret_error);
}

void handle_benchmark(struct session *s, const struct command *c, struct reply *r)
{
    struct command op;
    struct measured m = {0, 0};
    struct stream_error error;
    const char *what = command_object(c, "operation", &op) ? command_text(&op, "op") : NULL;
    const char *id = command_text(c, "iterationId");
    char digits[32];

    if (what == NULL || id == NULL) {
        reply_refusal(r, "NOT_SUPPORTED", "a benchmark has an operation and an iterationId");
        return;
    }
    long long begun = now_ns();
    int code = run(s, &op, what, &m, &error);
    long long took = now_ns() - begun;

    if (code != STREAM_OK) {
        reply_error(r, &error, false);
        return;
    }
    struct buf text;

    buf_init_fixed(&text, digits, sizeof(digits));
    buf_append_u64(&text, (uint64_t)took);
    reply_success(r);
    reply_text(r, "iterationId", id);
    reply_bytes(r, "durationNs", buf_slice(&text));
    reply_open(r, "metrics", '{');
    reply_number(r, "bytesTransferred", (long long)m.bytes);
    reply_number(r, "messagesProcessed", (long long)m.messages);
    reply_shut(r, '}');
}
