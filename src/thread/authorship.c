/* Each kind of caller is one question about the type and one about the author. */
#include "thread/authorship.h"

#include <assert.h>

bool authorship_sandbox_may(enum payload_type type)
{
    switch (type) {
    case PAYLOAD_CHAT:
    case PAYLOAD_PI_CHUNK:
    case PAYLOAD_PI_ASSISTANT:
    case PAYLOAD_PI_TOOL_RESULT:
    case PAYLOAD_PI_COMPACTION:
    case PAYLOAD_THREAD_STATUS_CHANGED:
    case PAYLOAD_THREAD_PI_FAILED:
    case PAYLOAD_THREAD_PI_ORPHANED:
    case PAYLOAD_ENVIRONMENT_REQUESTED:
    case PAYLOAD_ENVIRONMENT_STARTING:
    case PAYLOAD_ENVIRONMENT_READY:
    case PAYLOAD_ENVIRONMENT_STOPPED:
    case PAYLOAD_ENVIRONMENT_FAILED:
    case PAYLOAD_FILES_ADDED:
    case PAYLOAD_FILES_CHANGED:
    case PAYLOAD_FILES_REMOVED:
        return true;
    case PAYLOAD_ENTRY_DELETED:
    case PAYLOAD_THREAD_CREATED:
    case PAYLOAD_THREAD_RENAMED:
    case PAYLOAD_THREAD_DELETED:
    case PAYLOAD_HOUSE_CREATED:
    case PAYLOAD_HOUSE_RENAMED:
    case PAYLOAD_HOUSE_DELETED:
    case PAYLOAD_HOUSE_MEMBER_ADDED:
    case PAYLOAD_HOUSE_MEMBER_REMOVED:
    case PAYLOAD_DIRECTOR_WOKE:
    case PAYLOAD_DIRECTOR_DECIDED:
    case PAYLOAD_DIRECTOR_FAILED:
    case PAYLOAD_DISPATCH_STARTED:
    case PAYLOAD_DISPATCH_COMPLETED:
    case PAYLOAD_DISPATCH_FAILED:
    case PAYLOAD_DISPATCH_CANCELLED:
    case PAYLOAD_DISPATCH_SKIPPED:
    case PAYLOAD_UNKNOWN:
        break;
    }
    return false;
}

static int refuse_type(struct api_error *e, const char *said, enum payload_type type)
{
    (void)api_error_set(e, API_FORBIDDEN, "%s, not %s", said, payload_type_text(type));
    return api_error_set_field(e, "payload.type");
}

static int check_type(const struct authorship_question *q, struct api_error *e)
{
    switch (q->caller) {
    case CALLER_AGENT:
        return q->type == PAYLOAD_CHAT
                   ? 0
                   : refuse_type(e, "an API key may post entries of the type chat only", q->type);
    case CALLER_SANDBOX:
        if (!authorship_sandbox_may(q->type)) {
            return refuse_type(e,
                               "a sandbox may write chat, pi.*, signal.environment.*, "
                               "signal.files.* and the thread signals that end a run",
                               q->type);
        }
        return payload_types_has(q->token_types, q->type)
                   ? 0
                   : refuse_type(e, "this token is for the types that it lists", q->type);
    case CALLER_SERVER:
        break;
    }
    return q->type != PAYLOAD_UNKNOWN ? 0 : refuse_type(e, "the type must be known", q->type);
}

int authorship_decide(const struct authorship_question *question, struct slice *ret_author,
                      struct api_error *ret_error)
{
    const struct authorship_question *q = question;
    assert(q->caller == CALLER_SERVER || q->agent_id.len > 0);
    if (check_type(q, ret_error) < 0) {
        return -1;
    }
    if (q->author_given.len == 0) {
        *ret_author = q->agent_id;
        return 0;
    }
    if (q->caller != CALLER_SERVER && !slice_equal(q->author_given, q->agent_id)) {
        (void)api_error_set(ret_error, API_FORBIDDEN,
                            "authorId must be the caller's own or left out: nobody writes as "
                            "somebody else");
        return api_error_set_field(ret_error, "authorId");
    }
    *ret_author = q->author_given;
    return 0;
}
