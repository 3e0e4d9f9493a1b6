/* The hot tail: chunks, blocks, marks, and that what is given up leaves no trace. */
#include "unit/base/fault.h"

#include "stream/tail.c"

#include "log/marks.h"
#include "unit/base/unit.h"

static void add(struct tail *t, uint64_t start, const char *text)
{
    char mark[VARINT_BYTES_MAX];
    struct slice body = slice_of(text);
    struct slice marks = {mark, marks_put(mark, body.len, true)};
    struct tail_room room;
    assert_int_equal(tail_prepare(t, body.len, marks.len, NULL, &room), 0);
    tail_add(t, &room, start, body, marks);
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
        assert_true(marks_valid((struct slice){c->marks, c->marks_len}, c->len));
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
    struct slice marks = {mark, marks_put(mark, 50, true)};
    struct tail_room room;
    assert_int_equal(tail_prepare(&t, 50, marks.len, b, &room), 0);
    tail_add(&t, &room, 0, (struct slice){b->data + 10, 50}, marks);
    assert_ptr_equal(tail_find(&t, 0)->ptr, b->data + 10);
    add(&t, 50, "y");
    assert_ptr_not_equal(tail_find(&t, 50)->block, b);
    block_unref(b);
    tail_clear(&t);
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
    for (long n = 0; n < 4; n++) {
        struct tail t = {0};
        struct tail_room room = {0};
        add(&t, 0, "1234");
        fault_countdown = n;
        int code = tail_prepare(&t, 10, 200, NULL, &room);
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
        cmocka_unit_test(test_drop),  cmocka_unit_test(test_faults),
    };
    return UNIT_RUN(tests);
}
