/* The producer's threads and waits, over a transport that is a naive server in memory. What the
 * pipeline decides is tried in pipeline_test.c. */
#include "unit/base/unit.h"

#include "unit/base/fault.h"

#include "client/client.h"

static void counted_post(void *context, struct task *task);

#define client_post counted_post
#include "client/producer.c"
#undef client_post

#include <poll.h>
#include <semaphore.h>

#define STORED_MAX (4 * MIB)

enum mood {
    MOOD_GOOD,
    MOOD_DOWN,   /* no connection */
    MOOD_SILENT, /* no answer */
    MOOD_LATE,   /* takes what comes, but the answer is out of time */
    MOOD_FENCED, /* another producer is there */
    MOOD_CLOSED, /* somebody closed the stream */
    MOOD_ABSENT, /* there is no stream */
};

struct fake {
    struct transport base;
    _Atomic enum mood mood;
    const char *type;  /* of the stream */
    struct list calls; /* on the client's thread, as all from here */
    int64_t epoch;
    int64_t seq;
    bool closed;
    atomic_int heads;
    atomic_int appends;
    atomic_int cancelled;
    atomic_bool gated; /* the client's thread stops as it comes to wait, and behind each answer */
    sem_t stops;       /* posted when it does */
    sem_t goes;        /* lets it go on */
    char stored[STORED_MAX + 1];
    size_t stored_len;
};

struct rig {
    struct fake *fake;
    struct stream_client *client;
    struct stream_producer *producer;
    struct stream_producer_options options;
    struct stream_error error;
    struct stream_info info;
    atomic_int failures; /* calls of on_failed */
    uint64_t first_lost;
    struct stream_error failure;
};

/* ------------------------------------------------------------------------------ the transport */

static struct fake *fake_of(struct transport *t)
{
    return container_of(t, struct fake, base);
}

static void fake_start(struct transport *t, struct call *call)
{
    list_init(&call->link);
    list_append(&fake_of(t)->calls, &call->link);
}

static void fake_cancel(struct transport *t, struct call *call)
{
    list_remove(&call->link);
    fake_of(t)->cancelled++;
}

static void fake_resume(struct transport *t, struct call *call)
{
    (void)t;
    (void)call;
}

static void answer_append(struct fake *f, struct call *call)
{
    struct stream_info *info = &call->result.info;
    bool duplicate = call->producer_epoch == f->epoch && call->producer_seq <= f->seq;

    f->appends++;
    assert_true(duplicate ||
                call->producer_seq == (call->producer_epoch == f->epoch ? f->seq + 1 : 0));
    if (!duplicate) {
        f->epoch = call->producer_epoch;
        f->seq = call->producer_seq;
        f->closed = f->closed || call->close;
        assert_true(f->stored_len + call->body.len <= STORED_MAX);
        if (call->body.len > 0) {
            memcpy(f->stored + f->stored_len, call->body.ptr, call->body.len);
            f->stored_len += call->body.len;
        }
    }
    info->status = duplicate ? 204 : 200;
    info->duplicate = duplicate;
    info->closed = f->closed;
    info->producer_epoch = f->epoch;
    info->producer_seq = f->seq;
    (void)snprintf(info->next_offset, sizeof(info->next_offset), "%zu", f->stored_len);
}

static void answer(struct fake *f, struct call *call, enum mood mood)
{
    list_remove(&call->link);
    if (mood == MOOD_DOWN) {
        call_fail(call, STREAM_ERROR_NETWORK, "connection refused");
        call->result.transient = true;
    } else if (mood == MOOD_ABSENT) {
        call_fail_status(call, 404, false, SLICE("no"));
    } else if (call->verb == CALL_HEAD) {
        f->heads++;
        call->result.info.status = 200;
        (void)snprintf(call->result.info.content_type, 256, "%s", f->type);
    } else if (mood == MOOD_FENCED) {
        call->result.info.producer_epoch = 7;
        call_fail_status(call, 403, false, SLICE("stale"));
    } else if (mood == MOOD_CLOSED) {
        call->result.info.closed = 1;
        call_fail_status(call, 409, false, SLICE("closed"));
    } else {
        answer_append(f, call);
    }
    if (mood == MOOD_LATE) {
        call_fail(call, STREAM_ERROR_TIMEOUT, "there was no whole answer");
        call->result.error.outcome_unknown = call->verb == CALL_APPEND;
    }
    call->on_done(call);
}

static void pass_gate(struct fake *f)
{
    if (f->gated) {
        (void)sem_post(&f->stops);
        (void)sem_wait(&f->goes);
    }
}

static void fake_wait(struct transport *t, int wake_fd, int timeout_ms)
{
    struct fake *f = fake_of(t);

    pass_gate(f);
    enum mood mood = f->mood;
    bool busy = !list_empty(&f->calls) && mood != MOOD_SILENT;
    int step_ms = timeout_ms < 0 || timeout_ms > 2 ? 2 : timeout_ms; /* to see a change of mood */

    struct pollfd poll_fd = {.fd = wake_fd, .events = POLLIN};
    (void)poll(&poll_fd, 1, busy ? 0 : step_ms);
    if (busy) {
        answer(f, container_of(list_first(&f->calls), struct call, link), mood);
        pass_gate(f);
    }
}

static void fake_destroy(struct transport *t)
{
    struct fake *f = fake_of(t);

    assert_true(list_empty(&f->calls));
    (void)sem_destroy(&f->stops);
    (void)sem_destroy(&f->goes);
    free(f);
}

static const struct transport_ops fake_ops = {
    .start = fake_start,
    .cancel = fake_cancel,
    .resume = fake_resume,
    .wait = fake_wait,
    .destroy = fake_destroy,
};

/* ------------------------------------------------------------------------------------ the rig */

static void on_failed(void *context, uint64_t first_lost, const struct stream_error *error)
{
    struct rig *rig = context;
    uint64_t stored;

    stream_producer_counts(rig->producer, NULL, &stored, NULL);
    assert_int_equal(stored, first_lost);
    rig->first_lost = first_lost;
    rig->failure = *error;
    rig->failures++;
}

static void rig_open(struct rig *rig, const char *type)
{
    struct stream_client_options options;

    *rig = (struct rig){.fake = calloc(1, sizeof(*rig->fake))};
    assert_non_null(rig->fake);
    rig->fake->base.ops = &fake_ops;
    rig->fake->type = type;
    rig->fake->epoch = -1;
    list_init(&rig->fake->calls);
    assert_int_equal(sem_init(&rig->fake->stops, 0, 0), 0);
    assert_int_equal(sem_init(&rig->fake->goes, 0, 0), 0);
    stream_client_options_init(&options);
    options.retry.max_retries = 1;
    options.retry.initial_delay_ms = 1;
    assert_int_equal(client_new(&rig->fake->base, &options, &rig->client, NULL), 0);
    stream_producer_options_init(&rig->options);
    rig->options.failed = on_failed;
    rig->options.context = rig;
    rig->options.linger_ms = 0;
}

static void rig_start(struct rig *rig)
{
    assert_int_equal(
        stream_producer_new(rig->client, "a/b", "me", &rig->options, &rig->producer, &rig->error),
        0);
}

static void rig_close(struct rig *rig)
{
    stream_producer_free(rig->producer);
    stream_client_free(rig->client);
}

static int append(struct rig *rig, const char *text)
{
    return stream_producer_append(rig->producer, text, strlen(text), &rig->error);
}

static int flush(struct rig *rig)
{
    return stream_producer_flush(rig->producer, &rig->info, &rig->error);
}

static void expect_counts(struct rig *rig, uint64_t appended, uint64_t stored)
{
    uint64_t is_appended;
    uint64_t is_stored;

    stream_producer_counts(rig->producer, &is_appended, &is_stored, NULL);
    assert_int_equal(is_appended, appended);
    assert_int_equal(is_stored, stored);
}

/* ---------------------------------------------------------------------------------- the tests */

/* Many messages are stored in order, in batches, several at a time. */
static void stores_in_order(void **state)
{
    struct rig rig;
    char expected[16];
    size_t at = 0;

    (void)state;
    rig_open(&rig, "text/plain");
    rig.options.max_batch_messages = 7;
    rig_start(&rig);
    for (int i = 0; i < 10000; i++) {
        (void)snprintf(expected, sizeof(expected), "%d;", i);
        assert_int_equal(append(&rig, expected), 0);
    }
    assert_int_equal(flush(&rig), 0);
    expect_counts(&rig, 10000, 10000);
    assert_int_equal(rig.info.producer_seq, rig.fake->seq);
    assert_int_equal(strtoull(rig.info.next_offset, NULL, 10), rig.fake->stored_len);
    for (int i = 0; i < 10000; i++) {
        int len = snprintf(expected, sizeof(expected), "%d;", i);
        assert_memory_equal(rig.fake->stored + at, expected, (size_t)len);
        at += (size_t)len;
    }
    assert_int_equal(at, rig.fake->stored_len);
    assert_int_equal(rig.fake->heads, 1);
    assert_int_equal(rig.failures, 0);
    rig_close(&rig);
}

/* For JSON, batches are arrays and each message has to be one value. */
static void knows_json(void **state)
{
    struct rig rig;
    static const char *const bad[] = {"", "{", "1,2", "1 2", "]", "[1],[2", "\"a\n\"", "{}x"};

    (void)state;
    rig_open(&rig, "application/json; charset=utf-8");
    rig.options.linger_ms = 60000;
    rig_start(&rig);
    assert_int_equal(append(&rig, "1"), 0);
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_int_equal(append(&rig, bad[i]), STREAM_ERROR_ARGUMENT);
        assert_non_null(strstr(rig.error.message, "cannot append to \"a/b\": "));
    }
    assert_int_equal(append(&rig, " [2, 3] \n"), 0);
    assert_int_equal(flush(&rig), 0);
    assert_string_equal(rig.fake->stored, "[1, [2, 3] \n]");
    assert_int_equal(stream_producer_close(rig.producer, "4,5", 3, NULL, &rig.error),
                     STREAM_ERROR_ARGUMENT);
    expect_counts(&rig, 2, 2);
    assert_false(rig.fake->closed);
    rig_close(&rig);
}

/* With the type given nothing is asked. */
static void type_is_given(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, "none");
    rig.options.content_type = "Application/JSON";
    rig_start(&rig);
    assert_int_equal(append(&rig, "1,2"), STREAM_ERROR_ARGUMENT);
    assert_int_equal(append(&rig, "1"), 0);
    assert_int_equal(flush(&rig), 0);
    assert_int_equal(rig.fake->heads, 0);
    assert_string_equal(rig.fake->stored, "[1]");
    rig_close(&rig);
}

/* A message for a stream that is not there is refused, and the next one is asked about anew. */
static void stream_is_absent(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, "text/plain");
    rig_start(&rig);
    rig.fake->mood = MOOD_ABSENT;
    assert_int_equal(append(&rig, "a"), STREAM_ERROR_NOT_FOUND);
    rig.fake->mood = MOOD_DOWN;
    assert_int_equal(append(&rig, "a"), STREAM_ERROR_NETWORK);
    rig.fake->mood = MOOD_GOOD;
    assert_int_equal(append(&rig, "a"), 0);
    assert_int_equal(flush(&rig), 0);
    expect_counts(&rig, 1, 1);
    rig_close(&rig);
}

/* A server that does not tell the type is asked anew by the next message; nothing is guessed. */
static void type_is_not_told(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, "");
    rig_start(&rig);
    assert_int_equal(append(&rig, "1"), STREAM_ERROR_FORMAT);
    assert_string_equal(rig.error.message,
                        "cannot append to \"a/b\": the server does not tell the content type");
    assert_int_equal(rig.error.status, 200);
    expect_counts(&rig, 0, 0);
    rig.fake->type = "application/json";
    assert_int_equal(append(&rig, "1"), 0);
    assert_int_equal(flush(&rig), 0);
    assert_string_equal(rig.fake->stored, "[1]");
    assert_int_equal(rig.fake->heads, 2);
    rig_close(&rig);
}

/* When retries are used up the caller hears of it, nothing is dropped, the next call goes on. */
static void goes_on_after_a_stall(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, "text/plain");
    rig_start(&rig);
    assert_int_equal(append(&rig, "a"), 0);
    assert_int_equal(flush(&rig), 0);
    rig.fake->mood = MOOD_DOWN;
    assert_int_equal(append(&rig, "b"), 0);
    assert_int_equal(flush(&rig), STREAM_ERROR_NETWORK);
    assert_non_null(strstr(rig.error.message, "connection refused"));
    assert_int_equal(append(&rig, "c"), 0);
    assert_int_equal(stream_producer_close(rig.producer, "d", 1, NULL, &rig.error),
                     STREAM_ERROR_NETWORK);
    rig.fake->mood = MOOD_GOOD;
    assert_int_equal(stream_producer_close(rig.producer, "d", 1, &rig.info, &rig.error), 0);
    assert_int_equal(rig.info.closed, 1);
    assert_string_equal(rig.fake->stored, "abcd");
    expect_counts(&rig, 4, 4);
    assert_int_equal(rig.failures, 0);
    rig_close(&rig);
}

/* A batch whose answer is out of time is not lost, nor stored twice; the next call asks again. */
static void goes_on_out_of_time(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, "text/plain");
    rig_start(&rig);
    rig.fake->mood = MOOD_LATE;
    assert_int_equal(append(&rig, "a"), STREAM_ERROR_TIMEOUT); /* as the type is asked for */
    rig.fake->mood = MOOD_GOOD;
    assert_int_equal(append(&rig, "a"), 0);
    assert_int_equal(flush(&rig), 0);
    rig.fake->mood = MOOD_LATE;
    assert_int_equal(append(&rig, "b"), 0);
    assert_int_equal(flush(&rig), STREAM_ERROR_TIMEOUT);
    assert_int_equal(rig.error.outcome_unknown, 1);
    expect_counts(&rig, 2, 1);
    rig.fake->mood = MOOD_GOOD;
    assert_int_equal(append(&rig, "c"), 0);
    assert_int_equal(flush(&rig), 0);
    assert_string_equal(rig.fake->stored, "abc");
    expect_counts(&rig, 3, 3);
    assert_int_equal(rig.failures, 0);
    rig_close(&rig);
}

/* A closed producer takes nothing more, and may be closed again. */
static void closes(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, "text/plain");
    rig_start(&rig);
    assert_int_equal(append(&rig, "a"), 0);
    assert_int_equal(stream_producer_close(rig.producer, NULL, 0, NULL, &rig.error), 0);
    assert_int_equal(append(&rig, "b"), STREAM_ERROR_CLOSED);
    assert_int_equal(flush(&rig), 0);
    assert_int_equal(stream_producer_close(rig.producer, "x", 1, NULL, &rig.error), 0);
    assert_string_equal(rig.fake->stored, "a");
    assert_true(rig.fake->closed);
    rig_close(&rig);
}

/* To close what somebody else has closed is refused, with a last message or without. */
static void closed_before(void **state)
{
    struct rig rig;

    (void)state;
    for (size_t len = 0; len < 2; len++) {
        rig_open(&rig, "text/plain");
        rig_start(&rig);
        rig.fake->mood = MOOD_CLOSED;
        assert_int_equal(stream_producer_close(rig.producer, "x", len, NULL, &rig.error),
                         STREAM_ERROR_CLOSED);
        assert_int_equal(rig.failures, 1);
        rig_close(&rig);
    }
}

/* A fenced producer fails for good, tells so once, and says which epoch is in force. */
static void fenced(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, "text/plain");
    rig_start(&rig);
    assert_int_equal(append(&rig, "a"), 0);
    assert_int_equal(flush(&rig), 0);
    rig.fake->mood = MOOD_FENCED;
    assert_int_equal(append(&rig, "b"), 0);
    assert_int_equal(flush(&rig), STREAM_ERROR_FENCED);
    assert_int_equal(rig.error.current_epoch, 7);
    rig.fake->mood = MOOD_GOOD;
    assert_int_equal(append(&rig, "c"), STREAM_ERROR_FENCED);
    assert_int_equal(flush(&rig), STREAM_ERROR_FENCED);
    assert_int_equal(stream_producer_close(rig.producer, NULL, 0, NULL, &rig.error),
                     STREAM_ERROR_FENCED);
    stream_producer_free(rig.producer);
    rig.producer = NULL;
    assert_int_equal(rig.failures, 1);
    assert_int_equal(rig.first_lost, 1);
    assert_string_equal(rig.fake->stored, "a");
    rig_close(&rig);
}

struct waiter {
    struct rig *rig;
    pthread_t thread;
    int (*run)(struct rig *rig);
    int code;
};

static void *run_waiter(void *context)
{
    struct waiter *w = context;

    w->code = w->run(w->rig);
    return NULL;
}

static void waiter_start(struct waiter *w, struct rig *rig, int (*run)(struct rig *rig))
{
    *w = (struct waiter){.rig = rig, .run = run};
    assert_int_equal(pthread_create(&w->thread, NULL, run_waiter, w), 0);
}

static int waiter_end(struct waiter *w)
{
    assert_int_equal(pthread_join(w->thread, NULL), 0);
    return w->code;
}

static int append_many(struct rig *rig)
{
    int code = STREAM_OK;

    for (int i = 0; code == STREAM_OK && i < 1000; i++) {
        code = append(rig, "0123456789");
    }
    return code;
}

/* At the cap an append waits until there is room; memory stays below it. */
static void blocks_when_full(void **state)
{
    struct rig rig;
    struct waiter w;
    uint64_t appended = 0;

    (void)state;
    rig_open(&rig, "text/plain");
    rig.options.content_type = "text/plain";
    rig.options.max_queued_bytes = 1000;
    rig_start(&rig);
    rig.fake->mood = MOOD_SILENT;
    waiter_start(&w, &rig, append_many);
    /* 26 bytes each: the queue is full at 38 or 39. */
    while (appended < 37) {
        stream_producer_counts(rig.producer, &appended, NULL, NULL);
        (void)poll(NULL, 0, 1);
    }
    (void)poll(NULL, 0, 20);
    stream_producer_counts(rig.producer, &appended, NULL, NULL);
    assert_in_range(appended, 37, 39);
    rig.fake->mood = MOOD_GOOD;
    assert_int_equal(waiter_end(&w), 0);
    assert_int_equal(flush(&rig), 0);
    expect_counts(&rig, 1000, 1000);
    assert_int_equal(rig.fake->stored_len, 10000);
    rig_close(&rig);
}

static atomic_int posts; /* tasks that producers have posted */

static void counted_post(void *context, struct task *task)
{
    posts++;
    client_post(context, task);
}

static void await_stop(struct rig *rig)
{
    assert_int_equal(sem_wait(&rig->fake->stops), 0);
}

static void go_to_next_stop(struct rig *rig)
{
    assert_int_equal(sem_post(&rig->fake->goes), 0);
    await_stop(rig);
}

/* A pump that is on its way is not posted once more, though the end of a call has pumped meanwhile:
 * a task stands in the list of those to run once at most. */
static void pump_is_on_its_way(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, "text/plain");
    rig.options.content_type = "text/plain";
    rig_start(&rig);
    rig.fake->gated = true;
    await_stop(&rig);
    int before = posts;
    assert_int_equal(append(&rig, "a"), 0);
    assert_int_equal(posts, before + 1);
    go_to_next_stop(&rig); /* the pump has run, and a is sent */
    assert_int_equal(append(&rig, "b"), 0);
    assert_int_equal(posts, before + 2);
    go_to_next_stop(&rig); /* a is answered, and b sent for that; the pump is still to run */
    assert_int_equal(rig.fake->appends, 1);
    assert_int_equal(append(&rig, "c"), 0);
    assert_int_equal(posts, before + 2);
    rig.fake->gated = false;
    assert_int_equal(sem_post(&rig.fake->goes), 0);
    assert_int_equal(flush(&rig), 0);
    assert_string_equal(rig.fake->stored, "abc");
    expect_counts(&rig, 3, 3);
    rig_close(&rig);
}

/* An abort ends what waits, at once, in whatever it waits for: room, the type, the answers. */
static void aborts(void **state)
{
    struct rig rig;
    struct waiter w;

    (void)state;
    for (int i = 0; i < 6; i++) {
        rig_open(&rig, "text/plain");
        rig.options.content_type = i % 3 == 0 ? NULL : "text/plain";
        rig.options.max_queued_bytes = i % 3 == 1 ? 100 : 1 * MIB;
        rig_start(&rig);
        rig.fake->mood = MOOD_SILENT;
        if (i % 3 == 2) {
            assert_int_equal(append(&rig, "a"), 0);
        }
        waiter_start(&w, &rig, i % 3 == 2 ? flush : append_many);
        (void)poll(NULL, 0, i);
        if (i < 3) {
            stream_producer_abort(rig.producer);
        } else {
            stream_client_abort(rig.client);
        }
        assert_int_equal(waiter_end(&w), STREAM_ERROR_ABORTED);
        assert_int_equal(append(&rig, "a"), STREAM_ERROR_ABORTED);
        stream_producer_abort(rig.producer);
        stream_producer_free(rig.producer);
        rig.producer = NULL;
        assert_int_equal(rig.failures, 1);
        assert_int_equal(rig.first_lost, 0);
        rig_close(&rig);
    }
}

/* What is not stored when it is freed, is told to be lost; if all is, nothing is told. */
static void freed_early(void **state)
{
    struct rig rig;

    (void)state;
    for (int lost = 0; lost < 2; lost++) {
        rig_open(&rig, "text/plain");
        rig_start(&rig);
        assert_int_equal(append(&rig, "a"), 0);
        assert_int_equal(flush(&rig), 0);
        if (lost) {
            rig.fake->mood = MOOD_SILENT;
            assert_int_equal(append(&rig, "b"), 0);
        }
        stream_producer_free(rig.producer);
        rig.producer = NULL;
        assert_int_equal(rig.failures, lost);
        assert_int_equal(rig.first_lost, lost);
        assert_int_equal(lost ? rig.failure.code : STREAM_ERROR_ABORTED, STREAM_ERROR_ABORTED);
        rig_close(&rig);
    }
}

static void refuse_options(struct rig *rig, const char *word)
{
    assert_int_equal(
        stream_producer_new(rig->client, "a", "me", &rig->options, &rig->producer, &rig->error),
        STREAM_ERROR_ARGUMENT);
    assert_non_null(strstr(rig->error.message, word));
    stream_producer_options_init(&rig->options);
}

/* Options and names that make no sense are refused by name. */
static void refuses_options(void **state)
{
    struct rig rig;
    char long_id[PRODUCER_ID_BYTES_MAX + 2];
    char type[257];
    const char *ids[] = {"", " a", "a ", "a\nb", "\x7f", long_id};

    (void)state;
    memset(long_id, 'x', sizeof(long_id));
    long_id[sizeof(long_id) - 1] = '\0';
    rig_open(&rig, "text/plain");
    rig.options.epoch = -1;
    refuse_options(&rig, "epoch");
    rig.options.epoch = PRODUCER_EPOCH_MAX + 1;
    refuse_options(&rig, "epoch");
    rig.options.max_batch_bytes = 0;
    refuse_options(&rig, "max_batch_bytes");
    rig.options.max_batch_messages = 0;
    refuse_options(&rig, "max_batch_messages");
    rig.options.linger_ms = -1;
    refuse_options(&rig, "linger_ms");
    rig.options.max_in_flight = 0;
    refuse_options(&rig, "max_in_flight");
    rig.options.max_in_flight = PRODUCER_IN_FLIGHT_MAX + 1;
    refuse_options(&rig, "max_in_flight");
    rig.options.max_queued_bytes = 0;
    refuse_options(&rig, "max_queued_bytes");
    rig.options.content_type = "text";
    refuse_options(&rig, "content_type");
    (void)snprintf(type, sizeof(type), "text/%0251d", 0);
    rig.options.content_type = type;
    refuse_options(&rig, "content_type has 256 bytes; it must have 255 or less");
    type[255] = '\0';
    rig.options.content_type = type;
    rig_start(&rig);
    assert_string_equal(rig.producer->type, type);
    stream_producer_free(rig.producer);
    rig.producer = NULL;
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
        assert_int_equal(stream_producer_new(rig.client, "a", ids[i], NULL, &rig.producer, NULL),
                         STREAM_ERROR_ARGUMENT);
    }
    assert_int_equal(stream_producer_new(rig.client, "/a", "me", NULL, &rig.producer, &rig.error),
                     STREAM_ERROR_ARGUMENT);
    assert_non_null(strstr(rig.error.message, "name"));
    rig_close(&rig);
}

/* Without memory no producer is made, and nothing leaks. */
static void no_memory(void **state)
{
    struct rig rig;
    int code = STREAM_ERROR_MEMORY;

    (void)state;
    rig_open(&rig, "text/plain");
    for (long i = 0; code != STREAM_OK; i++) {
        assert_in_range(i, 0, 10);
        fault_countdown = i;
        code = stream_producer_new(rig.client, "a", "me", &rig.options, &rig.producer, &rig.error);
        fault_countdown = -1;
        assert_true(code == STREAM_OK || code == STREAM_ERROR_MEMORY);
    }
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stores_in_order),     cmocka_unit_test(knows_json),
        cmocka_unit_test(type_is_given),       cmocka_unit_test(stream_is_absent),
        cmocka_unit_test(type_is_not_told),    cmocka_unit_test(goes_on_after_a_stall),
        cmocka_unit_test(goes_on_out_of_time), cmocka_unit_test(closes),
        cmocka_unit_test(closed_before),       cmocka_unit_test(fenced),
        cmocka_unit_test(blocks_when_full),    cmocka_unit_test(aborts),
        cmocka_unit_test(pump_is_on_its_way),  cmocka_unit_test(freed_early),
        cmocka_unit_test(refuses_options),     cmocka_unit_test(no_memory),
    };
    return UNIT_RUN(tests);
}
