/* The table of addresses: first and last of each range that is refused, and their neighbours. */
#include "serve/address.c"

#include <arpa/inet.h>
#include <stdio.h>

#include "unit/base/unit.h"

struct row {
    const char *text;
    const char *what; /* part of the reason; NULL: it is public */
};

static const struct row rows[] = {
    {"0.0.0.0", "special"},
    {"0.255.255.255", "special"},
    {"1.0.0.0", NULL},
    {"1.1.1.1", NULL},
    {"9.255.255.255", NULL},
    {"10.0.0.0", "private"},
    {"10.255.255.255", "private"},
    {"11.0.0.0", NULL},
    {"100.63.255.255", NULL},
    {"100.64.0.0", "carrier"},
    {"100.127.255.255", "carrier"},
    {"100.128.0.0", NULL},
    {"126.255.255.255", NULL},
    {"127.0.0.0", "itself"},
    {"127.0.0.1", "itself"},
    {"127.255.255.255", "itself"},
    {"128.0.0.0", NULL},
    {"169.253.255.255", NULL},
    {"169.254.0.0", "link-local"},
    {"169.254.169.254", "link-local"},
    {"169.254.255.255", "link-local"},
    {"169.255.0.0", NULL},
    {"172.15.255.255", NULL},
    {"172.16.0.0", "private"},
    {"172.31.255.255", "private"},
    {"172.32.0.0", NULL},
    {"191.255.255.255", NULL},
    {"192.0.0.0", "special"},
    {"192.0.0.170", "special"},
    {"192.0.1.0", NULL},
    {"192.0.2.0", "documentation"},
    {"192.0.2.255", "documentation"},
    {"192.0.3.0", NULL},
    {"192.31.196.1", "special"},
    {"192.52.193.1", "special"},
    {"192.88.99.1", "tunnel"},
    {"192.167.255.255", NULL},
    {"192.168.0.0", "private"},
    {"192.168.255.255", "private"},
    {"192.169.0.0", NULL},
    {"192.175.48.1", "special"},
    {"198.17.255.255", NULL},
    {"198.18.0.0", "benchmark"},
    {"198.19.255.255", "benchmark"},
    {"198.20.0.0", NULL},
    {"198.51.100.1", "documentation"},
    {"203.0.113.1", "documentation"},
    {"223.255.255.255", NULL},
    {"224.0.0.0", "multicast"},
    {"239.255.255.255", "multicast"},
    {"240.0.0.0", "special"},
    {"255.255.255.254", "special"},
    {"255.255.255.255", "broadcast"},
    {"::", "tunnel"},
    {"::1", "itself"},
    {"::2", "tunnel"},
    {"::127.0.0.1", "tunnel"},
    {"::8.8.8.8", "tunnel"},
    {"::ffff:127.0.0.1", "itself"},
    {"::ffff:10.1.2.3", "private"},
    {"::ffff:169.254.169.254", "link-local"},
    {"::ffff:8.8.8.8", NULL},
    {"::ffff:0:10.0.0.1", "special"}, /* IPv4-translated, RFC 2765 */
    {"64:ff9b::10.0.0.1", "private"},
    {"64:ff9b::127.0.0.1", "itself"},
    {"64:ff9b::8.8.8.8", NULL},
    {"64:ff9b:1::8.8.8.8", "tunnel"},
    {"64:ff9b:2::1", "special"},
    {"100::1", "special"},
    {"1fff:ffff::1", "special"},
    {"2001::1", "tunnel"},
    {"2001:0:4136:e378:8000:63bf:3fff:fdd2", "tunnel"},
    {"2001:2::1", "benchmark"},
    {"2001:2:1::1", "special"},
    {"2001:10::1", "special"},
    {"2001:20::1", "special"},
    {"2001:1ff:ffff::1", "special"},
    {"2001:200::1", NULL},
    {"2001:db7:ffff::1", NULL},
    {"2001:db8::1", "documentation"},
    {"2001:db8:ffff:ffff::1", "documentation"},
    {"2001:db9::1", NULL},
    {"2001:4860:4860::8888", NULL},
    {"2002:a00:1::1", "tunnel"},
    {"2002:808:808::1", "tunnel"},
    {"2003::1", NULL},
    {"2606:4700:4700::1111", NULL},
    {"2620:4f:8000::1", "special"},
    {"2620:4f:8001::1", NULL},
    {"3ffe:ffff::1", NULL},
    {"3fff::1", "documentation"},
    {"3fff:fff:ffff::1", "documentation"},
    {"3fff:1000::1", NULL},
    {"4000::1", "special"},
    {"5f00::1", "special"},
    {"fbff:ffff::1", "special"},
    {"fc00::1", "private"},
    {"fd00:ec2::254", "private"},
    {"fdff:ffff::1", "private"},
    {"fe00::1", "special"},
    {"fe80::1", "link-local"},
    {"febf:ffff::1", "link-local"},
    {"fec0::1", "private"},
    {"ff02::1", "multicast"},
    {"ff0e::1", "multicast"},
};

static void parse(const char *text, struct sockaddr_storage *ret_address)
{
    struct sockaddr_in ip4 = {.sin_family = AF_INET};
    struct sockaddr_in6 ip6 = {.sin6_family = AF_INET6};

    memset(ret_address, 0, sizeof(*ret_address));
    if (inet_pton(AF_INET, text, &ip4.sin_addr) == 1) {
        memcpy(ret_address, &ip4, sizeof(ip4));
    } else {
        assert_int_equal(inet_pton(AF_INET6, text, &ip6.sin6_addr), 1);
        memcpy(ret_address, &ip6, sizeof(ip6));
    }
}

static const char *refusal(const char *text, bool allow_loopback)
{
    struct sockaddr_storage address;

    parse(text, &address);
    return address_refusal((const struct sockaddr *)&address, allow_loopback);
}

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        const char *what = refusal(rows[i].text, false);
        bool right = rows[i].what == NULL ? what == NULL
                                          : what != NULL && strstr(what, rows[i].what) != NULL;

        if (!right) {
            fail_msg("%s is %s", rows[i].text, what == NULL ? "public" : what);
        }
    }
}

/* The flag lets this machine itself pass, in each of its forms, and not one address more. */
static void test_loopback(void **state)
{
    (void)state;
    static const char *const local[] = {"127.0.0.1", "127.255.255.255", "::1", "::ffff:127.0.0.1"};

    for (size_t i = 0; i < ARRAY_COUNT(local); i++) {
        assert_non_null(refusal(local[i], false));
        assert_null(refusal(local[i], true));
    }
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        bool is_local = rows[i].what != NULL && strcmp(rows[i].what, "itself") == 0;

        if (!is_local || strncmp(rows[i].text, "64:", 3) == 0) {
            assert_ptr_equal(refusal(rows[i].text, true), refusal(rows[i].text, false));
        }
    }
}

/* Sockets of the file system and others are no addresses. */
static void test_family(void **state)
{
    (void)state;
    struct sockaddr address = {.sa_family = AF_UNIX};

    assert_non_null(address_refusal(&address, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_loopback),
        cmocka_unit_test(test_family),
    };

    return UNIT_RUN(tests);
}
