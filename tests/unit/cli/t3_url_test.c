/* URLs of T3 servers: what is one, which are the same, and who could read along. */
#include "cli/t3_url.c"

#include "unit/base/unit.h"

/* The four schemes, in any case, with host, port and path. */
static void takes_urls(void **state)
{
    const char *const good[] = {"http://127.0.0.1:3773",      "https://t3.example.org",
                                "ws://localhost/ws",          "wss://[::1]:3773/ws",
                                "HTTP://Mac.local:1",         "http://h:65535/",
                                "https://h/behind/a/proxy/ws"};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(good); i++) {
        assert_null(t3_url_check(good[i]));
    }
}

/* Everything else, with a sentence that does not repeat it: it may hold a password. */
static void refuses_what_is_none(void **state)
{
    const char *const bad[] = {"",
                               "mac",
                               "ftp://h",
                               "http:/h",
                               "http://",
                               "http:///ws",
                               "http://:80",
                               "http://user:sesame@h",
                               "http://sesame@h",
                               "http://h:",
                               "http://h:/",
                               "http://[::1]:",
                               "http://h:0",
                               "http://h:01",
                               "http://h:65536",
                               "http://h:8x",
                               "http://h:999999999999",
                               "http://h/#sesame",
                               "http://h/ws?wsTicket=sesame",
                               "http://h?sesame",
                               "http://h/?",
                               "http://h/a sesame",
                               "http://h/\"sesame",
                               "http://h/\nsesame",
                               "http://h\xc3\xa9",
                               "http://[::1",
                               "http://[]",
                               "http://[::1]x:80",
                               "http://[g]"};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        const char *why = t3_url_check(bad[i]);

        if (why == NULL) {
            fail_msg("%s was taken", bad[i]);
        }
        assert_null(strstr(why, "sesame"));
    }
}

/* One byte less than the cap is good, the cap is not. */
static void caps_urls(void **state)
{
    char url[T3_URL_BYTES + 1];

    (void)state;
    memset(url, 'a', sizeof(url));
    memcpy(url, "http://h/", 9);
    url[T3_URL_BYTES - 1] = '\0';
    assert_null(t3_url_check(url));
    url[T3_URL_BYTES - 1] = 'a';
    url[T3_URL_BYTES] = '\0';
    assert_non_null(t3_url_check(url));
}

/* ws is http, "/ws" is no path, the usual port need not be said, and hosts have no case. */
static void tells_the_same(void **state)
{
    const char *const same[][2] = {
        {"http://h:80", "ws://H/ws"},      {"https://h", "wss://h:443/"},
        {"http://h:1/", "http://h:1"},     {"http://[::1]", "ws://[::1]:80/ws"},
        {"https://h/a/ws", "https://h/a"}, {"http://[::1]:1", "http://[0:0::0:1]:1"},
    };
    const char *const other[][2] = {
        {"http://h", "https://h"},
        {"http://h:1", "http://h:2"},
        {"http://h", "http://i"},
        {"http://h", "http://h.evil"},
        {"http://h/a", "http://h/b"},
        {"http://h/?a", "http://h/?b"},
        {"http://127.0.0.1", "http://localhost"},
        {"http://127.0.0.1", "http://127.0.0.2"},
        {"http://h", "http://h:8"},
        {"https://h:80", "https://h"},
        {"http://h/A", "http://h/a"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(same); i++) {
        assert_true(t3_url_same(same[i][0], same[i][1]));
    }
    for (size_t i = 0; i < ARRAY_COUNT(other); i++) {
        assert_false(t3_url_same(other[i][0], other[i][1]));
    }
}

/* The names of this machine lead to one server, whatever a token for one of them may be for; its
 * other addresses, and other names that begin so, need not. */
static void tells_one_server(void **state)
{
    const char *const one[][2] = {
        {"http://localhost:1", "ws://127.0.0.1:1/ws"},
        {"http://LOCALHOST", "http://[::1]:80/"},
        {"http://127.0.0.1:1", "http://[0::1]:1"},
        {"http://[::ffff:127.0.0.1]:1", "http://localhost:1"},
        {"https://h:443/a", "wss://H/a/ws"},
    };
    const char *const two[][2] = {
        {"http://localhost:1", "http://127.0.0.1:2"},
        {"http://localhost:1", "https://127.0.0.1:1"},
        {"http://localhost:1/a", "http://127.0.0.1:1/b"},
        {"http://localhost:1", "http://127.0.0.2:1"},
        {"http://localhost:1", "http://localhost.evil:1"},
        {"http://localhost:1", "http://h:1"},
        {"http://h:1", "http://i:1"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(one); i++) {
        assert_true(t3_url_same_server(one[i][0], one[i][1]));
    }
    for (size_t i = 0; i < ARRAY_COUNT(two); i++) {
        assert_false(t3_url_same_server(two[i][0], two[i][1]));
    }
    assert_false(t3_url_same(one[0][0], one[0][1]));
}

/* The routes of HTTP are beside the WebSocket's. */
static void names_the_http(void **state)
{
    const char *const cases[][2] = {
        {"ws://h:1/ws", "http://h:1/oauth/token"},
        {"https://h", "https://h/oauth/token"},
        {"wss://[::1]:3/a/ws", "https://[::1]:3/a/oauth/token"},
        {"http://h/", "http://h/oauth/token"},
    };
    char out[T3_URL_BYTES];

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        t3_url_http(cases[i][0], "/oauth/token", out, sizeof(out));
        assert_string_equal(out, cases[i][1]);
    }
    t3_url_authority("wss://[::1]:3/a", out, sizeof(out));
    assert_string_equal(out, "[::1]:3");
    t3_url_authority("wss://Mac.local", out, sizeof(out));
    assert_string_equal(out, "Mac.local");
}

/* Only this machine itself is trusted without encryption, no name that just begins as it does. */
static void tells_who_reads_along(void **state)
{
    const char *const exposed[] = {"http://mac.local",          "ws://10.0.0.1",
                                   "http://127.0.0.1.evil.org", "http://localhost.evil.org",
                                   "http://[fe80::1]",          "http://127.1"};
    const char *const safe[] = {"https://mac.local", "wss://10.0.0.1",   "http://127.0.0.1:3773",
                                "ws://[::1]:1",      "http://LOCALHOST", "http://127.8.8.8"};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(exposed); i++) {
        assert_true(t3_url_is_exposed(exposed[i]));
    }
    for (size_t i = 0; i < ARRAY_COUNT(safe); i++) {
        assert_false(t3_url_is_exposed(safe[i]));
    }
}

/* The server of a pairing link is what stands before it, whatever that is. */
static void cuts_pairing_links(void **state)
{
    char out[32] = "as it was";
    const char *token = NULL;

    (void)state;
    assert_true(t3_url_pairing_base("http://h:1/pair#token=X", out, sizeof(out), &token));
    assert_string_equal(out, "http://h:1");
    assert_true(t3_url_pairing_base("https://h/a/pair?token=X", out, sizeof(out), &token));
    assert_string_equal(out, "https://h/a");
    assert_true(
        t3_url_pairing_base("http://pairbox.localhost/pair#token=X", out, sizeof(out), &token));
    assert_string_equal(out, "http://pairbox.localhost");
    assert_true(t3_url_pairing_base("http://pair/pairs/pair/#token=X", out, sizeof(out), &token));
    assert_string_equal(out, "http://pair/pairs");
    assert_string_equal(token, "X");
    assert_true(t3_url_pairing_base("http://h/token=a/pair#token=Y&b", out, sizeof(out), &token));
    assert_string_equal(token, "Y&b");
    assert_false(t3_url_pairing_base("http://pair#token=X", out, sizeof(out), &token));
    assert_false(t3_url_pairing_base("http://pairbox/?token=X", out, sizeof(out), &token));
    assert_false(t3_url_pairing_base("http://h/pair", out, sizeof(out), &token));
    assert_false(t3_url_pairing_base("http://h/?token=/pair", out, sizeof(out), &token));
    assert_false(t3_url_pairing_base("/pair#token=X", out, sizeof(out), &token));
    assert_false(t3_url_pairing_base("ftp://h/pair#token=X", out, sizeof(out), &token));
    assert_false(t3_url_pairing_base("http://h/pair#token=X", out, 8, &token));
    assert_string_equal(out, "http://h/token=a");
    assert_string_equal(token, "Y&b");
}

/* A link by way of T3's hosted page is of the server that it names, not of the page. */
static void cuts_hosted_links(void **state)
{
    static const struct {
        const char *query;
        const char *base;
    } good[] = {
        {"host=https%3A%2F%2Fmac.ts.net%2F&label=a%20b", "https://mac.ts.net"},
        {"label=x&host=http://h:1", "http://h:1"},
        {"host=mac.ts.net:8443", "https://mac.ts.net:8443"},
        {"host=", "https://app.t3.codes"}, /* as if it were not there */
        {"host", "https://app.t3.codes"},
        {"ghost=a", "https://app.t3.codes"},
        {"", "https://app.t3.codes"},
    };
    static const char *const bad[] = {
        "host=a%2",   "host=a%00b",   "host=%zz",
        "host=u:p@h", "host=ftp://h", "host=https://h?a",
        "host=a%0ab", "host=/",       "host=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    char link[96];
    char out[32];
    const char *token = NULL;

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(good); i++) {
        (void)snprintf(link, sizeof(link), "https://app.t3.codes/pair?%s#token=X", good[i].query);
        assert_true(t3_url_pairing_base(link, out, sizeof(out), &token));
        assert_string_equal(out, good[i].base);
        assert_string_equal(token, "X");
    }
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        (void)snprintf(link, sizeof(link), "https://app.t3.codes/pair?%s#token=X", bad[i]);
        assert_false(t3_url_pairing_base(link, out, sizeof(out), &token));
        assert_string_equal(out, "https://app.t3.codes");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_pairing_links),
        cmocka_unit_test(cuts_hosted_links),
        cmocka_unit_test(takes_urls),
        cmocka_unit_test(refuses_what_is_none),
        cmocka_unit_test(caps_urls),
        cmocka_unit_test(tells_the_same),
        cmocka_unit_test(names_the_http),
        cmocka_unit_test(tells_one_server),
        cmocka_unit_test(tells_who_reads_along),
    };

    return UNIT_RUN(tests);
}
