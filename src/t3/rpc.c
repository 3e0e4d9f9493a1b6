/* The calls of a program meet the thread of the socket here: each takes the mutex around the
 * session, and neither waits for the other under it. Messages are read before it is taken.
 *
 * Events: the descriptor is readable exactly while the session has an event. */
#include "t3/rpc_session.h"

#include "base/limits.h"
#include "base/redact.h"
#include "base/version.h"
#include "t3/rpc_check.h"
#include "t3/rpc_error.h"
#include "t3/rpc_scarce.h"
#include "t3/rpc_socket.h"
#include "t3/wake.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct t3_rpc {
    struct rpc_url url;  /* constant, as what follows */
    char *authorization; /* wiped when freed; NULL: none */
    char *user_agent;
    char *ca_file;          /* NULL: the system's */
    size_t queue_bytes_max; /* of messages that the program has not taken */
    unsigned depth_max;     /* of a message */
    struct rpc_socket *socket;
    pthread_mutex_t mutex; /* guards what follows */
    struct rpc_session session;
    int fd;     /* eventfd */
    bool ready; /* it is readable */
};

void t3_rpc_options_init(struct t3_rpc_options *options)
{
    *options = (struct t3_rpc_options){
        .connect_timeout_ms = 10000,
        .ping_interval_ms = 10000,
        .pings_missed_max = 3,
        .message_bytes_max = T3_MESSAGE_BYTES,
        .depth_max = (int)JSON_DEPTH_MAX,
        .requests_max = 256,
    };
}

/* Under the mutex: makes the descriptor say what is. */
static void settle_fd(struct t3_rpc *rpc)
{
    bool ready = rpc_session_has_event(&rpc->session);
    eventfd_t count;

    if (ready == rpc->ready) {
        return;
    }
    /* Neither can fail: the count is 0 or 1. */
    if (ready) {
        (void)eventfd_write(rpc->fd, 1);
    } else {
        (void)eventfd_read(rpc->fd, &count);
    }
    rpc->ready = ready;
}

static void lock(struct t3_rpc *rpc)
{
    (void)pthread_mutex_lock(&rpc->mutex);
}

/* With the descriptor as it must be. */
static void unlock(struct t3_rpc *rpc)
{
    settle_fd(rpc);
    (void)pthread_mutex_unlock(&rpc->mutex);
}

/* -------------------------------------------------------------------------------- of the socket */

static void on_opened(void *context)
{
    struct t3_rpc *rpc = context;

    lock(rpc);
    rpc_session_open(&rpc->session);
    unlock(rpc);
}

#define BEFORE_TOKEN "Bearer "

/* Servers may quote the token that they got. */
static void hide_token(const struct t3_rpc *rpc, struct t3_rpc_error *error)
{
    if (rpc->authorization != NULL) {
        redact(error->message, rpc->authorization + sizeof(BEFORE_TOKEN) - 1);
    }
}

static int on_message(void *context, struct buf *message)
{
    struct t3_rpc *rpc = context;
    struct t3_rpc_error error;
    struct t3_frame frame = {.kind = T3_FRAME_OTHER, .json = SLICE("")};
    int code = t3_frame_read(buf_slice(message), rpc->depth_max, &frame, &error);

    if (code != T3_RPC_OK) {
        hide_token(rpc, &error);
    } else if (frame.error.code != T3_RPC_OK) {
        hide_token(rpc, &frame.error);
    }
    lock(rpc);
    if (code == T3_RPC_OK) {
        code = rpc_session_take(&rpc->session, &frame, message, &error);
    }
    if (code != T3_RPC_OK) {
        rpc_session_end(&rpc->session, &error, code == T3_RPC_ERROR_DEFECT ? frame.json : SLICE(""),
                        message);
    }
    unlock(rpc);
    return code;
}

static bool on_send(void *context, struct buf *out)
{
    struct t3_rpc *rpc = context;

    lock(rpc);
    bool found = rpc_session_send(&rpc->session, out);

    unlock(rpc);
    return found;
}

static bool is_full(void *context)
{
    struct t3_rpc *rpc = context;

    lock(rpc);
    bool full = rpc->session.event_bytes >= rpc->queue_bytes_max;

    unlock(rpc);
    return full;
}

static void on_closed(void *context, const struct t3_rpc_error *error)
{
    struct t3_rpc *rpc = context;
    struct t3_rpc_error told = *error;

    hide_token(rpc, &told);
    lock(rpc);
    rpc_session_end(&rpc->session, &told, SLICE(""), NULL);
    unlock(rpc);
}

/* ------------------------------------------------------------------------------------- to begin */

/* A copy of "before" and "text"; NULL when memory is out. */
static char *join(const char *before, const char *text)
{
    size_t before_len = strlen(before);
    size_t len = strlen(text);
    char *joined = malloc(before_len + len + 1);

    if (joined != NULL) {
        memcpy(joined, before, before_len);
        memcpy(joined + before_len, text, len + 1);
    }
    return joined;
}

static bool copy_texts(struct t3_rpc *rpc, const struct t3_rpc_options *o)
{
    rpc->user_agent = join("", o->user_agent != NULL ? o->user_agent : "arbe/" ARBE_VERSION);
    rpc->authorization = o->token != NULL ? join(BEFORE_TOKEN, o->token) : NULL;
    rpc->ca_file = o->ca_file != NULL ? join("", o->ca_file) : NULL;
    return rpc->user_agent != NULL && (o->token == NULL || rpc->authorization != NULL) &&
           (o->ca_file == NULL || rpc->ca_file != NULL);
}

/* What there is of it; the socket's thread has ended. */
static void destroy(struct t3_rpc *rpc)
{
    rpc_session_finish(&rpc->session);
    if (rpc->fd >= 0) {
        (void)close(rpc->fd); /* only to be polled: nothing can be lost */
    }
    if (rpc->authorization != NULL) {
        explicit_bzero(rpc->authorization, strlen(rpc->authorization));
    }
    free(rpc->authorization);
    free(rpc->user_agent);
    free(rpc->ca_file);
    rpc_url_finish(&rpc->url);
    (void)pthread_mutex_destroy(&rpc->mutex);
    free(rpc);
}

static int start_socket(struct t3_rpc *rpc, const struct t3_rpc_options *o,
                        struct t3_rpc_error *error)
{
    const struct rpc_socket_options options = {
        .url = &rpc->url,
        .authorization = rpc->authorization,
        .user_agent = rpc->user_agent,
        .ca_file = rpc->ca_file,
        .connect_timeout_ms = o->connect_timeout_ms,
        .ping_interval_ms = o->ping_interval_ms,
        .pings_missed_max = o->pings_missed_max,
        .message_bytes_max = o->message_bytes_max,
    };
    const struct rpc_socket_user user = {
        .context = rpc,
        .opened = on_opened,
        .message = on_message,
        .send = on_send,
        .full = is_full,
        .closed = on_closed,
    };

    return rpc_socket_create(&options, &user, &rpc->socket, error);
}

int t3_rpc_connect(const char *url, const struct t3_rpc_options *options, struct t3_rpc **ret_rpc,
                   struct t3_rpc_error *ret_error)
{
    struct t3_rpc_options defaults;

    t3_rpc_options_init(&defaults);
    options = options != NULL ? options : &defaults;
    int code = rpc_check_options(options, ret_error);

    if (code != T3_RPC_OK) {
        return code;
    }
    struct t3_rpc *rpc = calloc(1, sizeof(*rpc));

    if (rpc == NULL || pthread_mutex_init(&rpc->mutex, NULL) != 0) {
        free(rpc);
        return rpc_error_set(ret_error, T3_RPC_ERROR_MEMORY, "out of memory");
    }
    rpc->depth_max = (unsigned)options->depth_max;
    rpc->queue_bytes_max = options->message_bytes_max;
    rpc_session_init(&rpc->session, (size_t)options->requests_max);
    rpc->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    code = rpc_url_init(&rpc->url, url, ret_error);
    if (code == T3_RPC_OK && rpc->fd < 0) {
        code = rpc_error_set(ret_error, T3_RPC_ERROR_MEMORY, "%s", rpc_scarce_text(1));
    } else if (code == T3_RPC_OK && !copy_texts(rpc, options)) {
        code = rpc_error_set(ret_error, T3_RPC_ERROR_MEMORY, "out of memory");
    }
    code = code == T3_RPC_OK ? start_socket(rpc, options, ret_error) : code;
    if (code != T3_RPC_OK) {
        destroy(rpc);
        return code;
    }
    *ret_rpc = rpc;
    return T3_RPC_OK;
}

void t3_rpc_free(struct t3_rpc *rpc)
{
    if (rpc != NULL) {
        rpc_socket_destroy(rpc->socket);
        destroy(rpc);
    }
}

/* ------------------------------------------------------------------------------------- requests */

static int request(struct t3_rpc *rpc, bool stream, const char *method, const char *payload,
                   uint64_t *ret_id, struct t3_rpc_error *ret_error)
{
    struct slice name;
    struct slice object;
    int code = rpc_check_request(method, payload, &name, &object, ret_error);

    if (code != T3_RPC_OK) {
        return code;
    }
    lock(rpc);
    code = rpc_session_request(&rpc->session, stream, name, object, ret_id, ret_error);
    unlock(rpc);
    if (code == T3_RPC_OK) {
        rpc_socket_wake(rpc->socket);
    }
    return code;
}

int t3_rpc_subscribe(struct t3_rpc *rpc, const char *method, const char *payload, uint64_t *ret_id,
                     struct t3_rpc_error *ret_error)
{
    return request(rpc, true, method, payload, ret_id, ret_error);
}

int t3_rpc_call(struct t3_rpc *rpc, const char *method, const char *payload, uint64_t *ret_id,
                struct t3_rpc_error *ret_error)
{
    return request(rpc, false, method, payload, ret_id, ret_error);
}

int t3_rpc_ack(struct t3_rpc *rpc, uint64_t id, struct t3_rpc_error *ret_error)
{
    lock(rpc);
    int code = rpc_session_ack(&rpc->session, id, ret_error);

    unlock(rpc);
    if (code == T3_RPC_OK) {
        rpc_socket_wake(rpc->socket);
    }
    return code;
}

void t3_rpc_interrupt(struct t3_rpc *rpc, uint64_t id)
{
    lock(rpc);
    rpc_session_interrupt(&rpc->session, id);
    unlock(rpc);
    rpc_socket_wake(rpc->socket);
}

void t3_rpc_close(struct t3_rpc *rpc)
{
    lock(rpc);
    rpc_session_close(&rpc->session);
    unlock(rpc);
    rpc_socket_close(rpc->socket);
}

/* --------------------------------------------------------------------------------------- events */

/* 1: an event. 0: none now. -1: none ever. */
static int take(struct t3_rpc *rpc, struct t3_rpc_event *ret_event)
{
    lock(rpc);
    size_t bytes = rpc->session.event_bytes;
    bool found = rpc_session_next(&rpc->session, ret_event);
    bool over = !found && rpc->session.ended;
    bool room = bytes >= rpc->queue_bytes_max && rpc->session.event_bytes < bytes;

    unlock(rpc);
    if (room) {
        rpc_socket_wake(rpc->socket);
    }
    return found ? 1 : over ? -1 : 0;
}

int t3_rpc_next(struct t3_rpc *rpc, int timeout_ms, struct t3_rpc_event *ret_event)
{
    uint64_t limit = timeout_ms > 0 ? t3_now_ms() + (uint64_t)timeout_ms : 0;
    int found;

    while ((found = take(rpc, ret_event)) == 0 && timeout_ms != 0) {
        struct pollfd polled = {.fd = rpc->fd, .events = POLLIN};

        if (timeout_ms > 0) {
            uint64_t now = t3_now_ms();

            timeout_ms = now < limit ? (int)(limit - now) : 0;
        }
        (void)poll(&polled, 1, timeout_ms); /* a signal: it is looked at again */
    }
    return found > 0 ? 1 : 0;
}

int t3_rpc_fd(const struct t3_rpc *rpc)
{
    return rpc->fd;
}
