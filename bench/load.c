/*
 * load: a closed-loop load of every kind of request on loopback, for profiles and leak checks.
 *
 * Each connection sends one request, waits for its answer, and draws the next kind by weight from
 * a generator seeded for it, so a seed gives each connection the same sequence. Streams are made
 * before the clock starts: every second one holds JSON, the others bytes. While deletes and
 * creates go on, other connections may meet 404 or 409; that is expected. A subscriber takes the
 * first bytes of its event stream and hangs up, and at the end every connection is cut as it is,
 * waiting long-polls included: how a server lets go of the abandoned is part of the load.
 */
#include "hist.h"
#include "reply.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BODY_BYTES_MAX  (1u << 20)
#define HEAD_BYTES_MAX  1024
#define LIVE_SHARE      4 /* at most one connection in this many waits for new data */
#define EXIT_UNEXPECTED 1
#define EXIT_USAGE      2
#define EXIT_BROKEN     3

static const char usage_text[] =
    "usage: load --port P [--connections N] [--streams M] [--seconds S] [--seed X] [--body BYTES]\n"
    "            [--only KINDS] [--path /v1/stream/load]\n"
    "Sends a mix of requests to 127.0.0.1 over N kept connections (default 32) and M streams\n"
    "(default 100) for S seconds (default 10) and prints a table by kind of request.\n"
    "  --seed X      seed of the mix (default 1)\n"
    "  --body BYTES  largest append; each takes 2 to BYTES bytes (default 512)\n"
    "  --only KINDS  these kinds alone, of append,read,longpoll,sse,head,recreate,close\n"
    "  --path P      where the streams are; their number is added (default /v1/stream/load)\n"
    "exit: 0 every answer was one the protocol allows here, 1 some were not or connections broke,\n"
    "      2 wrong usage, 3 the server could not be reached or the streams not be made\n";

/* name, weight */
#define KINDS(X)               \
    X(APPEND, "append", 50)    \
    X(READ, "read", 20)        \
    X(LONGPOLL, "longpoll", 8) \
    X(SSE, "sse", 4)           \
    X(HEAD, "head", 10)        \
    X(RECREATE, "recreate", 6) \
    X(CLOSE, "close", 1)

enum kind {
#define X(id, name, weight) KIND_##id,
    KINDS(X)
#undef X
    KIND_COUNT
};

static const char *const kind_names[KIND_COUNT] = {
#define X(id, name, weight) name,
    KINDS(X)
#undef X
};

static const unsigned kind_weights[KIND_COUNT] = {
#define X(id, name, weight) weight,
    KINDS(X)
#undef X
};

struct tally {
    uint64_t good;       /* answers 2xx or 304 */
    uint64_t expected;   /* other answers that the mix brings about: 404, 409, 410, stale 400 */
    uint64_t refused;    /* 429, 503: the server had enough */
    uint64_t unexpected; /* anything else */
    struct hist time;    /* from the request's first byte to the answer's last */
};

struct options {
    uint16_t port;           /* server's port on 127.0.0.1 */
    unsigned connections;    /* how many */
    unsigned streams;        /* how many */
    unsigned seconds;        /* length of the run */
    unsigned body_bytes;     /* largest append */
    uint64_t seed;           /* of the mix */
    const char *path;        /* common path of the streams */
    bool chosen[KIND_COUNT]; /* kinds that take part */
};

struct stream {
    char offset[REPLY_OFFSET_BYTES_MAX]; /* last Stream-Next-Offset that was told, or "-1" */
};

struct connection {
    int fd;             /* socket; -1 between two connections */
    struct load *load;  /* the run it belongs to */
    uint64_t random;    /* its generator's state */
    enum kind kind;     /* kind of the request under way */
    bool create_next;   /* a recreate has deleted and has still to create */
    unsigned stream;    /* number of the stream asked */
    uint64_t sent_ns;   /* when the request began */
    size_t out_len;     /* bytes of the request */
    size_t out_at;      /* how many have been sent */
    char *out;          /* the request, HEAD_BYTES_MAX + options.body_bytes of room */
    struct reply reply; /* the answer being read */
};

struct load {
    struct options options;           /* what was asked */
    int epoll;                        /* all connections */
    struct connection *connections;   /* options.connections of them */
    struct stream *streams;           /* options.streams of them */
    unsigned live;                    /* connections that wait for new data */
    uint64_t broken;                  /* connections that ended within an answer */
    int first_unexpected;             /* status of the first unexpected answer */
    struct tally tallies[KIND_COUNT]; /* by kind */
};

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(EXIT_BROKEN);
}

/* xorshift64*: never 0, the same on every machine. */
static uint64_t random_next(struct connection *conn)
{
    conn->random ^= conn->random >> 12;
    conn->random ^= conn->random << 25;
    conn->random ^= conn->random >> 27;
    return conn->random * 0x2545F4914F6CDD1Du >> 16;
}

static const char *content_type(unsigned stream)
{
    return stream % 2 ? "application/json" : "application/octet-stream";
}

/* ------------------------------------------------------------------------------- requests */

static void request_set(struct connection *conn, const char *method, const char *query,
                        const char *headers)
{
    int len = snprintf(conn->out, HEAD_BYTES_MAX,
                       "%s %s-%u%s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n", method,
                       conn->load->options.path, conn->stream, query, headers);
    conn->out_len = (size_t)len;
    conn->out_at = 0;
    reply_init(&conn->reply, strcmp(method, "HEAD") == 0);
}

static void create_set(struct connection *conn)
{
    char headers[128];
    (void)snprintf(headers, sizeof headers, "Content-Type: %s\r\nContent-Length: 0\r\n",
                   content_type(conn->stream)); /* both types fit */
    request_set(conn, "PUT", "", headers);
}

/* A JSON body is one string, so that any length from 2 bytes on will do. */
static void append_set(struct connection *conn)
{
    size_t len = 2 + random_next(conn) % (conn->load->options.body_bytes - 1);
    char headers[128];
    (void)snprintf(headers, sizeof headers, "Content-Type: %s\r\nContent-Length: %zu\r\n",
                   content_type(conn->stream), len); /* always fits */
    request_set(conn, "POST", "", headers);
    char *body = conn->out + conn->out_len;
    memset(body, (int)('a' + random_next(conn) % 26), len);
    body[0] = body[len - 1] = '"';
    conn->out_len += len;
}

static void read_set(struct connection *conn, const char *live)
{
    char query[REPLY_OFFSET_BYTES_MAX + 64];
    const char *known = conn->load->streams[conn->stream].offset;
    /* Mostly from where the last answer ended, as a reader that follows would. */
    const char *from = random_next(conn) % 8 == 0 && !*live ? "-1" : known;
    (void)snprintf(query, sizeof query, "?offset=%s%s", from, live); /* always fits */
    request_set(conn, "GET", query, "");
}

static void request_make(struct connection *conn)
{
    switch (conn->kind) {
    case KIND_APPEND:
        append_set(conn);
        break;
    case KIND_READ:
        read_set(conn, "");
        break;
    case KIND_LONGPOLL:
        read_set(conn, "&live=long-poll");
        break;
    case KIND_SSE:
        read_set(conn, "&live=sse");
        break;
    case KIND_HEAD:
        request_set(conn, "HEAD", "", "");
        break;
    case KIND_RECREATE:
        request_set(conn, "DELETE", "", "");
        break;
    case KIND_CLOSE:
        request_set(conn, "POST", "", "Stream-Closed: true\r\nContent-Length: 0\r\n");
        break;
    case KIND_COUNT:
        break;
    }
}

static bool kind_waits(enum kind kind)
{
    return kind == KIND_LONGPOLL || kind == KIND_SSE;
}

/* Draws by weight among the kinds that take part and may be sent now. */
static enum kind kind_draw(struct connection *conn)
{
    const struct load *load = conn->load;
    bool live_full = load->live * LIVE_SHARE >= load->options.connections;
    bool waiting_only = true;
    unsigned total = 0;
    for (unsigned i = 0; i < KIND_COUNT; i++) {
        waiting_only = waiting_only && (!load->options.chosen[i] || kind_waits((enum kind)i));
    }
    unsigned weights[KIND_COUNT];
    for (unsigned i = 0; i < KIND_COUNT; i++) {
        bool held = kind_waits((enum kind)i) && live_full && !waiting_only;
        weights[i] = load->options.chosen[i] && !held ? kind_weights[i] : 0;
        total += weights[i];
    }
    unsigned drawn = (unsigned)(random_next(conn) % total);
    unsigned kind = 0;
    while (drawn >= weights[kind]) {
        drawn -= weights[kind++];
    }
    return (enum kind)kind;
}

/* ---------------------------------------------------------------------------- connections */

static void connection_open(struct connection *conn)
{
    conn->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(conn->load->options.port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    /* A blocking connect on loopback is short. */
    if (conn->fd < 0 || connect(conn->fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        fcntl(conn->fd, F_SETFL, O_NONBLOCK) != 0) {
        die("connect");
    }
    int one = 1;
    (void)setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); /* only a hint */
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = conn};
    if (epoll_ctl(conn->load->epoll, EPOLL_CTL_ADD, conn->fd, &event) != 0) {
        die("epoll_ctl");
    }
}

static void connection_close(struct connection *conn)
{
    close(conn->fd);
    conn->fd = -1;
}

/* Returns false when the connection is broken. */
static bool request_send(struct connection *conn)
{
    while (conn->out_at < conn->out_len) {
        ssize_t sent = send(conn->fd, conn->out + conn->out_at, conn->out_len - conn->out_at,
                            MSG_NOSIGNAL);
        if (sent < 0) {
            return errno == EAGAIN || errno == EINTR;
        }
        conn->out_at += (size_t)sent;
    }
    return true;
}

static void request_start(struct connection *conn)
{
    if (conn->create_next) {
        conn->create_next = false;
        create_set(conn);
    } else {
        conn->kind = kind_draw(conn);
        conn->stream = (unsigned)(random_next(conn) % conn->load->options.streams);
        conn->create_next = conn->kind == KIND_RECREATE;
        conn->load->live += kind_waits(conn->kind);
        request_make(conn);
    }
    if (conn->fd < 0) {
        connection_open(conn);
    }
    conn->sent_ns = now_ns();
}

/* A reader may ask with an offset of the stream that was there before: no place in this one. */
static bool stale_refused(const struct connection *conn)
{
    bool reads = conn->kind == KIND_READ || kind_waits(conn->kind);
    return reads && conn->reply.status == 400 && conn->load->options.chosen[KIND_RECREATE];
}

static void answer_count(struct connection *conn)
{
    struct tally *tally = &conn->load->tallies[conn->kind];
    int status = conn->reply.status;
    hist_entry_add(&tally->time, (now_ns() - conn->sent_ns) / 1000);
    if (status / 100 == 2 || status == 304) {
        tally->good++;
    } else if (status == 404 || status == 409 || status == 410 || stale_refused(conn)) {
        tally->expected++;
    } else if (status == 429 || status == 503) {
        tally->refused++;
    } else {
        tally->unexpected++;
        conn->load->first_unexpected = conn->load->first_unexpected ?: status;
    }
}

/* What an answer tells of its stream; a deleted one starts anew. */
static void offset_keep(struct connection *conn)
{
    char *offset = conn->load->streams[conn->stream].offset;
    if (conn->reply.next_offset[0] != '\0') {
        memcpy(offset, conn->reply.next_offset, REPLY_OFFSET_BYTES_MAX);
    } else if (conn->kind == KIND_RECREATE) {
        memcpy(offset, "-1", 3);
    }
}

static void answer_finish(struct connection *conn)
{
    answer_count(conn);
    offset_keep(conn);
    conn->load->live -= kind_waits(conn->kind);
    bool cut = conn->reply.state != REPLY_DONE; /* a subscriber hangs up */
    if (cut || conn->reply.closes) {
        connection_close(conn);
    }
    request_start(conn);
}

static void connection_break(struct connection *conn)
{
    conn->load->broken++;
    conn->load->live -= kind_waits(conn->kind);
    connection_close(conn);
    request_start(conn);
}

/* Whether the answer, or as much of it as is wanted, is there. */
static bool answer_complete(const struct connection *conn)
{
    bool subscribed = conn->kind == KIND_SSE && conn->reply.body_bytes > 0;
    return conn->reply.state == REPLY_DONE || subscribed;
}

/*
 * Edge-triggered: goes on until a read or a send would block. Returns after at most one answer
 * that needed a new connection, whose first event is still to come.
 */
static void connection_run(struct connection *conn)
{
    int fd = conn->fd;
    char buf[65536];
    while (conn->fd == fd) {
        if (!request_send(conn)) {
            connection_break(conn);
            return;
        }
        ssize_t got = read(fd, buf, sizeof buf);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        bool until_close = conn->reply.state == REPLY_BODY && conn->reply.left < 0;
        if (got == 0 && until_close) {
            conn->reply.state = REPLY_DONE;
            conn->reply.closes = true;
        } else if (got <= 0 ||
                   reply_bytes_feed(&conn->reply, buf, (size_t)got, NULL, NULL) != got) {
            connection_break(conn);
            return;
        }
        if (answer_complete(conn)) {
            answer_finish(conn);
        }
    }
}

/* ------------------------------------------------------------------------------ the run */

/* Makes the streams one by one on a blocking connection, before anything is measured. */
static void streams_create(struct load *load)
{
    struct connection *conn = &load->connections[0];
    connection_open(conn);
    if (fcntl(conn->fd, F_SETFL, 0) != 0) {
        die("fcntl");
    }
    for (unsigned i = 0; i < load->options.streams; i++) {
        conn->stream = i;
        create_set(conn);
        char buf[4096];
        while (conn->reply.state != REPLY_DONE) {
            ssize_t got = request_send(conn) ? read(conn->fd, buf, sizeof buf) : -1;
            if (got <= 0 || reply_bytes_feed(&conn->reply, buf, (size_t)got, NULL, NULL) < 0) {
                die("creating the streams");
            }
        }
        /* 409: left closed by a run before. */
        if (conn->reply.status / 100 != 2 && conn->reply.status != 409) {
            fprintf(stderr, "load: creating stream %u was answered %d\n", i, conn->reply.status);
            exit(EXIT_BROKEN);
        }
        memcpy(load->streams[i].offset, "-1", 3);
    }
    connection_close(conn);
}

static void load_setup(struct load *load)
{
    const struct options *options = &load->options;
    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    load->connections = calloc(options->connections, sizeof *load->connections);
    load->streams = calloc(options->streams, sizeof *load->streams);
    if (load->epoll < 0 || !load->connections || !load->streams) {
        die("setting up");
    }
    for (unsigned i = 0; i < options->connections; i++) {
        struct connection *conn = &load->connections[i];
        conn->fd = -1;
        conn->load = load;
        conn->random = (options->seed + i + 1) * 0x9E3779B97F4A7C15u | 1u;
        conn->out = malloc(HEAD_BYTES_MAX + options->body_bytes + 1);
        if (!conn->out) {
            die("setting up");
        }
    }
}

static void load_run(struct load *load)
{
    uint64_t end = now_ns() + load->options.seconds * 1000000000ull;
    for (unsigned i = 0; i < load->options.connections; i++) {
        request_start(&load->connections[i]);
    }
    while (now_ns() < end) {
        struct epoll_event events[128];
        int count = epoll_wait(load->epoll, events, 128, 50);
        for (int i = 0; i < count; i++) {
            connection_run(events[i].data.ptr);
        }
    }
}

static int result_print(const struct load *load)
{
    uint64_t answers = 0;
    uint64_t unexpected = 0;
    printf("%-9s %10s %9s %8s %10s %9s %9s %9s\n", "kind", "good", "expected", "refused",
           "unexpected", "p50 us", "p99 us", "max us");
    for (unsigned i = 0; i < KIND_COUNT; i++) {
        const struct tally *tally = &load->tallies[i];
        if (!load->options.chosen[i]) {
            continue;
        }
        answers += tally->time.count;
        unexpected += tally->unexpected;
        printf("%-9s %10" PRIu64 " %9" PRIu64 " %8" PRIu64 " %10" PRIu64 " %9" PRIu64 " %9" PRIu64
               " %9" PRIu64 "\n",
               kind_names[i], tally->good, tally->expected, tally->refused, tally->unexpected,
               hist_percentile_get(&tally->time, 50), hist_percentile_get(&tally->time, 99),
               tally->time.max_us);
    }
    printf("%" PRIu64 " answers, %" PRIu64 " a second, %" PRIu64 " broken connections\n", answers,
           answers / load->options.seconds, load->broken);
    if (unexpected > 0) {
        fprintf(stderr, "load: the first unexpected answer was %d\n", load->first_unexpected);
    }
    return unexpected + load->broken > 0 ? EXIT_UNEXPECTED : 0;
}

/* ---------------------------------------------------------------------------- arguments */

static void usage_exit(void)
{
    fputs(usage_text, stderr);
    exit(EXIT_USAGE);
}

static uint64_t number_parse(const char *name, const char *text, uint64_t min, uint64_t max)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno || *end || end == text || *text == '-' || value < min || value > max) {
        fprintf(stderr, "load: --%s takes a number from %" PRIu64 " to %" PRIu64 ", not \"%s\"\n",
                name, min, max, text);
        usage_exit();
    }
    return value;
}

static void kinds_parse(const char *text, bool *chosen)
{
    memset(chosen, 0, KIND_COUNT * sizeof *chosen);
    do {
        size_t len = strcspn(text, ",");
        unsigned kind = 0;
        while (kind < KIND_COUNT &&
               (strlen(kind_names[kind]) != len || memcmp(kind_names[kind], text, len) != 0)) {
            kind++;
        }
        if (kind == KIND_COUNT) {
            fprintf(stderr, "load: --only does not know \"%.*s\"\n", (int)len, text);
            usage_exit();
        }
        chosen[kind] = true;
        text += len + (text[len] == ',');
    } while (*text);
}

static struct options options_parse(int argc, char **argv)
{
    struct options options = {.connections = 32,
                              .streams = 100,
                              .seconds = 10,
                              .seed = 1,
                              .body_bytes = 512,
                              .path = "/v1/stream/load"};
    memset(options.chosen, true, sizeof options.chosen);
    static const struct option table[] = {{"port", required_argument, NULL, 'p'},
                                          {"path", required_argument, NULL, 'u'},
                                          {"connections", required_argument, NULL, 'n'},
                                          {"streams", required_argument, NULL, 'm'},
                                          {"seconds", required_argument, NULL, 's'},
                                          {"seed", required_argument, NULL, 'x'},
                                          {"body", required_argument, NULL, 'b'},
                                          {"only", required_argument, NULL, 'o'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    int choice;
    while ((choice = getopt_long(argc, argv, "", table, NULL)) != -1) {
        switch (choice) {
        case 'p':
            options.port = (uint16_t)number_parse("port", optarg, 1, 65535);
            break;
        case 'u':
            options.path = optarg;
            break;
        case 'n':
            options.connections = (unsigned)number_parse("connections", optarg, 1, 50000);
            break;
        case 'm':
            options.streams = (unsigned)number_parse("streams", optarg, 1, 1000000);
            break;
        case 's':
            options.seconds = (unsigned)number_parse("seconds", optarg, 1, 86400);
            break;
        case 'x':
            options.seed = number_parse("seed", optarg, 0, UINT32_MAX);
            break;
        case 'b':
            options.body_bytes = (unsigned)number_parse("body", optarg, 2, BODY_BYTES_MAX);
            break;
        case 'o':
            kinds_parse(optarg, options.chosen);
            break;
        case 'h':
            fputs(usage_text, stdout);
            exit(0);
        default:
            usage_exit();
        }
    }
    if (optind < argc || !options.port || strlen(options.path) > 200) {
        usage_exit();
    }
    return options;
}

int main(int argc, char **argv)
{
    static struct load load;
    load.options = options_parse(argc, argv);
    load_setup(&load);
    streams_create(&load);
    load_run(&load);
    return result_print(&load);
}
