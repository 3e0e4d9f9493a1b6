/* Which server a stream is on, and how to be let in: from flags, profiles and the environment.
 *
 * A stream is given by its name or by its whole URL. A name lies below, whichever is there first:
 * --url, --profile, ARBE_URL, ARBE_PROFILE, the profile "default", the address at which
 * `arbe streams` listens when nobody says otherwise. A secret is sent only to the URL that it
 * belongs to: that of the profile, the one that --secret-file was given with, or for that of
 * ARBE_SECRET_FILE the one that the environment names. */
#ifndef ARBE_CLI_STREAM_SITE_H
#define ARBE_CLI_STREAM_SITE_H

#include "arbe/stream_client.h"
#include "base/err.h"
#include "cli/secret.h"

#include <stdbool.h>

#define SITE_URL_BYTES_MAX  2048u
#define SITE_PATH_BYTES_MAX 4096u
#define SITE_URL_DEFAULT    "http://127.0.0.1:4437/v1/stream/"

/* What the command line says; NULL: nothing. */
struct site_wish {
    const char *stream; /* name or URL; NULL: the server itself is meant */
    const char *url;
    const char *profile;
    const char *secret_file;
    const char *ca_file;
    bool foreign; /* a second server, which a secret of the environment is not meant for */
};

/* Plain memory; holds a secret. */
struct site {
    char url[SITE_URL_BYTES_MAX];      /* base URL, with a slash at its end */
    char name[SITE_URL_BYTES_MAX];     /* of the stream below it; empty when none was wished */
    char secret[SECRET_BYTES_MAX + 1]; /* empty: none */
    char ca_file[SITE_PATH_BYTES_MAX]; /* empty: the system's certificates */
};

/* Finds out. ERR_INVALID for what makes no sense, ERR_PERM, ERR_IO, ERR_NOMEM for files; each with
 * a sentence. Reads files. */
int site_choose(const struct site_wish *wish, struct site *ret_site, struct errmsg *msg) MUST_USE;

#endif
