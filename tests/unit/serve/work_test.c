/* What a worker keeps of it, and what is left when memory is out. */
#include "unit/base/fault.h"

#include "serve/work.c"

#include "unit/base/unit.h"

static void take_all(struct worker *w, struct work *all[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        all[i] = work_take(w);
        assert_non_null(all[i]);
    }
}

/* What was given back is taken again, and shows nothing of its last request. */
static void is_taken_again(void **state)
{
    struct worker w = {.spare = NULL};
    struct work *first = work_take(&w);

    (void)state;
    assert_non_null(first);
    first->op = (struct stream_op){.verb = STREAM_APPEND, .name = SLICE("x"), .changed = true};
    first->name_len = 1;
    work_give(&w, first);
#if ASAN_IS_ON /* who still uses it is found out */
    assert_ptr_equal(__asan_region_is_poisoned(first, sizeof(*first)), first);
    assert_true(__asan_address_is_poisoned(&first->name[sizeof(first->name) - 1]));
#endif
    struct work *again = work_take(&w);

    assert_ptr_equal(again, first);
    assert_int_equal(again->name_len, 0);
    assert_null(again->op.name.ptr);
    assert_false(again->op.changed);
    assert_int_equal(again->op.result.page.piece_count, 0);
    work_give(&w, again);
    work_free_spare(&w);
    assert_null(w.spare);
}

/* No more than SPARE_MAX are kept; nothing is given back twice. */
static void few_are_kept(void **state)
{
    struct worker w = {.spare = NULL};
    struct work *all[SPARE_MAX + 2];

    (void)state;
    take_all(&w, all, ARRAY_COUNT(all));
    for (size_t i = 0; i < ARRAY_COUNT(all); i++) {
        work_give(&w, all[i]);
        assert_int_equal(w.spare_count, i < SPARE_MAX ? i + 1 : SPARE_MAX);
    }
    work_give(&w, NULL);
    assert_int_equal(w.spare_count, SPARE_MAX);
    work_free_spare(&w);
    assert_int_equal(w.spare_count, 0);
}

/* Without memory there is what is kept, and no more. */
static void no_memory(void **state)
{
    struct worker w = {.spare = NULL};
    struct work *kept = work_take(&w);

    (void)state;
    work_give(&w, kept);
    fault_countdown = 0;
    assert_ptr_equal(work_take(&w), kept);
    assert_null(work_take(&w));
    fault_countdown = -1;
    work_give(&w, kept);
    work_free_spare(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_taken_again),
        cmocka_unit_test(few_are_kept),
        cmocka_unit_test(no_memory),
    };

    return UNIT_RUN(tests);
}
