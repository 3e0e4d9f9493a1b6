/* The Prometheus text format, letter by letter. */
#include "serve/exposition.c"

#include <string.h>

#include "unit/base/unit.h"

struct fixture {
    char memory[8192];
    struct buf out;
    struct exposition e;
};

static void init(struct fixture *f)
{
    buf_init_fixed(&f->out, f->memory, sizeof(f->memory));
    f->e = (struct exposition){.out = &f->out};
}

static void expect(struct fixture *f, const char *wanted)
{
    assert_false(f->out.failed);
    f->memory[f->out.len] = '\0';
    assert_string_equal(f->memory, wanted);
}

/* Help, type, then samples, with and without labels. */
static void test_samples(void **state)
{
    struct fixture f;

    (void)state;
    init(&f);
    exposition_begin(&f.e, "a_total", "counter", "What it is.");
    exposition_u64(&f.e, UINT64_MAX);
    exposition_begin(&f.e, "b", "gauge", "Another.");
    exposition_labelled(&f.e, 0, "x=\"%d\",y=\"%s\"", 7, "seven");
    expect(&f, "# HELP a_total What it is.\n# TYPE a_total counter\n"
               "a_total 18446744073709551615\n"
               "# HELP b Another.\n# TYPE b gauge\n"
               "b{x=\"7\",y=\"seven\"} 0\n");
}

/* Seconds have their six places whatever they are. */
static void test_seconds(void **state)
{
    static const struct {
        uint64_t us;
        const char *text;
    } cases[] = {
        {0, "s 0.000000\n"},
        {1, "s 0.000001\n"},
        {999999, "s 0.999999\n"},
        {1000000, "s 1.000000\n"},
        {1796060626630001, "s 1796060626.630001\n"},
        {UINT64_MAX, "s 18446744073709.551615\n"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct fixture f;

        init(&f);
        f.e.name = "s";
        exposition_seconds(&f.e, cases[i].us);
        expect(&f, cases[i].text);
    }
}

/* Buckets are cumulative; what is below the lowest bound counts there, what is above the highest
 * counts under +Inf. */
static void test_histogram(void **state)
{
    struct histogram h = {0};
    struct histogram_totals totals = {0};
    struct fixture f;

    (void)state;
    for (uint64_t value = 1; value <= 32; value *= 2) {
        histogram_observe(&h, value);
    }
    histogram_add_to(&h, &totals);
    init(&f);
    f.e.name = "h";
    exposition_histogram(&f.e, &totals, 2, 4);
    expect(&f, "h_bucket{le=\"4\"} 3\nh_bucket{le=\"8\"} 4\nh_bucket{le=\"16\"} 5\n"
               "h_bucket{le=\"+Inf\"} 6\nh_sum 63\nh_count 6\n");
    init(&f);
    f.e.name = "d_seconds";
    exposition_durations(&f.e, &totals, 0, 1);
    expect(&f, "d_seconds_bucket{le=\"0.000001\"} 1\nd_seconds_bucket{le=\"0.000002\"} 2\n"
               "d_seconds_bucket{le=\"+Inf\"} 6\nd_seconds_sum 0.000063\nd_seconds_count 6\n");
}

/* A buffer that is full fails, and nothing is half said in silence. */
static void test_full(void **state)
{
    struct fixture f;

    (void)state;
    init(&f);
    buf_init_fixed(&f.out, f.memory, 16);
    exposition_begin(&f.e, "a_total", "counter", "What it is.");
    exposition_u64(&f.e, 1);
    assert_true(f.out.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_seconds),
        cmocka_unit_test(test_histogram),
        cmocka_unit_test(test_full),
    };

    return UNIT_RUN(tests);
}
