/*
 * fanout: many SSE subscribers of one stream and one writer, on loopback.
 *
 * Every append carries its number and the moment it was sent; each subscriber checks that it
 * sees every number once and in order, and notes how long the append took to reach it. The
 * writer has its own thread, so that reading a thousand sockets does not delay a send; the next
 * append leaves at its place in the schedule, or as soon as the one before it is answered. A
 * second after the schedule's end the writer stops, whatever is left to send.
 *
 * With --idle nothing is written: the program prints "ready N" once all subscribers are in, and
 * holds them open until its standard input ends, so that its caller can look at the server.
 *
 * With --fed somebody else writes: its caller, after "ready N", sees to it that the server tells
 * lines with a number and a moment as above, then closes the program's standard input.
 */
#include "hist.h"
#include "reply.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BODY_BYTES      256
#define CONNECTING_MAX  256 /* subscribers that may be on their way in at once */
#define READY_TIMEOUT_S 60
#define GRACE_S         10 /* how long stragglers may take after the last append */
#define EXIT_LOSS       1
#define EXIT_USAGE      2
#define EXIT_BROKEN     3

static const char usage_text[] =
    "usage: fanout --port P --path /v1/stream/NAME [--subscribers N] [--rate R] [--seconds S]\n"
    "              [--idle] [--fed EVENT]\n"
    "Opens N SSE subscribers (default 1000) of one text stream on 127.0.0.1, appends R messages\n"
    "a second (default 50) for S seconds (default 20), and prints one line of JSON.\n"
    "--idle: append nothing; print \"ready N\" and hold the subscribers until stdin ends.\n"
    "--fed: PATH is any answer of events; print \"ready N\" and await R x S messages in events\n"
    "       of that name, which somebody else sends before stdin ends. $FANOUT_KEY is the bearer.\n"
    "exit: 0 all sent and nothing lost, 1 a message unsent, refused, lost, doubled or out of\n"
    "      order, or a subscriber dropped, 2 wrong usage, 3 the server could not be used\n";

struct options {
    uint16_t port;        /* server's port on 127.0.0.1 */
    const char *path;     /* stream's path */
    unsigned subscribers; /* how many SSE connections */
    unsigned appends;     /* rate x seconds */
    unsigned rate;        /* appends a second */
    unsigned seconds;     /* length of the run */
    bool idle;            /* hold the subscribers and write nothing */
    const char *fed;      /* name of the events that somebody else sends, or NULL */
    const char *key;      /* bearer token of the subscribers, or NULL */
};

struct subscriber {
    int fd;              /* socket; -1 when dropped */
    bool ready;          /* saw its first whole event */
    bool data_event;     /* the event being read is a data event */
    struct bench *bench; /* the run it belongs to */
    uint64_t last;       /* highest message number seen */
    uint8_t *seen;       /* one bit for each message, in the run's bitmap */
    size_t line_len;     /* bytes in `line` */
    struct reply reply;  /* the one endless response */
    char line[384];      /* the event line being gathered */
};

struct bench {
    struct options options;         /* what was asked */
    int epoll;                      /* all subscribers */
    struct subscriber *subscribers; /* options.subscribers of them */
    uint8_t *seen;                  /* bitmaps of all subscribers */
    unsigned connected;             /* subscribers that were started */
    unsigned ready;                 /* subscribers that are in */
    unsigned dropped;               /* subscribers whose connection ended early */
    uint64_t delivered;             /* distinct messages over all subscribers */
    uint64_t duplicates;            /* messages seen again */
    uint64_t out_of_order;          /* messages seen after a later one */
    struct hist delivery;           /* send to arrival */
    struct hist ack;                /* send to answer; the writer's until it has ended */
    uint64_t late_max_us;           /* largest lag behind the schedule; the writer's */
    unsigned refused;               /* appends that were not answered 2xx; the writer's */
    _Atomic unsigned acknowledged;  /* appends that were */
    _Atomic bool writer_ended;      /* set last by the writer */
};

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "fanout: %s: %s\n", what, errno ? strerror(errno) : "no answer in time");
    exit(EXIT_BROKEN);
}

static int connect_start(uint16_t port, int flags)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    if (fd < 0) {
        die("socket");
    }
    int one = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); /* only a hint */
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0 && errno != EINPROGRESS) {
        die("connect");
    }
    return fd;
}

/* One blocking exchange on a kept connection; returns the status. */
static int exchange(int fd, const char *request, size_t len)
{
    while (len > 0) {
        ssize_t sent = write(fd, request, len);
        if (sent <= 0) {
            die("write");
        }
        request += sent;
        len -= (size_t)sent;
    }
    struct reply reply;
    reply_init(&reply, false);
    char buf[4096];
    while (reply.state != REPLY_DONE) {
        ssize_t got = read(fd, buf, sizeof buf);
        if (got <= 0 || reply_bytes_feed(&reply, buf, (size_t)got, NULL, NULL) < 0) {
            die("read");
        }
    }
    return reply.status;
}

static void stream_create(const struct options *options)
{
    char request[512];
    int len = snprintf(request, sizeof request,
                       "PUT %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n"
                       "Content-Length: 0\r\n\r\n",
                       options->path);
    int fd = connect_start(options->port, 0);
    int status = exchange(fd, request, (size_t)len);
    close(fd);
    if (status / 100 != 2) {
        fprintf(stderr, "fanout: creating the stream was answered %d\n", status);
        exit(EXIT_BROKEN);
    }
}

/* A body is one line: "@number,nanoseconds," and filling up to 256 bytes. */
static size_t append_format(char *to, size_t size, const char *path, unsigned number)
{
    int head = snprintf(to, size,
                        "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n"
                        "Content-Length: %d\r\n\r\n",
                        path, BODY_BYTES);
    char *body = to + head;
    memset(body, 'x', BODY_BYTES);
    int mark = snprintf(body, BODY_BYTES, "@%010u,%020" PRIu64, number, now_ns());
    body[mark] = ',';
    body[BODY_BYTES - 1] = '\n';
    return (size_t)head + BODY_BYTES;
}

static void sleep_until(uint64_t at_ns)
{
    struct timespec ts = {.tv_sec = (time_t)(at_ns / 1000000000u),
                          .tv_nsec = (long)(at_ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR) {
    }
}

static void *writer_run(void *arg)
{
    struct bench *bench = arg;
    int fd = connect_start(bench->options.port, 0);
    uint64_t start = now_ns();
    /* A server that cannot keep up is measured for as long as one that can. */
    uint64_t end = start + (bench->options.seconds + 1ull) * 1000000000u;
    for (unsigned i = 1; i <= bench->options.appends && now_ns() < end; i++) {
        uint64_t due = start + (uint64_t)i * 1000000000u / bench->options.rate;
        sleep_until(due);
        char request[512 + BODY_BYTES];
        uint64_t sent = now_ns();
        size_t len = append_format(request, sizeof request, bench->options.path, i);
        uint64_t late_us = (sent - due) / 1000;
        bench->late_max_us = late_us > bench->late_max_us ? late_us : bench->late_max_us;
        if (exchange(fd, request, len) / 100 == 2) {
            hist_entry_add(&bench->ack, (now_ns() - sent) / 1000);
            atomic_fetch_add(&bench->acknowledged, 1);
        } else {
            bench->refused++;
        }
    }
    close(fd);
    atomic_store(&bench->writer_ended, true);
    return NULL;
}

static void message_take(struct subscriber *sub, const char *mark)
{
    struct bench *bench = sub->bench;
    char *after;
    uint64_t number = strtoull(mark + 1, &after, 10);
    if (*after != ',' || number == 0 || number > bench->options.appends) {
        return;
    }
    uint64_t sent = strtoull(after + 1, NULL, 10);
    uint8_t bit = (uint8_t)(1u << (number % 8));
    if (sub->seen[number / 8] & bit) {
        bench->duplicates++;
        return;
    }
    sub->seen[number / 8] = (uint8_t)(sub->seen[number / 8] | bit);
    bench->delivered++;
    hist_entry_add(&bench->delivery, (now_ns() - sent) / 1000);
    if (number < sub->last) {
        bench->out_of_order++;
    } else {
        sub->last = number;
    }
}

static void line_take(struct subscriber *sub)
{
    sub->line[sub->line_len] = '\0';
    if (sub->line_len == 0) {
        sub->data_event = false;
        if (!sub->ready) {
            sub->ready = true;
            sub->bench->ready++;
        }
    } else if (strncmp(sub->line, "event:", 6) == 0) {
        const char *name = sub->bench->options.fed ? sub->bench->options.fed : "data";
        sub->data_event = strstr(sub->line, name) != NULL;
    } else if (sub->data_event && strncmp(sub->line, "data:", 5) == 0) {
        const char *mark = strchr(sub->line, '@');
        if (mark) {
            message_take(sub, mark);
        }
    }
}

static void body_take(void *context, const char *bytes, size_t len)
{
    struct subscriber *sub = context;
    const char *end = bytes + len;
    while (bytes < end) {
        const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
        size_t piece = (size_t)((newline ? newline : end) - bytes);
        size_t room = sizeof sub->line - 1 - sub->line_len;
        size_t kept = piece < room ? piece : room;
        memcpy(sub->line + sub->line_len, bytes, kept);
        sub->line_len += kept;
        bytes += piece + (newline ? 1 : 0);
        if (newline) {
            line_take(sub);
            sub->line_len = 0;
        }
    }
}

static void subscriber_drop(struct subscriber *sub, const char *why)
{
    if (sub->bench->dropped++ == 0) {
        fprintf(stderr, "fanout: first subscriber lost: %s, status %d\n", why, sub->reply.status);
    }
    close(sub->fd);
    sub->fd = -1;
}

static void subscriber_read(struct subscriber *sub)
{
    char buf[16384];
    ssize_t got = read(sub->fd, buf, sizeof buf);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (got <= 0) {
        subscriber_drop(sub, got == 0 ? "closed by the server" : strerror(errno));
        return;
    }
    ssize_t used = reply_bytes_feed(&sub->reply, buf, (size_t)got, body_take, sub);
    if (used < 0 || sub->reply.state == REPLY_DONE ||
        (reply_head_seen(&sub->reply) && sub->reply.status != 200)) {
        subscriber_drop(sub, "its response ended or was no event stream");
    }
}

static void subscriber_start(struct bench *bench)
{
    struct subscriber *sub = &bench->subscribers[bench->connected];
    size_t bitmap = bench->options.appends / 8 + 1;
    sub->bench = bench;
    sub->seen = bench->seen + bitmap * bench->connected;
    reply_init(&sub->reply, false);
    /* A blocking connect on loopback is short, and the request fits an empty socket buffer. */
    sub->fd = connect_start(bench->options.port, 0);
    char request[1024];
    const char *key = bench->options.key;
    int len = snprintf(request, sizeof request,
                       "GET %s%s HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                       "Accept: text/event-stream\r\n%s%s%s\r\n",
                       bench->options.path, bench->options.fed ? "" : "?offset=-1&live=sse",
                       key ? "Authorization: Bearer " : "", key ? key : "", key ? "\r\n" : "");
    if (write(sub->fd, request, (size_t)len) != len || fcntl(sub->fd, F_SETFL, O_NONBLOCK) != 0) {
        die("subscribe");
    }
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = sub};
    if (epoll_ctl(bench->epoll, EPOLL_CTL_ADD, sub->fd, &event) != 0) {
        die("epoll_ctl");
    }
    bench->connected++;
}

/* Reads what has come, waiting at most `timeout_ms`; returns whether standard input ended. */
static bool events_take(struct bench *bench, int timeout_ms)
{
    struct epoll_event events[256];
    bool input_ended = false;
    int count = epoll_wait(bench->epoll, events, 256, timeout_ms);
    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr) {
            subscriber_read(events[i].data.ptr);
        } else {
            char byte;
            input_ended = read(STDIN_FILENO, &byte, 1) <= 0;
        }
    }
    return input_ended;
}

static void subscribers_open(struct bench *bench)
{
    uint64_t deadline = now_ns() + READY_TIMEOUT_S * 1000000000ull;
    while (bench->ready + bench->dropped < bench->options.subscribers) {
        while (bench->connected < bench->options.subscribers &&
               bench->connected - bench->ready - bench->dropped < CONNECTING_MAX) {
            subscriber_start(bench);
        }
        events_take(bench, 100);
        if (now_ns() > deadline) {
            errno = 0;
            die("waiting for the subscribers' first event");
        }
    }
}

/* Tells the caller that all are in; from now on it is noticed when standard input ends. */
static void ready_tell(struct bench *bench)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (epoll_ctl(bench->epoll, EPOLL_CTL_ADD, STDIN_FILENO, &event) != 0) {
        die("standard input has to be a pipe or a terminal");
    }
    printf("ready %u\n", bench->ready);
    fflush(stdout);
}

static void idle_hold(struct bench *bench)
{
    ready_tell(bench);
    while (!events_take(bench, -1)) {
    }
}

/* Until all have everything, or some time after everything was sent. */
static void fed_measure(struct bench *bench)
{
    const struct options *options = &bench->options;
    uint64_t deadline = UINT64_MAX;
    ready_tell(bench);
    while (bench->delivered < (uint64_t)options->appends * options->subscribers &&
           now_ns() < deadline) {
        if (events_take(bench, 50)) {
            epoll_ctl(bench->epoll, EPOLL_CTL_DEL, STDIN_FILENO, NULL);
            deadline = now_ns() + GRACE_S * 1000000000ull;
        }
    }
    bench->acknowledged = options->appends;
}

static void messages_measure(struct bench *bench)
{
    pthread_t writer;
    if (pthread_create(&writer, NULL, writer_run, bench) != 0) {
        die("pthread_create");
    }
    uint64_t deadline = 0;
    for (;;) {
        events_take(bench, 50);
        if (!atomic_load(&bench->writer_ended)) {
            continue;
        }
        deadline = deadline ? deadline : now_ns() + GRACE_S * 1000000000ull;
        uint64_t wanted = (uint64_t)atomic_load(&bench->acknowledged) * bench->options.subscribers;
        if (bench->delivered >= wanted || now_ns() > deadline) {
            break;
        }
    }
    pthread_join(writer, NULL);
}

static int result_print(const struct bench *bench)
{
    uint64_t wanted = (uint64_t)bench->acknowledged * bench->options.subscribers;
    uint64_t missing = wanted > bench->delivered ? wanted - bench->delivered : 0;
    unsigned unsent = bench->options.appends - bench->acknowledged - bench->refused;
    printf("{\"subscribers\":%u,\"appends\":%u,\"refused\":%u,\"unsent\":%u,\"deliveries\":%" PRIu64
           ",\"missing\":%" PRIu64 ",\"duplicates\":%" PRIu64 ",\"out_of_order\":%" PRIu64
           ",\"dropped\":%u,\"p50_us\":%" PRIu64 ",\"p99_us\":%" PRIu64 ",\"max_us\":%" PRIu64
           ",\"ack_p50_us\":%" PRIu64 ",\"ack_p99_us\":%" PRIu64 ",\"late_max_us\":%" PRIu64 "}\n",
           bench->options.subscribers, bench->acknowledged, bench->refused, unsent,
           bench->delivered, missing, bench->duplicates, bench->out_of_order, bench->dropped,
           hist_percentile_get(&bench->delivery, 50), hist_percentile_get(&bench->delivery, 99),
           bench->delivery.max_us, hist_percentile_get(&bench->ack, 50),
           hist_percentile_get(&bench->ack, 99), bench->late_max_us);
    bool clean = missing + bench->duplicates + bench->out_of_order + bench->dropped == 0;
    return clean && bench->refused + unsent == 0 ? 0 : EXIT_LOSS;
}

static unsigned number_parse(const char *name, const char *text, unsigned max)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno || *end || end == text || *text == '-' || value == 0 || value > max) {
        fprintf(stderr, "fanout: --%s takes a number from 1 to %u, not \"%s\"\n%s", name, max, text,
                usage_text);
        exit(EXIT_USAGE);
    }
    return (unsigned)value;
}

static struct options options_parse(int argc, char **argv)
{
    struct options options = {.subscribers = 1000, .rate = 50, .seconds = 20};
    static const struct option table[] = {{"port", required_argument, NULL, 'p'},
                                          {"path", required_argument, NULL, 'u'},
                                          {"subscribers", required_argument, NULL, 'n'},
                                          {"rate", required_argument, NULL, 'r'},
                                          {"seconds", required_argument, NULL, 's'},
                                          {"idle", no_argument, NULL, 'i'},
                                          {"fed", required_argument, NULL, 'f'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    int choice;
    while ((choice = getopt_long(argc, argv, "", table, NULL)) != -1) {
        switch (choice) {
        case 'p':
            options.port = (uint16_t)number_parse("port", optarg, 65535);
            break;
        case 'u':
            options.path = optarg;
            break;
        case 'n':
            options.subscribers = number_parse("subscribers", optarg, 100000);
            break;
        case 'r':
            options.rate = number_parse("rate", optarg, 10000);
            break;
        case 's':
            options.seconds = number_parse("seconds", optarg, 3600);
            break;
        case 'i':
            options.idle = true;
            break;
        case 'f':
            options.fed = optarg;
            options.key = getenv("FANOUT_KEY");
            break;
        case 'h':
            fputs(usage_text, stdout);
            exit(0);
        default:
            fputs(usage_text, stderr);
            exit(EXIT_USAGE);
        }
    }
    if (optind < argc || !options.port || !options.path || strlen(options.path) > 200 ||
        (options.key && strlen(options.key) > 200)) {
        fputs(usage_text, stderr);
        exit(EXIT_USAGE);
    }
    options.appends = options.idle ? 0 : options.rate * options.seconds;
    return options;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    bench.options = options_parse(argc, argv);
    bench.epoll = epoll_create1(EPOLL_CLOEXEC);
    bench.subscribers = calloc(bench.options.subscribers, sizeof *bench.subscribers);
    bench.seen = calloc(bench.options.subscribers, bench.options.appends / 8 + 1);
    if (bench.epoll < 0 || !bench.subscribers || !bench.seen) {
        die("setting up");
    }
    if (!bench.options.fed) {
        stream_create(&bench.options);
    }
    subscribers_open(&bench);
    if (bench.options.idle) {
        idle_hold(&bench);
        return bench.dropped ? EXIT_LOSS : 0;
    }
    if (bench.options.fed) {
        fed_measure(&bench);
    } else {
        messages_measure(&bench);
    }
    return result_print(&bench);
}
