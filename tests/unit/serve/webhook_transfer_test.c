/* The last guard before a connection, and the addresses that a name is pinned to. */
#include "serve/webhook_transfer.c"

#include <netinet/in.h>
#include <stdlib.h>
#include <unistd.h>

#include "unit/base/unit.h"

static curl_socket_t try_socket(const char *text, bool allow_loopback, const char **ret_refused)
{
    struct webhook_transfer t = {.allow_loopback = allow_loopback};
    struct sockaddr_in ip4 = {.sin_family = AF_INET};
    struct curl_sockaddr *address = calloc(1, sizeof(*address) + sizeof(struct sockaddr_storage));

    assert_non_null(address);
    assert_int_equal(inet_pton(AF_INET, text, &ip4.sin_addr), 1);
    address->family = AF_INET;
    address->socktype = SOCK_STREAM;
    address->addrlen = sizeof(ip4);
    memcpy(&address->addr, &ip4, sizeof(ip4));
    curl_socket_t fd = on_socket(&t, CURLSOCKTYPE_IPCXN, address);

    free(address);
    *ret_refused = t.refused;
    return fd;
}

/* Wherever libcurl has an address from: without leave there is no socket for it. */
static void test_guard(void **state)
{
    (void)state;
    const char *refused = NULL;

    assert_int_equal(try_socket("10.0.0.1", false, &refused), CURL_SOCKET_BAD);
    assert_non_null(refused);
    assert_int_equal(try_socket("10.0.0.1", true, &refused), CURL_SOCKET_BAD);
    assert_non_null(refused);
    assert_int_equal(try_socket("127.0.0.1", false, &refused), CURL_SOCKET_BAD);
    assert_non_null(refused);
    curl_socket_t fd = try_socket("127.0.0.1", true, &refused);

    assert_null(refused);
    assert_int_equal(close(fd), 0);
    fd = try_socket("8.8.8.8", false, &refused); /* made, not connected */
    assert_null(refused);
    assert_int_equal(close(fd), 0);
}

#define ADDRESSES_MAX 40

/* Pins "a.example:443" to `count` addresses as text. */
static int pin(const char *const *texts, size_t count, char **ret_resolved, struct errmsg *msg)
{
    struct sockaddr_in ip4[ADDRESSES_MAX];
    struct sockaddr_in6 ip6[ADDRESSES_MAX];
    struct addrinfo answers[ADDRESSES_MAX] = {{.ai_family = 0}};
    const struct webhook_url url = {.host = SLICE("a.example"), .port = 443};

    for (size_t i = 0; i < count; i++) {
        ip4[i] = (struct sockaddr_in){.sin_family = AF_INET};
        ip6[i] = (struct sockaddr_in6){.sin6_family = AF_INET6};
        bool is4 = inet_pton(AF_INET, texts[i], &ip4[i].sin_addr) == 1;

        assert_true(is4 || inet_pton(AF_INET6, texts[i], &ip6[i].sin6_addr) == 1);
        answers[i].ai_family = is4 ? AF_INET : AF_INET6;
        answers[i].ai_addr = is4 ? (struct sockaddr *)&ip4[i] : (struct sockaddr *)&ip6[i];
        answers[i].ai_next = i + 1 < count ? &answers[i + 1] : NULL;
    }
    return webhook_transfer_pin(&url, count > 0 ? answers : NULL, false, ret_resolved, msg);
}

static void test_pin(void **state)
{
    (void)state;
    static const char *const both[] = {"2606:4700:4700::1111", "8.8.8.8"};
    static const char *const mixed[] = {"8.8.8.8", "10.0.0.1"};
    char *resolved = NULL;
    struct errmsg msg = {{0}};

    assert_int_equal(pin(both, 2, &resolved, &msg), 0);
    assert_string_equal(resolved, "+a.example:443:[2606:4700:4700::1111],8.8.8.8");
    free(resolved);
    resolved = NULL;
    assert_int_equal(pin(mixed, 2, &resolved, &msg), ERR_PERM);
    assert_string_equal(msg.text, "it leads to 10.0.0.1, which is a private network");
    assert_int_equal(pin(NULL, 0, &resolved, &msg), ERR_NOTFOUND);
    assert_null(resolved);
}

/* More answers than are tried: all are checked, those that do not fit are left out. */
static void test_pin_many(void **state)
{
    (void)state;
    const char *texts[ADDRESSES_MAX];
    char *resolved = NULL;
    struct errmsg msg = {{0}};
    size_t commas = 0;

    for (size_t i = 0; i < ADDRESSES_MAX; i++) {
        texts[i] = "2606:4700:4700:1111:2222:3333:4444:5555";
    }
    assert_int_equal(pin(texts, ADDRESSES_MAX, &resolved, &msg), 0);
    for (const char *at = resolved; *at != '\0'; at++) {
        commas += *at == ',' ? 1 : 0;
    }
    assert_int_equal(commas, ANSWERS_MAX - 1);
    free(resolved);
    texts[ADDRESSES_MAX - 1] = "::1";
    assert_int_equal(pin(texts, ADDRESSES_MAX, &resolved, &msg), ERR_PERM);
}

/* What the receiver sends is bounded in body and head. */
static void test_bounds(void **state)
{
    (void)state;
    static char bytes[16384];
    struct webhook_transfer t = {.header_bytes = 0};

    buf_init(&t.reply, WEBHOOK_REPLY_BYTES_MAX);
    for (size_t i = 0; i < WEBHOOK_REPLY_BYTES_MAX / sizeof(bytes); i++) {
        assert_int_equal(on_body(bytes, 1, sizeof(bytes), &t), sizeof(bytes));
        assert_int_equal(on_header(bytes, 1, sizeof(bytes), &t), sizeof(bytes));
    }
    assert_false(t.too_long);
    assert_int_equal(on_body(bytes, 1, 1, &t), 0);
    assert_true(t.too_long);
    t.too_long = false;
    assert_int_equal(on_header(bytes, 1, 1, &t), 0);
    assert_true(t.too_long);
    buf_finish(&t.reply);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_guard),
        cmocka_unit_test(test_pin),
        cmocka_unit_test(test_pin_many),
        cmocka_unit_test(test_bounds),
    };

    return UNIT_RUN(tests);
}
