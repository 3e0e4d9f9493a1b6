/* The way of a post. All ids fresh: one append, started here, ended on the client's thread; no
 * lock, no look, and no memory but the call's.
 *
 * Others first claim their ids, all or none: a post that finds one of them claimed waits behind
 * that claim, and tries again when it is given up. With its claims a post joins the queue, whose
 * posts are looked up, whether the entries are there (entry_index.h); what is not there is appended
 * as above; then the claims are given up. So of two posts of an id the second is looked up when the
 * first has ended, however that was, and sees in the stream what became of it.
 *
 * The queue is worked on by helpers on the pool, and by whoever waits in poster_post: a pool whose
 * threads all wait for an id would have none left for the post that has claimed it. Posts to one
 * thread are looked up one at a time, so that a long stream that is read for the first time holds
 * up no others. */
#include "thread/poster.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/map.h"
#include "client/operation.h"
#include "thread/entry_index.h"

#define BUSY_RETRY_S 1u
#define HELPERS      8u /* looks at once, besides those of waiters */

/* An id that a post is about at present. */
struct post_claim {
    struct map_node node; /* on the poster's claims, by thread and id */
    struct post *post;
    struct slice id;
    struct list waiting; /* posts that want it next */
};

/* Who waits in poster_post; under the poster's lock. */
struct post_waiter {
    bool ended;
    int result;
};

/* A post that somebody looks up; on the stack of who does. */
struct looking {
    struct list link;       /* on looking */
    struct slice thread_id; /* in text: the post may be gone before the look is */
    char text[STORE_ID_BYTES];
};

/* Works on the queue, on the pool, until it is empty. */
struct helper {
    struct task task;
    struct poster *poster;
    bool busy; /* submitted, and has not found the queue empty */
};

struct poster {
    struct poster_config config;
    struct entry_index *index;
    atomic_size_t count;             /* of posts under way */
    atomic_size_t bytes;             /* of their entries */
    atomic_uint_fast64_t stored;     /* see struct poster_stats */
    atomic_uint_fast64_t duplicates; /* likewise */
    pthread_mutex_t lock;            /* guards what follows, and the waiters */
    pthread_cond_t news; /* the queue has a post, a waiter's has ended, a helper is idle */
    struct map claims;   /* struct post_claim */
    struct list queue;   /* posts to be looked up */
    struct list looking; /* struct looking: posts that are */
    struct helper helpers[HELPERS];
};

/* -------------------------------------------------------------------------------------- the end */

static void go_on(struct post *post);

/* Gives up the claims; those who waited for them try again. */
static void give_up(struct poster *p, struct post *post)
{
    struct list waiting;
    list_init(&waiting);
    (void)pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < post->claim_count; i++) {
        map_remove(&p->claims, &post->claims[i].node);
        list_append_all(&waiting, &post->claims[i].waiting);
    }
    (void)pthread_mutex_unlock(&p->lock);
    for (struct list *link; (link = list_first(&waiting));) {
        list_remove(link);
        go_on(container_of(link, struct post, link));
    }
}

/* The last touch of a post. */
static void deliver(struct post *post, int result)
{
    struct poster *p = post->poster;
    struct post_waiter *w = post->waiter;
    if (!w) {
        post->done(post, result);
        return;
    }
    (void)pthread_mutex_lock(&p->lock);
    w->ended = true;
    w->result = result;
    (void)pthread_cond_broadcast(&p->news);
    (void)pthread_mutex_unlock(&p->lock);
}

static void count(struct poster *p, const struct post *post)
{
    atomic_fetch_add_explicit(&p->stored, post->stored, memory_order_relaxed);
    if (post->stored < post->count) {
        atomic_fetch_add_explicit(&p->duplicates, post->count - post->stored, memory_order_relaxed);
    }
}

/* Its claims are on the map, or it has none. */
static void end(struct post *post, int result)
{
    struct poster *p = post->poster;
    if (result == 0) {
        count(p, post);
    }
    if (post->claim_count > 0) {
        give_up(p, post);
    }
    free(post->claims);
    free(post->looked);
    free(post->batch);
    atomic_fetch_sub_explicit(&p->bytes, post->bytes, memory_order_relaxed);
    atomic_fetch_sub_explicit(&p->count, 1, memory_order_release);
    deliver(post, result);
}

/* It came to nothing before it had claims. */
static void refuse(struct post *post)
{
    post->claim_count = 0;
    post->retry_after_s = BUSY_RETRY_S;
    end(post, -1);
}

static void end_without_memory(struct post *post)
{
    (void)api_error_set(&post->error, API_BUSY, "out of memory");
    post->retry_after_s = BUSY_RETRY_S;
    end(post, -1);
}

static void end_failed(struct post *post, const struct stream_error *error)
{
    (void)failure_of_stream(&post->error, error, &post->poster->config.teller);
    post->retry_after_s = failure_retry_after_s(error);
    post->final = failure_is_final(error);
    post->stored = 0;
    end(post, -1);
}

/* ----------------------------------------------------------------------------------- the append */

static void on_appended(void *context, int code, const struct stream_info *info,
                        const struct stream_error *error)
{
    struct post *post = context;
    if (code != STREAM_OK) {
        end_failed(post, error);
        return;
    }
    memcpy(post->next_offset, info->next_offset, sizeof(post->next_offset));
    end(post, 0);
}

/* One entry as it is, several as a JSON array, which is stored all or none. ptr NULL: no memory. */
static struct slice body_of(struct post *post)
{
    struct slice only = {NULL, 0};
    size_t at = 0;
    for (size_t i = 0; i < post->count; i++) {
        only = post->entries[i].duplicate ? only : post->entries[i].json;
        post->stored += !post->entries[i].duplicate;
    }
    if (post->stored == 1) {
        return only;
    }
    post->batch = malloc(post->bytes + post->stored + 1); /* with commas and brackets */
    if (!post->batch) {
        return (struct slice){NULL, 0};
    }
    for (size_t i = 0; i < post->count; i++) {
        struct slice json = post->entries[i].json;
        if (!post->entries[i].duplicate) {
            post->batch[at] = at == 0 ? '[' : ',';
            memcpy(post->batch + at + 1, json.ptr, json.len);
            at += 1 + json.len;
        }
    }
    post->batch[at++] = ']';
    return (struct slice){post->batch, at};
}

/* Appends what is no duplicate. */
static void append(struct post *post)
{
    char name[THREAD_STREAM_BYTES];
    struct stream_error error;
    struct slice body = body_of(post);
    if (!body.ptr) {
        end_without_memory(post);
        return;
    }
    thread_stream_name(post->thread_id, name);
    const struct call call = {.verb = CALL_APPEND,
                              .name = slice_of(name),
                              .body = body,
                              .content_type = "application/json"};
    int code = operation_start_inside(post->poster->config.client, &call, on_appended, post,
                                      &error);
    if (code != STREAM_OK) {
        end_failed(post, &error);
    }
}

/* --------------------------------------------------------------------------------- known before */

/* Blocks. With claims. */
static void look(struct post *post)
{
    struct poster *p = post->poster;
    size_t duplicates = 0;
    for (size_t i = 0; i < post->claim_count; i++) {
        post->looked[i].id = post->claims[i].id;
    }
    if (entry_index_look(p->index, post->thread_id, post->looked, post->claim_count, post->arena,
                         &post->error) < 0) {
        post->retry_after_s = api_error_recoverable(post->error.code) ? BUSY_RETRY_S : 0;
        end(post, -1);
        return;
    }
    for (size_t i = 0, claim = 0; i < post->count; i++) {
        struct post_entry *e = &post->entries[i];
        if (!e->fresh) {
            e->duplicate = post->looked[claim].found;
            e->first = post->looked[claim].json;
            duplicates += e->duplicate;
            claim++;
        }
    }
    if (duplicates == post->count) {
        end(post, 0);
    } else {
        append(post);
    }
}

/* Sets a helper to work on the queue, unless all are. Under the lock. */
static void wake_helper(struct poster *p)
{
    for (size_t i = 0; i < HELPERS; i++) {
        if (!p->helpers[i].busy) {
            p->helpers[i].busy = true;
            pool_submit(p->config.pool, &p->helpers[i].task);
            return;
        }
    }
}

/* Whether somebody looks up a post to the same thread. Under the lock. */
static bool is_looked_at(const struct poster *p, struct slice thread_id)
{
    LIST_FOR_EACH(link, &p->looking)
    {
        const struct looking *l = container_of(link, struct looking, link);
        if (slice_equal(l->thread_id, thread_id)) {
            return true;
        }
    }
    return false;
}

/* The first post of the queue that may be looked up now, or NULL. Under the lock. */
static struct post *next_to_look(const struct poster *p)
{
    LIST_FOR_EACH(link, &p->queue)
    {
        struct post *post = container_of(link, struct post, link);
        if (!is_looked_at(p, post->thread_id)) {
            return post;
        }
    }
    return NULL;
}

/* Looks up a post of the queue, if there is one. Under the lock, which it lets go of. */
static bool look_up_one(struct poster *p)
{
    struct post *post = next_to_look(p);
    if (!post) {
        return false;
    }
    struct looking looking;
    memcpy(looking.text, post->thread_id.ptr, post->thread_id.len);
    looking.thread_id = (struct slice){looking.text, post->thread_id.len};
    list_init(&looking.link);
    list_append(&p->looking, &looking.link);
    list_remove(&post->link);
    (void)pthread_mutex_unlock(&p->lock);
    look(post);
    (void)pthread_mutex_lock(&p->lock);
    list_remove(&looking.link);
    if (!list_empty(&p->queue)) {
        wake_helper(p); /* others may have passed over what waited for this one */
        (void)pthread_cond_broadcast(&p->news);
    }
    return true;
}

static void help(struct task *task)
{
    struct helper *h = container_of(task, struct helper, task);
    struct poster *p = h->poster;
    (void)pthread_mutex_lock(&p->lock);
    while (look_up_one(p)) {
    }
    h->busy = false;
    (void)pthread_cond_broadcast(&p->news);
    (void)pthread_mutex_unlock(&p->lock);
}

static uint64_t claim_hash(const struct post *post, struct slice id)
{
    return slice_hash(id, slice_hash(post->thread_id, 0));
}

/* Under the lock. */
static struct post_claim *find_claim(const struct poster *p, const struct post *post,
                                     struct slice id)
{
    struct map_node *node = map_find(&p->claims, claim_hash(post, id));
    for (; node; node = map_find_next(node)) {
        struct post_claim *claim = container_of(node, struct post_claim, node);
        if (slice_equal(claim->id, id) && slice_equal(claim->post->thread_id, post->thread_id)) {
            return claim;
        }
    }
    return NULL;
}

/* Claims all ids of the post, or queues it behind the first that is claimed. Under the lock. False
 * when there is no memory, and none is claimed. */
static bool claim_all(struct poster *p, struct post *post, bool *ret_claimed)
{
    *ret_claimed = false;
    for (size_t i = 0; i < post->claim_count; i++) {
        struct post_claim *claim = find_claim(p, post, post->claims[i].id);
        if (claim) {
            list_append(&claim->waiting, &post->link);
            return true;
        }
    }
    for (size_t i = 0; i < post->claim_count; i++) {
        struct post_claim *claim = &post->claims[i];
        list_init(&claim->waiting);
        /* Fails for the first one at most: later ones have a table. */
        if (map_insert(&p->claims, &claim->node, claim_hash(post, claim->id)) != 0) {
            assert(i == 0);
            return false;
        }
    }
    *ret_claimed = true;
    return true;
}

/* Claims, and then joins the queue; or waits for its turn. */
static void go_on(struct post *post)
{
    struct poster *p = post->poster;
    bool claimed;
    (void)pthread_mutex_lock(&p->lock);
    bool room = claim_all(p, post, &claimed);
    if (claimed) {
        list_append(&p->queue, &post->link);
        wake_helper(p);
        (void)pthread_cond_broadcast(&p->news);
    }
    (void)pthread_mutex_unlock(&p->lock);
    if (!room) {
        (void)api_error_set(&post->error, API_BUSY, "out of memory");
        refuse(post);
    }
}

/* ------------------------------------------------------------------------------------ the start */

/* Counts the post: false when there are too many. */
static bool admit(struct poster *p, struct post *post)
{
    size_t count = 1 + atomic_fetch_add_explicit(&p->count, 1, memory_order_relaxed);
    size_t bytes = post->bytes +
                   atomic_fetch_add_explicit(&p->bytes, post->bytes, memory_order_relaxed);
    return count <= POSTS_MAX && bytes <= POSTS_BYTES_MAX;
}

/* Begins results and private fields; `fresh` says whether all ids are. */
static void init_post(struct poster *p, struct post *post, struct post_waiter *waiter)
{
    assert(post->count > 0 && post->thread_id.len > 0 && post->thread_id.len < STORE_ID_BYTES);
    post->error.message[0] = '\0';
    post->final = false;
    post->retry_after_s = 0;
    post->stored = 0;
    post->next_offset[0] = '\0';
    post->poster = p;
    list_init(&post->link);
    post->claims = NULL;
    post->looked = NULL;
    post->claim_count = 0;
    post->batch = NULL;
    post->bytes = 0;
    post->waiter = waiter;
    for (size_t i = 0; i < post->count; i++) {
        struct post_entry *e = &post->entries[i];
        assert(e->json.len > 0 && e->id.len > 0);
        e->duplicate = false;
        e->first = (struct slice){NULL, 0};
        post->bytes += e->json.len;
        post->claim_count += !e->fresh;
    }
}

static bool prepare_claims(struct post *post)
{
    size_t claim = 0;
    post->claims = calloc(post->claim_count, sizeof(*post->claims));
    post->looked = calloc(post->claim_count, sizeof(*post->looked));
    if (!post->claims || !post->looked) {
        return false;
    }
    for (size_t i = 0; i < post->count; i++) {
        if (!post->entries[i].fresh) {
            post->claims[claim].post = post;
            post->claims[claim].id = post->entries[i].id;
            claim++;
        }
    }
    return true;
}

static void begin(struct poster *p, struct post *post, struct post_waiter *waiter)
{
    init_post(p, post, waiter);
    if (!admit(p, post)) {
        (void)api_error_set(&post->error, API_BUSY, "too many entries are being stored at once");
        refuse(post);
    } else if (post->claim_count == 0) {
        append(post);
    } else if (!prepare_claims(post)) {
        (void)api_error_set(&post->error, API_BUSY, "out of memory");
        refuse(post);
    } else {
        go_on(post);
    }
}

void poster_start(struct poster *p, struct post *post)
{
    begin(p, post, NULL);
}

int poster_post(struct poster *p, struct post *post)
{
    struct post_waiter w = {.ended = false};
    begin(p, post, &w);
    (void)pthread_mutex_lock(&p->lock);
    while (!w.ended) {
        if (!look_up_one(p)) {
            (void)pthread_cond_wait(&p->news, &p->lock);
        }
    }
    (void)pthread_mutex_unlock(&p->lock);
    return w.result;
}

int poster_find(struct poster *p, struct slice thread_id, struct slice entry_id,
                struct arena *arena, struct slice *ret_json, struct api_error *ret_error)
{
    struct entry_query query = {.id = entry_id};
    if (entry_index_look(p->index, thread_id, &query, 1, arena, ret_error) < 0) {
        return -1;
    }
    if (!query.found) {
        return api_error_set(ret_error, API_NOT_FOUND, "the thread has no entry \"%.*s\"",
                             (int)entry_id.len, entry_id.ptr);
    }
    *ret_json = query.json;
    return 0;
}

/* ------------------------------------------------------------------------------- start and end */

int poster_create(const struct poster_config *config, struct poster **ret_poster)
{
    struct poster *p = calloc(1, sizeof(*p));
    if (!p) {
        return ERR_NOMEM;
    }
    p->config = *config;
    int code = entry_index_open(config->store, config->client, &config->teller, &p->index);
    if (code != 0) {
        free(p);
        return code;
    }
    map_init(&p->claims);
    list_init(&p->queue);
    list_init(&p->looking);
    (void)pthread_mutex_init(&p->lock, NULL); /* neither can fail on Linux */
    (void)pthread_cond_init(&p->news, NULL);
    for (size_t i = 0; i < HELPERS; i++) {
        p->helpers[i] = (struct helper){.task = {.run = help}, .poster = p};
    }
    *ret_poster = p;
    return 0;
}

void poster_get_stats(const struct poster *p, struct poster_stats *ret_stats)
{
    *ret_stats = (struct poster_stats){
        .stored = atomic_load_explicit(&p->stored, memory_order_relaxed),
        .duplicates = atomic_load_explicit(&p->duplicates, memory_order_relaxed),
    };
}

int poster_flush(struct poster *p, struct errmsg *msg)
{
    return entry_index_flush(p->index, msg);
}

/* A helper may still be on its way to an empty queue. */
static void wait_for_helpers(struct poster *p)
{
    (void)pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < HELPERS; i++) {
        while (p->helpers[i].busy) {
            (void)pthread_cond_wait(&p->news, &p->lock);
        }
    }
    (void)pthread_mutex_unlock(&p->lock);
}

void poster_destroy(struct poster *p)
{
    if (!p) {
        return;
    }
    assert(atomic_load_explicit(&p->count, memory_order_acquire) == 0);
    wait_for_helpers(p);
    entry_index_close(p->index);
    map_finish(&p->claims);
    (void)pthread_cond_destroy(&p->news);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}
