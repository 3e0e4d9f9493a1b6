/* What posting an entry costs beside a raw append of the same bytes, in one process: an engine, a
 * client for each of both, 64 in flight, 16 threads' streams.
 *
 * make build/bench/post && build/bench/post DIR [SECONDS]
 *
 * DIR is new and empty. Prints a line of JSON: appends and posts per second, and CPU time of the
 * process in microseconds for each. The two alternate, so that what the machine does besides meets
 * both. */
#include "app/engine_client.h"
#include "base/limits.h"
#include "base/pool.h"
#include "log/sys.h"
#include "thread/poster.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#define IN_FLIGHT 64u
#define STREAMS   16u
#define ROUNDS    10u

struct bench {
    struct sys sys;
    struct pool *pool;
    struct engine *engine;
    struct thread_store *store;
    struct recency *recency;
    struct stream_client *client; /* of recency_stream_client_new */
    struct stream_client *raw;    /* without */
    struct poster *poster;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t ended;
    unsigned under_way;
    unsigned long count;
    bool stop;
};

/* One of those in flight. */
struct slot {
    struct bench *bench;
    char json[320];
    char name[THREAD_STREAM_BYTES];
    struct post_entry entry;
    struct post post;
};

struct cost {
    unsigned long count;
    double seconds;
    double cpu;
};

static void check(int code, const char *what, const struct errmsg *msg)
{
    if (code != 0) {
        (void)fprintf(stderr, "%s: %s\n", what, msg ? msg->text : "failed");
        exit(1);
    }
}

static double now(clockid_t clock)
{
    struct timespec ts;
    (void)clock_gettime(clock, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static bool goes_on(struct bench *b)
{
    (void)pthread_mutex_lock(&b->lock);
    bool more = !b->stop;
    b->count++;
    if (!more && --b->under_way == 0) {
        (void)pthread_cond_signal(&b->ended);
    }
    (void)pthread_mutex_unlock(&b->lock);
    return more;
}

static void start_append(struct slot *s);

static void on_append(void *context, int code, const struct stream_info *info,
                      const struct stream_error *error)
{
    struct slot *s = context;
    (void)info;
    if (code != STREAM_OK) {
        (void)fprintf(stderr, "%s\n", error->message);
        exit(1);
    }
    if (goes_on(s->bench)) {
        start_append(s);
    }
}

static void start_append(struct slot *s)
{
    const struct stream_append_options options = {.content_type = "application/json"};
    check(stream_client_start_append(s->bench->raw, s->name, s->json, s->entry.json.len, &options,
                                     on_append, s, NULL),
          "append", NULL);
}

static void on_post(struct post *post, int result)
{
    struct slot *s = post->context;
    check(result, post->error.message, NULL);
    if (goes_on(s->bench)) {
        poster_start(s->bench->poster, post);
    }
}

static void start_post(struct slot *s)
{
    poster_start(s->bench->poster, &s->post);
}

static void *step(void *context)
{
    struct bench *b = context;
    struct pollfd fd = {.fd = stream_client_fd(b->raw), .events = POLLIN};
    for (;;) {
        (void)poll(&fd, 1, 100);
        stream_client_step(b->raw);
        (void)pthread_mutex_lock(&b->lock);
        bool ended = b->stop && b->under_way == 0;
        (void)pthread_mutex_unlock(&b->lock);
        if (ended) {
            return NULL;
        }
    }
}

static void run(struct bench *b, struct slot *slots, void (*start)(struct slot *s), bool steps,
                double seconds, struct cost *cost)
{
    pthread_t stepper;
    double began = now(CLOCK_MONOTONIC);
    double cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    b->stop = false;
    b->under_way = IN_FLIGHT;
    b->count = 0;
    for (unsigned i = 0; i < IN_FLIGHT; i++) {
        start(&slots[i]);
    }
    if (steps) {
        (void)pthread_create(&stepper, NULL, step, b);
    }
    const struct timespec pause = {.tv_sec = (time_t)seconds,
                                   .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    (void)nanosleep(&pause, NULL);
    (void)pthread_mutex_lock(&b->lock);
    b->stop = true;
    while (b->under_way > 0) {
        (void)pthread_cond_wait(&b->ended, &b->lock);
    }
    (void)pthread_mutex_unlock(&b->lock);
    if (steps) {
        (void)pthread_join(stepper, NULL);
    }
    cost->count += b->count;
    cost->seconds += now(CLOCK_MONOTONIC) - began;
    cost->cpu += now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
}

static void open_engine(struct bench *b, const char *dir)
{
    struct store_report report;
    struct errmsg msg = {.text = ""};
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/streams", dir);
    sys_posix_init(&b->sys);
    check(pool_create(2, &b->pool), "pool_create", NULL);
    const struct engine_config config = {
        .store = {.dir = path,
                  .durability = DURABILITY_OS,
                  .segment_bytes = 64 * MIB,
                  .checkpoint_bytes = 64 * MIB,
                  .checkpoint_interval_ms = 10000,
                  .log_bytes_max = 1024ull * MIB,
                  .staged_bytes_max = 64 * MIB,
                  .sys = &b->sys,
                  .threads = true},
        .pool = b->pool,
        .read_page_bytes = 256 * KIB,
        .hot_bytes_max = 256 * MIB,
        .cache_bytes_max = 64 * MIB,
        .idle_ms = 1000,
        .sweep_interval_ms = 1000,
    };
    check(engine_open(&config, &b->engine, &report, &msg), "engine_open", &msg);
}

static void open_rest(struct bench *b, const char *dir)
{
    struct errmsg msg = {.text = ""};
    struct stream_error error;
    struct transport *transport;
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/app.db", dir);
    const struct thread_store_config store = {.path = path};
    check(store_open(&store, &b->store, &msg), "store_open", &msg);
    const struct recency_config recency = {.store = b->store};
    check(recency_open(&recency, &b->recency), "recency_open", NULL);
    const struct engine_client_config engine = {.engine = b->engine, .pool = b->pool};
    struct stream_client_options options;
    stream_client_options_init(&options);
    check(engine_transport_new(&engine, &options, &transport, &error), error.message, NULL);
    check(recency_stream_client_new(b->recency, transport, &options, &b->client, &error),
          error.message, NULL);
    check(engine_client_new(&engine, &options, &b->raw, &error), error.message, NULL);
    const struct poster_config poster = {.store = b->store, .client = b->client, .pool = b->pool};
    check(poster_create(&poster, &b->poster), "poster_create", NULL);
}

static void fill_slot(struct bench *b, struct slot *s, unsigned number)
{
    static const char id[] = "018f5d3a-0000-7000-8000-00000000000";
    char thread_id[STORE_ID_BYTES];
    (void)snprintf(thread_id, sizeof(thread_id), "%s%x", id, number % STREAMS);
    thread_stream_name(slice_of(thread_id), s->name);
    int len = snprintf(s->json, sizeof(s->json),
                       "{\"id\":\"%s%x\",\"ts\":1764538000000,\"authorId\":\"%s0\",\"payload\":"
                       "{\"type\":\"chat\",\"text\":\"a line of what somebody says to others\"}}",
                       id, number % 16, id);
    const struct stream_create_options options = {.content_type = "application/json"};
    check(stream_client_create(b->client, s->name, &options, NULL, NULL), "create", NULL);
    s->bench = b;
    s->entry = (struct post_entry){
        .id = {s->json + 7, sizeof(id)}, .json = {s->json, (size_t)len}, .fresh = true};
    s->post = (struct post){.thread_id = slice_of(s->name + sizeof(THREAD_STREAM) - 1),
                            .entries = &s->entry,
                            .count = 1,
                            .done = on_post,
                            .context = s};
}

int main(int argc, char **argv)
{
    static struct bench b;
    static struct slot slots[IN_FLIGHT];
    struct cost raw = {0};
    struct cost post = {0};
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 10.0;
    if (argc < 2) {
        (void)fprintf(stderr, "usage: post DIR [SECONDS]\n");
        return 2;
    }
    (void)pthread_mutex_init(&b.lock, NULL);
    (void)pthread_cond_init(&b.ended, NULL);
    open_engine(&b, argv[1]);
    open_rest(&b, argv[1]);
    for (unsigned i = 0; i < IN_FLIGHT; i++) {
        fill_slot(&b, &slots[i], i);
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        run(&b, slots, start_append, true, seconds / ROUNDS / 2, &raw);
        run(&b, slots, start_post, false, seconds / ROUNDS / 2, &post);
    }
    double raw_us = raw.cpu * 1e6 / (double)raw.count;
    double post_us = post.cpu * 1e6 / (double)post.count;
    (void)printf("{\"appends_per_s\":%.0f,\"append_cpu_us\":%.2f,\"posts_per_s\":%.0f,"
                 "\"post_cpu_us\":%.2f,\"ratio\":%.2f}\n",
                 (double)raw.count / raw.seconds, raw_us, (double)post.count / post.seconds,
                 post_us, post_us / raw_us);
    poster_destroy(b.poster);
    stream_client_free(b.client);
    stream_client_free(b.raw);
    check(recency_close(b.recency, NULL), "recency_close", NULL);
    store_close(b.store);
    check(engine_close(b.engine, true), "engine_close", NULL);
    pool_destroy(b.pool);
    return 0;
}
