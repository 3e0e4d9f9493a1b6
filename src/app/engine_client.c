/* A transport, and a client over it. */
#include "app/engine_client.h"

#include "client/client.h"

int engine_client_new(const struct engine_client_config *config,
                      const struct stream_client_options *options,
                      struct stream_client **ret_client, struct stream_error *ret_error)
{
    struct stream_client_options defaults;
    struct transport *transport;

    stream_client_options_init(&defaults);
    options = options != NULL ? options : &defaults;
    int code = engine_transport_new(config, options, &transport, ret_error);

    return code != STREAM_OK ? code : client_new(transport, options, ret_client, ret_error);
}
