/* Requests and events, over a connection to a server that is written here byte by byte. */
#include "unit/base/fault.h"

#include "t3/rpc.c"

#include "unit/t3/rpc_rig.h"

/* A stream and a call, from the request to the end. */
static void test_talk(void **state)
{
    struct rig rig;
    uint64_t id;

    (void)state;
    rig_open(&rig, NULL);
    assert_int_equal(t3_rpc_subscribe(rig.rpc, "a.b", NULL, &id, NULL), T3_RPC_OK);
    assert_int_equal(id, 1);
    ws_peer_expect(&rig.peer, REQUEST("1", "a.b"));
    ws_peer_text(&rig.peer, "{\"_tag\":\"Chunk\",\"requestId\":\"1\",\"values\":[1, {\"a\":[2]}]}");
    rig_next(&rig, T3_RPC_EVENT_CHUNK);
    assert_int_equal(rig.event.id, 1);
    assert_string_equal(rig.event.json, "[1, {\"a\":[2]}]");
    assert_int_equal(rig.event.len, strlen(rig.event.json));
    assert_int_equal(t3_rpc_ack(rig.rpc, 1, NULL), T3_RPC_OK);
    ws_peer_expect(&rig.peer, "{\"_tag\":\"Ack\",\"requestId\":\"1\"}");
    assert_int_equal(t3_rpc_call(rig.rpc, "c", "{}", &id, NULL), T3_RPC_OK);
    ws_peer_expect(&rig.peer, REQUEST("2", "c"));
    ws_peer_text(
        &rig.peer,
        "{\"_tag\":\"Exit\",\"requestId\":\"2\",\"exit\":{\"_tag\":\"Success\",\"value\":7}}");
    rig_next(&rig, T3_RPC_EVENT_DONE);
    assert_string_equal(rig.event.json, "7");
    ws_peer_text(&rig.peer, "{\"_tag\":\"Exit\",\"requestId\":1,\"exit\":{\"_tag\":\"Success\"}}");
    rig_next(&rig, T3_RPC_EVENT_DONE);
    assert_int_equal(rig.event.id, 1);
    assert_string_equal(rig.event.json, "null");
    t3_rpc_close(rig.rpc);
    ws_peer_expect_close(&rig.peer, 1000);
    ws_peer_frame(&rig.peer, 0x88, "\x03\xe8", 2);
    rig_ends(&rig, T3_RPC_ERROR_CLOSED, "was closed");
    rig_finish(&rig);
}

/* --------------------------------------------------------------------------------------- limits */

static void test_too_long(void **state)
{
    struct rig rig = {0};
    struct t3_rpc_options options = quiet();

    (void)state;
    options.message_bytes_max = 16;
    rig_open(&rig, &options);
    ws_peer_text(&rig.peer, "{\"_tag\":\"Pong\" }");
    ws_peer_text(&rig.peer, "{\"_tag\":\"Pong\"  }");
    ws_peer_expect_close(&rig.peer, 1009);
    rig_ends(&rig, T3_RPC_ERROR_LIMIT, "longer than the 16 bytes that one may have");
    rig_finish(&rig);
}

static void test_too_deep(void **state)
{
    struct rig rig = {0};
    struct t3_rpc_options options = quiet();

    (void)state;
    options.depth_max = 3;
    rig_subscribe(&rig, &options);
    ws_peer_text(&rig.peer, CHUNK("1", "[[]]"));
    rig_next(&rig, T3_RPC_EVENT_CHUNK);
    ws_peer_text(&rig.peer, CHUNK("1", "[[[]]]"));
    rig_ends(&rig, T3_RPC_ERROR_LIMIT, "nested deeper than 3");
    rig_finish(&rig);
}

/* A program that takes nothing is not sent more than it has room for; what waits comes later. Pings
 * go all the while, and that answers stand unread is no fault of the server's. */
static void test_full(void **state)
{
    struct rig rig = {0};
    struct t3_rpc_options options = quiet();
    uint64_t id;

    (void)state;
    options.message_bytes_max = 128;
    options.ping_interval_ms = 20;
    options.pings_missed_max = 1000;
    rig_connect(&rig, &options);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(t3_rpc_call(rig.rpc, "m", NULL, &id, NULL), T3_RPC_OK);
    }
    ws_peer_open(&rig.peer);
    for (int i = 0; i < 4;) {
        assert_true(ws_peer_read(&rig.peer));
        i += strstr(rig.peer.frame.ptr, "Request") != NULL;
    }
    ws_peer_text(&rig.peer, DONE("1", "1"));
    ws_peer_text(&rig.peer, DONE("2", "2"));
    ws_peer_text(&rig.peer, DONE("3", "3"));
    ws_peer_text(&rig.peer, DONE("4", "4"));
    for (int i = 0; i < 10; i++) {
        ws_peer_expect(&rig.peer, "{\"_tag\":\"Ping\"}");
    }
    lock(rig.rpc);
    assert_true(rig.rpc->session.event_bytes >= 128);
    assert_true(rig.rpc->session.event_bytes < 256);
    unlock(rig.rpc);
    rig_next(&rig, T3_RPC_EVENT_OPEN);
    for (uint64_t i = 1; i <= 4; i++) {
        rig_next(&rig, T3_RPC_EVENT_DONE);
        assert_int_equal(rig.event.id, i);
    }
    rig_finish(&rig);
}

/* A dead server is not told from a program that does not take what it sent, until it has. */
static void test_full_and_silent(void **state)
{
    struct rig rig = {0};
    struct t3_rpc_options options = quiet();
    uint64_t id;

    (void)state;
    options.message_bytes_max = sizeof(DONE("1", "1")) - 1;
    options.ping_interval_ms = 1;
    options.pings_missed_max = 1000;
    rig_connect(&rig, &options);
    assert_int_equal(t3_rpc_call(rig.rpc, "m", NULL, &id, NULL), T3_RPC_OK);
    ws_peer_open(&rig.peer);
    do { /* on a slow machine pings come first */
        assert_true(ws_peer_read(&rig.peer));
    } while (strcmp(rig.peer.frame.ptr, "{\"_tag\":\"Ping\"}") == 0);
    assert_string_equal(rig.peer.frame.ptr, REQUEST("1", "m"));
    ws_peer_text(&rig.peer, DONE("1", "1"));
    for (int i = 0; i < 1100; i++) {
        ws_peer_expect(&rig.peer, "{\"_tag\":\"Ping\"}");
    }
    rig_next(&rig, T3_RPC_EVENT_OPEN);
    rig_next(&rig, T3_RPC_EVENT_DONE);
    rig_ends(&rig, T3_RPC_ERROR_TIMEOUT, "does not answer any more");
    rig_finish(&rig);
}

/* Wrong options and arguments are refused with a sentence. */
static void test_arguments(void **state)
{
    static const struct {
        size_t offset;
        int value;
        const char *says;
    } cases[] = {
        {offsetof(struct t3_rpc_options, connect_timeout_ms), 0, "connect_timeout_ms"},
        {offsetof(struct t3_rpc_options, ping_interval_ms), -1, "ping_interval_ms"},
        {offsetof(struct t3_rpc_options, pings_missed_max), 0, "pings_missed_max"},
        {offsetof(struct t3_rpc_options, depth_max), 0, "depth_max"},
        {offsetof(struct t3_rpc_options, depth_max), 1001, "depth_max"},
        {offsetof(struct t3_rpc_options, requests_max), 0, "requests_max"},
        {offsetof(struct t3_rpc_options, requests_max), (int)T3_REQUESTS_MAX + 1, "requests_max"},
    };
    static const char *const tokens[] = {"", "a\nb", "a\x7f", "\xc3\xa4"};
    struct t3_rpc_options options;
    struct t3_rpc_error error;
    struct t3_rpc *rpc = NULL;

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        options = quiet();
        memcpy((char *)&options + cases[i].offset, &cases[i].value, sizeof(int));
        assert_int_equal(t3_rpc_connect("ws://h", &options, &rpc, &error), T3_RPC_ERROR_ARGUMENT);
        assert_non_null(strstr(error.message, cases[i].says));
    }
    options = quiet();
    options.message_bytes_max = 0;
    assert_int_equal(t3_rpc_connect("ws://h", &options, &rpc, &error), T3_RPC_ERROR_ARGUMENT);
    options.message_bytes_max = SIZE_MAX;
    assert_int_equal(t3_rpc_connect("ws://h", &options, &rpc, &error), T3_RPC_ERROR_ARGUMENT);
    for (size_t i = 0; i < ARRAY_COUNT(tokens); i++) {
        options = quiet();
        options.token = tokens[i];
        assert_int_equal(t3_rpc_connect("ws://h", &options, &rpc, &error), T3_RPC_ERROR_ARGUMENT);
        assert_non_null(strstr(error.message, "token"));
    }
    char token[T3_TOKEN_BYTES_MAX + 2];

    memset(token, 't', sizeof(token) - 1);
    token[sizeof(token) - 1] = '\0';
    options = quiet();
    options.token = token;
    assert_int_equal(t3_rpc_connect("ws://h", &options, &rpc, NULL), T3_RPC_ERROR_ARGUMENT);
    token[T3_AGENT_BYTES_MAX + 1] = '\0';
    options = quiet();
    options.user_agent = token;
    assert_int_equal(t3_rpc_connect("ws://h", &options, &rpc, NULL), T3_RPC_ERROR_ARGUMENT);
    options.user_agent = "a\rb";
    assert_int_equal(t3_rpc_connect("ws://h", &options, &rpc, NULL), T3_RPC_ERROR_ARGUMENT);
    assert_int_equal(t3_rpc_connect("ftp://h", NULL, &rpc, NULL), T3_RPC_ERROR_ARGUMENT);
    assert_null(rpc);
}

/* Without memory nothing is begun, and nothing left behind. */
static void test_no_memory(void **state)
{
    struct t3_rpc_options options = quiet();
    struct t3_rpc *rpc = NULL;
    int code = T3_RPC_ERROR_MEMORY;

    (void)state;
    options.token = "t";
    options.ca_file = "f";
    for (long i = 0; code != T3_RPC_OK; i++) {
        fault_countdown = i;
        code = t3_rpc_connect("ws://127.0.0.1:1", &options, &rpc, NULL);
        fault_countdown = -1;
        assert_true(code == T3_RPC_OK || (code == T3_RPC_ERROR_MEMORY && rpc == NULL && i < 10));
    }
    t3_rpc_free(rpc);
}

/* Methods and payloads, too; nothing of them is sent. */
static void test_bad_requests(void **state)
{
    static const char *const payloads[] = {"", "{", "[]", "null", "{} {}", "{\"a\":\"\xff\"}"};
    char method[T3_METHOD_BYTES_MAX + 2];
    struct rig rig = {0};
    struct t3_rpc_error error;
    uint64_t id = 77;

    (void)state;
    memset(method, 'm', sizeof(method) - 1);
    method[sizeof(method) - 1] = '\0';
    rig_open(&rig, NULL);
    for (size_t i = 0; i < ARRAY_COUNT(payloads); i++) {
        assert_int_equal(t3_rpc_call(rig.rpc, "m", payloads[i], &id, &error),
                         T3_RPC_ERROR_ARGUMENT);
        assert_non_null(strstr(error.message, "the payload is "));
    }
    assert_int_equal(t3_rpc_call(rig.rpc, "", NULL, &id, NULL), T3_RPC_ERROR_ARGUMENT);
    assert_int_equal(t3_rpc_call(rig.rpc, method, NULL, &id, NULL), T3_RPC_ERROR_ARGUMENT);
    assert_int_equal(id, 77);
    assert_int_equal(t3_rpc_call(rig.rpc, "a\"\\\n\xff", " {\"b\": 1} ", &id, NULL), T3_RPC_OK);
    ws_peer_expect(&rig.peer,
                   "{\"_tag\":\"Request\",\"id\":\"1\",\"tag\":\"a\\\"\\\\\\n\xef\xbf\xbd\","
                   "\"payload\":{\"b\": 1},\"headers\":[]}");
    rig_finish(&rig);
}

/* ------------------------------------------------------------------------------------- requests */

/* One acknowledgement for each chunk, when the program gives it. */
static void test_ack(void **state)
{
    struct rig rig = {0};
    uint64_t id;

    (void)state;
    rig_subscribe(&rig, NULL);
    assert_int_equal(t3_rpc_ack(rig.rpc, 1, NULL), T3_RPC_ERROR_ARGUMENT);
    for (int i = 0; i < 3; i++) {
        ws_peer_text(&rig.peer, CHUNK("1", "[1,2]"));
        rig_next(&rig, T3_RPC_EVENT_CHUNK);
        assert_int_equal(t3_rpc_ack(rig.rpc, 1, NULL), T3_RPC_OK);
        assert_int_equal(t3_rpc_ack(rig.rpc, 1, NULL), T3_RPC_ERROR_ARGUMENT);
        ws_peer_expect(&rig.peer, ACK("1"));
    }
    assert_int_equal(t3_rpc_call(rig.rpc, "m", NULL, &id, NULL), T3_RPC_OK);
    ws_peer_expect(&rig.peer, REQUEST("2", "m"));
    rig_finish(&rig);
}

/* A server that does not wait for it breaks the protocol. */
static void test_chunk_too_early(void **state)
{
    struct rig rig = {0};

    (void)state;
    rig_subscribe(&rig, NULL);
    ws_peer_text(&rig.peer, CHUNK("1", "[1]"));
    ws_peer_text(&rig.peer, CHUNK("1", "[2]"));
    rig_next(&rig, T3_RPC_EVENT_CHUNK);
    rig_ends(&rig, T3_RPC_ERROR_PROTOCOL, "before the last one was acknowledged");
    rig_finish(&rig);
}

/* While a chunk is not acknowledged: the server is told, what was on its way is not given, and
 * nothing is acknowledged. */
static void test_interrupt(void **state)
{
    struct rig rig = {0};
    uint64_t id;

    (void)state;
    rig_subscribe(&rig, NULL);
    ws_peer_text(&rig.peer, CHUNK("1", "[1]"));
    rig_next(&rig, T3_RPC_EVENT_CHUNK);
    t3_rpc_interrupt(rig.rpc, 1);
    t3_rpc_interrupt(rig.rpc, 1);
    t3_rpc_interrupt(rig.rpc, 99);
    assert_int_equal(t3_rpc_ack(rig.rpc, 1, NULL), T3_RPC_ERROR_ARGUMENT);
    ws_peer_expect(&rig.peer, INTERRUPT("1"));
    ws_peer_text(&rig.peer, CHUNK("1", "[2]"));
    ws_peer_text(&rig.peer, STOPPED("1"));
    ws_peer_text(&rig.peer, STOPPED("1"));
    assert_int_equal(t3_rpc_call(rig.rpc, "m", NULL, &id, NULL), T3_RPC_OK);
    ws_peer_expect(&rig.peer, REQUEST("2", "m"));
    ws_peer_text(&rig.peer, DONE("2", "[]"));
    rig_next(&rig, T3_RPC_EVENT_DONE);
    assert_int_equal(rig.event.id, 2);
    rig_finish(&rig);
}

/* A connection that its server closes is over: nothing connects again by itself, neither before
 * that is taken nor after. What comes next to the server is another one's. */
static void test_no_second_dial(void **state)
{
    struct rig rig = {0};

    (void)state;
    rig_open(&rig, NULL);
    ws_peer_frame(&rig.peer, 0x88, "\x03\xe9", 2);
    ws_peer_expect_close(&rig.peer, 1001);
    assert_false(ws_peer_read(&rig.peer));
    rig_ends(&rig, T3_RPC_ERROR_CLOSED, "");
    assert_int_equal(t3_rpc_next(rig.rpc, 20, &rig.event), 0);

    struct pollfd dialled = {.fd = rig.peer.listening, .events = POLLIN};

    assert_int_equal(poll(&dialled, 1, 0), 0);
    t3_rpc_free(rig.rpc);
    assert_int_equal(poll(&dialled, 1, 0), 0);
    ws_peer_finish(&rig.peer);
}

/* ---------------------------------------------------------------------------------- the program */

/* The descriptor is readable while there is an event, and only then. */
static void test_fd(void **state)
{
    struct rig rig = {0};
    struct pollfd polled = {.events = POLLIN};

    (void)state;
    rig_connect(&rig, NULL);
    polled.fd = t3_rpc_fd(rig.rpc);
    assert_int_equal(t3_rpc_next(rig.rpc, 0, &rig.event), 0);
    assert_int_equal(t3_rpc_next(rig.rpc, 1, &rig.event), 0);
    assert_int_equal(poll(&polled, 1, 0), 0);
    ws_peer_open(&rig.peer);
    assert_int_equal(poll(&polled, 1, -1), 1);
    assert_int_equal(t3_rpc_next(rig.rpc, 0, &rig.event), 1);
    assert_int_equal(poll(&polled, 1, 0), 0);
    ws_peer_drop(&rig.peer);
    assert_int_equal(poll(&polled, 1, -1), 1);
    rig_ends(&rig, T3_RPC_ERROR_NETWORK, "broke");
    assert_int_equal(poll(&polled, 1, 0), 0);
    rig_finish(&rig);
}

static void *ask(void *context)
{
    struct t3_rpc *rpc = context;

    for (int i = 0; i < 50; i++) {
        uint64_t id;

        if (t3_rpc_subscribe(rpc, "m", NULL, &id, NULL) == T3_RPC_OK) {
            t3_rpc_interrupt(rpc, id);
        }
    }
    return NULL;
}

/* Many threads ask and drop, and the server reads as it likes. */
static void test_threads(void **state)
{
    struct rig rig = {0};
    pthread_t threads[4];

    (void)state;
    rig_open(&rig, NULL);
    for (size_t i = 0; i < ARRAY_COUNT(threads); i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, ask, rig.rpc), 0);
    }
    for (size_t i = 0; i < ARRAY_COUNT(threads); i++) {
        (void)pthread_join(threads[i], NULL);
    }
    t3_rpc_close(rig.rpc);
    do {
        assert_true(ws_peer_read(&rig.peer));
    } while (rig.peer.op != 8);
    rig_finish(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_talk),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_too_deep),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_full_and_silent),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_bad_requests),
        cmocka_unit_test(test_ack),
        cmocka_unit_test(test_chunk_too_early),
        cmocka_unit_test(test_interrupt),
        cmocka_unit_test(test_no_second_dial),
        cmocka_unit_test(test_fd),
        cmocka_unit_test(test_threads),
    };

    return UNIT_RUN(tests);
}
