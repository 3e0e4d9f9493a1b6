/* What is kept here of a T3 host: its section of the hosts' file, its token, its CA. */
#ifndef ARBE_CLI_T3_KEPT_H
#define ARBE_CLI_T3_KEPT_H

#include "cli/t3_call.h"

/* A host of the file, or one that is to be. */
struct t3_kept {
    char path[T3_HOSTS_PATH_BYTES]; /* of the file */
    struct profiles file;
    const struct profile *section;   /* NULL: it has none */
    char token[T3_HOSTS_PATH_BYTES]; /* where its token is; empty: nowhere */
    char ca[T3_HOSTS_PATH_BYTES];    /* empty: the system's */
    int lock;                        /* of the file, where `locked` */
    bool locked;
};

/* Reads the file; no host is looked at yet. As profiles_read. */
int t3_kept_open(const struct t3_call *call, struct t3_kept *kept, struct errmsg *msg) MUST_USE;

/* Waits, and says so, until nobody else changes the file, keeps it so until t3_kept_finish, and
 * reads it again: to be found and judged once more. As t3_hosts_file_lock; ERR_CONFLICT after
 * --timeout, or a signal, which end the wait. */
int t3_kept_lock(const struct t3_call *call, struct t3_kept *kept, struct errmsg *msg) MUST_USE;

/* Frees it, and lets others change the file. Accepts a zeroed one. */
void t3_kept_finish(struct t3_kept *kept);

/* Finds the section of a label, and where its files are. As profile_file_path. */
int t3_kept_find(struct t3_kept *kept, const char *label, struct errmsg *msg) MUST_USE;

/* A URL of the file, or, where there may be a secret in it since it is none of T3 (t3_url_check),
 * words that say so. Borrowed from it. */
struct slice t3_kept_shown_url(const char *url);

#endif
