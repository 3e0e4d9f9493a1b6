/* A page of names, as GET __ds/streams gives it: {"streams": [{"path": ...}], "next_after": ...}.
 * Pure but for memory. */
#ifndef ARBE_CLIENT_HTTP_LISTING_H
#define ARBE_CLIENT_HTTP_LISTING_H

#include "client/call.h"

/* Hands out the streams by call->on_listed and fills call->result.after. On a page that is not as
 * it should be the call fails with STREAM_ERROR_FORMAT; some may have been handed out by then. */
void http_listing(struct call *call, struct slice page);

#endif
