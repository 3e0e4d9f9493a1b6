/* Nobody is told of an end that could be taken back. After a restart a TTL counts from the last
 * logged access with the slack added, and so may not be over yet: that it was over rests on the
 * record of the deletion. Expires-At is the same after a restart, and needs none.
 *
 * The deadline is looked at whenever a stream is met, never by a timer: the sweeper only meets
 * those streams that nobody asks for. */
#include "stream/expiry.h"

#include <assert.h>

#include "stream/checkpoint.h"
#include "stream/core.h"
#include "stream/op.h"
#include "stream/remove.h"
#include "stream/view.h"
#include "stream/watch.h"

int64_t expiry_slack_ms(uint64_t ttl_seconds)
{
    if (ttl_seconds == UINT64_MAX) {
        return 0;
    }
    return (int64_t)(ttl_seconds * 1000 / 8);
}

int64_t expiry_deadline(const struct stream *s)
{
    if (s->expires_at_ms != INT64_MAX) {
        return s->expires_at_ms;
    }
    if (s->ttl_seconds == UINT64_MAX || watch_any(s)) {
        return INT64_MAX;
    }
    return s->accessed_ms + (int64_t)(s->ttl_seconds * 1000);
}

static bool due(const struct stream *s, int64_t now_ms)
{
    return now_ms >= expiry_deadline(s);
}

static int absence(const struct stream *s)
{
    bool kept = s->staged.life == LIFE_SOFT ||
                (s->staged.life == LIFE_ALIVE && s->staged.fork_refs > 0);
    return kept ? ERR_GONE : ERR_NOTFOUND;
}

int expiry_check(struct stream *s, int64_t now_ms, int *ret_removal)
{
    *ret_removal = 0;
    if (s->staged.life == LIFE_ALIVE && !due(s, now_ms)) {
        return 0;
    }
    if (s->staged.life == LIFE_ALIVE) {
        *ret_removal = remove_locked(s, true);
        if (*ret_removal == 0) {
            publish_later(s->engine, s, s->staged_end);
        }
    }
    bool sure = *ret_removal == 0 || s->expires_at_ms != INT64_MAX;
    return sure ? absence(s) : *ret_removal;
}

int expiry_check_visible(struct stream *s, int64_t now_ms)
{
    const struct stream_state *v = view_now(s);
    if (v->life == LIFE_UNBORN) {
        return ERR_AGAIN;
    }
    if (v->life != LIFE_ALIVE) {
        return v->life == LIFE_SOFT ? ERR_GONE : ERR_NOTFOUND;
    }
    int removal; /* told by the result, as far as it matters */
    return due(s, now_ms) ? expiry_check(s, now_ms, &removal) : 0;
}

/* A renewal that cannot be logged now is logged by a later one; the slack covers what is lost.
 * What is logged is the true time: the stream's own idea of it may have the slack in it since it
 * was loaded, and that must not add up from load to load. */
static void log_touch(struct stream *s, int64_t now_ms)
{
    struct stream_change *c = view_change(s);
    if (!c) {
        return;
    }
    c->after.accessed_ms = now_ms;
    struct record r = {.type = RECORD_TOUCH, .id = s->id, .touch = {.now_ms = now_ms}};
    struct store *store = s->engine->store;
    log_pos end;
    checkpoint_mark(s);
    if (store->ops->stage(store, &r, NULL, &end) < 0) {
        view_drop(c);
        return;
    }
    view_push(s, c, end);
}

void expiry_touch(struct stream *s, int64_t now_ms)
{
    s->accessed_ms = now_ms > s->accessed_ms ? now_ms : s->accessed_ms;
    if (s->ttl_seconds == UINT64_MAX || s->staged.life != LIFE_ALIVE) {
        return;
    }
    if (now_ms - s->staged.accessed_ms >= expiry_slack_ms(s->ttl_seconds)) {
        log_touch(s, now_ms);
    }
}
