/* The reserve for a full disk. */
#include "log/space.c"

#include "sim/fakedisk.h"
#include "unit/base/unit.h"

/* The reserve is a share of what is free, is made once, and comes back after it was given up; where
 * little is free there is none. */
static void test_reserve(void **state)
{
    (void)state;
    struct fakedisk *disk = fakedisk_create(1);
    fakedisk_add_dir(disk, "/d");
    struct space s = {.sys = fakedisk_sys(disk), .dir = "/d", .path = "/d/reserve"};
    fakedisk_set_capacity(disk, 2 * MIB);
    space_make_reserve(&s);
    assert_false(s.holds_reserve);
    assert_false(space_give_reserve(&s));
    fakedisk_set_capacity(disk, 16 * MIB);
    space_make_reserve(&s);
    assert_true(s.holds_reserve);
    assert_int_equal(space_free(&s), 15 * MIB);
    space_make_reserve(&s);
    assert_int_equal(space_free(&s), 15 * MIB);
    struct space next = {.sys = fakedisk_sys(disk), .dir = "/d", .path = "/d/reserve"};
    space_make_reserve(&next);
    assert_true(next.holds_reserve);
    assert_int_equal(space_free(&next), 15 * MIB);
    assert_true(space_give_reserve(&s));
    assert_int_equal(space_free(&s), 16 * MIB);
    fakedisk_set_capacity(disk, UINT64_MAX);
    space_make_reserve(&s);
    uint64_t size = 0;
    assert_true(fakedisk_file_size(disk, "/d/reserve", &size));
    assert_int_equal(size, RESERVE_BYTES_MAX);
    fakedisk_destroy(disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reserve),
    };
    return UNIT_RUN(tests);
}
