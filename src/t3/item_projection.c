/* A projection is all that there is of a thread: its newest run by ordinal, that run's turns, its
 * newest message, and what it asks. */
#include "t3/item_parts.h"

#include "base/json_value.h"
#include "t3/fields.h"

#include <stdlib.h>

/* An attempt of a projection, and whether it is of the run that counts. Both borrowed. */
struct tie {
    struct slice attempt;
    bool tied;
};

struct ties {
    struct tie *list; /* sorted; owned */
    size_t count;
};

static int compare_ties(const void *a, const void *b)
{
    return slice_compare(((const struct tie *)a)->attempt, ((const struct tie *)b)->attempt);
}

static size_t count_elements(struct slice array)
{
    struct t3_elements e;
    struct slice value;
    size_t count = 0;

    t3_elements_begin(&e, array);
    while (t3_elements_next(&e, &value)) {
        count++;
    }
    return count;
}

static int read_ties(struct slice attempts, struct slice run, struct ties *ret)
{
    static const struct slice names[] = {SLICE("id"), SLICE("runId")};
    struct t3_elements e;
    struct slice value;
    struct slice v[ARRAY_COUNT(names)];
    size_t most = count_elements(attempts);

    *ret = (struct ties){.list = calloc(most + 1, sizeof(*ret->list))};
    if (ret->list == NULL) {
        return ERR_NOMEM;
    }
    t3_elements_begin(&e, attempts);
    while (t3_elements_next(&e, &value)) {
        if (t3_fields_read(value, T3_WANTED(names), v) && t3_field_id(v[0])) {
            ret->list[ret->count++] = (struct tie){v[0],
                                                   v[1].ptr != NULL && slice_equal(v[1], run)};
        }
    }
    qsort(ret->list, ret->count, sizeof(*ret->list), compare_ties);
    return 0;
}

/* Whether the turn is one of the run that the operation tells of. */
static bool is_of_newest_run(const struct t3_op *op, const struct t3_turn_facts *turn,
                             const struct ties *ties)
{
    if (turn->run.ptr != NULL) {
        return slice_equal(turn->run, op->run.id);
    }
    if (turn->attempt.ptr != NULL) {
        struct tie key = {.attempt = turn->attempt};
        const struct tie *found = bsearch(&key, ties->list, ties->count, sizeof(*ties->list),
                                          compare_ties);

        if (found != NULL) {
            return found->tied;
        }
        if (op->run.attempt.ptr != NULL && slice_equal(op->run.attempt, turn->attempt)) {
            return true;
        }
    }
    return t3_turn_may_be_of(turn, op->run.times,
                             op->state.ptr != NULL &&
                                 json_string_equal(op->state, SLICE("queued")));
}

static int read_turns(struct t3_item_reader *r, struct slice turns, struct slice attempts)
{
    struct t3_op *op = &r->at_hand;
    struct t3_elements e;
    struct slice value;
    struct ties ties;
    struct t3_turn_facts turn;
    int code;

    if (op->run_told != T3_TOLD_FACTS || count_elements(turns) == 0) {
        return 0;
    }
    code = read_ties(attempts, op->run.id, &ties);
    if (code != 0) {
        return code;
    }
    op->turn_told = T3_TOLD_FACTS;
    op->turn = (struct t3_turn_facts){.tied = true};
    t3_elements_begin(&e, turns);
    while (t3_elements_next(&e, &value)) {
        if (!t3_turn_read(value, &turn)) {
            r->skipped++;
        } else if (is_of_newest_run(op, &turn, &ties)) {
            t3_instant_advance(&op->turn.activity, &turn.activity);
        }
    }
    free(ties.list);
    return 0;
}

/* The newest run, which is the only one that counts. */
static void read_runs(struct t3_item_reader *r, struct slice runs)
{
    struct t3_op *op = &r->at_hand;
    struct t3_elements e;
    struct slice value;
    struct slice status;
    struct t3_run_facts run;

    op->run_told = T3_TOLD_NONE;
    op->state = SLICE("\"idle\"");
    t3_elements_begin(&e, runs);
    while (t3_elements_next(&e, &value)) {
        if (!t3_run_read(value, T3_SCOPE_CATCH_UP, &run, &status)) {
            r->skipped++;
        } else if (op->run_told == T3_TOLD_NONE || t3_run_is_newer(&run, &op->run)) {
            op->run_told = T3_TOLD_FACTS;
            op->run = run;
            op->state = status;
        }
    }
}

/* The newest message; of two of the same time the one behind the other. */
static void read_messages(struct t3_item_reader *r, struct slice messages)
{
    struct t3_op *op = &r->at_hand;
    struct t3_elements e;
    struct slice value;
    struct t3_message_facts message;

    op->message_told = T3_TOLD_NONE;
    t3_elements_begin(&e, messages);
    while (t3_elements_next(&e, &value)) {
        if (!t3_message_read(value, T3_SCOPE_CATCH_UP, &message)) {
            r->skipped++;
        } else if (op->message_told == T3_TOLD_NONE ||
                   t3_instant_compare(t3_message_order(&message), t3_message_order(&op->message)) >=
                       0) {
            op->message_told = T3_TOLD_FACTS;
            op->message = message;
        }
    }
}

/* Of several that wait the newest, which is the one that the shell tells of. */
static void read_requests(struct t3_item_reader *r, struct slice requests)
{
    static const struct t3_instant none = {.len = 0};
    struct t3_elements e;
    struct slice value;
    struct t3_request_facts request;
    struct t3_instant newest = none;

    r->at_hand.request = SLICE("null");
    t3_elements_begin(&e, requests);
    while (t3_elements_next(&e, &value)) {
        if (!t3_request_read(value, &request)) {
            r->skipped++;
        } else if (request.waits && t3_instant_compare(&request.created, &newest) >= 0) {
            r->at_hand.request = request.id;
            newest = request.created;
        }
    }
}

int t3_item_read_projection(struct t3_item_reader *r, struct slice projection)
{
    enum {
        THREAD,
        RUNS,
        MESSAGES,
        TURNS,
        ATTEMPTS,
        REQUESTS,
        COUNT
    };
    static const struct slice names[COUNT] = {
        [THREAD] = SLICE("thread"),     [RUNS] = SLICE("runs"),
        [MESSAGES] = SLICE("messages"), [TURNS] = SLICE("providerTurns"),
        [ATTEMPTS] = SLICE("attempts"), [REQUESTS] = SLICE("runtimeRequests"),
    };
    enum {
        ID,
        TITLE,
        ARCHIVED,
        DELETED,
        THREAD_COUNT
    };
    static const struct slice thread_names[THREAD_COUNT] = {
        [ID] = SLICE("id"),
        [TITLE] = SLICE("title"),
        [ARCHIVED] = SLICE("archivedAt"),
        [DELETED] = SLICE("deletedAt"),
    };
    struct slice v[COUNT];
    struct slice t[THREAD_COUNT];
    struct t3_op *op = &r->at_hand;

    if (!t3_fields_read(projection, T3_WANTED(names), v) ||
        !t3_fields_read(v[THREAD], T3_WANTED(thread_names), t) ||
        !t3_item_begin(r, T3_OP_UPSERT, T3_SCOPE_CATCH_UP, t[ID])) {
        return t3_item_skip(r);
    }
    r->applied++;
    if (t3_item_is_deletion(op, t[DELETED])) {
        return t3_item_tell(r);
    }
    op->creates = true;
    op->title = t3_text_told(t[TITLE], op->scope);
    if (t[ARCHIVED].ptr != NULL) {
        op->archived = t3_field_given(t[ARCHIVED]) ? T3_ARCHIVED_YES : T3_ARCHIVED_NO;
    }
    if (t3_field_array(v[RUNS])) {
        read_runs(r, v[RUNS]);
    }
    if (t3_field_array(v[MESSAGES])) {
        read_messages(r, v[MESSAGES]);
    }
    if (t3_field_array(v[REQUESTS])) {
        read_requests(r, v[REQUESTS]);
    }
    int code = read_turns(r, v[TURNS], v[ATTEMPTS]);

    return code == 0 ? t3_item_tell(r) : code;
}
