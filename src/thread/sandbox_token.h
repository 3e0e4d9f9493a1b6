/* Tokens of sandboxes: JWTs (RFC 7519), HS256 and nothing else, with the claims
 *   iss "arbe", aud "sandbox", sub (the agent), stream, types [...], epoch, iat, nbf, exp
 * all of which must be there. Pure, but for allocations. */
#ifndef ARBE_THREAD_SANDBOX_TOKEN_H
#define ARBE_THREAD_SANDBOX_TOKEN_H

#include "base/arena.h"
#include "base/buf.h"
#include "thread/api_error.h"
#include "thread/payload.h"

#define SANDBOX_KEY_BYTES       32u
#define SANDBOX_SECONDS_DEFAULT 3600
#define SANDBOX_SECONDS_MAX     86400

struct sandbox_token {
    struct slice agent_id;      /* 1 to ENTRY_AUTHOR_BYTES_MAX bytes */
    struct slice stream;        /* 1 to STREAM_NAME_BYTES_MAX bytes */
    struct payload_types types; /* what it may write */
    int64_t epoch;              /* of the membership; whether that is over the records know */
    int64_t issued_s;           /* since 1970; not good before */
    int64_t expires_s;          /* since 1970; good before, at most SANDBOX_SECONDS_MAX later */
};

/* Appends the token. False when memory ran out or `out` failed. */
bool sandbox_token_mint(const unsigned char key[static SANDBOX_KEY_BYTES],
                        const struct sandbox_token *token, struct buf *out) MUST_USE;

/* Judges hostile text at the wall clock's `now_ms`. -1: UNAUTHENTICATED with a sentence, INTERNAL
 * when memory ran out. Slices live in the arena. Types that are none of ours are left out. Nothing
 * of a token is believed before its signature, which is compared in constant time. */
int sandbox_token_verify(const unsigned char key[static SANDBOX_KEY_BYTES], struct slice text,
                         int64_t now_ms, struct arena *arena, struct sandbox_token *ret_token,
                         struct api_error *ret_error) MUST_USE;

/* Whether it is for this stream; -1 with FORBIDDEN. */
int sandbox_token_check_stream(const struct sandbox_token *token, struct slice stream,
                               struct api_error *ret_error) MUST_USE;

/* Reads the `types` that a token is asked for, a scanned JSON array of names, each a type that
 * sandboxes may write or a family of them such as "pi.*". -1 with its path. */
int sandbox_types_read(struct slice array, struct payload_types *ret_types,
                       struct api_error *ret_error) MUST_USE;

/* What a token may write when nobody asks for anything else: all that sandboxes may, but chat. */
struct payload_types sandbox_types_default(void);

#endif
