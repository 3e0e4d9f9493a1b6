/* The codec of batches: what it takes, what it refuses, what gives space back. */
#include "log/note.c"

#include <stdlib.h>

#include "unit/base/unit.h"

static struct slice long_of(size_t len)
{
    static char bytes[NOTE_VALUE_BYTES_MAX + 1];
    memset(bytes, 'x', sizeof(bytes));
    return (struct slice){bytes, len};
}

static void assert_slice(struct slice got, const char *want)
{
    assert_int_equal(got.len, strlen(want));
    assert_memory_equal(got.ptr ? got.ptr : "", want, got.len);
}

/* A batch yields its changes as they were put, in order. */
static void changes_come_back(void **state)
{
    (void)state;
    struct buf b;
    struct note_change c;
    size_t count = 0;
    buf_init(&b, NOTE_BATCH_BYTES_MAX);
    note_put(&b, SLICE("a"), SLICE("one"));
    note_delete(&b, SLICE("b\0c"));
    note_put(&b, SLICE("d"), SLICE(""));
    assert_false(b.failed);
    struct slice rest = buf_slice(&b);
    assert_int_equal(note_check(rest, &count), 0);
    assert_int_equal(count, 3);
    assert_int_equal(note_next(&rest, &c), 1);
    assert_true(c.put);
    assert_slice(c.key, "a");
    assert_slice(c.value, "one");
    assert_int_equal(note_next(&rest, &c), 1);
    assert_false(c.put);
    assert_int_equal(c.key.len, 3);
    assert_int_equal(note_next(&rest, &c), 1);
    assert_true(c.put);
    assert_slice(c.value, "");
    assert_int_equal(note_next(&rest, &c), 0);
    buf_finish(&b);
}

/* The caps: the greatest is taken, one more fails the buffer. */
static void caps_fail_the_buffer(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, NOTE_BATCH_BYTES_MAX);
    note_put(&b, long_of(NOTE_KEY_BYTES_MAX), long_of(NOTE_VALUE_BYTES_MAX));
    note_delete(&b, long_of(NOTE_KEY_BYTES_MAX));
    assert_false(b.failed);
    size_t count = 0;
    assert_int_equal(note_check(buf_slice(&b), &count), 0);
    assert_int_equal(count, 2);
    note_delete(&b, SLICE(""));
    assert_true(b.failed);
    buf_clear(&b);
    note_put(&b, long_of(NOTE_KEY_BYTES_MAX + 1), SLICE(""));
    assert_true(b.failed);
    buf_clear(&b);
    note_put(&b, SLICE("a"), long_of(NOTE_VALUE_BYTES_MAX + 1));
    assert_true(b.failed);
    assert_int_equal(b.len, 0);
    buf_clear(&b);
    while (!b.failed) {
        note_put(&b, SLICE("a"), long_of(NOTE_VALUE_BYTES_MAX));
    }
    assert_true(b.len <= NOTE_BATCH_BYTES_MAX);
    buf_finish(&b);
}

/* Every prefix of a batch that is not a whole number of changes is refused, as is every kind that
 * does not exist, and lengths beyond the caps. */
static void hostile_bytes_are_refused(void **state)
{
    (void)state;
    struct buf b;
    size_t count = 0;
    buf_init(&b, NOTE_BATCH_BYTES_MAX);
    note_put(&b, SLICE("key"), SLICE("value"));
    size_t first = b.len;
    note_delete(&b, SLICE("other"));
    for (size_t len = 0; len < b.len; len++) {
        int want = len == first ? 0 : ERR_CORRUPT;
        /* A copy of just the length, so that a sanitizer sees a byte too many. */
        char *copy = malloc(len + 1);
        assert_non_null(copy);
        memcpy(copy, b.ptr, len);
        char *tight = realloc(copy, len > 0 ? len : 1);
        assert_non_null(tight);
        assert_int_equal(note_check((struct slice){tight, len}, &count), want);
        free(tight);
    }
    for (unsigned kind = 0; kind < 256; kind++) {
        b.ptr[first] = (char)kind;
        struct slice batch = {b.ptr, b.len};
        assert_int_equal(note_check(batch, &count) == 0, kind == KIND_DELETE);
    }
    b.ptr[first] = KIND_DELETE;
    bytes_put_u16(b.ptr + first + 1, 0);
    count = 77;
    assert_int_equal(note_check(buf_slice(&b), &count), ERR_CORRUPT);
    buf_finish(&b);
    const char key[] = {KIND_PUT, 1, 0, 'k', (char)0xff, (char)0xff, (char)0xff, (char)0xff, 'v'};
    assert_int_equal(note_check((struct slice){key, sizeof(key)}, &count), ERR_CORRUPT);
    assert_int_equal(note_check((struct slice){NULL, 0}, &count), ERR_CORRUPT);
    assert_int_equal(count, 77); /* as it was */
}

/* A batch that is longer than a record may be is refused, however sound. */
static void a_batch_has_a_cap(void **state)
{
    (void)state;
    struct buf b;
    size_t count = 0;
    buf_init(&b, 2 * (size_t)NOTE_BATCH_BYTES_MAX);
    while (b.len <= NOTE_BATCH_BYTES_MAX) {
        assert_int_equal(b.len > 0 ? note_check(buf_slice(&b), &count) : 0, 0);
        note_put(&b, SLICE("a"), long_of(NOTE_VALUE_BYTES_MAX));
    }
    assert_int_equal(note_check(buf_slice(&b), &count), ERR_CORRUPT);
    buf_finish(&b);
}

static bool frees(unsigned deletes, unsigned puts, size_t value)
{
    struct buf b;
    buf_init(&b, NOTE_BATCH_BYTES_MAX);
    for (unsigned i = 0; i < deletes; i++) {
        note_delete(&b, SLICE("a"));
    }
    for (unsigned i = 0; i < puts; i++) {
        note_put(&b, SLICE("b"), long_of(value));
    }
    bool is = note_frees(buf_slice(&b));
    buf_finish(&b);
    return is;
}

/* Only deletions give space back, with at most one short value to remember them by. */
static void what_frees(void **state)
{
    (void)state;
    assert_true(frees(1, 0, 0));
    assert_true(frees(100, 1, NOTE_TOMB_BYTES_MAX));
    assert_false(frees(100, 1, NOTE_TOMB_BYTES_MAX + 1));
    assert_false(frees(100, 2, 0));
    assert_false(frees(0, 1, 0));
    assert_false(frees(0, 0, 0));
    assert_false(note_frees(SLICE("\2\1\0a\3")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_come_back),
        cmocka_unit_test(caps_fail_the_buffer),
        cmocka_unit_test(hostile_bytes_are_refused),
        cmocka_unit_test(a_batch_has_a_cap),
        cmocka_unit_test(what_frees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
