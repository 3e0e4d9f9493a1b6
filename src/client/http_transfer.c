/* The head is read line by line (http_head.h) and judged when it is whole: from then on the body is
 * either handed out, or kept (a listing, the sentence of a refusal), or passed over.
 *
 * libcurl sends a request again by itself when a connection that had been used before turns out to
 * be dead. An append that is not to be sent twice must not be part of that: see on_send. */
#include "client/http_transfer.h"

#include "base/json_value.h"
#include "base/limits.h"
#include "client/client.h"
#include "client/http_failure.h"
#include "client/http_listing.h"
#include "client/http_sentence.h"

#include <sys/socket.h>
#include <time.h>

#define RECEIVE_BYTES 32768L /* of a piece */

bool http_transfer_is_live(const struct call *call)
{
    return call->verb == CALL_LONG_POLL || call->verb == CALL_SSE;
}

bool http_transfer_hands_out(const struct call *call)
{
    return call->verb == CALL_READ || http_transfer_is_live(call);
}

/* ------------------------------------------------------------------------------ an answer comes */

/* Fails the call, for libcurl to end the transfer. */
#define REFUSE(t, ...)                                          \
    do {                                                        \
        (t)->stop = HTTP_STOP_FAILED;                           \
        call_fail((t)->call, STREAM_ERROR_FORMAT, __VA_ARGS__); \
    } while (0)

/* The head of a good answer is whole: does it say what the protocol has it say? */
static void judge_good(struct http_transfer *t)
{
    const struct stream_info *info = &t->call->result.info;
    int status = t->head.status;
    bool empty = status == 204;

    if (t->head.malformed != NULL) {
        REFUSE(t, "%s of the answer is malformed", t->head.malformed);
    } else if (t->call->verb == CALL_LIST) {
        if (status != 200 || !t->head.is_json) {
            REFUSE(t, "the answer is no listing of streams");
        }
        t->body = HTTP_BODY_KEEP;
    } else if (t->call->verb == CALL_REQUEST) {
        t->body = HTTP_BODY_ANSWER;
    } else if (t->call->verb == CALL_SSE) {
        if (status != 200 || !t->head.is_event_stream) {
            REFUSE(t, "the answer is \"%.100s\", not text/event-stream", info->content_type);
        }
    } else if (t->call->verb != CALL_DELETE && info->next_offset[0] == '\0' &&
               !(info->duplicate && info->producer_seq >= 0)) {
        /* Servers need not tell it in their answer to a repeat. */
        REFUSE(t,
               "the answer has no Stream-Next-Offset, so this is no server of Durable Streams "
               "(status %d)",
               status);
    } else if (http_transfer_hands_out(t->call) && status != 200 && !empty) {
        REFUSE(t, "the protocol knows no status %d here", status);
    }
}

static void judge(struct http_transfer *t)
{
    struct call *call = t->call;
    int status = t->head.status;

    call->result.info.created = call->verb == CALL_CREATE && status == 201;
    /* A close without a body is 204 in any case. */
    call->result.info.duplicate = call->verb == CALL_APPEND && call->producer_id != NULL &&
                                  call->body.len > 0 && status == 204;
    if (status < 200 || status > 299) {
        t->body = HTTP_BODY_KEEP; /* for its sentence */
        return;
    }
    t->body = http_transfer_hands_out(call) ? HTTP_BODY_HAND_OUT : HTTP_BODY_PASS;
    judge_good(t);
}

static size_t on_header(char *bytes, size_t size, size_t count, void *context)
{
    struct http_transfer *t = context;
    bool before = t->head.whole;

    if (!http_head_line(&t->head, t->call, (struct slice){bytes, size * count})) {
        REFUSE(t, "the head of the answer is longer than %u bytes", CLIENT_HEAD_BYTES_MAX);
        return 0;
    }
    t->heard_ms = client_now_ms();
    if (t->head.whole && !before) {
        judge(t);
    }
    return t->stop == HTTP_STOP_NOT ? size * count : 0;
}

/* Keeps as much as is looked at; a listing that is too long fails. */
static size_t keep(struct http_transfer *t, struct slice bytes)
{
    size_t room = t->kept.max - t->kept.len;

    if (bytes.len > room && t->head.status == 200) {
        REFUSE(t, "the page of the listing is longer than %u bytes", CLIENT_LISTING_BYTES_MAX);
        return 0;
    }
    t->ignored_bytes += bytes.len > room ? bytes.len - room : 0;
    buf_append(&t->kept, (struct slice){bytes.ptr, bytes.len < room ? bytes.len : room});
    if (t->ignored_bytes > CLIENT_IGNORED_BYTES_MAX) {
        t->stop = HTTP_STOP_IGNORED;
        return 0;
    }
    return bytes.len;
}

/* The answer to a request is kept whole, or the call fails. */
static size_t answer(struct http_transfer *t, struct slice bytes)
{
    struct buf *out = t->call->answer;
    bool fits = bytes.len <= out->max - out->len;

    buf_append(out, bytes);
    if (!fits) {
        REFUSE(t, "the answer is longer than %zu bytes", out->max);
    } else if (out->failed) {
        t->stop = HTTP_STOP_FAILED;
        call_fail(t->call, STREAM_ERROR_MEMORY, "out of memory");
    }
    return out->failed ? 0 : bytes.len;
}

static size_t hand_out(struct http_transfer *t, struct slice bytes)
{
    switch (t->call->on_data(t->call, bytes)) {
    case CALL_TAKEN:
        break;
    case CALL_PAUSE: {
        uint64_t now = client_now_ms();

        t->paused = true;
        t->left_ms = t->deadline_ms > now ? t->deadline_ms - now : 1;
        return CURL_WRITEFUNC_PAUSE;
    }
    case CALL_STOP:
        t->stop = HTTP_STOP_WANTED;
        return 0;
    }
    return bytes.len;
}

static size_t on_body(char *ptr, size_t size, size_t count, void *context)
{
    struct http_transfer *t = context;
    struct slice bytes = {ptr, size * count};

    t->heard_ms = client_now_ms();
    if (bytes.len == 0) {
        return 0;
    }
    if (t->body == HTTP_BODY_HAND_OUT) {
        return hand_out(t, bytes);
    }
    if (t->body == HTTP_BODY_KEEP) {
        return keep(t, bytes);
    }
    if (t->body == HTTP_BODY_ANSWER) {
        return answer(t, bytes);
    }
    t->ignored_bytes += bytes.len;
    if (t->ignored_bytes > CLIENT_IGNORED_BYTES_MAX) {
        t->stop = HTTP_STOP_IGNORED;
        return 0;
    }
    return bytes.len;
}

/* Before each time the request goes out. A second time is only for what may happen twice. */
static int on_send(void *context, char *ip, char *local_ip, int port, int local_port)
{
    struct http_transfer *t = context;
    const struct call *call = t->call;

    (void)ip;
    (void)local_ip;
    (void)port;
    (void)local_port;
    bool once = call->verb == CALL_APPEND
                    ? call->producer_id == NULL && call->body.len > 0 &&
                          !t->settings->options.at_least_once
                    : call->verb == CALL_REQUEST && call_writes(call) && !call->repeatable;

    t->sends++;
    if (t->sends > 1 && once) {
        t->stop = HTTP_STOP_RESEND;
        return CURL_PREREQFUNC_ABORT;
    }
    return CURL_PREREQFUNC_OK;
}

/* ------------------------------------------------------------------------------------ the start */

/* Sets an option; a failure sticks in `code`. The options are of several types, as libcurl has
 * it. */
#define SET(option, value)                                     \
    do {                                                       \
        if (code == CURLE_OK) {                                \
            code = curl_easy_setopt(t->easy, option, (value)); \
        }                                                      \
    } while (0)

static CURLcode set_request(struct http_transfer *t)
{
    const struct http_settings *s = t->settings;
    const struct call *call = t->call;
    CURLcode code = CURLE_OK;

    SET(CURLOPT_URL, t->request.url.ptr);
    SET(CURLOPT_PATH_AS_IS, 1L);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    if (call->verb == CALL_HEAD) {
        SET(CURLOPT_NOBODY, 1L);
    } else if (http_request_has_body(call)) {
        SET(CURLOPT_POST, 1L);
        SET(CURLOPT_POSTFIELDS, call->body.len > 0 ? call->body.ptr : "");
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.len);
        SET(CURLOPT_CUSTOMREQUEST, t->request.method);
    } else {
        SET(CURLOPT_CUSTOMREQUEST, t->request.method);
    }
    SET(CURLOPT_HTTPHEADER, t->request.lines);
    SET(CURLOPT_USERAGENT, s->user_agent);
    /* Events are to come one by one; a compressor would keep them back. */
    if (s->options.compression && call->verb != CALL_SSE) {
        SET(CURLOPT_ACCEPT_ENCODING, "");
    }
    if (t->settings->ca_file != NULL) {
        SET(CURLOPT_CAINFO, t->settings->ca_file);
    }
    return code;
}

/* A program that starts another one does not hand its connections on. */
static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)context;
    (void)purpose;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static CURLcode set_bounds(struct http_transfer *t)
{
    CURLcode code = CURLE_OK;

    SET(CURLOPT_PRIVATE, t);
    SET(CURLOPT_ERRORBUFFER, t->error);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L); /* an abort does not wait for a look-up of a name */
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_OPENSOCKETFUNCTION, open_socket);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)t->settings->options.connect_timeout_ms);
    SET(CURLOPT_BUFFERSIZE, RECEIVE_BYTES);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, t);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, t);
    SET(CURLOPT_PREREQFUNCTION, on_send);
    SET(CURLOPT_PREREQDATA, t);
    return code;
}

void http_transfer_init(struct http_transfer *t, const struct http_settings *settings,
                        struct call *call)
{
    uint64_t limit = (uint64_t)settings->options.request_timeout_ms;
    uint64_t now = client_now_ms();

    *t = (struct http_transfer){.settings = settings, .call = call, .heard_ms = now};
    t->deadline_ms = limit > 0 && !http_transfer_is_live(call) ? now + limit : 0;
    list_init(&t->link);
    buf_init(&t->kept, call->verb == CALL_LIST ? CLIENT_LISTING_BYTES_MAX : CLIENT_SENTENCE_BYTES);
}

bool http_transfer_prepare(struct http_transfer *t, CURL *easy)
{
    if (!http_request_init(&t->request, t->settings, t->call)) {
        return false;
    }
    t->easy = easy;
    t->heard_ms = client_now_ms();
    if (easy == NULL || set_request(t) != CURLE_OK || set_bounds(t) != CURLE_OK) {
        call_fail(t->call, STREAM_ERROR_MEMORY, "out of memory");
        t->easy = NULL;
        return false;
    }
    return true;
}

/* ----------------------------------------------------------------------------------------- time */

uint64_t http_transfer_limit(const struct http_transfer *t)
{
    uint64_t idle = (uint64_t)t->settings->options.idle_timeout_ms;

    if (t->paused) {
        return 0; /* it waits for us */
    }
    if (http_transfer_is_live(t->call)) {
        return idle > 0 ? t->heard_ms + idle : 0;
    }
    return t->deadline_ms;
}

void http_transfer_fail_late(struct http_transfer *t)
{
    const struct stream_client_options *options = &t->settings->options;
    bool live = http_transfer_is_live(t->call);

    t->stop = HTTP_STOP_FAILED;
    call_fail(t->call, STREAM_ERROR_TIMEOUT, "%s: %s within %d ms", t->settings->base.host,
              live ? "nothing was heard" : "there was no whole answer",
              live ? options->idle_timeout_ms : options->request_timeout_ms);
    /* A connection that is dead and does not know it ends here: another one may do better. */
    t->call->result.transient = http_transfer_hands_out(t->call) ||
                                (t->call->verb == CALL_REQUEST && t->call->repeatable);
}

CURLcode http_transfer_resume(struct http_transfer *t)
{
    uint64_t now = client_now_ms();

    t->resume = false;
    t->paused = false;
    t->heard_ms = now;
    t->deadline_ms = t->deadline_ms > 0 ? now + t->left_ms : 0;
    return curl_easy_pause(t->easy, CURLPAUSE_CONT);
}

/* -------------------------------------------------------------------------------------- the end */

/* Whether the request may have reached the server. */
static bool may_have_acted(const struct http_transfer *t)
{
    return t->sends > 0 && call_writes(t->call);
}

static void fail_by_curl(struct http_transfer *t, CURLcode code)
{
    struct http_failure failure;
    long os_errno = 0;
    int limit = t->settings->options.connect_timeout_ms;

    (void)curl_easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &os_errno); /* 0 when it is not known */
    http_failure(code, t->error, (int)os_errno, limit, &failure);
    if (failure.names_host) {
        call_fail(t->call, failure.code, "%s: %s", t->settings->base.host, failure.sentence);
    } else {
        call_fail(t->call, failure.code, "%s", failure.sentence);
    }
    t->call->result.error.outcome_unknown = may_have_acted(t);
    t->call->result.transient = failure.transient;
}

/* Whatever answers in the place of the API, such as the page of a hotspot, does so in HTML. */
static void check_answer(struct http_transfer *t)
{
    struct call *call = t->call;
    struct slice value;

    if (call->answer->len > 0 &&
        (!t->head.is_json || json_text_read(buf_slice(call->answer), &value, NULL) != 0)) {
        call_fail(call, STREAM_ERROR_FORMAT, "the answer is not JSON (content type \"%.100s\")",
                  call->result.info.content_type);
        call->result.error.outcome_unknown = call_writes(call);
    }
}

/* The answer is there as a whole; was it a refusal? */
static void finish_answer(struct http_transfer *t)
{
    struct call *call = t->call;
    struct buf sentence;
    int status = t->head.status;

    if (status >= 200 && status <= 299) {
        if (call->verb == CALL_LIST) {
            http_listing(call, buf_slice(&t->kept));
        } else if (call->verb == CALL_REQUEST) {
            check_answer(t);
        }
        return;
    }
    if (call->refusal != NULL && t->head.is_json) {
        refusal_read(buf_slice(&t->kept), call->refusal);
    }
    buf_init(&sentence, CLIENT_SENTENCE_BYTES);
    http_sentence(buf_slice(&t->kept), t->head.is_json, t->head.is_text, &sentence);
    if (status >= 300 && status <= 399 && sentence.len == 0) {
        buf_append(&sentence, SLICE("the server redirects, which is not followed"));
    }
    call_fail_status(call, status, status == 503 && t->head.has_retry_after, buf_slice(&sentence));
    call->result.error.retry_after_ms = http_head_retry_after(&t->head, (int64_t)time(NULL));
    buf_finish(&sentence);
}

void http_transfer_settle(struct http_transfer *t, CURLcode code)
{
    struct call *call = t->call;
    bool answered = t->head.whole && (code == CURLE_OK || t->stop == HTTP_STOP_IGNORED);

    call->result.resent = t->sends > 1;
    if (t->stop == HTTP_STOP_FAILED) {
        call->result.error.outcome_unknown = may_have_acted(t);
    } else if (t->stop == HTTP_STOP_WANTED) {
        /* The result says all. */
    } else if (answered) {
        call->result.body_whole = code == CURLE_OK;
        finish_answer(t);
    } else if (t->stop == HTTP_STOP_RESEND) {
        call_fail(call, STREAM_ERROR_NETWORK, "%s: the connection broke before the answer came",
                  t->settings->base.host);
        call->result.transient = true;
        call->result.error.outcome_unknown = 1;
    } else {
        fail_by_curl(t, code);
    }
}

void http_transfer_finish(struct http_transfer *t)
{
    list_remove(&t->link);
    http_request_finish(&t->request);
    buf_finish(&t->kept);
}
