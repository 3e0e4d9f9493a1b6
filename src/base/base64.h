/* Base64 without line breaks: the standard one with padding (RFC 4648 section 4), and base64url
 * without padding (section 5). Pure. */
#ifndef ARBE_BASE_BASE64_H
#define ARBE_BASE_BASE64_H

#include "base/attr.h"
#include "base/slice.h"

/* Characters needed for `len` bytes, without a NUL. */
#define BASE64_LEN(len) (((len) + 2) / 3 * 4)

/* Writes BASE64_LEN(bytes.len) characters to `out` and returns their number. */
size_t base64_encode(char *out, struct slice bytes);

/* Characters of base64url for `len` bytes, without a NUL. */
#define BASE64URL_LEN(len) (((len)*4 + 2) / 3)

/* Writes to `out`, of BASE64_LEN(bytes.len) characters, and returns BASE64URL_LEN(bytes.len), which
 * is how many count. */
size_t base64url_encode(char *out, struct slice bytes);

/* Decodes base64url without padding into `out`, of at least text.len / 4 * 3 + 2 bytes. Strict: one
 * text for each run of bytes, so bits that are left over must be zero. False for any other text. */
bool base64url_decode(struct slice text, char *out, size_t *ret_len) MUST_USE;

#endif
