/* Bodies of errors come from servers and from whatever stands in front of them: nothing in them is
 * believed beyond being a text to show. */
#include "client/http_sentence.h"

#include "base/json_value.h"
#include "base/utf8.h"

/* Appends the string member `name`; false when there is none. */
static bool append_member(struct slice object, struct slice name, struct buf *out)
{
    struct slice value;

    if (json_kind(object) != JSON_OBJECT || json_object_find(object, name, &value, NULL) != 1 ||
        json_kind(value) != JSON_STRING) {
        return false;
    }
    size_t before = out->len;

    return json_string_decode(value, out) == 0 && out->len > before;
}

static void append_of_json(struct slice body, struct buf *out)
{
    struct slice value;
    struct slice error;

    if (json_text_read(body, &value, NULL) != 0) {
        return;
    }
    if (append_member(value, SLICE("detail"), out)) {
        return;
    }
    if (json_kind(value) == JSON_OBJECT &&
        json_object_find(value, SLICE("error"), &error, NULL) == 1) {
        if (append_member(error, SLICE("message"), out) ||
            append_member(value, SLICE("error"), out)) {
            return;
        }
    }
    (void)(append_member(value, SLICE("message"), out) ||
           append_member(value, SLICE("title"), out)); /* or nothing */
}

void http_sentence(struct slice body, bool is_json, bool is_text, struct buf *out)
{
    if (is_json) {
        append_of_json(body, out);
        return;
    }
    struct slice rest = body;
    struct slice line = {NULL, 0};

    if (!is_text) {
        return;
    }
    (void)slice_split(&rest, '\n', &line);
    line.len = utf8_valid_prefix(line);
    while (line.len > 0 && (line.ptr[line.len - 1] == '\r' || line.ptr[line.len - 1] == ' ')) {
        line.len--;
    }
    buf_append(out, line);
}
