/* The name of a new file begins with a dot, so that it is never that of another such file, and has
 * the process in it, so that one that died is known by that. */
#include "cli/private_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The directory of the file, and those above: a new home lacks them all. */
static void make_directories(char *dir)
{
    char *slash = strrchr(dir, '/');

    if (mkdir(dir, 0700) != 0 && errno == ENOENT && slash != NULL && slash != dir) {
        *slash = '\0';
        make_directories(dir);
        *slash = '/';
        (void)mkdir(dir, 0700); /* opening the file tells what failed */
    }
}

static bool write_text(int fd, struct slice text)
{
    while (text.len > 0) {
        ssize_t wrote = write(fd, text.ptr, text.len);

        if (wrote < 0 && errno != EINTR) {
            return false;
        }
        text.ptr += wrote > 0 ? wrote : 0;
        text.len -= wrote > 0 ? (size_t)wrote : 0;
    }
    return fsync(fd) == 0;
}

#define BESIDE_BYTES (PRIVATE_PATH_BYTES + 40u)

/* A path in its two parts. */
struct parts {
    char dir[PRIVATE_PATH_BYTES];
    const char *name;
};

static int split(const char *path, const char *what, struct parts *parts, struct errmsg *msg)
{
    const char *slash = strrchr(path, '/');
    size_t dir_len = slash == NULL ? 1 : slash == path ? 1 : (size_t)(slash - path);

    if (strlen(path) >= PRIVATE_PATH_BYTES) {
        return err_set(msg, ERR_INVALID, "the path of %s is too long: %.100s...", what, path);
    }
    memcpy(parts->dir, slash == NULL ? "." : path, dir_len);
    parts->dir[dir_len] = '\0';
    parts->name = slash == NULL ? path : slash + 1;
    return 0;
}

/* ------------------------------------------------------------------ writing */

/* Whether that is the name of a new file of a process that is no more. */
static bool is_left(const char *entry, const char *name)
{
    size_t len = strlen(name);
    char *end = NULL;

    if (entry[0] != '.' || strncmp(entry + 1, name, len) != 0 || entry[len + 1] != '.') {
        return false;
    }
    long pid = strtol(entry + len + 2, &end, 10);

    return pid > 0 && pid <= INT32_MAX && end[0] == '.' && strlen(end) == sizeof(".XXXXXX") - 1 &&
           kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

/* Removes what those left who died while they wrote: there may be a secret in it. */
static void remove_left(const struct parts *parts)
{
    DIR *dir = opendir(parts->dir);
    struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (is_left(entry->d_name, parts->name)) {
            (void)unlinkat(dirfd(dir), entry->d_name, 0); /* or the next one does */
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

/* Makes a file with a name that no other has, mode 0600. 0 or an errno. */
static int write_new(char *beside, struct slice text)
{
    int fd = mkostemp(beside, O_CLOEXEC);
    int error = fd >= 0 && write_text(fd, text) ? 0 : errno;

    if (fd < 0) {
        beside[0] = '\0';
    } else if (close(fd) != 0 && error == 0) {
        error = errno;
    }
    return error;
}

int private_file_write(const char *path, const char *what, struct slice text, struct errmsg *msg)
{
    char beside[BESIDE_BYTES];
    struct parts parts;
    int code = split(path, what, &parts, msg);

    if (code != 0) {
        return code;
    }
    make_directories(parts.dir);
    remove_left(&parts);
    (void)snprintf(beside, sizeof(beside), "%s/.%s.%ld.XXXXXX", parts.dir, parts.name,
                   (long)getpid());
    int error = write_new(beside, text);

    if (error == 0 && rename(beside, path) != 0) {
        error = errno;
    }
    if (error != 0) {
        if (beside[0] != '\0') {
            (void)unlink(beside); /* it is of no use */
        }
        return err_set(msg, ERR_IO, "cannot write %s %.100s: %s", what, path, strerror(error));
    }
    return 0;
}

int private_file_remove(const char *path, const char *what, bool *ret_there, struct errmsg *msg)
{
    bool there = unlink(path) == 0;

    if (!there && errno != ENOENT && errno != ENOTDIR) {
        return err_set(msg, ERR_IO, "cannot remove %s %.100s: %s", what, path, strerror(errno));
    }
    *ret_there = there;
    return 0;
}

/* ------------------------------------------------------------------ one at a time */

/* Whether the file that was locked is still the one of that name: who lets go removes it. */
static bool is_current(int fd, const char *beside)
{
    struct stat open_one;
    struct stat named;

    return fstat(fd, &open_one) == 0 && lstat(beside, &named) == 0 &&
           open_one.st_ino == named.st_ino && open_one.st_dev == named.st_dev;
}

/* 0, EWOULDBLOCK or another errno. Who comes too late for a file that goes has to come again. */
static int lock_beside(const char *beside, int *ret_fd)
{
    int fd = open(beside, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0) {
        return errno;
    }
    int error = flock(fd, LOCK_EX | LOCK_NB) != 0 ? errno
                : is_current(fd, beside)          ? 0
                                                  : EWOULDBLOCK;

    if (error == 0) {
        *ret_fd = fd;
    } else {
        (void)close(fd); /* nothing was written to it */
    }
    return error;
}

static void name_lock(const struct parts *parts, char out[static BESIDE_BYTES])
{
    (void)snprintf(out, BESIDE_BYTES, "%s/.%s.lock", parts->dir, parts->name);
}

int private_file_lock(const char *path, const char *what, int *ret_fd, struct errmsg *msg)
{
    char beside[BESIDE_BYTES];
    struct parts parts;
    int code = split(path, what, &parts, msg);

    if (code != 0) {
        return code;
    }
    make_directories(parts.dir);
    name_lock(&parts, beside);
    int error = lock_beside(beside, ret_fd);

    if (error == EWOULDBLOCK) {
        return err_set(msg, ERR_AGAIN, "%s %.100s is being changed by another command", what, path);
    }
    return error == 0
               ? 0
               : err_set(msg, ERR_IO, "cannot lock %s %.100s: %s", what, path, strerror(error));
}

void private_file_unlock(const char *path, int fd)
{
    char beside[BESIDE_BYTES];
    struct parts parts;
    struct errmsg msg;

    if (split(path, "", &parts, &msg) == 0) {
        name_lock(&parts, beside);
        (void)unlink(beside); /* while it is ours; one that stays does no harm */
    }
    (void)close(fd); /* nothing was written to it */
}

int private_dir_check(const char *dir, const char *what, bool link, struct errmsg *msg)
{
    struct stat info;

    if ((link ? stat(dir, &info) : lstat(dir, &info)) != 0) {
        return errno == ENOENT
                   ? 0
                   : err_set(msg, ERR_IO, "cannot look at the directory of %s %.100s: %s", what,
                             dir, strerror(errno));
    }
    if (!S_ISDIR(info.st_mode)) {
        return err_set(msg, ERR_PERM, "the directory of %s, %.100s, is %s", what, dir,
                       S_ISLNK(info.st_mode) ? "a link, which may lead anywhere" : "none");
    }
    if (info.st_uid != geteuid() && info.st_uid != 0) {
        return err_set(msg, ERR_PERM, "the directory of %s, %.100s, belongs to another user", what,
                       dir);
    }
    if ((info.st_mode & 022) != 0) {
        return err_set(msg, ERR_PERM,
                       "the directory of %s may be written by others (mode %o); run: chmod go-w "
                       "%.120s",
                       what, (unsigned)info.st_mode & 07777u, dir);
    }
    return 0;
}
