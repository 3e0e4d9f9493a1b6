/* When what was typed is a key: its bytes come through a pipe, and the clock is the test's. */
#include "cli/board_live.c"

#include "unit/base/unit.h"

struct rig {
    struct live live;
    int typing; /* the end of the pipe that bytes go into */
    int before; /* what standard input was */
};

static int begin_rig(void **state)
{
    static struct rig rig;
    int ends[2];

    rig = (struct rig){.live = {.code = -1}, .before = dup(STDIN_FILENO)};
    assert_true(rig.before >= 0);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(close(ends[0]), 0);
    rig.typing = ends[1];
    board_view_init(&rig.live.view, 1);
    buf_init_fixed(&rig.live.typed, rig.live.typed_bytes, TYPED_BYTES);
    *state = &rig;
    return 0;
}

static int end_rig(void **state)
{
    struct rig *rig = *state;

    (void)dup2(rig->before, STDIN_FILENO);
    (void)close(rig->before);
    (void)close(rig->typing);
    board_view_finish(&rig->live.view);
    return 0;
}

static void type(struct rig *rig, const char *bytes, int64_t now_ms)
{
    assert_int_equal(write(rig->typing, bytes, strlen(bytes)), strlen(bytes));
    heed_typing(&rig->live, true, now_ms);
}

static void filter(struct rig *rig)
{
    type(rig, "/x\r", 1000);
    assert_int_equal(rig->live.view.filter.len, 1);
    assert_int_equal(rig->live.view.mode, BOARD_VIEW_LIST);
}

/* However often the loop goes around meanwhile, half an arrow key clears no filter. */
static void waits_for_the_rest(void **state)
{
    struct rig *rig = *state;

    filter(rig);
    type(rig, "\033", 2000);
    assert_int_equal(until_whole(&rig->live, 2000), ESCAPE_MS);
    for (int64_t now = 2000; now < 2000 + ESCAPE_MS; now++) {
        heed_typing(&rig->live, false, now);
    }
    type(rig, "[", 2000 + ESCAPE_MS - 1); /* from here on it waits anew */
    assert_int_equal(until_whole(&rig->live, 2000 + ESCAPE_MS), ESCAPE_MS - 1);
    heed_typing(&rig->live, false, 2000 + ESCAPE_MS);
    type(rig, "A", 2000 + ESCAPE_MS);
    assert_int_equal(rig->live.typed.len, 0);
    assert_int_equal(rig->live.view.filter.len, 1);
}

/* Nothing followed in time: it was Esc. */
static void takes_escape(void **state)
{
    struct rig *rig = *state;

    filter(rig);
    type(rig, "\033", 2000);
    assert_int_equal(until_whole(&rig->live, 2000 + ESCAPE_MS - 1), 1);
    assert_int_equal(until_whole(&rig->live, 2000 + ESCAPE_MS), 0);
    heed_typing(&rig->live, false, 2000 + ESCAPE_MS);
    assert_int_equal(rig->live.typed.len, 0);
    assert_int_equal(rig->live.view.filter.len, 0);
    assert_int_equal(rig->live.code, -1);
}

#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, begin_rig, end_rig)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(waits_for_the_rest),
        RIG_TEST(takes_escape),
    };

    return UNIT_RUN(tests);
}
