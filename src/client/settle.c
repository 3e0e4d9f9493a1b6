/* Two folds over the same entries. One decides: it keeps what is open, and settles when an end
 * finds nothing open. The other only remembers, while the past goes by, whether it ends at rest. */
#include "client/settle.h"

#include "base/json_value.h"

/* What an entry means here. */
enum meaning {
    NOTHING,
    CHAT,    /* somebody may act upon it */
    DECIDED, /* agents are going to start */
    STARTED, /* a dispatch has */
    ENDED,   /* a dispatch has; outcome */
    SKIPPED, /* an agent does not start */
    NOBODY,  /* no agent is going to start; outcome */
    OVER,    /* the thread's run is over, whatever is open; outcome */
    REVIVED, /* the thread is at work again */
};

struct sign {
    const char *type;
    enum meaning meaning;
    enum scoped_outcome outcome;
};

static const struct sign signs[] = {
    {"chat", CHAT, SCOPED_COMPLETED},
    {"signal.thread_director.decided", DECIDED, SCOPED_COMPLETED},
    {"signal.thread_director.failed", NOBODY, SCOPED_FAILED},
    {"signal.dispatch.started", STARTED, SCOPED_COMPLETED},
    {"signal.dispatch.completed", ENDED, SCOPED_COMPLETED},
    {"signal.dispatch.failed", ENDED, SCOPED_FAILED},
    {"signal.dispatch.cancelled", ENDED, SCOPED_CANCELLED},
    {"signal.dispatch.skipped", SKIPPED, SCOPED_SKIPPED},
    {"signal.thread.pi_failed", OVER, SCOPED_FAILED},
    {"signal.thread.pi_session_orphaned", OVER, SCOPED_FAILED},
};

static struct slice payload_of(const struct scoped_entry *entry)
{
    return entry->payload_len > 0 ? (struct slice){entry->payload, entry->payload_len}
                                  : SLICE("{}");
}

static struct sign sign_of_status(const struct scoped_entry *entry)
{
    static const struct sign terminal[] = {
        {"completed", OVER, SCOPED_COMPLETED},
        {"failed", OVER, SCOPED_FAILED},
        {"cancelled", OVER, SCOPED_CANCELLED},
    };
    char status[32];

    scoped_read_text(payload_of(entry), SLICE("status"), status, sizeof(status));
    for (size_t i = 0; i < ARRAY_COUNT(terminal); i++) {
        if (strcmp(status, terminal[i].type) == 0) {
            return terminal[i];
        }
    }
    return (struct sign){.meaning = REVIVED};
}

static struct sign sign_of(const struct scoped_entry *entry)
{
    if (strcmp(entry->type, "signal.thread.status_changed") == 0) {
        return sign_of_status(entry);
    }
    for (size_t i = 0; i < ARRAY_COUNT(signs); i++) {
        if (strcmp(entry->type, signs[i].type) == 0) {
            return signs[i];
        }
    }
    return (struct sign){.meaning = NOTHING};
}

/* ---------------------------------------------------------------------------------- who is open */

static void open_add(struct settle *s, const char *id, bool is_agent)
{
    if (id[0] == '\0' || s->open_count == SETTLE_OPEN_MAX) {
        return;
    }
    for (size_t i = 0; i < s->open_count; i++) {
        if (s->open[i].is_agent == is_agent && strcmp(s->open[i].id, id) == 0) {
            return;
        }
    }
    s->open[s->open_count].is_agent = is_agent;
    memcpy(s->open[s->open_count++].id, id, strlen(id) + 1);
}

static void open_remove(struct settle *s, const char *id, bool is_agent)
{
    for (size_t i = 0; i < s->open_count; i++) {
        if (s->open[i].is_agent == is_agent && strcmp(s->open[i].id, id) == 0) {
            s->open[i] = s->open[--s->open_count];
            return;
        }
    }
}

static bool is_dispatch_open(const struct settle *s)
{
    for (size_t i = 0; i < s->open_count; i++) {
        if (!s->open[i].is_agent) {
            return true;
        }
    }
    return false;
}

static void open_decided(struct settle *s, struct slice payload)
{
    char id[SCOPED_ID_BYTES];
    struct json_walk walk;
    struct slice list;
    struct slice value;
    struct buf text;

    if (json_object_find(payload, SLICE("agentIds"), &list, NULL) != 1 ||
        json_kind(list) != JSON_ARRAY) {
        return;
    }
    json_walk_begin(&walk, list);
    while (json_walk_element(&walk, &value)) {
        buf_init_fixed(&text, id, sizeof(id));
        if (json_kind(value) == JSON_STRING && json_string_decode(value, &text) == 0) {
            id[text.len] = '\0';
            open_add(s, id, true);
        }
    }
}

/* --------------------------------------------------------------------------------- the decision */

static void read_end(const struct scoped_entry *entry, enum scoped_outcome outcome,
                     struct settle_end *ret_end)
{
    ret_end->outcome = outcome;
    scoped_read_text(payload_of(entry), SLICE("reason"), ret_end->reason, sizeof(ret_end->reason));
    memcpy(ret_end->entry_id, entry->id, sizeof(ret_end->entry_id));
}

/* Of several that ended, what is worse counts. */
static void note_end(struct settle *s, enum scoped_outcome outcome,
                     const struct scoped_entry *entry)
{
    if (!s->has_ended || outcome < s->end.outcome) {
        s->has_ended = true;
        read_end(entry, outcome, &s->end);
    }
}

/* Whether the signal is about the trigger that is named, if one is. A signal that tells of none is,
 * once the trigger was seen. */
static bool is_ours(const struct settle *s, const struct sign *sign, struct slice payload)
{
    char trigger[SCOPED_ID_BYTES];

    if (s->trigger[0] == '\0' || sign->meaning == OVER) {
        return s->counts;
    }
    scoped_read_text(payload, sign->meaning == NOBODY ? SLICE("entryId") : SLICE("triggerEntryId"),
                     trigger, sizeof(trigger));
    return trigger[0] == '\0' ? s->counts : strcmp(trigger, s->trigger) == 0;
}

static bool settled(struct settle *s)
{
    s->has_ended = false;
    return true;
}

/* A signal that counts. */
static bool decide(struct settle *s, const struct sign *sign, const struct scoped_entry *entry)
{
    char dispatch[SCOPED_ID_BYTES];

    scoped_read_text(payload_of(entry), SLICE("dispatchId"), dispatch, sizeof(dispatch));
    switch (sign->meaning) {
    case DECIDED:
        open_decided(s, payload_of(entry));
        return false;
    case STARTED:
        open_add(s, dispatch, false);
        return false;
    case ENDED:
        open_remove(s, dispatch, false);
        note_end(s, sign->outcome, entry);
        return !is_dispatch_open(s) && settled(s);
    case SKIPPED:
        note_end(s, sign->outcome, entry);
        return s->open_count == 0 && settled(s);
    case NOBODY:
        note_end(s, sign->outcome, entry);
        return !is_dispatch_open(s) && settled(s);
    case OVER:
        s->open_count = 0;
        s->has_ended = false; /* what the thread came to outranks its parts */
        note_end(s, sign->outcome, entry);
        return settled(s);
    default:
        return false;
    }
}

/* While the past goes by: does it end at rest? */
static void remember(struct settle *s, const struct sign *sign, const struct scoped_entry *entry)
{
    switch (sign->meaning) {
    case ENDED:
    case SKIPPED:
    case NOBODY:
    case OVER:
        s->rests = true;
        read_end(entry, sign->outcome, &s->rest);
        break;
    case CHAT:
    case DECIDED:
    case STARTED:
    case REVIVED:
        s->rests = false;
        break;
    case NOTHING:
        break;
    }
}

void settle_init(struct settle *s, const char *trigger)
{
    *s = (struct settle){.counts = false};
    if (trigger != NULL) {
        memcpy(s->trigger, trigger, strlen(trigger) + 1);
    }
}

bool settle_take(struct settle *s, const struct scoped_entry *entry)
{
    struct sign sign = sign_of(entry);
    struct slice payload = payload_of(entry);
    char agent[SCOPED_ID_BYTES];

    if (!s->backfilled) {
        remember(s, &sign, entry);
    }
    if (s->trigger[0] != '\0' && strcmp(entry->id, s->trigger) == 0) {
        s->counts = true;
    }
    if (sign.meaning == STARTED || sign.meaning == SKIPPED) {
        scoped_read_text(payload, SLICE("agentId"), agent, sizeof(agent));
        open_remove(s, agent, true); /* whatever triggered it, it is not waited for any more */
    }
    return is_ours(s, &sign, payload) && decide(s, &sign, entry);
}

const struct settle_end *settle_backfilled(struct settle *s)
{
    s->backfilled = true;
    s->counts = true;
    return s->rests ? &s->rest : NULL;
}
