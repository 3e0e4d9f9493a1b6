/* Several event loops, a pool, the store's threads and the housekeeper on a few streams at once.
 * What is proved here is mostly proved by the thread sanitizer; beyond that, that nothing
 * acknowledged is lost, nothing is read twice or in another order, and every live reader wakes. */
#include "stream/op.c"

#include <pthread.h>
#include <sched.h>

#include "base/dice.h"
#include "unit/stream/rig.h"

#define LOOPS   3
#define ROUNDS  400
#define FOLLOWS 2

/* An event loop: a thread that runs what is posted to it. */
struct loop {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct list tasks;
    struct engine_worker *worker;
    struct engine *engine;
    unsigned index;
    uint64_t seed;
    unsigned acked; /* appends to "kept" */
};

/* A live reader of "kept": what it has seen so far. */
struct follower {
    struct stream_waiter waiter;
    struct loop *loop;
    struct stream *stream; /* referenced */
    uint64_t at;
    unsigned next[LOOPS]; /* number expected from each writer */
    bool sleeping;
    bool ended;
};

static void loop_post(void *context, struct task *task)
{
    struct loop *l = context;
    pthread_mutex_lock(&l->lock);
    list_append(&l->tasks, &task->link);
    pthread_cond_signal(&l->wake);
    pthread_mutex_unlock(&l->lock);
}

static void loop_step(struct loop *l)
{
    pthread_mutex_lock(&l->lock);
    while (list_empty(&l->tasks)) {
        pthread_cond_wait(&l->wake, &l->lock);
    }
    struct list *first = list_first(&l->tasks);
    list_remove(first);
    pthread_mutex_unlock(&l->lock);
    struct task *task = container_of(first, struct task, link);
    task->run(task);
}

static int loop_op(struct loop *l, struct stream_op *op)
{
    bool done = false;
    op->done = rig_done;
    op->context = &done;
    if (stream_start(l->worker, op) == STREAM_PENDING) {
        while (!done) {
            loop_step(l);
        }
    }
    return op->result.code;
}

static uint64_t rnd(struct loop *l)
{
    return dice_roll(&l->seed);
}

static void append_kept(struct loop *l)
{
    char body[32];
    int len = snprintf(body, sizeof(body), "%u:%06u;", l->index, l->acked);
    struct stream_op op = {.verb = STREAM_APPEND, .name = SLICE("kept")};
    op.append.content_type = SLICE("text/plain");
    op.append.body = (struct slice){body, (size_t)len};
    int code = loop_op(l, &op);
    assert_true(code == 0 || code == ERR_BUSY);
    l->acked += code == 0;
}

static void use_others(struct loop *l)
{
    char name[16];
    char other[16];
    (void)snprintf(name, sizeof(name), "s%u", (unsigned)(rnd(l) % 4));
    (void)snprintf(other, sizeof(other), "s%u", (unsigned)(rnd(l) % 4));
    struct stream_op op = {.name = slice_of(name)};
    switch (rnd(l) % 6) {
    case 0:
        op.verb = STREAM_CREATE;
        op.create.content_type = SLICE("text/plain");
        break;
    case 1:
        op.verb = STREAM_CREATE;
        op.create.forked_from = slice_of(other);
        break;
    case 2:
        op.verb = STREAM_DELETE;
        break;
    case 3:
        op.verb = STREAM_READ;
        op.read.from = (struct offset){OFFSET_START, 0};
        op.read.in_memory = rnd(l) % 2;
        break;
    case 4:
        op.verb = STREAM_HEAD;
        break;
    default:
        op.verb = STREAM_APPEND;
        op.append.content_type = SLICE("text/plain");
        op.append.body = SLICE("some bytes");
        op.append.close = rnd(l) % 30 == 0;
        break;
    }
    int code = loop_op(l, &op);
    assert_int_not_equal(code, ERR_CORRUPT);
    assert_int_not_equal(code, ERR_IO);
    stream_page_finish(&op.result.page);
}

static void check_entry(struct follower *f, const char *text)
{
    unsigned writer = (unsigned)(text[0] - '0');
    assert_in_range(writer, 0, LOOPS - 1);
    assert_int_equal(strtoul(text + 2, NULL, 10), f->next[writer]);
    f->next[writer]++;
}

static void check_page(struct follower *f, const struct stream_page *page)
{
    struct buf bytes;
    buf_init(&bytes, MIB);
    rig_collect(page, &bytes);
    assert_int_equal(page->start, f->at);
    assert_int_equal(bytes.len % 9, 0);
    for (size_t i = 0; i < bytes.len; i += 9) {
        check_entry(f, bytes.ptr + i);
    }
    buf_finish(&bytes);
}

static void woken(struct stream_waiter *waiter)
{
    container_of(waiter, struct follower, waiter)->sleeping = false;
}

static void follow(struct follower *f)
{
    struct stream_op op = {.verb = STREAM_READ, .name = SLICE("kept")};
    op.read.from = (struct offset){OFFSET_AT, f->at};
    op.read.stream = f->stream;
    op.read.bytes_max = 9 * 64;
    op.read.in_memory = f->at % 2;
    assert_int_equal(loop_op(f->loop, &op), 0);
    struct stream_page *page = &op.result.page;
    check_page(f, page);
    f->at = page->next;
    f->ended = page->closed;
    if (!f->stream) {
        f->stream = stream_ref(page->stream);
    }
    if (page->up_to_date && !page->closed) {
        f->waiter.wake = woken;
        f->waiter.from = f->at;
        int code = stream_wait(f->loop->worker, f->stream, &f->waiter);
        assert_true(code == 0 || code == STREAM_PENDING);
        f->sleeping = code == 0;
    }
    stream_page_finish(page);
}

/* The last of the writers closes the stream, which ends the followers. */
static _Atomic unsigned writers_left;

static void close_kept(struct loop *l)
{
    if (atomic_fetch_sub(&writers_left, 1) > 1) {
        return;
    }
    struct stream_op op = {.verb = STREAM_APPEND, .name = SLICE("kept")};
    op.append.close = true;
    assert_int_equal(loop_op(l, &op), 0);
}

static void *loop_main(void *context)
{
    struct loop *l = context;
    struct follower followers[FOLLOWS];
    memset(followers, 0, sizeof(followers));
    for (int n = 0; n < ROUNDS; n++) {
        append_kept(l);
        use_others(l);
        for (int i = 0; i < FOLLOWS; i++) {
            followers[i].loop = l;
            if (!followers[i].sleeping && rnd(l) % 2) {
                follow(&followers[i]);
            }
        }
        if (rnd(l) % 64 == 0) {
            (void)l->engine->store->ops->checkpoint(l->engine->store);
        }
    }
    close_kept(l);
    for (int i = 0; i < FOLLOWS; i++) {
        while (!followers[i].ended) {
            if (followers[i].sleeping) {
                loop_step(l);
            } else {
                follow(&followers[i]);
            }
        }
        stream_unref(followers[i].stream);
    }
    return followers[0].next[l->index] == l->acked ? NULL : l;
}

static void loop_start(struct loop *l, struct engine *e, unsigned index)
{
    *l = (struct loop){.engine = e, .index = index, .seed = index + 1};
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->wake, NULL);
    list_init(&l->tasks);
    assert_int_equal(engine_attach(e, loop_post, l, &l->worker), 0);
    assert_int_equal(pthread_create(&l->thread, NULL, loop_main, l), 0);
}

static void loop_stop(struct loop *l)
{
    void *result;
    assert_int_equal(pthread_join(l->thread, &result), 0);
    assert_null(result);
    while (!list_empty(&l->tasks)) {
        loop_step(l);
    }
    engine_detach(l->worker);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->wake);
}

static void change_pool(struct rig *rig, unsigned thread_count)
{
    pool_destroy(rig->pool);
    assert_int_equal(pool_create(thread_count, &rig->pool), 0);
    rig->config.pool = rig->pool;
}

/* An observer that wants one stream, and cannot make up its mind meanwhile. */
struct ear {
    struct engine *engine;
    pthread_t thread;
    _Atomic bool stop;
    _Atomic uint64_t tail; /* the newest that it was told of */
    _Atomic uint64_t odd;  /* told of another stream, or of a tail that is not newer */
};

static bool ear_matches(void *context, struct slice name)
{
    (void)context;
    return slice_equal(name, SLICE("kept"));
}

static void ear_grew(void *context, struct slice name, uint64_t id, uint64_t tail)
{
    struct ear *ear = context;
    (void)id;
    uint64_t before = atomic_exchange(&ear->tail, tail);
    atomic_fetch_add(&ear->odd, !ear_matches(context, name) || before >= tail);
}

static void ear_dropped(void *context, struct slice name, uint64_t id)
{
    struct ear *ear = context;
    (void)name;
    (void)id;
    atomic_fetch_add(&ear->odd, 1);
}

static void *change_mind(void *context)
{
    struct ear *ear = context;
    const struct engine_observer observer = {ear, ear_matches, ear_grew, ear_dropped, NULL};
    while (!atomic_load(&ear->stop)) {
        engine_observe(ear->engine, &observer);
        engine_observer_changed(ear->engine);
        sched_yield();
    }
    return NULL;
}

static void ear_start(struct ear *ear, struct engine *e)
{
    *ear = (struct ear){.engine = e};
    const struct engine_observer observer = {ear, ear_matches, ear_grew, ear_dropped, NULL};
    engine_observe(e, &observer);
    assert_int_equal(pthread_create(&ear->thread, NULL, change_mind, ear), 0);
}

static void ear_stop(struct ear *ear)
{
    atomic_store(&ear->stop, true);
    assert_int_equal(pthread_join(ear->thread, NULL), 0);
    engine_observe(ear->engine, NULL);
}

/* Writers, followers, creators, deleters, checkpoints and housekeeping at once: all is found
 * again, and the observer has heard of it. */
static void test_stress(void **state)
{
    (void)state;
    struct rig rig;
    struct loop loops[LOOPS];
    struct ear ear;
    rig_open(&rig);
    assert_int_equal(rig_put(&rig, "kept", "text/plain", ""), 0);
    rig_detach(&rig, false);
    change_pool(&rig, 2);
    rig.config.store.threads = true;
    rig.config.store.checkpoint_interval_ms = 20;
    rig.config.sweep_interval_ms = 5;
    rig.config.idle_ms = 0;
    rig.config.cache_bytes_max = 4096;
    sys_posix_init(&rig.sys);
    struct errmsg msg;
    struct store_report report;
    assert_int_equal(engine_open(&rig.config, &rig.engine, &report, &msg), 0);
    ear_start(&ear, rig.engine);
    writers_left = LOOPS;
    for (unsigned i = 0; i < LOOPS; i++) {
        loop_start(&loops[i], rig.engine, i);
    }
    for (unsigned i = 0; i < LOOPS; i++) {
        loop_stop(&loops[i]);
    }
    ear_stop(&ear);
    assert_int_equal(engine_close(rig.engine, true), 0);
    change_pool(&rig, 0);
    rig.config.store.threads = false;
    rig.config.sweep_interval_ms = 0;
    rig_attach(&rig);
    char *kept = rig_read(&rig, "kept", 0);
    assert_non_null(kept);
    size_t expected = 9 * (loops[0].acked + loops[1].acked + loops[2].acked);
    assert_int_equal(strlen(kept), expected);
    assert_int_equal(ear.tail, expected);
    assert_int_equal(ear.odd, 0);
    free(kept);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stress),
    };
    return UNIT_RUN(tests);
}
