/* One segment file of the write-ahead log: its header page, and making, recycling, removing and
 * setting aside such files. segment.c opens with the format and the crash cases.
 *
 * Everything here blocks. A segment is owned by whoever holds it; nothing is locked. Failures are
 * codes of base/err.h, and a file that could not be made is not left behind as far as the disk lets
 * us. */
#ifndef ARBE_LOG_SEGMENT_H
#define ARBE_LOG_SEGMENT_H

#include "base/list.h"
#include "log/record.h"
#include "log/sys.h"

#define SEGMENT_HEADER_BYTES 4096u
#define SEGMENT_PATH_MAX     1200u /* a path in the log's directory, with its NUL */

struct segment {
    struct list link;    /* on a chain or a list of spares */
    log_pos start;       /* log position of its first byte behind the header */
    uint64_t bytes;      /* of the log that it holds */
    uint64_t file_bytes; /* what is there of the file; less than the header says when it was cut */
    uint64_t name;       /* number in the file's name: its first start, until a rename */
    uint32_t generation; /* how often it was recycled; 0: behind its records all is zero */
    int fd;              /* owned */
    bool dirty;          /* written since the last sync; the committer's */
};

/* Where segments live and how new ones are made; a constant of an open log. */
struct segment_dir {
    struct sys *sys;        /* outlives it */
    const char *path;       /* borrowed */
    uint8_t uuid[16];       /* of the data directory */
    uint64_t segment_bytes; /* size of new files, header included; a multiple of 4 KiB */
    bool read_only;         /* files are opened for reading alone; nothing else may be asked for */
    bool zero_fill; /* write new files full of zeros, so that later syncs are of data alone */
};

/* One past the last position that `s` holds. */
static inline log_pos segment_end(const struct segment *s)
{
    return s->start + s->bytes;
}

/* Where log position `pos`, which `s` holds, is in the file. */
static inline uint64_t segment_offset(const struct segment *s, log_pos pos)
{
    return SEGMENT_HEADER_BYTES + (pos - s->start);
}

/* Makes the file of the segment that begins at `start`, durable with its directory entry. ERR_NOSPC
 * leaves nothing behind and may be tried again. */
int segment_create(const struct segment_dir *dir, log_pos start,
                   struct segment **ret_segment) MUST_USE;

/* Gives a released segment a new place in the log, durably. After an error the file must not be
 * used again by this process: on disk it may have either place. */
int segment_recycle(const struct segment_dir *dir, struct segment *s, log_pos start) MUST_USE;

/* Writes the header once more, as it was found, for the next sync: see recover.c. */
int segment_rewrite_header(const struct segment_dir *dir, struct segment *s) MUST_USE;

/* What segment_open found instead of a segment. */
enum segment_state {
    SEGMENT_GOOD,
    SEGMENT_UNFINISHED, /* nothing but zeros: its creation was cut short */
    SEGMENT_DAMAGED,    /* the header does not prove itself */
    SEGMENT_FOREIGN,    /* of another data directory */
    SEGMENT_FORMAT,     /* of another version of this format */
};

/* Opens the file `name`; *ret_segment is set only when the state is SEGMENT_GOOD. ERR_IO, ... */
int segment_open(const struct segment_dir *dir, const char *name, enum segment_state *ret_state,
                 struct segment **ret_segment) MUST_USE;

/* The number in a segment's file name, or false for any other name. */
bool segment_parse_name(const char *name, uint64_t *ret_number) MUST_USE;

/* Closes and frees. Accepts NULL. */
void segment_close(const struct segment_dir *dir, struct segment *s);

/* Unlinks, closes and frees. A file that stays because the disk refuses is found by the next
 * recovery. */
void segment_remove(const struct segment_dir *dir, struct segment *s);

/* Renames the file to name.damaged, or name.damaged.N when that is taken; never onto a file. */
int segment_set_aside(const struct segment_dir *dir, const char *name) MUST_USE;

/* Copies the file to such a name, durably; `s` stays in use. ERR_NOSPC, ...: no copy is left. */
int segment_copy_aside(const struct segment_dir *dir, const struct segment *s) MUST_USE;

/* Writes SEGMENT_HEADER_BYTES bytes: the first page of `s`, of which start, bytes and generation
 * count. */
void segment_encode_header(const struct segment_dir *dir, const struct segment *s, void *out);

/* The name of the file that number belongs to, into SEGMENT_PATH_MAX bytes, without the
 * directory. */
void segment_format_name(uint64_t number, char *out);

#endif
