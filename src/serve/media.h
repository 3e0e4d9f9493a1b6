/* The grammar of Content-Type (RFC 9110 section 8.3.1), as far as a stream's type is checked
 * when it is made. Pure. */
#ifndef ARBE_SERVE_MEDIA_H
#define ARBE_SERVE_MEDIA_H

#include "base/slice.h"

/* Whether `text` is type "/" subtype and parameters, white space around ';' and empty parameters
 * allowed. A list of types is refused. */
bool media_type_is_valid(struct slice text);

#endif
