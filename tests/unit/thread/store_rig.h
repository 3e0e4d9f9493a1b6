/* What the list of store_cases.h is run over: a store that a back end opens, and short ways to
 * fill it. Ids are made of small numbers, times too. */
#ifndef ARBE_TESTS_UNIT_THREAD_STORE_RIG_H
#define ARBE_TESTS_UNIT_THREAD_STORE_RIG_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "thread/store_agent.h"
#include "thread/store_house.h"
#include "thread/store_outbox.h"
#include "thread/store_thread.h"
#include "thread/store_usage.h"
#include "unit/base/unit.h"

#define RIG_ARENA_BYTES (8u << 20)

struct store_rig {
    struct thread_store *store;
    struct arena arena; /* what a test reads, until its end */
    struct errmsg msg;  /* of the last call that was EXPECTed */
    void *back_end;     /* the rig's own */
};

/* By the back end: opens the store anew, with all that it durably has. */
static void rig_reopen(struct store_rig *rig);

/* Calls and shows the sentence when the code is another. */
#define EXPECT(code, call)                                                              \
    do {                                                                                \
        rig->msg.text[0] = '\0';                                                        \
        int got_ = (call);                                                              \
        if (got_ != (code)) {                                                           \
            fail_msg("%s: %s instead of %s: %s", #call, err_name(got_), err_name(code), \
                     rig->msg.text);                                                    \
        }                                                                               \
        assert_true((code) == 0 || rig->msg.text[0] != '\0');                           \
    } while (0)

#define OK(call) EXPECT(0, call)

/* The last refusal says that. */
#define SAYS(part)                                                       \
    do {                                                                 \
        if (!strstr(rig->msg.text, part)) {                              \
            fail_msg("\"%s\" does not say \"%s\"", rig->msg.text, part); \
        }                                                                \
    } while (0)

static inline void same(struct slice got, const char *wanted)
{
    if (!wanted) {
        assert_null(got.ptr);
        return;
    }
    assert_non_null(got.ptr);
    if (got.len != strlen(wanted) || memcmp(got.ptr, wanted, got.len) != 0) {
        fail_msg("\"%.*s\" instead of \"%s\"", (int)got.len, got.ptr, wanted);
    }
}

#define NONE ((struct slice){0})

/* Ids of a kind: sorted by their number, and in the arena of the test. */
static inline struct slice id_of(struct store_rig *rig, unsigned kind, unsigned number)
{
    char text[STORE_ID_BYTES];
    (void)snprintf(text, sizeof(text), "%08x-0000-7000-8000-%012x", kind, number);
    char *copy = arena_try_copy(&rig->arena, slice_of(text));
    assert_non_null(copy);
    return slice_of(copy);
}

#define AGENT(number)  id_of(rig, 0xa, number)
#define HOUSE(number)  id_of(rig, 0xb, number)
#define THREAD(number) id_of(rig, 0xc, number)
#define KEY(number)    id_of(rig, 0xd, number)
#define INVITE(number) id_of(rig, 0xe, number)
#define ENTRY(number)  id_of(rig, 0xf, number)
#define HASH(number)   id_of(rig, 0x10, number)

/* The primary thread of a house. */
#define PRIMARY(number) THREAD(10000000 + (number))

static inline struct agent_record agent_of(struct store_rig *rig, unsigned number)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "Agent %u", number);
    struct slice text = slice_of(arena_try_copy(&rig->arena, slice_of(name)));
    return (struct agent_record){
        .id = AGENT(number), .name = text, .handle = text, .created_ms = 1000 + number};
}

static inline struct key_record key_of(struct store_rig *rig, unsigned number, unsigned agent)
{
    return (struct key_record){
        .id = KEY(number), .agent_id = AGENT(agent), .hash = HASH(number), .created_ms = 5};
}

static inline void add_agent(struct store_rig *rig, unsigned number)
{
    struct agent_record agent = agent_of(rig, number);
    OK(store_agent_create(rig->store, &agent, NULL, &rig->msg));
}

static inline struct house_create house_of(struct store_rig *rig, unsigned number, unsigned owner)
{
    return (struct house_create){.id = HOUSE(number),
                                 .name = SLICE("A house"),
                                 .primary_thread_id = PRIMARY(number),
                                 .thread_name = SLICE("general"),
                                 .owner_id = AGENT(owner),
                                 .now_ms = 2000 + number};
}

/* A house with a new agent of the same number as its owner. */
static inline void add_house(struct store_rig *rig, unsigned number)
{
    add_agent(rig, number);
    struct house_create house = house_of(rig, number, number);
    OK(store_house_create(rig->store, &house, NULL, 0, &rig->msg));
}

static inline void add_member(struct store_rig *rig, unsigned house, unsigned agent,
                              enum member_role role)
{
    enum member_role before;
    struct member_record member = {.agent_id = AGENT(agent), .role = role, .added_ms = 7};
    OK(store_member_put(rig->store, HOUSE(house), &member, NULL, 0, &before, &rig->msg));
}

static inline struct thread_record thread_of(struct store_rig *rig, unsigned number, unsigned house)
{
    return (struct thread_record){.id = THREAD(number),
                                  .house_id = HOUSE(house),
                                  .parent_kind = PARENT_HOUSE,
                                  .parent_id = HOUSE(house),
                                  .created_ms = 100000 + number};
}

static inline void add_thread(struct store_rig *rig, unsigned number, unsigned house)
{
    struct thread_record thread = thread_of(rig, number, house);
    OK(store_thread_create(rig->store, &thread, NONE, NULL, 0, &rig->msg));
}

static inline enum member_role role_in(struct store_rig *rig, unsigned house, unsigned agent)
{
    enum member_role role = ROLE_NONE;
    OK(store_member_role(rig->store, HOUSE(house), AGENT(agent), &role, &rig->msg));
    return role;
}

/* Items that a change of a thread might have. */
static inline struct outbox_item item_of(struct store_rig *rig, unsigned thread)
{
    return (struct outbox_item){.kind = OUTBOX_APPEND,
                                .thread_id = THREAD(thread),
                                .entry_id = ENTRY(thread),
                                .entry = SLICE("{\"id\":1}")};
}

/* How many items there are for a thread. */
static inline size_t items_of(struct store_rig *rig, struct slice thread_id)
{
    struct outbox_list list;
    OK(store_outbox_list_thread(rig->store, thread_id, 0, 100, &rig->arena, &list, &rig->msg));
    return list.count;
}

static const struct store_page first_page = {.limit = STORE_PAGE_MAX};

#endif
