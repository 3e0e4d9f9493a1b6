/* Roles by name and back. */
#include "thread/role.c"

#include "unit/base/unit.h"

/* The names that are taken are those that are given; nobody can be made no member by name. */
static void names_lead_back(void **state)
{
    enum member_role role = ROLE_NONE;

    (void)state;
    assert_true(role_parse(role_text(ROLE_OWNER), &role));
    assert_int_equal(role, ROLE_OWNER);
    assert_true(role_parse(role_text(ROLE_MEMBER), &role));
    assert_int_equal(role, ROLE_MEMBER);
    assert_false(role_parse(role_text(ROLE_NONE), &role));
    assert_false(role_parse(SLICE("Owner"), &role));
    assert_false(role_parse(SLICE(""), &role));
    assert_int_equal(role, ROLE_MEMBER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_lead_back),
    };

    return UNIT_RUN(tests);
}
