/* The thread sleeps until the watch or somebody of this process wants something, and takes a step.
 * Readers are woken once after each step, however much changed in it.
 *
 * When memory runs out in the middle of a change, the state has not changed, and is `behind` the
 * watch's board: from then on all rows are listed anew until that succeeds. However often that
 * happens, and the thread is woken, listings begin no closer than a second. */
#include "app/board_keeper.h"

#include "base/dice.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/tree.h"
#include "client/client.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#define AGAIN_MS       1000u     /* listings begin no closer: each costs as much as all rows */
#define TOLD_MS        10000u    /* lines of the log on one host come no closer */
#define LATE_MS        60000u    /* a host that has told nothing for so long is late */
#define HOST_BYTES_MAX (4 * KIB) /* of a host's JSON */

/* What the log was told of a host. */
struct told {
    enum t3_reader_state state; /* CONNECTING: nothing yet */
    enum t3_rpc_code code;
    bool full;         /* that it is */
    bool late;         /* that it is, on this connection */
    uint64_t since_ms; /* from when on it has been catching up; 0: it is not */
    uint64_t next_ms;  /* no line before */
};

/* A host of the watch, by its index there. */
struct kept_host {
    atomic_int state; /* an enum t3_reader_state; any thread */
    /* the thread's */
    const struct t3_watch_host *host;
    struct told told;
    uint64_t due_ms;         /* when there is something to tell of it; UINT64_MAX: nothing */
    struct tree_node by_due; /* on keeper.due, unless there is nothing */
};

struct board_keeper {
    struct board_keeper_config config;
    struct t3_watch *watch; /* the thread's, once there is one */
    uint64_t epoch;
    int wake_fd;
    atomic_bool stopping;
    atomic_bool retrying;
    bool started;
    pthread_t thread;

    /* the thread's */
    bool behind;
    uint64_t again_ms; /* no listing before */
    uint64_t seen;     /* number of the last change that readers were woken for */
    size_t host_count;
    struct kept_host *hosts;
    struct tree due; /* hosts of which there is something to tell, by when */
    uint64_t dice;   /* of that */

    struct board_state *state; /* it has the lock */
    struct list waiting;       /* of board_reader.link; under the lock */
};

const struct board_state *board_keeper_lock(struct board_keeper *k)
{
    board_state_lock(k->state);
    return k->state;
}

void board_keeper_unlock(struct board_keeper *k)
{
    board_state_unlock(k->state);
}

/* ---------------------------------------------------------------------------------- the changes */

static void on_row(void *context, const struct t3_board_row *row, int gone)
{
    struct board_keeper *k = context;
    int code = gone ? board_state_remove(k->state, row) : board_state_put(k->state, row);

    k->behind = k->behind || code != 0;
}

/* What callers of the API are told. The particulars, which may tell of the inside of this server's
 * network, are for the operator's log. */
static const char *reason_of(enum t3_rpc_code code)
{
    switch (code) {
    case T3_RPC_ERROR_AUTH:
        return "the host does not take this server's token, or there is none";
    case T3_RPC_ERROR_SCOPE:
        return "this server's token may not read the host's threads";
    case T3_RPC_ERROR_VERSION:
    case T3_RPC_ERROR_METHOD:
        return "the host runs a version of T3 Code that cannot be watched";
    case T3_RPC_ERROR_TLS:
        return "the host's certificate is not good";
    case T3_RPC_ERROR_TIMEOUT:
        return "the host does not answer";
    case T3_RPC_ERROR_NETWORK:
    case T3_RPC_ERROR_CLOSED:
        return "there is no connection to the host";
    case T3_RPC_ERROR_MEMORY:
        return "this server has run out of memory, threads or descriptors";
    default:
        return "the host does not answer as it should";
    }
}

static bool has_error(const struct t3_watch_host *host)
{
    return (host->state == T3_READER_LOST || host->state == T3_READER_REFUSED) &&
           host->error.code != T3_RPC_OK;
}

static void format_host(struct buf *out, const struct t3_watch_host *host)
{
    buf_append(out, SLICE("{\"host\":"));
    json_append_string(out, slice_of(host->label));
    buf_append_format(out,
                      ",\"state\":\"%s\",\"full\":%s,\"error\":", t3_reader_state_name(host->state),
                      host->full ? "true" : "false");
    if (has_error(host)) {
        buf_append_format(out, "{\"code\":\"%s\",\"message\":", t3_rpc_code_name(host->error.code));
        json_append_string(out, slice_of(reason_of(host->error.code)));
        buf_append(out, SLICE("}}"));
    } else {
        buf_append(out, SLICE("null}"));
    }
}

static int put_host(struct board_keeper *k, const struct t3_watch_host *host)
{
    char memory[HOST_BYTES_MAX];
    struct buf json;

    buf_init_fixed(&json, memory, sizeof(memory));
    format_host(&json, host);
    atomic_store(&k->hosts[host->index].state, host->state);
    return board_state_put_host(k->state, host->index, slice_of(host->label), buf_slice(&json));
}

static int list_row(void *context, const struct t3_board_row *row)
{
    struct board_keeper *k = context;

    return board_state_put(k->state, row);
}

/* Makes the state what the watch knows. */
static void catch_up(struct board_keeper *k)
{
    int code = 0;

    board_state_begin_listing(k->state);
    for (size_t i = 0; code == 0 && i < k->host_count; i++) {
        code = put_host(k, k->hosts[i].host);
    }
    code = code == 0 ? t3_board_each(t3_watch_board(k->watch), list_row, k) : code;
    code = code == 0 ? board_state_end_listing(k->state) : code;
    k->behind = code != 0;
}

/* Catches up, if it must and may by now. Returns after how many milliseconds it is to be called
 * again; -1: it need not be. */
static int catch_up_in_time(struct board_keeper *k)
{
    uint64_t now = client_now_ms();

    if (k->behind && now >= k->again_ms) {
        k->again_ms = now + AGAIN_MS;
        catch_up(k);
    }
    return k->behind ? (int)(k->again_ms - now) : -1;
}

/* ---------------------------------------------------------------------------------- who is told */

/* Whether the log has something to say of the state of a host, and has not said it. */
static bool is_news(const struct told *told, const struct t3_watch_host *host)
{
    switch (host->state) {
    case T3_READER_LIVE:
        return told->state != T3_READER_LIVE;
    case T3_READER_LOST:
    case T3_READER_REFUSED:
        return told->state != host->state || told->code != host->error.code;
    case T3_READER_CONNECTING:
    case T3_READER_CATCHING_UP:
        break;
    }
    return false;
}

/* Notes what needs no words. It is seen at each change, so `since_ms` is when it began. */
static void follow(struct told *told, const struct t3_watch_host *host, uint64_t now)
{
    told->full = told->full && host->full;
    /* It is tried again because somebody asked for that, and waits for what comes of it. */
    if (host->state == T3_READER_CONNECTING && told->state == T3_READER_REFUSED) {
        told->state = T3_READER_CONNECTING;
    }
    if (host->state != T3_READER_CATCHING_UP) {
        told->since_ms = 0;
        told->late = false;
    } else if (told->since_ms == 0) {
        told->since_ms = now;
    }
}

/* When there is something to tell of a host; UINT64_MAX: nothing. */
static uint64_t due_ms(const struct told *told, const struct t3_watch_host *host)
{
    if (is_news(told, host) || (host->full && !told->full)) {
        return told->next_ms;
    }
    if (told->since_ms > 0 && !told->late) {
        uint64_t late_ms = told->since_ms + LATE_MS;

        return late_ms > told->next_ms ? late_ms : told->next_ms;
    }
    return UINT64_MAX;
}

static struct kept_host *of_due(const struct tree_node *node)
{
    return container_of(node, struct kept_host, by_due);
}

static int compare_due(const struct tree_node *a, const struct tree_node *b)
{
    const struct kept_host *x = of_due(a);
    const struct kept_host *y = of_due(b);

    return x->due_ms == y->due_ms ? (x > y) - (x < y) : x->due_ms > y->due_ms ? 1 : -1;
}

/* Looks at a host that has changed, or of which something was told: when there is more to tell. */
static void schedule(struct board_keeper *k, struct kept_host *h, uint64_t now)
{
    if (h->due_ms != UINT64_MAX) {
        tree_remove(&k->due, &h->by_due);
    }
    follow(&h->told, h->host, now);
    h->due_ms = due_ms(&h->told, h->host);
    if (h->due_ms != UINT64_MAX) {
        tree_insert(&k->due, &h->by_due, dice_roll(&k->dice));
    }
}

static void on_host(void *context, const struct t3_watch_host *host)
{
    struct board_keeper *k = context;

    assert(host->index < k->host_count); /* none is added once it has started */
    schedule(k, &k->hosts[host->index], client_now_ms());
    if (put_host(k, host) != 0) {
        k->behind = true;
    }
}

static void tell_state(const struct logger *logger, const struct t3_watch_host *host)
{
    if (host->state == T3_READER_LIVE && host->skipped > 0) {
        logger_line(logger, LOGGER_WARN, "T3 host \"%s\" is live; %zu broken item%s left out",
                    host->label, host->skipped, host->skipped == 1 ? "" : "s");
    } else if (host->state == T3_READER_LIVE) {
        logger_line(logger, LOGGER_INFO, "T3 host \"%s\" is live", host->label);
    } else {
        logger_line(logger, LOGGER_WARN, "T3 host \"%s\" %s: %s", host->label,
                    host->state == T3_READER_LOST
                        ? "is lost, and tried again"
                        : "refused, and is not tried again before SIGHUP or a restart",
                    host->error.message);
    }
}

static void tell(const struct board_keeper *k, const struct t3_watch_host *host, struct told *told,
                 uint64_t now)
{
    const struct logger *logger = k->config.logger;

    if (is_news(told, host)) {
        tell_state(logger, host);
        told->state = host->state;
        told->code = host->error.code;
    }
    if (host->full && !told->full) {
        logger_line(
            logger, LOGGER_WARN,
            "T3 host \"%s\" has more threads than there is room for: the board has %u rows, "
            "and the rest is left out",
            host->label, T3_ROWS_MAX);
        told->full = true;
    }
    if (told->since_ms > 0 && !told->late && now - told->since_ms >= LATE_MS) {
        logger_line(logger, LOGGER_WARN,
                    "T3 host \"%s\" is connected, and has not told its threads for %u s",
                    host->label, LATE_MS / 1000);
        told->late = true;
    }
    told->next_ms = now + TOLD_MS;
}

/* Tells the operator how the hosts stand; a host that comes and goes, at most so often. Costs what
 * there is to tell, however many hosts there are. Returns after how many milliseconds there is
 * more; -1: nothing. */
static int tell_all(struct board_keeper *k)
{
    uint64_t now = client_now_ms();
    struct tree_node *first = NULL;

    while ((first = tree_first(&k->due)) != NULL && of_due(first)->due_ms <= now) {
        struct kept_host *h = of_due(first);

        tell(k, h->host, &h->told, now);
        schedule(k, h, now);
    }
    return first == NULL ? -1 : (int)(of_due(first)->due_ms - now);
}

/* Wakes who waits, if anything changed. */
static void wake_readers(struct board_keeper *k)
{
    (void)board_keeper_lock(k);
    if (board_state_number(k->state) != k->seen) {
        k->seen = board_state_number(k->state);
        LIST_FOR_EACH(node, &k->waiting)
        {
            struct board_reader *r = container_of(node, struct board_reader, link);

            list_remove(node);
            if (!atomic_exchange(&r->posted, true)) {
                loop_post(r->loop, &r->task);
            }
        }
    }
    board_keeper_unlock(k);
}

void board_reader_init(struct board_reader *r)
{
    list_init(&r->link);
    list_init(&r->task.link);
    atomic_init(&r->posted, false);
}

void board_keeper_wait(struct board_keeper *k, struct board_reader *r)
{
    if (list_empty(&r->link)) {
        list_append(&k->waiting, &r->link);
    }
}

void board_reader_woken(struct board_reader *r)
{
    /* What changes from now on posts it again; what changed before, it will see. */
    atomic_store(&r->posted, false);
}

void board_keeper_leave(struct board_keeper *k, struct board_reader *r)
{
    (void)board_keeper_lock(k);
    list_remove(&r->link);
    board_keeper_unlock(k);
    /* From here on nothing is posted. */
    loop_unpost(r->loop, &r->task);
}

/* ----------------------------------------------------------------------------------- the thread */

/* Sleeps for at most `timeout_ms`; -1: until there is something to do. */
static void sleep_for_work(struct board_keeper *k, int timeout_ms)
{
    struct pollfd fds[] = {{.fd = t3_watch_fd(k->watch), .events = POLLIN},
                           {.fd = k->wake_fd, .events = POLLIN}};
    uint64_t count;

    (void)poll(fds, ARRAY_COUNT(fds), timeout_ms); /* woken for nothing, it looks once more */
    if ((fds[1].revents & POLLIN) != 0) {
        (void)!read(k->wake_fd, &count, sizeof(count)); /* only that it was written to matters */
    }
}

static void *run(void *context)
{
    struct board_keeper *k = context;

    while (!atomic_load(&k->stopping)) {
        if (atomic_exchange(&k->retrying, false)) {
            t3_watch_retry_refused(k->watch);
        }
        t3_watch_step(k->watch, 0);
        int again_ms = catch_up_in_time(k);

        wake_readers(k);
        int sleep_ms = tell_all(k);

        if (again_ms >= 0 && (sleep_ms < 0 || sleep_ms > again_ms)) {
            sleep_ms = again_ms;
        }
        sleep_for_work(k, sleep_ms);
    }
    /* Here, where the connections were made; they are waited for, their hosts are not. */
    t3_watch_destroy(k->watch);
    k->watch = NULL;
    return NULL;
}

static void wake(struct board_keeper *k)
{
    const uint64_t one = 1;

    (void)!write(k->wake_fd, &one, sizeof(one)); /* fails only when it is awake already */
}

/* -------------------------------------------------------------------------------- begin and end */

static int open_parts(struct board_keeper *k, struct errmsg *msg)
{
    const struct t3_watch_options options = {.row = on_row, .host = on_host, .context = k};
    struct t3_watch_options filled = options;
    uint64_t random[2];

    t3_board_options_init(&filled.board);
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return err_set(msg, ERR_IO, "there are no random numbers");
    }
    k->epoch = random[0];
    k->dice = random[1];
    k->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (k->wake_fd < 0) {
        int code = err_from_errno(errno);

        return err_set(msg, code, "cannot make an eventfd: %s", err_text(code));
    }
    const struct board_state_config config = {
        .tombs_max = k->config.tombs_max > 0 ? k->config.tombs_max : BOARD_TOMBS_MAX,
        .epoch = random[0],
        .seed = random[1],
    };
    int code = board_state_create(&config, &k->state);

    if (code != 0) {
        return err_set(msg, code, "%s", err_text(code));
    }
    return t3_watch_create(&filled, &k->watch, msg);
}

int board_keeper_create(const struct board_keeper_config *config, struct board_keeper **ret_keeper,
                        struct errmsg *msg)
{
    struct board_keeper *k = calloc(1, sizeof(*k));

    if (k == NULL) {
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    k->config = *config;
    k->wake_fd = -1;
    list_init(&k->waiting);
    tree_init(&k->due, compare_due);
    int code = open_parts(k, msg);

    if (code != 0) {
        board_keeper_destroy(k);
        return code;
    }
    *ret_keeper = k;
    return 0;
}

struct t3_watch *board_keeper_watch(struct board_keeper *k)
{
    return k->watch;
}

static int add_hosts(struct board_keeper *k)
{
    size_t count = t3_watch_host_count(k->watch);
    int code = 0;

    assert(k->hosts == NULL && count > 0);
    k->hosts = calloc(count, sizeof(*k->hosts));
    if (k->hosts == NULL) {
        return ERR_NOMEM;
    }
    for (size_t i = 0; code == 0 && i < count; i++) {
        k->hosts[i].host = t3_watch_host_at(k->watch, i);
        k->hosts[i].due_ms = UINT64_MAX;
        code = put_host(k, k->hosts[i].host);
        k->host_count = code == 0 ? i + 1 : k->host_count;
    }
    return code;
}

int board_keeper_start(struct board_keeper *k, struct errmsg *msg)
{
    if (t3_watch_host_count(k->watch) == 0) {
        return 0;
    }
    int code = add_hosts(k);

    if (code == 0 && pthread_create(&k->thread, NULL, run, k) != 0) {
        code = ERR_AGAIN;
    }
    k->started = code == 0;
    return code == 0 ? 0
                     : err_set(msg, code, "cannot start the thread that watches T3 hosts: %s",
                               err_text(code));
}

void board_keeper_retry(struct board_keeper *k)
{
    atomic_store(&k->retrying, true);
    wake(k);
}

void board_keeper_stop(struct board_keeper *k)
{
    atomic_store(&k->stopping, true);
    wake(k);
}

void board_keeper_end(struct board_keeper *k)
{
    if (k->started) {
        board_keeper_stop(k);
        (void)pthread_join(k->thread, NULL); /* the thread is ours */
        k->started = false;
    }
}

void board_keeper_destroy(struct board_keeper *k)
{
    if (k == NULL) {
        return;
    }
    board_keeper_end(k);
    t3_watch_destroy(k->watch);
    board_state_destroy(k->state);
    if (k->wake_fd >= 0) {
        (void)close(k->wake_fd); /* nothing is in it */
    }
    free(k->hosts);
    free(k);
}

uint64_t board_keeper_epoch(const struct board_keeper *k)
{
    return k->epoch;
}

void board_keeper_get_stats(struct board_keeper *k, struct board_stats *ret_stats)
{
    *ret_stats = (struct board_stats){.rows = 0};
    (void)board_keeper_lock(k);
    ret_stats->rows = board_state_count(k->state);
    for (size_t i = 0; i < board_state_host_count(k->state); i++) {
        ret_stats->hosts[atomic_load(&k->hosts[i].state)]++;
    }
    board_keeper_unlock(k);
}
