/* Any bytes as a payload. What is taken comes out as it came or, when a trace field had to go,
 * shorter, and then is taken as it is; what others read out of it is there. */
#include "thread/payload.h"

#include "base/err.h"
#include "base/json_value.h"
#include "base/limits.h"
#include "base/utf8.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A payload that was taken has what its type promises. */
static void check_read(struct slice payload, enum payload_type type)
{
    struct payload_usage usage;
    enum thread_status status = THREAD_OPEN;
    struct slice text;
    struct arena arena;
    struct buf out;
    arena_init(&arena, 64u << 20);
    buf_init(&out, 64u << 20);
    payload_text(payload, type, &out);
    assert(!out.failed && utf8_valid(buf_slice(&out)));
    assert(type != PAYLOAD_CHAT || (out.len > 0 && out.len <= CHAT_TEXT_BYTES_MAX));
    int found = payload_usage(payload, type, &arena, &usage);
    assert(found == 1 || type != PAYLOAD_PI_ASSISTANT);
    assert(found == 0 || (usage.cost_usd >= 0 && utf8_valid(usage.model)));
    bool moves = payload_status(payload, type, &status);
    assert(moves == (type == PAYLOAD_THREAD_STATUS_CHANGED || type == PAYLOAD_THREAD_PI_FAILED ||
                     type == PAYLOAD_THREAD_PI_ORPHANED));
    assert(payload_string(payload, SLICE("type"), &arena, &text) == 1);
    assert(payload_type_parse(text) == type);
    buf_finish(&out);
    arena_finish(&arena);
}

static void check_payload(struct slice payload)
{
    struct api_error e = {.code = API_BUSY};
    enum payload_type type = PAYLOAD_UNKNOWN;
    enum payload_type again = PAYLOAD_UNKNOWN;
    struct buf out;
    struct buf second;
    buf_init(&out, 64u << 20);
    buf_init(&second, 64u << 20);
    int code = payload_check(payload, &type, &out, &e);
    assert((code == 0) == (e.message[0] == '\0'));
    if (code < 0) {
        assert(e.code == API_INVALID_INPUT || e.code == API_TOO_LARGE);
        assert(slice_starts_with(slice_of(e.field), SLICE("payload")));
        assert(slice_starts_with(slice_of(e.message), slice_of(e.field)));
        assert(utf8_valid(slice_of(e.message)) && out.len == 0);
    } else {
        assert(slice_equal(buf_slice(&out), payload) || out.len < payload.len);
        assert(payload_check(buf_slice(&out), &again, &second, NULL) == 0 && again == type);
        assert(slice_equal(buf_slice(&out), buf_slice(&second)));
        check_read(buf_slice(&out), type);
    }
    buf_finish(&out);
    buf_finish(&second);
}

/* What is read from a log may be anything. */
static void check_stored(struct slice payload)
{
    struct payload_usage usage;
    enum thread_status status;
    enum payload_type type = PAYLOAD_UNKNOWN;
    struct arena arena;
    struct buf out;
    arena_init(&arena, 64u << 20);
    buf_init(&out, 64u << 20);
    assert(payload_type_of(payload, &type) == 0 || type == PAYLOAD_UNKNOWN);
    for (enum payload_type i = 0; i <= PAYLOAD_UNKNOWN; i++) {
        payload_text(payload, i, &out);
        assert(payload_usage(payload, i, &arena, &usage) >= 0);
        assert(!payload_status(payload, i, &status) || status < THREAD_STATUS_COUNT);
    }
    assert(!out.failed);
    buf_finish(&out);
    arena_finish(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = size == 0 ? SLICE("") : (struct slice){(const char *)data, size};
    struct slice value;
    if (json_text_read(text, &value, NULL) == 0) {
        check_payload(value);
        check_stored(value);
    }
    return 0;
}
