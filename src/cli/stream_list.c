/* arbe stream list: names, one a line, or all that the listing tells. */
#include "cli/stream_call.h"

#include "cli/command.h"

static int print_one(void *context, const char *name, const struct stream_info *info)
{
    struct stream_call *call = context;
    struct out *o = &call->out;

    if (call->set.json) {
        stream_call_print(call, name, info);
    } else if (call->set.details) {
        out_format(o, "%s  %s  ", info->next_offset, info->closed ? "closed" : "open  ");
        out_format(o, "%-24s  ", info->content_type);
        out_add_shown(o, slice_of(name));
        out_add(o, SLICE("\n"));
        out_end_message(o);
    } else {
        out_add_shown(o, slice_of(name));
        out_add(o, SLICE("\n"));
        out_end_message(o);
    }
    return out_is_over(o);
}

int stream_call_list(struct stream_call *call)
{
    const char *prefix = call->operand_count > 0 ? call->operands[0] : "";
    struct stream_peer peer;
    struct stream_error error = {0};
    int code = stream_call_open(call, NULL, STREAM_CALL_RETRIES, &peer);

    if (code != 0) {
        return code;
    }
    call->out.lines = true;
    if (stream_client_list(peer.client, prefix, print_one, call, &error) != STREAM_OK &&
        !out_is_over(&call->out)) {
        code = stream_call_fail(call, "", &error);
    }
    stream_call_close(&peer);
    return code;
}
