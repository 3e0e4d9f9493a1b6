/* From the body of an answer to a read to the pieces a reader hands out: pages and event streams,
 * bytes and messages. Bytes in, pieces out, no network; who reads knows when an answer begins and
 * ends.
 *
 * A stream has offsets only between pages (or at control events), and an answer may break off
 * anywhere. So the answer counts the units (messages, or bytes) that were handed out behind the
 * last offset, and passes over as many when what follows that offset is asked for again. The last
 * piece before an offset is held until that is known, so that it carries it. */
#ifndef ARBE_CLIENT_ANSWER_H
#define ARBE_CLIENT_ANSWER_H

#include "arbe/stream_client.h"
#include "base/limits.h"
#include "client/messages.h"
#include "client/sse.h"

#define ANSWER_PIECE_BYTES  ((size_t)64 * KIB) /* of a piece of bytes in the middle of a page */
#define ANSWER_CURSOR_BYTES 64                 /* with the NUL */

enum answer_step {
    ANSWER_MORE,  /* all bytes are taken */
    ANSWER_PIECE, /* a piece that has no offset behind it */
    ANSWER_MARK,  /* a control event: see `mark`; to be followed by answer_commit */
};

/* Where the stream stands, as a control event tells it. */
struct answer_mark {
    char next_offset[STREAM_OFFSET_BYTES];
    char cursor[ANSWER_CURSOR_BYTES]; /* empty: not said */
    bool up_to_date;
    bool closed;
};

struct answer {
    struct answer_mark mark; /* of the last ANSWER_MARK */
    uint64_t units;          /* since the answer's beginning or its last offset, skipped or not */
    uint64_t skip;           /* units still to be passed over: they were handed out before */
    uint64_t since;          /* units handed out behind the last offset */

    /* private */
    enum stream_unit unit;
    bool is_events;
    bool is_base64;
    struct messages messages;
    struct sse_parser sse;
    struct sse_base64 base64;
    struct slice token; /* of the event at hand, not looked at yet */
    struct buf held;    /* bytes, or one message, behind which an offset may come */
    size_t given;       /* bytes of it that the last call handed out */
};

/* Ready for answer_begin. Messages have at most `message_bytes_max` bytes. */
void answer_init(struct answer *a, enum stream_unit unit, size_t message_bytes_max);

/* Frees what is held. Accepts a zeroed struct. */
void answer_finish(struct answer *a);

/* An answer that begins at the last offset; what was held of the one before is forgotten, since
 * this one has it again. `is_events`: server-sent events, whose data are base64 if `is_base64`. */
void answer_begin(struct answer *a, bool is_events, bool is_base64);

/* Takes bytes from the front of *rest up to the next step. ret_piece, for ANSWER_PIECE, is borrowed
 * until the next call and as long as *rest's memory lives. ERR_INVALID, ERR_TOOBIG with a sentence,
 * ERR_NOMEM: only begin and finish may follow. */
int answer_take(struct answer *a, struct slice *rest, struct slice *ret_piece,
                struct errmsg *msg) MUST_USE;

/* A page has ended well. ERR_INVALID: it breaks off in the middle. */
int answer_end_page(const struct answer *a, struct errmsg *msg) MUST_USE;

/* An offset is known for what was taken so far. Returns what is held, perhaps nothing: a piece that
 * has this offset behind it; borrowed until the next call. If `skip` is above 0 the answer ended
 * before what was handed out already; counting goes on from there. */
struct slice answer_commit(struct answer *a);

#endif
