/* The bytes of a pack's file: its name, its header, and what stands in front of each extent. pack.c
 * opens with the layout. Pure. */
#ifndef ARBE_LOG_PACK_FORMAT_H
#define ARBE_LOG_PACK_FORMAT_H

#include "log/pack.h"
#include "log/record.h"

/* "pack-" and the id in 16 hexadecimal digits, with a NUL. */
#define PACK_NAME_BYTES 22u

/* Writes the name of the file of pack `id`. */
void pack_format_name(pack_id id, char out[static PACK_NAME_BYTES]);

/* The id in a file's name; false for any other name. */
bool pack_parse_name(const char *name, pack_id *ret_id) MUST_USE;

/* Writes PACK_HEADER_BYTES bytes, which only this pack of this directory begins with. */
void pack_encode_header(const uint8_t uuid[static 16], pack_id id, void *out);

/* What precedes an extent. */
struct pack_extent_header {
    pack_id pack;
    stream_id id;
    uint64_t start;     /* offset in the stream */
    uint32_t len;       /* bytes of data */
    uint32_t marks_len; /* bytes of marks */
    uint32_t crc;       /* of data and marks */
    uint32_t marks_crc; /* of the marks alone */
};

/* Writes PACK_EXTENT_HEADER_BYTES bytes. */
void pack_encode_extent_header(const struct pack_extent_header *h, void *out);

/* Decodes and proves as many. 0 or ERR_CORRUPT. */
int pack_decode_extent_header(const void *bytes, struct pack_extent_header *ret_header) MUST_USE;

#endif
