/* Records staged for one write: their frames in one buffer, with small bodies copied in; larger
 * bodies stay in their blocks, which are referenced. A batch is filled under the log's lock and
 * written without it, while another one is being filled. Memory is kept from use to use. */
#ifndef ARBE_LOG_BATCH_H
#define ARBE_LOG_BATCH_H

#include "base/block.h"
#include "base/slice.h"
#include "log/chain.h"
#include "log/record.h"

struct batch_piece; /* a body that stays where it is */

struct batch {
    char *bytes;                /* owned; frames, heads, small bodies, padding */
    size_t len;                 /* of bytes in use */
    size_t cap;                 /* of bytes */
    struct batch_piece *pieces; /* owned; ascending by where they belong */
    size_t piece_count;
    size_t piece_cap;
    log_pos start;    /* of the first record; unset while empty */
    log_pos end;      /* behind the last */
    uint64_t records; /* counted by who puts them */
};

/* An empty batch; allocates nothing. */
void batch_init(struct batch *b);

/* Drops the references and frees. */
void batch_finish(struct batch *b);

/* Drops the references and forgets the records; gives memory back only after an unusual peak. */
void batch_clear(struct batch *b);

/* Room for `len` more bytes, and for one piece; 0 or ERR_NOMEM, which changes nothing. */
int batch_reserve(struct batch *b, size_t len) MUST_USE;

/* Adds bytes; what batch_reserve made room for. */
void batch_put(struct batch *b, const void *bytes, size_t len);

/* Adds `len` zero bytes, within the reserved room. */
void batch_put_zeros(struct batch *b, size_t len);

/* Adds bytes of `block`, by reference. */
void batch_put_block(struct batch *b, struct slice bytes, struct block *block);

/* Hands all bytes in order to `w`, which borrows them until it is flushed. */
void batch_write(const struct batch *b, struct chain_writer *w);

#endif
