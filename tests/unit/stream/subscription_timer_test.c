/* The heap of timers against a plain list. */
#include "stream/subscription_timer.c"

#include "base/dice.h"
#include "unit/base/unit.h"

#define COUNT 200

static uint64_t seed = 1;

static uint64_t rnd(uint64_t limit)
{
    return dice_roll(&seed) % limit;
}

static void check(const struct subscriptions *s, const struct subscription *subs)
{
    uint64_t least = UINT64_MAX;
    size_t set = 0;
    for (size_t i = 0; i < COUNT; i++) {
        if (subs[i].timer > 0) {
            assert_ptr_equal(s->timers[subs[i].timer - 1], &subs[i]);
            least = subs[i].due_ms < least ? subs[i].due_ms : least;
            set++;
        }
    }
    assert_int_equal(s->timer_count, set);
    const struct subscription *first = timer_first(s);
    assert_true(first ? first->due_ms == least : set == 0);
}

static void test_random(void **state)
{
    (void)state;
    static struct subscriptions s;
    static struct subscription subs[COUNT];
    s.by_id.count = COUNT - 1;
    while (s.timer_cap < COUNT) {
        assert_int_equal(timer_reserve(&s), 0);
    }
    for (int n = 0; n < 20000; n++) {
        uint64_t due = rnd(3) == 0 ? UINT64_MAX : rnd(100);
        timer_set(&s, &subs[rnd(COUNT)], due);
        check(&s, subs);
    }
    uint64_t before = 0;
    for (struct subscription *sub; (sub = timer_first(&s)) != NULL;) {
        assert_true(sub->due_ms >= before);
        before = sub->due_ms;
        timer_set(&s, sub, UINT64_MAX);
        check(&s, subs);
    }
    free(s.timers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
    };
    return UNIT_RUN(tests);
}
