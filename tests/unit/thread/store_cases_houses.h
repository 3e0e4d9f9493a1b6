/* The part of the list that is about houses, members and invites. See store_rig.h. */
#ifndef ARBE_TESTS_UNIT_THREAD_STORE_CASES_HOUSES_H
#define ARBE_TESTS_UNIT_THREAD_STORE_CASES_HOUSES_H

#include "unit/thread/store_rig.h"

/* A house comes with its owner and its primary thread. */
static void makes_houses(void **state)
{
    struct store_rig *rig = *state;
    struct house_record got;
    struct thread_record thread;
    add_agent(rig, 1);
    struct house_create house = house_of(rig, 1, 1);
    struct outbox_item items[] = {
        {.kind = OUTBOX_CREATE, .thread_id = PRIMARY(1)},
        {.kind = OUTBOX_APPEND,
         .thread_id = PRIMARY(1),
         .entry_id = ENTRY(1),
         .entry = SLICE("{}")},
    };
    OK(store_house_create(rig->store, &house, items, 2, &rig->msg));
    rig_reopen(rig);
    OK(store_house_get(rig->store, HOUSE(1), AGENT(1), &rig->arena, &got, &rig->msg));
    same(got.id, HOUSE(1).ptr);
    same(got.name, "A house");
    same(got.primary_thread_id, PRIMARY(1).ptr);
    assert_int_equal(got.role, ROLE_OWNER);
    assert_int_equal(got.created_ms, 2001);
    OK(store_thread_get(rig->store, PRIMARY(1), &rig->arena, &thread, &rig->msg));
    same(thread.house_id, HOUSE(1).ptr);
    same(thread.name, "general");
    assert_int_equal(thread.parent_kind, PARENT_HOUSE);
    same(thread.parent_id, HOUSE(1).ptr);
    assert_int_equal(thread.status, THREAD_OPEN);
    same(thread.created_by, AGENT(1).ptr);
    assert_int_equal(items_of(rig, PRIMARY(1)), 2);
    OK(store_house_get(rig->store, HOUSE(1), AGENT(9), &rig->arena, &got, &rig->msg));
    assert_int_equal(got.role, ROLE_NONE);
    OK(store_verify(rig->store, &rig->msg));
}

/* What is wrong with a new house leaves nothing behind. */
static void refuses_houses(void **state)
{
    struct store_rig *rig = *state;
    struct house_record got;
    struct house_create house = house_of(rig, 1, 1);
    struct outbox_item item = item_of(rig, 1);
    EXPECT(ERR_NOTFOUND, store_house_create(rig->store, &house, &item, 1, &rig->msg));
    add_house(rig, 1);
    EXPECT(ERR_EXISTS, store_house_create(rig->store, &house, &item, 1, &rig->msg));
    house.id = HOUSE(2);
    EXPECT(ERR_EXISTS, store_house_create(rig->store, &house, &item, 1, &rig->msg));
    EXPECT(ERR_NOTFOUND,
           store_house_get(rig->store, HOUSE(2), AGENT(1), &rig->arena, &got, &rig->msg));
    assert_int_equal(items_of(rig, THREAD(1)), 0);
    OK(store_verify(rig->store, &rig->msg));
}

/* The first start makes one owner, and the second none. */
static void makes_first_owner(void **state)
{
    struct store_rig *rig = *state;
    struct caller_record caller;
    struct agent_record agent = agent_of(rig, 1);
    struct key_record key = key_of(rig, 1, 1);
    struct house_create house = house_of(rig, 1, 1);
    struct outbox_item item = item_of(rig, 10000001);
    OK(store_first_owner(rig->store, &agent, &key, &house, &item, 1, &rig->msg));
    OK(store_key_find(rig->store, HASH(1), &rig->arena, &caller, &rig->msg));
    assert_int_equal(role_in(rig, 1, 1), ROLE_OWNER);
    assert_int_equal(items_of(rig, PRIMARY(1)), 1);
    agent = agent_of(rig, 2);
    key = key_of(rig, 2, 2);
    house = house_of(rig, 2, 2);
    EXPECT(ERR_EXISTS, store_first_owner(rig->store, &agent, &key, &house, NULL, 0, &rig->msg));
    EXPECT(ERR_NOTFOUND, store_key_find(rig->store, HASH(2), &rig->arena, &caller, &rig->msg));
}

/* Whose houses, which of them two agents share, page by page. */
static void lists_houses(void **state)
{
    struct store_rig *rig = *state;
    struct house_list list;
    struct store_page page = {.limit = 2};
    for (unsigned i = 1; i <= 5; i++) {
        add_house(rig, i);
    }
    for (unsigned i = 2; i <= 4; i++) {
        add_member(rig, i, 1, ROLE_MEMBER);
    }
    add_member(rig, 5, 2, ROLE_MEMBER);
    unsigned next = 1;
    do {
        OK(store_house_list(rig->store, AGENT(1), &page, &rig->arena, &list, &rig->msg));
        for (size_t i = 0; i < list.count; i++) {
            assert_int_equal(list.items[i].role, next == 1 ? ROLE_OWNER : ROLE_MEMBER);
            same(list.items[i].id, HOUSE(next++).ptr);
        }
        page.after = list.next;
    } while (list.next.ptr);
    assert_int_equal(next, 5);
    OK(store_house_shared(rig->store, AGENT(1), AGENT(2), &first_page, &rig->arena, &list,
                          &rig->msg));
    assert_int_equal(list.count, 1);
    same(list.items[0].id, HOUSE(2).ptr);
    assert_int_equal(list.items[0].role, ROLE_MEMBER);
    OK(store_house_shared(rig->store, AGENT(1), AGENT(5), &first_page, &rig->arena, &list,
                          &rig->msg));
    assert_int_equal(list.count, 0);
    page.after = SLICE("'");
    EXPECT(ERR_INVALID,
           store_house_list(rig->store, AGENT(1), &page, &rig->arena, &list, &rig->msg));
}

/* A new name comes with its signal, or neither. */
static void renames_houses(void **state)
{
    struct store_rig *rig = *state;
    struct house_record got;
    add_house(rig, 1);
    struct outbox_item item = item_of(rig, 10000001);
    OK(store_house_rename(rig->store, HOUSE(1), SLICE("Other"), &item, 1, &rig->msg));
    OK(store_house_get(rig->store, HOUSE(1), AGENT(1), &rig->arena, &got, &rig->msg));
    same(got.name, "Other");
    assert_int_equal(items_of(rig, PRIMARY(1)), 1);
    item.thread_id = THREAD(5);
    EXPECT(ERR_NOTFOUND, store_house_rename(rig->store, HOUSE(2), SLICE("x"), &item, 1, &rig->msg));
    assert_int_equal(items_of(rig, THREAD(5)), 0);
}

/* A house goes with all that it has, and the streams of all its threads are to be dropped. */
static void deletes_houses(void **state)
{
    struct store_rig *rig = *state;
    struct house_record house;
    struct thread_access access;
    struct house_list list;
    struct invite_record invite = {.id = INVITE(1),
                                   .house_id = HOUSE(1),
                                   .hash = HASH(1),
                                   .role = ROLE_MEMBER,
                                   .created_by = AGENT(1),
                                   .expires_ms = 100};
    add_house(rig, 1);
    add_thread(rig, 1, 1);
    add_thread(rig, 2, 1);
    OK(store_thread_delete(rig->store, THREAD(2), 5, NULL, 0, &rig->msg));
    OK(store_invite_create(rig->store, &invite, &rig->msg));
    struct outbox_item item = item_of(rig, 10000001);
    OK(store_house_delete(rig->store, HOUSE(1), 9, &item, 1, &rig->msg));
    assert_int_equal(items_of(rig, PRIMARY(1)), 2);
    assert_int_equal(items_of(rig, THREAD(1)), 1);
    assert_int_equal(items_of(rig, THREAD(2)), 0);
    EXPECT(ERR_NOTFOUND,
           store_house_get(rig->store, HOUSE(1), AGENT(1), &rig->arena, &house, &rig->msg));
    EXPECT(ERR_NOTFOUND, store_thread_access(rig->store, THREAD(1), AGENT(1), &access, &rig->msg));
    EXPECT(ERR_NOTFOUND,
           store_invite_find(rig->store, HASH(1), 1, &rig->arena, &invite, &rig->msg));
    EXPECT(ERR_NOTFOUND, store_house_delete(rig->store, HOUSE(1), 9, NULL, 0, &rig->msg));
    OK(store_house_list(rig->store, AGENT(1), &first_page, &rig->arena, &list, &rig->msg));
    assert_int_equal(list.count, 0);
    OK(store_verify(rig->store, &rig->msg));
}

/* Roles come, change and go; the items are kept when something changed. */
static void changes_members(void **state)
{
    struct store_rig *rig = *state;
    enum member_role before = ROLE_OWNER;
    add_house(rig, 1);
    add_agent(rig, 2);
    struct outbox_item item = item_of(rig, 10000001);
    struct member_record member = {.agent_id = AGENT(2), .role = ROLE_MEMBER, .added_ms = 5};
    OK(store_member_put(rig->store, HOUSE(1), &member, &item, 1, &before, &rig->msg));
    assert_int_equal(before, ROLE_NONE);
    OK(store_member_put(rig->store, HOUSE(1), &member, &item, 1, &before, &rig->msg));
    assert_int_equal(before, ROLE_MEMBER);
    assert_int_equal(items_of(rig, PRIMARY(1)), 1);
    member.role = ROLE_OWNER;
    member.added_ms = 6;
    OK(store_member_put(rig->store, HOUSE(1), &member, &item, 1, &before, &rig->msg));
    assert_int_equal(items_of(rig, PRIMARY(1)), 2);
    struct member_list list;
    OK(store_member_list(rig->store, HOUSE(1), &first_page, &rig->arena, &list, &rig->msg));
    assert_int_equal(list.count, 2);
    same(list.items[1].agent_id, AGENT(2).ptr);
    assert_int_equal(list.items[1].role, ROLE_OWNER);
    assert_int_equal(list.items[1].added_ms, 5);
    same(list.items[1].name, "Agent 2");
    OK(store_member_get(rig->store, HOUSE(1), AGENT(2), &rig->arena, &member, &rig->msg));
    same(member.agent_id, AGENT(2).ptr);
    assert_int_equal(member.role, ROLE_OWNER);
    assert_int_equal(member.kind, AGENT_HUMAN);
    assert_int_equal(member.added_ms, 5);
    same(member.name, "Agent 2");
    same(member.handle, "Agent 2");
    OK(store_member_remove(rig->store, HOUSE(1), AGENT(1), &item, 1, &rig->msg));
    assert_int_equal(role_in(rig, 1, 1), ROLE_NONE);
    assert_int_equal(items_of(rig, PRIMARY(1)), 3);
}

static int64_t epoch_of(struct store_rig *rig, unsigned agent)
{
    struct thread_access access;
    OK(store_thread_access(rig->store, PRIMARY(1), AGENT(agent), &access, &rig->msg));
    return access.sandbox_epoch;
}

/* Each end of tokens is another epoch, whatever the clock says; another role is none, and a
 * membership that begins anew has its own. */
static void ends_tokens(void **state)
{
    struct store_rig *rig = *state;
    static const int64_t ends[][2] = {{100, 100}, {100, 101}, {50, 102}, {200, 200}};
    enum member_role before = ROLE_NONE;
    struct outbox_item item = item_of(rig, 10000001);
    struct member_record member = {.agent_id = AGENT(2), .role = ROLE_MEMBER, .added_ms = 70};
    add_house(rig, 1);
    add_agent(rig, 2);
    EXPECT(ERR_NOTFOUND, store_member_end_tokens(rig->store, HOUSE(1), AGENT(2), 1, &rig->msg));
    EXPECT(ERR_NOTFOUND, store_member_end_tokens(rig->store, HOUSE(2), AGENT(1), 1, &rig->msg));
    OK(store_member_put(rig->store, HOUSE(1), &member, &item, 1, &before, &rig->msg));
    assert_int_equal(epoch_of(rig, 2), 70);
    int64_t other = epoch_of(rig, 1);
    for (size_t i = 0; i < ARRAY_COUNT(ends); i++) {
        OK(store_member_end_tokens(rig->store, HOUSE(1), AGENT(2), ends[i][0], &rig->msg));
        assert_int_equal(epoch_of(rig, 2), ends[i][1]);
    }
    assert_int_equal(epoch_of(rig, 1), other);
    member.role = ROLE_OWNER;
    OK(store_member_put(rig->store, HOUSE(1), &member, &item, 1, &before, &rig->msg));
    assert_int_equal(epoch_of(rig, 2), 200);
    OK(store_member_remove(rig->store, HOUSE(1), AGENT(2), &item, 1, &rig->msg));
    assert_int_equal(epoch_of(rig, 2), 0);
    member.added_ms = 300;
    OK(store_member_put(rig->store, HOUSE(1), &member, &item, 1, &before, &rig->msg));
    assert_int_equal(epoch_of(rig, 2), 300);
}

/* A house is never without an owner, and only agents that live become members. */
static void refuses_members(void **state)
{
    struct store_rig *rig = *state;
    enum member_role role = ROLE_NONE;
    struct member_list list;
    add_house(rig, 1);
    add_agent(rig, 2);
    struct outbox_item item = item_of(rig, 10000001);
    struct member_record member = {.agent_id = AGENT(1), .role = ROLE_MEMBER};
    EXPECT(ERR_CONFLICT,
           store_member_put(rig->store, HOUSE(1), &member, &item, 1, &role, &rig->msg));
    SAYS("without an owner");
    EXPECT(ERR_CONFLICT, store_member_remove(rig->store, HOUSE(1), AGENT(1), &item, 1, &rig->msg));
    EXPECT(ERR_NOTFOUND, store_member_remove(rig->store, HOUSE(1), AGENT(2), &item, 1, &rig->msg));
    EXPECT(ERR_NOTFOUND, store_member_remove(rig->store, HOUSE(2), AGENT(2), &item, 1, &rig->msg));
    EXPECT(ERR_NOTFOUND, store_member_role(rig->store, HOUSE(2), AGENT(2), &role, &rig->msg));
    for (unsigned i = 1; i < 3; i++) {
        EXPECT(ERR_NOTFOUND,
               store_member_get(rig->store, HOUSE(i), AGENT(2), &rig->arena, &member, &rig->msg));
        SAYS(i == 1 ? "no member of the house" : "no such house");
    }
    EXPECT(ERR_NOTFOUND,
           store_member_list(rig->store, HOUSE(2), &first_page, &rig->arena, &list, &rig->msg));
    member.agent_id = AGENT(9);
    EXPECT(ERR_NOTFOUND,
           store_member_put(rig->store, HOUSE(1), &member, &item, 1, &role, &rig->msg));
    OK(store_agent_delete(rig->store, AGENT(2), 1, NULL, 0, &rig->msg));
    member.agent_id = AGENT(2);
    EXPECT(ERR_NOTFOUND,
           store_member_put(rig->store, HOUSE(1), &member, &item, 1, &role, &rig->msg));
    assert_int_equal(role_in(rig, 1, 1), ROLE_OWNER);
    assert_int_equal(items_of(rig, PRIMARY(1)), 0);
}

/* A roster larger than a page. */
static void pages_members(void **state)
{
    struct store_rig *rig = *state;
    struct member_list list;
    struct store_page page = {.limit = 1000};
    unsigned next = 1;
    add_house(rig, 1);
    for (unsigned i = 2; i <= STORE_PAGE_MAX + 1; i++) {
        add_agent(rig, i);
        add_member(rig, 1, i, ROLE_MEMBER);
    }
    do {
        OK(store_member_list(rig->store, HOUSE(1), &page, &rig->arena, &list, &rig->msg));
        assert_true(list.count <= STORE_PAGE_MAX);
        for (size_t i = 0; i < list.count; i++) {
            same(list.items[i].agent_id, AGENT(next++).ptr);
        }
        page.after = list.next;
    } while (list.next.ptr);
    assert_int_equal(next, STORE_PAGE_MAX + 2);
    page.after = SLICE("A");
    EXPECT(ERR_INVALID,
           store_member_list(rig->store, HOUSE(1), &page, &rig->arena, &list, &rig->msg));
}

static void add_invite(struct store_rig *rig, unsigned number, enum member_role role)
{
    struct invite_record invite = {.id = INVITE(number),
                                   .house_id = HOUSE(1),
                                   .hash = HASH(number),
                                   .role = role,
                                   .created_by = AGENT(1),
                                   .created_ms = 1,
                                   .expires_ms = 100};
    OK(store_invite_create(rig->store, &invite, &rig->msg));
}

/* A stranger's claim makes an agent, its key and its membership. */
static void claims_as_stranger(void **state)
{
    struct store_rig *rig = *state;
    struct invite_record invite;
    struct caller_record caller;
    add_house(rig, 1);
    add_invite(rig, 1, ROLE_MEMBER);
    OK(store_invite_find(rig->store, HASH(1), 50, &rig->arena, &invite, &rig->msg));
    same(invite.id, INVITE(1).ptr);
    same(invite.house_id, HOUSE(1).ptr);
    same(invite.primary_thread_id, PRIMARY(1).ptr);
    same(invite.created_by, AGENT(1).ptr);
    assert_int_equal(invite.role, ROLE_MEMBER);
    assert_int_equal(invite.expires_ms, 100);
    struct agent_record agent = agent_of(rig, 2);
    struct key_record key = key_of(rig, 5, 2);
    struct invite_claim claim = {
        .hash = HASH(1), .agent_id = AGENT(2), .agent = &agent, .key = &key, .now_ms = 50};
    struct outbox_item item = item_of(rig, 10000001);
    OK(store_invite_claim(rig->store, &claim, &item, 1, &rig->msg));
    assert_int_equal(role_in(rig, 1, 2), ROLE_MEMBER);
    OK(store_key_find(rig->store, HASH(5), &rig->arena, &caller, &rig->msg));
    assert_int_equal(items_of(rig, PRIMARY(1)), 1);
    EXPECT(ERR_NOTFOUND,
           store_invite_find(rig->store, HASH(1), 50, &rig->arena, &invite, &rig->msg));
    agent = agent_of(rig, 3);
    key = key_of(rig, 6, 3);
    claim.agent_id = AGENT(3);
    EXPECT(ERR_NOTFOUND, store_invite_claim(rig->store, &claim, &item, 1, &rig->msg));
    SAYS("invite");
    EXPECT(ERR_NOTFOUND, store_agent_get(rig->store, AGENT(3), &rig->arena, &agent, &rig->msg));
}

/* An agent that is there joins; an owner's invite makes a member an owner, no other way round. */
static void claims_as_agent(void **state)
{
    struct store_rig *rig = *state;
    struct invite_record invite;
    add_house(rig, 1);
    add_agent(rig, 2);
    for (unsigned i = 1; i <= 4; i++) {
        add_invite(rig, i, i == 3 ? ROLE_OWNER : ROLE_MEMBER);
    }
    struct invite_claim claim = {.hash = HASH(1), .agent_id = AGENT(2), .now_ms = 50};
    OK(store_invite_claim(rig->store, &claim, NULL, 0, &rig->msg));
    assert_int_equal(role_in(rig, 1, 2), ROLE_MEMBER);
    claim.hash = HASH(2);
    EXPECT(ERR_EXISTS, store_invite_claim(rig->store, &claim, NULL, 0, &rig->msg));
    OK(store_invite_find(rig->store, HASH(2), 50, &rig->arena, &invite, &rig->msg));
    claim.hash = HASH(3);
    OK(store_invite_claim(rig->store, &claim, NULL, 0, &rig->msg));
    assert_int_equal(role_in(rig, 1, 2), ROLE_OWNER);
    claim.hash = HASH(2);
    EXPECT(ERR_EXISTS, store_invite_claim(rig->store, &claim, NULL, 0, &rig->msg));
    claim.agent_id = AGENT(9);
    EXPECT(ERR_NOTFOUND, store_invite_claim(rig->store, &claim, NULL, 0, &rig->msg));
    add_agent(rig, 5);
    claim.agent_id = AGENT(5);
    claim.now_ms = 100;
    EXPECT(ERR_NOTFOUND, store_invite_claim(rig->store, &claim, NULL, 0, &rig->msg));
    claim.hash = HASH(99);
    EXPECT(ERR_NOTFOUND, store_invite_claim(rig->store, &claim, NULL, 0, &rig->msg));
    assert_int_equal(role_in(rig, 1, 5), ROLE_NONE);
}

/* What is wrong with a new invite; those past their time go with the housekeeping. */
static void refuses_invites(void **state)
{
    struct store_rig *rig = *state;
    bool more = true;
    add_house(rig, 1);
    add_invite(rig, 1, ROLE_MEMBER);
    struct invite_record invite = {.id = INVITE(2),
                                   .house_id = HOUSE(1),
                                   .hash = HASH(1),
                                   .role = ROLE_MEMBER,
                                   .created_by = AGENT(1),
                                   .expires_ms = 100};
    EXPECT(ERR_EXISTS, store_invite_create(rig->store, &invite, &rig->msg));
    OK(store_sweep(rig->store, 99, &more, &rig->msg));
    EXPECT(ERR_EXISTS, store_invite_create(rig->store, &invite, &rig->msg));
    OK(store_sweep(rig->store, 100, &more, &rig->msg));
    assert_false(more);
    OK(store_invite_create(rig->store, &invite, &rig->msg));
    invite.hash = HASH(2);
    EXPECT(ERR_EXISTS, store_invite_create(rig->store, &invite, &rig->msg));
    invite.house_id = HOUSE(2);
    EXPECT(ERR_NOTFOUND, store_invite_create(rig->store, &invite, &rig->msg));
}

#endif
