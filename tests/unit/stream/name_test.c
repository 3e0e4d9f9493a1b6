/* Canonical names: what is decoded, what stays, what is refused, and the way back into a URL. */
#include "stream/name.c"

#include "unit/base/unit.h"

static int parse(const char *raw, char out[static STREAM_NAME_BYTES_MAX + 1])
{
    size_t len = 0;
    struct errmsg msg = {{0}};
    int code = name_parse(slice_of(raw), out, &len, &msg);

    out[code == 0 ? len : 0] = '\0';
    if (code != 0) {
        assert_true(msg.text[0] != '\0');
    }
    return code;
}

static void assert_name(const char *raw, const char *name)
{
    char out[STREAM_NAME_BYTES_MAX + 1];

    assert_int_equal(parse(raw, out), 0);
    assert_string_equal(out, name);
}

static void assert_refused(const char *raw, int code)
{
    char out[STREAM_NAME_BYTES_MAX + 1];

    assert_int_equal(parse(raw, out), code);
}

/* Escapes are decoded, but for the two that would make two URLs one name. */
static void decodes(void **state)
{
    (void)state;
    assert_name("a%62c", "abc");
    assert_name("a%2fb", "a%2Fb");
    assert_name("a%2Fb", "a%2Fb");
    assert_name("a/b", "a/b");
    assert_name("a%25b", "a%25b");
    assert_name("a%252Fb", "a%252Fb");
    assert_name("caf%C3%a9", "caf\xc3\xa9");
    assert_name("caf\xc3\xa9", "caf\xc3\xa9");
    assert_name("a+b%20c", "a+b c");
    assert_name("//a//", "//a//");
    assert_name("...", "...");
    assert_name(".a/b.", ".a/b.");
}

/* Segments that mean a directory are refused however they are spelt. */
static void refuses_dots(void **state)
{
    const char *bad[] = {".",   "..",       "a/..",   "../a",       "a/./b",
                         "%2e", "%2E%2e/a", ".%2e/b", "a/%2e%2e/b", "a/."};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_refused(bad[i], ERR_INVALID);
    }
}

/* Control characters, broken escapes and bytes that are not UTF-8 are refused. */
static void refuses_bytes(void **state)
{
    const char *bad[] = {"%00", "a%0a",   "%7f",    "a\x01",        "%",
                         "a%",  "%4",     "%zz",    "%%41",         "%ff",
                         "%c3", "%c3%28", "%c0%ae", "%ed%a0%80",    "\xff",
                         "%0d", "%u0041", "a%1fb",  "%f4%90%80%80", "%e0%80%af"};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_refused(bad[i], ERR_INVALID);
    }
}

/* The first segment __ds is reserved, however it is spelt; elsewhere it is a name. */
static void reserves_control_routes(void **state)
{
    (void)state;
    assert_refused("", ERR_NOTFOUND);
    assert_refused("__ds", ERR_NOTFOUND);
    assert_refused("__ds/a", ERR_NOTFOUND);
    assert_refused("%5f_ds/a", ERR_NOTFOUND);
    assert_name("__dsx", "__dsx");
    assert_name("a/__ds", "a/__ds");
    assert_name("__DS", "__DS");
}

/* The cap counts decoded bytes; a malformed name is called malformed however long it is. */
static void caps_length(void **state)
{
    char raw[STREAM_NAME_BYTES_MAX * 3 + 8];

    (void)state;
    memset(raw, 'n', sizeof(raw));
    raw[STREAM_NAME_BYTES_MAX] = '\0';
    assert_name(raw, raw);
    raw[STREAM_NAME_BYTES_MAX] = 'n';
    raw[STREAM_NAME_BYTES_MAX + 1] = '\0';
    assert_refused(raw, ERR_TOOBIG);
    memcpy(raw + STREAM_NAME_BYTES_MAX, "%zz", 4);
    assert_refused(raw, ERR_INVALID);
    for (size_t i = 0; i < STREAM_NAME_BYTES_MAX; i++) {
        memcpy(raw + i * 3, "%61", 4);
    }
    char out[STREAM_NAME_BYTES_MAX + 1];

    assert_int_equal(parse(raw, out), 0);
    assert_int_equal(strlen(out), STREAM_NAME_BYTES_MAX);
}

/* A name written into a URL is read back as itself. */
static void escapes(void **state)
{
    const char *names[] = {"a b", "caf\xc3\xa9", "a%2Fb", "a%25", "?x#y", "a/b//c", "\"<>\\^`{|}"};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        char memory[256];
        struct buf url;

        buf_init_fixed(&url, memory, sizeof(memory));
        name_append_escaped(&url, slice_of(names[i]));
        buf_append_char(&url, '\0');
        for (const char *c = url.ptr; *c != '\0'; c++) {
            assert_true(*c > ' ' && *c < 0x7f && *c != '"');
        }
        assert_name(url.ptr, names[i]);
    }
}

/* Only paths below the very root are streams. */
static void knows_the_root(void **state)
{
    (void)state;
    assert_true(name_is_stream_path(SLICE("/v1/stream/a")));
    assert_true(name_is_stream_path(SLICE("/v1/stream/")));
    assert_false(name_is_stream_path(SLICE("/v1/stream")));
    assert_false(name_is_stream_path(SLICE("/v1/streams/a")));
    assert_false(name_is_stream_path(SLICE("/V1/stream/a")));
    assert_false(name_is_stream_path(SLICE("/x/v1/stream/a")));
}

/* One layer of escapes comes off, whatever it hides; the room given is kept to. */
static void unescapes(void **state)
{
    char out[8];

    (void)state;
    assert_int_equal(name_unescape(SLICE("a%2Fb%25+%00"), out, sizeof(out)), 6);
    assert_memory_equal(out, "a/b%+\0", 6);
    assert_int_equal(name_unescape(SLICE(""), out, 0), 0);
    assert_int_equal(name_unescape(SLICE("12345678"), out, sizeof(out)), 8);
    assert_int_equal(name_unescape(SLICE("12345678%41"), out, sizeof(out)), ERR_TOOBIG);
    assert_int_equal(name_unescape(SLICE("%4"), out, sizeof(out)), ERR_INVALID);
    assert_int_equal(name_unescape(SLICE("%4g"), out, sizeof(out)), ERR_INVALID);
    assert_int_equal(name_unescape(SLICE("%"), out, sizeof(out)), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes),        cmocka_unit_test(refuses_dots),
        cmocka_unit_test(refuses_bytes),  cmocka_unit_test(reserves_control_routes),
        cmocka_unit_test(caps_length),    cmocka_unit_test(escapes),
        cmocka_unit_test(knows_the_root), cmocka_unit_test(unescapes),
    };

    return UNIT_RUN(tests);
}
