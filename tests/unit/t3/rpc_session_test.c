/* Requests and events without a connection: what servers may and may not say of them, what is said
 * to servers, and that nothing grows. */
#include "unit/base/fault.h"

#include "base/buf.c"
#include "base/map.c"
#include "t3/rpc_session.c"

#include "unit/base/unit.h"

#define MAX 4

static struct t3_rpc_event event;
static struct t3_rpc_error error;

/* A request; sent to the server, too, where `sent`. */
static uint64_t ask(struct rpc_session *s, bool stream, bool sent)
{
    uint64_t id = 0;
    struct buf out;

    assert_int_equal(rpc_session_request(s, stream, SLICE("m"), SLICE("{}"), &id, &error),
                     T3_RPC_OK);
    buf_init(&out, 4096);
    while (sent && rpc_session_send(s, &out)) {
    }
    buf_finish(&out);
    return id;
}

/* What the server says; its code. The message is the session's, or it is freed. */
static int hear(struct rpc_session *s, const char *text)
{
    struct t3_frame frame;
    struct buf message;

    buf_init(&message, 4096);
    buf_append(&message, slice_of(text));
    assert_false(message.failed);
    assert_int_equal(t3_frame_read(buf_slice(&message), 100, &frame, &error), T3_RPC_OK);
    int code = rpc_session_take(s, &frame, &message, &error);

    if (code != T3_RPC_OK) {
        rpc_session_end(s, &error, code == T3_RPC_ERROR_DEFECT ? frame.json : SLICE(""), &message);
    }
    buf_finish(&message);
    return code;
}

static int hear_chunk(struct rpc_session *s, uint64_t id)
{
    char text[128];

    (void)snprintf(text, sizeof(text), "{\"_tag\":\"Chunk\",\"requestId\":%llu,\"values\":[1]}",
                   (unsigned long long)id);
    return hear(s, text);
}

static int hear_exit(struct rpc_session *s, uint64_t id)
{
    char text[128];

    (void)snprintf(text, sizeof(text),
                   "{\"_tag\":\"Exit\",\"requestId\":%llu,\"exit\":{\"_tag\":\"Success\"}}",
                   (unsigned long long)id);
    return hear(s, text);
}

static void assert_next(struct rpc_session *s, enum t3_rpc_event_kind kind, uint64_t id)
{
    assert_true(rpc_session_next(s, &event));
    assert_int_equal(event.kind, kind);
    assert_int_equal(event.id, id);
}

static void assert_nothing(struct rpc_session *s)
{
    assert_false(rpc_session_has_event(s));
    assert_false(rpc_session_next(s, &event));
    assert_int_equal(s->event_bytes, 0);
}

/* A chunk that comes, is given, and is acknowledged. */
static void pass_chunk(struct rpc_session *s, uint64_t id)
{
    assert_int_equal(hear_chunk(s, id), T3_RPC_OK);
    assert_next(s, T3_RPC_EVENT_CHUNK, id);
    assert_int_equal(rpc_session_ack(s, id, NULL), T3_RPC_OK);
}

/* What is to be sent, all of it. */
static void assert_sends(struct rpc_session *s, const char *text)
{
    char memory[1024];
    struct buf out;

    buf_init_fixed(&out, memory, sizeof(memory));
    while (rpc_session_send(s, &out)) {
    }
    memory[out.len] = '\0';
    assert_string_equal(memory, text);
}

static int begin(void **state)
{
    static struct rpc_session s;

    rpc_session_init(&s, MAX);
    *state = &s;
    return 0;
}

static int end(void **state)
{
    rpc_session_finish(*state);
    return 0;
}

/* A stream that ends by itself: chunk, acknowledgement, chunk, end. */
static void test_stream(void **state)
{
    struct rpc_session *s = *state;
    uint64_t id = ask(s, true, true);

    assert_int_equal(hear_chunk(s, id), T3_RPC_OK);
    assert_next(s, T3_RPC_EVENT_CHUNK, id);
    assert_string_equal(event.json, "[1]");
    assert_int_equal(rpc_session_ack(s, id, NULL), T3_RPC_OK);
    assert_sends(s, "{\"_tag\":\"Ack\",\"requestId\":\"1\"}");
    assert_sends(s, "");
    pass_chunk(s, id);
    assert_int_equal(hear_exit(s, id), T3_RPC_OK);
    assert_next(s, T3_RPC_EVENT_DONE, id);
    assert_string_equal(event.json, "null");
    assert_int_equal(event.len, 4);
    assert_nothing(s);
    assert_sends(s, "");
    assert_int_equal(s->requests.count, 0);
}

/* An end behind a chunk that the program still has: its acknowledgement is good, and not sent. */
static void test_end_behind_chunk(void **state)
{
    struct rpc_session *s = *state;
    uint64_t id = ask(s, true, true);

    assert_int_equal(hear_chunk(s, id), T3_RPC_OK);
    assert_int_equal(hear_exit(s, id), T3_RPC_OK);
    assert_next(s, T3_RPC_EVENT_CHUNK, id);
    assert_int_equal(rpc_session_ack(s, id, NULL), T3_RPC_OK);
    assert_sends(s, "");
    assert_next(s, T3_RPC_EVENT_DONE, id);
    assert_int_equal(rpc_session_ack(s, id, NULL), T3_RPC_ERROR_ARGUMENT);
}

/* What no server may say ends the connection, once. */
static void test_broken_protocol(void **state)
{
    struct rpc_session s;

    (void)state;
    for (int i = 0; i < 6; i++) {
        rpc_session_init(&s, MAX);
        uint64_t id = ask(&s, true, i != 0);
        int code = i == 0   ? hear_chunk(&s, id)     /* not sent */
                   : i == 1 ? hear_exit(&s, id + 1)  /* never made */
                   : i == 2 ? hear_chunk(&s, id + 1) /* likewise */
                            : T3_RPC_OK;

        if (i == 3) {
            assert_int_equal(hear_chunk(&s, id), T3_RPC_OK);
            code = hear_chunk(&s, id);
        } else if (i == 4) {
            assert_int_equal(hear_exit(&s, id), T3_RPC_OK);
            code = hear_exit(&s, id);
        } else if (i == 5) {
            assert_int_equal(hear_exit(&s, id), T3_RPC_OK);
            code = hear_chunk(&s, id);
        }
        assert_int_equal(code, T3_RPC_ERROR_PROTOCOL);
        assert_int_equal(hear_chunk(&s, id), T3_RPC_OK); /* nobody listens any more */
        rpc_session_end(&s, &(struct t3_rpc_error){.code = T3_RPC_ERROR_NETWORK}, SLICE(""), NULL);
        do {
            assert_true(rpc_session_next(&s, &event));
        } while (event.kind != T3_RPC_EVENT_CLOSED);
        assert_int_equal(event.error.code, T3_RPC_ERROR_PROTOCOL);
        assert_null(event.json);
        assert_nothing(&s);
        assert_int_equal(s.requests.count, 0);
        rpc_session_finish(&s);
    }
}

/* A chunk between the acknowledgement and its sending is too early, too. */
static void test_chunk_before_ack_is_sent(void **state)
{
    struct rpc_session *s = *state;
    uint64_t id = ask(s, true, true);

    pass_chunk(s, id);
    assert_int_equal(hear_chunk(s, id), T3_RPC_ERROR_PROTOCOL);
}

/* What is not sent yet is dropped; what is sent is interrupted once; what has come is not given. */
static void test_interrupt(void **state)
{
    struct rpc_session *s = *state;

    rpc_session_interrupt(s, ask(s, true, false));
    assert_sends(s, "");
    assert_int_equal(s->requests.count, 0);
    uint64_t id = ask(s, true, true);

    assert_int_equal(hear_chunk(s, id), T3_RPC_OK);
    rpc_session_interrupt(s, id);
    rpc_session_interrupt(s, id);
    assert_nothing(s);
    assert_sends(s, "{\"_tag\":\"Interrupt\",\"requestId\":\"2\"}");
    assert_int_equal(hear_chunk(s, id), T3_RPC_OK);
    assert_int_equal(hear_exit(s, id), T3_RPC_OK);
    assert_int_equal(hear_exit(s, id), T3_RPC_OK);
    assert_int_equal(hear_chunk(s, id), T3_RPC_OK);
    assert_nothing(s);
    assert_int_equal(s->requests.count, 0);
    rpc_session_interrupt(s, id);
}

/* An end that has come is not given either, and one with a given chunk is not acknowledged. */
static void test_interrupt_of_ended(void **state)
{
    struct rpc_session *s = *state;
    uint64_t id = ask(s, true, true);

    assert_int_equal(hear_chunk(s, id), T3_RPC_OK);
    assert_int_equal(hear_exit(s, id), T3_RPC_OK);
    rpc_session_interrupt(s, id);
    assert_nothing(s);
    assert_sends(s, "");
    id = ask(s, true, true);
    pass_chunk(s, id);
    rpc_session_interrupt(s, id);
    assert_sends(s, "{\"_tag\":\"Interrupt\",\"requestId\":\"2\"}");
}

/* After the end of the connection, too. */
static void test_interrupt_after_end(void **state)
{
    struct rpc_session *s = *state;
    uint64_t first = ask(s, true, true);
    uint64_t second = ask(s, true, true);

    assert_int_equal(hear_chunk(s, first), T3_RPC_OK);
    assert_int_equal(hear_chunk(s, second), T3_RPC_OK);
    rpc_session_end(s, &(struct t3_rpc_error){.code = T3_RPC_ERROR_CLOSED}, SLICE(""), NULL);
    rpc_session_interrupt(s, first);
    assert_next(s, T3_RPC_EVENT_CHUNK, second);
    assert_int_equal(rpc_session_ack(s, second, NULL), T3_RPC_ERROR_CLOSED);
    assert_int_equal(rpc_session_request(s, true, SLICE("m"), SLICE("{}"), &first, NULL),
                     T3_RPC_ERROR_CLOSED);
    assert_next(s, T3_RPC_EVENT_CLOSED, 0);
    assert_nothing(s);
}

/* A call that is answered by a stream fails alone: the server is told to stop, and may take its
 * time. */
static void test_call_of_stream(void **state)
{
    struct rpc_session s;

    (void)state;
    for (int i = 0; i < 3; i++) {
        rpc_session_init(&s, MAX);
        uint64_t id = ask(&s, false, true);

        assert_int_equal(hear_chunk(&s, id), T3_RPC_OK);
        if (i == 0) { /* the exit comes before the program looks */
            assert_sends(&s, "{\"_tag\":\"Interrupt\",\"requestId\":\"1\"}");
            assert_int_equal(hear_chunk(&s, id), T3_RPC_OK);
            assert_int_equal(hear_exit(&s, id), T3_RPC_OK);
            assert_next(&s, T3_RPC_EVENT_ERROR, id);
        } else if (i == 1) { /* and after */
            assert_next(&s, T3_RPC_EVENT_ERROR, id);
            assert_sends(&s, "{\"_tag\":\"Interrupt\",\"requestId\":\"1\"}");
            assert_int_equal(hear_exit(&s, id), T3_RPC_OK);
        } else { /* the program has lost interest */
            rpc_session_interrupt(&s, id);
            assert_sends(&s, "{\"_tag\":\"Interrupt\",\"requestId\":\"1\"}");
            assert_int_equal(hear_exit(&s, id), T3_RPC_OK);
        }
        if (i < 2) {
            assert_int_equal(event.error.code, T3_RPC_ERROR_PROTOCOL);
            assert_null(event.json);
        }
        assert_nothing(&s);
        assert_int_equal(s.requests.count, 0);
        assert_int_equal(s.interrupted, 0);
        rpc_session_finish(&s);
    }
}

/* So many under way, and as many that the server has not let go of. */
static void test_limits(void **state)
{
    struct rpc_session *s = *state;
    uint64_t id;

    for (int i = 0; i < MAX; i++) {
        (void)ask(s, true, true);
    }
    assert_int_equal(rpc_session_request(s, true, SLICE("m"), SLICE("{}"), &id, &error),
                     T3_RPC_ERROR_LIMIT);
    assert_non_null(strstr(error.message, "4 requests are under way"));
    for (uint64_t i = 1; i <= MAX; i++) {
        rpc_session_interrupt(s, i);
    }
    assert_int_equal(rpc_session_request(s, true, SLICE("m"), SLICE("{}"), &id, &error),
                     T3_RPC_ERROR_LIMIT);
    assert_non_null(strstr(error.message, "let go of 4 requests"));
    assert_int_equal(hear_exit(s, 1), T3_RPC_OK);
    id = ask(s, true, true);
    assert_int_equal(id, MAX + 1);
    assert_int_equal(hear_exit(s, id), T3_RPC_OK);
    assert_int_equal(s->requests.count, MAX); /* until the program has taken the end */
    assert_next(s, T3_RPC_EVENT_DONE, id);
    assert_int_equal(s->requests.count, MAX - 1);
}

/* Requests take turns, so that none of them keeps another from being sent. */
static void test_turns(void **state)
{
    struct rpc_session *s = *state;
    uint64_t first = ask(s, true, true);
    uint64_t second = ask(s, true, true);

    assert_int_equal(hear_chunk(s, second), T3_RPC_OK);
    assert_int_equal(hear_chunk(s, first), T3_RPC_OK);
    assert_next(s, T3_RPC_EVENT_CHUNK, second);
    assert_int_equal(rpc_session_ack(s, second, NULL), T3_RPC_OK);
    assert_next(s, T3_RPC_EVENT_CHUNK, first);
    assert_int_equal(rpc_session_ack(s, first, NULL), T3_RPC_OK);
    assert_sends(s, "{\"_tag\":\"Ack\",\"requestId\":\"2\"}{\"_tag\":\"Ack\",\"requestId\":\"1\"}");
}

/* What was interrupted before a close is told, and no more. */
static void test_interrupt_and_close(void **state)
{
    struct rpc_session *s = *state;
    uint64_t first = ask(s, true, true);
    uint64_t second = ask(s, true, true);

    (void)ask(s, true, false);
    rpc_session_interrupt(s, first);
    rpc_session_close(s);
    rpc_session_interrupt(s, second);
    assert_sends(s, "{\"_tag\":\"Interrupt\",\"requestId\":\"1\"}");
}

/* After a close nothing is sent, and nothing that comes is taken. */
static void test_close(void **state)
{
    struct rpc_session *s = *state;
    uint64_t id = ask(s, true, true);

    (void)ask(s, true, false);
    rpc_session_close(s);
    assert_sends(s, "");
    assert_int_equal(hear_chunk(s, id), T3_RPC_OK);
    assert_int_equal(hear(s, "{\"_tag\":\"Defect\",\"defect\":1}"), T3_RPC_OK);
    assert_nothing(s);
    rpc_session_open(s);
    assert_nothing(s);
}

/* A defect is the last event, and its text is there. */
static void test_defect(void **state)
{
    struct rpc_session *s = *state;

    rpc_session_open(s);
    (void)ask(s, true, true);
    assert_int_equal(hear(s, "{\"_tag\":\"Defect\",\"defect\":{\"a\":1}}"), T3_RPC_ERROR_DEFECT);
    assert_next(s, T3_RPC_EVENT_OPEN, 0);
    assert_next(s, T3_RPC_EVENT_CLOSED, 0);
    assert_int_equal(event.error.code, T3_RPC_ERROR_DEFECT);
    assert_string_equal(event.json, "{\"a\":1}");
    struct rpc_session zeroed = {0};

    rpc_session_finish(&zeroed);
}

/* A request that finds no memory leaves nothing behind, and the next one has its id. */
static void test_no_memory(void **state)
{
    struct rpc_session *s = *state;
    uint64_t id = 0;
    int code = T3_RPC_ERROR_MEMORY;

    for (long i = 0; code != T3_RPC_OK; i++) {
        fault_countdown = i;
        code = rpc_session_request(s, true, SLICE("m"), SLICE("{}"), &id, &error);
        fault_countdown = -1;
        assert_true(code == T3_RPC_OK || (code == T3_RPC_ERROR_MEMORY && id == 0 && i < 10));
        assert_int_equal(s->requests.count, code == T3_RPC_OK);
    }
    assert_int_equal(id, 1);
}

/* A model: what a server that keeps the rules, and a program that does not, can do in any order
 * never ends a connection, and never gives more than one chunk that is not acknowledged. */
static void test_any_order(void **state)
{
    enum {
        IDS = 4000
    };
    static unsigned char running[IDS]; /* 0 none, 1 may send a chunk, 2 waits, 3 ended */
    struct rpc_session s;
    uint32_t random = 12345;
    struct buf out;

    (void)state;
    rpc_session_init(&s, MAX);
    buf_init(&out, 1 << 20);
    for (int i = 0; i < 100000 && s.id_last < IDS - 2; i++) {
        random = random * 1664525 + 1013904223;
        uint64_t id = s.id_last > 16 ? s.id_last - (random >> 8) % 16 : 1 + (random >> 8) % 16;
        unsigned what = random >> 24 & 7;

        if (what == 0) {
            (void)rpc_session_request(&s, (random & 0x800000) != 0, SLICE("m"), SLICE("{}"), &id,
                                      NULL);
        } else if (what == 1 && running[id] == 1) {
            assert_int_equal(hear_chunk(&s, id), T3_RPC_OK);
            running[id] = 2;
        } else if (what == 2 && running[id] == 1) {
            assert_int_equal(hear_exit(&s, id), T3_RPC_OK);
            running[id] = 3;
        } else if (what == 3) {
            rpc_session_interrupt(&s, id);
        } else if (what == 4) {
            (void)rpc_session_ack(&s, id, NULL);
        } else if (what == 5) {
            (void)rpc_session_next(&s, &event);
        } else {
            buf_clear(&out);
            if (rpc_session_send(&s, &out)) {
                struct t3_frame frame;

                buf_append_char(&out, '\0');
                assert_int_equal(
                    t3_frame_read((struct slice){out.ptr, out.len - 1}, 9, &frame, &error),
                    T3_RPC_OK);
                const char *at = strstr(out.ptr, "d\":\"");

                assert_non_null(at);
                id = strtoull(at + 4, NULL, 10);
                if (strstr(out.ptr, "Interrupt") != NULL && running[id] != 3) {
                    assert_int_equal(hear_exit(&s, id), T3_RPC_OK);
                    running[id] = 3;
                } else if (running[id] == 0 || running[id] == 2) {
                    running[id] = 1;
                }
            }
        }
        assert_true(s.requests.count <= (size_t)2 * MAX);
        assert_true(s.event_bytes <= (size_t)2 * MAX * 2 * 256);
    }
    assert_true(s.id_last > 1000);
    assert_false(s.ended);
    buf_finish(&out);
    rpc_session_finish(&s);
}

#define SESSION_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SESSION_TEST(test_stream),
        SESSION_TEST(test_end_behind_chunk),
        cmocka_unit_test(test_broken_protocol),
        SESSION_TEST(test_chunk_before_ack_is_sent),
        SESSION_TEST(test_interrupt),
        SESSION_TEST(test_interrupt_of_ended),
        SESSION_TEST(test_interrupt_after_end),
        cmocka_unit_test(test_call_of_stream),
        SESSION_TEST(test_limits),
        SESSION_TEST(test_turns),
        SESSION_TEST(test_interrupt_and_close),
        SESSION_TEST(test_close),
        SESSION_TEST(test_defect),
        SESSION_TEST(test_no_memory),
        cmocka_unit_test(test_any_order),
    };

    return UNIT_RUN(tests);
}
