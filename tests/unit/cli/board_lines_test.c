/* What lines are made of changes, and what becomes of those that nobody has read yet. */
#include "unit/base/fault.h"

#include "base/buf.c"
#include "base/map.c"
#include "cli/board_lines.c"

#include "unit/base/unit.h"
#include "unit/cli/board_text.h"

#include <stdio.h>

static void put(struct board_lines *lines, const char *id, const char *title, bool gone)
{
    struct t3_board_row row = row_of("mac", id, title, "running", "t", "said");

    assert_int_equal(board_lines_row(lines, &row, gone), 0);
}

/* All that waits, or the first `most` lines of it. */
static const char *taken(struct board_lines *lines, int most)
{
    static char memory[4096];
    struct buf out;

    buf_init_fixed(&out, memory, sizeof(memory));
    while (most-- > 0 && board_lines_take(lines, &out)) {
    }
    assert_false(out.failed);
    memory[out.len] = '\0';
    return memory;
}

static void plain(void **state)
{
    struct t3_watch_host host = {.label = "mac", .url = "u", .state = T3_READER_LIVE};
    struct t3_board_row row = row_of("m\302\233c", "t", "\033[31m\u202ered", NULL, NULL, "a\nb");
    struct board_lines lines;

    (void)state;
    board_lines_init(&lines, BOARD_PLAIN, 1);
    put(&lines, "1", "One", false);
    assert_int_equal(board_lines_host(&lines, &host), 0);
    assert_string_equal(taken(&lines, 9), "mac  running  One \u2014 said\n");
    put(&lines, "1", "One", true);
    assert_string_equal(taken(&lines, 9), "mac  gone  One\n");
    assert_int_equal(board_lines_row(&lines, &row, false), 0);
    assert_string_equal(taken(&lines, 9), "m?c  unknown  ?[31mred \u2014 a b\n");
    row.title = text_of("");
    row.last_message_snippet = text_of(NULL);
    assert_int_equal(board_lines_row(&lines, &row, false), 0);
    assert_string_equal(taken(&lines, 9), "m?c  unknown  (no title)\n");
    board_lines_finish(&lines);
}

/* Who asks somebody something says so in the place of its state; in JSON beside it. What is gone
 * asks nothing. */
static void asks(void **state)
{
    struct t3_board_row row = asking(row_of("mac", "1", "One", "running", NULL, NULL));
    char memory[1024];
    struct buf out;

    (void)state;
    buf_init_fixed(&out, memory, sizeof(memory));
    board_lines_format_row(&out, BOARD_PLAIN, &row, false);
    board_lines_format_dated(&out, BOARD_PLAIN, &row);
    board_lines_format_row(&out, BOARD_PLAIN, &row, true);
    board_lines_format_row(&out, BOARD_JSON, &row, false);
    board_lines_format_row(&out, BOARD_JSON, &row, true);
    memory[out.len] = '\0';
    assert_string_equal(
        memory, "mac  asks you  One\nmac  asks you  -  One\nmac  gone  One\n"
                "{\"type\":\"row\",\"row\":{\"thread_id\":\"1\",\"title\":\"One\",\"state\":"
                "\"running\",\"last_turn_at\":null,\"last_message_snippet\":null,"
                "\"host\":\"mac\",\"asks\":true}}\n"
                "{\"type\":\"gone\",\"thread_id\":\"1\",\"host\":\"mac\"}\n");
}

/* Rows that are listed have their time; JSON has it anyway. */
static void dated(void **state)
{
    struct t3_board_row row = row_of("mac", "1", "One", "idle", "2026-11-05T10:00:00Z", "said");
    char memory[1024];
    struct buf out;

    (void)state;
    buf_init_fixed(&out, memory, sizeof(memory));
    board_lines_format_dated(&out, BOARD_PLAIN, &row);
    row.last_turn_at = text_of(NULL);
    board_lines_format_dated(&out, BOARD_PLAIN, &row);
    memory[out.len] = '\0';
    assert_string_equal(memory, "mac  idle  2026-11-05T10:00:00Z  One \u2014 said\n"
                                "mac  idle  -  One \u2014 said\n");
    buf_clear(&out);
    board_lines_format_dated(&out, BOARD_JSON, &row);
    memory[out.len] = '\0';
    assert_non_null(strstr(memory, "{\"type\":\"row\",\"row\":{"));
    assert_non_null(strstr(memory, "\"last_turn_at\":null"));
}

static void json(void **state)
{
    struct t3_watch_host host = {.label = "mac", .url = "u", .state = T3_READER_CATCHING_UP};
    struct board_lines lines;

    (void)state;
    board_lines_init(&lines, BOARD_JSON, 1);
    put(&lines, "1", NULL, false);
    assert_int_equal(board_lines_host(&lines, &host), 0);
    assert_string_equal(taken(&lines, 9),
                        "{\"type\":\"row\",\"row\":{\"thread_id\":\"1\",\"title\":null,\"state\":"
                        "\"running\",\"last_turn_at\":\"t\",\"last_message_snippet\":\"said\","
                        "\"host\":\"mac\"}}\n{\"type\":\"host\",\"host\":\"mac\",\"state\":"
                        "\"catching up\",\"full\":false,\"error\":null}\n");
    put(&lines, "1", NULL, true);
    host.state = T3_READER_REFUSED;
    host.full = true;
    host.error = (struct t3_rpc_error){.code = T3_RPC_ERROR_AUTH, .message = "\"no\""};
    assert_int_equal(board_lines_host(&lines, &host), 0);
    assert_string_equal(taken(&lines, 9),
                        "{\"type\":\"gone\",\"thread_id\":\"1\",\"host\":\"mac\"}\n"
                        "{\"type\":\"host\",\"host\":\"mac\",\"state\":\"refused\",\"full\":"
                        "true,\"error\":"
                        "{\"code\":\"AUTH\",\"message\":\"\\\"no\\\"\"}}\n");
    board_lines_finish(&lines);
}

/* Of what changes again only the newest waits, in the place of the first. */
static void newest(void **state)
{
    struct board_lines lines;

    (void)state;
    board_lines_init(&lines, BOARD_PLAIN, 1);
    put(&lines, "1", "a", false);
    put(&lines, "2", "b", false);
    put(&lines, "1", "c", false);
    assert_string_equal(taken(&lines, 1), "mac  running  c \u2014 said\n");
    put(&lines, "1", "d", false);
    put(&lines, "2", "e", false);
    assert_string_equal(taken(&lines, 9),
                        "mac  running  e \u2014 said\nmac  running  d \u2014 said\n");
    assert_string_equal(taken(&lines, 9), "");
    board_lines_finish(&lines);
}

/* What comes and goes unseen was never there; what was seen is told to be gone, unless it is
 * back. */
static void gone(void **state)
{
    struct board_lines lines;

    (void)state;
    board_lines_init(&lines, BOARD_PLAIN, 1);
    put(&lines, "1", "a", true);
    put(&lines, "2", "b", false);
    put(&lines, "2", "b", true);
    assert_string_equal(taken(&lines, 9), "");
    put(&lines, "3", "c", false);
    (void)taken(&lines, 9);
    put(&lines, "3", "c", true);
    put(&lines, "3", "again", false);
    assert_string_equal(taken(&lines, 9), "mac  running  again \u2014 said\n");
    put(&lines, "3", "again", true);
    put(&lines, "3", "again", true);
    assert_string_equal(taken(&lines, 9), "mac  gone  again\n");
    put(&lines, "3", "new", false);
    assert_string_equal(taken(&lines, 9), "mac  running  new \u2014 said\n");
    board_lines_finish(&lines);
}

/* That a host is live comes behind its rows, however often it was something else meanwhile. */
static void hosts_come_last(void **state)
{
    struct t3_watch_host host = {.label = "mac", .url = "u", .state = T3_READER_LIVE};
    struct board_lines lines;

    (void)state;
    board_lines_init(&lines, BOARD_JSON, 1);
    assert_int_equal(board_lines_host(&lines, &host), 0);
    put(&lines, "1", "a", false);
    assert_int_equal(board_lines_host(&lines, &host), 0);
    assert_non_null(strstr(taken(&lines, 1), "\"row\""));
    assert_non_null(strstr(taken(&lines, 1), "\"live\""));
    assert_string_equal(taken(&lines, 1), "");
    board_lines_finish(&lines);
}

/* However much changes, no more waits than there are rows. */
static void bounded(void **state)
{
    struct board_lines lines;
    char id[16];

    (void)state;
    board_lines_init(&lines, BOARD_PLAIN, 1);
    for (int i = 0; i < 10; i++) {
        (void)snprintf(id, sizeof(id), "%d", i);
        put(&lines, id, "a", false);
    }
    (void)taken(&lines, 10);
    for (int i = 0; i < 10000; i++) {
        (void)snprintf(id, sizeof(id), "%d", i);
        put(&lines, id, "b", false);
        put(&lines, id, "b", true);
    }
    assert_int_equal(lines.map.count, 10);
    (void)taken(&lines, 10);
    assert_int_equal(lines.map.count, 0);
    board_lines_finish(&lines);
}

/* What finds no memory may be said again, and is told once. */
static void no_memory(void **state)
{
    const struct t3_watch_host host = {.label = "mac", .url = "u", .state = T3_READER_LIVE};
    struct t3_board_row row = row_of("mac", "1", "One", "running", "t", "said");
    int code = ERR_NOMEM;

    (void)state;
    for (long i = 0; code != 0; i++) {
        struct board_lines lines;

        board_lines_init(&lines, BOARD_JSON, 1);
        fault_countdown = i;
        code = board_lines_host(&lines, &host);
        code = board_lines_row(&lines, &row, false) != 0 ? ERR_NOMEM : code;
        fault_countdown = -1;
        assert_true(code == 0 ? i > 5 : code == ERR_NOMEM);
        assert_int_equal(board_lines_row(&lines, &row, false), 0);
        assert_int_equal(board_lines_host(&lines, &host), 0);
        assert_true(*taken(&lines, 1) != '\0');
        assert_true(*taken(&lines, 1) != '\0');
        assert_string_equal(taken(&lines, 1), "");
        board_lines_finish(&lines);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain),           cmocka_unit_test(dated),     cmocka_unit_test(json),
        cmocka_unit_test(newest),          cmocka_unit_test(gone),      cmocka_unit_test(bounded),
        cmocka_unit_test(hosts_come_last), cmocka_unit_test(no_memory), cmocka_unit_test(asks),
    };

    return UNIT_RUN(tests);
}
