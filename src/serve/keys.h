/* The secrets of subscriptions, in one file of the data directory: Ed25519 keys that webhooks are
 * signed with, and the key of callback tokens. Made at the first start, never again while anything
 * depends on them. keys.c tells the times of a rotation, keys_file.c the layout of the file.
 *
 * A running server learns by itself of a rotation that another process has made: keys_refresh. Any
 * thread may call what is declared here; keys_open, keys_refresh and keys_rotate read the disk. */
#ifndef ARBE_SERVE_KEYS_H
#define ARBE_SERVE_KEYS_H

#include "base/buf.h"
#include "base/err.h"
#include "log/sys.h"

#define KEYS_TOKEN_BYTES     32u /* of the key of tokens */
#define KEYS_KID_BYTES       47u /* "ds_", 43 characters, NUL */
#define KEYS_SIGNATURE_BYTES 192u
#define KEYS_JWKS_BYTES_MAX  4096u

/* How often keys_refresh is to be called. */
#define KEYS_REFRESH_MS 5000u

struct keys;

/* Reads the keys of the data directory `dir`, or makes them where there are none and `must_exist`
 * is false. ERR_NOTFOUND: there are none though subscriptions of this directory depend on them.
 * ERR_CORRUPT: what is there does not prove itself. Others as the disk says; all with a sentence.
 * `sys` outlives the keys. */
int keys_open(struct sys *sys, const char *dir, bool must_exist, struct keys **ret_keys,
              struct errmsg *msg) MUST_USE;

/* Forgets and wipes them. Accepts NULL. */
void keys_close(struct keys *k);

/* Reads the file again, so that a rotation takes its course, and erases keys whose time is over. On
 * an error, told once with a sentence, the keys stay as they are. 0 also when nothing changed. */
int keys_refresh(struct keys *k, struct errmsg *msg);

/* The key of tokens, which stays the same as long as the keys are open. */
void keys_token_key(const struct keys *k, uint8_t out[static KEYS_TOKEN_BYTES]);

/* The id of the key that signs at present. */
void keys_kid(struct keys *k, char out[static KEYS_KID_BYTES]);

/* Writes the value of Webhook-Signature over `body`, sent now, NUL-terminated. ERR_NOMEM. */
int keys_sign(struct keys *k, struct slice body, char out[static KEYS_SIGNATURE_BYTES]) MUST_USE;

/* Appends the JSON of the keys that a receiver may meet at present; at most KEYS_JWKS_BYTES_MAX. */
void keys_append_jwks(struct keys *k, struct buf *out);

/* What a rotation did, for the operator. */
struct keys_rotation {
    char kid_new[KEYS_KID_BYTES];
    char kid_old[KEYS_KID_BYTES];
    int64_t signs_ms;   /* since 1970: from when the new key signs */
    int64_t retired_ms; /* until when the old one is published */
};

/* Adds a key to those of `dir`, whether or not a server runs on it. ERR_CONFLICT: the last rotation
 * has not ended. ERR_LOCKED: another one is at it. ERR_NOTFOUND, ERR_CORRUPT as above. */
int keys_rotate(struct sys *sys, const char *dir, struct keys_rotation *ret_rotation,
                struct errmsg *msg) MUST_USE;

/* Makes new secrets for a directory that lost its own, of which no server may be running; what is
 * left of the old file is renamed aside. ERR_EXISTS: those that are there are good. */
int keys_replace(struct sys *sys, const char *dir, struct errmsg *msg) MUST_USE;

/* Opens the keys of `dir` for reading alone and proves them. ERR_NOTFOUND: there are none.
 * ERR_CORRUPT, others as the disk says; with what is wrong, but not with the file's name. */
int keys_check(struct sys *sys, const char *dir, struct errmsg *msg) MUST_USE;

/* The file, below the data directory. */
#define KEYS_FILE "keys/keys.pem"

#endif
