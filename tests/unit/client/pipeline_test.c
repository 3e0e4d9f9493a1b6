/* The pipeline against a naive server and a network that loses, doubles, delays and reorders what
 * it carries. Each run is a seed, which an assertion that fails names. */
#include "unit/base/unit.h"

#include "unit/base/fault.h"

#include "base/dice.h"

#include "client/pipeline.c"

#include <stdio.h>

#define REQUESTS_MAX 512
#define STEPS        400

static const struct stream_retry patient = {
    .max_retries = 3,
    .initial_delay_ms = 10,
    .max_delay_ms = 80,
    .multiplier = 2.0,
    .retry_after_max_ms = 1000,
};

struct request {
    struct batch *batch; /* NULL: nobody waits for an answer any more */
    char *body;
    size_t len;
    int64_t epoch;
    int64_t seq;
    bool close;
    bool answered; /* the answer is on its way back */
    struct call_result result;
};

struct world {
    uint64_t seed;
    uint64_t random;
    uint64_t now_ms;
    struct pipeline pipeline;
    uint64_t given; /* messages appended */
    bool others;    /* another producer uses the same epoch */

    /* the server */
    bool known; /* it has heard of the producer */
    int64_t epoch;
    int64_t seq;
    bool closed;
    int64_t closer_epoch;
    int64_t closer_seq;
    size_t body_max;
    uint64_t held;    /* messages of ours, which are 0, 1, 2... */
    uint64_t foreign; /* batches of the other producer */
    bool holes;       /* one of ours was taken for a repeat of the other's */

    /* the network */
    struct request *requests[REQUESTS_MAX];
    size_t count;
};

/* What may happen in a run besides that requests and answers arrive in any order. */
enum {
    FAULT_LOSS = 1,     /* connections break, the request may arrive later all the same */
    FAULT_BUSY = 2,     /* 429, 503, 500 */
    FAULT_LARGE = 4,    /* 413 */
    FAULT_CLAIM = 8,    /* another producer claims the id */
    FAULT_CLOSE = 16,   /* somebody closes the stream */
    FAULT_FORGET = 32,  /* the server loses what it knows of the producer */
    FAULT_ECHO = 64,    /* something in between sends requests twice */
    FAULT_OTHER = 128,  /* another producer uses the same epoch */
    FAULT_MEMORY = 256, /* allocations fail */
};

static uint64_t roll(struct world *w)
{
    return dice_roll(&w->random);
}

static bool chance(struct world *w, uint64_t one_in)
{
    return roll(w) % one_in == 0;
}

#define CHECK(w, condition)                                                       \
    do {                                                                          \
        if (!(condition)) {                                                       \
            fail_msg("seed %llu: %s", (unsigned long long)(w)->seed, #condition); \
        }                                                                         \
    } while (0)

/* ------------------------------------------------------------------------------------- server */

/* The numbers in a body, which must continue what the server holds. */
static void store_body(struct world *w, const struct request *r)
{
    bool json = w->pipeline.options.json && r->len > 0;
    const char *at = r->body;
    const char *end = r->body + r->len;

    if (json) {
        CHECK(w, r->len >= 3 && at[0] == '[' && end[-1] == ']');
        at++;
    }
    while (at < end) {
        char *next;
        unsigned long long number = strtoull(at, &next, 10);
        CHECK(w, next > at);
        CHECK(w, number == w->held || (w->others && number > w->held));
        w->holes = w->holes || number > w->held;
        w->held = number + 1;
        while (*next == ' ') {
            next++;
        }
        CHECK(w, *next == (json && next == end - 1 ? ']' : json ? ',' : ';'));
        at = next + 1;
    }
}

static void answer_begin(struct request *r)
{
    r->answered = true;
    r->result = (struct call_result){
        .info = {.producer_epoch = -1, .producer_seq = -1},
        .error = {.retry_after_ms = -1, .current_epoch = -1, .expected_seq = -1},
    };
}

static void refuse(struct request *r, enum stream_error_code code, int status)
{
    answer_begin(r);
    r->result.info.status = status;
    r->result.error.code = code;
    r->result.error.status = status;
}

static void accept_request(struct world *w, struct request *r, bool duplicate)
{
    answer_begin(r);
    r->result.info.status = duplicate ? 204 : 200;
    r->result.info.duplicate = duplicate;
    r->result.info.closed = w->closed;
    r->result.info.producer_epoch = w->epoch;
    r->result.info.producer_seq = w->seq;
}

static void serve_closed(struct world *w, struct request *r)
{
    if (r->epoch == w->closer_epoch && r->seq == w->closer_seq) {
        accept_request(w, r, r->len > 0);
        return;
    }
    refuse(r, STREAM_ERROR_CLOSED, 409);
    r->result.info.closed = 1;
}

/* PROTOCOL.md 5.2.1, once more and as simply as can be. */
static void serve(struct world *w, struct request *r)
{
    bool fresh = !w->known || r->epoch > w->epoch;

    if (r->len > w->body_max) {
        refuse(r, STREAM_ERROR_REJECTED, 413);
    } else if (w->closed) {
        serve_closed(w, r);
    } else if (w->known && r->epoch < w->epoch) {
        refuse(r, STREAM_ERROR_FENCED, 403);
        r->result.error.current_epoch = w->epoch;
    } else if (w->known && fresh && r->seq != 0) {
        refuse(r, STREAM_ERROR_REJECTED, 400);
    } else if (!fresh && r->seq <= w->seq) {
        accept_request(w, r, r->len > 0);
    } else if (r->seq != (fresh ? 0 : w->seq + 1)) {
        refuse(r, STREAM_ERROR_SEQUENCE, 409);
        r->result.error.expected_seq = fresh ? 0 : w->seq + 1;
    } else {
        w->known = true;
        w->epoch = r->epoch;
        w->seq = r->seq;
        store_body(w, r);
        if (r->close) {
            w->closed = true;
            w->closer_epoch = r->epoch;
            w->closer_seq = r->seq;
        }
        accept_request(w, r, false);
    }
}

/* ------------------------------------------------------------------------------------ network */

static void drop(struct world *w, size_t i)
{
    free(w->requests[i]->body);
    free(w->requests[i]);
    w->requests[i] = w->requests[--w->count];
}

static struct request *put(struct world *w, const struct request *model)
{
    long countdown = fault_countdown;
    fault_countdown = -1;
    struct request *r = malloc(sizeof(*r));
    assert_non_null(r);
    *r = *model;
    r->body = malloc(r->len + 1);
    assert_non_null(r->body);
    if (r->len > 0) {
        memcpy(r->body, model->body, r->len);
    }
    assert_true(w->count < REQUESTS_MAX);
    w->requests[w->count++] = r;
    fault_countdown = countdown;
    return r;
}

static void pump(struct world *w)
{
    int64_t wait_ms;

    for (;;) {
        struct batch *b = pipeline_next(&w->pipeline, w->now_ms, &wait_ms);
        if (!b) {
            CHECK(w, wait_ms != 0);
            return;
        }
        struct slice body = batch_body(&w->pipeline, b);
        put(w, &(struct request){.batch = b,
                                 .body = (char *)(uintptr_t)body.ptr,
                                 .len = body.len,
                                 .epoch = w->pipeline.epoch,
                                 .seq = b->seq,
                                 .close = b->close});
        CHECK(w, w->pipeline.in_flight <= w->pipeline.options.in_flight_max);
    }
}

static void tell(struct world *w, struct request *r)
{
    struct batch *b = r->batch;

    r->batch = NULL;
    if (b) {
        pipeline_answer(&w->pipeline, b, &r->result, w->now_ms, roll(w));
        CHECK(w, w->pipeline.stored <= w->held);
    }
}

/* The client hears of trouble; the request itself goes on travelling, or not. */
static void break_one(struct world *w, size_t i)
{
    struct request *r = w->requests[i];
    struct request broken = *r;

    bool late = chance(w, 4); /* and waits no longer */

    refuse(&broken, late ? STREAM_ERROR_TIMEOUT : STREAM_ERROR_NETWORK, 0);
    broken.result.transient = !late;
    broken.result.error.outcome_unknown = 1;
    tell(w, &broken);
    r->batch = NULL;
    if (r->answered || chance(w, 2)) {
        drop(w, i);
    }
}

static void busy_one(struct world *w, size_t i)
{
    struct request *r = w->requests[i];

    if (r->answered) {
        return;
    }
    switch (roll(w) % 4) {
    case 0: /* no connection */
        refuse(r, STREAM_ERROR_NETWORK, 0);
        break;
    case 1:
        refuse(r, STREAM_ERROR_BUSY, 429);
        r->result.error.retry_after_ms = 30;
        break;
    case 2:
        refuse(r, STREAM_ERROR_BUSY, 507);
        r->result.transient = false;
        return;
    default: /* after it was done, or before */
        if (chance(w, 2)) {
            serve(w, r);
        }
        refuse(r, STREAM_ERROR_SERVER, 500);
        r->result.error.outcome_unknown = 1;
        break;
    }
    r->result.transient = true;
}

static void move_one(struct world *w, unsigned faults)
{
    size_t i = roll(w) % w->count;
    struct request *r = w->requests[i];

    if ((faults & FAULT_LOSS) && chance(w, 8)) {
        break_one(w, i);
    } else if ((faults & FAULT_BUSY) && chance(w, 8)) {
        busy_one(w, i);
    } else if ((faults & FAULT_ECHO) && chance(w, 8) && !r->answered && w->count < 200) {
        put(w, r)->batch = NULL;
    } else if (!r->answered) {
        serve(w, r);
    } else {
        tell(w, r);
        drop(w, i);
    }
}

/* ------------------------------------------------------------------------------------- a run */

static void give(struct world *w)
{
    char text[64];
    bool json = w->pipeline.options.json;
    int len = snprintf(text, sizeof(text), "%llu%*s", (unsigned long long)w->given,
                       (int)(roll(w) % 12), "");
    bool poke = false;

    if (!json) {
        text[len++] = ';';
    }
    struct slice message = {text, (size_t)len};
    if (w->pipeline.closing || !pipeline_has_room(&w->pipeline, message.len)) {
        return;
    }
    if (pipeline_append(&w->pipeline, message, w->now_ms, &poke) == 0) {
        w->given++;
    }
    CHECK(w, w->pipeline.appended == w->given);
}

static void orphans_end(struct world *w)
{
    for (size_t i = w->count; i-- > 0;) {
        if (!w->requests[i]->batch) {
            drop(w, i);
        }
    }
}

/* Something that happens once in a run, if at all. */
static void upset(struct world *w, unsigned faults)
{
    if ((faults & FAULT_CLAIM) && chance(w, 60)) {
        w->epoch = (w->known && w->epoch > 3 ? w->epoch : 3) + 1 + (int64_t)(roll(w) % 3);
        w->seq = 0;
        w->known = true;
        w->foreign++;
    }
    if ((faults & FAULT_CLOSE) && !w->closed && chance(w, 200)) {
        w->closed = true;
        w->closer_epoch = -1;
    }
    if ((faults & FAULT_FORGET) && chance(w, 100)) {
        w->known = false;
        orphans_end(w); /* those could be taken again, and no client can help it */
    }
    if ((faults & FAULT_OTHER) && chance(w, 40)) {
        w->seq += w->known;
        w->known = true;
        w->epoch = w->pipeline.epoch;
        w->foreign++;
        w->others = true;
    }
    if ((faults & FAULT_LARGE) && chance(w, 40)) {
        w->body_max = 20 + roll(w) % 150;
    }
}

static void step(struct world *w, unsigned faults)
{
    if (faults & FAULT_MEMORY) {
        fault_countdown = (long)(roll(w) % 4);
    }
    switch (roll(w) % 4) {
    case 0:
        give(w);
        break;
    case 1:
        w->now_ms += roll(w) % 10;
        break;
    case 2:
        if (chance(w, 5)) {
            pipeline_flush(&w->pipeline);
        }
        if (chance(w, 10)) {
            pipeline_rouse(&w->pipeline);
        }
        break;
    default:
        if (w->count > 0 && w->pipeline.state != PIPELINE_FAILED) {
            move_one(w, faults);
        }
        break;
    }
    upset(w, faults);
    pump(w);
    fault_countdown = -1;
}

/* Without faults, everything that may yet be stored is stored. */
static void settle(struct world *w)
{
    struct pipeline *p = &w->pipeline;

    for (int i = 0; i < 100000; i++) {
        bool live = p->state == PIPELINE_RUNS || p->state == PIPELINE_STALLED;
        if (!live || (p->stored == p->appended && !p->closing)) {
            return;
        }
        pipeline_flush(p);
        pipeline_rouse(p);
        pump(w);
        if (w->count > 0) {
            move_one(w, 0);
        } else {
            w->now_ms += 5;
        }
    }
    fail_msg("seed %llu: it does not settle", (unsigned long long)w->seed);
}

static void world_init(struct world *w, uint64_t seed, bool auto_claim)
{
    *w = (struct world){.seed = seed, .random = seed * 977, .body_max = SIZE_MAX};
    struct pipeline_options options = {
        .json = chance(w, 2),
        .auto_claim = auto_claim,
        .epoch = (int64_t)(roll(w) % 3),
        .batch_bytes_max = 1 + roll(w) % 100,
        .batch_count_max = 1 + roll(w) % 8,
        .linger_ms = roll(w) % 10,
        .in_flight_max = 1 + (int)(roll(w) % 6),
        .queued_bytes_max = 1 + roll(w) % 2000,
        .retry = &patient,
        .what = "cannot",
    };
    pipeline_init(&w->pipeline, &options, roll(w));
}

static void world_finish(struct world *w)
{
    while (w->count > 0) {
        drop(w, 0);
    }
    pipeline_finish(&w->pipeline);
    CHECK(w, w->pipeline.queued_bytes == 0);
}

static void close_all(struct world *w)
{
    char text[32];
    int len = snprintf(text, sizeof(text), w->pipeline.options.json ? "%llu" : "%llu;",
                       (unsigned long long)w->given);
    struct slice last = {text, chance(w, 2) ? (size_t)len : 0};

    assert_int_equal(pipeline_close(&w->pipeline, last), 0);
    w->given += last.len > 0;
}

static void run_steps(struct world *w, unsigned faults)
{
    bool closes = chance(w, 2);

    for (int i = 0; i < STEPS; i++) {
        step(w, faults);
    }
    bool live = w->pipeline.state == PIPELINE_RUNS || w->pipeline.state == PIPELINE_STALLED;
    if (closes && live) {
        close_all(w);
        for (int i = 0; i < STEPS / 4; i++) {
            step(w, faults);
        }
    }
    w->body_max = faults & FAULT_LARGE ? 20 : SIZE_MAX;
    settle(w);
}

/* Faults after which everything has to be there in the end. */
static void run_well(uint64_t seed, unsigned faults, bool auto_claim)
{
    struct world w;

    world_init(&w, seed, auto_claim);
    run_steps(&w, faults);
    CHECK(&w, w.pipeline.state == (w.closed ? PIPELINE_CLOSED : PIPELINE_RUNS));
    CHECK(&w, w.held == w.given);
    CHECK(&w, w.pipeline.stored == w.given);
    CHECK(&w, w.pipeline.queued_bytes == 0);
    world_finish(&w);
}

/* Faults that may end it; what is there must still be right. Whether it ended so. */
static bool run_ill(uint64_t seed, unsigned faults, bool auto_claim, enum stream_error_code code)
{
    struct world w;

    world_init(&w, seed, auto_claim);
    run_steps(&w, faults);
    bool failed = w.pipeline.state == PIPELINE_FAILED;
    CHECK(&w, failed || !w.holes);
    if (failed) {
        CHECK(&w, w.pipeline.error.code == code);
        CHECK(&w, w.pipeline.error.message[0] != '\0' || code != STREAM_ERROR_SEQUENCE);
        CHECK(&w, w.held == w.pipeline.stored || w.pipeline.error.outcome_unknown || w.foreign > 0);
    } else {
        CHECK(&w, w.held == w.given);
        CHECK(&w, w.pipeline.stored == w.given);
    }
    world_finish(&w);
    return failed;
}

/* Requests and answers overtake each other: all is stored, in order, once. */
static void reordering(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        run_well(seed, 0, seed % 2);
    }
}

/* Connections break, answers are lost, late copies arrive, the server is busy or fails. */
static void losses(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        run_well(seed, FAULT_LOSS | FAULT_BUSY, seed % 2);
    }
}

/* A proxy sends requests twice, which only a producer with an epoch of its own can put up with. */
static void echoes(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        run_well(seed, FAULT_LOSS | FAULT_BUSY | FAULT_ECHO, true);
    }
    unsigned failed = 0;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        failed += run_ill(seed, FAULT_ECHO, false, STREAM_ERROR_SEQUENCE);
    }
    assert_in_range(failed, 1, 999);
}

/* The server comes to take smaller batches only: they are cut up. */
static void too_large(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        run_well(seed, FAULT_LARGE, seed % 2);
    }
    unsigned failed = 0;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        failed += run_ill(seed, FAULT_LARGE | FAULT_LOSS | FAULT_BUSY, seed % 2,
                          STREAM_ERROR_REJECTED);
    }
    assert_in_range(failed, 1, 1500);
}

/* Another producer of the id fences this one, which never writes again; before its first batch it
 * may claim a newer epoch. */
static void fencing(void **state)
{
    unsigned failed = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        failed += run_ill(seed, FAULT_CLAIM | FAULT_LOSS | FAULT_BUSY, seed % 2,
                          STREAM_ERROR_FENCED);
    }
    assert_in_range(failed, 1000, 2000);
}

/* Somebody closes the stream. */
static void closed_by_others(void **state)
{
    unsigned failed = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        failed += run_ill(seed, FAULT_CLOSE | FAULT_LOSS, seed % 2, STREAM_ERROR_CLOSED);
    }
    assert_in_range(failed, 500, 1000);
}

/* The server forgets the producer: nothing that it takes for new is stored twice or left out. */
static void forgetting(void **state)
{
    unsigned failed = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        failed += run_ill(seed, FAULT_FORGET, false, STREAM_ERROR_SEQUENCE);
    }
    assert_in_range(failed, 500, 1000);
}

/* Two producers use the same epoch: what the server takes for a repeat is not passed over. */
static void shared_epoch(void **state)
{
    unsigned failed = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        failed += run_ill(seed, FAULT_OTHER, false, STREAM_ERROR_SEQUENCE);
    }
    assert_in_range(failed, 500, 1000);
}

/* A message that cannot be copied is not taken, and nothing else changes. */
static void memory_runs_out(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        run_well(seed, FAULT_MEMORY | FAULT_LOSS, seed % 2);
    }
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        (void)run_ill(seed, FAULT_MEMORY | FAULT_LARGE, seed % 2, STREAM_ERROR_MEMORY);
    }
}

/* ----------------------------------------------------------------------------- one by one */

/* A pipeline with a message per batch and `open` of them in flight, of `given`. */
static void line_open(struct world *w, bool auto_claim, unsigned given, int open)
{
    *w = (struct world){.body_max = SIZE_MAX};
    struct pipeline_options options = {
        .auto_claim = auto_claim,
        .batch_bytes_max = 100,
        .batch_count_max = 1,
        .in_flight_max = open > 0 ? open : 1,
        .queued_bytes_max = 10000,
        .retry = &patient,
        .what = "cannot",
    };
    pipeline_init(&w->pipeline, &options, 0);
    w->pipeline.window = open;
    for (unsigned i = 0; i < given; i++) {
        give(w);
    }
    pump(w);
    assert_int_equal(w->count, open);
}

/* The request with that number is answered, good or bad, and gone. */
static void end_request(struct world *w, int64_t seq, enum stream_error_code code, bool unknown)
{
    for (size_t i = 0; i < w->count; i++) {
        struct request *r = w->requests[i];
        if (r->batch && r->seq == seq) {
            if (code == STREAM_OK) {
                serve(w, r);
            } else {
                refuse(r, code, 0);
                r->result.transient = code == STREAM_ERROR_NETWORK;
                r->result.error.outcome_unknown = unknown;
            }
            tell(w, r);
            drop(w, i);
            return;
        }
    }
    fail_msg("no request has the number %lld", (long long)seq);
}

/* A batch that came too early goes again only when one before it is stored, and feels its way. */
static void gap_waits(void **state)
{
    struct world w;

    (void)state;
    line_open(&w, false, 6, 3);
    end_request(&w, 2, STREAM_OK, false); /* a gap: 0 and 1 did not come */
    end_request(&w, 1, STREAM_OK, false);
    pump(&w);
    assert_int_equal(w.count, 1);
    assert_int_equal(w.pipeline.window, 1);
    end_request(&w, 0, STREAM_OK, false);
    pump(&w);
    assert_int_equal(w.count, 2);
    end_request(&w, 1, STREAM_OK, false);
    end_request(&w, 2, STREAM_OK, false);
    assert_int_equal(w.pipeline.stored, 3);
    world_finish(&w);
}

/* While the first hangs, those behind it do not go round in circles. */
static void gap_behind_silence(void **state)
{
    struct world w;

    (void)state;
    line_open(&w, false, 6, 3);
    end_request(&w, 1, STREAM_ERROR_NETWORK, true);
    w.now_ms += 1000;
    pump(&w);
    end_request(&w, 1, STREAM_OK, false);
    w.now_ms += 1000;
    pump(&w);
    assert_int_equal(w.count, 2); /* 0 and 2, which are silent */
    world_finish(&w);
}

/* What fails together counts as one failure; a success makes up for all. */
static void failures_count_once(void **state)
{
    struct world w;

    (void)state;
    line_open(&w, false, 12, 5);
    for (int round = 0; round < 6; round++) {
        for (int64_t seq = w.pipeline.base; w.count > 0; seq++) {
            end_request(&w, seq, STREAM_ERROR_NETWORK, false);
        }
        assert_int_equal(w.pipeline.retry.tries, 1);
        assert_int_equal(w.pipeline.in_round, 0);
        pump(&w);
        assert_int_equal(w.count, 0);
        w.now_ms += 10;
        pump(&w);
        assert_int_equal(w.count, 1);
        end_request(&w, w.pipeline.base, STREAM_OK, false);
        assert_int_equal(w.pipeline.retry.tries, 0);
        assert_int_equal(w.pipeline.window, 2);
        pump(&w);
    }
    world_finish(&w);
}

/* A late failure from before the pause leaves the count of what is in flight alone. */
static void late_failures(void **state)
{
    struct world w;

    (void)state;
    line_open(&w, false, 12, 3);
    end_request(&w, 0, STREAM_ERROR_NETWORK, false);
    w.now_ms += 100;
    pump(&w);
    assert_int_equal(w.pipeline.in_round, 1);
    end_request(&w, 1, STREAM_ERROR_NETWORK, false);
    end_request(&w, 2, STREAM_ERROR_NETWORK, false);
    assert_int_equal(w.pipeline.in_round, 1);
    pump(&w);
    assert_int_equal(w.count, 1);
    world_finish(&w);
}

/* When all retries are used up it stalls; roused, it has them all again. */
static void stalls(void **state)
{
    struct world w;
    int tries = 0;

    (void)state;
    line_open(&w, false, 1, 1);
    for (int i = 0; i < 2; i++) {
        while (w.pipeline.state == PIPELINE_RUNS) {
            end_request(&w, 0, STREAM_ERROR_NETWORK, false);
            w.now_ms += 100;
            pump(&w);
            tries++;
        }
        assert_int_equal(w.pipeline.state, PIPELINE_STALLED);
        assert_int_equal(w.pipeline.error.code, STREAM_ERROR_NETWORK);
        assert_int_equal(w.count, 0);
        pipeline_rouse(&w.pipeline);
        pump(&w);
        assert_int_equal(w.count, 1);
    }
    assert_int_equal(tries, 2 * (1 + patient.max_retries));
    world_finish(&w);
}

/* An answer that is out of time stalls it at once, and the batch goes again as it was: it may have
 * been taken. What else was in flight then makes no difference. */
static void stalls_out_of_time(void **state)
{
    struct world w;

    (void)state;
    line_open(&w, false, 3, 2);
    serve(&w, w.requests[0]);
    end_request(&w, 0, STREAM_ERROR_TIMEOUT, true);
    assert_int_equal(w.pipeline.state, PIPELINE_STALLED);
    assert_int_equal(w.pipeline.error.code, STREAM_ERROR_TIMEOUT);
    end_request(&w, 1, STREAM_ERROR_TIMEOUT, true);
    assert_int_equal(w.pipeline.state, PIPELINE_STALLED);
    pump(&w);
    assert_int_equal(w.count, 0);
    pipeline_rouse(&w.pipeline);
    pump(&w);
    assert_int_equal(w.count, 1);
    assert_int_equal(w.requests[0]->epoch, 0);
    end_request(&w, 0, STREAM_OK, false);
    assert_true(w.pipeline.info.duplicate);
    settle(&w);
    assert_int_equal(w.pipeline.stored, 3);
    assert_int_equal(w.held, 3);
    world_finish(&w);
}

/* An epoch of one's own is somebody else's all the same when the server knows more of it. */
static void foreign_epoch(void **state)
{
    struct world w;

    (void)state;
    line_open(&w, true, 3, 1);
    w.known = true;
    w.epoch = w.pipeline.epoch;
    w.seq = 5;
    end_request(&w, 0, STREAM_OK, false);
    assert_int_equal(w.pipeline.state, PIPELINE_RUNS);
    assert_true(w.pipeline.epoch > w.epoch); /* claimed */
    pump(&w);
    end_request(&w, 0, STREAM_OK, false);
    pump(&w);
    w.seq = 9;
    end_request(&w, 1, STREAM_OK, false);
    assert_int_equal(w.pipeline.state, PIPELINE_FAILED);
    assert_int_equal(w.pipeline.error.code, STREAM_ERROR_SEQUENCE);
    world_finish(&w);
}

/* A batch that is too large waits for the lost answer to the one before it, and is then cut. */
static void large_behind_lost(void **state)
{
    struct world w;

    (void)state;
    line_open(&w, false, 0, 0);
    w.pipeline.options.batch_count_max = 4;
    w.pipeline.options.in_flight_max = w.pipeline.window = 2;
    for (int i = 0; i < 8; i++) {
        give(&w);
    }
    pump(&w);
    assert_int_equal(w.count, 2);
    end_request(&w, 0, STREAM_ERROR_NETWORK, true);
    w.body_max = 4;
    end_request(&w, 1, STREAM_OK, false);
    w.body_max = SIZE_MAX;
    assert_ptr_not_equal(w.pipeline.too_large, NULL);
    w.now_ms += 100;
    pump(&w);
    assert_int_equal(w.count, 1);
    end_request(&w, 0, STREAM_OK, false);
    assert_ptr_equal(w.pipeline.too_large, NULL);
    settle(&w);
    assert_int_equal(w.pipeline.state, PIPELINE_RUNS);
    assert_int_equal(w.held, 8);
    world_finish(&w);
}

/* With `replay` an earlier run's batches count as stored. */
static void replays(void **state)
{
    struct world w;

    (void)state;
    line_open(&w, false, 3, 1);
    w.pipeline.options.replay = true;
    w.known = true;
    w.seq = 1;
    w.held = 2;
    settle(&w);
    assert_int_equal(w.pipeline.state, PIPELINE_RUNS);
    assert_int_equal(w.pipeline.stored, 3);
    assert_int_equal(w.held, 3);
    world_finish(&w);
}

/* What lingers goes when its time has come, when it is full, or when it is flushed. */
static void lingering(void **state)
{
    struct world w;
    int64_t wait_ms;

    (void)state;
    line_open(&w, false, 0, 0);
    w.pipeline.options.batch_count_max = 3;
    w.pipeline.options.in_flight_max = w.pipeline.window = 3;
    w.pipeline.options.linger_ms = 20;
    give(&w);
    w.now_ms += 15;
    assert_null(pipeline_next(&w.pipeline, w.now_ms, &wait_ms));
    assert_int_equal(wait_ms, 5);
    w.now_ms += 5;
    pump(&w);
    assert_int_equal(w.count, 1);
    give(&w);
    pump(&w);
    assert_int_equal(w.count, 1);
    pipeline_flush(&w.pipeline);
    pump(&w);
    assert_int_equal(w.count, 2);
    for (int i = 0; i < 3; i++) {
        give(&w);
    }
    pump(&w);
    assert_int_equal(w.count, 3);
    world_finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reordering),
        cmocka_unit_test(losses),
        cmocka_unit_test(echoes),
        cmocka_unit_test(too_large),
        cmocka_unit_test(fencing),
        cmocka_unit_test(closed_by_others),
        cmocka_unit_test(forgetting),
        cmocka_unit_test(shared_epoch),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(gap_waits),
        cmocka_unit_test(gap_behind_silence),
        cmocka_unit_test(failures_count_once),
        cmocka_unit_test(late_failures),
        cmocka_unit_test(stalls),
        cmocka_unit_test(stalls_out_of_time),
        cmocka_unit_test(foreign_epoch),
        cmocka_unit_test(large_behind_lost),
        cmocka_unit_test(replays),
        cmocka_unit_test(lingering),
    };
    return UNIT_RUN(tests);
}
