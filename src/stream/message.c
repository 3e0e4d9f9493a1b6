/* Stored bytes are made once, here, and are then what log, packs and readers have (PROTOCOL.md
 * 9.1). */
#include "stream/message.h"

#include <assert.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/limits.h"

#define SPACES                " \t\r\n"   /* RFC 8259 section 2 */
#define ADOPT_BYTES_MIN       (16u * KIB) /* a smaller body is copied */
#define ADOPT_MARKS_BYTES_MIN (4u * KIB)  /* fewer marks are copied */

/* Messages on their way into a batch. Those that stand in the body as they are stored, one comma
 * apart, are copied together. */
struct join {
    char *to;        /* where the next stored byte goes */
    char *mark;      /* where the next mark goes */
    char *last_mark; /* begin of the last one */
    const char *run; /* first of the messages that wait to be copied; NULL: none do */
    const char *end; /* behind the last of them */
};

static void copy_run(struct join *j)
{
    if (j->run) {
        size_t len = (size_t)(j->end - j->run);
        memcpy(j->to, j->run, len);
        j->to[len] = ',';
        j->to += len + 1;
    }
}

static int add_message(void *context, struct slice message)
{
    struct join *j = context;
    if (!j->run || message.ptr != j->end + 1) {
        copy_run(j);
        j->run = message.ptr;
    }
    j->end = message.ptr + message.len;
    j->last_mark = j->mark;
    j->mark += marks_put(j->mark, message.len + 1, false);
    return 0;
}

/* Gives back memory that `len` bytes do not need, if it is much: the stream may keep the block. */
static int fit_block(struct block **block, size_t len, size_t bytes_min)
{
    struct block *b = *block;
    if (!b || len < bytes_min || len >= b->cap / 2) {
        return 0;
    }
    struct block *fit = block_try_create(len);
    if (!fit) {
        return ERR_NOMEM;
    }
    memcpy(fit->data, b->data, len);
    fit->len = (uint32_t)len;
    block_unref(b);
    *block = fit;
    return 0;
}

/* What was joined becomes the batch's. */
static int settle(struct message_batch *batch, struct join *j, char *marks)
{
    size_t len = (size_t)(j->to - batch->block->data);
    size_t marks_len = (size_t)(j->mark - marks);
    if (len > 0) {
        *j->last_mark |= 1; /* there its append ends */
    }
    if (fit_block(&batch->block, len, ADOPT_BYTES_MIN) < 0 ||
        fit_block(&batch->marks_block, marks_len, ADOPT_MARKS_BYTES_MIN) < 0) {
        return ERR_NOMEM;
    }
    batch->block->len = (uint32_t)len;
    batch->body = (struct slice){batch->block->data, len};
    batch->marks = (struct slice){batch->marks_block ? batch->marks_block->data : batch->few,
                                  marks_len};
    return message_split(len, batch->marks, &batch->runs, &batch->run_count);
}

/* A message and its comma never take more than the body and one byte: an array of n elements has
 * n - 1 commas and two brackets. They are two bytes at least, and marks of one byte reach to 63, so
 * the marks take no more than half of that. */
static int join(struct message_batch *batch, struct slice body, struct errmsg *msg)
{
    size_t marks_max = (body.len + 1) / 2 + VARINT_BYTES_MAX;
    batch->block = block_try_create(body.len + 1);
    if (!batch->block) {
        return ERR_NOMEM;
    }
    if (marks_max > sizeof(batch->few) && !(batch->marks_block = block_try_create(marks_max))) {
        return ERR_NOMEM;
    }
    char *marks = batch->marks_block ? batch->marks_block->data : batch->few;
    struct join j = {.to = batch->block->data, .mark = marks};
    int code = json_each_message(body, add_message, &j, msg);
    if (code < 0) {
        return code;
    }
    copy_run(&j);
    return settle(batch, &j, marks);
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
        batch->marks = (struct slice){batch->few, marks_put(batch->few, body.len, true)};
    }
    return 0;
}

bool message_heavy(bool json, size_t body_len)
{
    return json && body_len > PREPARE_BYTES_MAX;
}

/* A block is kept unless it is mostly something else. */
struct tail_body message_body(const struct message_batch *batch)
{
    const struct block *b = batch->block;
    struct tail_body body = {.bytes = batch->body, .marks = batch->marks};
    if (b && body.bytes.len >= ADOPT_BYTES_MIN && body.bytes.len >= b->cap / 2) {
        body.block = batch->block;
        body.marks_block = batch->marks.len >= ADOPT_MARKS_BYTES_MIN ? batch->marks_block : NULL;
        body.runs = batch->runs;
        body.run_count = batch->run_count;
    }
    return body;
}

static int add_run(struct marks_run **runs, size_t *count, struct marks_run run)
{
    size_t n = *count;
    if ((n & (n - 1)) == 0) {
        struct marks_run *grown = realloc(*runs, (n == 0 ? 1 : 2 * n) * sizeof(grown[0]));
        if (!grown) {
            return ERR_NOMEM;
        }
        *runs = grown;
    }
    (*runs)[n] = run;
    *count = n + 1;
    return 0;
}

int message_split(size_t body_len, struct slice marks, struct marks_run **ret_runs,
                  size_t *ret_count)
{
    struct marks_run *runs = NULL;
    size_t count = 0;
    bool split = marks.len > RUN_MARKS_BYTES_MAX || body_len > EXTENT_BYTES_MAX;
    while (split && marks.len > 0) {
        struct marks_run run = marks_first_run(marks);
        if (add_run(&runs, &count, run) < 0) {
            free(runs);
            return ERR_NOMEM;
        }
        assert(run.len > 0 && run.len <= body_len);
        body_len -= run.len;
        marks.ptr += run.marks_len;
        marks.len -= run.marks_len;
    }
    assert(!split || body_len == 0);
    *ret_runs = runs;
    *ret_count = count;
    return 0;
}

void message_finish(struct message_batch *batch)
{
    block_unref(batch->block);
    block_unref(batch->marks_block);
    free(batch->runs);
    *batch = (struct message_batch){0};
}
