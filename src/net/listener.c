/* The socket is level-triggered in every loop, EPOLLEXCLUSIVE so that one connection wakes one
 * of them. The kernel prefers whichever loop registered first, so accepting where the wake-up
 * came would fill one worker with long-lived readers; hence the round: each accepted connection
 * is handed to the next worker in turn. That costs one lock per connection, none per request. */
#include "net/listener.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/number.h"
#include "base/slice.h"

#define BACKLOG          4096
#define ACCEPTS_PER_TURN 64  /* then the loop's connections get their turn */
#define INBOX_MAX        256 /* connections handed over and not yet taken */
#define RETRY_MS         100 /* after running out of descriptors or memory */

/* What the listeners of one address share. */
struct listener_group {
    pthread_mutex_t lock; /* guards all but fd, and the inboxes */
    int fd;               /* the listening socket */
    struct list members;  /* listeners, in the order of the round */
    struct list *next;    /* the member whose turn it is; the head: the first one's */
};

struct listener {
    struct listener_group *group; /* shared; the last member frees it */
    struct list link;             /* on the group's members */
    struct loop *loop;
    listener_accept_fn accept;
    void *context;           /* of accept */
    struct loop_watch watch; /* of a duplicate of the socket: each loop needs its own */
    struct loop_timer retry; /* set while out of descriptors */
    struct task deliver;     /* posted while the inbox holds something */
    bool watching;           /* the watch is added */
    bool paused;             /* by the owner; guarded by the group's lock */
    unsigned inbox_len;      /* guarded by the group's lock */
    int inbox[INBOX_MAX];    /* connections for this loop; guarded by the group's lock */
};

/* ---------------------------------------------------------------------------------- addresses */

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static socklen_t address_bytes(const union address *a)
{
    return a->any.sa_family == AF_INET ? sizeof(a->v4) : sizeof(a->v6);
}

/* Takes "HOST:PORT" apart; the brackets of an IPv6 host must be there. */
static bool split_address(const char *text, char host[static INET6_ADDRSTRLEN], uint16_t *ret_port,
                          bool *ret_v6)
{
    const char *colon = strrchr(text, ':');
    bool v6 = text[0] == '[';
    uint64_t port;
    size_t len;

    if (colon == NULL || !number_parse_u64(slice_of(colon + 1), UINT16_MAX, false, &port)) {
        return false;
    }
    len = (size_t)(colon - text);
    if (v6) {
        if (len < 2 || text[len - 1] != ']') {
            return false;
        }
        text++;
        len -= 2;
    }
    if (len == 0 || len >= INET6_ADDRSTRLEN) {
        return false;
    }
    memcpy(host, text, len);
    host[len] = '\0';
    *ret_port = (uint16_t)port;
    *ret_v6 = v6;
    return true;
}

static bool parse_address(const char *text, union address *ret_address)
{
    char host[INET6_ADDRSTRLEN];
    union address a = {.any = {0}};
    uint16_t port;
    bool v6;

    if (!split_address(text, host, &port, &v6)) {
        return false;
    }
    if (v6) {
        a.v6.sin6_family = AF_INET6;
        a.v6.sin6_port = htons(port);
        if (inet_pton(AF_INET6, host, &a.v6.sin6_addr) != 1) {
            return false;
        }
    } else {
        const char *numeric = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;

        a.v4.sin_family = AF_INET;
        a.v4.sin_port = htons(port);
        if (inet_pton(AF_INET, numeric, &a.v4.sin_addr) != 1) {
            return false;
        }
    }
    *ret_address = a;
    return true;
}

bool listener_is_loopback(const char *address)
{
    union address a;

    if (!parse_address(address, &a)) {
        return false;
    }
    if (a.any.sa_family == AF_INET) {
        return ntohl(a.v4.sin_addr.s_addr) >> 24 == 127;
    }
    return IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&a.v6.sin6_addr) && a.v6.sin6_addr.s6_addr[12] == 127);
}

void listener_address(const struct listener *listener, char *out, size_t out_bytes)
{
    union address a = {.any = {0}};
    socklen_t len = sizeof(a);
    char host[INET6_ADDRSTRLEN] = "";
    bool v6;

    assert(out_bytes > 0);
    if (getsockname(listener->group->fd, &a.any, &len) != 0) {
        out[0] = '\0';
        return;
    }
    v6 = a.any.sa_family == AF_INET6;
    (void)inet_ntop(a.any.sa_family, v6 ? (const void *)&a.v6.sin6_addr : &a.v4.sin_addr, host,
                    sizeof(host)); /* the buffer fits every address */
    (void)snprintf(out, out_bytes, v6 ? "[%s]:%u" : "%s:%u", host,
                   ntohs(v6 ? a.v6.sin6_port : a.v4.sin_port)); /* cut, as the header says */
}

/* --------------------------------------------------------------------------------- the socket */

static int set_option(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof(value));
}

/* Options that every accepted socket inherits, so that none costs a call per connection. */
static void set_inherited(int fd)
{
    /* Failing ones cost speed or notice dead peers later; neither is worth refusing to start. */
    (void)set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    (void)set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    (void)set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 60);
    (void)set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 15);
    (void)set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

static int bind_error(const char *address, int errno_value, struct errmsg *msg)
{
    switch (errno_value) {
    case EADDRINUSE:
        return err_set(msg, ERR_LOCKED, "cannot listen on %s: the port is in use", address);
    case EACCES:
    case EPERM:
        return err_set(msg, ERR_PERM, "cannot listen on %s: not permitted for this user", address);
    case EADDRNOTAVAIL:
        return err_set(msg, ERR_INVALID, "cannot listen on %s: this machine has no such address",
                       address);
    default:
        return err_set(msg, ERR_IO, "cannot listen on %s: %s", address, strerror(errno_value));
    }
}

/* A listening socket, or ERR_* with a sentence. */
static int open_socket(const char *address, struct errmsg *msg)
{
    union address a;
    int rc;
    int fd;

    if (!parse_address(address, &a)) {
        return err_set(msg, ERR_INVALID,
                       "cannot listen on \"%s\": expected HOST:PORT, such as 127.0.0.1:4437, "
                       "localhost:4437 or [::1]:4437",
                       address);
    }
    fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return bind_error(address, errno, msg);
    }
    /* Past connections in TIME_WAIT do not keep the port; a listening socket still does. */
    (void)set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    set_inherited(fd);
    if (bind(fd, &a.any, address_bytes(&a)) != 0 || listen(fd, BACKLOG) != 0) {
        rc = bind_error(address, errno, msg);
        (void)close(fd); /* nothing was written to it */
        return rc;
    }
    return fd;
}

/* ---------------------------------------------------------------------------------- accepting */

static void retry_later(struct listener *l)
{
    int rc = loop_timer_set(l->loop, &l->retry, RETRY_MS);

    assert(rc == 0); /* room for the timer was made when the watch was first added */
}

static void start_watching(struct listener *l)
{
    if (l->watching || l->paused) {
        return;
    }
    if (loop_watch_add(l->loop, &l->watch) == 0) {
        l->watching = true;
    } else {
        retry_later(l);
    }
}

static void stop_watching(struct listener *l)
{
    if (l->watching) {
        l->watching = false;
        loop_watch_remove(l->loop, &l->watch);
    }
}

static void on_retry(struct loop_timer *timer)
{
    start_watching(container_of(timer, struct listener, retry));
}

/* Steps the round: the next member that is not paused, or NULL. */
static struct listener *next_member(struct listener_group *g)
{
    struct list *start = g->next;

    do {
        struct list *at = g->next;

        g->next = at->next;
        if (at != &g->members) {
            struct listener *member = container_of(at, struct listener, link);

            if (!member->paused) {
                return member;
            }
        }
    } while (g->next != start);
    return NULL;
}

/* Puts the connection into the inbox of the member whose turn it is; false when that is `l` itself,
 * or nobody, or its inbox is full. */
static bool hand_over(struct listener *l, int fd)
{
    struct listener_group *g = l->group;
    struct listener *to;
    bool handed = false;

    (void)pthread_mutex_lock(&g->lock);
    to = next_member(g);
    if (to != NULL && to != l && to->inbox_len < INBOX_MAX) {
        to->inbox[to->inbox_len++] = fd;
        handed = true;
        /* Under the lock, or the member could be destroyed before it is posted to. */
        if (to->inbox_len == 1) {
            loop_post(to->loop, &to->deliver);
        }
    }
    (void)pthread_mutex_unlock(&g->lock);
    return handed;
}

/* Takes what is in the inbox; `fds` holds INBOX_MAX. */
static unsigned empty_inbox(struct listener *l, int *fds)
{
    unsigned count;

    (void)pthread_mutex_lock(&l->group->lock);
    count = l->inbox_len;
    memcpy(fds, l->inbox, count * sizeof(*fds));
    l->inbox_len = 0;
    (void)pthread_mutex_unlock(&l->group->lock);
    return count;
}

static void on_deliver(struct task *task)
{
    struct listener *l = container_of(task, struct listener, deliver);
    int fds[INBOX_MAX];
    unsigned count = empty_inbox(l, fds);

    for (unsigned i = 0; i < count; i++) {
        l->accept(l->context, fds[i]);
    }
}

/* Whether accepting may go on after `errno_value`. */
static bool survive_error(struct listener *l, int errno_value)
{
    switch (errno_value) {
    case EAGAIN:
        return false;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
        /* The socket stays readable, so watching it would spin. */
        stop_watching(l);
        retry_later(l);
        return false;
    default:
        return true; /* EINTR, or an error of one connection, such as ECONNABORTED: the next one */
    }
}

static void on_connection(struct loop_watch *watch, uint32_t events)
{
    struct listener *l = container_of(watch, struct listener, watch);

    (void)events;
    /* The owner may pause from within its callback. */
    for (int i = 0; i < ACCEPTS_PER_TURN && l->watching; i++) {
        int fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0) {
            if (!survive_error(l, errno)) {
                return;
            }
        } else if (!hand_over(l, fd)) {
            l->accept(l->context, fd);
        }
    }
}

/* ------------------------------------------------------------------------------ begin and end */

static struct listener_group *group_create(int fd)
{
    struct listener_group *g = calloc(1, sizeof(*g));

    if (g == NULL) {
        return NULL;
    }
    (void)pthread_mutex_init(&g->lock, NULL); /* does not fail on Linux */
    g->fd = fd;
    list_init(&g->members);
    g->next = &g->members;
    return g;
}

static void group_destroy(struct listener_group *g)
{
    (void)close(g->fd); /* nothing is written through it */
    (void)pthread_mutex_destroy(&g->lock);
    free(g);
}

static void join(struct listener_group *g, struct listener *l)
{
    (void)pthread_mutex_lock(&g->lock);
    list_append(&g->members, &l->link);
    (void)pthread_mutex_unlock(&g->lock);
}

/* Whether the group has no members any more. */
static bool leave(struct listener_group *g, struct listener *l)
{
    bool last;

    (void)pthread_mutex_lock(&g->lock);
    if (g->next == &l->link) {
        g->next = l->link.next;
    }
    list_remove(&l->link);
    last = list_empty(&g->members);
    (void)pthread_mutex_unlock(&g->lock);
    return last;
}

/* A member of `g`, watching. */
static int member_create(struct listener_group *g, struct loop *loop, listener_accept_fn accept,
                         void *context, struct listener **ret_listener)
{
    struct listener *l = calloc(1, sizeof(*l));
    int rc;

    if (l == NULL) {
        return ERR_NOMEM;
    }
    l->group = g;
    l->loop = loop;
    l->accept = accept;
    l->context = context;
    l->retry.fire = on_retry;
    l->deliver.run = on_deliver;
    list_init(&l->deliver.link);
    l->watch.events = EPOLLIN | EPOLLEXCLUSIVE;
    l->watch.ready = on_connection;
    l->watch.fd = fcntl(g->fd, F_DUPFD_CLOEXEC, 0);
    if (l->watch.fd < 0) {
        rc = err_from_errno(errno);
        goto free_listener;
    }
    rc = loop_watch_add(loop, &l->watch);
    if (rc < 0) {
        goto close_fd;
    }
    l->watching = true;
    join(g, l);
    *ret_listener = l;
    return 0;
close_fd:
    (void)close(l->watch.fd); /* a duplicate */
free_listener:
    free(l);
    return rc;
}

int listener_create(struct loop *l, const char *address, listener_accept_fn accept, void *context,
                    struct listener **ret_listener, struct errmsg *msg)
{
    struct listener_group *g;
    int fd = open_socket(address, msg);
    int rc;

    if (fd < 0) {
        return fd;
    }
    g = group_create(fd);
    if (g == NULL) {
        (void)close(fd); /* nothing was written to it */
        return err_set(msg, ERR_NOMEM, "cannot listen on %s: out of memory", address);
    }
    rc = member_create(g, l, accept, context, ret_listener);
    if (rc < 0) {
        group_destroy(g);
        return err_set(msg, rc, "cannot listen on %s: %s", address, err_text(rc));
    }
    return 0;
}

int listener_create_shared(struct loop *l, struct listener *first, listener_accept_fn accept,
                           void *context, struct listener **ret_listener)
{
    return member_create(first->group, l, accept, context, ret_listener);
}

void listener_accept_waiting(struct listener *listener)
{
    on_deliver(&listener->deliver);
    for (int i = 0; i < BACKLOG; i++) {
        int fd = accept4(listener->watch.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0) {
            listener->accept(listener->context, fd);
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return; /* there is none, or no room for one */
        }
    }
}

void listener_destroy(struct listener *listener)
{
    struct listener_group *g;
    bool last;

    if (listener == NULL) {
        return;
    }
    g = listener->group;
    stop_watching(listener);
    loop_timer_cancel(listener->loop, &listener->retry);
    last = leave(g, listener);
    /* No longer a member, so nothing comes in any more. The group may be gone by now, with its
     * lock: another member that leaves after this one frees it. */
    loop_unpost(listener->loop, &listener->deliver);
    for (unsigned i = 0; i < listener->inbox_len; i++) {
        (void)close(listener->inbox[i]); /* nothing was said on it yet */
    }
    (void)close(listener->watch.fd); /* a duplicate */
    if (last) {
        group_destroy(g);
    }
    free(listener);
}

void listener_pause(struct listener *listener, bool paused)
{
    (void)pthread_mutex_lock(&listener->group->lock);
    listener->paused = paused;
    (void)pthread_mutex_unlock(&listener->group->lock);
    if (paused) {
        stop_watching(listener);
        loop_timer_cancel(listener->loop, &listener->retry);
    } else {
        start_watching(listener);
    }
}
