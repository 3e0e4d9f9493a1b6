/* Each function reads one group of fields. HTTP and the transport within the process say the same
 * of the same mistake, because they say it here. */
#include "stream/field.h"

#include "base/date.h"
#include "base/media_type.h"
#include "base/number.h"
#include "stream/name.h"

#include <inttypes.h>

int field_content_type(struct slice text, struct slice *ret_type, struct errmsg *msg)
{
    if (text.len >= STREAM_CONTENT_TYPE_BYTES_MAX) {
        return err_set(msg, ERR_INVALID, "Content-Type has at most %u bytes",
                       STREAM_CONTENT_TYPE_BYTES_MAX - 1);
    }
    if (text.len > 0 && !media_type_valid(text)) {
        return err_set(msg, ERR_INVALID,
                       "Content-Type must be a media type such as text/plain or application/json");
    }
    *ret_type = text;
    return 0;
}

static int parse_ttl(struct slice text, struct stream_expiry *expiry, struct errmsg *msg)
{
    if (!number_parse_u64(text, STREAM_TTL_SECONDS_MAX, false, &expiry->ttl_seconds)) {
        return err_set(
            msg, ERR_INVALID,
            "Stream-TTL must be whole seconds in decimal digits, without a sign or leading "
            "zeros, at most %llu",
            STREAM_TTL_SECONDS_MAX);
    }
    expiry->has_ttl = true;
    return 0;
}

static int parse_expires_at(struct slice text, struct stream_expiry *expiry, struct errmsg *msg)
{
    if (!date_parse_rfc3339(text, &expiry->expires_at_ms)) {
        return err_set(msg, ERR_INVALID,
                       "Stream-Expires-At must be an RFC 3339 time such as 2030-01-31T12:00:00Z");
    }
    expiry->has_expires_at = true;
    return 0;
}

int field_expiry(struct slice ttl, struct slice expires_at, struct stream_expiry *ret_expiry,
                 struct errmsg *msg)
{
    struct stream_expiry expiry = {.has_ttl = false};
    int code = 0;

    if (ttl.ptr != NULL && expires_at.ptr != NULL) {
        return err_set(msg, ERR_INVALID, "give Stream-TTL or Stream-Expires-At, not both");
    }
    if (ttl.ptr != NULL) {
        code = parse_ttl(ttl, &expiry, msg);
    } else if (expires_at.ptr != NULL) {
        code = parse_expires_at(expires_at, &expiry, msg);
    }
    if (code == 0) {
        *ret_expiry = expiry;
    }
    return code;
}

static int parse_integer(struct slice name, struct slice text, uint64_t *ret_value,
                         struct errmsg *msg)
{
    if (!number_parse_u64(text, NUMBER_JS_MAX, false, ret_value)) {
        return err_set(msg, ERR_INVALID,
                       "%.*s must be a whole number from 0 to %" PRIu64 " in decimal digits",
                       (int)name.len, name.ptr, NUMBER_JS_MAX);
    }
    return 0;
}

int field_producer(const struct slice texts[static 3], struct record_producer *ret_producer,
                   struct errmsg *msg)
{
    struct record_producer producer = {.id = texts[0]};
    int given = (texts[0].ptr != NULL) + (texts[1].ptr != NULL) + (texts[2].ptr != NULL);

    if (given == 0) {
        *ret_producer = (struct record_producer){.epoch = 0};
        return 0;
    }
    if (given != 3) {
        return err_set(msg, ERR_INVALID,
                       "Producer-Id, Producer-Epoch and Producer-Seq must be given together");
    }
    if (producer.id.len == 0 || producer.id.len > PRODUCER_ID_BYTES_MAX) {
        return err_set(msg, ERR_INVALID, "Producer-Id has 1 to %u bytes", PRODUCER_ID_BYTES_MAX);
    }
    int code = parse_integer(SLICE("Producer-Epoch"), texts[1], &producer.epoch, msg);

    if (code == 0) {
        code = parse_integer(SLICE("Producer-Seq"), texts[2], &producer.seq, msg);
    }
    if (code == 0) {
        *ret_producer = producer;
    }
    return code;
}

int field_seq(struct slice text, bool *ret_has_seq, struct slice *ret_seq, struct errmsg *msg)
{
    if (text.ptr != NULL && (text.len == 0 || text.len > STREAM_SEQ_BYTES_MAX)) {
        return err_set(msg, ERR_INVALID, "Stream-Seq has 1 to %u bytes", STREAM_SEQ_BYTES_MAX);
    }
    *ret_has_seq = text.ptr != NULL;
    *ret_seq = text;
    return 0;
}

/* The source is a path of this server; the query that a URL may bring along names nothing. */
static int parse_source(struct slice path, char *name, struct slice *ret_source, struct errmsg *msg)
{
    struct slice rest = path;
    size_t len = 0;

    if (!slice_split(&rest, '?', &path) || !name_is_stream_path(path)) {
        return err_set(msg, ERR_INVALID,
                       "Stream-Forked-From must be the path of a stream of this server, such "
                       "as " NAME_ROOT "source");
    }
    const size_t root_len = sizeof(NAME_ROOT) - 1;
    int code = name_parse((struct slice){path.ptr + root_len, path.len - root_len}, name, &len,
                          msg);

    if (code != 0) {
        return err_prefix(msg, code == ERR_TOOBIG ? ERR_NOTFOUND : code, "Stream-Forked-From");
    }
    *ret_source = (struct slice){name, len};
    return 0;
}

static int parse_fork_place(struct slice offset, struct slice sub_offset,
                            struct stream_create_request *create, struct errmsg *msg)
{
    if (offset.ptr != NULL && !offset_parse(offset, &create->fork_offset)) {
        return err_set(msg, ERR_INVALID,
                       "Stream-Fork-Offset must be an offset that this server gave out");
    }
    create->has_fork_offset = offset.ptr != NULL;
    create->has_sub_offset = sub_offset.ptr != NULL;
    if (!create->has_sub_offset) {
        return 0;
    }
    int code = parse_integer(SLICE("Stream-Fork-Sub-Offset"), sub_offset, &create->sub_offset, msg);

    if (code == 0 && create->sub_offset > 0 && !create->has_fork_offset) {
        return err_set(msg, ERR_INVALID,
                       "Stream-Fork-Sub-Offset needs the Stream-Fork-Offset that it counts from");
    }
    return code;
}

int field_fork(const struct field_fork *fork, char name[static STREAM_NAME_BYTES_MAX],
               struct stream_create_request *ret_create, struct errmsg *msg)
{
    struct stream_create_request create = *ret_create;

    if (fork->source.ptr == NULL) {
        return fork->offset.ptr == NULL && fork->sub_offset.ptr == NULL
                   ? 0
                   : err_set(
                         msg, ERR_INVALID,
                         "Stream-Fork-Offset and Stream-Fork-Sub-Offset need Stream-Forked-From");
    }
    int code = parse_source(fork->source, name, &create.forked_from, msg);

    if (code == 0) {
        code = parse_fork_place(fork->offset, fork->sub_offset, &create, msg);
    }
    if (code == 0) {
        *ret_create = create;
    }
    return code;
}

int field_offset(struct slice text, struct offset *ret_offset, struct errmsg *msg)
{
    if (!offset_parse(text, ret_offset)) {
        return err_set(msg, ERR_INVALID,
                       "offset must be -1, now, or a token from Stream-Next-Offset");
    }
    return 0;
}

int field_listed(struct slice text, const char *which, struct errmsg *msg)
{
    if (text.len > STREAM_NAME_BYTES_MAX) {
        return err_set(msg, ERR_INVALID, "%s has at most %u bytes, as stream names have", which,
                       STREAM_NAME_BYTES_MAX);
    }
    return 0;
}
