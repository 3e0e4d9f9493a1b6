/* Loading: queues, errors of the catalog, chains of forks, compactions that come between. */
#include "stream/load.c"

#include "stream/checkpoint.h"
#include "unit/stream/rig.h"

#define TEXT "text/plain"

static struct rig rig;
static const struct store_ops *real_ops;
static struct store_ops ops;
static int find_code;             /* of every look-up of a name; 0: the real one */
static int load_code;             /* of every load; 0: the real one */
static unsigned loads;            /* calls of load */
static unsigned replaces;         /* loads during which a compaction is told of */
static void (*during_find)(void); /* called in the middle of the next look-up */
static void (*during)(void);      /* called in the middle of the next load */

static unsigned dirty_at; /* the load in which somebody writes to "a"; 0: none */

/* As an append does to a stream that is live. */
static void soil_source(void)
{
    struct stream *a = table_name(rig.engine, SLICE("a"));
    assert_non_null(a);
    pthread_mutex_lock(&a->lock);
    checkpoint_mark(a);
    pthread_mutex_unlock(&a->lock);
    stream_unref(a);
}

static int counted_find(struct store *s, struct slice name, stream_id *ret_id)
{
    if (during_find) {
        void (*now)(void) = during_find;
        during_find = NULL;
        now();
    }
    return find_code < 0 ? find_code : real_ops->find(s, name, ret_id);
}

static int counted_load(struct store *s, stream_id id, struct catalog_stream *ret_stream)
{
    loads++;
    if (loads == dirty_at) {
        soil_source();
    }
    if (during) {
        void (*now)(void) = during;
        during = NULL;
        now();
    }
    int code = load_code < 0 ? load_code : real_ops->load(s, id, ret_stream);
    if (code == 0 && replaces > 0) {
        replaces--;
        checkpoint_extent_replaced(rig.engine, id, &ret_stream->extents[0]);
    }
    return code;
}

/* Reopens, so that nothing is in memory, and puts the counting operations in between. */
static void reopen(void)
{
    rig_reopen(&rig, true);
    struct store *store = rig.engine->store;
    real_ops = store->ops;
    ops = *real_ops;
    ops.find = counted_find;
    ops.load = counted_load;
    store->ops = &ops;
    loads = 0;
}

static int open_rig(void **state)
{
    (void)state;
    find_code = load_code = 0;
    replaces = 0;
    dirty_at = 0;
    rig_open(&rig);
    assert_int_equal(rig_put(&rig, "a", TEXT, "aaa"), 0);
    assert_int_equal(rig_fork(&rig, "b", "a"), 0);
    assert_int_equal(rig_post_body(&rig, "b", TEXT, "bbb"), 0);
    assert_int_equal(rig_fork(&rig, "c", "b"), 0);
    reopen();
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    rig.engine->store->ops = real_ops;
    rig_close(&rig);
    return 0;
}

/* A fork brings its sources along, each is loaded once, whichever is asked for first. */
static void test_chain(void **state)
{
    (void)state;
    rig_expect(&rig, "c", "aaabbb");
    assert_int_equal(loads, 3);
    rig_expect(&rig, "a", "aaa");
    rig_expect(&rig, "b", "aaabbb");
    assert_int_equal(loads, 3);
    reopen();
    rig_expect(&rig, "b", "aaabbb");
    rig_expect(&rig, "c", "aaabbb");
    assert_int_equal(loads, 3);
}

/* State that only the catalog has comes back: closure, Stream-Seq, producers, who closed. */
static void test_state(void **state)
{
    (void)state;
    struct stream_op op = {.verb = STREAM_APPEND, .name = SLICE("a")};
    op.append.content_type = SLICE(TEXT);
    op.append.body = SLICE("x");
    op.append.producer = (struct record_producer){SLICE("p"), 2, 0};
    op.append.has_seq = true;
    op.append.seq = SLICE("m");
    assert_int_equal(rig_op(&rig, &op), 0);
    reopen();
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_true(op.result.duplicate);
    op.append.producer.seq = 1;
    assert_int_equal(rig_op(&rig, &op), ERR_CONFLICT);
    assert_true(op.result.seq_conflict);
    op.append.seq = SLICE("n");
    op.append.close = true;
    assert_int_equal(rig_op(&rig, &op), 0);
    reopen();
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_true(op.result.duplicate);
    assert_true(op.result.closed);
}

/* An error of the catalog is answered to all who wait, and the next one asks again. */
static void test_errors(void **state)
{
    (void)state;
    find_code = ERR_IO;
    assert_int_equal(rig_head(&rig, "a"), ERR_IO);
    assert_int_equal(rig_put(&rig, "a", TEXT, ""), ERR_IO);
    assert_int_equal(rig_put(&rig, "new", TEXT, ""), ERR_IO);
    find_code = 0;
    load_code = ERR_CORRUPT;
    assert_int_equal(rig_head(&rig, "c"), ERR_CORRUPT);
    assert_int_equal(rig.engine->table.count, 0);
    load_code = 0;
    rig_expect(&rig, "c", "aaabbb");
}

/* A name that was deleted stays so until the catalog knows, also when a creation failed
 * meanwhile. */
static void test_tombstone(void **state)
{
    (void)state;
    assert_int_equal(rig_delete(&rig, "c"), 0);
    rig.engine->config.hot_bytes_max = 1;
    assert_int_equal(rig_put(&rig, "c", TEXT, "much"), ERR_BUSY);
    assert_int_equal(rig_head(&rig, "c"), ERR_NOTFOUND);
    struct store *store = rig.engine->store;
    assert_int_equal(store->ops->checkpoint(store), 0);
    assert_int_equal(rig_head(&rig, "c"), ERR_NOTFOUND);
    assert_int_equal(rig_put(&rig, "c", TEXT, ""), 0);
    rig_expect(&rig, "c", "");
}

/* A compaction that is told of between the look into the catalog and the listing is not missed. */
static void test_compaction(void **state)
{
    (void)state;
    replaces = 1;
    rig_expect(&rig, "a", "aaa");
    assert_int_equal(loads, 2);
    struct stream *s = table_name(rig.engine, SLICE("a"));
    assert_int_equal(s->extent_count, 1);
    stream_unref(s);
}

static struct stream_op queued[3];
static bool queued_done[3];

static void start_queued(int i)
{
    queued[i].done = rig_done;
    queued[i].context = &queued_done[i];
    assert_int_equal(stream_start(rig.worker, &queued[i]), STREAM_PENDING);
}

static void start_others(void)
{
    start_queued(1);
    start_queued(2);
}

/* Operations that arrive while a stream is loading queue up, and go on in order. */
static void test_queue(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        queued[i] = (struct stream_op){.verb = STREAM_APPEND, .name = SLICE("a")};
        queued[i].append.content_type = SLICE(TEXT);
        queued[i].append.body = i == 0 ? SLICE("1") : SLICE("2");
    }
    queued[2] = (struct stream_op){.verb = STREAM_CREATE, .name = SLICE("a")};
    queued[2].create.content_type = SLICE(TEXT);
    during = start_others;
    start_queued(0);
    rig_run(&rig);
    rig_commit(&rig);
    assert_true(queued_done[0] && queued_done[1] && queued_done[2]);
    assert_int_equal(queued[2].result.code, 0);
    assert_false(queued[2].result.created);
    assert_int_equal(loads, 1);
    rig_expect(&rig, "a", "aaa12");
}

/* The same when there turns out to be no such stream: 404 up to the first that creates it. */
static void test_queue_missing(void **state)
{
    (void)state;
    find_code = ERR_NOTFOUND;
    queued[0] = (struct stream_op){.verb = STREAM_HEAD, .name = SLICE("new")};
    queued[1] = (struct stream_op){.verb = STREAM_CREATE, .name = SLICE("new")};
    queued[2] = (struct stream_op){.verb = STREAM_HEAD, .name = SLICE("new")};
    memset(queued_done, 0, sizeof(queued_done));
    during_find = start_others;
    start_queued(0);
    rig_run(&rig);
    rig_commit(&rig);
    assert_true(queued_done[0] && queued_done[1] && queued_done[2]);
    assert_int_equal(queued[0].result.code, ERR_NOTFOUND);
    assert_true(queued[1].result.created);
    assert_int_equal(queued[2].result.code, 0);
}

static void ask_for_source(void)
{
    start_queued(1);
}

/* A fork's load brings its source to life while that still waits to be loaded by name, and somebody
 * writes to it before its turn comes: it is on both lists then, and on each once. */
static void test_dirty_in_the_queue(void **state)
{
    (void)state;
    queued[0] = (struct stream_op){.verb = STREAM_HEAD, .name = SLICE("b")};
    queued[1] = (struct stream_op){.verb = STREAM_HEAD, .name = SLICE("a")};
    memset(queued_done, 0, sizeof(queued_done));
    during_find = ask_for_source;
    replaces = 2; /* of a and of b: then both are looked at once more */
    dirty_at = 4; /* b's second look, when a is live */
    start_queued(0);
    rig_run(&rig);
    assert_true(queued_done[0] && queued_done[1]);
    assert_int_equal(queued[0].result.code, 0);
    assert_int_equal(queued[1].result.code, 0);
    assert_int_equal(loads, 4);
    assert_int_equal(rig.engine->dirty_count, 1);
    reopen();
    rig_expect(&rig, "a", "aaa");
    rig_expect(&rig, "b", "aaabbb");
}

/* A catalog whose extents leave a gap is damaged, and is not served. */
static void test_gap(void **state)
{
    (void)state;
    struct stream *s = stream_create(rig.engine, SLICE("x"), PHASE_LOADING);
    struct extent extents[2] = {{.start = 0, .len = 3}, {.start = 4, .len = 1}};
    struct catalog_stream cs = {.meta = {.tail = 5}, .extents = extents, .extent_count = 2};
    assert_int_equal(fill_extents(s, &cs), ERR_CORRUPT);
    extents[1].start = 3;
    assert_int_equal(fill_extents(s, &cs), ERR_CORRUPT);
    cs.meta.tail = 4;
    assert_int_equal(fill_extents(s, &cs), 0);
    stream_unref(s);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_rig, close_rig)
    const struct CMUnitTest tests[] = {
        TEST(test_chain),         TEST(test_state),      TEST(test_errors),
        TEST(test_tombstone),     TEST(test_compaction), TEST(test_queue),
        TEST(test_queue_missing), TEST(test_gap),        TEST(test_dirty_in_the_queue),
    };
    return UNIT_RUN(tests);
}
