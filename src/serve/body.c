/* Growth: the first block holds what has already come, 4 KiB at least, and it doubles whenever it
 * is full, up to the announced length and no further: a client must send a byte for every two that
 * it makes us hold, and an upload that only announces itself costs 4 KiB. A body that has come
 * with its head gets its exact size at once. */
#include "serve/body.h"

#include <assert.h>

#define FIRST_BYTES_MIN (4 * KIB)
#define FREE_BYTES_MAX  (4 * KIB) /* not counted: bounded by the cap on connections */
#define CHUNKED_FIRST   512u

static size_t min_size(uint64_t a, uint64_t b)
{
    return (size_t)(a < b ? a : b);
}

int body_begin(struct body *b, struct server *server, const struct http_request *request)
{
    *b = (struct body){.kind = request->body, .max = server->config->body_bytes_max};
    if (b->kind == HTTP_BODY_LENGTH) {
        b->declared = request->content_length;
        if (b->declared > b->max) {
            return ERR_TOOBIG;
        }
    }
    chunk_decoder_init(&b->chunks);
    b->whole = b->kind == HTTP_BODY_NONE || (b->kind == HTTP_BODY_LENGTH && b->declared == 0);
    return 0;
}

int body_limit(struct body *b, uint64_t bytes_max)
{
    if (bytes_max < b->max) {
        b->max = bytes_max;
    }
    return b->declared > b->max ? ERR_TOOBIG : 0;
}

/* Counts `bytes` more; ERR_BUSY when that is over the budget. */
static int charge(struct body *b, struct server *server, uint64_t bytes)
{
    if (bytes == 0) {
        return 0;
    }
    uint64_t before = atomic_fetch_add(&server->body_bytes, bytes);

    if (before + bytes > server->body_bytes_total_max) {
        atomic_fetch_sub(&server->body_bytes, bytes);
        return ERR_BUSY;
    }
    b->charged += bytes;
    return 0;
}

/* Makes the block hold `cap` bytes. */
static int grow(struct body *b, struct server *server, size_t cap)
{
    uint64_t counted = cap > FREE_BYTES_MAX ? cap : 0;
    int code = charge(b, server, counted - b->charged);

    if (code != 0) {
        return code;
    }
    struct block *block = b->block == NULL ? block_try_create(cap) : block_try_grow(b->block, cap);

    if (block == NULL) {
        return ERR_NOMEM;
    }
    b->block = block;
    return 0;
}

/* How many bytes a body by length is given room for: see the top of the file. */
static size_t next_cap(const struct body *b, size_t waiting)
{
    uint64_t known = b->len + waiting;
    uint64_t want = b->len > 0 ? 2 * (uint64_t)b->len : FIRST_BYTES_MIN;

    return min_size(known > want ? known : want, b->declared);
}

static int feed_length(struct body *b, struct server *server, struct conn *conn)
{
    while (b->len < b->declared) {
        if (b->pulling) {
            if (conn_into_missing(conn) > 0) {
                return 0;
            }
            b->pulling = false;
            b->len = b->block->cap;
            continue;
        }
        int code = grow(b, server, next_cap(b, conn_input(conn).len));

        if (code != 0) {
            return code;
        }
        b->pulling = true;
        conn_read_into(conn, b->block->data + b->len, b->block->cap - b->len);
    }
    b->whole = true;
    b->block->len = (uint32_t)b->len;
    return 0;
}

static int take_chunk_data(struct body *b, struct server *server, struct slice data)
{
    size_t needed = b->len + data.len;

    if (needed > b->max) {
        return ERR_TOOBIG;
    }
    if (b->block == NULL || needed > b->block->cap) {
        size_t doubled = b->block == NULL ? CHUNKED_FIRST : (size_t)b->block->cap * 2;
        size_t cap = needed > doubled ? needed : doubled;
        int code = grow(b, server, min_size(cap, b->max));

        if (code != 0) {
            return code;
        }
    }
    memcpy(b->block->data + b->len, data.ptr, data.len);
    b->len = needed;
    return 0;
}

/* Decodes `input`; *ret_used is set also on failure, though nothing is read after one. */
static int decode_chunks(struct body *b, struct server *server, struct slice input,
                         size_t *ret_used)
{
    size_t used = 0;

    while (used < input.len && !b->whole) {
        struct slice data = {NULL, 0};
        long step = chunk_decode(&b->chunks, (struct slice){input.ptr + used, input.len - used},
                                 &data, &b->whole);

        if (step < 0) {
            return (int)step;
        }
        used += (size_t)step;
        int code = data.len == 0 ? 0 : take_chunk_data(b, server, data);

        if (code != 0) {
            return code;
        }
        if (step == 0) {
            break;
        }
    }
    *ret_used = used;
    return 0;
}

static int feed_chunks(struct body *b, struct server *server, struct conn *conn)
{
    size_t used = 0;
    int code = decode_chunks(b, server, conn_input(conn), &used);

    if (code != 0) {
        return code;
    }
    conn_consume(conn, used);
    if (b->whole && b->block != NULL) {
        b->block->len = (uint32_t)b->len;
    }
    return 0;
}

int body_feed(struct body *b, struct server *server, struct conn *conn)
{
    assert(!b->whole);
    return b->kind == HTTP_BODY_LENGTH ? feed_length(b, server, conn)
                                       : feed_chunks(b, server, conn);
}

uint64_t body_received(const struct body *b, const struct conn *conn)
{
    return b->pulling ? b->block->cap - conn_into_missing(conn) : b->len;
}

void body_stop(struct body *b, struct conn *conn)
{
    b->len = (size_t)body_received(b, conn);
    b->pulling = false;
    conn_read_into(conn, NULL, 0);
}

uint64_t body_unread(const struct body *b)
{
    if (b->whole) {
        return 0;
    }
    return b->kind == HTTP_BODY_LENGTH && !b->pulling ? b->declared - b->len : UINT64_MAX;
}

void body_finish(struct body *b, struct server *server)
{
    block_unref(b->block);
    b->block = NULL;
    if (b->charged > 0) {
        atomic_fetch_sub(&server->body_bytes, b->charged);
        b->charged = 0;
    }
}
