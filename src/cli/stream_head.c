/* arbe stream head, close, delete: one request each. */
#include "cli/stream_call.h"

#include "cli/command.h"

int stream_call_head(struct stream_call *call)
{
    struct stream_peer peer;
    struct stream_info info = {0};
    struct stream_error error = {0};
    int code = stream_call_open(call, call->operands[0], STREAM_CALL_RETRIES, &peer);

    if (code != 0) {
        return code;
    }
    if (stream_client_head(peer.client, peer.site.name, &info, &error) == STREAM_OK) {
        stream_call_print(call, peer.site.name, &info);
    } else {
        code = stream_call_fail(call, peer.site.name, &error);
    }
    stream_call_close(&peer);
    return code;
}

int stream_call_finish(struct stream_call *call)
{
    struct stream_peer peer;
    struct stream_info info = {0};
    struct stream_error error = {0};
    int code = stream_call_open(call, call->operands[0], STREAM_CALL_RETRIES, &peer);

    if (code != 0) {
        return code;
    }
    if (stream_client_close(peer.client, peer.site.name, &info, &error) != STREAM_OK) {
        code = stream_call_fail(call, peer.site.name, &error);
    } else if (call->set.json) {
        stream_call_print(call, peer.site.name, &info);
    } else {
        stream_call_tell(call, "closed \"%s\"", peer.site.name);
    }
    stream_call_close(&peer);
    return code;
}

static int delete_one(struct stream_call *call, const char *name)
{
    struct out *o = &call->out;
    struct stream_peer peer;
    struct stream_error error = {0};
    int code = stream_call_open(call, name, STREAM_CALL_RETRIES, &peer);

    if (code != 0) {
        return code;
    }
    if (stream_client_delete(peer.client, peer.site.name, &error) != STREAM_OK) {
        code = stream_call_fail(call, peer.site.name, &error);
    } else if (call->set.json) {
        out_add(o, SLICE("{\"stream\":"));
        out_add_string(o, slice_of(peer.site.name));
        out_add(o, SLICE(",\"deleted\":true}\n"));
        out_end_message(o);
    } else {
        stream_call_tell(call, "deleted \"%s\"", peer.site.name);
    }
    stream_call_close(&peer);
    return code;
}

int stream_call_delete(struct stream_call *call)
{
    int code = 0;

    for (int i = 0; i < call->operand_count && code < COMMAND_INTERRUPTED; i++) {
        int one = delete_one(call, call->operands[i]);

        code = code == 0 || one >= COMMAND_INTERRUPTED ? one : code;
    }
    return code;
}
