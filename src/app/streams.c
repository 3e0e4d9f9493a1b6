/* This file and those that carry clients are the only ones that mint a raw transport; tools/lint
 * knows them by name. */
#include "app/streams.h"

#include "app/app.h"
#include "app/engine_transport.h"
#include "base/limits.h"
#include "client/transport_http.h"
#include "serve/worker.h"
#include "thread/recency.h"

#include <stdlib.h>

#define ANSWER_MS_HERE     30000 /* of the engine in this process, which does not hang */
#define RETRIES_OUTSIDE    1
#define RETRY_MS_OUTSIDE   100
#define RETRY_MS_MAX_ASKED 400 /* whatever the other server asks for */

static int make_transport(struct app *app, const struct stream_client_options *options,
                          struct transport **ret_transport, struct stream_error *ret_error)
{
    const struct engine_client_config config = {
        .engine = app->server->engine,
        .pool = app->server->pool,
        .body_bytes_max = app->server->config->body_bytes_max,
        .long_poll_timeout_ms = app->server->config->long_poll_timeout_ms,
    };

    if (app->config.streams_url != NULL) {
        return transport_http_new(app->config.streams_url, options, ret_transport, ret_error);
    }
    return engine_transport_new(&config, options, ret_transport, ret_error);
}

/* Somebody waits for each call: on a server that hangs it ends after some 6.5 s, with its retry. */
static void bound(const struct app *app, struct stream_client_options *options)
{
    if (app->config.streams_url == NULL) {
        options->request_timeout_ms = ANSWER_MS_HERE;
        return;
    }
    options->connect_timeout_ms = UPSTREAM_CONNECT_MS;
    options->request_timeout_ms = UPSTREAM_ANSWER_MS;
    options->retry.max_retries = RETRIES_OUTSIDE;
    options->retry.initial_delay_ms = RETRY_MS_OUTSIDE;
    options->retry.max_delay_ms = RETRY_MS_MAX_ASKED;
    options->retry.retry_after_max_ms = RETRY_MS_MAX_ASKED;
}

int streams_open(struct app *app, struct stream_client **ret_client, struct errmsg *msg)
{
    struct slice secret = app->config.streams_secret;
    char *bearer = secret.len == 0 ? NULL : strndup(secret.ptr, secret.len);
    struct stream_client_options options;
    struct transport *transport = NULL;
    struct stream_error error = {.code = STREAM_OK};

    if (secret.len > 0 && bearer == NULL) {
        return err_set(msg, ERR_NOMEM, "out of memory");
    }
    stream_client_options_init(&options);
    options.bearer = bearer;
    bound(app, &options);
    int code = make_transport(app, &options, &transport, &error);

    if (code == STREAM_OK) {
        code = recency_stream_client_new(app->recency, transport, &options, ret_client, &error);
    }
    if (bearer != NULL) {
        explicit_bzero(bearer, secret.len);
        free(bearer);
    }
    return code == STREAM_OK ? 0 : err_set(msg, ERR_INVALID, "%.200s", error.message);
}
