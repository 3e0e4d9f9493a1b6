/* Each function finds one group of fields in a head; what they say is read by stream/field.h. */
#include "serve/fields.h"

#include "stream/field.h"

int fields_single(const struct http_request *request, struct slice name, struct slice *ret_value,
                  struct errmsg *msg)
{
    size_t count = 0;
    struct slice value = http_request_header(request, name, &count);

    if (count > 1) {
        return err_set(msg, ERR_INVALID, "%.*s may be given once only", (int)name.len, name.ptr);
    }
    *ret_value = count == 0 ? (struct slice){NULL, 0} : value;
    return 0;
}

int fields_content_type(const struct http_request *request, struct slice *ret_type,
                        struct errmsg *msg)
{
    struct slice value;
    int code = fields_single(request, SLICE("Content-Type"), &value, msg);

    return code != 0 ? code : field_content_type(value, ret_type, msg);
}

int fields_closed(const struct http_request *request, bool *ret_closed, struct errmsg *msg)
{
    struct slice value;
    int code = fields_single(request, SLICE("Stream-Closed"), &value, msg);

    if (code == 0) {
        *ret_closed = slice_equal_nocase(value, SLICE("true"));
    }
    return code;
}

int fields_expiry(const struct http_request *request, struct stream_expiry *ret_expiry,
                  struct errmsg *msg)
{
    struct slice ttl;
    struct slice at;
    int code = fields_single(request, SLICE("Stream-TTL"), &ttl, msg);

    if (code == 0) {
        code = fields_single(request, SLICE("Stream-Expires-At"), &at, msg);
    }
    return code != 0 ? code : field_expiry(ttl, at, ret_expiry, msg);
}

int fields_producer(const struct http_request *request, struct record_producer *ret_producer,
                    struct errmsg *msg)
{
    static const struct slice names[] = {
        {"Producer-Id", 11}, {"Producer-Epoch", 14}, {"Producer-Seq", 12}};
    struct slice values[ARRAY_COUNT(names)];

    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        int code = fields_single(request, names[i], &values[i], msg);

        if (code != 0) {
            return code;
        }
    }
    return field_producer(values, ret_producer, msg);
}

int fields_seq(const struct http_request *request, bool *ret_has_seq, struct slice *ret_seq,
               struct errmsg *msg)
{
    struct slice value;
    int code = fields_single(request, SLICE("Stream-Seq"), &value, msg);

    return code != 0 ? code : field_seq(value, ret_has_seq, ret_seq, msg);
}

int fields_fork(const struct http_request *request, char name[static STREAM_NAME_BYTES_MAX],
                struct stream_create_request *ret_create, struct errmsg *msg)
{
    struct field_fork fork;
    int code = fields_single(request, SLICE("Stream-Forked-From"), &fork.source, msg);

    if (code == 0) {
        code = fields_single(request, SLICE("Stream-Fork-Offset"), &fork.offset, msg);
    }
    if (code == 0) {
        code = fields_single(request, SLICE("Stream-Fork-Sub-Offset"), &fork.sub_offset, msg);
    }
    return code != 0 ? code : field_fork(&fork, name, ret_create, msg);
}
