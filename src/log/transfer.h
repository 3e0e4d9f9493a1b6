/* Copying files into a directory that is new: what backup and restore share. Everything that is
 * made is remembered, synced, and taken away again when it does not come to a good end. The first
 * failure sticks: later calls do nothing and return it. Blocks; one thread. */
#ifndef ARBE_LOG_TRANSFER_H
#define ARBE_LOG_TRANSFER_H

#include "log/backup.h"
#include "log/manifest.h"

#define TRANSFER_PATH_MAX 1400u

struct transfer {
    const struct backup_config *config;
    struct errmsg *msg;
    struct buf manifest; /* of the files so far */
    char *bytes;         /* owned; TRANSFER_READ_BYTES */
    uint64_t done;       /* bytes copied */
    uint64_t total;      /* to copy */
    int error;           /* sticky */
    int lock_fd;         /* of config->to; below 0: it is not locked */
    bool ours;           /* config->to was empty: what is in it we have made */
    bool records;        /* there is a file of them */
    struct backup_report report;
};

#define TRANSFER_READ_BYTES (1024u * 1024)

/* A file being made. */
struct transfer_file {
    struct manifest_file entry; /* bytes and checksum so far */
    int fd;                     /* below 0: none */
};

/* Makes config->to with its directories; it must be new, or empty but for such directories. With
 * `lock` it is to be a data directory, and locked until transfer_end: ERR_LOCKED when a server was
 * faster, whose files stay. */
int transfer_begin(struct transfer *t, const struct backup_config *config, bool lock,
                   struct errmsg *msg) MUST_USE;

/* Says what failed, with the sentence of `error`; the first time only. Returns the error. */
int transfer_fail(struct transfer *t, int error, const char *format, ...) PRINTF_LIKE(3, 4);

/* Where `name` is made below config->to: the catalog and the records get their names only with
 * transfer_finish. */
void transfer_path(const struct transfer *t, const char *name, char out[static TRANSFER_PATH_MAX]);

/* Makes the file `name`. */
int transfer_create(struct transfer *t, const char *name, struct transfer_file *f) MUST_USE;

/* Appends to it; the result may be ignored, since a failure sticks. */
int transfer_write(struct transfer *t, struct transfer_file *f, const void *bytes, size_t len);

/* Syncs and closes it, and puts it into the manifest. Call it after an error too. */
int transfer_close(struct transfer *t, struct transfer_file *f) MUST_USE;

/* Copies a whole file of config->from under the same name. With `wanted` its size and checksum must
 * be these; otherwise `bytes` is its size, or UINT64_MAX: whatever it has. */
int transfer_copy(struct transfer *t, const char *name, const struct manifest_file *wanted,
                  uint64_t bytes) MUST_USE;

/* Takes a file that somebody else made at transfer_path: reads, syncs and closes it, and puts it
 * into the manifest. */
int transfer_adopt(struct transfer *t, const char *name) MUST_USE;

/* Makes all durable, and gives records and catalog their names. With `head` the manifest
 * follows. */
int transfer_finish(struct transfer *t, const struct manifest_head *head) MUST_USE;

/* Frees and unlocks; after an error, takes away what was made. */
void transfer_end(struct transfer *t);

#endif
