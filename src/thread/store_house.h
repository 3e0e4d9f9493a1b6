/* Houses, their members and their invites: who may go where. See store.h for what holds for all.
 *
 * A house that lives has an owner and a primary thread, always. A deleted one is not there. */
#ifndef ARBE_THREAD_STORE_HOUSE_H
#define ARBE_THREAD_STORE_HOUSE_H

#include "thread/role.h"
#include "thread/store_agent.h"

struct house_record {
    struct slice id;
    struct slice name;
    struct slice primary_thread_id;
    enum member_role role; /* of the agent that asked; not looked at on creation */
    int64_t created_ms;
};

struct house_list STORE_LIST_OF(house_record);

struct member_record {
    struct slice agent_id;
    enum member_role role;
    enum agent_kind kind;
    struct slice name;
    struct slice handle;
    int64_t added_ms;
};

struct member_list STORE_LIST_OF(member_record);

struct invite_record {
    struct slice id;
    struct slice house_id;
    struct slice hash; /* of the token; not handed out */
    enum member_role role;
    struct slice created_by;
    int64_t created_ms;
    int64_t expires_ms;
    struct slice primary_thread_id; /* of its house; not looked at on creation */
};

/* What comes to be with a house. */
struct house_create {
    struct slice id;
    struct slice name;
    struct slice primary_thread_id;
    struct slice thread_name; /* of the primary thread, or absent */
    struct slice owner_id;
    int64_t now_ms;
};

/* The house, its owner and its primary thread. ERR_EXISTS: an id is taken. ERR_NOTFOUND: the owner
 * is not there, or deleted. */
int store_house_create(struct thread_store *s, const struct house_create *house,
                       const struct outbox_item *items, size_t count, struct errmsg *msg) MUST_USE;

/* The first start: an agent, its key and its house in one. ERR_EXISTS when there are agents. */
int store_first_owner(struct thread_store *s, const struct agent_record *agent,
                      const struct key_record *key, const struct house_create *house,
                      const struct outbox_item *items, size_t count, struct errmsg *msg) MUST_USE;

/* The house with the role of that agent, ROLE_NONE for others. ERR_NOTFOUND. */
int store_house_get(struct thread_store *s, struct slice id, struct slice agent_id,
                    struct arena *arena, struct house_record *ret_house,
                    struct errmsg *msg) MUST_USE;

/* The houses of an agent, oldest first. ERR_INVALID: the page. */
int store_house_list(struct thread_store *s, struct slice agent_id, const struct store_page *page,
                     struct arena *arena, struct house_list *ret_list, struct errmsg *msg) MUST_USE;

/* The houses that both agents are members of, oldest first; roles are those of `agent_id`. */
int store_house_shared(struct thread_store *s, struct slice agent_id, struct slice other_id,
                       const struct store_page *page, struct arena *arena,
                       struct house_list *ret_list, struct errmsg *msg) MUST_USE;

/* ERR_NOTFOUND. */
int store_house_rename(struct thread_store *s, struct slice id, struct slice name,
                       const struct outbox_item *items, size_t count, struct errmsg *msg) MUST_USE;

/* The house, its members, its invites and its threads go; behind `items` an OUTBOX_DROP is kept for
 * each of its threads. ERR_NOTFOUND. */
int store_house_delete(struct thread_store *s, struct slice id, int64_t now_ms,
                       const struct outbox_item *items, size_t count, struct errmsg *msg) MUST_USE;

/* The roster in the order of agents' ids. ERR_NOTFOUND: the house. ERR_INVALID: the page. */
int store_member_list(struct thread_store *s, struct slice house_id, const struct store_page *page,
                      struct arena *arena, struct member_list *ret_list,
                      struct errmsg *msg) MUST_USE;

/* The role of an agent, ROLE_NONE for strangers. ERR_NOTFOUND: the house. */
int store_member_role(struct thread_store *s, struct slice house_id, struct slice agent_id,
                      enum member_role *ret_role, struct errmsg *msg) MUST_USE;

/* One of the roster. ERR_NOTFOUND: the house, or no member of it. */
int store_member_get(struct thread_store *s, struct slice house_id, struct slice agent_id,
                     struct arena *arena, struct member_record *ret_member,
                     struct errmsg *msg) MUST_USE;

/* Adds a member or changes its role. ret_before: the role it had; where that is `role` nothing is
 * changed and the items are not kept. ERR_NOTFOUND: the house or the agent is not there, or
 * deleted. ERR_CONFLICT: the last owner. */
int store_member_put(struct thread_store *s, struct slice house_id,
                     const struct member_record *member, const struct outbox_item *items,
                     size_t count, enum member_role *ret_before, struct errmsg *msg) MUST_USE;

/* ERR_NOTFOUND: the house, or no member of it. ERR_CONFLICT: the last owner. */
int store_member_remove(struct thread_store *s, struct slice house_id, struct slice agent_id,
                        const struct outbox_item *items, size_t count, struct errmsg *msg) MUST_USE;

/* Begins another epoch of the membership: what tokens of sandboxes were given out for it before are
 * good no more. A membership that begins anew has another one, too. ERR_NOTFOUND: as above. */
int store_member_end_tokens(struct thread_store *s, struct slice house_id, struct slice agent_id,
                            int64_t now_ms, struct errmsg *msg) MUST_USE;

/* ERR_EXISTS: the id or hash is taken. ERR_NOTFOUND: the house. */
int store_invite_create(struct thread_store *s, const struct invite_record *invite,
                        struct errmsg *msg) MUST_USE;

/* What the claim of an invite is going to do. ERR_NOTFOUND: unknown, used, past its time, or its
 * house is gone. */
int store_invite_find(struct thread_store *s, struct slice hash, int64_t now_ms,
                      struct arena *arena, struct invite_record *ret_invite,
                      struct errmsg *msg) MUST_USE;

/* Who claims an invite. */
struct invite_claim {
    struct slice hash;                /* of the token */
    struct slice agent_id;            /* who joins: there already, or the one below */
    const struct agent_record *agent; /* to be made; NULL: it is there */
    const struct key_record *key;     /* of the agent to be made */
    int64_t now_ms;
};

/* Uses the invite up and makes its agent a member, all in one: of many who claim the same invite
 * one succeeds. An owner's invite makes a member an owner. ERR_NOTFOUND as above, or the agent is
 * not there. ERR_EXISTS: a member with that role or more, and the invite stays good; or the id or
 * hash of the new agent or key is taken. */
int store_invite_claim(struct thread_store *s, const struct invite_claim *claim,
                       const struct outbox_item *items, size_t count, struct errmsg *msg) MUST_USE;

#endif
