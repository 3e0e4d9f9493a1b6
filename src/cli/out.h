/* Standard output of a command: buffered, written as whole messages, with an eye on who reads it.
 *
 * A message is what stands between two calls of out_end_message. Once a signal has come no further
 * message is begun; one that is half written is finished. Errors are kept: the first one makes all
 * later calls do nothing, and out_finish tells. One thread. */
#ifndef ARBE_CLI_OUT_H
#define ARBE_CLI_OUT_H

#include "base/buf.h"
#include "base/slice.h"

#include <stdbool.h>

struct out {
    struct buf buf; /* whole messages, and the beginning of the one at hand */
    size_t whole;   /* bytes of `buf` that are whole messages */
    bool begun;     /* what was written last is no line end */
    bool lines;     /* messages end with a line end, and hold no other */
    int error;      /* an errno; 0: none */
    bool terminal;  /* somebody looks at it */
    bool colour;    /* and wants colours */
};

/* Looks at stdout and the environment (NO_COLOR, TERM). */
void out_init(struct out *o);

/* Adds to the message at hand. Bytes beyond 64 KiB are written at once. */
void out_add(struct out *o, struct slice bytes);
/* The same with a format; at most 1 KiB. */
void out_format(struct out *o, const char *format, ...) PRINTF_LIKE(2, 3);

/* Adds a text for people: control characters, which a terminal would obey, and those that change
 * the order of others become '?'. */
void out_add_shown(struct out *o, struct slice text);

/* Adds a JSON string with its quotes. */
void out_add_string(struct out *o, struct slice text);

/* Adds a JSON text on one line: line ends in it are white space between tokens. What a terminal
 * would obey, or show in another order, is escaped for one. */
void out_add_json(struct out *o, struct slice json);

/* The message is whole. */
void out_end_message(struct out *o);

/* Writes what is buffered. Blocks as long as the reader of stdout likes. */
void out_flush(struct out *o);

/* Writes of what is buffered as much as a pipe or file takes at once where poll calls it ready:
 * it does not block then. */
void out_flush_some(struct out *o);

/* Whether nothing more can be written: an error, or a signal has come. */
bool out_is_over(const struct out *o);

/* Flushes, frees, and says on stderr what went wrong, if anything: false then. A closed pipe ends
 * the process without a word. */
bool out_finish(struct out *o);

/* What makes text stand out, step back, and be plain again on a terminal that wants colours; empty
 * otherwise. Static storage. */
const char *out_bold(const struct out *o);

/* Likewise. */
const char *out_dim(const struct out *o);

/* Likewise. */
const char *out_plain(const struct out *o);

#endif
