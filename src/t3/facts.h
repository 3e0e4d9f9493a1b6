/* What a record tells of a run, a message, a turn or a request, and which of two is newer. Ids and
 * texts are JSON values borrowed from the record. Pure; nothing is allocated. */
#ifndef ARBE_T3_FACTS_H
#define ARBE_T3_FACTS_H

#include "base/attr.h"
#include "t3/instant.h"

/* How much an operation's record is. */
enum t3_scope {
    T3_SCOPE_SPARSE,   /* an event: what is absent or null is not told */
    T3_SCOPE_WHOLE,    /* a thread of the shell: null means there is none */
    T3_SCOPE_CATCH_UP, /* a projection: and its runs and messages are all there are */
    T3_SCOPE_LISTED,   /* a thread of a shell snapshot: and absent is as null */
};

enum t3_run_time {
    T3_RUN_REQUESTED,
    T3_RUN_WORK_STARTED,
    T3_RUN_STARTED,
    T3_RUN_COMPLETED,
    T3_RUN_TIME_COUNT,
};

struct t3_run_facts {
    struct slice id;                            /* ptr NULL: a shell that does not say which */
    uint64_t ordinal;                           /* 0: not told */
    struct t3_instant times[T3_RUN_TIME_COUNT]; /* those that were told */
    bool cleared[T3_RUN_TIME_COUNT];            /* told to be none, by a whole record */
    struct slice attempt;                       /* the active one; ptr NULL: not told */
};

struct t3_message_facts {
    struct slice id;
    struct slice text; /* ptr NULL: not told */
    struct t3_instant created;
    struct t3_instant updated;
};

struct t3_turn_facts {
    struct slice run;           /* of that run; ptr NULL: not told */
    struct slice attempt;       /* of that attempt; ptr NULL: not told */
    bool tied;                  /* known to be of the run of the same operation */
    struct t3_instant started;  /* of the turn */
    struct t3_instant activity; /* the latest of its times */
};

struct t3_request_facts {
    struct slice id;
    bool told;  /* whether it waits */
    bool waits; /* for an answer */
    struct t3_instant created;
};

/* A text as the scope has it: the JSON string, null for none, ptr NULL where nothing is told. */
struct slice t3_text_told(struct slice value, enum t3_scope scope);

/* Reads a run, and its status as t3_text_told has it. False when it is none: it has no id. */
bool t3_run_read(struct slice value, enum t3_scope scope, struct t3_run_facts *ret_run,
                 struct slice *ret_status) MUST_USE;

/* Takes in one time of a run. */
void t3_run_read_time(struct t3_run_facts *run, enum t3_run_time which, struct slice value,
                      enum t3_scope scope);

/* Reads a message. False when it is none: it has no id. */
bool t3_message_read(struct slice value, enum t3_scope scope,
                     struct t3_message_facts *ret) MUST_USE;

/* Reads a provider's turn. False when it is no object. */
bool t3_turn_read(struct slice value, struct t3_turn_facts *ret) MUST_USE;

/* Reads what a run asks a person. False when it is none: it has no id. */
bool t3_request_read(struct slice value, struct t3_request_facts *ret) MUST_USE;

/* Whether a status, a JSON value, says that a run is over; one that is unknown here does not. */
bool t3_run_is_over(struct slice status);

/* Whether `run` is newer than `known`: by ordinal, else by time of request. What cannot be compared
 * is not newer, but than a run of which nothing is known that could be. */
bool t3_run_is_newer(const struct t3_run_facts *run, const struct t3_run_facts *known);

/* What messages are ordered by: when it was made or, where that is not told, changed. */
const struct t3_instant *t3_message_order(const struct t3_message_facts *message);

/* Whether a turn of which nobody says what run it is of may be of this one: a run that waits has
 * none, and none began before the run was asked for. `queued`: the state of the run. */
bool t3_turn_may_be_of(const struct t3_turn_facts *turn,
                       const struct t3_instant run_times[static T3_RUN_TIME_COUNT], bool queued);

#endif
