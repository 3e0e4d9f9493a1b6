/* The one list of error codes. A function that can fail returns 0 or one of these negative numbers;
 * errno is translated where the system call is made and does not travel further.
 *
 * Each code carries its name, the HTTP status it becomes when nothing more exact is known, and a
 * default sentence. Where a sentence with particulars is worth having, the caller passes a struct
 * errmsg, which the failing layer fills once. */
#ifndef ARBE_BASE_ERR_H
#define ARBE_BASE_ERR_H

#include "base/attr.h"

#define ERR_LIST(X)                                                              \
    X(NOMEM, 503, "out of memory")                                               \
    X(IO, 500, "the disk reported an error")                                     \
    X(NOSPC, 507, "no space is left on the disk")                                \
    X(CORRUPT, 500, "stored bytes do not match their checksum")                  \
    X(LOCKED, 503, "another process uses this data directory")                   \
    X(AGAIN, 503, "not now; try again")                                          \
    X(BUSY, 503, "too much is waiting to be written; try again shortly")         \
    X(LIMIT, 429, "a limit is reached")                                          \
    X(INVALID, 400, "the request is malformed")                                  \
    X(NOTFOUND, 404, "there is no such stream")                                  \
    X(EXISTS, 409, "the stream exists with another configuration")               \
    X(GONE, 410, "the stream was deleted; forks of it still use its data")       \
    X(CONFLICT, 409, "the request conflicts with the state of the stream")       \
    X(CLOSED, 409, "the stream is closed")                                       \
    X(FAILED, 503, "the log failed; the server accepts no writes until restart") \
    X(UNKNOWN, 503, "the write failed and its outcome is unknown")               \
    X(PERM, 403, "not allowed")                                                  \
    X(MISMATCH, 500, "the data directory belongs to other settings")             \
    X(TOOBIG, 413, "too large")                                                  \
    X(STOPPING, 503, "the server is shutting down")                              \
    X(FILEKIND, 500, "a file, a link or a directory of that name is in the way")

enum err_index {
#define X(name, status, text) ERR_INDEX_##name,
    ERR_LIST(X)
#undef X
    ERR_INDEX_COUNT
};

enum err {
#define X(name, status, text) ERR_##name = -(1 + (int)ERR_INDEX_##name),
    ERR_LIST(X)
#undef X
};

/* One line that says what was wrong, where, and what would be accepted. Owned by the caller. */
struct errmsg {
    char text[256]; /* NUL-terminated; empty when nothing was said */
};

/* The name of `code`, such as "NOSPC"; "OK" for 0. Static storage. */
const char *err_name(int code);

/* The default sentence of `code`. Static storage. */
const char *err_text(int code);

/* The same where `code` came from a file: ERR_LIST words some codes for clients, to whom what does
 * not exist is a stream. Static storage. */
const char *err_file_text(int code);

/* The HTTP status `code` maps to; 200 for 0. */
int err_status(int code);

/* The code for a positive errno value; ERR_IO for those without a meaning of their own. */
int err_from_errno(int errno_value);

/* Writes a sentence to `msg` (NULL: nothing is written), cut at its size, and returns `code`. */
int err_set(struct errmsg *msg, int code, const char *format, ...) PRINTF_LIKE(3, 4);

/* Puts "prefix: " before the sentence in `msg`, once per layer, and returns `code`. */
int err_prefix(struct errmsg *msg, int code, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
