/* Never above a limit, and nothing lost below it: whoever takes makes sure that there is enough
 * before it counts, in one step (take_bytes), so nobody is refused because of a share that
 * somebody else is about to be refused as well. A creation takes of both counts; creations do so
 * one after another, and then the streams can only become fewer between look and count. Without
 * a limit on bytes an append only adds. */
#include "stream/quota.h"

#include <assert.h>

#include "stream/stream.h"

void quota_init(struct quota *q)
{
    *q = (struct quota){0};
    pthread_mutex_init(&q->lock, NULL);
}

void quota_finish(struct quota *q)
{
    pthread_mutex_destroy(&q->lock);
}

void quota_limit(struct quota *q, uint64_t streams_max, uint64_t bytes_max)
{
    atomic_store(&q->streams_max, streams_max);
    atomic_store(&q->bytes_max, bytes_max);
}

static int refuse_bytes(uint64_t held, uint64_t max, struct errmsg *msg)
{
    uint64_t left = held < max ? max - held : 0;
    return err_set(msg, ERR_NOSPC,
                   "this server stores at most %llu bytes and has room for %llu more: delete "
                   "streams, or ask its operator for a higher --max-bytes",
                   (unsigned long long)max, (unsigned long long)left);
}

static int take_bytes(struct quota *q, uint64_t bytes, struct errmsg *msg)
{
    uint64_t max = atomic_load_explicit(&q->bytes_max, memory_order_relaxed);
    if (bytes == 0) {
        return 0;
    }
    if (max == 0) {
        atomic_fetch_add(&q->bytes, bytes);
        return 0;
    }
    uint64_t held = atomic_load(&q->bytes);
    do {
        if (held > max || bytes > max - held) {
            return refuse_bytes(held, max, msg);
        }
    } while (!atomic_compare_exchange_weak(&q->bytes, &held, held + bytes));
    return 0;
}

/* Under the lock. */
static int take_both(struct quota *q, struct quota_share share, uint64_t streams_max,
                     struct errmsg *msg)
{
    if (streams_max > 0) {
        uint64_t held = atomic_load(&q->streams);
        if (held > streams_max || share.streams > streams_max - held) {
            return err_set(msg, ERR_NOSPC,
                           "this server keeps at most %llu streams: delete one, or ask its "
                           "operator for a higher --max-streams",
                           (unsigned long long)streams_max);
        }
    }
    int code = take_bytes(q, share.bytes, msg);
    if (code == 0) {
        atomic_fetch_add(&q->streams, share.streams);
    }
    return code;
}

int quota_take(struct quota *q, struct quota_share share, struct errmsg *msg)
{
    if (share.streams == 0) {
        return take_bytes(q, share.bytes, msg);
    }
    pthread_mutex_lock(&q->lock);
    uint64_t streams_max = atomic_load_explicit(&q->streams_max, memory_order_relaxed);
    int code = take_both(q, share, streams_max, msg);
    pthread_mutex_unlock(&q->lock);
    return code;
}

void quota_give(struct quota *q, struct quota_share share)
{
    if (share.bytes > 0) {
        uint64_t before = atomic_fetch_sub(&q->bytes, share.bytes);
        assert(before >= share.bytes);
    }
    if (share.streams > 0) {
        uint64_t before = atomic_fetch_sub(&q->streams, share.streams);
        assert(before >= share.streams);
    }
}

void quota_count(struct quota *q, struct quota_share share)
{
    atomic_fetch_add(&q->streams, share.streams);
    atomic_fetch_add(&q->bytes, share.bytes);
}

struct quota_share quota_share_of(const struct stream *s, const struct stream_state *state)
{
    if (state->life != LIFE_ALIVE && state->life != LIFE_SOFT) {
        return (struct quota_share){0};
    }
    assert(state->tail >= stream_own_start(s));
    return (struct quota_share){.streams = 1, .bytes = state->tail - stream_own_start(s)};
}
