/* The list of tests that every back end of the store must pass. A back end's test program defines
 * rig_open, rig_close and rig_reopen (see store_rig.h) and runs STORE_CASES. */
#ifndef ARBE_TESTS_UNIT_THREAD_STORE_CASES_H
#define ARBE_TESTS_UNIT_THREAD_STORE_CASES_H

#include "unit/thread/store_cases_agents.h"
#include "unit/thread/store_cases_houses.h"
#include "unit/thread/store_cases_races.h"
#include "unit/thread/store_cases_threads.h"

/* By the back end: a rig with an empty store in *state, and its end. */
static int rig_open(void **state);
static int rig_close(void **state);

#define STORE_CASE(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)

#define STORE_CASES                                                                             \
    STORE_CASE(keeps_agents), STORE_CASE(refuses_agents), STORE_CASE(changes_agents),           \
        STORE_CASE(deletes_agents), STORE_CASE(spares_last_owners), STORE_CASE(shows_agents),   \
        STORE_CASE(shows_who_was_there), STORE_CASE(pages_agents), STORE_CASE(keeps_keys),      \
        STORE_CASE(refuses_keys), STORE_CASE(limits_keys), STORE_CASE(keeps_sessions),          \
        STORE_CASE(sweeps_sessions), STORE_CASE(makes_houses), STORE_CASE(refuses_houses),      \
        STORE_CASE(makes_first_owner), STORE_CASE(lists_houses), STORE_CASE(renames_houses),    \
        STORE_CASE(deletes_houses), STORE_CASE(changes_members), STORE_CASE(ends_tokens),       \
        STORE_CASE(refuses_members), STORE_CASE(pages_members), STORE_CASE(claims_as_stranger), \
        STORE_CASE(claims_as_agent), STORE_CASE(refuses_invites), STORE_CASE(keeps_threads),    \
        STORE_CASE(refuses_threads), STORE_CASE(answers_access), STORE_CASE(changes_threads),   \
        STORE_CASE(moves_status), STORE_CASE(deletes_threads), STORE_CASE(lists_threads),       \
        STORE_CASE(pages_threads), STORE_CASE(moves_recency), STORE_CASE(keeps_configs),        \
        STORE_CASE(keeps_index), STORE_CASE(keeps_director), STORE_CASE(keeps_outbox),          \
        STORE_CASE(sums_usage), STORE_CASE(sums_many), STORE_CASE(refuses_usage),               \
        STORE_CASE(runs_out_of_arena), STORE_CASE(races_for_an_invite),                         \
        STORE_CASE(races_of_last_owners), STORE_CASE(races_of_recency),                         \
        STORE_CASE(races_of_configs), STORE_CASE(races_of_usage), STORE_CASE(races_of_status)

#endif
