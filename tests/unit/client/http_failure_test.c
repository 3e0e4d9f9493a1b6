/* libcurl's codes: what each means, and in which words. */
#include "client/http_failure.c"

#include "unit/base/unit.h"

#include <errno.h>

static void assert_failure(CURLcode code, const char *words, int os_errno,
                           enum stream_error_code expected, bool transient, const char *sentence)
{
    struct http_failure failure;

    http_failure(code, words, os_errno, 250, &failure);
    assert_int_equal(failure.code, expected);
    assert_int_equal(failure.transient, transient);
    assert_string_equal(failure.sentence, sentence);
}

static void test_network(void **state)
{
    (void)state;
    assert_failure(CURLE_COULDNT_CONNECT, "Failed to connect", ECONNREFUSED, STREAM_ERROR_NETWORK,
                   true, "no connection: Connection refused");
    assert_failure(CURLE_COULDNT_CONNECT, "Failed to connect", 0, STREAM_ERROR_NETWORK, true,
                   "no connection");
    assert_failure(CURLE_COULDNT_RESOLVE_HOST, "", 0, STREAM_ERROR_NETWORK, true,
                   "the name of the host leads nowhere");
    assert_failure(CURLE_RECV_ERROR, "", ECONNRESET, STREAM_ERROR_NETWORK, true,
                   "the connection broke: Connection reset by peer");
    assert_failure(CURLE_OPERATION_TIMEDOUT, "", 0, STREAM_ERROR_TIMEOUT, true,
                   "no connection within 250 ms");
    assert_failure(CURLE_HTTP3, "something new", 0, STREAM_ERROR_NETWORK, true, "something new");
}

static void test_tls(void **state)
{
    (void)state;
    assert_failure(CURLE_PEER_FAILED_VERIFICATION, "SSL certificate problem: self-signed", 0,
                   STREAM_ERROR_TLS, false, "SSL certificate problem: self-signed");
    assert_failure(CURLE_SSL_CONNECT_ERROR, "wrong version number", 0, STREAM_ERROR_TLS, false,
                   "wrong version number");
    assert_failure(CURLE_SSL_CONNECT_ERROR, "OpenSSL SSL_connect: SSL_ERROR_SYSCALL", 0,
                   STREAM_ERROR_NETWORK, true, "OpenSSL SSL_connect: SSL_ERROR_SYSCALL");
}

static void test_others(void **state)
{
    (void)state;
    assert_failure(CURLE_OUT_OF_MEMORY, "", 0, STREAM_ERROR_MEMORY, false, "out of memory");
    assert_failure(CURLE_URL_MALFORMAT, "bad", 0, STREAM_ERROR_ARGUMENT, false, "bad");
    assert_failure(CURLE_WEIRD_SERVER_REPLY, "", 0, STREAM_ERROR_FORMAT, false,
                   "the answer is not HTTP/1.1");
    assert_failure(CURLE_BAD_CONTENT_ENCODING, "", 0, STREAM_ERROR_FORMAT, false,
                   "the answer's compression is broken");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_network), cmocka_unit_test(test_tls),
                                       cmocka_unit_test(test_others)};

    return UNIT_RUN(tests);
}
