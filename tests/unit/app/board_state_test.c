/* The board as readers see it, against a naive copy: order, changes, tombstones, and no memory. */
#include "unit/base/unit.h"
#include "unit/base/fault.h"
#include "base/buf.c"
#include "base/map.c"
#include "app/board_cursor.h"

#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_bool watched; /* the next text that is made posts `made` */
static sem_t held;
static sem_t made;

/* The last that is done to make a text. */
static void watched_cursor_format(const struct board_cursor *cursor,
                                  char out[static BOARD_CURSOR_BYTES])
{
    board_cursor_format(cursor, out);
    if (atomic_exchange(&watched, false)) {
        (void)sem_post(&made);
    }
}

#define board_cursor_format watched_cursor_format
#include "app/board_state.c"
#undef board_cursor_format

#define HOSTS   3
#define THREADS 12
#define SEED    UINT64_C(0x5eed)
#define EPOCH   UINT64_C(0x123456789abcdef0)

static struct t3_board_text text_of(const char *s)
{
    return (struct t3_board_text){s, s == NULL ? 0 : strlen(s)};
}

static struct t3_board_row row_of(const char *host, const char *id, const char *title,
                                  const char *active)
{
    return (struct t3_board_row){.host = text_of(host),
                                 .thread_id = text_of(id),
                                 .title = text_of(title),
                                 .state = text_of("idle"),
                                 .last_turn_at = text_of(active)};
}

static struct board_state *make(size_t tombs_max)
{
    const struct board_state_config config = {.tombs_max = tombs_max, .epoch = EPOCH, .seed = SEED};
    struct board_state *s = NULL;

    assert_int_equal(board_state_create(&config, &s), 0);
    return s;
}

static void put(struct board_state *s, const char *host, const char *id, const char *title,
                const char *active)
{
    const struct t3_board_row row = row_of(host, id, title, active);

    assert_int_equal(board_state_put(s, &row), 0);
}

static void drop(struct board_state *s, const char *host, const char *id)
{
    const struct t3_board_row row = row_of(host, id, NULL, NULL);

    assert_int_equal(board_state_remove(s, &row), 0);
}

static void assert_ids(const struct board_state *s, const char *expected)
{
    char got[512] = "";
    size_t len = 0;

    for (const struct board_item *row = board_state_behind(s, NULL); row != NULL;
         row = board_state_next(row)) {
        len += (size_t)snprintf(got + len, sizeof(got) - len, "%.*s/%.*s ",
                                (int)row->place.host.len, row->place.host.ptr,
                                (int)row->place.thread_id.len, row->place.thread_id.ptr);
    }
    assert_string_equal(got, expected);
}

/* Rows come newest activity first, whatever form the time has; those without any last, ties by host
 * and thread id. */
static void test_order(void **context)
{
    (void)context;
    struct board_state *s = make(10);

    put(s, "b", "1", "x", NULL);
    put(s, "a", "2", "x", NULL);
    put(s, "a", "1", "x", NULL);
    put(s, "a", "3", "x", "2026-01-01T00:00:00Z");
    put(s, "a", "4", "x", "2026-01-01T01:00:00.5+01:00");
    put(s, "a", "5", "x", "2026-01-01T00:00:00.500001Z");
    put(s, "a", "6", "x", "2025-12-31T23:00:00-01:00");
    assert_ids(s, "a/5 a/4 a/3 a/6 a/1 a/2 b/1 ");
    put(s, "b", "1", "x", "2027-01-01T00:00:00Z");
    assert_ids(s, "b/1 a/5 a/4 a/3 a/6 a/1 a/2 ");
    drop(s, "a", "4");
    assert_ids(s, "b/1 a/5 a/3 a/6 a/1 a/2 ");
    assert_int_equal(board_state_count(s), 6);
    board_state_destroy(s);
}

/* A place need not be that of a row: what is behind it follows. */
static void test_behind(void **context)
{
    (void)context;
    struct board_state *s = make(10);
    struct board_place place = {.host = SLICE("a"), .thread_id = SLICE("15")};

    put(s, "a", "1", "x", NULL);
    put(s, "a", "2", "x", NULL);
    assert_true(slice_equal(board_state_behind(s, &place)->place.thread_id, SLICE("2")));
    place.thread_id = SLICE("2");
    assert_null(board_state_behind(s, &place));
    place = (struct board_place){.active = {.ms = 1, .len = 1}, .host = SLICE("z")};
    assert_true(slice_equal(board_state_behind(s, &place)->place.thread_id, SLICE("1")));
    board_state_destroy(s);
}

/* What is as it was has not changed. */
static void test_unchanged(void **context)
{
    (void)context;
    struct board_state *s = make(10);

    put(s, "a", "1", "x", NULL);
    assert_int_equal(board_state_number(s), 1);
    put(s, "a", "1", "x", NULL);
    drop(s, "a", "2");
    assert_int_equal(board_state_number(s), 1);
    assert_int_equal(board_state_put_host(s, 0, SLICE("a"), SLICE("{1}")), 0);
    assert_int_equal(board_state_put_host(s, 0, SLICE("a"), SLICE("{1}")), 0);
    assert_int_equal(board_state_number(s), 2);
    drop(s, "a", "1");
    drop(s, "a", "1");
    assert_int_equal(board_state_number(s), 3);
    board_state_destroy(s);
}

/* That somebody is asked is a change, of a row that stays where it is. */
static void test_asks(void **context)
{
    (void)context;
    struct board_state *s = make(10);
    struct t3_board_row row = row_of("a", "1", "x", NULL);

    put(s, "a", "1", "x", NULL);
    for (row.asks = 1; row.asks >= 0; row.asks--) {
        assert_int_equal(board_state_put(s, &row), 0);
        assert_int_equal(board_state_put(s, &row), 0);
    }
    assert_int_equal(board_state_number(s), 3);
    board_state_destroy(s);
}

/* Who has not seen a tombstone that was dropped cannot be told what changed; the others can. */
static void test_tombs(void **context)
{
    (void)context;
    struct board_state *s = make(2);

    for (int i = 0; i < 4; i++) {
        const char id[] = {(char)('1' + i), '\0'};

        put(s, "a", id, "x", NULL);
    }
    assert_true(board_state_knows(s, 0));
    drop(s, "a", "1"); /* 5 */
    drop(s, "a", "2"); /* 6 */
    assert_true(board_state_knows(s, 0));
    drop(s, "a", "3"); /* 7: 5 is dropped */
    assert_false(board_state_knows(s, 4));
    assert_true(board_state_knows(s, 5));
    assert_true(board_state_knows(s, 7));
    assert_false(board_state_knows(s, 8));
    assert_int_equal(s->tomb_count, 2);
    put(s, "a", "2", "again", NULL); /* is a row again, and no tombstone */
    assert_int_equal(s->tomb_count, 1);
    assert_int_equal(s->map.count, 3);
    assert_int_equal(board_state_count(s), 2);
    board_state_destroy(s);
}

/* A listing puts all rows; the others go. */
static void test_listing(void **context)
{
    (void)context;
    struct board_state *s = make(10);

    put(s, "a", "1", "x", NULL);
    put(s, "a", "2", "x", NULL);
    put(s, "a", "3", "x", NULL);
    board_state_begin_listing(s);
    put(s, "a", "2", "x", NULL);
    put(s, "a", "3", "y", NULL);
    put(s, "a", "4", "x", NULL);
    assert_int_equal(board_state_end_listing(s), 0);
    assert_ids(s, "a/2 a/3 a/4 ");
    assert_int_equal(board_state_number(s), 6); /* 3 is other, 4 is new, 1 went */
    board_state_destroy(s);
}

/* ------------------------------------------------------------------------------------ the texts */

/* The event behind `number` is as expected, and its JSON stands inside of it. */
static void assert_event(const struct board_state *s, uint64_t number, const char *expected)
{
    const struct board_item *item = board_state_after(s, number);
    char event[512];

    (void)snprintf(event, sizeof(event), "%.*s", (int)item->event.len, item->event.ptr);
    assert_string_equal(event, expected);
    const char *data = strstr(event, "\ndata: ") + 7;

    assert_int_equal(item->json.len, (size_t)(strchr(data, '\n') - data));
    assert_memory_equal(item->json.ptr, data, item->json.len);
}

/* Events are made when something changes, whole, with the cursor of the change. */
static void test_events(void **context)
{
    (void)context;
    struct board_state *s = make(10);

    put(s, "a", "1", "x", NULL);
    assert_event(s, 0,
                 "event: row\ndata: {\"thread_id\":\"1\",\"title\":\"x\",\"state\":\"idle\","
                 "\"last_turn_at\":null,\"last_message_snippet\":null,\"host\":\"a\"}\n"
                 "id: 123456789abcdef0-1\n\n");
    assert_int_equal(board_state_put_host(s, 0, SLICE("a"), SLICE("{1}")), 0);
    assert_event(s, 1, "event: host\ndata: {1}\nid: 123456789abcdef0-2\n\n");
    drop(s, "a", "1");
    assert_event(s, 2,
                 "event: gone\ndata: {\"thread_id\":\"1\",\"host\":\"a\"}\n"
                 "id: 123456789abcdef0-3\n\n");
    board_state_destroy(s);
}

/* What is told while a change is made; ended by another thread, which holds the lock. */
static void *hold(void *context)
{
    struct board_state *s = context;

    board_state_lock(s);
    (void)sem_post(&held);
    (void)sem_wait(&made);
    board_state_unlock(s);
    return NULL;
}

/* No text is made under the lock: while somebody reads, all is made ready, and only then waited
 * for. */
static void test_made_outside(void **context)
{
    (void)context;
    struct board_state *s = make(10);
    pthread_t reader;

    put(s, "a", "1", "x", NULL);
    for (int step = 0; step < 3; step++) {
        (void)sem_init(&held, 0, 0);
        (void)sem_init(&made, 0, 0);
        assert_int_equal(pthread_create(&reader, NULL, hold, s), 0);
        (void)sem_wait(&held);
        atomic_store(&watched, true); /* the next text that is made lets the reader go */
        if (step == 0) {
            put(s, "a", "1", "y", NULL);
        } else if (step == 1) {
            assert_int_equal(board_state_put_host(s, 0, SLICE("a"), SLICE("{1}")), 0);
        } else {
            drop(s, "a", "1");
        }
        assert_false(atomic_load(&watched));
        (void)pthread_join(reader, NULL);
    }
    board_state_destroy(s);
}

/* ------------------------------------------------------------------------------ the naive board */

/* What somebody knows of a board: a title for each thread, empty where there is no row, and one for
 * each host. */
struct known {
    char rows[HOSTS][THREADS][8];
    char hosts[HOSTS][8];
};

/* Somebody who is told changes, as board_stream.c tells them. */
struct client {
    struct known known;
    uint64_t at;
    unsigned resets;
};

static uint64_t dice;

static size_t roll(size_t below)
{
    return (size_t)(dice_roll(&dice) % below);
}

static const char *const host_names[HOSTS] = {"a", "b", "c"};
static const char *const thread_names[THREADS] = {"0", "1", "2", "3", "4",  "5",
                                                  "6", "7", "8", "9", "10", "11"};

static void change_something(struct board_state *s, struct known *truth)
{
    static const char *const times[] = {NULL, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00.1Z",
                                        "2026-01-01T01:00:00+01:00"};
    size_t host = roll(HOSTS);
    size_t thread = roll(THREADS);
    char title[8] = "";

    (void)snprintf(title, sizeof(title), "t%zu", roll(4));
    switch (roll(5)) {
    case 0:
    case 1:
        put(s, host_names[host], thread_names[thread], title, times[roll(ARRAY_COUNT(times))]);
        memcpy(truth->rows[host][thread], title, sizeof(title));
        break;
    case 2:
    case 3:
        drop(s, host_names[host], thread_names[thread]);
        memset(truth->rows[host][thread], 0, sizeof(title));
        break;
    default:
        assert_int_equal(board_state_put_host(s, host, slice_of(host_names[host]), slice_of(title)),
                         0);
        memcpy(truth->hosts[host], title, sizeof(title));
        break;
    }
}

static size_t index_of(const char *const *names, size_t count, struct slice name)
{
    for (size_t i = 0; i < count; i++) {
        if (slice_equal(slice_of(names[i]), name)) {
            return i;
        }
    }
    fail_msg("there is no %.*s", (int)name.len, name.ptr);
    return 0;
}

static void take(struct client *c, const struct board_item *item)
{
    size_t host = index_of(host_names, HOSTS, item->place.host);

    c->at = item->number;
    if (item->kind == BOARD_HOST) {
        (void)snprintf(c->known.hosts[host], 8, "%.*s", (int)item->json.len, item->json.ptr);
        return;
    }
    char *title = c->known.rows[host][index_of(thread_names, THREADS, item->place.thread_id)];

    memset(title, 0, 8);
    if (item->kind == BOARD_ROW) {
        const char *at = memmem(item->json.ptr, item->json.len, "\"title\":\"", 9);

        (void)snprintf(title, 8, "%.2s", at + 9);
    }
}

/* Tells at most `count` changes. Each item is told at most once, in the order of numbers. */
static void tell(struct client *c, const struct board_state *s, size_t count)
{
    const struct board_item *item;

    if (!board_state_knows(s, c->at)) {
        *c = (struct client){.resets = c->resets + 1};
        while ((item = board_state_after(s, c->at)) != NULL) {
            take(c, item); /* all there is, or it would begin anew time and again */
        }
        return;
    }
    item = board_state_after(s, c->at);
    for (size_t i = 0; i < count && item != NULL; i++, item = board_state_later(item)) {
        assert_true(item->number > c->at);
        take(c, item);
        assert_ptr_equal(board_state_later(item), board_state_after(s, c->at));
    }
}

/* However far a client is behind, what it is told makes its board the real one. */
static void test_model(void **context)
{
    (void)context;
    struct board_state *s = make(5);
    struct known truth = {.hosts = {{0}}};
    struct client clients[4] = {{.at = 0}};
    unsigned resets = 0;

    for (size_t i = 0; i < HOSTS; i++) {
        assert_int_equal(board_state_put_host(s, i, slice_of(host_names[i]), SLICE("t0")), 0);
        memcpy(truth.hosts[i], "t0", 3);
    }
    for (int round = 0; round < 20000; round++) {
        change_something(s, &truth);
        assert_true(s->tomb_count <= 5);
        struct client *c = &clients[roll(ARRAY_COUNT(clients))];

        if (roll(8) == 0) {
            tell(c, s, SIZE_MAX);
            assert_memory_equal(&c->known, &truth, sizeof(truth));
        } else if (roll(8) == 0) {
            tell(c, s, 1 + roll(4));
        }
    }
    for (size_t i = 0; i < ARRAY_COUNT(clients); i++) {
        tell(&clients[i], s, SIZE_MAX);
        assert_memory_equal(&clients[i].known, &truth, sizeof(truth));
        resets += clients[i].resets;
    }
    assert_true(resets > 10);
    board_state_destroy(s);
}

/* Changed a thousand times between two looks, a row is told once. */
static void test_once(void **context)
{
    (void)context;
    struct board_state *s = make(5);
    char title[16];
    size_t count = 0;

    for (int i = 0; i < 1000; i++) {
        (void)snprintf(title, sizeof(title), "t%d", i);
        put(s, "a", "1", title, NULL);
    }
    for (const struct board_item *item = board_state_after(s, 0); item != NULL;
         item = board_state_after(s, item->number)) {
        count++;
    }
    assert_int_equal(count, 1);
    board_state_destroy(s);
}

/* ------------------------------------------------------------------------------------ no memory */

static void do_all(struct board_state *s, int *ret_failures)
{
    const struct t3_board_row rows[] = {
        row_of("a", "1", "x", NULL),
        row_of("a", "2", "x", "2026-01-01T00:00:00Z"),
        row_of("a", "1", "y", "2026-01-02T00:00:00Z"),
    };

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        uint64_t number = board_state_number(s);
        size_t count = board_state_count(s);
        int code = board_state_put(s, &rows[i]);

        if (code != 0) {
            assert_int_equal(code, ERR_NOMEM);
            assert_int_equal(board_state_number(s), number);
            assert_int_equal(board_state_count(s), count);
            *ret_failures += 1;
        }
    }
    if (board_state_put_host(s, 0, SLICE("a"), SLICE("{}")) != 0) {
        assert_int_equal(board_state_host_count(s), 0);
        *ret_failures += 1;
    }
    uint64_t number = board_state_number(s);

    if (board_state_remove(s, &rows[0]) != 0) {
        assert_int_equal(board_state_number(s), number);
        *ret_failures += 1;
    }
}

/* Whichever allocation fails, what it was for has not happened, and may be done again. */
static void test_no_memory(void **context)
{
    (void)context;
    for (long i = 0;; i++) {
        struct board_state *s = NULL;
        int failures = 0;

        fault_countdown = i;
        const struct board_state_config config = {.tombs_max = 4, .seed = SEED};
        int code = board_state_create(&config, &s);

        if (code == 0) {
            do_all(s, &failures);
            fault_countdown = -1;
            int none = 0;

            do_all(s, &none);
            assert_int_equal(none, 0);
            assert_ids(s, "a/2 ");
        }
        fault_countdown = -1;
        board_state_destroy(s);
        if (code == 0 && failures == 0) {
            assert_true(i > 5);
            return;
        }
    }
}

/* Memory goes with rows, tombstones and hosts, not with what has happened. */
static void test_memory(void **context)
{
    struct board_state *s = make(16);
    size_t level = 0;
    char id[16];
    char title[16];

    (void)context;
    for (unsigned n = 0; n < 200000; n++) {
        if (n == 1000) {
            level = mallinfo2().uordblks;
        }
        (void)snprintf(id, sizeof(id), "%06u", n % 3 == 0 ? n : n % 8);
        (void)snprintf(title, sizeof(title), "%06u", n);
        put(s, "a", id, title, NULL);
        if (n % 3 == 0 || n % 5 == 0) {
            drop(s, "a", id);
        }
    }
    assert_true(board_state_count(s) <= 8);
    assert_true(mallinfo2().uordblks <= level + 64 * KIB);
    board_state_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),     cmocka_unit_test(test_behind),
        cmocka_unit_test(test_unchanged), cmocka_unit_test(test_asks),
        cmocka_unit_test(test_tombs),     cmocka_unit_test(test_listing),
        cmocka_unit_test(test_model),     cmocka_unit_test(test_once),
        cmocka_unit_test(test_no_memory), cmocka_unit_test(test_memory),
        cmocka_unit_test(test_events),    cmocka_unit_test(test_made_outside),
    };

    return UNIT_RUN(tests);
}
