/* Roles and their names. */
#include "thread/role.h"

struct slice role_text(enum member_role role)
{
    switch (role) {
    case ROLE_OWNER:
        return SLICE("owner");
    case ROLE_MEMBER:
        return SLICE("member");
    case ROLE_NONE:
        break;
    }
    return SLICE("none");
}

bool role_parse(struct slice text, enum member_role *ret_role)
{
    if (slice_equal(text, SLICE("owner"))) {
        *ret_role = ROLE_OWNER;
    } else if (slice_equal(text, SLICE("member"))) {
        *ret_role = ROLE_MEMBER;
    } else {
        return false;
    }
    return true;
}
