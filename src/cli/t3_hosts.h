/* Which T3 Code servers to watch, and with which token each: what --t3 names, and the hosts' file,
 * which has the form of profiles (profile.h): a section for each host with url, secret-file,
 * ca-file and allow-http. It is "t3" among the user's arbe files (config_home.h) unless --t3-hosts
 * says where, or ARBE_T3_HOSTS_FILE, which the user's own commands heed. `arbe t3 login` writes it.
 * Tokens stand in files of their own, mode 0600.
 *
 * A token goes only to the URL that it was meant for: HOST=URL takes that of the file's HOST if the
 * URLs agree, else it is refused with a sentence. ARBE_T3_TOKEN is for exactly one host. None goes
 * where it can be read on the way (t3_url_is_exposed) unless that is allowed. */
#ifndef ARBE_CLI_T3_HOSTS_H
#define ARBE_CLI_T3_HOSTS_H

#include "arbe/t3_reader.h"
#include "base/buf.h"
#include "cli/flags.h"
#include "cli/profile.h"
#include "t3/watch.h"

#define T3_HOSTS_PATH_BYTES 4096u

/* A server to watch. Texts are owned by the list. */
struct t3_host {
    char *label;
    char *url;
    char *token_file; /* NULL: none */
    char *ca_file;    /* NULL: the system's certificates */
    char *token;      /* of ARBE_T3_TOKEN; NULL: the file says it */
    char *file;       /* that --t3-hosts named, for sentences; NULL: it was not given */
    bool allow_http;  /* the token may go where it can be read on the way */
};

struct t3_hosts {
    struct t3_host *list; /* `count` of them: in the order of --t3, or of the file */
    size_t count;
};

/* What the flags --t3 and --t3-hosts say. */
struct t3_hosts_flags {
    struct flag_list t3; /* HOST=URL each; HOST alone names one of the file */
    const char *t3_from; /* what a wrong one is told to be of; NULL: --t3 */
    const char *file;    /* NULL: the user's */
    bool all_of_file;    /* those of the file too that --t3 does not name; always without --t3 */
    uint64_t allow_http; /* a switch: for each of them, whatever the file says */
};

/* The form of the hosts' file. */
extern const struct profile_form t3_hosts_form;

/* What a command of the user's takes for --t3-hosts: that, or ARBE_T3_HOSTS_FILE; NULL: neither.
 * arbe serve, whose board others see, must not ask this. */
const char *t3_hosts_choose(const char *flag);

/* Puts them together. A file that is not there has no hosts, unless it was named. No host at
 * all is good: count is 0. Two names of one server are not, nor a token that others could read on
 * the way. ERR_INVALID, ERR_PERM, ERR_IO, ERR_NOMEM, with a sentence that names flag or file, and
 * what would be accepted. */
int t3_hosts_load(const struct t3_hosts_flags *flags, struct t3_hosts *ret_hosts,
                  struct errmsg *msg) MUST_USE;

/* The same for a single one, which `word` names: HOST of the file, HOST=URL, or a URL, which need
 * not be in the file; if one of the file's hosts has it, it is that host. No flag of `flags` names
 * a host. */
int t3_hosts_load_one(const char *word, const struct t3_hosts_flags *flags,
                      struct t3_hosts *ret_hosts, struct errmsg *msg) MUST_USE;

/* 0, or ERR_INVALID with a sentence that says what to do: a token for a host of that URL could be
 * read on the way, and nobody allowed it. `label` may be NULL. */
int t3_hosts_check_way(const char *label, const char *url, bool allowed,
                       struct errmsg *msg) MUST_USE;

/* Writes where the file is; `file` as in the flags. ERR_INVALID when there is no
 * place, or it is too long. */
int t3_hosts_locate(const char *file, char out[static T3_HOSTS_PATH_BYTES],
                    struct errmsg *msg) MUST_USE;

/* 0 for what can be a label: 1 to 255 bytes of UTF-8 without spaces, '/', '=', '[', ']' and control
 * characters. Else ERR_INVALID with a sentence. */
int t3_hosts_check_label(struct slice label, struct errmsg *msg) MUST_USE;

/* Frees and wipes. Accepts a zeroed struct. */
void t3_hosts_finish(struct t3_hosts *hosts);

/* Writes the token of a host, NUL-terminated: empty where it has none. ERR_PERM, ERR_INVALID,
 * ERR_IO, with a sentence. May block for the file. The caller wipes it. */
int t3_host_token(const struct t3_host *host, char token[static T3_READER_TOKEN_BYTES],
                  struct errmsg *msg) MUST_USE;

/* Appends the command that signs in to a host, so that the token is where it is looked for;
 * over plain http with the flag that allows it, as it is allowed to whoever is told. `file`: as
 * above. */
void t3_host_login_words(struct buf *out, const char *label, const char *url, const char *file);

/* Sets what a host says of a reader: token (re-read from its file at each connection), CA. `host`
 * must outlive the reader. */
void t3_hosts_fill(const struct t3_host *host, struct t3_reader_options *options);

/* Adds all to a watch. As t3_watch_add. */
int t3_hosts_watch(const struct t3_hosts *hosts, struct t3_watch *watch,
                   struct errmsg *msg) MUST_USE;

#endif
