/* Any bytes as patches: of a house up to the first NUL, of a thread after it. What is within the
 * bounds resolves to JSON and merges into a patch; resolved again it is the same. */
#include "thread/config.h"

#include "base/json_value.h"
#include "base/utf8.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_told(int code, const struct api_error *e)
{
    assert((code == 0) == (e->message[0] == '\0'));
    assert(code == 0 || e->code == API_INVALID_INPUT || e->code == API_TOO_LARGE ||
           e->code == API_MALFORMED_JSON);
}

static void check_resolve(struct slice house, struct slice thread, struct slice agent)
{
    struct api_error e = {.code = API_BUSY};
    struct slice value;
    struct buf out;
    struct buf again;
    buf_init(&out, 1u << 20);
    buf_init(&again, 1u << 20);
    int code = config_resolve(house, thread, agent, &out, &e);
    check_told(code, &e);
    if (code == 0) {
        assert(json_text_read(buf_slice(&out), &value, NULL) == 0);
        assert(json_kind(value) == JSON_OBJECT && utf8_valid(value));
        if (config_resolve(SLICE(""), value, SLICE(""), &again, NULL) == 0) {
            assert(slice_equal(buf_slice(&again), value));
        }
    }
    buf_finish(&out);
    buf_finish(&again);
}

static void check_merge(struct slice house, struct slice thread)
{
    struct api_error e = {.code = API_BUSY};
    struct buf out;
    struct buf again;
    buf_init(&out, 1u << 20);
    buf_init(&again, 1u << 20);
    int code = config_merge_patch(house, thread, &out, &e);
    check_told(code, &e);
    if (code == 0) {
        assert(out.len <= CONFIG_BYTES_MAX);
        /* To say the same again changes nothing. */
        assert(config_merge_patch(buf_slice(&out), thread, &again, NULL) == 0);
        assert(slice_equal(buf_slice(&out), buf_slice(&again)));
    } else {
        assert(out.len == 0);
    }
    buf_finish(&out);
    buf_finish(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice rest = size == 0 ? SLICE("") : (struct slice){(const char *)data, size};
    struct slice house = SLICE("");
    struct api_error e = {.code = API_BUSY};
    (void)slice_split(&rest, '\0', &house);
    struct slice thread = rest.ptr ? rest : SLICE("");
    int code = config_check_patch(house, &e);
    check_told(code, &e);
    assert(utf8_valid(slice_of(e.field)));
    check_resolve(house, thread, SLICE(""));
    check_resolve(house, thread, SLICE("bot"));
    check_merge(house, thread);
    return 0;
}
