/* Stored bytes are made once, here, and are then what log, packs and readers have (PROTOCOL.md
 * 9.1). */
#include "stream/message.h"

#include <assert.h>

#include "base/json.h"
#include "base/limits.h"
#include "log/marks.h"

#define SPACES " \t\r\n" /* RFC 8259 section 2 */

static int add_message(void *context, struct slice message)
{
    struct message_batch *batch = context;
    struct block *b = batch->block;
    assert(b->cap - b->len > message.len);
    char *mark = buf_reserve(&batch->buf, VARINT_BYTES_MAX);
    if (!mark) {
        return ERR_NOMEM;
    }
    memcpy(b->data + b->len, message.ptr, message.len);
    b->data[b->len + message.len] = ',';
    b->len += (uint32_t)message.len + 1;
    batch->body.len += message.len + 1;
    /* Where the last mark begins: it is told below that its append ends there. */
    batch->marks = (struct slice){NULL, batch->buf.len};
    buf_advance(&batch->buf, marks_put(mark, message.len + 1, false));
    return 0;
}

/* A message and its comma never take more than the body and one byte: an array of n elements has
 * n - 1 commas and two brackets. */
static int join(struct message_batch *batch, struct slice body, struct errmsg *msg)
{
    batch->block = block_try_create(body.len + 1);
    if (!batch->block) {
        return ERR_NOMEM;
    }
    batch->body = (struct slice){batch->block->data, 0};
    buf_init(&batch->buf, body.len * 2 + VARINT_BYTES_MAX);
    int code = json_each_message(body, add_message, batch, msg);
    if (code < 0) {
        return code;
    }
    if (batch->body.len > 0) {
        batch->buf.ptr[batch->marks.len] |= 1;
    }
    batch->marks = buf_slice(&batch->buf);
    return 0;
}

static bool blank(struct slice body)
{
    for (size_t i = 0; i < body.len; i++) {
        if (body.ptr[i] == 0 || !strchr(SPACES, body.ptr[i])) {
            return false;
        }
    }
    return true;
}

static int prepare_json(struct message_batch *batch, struct slice body, bool empty_ok,
                        struct errmsg *msg)
{
    if (empty_ok && blank(body)) {
        return 0;
    }
    int code = join(batch, body, msg);
    if (code == 0 && batch->body.len == 0 && !empty_ok) {
        code = err_set(msg, ERR_INVALID,
                       "the array is empty: send at least one message, or close with no body");
    }
    return code;
}

int message_prepare(struct message_batch *batch, bool json, struct slice body, struct block *block,
                    bool empty_ok, struct errmsg *msg)
{
    *batch = (struct message_batch){0};
    if (json) {
        int code = prepare_json(batch, body, empty_ok, msg);
        if (code < 0) {
            message_finish(batch);
        }
        return code;
    }
    batch->body = body;
    batch->block = block ? block_ref(block) : NULL;
    if (body.len > 0) {
        batch->marks = (struct slice){batch->one, marks_put(batch->one, body.len, true)};
    }
    return 0;
}

void message_finish(struct message_batch *batch)
{
    block_unref(batch->block);
    buf_finish(&batch->buf);
    *batch = (struct message_batch){0};
}
