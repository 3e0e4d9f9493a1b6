/* Nothing is followed, decoded or kept: libcurl is asked for the bytes as they are, and each run of
 * them becomes a piece. When the queue is full, libcurl holds on to the run that did not fit and
 * reads no more, so that TCP holds back the other server. */
#include "app/relay_fetch.h"

#include "base/limits.h"
#include "client/http_failure.h"

#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

#define RECEIVE_BYTES    32768L /* of a piece */
#define KEEPALIVE_IDLE_S 30L    /* after so much silence TCP asks whether anybody is there, */
#define KEEPALIVE_NEXT_S 10L    /* and again so often */

uint64_t relay_now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* The head is whole: may the client see it? NULL: yes. */
static const char *judge(struct relay *r)
{
    int status = r->head.status;

    if (status == 401 || status == 403 || status == 407) {
        r->secret_refused = true;
        return "it does not take the secret (--streams-secret-file)";
    }
    if (status >= 300 && status <= 399 && status != 304) {
        return "it redirects, which is not followed (--streams-url)";
    }
    return NULL;
}

static size_t on_header(char *bytes, size_t size, size_t count, void *context)
{
    struct relay *r = context;

    r->since_ms = relay_now_ms();
    if (r->head.whole) {
        return size * count; /* a trailer: nobody was promised any */
    }
    int code = upstream_head_line(&r->head, (struct slice){bytes, size * count});

    if (code != 0) {
        r->trouble = code == ERR_TOOBIG ? "the head of its answer is too large"
                                        : "the head of its answer is malformed";
        return 0;
    }
    if (r->head.whole) {
        r->trouble = judge(r);
        if (r->trouble != NULL) {
            return 0;
        }
        relay_head_done(r);
    }
    return size * count;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *context)
{
    struct relay *r = context;
    bool failed = false;

    r->since_ms = relay_now_ms();
    if (size * count == 0 || relay_push(r, (struct slice){bytes, size * count}, &failed)) {
        return size * count;
    }
    if (failed) {
        r->trouble = "there is no memory for its answer";
        return 0;
    }
    r->held = true;
    return CURL_WRITEFUNC_PAUSE;
}

/* A program that this one starts does not get its connections. */
static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)context;
    (void)purpose;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* Sets an option; a failure sticks in `code`. */
#define SET(option, value)                                     \
    do {                                                       \
        if (code == CURLE_OK) {                                \
            code = curl_easy_setopt(r->easy, option, (value)); \
        }                                                      \
    } while (0)

static CURLcode set_request(struct relay *r)
{
    CURLcode code = CURLE_OK;

    SET(CURLOPT_URL, r->request.url.ptr);
    SET(CURLOPT_PATH_AS_IS, 1L);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_NOBODY, r->head_only ? 1L : 0L);
    SET(CURLOPT_HTTPHEADER, r->request.lines);
    SET(CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE); /* the secret is not for a proxy */
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    return code;
}

static CURLcode set_bounds(struct relay *r, const struct upstream_bounds *bounds)
{
    CURLcode code = CURLE_OK;

    SET(CURLOPT_PRIVATE, r);
    SET(CURLOPT_ERRORBUFFER, r->error);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L); /* who goes does not wait for a look-up of a name */
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
    SET(CURLOPT_TCP_KEEPINTVL, KEEPALIVE_NEXT_S);
    SET(CURLOPT_OPENSOCKETFUNCTION, open_socket);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)bounds->connect_ms);
    SET(CURLOPT_BUFFERSIZE, RECEIVE_BYTES);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, r);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, r);
    return code;
}

bool relay_fetch_begin(struct relay *r, const struct upstream_bounds *bounds)
{
    r->since_ms = relay_now_ms();
    r->easy = curl_easy_init();
    if (r->easy != NULL && set_request(r) == CURLE_OK && set_bounds(r, bounds) == CURLE_OK) {
        return true;
    }
    curl_easy_cleanup(r->easy);
    r->easy = NULL;
    return false;
}

uint64_t relay_fetch_limit(const struct relay *r, const struct upstream_bounds *bounds)
{
    if (r->held) {
        return UINT64_MAX; /* it waits for the client, which has bounds of its own */
    }
    if (!r->head.whole) {
        return r->since_ms + (r->kind == RELAY_LONG_POLL ? bounds->long_poll_ms : bounds->head_ms);
    }
    /* Events may be as far apart as they like; a connection that is dead TCP finds out. */
    return r->kind == RELAY_SSE ? UINT64_MAX : r->since_ms + bounds->silence_ms;
}

enum relay_end relay_fetch_judge(const struct relay *r, CURLcode code, char *why, size_t size)
{
    struct http_failure failure;
    long os_errno = 0;

    why[0] = '\0';
    if (code == CURLE_OK && r->head.whole && r->trouble == NULL) {
        return RELAY_WHOLE;
    }
    if (r->trouble != NULL) {
        (void)snprintf(why, size, "%s", r->trouble);
    } else if (code == CURLE_OK) {
        (void)snprintf(why, size, "its answer has no head");
    } else {
        (void)curl_easy_getinfo(r->easy, CURLINFO_OS_ERRNO, &os_errno); /* 0: it is not known */
        http_failure(code, r->error, (int)os_errno, (int)UPSTREAM_CONNECT_MS, &failure);
        (void)snprintf(why, size, "%s", failure.sentence);
    }
    if (r->secret_refused) {
        return RELAY_REFUSED;
    }
    return r->head_whole ? RELAY_CUT : RELAY_FAILED;
}

CURLcode relay_fetch_resume(struct relay *r)
{
    r->held = false;
    r->since_ms = relay_now_ms();
    return curl_easy_pause(r->easy, CURLPAUSE_CONT);
}

void relay_fetch_stop(struct relay *r, CURLM *multi)
{
    if (r->easy != NULL) {
        (void)curl_multi_remove_handle(multi, r->easy); /* it is in it */
        curl_easy_cleanup(r->easy);
        r->easy = NULL;
    }
}
