/* The reader against connections that do what a test says, by a clock that stands still. What was
 * told is written down in words: states, `lost` with the pause and the code, chunks as id:json with
 * ! for a fresh one, errors of one subscription as id? with the code, and one that was broken off
 * as id~ with code and pause. */
#include "unit/t3/fake_time.h"
#include "unit/t3/rpc_fake.h"

#include "base/buf.h"

#include <poll.h>
#include <sys/resource.h>

static const void *wiped; /* where memory was wiped last, and the one before */
static const void *wiped_before;

static inline void note_bzero(void *memory, size_t size)
{
    wiped_before = wiped;
    wiped = memory;
    explicit_bzero(memory, size);
}

#define explicit_bzero note_bzero

#include "unit/base/fault.h"

#include "t3/subscriptions.c"
#include "t3/wake.c"
#include "t3/reader.c"

#define URL   "http://peer"
#define SHELL "orchestration.subscribeShell"

static void show(struct buf *out, const struct t3_reader_event *event)
{
    buf_append(out, out->len > 0 ? SLICE(" ") : SLICE(""));
    switch (event->kind) {
    case T3_READER_EVENT_STATE:
        buf_append(out, slice_of(t3_reader_state_name(event->state)));
        if (event->state == T3_READER_LOST) {
            buf_append_format(out, " %d", event->delay_ms);
        }
        if (event->error.code != T3_RPC_OK) {
            buf_append_format(out, " %s", t3_rpc_code_name(event->error.code));
        }
        break;
    case T3_READER_EVENT_CHUNK:
        buf_append_format(out, "%d%s:", (int)event->id, event->fresh ? "!" : "");
        assert_int_equal(event->len, strlen(event->json));
        buf_append(out, slice_of(event->json));
        break;
    case T3_READER_EVENT_ERROR:
        buf_append_format(out, "%d?%s", (int)event->id, t3_rpc_code_name(event->error.code));
        break;
    case T3_READER_EVENT_BROKEN:
        assert_null(event->json);
        buf_append_format(out, "%d~%s %d", (int)event->id, t3_rpc_code_name(event->error.code),
                          event->delay_ms);
        break;
    }
}

/* Whether the reader's descriptor is readable. */
static bool is_ready(const struct t3_reader *r)
{
    struct pollfd ready = {.fd = t3_reader_fd(r), .events = POLLIN};

    return poll(&ready, 1, 0) == 1;
}

/* All that is told now. As long as there is something to tell, the descriptor is readable, and then
 * no more. */
static void assert_told(struct t3_reader *r, const char *want)
{
    struct t3_reader_event event;
    struct buf told;
    bool was_ready = is_ready(r);

    buf_init(&told, 1u << 20);
    while (t3_reader_next(r, 0, &event)) {
        assert_true(was_ready);
        was_ready = is_ready(r);
        show(&told, &event);
    }
    assert_false(is_ready(r));
    buf_append_char(&told, '\0');
    assert_string_equal(told.ptr, want);
    buf_finish(&told);
}

static struct t3_reader *new_reader(const struct t3_reader_options *options)
{
    struct t3_reader *r = NULL;

    fake_dice = 0;
    fake_due_ms = 0;
    fake_connects = 0;
    fake_acks = 0;
    assert_int_equal(t3_reader_new(URL, options, &r, NULL), T3_RPC_OK);
    return r;
}

static uint64_t subscribe(struct t3_reader *r, const char *method)
{
    uint64_t id = 0;

    assert_int_equal(t3_reader_subscribe(r, method, NULL, &id, NULL), T3_RPC_OK);
    return id;
}

#include "unit/t3/reader_random.h"

/* A reader with one subscription, which is live. */
static struct t3_reader *live_reader(void)
{
    struct t3_reader *r = new_reader(NULL);

    assert_int_equal(subscribe(r, SHELL), 1);
    assert_told(r, "connecting");
    fake_open();
    fake_chunk(1, "[1]");
    assert_told(r, "catching up 1!:[1]");
    t3_reader_ack(r, 1);
    assert_told(r, "live");
    return r;
}

#include "unit/t3/reader_broken.h"

/* Connecting, catching up, live; chunks in order, the first one fresh; one acknowledgement each. */
static void test_happy_path(void **state)
{
    struct t3_reader *r = new_reader(NULL);
    uint64_t id;

    (void)state;
    assert_true(is_ready(r));
    assert_int_equal(fake_connects, 0); /* nothing is sent before the first event is asked for */
    assert_int_equal(
        t3_reader_subscribe(r, SHELL, " {\"requestCompletionMarker\":true}\n", &id, NULL),
        T3_RPC_OK);
    assert_int_equal(subscribe(r, "other"), 2);
    assert_told(r, "connecting");
    assert_int_equal(fake_connects, 1);
    assert_string_equal(fake->url, URL);
    assert_int_equal(fake->request_count, 2); /* sent when it stands */
    assert_string_equal(fake->requests[0].method, SHELL);
    assert_string_equal(fake->requests[0].payload, "{\"requestCompletionMarker\":true}");
    assert_string_equal(fake->requests[1].method, "other");
    assert_string_equal(fake->requests[1].payload, "{}");
    fake_open();
    fake_chunk(2, "[1]");
    fake_chunk(1, "[2]");
    assert_told(r, "catching up 2!:[1] 1!:[2]");
    t3_reader_ack(r, 1);
    assert_told(r, "");
    t3_reader_ack(r, 2);
    fake_chunk(1, "[3]");
    assert_told(r, "live 1:[3]");
    t3_reader_ack(r, 1);
    assert_told(r, "");
    assert_int_equal(fake_acks, 3);
    t3_reader_free(r);
    assert_null(fake);
}

/* With no subscription it is live as soon as the connection stands. */
static void test_no_subscription(void **state)
{
    struct t3_reader *r = new_reader(NULL);

    (void)state;
    assert_told(r, "connecting");
    fake_open();
    assert_told(r, "live");
    t3_reader_free(r);
}

/* 0.5 s, half as much again each time, up to 5 s; and not before a pause is over. */
static void test_pauses(void **state)
{
    static const int pauses[] = {500, 750, 1125, 1687, 2531, 3796, 5000, 5000};
    struct t3_reader *r = new_reader(NULL);
    char want[64];

    (void)state;
    (void)subscribe(r, SHELL);
    assert_told(r, "connecting");
    for (size_t i = 0; i < ARRAY_COUNT(pauses); i++) {
        fake_closed(T3_RPC_ERROR_NETWORK);
        (void)snprintf(want, sizeof(want), "lost %d NETWORK", pauses[i]);
        assert_told(r, want);
        assert_null(fake);
        fake_sleep((uint64_t)pauses[i] - 1);
        assert_told(r, "");
        fake_sleep(1);
        assert_true(is_ready(r));
        assert_told(r, "connecting");
    }
    assert_int_equal(fake_connects, ARRAY_COUNT(pauses) + 1);
    t3_reader_free(r);
}

/* A random part of up to a half is taken from each pause, not from those that follow; without
 * random numbers the clock has to do. */
static void test_dice(void **state)
{
    struct t3_reader *r = new_reader(NULL);
    struct t3_reader_event event;

    (void)state;
    assert_told(r, "connecting");
    fake_dice = UINT64_MAX;
    fake_closed(T3_RPC_ERROR_NETWORK);
    assert_told(r, "lost 250 NETWORK");
    fake_sleep(250);
    assert_told(r, "connecting");
    fake_dice = UINT64_C(1) << 63;
    fake_closed(T3_RPC_ERROR_NETWORK);
    assert_told(r, "lost 562 NETWORK");
    fake_sleep(562);
    assert_told(r, "connecting");
    fake_without_dice = true;
    fake_closed(T3_RPC_ERROR_NETWORK);
    assert_int_equal(t3_reader_next(r, 0, &event), 1);
    assert_in_range(event.delay_ms, 562, 1125);
    fake_without_dice = false;
    t3_reader_free(r);
}

/* A server that takes connections and breaks them, even behind its snapshots, is not hammered:
 * pauses grow until it was live for as long as the longest of them, and begin anew then. */
static void test_pauses_begin_anew(void **state)
{
    struct t3_reader *r = new_reader(NULL);

    (void)state;
    (void)subscribe(r, SHELL);
    assert_told(r, "connecting");
    fake_open();
    fake_closed(T3_RPC_ERROR_CLOSED);
    assert_told(r, "catching up lost 500 CLOSED");
    fake_sleep(500);
    assert_told(r, "connecting");
    fake_open();
    fake_chunk(1, "[1]");
    fake_closed(T3_RPC_ERROR_CLOSED);
    assert_told(r, "catching up 1!:[1] lost 750 CLOSED"); /* it came, but was not acknowledged */
    fake_sleep(750);
    assert_told(r, "connecting");
    fake_open();
    fake_chunk(1, "[1]");
    assert_told(r, "catching up 1!:[1]");
    t3_reader_ack(r, 1);
    fake_sleep(4999);
    fake_closed(T3_RPC_ERROR_CLOSED);
    assert_told(r, "live lost 1125 CLOSED");
    fake_sleep(1125);
    assert_told(r, "connecting");
    fake_open();
    fake_chunk(1, "[1]");
    assert_told(r, "catching up 1!:[1]");
    t3_reader_ack(r, 1);
    fake_sleep(5000);
    fake_closed(T3_RPC_ERROR_CLOSED);
    assert_told(r, "live lost 500 CLOSED");
    fake_sleep(500);
    t3_reader_unsubscribe(r, 1);
    assert_told(r, "connecting");
    fake_open();
    fake_sleep(5000);
    fake_closed(T3_RPC_ERROR_CLOSED);
    assert_told(r, "live lost 750 CLOSED"); /* with nothing to be live */
    t3_reader_free(r);
}

/* What each end of a connection leads to. */
static void test_ends_of_connections(void **state)
{
    static const struct {
        enum t3_rpc_code code;
        const char *told;
    } cases[] = {
        {T3_RPC_ERROR_MEMORY, "lost 500 MEMORY"},   {T3_RPC_ERROR_LIMIT, "lost 5000 LIMIT"},
        {T3_RPC_ERROR_NETWORK, "lost 500 NETWORK"}, {T3_RPC_ERROR_TLS, "lost 5000 TLS"},
        {T3_RPC_ERROR_AUTH, "refused AUTH"},        {T3_RPC_ERROR_VERSION, "refused VERSION"},
        {T3_RPC_ERROR_HTTP, "lost 500 HTTP"},       {T3_RPC_ERROR_PROTOCOL, "lost 500 PROTOCOL"},
        {T3_RPC_ERROR_DEFECT, "lost 500 DEFECT"},   {T3_RPC_ERROR_TIMEOUT, "lost 500 TIMEOUT"},
        {T3_RPC_ERROR_CLOSED, "lost 500 CLOSED"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct t3_reader *r = live_reader();

        fake_chunk(1, "[2]");
        fake_closed(cases[i].code);
        assert_string_equal(t3_rpc_code_name(cases[i].code), strrchr(cases[i].told, ' ') + 1);
        assert_int_equal(t3_reader_next(r, 0, &(struct t3_reader_event){0}), 1); /* the chunk */
        assert_told(r, cases[i].told);
        assert_null(fake);
        fake_sleep(4999);
        if (strncmp(cases[i].told, "lost 500 ", 9) == 0) {
            assert_told(r, "connecting");
        } else {
            assert_told(r, "");
            assert_int_equal(fake_connects, 1);
        }
        t3_reader_free(r);
    }
}

/* And each end of a subscription's request: what asking again would not change is refused for all,
 * a breakdown at that one request is of that one alone. */
static void test_ends_of_requests(void **state)
{
    static const struct {
        enum t3_rpc_code code;
        const char *told;
    } cases[] = {
        {T3_RPC_ERROR_SCOPE, "refused SCOPE"},
        {T3_RPC_ERROR_METHOD, "refused METHOD"},
        {T3_RPC_ERROR_DIED, "2~DIED 500"},
        {T3_RPC_ERROR_INTERRUPTED, "2~INTERRUPTED 500"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct t3_reader *r = live_reader();

        (void)subscribe(r, "other");
        fake_error(2, cases[i].code);
        assert_int_equal(t3_reader_next(r, 0, &(struct t3_reader_event){0}), 1); /* catching up */
        assert_told(r, cases[i].told);
        assert_int_equal(fake == NULL, cases[i].told[0] == 'r');
        t3_reader_free(r);
    }
}

/* A stream that the server ends is to be followed anew, after a pause, on the same connection. */
static void test_done(void **state)
{
    struct t3_reader *r = live_reader();
    struct t3_reader_event event;

    (void)state;
    fake_done(1);
    assert_int_equal(t3_reader_next(r, 0, &event), 1);
    assert_int_equal(event.kind, T3_READER_EVENT_BROKEN);
    assert_int_equal(event.id, 1);
    assert_int_equal(event.delay_ms, 500);
    assert_int_equal(event.error.code, T3_RPC_ERROR_CLOSED);
    assert_string_equal(event.error.message, "the server ended the stream of " SHELL);
    assert_told(r, "catching up");
    fake_sleep(500);
    assert_told(r, "");
    assert_int_equal(fake_connects, 1);
    assert_string_equal(fake->requests[1].method, SHELL);
    t3_reader_free(r);
}

/* An error that the server declares is of one subscription, which is gone; the others go on. */
static void test_failed(void **state)
{
    struct t3_reader *r = live_reader();
    struct t3_reader_event event;

    (void)state;
    assert_int_equal(subscribe(r, "other"), 2);
    fake_error(2, T3_RPC_ERROR_FAILED);
    assert_int_equal(t3_reader_next(r, 0, &event), 1);
    assert_int_equal(event.state, T3_READER_CATCHING_UP);
    assert_int_equal(t3_reader_next(r, 0, &event), 1);
    assert_int_equal(event.kind, T3_READER_EVENT_ERROR);
    assert_int_equal(event.id, 2);
    assert_int_equal(event.error.code, T3_RPC_ERROR_FAILED);
    assert_string_equal(event.json, "[{\"_tag\":\"Fail\"}]");
    fake_chunk(1, "[2]");
    assert_told(r, "live 1:[2]"); /* all that are left are */
    fake_closed(T3_RPC_ERROR_CLOSED);
    assert_told(r, "lost 500 CLOSED");
    fake_sleep(500);
    assert_told(r, "connecting");
    assert_int_equal(fake->request_count, 1);
    assert_int_equal(subscribe(r, "other"), 3); /* an id is not used again */
    t3_reader_free(r);
}

/* Subscribing and unsubscribing works at any time, and ids stay. */
static void test_subscribing_at_any_time(void **state)
{
    struct t3_reader *r = live_reader();

    (void)state;
    assert_int_equal(subscribe(r, "b"), 2);
    assert_told(r, "catching up");
    t3_reader_unsubscribe(r, 2);
    assert_true(fake->requests[1].over);
    assert_told(r, "live");
    assert_int_equal(subscribe(r, "c"), 3);
    t3_reader_unsubscribe(r, 3); /* nobody was told of it meanwhile */
    assert_told(r, "");
    fake_chunk(1, "[2]");
    t3_reader_unsubscribe(r, 1); /* what has come is not given any more */
    assert_told(r, "");
    t3_reader_unsubscribe(r, 1);
    t3_reader_unsubscribe(r, 77);
    assert_int_equal(subscribe(r, "d"), 4);
    fake_closed(T3_RPC_ERROR_CLOSED);
    assert_int_equal(subscribe(r, "e"), 5); /* on a connection that has ended by now */
    assert_told(r, "catching up lost 500 CLOSED");
    assert_int_equal(subscribe(r, "f"), 6);
    t3_reader_unsubscribe(r, 4);
    assert_told(r, "");
    fake_sleep(500);
    assert_told(r, "connecting");
    assert_int_equal(subscribe(r, "g"), 7); /* before it stands */
    assert_int_equal(fake->request_count, 3);
    assert_string_equal(fake->requests[0].method, "e");
    assert_string_equal(fake->requests[1].method, "f");
    assert_string_equal(fake->requests[2].method, "g");
    fake_open();
    fake_chunk(3, "[g]");
    assert_told(r, "catching up 7!:[g]");
    fake_error(1, T3_RPC_ERROR_METHOD);
    assert_told(r, "refused METHOD");
    assert_int_equal(subscribe(r, "h"), 8);
    t3_reader_unsubscribe(r, 5);
    t3_reader_retry(r);
    assert_told(r, "connecting");
    assert_int_equal(fake->request_count, 3);
    assert_string_equal(fake->requests[2].method, "h");
    t3_reader_free(r);
}

/* A chunk is acknowledged once; what is unknown, or came from a connection that is gone, not at
 * all. One that came but was not acknowledged is not given again by the reader. */
static void test_stale_acks(void **state)
{
    struct t3_reader *r = live_reader();

    (void)state;
    t3_reader_ack(r, 1);
    t3_reader_ack(r, 0);
    t3_reader_ack(r, 9);
    assert_int_equal(fake_acks, 1);
    fake_chunk(1, "[2]");
    assert_told(r, "1:[2]");
    fake_closed(T3_RPC_ERROR_NETWORK);
    t3_reader_ack(r, 1); /* the connection has ended, and nobody was told yet */
    assert_told(r, "lost 500 NETWORK");
    t3_reader_ack(r, 1);
    fake_sleep(500);
    assert_told(r, "connecting");
    t3_reader_ack(r, 1);
    fake_open();
    assert_told(r, "catching up");
    t3_reader_ack(r, 1);
    assert_int_equal(fake_acks, 1);
    fake_chunk(1, "[3]");
    assert_told(r, "1!:[3]");
    t3_reader_ack(r, 1);
    assert_told(r, "live");
    assert_int_equal(fake_acks, 2);
    t3_reader_free(r);
}

/* A chunk that cannot be acknowledged would hold its stream for ever: all begins anew. */
static void test_ack_fails(void **state)
{
    struct t3_reader *r = live_reader();

    (void)state;
    fake_chunk(1, "[2]");
    assert_told(r, "1:[2]");
    fake_ack = T3_RPC_ERROR_MEMORY;
    t3_reader_ack(r, 1);
    fake_ack = T3_RPC_OK;
    assert_told(r, "lost 500 MEMORY");
    t3_reader_free(r);
}

/* What asking again would not help is refused, by whoever reads, from any state; retry begins anew,
 * and cuts pauses short. */
static void test_refuse_and_retry(void **state)
{
    const struct t3_rpc_error old = {.code = T3_RPC_ERROR_VERSION, .message = "too old"};
    struct t3_reader *r = live_reader();
    struct t3_reader_event event;

    (void)state;
    t3_reader_retry(r); /* nothing while a connection stands */
    assert_told(r, "");
    t3_reader_refuse(r, &old);
    assert_null(fake);
    assert_int_equal(t3_reader_next(r, 0, &event), 1);
    assert_int_equal(event.state, T3_READER_REFUSED);
    assert_int_equal(event.error.code, T3_RPC_ERROR_VERSION);
    assert_string_equal(event.error.message, "too old");
    fake_sleep(1000000);
    assert_told(r, "");
    t3_reader_retry(r);
    t3_reader_retry(r);
    assert_told(r, "connecting");
    t3_reader_retry(r);
    assert_told(r, "");
    assert_int_equal(fake_connects, 2);
    fake_closed(T3_RPC_ERROR_NETWORK);
    assert_told(r, "lost 500 NETWORK");
    t3_reader_retry(r);
    assert_told(r, "connecting");
    fake_sleep(500); /* the end of the pause that was cut short is none */
    assert_told(r, "");
    fake_closed(T3_RPC_ERROR_NETWORK);
    assert_told(r, "lost 750 NETWORK");
    t3_reader_refuse(r, &old);
    t3_reader_refuse(r, &old);
    fake_sleep(750);
    assert_told(r, "refused VERSION");
    t3_reader_retry(r);
    t3_reader_refuse(r, &old);
    assert_told(r, "refused VERSION");
    t3_reader_retry(r);
    assert_told(r, "connecting");
    fake_closed(T3_RPC_ERROR_NETWORK);
    assert_told(r, "lost 500 NETWORK"); /* whoever retries has mended something */
    t3_reader_free(r);
    r = new_reader(NULL);
    t3_reader_refuse(r, &old); /* before the first event */
    assert_told(r, "refused VERSION");
    t3_reader_free(r);
    r = new_reader(NULL);
    t3_reader_refuse(r, &old);
    t3_reader_retry(r);
    assert_told(r, "connecting");
    t3_reader_free(r);
}

/* A failure that was not told is told, also when its pause is over; retry alone comes before it. */
static void test_retry_untold(void **state)
{
    const struct t3_rpc_error error = {.code = T3_RPC_ERROR_PROTOCOL, .message = "what"};
    struct t3_reader *r = live_reader();

    (void)state;
    t3_reader_lose(r, &error);
    fake_sleep(500);
    assert_told(r, "lost 500 PROTOCOL connecting");
    t3_reader_lose(r, &error);
    t3_reader_retry(r);
    assert_told(r, "");
    assert_int_equal(fake_connects, 3);
    t3_reader_free(r);
}

/* What cannot be used now is lost, as if the connection had broken, or not been made. */
static void test_lose(void **state)
{
    const struct t3_rpc_error error = {.code = T3_RPC_ERROR_PROTOCOL, .message = "what"};
    struct t3_reader *r = live_reader();

    (void)state;
    t3_reader_lose(r, &error);
    t3_reader_lose(r, &error);
    assert_null(fake);
    assert_told(r, "lost 500 PROTOCOL");
    fake_sleep(500);
    assert_int_equal(t3_reader_next(r, 0, &(struct t3_reader_event){0}), 1); /* connecting */
    t3_reader_lose(r, &error);                                               /* not yet */
    assert_told(r, "lost 750 PROTOCOL");
    assert_int_equal(fake_connects, 1);
    t3_reader_refuse(r, &error);
    t3_reader_lose(r, &error);
    assert_told(r, "refused PROTOCOL");
    t3_reader_free(r);
}

struct tokens {
    const char *token; /* NULL: there is none to be had */
    const char *message;
    int calls;
    const char *buffer; /* where it was to be written */
};

static int give_token(void *context, char token[T3_READER_TOKEN_BYTES],
                      char message[T3_RPC_MESSAGE_BYTES])
{
    struct tokens *tokens = context;

    tokens->calls++;
    tokens->buffer = token;
    if (tokens->token == NULL) {
        (void)snprintf(message, T3_RPC_MESSAGE_BYTES, "%s", tokens->message);
        return -1;
    }
    (void)snprintf(token, T3_READER_TOKEN_BYTES, "%s", tokens->token);
    return 0;
}

/* The token is asked for before each connection, and wiped after use. */
static void test_tokens(void **state)
{
    struct tokens tokens = {.token = "first"};
    struct t3_reader_options options;
    struct t3_reader_event event;
    struct t3_reader *r;

    (void)state;
    t3_reader_options_init(&options);
    options.token = give_token;
    options.context = &tokens;
    options.rpc.token = "not\nasked for";
    r = new_reader(&options);
    assert_int_equal(tokens.calls, 0);
    assert_told(r, "connecting");
    assert_int_equal(tokens.calls, 1);
    assert_string_equal(fake->token, "first");
    assert_ptr_equal(fake_token_pointer, tokens.buffer);
    assert_ptr_equal(wiped, tokens.buffer);
    tokens.token = "";
    fake_closed(T3_RPC_ERROR_AUTH);
    assert_told(r, "refused AUTH");
    t3_reader_retry(r);
    assert_told(r, "connecting");
    assert_string_equal(fake->token, "");
    assert_null(fake_token_pointer);
    tokens.token = NULL;
    tokens.message = "cannot read mac.token: it is not there";
    fake_closed(T3_RPC_ERROR_NETWORK);
    assert_told(r, "lost 500 NETWORK");
    wiped = NULL;
    fake_sleep(500);
    assert_int_equal(t3_reader_next(r, 0, &event), 1);
    assert_int_equal(event.state, T3_READER_CONNECTING);
    assert_int_equal(t3_reader_next(r, 0, &event), 1);
    assert_int_equal(event.state, T3_READER_REFUSED);
    assert_int_equal(event.error.code, T3_RPC_ERROR_AUTH);
    assert_string_equal(event.error.message, tokens.message);
    assert_ptr_equal(wiped, tokens.buffer);
    tokens.message = "";
    t3_reader_retry(r);
    assert_int_equal(t3_reader_next(r, 0, &event), 1);
    assert_int_equal(t3_reader_next(r, 0, &event), 1);
    assert_string_equal(event.error.message, "there is no token");
    assert_int_equal(fake_connects, 2); /* without a token there is no connection */
    t3_reader_free(r);
}

/* Without a callback it is that of the options, which is the reader's own, and wiped with it. */
static void test_fixed_token(void **state)
{
    char token[] = "fixed";
    char ca[] = "ca.pem";
    char agent[] = "agent";
    struct t3_reader_options options;
    struct t3_reader *r;
    const void *mine;

    (void)state;
    t3_reader_options_init(&options);
    options.rpc.token = token;
    options.rpc.ca_file = ca;
    options.rpc.user_agent = agent;
    options.rpc.ping_interval_ms = 77;
    r = new_reader(&options);
    memset(token, 'x', sizeof(token) - 1);
    memset(ca, 'x', sizeof(ca) - 1);
    memset(agent, 'x', sizeof(agent) - 1);
    assert_told(r, "connecting");
    assert_string_equal(fake->token, "fixed");
    assert_string_equal(fake_options.ca_file, "ca.pem");
    assert_string_equal(fake_options.user_agent, "agent");
    assert_int_equal(fake_options.ping_interval_ms, 77);
    mine = fake_token_pointer;
    t3_reader_free(r);
    assert_ptr_equal(wiped, mine);
}

/* What stands in the way of a connection is lost, and tried again; a token that makes no sense is
 * refused. CONNECTING is told before either. */
static void test_no_connection(void **state)
{
    struct t3_reader *r = new_reader(NULL);

    (void)state;
    (void)subscribe(r, SHELL);
    fake_connect = T3_RPC_ERROR_MEMORY;
    assert_told(r, "connecting lost 500 MEMORY");
    fake_sleep(500);
    assert_told(r, "connecting lost 750 MEMORY");
    fake_sleep(750);
    fake_connect = T3_RPC_ERROR_ARGUMENT; /* a token that no header can carry */
    assert_told(r, "connecting refused AUTH");
    fake_connect = T3_RPC_OK;
    t3_reader_retry(r);
    fake_subscribe = T3_RPC_ERROR_MEMORY;
    assert_told(r, "connecting lost 500 MEMORY");
    assert_null(fake);
    fake_subscribe = T3_RPC_OK;
    fake_without_fd = true;
    fake_sleep(500);
    assert_told(r, "connecting lost 750 MEMORY");
    assert_null(fake);
    fake_without_fd = false;
    fake_sleep(750);
    assert_told(r, "connecting");
    t3_reader_free(r);
}

/* The descriptor stays the same, whatever becomes of the connection. */
static void test_descriptor(void **state)
{
    struct t3_reader *r = new_reader(NULL);
    int fd = t3_reader_fd(r);

    (void)state;
    for (int i = 0; i < 5; i++) {
        assert_true(is_ready(r));
        assert_told(r, "connecting");
        fake_open();
        assert_true(is_ready(r));
        fake_closed(T3_RPC_ERROR_DEFECT);
        assert_int_equal(t3_reader_next(r, 0, &(struct t3_reader_event){0}), 1);
        assert_int_equal(t3_reader_next(r, 0, &(struct t3_reader_event){0}), 1);
        assert_false(is_ready(r));
        assert_int_equal(t3_reader_fd(r), fd);
        fake_sleep(5000);
    }
    t3_reader_free(r);
}

/* By the real clock: it waits out a pause, or as long as it was told to. */
static void test_waiting(void **state)
{
    struct t3_reader_options options;
    struct t3_reader_event event;
    struct t3_reader *r;
    uint64_t begin_ms;

    (void)state;
    fake_time_off = true;
    t3_reader_options_init(&options);
    options.initial_delay_ms = 3;
    options.max_delay_ms = 3;
    r = new_reader(&options);
    assert_int_equal(t3_reader_next(r, -1, &event), 1);
    assert_int_equal(event.state, T3_READER_CONNECTING);
    fake_connect = T3_RPC_ERROR_NETWORK;
    assert_int_equal(t3_reader_next(r, -1, &event), 1);
    assert_int_equal(event.state, T3_READER_LOST);
    fake_connect = T3_RPC_OK;
    assert_int_equal(t3_reader_next(r, -1, &event), 1);
    assert_int_equal(event.state, T3_READER_CONNECTING);
    begin_ms = t3_now_ms();
    assert_int_equal(t3_reader_next(r, 7, &event), 0);
    assert_true(t3_now_ms() >= begin_ms + 7);
    fake_closed(T3_RPC_ERROR_NETWORK);
    assert_int_equal(t3_reader_next(r, 1000000, &event), 1);
    assert_int_equal(event.state, T3_READER_LOST);
    t3_reader_free(r);
    fake_time_off = false;
}

/* Options and requests that make no sense are named, and leave nothing. */
static void test_arguments(void **state)
{
    static const char *const payloads[] = {"", "[]", "{", "{}{}", "{} x", "null", "{\"a\":}"};
    struct t3_reader_options options;
    struct t3_rpc_error error = {.code = T3_RPC_OK};
    struct t3_reader *r = NULL;
    uint64_t id = 77;

    (void)state;
    t3_reader_options_init(&options);
    options.multiplier = 0.5;
    assert_int_equal(t3_reader_new(URL, &options, &r, &error), T3_RPC_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "multiplier"));
    t3_reader_options_init(&options);
    options.rpc.depth_max = 0;
    assert_int_equal(t3_reader_new(URL, &options, &r, &error), T3_RPC_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "depth_max"));
    t3_reader_options_init(&options);
    options.rpc.token = "a\nb";
    assert_int_equal(t3_reader_new(URL, &options, &r, &error), T3_RPC_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "token"));
    assert_int_equal(t3_reader_new("ftp://peer", NULL, &r, &error), T3_RPC_ERROR_ARGUMENT);
    assert_int_equal(t3_reader_new("ftp://peer", NULL, &r, NULL), T3_RPC_ERROR_ARGUMENT);
    assert_null(r);
    t3_reader_free(NULL);
    t3_reader_options_init(&options);
    options.rpc.requests_max = 1;
    r = new_reader(&options);
    for (size_t i = 0; i < ARRAY_COUNT(payloads); i++) {
        assert_int_equal(t3_reader_subscribe(r, SHELL, payloads[i], &id, &error),
                         T3_RPC_ERROR_ARGUMENT);
    }
    assert_non_null(strstr(error.message, "payload"));
    assert_int_equal(t3_reader_subscribe(r, "", NULL, &id, &error), T3_RPC_ERROR_ARGUMENT);
    assert_told(r, "connecting");
    fake_subscribe = T3_RPC_ERROR_LIMIT;
    assert_int_equal(t3_reader_subscribe(r, SHELL, NULL, &id, &error), T3_RPC_ERROR_LIMIT);
    fake_subscribe = T3_RPC_OK;
    assert_int_equal(id, 77);
    assert_int_equal(t3_reader_subscribe(r, SHELL, NULL, &id, &error), T3_RPC_OK);
    assert_int_equal(t3_reader_subscribe(r, SHELL, NULL, &id, &error), T3_RPC_ERROR_LIMIT);
    assert_non_null(strstr(error.message, "requests_max"));
    t3_reader_unsubscribe(r, id);
    assert_int_equal(t3_reader_subscribe(r, SHELL, NULL, &id, &error), T3_RPC_OK);
    t3_reader_free(r);
}

/* Every state has a name. */
static void test_names(void **state)
{
    (void)state;
    assert_string_equal(t3_reader_state_name(T3_READER_CONNECTING), "connecting");
    assert_string_equal(t3_reader_state_name(T3_READER_CATCHING_UP), "catching up");
    assert_string_equal(t3_reader_state_name(T3_READER_LIVE), "live");
    assert_string_equal(t3_reader_state_name(T3_READER_LOST), "lost");
    assert_string_equal(t3_reader_state_name(T3_READER_REFUSED), "refused");
    assert_string_equal(t3_reader_state_name((enum t3_reader_state)77), "unknown");
}

/* Each allocation fails in its turn: an error, and nothing is left behind. */
static void test_memory(void **state)
{
    struct t3_reader_options options;
    struct t3_rpc_error error;
    struct t3_reader *r = NULL;
    int code = T3_RPC_ERROR_MEMORY;
    uint64_t id;

    (void)state;
    t3_reader_options_init(&options);
    options.rpc.token = "t";
    options.rpc.ca_file = "c";
    options.rpc.user_agent = "u";
    for (long i = 0; code != T3_RPC_OK; i++) {
        fault_countdown = i;
        code = t3_reader_new(URL, &options, &r, &error);
        fault_countdown = -1;
        assert_int_equal(code, i < 5 ? T3_RPC_ERROR_MEMORY : T3_RPC_OK);
        assert_true(code == T3_RPC_OK || error.code == T3_RPC_ERROR_MEMORY);
    }
    fault_countdown = 0;
    code = t3_reader_subscribe(r, SHELL, NULL, &id, &error);
    fault_countdown = -1;
    assert_int_equal(code, T3_RPC_ERROR_MEMORY);
    assert_told(r, "connecting");
    assert_int_equal(fake->request_count, 0);
    t3_reader_free(r);
}

/* So does each descriptor. */
static void test_descriptors_run_out(void **state)
{
    struct rlimit before;
    struct t3_rpc_error error;
    struct t3_reader *r = NULL;
    int lowest = dup(0);
    int code = T3_RPC_ERROR_MEMORY;

    (void)state;
    (void)close(lowest);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (int i = 0; code != T3_RPC_OK; i++) {
        struct rlimit few = {.rlim_cur = (rlim_t)(lowest + i), .rlim_max = before.rlim_max};

        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        code = t3_reader_new(URL, NULL, &r, &error);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_true(i < 3 ? code == T3_RPC_ERROR_MEMORY : i < 100);
        assert_true(code == T3_RPC_OK || strcmp(error.message, "no descriptor is left") == 0);
    }
    t3_reader_free(r);
    assert_int_equal(dup(0), lowest);
    (void)close(lowest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_happy_path),
        cmocka_unit_test(test_no_subscription),
        cmocka_unit_test(test_pauses),
        cmocka_unit_test(test_dice),
        cmocka_unit_test(test_pauses_begin_anew),
        cmocka_unit_test(test_ends_of_connections),
        cmocka_unit_test(test_ends_of_requests),
        cmocka_unit_test(test_done),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_broken_and_more),
        cmocka_unit_test(test_broken_not_asked),
        cmocka_unit_test(test_failed),
        cmocka_unit_test(test_subscribing_at_any_time),
        cmocka_unit_test(test_stale_acks),
        cmocka_unit_test(test_ack_fails),
        cmocka_unit_test(test_refuse_and_retry),
        cmocka_unit_test(test_retry_untold),
        cmocka_unit_test(test_lose),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_fixed_token),
        cmocka_unit_test(test_no_connection),
        cmocka_unit_test(test_descriptor),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_descriptors_run_out),
        cmocka_unit_test(test_at_random),
    };

    return UNIT_RUN(tests);
}
