/* arbe t3 list, login and logout. The file of hosts is looked at before a credential is asked for,
 * and the server before it is sent: what can be refused is refused while nothing is spent. */
#include "cli/t3_call.h"

#include "base/limits.h"
#include "cli/interrupt.h"
#include "cli/private_file.h"
#include "cli/profile.h"
#include "cli/prompt.h"
#include "cli/secret.h"
#include "cli/t3_hosts_file.h"
#include "cli/t3_session.h"
#include "cli/t3_url.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LABEL_BYTES  256u /* that a server may choose */
#define ENDING_BYTES 110u /* of a sentence, for what became of a token */
#define DAY_S        86400u

/* A host of the file, or one that is to be. */
struct kept {
    char path[T3_HOSTS_PATH_BYTES]; /* of the file */
    struct profiles file;
    const struct profile *section;   /* NULL: it has none */
    char token[T3_HOSTS_PATH_BYTES]; /* where its token is; empty: nowhere */
    char ca[T3_HOSTS_PATH_BYTES];    /* empty: the system's */
};

/* Reads the file. */
static int kept_open(const struct t3_call *call, struct kept *kept, struct errmsg *msg)
{
    int code = t3_hosts_locate(call->set.hosts_file, kept->path, msg);

    return code == 0 ? profiles_read(kept->path, "host", &kept->file, msg) : code;
}

/* Finds the section of a label, and where its files are. */
static int kept_find(struct kept *kept, const char *label, struct errmsg *msg)
{
    int code = 0;

    kept->section = profiles_find(&kept->file, label);
    kept->token[0] = '\0';
    kept->ca[0] = '\0';
    if (kept->section != NULL && kept->section->secret_file != NULL) {
        code = profile_file_path(kept->path, kept->section->secret_file, kept->token,
                                 sizeof(kept->token), msg);
    }
    if (code == 0 && kept->section != NULL && kept->section->ca_file != NULL) {
        code = profile_file_path(kept->path, kept->section->ca_file, kept->ca, sizeof(kept->ca),
                                 msg);
    }
    return code;
}

/* ------------------------------------------------------------------ list */

/* Without its query, which may be another secret. */
static struct slice shown_url(const char *url)
{
    return (struct slice){url, strcspn(url, "?")};
}

static void print_host(struct t3_call *call, const struct kept *kept)
{
    struct out *o = &call->out;
    bool token = kept->token[0] != '\0' && access(kept->token, R_OK) == 0;

    if (call->set.json) {
        out_add(o, SLICE("{\"host\":"));
        out_add_string(o, slice_of(kept->section->name));
        out_add(o, SLICE(",\"url\":"));
        out_add_string(o, shown_url(kept->section->url));
        out_add(o, token ? SLICE(",\"token\":true}\n") : SLICE(",\"token\":false}\n"));
    } else {
        out_add_shown(o, slice_of(kept->section->name));
        out_add(o, SLICE("  "));
        out_add_shown(o, shown_url(kept->section->url));
        out_add(o, token                    ? SLICE("  with a token\n")
                   : kept->token[0] == '\0' ? SLICE("  without a token\n")
                                            : SLICE("  its token cannot be read\n"));
    }
    out_end_message(o);
}

int t3_list(struct t3_call *call)
{
    struct kept kept = {.path = ""};
    struct errmsg msg = {{0}};
    int code = kept_open(call, &kept, &msg);

    for (size_t i = 0; code == 0 && i < kept.file.count; i++) {
        code = kept_find(&kept, kept.file.list[i].name, &msg);
        if (code == 0) {
            print_host(call, &kept);
        }
    }
    if (code == 0 && kept.file.count == 0) {
        t3_call_tell(call, "there is no host in %.200s; arbe t3 login adds one", kept.path);
    }
    profiles_finish(&kept.file);
    return code == 0 ? 0 : t3_call_fail(call, code, &msg);
}

/* ------------------------------------------------------------------ login */

/* What a login is about. Holds secrets. */
struct login {
    struct t3_site site;
    char ca[PATH_MAX]; /* of --ca-file, from the root; empty: it was not given */
    struct kept kept;
    struct t3_descriptor server;
    char label[LABEL_BYTES];
    char credential[PROMPT_SECRET_BYTES];
    struct t3_grant grant;
    char before[T3_READER_TOKEN_BYTES]; /* the token that this one replaces; empty: none */
};

/* A label of what a server says of itself, or of its URL: letters, digits and "._-". */
static void make_label(struct login *l)
{
    char authority[T3_URL_BYTES];
    const char *from = l->server.label;
    size_t len = 0;

    t3_url_authority(l->site.url, authority, sizeof(authority));
    from = strpbrk(from, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != NULL
               ? from
               : authority;
    for (const char *c = from; *c != '\0' && len < 100; c++) {
        bool good = isalnum((unsigned char)*c) || strchr("._-", *c) != NULL;

        if (good && (len > 0 || isalnum((unsigned char)*c))) {
            l->label[len++] = *c;
        } else if (len > 0 && l->label[len - 1] != '-') {
            l->label[len++] = '-';
        }
    }
    while (len > 0 && !isalnum((unsigned char)l->label[len - 1])) {
        len--;
    }
    l->label[len] = '\0';
}

/* What the user calls it, if that can be one. */
static int check_label(const char *label, struct errmsg *msg)
{
    int code = t3_hosts_check_label(slice_of(label), msg);

    return code == 0 ? t3_hosts_file_check_label(label, msg) : code;
}

static int choose_label(const struct t3_call *call, struct login *l, struct errmsg *msg)
{
    if (call->set.host != NULL) {
        (void)snprintf(l->label, sizeof(l->label), "%s", call->set.host);
    } else {
        make_label(l);
    }
    int code = check_label(l->label, msg);

    code = code == 0 ? kept_find(&l->kept, l->label, msg) : code;
    if (code != 0) {
        return code;
    }
    const struct profile *section = l->kept.section;

    if (section != NULL && !t3_url_same(section->url, l->site.url) && !call->set.replace) {
        struct slice url = shown_url(section->url);

        return err_set(msg, ERR_CONFLICT,
                       "the host \"%.40s\" is %.*s already; call this one otherwise with --host, "
                       "or take its place with --replace",
                       l->label, (int)(url.len > 80 ? 80 : url.len), url.ptr);
    }
    if (section == NULL && l->kept.file.count == PROFILES_MAX) {
        return err_set(msg, ERR_CONFLICT, "there are %u hosts in %.100s, which is all it takes",
                       PROFILES_MAX, l->kept.path);
    }
    return 0;
}

/* A pairing link has its credential behind '#', or in older servers behind '?'. */
static int take_link(struct login *l, struct errmsg *msg)
{
    char base[PROMPT_SECRET_BYTES];
    const char *token = strstr(l->credential, "token=");
    char *path = strstr(l->credential, "/pair");

    if (!t3_url_is_meant(l->credential)) {
        return 0;
    }
    if (token == NULL || path == NULL || token < path) {
        return err_set(msg, ERR_PERM, "a pairing link ends in /pair#token= and the credential");
    }
    (void)snprintf(base, sizeof(base), "%.*s", (int)(path - l->credential), l->credential);
    if (!t3_url_same(base, l->site.url)) {
        return err_set(msg, ERR_PERM, "that pairing link is of another server than %.150s",
                       l->site.url);
    }
    token += strlen("token=");
    size_t len = strcspn(token, "&#");

    memmove(l->credential, token, len);
    explicit_bzero(l->credential + len, sizeof(l->credential) - len);
    return len > 0 ? 0 : err_set(msg, ERR_PERM, "there is no credential in that pairing link");
}

static int ask_credential(struct login *l, struct errmsg *msg)
{
    int code = prompt_secret("Pairing credential: ", "a pairing credential", l->credential, msg);

    if (code == ERR_INVALID) {
        code = ERR_PERM; /* what was typed is wrong, not how the command was called */
    }
    return code == 0 ? take_link(l, msg) : code;
}

/* How the server's owner will know the session. */
static void name_client(char out[static 128])
{
    char host[100] = "";

    if (gethostname(host, sizeof(host) - 1) != 0) {
        host[0] = '\0';
    }
    (void)snprintf(out, 128, "arbe%s%s", host[0] == '\0' ? "" : " on ", host);
}

/* A token that is not kept is ended; `msg` says why it is not, and how that went is added. */
static void end_token(const struct login *l, struct errmsg *msg)
{
    char id[T3_SESSION_ID_BYTES] = "ID";
    struct errmsg why = {{0}};
    int code = t3_session_revoke(&l->site, l->grant.token, &why);
    size_t len = strlen(msg->text);

    len = len > sizeof(msg->text) - ENDING_BYTES ? sizeof(msg->text) - ENDING_BYTES : len;
    if (code == 0 || code == ERR_GONE) {
        (void)snprintf(msg->text + len, sizeof(msg->text) - len, "; its session was ended");
        return;
    }
    (void)t3_session_id(l->grant.token, id); /* else it is to be looked up */
    (void)snprintf(msg->text + len, sizeof(msg->text) - len,
                   "; end its session: t3 auth session revoke %.60s", id);
}

static int exchange(struct login *l, struct errmsg *msg)
{
    char client[128];

    name_client(client);
    int code = t3_session_exchange(&l->site, l->credential, client, &l->grant, msg);

    explicit_bzero(l->credential, sizeof(l->credential));
    if (code != 0) {
        return code == ERR_INVALID ? ERR_PERM : code; /* the credential's fault, not the call's */
    }
    code = t3_session_check(&l->site, l->grant.token, l->grant.scope, msg);
    if (code != 0) {
        end_token(l, msg);
    }
    return code;
}

/* The token first: a section whose token is not there would be no use. */
static int keep(struct login *l, struct errmsg *msg)
{
    char relative[LABEL_BYTES + sizeof(T3_TOKEN_DIR "/")];
    char path[T3_HOSTS_PATH_BYTES];
    const struct profile *section = l->kept.section;
    bool same = section != NULL && t3_url_same(section->url, l->site.url);

    t3_hosts_file_token_path(l->kept.path, l->label, path);
    (void)snprintf(relative, sizeof(relative), T3_TOKEN_DIR "/%s", l->label);
    int code = private_file_write(path, "the token", slice_of(l->grant.token), msg);

    if (code == 0) {
        const struct t3_section fresh = {
            .label = l->label,
            .url = l->site.url,
            .secret_file = relative,
            .ca_file = l->ca[0] != '\0' ? l->ca
                       : same           ? section->ca_file
                                        : NULL,
        };

        code = t3_hosts_file_put(l->kept.path, &fresh, msg);
    }
    if (code == 0) {
        (void)snprintf(l->kept.token, sizeof(l->kept.token), "%s", path);
    } else {
        end_token(l, msg);
    }
    return code;
}

/* The token that is replaced is of no use to anybody. */
static void end_token_before(const struct t3_call *call, const struct login *l)
{
    char id[T3_SESSION_ID_BYTES] = "ID";
    struct errmsg msg = {{0}};

    if (l->before[0] == '\0' || strcmp(l->before, l->grant.token) == 0) {
        return;
    }
    int code = t3_session_revoke(&l->site, l->before, &msg);

    if (code != 0 && code != ERR_GONE) {
        (void)t3_session_id(l->before, id); /* else it is to be looked up */
        t3_call_tell(call,
                     "the token that was here before is still good; to end it, on the "
                     "server's machine: t3 auth session revoke %s",
                     id);
    }
}

static void print_login(struct t3_call *call, const struct login *l)
{
    struct out *o = &call->out;

    if (!call->set.json) {
        t3_call_tell(call, "%s: a token that can only read is kept in %s", l->label, l->kept.token);
        if (l->grant.expires_in_s >= DAY_S) {
            t3_call_tell(call, "it is good for %u days", (unsigned)(l->grant.expires_in_s / DAY_S));
        }
        return;
    }
    out_add(o, SLICE("{\"host\":"));
    out_add_string(o, slice_of(l->label));
    out_add(o, SLICE(",\"url\":"));
    out_add_string(o, shown_url(l->site.url));
    out_add(o, SLICE(",\"scope\":\"" T3_SCOPE "\",\"expires_in\":"));
    if (l->grant.expires_in_s == 0) {
        out_add(o, SLICE("null"));
    } else {
        out_format(o, "%u", (unsigned)l->grant.expires_in_s);
    }
    out_add(o, SLICE(",\"server_version\":"));
    out_add_string(o, slice_of(l->server.version));
    out_add(o, SLICE(",\"token_file\":"));
    out_add_string(o, slice_of(l->kept.token));
    out_add(o, SLICE("}\n"));
    out_end_message(o);
}

static void read_token_before(struct login *l)
{
    struct slice token = {"", 0};
    struct errmsg msg;

    if (l->kept.section != NULL && l->kept.token[0] != '\0' &&
        t3_url_same(l->kept.section->url, l->site.url) &&
        secret_read_long(l->kept.token, l->before, sizeof(l->before), &token, &msg) == 0) {
        l->before[token.len] = '\0';
    } else {
        l->before[0] = '\0';
    }
}

static int run_login(struct t3_call *call, struct login *l, struct errmsg *msg)
{
    int code = kept_open(call, &l->kept, msg);

    if (code == 0 && call->set.ca_file != NULL && realpath(call->set.ca_file, l->ca) == NULL) {
        code = err_set(msg, ERR_IO, "cannot open --ca-file %.150s: %s", call->set.ca_file,
                       strerror(errno));
    }
    code = code == 0 && call->set.host != NULL ? check_label(call->set.host, msg) : code;
    code = code == 0 ? t3_session_describe(&l->site, &l->server, msg) : code;
    code = code == 0 ? choose_label(call, l, msg) : code;
    code = code == 0 ? ask_credential(l, msg) : code;
    if (code != 0) {
        return code;
    }
    read_token_before(l);
    code = exchange(l, msg);
    return code == 0 ? keep(l, msg) : code;
}

int t3_login(struct t3_call *call)
{
    struct login l = {.site = {.url = call->operands[0],
                               .ca_file = call->set.ca_file,
                               .timeout_ms = (int)call->set.timeout_ms}};
    struct errmsg msg = {{0}};
    int code = t3_url_check(l.site.url, &msg);

    if (code == 0 && t3_url_is_exposed(l.site.url) && !call->set.allow_http) {
        return t3_call_refuse(call,
                              "%.100s is not encrypted: others on the way could read credential "
                              "and token; use https, or --allow-http where only you are on the way",
                              l.site.url);
    }
    code = code == 0 ? run_login(call, &l, &msg) : code;
    if (code == 0) {
        end_token_before(call, &l);
        print_login(call, &l);
    } else if (interrupt_signal() != 0 && l.grant.token[0] != '\0') {
        t3_call_tell(call, "%s", msg.text); /* which session is to be ended */
    }
    profiles_finish(&l.kept.file);
    explicit_bzero(&l, sizeof(l));
    return code == 0 ? 0 : t3_call_fail(call, code, &msg);
}

/* ------------------------------------------------------------------ logout */

/* What became of it. */
struct logout {
    struct kept kept;
    bool ended;   /* the server does not take the token any more */
    bool removed; /* it is not here any more */
    char id[T3_SESSION_ID_BYTES];
};

static int end_session(const struct t3_call *call, struct logout *l, struct errmsg *msg)
{
    struct t3_site site = {.url = l->kept.section->url,
                           .ca_file = l->kept.ca[0] == '\0' ? NULL : l->kept.ca,
                           .timeout_ms = (int)call->set.timeout_ms};
    char memory[T3_READER_TOKEN_BYTES + 1];
    struct slice token = {"", 0};
    int code = secret_read_long(l->kept.token, memory, T3_READER_TOKEN_BYTES, &token, msg);

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
        t3_call_tell(call, "%s was not written by arbe t3 login, and stays", l->kept.token);
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
    int exit = t3_call_fail(call, code == ERR_INVALID ? ERR_PERM : code, &msg);

    if (interrupt_signal() == 0) {
        t3_call_tell(call, "to end it, on the server's machine: t3 auth session revoke %s",
                     l->id[0] == '\0' ? "ID, whose ID t3 auth session list tells" : l->id);
        t3_call_tell(call, l->removed ? "it is not here any more"
                                      : "it stays here as it was; --forget removes it");
    }
    return exit;
}

int t3_logout(struct t3_call *call)
{
    struct logout l = {.ended = false};
    struct errmsg why = {{0}};
    struct errmsg msg = {{0}};
    int code = kept_open(call, &l.kept, &msg);

    code = code == 0 ? kept_find(&l.kept, call->operands[0], &msg) : code;
    if (code == 0 && l.kept.section == NULL) {
        code = err_set(&msg, ERR_INVALID, "there is no host \"%.40s\" in %.150s", call->operands[0],
                       l.kept.path);
    }
    if (code != 0) {
        profiles_finish(&l.kept.file);
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
    } else if (exit == 0) {
        t3_call_tell(call,
                     had ? "%s: its token was ended, and is not here any more"
                         : "%s had no token, and is not here any more",
                     l.kept.section->name);
    }
    profiles_finish(&l.kept.file);
    return exit;
}
