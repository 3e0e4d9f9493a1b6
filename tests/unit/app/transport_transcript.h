/* The last part of the shared list: random calls, good and bad, whose outcomes are written down and
 * must be the same text over both transports. What differs by design is left out: ETag and cursor,
 * and the sentence of a refused HEAD, which HTTP cannot carry. */
#ifndef ARBE_TESTS_UNIT_APP_TRANSPORT_TRANSCRIPT_H
#define ARBE_TESTS_UNIT_APP_TRANSPORT_TRANSCRIPT_H

#include <inttypes.h>

#include "base/buf.h"
#include "base/dice.h"
#include "unit/app/transport_reads.h"

#define TRANSCRIPT_CALLS 1500

struct transcript {
    struct stream_client *client;
    struct buf text; /* one line a call */
    uint64_t dice;
};

static struct buf transcripts[2]; /* by rig.http */

static uint64_t roll(struct transcript *t, uint64_t sides)
{
    return dice_roll(&t->dice) % sides;
}

#define PICK(t, texts) ((texts)[roll((t), ARRAY_COUNT(texts))])

static const char *pick_name(struct transcript *t)
{
    static const char *const names[] = {"t/a", "t/b", "t/c d", "t/%2fe", "t/%",    "t/\xc3\xa9",
                                        "t/g", "t/a", "t/b",   "t/none", "t/../x", ""};

    return PICK(t, names);
}

static const char *pick_type(struct transcript *t)
{
    static const char *const types[] = {NULL,
                                        "text/plain",
                                        "application/json",
                                        "application/json",
                                        "application/json; charset=utf-8",
                                        "text/plain",
                                        "Text/Plain",
                                        "nonsense",
                                        ""};

    return PICK(t, types);
}

static const char *pick_data(struct transcript *t)
{
    static const char *const data[] = {
        "1",  "[1,2,3]", "{\"a\": [1, 2]}", "abc", "", " [\"x\"] ", "{",
        "[]", "[[]]",    "\"\\ud800\"",     "1 2"};

    return PICK(t, data);
}

static const char *pick_offset(struct transcript *t)
{
    static const char *const offsets[] = {NULL,        "-1",        "now",       TOKEN("00"),
                                          TOKEN("02"), TOKEN("04"), TOKEN("13"), TOKEN("99"),
                                          "0",         "x y",       ""};

    return PICK(t, offsets);
}

static void write_error(struct transcript *t, const struct stream_error *error)
{
    buf_append_format(&t->text, "%s status %d unknown %d retry %ld epoch %lld seq %lld %s\n",
                      stream_error_name(error->code), error->status, error->outcome_unknown,
                      error->retry_after_ms, error->current_epoch, error->expected_seq,
                      strncmp(error->message, "cannot look", 11) == 0 ? "" : error->message);
}

static void write_outcome(struct transcript *t, int code, const struct stream_info *info,
                          const struct stream_error *error)
{
    if (code != STREAM_OK) {
        write_error(t, error);
        return;
    }
    buf_append_format(&t->text,
                      "OK %d next %s type %s created %d closed %d duplicate %d ttl %" PRId64
                      " expires %s epoch %" PRId64 " seq %" PRId64 "\n",
                      info->status, info->next_offset, info->content_type, info->created,
                      info->closed, info->duplicate, info->ttl_seconds, info->expires_at,
                      info->producer_epoch, info->producer_seq);
}

static void try_create(struct transcript *t)
{
    static const char *const expiries[] = {NULL, NULL, "2199-01-01T00:00:00Z", "never", ""};
    const char *data = roll(t, 2) == 0 ? NULL : pick_data(t);
    bool fork = roll(t, 3) == 0;
    struct stream_create_options options = {
        .content_type = pick_type(t),
        .ttl_seconds = roll(t, 4) == 0 ? 600 : 0,
        .expires_at = PICK(t, expiries),
        .closed = roll(t, 8) == 0,
        .data = data,
        .len = data != NULL ? strlen(data) : 0,
        .fork_of = fork ? pick_name(t) : NULL,
        .fork_offset = roll(t, 2) == 0 && fork ? pick_offset(t) : NULL,
        .fork_sub_offset = roll(t, 3) == 0 && fork ? (int64_t)roll(t, 5) : 0,
    };
    const char *name = pick_name(t);
    struct stream_info info;
    struct stream_error error;
    int code = stream_client_create(t->client, name, &options, &info, &error);

    buf_append_format(&t->text, "create %s: ", name);
    write_outcome(t, code, &info, &error);
}

static void try_append(struct transcript *t)
{
    static const char *const seqs[] = {NULL, NULL, NULL, "a", "b", "c", " b ", ""};
    static const char *const ids[] = {NULL, NULL, "p", "q", " ", ""};
    struct stream_append_options options = {
        .content_type = roll(t, 2) == 0 ? NULL : pick_type(t),
        .seq = PICK(t, seqs),
        .close = roll(t, 25) == 0,
        .producer_id = PICK(t, ids),
        .producer_epoch = (int64_t)roll(t, 3),
        .producer_seq = (int64_t)roll(t, 3),
    };
    const char *name = pick_name(t);
    const char *data = pick_data(t);
    struct stream_info info;
    struct stream_error error;
    int code = stream_client_append(t->client, name, data, strlen(data), &options, &info, &error);

    buf_append_format(&t->text, "append %s: ", name);
    write_outcome(t, code, &info, &error);
}

static void try_batch(struct transcript *t)
{
    struct stream_message messages[3];
    size_t count = roll(t, 4);
    const char *name = pick_name(t);
    struct stream_info info;
    struct stream_error error;
    int code;

    for (size_t i = 0; i < 3; i++) {
        const char *data = pick_data(t);

        messages[i] = (struct stream_message){data, strlen(data)};
    }
    code = stream_client_append_batch(t->client, name, messages, count, NULL, &info, &error);
    buf_append_format(&t->text, "batch %s: ", name);
    write_outcome(t, code, &info, &error);
}

static void try_read(struct transcript *t)
{
    struct stream_read_options options = {
        .offset = pick_offset(t),
        .unit = roll(t, 2) == 0 ? STREAM_BYTES : STREAM_MESSAGES,
    };
    const char *name = pick_name(t);
    struct read_so_far all = {0};
    struct stream_error error = {.code = STREAM_OK};
    int code = read_to_end(t->client, name, &options, &all, &error);

    buf_append_format(&t->text, "read %s: %d %s next %s up to date %d closed %d ", name, code,
                      all.bytes, all.next, all.up_to_date, all.closed);
    if (code > STREAM_OK) {
        write_error(t, &error);
    } else {
        buf_append_char(&t->text, '\n');
    }
    free(all.bytes);
}

static int write_listed(void *context, const char *name, const struct stream_info *info)
{
    struct transcript *t = context;

    buf_append_format(&t->text, "  %s ", name);
    write_outcome(t, STREAM_OK, info, NULL);
    return 0;
}

static void try_other(struct transcript *t)
{
    const char *name = pick_name(t);
    struct stream_info info = {0};
    struct stream_error error;
    int code;

    switch (roll(t, 12)) {
    case 0:
        code = stream_client_close(t->client, name, &info, &error);
        break;
    case 1:
    case 2:
        code = stream_client_delete(t->client, name, &error);
        break;
    case 3:
        code = stream_client_list(t->client, "t/", write_listed, t, &error);
        break;
    default:
        code = stream_client_head(t->client, name, &info, &error);
        break;
    }
    buf_append_format(&t->text, "other %s: ", name);
    write_outcome(t, code, &info, &error);
}

/* Writes the transcript of one transport. */
static void writes_transcript(void **state)
{
    const struct rig *rig = *state;
    struct transcript t = {.client = rig_client(rig, NULL)};

    buf_init(&t.text, 16 * MIB);
    for (int i = 0; i < TRANSCRIPT_CALLS; i++) {
        switch (roll(&t, 10)) {
        case 0:
        case 1:
        case 2:
            try_create(&t);
            break;
        case 3:
        case 4:
        case 5:
            try_append(&t);
            break;
        case 6:
            try_batch(&t);
            break;
        case 7:
            try_read(&t);
            break;
        default:
            try_other(&t);
            break;
        }
    }
    buf_append_char(&t.text, '\0');
    assert_false(t.text.failed);
    transcripts[rig->http] = t.text;
    stream_client_free(t.client);
}

/* Both transcripts are there: they are the same. */
static void compares_transcripts(void **state)
{
    struct slice rest[2];
    struct slice line[2] = {{NULL, 0}, {NULL, 0}};
    size_t lines = 0;

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_non_null(transcripts[i].ptr);
        rest[i] = slice_of(transcripts[i].ptr);
    }
    while (slice_split(&rest[0], '\n', &line[0]) && slice_split(&rest[1], '\n', &line[1])) {
        if (!slice_equal(line[0], line[1])) {
            fail_msg("engine: %.*s\nHTTP: %.*s", (int)line[0].len, line[0].ptr, (int)line[1].len,
                     line[1].ptr);
        }
        lines++;
    }
    assert_true(lines >= TRANSCRIPT_CALLS);
    for (int i = 0; i < 2; i++) {
        buf_finish(&transcripts[i]);
    }
}

#endif
