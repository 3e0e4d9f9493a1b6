/* Posting in one process: an engine for the streams, a store for the records, and between client
 * and engine a transport that fails, stalls or loses answers on demand. Everything can be closed
 * and opened again on the same directory, as after a crash or a restart. */
#ifndef ARBE_TESTS_UNIT_THREAD_POSTING_RIG_H
#define ARBE_TESTS_UNIT_THREAD_POSTING_RIG_H

#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/engine_transport.h"
#include "base/limits.h"
#include "base/pool.h"
#include "client/client.h"
#include "log/sys.h"
#include "thread/outbox.h"
#include "thread/poster.h"
#include "thread/recency.h"
#include "unit/base/unit.h"

#define POSTING_POOL 4u

enum fault {
    FAULT_NONE,
    FAULT_DOWN,   /* no connection: nothing was done */
    FAULT_BUSY,   /* refused for now: nothing was done */
    FAULT_LOST,   /* done, but the answer is lost */
    FAULT_BROKEN, /* not done, and nobody knows */
    FAULT_FULL,   /* refused: 507 */
    FAULT_STALL,  /* goes on when it is let go */
};

/* The transport before the engine's. Its list is the client's thread's. */
struct faulty {
    struct transport base;
    struct transport *engine;
    struct list held;      /* calls to be ended or let go in wait */
    struct list lost;      /* struct lost */
    atomic_int fault;      /* enum fault */
    atomic_uint skip;      /* calls that it leaves alone first */
    atomic_int left;       /* calls that it still meets; below 0: all */
    atomic_uint verbs;     /* a set of 1 << enum call_verb */
    atomic_uint met;       /* calls that it met */
    atomic_uint calls[16]; /* of each verb that came by */
    atomic_bool let_go;
};

/* As a server that has no listing of streams. */
static atomic_bool faulty_lists_nothing;

/* The transport of the client at hand: an on_done is told nothing but the call. */
static struct faulty *the_faulty;

struct posting {
    char dir[64];
    struct sys sys;
    bool durable; /* the log waits for the disk */

    struct pool *engine_pool;
    struct engine *engine;
    struct thread_store *store;
    struct recency *recency;
    struct faulty *faulty; /* the client's */
    struct stream_client *client;
    struct pool *pool;
    struct poster *poster;
    struct outbox *outbox;

    uint64_t interval_ms; /* of recency; 0: as it is */
    atomic_uint troubles; /* of outbox and recency */
    char trouble[256];    /* the last one; guarded by the lock */
    atomic_uint seen;     /* entries that recency_reconcile told of */
    pthread_mutex_t lock;
    int64_t now; /* times of entries */
};

#define FINE(call)                                                     \
    do {                                                               \
        struct errmsg msg_ = {.text = ""};                             \
        struct errmsg *msg = &msg_;                                    \
        int code_ = (call);                                            \
        if (code_ != 0) {                                              \
            fail_msg("%s: %s: %s", #call, err_name(code_), msg->text); \
        }                                                              \
    } while (0)

/* ------------------------------------------------------------------------- the faulty transport */

static struct faulty *faulty_of(struct transport *t)
{
    return container_of(t, struct faulty, base);
}

/* The fault that this call meets, and which then counts. It is read once: the test may end it
 * meanwhile. */
static enum fault faulty_meets(struct faulty *f, const struct call *call)
{
    enum fault fault = (enum fault)atomic_load(&f->fault);
    if (fault == FAULT_NONE || !(atomic_load(&f->verbs) & (1u << call->verb))) {
        return FAULT_NONE;
    }
    if (atomic_load(&f->skip) > 0) {
        atomic_fetch_sub(&f->skip, 1);
        return FAULT_NONE;
    }
    int left = atomic_load(&f->left);
    if (left == 0) {
        return FAULT_NONE;
    }
    if (left > 0) {
        atomic_store(&f->left, left - 1);
    }
    atomic_fetch_add(&f->met, 1);
    return fault;
}

/* A call whose answer will be lost. */
struct lost {
    struct list link; /* on the transport's list */
    struct call *call;
    void (*on_done)(struct call *call);
};

/* Takes what is kept of a call; NULL: nothing. */
static struct lost *faulty_find(struct faulty *f, const struct call *call)
{
    LIST_FOR_EACH(link, &f->lost)
    {
        struct lost *lost = container_of(link, struct lost, link);
        if (lost->call == call) {
            list_remove(&lost->link);
            return lost;
        }
    }
    return NULL;
}

static void faulty_lose(struct call *call)
{
    struct lost *lost = faulty_find(the_faulty, call);
    call->on_done = lost->on_done;
    free(lost);
    if (call->result.error.code == STREAM_OK) {
        call_begin(call);
        call_fail(call, STREAM_ERROR_NETWORK, "the answer was lost");
        call->result.error.outcome_unknown = 1;
    }
    call->on_done(call);
}

static void faulty_fail(struct call *call, enum fault fault)
{
    switch (fault) {
    case FAULT_BUSY:
        call_fail_status(call, 503, true, SLICE("later"));
        break;
    case FAULT_FULL:
        call_fail_status(call, 507, true, SLICE("the disk is full"));
        break;
    case FAULT_BROKEN:
        call_fail(call, STREAM_ERROR_NETWORK, "the connection broke");
        call->result.error.outcome_unknown = 1;
        break;
    default:
        call_fail(call, STREAM_ERROR_NETWORK, "no connection");
        break;
    }
}

static void faulty_start(struct transport *t, struct call *call)
{
    struct faulty *f = faulty_of(t);
    atomic_fetch_add(&f->calls[call->verb], 1);
    enum fault fault = faulty_meets(f, call);
    bool unknown = call->verb == CALL_LIST && atomic_load(&faulty_lists_nothing);
    if (fault == FAULT_LOST) {
        struct lost *lost = malloc(sizeof(*lost));
        *lost = (struct lost){.call = call, .on_done = call->on_done};
        list_init(&lost->link);
        list_append(&f->lost, &lost->link);
        call->on_done = faulty_lose;
        f->engine->ops->start(f->engine, call);
    } else if (fault != FAULT_NONE || unknown) {
        call->transfer = NULL;
        if (unknown) {
            call_fail_status(call, 404, false, SLICE("no such path"));
        } else if (fault != FAULT_STALL) {
            faulty_fail(call, fault);
        }
        list_init(&call->link);
        list_append(&f->held, &call->link);
    } else {
        f->engine->ops->start(f->engine, call);
    }
}

static void faulty_cancel(struct transport *t, struct call *call)
{
    struct faulty *f = faulty_of(t);
    struct lost *lost = faulty_find(f, call);
    if (lost) {
        call->on_done = lost->on_done;
        free(lost);
    }
    if (call->transfer) {
        f->engine->ops->cancel(f->engine, call);
    } else {
        list_remove(&call->link);
    }
}

static void faulty_resume(struct transport *t, struct call *call)
{
    struct faulty *f = faulty_of(t);
    f->engine->ops->resume(f->engine, call);
}

/* Ends what has failed, and begins what was held back and may go. */
static void faulty_turn(struct faulty *f)
{
    struct list held;
    list_init(&held);
    list_append_all(&held, &f->held);
    for (struct list *link; (link = list_first(&held));) {
        struct call *call = container_of(link, struct call, link);
        list_remove(link);
        if (call->result.error.code != STREAM_OK) {
            call->on_done(call);
        } else if (atomic_load(&f->let_go)) {
            f->engine->ops->start(f->engine, call);
        } else {
            list_append(&f->held, link);
        }
    }
}

static bool faulty_has_ended(const struct faulty *f)
{
    LIST_FOR_EACH(link, &f->held)
    {
        if (container_of(link, struct call, link)->result.error.code != STREAM_OK ||
            atomic_load(&f->let_go)) {
            return true;
        }
    }
    return false;
}

static void faulty_wait(struct transport *t, int wake_fd, int timeout_ms)
{
    struct faulty *f = faulty_of(t);
    f->engine->ops->wait(f->engine, wake_fd, faulty_has_ended(f) ? 0 : timeout_ms);
    faulty_turn(f);
}

static void faulty_destroy(struct transport *t)
{
    struct faulty *f = faulty_of(t);
    assert_true(list_empty(&f->held) && list_empty(&f->lost));
    f->engine->ops->destroy(f->engine);
    the_faulty = NULL;
    free(f);
}

static const struct transport_ops faulty_ops = {
    .start = faulty_start,
    .cancel = faulty_cancel,
    .resume = faulty_resume,
    .wait = faulty_wait,
    .destroy = faulty_destroy,
};

#define VERB(name) (1u << CALL_##name)
#define VERBS_ALL  0xffffu

/* From now on `count` calls of those verbs (below 0: all) meet the fault. */
static inline void posting_fault(struct posting *g, enum fault fault, unsigned verbs, int count)
{
    atomic_store(&g->faulty->fault, FAULT_NONE);
    atomic_store(&g->faulty->let_go, false);
    atomic_store(&g->faulty->verbs, verbs);
    atomic_store(&g->faulty->left, count);
    atomic_store(&g->faulty->met, 0);
    atomic_store(&g->faulty->fault, (int)fault);
}

static void posting_nothing(struct task *task)
{
    (void)task;
}

/* What stalls goes on, and nothing more stalls. */
static inline void posting_let_go(struct posting *g)
{
    struct task task = {.run = posting_nothing};
    atomic_store(&g->faulty->fault, FAULT_NONE);
    atomic_store(&g->faulty->let_go, true);
    client_run(g->client, &task); /* its turn sees it */
}

static inline unsigned posting_calls(struct posting *g, enum call_verb verb)
{
    return atomic_load(&g->faulty->calls[verb]);
}

/* Waits for something that another thread brings about. */
#define AWAIT(condition)                           \
    do {                                           \
        uint64_t until_ = client_now_ms() + 30000; \
        while (!(condition)) {                     \
            assert_true(client_now_ms() < until_); \
            (void)poll(NULL, 0, 1);                \
        }                                          \
    } while (0)

/* ------------------------------------------------------------------------------- open and close */

static void posting_trouble(void *context, const char *sentence)
{
    struct posting *g = context;
    (void)pthread_mutex_lock(&g->lock);
    (void)snprintf(g->trouble, sizeof(g->trouble), "%s", sentence);
    (void)pthread_mutex_unlock(&g->lock);
    atomic_fetch_add(&g->troubles, 1);
}

/* Whether the last trouble that was told says that; the next one may be told meanwhile. */
static inline bool posting_was_told(struct posting *g, const char *words)
{
    (void)pthread_mutex_lock(&g->lock);
    bool told = strstr(g->trouble, words) != NULL;
    (void)pthread_mutex_unlock(&g->lock);
    return told;
}

static void posting_seen(void *context, struct slice thread_id, const struct entry *entry,
                         struct slice json)
{
    struct posting *g = context;
    struct entry again;
    assert_true(thread_id.len > 0);
    assert_int_equal(entry_parse(json, &again, NULL), 0);
    assert_true(slice_equal(again.id, entry->id));
    atomic_fetch_add(&g->seen, 1);
}

static inline void posting_open_engine(struct posting *g)
{
    struct store_report report;
    char dir[96];
    (void)snprintf(dir, sizeof(dir), "%s/streams", g->dir);
    sys_posix_init(&g->sys);
    assert_int_equal(pool_create(2, &g->engine_pool), 0);
    const struct engine_config config = {
        .store = {.dir = dir,
                  .durability = g->durable ? DURABILITY_SYNC : DURABILITY_OS,
                  .segment_bytes = 4 * MIB,
                  .checkpoint_bytes = 4 * MIB,
                  .checkpoint_interval_ms = 1000,
                  .log_bytes_max = 64 * MIB,
                  .staged_bytes_max = 64 * MIB,
                  .sys = &g->sys,
                  .threads = true},
        .pool = g->engine_pool,
        .read_page_bytes = 64 * KIB,
        .hot_bytes_max = 64 * MIB,
        .cache_bytes_max = MIB,
        .idle_ms = 1000,
        .sweep_interval_ms = 1000,
    };
    FINE(engine_open(&config, &g->engine, &report, msg));
}

static inline void posting_open_store(struct posting *g)
{
    char path[96];
    (void)snprintf(path, sizeof(path), "%s/app.db", g->dir);
    const struct thread_store_config config = {.path = path, .lazy = true};
    FINE(store_open(&config, &g->store, msg));
}

static inline void posting_open_client(struct posting *g)
{
    const struct engine_client_config config = {
        .engine = g->engine, .pool = g->engine_pool, .body_bytes_max = MIB, .page_bytes = 64 * KIB};
    struct stream_client_options options;
    struct stream_error error;
    stream_client_options_init(&options);
    options.retry.max_retries = 0;
    struct faulty *f = calloc(1, sizeof(*f));
    *f = (struct faulty){.base = {.ops = &faulty_ops}};
    list_init(&f->held);
    list_init(&f->lost);
    assert_int_equal(engine_transport_new(&config, &options, &f->engine, &error), STREAM_OK);
    g->faulty = f;
    the_faulty = f;
    assert_int_equal(recency_stream_client_new(g->recency, &f->base, &options, &g->client, &error),
                     STREAM_OK);
}

/* Opens all of it; the outbox and the recency do not reconcile yet. */
static inline void posting_open(struct posting *g)
{
    const struct recency_config recency = {.interval_ms = g->interval_ms,
                                           .trouble = posting_trouble,
                                           .seen = posting_seen,
                                           .context = g};
    struct recency_config config = recency;
    posting_open_engine(g);
    posting_open_store(g);
    config.store = g->store;
    FINE(recency_open(&config, &g->recency));
    posting_open_client(g);
    FINE(pool_create(POSTING_POOL, &g->pool));
    const struct poster_config poster = {.store = g->store, .client = g->client, .pool = g->pool};
    FINE(poster_create(&poster, &g->poster));
    const struct outbox_config outbox = {.store = g->store,
                                         .client = g->client,
                                         .poster = g->poster,
                                         .retry_ms_max = 20,
                                         .trouble = posting_trouble,
                                         .context = g};
    FINE(outbox_create(&outbox, &g->outbox));
}

static inline void posting_close(struct posting *g)
{
    outbox_destroy(g->outbox);
    pool_destroy(g->pool);
    poster_destroy(g->poster);
    stream_client_free(g->client);
    FINE(recency_close(g->recency, msg));
    store_close(g->store);
    FINE(engine_close(g->engine, true));
    pool_destroy(g->engine_pool);
}

static inline void posting_reopen(struct posting *g)
{
    posting_close(g);
    posting_open(g);
}

static int posting_remove(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

/* A new one in a directory of its own. */
static inline void posting_init(struct posting *g)
{
    *g = (struct posting){.now = 1000000};
    (void)pthread_mutex_init(&g->lock, NULL);
    (void)snprintf(g->dir, sizeof(g->dir), "/tmp/arbe-posting-XXXXXX");
    assert_non_null(mkdtemp(g->dir));
}

static inline void posting_finish(struct posting *g)
{
    assert_int_equal(nftw(g->dir, posting_remove, 8, FTW_DEPTH | FTW_PHYS), 0);
    (void)pthread_mutex_destroy(&g->lock);
}

/* For cmocka: the state is a struct posting, open. */
static inline int posting_set_up(void **state)
{
    struct posting *g = malloc(sizeof(*g));
    assert_non_null(g);
    posting_init(g);
    posting_open(g);
    *state = g;
    return 0;
}

static inline int posting_tear_down(void **state)
{
    struct posting *g = *state;
    posting_close(g);
    posting_finish(g);
    free(g);
    return 0;
}

#define POSTING_TEST(name) cmocka_unit_test_setup_teardown(name, posting_set_up, posting_tear_down)

/* -------------------------------------------------------------------------- threads and entries */

/* A text of a kind and number, in `out`: ids are made so. */
static inline struct slice numbered(char out[static STORE_ID_BYTES], const char *kind, unsigned n)
{
    int len = snprintf(out, STORE_ID_BYTES, "%s-%08u", kind, n);
    return (struct slice){out, (size_t)len};
}

/* An owner, its house "h", whose primary thread is "primary". */
static inline void posting_add_house(struct posting *g)
{
    const struct agent_record agent = {.id = SLICE("a"), .name = SLICE("A"), .handle = SLICE("a")};
    const struct house_create house = {.id = SLICE("h"),
                                       .name = SLICE("H"),
                                       .primary_thread_id = SLICE("primary"),
                                       .owner_id = SLICE("a"),
                                       .now_ms = 1};
    FINE(store_agent_create(g->store, &agent, NULL, msg));
    FINE(store_house_create(g->store, &house, NULL, 0, msg));
}

/* A thread of that house, with what is to be done to its stream. */
static inline void posting_add_record(struct posting *g, struct slice id,
                                      const struct outbox_item *items, size_t count)
{
    const struct thread_record thread = {.id = id,
                                         .house_id = SLICE("h"),
                                         .parent_kind = PARENT_HOUSE,
                                         .parent_id = SLICE("h"),
                                         .created_ms = 1};
    FINE(store_thread_create(g->store, &thread, (struct slice){NULL, 0}, items, count, msg));
}

static inline void posting_create_stream(struct posting *g, struct slice thread_id)
{
    const struct stream_create_options options = {.content_type = "application/json"};
    struct stream_error error;
    char name[THREAD_STREAM_BYTES];
    thread_stream_name(thread_id, name);
    assert_int_equal(stream_client_create(g->client, name, &options, NULL, &error), STREAM_OK);
}

/* A thread with its stream. */
static inline void posting_add_thread(struct posting *g, const char *id)
{
    posting_add_record(g, slice_of(id), NULL, 0);
    posting_create_stream(g, slice_of(id));
}

/* The JSON of an entry; to be freed. */
static inline char *entry_json(struct slice id, int64_t ts, const char *text)
{
    char *json = NULL;
    assert_true(asprintf(&json,
                         "{\"id\":\"%.*s\",\"ts\":%lld,\"payload\":{\"type\":\"chat\","
                         "\"text\":\"%s\"}}",
                         (int)id.len, id.ptr, (long long)ts, text) > 0);
    return json;
}

/* A post of one entry, for poster_post. Results live until it is dropped. */
struct one_post {
    struct arena arena;
    char *json;
    struct post_entry entry;
    struct post post;
};

static inline void one_post_init(struct posting *g, struct one_post *o, const char *thread_id,
                                 struct slice id, bool fresh, const char *text)
{
    *o = (struct one_post){.json = entry_json(id, g->now++, text)};
    arena_init(&o->arena, MIB);
    o->entry = (struct post_entry){.id = id, .json = slice_of(o->json), .fresh = fresh};
    o->post = (struct post){
        .thread_id = slice_of(thread_id), .entries = &o->entry, .count = 1, .arena = &o->arena};
}

static inline void one_post_finish(struct one_post *o)
{
    arena_finish(&o->arena);
    free(o->json);
}

/* What a thread's stream holds; to be freed. */
static inline char *posting_read(struct posting *g, const char *thread_id)
{
    struct stream_error error = {.message = ""};
    char name[THREAD_STREAM_BYTES];
    char *data = NULL;
    size_t len = 0;
    thread_stream_name(slice_of(thread_id), name);
    if (stream_client_read_all(g->client, name, NULL, 256 * MIB, &data, &len, NULL, &error) !=
        STREAM_OK) {
        fail_msg("%s", error.message);
    }
    char *text = strndup(data, len);
    free(data);
    return text;
}

static int posting_list_id(void *context, const struct entry *entry, size_t index)
{
    struct buf *out = context;
    if (index > 0) {
        buf_append_char(out, ' ');
    }
    buf_append(out, entry->id);
    return 0;
}

/* The ids of a thread's entries, in the order of its stream, are these. */
static inline void posting_expect(struct posting *g, const char *thread_id, const char *ids)
{
    struct buf got;
    char *text = posting_read(g, thread_id);
    buf_init(&got, 64 * MIB);
    assert_int_equal(entry_each(slice_of(text), posting_list_id, &got), 0);
    if (!slice_equal(buf_slice(&got), slice_of(ids))) {
        fail_msg("%s holds \"%.*s\" instead of \"%s\"", thread_id, (int)got.len, got.ptr, ids);
    }
    buf_finish(&got);
    free(text);
}

static inline int64_t posting_ts(struct posting *g, const char *thread_id)
{
    struct thread_record thread;
    struct arena arena;
    arena_init(&arena, MIB);
    FINE(store_thread_get(g->store, slice_of(thread_id), &arena, &thread, msg));
    arena_finish(&arena);
    return thread.last_entry_ts;
}

#endif
