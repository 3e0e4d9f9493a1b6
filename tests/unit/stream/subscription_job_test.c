/* How many changes are on their way at once, and what is left behind and swept up. */
#include "stream/subscription_job.c"

#include "unit/stream/subscription_rig.h"

/* One append wakes very many: their batches go to the log a bounded number at a time, and a request
 * does not wait behind all of them. */
static void test_notes_max(void **state)
{
    (void)state;
    char id[16];
    const unsigned count = 3 * SUBSCRIPTION_NOTES_MAX;
    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(id, sizeof(id), "s%u", i);
        assert_int_equal(sub_put(id, PULL("events/*", "")), 201);
    }
    make("wake/pool", "[]");
    assert_int_equal(rig_put(&rig, "events/a", JSON, "[1]"), 0);
    (void)subscriptions_step(subs);
    assert_int_equal(subs->notes, SUBSCRIPTION_NOTES_MAX);
    struct subscription_op op;
    op_init(&op, SUBSCRIPTION_GET, "s0", "");
    answered_yet = false;
    subscription_start(subs, &op);
    rig_commit(&rig);
    (void)subscriptions_step(subs);
    assert_true(answered_yet);
    buf_finish(&op.answer);
    assert_int_equal(subs->notes, SUBSCRIPTION_NOTES_MAX);
    sub_run();
    assert_int_equal(subs->counts.wakes, count);
    assert_int_equal(subs->counts.events_written, count);
}

/* A tombstone that is to be forgotten stays, if its id was taken again in the meantime. */
static void test_id_taken_again(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", HOOK("a", "")), 201);
    garbage_add(subs, 0, SLICE("s"));
    garbage_add(subs, 0, SLICE("nobody"));
    sub_run();
    assert_true(list_empty(&subs->garbage));
    sub_crash(false);
    assert_int_equal(sub_do(SUBSCRIPTION_GET, "s", ""), 200);
}

static int refuse_stage(struct store *s, const struct record *r, struct block *body_block,
                        log_pos *ret_end)
{
    (void)s;
    (void)r;
    (void)body_block;
    (void)ret_end;
    return ERR_NOSPC;
}

/* What the log refuses to take away is taken away later. */
static void test_refused(void **state)
{
    (void)state;
    make("a/x", "[1]");
    assert_int_equal(sub_put("s", HOOK("a/*", "")), 201);
    uint64_t number = find("s")->number;
    assert_int_equal(sub_do(SUBSCRIPTION_DELETE, "s", ""), 204);
    const struct store_ops *real = rig.engine->store->ops;
    struct store_ops refusing = *real;
    refusing.stage = refuse_stage;
    rig.engine->store->ops = &refusing;
    garbage_add(subs, number, SLICE("a/y"));
    sub_run();
    assert_false(list_empty(&subs->garbage));
    assert_true(subs->hold_until_ms > core_mono_ms(subs));
    rig.engine->store->ops = real;
    sub_sleep(HOLD_MS);
    assert_true(list_empty(&subs->garbage));
    assert_true(list_empty(&subs->burning));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_notes_max),
        TEST(test_id_taken_again),
        TEST(test_refused),
    };
    return UNIT_RUN(tests);
}
