/* What is there again after the server was killed. */
#include "stream/subscription_load.c"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "log/note.h"

#include "unit/stream/subscription_rig.h"

/* A definition is as it was, also where a checkpoint took it out of the log. */
static void test_definition(void **state)
{
    (void)state;
    const char *body = "{\"type\":\"pull-wake\",\"pattern\":\"a/**\",\"streams\":[\"x\",\"y\"],"
                       "\"wake_stream\":\"w\",\"lease_ttl_ms\":2000,\"description\":\"\"}";
    assert_int_equal(sub_put("s/1", body), 201);
    static char before[sizeof(answer)];
    memcpy(before, answer, sizeof(answer));
    for (int i = 0; i < 3; i++) {
        sub_crash(i == 1);
        assert_int_equal(sub_do(SUBSCRIPTION_GET, "s/1", ""), 200);
        assert_string_equal(answer, before);
        assert_int_equal(sub_put("s/1", body), 200);
        assert_int_equal(sub_put("s/1", PULL("a/**", "")), 409);
    }
}

/* A lease that has time left is honoured, with its holder and its token. */
static void test_live_lease(void **state)
{
    (void)state;
    make("wake/pool", "[]");
    assert_int_equal(sub_put("s", PULL("events/*", "")), 201);
    make("events/a", "[1]");
    struct worker w = claim("s", "one");
    rig_sleep(900);
    sub_crash(false);
    assert_int_equal(sub_do(SUBSCRIPTION_CLAIM, "s", "{\"worker\":\"two\"}"), 409);
    assert_string_equal(member(answer, "current_holder"), "one");
    assert_int_equal(worker_acks(&w, SUBSCRIPTION_ACK, "events/a", 2, DONE), 200);
    assert_int_equal(find_link("s", "events/a")->acked, 2);
}

/* One that ended meanwhile is cleared, and what is pending gets a new generation. */
static void test_dead_lease(void **state)
{
    (void)state;
    make("wake/pool", "[]");
    assert_int_equal(sub_put("s", PULL("events/*", "")), 201);
    make("events/a", "[1]");
    struct worker w = claim("s", "one");
    rig_sleep(1000);
    sub_crash(false);
    assert_int_equal(find("s")->state.phase, SUBSCRIPTION_OFFERED);
    assert_int_equal(find("s")->state.generation, 2);
    assert_int_equal(worker_acks(&w, SUBSCRIPTION_ACK, "events/a", 2, DONE), 409);
    assert_true(said("FENCED"));
}

/* The lease of a webhook that was accepted goes on likewise; its callback is taken. */
static void test_accepted_webhook(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    make("events/a", "[1]");
    struct worker w = call_worker("s", 0);
    call_answer(0, 200, "{}");
    rig_sleep(500);
    sub_crash(true);
    assert_int_equal(call_count, 0);
    assert_int_equal(worker_says(&w, SUBSCRIPTION_CALLBACK, ""), 200);
    rig_sleep(1000);
    sub_crash(false);
    assert_int_equal(call_count, 1);
    assert_string_equal(member(call_body(0), "generation"), "2");
    assert_int_equal(worker_says(&w, SUBSCRIPTION_CALLBACK, DONE), 409);
}

/* A webhook that was under way is sent again, as the same wake: the receiver may have it twice,
 * but not never. Once its lease is over it is a new one. */
static void test_webhook_under_way(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    make("events/a", "[1]");
    struct worker w = call_worker("s", 0);
    sub_crash(false);
    assert_int_equal(call_count, 1);
    assert_string_equal(member(call_body(0), "wake_id"), w.wake_id);
    rig_sleep(1000);
    sub_crash(false);
    assert_int_equal(call_count, 1);
    assert_string_equal(member(call_body(0), "generation"), "2");
    assert_int_equal(worker_says(&w, SUBSCRIPTION_CALLBACK, DONE), 409);
    call_answer(0, 200, "{\"done\":true}");
    assert_int_equal(find_link("s", "events/a")->acked, 2);
    sub_crash(false);
    assert_int_equal(call_count, 0);
    assert_int_equal(find_link("s", "events/a")->acked, 2);
}

/* The schedule of retries goes on where it was: neither at once, nor from the start. */
static void test_retry(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    make("events/a", "[1]");
    for (int i = 0; i < 6; i++) {
        while (call_count == 0) {
            sub_sleep(500);
        }
        call_answer(0, 503, "");
    }
    assert_int_equal(find("s")->state.failures, 6);
    int64_t retry_at = find("s")->state.retry_at_ms;
    assert_true(retry_at - rig_now_ms > 24000);
    sub_sleep(10000);
    sub_crash(true);
    assert_int_equal(find("s")->state.failures, 6);
    assert_true(find("s")->state.failed);
    sub_sleep((uint64_t)(retry_at - rig_now_ms - 1));
    assert_int_equal(call_count, 0);
    sub_sleep(1);
    assert_int_equal(call_count, 1);
    assert_string_equal(member(call_body(0), "generation"), "1");
}

/* The wall clock went back by a day while no server ran: what was to be in half a minute is not in
 * a day. */
static void test_clock_went_back(void **state)
{
    (void)state;
    make("wake/pool", "[]");
    assert_int_equal(sub_put("hook", HOOK("events/*", "")), 201);
    assert_int_equal(sub_put("pull", PULL("events/*", "")), 201);
    make("events/a", "[1]");
    call_answer(0, 503, "");
    (void)claim("pull", "one");
    rig_now_ms -= 86400000;
    sub_crash(false);
    sub_sleep(1000);
    assert_int_equal(find("pull")->state.generation, 2);
    sub_sleep(71001);
    assert_int_equal(call_count, 1);
    rig_now_ms += 86400000;
}

/* A deleted id keeps its generation, so that what was said under it stays fenced off. */
static void test_tombstone(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    make("events/a", "[1]");
    struct worker w = call_worker("s", 0);
    assert_int_equal(sub_do(SUBSCRIPTION_DELETE, "s", ""), 204);
    sub_crash(true);
    assert_int_equal(sub_do(SUBSCRIPTION_GET, "s", ""), 404);
    assert_int_equal(subs->counts.tombstones, 1);
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    assert_int_equal(subs->counts.tombstones, 0);
    say("events/a", "[2]");
    assert_string_equal(member(call_body(0), "generation"), "2");
    assert_string_equal(member(call_body(0), "acked_offset"), "0000000000000000_0000000000000002");
    assert_int_equal(worker_says(&w, SUBSCRIPTION_CALLBACK, DONE), 409);
}

/* After a day it is forgotten, also on disk; its tokens expired long before. */
static void test_tombstone_expires(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    make("events/a", "[1]");
    struct worker w = call_worker("s", 0);
    assert_int_equal(sub_do(SUBSCRIPTION_DELETE, "s", ""), 204);
    call_answer(0, 0, "");
    sub_sleep(86400001);
    assert_int_equal(subs->counts.tombstones, 0);
    assert_null(core_find(subs, SLICE("s")));
    sub_crash(false);
    assert_int_equal(subs->counts.tombstones, 0);
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    say("events/a", "[2]");
    assert_int_equal(worker_says(&w, SUBSCRIPTION_CALLBACK, DONE), 401);
    assert_true(said("TOKEN_EXPIRED"));
}

static int count_note(void *context, struct slice key, struct slice value)
{
    (void)key;
    (void)value;
    ++*(unsigned *)context;
    return 0;
}

static unsigned notes_kept(void)
{
    unsigned count = 0;
    struct errmsg msg;
    assert_int_equal(engine_each_note(rig.engine, SLICE(""), count_note, &count, &msg), 0);
    return count;
}

static void put_note(struct slice key, struct slice value)
{
    struct buf batch;
    buf_init(&batch, 1000);
    note_put(&batch, key, value);
    struct stream_op op = {.verb = STREAM_NOTE, .note = {.changes = buf_slice(&batch)}};
    assert_int_equal(rig_op(&rig, &op), 0);
    buf_finish(&batch);
}

/* One that never had a wake has no generation to keep: nothing is left of it. */
static void test_never_woken(void **state)
{
    (void)state;
    make("events/a", "[1]");
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    assert_int_equal(notes_kept(), 3);
    assert_int_equal(sub_do(SUBSCRIPTION_DELETE, "s", ""), 204);
    assert_int_equal(notes_kept(), 0);
    sub_crash(false);
    assert_null(core_find(subs, SLICE("s")));
}

/* The tombstone of such a one, which an older version wrote, counts for nothing and goes; also when
 * its id is taken at once. */
static void test_empty_tombstone(void **state)
{
    (void)state;
    char value[30] = {1, 2, 99}; /* the number 99, deleted at 0, generation 0 */
    const struct slice keys[] = {SLICE("sub/s"), SLICE("sub/t")};
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        uint32_t crc = crc32c(crc32c(0, keys[i].ptr, keys[i].len), value, 26);
        bytes_put_u32(value + 26, crc);
        put_note(keys[i], (struct slice){value, sizeof(value)});
        value[2]++;
    }
    subs->hold_until_ms = UINT64_MAX;
    sub_detach();
    rig_reopen(&rig, false);
    struct subscriptions_config config = sub_config();
    struct errmsg msg = {{0}};
    assert_int_equal(subscriptions_open_stepped(&config, &subs, &msg), 0);
    assert_int_equal(subs->by_id.count, 0);
    assert_int_equal(subs->counts.tombstones, 0);
    assert_int_equal(subs->next_number, 101);
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    assert_int_equal(notes_kept(), 2);
    sub_crash(false);
    assert_int_equal(sub_do(SUBSCRIPTION_GET, "s", ""), 200);
}

/* Links that an append made are found again: whatever matches and has no note is pending from its
 * start. A fork that has only inherited is not. */
static void test_found_links(void **state)
{
    (void)state;
    make("events/old", "[0]");
    make("wake/pool", "[]");
    assert_int_equal(sub_put("s", PULL("events/*", "")), 201);
    make("events/a", "[1]");
    assert_int_equal(rig_fork(&rig, "events/fork", "events/a"), 0);
    make("events/empty", "[]");
    sub_crash(false);
    assert_int_equal(find("s")->link_count, 2);
    assert_true(find_link("s", "events/a")->acked == SUBSCRIPTION_START);
    assert_int_equal(find_link("s", "events/old")->acked, 2);
    assert_int_equal(find("s")->pending_count, 1);
    say("events/fork", "[2]");
    assert_true(find_link("s", "events/fork")->acked == SUBSCRIPTION_START);
    assert_int_equal(find_link("s", "events/fork")->tail, 4);
}

/* Links that there were count before the first listing finds more. */
static void test_links_count(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", HOOK("events/*", ",\"streams\":[\"later\",\"never\"]")), 201);
    sub_detach();
    rig_reopen(&rig, false);
    struct subscriptions_config config = sub_config();
    struct errmsg msg = {{0}};
    assert_int_equal(subscriptions_open_stepped(&config, &subs, &msg), 0);
    assert_int_equal(subs->counts.links, 2);
}

/* An event that may not have been written is written again. */
static void test_event_again(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", PULL("events/*", "")), 201);
    make("events/a", "[1]");
    sub_crash(false);
    make("wake/pool", "[]");
    sub_sleep(1200);
    char *events = rig_read(&rig, "wake/pool", 0);
    assert_non_null(strstr(events, "\"generation\":1"));
    free(events);
    sub_crash(false);
    assert_int_equal(find("s")->state.generation, 1);
    (void)claim("s", "one");
}

/* What was linked before a name was reserved is as if it were not while that lasts, whatever it
 * does; then it is there again, and what came meanwhile is pending. */
static void test_reserved(void **state)
{
    (void)state;
    make("kept-a", "[1]");
    make("kept-b", "[1]");
    make("kept-wake", "[]");
    make("events/a", "[1]");
    assert_int_equal(sub_put("s", HOOK("**", ",\"streams\":[\"kept-a\",\"kept-none\"]")), 201);
    assert_int_equal(sub_put("w", "{\"type\":\"pull-wake\",\"streams\":[\"kept-a\",\"events/a\"],"
                                  "\"wake_stream\":\"kept-wake\",\"lease_ttl_ms\":1000}"),
                     201);
    say("kept-a", "[2]");
    assert_int_equal(call_count, 1);
    size_t links = find("s")->link_count;
    reserved = "kept-";
    sub_crash(true);
    assert_int_equal(call_count, 0);
    assert_int_equal(find("s")->link_count, 1);
    assert_int_equal(sub_do(SUBSCRIPTION_GET, "s", ""), 200);
    assert_false(said("kept-"));
    assert_int_equal(troubles, 1);
    assert_non_null(strstr(last_trouble, "the subscription w gets no wake events on kept-wake"));
    char *before = rig_read(&rig, "kept-wake", 0);
    say("kept-a", "[3]");
    say("kept-b", "[3]");
    make("kept-none", "[3]");
    sub_sleep(5000);
    assert_int_equal(call_count, 0);
    say("events/a", "[2]");
    assert_int_equal(call_count, 1);
    assert_null(strstr(call_body(0), "kept-"));
    struct worker w = claim("w", "one");
    assert_false(said("kept-"));
    assert_int_equal(worker_acks(&w, SUBSCRIPTION_ACK, "events/a", 4, DONE), 200);
    sub_sleep(5000);
    rig_expect(&rig, "kept-wake", before);
    free(before);
    reserved = NULL;
    sub_crash(true);
    assert_int_equal(find("s")->link_count, links);
    assert_int_equal(find_link("s", "kept-a")->acked, 2);
    assert_true(subscription_link_pending(find_link("s", "kept-a")));
    assert_int_equal(claim("w", "two").generation, find("w")->state.generation);
    assert_true(said("kept-a"));
}

/* Streams that went while nobody listened take their links along, named ones too; one that was
 * made anew is found by the pattern alone. */
static void test_streams_gone(void **state)
{
    (void)state;
    make("events/a", "[1]");
    make("events/b", "[1]");
    assert_int_equal(sub_put("s", "{\"type\":\"webhook\",\"pattern\":\"events/*\",\"streams\":["
                                  "\"events/a\",\"events/b\",\"events/later\"],"
                                  "\"webhook\":{\"url\":\"http://127.0.0.1:1/\"}}"),
                     201);
    sub_detach();
    assert_int_equal(rig_delete(&rig, "events/a"), 0);
    assert_int_equal(rig_delete(&rig, "events/b"), 0);
    assert_int_equal(rig_put(&rig, "events/b", JSON, "[1,2,3]"), 0);
    rig_reopen(&rig, false);
    sub_attach();
    assert_null(find_link("s", "events/a"));
    assert_false(find_link("s", "events/b")->is_explicit);
    assert_true(find_link("s", "events/b")->acked == SUBSCRIPTION_START);
    assert_true(find_link("s", "events/later")->is_explicit);
    assert_int_equal(call_count, 1);
    sub_crash(true);
    assert_null(find_link("s", "events/a"));
    assert_int_equal(find("s")->link_count, 2);
}

/* Links of a deleted subscription that were not swept up in time mean nothing, and go. */
static void test_left_over_links(void **state)
{
    (void)state;
    make("events/a", "[1]");
    make("events/b", "[1]");
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    subs->hold_until_ms = UINT64_MAX; /* the sweeping does not come about */
    assert_int_equal(sub_do(SUBSCRIPTION_DELETE, "s", ""), 204);
    sub_detach();
    rig_reopen(&rig, false);
    sub_attach();
    assert_true(list_empty(&subs->garbage));
    uint64_t number = subs->next_number;
    assert_int_equal(sub_put("s", HOOK("elsewhere/*", "")), 201);
    assert_int_equal(find("s")->link_count, 0);
    assert_true(find("s")->number >= number);
    sub_crash(true);
    assert_int_equal(find("s")->link_count, 0);
}

/* A note that does not prove itself stops the start, with a sentence. */
static void test_damage(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    sub_detach();
    put_note(SLICE("sub/t"), SLICE("\1\1nonsense"));
    struct subscriptions_config config = sub_config();
    struct errmsg msg = {{0}};
    assert_int_equal(subscriptions_open_stepped(&config, &subs, &msg), ERR_CORRUPT);
    assert_non_null(strstr(msg.text, "does not prove itself"));
    struct buf batch;
    buf_init(&batch, 1000);
    note_delete(&batch, SLICE("sub/t"));
    struct stream_op op = {.verb = STREAM_NOTE, .note = {.changes = buf_slice(&batch)}};
    assert_int_equal(rig_op(&rig, &op), 0);
    buf_finish(&batch);
    sub_attach();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_definition),       TEST(test_live_lease),        TEST(test_dead_lease),
        TEST(test_accepted_webhook), TEST(test_webhook_under_way), TEST(test_retry),
        TEST(test_clock_went_back),  TEST(test_tombstone),         TEST(test_tombstone_expires),
        TEST(test_never_woken),      TEST(test_empty_tombstone),   TEST(test_found_links),
        TEST(test_links_count),      TEST(test_event_again),       TEST(test_reserved),
        TEST(test_streams_gone),     TEST(test_left_over_links),   TEST(test_damage),
    };
    return UNIT_RUN(tests);
}
