/* Agents, their keys and their sessions: who somebody is. See store.h for what holds for all. */
#ifndef ARBE_THREAD_STORE_AGENT_H
#define ARBE_THREAD_STORE_AGENT_H

#include "thread/store.h"

enum agent_kind {
    AGENT_HUMAN,
    AGENT_BOT
};

struct agent_record {
    struct slice id;
    enum agent_kind kind;
    struct slice name;
    struct slice handle;        /* slug of the name; several agents may have the same */
    struct slice description;   /* or absent */
    struct slice model;         /* or absent */
    struct slice system_prompt; /* or absent */
    struct slice created_by;    /* an agent, or absent */
    int64_t created_ms;
    int64_t deleted_ms; /* 0: lives */
};

struct agent_list STORE_LIST_OF(agent_record);

struct key_record {
    struct slice id;
    struct slice agent_id;
    struct slice name; /* or absent */
    struct slice hash; /* of the secret; not handed out */
    int64_t created_ms;
    int64_t last_used_ms; /* 0: never */
    int64_t revoked_ms;   /* 0: good */
};

struct key_list STORE_LIST_OF(key_record);

struct session_record {
    struct slice hash; /* of the token */
    struct slice agent_id;
    struct slice key_id; /* that it was opened with: both end together */
    int64_t created_ms;
    int64_t expires_ms;
};

/* Who a key or a session belongs to. */
struct caller_record {
    struct agent_record agent;
    struct slice key_id;
    int64_t last_used_ms; /* of the key; store_key_touch when that is STORE_KEY_TOUCH_MS old */
};

/* Whether there are agents, deleted ones counted. */
int store_agent_any(struct thread_store *s, bool *ret_any, struct errmsg *msg) MUST_USE;

/* Adds an agent, and its first key unless `key` is NULL (agent_id of it is not looked at).
 * ERR_EXISTS: the id or the hash is taken. ERR_NOTFOUND: created_by. */
int store_agent_create(struct thread_store *s, const struct agent_record *agent,
                       const struct key_record *key, struct errmsg *msg) MUST_USE;

/* The agent, also if it was deleted: old entries need its name. ERR_NOTFOUND. */
int store_agent_get(struct thread_store *s, struct slice id, struct arena *arena,
                    struct agent_record *ret_agent, struct errmsg *msg) MUST_USE;

/* Which fields are to change, and into what; absent values clear those that may be absent. */
struct agent_change {
    bool set_name; /* and handle */
    bool set_description;
    bool set_model;
    bool set_system_prompt;
    struct slice name;
    struct slice handle;
    struct slice description;
    struct slice model;
    struct slice system_prompt;
};

/* ERR_NOTFOUND: not there, or deleted. */
int store_agent_update(struct thread_store *s, struct slice id, const struct agent_change *change,
                       struct arena *arena, struct agent_record *ret_agent,
                       struct errmsg *msg) MUST_USE;

/* Leaves a tombstone with the name. Keys are revoked; sessions and memberships go. ERR_NOTFOUND:
 * not there, or deleted before. ERR_CONFLICT: the last owner of a house, which the sentence
 * names. */
int store_agent_delete(struct thread_store *s, struct slice id, int64_t now_ms,
                       const struct outbox_item *items, size_t count, struct errmsg *msg) MUST_USE;

struct agent_query {
    struct slice viewer_id; /* sees itself, those it created, those of its houses */
    struct slice house_id;  /* members of that house alone; absent: all */
    struct slice prefix;    /* of the name or handle, ASCII case folded; absent: all */
};

/* Those that live and that the viewer sees, oldest first. ERR_INVALID: the page. */
int store_agent_list(struct thread_store *s, const struct agent_query *query,
                     const struct store_page *page, struct arena *arena,
                     struct agent_list *ret_list, struct errmsg *msg) MUST_USE;

/* Whether the viewer sees that agent by the rule of the list, or since it was once a member of a
 * house that the viewer is in, where entries of it are; deleted or not. Nobody sees what does not
 * exist. */
int store_agent_seen(struct thread_store *s, struct slice id, struct slice viewer_id,
                     bool *ret_seen, struct errmsg *msg) MUST_USE;

/* ERR_EXISTS: the id or hash is taken. ERR_NOTFOUND: the agent is not there, or deleted. ERR_LIMIT:
 * it has STORE_KEYS_MAX good ones. */
int store_key_create(struct thread_store *s, const struct key_record *key,
                     struct errmsg *msg) MUST_USE;

/* The key without its hash, revoked or not. ERR_NOTFOUND. */
int store_key_get(struct thread_store *s, struct slice id, struct arena *arena,
                  struct key_record *ret_key, struct errmsg *msg) MUST_USE;

/* All keys of an agent, revoked ones included, oldest first, without hashes. ERR_INVALID: the
 * page. */
int store_key_list(struct thread_store *s, struct slice agent_id, const struct store_page *page,
                   struct arena *arena, struct key_list *ret_list, struct errmsg *msg) MUST_USE;

/* Ends a key and the sessions opened with it; the first time counts. ERR_NOTFOUND. */
int store_key_revoke(struct thread_store *s, struct slice id, int64_t now_ms,
                     struct errmsg *msg) MUST_USE;

/* Whose key that is. ERR_NOTFOUND: unknown, revoked, or its agent was deleted. */
int store_key_find(struct thread_store *s, struct slice hash, struct arena *arena,
                   struct caller_record *ret_caller, struct errmsg *msg) MUST_USE;

/* The key was used; never goes backwards. No error for a key that is not there. */
int store_key_touch(struct thread_store *s, struct slice id, int64_t now_ms,
                    struct errmsg *msg) MUST_USE;

/* ERR_EXISTS: the hash is taken. ERR_NOTFOUND: the key is not a good one of that agent. */
int store_session_create(struct thread_store *s, const struct session_record *session,
                         struct errmsg *msg) MUST_USE;

/* Whose session that is. ERR_NOTFOUND: unknown, or past its time. */
int store_session_find(struct thread_store *s, struct slice hash, int64_t now_ms,
                       struct arena *arena, struct caller_record *ret_caller,
                       struct errmsg *msg) MUST_USE;

/* Signs out; no error where there is none. */
int store_session_delete(struct thread_store *s, struct slice hash, struct errmsg *msg) MUST_USE;

#endif
