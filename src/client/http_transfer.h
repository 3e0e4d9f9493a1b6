/* One call on its way through libcurl: the handle's settings, what comes of the answer, the limits
 * of time, and what the result is in the end. Knows nothing of other transfers. */
#ifndef ARBE_CLIENT_HTTP_TRANSFER_H
#define ARBE_CLIENT_HTTP_TRANSFER_H

#include "client/http_head.h"
#include "client/http_request.h"

#include <curl/curl.h>

/* Why a transfer was ended from our side, while libcurl had it. */
enum http_stop {
    HTTP_STOP_NOT,     /* it was not */
    HTTP_STOP_WANTED,  /* by CALL_STOP */
    HTTP_STOP_FAILED,  /* the call is failed already */
    HTTP_STOP_IGNORED, /* more of a body that nobody wants */
    HTTP_STOP_RESEND,  /* libcurl was about to send an append a second time */
};

/* What happens with the body. */
enum http_body {
    HTTP_BODY_HAND_OUT,
    HTTP_BODY_KEEP,
    HTTP_BODY_ANSWER, /* goes to call.answer */
    HTTP_BODY_PASS,
};

struct http_transfer {
    struct list link; /* on one of its transport's lists */
    const struct http_settings *settings;
    struct call *call;
    CURL *easy;           /* the transport's; NULL: it has not begun */
    bool paused;          /* on_data said so */
    bool resume;          /* and that was taken back: see http_transfer_resume */
    uint64_t deadline_ms; /* for all of an answer that is not live; 0: none */

    /* private */
    struct http_request request;
    struct http_head head;
    enum http_body body;
    enum http_stop stop;
    struct buf kept;      /* body of a refusal or of a listing */
    size_t ignored_bytes; /* passed over so far */
    unsigned sends;       /* requests on the wire */
    uint64_t left_ms;     /* while paused: what remained of the deadline */
    uint64_t heard_ms;    /* of a live answer: when there was a byte */
    char error[CURL_ERROR_SIZE];
};

/* Whether a call's answer may come at any time: it has no deadline, but may not stay silent. */
bool http_transfer_is_live(const struct call *call);

/* Whether a call's body goes to its on_data. */
bool http_transfer_hands_out(const struct call *call);

/* Begins; its time runs from now on. All is borrowed. */
void http_transfer_init(struct http_transfer *t, const struct http_settings *settings,
                        struct call *call);

/* Composes the request and makes `easy`, which stays the caller's, ready for it. False when that is
 * not possible: the call is failed. `easy` NULL: no memory. */
bool http_transfer_prepare(struct http_transfer *t, CURL *easy);

/* When time is up; 0: never, as things stand. */
uint64_t http_transfer_limit(const struct http_transfer *t);

/* Fails the call since its time is up. */
void http_transfer_fail_late(struct http_transfer *t);

/* Goes on after a pause, perhaps with on_data right away. What it returns, if not CURLE_OK, is how
 * the transfer has ended. */
CURLcode http_transfer_resume(struct http_transfer *t);

/* It has ended, by `code`: completes the call's result. Listed streams are handed out here. */
void http_transfer_settle(struct http_transfer *t, CURLcode code);

/* Frees what it holds but for the handle. */
void http_transfer_finish(struct http_transfer *t);

#endif
