/* Who one is to which server: what `arbe auth login` found good, kept in the file "login" of the
 * user's arbe files (config_home.h) with mode 0600, since it holds an API key. Lines of url = URL,
 * key = KEY, house = ID. A file that others may read or write, or that is another user's, is
 * refused. The file is replaced as a whole, so that a reader sees the old or the new one. */
#ifndef ARBE_CLI_LOGIN_H
#define ARBE_CLI_LOGIN_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define LOGIN_URL_BYTES   2048u
#define LOGIN_KEY_BYTES   1024u
#define LOGIN_HOUSE_BYTES 128u
#define LOGIN_PATH_BYTES  4096u

/* Plain memory; holds a secret. What is not there is empty; without a URL there is no login. */
struct login {
    char url[LOGIN_URL_BYTES];     /* without a slash at its end */
    char key[LOGIN_KEY_BYTES];     /* API key; goes to that URL only */
    char house[LOGIN_HOUSE_BYTES]; /* id of the selected one */
};

/* Where the file is. ERR_INVALID when the environment names no place, or too long a one. */
int login_locate(char out[static LOGIN_PATH_BYTES], struct errmsg *msg) MUST_USE;

/* Reads it; a file that is not there is an empty login. ERR_PERM, ERR_INVALID, ERR_IO, ERR_NOMEM,
 * with a sentence. */
int login_read(const char *path, struct login *ret_login, struct errmsg *msg) MUST_USE;

/* Replaces it, and makes its directory where there is none. ERR_IO with a sentence. Blocks on the
 * disk. */
int login_write(const char *path, const struct login *login, struct errmsg *msg) MUST_USE;

/* Removes it; false in ret_there: there was none. ERR_IO with a sentence. */
int login_remove(const char *path, bool *ret_there, struct errmsg *msg) MUST_USE;

#endif
