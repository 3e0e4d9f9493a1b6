/* One TCP connection on one loop: an input buffer that exists only while there is input, an output
 * queue of memory and file pieces, and time-outs. It knows bytes, not HTTP. An idle connection costs
 * this struct and no buffers.
 *
 * Input: `input` is called when bytes have arrived; the owner looks at conn_input and takes what it
 * can with conn_consume. It may instead direct the next bytes straight to memory of its own with
 * conn_read_into. While reading is paused, the peer is held back by TCP.
 * Output: queued pieces go out in order, small ones coalesced into one call, file pieces by sendfile;
 * a bounded number of calls per turn. `drained` is called when the queue has become empty.
 * End: `closed` is called once, on error, on the peer's close or time-out, or after conn_shutdown has
 * flushed; the owner then calls conn_finish. */
#ifndef ARBE_NET_CONN_H
#define ARBE_NET_CONN_H

#include "base/block.h"
#include "base/slice.h"
#include "net/loop.h"

struct conn;

enum conn_end {
    CONN_END_PEER,     /* the peer closed or reset */
    CONN_END_ERROR,    /* a write failed, a file was shorter than promised, out of memory */
    CONN_END_TIMEOUT,  /* the deadline set by conn_set_deadline passed */
    CONN_END_SHUTDOWN, /* conn_shutdown has done its work */
};

struct conn_handler {
    void (*input)(struct conn *c);
    void (*drained)(struct conn *c);
    void (*closed)(struct conn *c, enum conn_end end);
};

/* A run of a file to send. `release` is called when it is sent or dropped. `warm`, when not NULL, is
 * asked before each sendfile: true when the bytes are in the page cache; false when they are being
 * read on another thread, after which conn_resume is called. */
struct conn_file {
    int fd;
    uint64_t offset;
    size_t len;
    void (*release)(void *context);
    bool (*warm)(void *context, struct conn *c, uint64_t offset, size_t len);
    void *context;
};

struct conn_config {
    size_t input_bytes_max; /* the input buffer's cap: bytes beyond it stay in the socket */
};

struct conn {
    const struct conn_handler *handler; /* set at init */
    void *owner;                        /* the handler's */
    /* private */
    struct loop *loop;
    struct loop_watch watch;
    struct loop_timer deadline;
    const struct conn_config *config;
    struct conn_output *output; /* queue; NULL while empty */
    size_t output_bytes;        /* queued and not sent */
    char *input;                /* buffer; NULL while empty */
    uint32_t input_len;
    uint32_t input_cap;
    uint32_t input_at; /* consumed up to here */
    char *into;        /* conn_read_into: where */
    size_t into_len;   /* conn_read_into: how much is missing */
    bool paused;       /* no reading */
    bool peer_closed;  /* end of input seen */
    bool shutting_down;
    bool waiting_warm; /* the head of the queue waits for the page cache */
    bool finished;
};

/* Takes over `fd` and begins reading. The struct is the caller's memory. ERR_NOMEM, ERR_IO (then `fd`
 * is closed). */
int conn_init(struct conn *c, struct loop *l, int fd, const struct conn_config *config,
              const struct conn_handler *handler, void *owner) MUST_USE;

/* Closes the socket, drops what is queued. No callback follows. */
void conn_finish(struct conn *c);

/* The bytes that have arrived and are not consumed; valid until the handler returns. */
struct slice conn_input(const struct conn *c);
void conn_consume(struct conn *c, size_t count);

/* Directs the next `len` bytes to `into`, buffered ones first; `input` is called when all are there.
 * conn_into_missing tells how many are not. */
void conn_read_into(struct conn *c, void *into, size_t len);
size_t conn_into_missing(const struct conn *c);

/* Stops or goes on reading. A paused connection still notices a reset. */
void conn_pause(struct conn *c, bool paused);

/* Queues output. A copy of the bytes; a block (one reference is taken over by the queue on success and
 * on failure alike); a file run (released on failure too). ERR_NOMEM: the connection is then beyond
 * use and the caller drops it. */
int conn_send_copy(struct conn *c, struct slice bytes) MUST_USE;
int conn_send_block(struct conn *c, struct block *b, struct slice bytes) MUST_USE;
int conn_send_file(struct conn *c, const struct conn_file *file) MUST_USE;

/* Sends what is queued now, without waiting for the loop's turn; called once after queueing. May call
 * `drained` or `closed` only from the loop's next turn, never from inside. */
void conn_flush(struct conn *c);

/* The piece that waited for `warm` may be tried again; on the loop's thread. */
void conn_resume(struct conn *c);

/* Bytes queued and not sent. */
size_t conn_output_bytes(const struct conn *c);

/* Sends what is queued, then closes for writing, and drains a bounded amount of input for a bounded
 * time so that the last bytes are not lost to a reset; then `closed`. */
void conn_shutdown(struct conn *c);

/* (Re)arms or, with 0, cancels the one deadline; when it passes, `closed` with CONN_END_TIMEOUT. */
void conn_set_deadline(struct conn *c, uint64_t delay_ms);

#endif
