/* The watch over readers that are real and connections that do what a test says. What was told is
 * written down in lines: a host's state with its code, rows behind + and -. */
#include "unit/t3/fake_time.h"
#include "unit/t3/rpc_fake.h"

#include "unit/t3/board.h"

#include "t3/reader.h"

#include <poll.h>
#include <sys/resource.h>

#include "t3/wake.c"

/* What the next folds, and the next subscription, end with instead of what they would. */
static int scripted_apply_code;
static int scripted_subscribe_code;

static inline int scripted_apply(struct t3_board *board, const char *host, const char *json,
                                 size_t len, t3_board_change_fn changed, void *context,
                                 struct t3_board_counts *ret_counts,
                                 struct t3_board_error *ret_error)
{
    if (scripted_apply_code != T3_BOARD_OK) {
        *ret_error = (struct t3_board_error){.code = (enum t3_board_code)scripted_apply_code,
                                             .message = "as the test says"};
        return scripted_apply_code;
    }
    return t3_board_apply(board, host, json, len, changed, context, ret_counts, ret_error);
}

static inline int scripted_subscribe(struct t3_reader *reader, const char *method,
                                     const char *payload, uint64_t *ret_id,
                                     struct t3_rpc_error *ret_error)
{
    if (scripted_subscribe_code != T3_RPC_OK) {
        return fake_fail(ret_error, (enum t3_rpc_code)scripted_subscribe_code);
    }
    return t3_reader_subscribe(reader, method, payload, ret_id, ret_error);
}

#define t3_board_apply      scripted_apply
#define t3_reader_subscribe scripted_subscribe

#include "unit/base/fault.h"

#include "t3/watch.c"
#include "base/dice.h"

#undef t3_board_apply
#undef t3_reader_subscribe

#define MAC   "http://mac"
#define LINUX "http://linux"

static struct buf told;

static void tell_row(void *context, const struct t3_board_row *row, int gone)
{
    assert_ptr_equal(context, &told);
    buf_append_format(&told, "%s ", row->host.data);
    show_change(&told, row, gone);
}

static void tell_state(void *context, const struct t3_watch_host *host)
{
    assert_ptr_equal(context, &told);
    buf_append_format(&told, "%s %s%s%s%s\n", host->label, t3_reader_state_name(host->state),
                      host->error.code != T3_RPC_OK ? " " : "",
                      host->error.code != T3_RPC_OK ? t3_rpc_code_name(host->error.code) : "",
                      host->full ? " full" : "");
}

static struct t3_watch *new_watch_of(size_t max_rows)
{
    struct t3_watch_options options = {.row = tell_row, .host = tell_state, .context = &told};
    struct t3_watch *w = NULL;
    struct errmsg msg;

    fake_due_ms = 0;
    fake_acks = 0;
    fake_connects = 0;
    buf_finish(&told);
    buf_init(&told, 1u << 20);
    t3_board_options_init(&options.board);
    options.board.max_rows = max_rows;
    assert_int_equal(t3_watch_create(&options, &w, &msg), 0);
    return w;
}

static struct t3_watch *new_watch(void)
{
    return new_watch_of(100);
}

static void add(struct t3_watch *w, const char *label, const char *url)
{
    struct errmsg msg;

    assert_int_equal(t3_watch_add(w, label, url, NULL, &msg), 0);
}

static bool watch_is_ready(const struct t3_watch *w)
{
    struct pollfd ready = {.fd = t3_watch_fd(w), .events = POLLIN};

    return poll(&ready, 1, 0) == 1;
}

/* Steps as long as there is something to do, and compares what was told. */
static void assert_watch_tells(struct t3_watch *w, const char *want)
{
    while (watch_is_ready(w)) {
        t3_watch_step(w, 0);
    }
    buf_append_char(&told, '\0');
    assert_string_equal(told.ptr, want);
    buf_clear(&told);
}

/* A chunk of the connection that was selected, in the words of board.h. */
static void send(const char *text)
{
    struct buf json;

    buf_init(&json, 1u << 20);
    spell(text, &json);
    buf_append_char(&json, '\0');
    fake_chunk(1, json.ptr);
    buf_finish(&json);
}

static void finish(struct t3_watch *w)
{
    t3_watch_destroy(w);
    buf_finish(&told);
}

/* The pause of the first host is over. */
static void sleep_out(const struct t3_watch *w)
{
    fake_sleep((uint64_t)t3_watch_host_at(w, 0)->delay_ms);
}

#define ONE SHELL("{'id':'t','title':'One','status':'idle'}")
#define TWO                                          \
    SHELL("{'id':'t','title':'One','status':'idle'}" \
          ",{'id':'u','title':'Two','status':'running'}")

/* A host connects, its snapshot is folded, then acknowledged, and then it is live. */
static void test_watching(void **state)
{
    struct t3_watch *w = new_watch();

    (void)state;
    add(w, "mac", MAC);
    assert_int_equal(t3_watch_host_count(w), 1);
    assert_string_equal(t3_watch_host_at(w, 0)->url, MAC);
    assert_watch_tells(w, "mac connecting\n");
    assert_string_equal(fake->requests[0].method, "orchestration.subscribeShell");
    assert_string_equal(fake->requests[0].payload, "{\"requestCompletionMarker\":true}");
    fake_open();
    send(ONE);
    assert_watch_tells(w, "mac catching up\nmac +t|One|idle|~|~\nmac live\n");
    assert_int_equal(fake_acks, 1);
    send("[{'kind':'synchronized'}]"); /* asked for, never waited for */
    send(UPDATED("'title':'More','status':'idle'},'location':'active'"));
    assert_watch_tells(w, "mac +t|More|idle|~|~\n");
    assert_int_equal(fake_acks, 3);
    assert_int_equal(t3_board_count(t3_watch_board(w)), 1);
    finish(w);
    assert_null(fake);
}

/* Rows of a host that is lost stay; those that went meanwhile go with the next snapshot. */
static void test_reconnect(void **state)
{
    struct t3_watch *w = new_watch();

    (void)state;
    add(w, "mac", MAC);
    assert_watch_tells(w, "mac connecting\n");
    fake_open();
    send(TWO);
    assert_watch_tells(w,
                       "mac catching up\nmac +t|One|idle|~|~\nmac +u|Two|running|~|~\nmac live\n");
    fake_closed(T3_RPC_ERROR_NETWORK);
    assert_watch_tells(w, "mac lost NETWORK\n");
    assert_int_equal(t3_board_count(t3_watch_board(w)), 2);
    assert_in_range(t3_watch_host_at(w, 0)->delay_ms, 250, 500);
    sleep_out(w);
    assert_watch_tells(w, "");
    assert_int_equal(t3_watch_host_at(w, 0)->error.code, T3_RPC_ERROR_NETWORK);
    fake_open();
    send(ONE);
    assert_watch_tells(w, "mac catching up\nmac -u|Two|running|~|~\nmac live\n");
    finish(w);
}

/* A host that cannot be reached is lost, for one reason after the other, each told once, and until
 * it is reached or refuses; what was refused is connecting when it is tried again. */
static void test_lost(void **state)
{
    struct t3_watch *w = new_watch();

    (void)state;
    add(w, "mac", MAC);
    assert_watch_tells(w, "mac connecting\n");
    fake_closed(T3_RPC_ERROR_NETWORK);
    assert_watch_tells(w, "mac lost NETWORK\n");
    for (int i = 0; i < 3; i++) {
        sleep_out(w);
        assert_watch_tells(w, "");
        assert_int_equal(t3_watch_host_at(w, 0)->state, T3_READER_LOST);
        assert_int_equal(t3_watch_host_at(w, 0)->error.code, T3_RPC_ERROR_NETWORK);
        fake_closed(T3_RPC_ERROR_NETWORK);
        assert_watch_tells(w, "");
    }
    assert_true(t3_watch_host_at(w, 0)->delay_ms > 500);
    t3_watch_retry(w, "mac");
    assert_watch_tells(w, "");
    fake_closed(T3_RPC_ERROR_TIMEOUT);
    assert_watch_tells(w, "mac lost TIMEOUT\n");
    sleep_out(w);
    assert_watch_tells(w, "");
    fake_open();
    assert_watch_tells(w, "mac catching up\n");
    assert_int_equal(t3_watch_host_at(w, 0)->error.code, T3_RPC_OK);
    fake_closed(T3_RPC_ERROR_TIMEOUT);
    assert_watch_tells(w, "mac lost TIMEOUT\n");
    sleep_out(w);
    assert_watch_tells(w, "");
    fake_closed(T3_RPC_ERROR_AUTH);
    assert_watch_tells(w, "mac refused AUTH\n");
    t3_watch_retry(w, "mac");
    assert_watch_tells(w, "mac connecting\n");
    fake_closed(T3_RPC_ERROR_TIMEOUT);
    assert_watch_tells(w, "mac lost TIMEOUT\n");
    finish(w);
}

/* Asked without looking, however often, only those are tried that nothing else would try: a host
 * that is lost keeps its pause. */
static void test_retry_refused(void **state)
{
    struct t3_watch *w = new_watch();

    (void)state;
    add(w, "mac", MAC);
    add(w, "linux", LINUX);
    assert_watch_tells(w, "mac connecting\nlinux connecting\n");
    fake_select(LINUX);
    fake_closed(T3_RPC_ERROR_NETWORK);
    assert_watch_tells(w, "linux lost NETWORK\n");
    fake_select(MAC);
    fake_closed(T3_RPC_ERROR_AUTH);
    assert_watch_tells(w, "mac refused AUTH\n");
    int before = fake_connects;

    for (int i = 0; i < 3; i++) {
        t3_watch_retry_refused(w);
        assert_watch_tells(w, i == 0 ? "mac connecting\n" : "");
    }
    assert_int_equal(fake_connects, before + 1);
    finish(w);
}

/* Several hosts are one board; each has its own connection and state. */
static void test_hosts(void **state)
{
    struct t3_watch *w = new_watch();

    (void)state;
    add(w, "mac", MAC);
    add(w, "linux", LINUX);
    assert_int_equal(t3_watch_host_at(w, 0)->index, 0);
    assert_int_equal(t3_watch_host_at(w, 1)->index, 1);
    assert_watch_tells(w, "mac connecting\nlinux connecting\n");
    fake_select(LINUX);
    fake_open();
    send(ONE);
    assert_watch_tells(w, "linux catching up\nlinux +t|One|idle|~|~\nlinux live\n");
    fake_select(MAC);
    fake_closed(T3_RPC_ERROR_AUTH);
    assert_watch_tells(w, "mac refused AUTH\n");
    assert_int_equal(t3_watch_host_at(w, 0)->state, T3_READER_REFUSED);
    assert_int_equal(t3_watch_host_at(w, 1)->state, T3_READER_LIVE);
    t3_watch_retry(w, "linux"); /* it has a connection */
    t3_watch_retry(w, "nobody");
    assert_watch_tells(w, "");
    t3_watch_retry(w, "mac");
    assert_watch_tells(w, "mac connecting\n");
    fake_select(MAC);
    fake_closed(T3_RPC_ERROR_AUTH);
    assert_watch_tells(w, "mac refused AUTH\n");
    t3_watch_retry(w, NULL);
    assert_watch_tells(w, "mac connecting\n");
    finish(w);
}

/* A server of the first protocol is refused in a sentence that says what is needed. */
static void test_version(void **state)
{
    struct t3_watch *w = new_watch();

    (void)state;
    add(w, "mac", MAC);
    assert_watch_tells(w, "mac connecting\n");
    fake_open();
    send("[{'kind':'snapshot','snapshot':{'snapshotSequence':1,'projects':[],'threads':[],"
         "'updatedAt':@01:00}}]");
    assert_watch_tells(w, "mac catching up\nmac refused VERSION\n");
    assert_string_equal(t3_watch_host_at(w, 0)->error.message,
                        "mac runs a T3 Code server of the first orchestration protocol; update it "
                        "to one that speaks orchestration protocol 2");
    assert_int_equal(fake_acks, 0);
    assert_null(fake);
    finish(w);
}

/* What is no chunk is lost and asked for anew; so is what memory did not suffice for. */
static void test_cannot_be_folded(void **state)
{
    static const struct {
        int code;
        const char *lost;
    } cases[] = {{T3_BOARD_ERROR_FORMAT, "mac catching up\nmac lost PROTOCOL\n"},
                 {T3_BOARD_ERROR_MEMORY, "mac catching up\nmac lost MEMORY\n"}};
    struct t3_watch *w = new_watch();

    (void)state;
    add(w, "mac", MAC);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        assert_watch_tells(w, i == 0 ? "mac connecting\n" : "");
        fake_open();
        send(ONE);
        scripted_apply_code = cases[i].code;
        assert_watch_tells(w, cases[i].lost);
        scripted_apply_code = T3_BOARD_OK;
        assert_string_equal(t3_watch_host_at(w, 0)->error.message, "as the test says");
        assert_int_equal(fake_acks, 0);
        sleep_out(w);
    }
    assert_watch_tells(w, "");
    fake_open();
    fake_chunk(1, "[[7]]"); /* a hostile item is skipped and counted */
    send(ONE);
    assert_watch_tells(w, "mac catching up\nmac live\nmac +t|One|idle|~|~\n");
    assert_int_equal(t3_watch_host_at(w, 0)->skipped, 1);
    finish(w);
}

/* Threads beyond the limit are left out and the host is full, until a snapshot fits again. */
static void test_full(void **state)
{
    struct t3_watch *w = new_watch_of(1);

    (void)state;
    add(w, "mac", MAC);
    assert_watch_tells(w, "mac connecting\n");
    fake_open();
    send(TWO);
    assert_watch_tells(
        w, "mac catching up\nmac +t|One|idle|~|~\nmac catching up full\nmac live full\n");
    assert_int_equal(fake_acks, 1);
    send(UPDATED("'title':'More','status':'idle'},'location':'active'"));
    assert_watch_tells(w, "mac +t|More|idle|~|~\n");
    fake_closed(T3_RPC_ERROR_CLOSED);
    assert_watch_tells(w, "mac lost CLOSED full\n");
    sleep_out(w);
    assert_watch_tells(w, "");
    fake_open();
    send(ONE);
    assert_watch_tells(w, "mac catching up full\nmac +t|One|idle|~|~\nmac catching up\nmac live\n");
    finish(w);
}

/* A server that fails to give its shell is asked again after a pause, also where memory did not
 * suffice to ask. */
static void test_shell_fails(void **state)
{
    struct t3_watch *w = new_watch();

    (void)state;
    add(w, "mac", MAC);
    assert_watch_tells(w, "mac connecting\n");
    fake_open();
    fake_error(1, T3_RPC_ERROR_FAILED);
    assert_watch_tells(w, "mac catching up\nmac lost FAILED\n");
    sleep_out(w);
    scripted_subscribe_code = T3_RPC_ERROR_MEMORY;
    assert_watch_tells(w, "mac lost MEMORY\n");
    assert_int_equal(fake_connects, 1);
    scripted_subscribe_code = T3_RPC_OK;
    sleep_out(w);
    assert_watch_tells(w, "");
    assert_int_equal(fake->request_count, 1);
    fake_open();
    send(ONE);
    assert_watch_tells(w, "mac catching up\nmac +t|One|idle|~|~\nmac live\n");
    fake_error(1, T3_RPC_ERROR_DIED); /* that is all that the host had to tell */
    assert_watch_tells(w, "mac lost DIED\n");
    sleep_out(w);
    assert_watch_tells(w, "");
    fake_open();
    send(TWO);
    assert_watch_tells(w, "mac catching up\nmac +u|Two|running|~|~\nmac live\n");
    finish(w);
}

/* A host that tells a lot does not starve the others: a step takes some events of each. */
static void test_fairness(void **state)
{
    struct t3_watch *w = new_watch();

    (void)state;
    add(w, "mac", MAC);
    add(w, "linux", LINUX);
    assert_watch_tells(w, "mac connecting\nlinux connecting\n");
    fake_select(MAC);
    fake_open();
    for (int i = 0; i < 100; i++) {
        send(ONE);
        fake->requests[0].unacked = true;
    }
    fake_select(LINUX);
    fake_open();
    send(ONE);
    t3_watch_step(w, 0);
    assert_int_equal(t3_watch_host_at(w, 1)->state, T3_READER_LIVE);
    fake_select(MAC);
    assert_true(fake->count >= 100 - EVENTS_PER_STEP);
    assert_true(watch_is_ready(w));
    finish(w);
}

/* More hosts than a step asks: all come to their turn. */
static void test_many_hosts(void **state)
{
    enum {
        HOSTS = 3 * HOSTS_PER_STEP + 1
    };
    struct t3_watch *w = new_watch();
    char label[16];
    char url[32];

    (void)state;
    for (int i = 0; i < HOSTS; i++) {
        (void)snprintf(label, sizeof(label), "h%d", i);
        (void)snprintf(url, sizeof(url), "http://h%d", i);
        add(w, label, url);
    }
    while (watch_is_ready(w)) {
        t3_watch_step(w, -1);
    }
    assert_int_equal(fake_connects, HOSTS);
    fake_select("http://h100");
    fake_open();
    buf_clear(&told);
    t3_watch_step(w, -1);
    assert_watch_tells(w, "h100 catching up\n");
    finish(w);
}

/* Labels and URLs that make no sense are refused in a sentence, and add nothing. */
static void test_arguments(void **state)
{
    struct t3_watch_options options = {.row = tell_row, .host = tell_state};
    struct t3_reader_options reader;
    struct t3_watch *w = new_watch();
    struct t3_watch *none = NULL;
    struct errmsg msg;
    char label[257];

    (void)state;
    memset(label, 'x', sizeof(label));
    label[256] = '\0';
    assert_int_equal(t3_watch_add(w, "", MAC, NULL, &msg), ERR_INVALID);
    assert_int_equal(t3_watch_add(w, label, MAC, NULL, &msg), ERR_INVALID);
    assert_string_equal(msg.text, "a host's name has 256 bytes; it must have 1 to 255");
    add(w, label + 1, MAC);
    assert_int_equal(t3_watch_add(w, label + 1, LINUX, NULL, &msg), ERR_INVALID);
    assert_non_null(strstr(msg.text, "there twice"));
    t3_reader_options_init(&reader);
    reader.multiplier = 0;
    assert_int_equal(t3_watch_add(w, "linux", LINUX, &reader, &msg), ERR_INVALID);
    assert_non_null(strstr(msg.text, "linux"));
    assert_non_null(strstr(msg.text, "multiplier"));
    assert_int_equal(t3_watch_host_count(w), 1);
    finish(w);
    t3_watch_destroy(NULL);
    t3_board_options_init(&options.board);
    options.board.snippet_graphemes = 0;
    assert_int_equal(t3_watch_create(&options, &none, &msg), ERR_INVALID);
    assert_non_null(strstr(msg.text, "snippet_graphemes"));
    assert_null(none);
}

/* No more than 1,024 hosts. */
static void test_hosts_max(void **state)
{
    struct t3_watch *w = new_watch();
    struct rlimit before;
    struct errmsg msg;
    char label[16];

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){before.rlim_max, before.rlim_max}),
                     0);
    for (unsigned i = 0; i < T3_HOSTS_MAX; i++) {
        (void)snprintf(label, sizeof(label), "h%u", i);
        add(w, label, MAC);
    }
    assert_int_equal(t3_watch_add(w, "more", MAC, NULL, &msg), ERR_INVALID);
    assert_string_equal(msg.text, "there are more than 1024 hosts");
    finish(w);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* Each allocation and descriptor fails in its turn: an error, and nothing is left behind. */
static void test_faults(void **state)
{
    struct t3_watch_options options = {.row = tell_row, .host = tell_state, .context = &told};
    struct t3_watch *w = NULL;
    struct rlimit before;
    struct errmsg msg;
    int lowest = dup(0);
    int code = ERR_NOMEM;

    (void)state;
    (void)close(lowest);
    t3_board_options_init(&options.board);
    fault_countdown = 0;
    assert_int_equal(t3_watch_create(&options, &w, &msg), ERR_NOMEM);
    fault_countdown = -1;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, before.rlim_max}), 0);
    code = t3_watch_create(&options, &w, &msg);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(code, ERR_IO);
    w = new_watch();
    for (long i = 0; i < 3; i++) {
        fault_countdown = i;
        code = t3_watch_add(w, "mac", MAC, NULL, &msg);
        fault_countdown = -1;
        assert_int_equal(code, i < 2 ? ERR_NOMEM : 0);
    }
    scripted_subscribe_code = T3_RPC_ERROR_MEMORY;
    assert_int_equal(t3_watch_add(w, "linux", LINUX, NULL, &msg), ERR_NOMEM);
    scripted_subscribe_code = T3_RPC_OK;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, before.rlim_max}), 0);
    code = t3_watch_add(w, "linux", LINUX, NULL, &msg);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(code, ERR_NOMEM);
    assert_int_equal(t3_watch_host_count(w), 1);
    finish(w);
    assert_int_equal(dup(0), lowest);
    (void)close(lowest);
}

#define RANDOM_ROUNDS  200
#define RANDOM_STEPS   80
#define RANDOM_THREADS 5

/* A server at random, and what its threads are. */
struct server {
    uint64_t seed;
    int titles[RANDOM_THREADS]; /* 0: there is no such thread */
    int changes;
};

static unsigned roll(struct server *s, unsigned sides)
{
    return (unsigned)(dice_roll(&s->seed) % sides);
}

/* Changes a thread, and says so if somebody listens. */
static void change_thread(struct server *s, bool listening)
{
    unsigned i = roll(s, RANDOM_THREADS);
    char text[256];

    s->titles[i] = roll(s, 3) == 0 ? 0 : ++s->changes;
    if (!listening) {
        return;
    }
    if (s->titles[i] == 0) {
        (void)snprintf(text, sizeof(text),
                       "[{'kind':'thread.removed','threadId':'t%u','location':'active'}]", i);
    } else {
        (void)snprintf(text, sizeof(text),
                       "[{'kind':'thread.updated','sequence':1,'location':'active','thread':"
                       "{'id':'t%u','title':'%d','status':'idle'}}]",
                       i, s->titles[i]);
    }
    send(text);
}

static void send_snapshot(const struct server *s)
{
    struct buf text;
    const char *comma = "";

    buf_init(&text, 1u << 16);
    buf_append(&text, SLICE("[{'kind':'snapshot','snapshot':{'schemaVersion':2,'projects':[],"
                            "'threads':["));
    for (int i = 0; i < RANDOM_THREADS; i++) {
        if (s->titles[i] != 0) {
            buf_append_format(&text, "%s{'id':'t%d','title':'%d','status':'idle'}", comma, i,
                              s->titles[i]);
            comma = ",";
        }
    }
    buf_append(&text, SLICE("],'archivedThreads':[]}}]"));
    buf_append_char(&text, '\0');
    send(text.ptr);
    buf_finish(&text);
}

static void work_off(struct t3_watch *w)
{
    while (watch_is_ready(w)) {
        t3_watch_step(w, 0);
    }
}

/* Breaks the connection that there is, or lets the next one come about. */
static void break_or_connect(struct server *s, struct t3_watch *w, bool *listening)
{
    if (*listening) {
        fake_closed(T3_RPC_ERROR_NETWORK);
        *listening = false;
    } else {
        work_off(w);
        if (fake == NULL) {
            sleep_out(w);
            work_off(w);
        }
        fake_open();
        send_snapshot(s);
        *listening = true;
    }
}

/* Whatever a server does while it is heard and while it is not: in the end its rows are shown. */
static void test_at_random(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < RANDOM_ROUNDS; round++) {
        struct server s = {.seed = round};
        struct t3_watch *w = new_watch();
        bool listening = false;
        struct buf want;

        add(w, "mac", MAC);
        for (int i = 0; i < RANDOM_STEPS || !listening; i++) {
            if (roll(&s, 8) == 0) {
                break_or_connect(&s, w, &listening);
            } else if (roll(&s, 4) == 0) {
                t3_watch_step(w, 0);
            } else {
                change_thread(&s, listening);
            }
            fake = fakes[0];
        }
        work_off(w);
        buf_init(&want, 1u << 16);
        for (int i = 0; i < RANDOM_THREADS; i++) {
            if (s.titles[i] != 0) {
                buf_append_format(&want, "t%d|%d|idle|~|~\n", i, s.titles[i]);
            }
        }
        buf_append_char(&want, '\0');
        assert_rows(t3_watch_board(w), want.ptr);
        buf_finish(&want);
        finish(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_watching),
        cmocka_unit_test(test_reconnect),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_retry_refused),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_version),
        cmocka_unit_test(test_cannot_be_folded),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_shell_fails),
        cmocka_unit_test(test_fairness),
        cmocka_unit_test(test_many_hosts),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_hosts_max),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_at_random),
    };

    return UNIT_RUN(tests);
}
