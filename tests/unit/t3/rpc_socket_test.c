/* Connections to servers that are written here byte by byte, good ones and hostile ones. */
#include "base/attr.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

/* While it is set, the socket's buffers find no memory. */
static atomic_bool out_of_memory;

static void *scarce_realloc(void *old, size_t size)
{
    return atomic_load(&out_of_memory) ? NULL : realloc(old, size);
}

#define realloc scarce_realloc
#include "base/buf.c"
#undef realloc
#include "t3/rpc_socket.c"

#include "base/limits.h"
#include "base/version.h"
#include "unit/serve/certificate.h"
#include "unit/t3/fake_names.h"
#include "unit/t3/rpc_rig.h"

/* While it is set, the threads of connections, and so libwebsockets, get no eventfd. */
static atomic_bool no_eventfd;

/* Instead of libc's, for libraries, too. */
int eventfd(unsigned count, int flags)
{
    if (atomic_load(&no_eventfd) && gettid() != getpid()) {
        errno = EMFILE;
        return -1;
    }
    return (int)syscall(SYS_eventfd2, count, flags);
}

/* ---------------------------------------------------------------------------------- the upgrade */

static void assert_line(const struct rig *rig, const char *line)
{
    if (strstr(rig->peer.head, line) == NULL) {
        print_error("no %s in:\n%s\n", line, rig->peer.head);
    }
    assert_non_null(strstr(rig->peer.head, line));
}

/* The request says path and query, host, token and agent; it offers neither extension nor
 * subprotocol and has no cookie. A proxy of the environment is not used. */
static void test_request_head(void **state)
{
    struct rig rig = {0};
    char url[96];
    char line[64];
    struct t3_rpc_options options = quiet();

    (void)state;
    assert_int_equal(setenv("http_proxy", "http://127.0.0.1:1", 1), 0);
    options.token = "secret-token";
    ws_peer_init(&rig.peer, NULL);
    (void)snprintf(url, sizeof(url), "http://one.test:%u/a/ws?b=c", rig.peer.port);
    assert_int_equal(t3_rpc_connect(url, &options, &rig.rpc, NULL), T3_RPC_OK);
    ws_peer_open(&rig.peer);
    rig_next(&rig, T3_RPC_EVENT_OPEN);
    assert_line(&rig, "GET /a/ws?b=c&orchestrationProtocol=2 HTTP/1.1\r\n");
    (void)snprintf(line, sizeof(line), "\r\nHost: one.test:%u\r\n", rig.peer.port);
    assert_line(&rig, line);
    assert_line(&rig, "\r\nauthorization: Bearer secret-token\r\n");
    assert_line(&rig, "\r\nuser-agent: arbe/" ARBE_VERSION "\r\n");
    assert_line(&rig, "\r\nSec-WebSocket-Version: 13\r\n");
    assert_null(strcasestr(rig.peer.head, "extensions"));
    assert_null(strcasestr(rig.peer.head, "sec-websocket-protocol"));
    assert_null(strcasestr(rig.peer.head, "cookie"));
    rig_finish(&rig);
    assert_int_equal(unsetenv("http_proxy"), 0);
}

/* The longest URL and token that are taken reach the server whole. */
static void test_longest_head(void **state)
{
    struct rig rig = {0};
    char url[T3_URL_BYTES_MAX + 1];
    char token[T3_TOKEN_BYTES_MAX + 1];
    char agent[T3_AGENT_BYTES_MAX + 1];
    struct t3_rpc_options options = quiet();
    int len;

    (void)state;
    memset(token, 't', sizeof(token) - 1);
    token[sizeof(token) - 1] = '\0';
    options.token = token;
    memset(agent, 'a', sizeof(agent) - 1);
    agent[sizeof(agent) - 1] = '\0';
    options.user_agent = agent;
    ws_peer_init(&rig.peer, NULL);
    len = snprintf(url, sizeof(url), "ws://127.0.0.1:%u/", rig.peer.port);
    memset(url + len, 'p', sizeof(url) - (size_t)len);
    url[sizeof(url) - 1] = '\0';
    assert_int_equal(t3_rpc_connect(url, &options, &rig.rpc, NULL), T3_RPC_OK);
    ws_peer_open(&rig.peer);
    rig_next(&rig, T3_RPC_EVENT_OPEN);
    assert_line(&rig, "pppp?orchestrationProtocol=2 HTTP/1.1\r\n");
    assert_line(&rig, token);
    assert_line(&rig, agent);
    rig_finish(&rig);
}

/* Each answer that is no upgrade has its code, and the token is never repeated. */
static void test_refusals(void **state)
{
    static const struct {
        const char *answer;
        enum t3_rpc_code code;
        int status;
        const char *says;
    } cases[] = {
        {"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}", T3_RPC_ERROR_AUTH, 401,
         "does not accept the token (HTTP 401)"},
        {"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", T3_RPC_ERROR_AUTH, 403, "HTTP 403"},
        {"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n", T3_RPC_ERROR_VERSION, 426,
         "another orchestration protocol"},
        {"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", T3_RPC_ERROR_HTTP, 500, "HTTP 500"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", T3_RPC_ERROR_HTTP, 200, "HTTP 200"},
        {"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/x\r\nContent-Length: 0\r\n\r\n",
         T3_RPC_ERROR_HTTP, 302, "HTTP 302"},
        {"HTTP/1.1 307 Temporary Redirect\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n",
         T3_RPC_ERROR_HTTP, 307, "HTTP 307"},
        {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
         "Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n",
         T3_RPC_ERROR_PROTOCOL, 0, "no good upgrade"},
        {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
         T3_RPC_ERROR_PROTOCOL, 0, "no good upgrade"},
        {"", T3_RPC_ERROR_NETWORK, 0, "without an answer"},
        {"HTTP/1.1 101 Swi", T3_RPC_ERROR_NETWORK, 0, "without an answer"},
    };
    struct t3_rpc_options options = quiet();

    (void)state;
    options.token = "secret-token";
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct rig rig = {0};

        rig_connect(&rig, &options);
        ws_peer_request(&rig.peer);
        ws_peer_say(&rig.peer, cases[i].answer);
        if (cases[i].code == T3_RPC_ERROR_NETWORK) {
            ws_peer_drop(&rig.peer);
        }
        rig_ends(&rig, cases[i].code, cases[i].says);
        assert_int_equal(rig.event.error.status, cases[i].status);
        assert_null(strstr(rig.event.error.message, "secret"));
        rig_finish(&rig);
    }
}

/* An upgrade with something that was not offered is none. */
static void test_upgrade_with_more(void **state)
{
    static const char *const more[] = {
        "Sec-WebSocket-Extensions: permessage-deflate\r\n",
        "Sec-WebSocket-Protocol: chat\r\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(more); i++) {
        struct rig rig = {0};

        rig_connect(&rig, NULL);
        ws_peer_request(&rig.peer);
        ws_peer_upgrade(&rig.peer, more[i]);
        rig_ends(&rig, T3_RPC_ERROR_PROTOCOL, "no good upgrade");
        rig_finish(&rig);
    }
}

/* A head that never ends is cut off. */
static void test_endless_head(void **state)
{
    struct rig rig = {0};

    (void)state;
    rig_connect(&rig, NULL);
    ws_peer_request(&rig.peer);
    ws_peer_say(&rig.peer, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nX-Long: ");
    while (ws_peer_try(&rig.peer, "0123456789abcdef0123456789abcdef", 32)) {
    }
    rig_ends(&rig, T3_RPC_ERROR_PROTOCOL, "no good upgrade");
    rig_finish(&rig);
}

/* The first messages may come with the answer. */
static void test_first_frame_with_head(void **state)
{
    struct rig rig = {0};
    uint64_t id;
    char text[512];
    static const char done[] = DONE("1", "1");

    (void)state;
    rig_connect(&rig, NULL);
    assert_int_equal(t3_rpc_call(rig.rpc, "m", NULL, &id, NULL), T3_RPC_OK);
    assert_int_equal(t3_rpc_call(rig.rpc, "n", NULL, &id, NULL), T3_RPC_OK);
    ws_peer_request(&rig.peer);
    (void)snprintf(
        text, sizeof(text),
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n\x81\x10{\"_tag\":\"Other\"}",
        rig.peer.accept);
    ws_peer_say(&rig.peer, text);
    rig_next(&rig, T3_RPC_EVENT_OPEN);
    ws_peer_expect(&rig.peer, REQUEST("1", "m"));
    ws_peer_expect(&rig.peer, REQUEST("2", "n"));
    ws_peer_text(&rig.peer, done);
    rig_next(&rig, T3_RPC_EVENT_DONE);
    rig_finish(&rig);
}

/* ------------------------------------------------------------------------------ to a connection */

/* Nobody listens. */
static void test_refused(void **state)
{
    struct rig rig = {0};
    char url[64];

    (void)state;
    ws_peer_init(&rig.peer, NULL);
    (void)close(rig.peer.listening);
    rig.peer.listening = -1;
    assert_int_equal(t3_rpc_connect(ws_peer_url(&rig.peer, url), NULL, &rig.rpc, NULL), T3_RPC_OK);
    rig_ends(&rig, T3_RPC_ERROR_NETWORK, "no connection");
    rig_finish(&rig);
}

static void connect_to(struct rig *rig, const char *host, const struct t3_rpc_options *options)
{
    char url[96];

    ws_peer_init(&rig->peer, NULL);
    (void)snprintf(url, sizeof(url), "ws://%s:%u", host, rig->peer.port);
    assert_int_equal(t3_rpc_connect(url, options, &rig->rpc, NULL), T3_RPC_OK);
}

/* A name that nobody knows; one of two addresses, the first of which nobody listens on. */
static void test_names(void **state)
{
    struct rig rig = {0};

    (void)state;
    connect_to(&rig, "none.test", NULL);
    rig_ends(&rig, T3_RPC_ERROR_NETWORK, "leads nowhere");
    rig_finish(&rig);
    connect_to(&rig, "two.test", NULL);
    ws_peer_open(&rig.peer);
    rig_next(&rig, T3_RPC_EVENT_OPEN);
    rig_finish(&rig);
}

/* A name server that does not answer holds up neither the time limit, nor a close, nor a free. */
static void test_silent_name_server(void **state)
{
    struct rig rig = {0};
    struct t3_rpc_options options = quiet();

    (void)state;
    options.connect_timeout_ms = 1;
    connect_to(&rig, "hang.test", &options);
    rig_ends(&rig, T3_RPC_ERROR_TIMEOUT, "no connection in time");
    rig_finish(&rig);
    connect_to(&rig, "hang.test", NULL);
    t3_rpc_close(rig.rpc);
    rig_ends(&rig, T3_RPC_ERROR_CLOSED, "was closed");
    rig_finish(&rig);
    connect_to(&rig, "hang.test", NULL);
    fake_names_await();
    rig_finish(&rig);
    fake_names_release();
}

/* A server that takes the connection and says nothing. */
static void test_silent_server(void **state)
{
    struct rig rig = {0};
    struct t3_rpc_options options = quiet();

    (void)state;
    options.connect_timeout_ms = 1;
    rig_connect(&rig, &options);
    rig_ends(&rig, T3_RPC_ERROR_TIMEOUT, "no connection in time");
    rig_finish(&rig);
    rig_connect(&rig, NULL);
    ws_peer_request(&rig.peer);
    rig_finish(&rig);
    rig_connect(&rig, NULL);
    ws_peer_request(&rig.peer);
    t3_rpc_close(rig.rpc);
    rig_ends(&rig, T3_RPC_ERROR_CLOSED, "was closed");
    rig_finish(&rig);
}

/* A host that does not even say no: its queue of connections is full. Free does not wait for it. */
static void test_no_answer_to_connect(void **state)
{
    struct rig rig = {0};
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct t3_rpc_options options = quiet();
    char url[64];
    int fds[8];

    (void)state;
    ws_peer_init(&rig.peer, NULL);
    assert_int_equal(listen(rig.peer.listening, 0), 0);
    a.sin_port = htons(rig.peer.port);
    for (size_t i = 0; i < ARRAY_COUNT(fds); i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)connect(fds[i], (const struct sockaddr *)&a, sizeof(a));
    }
    options.connect_timeout_ms = 1;
    assert_int_equal(t3_rpc_connect(ws_peer_url(&rig.peer, url), &options, &rig.rpc, NULL), 0);
    rig_ends(&rig, T3_RPC_ERROR_TIMEOUT, "no connection in time");
    t3_rpc_free(rig.rpc);
    assert_int_equal(t3_rpc_connect(url, NULL, &rig.rpc, NULL), 0);
    rig_finish(&rig);
    for (size_t i = 0; i < ARRAY_COUNT(fds); i++) {
        (void)close(fds[i]);
    }
}

/* Made and freed at once, many times, and SIGPIPE is the program's all the while. */
static void test_free_at_once(void **state)
{
    struct sigaction action;

    (void)state;
    for (int i = 0; i < 20; i++) {
        struct rig rig = {0};

        rig_connect(&rig, NULL);
        if (i % 2 == 1) {
            t3_rpc_close(rig.rpc);
        }
        rig_finish(&rig);
    }
    assert_int_equal(sigaction(SIGPIPE, NULL, &action), 0);
    assert_true(action.sa_handler == SIG_DFL);
    t3_rpc_free(NULL);
}

/* Without a descriptor to be woken by there is no connection, rather than one that hears nothing
 * for seconds, also not that it is to end. */
static void test_no_wake(void **state)
{
    struct rig rig = {0};

    (void)state;
    atomic_store(&no_eventfd, true);
    rig_connect(&rig, NULL);
    rig_ends(&rig, T3_RPC_ERROR_MEMORY, "no descriptor is left");
    rig_finish(&rig);
    atomic_store(&no_eventfd, false);
}

/* --------------------------------------------------------------------------------------- frames */

/* A message in fragments, with a ping between them, which is answered; empty fragments, too. */
static void test_fragments(void **state)
{
    static const char text[] = CHUNK("1", "[\"abc\"]");
    struct rig rig = {0};

    (void)state;
    rig_subscribe(&rig, NULL);
    ws_peer_frame(&rig.peer, 0x01, text, 5);
    ws_peer_frame(&rig.peer, 0x00, "", 0);
    ws_peer_frame(&rig.peer, 0x89, "hi", 2);
    ws_peer_frame(&rig.peer, 0x00, text + 5, 10);
    ws_peer_frame(&rig.peer, 0x00, text + 15, sizeof(text) - 16);
    ws_peer_frame(&rig.peer, 0x80, "", 0);
    rig_next(&rig, T3_RPC_EVENT_CHUNK);
    assert_string_equal(rig.event.json, "[\"abc\"]");
    assert_true(ws_peer_read(&rig.peer));
    assert_int_equal(rig.peer.op, 10);
    assert_string_equal(rig.peer.frame.ptr, "hi");
    rig_finish(&rig);
}

/* A chunk of one string of so many bytes. */
static void talk_of_size(size_t len)
{
    static const char before[] = "{\"_tag\":\"Chunk\",\"requestId\":\"1\",\"values\":[\"";
    char *text = malloc(sizeof(before) + len + 4);
    struct rig rig = {0};

    assert_non_null(text);
    memcpy(text, before, sizeof(before) - 1);
    memset(text + sizeof(before) - 1, 'x', len);
    memcpy(text + sizeof(before) - 1 + len, "\"]}", 4);
    rig_subscribe(&rig, NULL);
    ws_peer_text(&rig.peer, text);
    rig_next(&rig, T3_RPC_EVENT_CHUNK);
    assert_int_equal(rig.event.len, len + 4);
    assert_int_equal(strlen(rig.event.json), len + 4);
    rig_finish(&rig);
    free(text);
}

static void test_sizes(void **state)
{
    (void)state;
    talk_of_size(60);
    talk_of_size(200);
    talk_of_size(70000);
    talk_of_size(3000000);
}

/* Frames that no server may send end the connection, and the client says why where it can. */
static void test_hostile_frames(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        unsigned close; /* 0: the connection just ends */
        const char *says;
    } cases[] = {
        {"\xc1\x02{}", 4, 0, "rules of WebSockets"},                  /* a reserved bit */
        {"\x83\x02{}", 4, 0, "rules of WebSockets"},                  /* a reserved opcode */
        {"\x8b\x00", 2, 0, "rules of WebSockets"},                    /* likewise, of control */
        {"\x80\x02{}", 4, 0, "rules of WebSockets"},                  /* continues nothing */
        {"\x01\x01{\x81\x01}", 6, 0, "rules of WebSockets"},          /* begins within another */
        {"\x09\x00", 2, 0, "rules of WebSockets"},                    /* a ping in fragments */
        {"\x89\x7e\x00\x80", 4, 0, "rules of WebSockets"},            /* a long ping */
        {"\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff", 10, 0, "rules"}, /* a length below 0 */
        {"\x82\x02{}", 4, 1003, "no text"},                           /* binary */
        {"\x81\x02\"\xff", 4, 1002, "no JSON"},                       /* no UTF-8 */
        {"\x81\x00", 2, 1002, "no JSON"},                             /* nothing */
        {"\x81\x03{}}", 5, 1002, "no JSON"},
        {"\x81\x02[]", 4, 1002, "no object with one _tag"},
        {"\x81\x02{}", 4, 1002, "no object with one _tag"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct rig rig = {0};

        rig_open(&rig, NULL);
        ws_peer_put(&rig.peer, cases[i].bytes, cases[i].len);
        if (cases[i].close == 0) {
            rig_ends(&rig, T3_RPC_ERROR_PROTOCOL, cases[i].says);
        } else {
            ws_peer_expect_close(&rig.peer, cases[i].close);
            rig_ends(&rig, T3_RPC_ERROR_PROTOCOL, cases[i].says);
        }
        rig_finish(&rig);
    }
}

/* A frame that is rejected in its middle: the rest of it, which goes on to come, goes nowhere.
 * Where the receive callback of libwebsockets asks for the end, it goes behind a buffer of 32 KiB,
 * and 8 MiB of it over whatever is there. */
static void test_rejected_in_the_middle(void **state)
{
    const size_t len = (size_t)8 << 20;
    char *bytes = malloc(len);
    static const struct {
        unsigned char first;
        size_t message_bytes_max;
        enum t3_rpc_code code;
        unsigned close;
    } cases[] = {
        {0x82, (size_t)64 << 20, T3_RPC_ERROR_PROTOCOL, 1003}, /* binary */
        {0x81, 100000, T3_RPC_ERROR_LIMIT, 1009},
        {0x81, 1, T3_RPC_ERROR_LIMIT, 1009},
    };
    struct t3_rpc_options options = quiet();

    (void)state;
    assert_non_null(bytes);
    memset(bytes, 'A', len);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct rig rig = {0};

        options.message_bytes_max = cases[i].message_bytes_max;
        rig_open(&rig, &options);
        ws_peer_frame(&rig.peer, cases[i].first, bytes, len);
        rig_ends(&rig, cases[i].code, "the server sent a message");
        ws_peer_expect_close(&rig.peer, cases[i].close);
        rig_finish(&rig);
    }
    free(bytes);
}

/* ----------------------------------------------------------------------------------------- ends */

/* The server closes, with and without a code, and some write behind it what is not to be read. */
static void test_server_closes(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        bool answered; /* else unread bytes make the system reset the connection */
        const char *says;
    } cases[] = {
        {"\x88\x02\x03\xe8", 4, true, "the server closed the connection (1000)"},
        {"\x88\x05\x03\xf3"
         "bye",
         7, true, "the server closed the connection (1011)"},
        {"\x88\x00", 2, true, "the server closed the connection"},
        {"\x88\x00HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", 49, false,
         "the server closed the connection"},
        {"\x88\x02\x03\xe8\x81\x10{\"_tag\":\"Defect\"}", 23, false,
         "closed the connection (1000)"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct rig rig = {0};

        rig_open(&rig, NULL);
        ws_peer_put(&rig.peer, cases[i].bytes, cases[i].len);
        rig_ends(&rig, T3_RPC_ERROR_CLOSED, cases[i].says);
        if (cases[i].answered) {
            assert_true(ws_peer_read(&rig.peer));
            assert_int_equal(rig.peer.op, 8);
        }
        rig_finish(&rig);
    }
}

/* What breaks the connection below: with an end, with a reset, in the middle of a message. */
static void test_broken(void **state)
{
    struct rig rig = {0};

    (void)state;
    rig_open(&rig, NULL);
    ws_peer_drop(&rig.peer);
    rig_ends(&rig, T3_RPC_ERROR_NETWORK, "the connection broke");
    rig_finish(&rig);
    rig_open(&rig, NULL);
    ws_peer_reset(&rig.peer);
    rig_ends(&rig, T3_RPC_ERROR_NETWORK, "the connection broke");
    rig_finish(&rig);
    rig_open(&rig, NULL);
    ws_peer_put(&rig.peer, "\x81\x10{\"_ta", 7);
    ws_peer_drop(&rig.peer);
    rig_ends(&rig, T3_RPC_ERROR_NETWORK, "the connection broke");
    rig_finish(&rig);
}

/* A close that the server does not answer ends all the same; nothing is said after it. */
static void test_close_unanswered(void **state)
{
    struct rig rig = {0};
    uint64_t id;

    (void)state;
    rig_subscribe(&rig, NULL);
    ws_peer_text(&rig.peer, CHUNK("1", "[1]"));
    rig_next(&rig, T3_RPC_EVENT_CHUNK);
    t3_rpc_close(rig.rpc);
    assert_int_equal(t3_rpc_ack(rig.rpc, 1, NULL), T3_RPC_ERROR_CLOSED);
    assert_int_equal(t3_rpc_call(rig.rpc, "m", NULL, &id, NULL), T3_RPC_ERROR_CLOSED);
    t3_rpc_interrupt(rig.rpc, 1);
    t3_rpc_close(rig.rpc);
    ws_peer_expect_close(&rig.peer, 1000);
    ws_peer_text(&rig.peer, CHUNK("1", "[2]"));
    rig_ends(&rig, T3_RPC_ERROR_CLOSED, "was closed");
    assert_false(ws_peer_read(&rig.peer));
    rig_finish(&rig);
}

/* A free tells a server that hears it. */
static void test_free_says_goodbye(void **state)
{
    struct rig rig = {0};

    (void)state;
    rig_open(&rig, NULL);
    t3_rpc_free(rig.rpc);
    ws_peer_expect_close(&rig.peer, 1001);
    rig.rpc = NULL;
    rig_finish(&rig);
}

/* The server broke: the connection ends, and the defect is there to be read. */
static void test_defect(void **state)
{
    struct rig rig = {0};

    (void)state;
    rig_subscribe(&rig, NULL);
    ws_peer_text(&rig.peer,
                 "{\"_tag\":\"Defect\",\"defect\":{\"name\":\"TypeError\",\"message\":\"boom\"}}");
    rig_next(&rig, T3_RPC_EVENT_CLOSED);
    assert_int_equal(rig.event.error.code, T3_RPC_ERROR_DEFECT);
    assert_string_equal(rig.event.error.message, "the server broke: TypeError: boom");
    assert_string_equal(rig.event.json, "{\"name\":\"TypeError\",\"message\":\"boom\"}");
    ws_peer_expect_close(&rig.peer, 1000);
    rig_finish(&rig);
}

/* Memory that runs out for a message, to be read or to be said, ends the connection and no more. */
static void test_no_memory(void **state)
{
    uint64_t id;

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct rig rig = {0};

        rig_connect(&rig, NULL);
        if (i == 0) {
            assert_int_equal(t3_rpc_call(rig.rpc, "m", NULL, &id, NULL), T3_RPC_OK);
        }
        ws_peer_request(&rig.peer);
        atomic_store(&out_of_memory, true);
        ws_peer_upgrade(&rig.peer, "");
        rig_next(&rig, T3_RPC_EVENT_OPEN);
        if (i == 1) {
            ws_peer_put(&rig.peer, "\x81\x02{}", 4);
        }
        rig_ends(&rig, T3_RPC_ERROR_MEMORY, "out of memory for a message");
        atomic_store(&out_of_memory, false);
        rig_finish(&rig);
    }
}

/* ------------------------------------------------------------------------------------- liveness */

/* Pings go, and a server that answers them stays; one that does not is left. */
static void test_pings(void **state)
{
    struct rig rig = {0};
    struct t3_rpc_options options = quiet();

    (void)state;
    options.ping_interval_ms = 20;
    options.pings_missed_max = 1000;
    rig_open(&rig, &options);
    for (int i = 0; i < 5; i++) {
        ws_peer_expect(&rig.peer, "{\"_tag\":\"Ping\"}");
        ws_peer_text(&rig.peer, "{\"_tag\":\"Pong\"}");
    }
    rig_finish(&rig);
    options.pings_missed_max = 2;
    rig_open(&rig, &options);
    ws_peer_expect(&rig.peer, "{\"_tag\":\"Ping\"}");
    rig_ends(&rig, T3_RPC_ERROR_TIMEOUT, "does not answer any more");
    rig_finish(&rig);
}

/* Counts how often it was asked for something to send. */
struct counter {
    atomic_uint sends;
    atomic_uint opened;
};

static void count_opened(void *context)
{
    atomic_fetch_add(&((struct counter *)context)->opened, 1);
}

static int ignore_message(void *context, struct buf *message)
{
    (void)context;
    (void)message;
    return T3_RPC_OK;
}

static bool count_send(void *context, struct buf *out)
{
    (void)out;
    atomic_fetch_add(&((struct counter *)context)->sends, 1);
    return false;
}

static bool never_full(void *context)
{
    (void)context;
    return false;
}

static void ignore_closed(void *context, const struct t3_rpc_error *error)
{
    (void)context;
    (void)error;
}

/* A connection with nothing to do does nothing but ping. */
static void test_idle(void **state)
{
    struct counter counter = {0};
    struct ws_peer peer;
    struct rpc_url url;
    struct rpc_socket *socket;
    char text[64];
    unsigned pings = 0;

    (void)state;
    ws_peer_init(&peer, NULL);
    assert_int_equal(rpc_url_init(&url, ws_peer_url(&peer, text), NULL), T3_RPC_OK);
    const struct rpc_socket_options options = {.url = &url,
                                               .user_agent = "test",
                                               .connect_timeout_ms = 60000,
                                               .ping_interval_ms = 1,
                                               .pings_missed_max = 1000000,
                                               .message_bytes_max = 1000};
    const struct rpc_socket_user user = {.context = &counter,
                                         .opened = count_opened,
                                         .message = ignore_message,
                                         .send = count_send,
                                         .full = never_full,
                                         .closed = ignore_closed};

    assert_int_equal(rpc_socket_create(&options, &user, &socket, NULL), T3_RPC_OK);
    ws_peer_open(&peer);
    for (; pings < 100; pings++) {
        ws_peer_expect(&peer, "{\"_tag\":\"Ping\"}");
    }
    rpc_socket_destroy(socket);
    while (ws_peer_read(&peer)) {
        pings += peer.op == 1;
    }
    assert_int_equal(atomic_load(&counter.opened), 1);
    assert_true(atomic_load(&counter.sends) <= pings + 10);
    rpc_url_finish(&url);
    ws_peer_finish(&peer);
}

/* ------------------------------------------------------------------------------------------ TLS */

/* An authority, and a server with a certificate of it. */
struct tls {
    struct certificate authority;
    struct certificate own;
    SSL_CTX *ctx;
    char ca_file[64];
    char name[64]; /* that the client told */
};

static int keep_name(SSL *ssl, int *alert, void *context)
{
    struct tls *tls = context;
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

    (void)alert;
    (void)snprintf(tls->name, sizeof(tls->name), "%s", name != NULL ? name : "");
    return SSL_TLSEXT_ERR_OK;
}

static void tls_init(struct tls *tls, const char *name, long from_s, long to_s)
{
    *tls = (struct tls){.ca_file = "/tmp/arbe-rpc-XXXXXX"};
    int fd = mkstemp(tls->ca_file);

    assert_true(fd >= 0);
    (void)close(fd);
    certificate_init(&tls->authority, NULL, NULL, -3600, 3600);
    certificate_init(&tls->own, name, &tls->authority, from_s, to_s);
    certificate_save(&tls->authority, tls->ca_file);
    tls->ctx = certificate_server(&tls->own);
    (void)SSL_CTX_set_tlsext_servername_callback(tls->ctx, keep_name);
    (void)SSL_CTX_set_tlsext_servername_arg(tls->ctx, tls);
}

static void tls_finish(struct tls *tls)
{
    SSL_CTX_free(tls->ctx);
    certificate_finish(&tls->own);
    certificate_finish(&tls->authority);
    (void)unlink(tls->ca_file);
}

static void connect_tls(struct rig *rig, struct tls *tls, const char *host, const char *ca_file)
{
    struct t3_rpc_options options = quiet();
    char url[96];

    options.ca_file = ca_file;
    options.token = "secret-token";
    ws_peer_init(&rig->peer, tls->ctx);
    (void)snprintf(url, sizeof(url), "https://%s:%u", host, rig->peer.port);
    assert_int_equal(t3_rpc_connect(url, &options, &rig->rpc, NULL), T3_RPC_OK);
}

static void talk_by_tls(struct tls *tls, const char *host, const char *name)
{
    struct rig rig = {0};
    uint64_t id;

    connect_tls(&rig, tls, host, tls->ca_file);
    ws_peer_open(&rig.peer);
    rig_next(&rig, T3_RPC_EVENT_OPEN);
    assert_string_equal(tls->name, name);
    assert_int_equal(t3_rpc_subscribe(rig.rpc, "s", NULL, &id, NULL), T3_RPC_OK);
    ws_peer_expect(&rig.peer, REQUEST("1", "s"));
    ws_peer_text(&rig.peer, CHUNK("1", "[1]"));
    rig_next(&rig, T3_RPC_EVENT_CHUNK);
    rig_finish(&rig);
}

/* The name is told to the server, an address is not; both are checked. */
static void test_tls(void **state)
{
    struct tls tls;

    (void)state;
    tls_init(&tls, "one.test", -3600, 3600);
    talk_by_tls(&tls, "one.test", "one.test");
    tls_finish(&tls);
    tls_init(&tls, "x,IP:127.0.0.1", -3600, 3600);
    talk_by_tls(&tls, "127.0.0.1", "");
    tls_finish(&tls);
}

/* An address of IPv6 is written in brackets, and is none in the certificate's check. */
static void test_tls_ipv6(void **state)
{
    struct rig rig = {0};
    struct tls tls;
    struct t3_rpc_options options = quiet();
    char url[64];
    char line[64];

    (void)state;
    tls_init(&tls, "x,IP:::1", -3600, 3600);
    options.ca_file = tls.ca_file;
    if (!ws_peer_init_v6(&rig.peer, tls.ctx)) {
        print_message("this machine has no ::1\n");
        ws_peer_finish(&rig.peer);
        tls_finish(&tls);
        return;
    }
    (void)snprintf(url, sizeof(url), "wss://[::1]:%u", rig.peer.port);
    assert_int_equal(t3_rpc_connect(url, &options, &rig.rpc, NULL), T3_RPC_OK);
    ws_peer_open(&rig.peer);
    rig_next(&rig, T3_RPC_EVENT_OPEN);
    assert_string_equal(tls.name, "");
    (void)snprintf(line, sizeof(line), "\r\nHost: [::1]:%u\r\n", rig.peer.port);
    assert_line(&rig, line);
    rig_finish(&rig);
    tls_finish(&tls);
}

static void refuse_tls(const char *name, long from_s, long to_s, bool trusted, const char *says)
{
    struct rig rig = {0};
    struct tls tls;

    tls_init(&tls, name, from_s, to_s);
    connect_tls(&rig, &tls, "one.test", trusted ? tls.ca_file : NULL);
    assert_false(ws_peer_take(&rig.peer));
    rig_ends(&rig, T3_RPC_ERROR_TLS, says);
    rig_finish(&rig);
    tls_finish(&tls);
}

/* A server whose certificate is not good hears nothing, least of all the token. */
static void test_tls_refused(void **state)
{
    (void)state;
    refuse_tls("other.test", -3600, 3600, true, "ostname mismatch");
    refuse_tls("one.test", -7200, -3600, true, "certificate has expired");
    refuse_tls("one.test", 3600, 7200, true, "certificate is not yet valid");
    refuse_tls("one.test", -3600, 3600, false, "the server's certificate is not good");
}

/* A server that speaks no TLS, one that breaks off, one that hangs; a file that is none. */
static void test_tls_broken(void **state)
{
    struct rig rig = {0};
    struct tls tls;

    (void)state;
    tls_init(&tls, "one.test", -3600, 3600);
    connect_tls(&rig, &tls, "one.test", tls.ca_file);
    rig.peer.tls = NULL;
    assert_true(ws_peer_take(&rig.peer));
    ws_peer_say(&rig.peer, "HTTP/1.1 400 Bad Request\r\n\r\n");
    rig_ends(&rig, T3_RPC_ERROR_TLS, "speak no TLS; perhaps http:// is meant");
    rig_finish(&rig);
    connect_tls(&rig, &tls, "one.test", tls.ca_file);
    rig.peer.tls = NULL;
    assert_true(ws_peer_take(&rig.peer));
    ws_peer_drop(&rig.peer);
    rig_next(&rig, T3_RPC_EVENT_CLOSED);
    assert_true(rig.event.error.code == T3_RPC_ERROR_NETWORK ||
                rig.event.error.code == T3_RPC_ERROR_TLS);
    rig_finish(&rig);
    connect_tls(&rig, &tls, "one.test", tls.ca_file);
    rig.peer.tls = NULL;
    assert_true(ws_peer_take(&rig.peer));
    rig_finish(&rig);
    connect_tls(&rig, &tls, "one.test", "/nowhere/ca.pem");
    rig_ends(&rig, T3_RPC_ERROR_TLS, "no certificates can be read from /nowhere/ca.pem");
    rig_finish(&rig);
    tls_finish(&tls);
}

static void *talk_many(void *context)
{
    struct tls *tls = context;

    for (int i = 0; i < 10; i++) {
        struct rig rig = {0};

        connect_tls(&rig, tls, "one.test", tls->ca_file);
        ws_peer_open(&rig.peer);
        rig_next(&rig, T3_RPC_EVENT_OPEN);
        rig_finish(&rig);
    }
    return NULL;
}

/* Many connections begin at once: what libwebsockets has for the whole process is left alone. */
static void test_tls_at_once(void **state)
{
    pthread_t threads[8];
    struct tls tls;

    (void)state;
    tls_init(&tls, "one.test", -3600, 3600);
    (void)SSL_CTX_set_tlsext_servername_callback(tls.ctx, NULL);
    for (size_t i = 0; i < ARRAY_COUNT(threads); i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, talk_many, &tls), 0);
    }
    for (size_t i = 0; i < ARRAY_COUNT(threads); i++) {
        (void)pthread_join(threads[i], NULL);
    }
    tls_finish(&tls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_head),
        cmocka_unit_test(test_longest_head),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_upgrade_with_more),
        cmocka_unit_test(test_endless_head),
        cmocka_unit_test(test_first_frame_with_head),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_silent_name_server),
        cmocka_unit_test(test_silent_server),
        cmocka_unit_test(test_no_answer_to_connect),
        cmocka_unit_test(test_free_at_once),
        cmocka_unit_test(test_no_wake),
        cmocka_unit_test(test_fragments),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_hostile_frames),
        cmocka_unit_test(test_rejected_in_the_middle),
        cmocka_unit_test(test_server_closes),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_close_unanswered),
        cmocka_unit_test(test_free_says_goodbye),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_defect),
        cmocka_unit_test(test_pings),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_tls),
        cmocka_unit_test(test_tls_ipv6),
        cmocka_unit_test(test_tls_refused),
        cmocka_unit_test(test_tls_broken),
        cmocka_unit_test(test_tls_at_once),
    };

    return UNIT_RUN(tests);
}
