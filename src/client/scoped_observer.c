/* An observer hands out what its tail gives, an event at a time: of one step of the tail, first the
 * entry, then that the backfill is over, then that the thread has settled. The next step is taken
 * once all of that is told. */
#include "client/scoped.h"

#include "client/settle.h"

#include <stdlib.h>

struct scoped_observer {
    struct scoped_tail *tail;
    struct settle settle;
    bool settle_at_rest;
    bool go_on;
    bool backfilled;
    bool at_end; /* it has settled, and that was the end */
    /* Of the step at hand, what is still to be told. */
    struct scoped_tail_view view;
    bool tell_entry;
    bool tell_backfilled;
    bool tell_settled;
    const struct settle_end *end; /* how it did */
};

const char *scoped_outcome_name(enum scoped_outcome outcome)
{
    switch (outcome) {
    case SCOPED_FAILED:
        return "failed";
    case SCOPED_CANCELLED:
        return "cancelled";
    case SCOPED_COMPLETED:
        return "completed";
    case SCOPED_SKIPPED:
        return "skipped";
    }
    return "unknown";
}

int scoped_client_observe(struct scoped_client *client, const char *thread_id,
                          const struct scoped_observe_options *options,
                          struct scoped_observer **ret_observer, struct scoped_error *ret_error)
{
    static const struct scoped_observe_options defaults = {.from_offset = NULL};

    options = options != NULL ? options : &defaults;
    struct scoped_tail_options tail = {
        .from_offset = options->from_offset,
        .poll_timeout_ms = options->poll_timeout_ms,
    };
    int code = options->trigger == NULL
                   ? STREAM_OK
                   : scoped_check_id("the trigger", options->trigger, ret_error);
    struct scoped_observer *o = code == STREAM_OK ? calloc(1, sizeof(*o)) : NULL;

    if (code != STREAM_OK) {
        return code;
    }
    if (o == NULL) {
        return scoped_error_set(ret_error, STREAM_ERROR_MEMORY, "out of memory");
    }
    code = scoped_client_tail(client, thread_id, &tail, &o->tail, ret_error);
    if (code != STREAM_OK) {
        free(o);
        return code;
    }
    settle_init(&o->settle, options->trigger);
    o->settle_at_rest = options->settle_at_rest != 0;
    o->go_on = options->go_on != 0;
    *ret_observer = o;
    return STREAM_OK;
}

/* What a step of the tail means. */
static void take_view(struct scoped_observer *o)
{
    o->tell_entry = o->view.has_entry;
    o->tell_settled = o->view.has_entry && settle_take(&o->settle, &o->view.entry);
    o->end = &o->settle.end;
    if (o->view.up_to_date && !o->backfilled) {
        const struct settle_end *rest = settle_backfilled(&o->settle);

        o->backfilled = true;
        o->tell_backfilled = true;
        if (rest != NULL && o->settle_at_rest && !o->tell_settled) {
            o->end = rest;
            o->tell_settled = true;
        }
    }
}

/* The next thing to be told of the step at hand; false: all is. */
static bool tell(struct scoped_observer *o, struct scoped_event *ret_event)
{
    if (o->tell_entry) {
        o->tell_entry = false;
        *ret_event = (struct scoped_event){.kind = SCOPED_ENTRY, .entry = o->view.entry};
        return true;
    }
    if (o->tell_backfilled) {
        o->tell_backfilled = false;
        *ret_event = (struct scoped_event){.kind = SCOPED_BACKFILLED};
        return true;
    }
    if (o->tell_settled) {
        o->tell_settled = false;
        o->at_end = !o->go_on;
        *ret_event = (struct scoped_event){.kind = SCOPED_SETTLED, .outcome = o->end->outcome};
        memcpy(ret_event->entry_id, o->end->entry_id, sizeof(ret_event->entry_id));
        memcpy(ret_event->reason, o->end->reason, sizeof(ret_event->reason));
        return true;
    }
    return false;
}

static int advance(struct scoped_observer *o,
                   int (*step)(struct scoped_tail *, struct scoped_tail_view *,
                               struct scoped_error *),
                   struct scoped_event *ret_event, struct scoped_error *ret_error)
{
    while (!tell(o, ret_event)) {
        if (o->at_end) {
            scoped_tail_abort(o->tail); /* nothing more is wanted of the server */
            (void)scoped_tail_step(o->tail, &o->view, NULL); /* nor of the descriptor */
            return STREAM_END;
        }
        int rc = step(o->tail, &o->view, ret_error);

        if (rc != STREAM_OK) {
            return rc;
        }
        take_view(o);
    }
    return STREAM_OK;
}

int scoped_observer_next(struct scoped_observer *observer, struct scoped_event *ret_event,
                         struct scoped_error *ret_error)
{
    return advance(observer, scoped_tail_next, ret_event, ret_error);
}

int scoped_observer_step(struct scoped_observer *observer, struct scoped_event *ret_event,
                         struct scoped_error *ret_error)
{
    return advance(observer, scoped_tail_step, ret_event, ret_error);
}

const char *scoped_observer_offset(const struct scoped_observer *observer)
{
    return scoped_tail_offset(observer->tail);
}

void scoped_observer_stop(struct scoped_observer *observer)
{
    scoped_tail_abort(observer->tail);
}

void scoped_observer_free(struct scoped_observer *observer)
{
    if (observer != NULL) {
        scoped_tail_free(observer->tail);
        free(observer);
    }
}
