/* arbe auth: who one is to which server. */
#include "cli/auth.h"

#include "base/limits.h"
#include "cli/app_flags.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/prompt.h"
#include "cli/record.h"
#include "cli/secret.h"

#include <stdlib.h>

/* The key that is to be tried: from a file, the environment, or stdin. */
static int read_key(struct app_call *call)
{
    char memory[PROMPT_SECRET_BYTES];
    struct slice key = {memory, 0};
    struct errmsg msg = {{0}};
    int code = 0;

    _Static_assert(sizeof(memory) == SECRET_BYTES_MAX && sizeof(memory) == LOGIN_KEY_BYTES,
                   "a key that is read can be kept");
    if (call->set.key_file != NULL) {
        code = secret_read(call->set.key_file, memory, &key, &msg);
    } else if (getenv("ARBE_API_KEY") != NULL && call->key[0] != '\0') {
        return 0;
    } else {
        code = prompt_secret("API key: ", "an API key", memory, &msg);
        key.len = code == 0 ? strlen(memory) : 0;
    }
    if (code == 0) {
        (void)snprintf(call->key, sizeof(call->key), "%.*s", (int)key.len, key.ptr);
    }
    explicit_bzero(memory, sizeof(memory));
    if (code != 0 && interrupt_signal() != 0) {
        return COMMAND_INTERRUPTED + interrupt_signal();
    }
    return code == 0 ? 0 : app_call_cannot(call, &msg);
}

/* The house that a new login selects: the one of before if one is in it, else the only one. */
static struct slice choose_house(struct app_call *call, struct slice me)
{
    struct json_walk walk;
    struct slice house;
    struct slice only = {"", 0};
    size_t count = 0;

    record_walk(&walk, me, "houses");
    while (json_walk_element(&walk, &house)) {
        struct slice id = record_text(house, "id", &call->memory);

        if (slice_equal(id, slice_of(call->login.house))) {
            return house;
        }
        only = count++ == 0 ? house : (struct slice){"", 0};
    }
    return only;
}

int auth_keep(struct app_call *call)
{
    struct slice me;
    struct errmsg msg = {{0}};
    int code = app_call_send(call, "GET", "/api/me", NULL, NULL, &me);

    if (code != 0) {
        return code;
    }
    struct slice agent = record_value(me, "agent");
    struct slice house = choose_house(call, me);
    struct login login = {.url = ""};

    (void)snprintf(login.url, sizeof(login.url), "%s", call->url);
    (void)snprintf(login.key, sizeof(login.key), "%s", call->key);
    (void)snprintf(login.house, sizeof(login.house), "%s",
                   record_text(house, "id", &call->memory).ptr);
    code = call->login_path[0] == '\0' ? login_locate(call->login_path, &msg) : 0;
    if (code == 0) {
        code = login_write(call->login_path, &login, &msg);
    }
    explicit_bzero(&login, sizeof(login));
    if (code != 0) {
        return app_call_cannot(call, &msg);
    }
    app_call_tell(call, "signed in to %s as %s (@%s)", call->url,
                  record_text(agent, "name", &call->memory).ptr,
                  record_text(agent, "handle", &call->memory).ptr);
    if (house.len == 0) {
        app_call_tell(call, "no house is selected: arbe house select HOUSE");
    } else {
        app_call_tell(call, "house: %s", record_text(house, "name", &call->memory).ptr);
    }
    return 0;
}

static int print_whoami(struct app_call *call)
{
    struct out *o = &call->out;
    struct slice me;
    int code = app_call_send(call, "GET", "/api/me", NULL, NULL, &me);

    if (code != 0) {
        return code;
    }
    struct slice agent = record_value(me, "agent");
    struct slice house = choose_house(call, me);

    if (call->set.json) {
        out_add(o, SLICE("{\"url\":"));
        out_add_string(o, slice_of(call->url));
        out_add(o, SLICE(",\"agent\":"));
        out_add_json(o, agent);
        out_add(o, SLICE(",\"house\":"));
        out_add_json(o, house.len == 0 ? SLICE("null") : house);
        out_add(o, SLICE("}\n"));
        out_end_message(o);
        return 0;
    }
    app_call_print_field(call, "agent", record_text(agent, "name", &call->memory));
    app_call_print_field(call, "handle", record_text(agent, "handle", &call->memory));
    app_call_print_field(call, "id", record_text(agent, "id", &call->memory));
    app_call_print_field(call, "server", slice_of(call->url));
    app_call_print_field(
        call, "house", house.len == 0 ? SLICE("none") : record_text(house, "name", &call->memory));
    return 0;
}

static int login(struct app_call *call)
{
    int code = app_call_choose(call);

    code = code == 0 ? read_key(call) : code;
    code = code == 0 ? app_call_connect(call) : code;
    code = code == 0 ? auth_keep(call) : code;
    return code == 0 && call->set.json ? print_whoami(call) : code;
}

static int whoami(struct app_call *call)
{
    int code = app_call_open(call);

    return code == 0 ? print_whoami(call) : code;
}

static int logout(struct app_call *call)
{
    struct errmsg msg = {{0}};
    bool there = false;
    int code = login_locate(call->login_path, &msg);

    code = code == 0 ? login_remove(call->login_path, &there, &msg) : code;
    if (code != 0) {
        return app_call_cannot(call, &msg);
    }
    app_call_tell(call, there ? "signed out; the key stays good until it is revoked"
                              : "nobody was signed in");
    return 0;
}

static const struct flag login_flags[] = {
    TEXT_FLAG("key-file", "FILE", "file with the key, readable by its owner only", key_file),
};

static const struct group_row rows[] = {
    {"login", "", 0, 0, NULL, RUN(login), FLAGS(login_flags), "keep a server and a key for it",
     "Takes an API key from stdin, where a terminal does not show it, from --key-file, or from\n"
     "ARBE_API_KEY, tries it, and keeps it with the server's URL in ~/.config/arbe/login, which\n"
     "only its owner may read. Selects the house if there is only one.\n"},
    {"whoami", "", 0, 0, NULL, RUN(whoami), NO_FLAGS, "tell agent, server and house",
     "Tells who the key makes one, on which server, and which house is selected.\n"},
    {"logout", "", 0, 0, NULL, RUN(logout), NO_FLAGS, "forget server, key and house",
     "Removes the kept login. The key stays good: arbe agent key revoke ends it.\n"},
};

int command_auth(int argc, char **argv)
{
    const struct group group = {
        .name = "auth",
        .operands = "",
        .about = "Says who one is to which server.\n",
        .end = app_group_end,
        .shared = app_shared_flags,
        .shared_count = app_shared_flag_count,
        .rows = rows,
        .row_count = ARRAY_COUNT(rows),
    };

    return app_call_run(&group, argc, argv);
}
