/* Field by field, little-endian; each header carries a checksum of its own. */
#include "log/pack_format.h"

#include <stdio.h>

#include "base/bytes.h"
#include "base/crc32c.h"

#define PACK_MAGIC         0x316b617065627261u /* "arbepak1" */
#define PACK_FORMAT        1u
#define PACK_HEADER_CRC_AT 60u
#define EXTENT_MAGIC       0x31747865u /* "ext1" */
#define NAME_PREFIX        "pack-"
#define NAME_DIGITS        16u

void pack_format_name(pack_id id, char out[static PACK_NAME_BYTES])
{
    (void)snprintf(out, PACK_NAME_BYTES, NAME_PREFIX "%016llx", (unsigned long long)id);
}

bool pack_parse_name(const char *name, pack_id *ret_id)
{
    size_t prefix = strlen(NAME_PREFIX);
    if (strncmp(name, NAME_PREFIX, prefix) != 0 || strlen(name) != prefix + NAME_DIGITS) {
        return false;
    }
    pack_id id = 0;
    for (const char *c = name + prefix; *c; c++) {
        bool digit = *c >= '0' && *c <= '9';
        bool letter = *c >= 'a' && *c <= 'f';
        if (!digit && !letter) {
            return false;
        }
        id = id * 16 + (unsigned)(digit ? *c - '0' : *c - 'a' + 10);
    }
    *ret_id = id;
    return true;
}

void pack_encode_header(const uint8_t uuid[static 16], pack_id id, void *bytes)
{
    uint8_t *out = bytes;
    memset(out, 0, PACK_HEADER_BYTES);
    bytes_put_u64(out, PACK_MAGIC);
    bytes_put_u32(out + 8, PACK_FORMAT);
    memcpy(out + 16, uuid, 16);
    bytes_put_u64(out + 32, id);
    bytes_put_u32(out + PACK_HEADER_CRC_AT, crc32c(0, out, PACK_HEADER_CRC_AT));
}

void pack_encode_extent_header(const struct pack_extent_header *h, void *bytes)
{
    uint8_t *out = bytes;
    bytes_put_u32(out, EXTENT_MAGIC);
    bytes_put_u64(out + 8, h->pack);
    bytes_put_u64(out + 16, h->id);
    bytes_put_u64(out + 24, h->start);
    bytes_put_u32(out + 32, h->len);
    bytes_put_u32(out + 36, h->marks_len);
    bytes_put_u32(out + 40, h->crc);
    bytes_put_u32(out + 44, h->marks_crc);
    bytes_put_u32(out + 4, crc32c(0, out + 8, PACK_EXTENT_HEADER_BYTES - 8));
}

int pack_decode_extent_header(const void *bytes, struct pack_extent_header *ret_header)
{
    const uint8_t *in = bytes;
    if (bytes_get_u32(in) != EXTENT_MAGIC ||
        bytes_get_u32(in + 4) != crc32c(0, in + 8, PACK_EXTENT_HEADER_BYTES - 8)) {
        return ERR_CORRUPT;
    }
    *ret_header = (struct pack_extent_header){.pack = bytes_get_u64(in + 8),
                                              .id = bytes_get_u64(in + 16),
                                              .start = bytes_get_u64(in + 24),
                                              .len = bytes_get_u32(in + 32),
                                              .marks_len = bytes_get_u32(in + 36),
                                              .crc = bytes_get_u32(in + 40),
                                              .marks_crc = bytes_get_u32(in + 44)};
    return 0;
}
