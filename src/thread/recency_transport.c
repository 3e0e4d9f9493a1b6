/* A transport before another one. It hands everything on, and looks at how appends to threads'
 * streams come out: it takes the place of a call's on_done until the call ends or is cancelled.
 *
 * Of an append that failed nothing is known here, also when its outcome is: the next append to that
 * thread, or the next start, makes up for it. */
#include "thread/recency.h"

#include <stdlib.h>

#include "client/client.h"

struct front {
    struct transport base;
    struct transport *behind; /* owned */
    struct recency *recency;
};

static struct front *of(struct transport *t)
{
    return container_of(t, struct front, base);
}

static int keep_ts(void *context, const struct entry *entry, size_t index)
{
    int64_t *ts = context;
    (void)index;
    *ts = entry->ts;
    return 0;
}

/* The call as it was before it came by here. */
static struct front *step_aside(struct call *call)
{
    struct front *f = call->front;
    if (f) {
        call->on_done = call->on_done_behind;
        call->front = NULL;
    }
    return f;
}

static void on_done(struct call *call)
{
    struct front *f = step_aside(call);
    const struct call_result *result = &call->result;
    struct slice thread_id;
    int64_t ts = -1;
    if (result->error.code == STREAM_OK && result->info.next_offset[0] != '\0' &&
        thread_stream_parse(call->name, &thread_id) && entry_each(call->body, keep_ts, &ts) == 0 &&
        ts >= 0) {
        recency_note(f->recency, thread_id, ts, result->info.next_offset);
    }
    call->on_done(call);
}

static void start(struct transport *base, struct call *call)
{
    struct front *f = of(base);
    struct slice thread_id;
    call->front = NULL;
    if (call->verb == CALL_APPEND && call->body.len > 0 &&
        thread_stream_parse(call->name, &thread_id)) {
        call->front = f;
        call->on_done_behind = call->on_done;
        call->on_done = on_done;
    }
    f->behind->ops->start(f->behind, call);
}

static void cancel(struct transport *base, struct call *call)
{
    struct front *f = of(base);
    (void)step_aside(call);
    f->behind->ops->cancel(f->behind, call);
}

static void resume(struct transport *base, struct call *call)
{
    struct front *f = of(base);
    f->behind->ops->resume(f->behind, call);
}

static void wait_for_calls(struct transport *base, int wake_fd, int timeout_ms)
{
    struct front *f = of(base);
    f->behind->ops->wait(f->behind, wake_fd, timeout_ms);
}

static void destroy(struct transport *base)
{
    struct front *f = of(base);
    f->behind->ops->destroy(f->behind);
    free(f);
}

static const struct transport_ops ops = {
    .start = start,
    .cancel = cancel,
    .resume = resume,
    .wait = wait_for_calls,
    .destroy = destroy,
};

int recency_stream_client_new(struct recency *r, struct transport *transport,
                              const struct stream_client_options *options,
                              struct stream_client **ret_client, struct stream_error *ret_error)
{
    struct front *f = malloc(sizeof(*f));
    if (!f) {
        transport->ops->destroy(transport);
        return call_error_set(ret_error, STREAM_ERROR_MEMORY, "out of memory");
    }
    *f = (struct front){
        .base = {.ops = &ops, .has_sse = transport->has_sse},
        .behind = transport,
        .recency = r,
    };
    return client_new(&f->base, options, ret_client, ret_error);
}
