/* arbe config: what houses and threads set. */
#include "base/limits.h"
#include "cli/app_flags.h"
#include "cli/command.h"
#include "cli/lookup.h"
#include "cli/record.h"

#include <stdio.h>

#define PATH_BYTES 200u

/* Opens, and writes the path of the config that the operands mean: house or thread, and which. */
static int open_config(struct app_call *call, char path[static PATH_BYTES])
{
    const char *kind = call->operands[0];
    bool of_house = strcmp(kind, "house") == 0;
    struct lookup found;

    if (!of_house && strcmp(kind, "thread") != 0) {
        return app_call_refuse(call, COMMAND_USAGE, "client.usage", NULL,
                               "\"%.40s\" is not good: a config is that of a house or thread",
                               kind);
    }
    if (!of_house && call->operand_count < 2) {
        return app_call_refuse(call, COMMAND_USAGE, "client.usage", NULL, "which thread?");
    }
    int code = app_call_open(call);

    if (code == 0) {
        code = lookup_ref(call, call->operand_count < 2 ? "house" : call->operands[1],
                          of_house ? LOOKUP_HOUSE : LOOKUP_THREAD, &found);
    }
    if (code == 0) {
        (void)snprintf(path, PATH_BYTES, "/api/%ss/%s/config", kind, found.id);
    }
    return code;
}

/* For people: what is in force, and what each place sets of it. */
static void print_resolved(struct app_call *call, struct slice answer)
{
    struct json_walk walk;
    struct slice link;

    record_walk(&walk, answer, "chain");
    while (json_walk_element(&walk, &link)) {
        struct slice scope = record_text(link, "scope", &call->memory);

        app_call_print_field(call, scope.ptr, record_value(link, "patch"));
    }
    app_call_print_field(call, "resolved", record_value(answer, "resolved"));
}

static int get(struct app_call *call)
{
    char path[PATH_BYTES];
    struct lookup agent = {.id = ""};
    struct slice answer;
    int code = open_config(call, path);

    if (code == 0 && call->set.agent != NULL) {
        code = lookup_ref(call, call->set.agent, LOOKUP_AGENT, &agent);
    }
    const char *const query[] = {"raw", call->set.raw ? "1" : NULL, "agent_id",
                                 agent.id[0] == '\0' ? NULL : agent.id, NULL};

    code = code == 0 ? app_call_send(call, "GET", path, query, NULL, &answer) : code;
    if (code != 0) {
        return code;
    }
    if (call->set.json) {
        app_call_print_json(call, answer);
    } else if (call->set.raw) {
        app_call_print_json(call, record_value(answer, "patch"));
    } else {
        print_resolved(call, answer);
    }
    return 0;
}

static int set(struct app_call *call)
{
    char path[PATH_BYTES];
    struct slice text = {"", 0};
    struct slice answer;
    struct buf body;
    int code = open_config(call, path);

    if (code == 0 && call->set.patch != NULL) {
        text = slice_of(call->set.patch);
    } else if (code == 0) {
        code = app_call_read_stdin(call, &text);
    }
    if (code != 0) {
        return code;
    }
    buf_init(&body, text.len + 1);
    buf_append(&body, text);
    code = app_call_send(call, "PATCH", path, NULL, &body, &answer);
    buf_finish(&body);
    if (code == 0) {
        app_call_print_json(call, call->set.json ? answer : record_value(answer, "patch"));
    }
    return code;
}

static int delete_config(struct app_call *call)
{
    char path[PATH_BYTES];
    int code = open_config(call, path);

    return code == 0 ? app_call_send(call, "DELETE", path, NULL, NULL, NULL) : code;
}

static const struct flag get_flags[] = {
    SWITCH_FLAG("raw", "only what the house or thread itself sets", raw),
    TEXT_FLAG("agent", "AGENT", "with what is set for that agent", agent),
    HOUSE_FLAG,
};
static const struct flag set_flags[] = {
    TEXT_FLAG("patch", "JSON", "what to set (default: stdin)", patch),
    HOUSE_FLAG,
};
static const struct flag delete_flags[] = {HOUSE_FLAG};

static const struct group_row rows[] = {
    {"get", "house|thread [REF]", 1, 2, "of a house or a thread?", RUN(get), FLAGS(get_flags),
     "show what is in force, and where it comes from",
     "Shows what is in force for a house (the selected one) or a thread, and what the defaults,\n"
     "the house and the thread say of it.\n"},
    {"set", "house|thread [REF]", 1, 2, "of a house or a thread?", RUN(set), FLAGS(set_flags),
     "merge a patch into what it sets",
     "Merges a JSON object into what a house or thread sets: objects merge, arrays replace, null\n"
     "means the default. Prints what it sets then.\n"},
    {"delete", "house|thread [REF]", 1, 2, "of a house or a thread?", RUN(delete_config),
     FLAGS(delete_flags), "set nothing any more", "Removes all that a house or thread sets.\n"},
};

int command_config(int argc, char **argv)
{
    const struct group group = {
        .name = "config",
        .operands = "house|thread [REF]",
        .about = "Works with what houses and threads set: when bots answer, which model they "
                 "use.\n",
        .end = app_group_end,
        .shared = app_shared_flags,
        .shared_count = app_shared_flag_count,
        .rows = rows,
        .row_count = ARRAY_COUNT(rows),
    };

    return app_call_run(&group, argc, argv);
}
