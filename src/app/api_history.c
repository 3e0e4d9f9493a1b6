/* GET entries: the raw history of a thread, decoded entry by entry, tombstones and what they delete
 * included. Offsets of streams stand between pages only, so that a place within one is the offset
 * of its page and how many entries to pass over: "OFFSET~N". To callers it is opaque. */
#include "app/handlers.h"

#include "app/app.h"
#include "app/may.h"
#include "app/record_json.h"
#include "base/number.h"
#include "thread/outbox.h"
#include "thread/recency.h"

#include <stdio.h>

#define LIMIT_MAX     1000u
#define LIMIT_DEFAULT 200u
#define PASSED_MAX    100000000u

/* A place in a thread. */
struct place {
    char offset[STREAM_OFFSET_BYTES];
    uint64_t passed; /* entries behind the offset */
};

static int parse_place(struct api_call *c, struct slice text, struct place *ret)
{
    struct slice rest = text;
    struct slice offset;

    *ret = (struct place){.offset = "-1"};
    if (text.ptr == NULL) {
        return API_DONE;
    }
    if (!slice_split(&rest, '~', &offset) || offset.len == 0 || offset.len >= sizeof(ret->offset) ||
        (rest.ptr != NULL && !number_parse_u64(rest, PASSED_MAX, false, &ret->passed))) {
        (void)api_refuse(c, API_INVALID_INPUT, "after must be a nextAfter that was told before");
        return api_error_set_field(&c->error, "after");
    }
    memset(ret->offset, 0, sizeof(ret->offset));
    memcpy(ret->offset, offset.ptr, offset.len);
    return API_DONE;
}

/* What a failed read is to the caller. */
static int fail(struct api_call *c, const struct stream_error *error)
{
    switch (error->code) {
    case STREAM_ERROR_NOT_FOUND:
    case STREAM_ERROR_GONE:
        /* The thread was there when it was asked for: it went meanwhile, or waits for its stream.
         */
        return may_thread(c, c->params[0], ROLE_MEMBER) != API_DONE
                   ? API_FAILED
                   : api_refuse(c, API_STREAMS_UNAVAILABLE, "the thread's stream is not there yet");
    case STREAM_ERROR_REJECTED:
    case STREAM_ERROR_ARGUMENT:
        (void)api_refuse(c, API_INVALID_INPUT, "after must be a nextAfter that was told before");
        return api_error_set_field(&c->error, "after");
    default:
        app_tell_streams(c->app, error->message);
        return api_refuse(c, API_STREAMS_UNAVAILABLE, "the thread's stream cannot be read now");
    }
}

/* A page being made. */
struct page {
    uint64_t limit;
    uint64_t count;
    struct place at;  /* behind the last entry that was put */
    uint64_t to_pass; /* entries still to be passed over */
    bool up_to_date;
};

static void take(struct api_call *c, struct page *page, const struct stream_piece_view *piece)
{
    if (piece->len > 0) {
        page->at.passed++;
        if (page->to_pass > 0) {
            page->to_pass--;
        } else {
            if (page->count++ > 0) {
                buf_append_char(&c->answer, ',');
            }
            buf_append(&c->answer, (struct slice){piece->data, piece->len});
        }
    }
    if (piece->next_offset != NULL) {
        (void)snprintf(page->at.offset, sizeof(page->at.offset), "%s", piece->next_offset);
        page->at.passed = 0;
        page->up_to_date = piece->up_to_date;
    }
}

/* 0, or the error's code. */
static int read_page(struct api_call *c, struct page *page, struct stream_error *error)
{
    char name[THREAD_STREAM_BYTES];
    const struct stream_read_options options = {
        .offset = page->at.offset, .live = STREAM_CATCH_UP, .unit = STREAM_MESSAGES};
    struct stream_reader *reader = NULL;
    struct stream_piece_view piece;

    thread_stream_name(c->params[0], name);
    page->to_pass = page->at.passed;
    page->at.passed = 0;
    int code = stream_client_read(c->app->streams, name, &options, &reader, error);

    while (code == STREAM_OK && page->count < page->limit && c->answer.len < API_PAGE_BYTES_MAX) {
        code = stream_reader_next(reader, &piece, error);
        if (code == STREAM_OK) {
            take(c, page, &piece);
        }
    }
    page->up_to_date = code == STREAM_END || (code == STREAM_OK && page->up_to_date);
    stream_reader_free(reader);
    return code == STREAM_OK || code == STREAM_END ? 0 : code;
}

int entry_list(struct api_call *c)
{
    struct params p;
    struct page page = {.count = 0};
    struct stream_error error;

    params_begin(&p, c->query, &c->memory, &c->error);
    struct slice after = params_text(&p, "after", STREAM_OFFSET_BYTES + 16);

    page.limit = params_number(&p, "limit", 1, LIMIT_MAX, LIMIT_DEFAULT);
    if (params_end(&p) != 0 || parse_place(c, after, &page.at) != API_DONE ||
        may_thread(c, c->params[0], ROLE_MEMBER) != API_DONE) {
        return API_FAILED;
    }
    const struct page begin = page;

    buf_append(&c->answer, SLICE("{\"entries\":["));
    int code = read_page(c, &page, &error);

    if (code == STREAM_ERROR_NOT_FOUND && page.count == 0) {
        page = begin;
        (void)outbox_run(c->app->outbox, c->params[0]); /* the stream may still be owed */
        code = read_page(c, &page, &error);
    }
    if (code != 0) {
        return fail(c, &error);
    }
    buf_append(&c->answer, SLICE("],\"nextAfter\":\""));
    buf_append(&c->answer, slice_of(page.at.offset)); /* URL-safe text (PROTOCOL.md 8) */
    if (page.at.passed > 0) {
        buf_append_format(&c->answer, "~%llu", (unsigned long long)page.at.passed);
    }
    buf_append_format(&c->answer, "\",\"upToDate\":%s}", page.up_to_date ? "true" : "false");
    return api_answer(c, 200);
}
