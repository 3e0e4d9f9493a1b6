/* One set of secrets, its file's text, and what OpenSSL does with it. No clock, no disk, no lock.
 * Whoever holds a set wipes it with keys_set_wipe. */
#ifndef ARBE_SERVE_KEYS_FILE_H
#define ARBE_SERVE_KEYS_FILE_H

#include "serve/keys.h"

#define KEYS_MAX            8u          /* in one file; see keys.c for why 4 are enough */
#define KEYS_FILE_BYTES_MAX (8u * 1024) /* a longer one is damaged */
#define KEYS_SEED_BYTES     32u
#define KEYS_X_BYTES        44u /* base64url of a public key, NUL */

/* A key pair. It signs from `signs_ms` until the next one of its set does. */
struct keys_pair {
    uint8_t seed[KEYS_SEED_BYTES]; /* the private key of RFC 8032 */
    char x[KEYS_X_BYTES];          /* the public one, as a JWK has it */
    char kid[KEYS_KID_BYTES];      /* "ds_" and the JWK thumbprint of RFC 7638 */
    int64_t made_ms;               /* since 1970 */
    int64_t signs_ms;              /* likewise */
};

struct keys_set {
    uint8_t token[KEYS_TOKEN_BYTES];
    unsigned count; /* at least 1 once it is filled */
    struct keys_pair pairs[KEYS_MAX];
};

/* Fills in a pair from its seed. ERR_NOMEM. */
int keys_pair_init(struct keys_pair *pair, const uint8_t seed[static KEYS_SEED_BYTES],
                   int64_t made_ms, int64_t signs_ms) MUST_USE;

/* Signs by Ed25519; base64url without padding, 86 characters and a NUL. ERR_NOMEM. */
int keys_pair_sign(const struct keys_pair *pair, struct slice bytes, char out[static 87]) MUST_USE;

/* Overwrites the secrets and empties the set. */
void keys_set_wipe(struct keys_set *set);

/* Appends the text of the file. Failure sticks to the buffer. */
void keys_set_encode(const struct keys_set *set, struct buf *out);

/* Reads the text of a file. ERR_CORRUPT with what is wrong in `msg`, ERR_NOMEM. */
int keys_set_decode(struct slice text, struct keys_set *ret_set, struct errmsg *msg) MUST_USE;

#endif
