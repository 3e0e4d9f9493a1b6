/* Who may do what: owner, member, and who is neither; by the records and by heart. */
#include "app/may.c"

#include "unit/app/desk_rig.h"

static struct desk desk;

static int set_up(void **state)
{
    (void)state;
    desk_open(&desk);
    desk_fill(&desk);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    desk_close(&desk);
    return 0;
}

/* 0: it may; else the status of the refusal. */
static int thread_as(const char *agent, const char *thread, enum member_role at_least)
{
    struct api_call c;

    desk_call(&desk, &c, agent);
    int result = may_thread(&c, slice_of(thread), at_least);
    int status = result == API_DONE ? 0 : api_error_status(c.error.code);

    desk_end(&c);
    return status;
}

static int house_as(const char *agent, const char *house, enum member_role at_least)
{
    struct api_call c;
    struct house_record record;

    desk_call(&desk, &c, agent);
    int result = may_house(&c, slice_of(house), at_least, &record);
    int status = result == API_DONE ? 0 : api_error_status(c.error.code);

    desk_end(&c);
    return status;
}

static int by_heart_as(const char *agent, const char *thread)
{
    struct api_call c;

    desk_call(&desk, &c, agent);
    int result = may_thread_by_heart(&c, slice_of(thread));

    desk_end(&c);
    return result;
}

static void roles_decide(void **state)
{
    const struct {
        const char *agent;
        enum member_role at_least;
        int status;
    } cases[] = {
        {"a", ROLE_MEMBER, 0},  {"a", ROLE_OWNER, 0},    {"m", ROLE_MEMBER, 0},
        {"m", ROLE_OWNER, 403}, {"o", ROLE_MEMBER, 403}, {"o", ROLE_OWNER, 403},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        assert_int_equal(house_as(cases[i].agent, "h", cases[i].at_least), cases[i].status);
        assert_int_equal(thread_as(cases[i].agent, "p", cases[i].at_least), cases[i].status);
    }
    assert_int_equal(house_as("a", "none", ROLE_MEMBER), 404);
    assert_int_equal(thread_as("a", "none", ROLE_MEMBER), 404);
}

/* What the records said is known by heart until something is taken away; strangers are asked anew
 * each time. */
static void what_is_known_is_forgotten(void **state)
{
    (void)state;
    assert_int_equal(by_heart_as("m", "p"), API_PENDING);
    assert_int_equal(thread_as("m", "p", ROLE_MEMBER), 0);
    assert_int_equal(by_heart_as("m", "p"), API_DONE);
    assert_int_equal(by_heart_as("a", "p"), API_PENDING);
    assert_int_equal(thread_as("o", "p", ROLE_MEMBER), 403);
    assert_int_equal(by_heart_as("o", "p"), API_PENDING);
    FINE(store_member_remove(desk.app.store, SLICE("h"), SLICE("m"), NULL, 0, msg));
    grants_forget(desk.app.grants);
    assert_int_equal(by_heart_as("m", "p"), API_PENDING);
    assert_int_equal(thread_as("m", "p", ROLE_MEMBER), 403);
}

/* An agent is changed by itself and by who made it; others are told why not. */
static void agents_are_their_own(void **state)
{
    const struct agent_record bot = {
        .id = SLICE("b"), .name = SLICE("B"), .handle = SLICE("b"), .created_by = SLICE("m")};
    const struct {
        const char *caller;
        const char *agent;
        int status;
    } cases[] = {{"b", "b", 0},   {"m", "b", 0},   {"a", "b", 403},
                 {"a", "m", 403}, {"o", "m", 403}, {"a", "none", 404}};

    (void)state;
    FINE(store_agent_create(desk.app.store, &bot, NULL, msg));
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct api_call c;
        struct agent_record record;

        desk_call(&desk, &c, cases[i].caller);
        int result = may_agent(&c, slice_of(cases[i].agent), &record);

        assert_int_equal(result == API_DONE ? 0 : api_error_status(c.error.code), cases[i].status);
        desk_end(&c);
    }
    FINE(store_agent_delete(desk.app.store, SLICE("b"), 9, NULL, 0, msg));
    struct api_call c;
    struct agent_record record;

    desk_call(&desk, &c, "m");
    assert_int_equal(may_agent(&c, SLICE("b"), &record), API_FAILED);
    assert_int_equal(c.error.code, API_NOT_FOUND);
    desk_end(&c);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest may_tests[] = {
        TEST(roles_decide),
        TEST(what_is_known_is_forgotten),
        TEST(agents_are_their_own),
    };

    return UNIT_RUN(may_tests);
}
