/* What is opened in which order, what is closed when one of it fails, and what URLs begin with.
 * What is opened is stood in for here. */
#include "serve/control_service.c"

#include "unit/base/unit.h"

#include <stdio.h>

static struct {
    char log[512];    /* what was called, in order */
    const char *fail; /* the call that fails */
    bool notes;       /* the engine keeps some */
    bool must_exist;  /* as keys_open was told */
    char base[2048];  /* as subscriptions_open was told */
    struct subscriptions_config config;
    struct webhook_config webhook;
} seen;

static int call(const char *what, struct errmsg *msg)
{
    size_t at = strlen(seen.log);

    (void)snprintf(seen.log + at, sizeof(seen.log) - at, "%s ", what);
    if (seen.fail != NULL && strcmp(seen.fail, what) == 0) {
        return err_set(msg, ERR_IO, "%s", what);
    }
    return 0;
}

int engine_each_note(struct engine *e, struct slice prefix, engine_note_fn each, void *context,
                     struct errmsg *msg)
{
    (void)e;
    int code = call("notes", msg);

    if (code == 0 && seen.notes) {
        code = each(context, prefix, prefix);
    }
    return code;
}

int keys_open(struct sys *sys, const char *dir, bool must_exist, struct keys **ret_keys,
              struct errmsg *msg)
{
    (void)sys;
    assert_string_equal(dir, "d");
    seen.must_exist = must_exist;
    int code = call("keys+", msg);

    if (code == 0) {
        *ret_keys = (struct keys *)&seen;
    }
    return code;
}

void keys_close(struct keys *k)
{
    if (k != NULL) {
        (void)call("keys-", NULL);
    }
}

void keys_token_key(const struct keys *k, uint8_t out[static KEYS_TOKEN_BYTES])
{
    assert_non_null(k);
    memset(out, 7, KEYS_TOKEN_BYTES);
}

void keys_kid(struct keys *k, char out[static KEYS_KID_BYTES])
{
    assert_non_null(k);
    memcpy(out, "ds_x", 5);
}

int webhook_open(const struct webhook_config *config, struct webhook **ret_webhook,
                 struct errmsg *msg)
{
    seen.webhook = *config;
    int code = call("webhook+", msg);

    if (code == 0) {
        *ret_webhook = (struct webhook *)&seen;
    }
    return code;
}

void webhook_deliver(struct webhook *w, struct subscription_delivery *d)
{
    assert_non_null(w);
    (void)d;
    (void)call("deliver", NULL);
}

void webhook_stop(struct webhook *w, uint64_t grace_ms)
{
    assert_non_null(w);
    (void)call(grace_ms > 0 ? "grace" : "hurry", NULL);
}

void webhook_close(struct webhook *w)
{
    if (w != NULL) {
        (void)call("webhook-", NULL);
    }
}

int subscriptions_open(const struct subscriptions_config *config, struct subscriptions **ret_s,
                       struct errmsg *msg)
{
    seen.config = *config;
    assert_true(strlen(config->base_url) < sizeof(seen.base));
    memcpy(seen.base, config->base_url, strlen(config->base_url) + 1);
    int code = call("service+", msg);

    if (code == 0) {
        *ret_s = (struct subscriptions *)&seen;
    }
    return code;
}

void subscriptions_stop(struct subscriptions *s)
{
    assert_non_null(s);
    (void)call("stop", NULL);
}

void subscriptions_close(struct subscriptions *s)
{
    if (s != NULL) {
        (void)call("service-", NULL);
    }
}

void subscriptions_delivered(struct subscriptions *s, struct subscription_delivery *d,
                             int http_status, struct slice reply)
{
    assert_ptr_equal(s, d->owner);
    assert_int_equal(http_status, 200);
    assert_true(slice_equal(reply, SLICE("{}")));
    (void)call("delivered", NULL);
}

void subscriptions_sending(struct subscriptions *s, struct subscription_delivery *d)
{
    assert_ptr_equal(s, d->owner);
    (void)call("sending", NULL);
}

void listener_address(const struct listener *l, char *out, size_t size)
{
    (void)l;
    (void)snprintf(out, size, "[::1]:4437");
}

static struct serve_config config = {.data_dir = "d", .public_url = ""};
static struct server server = {.config = &config};
static struct worker first;
static struct errmsg msg;

static int open_with(const char *fail)
{
    memset(&seen, 0, sizeof(seen));
    memset(&msg, 0, sizeof(msg));
    seen.fail = fail;
    return control_service_open(&server, NULL, &first, &msg);
}

/* What needs another is opened after it and closed before it, the sender last of the two, since the
 * service may call it to its end. */
static void opens_and_closes(void **state)
{
    (void)state;
    assert_int_equal(open_with(NULL), 0);
    assert_string_equal(seen.log, "notes keys+ webhook+ service+ ");
    assert_int_equal(seen.config.token_key[31], 7);
    seen.log[0] = '\0';
    control_service_stop(&server);
    control_service_close(&server);
    assert_string_equal(seen.log, "stop grace hurry service- webhook- keys- ");
    assert_null(server.subscriptions);
    control_service_close(&server);
}

/* Whichever fails, the others are closed and the sentence is the failing one's. */
static void undoes_what_failed(void **state)
{
    const char *cases[][2] = {
        {"notes", "notes "},
        {"keys+", "notes keys+ "},
        {"webhook+", "notes keys+ webhook+ keys- "},
        {"service+", "notes keys+ webhook+ service+ hurry webhook- keys- "},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        assert_int_equal(open_with(cases[i][0]), ERR_IO);
        assert_string_equal(msg.text, cases[i][0]);
        assert_string_equal(seen.log, cases[i][1]);
        assert_null(server.keys);
        assert_null(server.webhook);
        assert_null(server.subscriptions);
    }
}

/* Where there are notes there must be keys. */
static void wants_keys_for_notes(void **state)
{
    (void)state;
    assert_int_equal(open_with(NULL), 0);
    assert_false(seen.must_exist);
    control_service_close(&server);
    memset(&seen, 0, sizeof(seen));
    seen.notes = true;
    assert_int_equal(control_service_open(&server, NULL, &first, &msg), 0);
    assert_true(seen.must_exist);
    control_service_close(&server);
}

/* --public-url, else the address; the longest public URL fits, a longer one is told. */
static void has_a_base(void **state)
{
    char url[BASE_BYTES_MAX + 1];
    size_t most = BASE_BYTES_MAX - 1 - sizeof(CONTROL_ROOT);

    (void)state;
    assert_int_equal(open_with(NULL), 0);
    assert_string_equal(seen.base, "http://[::1]:4437/v1/stream/__ds");
    control_service_close(&server);
    config.public_url = "https://a.example/b";
    assert_int_equal(open_with(NULL), 0);
    assert_string_equal(seen.base, "https://a.example/b/v1/stream/__ds");
    control_service_close(&server);
    memset(url, 'x', sizeof(url));
    url[most] = '\0';
    config.public_url = url;
    assert_int_equal(open_with(NULL), 0);
    assert_int_equal(strlen(seen.base), most + strlen(CONTROL_ROOT));
    control_service_close(&server);
    url[most] = 'x';
    url[most + 1] = '\0';
    assert_int_equal(open_with(NULL), ERR_INVALID);
    assert_string_equal(seen.log, "notes keys+ webhook+ hurry webhook- keys- ");
    config.public_url = "";
}

/* What is the mount's is kept from the service while there is no secret, with the reason. */
static void keeps_what_is_reserved(void **state)
{
    const struct mount mount = {.reserved = SLICE("kept-"), .reserved_why = "they are kept"};
    struct serve_tunables tunables = {.connection_count_max = 1};

    (void)state;
    assert_int_equal(open_with(NULL), 0);
    assert_int_equal(seen.config.reserved.len, 0);
    control_service_close(&server);
    config.mount = &mount;
    assert_int_equal(tunables_set(&server.tunables, &tunables), 0);
    assert_int_equal(open_with(NULL), 0);
    assert_true(slice_equal(seen.config.reserved, SLICE("kept-")));
    assert_string_equal(seen.config.reserved_why, "they are kept");
    control_service_close(&server);
    tunables.secret = SLICE("s");
    assert_int_equal(tunables_set(&server.tunables, &tunables), 0);
    assert_int_equal(open_with(NULL), 0);
    assert_int_equal(seen.config.reserved.len, 0);
    control_service_close(&server);
    tunables_finish(&server.tunables);
    server.tunables = (struct tunables){.newest = NULL};
    config.mount = NULL;
}

/* The service's calls reach the keys and the sender, whose answers reach the service. */
static void connects(void **state)
{
    struct subscription_delivery d = {.owner = (struct subscriptions *)&seen};
    char kid[SUBSCRIPTION_KID_BYTES_MAX];

    (void)state;
    assert_int_equal(open_with(NULL), 0);
    seen.config.get_kid(seen.config.context, kid);
    assert_string_equal(kid, "ds_x");
    seen.log[0] = '\0';
    seen.config.deliver(seen.config.context, &d);
    seen.webhook.sending(seen.webhook.context, &d);
    seen.webhook.delivered(seen.webhook.context, &d, 200, SLICE("{}"));
    assert_string_equal(seen.log, "deliver sending delivered ");
    assert_int_equal(seen.config.check_url(seen.config.context, SLICE("http://127.0.0.1/"), &msg),
                     ERR_INVALID);
    config.webhooks_allow_loopback = true;
    assert_int_equal(seen.config.check_url(seen.config.context, SLICE("http://127.0.0.1/"), &msg),
                     0);
    config.webhooks_allow_loopback = false;
    control_service_close(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_and_closes),       cmocka_unit_test(undoes_what_failed),
        cmocka_unit_test(wants_keys_for_notes),   cmocka_unit_test(has_a_base),
        cmocka_unit_test(keeps_what_is_reserved), cmocka_unit_test(connects),
    };

    return UNIT_RUN(tests);
}
