/* A handful of connections that rarely speak: one poll for all of them. A tool that falls silent is
 * dropped after HOLD_SILENCE_MS, one that never ends after HOLD_MS_MAX. */
#include "serve/door.h"

#include "base/limits.h"
#include "log/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 64u
#define TICK_MS    1000
#define RETRY_MS   100 /* after running out of descriptors or memory */
#define PLACE_STOP 0u
#define PLACE_DOOR 1u
#define PLACES     (2u + HOLDS_MAX)

struct caller {
    int fd; /* below 0: the place is free */
    struct hold *hold;
    uint64_t began_ms;
    uint64_t heard_ms;
    size_t len;
    char line[LINE_BYTES];
};

struct door {
    struct holds *holds;
    const struct logger *logger;
    int dir_fd;
    int listener;
    int stop;
    uint64_t deaf_until_ms; /* it ran out of descriptors; till then nobody is let in */
    struct caller callers[HOLDS_MAX];
    pthread_t thread;
};

static uint64_t now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail for this clock */
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void hang_up(struct caller *c)
{
    hold_end(c->hold);
    (void)close(c->fd); /* all that was to be said was sent */
    *c = (struct caller){.fd = -1};
}

static void answer(struct caller *c, const char *text)
{
    char line[160];
    int len = snprintf(line, sizeof(line), "%s\n", text);

    if (send(c->fd, line, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT) != len) {
        hang_up(c); /* it does not listen */
    }
}

static void tell_position(struct caller *c, log_pos position)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "held %llu", (unsigned long long)position);
    answer(c, text);
}

static void begin_hold(struct door *d, struct caller *c)
{
    int code = hold_begin(d->holds, &c->hold);

    if (code != 0) {
        answer(c, code == ERR_LIMIT ? "other tools are at work" : err_text(code));
        return;
    }
    logger_line(d->logger, LOGGER_INFO, "a tool reads the data directory; its files are held");
    tell_position(c, hold_durable(c->hold));
}

static void obey(struct door *d, struct caller *c)
{
    bool hold = strcmp(c->line, "hold") == 0;

    if (c->hold == NULL && hold) {
        begin_hold(d, c);
    } else if (c->hold == NULL) {
        answer(c, "nothing is held");
    } else if (hold_broken(c->hold)) {
        answer(c, "the disk ran short of space or failed, and what was held was needed");
    } else if (hold) {
        tell_position(c, hold_renew(c->hold));
    } else if (strcmp(c->line, "keep") == 0) {
        answer(c, "ok");
    } else if (strcmp(c->line, "log done") == 0) {
        hold_log_done(c->hold);
        answer(c, "ok");
    } else if (strcmp(c->line, "catalog done") == 0) {
        hold_catalog_done(c->hold);
        answer(c, "ok");
    } else {
        answer(c, "this server does not know what is asked");
    }
}

/* Takes what has come, line by line. */
static void hear(struct door *d, struct caller *c)
{
    char bytes[LINE_BYTES];
    ssize_t got = recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        hang_up(c);
    }
    for (ssize_t i = 0; i < got && c->fd >= 0; i++) {
        if (bytes[i] == '\n') {
            c->line[c->len] = '\0';
            c->len = 0;
            c->heard_ms = now_ms();
            obey(d, c);
        } else if (c->len + 1 < LINE_BYTES) {
            c->line[c->len++] = bytes[i];
        } else {
            hang_up(c); /* nothing that we know is so long */
        }
    }
}

/* Only who may read the directory anyway is heard. */
static bool may_ask(int fd)
{
    struct ucred who;
    socklen_t len = sizeof(who);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
           (who.uid == 0 || who.uid == geteuid());
}

static bool out_of_means(int errno_value)
{
    return errno_value == EMFILE || errno_value == ENFILE || errno_value == ENOBUFS ||
           errno_value == ENOMEM;
}

static void let_in(struct door *d)
{
    int fd = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0 && out_of_means(errno)) {
        d->deaf_until_ms = now_ms() + RETRY_MS; /* poll would spin */
    }

    for (unsigned i = 0; fd >= 0 && i < HOLDS_MAX && may_ask(fd); i++) {
        struct caller *c = &d->callers[i];

        if (c->fd < 0) {
            *c = (struct caller){.fd = fd, .began_ms = now_ms(), .heard_ms = now_ms()};
            return;
        }
    }
    if (fd >= 0) {
        (void)close(fd); /* there is no place for it */
    }
}

static void drop_silent(struct door *d)
{
    uint64_t now = now_ms();

    for (unsigned i = 0; i < HOLDS_MAX; i++) {
        struct caller *c = &d->callers[i];

        if (c->fd >= 0 &&
            (now - c->heard_ms > HOLD_SILENCE_MS || now - c->began_ms > HOLD_MS_MAX)) {
            logger_line(d->logger, LOGGER_WARN,
                        "a tool that reads the data directory was given up: it %s",
                        now - c->heard_ms > HOLD_SILENCE_MS ? "fell silent" : "takes too long");
            hang_up(c);
        }
    }
}

/* Sets what is to be waited for, and tells for how long: milliseconds, or -1. */
static int set_places(const struct door *d, struct pollfd places[static PLACES])
{
    bool deaf = now_ms() < d->deaf_until_ms;
    bool any = false;

    places[PLACE_STOP] = (struct pollfd){.fd = d->stop, .events = POLLIN};
    places[PLACE_DOOR] = (struct pollfd){.fd = deaf ? -1 : d->listener, .events = POLLIN};
    for (unsigned i = 0; i < HOLDS_MAX; i++) {
        places[2 + i] = (struct pollfd){.fd = d->callers[i].fd, .events = POLLIN};
        any = any || d->callers[i].fd >= 0;
    }
    return deaf ? RETRY_MS : any ? TICK_MS : -1;
}

static void *door_main(void *context)
{
    struct door *d = context;
    struct pollfd places[PLACES];

    for (;;) {
        int ms = set_places(d, places);

        if (poll(places, PLACES, ms) < 0 && errno != EINTR) {
            return NULL;
        }
        if (places[PLACE_STOP].revents != 0) {
            return NULL;
        }
        for (unsigned i = 0; i < HOLDS_MAX; i++) {
            if (places[2 + i].fd >= 0 && places[2 + i].revents != 0) {
                hear(d, &d->callers[i]);
            }
        }
        if (places[PLACE_DOOR].revents != 0) {
            let_in(d);
        }
        drop_silent(d);
    }
}

/* Binds through the directory's descriptor, since an address has room for 108 bytes. */
static int open_door(struct door *d, struct errmsg *msg)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/control",
                   d->dir_fd);
    d->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)unlinkat(d->dir_fd, "control", 0); /* of a process that was killed, or none */
    if (d->listener < 0 || fchmod(d->listener, 0600) != 0 ||
        bind(d->listener, (const struct sockaddr *)(const void *)&address, sizeof(address)) != 0 ||
        listen(d->listener, (int)HOLDS_MAX) != 0) {
        return err_set(msg, ERR_IO, "%s", strerror(errno));
    }
    return 0;
}

static void close_all(struct door *d)
{
    const int fds[] = {d->listener, d->stop, d->dir_fd};

    for (unsigned i = 0; i < HOLDS_MAX; i++) {
        if (d->callers[i].fd >= 0) {
            hang_up(&d->callers[i]);
        }
    }
    if (d->listener >= 0) {
        (void)unlinkat(d->dir_fd, "control", 0); /* a left-over does no harm */
    }
    for (unsigned i = 0; i < ARRAY_COUNT(fds); i++) {
        if (fds[i] >= 0) {
            (void)close(fds[i]); /* nothing was written to a file */
        }
    }
    free(d);
}

int door_open(const char *dir, struct holds *holds, const struct logger *logger,
              struct door **ret_door, struct errmsg *msg)
{
    struct door *d = calloc(1, sizeof(*d));

    if (d == NULL) {
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    d->holds = holds;
    d->logger = logger;
    d->listener = -1;
    for (unsigned i = 0; i < HOLDS_MAX; i++) {
        d->callers[i].fd = -1;
    }
    d->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    d->dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int code = d->stop < 0 || d->dir_fd < 0 ? err_set(msg, ERR_IO, "%s", strerror(errno)) : 0;

    code = code == 0 ? open_door(d, msg) : code;
    if (code == 0 && pthread_create(&d->thread, NULL, door_main, d) != 0) {
        code = err_set(msg, ERR_AGAIN, "cannot start a thread");
    }
    if (code != 0) {
        close_all(d);
        return code;
    }
    *ret_door = d;
    return 0;
}

void door_close(struct door *d)
{
    uint64_t one = 1;

    if (d == NULL) {
        return;
    }
    while (write(d->stop, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
    (void)pthread_join(d->thread, NULL); /* fails for broken code only */
    close_all(d);
}
