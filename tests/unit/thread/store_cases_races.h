/* The part of the list in which many threads want the same. See store_rig.h. */
#ifndef ARBE_TESTS_UNIT_THREAD_STORE_CASES_RACES_H
#define ARBE_TESTS_UNIT_THREAD_STORE_CASES_RACES_H

#include "unit/thread/store_rig.h"

#define RACERS_MAX 50

struct race {
    struct store_rig *rig;
    pthread_barrier_t start;
};

struct racer {
    struct race *race;
    unsigned number;
    int code;
    struct store_rig own; /* with an arena of its own */
    int (*run)(struct store_rig *rig, unsigned number);
};

static void *race_one(void *context)
{
    struct racer *racer = context;
    racer->own.store = racer->race->rig->store;
    arena_init(&racer->own.arena, RIG_ARENA_BYTES);
    (void)pthread_barrier_wait(&racer->race->start);
    racer->code = racer->run(&racer->own, racer->number);
    arena_finish(&racer->own.arena);
    return NULL;
}

/* Runs `count` at once. How many answered with `code`; all others answered `other`. */
static size_t race(struct store_rig *rig, size_t count,
                   int (*run)(struct store_rig *rig, unsigned number), int code, int other)
{
    struct race race = {.rig = rig};
    struct racer racers[RACERS_MAX];
    pthread_t threads[RACERS_MAX];
    size_t hits = 0;
    assert_int_equal(pthread_barrier_init(&race.start, NULL, (unsigned)count), 0);
    for (unsigned i = 0; i < count; i++) {
        racers[i] = (struct racer){.race = &race, .number = i, .run = run};
        assert_int_equal(pthread_create(&threads[i], NULL, race_one, &racers[i]), 0);
    }
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        if (racers[i].code != code && racers[i].code != other) {
            fail_msg("racer %zu: %s: %s", i, err_name(racers[i].code), racers[i].own.msg.text);
        }
        hits += racers[i].code == code;
    }
    assert_int_equal(pthread_barrier_destroy(&race.start), 0);
    return hits;
}

static int claim_one(struct store_rig *rig, unsigned number)
{
    struct agent_record agent = agent_of(rig, 100 + number);
    struct key_record key = key_of(rig, 100 + number, 0);
    struct invite_claim claim = {
        .hash = HASH(1), .agent_id = agent.id, .agent = &agent, .key = &key, .now_ms = 5};
    return store_invite_claim(rig->store, &claim, NULL, 0, &rig->msg);
}

/* Of many who claim one invite one gets in. */
static void races_for_an_invite(void **state)
{
    struct store_rig *rig = *state;
    struct member_list list;
    add_house(rig, 1);
    struct invite_record invite = {.id = INVITE(1),
                                   .house_id = HOUSE(1),
                                   .hash = HASH(1),
                                   .role = ROLE_MEMBER,
                                   .created_by = AGENT(1),
                                   .expires_ms = 100};
    OK(store_invite_create(rig->store, &invite, &rig->msg));
    assert_int_equal(race(rig, 20, claim_one, 0, ERR_NOTFOUND), 1);
    OK(store_member_list(rig->store, HOUSE(1), &first_page, &rig->arena, &list, &rig->msg));
    assert_int_equal(list.count, 2);
}

static int leave(struct store_rig *rig, unsigned number)
{
    return store_member_remove(rig->store, HOUSE(1), AGENT(1 + number), NULL, 0, &rig->msg);
}

static int delete_agent(struct store_rig *rig, unsigned number)
{
    return store_agent_delete(rig->store, AGENT(1 + number), 5, NULL, 0, &rig->msg);
}

static int step_down(struct store_rig *rig, unsigned number)
{
    enum member_role before = ROLE_NONE;
    struct member_record member = {.agent_id = AGENT(1 + number), .role = ROLE_MEMBER};
    return store_member_put(rig->store, HOUSE(1), &member, NULL, 0, &before, &rig->msg);
}

/* Of owners who leave, step down or are deleted at once one stays, whichever way they go. */
static void races_of_last_owners(void **state)
{
    struct store_rig *rig = *state;
    int (*const ways[])(struct store_rig *, unsigned) = {leave, step_down, leave, delete_agent};
    add_house(rig, 1);
    for (unsigned i = 2; i <= 8; i++) {
        add_agent(rig, i);
    }
    for (size_t way = 0; way < ARRAY_COUNT(ways); way++) {
        unsigned owners = 0;
        for (unsigned i = 1; i <= 8; i++) {
            add_member(rig, 1, i, ROLE_OWNER);
        }
        assert_int_equal(race(rig, 8, ways[way], 0, ERR_CONFLICT), 7);
        for (unsigned i = 1; i <= 8; i++) {
            owners += role_in(rig, 1, i) == ROLE_OWNER;
        }
        assert_int_equal(owners, 1);
    }
    OK(store_verify(rig->store, &rig->msg));
}

static int bump_some(struct store_rig *rig, unsigned number)
{
    int64_t seen = 0;
    for (unsigned i = 0; i < 20; i++) {
        char offset[16];
        unsigned at = (i * 53 + number * 17) % 1000;
        (void)snprintf(offset, sizeof(offset), "%08u", at);
        struct recency_row rows[] = {
            {.thread_id = THREAD(1), .ts = at, .offset = slice_of(offset)},
            {.thread_id = THREAD(2), .ts = 1000 - at, .offset = slice_of(offset)},
        };
        struct thread_record got;
        int code = store_recency_write(rig->store, rows, 2, &rig->msg);
        code = code ? code : store_thread_get(rig->store, THREAD(1), &rig->arena, &got, &rig->msg);
        if (code) {
            return code;
        }
        if (got.last_entry_ts < seen || got.last_entry_ts < (int64_t)at) {
            return ERR_CORRUPT; /* it went backwards */
        }
        seen = got.last_entry_ts;
    }
    return 0;
}

/* However many write, recency only ever goes forward, and readers never find the store busy. */
static void races_of_recency(void **state)
{
    struct store_rig *rig = *state;
    struct thread_record got;
    int64_t most = 0;
    int64_t least = 1000;
    for (unsigned number = 0; number < 50; number++) {
        for (unsigned i = 0; i < 20; i++) {
            int64_t at = (i * 53 + number * 17) % 1000;
            most = at > most ? at : most;
            least = at < least ? at : least;
        }
    }
    add_house(rig, 1);
    add_thread(rig, 1, 1);
    add_thread(rig, 2, 1);
    assert_int_equal(race(rig, 50, bump_some, 0, 0), 50);
    OK(store_thread_get(rig->store, THREAD(1), &rig->arena, &got, &rig->msg));
    assert_int_equal(got.last_entry_ts, most);
    OK(store_thread_get(rig->store, THREAD(2), &rig->arena, &got, &rig->msg));
    assert_int_equal(got.last_entry_ts, 1000 - least);
}

static int put_config(struct store_rig *rig, unsigned number)
{
    char text[16];
    (void)snprintf(text, sizeof(text), "{%u}", number);
    for (;;) {
        struct slice before = {0};
        int code = store_config_get(rig->store, CONFIG_HOUSE, HOUSE(1), &rig->arena, &before,
                                    &rig->msg);
        char *joined = arena_try_alloc(&rig->arena, before.len + sizeof(text));
        if (code || !joined) {
            return code ? code : ERR_NOMEM;
        }
        memcpy(joined, before.ptr ? before.ptr : "", before.len);
        memcpy(joined + before.len, text, strlen(text));
        struct slice patch = {joined, before.len + strlen(text)};
        code = store_config_put(rig->store, CONFIG_HOUSE, HOUSE(1), before, patch, 5, &rig->msg);
        if (code != ERR_AGAIN) {
            return code;
        }
    }
}

/* Of changes that are merged and put at once none is lost. */
static void races_of_configs(void **state)
{
    struct store_rig *rig = *state;
    struct slice patch = {0};
    add_house(rig, 1);
    assert_int_equal(race(rig, 20, put_config, 0, 0), 20);
    OK(store_config_get(rig->store, CONFIG_HOUSE, HOUSE(1), &rig->arena, &patch, &rig->msg));
    assert_int_equal(patch.len, 10 * strlen("{1}") + 10 * strlen("{10}"));
}

static int add_same(struct store_rig *rig, unsigned number)
{
    size_t added = 0;
    struct usage_record event = {.house_id = HOUSE(1),
                                 .thread_id = THREAD(1),
                                 .entry_id = ENTRY(1),
                                 .capability = SLICE("llm"),
                                 .input_tokens = number,
                                 .cost_usd = 1};
    int code = store_usage_add(rig->store, &event, 1, &added, &rig->msg);
    return code ? code : added ? 0 : ERR_EXISTS;
}

/* The same spend told of many times at once is counted once. */
static void races_of_usage(void **state)
{
    struct store_rig *rig = *state;
    struct usage_sum sum;
    assert_int_equal(race(rig, 20, add_same, 0, ERR_EXISTS), 1);
    OK(store_usage_house(rig->store, HOUSE(1), &rig->arena, &sum, &rig->msg));
    assert_int_equal(sum.total.events, 1);
}

static int move_one(struct store_rig *rig, unsigned number)
{
    struct outbox_item item = item_of(rig, 1);
    return store_thread_status_move(rig->store, THREAD(1), THREAD_OPEN,
                                    number % 2 ? THREAD_RUNNING : THREAD_IDLE, &item, 1, &rig->msg);
}

/* Of many who move a status from the same one moves it, with its one signal. */
static void races_of_status(void **state)
{
    struct store_rig *rig = *state;
    add_house(rig, 1);
    add_thread(rig, 1, 1);
    assert_int_equal(race(rig, 20, move_one, 0, ERR_CONFLICT), 1);
    assert_int_equal(items_of(rig, THREAD(1)), 1);
}

#endif
