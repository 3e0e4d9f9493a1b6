/* The service's own state, private to it. Everything belongs to its thread, but for what is said to
 * be under the lock or atomic.
 *
 * A subscription that has something to do is on the list `ready`. It is attended to by one rule:
 * while a change of it is on its way to the log, nothing; else the first of these that applies:
 * what a webhook answered, a lease that has ended, a new wake, the oldest operation that waits for
 * it. Whatever changes it is written first and happens when that is durable, which brings it back
 * to the list. What then follows from its state is done: a webhook is sent, a wake event written, a
 * timer set. */
#ifndef ARBE_STREAM_SUBSCRIPTION_CORE_H
#define ARBE_STREAM_SUBSCRIPTION_CORE_H

#include <pthread.h>
#include <stdatomic.h>

#include "log/sys.h"
#include "stream/subscription_change.h"
#include "stream/subscription_index.h"
#include "stream/subscription_request.h"
#include "stream/subscription_view.h"
#include "stream/subscriptions.h"

/* News of a stream: that it is longer, or gone. What comes before it is taken is put together. */
struct news {
    struct map_node by_name; /* in the map of the queue */
    struct list link;        /* on the queue, or held by a subscription */
    stream_id id;            /* the newest of that name */
    stream_id gone;          /* of that name, this one and those before it are gone; 0: none */
    uint64_t tail;           /* as far as was told */
    uint64_t quiet_start;    /* if quiet: where the event begins; it ends at the tail */
    bool quiet;              /* an event of ours, which wakes nobody who has seen all before it */
    bool dropped;            /* it is gone */
    bool forked;             /* it has no bytes of its own: those up to the tail are inherited */
    uint16_t name_len;       /* bytes of `name` */
    char name[];
};

/* A listing of all streams, a page at a time: what was missed shows. */
struct walk {
    bool wanted;     /* is to begin, once none is under way */
    bool active;     /* under way */
    bool incomplete; /* the one under way: some of what it found was not told */
    uint32_t number; /* of the newest */
    struct task task;
    struct engine_list_end end;
    char after[STREAM_NAME_BYTES_MAX];
    size_t after_len;
    int code;         /* of the last page */
    struct list news; /* struct news, of the last page */
    struct map gone;  /* struct news, by name: streams that went while the page was read */
};

/* A change on its way to the log. */
struct subscription_job {
    struct subscription_change change;
    struct subscriptions *owner;
    struct subscription *sub;
    struct stream_op note;
    struct buf batch;
    struct subscription_op *op; /* answered when it has ended; NULL: nobody asked */
    void (*done)(struct subscription_job *job, int code); /* answers `op`; NULL without one */
    void *context;                                        /* of `done` */
    bool next_wake;                                       /* it begins a wake */
};

/* Notes of what is deleted, waiting to be taken away. */
struct garbage {
    struct list link;  /* on the list */
    uint64_t number;   /* 0: the tombstone itself */
    uint16_t text_len; /* bytes of `text` */
    char text[];       /* path, or id */
};

/* Everything that is counted for subscriptions_get_stats. */
struct subscription_counts {
    _Atomic uint64_t subscriptions, tombstones, links, leases, ops, calls, calls_waiting;
    _Atomic uint64_t wakes, calls_ok, calls_failed, calls_lost, events_written, events_failed;
    _Atomic uint64_t leases_expired, links_refused;
};

struct subscriptions {
    struct subscriptions_config config;
    char *base_url; /* owned */
    struct engine_worker *worker;
    pthread_t thread;
    bool threaded; /* `thread` runs; else somebody calls subscriptions_step */

    pthread_mutex_t lock; /* guards the fields down to `quit` */
    pthread_cond_t wake;  /* there is something in the queues */
    struct list tasks;    /* struct task */
    struct list news;     /* struct news, oldest first */
    struct map news_by_name;
    size_t news_count;
    bool missed; /* there was no room for news */
    bool asleep; /* the thread waits */
    bool quit;   /* it is to end when nothing is left to do */

    uint64_t seed; /* of the hash of names and ids */
    _Atomic bool stopping;
    _Atomic bool idle; /* when last looked at, nothing was under way */
    struct subscription_counts counts;

    struct map by_id; /* struct subscription */
    struct subscription_index *index;
    struct list ready;            /* struct subscription */
    struct list calls;            /* struct subscription, for which the sender has no place */
    struct subscription **timers; /* a heap: the earliest first */
    size_t timer_count;
    size_t timer_cap;
    struct subscription **hits; /* of the look-up at hand */
    size_t hit_count;
    size_t hit_cap;
    bool hits_failed;
    size_t notes;           /* jobs under way */
    size_t calls_active;    /* webhooks at the sender */
    size_t calls_bytes;     /* of their bodies */
    size_t events;          /* wake events being written */
    size_t linkings;        /* under way */
    size_t linking_links;   /* new links that those will make, at most */
    uint64_t next_number;   /* for a subscription; none above was given */
    uint64_t hold_until_ms; /* monotonic: what nobody asked for is not tried before */
    uint64_t sweep_due_ms;  /* monotonic: old tombstones are looked for */
    struct walk walk;
    struct list garbage; /* struct garbage */
    struct list burning; /* struct garbage, of the batch that is on its way */
    struct stream_op garbage_op;
    struct buf garbage_batch;
    bool garbage_active; /* garbage_op is under way */
};

static inline uint64_t core_mono_ms(const struct subscriptions *s)
{
    return s->config.sys->mono_ms(s->config.sys->context);
}

static inline int64_t core_now_ms(const struct subscriptions *s)
{
    return s->config.sys->now_ms(s->config.sys->context);
}

static inline uint32_t core_random(const struct subscriptions *s)
{
    uint32_t value;
    s->config.sys->random(s->config.sys->context, &value, sizeof(value));
    return value;
}

/* Whether the stream of that name is as if it were not. */
static inline bool core_is_reserved(const struct subscriptions *s, struct slice name)
{
    return s->config.reserved.len > 0 && slice_starts_with(name, s->config.reserved);
}

/* subscriptions.c */

/* The same as subscriptions_open, but without a thread: the caller calls subscriptions_step. */
int subscriptions_open_stepped(const struct subscriptions_config *config,
                               struct subscriptions **ret_s, struct errmsg *msg) MUST_USE;

/* Does all there is to do. Returns the monotonic time by which it is to be called again; UINT64_MAX
 * when only a task or news can change anything. */
uint64_t subscriptions_step(struct subscriptions *s);

/* Posts a task to the service. Any thread. */
void core_post(void *context, struct task *task);

/* The subscription has something to do, or may have. */
void core_ready(struct subscriptions *s, struct subscription *sub);

/* The same, before others: somebody waits for an answer. */
void core_ready_first(struct subscriptions *s, struct subscription *sub);

/* The subscription of that id, which may be a tombstone; or NULL. */
struct subscription *core_find(const struct subscriptions *s, struct slice id);

/* The same, made if there is none. NULL when memory is out. */
struct subscription *core_obtain(struct subscriptions *s, struct slice id);

/* Frees a subscription that does not exist, has no generation to keep, and nothing under way. */
void core_forget(struct subscriptions *s, struct subscription *sub);

/* Has the index know its pattern and its wake stream. ERR_NOMEM, ERR_LIMIT; then it knows neither
 * or one of them. */
int core_index(struct subscriptions *s, struct subscription *sub) MUST_USE;

/* Has it forget both. */
void core_forget_names(struct subscriptions *s, struct subscription *sub);

/* The links or the lease of the subscription have changed: the statistics, by which links are
 * limited, keep up at once. */
void core_count(struct subscriptions *s, struct subscription *sub);

/* Takes the link out of the index of names. */
void core_unindex(struct subscriptions *s, struct subscription_link *l);

/* Tells the operator. */
void core_trouble(struct subscriptions *s, const char *format, ...) PRINTF_LIKE(2, 3);

/* subscription_job.c */

/* A change of the subscription to be filled in; there is none under way. NULL when memory is
 * out. */
struct subscription_job *job_begin(struct subscriptions *s, struct subscription *sub);

/* Writes the change; job->done follows. The job is gone then. */
void job_submit(struct subscription_job *job);

/* Ends the change without writing it: job->done is called with `code`, below 0. */
void job_cancel(struct subscription_job *job, int code);

/* What nobody asked for is not tried for a while. */
void job_hold(struct subscriptions *s);

/* Has the notes of a link or of a tombstone (number 0) taken away some time. */
void garbage_add(struct subscriptions *s, uint64_t number, struct slice text);

/* Takes some of it away, if there is any and nothing hinders. */
void garbage_burn(struct subscriptions *s);

/* subscription_timer.c */

/* The subscription is attended to at `due_ms`; UINT64_MAX: not by time. Never fails: room was made
 * by timer_reserve. */
void timer_set(struct subscriptions *s, struct subscription *sub, uint64_t due_ms);

/* Makes room for one more subscription. ERR_NOMEM. */
int timer_reserve(struct subscriptions *s) MUST_USE;

/* The one that is due first, or NULL. */
struct subscription *timer_first(const struct subscriptions *s);

/* subscription_news.c */

/* Has the engine tell what streams do. */
void news_observe(struct subscriptions *s);

/* Deals with news that were taken from the queue, and frees them. */
void news_tell(struct subscriptions *s, struct news *news);

/* Tells what was held while the subscription was being linked. */
void news_release(struct subscriptions *s, struct subscription *sub);

/* Frees all of the list. */
void news_drop_all(struct list *list);

/* An event of ours was appended to the stream `id` of that name, from `start` to `end`. */
void news_quiet(struct subscriptions *s, struct slice name, stream_id id, uint64_t start,
                uint64_t end);

/* All streams are to be listed. */
void walk_begin(struct subscriptions *s);

/* Begins that, if it is wanted and nothing hinders. */
void walk_go(struct subscriptions *s);

/* What went while a page was read counts no more. */
void walk_forget_gone(struct subscriptions *s);

/* The whole of it at once, before anything runs. Blocks. */
int walk_run(struct subscriptions *s, struct errmsg *msg) MUST_USE;

/* Whether a stream name concerns any subscription. Any thread. */
bool core_matches(const struct subscriptions *s, struct slice name);

/* The subscriptions that a stream name concerns, each once or more, are s->hits. False when memory
 * is out. */
bool core_look_up(struct subscriptions *s, struct slice name);

/* subscription_linking.c */

/* PUT of a subscription that does not exist, and POST of streams. The operation is the
 * linking's. */
void linking_create(struct subscriptions *s, struct subscription *sub, struct subscription_op *op);
/* See linking_create. */
void linking_add(struct subscriptions *s, struct subscription *sub, struct subscription_op *op);

/* subscription_ops.c */

/* What an operation says, read before its turn comes. */
struct subscription_request {
    struct arena arena;
    struct subscription_spec spec;     /* put */
    const struct slice *streams;       /* link */
    size_t stream_count;               /* link */
    struct slice worker;               /* claim */
    struct subscription_report report; /* callback, ack, release */
    char path[STREAM_NAME_BYTES_MAX];  /* unlink */
    size_t path_len;                   /* unlink */
    size_t looked;                     /* acks: whose tails were asked for, up to here */
    struct stream_op head;             /* acks: asks for one */
    struct subscription *subject;      /* while `head` is under way */
};

/* The operation came in. */
void ops_arrive(struct task *task);

/* Its turn has come. */
void ops_run(struct subscriptions *s, struct subscription *sub, struct subscription_op *op);

/* Answers with an error of the API. */
void ops_refuse(struct subscription_op *op, enum subscription_error error, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* The same for an error of the log or the catalog. */
void ops_fail(struct subscription_op *op, int code);

/* Answers; op->answer is complete. */
void ops_answer(struct subscription_op *op, int status);

/* Answers with the view of the subscription. */
void ops_show(struct subscriptions *s, struct subscription *sub, struct subscription_op *op,
              int status);

/* subscription_wake.c */

/* What changes without anybody asking: results, expiry, wakes, old notes. True: a change is under
 * way. */
bool wake_change(struct subscriptions *s, struct subscription *sub);

/* What follows from the state: webhooks, events, the timer. */
void wake_act(struct subscriptions *s, struct subscription *sub);

/* The state is new: sets when its lease and its next attempt are due. */
void wake_set_due(struct subscriptions *s, struct subscription *sub);

/* Adds a new wake to a job whose state is idle, if something will be pending. */
void wake_next(struct subscription_job *job);

/* Ends the wake in the state of a job, and begins the next as above. */
void wake_end(struct subscription_job *job);

/* Mints the token of the wake of `st`. Failure sticks to the buffer. */
void wake_mint(struct subscriptions *s, struct buf *out, const struct subscription *sub,
               const struct subscription_state *st);

/* The subscription is gone, and wants no place at the sender. */
void wake_forget(struct subscriptions *s, struct subscription *sub);

/* A webhook is being sent. */
void wake_sending(struct task *task);

/* A webhook was answered. */
void wake_answered(struct task *task);

/* subscription_load.c */

/* Reads all notes. Blocks. */
int load_notes(struct subscriptions *s, struct errmsg *msg) MUST_USE;

#endif
