/* The service of subscriptions on the engine of rig.h, without a thread: it does something when the
 * test runs it, webhooks end up in a list that the test answers, and time stands still. */
#ifndef ARBE_TESTS_UNIT_STREAM_SUBSCRIPTION_RIG_H
#define ARBE_TESTS_UNIT_STREAM_SUBSCRIPTION_RIG_H

#include "stream/subscription_core.h"

#include "unit/stream/rig.h"

#define BASE_URL "http://127.0.0.1:4437/v1/stream/__ds"

static struct rig rig;
static struct subscriptions *subs;

/* Webhooks at the sender, oldest first. */
#define CALLS_MAX 5000
static struct subscription_delivery *calls[CALLS_MAX];
static size_t call_count;
static bool sender_waits;    /* what it is given has to wait for its turn */
static const char *reserved; /* how names begin that the next service does not know of; or NULL */
static unsigned troubles;
static char last_trouble[512];

static inline int check_url(void *context, struct slice url, struct errmsg *msg)
{
    (void)context;
    return slice_starts_with(url, SLICE("http://10."))
               ? err_set(msg, ERR_INVALID, "the address is private")
               : 0;
}

static inline void get_kid(void *context, char out[static SUBSCRIPTION_KID_BYTES_MAX])
{
    (void)context;
    memcpy(out, "ds_key", sizeof("ds_key"));
}

static inline void on_deliver(void *context, struct subscription_delivery *d)
{
    (void)context;
    assert_true(call_count < CALLS_MAX);
    calls[call_count++] = d;
    if (!sender_waits) {
        subscriptions_sending(d->owner, d);
    }
}

static inline void on_trouble_told(void *context, const char *sentence)
{
    (void)context;
    troubles++;
    (void)snprintf(last_trouble, sizeof(last_trouble), "%s", sentence);
}

/* Everything runs until nothing moves any more; the log commits meanwhile. */
static inline void sub_run(void)
{
    for (int i = 0; i < 8; i++) {
        (void)subscriptions_step(subs);
        rig_commit(&rig);
    }
    (void)subscriptions_step(subs);
}

static inline struct subscriptions_config sub_config(void)
{
    struct subscriptions_config config = {
        .engine = rig.engine,
        .pool = rig.pool,
        .sys = &rig.sys,
        .base_url = BASE_URL,
        .check_url = check_url,
        .get_kid = get_kid,
        .deliver = on_deliver,
        .trouble = on_trouble_told,
        .reserved = reserved ? slice_of(reserved) : (struct slice){NULL, 0},
        .reserved_why = "they are kept",
    };
    memset(config.token_key, 7, sizeof(config.token_key));
    return config;
}

static inline void sub_attach(void)
{
    struct subscriptions_config config = sub_config();
    struct errmsg msg = {{0}};
    if (subscriptions_open_stepped(&config, &subs, &msg) != 0) {
        fail_msg("subscriptions_open_stepped: %s", msg.text);
    }
    sub_run();
}

static inline int open_rig(void **state)
{
    (void)state;
    rig_open(&rig);
    call_count = 0;
    sender_waits = false;
    reserved = NULL;
    troubles = 0;
    sub_attach();
    return 0;
}

/* Answers the webhook at `index`, and takes it off the list. Nothing runs. */
static inline void call_answer_later(size_t index, int status, const char *reply)
{
    assert_true(index < call_count);
    struct subscription_delivery *d = calls[index];
    memmove(&calls[index], &calls[index + 1], (call_count - index - 1) * sizeof(calls[0]));
    call_count--;
    subscriptions_delivered(subs, d, status, slice_of(reply));
}

static inline void call_answer(size_t index, int status, const char *reply)
{
    call_answer_later(index, status, reply);
    sub_run();
}

static inline void sub_detach(void)
{
    subscriptions_stop(subs);
    while (call_count > 0) {
        call_answer(0, 0, "");
    }
    sub_run();
    assert_true(subscriptions_stopped(subs));
    subscriptions_close(subs);
    subs = NULL;
}

static inline int close_rig(void **state)
{
    (void)state;
    sub_detach();
    rig_close(&rig);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)

/* The server dies and comes back: what was at the sender is lost without an answer, and nothing
 * that is in memory only survives. */
static inline void sub_crash(bool checkpoint)
{
    subs->hold_until_ms = UINT64_MAX; /* nothing more is decided */
    sub_detach();
    rig_reopen(&rig, checkpoint);
    sub_attach();
}

static inline void sub_sleep(uint64_t ms)
{
    rig_sleep(ms);
    sub_run();
}

/* The newest answer. */
static char answer[1 << 16];
static bool answered_yet;

static inline void on_answer(struct subscription_op *op)
{
    (void)snprintf(answer, sizeof(answer), "%.*s", (int)op->answer.len,
                   op->answer.ptr ? op->answer.ptr : "");
    answered_yet = true;
}

static inline void post_here(void *context, struct task *task)
{
    (void)context;
    task->run(task);
}

static inline void op_init(struct subscription_op *op, enum subscription_verb verb, const char *id,
                           const char *body)
{
    *op = (struct subscription_op){
        .verb = verb,
        .id = slice_of(id),
        .body = slice_of(body),
        .post = post_here,
        .done = on_answer,
    };
}

/* Runs the operation to its end; its status. */
static inline int op_run(struct subscription_op *op)
{
    answered_yet = false;
    subscription_start(subs, op);
    sub_run();
    assert_true(answered_yet);
    buf_finish(&op->answer);
    return op->status;
}

static inline int sub_do(enum subscription_verb verb, const char *id, const char *body)
{
    struct subscription_op op;
    op_init(&op, verb, id, body);
    return op_run(&op);
}

static inline int sub_put(const char *id, const char *body)
{
    return sub_do(SUBSCRIPTION_PUT, id, body);
}

/* With a token, as a string of JSON or bare. */
static inline int sub_report(enum subscription_verb verb, const char *id, const char *token,
                             const char *body)
{
    struct subscription_op op;
    op_init(&op, verb, id, body);
    op.token = slice_of(token);
    return op_run(&op);
}

static inline int sub_unlink(const char *id, const char *path)
{
    struct subscription_op op;
    op_init(&op, SUBSCRIPTION_UNLINK, id, "");
    op.path = slice_of(path);
    return op_run(&op);
}

/* The value of a member, of the first of that name; a string without its quotes. In turn one of
 * some buffers. */
static inline const char *member(const char *json, const char *name)
{
    static char values[4][2048];
    static unsigned turn;
    char *value = values[turn++ % ARRAY_COUNT(values)];
    char key[64];
    (void)snprintf(key, sizeof(key), "\"%s\":", name);
    const char *at = strstr(json, key);
    if (!at) {
        fail_msg("no %s in %s", name, json);
    }
    at += strlen(key);
    size_t len = *at == '"' ? strcspn(++at, "\"") : strcspn(at, ",}");
    assert_true(len < sizeof(values[0]));
    memcpy(value, at, len);
    value[len] = '\0';
    return value;
}

static inline bool said(const char *text)
{
    return strstr(answer, text) != NULL;
}

/* What the webhook at `index` was sent, NUL-terminated. */
static inline const char *call_body(size_t index)
{
    static char body[1 << 16];
    assert_true(index < call_count);
    (void)snprintf(body, sizeof(body), "%.*s", (int)calls[index]->body.len, calls[index]->body.ptr);
    return body;
}

/* The worker that has a wake. */
struct worker {
    char id[64];
    char token[2048];
    char wake_id[64];
    unsigned long long generation;
};

static inline struct worker worker_of(const char *id, const char *json, const char *token_name)
{
    struct worker w = {0};
    (void)snprintf(w.id, sizeof(w.id), "%s", id);
    (void)snprintf(w.token, sizeof(w.token), "%s", member(json, token_name));
    (void)snprintf(w.wake_id, sizeof(w.wake_id), "%s", member(json, "wake_id"));
    w.generation = strtoull(member(json, "generation"), NULL, 10);
    return w;
}

static inline struct worker call_worker(const char *id, size_t index)
{
    return worker_of(id, call_body(index), "callback_token");
}

static inline struct worker claim(const char *id, const char *name)
{
    char body[320];
    (void)snprintf(body, sizeof(body), "{\"worker\":\"%s\"}", name);
    int status = sub_do(SUBSCRIPTION_CLAIM, id, body);
    if (status != 200) {
        fail_msg("claim: %d %s", status, answer);
    }
    return worker_of(id, answer, "token");
}

/* `rest` is what else the body says, such as ",\"done\":true". */
static inline int worker_says(const struct worker *w, enum subscription_verb verb, const char *rest)
{
    char body[4096];
    (void)snprintf(body, sizeof(body), "{\"wake_id\":\"%s\",\"generation\":%llu%s}", w->wake_id,
                   w->generation, rest);
    return sub_report(verb, w->id, w->token, body);
}

/* ,"acks":[{"stream":path,"offset":position}] and `rest`. */
static inline int worker_acks(const struct worker *w, enum subscription_verb verb, const char *path,
                              uint64_t position, const char *rest)
{
    char token[OFFSET_TOKEN_BYTES + 1] = "";
    char text[1024];
    offset_format(token, position);
    (void)snprintf(text, sizeof(text), ",\"acks\":[{\"stream\":\"%s\",\"offset\":\"%s\"}]%s", path,
                   token, rest);
    return worker_says(w, verb, text);
}

#define DONE ",\"done\":true"
#define JSON "application/json"

/* Appends a message of JSON, and has everything run. */
static inline void say(const char *name, const char *body)
{
    assert_int_equal(rig_post_body(&rig, name, JSON, body), 0);
    sub_run();
}

static inline void make(const char *name, const char *body)
{
    assert_int_equal(rig_put(&rig, name, JSON, body), 0);
    sub_run();
}

static inline const struct subscription *find(const char *id)
{
    struct subscription *sub = core_find(subs, slice_of(id));
    assert_non_null(sub);
    return sub;
}

static inline const struct subscription_link *find_link(const char *id, const char *path)
{
    struct subscription_link *l = subscription_find(find(id), slice_of(path));
    return l && !l->dropped ? l : NULL;
}

#define HOOK(pattern, more)                        \
    "{\"type\":\"webhook\",\"pattern\":\"" pattern \
    "\",\"webhook\":{\"url\":\"http://127.0.0.1:1/hook\"},\"lease_ttl_ms\":1000" more "}"
#define PULL(pattern, more)                          \
    "{\"type\":\"pull-wake\",\"pattern\":\"" pattern \
    "\",\"wake_stream\":\"wake/pool\",\"lease_ttl_ms\":1000" more "}"

#endif
