/* A lane is what is known of a thread with something under way or undone. Who wants to work on a
 * thread takes its lane; others wait, and then look whether anything is left: a failure meanwhile
 * is theirs, too, since what they came for stands behind it.
 *
 * Work: list the thread's items, do them in order, take out those that are done, until none is
 * left. One that cannot be done now ends it: the lane fails and is tried again by the thread below,
 * with back-off. A crash between doing and taking out does a thing twice, which is the same as
 * once: the stream exists, the entry's id is there, the stream is gone.
 *
 * The thread goes through all items when it is woken, and through the lanes that have failed when
 * their time has come.
 *
 * Streams that do not answer cost whoever asks them a time limit, several times over. When a round
 * failed so slowly, callers do not ask for a while: they leave their items to the thread, so that
 * not all of the application's threads come to wait for the same thing. */
#include "thread/outbox.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/map.h"
#include "client/client.h"
#include "thread/failure.h"

#define PAGE_ITEMS   16u         /* listed at once */
#define PAGE_BYTES   (32u * MIB) /* of them */
#define ARENA_BYTES  (4u * MIB)  /* for one item: its entries, and what the poster finds */
#define SLOW_MS      1000u       /* a failure that took so long is one of time limits */
#define FAILURES_MAX 3u          /* in a row, then a round leaves the rest for later */

struct lane {
    struct map_node node; /* on lanes, by the thread's id */
    struct list link;     /* on failed, if it is */
    char thread_id[STORE_ID_BYTES];
    bool busy;
    unsigned waiting;  /* callers of outbox_run */
    unsigned failures; /* in a row */
    uint64_t since_ms; /* the first of them */
    uint64_t retry_ms; /* on failed: not before */
    uint64_t left;     /* items that were found undone */
};

struct outbox {
    struct outbox_config config;
    uint64_t slow_ms; /* SLOW_MS, but for tests */
    pthread_t thread;
    atomic_uint_fast64_t left; /* of all lanes */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t freed; /* a lane is not busy any more */
    pthread_cond_t news;  /* for the thread */
    struct map lanes;     /* struct lane */
    uint64_t away_ms;     /* until then callers do not ask streams: client_now_ms */
    struct list failed;   /* lanes to be tried again, in no order */
    bool woken;
    bool stopping;
};

/* What became of an item. */
enum outcome {
    ITEM_DONE,
    ITEM_HOPELESS, /* taken out as well */
    ITEM_LATER,
};

/* ------------------------------------------------------------------------------------- trouble */

static const char *kind_text(enum outbox_kind kind)
{
    switch (kind) {
    case OUTBOX_CREATE:
        return "make its stream";
    case OUTBOX_APPEND:
        return "store an entry";
    default:
        return "delete its stream";
    }
}

static void tell(struct outbox *o, const struct outbox_item *item, const char *how, const char *why)
{
    struct errmsg msg;
    if (o->config.trouble) {
        (void)err_set(&msg, 0, "thread %.*s: cannot %s%s: %s", (int)item->thread_id.len,
                      item->thread_id.ptr, kind_text(item->kind), how, why);
        o->config.trouble(o->config.context, msg.text);
    }
}

static enum outcome put_off(struct outbox *o, const struct outbox_item *item, const char *why)
{
    tell(o, item, " yet", why);
    return ITEM_LATER;
}

static enum outcome give_up(struct outbox *o, const struct outbox_item *item, const char *why)
{
    tell(o, item, ", now or later", why);
    return ITEM_HOPELESS;
}

static void tell_store(struct outbox *o, const char *what, const struct errmsg *why)
{
    struct errmsg msg = *why;
    if (o->config.trouble) {
        (void)err_prefix(&msg, 0, "%s", what);
        o->config.trouble(o->config.context, msg.text);
    }
}

/* --------------------------------------------------------------------------------------- items */

static int create_stream(struct outbox *o, struct slice thread_id, struct stream_error *error)
{
    const struct stream_create_options options = {.content_type = "application/json"};
    char name[THREAD_STREAM_BYTES];
    thread_stream_name(thread_id, name);
    return stream_client_create(o->config.client, name, &options, NULL, error);
}

static enum outcome do_create(struct outbox *o, const struct outbox_item *item)
{
    struct stream_error error;
    int code = create_stream(o, item->thread_id, &error);
    if (code == STREAM_OK) {
        return ITEM_DONE;
    }
    /* Deleted for good, or of another kind: what follows will say so again. */
    if (code == STREAM_ERROR_GONE || failure_is_final(&error)) {
        return give_up(o, item, error.message);
    }
    return put_off(o, item, error.message);
}

static enum outcome do_drop(struct outbox *o, const struct outbox_item *item)
{
    struct stream_error error;
    char name[THREAD_STREAM_BYTES];
    thread_stream_name(item->thread_id, name);
    int code = stream_client_delete(o->config.client, name, &error);
    if (code == STREAM_OK || code == STREAM_ERROR_NOT_FOUND || code == STREAM_ERROR_GONE) {
        return ITEM_DONE;
    }
    return failure_is_final(&error) ? give_up(o, item, error.message)
                                    : put_off(o, item, error.message);
}

/* The entries of an item. */
struct parsed {
    struct post_entry *entries; /* in the arena */
    size_t count;
    size_t room;
};

static int count_entry(void *context, struct slice message)
{
    struct parsed *p = context;
    (void)message;
    p->room++;
    return 0;
}

/* An id that comes twice in one item is stored once. */
static int keep_entry(void *context, struct slice message)
{
    struct parsed *p = context;
    struct entry entry;
    if (entry_parse(message, &entry, NULL) < 0) {
        return ERR_INVALID;
    }
    for (size_t i = 0; i < p->count; i++) {
        if (slice_equal(p->entries[i].id, entry.id)) {
            return 0;
        }
    }
    p->entries[p->count++] = (struct post_entry){.id = entry.id, .json = message};
    return 0;
}

/* 0, ERR_NOMEM, or ERR_INVALID: no entries. */
static int parse_entries(struct slice json, struct arena *arena, struct parsed *ret_parsed)
{
    struct parsed p = {.entries = NULL};
    if (json_each_message(json, count_entry, &p, NULL) != 0 || p.room == 0) {
        return ERR_INVALID;
    }
    p.entries = arena_try_alloc(arena, p.room * sizeof(*p.entries));
    if (!p.entries) {
        return ERR_NOMEM;
    }
    int code = json_each_message(json, keep_entry, &p, NULL);
    *ret_parsed = p;
    return code;
}

/* Whether the records still have the thread: 1, 0, or -1 when they do not say. */
static int is_alive(struct outbox *o, struct slice thread_id)
{
    struct thread_access access;
    int code = store_thread_access(o->config.store, thread_id, SLICE(""), &access, NULL);
    if (code == 0) {
        return 1;
    }
    return code == ERR_NOTFOUND ? 0 : -1;
}

/* There is no stream to append to. That of a thread that was deleted went before its last words; a
 * thread that lives gets a new one. */
static enum outcome append_to_nothing(struct outbox *o, const struct outbox_item *item,
                                      struct post *post)
{
    struct stream_error error;
    int alive = is_alive(o, item->thread_id);
    if (alive == 0) {
        return give_up(o, item, post->error.message);
    }
    if (alive < 0) {
        return put_off(o, item, post->error.message);
    }
    tell(o, item, " where it should be, so the stream is made anew", post->error.message);
    if (create_stream(o, item->thread_id, &error) != STREAM_OK) {
        return put_off(o, item, error.message);
    }
    return poster_post(o->config.poster, post) == 0 ? ITEM_DONE
                                                    : put_off(o, item, post->error.message);
}

static enum outcome append(struct outbox *o, const struct outbox_item *item, struct arena *arena)
{
    struct parsed parsed;
    int code = parse_entries(item->entry, arena, &parsed);
    if (code != 0) {
        return code == ERR_NOMEM ? put_off(o, item, err_text(code))
                                 : give_up(o, item, "what was kept is no entry");
    }
    struct post post = {.thread_id = item->thread_id,
                        .entries = parsed.entries,
                        .count = parsed.count,
                        .arena = arena};
    if (poster_post(o->config.poster, &post) == 0) {
        return ITEM_DONE;
    }
    if (post.error.code == API_NOT_FOUND) {
        return append_to_nothing(o, item, &post);
    }
    return post.final ? give_up(o, item, post.error.message) : put_off(o, item, post.error.message);
}

static enum outcome do_append(struct outbox *o, const struct outbox_item *item)
{
    struct arena arena;
    arena_init(&arena, ARENA_BYTES);
    enum outcome outcome = append(o, item, &arena);
    arena_finish(&arena);
    return outcome;
}

static enum outcome do_item(struct outbox *o, const struct outbox_item *item)
{
    switch (item->kind) {
    case OUTBOX_CREATE:
        return do_create(o, item);
    case OUTBOX_APPEND:
        return do_append(o, item);
    default:
        return do_drop(o, item);
    }
}

/* -------------------------------------------------------------------------------------- a lane */

/* What came of some work on a thread. */
struct progress {
    uint64_t done;
    uint64_t left; /* that were seen */
};

/* One page of a thread's items. 1: there may be more; 0: all are done; -1: one cannot be. */
static int work_page(struct outbox *o, struct slice thread_id, struct arena *arena,
                     struct progress *progress)
{
    struct outbox_list list;
    struct errmsg msg = {.text = ""};
    uint64_t done[PAGE_ITEMS];
    size_t count = 0;
    int code = store_outbox_list_thread(o->config.store, thread_id, 0, PAGE_ITEMS, arena, &list,
                                        &msg);
    if (code != 0) {
        tell_store(o, "cannot see what is to be done to streams", &msg);
        progress->left = 1;
        return -1;
    }
    while (count < list.count && do_item(o, &list.items[count]) != ITEM_LATER) {
        done[count] = list.items[count].seq;
        count++;
    }
    progress->done += count;
    progress->left = list.count - count;
    code = count > 0 ? store_outbox_done(o->config.store, done, count, &msg) : 0;
    if (code != 0) {
        tell_store(o, "cannot take out what is done, so that it will be done again", &msg);
        progress->left = list.count;
    }
    if (code != 0 || count < list.count) {
        return -1;
    }
    return list.count == PAGE_ITEMS;
}

static bool is_stopping(struct outbox *o)
{
    (void)pthread_mutex_lock(&o->lock);
    bool stopping = o->stopping;
    (void)pthread_mutex_unlock(&o->lock);
    return stopping;
}

/* All of a thread's items, in order. */
static int work(struct outbox *o, struct slice thread_id, struct progress *progress)
{
    int rc;
    do {
        struct arena arena;
        arena_init(&arena, PAGE_BYTES);
        rc = work_page(o, thread_id, &arena, progress);
        arena_finish(&arena);
    } while (rc > 0 && !is_stopping(o));
    return rc > 0 ? -1 : rc;
}

static struct lane *lane_of(struct map_node *node)
{
    return container_of(node, struct lane, node);
}

/* Under the lock, as what follows. The lane of a thread, made if need be; NULL: no memory. */
static struct lane *lane_for(struct outbox *o, struct slice thread_id)
{
    uint64_t hash = slice_hash(thread_id, 0);
    struct map_node *node = map_find(&o->lanes, hash);
    while (node && !slice_equal(slice_of(lane_of(node)->thread_id), thread_id)) {
        node = map_find_next(node);
    }
    if (node) {
        return lane_of(node);
    }
    struct lane *lane = calloc(1, sizeof(*lane));
    if (!lane || map_insert(&o->lanes, &lane->node, hash) != 0) {
        free(lane);
        return NULL;
    }
    list_init(&lane->link);
    memcpy(lane->thread_id, thread_id.ptr, thread_id.len);
    return lane;
}

static void set_left(struct outbox *o, struct lane *lane, uint64_t left)
{
    atomic_fetch_add(&o->left, left - lane->left); /* modulo 2^64 */
    lane->left = left;
}

/* Nobody needs it any more. */
static void tidy(struct outbox *o, struct lane *lane)
{
    if (!lane->busy && lane->waiting == 0 && lane->failures == 0) {
        map_remove(&o->lanes, &lane->node);
        free(lane);
    }
}

static uint64_t back_off_ms(const struct outbox *o, unsigned failures)
{
    uint64_t ms = (uint64_t)OUTBOX_RETRY_MS_MIN << (failures < 16 ? failures - 1 : 15);
    return ms < o->config.retry_ms_max ? ms : o->config.retry_ms_max;
}

/* The lane has failed once more: the thread is to try again, but later. */
static void put_off_lane(struct outbox *o, struct lane *lane, uint64_t now_ms)
{
    if (lane->failures++ == 0) {
        lane->since_ms = now_ms;
    }
    list_remove(&lane->link);
    list_append(&o->failed, &lane->link);
    lane->retry_ms = now_ms + back_off_ms(o, lane->failures);
    (void)pthread_cond_signal(&o->news);
}

/* A round of work has ended. */
static void end_round(struct outbox *o, struct lane *lane, int rc, const struct progress *progress,
                      uint64_t began_ms)
{
    uint64_t now_ms = client_now_ms();
    list_remove(&lane->link);
    lane->busy = false;
    set_left(o, lane, rc == 0 ? 0 : progress->left);
    if (rc == 0) {
        lane->failures = 0;
    } else {
        put_off_lane(o, lane, now_ms);
    }
    if (progress->done > 0) {
        o->away_ms = 0;
    } else if (rc != 0 && now_ms - began_ms >= o->slow_ms) {
        o->away_ms = now_ms + o->config.retry_ms_max;
    }
    (void)pthread_cond_broadcast(&o->freed);
}

/* Works on a lane that nobody works on, letting go of the lock meanwhile. */
static int run_lane(struct outbox *o, struct lane *lane)
{
    uint64_t began_ms = client_now_ms();
    struct progress progress = {0};
    lane->busy = true;
    (void)pthread_mutex_unlock(&o->lock);
    int rc = work(o, slice_of(lane->thread_id), &progress);
    (void)pthread_mutex_lock(&o->lock);
    end_round(o, lane, rc, &progress, began_ms);
    return rc;
}

/* Waits until nobody works on the lane. True: who did has failed meanwhile. */
static bool await_turn(struct outbox *o, struct lane *lane)
{
    bool waited = lane->busy;
    lane->waiting++;
    while (lane->busy) {
        (void)pthread_cond_wait(&o->freed, &o->lock);
    }
    lane->waiting--;
    return waited && lane->failures > 0;
}

/* Streams are away: leaves the lane to the thread. */
static void leave(struct outbox *o, struct lane *lane)
{
    if (lane->failures == 0) {
        set_left(o, lane, 1); /* at least */
        put_off_lane(o, lane, client_now_ms());
    }
}

int outbox_run(struct outbox *o, struct slice thread_id)
{
    int rc = -1;
    assert(thread_id.len > 0 && thread_id.len < STORE_ID_BYTES);
    (void)pthread_mutex_lock(&o->lock);
    struct lane *lane = lane_for(o, thread_id);
    if (!lane) {
        (void)pthread_mutex_unlock(&o->lock);
        outbox_wake(o); /* the thread finds it */
        return -1;
    }
    bool failed = await_turn(o, lane);
    bool away = o->away_ms > client_now_ms();
    if (away && !failed) {
        leave(o, lane);
    } else if (!failed) {
        rc = run_lane(o, lane);
    }
    tidy(o, lane);
    (void)pthread_mutex_unlock(&o->lock);
    return rc;
}

/* ------------------------------------------------------------------------------------- a round */

/* Whether the thread of an item came before on this page. */
static bool was_before(const struct outbox_list *list, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (slice_equal(list->items[i].thread_id, list->items[at].thread_id)) {
            return true;
        }
    }
    return false;
}

/* A lane that has failed is the turn of its own time. */
static bool must_wait(struct outbox *o, struct slice thread_id)
{
    bool wait = false;
    (void)pthread_mutex_lock(&o->lock);
    struct lane *lane = lane_for(o, thread_id);
    if (lane) {
        wait = lane->failures > 0 && lane->retry_ms > client_now_ms();
        tidy(o, lane);
    }
    (void)pthread_mutex_unlock(&o->lock);
    return wait;
}

static bool are_away(struct outbox *o)
{
    (void)pthread_mutex_lock(&o->lock);
    bool away = o->away_ms > client_now_ms();
    (void)pthread_mutex_unlock(&o->lock);
    return away;
}

/* Runs the threads of a page. False when the rest had better wait. */
static bool run_page(struct outbox *o, const struct outbox_list *list, unsigned *failures)
{
    for (size_t i = 0; i < list->count; i++) {
        struct slice thread_id = list->items[i].thread_id;
        if (is_stopping(o) || are_away(o) || *failures >= FAILURES_MAX) {
            return false;
        }
        if (!was_before(list, i) && !must_wait(o, thread_id)) {
            *failures = outbox_run(o, thread_id) == 0 ? 0 : *failures + 1;
        }
    }
    return true;
}

/* Goes through all items. When streams fail for one thread after the other they will for the rest:
 * *ret_whole is false then. */
static int run_all(struct outbox *o, bool *ret_whole, struct errmsg *msg)
{
    struct outbox_list list = {.count = PAGE_ITEMS};
    unsigned failures = 0;
    uint64_t after = 0;
    bool whole = true;
    int code = 0;
    while (whole && code == 0 && list.count == PAGE_ITEMS) {
        struct arena arena;
        arena_init(&arena, PAGE_BYTES);
        code = store_outbox_list(o->config.store, after, PAGE_ITEMS, &arena, &list, msg);
        if (code == 0 && list.count > 0) {
            after = list.items[list.count - 1].seq;
            whole = run_page(o, &list, &failures);
        }
        arena_finish(&arena);
    }
    *ret_whole = whole;
    return code;
}

int outbox_reconcile(struct outbox *o, struct errmsg *msg)
{
    bool whole = true;
    int code = run_all(o, &whole, msg);
    if (code == 0 && !whole) {
        outbox_wake(o);
    }
    return code;
}

void outbox_wake(struct outbox *o)
{
    (void)pthread_mutex_lock(&o->lock);
    o->woken = true;
    (void)pthread_cond_signal(&o->news);
    (void)pthread_mutex_unlock(&o->lock);
}

uint64_t outbox_waiting(struct outbox *o)
{
    return atomic_load(&o->left);
}

uint64_t outbox_oldest_ms(struct outbox *o)
{
    uint64_t now_ms = client_now_ms();
    uint64_t oldest_ms = 0;
    (void)pthread_mutex_lock(&o->lock);
    LIST_FOR_EACH(link, &o->failed)
    {
        const struct lane *lane = container_of(link, struct lane, link);
        uint64_t ms = now_ms > lane->since_ms ? now_ms - lane->since_ms : 0;
        oldest_ms = ms > oldest_ms ? ms : oldest_ms;
    }
    (void)pthread_mutex_unlock(&o->lock);
    return oldest_ms;
}

/* ---------------------------------------------------------------------------------- the thread */

/* The failed lane whose time comes first, or NULL. Under the lock. */
static struct lane *first_failed(const struct outbox *o)
{
    struct lane *first = NULL;
    LIST_FOR_EACH(link, &o->failed)
    {
        struct lane *lane = container_of(link, struct lane, link);
        if (!first || lane->retry_ms < first->retry_ms) {
            first = lane;
        }
    }
    return first;
}

static void wait_until(struct outbox *o, uint64_t at_ms)
{
    struct timespec at = {.tv_sec = (time_t)(at_ms / 1000),
                          .tv_nsec = (long)(at_ms % 1000) * 1000000};
    (void)pthread_cond_timedwait(&o->news, &o->lock, &at);
}

/* A round over everything, after which what could not be looked at is looked at again. Under the
 * lock, which it lets go of. */
static void run_round(struct outbox *o)
{
    struct errmsg msg = {.text = ""};
    bool whole = true;
    o->woken = false;
    (void)pthread_mutex_unlock(&o->lock);
    int code = run_all(o, &whole, &msg);
    if (code != 0) {
        tell_store(o, "cannot see what is to be done to streams", &msg);
    }
    (void)pthread_mutex_lock(&o->lock);
    if ((code != 0 || !whole) && !o->stopping) {
        o->woken = true;
        wait_until(o, client_now_ms() + back_off_ms(o, FAILURES_MAX));
    }
}

static void *run(void *context)
{
    struct outbox *o = context;
    (void)pthread_mutex_lock(&o->lock);
    while (!o->stopping) {
        struct lane *lane = first_failed(o);
        if (o->woken) {
            run_round(o);
        } else if (!lane) {
            (void)pthread_cond_wait(&o->news, &o->lock);
        } else if (lane->retry_ms > client_now_ms()) {
            wait_until(o, lane->retry_ms);
        } else if (lane->busy) {
            (void)pthread_cond_wait(&o->freed, &o->lock);
        } else {
            (void)run_lane(o, lane);
            tidy(o, lane);
        }
    }
    (void)pthread_mutex_unlock(&o->lock);
    return NULL;
}

/* ------------------------------------------------------------------------------- start and end */

/* The thread takes no signals: they are the program's. */
static int start_thread(struct outbox *o)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&o->thread, NULL, run, o);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc == 0 ? 0 : ERR_AGAIN;
}

static void destroy(struct outbox *o)
{
    struct map_node *node = map_next(&o->lanes, NULL);
    while (node) {
        struct lane *lane = lane_of(node);
        node = map_next(&o->lanes, node);
        assert(!lane->busy && lane->waiting == 0);
        free(lane);
    }
    map_finish(&o->lanes);
    (void)pthread_cond_destroy(&o->news);
    (void)pthread_cond_destroy(&o->freed);
    (void)pthread_mutex_destroy(&o->lock);
    free(o);
}

int outbox_create(const struct outbox_config *config, struct outbox **ret_outbox)
{
    struct outbox *o = calloc(1, sizeof(*o));
    pthread_condattr_t monotonic;
    if (!o) {
        return ERR_NOMEM;
    }
    o->config = *config;
    o->slow_ms = SLOW_MS;
    o->config.retry_ms_max = config->retry_ms_max ? config->retry_ms_max : OUTBOX_RETRY_MS_MAX;
    map_init(&o->lanes);
    list_init(&o->failed);
    (void)pthread_mutex_init(&o->lock, NULL); /* none of these can fail on Linux */
    (void)pthread_cond_init(&o->freed, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&o->news, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    int code = start_thread(o);
    if (code != 0) {
        destroy(o);
        return code;
    }
    *ret_outbox = o;
    return 0;
}

void outbox_destroy(struct outbox *o)
{
    if (!o) {
        return;
    }
    (void)pthread_mutex_lock(&o->lock);
    o->stopping = true;
    (void)pthread_cond_signal(&o->news);
    (void)pthread_mutex_unlock(&o->lock);
    (void)pthread_join(o->thread, NULL);
    destroy(o);
}

bool outbox_signal(const struct thread_signal *signal, struct arena *arena,
                   struct outbox_item *ret_item)
{
    struct buf payload;
    struct buf json;
    buf_init(&payload, MIB);
    buf_init(&json, 2u * MIB);
    buf_append(&payload, SLICE("{\"type\":"));
    json_append_string(&payload, slice_of(signal->type));
    if (signal->members.len > 0) {
        buf_append_char(&payload, ',');
        buf_append(&payload, signal->members);
    }
    buf_append_char(&payload, '}');
    const struct entry entry = {.id = signal->entry_id,
                                .ts = signal->ts,
                                .author_id = signal->author_id,
                                .payload = buf_slice(&payload)};
    entry_format(&json, &entry);
    char *copy = payload.failed || json.failed ? NULL : arena_try_copy(arena, buf_slice(&json));
    if (copy) {
        *ret_item = (struct outbox_item){.kind = OUTBOX_APPEND,
                                         .thread_id = signal->thread_id,
                                         .entry_id = signal->entry_id,
                                         .entry = {copy, json.len}};
    }
    buf_finish(&payload);
    buf_finish(&json);
    return copy != NULL;
}
