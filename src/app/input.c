/* Objects are small: each member is looked for by a scan of its own. */
#include "app/input.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>

#define TOLD_BYTES_MAX 60u /* of a name, in a sentence */

void input_refuse(struct input *in, const char *name, const char *format, ...)
{
    char sentence[320];
    va_list args;

    if (in->failed) {
        return;
    }
    in->failed = true;
    va_start(args, format);
    (void)vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    (void)api_error_set(in->error, API_INVALID_INPUT, "%s %s", name, sentence);
    (void)api_error_set_field(in->error, "%s", name);
}

void input_begin(struct input *in, struct slice body, bool may_be_empty, struct arena *memory,
                 struct api_error *error)
{
    struct errmsg msg = {{0}};

    *in = (struct input){.object = SLICE("{}"), .memory = memory, .error = error};
    if (body.len == 0 && may_be_empty) {
        return;
    }
    if (json_text_read(body, &in->object, &msg) != 0) {
        in->failed = true;
        (void)api_error_set(error, API_MALFORMED_JSON, "the body must be a JSON object: %s",
                            msg.text);
    } else if (json_kind(in->object) != JSON_OBJECT) {
        in->failed = true;
        (void)api_error_set(error, API_INVALID_INPUT, "the body must be a JSON object, not %s",
                            json_kind_text(json_kind(in->object)));
    }
}

struct slice input_value(struct input *in, const char *name)
{
    struct slice value = {NULL, 0};

    if (in->failed) {
        return value;
    }
    if (in->asked_count < INPUT_MEMBERS_MAX) {
        in->asked[in->asked_count++] = slice_of(name);
    }
    if (json_object_find(in->object, slice_of(name), &value, NULL) < 0) {
        input_refuse(in, name, "may be given once only");
    }
    return value;
}

bool input_has(struct input *in, const char *name)
{
    struct slice value = {NULL, 0};

    return !in->failed && json_object_find(in->object, slice_of(name), &value, NULL) == 1;
}

static bool is_control(struct slice text, bool lines)
{
    while (text.len > 0) {
        size_t control = utf8_control(text);

        if (control > 0 &&
            !(lines && (*text.ptr == '\n' || *text.ptr == '\t' || *text.ptr == '\r'))) {
            return true;
        }
        text = (struct slice){text.ptr + 1, text.len - 1};
    }
    return false;
}

/* Decodes a string value; refuses, in the member's name, what is none or too long. */
static struct slice decode(struct input *in, const char *name, struct slice value, size_t bytes_max)
{
    struct slice none = {NULL, 0};
    struct buf text;

    if (json_kind(value) != JSON_STRING) {
        input_refuse(in, name, "must be a string, not %s", json_kind_text(json_kind(value)));
        return none;
    }
    char *room = arena_try_alloc(in->memory, value.len + 1); /* decoding never makes it longer */

    if (room == NULL) {
        input_refuse(in, name, "is too long");
        return none;
    }
    buf_init_fixed(&text, room, value.len + 1);
    if (json_string_decode(value, &text) != 0) {
        input_refuse(in, name, "holds half a surrogate pair, which is no character");
        return none;
    }
    if (text.len > bytes_max) {
        input_refuse(in, name, "must have at most %zu bytes, not %zu", bytes_max, text.len);
        return none;
    }
    return (struct slice){room, text.len};
}

struct slice input_text(struct input *in, const char *name, const struct input_text *rules)
{
    struct slice value = input_value(in, name);
    struct slice none = {NULL, 0};

    if (in->failed) {
        return none;
    }
    if (value.ptr == NULL) {
        if (rules->required) {
            input_refuse(in, name, "is missing; it must be a string");
        }
        return none;
    }
    if (json_kind(value) == JSON_NULL && rules->null_ok) {
        return none;
    }
    struct slice text = decode(in, name, value, rules->bytes_max);

    if (text.ptr == NULL) {
        return none;
    }
    if (slice_trim(text).len == 0) {
        input_refuse(in, name, "must not be empty");
    } else if (is_control(text, rules->lines)) {
        input_refuse(in, name, "must not hold control characters");
    }
    return in->failed ? none : text;
}

uint64_t input_number(struct input *in, const char *name, uint64_t least, uint64_t most,
                      uint64_t otherwise)
{
    struct slice value = input_value(in, name);
    uint64_t number = 0;

    if (in->failed || value.ptr == NULL) {
        return otherwise;
    }
    if (json_kind(value) != JSON_NUMBER || !json_number_u64(value, most, &number) ||
        number < least) {
        input_refuse(in, name, "must be a whole number from %llu to %llu",
                     (unsigned long long)least, (unsigned long long)most);
    }
    return number;
}

bool input_flag(struct input *in, const char *name, bool otherwise)
{
    struct slice value = input_value(in, name);

    if (in->failed || value.ptr == NULL) {
        return otherwise;
    }
    enum json_kind kind = json_kind(value);

    if (kind != JSON_TRUE && kind != JSON_FALSE) {
        input_refuse(in, name, "must be true or false, not %s", json_kind_text(kind));
    }
    return kind == JSON_TRUE;
}

static bool is_in(struct slice text, const struct slice *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (slice_equal(text, texts[i])) {
            return true;
        }
    }
    return false;
}

size_t input_texts(struct input *in, const char *name, size_t count_max, size_t bytes_max,
                   struct slice *ret_texts)
{
    struct slice value = input_value(in, name);
    struct json_walk walk;
    struct slice element;
    size_t count = 0;

    if (in->failed || value.ptr == NULL) {
        return 0;
    }
    if (json_kind(value) != JSON_ARRAY) {
        input_refuse(in, name, "must be an array of strings, not %s",
                     json_kind_text(json_kind(value)));
        return 0;
    }
    json_walk_begin(&walk, value);
    while (!in->failed && json_walk_element(&walk, &element)) {
        if (count == count_max) {
            input_refuse(in, name, "must have at most %zu elements", count_max);
            break;
        }
        struct slice text = decode(in, name, element, bytes_max);

        if (!in->failed && (text.len == 0 || is_control(text, false))) {
            input_refuse(in, name, "must hold texts of 1 to %zu bytes without control characters",
                         bytes_max);
        }
        if (!in->failed && !is_in(text, ret_texts, count)) {
            ret_texts[count++] = text;
        }
    }
    return in->failed ? 0 : count;
}

int input_end(struct input *in)
{
    struct json_walk walk;
    struct slice name;
    struct slice value;

    json_walk_begin(&walk, in->object);
    while (!in->failed && json_walk_member(&walk, &name, &value)) {
        bool known = false;

        for (size_t i = 0; i < in->asked_count && !known; i++) {
            known = json_string_equal(name, in->asked[i]);
        }
        if (!known) {
            struct slice told = utf8_cut(name, TOLD_BYTES_MAX);

            in->failed = true;
            (void)api_error_set(in->error, API_INVALID_INPUT,
                                "the body must not have a member %.*s; docs/api.md lists those "
                                "that it may have",
                                (int)told.len, told.ptr);
            (void)api_error_set_field(in->error, "%.*s", (int)name.len - 2, name.ptr + 1);
        }
    }
    return in->failed ? -1 : 0;
}
