/* Which parts an answer has is what the files of src/serve that answer over HTTP give it. */
#include "app/engine_answer.h"

#include "base/date.h"
#include "stream/refusal.h"

#include <assert.h>

#define BUSY_RETRY_MS 1000 /* what the server says in Retry-After when nothing better is known */

static void put_next(struct stream_info *info, uint64_t position)
{
    offset_format(info->next_offset, position);
    info->next_offset[OFFSET_TOKEN_BYTES] = '\0';
}

static void put_type(struct stream_info *info, struct slice type)
{
    assert(type.len < sizeof(info->content_type));
    memcpy(info->content_type, type.ptr, type.len);
    info->content_type[type.len] = '\0';
}

static void put_expiry(struct stream_info *info, const struct stream_expiry *expiry)
{
    if (expiry->has_ttl) {
        info->ttl_seconds = (int64_t)expiry->ttl_seconds;
    }
    if (expiry->has_expires_at) {
        static_assert(sizeof(info->expires_at) >= DATE_RFC3339_BYTES, "a date fits");
        date_format_rfc3339(info->expires_at, expiry->expires_at_ms);
    }
}

static void fail(struct call *call, int status, bool unsure, struct slice sentence)
{
    call_fail_status(call, status, status == 503 && !unsure, sentence);
    if (status == 429 || (status == 503 && !unsure)) {
        call->result.error.retry_after_ms = BUSY_RETRY_MS;
    }
}

void engine_answer_refusal(struct call *call, int status, struct slice sentence)
{
    fail(call, status, false, sentence);
}

static void refuse(struct call *call, const struct stream_op *op)
{
    const struct stream_result *r = &op->result;
    struct stream_info *info = &call->result.info;

    info->closed = r->closed;
    if (op->verb == STREAM_APPEND && r->closed && r->has_next) {
        put_next(info, r->next);
    }
    if (r->stale_epoch) {
        info->producer_epoch = (int64_t)r->producer_epoch;
    }
    if (r->seq_gap) {
        call->result.error.expected_seq = (int64_t)r->producer_seq_expected;
    }
    fail(call, refusal_status(op), r->code == ERR_UNKNOWN, refusal_of_op(op));
}

static void answer_append(struct call *call, const struct stream_op *op)
{
    const struct stream_result *r = &op->result;
    struct stream_info *info = &call->result.info;
    bool has_body = op->append.body.len > 0;

    info->status = call->producer_id != NULL && has_body && !r->duplicate ? 200 : 204;
    info->closed = r->closed;
    put_next(info, r->next);
    if (call->producer_id != NULL) {
        info->duplicate = r->duplicate && has_body;
        info->producer_epoch = (int64_t)r->producer_epoch;
        info->producer_seq = (int64_t)r->producer_seq;
    }
}

static void answer_page(struct call *call, const struct stream_result *r)
{
    struct stream_info *info = &call->result.info;

    info->status = 200;
    info->closed = r->page.closed;
    call->result.up_to_date = r->page.up_to_date;
    put_next(info, r->page.next);
    put_type(info, r->content_type);
}

void engine_answer_nothing(struct call *call, const struct stream_page *page)
{
    struct stream_info *info = &call->result.info;

    info->status = 204;
    info->closed = page->closed;
    call->result.up_to_date = true;
    put_next(info, page->next);
}

void engine_answer(struct call *call, const struct stream_op *op)
{
    const struct stream_result *r = &op->result;
    struct stream_info *info = &call->result.info;

    if (r->code != 0) {
        refuse(call, op);
        return;
    }
    switch (op->verb) {
    case STREAM_CREATE:
    case STREAM_HEAD:
        info->created = op->verb == STREAM_CREATE && r->created;
        info->status = info->created ? 201 : 200;
        info->closed = r->closed;
        put_next(info, r->next);
        put_type(info, r->content_type);
        if (op->verb == STREAM_HEAD) {
            put_expiry(info, &r->expiry);
        }
        break;
    case STREAM_APPEND:
        answer_append(call, op);
        break;
    case STREAM_DELETE:
        info->status = 204;
        break;
    case STREAM_READ:
        answer_page(call, r);
        break;
    case STREAM_NOTE:
        assert(op->verb != STREAM_NOTE);
        break;
    }
}

void engine_answer_listed(struct stream_info *info, uint64_t next, struct slice content_type,
                          bool closed, const struct stream_expiry *expiry)
{
    *info = (struct stream_info){
        .status = 200,
        .closed = closed,
        .ttl_seconds = -1,
        .producer_epoch = -1,
        .producer_seq = -1,
    };
    put_next(info, next);
    put_type(info, content_type);
    put_expiry(info, expiry);
}

void engine_body_begin(struct engine_body *body, const struct stream_page *page)
{
    *body = (struct engine_body){.page = page};
}

/* Of the page's own bytes those that are shown: all but the last comma. */
static size_t shown_bytes(const struct stream_page *page)
{
    return page->json && page->bytes > 0 ? page->bytes - 1 : page->bytes;
}

/* Copies of the page's own bytes, of which `left` are to come. */
static size_t copy_pieces(struct engine_body *body, char *out, size_t size, size_t left)
{
    const struct stream_page *page = body->page;
    size_t copied = 0;

    size = size < left ? size : left;
    while (copied < size) {
        const struct stream_piece *piece = &page->pieces[body->piece];
        size_t part = piece->len - body->piece_at;

        assert(body->piece < page->piece_count && piece->block != NULL);
        part = part < size - copied ? part : size - copied;
        memcpy(out + copied, piece->ptr + body->piece_at, part);
        copied += part;
        body->piece_at += part;
        if (body->piece_at == piece->len) {
            body->piece++;
            body->piece_at = 0;
        }
    }
    return copied;
}

size_t engine_body_next(struct engine_body *body, char *out, size_t size)
{
    const struct stream_page *page = body->page;
    size_t shown = shown_bytes(page);
    size_t before = page->json ? 1 : 0;
    size_t len = 0;

    if (page->json && body->at == 0 && size > 0) {
        out[len++] = '[';
        body->at++;
    }
    if (body->at >= before && body->at < before + shown) {
        size_t part = copy_pieces(body, out + len, size - len, before + shown - body->at);

        body->at += part;
        len += part;
    }
    if (page->json && body->at == before + shown && len < size) {
        out[len++] = ']';
        body->at++;
    }
    return len;
}
