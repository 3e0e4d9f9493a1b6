/* The failure is kept in the outbox first, so that a crash does not lose it. */
#include "app/waking.h"

#include "app/app.h"
#include "base/limits.h"
#include "base/json.h"
#include "thread/entry.h"
#include "thread/outbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MEMORY_BYTES_MAX (16ull * KIB)

struct waking {
    struct task task;
    struct app *app;
    char thread_id[STORE_ID_BYTES];
    char entry_id[ENTRY_ID_BYTES];
};

static int64_t wall_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Keeps the signal that says why nobody was woken. */
static int keep_failure(struct waking *w, struct arena *memory, const struct errmsg *why)
{
    int64_t now_ms = wall_ms();
    char id[UUID_TEXT_BYTES];
    char text[2 * KIB];
    struct outbox_item item;
    struct uuid uuid;
    struct buf members;
    struct errmsg msg = {{0}};

    if (uuid_source_next(&w->app->ids, (uint64_t)now_ms, &uuid) != 0) {
        return ERR_IO;
    }
    uuid_format(&uuid, id);
    buf_init_fixed(&members, text, sizeof(text));
    buf_append(&members, SLICE("\"reason\":"));
    json_append_string(&members, slice_of(why->text[0] == '\0' ? "it gave no reason" : why->text));
    buf_append_format(&members, ",\"entryId\":\"%s\"", w->entry_id);
    const struct thread_signal signal = {.thread_id = slice_of(w->thread_id),
                                         .entry_id = slice_of(id),
                                         .ts = now_ms,
                                         .type = "signal.thread_director.failed",
                                         .members = buf_slice(&members)};

    if (members.failed || !outbox_signal(&signal, memory, &item)) {
        return ERR_NOMEM;
    }
    return store_outbox_add(w->app->store, &item, 1, &msg);
}

static void tell(struct waking *w, const struct errmsg *why)
{
    struct arena memory;

    arena_init(&memory, MEMORY_BYTES_MAX);
    int code = keep_failure(w, &memory, why);

    if (code == 0) {
        (void)outbox_run(w->app->outbox, slice_of(w->thread_id)); /* else it is tried again */
    } else {
        logger_line(w->app->config.logger, LOGGER_ERROR,
                    "the director was not woken for thread %s, and the thread could not be told: "
                    "%s",
                    w->thread_id, err_text(code));
    }
    arena_finish(&memory);
}

static void wake(struct task *task)
{
    struct waking *w = container_of(task, struct waking, task);
    const struct director *director = &w->app->config.director;
    struct errmsg msg = {{0}};

    if (director->wake(director->context, slice_of(w->thread_id), slice_of(w->entry_id), &msg) !=
        0) {
        tell(w, &msg);
    }
    (void)atomic_fetch_sub(&w->app->pool_calls, 1);
    free(w);
}

void waking_start(struct app *app, struct slice thread_id, struct slice entry_id)
{
    if (app->config.director.wake == NULL) {
        return;
    }
    struct waking *w = calloc(1, sizeof(*w));

    if (w == NULL) {
        abort(); /* small allocations abort when memory is out */
    }
    (void)snprintf(w->thread_id, sizeof(w->thread_id), "%.*s", (int)thread_id.len, thread_id.ptr);
    (void)snprintf(w->entry_id, sizeof(w->entry_id), "%.*s", (int)entry_id.len, entry_id.ptr);
    w->app = app;
    w->task.run = wake;
    list_init(&w->task.link);
    /* Posts are bounded, and so are wakes: one for each. */
    (void)atomic_fetch_add(&app->pool_calls, 1);
    pool_submit(app->pool, &w->task);
}
