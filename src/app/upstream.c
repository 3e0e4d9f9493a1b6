/* The thread takes the news (new relays, relays whose clients have taken something or have gone),
 * lets libcurl work, and looks whose time is up. It sleeps in libcurl's poll, out of which the
 * workers wake it. */
#include "app/upstream.h"

#include "app/relay_fetch.h"
#include "app/relay_serve.h"
#include "base/limits.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define CONNECTIONS_IDLE 64L    /* kept open */
#define WAIT_MS_MAX      1000u  /* no turn is longer */
#define TROUBLE_MS       10000u /* lines on the other server in the log come no closer */

struct upstream {
    struct upstream_config config;
    struct upstream_bounds bounds;
    struct http_base base;
    char *authorization; /* a whole line; NULL: none */
    struct relay_shared shared;
    pthread_t thread;

    /* the thread's */
    struct list relays;
    bool late;           /* the time for the end is over */
    bool failing;        /* and the log says so */
    uint64_t trouble_ms; /* no line before */
};

/* ----------------------------------------------------------------------------------- the thread */

/* Tells the operator that the other server begins to fail, and that it is well again. */
static void tell(struct upstream *u, const char *why)
{
    uint64_t now = relay_now_ms();

    if (why == NULL && u->failing) {
        u->failing = false;
        logger_line(u->config.logger, LOGGER_INFO, "streams at %s can be read again", u->base.host);
    } else if (why != NULL && now >= u->trouble_ms) {
        u->failing = true;
        u->trouble_ms = now + TROUBLE_MS;
        logger_line(u->config.logger, LOGGER_WARN, "streams at %s cannot be read: %s", u->base.host,
                    why);
    }
}

static void end_relay(struct upstream *u, struct relay *r, CURLcode code)
{
    char why[400];
    enum relay_end end = relay_fetch_judge(r, code, why, sizeof(why));

    tell(u, why[0] == '\0' ? NULL : why);
    relay_fetch_stop(r, u->shared.multi);
    relay_end(r, end);
}

static void begin_relay(struct upstream *u, struct relay *r)
{
    list_append(&u->relays, &r->link);
    upstream_head_init(&r->head, u->config.secret);
    if (relay_fetch_begin(r, &u->bounds) &&
        curl_multi_add_handle(u->shared.multi, r->easy) == CURLM_OK) {
        return;
    }
    relay_fetch_stop(r, u->shared.multi);
    tell(u, "out of memory");
    relay_end(r, RELAY_FAILED);
}

static void free_relay(struct upstream *u, struct relay *r)
{
    relay_fetch_stop(r, u->shared.multi);
    list_remove(&r->link);
    relay_destroy(r);
    (void)pthread_mutex_lock(&u->shared.mutex);
    u->shared.count--;
    (void)pthread_mutex_unlock(&u->shared.mutex);
}

/* The next relay that there is news of, or NULL. */
static struct relay *next_news(struct upstream *u, bool *ret_gone)
{
    struct relay *r = NULL;

    (void)pthread_mutex_lock(&u->shared.mutex);
    struct list *first = list_first(&u->shared.news);

    if (first != NULL) {
        r = container_of(first, struct relay, news);
        list_remove(first);
        *ret_gone = r->gone;
    }
    (void)pthread_mutex_unlock(&u->shared.mutex);
    return r;
}

static void take_news(struct upstream *u)
{
    struct relay *r;
    bool gone = false;

    while ((r = next_news(u, &gone)) != NULL) {
        if (gone) {
            free_relay(u, r);
        } else if (list_empty(&r->link)) {
            begin_relay(u, r);
        } else if (relay_take_resume(r) && r->easy != NULL) {
            CURLcode code = relay_fetch_resume(r);

            if (code != CURLE_OK) {
                end_relay(u, r, code);
            }
        }
    }
}

/* Until when the other server may be silent, while this one is about to end; 0: it is not. */
static uint64_t drain_limit(struct upstream *u)
{
    (void)pthread_mutex_lock(&u->shared.mutex);
    uint64_t began_ms = u->shared.draining_ms;

    (void)pthread_mutex_unlock(&u->shared.mutex);
    return began_ms == 0 ? 0 : began_ms + u->bounds.drain_ms;
}

/* Whoever else waits for the other server is told that the time is over. */
static void tell_late(struct upstream *u, uint64_t drain, uint64_t now)
{
    if (drain != 0 && now >= drain && !u->late) {
        u->late = true;
        if (u->config.late != NULL) {
            u->config.late(u->config.late_context);
        }
    }
}

/* When a relay is given up. Live reads the workers end. */
static uint64_t limit_of(const struct upstream *u, const struct relay *r, uint64_t drain)
{
    uint64_t limit = r->easy == NULL ? UINT64_MAX : relay_fetch_limit(r, &u->bounds);

    if (limit == UINT64_MAX || drain == 0) {
        return limit;
    }
    uint64_t silent = r->since_ms + u->bounds.drain_ms;
    uint64_t end = silent > drain ? silent : drain;

    return end < limit ? end : limit;
}

/* Ends those whose time is up; how long may be slept until the next. */
static int end_late(struct upstream *u)
{
    uint64_t now = relay_now_ms();
    uint64_t sleep = WAIT_MS_MAX;
    uint64_t drain = drain_limit(u);

    tell_late(u, drain, now);
    LIST_FOR_EACH(node, &u->relays)
    {
        struct relay *r = container_of(node, struct relay, link);
        uint64_t limit = limit_of(u, r, drain);

        if (now >= limit) {
            r->trouble = "it does not answer in time";
            end_relay(u, r, CURLE_OPERATION_TIMEDOUT);
        } else if (limit - now < sleep) {
            sleep = limit - now;
        }
    }
    return (int)sleep;
}

static bool is_over(struct upstream *u)
{
    (void)pthread_mutex_lock(&u->shared.mutex);
    bool over = u->shared.stopping && u->shared.count == 0;

    (void)pthread_mutex_unlock(&u->shared.mutex);
    return over;
}

static void *run(void *context)
{
    struct upstream *u = context;
    const CURLMsg *message;
    int count = 0;

    for (;;) {
        take_news(u);
        (void)curl_multi_perform(u->shared.multi, &count); /* what fails is in the messages */
        while ((message = curl_multi_info_read(u->shared.multi, &count)) != NULL) {
            char *private = NULL;
            CURLcode code = message->data.result;

            (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private); /* is set */
            end_relay(u, (struct relay *)(void *)private, code);
        }
        if (is_over(u)) {
            break;
        }
        (void)curl_multi_poll(u->shared.multi, NULL, 0, end_late(u), NULL);
    }
    /* Here, where SIGPIPE is blocked: it may still have something to say to the other server. */
    (void)curl_multi_cleanup(u->shared.multi); /* nothing is in it */
    u->shared.multi = NULL;
    return NULL;
}

/* ------------------------------------------------------------------------------------ beginning */

static void fill_in(struct upstream_bounds *b)
{
    b->relays_max = b->relays_max > 0 ? b->relays_max : UPSTREAM_RELAYS_MAX;
    b->connect_ms = b->connect_ms > 0 ? b->connect_ms : UPSTREAM_CONNECT_MS;
    b->head_ms = b->head_ms > 0 ? b->head_ms : UPSTREAM_HEAD_MS;
    b->long_poll_ms = b->long_poll_ms > 0 ? b->long_poll_ms : UPSTREAM_LONG_POLL_MS;
    b->drain_ms = b->drain_ms > 0 ? b->drain_ms : UPSTREAM_DRAIN_MS;
    b->silence_ms = b->silence_ms > 0 ? b->silence_ms : UPSTREAM_SILENCE_MS;
}

/* Frees what an opened one holds; its thread is gone, or never was. */
static void destroy(struct upstream *u)
{
    (void)curl_multi_cleanup(u->shared.multi); /* NULL once there was a thread */
    curl_global_cleanup();
    if (u->authorization != NULL) {
        explicit_bzero(u->authorization, strlen(u->authorization));
    }
    free(u->authorization);
    http_base_finish(&u->base);
    (void)pthread_mutex_destroy(&u->shared.mutex); /* nobody holds it */
    free(u);
}

static int set_authorization(struct upstream *u)
{
    static const char before[] = "Authorization: Bearer ";
    struct slice secret = u->config.secret;

    if (secret.len == 0) {
        return 0;
    }
    u->authorization = malloc(sizeof(before) + secret.len);
    if (u->authorization == NULL) {
        return ERR_NOMEM;
    }
    (void)snprintf(u->authorization, sizeof(before) + secret.len, "%s%.*s", before, (int)secret.len,
                   secret.ptr);
    return 0;
}

/* libcurl writes to sockets that the other side may have closed. */
static int start_thread(struct upstream *u)
{
    sigset_t broken_pipe;
    sigset_t before;

    (void)sigemptyset(&broken_pipe);
    (void)sigaddset(&broken_pipe, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
    int rc = pthread_create(&u->thread, NULL, run, u);

    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc == 0 ? 0 : ERR_AGAIN;
}

int upstream_open(const struct upstream_config *config, struct upstream **ret_upstream,
                  struct errmsg *msg)
{
    struct upstream *u = calloc(1, sizeof(*u));
    struct stream_error error = {.code = STREAM_OK};

    if (u == NULL || pthread_mutex_init(&u->shared.mutex, NULL) != 0) {
        free(u);
        return err_set(msg, ERR_NOMEM, "out of memory");
    }
    u->config = *config;
    u->bounds = config->bounds;
    fill_in(&u->bounds);
    list_init(&u->relays);
    list_init(&u->shared.news);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) {
        u->shared.multi = curl_multi_init();
    }
    if (u->shared.multi == NULL || set_authorization(u) != 0 ||
        curl_multi_setopt(u->shared.multi, CURLMOPT_MAXCONNECTS, CONNECTIONS_IDLE) != CURLM_OK) {
        destroy(u);
        return err_set(msg, ERR_NOMEM, "cannot start libcurl: out of memory");
    }
    if (http_base_init(&u->base, config->url, &error) != STREAM_OK) {
        destroy(u);
        return err_set(msg, ERR_INVALID, "%.200s", error.message);
    }
    if (start_thread(u) != 0) {
        destroy(u);
        return err_set(msg, ERR_AGAIN, "cannot start the thread that reads from another server");
    }
    *ret_upstream = u;
    return 0;
}

void upstream_stop(struct upstream *u)
{
    if (u == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&u->shared.mutex);
    u->shared.draining_ms = relay_now_ms();
    (void)pthread_mutex_unlock(&u->shared.mutex);
}

uint64_t upstream_relays(struct upstream *u)
{
    (void)pthread_mutex_lock(&u->shared.mutex);
    uint64_t count = u->shared.count;

    (void)pthread_mutex_unlock(&u->shared.mutex);
    return count;
}

void upstream_close(struct upstream *u)
{
    if (u == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&u->shared.mutex);
    u->shared.stopping = true;
    (void)curl_multi_wakeup(u->shared.multi); /* when it fails, the thread looks within a second */
    (void)pthread_mutex_unlock(&u->shared.mutex);
    (void)pthread_join(u->thread, NULL); /* the thread is ours */
    destroy(u);
}

/* ------------------------------------------------------------------------------- on the workers */

/* What is waited for. Whether the query is good the other server says. */
static enum relay_kind kind_of(enum http_method method, struct slice query)
{
    struct slice name;
    struct slice value;

    while (method == HTTP_GET && query.ptr != NULL && http_query_next(&query, &name, &value)) {
        if (!slice_equal(name, SLICE("live")) || value.ptr == NULL) {
            continue;
        }
        if (slice_equal(value, SLICE("sse"))) {
            return RELAY_SSE;
        }
        if (slice_equal(value, SLICE("long-poll"))) {
            return RELAY_LONG_POLL;
        }
    }
    return RELAY_PLAIN;
}

static struct relay *make_relay(struct upstream *u, struct exchange *x, struct slice name,
                                struct slice query)
{
    struct relay *r = calloc(1, sizeof(*r));
    const struct upstream_question question = {
        .base = &u->base,
        .authorization = u->authorization,
        .head = exchange_request(x),
        .name = name,
        .query = query,
    };

    if (r == NULL || !upstream_request_init(&r->request, &question)) {
        free(r);
        return NULL;
    }
    r->shared = &u->shared;
    r->refuse = u->config.refuse;
    r->loop = x->worker->loop;
    r->kind = kind_of(x->method, query);
    r->head_only = x->head_only;
    list_init(&r->task.link);
    list_init(&r->news);
    list_init(&r->pieces);
    list_init(&r->link);
    return r;
}

void upstream_read(struct upstream *u, struct exchange *x, struct slice name, struct slice query)
{
    struct relay *r = make_relay(u, x, name, query);

    if (r == NULL) {
        u->config.refuse(x, API_BUSY, "the server has no memory for this just now");
        return;
    }
    if (!relay_serve_begin(r, x)) {
        relay_destroy(r);
        return;
    }
    if (!relay_start(r, u->bounds.relays_max)) {
        relay_serve_cancel(x);
        relay_destroy(r);
        u->config.refuse(x, API_BUSY, "too many reads are under way; try again shortly");
    }
}
