/* The one way by which the server itself writes and reads threads' streams: a client that keeps
 * threads' recency (thread/recency.h), onto the streams of this process or of another server. */
#ifndef ARBE_APP_STREAMS_H
#define ARBE_APP_STREAMS_H

#include "arbe/stream_client.h"
#include "base/err.h"

struct app;

/* Makes it for an app whose server and recency are there. ERR_* with a sentence. */
int streams_open(struct app *app, struct stream_client **ret_client, struct errmsg *msg) MUST_USE;

#endif
