/* Those that wait are on a map by thread, so that there are never more than threads, however slow
 * the director is. The failure is kept in the outbox first, so that a crash does not lose it. */
#include "app/waking.h"

#include "app/app.h"
#include "app/wall_clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/map.h"
#include "thread/entry.h"
#include "thread/outbox.h"

#include <stdio.h>
#include <stdlib.h>

#define MEMORY_BYTES_MAX (16ull * KIB)

struct waking {
    struct map_node node; /* on `waiting`, by thread; left when it runs */
    struct task task;
    struct app *app;
    char thread_id[STORE_ID_BYTES];
    char entry_id[ENTRY_ID_BYTES];
};

struct wakings {
    pthread_mutex_t mutex; /* guards what follows, and the entry ids of those that wait */
    pthread_cond_t still;  /* none is left */
    struct map waiting;    /* struct waking */
    size_t count;          /* of those that wait or run */
};

int wakings_create(struct wakings **ret_wakings)
{
    struct wakings *w = calloc(1, sizeof(*w));

    if (w == NULL) {
        return ERR_NOMEM;
    }
    (void)pthread_mutex_init(&w->mutex, NULL); /* neither fails on Linux */
    (void)pthread_cond_init(&w->still, NULL);
    map_init(&w->waiting);
    *ret_wakings = w;
    return 0;
}

void wakings_destroy(struct wakings *w)
{
    if (w == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&w->mutex);
    while (w->count > 0) {
        (void)pthread_cond_wait(&w->still, &w->mutex);
    }
    (void)pthread_mutex_unlock(&w->mutex);
    map_finish(&w->waiting);
    (void)pthread_cond_destroy(&w->still);
    (void)pthread_mutex_destroy(&w->mutex);
    free(w);
}

/* Keeps the signal that says why nobody was woken. */
static int keep_failure(struct waking *w, struct arena *memory, const struct errmsg *why)
{
    int64_t now_ms = wall_clock_ms();
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

/* Nobody adds to it any more. */
static void leave_waiting(struct wakings *all, struct waking *w)
{
    (void)pthread_mutex_lock(&all->mutex);
    map_remove(&all->waiting, &w->node);
    (void)pthread_mutex_unlock(&all->mutex);
}

static void end(struct wakings *all, struct waking *w)
{
    free(w);
    (void)pthread_mutex_lock(&all->mutex);
    if (--all->count == 0) {
        (void)pthread_cond_broadcast(&all->still);
    }
    (void)pthread_mutex_unlock(&all->mutex);
}

static void wake(struct task *task)
{
    struct waking *w = container_of(task, struct waking, task);
    struct wakings *all = w->app->wakings;
    const struct director *director = &w->app->config.director;
    struct errmsg msg = {{0}};

    leave_waiting(all, w);
    if (director->wake(director->context, slice_of(w->thread_id), slice_of(w->entry_id), &msg) !=
        0) {
        tell(w, &msg);
    }
    end(all, w);
}

/* The one that waits for that thread, or NULL. Under the lock. */
static struct waking *find(const struct wakings *all, struct slice thread_id, uint64_t hash)
{
    struct map_node *node = map_find(&all->waiting, hash);

    while (node != NULL &&
           !slice_equal(slice_of(container_of(node, struct waking, node)->thread_id), thread_id)) {
        node = map_find_next(node);
    }
    return node == NULL ? NULL : container_of(node, struct waking, node);
}

static void take(char *out, size_t size, struct slice text)
{
    (void)snprintf(out, size, "%.*s", (int)text.len, text.ptr);
}

/* Adds one that waits; NULL when there is no memory. Under the lock. */
static struct waking *add(struct app *app, struct slice thread_id, uint64_t hash)
{
    struct waking *w = calloc(1, sizeof(*w));

    if (w == NULL || map_insert(&app->wakings->waiting, &w->node, hash) != 0) {
        free(w);
        return NULL;
    }
    take(w->thread_id, sizeof(w->thread_id), thread_id);
    w->app = app;
    w->task.run = wake;
    list_init(&w->task.link);
    app->wakings->count++;
    return w;
}

void waking_start(struct app *app, struct slice thread_id, struct slice entry_id)
{
    struct wakings *all = app->wakings;
    uint64_t hash = slice_hash(thread_id, 0);

    if (app->config.director.wake == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&all->mutex);
    struct waking *waits = find(all, thread_id, hash);
    struct waking *added = waits == NULL ? add(app, thread_id, hash) : NULL;
    struct waking *w = waits != NULL ? waits : added;

    if (w != NULL) {
        take(w->entry_id, sizeof(w->entry_id), entry_id);
    }
    (void)pthread_mutex_unlock(&all->mutex);
    if (added != NULL) {
        pool_submit(app->pool, &added->task);
    } else if (w == NULL) {
        logger_line(app->config.logger, LOGGER_ERROR,
                    "the director was not woken for thread %.*s: out of memory", (int)thread_id.len,
                    thread_id.ptr);
    }
}
