/* The sender against real receivers on loopback: what it sends, what it takes, what it refuses, and
 * that none of them keeps it from others or from stopping. */
#include "serve/webhook.c"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "log/sys.h"
#include "serve/keys_file.h"
#include "unit/base/unit.h"
#include "unit/serve/receiver.h"

#define BODY "{\"subscription_id\":\"s\",\"token\":\"topsecret\"}"
#define OK   "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"done\":true}"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request),
        cmocka_unit_test(test_redirect),
    };

    return UNIT_RUN(tests);
}
