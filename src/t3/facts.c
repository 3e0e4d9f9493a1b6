/* A member of a wrong kind is as absent. */
#include "t3/facts.h"

#include "base/json_value.h"
#include "base/number.h"
#include "t3/fields.h"

/* A text as the scope sees it: ptr NULL where it is not told. */
struct slice t3_text_told(struct slice value, enum t3_scope scope)
{
    static const struct slice nothing = {NULL, 0};

    if (t3_field_string(value)) {
        return value;
    }
    if (scope == T3_SCOPE_LISTED) {
        return SLICE("null");
    }
    return scope != T3_SCOPE_SPARSE && t3_field_null(value) ? value : nothing;
}

bool t3_run_is_newer(const struct t3_run_facts *run, const struct t3_run_facts *known)
{
    if (run->ordinal > 0 && known->ordinal > 0) {
        return run->ordinal > known->ordinal;
    }
    return t3_instant_compare(&run->times[T3_RUN_REQUESTED], &known->times[T3_RUN_REQUESTED]) > 0;
}

bool t3_run_is_over(struct slice status)
{
    static const struct slice names[] = {
        SLICE("completed"), SLICE("interrupted"), SLICE("failed"),
        SLICE("cancelled"), SLICE("rolled_back"),
    };

    for (size_t i = 0; t3_field_string(status) && i < ARRAY_COUNT(names); i++) {
        if (json_string_equal(status, names[i])) {
            return true;
        }
    }
    return false;
}

const struct t3_instant *t3_message_order(const struct t3_message_facts *message)
{
    return message->created.len > 0 ? &message->created : &message->updated;
}

bool t3_turn_may_be_of(const struct t3_turn_facts *turn,
                       const struct t3_instant run_times[static T3_RUN_TIME_COUNT], bool queued)
{
    if (queued && run_times[T3_RUN_STARTED].len == 0 && run_times[T3_RUN_WORK_STARTED].len == 0) {
        return false;
    }
    return turn->started.len == 0 ||
           t3_instant_compare(&turn->started, &run_times[T3_RUN_REQUESTED]) >= 0;
}

void t3_run_read_time(struct t3_run_facts *run, enum t3_run_time which, struct slice value,
                      enum t3_scope scope)
{
    run->times[which] = t3_instant_read(value);
    run->cleared[which] = scope != T3_SCOPE_SPARSE && t3_field_null(value);
}

/* False when it is none. ret_status is as text_told. */
bool t3_run_read(struct slice value, enum t3_scope scope, struct t3_run_facts *ret_run,
                 struct slice *ret_status)
{
    enum {
        ID,
        ORDINAL,
        STATUS,
        REQUESTED,
        WORK_STARTED,
        STARTED,
        COMPLETED,
        ATTEMPT,
        COUNT
    };
    static const struct slice names[COUNT] = {
        [ID] = SLICE("id"),
        [ORDINAL] = SLICE("ordinal"),
        [STATUS] = SLICE("status"),
        [REQUESTED] = SLICE("requestedAt"),
        [WORK_STARTED] = SLICE("workStartedAt"),
        [STARTED] = SLICE("startedAt"),
        [COMPLETED] = SLICE("completedAt"),
        [ATTEMPT] = SLICE("activeAttemptId"),
    };
    struct slice v[COUNT];

    if (!t3_fields_read(value, T3_WANTED(names), v) || !t3_field_id(v[ID])) {
        return false;
    }
    *ret_run = (struct t3_run_facts){.id = v[ID]};
    if (v[ORDINAL].ptr == NULL || !json_number_u64(v[ORDINAL], NUMBER_JS_MAX, &ret_run->ordinal)) {
        ret_run->ordinal = 0;
    }
    t3_run_read_time(ret_run, T3_RUN_REQUESTED, v[REQUESTED], scope);
    t3_run_read_time(ret_run, T3_RUN_WORK_STARTED, v[WORK_STARTED], scope);
    t3_run_read_time(ret_run, T3_RUN_STARTED, v[STARTED], scope);
    t3_run_read_time(ret_run, T3_RUN_COMPLETED, v[COMPLETED], scope);
    if (t3_field_id(v[ATTEMPT])) {
        ret_run->attempt = v[ATTEMPT];
    }
    *ret_status = t3_text_told(v[STATUS], scope);
    return true;
}

bool t3_message_read(struct slice value, enum t3_scope scope, struct t3_message_facts *ret)
{
    enum {
        ID,
        TEXT,
        CREATED,
        UPDATED,
        COUNT
    };
    static const struct slice names[COUNT] = {
        [ID] = SLICE("id"),
        [TEXT] = SLICE("text"),
        [CREATED] = SLICE("createdAt"),
        [UPDATED] = SLICE("updatedAt"),
    };
    struct slice v[COUNT];

    if (!t3_fields_read(value, T3_WANTED(names), v) || !t3_field_id(v[ID])) {
        return false;
    }
    *ret = (struct t3_message_facts){
        .id = v[ID],
        .text = t3_text_told(v[TEXT], scope),
        .created = t3_instant_read(v[CREATED]),
        .updated = t3_instant_read(v[UPDATED]),
    };
    return true;
}

bool t3_request_read(struct slice value, struct t3_request_facts *ret)
{
    enum {
        ID,
        STATUS,
        CREATED,
        COUNT
    };
    static const struct slice names[COUNT] = {
        [ID] = SLICE("id"),
        [STATUS] = SLICE("status"),
        [CREATED] = SLICE("createdAt"),
    };
    struct slice v[COUNT];

    if (!t3_fields_read(value, T3_WANTED(names), v) || !t3_field_id(v[ID])) {
        return false;
    }
    *ret = (struct t3_request_facts){
        .id = v[ID],
        .told = t3_field_string(v[STATUS]),
        .created = t3_instant_read(v[CREATED]),
    };
    ret->waits = ret->told && json_string_equal(v[STATUS], SLICE("pending"));
    return true;
}

bool t3_turn_read(struct slice value, struct t3_turn_facts *ret)
{
    enum {
        RUN,
        ATTEMPT,
        REQUESTED,
        WORK_STARTED,
        STARTED,
        COMPLETED,
        COUNT
    };
    static const struct slice names[COUNT] = {
        [RUN] = SLICE("runId"),
        [ATTEMPT] = SLICE("runAttemptId"),
        [REQUESTED] = SLICE("requestedAt"),
        [WORK_STARTED] = SLICE("workStartedAt"),
        [STARTED] = SLICE("startedAt"),
        [COMPLETED] = SLICE("completedAt"),
    };
    struct slice v[COUNT];

    if (!t3_fields_read(value, T3_WANTED(names), v)) {
        return false;
    }
    *ret = (struct t3_turn_facts){.started = t3_instant_read(v[STARTED])};
    for (size_t i = REQUESTED; i < COUNT; i++) {
        struct t3_instant time = t3_instant_read(v[i]);

        t3_instant_advance(&ret->activity, &time);
    }
    if (t3_field_id(v[RUN])) {
        ret->run = v[RUN];
    }
    if (t3_field_id(v[ATTEMPT])) {
        ret->attempt = v[ATTEMPT];
    }
    return true;
}
