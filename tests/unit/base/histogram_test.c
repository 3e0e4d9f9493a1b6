/* Counters and histograms, also while another thread reads them. */
#include "base/histogram.c"

#include "base/attr.h"
#include "unit/base/unit.h"

#include <pthread.h>

/* Each bound belongs to its own bucket, what is one above it to the next. */
static void test_bounds(void **state)
{
    (void)state;
    assert_int_equal(bucket_of(0), 0);
    assert_int_equal(bucket_of(1), 0);
    for (unsigned i = 1; i < HISTOGRAM_BOUNDS; i++) {
        assert_int_equal(bucket_of(1ull << i), i);
        assert_int_equal(bucket_of((1ull << i) + 1), i + 1);
    }
    assert_int_equal(bucket_of(3), 2);
    assert_int_equal(bucket_of(1ull << 32), HISTOGRAM_BOUNDS);
    assert_int_equal(bucket_of(UINT64_MAX), HISTOGRAM_BOUNDS);
}

/* Against a naive count: every value up to a bound, and all of them beyond the last. */
static void test_counts(void **state)
{
    static const uint64_t values[] = {0, 1,    2,    2,    3,          4,
                                      5, 1000, 1024, 1025, 1ull << 31, 1ull << 40};
    struct histogram h = {0};
    struct histogram_totals totals = {0};
    uint64_t sum = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(values); i++) {
        histogram_observe(&h, values[i]);
        sum += values[i];
    }
    histogram_add_to(&h, &totals);
    assert_int_equal(totals.sum, sum);
    for (unsigned bound = 0; bound < HISTOGRAM_BOUNDS; bound++) {
        uint64_t wanted = 0;

        for (size_t i = 0; i < ARRAY_COUNT(values); i++) {
            wanted += values[i] <= 1ull << bound;
        }
        assert_int_equal(histogram_count_to(&totals, bound), wanted);
    }
    assert_int_equal(histogram_count_to(&totals, HISTOGRAM_BOUNDS), ARRAY_COUNT(values));
    assert_int_equal(histogram_count_to(&totals, UINT32_MAX), ARRAY_COUNT(values));
}

/* The histograms of several threads add up. */
static void test_totals_add_up(void **state)
{
    struct histogram a = {0};
    struct histogram b = {0};
    struct histogram_totals totals = {0};

    (void)state;
    histogram_observe(&a, 7);
    histogram_observe(&b, 8);
    histogram_observe(&b, 9);
    histogram_add_to(&a, &totals);
    histogram_add_to(&b, &totals);
    assert_int_equal(totals.sum, 24);
    assert_int_equal(histogram_count_to(&totals, 2), 0);
    assert_int_equal(histogram_count_to(&totals, 3), 2);
    assert_int_equal(histogram_count_to(&totals, 4), 3);
}

/* A counter goes up by any amount, and down by wrapping. */
static void test_counter(void **state)
{
    struct counter c = {0};

    (void)state;
    counter_add(&c, 5);
    counter_add(&c, UINT64_MAX);
    assert_int_equal(counter_get(&c), 4);
    counter_set(&c, 2);
    assert_int_equal(counter_get(&c), 2);
}

#define OBSERVED 200000u

static void *observe(void *context)
{
    for (unsigned i = 0; i < OBSERVED; i++) {
        histogram_observe(context, i % 64);
    }
    return NULL;
}

/* A reader meanwhile never sees a number go back, and in the end sees all. */
static void test_read_meanwhile(void **state)
{
    static struct histogram h;
    pthread_t thread;
    uint64_t last = 0;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, observe, &h), 0);
    while (last < OBSERVED) {
        struct histogram_totals totals = {0};

        histogram_add_to(&h, &totals);
        uint64_t count = histogram_count_to(&totals, HISTOGRAM_BOUNDS);

        assert_true(count >= last && count <= OBSERVED);
        last = count;
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    struct histogram_totals totals = {0};

    histogram_add_to(&h, &totals);
    assert_int_equal(totals.sum, (uint64_t)OBSERVED / 64 * (63 * 64 / 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),         cmocka_unit_test(test_counts),
        cmocka_unit_test(test_totals_add_up),  cmocka_unit_test(test_counter),
        cmocka_unit_test(test_read_meanwhile),
    };

    return UNIT_RUN(tests);
}
