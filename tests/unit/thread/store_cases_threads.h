/* The part of the list that is about threads and what belongs to them. See store_rig.h. */
#ifndef ARBE_TESTS_UNIT_THREAD_STORE_CASES_THREADS_H
#define ARBE_TESTS_UNIT_THREAD_STORE_CASES_THREADS_H

#include <math.h>

#include "unit/thread/store_rig.h"

/* Everything of a thread comes back as it was put. */
static void keeps_threads(void **state)
{
    struct store_rig *rig = *state;
    struct thread_record got;
    struct slice patch;
    add_house(rig, 1);
    add_agent(rig, 2);
    struct slice tags[] = {SLICE("b"), SLICE("a"), SLICE("b")};
    struct thread_record thread = {.id = THREAD(1),
                                   .house_id = HOUSE(1),
                                   .parent_kind = PARENT_AGENT,
                                   .parent_id = AGENT(2),
                                   .name = SLICE("DM"),
                                   .pinned_ms = 77,
                                   .tags = tags,
                                   .tag_count = 3,
                                   .status = THREAD_IDLE,
                                   .environment_id = SLICE("env"),
                                   .created_by = AGENT(1),
                                   .created_ms = 3000};
    struct outbox_item item = {.kind = OUTBOX_CREATE, .thread_id = THREAD(1)};
    OK(store_thread_create(rig->store, &thread, SLICE("{\"a\":1}"), &item, 1, &rig->msg));
    rig_reopen(rig);
    OK(store_thread_get(rig->store, THREAD(1), &rig->arena, &got, &rig->msg));
    same(got.id, THREAD(1).ptr);
    same(got.house_id, HOUSE(1).ptr);
    assert_int_equal(got.parent_kind, PARENT_AGENT);
    same(got.parent_id, AGENT(2).ptr);
    same(got.name, "DM");
    assert_int_equal(got.pinned_ms, 77);
    assert_int_equal(got.tag_count, 2);
    same(got.tags[0], "a");
    same(got.tags[1], "b");
    assert_int_equal(got.status, THREAD_IDLE);
    same(got.environment_id, "env");
    same(got.created_by, AGENT(1).ptr);
    assert_int_equal(got.created_ms, 3000);
    assert_int_equal(got.last_entry_ts, 0);
    assert_int_equal(items_of(rig, THREAD(1)), 1);
    OK(store_config_get(rig->store, CONFIG_THREAD, THREAD(1), &rig->arena, &patch, &rig->msg));
    same(patch, "{\"a\":1}");
    thread = thread_of(rig, 2, 1);
    thread.parent_kind = PARENT_THREAD;
    thread.parent_id = THREAD(1);
    OK(store_thread_create(rig->store, &thread, NONE, NULL, 0, &rig->msg));
    OK(store_thread_get(rig->store, THREAD(2), &rig->arena, &got, &rig->msg));
    assert_int_equal(got.parent_kind, PARENT_THREAD);
    same(got.name, NULL);
    assert_int_equal(got.tag_count, 0);
    OK(store_config_get(rig->store, CONFIG_THREAD, THREAD(2), &rig->arena, &patch, &rig->msg));
    same(patch, NULL);
}

static void refuse_thread(struct store_rig *rig, int code, const struct thread_record *thread)
{
    struct outbox_item item = item_of(rig, 99);
    EXPECT(code, store_thread_create(rig->store, thread, NONE, &item, 1, &rig->msg));
}

/* What is wrong with a new thread leaves nothing behind. */
static void refuses_threads(void **state)
{
    struct store_rig *rig = *state;
    struct slice tags[STORE_TAGS_MAX + 1];
    struct thread_record thread = thread_of(rig, 1, 1);
    refuse_thread(rig, ERR_NOTFOUND, &thread);
    add_house(rig, 1);
    add_house(rig, 2);
    add_thread(rig, 1, 1);
    refuse_thread(rig, ERR_EXISTS, &thread);
    thread = thread_of(rig, 2, 1);
    thread.parent_id = HOUSE(2);
    refuse_thread(rig, ERR_NOTFOUND, &thread);
    SAYS("parent");
    thread.parent_kind = PARENT_THREAD;
    thread.parent_id = PRIMARY(2);
    refuse_thread(rig, ERR_NOTFOUND, &thread);
    thread.parent_kind = PARENT_AGENT;
    thread.parent_id = AGENT(9);
    refuse_thread(rig, ERR_NOTFOUND, &thread);
    thread = thread_of(rig, 2, 1);
    thread.created_by = AGENT(9);
    refuse_thread(rig, ERR_NOTFOUND, &thread);
    thread = thread_of(rig, 2, 1);
    for (size_t i = 0; i <= STORE_TAGS_MAX; i++) {
        tags[i] = ENTRY((unsigned)i);
    }
    thread.tags = tags;
    thread.tag_count = STORE_TAGS_MAX + 1;
    refuse_thread(rig, ERR_INVALID, &thread);
    SAYS("32 tags");
    OK(store_thread_delete(rig->store, THREAD(1), 5, NULL, 0, &rig->msg));
    thread = thread_of(rig, 3, 1);
    thread.parent_kind = PARENT_THREAD;
    thread.parent_id = THREAD(1);
    refuse_thread(rig, ERR_NOTFOUND, &thread);
    thread = thread_of(rig, 1, 1);
    refuse_thread(rig, ERR_EXISTS, &thread);
    EXPECT(ERR_NOTFOUND, store_thread_get(rig->store, THREAD(2), &rig->arena, &thread, &rig->msg));
    assert_int_equal(items_of(rig, THREAD(99)), 0);
}

/* Access is membership of the house, found by one question. */
static void answers_access(void **state)
{
    struct store_rig *rig = *state;
    struct thread_access access;
    add_house(rig, 1);
    add_agent(rig, 2);
    add_agent(rig, 3);
    add_member(rig, 1, 2, ROLE_MEMBER);
    add_thread(rig, 1, 1);
    const enum member_role roles[] = {ROLE_OWNER, ROLE_MEMBER, ROLE_NONE, ROLE_NONE};
    for (unsigned i = 0; i < ARRAY_COUNT(roles); i++) {
        OK(store_thread_access(rig->store, THREAD(1), AGENT(i + 1), &access, &rig->msg));
        assert_int_equal(access.role, roles[i]);
        assert_string_equal(access.house_id, HOUSE(1).ptr);
        assert_string_equal(access.primary_thread_id, PRIMARY(1).ptr);
        assert_int_equal(access.status, THREAD_OPEN);
    }
    EXPECT(ERR_NOTFOUND, store_thread_access(rig->store, THREAD(9), AGENT(1), &access, &rig->msg));
    OK(store_thread_delete(rig->store, THREAD(1), 1, NULL, 0, &rig->msg));
    EXPECT(ERR_NOTFOUND, store_thread_access(rig->store, THREAD(1), AGENT(1), &access, &rig->msg));
}

/* Fields change one by one, and all or none. */
static void changes_threads(void **state)
{
    struct store_rig *rig = *state;
    struct thread_record got;
    struct slice tags[] = {SLICE("x"), SLICE("y")};
    add_house(rig, 1);
    add_thread(rig, 1, 1);
    struct outbox_item item = item_of(rig, 1);
    struct thread_change change = {.set_name = true,
                                   .name = SLICE("n"),
                                   .set_pinned = true,
                                   .pinned_ms = 5,
                                   .set_tags = true,
                                   .tags = tags,
                                   .tag_count = 2,
                                   .set_environment = true,
                                   .environment_id = SLICE("e"),
                                   .set_status = true,
                                   .status_from = THREAD_OPEN,
                                   .status = THREAD_RUNNING};
    OK(store_thread_update(rig->store, THREAD(1), &change, &item, 1, &rig->arena, &got, &rig->msg));
    same(got.name, "n");
    assert_int_equal(got.tag_count, 2);
    assert_int_equal(got.status, THREAD_RUNNING);
    assert_int_equal(items_of(rig, THREAD(1)), 1);
    change.name = SLICE("other");
    change.tag_count = 1;
    EXPECT(ERR_CONFLICT, store_thread_update(rig->store, THREAD(1), &change, &item, 1, &rig->arena,
                                             &got, &rig->msg));
    SAYS("not open any more");
    change = (struct thread_change){.set_pinned = true, .pinned_ms = 9};
    OK(store_thread_update(rig->store, THREAD(1), &change, NULL, 0, &rig->arena, &got, &rig->msg));
    same(got.name, "n");
    assert_int_equal(got.tag_count, 2);
    assert_int_equal(got.pinned_ms, 5);
    assert_int_equal(items_of(rig, THREAD(1)), 1);
    change = (struct thread_change){
        .set_pinned = true, .set_name = true, .set_tags = true, .set_environment = true};
    OK(store_thread_update(rig->store, THREAD(1), &change, NULL, 0, &rig->arena, &got, &rig->msg));
    same(got.name, NULL);
    same(got.environment_id, NULL);
    assert_int_equal(got.pinned_ms, 0);
    assert_int_equal(got.tag_count, 0);
    change = (struct thread_change){.set_tags = true, .tags = tags, .tag_count = 33};
    EXPECT(ERR_INVALID, store_thread_update(rig->store, THREAD(1), &change, NULL, 0, &rig->arena,
                                            &got, &rig->msg));
    EXPECT(ERR_NOTFOUND, store_thread_update(rig->store, THREAD(2), &change, NULL, 0, &rig->arena,
                                             &got, &rig->msg));
}

/* A status moves from what it was thought to be, or not at all. */
static void moves_status(void **state)
{
    struct store_rig *rig = *state;
    struct thread_access access;
    add_house(rig, 1);
    add_thread(rig, 1, 1);
    struct outbox_item item = item_of(rig, 1);
    for (int status = 0; status + 1 < THREAD_STATUS_COUNT; status++) {
        OK(store_thread_status_move(rig->store, THREAD(1), (enum thread_status)status,
                                    (enum thread_status)(status + 1), &item, 1, &rig->msg));
        EXPECT(ERR_CONFLICT,
               store_thread_status_move(rig->store, THREAD(1), (enum thread_status)status,
                                        THREAD_OPEN, &item, 1, &rig->msg));
        OK(store_thread_access(rig->store, THREAD(1), AGENT(1), &access, &rig->msg));
        assert_int_equal(access.status, status + 1);
    }
    assert_int_equal(items_of(rig, THREAD(1)), THREAD_STATUS_COUNT - 1);
    EXPECT(ERR_NOTFOUND, store_thread_status_move(rig->store, THREAD(2), THREAD_OPEN, THREAD_IDLE,
                                                  &item, 1, &rig->msg));
}

/* A deleted thread is gone for everybody; the primary one goes with its house only. What is left of
 * it is swept away in pieces. */
static void deletes_threads(void **state)
{
    struct store_rig *rig = *state;
    struct slice at = {0};
    struct index_row rows[1500];
    bool more = true;
    struct slice tags[] = {SLICE("x")};
    add_house(rig, 1);
    struct thread_record thread = thread_of(rig, 1, 1);
    thread.tags = tags;
    thread.tag_count = 1;
    OK(store_thread_create(rig->store, &thread, SLICE("{}"), NULL, 0, &rig->msg));
    for (unsigned i = 0; i < ARRAY_COUNT(rows); i++) {
        rows[i] = (struct index_row){.entry_id = ENTRY(i), .at_offset = SLICE("5")};
    }
    OK(store_index_put(rig->store, THREAD(1), SLICE("9"), rows, ARRAY_COUNT(rows), &rig->msg));
    OK(store_director_put(rig->store, THREAD(1), SLICE("4"), 5, &rig->msg));
    struct outbox_item item = {.kind = OUTBOX_DROP, .thread_id = THREAD(1)};
    EXPECT(ERR_CONFLICT, store_thread_delete(rig->store, PRIMARY(1), 5, &item, 1, &rig->msg));
    SAYS("primary");
    OK(store_thread_delete(rig->store, THREAD(1), 5, &item, 1, &rig->msg));
    assert_int_equal(items_of(rig, THREAD(1)), 1);
    EXPECT(ERR_NOTFOUND, store_thread_delete(rig->store, THREAD(1), 5, &item, 1, &rig->msg));
    EXPECT(ERR_NOTFOUND, store_index_put(rig->store, THREAD(1), SLICE("9"), NULL, 0, &rig->msg));
    EXPECT(ERR_NOTFOUND, store_director_put(rig->store, THREAD(1), SLICE("4"), 5, &rig->msg));
    for (int i = 0; i < 3; i++) {
        assert_true(more);
        OK(store_sweep(rig->store, 0, &more, &rig->msg));
    }
    assert_false(more);
    EXPECT(ERR_NOTFOUND,
           store_index_find(rig->store, THREAD(1), ENTRY(1), &rig->arena, &at, &rig->msg));
    OK(store_index_get(rig->store, THREAD(1), &rig->arena, &at, &rig->msg));
    same(at, NULL);
    OK(store_verify(rig->store, &rig->msg));
}

/* Lists and their filters. The numbers of threads, newest first; 0 ends. */
static void listed(struct store_rig *rig, const struct thread_query *query, const unsigned *wanted)
{
    struct thread_list list;
    struct store_page page = {.limit = 2};
    do {
        OK(store_thread_list(rig->store, query, &page, &rig->arena, &list, &rig->msg));
        for (size_t i = 0; i < list.count; i++) {
            assert_int_not_equal(*wanted, 0);
            same(list.items[i].id, THREAD(*wanted++).ptr);
        }
        page.after = list.next;
    } while (list.next.ptr);
    assert_int_equal(*wanted, 0);
}

#define LISTED(query, ...) listed(rig, query, (const unsigned[]){__VA_ARGS__})

static void bump(struct store_rig *rig, unsigned thread, int64_t ts, const char *offset)
{
    struct recency_row row = {.thread_id = THREAD(thread), .ts = ts, .offset = slice_of(offset)};
    OK(store_recency_write(rig->store, &row, 1, &rig->msg));
}

/* Six threads: 1 to 6 by age; 2, 4, 6 are tagged "even", 3 and 6 pinned, 5 and 6 running, 4 and 6
 * below 1. */
static void add_six(struct store_rig *rig)
{
    struct slice tags[] = {SLICE("even"), SLICE("z")};
    add_house(rig, 1);
    add_house(rig, 2);
    add_thread(rig, 50, 2);
    for (unsigned i = 1; i <= 6; i++) {
        struct thread_record thread = thread_of(rig, i, 1);
        thread.tags = tags;
        thread.tag_count = i % 2 ? 0 : 2;
        thread.pinned_ms = i % 3 ? 0 : 9;
        thread.status = i >= 5 ? THREAD_RUNNING : THREAD_OPEN;
        if (i == 4 || i == 6) {
            thread.parent_kind = PARENT_THREAD;
            thread.parent_id = THREAD(1);
        }
        OK(store_thread_create(rig->store, &thread, NONE, NULL, 0, &rig->msg));
    }
    OK(store_thread_create(
        rig->store,
        &(struct thread_record){
            .id = THREAD(7), .house_id = HOUSE(1), .parent_id = HOUSE(1), .created_ms = 999999},
        NONE, NULL, 0, &rig->msg));
    OK(store_thread_delete(rig->store, THREAD(7), 1, NULL, 0, &rig->msg));
}

/* Newest activity first, by every filter and all of them together. */
static void lists_threads(void **state)
{
    struct store_rig *rig = *state;
    add_six(rig);
    struct thread_query query = {.house_id = HOUSE(1)};
    LISTED(&query, 6, 5, 4, 3, 2, 1, 10000001, 0);
    query.tag = SLICE("even");
    LISTED(&query, 6, 4, 2, 0);
    bump(rig, 2, 200000, "1");
    bump(rig, 4, 300000, "1");
    LISTED(&query, 4, 2, 6, 0);
    query.parent_id = THREAD(1);
    LISTED(&query, 4, 6, 0);
    query.with_status = true;
    query.status = THREAD_RUNNING;
    LISTED(&query, 6, 0);
    query.pinned = true;
    LISTED(&query, 6, 0);
    query.tag = SLICE("odd");
    LISTED(&query, 0);
    query = (struct thread_query){.house_id = HOUSE(1), .pinned = true};
    LISTED(&query, 6, 3, 0);
    query.with_status = true;
    query.status = THREAD_OPEN;
    LISTED(&query, 3, 0);
    query.pinned = false;
    LISTED(&query, 4, 2, 3, 1, 10000001, 0);
    query.parent_id = HOUSE(1);
    LISTED(&query, 2, 3, 1, 10000001, 0);
    query = (struct thread_query){.house_id = HOUSE(3)};
    LISTED(&query, 0);
}

/* Of threads with the same time the page is still well defined; a thread that moves up in between
 * is neither twice nor makes others be left out. */
static void pages_threads(void **state)
{
    struct store_rig *rig = *state;
    struct thread_list list;
    struct store_page page = {.limit = 2};
    add_house(rig, 1);
    for (unsigned i = 1; i <= 6; i++) {
        struct thread_record thread = thread_of(rig, i, 1);
        thread.created_ms = 5000;
        OK(store_thread_create(rig->store, &thread, NONE, NULL, 0, &rig->msg));
    }
    struct thread_query query = {.house_id = HOUSE(1)};
    OK(store_thread_list(rig->store, &query, &page, &rig->arena, &list, &rig->msg));
    same(list.items[1].id, THREAD(5).ptr);
    bump(rig, 1, 6000, "1");
    page.after = list.next;
    OK(store_thread_list(rig->store, &query, &page, &rig->arena, &list, &rig->msg));
    same(list.items[0].id, THREAD(4).ptr);
    same(list.items[1].id, THREAD(3).ptr);
    page.after = list.next;
    page.limit = 3;
    OK(store_thread_list(rig->store, &query, &page, &rig->arena, &list, &rig->msg));
    assert_int_equal(list.count, 2);
    same(list.items[0].id, THREAD(2).ptr);
    assert_null(list.next.ptr);
    const char *bad[] = {"x", "5", "5.", ".5", "-1.a", "99999999999999999999.a", "5;a"};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        page.after = slice_of(bad[i]);
        EXPECT(ERR_INVALID,
               store_thread_list(rig->store, &query, &page, &rig->arena, &list, &rig->msg));
    }
}

static int see_recency(void *context, const struct recency_row *row)
{
    struct store_rig *rig = context;
    if (slice_equal(row->thread_id, THREAD(1))) {
        assert_int_equal(row->ts, 30);
        same(row->offset, "b");
    } else {
        assert_int_equal(row->ts, 0);
        same(row->offset, NULL);
    }
    return 0;
}

static int stop_recency(void *context, const struct recency_row *row)
{
    (void)row;
    return ++*(int *)context == 2 ? ERR_STOPPING : 0;
}

/* Time and offset go forward only, each for itself. */
static void moves_recency(void **state)
{
    struct store_rig *rig = *state;
    struct thread_record got;
    int calls = 0;
    add_house(rig, 1);
    add_thread(rig, 1, 1);
    add_thread(rig, 2, 1);
    bump(rig, 1, 20, "a");
    bump(rig, 1, 10, "b");
    OK(store_thread_get(rig->store, THREAD(1), &rig->arena, &got, &rig->msg));
    assert_int_equal(got.last_entry_ts, 20);
    struct recency_row rows[] = {
        {.thread_id = THREAD(1), .ts = 30, .offset = SLICE("a")},
        {.thread_id = THREAD(99), .ts = 30, .offset = SLICE("a")},
    };
    OK(store_recency_write(rig->store, rows, 2, &rig->msg));
    OK(store_thread_delete(rig->store, THREAD(2), 1, NULL, 0, &rig->msg));
    OK(store_recency_each(rig->store, see_recency, rig, &rig->msg));
    add_thread(rig, 3, 1);
    assert_int_equal(store_recency_each(rig->store, stop_recency, &calls, &rig->msg), ERR_STOPPING);
    assert_int_equal(calls, 2);
    OK(store_verify(rig->store, &rig->msg));
}

/* A patch is put in the place of the one it was made from. */
static void keeps_configs(void **state)
{
    struct store_rig *rig = *state;
    struct slice patch = {0};
    add_house(rig, 1);
    for (int scope = CONFIG_HOUSE; scope <= CONFIG_THREAD; scope++) {
        enum config_scope kind = (enum config_scope)scope;
        struct slice id = kind == CONFIG_HOUSE ? HOUSE(1) : PRIMARY(1);
        struct slice wrong = kind == CONFIG_HOUSE ? PRIMARY(1) : HOUSE(1);
        OK(store_config_put(rig->store, kind, id, NONE, SLICE("{1}"), 5, &rig->msg));
        EXPECT(ERR_AGAIN, store_config_put(rig->store, kind, id, NONE, SLICE("{2}"), 5, &rig->msg));
        EXPECT(ERR_AGAIN,
               store_config_put(rig->store, kind, id, SLICE("{9}"), SLICE("{2}"), 5, &rig->msg));
        OK(store_config_put(rig->store, kind, id, SLICE("{1}"), SLICE("{2}"), 5, &rig->msg));
        OK(store_config_get(rig->store, kind, id, &rig->arena, &patch, &rig->msg));
        same(patch, "{2}");
        OK(store_config_delete(rig->store, kind, id, &rig->msg));
        OK(store_config_delete(rig->store, kind, id, &rig->msg));
        OK(store_config_get(rig->store, kind, id, &rig->arena, &patch, &rig->msg));
        same(patch, NULL);
        EXPECT(ERR_AGAIN,
               store_config_put(rig->store, kind, id, SLICE("{2}"), SLICE("{3}"), 5, &rig->msg));
        EXPECT(ERR_NOTFOUND,
               store_config_get(rig->store, kind, wrong, &rig->arena, &patch, &rig->msg));
        EXPECT(ERR_NOTFOUND,
               store_config_put(rig->store, kind, wrong, NONE, SLICE("{}"), 5, &rig->msg));
        EXPECT(ERR_NOTFOUND, store_config_delete(rig->store, kind, wrong, &rig->msg));
    }
}

/* The index has each id once, the first. */
static void keeps_index(void **state)
{
    struct store_rig *rig = *state;
    struct slice at = {0};
    add_house(rig, 1);
    add_thread(rig, 1, 1);
    add_thread(rig, 2, 1);
    OK(store_index_get(rig->store, THREAD(1), &rig->arena, &at, &rig->msg));
    same(at, NULL);
    struct index_row rows[] = {
        {.entry_id = SLICE("a"), .at_offset = SLICE("01")},
        {.entry_id = SLICE("A"), .at_offset = SLICE("02")},
        {.entry_id = SLICE("a"), .at_offset = SLICE("03")},
    };
    OK(store_index_put(rig->store, THREAD(1), SLICE("04"), rows, 3, &rig->msg));
    rows[0].at_offset = SLICE("05");
    OK(store_index_put(rig->store, THREAD(1), SLICE("06"), rows, 1, &rig->msg));
    rig_reopen(rig);
    OK(store_index_get(rig->store, THREAD(1), &rig->arena, &at, &rig->msg));
    same(at, "06");
    OK(store_index_find(rig->store, THREAD(1), SLICE("a"), &rig->arena, &at, &rig->msg));
    same(at, "01");
    OK(store_index_find(rig->store, THREAD(1), SLICE("A"), &rig->arena, &at, &rig->msg));
    same(at, "02");
    EXPECT(ERR_NOTFOUND,
           store_index_find(rig->store, THREAD(2), SLICE("a"), &rig->arena, &at, &rig->msg));
    EXPECT(ERR_NOTFOUND, store_index_put(rig->store, THREAD(9), SLICE("1"), rows, 1, &rig->msg));
}

/* How far the director has read. */
static void keeps_director(void **state)
{
    struct store_rig *rig = *state;
    struct slice at = {0};
    add_house(rig, 1);
    OK(store_director_get(rig->store, PRIMARY(1), &rig->arena, &at, &rig->msg));
    same(at, NULL);
    OK(store_director_put(rig->store, PRIMARY(1), SLICE("7"), 1, &rig->msg));
    OK(store_director_put(rig->store, PRIMARY(1), SLICE("5"), 2, &rig->msg));
    OK(store_director_get(rig->store, PRIMARY(1), &rig->arena, &at, &rig->msg));
    same(at, "5");
    EXPECT(ERR_NOTFOUND, store_director_put(rig->store, THREAD(9), SLICE("5"), 2, &rig->msg));
}

/* Items come back in order until they are done; a number is never used again. */
static void keeps_outbox(void **state)
{
    struct store_rig *rig = *state;
    struct outbox_list list;
    struct outbox_item items[] = {
        {.kind = OUTBOX_CREATE, .thread_id = THREAD(1)},
        item_of(rig, 2),
        {.kind = OUTBOX_DROP, .thread_id = THREAD(1)},
    };
    OK(store_outbox_add(rig->store, items, 3, &rig->msg));
    rig_reopen(rig);
    OK(store_outbox_list(rig->store, 0, 10, &rig->arena, &list, &rig->msg));
    assert_int_equal(list.count, 3);
    assert_int_equal(list.items[0].kind, OUTBOX_CREATE);
    same(list.items[0].entry, NULL);
    assert_int_equal(list.items[1].kind, OUTBOX_APPEND);
    same(list.items[1].thread_id, THREAD(2).ptr);
    same(list.items[1].entry_id, ENTRY(2).ptr);
    same(list.items[1].entry, "{\"id\":1}");
    assert_int_equal(list.items[2].kind, OUTBOX_DROP);
    uint64_t seqs[] = {list.items[0].seq, list.items[1].seq, list.items[2].seq};
    assert_true(seqs[0] > 0 && seqs[0] < seqs[1] && seqs[1] < seqs[2]);
    OK(store_outbox_list(rig->store, seqs[0], 1, &rig->arena, &list, &rig->msg));
    assert_int_equal(list.count, 1);
    assert_int_equal(list.items[0].seq, seqs[1]);
    OK(store_outbox_list_thread(rig->store, THREAD(1), seqs[0], 9, &rig->arena, &list, &rig->msg));
    assert_int_equal(list.count, 1);
    assert_int_equal(list.items[0].seq, seqs[2]);
    OK(store_outbox_done(rig->store, seqs, 3, &rig->msg));
    OK(store_outbox_done(rig->store, seqs, 3, &rig->msg));
    rig_reopen(rig);
    OK(store_outbox_add(rig->store, items, 1, &rig->msg));
    OK(store_outbox_list(rig->store, 0, 10, &rig->arena, &list, &rig->msg));
    assert_int_equal(list.count, 1);
    assert_true(list.items[0].seq > seqs[2]);
}

static struct usage_record spend(struct store_rig *rig, unsigned entry, unsigned agent,
                                 const char *model)
{
    return (struct usage_record){.house_id = HOUSE(1),
                                 .agent_id = AGENT(agent),
                                 .thread_id = THREAD(1),
                                 .entry_id = ENTRY(entry),
                                 .capability = SLICE("llm"),
                                 .seam = SLICE("reply"),
                                 .model = model ? slice_of(model) : NONE,
                                 .input_tokens = 1,
                                 .output_tokens = 10,
                                 .cache_read_tokens = 100,
                                 .cache_write_tokens = 1000,
                                 .cost_usd = 0.1,
                                 .created_ms = 5};
}

/* What was spent is counted once, and sums are exact. */
static void sums_usage(void **state)
{
    struct store_rig *rig = *state;
    struct usage_sum sum;
    size_t added = 9;
    struct usage_record events[40];
    for (unsigned i = 0; i < 30; i++) {
        events[i] = spend(rig, i, i % 3, i % 3 ? "m" : NULL);
    }
    for (unsigned i = 30; i < 40; i++) {
        events[i] = spend(rig, i, i, "other");
        events[i].thread_id = i < 35 ? THREAD(2) : NONE;
        events[i].agent_id = NONE;
    }
    OK(store_usage_add(rig->store, events, 40, &added, &rig->msg));
    assert_int_equal(added, 40);
    OK(store_usage_add(rig->store, events, 35, &added, &rig->msg));
    assert_int_equal(added, 0);
    rig_reopen(rig);
    OK(store_usage_thread(rig->store, THREAD(1), &rig->arena, &sum, &rig->msg));
    assert_int_equal(sum.total.events, 30);
    assert_int_equal(sum.total.input_tokens, 30);
    assert_int_equal(sum.total.output_tokens, 300);
    assert_int_equal(sum.total.cache_read_tokens, 3000);
    assert_int_equal(sum.total.cache_write_tokens, 30000);
    assert_true(sum.total.cost_usd == 3.0);
    assert_int_equal(sum.agent_count, 3);
    same(sum.by_agent[0].id, AGENT(0).ptr);
    assert_true(sum.by_agent[0].cost_usd == 1.0);
    assert_int_equal(sum.model_count, 2);
    same(sum.by_model[0].id, "m");
    assert_int_equal(sum.by_model[0].events, 20);
    same(sum.by_model[1].id, NULL);
    OK(store_usage_house(rig->store, HOUSE(1), &rig->arena, &sum, &rig->msg));
    assert_true(sum.total.cost_usd == 4.0);
    assert_int_equal(sum.model_count, 3);
    OK(store_usage_house(rig->store, HOUSE(2), &rig->arena, &sum, &rig->msg));
    assert_int_equal(sum.total.events, 0);
    assert_int_equal(sum.agent_count, 0);
}

/* Many groups, and events without an entry, which are all counted. */
static void sums_many(void **state)
{
    struct store_rig *rig = *state;
    struct usage_sum sum;
    size_t added = 0;
    for (unsigned i = 0; i < 50; i++) {
        struct usage_record event = spend(rig, 0, i, "m");
        event.entry_id = NONE;
        event.cost_usd = i;
        OK(store_usage_add(rig->store, &event, 1, &added, &rig->msg));
        assert_int_equal(added, 1);
    }
    OK(store_usage_thread(rig->store, THREAD(1), &rig->arena, &sum, &rig->msg));
    assert_int_equal(sum.agent_count, 50);
    for (unsigned i = 0; i < 50; i++) {
        same(sum.by_agent[i].id, AGENT(49 - i).ptr);
    }
}

/* Numbers that cannot be spend are refused, with all that came with them. */
static void refuses_usage(void **state)
{
    struct store_rig *rig = *state;
    struct usage_sum sum;
    size_t added = 7;
    struct usage_record events[2] = {spend(rig, 1, 1, "m"), spend(rig, 2, 1, "m")};
    const double costs[] = {-0.1, 1e7, (double)NAN, (double)INFINITY};
    for (size_t i = 0; i < ARRAY_COUNT(costs); i++) {
        events[1].cost_usd = costs[i];
        EXPECT(ERR_INVALID, store_usage_add(rig->store, events, 2, &added, &rig->msg));
    }
    events[1].cost_usd = 1;
    events[1].output_tokens = -1;
    EXPECT(ERR_INVALID, store_usage_add(rig->store, events, 2, &added, &rig->msg));
    events[1].output_tokens = STORE_TOKENS_MAX + 1;
    EXPECT(ERR_INVALID, store_usage_add(rig->store, events, 2, &added, &rig->msg));
    assert_int_equal(added, 7);
    OK(store_usage_thread(rig->store, THREAD(1), &rig->arena, &sum, &rig->msg));
    assert_int_equal(sum.total.events, 0);
}

/* An arena that is full is an error, of which nothing is left. */
static void runs_out_of_arena(void **state)
{
    struct store_rig *rig = *state;
    struct arena small;
    struct thread_record thread = {0};
    struct agent_record agent = {0};
    struct thread_list list = {0};
    struct thread_change change = {.set_name = true, .name = SLICE("changed")};
    add_house(rig, 1);
    const char *name = "general";
    for (size_t bytes = 0; strcmp(name, "general") == 0; bytes += 16) {
        assert_true(bytes < 4096);
        arena_init(&small, bytes);
        int code = store_thread_update(rig->store, PRIMARY(1), &change, NULL, 0, &small, &thread,
                                       &rig->msg);
        assert_true(code == 0 || (code == ERR_NOMEM && !thread.id.ptr));
        arena_finish(&small);
        OK(store_thread_get(rig->store, PRIMARY(1), &rig->arena, &thread, &rig->msg));
        name = code ? "general" : "changed";
        same(thread.name, name);
        thread = (struct thread_record){0};
    }
    struct thread_query query = {.house_id = HOUSE(1)};
    arena_init(&small, 40);
    EXPECT(ERR_NOMEM, store_agent_get(rig->store, AGENT(1), &small, &agent, &rig->msg));
    EXPECT(ERR_NOMEM, store_thread_list(rig->store, &query, &first_page, &small, &list, &rig->msg));
    arena_finish(&small);
    assert_null(agent.id.ptr);
    assert_null(list.items);
}

#endif
