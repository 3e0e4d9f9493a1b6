/*
 * Reads HTTP/1.1 responses piece by piece for the load programs: bytes in, body bytes out.
 *
 * Cost: no allocation and no copy of body bytes; header lines pass through a small buffer, and
 * what does not fit of a line is dropped, since only a few short headers matter here. One thread
 * at a time. It fails only on bytes that are no response. The caller owns the struct.
 */
#ifndef BENCH_REPLY_H
#define BENCH_REPLY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define REPLY_OFFSET_BYTES_MAX 128

enum reply_state {
    REPLY_STATUS,     /* in the status line */
    REPLY_HEADERS,    /* in the header lines */
    REPLY_BODY,       /* in a body that has a length, or lasts until the connection ends */
    REPLY_CHUNK_SIZE, /* in a chunk's size line */
    REPLY_CHUNK_DATA, /* in a chunk's bytes */
    REPLY_CHUNK_END,  /* in the line end that follows a chunk's bytes */
    REPLY_TRAILERS,   /* in the lines after the last chunk */
    REPLY_DONE        /* the response is complete */
};

struct reply {
    enum reply_state state;                   /* where the next byte belongs */
    int status;                               /* status code; 0 before the status line */
    bool head;                                /* answers HEAD: never a body */
    bool chunked;                             /* the body comes in chunks */
    bool closes;                              /* the server ends the connection after it */
    int64_t left;                             /* body or chunk bytes to come; -1 unknown */
    uint64_t body_bytes;                      /* body bytes so far */
    char next_offset[REPLY_OFFSET_BYTES_MAX]; /* Stream-Next-Offset, or empty */
    size_t line_len;                          /* bytes in `line` */
    char line[256];                           /* the line being gathered, cut when too long */
};

/* Takes body bytes in order; they live only until the call returns. */
typedef void (*reply_body_fn)(void *context, const char *bytes, size_t len);

/* Prepares for one response; `head` says that it answers a HEAD request. */
void reply_init(struct reply *reply, bool head);

/*
 * Consumes bytes up to the end of this response and returns how many those were, or -1 when
 * they are no response. `on_body` may be NULL.
 */
ssize_t reply_bytes_feed(struct reply *reply, const char *bytes, size_t len, reply_body_fn on_body,
                         void *context);

/* Whether the header section is complete, so that `status` and the other fields count. */
bool reply_head_seen(const struct reply *reply);

#endif
