/* arbe house: houses, who is in them, and how others come in. */
#include "base/json.h"
#include "base/limits.h"
#include "cli/app_flags.h"
#include "cli/auth.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/listing.h"
#include "cli/lookup.h"
#include "cli/prompt.h"
#include "cli/record.h"
#include "cli/secret.h"

#include <stdio.h>

#define PATH_BYTES 200u

/* Opens, and finds the house that the first operand means, or that is selected. */
static int open_house(struct app_call *call, struct lookup *ret_house)
{
    int code = app_call_open(call);

    ret_house->kind = LOOKUP_HOUSE;
    if (code != 0) {
        return code;
    }
    return call->operand_count > 0 ? lookup_ref(call, call->operands[0], LOOKUP_HOUSE, ret_house)
                                   : lookup_house(call, ret_house->id);
}

static void write_house(struct app_call *call, struct slice house)
{
    struct slice id = record_text(house, "id", &call->memory);
    bool selected = slice_equal(id, slice_of(call->login.house));

    app_call_print_cell(call, id, 36);
    app_call_print_cell(call, selected ? SLICE("*") : SLICE(""), 1);
    listing_cell(call, house, "role", 6);
    out_add_shown(&call->out, record_text(house, "name", &call->memory));
}

static int list(struct app_call *call)
{
    int code = app_call_open(call);

    return code == 0 ? listing_print(call, "/api/houses", NULL, "houses", write_house) : code;
}

static void print_house(struct app_call *call, struct slice house)
{
    char created[RECORD_TIME_BYTES];

    if (call->set.json) {
        app_call_print_json(call, house);
        return;
    }
    record_format_time(created, record_number(house, "createdAt"));
    app_call_print_field(call, "house", record_text(house, "name", &call->memory));
    app_call_print_field(call, "id", record_text(house, "id", &call->memory));
    app_call_print_field(call, "role", record_text(house, "role", &call->memory));
    app_call_print_field(call, "thread", record_text(house, "primaryThreadId", &call->memory));
    app_call_print_field(call, "created", slice_of(created));
}

static int view(struct app_call *call)
{
    char path[PATH_BYTES];
    struct lookup house;
    struct slice record;
    int code = open_house(call, &house);

    (void)snprintf(path, sizeof(path), "/api/houses/%s", house.id);
    code = code == 0 ? app_call_send(call, "GET", path, NULL, NULL, &record) : code;
    if (code == 0) {
        print_house(call, record);
    }
    return code;
}

/* Sends a house's name; prints what it is then. */
static int send_name(struct app_call *call, const char *method, const char *path, const char *name,
                     struct slice *ret_house)
{
    struct buf body;

    app_body_begin(&body);
    app_body_text(&body, "name", name);
    app_body_end(&body);
    int code = app_call_send(call, method, path, NULL, &body, ret_house);

    buf_finish(&body);
    return code;
}

/* Keeps another selection, if the login is what is used. */
static int keep_selection(struct app_call *call, const char *house)
{
    struct errmsg msg = {{0}};

    (void)snprintf(call->login.house, sizeof(call->login.house), "%s", house);
    return login_write(call->login_path, &call->login, &msg) == 0 ? 0 : app_call_cannot(call, &msg);
}

static bool uses_login(const struct app_call *call)
{
    return call->login.url[0] != '\0' && strcmp(call->login.url, call->url) == 0 &&
           strcmp(call->login.key, call->key) == 0;
}

static int create(struct app_call *call)
{
    struct slice house;
    int code = app_call_open(call);

    code = code == 0 ? send_name(call, "POST", "/api/houses", call->operands[0], &house) : code;
    if (code != 0) {
        return code;
    }
    struct slice id = record_text(house, "id", &call->memory);

    if (call->set.json) {
        app_call_print_json(call, house);
    } else {
        out_add_shown(&call->out, id);
        out_add(&call->out, SLICE("\n"));
        out_end_message(&call->out);
    }
    if (uses_login(call) && call->login.house[0] == '\0') {
        code = keep_selection(call, id.ptr); /* the first one is what one works in */
    }
    return code;
}

static int edit(struct app_call *call)
{
    char path[PATH_BYTES];
    struct lookup house;
    struct slice record;

    if (call->set.name == NULL) {
        return app_call_refuse(call, COMMAND_USAGE, "client.usage", NULL,
                               "what is to change? --name NAME");
    }
    int code = open_house(call, &house);

    (void)snprintf(path, sizeof(path), "/api/houses/%s", house.id);
    code = code == 0 ? send_name(call, "PATCH", path, call->set.name, &record) : code;
    if (code == 0) {
        print_house(call, record);
    }
    return code;
}

static int delete_house(struct app_call *call)
{
    char path[PATH_BYTES];
    struct lookup house;
    int code = open_house(call, &house);

    (void)snprintf(path, sizeof(path), "/api/houses/%s", house.id);
    code = code == 0 ? app_call_send(call, "DELETE", path, NULL, NULL, NULL) : code;
    if (code == 0 && uses_login(call) && strcmp(call->login.house, house.id) == 0) {
        code = keep_selection(call, "");
    }
    return code;
}

static int select_house(struct app_call *call)
{
    char path[PATH_BYTES];
    struct lookup house;
    struct slice record;
    int code = open_house(call, &house);

    if (code == 0 && !uses_login(call)) {
        return app_call_refuse(call, COMMAND_USAGE, "client.not_signed_in",
                               "arbe auth login, or --house HOUSE with each command",
                               "a selection is kept with a login, and this key is not kept");
    }
    (void)snprintf(path, sizeof(path), "/api/houses/%s", house.id);
    code = code == 0 ? app_call_send(call, "GET", path, NULL, NULL, &record) : code;
    code = code == 0 ? keep_selection(call, house.id) : code;
    if (code == 0) {
        print_house(call, record);
    }
    return code;
}

static void write_member(struct app_call *call, struct slice member)
{
    listing_cell(call, member, "agentId", 36);
    listing_cell(call, member, "role", 6);
    listing_cell(call, member, "kind", 5);
    listing_who(call, member);
}

static int members(struct app_call *call)
{
    char path[PATH_BYTES];
    struct lookup house;
    int code = open_house(call, &house);

    (void)snprintf(path, sizeof(path), "/api/houses/%s/members", house.id);
    return code == 0 ? listing_print(call, path, NULL, "members", write_member) : code;
}

/* The path of the member that the operand means, in the house that the command is about. */
static int find_member(struct app_call *call, char path[static PATH_BYTES])
{
    char house[LOOKUP_ID_BYTES];
    struct lookup agent;
    int code = app_call_open(call);

    code = code == 0 ? lookup_house(call, house) : code;
    code = code == 0 ? lookup_ref(call, call->operands[0], LOOKUP_AGENT, &agent) : code;
    if (code == 0) {
        (void)snprintf(path, PATH_BYTES, "/api/houses/%s/members/%s", house, agent.id);
    }
    return code;
}

static int add(struct app_call *call)
{
    char path[PATH_BYTES];
    struct buf body;
    struct slice member;
    int code = find_member(call, path);

    if (code != 0) {
        return code;
    }
    app_body_begin(&body);
    app_body_text(&body, "role", call->set.role == NULL ? "member" : call->set.role);
    app_body_end(&body);
    code = app_call_send(call, "PUT", path, NULL, &body, &member);
    buf_finish(&body);
    if (code == 0) {
        listing_record(call, member, write_member);
    }
    return code;
}

static int remove_member(struct app_call *call)
{
    char path[PATH_BYTES];
    int code = find_member(call, path);

    return code == 0 ? app_call_send(call, "DELETE", path, NULL, NULL, NULL) : code;
}

static int revoke(struct app_call *call)
{
    char member[PATH_BYTES];
    char path[PATH_BYTES + 32];
    int code = find_member(call, member);

    if (code == 0) {
        (void)snprintf(path, sizeof(path), "%s/sandbox-tokens", member);
    }
    return code == 0 ? app_call_send(call, "DELETE", path, NULL, NULL, NULL) : code;
}

/* Prints the answer with its link as a whole; servers without --public-url give the path alone. */
static void print_invite_json(struct app_call *call, struct slice invite, const char *url)
{
    struct slice link = record_value(invite, "url");
    struct slice before = {invite.ptr, link.len > 0 ? (size_t)(link.ptr - invite.ptr) : 0};
    struct buf line;

    buf_init(&line, 4 * KIB);
    buf_append(&line, before);
    json_append_string(&line, slice_of(url));
    buf_append(&line, (struct slice){invite.ptr + before.len + link.len,
                                     invite.len - before.len - link.len});
    app_call_print_json(call, before.len == 0 || line.failed ? invite : buf_slice(&line));
    buf_finish(&line);
}

static void print_invite(struct app_call *call, struct slice invite)
{
    struct slice url = record_text(invite, "url", &call->memory);
    char link[LOGIN_URL_BYTES + 128];
    char until[RECORD_TIME_BYTES];

    (void)snprintf(link, sizeof(link), "%s%.*s",
                   slice_starts_with(url, SLICE("/")) ? call->url : "", (int)url.len, url.ptr);
    if (call->set.json) {
        print_invite_json(call, invite, link);
        return;
    }
    record_format_time(until, record_number(invite, "expiresAt"));
    out_add_shown(&call->out, slice_of(link));
    out_add(&call->out, SLICE("\n"));
    out_end_message(&call->out);
    out_flush(&call->out);
    app_call_tell(call, "for one person, until %s; it is not shown again", until);
    app_call_tell(call, "used by: arbe house join, which reads it from stdin; --name NAME joins as "
                        "somebody new");
}

static int invite(struct app_call *call)
{
    char path[PATH_BYTES];
    char seconds[24];
    struct lookup house;
    struct buf body;
    struct slice record;
    int code = open_house(call, &house);

    if (code != 0) {
        return code;
    }
    (void)snprintf(path, sizeof(path), "/api/houses/%s/invites", house.id);
    app_body_begin(&body);
    app_body_text(&body, "role", call->set.role);
    if (call->set.expires_ms > 0) {
        (void)snprintf(seconds, sizeof(seconds), "%llu",
                       (unsigned long long)(call->set.expires_ms / 1000));
        app_body_json(&body, "expiresIn", slice_of(seconds));
    }
    app_body_end(&body);
    code = app_call_send(call, "POST", path, NULL, &body, &record);
    buf_finish(&body);
    if (code == 0) {
        print_invite(call, record);
    }
    return code;
}

/* Reads the link or token of an invite into `text`. */
static int read_token(struct app_call *call, char text[static PROMPT_SECRET_BYTES])
{
    char memory[PROMPT_SECRET_BYTES];
    struct slice token = {"", 0};
    struct errmsg msg = {{0}};
    int code;

    if (call->set.token_file != NULL) {
        code = secret_read(call->set.token_file, memory, &token, &msg);
        (void)snprintf(text, PROMPT_SECRET_BYTES, "%.*s", (int)token.len, token.ptr);
        explicit_bzero(memory, sizeof(memory));
    } else {
        code = prompt_secret("invite: ", "an invite's link or token", text, &msg);
    }
    if (code != 0 && interrupt_signal() != 0) {
        return COMMAND_INTERRUPTED + interrupt_signal();
    }
    return code == 0 ? 0 : app_call_cannot(call, &msg);
}

/* Cuts a link into the server's URL, which the call then is about, and the token. */
static int take_link(struct app_call *call, char *text, const char **ret_token)
{
    char *route = strstr(text, "/invite/");

    *ret_token = text;
    if (route != NULL) {
        *route = '\0';
        *ret_token = route + sizeof("/invite/") - 1;
        int code = app_call_refuse_url(call, text);

        if (code != 0) {
            return code;
        }
        if (strlen(text) >= sizeof(call->url)) {
            *ret_token = "";
        } else if (call->set.url == NULL && strcmp(text, call->url) != 0) {
            /* Of another server: the key is not for that one. */
            app_call_set_url(call, text);
            call->key[0] = '\0';
        }
    }
    if (strlen(*ret_token) != 64 || strspn(*ret_token, "0123456789abcdef") != 64) {
        return app_call_refuse(call, COMMAND_USAGE, "client.usage", NULL,
                               "this is no invite: it takes the whole link, or its last 64 "
                               "characters");
    }
    return 0;
}

/* Signs in whom the answer made, in place of whoever was. */
static int become(struct app_call *call, struct slice answer)
{
    bool replaces = call->login.key[0] != '\0';

    (void)snprintf(call->key, sizeof(call->key), "%s",
                   record_text(answer, "apiKey", &call->memory).ptr);
    interrupt_forget(call->client);
    scoped_client_free(call->client);
    call->client = NULL;
    int code = app_call_connect(call);

    code = code == 0 ? auth_keep(call) : code;
    if (code == 0 && replaces) {
        app_call_tell(call, "the login of before is replaced; its key stays good");
    }
    return code;
}

/* Claims the invite as who one is, or under a name as somebody new, who is then signed in. */
static int claim(struct app_call *call, const char *token)
{
    char path[PATH_BYTES];
    bool is_new = call->set.name != NULL;
    struct buf body;
    struct slice answer;

    if (is_new) {
        explicit_bzero(call->key, sizeof(call->key)); /* with one, nobody is made */
    } else if (call->key[0] == '\0') {
        return app_call_refuse(call, COMMAND_USAGE, "client.usage",
                               "--name NAME joins as somebody new, arbe auth login as who you are",
                               "not signed in to %.200s", call->url);
    }
    int code = app_call_connect(call);

    if (code != 0) {
        return code;
    }
    (void)snprintf(path, sizeof(path), "/api/invites/%.64s", token);
    app_body_begin(&body);
    app_body_text(&body, "name", call->set.name);
    app_body_end(&body);
    code = app_call_send(call, "POST", path, NULL, &body, &answer);
    buf_finish(&body);
    explicit_bzero(path, sizeof(path));
    if (code != 0) {
        return code;
    }
    if (call->set.json) {
        app_call_print_json(call, answer);
    } else {
        print_house(call, record_value(answer, "house"));
    }
    return is_new ? become(call, answer) : 0;
}

static int join(struct app_call *call)
{
    char text[PROMPT_SECRET_BYTES] = "";
    const char *token;
    int code = app_call_choose(call);

    code = code == 0 ? read_token(call, text) : code;
    code = code == 0 ? take_link(call, text, &token) : code;
    code = code == 0 ? claim(call, token) : code;
    explicit_bzero(text, sizeof(text));
    return code;
}

static const struct flag list_flags[] = {LIMIT_FLAG};
static const struct flag edit_flags[] = {TEXT_FLAG("name", "NAME", "what it is called", name)};

#define ROLE_FLAG                                                                                \
    TEXT_FLAG("role", "owner|member", "owners also manage members and delete (default: member)", \
              role)

static const struct flag add_flags[] = {ROLE_FLAG, HOUSE_FLAG};
static const struct flag remove_flags[] = {HOUSE_FLAG};
static const struct flag invite_flags[] = {
    ROLE_FLAG,
    {"expires", "TIME", NULL, "until when it may be used (default: 168h)", NULL, FLAG_DURATION,
     AT(expires_ms), 1000, 720ull * 3600 * 1000},
};
static const struct flag join_flags[] = {
    TEXT_FLAG("name", "NAME", "join as somebody new of that name", name),
    TEXT_FLAG("token-file", "FILE", "file with the link or token, readable by its owner only",
              token_file),
};

static const struct group_row rows[] = {
    {"list", "", 0, 0, NULL, RUN(list), FLAGS(list_flags), "list the houses one is in",
     "Lists the houses one is in: id, role and name; * stands at the selected one.\n"},
    {"view", "[HOUSE]", 0, 1, NULL, RUN(view), NO_FLAGS, "show a house",
     "Shows a house, or the selected one, with the id of its primary thread.\n"},
    {"create", "NAME", 1, 1, "which name?", RUN(create), NO_FLAGS, "make a house and own it",
     "Makes a house, with its primary thread, and prints its id.\n"},
    {"edit", "[HOUSE]", 0, 1, NULL, RUN(edit), FLAGS(edit_flags), "rename a house",
     "Renames a house. Owners may.\n"},
    {"delete", "HOUSE", 1, 1, "which house?", RUN(delete_house), NO_FLAGS,
     "delete a house with its threads", "Deletes a house with all its threads. Owners may.\n"},
    {"select", "HOUSE", 1, 1, "which house?", RUN(select_house), NO_FLAGS,
     "choose the house that other commands are about",
     "Keeps the house as the one that other commands are about without --house.\n"},
    {"members", "[HOUSE]", 0, 1, NULL, RUN(members), FLAGS(list_flags), "list who is in a house",
     "Lists who is in a house: id, role, kind, name and handle.\n"},
    {"add", "AGENT", 1, 1, "which agent?", RUN(add), FLAGS(add_flags),
     "make an agent a member, or change its role",
     "Makes an agent a member of the house, or changes its role. Owners may.\n"},
    {"remove", "AGENT", 1, 1, "which agent?", RUN(remove_member), FLAGS(remove_flags),
     "remove a member, or leave",
     "Removes a member from the house. Owners may, and everybody may leave: remove me.\n"},
    {"revoke", "AGENT", 1, 1, "which agent?", RUN(revoke), FLAGS(remove_flags),
     "end the tokens with which sandboxes write as a member",
     "Ends the tokens with which sandboxes write as a member, in all threads of the house. The\n"
     "agent may, whoever made it, and owners. Tokens that are given out after that are good.\n"},
    {"invite", "[HOUSE]", 0, 1, NULL, RUN(invite), FLAGS(invite_flags),
     "print a link that lets one person in",
     "Prints a link that lets one person into the house, once. Owners may.\n"},
    {"join", "", 0, 0, NULL, RUN(join), FLAGS(join_flags), "use such a link",
     "Takes the link, or the token at its end, from stdin, where a terminal does not show it, or\n"
     "from --token-file. Whoever is signed in joins; with --name somebody new is made, whose\n"
     "key is kept as by arbe auth login, in place of that of whoever was signed in.\n"},
};

int command_house(int argc, char **argv)
{
    const struct group group = {
        .name = "house",
        .operands = "",
        .about = "Works with houses, which hold threads and those who may read and write them.\n",
        .end = app_group_end,
        .shared = app_shared_flags,
        .shared_count = app_shared_flag_count,
        .rows = rows,
        .row_count = ARRAY_COUNT(rows),
    };

    return app_call_run(&group, argc, argv);
}
