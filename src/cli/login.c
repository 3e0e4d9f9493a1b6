/* Written beside itself and renamed, so that a crash or a full disk costs nobody a key. */
#include "cli/login.h"

#include "base/limits.h"
#include "cli/config_file.h"
#include "cli/config_home.h"

#include <errno.h>
#include <fcntl.h>
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
        code = config_file_read(path, &text, msg);
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

/* The directory of the file, and the one above, which a new home may lack as well. */
static void make_directories(const char *path)
{
    char dir[LOGIN_PATH_BYTES];
    char *slash;

    (void)snprintf(dir, sizeof(dir), "%s", path);
    slash = strrchr(dir, '/');
    *slash = '\0';
    if (mkdir(dir, 0700) != 0 && errno == ENOENT && (slash = strrchr(dir, '/')) != NULL &&
        slash != dir) {
        *slash = '\0';
        (void)mkdir(dir, 0700); /* opening the file tells what failed */
        *slash = '/';
        (void)mkdir(dir, 0700);
    }
}

static bool write_text(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t wrote = write(fd, text, len);

        if (wrote < 0 && errno != EINTR) {
            return false;
        }
        text += wrote > 0 ? wrote : 0;
        len -= wrote > 0 ? (size_t)wrote : 0;
    }
    return fsync(fd) == 0;
}

int login_write(const char *path, const struct login *login, struct errmsg *msg)
{
    char beside[LOGIN_PATH_BYTES + 8];
    char text[LOGIN_URL_BYTES + LOGIN_KEY_BYTES + LOGIN_HOUSE_BYTES + 64];
    int len = snprintf(text, sizeof(text), "url = %s\nkey = %s\n%shouse = %s\n", login->url,
                       login->key, login->house[0] == '\0' ? "# " : "", login->house);

    make_directories(path);
    (void)snprintf(beside, sizeof(beside), "%s.new", path);
    (void)unlink(beside); /* of one that died; its mode may be another */
    int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool good = fd >= 0 && write_text(fd, text, (size_t)len);
    int error = errno;

    if (fd >= 0 && close(fd) != 0 && good) {
        good = false;
        error = errno;
    }
    explicit_bzero(text, sizeof(text));
    if (good && rename(beside, path) != 0) {
        good = false;
        error = errno;
    }
    if (!good) {
        (void)unlink(beside); /* it is of no use */
        return err_set(msg, ERR_IO, "cannot write the login %.100s: %s", path, strerror(error));
    }
    return 0;
}

int login_remove(const char *path, bool *ret_there, struct errmsg *msg)
{
    bool there = unlink(path) == 0;

    if (!there && errno != ENOENT && errno != ENOTDIR) {
        return err_set(msg, ERR_IO, "cannot remove the login %.100s: %s", path, strerror(errno));
    }
    *ret_there = there;
    return 0;
}
