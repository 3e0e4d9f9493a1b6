/* A copy of a data directory that can be brought back: the catalog of one moment, the packs that it
 * names, and the log from its checkpoint on, up to the position that was durable when the catalog
 * had been opened. backup.c opens with the layout and the order.
 *
 * Works on a directory that nobody uses, which the caller keeps so by a shared lock, and on one of
 * a running server that holds it still (hold.h). Blocks for as long as it takes; one thread. */
#ifndef ARBE_LOG_BACKUP_H
#define ARBE_LOG_BACKUP_H

#include "base/err.h"
#include "log/record.h"
#include "log/sys.h"

struct backup_config {
    struct sys *sys;
    const char *from; /* the data directory; of restore: the backup */
    const char *to;   /* new or empty: the backup; of restore: the data directory */
    bool running;     /* a server has `from` and holds it */
    void *context;
    /* Of a directory with records of threads: makes the file `path` of them, as they are at one
     * moment. Asked before the streams are looked at, which so are never behind the records.
     * ERR_NOTFOUND: there are none; other errors with a sentence. May be NULL. */
    int (*records)(void *context, const char *path, struct errmsg *msg);
    /* Of a running server: up to where the log is whole. Asked once the catalog was opened, whose
     * streams are ahead of any earlier position if a checkpoint came since. NULL if not running. */
    int (*durable)(void *context, log_pos *ret_durable, struct errmsg *msg);
    /* The log, and then the catalog, were read and need not be held any longer. */
    void (*log_done)(void *context);
    void (*catalog_done)(void *context);
    /* Called often, with bytes copied and bytes to copy. */
    void (*progress)(void *context, uint64_t done, uint64_t total);
    /* Asked at the end, before it counts as a backup: an error says that what was read was not
     * held, and is returned. May be NULL. */
    int (*confirm)(void *context, struct errmsg *msg);
};

struct backup_report {
    uint64_t files;
    uint64_t bytes;   /* of them */
    uint64_t records; /* of the log; 0 for restore */
    log_pos position; /* everything before it is in the backup */
};

/* Makes a backup. Every error has a sentence: ERR_EXISTS when `to` is not empty, ERR_CORRUPT when
 * something does not prove itself, ERR_NOSPC, ERR_IO, ... After an error `to` holds no backup, and
 * its files are removed as far as the disk lets us. */
int backup_make(const struct backup_config *config, struct backup_report *ret_report,
                struct errmsg *msg) MUST_USE;

/* Brings one back. Errors likewise. */
int backup_restore(const struct backup_config *config, struct backup_report *ret_report,
                   struct errmsg *msg) MUST_USE;

#endif
