/* A file piece is sent by the kernel from the page cache. When its next bytes may not be there,
 * they are read on the pool first, a window at a time, so that no event loop waits for a disk.
 * The piece's context lives until both the connection has let go of it and no read of it is
 * under way. */
#include "serve/page.h"

#include "base/pool.h"
#include "log/pack.h"

#include <stdlib.h>
#include <unistd.h>

#define SMALL_BYTES_MAX (8 * KIB)
#define WINDOW_BYTES    (1 * MIB)
#define READ_BYTES      (64 * KIB)

struct page_file {
    struct stream_piece piece; /* owns its pack reference */
    struct worker *worker;
    struct conn *conn;     /* that waits for the window */
    struct task read_task; /* on the pool, then on the loop */
    uint64_t warm_until; /* file offset up to which bytes were read; the kernel's opinion of what is
                            * resident is not asked twice */
    uint64_t window_at;  /* being read */
    size_t window_len;
    bool reading;
    bool released; /* the connection is done with it */
};

uint64_t page_body_bytes(const struct stream_page *page)
{
    if (!page->json) {
        return page->bytes;
    }
    return page->bytes == 0 ? 2 : page->bytes + 1;
}

bool page_append_small(struct buf *out, const struct stream_page *page)
{
    if (page->bytes > SMALL_BYTES_MAX) {
        return false;
    }
    for (size_t i = 0; i < page->piece_count; i++) {
        if (page->pieces[i].block == NULL) {
            return false;
        }
    }
    if (page->json) {
        buf_append_char(out, '[');
    }
    for (size_t i = 0; i < page->piece_count; i++) {
        buf_append(out, (struct slice){page->pieces[i].ptr, page->pieces[i].len});
    }
    if (page->json && page->bytes > 0 && !out->failed) {
        out->len--; /* the last comma */
    }
    if (page->json) {
        buf_append_char(out, ']');
    }
    return true;
}

/* The byte `back` places before the page's end, in pieces that are all in memory. */
static unsigned char byte_before_end(const struct stream_page *page, size_t back)
{
    size_t at = page->piece_count;

    while (at > 0) {
        const struct stream_piece *piece = &page->pieces[--at];

        if (back <= piece->len) {
            return (unsigned char)piece->ptr[piece->len - back];
        }
        back -= piece->len;
    }
    return 0;
}

/* The length of the character that `byte` begins; 1 for a byte that begins none. */
static size_t character_bytes(unsigned char byte)
{
    if (byte < 0xc2 || byte > 0xf4) {
        return 1;
    }
    return byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
}

/* How many bytes of a character that is not whole stand at the end. */
static size_t cut_bytes(const struct stream_page *page)
{
    for (size_t back = 1; back < 4 && back <= page->bytes; back++) {
        unsigned char byte = byte_before_end(page, back);

        if ((byte & 0xc0) != 0x80) {
            return character_bytes(byte) > back ? back : 0;
        }
    }
    return 0;
}

void page_trim_text(struct stream_page *page, bool more)
{
    size_t cut = cut_bytes(page);

    if (more && page->bytes > 0 && byte_before_end(page, 1) == '\r') {
        cut = 1;
    }
    if (more && cut == page->bytes) {
        return; /* a page must move its reader on */
    }
    page->bytes -= cut;
    page->next -= cut;
    for (size_t at = page->piece_count; cut > 0; at--) {
        struct stream_piece *piece = &page->pieces[at - 1];
        size_t part = piece->len < cut ? piece->len : cut;

        piece->len -= part;
        cut -= part;
    }
}

static void destroy(struct page_file *file)
{
    struct stream_piece *piece = &file->piece;

    pack_unref(piece->pack);
    free(file);
}

static void on_window_read(struct task *task)
{
    struct page_file *file = container_of(task, struct page_file, read_task);
    struct worker *w = file->worker;

    file->reading = false;
    file->warm_until = file->window_at + file->window_len;
    w->warming--;
    if (file->released) {
        destroy(file);
        worker_check_end(w);
        return;
    }
    conn_resume(file->conn);
}

/* On the pool. Errors are left to sendfile, which meets them again and ends the connection. */
static void read_window(struct task *task)
{
    struct page_file *file = container_of(task, struct page_file, read_task);
    char scratch[READ_BYTES];
    size_t done = 0;

    while (done < file->window_len) {
        size_t want = file->window_len - done;
        ssize_t got = pread(file->piece.pack->fd, scratch, want < READ_BYTES ? want : READ_BYTES,
                            (off_t)(file->window_at + done));

        if (got <= 0) {
            break;
        }
        done += (size_t)got;
    }
    task->run = on_window_read;
    loop_post(file->worker->loop, task);
}

static bool is_warm(void *context, struct conn *c, uint64_t offset, size_t len)
{
    struct page_file *file = context;
    size_t window = len < WINDOW_BYTES ? len : WINDOW_BYTES;

    if (file->reading) {
        return false;
    }
    if (offset < file->warm_until ||
        stream_piece_resident(&file->piece, offset - file->piece.at, window)) {
        return true;
    }
    file->conn = c;
    file->reading = true;
    file->window_at = offset;
    file->window_len = window;
    file->read_task.run = read_window;
    file->worker->warming++;
    pool_submit(file->worker->server->pool, &file->read_task);
    return false;
}

static void release(void *context)
{
    struct page_file *file = context;

    file->released = true;
    if (!file->reading) {
        destroy(file);
    }
}

static bool queue_file(struct exchange *x, struct stream_piece *piece, size_t len)
{
    struct page_file *file = calloc(1, sizeof(*file));

    if (file == NULL) {
        return false;
    }
    file->piece = *piece;
    file->worker = x->worker;
    piece->pack = NULL; /* the reference has moved */
    struct conn_file run = {
        .fd = file->piece.pack->fd,
        .offset = file->piece.at,
        .len = len,
        .release = release,
        .warm = is_warm,
        .context = file,
    };

    return conn_send_file(&x->session->conn, &run) == 0;
}

static bool queue_piece(struct exchange *x, struct stream_piece *piece, size_t len)
{
    if (len == 0) {
        return true;
    }
    if (piece->block == NULL) {
        return queue_file(x, piece, len);
    }
    struct block *block = piece->block;

    piece->block = NULL; /* as above */
    return conn_send_block(&x->session->conn, block, (struct slice){piece->ptr, len}) == 0;
}

bool page_queue(struct exchange *x, struct stream_page *page)
{
    struct conn *c = &x->session->conn;

    if (page->json && conn_send_copy(c, SLICE("[")) != 0) {
        return false;
    }
    for (size_t i = 0; i < page->piece_count; i++) {
        bool comma = page->json && i + 1 == page->piece_count;
        struct stream_piece *piece = &page->pieces[i];

        if (!queue_piece(x, piece, comma ? piece->len - 1 : piece->len)) {
            return false;
        }
    }
    return !page->json || conn_send_copy(c, SLICE("]")) == 0;
}
