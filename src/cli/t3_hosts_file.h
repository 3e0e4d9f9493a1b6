/* Changing the hosts' file (t3_hosts.h) and the tokens beside it. What a section does not say
 * stays as it is, byte for byte. Files are replaced as private_file.h does it; a link to the file
 * is followed, also when there is no file yet. */
#ifndef ARBE_CLI_T3_HOSTS_FILE_H
#define ARBE_CLI_T3_HOSTS_FILE_H

#include "base/err.h"
#include "cli/t3_hosts.h"

/* What a section says. */
struct t3_section {
    const char *label;
    const char *url;
    const char *secret_file; /* NULL: none */
    const char *ca_file;     /* NULL: none */
    bool allow_http;
};

#define T3_TOKEN_DIR "t3-tokens" /* beside the file */

/* 0 for a label whose token can have a file: at most 200 bytes, no dot first. Else ERR_INVALID
 * with a sentence. The label is one (t3_hosts_check_label). */
int t3_hosts_file_check_label(const char *label, struct errmsg *msg) MUST_USE;

/* Whether file and tokens would stand where nobody else can put or swap files: 0, ERR_PERM with a
 * sentence, ERR_IO. */
int t3_hosts_file_check_place(const char *path, struct errmsg *msg) MUST_USE;

/* Has the file to itself until t3_hosts_file_unlock; whoever changes it does. ERR_AGAIN: somebody
 * else does at the time. Errors of the place as above; ERR_IO. Does not wait. */
int t3_hosts_file_lock(const char *path, int *ret_fd, struct errmsg *msg) MUST_USE;

/* Lets others; `path` as it was locked. */
void t3_hosts_file_unlock(const char *path, int fd);

/* 0 for what can be the value of `name` in the file: without control characters, so that it stays
 * one line, and without a space first or last, which would not be read back. Else ERR_INVALID with
 * a sentence. */
int t3_hosts_file_check_value(const char *name, const char *value, struct errmsg *msg) MUST_USE;

/* Writes section in, in the place of the one with that label or at the end. ERR_INVALID when the
 * file becomes too long, or for a value that cannot stand there; ERR_IO, ERR_NOMEM; with a
 * sentence. */
int t3_hosts_file_put(const char *path, const struct t3_section *section,
                      struct errmsg *msg) MUST_USE;

/* Takes the section with that label out, if there is one, and the blank line that was put in with
 * it. As above. */
int t3_hosts_file_remove(const char *path, const char *label, struct errmsg *msg) MUST_USE;

/* Writes the path of the token that login keeps for a label. */
void t3_hosts_file_token_path(const char *path, const char *label,
                              char out[static T3_HOSTS_PATH_BYTES]);

#endif
