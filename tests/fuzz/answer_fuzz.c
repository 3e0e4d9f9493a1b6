/* A stream made of the input is read over answers that break off where the input says: pages or
 * event streams, bytes or messages, cut into pieces of any size, of changing length when they are
 * asked for again. What is handed out must be the stream, each unit once and in order.
 *
 * The input: form, size of network pieces, size of pages, then one byte for each answer that says
 * where it breaks off; the rest is the stream. Then the whole input once more as a hostile body. */
#include "client/answer.h"

/* Small enough for the inputs that a fuzzer likes. */
#undef ANSWER_PIECE_BYTES
#define ANSWER_PIECE_BYTES ((size_t)16)

#include "client/answer.c"

#include <assert.h>
#include <stdlib.h>

#include "base/json.h"
#include "http/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define UNITS_MAX 600
#define CUTS_MAX  8

struct world {
    bool is_events;
    enum sse_encoding encoding;
    size_t step;                   /* bytes of a network piece */
    size_t page;                   /* units of a page */
    struct slice units[UNITS_MAX]; /* the stream: messages, or single bytes */
    size_t count;
    size_t at; /* the last offset: its units are before it */
    struct buf got;
    struct buf wanted;
};

/* The units from `at` on as the server writes them. */
static void write_answer(const struct world *w, size_t count, struct buf *out)
{
    struct buf stored;
    struct slice piece;

    buf_init(&stored, 16u << 20);
    for (size_t i = 0; i < count; i++) {
        buf_append(&stored, w->units[w->at + i]);
        buf_append(&stored, w->encoding == SSE_JSON ? SLICE(",") : SLICE(""));
    }
    piece = buf_slice(&stored);
    if (w->is_events) {
        sse_append_data(out, w->encoding, &piece, 1);
        buf_append_format(out, "event: control\ndata: {\"streamNextOffset\":\"%06zu\"}\n\n",
                          w->at + count);
    } else if (w->encoding == SSE_JSON) {
        piece.len -= piece.len > 0;
        buf_append(out, SLICE("["));
        buf_append(out, piece);
        buf_append(out, SLICE("]"));
    } else {
        buf_append(out, piece);
    }
    buf_finish(&stored);
}

/* For messages a newline behind each, so that they can be told apart. */
static void note(struct buf *out, const struct world *w, struct slice unit)
{
    buf_append(out, unit);
    if (w->encoding == SSE_JSON && unit.len > 0) {
        buf_append_char(out, '\n');
    }
}

/* Takes `text`, perhaps the beginning of an answer. */
static void take(struct world *w, struct answer *a, struct slice text)
{
    while (text.len > 0) {
        size_t len = text.len < w->step ? text.len : w->step;
        char *copy = malloc(len);
        struct slice rest = {copy, len};
        struct slice piece;
        int rc;

        assert(copy != NULL);
        memcpy(copy, text.ptr, len);
        while ((rc = answer_take(a, &rest, &piece, NULL)) != ANSWER_MORE) {
            assert(rc > 0);
            if (rc == ANSWER_PIECE) {
                note(&w->got, w, piece);
            } else {
                w->at = strtoul(a->mark.next_offset, NULL, 10);
                note(&w->got, w, answer_commit(a));
                assert(a->since == a->skip);
            }
        }
        assert(rest.len == 0);
        text = (struct slice){text.ptr + len, text.len - len};
        free(copy);
    }
}

static void read_stream(struct world *w, const uint8_t *cuts, size_t cut_count)
{
    struct answer a;

    answer_init(&a, w->encoding == SSE_JSON ? STREAM_MESSAGES : STREAM_BYTES, 1 << 20);
    for (size_t i = 0; w->at < w->count; i++) {
        size_t left = w->count - w->at;
        size_t page = i < cut_count ? 1 + (w->page + cuts[i]) % UNITS_MAX : UNITS_MAX;
        size_t count = page < left ? page : left;
        struct buf body;
        size_t len;

        buf_init(&body, 64u << 20);
        write_answer(w, count, &body);
        len = i < cut_count ? body.len * cuts[i] / 255 : body.len;
        answer_begin(&a, w->is_events, w->encoding == SSE_BASE64);
        take(w, &a, (struct slice){body.ptr, len});
        if (!w->is_events && len == body.len) {
            assert(answer_end_page(&a, NULL) == 0);
            note(&w->got, w, answer_commit(&a));
            w->at += count;
        }
        buf_finish(&body);
    }
    assert(a.skip == 0 && a.since == 0);
    assert(slice_equal(buf_slice(&w->got), buf_slice(&w->wanted)));
    answer_finish(&a);
}

/* Messages: strings of the bytes up to each zero, with everything escaped. Else single bytes. */
static void make_units(struct world *w, const char *data, size_t size, struct buf *memory)
{
    struct slice rest = {data, size};
    size_t starts[UNITS_MAX + 1];

    while (w->count < UNITS_MAX && rest.len > 0) {
        size_t len = w->encoding == SSE_JSON ? strnlen(rest.ptr, rest.len) : 1;

        starts[w->count++] = memory->len;
        if (w->encoding == SSE_JSON) {
            json_append_string(memory, (struct slice){rest.ptr, len});
            len += len < rest.len;
        } else if (w->encoding == SSE_TEXT) {
            /* What text events keep as it is. */
            char c = (char)(*rest.ptr & 0x7f);

            buf_append_char(memory, (char)(c == '\r' ? '\n' : c));
        } else {
            buf_append_char(memory, *rest.ptr);
        }
        rest = (struct slice){rest.ptr + len, rest.len - len};
    }
    starts[w->count] = memory->len;
    for (size_t i = 0; i < w->count; i++) {
        w->units[i] = (struct slice){memory->ptr + starts[i], starts[i + 1] - starts[i]};
        note(&w->wanted, w, w->units[i]);
    }
}

/* Whatever comes, nothing breaks. */
static void take_hostile(struct slice text, unsigned form, size_t step)
{
    struct answer a;
    struct errmsg msg = {.text = ""};
    struct slice piece;
    int rc = 0;

    answer_init(&a, (form & 1) != 0 ? STREAM_MESSAGES : STREAM_BYTES, 100);
    a.since = form >> 4;
    answer_begin(&a, (form & 2) != 0, (form & 4) != 0);
    while (text.len > 0 && rc >= 0) {
        size_t len = text.len < step ? text.len : step;
        struct slice rest = {text.ptr, len};

        while ((rc = answer_take(&a, &rest, &piece, &msg)) > 0) {
            if (rc == ANSWER_MARK) {
                assert(a.mark.next_offset[0] != '\0');
                (void)answer_commit(&a);
            }
        }
        assert(rc < 0 || rest.len == 0);
        assert((rc == ERR_INVALID || rc == ERR_TOOBIG) == (msg.text[0] != '\0'));
        text = (struct slice){text.ptr + len, text.len - len};
    }
    answer_finish(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct world w; /* too large for a stack */
    struct buf memory;

    if (size < 4 + CUTS_MAX) {
        return 0;
    }
    w = (struct world){
        .is_events = (data[0] & 1) != 0,
        .encoding = (enum sse_encoding)((data[0] >> 1) % 3),
        .step = data[1] + 1u,
        .page = data[2],
    };
    buf_init(&memory, 16u << 20);
    buf_init(&w.got, 16u << 20);
    buf_init(&w.wanted, 16u << 20);
    make_units(&w, (const char *)data + 3 + CUTS_MAX, size - 3 - CUTS_MAX, &memory);
    read_stream(&w, data + 3, CUTS_MAX);
    take_hostile((struct slice){(const char *)data + 2, size - 2}, data[0], data[1] + 1u);
    buf_finish(&memory);
    buf_finish(&w.got);
    buf_finish(&w.wanted);
    return 0;
}
