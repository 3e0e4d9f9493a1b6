/* The transport over HTTP/1.1, by libcurl. Redirects are not followed: a redirect from a stream's
 * URL would carry the bearer token where nobody sent it. */
#ifndef ARBE_CLIENT_TRANSPORT_HTTP_H
#define ARBE_CLIENT_TRANSPORT_HTTP_H

#include "client/transport.h"

/* Makes one for a base URL; everything is copied but for the context of the callbacks. ARGUMENT
 * with a sentence, MEMORY. Any thread. */
int transport_http_new(const char *base_url, const struct stream_client_options *options,
                       struct transport **ret_transport, struct stream_error *ret_error);

#endif
