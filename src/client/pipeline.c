/* All goes well: messages fill the open batch until it is full, or has lingered, or is flushed. It
 * gets the next sequence number when it is first sent, and up to `window` batches are in flight at
 * a time. An answer to batch n means that all up to n are stored, for the server takes n only
 * behind n - 1; when the answers to all before it are there as well, its messages count as stored.
 *
 * What goes wrong:
 *   - No answer, or one that says "later": the batch goes again, as it was, after a pause. Should
 *     the server have taken it, the next answer says "duplicate", which is as good. All failures
 *     of tries that were sent before the pause count as one; after it a single batch feels the
 *     way.
 *   - A gap: requests overtook each other, and the server refused the later one. It goes again
 *     when one before it is stored. If the server misses one that it had stored, it has forgotten
 *     what it promised: that is a failure for good.
 *   - A duplicate although no earlier try can have been taken: somebody else used this epoch, and
 *     the messages are not in the stream. A failure for good, unless the options expect it.
 *   - Fenced: a newer epoch is in force. With auto_claim, while nothing was ever taken, a new
 *     epoch is tried. If an earlier try may have been taken, that would risk a double: a failure.
 *   - Out of time: as no answer, but it stalls at once, since whoever sets a limit wants to hear of
 *     it.
 *   - Too large: once all before it are stored and none is in flight, the rest is cut up and
 *     numbered anew. That is safe only while no copy of one of them can be under way any more:
 *     else the copy might be taken under a number that now means something else. It is a failure
 *     then.
 * Only what is for good ends the pipeline; when retries are used up it stalls, with everything in
 * its place.
 *
 * An epoch that is claimed is chosen at random above the one in force. Two producers that claim at
 * once would else choose the same, and the one whose first answer is lost could not tell a
 * duplicate of its own from the other's. */
#include "client/pipeline.h"

#include "base/err.h"
#include "base/limits.h"

#include <assert.h>
#include <stdlib.h>

#define CLAIM_STEP (1 << 20) /* epochs to choose from */
#define CLAIMS_MAX 16        /* in a row without success: somebody else claims as well */

static struct batch *batch_of(struct list *link)
{
    return container_of(link, struct batch, link);
}

static struct batch *first_batch(const struct pipeline *p)
{
    struct list *link = list_first(&p->queue);

    return link ? batch_of(link) : NULL;
}

static size_t cost_of(const struct batch *b)
{
    return b->len + b->count * PIPELINE_MESSAGE_COST;
}

static void drop_data(struct pipeline *p, struct batch *b)
{
    p->queued_bytes -= cost_of(b);
    free(b->data);
    free(b->ends);
    b->data = NULL;
    b->ends = NULL;
    b->len = 0;
    b->count = 0;
}

static void destroy(struct pipeline *p, struct batch *b)
{
    drop_data(p, b);
    list_remove(&b->link);
    free(b);
}

void pipeline_init(struct pipeline *p, const struct pipeline_options *options, uint64_t dice)
{
    assert(options->batch_bytes_max > 0);
    assert(options->batch_count_max > 0);
    assert(options->in_flight_max > 0);
    *p = (struct pipeline){.options = *options,
                           .epoch = options->epoch,
                           .window = 1,
                           .batch_bytes_max = options->batch_bytes_max};
    if (options->auto_claim && options->epoch <= PRODUCER_EPOCH_MAX - CLAIM_STEP) {
        p->epoch += (int64_t)(dice % CLAIM_STEP);
    }
    list_init(&p->queue);
    retry_reset(&p->retry, options->retry);
}

void pipeline_finish(struct pipeline *p)
{
    while (!list_empty(&p->queue)) {
        destroy(p, first_batch(p));
    }
    p->open = NULL;
}

bool pipeline_has_room(const struct pipeline *p, size_t len)
{
    size_t max = p->options.queued_bytes_max;
    size_t used = p->queued_bytes;

    return used == 0 || (used < max && len <= max - used);
}

/* ---------------------------------------------------------------------------------- gathering */

static int batch_create(uint64_t first, struct batch **ret_batch)
{
    struct batch *b = calloc(1, sizeof(*b));

    if (!b) {
        return ERR_NOMEM;
    }
    list_init(&b->link);
    b->first = first;
    b->seq = -1;
    *ret_batch = b;
    return 0;
}

/* Bytes that `b` takes with a message more. */
static size_t grown(const struct pipeline *p, const struct batch *b, size_t len)
{
    return (b->len == 0 && p->options.json ? 1 : b->len) + len + (p->options.json ? 1 : 0);
}

static int reserve_data(const struct pipeline *p, struct batch *b, size_t need)
{
    if (need <= b->data_cap) {
        return 0;
    }
    size_t cap = b->data_cap < 256 ? 256 : b->data_cap * 2;
    cap = cap > p->batch_bytes_max ? p->batch_bytes_max : cap;
    cap = cap < need ? need : cap;
    char *data = realloc(b->data, cap);
    if (!data) {
        return ERR_NOMEM;
    }
    b->data = data;
    b->data_cap = cap;
    return 0;
}

static int reserve_end(struct batch *b)
{
    if (b->count < b->ends_cap) {
        return 0;
    }
    size_t cap = b->ends_cap == 0 ? 8 : b->ends_cap * 2;
    size_t *ends = realloc(b->ends, cap * sizeof(ends[0]));
    if (!ends) {
        return ERR_NOMEM;
    }
    b->ends = ends;
    b->ends_cap = cap;
    return 0;
}

static int batch_add(struct pipeline *p, struct batch *b, struct slice message)
{
    size_t need = grown(p, b, message.len);

    if (reserve_data(p, b, need) < 0 || reserve_end(b) < 0) {
        return ERR_NOMEM;
    }
    size_t before = b->count == 0 ? 0 : cost_of(b);
    if (b->len == 0 && p->options.json) {
        b->data[b->len++] = '[';
    }
    memcpy(b->data + b->len, message.ptr, message.len);
    b->len += message.len;
    if (p->options.json) {
        b->data[b->len++] = ',';
    }
    assert(b->len == need);
    b->ends[b->count++] = b->len;
    p->queued_bytes += cost_of(b) - before;
    p->appended++;
    return 0;
}

static bool batch_full(const struct pipeline *p, const struct batch *b, size_t len)
{
    return b->count >= p->options.batch_count_max || grown(p, b, len) > p->batch_bytes_max;
}

static void seal(struct pipeline *p)
{
    if (p->open) {
        p->open->state = BATCH_READY;
        p->open = NULL;
    }
}

/* A batch with `message` behind all others; which one is not open. */
static int add_batch(struct pipeline *p, struct slice message, struct batch **ret_batch)
{
    struct batch *b;

    if (batch_create(p->appended, &b) < 0) {
        return ERR_NOMEM;
    }
    if (message.len > 0 && batch_add(p, b, message) < 0) {
        free(b->data);
        free(b->ends);
        free(b);
        return ERR_NOMEM;
    }
    list_append(&p->queue, &b->link);
    *ret_batch = b;
    return 0;
}

int pipeline_append(struct pipeline *p, struct slice message, uint64_t now_ms, bool *ret_poke)
{
    assert(message.len > 0);
    assert(!p->closing);
    bool poke = false;

    if (p->open && batch_full(p, p->open, message.len)) {
        seal(p);
        poke = true;
    }
    if (p->open) {
        if (batch_add(p, p->open, message) < 0) {
            return ERR_NOMEM;
        }
    } else {
        if (add_batch(p, message, &p->open) < 0) {
            return ERR_NOMEM;
        }
        p->open->since = now_ms;
        poke = true;
    }
    if (batch_full(p, p->open, 1)) {
        seal(p);
        poke = true;
    }
    *ret_poke = poke;
    return 0;
}

void pipeline_flush(struct pipeline *p)
{
    if (p->open) {
        p->open->urgent = true;
    }
}

int pipeline_close(struct pipeline *p, struct slice message)
{
    assert(!p->closing);
    struct batch *b;

    pipeline_flush(p);
    if (add_batch(p, message, &b) < 0) {
        return ERR_NOMEM;
    }
    seal(p);
    b->state = BATCH_READY;
    b->close = true;
    p->closing = true;
    return 0;
}

/* ------------------------------------------------------------------------------------ sending */

void pipeline_rouse(struct pipeline *p)
{
    if (p->state == PIPELINE_STALLED) {
        p->state = PIPELINE_RUNS;
        p->pause_until = 0;
        retry_reset(&p->retry, p->options.retry);
    }
}

/* The first that is neither in flight nor stored. */
static struct batch *first_unsent(const struct pipeline *p)
{
    LIST_FOR_EACH(link, &p->queue)
    {
        struct batch *b = batch_of(link);
        if (b->state == BATCH_OPEN || b->state == BATCH_READY) {
            return b;
        }
    }
    return NULL;
}

static bool lingers(const struct pipeline *p, const struct batch *b, uint64_t now_ms,
                    int64_t *ret_wait_ms)
{
    uint64_t due = b->since + p->options.linger_ms;

    if (b->state != BATCH_OPEN || b->urgent || now_ms >= due) {
        return false;
    }
    *ret_wait_ms = (int64_t)(due - now_ms);
    return true;
}

/* Nothing overtakes a batch that has to wait. The one that closes waits for all others: behind a
 * close, the lost answer to another batch could not be asked for again. */
static bool held_back(const struct pipeline *p, const struct batch *b)
{
    if (p->too_large && (b->seq < 0 || b->seq >= p->too_large->seq)) {
        return true;
    }
    return (b->gapped && p->base <= b->base) || (b->close && b != first_batch(p));
}

struct batch *pipeline_next(struct pipeline *p, uint64_t now_ms, int64_t *ret_wait_ms)
{
    *ret_wait_ms = -1;
    if (p->state != PIPELINE_RUNS || p->in_round >= p->window ||
        p->in_flight >= p->options.in_flight_max) {
        return NULL;
    }
    struct batch *b = first_unsent(p);
    if (!b || held_back(p, b)) {
        return NULL;
    }
    if (now_ms < p->pause_until) {
        *ret_wait_ms = (int64_t)(p->pause_until - now_ms);
        return NULL;
    }
    if (lingers(p, b, now_ms, ret_wait_ms)) {
        return NULL;
    }
    if (b == p->open) {
        seal(p);
    }
    if (b->seq < 0) {
        b->seq = p->next_seq++;
    }
    b->state = BATCH_SENT;
    b->gapped = false;
    b->base = p->base;
    b->round = p->round;
    p->in_flight++;
    p->in_round++;
    return b;
}

struct slice batch_body(const struct pipeline *p, struct batch *batch)
{
    assert(batch->state == BATCH_SENT);
    if (p->options.json && batch->count > 0) {
        batch->data[batch->len - 1] = ']';
    }
    return (struct slice){batch->data, batch->len};
}

/* ------------------------------------------------------------------------------------ answers */

/* None can be stored while the first is not: only that one's outcome matters. */
static void fail_for(struct pipeline *p, const struct stream_error *error)
{
    const struct batch *first = first_batch(p);

    p->state = PIPELINE_FAILED;
    p->error = *error;
    p->error.outcome_unknown = first && (first->state == BATCH_SENT || first->uncertain);
}

void pipeline_fail(struct pipeline *p, enum stream_error_code code, const char *sentence)
{
    struct stream_error error;

    if (p->state == PIPELINE_RUNS || p->state == PIPELINE_STALLED) {
        (void)call_error_set(&error, code, "%s: %s", p->options.what, sentence);
        fail_for(p, &error);
    }
}

/* Frees what is stored from the front on. */
static void advance(struct pipeline *p)
{
    struct batch *b = first_batch(p);

    while (b && b->state == BATCH_STORED) {
        p->base = b->seq + 1;
        if (b->close) {
            p->state = PIPELINE_CLOSED;
        }
        destroy(p, b);
        b = first_batch(p);
    }
    p->stored = b ? b->first : p->appended;
}

static void take_info(struct pipeline *p, const struct batch *b, const struct call_result *result)
{
    if (b->seq < p->info.producer_seq && p->info.producer_epoch == p->epoch) {
        return; /* an answer to a later one was there before */
    }
    p->info = result->info;
    p->info.producer_epoch = p->epoch;
    p->info.producer_seq = b->seq;
}

static void take(struct pipeline *p, struct batch *b, const struct call_result *result)
{
    take_info(p, b, result);
    p->established = true;
    p->claims = 0;
    p->window += p->window < p->options.in_flight_max;
    retry_reset(&p->retry, p->options.retry);
    if (p->state == PIPELINE_STALLED) {
        p->state = PIPELINE_RUNS;
    }
    drop_data(p, b);
    b->state = BATCH_STORED;
    advance(p);
}

/* Whether the server answers for somebody else's batch of the same number. */
static bool is_foreign(const struct pipeline *p, const struct batch *b,
                       const struct call_result *result)
{
    if (!result->info.duplicate || p->options.replay || b->count == 0) {
        return false;
    }
    if (result->info.producer_seq >= p->next_seq) {
        return true; /* it knows batches that were never sent */
    }
    return !b->uncertain && !p->options.auto_claim;
}

static void renumber(struct pipeline *p)
{
    LIST_FOR_EACH(link, &p->queue)
    {
        batch_of(link)->seq = -1;
    }
    p->next_seq = p->base;
}

/* Whether the pipeline may begin anew with an epoch above `current`, and does. */
static bool claim(struct pipeline *p, const struct batch *b, int64_t current, uint64_t dice)
{
    if (!p->options.auto_claim || p->established || b->uncertain || current < p->epoch ||
        current >= PRODUCER_EPOCH_MAX || p->claims >= CLAIMS_MAX) {
        return false;
    }
    assert(p->base == 0);
    p->claims++;
    p->epoch = current + 1;
    if (p->epoch <= PRODUCER_EPOCH_MAX - CLAIM_STEP) {
        p->epoch += (int64_t)(dice % CLAIM_STEP);
    }
    renumber(p);
    return true;
}

static void refuse_foreign(struct pipeline *p, struct batch *b, const struct call_result *result,
                           uint64_t dice)
{
    struct stream_error error;

    if (claim(p, b, p->epoch, dice)) {
        return;
    }
    b->uncertain = true;
    (void)call_error_set(&error, STREAM_ERROR_SEQUENCE,
                         "%s: epoch %lld of this producer was used before, so that the server "
                         "takes these messages for repeats: begin with a higher one",
                         p->options.what, (long long)p->epoch);
    error.status = result->info.status;
    error.current_epoch = p->epoch;
    fail_for(p, &error);
}

static void pause_or_stall(struct pipeline *p, const struct call_result *result, uint64_t now_ms,
                           uint64_t dice)
{
    uint64_t pause_ms;
    bool again = result->transient &&
                 retry_next(&p->retry, result->error.retry_after_ms, dice, &pause_ms);

    p->window = 1;
    p->round++;
    p->in_round = 0;
    if (again) {
        p->pause_until = now_ms + pause_ms;
        return;
    }
    p->state = PIPELINE_STALLED;
    p->error = result->error;
}

static void answer_gap(struct pipeline *p, struct batch *b, const struct stream_error *error)
{
    struct stream_error forgot;

    if (error->expected_seq >= b->seq) {
        fail_for(p, error); /* no gap at all */
        return;
    }
    if (error->expected_seq >= b->base) {
        b->gapped = true;
        p->window = p->window > 1 ? p->window / 2 : 1;
        return;
    }
    (void)call_error_set(&forgot, STREAM_ERROR_SEQUENCE,
                         "%s: the server has forgotten batches that it had stored: it expects "
                         "number %lld of epoch %lld, and %lld were stored",
                         p->options.what, error->expected_seq, (long long)p->epoch,
                         (long long)b->base);
    forgot.status = error->status;
    forgot.expected_seq = error->expected_seq;
    fail_for(p, &forgot);
}

static void answer_too_large(struct pipeline *p, struct batch *b, const struct stream_error *error)
{
    if (b->count <= 1) {
        fail_for(p, error);
        return;
    }
    if (!p->too_large || b->seq < p->too_large->seq) {
        p->too_large = b;
    }
    p->batch_bytes_max = b->len / 2 < p->batch_bytes_max ? b->len / 2 : p->batch_bytes_max;
}

/* Whether more tries may mend it, by themselves or when the caller wants them. */
static bool passes(const struct call_result *result)
{
    return result->transient || result->error.code == STREAM_ERROR_BUSY ||
           result->error.code == STREAM_ERROR_TIMEOUT;
}

/* A failure that passes leaves the batch READY. */
static void answer_failure(struct pipeline *p, struct batch *b, const struct call_result *result,
                           uint64_t now_ms, uint64_t dice)
{
    const struct stream_error *error = &result->error;
    bool in_round = b->round == p->round;

    b->uncertain = b->uncertain || error->outcome_unknown;
    if (passes(result)) {
        if (in_round) {
            pause_or_stall(p, result, now_ms, dice);
        }
        return;
    }
    if (error->code == STREAM_ERROR_SEQUENCE && error->expected_seq >= 0) {
        answer_gap(p, b, error);
        return;
    }
    if (error->code == STREAM_ERROR_FENCED && claim(p, b, error->current_epoch, dice)) {
        return;
    }
    if (error->status == 413) {
        answer_too_large(p, b, error);
        return;
    }
    fail_for(p, error);
}

/* ----------------------------------------------------------------------------------- chopping */

/* Moves what does not fit into batch_bytes_max, but for one message, to a new batch behind `b`. */
static int split(struct pipeline *p, struct batch *b)
{
    size_t keep = 1;
    size_t bracket = p->options.json ? 1 : 0;
    struct batch *rest;

    while (keep < b->count && b->ends[keep] <= p->batch_bytes_max) {
        keep++;
    }
    if (keep >= b->count) {
        return 0;
    }
    if (batch_create(b->first + keep, &rest) < 0) {
        return ERR_NOMEM;
    }
    size_t from = b->ends[keep - 1] - bracket;
    size_t len = b->len - from;
    size_t count = b->count - keep;
    rest->data = malloc(len);
    rest->ends = malloc(count * sizeof(rest->ends[0]));
    if (!rest->data || !rest->ends) {
        free(rest->data);
        free(rest->ends);
        free(rest);
        return ERR_NOMEM;
    }
    memcpy(rest->data, b->data + from, len);
    if (bracket) {
        rest->data[0] = '[';
    }
    for (size_t i = 0; i < count; i++) {
        rest->ends[i] = b->ends[keep + i] - from;
    }
    rest->len = rest->data_cap = len;
    rest->count = rest->ends_cap = count;
    rest->state = b->state;
    b->len = b->ends[keep - 1];
    b->count = keep;
    p->queued_bytes += bracket;
    list_append(b->link.next, &rest->link); /* before its successor: behind b */
    return 0;
}

static void chop(struct pipeline *p)
{
    p->too_large = NULL;
    seal(p);
    LIST_FOR_EACH(link, &p->queue)
    {
        if (batch_of(link)->uncertain || batch_of(link)->state != BATCH_READY) {
            pipeline_fail(p, STREAM_ERROR_REJECTED,
                          "the server finds a batch too large (status 413), and it cannot be cut "
                          "up since an earlier try may have been taken: set a lower "
                          "max_batch_bytes");
            return;
        }
    }
    for (struct list *link = p->queue.next; link != &p->queue; link = link->next) {
        if (split(p, batch_of(link)) < 0) {
            pipeline_fail(p, STREAM_ERROR_MEMORY, "out of memory");
            return;
        }
    }
    renumber(p);
}

void pipeline_answer(struct pipeline *p, struct batch *batch, const struct call_result *result,
                     uint64_t now_ms, uint64_t dice)
{
    assert(batch->state == BATCH_SENT);
    p->in_flight--;
    p->in_round -= batch->round == p->round;
    batch->state = BATCH_READY;
    batch->uncertain = batch->uncertain || result->resent;
    if (p->state == PIPELINE_FAILED || p->state == PIPELINE_CLOSED) {
        batch->uncertain = true;
        return;
    }
    if (result->error.code != STREAM_OK) {
        answer_failure(p, batch, result, now_ms, dice);
    } else if (is_foreign(p, batch, result)) {
        refuse_foreign(p, batch, result, dice);
    } else {
        take(p, batch, result);
    }
    if (p->too_large && p->too_large == first_batch(p) && p->in_flight == 0 &&
        p->state != PIPELINE_FAILED) {
        chop(p);
    }
}
