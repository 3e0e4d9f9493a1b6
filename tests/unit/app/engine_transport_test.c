/* What only the transport into the engine can show: its contract call by call, and what becomes of
 * calls when the disk stands still, fails, or the client leaves. What it shares with HTTP is in
 * engine_client_test.c. */
#include "unit/base/fault.h"

#include "app/engine_request.c"
#include "app/engine_transport.c"

#include "unit/app/transport_rig.h"

/* --------------------------------------------------------------------------- a disk with a gate */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t opened;
    bool shut;   /* syncs wait */
    bool broken; /* and then fail */
} gate = {.mutex = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER};

static int (*real_sync)(void *context, int fd);

static int gated_sync(void *context, int fd)
{
    (void)pthread_mutex_lock(&gate.mutex);
    while (gate.shut) {
        (void)pthread_cond_wait(&gate.opened, &gate.mutex);
    }
    bool broken = gate.broken;

    (void)pthread_mutex_unlock(&gate.mutex);
    return broken ? ERR_IO : real_sync(context, fd);
}

static void set_gate(bool shut, bool broken)
{
    (void)pthread_mutex_lock(&gate.mutex);
    gate.shut = shut;
    gate.broken = broken;
    (void)pthread_cond_broadcast(&gate.opened);
    (void)pthread_mutex_unlock(&gate.mutex);
}

/* Until the streams have that many bytes, durable or not. */
static void await_staged(const struct rig *rig, uint64_t bytes)
{
    struct engine_stats stats = {.bytes = 0};

    while (stats.bytes < bytes) {
        (void)poll(NULL, 0, 1);
        engine_get_stats(rig->engine, &stats);
    }
}

static void tune(struct rig *rig, struct engine_config *config)
{
    real_sync = rig->sys.fdatasync;
    rig->sys.fdatasync = gated_sync;
    config->store.durability = DURABILITY_SYNC;
}

static int open_rig(void **state)
{
    static struct rig rig;

    set_gate(false, false);
    rig_open_engine_tuned(&rig, tune);
    *state = &rig;
    return 0;
}

static int close_rig(void **state)
{
    set_gate(false, false);
    rig_close_engine(*state);
    return 0;
}

/* ----------------------------------------------------------------------- the seam, call by call */

/* A call that does as it is told. */
struct probe {
    struct call call;
    char bytes[256 * 1024];
    size_t len;
    size_t pieces;
    size_t pause_at; /* piece which is not taken the first time; 0: none */
    size_t stop_at;  /* piece which is the last that is wanted; 0: none */
    bool paused;
    int ends;
};

static enum call_flow probe_data(struct call *call, struct slice bytes)
{
    struct probe *p = container_of(call, struct probe, call);

    assert_int_equal(p->ends, 0);
    assert_int_equal(call->result.info.status, 200);
    assert_false(p->paused);
    if (p->pause_at == p->pieces + 1) {
        p->pause_at = 0;
        p->paused = true;
        return CALL_PAUSE;
    }
    p->pieces++;
    assert_true(p->len + bytes.len <= sizeof(p->bytes));
    memcpy(p->bytes + p->len, bytes.ptr, bytes.len);
    p->len += bytes.len;
    return p->stop_at == p->pieces ? CALL_STOP : CALL_TAKEN;
}

static void probe_done(struct call *call)
{
    container_of(call, struct probe, call)->ends++;
}

static void probe_listed(struct call *call, struct slice name, const struct stream_info *info)
{
    struct probe *p = container_of(call, struct probe, call);

    (void)info;
    p->pieces++;
    p->len += name.len;
}

struct bench {
    struct transport *transport;
    int wake[2];
};

static void bench_open(struct bench *b, const struct rig *rig)
{
    struct stream_client_options options = rig_options();
    struct stream_error error;

    EXPECT(STREAM_OK, engine_transport_new(&rig->config, &options, &b->transport, &error));
    assert_int_equal(pipe(b->wake), 0);
}

static void bench_close(struct bench *b)
{
    b->transport->ops->destroy(b->transport);
    (void)close(b->wake[0]);
    (void)close(b->wake[1]);
}

static struct probe *probe_new(enum call_verb verb, const char *name)
{
    struct probe *p = calloc(1, sizeof(*p));

    assert_non_null(p);
    p->call = (struct call){
        .verb = verb,
        .name = slice_of(name),
        .on_data = probe_data,
        .on_done = probe_done,
        .on_listed = probe_listed,
    };
    return p;
}

static void probe_start(struct bench *b, struct probe *p)
{
    call_begin(&p->call);
    b->transport->ops->start(b->transport, &p->call);
    assert_int_equal(p->ends, 0); /* nothing is called but in `wait` */
}

/* Turns until it has ended, or is paused. */
static void probe_run(struct bench *b, struct probe *p)
{
    while (p->ends == 0 && !p->paused) {
        b->transport->ops->wait(b->transport, b->wake[0], 30000);
    }
}

/* One call of its own, to its end; its code. */
static enum stream_error_code call_once(struct bench *b, enum call_verb verb, const char *name,
                                        struct slice body)
{
    struct probe *p = probe_new(verb, name);
    enum stream_error_code code;

    p->call.body = body;
    p->call.content_type = "text/plain";
    probe_start(b, p);
    probe_run(b, p);
    assert_int_equal(p->ends, 1);
    code = p->call.result.error.code;
    free(p);
    return code;
}

/* A body may be put off, and then comes as it was; it may be stopped; else it comes to its end. */
static void hands_out_bodies(void **state)
{
    char body[150000];
    struct bench b;
    struct probe *p;

    for (size_t i = 0; i < sizeof(body); i++) {
        body[i] = (char)(i % 251);
    }
    bench_open(&b, *state);
    assert_int_equal(call_once(&b, CALL_CREATE, "body", SLICE("")), STREAM_OK);
    for (size_t at = 0; at < sizeof(body); at += 50000) {
        struct slice part = {body + at, 50000};

        assert_int_equal(call_once(&b, CALL_APPEND, "body", part), STREAM_OK);
    }
    p = probe_new(CALL_READ, "body");
    p->pause_at = 1;
    ((struct engine_transport *)b.transport)->config.page_bytes = 1 * MIB;
    probe_start(&b, p);
    probe_run(&b, p);
    assert_true(p->paused && p->len == 0);
    b.transport->ops->wait(b.transport, b.wake[0], 0);
    p->paused = false;
    p->pause_at = 2;
    b.transport->ops->resume(b.transport, &p->call);
    assert_int_equal(p->pieces, 0);
    probe_run(&b, p);
    assert_true(p->paused && p->pieces == 1);
    p->paused = false;
    b.transport->ops->resume(b.transport, &p->call);
    probe_run(&b, p);
    assert_int_equal(p->len, sizeof(body));
    assert_memory_equal(p->bytes, body, sizeof(body));
    assert_true(p->call.result.body_whole && p->call.result.up_to_date);

    *p = (struct probe){.call = p->call, .stop_at = 2};
    probe_start(&b, p);
    probe_run(&b, p);
    assert_int_equal(p->pieces, 2);
    assert_int_equal(p->call.result.error.code, STREAM_OK);
    assert_false(p->call.result.body_whole);
    free(p);
    bench_close(&b);
}

/* A call that is cancelled is not heard of again, wherever it is. */
static void cancels_calls(void **state)
{
    static const enum call_verb verbs[] = {CALL_CREATE, CALL_APPEND,    CALL_DELETE, CALL_HEAD,
                                           CALL_READ,   CALL_LONG_POLL, CALL_LIST};
    struct bench b;

    bench_open(&b, *state);
    assert_int_equal(call_once(&b, CALL_CREATE, "cancel", SLICE("text")), STREAM_OK);
    for (size_t i = 0; i < ARRAY_COUNT(verbs); i++) {
        for (int turns = 0; turns < 4; turns++) {
            struct probe *p = probe_new(verbs[i], "cancel");

            p->call.body = SLICE("text");
            p->call.offset = "now";
            p->pause_at = 1;
            probe_start(&b, p);
            for (int n = 0; n < turns && p->ends == 0; n++) {
                b.transport->ops->wait(b.transport, b.wake[0], 0);
            }
            if (p->ends == 0) {
                b.transport->ops->cancel(b.transport, &p->call);
            }
            free(p);
            b.transport->ops->wait(b.transport, b.wake[0], 0);
        }
    }
    bench_close(&b);
}

/* `wait` ends when the client's own descriptor is readable, and when time is up. */
static void wakes_up(void **state)
{
    struct bench b;
    struct probe *p;

    bench_open(&b, *state);
    assert_int_equal(call_once(&b, CALL_CREATE, "wakes", SLICE("")), STREAM_OK);
    p = probe_new(CALL_LONG_POLL, "wakes");
    ((struct engine_transport *)b.transport)->config.long_poll_timeout_ms = 3600000;
    probe_start(&b, p);
    b.transport->ops->wait(b.transport, b.wake[0], 1);
    assert_int_equal(write(b.wake[1], "", 1), 1);
    b.transport->ops->wait(b.transport, b.wake[0], -1);
    assert_int_equal(p->ends, 0);
    b.transport->ops->cancel(b.transport, &p->call);
    free(p);
    bench_close(&b);
}

/* A call for which there is no way fails as such. */
static void knows_no_events(void **state)
{
    struct bench b;

    bench_open(&b, *state);
    assert_false(b.transport->has_sse);
    assert_int_equal(call_once(&b, CALL_SSE, "events", SLICE("")), STREAM_ERROR_ARGUMENT);
    bench_close(&b);
}

/* A call for which there is no memory fails with that, whatever it was short of. */
static void runs_out_of_memory(void **state)
{
    static const enum call_verb verbs[] = {CALL_CREATE, CALL_APPEND, CALL_HEAD,
                                           CALL_READ,   CALL_LIST,   CALL_DELETE};
    struct stream_client_options options = rig_options();
    const struct rig *rig = *state;
    struct transport *none = NULL;
    struct stream_error error;
    struct listing listing = {.code = 0};
    struct stream_listed listed = {.name = SLICE("name")};
    struct bench b;
    char memory[8];

    bench_open(&b, rig);
    for (size_t i = 0; i < ARRAY_COUNT(verbs); i++) {
        enum stream_error_code code = STREAM_ERROR_MEMORY;

        for (long allowed = 0; code != STREAM_OK; allowed++) {
            struct probe *p = probe_new(verbs[i], "memory");

            p->call.content_type = "text/plain";
            p->call.body = SLICE("text");
            fault_countdown = allowed;
            probe_start(&b, p);
            probe_run(&b, p);
            fault_countdown = -1;
            code = p->call.result.error.code;
            assert_true(code == STREAM_OK || code == STREAM_ERROR_MEMORY);
            assert_true(code == STREAM_OK || allowed < 4);
            free(p);
        }
    }
    fault_countdown = 0;
    EXPECT(STREAM_ERROR_MEMORY, engine_transport_new(&rig->config, &options, &none, &error));
    fault_countdown = -1;
    buf_init_fixed(&listing.entries, memory, sizeof(memory));
    assert_int_equal(keep_listed(&listing, &listed), ERR_NOMEM);

    /* No block can be that large. */
    ((struct engine_transport *)b.transport)->config.body_bytes_max = UINT64_MAX;
    assert_int_equal(call_once(&b, CALL_CREATE, "memory", (struct slice){memory, (size_t)1 << 31}),
                     STREAM_ERROR_MEMORY);
    bench_close(&b);
}

/* --------------------------------------------------------------- disks that stand still or fail */

/* An answer that is late fails the call; what was asked for happens all the same, and reads go on
 * meanwhile. */
static void gives_up_in_time(void **state)
{
    struct stream_client_options options = rig_options();
    struct stream_client *patient = rig_client(*state, NULL);
    struct stream_client *client;
    struct stream_error error;

    options.request_timeout_ms = 50;
    client = rig_client(*state, &options);
    rig_create(patient, "late", "text/plain");
    set_gate(true, false);
    EXPECT(STREAM_ERROR_TIMEOUT, stream_client_append(client, "late", "x", 1, NULL, NULL, &error));
    assert_true(error.outcome_unknown);
    EXPECT_WORDS("cannot append to \"late\": the engine: there was no whole answer within 50 ms");
    rig_expect(patient, "late", NULL, "");
    set_gate(false, false);
    rig_append(patient, "late", "y");
    rig_expect(patient, "late", NULL, "xy");
    stream_client_free(client);
    stream_client_free(patient);
}

struct blocked {
    struct stream_client *client;
    struct stream_error error;
    int code;
};

static void *append_blocked(void *context)
{
    struct blocked *b = context;

    b->code = stream_client_append(b->client, "stuck", "x", 1, NULL, NULL, &b->error);
    return NULL;
}

/* An abort takes effect while the disk stands still. */
static void aborts_writes(void **state)
{
    struct stream_client *client = rig_client(*state, NULL);
    struct blocked blocked = {.client = client};
    pthread_t thread;

    rig_create(client, "stuck", "text/plain");
    set_gate(true, false);
    assert_int_equal(pthread_create(&thread, NULL, append_blocked, &blocked), 0);
    await_staged(*state, 1);
    stream_client_abort(client);
    assert_int_equal(pthread_join(thread, NULL), 0); /* the gate is still shut */
    assert_int_equal(blocked.code, STREAM_ERROR_ABORTED);
    assert_true(blocked.error.outcome_unknown);
    set_gate(false, false);
    stream_client_free(client);
}

static void count_end(void *context, int code, const struct stream_info *info,
                      const struct stream_error *error)
{
    (void)info;
    (void)error;
    if (code == STREAM_ERROR_ABORTED) {
        atomic_fetch_add((atomic_int *)context, 1);
    }
}

/* Once all have been told that they are over, which the client does before it waits. */
static void *open_gate(void *context)
{
    const atomic_int *ends = context;

    while (atomic_load(ends) < 10) {
        (void)poll(NULL, 0, 1);
    }
    set_gate(false, false);
    return NULL;
}

/* A client that is freed in the middle waits for the engine, and what it started has happened. */
static void leaves_in_the_middle(void **state)
{
    const struct stream_append_options type = {.content_type = "text/plain"};
    struct stream_client *client = rig_client(*state, NULL);
    struct stream_error error;
    pthread_t thread;
    atomic_int ends = 0;

    rig_create(client, "leave", "text/plain");
    set_gate(true, false);
    for (int i = 0; i < 10; i++) {
        EXPECT(STREAM_OK, stream_client_start_append(client, "leave", "x", 1, &type, count_end,
                                                     &ends, &error));
    }
    await_staged(*state, 10);
    assert_int_equal(pthread_create(&thread, NULL, open_gate, &ends), 0);
    stream_client_free(client);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(atomic_load(&ends), 10);
    client = rig_client(*state, NULL);
    rig_expect(client, "leave", NULL, "xxxxxxxxxx");
    stream_client_free(client);
}

/* A log that failed refuses writes, says what is not known, and is read all the same. */
static void tells_of_failed_logs(void **state)
{
    struct stream_client_options options = rig_options();
    struct stream_client *client;
    struct stream_error error;

    options.retry.max_retries = 0;
    client = rig_client(*state, &options);
    rig_create(client, "failed", "text/plain");
    rig_append(client, "failed", "kept");
    set_gate(false, true);
    EXPECT(STREAM_ERROR_BUSY, stream_client_append(client, "failed", "x", 1, NULL, NULL, &error));
    assert_true(error.outcome_unknown);
    EXPECT_WORDS("the write failed and its outcome is unknown (status 503)");
    EXPECT(STREAM_ERROR_BUSY, stream_client_append(client, "failed", "x", 1, NULL, NULL, &error));
    assert_false(error.outcome_unknown);
    assert_int_equal(error.status, 503);
    assert_int_equal(error.retry_after_ms, 1000);
    EXPECT_WORDS("the log failed; the server accepts no writes until restart");
    rig_expect(client, "failed", NULL, "kept");
    stream_client_free(client);
}

/* ----------------------------------------------------------------------------- coming and going */

static void *append_until_closed(void *context)
{
    struct stream_client *client = context;

    while (stream_client_append(client, "busy", "x", 1, NULL, NULL, NULL) == STREAM_OK) {
    }
    return NULL;
}

/* Clients come and go while the stream that they follow grows. */
static void comes_and_goes(void **state)
{
    struct stream_client *writer = rig_client(*state, NULL);
    struct stream_read_options options = {.live = STREAM_LONG_POLL, .offset = "now"};
    struct stream_error error;
    pthread_t thread;

    rig_create(writer, "busy", "text/plain");
    assert_int_equal(pthread_create(&thread, NULL, append_until_closed, writer), 0);
    for (int i = 0; i < 40; i++) {
        struct stream_client *client = rig_client(*state, NULL);
        struct stream_reader *readers[3];
        struct stream_piece_view piece;

        for (int n = 0; n < 3; n++) {
            EXPECT(STREAM_OK, stream_client_read(client, "busy", &options, &readers[n], &error));
            EXPECT(STREAM_OK, stream_reader_next(readers[n], &piece, &error));
            if (n > 0) {
                EXPECT(STREAM_OK, stream_reader_next(readers[n], &piece, &error));
            }
        }
        for (int n = 0; n < 3; n++) {
            stream_reader_free(readers[n]);
        }
        stream_client_free(client);
    }
    EXPECT(STREAM_OK, stream_client_close(writer, "busy", NULL, &error));
    assert_int_equal(pthread_join(thread, NULL), 0);
    stream_client_free(writer);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(hands_out_bodies), TEST(cancels_calls),        TEST(wakes_up),
        TEST(knows_no_events),  TEST(runs_out_of_memory),   TEST(gives_up_in_time),
        TEST(aborts_writes),    TEST(leaves_in_the_middle), TEST(tells_of_failed_logs),
        TEST(comes_and_goes),
    };

    return UNIT_RUN(tests);
}
