/* The segments of a log, opened for reading alone and put in order: what recovery does, but nothing
 * is changed. For tools; the directory may belong to a running server that holds what they read
 * (hold.h). Blocks. */
#ifndef ARBE_LOG_LOG_FILES_H
#define ARBE_LOG_LOG_FILES_H

#include "base/err.h"
#include "log/chain.h"

/* What can be said of a file of the log. */
enum log_fact {
    LOG_FILE_UNFINISHED,  /* zeros: its making was cut short; no damage */
    LOG_FILE_DAMAGED,     /* its header does not prove itself */
    LOG_FILE_FOREIGN,     /* it belongs to another data directory */
    LOG_FILE_FORMAT,      /* of an unknown version */
    LOG_FILE_SHORT,       /* it holds fewer bytes than it was made with */
    LOG_FILE_UNREACHABLE, /* something is missing in front of it */
    LOG_FILE_UNREADABLE,  /* the disk or its rights do not let us */
};

/* Called for each fact. `name` is the file's, without the directory; `count` missing bytes of a
 * short one, the code of an unreadable one. */
typedef void (*log_fact_fn)(void *context, enum log_fact fact, const char *name, int64_t count);

struct log_files {
    struct segment_dir dir;
    struct chain chain;  /* the segments from `start` on; empty when none holds it */
    uint64_t file_bytes; /* of all segments */
    unsigned file_count;
};

/* Opens the segments in `path` (borrowed) that hold `start` and what follows. 0 also when there is
 * none; ERR_NOMEM, or the error of listing the directory. Finish it either way. */
int log_files_open(struct log_files *l, struct sys *sys, const char *path,
                   const uint8_t uuid[static 16], log_pos start, log_fact_fn fact,
                   void *context) MUST_USE;

/* Closes. */
void log_files_finish(struct log_files *l);

#endif
