/* A transfer goes through: prepared (start) -> with libcurl -> ended. It ends in one of these ways:
 * libcurl says so; a time limit of ours passed; it could not even be prepared. `wait` is the only
 * place that ends one, by end_transfer.
 *
 * The head is read line by line (http_head.h) and judged when it is whole: from then on the body is
 * either handed out, or kept (a listing, the sentence of a refusal), or passed over.
 *
 * libcurl sends a request again by itself when a connection that had been used before turns out to
 * be dead. An append that is not to be sent twice must not be part of that: see on_send. */
#include "client/transport_http.h"

#include "base/limits.h"
#include "base/version.h"
#include "client/client.h"
#include "client/http_failure.h"
#include "client/http_head.h"
#include "client/http_listing.h"
#include "client/http_request.h"
#include "client/http_sentence.h"

#include <assert.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define HANDLES_KEPT  16u      /* easy handles that wait to be used again */
#define RECEIVE_BYTES 32768L   /* of a piece */
#define WAIT_MS_MAX   3600000u /* no turn is longer */

/* Why a transfer was ended from our side, while libcurl had it. */
enum stop {
    STOP_NOT,     /* it was not */
    STOP_WANTED,  /* by CALL_STOP */
    STOP_FAILED,  /* the call is failed already */
    STOP_IGNORED, /* more of a body that nobody wants */
    STOP_RESEND,  /* libcurl was about to send an append a second time */
};

/* What happens with the body. */
enum body {
    BODY_HAND_OUT,
    BODY_KEEP,
    BODY_PASS,
};

struct transfer {
    struct list link; /* on transfers or on unprepared */
    struct http_transport *transport;
    struct call *call;
    CURL *easy; /* owned; NULL: could not be prepared */
    struct http_request request;
    struct http_head head;
    enum body body;
    enum stop stop;
    struct buf kept;      /* body of a refusal or of a listing */
    size_t ignored_bytes; /* passed over so far */
    unsigned sends;       /* requests on the wire */
    bool paused;          /* on_data said so */
    bool resume;          /* and was taken back */
    uint64_t deadline_ms; /* for all of the answer; 0: none */
    uint64_t left_ms;     /* while paused: what remained of that */
    uint64_t heard_ms;    /* of a live answer: when there was a byte */
    char error[CURL_ERROR_SIZE];
};

struct http_transport {
    struct transport base;
    struct http_settings settings;
    char *ca_file; /* owned, as all texts here; NULL: the system's certificates */
    CURLM *multi;
    struct list transfers;
    struct list unprepared;
    CURL *idle[HANDLES_KEPT];
    size_t idle_count;
};

static struct http_transport *of(struct transport *t)
{
    return container_of(t, struct http_transport, base);
}

static bool is_live(const struct call *call)
{
    return call->verb == CALL_LONG_POLL || call->verb == CALL_SSE;
}

static bool hands_out(const struct call *call)
{
    return call->verb == CALL_READ || is_live(call);
}

/* ------------------------------------------------------------------------------ an answer comes */

/* Fails the call, for libcurl to end the transfer. */
#define REFUSE(t, ...)                                          \
    do {                                                        \
        (t)->stop = STOP_FAILED;                                \
        call_fail((t)->call, STREAM_ERROR_FORMAT, __VA_ARGS__); \
    } while (0)

/* The head of a good answer is whole: does it say what the protocol has it say? */
static void judge_good(struct transfer *t)
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
        t->body = BODY_KEEP;
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
    } else if (hands_out(t->call) && status != 200 && !empty) {
        REFUSE(t, "the protocol knows no status %d here", status);
    }
}

static void judge(struct transfer *t)
{
    struct call *call = t->call;
    int status = t->head.status;

    call->result.info.created = call->verb == CALL_CREATE && status == 201;
    /* A close without a body is 204 in any case. */
    call->result.info.duplicate = call->verb == CALL_APPEND && call->producer_id != NULL &&
                                  call->body.len > 0 && status == 204;
    if (status < 200 || status > 299) {
        t->body = BODY_KEEP; /* for its sentence */
        return;
    }
    t->body = hands_out(call) ? BODY_HAND_OUT : BODY_PASS;
    judge_good(t);
}

static size_t on_header(char *bytes, size_t size, size_t count, void *context)
{
    struct transfer *t = context;
    bool before = t->head.whole;

    if (!http_head_line(&t->head, t->call, (struct slice){bytes, size * count})) {
        REFUSE(t, "the head of the answer is longer than %u bytes", CLIENT_HEAD_BYTES_MAX);
        return 0;
    }
    t->heard_ms = client_now_ms();
    if (t->head.whole && !before) {
        judge(t);
    }
    return t->stop == STOP_NOT ? size * count : 0;
}

/* Keeps as much as is looked at; a listing that is too long fails. */
static size_t keep(struct transfer *t, struct slice bytes)
{
    size_t room = t->kept.max - t->kept.len;

    if (bytes.len > room && t->head.status == 200) {
        REFUSE(t, "the page of the listing is longer than %u bytes", CLIENT_LISTING_BYTES_MAX);
        return 0;
    }
    t->ignored_bytes += bytes.len > room ? bytes.len - room : 0;
    buf_append(&t->kept, (struct slice){bytes.ptr, bytes.len < room ? bytes.len : room});
    if (t->ignored_bytes > CLIENT_IGNORED_BYTES_MAX) {
        t->stop = STOP_IGNORED;
        return 0;
    }
    return bytes.len;
}

static size_t hand_out(struct transfer *t, struct slice bytes)
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
        t->stop = STOP_WANTED;
        return 0;
    }
    return bytes.len;
}

static size_t on_body(char *ptr, size_t size, size_t count, void *context)
{
    struct transfer *t = context;
    struct slice bytes = {ptr, size * count};

    t->heard_ms = client_now_ms();
    if (bytes.len == 0) {
        return 0;
    }
    if (t->body == BODY_HAND_OUT) {
        return hand_out(t, bytes);
    }
    if (t->body == BODY_KEEP) {
        return keep(t, bytes);
    }
    t->ignored_bytes += bytes.len;
    if (t->ignored_bytes > CLIENT_IGNORED_BYTES_MAX) {
        t->stop = STOP_IGNORED;
        return 0;
    }
    return bytes.len;
}

/* Before each time the request goes out. A second time is only for what may happen twice. */
static int on_send(void *context, char *ip, char *local_ip, int port, int local_port)
{
    struct transfer *t = context;
    const struct call *call = t->call;

    (void)ip;
    (void)local_ip;
    (void)port;
    (void)local_port;
    t->sends++;
    if (t->sends > 1 && call->verb == CALL_APPEND && call->producer_id == NULL &&
        call->body.len > 0 && !t->transport->settings.options.at_least_once) {
        t->stop = STOP_RESEND;
        return CURL_PREREQFUNC_ABORT;
    }
    return CURL_PREREQFUNC_OK;
}

/* -------------------------------------------------------------------------------------- the end */

/* Whether the request may have reached the server. */
static bool may_have_acted(const struct transfer *t)
{
    return t->sends > 0 && (t->call->verb == CALL_CREATE || t->call->verb == CALL_APPEND ||
                            t->call->verb == CALL_DELETE);
}

static void fail_by_curl(struct transfer *t, CURLcode code)
{
    struct http_failure failure;
    long os_errno = 0;
    int limit = t->transport->settings.options.connect_timeout_ms;

    (void)curl_easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &os_errno); /* 0 when it is not known */
    http_failure(code, t->error, (int)os_errno, limit, &failure);
    if (failure.names_host) {
        call_fail(t->call, failure.code, "%s: %s", t->transport->settings.base.host,
                  failure.sentence);
    } else {
        call_fail(t->call, failure.code, "%s", failure.sentence);
    }
    t->call->result.error.outcome_unknown = may_have_acted(t);
    t->call->result.transient = failure.transient;
}

/* The answer is there as a whole; was it a refusal? */
static void finish_answer(struct transfer *t)
{
    struct call *call = t->call;
    struct buf sentence;
    int status = t->head.status;

    if (status >= 200 && status <= 299) {
        if (call->verb == CALL_LIST) {
            http_listing(call, buf_slice(&t->kept));
        }
        return;
    }
    buf_init(&sentence, CLIENT_SENTENCE_BYTES);
    http_sentence(buf_slice(&t->kept), t->head.is_json, t->head.is_text, &sentence);
    if (status >= 300 && status <= 399 && sentence.len == 0) {
        buf_append(&sentence, SLICE("the server redirects, which is not followed"));
    }
    call_fail_status(call, status, status == 503 && (t->head.is_problem || t->head.has_retry_after),
                     buf_slice(&sentence));
    call->result.error.retry_after_ms = http_head_retry_after(&t->head, (int64_t)time(NULL));
    buf_finish(&sentence);
}

/* A handle is used again after a transfer that ended well. After others libcurl may hold on to a
 * buffer, and then refuses a size for it. */
static void free_transfer(struct transfer *t, bool ended_well)
{
    struct http_transport *transport = t->transport;

    list_remove(&t->link);
    t->call->transfer = NULL;
    if (ended_well && transport->idle_count < HANDLES_KEPT) {
        curl_easy_reset(t->easy);
        transport->idle[transport->idle_count++] = t->easy;
    } else {
        curl_easy_cleanup(t->easy);
    }
    http_request_finish(&t->request);
    buf_finish(&t->kept);
    free(t);
}

static void end_transfer(struct transfer *t, CURLcode code)
{
    struct call *call = t->call;
    bool answered = t->head.whole && (code == CURLE_OK || t->stop == STOP_IGNORED);

    call->result.resent = t->sends > 1;
    if (t->stop == STOP_FAILED) {
        call->result.error.outcome_unknown = may_have_acted(t);
    } else if (t->stop == STOP_WANTED) {
        /* The result says all. */
    } else if (answered) {
        call->result.body_whole = code == CURLE_OK;
        finish_answer(t);
    } else if (t->stop == STOP_RESEND) {
        call_fail(call, STREAM_ERROR_NETWORK, "%s: the connection broke before the answer came",
                  t->transport->settings.base.host);
        call->result.transient = true;
        call->result.error.outcome_unknown = 1;
    } else {
        fail_by_curl(t, code);
    }
    free_transfer(t, code == CURLE_OK);
    call->on_done(call);
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

static CURLcode set_request(struct transfer *t)
{
    const struct http_settings *s = &t->transport->settings;
    const struct call *call = t->call;
    CURLcode code = CURLE_OK;

    SET(CURLOPT_URL, t->request.url.ptr);
    SET(CURLOPT_PATH_AS_IS, 1L);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    if (call->verb == CALL_HEAD) {
        SET(CURLOPT_NOBODY, 1L);
    } else if (call->verb == CALL_CREATE || call->verb == CALL_APPEND) {
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
    if (t->transport->ca_file != NULL) {
        SET(CURLOPT_CAINFO, t->transport->ca_file);
    }
    return code;
}

static CURLcode set_bounds(struct transfer *t)
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
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)t->transport->settings.options.connect_timeout_ms);
    SET(CURLOPT_BUFFERSIZE, RECEIVE_BYTES);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, t);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, t);
    SET(CURLOPT_PREREQFUNCTION, on_send);
    SET(CURLOPT_PREREQDATA, t);
    return code;
}

/* False when it could not be prepared: the call is failed. */
static bool prepare(struct http_transport *transport, struct transfer *t)
{
    if (!http_request_init(&t->request, &transport->settings, t->call)) {
        return false;
    }
    t->easy = transport->idle_count > 0 ? transport->idle[--transport->idle_count]
                                        : curl_easy_init();
    if (t->easy == NULL || set_request(t) != CURLE_OK || set_bounds(t) != CURLE_OK ||
        curl_multi_add_handle(transport->multi, t->easy) != CURLM_OK) {
        call_fail(t->call, STREAM_ERROR_MEMORY, "out of memory");
        return false;
    }
    return true;
}

static void start(struct transport *base, struct call *call)
{
    struct http_transport *transport = of(base);
    struct transfer *t = calloc(1, sizeof(*t));
    uint64_t now = client_now_ms();
    uint64_t limit = (uint64_t)transport->settings.options.request_timeout_ms;

    call->transfer = t;
    if (t == NULL) {
        /* There is nothing to hang the end on but the call itself. */
        call_fail(call, STREAM_ERROR_MEMORY, "out of memory");
        list_init(&call->link);
        list_append(&transport->unprepared, &call->link);
        return;
    }
    t->transport = transport;
    t->call = call;
    t->deadline_ms = limit > 0 && !is_live(call) ? now + limit : 0;
    t->heard_ms = now;
    list_init(&t->link);
    list_init(&call->link);
    buf_init(&t->kept, call->verb == CALL_LIST ? CLIENT_LISTING_BYTES_MAX : CLIENT_SENTENCE_BYTES);
    if (prepare(transport, t)) {
        list_append(&transport->transfers, &t->link);
    } else {
        free_transfer(t, false);
        list_append(&transport->unprepared, &call->link);
    }
}

static void cancel(struct transport *base, struct call *call)
{
    struct http_transport *transport = of(base);
    struct transfer *t = call->transfer;

    list_remove(&call->link);
    if (t != NULL) {
        (void)curl_multi_remove_handle(transport->multi, t->easy); /* it is in it */
        free_transfer(t, false);
    }
}

static void resume(struct transport *base, struct call *call)
{
    struct transfer *t = call->transfer;

    (void)base;
    t->resume = t->paused;
}

/* ------------------------------------------------------------------------------------- the turn */

/* When time is up for a transfer; 0: never. */
static uint64_t limit_of(const struct http_transport *transport, const struct transfer *t)
{
    uint64_t idle = (uint64_t)transport->settings.options.idle_timeout_ms;

    if (t->paused) {
        return 0; /* it waits for us */
    }
    if (is_live(t->call)) {
        return idle > 0 ? t->heard_ms + idle : 0;
    }
    return t->deadline_ms;
}

/* Takes a transfer from libcurl and ends it. Others may end with it: walk lists anew. */
static void end_early(struct transfer *t, CURLcode code)
{
    (void)curl_multi_remove_handle(t->transport->multi, t->easy); /* it is in it */
    end_transfer(t, code);
}

static void fail_late(struct transfer *t)
{
    const struct stream_client_options *options = &t->transport->settings.options;
    bool live = is_live(t->call);

    t->stop = STOP_FAILED;
    call_fail(t->call, STREAM_ERROR_TIMEOUT, "%s: %s within %d ms",
              t->transport->settings.base.host,
              live ? "nothing was heard" : "there was no whole answer",
              live ? options->idle_timeout_ms : options->request_timeout_ms);
    t->call->result.transient = hands_out(t->call);
}

static struct transfer *find_late(struct http_transport *transport)
{
    uint64_t now = client_now_ms();

    LIST_FOR_EACH(node, &transport->transfers)
    {
        struct transfer *t = container_of(node, struct transfer, link);
        uint64_t limit = limit_of(transport, t);

        if (limit > 0 && now >= limit) {
            return t;
        }
    }
    return NULL;
}

static void end_late(struct http_transport *transport)
{
    struct transfer *t;

    while ((t = find_late(transport)) != NULL) {
        fail_late(t);
        end_early(t, CURLE_OPERATION_TIMEDOUT);
    }
}

static struct transfer *find_resumed(struct http_transport *transport)
{
    LIST_FOR_EACH(node, &transport->transfers)
    {
        struct transfer *t = container_of(node, struct transfer, link);

        if (t->resume) {
            return t;
        }
    }
    return NULL;
}

/* libcurl hands out what it held back before curl_easy_pause returns. */
static void resume_paused(struct http_transport *transport)
{
    struct transfer *t;

    while ((t = find_resumed(transport)) != NULL) {
        uint64_t now = client_now_ms();

        t->resume = false;
        t->paused = false;
        t->heard_ms = now;
        t->deadline_ms = t->deadline_ms > 0 ? now + t->left_ms : 0;
        CURLcode code = curl_easy_pause(t->easy, CURLPAUSE_CONT);

        if (code != CURLE_OK) {
            end_early(t, code);
        }
    }
}

/* How long may be slept, not above `timeout_ms`. */
static int sleep_ms(struct http_transport *transport, int timeout_ms)
{
    uint64_t now = client_now_ms();
    uint64_t sleep = timeout_ms >= 0 ? (uint64_t)timeout_ms : WAIT_MS_MAX;

    if (!list_empty(&transport->unprepared)) {
        return 0;
    }
    LIST_FOR_EACH(node, &transport->transfers)
    {
        const struct transfer *t = container_of(node, struct transfer, link);
        uint64_t limit = limit_of(transport, t);
        uint64_t left = limit > now ? limit - now : 0;

        if (t->resume) {
            return 0;
        }
        sleep = limit > 0 && left < sleep ? left : sleep;
    }
    return (int)(sleep < WAIT_MS_MAX ? sleep : WAIT_MS_MAX);
}

static void end_unprepared(struct http_transport *transport)
{
    for (struct list *node; (node = list_first(&transport->unprepared)) != NULL;) {
        struct call *call = container_of(node, struct call, link);

        list_remove(node);
        call->on_done(call);
    }
}

static void wait_http(struct transport *base, int wake_fd, int timeout_ms)
{
    struct http_transport *transport = of(base);
    struct curl_waitfd wake = {.fd = wake_fd, .events = CURL_WAIT_POLLIN};
    int timeout = sleep_ms(transport, timeout_ms);
    const CURLMsg *message;
    int count = 0;

    /* Neither can fail but for memory, which shows in the transfers. */
    (void)curl_multi_poll(transport->multi, &wake, 1, timeout, NULL);
    end_unprepared(transport);
    resume_paused(transport);
    (void)curl_multi_perform(transport->multi, &count);
    while ((message = curl_multi_info_read(transport->multi, &count)) != NULL) {
        char *private = NULL;
        CURL *easy = message->easy_handle;
        CURLcode code = message->data.result;

        (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private); /* always known */
        (void)curl_multi_remove_handle(transport->multi, easy);    /* it is in it */
        end_transfer((struct transfer *)(void *)private, code);
    }
    end_late(transport);
}

/* ---------------------------------------------------------------------------- making it */

static void destroy(struct transport *base)
{
    struct http_transport *transport = of(base);

    assert(list_empty(&transport->transfers) && list_empty(&transport->unprepared));
    for (size_t i = 0; i < transport->idle_count; i++) {
        curl_easy_cleanup(transport->idle[i]);
    }
    (void)curl_multi_cleanup(transport->multi); /* it has no handles */
    http_base_finish(&transport->settings.base);
    free(transport->settings.authorization);
    free(transport->settings.user_agent);
    free(transport->ca_file);
    free(transport);
}

static const struct transport_ops ops = {
    .start = start,
    .cancel = cancel,
    .resume = resume,
    .wait = wait_http,
    .destroy = destroy,
};

/* A copy of "before" and "text"; NULL when memory is out. */
static char *join(const char *before, const char *text)
{
    size_t size = strlen(before) + strlen(text) + 1;
    char *joined = malloc(size);

    if (joined != NULL) {
        (void)snprintf(joined, size, "%s%s", before, text);
    }
    return joined;
}

/* Copies what the options hold of texts. */
static bool copy_texts(struct http_transport *transport,
                       const struct stream_client_options *options)
{
    struct http_settings *s = &transport->settings;
    const char *agent = options->user_agent != NULL ? options->user_agent : "arbe/" ARBE_VERSION;

    s->options = *options;
    s->user_agent = join("", agent);
    if (options->bearer != NULL) {
        s->authorization = join("Authorization: Bearer ", options->bearer);
    }
    if (options->ca_file != NULL) {
        transport->ca_file = join("", options->ca_file);
    }
    return s->user_agent != NULL && (options->bearer == NULL || s->authorization != NULL) &&
           (options->ca_file == NULL || transport->ca_file != NULL);
}

static int check_texts(const struct stream_client_options *options, struct stream_error *ret_error)
{
    if (options->bearer != NULL &&
        (options->bearer[0] == '\0' || !call_value_good(options->bearer))) {
        return call_error_set(ret_error, STREAM_ERROR_ARGUMENT,
                              "bearer is empty or holds control characters");
    }
    if (options->user_agent != NULL && !call_value_good(options->user_agent)) {
        return call_error_set(ret_error, STREAM_ERROR_ARGUMENT,
                              "user_agent holds control characters");
    }
    return STREAM_OK;
}

int transport_http_new(const char *base_url, const struct stream_client_options *options,
                       struct transport **ret_transport, struct stream_error *ret_error)
{
    int code = check_texts(options, ret_error);
    struct http_base url = {0};

    if (code == STREAM_OK) {
        code = http_base_init(&url, base_url, ret_error);
    }
    if (code != STREAM_OK) {
        return code;
    }
    struct http_transport *transport = calloc(1, sizeof(*transport));

    if (transport == NULL) {
        http_base_finish(&url);
        return call_error_set(ret_error, STREAM_ERROR_MEMORY, "out of memory");
    }
    transport->base = (struct transport){.ops = &ops, .has_sse = true};
    transport->settings.base = url;
    list_init(&transport->transfers);
    list_init(&transport->unprepared);
    long connections = options->max_connections;

    transport->multi = curl_multi_init();
    if (transport->multi == NULL || !copy_texts(transport, options) ||
        curl_multi_setopt(transport->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, connections) !=
            CURLM_OK ||
        curl_multi_setopt(transport->multi, CURLMOPT_MAXCONNECTS, connections) != CURLM_OK) {
        destroy(&transport->base);
        return call_error_set(ret_error, STREAM_ERROR_MEMORY, "out of memory");
    }
    *ret_transport = &transport->base;
    return STREAM_OK;
}
