/* Words for places on the board: what is written is read back, and nothing else is taken. */
#include "unit/base/unit.h"
#include "app/board_cursor.c"

#include <string.h>

/* What is written is read back. */
static void test_cursor(void **context)
{
    (void)context;
    const struct board_cursor cursors[] = {
        {0, 0}, {1, 2}, {UINT64_MAX, UINT64_MAX}, {UINT64_C(0x9f2c61d05be8a347), 12}};
    char text[BOARD_CURSOR_BYTES];

    for (size_t i = 0; i < ARRAY_COUNT(cursors); i++) {
        struct board_cursor back;

        board_cursor_format(&cursors[i], text);
        assert_true(board_cursor_parse(slice_of(text), &back));
        assert_int_equal(back.epoch, cursors[i].epoch);
        assert_int_equal(back.number, cursors[i].number);
    }
    assert_string_equal(text, "9f2c61d05be8a347-12");
}

/* Nothing else is a cursor. */
static void test_no_cursor(void **context)
{
    (void)context;
    static const char *const texts[] = {
        "",
        "-",
        "x",
        "9f2c61d05be8a347",
        "9f2c61d05be8a347-",
        "9f2c61d05be8a347-x",
        "9f2c61d05be8a347--1",
        "9f2c61d05be8a347-01",
        "9F2C61D05BE8A347-1",
        "9f2c61d05be8a34-1",
        "9f2c61d05be8a3477-1",
        "9f2c61d05be8a34g-1",
        "9f2c61d05be8a347-18446744073709551616",
        " 9f2c61d05be8a347-1",
        "9f2c61d05be8a347-1 ",
    };

    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        struct board_cursor cursor;

        assert_false(board_cursor_parse(slice_of(texts[i]), &cursor));
    }
}

static void check_place(const struct board_place *place)
{
    char memory[BOARD_PLACE_BYTES_MAX];
    struct board_place back;
    struct buf text;

    buf_init(&text, 4096);
    board_place_format(place, &text);
    assert_false(text.failed);
    assert_true(board_place_parse(buf_slice(&text), memory, &back));
    assert_int_equal(t3_instant_compare(&back.active, &place->active), 0);
    assert_true(slice_equal(back.host, place->host));
    assert_true(slice_equal(back.thread_id, place->thread_id));
    for (size_t i = 0; i < text.len; i++) {
        /* None that is cut is taken for another, and none is read beyond its end. */
        struct slice cut = {text.ptr, i};

        if (board_place_parse(cut, memory, &back)) {
            assert_true(back.thread_id.len < place->thread_id.len);
        }
    }
    buf_finish(&text);
}

/* Places too, the longest, and those with bytes that mean something here. */
static void test_place(void **context)
{
    (void)context;
    char host[T3_HOST_BYTES_MAX];
    char id[T3_ID_BYTES_MAX];
    struct board_place place = {.host = SLICE("mac"), .thread_id = SLICE("t-1")};

    check_place(&place);
    place.active = t3_instant_read(SLICE("\"9999-12-31T23:59:59.999999999999Z\""));
    assert_true(place.active.len > 0);
    check_place(&place);
    place.host = SLICE("a b");
    place.thread_id = SLICE(" \0 9");
    check_place(&place);
    memset(host, 'h', sizeof(host));
    memset(id, 'i', sizeof(id));
    place.host = (struct slice){host, sizeof(host)};
    place.thread_id = (struct slice){id, sizeof(id)};
    check_place(&place);
}

/* Nothing else is a place. */
static void test_no_place(void **context)
{
    (void)context;
    static const char *const plain[] = {
        "",
        "x",
        "- 0 ",
        "- 0 4 mac",
        "- 1 3 mact",
        "1 2",
        "1 1000000000 1 mt",
        "-1 0 1 mt",
        "253402300800000 0 1 mt",
        "1 0 256 mt",
        "1 0 x mt",
        "1 0 01 mt",
    };
    char memory[BOARD_PLACE_BYTES_MAX];
    char text[BASE64_LEN(64)];
    char long_text[2 * BOARD_PLACE_BYTES_MAX];
    struct board_place place;

    for (size_t i = 0; i < ARRAY_COUNT(plain); i++) {
        size_t len = base64url_encode(text, slice_of(plain[i]));

        assert_false(board_place_parse((struct slice){text, len}, memory, &place));
    }
    assert_false(board_place_parse(SLICE("no base64!"), memory, &place));
    memset(long_text, 'A', sizeof(long_text));
    assert_false(board_place_parse((struct slice){long_text, sizeof(long_text)}, memory, &place));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cursor),
        cmocka_unit_test(test_no_cursor),
        cmocka_unit_test(test_place),
        cmocka_unit_test(test_no_place),
    };

    return UNIT_RUN(tests);
}
