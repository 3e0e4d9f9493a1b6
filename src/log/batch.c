/* Bodies that stay in their blocks are kept beside the buffer, each with the place in it where it
 * belongs, so that writing needs no pass over the records. */
#include "log/batch.h"

#include <assert.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/limits.h"

#define BATCH_BYTES_MIN  (256u * KIB)
#define BATCH_BYTES_KEPT (8u * MIB) /* a larger buffer is freed once it was written */
#define BATCH_PIECES_MIN 64u

struct batch_piece {
    size_t at;           /* bytes of the buffer that come before it */
    struct slice bytes;  /* in the block */
    struct block *block; /* one reference */
};

void batch_init(struct batch *b)
{
    *b = (struct batch){0};
}

static void unref_pieces(struct batch *b)
{
    for (size_t i = 0; i < b->piece_count; i++) {
        block_unref(b->pieces[i].block);
    }
    b->piece_count = 0;
}

void batch_finish(struct batch *b)
{
    unref_pieces(b);
    free(b->bytes);
    free(b->pieces);
    batch_init(b);
}

void batch_clear(struct batch *b)
{
    unref_pieces(b);
    b->len = 0;
    b->records = 0;
    if (b->cap > BATCH_BYTES_KEPT) {
        free(b->bytes);
        b->bytes = NULL;
        b->cap = 0;
    }
}

int batch_reserve(struct batch *b, size_t len)
{
    if (b->cap - b->len < len) {
        size_t cap = b->cap ? b->cap : BATCH_BYTES_MIN;
        while (cap - b->len < len) {
            cap *= 2;
        }
        char *bytes = realloc(b->bytes, cap);
        if (!bytes) {
            return ERR_NOMEM;
        }
        b->bytes = bytes;
        b->cap = cap;
    }
    if (b->piece_count == b->piece_cap) {
        size_t cap = b->piece_cap ? b->piece_cap * 2 : BATCH_PIECES_MIN;
        struct batch_piece *pieces = realloc(b->pieces, cap * sizeof(pieces[0]));
        if (!pieces) {
            return ERR_NOMEM;
        }
        b->pieces = pieces;
        b->piece_cap = cap;
    }
    return 0;
}

void batch_put(struct batch *b, const void *bytes, size_t len)
{
    assert(len <= b->cap - b->len);
    if (len > 0) {
        memcpy(b->bytes + b->len, bytes, len);
        b->len += len;
    }
}

void batch_put_zeros(struct batch *b, size_t len)
{
    assert(len <= b->cap - b->len);
    memset(b->bytes + b->len, 0, len);
    b->len += len;
}

void batch_put_block(struct batch *b, struct slice bytes, struct block *block)
{
    assert(b->piece_count < b->piece_cap);
    b->pieces[b->piece_count++] = (struct batch_piece){
        .at = b->len, .bytes = bytes, .block = block_ref(block)};
}

void batch_write(const struct batch *b, struct chain_writer *w)
{
    size_t done = 0;
    for (size_t i = 0; i < b->piece_count; i++) {
        const struct batch_piece *p = &b->pieces[i];
        chain_writer_put(w, b->bytes + done, p->at - done);
        chain_writer_put(w, p->bytes.ptr, p->bytes.len);
        done = p->at;
    }
    chain_writer_put(w, b->bytes + done, b->len - done);
}
