/* The shared secret: Authorization: Bearer (RFC 6750), compared in constant time. Pure. */
#ifndef ARBE_SERVE_AUTH_H
#define ARBE_SERVE_AUTH_H

#include "http/request.h"

/* Whether the request shows `secret`; always when the secret is empty. A request with two
 * Authorization fields shows none. */
bool auth_is_good(const struct http_request *request, struct slice secret);

#endif
