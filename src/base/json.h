/* JSON scanning (RFC 8259, strict) and string writing. Scanning validates and finds where values
 * begin and end; it never builds a tree and never changes a byte. Strings must be valid UTF-8; an
 * escaped lone surrogate is accepted, since the bytes are kept as sent. A byte-order mark is
 * refused (RFC 8259 section 8.1). Linear time, no recursion, no allocation. Pure. */
#ifndef ARBE_BASE_JSON_H
#define ARBE_BASE_JSON_H

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"

/* Scans one value at the start of `text`, white space allowed before it. Returns bytes consumed up
 * to the value's end (above 0), or ERR_INVALID with the reason and byte position in `msg` (may be
 * NULL). `ret_value` is the value without white space, borrowed from `text`. Nesting is limited to
 * JSON_DEPTH_MAX. */
long json_scan_value(struct slice text, struct slice *ret_value, struct errmsg *msg) MUST_USE;

/* Called for each message, in order; a result other than 0 ends the walk and is returned. */
typedef int (*json_message_fn)(void *context, struct slice message);

/* Validates the whole of `text` as one JSON text and hands out its messages: the elements when it
 * is an array (one level is flattened, PROTOCOL.md 9.1.2), else the value itself. Messages come
 * without surrounding white space. 0, ERR_INVALID with a reason, or what `each` returned. Since an
 * error may show late, `each` must not take effect before the walk has ended well. */
int json_each_message(struct slice text, json_message_fn each, void *context,
                      struct errmsg *msg) MUST_USE;

/* Appends `s` as a JSON string with its quotes, escaping what RFC 8259 section 7 demands. Bytes
 * that are not UTF-8 become U+FFFD. Failure sticks to the buffer. */
void json_append_string(struct buf *out, struct slice s);

#endif
