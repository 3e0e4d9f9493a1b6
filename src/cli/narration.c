/* Sentences are patterns of one table. "{x}" is the payload's member x, "{author}" and "{agentId}"
 * are names; what stands in brackets is left out when the member in it is not there. */
#include "cli/narration.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "cli/record.h"
#include "thread/payload.h"

#include <stdio.h>

#define NOTE_BYTES_MAX (4 * KIB)

struct sentence {
    enum payload_type type;
    const char *text;
    const char *own; /* where the agent that it is about is the author; NULL: the same */
};

static const struct sentence sentences[] = {
    {PAYLOAD_PI_COMPACTION, "what was said so far was summed up[, {tokensBefore} tokens of it]",
     NULL},
    {PAYLOAD_ENTRY_DELETED, "{author} deleted a message", NULL},
    {PAYLOAD_THREAD_CREATED, "{author} made the thread", NULL},
    {PAYLOAD_THREAD_RENAMED, "{author} renamed the thread to \"{name}\"", NULL},
    {PAYLOAD_THREAD_DELETED, "{author} deleted the thread", NULL},
    {PAYLOAD_THREAD_STATUS_CHANGED, "{author} set the thread to {status}[: {reason}]", NULL},
    {PAYLOAD_THREAD_PI_FAILED, "run failed[: {reason}]", NULL},
    {PAYLOAD_THREAD_PI_ORPHANED, "run lost its session[: {reason}]", NULL},
    {PAYLOAD_HOUSE_CREATED, "{author} made the house", NULL},
    {PAYLOAD_HOUSE_RENAMED, "{author} renamed the house to \"{name}\"", NULL},
    {PAYLOAD_HOUSE_DELETED, "{author} deleted the house", NULL},
    {PAYLOAD_HOUSE_MEMBER_ADDED, "{author} made {agentId} {role} of the house",
     "{agentId} joined as {role}"},
    {PAYLOAD_HOUSE_MEMBER_REMOVED, "{author} removed {agentId} from the house",
     "{agentId} left the house"},
    {PAYLOAD_ENVIRONMENT_REQUESTED, "environment {environmentId} is asked for[: {reason}]", NULL},
    {PAYLOAD_ENVIRONMENT_STARTING, "environment {environmentId} starts[: {reason}]", NULL},
    {PAYLOAD_ENVIRONMENT_READY, "environment {environmentId} is ready[: {reason}]", NULL},
    {PAYLOAD_ENVIRONMENT_STOPPED, "environment {environmentId} stopped[: {reason}]", NULL},
    {PAYLOAD_ENVIRONMENT_FAILED, "environment {environmentId} failed[: {reason}]", NULL},
    {PAYLOAD_FILES_ADDED, "{author} added the file {path}", NULL},
    {PAYLOAD_FILES_CHANGED, "{author} changed the file {path}", NULL},
    {PAYLOAD_FILES_REMOVED, "{author} removed the file {path}", NULL},
    {PAYLOAD_DIRECTOR_WOKE, "the director woke", NULL},
    {PAYLOAD_DIRECTOR_DECIDED, "the director asked {agentIds}", NULL},
    {PAYLOAD_DIRECTOR_FAILED, "the director could not be woken[: {reason}]", NULL},
    {PAYLOAD_DISPATCH_STARTED, "{agentId} began", NULL},
    {PAYLOAD_DISPATCH_COMPLETED, "{agentId} is done", NULL},
    {PAYLOAD_DISPATCH_FAILED, "{agentId} failed[: {reason}]", NULL},
    {PAYLOAD_DISPATCH_CANCELLED, "{agentId} was stopped[: {reason}]", NULL},
    {PAYLOAD_DISPATCH_SKIPPED, "[{agentId} had ]no reason to answer[: {reason}]", NULL},
};

/* One entry that is told. */
struct telling {
    const struct narrator *n;
    struct slice author_id;
    struct slice payload;
    struct arena *memory;
};

static const struct sentence *find_sentence(enum payload_type type)
{
    for (size_t i = 0; i < ARRAY_COUNT(sentences); i++) {
        if (sentences[i].type == type) {
            return &sentences[i];
        }
    }
    return NULL;
}

/* Appends a text in short, cut between characters. */
static void append_short(struct buf *out, struct slice text)
{
    size_t len = text.len;

    if (len > NARRATION_SHORT_BYTES) {
        len = utf8_valid_prefix((struct slice){text.ptr, NARRATION_SHORT_BYTES});
    }
    buf_append(out, (struct slice){text.ptr, len});
    if (len < text.len) {
        buf_append(out, SLICE("…"));
    }
}

static void append_name(const struct telling *t, struct slice agent_id, struct buf *out)
{
    if (agent_id.len > 0) {
        buf_append(out, t->n->name_of(t->n->context, agent_id));
    }
}

static void append_names(const struct telling *t, const char *member, struct buf *out)
{
    struct json_walk walk;
    struct slice id;
    size_t count = 0;

    record_walk(&walk, t->payload, member);
    while (count < 10 && json_walk_element(&walk, &id)) {
        struct buf text;

        if (json_kind(id) != JSON_STRING) {
            continue;
        }
        buf_append(out, count++ > 0 ? SLICE(", ") : SLICE(""));
        buf_init(&text, 2 * id.len);
        json_string_decode_lossy(id, &text);
        append_name(t, buf_slice(&text), out);
        buf_finish(&text);
    }
    if (count == 0) {
        buf_append(out, SLICE("nobody"));
    }
}

/* Appends what a "{name}" stands for; false when there is nothing. */
static bool append_member(const struct telling *t, struct slice name, struct buf *out)
{
    char text[32];
    size_t before = out->len;

    (void)snprintf(text, sizeof(text), "%.*s", (int)name.len, name.ptr);
    if (slice_equal(name, SLICE("author"))) {
        if (t->author_id.len == 0) {
            buf_append(out, SLICE("the server"));
        }
        append_name(t, t->author_id, out);
    } else if (slice_equal(name, SLICE("agentId"))) {
        append_name(t, record_text(t->payload, text, t->memory), out);
    } else if (slice_equal(name, SLICE("agentIds"))) {
        append_names(t, text, out);
    } else if (slice_equal(name, SLICE("tokensBefore"))) {
        buf_append_u64(out, record_number(t->payload, text));
    } else {
        append_short(out, record_text(t->payload, text, t->memory));
    }
    return out->len > before;
}

/* Appends a pattern without brackets; false when a member in it is not there. */
static bool append_plain(const struct telling *t, struct slice pattern, struct buf *out)
{
    bool whole = true;

    for (size_t i = 0; i < pattern.len; i++) {
        const char *end = pattern.ptr[i] == '{' ? memchr(pattern.ptr + i, '}', pattern.len - i)
                                                : NULL;

        if (end == NULL) {
            buf_append_char(out, pattern.ptr[i]);
            continue;
        }
        const char *name = pattern.ptr + i + 1;

        whole = append_member(t, (struct slice){name, (size_t)(end - name)}, out) && whole;
        i = (size_t)(end - pattern.ptr);
    }
    return whole;
}

static void tell_sentence(const struct telling *t, const char *pattern)
{
    char memory[NOTE_BYTES_MAX];
    struct slice rest = slice_of(pattern);
    struct slice part;
    struct buf out;

    buf_init_fixed(&out, memory, sizeof(memory));
    while (slice_split(&rest, '[', &part)) {
        (void)append_plain(t, part, &out); /* what is missing is left out */
        if (rest.ptr != NULL && slice_split(&rest, ']', &part)) {
            size_t before = out.len;

            if (!append_plain(t, part, &out)) {
                out.len = before;
            }
            rest.ptr = rest.ptr == NULL ? "" : rest.ptr;
        }
    }
    t->n->tell(t->n->context, NARRATION_NOTE, buf_slice(&out));
}

static void tell_signal(const struct telling *t, const struct sentence *sentence)
{
    struct slice agent_id = record_text(t->payload, "agentId", t->memory);
    bool own = sentence->own != NULL && slice_equal(agent_id, t->author_id);

    tell_sentence(t, own ? sentence->own : sentence->text);
}

static void tell_speech(const struct telling *t, enum payload_type type)
{
    struct buf text;

    buf_init(&text, 2 * t->payload.len + 1);
    payload_text(t->payload, type, &text);
    if (text.len > 0) {
        t->n->tell(t->n->context, NARRATION_SPEECH, buf_slice(&text));
    }
    buf_finish(&text);
}

static struct slice first_line(struct slice text)
{
    struct slice line = {NULL, 0};

    while (line.len == 0 && slice_split(&text, '\n', &line)) {
        line = slice_trim(line);
    }
    return line;
}

/* What a tool is called with: the first of its arguments that is a text, which tells most; else
 * all of them. */
static void append_arguments(struct slice call, struct buf *out)
{
    struct json_walk walk;
    struct slice name;
    struct slice value;

    record_walk(&walk, call, "arguments");
    while (json_walk_member(&walk, &name, &value)) {
        struct buf text;

        if (json_kind(value) != JSON_STRING) {
            continue;
        }
        buf_init(&text, 2 * value.len);
        json_string_decode_lossy(value, &text);
        append_short(out, first_line(buf_slice(&text)));
        buf_finish(&text);
        return;
    }
    append_short(out, first_line(record_value(call, "arguments")));
}

static void tell_tool_calls(const struct telling *t)
{
    struct json_walk walk;
    struct slice block;

    record_walk(&walk, t->payload, "content");
    while (json_walk_element(&walk, &block)) {
        char memory[NOTE_BYTES_MAX];
        struct buf out;

        if (!slice_equal(record_text(block, "type", t->memory), SLICE("toolCall"))) {
            continue;
        }
        buf_init_fixed(&out, memory, sizeof(memory));
        append_short(&out, record_text(block, "name", t->memory));
        buf_append(&out, SLICE(": "));
        append_arguments(block, &out);
        t->n->tell(t->n->context, NARRATION_TOOL, buf_slice(&out));
    }
}

static void tell_assistant(const struct telling *t)
{
    struct slice reason = record_text(t->payload, "stopReason", t->memory);

    tell_speech(t, PAYLOAD_PI_ASSISTANT);
    tell_tool_calls(t);
    if (record_text(t->payload, "errorMessage", t->memory).len > 0 ||
        slice_equal(reason, SLICE("error")) || slice_equal(reason, SLICE("aborted"))) {
        tell_sentence(t, "{author} could not answer[: {errorMessage}]");
    }
}

/* Only what went wrong: the call itself was told. */
static void tell_tool_result(const struct telling *t)
{
    char memory[NOTE_BYTES_MAX];
    struct slice text = SLICE("");
    struct json_walk walk;
    struct slice block;
    struct buf out;

    if (!record_flag(t->payload, "isError")) {
        return;
    }
    record_walk(&walk, t->payload, "content");
    while (text.len == 0 && json_walk_element(&walk, &block)) {
        text = first_line(record_text(block, "text", t->memory));
    }
    buf_init_fixed(&out, memory, sizeof(memory));
    append_short(&out, record_text(t->payload, "toolName", t->memory));
    buf_append(&out, text.len > 0 ? SLICE(" failed: ") : SLICE(" failed"));
    append_short(&out, text);
    t->n->tell(t->n->context, NARRATION_TOOL, buf_slice(&out));
}

static void tell_chat(const struct telling *t)
{
    struct json_walk walk;
    struct slice file;

    tell_speech(t, PAYLOAD_CHAT);
    record_walk(&walk, t->payload, "attachments");
    while (json_walk_element(&walk, &file)) {
        struct telling one = *t;

        one.payload = file;
        tell_sentence(&one, "{author} attached {name}");
    }
}

void narrate(const struct narrator *n, struct slice author_id, struct slice payload,
             struct arena *memory)
{
    const struct telling t = {n, author_id, payload, memory};
    enum payload_type type = PAYLOAD_UNKNOWN;

    if (payload.len == 0 || payload_type_of(payload, &type) != 0) {
        return;
    }
    const struct sentence *sentence = find_sentence(type);

    if (sentence != NULL) {
        tell_signal(&t, sentence);
    } else if (type == PAYLOAD_CHAT) {
        tell_chat(&t);
    } else if (type == PAYLOAD_PI_ASSISTANT) {
        tell_assistant(&t);
    } else if (type == PAYLOAD_PI_TOOL_RESULT) {
        tell_tool_result(&t);
    }
}
