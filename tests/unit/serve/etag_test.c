/* ETags: one for each stream, range and closure; known in any If-None-Match line. */
#include "serve/etag.c"

#include "unit/serve/request_of.h"

static const struct stream_page page = {.stream_id = 0xab, .start = 5, .next = 17};

static void assert_tag(const struct stream_page *of, uint64_t salt, const char *tag)
{
    char memory[ETAG_BYTES_MAX];
    struct slice made = etag_format(memory, salt, of);

    assert_int_equal(made.len, strlen(tag));
    assert_memory_equal(made.ptr, tag, made.len);
}

/* The tag names the stream, both ends of the range, and closure. */
static void names_the_range(void **state)
{
    struct stream_page closed = page;

    (void)state;
    closed.closed = true;
    assert_tag(&page, 0, "\"ab:5:17\"");
    assert_tag(&closed, 0, "\"ab:5:17:c\"");
    assert_tag(&page, 0xff, "\"54:5:17\"");
}

/* The largest numbers fit. */
static void fits(void **state)
{
    const struct stream_page far = {.stream_id = UINT64_MAX,
                                    .start = STREAM_OFFSET_MAX,
                                    .next = STREAM_OFFSET_MAX,
                                    .closed = true};

    (void)state;
    assert_tag(&far, 0, "\"ffffffffffffffff:9999999999999999:9999999999999999:c\"");
}

/* Several If-None-Match lines are one list. */
static void looks_at_all_lines(void **state)
{
    struct request_of r;

    (void)state;
    assert_true(etag_is_known(
        request_of(&r, "If-None-Match: \"other\"\r\nIF-NONE-MATCH: W/\"ab:5:17\"\r\n"),
        SLICE("\"ab:5:17\"")));
    assert_false(
        etag_is_known(request_of(&r, "If-None-Match: \"other\"\r\n"), SLICE("\"ab:5:17\"")));
    assert_false(etag_is_known(request_of(&r, ""), SLICE("\"ab:5:17\"")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_the_range),
        cmocka_unit_test(fits),
        cmocka_unit_test(looks_at_all_lines),
    };

    return UNIT_RUN(tests);
}
