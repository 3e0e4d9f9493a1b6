/* Log records: what one request does to one stream, as one unit that is wholly in the log or not at
 * all. This file is the codec of a record's payload and of its frame; wal.h puts frames into
 * segments.
 *
 * Pure: bytes in, bytes out. */
#ifndef ARBE_LOG_RECORD_H
#define ARBE_LOG_RECORD_H

#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/slice.h"

/* Frame (little-endian, begins at a multiple of 8 in the log, padded with zeros to the next):
 *
 *   0  u32 header_crc   CRC-32C over bytes 4..39
 *   4  u32 payload_len
 *   8  u32 payload_crc  CRC-32C over the payload
 *  12  u32 epoch        number of the opening that wrote it; never falls along the log
 *  16  u64 lsn          position of this frame: a stale one of a recycled segment differs
 *  24  u64 stream_id
 *  32  u8  type         enum record_type
 *  33  u8  flags        0
 *  34  u16 zero
 *  36  u32 magic        "rec1"
 *  40  payload */
#define RECORD_FRAME_BYTES 40
#define RECORD_ALIGN       8

typedef uint64_t stream_id; /* never reused within a data directory; 0 is none */
typedef uint64_t log_pos;   /* byte position in the endless log, see wal.h */

enum record_type {
    RECORD_CREATE = 1, /* a stream begins, perhaps with bytes, closed, or as a fork */
    RECORD_APPEND = 2, /* bytes, producer state, Stream-Seq and closing, in any combination */
    RECORD_DELETE = 3, /* a stream goes, with every ancestor that only waited for it */
    RECORD_TOUCH = 4,  /* a read renewed a sliding TTL */
    RECORD_NOTE = 5,   /* changes to notes, of no stream */
};

/* A producer's claim on one request (PROTOCOL.md 5.2.1). */
struct record_producer {
    struct slice id; /* empty: none */
    uint64_t epoch;
    uint64_t seq;
};

struct record_create {
    struct slice name;         /* canonical stream name */
    struct slice content_type; /* as given at creation */
    int64_t created_ms;
    uint64_t ttl_seconds;     /* sliding; UINT64_MAX: none */
    int64_t expires_at_ms;    /* absolute; INT64_MAX: none */
    stream_id source_id;      /* 0: not a fork */
    uint64_t fork_offset;     /* bytes inherited from the source */
    uint64_t fork_anchor;     /* Stream-Fork-Offset as a position, for idempotent PUT */
    uint64_t fork_sub_offset; /* Stream-Fork-Sub-Offset as given */
    bool fork_explicit;       /* whether Stream-Fork-Offset was given */
    bool closed;
    struct slice marks; /* where the messages end, see marks.h */
    struct slice body;
};

struct record_append {
    uint64_t offset; /* where the body begins in the stream */
    int64_t now_ms;  /* renews a sliding TTL */
    bool close;
    struct record_producer producer;
    bool has_seq;
    struct slice seq;   /* Stream-Seq */
    struct slice marks; /* where its messages end, see marks.h; sum = body.len */
    struct slice body;  /* as stored: in JSON mode each message is followed by a comma */
};

struct record_delete {
    bool soft;              /* kept for its forks; else it goes */
    bool expired;           /* by the sweeper or an access, not by DELETE */
    uint32_t cascade_count; /* ancestors that go with it, nearest first */
    struct slice cascade;   /* cascade_count ids of 8 bytes, little-endian */
    stream_id released; /* the ancestor that stays, with one fork less; 0: none. Recovery may know
                               nothing else of the stream that went */
};

struct record_touch {
    int64_t now_ms;
};

struct record_note {
    struct slice changes; /* see note.h */
};

struct record {
    enum record_type type;
    stream_id id; /* 0 for notes, and for nothing else */
    union {
        struct record_create create;
        struct record_append append;
        struct record_delete del;
        struct record_touch touch;
        struct record_note note;
    };
};

/* Whether the record gives space back in the end, and is taken longest where the log is full: a
 * deletion of a stream, or of notes. */
bool record_frees(const struct record *r);

/* Bytes of the payload without the body, which is always last. */
size_t record_head_bytes(const struct record *r);

/* Writes record_head_bytes bytes. The payload is these bytes followed by the body. */
void record_encode_head(const struct record *r, void *out);

/* The body of a create or append, the changes of a note; empty for the others. Borrows from `r`. */
struct slice record_body(const struct record *r);

/* Decodes a payload. All slices borrow from `payload`. 0 or ERR_CORRUPT; every length, mark sum and
 * flag is checked as if hostile. */
int record_decode(enum record_type type, stream_id id, struct slice payload,
                  struct record *ret_record) MUST_USE;

struct record_frame {
    uint32_t payload_len;
    uint32_t payload_crc;
    uint32_t epoch;
    log_pos lsn;
    stream_id id;
    enum record_type type;
};

/* Writes RECORD_FRAME_BYTES bytes, with both checksums. */
void record_encode_frame(const struct record_frame *f, void *out);

/* Decodes and proves a frame header: magic, checksum, type. 0 or ERR_CORRUPT. The payload checksum
 * is the caller's to check once it has the payload. */
int record_decode_frame(const void *bytes, struct record_frame *ret_frame) MUST_USE;

#endif
