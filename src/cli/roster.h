/* The names of those who wrote in a thread: its house's members, read once, and whoever else turns
 * up, asked for when that happens. Kept in the call's memory. */
#ifndef ARBE_CLI_ROSTER_H
#define ARBE_CLI_ROSTER_H

#include "cli/app_call.h"

struct roster_name {
    struct slice id;
    struct slice name;
};

struct roster {
    /* private */
    struct app_call *call;
    struct roster_name *names;
    size_t count;
    size_t room;
};

/* Reads the members of the thread's house. 0, or an exit code after having said why. */
int roster_load(struct roster *r, struct app_call *call, const char *thread_id) MUST_USE;

/* The name of an agent, as long as the call lives; the beginning of its id where the API tells none
 * or memory is out. May block on the API. */
struct slice roster_name(struct roster *r, struct slice agent_id);

/* Frees what the call's memory does not hold. Accepts a zeroed roster. */
void roster_finish(struct roster *r);

#endif
