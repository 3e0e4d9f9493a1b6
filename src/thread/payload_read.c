/* What others need of payloads, decoded. These read what is stored, which a later version or
 * another program may have written: what is not as expected is as if it were not there. */
#include <assert.h>

#include "base/err.h"
#include "base/json_value.h"
#include "base/number.h"
#include "thread/payload.h"

/* The member `name`, of the kind `kind`, once. */
static bool find(struct slice object, struct slice name, enum json_kind kind,
                 struct slice *ret_value)
{
    return json_object_find(object, name, ret_value, NULL) == 1 && json_kind(*ret_value) == kind;
}

static bool is_named(struct slice object, struct slice name, struct slice text)
{
    struct slice value;
    return find(object, name, JSON_STRING, &value) && json_string_equal(value, text);
}

static void append_blocks(struct slice payload, struct buf *out)
{
    struct json_walk w;
    struct slice content;
    struct slice block;
    struct slice text;
    bool first = true;
    if (!find(payload, SLICE("content"), JSON_ARRAY, &content)) {
        return;
    }
    json_walk_begin(&w, content);
    while (json_walk_element(&w, &block)) {
        if (!is_named(block, SLICE("type"), SLICE("text")) ||
            !find(block, SLICE("text"), JSON_STRING, &text)) {
            continue;
        }
        if (!first) {
            buf_append_char(out, '\n');
        }
        json_string_decode_lossy(text, out);
        first = false;
    }
}

void payload_text(struct slice payload, enum payload_type type, struct buf *out)
{
    struct slice text;
    if (type == PAYLOAD_CHAT && find(payload, SLICE("text"), JSON_STRING, &text)) {
        json_string_decode_lossy(text, out);
    } else if (type == PAYLOAD_PI_ASSISTANT) {
        append_blocks(payload, out);
    }
}

int payload_string(struct slice payload, struct slice name, struct arena *arena,
                   struct slice *ret_text)
{
    struct slice value;
    struct buf text;
    if (!find(payload, name, JSON_STRING, &value)) {
        return 0;
    }
    struct slice inside = {value.ptr + 1, value.len - 2};
    if (inside.len == 0 || !memchr(inside.ptr, '\\', inside.len)) {
        *ret_text = inside;
        return 1;
    }
    char *memory = arena_try_alloc(arena, value.len);
    if (!memory) {
        return ERR_NOMEM;
    }
    buf_init_fixed(&text, memory, value.len); /* no escape is shorter than what it stands for */
    json_string_decode_lossy(value, &text);
    assert(!text.failed);
    *ret_text = buf_slice(&text);
    return 1;
}

static bool read_count(struct slice usage, struct slice name, uint64_t *ret_count)
{
    struct slice value;
    return find(usage, name, JSON_NUMBER, &value) &&
           json_number_u64(value, NUMBER_JS_MAX, ret_count);
}

static double read_cost(struct slice usage)
{
    struct slice cost;
    struct slice total;
    double usd = 0;
    if (find(usage, SLICE("cost"), JSON_OBJECT, &cost) &&
        find(cost, SLICE("total"), JSON_NUMBER, &total) && json_number_double(total, &usd)) {
        return usd > 0 ? usd : 0;
    }
    return 0;
}

/* The strings around a usage; 0 or ERR_NOMEM. */
static int read_names(struct slice payload, struct arena *arena, struct payload_usage *usage)
{
    const struct {
        struct slice name;
        struct slice *text;
    } names[] = {
        {SLICE("provider"), &usage->provider},
        {SLICE("model"), &usage->model},
        {SLICE("invocationId"), &usage->invocation_id},
    };
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        *names[i].text = SLICE("");
        if (payload_string(payload, names[i].name, arena, names[i].text) < 0) {
            return ERR_NOMEM;
        }
    }
    return 0;
}

int payload_usage(struct slice payload, enum payload_type type, struct arena *arena,
                  struct payload_usage *ret_usage)
{
    struct payload_usage usage = {0};
    struct slice object;
    if ((type != PAYLOAD_PI_ASSISTANT && type != PAYLOAD_PI_COMPACTION) ||
        !find(payload, SLICE("usage"), JSON_OBJECT, &object) ||
        !read_count(object, SLICE("input"), &usage.input_tokens) ||
        !read_count(object, SLICE("output"), &usage.output_tokens)) {
        return 0;
    }
    (void)read_count(object, SLICE("cacheRead"), &usage.cache_read_tokens); /* 0 when not told */
    (void)read_count(object, SLICE("cacheWrite"), &usage.cache_write_tokens);
    usage.cost_usd = read_cost(object);
    if (read_names(payload, arena, &usage) < 0) {
        return ERR_NOMEM;
    }
    *ret_usage = usage;
    return 1;
}

bool payload_status(struct slice payload, enum payload_type type, enum thread_status *ret_status)
{
    struct slice value;
    if (type == PAYLOAD_THREAD_PI_FAILED || type == PAYLOAD_THREAD_PI_ORPHANED) {
        *ret_status = THREAD_FAILED;
        return true;
    }
    if (type != PAYLOAD_THREAD_STATUS_CHANGED ||
        !find(payload, SLICE("status"), JSON_STRING, &value)) {
        return false;
    }
    for (enum thread_status i = 0; i < THREAD_STATUS_COUNT; i++) {
        if (json_string_equal(value, slice_of(status_text(i)))) {
            *ret_status = i;
            return true;
        }
    }
    return false;
}
