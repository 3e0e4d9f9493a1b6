/* The service as its users see it. */
#include "stream/subscriptions.c"

#include "unit/stream/subscription_rig.h"

static int open_rig(void **state)
{
    (void)state;
    sub_open();
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    sub_close();
    return 0;
}

/* An append to a stream that matches is told to the webhook, and "done" acknowledges it. */
static void test_webhook(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    make("events/a", "[1]");
    assert_int_equal(call_count, 1);
    const char *body = call_body(0);
    assert_string_equal(member(body, "subscription_id"), "s");
    assert_string_equal(member(body, "generation"), "1");
    assert_string_equal(member(body, "acked_offset"), "-1");
    assert_string_equal(member(body, "has_pending"), "true");
    assert_int_equal(strncmp(member(body, "wake_id"), "w_", 2), 0);
    call_answer(0, 200, "{\"done\":true}");
    assert_int_equal(call_count, 0);
    assert_int_equal(find_link("s", "events/a")->acked, 2);
    assert_int_equal(find("s")->state.phase, SUBSCRIPTION_IDLE);
    say("events/a", "[2]");
    assert_int_equal(call_count, 1);
    assert_string_equal(member(call_body(0), "generation"), "2");
}

/* ---------------------------------------------------------------------- the ten traps, by name */

/* Trap 1: a webhook answers "done" after its lease has ended and the next wake was made. The answer
 * is about the wake it was sent for, so nothing of the next is acknowledged. */
static void test_trap_1_late_done(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    make("events/a", "[1]");
    sub_sleep(1000);
    assert_int_equal(call_count, 2);
    assert_string_equal(member(call_body(1), "generation"), "2");
    call_answer(0, 200, "{\"done\":true}");
    assert_true(find_link("s", "events/a")->acked == SUBSCRIPTION_START);
    assert_int_equal(find("s")->state.phase, SUBSCRIPTION_OFFERED);
    assert_int_equal(find("s")->state.generation, 2);
    call_answer(0, 200, "{\"done\":true}");
    assert_int_equal(find_link("s", "events/a")->acked, 2);
    assert_int_equal(find("s")->state.phase, SUBSCRIPTION_IDLE);
    assert_int_equal(call_count, 0);
}

/* Trap 2: a callback acknowledges more than the webhook was told of, and then the webhook answers
 * "done": the cursor does not go back. */
static void test_trap_2_cursor_back(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    make("events/a", "[1]");
    struct worker w = call_worker("s", 0);
    say("events/a", "[2]");
    assert_int_equal(worker_acks(&w, SUBSCRIPTION_CALLBACK, "events/a", 4, ""), 200);
    assert_int_equal(find_link("s", "events/a")->acked, 4);
    call_answer(0, 200, "{\"done\":true}");
    assert_int_equal(find_link("s", "events/a")->acked, 4);
    assert_int_equal(find("s")->state.phase, SUBSCRIPTION_IDLE);
    assert_int_equal(call_count, 0);
}

/* Trap 3: the subscription is deleted while its webhook is under way. Whatever the answer, nothing
 * is sent again, and its token is good for nothing; also not once there is one of that id again. */
static void test_trap_3_deleted_in_flight(void **state)
{
    (void)state;
    const char *answers[] = {"{\"done\":true}", "{}", NULL};
    for (size_t i = 0; i < ARRAY_COUNT(answers); i++) {
        assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
        make(i == 0 ? "events/a" : i == 1 ? "events/b" : "events/c", "[1]");
        struct worker w = call_worker("s", 0);
        assert_int_equal(sub_do(SUBSCRIPTION_DELETE, "s", ""), 204);
        assert_int_equal(worker_says(&w, SUBSCRIPTION_CALLBACK, DONE), 404);
        call_answer(0, answers[i] ? 200 : 0, answers[i] ? answers[i] : "");
        sub_sleep(120000);
        assert_int_equal(call_count, 0);
        assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
        assert_int_equal(worker_says(&w, SUBSCRIPTION_CALLBACK, DONE), 409);
        assert_true(said("FENCED"));
        assert_int_equal(sub_do(SUBSCRIPTION_DELETE, "s", ""), 204);
    }
}

/* Trap 4: while a failed webhook waits to be sent again its lease does not run, so a receiver that
 * is down is asked at the pace of the back-off, one request at a time, and for the same wake. */
static void test_trap_4_retry_and_lease(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    make("events/a", "[1]");
    unsigned sent = 0;
    for (uint64_t ms = 0; ms < 600000; ms += 100) {
        assert_true(call_count <= 1);
        if (call_count == 1) {
            assert_string_equal(member(call_body(0), "generation"), "1");
            call_answer(0, sent % 2 ? 500 : 0, "");
            assert_true(find("s")->state.failed);
            sent++;
        }
        sub_sleep(100);
    }
    /* 1, 2, 4, 8, 16, 32, then 60 s, each a fifth more or less */
    assert_in_range(sent, 13, 17);
    assert_int_equal(sub_do(SUBSCRIPTION_GET, "s", ""), 200);
    assert_string_equal(member(answer, "status"), "failed");
    while (call_count == 0) {
        sub_sleep(1000);
    }
    call_answer(0, 200, "{\"done\":true}");
    assert_int_equal(sub_do(SUBSCRIPTION_GET, "s", ""), 200);
    assert_string_equal(member(answer, "status"), "active");
}

/* Trap 5: bodies of odd shapes are refused, and nothing else happens. */
static void test_trap_5_shapes(void **state)
{
    (void)state;
    make("wake/pool", "[]");
    assert_int_equal(sub_put("s", PULL("events/*", "")), 201);
    make("events/a", "[1]");
    struct worker w = claim("s", "one");
    assert_int_equal(sub_report(SUBSCRIPTION_ACK, "s", w.token, "null"), 400);
    assert_int_equal(worker_says(&w, SUBSCRIPTION_ACK, ",\"acks\":{}"), 400);
    assert_int_equal(worker_says(&w, SUBSCRIPTION_ACK, ",\"acks\":[null]"), 400);
    assert_int_equal(worker_says(&w, SUBSCRIPTION_ACK, ",\"acks\":[{\"stream\":\"events/a\"}]"),
                     400);
    assert_int_equal(
        worker_says(&w, SUBSCRIPTION_ACK, ",\"acks\":[{\"stream\":\"events/a\",\"offset\":7}]"),
        400);
    assert_int_equal(sub_report(SUBSCRIPTION_ACK, "s", w.token, "{"), 400);
    struct subscription_op op;
    op_init(&op, SUBSCRIPTION_ACK, "s", "{}"); /* "bearer x" gives no token */
    assert_int_equal(op_run(&op), 401);
    assert_true(said("TOKEN_INVALID"));
    assert_int_equal(sub_put("t", "null"), 400);
    assert_int_equal(sub_put("t", "[]"), 400);
    assert_int_equal(sub_do(SUBSCRIPTION_CLAIM, "s", "null"), 400);
    assert_true(find_link("s", "events/a")->acked == SUBSCRIPTION_START);
    assert_int_equal(worker_acks(&w, SUBSCRIPTION_ACK, "events/a", 2, DONE), 200);
}

/* Trap 6: callback is for webhooks alone. */
static void test_trap_6_token_of_pull_wake(void **state)
{
    (void)state;
    make("wake/pool", "[]");
    assert_int_equal(sub_put("s", PULL("events/*", "")), 201);
    make("events/a", "[1]");
    struct worker w = claim("s", "one");
    assert_int_equal(worker_says(&w, SUBSCRIPTION_CALLBACK, DONE), 400);
    assert_true(said("INVALID_REQUEST"));
    assert_int_equal(find("s")->state.phase, SUBSCRIPTION_LEASED);
}

/* Trap 7: the wake stream is missing, of another type, or closed. The wake stays, and the event is
 * written once it can be. */
static void test_trap_7_wake_stream(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", PULL("events/*", "")), 201);
    make("events/a", "[1]");
    assert_int_equal(find("s")->state.phase, SUBSCRIPTION_OFFERED);
    assert_int_equal(troubles, 1);
    sub_sleep(5000);
    assert_int_equal(rig_put(&rig, "wake/pool", "text/plain", ""), 0);
    sub_sleep(100000);
    assert_int_equal(troubles, 1);
    assert_int_equal(rig_delete(&rig, "wake/pool"), 0);
    assert_int_equal(rig_put(&rig, "wake/pool", JSON, ""), 0);
    sub_sleep(72001);
    char *events = rig_read(&rig, "wake/pool", 0);
    assert_non_null(strstr(events, "\"subscription_id\":\"s\""));
    free(events);
    assert_int_equal(find("s")->state.generation, 1);
    sub_sleep(1000000);
    assert_int_equal(subs->counts.events_written, 1);

    struct stream_op op = {.verb = STREAM_APPEND, .name = SLICE("wake/pool")};
    op.append.close = true;
    assert_int_equal(rig_op(&rig, &op), 0);
    struct worker w = claim("s", "one");
    assert_int_equal(worker_says(&w, SUBSCRIPTION_RELEASE, ""), 204);
    assert_int_equal(find("s")->state.generation, 2);
    assert_int_equal(troubles, 2);
    w = claim("s", "two"); /* who does not read events works on */
    assert_int_equal(worker_acks(&w, SUBSCRIPTION_ACK, "events/a", 2, DONE), 200);
}

/* Trap 8: a stream is deleted and made again, shorter. A link by name is gone; the pattern finds
 * the new one from its start. */
static void test_trap_8_recreated_stream(void **state)
{
    (void)state;
    make("events/a", "[\"a long message\"]");
    assert_int_equal(sub_put("by-name", "{\"type\":\"webhook\",\"streams\":[\"events/a\"],"
                                        "\"webhook\":{\"url\":\"http://127.0.0.1:1/\"}}"),
                     201);
    assert_int_equal(sub_put("by-pattern", HOOK("events/*", "")), 201);
    assert_int_equal(rig_delete(&rig, "events/a"), 0);
    sub_run();
    assert_null(find_link("by-name", "events/a"));
    assert_null(find_link("by-pattern", "events/a"));
    make("events/a", "[1]");
    assert_null(find_link("by-name", "events/a"));
    assert_int_equal(call_count, 1);
    assert_string_equal(member(call_body(0), "subscription_id"), "by-pattern");
    assert_string_equal(member(call_body(0), "acked_offset"), "-1");
    call_answer(0, 200, "{\"done\":true}");
    assert_int_equal(find_link("by-pattern", "events/a")->acked, 2);
}

/* Trap 9: an empty stream has nothing pending, whatever its cursor. */
static void test_trap_9_empty_stream(void **state)
{
    (void)state;
    make("wake/pool", "[]");
    assert_int_equal(sub_put("s", PULL("events/*", "")), 201);
    make("events/a", "[]");
    assert_int_equal(sub_do(SUBSCRIPTION_CLAIM, "s", "{\"worker\":\"one\"}"), 409);
    assert_true(said("NO_PENDING_WORK"));
    assert_int_equal(find("s")->state.generation, 0);
    say("events/a", "[1]");
    struct worker w = claim("s", "one");
    assert_int_equal(w.generation, 1);
    assert_true(said("\"acked_offset\":\"-1\""));
}

/* Trap 10: an append is looked up, not compared with every subscription. */
static void test_trap_10_many_subscriptions(void **state)
{
    (void)state;
    for (int i = 0; i < 2000; i++) {
        char id[16];
        char body[256];
        (void)snprintf(id, sizeof(id), "s%d", i);
        (void)snprintf(body, sizeof(body), HOOK("team-%d/**", ""), i);
        assert_int_equal(sub_put(id, body), 201);
    }
    assert_true(core_look_up(subs, SLICE("team-77/x/y")));
    assert_int_equal(subs->hit_count, 1);
    assert_true(core_look_up(subs, SLICE("elsewhere/x")));
    assert_int_equal(subs->hit_count, 0);
    make("team-1999/x", "[1]");
    assert_int_equal(call_count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_webhook, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(test_trap_1_late_done, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(test_trap_2_cursor_back, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(test_trap_3_deleted_in_flight, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(test_trap_4_retry_and_lease, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(test_trap_5_shapes, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(test_trap_6_token_of_pull_wake, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(test_trap_7_wake_stream, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(test_trap_8_recreated_stream, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(test_trap_9_empty_stream, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(test_trap_10_many_subscriptions, open_rig, close_rig),
    };
    return UNIT_RUN(tests);
}
