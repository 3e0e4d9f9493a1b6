/* Queries of reads. */
#include "serve/query.c"

#include "unit/base/unit.h"

#define TOKEN "0000000000000000_0000000000000012"

static void assert_refused(const char *text)
{
    struct query query = {.live = QUERY_SSE};
    struct errmsg msg = {{0}};

    assert_int_equal(query_parse(slice_of(text), &query, &msg), ERR_INVALID);
    assert_true(msg.text[0] != '\0');
    assert_int_equal(query.live, QUERY_SSE); /* untouched */
}

static struct query parsed(const char *text)
{
    struct query query;
    struct errmsg msg = {{0}};

    assert_int_equal(query_parse(slice_of(text), &query, &msg), 0);
    return query;
}

/* Nothing given means all of the stream, once. */
static void has_defaults(void **state)
{
    (void)state;
    assert_int_equal(parsed("").offset.kind, OFFSET_START);
    assert_int_equal(parsed("").live, QUERY_CATCH_UP);
    assert_false(parsed("").cursor.given);
    assert_int_equal(parsed("a=b&&c").offset.kind, OFFSET_START);
}

/* Order and encoding make no difference, unknown names are ignored. */
static void reads_parameters(void **state)
{
    const char *same[] = {
        "offset=" TOKEN "&live=sse&cursor=7",
        "cursor=7&live=sse&offset=" TOKEN,
        "%6fffset=" TOKEN "&liv%65=%73se&cursor=%37",
        "x=y&offset=" TOKEN "&Offset=z&live=sse&z&cursor=7&",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(same); i++) {
        struct query query = parsed(same[i]);

        assert_int_equal(query.offset.kind, OFFSET_AT);
        assert_int_equal(query.offset.position, 12);
        assert_int_equal(query.live, QUERY_SSE);
        assert_true(query.cursor.given);
        assert_int_equal(query.cursor.value, 7);
    }
    assert_int_equal(parsed("offset=now&live=long-poll").live, QUERY_LONG_POLL);
    assert_false(parsed("offset=-1&cursor=%zz").cursor.given);
}

/* Doubled, malformed and incomplete ones are refused. */
static void refuses(void **state)
{
    const char *bad[] = {"offset=",
                         "offset",
                         "offset=x",
                         "offset=%zz",
                         "offset=-1&offset=-1",
                         "offset=-1&%6fffset=-1",
                         "live=sse",
                         "live=",
                         "offset=-1&live",
                         "offset=-1&live=SSE",
                         "offset=-1&live=sse&live=sse",
                         "offset=-1&live=true",
                         "offset=-1&cursor=1&cursor=2"};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_refused(bad[i]);
    }
    char text[10 * 1024] = "offset=";

    memset(text + 7, '1', sizeof(text) - 8);
    assert_refused(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_defaults),
        cmocka_unit_test(reads_parameters),
        cmocka_unit_test(refuses),
    };

    return UNIT_RUN(tests);
}
