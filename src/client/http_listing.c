/* Members that are not known are passed over, so that servers may say more. */
#include "client/http_listing.h"

#include "base/json_value.h"
#include "base/limits.h"
#include "base/number.h"

/* The string member `name`, NUL-terminated, in `out`: 1; 0: there is none; below 0: it is not good,
 * or does not fit. */
static int read_text(struct slice object, struct slice name, char *out, size_t size)
{
    struct slice value;
    struct buf text;
    int found = json_object_find(object, name, &value, NULL);

    out[0] = '\0';
    if (found != 1) {
        return found;
    }
    buf_init_fixed(&text, out, size);
    if (json_kind(value) != JSON_STRING || json_string_decode(value, &text) != 0 ||
        memchr(out, '\0', text.len) != NULL) {
        out[0] = '\0';
        return ERR_INVALID;
    }
    out[text.len] = '\0';
    return 1;
}

static bool read_stream(struct call *call, struct slice entry)
{
    struct stream_info info = {.ttl_seconds = -1, .producer_epoch = -1, .producer_seq = -1};
    char name[CALL_AFTER_BYTES];
    struct slice value;
    uint64_t ttl;

    if (json_kind(entry) != JSON_OBJECT ||
        read_text(entry, SLICE("path"), name, sizeof(name)) != 1 ||
        read_text(entry, SLICE("content_type"), info.content_type, sizeof(info.content_type)) < 0 ||
        read_text(entry, SLICE("next_offset"), info.next_offset, sizeof(info.next_offset)) < 0 ||
        read_text(entry, SLICE("expires_at"), info.expires_at, sizeof(info.expires_at)) < 0) {
        return false;
    }
    info.status = 200;
    if (json_object_find(entry, SLICE("closed"), &value, NULL) == 1) {
        info.closed = json_kind(value) == JSON_TRUE;
    }
    if (json_object_find(entry, SLICE("ttl_seconds"), &value, NULL) == 1 &&
        json_kind(value) == JSON_NUMBER && json_number_u64(value, NUMBER_JS_MAX, &ttl)) {
        info.ttl_seconds = (int64_t)ttl;
    }
    call->on_listed(call, slice_of(name), &info);
    return true;
}

void http_listing(struct call *call, struct slice page)
{
    struct slice value;
    struct slice streams;
    struct slice entry;
    struct json_walk walk;

    if (json_text_read(page, &value, NULL) != 0 || json_kind(value) != JSON_OBJECT ||
        json_object_find(value, SLICE("streams"), &streams, NULL) != 1 ||
        json_kind(streams) != JSON_ARRAY) {
        call_fail(call, STREAM_ERROR_FORMAT, "the answer is no listing of streams");
        return;
    }
    json_walk_begin(&walk, streams);
    while (json_walk_element(&walk, &entry)) {
        if (!read_stream(call, entry)) {
            call_fail(call, STREAM_ERROR_FORMAT, "a stream in the listing is malformed");
            return;
        }
    }
    if (read_text(value, SLICE("next_after"), call->result.after, sizeof(call->result.after)) < 0) {
        call_fail(call, STREAM_ERROR_FORMAT, "the listing does not say where it goes on");
    }
}
