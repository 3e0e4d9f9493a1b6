/* CRC-32C (Castagnoli, RFC 3720 B.4), by the processor's instruction where there is one. Any
 * thread. */
#ifndef ARBE_BASE_CRC32C_H
#define ARBE_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues `crc` (0 to begin) over `len` bytes. crc32c("123456789") is 0xe3069283. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t len);

#endif
