/* Bodies into stored bytes and marks. */
#include "stream/message.c"

#include <stdio.h>
#include <stdlib.h>

#include "unit/base/unit.h"

/* Prepares `body` in JSON mode, expects the stored text and the messages' lengths (0 ends). */
static void expect_json(const char *body, const char *stored, const unsigned *lens)
{
    struct message_batch batch;
    assert_int_equal(message_prepare(&batch, true, slice_of(body), NULL, false, NULL), 0);
    assert_int_equal(batch.body.len, strlen(stored));
    assert_memory_equal(batch.body.ptr, stored, batch.body.len);
    const uint8_t *at = (const uint8_t *)batch.marks.ptr;
    struct bytes_reader r = {.at = at, .end = at + batch.marks.len};
    uint64_t len;
    bool append_end = false;
    for (; *lens > 0; lens++) {
        assert_true(marks_next(&r, &len, &append_end));
        assert_int_equal(len, *lens);
        assert_int_equal(append_end, lens[1] == 0);
    }
    assert_false(marks_next(&r, &len, &append_end));
    assert_false(r.failed);
    assert_true(marks_valid(batch.marks, batch.body.len));
    message_finish(&batch);
}

/* One level of array is flattened; each message keeps its bytes and gets a comma. */
static void test_flatten(void **state)
{
    (void)state;
    expect_json("{\"a\":1}", "{\"a\":1},", (const unsigned[]){8, 0});
    expect_json(" [1, 2 ,\n3 ] ", "1,2,3,", (const unsigned[]){2, 2, 2, 0});
    expect_json("[[1,2],[3,4],[],[[1]]]", "[1,2],[3,4],[],[[1]],",
                (const unsigned[]){6, 6, 3, 6, 0});
    expect_json("[null,false,0,\"\"]", "null,false,0,\"\",", (const unsigned[]){5, 6, 2, 3, 0});
    expect_json("null", "null,", (const unsigned[]){5, 0});
}

/* Numbers, duplicate keys and escapes come through as sent. */
static void test_bytes_kept(void **state)
{
    (void)state;
    const char *text = "{\"a\":12345678901234567890,\"a\":1.0,\"b\":\"\\/\\ud800\"}";
    char stored[128];
    int len = snprintf(stored, sizeof(stored), "%s,", text);
    expect_json(text, stored, (const unsigned[]){(unsigned)len, 0});
}

static int prepare(bool json, const char *body, bool empty_ok)
{
    struct message_batch batch;
    struct errmsg msg = {{0}};
    int code = message_prepare(&batch, json, slice_of(body), NULL, empty_ok, &msg);
    if (code == 0) {
        assert_int_equal(batch.body.len, 0);
        assert_int_equal(batch.marks.len, 0);
    } else {
        assert_true(strlen(msg.text) > 0);
    }
    message_finish(&batch);
    return code;
}

/* An append must hold a message; a creation need not (PROTOCOL.md 9.1.3). */
static void test_empty(void **state)
{
    (void)state;
    assert_int_equal(prepare(true, "[]", false), ERR_INVALID);
    assert_int_equal(prepare(true, " [ ] ", false), ERR_INVALID);
    assert_int_equal(prepare(true, "", false), ERR_INVALID);
    assert_int_equal(prepare(true, "[]", true), 0);
    assert_int_equal(prepare(true, " \n", true), 0);
    assert_int_equal(prepare(false, "", true), 0);
}

/* What is not JSON is refused with a sentence, also when it shows late. */
static void test_invalid(void **state)
{
    (void)state;
    assert_int_equal(prepare(true, "{", false), ERR_INVALID);
    assert_int_equal(prepare(true, "[1,2,]", false), ERR_INVALID);
    assert_int_equal(prepare(true, "1 2", false), ERR_INVALID);
    assert_int_equal(prepare(true, "\xef\xbb\xbf{}", false), ERR_INVALID);
}

/* Other bodies are kept as they are, as one message; their block is referenced. */
static void test_bytes(void **state)
{
    (void)state;
    struct block *b = block_try_create(300);
    memset(b->data, 'x', 300);
    struct message_batch batch;
    struct slice body = {b->data, 300};
    assert_int_equal(message_prepare(&batch, false, body, b, false, NULL), 0);
    assert_ptr_equal(batch.body.ptr, b->data);
    assert_ptr_equal(batch.block, b);
    assert_int_equal(b->refs, 2);
    assert_true(marks_valid(batch.marks, 300));
    message_finish(&batch);
    assert_int_equal(b->refs, 1);
    block_unref(b);
}

/* A hundred thousand small elements are no more than linear work and bounded memory. */
static void test_many(void **state)
{
    (void)state;
    const size_t count = 100000;
    char *body = malloc(2 * count + 1);
    body[0] = '[';
    for (size_t i = 0; i < count; i++) {
        body[1 + 2 * i] = '7';
        body[2 + 2 * i] = i + 1 < count ? ',' : ']';
    }
    struct message_batch batch;
    struct slice text = {body, 2 * count + 1};
    assert_int_equal(message_prepare(&batch, true, text, NULL, false, NULL), 0);
    assert_int_equal(batch.body.len, 2 * count);
    assert_int_equal(batch.marks.len, count);
    message_finish(&batch);
    free(body);
}

/* What is mostly white space leaves no large block behind, and marks are cut into runs. */
static void test_loose(void **state)
{
    (void)state;
    const size_t count = 200000;
    const size_t step = 8;
    char *body = malloc(step * count);
    memset(body, ' ', step * count);
    for (size_t i = 0; i < count; i++) {
        body[step * i] = i == 0 ? '[' : ',';
        body[step * i + 1] = '7';
    }
    body[step * count - 1] = ']';
    struct message_batch batch;
    struct slice text = {body, step * count};
    assert_int_equal(message_prepare(&batch, true, text, NULL, false, NULL), 0);
    free(body);
    assert_int_equal(batch.body.len, 2 * count);
    assert_true(marks_valid(batch.marks, 2 * count));
    struct tail_body stored = message_body(&batch);
    assert_non_null(stored.block);
    assert_int_equal(stored.block->cap, 2 * count);
    assert_int_equal(stored.run_count, 4);
    size_t len = 0;
    for (size_t i = 0; i < stored.run_count; i++) {
        len += stored.runs[i].len;
    }
    assert_int_equal(len, 2 * count);
    message_finish(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flatten), cmocka_unit_test(test_bytes_kept),
        cmocka_unit_test(test_empty),   cmocka_unit_test(test_invalid),
        cmocka_unit_test(test_bytes),   cmocka_unit_test(test_many),
        cmocka_unit_test(test_loose),
    };
    return UNIT_RUN(tests);
}
