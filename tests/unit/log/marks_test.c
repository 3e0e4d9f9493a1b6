/* Marks: messages, appends and cuts. */
#include "log/marks.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct run {
    char bytes[64];
    size_t len;
};

static void add_mark(struct run *run, uint64_t len, bool append_end)
{
    run->len += marks_put(run->bytes + run->len, len, append_end);
}

static struct slice run_slice(const struct run *run)
{
    return (struct slice){run->bytes, run->len};
}

/* What was put comes back, lengths and ends of appends alike. */
static void reads_back_what_was_put(void **state)
{
    (void)state;
    struct run run = {.len = 0};
    add_mark(&run, 1, false);
    add_mark(&run, 300, true);
    struct bytes_reader r = reader_over(run_slice(&run));
    uint64_t len = 0;
    bool append_end = true;
    assert_true(marks_next(&r, &len, &append_end));
    assert_int_equal(len, 1);
    assert_false(append_end);
    assert_true(marks_next(&r, &len, &append_end));
    assert_int_equal(len, 300);
    assert_true(append_end);
    assert_false(marks_next(&r, &len, &append_end));
    assert_false(r.failed);
}

/* Marks are valid only when they are whole, have no empty message, and sum to the run. */
static void validity_is_exact(void **state)
{
    (void)state;
    struct run run = {.len = 0};
    assert_true(marks_valid(run_slice(&run), 0));
    assert_false(marks_valid(run_slice(&run), 1));
    add_mark(&run, 200, true);
    add_mark(&run, 56, true);
    assert_true(marks_valid(run_slice(&run), 256));
    assert_false(marks_valid(run_slice(&run), 255));
    assert_false(marks_valid(run_slice(&run), 257));
    assert_false(marks_valid((struct slice){run.bytes, 1}, 200));
    run.len = 0;
    add_mark(&run, 0, true);
    assert_false(marks_valid(run_slice(&run), 0));
}

/* A length near 2^63 does not wrap the sum round to a valid one. */
static void huge_lengths_do_not_wrap(void **state)
{
    (void)state;
    struct run run = {.len = 0};
    add_mark(&run, UINT64_MAX >> 1, false);
    add_mark(&run, UINT64_MAX >> 1, false);
    add_mark(&run, 12, true);
    assert_false(marks_valid(run_slice(&run), 10));
}

/* A cut inside a message has a boundary on each side; one at a boundary has it as its floor. */
static void cuts_stand_on_boundaries(void **state)
{
    (void)state;
    struct run run = {.len = 0};
    add_mark(&run, 10, true);
    add_mark(&run, 200, true);
    add_mark(&run, 5, true);
    struct marks_cut cut = marks_cut_at(run_slice(&run), 0);
    assert_int_equal(cut.floor, 0);
    assert_int_equal(cut.ceiling, 10);
    cut = marks_cut_at(run_slice(&run), 9);
    assert_int_equal(cut.floor, 0);
    assert_int_equal(cut.ceiling, 10);
    assert_int_equal(cut.ceiling_marks, 1);
    cut = marks_cut_at(run_slice(&run), 10);
    assert_int_equal(cut.floor, 10);
    assert_int_equal(cut.floor_marks, 1);
    assert_int_equal(cut.ceiling, 210);
    assert_int_equal(cut.ceiling_marks, 3);
    cut = marks_cut_at(run_slice(&run), 214);
    assert_int_equal(cut.floor, 210);
    assert_int_equal(cut.ceiling, 215);
}

/* At or past the end of the run both sides are the end. */
static void cuts_past_the_end_stay_at_the_end(void **state)
{
    (void)state;
    struct run run = {.len = 0};
    add_mark(&run, 10, true);
    struct marks_cut cut = marks_cut_at(run_slice(&run), 10);
    assert_int_equal(cut.floor, 10);
    assert_int_equal(cut.ceiling, 10);
    cut = marks_cut_at(run_slice(&run), UINT64_MAX);
    assert_int_equal(cut.floor, 10);
    assert_int_equal(cut.floor_marks, 1);
    cut = marks_cut_at((struct slice){run.bytes, 0}, 7);
    assert_int_equal(cut.floor, 0);
    assert_int_equal(cut.ceiling, 0);
}

/* A short run has the most whole messages that its two bounds allow, and one where that is none. */
static void runs_are_cut_at_bounds(void **state)
{
    (void)state;
    struct run run = {.len = 0};
    add_mark(&run, EXTENT_BYTES_MAX - 10, true);
    add_mark(&run, 10, true);
    add_mark(&run, 1, true);
    add_mark(&run, EXTENT_BYTES_MAX + 1, true);
    struct slice marks = run_slice(&run);
    struct marks_run first = marks_first_run(marks);
    assert_int_equal(first.len, EXTENT_BYTES_MAX);
    marks = (struct slice){marks.ptr + first.marks_len, marks.len - first.marks_len};
    first = marks_first_run(marks);
    assert_int_equal(first.len, 1);
    assert_int_equal(first.marks_len, 1);
    first = marks_first_run((struct slice){marks.ptr + 1, marks.len - 1});
    assert_int_equal(first.len, EXTENT_BYTES_MAX + 1);
    assert_int_equal(marks_fit(marks, 100, 0).marks_len, 0);

    static char many[RUN_MARKS_BYTES_MAX + 100];
    memset(many, 2 << 1, sizeof(many));
    first = marks_first_run((struct slice){many, sizeof(many)});
    assert_int_equal(first.marks_len, RUN_MARKS_BYTES_MAX);
    assert_int_equal(first.len, 2 * RUN_MARKS_BYTES_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_back_what_was_put),
        cmocka_unit_test(validity_is_exact),
        cmocka_unit_test(huge_lengths_do_not_wrap),
        cmocka_unit_test(cuts_stand_on_boundaries),
        cmocka_unit_test(cuts_past_the_end_stay_at_the_end),
        cmocka_unit_test(runs_are_cut_at_bounds),
    };
    return cmocka_run_group_tests_name("log/marks", tests, NULL, NULL);
}
