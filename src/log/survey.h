/* What a data directory holds, by its catalog: a walk over streams, packs and notes, and a look at
 * the log's files. Nothing is written, and no data are read. Access to the directory is as for the
 * verifier (verify.h). Blocks; one thread. */
#ifndef ARBE_LOG_SURVEY_H
#define ARBE_LOG_SURVEY_H

#include "base/err.h"
#include "base/limits.h"
#include "log/record.h"
#include "log/sys.h"

#define SURVEY_LARGEST 10u /* streams that are named */

struct survey_stream {
    stream_id id;
    uint64_t bytes; /* of its own: without what a fork inherits */
    size_t name_len;
    char name[STREAM_NAME_BYTES_MAX];
};

struct survey {
    bool memory;           /* of memory mode */
    uint64_t streams;      /* kept for forks included, like in what follows */
    uint64_t forks;        /* of them */
    uint64_t soft_deleted; /* of them: kept for forks alone */
    uint64_t closed;       /* of them */
    uint64_t expiring;     /* of them */
    uint64_t stream_bytes; /* of their own */
    uint64_t extents;
    uint64_t producers;
    uint64_t notes;
    uint64_t note_bytes; /* keys and values */
    uint64_t packs;
    uint64_t pack_bytes;
    uint64_t live_bytes; /* of packs: what streams still need */
    uint64_t log_files;
    uint64_t log_file_bytes;
    log_pos checkpoint; /* the log is replayed from here */
    uint64_t page_bytes;
    uint64_t pages;      /* of the catalog */
    uint64_t free_pages; /* of them */
    uint64_t unreadable; /* entries that do not prove themselves */
    size_t largest_count;
    struct survey_stream largest[SURVEY_LARGEST]; /* falling */
};

/* Fills *ret_survey. Errors with a sentence: ERR_NOTFOUND, ERR_CORRUPT, ERR_IO, ... */
int survey_run(struct sys *sys, const char *dir, struct survey *ret_survey,
               struct errmsg *msg) MUST_USE;

#endif
