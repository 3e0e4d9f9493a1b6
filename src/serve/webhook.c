/* A request goes through: inbox (any thread) -> queue (waiting for its turn) -> look-up of the
 * host, unless it is an address or was asked for just now -> transfer -> given back. While there
 * are as many look-ups as there may be, who needs one gets no turn. From its turn on it has
 * WEBHOOK_TIMEOUT_MS for all of it. It can end in each of these places when it fails, its time is
 * over, or the sender stops; end_request is the one way out.
 *
 * All but the inbox, the counts and the two flags belong to the sender's thread. */
#include "serve/webhook.h"
#include "serve/keys.h"
#include "serve/webhook_lookup.h"
#include "serve/webhook_queue.h"
#include "serve/webhook_transfer.h"
#include "serve/webhook_url.h"

#include "base/limits.h"
#include "base/list.h"
#include "stream/subscriptions.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#define RESOLVED_MS         30000u /* a host's addresses are not asked for again so soon */
#define TROUBLE_INTERVAL_MS 1000u  /* lines on receivers in the log come no closer */
#define CONNECTIONS_IDLE    64L    /* kept open */
#define KEY_BYTES_MAX       300u   /* host and port */

struct request {
    struct webhook_place place;
    struct subscription_delivery *delivery;
    struct list inbox_link; /* on the inbox */
    struct webhook_url url; /* borrows from the delivery */
    struct lookup *lookup;  /* under way; NULL: none */
    struct webhook_transfer transfer;
    bool in_multi;     /* the transfer is */
    uint64_t until_ms; /* monotonic, once it had its turn */
    char *text;        /* the URL, NUL-terminated, likewise; owned */
};

struct webhook {
    struct webhook_config config;
    struct lookups *lookups;
    struct webhook_queue queue;
    struct list under_way; /* requests that had their turn */
    CURLM *multi;
    pthread_t thread;
    uint64_t refresh_ms; /* monotonic: when to look at the keys again */
    uint64_t trouble_ms; /* monotonic: no line on a receiver before */

    pthread_mutex_t mutex; /* guards what follows */
    struct list inbox;
    bool stopping; /* nothing is sent any more that is not under way */
    uint64_t grace_until_ms;
    struct webhook_stats stats;
};

/* Why a request was given back without an answer that counts. */
enum failure {
    FAILURE_NONE, /* there was one */
    FAILURE_REFUSED,
    FAILURE_TIME,
    FAILURE_OTHER,
    FAILURE_ABORTED,
};

static uint64_t mono_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail for this clock */
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void wake(void *context)
{
    struct webhook *w = context;

    (void)curl_multi_wakeup(w->multi); /* when it fails the thread looks within KEYS_REFRESH_MS */
}

static void count(struct webhook *w, uint64_t *counter)
{
    (void)pthread_mutex_lock(&w->mutex);
    (*counter)++;
    (void)pthread_mutex_unlock(&w->mutex);
}

/* Says when a receiver begins to fail and when it works again; never more than a line a second, for
 * receivers are as many as clients like. `why` it fails; NULL: it works. Never the path. */
static void tell(struct webhook *w, struct webhook_host *host, const char *why)
{
    bool failing = why != NULL;
    bool news = host->failing != failing;
    uint64_t now = mono_ms();

    host->failing = failing;
    if (!news || now < w->trouble_ms) {
        return;
    }
    w->trouble_ms = now + TROUBLE_INTERVAL_MS;
    if (failing) {
        logger_line(w->config.logger, LOGGER_WARN, "webhooks to %s fail: %s", host->key, why);
    } else {
        logger_line(w->config.logger, LOGGER_INFO, "webhooks to %s go through again", host->key);
    }
}

static void free_request(struct request *request)
{
    webhook_transfer_finish(&request->transfer);
    free(request->text);
    free(request);
}

/* Gives a request back, whatever state it is in, but not while it waits in the queue. `why` its
 * receiver is not well; NULL: it is. */
static void end_request(struct webhook *w, struct request *request, enum failure failure,
                        int http_status, const char *why)
{
    struct webhook_host *host = request->place.host;
    uint64_t *counters[] = {&w->stats.answered, &w->stats.refused, &w->stats.timed_out,
                            &w->stats.failed, &w->stats.aborted};

    if (request->in_multi) {
        (void)curl_multi_remove_handle(w->multi, request->transfer.easy); /* it is in it */
    }
    if (request->lookup != NULL) {
        lookup_forget(request->lookup);
    }
    if (host != NULL) {
        if (failure != FAILURE_ABORTED) {
            tell(w, host, why);
        }
        list_remove(&request->place.link);
        webhook_queue_end(&w->queue, &request->place, failure == FAILURE_TIME);
        (void)pthread_mutex_lock(&w->mutex);
        w->stats.under_way--;
        (void)pthread_mutex_unlock(&w->mutex);
    }
    count(w, counters[failure]);
    w->config.delivered(w->config.context, request->delivery, http_status,
                        http_status == 0 ? (struct slice){NULL, 0}
                                         : buf_slice(&request->transfer.reply));
    free_request(request);
}

/* The host is known to lead to the internet, or is an address: sends. */
static void start_transfer(struct webhook *w, struct request *request)
{
    struct slice url = request->delivery->url;
    uint64_t now = mono_ms();
    char signature[KEYS_SIGNATURE_BYTES];

    request->text = strndup(url.ptr, url.len); /* has no NUL in it, as was checked */
    struct webhook_order order = {
        .url = request->text,
        .https = request->url.https,
        .allow_loopback = w->config.allow_loopback,
        .body = request->delivery->body,
        .signature = signature,
        .resolved = request->place.host->resolved,
        .timeout_ms = request->until_ms > now ? request->until_ms - now : 1,
        .ca_file = w->config.ca_file,
        .about = request,
    };

    if (request->text == NULL || keys_sign(w->config.keys, order.body, signature) != 0 ||
        webhook_transfer_init(&request->transfer, &order) != 0) {
        end_request(w, request, FAILURE_OTHER, 0, "out of memory");
        return;
    }
    if (curl_multi_add_handle(w->multi, request->transfer.easy) != CURLM_OK) {
        end_request(w, request, FAILURE_OTHER, 0, "out of memory");
        return;
    }
    request->in_multi = true;
}

/* Whether its host's name need not be asked for. */
static bool is_known(const struct request *request)
{
    const struct webhook_host *host = request->place.host;

    return request->url.is_literal ||
           (host->resolved != NULL && mono_ms() < host->resolved_until_ms);
}

/* It is this request's turn. */
static void start_request(struct webhook *w, struct request *request)
{
    char name[256];

    list_append(&w->under_way, &request->place.link);
    (void)pthread_mutex_lock(&w->mutex);
    w->stats.queued--;
    w->stats.under_way++;
    (void)pthread_mutex_unlock(&w->mutex);
    if (w->config.sending) {
        w->config.sending(w->config.context, request->delivery);
    }
    request->until_ms = mono_ms() + w->config.timeout_ms;
    if (is_known(request)) {
        start_transfer(w, request);
        return;
    }
    (void)snprintf(name, sizeof(name), "%.*s", (int)request->url.host.len, request->url.host.ptr);
    int rc = lookup_start(w->lookups, name, request->url.port, request, &request->lookup);

    if (rc != 0) {
        end_request(w, request, FAILURE_OTHER, 0, "no thread to ask for its address");
    }
}

static bool may_look_up(struct webhook *w)
{
    return lookups_running(w->lookups) < w->config.lookups_max;
}

/* The next one that can be sent, or NULL. Hosts whose names cannot be asked for now are put off, so
 * that name servers that hang keep nobody waiting who needs none. */
static struct request *next_request(struct webhook *w)
{
    struct webhook_place *place;
    bool room = may_look_up(w);
    struct webhook_host *first = room ? webhook_queue_first_put_off(&w->queue) : NULL;

    if (first != NULL) {
        webhook_queue_resume(&w->queue, first);
    }
    while ((place = webhook_queue_peek(&w->queue)) != NULL) {
        struct request *request = container_of(place, struct request, place);

        if (room || is_known(request)) {
            (void)webhook_queue_next(&w->queue); /* the same */
            return request;
        }
        webhook_queue_put_off(&w->queue);
    }
    return NULL;
}

static void start_requests(struct webhook *w)
{
    for (;;) {
        (void)pthread_mutex_lock(&w->mutex);
        bool room = w->stats.under_way < w->config.under_way_max && !w->stopping;

        (void)pthread_mutex_unlock(&w->mutex);
        struct request *request = room ? next_request(w) : NULL;

        if (request == NULL) {
            return;
        }
        start_request(w, request);
    }
}

/* A look-up has ended: what it found is kept with the host, for others that go there. */
static void end_lookup(struct webhook *w, struct lookup *lookup)
{
    struct request *request = lookup->about;
    struct webhook_host *host = request->place.host;
    char *resolved = NULL;
    struct errmsg msg = {{0}};
    int rc = ERR_NOTFOUND;

    request->lookup = NULL;
    if (lookup->code != 0) {
        (void)err_set(&msg, rc, "its name leads nowhere: %s", gai_strerror(lookup->code));
    } else {
        rc = webhook_transfer_pin(&request->url, lookup->answers, w->config.allow_loopback,
                                  &resolved, &msg);
    }
    lookup_free(lookup);
    if (rc != 0) {
        end_request(w, request, rc == ERR_PERM ? FAILURE_REFUSED : FAILURE_OTHER, 0, msg.text);
        return;
    }
    free(host->resolved);
    host->resolved = resolved;
    host->resolved_until_ms = mono_ms() + RESOLVED_MS;
    webhook_queue_resume(&w->queue, host);
    start_transfer(w, request);
}

/* libcurl is done with it. */
static void end_transfer(struct webhook *w, CURL *easy, CURLcode code)
{
    char *private = NULL;
    long status = 0;

    (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private); /* both are always known */
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    struct request *request = (struct request *)(void *)private;
    const struct webhook_transfer *t = &request->transfer;
    char why[160];

    if (code == CURLE_OK && status > 0) {
        bool good = status >= 200 && status < 300;

        (void)snprintf(why, sizeof(why), "it answers with status %ld", status);
        end_request(w, request, FAILURE_NONE, (int)status, good ? NULL : why);
    } else if (t->refused != NULL) {
        (void)snprintf(why, sizeof(why), "it leads to an address that is %s", t->refused);
        end_request(w, request, FAILURE_REFUSED, 0, why);
    } else if (t->too_long) {
        end_request(w, request, FAILURE_OTHER, 0, "its reply is too long");
    } else if (code == CURLE_OPERATION_TIMEDOUT) {
        end_request(w, request, FAILURE_TIME, 0, "it does not answer in time");
    } else {
        end_request(w, request, FAILURE_OTHER, 0, curl_easy_strerror(code));
    }
}

/* Moves the inbox to the queue. */
static void take_inbox(struct webhook *w)
{
    struct list inbox;

    list_init(&inbox);
    (void)pthread_mutex_lock(&w->mutex);
    list_append_all(&inbox, &w->inbox);
    (void)pthread_mutex_unlock(&w->mutex);
    LIST_FOR_EACH(node, &inbox)
    {
        struct request *request = container_of(node, struct request, inbox_link);
        char key[KEY_BYTES_MAX];
        int len = 0;

        list_remove(node);
        /* Checked when the subscription was made, but then with other settings perhaps. */
        int rc = webhook_url_parse(request->delivery->url, w->config.allow_loopback, &request->url,
                                   NULL);
        bool refused = rc != 0;

        if (!refused) {
            len = snprintf(key, sizeof(key), "%.*s:%u", (int)request->url.host.len,
                           request->url.host.ptr, request->url.port);
            for (int i = 0; i < len; i++) {
                key[i] = (char)(key[i] >= 'A' && key[i] <= 'Z' ? key[i] | 0x20 : key[i]);
            }
            rc = webhook_queue_push(&w->queue, &request->place, (struct slice){key, (size_t)len});
        }
        if (rc != 0) {
            (void)pthread_mutex_lock(&w->mutex);
            w->stats.queued--;
            (void)pthread_mutex_unlock(&w->mutex);
            end_request(w, request, refused ? FAILURE_REFUSED : FAILURE_OTHER, 0, NULL);
        }
    }
}

/* Gives back what had its turn and whose time ran out before libcurl saw it. */
static void end_slow_lookups(struct webhook *w)
{
    uint64_t now = mono_ms();

    LIST_FOR_EACH(node, &w->under_way)
    {
        struct request *request = container_of(node, struct request, place.link);

        if (request->lookup != NULL && now >= request->until_ms) {
            end_request(w, request, FAILURE_TIME, 0, "its name is not answered in time");
        }
    }
}

/* While stopping: gives back what waits, and when the grace is over everything. True when nothing
 * is left. */
static bool give_back(struct webhook *w)
{
    struct webhook_place *place;

    (void)pthread_mutex_lock(&w->mutex);
    bool stopping = w->stopping;
    bool over = stopping && mono_ms() >= w->grace_until_ms;

    (void)pthread_mutex_unlock(&w->mutex);
    if (!stopping) {
        return false;
    }
    while ((place = webhook_queue_drain(&w->queue)) != NULL) {
        (void)pthread_mutex_lock(&w->mutex);
        w->stats.queued--;
        (void)pthread_mutex_unlock(&w->mutex);
        end_request(w, container_of(place, struct request, place), FAILURE_ABORTED, 0, NULL);
    }
    if (over) {
        LIST_FOR_EACH(node, &w->under_way)
        {
            end_request(w, container_of(node, struct request, place.link), FAILURE_ABORTED, 0,
                        NULL);
        }
    }
    (void)pthread_mutex_lock(&w->mutex);
    bool empty = list_empty(&w->inbox) && list_empty(&w->under_way);

    (void)pthread_mutex_unlock(&w->mutex);
    return empty;
}

static void work(struct webhook *w)
{
    struct lookup *lookup;
    const CURLMsg *message;
    int count_active = 0;
    int count_left = 0;

    take_inbox(w);
    while ((lookup = lookups_take(w->lookups)) != NULL) {
        end_lookup(w, lookup);
    }
    end_slow_lookups(w);
    start_requests(w);
    (void)curl_multi_perform(w->multi, &count_active); /* what fails is in the messages */
    while ((message = curl_multi_info_read(w->multi, &count_left)) != NULL) {
        if (message->msg == CURLMSG_DONE) {
            end_transfer(w, message->easy_handle, message->data.result);
        }
    }
}

static void refresh_keys(struct webhook *w)
{
    struct errmsg msg = {{0}};

    if (mono_ms() < w->refresh_ms) {
        return;
    }
    w->refresh_ms = mono_ms() + KEYS_REFRESH_MS;
    if (keys_refresh(w->config.keys, &msg) != 0 && msg.text[0] != '\0') {
        logger_line(w->config.logger, LOGGER_ERROR, "the keys of webhooks: %s", msg.text);
    }
}

/* Until when there is nothing to do unless something happens. */
static int sleep_ms(struct webhook *w)
{
    uint64_t now = mono_ms();
    uint64_t until = w->refresh_ms;

    LIST_FOR_EACH(node, &w->under_way)
    {
        const struct request *request = container_of(node, struct request, place.link);

        if (request->lookup != NULL && request->until_ms < until) {
            until = request->until_ms;
        }
    }
    (void)pthread_mutex_lock(&w->mutex);
    if (w->stopping && w->grace_until_ms < until) {
        until = w->grace_until_ms;
    }
    (void)pthread_mutex_unlock(&w->mutex);
    return until > now ? (int)(until - now) : 0;
}

static bool may_start(struct webhook *w)
{
    (void)pthread_mutex_lock(&w->mutex);
    bool room = w->stats.under_way < w->config.under_way_max;

    (void)pthread_mutex_unlock(&w->mutex);
    return room && (webhook_queue_peek(&w->queue) != NULL ||
                    (webhook_queue_first_put_off(&w->queue) != NULL && may_look_up(w)));
}

static void *run(void *context)
{
    struct webhook *w = context;

    w->refresh_ms = mono_ms() + KEYS_REFRESH_MS;
    for (;;) {
        work(w);
        if (give_back(w)) {
            break;
        }
        refresh_keys(w);
        /* What has just ended may have made room. */
        (void)curl_multi_poll(w->multi, NULL, 0, may_start(w) ? 0 : sleep_ms(w), NULL);
    }
    return NULL;
}

static void fill_in(struct webhook_config *config)
{
    config->timeout_ms = config->timeout_ms > 0 ? config->timeout_ms : WEBHOOK_TIMEOUT_MS;
    config->under_way_max = config->under_way_max > 0 ? config->under_way_max : WEBHOOKS_MAX;
    config->per_host_max = config->per_host_max > 0 ? config->per_host_max : WEBHOOKS_PER_HOST_MAX;
    config->lookups_max = config->lookups_max > 0 ? config->lookups_max : WEBHOOK_LOOKUPS_MAX;
    config->resolve = config->resolve != NULL ? config->resolve : getaddrinfo;
}

/* Frees what an opened one holds; its thread is gone, or never was. */
static void destroy(struct webhook *w)
{
    if (w->lookups != NULL) {
        lookups_close(w->lookups);
    }
    webhook_queue_finish(&w->queue);
    (void)curl_multi_cleanup(w->multi); /* nothing is in it */
    curl_global_cleanup();
    (void)pthread_mutex_destroy(&w->mutex); /* nobody holds it */
    free(w);
}

int webhook_open(const struct webhook_config *config, struct webhook **ret_webhook,
                 struct errmsg *msg)
{
    struct webhook *w = calloc(1, sizeof(*w));
    uint64_t seed = 0;

    if (w == NULL || pthread_mutex_init(&w->mutex, NULL) != 0) {
        free(w);
        return err_set(msg, ERR_NOMEM, "out of memory");
    }
    w->config = *config;
    fill_in(&w->config);
    list_init(&w->inbox);
    list_init(&w->under_way);
    if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed)) {
        seed = mono_ms(); /* cannot be on Linux; hosts then collide more easily */
    }
    webhook_queue_init(&w->queue, w->config.per_host_max, seed);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) {
        w->multi = curl_multi_init();
    }
    if (w->multi == NULL ||
        curl_multi_setopt(w->multi, CURLMOPT_MAXCONNECTS, CONNECTIONS_IDLE) != CURLM_OK ||
        lookups_open(w->config.resolve, wake, w, &w->lookups) != 0) {
        destroy(w);
        return err_set(msg, ERR_NOMEM, "cannot start libcurl: out of memory");
    }
    if (pthread_create(&w->thread, NULL, run, w) != 0) {
        destroy(w);
        return err_set(msg, ERR_AGAIN, "cannot start the thread that sends webhooks");
    }
    *ret_webhook = w;
    return 0;
}

void webhook_deliver(struct webhook *w, struct subscription_delivery *d)
{
    struct request *request = calloc(1, sizeof(*request));

    (void)pthread_mutex_lock(&w->mutex);
    bool taken = request != NULL && !w->stopping;

    if (taken) {
        request->delivery = d;
        list_init(&request->place.link);
        list_init(&request->inbox_link);
        list_append(&w->inbox, &request->inbox_link);
        w->stats.queued++;
    } else if (request == NULL) {
        w->stats.failed++;
    } else {
        w->stats.aborted++;
    }
    (void)pthread_mutex_unlock(&w->mutex);
    if (taken) {
        wake(w);
        return;
    }
    free(request);
    w->config.delivered(w->config.context, d, 0, (struct slice){NULL, 0});
}

void webhook_stop(struct webhook *w, uint64_t grace_ms)
{
    (void)pthread_mutex_lock(&w->mutex);
    if (!w->stopping) {
        w->stopping = true;
        w->grace_until_ms = mono_ms() + grace_ms;
    }
    (void)pthread_mutex_unlock(&w->mutex);
    wake(w);
}

void webhook_close(struct webhook *w)
{
    if (w == NULL) {
        return;
    }
    webhook_stop(w, 0);
    (void)pthread_join(w->thread, NULL); /* fails for broken code only */
    destroy(w);
}

void webhook_get_stats(struct webhook *w, struct webhook_stats *ret_stats)
{
    (void)pthread_mutex_lock(&w->mutex);
    *ret_stats = w->stats;
    (void)pthread_mutex_unlock(&w->mutex);
}
