/* Read as a configuration file is. */
#include "cli/login.h"

#include "base/limits.h"
#include "cli/config_file.h"
#include "cli/config_home.h"
#include "cli/private_file.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the lines say, borrowed from their text. */
struct lines {
    const char *url;
    const char *key;
    const char *house;
};

static const struct flag fields[] = {
    {"url", "URL", "", "", NULL, FLAG_TEXT, offsetof(struct lines, url), 0, 0},
    {"key", "KEY", "", "", NULL, FLAG_TEXT, offsetof(struct lines, key), 0, 0},
    {"house", "ID", "", "", NULL, FLAG_TEXT, offsetof(struct lines, house), 0, 0},
};

int login_locate(char out[static LOGIN_PATH_BYTES], struct errmsg *msg)
{
    if (!config_home_path("login", out, LOGIN_PATH_BYTES)) {
        return err_set(msg, ERR_INVALID,
                       "there is no place for a login: neither HOME nor XDG_CONFIG_HOME is set");
    }
    if (strlen(out) > LOGIN_PATH_BYTES - sizeof(".new") - 1) {
        return err_set(msg, ERR_INVALID, "the path of the login is too long: %.100s...", out);
    }
    return 0;
}

/* Whether the file is there and nobody else's: 1, 0 when it is not there, or an error. */
static int check_file(const char *path, struct errmsg *msg)
{
    struct stat info;

    if (stat(path, &info) != 0) {
        if (errno == ENOENT || errno == ENOTDIR) {
            return 0;
        }
        return err_set(msg, ERR_IO, "cannot look at the login %.100s: %s", path, strerror(errno));
    }
    if (info.st_uid != geteuid()) {
        return err_set(msg, ERR_PERM, "the login %.100s belongs to another user", path);
    }
    if ((info.st_mode & 077) != 0) {
        return err_set(msg, ERR_PERM,
                       "the login %.80s may be read or written by others (mode %o); run: chmod 600 "
                       "%.80s",
                       path, (unsigned)info.st_mode & 0777u, path);
    }
    return 1;
}

static int take(const char *path, const struct lines *lines, struct login *login,
                struct errmsg *msg)
{
    if (strlen(lines->url) >= sizeof(login->url) || strlen(lines->key) >= sizeof(login->key) ||
        strlen(lines->house) >= sizeof(login->house)) {
        return err_set(msg, ERR_INVALID, "the login %.100s holds a value that is too long", path);
    }
    (void)snprintf(login->url, sizeof(login->url), "%s", lines->url);
    (void)snprintf(login->key, sizeof(login->key), "%s", lines->key);
    (void)snprintf(login->house, sizeof(login->house), "%s", lines->house);
    return 0;
}

int login_read(const char *path, struct login *ret_login, struct errmsg *msg)
{
    struct flag_origin origins[ARRAY_COUNT(fields)] = {{FLAG_FROM_DEFAULT, 0}};
    struct lines lines = {"", "", ""};
    const struct flag_table table = {fields, ARRAY_COUNT(fields), &lines, origins};
    struct login login = {.url = ""};
    char *text = NULL;
    int code = check_file(path, msg);

    if (code == 1) {
        code = config_file_read(path, "credentials' file", &text, msg);
        if (code == 0) {
            code = config_file_apply(path, text, &table, msg);
        }
        if (code == 0) {
            code = take(path, &lines, &login, msg);
        }
        if (text != NULL) {
            explicit_bzero(text, CONFIG_FILE_BYTES_MAX);
            free(text);
        }
    }
    if (code == 0) {
        *ret_login = login;
    }
    return code;
}

int login_write(const char *path, const struct login *login, struct errmsg *msg)
{
    char text[LOGIN_URL_BYTES + LOGIN_KEY_BYTES + LOGIN_HOUSE_BYTES + 64];
    int len = snprintf(text, sizeof(text), "url = %s\nkey = %s\n%shouse = %s\n", login->url,
                       login->key, login->house[0] == '\0' ? "# " : "", login->house);
    int code = private_file_write(path, "the login", (struct slice){text, (size_t)len}, msg);

    explicit_bzero(text, sizeof(text));
    return code;
}

int login_remove(const char *path, bool *ret_there, struct errmsg *msg)
{
    return private_file_remove(path, "the login", ret_there, msg);
}
