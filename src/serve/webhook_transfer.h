/* One request to one receiver: the libcurl handle with every setting that keeps it harmless. Knows
 * nothing of queues and threads. */
#ifndef ARBE_SERVE_WEBHOOK_TRANSFER_H
#define ARBE_SERVE_WEBHOOK_TRANSFER_H

#include "base/buf.h"
#include "base/err.h"
#include "serve/webhook_url.h"

#include <curl/curl.h>
#include <netdb.h>

struct webhook_transfer {
    CURL *easy;                  /* owned; NULL before it is started */
    struct curl_slist *headers;  /* owned */
    struct curl_slist *resolved; /* owned */
    struct buf reply;            /* body so far; owned */
    size_t header_bytes;         /* of the reply so far */
    const char *refused;         /* why an address was not connected to; NULL: none was refused */
    bool allow_loopback;
    bool too_long; /* the reply is */
};

/* What a transfer is to do; everything is borrowed until it is finished. */
struct webhook_order {
    const char *url; /* NUL-terminated, checked by webhook_url_parse */
    bool https;
    bool allow_loopback;
    struct slice body;
    const char *signature; /* value of Webhook-Signature; copied */
    const char *resolved;  /* by webhook_transfer_pin; copied; NULL: the host is an address */
    uint64_t timeout_ms;   /* at least 1 */
    const char *ca_file;   /* NULL: the system's certificates */
    void *about;           /* CURLINFO_PRIVATE */
};

/* Makes the handle, to be added to a multi handle. ERR_NOMEM; then it is finished, too. */
int webhook_transfer_init(struct webhook_transfer *t, const struct webhook_order *order) MUST_USE;

/* Frees it; it was taken out of the multi handle. Accepts a zeroed one. */
void webhook_transfer_finish(struct webhook_transfer *t);

/* Makes "host:port:address,address" for CURLOPT_RESOLVE out of what a look-up found; the caller
 * frees it. ERR_PERM with a sentence when any of the addresses may not be connected to,
 * ERR_NOTFOUND when there is none, ERR_NOMEM. */
int webhook_transfer_pin(const struct webhook_url *url, const struct addrinfo *answers,
                         bool allow_loopback, char **ret_resolved, struct errmsg *msg) MUST_USE;

#endif
