/* Routes beside the streams': whoever embeds the server mounts them, and serves them with the same
 * exchanges, bodies and answers. The server knows of such a route only that it is not its own.
 *
 * Threads: `takes`, `begin`, `leave`, `ails` and `expose` are called on workers, `hurry` on a
 * thread of its own, the others on the main thread. */
#ifndef ARBE_SERVE_MOUNT_H
#define ARBE_SERVE_MOUNT_H

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"

struct exchange;
struct exposition;
struct server;

struct mount {
    void *context;
    const char *program; /* what the line says that tells the address, such as "arbe serve" */
    /* Streams whose names begin so are the mount's: while there is no secret, nobody else reads or
     * writes them, nor forks them, and the control API does not know of them. Empty: none. */
    struct slice reserved;
    const char *reserved_why; /* the sentence for who names one; below 256 bytes */
    /* What follows a segment that begins so, however it is spelt, is a secret, and is not logged;
     * but in names of streams. Lower case. Empty: nothing. */
    struct slice secret_behind;

    /* The engine is open and the workers listen, but do not run. An error, with a sentence, ends
     * the start; `close` is not called then. */
    int (*open)(void *context, struct server *server, struct errmsg *msg);

    /* The server is asked to end while `open` is under way, which had better not wait for others
     * any longer; `stop` follows all the same. NULL: it never takes long. */
    void (*hurry)(void *context);

    /* The server is to end: nothing new is begun beyond what requests ask for. Does not block. */
    void (*stop)(void *context);

    /* The settings were reloaded. Does not block. NULL: nothing follows from that. */
    void (*reloaded)(void *context);

    /* For /health: a word for what is wrong with the mount, and in *ret_detail a sentence without
     * names or numbers; both are static. NULL: all is well. On a worker. NULL: it always is. */
    const char *(*ails)(void *context, const char **ret_detail);

    /* Writes the mount's own metrics, behind the server's; docs/operations.md has them too. On a
     * worker. NULL: there are none. */
    void (*expose)(void *context, struct exposition *e);

    /* The workers have ended, the engine is still open. May block. */
    void (*close)(void *context);

    /* Whether a path, without its query, is one of these routes. Pure. */
    bool (*takes)(void *context, struct slice path);

    /* Serves a request of such a path, whose head is in place, as exchange.h's handlers do.
     * x->guest is the mount's own. */
    void (*begin)(struct exchange *x, struct slice path, struct slice query);

    /* The exchange ends: frees x->guest, which is not NULL. */
    void (*leave)(struct exchange *x);

    /* Composes the document of an error that the server answers in the mount's stead, such as 408
     * for a body; `stopping`: while it is about to end. Failure sticks to the buffer. */
    void (*format_problem)(struct buf *out, int status, bool stopping, struct slice detail);
};

#endif
