/* Subscriptions through crashes: random requests, appends, deletions and answers of webhooks, on a
 * disk that loses what was not synced and with memory that runs out, beside a naive model of what
 * was promised.
 *
 *   subscription_sim [--seeds N] [--start S] [--steps K] [-v]
 *
 * What is held true:
 *   - what was answered stays: definitions, deletions, links, cursors;
 *   - a generation is never given to two wakes, and none comes after a greater one, not even when
 *     the id was deleted in between;
 *   - only the current wake's worker moves cursors, and while its lease has time left no other
 *     worker gets one;
 *   - once all works again and workers do their work, every stream that a subscription follows is
 *     acknowledged up to its tail: no wake is lost. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "log/sys.h"
#include "sim/alloc.h"
#include "sim/world.h"
#include "stream/core.h"
#include "stream/subscription_core.h"
#include "stream/token.h"

#define IDS       4u
#define STREAMS   8u
#define CALLS_MAX 64u
#define LEASE_MS  2000u

/* What is known of a subscription from its answers. */
struct promise {
    bool exists;
    bool asked;          /* a PUT waits for its answer */
    bool unsure;         /* an answer was lost: it may have happened or not */
    unsigned definition; /* of `definitions` */
    uint64_t generation; /* greatest seen of this id, ever */
    char wake_id[SUBSCRIPTION_WAKE_ID_BYTES];
    int64_t lease_until_ms; /* of a claim that was answered; 0: none */
    char token[TOKEN_BYTES_MAX];
    size_t token_len;
    uint64_t token_generation;
    char token_wake_id[SUBSCRIPTION_WAKE_ID_BYTES];
};

struct life {
    uint64_t random;
    bool verbose;
    struct fakedisk *disk;
    struct sys sys;
    char catalog_dir[64];
    struct pool *pool;
    struct engine *engine;
    struct engine_worker *worker;
    struct list tasks; /* of the worker */
    struct subscriptions *subs;
    struct subscription_delivery *calls[CALLS_MAX];
    size_t call_count;
    bool calm; /* everything works: no error is excused */
    struct promise promises[IDS];
    uint64_t acked[IDS][STREAMS]; /* promised, of the present stream of that name */
    uint64_t deletions[STREAMS];  /* so far */
    bool muddy[STREAMS];          /* deleted while memory was short: heard of some time later */
    bool short_of_memory;
    bool busy; /* streams change while operations wait */
};

static struct life *now;

static const char *const names[STREAMS] = {
    "a/0", "a/1", "a/2", "b/0", "b/1", "b/x/y", "wake", "other",
};

#define LEASE ",\"lease_ttl_ms\":2000}"

static const struct {
    bool webhook;
    const char *body;
} definitions[] = {
    {true, "{\"type\":\"webhook\",\"pattern\":\"a/*\",\"webhook\":{\"url\":\"http://x/\"}" LEASE},
    {false, "{\"type\":\"pull-wake\",\"pattern\":\"**\",\"wake_stream\":\"wake\"" LEASE},
    {true, "{\"type\":\"webhook\",\"streams\":[\"a/0\",\"b/0\",\"wake\"],"
           "\"webhook\":{\"url\":\"http://y/\"}" LEASE},
    {false, "{\"type\":\"pull-wake\",\"pattern\":\"b/**\",\"streams\":[\"a/1\"],"
            "\"wake_stream\":\"wake\"" LEASE},
};

static uint64_t below(uint64_t limit)
{
    return fakedisk_below(&now->random, limit);
}

static bool chance(uint64_t in)
{
    return below(in) == 0;
}

static void trace(const char *format, ...) PRINTF_LIKE(1, 2);
static void trace(const char *format, ...)
{
    if (!now->verbose) {
        return;
    }
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    (void)fflush(stdout);
}

static int64_t clock_ms(void)
{
    return now->sys.now_ms(now->sys.context);
}

static struct slice id_of(unsigned i)
{
    static const char ids[IDS][3] = {"s0", "s1", "s2", "s3"};
    return (struct slice){ids[i], 2};
}

/* The value of the first member of that name at or behind `at`; a string without its quotes. */
static struct slice member(const char *at, const char *name)
{
    char key[64];
    (void)snprintf(key, sizeof(key), "\"%s\":", name);
    at = strstr(at, key);
    CHECK(at, "no %s", name);
    at += strlen(key);
    size_t len = *at == '"' ? strcspn(++at, "\"") : strcspn(at, ",}");
    return (struct slice){at, len};
}

static uint64_t number_of(struct slice text)
{
    return strtoull(text.ptr, NULL, 10);
}

/* ---------------------------------------------------------------------------------- the motor */

static void post(void *context, struct task *task)
{
    list_append(context, &task->link);
}

static bool run_task(void)
{
    struct list *first = list_first(&now->tasks);
    if (!first) {
        return false;
    }
    list_remove(first);
    struct task *task = container_of(first, struct task, link);
    task->run(task);
    return true;
}

static void commit(void)
{
    (void)now->engine->store->ops->commit(now->engine->store);
}

/* One of the things that happen by themselves. */
static void pump(void)
{
    switch (below(4)) {
    case 0:
        (void)subscriptions_step(now->subs);
        break;
    case 1:
        (void)run_task();
        break;
    case 2:
        if (simpool_count(now->pool) > 0) {
            simpool_run(now->pool, below(simpool_count(now->pool)));
        }
        break;
    default:
        commit();
    }
}

static void settle(void)
{
    for (int i = 0; i < 60; i++) {
        (void)subscriptions_step(now->subs);
        while (run_task()) {
        }
        while (simpool_count(now->pool) > 0) {
            simpool_run(now->pool, 0);
        }
        commit();
    }
    (void)subscriptions_step(now->subs);
}

/* --------------------------------------------------------------------------------------- wakes */

/* Somebody learned of a wake. */
static void see_wake(struct promise *p, uint64_t generation, struct slice wake_id)
{
    CHECK(wake_id.len == sizeof(p->wake_id), "the wake id is short");
    CHECK(generation >= p->generation, "generation %llu after %llu", (unsigned long long)generation,
          (unsigned long long)p->generation);
    if (generation == p->generation) {
        CHECK(memcmp(p->wake_id, wake_id.ptr, wake_id.len) == 0, "two wakes of one generation");
        return;
    }
    p->generation = generation;
    memcpy(p->wake_id, wake_id.ptr, wake_id.len);
}

static void take_token(struct promise *p, const char *json, const char *name)
{
    struct slice token = member(json, name);
    struct slice wake_id = member(json, "wake_id");
    uint64_t generation = number_of(member(json, "generation"));
    see_wake(p, generation, wake_id);
    CHECK(token.len < sizeof(p->token), "a long token");
    memcpy(p->token, token.ptr, token.len);
    p->token_len = token.len;
    p->token_generation = generation;
    memcpy(p->token_wake_id, wake_id.ptr, wake_id.len);
}

static void on_deliver(void *context, struct subscription_delivery *d)
{
    (void)context;
    alloc_pause();
    CHECK(now->call_count < CALLS_MAX, "too many webhooks");
    now->calls[now->call_count++] = d;
    if (chance(2)) {
        subscriptions_sending(d->owner, d);
    }
    char *body = malloc(d->body.len + 1);
    CHECK(body, "memory");
    memcpy(body, d->body.ptr, d->body.len);
    body[d->body.len] = '\0';
    unsigned i = (unsigned)(member(body, "subscription_id").ptr[1] - '0');
    struct promise *p = &now->promises[i];
    trace("    webhook of s%u, generation %llu", i,
          (unsigned long long)number_of(member(body, "generation")));
    CHECK(p->exists || p->unsure || p->asked, "a deleted subscription is delivered");
    if (chance(2) || number_of(member(body, "generation")) != p->token_generation) {
        take_token(p, body, "callback_token");
    } else {
        see_wake(p, number_of(member(body, "generation")), member(body, "wake_id"));
    }
    free(body);
    alloc_resume();
}

static void answer_call(size_t index, int status, const char *reply)
{
    struct subscription_delivery *d = now->calls[index];
    now->calls[index] = now->calls[--now->call_count];
    trace("  webhook of generation %llu is answered %d %s", (unsigned long long)d->generation,
          status, reply);
    subscriptions_delivered(now->subs, d, status, slice_of(reply));
}

/* ---------------------------------------------------------------------------------- operations */

static void do_stream(void);

struct asked {
    struct subscription_op op;
    bool done;
    char *text; /* NUL-terminated; owned */
};

static void on_answer(struct subscription_op *op)
{
    struct asked *a = container_of(op, struct asked, op);
    alloc_pause();
    a->text = malloc(op->answer.len + 1);
    CHECK(a->text, "memory");
    if (op->answer.len > 0) {
        memcpy(a->text, op->answer.ptr, op->answer.len);
    }
    a->text[op->answer.len] = '\0';
    a->done = true;
    buf_finish(&op->answer);
    alloc_resume();
}

static void post_here(void *context, struct task *task)
{
    (void)context;
    task->run(task);
}

/* The status; 0: refused for a reason that may pass. */
static int ask(struct asked *a, enum subscription_verb verb, unsigned i, const char *body,
               struct slice token)
{
    *a = (struct asked){.op = {.verb = verb,
                               .id = id_of(i),
                               .body = slice_of(body),
                               .token = token,
                               .post = post_here,
                               .done = on_answer}};
    subscription_start(now->subs, &a->op);
    for (unsigned n = 0; !a->done; n++) {
        CHECK(n < 100000, "no answer");
        if (!now->calm && chance(now->busy ? 3 : 12)) {
            do_stream();
        } else {
            pump();
        }
    }
    trace("  s%u verb %d: %d %s", i, (int)verb, a->op.status, a->text);
    bool passes = a->op.status >= 500;
    CHECK(!passes || !now->calm, "%d %s", a->op.status, a->text);
    return passes ? 0 : a->op.status;
}

static void forget(unsigned i)
{
    struct promise *p = &now->promises[i];
    p->lease_until_ms = 0;
    memset(now->acked[i], 0, sizeof(now->acked[i]));
}

static void do_put(unsigned i)
{
    struct promise *p = &now->promises[i];
    unsigned d = (unsigned)below(ARRAY_COUNT(definitions));
    struct asked a;
    p->asked = true;
    int status = ask(&a, SUBSCRIPTION_PUT, i, definitions[d].body, (struct slice){0});
    p->asked = false;
    if (status == 0) {
        p->unsure = true;
        forget(i);
    } else if (status == 201) {
        CHECK(!p->exists || p->unsure, "created, though it exists");
        p->exists = true;
        p->unsure = false;
        p->definition = d;
        forget(i);
    } else {
        CHECK(status == 200 || status == 409, "PUT: %d", status);
        CHECK(p->exists || p->unsure, "it exists, though it was deleted");
        CHECK(p->unsure || (status == 200) == (p->definition == d), "another definition: %d",
              status);
        p->exists = true;
        p->definition = status == 200 ? d : p->definition;
        p->unsure = p->unsure && status != 200;
    }
    free(a.text);
}

static void do_delete(unsigned i)
{
    struct promise *p = &now->promises[i];
    struct asked a;
    int status = ask(&a, SUBSCRIPTION_DELETE, i, "", (struct slice){0});
    CHECK(status == 204 || status == 0, "DELETE: %d", status);
    p->unsure = status == 0;
    p->exists = p->exists && status == 0;
    forget(i);
    free(a.text);
}

/* Where the cursor of a stream stands, by what GET shows; 0 without a link. */
static uint64_t shown_cursor(const char *json, const char *name)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "\"path\":\"%s\"", name);
    const char *at = strstr(json, path);
    struct slice offset = at ? member(at, "acked_offset") : (struct slice){0};
    return offset.len == OFFSET_TOKEN_BYTES ? strtoull(offset.ptr + 17, NULL, 10) : 0;
}

static void do_get(unsigned i)
{
    struct promise *p = &now->promises[i];
    struct asked a;
    int status = ask(&a, SUBSCRIPTION_GET, i, "", (struct slice){0});
    if (status == 404) {
        CHECK(!p->exists || p->unsure, "s%u is lost", i);
        p->exists = false;
        p->unsure = false;
    } else if (status == 200) {
        CHECK(p->exists || p->unsure, "s%u is back", i);
        for (unsigned n = 0; n < STREAMS; n++) {
            uint64_t shown = shown_cursor(a.text, names[n]);
            CHECK(shown >= now->acked[i][n], "s%u: the cursor of %s is %llu, after %llu", i,
                  names[n], (unsigned long long)shown, (unsigned long long)now->acked[i][n]);
        }
    }
    free(a.text);
}

static void do_link(unsigned i)
{
    char body[64];
    (void)snprintf(body, sizeof(body), "{\"streams\":[\"%s\"]}", names[below(STREAMS)]);
    struct asked a;
    (void)ask(&a, SUBSCRIPTION_LINK, i, body, (struct slice){0});
    free(a.text);
}

static void do_unlink(unsigned i)
{
    unsigned n = (unsigned)below(STREAMS);
    struct asked a = {0};
    a.op = (struct subscription_op){.verb = SUBSCRIPTION_UNLINK,
                                    .id = id_of(i),
                                    .path = slice_of(names[n]),
                                    .post = post_here,
                                    .done = on_answer};
    subscription_start(now->subs, &a.op);
    while (!a.done) {
        pump();
    }
    now->acked[i][n] = 0;
    free(a.text);
}

/* All cursors to the tails that the answer tells of, or some of them. */
static void add_acks(char *body, size_t size, const char *json, bool all, uint64_t *ret_acked)
{
    size_t len = strlen(body);
    len += (size_t)snprintf(body + len, size - len, ",\"acks\":[");
    const char *comma = "";
    for (unsigned n = 0; n < STREAMS; n++) {
        char path[64];
        (void)snprintf(path, sizeof(path), "\"path\":\"%s\"", names[n]);
        const char *at = strstr(json, path);
        if (!at || !(all || chance(2))) {
            continue;
        }
        struct slice tail = member(at, "tail_offset");
        len += (size_t)snprintf(body + len, size - len, "%s{\"stream\":\"%s\",\"offset\":\"%.*s\"}",
                                comma, names[n], (int)tail.len, tail.ptr);
        ret_acked[n] = strtoull(tail.ptr + 17, NULL, 10);
        comma = ",";
    }
    (void)snprintf(body + len, size - len, "]");
}

/* A report of whoever has the newest token that was seen. */
static void do_report(unsigned i, enum subscription_verb verb, const char *view, bool all)
{
    struct promise *p = &now->promises[i];
    if (p->token_len == 0) {
        return;
    }
    char body[4096];
    uint64_t acked[STREAMS] = {0};
    bool done = all || chance(2);
    (void)snprintf(body, sizeof(body), "{\"wake_id\":\"%.*s\",\"generation\":%llu%s",
                   (int)sizeof(p->token_wake_id), p->token_wake_id,
                   (unsigned long long)p->token_generation, done ? ",\"done\":true" : "");
    if (view && verb != SUBSCRIPTION_RELEASE) {
        add_acks(body, sizeof(body), view, all, acked);
    }
    (void)snprintf(body + strlen(body), sizeof(body) - strlen(body), "}");
    bool current = p->token_generation == p->generation && p->exists && !p->unsure;
    bool leased = current && clock_ms() < p->lease_until_ms;
    uint64_t deletions[STREAMS];
    memcpy(deletions, now->deletions, sizeof(deletions));
    struct asked a;
    int status = ask(&a, verb, i, body, (struct slice){p->token, p->token_len});
    if (status == 200 || status == 204) {
        CHECK(p->token_generation == p->generation, "a worker of generation %llu is heard in %llu",
              (unsigned long long)p->token_generation, (unsigned long long)p->generation);
        for (unsigned n = 0; n < STREAMS; n++) {
            bool more = acked[n] > now->acked[i][n] && !now->muddy[n] &&
                        deletions[n] == now->deletions[n];
            now->acked[i][n] = more ? acked[n] : now->acked[i][n];
        }
    }
    CHECK(!(leased && status == 409 && strstr(a.text, "FENCED")), "fenced, with a lease");
    bool ended = status == 0 || status == 204 || (status == 200 && done);
    if (ended) {
        p->lease_until_ms = 0;
    } else if (status == 200 && !definitions[p->definition].webhook) {
        p->lease_until_ms = clock_ms() + LEASE_MS;
    }
    free(a.text);
}

/* True: claimed; then *ret_view is what is to be done, owned by the caller. */
static bool do_claim(unsigned i, char **ret_view)
{
    struct promise *p = &now->promises[i];
    bool leased = !p->unsure && clock_ms() < p->lease_until_ms;
    struct asked a;
    int status = ask(&a, SUBSCRIPTION_CLAIM, i, "{\"worker\":\"w\"}", (struct slice){0});
    if (status == 200) {
        CHECK(p->exists || p->unsure, "claimed, though it was deleted");
        CHECK(!leased, "claimed, though it is leased");
        take_token(p, a.text, "token");
        p->lease_until_ms = clock_ms() + LEASE_MS;
        *ret_view = a.text;
        return true;
    }
    if (status == 0) {
        p->lease_until_ms = 0;
    }
    free(a.text);
    return false;
}

/* ------------------------------------------------------------------------------------- streams */

static void on_done(struct stream_op *op)
{
    *(bool *)op->context = true;
}

static int stream_do(struct stream_op *op, unsigned n)
{
    bool done = false;
    op->name = slice_of(names[n]);
    op->done = on_done;
    op->context = &done;
    if (stream_start(now->worker, op) == STREAM_PENDING) {
        unsigned turns = 0;
        while (!done) {
            CHECK(turns++ < 100000, "no answer");
            pump();
        }
    }
    trace("  %s verb %d: %s next %llu", names[n], (int)op->verb, err_name(op->result.code),
          (unsigned long long)op->result.next);
    return op->result.code;
}

static void do_stream(void)
{
    unsigned n = (unsigned)below(STREAMS);
    unsigned what = (unsigned)below(10);
    struct stream_op op = {.verb = STREAM_APPEND};
    if (what == 0) {
        op.verb = STREAM_DELETE;
        if (stream_do(&op, n) != ERR_NOTFOUND) {
            now->deletions[n]++;
            now->muddy[n] = now->muddy[n] || now->short_of_memory;
            for (unsigned i = 0; i < IDS; i++) {
                now->acked[i][n] = 0;
            }
        }
    } else if (what == 1) {
        op.verb = STREAM_CREATE;
        op.create.forked_from = slice_of(names[below(STREAMS)]);
        (void)stream_do(&op, n);
    } else if (what < 5) {
        op.verb = STREAM_CREATE;
        op.create.content_type = SLICE("application/json");
        op.create.body = chance(3) ? SLICE("[]") : SLICE("[1,2]");
        (void)stream_do(&op, n);
    } else {
        op.append.content_type = SLICE("application/json");
        op.append.body = SLICE("[\"message\"]");
        (void)stream_do(&op, n);
    }
}

/* ----------------------------------------------------------------------------------- one life */

static void open_subscriptions(void)
{
    struct subscriptions_config config = {
        .engine = now->engine,
        .pool = now->pool,
        .sys = &now->sys,
        .base_url = "http://h/v1/stream/__ds",
        .deliver = on_deliver,
    };
    struct errmsg msg = {""};
    int rc = subscriptions_open_stepped(&config, &now->subs, &msg);
    if (rc == ERR_NOMEM && !now->calm) {
        alloc_pause();
        rc = subscriptions_open_stepped(&config, &now->subs, &msg);
        alloc_resume();
    }
    CHECK(rc == 0, "open: %s", msg.text);
}

static bool open_life(void)
{
    struct engine_config config = {
        .store = {.dir = "/data",
                  .durability = DURABILITY_SYNC,
                  .segment_bytes = 64 * KIB,
                  .checkpoint_bytes = UINT64_MAX,
                  .staged_bytes_max = 1 * MIB,
                  .sys = &now->sys,
                  .catalog_dir = now->catalog_dir},
        .pool = now->pool,
        .read_page_bytes = 64 * KIB,
        .hot_bytes_max = 64 * MIB,
        .cache_bytes_max = 1 * MIB,
        .idle_ms = 1000,
    };
    struct store_report report;
    struct errmsg msg = {""};
    alloc_pause();
    int rc = engine_open(&config, &now->engine, &report, &msg);
    if (rc == 0) {
        rc = engine_attach(now->engine, post, &now->tasks, &now->worker);
        CHECK(rc == 0, "attach");
    }
    alloc_resume();
    if (rc < 0) {
        CHECK(!now->calm, "open: %s", msg.text);
        return false;
    }
    open_subscriptions();
    return true;
}

/* Whatever is under way ends somehow, and nobody hears of it. */
static void close_life(bool checkpoint)
{
    now->subs->hold_until_ms = UINT64_MAX;
    subscriptions_stop(now->subs);
    for (unsigned n = 0; !subscriptions_stopped(now->subs); n++) {
        CHECK(n < 1000, "it does not stop");
        while (now->call_count > 0) {
            answer_call(0, 0, "");
        }
        settle();
    }
    subscriptions_close(now->subs);
    while (run_task() || simpool_count(now->pool) > 0) {
        if (simpool_count(now->pool) > 0) {
            simpool_run(now->pool, 0);
        }
    }
    engine_detach(now->worker);
    (void)engine_close(now->engine, checkpoint);
    list_init(&now->tasks);
}

static void act(void)
{
    unsigned i = (unsigned)below(IDS);
    unsigned what = (unsigned)below(100);
    char *view = NULL;
    if (what < 25) {
        do_stream();
    } else if (what < 32) {
        do_put(i);
    } else if (what == 32) {
        do_delete(i);
    } else if (what < 39) {
        do_get(i);
    } else if (what < 43) {
        do_link(i);
    } else if (what < 45) {
        do_unlink(i);
    } else if (what < 55 && now->call_count > 0) {
        static const char *const replies[] = {"{\"done\":true}", "{}", "", "{\"done\":true}"};
        static const int statuses[] = {200, 200, 0, 503};
        size_t how = below(4);
        answer_call(below(now->call_count), statuses[how], replies[how]);
    } else if (what < 62) {
        if (do_claim(i, &view)) {
            do_report(i, SUBSCRIPTION_ACK, view, chance(3));
        }
    } else if (what < 70) {
        static const enum subscription_verb verbs[] = {SUBSCRIPTION_ACK, SUBSCRIPTION_RELEASE,
                                                       SUBSCRIPTION_CALLBACK};
        do_report(i, verbs[below(3)], NULL, false);
    } else if (what < 78) {
        fakedisk_advance(now->disk, below(chance(4) ? 30000 : 1500));
    } else if (what == 78) {
        engine_housekeep(now->engine);
        (void)now->engine->store->ops->checkpoint(now->engine->store);
    } else {
        pump();
    }
    free(view);
}

static void check_all(void)
{
    for (unsigned i = 0; i < IDS; i++) {
        do_get(i);
    }
}

static void work(void);
static void check_end(void);

/* All works again in the same life: what memory was short for is made up for. */
static void heal(void)
{
    trace("-- all is well");
    alloc_fail(0, 0);
    now->calm = true;
    now->busy = false;
    work();
    check_end();
    check_all();
    now->calm = false;
}

/* Power or the process fails, at a moment of the disk's choosing. */
static void live(uint64_t seed, unsigned steps)
{
    bool power = chance(2);
    bool heals = chance(3);
    if (!heals) {
        fakedisk_crash_at(now->disk, chance(3) ? below(200) : below(2000));
    }
    memset(now->muddy, 0, sizeof(now->muddy));
    now->busy = chance(2);
    now->short_of_memory = chance(2);
    if (now->short_of_memory) {
        alloc_fail(20 + below(300), seed);
    }
    if (open_life()) {
        check_all();
        for (unsigned n = 0; n < steps && !fakedisk_crashed(now->disk); n++) {
            act();
        }
        if (heals) {
            heal();
        }
        alloc_fail(0, 0);
        if (!fakedisk_crashed(now->disk)) {
            if (power) {
                fakedisk_crash(now->disk, seed);
            } else {
                fakedisk_fail(now->disk, CALL_ANY, 0, ERR_IO, true);
            }
        }
        trace("-- the end of a life");
        close_life(false);
    }
    alloc_fail(0, 0);
    fakedisk_restart(now->disk);
}

/* ------------------------------------------------------------------------------------ the end */

/* Workers do all the work there is. */
static void work(void)
{
    for (unsigned round = 0; round < 30; round++) {
        fakedisk_advance(now->disk, 73000);
        settle();
        for (unsigned n = 0; now->call_count > 0; n++) {
            CHECK(n < 1000, "webhooks without end");
            answer_call(0, 200, "{\"done\":true}");
            settle();
        }
        for (unsigned i = 0; i < IDS; i++) {
            char *view = NULL;
            if (do_claim(i, &view)) {
                do_report(i, SUBSCRIPTION_ACK, view, true);
            }
            free(view);
        }
    }
    settle();
}

static int check_stream(void *context, const struct stream_listed *s)
{
    unsigned i = *(unsigned *)context;
    const struct subscription *sub = core_find(now->subs, id_of(i));
    const struct subscription_link *l = subscription_find(sub, s->name);
    bool linked = l && !l->dropped;
    bool own = s->next > (s->fork ? s->fork_offset : 0);
    CHECK(linked || !own || !subscription_globs(sub, s->name), "s%u does not follow %.*s", i,
          (int)s->name.len, s->name.ptr);
    if (linked && !slice_equal(s->name, SLICE("wake"))) {
        CHECK(l->stream == s->id || (l->stream == 0 && !own), "s%u follows a %.*s that is gone", i,
              (int)s->name.len, s->name.ptr);
        CHECK(l->acked == s->next || !own, "s%u: %.*s is acknowledged up to %llu of %llu", i,
              (int)s->name.len, s->name.ptr, (unsigned long long)l->acked,
              (unsigned long long)s->next);
    }
    return 0;
}

static void check_end(void)
{
    for (unsigned i = 0; i < IDS; i++) {
        const struct subscription *sub = core_find(now->subs, id_of(i));
        if (!sub || !sub->exists) {
            continue;
        }
        CHECK(sub->state.phase == SUBSCRIPTION_IDLE && !subscription_pending(sub),
              "s%u is not idle", i);
        const struct engine_list_query query = {.limit = 1000};
        struct engine_list_end end = {0};
        int rc = engine_list(now->engine, &query, check_stream, &i, &end);
        CHECK(rc == 0 && !end.more, "list");
    }
}

static int remove_entry(void *context, const char *name)
{
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s/%s", (const char *)context, name);
    (void)unlink(path);
    return 0;
}

static void guard(bool inside)
{
    if (inside) {
        alloc_pause();
    } else {
        alloc_resume();
    }
}

static void begin(uint64_t seed, bool verbose)
{
    *now = (struct life){.random = seed * 0x9e3779b97f4a7c15u + 1, .verbose = verbose};
    now->disk = fakedisk_create(seed);
    fakedisk_set_guard(now->disk, guard);
    fakedisk_add_dir(now->disk, "/data");
    now->sys = *fakedisk_sys(now->disk);
    struct stat st;
    (void)snprintf(now->catalog_dir, sizeof(now->catalog_dir), "%s/arbe-sim-XXXXXX",
                   stat("/dev/shm", &st) == 0 ? "/dev/shm" : "/tmp");
    CHECK(mkdtemp(now->catalog_dir), "no directory");
    list_init(&now->tasks);
    int rc = pool_create(0, &now->pool);
    CHECK(rc == 0, "pool");
}

static void run_seed(uint64_t seed, const struct sim_options *o)
{
    now = malloc(sizeof(*now));
    CHECK(now, "memory");
    begin(seed, o->verbose);
    unsigned lives = 1 + (unsigned)below(5);
    for (unsigned i = 0; i < lives; i++) {
        trace("-- life %u", i);
        live(seed + i, 1 + (unsigned)below(2 * o->steps / lives));
    }
    now->calm = true;
    trace("-- the last life");
    if (open_life()) {
        check_all();
        work();
        check_all();
        check_end();
        close_life(true);
    }
    struct sys real;
    sys_posix_init(&real);
    (void)real.list_dir(real.context, now->catalog_dir, remove_entry, now->catalog_dir);
    (void)rmdir(now->catalog_dir);
    pool_destroy(now->pool);
    fakedisk_destroy(now->disk);
    free(now);
}

int main(int argc, char **argv)
{
    const char *text = getenv("SIM_SEEDS");
    struct sim_options o = sim_parse(argc, argv, text ? strtoull(text, NULL, 10) : 300, 600);
    for (uint64_t seed = o.start; seed < o.start + o.seeds; seed++) {
        sim_begin(argv[0], seed, o.steps);
        run_seed(seed, &o);
        sim_passed();
    }
    return (int)sim_finish();
}
