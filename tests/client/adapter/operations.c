/* The operations that are one request each. */
#include "client/adapter/handlers.h"

#include <stdio.h>

static void reply_offset(struct reply *r, const struct stream_info *info)
{
    if (info->next_offset[0] != '\0') {
        reply_text(r, "offset", info->next_offset);
    }
}

void handle_create(struct session *s, const struct command *c, struct reply *r)
{
    const char *path = command_text(c, "path");
    struct slice data = command_bytes(c, "data");
    struct stream_create_options options = {
        .content_type = command_text(c, "contentType"),
        .ttl_seconds = (int64_t)command_number(c, "ttlSeconds", 0),
        .expires_at = command_text(c, "expiresAt"),
        .closed = command_flag(c, "closed"),
        .data = data.ptr,
        .len = data.len,
    };
    struct stream_info info;
    struct stream_error error;

    if (stream_client_create(s->client, session_name(path), &options, &info, &error) != STREAM_OK) {
        reply_error(r, &error, false);
        return;
    }
    session_note_type(s, path, options.content_type != NULL ? options.content_type : "");
    reply_success(r);
    reply_number(r, "status", info.status);
    reply_offset(r, &info);
}

/* What HEAD tells; also how one connects. */
static bool ask_head(struct session *s, const struct command *c, struct reply *r,
                     struct stream_info *ret_info)
{
    const char *path = command_text(c, "path");
    struct stream_error error;

    if (stream_client_head(s->client, session_name(path), ret_info, &error) != STREAM_OK) {
        reply_error(r, &error, false);
        return false;
    }
    session_note_type(s, path, ret_info->content_type);
    reply_success(r);
    reply_number(r, "status", ret_info->status);
    reply_offset(r, ret_info);
    return true;
}

void handle_connect(struct session *s, const struct command *c, struct reply *r)
{
    struct stream_info info;

    (void)ask_head(s, c, r, &info); /* either way there is a reply */
}

void handle_head(struct session *s, const struct command *c, struct reply *r)
{
    struct stream_info info;

    if (!ask_head(s, c, r, &info)) {
        return;
    }
    reply_text(r, "contentType", info.content_type);
    reply_flag(r, "streamClosed", info.closed != 0);
    if (info.ttl_seconds >= 0) {
        reply_number(r, "ttlSeconds", info.ttl_seconds);
    }
    if (info.expires_at[0] != '\0') {
        reply_text(r, "expiresAt", info.expires_at);
    }
    if (info.etag[0] != '\0') {
        reply_open(r, "headers", '{');
        reply_text(r, "etag", info.etag);
        reply_shut(r, '}');
    }
}

static void reply_appended(struct session *s, struct reply *r, const struct stream_info *info)
{
    reply_success(r);
    reply_number(r, "status", 200); /* the driver's word for "taken", 204 as well */
    reply_offset(r, info);
    session_reply_sent(s, r);
    if (info->producer_epoch >= 0) {
        reply_flag(r, "duplicate", info->duplicate != 0);
        reply_number(r, "producerEpoch", info->producer_epoch);
    }
    if (info->producer_seq >= 0) {
        reply_number(r, "producerSeq", info->producer_seq);
    }
}

void handle_append(struct session *s, const struct command *c, struct reply *r)
{
    const char *name = session_name(command_text(c, "path"));
    struct slice data = command_flag(c, "binary") ? command_base64(c, "data")
                                                  : command_bytes(c, "data");
    struct stream_append_options options = {
        .producer_id = command_text(c, "producerId"),
        .producer_epoch = (int64_t)command_number(c, "producerEpoch", 0),
        .producer_seq = (int64_t)command_number(c, "producerSeq", 0),
    };
    struct slice seq;
    struct stream_info info;
    struct stream_error error;
    char digits[32];

    if (command_member(c, "seq", &seq)) {
        (void)snprintf(digits, sizeof(digits), "%.0f", command_number(c, "seq", 0));
        options.seq = digits;
    }
    if (stream_client_append(s->client, name, data.ptr, data.len, &options, &info, &error) !=
        STREAM_OK) {
        reply_error(r, &error, false);
        return;
    }
    reply_appended(s, r, &info);
}

void handle_delete(struct session *s, const struct command *c, struct reply *r)
{
    struct stream_error error;

    if (stream_client_delete(s->client, session_name(command_text(c, "path")), &error) !=
        STREAM_OK) {
        reply_error(r, &error, false);
        return;
    }
    reply_success(r);
    reply_number(r, "status", 200);
}

void handle_close(struct session *s, const struct command *c, struct reply *r)
{
    const char *name = session_name(command_text(c, "path"));
    struct slice data = command_bytes(c, "data");
    struct stream_append_options options = {
        .content_type = command_text(c, "contentType"),
        .close = 1,
    };
    struct stream_info info;
    struct stream_error error;
    int code = data.len > 0 ? stream_client_append(s->client, name, data.ptr, data.len, &options,
                                                   &info, &error)
                            : stream_client_close(s->client, name, &info, &error);

    if (code != STREAM_OK) {
        reply_error(r, &error, false);
        return;
    }
    reply_success(r);
    reply_text(r, "finalOffset", info.next_offset);
}
