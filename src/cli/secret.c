/* A secret that others can read is none, so such a file is refused rather than warned about. */
#include "cli/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int check_file(int fd, const char *path, struct errmsg *msg)
{
    struct stat info;

    if (fstat(fd, &info) != 0) {
        return err_set(msg, ERR_IO, "cannot look at the secret file %s: %s", path, strerror(errno));
    }
    if (!S_ISREG(info.st_mode)) {
        return err_set(msg, ERR_INVALID, "the secret file %s is not a file", path);
    }
    if ((info.st_mode & 077) != 0) {
        return err_set(msg, ERR_PERM,
                       "the secret file %s may be read or written by others (mode %o); run: chmod "
                       "600 %s",
                       path, (unsigned)info.st_mode & 0777u, path);
    }
    return 0;
}

/* What a header value can carry and no client trims away. */
static bool is_secret(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < 0x21 || text.ptr[i] > 0x7e) {
            return false;
        }
    }
    return text.len > 0;
}

static int read_all(int fd, const char *path, char *memory, size_t size, size_t *ret_len,
                    struct errmsg *msg)
{
    size_t len = 0;
    ssize_t got = 1;

    while (got > 0 && len < size) {
        got = read(fd, memory + len, size - len);
        if (got < 0 && errno == EINTR) {
            got = 1;
        } else if (got > 0) {
            len += (size_t)got;
        }
    }
    if (got < 0) {
        return err_set(msg, ERR_IO, "cannot read the secret file %s: %s", path, strerror(errno));
    }
    if (len == size) {
        return err_set(msg, ERR_INVALID, "the secret file %s is longer than %zu bytes", path,
                       size - 1);
    }
    *ret_len = len;
    return 0;
}

int secret_read_long(const char *path, char *memory, size_t size, struct slice *ret_secret,
                     struct errmsg *msg)
{
    size_t len = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0) {
        return err_set(msg, ERR_IO, "cannot open the secret file %s: %s", path, strerror(errno));
    }
    int code = check_file(fd, path, msg);

    if (code == 0) {
        code = read_all(fd, path, memory, size, &len, msg);
    }
    (void)close(fd); /* nothing was written to it */
    if (code != 0) {
        return code;
    }
    while (len > 0 && (memory[len - 1] == '\n' || memory[len - 1] == '\r')) {
        len--;
    }
    if (!is_secret((struct slice){memory, len})) {
        return err_set(msg, ERR_INVALID,
                       "the secret file %s must hold one line of visible ASCII without spaces",
                       path);
    }
    *ret_secret = (struct slice){memory, len};
    return 0;
}

int secret_read(const char *path, char memory[static SECRET_BYTES_MAX], struct slice *ret_secret,
                struct errmsg *msg)
{
    return secret_read_long(path, memory, SECRET_BYTES_MAX, ret_secret, msg);
}
