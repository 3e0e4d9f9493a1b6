/* arbe t3 logout. What is here goes when the token is known to be of no use, or by --forget. */
#include "cli/t3_kept.h"

#include "cli/interrupt.h"
#include "cli/private_file.h"
#include "cli/secret.h"
#include "cli/t3_hosts_file.h"
#include "cli/t3_session.h"

#include <string.h>

/* What became of it. */
struct logout {
    struct t3_kept kept;
    bool ended;   /* the server does not take the token any more */
    bool removed; /* it is not here any more */
    char id[T3_SESSION_ID_BYTES];
};

static int end_session(const struct t3_call *call, struct logout *l, struct errmsg *msg)
{
    struct t3_site site = {.url = l->kept.section->url,
                           .ca_file = l->kept.ca[0] == '\0' ? NULL : l->kept.ca,
                           .timeout_ms = (int)call->set.timeout_ms};
    const struct profile *section = l->kept.section;
    char memory[T3_READER_TOKEN_BYTES + 1];
    struct slice token = {"", 0};
    int code = secret_read_long(l->kept.token, memory, T3_READER_TOKEN_BYTES, &token, msg);

    if (code != 0) {
        return ERR_IO; /* whatever it is, it is the file's */
    }
    if (t3_hosts_check_way(NULL, section->url, call->set.allow_http || section->allow_http, msg) !=
        0) {
        code = ERR_PERM; /* the call is good, its answer is no */
    }
    if (code == 0) {
        memory[token.len] = '\0';
        if (!t3_session_id(memory, l->id)) {
            l->id[0] = '\0';
        }
        code = t3_session_revoke(&site, memory, msg);
    }
    explicit_bzero(memory, sizeof(memory));
    if (code == ERR_GONE) {
        t3_call_tell(call, "%s", msg->text);
        code = 0;
    }
    l->ended = code == 0;
    return code;
}

/* A file that login did not write stays. */
static int remove_host(const struct t3_call *call, struct logout *l, struct errmsg *msg)
{
    char ours[T3_HOSTS_PATH_BYTES];
    bool there;
    int code = 0;

    t3_hosts_file_token_path(l->kept.path, l->kept.section->name, ours);
    if (strcmp(ours, l->kept.token) == 0) {
        code = private_file_remove(ours, "the token", &there, msg);
    } else if (l->kept.token[0] != '\0') {
        t3_call_tell(call, "%s is not where arbe t3 login keeps the token of %s, and stays",
                     l->kept.token, l->kept.section->name);
    }
    code = code == 0 ? t3_hosts_file_remove(l->kept.path, l->kept.section->name, msg) : code;
    l->removed = code == 0;
    return code;
}

static void print_logout(struct t3_call *call, const struct logout *l)
{
    struct out *o = &call->out;

    if (!call->set.json) {
        return;
    }
    out_add(o, SLICE("{\"host\":"));
    out_add_string(o, slice_of(l->kept.section->name));
    out_format(o, ",\"revoked\":%s,\"removed\":%s,\"session\":", l->ended ? "true" : "false",
               l->removed ? "true" : "false");
    if (l->id[0] == '\0') {
        out_add(o, SLICE("null"));
    } else {
        out_add_string(o, slice_of(l->id));
    }
    out_add(o, SLICE("}\n"));
    out_end_message(o);
}

/* The token is still good, as far as is known: what can be done about it. */
static int tell_still_good(const struct t3_call *call, const struct logout *l, int code,
                           const struct errmsg *why)
{
    struct errmsg msg = {{0}};

    (void)err_set(&msg, code, "the token of %.40s may still be good: %.180s", l->kept.section->name,
                  why->text);
    int exit = t3_call_fail(call, code, &msg);

    if (interrupt_signal() == 0) {
        t3_call_tell(call, "to end it, on the server's machine: t3 auth session revoke %s",
                     l->id[0] == '\0' ? "ID, whose ID t3 auth session list tells" : l->id);
        t3_call_tell(call, l->removed ? "it is not here any more"
                                      : "it stays here as it was; --forget removes it");
    }
    return exit;
}

static int find_host(const struct t3_call *call, struct t3_kept *kept, struct errmsg *msg)
{
    int code = t3_kept_find(kept, call->operands[0], msg);

    return code != 0 || kept->section != NULL
               ? code
               : err_set(msg, ERR_INVALID, "there is no host \"%.40s\" in the hosts' file %.150s",
                         call->operands[0], kept->path);
}

int t3_logout(struct t3_call *call)
{
    struct logout l = {.ended = false};
    struct errmsg why = {{0}};
    struct errmsg msg = {{0}};
    int code = t3_kept_open(call, &l.kept, &msg);

    code = code == 0 ? find_host(call, &l.kept, &msg) : code;
    code = code == 0 ? t3_kept_lock(call, &l.kept, &msg) : code;
    code = code == 0 ? find_host(call, &l.kept, &msg) : code; /* it may have gone */
    if (code != 0) {
        t3_kept_finish(&l.kept);
        return t3_call_fail(call, code, &msg);
    }
    bool had = l.kept.token[0] != '\0';
    int ended = had ? end_session(call, &l, &why) : 0;

    if (interrupt_signal() == 0 && (ended == 0 || call->set.forget)) {
        code = remove_host(call, &l, &msg);
    }
    print_logout(call, &l);
    int exit = ended != 0 ? tell_still_good(call, &l, ended, &why) : 0;

    if (code != 0) {
        exit = t3_call_fail(call, code, &msg);
        if (l.ended) {
            t3_call_tell(call, "its token was ended; --forget removes what is still here");
        }
    } else if (exit == 0) {
        t3_call_tell(call,
                     had ? "%s: its token was ended, and is not here any more"
                         : "%s had no token, and is not here any more",
                     l.kept.section->name);
    }
    t3_kept_finish(&l.kept);
    return exit;
}
