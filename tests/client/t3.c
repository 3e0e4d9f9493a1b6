/* A connection to a T3 Code server, or a reader of one, in a program of its own, for the end-to-end
 * tests: it uses what arbe/t3_rpc.h and arbe/t3_reader.h have and nothing else, does what lines on
 * stdin say, and tells on stdout, a JSON object a line, what comes. The token is in the
 * environment, ARBE_T3_TOKEN.
 *
 *   t3 rpc|reader URL [OPTION=VALUE ...]
 *
 * form=poll (one thread, with poll(2)) or form=block (of rpc: a thread takes events, and another
 * does the commands; of a reader: one, which waits in the library)
 * ack=auto: each chunk at once  show=len: of chunks their length instead of their JSON
 * ca=FILE connect=MS ping=MS missed=N message=BYTES depth=N requests=N
 * of a reader: token_file=FILE (read at each connection) delay=MS max_delay=MS multiplier=X
 * subscribe="METHOD [PAYLOAD]" (before the first event is asked for; as often as wished)
 *
 * subscribe METHOD [PAYLOAD]  ack ID  {"did":"subscribe","id":1}, or with "code"
 * of rpc: call METHOD [PAYLOAD]  interrupt ID  close
 * storm THREADS TIMES (each calls and interrupts; 0: until the connection has ended)
 * churn N (so many connections of their own)
 * pause, resume (with form=poll: no events are taken meanwhile; with "hwm_kib", the most memory so
 * far)
 * of a reader: unsubscribe ID  refuse MESSAGE  retry
 *
 * The end of stdin frees whatever stands; the last line is {"end":true} with what is left of
 * descriptors and threads. */
#include "client/program.h"

#include <arbe/t3_reader.h>

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 16
#define WAIT_MS     30000
#define INPUT_BYTES ((size_t)1 << 16)
#define SHELL       "orchestration.subscribeShell"
#define PROJECTION  "orchestration.getThreadProjection"

static const char *url;
static struct t3_rpc *rpc;
static struct t3_reader *reader;
static bool paused;

/* ----------------------------------------------------------------------------------- telling
 *
 * Two threads tell; a line is begun and ended by one. */

static void begin(const char *name, const char *value)
{
    flockfile(stdout);
    printf("{\"%s\":\"%s\"", name, value);
}

static void end(void)
{
    printf("}\n");
    (void)fflush(stdout);
    funlockfile(stdout);
}

static void tell_error(const struct t3_rpc_error *error)
{
    print_text("code", t3_rpc_code_name(error->code));
    printf(",\"status\":%d", error->status);
    print_text("message", error->message);
}

/* Line breaks can only be between tokens. */
static void tell_json(const char *json, size_t len)
{
    if (json == NULL) {
        return;
    }
    if (json[len] != '\0') {
        printf(",\"no_nul\":true");
    }
    if (strcmp(option("show", ""), "len") == 0) {
        printf(",\"len\":%zu", len);
        return;
    }
    printf(",\"json\":");
    for (size_t i = 0; i < len; i++) {
        putchar(json[i] == '\n' || json[i] == '\r' ? ' ' : json[i]);
    }
}

static void tell_done(const char *what, int rc, uint64_t id, const struct t3_rpc_error *error)
{
    begin("did", what);
    if (rc == T3_RPC_OK) {
        printf(",\"id\":%llu", (unsigned long long)id);
    } else {
        tell_error(error);
    }
    end();
}

/* Entries of a folder of /proc/self, but for dots and the one that looks. */
static int count_entries(const char *path)
{
    DIR *dir = opendir(path);
    int count = 0;

    for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return count;
}

struct left {
    int fds;
    int threads;
};

/* Threads first: one that looks up a name and ends between the two would leave its descriptor
 * counted, and not itself. */
static struct left count_left(void)
{
    int threads = count_entries("/proc/self/task");

    return (struct left){.fds = count_entries("/proc/self/fd"), .threads = threads};
}

/* A thread that was joined may be seen for a moment more. */
static struct left left_over(struct left before)
{
    struct left now = count_left();

    for (int i = 0; i < 5000 && now.threads > before.threads; i++) {
        (void)poll(NULL, 0, 1);
        now = count_left();
    }
    return (struct left){now.fds - before.fds, now.threads - before.threads};
}

/* ---------------------------------------------------------------------------------- options */

static struct t3_rpc_options rpc_options(void)
{
    struct t3_rpc_options o;

    t3_rpc_options_init(&o);
    o.token = getenv("ARBE_T3_TOKEN");
    o.ca_file = option("ca", NULL);
    o.connect_timeout_ms = number("connect", o.connect_timeout_ms);
    o.ping_interval_ms = number("ping", o.ping_interval_ms);
    o.pings_missed_max = number("missed", o.pings_missed_max);
    o.message_bytes_max = (size_t)number("message", (int)o.message_bytes_max);
    o.depth_max = number("depth", o.depth_max);
    o.requests_max = number("requests", o.requests_max);
    return o;
}

static int read_token(void *context, char token[T3_READER_TOKEN_BYTES],
                      char message[T3_RPC_MESSAGE_BYTES])
{
    const char *path = context;
    FILE *file = fopen(path, "r");

    if (file == NULL || fgets(token, T3_READER_TOKEN_BYTES, file) == NULL) {
        token[0] = '\0';
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    token[strcspn(token, "\n")] = '\0';
    (void)snprintf(message, T3_RPC_MESSAGE_BYTES, "no token in the file");
    return token[0] == '\0' ? -1 : 0;
}

static struct t3_reader_options reader_options(void)
{
    struct t3_reader_options o;
    const char *path = option("token_file", NULL);

    t3_reader_options_init(&o);
    o.rpc = rpc_options();
    o.token = path == NULL ? NULL : read_token;
    o.context = (void *)path;
    o.initial_delay_ms = number("delay", o.initial_delay_ms);
    o.max_delay_ms = number("max_delay", o.max_delay_ms);
    o.multiplier = strtod(option("multiplier", "1.5"), NULL);
    return o;
}

/* ------------------------------------------------------------------- commands of a connection */

struct storm {
    pthread_t thread;
    int times;
    int refused; /* calls */
};

static void *run_storm(void *arg)
{
    struct storm *s = arg;

    for (int i = 0; s->times == 0 || i < s->times; i++) {
        struct t3_rpc_error error;
        uint64_t id = 0;
        int rc = i % 2 == 0 ? t3_rpc_call(rpc, PROJECTION, "{\"threadId\":\"t-1\"}", &id, &error)
                            : t3_rpc_subscribe(rpc, SHELL, NULL, &id, &error);

        if (rc == T3_RPC_ERROR_CLOSED && s->times == 0) {
            return NULL;
        }
        if (rc != T3_RPC_OK) {
            s->refused++;
            (void)sched_yield();
        } else if (i % 2 == 1) {
            t3_rpc_interrupt(rpc, id);
        }
    }
    return NULL;
}

static void storm(const char *rest)
{
    struct storm all[THREADS_MAX] = {0};
    char *next;
    long threads = strtol(rest, &next, 10);
    int times = (int)strtol(next, NULL, 10);
    int refused = 0;

    threads = threads > THREADS_MAX ? THREADS_MAX : threads;
    for (long i = 0; i < threads; i++) {
        all[i].times = times;
        if (pthread_create(&all[i].thread, NULL, run_storm, &all[i]) != 0) {
            abort();
        }
    }
    for (long i = 0; i < threads; i++) {
        (void)pthread_join(all[i].thread, NULL);
        refused += all[i].refused;
    }
    begin("did", "storm");
    printf(",\"refused\":%d", refused);
    end();
}

/* A connection that is freed at once, when it stands, at its first chunk, or when it has closed. */
static bool churn_one(int i)
{
    static const enum t3_rpc_event_kind until[] = {T3_RPC_EVENT_OPEN, T3_RPC_EVENT_OPEN,
                                                   T3_RPC_EVENT_CHUNK, T3_RPC_EVENT_CLOSED};
    struct t3_rpc_options o = rpc_options();
    struct t3_rpc_event event = {.kind = T3_RPC_EVENT_ERROR};
    struct t3_rpc *one;
    bool good = true;

    if (t3_rpc_connect(url, &o, &one, NULL) != T3_RPC_OK) {
        return false;
    }
    (void)t3_rpc_subscribe(one, SHELL, NULL, &(uint64_t){0}, NULL);
    while (i % 4 != 0 && good && event.kind != until[i % 4]) {
        good = t3_rpc_next(one, WAIT_MS, &event) == 1;
        if (event.kind == T3_RPC_EVENT_OPEN && i % 4 == 3) {
            t3_rpc_close(one);
        }
    }
    t3_rpc_free(one);
    return good;
}

static void churn(const char *rest)
{
    long times = strtol(rest, NULL, 10);
    struct left before = count_left();
    int bad = 0;

    for (int i = 0; i < times; i++) {
        bad += !churn_one(i);
    }
    struct left over = left_over(before);

    begin("did", "churn");
    printf(",\"bad\":%d,\"fds\":%d,\"threads\":%d", bad, over.fds, over.threads);
    end();
}

static void set_paused(const char *verb)
{
    paused = strcmp(verb, "pause") == 0;
    begin("did", verb);
    printf(",\"hwm_kib\":%ld", high_water());
    end();
}

static void command_rpc(const char *verb, char *rest)
{
    struct t3_rpc_error error = {0};
    uint64_t id = strtoull(rest, NULL, 10);
    char *payload = strchr(rest, ' ');
    int rc;

    if (strcmp(verb, "subscribe") == 0 || strcmp(verb, "call") == 0) {
        if (payload != NULL) {
            *payload++ = '\0';
        }
        id = 0;
        rc = verb[0] == 's' ? t3_rpc_subscribe(rpc, rest, payload, &id, &error)
                            : t3_rpc_call(rpc, rest, payload, &id, &error);
        tell_done(verb, rc, id, &error);
    } else if (strcmp(verb, "ack") == 0) {
        rc = t3_rpc_ack(rpc, id, &error);
        tell_done(verb, rc, id, &error);
    } else if (strcmp(verb, "interrupt") == 0) {
        t3_rpc_interrupt(rpc, id);
        tell_done(verb, T3_RPC_OK, id, &error);
    } else if (strcmp(verb, "close") == 0) {
        t3_rpc_close(rpc);
    } else if (strcmp(verb, "storm") == 0) {
        storm(rest);
    } else if (strcmp(verb, "churn") == 0) {
        churn(rest);
    } else if (strcmp(verb, "pause") == 0 || strcmp(verb, "resume") == 0) {
        set_paused(verb);
    } else {
        abort();
    }
}

static void command_reader(const char *verb, char *rest)
{
    struct t3_rpc_error error = {0};
    uint64_t id = strtoull(rest, NULL, 10);
    char *payload = strchr(rest, ' ');
    int rc = T3_RPC_OK;

    if (strcmp(verb, "subscribe") == 0) {
        if (payload != NULL) {
            *payload++ = '\0';
        }
        id = 0;
        rc = t3_reader_subscribe(reader, rest, payload, &id, &error);
    } else if (strcmp(verb, "ack") == 0) {
        t3_reader_ack(reader, id);
    } else if (strcmp(verb, "unsubscribe") == 0) {
        t3_reader_unsubscribe(reader, id);
    } else if (strcmp(verb, "refuse") == 0) {
        error.code = T3_RPC_ERROR_VERSION;
        (void)snprintf(error.message, sizeof(error.message), "%s", rest);
        t3_reader_refuse(reader, &error);
    } else if (strcmp(verb, "retry") == 0) {
        t3_reader_retry(reader);
    } else {
        abort();
    }
    tell_done(verb, rc, id, &error);
}

static void command(char *line)
{
    char *rest = line + strcspn(line, " ");

    if (*rest != '\0') {
        *rest++ = '\0';
    }
    if (rpc != NULL) {
        command_rpc(line, rest);
    } else {
        command_reader(line, rest);
    }
}

/* Reads what stdin has and does the lines of it that are whole. False at the end of stdin. */
static bool commands(void)
{
    static char *input;
    static size_t size;
    static size_t len;
    char *line;
    char *next;
    ssize_t got;

    if (size - len < INPUT_BYTES) {
        size = 2 * size + INPUT_BYTES;
        input = realloc(input, size);
        if (input == NULL) {
            abort();
        }
    }
    got = read(STDIN_FILENO, input + len, size - len);
    if (got <= 0) {
        free(input);
        input = NULL;
        return false;
    }
    len += (size_t)got;
    for (line = input; (next = memchr(line, '\n', len - (size_t)(line - input))) != NULL;
         line = next) {
        *next++ = '\0';
        command(line);
    }
    len -= (size_t)(line - input);
    memmove(input, line, len);
    return true;
}

/* ----------------------------------------------------------------------------- a connection */

/* After that nothing follows, and nobody waits for it. */
static void tell_closed(void)
{
    struct t3_rpc_event event;
    struct pollfd fd = {.fd = t3_rpc_fd(rpc), .events = POLLIN};

    printf(",\"after\":%d", t3_rpc_next(rpc, -1, &event));
    printf(",\"readable\":%d", poll(&fd, 1, 0));
}

static void tell_rpc_event(const struct t3_rpc_event *event)
{
    static const char *const names[] = {"open", "chunk", "done", "error", "closed"};

    begin("event", names[event->kind]);
    printf(",\"id\":%llu", (unsigned long long)event->id);
    tell_json(event->json, event->len);
    if (event->kind == T3_RPC_EVENT_ERROR || event->kind == T3_RPC_EVENT_CLOSED) {
        tell_error(&event->error);
    }
    if (event->kind == T3_RPC_EVENT_CLOSED) {
        tell_closed();
    }
    end();
    if (event->kind == T3_RPC_EVENT_CHUNK && strcmp(option("ack", ""), "auto") == 0) {
        (void)t3_rpc_ack(rpc, event->id, NULL);
    }
}

static void *run_commands(void *unused)
{
    (void)unused;
    while (commands()) {
    }
    t3_rpc_close(rpc);
    return NULL;
}

static void run_rpc_block(void)
{
    struct t3_rpc_event event = {.kind = T3_RPC_EVENT_OPEN};
    pthread_t thread;

    if (pthread_create(&thread, NULL, run_commands, NULL) != 0) {
        abort();
    }
    while (event.kind != T3_RPC_EVENT_CLOSED && t3_rpc_next(rpc, -1, &event) == 1) {
        tell_rpc_event(&event);
    }
    (void)pthread_join(thread, NULL);
}

/* Whether stdin has something. */
static bool stdin_ready(int fd, bool *ret_event)
{
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = fd, .events = POLLIN}};

    while (poll(fds, 2, -1) < 0 && errno == EINTR) {
    }
    *ret_event = fds[1].revents != 0;
    return fds[0].revents != 0;
}

static void run_rpc_poll(void)
{
    struct t3_rpc_event event;
    bool some;

    for (;;) {
        if (stdin_ready(paused ? -1 : t3_rpc_fd(rpc), &some) && !commands()) {
            return;
        }
        if (some && t3_rpc_next(rpc, 0, &event) == 1) {
            tell_rpc_event(&event);
        }
    }
}

static int run_rpc(void)
{
    struct t3_rpc_options o = rpc_options();
    struct t3_rpc_error error = {0};
    int rc = t3_rpc_connect(url, &o, &rpc, &error);

    tell_done("connect", rc, 0, &error);
    if (rc != T3_RPC_OK) {
        return 1;
    }
    if (strcmp(option("form", "poll"), "block") == 0) {
        run_rpc_block();
    } else {
        run_rpc_poll();
    }
    t3_rpc_free(rpc);
    return 0;
}

/* --------------------------------------------------------------------------------- a reader */

static void tell_reader_event(const struct t3_reader_event *event)
{
    static const char *const names[] = {"state", "chunk", "error", "broken"};

    begin("event", names[event->kind]);
    print_text("state", t3_reader_state_name(event->state));
    printf(",\"id\":%llu", (unsigned long long)event->id);
    if (event->kind == T3_READER_EVENT_CHUNK) {
        printf(",\"fresh\":%d", event->fresh);
    } else {
        printf(",\"delay_ms\":%d", event->delay_ms);
        tell_error(&event->error);
    }
    tell_json(event->json, event->len);
    end();
    if (event->kind == T3_READER_EVENT_CHUNK && strcmp(option("ack", ""), "auto") == 0) {
        t3_reader_ack(reader, event->id);
    }
}

static void subscribe_first(void)
{
    for (int i = 0; i < option_count; i++) {
        if (strncmp(option_words[i], "subscribe=", 10) == 0) {
            command_reader("subscribe", option_words[i] + 10);
        }
    }
}

/* Waits in the library, and looks up now and then for commands. */
static bool wait_reader(void)
{
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
    struct t3_reader_event event;

    if (t3_reader_next(reader, 20, &event) == 1) {
        tell_reader_event(&event);
    }
    return poll(&fd, 1, 0) <= 0 || commands();
}

static bool poll_reader(void)
{
    struct t3_reader_event event;
    bool some;

    if (stdin_ready(t3_reader_fd(reader), &some) && !commands()) {
        return false;
    }
    if (some && t3_reader_next(reader, 0, &event) == 1) {
        tell_reader_event(&event);
    }
    return true;
}

static int run_reader(void)
{
    struct t3_reader_options o = reader_options();
    struct t3_rpc_error error = {0};
    int rc = t3_reader_new(url, &o, &reader, &error);
    bool block = strcmp(option("form", "poll"), "block") == 0;

    tell_done("new", rc, 0, &error);
    if (rc != T3_RPC_OK) {
        return 1;
    }
    subscribe_first();
    while (block ? wait_reader() : poll_reader()) {
    }
    t3_reader_free(reader);
    return 0;
}

static void *tell_id(void *ret_id)
{
    *(pid_t *)ret_id = gettid();
    return NULL;
}

/* What a sanitizer starts together with the first thread is not to be found at the end. */
static struct left count_at_first(void)
{
    char path[64];
    pthread_t thread;
    pid_t id;

    if (pthread_create(&thread, NULL, tell_id, &id) != 0) {
        abort();
    }
    (void)pthread_join(thread, NULL);
    (void)snprintf(path, sizeof(path), "/proc/self/task/%d", id);
    while (access(path, F_OK) == 0) {
        (void)sched_yield();
    }
    return count_left();
}

int main(int argc, char **argv)
{
    struct left before;
    int rc;

    if (argc < 3) {
        return 2;
    }
    before = count_at_first();
    url = argv[2];
    option_words = argv + 3;
    option_count = argc - 3;
    rc = strcmp(argv[1], "rpc") == 0 ? run_rpc() : run_reader();
    struct left over = left_over(before);

    printf("{\"end\":true,\"fds\":%d,\"threads\":%d}\n", over.fds, over.threads);
    return rc;
}
