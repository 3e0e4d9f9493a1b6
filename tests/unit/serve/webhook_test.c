/* The sender against real receivers on loopback: what it sends, what it takes, what it refuses, and
 * that none of them keeps it from others or from stopping. */
#include "unit/base/fault.h"

#include "serve/webhook.c"

#include <signal.h>

#include "log/sys.h"
#include "unit/base/unit.h"
#include "unit/serve/certificate.h"
#include "unit/serve/receiver.h"

#define BODY "{\"subscription_id\":\"s\",\"token\":\"topsecret\"}"
#define OK   "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"done\":true}"

/* One connection after the other, for a receiver that serves one at a time. */
#define CLOSING "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"

#define DELIVERIES_MAX 64

struct fixture {
    struct sys sys;
    struct keys *keys;
    struct webhook *webhook;
    struct logger logger;
    int log[2]; /* a pipe */
    char dir[64];

    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    unsigned ended; /* deliveries given back */
};

struct sent {
    struct subscription_delivery delivery;
    char url[2200];
    int status; /* -1: not given back yet */
    char reply[70000];
    size_t reply_len;
};

static void on_delivered(void *context, struct subscription_delivery *d, int http_status,
                         struct slice reply)
{
    struct fixture *f = context;
    struct sent *sent = container_of(d, struct sent, delivery);

    (void)pthread_mutex_lock(&f->mutex);
    assert_int_equal(sent->status, -1); /* once */
    sent->status = http_status;
    sent->reply_len = reply.len;
    if (reply.len > 0) {
        memcpy(sent->reply, reply.ptr, reply.len);
    }
    f->ended++;
    (void)pthread_cond_broadcast(&f->changed);
    (void)pthread_mutex_unlock(&f->mutex);
}

/* A name server of our own: addresses by name, each name a list of numbers. */
static int fake_resolve(const char *host, const char *port, const struct addrinfo *hints,
                        struct addrinfo **ret_answers)
{
    static const char *const names[][3] = {
        {"hook.test", "127.0.0.1", NULL},           {"localhost", "127.0.0.1", NULL},
        {"private.test", "10.0.0.1", NULL},         {"mixed.test", "93.184.216.34", "192.168.1.1"},
        {"metadata.test", "169.254.169.254", NULL}, {"mapped.test", "::ffff:127.0.0.1", NULL},
        {"other.test", "127.0.0.1", NULL},
    };
    struct addrinfo numeric = *hints;

    numeric.ai_flags |= AI_NUMERICHOST;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (strcmp(host, names[i][0]) == 0) {
            int code = getaddrinfo(names[i][1], port, &numeric, ret_answers);

            if (code == 0 && names[i][2] != NULL) {
                code = getaddrinfo(names[i][2], port, &numeric, &(*ret_answers)->ai_next);
            }
            return code;
        }
    }
    return EAI_NONAME;
}

static void fixture_init(struct fixture *f, struct webhook_config config)
{
    struct errmsg msg = {{0}};

    *f = (struct fixture){.log = {-1, -1}};
    (void)pthread_mutex_init(&f->mutex, NULL);
    (void)pthread_cond_init(&f->changed, NULL);
    sys_posix_init(&f->sys);
    (void)snprintf(f->dir, sizeof(f->dir), "/tmp/arbe-webhook-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    assert_int_equal(keys_open(&f->sys, f->dir, false, &f->keys, &msg), 0);
    assert_int_equal(pipe(f->log), 0);
    f->logger = (struct logger){.fd = f->log[1], .level = LOGGER_DEBUG};
    config.keys = f->keys;
    config.logger = &f->logger;
    config.delivered = on_delivered;
    config.context = f;
    config.resolve = config.resolve != NULL ? config.resolve : fake_resolve;
    assert_int_equal(webhook_open(&config, &f->webhook, &msg), 0);
}

/* Ends it; the log is left in `log` and must hold no secret. */
static void fixture_finish_log(struct fixture *f, char *log, size_t size)
{
    char path[128];

    webhook_close(f->webhook);
    keys_close(f->keys);
    (void)close(f->log[1]);
    ssize_t len = read(f->log[0], log, size - 1);

    assert_true(len >= 0);
    log[len] = '\0';
    assert_null(strstr(log, "topsecret"));
    assert_null(strstr(log, "/path"));
    (void)close(f->log[0]);
    static const char *const files[] = {"keys/keys.pem", "keys/lock", "keys", ""};

    for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", f->dir, files[i]);
        assert_int_equal(remove(path), 0);
    }
    (void)pthread_cond_destroy(&f->changed);
    (void)pthread_mutex_destroy(&f->mutex);
}

static void fixture_finish(struct fixture *f)
{
    char log[4096];

    fixture_finish_log(f, log, sizeof(log));
}

/* Sends BODY to scheme, host, the port, and "/path". */
static void send_to(struct fixture *f, struct sent *sent, const char *base, unsigned port)
{
    sent->status = -1;
    (void)snprintf(sent->url, sizeof(sent->url), "%s:%u/path?key=topsecret", base, port);
    sent->delivery = (struct subscription_delivery){.url = slice_of(sent->url),
                                                    .body = SLICE(BODY)};
    webhook_deliver(f->webhook, &sent->delivery);
}

/* Waits until `count` deliveries in all were given back. */
static void await(struct fixture *f, unsigned count)
{
    (void)pthread_mutex_lock(&f->mutex);
    while (f->ended < count) {
        (void)pthread_cond_wait(&f->changed, &f->mutex);
    }
    (void)pthread_mutex_unlock(&f->mutex);
}

/* One delivery to a receiver that answers `answer`; its status, and the counts. */
static int deliver_once(struct slice answer, struct sent *sent, struct webhook_stats *ret_stats)
{
    struct fixture f;
    struct receiver receiver;

    receiver_init(&receiver, answer, NULL);
    fixture_init(&f, (struct webhook_config){.allow_loopback = true});
    send_to(&f, sent, "http://127.0.0.1", receiver.port);
    await(&f, 1);
    webhook_get_stats(f.webhook, ret_stats);
    fixture_finish(&f);
    receiver_finish(&receiver);
    return sent->status;
}

/* The request is what the protocol says, and the reply comes back. */
static void test_request(void **state)
{
    (void)state;
    struct fixture f;
    struct receiver receiver;
    struct sent *sent = calloc(1, sizeof(*sent));
    struct webhook_stats stats;

    receiver_init(&receiver, SLICE(OK), NULL);
    fixture_init(&f, (struct webhook_config){.allow_loopback = true});
    send_to(&f, sent, "http://localhost", receiver.port);
    await(&f, 1);
    assert_int_equal(sent->status, 200);
    assert_int_equal(sent->reply_len, 13);
    assert_memory_equal(sent->reply, "{\"done\":true}", 13);
    buf_append_char(&receiver.last, '\0');
    const char *text = receiver.last.ptr;

    assert_ptr_equal(strstr(text, "POST /path?key=topsecret HTTP/1.1\r\n"), text);
    assert_non_null(strstr(text, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(text, "\r\nWebhook-Signature: t="));
    assert_null(strstr(text, "Expect"));
    assert_string_equal(strstr(text, "\r\n\r\n") + 4, BODY);
    webhook_get_stats(f.webhook, &stats);
    assert_int_equal(stats.answered, 1);
    assert_int_equal(stats.under_way + stats.queued + stats.failed, 0);
    fixture_finish(&f);
    receiver_finish(&receiver);
    free(sent);
}

/* A redirect is an answer like any other, and goes nowhere. */
static void test_redirect(void **state)
{
    (void)state;
    struct receiver target;
    struct sent *sent = calloc(1, sizeof(*sent));
    struct webhook_stats stats;
    char answer[200];

    receiver_init(&target, SLICE(OK), NULL);
    (void)snprintf(answer, sizeof(answer),
                   "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:%u/\r\n"
                   "Content-Length: 0\r\n\r\n",
                   target.port);
    assert_int_equal(deliver_once(slice_of(answer), sent, &stats), 307);
    assert_int_equal(target.accepted, 0);
    receiver_finish(&target);
    free(sent);
}

/* A reply of exactly the cap is taken, one byte more is not, nor heads without end. */
static void test_reply_cap(void **state)
{
    (void)state;
    struct sent *sent = calloc(1, sizeof(*sent));
    struct webhook_stats stats;
    struct buf answer;

    for (unsigned extra = 0; extra <= 1; extra++) {
        buf_init(&answer, 1 << 20);
        buf_append_format(&answer, "HTTP/1.1 200 OK\r\nContent-Length: %u\r\n\r\n",
                          WEBHOOK_REPLY_BYTES_MAX + extra);
        for (unsigned i = 0; i < WEBHOOK_REPLY_BYTES_MAX + extra; i++) {
            buf_append_char(&answer, 'x');
        }
        assert_int_equal(deliver_once(buf_slice(&answer), sent, &stats), extra == 0 ? 200 : 0);
        assert_int_equal(sent->reply_len, extra == 0 ? WEBHOOK_REPLY_BYTES_MAX : 0);
        assert_int_equal(stats.failed, extra);
        buf_finish(&answer);
    }
    buf_init(&answer, 1 << 20);
    buf_append(&answer, SLICE("HTTP/1.1 200 OK\r\n"));
    while (answer.len < 2 * WEBHOOK_HEADER_BYTES_MAX) {
        buf_append(&answer,
                   SLICE("X-Fill: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n"));
    }
    buf_append(&answer, SLICE("Content-Length: 0\r\n\r\n"));
    assert_int_equal(deliver_once(buf_slice(&answer), sent, &stats), 0);
    buf_clear(&answer);
    while (answer.len < 2 * WEBHOOK_HEADER_BYTES_MAX) { /* interim answers count, too */
        buf_append(&answer, SLICE("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"));
    }
    buf_append(&answer, SLICE(OK));
    assert_int_equal(deliver_once(buf_slice(&answer), sent, &stats), 0);
    buf_finish(&answer);
    free(sent);
}

/* What is no answer counts as none; what is one comes back with its status. */
static void test_odd_answers(void **state)
{
    (void)state;
    struct sent *sent = calloc(1, sizeof(*sent));
    struct webhook_stats stats;

    assert_int_equal(deliver_once(SLICE("HTTP/1.1 204 No Content\r\n\r\n"), sent, &stats), 204);
    assert_int_equal(
        deliver_once(SLICE("HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno"), sent, &stats), 503);
    assert_int_equal(sent->reply_len, 2);
    assert_int_equal(deliver_once(SLICE("HTTP/1.1 100 Continue\r\n\r\n" OK), sent, &stats), 200);
    assert_int_equal(deliver_once(SLICE("HTTP/1.1 200 OK\r\nConnection: close\r\n"
                                        "Content-Length: 9\r\n\r\nshort"),
                                  sent, &stats),
                     0);
    assert_int_equal(sent->reply_len, 0);
    assert_int_equal(deliver_once(SLICE("hello Connection: close"), sent, &stats), 0);
    assert_int_equal(stats.failed, 1);
    free(sent);
}

/* A receiver that does not answer is given up when the time is over. */
static void test_hang(void **state)
{
    (void)state;
    struct fixture f;
    struct receiver receiver;
    struct sent *sent = calloc(1, sizeof(*sent));
    struct webhook_stats stats;
    char log[4096];

    receiver_init(&receiver, (struct slice){NULL, 0}, NULL);
    fixture_init(&f, (struct webhook_config){.allow_loopback = true, .timeout_ms = 50});
    send_to(&f, sent, "http://127.0.0.1", receiver.port);
    await(&f, 1);
    assert_int_equal(sent->status, 0);
    webhook_get_stats(f.webhook, &stats);
    assert_int_equal(stats.timed_out, 1);
    fixture_finish_log(&f, log, sizeof(log));
    assert_non_null(strstr(log, "fail: it does not answer in time"));
    receiver_finish(&receiver);
    free(sent);
}

/* No one there. */
static void test_closed_port(void **state)
{
    (void)state;
    struct fixture f;
    struct receiver receiver;
    struct sent *sent = calloc(1, sizeof(*sent));
    struct webhook_stats stats;

    receiver_init(&receiver, SLICE(OK), NULL);
    receiver_finish(&receiver);
    fixture_init(&f, (struct webhook_config){.allow_loopback = true});
    send_to(&f, sent, "http://127.0.0.1", receiver.port);
    await(&f, 1);
    assert_int_equal(sent->status, 0);
    webhook_get_stats(f.webhook, &stats);
    assert_int_equal(stats.failed, 1);
    fixture_finish(&f);
    free(sent);
}

/* Names that lead to this machine or its network are not called, nor are those of which one of two
 * addresses does; with the flag, this machine alone is. */
static void test_refused_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *base;
        bool allow_loopback;
    } rows[] = {
        {"https://hook.test", false},    {"https://mapped.test", false},
        {"https://private.test", false}, {"https://private.test", true},
        {"https://mixed.test", false},   {"https://mixed.test", true},
        {"https://metadata.test", true}, {"http://127.0.0.1", false},
        {"http://localhost", false},     {"https://127.0.0.1", false},
        {"http://hook.test", true},      {"https://10.0.0.1", true},
    };
    struct receiver receiver;
    struct sent *sent = calloc(1, sizeof(*sent));
    struct webhook_stats stats;

    receiver_init(&receiver, SLICE(OK), NULL);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct fixture f;

        fixture_init(&f, (struct webhook_config){.allow_loopback = rows[i].allow_loopback});
        send_to(&f, sent, rows[i].base, receiver.port);
        await(&f, 1);
        assert_int_equal(sent->status, 0);
        webhook_get_stats(f.webhook, &stats);
        assert_int_equal(stats.refused, 1);
        fixture_finish(&f);
    }
    assert_int_equal(receiver.accepted, 0);
    receiver_finish(&receiver);
    free(sent);
}

/* Nobody but who is named is asked: not the proxy that the environment names. */
static void test_no_proxy(void **state)
{
    (void)state;
    static const char *const names[] = {"http_proxy", "https_proxy", "all_proxy", "ALL_PROXY"};
    struct receiver proxy;
    struct sent *sent = calloc(1, sizeof(*sent));
    struct webhook_stats stats;
    char url[64];

    receiver_init(&proxy, SLICE(OK), NULL);
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u", proxy.port);
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        assert_int_equal(setenv(names[i], url, 1), 0);
    }
    assert_int_equal(deliver_once(SLICE(OK), sent, &stats), 200);
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        assert_int_equal(unsetenv(names[i]), 0);
    }
    assert_int_equal(proxy.accepted, 0);
    receiver_finish(&proxy);
    free(sent);
}

/* One delivery over TLS to https://hook.test, with `server`'s certificate. */
static int deliver_tls(const struct certificate *server, const char *ca_file)
{
    struct fixture f;
    struct receiver receiver;
    struct sent *sent = calloc(1, sizeof(*sent));
    SSL_CTX *tls = certificate_server(server);

    receiver_init(&receiver, SLICE(OK), tls);
    fixture_init(&f, (struct webhook_config){.allow_loopback = true, .ca_file = ca_file});
    send_to(&f, sent, "https://hook.test", receiver.port);
    await(&f, 1);
    int status = sent->status;

    assert_int_equal(receiver.requests, status == 200 ? 1 : 0);
    fixture_finish(&f);
    receiver_finish(&receiver);
    SSL_CTX_free(tls);
    free(sent);
    return status;
}

/* Over TLS, to who can prove to be the host, and to nobody else. */
static void test_tls(void **state)
{
    (void)state;
    char ca_file[] = "/tmp/arbe-ca-XXXXXX";
    struct certificate authority;
    struct certificate good;
    struct certificate alone;
    struct certificate other;
    struct certificate expired;

    assert_int_equal(close(mkstemp(ca_file)), 0);
    certificate_init(&authority, NULL, NULL, -100, 10000);
    certificate_init(&good, "hook.test", &authority, -100, 10000);
    certificate_init(&alone, "hook.test", NULL, -100, 10000);
    certificate_init(&other, "other.test", &authority, -100, 10000);
    certificate_init(&expired, "hook.test", &authority, -10000, -100);
    certificate_save(&authority, ca_file);
    assert_int_equal(deliver_tls(&good, ca_file), 200);
    assert_int_equal(deliver_tls(&good, NULL), 0); /* the system does not know the authority */
    assert_int_equal(deliver_tls(&alone, ca_file), 0);
    assert_int_equal(deliver_tls(&other, ca_file), 0);
    assert_int_equal(deliver_tls(&expired, ca_file), 0);
    assert_int_equal(unlink(ca_file), 0);
    certificate_finish(&authority);
    certificate_finish(&good);
    certificate_finish(&alone);
    certificate_finish(&other);
    certificate_finish(&expired);
}

/* A receiver that hangs, with more deliveries than all places: others are served meanwhile, in
 * spite of it, and at the end everything is given back, once. */
static void test_slow_receiver(void **state)
{
    (void)state;
    struct fixture f;
    struct receiver slow;
    struct receiver quick;
    struct sent *sent = calloc(DELIVERIES_MAX, sizeof(*sent));
    struct webhook_stats stats;

    receiver_init(&slow, (struct slice){NULL, 0}, NULL);
    receiver_init(&quick, SLICE(CLOSING), NULL);
    fixture_init(
        &f, (struct webhook_config){.allow_loopback = true, .under_way_max = 4, .per_host_max = 2});
    for (unsigned i = 0; i < DELIVERIES_MAX / 2; i++) {
        send_to(&f, &sent[i], "http://127.0.0.1", slow.port);
    }
    receiver_await(&slow, 2);
    for (unsigned i = DELIVERIES_MAX / 2; i < DELIVERIES_MAX; i++) {
        send_to(&f, &sent[i], "http://127.0.0.1", quick.port);
    }
    await(&f, DELIVERIES_MAX / 2);
    for (unsigned i = DELIVERIES_MAX / 2; i < DELIVERIES_MAX; i++) {
        assert_int_equal(sent[i].status, 200);
    }
    webhook_get_stats(f.webhook, &stats);
    assert_int_equal(stats.under_way, 2);
    assert_int_equal(stats.queued, DELIVERIES_MAX / 2 - 2);
    assert_int_equal(slow.accepted, 2);
    webhook_stop(f.webhook, 0);
    await(&f, DELIVERIES_MAX);
    for (unsigned i = 0; i < DELIVERIES_MAX / 2; i++) {
        assert_int_equal(sent[i].status, 0);
    }
    webhook_get_stats(f.webhook, &stats);
    assert_int_equal(stats.aborted, DELIVERIES_MAX / 2);
    fixture_finish(&f);
    receiver_finish(&slow);
    receiver_finish(&quick);
    free(sent);
}

/* A name server that never answers, until the test lets it. */
static pthread_mutex_t gate_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_changed = PTHREAD_COND_INITIALIZER;
static bool gate_open;
static unsigned gate_waiting;

static int hanging_resolve(const char *host, const char *port, const struct addrinfo *hints,
                           struct addrinfo **ret_answers)
{
    if (strcmp(host, "hook.test") == 0) {
        (void)pthread_mutex_lock(&gate_mutex);
        gate_waiting++;
        (void)pthread_cond_broadcast(&gate_changed);
        while (!gate_open) {
            (void)pthread_cond_wait(&gate_changed, &gate_mutex);
        }
        gate_waiting--;
        (void)pthread_cond_broadcast(&gate_changed);
        (void)pthread_mutex_unlock(&gate_mutex);
    }
    return fake_resolve(host, port, hints, ret_answers);
}

static void gate_await(unsigned waiting)
{
    (void)pthread_mutex_lock(&gate_mutex);
    while (gate_waiting != waiting) {
        (void)pthread_cond_wait(&gate_changed, &gate_mutex);
    }
    (void)pthread_mutex_unlock(&gate_mutex);
}

static void gate_set(bool open)
{
    (void)pthread_mutex_lock(&gate_mutex);
    gate_open = open;
    (void)pthread_cond_broadcast(&gate_changed);
    (void)pthread_mutex_unlock(&gate_mutex);
}

/* Names that are not answered hold up neither others nor the end. */
static void test_slow_names(void **state)
{
    (void)state;
    struct fixture f;
    struct receiver receiver;
    struct sent *sent = calloc(3, sizeof(*sent));
    struct webhook_stats stats;

    gate_set(false);
    receiver_init(&receiver, SLICE(OK), NULL);
    fixture_init(&f, (struct webhook_config){
                         .allow_loopback = true, .timeout_ms = 60, .resolve = hanging_resolve});
    send_to(&f, &sent[0], "https://hook.test", 443);
    gate_await(1);
    await(&f, 1);
    assert_int_equal(sent[0].status, 0);
    webhook_get_stats(f.webhook, &stats);
    assert_int_equal(stats.timed_out, 1);
    fixture_finish(&f);
    gate_set(true);
    gate_await(0);

    gate_set(false);
    fixture_init(&f, (struct webhook_config){.allow_loopback = true, .resolve = hanging_resolve});
    send_to(&f, &sent[1], "https://hook.test", 443);
    gate_await(1);
    send_to(&f, &sent[2], "http://localhost", receiver.port);
    await(&f, 1);
    assert_int_equal(sent[2].status, 200);
    assert_int_equal(sent[1].status, -1);
    fixture_finish(&f);
    assert_int_equal(sent[1].status, 0);
    gate_set(true);
    gate_await(0);
    receiver_finish(&receiver);
    free(sent);
}

/* With as many look-ups as there may be, only those wait that need one: addresses and names that
 * are known go out, and the others as soon as there is room. */
static void test_lookups_cap(void **state)
{
    (void)state;
    struct fixture f;
    struct receiver receiver;
    struct sent *sent = calloc(5, sizeof(*sent));
    struct webhook_stats stats;

    gate_set(false);
    receiver_init(&receiver, SLICE(CLOSING), NULL);
    fixture_init(&f, (struct webhook_config){
                         .allow_loopback = true, .lookups_max = 1, .resolve = hanging_resolve});
    send_to(&f, &sent[0], "http://localhost", receiver.port);
    await(&f, 1);
    assert_int_equal(sent[0].status, 200);
    send_to(&f, &sent[1], "https://hook.test", 443);
    gate_await(1);
    send_to(&f, &sent[2], "https://other.test", 443);
    send_to(&f, &sent[3], "http://127.0.0.1", receiver.port);
    await(&f, 2);
    assert_int_equal(sent[3].status, 200);
    send_to(&f, &sent[4], "http://localhost", receiver.port);
    await(&f, 3);
    assert_int_equal(sent[4].status, 200);
    webhook_get_stats(f.webhook, &stats);
    assert_int_equal(stats.under_way, 1);
    assert_int_equal(stats.queued, 1);
    gate_set(true);
    await(&f, 5); /* nobody listens there, but both were asked for and tried */
    webhook_get_stats(f.webhook, &stats);
    assert_int_equal(stats.failed, 2);
    assert_int_equal(stats.timed_out + stats.aborted, 0);
    fixture_finish(&f);
    receiver_finish(&receiver);
    free(sent);
}

/* Within the grace what is under way may still end well; what comes after the stop goes back. */
static void test_stop(void **state)
{
    (void)state;
    struct fixture f;
    struct receiver receiver;
    struct sent *sent = calloc(2, sizeof(*sent));
    struct webhook_stats stats;

    gate_set(false);
    receiver_init(&receiver, SLICE(OK), NULL);
    fixture_init(&f, (struct webhook_config){.allow_loopback = true});
    send_to(&f, &sent[0], "http://127.0.0.1", receiver.port);
    await(&f, 1);
    webhook_stop(f.webhook, 60000);
    send_to(&f, &sent[1], "http://127.0.0.1", receiver.port);
    assert_int_equal(sent[1].status, 0);
    webhook_get_stats(f.webhook, &stats);
    assert_int_equal(stats.answered, 1);
    assert_int_equal(stats.aborted, 1);
    fixture_finish(&f); /* and does not wait for the minute: nothing is under way */
    receiver_finish(&receiver);
    free(sent);
}

/* A large body arrives whole, and connections are used again. */
static void test_large_body(void **state)
{
    (void)state;
    struct fixture f;
    struct receiver receiver;
    struct sent *sent = calloc(3, sizeof(*sent));
    size_t len = 5 * MIB;
    char *body = malloc(len);

    assert_non_null(body);
    memset(body, 'b', len);
    receiver_init(&receiver, SLICE(OK), NULL);
    fixture_init(&f, (struct webhook_config){.allow_loopback = true});
    for (unsigned i = 0; i < 3; i++) {
        sent[i].status = -1;
        (void)snprintf(sent[i].url, sizeof(sent[i].url), "http://localhost:%u/path", receiver.port);
        sent[i].delivery = (struct subscription_delivery){.url = slice_of(sent[i].url),
                                                          .body = {body, len}};
        webhook_deliver(f.webhook, &sent[i].delivery);
        await(&f, i + 1);
        assert_int_equal(sent[i].status, 200);
        assert_true(receiver.last.len > len);
        assert_memory_equal(receiver.last.ptr + receiver.last.len - len, body, len);
    }
    assert_int_equal(receiver.accepted, 1);
    fixture_finish(&f);
    receiver_finish(&receiver);
    free(body);
    free(sent);
}

/* No memory for a delivery: it goes back at once. */
static void test_no_memory(void **state)
{
    (void)state;
    struct fixture f;
    struct sent *sent = calloc(1, sizeof(*sent));
    struct webhook *none = NULL;
    struct webhook_stats stats;
    struct errmsg msg = {{0}};

    fixture_init(&f, (struct webhook_config){.allow_loopback = true});
    fault_countdown = 0;
    send_to(&f, sent, "http://127.0.0.1", 1);
    assert_int_equal(sent->status, 0);
    assert_int_equal(webhook_open(&f.webhook->config, &none, &msg), ERR_NOMEM);
    fault_countdown = -1;
    assert_null(none);
    assert_true(msg.text[0] != '\0');
    webhook_get_stats(f.webhook, &stats);
    assert_int_equal(stats.failed, 1);
    assert_int_equal(stats.queued, 0);
    fixture_finish(&f);
    free(sent);
}

/* A receiver that fails is named once, and once when it works again; its path never is. */
static void test_log(void **state)
{
    (void)state;
    struct fixture f;
    struct receiver receiver;
    struct sent *sent = calloc(4, sizeof(*sent));
    char log[4096];

    receiver_init(&receiver, SLICE("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"), NULL);
    fixture_init(&f, (struct webhook_config){.allow_loopback = true});
    for (unsigned i = 0; i < 3; i++) {
        send_to(&f, &sent[i], "http://127.0.0.1", receiver.port);
        await(&f, i + 1);
        assert_int_equal(sent[i].status, 500);
    }
    fixture_finish_log(&f, log, sizeof(log));
    char *first = strstr(log, "fail: it answers with status 500");

    assert_non_null(first);
    assert_null(strstr(first + 1, "fail:"));
    receiver_finish(&receiver);
    free(sent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request),
        cmocka_unit_test(test_redirect),
        cmocka_unit_test(test_reply_cap),
        cmocka_unit_test(test_odd_answers),
        cmocka_unit_test(test_hang),
        cmocka_unit_test(test_closed_port),
        cmocka_unit_test(test_refused_addresses),
        cmocka_unit_test(test_no_proxy),
        cmocka_unit_test(test_tls),
        cmocka_unit_test(test_slow_receiver),
        cmocka_unit_test(test_slow_names),
        cmocka_unit_test(test_lookups_cap),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_large_body),
        cmocka_unit_test(test_log),
    };

    (void)signal(SIGPIPE, SIG_IGN); /* as the server does */
    return UNIT_RUN(tests);
}
