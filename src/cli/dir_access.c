/* One line is sent, one comes back. The socket is reached through the directory's descriptor, since
 * the address of a socket has room for 108 bytes and a path may be longer. */
#include "cli/dir_access.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_MS_MAX 30000
#define KEEP_MS       2000u
#define LINE_BYTES    256u

static uint64_t now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail for this clock */
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static int connect_to(const char *dir)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = at < 0 ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0) {
        (void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/control", at);
        if (connect(fd, (const struct sockaddr *)(const void *)&address, sizeof(address)) != 0) {
            (void)close(fd); /* nothing was sent */
            fd = -1;
        }
    }
    if (at >= 0) {
        (void)close(at); /* a path only */
    }
    return fd;
}

/* Reads a line into `line`, without its end. */
static bool read_line(int fd, char line[static LINE_BYTES])
{
    size_t len = 0;

    while (len + 1 < LINE_BYTES) {
        struct pollfd poller = {.fd = fd, .events = POLLIN};
        int ready = poll(&poller, 1, ANSWER_MS_MAX);
        ssize_t n = ready > 0 ? read(fd, line + len, 1) : -1;

        if (ready < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        if (line[len] == '\n') {
            line[len] = '\0';
            return true;
        }
        len++;
    }
    return false;
}

/* Sends a line and reads the answer. */
static bool ask(int fd, const char *question, char answer[static LINE_BYTES])
{
    size_t len = strlen(question);

    return send(fd, question, len, MSG_NOSIGNAL) == (ssize_t)len && read_line(fd, answer);
}

static bool parse_held(const char *answer, log_pos *ret_durable)
{
    unsigned long long durable = 0;
    bool held = sscanf(answer, "held %llu", &durable) == 1;

    *ret_durable = durable;
    return held;
}

static int ask_server(struct dir_access *a, const char *dir, struct errmsg *msg)
{
    char answer[LINE_BYTES];
    log_pos durable = 0;

    a->socket = connect_to(dir);
    if (a->socket < 0) {
        return err_set(msg, ERR_LOCKED,
                       "a process has %s, and nobody answers at %s/control (%s): stop it, or wait "
                       "until it has started",
                       dir, dir, strerror(errno));
    }
    if (!ask(a->socket, "hold\n", answer)) {
        (void)close(a->socket); /* nothing more to say */
        return err_set(msg, ERR_AGAIN, "the server of %s does not answer", dir);
    }
    if (!parse_held(answer, &durable)) {
        (void)close(a->socket); /* likewise */
        return err_set(msg, ERR_AGAIN, "the server of %s refuses: %s", dir, answer);
    }
    a->running = true;
    a->kept_ms = now_ms();
    return 0;
}

/* Whether something of a data directory's stands in `dir`, or nothing at all can be said. */
static bool looks_like_data(const char *dir)
{
    static const char *const parts[] = {"catalog", "wal", "packs"};
    char path[DIR_PATH_BYTES];

    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", dir, parts[i]);
        if (access(path, F_OK) == 0) {
            return true;
        }
    }
    return access(dir, R_OK | X_OK) != 0; /* what is wrong is told where it is opened */
}

/* The real path of the deepest part of `path` that exists; the caller's to free. NULL: there is no
 * memory, or no way there. */
static char *existing_part(const char *path)
{
    char *name = strdup(path);
    char *real = NULL;

    while (name != NULL && (real = realpath(name, NULL)) == NULL) {
        char *slash = strrchr(name, '/');

        if (slash == NULL || slash == name) {
            real = realpath(slash == NULL ? "." : "/", NULL);
            break;
        }
        *slash = '\0';
    }
    free(name);
    return real;
}

/* Whether `path`, which may not exist yet, is `dir` or lies below it. */
static bool is_within(const char *dir, const char *path)
{
    char *base = realpath(dir, NULL);
    char *real = existing_part(path);
    size_t len = base == NULL ? 0 : strlen(base);
    bool within = base != NULL && real != NULL && strncmp(real, base, len) == 0 &&
                  (real[len] == '\0' || real[len] == '/');

    free(base);
    free(real);
    return within;
}

int dir_access_apart(const char *from, const char *to, struct errmsg *msg)
{
    if (is_within(from, to) || is_within(to, from)) {
        return err_set(msg, ERR_INVALID,
                       "%.100s and %.100s lie in one another: choose another place", from, to);
    }
    return 0;
}

int dir_access_begin(const char *dir, struct dir_access *ret_access, struct errmsg *msg)
{
    struct dir_access a = {.lock_fd = -1, .socket = -1};
    char path[DIR_PATH_BYTES];

    sys_posix_init(&a.sys);
    if (strlen(dir) > DIR_PATH_BYTES - 200) {
        return err_set(msg, ERR_INVALID, "the path of the data directory is longer than %u bytes",
                       DIR_PATH_BYTES - 200);
    }
    if (!looks_like_data(dir)) {
        return err_set(msg, ERR_INVALID,
                       "%.120s is no data directory: there is neither wal, packs nor catalog in it",
                       dir);
    }
    (void)snprintf(path, sizeof(path), "%s/lock", dir);
    a.lock_fd = a.sys.lock_shared(a.sys.context, path);
    int code = 0;

    if (a.lock_fd == ERR_LOCKED) {
        code = ask_server(&a, dir, msg);
    } else if (a.lock_fd < 0 && a.lock_fd != ERR_NOTFOUND) {
        code = err_set(msg, a.lock_fd, "cannot lock %s: %s", path, err_file_text(a.lock_fd));
    }
    if (code == 0) {
        *ret_access = a;
    }
    return code;
}

/* False: the server holds no more, or does not say; the reason is in `lost`. */
static bool inquire(struct dir_access *a, const char *question, char answer[static LINE_BYTES])
{
    if (a->lost[0] == '\0' && !ask(a->socket, question, answer)) {
        (void)snprintf(a->lost, sizeof(a->lost), "the server ended or no longer answers");
    }
    a->kept_ms = now_ms();
    return a->lost[0] == '\0';
}

static void refused(struct dir_access *a, const char *answer)
{
    (void)snprintf(a->lost, sizeof(a->lost), "%.190s", answer);
}

static void note_answer(struct dir_access *a, const char *question)
{
    char answer[LINE_BYTES];

    if (a->socket >= 0 && inquire(a, question, answer) && strcmp(answer, "ok") != 0) {
        refused(a, answer);
    }
}

static int tell_lost(const struct dir_access *a, struct errmsg *msg)
{
    return err_set(msg, ERR_AGAIN, "the server let go of its files meanwhile: %s", a->lost);
}

int dir_access_durable(struct dir_access *a, log_pos *ret_durable, struct errmsg *msg)
{
    char answer[LINE_BYTES];

    if (inquire(a, "hold\n", answer) && !parse_held(answer, ret_durable)) {
        refused(a, answer);
    }
    return a->lost[0] == '\0' ? 0 : tell_lost(a, msg);
}

void dir_access_keep(struct dir_access *a)
{
    if (a->socket >= 0 && now_ms() - a->kept_ms >= KEEP_MS) {
        note_answer(a, "keep\n");
    }
}

void dir_access_log_done(struct dir_access *a)
{
    note_answer(a, "log done\n");
}

void dir_access_catalog_done(struct dir_access *a)
{
    note_answer(a, "catalog done\n");
}

bool dir_access_lost(struct dir_access *a, struct errmsg *msg)
{
    note_answer(a, "keep\n");
    if (a->lost[0] == '\0') {
        return false;
    }
    (void)tell_lost(a, msg);
    return true;
}

void dir_access_end(struct dir_access *a)
{
    if (a->socket >= 0) {
        (void)close(a->socket); /* which ends the hold */
    }
    if (a->lock_fd >= 0) {
        a->sys.close(a->sys.context, a->lock_fd);
    }
}
