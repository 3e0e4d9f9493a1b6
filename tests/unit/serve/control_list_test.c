/* Queries of the listing, and what an entry looks like. */
#include "serve/control_list.c"

#include "unit/base/unit.h"
#include "unit/stream/rig.h"

static struct control_listing listing;

static const struct engine_list_query *parsed(const char *query)
{
    struct errmsg msg = {{0}};

    listing = (struct control_listing){.code = 0};
    assert_int_equal(parse(&listing, slice_of(query), &msg), 0);
    return &listing.wanted;
}

static void assert_refused(const char *query)
{
    struct errmsg msg = {{0}};

    listing = (struct control_listing){.code = 0};
    assert_int_equal(parse(&listing, slice_of(query), &msg), ERR_INVALID);
    assert_true(msg.text[0] != '\0');
}

static void assert_text(struct slice text, const char *wanted)
{
    assert_int_equal(text.len, strlen(wanted));
    assert_memory_equal(text.ptr == NULL ? "" : text.ptr, wanted, text.len);
}

/* Without parameters it is a whole page from the first stream on. */
static void has_defaults(void **state)
{
    (void)state;
    assert_int_equal(parsed("")->limit, LISTING_COUNT_MAX);
    assert_int_equal(parsed("&&")->prefix.len, 0);
    assert_int_equal(parsed("prefix=&after")->after.len, 0);
}

/* Names and values are decoded once: a name that keeps an escape is written with two. */
static void reads_parameters(void **state)
{
    (void)state;
    assert_text(parsed("prefix=a/b")->prefix, "a/b");
    assert_text(parsed("%70refix=a%2Fb")->prefix, "a/b");
    assert_text(parsed("prefix=a%252Fb")->prefix, "a%2Fb");
    assert_text(parsed("after=a+b&limit=7&prefix=a")->after, "a+b");
    assert_int_equal(listing.wanted.limit, 7);
    assert_text(listing.wanted.prefix, "a");
    assert_int_equal(parsed("limit=1000")->limit, 1000);
    assert_int_equal(parsed("limit=%31%30%30%30")->limit, 1000);
}

/* Anything else is told: a filter that is not understood must not list everything. */
static void refuses_what_it_does_not_know(void **state)
{
    const char *queries[] = {"prefx=a",
                             "Prefix=a",
                             "x",
                             "limit=0",
                             "limit=1001",
                             "limit=",
                             "limit",
                             "limit=-1",
                             "limit=1e2",
                             "limit=%3",
                             "prefix=%",
                             "after=%zz",
                             "=a",
                             "limit=1&limit=1",
                             "prefix=a&prefix=a",
                             "after=a&%61fter=a",
                             "limit=18446744073709551617"};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(queries); i++) {
        assert_refused(queries[i]);
    }
}

/* Prefix and place are at most as long as names are. */
static void bounds_values(void **state)
{
    char query[4096] = "prefix=";
    size_t at = strlen(query);

    (void)state;
    for (size_t i = 0; i < STREAM_NAME_BYTES_MAX; i++, at += 3) {
        memcpy(query + at, "%61", 4);
    }
    assert_int_equal(parsed(query)->prefix.len, STREAM_NAME_BYTES_MAX);
    memcpy(query + at, "a", 2);
    assert_refused(query);
    memcpy(query + at, "%61%61", 7);
    assert_refused(query);
}

/* Optional members are left out, strings are escaped, entries are joined by commas. */
static void writes_entries(void **state)
{
    struct stream_listed listed = {
        .name = SLICE("a\"b"), .content_type = SLICE("text/plain"), .next = 12, .created_ms = 1000};

    (void)state;
    listing = (struct control_listing){.code = 0};
    buf_init(&listing.page, PAGE_BYTES_MAX);
    assert_int_equal(put_stream(&listing, &listed), 0);
    assert_text(buf_slice(&listing.page),
                "{\"path\":\"a\\\"b\",\"content_type\":\"text/plain\","
                "\"next_offset\":\"0000000000000000_0000000000000012\",\"closed\":false,"
                "\"created_at\":\"1970-01-01T00:00:01.000Z\"}");
    listed.closed = true;
    listed.expiry = (struct stream_expiry){.has_ttl = true, .ttl_seconds = 5};
    assert_int_equal(put_stream(&listing, &listed), 0);
    listed.expiry = (struct stream_expiry){.has_expires_at = true, .expires_at_ms = 2000};
    assert_int_equal(put_stream(&listing, &listed), 0);
    buf_append_char(&listing.page, '\0');
    assert_non_null(strstr(listing.page.ptr, "\"closed\":true,\"created_at\":"
                                             "\"1970-01-01T00:00:01.000Z\",\"ttl_seconds\":5},{"));
    assert_non_null(strstr(listing.page.ptr, ",\"expires_at\":\"1970-01-01T00:00:02.000Z\"}"));
    buf_finish(&listing.page);
}

/* A page that memory does not bear ends the listing. */
static void bears_no_memory(void **state)
{
    struct stream_listed listed = {.name = SLICE("a"), .content_type = SLICE("text/plain")};

    (void)state;
    listing = (struct control_listing){.code = 0};
    for (size_t max = 0; max < 100; max++) {
        buf_init(&listing.page, max);
        assert_int_equal(put_stream(&listing, &listed), ERR_NOMEM);
        buf_finish(&listing.page);
    }
}

/* A page ends behind the stream that fills it, and the longest entries there can be fit. */
static void ends_a_full_page(void **state)
{
    char name[STREAM_NAME_BYTES_MAX];
    char type[STREAM_CONTENT_TYPE_BYTES_MAX];
    struct stream_listed listed = {.name = {name, sizeof(name)},
                                   .content_type = {type, sizeof(type)},
                                   .next = STREAM_OFFSET_MAX,
                                   .created_ms = DATE_MS_MAX,
                                   .expiry = {.has_ttl = true, .ttl_seconds = UINT64_MAX}};

    (void)state;
    memset(name, '"', sizeof(name));
    memset(type, '\\', sizeof(type));
    listing = (struct control_listing){.code = 0};
    buf_init(&listing.page, PAGE_BYTES_MAX);
    buf_append(&listing.page, SLICE("{\"streams\":["));
    int code;

    do {
        assert_true(listing.page.len < LISTING_BYTES_MAX);
        code = put_stream(&listing, &listed);
    } while (code == 0);
    assert_int_equal(code, ENGINE_LIST_FULL);
    assert_true(listing.page.len >= LISTING_BYTES_MAX);
    assert_true(PAGE_BYTES_MAX - listing.page.len > 2 * sizeof(name) + 64);
    buf_finish(&listing.page);
}

/* The names told, page by page of at most `limit`, each with a space behind it. */
static const char *told_of(struct rig *rig, const char *query, size_t limit)
{
    static char told[256];
    struct server server = {.engine = rig->engine};
    struct worker worker = {.server = &server};
    struct exchange x = {.worker = &worker};
    struct buf out;
    bool more = true;

    buf_init_fixed(&out, told, sizeof(told));
    (void)parsed(query);
    listing.x = &x;
    listing.reserved = SLICE("kept-");
    while (more) {
        listing.wanted.limit = limit;
        listing.count = 0;
        buf_init(&listing.page, PAGE_BYTES_MAX);
        assert_int_equal(list_all(&listing), 0);
        buf_append_char(&listing.page, '\0');
        assert_true(listing.count <= limit);
        for (const char *at = listing.page.ptr; (at = strstr(at, "\"path\":\"")) != NULL;) {
            at += strlen("\"path\":\"");
            buf_append_format(&out, "%.*s ", (int)strcspn(at, "\""), at);
        }
        buf_finish(&listing.page);
        more = listing.end.more;
        if (more) {
            assert_false(slice_starts_with(listing.end.last, SLICE("kept-")));
            assert_int_equal(listing.count, limit);
            memcpy(listing.after, listing.end.last.ptr, listing.end.last.len);
            listing.wanted.after = (struct slice){listing.after, listing.end.last.len};
        }
    }
    buf_append_char(&out, '\0');
    return told;
}

/* What is reserved takes no place on a page and ends none, wherever the pages begin and end; nor
 * does what is left of a stream that was deleted. */
static void leaps_over_what_is_reserved(void **state)
{
    static struct rig rig;
    const char *created[] = {"a",      "b",        "kept",   "kept,", "kept-",
                             "kept-a", "kept-a/b", "kept-z", "kept.", "kept-\xf4\x8f\xbf\xbf",
                             "z",      "zz"};

    (void)state;
    rig_open(&rig);
    for (size_t i = 0; i < ARRAY_COUNT(created); i++) {
        assert_int_equal(rig_put(&rig, created[i], "text/plain", "x"), 0);
    }
    assert_int_equal(rig_fork(&rig, "b-fork", "kept-z"), 0);
    assert_int_equal(rig_delete(&rig, "kept-z"), 0);
    for (size_t limit = 1; limit < 15; limit++) {
        assert_string_equal(told_of(&rig, "", limit), "a b b-fork kept kept, kept. z zz ");
        assert_string_equal(told_of(&rig, "prefix=kep", limit), "kept kept, kept. ");
        assert_string_equal(told_of(&rig, "prefix=kept-", limit), "");
        assert_string_equal(told_of(&rig, "prefix=kept-a", limit), "");
        assert_string_equal(told_of(&rig, "after=kept-a", limit), "kept. z zz ");
        assert_string_equal(told_of(&rig, "after=kept-a&prefix=z", limit), "z zz ");
    }
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_defaults),
        cmocka_unit_test(reads_parameters),
        cmocka_unit_test(refuses_what_it_does_not_know),
        cmocka_unit_test(bounds_values),
        cmocka_unit_test(writes_entries),
        cmocka_unit_test(bears_no_memory),
        cmocka_unit_test(ends_a_full_page),
        cmocka_unit_test(leaps_over_what_is_reserved),
    };

    return UNIT_RUN(tests);
}
