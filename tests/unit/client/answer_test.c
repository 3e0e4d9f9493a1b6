/* Answers larger than a piece: what is handed out before an offset is known, and what is passed
 * over when it comes again. The small ones are in reader_test.c. */
#include "client/answer.c"

#include "unit/base/unit.h"

#define LARGE ((size_t)300000)

struct view {
    struct answer answer;
    struct buf got;
    size_t pieces; /* without an offset */
    size_t marks;
};

static void open_view(struct view *v, enum stream_unit unit)
{
    *v = (struct view){.pieces = 0};
    answer_init(&v->answer, unit, 1 << 20);
    buf_init(&v->got, 1 << 20);
}

static void close_view(struct view *v)
{
    answer_finish(&v->answer);
    buf_finish(&v->got);
}

static void feed(struct view *v, struct slice text, size_t step)
{
    for (size_t at = 0; at < text.len; at += step) {
        struct slice rest = {text.ptr + at, text.len - at < step ? text.len - at : step};
        struct slice piece;
        int rc;

        while ((rc = answer_take(&v->answer, &rest, &piece, NULL)) != ANSWER_MORE) {
            assert_true(rc > 0);
            if (rc == ANSWER_MARK) {
                v->marks++;
                piece = answer_commit(&v->answer);
            } else {
                v->pieces++;
                assert_true(v->answer.unit == STREAM_MESSAGES ||
                            piece.len <= ANSWER_PIECE_BYTES + DECODE_BYTES);
            }
            buf_append(&v->got, piece);
        }
    }
}

/* A large event: `text` before, the payload, `text` behind. */
static char *frame(const char *before, const char *payload, size_t len, const char *behind,
                   size_t *ret_len)
{
    size_t size = strlen(before) + len + strlen(behind);
    char *all = test_malloc(size + 1);

    memcpy(all, before, strlen(before));
    memcpy(all + strlen(before), payload, len);
    memcpy(all + strlen(before) + len, behind, strlen(behind) + 1);
    *ret_len = size;
    return all;
}

/* A large text event is handed out as it comes, breaks off, and goes on where it stopped; of what
 * came before the break, the last bytes are not handed out. */
static void test_large_text_event(void **state)
{
    char *payload = test_malloc(LARGE);
    size_t len;
    char *all;

    (void)state;
    for (size_t i = 0; i < LARGE; i++) {
        payload[i] = (char)('a' + i % 26);
    }
    all = frame("event: data\ndata: ", payload, LARGE,
                "\n\nevent: control\ndata: {\"streamNextOffset\":\"9\"}\n\n", &len);
    for (size_t cut = 70000; cut < LARGE; cut += 77777) {
        struct view v;

        open_view(&v, STREAM_BYTES);
        answer_begin(&v.answer, true, false);
        feed(&v, (struct slice){all, cut}, 5000);
        assert_true(v.pieces > 0 && v.got.len + HELD_BACK_BYTES <= cut - 18);
        assert_int_equal(v.answer.since, v.got.len);
        answer_begin(&v.answer, true, false);
        assert_int_equal(v.answer.skip, v.got.len);
        feed(&v, (struct slice){all, len}, 333);
        assert_int_equal(v.marks, 1);
        assert_int_equal(v.got.len, LARGE);
        assert_memory_equal(v.got.ptr, payload, LARGE);
        assert_int_equal(v.answer.since, 0);
        close_view(&v);
    }
    test_free(all);
    test_free(payload);
}

/* A message larger than a piece is handed out at once, also the last of an array; its offset then
 * comes with nothing. */
static void test_large_message(void **state)
{
    char *payload = test_malloc(LARGE);
    struct slice rest;
    struct slice piece;
    struct view v;
    size_t len;
    char *all;

    (void)state;
    memset(payload, 'x', LARGE);
    payload[0] = payload[LARGE - 1] = '"';
    all = frame("[1,", payload, LARGE, "]", &len);
    open_view(&v, STREAM_MESSAGES);
    answer_begin(&v.answer, false, false);
    rest = (struct slice){all, len};
    assert_int_equal(answer_take(&v.answer, &rest, &piece, NULL), ANSWER_PIECE);
    assert_int_equal(answer_take(&v.answer, &rest, &piece, NULL), ANSWER_PIECE);
    assert_int_equal(piece.len, LARGE);
    assert_int_equal(answer_take(&v.answer, &rest, &piece, NULL), ANSWER_MORE);
    assert_int_equal(answer_end_page(&v.answer, NULL), 0);
    assert_int_equal(answer_commit(&v.answer).len, 0);
    close_view(&v);
    test_free(all);
    test_free(payload);
}

/* A page that is shorter than what was handed out leaves the rest to be passed over behind its
 * offset. */
static void test_shorter_page(void **state)
{
    struct view v;

    (void)state;
    open_view(&v, STREAM_MESSAGES);
    answer_begin(&v.answer, false, false);
    feed(&v, SLICE("[1,2,3,4,"), 100);
    assert_int_equal(v.answer.since, 4);
    answer_begin(&v.answer, false, false);
    feed(&v, SLICE("[1,2,3]"), 100);
    assert_int_equal(answer_end_page(&v.answer, NULL), 0);
    assert_int_equal(answer_commit(&v.answer).len, 0);
    assert_int_equal(v.answer.since, 1);
    answer_begin(&v.answer, false, false);
    feed(&v, SLICE("[4,5]"), 100);
    assert_true(slice_equal(answer_commit(&v.answer), SLICE("5")));
    assert_true(slice_equal(buf_slice(&v.got), SLICE("1234")));
    close_view(&v);
}

/* A page is never base64, and each data event is one base64 text of its own. */
static void test_base64(void **state)
{
    struct view v;

    (void)state;
    open_view(&v, STREAM_BYTES);
    answer_begin(&v.answer, false, true);
    feed(&v, SLICE("Zg=="), 1);
    assert_true(slice_equal(answer_commit(&v.answer), SLICE("Zg==")));
    answer_begin(&v.answer, true, true);
    feed(&v, SLICE("event: data\ndata: Zg==\n\nevent: data\ndata: Zm\ndata: 8=\n\n"), 1);
    assert_true(slice_equal(answer_commit(&v.answer), SLICE("ffo")));
    close_view(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large_text_event),
        cmocka_unit_test(test_large_message),
        cmocka_unit_test(test_shorter_page),
        cmocka_unit_test(test_base64),
    };

    return UNIT_RUN(tests);
}
