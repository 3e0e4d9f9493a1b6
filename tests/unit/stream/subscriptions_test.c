/* The service as its users see it. */
#include "stream/subscriptions.c"

#include "unit/stream/subscription_rig.h"

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
    make("wake/pool", ""); /* no time passes */
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

/* ------------------------------------------------------------------------------------- threads */

#define WRITERS  2
#define APPENDS  300
#define FOLLOWED 4

/* A queue of tasks that a thread waits at. */
struct loop {
    pthread_mutex_t lock; /* guards the list */
    pthread_cond_t wake;
    struct list tasks;
    struct engine_worker *worker;
    pthread_t thread;
    unsigned index;
    bool done; /* of the operation at hand; the loop's thread */
};

static void loop_post(void *context, struct task *task)
{
    struct loop *l = context;
    pthread_mutex_lock(&l->lock);
    list_append(&l->tasks, &task->link);
    pthread_cond_signal(&l->wake);
    pthread_mutex_unlock(&l->lock);
}

static struct task *loop_take(struct loop *l, bool wait)
{
    pthread_mutex_lock(&l->lock);
    while (wait && list_empty(&l->tasks)) {
        pthread_cond_wait(&l->wake, &l->lock);
    }
    struct list *first = list_first(&l->tasks);
    if (first) {
        list_remove(first);
    }
    pthread_mutex_unlock(&l->lock);
    return first ? container_of(first, struct task, link) : NULL;
}

static void loop_init(struct loop *l, unsigned index)
{
    *l = (struct loop){.index = index};
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->wake, NULL);
    list_init(&l->tasks);
    assert_int_equal(engine_attach(rig.engine, loop_post, l, &l->worker), 0);
}

static void loop_finish(struct loop *l)
{
    struct task *task;
    while ((task = loop_take(l, false)) != NULL) {
        task->run(task);
    }
    engine_detach(l->worker);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->wake);
}

static void loop_wait(struct loop *l)
{
    while (!l->done) {
        struct task *task = loop_take(l, true);
        task->run(task);
    }
}

static void stream_op_done(struct stream_op *op)
{
    ((struct loop *)op->context)->done = true;
}

static void sub_op_done(struct subscription_op *op)
{
    ((struct loop *)op->context)->done = true;
}

static int loop_stream(struct loop *l, struct stream_op *op)
{
    l->done = false;
    op->done = stream_op_done;
    op->context = l;
    if (stream_start(l->worker, op) == STREAM_PENDING) {
        loop_wait(l);
    }
    return op->result.code;
}

/* The answer is in op->answer, the caller's to finish. */
static int loop_ask(struct loop *l, struct subscription_op *op, enum subscription_verb verb,
                    const char *id, const char *body)
{
    *op = (struct subscription_op){.verb = verb,
                                   .id = slice_of(id),
                                   .body = slice_of(body),
                                   .path = SLICE("events/0"),
                                   .post = loop_post,
                                   .post_context = l,
                                   .done = sub_op_done,
                                   .context = l};
    l->done = false;
    subscription_start(subs, op);
    loop_wait(l);
    return op->status;
}

static void *writer_main(void *context)
{
    struct loop *l = context;
    for (unsigned n = 0; n < APPENDS; n++) {
        char name[32];
        (void)snprintf(name, sizeof(name), n % 8 == 7 ? "elsewhere/%u" : "events/%u", n % FOLLOWED);
        struct stream_op op = {.verb = n < 2 * FOLLOWED ? STREAM_CREATE : STREAM_APPEND,
                               .name = slice_of(name)};
        if (op.verb == STREAM_CREATE) {
            op.create.content_type = SLICE(JSON);
            op.create.body = SLICE("[1]");
        } else {
            op.append.content_type = SLICE(JSON);
            op.append.body = SLICE("[2]");
        }
        (void)loop_stream(l, &op); /* some streams of that name come from the other writer */
        if (n % 100 == 99) {
            op = (struct stream_op){.verb = STREAM_DELETE, .name = SLICE("events/0")};
            (void)loop_stream(l, &op);
            op = (struct stream_op){.verb = STREAM_CREATE, .name = SLICE("events/0")};
            op.create.content_type = SLICE(JSON);
            (void)loop_stream(l, &op);
        }
    }
    return NULL;
}

/* Makes, changes, asks and deletes, and works for pull-wake. */
static void *user_main(void *context)
{
    struct loop *l = context;
    static const struct {
        enum subscription_verb verb;
        const char *body;
    } asks[] = {
        {SUBSCRIPTION_PUT, PULL("**", "")},
        {SUBSCRIPTION_GET, ""},
        {SUBSCRIPTION_LINK, "{\"streams\":[\"events/0\",\"none\"]}"},
        {SUBSCRIPTION_CLAIM, "{\"worker\":\"one\"}"},
        {SUBSCRIPTION_UNLINK, ""},
        {SUBSCRIPTION_DELETE, ""},
    };
    for (unsigned n = 0; n < APPENDS; n++) {
        struct subscription_op op;
        size_t which = n % ARRAY_COUNT(asks);
        int status = loop_ask(l, &op, asks[which].verb, "user", asks[which].body);
        assert_true(status < 500);
        buf_finish(&op.answer);
        struct subscriptions_stats stats;
        subscriptions_get_stats(subs, &stats);
        assert_in_range(stats.subscriptions, 1, 2);
    }
    return NULL;
}

/* Webhooks go out on a thread of their own. */
static struct loop sender;
static _Atomic bool sender_ends;

static void send_webhook(struct task *task)
{
    struct subscription_delivery *d = container_of(task, struct subscription_delivery, task);
    subscriptions_delivered(subs, d, 200, SLICE("{\"done\":true}"));
}

static void deliver_to_sender(void *context, struct subscription_delivery *d)
{
    (void)context;
    subscriptions_sending(d->owner, d);
    d->task.run = send_webhook;
    loop_post(&sender, &d->task);
}

static void end_sender(struct task *task)
{
    (void)task;
    atomic_store(&sender_ends, true);
}

static void *sender_main(void *context)
{
    struct loop *l = context;
    while (!atomic_load(&sender_ends)) {
        struct task *task = loop_take(l, true);
        task->run(task);
    }
    return NULL;
}

/* Whether everything in events/ is acknowledged, by what the service says. */
static bool all_acknowledged(struct loop *l)
{
    struct subscription_op op;
    assert_int_equal(loop_ask(l, &op, SUBSCRIPTION_GET, "hook", ""), 200);
    bool all = true;
    buf_append_char(&op.answer, '\0');
    for (unsigned i = 0; i < FOLLOWED; i++) {
        char text[128];
        (void)snprintf(text, sizeof(text), "events/%u", i);
        struct stream_op head = {.verb = STREAM_HEAD, .name = slice_of(text)};
        if (loop_stream(l, &head) < 0 || head.result.next == 0) {
            continue;
        }
        char token[OFFSET_TOKEN_BYTES + 1] = "";
        offset_format(token, head.result.next);
        (void)snprintf(text, sizeof(text),
                       "\"path\":\"events/%u\",\"link_type\":\"glob\",\"acked_offset\":\"%s\"", i,
                       token);
        all = all && strstr(op.answer.ptr, text);
    }
    buf_finish(&op.answer);
    return all;
}

static void open_threads(void)
{
    rig_open(&rig);
    assert_int_equal(rig_put(&rig, "wake/pool", JSON, ""), 0);
    rig_detach(&rig, false);
    pool_destroy(rig.pool);
    assert_int_equal(pool_create(2, &rig.pool), 0);
    rig.config.pool = rig.pool;
    rig.config.store.threads = true;
    rig.config.store.checkpoint_interval_ms = 20;
    rig.config.sweep_interval_ms = 5;
    rig.config.idle_ms = 0;
    sys_posix_init(&rig.sys);
    struct errmsg msg;
    struct store_report report;
    assert_int_equal(engine_open(&rig.config, &rig.engine, &report, &msg), 0);
    struct subscriptions_config config = sub_config();
    config.deliver = deliver_to_sender;
    assert_int_equal(subscriptions_open(&config, &subs, &msg), 0);
}

/* Writers, a user, a sender, the service and the store, each on its thread: no append is
 * forgotten, and all of it ends. */
static void test_threads(void **state)
{
    (void)state;
    struct loop loops[WRITERS + 1];
    open_threads();
    loop_init(&sender, 0);
    assert_int_equal(pthread_create(&sender.thread, NULL, sender_main, &sender), 0);
    for (unsigned i = 0; i <= WRITERS; i++) {
        loop_init(&loops[i], i);
    }
    struct subscription_op op;
    assert_int_equal(loop_ask(&loops[0], &op, SUBSCRIPTION_PUT, "hook", HOOK("events/*", "")), 201);
    buf_finish(&op.answer);
    for (unsigned i = 0; i <= WRITERS; i++) {
        assert_int_equal(pthread_create(&loops[i].thread, NULL,
                                        i < WRITERS ? writer_main : user_main, &loops[i]),
                         0);
    }
    for (unsigned i = 0; i <= WRITERS; i++) {
        assert_int_equal(pthread_join(loops[i].thread, NULL), 0);
    }
    while (!all_acknowledged(&loops[0])) {
    }
    subscriptions_close(subs);
    struct task end = {.run = end_sender};
    loop_post(&sender, &end);
    assert_int_equal(pthread_join(sender.thread, NULL), 0);
    for (unsigned i = 0; i <= WRITERS; i++) {
        loop_finish(&loops[i]);
    }
    loop_finish(&sender);
    assert_int_equal(engine_close(rig.engine, true), 0);
    pool_destroy(rig.pool);
    assert_int_equal(nftw(rig.dir, rig_remove, 8, FTW_DEPTH | FTW_PHYS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_webhook),
        TEST(test_trap_1_late_done),
        TEST(test_trap_2_cursor_back),
        TEST(test_trap_3_deleted_in_flight),
        TEST(test_trap_4_retry_and_lease),
        TEST(test_trap_5_shapes),
        TEST(test_trap_6_token_of_pull_wake),
        TEST(test_trap_7_wake_stream),
        TEST(test_trap_8_recreated_stream),
        TEST(test_trap_9_empty_stream),
        TEST(test_trap_10_many_subscriptions),
        cmocka_unit_test(test_threads),
    };
    return UNIT_RUN(tests);
}
