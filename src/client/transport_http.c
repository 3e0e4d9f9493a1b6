/* A transfer goes through: queued -> with libcurl -> ended. It ends in one of these ways: libcurl
 * says so; its time is up; it could not even be prepared. `wait` is the only place that ends one,
 * by end_transfer.
 *
 * The queue is ours, not libcurl's, which looks at all that wait whenever one ends. Reads are not
 * counted: a reader that stands still, or follows for days, must not keep appends from a
 * connection. */
#include "client/transport_http.h"

#include "base/version.h"
#include "client/client.h"
#include "client/http_transfer.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define HANDLES_KEPT 16u      /* easy handles that wait to be used again */
#define WAIT_MS_MAX  3600000u /* no turn is longer */

struct http_transport {
    struct transport base;
    struct http_settings settings;
    CURLM *multi;
    struct list transfers;  /* with libcurl */
    struct list queued;     /* waiting for a connection, in order: their deadlines rise */
    struct list unprepared; /* calls that failed without a transfer */
    unsigned counted;       /* of `transfers`, those that max_connections bounds */
    unsigned uncounted;     /* the others */
    CURL *idle[HANDLES_KEPT];
    size_t idle_count;
};

static struct http_transport *of(struct transport *t)
{
    return container_of(t, struct http_transport, base);
}

/* -------------------------------------------------------------------------------- start and end */

/* How many connections libcurl may keep: those of readers come on top. */
static void bound_connections(struct http_transport *transport)
{
    long most = (long)transport->settings.options.max_connections + (long)transport->uncounted;

    (void)curl_multi_setopt(transport->multi, CURLMOPT_MAXCONNECTS, most); /* cannot fail */
}

/* It begins, or ends, to use a connection. */
static void count_transfer(struct http_transport *transport, const struct http_transfer *t,
                           bool begins)
{
    if (http_transfer_hands_out(t->call)) {
        transport->uncounted = begins ? transport->uncounted + 1 : transport->uncounted - 1;
        bound_connections(transport);
    } else {
        transport->counted = begins ? transport->counted + 1 : transport->counted - 1;
    }
}

/* A handle is used again after a transfer that ended well. After others libcurl may hold on to a
 * buffer, and then refuses a size for it. */
static void free_transfer(struct http_transport *transport, struct http_transfer *t,
                          bool ended_well)
{
    if (t->easy != NULL) {
        (void)curl_multi_remove_handle(transport->multi, t->easy); /* it is in it */
        count_transfer(transport, t, false);
    }
    if (ended_well && transport->idle_count < HANDLES_KEPT) {
        curl_easy_reset(t->easy);
        transport->idle[transport->idle_count++] = t->easy;
    } else {
        curl_easy_cleanup(t->easy);
    }
    t->call->transfer = NULL;
    http_transfer_finish(t);
    free(t);
}

/* Others may be cancelled by on_done: walk lists anew. */
static void end_transfer(struct http_transport *transport, struct http_transfer *t, CURLcode code)
{
    struct call *call = t->call;

    http_transfer_settle(t, code);
    free_transfer(transport, t, code == CURLE_OK);
    call->on_done(call);
}

/* The call is failed already; it is to hear of that in the next turn. */
static void end_unprepared_later(struct http_transport *transport, struct call *call)
{
    list_init(&call->link);
    list_append(&transport->unprepared, &call->link);
}

/* Hands a transfer to libcurl. */
static void launch(struct http_transport *transport, struct http_transfer *t)
{
    CURL *easy = transport->idle_count > 0 ? transport->idle[--transport->idle_count]
                                           : curl_easy_init();
    struct call *call = t->call;
    bool good = http_transfer_prepare(t, easy);

    if (good && curl_multi_add_handle(transport->multi, easy) != CURLM_OK) {
        call_fail(call, STREAM_ERROR_MEMORY, "out of memory");
        good = false;
    }
    if (!good) {
        curl_easy_cleanup(easy);
        t->easy = NULL;
        free_transfer(transport, t, false);
        end_unprepared_later(transport, call);
        return;
    }
    list_remove(&t->link);
    list_append(&transport->transfers, &t->link);
    count_transfer(transport, t, true);
}

static bool has_room(const struct http_transport *transport)
{
    return transport->counted < (unsigned)transport->settings.options.max_connections;
}

static void launch_queued(struct http_transport *transport)
{
    while (has_room(transport) && !list_empty(&transport->queued)) {
        launch(transport, container_of(list_first(&transport->queued), struct http_transfer, link));
    }
}

static void start(struct transport *base, struct call *call)
{
    struct http_transport *transport = of(base);
    struct http_transfer *t = malloc(sizeof(*t));

    call->transfer = t;
    list_init(&call->link);
    if (t == NULL) {
        call_fail(call, STREAM_ERROR_MEMORY, "out of memory");
        end_unprepared_later(transport, call);
        return;
    }
    http_transfer_init(t, &transport->settings, call);
    if (http_transfer_hands_out(call) || (has_room(transport) && list_empty(&transport->queued))) {
        launch(transport, t);
    } else {
        list_append(&transport->queued, &t->link);
    }
}

static void cancel(struct transport *base, struct call *call)
{
    list_remove(&call->link);
    if (call->transfer != NULL) {
        free_transfer(of(base), call->transfer, false);
    }
}

static void resume(struct transport *base, struct call *call)
{
    struct http_transfer *t = call->transfer;

    (void)base;
    t->resume = t->paused;
}

/* ------------------------------------------------------------------------------------- the turn */

static bool is_late(const struct http_transfer *t, uint64_t now)
{
    uint64_t limit = http_transfer_limit(t);

    return limit > 0 && now >= limit;
}

static struct http_transfer *first_queued(struct http_transport *transport)
{
    struct list *node = list_first(&transport->queued);

    return node == NULL ? NULL : container_of(node, struct http_transfer, link);
}

static struct http_transfer *find_late(struct http_transport *transport)
{
    uint64_t now = client_now_ms();
    struct http_transfer *first = first_queued(transport);

    LIST_FOR_EACH(node, &transport->transfers)
    {
        struct http_transfer *t = container_of(node, struct http_transfer, link);

        if (is_late(t, now)) {
            return t;
        }
    }
    return first != NULL && is_late(first, now) ? first : NULL;
}

static void end_late(struct http_transport *transport)
{
    struct http_transfer *t;

    while ((t = find_late(transport)) != NULL) {
        http_transfer_fail_late(t);
        end_transfer(transport, t, CURLE_OPERATION_TIMEDOUT);
    }
}

static struct http_transfer *find_resumed(struct http_transport *transport)
{
    LIST_FOR_EACH(node, &transport->transfers)
    {
        struct http_transfer *t = container_of(node, struct http_transfer, link);

        if (t->resume) {
            return t;
        }
    }
    return NULL;
}

static void resume_paused(struct http_transport *transport)
{
    struct http_transfer *t;

    while ((t = find_resumed(transport)) != NULL) {
        CURLcode code = http_transfer_resume(t);

        if (code != CURLE_OK) {
            end_transfer(transport, t, code);
        }
    }
}

/* How long may be slept, not above `timeout_ms`. */
static int sleep_ms(struct http_transport *transport, int timeout_ms)
{
    uint64_t now = client_now_ms();
    uint64_t sleep = timeout_ms >= 0 ? (uint64_t)timeout_ms : WAIT_MS_MAX;
    const struct http_transfer *first = first_queued(transport);
    uint64_t limit = first != NULL ? http_transfer_limit(first) : 0;

    if (!list_empty(&transport->unprepared)) {
        return 0;
    }
    for (const struct list *node = &transport->transfers;;) {
        uint64_t left = limit > now ? limit - now : 0;

        sleep = limit > 0 && left < sleep ? left : sleep;
        node = node->next;
        if (node == &transport->transfers) {
            break;
        }
        const struct http_transfer *t = container_of(node, struct http_transfer, link);

        if (t->resume) {
            return 0;
        }
        limit = http_transfer_limit(t);
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
    const CURLMsg *message;
    int count = 0;

    launch_queued(transport);
    /* Neither can fail but for memory, which shows in the transfers. */
    (void)curl_multi_poll(transport->multi, &wake, 1, sleep_ms(transport, timeout_ms), NULL);
    end_unprepared(transport);
    resume_paused(transport);
    (void)curl_multi_perform(transport->multi, &count);
    while ((message = curl_multi_info_read(transport->multi, &count)) != NULL) {
        char *private = NULL;
        CURLcode code = message->data.result;

        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private); /* is set */
        end_transfer(transport, (struct http_transfer *)(void *)private, code);
    }
    end_late(transport);
}

/* ------------------------------------------------------------------------------------ making it */

/* Ends connections. A server that has gone would make that raise SIGPIPE, since this is a thread of
 * the program's: it is kept from here, and from there. */
static void clean_up_quietly(CURLM *multi)
{
    static const struct timespec now = {0};
    sigset_t broken_pipe;
    sigset_t before;
    sigset_t pending;

    (void)sigemptyset(&broken_pipe);
    (void)sigaddset(&broken_pipe, SIGPIPE);
    (void)sigpending(&pending);
    (void)pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
    (void)curl_multi_cleanup(multi); /* it has no handles */
    if (!sigismember(&pending, SIGPIPE)) {
        (void)sigtimedwait(&broken_pipe, NULL, &now); /* takes it away, if it was raised */
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void destroy(struct transport *base)
{
    struct http_transport *transport = of(base);

    assert(list_empty(&transport->transfers) && list_empty(&transport->queued) &&
           list_empty(&transport->unprepared));
    for (size_t i = 0; i < transport->idle_count; i++) {
        curl_easy_cleanup(transport->idle[i]);
    }
    clean_up_quietly(transport->multi);
    http_base_finish(&transport->settings.base);
    free(transport->settings.authorization);
    free(transport->settings.user_agent);
    free(transport->settings.ca_file);
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
    s->options.bearer = s->options.ca_file = s->options.user_agent = NULL;
    s->user_agent = join("", agent);
    if (options->bearer != NULL) {
        s->authorization = join("Authorization: Bearer ", options->bearer);
    }
    if (options->ca_file != NULL) {
        s->ca_file = join("", options->ca_file);
    }
    return s->user_agent != NULL && (options->bearer == NULL || s->authorization != NULL) &&
           (options->ca_file == NULL || s->ca_file != NULL);
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
    list_init(&transport->queued);
    list_init(&transport->unprepared);
    transport->multi = curl_multi_init();
    if (!copy_texts(transport, options) || transport->multi == NULL) {
        destroy(&transport->base);
        return call_error_set(ret_error, STREAM_ERROR_MEMORY, "out of memory");
    }
    bound_connections(transport);
    *ret_transport = &transport->base;
    return STREAM_OK;
}
