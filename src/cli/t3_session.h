/* Sessions on a T3 Code server over its HTTP: what server it is, a pairing credential exchanged for
 * a token that can only read, whether a token is good, and its end. What servers say is cut and
 * made harmless before it is shown. */
#ifndef ARBE_CLI_T3_SESSION_H
#define ARBE_CLI_T3_SESSION_H

#include "arbe/t3_reader.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define T3_SCOPE      "orchestration:read" /* all that is asked for, and all that is kept */
#define T3_PROTOCOL   2u                   /* of orchestration, as arbe speaks it */
#define T3_TEXT_BYTES 256u                 /* of what a server says of itself */

struct t3_site {
    const char *url; /* a good one (t3_url_check) */
    const char *ca_file;
    int timeout_ms; /* of each request */
};

/* What a server tells of itself. Texts are of printable ASCII. */
struct t3_descriptor {
    char label[T3_TEXT_BYTES];   /* empty: it has none */
    char version[T3_TEXT_BYTES]; /* likewise */
};

/* Asks who it is, without any secret. Failures, all with a sentence, here and below: ERR_NOTFOUND
 * for what is no T3 server, or one too old; ERR_MISMATCH for another protocol of orchestration;
 * ERR_AGAIN, ERR_TOOBIG, ERR_STOPPING, ERR_NOMEM as t3_http_send; ERR_FAILED for any other
 * answer. */
int t3_session_describe(const struct t3_site *site, struct t3_descriptor *ret_descriptor,
                        struct errmsg *msg) MUST_USE;

/* Holds a secret: the caller wipes it. */
struct t3_grant {
    char token[T3_READER_TOKEN_BYTES];
    char scope[T3_TEXT_BYTES]; /* as the server said it; empty: it did not */
    uint64_t expires_in_s;     /* 0: not said */
};

/* Exchanges a pairing credential for a token, which spends it. `client` is how the server's owner
 * will know the session. What may be done with the token is for t3_session_check to say. Where the
 * server may have given out one that cannot be read, the sentence says so, and how to end it.
 * ERR_MISMATCH: the server does not know that scope; ERR_PERM: the credential is no good. */
int t3_session_exchange(const struct t3_site *site, const char *credential, const char *client,
                        struct t3_grant *ret_grant, struct errmsg *msg) MUST_USE;

/* Whether the server takes the token, and lets it read and do nothing else. ERR_PERM: it does not
 * take it; ERR_MISMATCH: it may do more, or nobody says what. `scope` is of the grant. */
int t3_session_check(const struct t3_site *site, const char *token, const char *scope,
                     struct errmsg *msg) MUST_USE;

/* Ends the session of a token that is not kept; NULL: one that cannot be sent. Adds to the sentence
 * in `msg`, which says why it is not kept, how that went, or what is to be done. */
void t3_session_drop(const struct t3_site *site, const char *token, struct errmsg *msg);

/* Ends the session of a token. ERR_EXISTS: the server said no, or knows no way, and the sentence
 * tells; the token is still good. ERR_GONE: it was not good any more. */
int t3_session_revoke(const struct t3_site *site, const char *token, struct errmsg *msg) MUST_USE;

#define T3_SESSION_ID_BYTES 129u

/* The session's id, which is no secret, as the token's claims say it. False when they do not. */
bool t3_session_id(const char *token, char out[static T3_SESSION_ID_BYTES]);

#endif
