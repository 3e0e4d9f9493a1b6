/* The decoder of chunked bodies (RFC 9112 section 7.1), strict: a chunk size is 1 to 15 hex digits,
 * lines end with CRLF, extensions and trailers are bounded and ignored. A state machine over bytes:
 * no descriptor, clock or allocation. */
#ifndef ARBE_HTTP_CHUNK_H
#define ARBE_HTTP_CHUNK_H

#include "base/attr.h"
#include "base/slice.h"

struct chunk_decoder {
    /* private */
    int state;
    uint64_t left;       /* bytes of the current chunk not yet seen */
    uint32_t line_bytes; /* of the current line */
    uint32_t digits;     /* of the current size */
    uint32_t trailer_bytes;
};

/* At the start of a body; owns nothing, so there is no finish. */
void chunk_decoder_init(struct chunk_decoder *d);

/* Looks at `input`: returns how many bytes of it were used up (may be 0 when empty), or
 * ERR_INVALID (malformed) or ERR_TOOBIG (line or trailer over its cap). *ret_data is the run of
 * body bytes within what was used up, empty when there was none; call again with the rest until
 * *ret_done. */
long chunk_decode(struct chunk_decoder *d, struct slice input, struct slice *ret_data,
                  bool *ret_done) MUST_USE;

/* Bytes that the current chunk still has: a caller may receive so many straight into its buffer and
 * then call chunk_decoder_skip. */
uint64_t chunk_decoder_left(const struct chunk_decoder *d);
void chunk_decoder_skip(struct chunk_decoder *d, uint64_t count);

#endif
