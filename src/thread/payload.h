/* Payloads of entries: their types, what each must hold, and what others need of them. The shapes
 * are the one table of payload.c.
 *
 * A payload is the text of a JSON object that has been scanned, as entry.h and json_text_read hand
 * it out. What the table does not know is kept: a payload is stored as it came. Pure, but for the
 * allocations of buffers and arenas. */
#ifndef ARBE_THREAD_PAYLOAD_H
#define ARBE_THREAD_PAYLOAD_H

#include "base/arena.h"
#include "base/buf.h"
#include "thread/api_error.h"
#include "thread/status.h"

#define PAYLOAD_TYPE_LIST(X)                                   \
    X(CHAT, "chat")                                            \
    X(PI_CHUNK, "pi.chunk")                                    \
    X(PI_ASSISTANT, "pi.assistant")                            \
    X(PI_TOOL_RESULT, "pi.tool_result")                        \
    X(PI_COMPACTION, "pi.compaction")                          \
    X(ENTRY_DELETED, "signal.entry.deleted")                   \
    X(THREAD_CREATED, "signal.thread.created")                 \
    X(THREAD_RENAMED, "signal.thread.renamed")                 \
    X(THREAD_DELETED, "signal.thread.deleted")                 \
    X(THREAD_STATUS_CHANGED, "signal.thread.status_changed")   \
    X(THREAD_PI_FAILED, "signal.thread.pi_failed")             \
    X(THREAD_PI_ORPHANED, "signal.thread.pi_session_orphaned") \
    X(HOUSE_CREATED, "signal.house.created")                   \
    X(HOUSE_RENAMED, "signal.house.renamed")                   \
    X(HOUSE_DELETED, "signal.house.deleted")                   \
    X(HOUSE_MEMBER_ADDED, "signal.house.member_added")         \
    X(HOUSE_MEMBER_REMOVED, "signal.house.member_removed")     \
    X(ENVIRONMENT_REQUESTED, "signal.environment.requested")   \
    X(ENVIRONMENT_STARTING, "signal.environment.starting")     \
    X(ENVIRONMENT_READY, "signal.environment.ready")           \
    X(ENVIRONMENT_STOPPED, "signal.environment.stopped")       \
    X(ENVIRONMENT_FAILED, "signal.environment.failed")         \
    X(FILES_ADDED, "signal.files.added")                       \
    X(FILES_CHANGED, "signal.files.changed")                   \
    X(FILES_REMOVED, "signal.files.removed")                   \
    X(DIRECTOR_WOKE, "signal.thread_director.woke")            \
    X(DIRECTOR_DECIDED, "signal.thread_director.decided")      \
    X(DIRECTOR_FAILED, "signal.thread_director.failed")        \
    X(DISPATCH_STARTED, "signal.dispatch.started")             \
    X(DISPATCH_COMPLETED, "signal.dispatch.completed")         \
    X(DISPATCH_FAILED, "signal.dispatch.failed")               \
    X(DISPATCH_CANCELLED, "signal.dispatch.cancelled")         \
    X(DISPATCH_SKIPPED, "signal.dispatch.skipped")

enum payload_type {
#define X(name, text) PAYLOAD_##name,
    PAYLOAD_TYPE_LIST(X)
#undef X
    PAYLOAD_UNKNOWN, /* for readers: of a later version, or no type at all */
    PAYLOAD_TYPE_COUNT = PAYLOAD_UNKNOWN
};

/* A set of types; all zeros is empty. */
struct payload_types {
    uint64_t bits; /* private */
};

/* The name of a type, such as "pi.chunk"; "unknown" for PAYLOAD_UNKNOWN. Static storage. */
const char *payload_type_text(enum payload_type type);

/* The type of that name; PAYLOAD_UNKNOWN when there is none. */
enum payload_type payload_type_parse(struct slice text);

/* What "type" says: 0, and PAYLOAD_UNKNOWN for a name of no type of ours; -1 when it is missing,
 * given twice, or no string, or the payload is no object. */
int payload_type_of(struct slice payload, enum payload_type *ret_type) MUST_USE;

/* Whether `type` is in the set; PAYLOAD_UNKNOWN never is. */
bool payload_types_has(struct payload_types set, enum payload_type type);

/* Puts a known type into the set. */
void payload_types_add(struct payload_types *set, enum payload_type type);

/* Judges a payload that is to be written: its type is known, what must be there is there, once, and
 * of the right kind. Appends its bytes as they came to `out`; only where an optional trace field
 * (PAYLOAD_TRACE_FIELDS) is bad, without that member. -1 with the field's path: INVALID_INPUT,
 * TOO_LARGE, or INTERNAL when memory ran out. */
int payload_check(struct slice payload, enum payload_type *ret_type, struct buf *out,
                  struct api_error *ret_error) MUST_USE;

#define PAYLOAD_TRACE_FIELDS "invocationId, message, timestamp and durationMs"

/* Appends what was said, decoded: a chat's text, the text blocks of a pi.assistant one line after
 * another; nothing for other types. Half of a surrogate pair becomes U+FFFD. Failure sticks to the
 * buffer. */
void payload_text(struct slice payload, enum payload_type type, struct buf *out);

/* What a model call cost. Slices live as long as payload and arena. */
struct payload_usage {
    uint64_t input_tokens;
    uint64_t output_tokens;
    uint64_t cache_read_tokens;
    uint64_t cache_write_tokens;
    double cost_usd;       /* 0 when not told */
    struct slice provider; /* empty when not told, as those below */
    struct slice model;
    struct slice invocation_id; /* the trace */
};

/* The usage of a pi.assistant or pi.compaction: 1, or 0 when there is none (other types, or of a
 * kind that payload_check would refuse). ERR_NOMEM when the arena has no room. */
int payload_usage(struct slice payload, enum payload_type type, struct arena *arena,
                  struct payload_usage *ret_usage) MUST_USE;

/* The status that a signal moves its thread to: that of status_changed, failed for the other two
 * that end a run. False for other types, or a status that is none. */
bool payload_status(struct slice payload, enum payload_type type,
                    enum thread_status *ret_status) MUST_USE;

/* The member `name` as text, decoded into the arena only where an escape stands in it: 1, or 0 when
 * it is not there once as a string. ERR_NOMEM when the arena has no room. */
int payload_string(struct slice payload, struct slice name, struct arena *arena,
                   struct slice *ret_text) MUST_USE;

#endif
