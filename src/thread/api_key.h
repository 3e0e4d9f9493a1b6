/* The secrets that the API gives out: API keys (arbe_ and 64 hexadecimal digits), and the tokens of
 * invites and sessions (64 digits). Each is shown once; what is stored is its SHA-256. Pure. */
#ifndef ARBE_THREAD_API_KEY_H
#define ARBE_THREAD_API_KEY_H

#include "base/attr.h"
#include "base/slice.h"

#define API_KEY_PREFIX       "arbe_"
#define API_KEY_RANDOM_BYTES 32u
#define API_TOKEN_BYTES      65u                    /* 64 digits, NUL */
#define API_KEY_BYTES        (5u + API_TOKEN_BYTES) /* prefix, 64 digits, NUL */
#define API_KEY_HASH_BYTES   65u                    /* 64 digits, NUL */

/* Writes the key of these random bytes, NUL-terminated. */
void api_key_make(const unsigned char random[static API_KEY_RANDOM_BYTES],
                  char out[static API_KEY_BYTES]);

/* Writes a token for an invite or a session, NUL-terminated. */
void api_token_make(const unsigned char random[static API_KEY_RANDOM_BYTES],
                    char out[static API_TOKEN_BYTES]);

/* Whether the text can be a key: the prefix and 64 digits in lower case. Says nothing of whether
 * there is such a key. */
bool api_key_shape_good(struct slice text);

/* The same of a token. */
bool api_token_shape_good(struct slice text);

/* Writes the SHA-256 of the whole text, key or token, in lower case, NUL-terminated. False when
 * OpenSSL has no memory. */
bool api_key_hash(struct slice text, char out[static API_KEY_HASH_BYTES]) MUST_USE;

#endif
