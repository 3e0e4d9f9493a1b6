/* A mark is what memory knows of one thread. Its way: made by the first entry, it is fresh and
 * written at once, with all others that are fresh by then, in one transaction; then it rests for an
 * interval. What comes meanwhile makes it dirty. When its rest is over it is fresh again if it is
 * dirty, and goes if it is not: memory holds the threads of the last interval only.
 *
 * A write that fails leaves its marks dirty: they rest, and are tried again after that. Closing
 * writes all that is dirty at once. What a crash takes is found again by recency_reconcile.
 *
 * The lock is never held across a call into the store: the writer works on copies. */
#include "thread/recency.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/list.h"
#include "base/map.h"
#include "client/client.h"

#define BATCH 512u /* threads of one transaction */

struct mark {
    struct map_node node; /* on marks, by the thread's id */
    struct list link;     /* on fresh, resting or the writer's batch */
    char thread_id[STORE_ID_BYTES];
    char offset[STREAM_OFFSET_BYTES]; /* where the stream ends, as far as is known */
    int64_t ts;                       /* of the newest entry */
    int64_t written_ts;               /* of that what the records have; 0: not known */
    bool dirty;                       /* there is more than was written, or is being written */
    uint64_t rests_until_ms;          /* on resting: client_now_ms */
};

/* What is being written, apart from the marks, which go on changing. */
struct copy {
    char thread_id[STORE_ID_BYTES];
    char offset[STREAM_OFFSET_BYTES];
    int64_t ts;
};

struct recency {
    struct recency_config config;
    pthread_t thread;
    struct copy copies[BATCH]; /* the writer's, as the rows */
    struct recency_row rows[BATCH];

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t news;  /* something is fresh, or the end has come */
    struct map marks;     /* struct mark */
    struct list fresh;    /* to be written now, the oldest first */
    struct list resting;  /* the first to be ready first */
    bool stopping;
    bool forgot; /* there was no memory for a mark; told once */
    uint64_t writes;
};

void thread_stream_name(struct slice thread_id, char out[static THREAD_STREAM_BYTES])
{
    size_t prefix = sizeof(THREAD_STREAM) - 1;
    assert(thread_id.len > 0 && thread_id.len < STORE_ID_BYTES);
    memcpy(out, THREAD_STREAM, prefix);
    memcpy(out + prefix, thread_id.ptr, thread_id.len);
    out[prefix + thread_id.len] = '\0';
}

bool thread_stream_parse(struct slice name, struct slice *ret_id)
{
    size_t prefix = sizeof(THREAD_STREAM) - 1;
    if (!slice_starts_with(name, SLICE(THREAD_STREAM)) || name.len == prefix ||
        name.len - prefix >= STORE_ID_BYTES) {
        return false;
    }
    *ret_id = (struct slice){name.ptr + prefix, name.len - prefix};
    return true;
}

static struct mark *mark_of(struct map_node *node)
{
    return container_of(node, struct mark, node);
}

/* Under the lock, as all of them but those that say otherwise. */
static struct mark *find(struct recency *r, struct slice thread_id, uint64_t hash)
{
    struct map_node *node = map_find(&r->marks, hash);
    while (node && !slice_equal(slice_of(mark_of(node)->thread_id), thread_id)) {
        node = map_find_next(node);
    }
    return node ? mark_of(node) : NULL;
}

static struct mark *add(struct recency *r, struct slice thread_id, uint64_t hash)
{
    struct mark *m = calloc(1, sizeof(*m));
    if (!m || map_insert(&r->marks, &m->node, hash) != 0) {
        free(m);
        return NULL;
    }
    memcpy(m->thread_id, thread_id.ptr, thread_id.len);
    list_init(&m->link);
    if (list_empty(&r->fresh)) {
        (void)pthread_cond_signal(&r->news);
    }
    list_append(&r->fresh, &m->link);
    return m;
}

static void drop(struct recency *r, struct mark *m)
{
    list_remove(&m->link);
    map_remove(&r->marks, &m->node);
    free(m);
}

/* Without the lock. */
static void tell_trouble(struct recency *r, const char *sentence)
{
    if (r->config.trouble) {
        r->config.trouble(r->config.context, sentence);
    }
}

/* Entries stand in the stream in another order than their times when two are posted at once: both
 * go forward, each by itself. */
static void move(struct mark *m, int64_t ts, const char *offset)
{
    if (ts > m->ts) {
        m->ts = ts;
        m->dirty = true;
    }
    if (strcmp(offset, m->offset) > 0) {
        memcpy(m->offset, offset, strlen(offset) + 1);
        m->dirty = true;
    }
}

void recency_note(struct recency *r, struct slice thread_id, int64_t ts, const char *offset)
{
    uint64_t hash = slice_hash(thread_id, 0);
    assert(thread_id.len > 0 && thread_id.len < STORE_ID_BYTES);
    assert(strlen(offset) < STREAM_OFFSET_BYTES);
    (void)pthread_mutex_lock(&r->lock);
    struct mark *m = find(r, thread_id, hash);
    if (!m) {
        m = add(r, thread_id, hash);
    }
    bool tell = !m && !r->forgot;
    if (m) {
        move(m, ts, offset);
    } else {
        r->forgot = true;
    }
    (void)pthread_mutex_unlock(&r->lock);
    if (tell) {
        tell_trouble(r, "there was no memory to note that a thread was written to: its place in "
                        "lists is right again after its next entry, or the next start");
    }
}

/* ----------------------------------------------------------------------------------- the writer */

/* What has rested long enough is fresh again, or goes. */
static void wake_rested(struct recency *r, uint64_t now_ms)
{
    LIST_FOR_EACH(link, &r->resting)
    {
        struct mark *m = container_of(link, struct mark, link);
        if (m->rests_until_ms > now_ms) {
            return;
        }
        if (m->dirty) {
            list_remove(&m->link);
            list_append(&r->fresh, &m->link);
        } else {
            drop(r, m);
        }
    }
}

/* Takes the first of `from` to `batch`, with copies of what they say. */
static size_t take(struct recency *r, struct list *from, struct list *batch)
{
    size_t count = 0;
    struct list *link;
    while (count < BATCH && (link = list_first(from))) {
        struct mark *m = container_of(link, struct mark, link);
        struct copy *c = &r->copies[count];
        list_remove(&m->link);
        list_append(batch, &m->link);
        m->dirty = false;
        memcpy(c->thread_id, m->thread_id, sizeof(c->thread_id));
        memcpy(c->offset, m->offset, sizeof(c->offset));
        c->ts = m->ts;
        r->rows[count] = (struct recency_row){slice_of(c->thread_id), c->ts, slice_of(c->offset)};
        count++;
    }
    return count;
}

/* The batch is written, or not: its marks rest. `copies` are those of take. */
static void rest(struct recency *r, struct list *batch, int code)
{
    uint64_t until_ms = client_now_ms() + r->config.interval_ms;
    const struct copy *c = r->copies;
    for (struct list *link; (link = list_first(batch)); c++) {
        struct mark *m = container_of(link, struct mark, link);
        list_remove(&m->link);
        list_append(&r->resting, &m->link);
        m->rests_until_ms = until_ms;
        m->dirty = m->dirty || code != 0;
        m->written_ts = code == 0 ? c->ts : m->written_ts;
        r->writes += code == 0;
    }
}

/* Writes some of `from`, letting go of the lock meanwhile. */
static int write_some(struct recency *r, struct list *from, struct errmsg *msg)
{
    struct list batch;
    list_init(&batch);
    size_t count = take(r, from, &batch);
    (void)pthread_mutex_unlock(&r->lock);
    int code = store_recency_write(r->config.store, r->rows, count, msg);
    (void)pthread_mutex_lock(&r->lock);
    rest(r, &batch, code);
    return code;
}

/* Until something is fresh, the first has rested, or the end. */
static void wait_for_news(struct recency *r)
{
    struct list *first = list_first(&r->resting);
    if (!first) {
        (void)pthread_cond_wait(&r->news, &r->lock);
        return;
    }
    uint64_t at_ms = container_of(first, struct mark, link)->rests_until_ms;
    struct timespec at = {.tv_sec = (time_t)(at_ms / 1000),
                          .tv_nsec = (long)(at_ms % 1000) * 1000000};
    (void)pthread_cond_timedwait(&r->news, &r->lock, &at);
}

static void *run(void *context)
{
    struct recency *r = context;
    struct errmsg msg = {.text = ""};
    (void)pthread_mutex_lock(&r->lock);
    while (!r->stopping) {
        wake_rested(r, client_now_ms());
        if (list_empty(&r->fresh)) {
            wait_for_news(r);
        } else if (write_some(r, &r->fresh, &msg) != 0) {
            (void)pthread_mutex_unlock(&r->lock);
            (void)err_prefix(&msg, 0, "cannot record which threads were written to");
            tell_trouble(r, msg.text);
            (void)pthread_mutex_lock(&r->lock);
        }
    }
    (void)pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* ------------------------------------------------------------------------------- start and end */

/* The thread takes no signals: they are the program's. */
static int start_thread(struct recency *r)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&r->thread, NULL, run, r);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc == 0 ? 0 : ERR_AGAIN;
}

static void destroy(struct recency *r)
{
    struct map_node *node = map_next(&r->marks, NULL);
    while (node) {
        struct mark *m = mark_of(node);
        node = map_next(&r->marks, node);
        free(m);
    }
    map_finish(&r->marks);
    (void)pthread_cond_destroy(&r->news);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
}

int recency_open(const struct recency_config *config, struct recency **ret_recency)
{
    struct recency *r = calloc(1, sizeof(*r));
    pthread_condattr_t monotonic;
    if (!r) {
        return ERR_NOMEM;
    }
    r->config = *config;
    r->config.interval_ms = config->interval_ms ? config->interval_ms : RECENCY_INTERVAL_MS;
    map_init(&r->marks);
    list_init(&r->fresh);
    list_init(&r->resting);
    (void)pthread_mutex_init(&r->lock, NULL); /* none of these can fail on Linux */
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&r->news, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    int code = start_thread(r);
    if (code != 0) {
        destroy(r);
        return code;
    }
    *ret_recency = r;
    return 0;
}

/* Whatever is dirty, rested or not. The thread has ended. */
static int write_all(struct recency *r, struct errmsg *msg)
{
    int code = 0;
    LIST_FOR_EACH(link, &r->resting)
    {
        struct mark *m = container_of(link, struct mark, link);
        if (m->dirty) {
            list_remove(&m->link);
            list_append(&r->fresh, &m->link);
        }
    }
    while (code == 0 && !list_empty(&r->fresh)) {
        code = write_some(r, &r->fresh, msg);
    }
    return code;
}

int recency_close(struct recency *r, struct errmsg *msg)
{
    if (!r) {
        return 0;
    }
    (void)pthread_mutex_lock(&r->lock);
    r->stopping = true;
    (void)pthread_cond_signal(&r->news);
    (void)pthread_mutex_unlock(&r->lock);
    (void)pthread_join(r->thread, NULL);
    (void)pthread_mutex_lock(&r->lock);
    int code = write_all(r, msg);
    (void)pthread_mutex_unlock(&r->lock);
    destroy(r);
    return code;
}

/* -------------------------------------------------------------------------------------- answers */

static bool is_ahead(const struct mark *m)
{
    return m->ts > m->written_ts;
}

int recency_get_ahead(struct recency *r, struct recency_ahead **ret_ahead, size_t *ret_count)
{
    struct recency_ahead *ahead = NULL;
    size_t count = 0;
    struct map_node *node = NULL;
    (void)pthread_mutex_lock(&r->lock);
    size_t size = r->marks.count * sizeof(*ahead);
    ahead = size > 0 ? malloc(size) : NULL;
    if (size > 0 && !ahead) {
        (void)pthread_mutex_unlock(&r->lock);
        return ERR_NOMEM;
    }
    while ((node = map_next(&r->marks, node))) {
        const struct mark *m = mark_of(node);
        if (is_ahead(m)) {
            ahead[count].ts = m->ts;
            memcpy(ahead[count].thread_id, m->thread_id, sizeof(m->thread_id));
            count++;
        }
    }
    (void)pthread_mutex_unlock(&r->lock);
    *ret_ahead = ahead;
    *ret_count = count;
    return 0;
}

int64_t recency_get(struct recency *r, struct slice thread_id)
{
    uint64_t hash = slice_hash(thread_id, 0);
    (void)pthread_mutex_lock(&r->lock);
    const struct mark *m = find(r, thread_id, hash);
    int64_t ts = m && is_ahead(m) ? m->ts : 0;
    (void)pthread_mutex_unlock(&r->lock);
    return ts;
}

const struct recency_config *recency_get_config(const struct recency *r)
{
    return &r->config;
}

uint64_t recency_writes(struct recency *r)
{
    (void)pthread_mutex_lock(&r->lock);
    uint64_t writes = r->writes;
    (void)pthread_mutex_unlock(&r->lock);
    return writes;
}
