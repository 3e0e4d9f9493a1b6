/* Wakes: when one is made, how it reaches its worker, and how it ends without being asked.
 *
 * The lease of a webhook runs while its request is under way and after it was accepted, and stands
 * still otherwise: while it waits for its turn to be sent, and while a failed one waits to be sent
 * again, so that a receiver that is down is asked at the pace of the back-off, however short
 * the lease is. An answer counts only for the wake it was sent for. */
#include <assert.h>
#include <stdlib.h>

#include "base/limits.h"
#include "stream/subscription_core.h"
#include "stream/token.h"

/* Where memory is out, the same is tried again after so long. */
#define MEMORY_PAUSE_MS 1000u

#define WEBHOOK_BODY_BYTES_MAX (64u * MIB)
#define EVENT_BYTES_MAX        (8u * KIB)

/* A wake event on its way to its stream. */
struct wake_event {
    struct stream_op op;
    struct subscriptions *owner;
    struct subscription *sub;
    uint64_t number;
    uint64_t generation;
    struct buf body;
    char name[STREAM_NAME_BYTES_MAX];
};

static void make_wake_id(const struct subscriptions *s, char out[static SUBSCRIPTION_WAKE_ID_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t random[(SUBSCRIPTION_WAKE_ID_BYTES - 2) / 2];
    s->config.sys->random(s->config.sys->context, random, sizeof(random));
    out[0] = 'w';
    out[1] = '_';
    for (size_t i = 0; i < sizeof(random); i++) {
        out[2 + 2 * i] = digits[random[i] >> 4];
        out[3 + 2 * i] = digits[random[i] & 15];
    }
}

void wake_next(struct subscription_job *job)
{
    if (!subscription_change_pending(&job->change)) {
        return;
    }
    char wake_id[SUBSCRIPTION_WAKE_ID_BYTES];
    make_wake_id(job->owner, wake_id);
    subscription_state_wake(&job->change.after, job->sub, wake_id, core_now_ms(job->owner));
    job->next_wake = true;
}

void wake_end(struct subscription_job *job)
{
    subscription_state_end(&job->change.after);
    wake_next(job);
}

void wake_mint(struct subscriptions *s, struct buf *out, const struct subscription *sub,
               const struct subscription_state *st)
{
    struct token token = {
        .subscription = sub->id,
        .generation = st->generation,
        .now_ms = core_now_ms(s),
    };
    s->config.sys->random(s->config.sys->context, token.jti, sizeof(token.jti));
    token_mint(out, s->config.token_key, &token);
}

/* A time of the wall clock by the monotonic one, at most `max_ms` from now: the wall clock may
 * jump, and a lease must not grow by that. */
static uint64_t mono_of(const struct subscriptions *s, int64_t at_ms, uint64_t max_ms)
{
    int64_t left = at_ms - core_now_ms(s);
    uint64_t wait = left < 0 ? 0 : (uint64_t)left;
    return core_mono_ms(s) + (wait < max_ms ? wait : max_ms);
}

void wake_set_due(struct subscriptions *s, struct subscription *sub)
{
    const struct subscription_state *st = &sub->state;
    sub->lease_due_ms = st->lease_until_ms ? mono_of(s, st->lease_until_ms, sub->def.lease_ttl_ms)
                                           : 0;
    sub->retry_due_ms = st->retry_at_ms
                            ? mono_of(s, st->retry_at_ms, SUBSCRIPTION_RETRY_MS_MAX * 6 / 5)
                            : 0;
    sub->stale = false;
}

/* ---------------------------------------------------------------------------------- changes */

static bool is_calling(const struct subscription *sub)
{
    return sub->call_generation != 0 && sub->call_generation == sub->state.generation;
}

static bool is_sent(const struct subscription *sub)
{
    return is_calling(sub) && sub->call_sent;
}

static bool lease_ended(const struct subscriptions *s, const struct subscription *sub)
{
    const struct subscription_state *st = &sub->state;
    bool runs = st->phase == SUBSCRIPTION_LEASED ||
                (st->phase == SUBSCRIPTION_OFFERED && (is_sent(sub) || sub->stale));
    return runs && core_mono_ms(s) >= sub->lease_due_ms;
}

/* The worker has processed what it was sent. Cursors that are further already stay. */
static void ack_sent(struct subscription_change *c)
{
    LIST_FOR_EACH(node, &c->sub->links)
    {
        struct subscription_link *l = container_of(node, struct subscription_link, link);
        if (!l->dropped && l->sent_generation == c->sub->state.generation) {
            subscription_change_ack(c, l, l->sent_tail);
        }
    }
}

/* What the answer to a webhook changes. */
static void apply_result(struct subscription_job *job)
{
    struct subscriptions *s = job->owner;
    struct subscription *sub = job->sub;
    struct subscription_state *st = &job->change.after;
    if (sub->result_ok && sub->result_done) {
        ack_sent(&job->change);
        wake_end(job);
        return;
    }
    int64_t now_ms = core_now_ms(s);
    if (!sub->result_ok) {
        uint64_t pause = subscription_pause_ms(st->failures + 1, core_random(s));
        subscription_state_fail(st, pause, now_ms);
        return;
    }
    uint64_t mono_ms = core_mono_ms(s);
    subscription_state_lease(st, sub, now_ms);
    if (sub->call_sent) {
        uint64_t left = sub->lease_due_ms > mono_ms ? sub->lease_due_ms - mono_ms : 0;
        st->lease_until_ms = now_ms + (int64_t)left; /* it began when the webhook was sent */
    }
}

static bool is_obsolete(const struct subscription *sub)
{
    return sub->state.phase == SUBSCRIPTION_OFFERED && !is_calling(sub) &&
           !subscription_pending(sub);
}

/* Notes of links that are old, and links that are gone and never had one. */
static bool has_old_notes(struct subscription *sub)
{
    LIST_FOR_EACH(node, &sub->dirty)
    {
        struct subscription_link *l = container_of(node, struct subscription_link, dirty_link);
        if (!l->dropped || l->saved) {
            return true;
        }
        subscription_detach(l);
    }
    return false;
}

enum cause {
    CAUSE_NONE,
    CAUSE_RESULT,
    CAUSE_EXPIRY,
    CAUSE_PENDING,
    CAUSE_OBSOLETE, /* nothing is pending any more, and nobody has taken the wake */
    CAUSE_NOTES,
};

/* Not if the wake is over; and once a callback has the wake, only that it is done. */
static bool result_counts(const struct subscription *sub)
{
    if (sub->result_generation != sub->state.generation) {
        return false;
    }
    return sub->state.phase == SUBSCRIPTION_OFFERED ||
           (sub->state.phase == SUBSCRIPTION_LEASED && sub->result_ok && sub->result_done);
}

static enum cause find_cause(const struct subscriptions *s, struct subscription *sub)
{
    if (sub->result_generation != 0 && result_counts(sub)) {
        return CAUSE_RESULT;
    }
    sub->result_generation = 0;
    if (lease_ended(s, sub)) {
        return CAUSE_EXPIRY;
    }
    if (sub->state.phase == SUBSCRIPTION_IDLE && subscription_pending(sub)) {
        return CAUSE_PENDING;
    }
    if (is_obsolete(sub)) {
        return CAUSE_OBSOLETE;
    }
    return has_old_notes(sub) ? CAUSE_NOTES : CAUSE_NONE;
}

static void expired(struct subscription_job *job, int code)
{
    atomic_fetch_add(&job->owner->counts.leases_expired, code == 0);
}

static void answered(struct subscription_job *job, int code)
{
    if (code == 0) {
        job->sub->result_generation = 0;
    }
}

bool wake_change(struct subscriptions *s, struct subscription *sub)
{
    enum cause cause = find_cause(s, sub);
    if (cause == CAUSE_NONE) {
        return false;
    }
    struct subscription_job *job = job_begin(s, sub);
    if (!job) {
        job_hold(s);
        core_ready(s, sub);
        return false;
    }
    job->change.moved = cause != CAUSE_NOTES;
    if (cause == CAUSE_RESULT) {
        job->done = answered;
        apply_result(job);
    } else if (cause == CAUSE_EXPIRY) {
        job->done = expired;
        wake_end(job);
    } else if (cause == CAUSE_PENDING) {
        wake_next(job);
    } else if (cause == CAUSE_OBSOLETE) {
        subscription_state_end(&job->change.after);
    }
    job_submit(job);
    return true;
}

/* ---------------------------------------------------------------------------------- webhooks */

static void free_delivery(struct subscription_delivery *d)
{
    buf_finish(&d->url_bytes);
    buf_finish(&d->body_bytes);
    free(d);
}

/* The URL, and what is to be sent there. NULL when memory is out. */
static struct subscription_delivery *make_delivery(struct subscriptions *s,
                                                   struct subscription *sub)
{
    struct subscription_delivery *d = calloc(1, sizeof(*d));
    if (!d) {
        return NULL;
    }
    d->owner = s;
    d->about = sub;
    d->number = sub->number;
    d->generation = sub->state.generation;
    buf_init(&d->url_bytes, SUBSCRIPTION_URL_BYTES_MAX);
    buf_init(&d->body_bytes, WEBHOOK_BODY_BYTES_MAX);
    struct buf token;
    buf_init(&token, TOKEN_BYTES_MAX);
    wake_mint(s, &token, sub, &sub->state);
    buf_append(&d->url_bytes, sub->def.target);
    subscription_view_webhook(&d->body_bytes, sub, &sub->state, slice_of(s->base_url),
                              buf_slice(&token));
    bool failed = token.failed || d->url_bytes.failed || d->body_bytes.failed;
    buf_finish(&token);
    if (failed) {
        free_delivery(d);
        return NULL;
    }
    d->url = buf_slice(&d->url_bytes);
    d->body = buf_slice(&d->body_bytes);
    return d;
}

/* What the body tells: an answer of "done" is about that. */
static void mark_sent(struct subscription *sub)
{
    LIST_FOR_EACH(node, &sub->links)
    {
        struct subscription_link *l = container_of(node, struct subscription_link, link);
        if (!l->dropped) {
            l->sent_generation = sub->state.generation;
            l->sent_tail = l->tail;
        }
    }
}

static void call(struct subscriptions *s, struct subscription *sub)
{
    struct subscription_delivery *d = make_delivery(s, sub);
    if (!d) {
        sub->retry_due_ms = core_mono_ms(s) + MEMORY_PAUSE_MS;
        return;
    }
    mark_sent(sub);
    sub->call_generation = sub->state.generation;
    sub->call_sent = false;
    sub->calls++;
    s->calls_active++;
    s->calls_bytes += d->body.len;
    atomic_fetch_add(&s->counts.calls, 1);
    s->config.deliver(s->config.context, d);
}

/* Whether the sender gets another one. It is given many more than it sends at a time, for it is the
 * one that knows which of them go to a receiver that is slow, and lets the others pass. */
static bool has_place(const struct subscriptions *s)
{
    return s->calls_active < SUBSCRIPTION_DELIVERIES_MAX &&
           s->calls_bytes < SUBSCRIPTION_DELIVERIES_BYTES_MAX;
}

/* A place at the sender is free: for the next that waits. */
static void offer_place(struct subscriptions *s)
{
    struct list *next = list_first(&s->calls);
    if (next && has_place(s)) {
        core_ready(s, container_of(next, struct subscription, call_link));
    }
}

static void leave_queue(struct subscriptions *s, struct subscription *sub)
{
    if (!list_empty(&sub->call_link)) {
        list_remove(&sub->call_link);
        atomic_fetch_sub(&s->counts.calls_waiting, 1);
    }
}

/* Whether the wake is to be sent, now or later. No subscription is at the sender more than twice:
 * with the wake that is current, and with one before it that hangs. */
static bool wants_call(const struct subscriptions *s, const struct subscription *sub)
{
    return sub->state.phase == SUBSCRIPTION_OFFERED && !is_calling(sub) &&
           sub->result_generation == 0 && !sub->stale &&
           sub->calls < SUBSCRIPTION_DELIVERIES_EACH && subscription_pending(sub) &&
           !s->config.webhooks_off;
}

static void act_webhook(struct subscriptions *s, struct subscription *sub)
{
    if (!wants_call(s, sub) || core_mono_ms(s) < sub->retry_due_ms) {
        leave_queue(s, sub);
        offer_place(s);
    } else if (has_place(s)) {
        leave_queue(s, sub);
        call(s, sub);
    } else if (list_empty(&sub->call_link)) {
        list_append(&s->calls, &sub->call_link);
        atomic_fetch_add(&s->counts.calls_waiting, 1);
    }
}

void subscriptions_delivered(struct subscriptions *s, struct subscription_delivery *d,
                             int http_status, struct slice reply)
{
    assert(d->owner == s);
    d->http_status = http_status;
    bool ok = http_status >= 200 && http_status <= 299;
    d->done = ok && subscription_reply_done(reply);
    d->task.run = wake_answered;
    core_post(s, &d->task);
}

void subscriptions_sending(struct subscriptions *s, struct subscription_delivery *d)
{
    assert(d->owner == s);
    d->sending.run = wake_sending;
    core_post(s, &d->sending);
}

void wake_sending(struct task *task)
{
    const struct subscription_delivery *d = container_of(task, struct subscription_delivery,
                                                         sending);
    struct subscriptions *s = d->owner;
    struct subscription *sub = d->about;
    if (sub->exists && sub->number == d->number && sub->call_generation == d->generation) {
        sub->call_sent = true;
        sub->lease_due_ms = core_mono_ms(s) + sub->def.lease_ttl_ms;
        core_ready(s, sub);
    }
}

void wake_forget(struct subscriptions *s, struct subscription *sub)
{
    leave_queue(s, sub);
    offer_place(s);
}

void wake_answered(struct task *task)
{
    struct subscription_delivery *d = container_of(task, struct subscription_delivery, task);
    struct subscriptions *s = d->owner;
    struct subscription *sub = d->about;
    bool ok = d->http_status >= 200 && d->http_status <= 299;
    sub->calls--;
    s->calls_active--;
    s->calls_bytes -= d->body.len;
    atomic_fetch_sub(&s->counts.calls, 1);
    atomic_fetch_add(ok                    ? &s->counts.calls_ok
                     : d->http_status == 0 ? &s->counts.calls_lost
                                           : &s->counts.calls_failed,
                     1);
    if (sub->exists && sub->number == d->number && sub->call_generation == d->generation) {
        sub->call_generation = 0;
        sub->result_generation = d->generation;
        sub->result_ok = ok;
        sub->result_done = d->done;
    }
    core_ready(s, sub);
    offer_place(s);
    free_delivery(d);
}

/* ------------------------------------------------------------------------------- wake events */

static void event_failed(struct subscriptions *s, struct subscription *sub, const char *why)
{
    atomic_fetch_add(&s->counts.events_failed, 1);
    sub->event_failures += sub->event_failures < UINT32_MAX;
    sub->retry_due_ms = core_mono_ms(s) +
                        subscription_pause_ms(sub->event_failures, core_random(s));
    if (sub->event_failures == 1) {
        core_trouble(s,
                     "the wake event of the subscription %.*s could not be written to %.*s: %s; it "
                     "is tried again until it can",
                     (int)sub->id.len, sub->id.ptr, (int)sub->def.target.len, sub->def.target.ptr,
                     why);
    }
}

static void event_written(struct subscriptions *s, const struct wake_event *e)
{
    atomic_fetch_add(&s->counts.events_written, 1);
    /* Stored with a comma behind it: see message.h. */
    uint64_t end = e->op.result.next;
    news_quiet(s, e->op.name, e->op.result.id, end - (e->body.len + 1), end);
}

static void event_done(struct stream_op *op)
{
    struct wake_event *e = op->context;
    struct subscriptions *s = e->owner;
    struct subscription *sub = e->sub;
    int code = op->result.code;
    sub->event_active = false;
    s->events--;
    if (code == 0) {
        event_written(s, e);
    }
    if (sub->exists && sub->number == e->number) {
        if (code == 0) {
            sub->event_failures = 0;
            sub->told_generation = e->generation;
        } else {
            event_failed(s, sub, op->result.msg.text);
        }
    }
    core_ready(s, sub);
    buf_finish(&e->body);
    free(e);
}

static struct wake_event *make_event(struct subscriptions *s, struct subscription *sub)
{
    struct wake_event *e = calloc(1, sizeof(*e));
    if (!e) {
        return NULL;
    }
    const struct subscription_link *l = container_of(list_first(&sub->pending),
                                                     struct subscription_link, pending_link);
    buf_init(&e->body, EVENT_BYTES_MAX);
    subscription_view_event(&e->body, sub->id, subscription_link_path(l), sub->state.generation,
                            core_now_ms(s));
    if (e->body.failed) {
        buf_finish(&e->body);
        free(e);
        return NULL;
    }
    e->owner = s;
    e->sub = sub;
    e->number = sub->number;
    e->generation = sub->state.generation;
    memcpy(e->name, sub->def.target.ptr, sub->def.target.len);
    e->op = (struct stream_op){
        .verb = STREAM_APPEND,
        .name = {e->name, sub->def.target.len},
        .append = {.content_type = SLICE("application/json"), .quiet = true},
        .done = event_done,
        .context = e,
    };
    e->op.append.body = buf_slice(&e->body);
    return e;
}

/* Whether the event of the wake is to be written, now or later. */
static bool wants_event(const struct subscriptions *s, const struct subscription *sub)
{
    return sub->state.phase == SUBSCRIPTION_OFFERED && !sub->event_active &&
           sub->told_generation != sub->state.generation && subscription_pending(sub) &&
           !core_is_reserved(s, sub->def.target);
}

static void act_pull_wake(struct subscriptions *s, struct subscription *sub)
{
    if (!wants_event(s, sub) || core_mono_ms(s) < sub->retry_due_ms) {
        return;
    }
    struct wake_event *e = make_event(s, sub);
    if (!e) {
        event_failed(s, sub, err_text(ERR_NOMEM));
        return;
    }
    sub->event_active = true;
    s->events++;
    if (stream_start(s->worker, &e->op) == 0) {
        event_done(&e->op);
    }
}

/* ------------------------------------------------------------------------------------ timers */

static uint64_t due_of_offer(const struct subscriptions *s, const struct subscription *sub)
{
    if (sub->def.type == SUBSCRIPTION_WEBHOOK) {
        if (is_calling(sub)) {
            return sub->call_sent ? sub->lease_due_ms : UINT64_MAX;
        }
        bool by_time = wants_call(s, sub) && list_empty(&sub->call_link);
        return by_time ? sub->retry_due_ms : UINT64_MAX;
    }
    return wants_event(s, sub) ? sub->retry_due_ms : UINT64_MAX;
}

static uint64_t due_of_state(const struct subscriptions *s, const struct subscription *sub)
{
    switch (sub->state.phase) {
    case SUBSCRIPTION_LEASED:
        return sub->lease_due_ms;
    case SUBSCRIPTION_OFFERED:
        return due_of_offer(s, sub);
    case SUBSCRIPTION_IDLE:
        break;
    }
    return UINT64_MAX;
}

/* While changes are held back, what would change waits for that to end. */
static uint64_t due_of(const struct subscriptions *s, struct subscription *sub)
{
    if (core_mono_ms(s) < s->hold_until_ms && find_cause(s, sub) != CAUSE_NONE) {
        return s->hold_until_ms;
    }
    return due_of_state(s, sub);
}

void wake_act(struct subscriptions *s, struct subscription *sub)
{
    if (!sub->exists || sub->change || sub->linking || atomic_load(&s->stopping)) {
        timer_set(s, sub, UINT64_MAX); /* what ends this brings it back */
        return;
    }
    if (sub->def.type == SUBSCRIPTION_WEBHOOK) {
        act_webhook(s, sub);
    } else {
        act_pull_wake(s, sub);
    }
    timer_set(s, sub, due_of(s, sub));
}
