/* Pages of entries, good and hostile. */
#include "unit/base/fault.h"

#include "client/scoped_page.c"

#include "unit/base/unit.h"
#include "unit/client/api_answer.h"
#include "unit/client/scripted.h"

struct fixture {
    struct scripted server;
    struct scoped_client *client;
    struct scoped_page page;
    struct scoped_error error;
};

static void setup(struct fixture *f, const struct scripted_turn *turns, size_t count)
{
    char url[64];

    *f = (struct fixture){.client = NULL};
    scripted_init(&f->server, turns, count, NULL);
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u", f->server.port);
    assert_int_equal(scoped_client_new(url, NULL, &f->client, NULL), STREAM_OK);
}

static void finish(struct fixture *f)
{
    scoped_page_finish(&f->page);
    scoped_client_free(f->client);
    scripted_finish(&f->server);
    api_answers_clear();
}

static void test_pages(void **state)
{
    struct scripted_turn turns[] = {
        {.answer = api_answer("200 OK", "{\"entries\":[{\"id\":\"e1\"},{\"id\":\"e2\"}],"
                                        "\"nextAfter\":\"o1:\\u0032\",\"upToDate\":false}")},
        {.answer = api_answer("200 OK", "{\"entries\":[],\"nextAfter\":null,\"upToDate\":true}")}};
    struct fixture f;

    (void)state;
    setup(&f, turns, 2);
    assert_int_equal(scoped_client_page(f.client, "t-1", NULL, 2, &f.page, &f.error), STREAM_OK);
    assert_int_equal(f.page.count, 2);
    assert_string_equal(f.page.entries[1].id, "e2");
    assert_true(slice_equal((struct slice){f.page.entries[1].json, f.page.entries[1].json_len},
                            SLICE("{\"id\":\"e2\"}")));
    assert_string_equal(f.page.next_after, "o1:2");
    assert_int_equal(f.page.up_to_date, 0);
    assert_true(scripted_asked(&f.server, 0, "GET /api/threads/t-1/entries?limit=2 HTTP/1.1\r\n"));
    char after[SCOPED_AFTER_BYTES];

    memcpy(after, f.page.next_after, sizeof(after));
    scoped_page_finish(&f.page);
    assert_int_equal(scoped_client_page(f.client, "t-1", after, 0, &f.page, &f.error), STREAM_OK);
    assert_int_equal(f.page.count, 0);
    assert_string_equal(f.page.next_after, "");
    assert_int_equal(f.page.up_to_date, 1);
    assert_true(scripted_asked(&f.server, 1, "/api/threads/t-1/entries?after=o1%3A2 HTTP/1.1\r\n"));
    finish(&f);
}

static void test_wrong_pages(void **state)
{
    static const struct {
        const char *body;
        const char *message;
    } bad[] = {
        {"", "it has no \"entries\""},
        {"[]", "it has no \"entries\""},
        {"{}", "it has no \"entries\""},
        {"{\"entries\":{}}", "it has no \"entries\""},
        {"{\"entries\":[7],\"upToDate\":true}", "one is no object"},
        {"{\"entries\":[]}", "it neither ends nor tells where to go on"},
        {"{\"entries\":[],\"nextAfter\":7,\"upToDate\":1}", "it neither ends nor"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct scripted_turn turns[] = {{.answer = api_answer("200 OK", bad[i].body)}};
        struct fixture f;

        setup(&f, turns, 1);
        assert_int_equal(scoped_client_page(f.client, "t", NULL, 0, &f.page, &f.error),
                         STREAM_ERROR_FORMAT);
        assert_string_equal(f.error.code, "client.response_invalid");
        assert_non_null(strstr(f.error.message, bad[i].message));
        assert_null(f.page.entries);
        finish(&f);
    }
}

/* As many entries as no API gives would take far more memory than their bytes. */
static void test_many(void **state)
{
    struct scoped_page page = {.entries = NULL};
    struct scoped_error error;
    struct buf body;

    (void)state;
    buf_init(&body, 1 << 20);
    buf_append(&body, SLICE("{\"upToDate\":true,\"entries\":[{}"));
    for (unsigned i = 0; i < PAGE_ENTRIES_MAX; i++) {
        buf_append(&body, SLICE(",{}"));
    }
    buf_append(&body, SLICE("]}"));
    page.answer.body = body.ptr;
    page.answer.len = body.len;
    assert_int_equal(read_page(&page, &error), STREAM_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "too many"));
    assert_null(page.entries);
    scoped_page_finish(&page);
}

static void test_arguments(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = NULL}};
    struct fixture f;

    (void)state;
    setup(&f, turns, 1);
    assert_int_equal(scoped_client_page(f.client, "t", NULL, -1, &f.page, &f.error),
                     STREAM_ERROR_ARGUMENT);
    assert_int_equal(scoped_client_page(f.client, "t/", NULL, 0, &f.page, &f.error),
                     STREAM_ERROR_ARGUMENT);
    assert_int_equal(scripted_count(&f.server), 0);
    finish(&f);
}

static void test_without_memory(void **state)
{
    char body[] = "{\"upToDate\":true,\"entries\":[{}]}";
    struct scoped_page page = {.answer = {.body = body, .len = sizeof(body) - 1}};
    struct scoped_error error;

    (void)state;
    fault_countdown = 0;
    int code = read_page(&page, &error);

    fault_countdown = -1;
    assert_int_equal(code, STREAM_ERROR_MEMORY);
    assert_null(page.entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages),          cmocka_unit_test(test_wrong_pages),
        cmocka_unit_test(test_many),           cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_without_memory),
    };

    return UNIT_RUN(tests);
}
