/* Entries are decoded as far as every reader needs it. Whatever else is in them stays as it was
 * sent: readers skip what they do not know. */
#include "client/scoped.h"

#include "base/json_value.h"
#include "base/number.h"

void scoped_read_text(struct slice object, struct slice name, char *out, size_t size)
{
    struct slice value;
    struct buf text;

    out[0] = '\0';
    if (json_object_find(object, name, &value, NULL) != 1 || json_kind(value) != JSON_STRING) {
        return;
    }
    buf_init_fixed(&text, out, size);
    if (json_string_decode(value, &text) != 0 || memchr(out, '\0', text.len) != NULL) {
        text.len = 0;
    }
    out[text.len] = '\0';
}

void scoped_entry_decode(struct slice json, struct scoped_entry *ret_entry)
{
    struct slice value;
    uint64_t ts;

    *ret_entry = (struct scoped_entry){.json = json.ptr, .json_len = json.len};
    scoped_read_text(json, SLICE("id"), ret_entry->id, sizeof(ret_entry->id));
    scoped_read_text(json, SLICE("authorId"), ret_entry->author_id, sizeof(ret_entry->author_id));
    if (json_object_find(json, SLICE("ts"), &value, NULL) == 1 &&
        json_number_u64(value, NUMBER_JS_MAX, &ts)) {
        ret_entry->ts = (long long)ts;
    }
    if (json_object_find(json, SLICE("payload"), &value, NULL) == 1 &&
        json_kind(value) == JSON_OBJECT) {
        ret_entry->payload = value.ptr;
        ret_entry->payload_len = value.len;
        scoped_read_text(value, SLICE("type"), ret_entry->type, sizeof(ret_entry->type));
    }
}

int scoped_entry_read(const char *json, size_t len, struct scoped_entry *ret_entry)
{
    struct slice value;

    if (json_text_read((struct slice){json, len}, &value, NULL) != 0 ||
        json_kind(value) != JSON_OBJECT) {
        return STREAM_ERROR_FORMAT;
    }
    scoped_entry_decode(value, ret_entry);
    return STREAM_OK;
}
