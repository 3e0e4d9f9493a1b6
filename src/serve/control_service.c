/* Ends in this order: the service makes nothing new; the sender gives back what is under way, at
 * the latest after its grace; the service takes that and ends; only then may the sender go, which
 * the service might still be calling before. */
#include "serve/control_service.h"

#include "serve/control_route.h"
#include "serve/keys.h"
#include "serve/webhook.h"
#include "serve/webhook_url.h"
#include "stream/subscriptions.h"

#define GRACE_MS       3000 /* for receivers to answer, once the server is to end */
#define BASE_BYTES_MAX 1280 /* a public URL or an address, and the path of the API */

static int check_url(void *context, struct slice url, struct errmsg *msg)
{
    const struct server *server = context;
    struct webhook_url parts;

    return webhook_url_parse(url, server->config->webhooks_allow_loopback, &parts, msg);
}

static void get_kid(void *context, char out[static SUBSCRIPTION_KID_BYTES_MAX])
{
    const struct server *server = context;

    _Static_assert(KEYS_KID_BYTES <= SUBSCRIPTION_KID_BYTES_MAX, "a kid fits");
    keys_kid(server->keys, out);
}

static void deliver(void *context, struct subscription_delivery *d)
{
    const struct server *server = context;

    webhook_deliver(server->webhook, d);
}

static void delivered(void *context, struct subscription_delivery *d, int http_status,
                      struct slice reply)
{
    /* The delivery knows its service: the first one may be back before server->subscriptions is
     * set. */
    (void)context;
    subscriptions_delivered(d->owner, d, http_status, reply);
}

static void sending(void *context, struct subscription_delivery *d)
{
    (void)context;
    subscriptions_sending(d->owner, d);
}

static void trouble(void *context, const char *sentence)
{
    const struct server *server = context;

    logger_line(&server->config->logger, LOGGER_WARN, "%s", sentence);
}

static int note_seen(void *context, struct slice key, struct slice value)
{
    (void)key;
    (void)value;
    *(bool *)context = true;
    return 0;
}

/* Where there are subscriptions, their secrets must be there too: tokens that workers hold were
 * made with them. */
static int open_keys(struct server *server, struct sys *sys, struct errmsg *msg)
{
    bool any = false;
    int code = engine_each_note(server->engine, (struct slice){NULL, 0}, note_seen, &any, msg);

    return code == 0 ? keys_open(sys, server->config->data_dir, any, &server->keys, msg) : code;
}

static int open_webhook(struct server *server, struct errmsg *msg)
{
    struct webhook_config config = {
        .keys = server->keys,
        .logger = &server->config->logger,
        .allow_loopback = server->config->webhooks_allow_loopback,
        .delivered = delivered,
        .sending = sending,
        .context = server,
    };

    return webhook_open(&config, &server->webhook, msg);
}

/* What callback and key URLs begin with: never what a client says, since a receiver would send its
 * token there. */
static void format_base(const struct server *server, const struct worker *first, struct buf *out)
{
    char address[128];

    if (server->config->public_url[0] != '\0') {
        buf_append(out, slice_of(server->config->public_url));
    } else {
        listener_address(first->listener, address, sizeof(address));
        buf_append_format(out, "http://%s", address);
    }
    buf_append(out, SLICE(CONTROL_ROOT));
    buf_append_char(out, '\0');
}

static int open_subscriptions(struct server *server, struct sys *sys, const struct worker *first,
                              struct errmsg *msg)
{
    char memory[BASE_BYTES_MAX];
    struct buf base;

    buf_init_fixed(&base, memory, sizeof(memory));
    format_base(server, first, &base);
    if (base.failed) {
        return err_set(msg, ERR_INVALID, "--public-url is too long");
    }
    struct subscriptions_config config = {
        .engine = server->engine,
        .pool = server->pool,
        .sys = sys,
        .base_url = memory,
        .context = server,
        .check_url = check_url,
        .get_kid = get_kid,
        .deliver = deliver,
        .trouble = trouble,
        .reserved = server_reserved(server), /* a secret comes and goes by a restart alone */
    };

    if (config.reserved.len > 0) {
        config.reserved_why = server->config->mount->reserved_why;
    }
    keys_token_key(server->keys, config.token_key);
    int code = subscriptions_open(&config, &server->subscriptions, msg);

    explicit_bzero(config.token_key, sizeof(config.token_key));
    return code;
}

int control_service_open(struct server *server, struct sys *sys, const struct worker *first,
                         struct errmsg *msg)
{
    int code = open_keys(server, sys, msg);

    if (code == 0) {
        code = open_webhook(server, msg);
    }
    if (code == 0) {
        code = open_subscriptions(server, sys, first, msg);
    }
    if (code != 0) {
        control_service_close(server);
    }
    return code;
}

void control_service_stop(struct server *server)
{
    subscriptions_stop(server->subscriptions);
    webhook_stop(server->webhook, GRACE_MS);
}

void control_service_close(struct server *server)
{
    if (server->webhook != NULL) {
        webhook_stop(server->webhook, 0); /* unless some grace was given before */
    }
    subscriptions_close(server->subscriptions);
    webhook_close(server->webhook);
    keys_close(server->keys);
    server->subscriptions = NULL;
    server->webhook = NULL;
    server->keys = NULL;
}
