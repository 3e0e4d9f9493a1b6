/* Posts, and each id once: over an engine and a store, with answers that fail and get lost, memory
 * that runs out, and processes that are killed. */
#include "unit/base/fault.h"

#include "thread/poster.c"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "unit/thread/posting_rig.h"

static int with_thread(void **state)
{
    (void)posting_set_up(state);
    posting_add_house(*state);
    posting_add_thread(*state, "t");
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, with_thread, posting_tear_down)

/* Posts one entry and expects it to be stored. */
static void store_one(struct posting *g, struct slice id, bool fresh)
{
    struct one_post o;
    one_post_init(g, &o, "t", id, fresh, "hello");
    if (poster_post(g->poster, &o.post) != 0) {
        fail_msg("%s", o.post.error.message);
    }
    assert_int_equal(o.post.stored, 1);
    assert_false(o.entry.duplicate);
    assert_true(o.post.next_offset[0] != '\0');
    one_post_finish(&o);
}

/* Posts one entry whose id is there, and expects the first one of it. */
static void find_one(struct posting *g, struct slice id, const char *first)
{
    struct one_post o;
    one_post_init(g, &o, "t", id, false, "again");
    assert_int_equal(poster_post(g->poster, &o.post), 0);
    assert_int_equal(o.post.stored, 0);
    assert_true(o.entry.duplicate);
    assert_true(o.post.next_offset[0] == '\0');
    if (!slice_equal(o.entry.first, slice_of(first))) {
        fail_msg("%.*s", (int)o.entry.first.len, o.entry.first.ptr);
    }
    one_post_finish(&o);
}

#define FIRST(id, ts) \
    "{\"id\":\"" id "\",\"ts\":" ts ",\"payload\":{\"type\":\"chat\",\"text\":\"hello\"}}"

/* Posts one entry, which is refused. */
static void refuse_one(struct posting *g, const char *thread_id, const char *id, bool fresh,
                       enum api_code code, bool final)
{
    struct one_post o;
    one_post_init(g, &o, thread_id, slice_of(id), fresh, "hello");
    assert_int_equal(poster_post(g->poster, &o.post), -1);
    assert_string_equal(api_error_code_text(o.post.error.code), api_error_code_text(code));
    assert_true(o.post.error.message[0] != '\0');
    assert_int_equal(o.post.final, final);
    assert_int_equal(o.post.stored, 0);
    one_post_finish(&o);
}

/* A fresh entry is appended without a look at what is there. */
static void fresh_ones_cost_an_append(void **state)
{
    struct posting *g = *state;
    unsigned reads = posting_calls(g, CALL_READ);
    store_one(g, SLICE("one"), true);
    store_one(g, SLICE("two"), true);
    assert_int_equal(posting_calls(g, CALL_READ), reads);
    assert_int_equal(posting_calls(g, CALL_APPEND), 2);
    assert_int_equal(posting_calls(g, CALL_HEAD), 0);
    posting_expect(g, "t", "one two");
}

/* The same id stores once, and is answered with the first entry: in this process and after a
 * restart, whoever wrote the first. */
static void an_id_stores_once(void **state)
{
    struct posting *g = *state;
    store_one(g, SLICE("mine"), false);
    find_one(g, SLICE("mine"), FIRST("mine", "1000000"));
    store_one(g, SLICE("servers"), true);
    find_one(g, SLICE("servers"), FIRST("servers", "1000002"));
    posting_reopen(g);
    find_one(g, SLICE("mine"), FIRST("mine", "1000000"));
    find_one(g, SLICE("servers"), FIRST("servers", "1000002"));
    posting_expect(g, "t", "mine servers");
}

/* The same id in two threads is two entries. */
static void an_id_belongs_to_its_thread(void **state)
{
    struct posting *g = *state;
    struct one_post o;
    posting_add_thread(g, "u");
    store_one(g, SLICE("x"), false);
    one_post_init(g, &o, "u", SLICE("x"), false, "hello");
    assert_int_equal(poster_post(g->poster, &o.post), 0);
    assert_int_equal(o.post.stored, 1);
    one_post_finish(&o);
    posting_expect(g, "u", "x");
}

/* A batch of ids; to be freed with batch_finish. */
struct batch {
    struct arena arena;
    char *jsons[8];
    struct post_entry entries[8];
    struct post post;
};

static void batch_init(struct posting *g, struct batch *b, const char *const *ids, size_t count)
{
    *b = (struct batch){.post = {.thread_id = SLICE("t"), .count = count}};
    arena_init(&b->arena, MIB);
    b->post.arena = &b->arena;
    b->post.entries = b->entries;
    for (size_t i = 0; i < count; i++) {
        b->jsons[i] = entry_json(slice_of(ids[i]), g->now++, "batch");
        b->entries[i] = (struct post_entry){.id = slice_of(ids[i]), .json = slice_of(b->jsons[i])};
    }
}

static void batch_finish(struct batch *b)
{
    for (size_t i = 0; i < b->post.count; i++) {
        free(b->jsons[i]);
    }
    arena_finish(&b->arena);
}

/* Of a batch with duplicates the rest is stored, by one append; of one with nothing else, nothing.
 * Fresh and other ids may stand in one. */
static void a_batch_stores_the_rest(void **state)
{
    struct posting *g = *state;
    const char *const ids[] = {"a", "b", "c", "d"};
    struct batch b;
    store_one(g, SLICE("b"), true);
    unsigned appends = posting_calls(g, CALL_APPEND);
    batch_init(g, &b, ids, 4);
    b.entries[2].fresh = true;
    assert_int_equal(poster_post(g->poster, &b.post), 0);
    assert_int_equal(b.post.stored, 3);
    assert_true(!b.entries[0].duplicate && b.entries[1].duplicate && !b.entries[3].duplicate);
    assert_true(slice_equal(b.entries[1].first, SLICE(FIRST("b", "1000000"))));
    assert_int_equal(posting_calls(g, CALL_APPEND), appends + 1);
    b.entries[2].fresh = false;
    assert_int_equal(poster_post(g->poster, &b.post), 0);
    assert_int_equal(b.post.stored, 0);
    assert_int_equal(posting_calls(g, CALL_APPEND), appends + 1);
    batch_finish(&b);
    posting_expect(g, "t", "b a c d");
}

/* -------------------------------------------------------------------------------------- at once */

struct racer {
    struct task task; /* when the pool runs it */
    struct posting *g;
    pthread_t thread;
    struct one_post o;
    int result;
    atomic_uint *ended;
};

static void *race(void *context)
{
    struct racer *r = context;
    r->result = poster_post(r->g->poster, &r->o.post);
    atomic_fetch_add(r->ended, 1);
    return NULL;
}

static void race_on_pool(struct task *task)
{
    (void)race(container_of(task, struct racer, task));
}

static void on_raced(struct post *post, int result)
{
    struct racer *r = post->context;
    r->result = result;
    atomic_fetch_add(r->ended, 1);
}

#define RACERS 48u

/* One has stored the id, all others were given what it stored. */
static void check_race(struct racer *racers)
{
    size_t stored = 0;
    const struct slice *first = NULL;
    for (size_t i = 0; i < RACERS; i++) {
        assert_int_equal(racers[i].result, 0);
        stored += racers[i].o.post.stored;
        if (racers[i].o.post.stored == 1) {
            first = &racers[i].o.entry.json;
        }
    }
    assert_int_equal(stored, 1);
    for (size_t i = 0; i < RACERS; i++) {
        const struct post_entry *entry = &racers[i].o.entry;
        assert_true(entry->duplicate == (racers[i].o.post.stored == 0));
        assert_true(!entry->duplicate || slice_equal(entry->first, *first));
    }
    for (size_t i = 0; i < RACERS; i++) {
        one_post_finish(&racers[i].o);
    }
}

/* 48 posts of one id at once store one, a third from threads, a third that all sit in the pool, and
 * a third that nobody waits for: also when the threads of the pool are fewer. */
static void posts_of_an_id_at_once_store_one(void **state)
{
    struct posting *g = *state;
    static struct racer racers[RACERS];
    char id[STORE_ID_BYTES];
    char ids[1024] = "";
    for (unsigned round = 0; round < 20; round++) {
        atomic_uint ended = 0;
        struct slice name = numbered(id, "r", round);
        (void)snprintf(ids + strlen(ids), sizeof(ids) - strlen(ids), "%s%s", round ? " " : "", id);
        for (unsigned i = 0; i < RACERS; i++) {
            racers[i] = (struct racer){.g = g, .task = {.run = race_on_pool}, .ended = &ended};
            one_post_init(g, &racers[i].o, "t", name, false, i % 2 ? "odd" : "even");
            racers[i].o.post.done = on_raced;
            racers[i].o.post.context = &racers[i];
        }
        for (unsigned i = 0; i < RACERS; i++) {
            if (i % 3 == 0) {
                assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
            } else if (i % 3 == 1) {
                pool_submit(g->pool, &racers[i].task);
            } else {
                poster_start(g->poster, &racers[i].o.post);
            }
        }
        for (unsigned i = 0; i < RACERS; i += 3) {
            (void)pthread_join(racers[i].thread, NULL);
        }
        AWAIT(atomic_load(&ended) == RACERS);
        check_race(racers);
    }
    posting_expect(g, "t", ids);
}

/* Batches that share ids, in opposite orders, from several threads: no deadlock, each id once. */
static void *post_batches(void *context)
{
    struct racer *r = context;
    static const char *const there[] = {"a", "b", "c"};
    static const char *const back[] = {"c", "b", "a"};
    struct posting own = {.now = 1};
    struct batch b;
    batch_init(&own, &b, r->result ? there : back, 3);
    assert_int_equal(poster_post(r->g->poster, &b.post), 0);
    batch_finish(&b);
    return NULL;
}

static void batches_cross(void **state)
{
    struct posting *g = *state;
    struct racer racers[8];
    for (unsigned i = 0; i < 8; i++) {
        racers[i] = (struct racer){.g = g, .result = (int)(i % 2)};
        assert_int_equal(pthread_create(&racers[i].thread, NULL, post_batches, &racers[i]), 0);
    }
    for (unsigned i = 0; i < 8; i++) {
        (void)pthread_join(racers[i].thread, NULL);
    }
    char *text = posting_read(g, "t");
    assert_int_equal(strlen(text), 3 * strlen(FIRST("a", "1")) + 4);
    free(text);
}

/* ------------------------------------------------------------------------------------- failures */

/* After an append whose answer was lost the next post of the id finds what became of it. */
static void lost_answers_are_looked_up(void **state)
{
    struct posting *g = *state;
    posting_fault(g, FAULT_LOST, VERB(APPEND), 1);
    refuse_one(g, "t", "done", false, API_OUTCOME_UNKNOWN, false);
    find_one(g, SLICE("done"), FIRST("done", "1000000"));
    posting_fault(g, FAULT_BROKEN, VERB(APPEND), 1);
    refuse_one(g, "t", "not-done", false, API_OUTCOME_UNKNOWN, false);
    store_one(g, SLICE("not-done"), false);
    posting_expect(g, "t", "done not-done");
}

/* Each failure of streams has its code. */
static void failures_have_codes(void **state)
{
    struct posting *g = *state;
    posting_fault(g, FAULT_DOWN, VERB(APPEND), 1);
    refuse_one(g, "t", "x", true, API_STREAMS_UNAVAILABLE, false);
    posting_fault(g, FAULT_DOWN, VERB(READ), 1);
    refuse_one(g, "t", "x", false, API_STREAMS_UNAVAILABLE, false);
    posting_fault(g, FAULT_BUSY, VERB(APPEND), 1);
    refuse_one(g, "t", "x", true, API_BUSY, false);
    posting_fault(g, FAULT_FULL, VERB(APPEND), 1);
    refuse_one(g, "t", "x", true, API_STORAGE_FULL, false);
    refuse_one(g, "nowhere", "x", true, API_NOT_FOUND, false);
    refuse_one(g, "nowhere", "x", false, API_NOT_FOUND, false);
    store_one(g, SLICE("x"), false);
    posting_expect(g, "t", "x");
}

/* What will be refused for ever says so: a closed stream, an entry that is too large, a stream of
 * another type. */
static void hopeless_posts_say_so(void **state)
{
    struct posting *g = *state;
    const struct stream_create_options plain = {.content_type = "text/plain"};
    char *long_text = malloc(2 * MIB);
    memset(long_text, 'x', 2 * MIB - 1);
    long_text[2 * MIB - 1] = '\0';
    struct one_post o;
    one_post_init(g, &o, "t", SLICE("long"), true, long_text);
    assert_int_equal(poster_post(g->poster, &o.post), -1);
    assert_int_equal(o.post.error.code, API_TOO_LARGE);
    assert_true(o.post.final);
    one_post_finish(&o);
    free(long_text);
    assert_int_equal(stream_client_close(g->client, "arbe-thread-t", NULL, NULL), STREAM_OK);
    refuse_one(g, "t", "x", true, API_THREAD_CLOSED, true);
    refuse_one(g, "t", "x", false, API_THREAD_CLOSED, true);
    assert_int_equal(stream_client_create(g->client, "arbe-thread-plain", &plain, NULL, NULL),
                     STREAM_OK);
    refuse_one(g, "plain", "x", true, API_INTERNAL, true);
}

/* A thread whose stream takes long to read has one look at a time: posts to others are looked up
 * meanwhile, though its own are more than the pool has threads. */
static void a_slow_thread_holds_up_no_other(void **state)
{
    struct posting *g = *state;
    struct racer racers[3 * POSTING_POOL];
    char ids[3 * POSTING_POOL][STORE_ID_BYTES];
    struct racer other = {.g = g};
    atomic_uint ended = 0;
    atomic_uint other_ended = 0;
    posting_add_thread(g, "u");
    posting_fault(g, FAULT_STALL, VERB(READ), 1);
    for (unsigned i = 0; i < ARRAY_COUNT(racers); i++) {
        racers[i] = (struct racer){.g = g, .ended = &ended};
        one_post_init(g, &racers[i].o, "t", numbered(ids[i], "x", i), false, "hello");
        racers[i].o.post.done = on_raced;
        racers[i].o.post.context = &racers[i];
        poster_start(g->poster, &racers[i].o.post);
    }
    AWAIT(atomic_load(&g->faulty->met) == 1);
    other.ended = &other_ended;
    one_post_init(g, &other.o, "u", SLICE("y"), false, "hello");
    other.o.post.done = on_raced;
    other.o.post.context = &other;
    poster_start(g->poster, &other.o.post);
    AWAIT(atomic_load(&other_ended) == 1);
    assert_int_equal(other.result, 0);
    assert_int_equal(atomic_load(&ended), 0);
    posting_let_go(g);
    AWAIT(atomic_load(&ended) == ARRAY_COUNT(racers));
    for (unsigned i = 0; i < ARRAY_COUNT(racers); i++) {
        assert_int_equal(racers[i].result, 0);
        assert_int_equal(racers[i].o.post.stored, 1);
        one_post_finish(&racers[i].o);
    }
    one_post_finish(&other.o);
}

static atomic_uint ended_posts;
static atomic_uint failed_posts;

static void on_counted(struct post *post, int result)
{
    struct one_post *o = post->context;
    if (result != 0) {
        assert_int_equal(post->error.code, API_BUSY);
        assert_true(post->retry_after_s > 0);
        atomic_fetch_add(&failed_posts, 1);
    }
    one_post_finish(o);
    atomic_fetch_add(&ended_posts, 1);
}

/* No more than POSTS_MAX posts are under way; the next is told to come again. */
static void too_many_are_refused(void **state)
{
    struct posting *g = *state;
    struct one_post *posts = calloc(POSTS_MAX + 2, sizeof(*posts));
    char id[STORE_ID_BYTES];
    atomic_store(&ended_posts, 0);
    atomic_store(&failed_posts, 0);
    posting_fault(g, FAULT_STALL, VERB(APPEND), -1);
    for (unsigned i = 0; i < POSTS_MAX + 2; i++) {
        one_post_init(g, &posts[i], "t", numbered(id, "x", 0), true, "hello");
        posts[i].post.done = on_counted;
        posts[i].post.context = &posts[i];
        poster_start(g->poster, &posts[i].post);
    }
    assert_int_equal(atomic_load(&failed_posts), 2);
    assert_int_equal(atomic_load(&ended_posts), 2);
    posting_let_go(g);
    AWAIT(atomic_load(&ended_posts) == POSTS_MAX + 2);
    assert_int_equal(atomic_load(&failed_posts), 2);
    store_one(g, SLICE("room"), true);
    free(posts);
}

/* A client that ends has told of every post before that. */
static void an_abort_ends_posts(void **state)
{
    struct posting *g = *state;
    struct one_post o[3];
    static const char *const ids[] = {"a", "b", "b"}; /* the third waits for the second */
    struct racer racers[3];
    atomic_uint ended = 0;
    posting_fault(g, FAULT_STALL, VERB(APPEND), -1);
    for (unsigned i = 0; i < 3; i++) {
        one_post_init(g, &o[i], "t", slice_of(ids[i]), i == 0, "hello");
        racers[i] = (struct racer){.g = g, .ended = &ended};
        o[i].post.done = on_raced;
        o[i].post.context = &racers[i];
        poster_start(g->poster, &o[i].post);
    }
    AWAIT(atomic_load(&g->faulty->met) == 2);
    stream_client_abort(g->client);
    AWAIT(atomic_load(&ended) == 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(racers[i].result, -1);
        one_post_finish(&o[i]);
    }
    stream_client_reset(g->client);
}

/* Entries are found by their ids, whoever wrote them. */
static void entries_are_found(void **state)
{
    struct posting *g = *state;
    struct api_error error;
    struct arena arena;
    struct slice json = {NULL, 0};
    arena_init(&arena, MIB);
    store_one(g, SLICE("x"), true);
    assert_int_equal(poster_find(g->poster, SLICE("t"), SLICE("x"), &arena, &json, &error), 0);
    assert_true(slice_equal(json, SLICE(FIRST("x", "1000000"))));
    assert_int_equal(poster_find(g->poster, SLICE("t"), SLICE("y"), &arena, &json, &error), -1);
    assert_int_equal(error.code, API_NOT_FOUND);
    assert_non_null(strstr(error.message, "\"y\""));
    assert_int_equal(poster_find(g->poster, SLICE("u"), SLICE("x"), &arena, &json, &error), -1);
    assert_int_equal(error.code, API_NOT_FOUND);
    FINE(poster_flush(g->poster, msg));
    assert_int_equal(poster_find(g->poster, SLICE("t"), SLICE("x"), &arena, &json, &error), 0);
    arena_finish(&arena);
}

/* When memory is out a post is refused, has stored nothing, and may come again. */
static void no_memory_no_entry(void **state)
{
    struct posting *g = *state;
    const char *const ids[] = {"a", "b"};
    int result = -1;
    long allowed = 0;
    for (; result != 0; allowed++) {
        struct batch b;
        batch_init(g, &b, ids, 2);
        fault_countdown = allowed;
        result = poster_post(g->poster, &b.post);
        fault_countdown = -1;
        if (result != 0) {
            assert_int_equal(b.post.error.code, API_BUSY);
            posting_expect(g, "t", "");
        }
        batch_finish(&b);
    }
    assert_true(allowed > 3);
    posting_expect(g, "t", "a b");
    fault_countdown = 0;
    struct poster_config config = g->poster->config;
    struct poster *p = NULL;
    assert_int_equal(poster_create(&config, &p), ERR_NOMEM);
    fault_countdown = -1;
}

/* -------------------------------------------------------------------------------------- crashes */

#define WRITERS 4u

struct writer {
    struct posting *g;
    unsigned number;
    int fd;
};

/* Posts one entry after the other, twice each, and tells of each that was acknowledged. */
static void *write_for_ever(void *context)
{
    struct writer *w = context;
    struct posting own = {.now = 1000000 + w->number};
    for (unsigned i = 0;; i++) {
        char id[STORE_ID_BYTES];
        char thread_id[STORE_ID_BYTES];
        struct one_post o;
        (void)numbered(thread_id, "t", i % 3);
        (void)snprintf(id, sizeof(id), "w%u-%08u", w->number, i);
        own.now += 9;
        one_post_init(&own, &o, thread_id, slice_of(id), false, "hello");
        if (poster_post(w->g->poster, &o.post) != 0) {
            _exit(3);
        }
        char line[128];
        int len = snprintf(line, sizeof(line), "%s %s %lld\n", thread_id, id,
                           (long long)own.now - 1);
        if (write(w->fd, line, (size_t)len) != len) {
            _exit(4);
        }
        one_post_finish(&o);
    }
    return NULL;
}

static void run_child(struct posting *g, int fd)
{
    static struct writer writers[WRITERS];
    pthread_t threads[WRITERS];
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    posting_open(g);
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.g = g, .number = i, .fd = fd};
        (void)pthread_create(&threads[i], NULL, write_for_ever, &writers[i]);
    }
    (void)pthread_join(threads[0], NULL);
}

static unsigned count_of(const char *text, const char *part)
{
    unsigned count = 0;
    for (const char *at = text; (at = strstr(at, part)); at += strlen(part)) {
        count++;
    }
    return count;
}

static int keep_max(void *context, const struct entry *entry, size_t index)
{
    int64_t *ts = context;
    (void)index;
    *ts = entry->ts > *ts ? entry->ts : *ts;
    return 0;
}

/* Each acknowledged entry is there once, also when it is posted again; the records say of each
 * thread what its stream does. */
static void check_after_kill(struct posting *g, FILE *told)
{
    char line[128];
    while (fgets(line, sizeof(line), told) && strchr(line, '\n')) {
        char thread_id[STORE_ID_BYTES];
        char id[STORE_ID_BYTES];
        char member[64];
        struct one_post o;
        assert_int_equal(sscanf(line, "%36s %36s", thread_id, id), 2);
        one_post_init(g, &o, thread_id, slice_of(id), false, "again");
        assert_int_equal(poster_post(g->poster, &o.post), 0);
        assert_int_equal(o.post.stored, 0);
        one_post_finish(&o);
        char *text = posting_read(g, thread_id);
        (void)snprintf(member, sizeof(member), "\"id\":\"%s\"", id);
        assert_int_equal(count_of(text, member), 1);
        free(text);
    }
    for (unsigned i = 0; i < 3; i++) {
        char thread_id[STORE_ID_BYTES];
        int64_t ts = 0;
        (void)numbered(thread_id, "t", i);
        char *text = posting_read(g, thread_id);
        assert_int_equal(entry_each(slice_of(text), keep_max, &ts), 0);
        assert_int_equal(posting_ts(g, thread_id), ts);
        free(text);
    }
}

static void wait_for_lines(int fd, FILE *told, unsigned count)
{
    for (unsigned lines = 0; lines < count;) {
        char bytes[256];
        ssize_t got = read(fd, bytes, sizeof(bytes));
        assert_true(got > 0);
        assert_int_equal(fwrite(bytes, 1, (size_t)got, told), got);
        for (ssize_t i = 0; i < got; i++) {
            lines += bytes[i] == '\n';
        }
    }
}

/* Killed in the middle, at several moments. */
static void kills_lose_nothing(void **state)
{
    struct posting g;
    (void)state;
    for (unsigned round = 0; round < 4; round++) {
        char id[STORE_ID_BYTES];
        int ends[2];
        FILE *told = tmpfile();
        posting_init(&g);
        g.interval_ms = 50;
        posting_open(&g);
        posting_add_house(&g);
        for (unsigned i = 0; i < 3; i++) {
            (void)numbered(id, "t", i);
            posting_add_thread(&g, id);
        }
        posting_close(&g);
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            run_child(&g, ends[1]);
        }
        (void)close(ends[1]);
        wait_for_lines(ends[0], told, 10 + 90 * round);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        (void)close(ends[0]);
        rewind(told);
        posting_open(&g);
        FINE(recency_reconcile(g.recency, g.client, msg));
        check_after_kill(&g, told);
        posting_close(&g);
        posting_finish(&g);
        (void)fclose(told);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kills_lose_nothing),
        TEST(fresh_ones_cost_an_append),
        TEST(an_id_stores_once),
        TEST(an_id_belongs_to_its_thread),
        TEST(a_batch_stores_the_rest),
        TEST(posts_of_an_id_at_once_store_one),
        TEST(batches_cross),
        TEST(lost_answers_are_looked_up),
        TEST(failures_have_codes),
        TEST(hopeless_posts_say_so),
        TEST(a_slow_thread_holds_up_no_other),
        TEST(too_many_are_refused),
        TEST(an_abort_ends_posts),
        TEST(entries_are_found),
        TEST(no_memory_no_entry),
    };
    return UNIT_RUN(tests);
}
