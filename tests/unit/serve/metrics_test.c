/* The exposition as a whole: every metric once, and room for the largest numbers. What the numbers
 * are is tested against the server, by 62_metrics.test.mjs. */
#include "serve/metrics.c"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "unit/base/unit.h"

#define BYTES_MAX (256 * KIB) /* as operator.c has it */

static size_t occurrences(const char *text, const char *what)
{
    size_t count = 0;

    for (const char *at = text; (at = strstr(at, what)) != NULL; at++) {
        count++;
    }
    return count;
}

static char *format(const struct metrics *m)
{
    struct buf out;

    buf_init(&out, BYTES_MAX);
    metrics_format(&out, m);
    buf_append_char(&out, '\0');
    assert_false(out.failed);
    return out.ptr;
}

/* Each metric of the list is told once, also when nothing happened yet. */
static void test_every_metric(void **state)
{
    static const char *const names[] = {
#define X(id, name, type, help) "# TYPE " name " " type "\n",
        METRIC_LIST(X)
#undef X
    };
    struct metrics *m = calloc(1, sizeof(*m));

    (void)state;
    assert_non_null(m);
    char *text = format(m);

    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        assert_int_equal(occurrences(text, names[i]), 1);
    }
    assert_int_equal(occurrences(text, "# TYPE "), METRIC_COUNT);
    assert_int_equal(occurrences(text, "arbe_http_requests_total{"), 0);
    free(text);
    free(m);
}

/* All numbers at their largest: the limit on the document is far. */
static void test_largest(void **state)
{
    struct metrics *m = malloc(sizeof(*m));

    (void)state;
    assert_non_null(m);
    memset(m, 0xff, sizeof(*m));
    char *text = format(m);

    assert_true(strlen(text) < BYTES_MAX / 4);
    assert_int_equal(occurrences(text, "arbe_http_requests_total{"),
                     HTTP_METHOD_COUNT * (HTTP_STATUS_COUNT + 1));
    assert_int_equal(occurrences(text, "status=\"other\""), HTTP_METHOD_COUNT);
    free(text);
    free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_metric),
        cmocka_unit_test(test_largest),
    };

    return UNIT_RUN(tests);
}
