/* One request of HTTP to a T3 Code server, for commands: sent, waited for, and answered whole.
 * Redirects are not followed, lest a secret go elsewhere; a signal (interrupt.h) ends the wait. */
#ifndef ARBE_CLI_T3_HTTP_H
#define ARBE_CLI_T3_HTTP_H

#include "base/buf.h"
#include "base/err.h"

struct t3_http_request {
    const char *method;       /* "GET", "POST" */
    const char *url;          /* of a T3 server, with a path: t3_url_http */
    const char *token;        /* Authorization: Bearer; NULL: none */
    const char *content_type; /* NULL: there is no body */
    struct slice body;
    const char *ca_file; /* NULL: the system's certificates */
    int timeout_ms;      /* for all of it */
    bool *ret_sent;      /* set: the server may have read it, whatever came of it; NULL */
};

struct t3_http_answer {
    int status;
    struct slice json; /* the body as one JSON value, borrowed from it; empty when it is none */
    struct buf body;   /* at most T3_ANSWER_BYTES_MAX; owned */
};

/* Sends it and waits. Any answer is good. Else, with a sentence that holds neither token nor body:
 * ERR_AGAIN: no answer (no connection, none in time, a certificate that is not good), ERR_TOOBIG:
 * too long a one, ERR_STOPPING: a signal, ERR_NOMEM. */
int t3_http_send(const struct t3_http_request *request, struct t3_http_answer *ret_answer,
                 struct errmsg *msg) MUST_USE;

/* Frees and wipes. Accepts a zeroed one. */
void t3_http_answer_finish(struct t3_http_answer *answer);

/* Appends text as application/x-www-form-urlencoded has it. */
void t3_http_append_form(struct buf *out, const char *text);

#endif
