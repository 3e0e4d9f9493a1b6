/* The Linux calls behind struct sys. Descriptors are close-on-exec and never follow a link;
 * interrupted calls are repeated, short ones continued; files are private to the user. */
#include "log/sys.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"

#define FILE_MODE 0600
#define DIR_MODE  0700

/* 0 for a result of 0 or more, else the code for errno. */
static int result(int rc)
{
    return rc < 0 ? err_from_errno(errno) : 0;
}

static int posix_open(void *context, const char *path, bool create)
{
    (void)context;
    int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT | O_EXCL : 0);
    int fd;
    do {
        fd = open(path, flags, FILE_MODE);
    } while (fd < 0 && errno == EINTR);
    return fd < 0 ? err_from_errno(errno) : fd;
}

static int posix_open_read(void *context, const char *path)
{
    (void)context;
    int fd;
    do {
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    } while (fd < 0 && errno == EINTR);
    return fd < 0 ? err_from_errno(errno) : fd;
}

static void posix_close(void *context, int fd)
{
    (void)context;
    (void)close(fd); /* Whatever had to be durable was synced before; there is nobody to tell. */
}

/* Moves the vector forward by `written` bytes. `iov` is the caller's copy. */
static int advance_iov(struct iovec *iov, int count, size_t written)
{
    int done = 0;
    while (done < count && written >= iov[done].iov_len) {
        written -= iov[done].iov_len;
        done++;
    }
    if (done < count) {
        iov[done].iov_base = (char *)iov[done].iov_base + written;
        iov[done].iov_len -= written;
    }
    return done;
}

/* The rest of a write that came back short, for which a copy of the vector is worth its cost. */
static int continue_pwritev(int fd, const struct iovec *all, int count, uint64_t offset,
                            size_t written)
{
    struct iovec copy[1024];
    memcpy(copy, all, (size_t)count * sizeof(copy[0]));
    struct iovec *iov = copy;
    for (;;) {
        int done = advance_iov(iov, count, written);
        iov += done;
        count -= done;
        if (count == 0) {
            return 0;
        }
        offset += written;
        ssize_t n = pwritev(fd, iov, count, (off_t)offset);
        if (n < 0 && errno != EINTR) {
            return err_from_errno(errno);
        }
        if (n == 0) {
            return ERR_IO; /* A write that makes no progress would spin here for ever. */
        }
        written = n < 0 ? 0 : (size_t)n;
    }
}

static int posix_pwritev(void *context, int fd, const struct iovec *iov, int count, uint64_t offset)
{
    (void)context;
    assert(count > 0 && count <= 1024);
    size_t total = 0;
    for (int i = 0; i < count; i++) {
        total += iov[i].iov_len;
    }
    ssize_t n;
    do {
        n = pwritev(fd, iov, count, (off_t)offset);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return err_from_errno(errno);
    }
    if ((size_t)n == total) {
        return 0;
    }
    return n == 0 ? ERR_IO : continue_pwritev(fd, iov, count, offset, (size_t)n);
}

static int64_t posix_pread(void *context, int fd, void *buf, size_t len, uint64_t offset)
{
    (void)context;
    size_t done = 0;
    while (done < len) {
        ssize_t n = pread(fd, (char *)buf + done, len - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return err_from_errno(errno);
        }
        if (n == 0) {
            break;
        }
        done += (size_t)n;
    }
    return (int64_t)done;
}

static int posix_fdatasync(void *context, int fd)
{
    (void)context;
    return result(fdatasync(fd));
}

static int posix_allocate(void *context, int fd, uint64_t size_bytes)
{
    (void)context;
    int rc;
    do {
        rc = posix_fallocate(fd, 0, (off_t)size_bytes); /* returns errno, does not set it */
    } while (rc == EINTR);
    return rc == 0 ? 0 : err_from_errno(rc);
}

static int posix_truncate(void *context, int fd, uint64_t size_bytes)
{
    (void)context;
    int rc;
    do {
        rc = ftruncate(fd, (off_t)size_bytes);
    } while (rc < 0 && errno == EINTR);
    return result(rc);
}

static int64_t posix_size(void *context, int fd)
{
    (void)context;
    struct stat st;
    return fstat(fd, &st) < 0 ? err_from_errno(errno) : (int64_t)st.st_size;
}

static int64_t posix_free_bytes(void *context, const char *path)
{
    (void)context;
    struct statvfs st;
    if (statvfs(path, &st) < 0) {
        return err_from_errno(errno);
    }
    uint64_t bytes = (uint64_t)st.f_bavail * st.f_frsize;
    return bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX;
}

static int posix_rename(void *context, const char *from, const char *to)
{
    (void)context;
    return result(rename(from, to));
}

static int posix_unlink(void *context, const char *path)
{
    (void)context;
    return result(unlink(path));
}

static int posix_mkdir(void *context, const char *path)
{
    (void)context;
    if (mkdir(path, DIR_MODE) == 0) {
        return 0;
    }
    if (errno != EEXIST) {
        return err_from_errno(errno);
    }
    struct stat st;
    if (stat(path, &st) < 0) {
        return err_from_errno(errno);
    }
    return S_ISDIR(st.st_mode) ? 0 : ERR_FILEKIND;
}

static int posix_make_private(void *context, const char *path)
{
    (void)context;
    struct stat st;
    if (stat(path, &st) < 0) {
        return err_from_errno(errno);
    }
    mode_t mode = st.st_mode & 07777;
    bool wide = (mode & (S_IRWXG | S_IRWXO)) != 0;
    return wide && st.st_uid == geteuid() ? result(chmod(path, mode & ~(mode_t)(S_IRWXG | S_IRWXO)))
                                          : 0;
}

static int posix_sync_dir(void *context, const char *path)
{
    (void)context;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return err_from_errno(errno);
    }
    int rc = result(fsync(fd));
    (void)close(fd); /* The sync said all there is to say. */
    return rc;
}

static int posix_list_dir(void *context, const char *path, sys_entry_fn each, void *each_context)
{
    (void)context;
    DIR *dir = opendir(path);
    if (!dir) {
        return err_from_errno(errno);
    }
    int rc = 0;
    while (rc == 0) {
        errno = 0;
        struct dirent *entry = readdir(dir);
        if (!entry) {
            rc = errno ? err_from_errno(errno) : 0;
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            rc = each(each_context, entry->d_name);
        }
    }
    (void)closedir(dir); /* Read only. */
    return rc;
}

static int posix_lock(void *context, const char *path)
{
    (void)context;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
    if (fd < 0) {
        return err_from_errno(errno);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        int rc = errno == EWOULDBLOCK ? ERR_LOCKED : err_from_errno(errno);
        (void)close(fd); /* Nothing was written. */
        return rc;
    }
    return fd;
}

static int posix_lock_shared(void *context, const char *path)
{
    int fd = posix_open_read(context, path);
    if (fd < 0) {
        return fd;
    }
    if (flock(fd, LOCK_SH | LOCK_NB) < 0) {
        int rc = errno == EWOULDBLOCK ? ERR_LOCKED : err_from_errno(errno);
        (void)close(fd); /* Read only. */
        return rc;
    }
    return fd;
}

static int posix_catalog_commit(void *context)
{
    (void)context;
    return 0;
}

static int64_t posix_now_ms(void *context)
{
    (void)context;
    struct timespec ts;
    int rc = clock_gettime(CLOCK_REALTIME, &ts);
    assert(rc == 0);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static uint64_t posix_mono_us(void *context)
{
    (void)context;
    struct timespec ts;
    int rc = clock_gettime(CLOCK_MONOTONIC, &ts);
    assert(rc == 0);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static uint64_t posix_mono_ms(void *context)
{
    return posix_mono_us(context) / 1000;
}

static void posix_random(void *context, void *buf, size_t len)
{
    (void)context;
    size_t done = 0;
    while (done < len) {
        ssize_t n = getrandom((char *)buf + done, len - done, 0);
        assert(n > 0 ||
               errno == EINTR); /* The kernel's generator does not fail once it is there. */
        done += n > 0 ? (size_t)n : 0;
    }
}

void sys_posix_init(struct sys *sys)
{
    *sys = (struct sys){
        .open = posix_open,
        .open_read = posix_open_read,
        .close = posix_close,
        .pwritev = posix_pwritev,
        .pread = posix_pread,
        .fdatasync = posix_fdatasync,
        .allocate = posix_allocate,
        .truncate = posix_truncate,
        .size = posix_size,
        .free_bytes = posix_free_bytes,
        .rename = posix_rename,
        .unlink = posix_unlink,
        .mkdir = posix_mkdir,
        .make_private = posix_make_private,
        .sync_dir = posix_sync_dir,
        .list_dir = posix_list_dir,
        .lock = posix_lock,
        .lock_shared = posix_lock_shared,
        .catalog_commit = posix_catalog_commit,
        .now_ms = posix_now_ms,
        .mono_ms = posix_mono_ms,
        .mono_us = posix_mono_us,
        .random = posix_random,
    };
}
