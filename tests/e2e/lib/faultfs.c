/* A library to preload (LD_PRELOAD) that makes file calls of a real server fail or wait, as a file
 * named by FAULTFS_CTL says at the time of each call. It holds lines of the form
 *
 *     CALL PATH-PART ACTION COUNT TAG
 *
 * CALL is sync, write, read or alloc; a call matches when its file's path contains PATH-PART ("*":
 * any). ACTION is an errno name (EIO, ENOSPC), or "hold": the call waits until the line is gone, or
 * "short": half of the bytes. COUNT is how many calls it applies to (0: all). TAG makes lines
 * unequal, so that counts start anew. Each match is noted as a line in FAULTFS_CTL.hits, which a
 * test can wait for. Sockets and pipes have no path and never match. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define LINES_MAX      64
#define LINE_BYTES_MAX 256

struct seen {
    char line[LINE_BYTES_MAX];
    long used;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct seen seen[LINES_MAX];

enum verdict {
    PASS,
    FAIL,
    SHORT
};

static long count_use(const char *line)
{
    for (int i = 0; i < LINES_MAX; i++) {
        if (seen[i].line[0] == '\0') {
            snprintf(seen[i].line, sizeof(seen[i].line), "%s", line);
        }
        if (strcmp(seen[i].line, line) == 0) {
            return seen[i].used++;
        }
    }
    return 0;
}

static size_t read_control(char *text, size_t size)
{
    const char *path = getenv("FAULTFS_CTL");
    long fd = path == NULL ? -1 : syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    long n = syscall(SYS_read, fd, text, size - 1);
    syscall(SYS_close, fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

static void note_hit(const char *call, const char *path, const char *action)
{
    char name[4096];
    char line[4500];
    snprintf(name, sizeof(name), "%s.hits", getenv("FAULTFS_CTL"));
    long fd = syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0) {
        int len = snprintf(line, sizeof(line), "%s %s %s\n", call, path, action);
        syscall(SYS_write, fd, line, len);
        syscall(SYS_close, fd);
    }
}

/* Finds the first line that applies to the call; copies its action. */
static int find_line(const char *call, const char *path, char *ret_action, int counted)
{
    char text[4096];
    char *rest = text;
    int found = 0;
    if (read_control(text, sizeof(text)) == 0) {
        return 0;
    }
    pthread_mutex_lock(&lock);
    for (char *line = strsep(&rest, "\n"); line != NULL && !found; line = strsep(&rest, "\n")) {
        char name[32];
        char part[128];
        char action[32];
        long count = 0;
        if (sscanf(line, "%31s %127s %31s %ld", name, part, action, &count) != 4 ||
            strcmp(name, call) != 0 || (strcmp(part, "*") != 0 && strstr(path, part) == NULL)) {
            continue;
        }
        if (counted && count > 0 && count_use(line) >= count) {
            continue;
        }
        snprintf(ret_action, 32, "%s", action);
        found = 1;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static int errno_of(const char *action)
{
    return strcmp(action, "ENOSPC") == 0 ? ENOSPC : strcmp(action, "EDQUOT") == 0 ? EDQUOT : EIO;
}

static enum verdict judge(const char *call, int fd)
{
    char link[64];
    char path[4096];
    char action[32];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof(path) - 1);
    if (len <= 0 || path[0] != '/' || strncmp(path, "/dev/", 5) == 0) {
        return PASS;
    }
    path[len] = '\0';
    if (!find_line(call, path, action, 1)) {
        return PASS;
    }
    note_hit(call, path, action);
    if (strcmp(action, "hold") == 0) {
        while (find_line(call, path, action, 0) && strcmp(action, "hold") == 0) {
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        }
        return PASS;
    }
    if (strcmp(action, "short") == 0) {
        return SHORT;
    }
    errno = errno_of(action);
    return FAIL;
}

static void *next_call(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

#define NEXT(type, name)                   \
    static __typeof__(type) real;          \
    if (real == NULL) {                    \
        *(void **)&real = next_call(name); \
    }

#define HALF(verdict, n) ((verdict) == SHORT && (n) > 1 ? (n) / 2 : (n))

#define SYNC(name)                                        \
    int name(int fd)                                      \
    {                                                     \
        NEXT(int (*)(int), #name)                         \
        return judge("sync", fd) == FAIL ? -1 : real(fd); \
    }
SYNC(fsync)
SYNC(fdatasync)

#define WRITE_AT(name)                                             \
    ssize_t name(int fd, const void *buf, size_t n, off_t at)      \
    {                                                              \
        NEXT(ssize_t (*)(int, const void *, size_t, off_t), #name) \
        enum verdict v = judge("write", fd);                       \
        return v == FAIL ? -1 : real(fd, buf, HALF(v, n), at);     \
    }
WRITE_AT(pwrite)
WRITE_AT(pwrite64)

#define WRITEV_AT(name)                                                 \
    ssize_t name(int fd, const struct iovec *iov, int n, off_t at)      \
    {                                                                   \
        NEXT(ssize_t (*)(int, const struct iovec *, int, off_t), #name) \
        enum verdict v = judge("write", fd);                            \
        if (v == SHORT && iov[0].iov_len > 1) {                         \
            struct iovec half = {iov[0].iov_base, iov[0].iov_len / 2};  \
            return real(fd, &half, 1, at);                              \
        }                                                               \
        return v == FAIL ? -1 : real(fd, iov, n, at);                   \
    }
WRITEV_AT(pwritev)
WRITEV_AT(pwritev64)

ssize_t write(int fd, const void *buf, size_t n)
{
    NEXT(ssize_t(*)(int, const void *, size_t), "write")
    enum verdict v = judge("write", fd);
    return v == FAIL ? -1 : real(fd, buf, HALF(v, n));
}

#define READ_AT(name)                                          \
    ssize_t name(int fd, void *buf, size_t n, off_t at)        \
    {                                                          \
        NEXT(ssize_t (*)(int, void *, size_t, off_t), #name)   \
        enum verdict v = judge("read", fd);                    \
        return v == FAIL ? -1 : real(fd, buf, HALF(v, n), at); \
    }
READ_AT(pread)
READ_AT(pread64)

#define READ_CHK(name, plain)                                        \
    ssize_t name(int fd, void *buf, size_t n, off_t at, size_t size) \
    {                                                                \
        (void)size;                                                  \
        return plain(fd, buf, n, at);                                \
    }
READ_CHK(__pread_chk, pread)
READ_CHK(__pread64_chk, pread64)

#define READV_AT(name)                                                  \
    ssize_t name(int fd, const struct iovec *iov, int n, off_t at)      \
    {                                                                   \
        NEXT(ssize_t (*)(int, const struct iovec *, int, off_t), #name) \
        return judge("read", fd) == FAIL ? -1 : real(fd, iov, n, at);   \
    }
READV_AT(preadv)
READV_AT(preadv64)

ssize_t preadv2(int fd, const struct iovec *iov, int n, off_t at, int flags)
{
    NEXT(ssize_t(*)(int, const struct iovec *, int, off_t, int), "preadv2")
    return judge("read", fd) == FAIL ? -1 : real(fd, iov, n, at, flags);
}

#define SENDFILE(name)                                         \
    ssize_t name(int out, int in, off_t *at, size_t n)         \
    {                                                          \
        NEXT(ssize_t (*)(int, int, off_t *, size_t), #name)    \
        enum verdict v = judge("read", in);                    \
        return v == FAIL ? -1 : real(out, in, at, HALF(v, n)); \
    }
SENDFILE(sendfile)
SENDFILE(sendfile64)

#define FALLOCATE(name)                                                 \
    int name(int fd, int mode, off_t at, off_t n)                       \
    {                                                                   \
        NEXT(int (*)(int, int, off_t, off_t), #name)                    \
        return judge("alloc", fd) == FAIL ? -1 : real(fd, mode, at, n); \
    }
FALLOCATE(fallocate)
FALLOCATE(fallocate64)

#define POSIX_FALLOCATE(name)                                        \
    int name(int fd, off_t at, off_t n)                              \
    {                                                                \
        NEXT(int (*)(int, off_t, off_t), #name)                      \
        return judge("alloc", fd) == FAIL ? errno : real(fd, at, n); \
    }
POSIX_FALLOCATE(posix_fallocate)
POSIX_FALLOCATE(posix_fallocate64)

#define FTRUNCATE(name)                                       \
    int name(int fd, off_t n)                                 \
    {                                                         \
        NEXT(int (*)(int, off_t), #name)                      \
        return judge("alloc", fd) == FAIL ? -1 : real(fd, n); \
    }
FTRUNCATE(ftruncate)
FTRUNCATE(ftruncate64)
