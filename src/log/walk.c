/* The window holds a whole record at a time, and grows for a large one. */
#include "log/walk.h"

#include <stdlib.h>

#include "base/crc32c.h"
#include "base/err.h"

int walk_init(struct walk *k, struct chain *chain, uint32_t epoch_below)
{
    *k = (struct walk){.chain = chain,
                       .limit = chain_end(chain),
                       .epoch_below = epoch_below,
                       .bytes = malloc(WALK_READ_BYTES),
                       .cap = WALK_READ_BYTES};
    return k->bytes ? 0 : ERR_NOMEM;
}

void walk_finish(struct walk *k)
{
    free(k->bytes);
    *k = (struct walk){0};
}

int walk_error(const struct walk *k)
{
    return k->window_error;
}

const char *walk_bytes(struct walk *k, log_pos pos, size_t len)
{
    if (pos >= k->start && pos + len <= k->start + k->len) {
        return k->bytes + (pos - k->start);
    }
    if (len > k->cap) {
        char *bytes = realloc(k->bytes, len);
        if (!bytes) {
            k->window_error = ERR_NOMEM;
            return NULL;
        }
        k->bytes = bytes;
        k->cap = len;
    }
    int64_t n = chain_read(k->chain, pos, k->bytes, k->cap);
    k->start = pos;
    k->len = n < 0 ? 0 : (size_t)n;
    k->window_error = n < 0 ? (int)n : 0;
    return k->len >= len ? k->bytes : NULL;
}

uint64_t walk_padded(uint64_t bytes)
{
    return (bytes + RECORD_ALIGN - 1) / RECORD_ALIGN * RECORD_ALIGN;
}

/* What is wrong when there are not as many bytes. */
static int no_bytes(const struct walk *k)
{
    return k->window_error ? k->window_error : ERR_CORRUPT;
}

int walk_prove(struct walk *k, log_pos pos, struct record *ret_record, log_pos *ret_end)
{
    const char *head = walk_bytes(k, pos, RECORD_FRAME_BYTES);
    if (!head) {
        return no_bytes(k);
    }
    struct record_frame f;
    if (record_decode_frame(head, &f) || f.lsn != pos || f.epoch < k->epoch ||
        f.epoch >= k->epoch_below) {
        return ERR_CORRUPT;
    }
    uint64_t total = RECORD_FRAME_BYTES + (uint64_t)f.payload_len;
    if (walk_padded(total) > k->limit - pos) {
        return ERR_CORRUPT;
    }
    const char *frame = walk_bytes(k, pos, (size_t)total);
    if (!frame) {
        return no_bytes(k);
    }
    struct slice payload = {frame + RECORD_FRAME_BYTES, f.payload_len};
    if (crc32c(0, payload.ptr, payload.len) != f.payload_crc ||
        record_decode(f.type, f.id, payload, ret_record)) {
        return ERR_CORRUPT;
    }
    k->epoch = f.epoch;
    *ret_end = pos + walk_padded(total);
    return 0;
}

int walk_count_stranded(struct walk *k, log_pos pos, uint64_t *ret_count)
{
    uint64_t count = 0;
    log_pos stop = pos + WALK_SEARCH_BYTES;
    while (pos < stop && pos + RECORD_FRAME_BYTES <= k->limit) {
        struct record record;
        log_pos end = pos + RECORD_ALIGN;
        int rc = walk_prove(k, pos, &record, &end);
        if (rc == 0) {
            count++;
            stop = end + WALK_SEARCH_BYTES;
        } else if (rc != ERR_CORRUPT) {
            return rc;
        }
        pos = end;
    }
    *ret_count = count;
    return 0;
}
