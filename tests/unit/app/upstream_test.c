/* Reads through a real server from another server that is scripted by hand. */
#include "app/upstream.c"

#include "unit/app/upstream_rig.h"

#define GET        "GET /api/arbe-thread-1 HTTP/1.1\r\nHost: a\r\n\r\n"
#define GET_SSE    "GET /api/arbe-thread-1?offset=-1&live=sse HTTP/1.1\r\nHost: a\r\n\r\n"
#define GET_POLL   "GET /api/arbe-thread-1?offset=-1&live=long-poll HTTP/1.1\r\nHost: a\r\n\r\n"
#define SSE_HEAD   "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
#define BIG_BYTES  (64u * MIB)
#define RSS_KB_MAX (24u * 1024)

/* Sanitizers keep what is freed, and have much beside it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RSS_COUNTS false
#elif defined(__has_feature)
#define RSS_COUNTS (!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer))
#else
#define RSS_COUNTS true
#endif

static void has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("no \"%s\" in:\n%s", part, text);
    }
}

static void has_not(const char *text, const char *part)
{
    if (strcasestr(text, part) != NULL) {
        fail_msg("\"%s\" in:\n%s", part, text);
    }
}

/* Asks and takes; the other server's side of the connection. */
static int ask_and_take(const struct rig *rig, const char *request, int *ret_client)
{
    char head[4096];

    *ret_client = rig_ask(rig, request);
    return rig_take(rig, head, sizeof(head));
}

/* The client is told that the streams are not to be had. */
static void expect_unavailable(int client)
{
    char head[4096];
    char body[1024] = "";

    read_head(client, head, sizeof(head));
    has(head, "HTTP/1.1 503 ");
    has(head, "Retry-After: 1\r\n");
    has_not(head, RIG_SECRET);
    assert_true(recv(client, body, sizeof(body) - 1, 0) > 0);
    has(body, "\"streams.unavailable\"");
    has_not(body, RIG_SECRET);
}

/* The request gets the secret and loses what says who the client is; the query stays as it is. */
static void requests_are_passed_on(void **state)
{
    struct rig rig;
    char head[4096];

    (void)state;
    rig_open(&rig, NULL);
    int client = rig_ask(&rig, "GET /api/arbe-thread-1?offset=-1&x=%2f%7E+|&&y HTTP/1.1\r\n"
                               "Host: a\r\nAuthorization: Bearer arbe_mine\r\n"
                               "Cookie: arbe_session=mine\r\nIf-None-Match: \"e\"\r\n"
                               "Accept-Encoding: gzip\r\nX-Forwarded-For: 1.2.3.4\r\n"
                               "Forwarded: for=1.2.3.4\r\nOrigin: http://a\r\n"
                               "Last-Event-ID: 7\r\nCache-Control: no-cache\r\n"
                               "Connection: keep-alive, X-Mine\r\nX-Mine: 1\r\n"
                               "TE: trailers\r\nProxy-Authorization: Basic eA==\r\n\r\n");
    int other = rig_take(&rig, head, sizeof(head));

    has(head, "GET /streams/arbe-thread-1?offset=-1&x=%2f%7E+|&&y HTTP/1.1\r\n");
    has(head, "Authorization: Bearer " RIG_SECRET "\r\n");
    has(head, "If-None-Match: \"e\"\r\n");
    has(head, "Accept-Encoding: gzip\r\n");
    has(head, "Last-Event-ID: 7\r\n");
    has(head, "Cache-Control: no-cache\r\n");
    has_not(head, "mine");
    has_not(head, "forwarded");
    has_not(head, "origin");
    has_not(head, "proxy-");
    has_not(head, "TE:");
    has_not(head, "\r\nAccept:"); /* the client sent none */
    say(other, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    expect(client, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    (void)close(client);
    (void)close(other);
    rig_close(&rig);
}

/* Every field of the answer that is not between two hops, in its order, as it was. */
static void answers_are_passed_on(void **state)
{
    struct rig rig;
    int client;

    (void)state;
    rig_open(&rig, NULL);
    int other = ask_and_take(&rig, GET, &client);

    say(other, "HTTP/1.1 100 Continue\r\n\r\n"
               "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
               "HTTP/1.1 404 Nowhere at all\r\nServer: other\r\nX-Foo: 1\r\n"
               "connection: Keep-Alive, x-foo\r\nKeep-Alive: timeout=5\r\nUpgrade: h2c\r\n"
               "Proxy-Authenticate: Basic\r\nTrailer: X-T\r\nSet-Cookie: a=b\r\n"
               "Stream-Next-Offset: 12_7\r\nETag: \"a:b\"\r\nstream-closed: true\r\n"
               "X-Secret: " RIG_SECRET "\r\nVary: A\r\nVary: B\r\n"
               "Content-Length: 4\r\n\r\nnope");
    expect(client, "HTTP/1.1 404 Nowhere at all\r\nServer: other\r\n"
                   "Stream-Next-Offset: 12_7\r\nETag: \"a:b\"\r\nstream-closed: true\r\n"
                   "Vary: A\r\nVary: B\r\nContent-Length: 4\r\n\r\nnope");
    /* Both connections go on. */
    say(client, GET);
    char head[4096];

    read_head(other, head, sizeof(head));
    say(other, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    expect(client, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    (void)close(client);
    (void)close(other);
    rig_close(&rig);
}

/* Answers without a body have none, whatever they say of its length. */
static void bodies_that_are_not(void **state)
{
    static const struct {
        const char *ask;
        const char *answer;
        const char *told;
    } cases[] = {
        {"HEAD /api/a HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n",
         "HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n"},
        {"HEAD /api/a HTTP/1.1\r\nHost: a\r\n\r\n",
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nA: b\r\n\r\n",
         "HTTP/1.1 200 OK\r\nA: b\r\n\r\n"},
        {GET, "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\nETag: \"x\"\r\n\r\n",
         "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\nETag: \"x\"\r\n\r\n"},
        {GET_POLL, "HTTP/1.1 204 No Content\r\nStream-Cursor: 5\r\n\r\n",
         "HTTP/1.1 204 No Content\r\nStream-Cursor: 5\r\n\r\n"},
    };
    struct rig rig;

    (void)state;
    rig_open(&rig, NULL);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        int client;
        int other = ask_and_take(&rig, cases[i].ask, &client);

        say(other, cases[i].answer);
        expect(client, cases[i].told);
        /* The next answer stands right behind it. */
        (void)close(other);
        say(client, "GET /health HTTP/1.1\r\nHost: a\r\n\r\n");
        expect(client, "HTTP/1.1 200 OK\r\n");
        (void)close(client);
    }
    rig_close(&rig);
}

/* A body without a length: chunks for HTTP/1.1, the end of the connection for HTTP/1.0. Trailers
 * end here. */
static void chunked_bodies(void **state)
{
    struct rig rig;
    int client;

    (void)state;
    rig_open(&rig, NULL);
    int other = ask_and_take(&rig, GET, &client);

    say(other, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    expect(client, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n00000003\r\nabc\r\n");
    say(other, "4;x=y\r\ndefg\r\n0\r\nX-Trailer: 1\r\n\r\n");
    expect(client, "00000004\r\ndefg\r\n0\r\n\r\n");
    say(client, "GET /api/a HTTP/1.0\r\n\r\n");
    char head[4096];

    read_head(other, head, sizeof(head));
    say(other, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
    expect(client, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc");
    expect_end(client);
    /* A body that the end of the connection ends. */
    (void)close(other);
    other = ask_and_take(&rig, GET, &client);
    say(other, "HTTP/1.0 200 OK\r\n\r\nabc");
    expect(client, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n00000003\r\nabc\r\n");
    (void)close(other);
    expect(client, "0\r\n\r\n");
    (void)close(client);
    rig_close(&rig);
}

/* Whatever goes wrong before the head is there: the same refusal, and a line in the log. */
static void failures_before_the_head(void **state)
{
    static const char *const answers[] = {
        "",
        "HTTP/1.1 200 OK\r\nContent-Le",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\r\n folded\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA b\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA\x01: b\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno",
        "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno",
        "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/?" RIG_SECRET
        "\r\nContent-Length: 0\r\n\r\n",
    };
    struct rig rig;

    (void)state;
    rig_open(&rig, NULL);
    for (size_t i = 0; i < ARRAY_COUNT(answers); i++) {
        int client;
        int other = ask_and_take(&rig, GET, &client);

        say(other, answers[i]);
        (void)shutdown(other, SHUT_WR);
        expect_unavailable(client);
        (void)close(other);
        (void)close(client);
    }
    rig_expect_log(&rig, "cannot be read: ");
    rig_close(&rig);
}

/* A reset, a head that never comes, an address where nobody is. */
static void failures_of_the_network(void **state)
{
    const struct upstream_bounds bounds = {.head_ms = 100};
    struct rig rig;
    int client;

    (void)state;
    rig_open(&rig, &bounds);
    int other = ask_and_take(&rig, GET, &client);

    reset(other);
    expect_unavailable(client);
    (void)close(client);

    other = ask_and_take(&rig, GET, &client);
    expect_unavailable(client); /* the time is up */
    expect_end(other);
    (void)close(client);

    (void)close(rig.listener);
    rig.listener = -1;
    client = rig_ask(&rig, GET);
    expect_unavailable(client);
    (void)close(client);
    rig_close(&rig);
}

/* A head may have so many bytes and not one more. */
static void large_heads(void **state)
{
    static const char begin[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n";
    static char head[UPSTREAM_HEAD_BYTES_MAX + 8];
    struct rig rig;

    (void)state;
    rig_open(&rig, NULL);
    for (size_t extra = 0; extra < 2; extra++) {
        size_t len = UPSTREAM_HEAD_BYTES_MAX + extra;
        int client;
        int other = ask_and_take(&rig, GET, &client);

        memset(head, 'x', len);
        for (size_t at = 0; at + KIB < len; at += KIB) {
            memcpy(head + at, "\r\nX: ", 5);
        }
        memcpy(head, begin, sizeof(begin) - 1);
        memcpy(head + sizeof(begin) - 1, "X: ", 3);
        memcpy(head + len - 2, "\r\n\r\n", 5);
        say(other, head);
        if (extra == 0) {
            expect(client, begin);
        } else {
            expect_unavailable(client);
            rig_expect_log(&rig, "too large");
        }
        (void)close(other);
        (void)close(client);
    }
    rig_close(&rig);
}

/* Of a secret that is not taken there is one line, then silence for a while; and a line when all is
 * well again. */
static void the_operator_is_told(void **state)
{
    struct rig rig;
    char line[1024];
    int client;
    int other;

    (void)state;
    rig_open(&rig, NULL);
    for (int i = 0; i < 3; i++) {
        other = ask_and_take(&rig, GET, &client);
        say(other, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
        expect_unavailable(client);
        (void)close(client);
        (void)close(other);
    }
    other = ask_and_take(&rig, GET, &client);
    say(other, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    expect(client, "HTTP/1.1 200 OK\r\n");
    rig_expect_log(&rig, "--streams-secret-file");
    assert_non_null(fgets(line, sizeof(line), rig.log));
    has(line, "can be read again");
    (void)close(client);
    (void)close(other);
    rig_close(&rig);
}

/* Within the body it is too late for a status: the answer ends without its last chunk, or short. */
static void failures_within_the_body(void **state)
{
    const struct upstream_bounds bounds = {.silence_ms = 100};
    struct rig rig;
    int client;

    (void)state;
    rig_open(&rig, &bounds);
    int other = ask_and_take(&rig, GET, &client);

    say(other, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    expect(client, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n00000003\r\nabc\r\n");
    reset(other);
    expect_end(client);

    other = ask_and_take(&rig, GET, &client);
    say(other, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
    expect(client, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
    (void)close(other);
    expect_end(client);

    /* Nothing comes any more. */
    other = ask_and_take(&rig, GET, &client);
    say(other, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
    expect(client, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
    expect_end(client);
    expect_end(other);
    rig_close(&rig);
}

/* Events go out as they come, one by one; silence between them is no failure. */
static void events_trickle(void **state)
{
    const struct upstream_bounds bounds = {.head_ms = 20000, .silence_ms = 1};
    struct rig rig;
    int client;

    (void)state;
    rig_open(&rig, &bounds);
    int other = ask_and_take(&rig, GET_SSE, &client);

    say(other, SSE_HEAD "Transfer-Encoding: chunked\r\n\r\n");
    expect(client, SSE_HEAD "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (char c = 'a'; c <= 'z'; c++) {
        char chunk[32];

        (void)snprintf(chunk, sizeof(chunk), "9\r\ndata: %c\n\n\r\n", c);
        say(other, chunk);
        (void)snprintf(chunk, sizeof(chunk), "00000009\r\ndata: %c\n\n\r\n", c);
        expect(client, chunk);
    }
    say(other, "0\r\n\r\n");
    expect(client, "0\r\n\r\n");
    expect_end(client);
    (void)close(other);
    rig_close(&rig);
}

static unsigned long rss_kb(pid_t pid)
{
    char path[64];
    char line[256];
    unsigned long kb = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *in = fopen(path, "r");

    assert_non_null(in);
    while (fgets(line, sizeof(line), in) != NULL) {
        if (sscanf(line, "VmRSS: %lu", &kb) == 1) {
            break;
        }
    }
    (void)fclose(in);
    return kb;
}

/* Sends what goes without blocking, until nothing has gone for half a second, or all has. */
static size_t pour(int fd, size_t sent, size_t total)
{
    static char bytes[64 * KIB];

    while (sent < total) {
        struct pollfd writable = {.fd = fd, .events = POLLOUT};
        size_t len = total - sent < sizeof(bytes) ? total - sent : sizeof(bytes);

        if (poll(&writable, 1, 500) == 0) {
            break;
        }
        memset(bytes, 'a' + (int)(sent / sizeof(bytes) % 26), len);
        ssize_t count = send(fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (count < 0) {
            assert_int_equal(errno, EAGAIN);
            continue;
        }
        sent += (size_t)count;
    }
    return sent;
}

/* A client that does not read holds up its own answer: the other server is held back, nobody else
 * is, and memory does not grow. Then it gets every byte. */
static void slow_readers(void **state)
{
    static char bytes[64 * KIB];
    struct rig rig;
    char head[4096];
    int quick;

    (void)state;
    rig_open(&rig, NULL);
    int slow = rig_connect(&rig, true);

    say(slow, GET);
    int other = rig_take(&rig, head, sizeof(head));
    unsigned long before = rss_kb(rig.server);

    (void)snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %u\r\n\r\n", BIG_BYTES);
    say(other, head);
    size_t sent = pour(other, 0, BIG_BYTES);

    assert_true(sent < BIG_BYTES); /* it stands still */
    assert_true(!RSS_COUNTS || rss_kb(rig.server) < before + RSS_KB_MAX);
    int second = ask_and_take(&rig, GET, &quick);

    say(second, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    expect(quick, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    expect(slow, head);
    for (size_t got = 0; got < BIG_BYTES;) {
        struct pollfd both[2] = {{.fd = slow, .events = POLLIN},
                                 {.fd = other, .events = sent < BIG_BYTES ? POLLOUT : 0}};

        assert_true(poll(both, 2, SERVER_RIG_HANG_S * 1000) > 0);
        if ((both[1].revents & POLLOUT) != 0) {
            size_t part = sent / sizeof(bytes);
            size_t len = (part + 1) * sizeof(bytes) - sent;

            memset(bytes, 'a' + (int)(part % 26), len);
            ssize_t count = send(other, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);

            sent += count > 0 ? (size_t)count : 0;
        }
        if ((both[0].revents & POLLIN) != 0) {
            ssize_t count = recv(slow, bytes, sizeof(bytes), 0);

            assert_true(count > 0);
            for (ssize_t i = 0; i < count; i += 997) {
                size_t at = got + (size_t)i;

                assert_int_equal(bytes[i], 'a' + (int)(at / sizeof(bytes) % 26));
            }
            got += (size_t)count;
        }
    }
    assert_true(!RSS_COUNTS || rss_kb(rig.server) < before + RSS_KB_MAX);
    (void)close(quick);
    (void)close(slow);
    (void)close(second);
    (void)close(other);
    rig_close(&rig);
}

/* Once its client goes, nothing is fetched any more. */
static void clients_that_go(void **state)
{
    struct rig rig;
    int client;

    (void)state;
    rig_open(&rig, NULL);
    int other = ask_and_take(&rig, GET_POLL, &client); /* before the head */

    (void)close(client);
    expect_end(other);
    other = ask_and_take(&rig, GET_SSE, &client); /* within the body */
    say(other, SSE_HEAD "\r\ndata: x\n\n");
    expect(client, SSE_HEAD);
    (void)close(client);
    expect_end(other);
    other = ask_and_take(&rig, GET, &client); /* a plain one, by a reset */
    reset(client);
    expect_end(other);
    other = ask_and_take(&rig, GET, &client); /* and when it shows that nobody reads */
    (void)close(client);
    say(other, "HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n");
    struct pollfd ended = {.fd = other, .events = POLLIN};

    while (poll(&ended, 1, 1) == 0) {
        (void)send(other, "more", 4, MSG_NOSIGNAL);
    }
    expect_end(other);
    /* Who has only said all it has to say is still there. */
    other = ask_and_take(&rig, GET, &client);
    (void)shutdown(client, SHUT_WR);
    say(other, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    expect(client, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    expect_end(client);
    (void)close(other);
    rig_close(&rig);
}

/* What let them read is taken away: who follows is let go cleanly, who waits is told why, who reads
 * plainly gets the rest. */
static void rights_that_end(void **state)
{
    struct rig rig;
    int sse;
    int poll_early;
    int plain;
    char head[4096];

    (void)state;
    rig_open(&rig, NULL);
    int other_sse = ask_and_take(&rig, GET_SSE, &sse);

    say(other_sse, SSE_HEAD "\r\ndata: x\n\n");
    expect(sse, SSE_HEAD "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
                         "00000009\r\ndata: x\n\n\r\n");
    int other_poll = ask_and_take(&rig, GET_POLL, &poll_early);
    int other_plain = ask_and_take(&rig, GET, &plain);
    int revoker = rig_ask(&rig, "POST /api/x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");

    read_head(revoker, head, sizeof(head));
    expect(sse, "0\r\n\r\n");
    expect_end(sse);
    read_head(poll_early, head, sizeof(head));
    has(head, "HTTP/1.1 403 ");
    expect_end(other_sse);
    expect_end(other_poll);
    say(other_plain, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    expect(plain, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    (void)close(revoker);
    (void)close(poll_early);
    (void)close(plain);
    (void)close(other_plain);
    rig_close(&rig);
}

/* The server's end: likewise, but that who waits is told to come again. */
static void the_end_of_the_server(void **state)
{
    struct rig rig;
    int sse;
    int waiting;
    int plain;
    char head[4096];

    (void)state;
    rig_open(&rig, NULL);
    int other_sse = ask_and_take(&rig, GET_SSE, &sse);

    say(other_sse, SSE_HEAD "\r\ndata: x\n\n");
    expect(sse, SSE_HEAD "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
                         "00000009\r\ndata: x\n\n\r\n");
    int other_poll = ask_and_take(&rig, GET_POLL, &waiting);
    int other_plain = ask_and_take(&rig, GET, &plain);

    assert_int_equal(kill(rig.server, SIGTERM), 0);
    expect(sse, "0\r\n\r\n");
    expect_end(sse);
    read_head(waiting, head, sizeof(head));
    has(head, "HTTP/1.1 503 ");
    has(head, "Connection: close\r\n");
    char body[512] = "";

    assert_true(recv(waiting, body, sizeof(body) - 1, 0) > 0);
    has(body, "\"server.draining\"");
    say(other_plain, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    expect(plain, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
    expect_end(plain);
    (void)close(waiting);
    (void)close(other_sse);
    (void)close(other_poll);
    (void)close(other_plain);
    rig_wait(&rig);
}

/* The server is told to end with everything under way and nobody letting go. */
static void the_end_with_clients_gone(void **state)
{
    struct rig rig;
    int client;

    (void)state;
    rig_open(&rig, NULL);
    int other = ask_and_take(&rig, GET, &client);

    reset(client);
    assert_int_equal(kill(rig.server, SIGTERM), 0);
    expect_end(other);
    rig_wait(&rig);
}

/* One more than may be is refused, and let in once another has ended. */
static void too_many(void **state)
{
    const struct upstream_bounds bounds = {.relays_max = 1};
    struct rig rig;
    char head[4096];
    int client;

    (void)state;
    rig_open(&rig, &bounds);
    int other = ask_and_take(&rig, GET_SSE, &client);
    int second = rig_ask(&rig, GET_SSE);
    char body[512] = "";

    read_head(second, head, sizeof(head));
    has(head, "HTTP/1.1 503 ");
    assert_true(recv(second, body, sizeof(body) - 1, 0) > 0);
    has(body, "\"server.busy\"");
    (void)close(client);
    expect_end(other); /* so it is free */
    for (;;) {
        /* But for the moment that its memory takes to go. */
        say(second, GET);
        struct pollfd either[2] = {{.fd = rig.listener, .events = POLLIN},
                                   {.fd = second, .events = POLLIN}};

        assert_true(poll(either, 2, SERVER_RIG_HANG_S * 1000) > 0);
        if ((either[0].revents & POLLIN) != 0) {
            break;
        }
        read_head(second, head, sizeof(head));
        assert_true(recv(second, body, sizeof(body) - 1, 0) > 0);
    }
    other = rig_take(&rig, head, sizeof(head));
    say(other, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    expect(second, "HTTP/1.1 200 OK\r\n");
    (void)close(second);
    (void)close(other);
    rig_close(&rig);
}

/* URLs that lead nowhere are refused at the start. */
static void bad_urls(void **state)
{
    const struct upstream_config config = {.url = "ftp://a/", .refuse = rig_refuse};
    struct upstream *u = NULL;
    struct errmsg msg = {{0}};

    (void)state;
    assert_int_equal(upstream_open(&config, &u, &msg), ERR_INVALID);
    assert_non_null(strstr(msg.text, "http://"));
    assert_null(u);
    upstream_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_passed_on),
        cmocka_unit_test(answers_are_passed_on),
        cmocka_unit_test(bodies_that_are_not),
        cmocka_unit_test(chunked_bodies),
        cmocka_unit_test(failures_before_the_head),
        cmocka_unit_test(failures_of_the_network),
        cmocka_unit_test(large_heads),
        cmocka_unit_test(the_operator_is_told),
        cmocka_unit_test(failures_within_the_body),
        cmocka_unit_test(events_trickle),
        cmocka_unit_test(slow_readers),
        cmocka_unit_test(clients_that_go),
        cmocka_unit_test(rights_that_end),
        cmocka_unit_test(the_end_of_the_server),
        cmocka_unit_test(the_end_with_clients_gone),
        cmocka_unit_test(too_many),
        cmocka_unit_test(bad_urls),
    };

    return UNIT_RUN(tests);
}
