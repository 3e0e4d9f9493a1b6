/* The client itself: options, life, and what it hands on to the stream client below. */
#include "client/scoped.h"

#include "client/call.h"
#include "client/retry.h"

#include <stdlib.h>

#define ID_BYTES_MAX 96u

bool scoped_id_good(const char *id)
{
    size_t len = id != NULL ? strlen(id) : 0;

    if (len == 0 || len > ID_BYTES_MAX || strcmp(id, ".") == 0 || strcmp(id, "..") == 0) {
        return false;
    }
    return strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-") == len;
}

int scoped_check_id(const char *what, const char *id, struct scoped_error *ret_error)
{
    if (scoped_id_good(id)) {
        return STREAM_OK;
    }
    return scoped_error_set(ret_error, STREAM_ERROR_ARGUMENT,
                            "the id of %s must be 1 to %u characters of A-Z a-z 0-9 . _ ~ -", what,
                            ID_BYTES_MAX);
}

void scoped_client_options_init(struct scoped_client_options *options)
{
    struct stream_client_options base;

    stream_client_options_init(&base);
    *options = (struct scoped_client_options){
        .connect_timeout_ms = base.connect_timeout_ms,
        .request_timeout_ms = base.request_timeout_ms,
        .idle_timeout_ms = base.idle_timeout_ms,
        .compression = base.compression,
        .max_connections = base.max_connections,
        .max_entry_bytes = base.max_message_bytes,
        .max_answer_bytes = base.max_message_bytes,
        .retry = base.retry,
        .tail_retry = base.retry,
    };
    options->tail_retry.max_retries = STREAM_RETRY_FOREVER;
    options->tail_retry.max_delay_ms = 5000;
}

static int check(const struct scoped_client_options *o, struct scoped_error *ret_error)
{
    struct stream_error error;

    if (o->max_entry_bytes == 0 || o->max_answer_bytes == 0) {
        return scoped_error_set(ret_error, STREAM_ERROR_ARGUMENT, "%s is 0; it must be 1 or more",
                                o->max_entry_bytes == 0 ? "max_entry_bytes" : "max_answer_bytes");
    }
    if (retry_check(&o->tail_retry, &error) != STREAM_OK) {
        return scoped_error_set(ret_error, STREAM_ERROR_ARGUMENT, "tail_%s", error.message);
    }
    return STREAM_OK;
}

static int make_stream_client(const char *app_url, const struct scoped_client_options *o,
                              struct stream_client **ret_client, struct scoped_error *ret_error)
{
    static const struct refusal none = {.present = false};
    struct stream_client_options options;
    struct stream_error error;

    stream_client_options_init(&options);
    options.bearer = o->bearer;
    options.ca_file = o->ca_file;
    options.user_agent = o->user_agent;
    options.connect_timeout_ms = o->connect_timeout_ms;
    options.request_timeout_ms = o->request_timeout_ms;
    options.idle_timeout_ms = o->idle_timeout_ms;
    options.compression = o->compression;
    options.max_connections = o->max_connections;
    options.max_message_bytes = o->max_entry_bytes;
    options.retry = o->retry;
    options.add_headers = o->add_headers;
    options.context = o->context;
    int code = stream_client_new(app_url, &options, ret_client, &error);

    return code == STREAM_OK ? code : scoped_error_fill(ret_error, &error, &none);
}

int scoped_client_new(const char *app_url, const struct scoped_client_options *options,
                      struct scoped_client **ret_client, struct scoped_error *ret_error)
{
    struct scoped_client_options defaults;
    struct stream_client *stream;

    scoped_client_options_init(&defaults);
    options = options != NULL ? options : &defaults;
    int code = check(options, ret_error);

    if (code != STREAM_OK) {
        return code;
    }
    struct scoped_client *client = calloc(1, sizeof(*client));

    if (client == NULL) {
        return scoped_error_set(ret_error, STREAM_ERROR_MEMORY, "out of memory");
    }
    code = make_stream_client(app_url, options, &stream, ret_error);
    if (code != STREAM_OK) {
        free(client);
        return code;
    }
    client->stream = stream;
    client->tail_retry = options->tail_retry;
    client->max_answer_bytes = options->max_answer_bytes;
    *ret_client = client;
    return STREAM_OK;
}

void scoped_client_free(struct scoped_client *client)
{
    if (client != NULL) {
        stream_client_free(client->stream);
        free(client);
    }
}

void scoped_client_abort(struct scoped_client *client)
{
    stream_client_abort(client->stream);
}

void scoped_client_reset(struct scoped_client *client)
{
    stream_client_reset(client->stream);
}

int scoped_client_fd(struct scoped_client *client)
{
    return stream_client_fd(client->stream);
}

void scoped_client_step(struct scoped_client *client)
{
    stream_client_step(client->stream);
}
