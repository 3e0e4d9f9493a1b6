/* What a member of a house is. Pure. */
#ifndef ARBE_THREAD_ROLE_H
#define ARBE_THREAD_ROLE_H

#include "base/attr.h"
#include "base/slice.h"

enum member_role {
    ROLE_NONE, /* no member */
    ROLE_MEMBER,
    ROLE_OWNER
};

/* Its name: "owner", "member", "none". Static storage. */
struct slice role_text(enum member_role role);

/* The role of that name; false for another, "none" included. */
bool role_parse(struct slice text, enum member_role *ret_role) MUST_USE;

#endif
