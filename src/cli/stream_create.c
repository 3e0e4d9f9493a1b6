/* arbe stream create, fork: make a stream, empty or with the beginning of another one. */
#include "cli/stream_call.h"

#include "cli/command.h"

#include <string.h>

static int create(struct stream_call *call, const char *name, struct stream_create_options *options)
{
    struct stream_peer peer;
    struct stream_info info = {0};
    struct stream_error error = {0};
    int code = stream_call_open(call, name, STREAM_CALL_RETRIES, &peer);

    if (code != 0) {
        return code;
    }
    options->content_type = stream_call_type(call->set.type);
    options->ttl_seconds = (int64_t)(call->set.ttl_ms / 1000);
    options->expires_at = call->set.expires_at;
    options->closed = (int)call->set.closed;
    if (stream_client_create(peer.client, peer.site.name, options, &info, &error) != STREAM_OK) {
        code = stream_call_fail(call, peer.site.name, &error);
    } else if (call->set.json) {
        stream_call_print(call, peer.site.name, &info);
    } else {
        stream_call_tell(call, "%s \"%s\", %s",
                         info.created ? "made" : "it was there already:", peer.site.name,
                         info.content_type);
    }
    stream_call_close(&peer);
    return code;
}

/* Sub-second times cannot be said in the protocol. */
static int check_times(const struct stream_call *call)
{
    if (call->set.ttl_ms % 1000 != 0) {
        return stream_call_usage(call, "--ttl takes whole seconds, such as 90s or 24h");
    }
    if (call->set.ttl_ms != 0 && call->set.expires_at != NULL) {
        return stream_call_usage(call, "--ttl and --expires-at exclude each other");
    }
    return 0;
}

int stream_call_create(struct stream_call *call)
{
    struct stream_create_options options = {0};
    int code = check_times(call);

    return code != 0 ? code : create(call, call->operands[0], &options);
}

int stream_call_fork(struct stream_call *call)
{
    struct stream_create_options options = {
        .fork_offset = call->set.at,
        .fork_sub_offset = (int64_t)call->set.skip,
    };
    struct stream_peer peer;
    char source[sizeof(peer.site.name)];
    char url[sizeof(peer.site.url)];
    int code = check_times(call);

    if (code == 0) {
        code = stream_call_open(call, call->operands[0], STREAM_CALL_RETRIES, &peer);
    }
    if (code != 0) {
        return code;
    }
    memcpy(source, peer.site.name, sizeof(source));
    memcpy(url, peer.site.url, sizeof(url));
    stream_call_close(&peer);
    code = stream_call_open(call, call->operands[1], STREAM_CALL_RETRIES, &peer);
    if (code != 0) {
        return code;
    }
    bool same = strcmp(url, peer.site.url) == 0;

    stream_call_close(&peer);
    if (!same) {
        return stream_call_usage(call,
                                 "a fork is on the server of its source; arbe stream copy brings a "
                                 "stream to another one");
    }
    options.fork_of = source;
    return create(call, call->operands[1], &options);
}
