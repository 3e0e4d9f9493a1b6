/* arbe t3 login. The hosts' file is looked at before a credential is asked for, and the server
 * before it is sent: what can be refused is refused while nothing is spent. From then on nobody
 * else changes the file, until the token that is not in it any more is ended. */
#include "cli/t3_kept.h"

#include "base/limits.h"
#include "cli/interrupt.h"
#include "cli/private_file.h"
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

#define LABEL_BYTES 256u /* with the NUL; as of a host of the file */
#define NAMES_BYTES 120u /* of hosts in a sentence */
#define DAY_S       86400u
#define SPENT_S     60u /* of its time, at most, until the server tells how much is left */

/* What a login is about. Holds secrets. */
struct login {
    struct t3_site site;
    char ca[PATH_MAX]; /* of --ca-file, from the root; empty: it was not given */
    struct t3_kept kept;
    struct t3_descriptor server;
    char label[LABEL_BYTES]; /* empty: not chosen yet */
    bool renews;             /* the host of that label has this URL already */
    bool asked;              /* for a token: what became of it is told after a signal, too */
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

/* How many hosts of the file have the URL, and their names for a sentence. */
static size_t find_same(const struct login *l, char names[static NAMES_BYTES])
{
    size_t count = 0;
    size_t len = 0;

    names[0] = '\0';
    for (size_t i = 0; i < l->kept.file.count; i++) {
        const struct profile *one = &l->kept.file.list[i];

        if (t3_url_same(one->url, l->site.url)) {
            int more = snprintf(names + len, NAMES_BYTES - len, "%s\"%.40s\"",
                                count == 0 ? "" : " and ", one->name);

            len = more < 0 || (size_t)more >= NAMES_BYTES - len ? NAMES_BYTES - 1
                                                                : len + (size_t)more;
            count++;
        }
    }
    return count;
}

/* Sees to it that the label can be had. */
static int settle_label(const struct t3_call *call, struct login *l, struct errmsg *msg)
{
    int code = check_label(l->label, msg);

    code = code == 0 ? t3_kept_find(&l->kept, l->label, msg) : code;
    if (code != 0) {
        return code;
    }
    const struct profile *section = l->kept.section;

    if (section != NULL && !t3_url_same(section->url, l->site.url) && !call->set.replace) {
        struct slice url = t3_kept_shown_url(section->url);

        return err_set(msg, ERR_CONFLICT,
                       "the host \"%.40s\" is %.*s already; call this one otherwise with --host, "
                       "or take its place with --replace",
                       l->label, (int)(url.len > 80 ? 80 : url.len), url.ptr);
    }
    if (section == NULL && l->kept.file.count == PROFILES_MAX) {
        return err_set(msg, ERR_CONFLICT, "there are %u hosts in %.100s, which is all it takes",
                       PROFILES_MAX, l->kept.path);
    }
    l->renews = section != NULL && t3_url_same(section->url, l->site.url);
    return l->renews && section->ca_file != NULL
               ? t3_hosts_file_check_value("ca-file", section->ca_file, msg) /* it is kept */
               : 0;
}

/* The server may be in the file by another URL. It stays that one's, with its token, unless the
 * host is to take its own place. */
static int check_other_urls(const struct t3_call *call, const struct login *l, struct errmsg *msg)
{
    const char *host = call->set.replace ? call->set.host : NULL;

    for (size_t i = 0; i < l->kept.file.count; i++) {
        const struct profile *one = &l->kept.file.list[i];

        if (t3_url_same_server(one->url, l->site.url) &&
            (host == NULL || strcmp(one->name, host) != 0)) {
            return err_set(msg, ERR_CONFLICT,
                           "this server is \"%.40s\" already, and under two names the board would "
                           "show each thread twice; give the URL that it has there, %.80s",
                           one->name, one->url);
        }
    }
    return 0;
}

/* What the user or the file calls it; else it stays for the server to say. A server has one name,
 * or the board would show each of its threads twice. */
static int choose_label(const struct t3_call *call, struct login *l, struct errmsg *msg)
{
    const char *host = call->set.host;
    char names[NAMES_BYTES];
    size_t count = find_same(l, names);

    if (host == NULL && count > 1) {
        return err_set(msg, ERR_INVALID, "%s have this URL: --host says which of them is meant",
                       names);
    }
    for (size_t i = 0; host == NULL && i < l->kept.file.count; i++) {
        const struct profile *one = &l->kept.file.list[i];

        host = t3_url_same(one->url, l->site.url) ? one->name : NULL;
    }
    int code = count == 0 ? check_other_urls(call, l, msg) : 0;

    if (code != 0 || host == NULL) {
        return code;
    }
    (void)snprintf(l->label, sizeof(l->label), "%.255s", host);
    code = settle_label(call, l, msg);
    if (code == 0 && count > 0 && !l->renews) {
        code = err_set(msg, ERR_CONFLICT,
                       "this URL is that of %s already, and under two names the board would show "
                       "each thread twice; leave --host out, or end it with arbe t3 logout",
                       names);
    }
    return code;
}

/* A pairing link has its credential behind '#', or in older servers behind '?'. */
static int take_link(struct login *l, struct errmsg *msg)
{
    char base[PROMPT_SECRET_BYTES];
    const char *token;

    if (!t3_url_is_meant(l->credential)) {
        return 0;
    }
    if (!t3_url_pairing_base(l->credential, base, sizeof(base), &token)) {
        return err_set(msg, ERR_PERM, "a pairing link ends in /pair#token= and the credential");
    }
    if (!t3_url_same_server(base, l->site.url)) {
        return err_set(msg, ERR_PERM, "that pairing link is of %.150s, and not of %.150s", base,
                       l->site.url);
    }
    size_t len = strcspn(token, "&#");

    memmove(l->credential, token, len);
    explicit_bzero(l->credential + len, sizeof(l->credential) - len);
    return len > 0 ? 0 : err_set(msg, ERR_PERM, "there is no credential in that pairing link");
}

static int ask_credential(struct login *l, struct errmsg *msg)
{
    int code = prompt_secret("Pairing code or link: ",
                             "a pairing code or link of T3 Code (t3 auth pairing create makes one)",
                             l->credential, msg);

    if (code == ERR_INVALID) {
        return ERR_PERM; /* no credential; a server would answer that as well */
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

static int exchange(struct login *l, struct errmsg *msg)
{
    char client[128];

    name_client(client);
    l->asked = true;
    int code = t3_session_exchange(&l->site, l->credential, client, &l->grant, msg);

    explicit_bzero(l->credential, sizeof(l->credential));
    if (code != 0) {
        return code;
    }
    code = t3_session_check(&l->site, l->grant.token, l->grant.scope, msg);
    if (code != 0) {
        t3_session_drop(&l->site, l->grant.token, msg);
    }
    return code;
}

/* Where the token is good that was here before, if it may go there. */
static int find_site_before(const struct t3_call *call, const struct login *l,
                            struct t3_site *ret_site, struct errmsg *msg)
{
    const struct profile *section = l->kept.section;

    *ret_site = l->site;
    if (l->renews) {
        return 0;
    }
    ret_site->url = section->url;
    ret_site->ca_file = l->kept.ca[0] == '\0' ? NULL : l->kept.ca;
    return t3_url_check(section->url) != NULL
               ? err_set(msg, ERR_INVALID, "the URL is not good")
               : t3_hosts_check_way(NULL, section->url,
                                    call->set.allow_http != 0 || section->allow_http, msg);
}

/* The token that is replaced is of no use to anybody. */
static void end_token_before(const struct t3_call *call, const struct login *l)
{
    char id[T3_SESSION_ID_BYTES] = "ID";
    struct t3_site site;
    struct errmsg msg = {{0}};

    if (l->before[0] == '\0' || strcmp(l->before, l->grant.token) == 0) {
        return;
    }
    int code = find_site_before(call, l, &site, &msg);

    code = code == 0 ? t3_session_revoke(&site, l->before, &msg) : code;

    if (code != 0 && code != ERR_GONE) {
        (void)t3_session_id(l->before, id); /* else it is to be looked up */
        t3_call_tell(call,
                     "the token that was here before is still good; to end it, on %s machine: "
                     "t3 auth session revoke %s",
                     l->renews ? "the server's" : "that other server's", id);
    }
}

/* The section was not written: the token's file has what was in it, or is not there, as before.
 * False: what was in it is lost. */
static bool put_back(const struct login *l, const char *path)
{
    struct errmsg msg; /* what failed first is told */
    bool there;

    if (l->before[0] != '\0' && strcmp(path, l->kept.token) == 0) {
        return private_file_write(path, "the token", slice_of(l->before), &msg) == 0;
    }
    (void)!private_file_remove(path, "the token", &there, &msg);
    return true;
}

/* The token first: a section whose token is not there would be no use. */
static int keep(const struct t3_call *call, struct login *l, struct errmsg *msg)
{
    char relative[LABEL_BYTES + sizeof(T3_TOKEN_DIR "/")];
    char path[T3_HOSTS_PATH_BYTES];
    const struct profile *section = l->kept.section;

    t3_hosts_file_token_path(l->kept.path, l->label, path);
    (void)snprintf(relative, sizeof(relative), T3_TOKEN_DIR "/%s", l->label);
    int code = private_file_write(path, "the token", slice_of(l->grant.token), msg);

    if (code == 0) {
        const struct t3_section fresh = {
            .label = l->label,
            .url = l->site.url,
            .secret_file = relative,
            .ca_file = l->ca[0] != '\0' ? l->ca
                       : l->renews      ? section->ca_file
                                        : NULL,
            .allow_http = t3_url_is_exposed(l->site.url), /* or it would not have come here */
        };

        code = t3_hosts_file_put(l->kept.path, &fresh, msg);
        if (code != 0 && !put_back(l, path)) {
            t3_call_tell(call, "the token that was here before is lost: it cannot be put back");
            end_token_before(call, l);
        }
    }
    if (code == 0) {
        (void)snprintf(l->kept.token, sizeof(l->kept.token), "%s", path);
    } else {
        t3_session_drop(&l->site, l->grant.token, msg);
    }
    return code;
}

/* How the board is shown that has the host. */
static void tell_next(const struct t3_call *call, const struct login *l)
{
    char usual[T3_HOSTS_PATH_BYTES];
    struct errmsg msg;
    bool other = t3_hosts_locate(t3_hosts_choose(NULL), usual, &msg) != 0 ||
                 strcmp(usual, l->kept.path) != 0;

    t3_call_tell(call, "arbe board%s%s shows its threads", other ? " --t3-hosts " : "",
                 other ? l->kept.path : "");
}

static void print_login(struct t3_call *call, const struct login *l)
{
    struct out *o = &call->out;

    if (!call->set.json) {
        t3_call_tell(call, "%s: %s token that can only read is kept in %s", l->label,
                     l->renews ? "renewed: a" : "a", l->kept.token);
        unsigned days = (unsigned)((l->grant.expires_in_s + SPENT_S) / DAY_S);

        if (days > 0) {
            t3_call_tell(call, "it is good for %u day%s", days, days == 1 ? "" : "s");
        }
        tell_next(call, l);
        return;
    }
    out_add(o, SLICE("{\"host\":"));
    out_add_string(o, slice_of(l->label));
    out_add(o, SLICE(",\"url\":"));
    out_add_string(o, t3_kept_shown_url(l->site.url));
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
    out_add(o, l->renews ? SLICE(",\"renewed\":true}\n") : SLICE(",\"renewed\":false}\n"));
    out_end_message(o);
}

/* The token that this login puts another in the place of: of the host that it renews, or of the
 * file that it writes. */
static void read_token_before(struct login *l)
{
    char ours[T3_HOSTS_PATH_BYTES];
    struct slice token = {"", 0};
    struct errmsg msg;

    t3_hosts_file_token_path(l->kept.path, l->label, ours);
    if (l->kept.token[0] != '\0' && (l->renews || strcmp(ours, l->kept.token) == 0) &&
        secret_read_long(l->kept.token, l->before, sizeof(l->before), &token, &msg) == 0) {
        l->before[token.len] = '\0';
    } else {
        l->before[0] = '\0';
    }
}

/* Whether credential and token may go out: now, or by what the file says of the URL. */
static int check_way(const struct t3_call *call, const struct login *l, struct errmsg *msg)
{
    bool allowed = call->set.allow_http != 0 || !t3_url_is_exposed(l->site.url);

    for (size_t i = 0; !allowed && i < l->kept.file.count; i++) {
        const struct profile *one = &l->kept.file.list[i];

        allowed = one->allow_http && t3_url_same(one->url, l->site.url);
    }
    return allowed ? 0
                   : err_set(msg, ERR_INVALID,
                             "%.100s is not encrypted: others on the way could read credential and "
                             "token; use https, or --allow-http where only you are on the way",
                             l->site.url);
}

/* Where --ca-file is, as the hosts' file will say it. */
static int find_ca(const struct t3_call *call, struct login *l, struct errmsg *msg)
{
    if (call->set.ca_file == NULL) {
        return 0;
    }
    if (realpath(call->set.ca_file, l->ca) == NULL) {
        return err_set(msg, ERR_IO, "cannot open --ca-file %.150s: %s", call->set.ca_file,
                       strerror(errno));
    }
    return t3_hosts_file_check_value("ca-file", l->ca, msg);
}

static int run_login(struct t3_call *call, struct login *l, struct errmsg *msg)
{
    int code = t3_kept_open(call, &l->kept, msg);

    code = code == 0 ? find_ca(call, l, msg) : code;
    code = code == 0 ? t3_hosts_file_check_place(l->kept.path, msg) : code;
    code = code == 0 && call->set.host != NULL ? check_label(call->set.host, msg) : code;
    code = code == 0 ? check_way(call, l, msg) : code;
    code = code == 0 ? choose_label(call, l, msg) : code;
    code = code == 0 ? t3_session_describe(&l->site, &l->server, msg) : code;
    if (code == 0 && l->label[0] == '\0') {
        make_label(l);
        code = settle_label(call, l, msg);
    }
    code = code == 0 ? ask_credential(l, msg) : code;
    code = code == 0 ? t3_kept_lock(call, &l->kept, msg) : code;
    code = code == 0 ? choose_label(call, l, msg) : code; /* the file may have changed */
    code = code == 0 ? settle_label(call, l, msg) : code;
    if (code != 0) {
        return code;
    }
    read_token_before(l);
    code = exchange(l, msg);
    return code == 0 ? keep(call, l, msg) : code;
}

int t3_login(struct t3_call *call)
{
    struct login l = {.site = {.url = call->operands[0],
                               .ca_file = call->set.ca_file,
                               .timeout_ms = (int)call->set.timeout_ms}};
    struct errmsg msg = {{0}};
    char base[T3_URL_BYTES];
    const char *token; /* of a link: it is not looked at here */
    bool link = t3_url_pairing_base(l.site.url, base, sizeof(base), &token);
    const char *why = t3_url_check(link ? base : l.site.url);

    if (why != NULL) {
        return t3_call_refuse(call, "that is no URL of a T3 server: %s", why);
    }
    if (link) {
        return t3_call_refuse(
            call, "that is a pairing link: give %.150s, and paste the link when asked", base);
    }
    int code = run_login(call, &l, &msg);

    if (code == 0) {
        end_token_before(call, &l);
        print_login(call, &l);
    } else if (interrupt_signal() != 0 && l.asked) {
        t3_call_tell(call, "%s", msg.text); /* which session is to be ended */
    }
    t3_kept_finish(&l.kept);
    explicit_bzero(&l, sizeof(l));
    return code == 0 ? 0 : t3_call_fail(call, code, &msg);
}
