/* URLs of servers. */
#include "unit/base/fault.h"

#include "base/buf.c"
#include "t3/rpc_url.c"

#include "unit/base/unit.h"

static void test_good(void **state)
{
    static const struct {
        const char *text;
        bool tls;
        const char *host;
        const char *place;
        const char *target;
        bool literal;
    } cases[] = {
        {"http://h", false, "h", "h:80", "/ws?orchestrationProtocol=2", false},
        {"https://h/", true, "h", "h:443", "/ws?orchestrationProtocol=2", false},
        {"WS://Host.Example:3773", false, "Host.Example", "Host.Example:3773",
         "/ws?orchestrationProtocol=2", false},
        {"wss://a_b-c.d:65535/x/ws", true, "a_b-c.d", "a_b-c.d:65535",
         "/x/ws?orchestrationProtocol=2", false},
        {"ws://127.0.0.1:1/ws?a=b&c", false, "127.0.0.1", "127.0.0.1:1",
         "/ws?a=b&c&orchestrationProtocol=2", true},
        {"ws://h?a=b", false, "h", "h:80", "/ws?a=b&orchestrationProtocol=2", false},
        {"ws://h/?", false, "h", "h:80", "/ws?orchestrationProtocol=2", false},
        {"ws://h/p?orchestrationProtocol=3", false, "h", "h:80", "/p?orchestrationProtocol=3",
         false},
        {"ws://h/p?xorchestrationProtocol=3", false, "h", "h:80",
         "/p?xorchestrationProtocol=3&orchestrationProtocol=2", false},
        {"ws://[::1]", false, "::1", "[::1]:80", "/ws?orchestrationProtocol=2", true},
        {"wss://[fe80::1:2]:8443/a%20b", true, "fe80::1:2", "[fe80::1:2]:8443",
         "/a%20b?orchestrationProtocol=2", true},
        {"ws://h/a?b?c/d@e:f", false, "h", "h:80", "/a?b?c/d@e:f&orchestrationProtocol=2", false},
        {"ws://1.2.3", false, "1.2.3", "1.2.3:80", "/ws?orchestrationProtocol=2", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct rpc_url url;
        struct t3_rpc_error error;

        if (rpc_url_init(&url, cases[i].text, &error) != T3_RPC_OK) {
            fail_msg("%s: %s", cases[i].text, error.message);
        }
        assert_int_equal(url.tls, cases[i].tls);
        assert_string_equal(url.host, cases[i].host);
        assert_string_equal(url.place, cases[i].place);
        assert_string_equal(url.target, cases[i].target);
        assert_int_equal(url.literal, cases[i].literal);
        assert_int_equal(url.port, (int)strtol(strrchr(url.place, ':') + 1, NULL, 10));
        rpc_url_finish(&url);
    }
}

/* Each bad one is refused with its sentence, in which nothing of it is. */
static void test_bad(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"", "must begin with http://"},
        {"h:3773", "must begin with http://"},
        {"ftp://h", "must begin with http://"},
        {"ws:/h", "must begin with http://"},
        {" ws://h", "must begin with http://"},
        {"ws://", "host is missing"},
        {"ws:///path", "host is missing"},
        {"ws://:80", "host is missing"},
        {"ws://topsecret@h", "user name"},
        {"ws://user:topsecret@h", "user name"},
        {"ws://h/#topsecret", "fragment"},
        {"ws://h:", "port is missing"},
        {"ws://h:0", "port must be"},
        {"ws://h:65536", "port must be"},
        {"ws://h:80a", "port must be"},
        {"ws://h:-1", "port must be"},
        {"ws://h:080", "port must be"},
        {"ws://a:b:c", "port must be"},
        {"ws://::1", "host is missing"},
        {"ws://h h", "host must be"},
        {"ws://h\\x", "host must be"},
        {"ws://\xc3\xa4", "host must be"},
        {"ws://%68", "host must be"},
        {"ws://[::1", "not closed"},
        {"ws://[::1]x", "what follows the host"},
        {"ws://[]", "host is missing"},
        {"ws://[1.2.3.4]", "no IPv6"},
        {"ws://[fe80::1%25eth0]", "no IPv6"},
        {"ws://h/a b", "escaped"},
        {"ws://h/\xc3\xa4", "escaped"},
        {"ws://h/?a=\n", "escaped"},
        {"ws://h\n/", "host must be"},
        {"ws://h/\"a", "escaped"},
        {"ws://h/?a|b", "escaped"},
        {"ws://topsecret@h/#topsecret", "user name"},
    };
    struct rpc_url url = {0};
    struct rpc_url_parts parts = {.port = 1};
    struct t3_rpc_error error;

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        int code = rpc_url_init(&url, cases[i].text, &error);

        assert_non_null(rpc_url_cut(slice_of(cases[i].text), &parts));
        assert_true(parts.port == 1 && parts.host.ptr == NULL); /* untouched */

        if (code != T3_RPC_ERROR_ARGUMENT || strstr(error.message, cases[i].says) == NULL) {
            print_error("%s: %s\n", cases[i].text, error.message);
        }
        assert_int_equal(code, T3_RPC_ERROR_ARGUMENT);
        assert_non_null(strstr(error.message, "the URL of the server is not good: "));
        assert_non_null(strstr(error.message, cases[i].says));
        assert_null(strstr(error.message, "topsecret"));
    }
}

static int with_host(size_t len)
{
    char text[2 * T3_URL_BYTES_MAX] = "ws://";
    struct rpc_url url = {0};
    int code;

    memset(text + 5, 'h', len);
    code = rpc_url_init(&url, text, NULL);
    rpc_url_finish(&url);
    return code;
}

static void test_lengths(void **state)
{
    char text[T3_URL_BYTES_MAX + 2] = "ws://h/";
    struct rpc_url url = {0};

    (void)state;
    assert_int_equal(with_host(T3_URL_HOST_BYTES_MAX), T3_RPC_OK);
    assert_int_equal(with_host(T3_URL_HOST_BYTES_MAX + 1), T3_RPC_ERROR_ARGUMENT);
    memset(text + 7, 'p', sizeof(text) - 8);
    assert_int_equal(rpc_url_init(&url, text, NULL), T3_RPC_ERROR_ARGUMENT);
    text[T3_URL_BYTES_MAX] = '\0';
    assert_int_equal(rpc_url_init(&url, text, NULL), T3_RPC_OK);
    rpc_url_finish(&url);
    rpc_url_finish(&url);
}

static void test_no_memory(void **state)
{
    struct rpc_url url = {0};
    struct t3_rpc_error error;
    int code = T3_RPC_ERROR_MEMORY;

    (void)state;
    for (long i = 0; code != T3_RPC_OK; i++) {
        fault_countdown = i;
        code = rpc_url_init(&url, "ws://h:1/p?q", &error);
        fault_countdown = -1;
        assert_true(code == T3_RPC_OK || (code == T3_RPC_ERROR_MEMORY && i < 10));
    }
    rpc_url_finish(&url);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_no_memory),
    };

    return UNIT_RUN(tests);
}
