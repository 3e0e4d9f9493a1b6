/* Order of starting: signals are blocked first, so that every thread inherits that and only the
 * main thread sees them; then the pool, the engine (recovery), the workers' sockets, and only
 * when all of that is good the threads and the line that says so. Stopping is the reverse. */
#include "serve/server.h"

#include "base/pool.h"
#include "log/sys.h"
#include "serve/control_service.h"
#include "serve/door.h"
#include "serve/early_end.h"
#include "serve/mount.h"
#include "serve/notify.h"
#include "serve/reply.h"
#include "serve/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define POOL_THREADS             4u
#define INPUT_BYTES_MAX          (HTTP_HEAD_BYTES_MAX + 16 * KIB)
#define HOT_BYTES_PER_CHECKPOINT 2 /* bytes may wait for one checkpoint while the next one fills */
#define LOG_BYTES_PER_CHECKPOINT 8 /* of the log, small records too, before writes wait */
#define IDLE_MS                  30000
#define SWEEP_INTERVAL_MS        1000
#define DRAIN_GENTLE_SECONDS     7 /* then what has not come whole is refused */
#define DRAIN_HURRY_SECONDS      2 /* later every connection is dropped */
#define DRAIN_SECONDS_MAX        10

static void block_signals(sigset_t *ret_set)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    (void)sigemptyset(ret_set);
    (void)sigaddset(ret_set, SIGTERM);
    (void)sigaddset(ret_set, SIGINT);
    (void)sigaddset(ret_set, SIGHUP);
    (void)sigaddset(ret_set, SIGALRM);
    (void)pthread_sigmask(SIG_BLOCK, ret_set, NULL);
    (void)sigaction(SIGPIPE, &ignore, NULL); /* a write to a closed socket is an error code */
}

/* Hands the limits in force to those who hold to them; the others look them up. */
static void set_limits(struct server *server)
{
    const struct serve_limits *limits = &server_tunables(server)->limits;

    engine_set_quota(server->engine, limits->streams_max, limits->bytes_max);
    rate_set(&server->requests, limits->requests_per_second);
    rate_set(&server->body_bytes_in, limits->body_bytes_per_second);
}

/* On one of the store's threads. */
static void on_trouble(void *context, enum trouble trouble, const char *sentence)
{
    static const enum logger_level levels[] = {
        [TROUBLE_OVER] = LOGGER_INFO,
        [TROUBLE_ODD] = LOGGER_WARN,
        [TROUBLE_BROKEN] = LOGGER_ERROR,
    };
    const struct server *server = context;

    logger_line(&server->config->logger, levels[trouble], "%s", sentence);
}

static struct engine_config engine_config_of(struct server *server, struct sys *sys)
{
    const struct serve_config *config = server->config;

    return (struct engine_config){
        .store =
            {
                .dir = config->data_dir,
                .durability = config->durability,
                .segment_bytes = config->wal_segment_bytes,
                .checkpoint_bytes = config->checkpoint_bytes,
                .checkpoint_interval_ms = config->checkpoint_interval_ms,
                .log_bytes_max = config->checkpoint_bytes * LOG_BYTES_PER_CHECKPOINT +
                                 config->body_bytes_max * 2,
                .staged_bytes_max = (size_t)(config->body_bytes_max * 2 + 64ull * MIB),
                .sys = sys,
                .threads = true,
            },
        .pool = server->pool,
        .read_page_bytes = config->read_page_bytes,
        .hot_bytes_max = config->checkpoint_bytes * HOT_BYTES_PER_CHECKPOINT +
                         config->body_bytes_max * 2,
        .cache_bytes_max = STREAM_CACHE_BYTES_MAX,
        .idle_ms = IDLE_MS,
        .sweep_interval_ms = SWEEP_INTERVAL_MS,
        .trouble = on_trouble,
        .trouble_context = server,
    };
}

/* Stream ids count up from 1 in every data directory. A directory that was emptied, or kept in
 * memory, must not make tags that match those of its earlier life, so each life has its own. */
static uint64_t etag_salt(void)
{
    uint64_t salt = 0;

    if (getrandom(&salt, sizeof(salt), 0) != sizeof(salt)) {
        salt = (uint64_t)time(NULL) << 20;
    }
    return salt;
}

static uint64_t wall_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int open_engine(struct server *server, struct sys *sys, struct errmsg *msg)
{
    const struct serve_config *config = server->config;
    struct store_report report;
    int code = pool_create(POOL_THREADS, &server->pool);

    if (code != 0) {
        return err_set(msg, code, "cannot start threads: %s", err_text(code));
    }
    struct engine_config engine = engine_config_of(server, sys);

    code = engine_open(&engine, &server->engine, &report, msg);
    if (code != 0) {
        pool_destroy(server->pool);
        return code;
    }
    logger_line(&config->logger, LOGGER_INFO, "%s", report.text);
    return 0;
}

/* All workers accept from the socket of the first one. */
static int init_workers(struct server *server, struct worker *workers, unsigned count,
                        struct errmsg *msg)
{
    int code = worker_init(&workers[0], server, NULL, msg);

    for (unsigned i = 1; code == 0 && i < count; i++) {
        code = worker_init(&workers[i], server, &workers[0], msg);
    }
    return code;
}

static void stop_workers(struct worker *workers, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        worker_drain(&workers[i]);
    }
    for (unsigned i = 0; i < count; i++) {
        (void)pthread_join(workers[i].thread, NULL); /* fails for broken code only */
    }
}

static int start_workers(struct worker *workers, unsigned count, struct errmsg *msg)
{
    for (unsigned i = 0; i < count; i++) {
        if (pthread_create(&workers[i].thread, NULL, worker_run, &workers[i]) != 0) {
            stop_workers(workers, i);
            return err_set(msg, ERR_AGAIN, "cannot start worker thread %u of %u", i + 1, count);
        }
    }
    return 0;
}

/* Says where the server is reached, once it is. */
static void announce(const struct server *server, const struct worker *first, FILE *ready)
{
    const struct serve_config *config = server->config;
    char address[128];

    listener_address(first->listener, address, sizeof(address));
    logger_line(&config->logger, LOGGER_INFO,
                "listening on %s with %u workers, %u connections at most, data in %s%s", address,
                config->worker_count, config->tunables.connection_count_max,
                config->durability == DURABILITY_MEMORY ? "memory beside " : "", config->data_dir);
    if (config->mount != NULL) {
        (void)fprintf(ready, "%s listening on http://%s/\n", config->mount->program, address);
    } else {
        (void)fprintf(ready, "arbe streams listening on http://%s/v1/stream/\n", address);
    }
    (void)fflush(ready); /* who started us may have stopped listening; that is no reason to stop */
}

/* The last resort, when even the loops do not come back: an unclean end, which recovery mends. */
static void give_up(int number)
{
    static const char text[] = "arbe: draining took too long; giving up\n";

    (void)number;
    if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0) {
        /* nobody to tell */
    }
    _exit(1);
}

/* The same once every request was answered: what was acknowledged is in the log, and the last
 * checkpoint only spares the next start from reading it. */
static void leave_early(int number)
{
    static const char text[] = "arbe: the last checkpoint took too long and was left out; the log "
                               "has everything\n";

    (void)number;
    if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0) {
        /* nobody to tell */
    }
    _exit(0);
}

static void on_alarm(void (*handler)(int number))
{
    struct sigaction action = {.sa_handler = handler};

    (void)sigaction(SIGALRM, &action, NULL); /* valid, and so are those below */
}

static void set_watchdog(void)
{
    sigset_t set;

    on_alarm(give_up);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGALRM);
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    (void)alarm(DRAIN_SECONDS_MAX);
}

/* A thread that sees to the connections that a gentle end did not bring to one. */
struct closer {
    const struct logger *logger;
    struct worker *workers;
    unsigned count;
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    bool done;
};

/* Under the lock: after so many seconds more, unless all is over, says so and acts on each
 * worker. */
static void act_later(struct closer *closer, struct timespec *until, int seconds,
                      const char *sentence, void (*act)(struct worker *w))
{
    int waited = 0;

    until->tv_sec += seconds;
    while (!closer->done && waited != ETIMEDOUT) {
        waited = pthread_cond_timedwait(&closer->ended, &closer->mutex, until);
    }
    if (closer->done) {
        return;
    }
    logger_line(closer->logger, LOGGER_INFO, "%s", sentence);
    for (unsigned i = 0; i < closer->count; i++) {
        act(&closer->workers[i]);
    }
}

static void *close_late(void *context)
{
    struct closer *closer = context;
    struct timespec until;

    (void)clock_gettime(CLOCK_MONOTONIC, &until); /* cannot fail for this clock */
    (void)pthread_mutex_lock(&closer->mutex);
    act_later(closer, &until, DRAIN_GENTLE_SECONDS,
              "draining: requests that have not come whole by now are refused", worker_hurry);
    act_later(closer, &until, DRAIN_HURRY_SECONDS,
              "draining: connections that take nothing are dropped", worker_abort);
    (void)pthread_mutex_unlock(&closer->mutex);
    return NULL;
}

static void drain(const struct server *server)
{
    struct closer closer = {.logger = &server->config->logger,
                            .workers = server->workers,
                            .count = server->config->worker_count,
                            .mutex = PTHREAD_MUTEX_INITIALIZER};
    pthread_condattr_t attr;
    pthread_t thread;

    (void)pthread_condattr_init(&attr); /* these do not fail on Linux */
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&closer.ended, &attr);
    (void)pthread_condattr_destroy(&attr);
    bool started = pthread_create(&thread, NULL, close_late, &closer) == 0;

    set_watchdog();
    stop_workers(closer.workers, closer.count);
    if (started) {
        (void)pthread_mutex_lock(&closer.mutex);
        closer.done = true;
        (void)pthread_cond_signal(&closer.ended);
        (void)pthread_mutex_unlock(&closer.mutex);
        (void)pthread_join(thread, NULL);
    }
    (void)pthread_cond_destroy(&closer.ended);
}

/* SIGHUP: all of the new settings, or none of them. */
static void reload(struct server *server)
{
    const struct serve_config *config = server->config;
    struct serve_tunables value;
    struct errmsg msg = {{0}};

    if (config->reload == NULL) {
        return;
    }
    notify_reloading();
    int code = config->reload(config->reload_context, &value, &msg);

    if (code == 0) {
        code = tunables_set(&server->tunables, &value);
    }
    if (code == 0) {
        set_limits(server);
    }
    if (code != 0) {
        logger_line(&config->logger, LOGGER_ERROR, "SIGHUP: the settings stay as they were: %s",
                    msg.text[0] == '\0' ? err_text(code) : msg.text);
    } else if (msg.text[0] != '\0') {
        logger_line(&config->logger, LOGGER_WARN, "SIGHUP: reloaded, but %s", msg.text);
    } else {
        logger_line(&config->logger, LOGGER_INFO, "SIGHUP: reloaded");
    }
    if (code == 0 && config->mount != NULL && config->mount->reloaded != NULL) {
        config->mount->reloaded(config->mount->context);
    }
    notify_send("READY=1");
}

/* Until a signal that ends the server; its number. */
static int wait_for_end(struct server *server, const sigset_t *signals)
{
    int number = 0;

    for (;;) {
        if (sigwait(signals, &number) != 0) {
            continue;
        }
        if (number != SIGHUP) {
            return number;
        }
        reload(server);
    }
}

/* Without it tools cannot read the directory meanwhile, and all else works. */
static struct door *open_door(struct server *server)
{
    const struct serve_config *config = server->config;
    struct holds *holds = engine_holds(server->engine);
    struct door *door = NULL;
    struct errmsg msg = {{0}};

    if (holds != NULL && door_open(config->data_dir, holds, &config->logger, &door, &msg) != 0) {
        logger_line(&config->logger, LOGGER_WARN,
                    "cannot listen at %s/control (%s): backup and verify must wait for the server "
                    "to stop",
                    config->data_dir, msg.text);
    }
    return door;
}

/* Workers are there: starts them, waits for the signal, stops them. */
static int serve(struct server *server, struct worker *workers, const sigset_t *signals,
                 FILE *ready, struct errmsg *msg)
{
    const struct serve_config *config = server->config;
    int code = start_workers(workers, config->worker_count, msg);

    if (code != 0) {
        return code;
    }
    struct door *door = open_door(server);

    announce(server, &workers[0], ready);
    notify_send("READY=1");
    int number = wait_for_end(server, signals);

    notify_send("STOPPING=1");
    logger_line(&config->logger, LOGGER_INFO, "%s: draining",
                number == SIGINT ? "SIGINT" : "SIGTERM");
    if (config->mount != NULL) {
        config->mount->stop(config->mount->context);
    }
    control_service_stop(server);
    drain(server);
    if (!engine_failed(server->engine)) {
        on_alarm(leave_early);
    }
    door_close(door);
    return 0;
}

static int close_engine(struct server *server, bool checkpoint)
{
    int code = engine_close(server->engine, checkpoint);

    (void)alarm(0); /* what is left takes no time */
    pool_destroy(server->pool);
    if (code != 0) {
        logger_line(&server->config->logger, LOGGER_ERROR, "closing the data directory: %s",
                    err_text(code));
    }
    return code;
}

static int open_mount(struct server *server, struct errmsg *msg)
{
    const struct mount *mount = server->config->mount;
    struct early_end early;

    if (mount == NULL) {
        return 0;
    }
    early_end_watch(&early, mount);
    int code = mount->open(mount->context, server, msg);

    early_end_leave(&early);
    return code;
}

/* The workers listen: opens what stands beside the engine, serves, and closes it again. */
static int serve_all(struct server *server, struct sys *sys, const sigset_t *signals, FILE *ready,
                     struct errmsg *msg, bool *ret_served)
{
    const struct mount *mount = server->config->mount;
    int code = control_service_open(server, sys, &server->workers[0], msg);

    if (code != 0) {
        return code;
    }
    code = open_mount(server, msg);
    if (code == 0) {
        *ret_served = true;
        code = serve(server, server->workers, signals, ready, msg);
        if (mount != NULL) {
            mount->close(mount->context);
        }
    }
    control_service_close(server);
    return code;
}

int server_run(const struct serve_config *config, FILE *ready, struct errmsg *msg)
{
    struct server server = {
        .config = config,
        .etag_salt = etag_salt(),
        .started_ms = wall_ms(),
        .conn = {.input_bytes_max = INPUT_BYTES_MAX},
        .body_bytes_total_max = config->body_bytes_max * 4,
        .cache_control = config->tunables.secret.len > 0 ? SERVER_CACHE_PRIVATE
                                                         : SERVER_CACHE_PUBLIC,
    };
    sigset_t signals;
    struct sys sys;

    if (server.body_bytes_total_max < HTTP_BODIES_BYTES_MIN) {
        server.body_bytes_total_max = HTTP_BODIES_BYTES_MIN;
    }
    block_signals(&signals);
    buf_init(&server.common, 4 * KIB);
    reply_format_common(&server.common, config);
    struct worker *workers = calloc(config->worker_count, sizeof(*workers));

    server.workers = workers;
    if (workers == NULL || server.common.failed ||
        tunables_set(&server.tunables, &config->tunables) != 0) {
        free(workers);
        tunables_finish(&server.tunables);
        buf_finish(&server.common);
        return err_set(msg, ERR_NOMEM, "out of memory");
    }
    sys_posix_init(&sys);
    int code = open_engine(&server, &sys, msg);

    if (code == 0) {
        set_limits(&server);
        bool served = false;

        code = init_workers(&server, workers, config->worker_count, msg);
        if (code == 0) {
            code = serve_all(&server, &sys, &signals, ready, msg, &served);
        }
        for (unsigned i = 0; i < config->worker_count; i++) {
            worker_detach(&workers[i]);
        }
        int closed = close_engine(&server, served);

        for (unsigned i = 0; i < config->worker_count; i++) {
            worker_finish(&workers[i]);
        }
        code = code == 0 ? closed : code;
    }
    free(workers);
    tunables_finish(&server.tunables);
    buf_finish(&server.common);
    return code;
}
