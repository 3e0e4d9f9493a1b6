/* Pieces are gathered run by run (locate.h). Marks are only looked at where a JSON page is cut, or
 * where a client's offset has to be proved to lie between messages. */
#include "stream/page.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "base/limits.h"
#include "log/marks.h"
#include "stream/locate.h"

#define PROBE_STRIDE (128u * KIB)

static void piece_finish(struct stream_piece *piece)
{
    block_unref(piece->block);
    pack_unref(piece->pack);
}

static void drop_pieces(struct stream_page *page)
{
    for (size_t i = 0; i < page->piece_count; i++) {
        piece_finish(&page->pieces[i]);
    }
    free(page->pieces);
    page->pieces = NULL;
    page->piece_count = 0;
    page->bytes = 0;
    page->next = page->start;
}

void stream_page_finish(struct stream_page *page)
{
    drop_pieces(page);
    stream_unref(page->stream);
    *page = (struct stream_page){0};
}

/* One byte of each PROBE_STRIDE is asked for: read-ahead brings in more than that at once. Where
 * the file system cannot tell, the bytes are taken to be there. */
bool stream_piece_resident(const struct stream_piece *piece, uint64_t from, size_t len)
{
    assert(from <= piece->len && len <= piece->len - from);
    for (uint64_t at = from; piece->pack && at < from + len; at += PROBE_STRIDE) {
        char byte;
        struct iovec iov = {&byte, 1};
        ssize_t got = preadv2(piece->pack->fd, &iov, 1, (off_t)(piece->at + at), RWF_NOWAIT);
        if (got < 0 && errno == EAGAIN) {
            return false;
        }
    }
    return true;
}

/* Room for one more piece; doubles. */
static struct stream_piece *add_piece(struct stream_page *page)
{
    size_t n = page->piece_count;
    if ((n & (n - 1)) == 0) {
        size_t cap = n == 0 ? 1 : 2 * n;
        struct stream_piece *pieces = realloc(page->pieces, cap * sizeof(pieces[0]));
        if (!pieces) {
            return NULL;
        }
        page->pieces = pieces;
    }
    struct stream_piece *piece = &page->pieces[n];
    *piece = (struct stream_piece){0};
    return piece;
}

/* All of the bytes or an error: a page never holds fewer bytes than it says. */
static int read_pack(struct engine *e, const struct pack *pack, uint64_t at, struct block *b)
{
    struct sys *sys = e->config.store.sys;
    int64_t got = sys->pread(sys->context, pack->fd, b->data, b->cap, at);
    if (got < 0) {
        return (int)got;
    }
    b->len = (uint32_t)got;
    return b->len == b->cap ? 0 : ERR_CORRUPT;
}

/* Replaces the pack of a piece by the bytes themselves. */
static int load_piece(struct engine *e, struct stream_piece *piece)
{
    struct block *b = block_try_create(piece->len);
    if (!b) {
        return ERR_NOMEM;
    }
    int code = read_pack(e, piece->pack, piece->at, b);
    if (code < 0) {
        block_unref(b);
        return code;
    }
    pack_unref(piece->pack);
    piece->pack = NULL;
    piece->block = b;
    piece->ptr = b->data;
    return 0;
}

/* A piece that lies in a pack. */
static int fill_cold(struct engine *e, const struct page_request *r, const struct locate_run *run,
                     struct stream_piece *piece)
{
    const struct store_ops *ops = e->store->ops;
    if (r->in_memory && !r->may_block) {
        return ERR_AGAIN;
    }
    struct pack *pack = ops->pack_try_get(e->store, run->extent.pack);
    if (!pack && !r->may_block) {
        return ERR_AGAIN;
    }
    if (!pack) {
        int code = ops->pack_get(e->store, run->extent.pack, &pack);
        if (code < 0) {
            return code;
        }
    }
    piece->pack = pack;
    piece->at += run->extent.at;
    return r->in_memory ? load_piece(e, piece) : 0;
}

/* The runs of one large body follow each other in its block: they are sent as one piece. */
static bool extend_piece(struct stream_page *page, const struct block *block, const char *ptr,
                         size_t len)
{
    struct stream_piece *last = page->piece_count > 0 ? &page->pieces[page->piece_count - 1] : NULL;
    if (!last || last->block != block || last->ptr + last->len != ptr) {
        return false;
    }
    last->len += len;
    page->bytes += len;
    return true;
}

/* Adds [page->next, end) of the run. */
static int take(struct stream_page *page, const struct page_request *r,
                const struct locate_run *run, uint64_t end)
{
    assert(page->next >= run->start);
    assert(end > page->next);
    uint64_t skip = page->next - run->start;
    if (run->block && extend_piece(page, run->block, run->ptr + skip, (size_t)(end - page->next))) {
        page->next = end;
        return 0;
    }
    struct stream_piece *piece = add_piece(page);
    if (!piece) {
        return ERR_NOMEM;
    }
    piece->len = (size_t)(end - page->next);
    if (run->block) {
        piece->block = block_ref(run->block);
        piece->ptr = run->ptr + skip;
    } else {
        piece->at = skip;
        int code = fill_cold(page->stream->engine, r, run, piece);
        if (code < 0) {
            piece_finish(piece);
            return code;
        }
    }
    page->piece_count++;
    page->bytes += piece->len;
    page->next = end;
    return 0;
}

/* Both ends of the piece: what a checkpoint wrote not long ago mostly is there as a whole, and a
 * wrong guess costs a read on the pool. */
static bool seems_resident(const struct stream_piece *piece)
{
    return stream_piece_resident(piece, 0, 1) && stream_piece_resident(piece, piece->len - 1, 1);
}

/* Takes many bytes from a pack that are in memory too: false when there are not so many, or the
 * pack is not at hand. */
static bool try_packed(struct stream_page *page, const struct page_request *r, uint64_t limit)
{
    struct locate_run run;
    struct engine *e = page->stream->engine;
    if (r->in_memory || !locate_packed(page->stream, page->next, limit, page->json, &run)) {
        return false;
    }
    struct stream_piece piece = {.pack = e->store->ops->pack_try_get(e->store, run.extent.pack),
                                 .at = run.extent.at + (page->next - run.start),
                                 .len = (size_t)(run.end - page->next)};
    struct stream_piece *slot = piece.pack && seems_resident(&piece) ? add_piece(page) : NULL;
    if (!slot) {
        piece_finish(&piece);
        return false;
    }
    *slot = piece;
    page->piece_count++;
    page->bytes += piece.len;
    page->next = run.end;
    return true;
}

/* Where the page ends within the run: at `limit`, in JSON mode at the boundary before it, or
 * behind the page's first message when that alone is longer. Equal to page->next when the page is
 * full. */
static uint64_t cut(const struct stream_page *page, const struct locate_run *run, uint64_t limit)
{
    if (!page->json || limit >= run->end) {
        return limit < run->end ? limit : run->end;
    }
    struct marks_cut c = marks_cut_at(run->marks, limit - run->start);
    uint64_t end = run->start + c.floor;
    if (end > page->next) {
        return end;
    }
    if (page->bytes > 0) {
        return page->next;
    }
    end = run->start + c.ceiling;
    return end < run->end ? end : run->end;
}

/* One run: 0 and more to come, 1 when the page is full, or an error. */
static int gather_run(struct stream_page *page, const struct page_request *r, uint64_t limit)
{
    struct stream *s = page->stream;
    bool first = page->next == page->start;
    if (!(page->json && r->check && first) && try_packed(page, r, limit)) {
        return page->next == limit;
    }
    struct locate_run run;
    int code = locate_run(s, page->next, page->json, &run);
    if (code < 0) {
        return code;
    }
    run.end = run.end < r->tail ? run.end : r->tail;
    bool check = page->json && r->check && first && page->next > run.start;
    bool marks = check || (page->json && limit < run.end);
    if (marks && !run.block) {
        code = r->may_block ? locate_marks(s->engine, &run) : ERR_AGAIN;
    }
    if (code == 0 && check &&
        marks_cut_at(run.marks, page->next - run.start).floor != page->next - run.start) {
        code = ERR_INVALID;
    }
    if (code == 0) {
        uint64_t end = cut(page, &run, limit);
        bool full = end == page->next || end >= limit;
        code = end > page->next ? take(page, r, &run, end) : 0;
        code = code == 0 && full ? 1 : code;
    }
    locate_finish(&run);
    return code;
}

static int gather(struct stream_page *page, const struct page_request *r)
{
    uint64_t limit = r->tail - page->start > r->bytes_max ? page->start + r->bytes_max : r->tail;
    int code = 0;
    page->next = page->start;
    while (code == 0 && page->next < r->tail) {
        code = gather_run(page, r, limit);
    }
    if (code == ERR_NOTFOUND) {
        int again = locate_again(page->stream, page->next);
        code = again < 0 ? again : code;
    }
    if (code < 0) {
        drop_pieces(page);
    }
    return code < 0 ? code : 0;
}

int page_gather(struct stream_page *page, const struct page_request *r)
{
    assert(page->start < r->tail);
    assert(r->bytes_max > 0);
    int code = ERR_NOTFOUND;
    for (int i = 0; i < LOCATE_TRIES_MAX && code == ERR_NOTFOUND; i++) {
        code = gather(page, r);
    }
    return code == ERR_NOTFOUND ? ERR_IO : code;
}
