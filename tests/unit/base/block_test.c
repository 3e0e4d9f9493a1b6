/* Shared blocks: who frees them, also when many threads let go at once. */
#include "unit/base/unit.h"

#include "unit/base/fault.h"

#include "base/block.c"

#include <pthread.h>
#include <string.h>

#define THREADS 4
#define ROUNDS  10000

/* A block begins with one reference, no bytes in use and room for its capacity. */
static void test_begins_empty_with_one_reference(void **state)
{
    struct block *b = block_try_create(100);

    (void)state;
    assert_non_null(b);
    assert_int_equal(b->refs, 1);
    assert_int_equal(b->cap, 100);
    assert_int_equal(b->len, 0);
    memset(b->data, 'x', 100);
    block_unref(b);
    b = block_try_create(0);
    assert_non_null(b);
    block_unref(b);
}

/* The block lives until the last reference goes; letting go of nothing is allowed. */
static void test_last_reference_frees(void **state)
{
    struct block *b = block_try_create(1);

    (void)state;
    assert_non_null(b);
    assert_ptr_equal(block_ref(b), b);
    block_unref(b);
    assert_int_equal(b->refs, 1);
    b->data[0] = 'x';
    block_unref(b);
    block_unref(NULL);
}

/* No block without memory, and none above a GiB, whose length would not fit. */
static void test_refuses_what_does_not_fit(void **state)
{
    (void)state;
    fault_countdown = 0;
    assert_null(block_try_create(1));
    fault_countdown = -1;
    assert_null(block_try_create((size_t)CAP_MAX + 1));
    assert_null(block_try_create(SIZE_MAX));
}

/* A block grows with its bytes; what does not fit leaves it as it was. */
static void test_grows(void **state)
{
    struct block *b = block_try_create(3);

    (void)state;
    assert_non_null(b);
    memcpy(b->data, "abc", 3);
    b->len = 3;
    b = block_try_grow(b, 1 << 20);
    assert_non_null(b);
    assert_int_equal(b->cap, 1 << 20);
    assert_int_equal(b->len, 3);
    assert_memory_equal(b->data, "abc", 3);
    assert_null(block_try_grow(b, (size_t)CAP_MAX + 1));
    assert_int_equal(b->cap, 1 << 20);
    block_unref(b);
}

static void *take_and_release(void *context)
{
    struct block *b = context;

    for (int i = 0; i < ROUNDS; i++) {
        block_ref(b);
        assert(b->data[0] == 'x');
        block_unref(b);
    }
    block_unref(b);
    return NULL;
}

/* References of several threads add up; the last thread to let go frees. */
static void test_threads_share_a_block(void **state)
{
    pthread_t threads[THREADS];
    struct block *b = block_try_create(1);

    (void)state;
    assert_non_null(b);
    b->data[0] = 'x';
    for (int i = 0; i < THREADS; i++) {
        block_ref(b);
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_release, b), 0);
    }
    block_unref(b);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_begins_empty_with_one_reference),
        cmocka_unit_test(test_last_reference_frees),
        cmocka_unit_test(test_refuses_what_does_not_fit),
        cmocka_unit_test(test_grows),
        cmocka_unit_test(test_threads_share_a_block),
    };

    return UNIT_RUN(tests);
}
