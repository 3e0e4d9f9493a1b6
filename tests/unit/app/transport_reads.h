/* The part of the shared list that is about readers and producers. See transport_rig.h. */
#ifndef ARBE_TESTS_UNIT_APP_TRANSPORT_READS_H
#define ARBE_TESTS_UNIT_APP_TRANSPORT_READS_H

#include "unit/app/transport_calls.h"

/* What a reader has given so far. */
struct read_so_far {
    char *bytes; /* of the pieces; messages are followed by a line feed */
    size_t len;
    size_t cap;
    size_t pieces; /* that had data */
    bool up_to_date;
    bool closed;
    char next[STREAM_OFFSET_BYTES]; /* the last that was said */
};

static void keep_bytes(struct read_so_far *so_far, const void *data, size_t len)
{
    if (so_far->len + len + 1 > so_far->cap) {
        so_far->cap = 2 * (so_far->len + len + 1);
        so_far->bytes = realloc(so_far->bytes, so_far->cap);
        assert_non_null(so_far->bytes);
    }
    if (len > 0) {
        memcpy(so_far->bytes + so_far->len, data, len);
    }
    so_far->len += len;
    so_far->bytes[so_far->len] = '\0';
}

static void keep_piece(struct read_so_far *so_far, const struct stream_piece_view *piece,
                       bool lines)
{
    keep_bytes(so_far, piece->data, piece->len);
    if (lines && piece->len > 0) {
        keep_bytes(so_far, "\n", 1);
    }
    so_far->pieces += piece->len > 0;
    so_far->up_to_date = piece->up_to_date != 0;
    so_far->closed = piece->closed != 0;
    if (piece->next_offset != NULL) {
        (void)snprintf(so_far->next, sizeof(so_far->next), "%s", piece->next_offset);
    }
}

/* Reads to the end; the code that it ends with. */
static int read_to_end(struct stream_client *client, const char *name,
                       const struct stream_read_options *options, struct read_so_far *so_far,
                       struct stream_error *error)
{
    struct stream_piece_view piece;
    struct stream_reader *reader;
    int code = stream_client_read(client, name, options, &reader, error);

    keep_bytes(so_far, "", 0);
    if (code != STREAM_OK) {
        return code;
    }
    while ((code = stream_reader_next(reader, &piece, error)) == STREAM_OK) {
        keep_piece(so_far, &piece, options != NULL && options->unit == STREAM_MESSAGES);
    }
    stream_reader_free(reader);
    return code;
}

/* A text of `len` bytes that differs from place to place. To be freed. */
static char *make_text(size_t len)
{
    char *text = malloc(len + 1);

    assert_non_null(text);
    for (size_t i = 0; i < len; i++) {
        text[i] = (char)('a' + (i * 7 + i / 1000) % 26);
    }
    text[len] = '\0';
    return text;
}

/* A stream longer than a page comes in several answers; each tells where to go on. */
static void reads_page_by_page(void **state)
{
    const size_t part = 50000;
    const size_t parts = 8;
    struct stream_client *client = rig_client(*state, NULL);
    struct read_so_far all = {0};
    char *text = make_text(part * parts);
    struct stream_error error;
    struct stream_piece_view piece;
    struct stream_reader *reader;
    struct stream_info info;
    size_t read = 0;

    rig_create(client, "pages", "text/plain");
    for (size_t i = 0; i < parts; i++) {
        EXPECT(STREAM_OK,
               stream_client_append(client, "pages", text + i * part, part, NULL, NULL, &error));
    }
    EXPECT(STREAM_END, read_to_end(client, "pages", NULL, &all, &error));
    assert_int_equal(all.len, part * parts);
    assert_memory_equal(all.bytes, text, all.len);
    assert_true(all.up_to_date && !all.closed);
    assert_true(all.pieces > 4);

    /* Half of it, and the rest from where the first reader says. */
    EXPECT(STREAM_OK, stream_client_read(client, "pages", NULL, &reader, &error));
    do {
        EXPECT(STREAM_OK, stream_reader_next(reader, &piece, &error));
        read += piece.len;
    } while (read < part * parts / 2 || piece.next_offset == NULL);
    struct stream_read_options rest = {.offset = piece.next_offset};

    all.len = 0;
    EXPECT(STREAM_END, read_to_end(client, "pages", &rest, &all, &error));
    assert_int_equal(all.len, part * parts - read);
    assert_memory_equal(all.bytes, text + read, all.len);
    stream_reader_info(reader, &info);
    assert_string_equal(info.content_type, "text/plain");
    stream_reader_free(reader); /* in the middle of the stream */
    EXPECT(STREAM_OK, stream_client_head(client, "pages", &info, &error));
    free(all.bytes);
    free(text);
    stream_client_free(client);
}

/* Messages of all sizes come one by one, as they were sent. */
static void reads_messages(void **state)
{
    struct stream_client *client = rig_client(*state, NULL);
    struct stream_read_options options = {.unit = STREAM_MESSAGES};
    struct read_so_far all = {0};
    struct read_so_far expected = {0};
    struct stream_error error;

    rig_create(client, "messages", "application/json");
    for (int i = 0; i < 40; i++) {
        char *text = make_text((size_t)(i % 10 == 9 ? 200000 : i * 100));
        char *message = malloc(strlen(text) + 32);

        assert_non_null(message);
        (void)snprintf(message, strlen(text) + 32, "{\"n\": %d, \"t\":\"%s\"}", i, text);
        rig_append(client, "messages", message);
        keep_bytes(&expected, message, strlen(message));
        keep_bytes(&expected, "\n", 1);
        free(message);
        free(text);
    }
    EXPECT(STREAM_END, read_to_end(client, "messages", &options, &all, &error));
    assert_int_equal(all.pieces, 40);
    assert_string_equal(all.bytes, expected.bytes);
    options.unit = STREAM_BYTES;
    all.len = 0;
    EXPECT(STREAM_END, read_to_end(client, "messages", &options, &all, &error));
    assert_int_equal(all.bytes[0], '[');
    free(expected.bytes);
    free(all.bytes);
    stream_client_free(client);
}

/* Places to begin from, and those that are none. */
static void reads_from_places(void **state)
{
    struct stream_client *client = rig_client(*state, NULL);
    struct stream_read_options options = {.offset = "now"};
    struct read_so_far all = {0};
    struct stream_error error;

    rig_create(client, "places", "application/json");
    rig_append(client, "places", "[11,22,33]");
    EXPECT(STREAM_END, read_to_end(client, "places", &options, &all, &error));
    assert_string_equal(all.bytes, "[]");
    assert_string_equal(all.next, TOKEN("09"));
    rig_expect(client, "places", TOKEN("03"), "[22,33]");
    rig_expect(client, "places", TOKEN("99"), "[]");
    options.offset = TOKEN("04");
    EXPECT(STREAM_ERROR_REJECTED, read_to_end(client, "places", &options, &all, &error));
    EXPECT_WORDS("the offset lies inside a message");
    options.offset = "soon";
    EXPECT(STREAM_ERROR_REJECTED, read_to_end(client, "places", &options, &all, &error));
    EXPECT_WORDS("cannot read \"places\": offset must be -1, now, or a token");
    options.offset = "";
    EXPECT(STREAM_ERROR_ARGUMENT, read_to_end(client, "places", &options, &all, &error));
    EXPECT(STREAM_ERROR_NOT_FOUND, read_to_end(client, "places/none", NULL, &all, &error));
    assert_int_equal(error.status, 404);
    free(all.bytes);
    stream_client_free(client);
}

/* The end of a closed stream is told; an empty one that is open ends at its tail. */
static void reads_ends(void **state)
{
    struct stream_client *client = rig_client(*state, NULL);
    struct stream_read_options live = {.live = STREAM_LONG_POLL};
    struct read_so_far all = {0};
    struct stream_error error;
    char *data = NULL;
    size_t len = 0;

    rig_create(client, "ends", "text/plain");
    EXPECT(STREAM_END, read_to_end(client, "ends", NULL, &all, &error));
    assert_true(all.up_to_date && !all.closed && all.len == 0);
    rig_append(client, "ends", "bye");
    EXPECT(STREAM_OK, stream_client_close(client, "ends", NULL, &error));
    EXPECT(STREAM_END, read_to_end(client, "ends", NULL, &all, &error));
    assert_true(all.closed);
    all.len = 0;
    EXPECT(STREAM_END, read_to_end(client, "ends", &live, &all, &error));
    assert_string_equal(all.bytes, "bye");
    EXPECT(STREAM_ERROR_REJECTED,
           stream_client_read_all(client, "ends", NULL, 2, &data, &len, NULL, &error));
    free(all.bytes);
    stream_client_free(client);
}

#define FOLLOWED 150

struct writer {
    struct stream_client *client;
    const char *name;
    int failures;
};

/* Appends numbers, slowly and quickly, and closes. */
static void *write_numbers(void *context)
{
    struct writer *w = context;

    for (int i = 0; i < FOLLOWED; i++) {
        char text[16];

        (void)snprintf(text, sizeof(text), "%d", i);
        w->failures += stream_client_append(w->client, w->name, text, strlen(text), NULL, NULL,
                                            NULL) != STREAM_OK;
        (void)poll(NULL, 0, i % 30 == 0 ? 20 : 0);
    }
    w->failures += stream_client_close(w->client, w->name, NULL, NULL) != STREAM_OK;
    return NULL;
}

static void follow(struct rig *rig, const char *name, enum stream_live live)
{
    struct stream_client *client = rig_client(rig, NULL);
    struct stream_client *writing = rig_client(rig, NULL);
    struct stream_read_options options = {.live = live, .unit = STREAM_MESSAGES};
    struct writer writer = {.client = writing, .name = name};
    struct read_so_far all = {0};
    struct stream_error error;
    const char *at;
    pthread_t thread;

    rig_create(client, name, "application/json");
    assert_int_equal(pthread_create(&thread, NULL, write_numbers, &writer), 0);
    EXPECT(STREAM_END, read_to_end(client, name, &options, &all, &error));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(writer.failures, 0);
    assert_int_equal(all.pieces, FOLLOWED);
    assert_true(all.closed);
    at = all.bytes;
    for (int i = 0; i < FOLLOWED; i++) {
        char line[16];

        (void)snprintf(line, sizeof(line), "%d\n", i);
        assert_memory_equal(at, line, strlen(line));
        at += strlen(line);
    }
    free(all.bytes);
    stream_client_free(client);
    stream_client_free(writing);
}

/* Whoever follows gets each message once and in order, until the stream is closed. */
static void follows_by_long_polls(void **state)
{
    follow(*state, "follow/poll", STREAM_LONG_POLL);
}

static void follows_by_events(void **state)
{
    follow(*state, "follow/sse", STREAM_SSE);
}

static void follows_either_way(void **state)
{
    follow(*state, "follow/auto", STREAM_AUTO);
}

struct later {
    struct stream_client *client;
    struct stream_reader *reader;
    const char *name;
    int wait_ms;
    void (*act)(struct later *later);
};

static void *act_later(void *context)
{
    struct later *later = context;

    (void)poll(NULL, 0, later->wait_ms);
    later->act(later);
    return NULL;
}

static void delete_it(struct later *later)
{
    (void)stream_client_delete(later->client, later->name, NULL); /* the reader tells */
}

static void append_it(struct later *later)
{
    (void)stream_client_append(later->client, later->name, "late", 4, NULL, NULL, NULL);
    (void)stream_client_close(later->client, later->name, NULL, NULL); /* the reader tells */
}

static void abort_reader(struct later *later)
{
    stream_reader_abort(later->reader);
}

static void abort_client(struct later *later)
{
    stream_client_abort(later->client);
}

/* Follows `name`, while the other thread does something to it; what the reader ends with. */
static int follow_until(struct stream_client *client, enum stream_live live, int poll_ms,
                        struct later *later, struct read_so_far *all, struct stream_error *error)
{
    struct stream_read_options options = {.live = live, .poll_timeout_ms = poll_ms};
    struct stream_piece_view piece;
    pthread_t thread;
    int code;

    assert_int_equal(stream_client_read(client, later->name, &options, &later->reader, error),
                     STREAM_OK);
    assert_int_equal(pthread_create(&thread, NULL, act_later, later), 0);
    while ((code = stream_reader_next(later->reader, &piece, error)) == STREAM_OK) {
        keep_piece(all, &piece, false);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    stream_reader_free(later->reader);
    return code;
}

/* A wait outlasts the server's and the reader's own limits; then the data come. */
static void waits_long(void **state)
{
    const int limits_ms[] = {0, 40};
    const enum stream_live lives[] = {STREAM_LONG_POLL, STREAM_SSE};
    struct stream_client *client = rig_client(*state, NULL);
    struct stream_client *other = rig_client(*state, NULL);
    struct stream_error error;

    for (int i = 0; i < 4; i++) {
        struct later later = {other, NULL, "wait", 2 * RIG_LONG_POLL_MS + 100, append_it};
        struct read_so_far all = {0};

        rig_create(client, "wait", "text/plain");
        EXPECT(STREAM_END,
               follow_until(client, lives[i / 2], limits_ms[i % 2], &later, &all, &error));
        assert_string_equal(all.bytes, "late");
        assert_string_equal(all.next, TOKEN("04"));
        EXPECT(STREAM_OK, stream_client_delete(client, "wait", &error));
        free(all.bytes);
    }
    stream_client_free(client);
    stream_client_free(other);
}

/* A stream that goes while it is followed ends its readers. */
static void follows_until_deleted(void **state)
{
    struct stream_client *client = rig_client(*state, NULL);
    struct stream_client *other = rig_client(*state, NULL);
    struct later later = {other, NULL, "goes", 30, delete_it};
    struct read_so_far all = {0};
    struct stream_error error;

    for (int live = STREAM_LONG_POLL; live <= STREAM_AUTO; live++) {
        rig_create(client, "goes", "text/plain");
        EXPECT(STREAM_ERROR_NOT_FOUND,
               follow_until(client, (enum stream_live)live, 0, &later, &all, &error));
        assert_int_equal(error.status, 404);
    }
    free(all.bytes);
    stream_client_free(client);
    stream_client_free(other);
}

/* An abort ends a reader that waits, alone or with all of its client. */
static void aborts_readers(void **state)
{
    struct stream_client *client = rig_client(*state, NULL);
    struct later later = {client, NULL, "halt", 30, abort_reader};
    struct read_so_far all = {0};
    struct stream_error error;

    rig_create(client, "halt", "text/plain");
    for (int live = STREAM_LONG_POLL; live <= STREAM_AUTO; live++) {
        later.act = abort_reader;
        EXPECT(STREAM_ERROR_ABORTED,
               follow_until(client, (enum stream_live)live, 0, &later, &all, &error));
        later.act = abort_client;
        EXPECT(STREAM_ERROR_ABORTED,
               follow_until(client, (enum stream_live)live, 0, &later, &all, &error));
        stream_client_reset(client);
    }
    free(all.bytes);
    stream_client_free(client);
}

/* Takes what is there; whether the reader is at its end. */
static bool step_reader(struct stream_reader *reader, struct read_so_far *so_far)
{
    struct stream_piece_view piece;
    struct stream_error error;
    int code;

    while ((code = stream_reader_step(reader, &piece, &error)) == STREAM_OK) {
        keep_piece(so_far, &piece, false);
    }
    assert_true(code == STREAM_END || code == STREAM_WAIT);
    return code == STREAM_END;
}

/* Two readers and some appends on one thread that only polls. */
static void steps_readers(void **state)
{
    const struct stream_append_options type = {.content_type = "text/plain"};
    struct stream_client *client = rig_client(*state, NULL);
    struct stream_read_options options = {.live = STREAM_LONG_POLL};
    struct pollfd fd = {.fd = stream_client_fd(client), .events = POLLIN};
    struct read_so_far all[2] = {{0}, {0}};
    struct stream_reader *readers[2];
    struct stream_error error;
    int appended = 0;
    int ended = 0;

    rig_create(client, "steps", "text/plain");
    EXPECT(STREAM_OK, stream_client_read(client, "steps", &options, &readers[0], &error));
    options.live = STREAM_SSE;
    EXPECT(STREAM_OK, stream_client_read(client, "steps", &options, &readers[1], &error));
    while (ended < 3) {
        for (int i = 0; i < 2; i++) {
            ended |= step_reader(readers[i], &all[i]) ? 1 << i : 0;
        }
        if (appended < 20 && all[0].len == (size_t)appended && all[1].len == (size_t)appended) {
            struct stream_append_options last = type;

            last.close = appended == 19;
            EXPECT(STREAM_OK, stream_client_append(client, "steps", "s", 1, &last, NULL, &error));
            appended++;
        } else if (ended < 3) {
            assert_int_equal(poll(&fd, 1, 30000), 1);
        }
        stream_client_step(client);
    }
    for (int i = 0; i < 2; i++) {
        assert_string_equal(all[i].bytes, "ssssssssssssssssssss");
        stream_reader_free(readers[i]);
        free(all[i].bytes);
    }
    stream_client_free(client);
}

/* A reader that is not asked holds little, and has lost nothing when it is. */
static void waits_for_readers(void **state)
{
    const size_t part = 1000000;
    struct stream_client *client = rig_client(*state, NULL);
    char *text = make_text(part);
    struct read_so_far all = {0};
    struct stream_reader *reader;
    struct stream_piece_view piece;
    struct stream_error error;
    int code;

    rig_create(client, "slow", "text/plain");
    for (int i = 0; i < 6; i++) {
        EXPECT(STREAM_OK, stream_client_append(client, "slow", text, part, NULL, NULL, &error));
    }
    EXPECT(STREAM_OK, stream_client_read(client, "slow", NULL, &reader, &error));
    EXPECT(STREAM_OK, stream_reader_next(reader, &piece, &error));
    keep_piece(&all, &piece, false);
    (void)poll(NULL, 0, 100);
    while ((code = stream_reader_next(reader, &piece, &error)) == STREAM_OK) {
        keep_piece(&all, &piece, false);
    }
    assert_int_equal(code, STREAM_END);
    assert_int_equal(all.len, 6 * part);
    for (size_t i = 0; i < 6; i++) {
        assert_memory_equal(all.bytes + i * part, text, part);
    }
    stream_reader_free(reader);
    free(all.bytes);
    free(text);
    stream_client_free(client);
}

/* Messages are asked of JSON streams only, and not longer than the options allow. */
static void bounds_messages(void **state)
{
    struct stream_client_options options = rig_options();
    struct stream_read_options messages = {.unit = STREAM_MESSAGES};
    struct read_so_far all = {0};
    struct stream_client *client;
    struct stream_error error;

    options.max_message_bytes = 10;
    client = rig_client(*state, &options);
    rig_create(client, "bound", "application/json");
    rig_append(client, "bound", "[1234567890,12345678901]");
    EXPECT(STREAM_ERROR_FORMAT, read_to_end(client, "bound", &messages, &all, &error));
    assert_string_equal(all.bytes, "1234567890\n");
    rig_create(client, "bound/text", "text/plain");
    EXPECT(STREAM_ERROR_FORMAT, read_to_end(client, "bound/text", &messages, &all, &error));
    EXPECT_WORDS("only application/json has messages");
    free(all.bytes);
    stream_client_free(client);
}

#define PRODUCED 2000

/* A producer stores all it is given, once and in order, in batches, and closes. */
static void produces(void **state)
{
    struct stream_client *client = rig_client(*state, NULL);
    struct stream_producer_options options;
    struct stream_producer *producer;
    struct read_so_far all = {0};
    struct stream_read_options messages = {.unit = STREAM_MESSAGES};
    struct stream_error error;
    struct stream_info info;
    uint64_t appended;
    uint64_t stored;
    const char *at;

    rig_create(client, "produced", "application/json");
    stream_producer_options_init(&options);
    options.max_batch_messages = 37;
    EXPECT(STREAM_OK, stream_producer_new(client, "produced", "p", &options, &producer, &error));
    for (int i = 0; i < PRODUCED; i++) {
        char text[16];

        (void)snprintf(text, sizeof(text), "%d", i);
        EXPECT(STREAM_OK, stream_producer_append(producer, text, strlen(text), &error));
    }
    EXPECT(STREAM_OK, stream_producer_flush(producer, &info, &error));
    stream_producer_counts(producer, &appended, &stored, NULL);
    assert_int_equal(appended, PRODUCED);
    assert_int_equal(stored, PRODUCED);
    EXPECT(STREAM_OK, stream_producer_close(producer, "\"end\"", 5, &info, &error));
    assert_true(info.closed);
    stream_producer_free(producer);
    EXPECT(STREAM_END, read_to_end(client, "produced", &messages, &all, &error));
    assert_int_equal(all.pieces, PRODUCED + 1);
    at = all.bytes;
    for (int i = 0; i < PRODUCED; i++) {
        char line[16];

        (void)snprintf(line, sizeof(line), "%d\n", i);
        assert_memory_equal(at, line, strlen(line));
        at += strlen(line);
    }
    assert_string_equal(at, "\"end\"\n");
    free(all.bytes);
    stream_client_free(client);
}

/* The newer of two producers of an id fences the older; no producer appends to a closed stream. */
static void fences_producers(void **state)
{
    struct stream_client *client = rig_client(*state, NULL);
    struct stream_producer_options options;
    struct stream_producer *older;
    struct stream_producer *newer;
    struct stream_error error;

    rig_create(client, "fenced", "text/plain");
    stream_producer_options_init(&options);
    EXPECT(STREAM_OK, stream_producer_new(client, "fenced", "p", &options, &older, &error));
    EXPECT(STREAM_OK, stream_producer_append(older, "a", 1, &error));
    EXPECT(STREAM_OK, stream_producer_flush(older, NULL, &error));
    options.epoch = 1;
    EXPECT(STREAM_OK, stream_producer_new(client, "fenced", "p", &options, &newer, &error));
    EXPECT(STREAM_OK, stream_producer_append(newer, "b", 1, &error));
    EXPECT(STREAM_OK, stream_producer_flush(newer, NULL, &error));
    EXPECT(STREAM_OK, stream_producer_append(older, "c", 1, &error));
    EXPECT(STREAM_ERROR_FENCED, stream_producer_flush(older, NULL, &error));
    assert_int_equal(error.current_epoch, 1);
    EXPECT(STREAM_OK, stream_client_close(client, "fenced", NULL, &error));
    EXPECT(STREAM_OK, stream_producer_append(newer, "d", 1, &error));
    EXPECT(STREAM_ERROR_CLOSED, stream_producer_flush(newer, NULL, &error));
    stream_producer_free(older);
    stream_producer_free(newer);
    rig_expect(client, "fenced", NULL, "ab");
    stream_client_free(client);
}

#define TRANSPORT_READS                                                               \
    cmocka_unit_test(reads_page_by_page), cmocka_unit_test(reads_messages),           \
        cmocka_unit_test(reads_from_places), cmocka_unit_test(reads_ends),            \
        cmocka_unit_test(follows_by_long_polls), cmocka_unit_test(follows_by_events), \
        cmocka_unit_test(follows_either_way), cmocka_unit_test(waits_long),           \
        cmocka_unit_test(follows_until_deleted), cmocka_unit_test(aborts_readers),    \
        cmocka_unit_test(steps_readers), cmocka_unit_test(waits_for_readers),         \
        cmocka_unit_test(bounds_messages), cmocka_unit_test(produces),                \
        cmocka_unit_test(fences_producers)

#endif
