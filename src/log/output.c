/* Finished packs are remembered by id and size until the transaction that names them. */
#include "log/output.h"

#include <assert.h>
#include <stdlib.h>

#include "base/limits.h"

struct output_pack {
    pack_id id;
    uint64_t bytes;
};

void output_init(struct output *o, const struct output_target *target)
{
    *o = (struct output){.target = target};
}

/* Room to remember one more finished pack. */
static int reserve(struct output *o)
{
    if (o->pack_count < o->pack_cap) {
        return 0;
    }
    size_t cap = o->pack_cap ? o->pack_cap * 2 : 4;
    struct output_pack *packs = realloc(o->packs, cap * sizeof(packs[0]));
    if (!packs) {
        return ERR_NOMEM;
    }
    o->packs = packs;
    o->pack_cap = cap;
    return 0;
}

static int finish_pack(struct output *o)
{
    int rc = reserve(o);
    rc = rc ? rc : pack_writer_finish(o->writer);
    if (rc) {
        return rc;
    }
    o->packs[o->pack_count++] = (struct output_pack){pack_writer_id(o->writer),
                                                     pack_writer_bytes(o->writer)};
    pack_writer_destroy(o->writer);
    o->writer = NULL;
    return 0;
}

int output_add(struct output *o, stream_id id, uint64_t start, const struct slice *pieces,
               size_t piece_count, struct slice marks, struct extent *ret_extent)
{
    const struct output_target *t = o->target;
    int rc = 0;
    if (o->writer && pack_writer_bytes(o->writer) >= PACK_BYTES_MAX) {
        rc = finish_pack(o);
    }
    if (rc == 0 && !o->writer) {
        rc = pack_writer_create(t->packs, (*t->next_pack)++, t->sync, &o->writer);
    }
    return rc ? rc : pack_writer_add(o->writer, id, start, pieces, piece_count, marks, ret_extent);
}

int output_finish(struct output *o, struct catalog_txn *t)
{
    int rc = o->writer ? finish_pack(o) : 0;
    for (size_t i = 0; i < o->pack_count && rc == 0; i++) {
        catalog_put_pack(t, o->packs[i].id, o->packs[i].bytes);
    }
    return rc;
}

void output_close(struct output *o, bool keep)
{
    pack_writer_destroy(o->writer);
    for (size_t i = 0; i < o->pack_count && !keep; i++) {
        pack_set_drop(o->target->packs, o->packs[i].id);
    }
    free(o->packs);
    *o = (struct output){0};
}
