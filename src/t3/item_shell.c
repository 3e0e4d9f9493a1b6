/* The shell tells of each thread in one record, which holds a summary of its latest run and its
 * latest message. */
#include "t3/item_parts.h"

#include "base/json_value.h"
#include "t3/fields.h"

#include <assert.h>

/* Where the shell keeps a thread. */
enum place {
    PLACE_UNKNOWN,
    PLACE_ACTIVE,
    PLACE_ARCHIVE,
};

static void read_shell_run(struct t3_op *op, struct slice id, const struct slice *times)
{
    static const enum t3_run_time which[] = {T3_RUN_REQUESTED, T3_RUN_STARTED, T3_RUN_COMPLETED};
    bool told = t3_field_id(id);

    if (t3_field_null(id)) {
        op->run_told = T3_TOLD_NONE;
        return;
    }
    if (told) {
        op->run.id = id;
    }
    for (size_t i = 0; i < ARRAY_COUNT(which); i++) {
        t3_run_read_time(&op->run, which[i], times[i], op->scope);
        told = told || t3_field_given(times[i]);
    }
    if (told) {
        op->run_told = T3_TOLD_FACTS;
    } else if (op->scope == T3_SCOPE_LISTED) {
        op->run_told = T3_TOLD_NONE;
    }
}

static void read_shell_message(struct t3_op *op, struct slice message)
{
    if (message.ptr != NULL && t3_message_read(message, op->scope, &op->message)) {
        op->message_told = T3_TOLD_FACTS;
    } else if (t3_field_null(message) || op->scope == T3_SCOPE_LISTED) {
        op->message_told = T3_TOLD_NONE;
    }
}

/* What is not as the board knows it asks all the same: only the id is not to be had. */
static struct slice read_shell_request(struct slice request)
{
    static const struct slice names[] = {SLICE("id")};
    struct slice id;

    if (request.ptr == NULL || json_kind(request) != JSON_OBJECT) {
        return SLICE("null");
    }
    return t3_fields_read(request, T3_WANTED(names), &id) && t3_field_id(id) ? id : SLICE("\"\"");
}

static enum t3_archived read_place(enum place place, struct slice archived_at)
{
    if (place == PLACE_ARCHIVE || t3_field_given(archived_at)) {
        return T3_ARCHIVED_YES;
    }
    return place == PLACE_ACTIVE || t3_field_null(archived_at) ? T3_ARCHIVED_NO
                                                               : T3_ARCHIVED_NOT_TOLD;
}

enum thread_member {
    THREAD_ID,
    THREAD_TITLE,
    THREAD_STATUS,
    THREAD_ARCHIVED,
    THREAD_DELETED,
    THREAD_MESSAGE,
    THREAD_REQUEST,
    THREAD_PLAN,
    THREAD_RUN,
    THREAD_RUN_TIMES, /* the first of three */
    THREAD_MEMBER_COUNT = THREAD_RUN_TIMES + 3,
};

static const struct slice thread_names[THREAD_MEMBER_COUNT] = {
    [THREAD_ID] = SLICE("id"),
    [THREAD_TITLE] = SLICE("title"),
    [THREAD_STATUS] = SLICE("status"),
    [THREAD_ARCHIVED] = SLICE("archivedAt"),
    [THREAD_DELETED] = SLICE("deletedAt"),
    [THREAD_MESSAGE] = SLICE("latestVisibleMessage"),
    [THREAD_REQUEST] = SLICE("pendingRuntimeRequest"),
    [THREAD_PLAN] = SLICE("hasActionableProposedPlan"),
    [THREAD_RUN] = SLICE("latestRunId"),
    [THREAD_RUN_TIMES] = SLICE("latestRunRequestedAt"),
    [THREAD_RUN_TIMES + 1] = SLICE("latestRunStartedAt"),
    [THREAD_RUN_TIMES + 2] = SLICE("latestRunCompletedAt"),
};

/* A thread of the shell by its members. Counts it as skipped when it has no id. */
static int read_thread(struct t3_item_reader *r, const struct slice *v, enum t3_scope scope,
                       enum place place)
{
    struct t3_op *op = &r->at_hand;

    if (!t3_item_begin(r, T3_OP_UPSERT, scope, v[THREAD_ID])) {
        return t3_item_skip(r);
    }
    r->applied += scope != T3_SCOPE_LISTED; /* a snapshot is one item, whatever it lists */
    if (t3_item_is_deletion(op, v[THREAD_DELETED])) {
        return t3_item_tell(r);
    }
    op->creates = true;
    op->title = t3_text_told(v[THREAD_TITLE], scope);
    op->state = t3_text_told(v[THREAD_STATUS], scope);
    op->archived = read_place(place, v[THREAD_ARCHIVED]);
    read_shell_run(op, v[THREAD_RUN], &v[THREAD_RUN_TIMES]);
    read_shell_message(op, v[THREAD_MESSAGE]);
    op->request = read_shell_request(v[THREAD_REQUEST]);
    op->plan = v[THREAD_PLAN].ptr != NULL && json_kind(v[THREAD_PLAN]) == JSON_TRUE ? T3_TOLD_FACTS
                                                                                    : T3_TOLD_NONE;
    return t3_item_tell(r);
}

int t3_item_read_updated(struct t3_item_reader *r, struct slice thread, struct slice location)
{
    struct slice v[THREAD_MEMBER_COUNT];
    enum place place = PLACE_UNKNOWN;

    if (!t3_fields_read(thread, T3_WANTED(thread_names), v)) {
        return t3_item_skip(r);
    }
    if (t3_field_string(location)) {
        place = json_string_equal(location, SLICE("archive"))  ? PLACE_ARCHIVE
                : json_string_equal(location, SLICE("active")) ? PLACE_ACTIVE
                                                               : PLACE_UNKNOWN;
    }
    return read_thread(r, v, T3_SCOPE_WHOLE, place);
}

static int read_list(struct t3_item_reader *r, struct slice threads, enum place place)
{
    struct t3_elements e;
    struct slice v[THREAD_MEMBER_COUNT];
    struct slice value;
    int good;
    int code = 0;

    t3_elements_begin(&e, threads);
    while (code == 0 && (good = t3_elements_read(&e, T3_WANTED(thread_names), v, &value)) != 0) {
        code = good > 0 ? read_thread(r, v, T3_SCOPE_LISTED, place) : t3_item_skip(r);
    }
    return code;
}

static int tell_bound(struct t3_item_reader *r, enum t3_op_kind kind)
{
    bool begun = t3_item_begin(r, kind, T3_SCOPE_LISTED, (struct slice){NULL, 0});

    assert(begun); /* no thread is meant */
    return t3_item_tell(r);
}

/* What is no list of threads whole must not empty the board. */
int t3_item_read_shell(struct t3_item_reader *r, struct slice snapshot, struct errmsg *msg)
{
    enum {
        VERSION,
        THREADS,
        ARCHIVED,
        UPDATED,
        THREAD,
        COUNT
    };
    static const struct slice names[COUNT] = {
        [VERSION] = SLICE("schemaVersion"),
        [THREADS] = SLICE("threads"),
        [ARCHIVED] = SLICE("archivedThreads"),
        [UPDATED] = SLICE("updatedAt"),
        [THREAD] = SLICE("thread"),
    };
    struct slice v[COUNT];
    int code;

    if (!t3_fields_read(snapshot, T3_WANTED(names), v)) {
        return t3_item_skip(r);
    }
    if (v[VERSION].ptr == NULL && v[ARCHIVED].ptr == NULL &&
        (v[UPDATED].ptr != NULL || v[THREAD].ptr != NULL)) {
        return t3_item_refuse_v1(msg, v[THREAD].ptr != NULL
                                          ? SLICE("a snapshot without a projection")
                                          : SLICE("a snapshot without schemaVersion"));
    }
    if (!t3_field_array(v[THREADS]) ||
        (t3_field_given(v[ARCHIVED]) && !t3_field_array(v[ARCHIVED]))) {
        return t3_item_skip(r);
    }
    r->applied++;
    code = tell_bound(r, T3_OP_SNAPSHOT_BEGINS);
    code = code == 0 ? read_list(r, v[THREADS], PLACE_ACTIVE) : code;
    code = code == 0 && t3_field_array(v[ARCHIVED]) ? read_list(r, v[ARCHIVED], PLACE_ARCHIVE)
                                                    : code;
    return code == 0 ? tell_bound(r, T3_OP_SNAPSHOT_ENDS) : code;
}
