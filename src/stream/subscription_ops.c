/* The operations of the API (PROTOCOL.md 6.2 to 6.4, 7.1, 7.2). What is wrong with a request by
 * itself is refused when it comes in; what is wrong with it as things stand, when its turn comes,
 * in this order: there is no such subscription, it is of the other type, the token is no good, the
 * wake is not current, an offset is not. A request takes effect whole or not at all. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "stream/subscription_core.h"
#include "stream/token.h"

/* Bytes of an answer beside its links, and for one of those. */
#define ANSWER_BYTES_MAX (64u * MIB)

static void deliver(struct task *task)
{
    struct subscription_op *op = container_of(task, struct subscription_op, task);
    op->done(op);
}

static void send_back(struct subscription_op *op)
{
    op->task.run = deliver;
    op->post(op->post_context, &op->task);
}

static void drop_request(struct subscription_op *op)
{
    if (op->request) {
        arena_finish(&op->request->arena);
        free(op->request);
        op->request = NULL;
    }
}

void ops_answer(struct subscription_op *op, int status)
{
    struct subscriptions *s = op->owner;
    op->status = status;
    if (op->answer.failed) {
        buf_finish(&op->answer);
        op->code = ERR_NOMEM;
        op->status = subscription_view_error(&op->answer, SUBSCRIPTION_ERROR_UNAVAILABLE,
                                             slice_of(err_text(ERR_NOMEM)));
    }
    drop_request(op);
    send_back(op);
    atomic_fetch_sub(&s->counts.ops, 1);
}

void ops_refuse(struct subscription_op *op, enum subscription_error error, const char *format, ...)
{
    char sentence[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(sentence, sizeof(sentence), format, args); /* cut is well */
    va_end(args);
    ops_answer(op, subscription_view_error(&op->answer, error, slice_of(sentence)));
}

void ops_fail(struct subscription_op *op, int code)
{
    enum subscription_error error = code == ERR_NOSPC ? SUBSCRIPTION_ERROR_OUT_OF_SPACE
                                                      : SUBSCRIPTION_ERROR_UNAVAILABLE;
    op->code = code;
    ops_refuse(op, error, "%s", err_text(code));
}

void ops_show(struct subscriptions *s, struct subscription *sub, struct subscription_op *op,
              int status)
{
    char kid[SUBSCRIPTION_KID_BYTES_MAX] = "";
    if (sub->def.type == SUBSCRIPTION_WEBHOOK && s->config.get_kid) {
        s->config.get_kid(s->config.context, kid);
    }
    subscription_view_append(&op->answer, sub, slice_of(s->base_url), slice_of(kid));
    ops_answer(op, status);
}

static void refuse_unknown(struct subscription_op *op)
{
    ops_refuse(op, SUBSCRIPTION_ERROR_SUBSCRIPTION_NOT_FOUND, "there is no such subscription");
}

/* ------------------------------------------------------------------------------- coming in */

static int parse(struct subscription_op *op, struct subscription_request *q, struct errmsg *msg)
{
    switch (op->verb) {
    case SUBSCRIPTION_PUT:
        return subscription_request_put(op->body, &q->arena, &q->spec, msg);
    case SUBSCRIPTION_LINK:
        return subscription_request_streams(op->body, &q->arena, &q->streams, &q->stream_count,
                                            msg);
    case SUBSCRIPTION_UNLINK:
        return subscription_url_path_parse(op->path, q->path, &q->path_len, msg);
    case SUBSCRIPTION_CLAIM:
        return subscription_request_claim(op->body, &q->arena, &q->worker, msg);
    case SUBSCRIPTION_CALLBACK:
    case SUBSCRIPTION_ACK:
    case SUBSCRIPTION_RELEASE:
        return subscription_request_report(op->body, &q->arena, &q->report, msg);
    case SUBSCRIPTION_GET:
    case SUBSCRIPTION_DELETE:
        return 0;
    }
    return 0;
}

static bool has_token(enum subscription_verb verb)
{
    return verb == SUBSCRIPTION_CALLBACK || verb == SUBSCRIPTION_ACK ||
           verb == SUBSCRIPTION_RELEASE;
}

static bool any_reserved(const struct subscriptions *s, const struct slice *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (core_is_reserved(s, names[i])) {
            return true;
        }
    }
    return false;
}

/* Whether the request names a stream that is not to be known here. */
static bool names_reserved(const struct subscriptions *s, const struct subscription_op *op)
{
    const struct subscription_request *q = op->request;
    const struct subscription_spec *spec = &q->spec;
    for (size_t i = 0; i < q->report.ack_count; i++) {
        if (core_is_reserved(s, q->report.acks[i].path)) {
            return true;
        }
    }
    return core_is_reserved(s, (struct slice){q->path, q->path_len}) ||
           any_reserved(s, q->streams, q->stream_count) ||
           any_reserved(s, spec->streams, spec->stream_count) ||
           (spec->def.type == SUBSCRIPTION_PULL_WAKE && core_is_reserved(s, spec->def.target));
}

/* Reads the request. False: it is answered. */
static bool read_request(struct subscription_op *op)
{
    if (has_token(op->verb) && !op->token.ptr) {
        ops_refuse(op, SUBSCRIPTION_ERROR_TOKEN_INVALID,
                   "give the token of the wake: Authorization: Bearer TOKEN");
        return false;
    }
    op->request = calloc(1, sizeof(*op->request));
    if (!op->request) {
        ops_fail(op, ERR_NOMEM);
        return false;
    }
    arena_init(&op->request->arena, SUBSCRIPTION_ARENA_BYTES_MAX);
    struct errmsg msg = {{0}};
    int code = parse(op, op->request, &msg);
    if (code == ERR_INVALID) {
        ops_refuse(op, SUBSCRIPTION_ERROR_INVALID_REQUEST, "%s", msg.text);
    } else if (code < 0) {
        ops_fail(op, code);
    } else if (names_reserved(op->owner, op)) {
        ops_refuse(op, SUBSCRIPTION_ERROR_FORBIDDEN, "%s", op->owner->config.reserved_why);
        return false;
    }
    return code == 0;
}

/* The subscription it is for. NULL: it is answered. */
static struct subscription *find_subject(struct subscriptions *s, struct subscription_op *op)
{
    struct subscription *sub = core_find(s, op->id);
    if (sub) {
        return sub;
    }
    if (op->verb == SUBSCRIPTION_PUT) {
        sub = core_obtain(s, op->id);
        if (!sub) {
            ops_fail(op, ERR_NOMEM);
        }
    } else if (op->verb == SUBSCRIPTION_DELETE) {
        ops_answer(op, 204);
    } else {
        refuse_unknown(op);
    }
    return sub;
}

void ops_arrive(struct task *task)
{
    struct subscription_op *op = container_of(task, struct subscription_op, task);
    struct subscriptions *s = op->owner;
    if (atomic_load(&s->stopping)) {
        ops_fail(op, ERR_STOPPING);
        return;
    }
    struct subscription *sub = read_request(op) ? find_subject(s, op) : NULL;
    if (sub) {
        list_append(&sub->ops, &op->link);
        core_ready_first(s, sub);
    }
}

/* What can be refused without asking the service. */
static bool refuse_early(struct subscriptions *s, struct subscription_op *op)
{
    if (atomic_load(&s->counts.ops) > SUBSCRIPTION_OPS_MAX) {
        op->code = ERR_BUSY;
        ops_refuse(op, SUBSCRIPTION_ERROR_UNAVAILABLE,
                   "too many requests about subscriptions wait; try again shortly");
    } else if (op->body.len > SUBSCRIPTION_BODY_BYTES_MAX) {
        ops_refuse(op, SUBSCRIPTION_ERROR_REQUEST_TOO_LARGE,
                   "the body has %zu bytes, at most %u are accepted", op->body.len,
                   SUBSCRIPTION_BODY_BYTES_MAX);
    } else if (op->id.len == 0) {
        refuse_unknown(op);
    } else if (op->id.len > SUBSCRIPTION_ID_BYTES_MAX) {
        ops_refuse(op, SUBSCRIPTION_ERROR_INVALID_REQUEST,
                   "the id has %zu bytes, at most %u are accepted", op->id.len,
                   SUBSCRIPTION_ID_BYTES_MAX);
    } else {
        return false;
    }
    return true;
}

void subscription_start(struct subscriptions *s, struct subscription_op *op)
{
    op->owner = s;
    op->status = 0;
    op->code = 0;
    op->request = NULL;
    buf_init(&op->answer, ANSWER_BYTES_MAX);
    list_init(&op->link);
    atomic_fetch_add(&s->counts.ops, 1);
    if (!refuse_early(s, op)) {
        op->task.run = ops_arrive;
        core_post(s, &op->task);
    }
}

/* ------------------------------------------------------------------- PUT, GET, DELETE, streams */

static bool names_own_wakes(const struct subscription_definition *def, const struct slice *streams,
                            size_t count)
{
    for (size_t i = 0; i < count && def->type == SUBSCRIPTION_PULL_WAKE; i++) {
        if (slice_equal(streams[i], def->target)) {
            return true;
        }
    }
    return false;
}

static void refuse_own_wakes(struct subscription_op *op)
{
    ops_refuse(op, SUBSCRIPTION_ERROR_INVALID_REQUEST,
               "a subscription cannot follow its own wake_stream: each wake would wake it");
}

/* Whether a new subscription may be. False: it is answered. */
static bool check_new(struct subscriptions *s, struct subscription *sub, struct subscription_op *op)
{
    const struct subscription_spec *spec = &op->request->spec;
    struct errmsg msg = {{0}};
    if (spec->def.type == SUBSCRIPTION_WEBHOOK) {
        if (s->config.webhooks_off) {
            ops_refuse(op, SUBSCRIPTION_ERROR_INVALID_REQUEST,
                       "this server sends no webhooks: use type \"pull-wake\"");
            return false;
        }
        if (s->config.check_url &&
            s->config.check_url(s->config.context, spec->def.target, &msg) < 0) {
            ops_refuse(op, SUBSCRIPTION_ERROR_WEBHOOK_URL_REJECTED, "%s", msg.text);
            return false;
        }
    }
    if (names_own_wakes(&spec->def, spec->streams, spec->stream_count)) {
        refuse_own_wakes(op);
        return false;
    }
    if (sub->state.generation == 0 && s->by_id.count > SUBSCRIPTIONS_MAX) {
        ops_refuse(op, SUBSCRIPTION_ERROR_LIMIT_REACHED,
                   "there are %u subscriptions, deleted ones of the last day included; that is "
                   "as many as there may be",
                   SUBSCRIPTIONS_MAX);
        return false;
    }
    return true;
}

static void run_put(struct subscriptions *s, struct subscription *sub, struct subscription_op *op)
{
    const struct subscription_definition *def = &op->request->spec.def;
    if (!sub->exists) {
        if (check_new(s, sub, op)) {
            linking_create(s, sub, op);
        }
    } else if (memcmp(sub->def.hash, def->hash, sizeof(def->hash)) == 0) {
        ops_show(s, sub, op, 200);
    } else {
        ops_refuse(op, SUBSCRIPTION_ERROR_SUBSCRIPTION_ALREADY_EXISTS,
                   "a subscription of this id exists with another configuration; delete it "
                   "first, or use another id");
    }
}

static void written(struct subscription_job *job, int code)
{
    if (code < 0) {
        ops_fail(job->op, code);
    } else {
        ops_answer(job->op, 204);
    }
}

/* A job that answers the operation. NULL: it is answered. */
static struct subscription_job *begin(struct subscriptions *s, struct subscription *sub,
                                      struct subscription_op *op,
                                      void (*done)(struct subscription_job *, int))
{
    struct subscription_job *job = job_begin(s, sub);
    if (!job) {
        ops_fail(op, ERR_NOMEM);
        return NULL;
    }
    job->op = op;
    job->done = done;
    return job;
}

static void run_delete(struct subscriptions *s, struct subscription *sub,
                       struct subscription_op *op)
{
    struct subscription_job *job = begin(s, sub, op, written);
    if (job) {
        job->change.remove = true;
        job->change.removed_ms = core_now_ms(s);
        job_submit(job);
    }
}

static void run_link(struct subscriptions *s, struct subscription *sub, struct subscription_op *op)
{
    const struct subscription_request *q = op->request;
    if (names_own_wakes(&sub->def, q->streams, q->stream_count)) {
        refuse_own_wakes(op);
    } else {
        linking_add(s, sub, op);
    }
}

/* What the pattern matches as well stays, if there is such a stream. */
static void run_unlink(struct subscriptions *s, struct subscription *sub,
                       struct subscription_op *op)
{
    struct slice path = {op->request->path, op->request->path_len};
    struct subscription_link *l = subscription_find(sub, path);
    if (!l || l->dropped || !l->is_explicit) {
        ops_answer(op, 204);
        return;
    }
    struct subscription_job *job = begin(s, sub, op, written);
    if (job) {
        const struct subscription_edit edit = {
            .link = l,
            .stream = l->stream,
            .acked = l->acked,
            .drop = l->stream == 0 || !subscription_globs(sub, path),
        };
        subscription_change_edit(&job->change, &edit);
        job_submit(job);
    }
}

/* ------------------------------------------------------------ callback, claim, ack, release */

static void claimed(struct subscription_job *job, int code)
{
    struct subscription_op *op = job->op;
    struct subscription *sub = job->sub;
    if (code < 0) {
        ops_fail(op, code);
        return;
    }
    struct buf token;
    buf_init(&token, TOKEN_BYTES_MAX);
    wake_mint(job->owner, &token, sub, &sub->state);
    subscription_view_claim(&op->answer, sub, &sub->state, buf_slice(&token));
    op->answer.failed = op->answer.failed || token.failed;
    buf_finish(&token);
    ops_answer(op, 200);
}

static void refuse_type(struct subscription_op *op, const char *type)
{
    ops_refuse(op, SUBSCRIPTION_ERROR_INVALID_REQUEST, "this is for subscriptions of type \"%s\"",
               type);
}

static void run_claim(struct subscriptions *s, struct subscription *sub, struct subscription_op *op)
{
    const struct subscription_state *st = &sub->state;
    if (sub->def.type != SUBSCRIPTION_PULL_WAKE) {
        refuse_type(op, "pull-wake");
        return;
    }
    if (st->phase == SUBSCRIPTION_LEASED) {
        ops_answer(op, subscription_view_claimed(&op->answer, st->holder, st->generation));
        return;
    }
    if (!subscription_pending(sub)) {
        ops_refuse(op, SUBSCRIPTION_ERROR_NO_PENDING_WORK,
                   "every stream is acknowledged up to its tail");
        return;
    }
    struct slice worker = op->request->worker;
    struct block *holder = block_try_create(worker.len);
    struct subscription_job *job = holder ? begin(s, sub, op, claimed) : NULL;
    if (!job) {
        block_unref(holder);
        if (!holder) {
            ops_fail(op, ERR_NOMEM);
        }
        return;
    }
    memcpy(holder->data, worker.ptr, worker.len);
    holder->len = (uint32_t)worker.len;
    if (st->phase == SUBSCRIPTION_IDLE) {
        wake_next(job);
    }
    subscription_state_lease(&job->change.after, sub, core_now_ms(s));
    subscription_state_hold(&job->change.after, holder);
    job->change.moved = true;
    job_submit(job);
}

/* Type, token and wake of a report. False: it is answered. */
static bool check_report(struct subscriptions *s, struct subscription *sub,
                         struct subscription_op *op)
{
    const struct subscription_report *r = &op->request->report;
    bool webhook = op->verb == SUBSCRIPTION_CALLBACK;
    if (webhook != (sub->def.type == SUBSCRIPTION_WEBHOOK)) {
        refuse_type(op, webhook ? "webhook" : "pull-wake");
        return false;
    }
    uint64_t generation = 0;
    enum token_verdict verdict = token_check(op->token, s->config.token_key, sub->id,
                                             core_now_ms(s), &generation);
    if (verdict == TOKEN_INVALID) {
        ops_refuse(op, SUBSCRIPTION_ERROR_TOKEN_INVALID,
                   "the token is not one of this subscription");
        return false;
    }
    if (verdict == TOKEN_EXPIRED) {
        ops_refuse(op, SUBSCRIPTION_ERROR_TOKEN_EXPIRED, "the token is too old");
        return false;
    }
    bool held = webhook || sub->state.phase == SUBSCRIPTION_LEASED;
    if (!held || !subscription_is_current(&sub->state, generation, r->generation, r->wake_id)) {
        ops_refuse(op, SUBSCRIPTION_ERROR_FENCED, "the wake is over, or another one is under way");
        return false;
    }
    return true;
}

static void reported(struct subscription_job *job, int code)
{
    if (code < 0) {
        ops_fail(job->op, code);
        return;
    }
    subscription_view_ok(&job->op->answer, job->next_wake);
    ops_answer(job->op, 200);
}

static void take_tail(struct subscription *sub, const struct stream_op *head)
{
    struct subscription_link *l = subscription_find(sub, head->name);
    if (head->result.code == 0 && l && !l->dropped && l->stream == head->result.id &&
        l->tail < head->result.next) {
        l->tail = head->result.next;
        subscription_refresh(l);
    }
}

/* The operation has its turn again, before those that came later. */
static void looked(struct stream_op *head)
{
    struct subscription_op *op = head->context;
    struct subscription *sub = op->request->subject;
    take_tail(sub, head);
    sub->looks--;
    list_append(sub->ops.next, &op->link);
    core_ready(op->owner, sub);
}

/* A reader may see bytes a moment before the service hears of them, so before an offset is refused
 * as lying beyond the tail, the stream itself is asked. */
static void look_at_tail(struct subscriptions *s, struct subscription *sub,
                         struct subscription_op *op, struct slice path)
{
    struct subscription_request *q = op->request;
    q->subject = sub;
    q->head = (struct stream_op){.verb = STREAM_HEAD, .name = path, .done = looked, .context = op};
    sub->looks++;
    if (stream_start(s->worker, &q->head) == 0) {
        looked(&q->head);
    }
}

/* What is wrong with one ack; NULL: nothing. */
static const char *fault_of(const struct subscription_link *l, const struct subscription_ack *ack)
{
    if (!l || l->dropped) {
        return "the subscription does not follow the stream";
    }
    if (ack->start) {
        return "-1 acknowledges nothing; give the offset of what was processed last";
    }
    uint64_t acked = l->acked == SUBSCRIPTION_START ? 0 : l->acked;
    if (ack->position < acked) {
        return "the offset lies before the one acknowledged already";
    }
    if (ack->position > l->tail && ack->position != acked) {
        return "the offset lies beyond the end of the stream";
    }
    return NULL;
}

/* All or nothing: first every ack is looked at. False: the operation is answered, or waits. */
static bool check_acks(struct subscriptions *s, struct subscription *sub,
                       struct subscription_op *op)
{
    const struct subscription_report *r = &op->request->report;
    for (size_t i = 0; i < r->ack_count; i++) {
        const struct subscription_ack *ack = &r->acks[i];
        const struct subscription_link *l = subscription_find(sub, ack->path);
        const char *fault = fault_of(l, ack);
        if (!fault) {
            continue;
        }
        bool beyond = l && !l->dropped && !ack->start && ack->position > l->tail;
        if (beyond && i >= op->request->looked) {
            op->request->looked = i + 1;
            look_at_tail(s, sub, op, ack->path);
            return false;
        }
        ops_refuse(op, SUBSCRIPTION_ERROR_INVALID_OFFSET, "%.*s: %s", (int)ack->path.len,
                   ack->path.ptr, fault);
        return false;
    }
    return true;
}

static void run_report(struct subscriptions *s, struct subscription *sub,
                       struct subscription_op *op)
{
    const struct subscription_report *r = &op->request->report;
    if (!check_report(s, sub, op) || !check_acks(s, sub, op)) {
        return;
    }
    struct subscription_job *job = begin(s, sub, op, reported);
    if (!job) {
        return;
    }
    for (size_t i = 0; i < r->ack_count; i++) {
        subscription_change_ack(&job->change, subscription_find(sub, r->acks[i].path),
                                r->acks[i].position);
    }
    if (r->done) {
        wake_end(job);
    } else {
        subscription_state_lease(&job->change.after, sub, core_now_ms(s));
    }
    job->change.moved = true;
    job_submit(job);
}

static void run_release(struct subscriptions *s, struct subscription *sub,
                        struct subscription_op *op)
{
    if (!check_report(s, sub, op)) {
        return;
    }
    struct subscription_job *job = begin(s, sub, op, written);
    if (job) {
        wake_end(job);
        job->change.moved = true;
        job_submit(job);
    }
}

void ops_run(struct subscriptions *s, struct subscription *sub, struct subscription_op *op)
{
    static void (*const run[])(struct subscriptions *, struct subscription *,
                               struct subscription_op *) = {
        [SUBSCRIPTION_PUT] = run_put,         [SUBSCRIPTION_DELETE] = run_delete,
        [SUBSCRIPTION_LINK] = run_link,       [SUBSCRIPTION_UNLINK] = run_unlink,
        [SUBSCRIPTION_CALLBACK] = run_report, [SUBSCRIPTION_CLAIM] = run_claim,
        [SUBSCRIPTION_ACK] = run_report,      [SUBSCRIPTION_RELEASE] = run_release,
    };
    if (atomic_load(&s->stopping)) {
        ops_fail(op, ERR_STOPPING);
    } else if (!sub->exists && op->verb == SUBSCRIPTION_DELETE) {
        ops_answer(op, 204);
    } else if (!sub->exists && op->verb != SUBSCRIPTION_PUT) {
        refuse_unknown(op);
    } else if (op->verb == SUBSCRIPTION_GET) {
        ops_show(s, sub, op, 200);
    } else {
        run[op->verb](s, sub, op);
    }
}
