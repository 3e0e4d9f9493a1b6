/* The index of entries: right about every id however much of it is in memory, in the store, or
 * nowhere yet; and bounded. */
#include "unit/base/fault.h"

#include "base/limits.h"

/* So that both are met by few. */
#undef INDEX_THREADS_MAX
#undef INDEX_ROWS_MAX
#define INDEX_THREADS_MAX 8u
#define INDEX_ROWS_MAX    64u

#include <stdatomic.h>

#include "thread/store_thread.h"

/* Calls of the store that are to succeed, before all fail; below 0: all succeed. */
static atomic_int store_countdown = -1;

static bool store_fails(struct errmsg *msg)
{
    if (atomic_load(&store_countdown) < 0) {
        return false;
    }
    if (atomic_load(&store_countdown) > 0) {
        atomic_fetch_sub(&store_countdown, 1);
        return false;
    }
    (void)err_set(msg, ERR_NOSPC, "app.db: no space is left on the disk");
    return true;
}

static int put_or_fail(struct thread_store *s, struct slice thread_id, struct slice next_offset,
                       const struct index_row *rows, size_t count, struct errmsg *msg)
{
    return store_fails(msg) ? ERR_NOSPC
                            : store_index_put(s, thread_id, next_offset, rows, count, msg);
}

static int get_or_fail(struct thread_store *s, struct slice thread_id, struct arena *arena,
                       struct slice *ret_next_offset, struct errmsg *msg)
{
    return store_fails(msg) ? ERR_NOSPC
                            : store_index_get(s, thread_id, arena, ret_next_offset, msg);
}

static int find_or_fail(struct thread_store *s, struct slice thread_id, struct slice entry_id,
                        struct arena *arena, struct slice *ret_at_offset, struct errmsg *msg)
{
    return store_fails(msg) ? ERR_NOSPC
                            : store_index_find(s, thread_id, entry_id, arena, ret_at_offset, msg);
}

#define store_index_put  put_or_fail
#define store_index_get  get_or_fail
#define store_index_find find_or_fail
#include "thread/entry_index.c"
#undef store_index_put
#undef store_index_get
#undef store_index_find

#include "unit/thread/posting_rig.h"

static int with_house(void **state)
{
    struct posting *g;
    (void)posting_set_up(state);
    g = *state;
    posting_add_house(g);
    posting_add_thread(g, "t");
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, with_house, posting_tear_down)

/* An index of the test's own, whose statics are those of this file. */
static struct entry_index *open_index(struct posting *g)
{
    struct entry_index *x = NULL;
    FINE(entry_index_open(g->store, g->client, NULL, &x));
    return x;
}

/* Appends entries "PREFIX-00000000" and so on, 100 at once. */
static void append_many(struct posting *g, const char *thread_id, const char *prefix,
                        unsigned count, size_t filling)
{
    const struct stream_append_options options = {.content_type = "application/json"};
    char name[THREAD_STREAM_BYTES];
    char *text = calloc(1, filling + 1);
    thread_stream_name(slice_of(thread_id), name);
    memset(text, 'x', filling);
    for (unsigned i = 0; i < count;) {
        struct buf body;
        buf_init(&body, 16 * MIB);
        for (unsigned k = 0; k < 100 && i < count; k++, i++) {
            char id[STORE_ID_BYTES];
            char *json = entry_json(numbered(id, prefix, i), 1000 + i, text);
            buf_append_char(&body, k == 0 ? '[' : ',');
            buf_append(&body, slice_of(json));
            free(json);
        }
        buf_append_char(&body, ']');
        assert_false(body.failed);
        assert_int_equal(
            stream_client_append(g->client, name, body.ptr, body.len, &options, NULL, NULL),
            STREAM_OK);
        buf_finish(&body);
    }
    free(text);
}

/* Looks for one id: whether it is there; -1: that cannot be said. What is found is that entry. */
static int look_for(struct entry_index *x, const char *thread_id, struct slice id)
{
    struct entry_query query = {.id = id};
    struct api_error error;
    struct arena arena;
    struct entry entry;
    arena_init(&arena, MIB);
    int rc = entry_index_look(x, slice_of(thread_id), &query, 1, &arena, &error);
    if (rc == 0 && query.found) {
        assert_int_equal(entry_parse(query.json, &entry, NULL), 0);
        assert_true(slice_equal(entry.id, id));
    }
    arena_finish(&arena);
    return rc == 0 ? query.found : -1;
}

static void expect_all(struct entry_index *x, const char *thread_id, const char *prefix,
                       unsigned count, unsigned step)
{
    char id[STORE_ID_BYTES];
    for (unsigned i = 0; i < count; i += step) {
        assert_int_equal(look_for(x, thread_id, numbered(id, prefix, i)), 1);
    }
    assert_int_equal(look_for(x, thread_id, numbered(id, prefix, count)), 0);
}

/* Several thousand entries over many pages: found while they are in memory, once they are written,
 * and by an index that is opened anew, which reads no more than what is new. */
static void many_pages(void **state)
{
    struct posting *g = *state;
    struct entry_index *x = open_index(g);
    append_many(g, "t", "a", 3000, 100);
    expect_all(x, "t", "a", 3000, 250);
    FINE(entry_index_flush(x, msg));
    assert_int_equal(x->parts.count, 0);
    expect_all(x, "t", "a", 3000, 250);
    entry_index_close(x);
    x = open_index(g);
    append_many(g, "t", "b", 10, 100);
    unsigned reads = posting_calls(g, CALL_READ);
    char id[STORE_ID_BYTES];
    assert_int_equal(look_for(x, "t", numbered(id, "none", 0)), 0);
    assert_true(posting_calls(g, CALL_READ) - reads <= 2);
    expect_all(x, "t", "b", 10, 1);
    entry_index_close(x);
}

/* More threads and more rows than may be in memory: the idlest go, all are found. */
static void memory_is_bounded(void **state)
{
    struct posting *g = *state;
    struct entry_index *x = open_index(g);
    char id[STORE_ID_BYTES];
    for (unsigned i = 0; i < 30; i++) {
        (void)numbered(id, "t", i);
        posting_add_thread(g, id);
        append_many(g, id, "a", 5, 10);
    }
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 30; i++) {
            (void)numbered(id, "t", i);
            expect_all(x, id, "a", 5, 2);
            (void)pthread_mutex_lock(&x->lock);
            assert_true(x->parts.count <= INDEX_THREADS_MAX);
            assert_true(x->row_count <= INDEX_ROWS_MAX);
            (void)pthread_mutex_unlock(&x->lock);
        }
    }
    entry_index_close(x);
}

/* A thread that was deleted, whose rows nobody takes: its entries are found nevertheless, as long
 * as there is a stream, and memory keeps none of them. */
static void deleted_threads(void **state)
{
    struct posting *g = *state;
    struct entry_index *x = open_index(g);
    char id[STORE_ID_BYTES];
    append_many(g, "t", "a", 3000, 10);
    FINE(store_thread_delete(g->store, SLICE("t"), 9, NULL, 0, msg));
    expect_all(x, "t", "a", 3000, 700);
    assert_int_equal(x->row_count, 0);
    FINE(entry_index_flush(x, msg));
    assert_int_equal(x->parts.count, 0);
    posting_create_stream(g, SLICE("never"));
    append_many(g, "never", "a", 3, 10);
    assert_int_equal(look_for(x, "never", numbered(id, "a", 1)), 1);
    FINE(entry_index_flush(x, msg));
    assert_int_equal(look_for(x, "nowhere", SLICE("a")), -1);
    entry_index_close(x);
}

/* A stream that has lost its end, or was made anew: what the index knew of it counts for nothing,
 * and what came instead is found. */
static void streams_that_lost_their_end(void **state)
{
    struct posting *g = *state;
    struct entry_index *x = open_index(g);
    char id[STORE_ID_BYTES];
    append_many(g, "t", "a", 500, 100);
    expect_all(x, "t", "a", 500, 100);
    for (unsigned round = 0; round < 2; round++) {
        if (round > 0) {
            FINE(entry_index_flush(x, msg));
        }
        assert_int_equal(stream_client_delete(g->client, "arbe-thread-t", NULL), STREAM_OK);
        posting_create_stream(g, SLICE("t"));
        append_many(g, "t", round == 0 ? "b" : "c", 5 - 2 * round, 10);
        assert_int_equal(look_for(x, "t", numbered(id, round == 0 ? "b" : "c", 2)), 1);
        assert_int_equal(look_for(x, "t", numbered(id, "a", 300)), 0);
        assert_int_equal(look_for(x, "t", numbered(id, "a", 0)), 0);
    }
    append_many(g, "t", "a", 2, 10); /* the index knew it elsewhere */
    assert_int_equal(look_for(x, "t", numbered(id, "a", 1)), 1);
    entry_index_close(x);
}

/* A read that fails half way is said to have failed, and goes on there the next time. */
static void reads_fail(void **state)
{
    struct posting *g = *state;
    struct entry_index *x = open_index(g);
    char id[STORE_ID_BYTES];
    append_many(g, "t", "a", 2000, 300);
    int found = -1;
    for (unsigned nth = 0; found < 0; nth++) {
        assert_true(nth < 100);
        atomic_store(&g->faulty->skip, nth);
        posting_fault(g, FAULT_DOWN, VERB(READ), 1);
        found = look_for(x, "t", numbered(id, "a", 1999));
        posting_fault(g, FAULT_NONE, 0, 0);
    }
    assert_int_equal(found, 1);
    expect_all(x, "t", "a", 2000, 300);
    entry_index_close(x);
}

/* The same for memory: whatever fails, nothing is believed that is not so. */
static void memory_fails(void **state)
{
    struct posting *g = *state;
    char id[STORE_ID_BYTES];
    struct entry_index *x = NULL;
    append_many(g, "t", "a", 20, 10);
    fault_countdown = 0;
    assert_int_equal(entry_index_open(g->store, g->client, NULL, &x), ERR_NOMEM);
    fault_countdown = -1;
    int found = -1;
    for (long allowed = 0; found < 0; allowed++) {
        x = open_index(g);
        fault_countdown = allowed;
        found = look_for(x, "t", numbered(id, "a", 19));
        fault_countdown = -1;
        assert_int_not_equal(found, 0);
        entry_index_close(x);
    }
    x = open_index(g);
    expect_all(x, "t", "a", 20, 3);
    entry_index_close(x);
}

/* The store fails, after each number of calls: a look either says so or is right, rows stay
 * bounded, and once the store works again all is found. */
static void the_store_fails(void **state)
{
    struct posting *g = *state;
    char id[STORE_ID_BYTES];
    for (unsigned i = 0; i < 12; i++) {
        (void)numbered(id, "t", i);
        posting_add_thread(g, id);
        append_many(g, id, "a", i == 0 ? 2500 : 20, 10);
    }
    for (int allowed = 0; allowed < 40; allowed++) {
        struct entry_index *x = open_index(g);
        char thread_id[STORE_ID_BYTES];
        atomic_store(&store_countdown, allowed);
        for (unsigned i = 0; i < 12; i++) {
            (void)numbered(thread_id, "t", i);
            assert_int_not_equal(look_for(x, thread_id, numbered(id, "a", 19)), 0);
            assert_true(look_for(x, thread_id, numbered(id, "b", 0)) <= 0);
        }
        (void)pthread_mutex_lock(&x->lock);
        assert_true(x->parts.count <= INDEX_THREADS_MAX);
        assert_true(x->row_count <= INDEX_ROWS_MAX + INDEX_THREADS_MAX * PUT_ROWS);
        (void)pthread_mutex_unlock(&x->lock);
        atomic_store(&store_countdown, -1);
        for (unsigned i = 0; i < 12; i++) {
            (void)numbered(thread_id, "t", i);
            assert_int_equal(look_for(x, thread_id, numbered(id, "a", 19)), 1);
        }
        entry_index_close(x);
    }
}

struct looker {
    struct entry_index *x;
    pthread_t thread;
    unsigned number;
};

static void *look_around(void *context)
{
    struct looker *l = context;
    for (unsigned i = 0; i < 60; i++) {
        char thread_id[STORE_ID_BYTES];
        char id[STORE_ID_BYTES];
        struct errmsg why;
        (void)numbered(thread_id, "t", (i + l->number) % 20);
        if (look_for(l->x, thread_id, numbered(id, "a", i % 7)) != (i % 7 < 5)) {
            return l;
        }
        if (i % 20 == 0 && entry_index_flush(l->x, &why) != 0) {
            return l;
        }
    }
    return NULL;
}

/* Looks at more threads than there is room for, from several threads, with flushes in between. */
static void looks_at_once(void **state)
{
    struct posting *g = *state;
    struct looker lookers[6];
    struct entry_index *x = open_index(g);
    for (unsigned i = 0; i < 20; i++) {
        char id[STORE_ID_BYTES];
        (void)numbered(id, "t", i);
        posting_add_thread(g, id);
        append_many(g, id, "a", 5, 10);
    }
    for (unsigned i = 0; i < 6; i++) {
        lookers[i] = (struct looker){.x = x, .number = i};
        assert_int_equal(pthread_create(&lookers[i].thread, NULL, look_around, &lookers[i]), 0);
    }
    for (unsigned i = 0; i < 6; i++) {
        void *failed;
        (void)pthread_join(lookers[i].thread, &failed);
        assert_null(failed);
    }
    entry_index_close(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(many_pages),      TEST(memory_is_bounded),
        TEST(deleted_threads), TEST(streams_that_lost_their_end),
        TEST(reads_fail),      TEST(memory_fails),
        TEST(the_store_fails), TEST(looks_at_once),
    };
    return UNIT_RUN(tests);
}
