/* Adding up what several workers counted. */
#include "serve/tally.c"

#include "unit/base/unit.h"

/* Every counter of both is in the sum; gauges may go down in between. */
static void test_add(void **state)
{
    static struct tally a;
    static struct tally b;
    static struct tally sum;
    struct histogram_totals appends = {0};

    (void)state;
    counter_add(&a.requests[HTTP_GET][http_status_index(200)], 2);
    counter_add(&b.requests[HTTP_GET][http_status_index(200)], 3);
    counter_add(&b.requests[HTTP_OTHER][http_status_index(999)], 1);
    tally_error(&a, ERR_NOTFOUND);
    tally_error(&b, ERR_NOTFOUND);
    tally_error(&b, ERR_FILEKIND);
    counter_add(&a.accepted, 5);
    counter_add(&b.refused, 6);
    counter_add(&a.request_bytes, 7);
    counter_add(&b.response_bytes, 8);
    counter_add(&a.sse_streams, 2);
    counter_add(&a.sse_streams, UINT64_MAX);
    counter_add(&b.long_polls, 1);
    histogram_observe(&a.append_us, 10);
    histogram_observe(&b.append_us, 20);
    tally_add(&sum, &a);
    tally_add(&sum, &b);
    assert_int_equal(counter_get(&sum.requests[HTTP_GET][http_status_index(200)]), 5);
    assert_int_equal(counter_get(&sum.requests[HTTP_OTHER][HTTP_STATUS_COUNT]), 1);
    assert_int_equal(counter_get(&sum.errors[ERR_INDEX_NOTFOUND]), 2);
    assert_int_equal(counter_get(&sum.errors[ERR_INDEX_FILEKIND]), 1);
    assert_int_equal(counter_get(&sum.accepted), 5);
    assert_int_equal(counter_get(&sum.refused), 6);
    assert_int_equal(counter_get(&sum.request_bytes), 7);
    assert_int_equal(counter_get(&sum.response_bytes), 8);
    assert_int_equal(counter_get(&sum.sse_streams), 1);
    assert_int_equal(counter_get(&sum.long_polls), 1);
    histogram_add_to(&sum.append_us, &appends);
    assert_int_equal(appends.sum, 30);
    assert_int_equal(histogram_count_to(&appends, HISTOGRAM_BOUNDS), 2);
}

/* No field is forgotten: a tally of ones gives a sum of ones. */
static void test_all_fields(void **state)
{
    static struct tally ones;
    static struct tally sum;
    const struct counter *counters = (const struct counter *)&sum;

    (void)state;
    for (size_t i = 0; i < sizeof(ones) / sizeof(struct counter); i++) {
        counter_set((struct counter *)&ones + i, 1);
    }
    tally_add(&sum, &ones);
    for (size_t i = 0; i < sizeof(sum) / sizeof(struct counter); i++) {
        assert_int_equal(counter_get(&counters[i]), 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_add),
        cmocka_unit_test(test_all_fields),
    };

    return UNIT_RUN(tests);
}
