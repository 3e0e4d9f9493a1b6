/* Listings: page after page, ended early, by servers that offer none, and by hostile ones. */
#include "unit/base/fault.h"

#include "client/stream_list.c"

#include "unit/base/unit.h"
#include "unit/client/scripted.h"

#define JSON "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"

struct fixture {
    struct scripted server;
    struct stream_client *client;
    struct stream_error error;
    char names[256];
    unsigned want; /* names after which it is enough */
    unsigned count;
};

static void setup(struct fixture *f, const struct scripted_turn *turns, size_t count)
{
    struct stream_client_options options;

    *f = (struct fixture){.want = 1000};
    stream_client_options_init(&options);
    options.retry.initial_delay_ms = 1;
    scripted_init(&f->server, turns, count, NULL);
    assert_int_equal(stream_client_new(f->server.url, &options, &f->client, NULL), STREAM_OK);
}

static void finish(struct fixture *f)
{
    stream_client_free(f->client);
    scripted_finish(&f->server);
}

static int each(void *context, const char *name, const struct stream_info *info)
{
    struct fixture *f = context;
    size_t len = strlen(f->names);

    (void)snprintf(f->names + len, sizeof(f->names) - len, "%s(%s) ", name, info->next_offset);
    return ++f->count == f->want;
}

static const struct scripted_turn pages[] = {
    {.answer = JSON "{\"streams\":[{\"path\":\"a\",\"next_offset\":\"1\"},"
                    "{\"path\":\"b\",\"next_offset\":\"2\"}],\"next_after\":\"b\"}",
     .end = SCRIPTED_CLOSE},
    {.answer = "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"},
    {.answer = JSON "{\"streams\":[],\"next_after\":\"c/d e\"}", .end = SCRIPTED_CLOSE},
    {.answer = JSON "{\"streams\":[{\"path\":\"z\"}]}", .end = SCRIPTED_CLOSE},
};

/* All pages, in order; one that fails is asked for again. */
static void test_pages(void **state)
{
    struct fixture f;

    (void)state;
    setup(&f, pages, ARRAY_COUNT(pages));
    assert_int_equal(stream_client_list(f.client, "a b/", each, &f, &f.error), STREAM_OK);
    assert_string_equal(f.names, "a(1) b(2) z() ");
    assert_true(scripted_asked(&f.server, 0, "GET /v1/stream/__ds/streams?prefix=a%20b%2F "));
    assert_true(scripted_asked(&f.server, 1, "?prefix=a%20b%2F&after=b "));
    assert_true(scripted_asked(&f.server, 2, "?prefix=a%20b%2F&after=b "));
    assert_true(scripted_asked(&f.server, 3, "&after=c%2Fd%20e "));
    finish(&f);
}

/* Whoever has enough hears no more, and no more is asked. */
static void test_enough(void **state)
{
    struct fixture f;

    (void)state;
    setup(&f, pages, ARRAY_COUNT(pages));
    f.want = 1;
    assert_int_equal(stream_client_list(f.client, "", each, &f, &f.error), STREAM_OK);
    assert_string_equal(f.names, "a(1) ");
    assert_int_equal(scripted_count(&f.server), 1);
    finish(&f);
}

static void assert_error(const struct scripted_turn *turns, size_t count,
                         enum stream_error_code code, const char *message)
{
    struct fixture f;

    setup(&f, turns, count);
    assert_int_equal(stream_client_list(f.client, "", each, &f, &f.error), code);
    assert_string_equal(f.error.message, message);
    finish(&f);
}

static void test_errors(void **state)
{
    static const struct scripted_turn none[] = {
        {.answer = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"}};
    static const struct scripted_turn other[] = {{.answer = JSON "[]", .end = SCRIPTED_CLOSE}};
    static const struct scripted_turn circle[] = {
        {.answer = JSON "{\"streams\":[],\"next_after\":\"b\"}", .end = SCRIPTED_CLOSE}};
    static const struct scripted_turn back[] = {
        {.answer = JSON "{\"streams\":[],\"next_after\":\"b\"}", .end = SCRIPTED_CLOSE},
        {.answer = JSON "{\"streams\":[],\"next_after\":\"a\"}", .end = SCRIPTED_CLOSE}};

    (void)state;
    assert_error(none, 1, STREAM_ERROR_NOT_FOUND,
                 "cannot list streams: the server offers no listing (status 404)");
    assert_error(other, 1, STREAM_ERROR_FORMAT,
                 "cannot list streams: the answer is no listing of streams");
    assert_error(circle, 1, STREAM_ERROR_FORMAT,
                 "cannot list streams: the listing does not go forward");
    assert_error(back, 2, STREAM_ERROR_FORMAT,
                 "cannot list streams: the listing does not go forward");
}

/* A program out of memory is told so, and nothing is shown half. */
static void test_no_memory(void **state)
{
    static const struct scripted_turn one[] = {
        {.answer = JSON "{\"streams\":[{\"path\":\"a\"}]}", .end = SCRIPTED_CLOSE}};
    struct fixture f;

    (void)state;
    setup(&f, one, 1);
    for (long i = 0; i < 2; i++) {
        fault_countdown = i;
        int code = stream_client_list(f.client, "", each, &f, &f.error);

        fault_countdown = -1;
        assert_int_equal(code, STREAM_ERROR_MEMORY);
        assert_string_equal(f.names, "");
    }
    assert_int_equal(stream_client_list(f.client, "", each, &f, &f.error), STREAM_OK);
    assert_string_equal(f.names, "a() ");
    finish(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_enough),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_no_memory),
    };

    return UNIT_RUN(tests);
}
