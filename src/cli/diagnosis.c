/* A chat begins anew; each signal after it moves the stage on. */
#include "cli/diagnosis.h"

#include "base/limits.h"
#include "cli/record.h"
#include "thread/payload.h"

#include <stdio.h>

#define MEMORY_BYTES_MAX (64u * KIB)

const char *diagnosis_word(enum diagnosis_stage stage)
{
    static const char *const words[] = {
#define X(name, word, text) word,
        DIAGNOSIS_LIST(X)
#undef X
    };

    return words[stage];
}

const char *diagnosis_text(enum diagnosis_stage stage)
{
    static const char *const texts[] = {
#define X(name, word, text) text,
        DIAGNOSIS_LIST(X)
#undef X
    };

    return texts[stage];
}

static void copy_member(struct slice payload, const char *name, char *out, size_t size)
{
    struct arena memory;

    arena_init(&memory, MEMORY_BYTES_MAX);
    (void)snprintf(out, size, "%s", record_text(payload, name, &memory).ptr);
    arena_finish(&memory);
}

static void begin(struct diagnosis *d, const struct scoped_entry *entry)
{
    *d = (struct diagnosis){.stage = DIAGNOSIS_POSTED, .posted_ts = entry->ts};
    memcpy(d->trigger_id, entry->id, sizeof(d->trigger_id));
    memcpy(d->author_id, entry->author_id, sizeof(d->author_id));
}

static void move(struct diagnosis *d, enum diagnosis_stage stage, struct slice payload)
{
    d->stage = stage;
    copy_member(payload, "reason", d->reason, sizeof(d->reason));
}

static void move_dispatch(struct diagnosis *d, enum diagnosis_stage stage, struct slice payload)
{
    move(d, stage, payload);
    copy_member(payload, "dispatchId", d->dispatch_id, sizeof(d->dispatch_id));
    copy_member(payload, "agentId", d->agent_id, sizeof(d->agent_id));
}

/* What words or the answer of a tool tell: a bot that has no dispatch is at work as well. */
static void take_answer(struct diagnosis *d)
{
    d->answers++;
    if (d->stage < DIAGNOSIS_WORKING) {
        d->stage = DIAGNOSIS_WORKING;
    }
}

static void take_status(struct diagnosis *d, struct slice payload, enum payload_type type)
{
    enum thread_status status;

    if (!payload_status(payload, type, &status) || !status_is_terminal(status)) {
        return;
    }
    move(d,
         status == THREAD_COMPLETED ? DIAGNOSIS_COMPLETED
         : status == THREAD_FAILED  ? DIAGNOSIS_FAILED
                                    : DIAGNOSIS_CANCELLED,
         payload);
}

/* Whether the type is one that tells how far things are. */
static bool take_signal(struct diagnosis *d, enum payload_type type, struct slice payload)
{
    switch (type) {
    case PAYLOAD_DIRECTOR_WOKE:
        move(d, DIAGNOSIS_WOKEN, payload);
        return true;
    case PAYLOAD_DIRECTOR_DECIDED:
        move(d, DIAGNOSIS_DECIDED, payload);
        return true;
    case PAYLOAD_DIRECTOR_FAILED:
        move(d, DIAGNOSIS_UNWOKEN, payload);
        return true;
    case PAYLOAD_DISPATCH_STARTED:
        move_dispatch(d, DIAGNOSIS_STARTED, payload);
        return true;
    case PAYLOAD_DISPATCH_COMPLETED:
        move_dispatch(d, DIAGNOSIS_COMPLETED, payload);
        return true;
    case PAYLOAD_DISPATCH_FAILED:
        move_dispatch(d, DIAGNOSIS_FAILED, payload);
        return true;
    case PAYLOAD_DISPATCH_CANCELLED:
        move_dispatch(d, DIAGNOSIS_CANCELLED, payload);
        return true;
    case PAYLOAD_DISPATCH_SKIPPED:
        if (d->stage < DIAGNOSIS_STARTED) { /* others may be at work */
            move(d, DIAGNOSIS_SKIPPED, payload);
        }
        return true;
    case PAYLOAD_THREAD_STATUS_CHANGED:
    case PAYLOAD_THREAD_PI_FAILED:
    case PAYLOAD_THREAD_PI_ORPHANED:
        take_status(d, payload, type);
        return true;
    default:
        return false;
    }
}

void diagnosis_take(struct diagnosis *d, const struct scoped_entry *entry)
{
    const struct slice payload = {entry->payload, entry->payload_len};
    enum payload_type type = PAYLOAD_UNKNOWN;

    if (payload.len == 0 || payload_type_of(payload, &type) != 0) {
        return;
    }
    if (type == PAYLOAD_CHAT) {
        begin(d, entry);
        d->last_ts = entry->ts;
    } else if (type == PAYLOAD_PI_ASSISTANT || type == PAYLOAD_PI_TOOL_RESULT ||
               type == PAYLOAD_PI_CHUNK) {
        take_answer(d);
        d->last_ts = entry->ts;
    } else if (take_signal(d, type, payload)) {
        d->last_ts = entry->ts;
    }
}
