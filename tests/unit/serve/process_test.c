/* /proc/self/stat, honest and otherwise, and this very process. */
#include "serve/process.c"

#include <string.h>

#include "unit/base/unit.h"

#define GOOD                                                                                     \
    "42 (arbe) S 1 42 42 0 -1 4194560 3000 0 0 0 12 34 0 0 20 0 11 0 987654 123456789 2048 184 " \
    "1 1 0 0 0 0 0\n"

static bool parse(const char *text, struct process_stats *stats)
{
    return process_parse_stat(slice_of(text), 4096, stats);
}

/* The fields are counted behind the name, whatever that contains. */
static void test_stat(void **state)
{
    struct process_stats s = {.fds = 3};

    (void)state;
    assert_true(parse(GOOD, &s));
    assert_int_equal(s.threads, 11);
    assert_int_equal(s.virtual_bytes, 123456789);
    assert_int_equal(s.resident_bytes, 2048 * 4096);
    assert_int_equal(s.fds, 3);
    s = (struct process_stats){0};
    assert_true(parse("42 (a) b (c)) S 1 42 42 0 -1 4 3 0 0 0 12 34 0 0 20 0 5 0 9 77 1 1", &s));
    assert_int_equal(s.threads, 5);
    assert_int_equal(s.virtual_bytes, 77);
    assert_int_equal(s.resident_bytes, 4096);
}

/* What is cut or is no number changes nothing. */
static void test_bad_stat(void **state)
{
    static const char *const texts[] = {
        "",
        "42",
        "42 (arbe)",
        "42 (arbe)S 1",
        "42 (arbe) S 1 42",
        "42 (arbe) S 1 42 42 0 -1 4 3 0 0 0 12 34 0 0 20 0 5 0 9 77",
        "42 (arbe) S 1 42 42 0 -1 4 3 0 0 0 12 34 0 0 20 0 five 0 9 77 1 1",
        "42 (arbe) S 1 42 42 0 -1 4 3 0 0 0 12 34 0 0 20 0 5 0 9 -77 1 1",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        struct process_stats s = {0};

        assert_false(parse(texts[i], &s));
        assert_int_equal(s.threads + s.virtual_bytes + s.resident_bytes, 0);
    }
}

/* Both ways of counting descriptors agree, and see one more when there is one more. */
static void test_self(void **state)
{
    struct process_stats before;
    struct process_stats after;

    (void)state;
    process_read(&before);
    assert_true(before.threads >= 1);
    assert_true(before.resident_bytes > 100000);
    assert_true(before.virtual_bytes >= before.resident_bytes);
    assert_true(before.fds >= 3 && before.fds < before.fds_max);
    assert_int_equal(list_fds(), before.fds);
    int fd = dup(0);

    assert_true(fd >= 0);
    process_read(&after);
    assert_int_equal(after.fds, before.fds + 1);
    assert_true(after.cpu_us >= before.cpu_us);
    assert_int_equal(close(fd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stat),
        cmocka_unit_test(test_bad_stat),
        cmocka_unit_test(test_self),
    };

    return UNIT_RUN(tests);
}
