/* The inside of a client: one thread that runs a transport, timers, and tasks from other threads.
 * Readers, producers and the calls of stream_client.c live on it.
 *
 * Functions marked "client's thread" may be called inside tasks, timers, parties and the functions
 * of calls only. */
#ifndef ARBE_CLIENT_CLIENT_H
#define ARBE_CLIENT_CLIENT_H

#include "base/task.h"
#include "client/call.h"
#include "client/transport.h"

#include <pthread.h>
#include <stdatomic.h>

/* Makes a client over a transport, which it owns from now on, also when this fails; for transports
 * other than HTTP. `options` as stream_client_new. MEMORY, ARGUMENT. */
int client_new(struct transport *transport, const struct stream_client_options *options,
               struct stream_client **ret_client, struct stream_error *ret_error);

/* Hands a task to the client's thread. Any thread; `context` is the client: a task_post_fn. Tasks
 * run in the order in which they were posted. */
void client_post(void *context, struct task *task);

/* Runs `task` on the client's thread and waits until it has run. Not from the client's thread. */
void client_run(struct stream_client *client, struct task *task);

/* The options, with defaults filled in; constant. `bearer` and the other texts are not for use. */
const struct stream_client_options *client_options(const struct stream_client *client);

/* The transport; constant. */
struct transport *client_transport(const struct stream_client *client);

/* Starts one try of a call: begins its result and hands it to the transport. Client's thread. */
void client_start(struct stream_client *client, struct call *call);

/* Forgets a call under way, as transport_ops has it. Client's thread. */
void client_cancel(struct stream_client *client, struct call *call);

/* Goes on with a call that is paused, likewise. Client's thread. */
void client_resume(struct stream_client *client, struct call *call);

/* A timer; embedded by its user. */
struct client_timer {
    struct list link; /* on the client's list of timers that run */
    uint64_t at_ms;
    void (*fired)(struct client_timer *timer);
};

/* Must be called before any other use of a timer. */
void client_timer_init(struct client_timer *timer, void (*fired)(struct client_timer *timer));

/* Starts a timer, or starts it anew; stops it. Client's thread. */
void client_timer_start(struct stream_client *client, struct client_timer *timer,
                        uint64_t delay_ms);
void client_timer_stop(struct client_timer *timer);

/* Milliseconds of a clock that only goes forward. */
uint64_t client_now_ms(void);

/* 64 random bits, for jitter. Client's thread. */
uint64_t client_dice(struct stream_client *client);

/* Somebody with something under way which can be aborted: a call with retries, a reader, a
 * producer. */
struct client_party {
    struct list link;    /* on the client's list of parties */
    atomic_bool aborted; /* set by client_party_abort */
    bool told;           /* private */
    /* Called once on the client's thread when this party, or the client as a whole, is aborted.
     * It may leave, and free itself. */
    void (*abort)(struct client_party *party);
};

/* Must be called before any other use of a party. */
void client_party_init(struct client_party *party, void (*abort)(struct client_party *party));

/* Takes part from now on; if the client is aborted, `abort` is called soon. Ends it. Client's
 * thread. */
void client_party_join(struct stream_client *client, struct client_party *party);
void client_party_leave(struct client_party *party);

/* Aborts one party. Any thread, also a signal handler; the party must not be freed meanwhile. */
void client_party_abort(struct stream_client *client, struct client_party *party);

/* Whether stream_client_abort was called and not taken back. Any thread. */
bool client_aborted(const struct stream_client *client);

/* Whether stream_client_free has begun: what is posted from now on may never run. Any thread. */
bool client_ending(const struct stream_client *client);

/* One more, or one less, reason for stream_client_fd to be readable: a reader that has a piece, a
 * call that has ended. Any thread. */
void client_ready_add(struct stream_client *client);
void client_ready_drop(struct stream_client *client);

/* Hands a task to the next stream_client_step, on whatever thread calls that. Any thread. */
void client_finish(struct stream_client *client, struct task *task);

/* Counts a call that is started, until it was told of its end: false when there are
 * CLIENT_STARTED_MAX of them. Any thread. */
bool client_started_add(struct stream_client *client);

/* One less of them. Any thread. */
void client_started_drop(struct stream_client *client);

/* What create, head and read have said of a stream's content type. `out` has 256 bytes and is
 * empty when nothing is known. Any thread. */
bool client_type_find(struct stream_client *client, struct slice name, char *out);

/* Remembers it, best effort; an empty type forgets. Any thread. */
void client_type_note(struct stream_client *client, struct slice name, const char *type);

#endif
