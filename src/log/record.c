/* Payloads, by type (little-endian; a slice is its length and its bytes):
 *
 *   create  u8 flags (1 closed, 2 fork_explicit), i64 created_ms, u64 ttl_seconds,
 *           i64 expires_at_ms, u64 source_id, fork_offset, fork_anchor, fork_sub_offset,
 *           u16 + name, u16 + content_type, u32 + marks, body
 *   append  u8 flags (1 close, 2 producer, 4 seq), u64 offset, i64 now_ms,
 *           with 2: u64 epoch, u64 seq, u16 + id; with 4: u16 + seq; u32 + marks, body
 *   delete  u8 flags (1 soft, 2 expired), u64 released, u32 cascade_count, u64 ids
 *   touch   i64 now_ms
 *   note    u8 flags (0), changes (note.h), which are its body
 *
 * The body is what is left of the payload. What the decoder would refuse, the encoder must never
 * write: an acknowledged record that recovery stops at takes all later ones with it. So both ask
 * the same functions, record_valid and body_valid; but the encoder, which is called under a
 * stream's lock, leaves it to whoever made them to prove the changes of a note, and more than
 * RUN_MARKS_BYTES_MAX of marks. */
#include "log/record.h"

#include <assert.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/err.h"
#include "base/limits.h"
#include "log/marks.h"
#include "log/note.h"

#define FRAME_MAGIC 0x31636572u /* "rec1" */

#define CREATE_CLOSED        1u
#define CREATE_FORK_EXPLICIT 2u
#define APPEND_CLOSE         1u
#define APPEND_PRODUCER      2u
#define APPEND_SEQ           4u
#define DELETE_SOFT          1u
#define DELETE_EXPIRED       2u

#define CREATE_FIXED_BYTES   (1u + 7 * 8 + 2 + 2 + 4)
#define APPEND_FIXED_BYTES   (1u + 8 + 8 + 4)
#define PRODUCER_FIXED_BYTES (8u + 8 + 2)
#define DELETE_FIXED_BYTES   (1u + 8 + 4)
#define TOUCH_FIXED_BYTES    8u
#define NOTE_FIXED_BYTES     1u

static bool create_valid(const struct record_create *c)
{
    bool fork = c->source_id != 0;
    bool fork_fields = c->fork_offset || c->fork_anchor || c->fork_sub_offset || c->fork_explicit;
    return c->name.len >= 1 && c->name.len <= STREAM_NAME_BYTES_MAX &&
           c->content_type.len <= STREAM_CONTENT_TYPE_BYTES_MAX &&
           (c->ttl_seconds == UINT64_MAX || c->ttl_seconds <= STREAM_TTL_SECONDS_MAX) &&
           (fork || !fork_fields) && c->fork_offset <= STREAM_OFFSET_MAX &&
           c->body.len <= STREAM_OFFSET_MAX - c->fork_offset;
}

static bool append_valid(const struct record_append *a)
{
    return a->producer.id.len <= PRODUCER_ID_BYTES_MAX && a->seq.len <= STREAM_SEQ_BYTES_MAX &&
           (a->has_seq || a->seq.len == 0) && a->offset <= STREAM_OFFSET_MAX &&
           a->body.len <= STREAM_OFFSET_MAX - a->offset;
}

static bool record_valid(const struct record *r)
{
    if ((r->id == 0) != (r->type == RECORD_NOTE)) {
        return false;
    }
    switch (r->type) {
    case RECORD_CREATE:
        return create_valid(&r->create);
    case RECORD_APPEND:
        return append_valid(&r->append);
    case RECORD_DELETE:
        return r->del.cascade_count <= FORK_DEPTH_MAX &&
               r->del.cascade.len == (size_t)r->del.cascade_count * 8;
    case RECORD_TOUCH:
        return true;
    case RECORD_NOTE:
        return r->note.changes.len >= 1 && r->note.changes.len <= NOTE_BATCH_BYTES_MAX;
    }
    return false;
}

static struct slice record_marks(const struct record *r)
{
    switch (r->type) {
    case RECORD_CREATE:
        return r->create.marks;
    case RECORD_APPEND:
        return r->append.marks;
    case RECORD_DELETE:
    case RECORD_TOUCH:
    case RECORD_NOTE:
        break;
    }
    return (struct slice){NULL, 0};
}

static bool body_valid(const struct record *r)
{
    size_t count;
    if (r->type == RECORD_NOTE) {
        return note_check(r->note.changes, &count) == 0;
    }
    return marks_valid(record_marks(r), record_body(r).len);
}

static size_t append_head_bytes(const struct record_append *a)
{
    size_t bytes = APPEND_FIXED_BYTES + a->marks.len;
    if (a->producer.id.len > 0) {
        bytes += PRODUCER_FIXED_BYTES + a->producer.id.len;
    }
    if (a->has_seq) {
        bytes += 2 + a->seq.len;
    }
    return bytes;
}

size_t record_head_bytes(const struct record *r)
{
    switch (r->type) {
    case RECORD_CREATE:
        return CREATE_FIXED_BYTES + r->create.name.len + r->create.content_type.len +
               r->create.marks.len;
    case RECORD_APPEND:
        return append_head_bytes(&r->append);
    case RECORD_DELETE:
        return DELETE_FIXED_BYTES + r->del.cascade.len;
    case RECORD_TOUCH:
        return TOUCH_FIXED_BYTES;
    case RECORD_NOTE:
        return NOTE_FIXED_BYTES;
    }
    assert(false && "record type");
    return 0;
}

/* Writers return where the next byte goes. */
static uint8_t *put_u8(uint8_t *at, unsigned value)
{
    *at = (uint8_t)value;
    return at + 1;
}

static uint8_t *put_u64(uint8_t *at, uint64_t value)
{
    bytes_put_u64(at, value);
    return at + 8;
}

static uint8_t *put_bytes(uint8_t *at, struct slice s)
{
    if (s.len > 0) {
        memcpy(at, s.ptr, s.len);
    }
    return at + s.len;
}

static uint8_t *put_slice16(uint8_t *at, struct slice s)
{
    assert(s.len <= UINT16_MAX);
    bytes_put_u16(at, (uint16_t)s.len);
    return put_bytes(at + 2, s);
}

static uint8_t *put_slice32(uint8_t *at, struct slice s)
{
    assert(s.len <= UINT32_MAX);
    bytes_put_u32(at, (uint32_t)s.len);
    return put_bytes(at + 4, s);
}

static uint8_t *put_create(uint8_t *at, const struct record_create *c)
{
    at = put_u8(at,
                (c->closed ? CREATE_CLOSED : 0) | (c->fork_explicit ? CREATE_FORK_EXPLICIT : 0));
    at = put_u64(at, (uint64_t)c->created_ms);
    at = put_u64(at, c->ttl_seconds);
    at = put_u64(at, (uint64_t)c->expires_at_ms);
    at = put_u64(at, c->source_id);
    at = put_u64(at, c->fork_offset);
    at = put_u64(at, c->fork_anchor);
    at = put_u64(at, c->fork_sub_offset);
    at = put_slice16(at, c->name);
    at = put_slice16(at, c->content_type);
    return put_slice32(at, c->marks);
}

static uint8_t *put_append(uint8_t *at, const struct record_append *a)
{
    bool producer = a->producer.id.len > 0;
    at = put_u8(at, (a->close ? APPEND_CLOSE : 0) | (producer ? APPEND_PRODUCER : 0) |
                        (a->has_seq ? APPEND_SEQ : 0));
    at = put_u64(at, a->offset);
    at = put_u64(at, (uint64_t)a->now_ms);
    if (producer) {
        at = put_u64(at, a->producer.epoch);
        at = put_u64(at, a->producer.seq);
        at = put_slice16(at, a->producer.id);
    }
    if (a->has_seq) {
        at = put_slice16(at, a->seq);
    }
    return put_slice32(at, a->marks);
}

static uint8_t *put_delete(uint8_t *at, const struct record_delete *d)
{
    at = put_u8(at, (d->soft ? DELETE_SOFT : 0) | (d->expired ? DELETE_EXPIRED : 0));
    at = put_u64(at, d->released);
    bytes_put_u32(at, d->cascade_count);
    return put_bytes(at + 4, d->cascade);
}

void record_encode_head(const struct record *r, void *out)
{
    assert(record_valid(r));
    assert(r->type == RECORD_NOTE || record_marks(r).len > RUN_MARKS_BYTES_MAX || body_valid(r));
    uint8_t *at = out;
    switch (r->type) {
    case RECORD_CREATE:
        at = put_create(at, &r->create);
        break;
    case RECORD_APPEND:
        at = put_append(at, &r->append);
        break;
    case RECORD_DELETE:
        at = put_delete(at, &r->del);
        break;
    case RECORD_TOUCH:
        at = put_u64(at, (uint64_t)r->touch.now_ms);
        break;
    case RECORD_NOTE:
        at = put_u8(at, 0);
        break;
    }
    assert((size_t)(at - (uint8_t *)out) == record_head_bytes(r));
}

struct slice record_body(const struct record *r)
{
    switch (r->type) {
    case RECORD_CREATE:
        return r->create.body;
    case RECORD_APPEND:
        return r->append.body;
    case RECORD_NOTE:
        return r->note.changes;
    case RECORD_DELETE:
    case RECORD_TOUCH:
        break;
    }
    return (struct slice){0};
}

bool record_frees(const struct record *r)
{
    return r->type == RECORD_DELETE || (r->type == RECORD_NOTE && note_frees(r->note.changes));
}

static struct slice read_slice16(struct bytes_reader *in)
{
    return bytes_read_slice(in, bytes_read_u16(in));
}

static struct slice read_slice32(struct bytes_reader *in)
{
    return bytes_read_slice(in, bytes_read_u32(in));
}

static struct slice read_rest(struct bytes_reader *in)
{
    return bytes_read_slice(in, (size_t)(in->end - in->at));
}

static bool read_create(struct bytes_reader *in, struct record_create *c)
{
    unsigned flags = bytes_read_u8(in);
    c->closed = flags & CREATE_CLOSED;
    c->fork_explicit = flags & CREATE_FORK_EXPLICIT;
    c->created_ms = (int64_t)bytes_read_u64(in);
    c->ttl_seconds = bytes_read_u64(in);
    c->expires_at_ms = (int64_t)bytes_read_u64(in);
    c->source_id = bytes_read_u64(in);
    c->fork_offset = bytes_read_u64(in);
    c->fork_anchor = bytes_read_u64(in);
    c->fork_sub_offset = bytes_read_u64(in);
    c->name = read_slice16(in);
    c->content_type = read_slice16(in);
    c->marks = read_slice32(in);
    c->body = read_rest(in);
    return (flags & ~(CREATE_CLOSED | CREATE_FORK_EXPLICIT)) == 0;
}

static bool read_append(struct bytes_reader *in, struct record_append *a)
{
    unsigned flags = bytes_read_u8(in);
    a->close = flags & APPEND_CLOSE;
    a->has_seq = flags & APPEND_SEQ;
    a->offset = bytes_read_u64(in);
    a->now_ms = (int64_t)bytes_read_u64(in);
    bool named = true;
    if (flags & APPEND_PRODUCER) {
        a->producer.epoch = bytes_read_u64(in);
        a->producer.seq = bytes_read_u64(in);
        a->producer.id = read_slice16(in);
        named = a->producer.id.len > 0;
    }
    if (a->has_seq) {
        a->seq = read_slice16(in);
    }
    a->marks = read_slice32(in);
    a->body = read_rest(in);
    return named && (flags & ~(APPEND_CLOSE | APPEND_PRODUCER | APPEND_SEQ)) == 0;
}

static bool read_delete(struct bytes_reader *in, struct record_delete *d)
{
    unsigned flags = bytes_read_u8(in);
    d->soft = flags & DELETE_SOFT;
    d->expired = flags & DELETE_EXPIRED;
    d->released = bytes_read_u64(in);
    d->cascade_count = bytes_read_u32(in);
    d->cascade = read_rest(in);
    return (flags & ~(DELETE_SOFT | DELETE_EXPIRED)) == 0;
}

static bool read_note(struct bytes_reader *in, struct record_note *n)
{
    unsigned flags = bytes_read_u8(in);
    n->changes = read_rest(in);
    return flags == 0;
}

static bool read_payload(struct bytes_reader *in, struct record *r)
{
    switch (r->type) {
    case RECORD_CREATE:
        return read_create(in, &r->create);
    case RECORD_APPEND:
        return read_append(in, &r->append);
    case RECORD_DELETE:
        return read_delete(in, &r->del);
    case RECORD_TOUCH:
        r->touch.now_ms = (int64_t)bytes_read_u64(in);
        return true;
    case RECORD_NOTE:
        return read_note(in, &r->note);
    }
    return false;
}

int record_decode(enum record_type type, stream_id id, struct slice payload,
                  struct record *ret_record)
{
    const uint8_t *bytes = (const uint8_t *)payload.ptr;
    struct bytes_reader in = {.at = bytes, .end = bytes + payload.len};
    struct record r = {.type = type, .id = id};
    if (!read_payload(&in, &r) || in.failed || in.at != in.end || !record_valid(&r) ||
        !body_valid(&r)) {
        return ERR_CORRUPT;
    }
    *ret_record = r;
    return 0;
}

void record_encode_frame(const struct record_frame *f, void *out)
{
    uint8_t *at = out;
    assert(f->lsn % RECORD_ALIGN == 0);
    bytes_put_u32(at + 4, f->payload_len);
    bytes_put_u32(at + 8, f->payload_crc);
    bytes_put_u32(at + 12, f->epoch);
    bytes_put_u64(at + 16, f->lsn);
    bytes_put_u64(at + 24, f->id);
    at[32] = (uint8_t)f->type;
    at[33] = 0;
    bytes_put_u16(at + 34, 0);
    bytes_put_u32(at + 36, FRAME_MAGIC);
    bytes_put_u32(at, crc32c(0, at + 4, RECORD_FRAME_BYTES - 4));
}

int record_decode_frame(const void *bytes, struct record_frame *ret_frame)
{
    const uint8_t *at = bytes;
    if (bytes_get_u32(at + 36) != FRAME_MAGIC ||
        bytes_get_u32(at) != crc32c(0, at + 4, RECORD_FRAME_BYTES - 4)) {
        return ERR_CORRUPT;
    }
    unsigned type = at[32];
    bool known = type >= RECORD_CREATE && type <= RECORD_NOTE;
    if (!known || at[33] != 0 || bytes_get_u16(at + 34) != 0) {
        return ERR_CORRUPT;
    }
    *ret_frame = (struct record_frame){
        .payload_len = bytes_get_u32(at + 4),
        .payload_crc = bytes_get_u32(at + 8),
        .epoch = bytes_get_u32(at + 12),
        .lsn = bytes_get_u64(at + 16),
        .id = bytes_get_u64(at + 24),
        .type = (enum record_type)type,
    };
    return 0;
}
