/* A stream client onto the streams engine of the same process: all of arbe/stream_client.h and
 * arbe/producer.h, see engine_transport.h for what differs. */
#ifndef ARBE_APP_ENGINE_CLIENT_H
#define ARBE_APP_ENGINE_CLIENT_H

#include "app/engine_transport.h"

/* As stream_client_new, with an engine for a base URL; `options` NULL: the defaults. Free it before
 * the engine is closed and before the pool ends; that waits for what the engine is still about.
 * ARGUMENT with a sentence, MEMORY. */
int engine_client_new(const struct engine_client_config *config,
                      const struct stream_client_options *options,
                      struct stream_client **ret_client, struct stream_error *ret_error);

#endif
