/* Profiles: where servers are and which file holds the secret of each, so that neither has to be
 * typed. A file of sections: "[NAME]", then lines of "url = URL", "secret-file = FILE" and
 * "ca-file = FILE". Blank lines and lines that begin with '#' say nothing. FILE may begin with "~/"
 * and is otherwise relative to the file of the profiles.
 *
 * Whoever can write that file can have secrets sent elsewhere, so it must belong to the user (or
 * root) and be writable by nobody else. It holds no secrets itself. */
#ifndef ARBE_CLI_PROFILE_H
#define ARBE_CLI_PROFILE_H

#include "base/err.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

#define PROFILES_MAX 256u

/* What else than profiles has this form. Static storage. */
struct profile_form {
    const char *file;    /* how sentences call it: "profiles' file" */
    const char *section; /* likewise: "profile" */
    bool has_allow_http; /* whether sections may say "allow-http = true" */
};

/* That of profiles. */
extern const struct profile_form profile_form;

/* Texts borrow from the struct profiles. */
struct profile {
    const char *name;
    const char *url;         /* never NULL once read */
    const char *secret_file; /* NULL: none */
    const char *ca_file;     /* NULL: the system's certificates */
    bool allow_http;         /* secrets may go where they can be read on the way */
    /* private */
    const char *allow_http_text; /* as the file says it; NULL: it does not */
};

struct profiles {
    struct profile *list; /* `count` of them, in the order of the file */
    size_t count;
    const struct profile_form *form; /* private */
    char *text;                      /* private */
};

/* Where the file is: ARBE_PROFILES, or arbe/profiles below XDG_CONFIG_HOME, or below ~/.config.
 * False when none of these is set. Cut when `size` is too small. */
bool profiles_locate(char *out, size_t size);

/* Reads the file at `path`. A file that is not there has no profiles. ERR_PERM when others may
 * write it, ERR_INVALID for lines that say nothing known, ERR_IO, ERR_NOMEM; each with a sentence
 * in the words of `form`. */
int profiles_read(const char *path, const struct profile_form *form, struct profiles *ret_profiles,
                  struct errmsg *msg) MUST_USE;

/* Frees. Accepts a zeroed struct. */
void profiles_finish(struct profiles *p);

/* The profile of that name; NULL when there is none. Lives as long as `p`. */
const struct profile *profiles_find(const struct profiles *p, const char *name);

/* The profile whose URL `url` is or lies below, the longest one; NULL when there is none. */
const struct profile *profiles_match(const struct profiles *p, const char *url);

/* Whether `url` is `base` or lies below it: "http://a/b/c" is below "http://a/b", but not
 * "http://a/bc". */
bool profile_url_covers(const char *base, const char *url);

/* Makes a path of what a profile says of a file: see above. ERR_INVALID when it is too long or
 * there is no HOME. */
int profile_file_path(const char *profiles_path, const char *file, char *out, size_t size,
                      struct errmsg *msg) MUST_USE;

#endif
