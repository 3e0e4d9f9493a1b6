/* Pages of names, also malformed ones. */
#include "client/http_listing.c"

#include "unit/base/unit.h"

#include <stdio.h>

struct shown {
    struct call call;
    char text[512];
};

static void on_listed(struct call *call, struct slice name, const struct stream_info *info)
{
    struct shown *shown = call->context;
    size_t len = strlen(shown->text);

    (void)snprintf(shown->text + len, sizeof(shown->text) - len, "%.*s|%s|%s|%d|%lld|%s;",
                   (int)name.len, name.ptr, info->content_type, info->next_offset, info->closed,
                   (long long)info->ttl_seconds, info->expires_at);
}

static void read_page(struct shown *shown, const char *page)
{
    *shown = (struct shown){.call = {.verb = CALL_LIST, .on_listed = on_listed}};
    shown->call.context = shown;
    call_begin(&shown->call);
    http_listing(&shown->call, slice_of(page));
}

/* All that an entry says comes through; members that are not known are passed over. */
static void test_page(void **state)
{
    struct shown shown;

    (void)state;
    read_page(&shown, "{\"streams\":[{\"path\":\"a/\\u00fc\",\"content_type\":\"text/plain\","
                      "\"next_offset\":\"0_1\",\"closed\":true,\"ttl_seconds\":60,\"new\":[1]},"
                      "{\"path\":\"b\",\"expires_at\":\"2030-01-01T00:00:00Z\"}],"
                      "\"next_after\":\"b\"}");
    assert_int_equal(shown.call.result.error.code, STREAM_OK);
    assert_string_equal(shown.text,
                        "a/\xc3\xbc|text/plain|0_1|1|60|;b|||0|-1|2030-01-01T00:00:00Z;");
    assert_string_equal(shown.call.result.after, "b");
    read_page(&shown, "{\"streams\":[]}");
    assert_int_equal(shown.call.result.error.code, STREAM_OK);
    assert_string_equal(shown.call.result.after, "");
}

static void test_malformed(void **state)
{
    static const char *const pages[] = {
        "",
        "[]",
        "{\"streams\":[",
        "{\"streams\":{}}",
        "{\"paths\":[]}",
        "{\"streams\":[7]}",
        "{\"streams\":[{}]}",
        "{\"streams\":[{\"path\":7}]}",
        "{\"streams\":[{\"path\":\"a\\u0000b\"}]}",
        "{\"streams\":[{\"path\":\"a\\ud800\"}]}",
        "{\"streams\":[{\"path\":\"a\",\"next_offset\":12}]}",
        "{\"streams\":[{\"path\":\"a\",\"path\":\"b\"}]}",
        "{\"streams\":[],\"next_after\":true}",
    };
    struct shown shown;

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(pages); i++) {
        read_page(&shown, pages[i]);
        if (shown.call.result.error.code != STREAM_ERROR_FORMAT) {
            print_error("taken: %s\n", pages[i]);
        }
        assert_int_equal(shown.call.result.error.code, STREAM_ERROR_FORMAT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_page),
                                       cmocka_unit_test(test_malformed)};

    return UNIT_RUN(tests);
}
