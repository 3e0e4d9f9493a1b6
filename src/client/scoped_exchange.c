/* The call borrows from the exchange, which therefore must not move once the call is composed. */
#include "client/scoped_exchange.h"

#include "client/http_url.h"
#include "client/operation.h"

#include <stdlib.h>

void scoped_exchange_init(struct scoped_exchange *x, const struct scoped_client *client)
{
    *x = (struct scoped_exchange){.repeatable = false};
    buf_init(&x->path, SIZE_MAX / 2);
    buf_init(&x->body, SIZE_MAX / 2);
    buf_init(&x->answer, client->max_answer_bytes);
}

void scoped_exchange_finish(struct scoped_exchange *x)
{
    buf_finish(&x->path);
    buf_finish(&x->body);
    buf_finish(&x->answer);
}

void scoped_exchange_set_entries(struct scoped_exchange *x, const char *thread_id)
{
    buf_append(&x->path, SLICE("api/threads/"));
    buf_append(&x->path, slice_of(thread_id));
    buf_append(&x->path, SLICE("/entries"));
}

void scoped_exchange_add_query(struct scoped_exchange *x, const char *name, const char *value)
{
    bool is_first = x->path.len == 0 || memchr(x->path.ptr, '?', x->path.len) == NULL;

    buf_append_char(&x->path, is_first ? '?' : '&');
    http_append_query(&x->path, slice_of(name));
    buf_append_char(&x->path, '=');
    http_append_query(&x->path, slice_of(value));
}

/* MEMORY when something could not be composed. */
static int compose(struct scoped_exchange *x, struct scoped_error *ret_error)
{
    if (x->path.failed || x->body.failed) {
        return scoped_error_set(ret_error, STREAM_ERROR_MEMORY, "out of memory");
    }
    x->call = (struct call){
        .verb = CALL_REQUEST,
        .method = x->method,
        .name = buf_slice(&x->path),
        .what = x->what,
        .body = buf_slice(&x->body),
        .content_type = x->body.len > 0 ? "application/json" : NULL,
        .repeatable = x->repeatable,
        .removes = x->removes,
        .answer = &x->answer,
        .refusal = &x->refusal,
    };
    return STREAM_OK;
}

/* Whatever answered, was it the API? */
static int check_entry(struct scoped_exchange *x, struct scoped_error *ret_error)
{
    struct scoped_entry entry;

    if (!x->wants_entry) {
        return STREAM_OK;
    }
    if (scoped_entry_read(x->answer.ptr, x->answer.len, &entry) != STREAM_OK ||
        entry.id[0] == '\0') {
        return scoped_error_set(ret_error, STREAM_ERROR_FORMAT, "%s: the answer is no entry",
                                x->what);
    }
    if (x->entry_id[0] != '\0' && strcmp(x->entry_id, entry.id) != 0) {
        return scoped_error_set(ret_error, STREAM_ERROR_FORMAT,
                                "%s: the answer is another entry than \"%s\"", x->what,
                                x->entry_id);
    }
    return STREAM_OK;
}

/* The call ended with `code`. STREAM_OK: ret_answer has the answer. */
static int conclude(struct scoped_exchange *x, int code, int status,
                    const struct stream_error *error, struct scoped_answer *ret_answer,
                    struct scoped_error *ret_error)
{
    if (code != STREAM_OK) {
        return scoped_error_fill(ret_error, error, &x->refusal);
    }
    if (buf_reserve(&x->answer, 0) == NULL) { /* for the NUL */
        return scoped_error_set(ret_error, STREAM_ERROR_MEMORY, "out of memory");
    }
    x->answer.ptr[x->answer.len] = '\0';
    code = check_entry(x, ret_error);
    if (code == STREAM_OK) {
        *ret_answer = (struct scoped_answer){
            .status = status, .body = x->answer.ptr, .len = x->answer.len};
        x->answer = (struct buf){.max = x->answer.max};
    } else if (ret_error != NULL) {
        ret_error->status = status;
        ret_error->outcome_unknown = call_writes(&x->call);
    }
    return code;
}

int scoped_exchange_run(struct scoped_exchange *x, struct scoped_client *client,
                        struct scoped_answer *ret_answer, struct scoped_error *ret_error)
{
    struct stream_info info = {.status = 0};
    struct stream_error error;
    int code = compose(x, ret_error);

    if (code != STREAM_OK) {
        return code;
    }
    code = operation_block(client->stream, &x->call, &info, NULL, &error);
    return conclude(x, code, info.status, &error, ret_answer, ret_error);
}

static void on_done(void *context, int code, const struct stream_info *info,
                    const struct stream_error *error)
{
    struct scoped_exchange *x = context;
    struct scoped_answer answer = {.status = 0};
    struct scoped_error failure;

    code = conclude(x, code, info != NULL ? info->status : 0, error, &answer, &failure);
    x->done(x->context, code, code == STREAM_OK ? &answer : NULL,
            code == STREAM_OK ? NULL : &failure);
    scoped_answer_finish(&answer);
    scoped_exchange_finish(x);
    free(x);
}

int scoped_exchange_start(struct scoped_exchange *x, struct scoped_client *client,
                          scoped_done_fn done, void *context, struct scoped_error *ret_error)
{
    static const struct refusal none = {.present = false};
    struct scoped_exchange *copy = malloc(sizeof(*copy));
    struct stream_error error;

    if (copy == NULL) {
        scoped_exchange_finish(x);
        return scoped_error_set(ret_error, STREAM_ERROR_MEMORY, "out of memory");
    }
    *copy = *x;
    copy->done = done;
    copy->context = context;
    int code = compose(copy, ret_error);

    if (code == STREAM_OK) {
        code = operation_start(client->stream, &copy->call, on_done, copy, &error);
        code = code == STREAM_OK ? code : scoped_error_fill(ret_error, &error, &none);
    }
    if (code != STREAM_OK) {
        scoped_exchange_finish(copy);
        free(copy);
    }
    return code;
}
