/* Which rows are shown, in which order, below which headings, and which one is selected. */
#include "unit/base/fault.h"

#include "base/map.c"
#include "cli/board_rows.c"

#include "unit/base/unit.h"
#include "unit/cli/board_text.h"

#include <stdio.h>

#define AT(minute) "2026-11-05T00:" minute ":00.000Z"

static void put(struct board_rows *rows, const char *host, const char *id, const char *state,
                const char *time)
{
    struct t3_board_row row = row_of(host, id, id, state, time, NULL);

    assert_int_equal(board_rows_change(rows, &row, false), 0);
}

static void drop(struct board_rows *rows, const char *host, const char *id)
{
    struct t3_board_row row = row_of(host, id, NULL, NULL, NULL, NULL);

    assert_int_equal(board_rows_change(rows, &row, true), 0);
}

/* What is shown: "heading: id id; heading: id", with a star at the selected one. */
static const char *shown(struct board_rows *rows)
{
    static char text[2000];
    size_t used = 0;

    board_rows_sort(rows);
    text[0] = '\0';
    for (size_t i = 0; i < rows->group_count; i++) {
        const struct board_group *group = &rows->groups[i];
        struct slice name = rows->grouping == BOARD_BY_HOST
                                ? board_rows_host(rows, rows->shown[group->first]->host)
                                : board_entry_label(rows->shown[group->first]);

        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%.*s:", i == 0 ? "" : "; ",
                                 (int)name.len, name.ptr);
        for (size_t j = group->first; j < group->first + group->count; j++) {
            const struct board_entry *entry = rows->shown[j];

            assert_int_equal(entry->shown_at, j);
            used += (size_t)snprintf(text + used, sizeof(text) - used, " %.*s%s",
                                     (int)entry->id.len, entry->id.ptr,
                                     rows->selected == entry ? "*" : "");
        }
    }
    return text;
}

/* What runs comes first, and with it what T3 calls waiting, which waits for nobody; then what
 * failed, what ended, what nobody here has heard of, and what is archived last. */
static void by_state(void **state)
{
    static const char *const names[] = {
        "archived", "later",  "rolled_back", "idle",     "completed", "cancelled", "interrupted",
        "failed",   "queued", "preparing",   "starting", "running",   "waiting",   "a tomorrow's"};
    struct board_rows rows;

    (void)state;
    board_rows_init(&rows, 1);
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        put(&rows, "h", names[i], names[i], AT("00"));
    }
    put(&rows, "h", "none", NULL, NULL);
    assert_string_equal(
        shown(&rows),
        "running: running; finishing: waiting; starting: starting; preparing: preparing; "
        "queued: queued; failed: failed; interrupted: interrupted; cancelled: cancelled; "
        "completed: completed; idle: idle; rolled back: rolled_back; unknown: none; "
        "a tomorrow's: a tomorrow's; later: later; archived: archived");
    assert_int_equal(rows.count, 15);
    assert_int_equal(rows.running, 4);
    assert_int_equal(rows.failed, 1);
    for (size_t i = 0; i < rows.shown_count; i++) { /* at most 6 columns, but for a tomorrow's */
        struct slice brief = board_entry_brief(rows.shown[i]);

        assert_true((brief.len > 0 && brief.len <= BOARD_BRIEF_COLUMNS) ||
                    slice_equal(brief, rows.shown[i]->state));
    }
    board_rows_set_filter(&rows, SLICE("run"));
    assert_string_equal(shown(&rows), "running: running");
    assert_int_equal(rows.running, 1);
    assert_int_equal(rows.failed, 0);
    board_rows_finish(&rows);
}

/* Who asks somebody something comes before all else, whatever its state, which still finds it; and
 * no more so once it asks no more. Where rows are grouped by host it stays in its place. */
static void asking_first(void **state)
{
    struct t3_board_row a = row_of("g", "a", "a", "completed", AT("01"), NULL);
    struct t3_board_row b = row_of("h", "b", "b", NULL, AT("02"), NULL);
    struct board_rows rows;

    (void)state;
    board_rows_init(&rows, 1);
    put(&rows, "g", "c", "running", AT("09"));
    a = asking(a);
    b = asking(b);
    assert_int_equal(board_rows_change(&rows, &a, false), 0);
    assert_int_equal(board_rows_change(&rows, &b, false), 0);
    assert_string_equal(shown(&rows), "asks you: b a; running: c");
    assert_int_equal(rows.asking, 2);
    assert_int_equal(rows.running, 1);
    assert_true(slice_equal(board_entry_brief(rows.shown[0]), SLICE("asks")));
    assert_true(slice_equal(board_entry_state(rows.shown[0]), SLICE("unknown")));
    assert_true(slice_equal(board_entry_state(rows.shown[1]), SLICE("completed")));
    board_rows_set_filter(&rows, SLICE("ASKS"));
    assert_string_equal(shown(&rows), "asks you: b a");
    board_rows_set_filter(&rows, SLICE("compl"));
    assert_string_equal(shown(&rows), "asks you: a");
    assert_int_equal(rows.asking, 1);
    board_rows_set_filter(&rows, SLICE(""));
    board_rows_set_grouping(&rows, BOARD_BY_HOST);
    assert_string_equal(shown(&rows), "g: c a; h: b");
    board_rows_set_grouping(&rows, BOARD_BY_STATE);
    a.asks = 0;
    assert_int_equal(board_rows_change(&rows, &a, false), 0);
    assert_string_equal(shown(&rows), "asks you: b; running: c; completed: a");
    board_rows_finish(&rows);
}

/* The newest activity first, as instants; what has none last. Rows move when it changes. */
static void newest_first(void **state)
{
    struct board_rows rows;

    (void)state;
    board_rows_init(&rows, 1);
    put(&rows, "h", "a", "running", AT("01"));
    put(&rows, "h", "b", "running", NULL);
    put(&rows, "h", "c", "running", "2026-11-05T01:03:00+01:00");
    put(&rows, "h", "d", "running", AT("02"));
    put(&rows, "g", "e", "running", AT("02"));
    assert_string_equal(shown(&rows), "running: c d e a b");
    put(&rows, "h", "a", "running", AT("09"));
    put(&rows, "h", "d", "waiting", AT("00"));
    assert_string_equal(shown(&rows), "running: a c e b; finishing: d");
    drop(&rows, "h", "a");
    drop(&rows, "h", "nobody");
    assert_string_equal(shown(&rows), "running: c e b; finishing: d");
    assert_int_equal(rows.running, 4);
    board_rows_finish(&rows);
}

/* Hosts stand in the order in which they were named, whatever their threads are called. */
static void by_host(void **state)
{
    struct board_rows rows;

    (void)state;
    board_rows_init(&rows, 1);
    assert_int_equal(board_rows_add_host(&rows, SLICE("mac")), 0);
    assert_int_equal(board_rows_add_host(&rows, SLICE("box")), 0);
    assert_int_equal(board_rows_add_host(&rows, SLICE("mac")), 0);
    put(&rows, "box", "t", "idle", AT("01"));
    put(&rows, "mac", "t", "idle", AT("02"));
    put(&rows, "mac", "u", "archived", AT("03"));
    assert_string_equal(shown(&rows), "idle: t t; archived: u");
    board_rows_set_grouping(&rows, BOARD_BY_HOST);
    assert_string_equal(shown(&rows), "mac: u t; box: t");
    drop(&rows, "mac", "t");
    assert_string_equal(shown(&rows), "mac: u; box: t");
    board_rows_finish(&rows);
}

/* However many there are, each is found again, and keeps its place. */
static void many_hosts(void **state)
{
    struct board_rows rows;
    char label[16];

    (void)state;
    board_rows_init(&rows, 1);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 100; i++) {
            (void)snprintf(label, sizeof(label), "h%u", i);
            put(&rows, label, "t", "idle", AT("01"));
        }
    }
    board_rows_set_grouping(&rows, BOARD_BY_HOST);
    board_rows_sort(&rows);
    assert_int_equal(rows.host_count, 100);
    assert_int_equal(rows.shown_count, 100);
    for (size_t i = 0; i < 100; i++) {
        (void)snprintf(label, sizeof(label), "h%zu", i);
        assert_int_equal(rows.shown[i]->host, i);
        assert_true(slice_equal(board_rows_host(&rows, i), slice_of(label)));
    }
    board_rows_finish(&rows);
}

static void filter(struct board_rows *rows, const char *words)
{
    board_rows_set_filter(rows, slice_of(words));
}

/* Each word must stand somewhere: in title, host, state or snippet; in capitals or not. */
static void filters(void **state)
{
    struct t3_board_row one = row_of("mac", "1", "Fix LOGIN", "rolled_back", AT("02"),
                                     "\u00c4rger mit \u00d6l");
    struct t3_board_row two = row_of("box", "2", NULL, "running", AT("01"), "logs in");
    struct board_rows rows;

    (void)state;
    board_rows_init(&rows, 1);
    assert_int_equal(board_rows_change(&rows, &one, false), 0);
    assert_int_equal(board_rows_change(&rows, &two, false), 0);
    filter(&rows, "log");
    assert_string_equal(shown(&rows), "running: 2; rolled back: 1");
    filter(&rows, "LOG mac");
    assert_string_equal(shown(&rows), "rolled back: 1");
    filter(&rows, "log  nothing");
    assert_string_equal(shown(&rows), "");
    filter(&rows, "\u00e4rger \u00f6l");
    assert_string_equal(shown(&rows), "rolled back: 1");
    filter(&rows, "back");
    assert_string_equal(shown(&rows), "rolled back: 1");
    two.title = text_of("back again");
    assert_int_equal(board_rows_change(&rows, &two, false), 0);
    assert_string_equal(shown(&rows), "running: 2; rolled back: 1");
    filter(&rows, "\377");
    assert_string_equal(shown(&rows), "");
    filter(&rows, " ");
    assert_string_equal(shown(&rows), "running: 2; rolled back: 1");
    board_rows_finish(&rows);
}

/* A word behind a '-' must not stand anywhere; the '-' alone is one that is still being typed. */
static void leaves_out(void **state)
{
    struct t3_board_row one = row_of("mac", "1", "one-off", "idle", AT("02"), "done");
    struct t3_board_row two = row_of("box", "2", "two", "running", AT("01"), NULL);
    struct board_rows rows;

    (void)state;
    board_rows_init(&rows, 1);
    assert_int_equal(board_rows_change(&rows, &one, false), 0);
    assert_int_equal(board_rows_change(&rows, &two, false), 0);
    filter(&rows, "-");
    assert_string_equal(shown(&rows), "running: 2; idle: 1");
    filter(&rows, "-IDLE");
    assert_string_equal(shown(&rows), "running: 2");
    filter(&rows, "-idle mac");
    assert_string_equal(shown(&rows), "");
    filter(&rows, "-two -box");
    assert_string_equal(shown(&rows), "idle: 1");
    filter(&rows, "one-off");
    assert_string_equal(shown(&rows), "idle: 1");
    filter(&rows, "--off");
    assert_string_equal(shown(&rows), "running: 2");
    two.state = text_of("idle");
    filter(&rows, "-idle");
    assert_int_equal(board_rows_change(&rows, &two, false), 0);
    assert_string_equal(shown(&rows), "");
    board_rows_finish(&rows);
}

/* Who is selected stays so wherever it moves; when it goes, whoever takes its place is. */
static void selection(void **state)
{
    struct board_rows rows;

    (void)state;
    board_rows_init(&rows, 1);
    board_rows_select(&rows, 0);
    assert_null(rows.selected);
    put(&rows, "h", "a", "running", AT("03"));
    put(&rows, "h", "b", "running", AT("02"));
    put(&rows, "h", "c", "running", AT("01"));
    board_rows_select(&rows, 1);
    assert_string_equal(shown(&rows), "running: a b* c");
    put(&rows, "h", "b", "idle", AT("09"));
    assert_string_equal(shown(&rows), "running: a c; idle: b*");
    drop(&rows, "h", "b");
    assert_string_equal(shown(&rows), "running: a c*");
    put(&rows, "h", "d", "running", AT("05"));
    assert_string_equal(shown(&rows), "running: d a c*");
    filter(&rows, "a");
    assert_string_equal(shown(&rows), "running: a*");
    filter(&rows, "");
    assert_string_equal(shown(&rows), "running: d a* c");
    board_rows_select(&rows, 99);
    assert_string_equal(shown(&rows), "running: d a c*");
    board_rows_select(&rows, BOARD_NONE);
    assert_string_equal(shown(&rows), "running: d a c");
    board_rows_finish(&rows);
}

/* Against a naive copy: as many rows as there should be, sorted, each once. */
static void any_changes(void **state)
{
    static const char *const names[] = {"running", "idle", "waiting", "odd"};
    struct board_rows rows;
    bool there[40] = {false};
    uint32_t seed = 7;

    (void)state;
    board_rows_init(&rows, 1);
    for (int round = 0; round < 5000; round++) {
        seed = seed * 1664525u + 1013904223u;
        uint32_t which = (seed >> 8) % ARRAY_COUNT(there);
        char id[16];
        char time[40];

        (void)snprintf(id, sizeof(id), "t%u", which);
        (void)snprintf(time, sizeof(time), "2026-11-05T00:%02u:00Z", (seed >> 16) % 60);
        if ((seed >> 24) % 3 == 0) {
            drop(&rows, which % 2 == 0 ? "g" : "h", id);
            there[which] = false;
        } else {
            put(&rows, which % 2 == 0 ? "g" : "h", id, names[(seed >> 20) % 4], time);
            there[which] = true;
        }
        if (round % 7 == 0) {
            size_t want = 0;

            board_rows_select(&rows, (seed >> 12) % 40);
            for (size_t i = 0; i < ARRAY_COUNT(there); i++) {
                want += there[i] ? 1 : 0;
            }
            assert_int_equal(rows.count, want);
            assert_int_equal(rows.shown_count, want);
            for (size_t i = 1; i < rows.shown_count; i++) {
                assert_true(compare(&rows.shown[i - 1], &rows.shown[i], &rows) < 0);
            }
        }
    }
    board_rows_finish(&rows);
}

/* A change that finds no memory has not happened, and may be made again. */
static void no_memory(void **state)
{
    struct t3_board_row before = row_of("h", "a", "before", "running", AT("01"), NULL);
    struct t3_board_row after = row_of("h", "a", "after", "running", AT("01"), NULL);
    int code = ERR_NOMEM;

    (void)state;
    for (long i = 0; code != 0; i++) {
        struct board_rows rows;

        board_rows_init(&rows, 1);
        fault_countdown = i;
        bool there = board_rows_change(&rows, &before, false) == 0;

        code = board_rows_change(&rows, &after, false);
        fault_countdown = -1;
        assert_true(code == 0 ? i > 7 : code == ERR_NOMEM);
        assert_int_equal(rows.count, there);
        assert_true(!there ||
                    slice_equal(rows.all[0]->title, code == 0 ? SLICE("after") : SLICE("before")));
        assert_int_equal(board_rows_change(&rows, &after, false), 0);
        assert_string_equal(shown(&rows), "running: a");
        board_rows_finish(&rows);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_state),     cmocka_unit_test(newest_first), cmocka_unit_test(by_host),
        cmocka_unit_test(filters),      cmocka_unit_test(leaves_out),   cmocka_unit_test(selection),
        cmocka_unit_test(any_changes),  cmocka_unit_test(many_hosts),   cmocka_unit_test(no_memory),
        cmocka_unit_test(asking_first),
    };

    return UNIT_RUN(tests);
}
