/* Tokens of wakes and claims: base64url(JSON {sub, epoch, exp, jti}) "." base64url(HMAC-SHA-256 of
 * what stands before the dot). They say which subscription and generation they are for, and until
 * when; they hold no secret. Pure but for the allocations of OpenSSL. */
#ifndef ARBE_STREAM_TOKEN_H
#define ARBE_STREAM_TOKEN_H

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"

#define TOKEN_KEY_BYTES 32u
#define TOKEN_JTI_BYTES 12u           /* random, so that no two tokens are the same */
#define TOKEN_LIFE_MS   (3600 * 1000) /* from minting until it expires */
/* Every byte of an id as a six-byte escape, then in base64. */
#define TOKEN_BYTES_MAX (256u + 8u * SUBSCRIPTION_ID_BYTES_MAX)

struct token {
    struct slice subscription; /* id, decoded UTF-8; at most SUBSCRIPTION_ID_BYTES_MAX bytes */
    uint64_t generation;       /* at most NUMBER_JS_MAX */
    int64_t now_ms;            /* wall clock: the token expires TOKEN_LIFE_MS later */
    unsigned char jti[TOKEN_JTI_BYTES];
};

/* Appends the token. Failure, also when OpenSSL has no memory, sticks to the buffer. */
void token_mint(struct buf *out, const unsigned char key[static TOKEN_KEY_BYTES],
                const struct token *token);

enum token_verdict {
    TOKEN_GOOD,
    TOKEN_INVALID, /* not ours, or another subscription's */
    TOKEN_EXPIRED, /* ours, and this subscription's, but too old */
};

/* Judges hostile text. ret_generation is set unless TOKEN_INVALID. What does not carry our MAC is
 * not looked into; the comparison takes the same time wherever the texts differ. */
enum token_verdict token_check(struct slice text, const unsigned char key[static TOKEN_KEY_BYTES],
                               struct slice subscription, int64_t now_ms,
                               uint64_t *ret_generation) MUST_USE;

#endif
