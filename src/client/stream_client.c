/* The functions of arbe/stream_client.h that are one call each: arguments are checked and become a
 * call, which operation.c sees through. Readers are in reader.c, listings in stream_list.c. */
#include "arbe/stream_client.h"

#include "base/json_value.h"
#include "base/media_type.h"
#include "base/version.h"
#include "client/client.h"
#include "client/operation.h"

#include <stdio.h>
#include <stdlib.h>

static int check_name(const struct call *call, struct stream_error *ret_error)
{
    const char *why = call_name_refusal(call->name);

    return why == NULL ? STREAM_OK : operation_refuse(call, why, ret_error);
}

static int compose_create(const char *name, const struct stream_create_options *options,
                          struct call *ret_call, struct stream_error *ret_error)
{
    *ret_call = (struct call){.verb = CALL_CREATE, .name = slice_of(name), .create = options};
    if (options != NULL) {
        ret_call->content_type = options->content_type;
        ret_call->close = options->closed != 0;
        ret_call->body = (struct slice){options->data, options->data != NULL ? options->len : 0};
        if (options->ttl_seconds < 0) {
            return operation_refuse(ret_call, "ttl_seconds must not be below 0", ret_error);
        }
        if (options->ttl_seconds > 0 && options->expires_at != NULL) {
            return operation_refuse(ret_call, "ttl_seconds and expires_at exclude each other",
                                    ret_error);
        }
        if (options->fork_sub_offset < 0) {
            return operation_refuse(ret_call, "fork_sub_offset must not be below 0", ret_error);
        }
        if (options->fork_of == NULL &&
            (options->fork_offset != NULL || options->fork_sub_offset != 0)) {
            return operation_refuse(ret_call, "fork_offset means nothing without fork_of",
                                    ret_error);
        }
    }
    return check_name(ret_call, ret_error);
}

static int compose_append(const char *name, const void *data, size_t len,
                          const struct stream_append_options *options, struct call *ret_call,
                          struct stream_error *ret_error)
{
    *ret_call = (struct call){
        .verb = CALL_APPEND, .name = slice_of(name), .body = {data, data != NULL ? len : 0}};
    if (options != NULL) {
        ret_call->content_type = options->content_type;
        ret_call->seq = options->seq;
        ret_call->close = options->close != 0;
        ret_call->producer_id = options->producer_id;
        ret_call->producer_epoch = options->producer_epoch;
        ret_call->producer_seq = options->producer_seq;
        if (options->producer_id != NULL &&
            (options->producer_id[0] == '\0' || options->producer_epoch < 0 ||
             options->producer_seq < 0)) {
            return operation_refuse(
                ret_call,
                "producer_id must not be empty, nor producer_epoch or producer_seq "
                "below 0",
                ret_error);
        }
    }
    if (ret_call->body.len == 0 && !ret_call->close) {
        return operation_refuse(ret_call, "there is nothing to append", ret_error);
    }
    return check_name(ret_call, ret_error);
}

int stream_client_create(struct stream_client *client, const char *name,
                         const struct stream_create_options *options, struct stream_info *ret_info,
                         struct stream_error *ret_error)
{
    struct call call;
    int code = compose_create(name, options, &call, ret_error);

    return code != STREAM_OK ? code : operation_block(client, &call, ret_info, NULL, ret_error);
}

int stream_client_head(struct stream_client *client, const char *name, struct stream_info *ret_info,
                       struct stream_error *ret_error)
{
    struct call call = {.verb = CALL_HEAD, .name = slice_of(name)};
    int code = check_name(&call, ret_error);

    return code != STREAM_OK ? code : operation_block(client, &call, ret_info, NULL, ret_error);
}

int stream_client_append(struct stream_client *client, const char *name, const void *data,
                         size_t len, const struct stream_append_options *options,
                         struct stream_info *ret_info, struct stream_error *ret_error)
{
    struct call call;
    int code = compose_append(name, data, len, options, &call, ret_error);

    return code != STREAM_OK ? code : operation_block(client, &call, ret_info, NULL, ret_error);
}

int stream_client_close(struct stream_client *client, const char *name,
                        struct stream_info *ret_info, struct stream_error *ret_error)
{
    struct stream_append_options options = {.close = 1};

    return stream_client_append(client, name, NULL, 0, &options, ret_info, ret_error);
}

int stream_client_delete(struct stream_client *client, const char *name,
                         struct stream_error *ret_error)
{
    struct call call = {.verb = CALL_DELETE, .name = slice_of(name)};
    int code = check_name(&call, ret_error);

    return code != STREAM_OK ? code : operation_block(client, &call, NULL, NULL, ret_error);
}

/* The messages one behind the other, or as a JSON array; NULL when memory is out or nothing can be
 * that long. To be freed. */
static char *join(const struct stream_message *messages, size_t count, bool json, size_t *ret_len)
{
    size_t size = 2;
    size_t len = 0;

    for (size_t i = 0; i < count; i++) {
        if (__builtin_add_overflow(size, messages[i].len, &size) ||
            __builtin_add_overflow(size, 1, &size)) {
            return NULL;
        }
    }
    char *joined = malloc(size);

    if (joined == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (json) {
            joined[len++] = i == 0 ? '[' : ',';
        }
        if (messages[i].len > 0) {
            memcpy(joined + len, messages[i].data, messages[i].len);
            len += messages[i].len;
        }
    }
    if (json) {
        joined[len++] = ']';
    }
    *ret_len = len;
    return joined;
}

/* Each is one value, or the array would hold other messages than these. */
static int check_values(const char *name, const struct stream_message *messages, size_t count,
                        struct stream_error *ret_error)
{
    const struct call call = {.verb = CALL_APPEND, .name = slice_of(name), .body = SLICE("-")};
    char sentence[STREAM_ERROR_MESSAGE_BYTES];
    struct errmsg why = {.text = ""};
    struct slice value;

    for (size_t i = 0; i < count; i++) {
        if (json_text_read((struct slice){messages[i].data, messages[i].len}, &value, &why) < 0) {
            (void)snprintf(sentence, sizeof(sentence), "messages[%zu] must be one JSON value: %s",
                           i, why.text);
            return operation_refuse(&call, sentence, ret_error);
        }
    }
    return STREAM_OK;
}

/* Finds the type of the stream of a batch, which decides on its form. */
static int find_type(struct stream_client *client, const char *name,
                     char type[OPERATION_TYPE_BYTES], bool *ret_remembered,
                     struct stream_error *ret_error)
{
    struct stream_info info;

    *ret_remembered = client_type_find(client, slice_of(name), type);
    if (*ret_remembered) {
        return STREAM_OK;
    }
    int code = stream_client_head(client, name, &info, ret_error);

    if (code == STREAM_OK && info.content_type[0] == '\0') {
        code = call_error_set(ret_error, STREAM_ERROR_FORMAT,
                              "the server does not tell the content type of \"%.100s\"", name);
    }
    if (code == STREAM_OK) {
        memcpy(type, info.content_type, strlen(info.content_type) + 1);
    }
    return code;
}

static int append_joined(struct stream_client *client, const char *name,
                         const struct stream_message *messages, size_t count,
                         const struct stream_append_options *options, struct stream_info *ret_info,
                         struct stream_error *ret_error)
{
    size_t len = 0;
    bool json = media_type_is_json(slice_of(options->content_type));
    int code = json ? check_values(name, messages, count, ret_error) : STREAM_OK;

    if (code != STREAM_OK) {
        return code;
    }
    char *joined = join(messages, count, json, &len);

    if (joined == NULL) {
        return call_error_set(ret_error, STREAM_ERROR_MEMORY, "out of memory");
    }
    code = stream_client_append(client, name, joined, len, options, ret_info, ret_error);

    free(joined);
    return code;
}

int stream_client_append_batch(struct stream_client *client, const char *name,
                               const struct stream_message *messages, size_t count,
                               const struct stream_append_options *options,
                               struct stream_info *ret_info, struct stream_error *ret_error)
{
    const struct call call = {.verb = CALL_APPEND, .name = slice_of(name), .body = SLICE("-")};
    struct stream_append_options with_type = {0};
    char type[OPERATION_TYPE_BYTES];
    bool remembered = false;
    int code = check_name(&call, ret_error);

    if (code == STREAM_OK && count == 0) {
        code = operation_refuse(&call, "there is nothing to append", ret_error);
    }
    if (options != NULL) {
        with_type = *options;
    }
    if (code != STREAM_OK || with_type.content_type != NULL) {
        return code != STREAM_OK
                   ? code
                   : append_joined(client, name, messages, count, &with_type, ret_info, ret_error);
    }
    code = find_type(client, name, type, &remembered, ret_error);
    with_type.content_type = type;
    if (code == STREAM_OK) {
        code = append_joined(client, name, messages, count, &with_type, ret_info, ret_error);
    }
    if ((code == STREAM_ERROR_EXISTS || code == STREAM_ERROR_ARGUMENT) && remembered) {
        /* Perhaps somebody made the stream anew, with another type: nothing was appended. */
        client_type_note(client, call.name, "");
        code = find_type(client, name, type, &remembered, ret_error);
        if (code == STREAM_OK) {
            code = append_joined(client, name, messages, count, &with_type, ret_info, ret_error);
        }
    }
    return code;
}

int stream_client_start_create(struct stream_client *client, const char *name,
                               const struct stream_create_options *options, stream_done_fn done,
                               void *context, struct stream_error *ret_error)
{
    struct call call;
    int code = compose_create(name, options, &call, ret_error);

    return code != STREAM_OK ? code : operation_start(client, &call, done, context, ret_error);
}

int stream_client_start_head(struct stream_client *client, const char *name, stream_done_fn done,
                             void *context, struct stream_error *ret_error)
{
    struct call call = {.verb = CALL_HEAD, .name = slice_of(name)};
    int code = check_name(&call, ret_error);

    return code != STREAM_OK ? code : operation_start(client, &call, done, context, ret_error);
}

int stream_client_start_append(struct stream_client *client, const char *name, const void *data,
                               size_t len, const struct stream_append_options *options,
                               stream_done_fn done, void *context, struct stream_error *ret_error)
{
    struct call call;
    int code = compose_append(name, data, len, options, &call, ret_error);

    return code != STREAM_OK ? code : operation_start(client, &call, done, context, ret_error);
}

int stream_client_start_delete(struct stream_client *client, const char *name, stream_done_fn done,
                               void *context, struct stream_error *ret_error)
{
    struct call call = {.verb = CALL_DELETE, .name = slice_of(name)};
    int code = check_name(&call, ret_error);

    return code != STREAM_OK ? code : operation_start(client, &call, done, context, ret_error);
}

const char *stream_client_version(void)
{
    return ARBE_VERSION;
}
