/* When threads were last written to: at once in memory, now and then in the records, and right
 * after whatever happens. */
#include "unit/base/fault.h"

#include <stdatomic.h>

#include "base/dice.h"
#include "thread/store_thread.h"

/* Writes that are yet to fail. */
static atomic_int failing_writes;

static int write_or_fail(struct thread_store *s, const struct recency_row *rows, size_t count,
                         struct errmsg *msg);

#define store_recency_write write_or_fail
#include "thread/recency.c"
#undef store_recency_write

#include "unit/thread/posting_rig.h"

static int write_or_fail(struct thread_store *s, const struct recency_row *rows, size_t count,
                         struct errmsg *msg)
{
    if (atomic_load(&failing_writes) > 0) {
        atomic_fetch_sub(&failing_writes, 1);
        return err_set(msg, ERR_IO, "the disk reported an error");
    }
    return store_recency_write(s, rows, count, msg);
}

/* The interval is so long that nothing is written a second time but at the end. */
static int with_long_interval(void **state)
{
    struct posting *g = malloc(sizeof(*g));
    posting_init(g);
    g->interval_ms = 3600000;
    posting_open(g);
    posting_add_house(g);
    *state = g;
    return 0;
}

/* So short that what is written again is written soon. */
static int with_short_interval(void **state)
{
    struct posting *g = malloc(sizeof(*g));
    posting_init(g);
    g->interval_ms = 20;
    posting_open(g);
    posting_add_house(g);
    *state = g;
    return 0;
}

#define LONG_TEST(name) cmocka_unit_test_setup_teardown(name, with_long_interval, posting_tear_down)
#define SHORT_TEST(name) \
    cmocka_unit_test_setup_teardown(name, with_short_interval, posting_tear_down)

/* Appends by the client as any producer of ours does. */
static void append(struct posting *g, const char *thread_id, const char *json)
{
    const struct stream_append_options options = {.content_type = "application/json"};
    struct stream_error error;
    char name[THREAD_STREAM_BYTES];
    thread_stream_name(slice_of(thread_id), name);
    if (stream_client_append(g->client, name, json, strlen(json), &options, NULL, &error) !=
        STREAM_OK) {
        fail_msg("%s", error.message);
    }
}

#define ENTRY(id, ts) "{\"id\":\"" id "\",\"ts\":" ts ",\"payload\":{\"type\":\"chat\"}}"

/* What a list would show: memory first, then the records, and of both the later. */
static int64_t shown_ts(struct posting *g, const char *thread_id)
{
    struct recency_ahead *ahead = NULL;
    size_t count = 0;
    int64_t ts = 0;
    assert_int_equal(recency_get_ahead(g->recency, &ahead, &count), 0);
    for (size_t i = 0; i < count; i++) {
        ts = strcmp(ahead[i].thread_id, thread_id) == 0 ? ahead[i].ts : ts;
    }
    free(ahead);
    int64_t recorded = posting_ts(g, thread_id);
    return recorded > ts ? recorded : ts;
}

/* Names of streams and ids of threads are each other's. */
static void names_and_ids(void **state)
{
    char name[THREAD_STREAM_BYTES];
    struct slice id;
    (void)state;
    thread_stream_name(SLICE("018f5d3a-0000-7000-8000-000000000001"), name);
    assert_string_equal(name, "arbe-thread-018f5d3a-0000-7000-8000-000000000001");
    assert_true(thread_stream_parse(slice_of(name), &id));
    assert_true(slice_equal(id, SLICE("018f5d3a-0000-7000-8000-000000000001")));
    assert_false(thread_stream_parse(SLICE("arbe-thread-"), &id));
    assert_false(thread_stream_parse(SLICE("arbe-threads-x"), &id));
    assert_false(thread_stream_parse(SLICE("x-arbe-thread-x"), &id));
    assert_false(
        thread_stream_parse(SLICE("arbe-thread-018f5d3a-0000-7000-8000-0000000000012"), &id));
}

/* Any successful append to a thread moves it, of one entry or several; nothing else does. */
static void appends_move_threads(void **state)
{
    struct posting *g = *state;
    const struct stream_create_options options = {.content_type = "application/json"};
    posting_add_thread(g, "t");
    append(g, "t", ENTRY("a", "1000"));
    assert_int_equal(shown_ts(g, "t"), 1000);
    AWAIT(recency_writes(g->recency) == 1); /* so that the next one waits for its interval */
    append(g, "t", "[" ENTRY("b", "2000") "," ENTRY("c", "3000") "]");
    assert_int_equal(shown_ts(g, "t"), 3000);
    assert_int_equal(recency_get(g->recency, SLICE("t")), 3000);
    append(g, "t", "{\"no\":\"entry\"}");
    assert_int_equal(shown_ts(g, "t"), 3000);
    assert_int_equal(stream_client_create(g->client, "other", &options, NULL, NULL), STREAM_OK);
    assert_int_equal(stream_client_append(g->client, "other", "1", 1, NULL, NULL, NULL), STREAM_OK);
    posting_fault(g, FAULT_DOWN, VERB(APPEND), 1);
    assert_int_not_equal(
        stream_client_append(g->client, "arbe-thread-t", "{}", 2, NULL, NULL, NULL), STREAM_OK);
    assert_int_equal(shown_ts(g, "t"), 3000);
}

/* The first is written at once; what follows within the interval is not, but is known; the end
 * writes it. Never more than one write a thread and interval. */
static void the_first_and_the_last_are_written(void **state)
{
    struct posting *g = *state;
    posting_add_thread(g, "t");
    posting_add_thread(g, "u");
    append(g, "t", ENTRY("a", "1000"));
    AWAIT(recency_writes(g->recency) == 1);
    assert_int_equal(posting_ts(g, "t"), 1000);
    assert_int_equal(recency_get(g->recency, SLICE("t")), 0);
    for (unsigned i = 0; i < 50; i++) {
        char json[128];
        (void)snprintf(json, sizeof(json),
                       "{\"id\":\"x%u\",\"ts\":%u,\"payload\":{\"type\":\"chat\"}}", i, 2000 + i);
        append(g, "t", json);
    }
    append(g, "u", ENTRY("a", "500"));
    AWAIT(recency_writes(g->recency) == 2);
    assert_int_equal(posting_ts(g, "t"), 1000);
    assert_int_equal(posting_ts(g, "u"), 500);
    assert_int_equal(shown_ts(g, "t"), 2049);
    posting_reopen(g);
    assert_int_equal(posting_ts(g, "t"), 2049);
    assert_int_equal(posting_calls(g, CALL_READ), 0);
}

static size_t marks_of(struct recency *r)
{
    (void)pthread_mutex_lock(&r->lock);
    size_t count = r->marks.count;
    (void)pthread_mutex_unlock(&r->lock);
    return count;
}

/* The last one within an interval is written when its time comes, without another append; and then
 * memory lets go of the thread. */
static void the_trailing_one_is_written(void **state)
{
    struct posting *g = *state;
    posting_add_thread(g, "t");
    append(g, "t", ENTRY("a", "1000"));
    append(g, "t", ENTRY("b", "2000"));
    AWAIT(posting_ts(g, "t") == 2000);
    assert_true(recency_writes(g->recency) <= 2);
    AWAIT(marks_of(g->recency) == 0);
}

/* An entry with an earlier time moves nothing back, in memory or in the records. */
static void never_back(void **state)
{
    struct posting *g = *state;
    posting_add_thread(g, "t");
    append(g, "t", ENTRY("a", "5000"));
    append(g, "t", ENTRY("b", "3000"));
    assert_int_equal(shown_ts(g, "t"), 5000);
    posting_reopen(g);
    assert_int_equal(posting_ts(g, "t"), 5000);
    append(g, "t", ENTRY("c", "4000"));
    AWAIT(recency_writes(g->recency) == 1);
    assert_int_equal(posting_ts(g, "t"), 5000);
    posting_reopen(g);
    assert_int_equal(posting_ts(g, "t"), 5000);
    /* All that is known is known: nothing is read again. */
    FINE(recency_reconcile(g->recency, g->client, msg));
    assert_int_equal(posting_calls(g, CALL_READ), 0);
}

/* A crash: the recency goes as it is, without a last write. What it knew is in the streams. */
static void crash(struct posting *g)
{
    (void)pthread_mutex_lock(&g->recency->lock);
    for (struct map_node *node = NULL; (node = map_next(&g->recency->marks, node));) {
        mark_of(node)->dirty = false;
    }
    (void)pthread_mutex_unlock(&g->recency->lock);
    posting_reopen(g);
}

/* Threads that moved on before a crash are right after the reconciliation, which reads no more than
 * what is new, tells of each entry of it, and has nothing to do the next time. One that lost its
 * stream has one again. */
static void check_reconcile(struct posting *g)
{
    posting_add_thread(g, "t");
    posting_add_thread(g, "quiet");
    posting_add_thread(g, "empty");
    posting_add_record(g, SLICE("streamless"), NULL, 0);
    append(g, "t", ENTRY("a", "1000"));
    append(g, "quiet", ENTRY("a", "700"));
    AWAIT(recency_writes(g->recency) == 2);
    append(g, "t", ENTRY("b", "2000"));
    append(g, "t", "[{\"odd\":1}," ENTRY("c", "3000") "]");
    crash(g);
    assert_int_equal(posting_ts(g, "t"), 1000);
    g->seen = 0;
    FINE(recency_reconcile(g->recency, g->client, msg));
    assert_int_equal(g->seen, 2);
    assert_int_equal(posting_ts(g, "t"), 3000);
    assert_int_equal(posting_ts(g, "quiet"), 700);
    FINE(recency_reconcile(g->recency, g->client, msg));
    assert_int_equal(g->seen, 2);
    append(g, "streamless", ENTRY("a", "800"));
}

static void crashes_are_made_up_for(void **state)
{
    struct posting *g = *state;
    check_reconcile(g);
    assert_int_equal(posting_calls(g, CALL_HEAD), 0);
}

/* The same with a server that lists no streams. */
static void no_listing_takes_heads(void **state)
{
    struct posting *g = *state;
    atomic_store(&faulty_lists_nothing, true);
    check_reconcile(g);
    atomic_store(&faulty_lists_nothing, false);
    assert_true(posting_calls(g, CALL_HEAD) > 0);
}

/* Some hundred threads without a listing: all are asked, several at once, and one failure among
 * them is told. */
static void many_heads(void **state)
{
    struct posting *g = *state;
    struct errmsg why = {.text = ""};
    char id[STORE_ID_BYTES];
    for (unsigned i = 0; i < 300; i++) {
        (void)numbered(id, "t", i);
        posting_add_thread(g, id);
    }
    append(g, "t-00000000", ENTRY("a", "1000"));
    append(g, "t-00000299", ENTRY("a", "1000"));
    AWAIT(recency_writes(g->recency) == 2);
    append(g, "t-00000000", ENTRY("b", "2000"));
    append(g, "t-00000299", ENTRY("b", "3000"));
    crash(g);
    atomic_store(&faulty_lists_nothing, true);
    atomic_store(&g->faulty->skip, 250);
    posting_fault(g, FAULT_DOWN, VERB(HEAD), 1);
    assert_int_equal(recency_reconcile(g->recency, g->client, &why), ERR_IO);
    assert_non_null(strstr(why.text, "no connection"));
    posting_fault(g, FAULT_NONE, 0, 0);
    unsigned before = posting_calls(g, CALL_HEAD);
    FINE(recency_reconcile(g->recency, g->client, msg));
    atomic_store(&faulty_lists_nothing, false);
    assert_int_equal(posting_calls(g, CALL_HEAD) - before, 301); /* and the primary one */
    assert_int_equal(posting_ts(g, "t-00000000"), 2000);
    assert_int_equal(posting_ts(g, "t-00000299"), 3000);
}

/* A reconciliation that cannot reach the streams says so, and the next one makes up for it. */
static void reconcile_fails_and_is_repeated(void **state)
{
    struct posting *g = *state;
    static const unsigned verbs[] = {VERB(LIST), VERB(READ)};
    struct errmsg why = {.text = ""};
    posting_add_thread(g, "t");
    append(g, "t", ENTRY("a", "1000"));
    AWAIT(recency_writes(g->recency) == 1);
    append(g, "t", ENTRY("b", "2000"));
    crash(g);
    for (size_t i = 0; i < ARRAY_COUNT(verbs); i++) {
        posting_fault(g, FAULT_DOWN, verbs[i], -1);
        assert_int_equal(recency_reconcile(g->recency, g->client, &why), ERR_IO);
        assert_non_null(strstr(why.text, "no connection"));
        assert_int_equal(posting_ts(g, "t"), 1000);
    }
    posting_fault(g, FAULT_NONE, 0, 0);
    FINE(recency_reconcile(g->recency, g->client, msg));
    assert_int_equal(posting_ts(g, "t"), 2000);
}

/* Records that cannot be written are tried again, and lists are right meanwhile. */
static void failed_writes_are_repeated(void **state)
{
    struct posting *g = *state;
    posting_add_thread(g, "t");
    failing_writes = 2;
    append(g, "t", ENTRY("a", "1000"));
    AWAIT(atomic_load(&g->troubles) > 0);
    assert_true(posting_was_told(g, "cannot record which threads were written to"));
    assert_int_equal(shown_ts(g, "t"), 1000);
    AWAIT(posting_ts(g, "t") == 1000);
    assert_int_equal(failing_writes, 0);
}

/* --------------------------------------------------------------------------------- many at once */

#define WRITERS    50u
#define THREADS    5000u
#define PER_WRITER 600u

struct writer {
    struct posting *g;
    pthread_t thread;
    unsigned number;
};

static void *write_around(void *context)
{
    struct writer *w = context;
    uint64_t dice = w->number;
    for (unsigned i = 0; i < PER_WRITER; i++) {
        char id[STORE_ID_BYTES];
        char json[128];
        (void)numbered(id, "t", (unsigned)(dice_roll(&dice) % THREADS));
        (void)snprintf(json, sizeof(json),
                       "{\"id\":\"w%u-%u\",\"ts\":%u,\"payload\":{\"type\":\"chat\"}}", w->number,
                       i, 1000 + i * WRITERS + w->number);
        append(w->g, id, json);
    }
    return NULL;
}

static int keep_max(void *context, const struct entry *entry, size_t index)
{
    int64_t *ts = context;
    (void)index;
    *ts = entry->ts > *ts ? entry->ts : *ts;
    return 0;
}

/* What the streams say of each thread. */
static int64_t *read_all(struct posting *g)
{
    int64_t *all = calloc(THREADS, sizeof(*all));
    for (unsigned i = 0; i < THREADS; i++) {
        char id[STORE_ID_BYTES];
        (void)numbered(id, "t", i);
        char *text = posting_read(g, id);
        assert_int_equal(entry_each(slice_of(text), keep_max, &all[i]), 0);
        free(text);
    }
    return all;
}

static unsigned number_of(const char *thread_id)
{
    unsigned number = 0;
    assert_int_equal(sscanf(thread_id, "t-%u", &number), 1);
    return number;
}

static int put_row(void *context, const struct recency_row *row)
{
    int64_t *shown = context;
    if (slice_starts_with(row->thread_id, SLICE("t-"))) {
        int64_t *ts = &shown[number_of(row->thread_id.ptr)];
        *ts = row->ts > *ts ? row->ts : *ts;
    }
    return 0;
}

/* What lists show: those ahead, and then the records. */
static int64_t *shown_all(struct posting *g)
{
    struct recency_ahead *ahead = NULL;
    size_t count = 0;
    int64_t *shown = calloc(THREADS, sizeof(*shown));
    assert_int_equal(recency_get_ahead(g->recency, &ahead, &count), 0);
    for (size_t i = 0; i < count; i++) {
        shown[number_of(ahead[i].thread_id)] = ahead[i].ts;
    }
    free(ahead);
    FINE(store_recency_each(g->store, put_row, shown, msg));
    return shown;
}

static unsigned written_to(const int64_t *all)
{
    unsigned count = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        count += all[i] > 0;
    }
    return count;
}

/* 50 writers at 5,000 threads: lists are right the moment after, each thread was written once; and
 * the records are right after the end, with one more write for each thread at most. */
static void fifty_writers(void **state)
{
    struct posting *g = *state;
    static struct writer writers[WRITERS];
    char id[STORE_ID_BYTES];
    for (unsigned i = 0; i < THREADS; i++) {
        (void)numbered(id, "t", i);
        posting_add_thread(g, id);
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.g = g, .number = i};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_around, &writers[i]), 0);
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        (void)pthread_join(writers[i].thread, NULL);
    }
    int64_t *shown = shown_all(g);
    int64_t *all = read_all(g);
    assert_memory_equal(shown, all, THREADS * sizeof(*all));
    AWAIT(recency_writes(g->recency) == written_to(all));
    free(shown);
    posting_reopen(g);
    shown = calloc(THREADS, sizeof(*shown));
    FINE(store_recency_each(g->store, put_row, shown, msg));
    assert_memory_equal(shown, all, THREADS * sizeof(*all));
    assert_int_equal(recency_writes(g->recency), 0);
    free(shown);
    free(all);
}

/* Without memory for a mark a thread is told of once, and nothing else breaks. */
static void no_memory(void **state)
{
    struct posting *g = *state;
    struct recency_config config = g->recency->config;
    struct recency *r = NULL;
    fault_countdown = 0;
    assert_int_equal(recency_open(&config, &r), ERR_NOMEM);
    recency_note(g->recency, SLICE("t"), 1, "0");
    recency_note(g->recency, SLICE("t"), 1, "0");
    fault_countdown = -1;
    assert_int_equal(atomic_load(&g->troubles), 1);
    posting_add_thread(g, "t");
    append(g, "t", ENTRY("a", "1000"));
    fault_countdown = 0;
    struct recency_ahead *ahead = NULL;
    size_t count = 7;
    int code = recency_get_ahead(g->recency, &ahead, &count);
    fault_countdown = -1;
    assert_int_equal(code, ERR_NOMEM);
    assert_int_equal(count, 7);
    assert_int_equal(shown_ts(g, "t"), 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_ids),
        LONG_TEST(appends_move_threads),
        LONG_TEST(the_first_and_the_last_are_written),
        SHORT_TEST(the_trailing_one_is_written),
        LONG_TEST(never_back),
        LONG_TEST(crashes_are_made_up_for),
        LONG_TEST(no_listing_takes_heads),
        LONG_TEST(many_heads),
        LONG_TEST(reconcile_fails_and_is_repeated),
        SHORT_TEST(failed_writes_are_repeated),
        LONG_TEST(no_memory),
        LONG_TEST(fifty_writers),
    };
    return UNIT_RUN(tests);
}
