/* The set of media types. */
#include "stream/media.c"

#include "unit/base/unit.h"

/* The set keeps one copy per distinct text, and none when nobody refers to it. */
static void test_set(void **state)
{
    (void)state;
    struct media_set set;
    media_set_init(&set);
    struct media *a = media_get(&set, SLICE("text/plain"));
    struct media *b = media_get(&set, SLICE("text/plain"));
    struct media *c = media_get(&set, SLICE("Text/Plain"));
    assert_ptr_equal(a, b);
    assert_ptr_not_equal(a, c);
    assert_true(slice_equal(media_text(c), SLICE("Text/Plain")));
    media_put(&set, a);
    media_put(&set, b);
    media_put(&set, c);
    media_put(&set, NULL);
    assert_int_equal(set.types.count, 0);
    media_set_finish(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),
    };
    return UNIT_RUN(tests);
}
