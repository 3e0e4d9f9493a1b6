/* The file comes to be by a rename, so that a crash leaves a whole one or none. */
#include "app/sandbox_key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 1200u

/* The names that it has to do with. */
struct paths {
    char dir[PATH_BYTES];
    char file[PATH_BYTES + 16];
    char fresh[PATH_BYTES + 24];
};

static int failed(struct errmsg *msg, const char *what, const char *path)
{
    int error = errno;

    return err_set(msg, err_from_errno(error), "cannot %s %.160s: %s", what, path, strerror(error));
}

static int judge(int fd, const char *path, const unsigned char *key, ssize_t len,
                 struct errmsg *msg)
{
    struct stat status;
    unsigned char more;

    if (fstat(fd, &status) != 0 || len < 0) {
        return failed(msg, "read", path);
    }
    if ((status.st_mode & 077) != 0) {
        return err_set(msg, ERR_MISMATCH,
                       "%.160s may be read by others; take their rights away (chmod 600) if nobody "
                       "has, or remove it: tokens that were given out then end",
                       path);
    }
    if (len != (ssize_t)SANDBOX_KEY_BYTES || key == NULL || read(fd, &more, 1) != 0) {
        return err_set(msg, ERR_MISMATCH,
                       "%.160s is damaged: it should have %u bytes; remove it to get a new one, "
                       "which ends the tokens that were given out",
                       path, SANDBOX_KEY_BYTES);
    }
    return 0;
}

/* ERR_NOTFOUND when there is none. */
static int load(const char *path, unsigned char *ret_key, struct errmsg *msg)
{
    unsigned char key[SANDBOX_KEY_BYTES];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0) {
        return errno == ENOENT ? ERR_NOTFOUND : failed(msg, "open", path);
    }
    int code = judge(fd, path, key, read(fd, key, sizeof(key)), msg);

    (void)close(fd); /* it was only read */
    if (code == 0) {
        memcpy(ret_key, key, sizeof(key));
    }
    explicit_bzero(key, sizeof(key));
    return code;
}

static int sync_dir(const char *path, struct errmsg *msg)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || fsync(fd) != 0) {
        int code = failed(msg, "sync", path);

        if (fd >= 0) {
            (void)close(fd); /* the first error counts */
        }
        return code;
    }
    (void)close(fd); /* it was only synced */
    return 0;
}

static int write_fresh(const char *path, const unsigned char *key, struct errmsg *msg)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0) {
        return failed(msg, "make", path);
    }
    if (write(fd, key, SANDBOX_KEY_BYTES) != (ssize_t)SANDBOX_KEY_BYTES || fsync(fd) != 0) {
        int code = failed(msg, "write", path);

        (void)close(fd); /* the first error counts */
        return code;
    }
    return close(fd) == 0 ? 0 : failed(msg, "write", path);
}

static int make(const struct paths *p, unsigned char *ret_key, struct errmsg *msg)
{
    unsigned char key[SANDBOX_KEY_BYTES];

    if (mkdir(p->dir, 0700) != 0 && errno != EEXIST) {
        return failed(msg, "make", p->dir);
    }
    if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key)) {
        return err_set(msg, ERR_IO, "the kernel has no random numbers");
    }
    int code = write_fresh(p->fresh, key, msg);

    if (code == 0 && rename(p->fresh, p->file) != 0) {
        code = failed(msg, "rename", p->fresh);
    }
    code = code == 0 ? sync_dir(p->dir, msg) : code;
    if (code == 0) {
        memcpy(ret_key, key, sizeof(key));
    }
    explicit_bzero(key, sizeof(key));
    return code;
}

int sandbox_key_load(const char *data_dir, unsigned char ret_key[static SANDBOX_KEY_BYTES],
                     struct errmsg *msg)
{
    struct paths p;

    if ((size_t)snprintf(p.dir, sizeof(p.dir), "%s/keys", data_dir) >= sizeof(p.dir)) {
        return err_set(msg, ERR_INVALID, "the path of the data directory is too long");
    }
    (void)snprintf(p.file, sizeof(p.file), "%s/sandbox.key", p.dir);
    (void)snprintf(p.fresh, sizeof(p.fresh), "%s/sandbox.key.new", p.dir);
    int code = load(p.file, ret_key, msg);

    return code == ERR_NOTFOUND ? make(&p, ret_key, msg) : code;
}
