/* arbe stream bench: what the server can do, seen from here.
 *
 * Three measurements on streams of their own, which are deleted afterwards: appends one at a time
 * on each of some connections; many small messages through one producer; and the time from giving
 * a message away to its arrival at a reader that follows. */
#include "cli/stream_call.h"

#include "base/limits.h"
#include "cli/bar.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/latency.h"
#include "cli/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX   256u
#define TAIL_PAUSE_MS     5 /* between two messages of the third part */
#define MESSAGE_BYTES_MIN 32u

struct bench {
    struct stream_call *call;
    struct stream_peer peer;
    char name[SITE_URL_BYTES_MAX + 64];
    char *payload; /* a JSON string of `size` bytes */
    struct bar bar;
    int64_t end_ms;
    atomic_bool stop;
};

struct appender {
    struct bench *bench;
    pthread_t thread;
    struct latency latency;
    struct stream_error error; /* code 0: none */
};

static uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* always there */
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool goes_on(const struct bench *b)
{
    return !atomic_load(&b->stop) && bar_now_ms() < b->end_ms;
}

static void *append_loop(void *context)
{
    struct appender *a = context;
    const struct stream_append_options options = {.content_type = "application/json"};

    while (goes_on(a->bench)) {
        uint64_t start = now_ns();

        if (stream_client_append(a->bench->peer.client, a->bench->name, a->bench->payload,
                                 a->bench->call->set.size, &options, NULL,
                                 &a->error) != STREAM_OK) {
            break;
        }
        latency_add(&a->latency, now_ns() - start);
    }
    return NULL;
}

/* Starts a thread that leaves the signals to the main one. */
static int start_thread(pthread_t *thread, void *(*run)(void *), void *context)
{
    sigset_t all;
    sigset_t before;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(thread, NULL, run, context);

    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

static void begin_part(struct bench *b, const char *what)
{
    b->end_ms = bar_now_ms() + (int64_t)b->call->set.time_ms;
    bar_draw(&b->bar, -1, what);
}

static void wait_part(struct bench *b, const char *what)
{
    while (goes_on(b) && interrupt_signal() == 0) {
        double left = (double)(b->end_ms - bar_now_ms()) / (double)b->call->set.time_ms;

        if (bar_is_due(&b->bar)) {
            bar_draw(&b->bar, 1 - left, what);
        }
        (void)interrupt_poll(NULL, 0, 50);
    }
    bar_clear(&b->bar);
}

static void print_rate(struct bench *b, const char *title, const char *member, uint64_t count,
                       double seconds)
{
    struct out *o = &b->call->out;
    double rate = seconds > 0 ? (double)count / seconds : 0;
    char bytes[PROGRESS_SIZE_BYTES];

    if (b->call->set.json) {
        out_format(o, ",\"%s\":{\"count\":%" PRIu64 ",\"per_second\":%.1f", member, count, rate);
        return;
    }
    out_format(o, "%s%s:%s %.0f/s, %s/s\n", out_bold(o), title, out_plain(o), rate,
               progress_size((uint64_t)(rate * (double)b->call->set.size), bytes));
}

static void print_latency(struct bench *b, const struct latency *l)
{
    if (b->call->set.json) {
        out_add(&b->call->out, SLICE(",\"latency\":"));
        latency_print_json(l, &b->call->out);
        out_add(&b->call->out, SLICE("}"));
    } else {
        latency_print(l, &b->call->out);
        out_flush(&b->call->out);
    }
}

static int bench_appends(struct bench *b)
{
    static const char what[] = "appends, one at a time";
    size_t count = (size_t)b->call->set.connections;
    struct appender *all = calloc(count, sizeof(*all));
    size_t started = 0;
    int code = 0;

    if (all == NULL) {
        return stream_call_cannot(b->call, "%s", err_text(ERR_NOMEM));
    }
    begin_part(b, what);
    uint64_t start = now_ns();

    for (; code == 0 && started < count; started++) {
        all[started].bench = b;
        if (start_thread(&all[started].thread, append_loop, &all[started]) != 0) {
            code = stream_call_cannot(b->call, "cannot start a thread");
            atomic_store(&b->stop, true);
            break;
        }
    }
    wait_part(b, what);
    for (size_t i = 0; i < started; i++) {
        (void)pthread_join(all[i].thread, NULL); /* a thread of ours, joined once */
        if (i > 0) {
            latency_merge(&all[0].latency, &all[i].latency);
        }
        if (code == 0 && all[i].error.code != STREAM_OK) {
            code = stream_call_fail(b->call, b->name, &all[i].error);
        }
    }
    if (code == 0) {
        char title[80];

        (void)snprintf(title, sizeof(title), "appends of %" PRIu64 " bytes on %zu connection%s",
                       b->call->set.size, count, count == 1 ? "" : "s");
        print_rate(b, title, "appends", all[0].latency.count, (double)(now_ns() - start) / 1e9);
        print_latency(b, &all[0].latency);
    }
    free(all);
    return code;
}

static int bench_producer(struct bench *b)
{
    static const char what[] = "messages through a producer";
    struct stream_producer_options options;
    struct stream_producer *producer = NULL;
    struct stream_error error = {0};
    uint64_t count = 0;
    int rc;

    stream_producer_options_init(&options);
    options.content_type = "application/json";
    options.max_queued_bytes = 16 * MIB;
    rc = stream_producer_new(b->peer.client, b->name, "bench", &options, &producer, &error);
    begin_part(b, what);
    uint64_t start = now_ns();

    while (rc == STREAM_OK && goes_on(b) && interrupt_signal() == 0) {
        rc = stream_producer_append(producer, b->payload, b->call->set.size, &error);
        count++;
        if (count % 64 == 0 && bar_is_due(&b->bar)) {
            bar_draw(&b->bar, 1 - (double)(b->end_ms - bar_now_ms()) / (double)b->call->set.time_ms,
                     what);
        }
    }
    if (rc == STREAM_OK) {
        rc = stream_producer_flush(producer, NULL, &error);
    }
    bar_clear(&b->bar);
    stream_producer_free(producer);
    if (rc != STREAM_OK) {
        return stream_call_fail(b->call, b->name, &error);
    }
    print_rate(b, "messages through one producer, batched", "producer", count,
               (double)(now_ns() - start) / 1e9);
    if (b->call->set.json) {
        out_add(&b->call->out, SLICE("}"));
    } else {
        out_end_message(&b->call->out);
    }
    return interrupt_signal() == 0 ? 0 : COMMAND_INTERRUPTED + interrupt_signal();
}

struct follower {
    struct bench *bench;
    struct stream_reader *reader;
    struct latency latency;
    struct stream_error error;
};

/* Messages are the time at which they were given away. */
static void *follow_loop(void *context)
{
    struct follower *f = context;
    struct stream_piece_view piece;

    while (!atomic_load(&f->bench->stop) &&
           stream_reader_next(f->reader, &piece, &f->error) == STREAM_OK) {
        if (piece.len > 0) {
            uint64_t sent = strtoull(piece.data, NULL, 10);
            uint64_t now = now_ns();

            latency_add(&f->latency, now > sent ? now - sent : 0);
        }
        if (piece.closed) {
            break;
        }
    }
    return NULL;
}

static int send_times(struct bench *b, struct stream_error *error)
{
    const struct stream_append_options options = {.content_type = "application/json"};
    int rc = STREAM_OK;

    while (rc == STREAM_OK && goes_on(b) && interrupt_signal() == 0) {
        char text[24];
        int len = snprintf(text, sizeof(text), "%" PRIu64, now_ns());

        rc = stream_client_append(b->peer.client, b->name, text, (size_t)len, &options, NULL,
                                  error);
        if (bar_is_due(&b->bar)) {
            bar_draw(&b->bar, 1 - (double)(b->end_ms - bar_now_ms()) / (double)b->call->set.time_ms,
                     "the way to a reader");
        }
        (void)interrupt_poll(NULL, 0, TAIL_PAUSE_MS);
    }
    return rc == STREAM_OK ? stream_client_close(b->peer.client, b->name, NULL, error) : rc;
}

static int bench_tail(struct bench *b)
{
    const struct stream_read_options options = {
        .offset = "-1", .live = STREAM_SSE, .unit = STREAM_MESSAGES};
    struct follower f = {.bench = b};
    struct stream_error error = {0};
    pthread_t thread;
    int rc = stream_client_read(b->peer.client, b->name, &options, &f.reader, &error);

    if (rc != STREAM_OK) {
        return stream_call_fail(b->call, b->name, &error);
    }
    if (start_thread(&thread, follow_loop, &f) != 0) {
        stream_reader_free(f.reader);
        return stream_call_cannot(b->call, "cannot start a thread");
    }
    begin_part(b, "the way to a reader");
    uint64_t start = now_ns();

    rc = send_times(b, &error);
    if (rc != STREAM_OK) {
        stream_reader_abort(f.reader);
    }
    (void)pthread_join(thread, NULL); /* a thread of ours, joined once */
    stream_reader_free(f.reader);
    bar_clear(&b->bar);
    if (rc != STREAM_OK || f.error.code != STREAM_OK) {
        return stream_call_fail(b->call, b->name, rc != STREAM_OK ? &error : &f.error);
    }
    if (b->call->set.json) {
        print_rate(b, "", "tail", f.latency.count, (double)(now_ns() - start) / 1e9);
    } else {
        out_format(&b->call->out, "%sfrom an append to a reader by server-sent events:%s\n",
                   out_bold(&b->call->out), out_plain(&b->call->out));
    }
    print_latency(b, &f.latency);
    return 0;
}

/* One part on a stream of its own. */
static int run_part(struct bench *b, const char *part, int (*run)(struct bench *b))
{
    const struct stream_create_options options = {.content_type = "application/json",
                                                  .ttl_seconds = 3600};
    struct stream_error error = {0};
    uint64_t random = 0;

    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return stream_call_cannot(b->call, "there is no randomness: %s", strerror(errno));
    }
    (void)snprintf(b->name, sizeof(b->name), "%s/%016" PRIx64 "/%s",
                   b->call->operand_count > 0 ? b->peer.site.name : "arbe-bench", random, part);
    if (stream_client_create(b->peer.client, b->name, &options, NULL, &error) != STREAM_OK) {
        return stream_call_fail(b->call, b->name, &error);
    }
    int code = run(b);

    atomic_store(&b->stop, false);
    if (interrupt_signal() != 0) {
        stream_client_reset(b->peer.client); /* to clean up; a second signal ends us */
    }
    if (!b->call->set.keep) {
        (void)stream_client_delete(b->peer.client, b->name, NULL); /* it expires otherwise */
    }
    return code != 0                 ? code
           : interrupt_signal() != 0 ? COMMAND_INTERRUPTED + interrupt_signal()
                                     : 0;
}

static int run_all(struct bench *b)
{
    struct out *o = &b->call->out;
    int code = run_part(b, "appends", bench_appends);

    if (code == 0) {
        code = run_part(b, "producer", bench_producer);
    }
    if (code == 0) {
        code = run_part(b, "tail", bench_tail);
    }
    if (b->call->set.json && code == 0) {
        out_add(o, SLICE("}\n"));
        out_end_message(o);
    }
    return code;
}

int stream_call_bench(struct stream_call *call)
{
    struct bench b = {.call = call};
    size_t size = (size_t)call->set.size;
    int code = stream_call_open(call, call->operand_count > 0 ? call->operands[0] : NULL,
                                STREAM_CALL_RETRIES, &b.peer);

    if (code != 0) {
        return code;
    }
    bar_init(&b.bar, call->set.json != 0);
    b.payload = malloc(size);
    if (b.payload == NULL) {
        stream_call_close(&b.peer);
        return stream_call_cannot(call, "%s", err_text(ERR_NOMEM));
    }
    memset(b.payload, 'x', size);
    b.payload[0] = '"';
    b.payload[size - 1] = '"';
    if (call->set.json) {
        out_add(&call->out, SLICE("{\"url\":"));
        out_add_string(&call->out, slice_of(b.peer.site.url));
    }
    code = run_all(&b);
    free(b.payload);
    stream_call_close(&b.peer);
    return code;
}
