/* /proc/self/stat is one line of fields between spaces (proc(5)). The second one is the program's
 * name in parentheses, which may contain both spaces and parentheses: what follows the last one is
 * counted. */
#include "serve/process.h"

#include "base/number.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STAT_BYTES_MAX 1024
#define FIELD_STATE    3 /* proc(5) counts from 1; the first behind the name */
#define FIELD_THREADS  20
#define FIELD_VSIZE    23
#define FIELD_RSS      24

bool process_parse_stat(struct slice text, uint64_t page_bytes, struct process_stats *stats)
{
    struct process_stats found = *stats;
    size_t at = text.len;
    struct slice field;

    while (at > 0 && text.ptr[at - 1] != ')') {
        at--;
    }
    if (at == 0 || at == text.len || text.ptr[at] != ' ') {
        return false;
    }
    struct slice rest = {text.ptr + at + 1, text.len - at - 1};

    for (unsigned i = FIELD_STATE; i <= FIELD_RSS; i++) {
        uint64_t value = 0;

        if (!slice_split(&rest, ' ', &field)) {
            return false;
        }
        bool number = number_parse_u64(field, UINT64_MAX, false, &value);

        if (i == FIELD_THREADS && number) {
            found.threads = value;
        } else if (i == FIELD_VSIZE && number) {
            found.virtual_bytes = value;
        } else if (i == FIELD_RSS && number) {
            found.resident_bytes = value * page_bytes;
        } else if (i == FIELD_THREADS || i == FIELD_VSIZE || i == FIELD_RSS) {
            return false;
        }
    }
    *stats = found;
    return true;
}

static void read_stat(struct process_stats *stats)
{
    char text[STAT_BYTES_MAX];
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        return;
    }
    ssize_t len = read(fd, text, sizeof(text));

    (void)close(fd); /* was only read */
    if (len > 0) {
        /* A text that is not understood leaves zeros, which says as much. */
        (void)process_parse_stat((struct slice){text, (size_t)len}, (uint64_t)sysconf(_SC_PAGESIZE),
                                 stats);
    }
}

/* One after the other, where the kernel does not count. */
static uint64_t list_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    uint64_t count = 0;

    if (dir == NULL) {
        return 0;
    }
    while (readdir(dir) != NULL) {
        count++;
    }
    (void)closedir(dir);              /* was only read */
    return count > 3 ? count - 3 : 0; /* ".", ".." and the listing's own */
}

/* Since Linux 6.2 the size of the directory is how many are open. */
static uint64_t count_fds(void)
{
    struct stat info;

    if (stat("/proc/self/fd", &info) == 0 && info.st_size > 0) {
        return (uint64_t)info.st_size;
    }
    return list_fds();
}

void process_read(struct process_stats *ret_stats)
{
    struct process_stats stats = {.fds = count_fds()};
    struct timespec cpu = {0};
    struct rlimit limit;

    read_stat(&stats);
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) == 0) {
        stats.cpu_us = (uint64_t)cpu.tv_sec * 1000000 + (uint64_t)cpu.tv_nsec / 1000;
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        stats.fds_max = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : (uint64_t)limit.rlim_cur;
    }
    *ret_stats = stats;
}
