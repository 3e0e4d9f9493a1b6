/* One answer to a driver: an object in JSON, built field by field and printed as one line. */
#ifndef ARBE_TESTS_ADAPTER_REPLY_H
#define ARBE_TESTS_ADAPTER_REPLY_H

#include "base/buf.h"

#include <arbe/stream_error.h>

struct reply {
    struct buf out;
    const char *type; /* of the command at hand */
};

/* Begins the answer to a command that went well. */
void reply_success(struct reply *r);

/* Begins the answer to one that did not: the library's error in the driver's words. `is_read`: a
 * refusal may be one of the offset. */
void reply_error(struct reply *r, const struct stream_error *error, bool is_read);

/* The same for what no library was asked for. */
void reply_refusal(struct reply *r, const char *code, const char *message);

/* Fields of the object at hand. Names are plain. */
void reply_text(struct reply *r, const char *name, const char *text);
void reply_bytes(struct reply *r, const char *name, struct slice text);
void reply_number(struct reply *r, const char *name, long long number);
void reply_flag(struct reply *r, const char *name, bool flag);

/* Objects and lists within; name NULL within a list. */
void reply_open(struct reply *r, const char *name, char bracket);
void reply_shut(struct reply *r, char bracket);

/* Ends the answer and prints it. False when it could not be. */
bool reply_send(struct reply *r);

#endif
