/* Standard base64 with padding (RFC 4648 section 4), without line breaks. Pure. */
#ifndef ARBE_BASE_BASE64_H
#define ARBE_BASE_BASE64_H

#include "base/slice.h"

/* Characters needed for `len` bytes, without a NUL. */
#define BASE64_LEN(len) (((len) + 2) / 3 * 4)

/* Writes BASE64_LEN(bytes.len) characters to `out` and returns their number. */
size_t base64_encode(char *out, struct slice bytes);

#endif
