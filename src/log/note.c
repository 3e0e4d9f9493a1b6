/* Decoding takes every length as if hostile: batches come back from the log. */
#include "log/note.h"

#include "base/bytes.h"
#include "base/limits.h"

#define KIND_PUT    1u
#define KIND_DELETE 2u

#define CHANGE_FIXED_BYTES 3u /* kind and length of the key */
#define VALUE_FIXED_BYTES  4u

static bool key_valid(struct slice key)
{
    return key.len >= 1 && key.len <= NOTE_KEY_BYTES_MAX;
}

/* Writes what a change begins with, and `more` bytes of room behind it are sure. */
static bool put_key(struct buf *batch, unsigned kind, struct slice key, size_t more)
{
    if (!key_valid(key)) {
        batch->failed = true;
        return false;
    }
    char *at = buf_reserve(batch, CHANGE_FIXED_BYTES + key.len + more);
    if (!at) {
        return false;
    }
    at[0] = (char)kind;
    bytes_put_u16(at + 1, (uint16_t)key.len);
    memcpy(at + CHANGE_FIXED_BYTES, key.ptr, key.len);
    buf_advance(batch, CHANGE_FIXED_BYTES + key.len);
    return true;
}

void note_put(struct buf *batch, struct slice key, struct slice value)
{
    if (value.len > NOTE_VALUE_BYTES_MAX) {
        batch->failed = true;
        return;
    }
    if (put_key(batch, KIND_PUT, key, VALUE_FIXED_BYTES + value.len)) {
        char len[VALUE_FIXED_BYTES];
        bytes_put_u32(len, (uint32_t)value.len);
        buf_append(batch, (struct slice){len, sizeof(len)});
        buf_append(batch, value);
    }
}

void note_delete(struct buf *batch, struct slice key)
{
    (void)put_key(batch, KIND_DELETE, key, 0); /* a failure sticks to the buffer */
}

int note_next(struct slice *rest, struct note_change *ret_change)
{
    if (rest->len == 0) {
        return 0;
    }
    const uint8_t *bytes = (const uint8_t *)rest->ptr;
    struct bytes_reader in = {.at = bytes, .end = bytes + rest->len};
    struct note_change c = {0};
    unsigned kind = bytes_read_u8(&in);
    c.key = bytes_read_slice(&in, bytes_read_u16(&in));
    c.put = kind == KIND_PUT;
    if (c.put) {
        c.value = bytes_read_slice(&in, bytes_read_u32(&in));
    }
    bool known = kind == KIND_PUT || kind == KIND_DELETE;
    if (in.failed || !known || !key_valid(c.key) || c.value.len > NOTE_VALUE_BYTES_MAX) {
        return ERR_CORRUPT;
    }
    *rest = (struct slice){(const char *)in.at, (size_t)(in.end - in.at)};
    *ret_change = c;
    return 1;
}

int note_check(struct slice batch, size_t *ret_count)
{
    if (batch.len == 0 || batch.len > NOTE_BATCH_BYTES_MAX) {
        return ERR_CORRUPT;
    }
    struct note_change c;
    size_t count = 0;
    int more;
    while ((more = note_next(&batch, &c)) > 0) {
        count++;
    }
    if (more == 0) {
        *ret_count = count;
    }
    return more;
}

bool note_frees(struct slice batch)
{
    struct note_change c;
    size_t deletes = 0;
    size_t puts = 0;
    int more;
    while ((more = note_next(&batch, &c)) > 0) {
        deletes += !c.put;
        puts += c.put;
        if (puts > 1 || c.value.len > NOTE_TOMB_BYTES_MAX) {
            return false;
        }
    }
    return more == 0 && deletes > 0;
}
