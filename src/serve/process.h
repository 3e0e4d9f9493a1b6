/* What the kernel says of this process, for /metrics. Reads /proc, which waits for no disk. */
#ifndef ARBE_SERVE_PROCESS_H
#define ARBE_SERVE_PROCESS_H

#include "base/slice.h"

#include <stdbool.h>

/* 0 where the kernel does not tell. */
struct process_stats {
    uint64_t cpu_us; /* user and system, all threads */
    uint64_t resident_bytes;
    uint64_t virtual_bytes;
    uint64_t threads;
    uint64_t fds;     /* open descriptors */
    uint64_t fds_max; /* that may be open; UINT64_MAX: any number */
};

/* As of now. Any thread. */
void process_read(struct process_stats *ret_stats);

/* Takes threads and memory from the text of /proc/self/stat; the other fields are left alone. False
 * for anything else than such a text. */
bool process_parse_stat(struct slice text, uint64_t page_bytes, struct process_stats *stats);

#endif
