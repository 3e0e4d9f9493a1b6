/* The queue between the two threads, and who owns what when. */
#include "app/relay.h"

#include "base/limits.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* What a piece takes beside its bytes. */
#define PIECE_BYTES (sizeof(struct relay_piece) + sizeof(struct block) + RELAY_CHUNK_LINE + 34u)

static void lock(struct relay *r)
{
    (void)pthread_mutex_lock(&r->shared->mutex);
}

static void unlock(struct relay *r)
{
    (void)pthread_mutex_unlock(&r->shared->mutex);
}

/* Under the lock: the worker is to look. */
static void tell_worker(struct relay *r)
{
    if (!r->gone && !r->posted) {
        r->posted = true;
        loop_post(r->loop, &r->task);
    }
}

/* Under the lock: the upstream's thread is to look. */
static void tell_upstream(struct relay *r)
{
    if (list_empty(&r->news)) {
        list_append(&r->shared->news, &r->news);
    }
    (void)curl_multi_wakeup(r->shared->multi); /* when it fails, that looks within a second */
}

static struct relay_piece *make_piece(struct slice bytes)
{
    size_t len = RELAY_CHUNK_LINE + bytes.len + RELAY_CHUNK_END;
    struct relay_piece *piece = malloc(sizeof(*piece));
    struct block *block = block_try_create(len);
    char line[RELAY_CHUNK_LINE + 1];

    if (piece == NULL || block == NULL) {
        free(piece);
        block_unref(block);
        return NULL;
    }
    (void)snprintf(line, sizeof(line), "%08zx\r\n", bytes.len);
    memcpy(block->data, line, RELAY_CHUNK_LINE);
    memcpy(block->data + RELAY_CHUNK_LINE, bytes.ptr, bytes.len);
    memcpy(block->data + RELAY_CHUNK_LINE + bytes.len, "\r\n", RELAY_CHUNK_END);
    block->len = (uint32_t)len;
    piece->block = block;
    list_init(&piece->link);
    return piece;
}

static size_t piece_bytes(const struct block *block)
{
    return block->len + PIECE_BYTES;
}

bool relay_push(struct relay *r, struct slice bytes, bool *ret_failed)
{
    *ret_failed = false;
    lock(r);
    bool full = r->pieces_bytes >= UPSTREAM_QUEUE_BYTES_MAX;

    r->paused = full;
    unlock(r);
    if (full) {
        return false;
    }
    struct relay_piece *piece = make_piece(bytes);

    if (piece == NULL) {
        *ret_failed = true;
        return false;
    }
    lock(r);
    list_append(&r->pieces, &piece->link);
    r->pieces_bytes += piece_bytes(piece->block);
    tell_worker(r);
    unlock(r);
    return true;
}

void relay_head_done(struct relay *r)
{
    lock(r);
    r->head_whole = true;
    tell_worker(r);
    unlock(r);
}

void relay_end(struct relay *r, enum relay_end end)
{
    assert(end != RELAY_OPEN);
    lock(r);
    r->ended = end;
    tell_worker(r);
    unlock(r);
}

bool relay_take_resume(struct relay *r)
{
    lock(r);
    bool resume = r->resume;

    r->resume = false;
    unlock(r);
    return resume;
}

bool relay_look(struct relay *r, enum relay_end *ret_ended)
{
    lock(r);
    bool head_whole = r->head_whole;

    r->posted = false;
    *ret_ended = r->ended;
    unlock(r);
    return head_whole;
}

struct block *relay_take(struct relay *r, enum relay_end *ret_ended)
{
    struct block *block = NULL;

    lock(r);
    struct list *first = list_first(&r->pieces);

    *ret_ended = r->ended;
    if (first != NULL) {
        struct relay_piece *piece = container_of(first, struct relay_piece, link);

        list_remove(first);
        block = piece->block;
        r->pieces_bytes -= piece_bytes(block);
        free(piece);
        if (r->paused && r->pieces_bytes <= UPSTREAM_QUEUE_BYTES_MAX / 2) {
            r->paused = false;
            r->resume = true;
            tell_upstream(r);
        }
    }
    unlock(r);
    return block;
}

static void drop_pieces(struct relay *r)
{
    LIST_FOR_EACH(node, &r->pieces)
    {
        struct relay_piece *piece = container_of(node, struct relay_piece, link);

        list_remove(node);
        block_unref(piece->block);
        free(piece);
    }
    r->pieces_bytes = 0;
}

void relay_leave(struct relay *r)
{
    struct loop *loop = r->loop;

    lock(r);
    r->gone = true;
    drop_pieces(r);
    /* From here on nothing is posted; once the lock is open, the memory may go at any time. */
    loop_unpost(loop, &r->task);
    tell_upstream(r);
    unlock(r);
}

bool relay_start(struct relay *r, unsigned relays_max)
{
    lock(r);
    bool good = r->shared->count < relays_max && !r->shared->stopping;

    if (good) {
        r->shared->count++;
        tell_upstream(r);
    }
    unlock(r);
    return good;
}

void relay_destroy(struct relay *r)
{
    drop_pieces(r);
    upstream_request_finish(&r->request);
    upstream_head_finish(&r->head);
    free(r);
}
