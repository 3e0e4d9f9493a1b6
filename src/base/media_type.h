/* Media types as Content-Type gives them (RFC 9110 section 8.3.1). Streams keep a type as it was
 * given and compare it without parameters and ASCII case (PROTOCOL.md section 9). Pure. */
#ifndef ARBE_BASE_MEDIA_TYPE_H
#define ARBE_BASE_MEDIA_TYPE_H

#include "base/slice.h"

/* Whether `text` is type "/" subtype, perhaps with parameters, of at most
 * STREAM_CONTENT_TYPE_BYTES_MAX bytes. White space around ';' and empty parameters are allowed, a
 * list of types is not. */
bool media_type_valid(struct slice text);

/* Whether both name the same type, parameters aside; of valid types. */
bool media_type_equal(struct slice a, struct slice b);

/* Whether it is application/json, which is the JSON mode of PROTOCOL.md 9.1; "+json" is not. */
bool media_type_is_json(struct slice type);

/* Whether it is one of text/..., which server-sent events carry as they are (PROTOCOL.md 5.8). */
bool media_type_is_text(struct slice type);

#endif
