/* What records have caused is done to streams: in order, once, whatever fails and however often the
 * process starts anew; and what can never be done holds up nothing. */
#include "unit/base/fault.h"

#include <stdatomic.h>

#include "thread/store_outbox.h"

/* Calls of the store that are to succeed, before one fails; below 0: none fails. */
static atomic_int store_countdown = -1;

static int done_or_fail(struct thread_store *s, const uint64_t *seqs, size_t count,
                        struct errmsg *msg);
static int list_or_fail(struct thread_store *s, struct slice thread_id, uint64_t after_seq,
                        size_t limit, struct arena *arena, struct outbox_list *ret_list,
                        struct errmsg *msg);

#define store_outbox_done        done_or_fail
#define store_outbox_list_thread list_or_fail
#include "thread/outbox.c"
#undef store_outbox_done
#undef store_outbox_list_thread

#include "unit/thread/posting_rig.h"

static bool store_fails(void)
{
    return atomic_load(&store_countdown) >= 0 && atomic_fetch_sub(&store_countdown, 1) == 0;
}

static int done_or_fail(struct thread_store *s, const uint64_t *seqs, size_t count,
                        struct errmsg *msg)
{
    return store_fails() ? err_set(msg, ERR_IO, "app.db: the disk reported an error")
                         : store_outbox_done(s, seqs, count, msg);
}

static int list_or_fail(struct thread_store *s, struct slice thread_id, uint64_t after_seq,
                        size_t limit, struct arena *arena, struct outbox_list *ret_list,
                        struct errmsg *msg)
{
    return store_fails()
               ? err_set(msg, ERR_IO, "app.db: the disk reported an error")
               : store_outbox_list_thread(s, thread_id, after_seq, limit, arena, ret_list, msg);
}

static int with_house(void **state)
{
    (void)posting_set_up(state);
    posting_add_house(*state);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, with_house, posting_tear_down)

#define SIGNAL(id) \
    "{\"id\":\"" id "\",\"ts\":1,\"payload\":{\"type\":\"signal.thread.renamed\",\"name\":\"x\"}}"

#define CREATE(thread) ((struct outbox_item){.kind = OUTBOX_CREATE, .thread_id = SLICE(thread)})
#define DROP(thread)   ((struct outbox_item){.kind = OUTBOX_DROP, .thread_id = SLICE(thread)})
#define APPEND(thread, id)                            \
    ((struct outbox_item){.kind = OUTBOX_APPEND,      \
                          .thread_id = SLICE(thread), \
                          .entry_id = SLICE(id),      \
                          .entry = SLICE(SIGNAL(id))})

/* Changes the name of a thread, with what that causes. */
static void rename_thread(struct posting *g, const char *thread_id, const char *name,
                          const struct outbox_item *items, size_t count)
{
    const struct thread_change change = {.set_name = true, .name = slice_of(name)};
    struct thread_record thread;
    struct arena arena;
    arena_init(&arena, MIB);
    FINE(store_thread_update(g->store, slice_of(thread_id), &change, items, count, &arena, &thread,
                             msg));
    arena_finish(&arena);
}

/* How long failures are waited for at most, and which are taken for slow. */
static void tune(struct outbox *o, uint64_t retry_ms_max, uint64_t slow_ms)
{
    (void)pthread_mutex_lock(&o->lock);
    o->config.retry_ms_max = retry_ms_max;
    o->slow_ms = slow_ms;
    (void)pthread_mutex_unlock(&o->lock);
}

#define HOURS 36000000u

static size_t items_left(struct posting *g)
{
    struct outbox_list list;
    struct arena arena;
    arena_init(&arena, 16 * MIB);
    FINE(store_outbox_list(g->store, 0, 1000, &arena, &list, msg));
    size_t count = list.count;
    arena_finish(&arena);
    return count;
}

static void expect_no_stream(struct posting *g, const char *thread_id)
{
    char name[THREAD_STREAM_BYTES];
    thread_stream_name(slice_of(thread_id), name);
    assert_int_equal(stream_client_head(g->client, name, NULL, NULL), STREAM_ERROR_NOT_FOUND);
}

/* A new thread gets its stream and its first signal, a later change the next one. */
static void changes_reach_the_stream(void **state)
{
    struct posting *g = *state;
    const struct outbox_item created[] = {CREATE("t"), APPEND("t", "created")};
    const struct outbox_item renamed[] = {APPEND("t", "renamed")};
    posting_add_record(g, SLICE("t"), created, 2);
    assert_int_equal(outbox_run(g->outbox, SLICE("t")), 0);
    posting_expect(g, "t", "created");
    rename_thread(g, "t", "x", renamed, 1);
    assert_int_equal(outbox_run(g->outbox, SLICE("t")), 0);
    posting_expect(g, "t", "created renamed");
    assert_int_equal(outbox_run(g->outbox, SLICE("t")), 0);
    assert_int_equal(items_left(g), 0);
    assert_int_equal(outbox_waiting(g->outbox), 0);
    assert_int_equal(atomic_load(&g->troubles), 0);
    assert_int_equal(g->outbox->lanes.count, 0);
}

/* The record changes and the append fails, in each way that it can; the process starts anew; then
 * the log tells each change once and in order. */
static void a_restart_reconciles(void **state)
{
    struct posting *g = *state;
    static const enum fault faults[] = {FAULT_DOWN, FAULT_BUSY, FAULT_LOST, FAULT_BROKEN,
                                        FAULT_FULL};
    const struct outbox_item created[] = {CREATE("t"), APPEND("t", "created")};
    char expected[1024] = "created";
    tune(g->outbox, HOURS, HOURS); /* not before the restart */
    posting_add_record(g, SLICE("t"), created, 2);
    assert_int_equal(outbox_run(g->outbox, SLICE("t")), 0);
    for (unsigned i = 0; i < ARRAY_COUNT(faults); i++) {
        char ids[2][STORE_ID_BYTES];
        char *jsons[2];
        struct outbox_item items[2];
        for (unsigned k = 0; k < 2; k++) {
            struct slice id = numbered(ids[k], "s", 2 * i + k);
            jsons[k] = entry_json(id, 1, "x");
            items[k] = (struct outbox_item){.kind = OUTBOX_APPEND,
                                            .thread_id = SLICE("t"),
                                            .entry_id = id,
                                            .entry = slice_of(jsons[k])};
            (void)snprintf(expected + strlen(expected), sizeof(expected) - strlen(expected), " %s",
                           ids[k]);
        }
        tune(g->outbox, HOURS, HOURS);
        posting_fault(g, faults[i], VERB(APPEND), -1);
        rename_thread(g, "t", ids[0], &items[0], 1);
        assert_int_equal(outbox_run(g->outbox, SLICE("t")), -1);
        rename_thread(g, "t", ids[1], &items[1], 1);
        assert_true(atomic_load(&g->troubles) > 0);
        assert_int_equal(items_left(g), 2);
        posting_reopen(g);
        FINE(outbox_reconcile(g->outbox, msg));
        posting_expect(g, "t", expected);
        assert_int_equal(items_left(g), 0);
        free(jsons[0]);
        free(jsons[1]);
    }
}

/* Without a restart it is tried again by itself, and outbox_run before that keeps the order. */
static void failures_are_tried_again(void **state)
{
    struct posting *g = *state;
    const struct outbox_item created[] = {CREATE("t"), APPEND("t", "created")};
    const struct outbox_item renamed[] = {APPEND("t", "renamed")};
    posting_fault(g, FAULT_DOWN, VERBS_ALL, -1);
    posting_add_record(g, SLICE("t"), created, 2);
    assert_int_equal(outbox_run(g->outbox, SLICE("t")), -1);
    assert_int_equal(outbox_waiting(g->outbox), 2);
    assert_true(posting_was_told(g, "thread t: cannot make its stream yet: "));
    AWAIT(outbox_oldest_ms(g->outbox) > 2 * OUTBOX_RETRY_MS_MIN); /* since the first failure */
    rename_thread(g, "t", "x", renamed, 1);
    assert_int_equal(outbox_run(g->outbox, SLICE("t")), -1);
    AWAIT(outbox_waiting(g->outbox) == 3); /* a round that was under way has seen two of them */
    posting_fault(g, FAULT_NONE, 0, 0);
    AWAIT(items_left(g) == 0);
    AWAIT(outbox_waiting(g->outbox) == 0);
    AWAIT(outbox_oldest_ms(g->outbox) == 0);
    posting_expect(g, "t", "created renamed");
}

/* Every call in turn fails; whatever it was, all comes out right. */
static void any_call_may_fail(void **state)
{
    struct posting *g = *state;
    static const enum fault faults[] = {FAULT_DOWN, FAULT_LOST, FAULT_BROKEN};
    unsigned number = 0;
    for (unsigned f = 0; f < ARRAY_COUNT(faults); f++) {
        bool met = true;
        for (unsigned nth = 0; met; nth++, number++) {
            char id[STORE_ID_BYTES];
            struct outbox_item items[] = {CREATE("?"), APPEND("?", "created"), APPEND("?", "more")};
            struct slice thread_id = numbered(id, "t", number);
            for (size_t i = 0; i < 3; i++) {
                items[i].thread_id = thread_id;
            }
            posting_add_record(g, thread_id, items, 3);
            atomic_store(&g->faulty->skip, nth);
            posting_fault(g, faults[f], VERBS_ALL, 1);
            (void)outbox_run(g->outbox, thread_id);
            met = atomic_load(&g->faulty->met) > 0;
            posting_fault(g, FAULT_NONE, 0, 0);
            assert_int_equal(outbox_run(g->outbox, thread_id), 0);
            posting_expect(g, id, "created more");
        }
        assert_true(met || number >= 5);
    }
    assert_int_equal(items_left(g), 0);
}

/* The records fail in turn, before the work and after it: what was done is done again, which
 * changes nothing. */
static void the_records_may_fail(void **state)
{
    struct posting *g = *state;
    bool failed = true;
    for (unsigned number = 0; failed; number++) {
        char id[STORE_ID_BYTES];
        struct outbox_item items[] = {CREATE("?"), APPEND("?", "created"), APPEND("?", "more")};
        struct slice thread_id = numbered(id, "t", number);
        for (size_t i = 0; i < 3; i++) {
            items[i].thread_id = thread_id;
        }
        posting_add_record(g, thread_id, items, 3);
        unsigned troubles = atomic_load(&g->troubles);
        atomic_store(&store_countdown, (int)number);
        failed = outbox_run(g->outbox, thread_id) != 0;
        atomic_store(&store_countdown, -1);
        assert_int_equal(atomic_load(&g->troubles) > troubles, failed);
        AWAIT(items_left(g) == 0);
        posting_expect(g, id, "created more");
        assert_true(number >= 2 || failed);
    }
}

/* A thread that was deleted: its last words, and then the stream goes; also when the process dies
 * before each step. */
static void the_last_words_of_a_thread(void **state)
{
    struct posting *g = *state;
    const struct outbox_item created[] = {CREATE("t"), APPEND("t", "created")};
    const struct outbox_item deleted[] = {APPEND("t", "deleted"), DROP("t")};
    posting_add_record(g, SLICE("t"), created, 2);
    assert_int_equal(outbox_run(g->outbox, SLICE("t")), 0);
    FINE(store_thread_delete(g->store, SLICE("t"), 5, deleted, 2, msg));
    posting_fault(g, FAULT_DOWN, VERB(DELETE), 1);
    tune(g->outbox, HOURS, HOURS);
    assert_int_equal(outbox_run(g->outbox, SLICE("t")), -1);
    posting_expect(g, "t", "created deleted");
    posting_reopen(g);
    FINE(outbox_reconcile(g->outbox, msg));
    expect_no_stream(g, "t");
    assert_int_equal(items_left(g), 0);
    /* A DROP that was done and is done again, after a crash in between, is no trouble. */
    const struct outbox_item again[] = {DROP("t")};
    unsigned troubles = atomic_load(&g->troubles);
    FINE(store_outbox_add(g->store, again, 1, msg));
    assert_int_equal(outbox_run(g->outbox, SLICE("t")), 0);
    assert_int_equal(atomic_load(&g->troubles), troubles);
    /* And words that come after the stream went are given up. */
    const struct outbox_item late[] = {APPEND("t", "late"), DROP("t")};
    FINE(store_outbox_add(g->store, late, 2, msg));
    assert_int_equal(outbox_run(g->outbox, SLICE("t")), 0);
    assert_true(posting_was_told(g, "thread t: cannot store an entry, now or later: "));
    assert_int_equal(items_left(g), 0);
    expect_no_stream(g, "t");
}

/* A thread that lives and has lost its stream gets a new one. */
static void a_lost_stream_is_made_anew(void **state)
{
    struct posting *g = *state;
    const struct outbox_item items[] = {APPEND("t", "first")};
    posting_add_record(g, SLICE("t"), items, 1);
    assert_int_equal(outbox_run(g->outbox, SLICE("t")), 0);
    assert_int_equal(atomic_load(&g->troubles), 1);
    posting_expect(g, "t", "first");
}

/* What can never be appended is told and taken out; what follows is done. */
static void the_hopeless_holds_up_nothing(void **state)
{
    struct posting *g = *state;
    char *long_text = malloc(2 * MIB);
    memset(long_text, 'x', 2 * MIB - 1);
    long_text[2 * MIB - 1] = '\0';
    char *json = entry_json(SLICE("long"), 1, long_text);
    const struct outbox_item items[] = {
        {.kind = OUTBOX_APPEND,
         .thread_id = SLICE("t"),
         .entry_id = SLICE("long"),
         .entry = slice_of(json)},
        {.kind = OUTBOX_APPEND,
         .thread_id = SLICE("t"),
         .entry_id = SLICE("none"),
         .entry = SLICE("{\"id\":1}")},
        APPEND("t", "good"),
    };
    posting_add_thread(g, "t");
    rename_thread(g, "t", "x", items, 3);
    assert_int_equal(outbox_run(g->outbox, SLICE("t")), 0);
    assert_int_equal(atomic_load(&g->troubles), 2);
    posting_expect(g, "t", "good");
    assert_int_equal(stream_client_close(g->client, "arbe-thread-t", NULL, NULL), STREAM_OK);
    const struct outbox_item late[] = {APPEND("t", "late"), DROP("t")};
    FINE(store_outbox_add(g->store, late, 2, msg));
    assert_int_equal(outbox_run(g->outbox, SLICE("t")), 0);
    assert_int_equal(items_left(g), 0);
    expect_no_stream(g, "t");
    free(json);
    free(long_text);
}

/* An array is stored as one, without the entries that are there, and an id in it once. */
static void arrays_are_stored_as_one(void **state)
{
    struct posting *g = *state;
    const struct outbox_item items[] = {
        APPEND("t", "b"),
        {.kind = OUTBOX_APPEND,
         .thread_id = SLICE("t"),
         .entry_id = SLICE("a"),
         .entry = SLICE("[" SIGNAL("a") "," SIGNAL("b") "," SIGNAL("c") "," SIGNAL("a") "]")},
    };
    posting_add_thread(g, "t");
    rename_thread(g, "t", "x", items, 2);
    assert_int_equal(outbox_run(g->outbox, SLICE("t")), 0);
    posting_expect(g, "t", "b a c");
    assert_int_equal(posting_calls(g, CALL_APPEND), 2);
}

/* --------------------------------------------------------------------------------- many at once */

struct changer {
    struct posting *g;
    pthread_t thread;
    unsigned number;
};

static void *change(void *context)
{
    struct changer *c = context;
    for (unsigned i = 0; i < 20; i++) {
        char text[STORE_ID_BYTES];
        struct slice id = numbered(text, "s", c->number * 100 + i);
        char *json = entry_json(id, 1, "x");
        const struct outbox_item item = {.kind = OUTBOX_APPEND,
                                         .thread_id = SLICE("t"),
                                         .entry_id = id,
                                         .entry = slice_of(json)};
        rename_thread(c->g, "t", text, &item, 1);
        while (outbox_run(c->g->outbox, SLICE("t")) != 0) {
        }
        free(json);
    }
    return NULL;
}

static int check_order(void *context, const struct entry *entry, size_t index)
{
    unsigned *next = context;
    unsigned number = 0;
    (void)index;
    assert_int_equal(sscanf(entry->id.ptr, "s-%u", &number), 1);
    assert_int_equal(number % 100, next[number / 100]);
    next[number / 100]++;
    return 0;
}

/* Several threads change one thread, answers get lost meanwhile: each signal is there once, those
 * of each changer in order, and all that were committed before a successful run. */
static void runs_at_once_keep_the_order(void **state)
{
    struct posting *g = *state;
    struct changer changers[8];
    unsigned next[8] = {0};
    posting_add_thread(g, "t");
    posting_fault(g, FAULT_LOST, VERB(APPEND), 20);
    for (unsigned i = 0; i < 8; i++) {
        changers[i] = (struct changer){.g = g, .number = i};
        assert_int_equal(pthread_create(&changers[i].thread, NULL, change, &changers[i]), 0);
    }
    for (unsigned i = 0; i < 8; i++) {
        (void)pthread_join(changers[i].thread, NULL);
    }
    assert_int_equal(items_left(g), 0);
    char *text = posting_read(g, "t");
    assert_int_equal(entry_each(slice_of(text), check_order, next), 0);
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(next[i], 20);
    }
    free(text);
}

/* A house goes, and with it a hundred threads: the background does it, across pages and although
 * streams are away at first. */
static void the_background_does_the_rest(void **state)
{
    struct posting *g = *state;
    for (unsigned i = 0; i < 100; i++) {
        char id[STORE_ID_BYTES];
        (void)numbered(id, "t", i);
        posting_add_thread(g, id);
    }
    posting_create_stream(g, SLICE("primary"));
    posting_fault(g, FAULT_DOWN, VERB(DELETE), -1);
    const struct outbox_item items[] = {APPEND("primary", "deleted")};
    FINE(store_house_delete(g->store, SLICE("h"), 9, items, 1, msg));
    assert_int_equal(items_left(g), 102);
    outbox_wake(g->outbox);
    AWAIT(atomic_load(&g->troubles) >= FAILURES_MAX);
    posting_fault(g, FAULT_NONE, 0, 0);
    AWAIT(items_left(g) == 0);
    expect_no_stream(g, "t-00000000");
    expect_no_stream(g, "t-00000099");
    expect_no_stream(g, "primary");
}

/* A reconciliation does not ask streams that are away once for each of a hundred threads. */
static void reconcile_does_not_insist(void **state)
{
    struct posting *g = *state;
    for (unsigned i = 0; i < 100; i++) {
        char id[STORE_ID_BYTES];
        struct outbox_item item = {.kind = OUTBOX_CREATE, .thread_id = numbered(id, "t", i)};
        posting_add_record(g, item.thread_id, &item, 1);
    }
    posting_fault(g, FAULT_DOWN, VERB(CREATE), -1);
    unsigned before = posting_calls(g, CALL_CREATE);
    FINE(outbox_reconcile(g->outbox, msg));
    assert_true(posting_calls(g, CALL_CREATE) - before < 50);
    posting_fault(g, FAULT_NONE, 0, 0);
    AWAIT(items_left(g) == 0);
}

/* When streams do not answer, one caller finds out; the others leave their items to the background,
 * which does them once there are answers again. */
static void callers_do_not_queue_for_silence(void **state)
{
    struct posting *g = *state;
    const struct outbox_item first[] = {CREATE("t")};
    const struct outbox_item second[] = {CREATE("u"), APPEND("u", "created")};
    tune(g->outbox, HOURS, 0); /* any failure is one of a time limit */
    posting_add_record(g, SLICE("t"), first, 1);
    posting_add_record(g, SLICE("u"), second, 2);
    posting_fault(g, FAULT_DOWN, VERBS_ALL, -1);
    assert_int_equal(outbox_run(g->outbox, SLICE("t")), -1);
    assert_true(are_away(g->outbox));
    tune(g->outbox, 1, 0);
    assert_int_equal(outbox_run(g->outbox, SLICE("u")), -1);
    assert_true(outbox_waiting(g->outbox) >= 2);
    posting_fault(g, FAULT_NONE, 0, 0);
    AWAIT(items_left(g) == 0);
    posting_expect(g, "u", "created");
    assert_int_equal(outbox_run(g->outbox, SLICE("u")), 0);
}

/* Signals are composed as entries are, whatever stands in their texts. */
static void signals_are_entries(void **state)
{
    struct thread_signal signal = {
        .thread_id = SLICE("t"),
        .entry_id = SLICE("e"),
        .author_id = SLICE("a"),
        .ts = 7,
        .type = "signal.thread.renamed",
        .members = SLICE("\"name\":\"x\""),
    };
    struct outbox_item item;
    struct arena arena;
    (void)state;
    arena_init(&arena, 4096);
    assert_true(outbox_signal(&signal, &arena, &item));
    assert_true(slice_equal(item.entry,
                            SLICE("{\"id\":\"e\",\"ts\":7,\"authorId\":\"a\",\"payload\":{\"type\":"
                                  "\"signal.thread.renamed\",\"name\":\"x\"}}")));
    assert_int_equal(item.kind, OUTBOX_APPEND);
    assert_true(slice_equal(item.entry_id, SLICE("e")));
    signal.members = SLICE("");
    signal.author_id = SLICE("");
    assert_true(outbox_signal(&signal, &arena, &item));
    assert_true(slice_equal(
        item.entry,
        SLICE("{\"id\":\"e\",\"ts\":7,\"payload\":{\"type\":\"signal.thread.renamed\"}}")));
    arena_finish(&arena);
    arena_init(&arena, 8);
    assert_false(outbox_signal(&signal, &arena, &item));
    arena_finish(&arena);
}

/* Without memory for a lane the background does it. */
static void no_memory(void **state)
{
    struct posting *g = *state;
    const struct outbox_item created[] = {CREATE("t"), APPEND("t", "created")};
    struct outbox_config config = g->outbox->config;
    struct outbox *o = NULL;
    posting_add_record(g, SLICE("t"), created, 2);
    fault_countdown = 0;
    assert_int_equal(outbox_create(&config, &o), ERR_NOMEM);
    (void)pthread_mutex_lock(&g->outbox->lock);
    assert_null(lane_for(g->outbox, SLICE("t")));
    fault_countdown = -1;
    (void)pthread_mutex_unlock(&g->outbox->lock);
    outbox_wake(g->outbox);
    AWAIT(items_left(g) == 0);
    posting_expect(g, "t", "created");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(changes_reach_the_stream),
        TEST(a_restart_reconciles),
        TEST(failures_are_tried_again),
        TEST(any_call_may_fail),
        TEST(the_records_may_fail),
        TEST(the_last_words_of_a_thread),
        TEST(a_lost_stream_is_made_anew),
        TEST(the_hopeless_holds_up_nothing),
        TEST(arrays_are_stored_as_one),
        TEST(runs_at_once_keep_the_order),
        TEST(the_background_does_the_rest),
        TEST(reconcile_does_not_insist),
        TEST(callers_do_not_queue_for_silence),
        cmocka_unit_test(signals_are_entries),
        TEST(no_memory),
    };
    return UNIT_RUN(tests);
}
