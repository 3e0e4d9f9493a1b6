/* Lossy where a text is no UTF-8 at its heart: people are to see something. */
#include "cli/record.h"

#include "base/number.h"

#include <stdio.h>
#include <time.h>

static const struct slice nothing = {"", 0};

struct slice record_value(struct slice object, const char *name)
{
    struct slice value;

    if (object.len == 0 || json_kind(object) != JSON_OBJECT ||
        json_object_find(object, slice_of(name), &value, NULL) != 1) {
        return nothing;
    }
    return value;
}

void record_walk(struct json_walk *w, struct slice object, const char *name)
{
    struct slice value = record_value(object, name);

    json_walk_begin(w, value.len == 0 ? SLICE("null") : value);
}

struct slice record_text(struct slice object, const char *name, struct arena *memory)
{
    struct slice value = record_value(object, name);
    struct buf text;

    if (value.len == 0 || json_kind(value) != JSON_STRING) {
        return nothing;
    }
    buf_init(&text, 2 * value.len); /* U+FFFD has three bytes, its escape six */
    json_string_decode_lossy(value, &text);
    char *copy = text.failed ? NULL : arena_try_copy(memory, buf_slice(&text));
    struct slice result = copy == NULL ? nothing : (struct slice){copy, text.len};

    buf_finish(&text);
    return result;
}

uint64_t record_number(struct slice object, const char *name)
{
    struct slice value = record_value(object, name);
    uint64_t number = 0;

    if (value.len == 0 || json_kind(value) != JSON_NUMBER ||
        !json_number_u64(value, NUMBER_JS_MAX, &number)) {
        return 0;
    }
    return number;
}

bool record_flag(struct slice object, const char *name)
{
    struct slice value = record_value(object, name);

    return value.len > 0 && json_kind(value) == JSON_TRUE;
}

void record_format_time(char out[static RECORD_TIME_BYTES], uint64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm local;

    if (ms == 0 || localtime_r(&seconds, &local) == NULL ||
        strftime(out, RECORD_TIME_BYTES, "%Y-%m-%d %H:%M", &local) == 0) {
        (void)snprintf(out, RECORD_TIME_BYTES, "-");
    }
}
