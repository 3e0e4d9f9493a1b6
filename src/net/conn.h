/* One TCP connection on one loop: input, an output queue of memory and file pieces, and a
 * deadline. It knows bytes, not HTTP. An idle connection costs this struct and no buffers.
 * Called on the loop's thread only; callbacks come from the loop, never from inside a call.
 *
 * Input: `input` is called when bytes have arrived. While reading is paused, TCP holds back the
 * peer. Output: queued pieces go out in order, small ones in one call, file pieces by sendfile,
 * a bounded amount per turn; `drained` is called when the queue has become empty. End: `closed`
 * is called once; the owner then calls conn_finish. The peer's end of input counts only once
 * reading gets there and the queue is empty: a client that half-closes gets its answers, if the
 * owner pauses while it works on them. */
#ifndef ARBE_NET_CONN_H
#define ARBE_NET_CONN_H

#include "base/block.h"
#include "base/slice.h"
#include "net/loop.h"

struct conn;

enum conn_end {
    CONN_END_PEER,     /* the peer closed or reset, or the network did */
    CONN_END_ERROR,    /* a file was shorter than promised or unreadable, out of memory */
    CONN_END_TIMEOUT,  /* the deadline set by conn_set_deadline passed */
    CONN_END_SHUTDOWN, /* conn_shutdown has done its work */
};

struct conn_handler {
    void (*input)(struct conn *c);
    void (*drained)(struct conn *c);
    void (*closed)(struct conn *c, enum conn_end end);
};

/* A run of a file to send. `release` is called when it is sent or dropped. `warm`, when not
 * NULL, is asked before each sendfile: true when the bytes are in the page cache; false when
 * they are being read on another thread, after which conn_resume is called. */
struct conn_file {
    int fd;
    uint64_t offset;
    size_t len;
    void (*release)(void *context);
    bool (*warm)(void *context, struct conn *c, uint64_t offset, size_t len);
    void *context;
};

struct conn_config {
    size_t input_bytes_max; /* what may wait for the owner: bytes beyond it stay in the socket */
};

struct conn {
    const struct conn_handler *handler; /* set at init */
    void *owner;                        /* the handler's */
    /* private */
    struct loop *loop;
    struct loop_watch watch;    /* edge-triggered for both directions, set once */
    struct loop_timer deadline; /* see conn_set_deadline; also bounds the end of conn_shutdown */
    struct task turn;           /* deferred: goes on with what `todo` says */
    const struct conn_config *config;
    struct conn_output *output;      /* queue; NULL while empty */
    struct conn_output *output_last; /* its last piece */
    size_t output_bytes;             /* queued and not sent */
    char *input;                     /* unconsumed bytes; NULL while there are none */
    uint32_t input_len;              /* end of the bytes */
    uint32_t input_at;               /* consumed up to here */
    uint32_t input_cap;              /* allocated; 0: the bytes are on the reader's stack */
    uint32_t drained_bytes;          /* read away after the last byte was sent */
    char *into;                      /* conn_read_into: where */
    size_t into_len;                 /* conn_read_into: how much is missing */
    bool *finished;                  /* set by conn_finish for the callback's caller to see */
    uint8_t end;                     /* an enum conn_end, when TODO_END is set */
    uint8_t todo;                    /* TODO_* bits of conn.c */
    bool readable;                   /* the socket may have bytes */
    bool hung_up;                    /* the peer sends no more; some of it may be unread */
    bool paused;                     /* no reading */
    bool peer_closed;                /* end of input was read */
    bool blocked;                    /* the socket takes no more bytes for now */
    bool waiting_warm;               /* the head of the queue waits for the page cache */
    bool shutting_down;              /* conn_shutdown was called */
    bool lingering;                  /* everything was sent; reading away */
    bool ended;                      /* `closed` was called or will be; only conn_finish is left */
};

/* Takes over `fd` (non-blocking) and begins reading. The struct is the caller's memory. ERR_NOMEM,
 * ERR_IO; then `fd` is closed. */
int conn_init(struct conn *c, struct loop *l, int fd, const struct conn_config *config,
              const struct conn_handler *handler, void *owner) MUST_USE;

/* Closes the socket, drops what is queued. No callback follows. Allowed in every callback. */
void conn_finish(struct conn *c);

/* The bytes that have arrived and are not consumed; valid until the handler returns. What it
 * leaves is kept and shown again with the next bytes. */
struct slice conn_input(const struct conn *c);

/* Whether bytes have arrived that were not read yet: `input` follows. A system call. */
bool conn_has_unread(const struct conn *c);

/* Takes `count` bytes off the front of the input; the slices before are then invalid. */
void conn_consume(struct conn *c, size_t count);

/* Directs the next `len` bytes to `into`, buffered ones first. When those suffice, none are
 * missing on return and no call follows; otherwise `input` is called when all are there. With
 * (NULL, 0) it stops what was directed before, which must be done before that memory goes. */
void conn_read_into(struct conn *c, void *into, size_t len);

/* Bytes that conn_read_into still waits for; 0 when it waits for nothing. */
size_t conn_into_missing(const struct conn *c);

/* Stops or goes on reading. A paused connection still notices a reset, but not a close. Going on
 * with bytes in the buffer calls `input` for them this turn or the next. */
void conn_pause(struct conn *c, bool paused);

/* Queues output. A copy of the bytes; a block (one reference is taken over by the queue on
 * success and on failure alike); a file run (released on failure too). ERR_NOMEM: the connection
 * is then beyond use and the caller drops it. After the end they drop what they are given and
 * return 0. */
int conn_send_copy(struct conn *c, struct slice bytes) MUST_USE;
int conn_send_block(struct conn *c, struct block *b, struct slice bytes) MUST_USE;
int conn_send_file(struct conn *c, const struct conn_file *file) MUST_USE;

/* Sends what is queued now, without waiting for the loop's turn; called once after queueing.
 * `drained` and `closed` follow at the end of this turn or in the next, never from inside. Needs
 * SIGPIPE ignored or blocked when there are file pieces; loop_run blocks it. */
void conn_flush(struct conn *c);

/* The piece that waited for `warm` may be tried again; on the loop's thread. */
void conn_resume(struct conn *c);

/* Bytes queued and not sent, those of files included. */
size_t conn_output_bytes(const struct conn *c);

/* Sends what is queued, then closes for writing, and drains HTTP_BODY_DRAIN_BYTES_MAX of input
 * for at most 2 s so that the last bytes are not lost to a reset; then `closed`. `input` is not
 * called any more. Without a deadline, sending is given 30 s. */
void conn_shutdown(struct conn *c);

/* (Re)arms or, with 0, cancels the one deadline; when it passes, `closed` with CONN_END_TIMEOUT. */
void conn_set_deadline(struct conn *c, uint64_t delay_ms);

#endif
