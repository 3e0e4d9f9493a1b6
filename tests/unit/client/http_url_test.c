/* Base URLs and names. */
#include "unit/base/fault.h"

#include "base/buf.c"
#include "client/http_url.c"

#include "unit/base/unit.h"
#include "unit/client/curl_fault.h"

static void assert_base(const char *url, const char *normal, const char *path, const char *host)
{
    struct http_base base;
    struct stream_error error;

    assert_int_equal(http_base_init(&base, url, &error), STREAM_OK);
    assert_string_equal(base.url, normal);
    assert_true(slice_equal(base.path, slice_of(path)));
    assert_string_equal(base.host, host);
    http_base_finish(&base);
}

/* Good ones end with a slash, and the host is known with its port. */
static void test_good(void **state)
{
    (void)state;
    assert_base("http://h/v1/stream", "http://h/v1/stream/", "/v1/stream/", "h:80");
    assert_base("http://h/v1/stream/", "http://h/v1/stream/", "/v1/stream/", "h:80");
    assert_base("https://h", "https://h/", "/", "h:443");
    assert_base("http://127.0.0.1:4437/x", "http://127.0.0.1:4437/x/", "/x/", "127.0.0.1:4437");
    assert_base("http://[::1]:80/", "http://[::1]:80/", "/", "[::1]:80");
}

/* Each bad one is refused with a sentence; what may be a secret is never repeated. */
static void test_bad(void **state)
{
    static const struct {
        const char *url;
        const char *why;
    } cases[] = {
        {"ftp://h/", "http:// or https://"},
        {"file:///etc/passwd", "http:// or https://"},
        {"", ""},
        {"h/v1", ""},
        {"/v1/stream", ""},
        {"http://", ""},
        {"http://h:99999/", ""},
        {"http://h:x/", ""},
        {"http://a b/", ""},
        {"http://user@h/", "user name"},
        {"http://user:topsecret@h/", "user name"},
        {"http://h/?token=topsecret", "query"},
        {"http://h/#topsecret", "fragment"},
        {"http://h/\n", ""},
    };
    struct http_base base;
    struct stream_error error;

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        int code = http_base_init(&base, cases[i].url, &error);

        if (code != STREAM_ERROR_ARGUMENT) {
            print_error("taken: %s\n", cases[i].url);
        }
        assert_int_equal(code, STREAM_ERROR_ARGUMENT);
        assert_non_null(strstr(error.message, cases[i].why));
        assert_non_null(strstr(error.message, "the base URL is not good: "));
        assert_null(strstr(error.message, "topsecret"));
    }
    char longest[HTTP_BASE_BYTES_MAX + 2];

    memset(longest, 'a', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    assert_int_equal(http_base_init(&base, longest, &error), STREAM_ERROR_ARGUMENT);
}

/* Without memory nothing is left behind. */
static void test_no_memory(void **state)
{
    struct http_base base;
    struct stream_error error;
    int code = STREAM_ERROR_MEMORY;

    (void)state;
    for (long i = 0; code != STREAM_OK; i++) {
        fault_countdown = i;
        code = http_base_init(&base, "http://h/v1", &error);
        fault_countdown = -1;
        assert_true(code == STREAM_OK || code == STREAM_ERROR_MEMORY);
    }
    http_base_finish(&base);
}

static void assert_name(const char *name, const char *path)
{
    char memory[256];
    struct buf out;

    buf_init_fixed(&out, memory, sizeof(memory));
    http_append_name(&out, slice_of(name));
    memory[out.len] = '\0';
    assert_string_equal(memory, path);
}

/* Names become paths; the two escapes that a name keeps stay as they are. */
static void test_names(void **state)
{
    (void)state;
    assert_name("a/b-c_d.e~f", "a/b-c_d.e~f");
    assert_name("a b?c#d", "a%20b%3Fc%23d");
    assert_name("a%2Fb%2fc%25d", "a%2Fb%2fc%25d");
    assert_name("100%", "100%25");
    assert_name("%41", "%2541");
    assert_name("\xc3\xbc\"<>\\^`{|}", "%C3%BC%22%3C%3E%5C%5E%60%7B%7C%7D");
    assert_name("!$&'()*+,;=:@[]", "!$&'()*+,;=:@%5B%5D");
}

static void test_query(void **state)
{
    char memory[64];
    struct buf out;

    (void)state;
    buf_init_fixed(&out, memory, sizeof(memory));
    http_append_query(&out, SLICE("a b&c=d+e/%\xff"));
    memory[out.len] = '\0';
    assert_string_equal(memory, "a%20b%26c%3Dd%2Be%2F%25%FF");
}

int main(void)
{
    curl_fault_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),      cmocka_unit_test(test_bad),
        cmocka_unit_test(test_no_memory), cmocka_unit_test(test_names),
        cmocka_unit_test(test_query),
    };

    return UNIT_RUN(tests);
}
