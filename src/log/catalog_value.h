/* The bytes of the catalog's keys and values: pure conversions, used by catalog.c and fuzzed on
 * their own. catalog_value.c opens with the layouts. Decoders treat their input as hostile and
 * return ERR_CORRUPT; slices they return borrow from it. */
#ifndef ARBE_LOG_CATALOG_VALUE_H
#define ARBE_LOG_CATALOG_VALUE_H

#include "base/limits.h"
#include "log/catalog.h"

#define CATALOG_STATE_BYTES      76u
#define CATALOG_EXTENT_BYTES     28u
#define CATALOG_PRODUCER_BYTES   24u
#define CATALOG_PACK_BYTES       16u
#define CATALOG_PACK_ENTRY_BYTES 16u
#define CATALOG_PAIR_KEY_BYTES   16u
#define CATALOG_NOTE_BYTES_MAX   (1u + NOTE_VALUE_BYTES_MAX + 4u)
#define CATALOG_STREAM_BYTES_MAX                                                           \
    (256u + STREAM_NAME_BYTES_MAX + STREAM_CONTENT_TYPE_BYTES_MAX + STREAM_SEQ_BYTES_MAX + \
     PRODUCER_ID_BYTES_MAX)

/* Writes at most CATALOG_STREAM_BYTES_MAX bytes; returns how many. The id is the key's. */
size_t catalog_encode_stream(const struct stream_meta *meta, void *out);

/* All of the value is used and proven; the id is the key's. */
int catalog_decode_stream(struct slice value, stream_id id, struct stream_meta *ret_meta) MUST_USE;

/* CATALOG_STATE_BYTES bytes. */
void catalog_encode_state(const struct catalog_state *state, void *out);

/* All of the value is used and proven. */
int catalog_decode_state(struct slice value, struct catalog_state *ret_state) MUST_USE;

/* CATALOG_EXTENT_BYTES bytes; the start is the key's. */
void catalog_encode_extent(const struct extent *e, void *out);

/* Checks the bounds that extents have. */
int catalog_decode_extent(struct slice value, uint64_t start, struct extent *ret_extent) MUST_USE;

/* CATALOG_PRODUCER_BYTES bytes; the id is the key's. */
void catalog_encode_producer(const struct producer_meta *p, void *out);

/* The id borrows from the key. */
int catalog_decode_producer(struct slice value, struct slice id,
                            struct producer_meta *ret_producer) MUST_USE;

/* Two numbers of a value, little-endian, 16 bytes: a pack's live and total bytes, or the stream and
 * the start of an extent of a pack. */
void catalog_encode_pair(uint64_t first, uint64_t second, void *out);

/* Exactly 16 bytes. */
int catalog_decode_pair(struct slice value, uint64_t *ret_first, uint64_t *ret_second) MUST_USE;

/* Two numbers of a key, big-endian, so that keys sort as pairs of numbers. */
void catalog_encode_pair_key(uint64_t first, uint64_t second, void *out);

/* Exactly 16 bytes. */
int catalog_decode_pair_key(struct slice key, uint64_t *ret_first, uint64_t *ret_second) MUST_USE;

/* Writes at most CATALOG_NOTE_BYTES_MAX bytes; returns how many. The checksum covers the key, so
 * that no value passes for that of another key. */
size_t catalog_encode_note(struct slice key, struct slice value, void *out);

/* All of the entry is used and proven. */
int catalog_decode_note(struct slice key, struct slice entry, struct slice *ret_value) MUST_USE;

/* When the stream may have to go at the earliest moment that the catalog can tell, as milliseconds;
 * INT64_MAX: never. */
int64_t catalog_deadline(const struct stream_meta *meta);

#endif
