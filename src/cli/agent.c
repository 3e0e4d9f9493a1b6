/* arbe agent: people and bots, and their API keys. */
#include "base/limits.h"
#include "base/utf8.h"
#include "cli/app_flags.h"
#include "cli/command.h"
#include "cli/config_file.h"
#include "cli/listing.h"
#include "cli/lookup.h"
#include "cli/record.h"

#include <stdio.h>
#include <stdlib.h>

#define PATH_BYTES 200u
#define KEYS_PATH  "/api/agents/keys"

/* Opens, and finds the agent that the first operand means, or the caller. */
static int open_agent(struct app_call *call, struct lookup *ret_agent)
{
    const char *ref = call->operand_count > 0 ? call->operands[0] : "me";
    int code = app_call_open(call);

    return code == 0 ? lookup_ref(call, ref, LOOKUP_AGENT, ret_agent) : code;
}

static void write_agent(struct app_call *call, struct slice agent)
{
    listing_cell(call, agent, "id", 36);
    listing_cell(call, agent, "kind", 5);
    listing_who(call, agent);
    if (record_number(agent, "deletedAt") > 0) {
        out_add(&call->out, SLICE(" (deleted)"));
    }
}

static int list(struct app_call *call)
{
    char house[LOOKUP_ID_BYTES];
    const char *const query[] = {"house_id", call->set.house == NULL ? NULL : house, NULL};
    int code = app_call_open(call);

    if (code == 0 && call->set.house != NULL) {
        code = lookup_house(call, house);
    }
    return code == 0 ? listing_print(call, "/api/agents", query, "agents", write_agent) : code;
}

static void print_agent(struct app_call *call, struct slice agent)
{
    char time[RECORD_TIME_BYTES];
    static const char *const fields[] = {"kind", "description",  "model",
                                         "id",   "systemPrompt", "createdBy"};

    if (call->set.json) {
        app_call_print_json(call, agent);
        return;
    }
    app_call_print_field(call, "agent", record_text(agent, "name", &call->memory));
    app_call_print_field(call, "handle", record_text(agent, "handle", &call->memory));
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++) {
        app_call_print_field(call, fields[i], record_text(agent, fields[i], &call->memory));
    }
    record_format_time(time, record_number(agent, "createdAt"));
    app_call_print_field(call, "created", slice_of(time));
    if (record_number(agent, "deletedAt") > 0) {
        record_format_time(time, record_number(agent, "deletedAt"));
        app_call_print_field(call, "deleted", slice_of(time));
    }
}

static int view(struct app_call *call)
{
    char path[PATH_BYTES];
    struct lookup agent;
    struct slice record;
    int code = open_agent(call, &agent);

    (void)snprintf(path, sizeof(path), "/api/agents/%s", agent.id);
    code = code == 0 ? app_call_send(call, "GET", path, NULL, NULL, &record) : code;
    if (code == 0) {
        print_agent(call, record);
    }
    return code;
}

/* Adds what the flags say of an agent to a body. */
static int add_settings(struct app_call *call, struct buf *body)
{
    const struct app_settings *set = &call->set;
    struct errmsg msg = {{0}};
    char *prompt = NULL;

    app_body_text(body, "description", set->description);
    app_body_text(body, "model", set->model);
    if (set->system_prompt_file != NULL) {
        if (config_file_read(set->system_prompt_file, "system prompt", &prompt, &msg) != 0) {
            return app_call_cannot(call, &msg);
        }
        if (!utf8_valid(slice_of(prompt))) {
            free(prompt);
            return app_call_refuse(call, COMMAND_USAGE, "client.usage", NULL,
                                   "%.200s is not UTF-8, which a text must be",
                                   set->system_prompt_file);
        }
        app_body_text(body, "systemPrompt", prompt);
        free(prompt);
    }
    return 0;
}

/* Prints a key that is not shown again. */
static void print_key(struct app_call *call, struct slice key)
{
    app_call_print_field(call, "key", key);
    app_call_tell(call, "the key is not shown again");
}

static int create(struct app_call *call)
{
    struct buf body;
    struct slice answer;
    int code = app_call_open(call);

    if (code != 0) {
        return code;
    }
    app_body_begin(&body);
    app_body_text(&body, "name", call->operands[0]);
    app_body_text(&body, "kind", call->set.kind);
    code = add_settings(call, &body);
    app_body_end(&body);
    code = code == 0 ? app_call_send(call, "POST", "/api/agents", NULL, &body, &answer) : code;
    buf_finish(&body);
    if (code == 0 && call->set.json) {
        app_call_print_json(call, answer);
    } else if (code == 0) {
        print_agent(call, record_value(answer, "agent"));
        print_key(call, record_text(answer, "apiKey", &call->memory));
    }
    return code;
}

static int edit(struct app_call *call)
{
    const struct app_settings *set = &call->set;
    char path[PATH_BYTES];
    struct lookup agent;
    struct slice record;
    struct buf body;

    if (set->name == NULL && set->description == NULL && set->model == NULL &&
        set->system_prompt_file == NULL) {
        return app_call_refuse(call, COMMAND_USAGE, "client.usage", NULL,
                               "what is to change? --name, --description, --model or "
                               "--system-prompt-file");
    }
    int code = open_agent(call, &agent);

    if (code != 0) {
        return code;
    }
    (void)snprintf(path, sizeof(path), "/api/agents/%s", agent.id);
    app_body_begin(&body);
    app_body_text(&body, "name", set->name);
    code = add_settings(call, &body);
    app_body_end(&body);
    code = code == 0 ? app_call_send(call, "PATCH", path, NULL, &body, &record) : code;
    buf_finish(&body);
    if (code == 0) {
        print_agent(call, record);
    }
    return code;
}

static int delete_agent(struct app_call *call)
{
    char path[PATH_BYTES];
    struct lookup agent;
    int code = open_agent(call, &agent);

    (void)snprintf(path, sizeof(path), "/api/agents/%s", agent.id);
    return code == 0 ? app_call_send(call, "DELETE", path, NULL, NULL, NULL) : code;
}

static int key_create(struct app_call *call)
{
    struct lookup agent;
    struct buf body;
    struct slice record;
    int code = open_agent(call, &agent);

    if (code != 0) {
        return code;
    }
    app_body_begin(&body);
    app_body_text(&body, "agentId", agent.id);
    app_body_text(&body, "name", call->set.name);
    app_body_end(&body);
    code = app_call_send(call, "POST", KEYS_PATH, NULL, &body, &record);
    buf_finish(&body);
    if (code == 0 && call->set.json) {
        app_call_print_json(call, record);
    } else if (code == 0) {
        app_call_print_field(call, "id", record_text(record, "id", &call->memory));
        print_key(call, record_text(record, "key", &call->memory));
    }
    return code;
}

static void write_key(struct app_call *call, struct slice key)
{
    char created[RECORD_TIME_BYTES];
    char used[RECORD_TIME_BYTES];

    record_format_time(created, record_number(key, "createdAt"));
    record_format_time(used, record_number(key, "lastUsedAt"));
    listing_cell(call, key, "id", 36);
    out_format(&call->out, "made %s used %-16s %s ", created, used,
               record_number(key, "revokedAt") > 0 ? "revoked" : "good   ");
    out_add_shown(&call->out, record_text(key, "name", &call->memory));
}

static int key_list(struct app_call *call)
{
    struct lookup agent;
    const char *const query[] = {"agent_id", agent.id, NULL};
    int code = open_agent(call, &agent);

    return code == 0 ? listing_print(call, KEYS_PATH, query, "keys", write_key) : code;
}

/* Keys that are looked through for the one that is meant. */
struct key_search {
    struct app_call *call;
    struct ref_search search;
};

static int offer_key(void *context, struct slice key)
{
    struct key_search *s = context;

    if (record_number(key, "revokedAt") > 0) {
        return 0; /* its name may be that of one in use */
    }
    ref_offer(&s->search,
              &(struct ref_candidate){.kind = "key",
                                      .id = record_text(key, "id", &s->call->memory),
                                      .name = record_text(key, "name", &s->call->memory)});
    return 0;
}

static int key_revoke(struct app_call *call)
{
    const char *ref = call->operands[0];
    struct key_search s = {.call = call};
    char path[PATH_BYTES];
    struct lookup agent;
    const char *const query[] = {"agent_id", agent.id, NULL};
    int code = app_call_open(call);

    if (code != 0) {
        return code;
    }
    if (!ref_is_id(slice_of(ref))) {
        ref_begin(&s.search, slice_of(ref), &call->memory);
        code = lookup_ref(call, call->set.agent == NULL ? "me" : call->set.agent, LOOKUP_AGENT,
                          &agent);
        code = code == 0 ? app_call_each(call, KEYS_PATH, query, "keys", offer_key, &s) : code;
        if (code == 0 && s.search.count == 0) {
            return app_call_refuse(call, COMMAND_NOT_FOUND, "client.ref_unknown",
                                   "arbe agent key list tells them", "there is no key \"%.80s\"",
                                   ref);
        }
        if (code == 0 && s.search.count > 1) {
            return app_call_ambiguous(call, &s.search);
        }
        ref = code == 0 ? s.search.found[0].id.ptr : ref;
    }
    (void)snprintf(path, sizeof(path), KEYS_PATH "/%.40s", ref);
    return code == 0 ? app_call_send(call, "DELETE", path, NULL, NULL, NULL) : code;
}

#define ABOUT_FLAGS                                                                 \
    TEXT_FLAG("description", "TEXT", "what it is there for", description),          \
        TEXT_FLAG("model", "MODEL", "which one it uses, as provider/model", model), \
        TEXT_FLAG("system-prompt-file", "FILE", "what it is told before all else",  \
                  system_prompt_file)

static const struct flag list_flags[] = {
    TEXT_FLAG("house", "HOUSE", "only those who are in that house", house),
    LIMIT_FLAG,
};
static const struct flag create_flags[] = {
    TEXT_FLAG("kind", "bot|human", "what it is (default: bot)", kind),
    ABOUT_FLAGS,
};
static const struct flag edit_flags[] = {
    TEXT_FLAG("name", "NAME", "what it is called", name),
    ABOUT_FLAGS,
};
static const struct flag key_create_flags[] = {
    TEXT_FLAG("name", "NAME", "what the key is for", name),
};
static const struct flag key_list_flags[] = {LIMIT_FLAG};
static const struct flag key_revoke_flags[] = {
    TEXT_FLAG("agent", "AGENT", "whose key it is (default: me)", agent),
};

static const struct group_row rows[] = {
    {"list", "", 0, 0, NULL, RUN(list), FLAGS(list_flags), "list people and bots",
     "Lists who shares a house with the caller, the caller, and who was made by the caller: id,\n"
     "kind, name and handle.\n"},
    {"view", "[AGENT]", 0, 1, NULL, RUN(view), NO_FLAGS, "show an agent",
     "Shows an agent, or the caller.\n"},
    {"create", "NAME", 1, 1, "which name?", RUN(create), FLAGS(create_flags),
     "make a bot and its first key",
     "Makes an agent, and prints its key, once. It may do nothing until it is added to a house:\n"
     "arbe house add.\n"},
    {"edit", "[AGENT]", 0, 1, NULL, RUN(edit), FLAGS(edit_flags), "change an agent",
     "Changes the caller, or an agent that the caller made.\n"},
    {"delete", "AGENT", 1, 1, "which agent?", RUN(delete_agent), NO_FLAGS, "delete an agent",
     "Deletes the caller, or an agent that the caller made, with its keys. What it wrote stays.\n"},
    {"key create", "[AGENT]", 0, 1, NULL, RUN(key_create), FLAGS(key_create_flags),
     "make another key", "Makes another key for an agent, or the caller, and prints it, once.\n"},
    {"key list", "[AGENT]", 0, 1, NULL, RUN(key_list), FLAGS(key_list_flags), "list keys",
     "Lists the keys of an agent, or the caller, without what is secret of them.\n"},
    {"key revoke", "KEY", 1, 1, "which key?", RUN(key_revoke), FLAGS(key_revoke_flags), "end a key",
     "Ends a key, given by its id, 8 or more characters of that, or its name.\n"},
};

int command_agent(int argc, char **argv)
{
    const struct group group = {
        .name = "agent",
        .operands = "",
        .about = "Works with agents: people and bots, and their keys.\n",
        .end = app_group_end,
        .shared = app_shared_flags,
        .shared_count = app_shared_flag_count,
        .rows = rows,
        .row_count = ARRAY_COUNT(rows),
    };

    return app_call_run(&group, argc, argv);
}
