/* Pages of threads, held against a list that is sorted naively: random houses, filters, limits and
 * cursors, with some threads ahead of their records. ARBE_SEED=N runs another sequence. */
#include "base/dice.h"
#include "thread/recency.h"

static int fake_get_ahead(struct recency *r, struct recency_ahead **ret_ahead, size_t *ret_count);

#define recency_get_ahead fake_get_ahead
#include "app/thread_page.c"
#undef recency_get_ahead

#include "unit/app/desk_rig.h"

#define THREADS 240u
#define ROUNDS  60u

/* What the test knows of a thread. */
struct known {
    char id[16];
    unsigned house; /* 0 or 1 */
    bool below;     /* its parent is thread t000 */
    bool tagged;
    bool pinned;
    bool deleted;
    enum thread_status status;
    int64_t created_ms;
    int64_t stored_ts; /* 0: none */
    int64_t ahead_ts;  /* 0: not ahead */
};

struct test {
    struct desk desk;
    struct known threads[THREADS];
    uint64_t random;
    unsigned seed;
    bool no_memory; /* for those that are ahead */
};

static struct test *the_test;

static uint64_t random_below(struct test *t, uint64_t bound)
{
    return dice_roll(&t->random) % bound;
}

static int fake_get_ahead(struct recency *r, struct recency_ahead **ret_ahead, size_t *ret_count)
{
    struct recency_ahead *all = calloc(THREADS, sizeof(*all));

    (void)r;
    if (the_test->no_memory) {
        free(all);
        return ERR_NOMEM;
    }
    assert_non_null(all);
    *ret_count = 0;
    for (size_t i = 0; i < THREADS; i++) {
        const struct known *k = &the_test->threads[i];

        if (k->ahead_ts != 0) {
            all[*ret_count].ts = k->ahead_ts;
            (void)snprintf(all[*ret_count].thread_id, STORE_ID_BYTES, "%s", k->id);
            ++*ret_count;
        }
    }
    *ret_ahead = all;
    return 0;
}

/* ---------------------------------------------------------------------------------- the records */

static void add_thread(struct test *t, struct known *k)
{
    struct slice tag = SLICE("tag");
    const struct thread_record record = {
        .id = slice_of(k->id),
        .house_id = k->house == 0 ? SLICE("h") : SLICE("h2"),
        .parent_kind = k->below ? PARENT_THREAD : PARENT_HOUSE,
        .parent_id = k->below        ? SLICE("t000")
                     : k->house == 0 ? SLICE("h")
                                     : SLICE("h2"),
        .pinned_ms = k->pinned ? 5 : 0,
        .tags = &tag,
        .tag_count = k->tagged ? 1 : 0,
        .status = k->status,
        .created_ms = k->created_ms,
    };
    const struct recency_row row = {slice_of(k->id), k->stored_ts, SLICE("1")};

    FINE(store_thread_create(t->desk.app.store, &record, (struct slice){NULL, 0}, NULL, 0, msg));
    if (k->stored_ts != 0) {
        FINE(store_recency_write(t->desk.app.store, &row, 1, msg));
    }
    if (k->deleted) {
        FINE(store_thread_delete(t->desk.app.store, slice_of(k->id), 9, NULL, 0, msg));
    }
}

/* Times are few, so that many are the same and ids decide. */
static void fill(struct test *t)
{
    const struct house_create house = {.id = SLICE("h2"),
                                       .name = SLICE("H2"),
                                       .primary_thread_id = SLICE("p2"),
                                       .owner_id = SLICE("a"),
                                       .now_ms = 1};

    desk_fill(&t->desk);
    FINE(store_house_create(t->desk.app.store, &house, NULL, 0, msg));
    for (unsigned i = 0; i < THREADS; i++) {
        struct known *k = &t->threads[i];

        (void)snprintf(k->id, sizeof(k->id), "t%03u", i);
        k->house = i == 0 ? 0 : (unsigned)random_below(t, 4) == 0;
        k->below = k->house == 0 && i > 0 && random_below(t, 3) == 0;
        k->tagged = random_below(t, 3) == 0;
        k->pinned = random_below(t, 4) == 0;
        k->deleted = i > 0 && random_below(t, 12) == 0;
        k->status = random_below(t, 2) == 0 ? THREAD_OPEN : THREAD_IDLE;
        k->created_ms = 100 + (int64_t)random_below(t, 20);
        k->stored_ts = random_below(t, 3) == 0 ? 0 : 110 + (int64_t)random_below(t, 60);
        add_thread(t, k);
    }
}

/* Other threads are ahead from now on: none, few, or nearly all. */
static void move_ahead(struct test *t)
{
    uint64_t of_ten = random_below(t, 4) * 3;

    for (unsigned i = 0; i < THREADS; i++) {
        struct known *k = &t->threads[i];

        k->ahead_ts = 0;
        if (random_below(t, 10) < of_ten) {
            k->ahead_ts = (k->stored_ts != 0 ? k->stored_ts : k->created_ms) + 1 +
                          (int64_t)random_below(t, 60);
        }
    }
}

/* ------------------------------------------------------------------------------------ the model */

static int64_t time_of(const struct known *k)
{
    return k->ahead_ts != 0 ? k->ahead_ts : k->stored_ts != 0 ? k->stored_ts : k->created_ms;
}

static int known_order(const void *a, const void *b)
{
    const struct known *first = *(const struct known *const *)a;
    const struct known *second = *(const struct known *const *)b;

    if (time_of(first) != time_of(second)) {
        return time_of(first) > time_of(second) ? -1 : 1;
    }
    return -strcmp(first->id, second->id);
}

static bool is_wanted(const struct known *k, const struct thread_query *query)
{
    return !k->deleted && k->house == (query->house_id.len == 2) &&
           (query->parent_id.ptr == NULL || k->below) && (query->tag.ptr == NULL || k->tagged) &&
           (!query->with_status || k->status == query->status) && (!query->pinned || k->pinned);
}

static size_t list_naively(struct test *t, const struct thread_query *query,
                           const struct known *out[THREADS])
{
    size_t count = 0;

    for (size_t i = 0; i < THREADS; i++) {
        if (is_wanted(&t->threads[i], query)) {
            out[count++] = &t->threads[i];
        }
    }
    qsort(out, count, sizeof(*out), known_order);
    return count;
}

/* ------------------------------------------------------------------------------------- the walk */

/* Takes the threads of a page off the naive list; the primary threads are not on it. How many. */
static size_t compare_page(struct test *t, const char *page, const struct known **list, size_t left)
{
    const char *at = page;
    size_t count = 0;

    while ((at = strstr(at, "{\"id\":\"")) != NULL) {
        char wanted[32];
        char time[64];

        at += 7;
        if (*at == 'p') {
            continue;
        }
        if (count == left) {
            fail_msg("seed %u: there is more: %.40s", t->seed, at);
        }
        const struct known *k = list[count++];
        int64_t last = k->ahead_ts != 0 ? k->ahead_ts : k->stored_ts;

        (void)snprintf(wanted, sizeof(wanted), "%s\"", k->id);
        if (strncmp(at, wanted, strlen(wanted)) != 0) {
            fail_msg("seed %u: %.5s instead of %s (%lld)", t->seed, at, k->id,
                     (long long)time_of(k));
        }
        (void)snprintf(time, sizeof(time), "%lld", (long long)last);
        const char *ts = strstr(at, "\"lastEntryTs\":") + strlen("\"lastEntryTs\":");

        if (strncmp(ts, last == 0 ? "null" : time, strlen(last == 0 ? "null" : time)) != 0) {
            fail_msg("seed %u: the time of %s is %.16s, not %s", t->seed, k->id, ts, time);
        }
    }
    return count;
}

/* Walks the whole list by pages of that size. */
static void walk(struct test *t, const struct thread_query *query, size_t limit)
{
    const struct known *list[THREADS];
    size_t count = list_naively(t, query, list);
    size_t seen = 0;
    char cursor[STORE_CURSOR_BYTES] = "";
    unsigned pages = 0;

    do {
        const struct store_page page = {.after = slice_of(cursor), .limit = limit};
        struct api_call c;

        desk_call(&t->desk, &c, "a");
        assert_int_equal(thread_page_answer(&c, query, &page), API_DONE);
        buf_append_char(&c.answer, '\0');
        seen += compare_page(t, c.answer.ptr, list + seen, count - seen);
        const char *next = strstr(c.answer.ptr, "\"nextCursor\":");

        (void)snprintf(cursor, sizeof(cursor), "%.*s",
                       next[13] == '"' ? (int)strcspn(next + 14, "\"") : 0, next + 14);
        desk_end(&c);
        assert_true(++pages <= THREADS + 3);
    } while (cursor[0] != '\0');
    if (seen != count) {
        fail_msg("seed %u: %zu threads instead of %zu", t->seed, seen, count);
    }
}

static int set_up(void **state)
{
    const char *seed = getenv("ARBE_SEED");
    struct test *t = calloc(1, sizeof(*t));

    assert_non_null(t);
    t->seed = seed == NULL ? 1 : (unsigned)strtoul(seed, NULL, 10);
    t->random = t->seed;
    the_test = t;
    print_message("seed %u\n", t->seed);
    desk_open(&t->desk);
    fill(t);
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct test *t = *state;

    desk_close(&t->desk);
    free(t);
    return 0;
}

static void any_list_is_right(void **state)
{
    struct test *t = *state;

    for (unsigned round = 0; round < ROUNDS; round++) {
        const struct thread_query query = {
            .house_id = random_below(t, 4) == 0 ? SLICE("h2") : SLICE("h"),
            .parent_id = random_below(t, 4) == 0 ? SLICE("t000") : (struct slice){NULL, 0},
            .tag = random_below(t, 3) == 0 ? SLICE("tag") : (struct slice){NULL, 0},
            .with_status = random_below(t, 3) == 0,
            .status = THREAD_IDLE,
            .pinned = random_below(t, 4) == 0,
        };

        move_ahead(t);
        walk(t, &query, 1 + random_below(t, random_below(t, 2) == 0 ? 8 : 100));
    }
}

/* A cursor that nobody was told, and no memory, are refused. */
static void refusals(void **state)
{
    struct test *t = *state;
    const struct thread_query query = {.house_id = SLICE("h")};
    const char *const cursors[] = {"x",
                                   "1",
                                   ".",
                                   "1.",
                                   "-5.t000x",
                                   "99999999999999999999.t000",
                                   "1.0123456789012345678901234567890123456789"};
    struct api_call c;

    move_ahead(t);
    for (size_t i = 0; i < ARRAY_COUNT(cursors); i++) {
        const struct store_page page = {.after = slice_of(cursors[i]), .limit = 5};

        desk_call(&t->desk, &c, "a");
        int result = thread_page_answer(&c, &query, &page);

        assert_true(result == API_DONE || c.error.code == API_INVALID_INPUT);
        desk_end(&c);
    }
    t->no_memory = true;
    desk_call(&t->desk, &c, "a");
    assert_int_equal(thread_page_answer(&c, &query, &(struct store_page){.limit = 5}), API_FAILED);
    assert_int_equal(c.error.code, API_BUSY);
    desk_end(&c);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest page_tests[] = {
        TEST(any_list_is_right),
        TEST(refusals),
    };

    return UNIT_RUN(page_tests);
}
