/* The seam below the client: what carries calls. transport_http.c does it by libcurl; another one
 * leads straight into the engine of the same process.
 *
 * All functions are called on the client's thread, but for `destroy`, which is called once that
 * thread has ended. None blocks, but for `wait`. on_data, on_listed and on_done of calls run inside
 * `wait` only, never inside the others, so that a caller need not expect them while it holds
 * something half done. */
#ifndef ARBE_CLIENT_TRANSPORT_H
#define ARBE_CLIENT_TRANSPORT_H

#include "client/call.h"

struct transport;

struct transport_ops {
    /* Starts a call, whose result is begun. It ends by on_done, in a later `wait`. */
    void (*start)(struct transport *t, struct call *call);
    /* Forgets a call that has not ended: none of its functions is called any more. Not from
     * within on_data, which returns CALL_STOP instead. */
    void (*cancel)(struct transport *t, struct call *call);
    /* Goes on with a call whose on_data had returned CALL_PAUSE. */
    void (*resume)(struct transport *t, struct call *call);
    /* Works on all calls until something happened, `wake_fd` is readable, or timeout_ms have
     * passed; -1: no limit. Does not read from wake_fd. */
    void (*wait)(struct transport *t, int wake_fd, int timeout_ms);
    /* Frees it; no call is under way. */
    void (*destroy)(struct transport *t);
};

struct transport {
    const struct transport_ops *ops;
    bool has_sse; /* CALL_SSE works; else live reads are CALL_LONG_POLL */
};

#endif
