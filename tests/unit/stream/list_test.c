/* Lists over the real store. */
#include "unit/base/fault.h"

#include "stream/list.c"

#undef malloc
#undef calloc
#undef realloc

#include <pthread.h>
#include <stdatomic.h>

#include "unit/stream/rig.h"

#define TEXT "text/plain"

static struct rig rig;
static void (*meanwhile)(void); /* called between the first stream of the catalog and the second */
static unsigned lists;          /* how often the catalog was read */

static int open_rig(void **state)
{
    (void)state;
    rig_open(&rig);
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

static int add_text(void *context, const struct stream_listed *l)
{
    struct buf *out = context;
    buf_append_format(out, "%.*s:%u%s ", (int)l->name.len, l->name.ptr, (unsigned)l->next,
                      l->closed ? "!" : "");
    if (l->fork) {
        buf_append_format(out, "from %u ", (unsigned)l->fork_offset);
    }
    return 0;
}

/* All streams of the prefix, page by page. */
static void expect_pages(const char *prefix, size_t limit, const char *want)
{
    struct buf out;
    struct engine_list_end end = {0};
    struct engine_list_query q = {.prefix = slice_of(prefix), .limit = limit};
    buf_init(&out, MIB);
    do {
        q.after = end.last;
        assert_int_equal(engine_list(rig.engine, &q, add_text, &out, &end), 0);
    } while (end.more);
    buf_append_char(&out, '\0');
    assert_string_equal(out.ptr, want);
    buf_finish(&out);
}

static void expect(const char *want)
{
    expect_pages("", 100, want);
    expect_pages("", 1, want);
}

static void checkpoint(void)
{
    struct store *store = rig.engine->store;
    assert_int_equal(store->ops->checkpoint(store), 0);
}

/* Nothing that a checkpoint has saved stays in memory. */
static void evict(void)
{
    rig_sleep(10 * rig.config.idle_ms);
    for (unsigned i = 0; i < TABLE_SHARDS; i++) {
        engine_housekeep(rig.engine);
    }
}

/* Streams are listed by name with their newest durable tail, wherever they are. */
static void names_in_order(void **state)
{
    (void)state;
    expect("");
    assert_int_equal(rig_put(&rig, "b", TEXT, "12"), 0);
    assert_int_equal(rig_put(&rig, "d", TEXT, ""), 0);
    expect("b:2 d:0 ");
    checkpoint();
    expect("b:2 d:0 ");
    assert_int_equal(rig_post_body(&rig, "d", TEXT, "123"), 0);
    assert_int_equal(rig_put(&rig, "c", TEXT, "1"), 0);
    assert_int_equal(rig_put(&rig, "a", TEXT, "1"), 0);
    assert_int_equal(rig_delete(&rig, "b"), 0);
    for (size_t limit = 1; limit < 5; limit++) {
        expect_pages("", limit, "a:1 c:1 d:3 ");
        expect_pages("c", limit, "c:1 ");
        expect_pages("cc", limit, "");
    }
    rig_reopen(&rig, false);
    expect("a:1 c:1 d:3 ");
    rig_reopen(&rig, true);
    expect("a:1 c:1 d:3 ");
}

static void ignore(struct stream_op *op)
{
    (void)op;
}

/* Starts what is not to become durable yet. */
static void start(struct stream_op *op, enum stream_verb verb, const char *name)
{
    *op = (struct stream_op){.verb = verb, .name = slice_of(name), .done = ignore};
    if (verb == STREAM_APPEND) {
        op->append.content_type = slice_of(TEXT);
        op->append.body = SLICE("more");
    } else if (verb == STREAM_CREATE) {
        op->create.content_type = slice_of(TEXT);
    }
    int code = stream_start(rig.worker, op);
    assert_int_equal(code, STREAM_PENDING);
    rig_run(&rig);
}

/* What is staged shows only once it is durable. */
static void only_what_is_durable(void **state)
{
    (void)state;
    struct stream_op ops[3];
    assert_int_equal(rig_put(&rig, "a", TEXT, "1"), 0);
    assert_int_equal(rig_put(&rig, "b", TEXT, "1"), 0);
    checkpoint();
    start(&ops[0], STREAM_APPEND, "a");
    start(&ops[1], STREAM_DELETE, "b");
    start(&ops[2], STREAM_CREATE, "c");
    expect("a:1 b:1 ");
    checkpoint(); /* which takes nothing of it */
    expect("a:1 b:1 ");
    rig_commit(&rig);
    expect("a:5 c:0 ");
}

/* A name that is used again shows the new stream, whatever the catalog still has. */
static void names_are_used_again(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "a", TEXT, "old"), 0);
    checkpoint();
    assert_int_equal(rig_delete(&rig, "a"), 0);
    expect("");
    assert_int_equal(rig_put(&rig, "a", TEXT, "newer"), 0);
    expect("a:5 ");
    assert_int_equal(rig_delete(&rig, "a"), 0);
    assert_int_equal(rig_put(&rig, "a", TEXT, "7 bytes"), 0);
    expect("a:7 ");
    checkpoint();
    expect("a:7 ");
}

/* However often a name was used since the last checkpoint, it is looked at once. */
static void a_name_is_looked_at_once(void **state)
{
    (void)state;
    struct engine_list_end end;
    struct buf out;
    const struct engine_list_query q = {.limit = 1};
    for (unsigned i = 0; i < LIST_LOOKS_EXTRA + 10; i++) {
        assert_int_equal(rig_put(&rig, "a", TEXT, ""), 0);
        assert_int_equal(rig_delete(&rig, "a"), 0);
    }
    assert_int_equal(rig_put(&rig, "a", TEXT, "new"), 0);
    buf_init(&out, KIB);
    assert_int_equal(engine_list(rig.engine, &q, add_text, &out, &end), 0);
    assert_false(end.more);
    assert_true(slice_equal(buf_slice(&out), SLICE("a:3 ")));
    buf_finish(&out);
}

/* Forks say where they begin; a source that is deleted and kept for them is left out. */
static void forks_and_their_sources(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "source", TEXT, "123"), 0);
    assert_int_equal(rig_fork(&rig, "fork", "source"), 0);
    expect("fork:3 from 3 source:3 ");
    assert_int_equal(rig_post_body(&rig, "fork", TEXT, "45"), 0);
    assert_int_equal(rig_delete(&rig, "source"), 0);
    expect("fork:5 from 3 ");
    checkpoint();
    expect("fork:5 from 3 ");
    evict();
    expect("fork:5 from 3 ");
}

static void put_with(const char *name, struct stream_expiry expiry)
{
    struct stream_op op = {.verb = STREAM_CREATE, .name = slice_of(name)};
    op.create.content_type = slice_of(TEXT);
    op.create.expiry = expiry;
    assert_int_equal(rig_op(&rig, &op), 0);
}

static int note_expiry(void *context, const struct stream_listed *l)
{
    *(struct stream_expiry *)context = l->expiry;
    assert_int_equal(l->created_ms, rig_now_ms);
    assert_true(slice_equal(l->content_type, SLICE(TEXT)));
    return 0;
}

/* What is past its time is left out, in memory and in the catalog, though nobody removed it. */
static void expired_ones_are_left_out(void **state)
{
    (void)state;
    struct engine_list_end end;
    struct stream_expiry got;
    const struct engine_list_query first = {.limit = 1};
    put_with("a", (struct stream_expiry){.has_ttl = true, .ttl_seconds = 100});
    put_with("b",
             (struct stream_expiry){.has_expires_at = true, .expires_at_ms = rig_now_ms + 200000});
    put_with("c", (struct stream_expiry){0});
    assert_int_equal(engine_list(rig.engine, &first, note_expiry, &got, &end), 0);
    assert_true(got.has_ttl && got.ttl_seconds == 100 && !got.has_expires_at && end.more);
    checkpoint();
    rig_sleep(100000 - 1);
    expect("a:0 b:0 c:0 ");
    rig_sleep(1);
    expect("b:0 c:0 ");
    rig_reopen(&rig, false);
    expect("a:0 b:0 c:0 "); /* with the slack of a TTL after a restart, see expiry.h */
    rig_sleep(12500);
    expect("b:0 c:0 ");
    rig_sleep(100000);
    expect("c:0 ");
}

/* The catalog's list, with something between the first and the second stream. */
struct interrupted {
    catalog_each_fn each;
    void *context;
    unsigned seen;
};

static int see(void *context, const struct stream_meta *meta)
{
    struct interrupted *i = context;
    if (i->seen++ == 1 && meanwhile) {
        void (*now)(void) = meanwhile;
        meanwhile = NULL;
        now();
    }
    return i->each(i->context, meta);
}

static const struct store_ops *real_ops;

static int list_with_pause(struct store *s, struct slice prefix, struct slice after, size_t limit,
                           catalog_each_fn each, void *context)
{
    struct interrupted i = {each, context, 0};
    lists++;
    return real_ops->list(s, prefix, after, limit, see, &i);
}

static void save_and_evict(void)
{
    checkpoint();
    evict();
    struct stream *s = table_name(rig.engine, SLICE("c"));
    assert_null(s);
}

/* A stream that is saved and leaves memory after the catalog was read is shown as it was saved, not
 * as the catalog had it before; so is one that was fresh. */
static void saved_meanwhile(void **state)
{
    (void)state;
    struct store_ops ops = *rig.engine->store->ops;
    real_ops = rig.engine->store->ops;
    ops.list = list_with_pause;
    assert_int_equal(rig_put(&rig, "a", TEXT, "1"), 0);
    assert_int_equal(rig_put(&rig, "b", TEXT, "1"), 0);
    assert_int_equal(rig_put(&rig, "c", TEXT, "1"), 0);
    checkpoint();
    assert_int_equal(rig_post_body(&rig, "c", TEXT, "23"), 0);
    assert_int_equal(rig_put(&rig, "bb", TEXT, "1"), 0);
    assert_int_equal(rig_put(&rig, "d", TEXT, "1"), 0);
    rig.engine->store->ops = &ops;
    meanwhile = save_and_evict;
    lists = 0;
    expect_pages("", 100, "a:1 b:1 bb:1 c:3 d:1 ");
    assert_null(meanwhile);
    assert_int_equal(lists, 2);
    rig.engine->store->ops = real_ops;
}

/* A stream that is just being loaded is in memory, and nothing is known of it yet: it is shown as
 * the catalog has it. */
static void one_that_is_loading(void **state)
{
    (void)state;
    stream_id id;
    struct stream *s;
    struct store *store = rig.engine->store;
    assert_int_equal(rig_put(&rig, "a", TEXT, "12"), 0);
    checkpoint();
    evict();
    assert_int_equal(store->ops->find(store, SLICE("a"), &id), 0);
    assert_int_equal(table_adopt(rig.engine, SLICE("a"), &s), 0);
    assert_int_equal(table_list(rig.engine, s, id), 0);
    expect("a:2 ");
    table_unlist(rig.engine, s);
    table_absent(rig.engine, s, ERR_NOTFOUND);
    stream_unref(s);
    expect("a:2 ");
}

/* A call that meets only what it must not show ends all the same, and says where to go on. */
static void the_work_of_a_call_is_bounded(void **state)
{
    (void)state;
    char name[16];
    struct buf out;
    struct engine_list_end end;
    struct engine_list_query q = {.limit = 10};
    const unsigned count = LIST_LOOKS_EXTRA + 100;
    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(name, sizeof(name), "s%05u", i);
        assert_int_equal(rig_put(&rig, name, TEXT, ""), 0);
    }
    checkpoint();
    for (unsigned i = 0; i + 1 < count; i++) {
        (void)snprintf(name, sizeof(name), "s%05u", i);
        assert_int_equal(rig_delete(&rig, name), 0);
    }
    buf_init(&out, MIB);
    assert_int_equal(engine_list(rig.engine, &q, add_text, &out, &end), 0);
    assert_true(end.more);
    assert_int_equal(out.len, 0);
    assert_int_equal(end.last.len, 6);
    buf_finish(&out);
    (void)snprintf(name, sizeof(name), "s%05u:0 ", count - 1);
    expect_pages("", 10, name);
}

/* What is asked for wrongly, and memory that runs out. */
static void refusals(void **state)
{
    (void)state;
    struct engine_list_end end = {0};
    char after[STREAM_NAME_BYTES_MAX + 1] = "z";
    struct engine_list_query q = {.after = {after, sizeof(after)}, .limit = 1};
    assert_int_equal(rig_put(&rig, "a", TEXT, ""), 0);
    assert_int_equal(engine_list(rig.engine, &q, add_text, NULL, &end), ERR_INVALID);
    q.after.len--;
    assert_int_equal(engine_list(rig.engine, &q, add_text, NULL, &end), 0);
    assert_false(end.more);
    fault_countdown = 0;
    q.after.len = 0;
    assert_int_equal(engine_list(rig.engine, &q, add_text, NULL, &end), ERR_NOMEM);
    fault_countdown = -1;
    assert_false(end.more);
}

static int refuse(void *context, const struct stream_listed *l)
{
    (void)l;
    ++*(int *)context;
    return ERR_TOOBIG;
}

/* An error of the caller's ends the list, whether it comes from memory or from the catalog. */
static void the_caller_ends_it(void **state)
{
    (void)state;
    int calls = 0;
    struct engine_list_end end;
    const struct engine_list_query q = {.limit = SIZE_MAX};
    assert_int_equal(rig_put(&rig, "a", TEXT, ""), 0);
    assert_int_equal(rig_put(&rig, "b", TEXT, ""), 0);
    assert_int_equal(engine_list(rig.engine, &q, refuse, &calls, &end), ERR_TOOBIG);
    checkpoint();
    assert_int_equal(engine_list(rig.engine, &q, refuse, &calls, &end), ERR_TOOBIG);
    assert_int_equal(calls, 2);
    assert_false(end.more);
}

/* ------------------------------------------------------------------------------------ threads */

#define KEPT   16u
#define ROUNDS 150u

/* A server in little: its own loop, a pool, and a store with all threads. */
static struct {
    struct engine *engine;
    struct engine_worker *worker;
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct list queue;
    _Atomic uint64_t acked[KEPT]; /* bytes that each kept stream was said to have */
    _Atomic bool over;
} busy;

static void post_to_queue(void *context, struct task *task)
{
    (void)context;
    pthread_mutex_lock(&busy.lock);
    list_append(&busy.queue, &task->link);
    pthread_cond_signal(&busy.filled);
    pthread_mutex_unlock(&busy.lock);
}

static void run_one_task(void)
{
    pthread_mutex_lock(&busy.lock);
    while (list_empty(&busy.queue)) {
        pthread_cond_wait(&busy.filled, &busy.lock);
    }
    struct list *first = list_first(&busy.queue);
    list_remove(first);
    pthread_mutex_unlock(&busy.lock);
    struct task *task = container_of(first, struct task, link);
    task->run(task);
}

static int run_op(struct stream_op *op)
{
    bool done = false;
    op->done = rig_done;
    op->context = &done;
    done = stream_start(busy.worker, op) == 0;
    while (!done) {
        run_one_task();
    }
    return op->result.code;
}

static int do_op(enum stream_verb verb, const char *name)
{
    struct stream_op op = {.verb = verb, .name = slice_of(name)};
    if (verb == STREAM_CREATE) {
        op.create.content_type = slice_of(TEXT);
    } else if (verb == STREAM_APPEND) {
        op.append.content_type = slice_of(TEXT);
        op.append.body = SLICE("some bytes");
    }
    return run_op(&op);
}

/* Some streams grow, others come and go. */
static void *keep_busy(void *context)
{
    (void)context;
    char name[16];
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = round % 3; i < KEPT; i += 3) {
            (void)snprintf(name, sizeof(name), "kept/%02u", i);
            assert_int_equal(do_op(STREAM_APPEND, name), 0);
            atomic_fetch_add(&busy.acked[i], 10);
        }
        (void)snprintf(name, sizeof(name), "go/%u", round % 7);
        assert_int_equal(do_op(STREAM_CREATE, name), 0);
        assert_int_equal(do_op(STREAM_DELETE, name), 0);
    }
    atomic_store(&busy.over, true);
    return NULL;
}

struct kept_seen {
    uint64_t next[KEPT];
    unsigned count;
};

static int see_kept(void *context, const struct stream_listed *l)
{
    struct kept_seen *seen = context;
    if (slice_starts_with(l->name, SLICE("kept/"))) {
        assert_int_equal(strtoul(l->name.ptr + 5, NULL, 10), seen->count);
        seen->next[seen->count++] = l->next;
    }
    return 0;
}

static void look_once(void)
{
    uint64_t before[KEPT];
    struct kept_seen seen = {.count = 0};
    struct engine_list_end end = {0};
    struct engine_list_query q = {.limit = 5};
    for (unsigned i = 0; i < KEPT; i++) {
        before[i] = atomic_load(&busy.acked[i]);
    }
    do {
        q.after = end.last;
        assert_int_equal(engine_list(busy.engine, &q, see_kept, &seen, &end), 0);
    } while (end.more);
    assert_int_equal(seen.count, KEPT);
    for (unsigned i = 0; i < KEPT; i++) {
        assert_true(seen.next[i] >= before[i]);
    }
}

static int add_name_and_end(void *context, const struct stream_listed *l)
{
    (void)add_text(context, l);
    return l->name.ptr[0] == 'b' || l->name.ptr[0] == 'd' ? ENGINE_LIST_FULL : 0;
}

/* Whoever has enough before the limit ends the list behind that stream and is told where to go on;
 * there is no more behind the last one. */
static void the_caller_has_enough(void **state)
{
    (void)state;
    const char *names[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        assert_int_equal(rig_put(&rig, names[i], TEXT, ""), 0);
    }
    for (int stored = 0; stored < 3; stored++) { /* fresh, in memory, in the catalog alone */
        struct engine_list_end end = {0};
        struct engine_list_query q = {.limit = 100};
        struct buf out;
        buf_init(&out, KIB);
        assert_int_equal(engine_list(rig.engine, &q, add_name_and_end, &out, &end), 0);
        assert_true(slice_equal(buf_slice(&out), SLICE("a:0 b:0 ")));
        assert_true(end.more && slice_equal(end.last, SLICE("b")));
        q.after = end.last;
        assert_int_equal(engine_list(rig.engine, &q, add_name_and_end, &out, &end), 0);
        assert_true(slice_equal(buf_slice(&out), SLICE("a:0 b:0 c:0 d:0 ")));
        assert_false(end.more);
        buf_finish(&out);
        checkpoint();
        if (stored == 1) {
            evict();
        }
    }
}

/* With all threads, checkpoints and evictions as fast as they can: no list misses a stream that was
 * there all the time, or shows less of it than was acknowledged before. */
static void lists_beside_everything_else(void **state)
{
    (void)state;
    struct engine_config config = rig.config;
    struct sys sys;
    struct store_report report;
    struct errmsg msg;
    pthread_t thread;
    char name[16];
    char dir[80];
    (void)snprintf(dir, sizeof(dir), "%s/busy", rig.dir);
    sys_posix_init(&sys);
    assert_int_equal(pool_create(2, &config.pool), 0);
    config.store.dir = dir;
    config.store.sys = &sys;
    config.store.threads = true;
    config.store.checkpoint_bytes = 2048;
    config.idle_ms = 1;
    config.sweep_interval_ms = 1;
    pthread_mutex_init(&busy.lock, NULL);
    pthread_cond_init(&busy.filled, NULL);
    list_init(&busy.queue);
    assert_int_equal(engine_open(&config, &busy.engine, &report, &msg), 0);
    assert_int_equal(engine_attach(busy.engine, post_to_queue, NULL, &busy.worker), 0);
    for (unsigned i = 0; i < KEPT; i++) {
        (void)snprintf(name, sizeof(name), "kept/%02u", i);
        assert_int_equal(do_op(STREAM_CREATE, name), 0);
    }
    assert_int_equal(pthread_create(&thread, NULL, keep_busy, NULL), 0);
    struct store *store = busy.engine->store;
    while (!atomic_load(&busy.over)) {
        look_once();
        assert_int_equal(store->ops->checkpoint(store), 0);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    look_once();
    engine_detach(busy.worker);
    assert_int_equal(engine_close(busy.engine, false), 0);
    pool_destroy(config.pool);
    pthread_cond_destroy(&busy.filled);
    pthread_mutex_destroy(&busy.lock);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names_in_order),
        TEST(only_what_is_durable),
        TEST(names_are_used_again),
        TEST(a_name_is_looked_at_once),
        TEST(forks_and_their_sources),
        TEST(expired_ones_are_left_out),
        TEST(saved_meanwhile),
        TEST(one_that_is_loading),
        TEST(the_work_of_a_call_is_bounded),
        TEST(refusals),
        TEST(the_caller_ends_it),
        TEST(the_caller_has_enough),
        TEST(lists_beside_everything_else),
    };
    return UNIT_RUN(tests);
}
