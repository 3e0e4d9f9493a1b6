/* Bodies of errors come from servers and from whatever stands in front of them: a member that is
 * not what it should be counts as absent. */
#include "client/refusal.h"

#include "base/json_value.h"
#include "base/limits.h"
#include "client/call.h"

/* The string member `name`, cut at `size` less one; empty when there is none. */
static void read_text(struct slice object, struct slice name, char *out, size_t size)
{
    char memory[CLIENT_SENTENCE_BYTES + 1];
    struct slice value;
    struct buf text;

    out[0] = '\0';
    if (json_object_find(object, name, &value, NULL) != 1 || json_kind(value) != JSON_STRING) {
        return;
    }
    buf_init_fixed(&text, memory, sizeof(memory));
    if (json_string_decode(value, &text) != 0) {
        return;
    }
    size_t len = text.len < size ? text.len : size - 1;

    memcpy(out, memory, len);
    out[len] = '\0';
    call_clean_text(out);
}

void refusal_read(struct slice body, struct refusal *ret_refusal)
{
    struct refusal r = {.present = false};
    struct slice value;
    struct slice error;
    struct slice context;
    struct slice recoverable;

    *ret_refusal = r;
    if (json_text_read(body, &value, NULL) != 0 || json_kind(value) != JSON_OBJECT ||
        json_object_find(value, SLICE("error"), &error, NULL) != 1 ||
        json_kind(error) != JSON_OBJECT) {
        return;
    }
    read_text(error, SLICE("code"), r.code, sizeof(r.code));
    if (r.code[0] == '\0') {
        return;
    }
    r.present = true;
    read_text(error, SLICE("message"), r.message, sizeof(r.message));
    read_text(error, SLICE("suggestion"), r.suggestion, sizeof(r.suggestion));
    r.recoverable = json_object_find(error, SLICE("recoverable"), &recoverable, NULL) == 1 &&
                    json_kind(recoverable) == JSON_TRUE;
    if (json_object_find(error, SLICE("context"), &context, NULL) == 1 &&
        json_kind(context) == JSON_OBJECT) {
        read_text(context, SLICE("field"), r.field, sizeof(r.field));
    }
    *ret_refusal = r;
}
