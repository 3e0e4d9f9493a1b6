/* The write-ahead log: an endless sequence of record frames, cut into preallocated segment files of
 * DIR/wal/. A position (log_pos) is a byte count since the log began, segment headers left out; a
 * frame may span segments. wal.c opens with the format, the happy path and the failure modes.
 *
 * wal_stage may be called by any thread and never touches the disk. One committer thread writes all
 * that is staged with one vectored write and one fdatasync per batch, advances the durable
 * position, and gives notice once. The first failed write or sync makes the log failed for good. */
#ifndef ARBE_LOG_WAL_H
#define ARBE_LOG_WAL_H

#include "base/block.h"
#include "base/err.h"
#include "base/histogram.h"
#include "log/record.h"
#include "log/sys.h"

enum durability {
    DURABILITY_SYNC,   /* fdatasync before an answer: survives power loss */
    DURABILITY_OS,     /* written to the kernel before an answer: survives SIGKILL */
    DURABILITY_MEMORY, /* no log: streams live as long as the process */
};

struct wal;

struct wal_config {
    struct sys *sys;            /* outlives the log */
    const char *dir;            /* DIR/wal, exists */
    uint8_t uuid[16];           /* of the data directory; a segment with another is refused */
    uint64_t segment_bytes;     /* size of new segments; old ones keep theirs */
    size_t staged_bytes_max;    /* staged and not yet durable; above it ERR_BUSY */
    enum durability durability; /* SYNC or OS */
    log_pos start;              /* the checkpoint's position: recovery begins here */
    uint32_t epoch;             /* of this opening; greater than that of any before */
    bool fresh;                 /* no log was ever made here: none to be found is no fault */
    bool threads;               /* false: wal_commit_now does what the threads would */
    /* Notice, on the committer's thread: the durable position moved, the log failed, or an attempt
     * to make room ended. Must not block. */
    void (*notice)(void *context);
    void *notice_context;
    /* Whether the log may reach up to `end` while `file_bytes` of the disk are newly taken for that
     * and spare files of `spare_bytes` stay, which can be given up; asked on the preparer's thread
     * before each new segment. False counts as a full disk. NULL: always. */
    bool (*may_grow)(void *context, uint64_t file_bytes, uint64_t spare_bytes, log_pos end);
};

/* What recovery found; `text` says it in a line for the operator. */
struct wal_report {
    uint64_t records;         /* replayed */
    uint64_t bytes;           /* of them */
    uint64_t torn_bytes;      /* behind the last good record, cut off */
    unsigned files_set_aside; /* renamed to *.damaged */
    uint64_t stranded;        /* whole records behind the end, which cannot be replayed */
    unsigned files_copied;    /* to *.damaged, since stranded records are in them */
    int copy_error;           /* why they were not copied; 0: they were */
    unsigned files_short;     /* shorter than they were made: somebody cut them */
    uint64_t short_bytes;     /* missing from the first of them */
    uint64_t short_name;      /* number in the name of the first of them */
    int short_error;          /* why what is left was not copied; 0: it was, or there was nothing */
    char text[640];
};

/* Called for each proven record from `start` on, in order. Slices live during the call. An error
 * ends recovery and is returned. */
typedef int (*wal_replay_fn)(void *context, const struct record *r, log_pos end);

/* Opens the log: walks it from config->start, hands records to `replay`, stops at the first frame
 * that does not prove itself, cuts the log there, and starts the committer. ERR_MISMATCH when
 * segments belong to another directory or the one that holds `start` is missing, ERR_IO,
 * ERR_NOSPC, ... with a sentence in `msg`. */
int wal_open(const struct wal_config *config, wal_replay_fn replay, void *replay_context,
             struct wal_report *ret_report, struct wal **ret_wal, struct errmsg *msg) MUST_USE;

/* Commits what is staged, stops the committer, closes. Accepts NULL. */
void wal_close(struct wal *w);

/* Waits until everything staged so far is durable, or the log failed (ERR_FAILED). Blocks. */
int wal_flush(struct wal *w) MUST_USE;

/* Stages one record. `body_block`, when not NULL, holds the body's bytes and is referenced until
 * they are written; otherwise, or when the body is small, the bytes are copied before the call
 * returns. The caller holds the lock of the stream, so that log order is the stream's order.
 * ret_end: the record is durable once wal_durable() >= *ret_end.
 * Errors, none of which leaves a trace: ERR_FAILED; ERR_BUSY over staged_bytes_max; ERR_AGAIN when
 * room is being made (a notice follows, then stage again); ERR_NOSPC when the last attempt to make
 * room failed since the disk is full (and a new attempt has been asked for). The last bytes of the
 * room are for deletes alone. */
int wal_stage(struct wal *w, const struct record *r, struct block *body_block,
              log_pos *ret_end) MUST_USE;

/* Only without threads: makes room that was asked for and commits all that is staged. 0, or
 * ERR_FAILED; that there was no room is no failure, the next wal_stage says so. */
int wal_commit_now(struct wal *w) MUST_USE;

/* Everything before this position survives. Any thread, one atomic load. */
log_pos wal_durable(const struct wal *w);

/* Whether the log failed; sticky. Any thread. */
bool wal_failed(const struct wal *w);

/* What made the log fail: the error's code, 0 while it works. Any thread. */
int wal_error(const struct wal *w);

/* Segments wholly before `position`, which a durable checkpoint covers, may be used again. May
 * unlink files, so it blocks. */
void wal_release(struct wal *w, log_pos position);

/* Until as many unholds, wal_release only remembers its position. wal_unhold may unlink files. */
void wal_hold(struct wal *w);

/* Ends one wal_hold; the last one releases what was asked for meanwhile. Blocks. */
void wal_unhold(struct wal *w);

/* Removes released segments that are kept for later, where the disk is full. False: there were
 * none. Blocks. */
bool wal_drop_spares(struct wal *w);

/* Bytes between `position` and the newest staged record, for checkpoint triggers. */
uint64_t wal_bytes_since(const struct wal *w, log_pos position);

/* Counts since the log was opened, and what waits now. */
struct wal_stats {
    struct histogram_totals commit_us;      /* from taking a batch to its being durable */
    struct histogram_totals commit_records; /* records of each batch */
    uint64_t written_bytes;                 /* of the log that became durable */
    uint64_t staged_bytes;                  /* not durable yet */
    uint64_t file_bytes;                    /* of the files, spares included */
};

/* Any thread; does not block for long. */
void wal_get_stats(struct wal *w, struct wal_stats *ret_stats);

#endif
