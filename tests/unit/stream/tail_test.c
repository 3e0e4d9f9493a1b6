/* The hot tail: chunks, blocks, marks, and that what is given up leaves no trace. */
#include "unit/base/fault.h"

#include "stream/tail.c"

#include "base/limits.h"
#include "log/marks.h"
#include "unit/base/unit.h"

static void add(struct tail *t, uint64_t start, const char *text)
{
    char mark[VARINT_BYTES_MAX];
    struct tail_body body = {.bytes = slice_of(text)};
    body.marks = (struct slice){mark, marks_put(mark, body.bytes.len, true)};
    struct tail_room room;
    assert_int_equal(tail_prepare(t, &body, &room), 0);
    tail_add(t, &room, start, &body);
}

/* Small appends share a block, and each byte is found at its position. */
static void test_small(void **state)
{
    (void)state;
    struct tail t = {0};
    uint64_t at = 100;
    for (int i = 0; i < 1000; i++, at += 3) {
        add(&t, at, "abc");
    }
    assert_in_range(t.count, 2, 12);
    for (uint64_t position = 100; position < at; position++) {
        const struct tail_chunk *c = tail_find(&t, position);
        assert_non_null(c);
        assert_int_equal(c->ptr[position - c->start], "abc"[(position - 100) % 3]);
        assert_true(marks_valid(tail_chunk_marks(c), c->len));
    }
    assert_null(tail_find(&t, 99));
    assert_null(tail_find(&t, at));
    tail_clear(&t);
    assert_int_equal(t.count, 0);
}

/* The first block is as large as the first append, later ones double up to 64 KiB. */
static void test_growth(void **state)
{
    (void)state;
    struct tail t = {0};
    add(&t, 0, "12345");
    assert_int_equal(chunk_at(&t, 0)->block->cap, 5);
    add(&t, 5, "6");
    assert_int_equal(chunk_at(&t, 1)->block->cap, 10);
    tail_clear(&t);
}

/* A large body is kept by reference, and the next append goes elsewhere. */
static void test_adopt(void **state)
{
    (void)state;
    struct tail t = {0};
    struct block *b = block_try_create(100);
    memset(b->data, 'x', 100);
    char mark[VARINT_BYTES_MAX];
    struct tail_body body = {.bytes = {b->data + 10, 50}, .block = b};
    body.marks = (struct slice){mark, marks_put(mark, 50, true)};
    struct tail_room room;
    assert_int_equal(tail_prepare(&t, &body, &room), 0);
    tail_add(&t, &room, 0, &body);
    assert_ptr_equal(tail_find(&t, 0)->ptr, b->data + 10);
    add(&t, 50, "y");
    assert_ptr_not_equal(tail_find(&t, 50)->block, b);
    block_unref(b);
    tail_clear(&t);
}

/* A large body becomes several chunks of the same blocks, which go one by one. */
static void test_runs(void **state)
{
    (void)state;
    struct tail t = {0};
    struct block *b = block_try_create(12);
    struct block *m = block_try_create(8);
    memcpy(b->data, "a,bb,ccc,dd,", 12);
    size_t at = 2; /* marks may begin anywhere in their block */
    at += marks_put(m->data + at, 2, false);
    at += marks_put(m->data + at, 3, false);
    at += marks_put(m->data + at, 4, false);
    at += marks_put(m->data + at, 3, true);
    const struct marks_run runs[] = {{5, 2}, {4, 1}, {3, 1}};
    struct tail_body body = {.bytes = {b->data, 12},
                             .marks = {m->data + 2, at - 2},
                             .block = b,
                             .marks_block = m,
                             .runs = runs,
                             .run_count = 3};
    struct tail_room room;
    add(&t, 90, "0123456789");
    assert_int_equal(tail_prepare(&t, &body, &room), 0);
    tail_add(&t, &room, 100, &body);
    assert_int_equal(t.count, 4);
    assert_int_equal(b->refs, 4);
    assert_int_equal(m->refs, 4);
    for (uint64_t position = 100; position < 112; position++) {
        const struct tail_chunk *c = tail_find(&t, position);
        assert_ptr_equal(c->ptr + (position - c->start), b->data + (position - 100));
        assert_true(marks_valid(tail_chunk_marks(c), c->len));
    }
    assert_int_equal(tail_bytes_before(&t, 110), 19);
    assert_int_equal(tail_drop(&t, 110), 19);
    assert_int_equal(b->refs, 2);
    tail_clear(&t);
    assert_int_equal(m->refs, 1);
    block_unref(b);
    block_unref(m);
}

/* Whole chunks before a position are dropped, the one that holds it stays. */
static void test_drop(void **state)
{
    (void)state;
    struct tail t = {0};
    add(&t, 0, "1234");
    add(&t, 4, "5678");
    assert_int_equal(t.count, 2);
    assert_int_equal(tail_bytes_before(&t, 6), 4);
    assert_int_equal(tail_drop(&t, 6), 4);
    assert_null(tail_find(&t, 3));
    assert_non_null(tail_find(&t, 4));
    add(&t, 8, "9");
    assert_int_equal(tail_drop(&t, 9), 5);
    assert_int_equal(t.count, 0);
    add(&t, 9, "a");
    assert_non_null(tail_find(&t, 9));
    tail_clear(&t);
}

/* Whichever allocation fails, the tail is as before and works again afterwards. */
static void test_faults(void **state)
{
    (void)state;
    char marks[200] = {0};
    struct tail_body body = {.bytes = {"0123456789", 10}, .marks = {marks, sizeof(marks)}};
    for (long n = 0; n < 4; n++) {
        struct tail t = {0};
        struct tail_room room = {0};
        add(&t, 0, "1234");
        fault_countdown = n;
        int code = tail_prepare(&t, &body, &room);
        fault_countdown = -1;
        assert_true(code == 0 || code == ERR_NOMEM);
        assert_int_equal(t.count, 1);
        assert_null(tail_find(&t, 4));
        if (code == 0) {
            tail_forgo(&room);
        }
        add(&t, 4, "5678");
        assert_int_equal(tail_find(&t, 4)->ptr[4 - tail_find(&t, 4)->start], '5');
        tail_clear(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small), cmocka_unit_test(test_growth), cmocka_unit_test(test_adopt),
        cmocka_unit_test(test_runs),  cmocka_unit_test(test_drop),   cmocka_unit_test(test_faults),
    };
    return UNIT_RUN(tests);
}
