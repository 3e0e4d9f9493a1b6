/* The request arena: alignment, its cap, and that one call frees everything. */
#include "unit/base/unit.h"

#include "unit/base/fault.h"

#include "base/arena.c"

/* Pieces are aligned for any type, do not overlap, and keep what is written to them. */
static void test_pieces_are_aligned_and_apart(void **state)
{
    unsigned char *pieces[300];
    struct arena a;

    (void)state;
    arena_init(&a, 1u << 20);
    for (size_t i = 0; i < ARRAY_COUNT(pieces); i++) {
        pieces[i] = arena_try_alloc(&a, i * 5);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % ALIGNMENT, 0);
        memset(pieces[i], (int)(i & 0xff), i * 5);
    }
    for (size_t i = 0; i < ARRAY_COUNT(pieces); i++) {
        for (size_t j = 0; j < i * 5; j++) {
            assert_int_equal(pieces[i][j], i & 0xff);
        }
    }
    arena_finish(&a);
    assert_null(a.blocks);
    assert_int_equal(a.used, 0);
}

/* The arena hands out its maximum, counted in aligned pieces, and no more; freeing starts anew. */
static void test_cap_is_kept(void **state)
{
    struct arena a;

    (void)state;
    arena_init(&a, 10 * ALIGNMENT);
    for (int round = 0; round < 3; round++) {
        assert_non_null(arena_try_alloc(&a, 8 * ALIGNMENT));
        assert_null(arena_try_alloc(&a, 2 * ALIGNMENT + 1));
        assert_non_null(arena_try_alloc(&a, 1));
        assert_non_null(arena_try_alloc(&a, 0));
        assert_null(arena_try_alloc(&a, 0));
        arena_finish(&a);
    }
}

/* Sizes that would wrap round are refused. */
static void test_absurd_sizes(void **state)
{
    struct arena a;

    (void)state;
    arena_init(&a, SIZE_MAX);
    assert_null(arena_try_alloc(&a, SIZE_MAX));
    assert_null(arena_try_alloc(&a, SIZE_MAX - ALIGNMENT));
    assert_null(arena_try_copy(&a, (struct slice){"", SIZE_MAX}));
    assert_non_null(arena_try_alloc(&a, 1));
    arena_finish(&a);
}

/* A large piece does not end the block that small ones share. */
static void test_large_piece_leaves_the_block(void **state)
{
    struct arena a;
    char *first;
    char *second;

    (void)state;
    arena_init(&a, 1u << 20);
    first = arena_try_alloc(&a, 10);
    assert_non_null(arena_try_alloc(&a, 100000));
    second = arena_try_alloc(&a, 10);
    assert_non_null(second);
    if (!PIECE_BLOCKS) {
        assert_ptr_equal(second, first + ALIGNMENT);
    }
    arena_finish(&a);
}

/* Copies end with a NUL that the slice did not have. */
static void test_copy_terminates(void **state)
{
    struct arena a;
    char *copy;

    (void)state;
    arena_init(&a, 1000);
    copy = arena_try_copy(&a, (struct slice){"abcdef", 3});
    assert_string_equal(copy, "abc");
    copy = arena_try_copy(&a, (struct slice){NULL, 0});
    assert_string_equal(copy, "");
    arena_finish(&a);
}

/* Zeroed and fresh arenas are finished without harm, also twice. */
static void test_finish_accepts_empty(void **state)
{
    struct arena a = {0};

    (void)state;
    arena_finish(&a);
    assert_null(arena_try_alloc(&a, 1));
    arena_init(&a, 10);
    arena_finish(&a);
    arena_finish(&a);
}

/* Whichever allocation fails, the arena says so, stays usable and leaks nothing. */
static void test_every_failed_allocation_is_told(void **state)
{
    const size_t sizes[] = {10, 2000, 5000, 3000, 900, 900, 900, 900, 900, 100000, 1};
    long round = -1;
    bool failed;

    (void)state;
    do {
        struct arena a;

        arena_init(&a, 1u << 20);
        fault_countdown = ++round;
        failed = false;
        for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
            char *piece = arena_try_alloc(&a, sizes[i]);

            failed = failed || piece == NULL;
            if (piece != NULL) {
                memset(piece, 'x', sizes[i]);
            }
        }
        fault_countdown = -1;
        assert_non_null(arena_try_alloc(&a, 10));
        arena_finish(&a);
    } while (failed);
    assert_in_range(round, 3, ARRAY_COUNT(sizes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_are_aligned_and_apart),
        cmocka_unit_test(test_cap_is_kept),
        cmocka_unit_test(test_absurd_sizes),
        cmocka_unit_test(test_large_piece_leaves_the_block),
        cmocka_unit_test(test_copy_terminates),
        cmocka_unit_test(test_finish_accepts_empty),
        cmocka_unit_test(test_every_failed_allocation_is_told),
    };

    return UNIT_RUN(tests);
}
