/* Entries, as they are and as they are not. */
#include "client/scoped_entry.c"

#include "unit/base/unit.h"

static struct scoped_entry read_entry(const char *json)
{
    struct scoped_entry entry;

    memset(&entry, 0x5a, sizeof(entry));
    assert_int_equal(scoped_entry_read(json, strlen(json), &entry), STREAM_OK);
    return entry;
}

static void test_whole(void **state)
{
    static const char json[] =
        " {\"id\":\"e\\u0031\",\"ts\":1764536400123,\"authorId\":\"a-1\",\"more\":[1],"
        "\"payload\": {\"type\":\"chat\",\"text\":\"h\\u00e9\", \"x\":1.50}} \n";
    struct scoped_entry entry = read_entry(json);

    (void)state;
    assert_string_equal(entry.id, "e1");
    assert_true(entry.ts == 1764536400123);
    assert_string_equal(entry.author_id, "a-1");
    assert_string_equal(entry.type, "chat");
    assert_true(slice_equal((struct slice){entry.payload, entry.payload_len},
                            SLICE("{\"type\":\"chat\",\"text\":\"h\\u00e9\", \"x\":1.50}")));
    assert_ptr_equal(entry.json, json + 1);
    assert_int_equal(entry.json_len, sizeof(json) - 1 - 3);
}

/* Types that are not known pass; what is absent, or not what it should be, is empty. */
static void test_lenient(void **state)
{
    static const char *const bare[] = {
        "{}",
        "{\"id\":7,\"ts\":\"now\",\"authorId\":null,\"payload\":[]}",
        "{\"id\":\"a\\u0000b\",\"ts\":-1,\"authorId\":\"\\ud800\",\"payload\":\"x\"}",
        "{\"id\":\"a\",\"id\":\"b\",\"ts\":1.5}",
    };
    char text[400] = "{\"id\":\"";
    struct scoped_entry entry;

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bare); i++) {
        entry = read_entry(bare[i]);
        assert_string_equal(entry.id, "");
        assert_true(entry.ts == 0);
        assert_string_equal(entry.author_id, "");
        assert_string_equal(entry.type, "");
        assert_int_equal(entry.payload_len, 0);
        assert_int_equal(entry.json_len, strlen(bare[i]));
    }
    memset(text + 7, 'x', SCOPED_ID_BYTES - 1);
    memcpy(text + 7 + SCOPED_ID_BYTES - 1, "\"}", 3);
    assert_int_equal(strlen(read_entry(text).id), SCOPED_ID_BYTES - 1);
    memset(text + 7, 'x', SCOPED_ID_BYTES);
    memcpy(text + 7 + SCOPED_ID_BYTES, "\"}", 3);
    assert_string_equal(read_entry(text).id, ""); /* not a part of it */
    assert_string_equal(read_entry("{\"payload\":{\"type\":\"signal.new.kind\"}}").type,
                        "signal.new.kind");
}

static void test_no_entry(void **state)
{
    static const char *const texts[] = {"", "[]", "7", "{", "{\"id\":\"a\"", "{} {}", "null"};
    struct scoped_entry entry = {.ts = 5};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        assert_int_equal(scoped_entry_read(texts[i], strlen(texts[i]), &entry),
                         STREAM_ERROR_FORMAT);
    }
    assert_true(entry.ts == 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_lenient),
        cmocka_unit_test(test_no_entry),
    };

    return UNIT_RUN(tests);
}
