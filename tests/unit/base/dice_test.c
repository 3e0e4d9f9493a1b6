/* The numbers are those of splitmix64, so that a seed that a test once printed stays good. */
#include "unit/base/unit.h"
#include "base/attr.h"
#include "base/dice.h"

static void test_numbers(void **context)
{
    static const uint64_t expected[] = {
        UINT64_C(6457827717110365317),  UINT64_C(3203168211198807973),
        UINT64_C(9817491932198370423),  UINT64_C(4593380528125082431),
        UINT64_C(16408922859458223821),
    };
    uint64_t state = 1234567;

    (void)context;
    for (size_t i = 0; i < ARRAY_COUNT(expected); i++) {
        assert_int_equal(dice_roll(&state), expected[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers)};

    return UNIT_RUN(tests);
}
