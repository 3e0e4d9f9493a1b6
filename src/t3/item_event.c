/* Events of a thread. Each is sparse: it tells of one thing, and of that not always all. */
#include "t3/item_parts.h"

#include "base/json_value.h"
#include "t3/fields.h"

enum event_member {
    EVENT_TYPE,
    EVENT_THREAD,
    EVENT_RUN,
    EVENT_PAYLOAD,
    EVENT_MEMBER_COUNT
};

/* The id of the thread: that of the envelope, else of the payload by that name. */
static bool begin_event(struct t3_item_reader *r, const struct slice *event, struct slice name)
{
    struct slice id = event[EVENT_THREAD];

    if (id.ptr == NULL && event[EVENT_PAYLOAD].ptr != NULL &&
        !t3_fields_read(event[EVENT_PAYLOAD], &(const struct t3_wanted){&name, 1}, &id)) {
        return false;
    }
    return t3_item_begin(r, T3_OP_UPSERT, T3_SCOPE_SPARSE, id);
}

static int end_event(struct t3_item_reader *r)
{
    r->applied++;
    return t3_item_tell(r);
}

static int read_thread_event(struct t3_item_reader *r, const struct slice *event)
{
    enum {
        TITLE,
        ARCHIVED,
        DELETED,
        COUNT
    };
    static const struct slice names[COUNT] = {
        [TITLE] = SLICE("title"),
        [ARCHIVED] = SLICE("archivedAt"),
        [DELETED] = SLICE("deletedAt"),
    };
    struct slice v[COUNT];
    struct t3_op *op = &r->at_hand;

    if (!begin_event(r, event, SLICE("id"))) {
        return t3_item_skip(r);
    }
    if (json_string_equal(event[EVENT_TYPE], SLICE("thread.deleted"))) {
        op->kind = T3_OP_DELETE;
        return end_event(r);
    }
    if (!t3_fields_read(event[EVENT_PAYLOAD], T3_WANTED(names), v)) {
        return t3_item_skip(r);
    }
    if (t3_item_is_deletion(op, v[DELETED])) {
        return end_event(r);
    }
    op->creates = json_string_equal(event[EVENT_TYPE], SLICE("thread.created"));
    op->title = t3_text_told(v[TITLE], op->scope);
    /* In an event null is as absent, so only its type can tell that a thread is back. */
    if (json_string_equal(event[EVENT_TYPE], SLICE("thread.unarchived"))) {
        op->archived = T3_ARCHIVED_NO;
    } else if (t3_field_given(v[ARCHIVED]) ||
               json_string_equal(event[EVENT_TYPE], SLICE("thread.archived"))) {
        op->archived = T3_ARCHIVED_YES;
    }
    return end_event(r);
}

static int read_run_event(struct t3_item_reader *r, const struct slice *event)
{
    struct t3_op *op = &r->at_hand;

    if (!begin_event(r, event, SLICE("threadId")) ||
        !t3_run_read(event[EVENT_PAYLOAD], op->scope, &op->run, &op->state)) {
        return t3_item_skip(r);
    }
    op->run_told = T3_TOLD_FACTS;
    return end_event(r);
}

static int read_turn_event(struct t3_item_reader *r, const struct slice *event)
{
    struct t3_op *op = &r->at_hand;

    if (!begin_event(r, event, SLICE("threadId")) ||
        !t3_turn_read(event[EVENT_PAYLOAD], &op->turn)) {
        return t3_item_skip(r);
    }
    if (t3_field_id(event[EVENT_RUN])) {
        op->turn.run = event[EVENT_RUN];
    }
    op->turn_told = T3_TOLD_FACTS;
    return end_event(r);
}

static int read_message_event(struct t3_item_reader *r, const struct slice *event)
{
    struct t3_op *op = &r->at_hand;

    if (!begin_event(r, event, SLICE("threadId")) ||
        !t3_message_read(event[EVENT_PAYLOAD], op->scope, &op->message)) {
        return t3_item_skip(r);
    }
    op->message_told = T3_TOLD_FACTS;
    return end_event(r);
}

static int read_request_event(struct t3_item_reader *r, const struct slice *event)
{
    struct t3_op *op = &r->at_hand;
    struct t3_request_facts request;

    if (!begin_event(r, event, SLICE("threadId")) ||
        !t3_request_read(event[EVENT_PAYLOAD], &request)) {
        return t3_item_skip(r);
    }
    if (request.waits) {
        op->request = request.id;
    } else if (request.told) {
        op->answered = request.id;
    }
    return end_event(r);
}

/* Names that only the first protocol has. */
static bool is_v1_event(struct slice type)
{
    static const struct slice names[] = {
        SLICE("thread.message-sent"),      SLICE("thread.proposed-plan-upserted"),
        SLICE("thread.activity-appended"), SLICE("thread.turn-diff-completed"),
        SLICE("thread.reverted"),          SLICE("thread.session-set"),
    };

    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (json_string_equal(type, names[i])) {
            return true;
        }
    }
    return false;
}

int t3_item_read_event(struct t3_item_reader *r, struct slice value, struct errmsg *msg)
{
    static const struct slice names[EVENT_MEMBER_COUNT] = {
        [EVENT_TYPE] = SLICE("type"),
        [EVENT_THREAD] = SLICE("threadId"),
        [EVENT_RUN] = SLICE("runId"),
        [EVENT_PAYLOAD] = SLICE("payload"),
    };
    static const struct {
        struct slice type;
        int (*read)(struct t3_item_reader *r, const struct slice *event);
    } types[] = {
        {SLICE("run.created"), read_run_event},
        {SLICE("run.updated"), read_run_event},
        {SLICE("provider-turn.updated"), read_turn_event},
        {SLICE("message.updated"), read_message_event},
        {SLICE("runtime-request.updated"), read_request_event},
    };
    struct slice v[EVENT_MEMBER_COUNT];

    if (!t3_fields_read(value, T3_WANTED(names), v) || !t3_field_string(v[EVENT_TYPE])) {
        return t3_item_skip(r);
    }
    if (is_v1_event(v[EVENT_TYPE])) {
        return t3_item_refuse_v1(msg, v[EVENT_TYPE]);
    }
    for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
        if (json_string_equal(v[EVENT_TYPE], types[i].type)) {
            return types[i].read(r, v);
        }
    }
    return slice_starts_with(v[EVENT_TYPE], SLICE("\"thread.")) ? read_thread_event(r, v) : 0;
}
