/* arbe thread result and diagnose: what a thread's entries tell, read once from the beginning. */
#include "base/json.h"
#include "base/limits.h"
#include "cli/command.h"
#include "cli/diagnosis.h"
#include "cli/interrupt.h"
#include "cli/record.h"
#include "cli/roster.h"
#include "cli/thread.h"
#include "thread/payload.h"

#include <stdio.h>
#include <time.h>

#define PATH_BYTES 120u
#define PAGE_LIMIT 1000

typedef void (*history_fn)(void *context, const struct scoped_entry *entry);

/* Walks over all entries of a thread. 0, or an exit code after having said why. */
static int each_entry(struct app_call *call, const char *thread_id, history_fn each, void *context)
{
    char after[SCOPED_AFTER_BYTES] = "";
    bool more = true;

    while (more) {
        struct scoped_page page = {.count = 0};
        struct scoped_error error = {.code = ""};

        if (scoped_client_page(call->client, thread_id, after[0] == '\0' ? NULL : after, PAGE_LIMIT,
                               &page, &error) != STREAM_OK) {
            return app_call_fail(call, &error);
        }
        for (size_t i = 0; i < page.count; i++) {
            each(context, &page.entries[i]);
        }
        more = !page.up_to_date && page.next_after[0] != '\0' && interrupt_signal() == 0;
        memcpy(after, page.next_after, sizeof(after));
        scoped_page_finish(&page);
    }
    return interrupt_signal() == 0 ? 0 : COMMAND_INTERRUPTED + interrupt_signal();
}

/* --------------------------------------------------------------------------------------- result */

/* The last words so far. */
struct words {
    struct buf text;
    struct buf json; /* of the whole entry */
};

static void take_words(void *context, const struct scoped_entry *entry)
{
    const struct slice payload = {entry->payload, entry->payload_len};
    struct words *words = context;
    enum payload_type type = PAYLOAD_UNKNOWN;
    struct buf text;

    if (payload.len == 0 || payload_type_of(payload, &type) != 0 || type != PAYLOAD_PI_ASSISTANT) {
        return;
    }
    buf_init(&text, 2 * payload.len + 1);
    payload_text(payload, type, &text);
    if (text.len == 0) {
        buf_finish(&text); /* only calls of tools */
        return;
    }
    buf_finish(&words->text);
    words->text = text;
    buf_clear(&words->json);
    buf_append(&words->json, (struct slice){entry->json, entry->json_len});
}

/* Adds a text with its lines, and no other control character. */
static void add_lines(struct out *o, struct slice text)
{
    struct slice line;

    while (slice_split(&text, '\n', &line)) {
        if (o->terminal) {
            out_add_shown(o, line);
        } else {
            out_add(o, line);
        }
        out_add(o, SLICE("\n"));
    }
    out_end_message(o);
}

int thread_result(struct app_call *call)
{
    struct words words = {.text = {.ptr = NULL}};
    struct lookup thread;
    int code = thread_open(call, &thread);

    buf_init(&words.json, SIZE_MAX / 4);
    code = code == 0 ? each_entry(call, thread.id, take_words, &words) : code;
    if (code == 0 && words.json.failed) {
        code = app_call_refuse(call, COMMAND_FAILED, "client.memory", NULL, "%s",
                               err_text(ERR_NOMEM));
    } else if (code == 0 && words.text.len == 0) {
        code = app_call_refuse(call, COMMAND_NOT_FOUND, "client.no_result",
                               "arbe thread diagnose tells how far it got",
                               "no assistant has said anything in this thread");
    } else if (code == 0 && call->set.json) {
        app_call_print_json(call, buf_slice(&words.json));
    } else if (code == 0) {
        add_lines(&call->out, buf_slice(&words.text));
    }
    buf_finish(&words.text);
    buf_finish(&words.json);
    return code;
}

/* ------------------------------------------------------------------------------------- diagnose */

static void take_diagnosis(void *context, const struct scoped_entry *entry)
{
    diagnosis_take(context, entry);
}

static void add_member(struct out *o, const char *name, const char *text)
{
    out_format(o, ",\"%s\":", name);
    if (text[0] == '\0') {
        out_add(o, SLICE("null"));
    } else {
        out_add_string(o, slice_of(text));
    }
}

static void print_object(struct app_call *call, const struct diagnosis *d, struct slice thread)
{
    struct out *o = &call->out;

    out_format(o, "{\"stage\":\"%s\"", diagnosis_word(d->stage));
    add_member(o, "threadId", record_text(thread, "id", &call->memory).ptr);
    add_member(o, "status", record_text(thread, "status", &call->memory).ptr);
    add_member(o, "triggerEntryId", d->trigger_id);
    add_member(o, "authorId", d->author_id);
    add_member(o, "dispatchId", d->dispatch_id);
    add_member(o, "agentId", d->agent_id);
    add_member(o, "reason", d->reason);
    out_format(o, ",\"answers\":%zu,\"postedTs\":%lld,\"lastTs\":%lld}\n", d->answers, d->posted_ts,
               d->last_ts);
    out_end_message(o);
}

static void print_who(struct app_call *call, struct roster *roster, const char *what,
                      const char *agent_id, long long ts)
{
    char time[RECORD_TIME_BYTES];
    struct out *o = &call->out;

    if (agent_id[0] == '\0') {
        return;
    }
    record_format_time(time, ts < 0 ? 0 : (uint64_t)ts);
    out_format(o, "%s%s:%s ", out_dim(o), what, out_plain(o));
    out_add_shown(o, roster_name(roster, slice_of(agent_id)));
    out_format(o, ", %s\n", time);
}

static int print_lines(struct app_call *call, const struct diagnosis *d, struct slice thread)
{
    struct roster roster;
    struct out *o = &call->out;
    int code = roster_load(&roster, call, record_text(thread, "id", &call->memory).ptr);

    if (code == 0) {
        app_call_print_field(call, "status", record_text(thread, "status", &call->memory));
        print_who(call, &roster, "message", d->author_id, d->posted_ts);
        print_who(call, &roster, "agent", d->agent_id, d->last_ts);
        if (d->answers > 0) {
            out_format(o, "%sanswers:%s %zu\n", out_dim(o), out_plain(o), d->answers);
        }
        app_call_print_field(call, "reason", slice_of(d->reason));
        out_format(o, "%s%s:%s %s\n", out_bold(o), diagnosis_word(d->stage), out_plain(o),
                   diagnosis_text(d->stage));
        out_end_message(o);
    }
    roster_finish(&roster);
    return code;
}

int thread_diagnose(struct app_call *call)
{
    struct diagnosis d = {.stage = DIAGNOSIS_EMPTY};
    char path[PATH_BYTES];
    struct lookup thread;
    struct slice record;
    int code = thread_open(call, &thread);

    (void)snprintf(path, sizeof(path), "/api/threads/%s", thread.id);
    code = code == 0 ? app_call_send(call, "GET", path, NULL, NULL, &record) : code;
    code = code == 0 ? each_entry(call, thread.id, take_diagnosis, &d) : code;
    if (code != 0) {
        return code;
    }
    if (call->set.json) {
        print_object(call, &d, record);
        return 0;
    }
    return print_lines(call, &d, record);
}
