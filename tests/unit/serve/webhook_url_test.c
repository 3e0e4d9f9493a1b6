/* Which URLs a webhook may have: the table, and that what passes is taken apart as it was meant. */
#include "serve/webhook_url.c"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "unit/base/unit.h"

enum verdict {
    NEVER,
    LOCAL, /* with --webhooks-allow-loopback */
    ALWAYS,
};

struct row {
    enum verdict verdict;
    const char *url;
};

static const struct row rows[] = {
    {ALWAYS, "https://example.com"},
    {ALWAYS, "https://example.com/"},
    {ALWAYS, "HTTPS://EXAMPLE.com/Hook?a=b&c=%20/?:@"},
    {ALWAYS, "https://example.com?x"},
    {ALWAYS, "https://example.com:8443/hook"},
    {ALWAYS, "https://example.com:1/"},
    {ALWAYS, "https://example.com:65535/"},
    {ALWAYS, "https://a_b.example-x.com/"},
    {ALWAYS, "https://xn--bcher-kva.example/"},
    {ALWAYS, "https://8.8.8.8/"},
    {ALWAYS, "https://[2606:4700:4700::1111]:8443/x"},
    {ALWAYS, "https://0x7f.1.example/"},
    {ALWAYS, "https://1.2.3.4.example/"},
    {ALWAYS, "https://example.0y1/"},
    {ALWAYS, "https://notlocalhost/"},
    {ALWAYS, "https://localhost.example/"},

    {LOCAL, "http://localhost/"},
    {LOCAL, "http://LocalHost:4000/webhook"},
    {LOCAL, "http://127.0.0.1:4000/webhook"},
    {LOCAL, "http://127.255.255.255/"},
    {LOCAL, "http://[::1]:4000/"},
    {LOCAL, "http://[0:0:0:0:0:0:0:1]/"},
    {LOCAL, "http://[::ffff:127.0.0.1]/"},
    {LOCAL, "https://localhost/"},
    {LOCAL, "https://a.localhost/"},
    {LOCAL, "https://127.0.0.1/"},

    /* Schemes. */
    {NEVER, ""},
    {NEVER, "http://example.com/"},
    {NEVER, "http://8.8.8.8/"},
    {NEVER, "http://a.localhost/"},
    {NEVER, "ftp://example.com/"},
    {NEVER, "file:///etc/passwd"},
    {NEVER, "gopher://127.0.0.1:25/"},
    {NEVER, "https:/example.com/"},
    {NEVER, "https:example.com/"},
    {NEVER, "//example.com/"},
    {NEVER, "example.com"},
    {NEVER, "javascript:alert(1)"},

    /* Addresses that are not public. */
    {NEVER, "http://10.0.0.1/hook"},
    {NEVER, "https://10.0.0.1/hook"},
    {NEVER, "https://0.0.0.0/"},
    {NEVER, "https://100.64.0.1/"},
    {NEVER, "https://169.254.169.254/latest/meta-data/"},
    {NEVER, "https://172.16.0.1/"},
    {NEVER, "https://192.168.1.1/"},
    {NEVER, "https://224.0.0.1/"},
    {NEVER, "https://255.255.255.255/"},
    {NEVER, "https://[::]/"},
    {NEVER, "https://[fe80::1]/"},
    {NEVER, "https://[fe80::1%25eth0]/"},
    {NEVER, "https://[fd00::1]/"},
    {NEVER, "https://[::ffff:10.0.0.1]/"},
    {NEVER, "https://[64:ff9b::10.0.0.1]/"},
    {NEVER, "https://[2002:a00:1::]/"},

    /* Addresses that only some parsers take for such. */
    {NEVER, "https://0x7f.1/"},
    {NEVER, "https://0x7f000001/"},
    {NEVER, "https://0x/"},
    {NEVER, "https://2130706433/"},
    {NEVER, "https://017700000001/"},
    {NEVER, "https://0177.0.0.1/"},
    {NEVER, "https://127.1/"},
    {NEVER, "https://127.0.1/"},
    {NEVER, "https://8.8.8/"},
    {NEVER, "https://8.8.8.08/"},
    {NEVER, "https://8.8.8.8.8/"},
    {NEVER, "https://8.8.8.256/"},
    {NEVER, "https://example.0x1/"},
    {NEVER, "https://example.1/"},
    {NEVER, "https://127.0.0.1./"},
    {NEVER, "https://localhost./"},
    {NEVER, "https://example.com./"},
    {NEVER, "http://127.0.0.1.:80/"},
    {NEVER, "http://0x7f.1/"},
    {NEVER, "http://2130706433/"},
    {NEVER, "https://127%2e0.0.1/"},
    {NEVER, "https://%31%32%37.0.0.1/"},

    /* Hosts. */
    {NEVER, "https://"},
    {NEVER, "https:///hook"},
    {NEVER, "https://?x"},
    {NEVER, "https://:443/"},
    {NEVER, "https://./"},
    {NEVER, "https://a..b/"},
    {NEVER, "https://.a/"},
    {NEVER, "https://a b/"},
    {NEVER, "https://a,b/"},
    {NEVER, "https://a;b/"},
    {NEVER, "https://a!b/"},
    {NEVER, "https://[::1"},
    {NEVER, "https://[]/"},
    {NEVER, "https://[8.8.8.8]/"},
    {NEVER, "https://[::1]x/"},
    {NEVER, "https://[v1.x]/"},
    {NEVER, "https://::1/"},
    {NEVER, "https://b\xc3\xbc"
            "cher.example/"},
    {NEVER, "https://\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1/"}, /* full-width 127 */
    {NEVER, "https://127\xe3\x80\x82"
            "0.0.1/"}, /* ideographic full stop */

    /* Credentials, ports, fragments, odd characters. */
    {NEVER, "https://user@example.com/"},
    {NEVER, "https://user:pass@example.com/"},
    {NEVER, "https://@example.com/"},
    {NEVER, "https://8.8.8.8@10.0.0.1/"},
    {NEVER, "https://example.com:0/"},
    {NEVER, "https://example.com:/"},
    {NEVER, "https://example.com:65536/"},
    {NEVER, "https://example.com:443x/"},
    {NEVER, "https://example.com:+443/"},
    {NEVER, "https://example.com:0443/"},
    {NEVER, "https://example.com:80:80/"},
    {NEVER, "https://example.com/#x"},
    {NEVER, "https://example.com#@10.0.0.1/"},
    {NEVER, "https://example.com\\@10.0.0.1/"},
    {NEVER, "https://example.com/\\x"},
    {NEVER, " https://example.com/"},
    {NEVER, "https://example.com/ "},
    {NEVER, "https://example.com/\r\nX: y"},
    {NEVER, "https://exam\tple.com/"},
    {NEVER, "https://example.com/\x7f"},
    {NEVER, "https://example.com/\xc3\xa9"},
    {NEVER, "https://example.com/<>"},
    {NEVER, "https://example.com/{x}"},
};

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        for (int allow = 0; allow <= 1; allow++) {
            struct webhook_url url = {.port = 9};
            struct errmsg msg = {{0}};
            int rc = webhook_url_parse(slice_of(rows[i].url), allow != 0, &url, &msg);
            bool wanted = rows[i].verdict == ALWAYS || (rows[i].verdict == LOCAL && allow != 0);

            if (rc != (wanted ? 0 : ERR_INVALID)) {
                fail_msg("\"%s\" with flag %d gives %d: %s", rows[i].url, allow, rc, msg.text);
            }
            if (rc != 0) {
                assert_non_null(strstr(msg.text, "webhook URL"));
                assert_int_equal(url.port, 9); /* untouched */
            }
        }
    }
}

static void test_parts(void **state)
{
    (void)state;
    struct webhook_url url;

    assert_int_equal(webhook_url_parse(SLICE("https://Example.com/a:b@c"), false, &url, NULL), 0);
    assert_true(slice_equal(url.host, SLICE("Example.com")));
    assert_int_equal(url.port, 443);
    assert_true(url.https);
    assert_false(url.is_literal);
    assert_int_equal(webhook_url_parse(SLICE("http://[::1]?x"), true, &url, NULL), 0);
    assert_true(slice_equal(url.host, SLICE("::1")));
    assert_int_equal(url.port, 80);
    assert_false(url.https);
    assert_true(url.is_literal);
}

/* A NUL inside does not end the text early. */
static void test_nul(void **state)
{
    (void)state;
    struct webhook_url url;

    assert_int_equal(webhook_url_parse(SLICE("https://a.example\0.b/"), false, &url, NULL),
                     ERR_INVALID);
}

/* The longest URL, host and part of a host, and one byte more. */
static void test_lengths(void **state)
{
    (void)state;
    struct webhook_url url;
    struct buf text;

    for (size_t extra = 0; extra <= 1; extra++) {
        buf_init(&text, 8192);
        buf_append(&text, SLICE("https://a.example/"));
        while (text.len < SUBSCRIPTION_URL_BYTES_MAX + extra) {
            buf_append_char(&text, 'x');
        }
        assert_int_equal(webhook_url_parse(buf_slice(&text), false, &url, NULL) == 0, extra == 0);
        buf_clear(&text);
        buf_append(&text, SLICE("https://"));
        for (size_t i = 0; i < LABEL_BYTES_MAX + extra; i++) {
            buf_append_char(&text, 'x');
        }
        assert_int_equal(webhook_url_parse(buf_slice(&text), false, &url, NULL) == 0, extra == 0);
        buf_clear(&text);
        buf_append(&text, SLICE("https://"));
        for (size_t i = 0; i < HOST_BYTES_MAX + extra; i++) {
            buf_append_char(&text, i % 2 == 1 ? '.' : 'x');
        }
        if (extra == 1) {
            text.ptr[text.len - 1] = 'x';
        }
        assert_int_equal(webhook_url_parse(buf_slice(&text), false, &url, NULL) == 0, extra == 0);
        buf_finish(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_nul),
        cmocka_unit_test(test_lengths),
    };

    return UNIT_RUN(tests);
}
