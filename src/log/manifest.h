/* What a backup consists of: the file `manifest` in it, written last, so that without it there is
 * no backup. Lines of text:
 *
 *   arbe-backup 1
 *   uuid 32 HEX DIGITS
 *   log FROM TO                      positions: of the checkpoint, and behind the last record
 *   file BYTES CHECKSUM NAME         CRC-32C in 8 hex digits; for each file, in order
 *   end CHECKSUM                     of all bytes before this line
 *
 * The text is pure; nothing here touches the disk. */
#ifndef ARBE_LOG_MANIFEST_H
#define ARBE_LOG_MANIFEST_H

#include "base/buf.h"
#include "base/err.h"
#include "log/record.h"

#define MANIFEST_NAME       "manifest"
#define MANIFEST_BYTES_MAX  (256u * 1024 * 1024)
#define MANIFEST_RECORDS    "app.db" /* the records of threads, a file that is not the log's */
#define MANIFEST_NAME_BYTES 128u     /* of a file in it, with a NUL */

/* What begins a manifest. */
struct manifest_head {
    uint8_t uuid[16];
    log_pos from;
    log_pos to;
};

struct manifest_file {
    uint64_t bytes;
    uint32_t crc;
    char name[MANIFEST_NAME_BYTES]; /* below the data directory */
};

/* Appends the parts of a manifest, in this order. Failures stick to the buffer. */
void manifest_put_head(struct buf *out, const struct manifest_head *head);

/* For each file; its name is a good one. */
void manifest_put_file(struct buf *out, const struct manifest_file *file);

/* Closes it with the checksum of what is in the buffer. */
void manifest_put_end(struct buf *out);

/* Called for each file, in order; an error ends the reading and is returned. */
typedef int (*manifest_file_fn)(void *context, const struct manifest_file *file);

/* Proves the whole text before the first call of `each`. With a sentence: ERR_CORRUPT, it was cut
 * or changed; ERR_MISMATCH, it is of a version that is not known. */
int manifest_read(struct slice text, struct manifest_head *ret_head, manifest_file_fn each,
                  void *context, struct errmsg *msg) MUST_USE;

/* Whether a backup may have a file of that name: catalog/data.mdb, app.db, or one in wal, packs or
 * keys. */
bool manifest_name_good(struct slice name);

#endif
