/* A store in memory that keeps nothing: what is staged becomes durable when the test commits,
 * unless it holds the log back or lets it fail. Included before rig.h by tests that do not care
 * for disks; it takes the place of local_store.c at link time. Not thread-safe. */
#ifndef ARBE_TESTS_UNIT_STREAM_FAKE_STORE_H
#define ARBE_TESTS_UNIT_STREAM_FAKE_STORE_H

#include <stdlib.h>

#include "log/store.h"

struct fake_store {
    struct store base;
    struct store_events events;
    log_pos staged;
    log_pos durable;
    stream_id next;
    int refuse;         /* code of every stage; 0: accepted */
    bool refuse_once;   /* only the next one */
    bool failed;        /* the log failed */
    unsigned stages;    /* records accepted */
    struct record last; /* the newest record; its slices are not to be used */
};

static struct fake_store fake;

static int fake_stage(struct store *s, const struct record *r, struct block *body_block,
                      log_pos *ret_end)
{
    (void)s;
    (void)body_block;
    if (fake.failed || fake.refuse < 0) {
        int code = fake.failed ? ERR_FAILED : fake.refuse;
        fake.refuse = fake.refuse_once ? 0 : fake.refuse;
        return code;
    }
    fake.staged += 8 + record_head_bytes(r) + record_body(r).len;
    fake.stages++;
    fake.last = *r;
    *ret_end = fake.staged;
    return 0;
}

static log_pos fake_durable(struct store *s)
{
    (void)s;
    return fake.durable;
}

static bool fake_failed(struct store *s)
{
    (void)s;
    return fake.failed;
}

static stream_id fake_next_id(struct store *s)
{
    (void)s;
    return ++fake.next;
}

static int fake_find(struct store *s, struct slice name, stream_id *ret_id)
{
    (void)s;
    (void)name;
    (void)ret_id;
    return ERR_NOTFOUND;
}

static int fake_load(struct store *s, stream_id id, struct catalog_stream *ret_stream)
{
    (void)s;
    (void)id;
    (void)ret_stream;
    return ERR_NOTFOUND;
}

static int fake_expired(struct store *s, int64_t now_ms, size_t limit, catalog_each_fn each,
                        void *context)
{
    (void)s;
    (void)now_ms;
    (void)limit;
    (void)each;
    (void)context;
    return 0;
}

static int fake_commit(struct store *s)
{
    (void)s;
    if (!fake.failed) {
        fake.durable = fake.staged;
    }
    fake.events.notice(fake.events.context);
    return 0;
}

static int fake_checkpoint(struct store *s)
{
    (void)s;
    return 0;
}

static int fake_close(struct store *s, bool checkpoint)
{
    (void)s;
    (void)checkpoint;
    return 0;
}

static void fake_stats(struct store *s, struct store_stats *ret_stats)
{
    (void)s;
    *ret_stats = (struct store_stats){0};
}

/* Lets the log fail and gives notice. */
static inline void fake_break(void)
{
    fake.failed = true;
    fake.events.notice(fake.events.context);
}

int local_store_open(const struct store_config *config, const struct store_events *events,
                     struct store **ret_store, struct store_report *ret_report, struct errmsg *msg)
{
    static const struct store_ops ops = {
        .stage = fake_stage,
        .durable = fake_durable,
        .failed = fake_failed,
        .next_id = fake_next_id,
        .find = fake_find,
        .load = fake_load,
        .expired = fake_expired,
        .commit = fake_commit,
        .checkpoint = fake_checkpoint,
        .stats = fake_stats,
        .close = fake_close,
    };
    (void)config;
    (void)msg;
    *ret_report = (struct store_report){0};
    fake = (struct fake_store){.base = {.ops = &ops}, .events = *events};
    const struct catalog_totals none = {0};
    events->opening(events->context, &fake.base, &none);
    *ret_store = &fake.base;
    return 0;
}

#endif
