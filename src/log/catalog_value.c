/* Values (little-endian; str is u16 length and bytes; crc is a CRC-32C over all bytes before it):
 *
 *   stream   u8 version 1, u8 flags (1 fork_explicit, 2 closed, 4 soft_deleted, 8 has_seq),
 *            u64 applied, i64 created_ms, u64 ttl_seconds, i64 expires_at_ms, i64 accessed_ms,
 *            u64 tail, source_id, fork_offset, fork_anchor, fork_sub_offset, fork_refs,
 *            u64 closer epoch, u64 closer seq, str name, content_type, seq, closer id, u32 crc
 *   state    u32 version 1, u8[16] uuid, u32 format, u32 epoch, u8 durable, u8 log_made,
 *            u8 counted, u8 zero, u64 checkpoint, next_stream, next_pack, own_bytes, u8[8] zero,
 *            u32 crc
 *   extent   u64 pack, u64 at, u32 len, marks_len, crc (of the extent's bytes, see pack.c)
 *   producer u64 epoch, u64 seq, i64 used_ms
 *   pack     u64 live_bytes, u64 total_bytes
 *   entry    u64 stream id, u64 start
 *   note     u8 version 1, value, u32 crc (over the key, the version and the value)
 *
 * Stream, state and note are the values that nothing else in the directory could correct, so they
 * carry a checksum of their own; LMDB has none. */
#include "log/catalog_value.h"

#include <assert.h>

#include "base/bytes.h"
#include "base/crc32c.h"

#define VERSION           1u
#define FLAG_EXPLICIT     1u
#define FLAG_CLOSED       2u
#define FLAG_SOFT_DELETED 4u
#define FLAG_HAS_SEQ      8u
#define FLAGS_ALL         15u

/* Writers return where the next byte goes. */
static uint8_t *put_u64(uint8_t *at, uint64_t value)
{
    bytes_put_u64(at, value);
    return at + 8;
}

static uint8_t *put_str(uint8_t *at, struct slice s)
{
    assert(s.len <= UINT16_MAX);
    bytes_put_u16(at, (uint16_t)s.len);
    if (s.len > 0) {
        memcpy(at + 2, s.ptr, s.len);
    }
    return at + 2 + s.len;
}

static uint8_t *put_crc(uint8_t *at, const uint8_t *from)
{
    bytes_put_u32(at, crc32c(0, from, (size_t)(at - from)));
    return at + 4;
}

/* Whether `value` ends with the checksum of what is before it. */
static bool crc_right(struct slice value)
{
    if (value.len < 4) {
        return false;
    }
    return bytes_get_u32(value.ptr + value.len - 4) == crc32c(0, value.ptr, value.len - 4);
}

static bool stream_valid(const struct stream_meta *m)
{
    bool fork = m->source_id != 0;
    return m->id != 0 && m->name.len >= 1 && m->name.len <= STREAM_NAME_BYTES_MAX &&
           m->content_type.len <= STREAM_CONTENT_TYPE_BYTES_MAX &&
           m->seq.len <= STREAM_SEQ_BYTES_MAX && m->closer.id.len <= PRODUCER_ID_BYTES_MAX &&
           (m->ttl_seconds == UINT64_MAX || m->ttl_seconds <= STREAM_TTL_SECONDS_MAX) &&
           m->tail <= STREAM_OFFSET_MAX && m->fork_offset <= m->tail &&
           (fork || m->fork_offset == 0) && (m->has_seq || m->seq.len == 0);
}

size_t catalog_encode_stream(const struct stream_meta *m, void *out)
{
    uint8_t *begin = out;
    uint8_t *at = begin;
    assert(stream_valid(m));
    *at++ = VERSION;
    *at++ = (uint8_t)((m->fork_explicit ? FLAG_EXPLICIT : 0) | (m->closed ? FLAG_CLOSED : 0) |
                      (m->soft_deleted ? FLAG_SOFT_DELETED : 0) | (m->has_seq ? FLAG_HAS_SEQ : 0));
    at = put_u64(at, m->applied);
    at = put_u64(at, (uint64_t)m->created_ms);
    at = put_u64(at, m->ttl_seconds);
    at = put_u64(at, (uint64_t)m->expires_at_ms);
    at = put_u64(at, (uint64_t)m->accessed_ms);
    at = put_u64(at, m->tail);
    at = put_u64(at, m->source_id);
    at = put_u64(at, m->fork_offset);
    at = put_u64(at, m->fork_anchor);
    at = put_u64(at, m->fork_sub_offset);
    at = put_u64(at, m->fork_refs);
    at = put_u64(at, m->closer.epoch);
    at = put_u64(at, m->closer.seq);
    at = put_str(at, m->name);
    at = put_str(at, m->content_type);
    at = put_str(at, m->seq);
    at = put_str(at, m->closer.id);
    at = put_crc(at, begin);
    assert((size_t)(at - begin) <= CATALOG_STREAM_BYTES_MAX);
    return (size_t)(at - begin);
}

static struct slice read_str(struct bytes_reader *in)
{
    return bytes_read_slice(in, bytes_read_u16(in));
}

static void read_stream_numbers(struct bytes_reader *in, struct stream_meta *m)
{
    m->applied = bytes_read_u64(in);
    m->created_ms = (int64_t)bytes_read_u64(in);
    m->ttl_seconds = bytes_read_u64(in);
    m->expires_at_ms = (int64_t)bytes_read_u64(in);
    m->accessed_ms = (int64_t)bytes_read_u64(in);
    m->tail = bytes_read_u64(in);
    m->source_id = bytes_read_u64(in);
    m->fork_offset = bytes_read_u64(in);
    m->fork_anchor = bytes_read_u64(in);
    m->fork_sub_offset = bytes_read_u64(in);
    m->fork_refs = bytes_read_u64(in);
    m->closer.epoch = bytes_read_u64(in);
    m->closer.seq = bytes_read_u64(in);
}

int catalog_decode_stream(struct slice value, stream_id id, struct stream_meta *ret_meta)
{
    if (!crc_right(value)) {
        return ERR_CORRUPT;
    }
    const uint8_t *bytes = (const uint8_t *)value.ptr;
    struct bytes_reader in = {.at = bytes, .end = bytes + value.len - 4};
    struct stream_meta m = {.id = id};
    unsigned version = bytes_read_u8(&in);
    unsigned flags = bytes_read_u8(&in);
    m.fork_explicit = flags & FLAG_EXPLICIT;
    m.closed = flags & FLAG_CLOSED;
    m.soft_deleted = flags & FLAG_SOFT_DELETED;
    m.has_seq = flags & FLAG_HAS_SEQ;
    read_stream_numbers(&in, &m);
    m.name = read_str(&in);
    m.content_type = read_str(&in);
    m.seq = read_str(&in);
    m.closer.id = read_str(&in);
    bool whole = !in.failed && in.at == in.end;
    if (!whole || version != VERSION || (flags & ~FLAGS_ALL) != 0 || !stream_valid(&m)) {
        return ERR_CORRUPT;
    }
    *ret_meta = m;
    return 0;
}

void catalog_encode_state(const struct catalog_state *s, void *out)
{
    uint8_t *begin = out;
    memset(begin, 0, CATALOG_STATE_BYTES);
    bytes_put_u32(begin, VERSION);
    memcpy(begin + 4, s->uuid, 16);
    bytes_put_u32(begin + 20, s->format);
    bytes_put_u32(begin + 24, s->epoch);
    begin[28] = s->durable;
    begin[29] = s->log_made;
    begin[30] = s->counted;
    bytes_put_u64(begin + 32, s->checkpoint);
    bytes_put_u64(begin + 40, s->next_stream);
    bytes_put_u64(begin + 48, s->next_pack);
    bytes_put_u64(begin + 56, s->own_bytes);
    uint8_t *end = put_crc(begin + CATALOG_STATE_BYTES - 4, begin);
    assert(end == begin + CATALOG_STATE_BYTES);
}

int catalog_decode_state(struct slice value, struct catalog_state *ret_state)
{
    if (value.len != CATALOG_STATE_BYTES || !crc_right(value)) {
        return ERR_CORRUPT;
    }
    const uint8_t *at = (const uint8_t *)value.ptr;
    struct catalog_state s = {.format = bytes_get_u32(at + 20),
                              .epoch = bytes_get_u32(at + 24),
                              .durable = at[28],
                              .log_made = at[29],
                              .counted = at[30],
                              .checkpoint = bytes_get_u64(at + 32),
                              .next_stream = bytes_get_u64(at + 40),
                              .next_pack = bytes_get_u64(at + 48),
                              .own_bytes = bytes_get_u64(at + 56)};
    memcpy(s.uuid, at + 4, sizeof(s.uuid));
    if (bytes_get_u32(at) != VERSION || s.next_stream == 0 || s.next_pack == 0 ||
        s.checkpoint % RECORD_ALIGN != 0) {
        return ERR_CORRUPT;
    }
    *ret_state = s;
    return 0;
}

void catalog_encode_extent(const struct extent *e, void *out)
{
    uint8_t *at = out;
    assert(e->len > 0 && e->len <= EXTENT_MESSAGE_BYTES_MAX);
    assert(e->pack != 0);
    bytes_put_u64(at, e->pack);
    bytes_put_u64(at + 8, e->at);
    bytes_put_u32(at + 16, e->len);
    bytes_put_u32(at + 20, e->marks_len);
    bytes_put_u32(at + 24, e->crc);
}

int catalog_decode_extent(struct slice value, uint64_t start, struct extent *ret_extent)
{
    if (value.len != CATALOG_EXTENT_BYTES) {
        return ERR_CORRUPT;
    }
    struct extent e = {.start = start,
                       .len = bytes_get_u32(value.ptr + 16),
                       .marks_len = bytes_get_u32(value.ptr + 20),
                       .pack = bytes_get_u64(value.ptr),
                       .at = bytes_get_u64(value.ptr + 8),
                       .crc = bytes_get_u32(value.ptr + 24)};
    /* A message is at least a byte, and its mark at most a varint. */
    if (e.len == 0 || e.len > EXTENT_MESSAGE_BYTES_MAX || e.pack == 0 ||
        start > STREAM_OFFSET_MAX || e.marks_len / VARINT_BYTES_MAX > e.len || e.at > INT64_MAX) {
        return ERR_CORRUPT;
    }
    *ret_extent = e;
    return 0;
}

void catalog_encode_producer(const struct producer_meta *p, void *out)
{
    uint8_t *at = out;
    at = put_u64(at, p->epoch);
    at = put_u64(at, p->seq);
    (void)put_u64(at, (uint64_t)p->used_ms); /* the last one */
}

int catalog_decode_producer(struct slice value, struct slice id, struct producer_meta *ret_producer)
{
    if (value.len != CATALOG_PRODUCER_BYTES || id.len == 0 || id.len > PRODUCER_ID_BYTES_MAX) {
        return ERR_CORRUPT;
    }
    *ret_producer = (struct producer_meta){.id = id,
                                           .epoch = bytes_get_u64(value.ptr),
                                           .seq = bytes_get_u64(value.ptr + 8),
                                           .used_ms = (int64_t)bytes_get_u64(value.ptr + 16)};
    return 0;
}

static uint32_t note_crc(struct slice key, const void *bytes, size_t len)
{
    return crc32c(crc32c(0, key.ptr, key.len), bytes, len);
}

size_t catalog_encode_note(struct slice key, struct slice value, void *out)
{
    uint8_t *at = out;
    assert(value.len <= NOTE_VALUE_BYTES_MAX);
    at[0] = VERSION;
    if (value.len > 0) {
        memcpy(at + 1, value.ptr, value.len);
    }
    bytes_put_u32(at + 1 + value.len, note_crc(key, at, 1 + value.len));
    return 1 + value.len + 4;
}

int catalog_decode_note(struct slice key, struct slice entry, struct slice *ret_value)
{
    if (key.len == 0 || key.len > NOTE_KEY_BYTES_MAX || entry.len < 5 ||
        entry.len > CATALOG_NOTE_BYTES_MAX || entry.ptr[0] != (char)VERSION ||
        bytes_get_u32(entry.ptr + entry.len - 4) != note_crc(key, entry.ptr, entry.len - 4)) {
        return ERR_CORRUPT;
    }
    *ret_value = (struct slice){entry.ptr + 1, entry.len - 5};
    return 0;
}

void catalog_encode_pair(uint64_t first, uint64_t second, void *out)
{
    bytes_put_u64(out, first);
    bytes_put_u64((uint8_t *)out + 8, second);
}

int catalog_decode_pair(struct slice value, uint64_t *ret_first, uint64_t *ret_second)
{
    if (value.len != 16) {
        return ERR_CORRUPT;
    }
    *ret_first = bytes_get_u64(value.ptr);
    *ret_second = bytes_get_u64(value.ptr + 8);
    return 0;
}

void catalog_encode_pair_key(uint64_t first, uint64_t second, void *out)
{
    bytes_put_u64_be(out, first);
    bytes_put_u64_be((uint8_t *)out + 8, second);
}

int catalog_decode_pair_key(struct slice key, uint64_t *ret_first, uint64_t *ret_second)
{
    if (key.len != CATALOG_PAIR_KEY_BYTES) {
        return ERR_CORRUPT;
    }
    *ret_first = bytes_get_u64_be(key.ptr);
    *ret_second = bytes_get_u64_be(key.ptr + 8);
    return 0;
}

/* Reads renew a sliding TTL in memory and are logged only when an eighth of it has passed (a touch
 * record), so accessed_ms may be as much behind. */
static int64_t sliding_deadline(const struct stream_meta *m)
{
    if (m->ttl_seconds == UINT64_MAX) {
        return INT64_MAX;
    }
    assert(m->ttl_seconds <= STREAM_TTL_SECONDS_MAX);
    int64_t ttl_ms = (int64_t)m->ttl_seconds * 1000;
    int64_t deadline = 0;
    if (__builtin_add_overflow(m->accessed_ms, ttl_ms + ttl_ms / 8, &deadline)) {
        return INT64_MAX;
    }
    return deadline;
}

int64_t catalog_deadline(const struct stream_meta *m)
{
    if (m->soft_deleted) {
        return INT64_MAX; /* it goes when its last fork goes */
    }
    int64_t sliding = sliding_deadline(m);
    return sliding < m->expires_at_ms ? sliding : m->expires_at_ms;
}
