/* What the client checks before anything is sent fails with ARGUMENT; what a server would refuse
 * fails as that refusal, with its status. */
#include "app/engine_request.h"

#include "stream/field.h"
#include "stream/name.h"
#include "stream/refusal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define NUMBER_BYTES 24u

/* Fails the call as the answer `status` with that sentence would. */
static bool refuse(struct call *call, int status, const struct errmsg *msg)
{
    call_fail_status(call, status, true, slice_of(msg->text));
    return false;
}

static bool refuse_code(struct call *call, int code, const struct errmsg *msg)
{
    return refuse(call, err_status(code), msg);
}

static bool no_memory(struct call *call)
{
    call_fail(call, STREAM_ERROR_MEMORY, "out of memory");
    return false;
}

/* Writes `name` as it would stand in a path, as far as that matters to those who read it: a '%' is
 * one of the two escapes that names keep, or else escaped. */
static void escape(struct buf *out, struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        struct slice rest = {name.ptr + i, name.len - i < 3 ? name.len - i : 3};

        if (name.ptr[i] == '%' && !slice_equal_nocase(rest, SLICE("%2F")) &&
            !slice_equal(rest, SLICE("%25"))) {
            buf_append(out, SLICE("%25"));
        } else if (name.ptr[i] == '?') {
            buf_append(out, SLICE("%3F"));
        } else {
            buf_append_char(out, name.ptr[i]);
        }
    }
}

/* What the client itself refuses of a name, or of one of the fields; `what` may be "". */
static bool check_name(struct call *call, const char *what, struct slice name)
{
    const char *why = call_name_refusal(name);

    if (why != NULL) {
        call_fail(call, STREAM_ERROR_ARGUMENT, "%s%s", what, why);
    }
    return why == NULL;
}

static bool check_value(struct call *call, const char *name, const char *value)
{
    return value == NULL || call_check_value(call, name, value);
}

/* Before anything a server would refuse, as it is when a request has to be sent for that. */
static bool check(struct call *call)
{
    const struct stream_create_options *create = call->create;

    if (call->verb == CALL_LIST) {
        return true;
    }
    if (!check_name(call, "", call->name)) {
        return false;
    }
    if (call->verb == CALL_APPEND) {
        return check_value(call, "Content-Type", call->content_type) &&
               check_value(call, "Stream-Seq", call->seq) &&
               check_value(call, "Producer-Id", call->producer_id);
    }
    if (call->verb != CALL_CREATE) {
        return true;
    }
    return check_value(call, "Content-Type", call->content_type) &&
           (create == NULL || (check_value(call, "Stream-Expires-At", create->expires_at) &&
                               (create->fork_of == NULL ||
                                (check_name(call, "fork_of: ", slice_of(create->fork_of)) &&
                                 check_value(call, "Stream-Fork-Offset", create->fork_offset)))));
}

static bool take_name(struct engine_request *request, struct call *call)
{
    char memory[3 * CLIENT_NAME_BYTES_MAX];
    struct errmsg msg = {{0}};
    struct buf path;
    size_t len = 0;

    buf_init_fixed(&path, memory, sizeof(memory));
    escape(&path, call->name);
    int code = name_parse(buf_slice(&path), request->name, &len, &msg);

    if (code != 0) {
        return refuse(call, refusal_name_status(code), &msg);
    }
    request->op.name = (struct slice){request->name, len};
    return true;
}

static bool take_body(struct engine_request *request, struct call *call, uint64_t bytes_max,
                      struct slice *ret_body, struct block **ret_block)
{
    struct errmsg msg = {{0}};

    if (call->body.len > bytes_max) {
        return refuse_code(call, refusal_of_body(&msg, bytes_max), &msg);
    }
    if (call->body.len > 0) {
        request->body = block_try_create(call->body.len);
        if (request->body == NULL) {
            return no_memory(call);
        }
        memcpy(request->body->data, call->body.ptr, call->body.len);
        request->body->len = (uint32_t)call->body.len;
        *ret_body = (struct slice){request->body->data, call->body.len};
        *ret_block = request->body;
    }
    return true;
}

/* Copies the texts that the operation keeps, in the order in which `texts` has them, and makes
 * trimmed slices of the copies; a NULL stays one. */
static bool keep_texts(struct engine_request *request, struct call *call, const char *const *texts,
                       struct slice *ret_slices, size_t count)
{
    size_t size = 1;

    for (size_t i = 0; i < count; i++) {
        size += texts[i] != NULL ? strlen(texts[i]) : 0;
    }
    request->texts = malloc(size);
    if (request->texts == NULL) {
        return no_memory(call);
    }
    char *at = request->texts;

    for (size_t i = 0; i < count; i++) {
        size_t len = texts[i] != NULL ? strlen(texts[i]) : 0;

        ret_slices[i] = (struct slice){NULL, 0};
        if (texts[i] != NULL) {
            memcpy(at, texts[i], len);
            ret_slices[i] = slice_trim((struct slice){at, len});
            at += len;
        }
    }
    return true;
}

/* A number as a request would carry it, so that it is judged alike. */
static struct slice number(char memory[static NUMBER_BYTES], int64_t value)
{
    int len = snprintf(memory, NUMBER_BYTES, "%" PRId64, value);

    return (struct slice){memory, (size_t)len};
}

/* A text that need not be kept; ptr NULL when it is not given. */
static struct slice given(const char *text)
{
    return text != NULL ? slice_trim(slice_of(text)) : (struct slice){NULL, 0};
}

static bool take_expiry(struct stream_create_request *create, struct call *call,
                        const struct stream_create_options *options)
{
    char memory[NUMBER_BYTES];
    struct errmsg msg = {{0}};
    struct slice ttl = {NULL, 0};

    if (options->ttl_seconds != 0) {
        ttl = number(memory, options->ttl_seconds);
    }
    int code = field_expiry(ttl, given(options->expires_at), &create->expiry, &msg);

    return code == 0 || refuse_code(call, code, &msg);
}

static bool take_fork(struct engine_request *request, struct call *call,
                      const struct stream_create_options *options)
{
    char path_memory[sizeof(NAME_ROOT) + 3 * CLIENT_NAME_BYTES_MAX];
    char number_memory[NUMBER_BYTES];
    struct field_fork fork = {.offset = given(options->fork_offset)};
    struct errmsg msg = {{0}};
    struct buf path;

    buf_init_fixed(&path, path_memory, sizeof(path_memory));
    buf_append(&path, SLICE(NAME_ROOT));
    escape(&path, slice_of(options->fork_of));
    fork.source = buf_slice(&path);
    if (options->fork_sub_offset != 0) {
        fork.sub_offset = number(number_memory, options->fork_sub_offset);
    }
    int code = field_fork(&fork, request->source, &request->op.create, &msg);

    return code == 0 || refuse_code(call, code, &msg);
}

static bool fill_create(struct engine_request *request, struct call *call, uint64_t body_bytes_max)
{
    struct stream_create_request *create = &request->op.create;
    struct errmsg msg = {{0}};
    struct slice type;

    request->op.verb = STREAM_CREATE;
    if (!take_body(request, call, body_bytes_max, &create->body, &create->body_block) ||
        !take_name(request, call) || !keep_texts(request, call, &call->content_type, &type, 1)) {
        return false;
    }
    int code = field_content_type(type, &create->content_type, &msg);

    if (code != 0) {
        return refuse_code(call, code, &msg);
    }
    create->closed = call->close;
    return call->create == NULL ||
           (take_expiry(create, call, call->create) &&
            (call->create->fork_of == NULL || take_fork(request, call, call->create)));
}

static bool fill_append(struct engine_request *request, struct call *call, uint64_t body_bytes_max)
{
    const char *const texts[] = {call->content_type, call->seq, call->producer_id};
    struct stream_append_request *append = &request->op.append;
    char epoch[NUMBER_BYTES];
    char seq[NUMBER_BYTES];
    struct slice kept[3];
    struct errmsg msg = {{0}};

    request->op.verb = STREAM_APPEND;
    if (!take_body(request, call, body_bytes_max, &append->body, &append->body_block) ||
        !take_name(request, call) || !keep_texts(request, call, texts, kept, 3)) {
        return false;
    }
    append->close = call->close;
    append->content_type = kept[0];
    int code = 0;

    if (call->producer_id != NULL) {
        const struct slice claim[3] = {kept[2], number(epoch, call->producer_epoch),
                                       number(seq, call->producer_seq)};

        code = field_producer(claim, &append->producer, &msg);
    }
    if (code == 0) {
        code = field_seq(kept[1], &append->has_seq, &append->seq, &msg);
    }
    return code == 0 || refuse_code(call, code, &msg);
}

static bool fill_read(struct engine_request *request, struct call *call, uint32_t page_bytes)
{
    struct errmsg msg = {{0}};

    request->op.verb = STREAM_READ;
    if (!take_name(request, call)) {
        return false;
    }
    request->op.read = (struct stream_read_request){
        .touch = true,
        .in_memory = true,
        .bytes_max = page_bytes,
    };
    int code = field_offset(slice_of(call->offset != NULL ? call->offset : "-1"),
                            &request->op.read.from, &msg);

    return code == 0 || refuse_code(call, code, &msg);
}

static bool fill_list(struct engine_request *request, struct call *call)
{
    struct slice after = slice_of(call->after != NULL ? call->after : "");
    struct errmsg msg = {{0}};
    int code = field_listed(call->name, "prefix", &msg);

    if (code == 0) {
        code = field_listed(after, "after", &msg);
    }
    if (code != 0) {
        return refuse_code(call, code, &msg);
    }
    if (call->name.len > 0) {
        memcpy(request->name, call->name.ptr, call->name.len);
    }
    memcpy(request->source, after.ptr, after.len);
    request->list = (struct engine_list_query){
        .prefix = {request->name, call->name.len},
        .after = {request->source, after.len},
        .limit = LISTING_COUNT_MAX,
    };
    return true;
}

bool engine_request_fill(struct engine_request *request, struct call *call,
                         const struct engine_request_limits *limits)
{
    if (!check(call)) {
        return false;
    }
    switch (call->verb) {
    case CALL_CREATE:
        return fill_create(request, call, limits->body_bytes_max);
    case CALL_APPEND:
        return fill_append(request, call, limits->body_bytes_max);
    case CALL_DELETE:
    case CALL_HEAD:
        request->op.verb = call->verb == CALL_DELETE ? STREAM_DELETE : STREAM_HEAD;
        return take_name(request, call);
    case CALL_READ:
    case CALL_LONG_POLL:
        return fill_read(request, call, limits->page_bytes);
    case CALL_LIST:
        return fill_list(request, call);
    case CALL_SSE:
        call_fail(call, STREAM_ERROR_ARGUMENT, "there are no server-sent events within a process");
        return false;
    case CALL_REQUEST:
        break;
    }
    call_fail(call, STREAM_ERROR_ARGUMENT, "the engine has streams, and no API beside them");
    return false;
}

void engine_request_finish(struct engine_request *request)
{
    block_unref(request->body);
    free(request->texts);
    request->body = NULL;
    request->texts = NULL;
}
