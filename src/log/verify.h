/* Checks a data directory without changing it: every checksum, every extent, every count, and that
 * what one part says of another is so. Works on a directory that nobody uses, which the caller
 * keeps so by a shared lock, and on one of a running server that holds it still (hold.h).
 *
 * Blocks for as long as reading everything takes. Memory: some megabytes, and about 100 bytes for
 * each stream that the log speaks of behind the last checkpoint, 8 for each fork. One thread. */
#ifndef ARBE_LOG_VERIFY_H
#define ARBE_LOG_VERIFY_H

#include "base/err.h"
#include "log/record.h"
#include "log/sys.h"

enum verify_level {
    VERIFY_NOTE,   /* worth knowing; nothing is wrong */
    VERIFY_DAMAGE, /* something is wrong */
};

struct verify_finding {
    enum verify_level level;
    const char *file; /* below the data directory */
    const char *text; /* where in it, what, and what that means */
};

struct verify_config {
    struct sys *sys;
    const char *dir;
    bool running; /* a server has it and holds it */
    void *context;
    /* Of a running server: up to where the log is whole. Asked once the catalog was opened, whose
     * streams are ahead of any earlier position if a checkpoint came since. NULL if not running. */
    int (*durable)(void *context, log_pos *ret_durable, struct errmsg *msg);
    /* Called for each finding; its texts live during the call. */
    void (*found)(void *context, const struct verify_finding *finding);
    /* Called often, with bytes read and bytes to read, as far as they are known. May be NULL. */
    void (*progress)(void *context, uint64_t done, uint64_t total);
};

/* What there is; of damaged parts what could be read. */
struct verify_report {
    bool memory; /* streams of a memory mode, which end with their process */
    uint64_t damages;
    uint64_t notes; /* findings of that level */
    uint64_t streams;
    uint64_t forks;
    uint64_t soft_deleted;
    uint64_t stream_bytes; /* in extents; a fork's own alone */
    uint64_t extents;
    uint64_t producers;
    uint64_t note_entries;
    uint64_t packs;
    uint64_t pack_bytes;
    uint64_t live_bytes;  /* of packs, headers of extents included */
    uint64_t log_records; /* behind the checkpoint */
    uint64_t log_bytes;   /* of them */
    uint64_t catalog_bytes;
};

/* Checks all. 0 whatever was found; an error with a sentence when the directory is none, or memory
 * ran out. */
int verify_run(const struct verify_config *config, struct verify_report *ret_report,
               struct errmsg *msg) MUST_USE;

#endif
