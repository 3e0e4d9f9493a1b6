/* Entries: what a client may post, what is read back, and that a strange log does no harm. */
#include "thread/entry.c"

#include "unit/base/unit.h"
#include "unit/thread/json_gen.h"

static struct arena arena;
static struct api_error last;

static int setup(void **state)
{
    (void)state;
    arena_init(&arena, 1000);
    memset(&last, 0, sizeof(last));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_finish(&arena);
    return 0;
}

static void assert_slice(struct slice got, const char *want)
{
    if (!slice_equal(got, slice_of(want))) {
        fail_msg("%.*s is not %s", (int)got.len, got.ptr, want);
    }
}

static void assert_refused(const char *json, enum api_code code, const char *field,
                           const char *message)
{
    struct entry_posted posted;
    if (entry_parse_posted(slice_of(json), &arena, &posted, &last) == 0) {
        fail_msg("%s was taken", json);
    }
    assert_int_equal(last.code, code);
    assert_string_equal(last.field, field);
    assert_string_equal(last.message, message);
    assert_int_equal(entry_parse_posted(slice_of(json), &arena, &posted, NULL), -1);
}

/* All members, or the payload alone; the payload keeps its bytes. */
static void test_posted(void **state)
{
    struct entry_posted posted;
    (void)state;
    assert_int_equal(entry_parse_posted(SLICE(" {\"payload\" : { \"type\": \"chat\" } } "), &arena,
                                        &posted, &last),
                     0);
    assert_int_equal(posted.id.len, 0);
    assert_int_equal(posted.author_id.len, 0);
    assert_slice(posted.payload, "{ \"type\": \"chat\" }");
    assert_int_equal(entry_parse_posted(SLICE("{\"ts\":-1.5,\"id\":\"\\u0061-b\",\"payload\":{},"
                                              "\"authorId\":\"me\\\"\"}"),
                                        &arena, &posted, &last),
                     0);
    assert_slice(posted.id, "a-b");
    assert_slice(posted.author_id, "me\"");
    assert_int_equal(entry_parse_posted(SLICE("{\"ts\":null,\"id\":null,\"payload\":{},"
                                              "\"authorId\":null}"),
                                        &arena, &posted, &last),
                     0);
    assert_int_equal(posted.id.len + posted.author_id.len, 0);
}

/* What is wrong is said with its place. */
static void test_posted_refused(void **state)
{
    (void)state;
    assert_refused("{", API_MALFORMED_JSON, "",
                   "not valid JSON at byte 1: expected a member name in double quotes");
    assert_refused("", API_MALFORMED_JSON, "",
                   "not valid JSON at byte 0: the text ends where a value is expected");
    assert_refused("{\"payload\":\"\xff\"}", API_MALFORMED_JSON, "",
                   "not valid JSON at byte 12: a string must be valid UTF-8");
    assert_refused("[]", API_INVALID_INPUT, "", "an entry must be an object, not an array");
    assert_refused("{}", API_INVALID_INPUT, "payload", "payload is missing");
    assert_refused("{\"payload\":[]}", API_INVALID_INPUT, "payload",
                   "payload must be an object, not an array");
    assert_refused("{\"payload\":{},\"payload\":{}}", API_INVALID_INPUT, "payload",
                   "payload is given twice");
    assert_refused("{\"id\":\"a\",\"i\\u0064\":\"a\",\"payload\":{}}", API_INVALID_INPUT, "id",
                   "id is given twice");
    assert_refused("{\"id\":null,\"id\":\"a\",\"payload\":{}}", API_INVALID_INPUT, "id",
                   "id is given twice");
    assert_refused("{\"payload\":{},\"seq\":1}", API_INVALID_INPUT, "seq",
                   "seq is not known here: an entry has id, authorId and payload");
    assert_refused("{\"id\":7,\"payload\":{}}", API_INVALID_INPUT, "id",
                   "id must be a string, not a number");
    assert_refused("{\"id\":\"\",\"payload\":{}}", API_INVALID_INPUT, "id",
                   "id must be 1 to 96 letters, digits and . _ ~ -");
    assert_refused("{\"id\":\"a b\",\"payload\":{}}", API_INVALID_INPUT, "id",
                   "id must be 1 to 96 letters, digits and . _ ~ -");
    assert_refused("{\"id\":\"arbe.deleted.a\",\"payload\":{}}", API_INVALID_INPUT, "id",
                   "id may not begin with \"arbe.\", which is reserved");
    assert_refused("{\"id\":\"\\u0061rbe.x\",\"payload\":{}}", API_INVALID_INPUT, "id",
                   "id may not begin with \"arbe.\", which is reserved");
    assert_refused("{\"ts\":\"now\",\"payload\":{}}", API_INVALID_INPUT, "ts",
                   "ts must be a number, not a string");
    assert_refused("{\"authorId\":{},\"payload\":{}}", API_INVALID_INPUT, "authorId",
                   "authorId must be a string, not an object");
    assert_refused("{\"authorId\":\"\",\"payload\":{}}", API_INVALID_INPUT, "authorId",
                   "authorId must be an agent's id");
    assert_refused("{\"authorId\":\"\\ude00\",\"payload\":{}}", API_INVALID_INPUT, "authorId",
                   "authorId has half of a surrogate pair, which is no character");
}

/* A text that is nested as deeply as it can be is refused, not followed. */
static void test_depth(void **state)
{
    char text[3 * JSON_DEPTH_MAX];
    struct entry_posted posted;
    struct entry entry;
    (void)state;
    memset(text, '[', sizeof(text));
    memcpy(text, "{\"payload\":", 11);
    assert_int_equal(entry_parse_posted((struct slice){text, sizeof(text)}, &arena, &posted, &last),
                     -1);
    assert_int_equal(last.code, API_MALFORMED_JSON);
    assert_int_equal(entry_parse((struct slice){text, sizeof(text)}, &entry, NULL), -1);
}

/* Where the arena is full, that is said. */
static void test_no_memory(void **state)
{
    struct entry_posted posted;
    struct arena small;
    (void)state;
    arena_init(&small, 4);
    assert_int_equal(
        entry_parse_posted(SLICE("{\"id\":\"\\u0061\",\"payload\":{}}"), &small, &posted, &last),
        -1);
    assert_int_equal(last.code, API_INTERNAL);
    arena_finish(&small);
}

/* Ids: up to 96 of the characters that need no escape anywhere, and none of the server's. */
static void test_ids(void **state)
{
    char text[200];
    char tombstone[ENTRY_ID_BYTES];
    (void)state;
    memset(text, 'a', sizeof(text));
    assert_true(entry_id_good((struct slice){text, 1}));
    assert_true(entry_id_good((struct slice){text, 96}));
    assert_false(entry_id_good((struct slice){text, 97}));
    assert_true(entry_id_possible((struct slice){text, 127}));
    assert_false(entry_id_possible((struct slice){text, 128}));
    assert_false(entry_id_good((struct slice){NULL, 0}));
    assert_false(entry_id_possible((struct slice){NULL, 0}));
    assert_int_equal(entry_tombstone_id((struct slice){text, 96}, tombstone), 109);
    assert_int_equal(strlen(tombstone), 109);
    assert_memory_equal(tombstone, "arbe.deleted.aaa", 16);
    assert_false(entry_id_good(slice_of(tombstone)));
    assert_true(entry_id_possible(slice_of(tombstone)));
    for (int c = 0; c < 256; c++) {
        char one = (char)c;
        bool good = c != '\0' && strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                        "0123456789._~-",
                                        c) != NULL;
        assert_int_equal(entry_id_good((struct slice){&one, 1}), good && c != '.');
        assert_int_equal(entry_id_possible((struct slice){&one, 1}), good);
    }
    assert_true(entry_id_good(SLICE("arbe")));
    assert_true(entry_id_good(SLICE("Arbe.x")));
    assert_false(entry_id_good(SLICE("arbe.")));
    assert_false(entry_id_good(SLICE("..")));
    assert_true(entry_id_good(SLICE("...")));
}

/* What is written is read again, payload byte for byte. */
static void test_format(void **state)
{
    struct entry entry = {.id = SLICE("i"), .ts = 1700000000999, .payload = SLICE("{ \"a\":1 }")};
    struct entry again;
    char memory[200];
    struct buf out;
    (void)state;
    buf_init_fixed(&out, memory, sizeof(memory));
    entry_format(&out, &entry);
    assert_slice(buf_slice(&out), "{\"id\":\"i\",\"ts\":1700000000999,\"payload\":{ \"a\":1 }}");
    assert_int_equal(entry_parse(buf_slice(&out), &again, &last), 0);
    assert_int_equal(again.author_id.len, 0);
    entry.author_id = SLICE("me");
    buf_clear(&out);
    entry_format(&out, &entry);
    assert_slice(buf_slice(&out), "{\"id\":\"i\",\"ts\":1700000000999,\"authorId\":\"me\","
                                  "\"payload\":{ \"a\":1 }}");
    assert_int_equal(entry_parse(buf_slice(&out), &again, &last), 0);
    assert_slice(again.id, "i");
    assert_true(again.ts == 1700000000999);
    assert_slice(again.author_id, "me");
    assert_slice(again.payload, "{ \"a\":1 }");
}

/* A stored one may hold more than we know; it is no entry where what we need is missing. */
static void test_stored(void **state)
{
    static const char *const bad[] = {
        "",
        "7",
        "[]",
        "{}",
        "{\"id\":\"i\",\"ts\":1}",
        "{\"id\":\"i\",\"payload\":{}}",
        "{\"ts\":1,\"payload\":{}}",
        "{\"id\":\"\",\"ts\":1,\"payload\":{}}",
        "{\"id\":\"\\u0061\",\"ts\":1,\"payload\":{}}",
        "{\"id\":7,\"ts\":1,\"payload\":{}}",
        "{\"id\":\"i\",\"id\":\"j\",\"ts\":1,\"payload\":{}}",
        "{\"id\":\"i\",\"ts\":-1,\"payload\":{}}",
        "{\"id\":\"i\",\"ts\":1.5,\"payload\":{}}",
        "{\"id\":\"i\",\"ts\":\"1\",\"payload\":{}}",
        "{\"id\":\"i\",\"ts\":1,\"payload\":[]}",
        "{\"id\":\"i\",\"ts\":1,\"authorId\":7,\"payload\":{}}",
    };
    struct entry entry;
    (void)state;
    assert_int_equal(entry_parse(SLICE("{\"seq\":[7],\"id\":\"a:b\",\"authorId\":null,\"ts\":1e3,"
                                       "\"payload\":{\"type\":\"later.kind\"},\"seq\":8}"),
                                 &entry, &last),
                     0);
    assert_slice(entry.id, "a:b");
    assert_true(entry.ts == 1000);
    assert_int_equal(entry.author_id.len, 0);
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        memset(&last, 0, sizeof(last));
        assert_int_equal(entry_parse(slice_of(bad[i]), &entry, &last), -1);
        assert_true(last.message[0] != '\0');
    }
    assert_slice(entry.id, "a:b"); /* as before */
}

/* What a walk met. */
struct met {
    struct buf text; /* ids and places */
    size_t stop;     /* at this place */
};

static int on_entry(void *context, const struct entry *entry, size_t index)
{
    struct met *met = context;
    buf_append_format(&met->text, "%.*s@%zu ", (int)entry->id.len, entry->id.ptr, index);
    return index == met->stop ? 7 : 0;
}

/* Of a page with strange messages, those that are entries come, each with its place. */
static void test_each(void **state)
{
    struct slice page = SLICE(
        "[{\"id\":\"a\",\"ts\":1,\"payload\":{\"type\":\"chat\"}}, null, [[]],"
        "{\"id\":\"b\",\"ts\":2,\"payload\":{\"type\":\"later.kind\",\"x\":[{}]}},"
        "{\"seq\":1}, {\"id\":\"c\",\"ts\":3,\"payload\":{}} ]");
    char memory[100];
    struct met met = {.stop = SIZE_MAX};
    (void)state;
    buf_init_fixed(&met.text, memory, sizeof(memory));
    assert_int_equal(entry_each(page, on_entry, &met), 0);
    assert_slice(buf_slice(&met.text), "a@0 b@3 c@5 ");
    buf_clear(&met.text);
    met.stop = 3;
    assert_int_equal(entry_each(page, on_entry, &met), 7);
    assert_slice(buf_slice(&met.text), "a@0 b@3 ");
    buf_clear(&met.text);
    assert_int_equal(entry_each(SLICE("[]"), on_entry, &met), 0);
    assert_int_equal(entry_each(SLICE("[1,"), on_entry, &met), ERR_INVALID);
    assert_int_equal(met.text.len, 0);
}

#define ROUNDS 2000

/* Whatever a log holds, a walk over it ends well and meets the entries that are in it. */
static void test_strange_log(void **state)
{
    struct gen g;
    (void)state;
    gen_init(&g);
    for (int i = 0; i < ROUNDS; i++) {
        size_t count = gen_below(&g, 6);
        size_t want = 0;
        struct met met = {.stop = SIZE_MAX};
        buf_init(&met.text, 4096);
        buf_clear(&g.out);
        gen_text(&g, "[");
        for (size_t j = 0; j < count; j++) {
            gen_text(&g, j > 0 ? "," : "");
            gen_space(&g);
            if (gen_below(&g, 2)) {
                buf_append_format(&g.out, "{\"id\":\"i\",\"ts\":%zu,\"payload\":", j);
                gen_container(&g, true, 4);
                gen_text(&g, ",");
                gen_member(&g, 4);
                gen_text(&g, "}");
                want++;
            } else {
                gen_value(&g, 4);
            }
        }
        gen_text(&g, "]");
        assert_int_equal(entry_each(buf_slice(&g.out), on_entry, &met), 0);
        size_t got = 0;
        for (size_t j = 0; j < met.text.len; j++) {
            got += met.text.ptr[j] == ' ';
        }
        assert_int_equal(got, want);
        buf_finish(&met.text);
    }
    buf_finish(&g.out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_posted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_posted_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_depth, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
        cmocka_unit_test(test_ids),
        cmocka_unit_test_setup_teardown(test_format, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stored, setup, teardown),
        cmocka_unit_test(test_each),
        cmocka_unit_test(test_strange_log),
    };
    return UNIT_RUN(tests);
}
