/* The reader at random: a server and a user that do anything, and what must hold whatever they do.
 * Part of reader_test.c, whose new_reader and subscribe it uses. */
#ifndef ARBE_TESTS_UNIT_T3_READER_RANDOM_H
#define ARBE_TESTS_UNIT_T3_READER_RANDOM_H

#include "base/dice.h"
#include "unit/t3/fake_time.h"
#include "unit/t3/rpc_fake.h"

#define RANDOM_ROUNDS 400
#define RANDOM_STEPS  300
#define MINE_MAX      6 /* subscriptions at once */

/* What a subscription should have been given, as the test keeps it. */
struct mine {
    uint64_t id; /* 0: none */
    int fresh;   /* no chunk of it was given since it began, or began again */
    int unacked; /* the one that was given last */
    int live;    /* one was acknowledged since then */
};

struct world {
    struct t3_reader *reader;
    uint64_t seed;
    struct mine mine[MINE_MAX];
    uint64_t newest_id;
    enum t3_reader_state state; /* that was told last */
    bool told;                  /* one was */
    int acks;                   /* that there ought to have been */
    int number;                 /* of the last chunk that was pushed */
    int given;                  /* of the last chunk that was given */
};

static unsigned roll(struct world *w, unsigned sides)
{
    return (unsigned)(dice_roll(&w->seed) % sides);
}

static struct mine *find_mine(struct world *w, uint64_t id)
{
    for (int i = 0; i < MINE_MAX; i++) {
        if (w->mine[i].id == id) {
            return &w->mine[i];
        }
    }
    return NULL;
}

static void forget_connection(struct world *w)
{
    for (int i = 0; i < MINE_MAX; i++) {
        w->mine[i] = (struct mine){.id = w->mine[i].id, .fresh = 1};
    }
}

static bool all_live(const struct world *w)
{
    for (int i = 0; i < MINE_MAX; i++) {
        if (w->mine[i].id != 0 && !w->mine[i].live) {
            return false;
        }
    }
    return true;
}

/* Whether a state may follow another one. REFUSED may follow any, and CONNECTING, by a retry that
 * comes before the refusal was told, too. */
static bool may_follow(enum t3_reader_state before, enum t3_reader_state state)
{
    switch (state) {
    case T3_READER_CONNECTING:
    case T3_READER_REFUSED:
        return true;
    case T3_READER_CATCHING_UP:
        return before == T3_READER_CONNECTING || before == T3_READER_LIVE;
    case T3_READER_LIVE:
        return before == T3_READER_CONNECTING || before == T3_READER_CATCHING_UP;
    case T3_READER_LOST:
        return before != T3_READER_LOST && before != T3_READER_REFUSED;
    }
    return false;
}

static void check_state(struct world *w, const struct t3_reader_event *event)
{
    assert_true(!w->told || may_follow(w->state, event->state));
    assert_true(w->told || event->state == T3_READER_CONNECTING ||
                event->state == T3_READER_REFUSED);
    w->told = true;
    w->state = event->state;
    switch (event->state) {
    case T3_READER_LOST:
    case T3_READER_REFUSED:
        assert_int_equal(event->delay_ms != 0, event->state == T3_READER_LOST);
        assert_in_range(event->delay_ms, event->state == T3_READER_LOST ? 250 : 0, 5000);
        assert_int_not_equal(event->error.code, T3_RPC_OK);
        assert_null(fake);
        forget_connection(w);
        break;
    case T3_READER_CONNECTING:
        assert_null(fake);
        forget_connection(w);
        break;
    case T3_READER_LIVE:
        assert_true(all_live(w));
        break;
    case T3_READER_CATCHING_UP:
        assert_false(all_live(w));
        break;
    }
}

static void check_event(struct world *w, const struct t3_reader_event *event)
{
    struct mine *mine = find_mine(w, event->id);
    int number;

    if (event->kind == T3_READER_EVENT_STATE) {
        check_state(w, event);
        return;
    }
    assert_int_equal(event->state, w->state);
    assert_true(w->state == T3_READER_CATCHING_UP || w->state == T3_READER_LIVE);
    assert_non_null(mine);
    if (event->kind == T3_READER_EVENT_ERROR) {
        assert_int_equal(event->error.code, T3_RPC_ERROR_FAILED);
        *mine = (struct mine){.id = 0};
        return;
    }
    if (event->kind == T3_READER_EVENT_BROKEN) {
        assert_in_range(event->delay_ms, 250, 5000);
        *mine = (struct mine){.id = mine->id, .fresh = 1};
        return;
    }
    assert_int_equal(sscanf(event->json, "[%d]", &number), 1);
    assert_true(number > w->given); /* in order, each once */
    w->given = number;
    assert_int_equal(event->fresh, mine->fresh);
    mine->fresh = 0;
    mine->unacked = 1;
}

/* The server does something. */
static void serve(struct world *w)
{
    static const enum t3_rpc_code ends[] = {
        T3_RPC_ERROR_NETWORK, T3_RPC_ERROR_AUTH,    T3_RPC_ERROR_TLS,     T3_RPC_ERROR_DEFECT,
        T3_RPC_ERROR_CLOSED,  T3_RPC_ERROR_TIMEOUT, T3_RPC_ERROR_VERSION, T3_RPC_ERROR_LIMIT,
    };
    static const enum t3_rpc_code fails[] = {T3_RPC_ERROR_FAILED, T3_RPC_ERROR_FAILED,
                                             T3_RPC_ERROR_DIED, T3_RPC_ERROR_SCOPE};
    unsigned what = roll(w, 40);
    uint64_t request;
    char json[16];

    if (fake == NULL || fake->closed) {
        return;
    }
    if (fake->request_count == 0 || what < 2) {
        if (what < 4) {
            fake_closed(ends[roll(w, ARRAY_COUNT(ends))]);
        }
        return;
    }
    request = 1 + roll(w, (unsigned)fake->request_count);
    if (fake->requests[request - 1].over) {
        return;
    }
    if (what == 3) {
        fake_done(request);
    } else if (what < 6) {
        fake_error(request, fails[roll(w, ARRAY_COUNT(fails))]);
    } else if (!fake->requests[request - 1].unacked) {
        (void)snprintf(json, sizeof(json), "[%d]", ++w->number);
        fake_chunk(request, json);
        fake->requests[request - 1].unacked = true; /* none follows before it was acknowledged */
    }
}

static void subscribe_at_random(struct world *w)
{
    struct mine *mine = &w->mine[roll(w, MINE_MAX)];

    if (mine->id != 0) {
        t3_reader_unsubscribe(w->reader, mine->id);
        *mine = (struct mine){.id = 0};
    } else {
        *mine = (struct mine){.id = subscribe(w->reader, "m"), .fresh = 1};
        assert_true(mine->id > w->newest_id);
        w->newest_id = mine->id;
    }
}

static void ack_at_random(struct world *w)
{
    struct mine *mine = &w->mine[roll(w, MINE_MAX)];

    if (mine->id == 0) {
        return;
    }
    if (mine->unacked && fake != NULL && !fake->closed) {
        w->acks++;
        mine->live = 1;
    }
    mine->unacked = 0;
    t3_reader_ack(w->reader, mine->id);
    assert_int_equal(fake_acks, w->acks);
}

/* The user does something. */
static void use(struct world *w)
{
    static const struct t3_rpc_error error = {.code = T3_RPC_ERROR_VERSION, .message = "old"};
    struct t3_reader_event event;
    unsigned what = roll(w, 40);

    if (what < 20) {
        if (t3_reader_next(w->reader, 0, &event)) {
            check_event(w, &event);
        }
    } else if (what < 30) {
        ack_at_random(w);
    } else if (what < 36) {
        subscribe_at_random(w);
    } else if (what == 36) {
        t3_reader_retry(w->reader);
    } else if (what == 37 && roll(w, 4) == 0) {
        t3_reader_refuse(w->reader, &error);
        forget_connection(w);
    } else if (what == 38) {
        fake_sleep(roll(w, 3000));
    }
}

/* Whatever server and user do: states in a legal order, live only when all are, each chunk given
 * once and in order and acknowledged once, ids that stay, one connection at a time. */
static void test_at_random(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < RANDOM_ROUNDS; round++) {
        struct world w = {.reader = new_reader(NULL), .seed = round};
        bool opened_before = false;
        const struct t3_rpc *last = NULL;

        for (int i = 0; i < RANDOM_STEPS; i++) {
            fake_dice = (uint64_t)roll(&w, UINT32_MAX) << 32;
            if (fake != last) {
                opened_before = false;
            }
            last = fake;
            if (fake != NULL && !opened_before && !fake->closed && roll(&w, 4) == 0) {
                fake_open();
                opened_before = true;
            } else if (opened_before) {
                serve(&w);
            }
            use(&w);
        }
        t3_reader_free(w.reader);
        assert_null(fake);
    }
}

#endif
