/* arbe thread: threads as records. What is in them is read and written in thread_entries.c and
 * thread_history.c. */
#include "cli/thread.h"

#include "base/json.h"
#include "base/limits.h"
#include "cli/app_flags.h"
#include "cli/command.h"
#include "cli/listing.h"
#include "cli/record.h"

#include <stdio.h>
#include <stdlib.h>

#define PATH_BYTES 200u
#define TAGS_MAX   64u

int thread_open(struct app_call *call, struct lookup *ret_thread)
{
    int code = app_call_open(call);

    return code == 0 ? lookup_ref(call, call->operands[0], LOOKUP_THREAD, ret_thread) : code;
}

static void add_tags(struct app_call *call, struct slice thread)
{
    struct json_walk walk;
    struct slice tag;

    record_walk(&walk, thread, "tags");
    while (json_walk_element(&walk, &tag)) {
        struct buf text;

        buf_init(&text, 2 * tag.len + 1);
        json_string_decode_lossy(tag, &text);
        out_add(&call->out, SLICE(" #"));
        out_add_shown(&call->out, buf_slice(&text));
        buf_finish(&text);
    }
}

static void write_thread(struct app_call *call, struct slice thread)
{
    struct out *o = &call->out;
    struct slice name = record_text(thread, "name", &call->memory);
    char last[RECORD_TIME_BYTES];

    record_format_time(last, record_number(thread, "lastEntryTs"));
    listing_cell(call, thread, "id", 36);
    listing_cell(call, thread, "status", 9);
    app_call_print_cell(call, slice_of(last), 16);
    out_add(o, record_number(thread, "pinnedAt") > 0 ? SLICE("! ") : SLICE(""));
    out_add_shown(o, name.len == 0 ? SLICE("(no name)") : name);
    add_tags(call, thread);
}

static int list(struct app_call *call)
{
    const struct app_settings *set = &call->set;
    char house[LOOKUP_ID_BYTES];
    struct lookup parent = {.id = ""};
    int code = app_call_open(call);

    code = code == 0 ? lookup_house(call, house) : code;
    if (code == 0 && set->parent != NULL) {
        code = lookup_ref(call, set->parent, LOOKUP_HOUSE | LOOKUP_AGENT | LOOKUP_THREAD, &parent);
    }
    const char *const query[] = {"house_id",  house,
                                 "parent_id", set->parent == NULL ? NULL : parent.id,
                                 "tag",       set->tag,
                                 "status",    set->status,
                                 "pinned",    set->pinned ? "1" : NULL,
                                 NULL};

    return code == 0 ? listing_print(call, "/api/threads", query, "threads", write_thread) : code;
}

static void print_time(struct app_call *call, struct slice thread, const char *member,
                       const char *name)
{
    char time[RECORD_TIME_BYTES];
    uint64_t ms = record_number(thread, member);

    if (ms > 0) {
        record_format_time(time, ms);
        app_call_print_field(call, name, slice_of(time));
    }
}

static void print_thread(struct app_call *call, struct slice thread)
{
    struct slice parent = record_value(thread, "parent");
    struct out *o = &call->out;

    if (call->set.json) {
        app_call_print_json(call, thread);
        return;
    }
    app_call_print_field(call, "thread", record_text(thread, "name", &call->memory));
    app_call_print_field(call, "id", record_text(thread, "id", &call->memory));
    app_call_print_field(call, "status", record_text(thread, "status", &call->memory));
    app_call_print_field(call, "house", record_text(thread, "houseId", &call->memory));
    out_format(o, "%sparent:%s ", out_dim(o), out_plain(o));
    out_add_shown(o, record_text(parent, "kind", &call->memory));
    out_add(o, SLICE(" "));
    out_add_shown(o, record_text(parent, "id", &call->memory));
    out_add(o, SLICE("\n"));
    if (record_value(thread, "tags").len > 2) {
        out_format(o, "%stags:%s", out_dim(o), out_plain(o));
        add_tags(call, thread);
        out_add(o, SLICE("\n"));
    }
    app_call_print_field(call, "environment", record_text(thread, "environmentId", &call->memory));
    print_time(call, thread, "pinnedAt", "pinned");
    print_time(call, thread, "lastEntryTs", "last entry");
    print_time(call, thread, "createdAt", "created");
    out_end_message(o);
}

static int view(struct app_call *call)
{
    char path[PATH_BYTES];
    struct lookup thread;
    struct slice record;
    int code = thread_open(call, &thread);

    (void)snprintf(path, sizeof(path), "/api/threads/%s", thread.id);
    code = code == 0 ? app_call_send(call, "GET", path, NULL, NULL, &record) : code;
    if (code == 0) {
        print_thread(call, record);
    }
    return code;
}

/* Adds the tags of a list that commas separate. */
static void add_tag_list(struct buf *body, const char *list)
{
    struct slice rest = slice_of(list);
    struct slice tag;
    bool first = true;

    app_body_json(body, "tags", SLICE("["));
    while (slice_split(&rest, ',', &tag)) {
        buf_append(body, first ? SLICE("") : SLICE(","));
        json_append_string(body, slice_trim(tag));
        first = false;
    }
    buf_append_char(body, ']');
}

static int create(struct app_call *call)
{
    const struct app_settings *set = &call->set;
    char house[LOOKUP_ID_BYTES];
    struct lookup parent;
    struct slice answer;
    struct buf body;
    struct slice config = {"", 0};
    struct errmsg msg = {{0}};

    if (set->patch != NULL && json_text_read(slice_of(set->patch), &config, &msg) != 0) {
        return app_call_refuse(call, COMMAND_USAGE, "client.usage", NULL, "--patch: %s", msg.text);
    }
    int code = app_call_open(call);

    if (code == 0) {
        code = lookup_ref(call, call->operands[0], LOOKUP_HOUSE | LOOKUP_AGENT | LOOKUP_THREAD,
                          &parent);
    }
    if (code == 0 && set->house != NULL) {
        code = lookup_house(call, house);
    }
    if (code != 0) {
        return code;
    }
    app_body_begin(&body);
    app_body_text(&body, "parentId", parent.id);
    app_body_text(&body, "houseId", set->house == NULL ? NULL : house);
    app_body_text(&body, "name", set->name);
    app_body_text(&body, "environmentId", set->environment);
    app_body_text(&body, "status", set->status);
    if (set->tags != NULL) {
        add_tag_list(&body, set->tags);
    }
    if (set->patch != NULL) {
        app_body_json(&body, "config", config);
    }
    app_body_end(&body);
    code = app_call_send(call, "POST", "/api/threads", NULL, &body, &answer);
    buf_finish(&body);
    if (code == 0 && call->set.json) {
        app_call_print_json(call, answer);
    } else if (code == 0) {
        out_add_shown(&call->out, record_text(answer, "threadId", &call->memory));
        out_add(&call->out, SLICE("\n"));
        out_end_message(&call->out);
    }
    return code;
}

/* Sends a change of a thread and prints what it is then. */
static int send_change(struct app_call *call, const struct lookup *thread, const struct buf *body)
{
    char path[PATH_BYTES];
    struct slice record;

    (void)snprintf(path, sizeof(path), "/api/threads/%s", thread->id);
    int code = app_call_send(call, "PATCH", path, NULL, body, &record);

    if (code == 0) {
        print_thread(call, record);
    }
    return code;
}

static int update(struct app_call *call)
{
    const struct app_settings *set = &call->set;
    struct lookup thread;
    struct buf body;

    if (set->pin && set->unpin) {
        return app_call_refuse(call, COMMAND_USAGE, "client.usage", NULL,
                               "--pin and --unpin exclude each other");
    }
    app_body_begin(&body);
    app_body_text(&body, "name", set->name);
    app_body_text(&body, "environmentId", set->environment);
    app_body_text(&body, "status", set->status);
    if (set->pin || set->unpin) {
        app_body_json(&body, "pinned", set->pin ? SLICE("true") : SLICE("false"));
    }
    bool empty = body.len == 1;

    app_body_end(&body);
    int code = empty ? app_call_refuse(call, COMMAND_USAGE, "client.usage", NULL,
                                       "what is to change? --name, --status, --env, --pin or "
                                       "--unpin")
                     : thread_open(call, &thread);

    code = code == 0 ? send_change(call, &thread, &body) : code;
    buf_finish(&body);
    return code;
}

/* Whether one of the operands behind the first is that tag. */
static bool is_named(const struct app_call *call, struct slice tag)
{
    for (int i = 1; i < call->operand_count; i++) {
        if (slice_equal(slice_of(call->operands[i]), tag)) {
            return true;
        }
    }
    return false;
}

/* Adds the tags that a thread is to have: those it has but for the ones that are named, which come
 * behind them unless they are to go. */
static void compose_tags(const struct app_call *call, struct slice thread, struct buf *body)
{
    struct json_walk walk;
    struct slice value;
    const char *comma = "";

    app_body_json(body, "tags", SLICE("["));
    record_walk(&walk, thread, "tags");
    while (json_walk_element(&walk, &value)) {
        struct buf tag;

        buf_init(&tag, 2 * value.len + 1);
        json_string_decode_lossy(value, &tag);
        if (!is_named(call, buf_slice(&tag))) {
            buf_append(body, slice_of(comma));
            buf_append(body, value);
            comma = ",";
        }
        buf_finish(&tag);
    }
    for (int i = 1; i < call->operand_count && !call->set.remove; i++) {
        buf_append(body, slice_of(comma));
        json_append_string(body, slice_of(call->operands[i]));
        comma = ",";
    }
    buf_append_char(body, ']');
}

static int label(struct app_call *call)
{
    char path[PATH_BYTES];
    struct lookup thread;
    struct slice record;
    struct buf body;
    int code = thread_open(call, &thread);

    (void)snprintf(path, sizeof(path), "/api/threads/%s", thread.id);
    code = code == 0 ? app_call_send(call, "GET", path, NULL, NULL, &record) : code;
    if (code != 0) {
        return code;
    }
    app_body_begin(&body);
    compose_tags(call, record, &body);
    app_body_end(&body);
    code = send_change(call, &thread, &body);
    buf_finish(&body);
    return code;
}

static int delete_thread(struct app_call *call)
{
    char path[PATH_BYTES];
    struct lookup thread;
    int code = thread_open(call, &thread);

    (void)snprintf(path, sizeof(path), "/api/threads/%s", thread.id);
    return code == 0 ? app_call_send(call, "DELETE", path, NULL, NULL, NULL) : code;
}

#define STATUSES "open|idle|running|completed|failed|cancelled"

static const struct flag list_flags[] = {
    HOUSE_FLAG,
    TEXT_FLAG("parent", "REF", "only those below a house, an agent or a thread", parent),
    TEXT_FLAG("tag", "TAG", "only those with the tag", tag),
    TEXT_FLAG("status", STATUSES, "only those of the status", status),
    SWITCH_FLAG("pinned", "only those that are pinned", pinned),
    LIMIT_FLAG,
};
static const struct flag ref_flags[] = {HOUSE_FLAG};
static const struct flag create_flags[] = {
    TEXT_FLAG("name", "NAME", "what it is called", name),
    TEXT_FLAG("tags", "TAG,...", "its tags", tags),
    TEXT_FLAG("env", "ENV", "the environment that it is about", environment),
    TEXT_FLAG("status", "open|idle", "open for a talk, idle for a run to come (default: open)",
              status),
    TEXT_FLAG("patch", "JSON", "its config", patch),
    TEXT_FLAG("house", "HOUSE", "where, if the agent is in several houses with the caller", house),
};
static const struct flag update_flags[] = {
    TEXT_FLAG("name", "NAME", "what it is called", name),
    TEXT_FLAG("status", STATUSES, "where it stands", status),
    TEXT_FLAG("env", "ENV", "the environment that it is about", environment),
    SWITCH_FLAG("pin", "give it a place at the top", pin),
    SWITCH_FLAG("unpin", "take that away", unpin),
    HOUSE_FLAG,
};
static const struct flag label_flags[] = {
    SWITCH_FLAG("remove", "take the tags away", remove),
    HOUSE_FLAG,
};
static const struct flag entries_create_flags[] = {
    TEXT_FLAG("id", "ID", "id of the entry: one that is there already is not posted again", id),
    TEXT_FLAG("reply-to", "ENTRY", "the entry that it answers", reply_to),
    HOUSE_FLAG,
};
static const struct flag entries_read_flags[] = {
    TEXT_FLAG("from", "OFFSET", "where to begin: an offset, -1 or now (default: -1)", from),
    SWITCH_FLAG("once", "end with what is there", once),
    SWITCH_FLAG("follow", "go on when a dispatch or the run has ended", follow),
    SWITCH_FLAG("offsets", "with JSON lines also offsets to go on from", offsets),
    HOUSE_FLAG,
};

static const struct group_row rows[] = {
    {"list", "", 0, 0, NULL, RUN(list), FLAGS(list_flags), "list the threads of a house",
     "Lists the threads of the house, those with the newest entries first: id, status, time of\n"
     "the last entry, name and tags; ! stands before what is pinned.\n"},
    {"view", "THREAD", 1, 1, "which thread?", RUN(view), FLAGS(ref_flags), "show a thread",
     "Shows a thread's record.\n"},
    {"result", "THREAD", 1, 1, "which thread?", RUN(thread_result), FLAGS(ref_flags),
     "print an assistant's last words", "Prints the last message of an assistant.\n"},
    {"diagnose", "THREAD", 1, 1, "which thread?", RUN(thread_diagnose), FLAGS(ref_flags),
     "tell how far the last dispatch got",
     "Tells what came of the last message: whether the director woke, who began, and how it "
     "ended.\n"},
    {"create", "PARENT", 1, 1, "below which house, agent or thread?", RUN(create),
     FLAGS(create_flags), "make a thread",
     "Makes a thread below a house, a thread or an agent, with whom it is then a direct talk, and\n"
     "prints its id. Nobody is woken.\n"},
    {"update", "THREAD", 1, 1, "which thread?", RUN(update), FLAGS(update_flags), "change a thread",
     "Changes a thread's record.\n"},
    {"label", "THREAD TAG...", 2, TAGS_MAX, "which thread, and which tags?", RUN(label),
     FLAGS(label_flags), "add tags to a thread, or take some away",
     "Adds tags to a thread, or takes some away.\n"},
    {"delete", "THREAD", 1, 1, "which thread?", RUN(delete_thread), FLAGS(ref_flags),
     "delete a thread", "Deletes a thread with all that is in it. Owners may.\n"},
    {"entries create", "THREAD|AGENT [TEXT]", 1, 2, "to which thread or agent?",
     RUN(thread_entries_create), FLAGS(entries_create_flags), "post a message",
     "Posts TEXT, or stdin, to a thread, or to an agent's direct talk with the caller, which is\n"
     "made where there is none. Prints the ids of thread and entry.\n"},
    {"entries read", "THREAD", 1, 1, "which thread?", RUN(thread_entries_read),
     FLAGS(entries_read_flags), "print what is in a thread, and what comes",
     "Prints what is in a thread and then what comes, through all breaks of the connection, until\n"
     "a dispatch ends or the thread's status becomes completed, failed or cancelled, at once if\n"
     "that has happened: with exit code 1 if it failed. --follow never ends by itself. On a\n"
     "terminal in readable lines, else as JSON, an entry a line.\n"},
};

int command_thread(int argc, char **argv)
{
    const struct group group = {
        .name = "thread",
        .operands = "",
        .about = "Works with threads, and with the entries in them.\n",
        .end = app_group_end,
        .shared = app_shared_flags,
        .shared_count = app_shared_flag_count,
        .rows = rows,
        .row_count = ARRAY_COUNT(rows),
    };

    return app_call_run(&group, argc, argv);
}
