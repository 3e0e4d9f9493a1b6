/*
 * The response reader: lines are gathered until complete and then move the state on; body bytes
 * pass straight to the caller. What frames a body is decided once, after the head
 * (RFC 9112 section 6.3).
 */
#include "reply.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

void reply_init(struct reply *reply, bool head)
{
    memset(reply, 0, sizeof *reply);
    reply->head = head;
    reply->left = -1;
}

bool reply_head_seen(const struct reply *reply)
{
    return reply->state > REPLY_HEADERS;
}

/* Copies into the line buffer up to a line end; tells whether the line is complete. */
static bool line_gather(struct reply *reply, const char **at, const char *end)
{
    const char *newline = memchr(*at, '\n', (size_t)(end - *at));
    size_t len = (size_t)((newline ? newline : end) - *at);
    size_t room = sizeof reply->line - 1 - reply->line_len;
    size_t kept = len < room ? len : room;
    memcpy(reply->line + reply->line_len, *at, kept);
    reply->line_len += kept;
    *at = newline ? newline + 1 : end;
    if (!newline) {
        return false;
    }
    if (reply->line_len > 0 && reply->line[reply->line_len - 1] == '\r') {
        reply->line_len--;
    }
    reply->line[reply->line_len] = '\0';
    reply->line_len = 0;
    return true;
}

static const char *header_value(const char *line, const char *name)
{
    size_t len = strlen(name);
    if (strncasecmp(line, name, len) != 0 || line[len] != ':') {
        return NULL;
    }
    line += len + 1;
    return line + strspn(line, " \t");
}

static void header_take(struct reply *reply)
{
    const char *value;
    if ((value = header_value(reply->line, "content-length"))) {
        reply->left = strtoll(value, NULL, 10);
    } else if ((value = header_value(reply->line, "transfer-encoding"))) {
        reply->chunked = strcasecmp(value, "chunked") == 0;
    } else if ((value = header_value(reply->line, "connection"))) {
        reply->closes = strcasecmp(value, "close") == 0;
    } else if ((value = header_value(reply->line, "stream-next-offset"))) {
        size_t len = strnlen(value, sizeof reply->next_offset - 1);
        memcpy(reply->next_offset, value, len);
        reply->next_offset[len] = '\0';
    }
}

/* Which responses have a body, and how its end is known. */
static enum reply_state state_after_head(struct reply *reply)
{
    if (reply->status / 100 == 1) {
        reply_init(reply, reply->head);
        return REPLY_STATUS;
    }
    if (reply->head || reply->status == 204 || reply->status == 304) {
        return REPLY_DONE;
    }
    if (reply->chunked) {
        return REPLY_CHUNK_SIZE;
    }
    return reply->left == 0 ? REPLY_DONE : REPLY_BODY;
}

static int line_take(struct reply *reply)
{
    switch (reply->state) {
    case REPLY_STATUS:
        if (strncmp(reply->line, "HTTP/1.", 7) != 0 || strlen(reply->line) < 12) {
            return -1;
        }
        reply->status = (int)strtol(reply->line + 9, NULL, 10);
        reply->state = REPLY_HEADERS;
        return 0;
    case REPLY_HEADERS:
        if (reply->line[0] != '\0') {
            header_take(reply);
        } else {
            reply->state = state_after_head(reply);
        }
        return 0;
    case REPLY_CHUNK_SIZE:
        reply->left = strtoll(reply->line, NULL, 16);
        reply->state = reply->left > 0 ? REPLY_CHUNK_DATA : REPLY_TRAILERS;
        return 0;
    case REPLY_CHUNK_END:
        reply->state = REPLY_CHUNK_SIZE;
        return reply->line[0] == '\0' ? 0 : -1;
    case REPLY_TRAILERS:
        if (reply->line[0] == '\0') {
            reply->state = REPLY_DONE;
        }
        return 0;
    default:
        return -1;
    }
}

static void body_take(struct reply *reply, const char **at, const char *end, reply_body_fn on_body,
                      void *context)
{
    size_t len = (size_t)(end - *at);
    if (reply->left >= 0 && (uint64_t)reply->left < len) {
        len = (size_t)reply->left;
    }
    if (on_body) {
        on_body(context, *at, len);
    }
    *at += len;
    reply->body_bytes += len;
    if (reply->left < 0) {
        return;
    }
    reply->left -= (int64_t)len;
    if (reply->left == 0) {
        reply->state = reply->state == REPLY_BODY ? REPLY_DONE : REPLY_CHUNK_END;
    }
}

ssize_t reply_bytes_feed(struct reply *reply, const char *bytes, size_t len, reply_body_fn on_body,
                         void *context)
{
    const char *at = bytes;
    const char *end = bytes + len;
    while (at < end && reply->state != REPLY_DONE) {
        if (reply->state == REPLY_BODY || reply->state == REPLY_CHUNK_DATA) {
            body_take(reply, &at, end, on_body, context);
        } else if (line_gather(reply, &at, end) && line_take(reply) != 0) {
            return -1;
        }
    }
    return at - bytes;
}
