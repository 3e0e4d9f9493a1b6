/* Every pair of statuses, and their names. */
#include "thread/status.c"

#include "unit/base/unit.h"

/* The whole table of moves: a row for where a thread is, a column for where it is to go. */
static void test_moves(void **state)
{
    static const char *const rows[THREAD_STATUS_COUNT] = {
        /* open idle running completed failed cancelled */
        [THREAD_OPEN] = "yyyyyy",      [THREAD_IDLE] = "yyyyyy",   [THREAD_RUNNING] = "nyyyyy",
        [THREAD_COMPLETED] = "ynyynn", [THREAD_FAILED] = "ynynyn", [THREAD_CANCELLED] = "ynynny",
    };
    (void)state;
    for (enum thread_status from = 0; from < THREAD_STATUS_COUNT; from++) {
        for (enum thread_status to = 0; to < THREAD_STATUS_COUNT; to++) {
            if (status_may_move(from, to) != (rows[from][to] == 'y')) {
                fail_msg("%s to %s", status_text(from), status_text(to));
            }
        }
    }
}

/* Three statuses end a run. */
static void test_terminal(void **state)
{
    (void)state;
    assert_false(status_is_terminal(THREAD_OPEN));
    assert_false(status_is_terminal(THREAD_IDLE));
    assert_false(status_is_terminal(THREAD_RUNNING));
    assert_true(status_is_terminal(THREAD_COMPLETED));
    assert_true(status_is_terminal(THREAD_FAILED));
    assert_true(status_is_terminal(THREAD_CANCELLED));
}

/* Names are read as they are written, and nothing else is. */
static void test_names(void **state)
{
    static const char *const bad[] = {"", "Open", "open ", "ope", "opened", "archived", "unknown"};
    enum thread_status status = THREAD_STATUS_COUNT;
    (void)state;
    for (enum thread_status i = 0; i < THREAD_STATUS_COUNT; i++) {
        assert_true(status_parse(slice_of(status_text(i)), &status));
        assert_int_equal(status, i);
        assert_non_null(strstr(THREAD_STATUS_TEXTS, status_text(i)));
    }
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_false(status_parse(slice_of(bad[i]), &status));
    }
    assert_false(status_parse(SLICE("open\0"), &status));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_terminal),
        cmocka_unit_test(test_names),
    };
    return UNIT_RUN(tests);
}
