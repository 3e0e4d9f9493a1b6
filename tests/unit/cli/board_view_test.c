/* What the screen shows of a board, held against screens as they should be; and of any board at
 * all, that every line is exactly as wide as the screen. */
#include "cli/board_view.c"

#include "base/date.h"
#include "unit/base/unit.h"
#include "unit/cli/board_text.h"

#include <stdio.h>

#define AT(time) "2026-11-05T" time ":00.000Z"

static struct t3_watch_host mac = {
    .label = "mac", .url = "wss://mac.example", .state = T3_READER_LIVE};
static struct t3_watch_host box = {
    .label = "box", .url = "wss://box.example", .state = T3_READER_LIVE};

static int64_t now_ms(void)
{
    int64_t ms = 0;

    assert_true(date_parse_rfc3339(SLICE(AT("12:00")), &ms));
    return ms;
}

static void put(struct board_view *view, struct t3_board_row row)
{
    assert_int_equal(board_rows_change(&view->rows, &row, false), 0);
}

/* A view of two hosts, both live, with some threads. */
static void make(struct board_view *view)
{
    mac.state = T3_READER_LIVE;
    box.state = T3_READER_LIVE;
    mac.skipped = 0;
    board_view_init(view, 1);
    assert_int_equal(board_view_add_host(view, &mac), 0);
    assert_int_equal(board_view_add_host(view, &box), 0);
}

/* One of the first of them alone. */
static void make_alone(struct board_view *view)
{
    mac.state = T3_READER_LIVE;
    mac.skipped = 0;
    board_view_init(view, 1);
    assert_int_equal(board_view_add_host(view, &mac), 0);
}

static void make_with_rows(struct board_view *view)
{
    make(view);
    put(view, row_of("mac", "1", "Fix the login", "failed", AT("11:57"), "Which of the two?"));
    put(view, row_of("box", "2", "Refactor the store of records by next week", "running",
                     AT("11:59"), "I am looking at the store now, and at all that depends on it"));
    put(view, row_of("mac", "3", "Docs", "running", AT("10:00"), NULL));
    put(view, row_of("box", "4", NULL, "idle", NULL, NULL));
}

static void type(struct board_view *view, const char *keys)
{
    struct slice rest = slice_of(keys);
    struct keypress key;

    while (rest.len > 0) {
        size_t len = keypress_take(rest, true, &key);

        (void)board_view_key(view, &key);
        rest = (struct slice){rest.ptr + len, rest.len - len};
    }
}

/* Rows of a screen of that size, each with a line end, without the empty ones at the end. */
static const char *screen(struct board_view *view, int columns, int rows)
{
    static char memory[16384];
    struct cells cells = {.list = NULL};
    struct buf out;

    assert_int_equal(cells_make(&cells, columns, rows), 0);
    board_view_draw(view, &cells, now_ms());
    buf_init_fixed(&out, memory, sizeof(memory));
    for (int row = 0; row < rows; row++) {
        cells_row_text(&cells, row, &out);
        buf_append_char(&out, '\n');
    }
    memory[out.len] = '\0';
    cells_finish(&cells);
    return memory;
}

#define FOOT_WIDE  "q quit  j/k select  Enter show  / filter  g by host  r retry  ? help\n"
#define FOOT_STATE "q quit  / filter  g by host  r retry  ? help\n"
#define FOOT_HOST  "q quit  / filter  g by state  r retry  ? help\n"

/* By state, what runs first; title, host, age and snippet. */
static void by_state(void **state)
{
    struct board_view view;

    (void)state;
    make_with_rows(&view);
    assert_string_equal(
        screen(&view, 80, 11),
        "Threads by state                                  4 threads, 2 running, 1 failed\n"
        "mac live  box live\n"
        "running 2\n"
        "  Refactor the store of re\u2026  box     1m  I am looking at the store now, and "
        "at\u2026\n"
        "  Docs                       mac     2h\n"
        "failed 1\n"
        "  Fix the login              mac     3m  Which of the two?\n"
        "idle 1\n"
        "  (no title)                 box\n"
        "\n" FOOT_WIDE);
    board_view_finish(&view);
}

/* Who asks somebody something stands first, in a colour of its own, and is counted; by host it says
 * so in the place of its state; shown whole, its state as well. */
static void asks(void **state)
{
    struct cells cells = {.list = NULL};
    struct board_view view;

    (void)state;
    make_with_rows(&view);
    put(&view, asking(row_of("mac", "3", "Docs", "running", AT("10:00"), NULL)));
    assert_string_equal(
        screen(&view, 60, 9),
        "Threads by state  4 threads, 1 asks you, 1 running, 1 failed\n"
        "mac live  box live\n"
        "asks you 1\n"
        "  Docs                                            mac     2h\n"
        "running 1\n"
        "  Refactor the store of records by next week      box     1m\n"
        "failed 1\n"
        "  Fix the login                                   mac     3m\n" FOOT_STATE);
    assert_int_equal(cells_make(&cells, 60, 9), 0);
    board_view_draw(&view, &cells, now_ms());
    assert_int_equal(cells_at(&cells, 2, 0)->style, CELL_BOLD | CELL_YELLOW);
    cells_finish(&cells);
    put(&view, asking(row_of("box", "4", NULL, "idle", NULL, NULL)));
    assert_non_null(strstr(screen(&view, 80, 9), " 4 threads, 2 ask you, 1 running, 1 failed\n"));
    type(&view, "g");
    assert_non_null(strstr(screen(&view, 60, 9),
                           "\n  Docs                                     asks you       2h\n"));
    assert_non_null(strstr(screen(&view, 30, 6), "\n  Docs                  asks\n"));
    type(&view, "gj\r");
    assert_non_null(strstr(screen(&view, 60, 12), "\nstate    asks you (running)\n"));
    board_view_finish(&view);
}

/* By host, with the state in the place of the host. */
static void by_host(void **state)
{
    struct board_view view;

    (void)state;
    make_with_rows(&view);
    type(&view, "g");
    assert_string_equal(screen(&view, 60, 9),
                        "Threads by host               4 threads, 2 running, 1 failed\n"
                        "mac live  box live\n"
                        "mac: 2 threads\n"
                        "  Fix the login                            failed         3m\n"
                        "  Docs                                     running        2h\n"
                        "box: 2 threads\n"
                        "  Refactor the store of records by next\u2026   running        1m\n"
                        "  (no title)                               idle\n" FOOT_HOST);
    type(&view, "g");
    assert_non_null(strstr(screen(&view, 60, 9), "by state"));
    board_view_finish(&view);
}

/* What is narrower shows less; one line shows a row. */
static void small_screens(void **state)
{
    struct board_view view;

    (void)state;
    make_with_rows(&view);
    assert_string_equal(screen(&view, 30, 5), "4 threads, 2 running, 1 failed\n"
                                              "mac live  box live\n"
                                              "running 2\n"
                                              "  Refactor the store of\u2026  box\n"
                                              "q quit  / filter  ? help\n");
    assert_string_equal(screen(&view, 40, 3), "running 2\n"
                                              "  Refactor the store of rec\u2026  box     1m\n"
                                              "q quit  / filter  g by host  ? help\n");
    assert_string_equal(screen(&view, 19, 3),
                        "running 2\nRefactor the\u2026  box\nq quit  ? help\n");
    assert_string_equal(screen(&view, 15, 3), "running 2\nRefactor the s\u2026\nq quit  ? help\n");
    type(&view, "g");
    assert_string_equal(screen(&view, 30, 6), "4 threads, 2 running, 1 failed\n"
                                              "mac live  box live\n"
                                              "mac: 2 threads\n"
                                              "  Fix the login         failed\n"
                                              "  Docs                  run\n"
                                              "q quit  / filter  ? help\n");
    type(&view, "g");
    assert_string_equal(screen(&view, 10, 2), "Refactor\u2026\nq quit  ?\u2026\n");
    assert_string_equal(screen(&view, 5, 1), "Refa\u2026\n");
    assert_string_equal(screen(&view, 1, 1), "\u2026\n");
    board_view_finish(&view);
}

/* How the hosts stand: why one is lost or refused, and what can be done. */
static void hosts(void **state)
{
    struct board_view view;

    (void)state;
    make(&view);
    mac.state = T3_READER_CONNECTING;
    box.state = T3_READER_CATCHING_UP;
    assert_string_equal(screen(&view, 60, 6),
                        "Threads by state                                   0 threads\n"
                        "mac connecting  box catching up\n"
                        "Nothing yet: waiting for what the hosts tell.\n"
                        "\n\n" FOOT_STATE);
    mac.state = T3_READER_LOST;
    mac.error = (struct t3_rpc_error){.code = T3_RPC_ERROR_NETWORK, .message = "it broke"};
    box.state = T3_READER_REFUSED;
    box.error = (struct t3_rpc_error){
        .code = T3_RPC_ERROR_AUTH, .status = 401, .message = "the token is wrong"};
    assert_string_equal(screen(&view, 60, 13),
                        "Threads by state                                   0 threads\n"
                        "mac lost: it broke; trying again\n"
                        "box refused: the token is wrong; sign in with: arbe t3 login\n"
                        "wss://box.example --host box; then r tries again\n"
                        "There is no host to read from.\n"
                        "\n\n\n\n\n\n\n" FOOT_STATE);
    mac.state = T3_READER_LIVE;
    mac.skipped = 1;
    box.error = (struct t3_rpc_error){.code = T3_RPC_ERROR_VERSION, .message = "too old"};
    assert_non_null(strstr(screen(&view, 90, 13), "\nbox refused: too old; then r tries again\n"
                                                  "mac live; 1 broken item left out\n"
                                                  "No threads yet.\n"));
    board_view_finish(&view);
}

/* Of more hosts than there is room for, the last line says how many there are, and how they
 * stand. */
static void many_hosts(void **state)
{
    static struct t3_watch_host many[16];
    static char labels[16][8];
    struct board_view view;

    (void)state;
    board_view_init(&view, 1);
    for (size_t i = 0; i < ARRAY_COUNT(many); i++) {
        (void)snprintf(labels[i], sizeof(labels[i]), "h%zu", i);
        many[i] = (struct t3_watch_host){
            .label = labels[i],
            .url = "u",
            .state = i < 12 ? T3_READER_LOST : T3_READER_LIVE,
            .error = {.code = T3_RPC_ERROR_NETWORK, .message = "it broke"},
        };
        assert_int_equal(board_view_add_host(&view, &many[i]), 0);
    }
    assert_string_equal(screen(&view, 60, 10),
                        "Threads by state                                   0 threads\n"
                        "h0 lost: it broke; trying again\n"
                        "h1 lost: it broke; trying again\n"
                        "and 14 more: 10 lost, 4 live\n"
                        "No threads yet.\n\n\n\n\n" FOOT_STATE);
    assert_non_null(strstr(screen(&view, 60, 5), "\n16 hosts: 12 lost, 4 live\n"));
    assert_non_null(strstr(screen(&view, 60, 50), "h11 lost: it broke; trying again\n"
                                                  "h12 live  h13 live  h14 live  h15 live\n"));
    many[0].state = T3_READER_REFUSED;
    assert_non_null(strstr(screen(&view, 60, 5), "\n16 hosts: 1 refused, 11 lost, 4 live\n"));
    for (size_t i = 0; i < ARRAY_COUNT(many); i++) {
        many[i].state = i == 3 ? T3_READER_CONNECTING : T3_READER_LIVE;
        many[i].error = (struct t3_rpc_error){.code = T3_RPC_OK};
    }
    assert_non_null(strstr(screen(&view, 40, 12), "\nh0 live  h1 live  h2 live  h3 connecting\n"
                                                  "and 12 more: 12 live\n"
                                                  "Nothing yet"));
    assert_non_null(strstr(screen(&view, 40, 5), "\n16 hosts: 1 connecting, 15 live\n"));
    board_view_finish(&view);
}

/* A board of one host does not say whose its rows are where room is scarce, but when they were. */
static void one_host(void **state)
{
    struct board_view view;

    (void)state;
    make_alone(&view);
    put(&view, row_of("mac", "1", "Fix the login", "failed", AT("11:57"), NULL));
    assert_string_equal(screen(&view, 30, 3),
                        "failed 1\n  Fix the login             3m\nq quit  / filter  ? help\n");
    assert_non_null(strstr(screen(&view, 60, 6), "1 thread, 1 failed\n"));
    board_view_finish(&view);
}

/* The filter works while it is typed; Enter keeps it, Esc clears it. */
static void filter(void **state)
{
    struct board_view view;

    (void)state;
    make_with_rows(&view);
    type(&view, "/stOr");
    assert_string_equal(screen(&view, 60, 6),
                        "Threads by state                   1 of 4 threads, 1 running\n"
                        "mac live  box live\n"
                        "running 1\n"
                        "  Refactor the store of records by next week      box     1m\n"
                        "\n"
                        "/stOr                          Enter keeps it, Esc clears it\n");
    type(&view, "qg");
    assert_non_null(strstr(screen(&view, 60, 6), "\nNothing matches \"stOrqg\": Esc shows all.\n"));
    type(&view, "\177\177\r");
    assert_non_null(strstr(screen(&view, 60, 6), "\n/stOr  Esc clear  q quit"));
    type(&view, "/\027doc");
    assert_non_null(strstr(screen(&view, 60, 6), "\nrunning 1\n  Docs "));
    type(&view, "\033");
    assert_non_null(strstr(screen(&view, 60, 6), "running 2\n"));
    type(&view, "/x\025\177");
    assert_int_equal(view.mode, BOARD_VIEW_LIST);
    board_view_finish(&view);
}

/* The list follows whoever is selected, and its first line always says which group one sees. */
static void scrolling(void **state)
{
    struct board_view view;
    char id[16];
    char time[40];

    (void)state;
    make_alone(&view);
    for (int i = 10; i < 40; i++) {
        (void)snprintf(id, sizeof(id), "t%d", i);
        (void)snprintf(time, sizeof(time), "2026-11-05T10:%02d:00Z", 59 - i);
        put(&view, row_of("mac", id, id, i < 25 ? "running" : "idle", time, NULL));
    }
    assert_string_equal(screen(&view, 20, 7), "30 threads, 15 runn\u2026\nmac live\nrunning 15\n"
                                              "  t10\n  t11\n  t12\nq quit  ? help\n");
    type(&view, "jjjj");
    assert_string_equal(screen(&view, 20, 7), "30 threads, 15 runn\u2026\nmac live\nrunning 15\n"
                                              "  t11\n  t12\n> t13\nq quit  ? help  4/30\n");
    type(&view, "\033[F");
    assert_non_null(strstr(screen(&view, 20, 7), "\nidle 15\n  t37\n  t38\n> t39\n"));
    type(&view, "kkG");
    assert_non_null(strstr(screen(&view, 20, 7), "\n> t39\n"));
    type(&view, "\033[5~");
    assert_non_null(strstr(screen(&view, 20, 7), "\nidle 15\n> t37\n  t38\n  t39\n"));
    type(&view, "\033[H");
    assert_non_null(strstr(screen(&view, 20, 7), "\nrunning 15\n> t10\n"));
    type(&view, "\033[6~\033[6~k");
    assert_non_null(strstr(screen(&view, 20, 7), "\nrunning 15\n  t11\n  t12\n> t13\n"));
    type(&view, "\033");
    assert_non_null(strstr(screen(&view, 20, 7), "\nrunning 15\n  t10\n"));
    for (int i = 0; i < 15; i++) {
        type(&view, "j");
    }
    assert_non_null(strstr(screen(&view, 20, 7), "\nrunning 15\n  t22\n  t23\n> t24\n"));
    type(&view, "j");
    assert_non_null(strstr(screen(&view, 20, 7), "  t24\nidle 15\n> t25\n"));
    assert_string_equal(screen(&view, 20, 1), "> t25\n");
    board_view_finish(&view);
}

/* Help and details stand in the place of the list until a key is typed. */
static void overlays(void **state)
{
    struct board_view view;

    (void)state;
    make_with_rows(&view);
    type(&view, "?");
    assert_string_equal(screen(&view, 40, 13), "4 threads, 2 running, 1 failed\n"
                                               "mac live  box live\n"
                                               "q            quits\n"
                                               "j k, arrows  select a row\n"
                                               "Enter        shows all of that row\n"
                                               "/            filters; -word leaves out\n"
                                               "Esc          clears filter or selection\n"
                                               "g            groups by host or by state\n"
                                               "r            retries lost, refused hosts\n"
                                               "PgUp PgDn    page; also Ctrl-B/F, Space\n"
                                               "Home End     first and last row; also G\n"
                                               "Ctrl-L       paints the screen anew\n"
                                               "any key goes back\n");
    type(&view, "q");
    assert_int_equal(view.mode, BOARD_VIEW_LIST);
    type(&view, "\r");
    assert_int_equal(view.mode, BOARD_VIEW_LIST);
    type(&view, "j\r");
    assert_string_equal(screen(&view, 50, 12),
                        "Threads by state    4 threads, 2 running, 1 failed\n"
                        "mac live  box live\n"
                        "title    Refactor the store of records by next\n"
                        "         week\n"
                        "host     box\n"
                        "state    running\n"
                        "active   2026-11-05T11:59:00.000Z (1m ago)\n"
                        "thread   2\n"
                        "message  I am looking at the store now, and at all\n"
                        "         that depends on it\n"
                        "\n"
                        "any key goes back\n");
    type(&view, "x");
    assert_int_equal(view.mode, BOARD_VIEW_LIST);
    board_view_finish(&view);
}

static void ages(void **state)
{
    static const struct {
        int64_t ago_ms;
        const char *text;
    } cases[] = {
        {0, "now"},          {59999, "now"},    {60000, "1m"},    {3599999, "59m"},
        {3600000, "1h"},     {86399999, "23h"}, {86400000, "1d"}, {31535999999, "364d"},
        {31536000000, "1y"}, {-5000, "now"},
    };
    char text[BOARD_AGE_BYTES];

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        board_view_age(text, 100000000000 - cases[i].ago_ms, 100000000000);
        assert_string_equal(text, cases[i].text);
    }
    board_view_age(text, -1, 5);
    assert_string_equal(text, "");
    board_view_age(text, 0, DATE_MS_MAX);
    assert_true(strlen(text) <= 5);
}

static uint32_t below(uint32_t *seed, uint32_t n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}

/* A text of pieces that are wide, combining, broken, or to be obeyed. */
static const char *odd_text(char out[static 200], uint32_t *seed)
{
    static const char *const pieces[] = {
        "a",        "word ",        "\u4f60\u597d", "e\u0301", "\U0001f469\u200d\U0001f4bb",
        "\033[31m", "\u202e",       "\302\233",     "\377",    "\t",
        "\u0301",   "\u2764\ufe0f",
    };
    size_t used = 0;

    out[0] = '\0';
    for (uint32_t i = below(seed, 12); i > 0; i--) {
        used += (size_t)snprintf(out + used, 200 - used, "%s",
                                 pieces[below(seed, ARRAY_COUNT(pieces))]);
    }
    return out;
}

/* Each line is as wide as the screen, and nothing in it would be obeyed. */
static void assert_sound(const struct cells *cells)
{
    for (int row = 0; row < cells->rows; row++) {
        int width = 0;

        for (int column = 0; column < cells->columns; column++) {
            const struct cell *cell = cells_at(cells, row, column);

            assert_true(cell->width <= 2 && cell->len <= CELL_BYTES);
            assert_true(cell->width > 0 || (column > 0 && cell[-1].width == 2));
            width += cell->width;
            for (size_t i = 0; i < cell->len; i++) {
                assert_true((unsigned char)cell->bytes[i] >= 0x20 && cell->bytes[i] != 0x7f);
            }
            assert_true(utf8_valid((struct slice){cell->bytes, cell->len}));
        }
        assert_int_equal(width, cells->columns);
    }
}

/* Of any rows, hosts, keys and sizes. */
static void any_board(void **state)
{
    static const char *const keys[] = {"j",    "k", "g",       "/",      "a",   "\r",
                                       "\033", "?", "\033[6~", "\033[F", "\177"};
    static const char *const names[] = {"running", "idle", "waiting", "\u4f60\033", NULL};
    struct cells cells = {.list = NULL};

    (void)state;
    for (uint32_t round = 1; round <= 60; round++) {
        struct board_view view;
        uint32_t seed = round;
        char id[16];
        char title[200];
        char snippet[200];

        make(&view);
        box.state = (enum t3_reader_state)below(&seed, 5);
        (void)snprintf(box.error.message, sizeof(box.error.message), "%s", odd_text(title, &seed));
        for (uint32_t i = below(&seed, 60); i > 0; i--) {
            (void)snprintf(id, sizeof(id), "t%u", i);
            struct t3_board_row row = row_of(i % 2 == 0 ? "mac" : "box", id, odd_text(title, &seed),
                                             names[below(&seed, ARRAY_COUNT(names))], AT("11:00"),
                                             odd_text(snippet, &seed));

            put(&view, i % 5 == 0 ? asking(row) : row);
        }
        for (int columns = 1; columns <= 100; columns += columns < 34 ? 1 : 7) {
            for (int rows = 1; rows <= 12; rows++) {
                type(&view, keys[below(&seed, ARRAY_COUNT(keys))]);
                assert_int_equal(cells_make(&cells, columns, rows), 0);
                board_view_draw(&view, &cells, now_ms());
                assert_sound(&cells);
                assert_true(view.rows.selected == NULL || view.rows.selected->matches);
            }
        }
        board_view_finish(&view);
    }
    cells_finish(&cells);
}

/* Of a board with rows, wherever one goes, the selected row is on the screen. */
static void selected_is_seen(void **state)
{
    static const char *const keys[] = {"j",       "k",      "j",      "g", "\033[6~",
                                       "\033[5~", "\033[F", "\033[H", " "};
    static const char *const names[] = {"running", "idle", "waiting", "odd", "archived"};
    struct board_view view;
    uint32_t seed = 3;
    char id[16];

    (void)state;
    make(&view);
    for (uint32_t i = 100; i < 150; i++) {
        (void)snprintf(id, sizeof(id), "t%u", i);
        put(&view,
            row_of(i % 3 == 0 ? "mac" : "box", id, id, names[below(&seed, 5)], AT("11:00"), NULL));
    }
    type(&view, "j");
    for (int round = 0; round < 3000; round++) {
        type(&view, keys[below(&seed, ARRAY_COUNT(keys))]);
        assert_non_null(strstr(screen(&view, 40, 1 + (int)below(&seed, 14)), "> t1"));
    }
    board_view_finish(&view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_state),      cmocka_unit_test(by_host),
        cmocka_unit_test(small_screens), cmocka_unit_test(hosts),
        cmocka_unit_test(filter),        cmocka_unit_test(scrolling),
        cmocka_unit_test(overlays),      cmocka_unit_test(ages),
        cmocka_unit_test(any_board),     cmocka_unit_test(selected_is_seen),
        cmocka_unit_test(many_hosts),    cmocka_unit_test(one_host),
        cmocka_unit_test(asks),
    };

    return UNIT_RUN(tests);
}
