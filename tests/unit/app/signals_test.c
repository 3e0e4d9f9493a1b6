/* Signals are composed before the change that they tell of, in its order. */
#include "app/signals.c"

#include "unit/app/desk_rig.h"

static struct desk desk;
static struct api_call call;

static int set_up(void **state)
{
    (void)state;
    desk_open(&desk);
    desk_call(&desk, &call, "agent");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    desk_end(&call);
    desk_close(&desk);
    return 0;
}

static void they_stand_in_order(void **state)
{
    struct signals s = {.count = 0};
    char wanted[256];

    (void)state;
    signals_add_stream(&s, OUTBOX_CREATE, SLICE("t"));
    signals_add(&s, &call, SLICE("t"), SLICE("agent"), "signal.thread.created", NULL);
    signals_add(
        &s, &call, SLICE("t"), SLICE(""), "signal.thread.renamed",
        (struct signal_member[]){
            {"name", SLICE("a\"b")}, {"left", {NULL, 0}}, {"x", SLICE("")}, {NULL, {NULL, 0}}});
    assert_int_equal(signals_check(&s, &call), 0);
    assert_int_equal(s.count, 3);
    assert_int_equal(s.items[0].kind, OUTBOX_CREATE);
    assert_int_equal(s.items[1].kind, OUTBOX_APPEND);
    assert_true(slice_compare(s.items[1].entry_id, s.items[2].entry_id) < 0);
    (void)snprintf(
        wanted, sizeof(wanted),
        "{\"id\":\"%.*s\",\"ts\":1000000,\"payload\":{\"type\":\"signal.thread.renamed\","
        "\"name\":\"a\\\"b\",\"x\":\"\"}}",
        (int)s.items[2].entry_id.len, s.items[2].entry_id.ptr);
    assert_true(slice_equal(s.items[2].entry, slice_of(wanted)));
}

/* One that cannot be composed fails all, so that no change is made without it. */
static void one_failure_fails_all(void **state)
{
    struct signals s = {.count = 0};

    (void)state;
    arena_finish(&call.memory);
    arena_init(&call.memory, 20 * KIB);
    for (unsigned i = 0; i < SIGNALS_MAX && !s.failed; i++) {
        signals_add(&s, &call, SLICE("t"), SLICE("agent"), "signal.thread.created", NULL);
    }
    assert_true(s.failed);
    signals_add_stream(&s, OUTBOX_DROP, SLICE("t"));
    assert_int_equal(signals_check(&s, &call), API_FAILED);
    assert_int_equal(call.error.code, API_BUSY);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest signal_tests[] = {
        TEST(they_stand_in_order),
        TEST(one_failure_fails_all),
    };

    return UNIT_RUN(signal_tests);
}
