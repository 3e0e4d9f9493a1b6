/* What a server says in the body of a refusal. */
#include "client/http_sentence.c"

#include "unit/base/unit.h"

enum kind {
    JSON,
    TEXT,
    OTHER,
};

static void assert_sentence(const char *body, enum kind kind, const char *expected)
{
    char memory[256];
    struct buf out;

    buf_init_fixed(&out, memory, sizeof(memory));
    http_sentence(slice_of(body), kind == JSON, kind == TEXT, &out);
    memory[out.len] = '\0';
    assert_string_equal(memory, expected);
}

static void test_json(void **state)
{
    (void)state;
    assert_sentence("{\"title\":\"Not Found\",\"detail\":\"no \\u0022x\\u0022\"}", JSON,
                    "no \"x\"");
    assert_sentence("{\"title\":\"Not Found\",\"detail\":7}", JSON, "Not Found");
    assert_sentence("{\"error\":{\"code\":\"X\",\"message\":\"so it is\"}}", JSON, "so it is");
    assert_sentence("{\"error\":\"so it is\"}", JSON, "so it is");
    assert_sentence("{\"message\":\"so it is\"}", JSON, "so it is");
    assert_sentence("{\"error\":{\"code\":\"X\"}}", JSON, "");
    assert_sentence("{}", JSON, "");
    assert_sentence("[\"detail\"]", JSON, "");
    assert_sentence("{\"detail\":\"cut", JSON, "");
    assert_sentence("", JSON, "");
}

static void test_text(void **state)
{
    (void)state;
    assert_sentence("Not now\r\nlater\n", TEXT, "Not now");
    assert_sentence("Not now", TEXT, "Not now");
    assert_sentence("bad \xff byte", TEXT, "bad");
    assert_sentence("", TEXT, "");
    assert_sentence("<html><body>502</body></html>", OTHER, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_json), cmocka_unit_test(test_text)};

    return UNIT_RUN(tests);
}
