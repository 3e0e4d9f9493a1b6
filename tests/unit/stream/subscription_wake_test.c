/* Deliveries, their caps and their pace; wake events; leases that end. */
#include "stream/subscription_wake.c"

#include "unit/stream/subscription_rig.h"

/* A receiver that hangs gets the next wake while the last one hangs, but no more than that: then
 * the newest waits, and its lease does not run. */
static void test_hanging(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    make("events/a", "[1]");
    for (int i = 0; i < 30; i++) {
        sub_sleep(1000);
        assert_true(call_count <= 2);
    }
    assert_int_equal(find("s")->state.generation, 3);
    assert_string_equal(member(call_body(1), "generation"), "2");
    call_answer(0, 0, "");
    assert_int_equal(call_count, 2);
    assert_string_equal(member(call_body(1), "generation"), "3");
    assert_false(find("s")->state.failed);
    call_answer(1, 200, "{\"done\":true}");
    assert_int_equal(find("s")->state.phase, SUBSCRIPTION_IDLE);
    assert_int_equal(call_count, 1);
}

/* As many webhooks as may be are under way; the others have their turn, in order, as places become
 * free, also behind one that wants none any more. */
static void test_places(void **state)
{
    (void)state;
    char id[16];
    const size_t extra = 20;
    for (size_t i = 0; i < SUBSCRIPTION_DELIVERIES_MAX + extra; i++) {
        (void)snprintf(id, sizeof(id), "s%zu", i);
        assert_int_equal(sub_put(id, "{\"type\":\"webhook\",\"pattern\":\"events/*\",\"webhook\":{"
                                     "\"url\":\"http://127.0.0.1:1/\"}}"),
                         201);
    }
    make("events/a", "[1]");
    for (int i = 0; i < 100 && subs->counts.calls_waiting < extra; i++) {
        sub_run();
    }
    assert_int_equal(call_count, SUBSCRIPTION_DELIVERIES_MAX);
    assert_int_equal(subs->counts.calls_waiting, extra);
    struct list *first = list_first(&subs->calls);
    struct subscription *sub = container_of(first, struct subscription, call_link);
    (void)snprintf(id, sizeof(id), "%.*s", (int)sub->id.len, sub->id.ptr);
    assert_int_equal(sub_do(SUBSCRIPTION_DELETE, id, ""), 204);
    assert_int_equal(subs->counts.calls_waiting, extra - 1);
    size_t answers = 0;
    while (call_count > 0) {
        call_answer(0, 200, "{\"done\":true}");
        answers++;
    }
    assert_int_equal(answers, SUBSCRIPTION_DELIVERIES_MAX + extra - 1);
    assert_int_equal(subs->counts.calls_waiting, 0);
    assert_int_equal(subs->counts.calls_ok, answers);
}

/* Bodies at the sender are bounded in bytes, too: the next one waits until some came back. */
static void test_bytes(void **state)
{
    (void)state;
    for (char id[] = "a"; id[0] <= 'b'; id[0]++) {
        assert_int_equal(sub_put(id, "{\"type\":\"webhook\",\"pattern\":\"events/*\",\"webhook\":{"
                                     "\"url\":\"http://127.0.0.1:1/\"}}"),
                         201);
    }
    subs->calls_bytes = SUBSCRIPTION_DELIVERIES_BYTES_MAX - 1;
    make("events/a", "[1]");
    assert_int_equal(call_count, 1);
    assert_int_equal(subs->counts.calls_waiting, 1);
    assert_true(subs->calls_bytes >= SUBSCRIPTION_DELIVERIES_BYTES_MAX);
    call_answer(0, 200, "{\"done\":true}");
    assert_int_equal(call_count, 1);
    assert_int_equal(subs->counts.calls_waiting, 0);
    call_answer(0, 200, "{\"done\":true}");
    assert_int_equal(subs->calls_bytes, SUBSCRIPTION_DELIVERIES_BYTES_MAX - 1);
    subs->calls_bytes = 0;
}

/* What is sent again is the same wake, with the tails as they are by then; "done" is about
 * those. */
static void test_body_is_rebuilt(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    make("events/a", "[1]");
    struct worker w = call_worker("s", 0);
    call_answer(0, 302, "");
    say("events/a", "[2]");
    assert_int_equal(call_count, 0);
    sub_sleep(1200);
    assert_int_equal(call_count, 1);
    assert_string_equal(member(call_body(0), "wake_id"), w.wake_id);
    assert_string_equal(member(call_body(0), "tail_offset"), "0000000000000000_0000000000000004");
    say("events/a", "[3]");
    call_answer(0, 204, "{\"done\":true}");
    assert_int_equal(find_link("s", "events/a")->acked, 4);
    assert_string_equal(member(call_body(0), "generation"), "2");
}

/* An answer that is 2xx and not "done", whatever else it says, leaves the lease running. */
static void test_not_done(void **state)
{
    (void)state;
    const char *replies[] = {"",    "{}", "not json", "{\"done\":false}", "{\"done\":\"true\"}",
                             "null"};
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    make("events/a", "[1]");
    for (unsigned i = 0; i < ARRAY_COUNT(replies); i++) {
        sub_sleep(600);
        call_answer(0, 200, replies[i]);
        assert_int_equal(find("s")->state.phase, SUBSCRIPTION_LEASED);
        assert_int_equal(call_count, 0);
        sub_sleep(399); /* from when it was sent */
        assert_int_equal(call_count, 0);
        sub_sleep(1);
        assert_int_equal(call_count, 1);
        assert_int_equal(find("s")->state.generation, i + 2);
    }
}

/* When nothing is pending any more, a wake that nobody has taken is over, and nothing is lost. */
static void test_obsolete(void **state)
{
    (void)state;
    make("wake/pool", "[]");
    assert_int_equal(sub_put("pull", PULL("events/*", "")), 201);
    assert_int_equal(sub_put("hook", HOOK("events/*", "")), 201);
    make("events/a", "[1]");
    call_answer(0, 500, "");
    assert_int_equal(rig_delete(&rig, "events/a"), 0);
    sub_run();
    assert_int_equal(find("pull")->state.phase, SUBSCRIPTION_IDLE);
    assert_int_equal(find("hook")->state.phase, SUBSCRIPTION_IDLE);
    assert_false(find("hook")->state.failed);
    sub_sleep(100000);
    assert_int_equal(call_count, 0);
    make("events/a", "[1]");
    assert_int_equal(call_count, 1);
    assert_string_equal(member(call_body(0), "generation"), "2");
    assert_int_equal(find("pull")->state.generation, 2);
    char *events = rig_read(&rig, "wake/pool", 0);
    assert_non_null(strstr(events, "\"generation\":2"));
    free(events);
}

/* Wake events wake nobody: not the subscription itself, and not another one that follows the wake
 * stream. What anybody else appends there does. */
static void test_no_loop(void **state)
{
    (void)state;
    make("wake/a", "[]");
    make("wake/b", "[]");
    assert_int_equal(sub_put("a", "{\"type\":\"pull-wake\",\"pattern\":\"**\","
                                  "\"wake_stream\":\"wake/a\",\"lease_ttl_ms\":1000}"),
                     201);
    assert_int_equal(sub_put("b", "{\"type\":\"pull-wake\",\"pattern\":\"**\","
                                  "\"wake_stream\":\"wake/b\",\"lease_ttl_ms\":1000}"),
                     201);
    make("events/x", "[1]");
    assert_int_equal(subs->counts.events_written, 2);
    sub_sleep(100000);
    assert_int_equal(subs->counts.events_written, 2);
    struct worker w = claim("a", "one");
    assert_int_equal(worker_acks(&w, SUBSCRIPTION_ACK, "events/x", 2, DONE), 200);
    assert_string_equal(member(answer, "next_wake"), "false");
    /* Who reads the events may acknowledge them. */
    uint64_t tail = find_link("a", "wake/b")->tail;
    assert_true(tail > 0);
    say("wake/b", "[\"not an event\"]");
    w = claim("a", "one");
    assert_int_equal(worker_acks(&w, SUBSCRIPTION_ACK, "wake/b", tail, ""), 200);
    assert_int_equal(worker_acks(&w, SUBSCRIPTION_ACK, "wake/b", tail + 15, DONE), 200);
    sub_sleep(100000);
    sub_crash(true);
    sub_sleep(100000);
    assert_int_equal(find("a")->state.generation, 2);
}

/* The same for a wake stream that is made when somebody follows it already, by a pattern: its
 * events alone wake nobody, not after a start either. */
static void test_no_loop_later(void **state)
{
    (void)state;
    assert_int_equal(sub_put("hook", HOOK("wake/*", "")), 201);
    assert_int_equal(sub_put("pull", PULL("events/*", "")), 201);
    make("wake/pool", "[]");
    make("events/a", "[1]");
    assert_int_equal(subs->counts.events_written, 1);
    assert_int_equal(find("hook")->pending_count, 0);
    for (int i = 0; i < 2; i++) {
        sub_crash(i == 0);
        assert_int_equal(find("hook")->state.generation, 0);
        assert_int_equal(call_count, 0);
    }
    say("wake/pool", "[\"not an event\"]");
    assert_int_equal(call_count, 1);
    assert_string_equal(member(call_body(0), "acked_offset"), "-1");
}

/* A claim of what is pending and has no wake yet makes one. */
static void test_claim_makes_wake(void **state)
{
    (void)state;
    make("wake/pool", "[]");
    assert_int_equal(sub_put("s", PULL("events/*", "")), 201);
    assert_int_equal(rig_put(&rig, "events/a", JSON, "[1]"), 0);
    struct worker w = claim("s", "one");
    assert_int_equal(w.generation, 1);
    assert_int_equal(worker_says(&w, SUBSCRIPTION_RELEASE, ""), 204);
    assert_int_equal(find("s")->state.generation, 2);
    char *events = rig_read(&rig, "wake/pool", 0);
    assert_non_null(strstr(events, "\"stream\":\"events/a\",\"generation\":2"));
    free(events);
}

/* The pauses: 1 s, doubled up to 60 s, a fifth more or less. */
static void test_pauses(void **state)
{
    (void)state;
    const uint64_t seconds[] = {1, 2, 4, 8, 16, 32, 60, 60};
    for (uint32_t i = 0; i < ARRAY_COUNT(seconds); i++) {
        assert_int_equal(subscription_pause_ms(i + 1, 0), seconds[i] * 800);
        assert_in_range(subscription_pause_ms(i + 1, UINT32_MAX), seconds[i] * 1200 - 1,
                        seconds[i] * 1200);
    }
    assert_int_equal(subscription_pause_ms(UINT32_MAX, 0), 48000);
}

/* The lease begins when a webhook is sent, however long it had to wait for its turn. */
static void test_waits_at_sender(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    sender_waits = true;
    make("events/a", "[1]");
    sub_sleep(30000);
    assert_int_equal(call_count, 1);
    subscriptions_sending(subs, calls[0]);
    sub_run();
    sub_sleep(999);
    assert_int_equal(call_count, 1);
    sub_sleep(1);
    assert_int_equal(call_count, 2);
    assert_int_equal(find("s")->state.generation, 2);
    sub_sleep(30000);
    call_answer(1, 200, "{}");
    sub_sleep(999);
    assert_int_equal(find("s")->state.generation, 2);
    sub_sleep(1);
    assert_int_equal(find("s")->state.generation, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_hanging),
        TEST(test_places),
        TEST(test_bytes),
        TEST(test_body_is_rebuilt),
        TEST(test_not_done),
        TEST(test_obsolete),
        TEST(test_no_loop),
        TEST(test_no_loop_later),
        TEST(test_claim_makes_wake),
        TEST(test_waits_at_sender),
        cmocka_unit_test(test_pauses),
    };
    return UNIT_RUN(tests);
}
