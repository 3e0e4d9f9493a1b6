/* The operations: what each answers, in which order it looks at what may be wrong, and what a log
 * that refuses means. */
#include "stream/subscription_ops.c"

#include "unit/stream/subscription_rig.h"

#define CLAIM_ONE "{\"worker\":\"one\"}"

static void open_pull(void)
{
    make("wake/pool", "[]");
    make("events/a", "[0]");
    assert_int_equal(sub_put("s", PULL("events/*", "")), 201);
    say("events/a", "[1]");
}

/* The same again is 200, another one 409, whatever the order of members and streams. */
static void test_put(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", "{\"type\":\"webhook\",\"streams\":[\"/b/\",\"a\",\"b\"],"
                                  "\"webhook\":{\"url\":\"http://127.0.0.1:1/\"}}"),
                     201);
    assert_true(said("\"jwks_url\":\"" BASE_URL "/jwks.json\""));
    assert_true(said("\"kid\":\"ds_key\""));
    assert_false(said("secret"));
    assert_int_equal(sub_put("s", "{\"webhook\":{\"url\":\"http://127.0.0.1:1/\"},"
                                  "\"lease_ttl_ms\":30000,\"streams\":[\"a\",\"b\"],"
                                  "\"type\":\"webhook\"}"),
                     200);
    assert_int_equal(sub_put("s", HOOK("a", "")), 409);
    assert_true(said("SUBSCRIPTION_ALREADY_EXISTS"));
    assert_int_equal(sub_put("t", ""), 400);
    assert_int_equal(sub_put("t", "{\"type\":\"webhook\",\"pattern\":\"a\","
                                  "\"webhook\":{\"url\":\"http://10.0.0.1/\"}}"),
                     400);
    assert_true(said("WEBHOOK_URL_REJECTED"));
    assert_int_equal(sub_do(SUBSCRIPTION_GET, "t", ""), 404);
    assert_null(core_find(subs, SLICE("t")));
}

/* A confirmed configuration is not judged again: the rules may have changed since. */
static void test_put_again_unjudged(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", HOOK("a", "")), 201);
    subs->config.webhooks_off = true;
    assert_int_equal(sub_put("s", HOOK("a", "")), 200);
    assert_int_equal(sub_put("t", HOOK("a", "")), 400);
    assert_true(said("INVALID_REQUEST"));
}

/* Who names a stream that is reserved is refused, however it is spelt and wherever; the rest of the
 * request has no effect. */
static void test_reserved(void **state)
{
    (void)state;
    open_pull();
    subs->config.reserved = SLICE("kept-");
    const char *bodies[] = {
        "{\"type\":\"pull-wake\",\"streams\":[\"a\"],\"wake_stream\":\"kept-a\"}",
        "{\"type\":\"pull-wake\",\"streams\":[\"a\"],\"wake_stream\":\"/%6bept-a/\"}",
        "{\"type\":\"pull-wake\",\"streams\":[\"a\"],\"wake_stream\":\"\\u006bept-\"}",
        "{\"type\":\"pull-wake\",\"streams\":[\"a\",\"kept-a\"],\"wake_stream\":\"w\"}",
        "{\"type\":\"pull-wake\",\"streams\":[\"a\",\"/%6Bept%2Da\"],\"wake_stream\":\"w\"}",
        HOOK("a", ",\"streams\":[\"kept-a/b\"]"),
    };
    for (size_t i = 0; i < ARRAY_COUNT(bodies); i++) {
        assert_int_equal(sub_put("t", bodies[i]), 403);
        assert_true(said("\"code\":\"FORBIDDEN\",\"message\":\"they are kept\""));
        assert_int_equal(sub_put("s", bodies[i]), 403);
    }
    assert_int_equal(sub_do(SUBSCRIPTION_GET, "t", ""), 404);
    assert_int_equal(sub_do(SUBSCRIPTION_LINK, "s", "{\"streams\":[\"b\",\"/kept-a\"]}"), 403);
    assert_int_equal(sub_do(SUBSCRIPTION_LINK, "t", "{\"streams\":[\"kept-a\"]}"), 403);
    assert_int_equal(sub_unlink("s", "kept-a"), 403);
    assert_int_equal(sub_unlink("s", "%6bept-a"), 403);
    struct worker w = claim("s", "one");
    assert_int_equal(worker_acks(&w, SUBSCRIPTION_ACK, "kept-a", 1, ""), 403);
    assert_int_equal(find("s")->link_count, 1);
    assert_int_equal(sub_put("t", HOOK("kept-*", ",\"streams\":[\"kept\"]")), 201);
}

/* Deletion is 204 for whatever id; what exists no more is 404 for everything else. */
static void test_delete(void **state)
{
    (void)state;
    open_pull();
    struct worker w = claim("s", "one");
    assert_int_equal(sub_do(SUBSCRIPTION_DELETE, "nobody", ""), 204);
    assert_int_equal(sub_do(SUBSCRIPTION_DELETE, "s", ""), 204);
    assert_int_equal(sub_do(SUBSCRIPTION_DELETE, "s", ""), 204);
    assert_int_equal(sub_do(SUBSCRIPTION_GET, "s", ""), 404);
    assert_int_equal(sub_do(SUBSCRIPTION_CLAIM, "s", CLAIM_ONE), 404);
    assert_int_equal(sub_do(SUBSCRIPTION_LINK, "s", "{\"streams\":[\"a\"]}"), 404);
    assert_int_equal(sub_unlink("s", "a"), 404);
    assert_int_equal(worker_says(&w, SUBSCRIPTION_ACK, DONE), 404);
    assert_int_equal(worker_says(&w, SUBSCRIPTION_RELEASE, ""), 404);
    assert_true(said("SUBSCRIPTION_NOT_FOUND"));
    assert_int_equal(subs->counts.links, 0);
    assert_int_equal(subs->counts.leases, 0);
}

/* Ids end at 256 bytes, bodies at 64 KiB. */
static void test_caps(void **state)
{
    (void)state;
    static char text[SUBSCRIPTION_BODY_BYTES_MAX + 2];
    memset(text, 'i', sizeof(text) - 1);
    text[SUBSCRIPTION_ID_BYTES_MAX + 1] = '\0';
    assert_int_equal(sub_put(text, HOOK("a", "")), 400);
    text[SUBSCRIPTION_ID_BYTES_MAX] = '\0';
    assert_int_equal(sub_put(text, HOOK("a", "")), 201);
    assert_int_equal(sub_put("", HOOK("a", "")), 404);
    memset(text, ' ', sizeof(text) - 1);
    memcpy(text, "{}", 2);
    assert_int_equal(sub_put("s", text), 413);
    text[SUBSCRIPTION_BODY_BYTES_MAX] = '\0';
    assert_int_equal(sub_put("s", text), 400);
}

/* Too many that wait are answered 503, at once. */
static void test_too_many_wait(void **state)
{
    (void)state;
    static struct subscription_op ops[SUBSCRIPTION_OPS_MAX + 1];
    for (size_t i = 0; i < ARRAY_COUNT(ops); i++) {
        op_init(&ops[i], SUBSCRIPTION_GET, "s", "");
        subscription_start(subs, &ops[i]);
    }
    assert_int_equal(ops[SUBSCRIPTION_OPS_MAX].status, 503);
    assert_int_equal(ops[SUBSCRIPTION_OPS_MAX].code, ERR_BUSY);
    assert_int_equal(ops[SUBSCRIPTION_OPS_MAX - 1].status, 0);
    sub_run();
    assert_int_equal(ops[SUBSCRIPTION_OPS_MAX - 1].status, 404);
    for (size_t i = 0; i < ARRAY_COUNT(ops); i++) {
        buf_finish(&ops[i].answer);
    }
    assert_int_equal(subs->counts.ops, 0);
}

/* As many subscriptions as there may be; one that was deleted may come back. */
static void test_too_many_exist(void **state)
{
    (void)state;
    open_pull();
    assert_int_equal(sub_do(SUBSCRIPTION_DELETE, "s", ""), 204);
    subs->by_id.count += SUBSCRIPTIONS_MAX - 1;
    assert_int_equal(subs->by_id.count, SUBSCRIPTIONS_MAX);
    subs->timer_cap += SUBSCRIPTIONS_MAX; /* not used */
    assert_int_equal(sub_put("t", HOOK("a", "")), 429);
    assert_true(said("LIMIT_REACHED"));
    assert_int_equal(sub_put("s", HOOK("a", "")), 201);
    subs->by_id.count -= SUBSCRIPTIONS_MAX - 1;
    subs->timer_cap -= SUBSCRIPTIONS_MAX;
}

/* Explicit links: from the tail, or from zero where there is no stream; added once; taken away by
 * whatever form of the path. The pattern keeps what it matches. */
static void test_membership(void **state)
{
    (void)state;
    make("wake/pool", "[]");
    make("events/a", "[1]");
    make("other/b", "[1]");
    assert_int_equal(sub_put("s", PULL("events/*", "")), 201);
    assert_int_equal(
        sub_do(SUBSCRIPTION_LINK, "s", "{\"streams\":[\"events/a\",\"other/b\",\"/other/none/\"]}"),
        204);
    assert_true(find_link("s", "events/a")->is_explicit);
    assert_int_equal(find_link("s", "other/b")->acked, 2);
    assert_int_equal(find_link("s", "other/none")->acked, 0);
    assert_int_equal(sub_do(SUBSCRIPTION_LINK, "s", "{\"streams\":[\"other/b\"]}"), 204);
    assert_int_equal(sub_do(SUBSCRIPTION_LINK, "s", "{\"streams\":[]}"), 204);
    assert_int_equal(sub_do(SUBSCRIPTION_LINK, "s", "{\"streams\":[\"\"]}"), 400);
    assert_int_equal(sub_do(SUBSCRIPTION_LINK, "t", "{\"streams\":[]}"), 404);
    assert_int_equal(sub_unlink("s", "other%2Fb"), 204);
    assert_null(find_link("s", "other/b"));
    assert_int_equal(sub_unlink("s", "events/a"), 204);
    assert_false(find_link("s", "events/a")->is_explicit);
    assert_int_equal(sub_unlink("s", "events/a"), 204);
    assert_non_null(find_link("s", "events/a"));
    say("other/b", "[2]");
    assert_int_equal(find("s")->state.generation, 0);
    make("other/none", "[3]");
    assert_int_equal(find("s")->state.generation, 1);
    sub_crash(false);
    assert_null(find_link("s", "other/b"));
    assert_int_equal(find("s")->link_count, 2);
}

/* A name is taken away while its stream is made: nobody follows the stream. */
static void test_unlink_while_made(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", HOOK("events/*", ",\"streams\":[\"later\"]")), 201);
    struct subscription_op op;
    op_init(&op, SUBSCRIPTION_UNLINK, "s", "");
    op.path = SLICE("later");
    subscription_start(subs, &op);
    (void)subscriptions_step(subs);
    assert_non_null(find("s")->change);
    make("later", "[1]");
    assert_int_equal(op.status, 204);
    assert_null(find_link("s", "later"));
    assert_int_equal(find("s")->link_count, 0);
    say("later", "[2]");
    assert_int_equal(call_count, 0);
}

/* A subscription never follows its own wake stream: not by name, and not by its pattern. */
static void test_own_wake_stream(void **state)
{
    (void)state;
    make("wake/pool", "[]");
    assert_int_equal(sub_put("s", "{\"type\":\"pull-wake\",\"streams\":[\"wake/pool\"],"
                                  "\"wake_stream\":\"wake/pool\"}"),
                     400);
    assert_int_equal(sub_put("s", PULL("**", "")), 201);
    assert_int_equal(sub_do(SUBSCRIPTION_LINK, "s", "{\"streams\":[\"wake/pool\"]}"), 400);
    say("wake/pool", "[1]");
    assert_int_equal(find("s")->state.generation, 0);
    assert_int_equal(find("s")->link_count, 0);
}

/* The order of checks of claim: the body, the subscription, its type, the lease, the work. */
static void test_claim(void **state)
{
    (void)state;
    assert_int_equal(sub_do(SUBSCRIPTION_CLAIM, "s", "{}"), 400);
    assert_int_equal(sub_do(SUBSCRIPTION_CLAIM, "s", CLAIM_ONE), 404);
    assert_int_equal(sub_put("hook", HOOK("events/*", "")), 201);
    assert_int_equal(sub_do(SUBSCRIPTION_CLAIM, "hook", CLAIM_ONE), 400);
    open_pull();
    struct worker w = claim("s", "one");
    assert_true(said("\"lease_ttl_ms\":1000"));
    assert_int_equal(sub_do(SUBSCRIPTION_CLAIM, "s", "{\"worker\":\"two\"}"), 409);
    assert_true(said("ALREADY_CLAIMED"));
    assert_string_equal(member(answer, "current_holder"), "one");
    assert_string_equal(member(answer, "generation"), "1");
    assert_int_equal(worker_acks(&w, SUBSCRIPTION_ACK, "events/a", 4, DONE), 200);
    assert_string_equal(answer, "{\"ok\":true,\"next_wake\":false}");
    assert_int_equal(sub_do(SUBSCRIPTION_CLAIM, "s", CLAIM_ONE), 409);
    assert_true(said("NO_PENDING_WORK"));
}

/* The order of checks of ack: the header, the body, the subscription, its type, the token, the
 * wake, the offsets. */
static void test_ack_order(void **state)
{
    (void)state;
    struct subscription_op op;
    op_init(&op, SUBSCRIPTION_ACK, "none", "{");
    assert_int_equal(op_run(&op), 401);
    assert_int_equal(sub_report(SUBSCRIPTION_ACK, "none", "bad", "{"), 400);
    const char *body = "{\"wake_id\":\"w_x\",\"generation\":1,"
                       "\"acks\":[{\"stream\":\"none\",\"offset\":\"-1\"}]}";
    assert_int_equal(sub_report(SUBSCRIPTION_ACK, "none", "bad", body), 404);
    assert_int_equal(sub_put("hook", HOOK("other/*", "")), 201);
    assert_int_equal(sub_report(SUBSCRIPTION_ACK, "hook", "bad", body), 400);
    open_pull();
    struct worker w = claim("s", "one");
    assert_int_equal(sub_report(SUBSCRIPTION_ACK, "s", "bad", body), 401);
    assert_true(said("TOKEN_INVALID"));
    assert_int_equal(sub_report(SUBSCRIPTION_ACK, "s", w.token, body), 409);
    assert_true(said("FENCED"));
    assert_int_equal(
        worker_says(&w, SUBSCRIPTION_ACK, ",\"acks\":[{\"stream\":\"none\",\"offset\":\"-1\"}]"),
        409);
    assert_true(said("INVALID_OFFSET"));
}

/* Each of the three that name a wake fences by itself. */
static void test_fence(void **state)
{
    (void)state;
    open_pull();
    struct worker first = claim("s", "one");
    assert_int_equal(worker_says(&first, SUBSCRIPTION_RELEASE, ""), 204);
    struct worker second = claim("s", "two");
    assert_int_equal(second.generation, 2);
    assert_int_equal(worker_says(&first, SUBSCRIPTION_ACK, DONE), 409);
    struct worker mixed = second;
    memcpy(mixed.token, first.token, sizeof(mixed.token));
    assert_int_equal(worker_says(&mixed, SUBSCRIPTION_ACK, DONE), 409);
    mixed = second;
    mixed.generation = 1;
    assert_int_equal(worker_says(&mixed, SUBSCRIPTION_ACK, DONE), 409);
    mixed = second;
    memcpy(mixed.wake_id, first.wake_id, sizeof(mixed.wake_id));
    assert_int_equal(worker_says(&mixed, SUBSCRIPTION_RELEASE, ""), 409);
    assert_true(said("FENCED"));
    assert_int_equal(worker_acks(&second, SUBSCRIPTION_ACK, "events/a", 4, DONE), 200);
    assert_int_equal(worker_acks(&second, SUBSCRIPTION_ACK, "events/a", 4, DONE), 409);
}

/* Offsets: known streams, not before the cursor, not beyond the tail; all of them, or none. */
static void test_offsets(void **state)
{
    (void)state;
    open_pull();
    make("events/b", "[1,2]");
    struct worker w = claim("s", "one");
    assert_int_equal(worker_acks(&w, SUBSCRIPTION_ACK, "events/a", 1, ""), 409);
    assert_int_equal(worker_acks(&w, SUBSCRIPTION_ACK, "events/a", 5, ""), 409);
    assert_int_equal(worker_acks(&w, SUBSCRIPTION_ACK, "events/c", 0, ""), 409);
    assert_int_equal(worker_says(&w, SUBSCRIPTION_ACK,
                                 ",\"acks\":["
                                 "{\"stream\":\"events/b\","
                                 "\"offset\":\"0000000000000000_0000000000000002\"},"
                                 "{\"stream\":\"events/a\","
                                 "\"offset\":\"0000000000000000_0000000000000009\"}]"),
                     409);
    assert_true(said("INVALID_OFFSET"));
    assert_true(find_link("s", "events/b")->acked == SUBSCRIPTION_START);
    assert_int_equal(worker_says(&w, SUBSCRIPTION_ACK,
                                 ",\"acks\":["
                                 "{\"path\":\"/events/b\","
                                 "\"offset\":\"0000000000000000_0000000000000004\"},"
                                 "{\"stream\":\"events/b\","
                                 "\"offset\":\"0000000000000000_0000000000000002\"}]"),
                     200);
    assert_int_equal(find_link("s", "events/b")->acked, 4);
    assert_int_equal(worker_acks(&w, SUBSCRIPTION_ACK, "events/b", 4, DONE), 200);
    assert_string_equal(member(answer, "next_wake"), "true");
    assert_int_equal(find("s")->state.generation, 2);
}

/* One of the streams was deleted while a worker had the wake: none of its acks is taken, the answer
 * names the stream, and without it they are. */
static void test_ack_of_deleted(void **state)
{
    (void)state;
    open_pull();
    make("events/b", "[1]");
    struct worker w = claim("s", "one");
    assert_int_equal(rig_delete(&rig, "events/b"), 0);
    assert_int_equal(worker_says(&w, SUBSCRIPTION_ACK,
                                 ",\"done\":true,\"acks\":["
                                 "{\"stream\":\"events/a\","
                                 "\"offset\":\"0000000000000000_0000000000000004\"},"
                                 "{\"stream\":\"events/b\","
                                 "\"offset\":\"0000000000000000_0000000000000002\"}]"),
                     409);
    assert_true(said("INVALID_OFFSET"));
    assert_true(said("events/b: the subscription does not follow the stream"));
    assert_int_equal(find_link("s", "events/a")->acked, 2);
    assert_int_equal(find("s")->state.phase, SUBSCRIPTION_LEASED);
    assert_int_equal(worker_acks(&w, SUBSCRIPTION_ACK, "events/a", 4, DONE), 200);
    assert_string_equal(member(answer, "next_wake"), "false");
}

/* A worker that read what the service has not been told of yet is believed. */
static void test_ack_ahead(void **state)
{
    (void)state;
    open_pull();
    make("events/b", "[1]");
    struct worker w = claim("s", "one");
    engine_observe(rig.engine, NULL);
    say("events/a", "[2]");
    say("events/b", "[2]");
    assert_int_equal(find_link("s", "events/a")->tail, 4);
    assert_int_equal(worker_says(&w, SUBSCRIPTION_ACK,
                                 ",\"acks\":["
                                 "{\"stream\":\"events/a\","
                                 "\"offset\":\"0000000000000000_0000000000000006\"},"
                                 "{\"stream\":\"events/b\","
                                 "\"offset\":\"0000000000000000_0000000000000004\"}]"),
                     200);
    assert_int_equal(worker_acks(&w, SUBSCRIPTION_ACK, "events/a", 7, ""), 409);
    assert_int_equal(find_link("s", "events/a")->acked, 6);
}

/* An ack that is not done is a heartbeat: the lease runs anew from it. */
static void test_heartbeat(void **state)
{
    (void)state;
    open_pull();
    struct worker w = claim("s", "one");
    for (int i = 0; i < 5; i++) {
        sub_sleep(999);
        assert_int_equal(worker_says(&w, SUBSCRIPTION_ACK, ""), 200);
        assert_string_equal(answer, "{\"ok\":true,\"next_wake\":false}");
    }
    sub_sleep(1000);
    assert_int_equal(find("s")->state.generation, 2);
    assert_int_equal(find("s")->state.holder.len, 0);
    assert_int_equal(subs->counts.leases_expired, 1);
    assert_int_equal(worker_says(&w, SUBSCRIPTION_ACK, ""), 409);
}

/* What was appended during a wake leads to the next. */
static void test_append_during_wake(void **state)
{
    (void)state;
    open_pull();
    struct worker w = claim("s", "one");
    say("events/a", "[2]");
    assert_int_equal(worker_acks(&w, SUBSCRIPTION_ACK, "events/a", 4, DONE), 200);
    assert_string_equal(member(answer, "next_wake"), "true");
    w = claim("s", "one");
    assert_int_equal(w.generation, 2);
    assert_int_equal(worker_acks(&w, SUBSCRIPTION_ACK, "events/a", 6, DONE), 200);
}

/* A webhook's callback while its request hangs has the wake: what the request comes to then counts
 * for nothing, unless it is "done". */
static void test_callback_first(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    make("events/a", "[1]");
    struct worker w = call_worker("s", 0);
    assert_int_equal(worker_says(&w, SUBSCRIPTION_CALLBACK, ""), 200);
    assert_int_equal(find("s")->state.phase, SUBSCRIPTION_LEASED);
    call_answer(0, 500, "");
    assert_false(find("s")->state.failed);
    sub_sleep(999);
    assert_int_equal(call_count, 0);
    assert_int_equal(worker_acks(&w, SUBSCRIPTION_CALLBACK, "events/a", 2, DONE), 200);
    assert_int_equal(worker_acks(&w, SUBSCRIPTION_CALLBACK, "events/a", 2, DONE), 409);
    assert_true(said("FENCED"));
}

/* A receiver that failed and calls back all the same has the wake, and is not sent it again. */
static void test_callback_after_failure(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    make("events/a", "[1]");
    struct worker w = call_worker("s", 0);
    call_answer(0, 500, "");
    assert_int_equal(worker_says(&w, SUBSCRIPTION_CALLBACK, ""), 200);
    assert_false(find("s")->state.failed);
    for (int i = 0; i < 3; i++) {
        sub_sleep(900);
        assert_int_equal(call_count, 0);
        assert_int_equal(worker_says(&w, SUBSCRIPTION_CALLBACK, ""), 200);
    }
    sub_sleep(1000);
    assert_int_equal(call_count, 1);
    assert_string_equal(member(call_body(0), "generation"), "2");
}

/* ------------------------------------------------------------------------- the log refuses */

static struct store_ops refusing;
static int refusal;

static int refuse_stage(struct store *s, const struct record *r, struct block *body_block,
                        log_pos *ret_end)
{
    (void)s;
    (void)r;
    (void)body_block;
    (void)ret_end;
    return refusal;
}

static const struct store_ops *refuse(int code)
{
    const struct store_ops *real = rig.engine->store->ops;
    refusal = code;
    refusing = *real;
    refusing.stage = refuse_stage;
    rig.engine->store->ops = &refusing;
    return real;
}

/* Whatever cannot be written has not happened, is answered so, and happens when it is asked for
 * again. */
static void test_refused(void **state)
{
    (void)state;
    open_pull();
    struct worker w = claim("s", "one");
    const int codes[] = {ERR_NOSPC, ERR_FAILED, ERR_NOMEM};
    const int statuses[] = {507, 503, 503};
    for (size_t i = 0; i < ARRAY_COUNT(codes); i++) {
        const struct store_ops *real = refuse(codes[i]);
        assert_int_equal(sub_put("t", PULL("events/*", "")), statuses[i]);
        assert_int_equal(sub_do(SUBSCRIPTION_GET, "t", ""), 404);
        assert_int_equal(sub_do(SUBSCRIPTION_LINK, "s", "{\"streams\":[\"x\"]}"), statuses[i]);
        assert_null(find_link("s", "x"));
        assert_int_equal(worker_acks(&w, SUBSCRIPTION_ACK, "events/a", 4, DONE), statuses[i]);
        assert_int_equal(worker_says(&w, SUBSCRIPTION_RELEASE, ""), statuses[i]);
        assert_int_equal(sub_do(SUBSCRIPTION_DELETE, "s", ""), statuses[i]);
        assert_int_equal(find_link("s", "events/a")->acked, 2);
        assert_int_equal(find("s")->state.phase, SUBSCRIPTION_LEASED);
        rig.engine->store->ops = real;
    }
    assert_int_equal(sub_put("t", PULL("events/*", "")), 201);
    assert_int_equal(sub_do(SUBSCRIPTION_LINK, "s", "{\"streams\":[\"x\"]}"), 204);
    assert_int_equal(worker_acks(&w, SUBSCRIPTION_ACK, "events/a", 4, DONE), 200);
}

/* The error behind an answer is told beside it: of an unknown outcome HTTP says more than the
 * status. What the API refuses has none. */
static void test_error_behind(void **state)
{
    (void)state;
    const int codes[] = {ERR_UNKNOWN, ERR_FAILED, ERR_NOSPC};
    struct subscription_op op;
    for (size_t i = 0; i < ARRAY_COUNT(codes); i++) {
        const struct store_ops *real = refuse(codes[i]);
        op_init(&op, SUBSCRIPTION_PUT, "s", PULL("events/*", ""));
        op.code = 1;
        (void)op_run(&op);
        assert_int_equal(op.code, codes[i]);
        rig.engine->store->ops = real;
    }
    op_init(&op, SUBSCRIPTION_GET, "s", "");
    op.code = 1;
    assert_int_equal(op_run(&op), 404);
    assert_int_equal(op.code, 0);
    subscriptions_stop(subs);
    op_init(&op, SUBSCRIPTION_GET, "s", "");
    assert_int_equal(op_run(&op), 503);
    assert_int_equal(op.code, ERR_STOPPING);
}

/* What nobody asked for, such as a wake, is tried again. */
static void test_refused_wake(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    make("events/a", "[]");
    assert_int_equal(rig_post_body(&rig, "events/a", JSON, "[1]"), 0);
    const struct store_ops *real = refuse(ERR_NOSPC);
    sub_run();
    assert_int_equal(call_count, 0);
    assert_int_equal(find("s")->state.generation, 0);
    sub_sleep(5000);
    assert_int_equal(find("s")->state.generation, 0);
    rig.engine->store->ops = real;
    sub_sleep(1000);
    assert_int_equal(call_count, 1);
    real = refuse(ERR_NOSPC);
    call_answer(0, 200, "{\"done\":true}");
    assert_true(find_link("s", "events/a")->acked == SUBSCRIPTION_START);
    sub_sleep(3000);
    rig.engine->store->ops = real;
    sub_sleep(1000);
    assert_int_equal(find_link("s", "events/a")->acked, 2);
    assert_int_equal(call_count, 0);
}

/* While the server stops, nothing new is begun; what was delivered is kept. */
static void test_stopping(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    make("events/a", "[1]");
    subscriptions_stop(subs);
    assert_int_equal(sub_do(SUBSCRIPTION_GET, "s", ""), 503);
    assert_false(subscriptions_stopped(subs));
    call_answer(0, 200, "{\"done\":true}");
    assert_true(subscriptions_stopped(subs));
    assert_int_equal(find_link("s", "events/a")->acked, 2);
    say("events/a", "[2]");
    sub_sleep(100000);
    assert_int_equal(call_count, 0);
    sub_crash(false);
    assert_int_equal(find_link("s", "events/a")->acked, 2);
    assert_int_equal(call_count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_put),
        TEST(test_put_again_unjudged),
        TEST(test_reserved),
        TEST(test_delete),
        TEST(test_caps),
        TEST(test_too_many_wait),
        TEST(test_too_many_exist),
        TEST(test_membership),
        TEST(test_unlink_while_made),
        TEST(test_own_wake_stream),
        TEST(test_claim),
        TEST(test_ack_order),
        TEST(test_fence),
        TEST(test_offsets),
        TEST(test_ack_of_deleted),
        TEST(test_ack_ahead),
        TEST(test_heartbeat),
        TEST(test_append_during_wake),
        TEST(test_callback_first),
        TEST(test_callback_after_failure),
        TEST(test_refused),
        TEST(test_error_behind),
        TEST(test_refused_wake),
        TEST(test_stopping),
    };
    return UNIT_RUN(tests);
}
