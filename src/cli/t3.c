/* arbe t3: servers of T3 Code, and how one reads them. */
#include "cli/t3_call.h"

#include "base/json.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "cli/interrupt.h"

#include <stdarg.h>
#include <stdio.h>

#define LINE_BYTES (16u * KIB) /* a sentence, each byte of it escaped */

/* ------------------------------------------------------------------ talking */

/* The word for programs; the part behind "t3." is nobody's but this group's. */
static const char *word_of(int code)
{
    switch (code) {
    case ERR_INVALID:
        return "client.usage";
    case ERR_PERM:
        return "t3.refused";
    case ERR_MISMATCH:
        return "t3.mismatch";
    case ERR_NOTFOUND:
        return "t3.not_t3";
    case ERR_AGAIN:
        return "t3.unreachable";
    case ERR_EXISTS:
        return "t3.not_revoked";
    case ERR_CONFLICT:
        return "t3.conflict";
    case ERR_IO:
        return "client.file";
    default:
        return "t3.failed";
    }
}

/* Appends a text in which every character that is harmful to a terminal is a '?'. */
static void append_shown(struct buf *out, const char *text)
{
    for (struct slice rest = slice_of(text); rest.len > 0;) {
        size_t harmful = utf8_harmful(rest);
        size_t len = harmful > 0 ? harmful : 1;

        buf_append(out, harmful > 0 ? SLICE("?") : (struct slice){rest.ptr, 1});
        rest = (struct slice){rest.ptr + len, rest.len - len};
    }
}

static void say(const struct t3_call *call, const char *word, const char *sentence)
{
    char memory[LINE_BYTES]; /* it is to be said that there is no other */
    struct buf line;

    buf_init_fixed(&line, memory, sizeof(memory));
    if (call->set.json && word != NULL) {
        buf_append_format(&line, "{\"error\":{\"code\":\"%s\",\"message\":", word);
        json_append_string(&line, slice_of(sentence));
        buf_append(&line, SLICE("}}\n"));
    } else {
        buf_append_format(&line, "arbe t3%s%s: ", call->name[0] == '\0' ? "" : " ", call->name);
        append_shown(&line, sentence);
        buf_append_char(&line, '\n');
    }
    (void)fwrite(line.ptr, 1, line.len, stderr); /* nobody can be told otherwise */
}

int t3_call_fail(const struct t3_call *call, int code, const struct errmsg *msg)
{
    if (interrupt_signal() != 0) {
        return COMMAND_INTERRUPTED + interrupt_signal();
    }
    say(call, word_of(code), msg->text);
    return code == ERR_INVALID ? COMMAND_USAGE : COMMAND_FAILED;
}

int t3_call_refuse(const struct t3_call *call, const char *format, ...)
{
    struct errmsg msg = {{0}};
    va_list args;

    va_start(args, format);
    (void)vsnprintf(msg.text, sizeof(msg.text), format, args); /* a cut sentence is wanted */
    va_end(args);
    return t3_call_fail(call, ERR_INVALID, &msg);
}

void t3_call_tell(const struct t3_call *call, const char *format, ...)
{
    char text[2048];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args); /* likewise */
    va_end(args);
    if (!call->set.json) {
        say(call, NULL, text);
    }
}

/* ------------------------------------------------------------------ the table */

#define AT(field) offsetof(struct t3_settings, field)
#define FILE_FLAG(name, help, field)                               \
    {                                                              \
        name, "FILE", NULL, help, NULL, FLAG_TEXT, AT(field), 0, 0 \
    }
#define SWITCH_FLAG(name, help, field)                             \
    {                                                              \
        name, NULL, NULL, help, NULL, FLAG_SWITCH, AT(field), 0, 0 \
    }
#define TIMEOUT_FLAG(fallback, help)                                                       \
    {                                                                                      \
        "timeout", "TIME", fallback, help, NULL, FLAG_DURATION, AT(timeout_ms), 1, 3600000 \
    }
#define ROW_FLAGS(table) table, ARRAY_COUNT(table)

static const struct flag shared_flags[] = {
    FILE_FLAG("t3-hosts",
              "the hosts' file (default: that of ARBE_T3_HOSTS_FILE, else ~/.config/arbe/t3)",
              hosts_file),
    SWITCH_FLAG("json", "answer in JSON, errors on stderr too", json),
};

#define ALLOW_HTTP_FLAG                                                                     \
    SWITCH_FLAG("allow-http", "send secrets over plain http, where others could read them", \
                allow_http)

static const struct flag login_flags[] = {
    {"host", "HOST", NULL,
     "what to call it (default: as the hosts' file calls that URL, or as it calls itself)", NULL,
     FLAG_TEXT, AT(host), 0, 0},
    SWITCH_FLAG("replace", "take HOST from another URL that has it", replace),
    ALLOW_HTTP_FLAG,
    FILE_FLAG("ca-file", "certificates to trust instead of the system's", ca_file),
    TIMEOUT_FLAG("30s", "of each request, and of the wait for another one that changes the hosts"),
};

static const struct flag logout_flags[] = {
    SWITCH_FLAG("forget", "remove it here even where the server cannot end it", forget),
    ALLOW_HTTP_FLAG,
    TIMEOUT_FLAG("30s", "of each request, and of the wait for another one that changes the hosts"),
};

static const struct flag probe_flags[] = {
    ALLOW_HTTP_FLAG,
    FILE_FLAG("ca-file", "certificates to trust instead of the system's", ca_file),
    TIMEOUT_FLAG("30s", "for all of it"),
};

static const struct group_row rows[] = {
    {"list",
     "",
     0,
     0,
     NULL,
     {.t3 = t3_list},
     NULL,
     0,
     "tell the hosts that are kept",
     "Tells the hosts of the hosts' file, their URLs, and which have a token; no token.\n"},
    {"login",
     "URL",
     1,
     1,
     "which server?",
     {.t3 = t3_login},
     ROW_FLAGS(login_flags),
     "get and keep a token that can only read",
     "Takes a pairing credential from stdin, where a terminal does not show it: the code or the\n"
     "link that T3 Code shows, or `t3 auth pairing create`. Exchanges it for a token with the "
     "scope\n"
     "orchestration:read and no other, tries it, and keeps it in a file of its own that only its\n"
     "owner may read. The credential is spent by that. A URL that the hosts' file has is "
     "renewed.\n"},
    {"logout",
     "HOST",
     1,
     1,
     "which host?",
     {.t3 = t3_logout},
     ROW_FLAGS(logout_flags),
     "end that token, and remove it",
     "Asks the server to end the session of the token, then removes the host and its token here.\n"
     "Not every server lets a session end itself: then it tells what to do on the server's\n"
     "machine, keeps what is here unless --forget, and ends with exit code 1.\n"},
    {"probe",
     "URL|HOST|HOST=URL",
     1,
     1,
     "which server?",
     {.t3 = t3_probe},
     ROW_FLAGS(probe_flags),
     "show the shapes of what a server tells",
     "Connects, subscribes to the shell until its first snapshot, then to the first thread of it,\n"
     "asks for that thread's projection, and ends. Prints names of fields and types of what came,\n"
     "never values. Only reads: it writes nothing, there or here. The token is ARBE_T3_TOKEN, or "
     "that\n"
     "of HOST in the hosts' file, or of the host there that has URL.\n"},
};

int command_t3(int argc, char **argv)
{
    const struct group group = {
        .name = "t3",
        .operands = "",
        .about =
            "Servers of T3 Code, whose threads arbe board shows: tokens to read them, and what "
            "they tell.\n",
        .end = "The environment says where the hosts' file is (ARBE_T3_HOSTS_FILE), and the token "
               "of one host\n"
               "(ARBE_T3_TOKEN). Exit codes: 0 good, 1 it could not be done, 2 wrong usage.\n",
        .shared = shared_flags,
        .shared_count = ARRAY_COUNT(shared_flags),
        .rows = rows,
        .row_count = ARRAY_COUNT(rows),
    };
    struct t3_call call = {.name = ""};
    struct group_choice choice;
    struct errmsg msg = {{0}};
    int code = group_choose(&group, argc, argv, &call.set, &choice, &msg);

    call.name = choice.row == NULL ? "" : choice.row->name;
    call.operands = choice.operands;
    if (msg.text[0] != '\0') {
        return t3_call_fail(&call, ERR_INVALID, &msg);
    }
    if (choice.row == NULL) {
        return code;
    }
    call.set.hosts_file = t3_hosts_choose(call.set.hosts_file);
    interrupt_begin();
    out_init(&call.out);
    code = choice.row->run.t3(&call);
    return out_finish(&call.out) || code != 0 ? code : COMMAND_FAILED;
}
