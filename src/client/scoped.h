/* What the files of the scoped client share: the client itself, and how its errors are made. It
 * stands above a stream client whose base URL is the app's. */
#ifndef ARBE_CLIENT_SCOPED_H
#define ARBE_CLIENT_SCOPED_H

#include "arbe/scoped_client.h"
#include "base/attr.h"
#include "base/slice.h"
#include "base/uuid.h"
#include "client/refusal.h"

#include <stdbool.h>

#define SCOPED_WHAT_BYTES 224u /* of the words that errors begin with, with the NUL */

struct scoped_client {
    struct stream_client *stream; /* owned */
    struct stream_retry tail_retry;
    size_t max_answer_bytes;
    struct uuid_source ids; /* of entries that are posted without one */
};

/* Whether a text may stand for a thread or an entry in a URL: 1 to 96 of A-Za-z0-9._~-, and neither
 * "." nor "..". NULL may not. */
bool scoped_id_good(const char *id);

/* ARGUMENT unless the id is good; `what` says whose it is. */
int scoped_check_id(const char *what, const char *id, struct scoped_error *ret_error);

/* Fills *out (NULL: nothing) from what the stream client says, and from what the API refused with:
 * its own words outrank ours. Returns the code. */
int scoped_error_fill(struct scoped_error *out, const struct stream_error *error,
                      const struct refusal *refusal);

/* Fills *out (NULL: nothing) with an error of our own. Returns the code. */
int scoped_error_set(struct scoped_error *out, enum stream_error_code code, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Decodes an entry that is a scanned JSON object. */
void scoped_entry_decode(struct slice json, struct scoped_entry *ret_entry);

/* The string member `name` of an object, decoded; empty when there is none, or it does not fit. */
void scoped_read_text(struct slice object, struct slice name, char *out, size_t size);

#endif
