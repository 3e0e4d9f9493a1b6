/* The keeper of the board over a watch that the test plays: what changes reaches readers and the
 * log, and what found no memory is made up for. */
#include "unit/base/unit.h"

#include "unit/base/fault.h"

#include "client/client.h"

static uint64_t now_ms; /* 0: the clock's */

static uint64_t fake_now_ms(void)
{
    return now_ms != 0 ? now_ms : client_now_ms();
}

#define client_now_ms fake_now_ms
#include "app/board_keeper.c"
#include "app/board_state.c"

#include <fcntl.h>
#include <stdio.h>

#define LOG_BYTES 16384

/* ------------------------------------------------------------------- the watch that is played */

#define HOSTS_MAX 64

struct t3_watch {
    struct t3_watch_options options;
    struct t3_board *board;
    struct t3_watch_host hosts[HOSTS_MAX];
    size_t count;
    int fd;
    atomic_uint steps;
    atomic_uint retries;
    atomic_uint looks; /* calls of t3_watch_host_at */
    pthread_mutex_t mutex;
    const char *chunk; /* to be folded in the next step; NULL: none */
    bool changed[HOSTS_MAX];
    struct t3_watch_host next[HOSTS_MAX];
};

static struct t3_watch played; /* there is one at a time */

int t3_watch_create(const struct t3_watch_options *options, struct t3_watch **ret_watch,
                    struct errmsg *msg)
{
    (void)msg;
    played = (struct t3_watch){.options = *options, .fd = eventfd(0, EFD_NONBLOCK)};
    (void)pthread_mutex_init(&played.mutex, NULL);
    assert_int_equal(t3_board_new(&options->board, &played.board, NULL), 0);
    *ret_watch = &played;
    return 0;
}

void t3_watch_destroy(struct t3_watch *watch)
{
    if (watch != NULL) {
        t3_board_free(watch->board);
        (void)close(watch->fd);
    }
}

int t3_watch_fd(const struct t3_watch *watch)
{
    return watch->fd;
}

void t3_watch_step(struct t3_watch *watch, int timeout_ms)
{
    uint64_t count;

    assert_int_equal(timeout_ms, 0);
    (void)!read(watch->fd, &count, sizeof(count));
    (void)pthread_mutex_lock(&watch->mutex);
    if (watch->chunk != NULL) {
        assert_int_equal(t3_board_apply(watch->board, "mac", watch->chunk, strlen(watch->chunk),
                                        watch->options.row, watch->options.context, NULL, NULL),
                         0);
        watch->chunk = NULL;
    }
    for (size_t i = 0; i < watch->count; i++) {
        if (watch->changed[i]) {
            watch->hosts[i] = watch->next[i];
            watch->changed[i] = false;
            watch->options.host(watch->options.context, &watch->hosts[i]);
        }
    }
    atomic_fetch_add(&watch->steps, 1);
    (void)pthread_mutex_unlock(&watch->mutex);
}

void t3_watch_retry_refused(struct t3_watch *watch)
{
    atomic_fetch_add(&watch->retries, 1);
}

size_t t3_watch_host_count(const struct t3_watch *watch)
{
    return watch->count;
}

const struct t3_watch_host *t3_watch_host_at(const struct t3_watch *watch, size_t i)
{
    atomic_fetch_add(&played.looks, 1);
    return &watch->hosts[i];
}

const struct t3_board *t3_watch_board(const struct t3_watch *watch)
{
    return watch->board;
}

/* Plays a step, and waits until it is over and those that follow from it. */
static void play(const char *chunk, const struct t3_watch_host *host)
{
    const uint64_t one = 1;

    (void)pthread_mutex_lock(&played.mutex);
    unsigned steps = atomic_load(&played.steps);

    played.chunk = chunk;
    if (host != NULL) {
        played.next[0] = *host;
        played.changed[0] = true;
    }
    (void)pthread_mutex_unlock(&played.mutex);
    for (unsigned i = 1; i <= 2;
         i++) { /* once the second began, the first one's readers were woken */
        assert_int_equal(write(played.fd, &one, sizeof(one)), (ssize_t)sizeof(one));
        while (atomic_load(&played.steps) < steps + i) {
            (void)sched_yield();
        }
    }
}

static const char *const two_threads =
    "[{\"kind\":\"snapshot\",\"snapshot\":{\"schemaVersion\":2,\"snapshotSequence\":1,\"projects\":"
    "[],"
    "\"threads\":[{\"id\":\"t-1\",\"title\":\"One\",\"status\":\"idle\"},"
    "{\"id\":\"t-2\",\"title\":\"Two\",\"status\":\"idle\"}],\"archivedThreads\":[]}}]";
static const char *const one_thread = "[{\"kind\":\"snapshot\",\"snapshot\":{\"schemaVersion\":2,"
                                      "\"snapshotSequence\":2,\"projects\":[],"
                                      "\"threads\":[{\"id\":\"t-1\",\"title\":\"Uno\",\"status\":"
                                      "\"idle\"}],\"archivedThreads\":[]}}]";

static struct t3_watch_host host_in(enum t3_reader_state state, enum t3_rpc_code code,
                                    const char *message)
{
    struct t3_watch_host host = {.label = "mac", .state = state, .error = {.code = code}};

    (void)snprintf(host.error.message, sizeof(host.error.message), "%s", message);
    return host;
}

/* -------------------------------------------------------------------------------------- the rig */

struct rig {
    struct board_keeper *keeper;
    struct logger logger;
    int log_fds[2];
    struct loop *loop;
    unsigned woken;
    struct board_reader reader;
};

static int set_up(void **state)
{
    static struct rig rig;
    const struct board_keeper_config config = {.logger = &rig.logger, .tombs_max = 4};
    struct errmsg msg;

    now_ms = 0;
    rig = (struct rig){.keeper = NULL};
    assert_int_equal(pipe2(rig.log_fds, O_NONBLOCK), 0);
    rig.logger = (struct logger){.fd = rig.log_fds[1]};
    assert_int_equal(loop_create(&rig.loop), 0);
    assert_int_equal(board_keeper_create(&config, &rig.keeper, &msg), 0);
    played.hosts[0] = host_in(T3_READER_CONNECTING, T3_RPC_OK, "");
    played.count = 1;
    *state = &rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;

    board_keeper_destroy(rig->keeper);
    loop_destroy(rig->loop);
    (void)close(rig->log_fds[0]);
    (void)close(rig->log_fds[1]);
    return 0;
}

static void start(struct rig *rig)
{
    struct errmsg msg;

    assert_int_equal(board_keeper_start(rig->keeper, &msg), 0);
}

/* What the log was told until now. */
static const char *logged(struct rig *rig)
{
    static char text[LOG_BYTES];
    ssize_t len = read(rig->log_fds[0], text, sizeof(text) - 1);

    text[len < 0 ? 0 : len] = '\0';
    return text;
}

static void assert_host(struct rig *rig, const char *json)
{
    char text[1024];
    const struct board_item *host = board_state_host_at(board_keeper_lock(rig->keeper), 0);

    (void)snprintf(text, sizeof(text), "%.*s", (int)host->json.len, host->json.ptr);
    board_keeper_unlock(rig->keeper);
    assert_string_equal(text, json);
}

static size_t count_rows(struct rig *rig)
{
    size_t count = board_state_count(board_keeper_lock(rig->keeper));

    board_keeper_unlock(rig->keeper);
    return count;
}

static void woken(struct task *task)
{
    struct rig *rig = container_of(task, struct rig, reader.task);

    board_reader_woken(&rig->reader);
    rig->woken++;
}

static void wait_for_change(struct rig *rig)
{
    (void)board_keeper_lock(rig->keeper);
    board_keeper_wait(rig->keeper, &rig->reader);
    board_keeper_unlock(rig->keeper);
}

static void begin_reading(struct rig *rig)
{
    rig->reader.loop = rig->loop;
    rig->reader.task.run = woken;
    board_reader_init(&rig->reader);
    wait_for_change(rig);
}

/* ------------------------------------------------------------------------------------ the tests */

/* A reader who waits is woken once for a step, however much changed; one that does not wait is
 * not. */
static void test_readers(void **state)
{
    struct rig *rig = *state;

    start(rig);
    play(NULL, NULL);
    begin_reading(rig);
    play(NULL, NULL); /* nothing changes */
    loop_turn(rig->loop, 0);
    assert_int_equal(rig->woken, 0);
    play(two_threads, NULL);
    loop_turn(rig->loop, 0);
    assert_int_equal(rig->woken, 1);
    assert_int_equal(count_rows(rig), 2);
    play(one_thread, NULL);
    loop_turn(rig->loop, 0);
    assert_int_equal(rig->woken, 1);
    assert_int_equal(count_rows(rig), 1);
    board_keeper_leave(rig->keeper, &rig->reader);
}

/* It may wait again before it was woken: still it is woken once, and not at all once it has
 * left. */
static void test_waits_again(void **state)
{
    struct rig *rig = *state;

    start(rig);
    play(NULL, NULL);
    begin_reading(rig);
    play(two_threads, NULL);
    wait_for_change(rig);
    play(one_thread, NULL);
    loop_turn(rig->loop, 0);
    assert_int_equal(rig->woken, 1);
    wait_for_change(rig);
    play(two_threads, NULL);
    board_keeper_leave(rig->keeper, &rig->reader);
    loop_turn(rig->loop, 0);
    assert_int_equal(rig->woken, 1);
}

/* The API is told the code and a sentence of ours, the log what really was. */
static void test_hosts(void **state)
{
    struct rig *rig = *state;
    struct t3_watch_host host = host_in(T3_READER_LIVE, T3_RPC_ERROR_AUTH, "of before");
    struct board_stats stats;

    start(rig);
    assert_host(rig, "{\"host\":\"mac\",\"state\":\"connecting\",\"full\":false,\"error\":null}");
    play(NULL, &host);
    assert_host(rig, "{\"host\":\"mac\",\"state\":\"live\",\"full\":false,\"error\":null}");
    assert_non_null(strstr(logged(rig), "T3 host \"mac\" is live"));
    host = host_in(T3_READER_REFUSED, T3_RPC_ERROR_AUTH, "401 from 10.0.0.7");
    play(NULL, &host);
    assert_host(rig, "{\"host\":\"mac\",\"state\":\"refused\",\"full\":false,\"error\":{\"code\":"
                     "\"AUTH\",\"message\":\"the host does not take this server's token, or there "
                     "is none\"}}");
    board_keeper_get_stats(rig->keeper, &stats);
    assert_int_equal(stats.hosts[T3_READER_REFUSED], 1);
    assert_int_equal(stats.hosts[T3_READER_LIVE], 0);
    host = host_in(T3_READER_LOST, T3_RPC_ERROR_MEMORY, "out of memory");
    play(NULL, &host); /* it is not the host's fault */
    assert_host(rig, "{\"host\":\"mac\",\"state\":\"lost\",\"full\":false,\"error\":{\"code\":"
                     "\"MEMORY\",\"message\":\"this server has run out of memory, threads or "
                     "descriptors\"}}");
}

/* That there is no room for all threads of a host is told, though its connection is as before. */
static void test_full(void **state)
{
    struct rig *rig = *state;
    struct t3_watch_host host = host_in(T3_READER_CONNECTING, T3_RPC_OK, "");

    start(rig);
    host.full = true;
    play(NULL, &host);
    assert_host(rig, "{\"host\":\"mac\",\"state\":\"connecting\",\"full\":true,\"error\":null}");
}

/* The i-th host is so from now on. Called without the thread. */
static void become(struct rig *rig, size_t i, enum t3_reader_state state, bool full)
{
    played.hosts[i].state = state;
    played.hosts[i].full = full;
    on_host(rig->keeper, &played.hosts[i]);
}

static size_t count_lines(const char *text)
{
    size_t count = 0;

    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++) {
        count++;
    }
    return count;
}

/* Lines on a host that comes and goes are few, and the last state is told in the end. */
static void test_log(void **state)
{
    struct rig *rig = *state;

    now_ms = 1000;
    assert_int_equal(add_hosts(rig->keeper), 0);
    played.hosts[0] = host_in(T3_READER_CONNECTING, T3_RPC_ERROR_NETWORK, "gone\nfar");
    for (int i = 0; i < 50; i++) {
        become(rig, 0, i % 2 == 0 ? T3_READER_LOST : T3_READER_CONNECTING, false);
        (void)tell_all(rig->keeper);
    }
    const char *text = logged(rig);

    assert_non_null(strstr(text, "T3 host \"mac\" is lost, and tried again: gone?far\n"));
    assert_int_equal(count_lines(text), 1);
    become(rig, 0, T3_READER_LIVE, false);
    assert_int_equal(tell_all(rig->keeper), TOLD_MS);
    assert_string_equal(logged(rig), "");
    now_ms += TOLD_MS;
    assert_int_equal(tell_all(rig->keeper), -1);
    assert_non_null(strstr(logged(rig), "is live\n"));
    for (size_t i = 1; i <= 2; i++) {
        become(rig, 0, T3_READER_LOST, false);
        now_ms += TOLD_MS;
        (void)tell_all(rig->keeper);
        played.hosts[0].skipped = i;
        become(rig, 0, T3_READER_LIVE, false);
        now_ms += TOLD_MS;
        (void)tell_all(rig->keeper);
        assert_non_null(strstr(logged(rig), i == 1 ? "is live; 1 broken item left out\n"
                                                   : "is live; 2 broken items left out\n"));
    }
}

/* What is left out is said once, and so is that a connection brings nothing. */
static void test_log_of_what_is_not_there(void **state)
{
    struct rig *rig = *state;

    now_ms = 1000;
    assert_int_equal(add_hosts(rig->keeper), 0);
    become(rig, 0, T3_READER_CATCHING_UP, false);
    assert_int_equal(tell_all(rig->keeper), LATE_MS);
    now_ms += LATE_MS / 2;
    become(rig, 0, T3_READER_CATCHING_UP, false); /* it is no later for that */
    assert_int_equal(tell_all(rig->keeper), LATE_MS / 2);
    assert_string_equal(logged(rig), "");
    now_ms += LATE_MS / 2;
    assert_int_equal(tell_all(rig->keeper), -1);
    assert_non_null(strstr(logged(rig), "has not told its threads for 60 s"));
    now_ms += TOLD_MS;
    assert_int_equal(tell_all(rig->keeper), -1);
    assert_string_equal(logged(rig), "");
    for (int i = 0; i < 3; i++) {
        become(rig, 0, T3_READER_LIVE, true);
        assert_int_equal(tell_all(rig->keeper), -1);
        const char *text = logged(rig);

        assert_true((strstr(text, "is live\n") != NULL) == (i == 0));
        assert_true((strstr(text, "100000 rows, and the rest is left out") != NULL) == (i == 0));
        now_ms += TOLD_MS;
    }
    become(rig, 0, T3_READER_LIVE, false);
    assert_int_equal(tell_all(rig->keeper), -1);
    become(rig, 0, T3_READER_LIVE, true);
    assert_int_equal(tell_all(rig->keeper), -1);
    assert_non_null(strstr(logged(rig), "the rest is left out"));
}

/* Each time that one which refused was tried again is told, also where it refuses as before. */
static void test_log_of_refusals(void **state)
{
    struct rig *rig = *state;

    now_ms = 1000;
    assert_int_equal(add_hosts(rig->keeper), 0);
    played.hosts[0] = host_in(T3_READER_CONNECTING, T3_RPC_ERROR_AUTH, "no");
    for (int i = 0; i < 3; i++) {
        become(rig, 0, T3_READER_CONNECTING, false);
        become(rig, 0, T3_READER_REFUSED, false);
        assert_int_equal(tell_all(rig->keeper), -1);
        assert_non_null(strstr(logged(rig), "T3 host \"mac\" refused, "));
        become(rig, 0, T3_READER_REFUSED, false);
        now_ms += TOLD_MS;
        assert_int_equal(tell_all(rig->keeper), -1);
        assert_string_equal(logged(rig), "");
    }
}

/* Only hosts that changed are looked at, each when its time has come. */
static void test_log_of_many(void **state)
{
    struct rig *rig = *state;

    now_ms = 1000;
    for (size_t i = 0; i < HOSTS_MAX; i++) {
        played.hosts[i] = host_in(T3_READER_CONNECTING, T3_RPC_ERROR_NETWORK, "gone");
        played.hosts[i].index = i;
    }
    played.count = HOSTS_MAX;
    assert_int_equal(add_hosts(rig->keeper), 0);
    atomic_store(&played.looks, 0);
    assert_int_equal(tell_all(rig->keeper), -1);
    become(rig, 7, T3_READER_LOST, false);
    assert_int_equal(tell_all(rig->keeper), -1);
    assert_int_equal(count_lines(logged(rig)), 1);
    assert_int_equal(atomic_load(&played.looks), 0);

    now_ms += TOLD_MS / 2;
    for (size_t i = 0; i < HOSTS_MAX; i++) {
        become(rig, i, T3_READER_LIVE, false);
    }
    assert_int_equal(tell_all(rig->keeper), TOLD_MS / 2);
    assert_int_equal(count_lines(logged(rig)), HOSTS_MAX - 1);
    for (size_t i = 0; i < HOSTS_MAX; i++) {
        become(rig, i, T3_READER_REFUSED, false);
    }
    assert_int_equal(tell_all(rig->keeper), TOLD_MS / 2);
    now_ms += TOLD_MS / 2;
    assert_int_equal(tell_all(rig->keeper), TOLD_MS / 2);
    assert_int_equal(count_lines(logged(rig)), 1); /* it was live for too short a time */
    now_ms += TOLD_MS / 2;
    assert_int_equal(tell_all(rig->keeper), -1);
    assert_int_equal(count_lines(logged(rig)), HOSTS_MAX - 1);
    assert_int_equal(atomic_load(&played.looks), 0);
}

/* Whoever asks for it has hosts tried again that refused. */
static void test_retry(void **state)
{
    struct rig *rig = *state;

    start(rig);
    play(NULL, NULL);
    assert_int_equal(atomic_load(&played.retries), 0);
    board_keeper_retry(rig->keeper);
    while (atomic_load(&played.retries) == 0) {
        (void)sched_yield();
    }
}

/* Without hosts there is neither a thread nor anything on the board. */
static void test_no_hosts(void **state)
{
    struct rig *rig = *state;

    played.count = 0;
    start(rig);
    assert_false(rig->keeper->started);
    board_keeper_retry(rig->keeper);
    board_keeper_stop(rig->keeper);
    assert_int_equal(count_rows(rig), 0);
}

/* Whatever found no memory, what is listed anew is the watch's board. */
static void test_no_memory(void **state)
{
    struct rig *rig = *state;
    struct board_keeper *k = rig->keeper;

    assert_int_equal(add_hosts(k), 0);
    for (long i = 0;; i++) {
        k->behind = false;
        fault_countdown = i;
        for (int n = 0; n < 2; n++) {
            const char *chunk = n == 0 ? two_threads : one_thread;

            assert_int_equal(
                t3_board_apply(played.board, "mac", chunk, strlen(chunk), on_row, k, NULL, NULL),
                0);
        }
        bool good = !k->behind;

        catch_up(k); /* fails likewise */
        fault_countdown = -1;
        catch_up(k);
        assert_false(k->behind);
        assert_int_equal(count_rows(rig), 1);
        const struct board_item *row = board_state_behind(k->state, NULL);

        assert_non_null(memmem(row->json.ptr, row->json.len, "\"Uno\"", 5));
        if (good) {
            assert_true(i > 2);
            return;
        }
        const struct board_state_config config = {.tombs_max = 4, .seed = 1};

        board_state_destroy(k->state);
        assert_int_equal(board_state_create(&config, &k->state), 0);
        assert_int_equal(put_host(k, &played.hosts[0]), 0);
        t3_board_free(played.board);
        assert_int_equal(t3_board_new(NULL, &played.board, NULL), 0);
    }
}

/* While memory is short, wake-ups cost no listing each; nor do listings that succeed. */
static void test_listings_apart(void **state)
{
    struct rig *rig = *state;
    struct board_keeper *k = rig->keeper;

    assert_int_equal(add_hosts(k), 0);
    assert_int_equal(t3_board_apply(played.board, "mac", two_threads, strlen(two_threads), NULL,
                                    NULL, NULL, NULL),
                     0);
    now_ms = 5000;
    assert_int_equal(catch_up_in_time(k), -1);
    assert_int_equal(k->state->listing, 0);
    k->behind = true;
    fault_countdown = 0;
    assert_int_equal(catch_up_in_time(k), AGAIN_MS); /* the first comes at once */
    now_ms += AGAIN_MS - 1;
    assert_int_equal(catch_up_in_time(k), 1);
    assert_int_equal(k->state->listing, 1);
    now_ms++;
    fault_countdown = -1;
    assert_int_equal(catch_up_in_time(k), -1);
    assert_int_equal(k->state->listing, 2);
    assert_int_equal(count_rows(rig), 2);
    k->behind = true;
    assert_int_equal(catch_up_in_time(k), AGAIN_MS);
    assert_int_equal(k->state->listing, 2);
}

/* Each allocation of making one may fail. */
static void test_create(void **state)
{
    (void)state;
    struct logger logger = {.fd = STDERR_FILENO};
    const struct board_keeper_config config = {.logger = &logger};
    struct board_keeper *keeper = NULL;
    struct errmsg msg;

    for (long i = 0; keeper == NULL; i++) {
        fault_countdown = i;
        int code = board_keeper_create(&config, &keeper, &msg);

        fault_countdown = -1;
        assert_true(code == 0 || (code == ERR_NOMEM && msg.text[0] != '\0'));
        assert_true((code == 0) == (keeper != NULL));
    }
    board_keeper_destroy(keeper);
    board_keeper_destroy(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_readers),
        TEST(test_waits_again),
        TEST(test_hosts),
        TEST(test_full),
        TEST(test_log),
        TEST(test_log_of_what_is_not_there),
        TEST(test_log_of_refusals),
        TEST(test_log_of_many),
        TEST(test_retry),
        TEST(test_no_hosts),
        TEST(test_no_memory),
        TEST(test_listings_apart),
        cmocka_unit_test(test_create),
    };

    return UNIT_RUN(tests);
}
