/* The name of the new file begins with a dot, so that it is never that of another such file. */
#include "cli/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
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

/* 0 or an errno. */
static int write_new(const char *path, struct slice text)
{
    (void)unlink(path); /* of one that died; its mode may be another */
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int error = fd >= 0 && write_text(fd, text) ? 0 : errno;

    if (fd >= 0 && close(fd) != 0 && error == 0) {
        error = errno;
    }
    return error;
}

int private_file_write(const char *path, const char *what, struct slice text, struct errmsg *msg)
{
    char beside[PRIVATE_PATH_BYTES + sizeof("/..new")];
    const char *slash = strrchr(path, '/');
    int dir_len = slash == NULL ? 1 : (int)(slash - path);

    if (strlen(path) >= PRIVATE_PATH_BYTES) {
        return err_set(msg, ERR_INVALID, "the path of %s is too long: %.100s...", what, path);
    }
    (void)snprintf(beside, sizeof(beside), "%.*s", dir_len, slash == NULL ? "." : path);
    make_directories(beside);
    (void)snprintf(beside, sizeof(beside), "%.*s/.%s.new", dir_len, slash == NULL ? "." : path,
                   slash == NULL ? path : slash + 1);
    int error = write_new(beside, text);

    if (error == 0 && rename(beside, path) != 0) {
        error = errno;
    }
    if (error != 0) {
        (void)unlink(beside); /* it is of no use */
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
