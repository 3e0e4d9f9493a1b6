/* Who asks: an agent by one of its keys, or by a session that was opened with one. */
#ifndef ARBE_APP_CALLER_H
#define ARBE_APP_CALLER_H

#include "http/request.h"
#include "thread/api_error.h"
#include "thread/api_key.h"
#include "thread/store_agent.h"

#define CALLER_COOKIE "arbe_session"

enum caller_proof {
    CALLER_NOBODY,
    CALLER_KEY,
    CALLER_SESSION,
};

struct caller {
    enum caller_proof proof;
    char agent_id[STORE_ID_BYTES];
    char key_id[STORE_ID_BYTES];
    char hash[API_KEY_HASH_BYTES]; /* of what was shown */
    int64_t last_used_ms;          /* of the key, as far as is known */
};

/* What a request shows, still unproven. */
struct credentials {
    enum caller_proof proof;
    struct slice secret; /* key or token; borrows from the request */
};

/* Finds what is shown: Authorization: Bearer outranks a cookie. False, with UNAUTHENTICATED, when
 * what is there cannot be right: two of one kind, another scheme, no shape of a key. Pure. */
bool credentials_find(const struct http_request *request, struct credentials *ret_credentials,
                      struct api_error *ret_error) MUST_USE;

/* Whether a request that was let in by its cookie comes from a page of ours: its Origin is the one
 * of `public_url`, or without one that of its Host. -1 with BAD_ORIGIN. Pure. */
int origin_check(const struct http_request *request, struct slice public_url,
                 struct api_error *ret_error) MUST_USE;

/* Appends the value of Set-Cookie that opens a session with this token for so long; empty and 0
 * closes it. */
void cookie_format(struct buf *out, struct slice token, uint64_t seconds, bool secure);

#endif
