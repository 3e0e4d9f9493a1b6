/* Reading (PROTOCOL.md 5.6), also each step of a live read. The tail, closure and deletion that an
 * answer tells of are taken at one moment, under the stream's lock; the bytes below that tail never
 * change, so they are gathered afterwards. What would block is gathered again on the pool. */
#include <assert.h>
#include <stdlib.h>

#include "stream/expiry.h"
#include "stream/op.h"
#include "stream/page.h"
#include "stream/view.h"

/* A read that went to the pool. */
struct read {
    struct page_request request;
    int code;
};

static bool further(const struct stream_op *op)
{
    return op->read.stream != NULL;
}

/* The stream is not there: a further step is told so in the page, since its reader knew it. */
static int answer_absent(struct stream_op *op, int code)
{
    if (further(op)) {
        op->result.page.gone = true;
        return op_answer(op, 0);
    }
    return op_answer(op, code);
}

static uint64_t position_of(const struct offset *from, uint64_t tail)
{
    switch (from->kind) {
    case OFFSET_START:
        return 0;
    case OFFSET_NOW:
        return tail;
    case OFFSET_AT:
        break;
    }
    return from->position;
}

/* Under the lock: the moment that the answer tells of. */
static void take_snapshot(struct stream_op *op, struct stream *s)
{
    const struct stream_state *v = view_now(s);
    struct stream_page *page = &op->result.page;
    uint64_t from = position_of(&op->read.from, v->tail);
    page->stream = stream_ref(s);
    page->stream_id = s->id;
    page->json = s->media->json;
    page->start = from < v->tail ? from : v->tail;
    page->next = v->tail;
    page->wait_from = from;
    op->result.closed = v->closed;
    op->result.has_next = true;
    op->result.next = v->tail;
    op_set_type(op, s);
    s->used_ms = engine_mono_ms(s->engine);
}

/* The page is gathered: what it says of the tail follows from the snapshot. */
static int answer_page(struct stream_op *op)
{
    struct stream_page *page = &op->result.page;
    page->up_to_date = page->next == op->result.next;
    page->closed = page->up_to_date && op->result.closed;
    page->wait_from = page->next > page->wait_from ? page->next : page->wait_from;
    return op_answer(op, 0);
}

/* While its bytes were gathered the stream went, and gave them back. */
static int answer_vanished(struct stream_op *op)
{
    struct stream *s = op->stream;
    pthread_mutex_lock(&s->lock);
    uint8_t life = view_now(s)->life;
    pthread_mutex_unlock(&s->lock);
    int code = life == LIFE_ALIVE ? ERR_CORRUPT : life == LIFE_SOFT ? ERR_GONE : ERR_NOTFOUND;
    stream_page_finish(&op->result.page);
    if (code == ERR_CORRUPT) {
        return op_answer(op, code);
    }
    return answer_absent(op, code);
}

static int answer_error(struct stream_op *op, int code)
{
    stream_page_finish(&op->result.page);
    if (code == ERR_INVALID) {
        (void)err_set(&op->result.msg, code,
                      "the offset lies inside a message: send an offset that "
                      "the server returned");
    }
    return op_answer(op, code);
}

static int answer_gathered(struct stream_op *op, int code)
{
    if (code == ERR_GONE) {
        return answer_vanished(op);
    }
    return code < 0 ? answer_error(op, code) : answer_page(op);
}

static int after_pool(struct stream_op *op)
{
    struct read *read = op->scratch;
    int code = read->code;
    free(read);
    op->scratch = NULL;
    return answer_gathered(op, code);
}

static void gather_on_pool(struct task *task)
{
    struct stream_op *op = container_of(task, struct stream_op, task);
    struct read *read = op->scratch;
    read->request.may_block = true;
    read->code = page_gather(&op->result.page, &read->request);
    op_post(op);
}

static int to_pool(struct stream_op *op, const struct page_request *request)
{
    struct read *read = malloc(sizeof(*read));
    if (!read) {
        return answer_error(op, ERR_NOMEM);
    }
    *read = (struct read){.request = *request};
    op->scratch = read;
    return op_to_pool(op, gather_on_pool, after_pool);
}

static int gather(struct stream_op *op)
{
    const struct stream_read_request *r = &op->read;
    struct stream_page *page = &op->result.page;
    if (page->start >= op->result.next) {
        return answer_page(op);
    }
    struct page_request request = {
        .tail = op->result.next,
        .bytes_max = r->bytes_max > 0 ? r->bytes_max : op->worker->engine->config.read_page_bytes,
        .check = !further(op),
        .in_memory = r->in_memory,
    };
    int code = page_gather(page, &request);
    return code == ERR_AGAIN ? to_pool(op, &request) : answer_gathered(op, code);
}

static int read_run(struct stream_op *op)
{
    if (op->found < 0) {
        return op_answer(op, op->found);
    }
    struct stream *s = op->stream;
    int64_t now_ms = engine_now_ms(s->engine);
    op_note(op);
    pthread_mutex_lock(&s->lock);
    int code = expiry_check_visible(s, now_ms);
    if (code == 0) {
        take_snapshot(op, s);
        if (op->read.touch) {
            expiry_touch(s, now_ms);
        }
    } else {
        (void)op_answer_absent(op, s, code); /* ERR_AGAIN is seen below */
    }
    pthread_mutex_unlock(&s->lock);
    if (code == ERR_AGAIN) {
        return op_wait_visible(op);
    }
    if (code < 0) {
        return expiry_absent(code) ? answer_absent(op, code) : 0;
    }
    return gather(op);
}

int read_begin(struct stream_op *op)
{
    if (!further(op)) {
        return op_resolve(op, op->name, read_run);
    }
    op->stream = stream_ref(op->read.stream);
    op->step = read_run;
    return OP_NEXT;
}
