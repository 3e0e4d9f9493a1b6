/* How far a copy is, as far as offsets let one guess. */
#include "cli/bar.c"

#include "unit/base/unit.h"

static void fractions(void **state)
{
    (void)state;
    assert_true(bar_fraction("0000_0050", "0000_0200") == 0.25);
    assert_true(bar_fraction("0000_0000", "0000_0200") == 0);
    assert_true(bar_fraction("0200", "0200") == 1);
}

/* Where offsets are of no known shape, nothing is guessed. */
static void no_guesses(void **state)
{
    (void)state;
    assert_true(bar_fraction("-1", "0000_0200") < 0);
    assert_true(bar_fraction("abcd", "abce") < 0);
    assert_true(bar_fraction("0000_", "0000_") < 0);
    assert_true(bar_fraction("0000_0300", "0000_0200") < 0);
    assert_true(bar_fraction("0000_0000", "0000_0000") < 0);
    assert_true(bar_fraction("", "") < 0);
    assert_true(bar_fraction("5", "10") < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fractions),
        cmocka_unit_test(no_guesses),
    };

    return UNIT_RUN(tests);
}
