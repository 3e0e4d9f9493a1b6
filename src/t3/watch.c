/* Each host has a reader with one subscription, that of its shell. The readers' descriptors are in
 * one epoll descriptor: a step asks only those that have something to do, and what it costs goes
 * with that, not with how many hosts there are.
 *
 * A chunk is acknowledged when it is folded, so a host is live when its snapshot is on the board.
 * What cannot be folded ends the connection: for good where the server speaks the first protocol;
 * for a pause where memory ran out or it is no chunk at all, since another snapshot may be good.
 * Rows beyond the board's limit are left out and the host is said to be full: the rest goes on. */
#include "t3/watch.h"

#include "base/limits.h"
#include "t3/reader.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define SHELL_METHOD  "orchestration.subscribeShell"
#define SHELL_PAYLOAD "{\"requestCompletionMarker\":true}"

#define HOSTS_PER_STEP  64 /* the others are ready at the next step, and come first then */
#define EVENTS_PER_STEP 16 /* of one host */

struct watched {
    struct t3_watch_host shown; /* its texts are in `texts` */
    struct t3_watch *watch;
    struct t3_reader *reader;
    uint64_t shell; /* the subscription; 0: it failed, and is to be made again */
    char texts[];
};

struct t3_watch {
    struct t3_watch_options options;
    struct t3_board *board;
    int epoll_fd; /* of all readers */
    size_t count;
    size_t room; /* of `hosts` */
    struct watched **hosts;
};

int t3_watch_create(const struct t3_watch_options *options, struct t3_watch **ret_watch,
                    struct errmsg *msg)
{
    struct t3_watch *w = calloc(1, sizeof(*w));
    struct t3_board_error error;
    int code;

    if (w == NULL) {
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    w->options = *options;
    code = t3_board_new(&options->board, &w->board, &error);
    if (code != T3_BOARD_OK) {
        free(w);
        return err_set(msg, code == T3_BOARD_ERROR_MEMORY ? ERR_NOMEM : ERR_INVALID, "%s",
                       error.message);
    }
    w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (w->epoll_fd < 0) {
        code = err_set(msg, ERR_IO, "cannot watch hosts: %s", strerror(errno));
        t3_board_free(w->board);
        free(w);
        return code;
    }
    *ret_watch = w;
    return 0;
}

static void free_host(struct watched *h)
{
    t3_reader_free(h->reader);
    free(h);
}

void t3_watch_destroy(struct t3_watch *w)
{
    if (w == NULL) {
        return;
    }
    for (size_t i = 0; i < w->count; i++) {
        free_host(w->hosts[i]);
    }
    free(w->hosts);
    (void)close(w->epoll_fd); /* nothing was written through it */
    t3_board_free(w->board);
    free(w);
}

/* ------------------------------------------------------------------ hosts */

static struct watched *find_host(const struct t3_watch *w, const char *label)
{
    for (size_t i = 0; i < w->count; i++) {
        if (strcmp(w->hosts[i]->shown.label, label) == 0) {
            return w->hosts[i];
        }
    }
    return NULL;
}

static int check_label(const struct t3_watch *w, const char *label, struct errmsg *msg)
{
    size_t len = strlen(label);

    if (len == 0 || len > T3_HOST_BYTES_MAX) {
        return err_set(msg, ERR_INVALID, "a host's name has %zu bytes; it must have 1 to %u", len,
                       T3_HOST_BYTES_MAX);
    }
    if (find_host(w, label) != NULL) {
        return err_set(msg, ERR_INVALID, "host \"%.100s\" is there twice", label);
    }
    if (w->count >= T3_HOSTS_MAX) {
        return err_set(msg, ERR_INVALID, "there are more than %u hosts", T3_HOSTS_MAX);
    }
    return 0;
}

/* Room for one more. */
static bool reserve(struct t3_watch *w)
{
    size_t room = w->room > 0 ? w->room * 2 : 8;
    struct watched **hosts;

    if (w->count < w->room) {
        return true;
    }
    hosts = realloc(w->hosts, room * sizeof(struct watched *));
    if (hosts == NULL) {
        return false;
    }
    w->hosts = hosts;
    w->room = room;
    return true;
}

static int subscribe_shell(struct watched *h, struct t3_rpc_error *ret_error)
{
    return t3_reader_subscribe(h->reader, SHELL_METHOD, SHELL_PAYLOAD, &h->shell, ret_error);
}

static struct watched *new_host(struct t3_watch *w, const char *label, const char *url)
{
    size_t label_size = strlen(label) + 1;
    size_t url_size = strlen(url) + 1;
    struct watched *h = malloc(sizeof(*h) + label_size + url_size);

    if (h != NULL) {
        *h = (struct watched){.watch = w};
        memcpy(h->texts, label, label_size);
        memcpy(h->texts + label_size, url, url_size);
        h->shown.label = h->texts;
        h->shown.url = h->texts + label_size;
        h->shown.state = T3_READER_CONNECTING;
    }
    return h;
}

static int explain(struct errmsg *msg, const char *label, const struct t3_rpc_error *error)
{
    return err_set(msg, error->code == T3_RPC_ERROR_MEMORY ? ERR_NOMEM : ERR_INVALID,
                   "host \"%.40s\": %.200s", label, error->message);
}

int t3_watch_add(struct t3_watch *w, const char *label, const char *url,
                 const struct t3_reader_options *options, struct errmsg *msg)
{
    struct epoll_event event = {.events = EPOLLIN};
    struct t3_rpc_error error;
    struct watched *h;
    int code = check_label(w, label, msg);

    if (code != 0) {
        return code;
    }
    h = reserve(w) ? new_host(w, label, url) : NULL;
    if (h == NULL) {
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    if (t3_reader_new(url, options, &h->reader, &error) != T3_RPC_OK ||
        subscribe_shell(h, &error) != T3_RPC_OK) {
        code = explain(msg, label, &error);
        free_host(h);
        return code;
    }
    event.data.ptr = h;
    if (epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, t3_reader_fd(h->reader), &event) != 0) {
        code = err_set(msg, ERR_IO, "host \"%.40s\" cannot be watched: %s", label, strerror(errno));
        free_host(h);
        return code;
    }
    h->shown.index = w->count;
    w->hosts[w->count++] = h;
    return 0;
}

/* ------------------------------------------------------------------ events */

static void tell_host(const struct watched *h)
{
    if (h->watch->options.host != NULL) {
        h->watch->options.host(h->watch->options.context, &h->shown);
    }
}

static void set_full(struct watched *h, bool full)
{
    if (full != h->shown.full) {
        h->shown.full = full;
        tell_host(h);
    }
}

/* The host speaks a protocol that no asking changes. */
static void refuse_version(struct watched *h)
{
    struct t3_rpc_error error = {.code = T3_RPC_ERROR_VERSION};

    (void)snprintf(error.message, sizeof(error.message),
                   "%s runs a T3 Code server of the first orchestration protocol; update it to one "
                   "that speaks orchestration protocol 2",
                   h->shown.label);
    t3_reader_refuse(h->reader, &error);
}

static void lose(struct watched *h, enum t3_rpc_code code, const char *sentence)
{
    struct t3_rpc_error error = {.code = code};

    (void)snprintf(error.message, sizeof(error.message), "%s", sentence);
    t3_reader_lose(h->reader, &error);
}

static void take_chunk(struct watched *h, const struct t3_reader_event *event)
{
    struct t3_watch_options *options = &h->watch->options;
    struct t3_board_counts counts = {.applied = 0};
    struct t3_board_error error;
    int code = t3_board_apply(h->watch->board, h->shown.label, event->json, event->len,
                              options->row, options->context, &counts, &error);

    h->shown.skipped += counts.skipped;
    switch (code) {
    case T3_BOARD_OK:
    case T3_BOARD_ERROR_LIMIT:
        /* Only a snapshot makes sure that none of its threads is left out any more. */
        set_full(h, code == T3_BOARD_ERROR_LIMIT || (h->shown.full && !event->fresh));
        t3_reader_ack(h->reader, event->id);
        break;
    case T3_BOARD_ERROR_VERSION:
        refuse_version(h);
        break;
    case T3_BOARD_ERROR_MEMORY:
        lose(h, T3_RPC_ERROR_MEMORY, error.message);
        break;
    default:
        lose(h, T3_RPC_ERROR_PROTOCOL, error.message);
        break;
    }
}

/* A host that was lost stays so, with its reason, while it is tried again, and is not said to be
 * lost anew each time for the same reason: whoever looks at it would see nothing but a flicker. */
static bool is_news(const struct t3_watch_host *shown, const struct t3_reader_event *event)
{
    if (shown->state != T3_READER_LOST) {
        return true;
    }
    if (event->state == T3_READER_LOST) {
        return event->error.code != shown->error.code ||
               strcmp(event->error.message, shown->error.message) != 0;
    }
    return event->state != T3_READER_CONNECTING;
}

static void show_state(struct watched *h, const struct t3_reader_event *event)
{
    bool news = is_news(&h->shown, event);

    if (event->state == T3_READER_LOST || news) {
        h->shown.delay_ms = event->delay_ms;
    }
    if (news) {
        h->shown.state = event->state;
        h->shown.error = event->error;
        tell_host(h);
    }
}

static void take_state(struct watched *h, const struct t3_reader_event *event)
{
    struct t3_rpc_error error;

    show_state(h, event);
    if (event->state == T3_READER_CONNECTING && h->shell == 0 &&
        subscribe_shell(h, &error) != T3_RPC_OK) {
        t3_reader_lose(h->reader, &error);
    }
}

static void take(struct watched *h, const struct t3_reader_event *event)
{
    switch (event->kind) {
    case T3_READER_EVENT_STATE:
        take_state(h, event);
        break;
    case T3_READER_EVENT_CHUNK:
        take_chunk(h, event);
        break;
    case T3_READER_EVENT_ERROR:
        /* The server cannot say what it has, at the moment. */
        h->shell = 0;
        t3_reader_lose(h->reader, &event->error);
        break;
    case T3_READER_EVENT_BROKEN:
        t3_reader_lose(h->reader, &event->error); /* its only stream: there is nothing to save */
        break;
    }
}

int t3_watch_fd(const struct t3_watch *w)
{
    return w->epoll_fd;
}

void t3_watch_step(struct t3_watch *w, int timeout_ms)
{
    struct epoll_event ready[HOSTS_PER_STEP];
    struct t3_reader_event event;
    int count = epoll_wait(w->epoll_fd, ready, HOSTS_PER_STEP, timeout_ms);

    for (int i = 0; i < count; i++) {
        struct watched *h = ready[i].data.ptr;

        for (int k = 0; k < EVENTS_PER_STEP && t3_reader_next(h->reader, 0, &event); k++) {
            take(h, &event);
        }
    }
}

void t3_watch_retry(struct t3_watch *w, const char *label)
{
    for (size_t i = 0; i < w->count; i++) {
        if (label == NULL || strcmp(w->hosts[i]->shown.label, label) == 0) {
            t3_reader_retry(w->hosts[i]->reader);
        }
    }
}

void t3_watch_retry_refused(struct t3_watch *w)
{
    for (size_t i = 0; i < w->count; i++) {
        if (w->hosts[i]->shown.state == T3_READER_REFUSED) {
            t3_reader_retry(w->hosts[i]->reader);
        }
    }
}

size_t t3_watch_host_count(const struct t3_watch *w)
{
    return w->count;
}

const struct t3_watch_host *t3_watch_host_at(const struct t3_watch *w, size_t i)
{
    assert(i < w->count);
    return &w->hosts[i]->shown;
}

const struct t3_board *t3_watch_board(const struct t3_watch *w)
{
    return w->board;
}
