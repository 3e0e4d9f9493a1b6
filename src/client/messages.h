/* Splits the answer to a read of a JSON stream, which is one array (PROTOCOL.md 9.1), into its
 * messages while it arrives. Bytes in, messages out; what is held is the one message that a piece
 * cut in two, and that is bounded. Each message is checked as JSON; the bytes stay as they were.
 *
 * A message is handed out once the byte behind it is seen, since only then is it whole. Linear
 * time, no recursion. Allocates only for messages that span pieces. Not thread-safe. */
#ifndef ARBE_CLIENT_MESSAGES_H
#define ARBE_CLIENT_MESSAGES_H

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"

enum messages_state {
    MESSAGES_START, /* before the opening bracket */
    MESSAGES_FIRST, /* behind it: a message or the closing one */
    MESSAGES_NEXT,  /* behind a comma: a message */
    MESSAGES_IN,    /* inside a message */
    MESSAGES_DONE,  /* behind the closing bracket */
};

struct messages {
    /* private */
    enum messages_state state;
    size_t max;      /* bytes of one message */
    struct buf part; /* what earlier pieces held of the message at hand */
    size_t depth;    /* open brackets and braces inside it */
    bool in_string;  /* between quotes */
    bool escaped;    /* behind a backslash */
    bool handed_out; /* `part` is what the last call returned */
};

/* Ready for an array whose messages have at most `message_bytes_max` bytes each. */
void messages_init(struct messages *m, size_t message_bytes_max);

/* Frees what is held. Accepts a zeroed struct. */
void messages_finish(struct messages *m);

/* Forgets what was begun and is ready for another array; keeps a little memory. */
void messages_reset(struct messages *m);

/* Takes bytes from the front of *rest. 1: a message, without white space around it, borrowed until
 * the next call and as long as *rest's memory lives. 0: all of *rest was taken, more is needed.
 * ERR_INVALID with a sentence: no array of JSON values; ERR_TOOBIG: a message is longer than
 * allowed; ERR_NOMEM. After an error only reset and finish may follow. */
int messages_take(struct messages *m, struct slice *rest, struct slice *ret_message,
                  struct errmsg *msg) MUST_USE;

/* Whether the array has ended: the last message handed out was its last. */
static inline bool messages_done(const struct messages *m)
{
    return m->state == MESSAGES_DONE;
}

/* Whether nothing but white space has come. */
static inline bool messages_blank(const struct messages *m)
{
    return m->state == MESSAGES_START;
}

#endif
