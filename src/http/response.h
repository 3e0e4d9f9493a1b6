/* Writes a response head into a buffer. A builder: failures stick to the buffer and are checked
 * once, at the end. Header values that come from outside are refused if they hold CR, LF or NUL. */
#ifndef ARBE_HTTP_RESPONSE_H
#define ARBE_HTTP_RESPONSE_H

#include "base/buf.h"
#include "http/status.h"

/* Status line. `minor_version` of the request: 0 gets HTTP/1.1 too (RFC 9110 section 2.5). */
void response_begin(struct buf *out, int status);

/* One header. */
void response_header(struct buf *out, struct slice name, struct slice value);
void response_header_u64(struct buf *out, struct slice name, uint64_t value);

/* The empty line. */
void response_end_head(struct buf *out);

#endif
