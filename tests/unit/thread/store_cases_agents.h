/* The part of the list that is about agents, keys and sessions. See store_rig.h. */
#ifndef ARBE_TESTS_UNIT_THREAD_STORE_CASES_AGENTS_H
#define ARBE_TESTS_UNIT_THREAD_STORE_CASES_AGENTS_H

#include "unit/thread/store_rig.h"

/* Everything of an agent comes back as it was put, over a restart too. */
static void keeps_agents(void **state)
{
    struct store_rig *rig = *state;
    bool any = true;
    struct agent_record got;
    OK(store_agent_any(rig->store, &any, &rig->msg));
    assert_false(any);
    add_agent(rig, 1);
    struct agent_record bot = {
        .id = AGENT(2),
        .kind = AGENT_BOT,
        .name = SLICE("Archive Bot"),
        .handle = SLICE("archive-bot"),
        .description = SLICE(""),
        .model = SLICE("a/b/c"),
        .system_prompt = SLICE("say \"'; DROP TABLE agents;\n\xf0\x9f\x90\x9d"),
        .created_by = AGENT(1),
        .created_ms = 1234567890123};
    OK(store_agent_create(rig->store, &bot, NULL, &rig->msg));
    rig_reopen(rig);
    OK(store_agent_any(rig->store, &any, &rig->msg));
    assert_true(any);
    OK(store_agent_get(rig->store, AGENT(2), &rig->arena, &got, &rig->msg));
    same(got.id, AGENT(2).ptr);
    assert_int_equal(got.kind, AGENT_BOT);
    same(got.name, "Archive Bot");
    same(got.handle, "archive-bot");
    same(got.description, "");
    same(got.model, "a/b/c");
    same(got.system_prompt, bot.system_prompt.ptr);
    same(got.created_by, AGENT(1).ptr);
    assert_int_equal(got.created_ms, 1234567890123);
    assert_int_equal(got.deleted_ms, 0);
    OK(store_agent_get(rig->store, AGENT(1), &rig->arena, &got, &rig->msg));
    assert_int_equal(got.kind, AGENT_HUMAN);
    same(got.description, NULL);
    same(got.created_by, NULL);
}

/* What is wrong with a new agent leaves nothing behind. */
static void refuses_agents(void **state)
{
    struct store_rig *rig = *state;
    struct agent_record got;
    add_agent(rig, 1);
    struct agent_record again = agent_of(rig, 1);
    EXPECT(ERR_EXISTS, store_agent_create(rig->store, &again, NULL, &rig->msg));
    struct agent_record orphan = agent_of(rig, 2);
    orphan.created_by = AGENT(9);
    EXPECT(ERR_NOTFOUND, store_agent_create(rig->store, &orphan, NULL, &rig->msg));
    struct agent_record agent = agent_of(rig, 3);
    struct key_record key = key_of(rig, 1, 0);
    OK(store_agent_create(rig->store, &agent, &key, &rig->msg));
    agent = agent_of(rig, 4);
    key.id = KEY(2);
    EXPECT(ERR_EXISTS, store_agent_create(rig->store, &agent, &key, &rig->msg));
    EXPECT(ERR_NOTFOUND, store_agent_get(rig->store, AGENT(4), &rig->arena, &got, &rig->msg));
    EXPECT(ERR_NOTFOUND, store_agent_get(rig->store, AGENT(2), &rig->arena, &got, &rig->msg));
}

/* Fields change one by one; absent clears. */
static void changes_agents(void **state)
{
    struct store_rig *rig = *state;
    struct agent_record got;
    add_agent(rig, 1);
    struct agent_change change = {.set_model = true,
                                  .model = SLICE("m"),
                                  .set_name = true,
                                  .name = SLICE("New"),
                                  .handle = SLICE("new"),
                                  .set_system_prompt = true,
                                  .system_prompt = SLICE("p"),
                                  .set_description = true,
                                  .description = SLICE("d")};
    OK(store_agent_update(rig->store, AGENT(1), &change, &rig->arena, &got, &rig->msg));
    same(got.name, "New");
    same(got.handle, "new");
    change = (struct agent_change){.set_model = true};
    OK(store_agent_update(rig->store, AGENT(1), &change, &rig->arena, &got, &rig->msg));
    same(got.model, NULL);
    same(got.description, "d");
    same(got.system_prompt, "p");
    same(got.name, "New");
    change = (struct agent_change){0};
    OK(store_agent_update(rig->store, AGENT(1), &change, &rig->arena, &got, &rig->msg));
    same(got.description, "d");
    EXPECT(ERR_NOTFOUND,
           store_agent_update(rig->store, AGENT(2), &change, &rig->arena, &got, &rig->msg));
    OK(store_agent_delete(rig->store, AGENT(1), 9, NULL, 0, &rig->msg));
    EXPECT(ERR_NOTFOUND,
           store_agent_update(rig->store, AGENT(1), &change, &rig->arena, &got, &rig->msg));
}

/* A deleted agent keeps its name; its keys, sessions and memberships are over. */
static void deletes_agents(void **state)
{
    struct store_rig *rig = *state;
    struct agent_record got;
    struct caller_record caller;
    struct key_record key = key_of(rig, 1, 2);
    add_house(rig, 1);
    add_agent(rig, 2);
    add_member(rig, 1, 2, ROLE_OWNER);
    OK(store_key_create(rig->store, &key, &rig->msg));
    struct session_record session = {
        .hash = HASH(77), .agent_id = AGENT(2), .key_id = KEY(1), .expires_ms = 1000};
    OK(store_session_create(rig->store, &session, &rig->msg));
    struct outbox_item item = item_of(rig, 10000001);
    OK(store_agent_delete(rig->store, AGENT(2), 4711, &item, 1, &rig->msg));
    assert_int_equal(items_of(rig, PRIMARY(1)), 1);
    OK(store_agent_get(rig->store, AGENT(2), &rig->arena, &got, &rig->msg));
    same(got.name, "Agent 2");
    assert_int_equal(got.deleted_ms, 4711);
    assert_int_equal(role_in(rig, 1, 2), ROLE_NONE);
    EXPECT(ERR_NOTFOUND, store_key_find(rig->store, HASH(1), &rig->arena, &caller, &rig->msg));
    EXPECT(ERR_NOTFOUND,
           store_session_find(rig->store, HASH(77), 1, &rig->arena, &caller, &rig->msg));
    EXPECT(ERR_NOTFOUND, store_agent_delete(rig->store, AGENT(2), 5, NULL, 0, &rig->msg));
    OK(store_verify(rig->store, &rig->msg));
}

/* The last owner of a house cannot be deleted, and then nothing happens to it. */
static void spares_last_owners(void **state)
{
    struct store_rig *rig = *state;
    struct agent_record got;
    add_house(rig, 1);
    struct outbox_item item = item_of(rig, 1);
    EXPECT(ERR_CONFLICT, store_agent_delete(rig->store, AGENT(1), 9, &item, 1, &rig->msg));
    SAYS("\"A house\"");
    OK(store_agent_get(rig->store, AGENT(1), &rig->arena, &got, &rig->msg));
    assert_int_equal(got.deleted_ms, 0);
    assert_int_equal(items_of(rig, THREAD(1)), 0);
    OK(store_house_delete(rig->store, HOUSE(1), 9, NULL, 0, &rig->msg));
    OK(store_agent_delete(rig->store, AGENT(1), 9, NULL, 0, &rig->msg));
}

static size_t count_agents(struct store_rig *rig, const struct agent_query *query)
{
    struct agent_list list;
    OK(store_agent_list(rig->store, query, &first_page, &rig->arena, &list, &rig->msg));
    assert_null(list.next.ptr);
    return list.count;
}

static bool sees(struct store_rig *rig, unsigned viewer, unsigned agent)
{
    bool seen = false;
    OK(store_agent_seen(rig->store, AGENT(agent), AGENT(viewer), &seen, &rig->msg));
    return seen;
}

/* One sees oneself, what one has created, and who shares a house. */
static void shows_agents(void **state)
{
    struct store_rig *rig = *state;
    add_house(rig, 1);
    add_house(rig, 2);
    add_agent(rig, 3);
    add_member(rig, 1, 3, ROLE_MEMBER);
    struct agent_record bot = agent_of(rig, 4);
    bot.kind = AGENT_BOT;
    bot.name = SLICE("Zed");
    bot.handle = SLICE("100%_sure");
    bot.created_by = AGENT(1);
    OK(store_agent_create(rig->store, &bot, NULL, &rig->msg));
    struct agent_query query = {.viewer_id = AGENT(1)};
    assert_int_equal(count_agents(rig, &query), 3);
    query.house_id = HOUSE(1);
    assert_int_equal(count_agents(rig, &query), 2);
    query.house_id = HOUSE(2);
    assert_int_equal(count_agents(rig, &query), 0);
    query.house_id = NONE;
    query.prefix = SLICE("zE");
    assert_int_equal(count_agents(rig, &query), 1);
    query.prefix = SLICE("100%");
    assert_int_equal(count_agents(rig, &query), 1);
    query.prefix = SLICE("1%");
    assert_int_equal(count_agents(rig, &query), 0);
    query.prefix = SLICE("agent ");
    assert_int_equal(count_agents(rig, &query), 2);
    query = (struct agent_query){.viewer_id = AGENT(3)};
    assert_int_equal(count_agents(rig, &query), 2);
    query.viewer_id = AGENT(9);
    assert_int_equal(count_agents(rig, &query), 0);
    assert_true(sees(rig, 1, 1) && sees(rig, 1, 3) && sees(rig, 3, 1) && sees(rig, 1, 4));
    assert_false(sees(rig, 1, 2) || sees(rig, 3, 4) || sees(rig, 2, 3) || sees(rig, 9, 9));
    OK(store_agent_delete(rig->store, AGENT(4), 9, NULL, 0, &rig->msg));
    query.viewer_id = AGENT(1);
    assert_int_equal(count_agents(rig, &query), 2);
    assert_true(sees(rig, 1, 4));
}

/* Who left a house, or was deleted, is still seen by those who are in it, and in no list; by nobody
 * else, nor when the house is gone. */
static void shows_who_was_there(void **state)
{
    struct store_rig *rig = *state;
    add_house(rig, 1);
    add_house(rig, 2);
    for (unsigned i = 3; i <= 5; i++) {
        add_agent(rig, i);
        add_member(rig, 1, i, ROLE_MEMBER);
    }
    OK(store_member_remove(rig->store, HOUSE(1), AGENT(3), NULL, 0, &rig->msg));
    OK(store_agent_delete(rig->store, AGENT(4), 9, NULL, 0, &rig->msg));
    assert_true(sees(rig, 1, 3) && sees(rig, 1, 4) && sees(rig, 5, 3) && sees(rig, 5, 4));
    assert_false(sees(rig, 3, 1) || sees(rig, 3, 4) || sees(rig, 2, 3) || sees(rig, 2, 4));
    struct agent_query query = {.viewer_id = AGENT(1)};
    assert_int_equal(count_agents(rig, &query), 2);
    OK(store_house_delete(rig->store, HOUSE(1), 9, NULL, 0, &rig->msg));
    assert_false(sees(rig, 1, 3) || sees(rig, 1, 4) || sees(rig, 1, 5));
}

/* Pages hold each agent once, in order. */
static void pages_agents(void **state)
{
    struct store_rig *rig = *state;
    struct store_page page = {.limit = 3};
    struct agent_list list;
    unsigned next = 1;
    add_house(rig, 1);
    for (unsigned i = 2; i <= 7; i++) {
        add_agent(rig, i);
        add_member(rig, 1, i, ROLE_MEMBER);
    }
    struct agent_query query = {.viewer_id = AGENT(4)};
    do {
        OK(store_agent_list(rig->store, &query, &page, &rig->arena, &list, &rig->msg));
        for (size_t i = 0; i < list.count; i++) {
            same(list.items[i].id, AGENT(next++).ptr);
        }
        page.after = list.next;
    } while (list.next.ptr);
    assert_int_equal(next, 8);
    page.after = SLICE("no id");
    EXPECT(ERR_INVALID, store_agent_list(rig->store, &query, &page, &rig->arena, &list, &rig->msg));
    SAYS("cursor");
}

/* A key is found by its hash until it is revoked. */
static void keeps_keys(void **state)
{
    struct store_rig *rig = *state;
    struct caller_record caller;
    struct key_record got;
    add_agent(rig, 1);
    struct key_record key = key_of(rig, 1, 1);
    key.name = SLICE("laptop");
    OK(store_key_create(rig->store, &key, &rig->msg));
    rig_reopen(rig);
    OK(store_key_find(rig->store, HASH(1), &rig->arena, &caller, &rig->msg));
    same(caller.agent.id, AGENT(1).ptr);
    same(caller.agent.name, "Agent 1");
    same(caller.key_id, KEY(1).ptr);
    assert_int_equal(caller.last_used_ms, 0);
    OK(store_key_touch(rig->store, KEY(1), 50, &rig->msg));
    OK(store_key_touch(rig->store, KEY(1), 40, &rig->msg));
    OK(store_key_touch(rig->store, KEY(9), 40, &rig->msg));
    OK(store_key_find(rig->store, HASH(1), &rig->arena, &caller, &rig->msg));
    assert_int_equal(caller.last_used_ms, 50);
    OK(store_key_revoke(rig->store, KEY(1), 60, &rig->msg));
    OK(store_key_revoke(rig->store, KEY(1), 70, &rig->msg));
    EXPECT(ERR_NOTFOUND, store_key_find(rig->store, HASH(1), &rig->arena, &caller, &rig->msg));
    OK(store_key_get(rig->store, KEY(1), &rig->arena, &got, &rig->msg));
    same(got.name, "laptop");
    same(got.agent_id, AGENT(1).ptr);
    same(got.hash, NULL);
    assert_int_equal(got.created_ms, 5);
    assert_int_equal(got.last_used_ms, 50);
    assert_int_equal(got.revoked_ms, 60);
}

/* What is wrong with a key. */
static void refuses_keys(void **state)
{
    struct store_rig *rig = *state;
    struct key_record got;
    struct caller_record caller;
    add_agent(rig, 1);
    struct key_record key = key_of(rig, 1, 1);
    OK(store_key_create(rig->store, &key, &rig->msg));
    EXPECT(ERR_EXISTS, store_key_create(rig->store, &key, &rig->msg));
    key.id = KEY(2);
    EXPECT(ERR_EXISTS, store_key_create(rig->store, &key, &rig->msg));
    SAYS("there already");
    key = key_of(rig, 3, 2);
    EXPECT(ERR_NOTFOUND, store_key_create(rig->store, &key, &rig->msg));
    EXPECT(ERR_NOTFOUND, store_key_get(rig->store, KEY(3), &rig->arena, &got, &rig->msg));
    EXPECT(ERR_NOTFOUND, store_key_revoke(rig->store, KEY(3), 1, &rig->msg));
    EXPECT(ERR_NOTFOUND, store_key_find(rig->store, HASH(3), &rig->arena, &caller, &rig->msg));
    OK(store_agent_delete(rig->store, AGENT(1), 1, NULL, 0, &rig->msg));
    key = key_of(rig, 3, 1);
    EXPECT(ERR_NOTFOUND, store_key_create(rig->store, &key, &rig->msg));
}

/* An agent has so many good keys and no more; revoked ones do not count. */
static void limits_keys(void **state)
{
    struct store_rig *rig = *state;
    struct key_list list;
    struct store_page page = {.limit = 150};
    size_t seen = 0;
    add_agent(rig, 1);
    for (unsigned i = 0; i < STORE_KEYS_MAX; i++) {
        struct key_record key = key_of(rig, i, 1);
        OK(store_key_create(rig->store, &key, &rig->msg));
    }
    struct key_record key = key_of(rig, STORE_KEYS_MAX, 1);
    EXPECT(ERR_LIMIT, store_key_create(rig->store, &key, &rig->msg));
    OK(store_key_revoke(rig->store, KEY(3), 1, &rig->msg));
    OK(store_key_create(rig->store, &key, &rig->msg));
    do {
        OK(store_key_list(rig->store, AGENT(1), &page, &rig->arena, &list, &rig->msg));
        for (size_t i = 0; i < list.count; i++) {
            same(list.items[i].id, KEY((unsigned)seen++).ptr);
        }
        page.after = list.next;
    } while (list.next.ptr);
    assert_int_equal(seen, STORE_KEYS_MAX + 1);
}

/* A session ends in its time, with its key, or when somebody signs out. */
static void keeps_sessions(void **state)
{
    struct store_rig *rig = *state;
    struct caller_record caller;
    add_agent(rig, 1);
    add_agent(rig, 2);
    struct key_record key = key_of(rig, 1, 1);
    OK(store_key_create(rig->store, &key, &rig->msg));
    struct session_record session = {
        .hash = HASH(5), .agent_id = AGENT(1), .key_id = KEY(1), .expires_ms = 100};
    OK(store_session_create(rig->store, &session, &rig->msg));
    EXPECT(ERR_EXISTS, store_session_create(rig->store, &session, &rig->msg));
    OK(store_session_find(rig->store, HASH(5), 99, &rig->arena, &caller, &rig->msg));
    same(caller.agent.id, AGENT(1).ptr);
    same(caller.key_id, KEY(1).ptr);
    EXPECT(ERR_NOTFOUND,
           store_session_find(rig->store, HASH(5), 100, &rig->arena, &caller, &rig->msg));
    EXPECT(ERR_NOTFOUND,
           store_session_find(rig->store, HASH(6), 1, &rig->arena, &caller, &rig->msg));
    OK(store_session_delete(rig->store, HASH(5), &rig->msg));
    OK(store_session_delete(rig->store, HASH(5), &rig->msg));
    EXPECT(ERR_NOTFOUND,
           store_session_find(rig->store, HASH(5), 1, &rig->arena, &caller, &rig->msg));
    OK(store_session_create(rig->store, &session, &rig->msg));
    OK(store_key_revoke(rig->store, KEY(1), 1, &rig->msg));
    EXPECT(ERR_NOTFOUND,
           store_session_find(rig->store, HASH(5), 1, &rig->arena, &caller, &rig->msg));
    session.hash = HASH(7);
    EXPECT(ERR_NOTFOUND, store_session_create(rig->store, &session, &rig->msg));
    key = key_of(rig, 2, 2);
    OK(store_key_create(rig->store, &key, &rig->msg));
    session.key_id = KEY(2);
    EXPECT(ERR_NOTFOUND, store_session_create(rig->store, &session, &rig->msg));
}

/* Housekeeping takes what is past its time, a piece at a time. */
static void sweeps_sessions(void **state)
{
    struct store_rig *rig = *state;
    struct caller_record caller;
    bool more = true;
    add_house(rig, 1);
    struct key_record key = key_of(rig, 1, 1);
    OK(store_key_create(rig->store, &key, &rig->msg));
    for (unsigned i = 0; i < 1001; i++) {
        struct session_record session = {
            .hash = HASH(100 + i), .agent_id = AGENT(1), .key_id = KEY(1), .expires_ms = 10};
        OK(store_session_create(rig->store, &session, &rig->msg));
    }
    struct session_record good = {
        .hash = HASH(5), .agent_id = AGENT(1), .key_id = KEY(1), .expires_ms = 100};
    OK(store_session_create(rig->store, &good, &rig->msg));
    OK(store_sweep(rig->store, 50, &more, &rig->msg));
    assert_true(more);
    OK(store_sweep(rig->store, 50, &more, &rig->msg));
    assert_false(more);
    EXPECT(ERR_NOTFOUND,
           store_session_find(rig->store, HASH(1100), 1, &rig->arena, &caller, &rig->msg));
    OK(store_session_find(rig->store, HASH(5), 60, &rig->arena, &caller, &rig->msg));
}

#endif
