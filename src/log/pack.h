/* Packs: large files under DIR/packs/ that hold the bytes of many streams, written once and in
 * order by a checkpoint or a compaction, never changed, dropped whole. pack.c opens with the
 * format.
 *
 * A stream is a list of extents; an extent is one run of its bytes in one pack, followed there by
 * the marks that tell where its messages end. Descriptors are opened on demand, at most
 * PACK_FDS_MAX, none belongs to a stream. Reading is for any thread; writing is for one at a
 * time. */
#ifndef ARBE_LOG_PACK_H
#define ARBE_LOG_PACK_H

#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "log/record.h"
#include "log/sys.h"

typedef uint64_t pack_id; /* never reused; 0 is none */

#define PACK_HEADER_BYTES        64u /* at the beginning of the file */
#define PACK_EXTENT_HEADER_BYTES 48u /* in front of each extent's data */

struct extent {
    uint64_t start;     /* offset in the stream of the first byte */
    uint32_t len;       /* bytes of the stream, 1 to EXTENT_BYTES_MAX, or one message */
    uint32_t marks_len; /* bytes of marks, right behind the data in the pack */
    pack_id pack;
    uint64_t at;  /* where the data begins in the pack file */
    uint32_t crc; /* CRC-32C over data and marks */
};

struct pack_set;

/* Opens DIR/packs, which it makes when missing. ERR_IO, ... with a sentence. */
int pack_set_open(struct sys *sys, const char *dir, const uint8_t uuid[static 16],
                  struct pack_set **ret_set, struct errmsg *msg) MUST_USE;

/* What pack_set_sweep found. */
struct pack_sweep {
    size_t missing;     /* known packs without a file */
    size_t removed;     /* left-overs of a crash */
    unsigned set_aside; /* files renamed to *.damaged */
};

/* Compares the directory with `known`, ascending ids of the packs that the catalog lists. Other
 * files are left over from a crash: one whose header proves that it is a pack of this directory,
 * or that is empty, is removed; any other is renamed aside. At start only; blocks. */
int pack_set_sweep(struct pack_set *s, const pack_id *known, size_t known_count,
                   struct pack_sweep *ret_sweep) MUST_USE;

/* Closes all; nobody holds a pack any more. Accepts NULL. */
void pack_set_close(struct pack_set *s);

/* An open pack; counted, so that a file that was dropped meanwhile can still be read to the end. */
struct pack {
    pack_id id;
    int fd; /* for pread and sendfile with explicit offsets only */
    /* private */
    struct pack_set *set; /* whose lock guards what follows */
    struct map_node node; /* in the set's map of open packs */
    struct list idle;     /* on the set's list of packs without references, idlest first */
    uint32_t refs;        /* users */
    bool dropped;         /* out of the map; closed with the last reference */
};

/* A referenced handle; may open a file, so call it where blocking is allowed, or use pack_try_get.
 * ERR_NOTFOUND when the file is missing, ERR_IO. */
int pack_get(struct pack_set *s, pack_id id, struct pack **ret_pack) MUST_USE;

/* The same without touching the disk: NULL when the pack is not open. */
struct pack *pack_try_get(struct pack_set *s, pack_id id);

/* Any thread; accepts NULL. */
void pack_unref(struct pack *p);

/* A pack being written. */
struct pack_writer;

/* Creates the file of pack `id`. With `sync`, pack_writer_finish makes it durable. ERR_NOSPC,
 * ERR_IO. */
int pack_writer_create(struct pack_set *s, pack_id id, bool sync,
                       struct pack_writer **ret_writer) MUST_USE;

/* Appends one extent: `pieces` are its bytes in order. Buffers inside; fills at, crc, pack in
 * *ret_extent. A failure sticks to the writer. */
int pack_writer_add(struct pack_writer *w, stream_id id, uint64_t start, const struct slice *pieces,
                    size_t piece_count, struct slice marks, struct extent *ret_extent) MUST_USE;

/* Bytes written so far. */
uint64_t pack_writer_bytes(const struct pack_writer *w);

/* Flushes and, with sync, makes file and directory entry durable. After an error the file must be
 * abandoned. */
int pack_writer_finish(struct pack_writer *w) MUST_USE;

/* The id given at creation. */
pack_id pack_writer_id(const struct pack_writer *w);

/* Frees the writer; removes the file unless it was finished. Accepts NULL. */
void pack_writer_destroy(struct pack_writer *w);

/* Unlinks a pack that no extent refers to any more; while the set is held, once it no longer is. */
void pack_set_drop(struct pack_set *s, pack_id id);

/* Until as many unholds, files of dropped packs stay. */
void pack_set_hold(struct pack_set *s);

/* Ends one pack_set_hold; the last one unlinks what was dropped meanwhile. Blocks. */
void pack_set_unhold(struct pack_set *s);

/* Whether a file went all the same, for want of memory to remember it. */
bool pack_set_hold_lost(struct pack_set *s);

/* Reads and proves the marks of an extent into `out` (marks_len bytes), by the checksum in the pack
 * that is theirs alone. Blocks. ERR_CORRUPT, ERR_NOTFOUND, ERR_IO. */
int pack_read_marks(struct pack_set *s, const struct extent *e, void *out) MUST_USE;

/* Reads all data and marks of an extent and proves the checksum. Blocks. Errors as
 * pack_read_marks. */
int pack_read_extent(struct pack_set *s, const struct extent *e, void *data, void *marks) MUST_USE;

#endif
