/* Between two turns of libwebsockets the thread looks at what others want, and has the link
 * (rpc_link.h) do what is due. It never waits for the server when it is to stop.
 *
 * Signals: the thread takes none. SIGPIPE, which OpenSSL can raise, stays pending with the thread
 * and goes with it. */
#include "t3/rpc_socket.h"

#include "t3/rpc_context.h"
#include "t3/rpc_error.h"
#include "t3/rpc_link.h"
#include "t3/rpc_tls.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#define READ_BYTES 32768u /* from the socket at once, and handed out at once */

struct rpc_socket {
    pthread_t thread;
    atomic_bool stopping;        /* by rpc_socket_destroy */
    atomic_bool close_wanted;    /* by rpc_socket_close */
    atomic_bool woken;           /* by rpc_socket_wake */
    pthread_mutex_t mutex;       /* guards `context` against others than the thread */
    struct lws_context *context; /* NULL before and after */

    /* the thread's */
    struct rpc_link link;
    SSL_CTX *tls;                 /* NULL: none */
    lws_sorted_usec_list_t timer; /* at the next deadline */
};

/* ------------------------------------------------------------------------------------- the turn */

/* The time is looked at after the turn, so the timer has only to end it. */
static void on_timer(lws_sorted_usec_list_t *timer)
{
    lws_cancel_service(container_of(timer, struct rpc_socket, timer)->context);
}

static void set_timer(struct rpc_socket *s)
{
    int64_t left_ms = rpc_link_left_ms(&s->link);

    if (left_ms < 0) {
        lws_sul_cancel(&s->timer);
    } else {
        lws_sul_schedule(s->context, 0, &s->timer, on_timer, (lws_usec_t)(left_ms * 1000 + 500));
    }
}

static void step(struct rpc_socket *s)
{
    if (atomic_load(&s->close_wanted)) {
        rpc_link_close(&s->link);
    }
    rpc_link_step(&s->link);
    if (s->link.state == RPC_LINK_OPEN && atomic_exchange(&s->woken, false)) {
        rpc_link_wake(&s->link);
    }
    if (s->link.state != RPC_LINK_ENDED) {
        set_timer(s);
    }
}

/* ----------------------------------------------------------------------- libwebsockets' context */

static const struct lws_protocols protocols[] = {
    {.name = "arbe", .callback = rpc_link_event, .rx_buffer_size = READ_BYTES},
    {.name = NULL},
};

static struct lws_context *create_context(struct rpc_socket *s)
{
    const struct rpc_context_options options = {
        .protocols = protocols,
        .user = &s->link,
        .tls = s->tls,
        .timeout_s = (unsigned)s->link.options.connect_timeout_ms / 1000 +
                     10, /* ours comes first */
        .read_bytes = READ_BYTES,
    };

    return rpc_context_create(&options);
}

static void wake_from_lookup(void *context)
{
    rpc_socket_wake(context);
}

static void set_context(struct rpc_socket *s, struct lws_context *context)
{
    (void)pthread_mutex_lock(&s->mutex);
    s->context = context;
    (void)pthread_mutex_unlock(&s->mutex);
}

/* Where there was no descriptor for it, libwebsockets makes a context all the same that nothing
 * wakes: what is to be sent, and an end, would wait for the next timer. */
static bool can_be_woken(struct rpc_socket *s, struct lws_context *context)
{
    lws_cancel_service(context);
    (void)lws_service(context, -1); /* a turn that does not wait */
    return s->link.wakes;
}

static bool begin(struct rpc_socket *s)
{
    const struct rpc_socket_options *o = &s->link.options;
    struct t3_rpc_error error;

    if (o->url->tls && rpc_tls_create(o->url, o->ca_file, &s->tls, &error) != T3_RPC_OK) {
        rpc_link_fail(&s->link, &error);
        return false;
    }
    struct lws_context *context = create_context(s);

    if (context != NULL && !can_be_woken(s, context)) {
        lws_context_destroy(context);
        context = NULL;
    }
    if (context == NULL) {
        rpc_link_fail_memory(&s->link);
        return false;
    }
    set_context(s, context);
    rpc_link_begin(&s->link, context, wake_from_lookup, s);
    return true;
}

static void finish(struct rpc_socket *s)
{
    struct lws_context *context = s->context;

    if (context != NULL) {
        rpc_link_leave(&s->link);
        lws_sul_cancel(&s->timer);
        set_context(s, NULL);
        lws_context_destroy(context);
    }
    rpc_link_finish(&s->link);
    SSL_CTX_free(s->tls);
}

static void *run(void *argument)
{
    struct rpc_socket *s = argument;

    if (begin(s)) {
        while (s->link.state != RPC_LINK_ENDED && !atomic_load(&s->stopping)) {
            step(s);
            if (s->link.state != RPC_LINK_ENDED && lws_service(s->context, 0) < 0) {
                rpc_link_fail_memory(&s->link);
            }
        }
    }
    finish(s);
    return NULL;
}

/* -------------------------------------------------------------------------------- other threads */

void rpc_socket_wake(struct rpc_socket *s)
{
    atomic_store(&s->woken, true);
    (void)pthread_mutex_lock(&s->mutex);
    if (s->context != NULL) {
        lws_cancel_service(s->context);
    }
    (void)pthread_mutex_unlock(&s->mutex);
}

void rpc_socket_close(struct rpc_socket *s)
{
    atomic_store(&s->close_wanted, true);
    rpc_socket_wake(s);
}

/* The thread takes no signals: they are the program's. */
static int start_thread(struct rpc_socket *s)
{
    sigset_t all;
    sigset_t before;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&s->thread, NULL, run, s);

    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

int rpc_socket_create(const struct rpc_socket_options *options, const struct rpc_socket_user *user,
                      struct rpc_socket **ret_socket, struct t3_rpc_error *ret_error)
{
    struct rpc_socket *s = calloc(1, sizeof(*s));

    if (s == NULL || pthread_mutex_init(&s->mutex, NULL) != 0) {
        free(s);
        return rpc_error_set(ret_error, T3_RPC_ERROR_MEMORY, "out of memory");
    }
    rpc_link_init(&s->link, options, user);
    if (start_thread(s) != 0) {
        (void)pthread_mutex_destroy(&s->mutex);
        free(s);
        return rpc_error_set(ret_error, T3_RPC_ERROR_MEMORY, "no thread can be started");
    }
    *ret_socket = s;
    return T3_RPC_OK;
}

void rpc_socket_destroy(struct rpc_socket *s)
{
    if (s == NULL) {
        return;
    }
    atomic_store(&s->stopping, true);
    rpc_socket_wake(s);
    (void)pthread_join(s->thread, NULL);
    (void)pthread_mutex_destroy(&s->mutex);
    free(s);
}
