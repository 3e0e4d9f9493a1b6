/* PUT: create, or make sure that a stream with this configuration exists. */
#include "serve/handlers.h"

#include "base/number.h"
#include "serve/fields.h"
#include "serve/problem.h"
#include "stream/name.h"
#include "stream/refusal.h"

#define HOST_BYTES_MAX 255
#define LOCATION_BYTES_MAX \
    (4 * KIB) /* an encoded name is at most 1440 bytes, a host at most the rest */

static bool is_host_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
}

/* A Host that can be repeated in a URL: a name or an address, in brackets if it has colons, and a
 * port (RFC 9110 section 7.2). Rarer forms are legal and get a Location without a host. */
static bool is_host(struct slice host)
{
    size_t at = 0;
    bool bracket = host.len > 0 && host.ptr[0] == '[';
    uint64_t port = 0;

    if (bracket) {
        at++;
    }
    while (at < host.len && (is_host_char(host.ptr[at]) || (bracket && host.ptr[at] == ':'))) {
        at++;
    }
    if (at == (bracket ? 1u : 0u) || at > HOST_BYTES_MAX ||
        (bracket && (at == host.len || host.ptr[at++] != ']'))) {
        return false;
    }
    return at == host.len || (host.ptr[at] == ':' &&
                              number_parse_u64((struct slice){host.ptr + at + 1, host.len - at - 1},
                                               65535, true, &port));
}

/* Absolute where it can be: from --public-url, else from the Host the client itself used. */
static void put_location(struct exchange *x)
{
    const char *public_url = x->worker->server->config->public_url;
    struct slice host = http_request_header(exchange_request(x), SLICE("host"), NULL);
    char memory[LOCATION_BYTES_MAX];
    struct buf url;

    buf_init_fixed(&url, memory, sizeof(memory));
    if (public_url[0] != '\0') {
        buf_append(&url, slice_of(public_url));
    } else if (is_host(host)) {
        buf_append(&url, SLICE("http://"));
        buf_append(&url, host);
    }
    buf_append(&url, SLICE(NAME_ROOT));
    name_append_escaped(&url, (struct slice){x->work->name, x->work->name_len});
    if (!url.failed) {
        reply_field(x, SLICE("Location"), buf_slice(&url));
    }
}

static void finish(struct exchange *x)
{
    const struct stream_result *result = &x->work->op.result;

    if (result->code != 0) {
        int status = refusal_status(&x->work->op);

        problem_note(x, result->code);
        problem_begin(x, status);
        reply_closed(x, result->closed);
        problem_send(x, status, refusal_of_op(&x->work->op));
        return;
    }
    reply_begin(x, result->created ? 201 : 200, REPLY_NO_STORE);
    if (result->created) {
        put_location(x);
    }
    reply_field(x, SLICE("Content-Type"), result->content_type);
    reply_next(x, result->next);
    reply_closed(x, result->closed);
    reply_send(x, (struct slice){NULL, 0});
}

static void run(struct exchange *x)
{
    struct stream_create_request *create = &x->work->op.create;

    if (x->body.len > 0) {
        create->body = (struct slice){x->body.block->data, x->body.len};
        create->body_block = x->body.block;
    }
    exchange_run(x);
}

/* A fork's source is named by a header, so its canonical form needs memory that lives as long. */
static int prepare_fork(struct exchange *x, struct errmsg *msg)
{
    char name[STREAM_NAME_BYTES_MAX];
    struct stream_create_request *create = &x->work->op.create;
    int code = fields_fork(exchange_request(x), name, create, msg);

    if (code == 0 && create->forked_from.len > 0) {
        code = exchange_check_reserved(x, create->forked_from, msg);
    }
    if (code != 0 || create->forked_from.len == 0) {
        return code;
    }
    /* The header's own bytes make room for it: a canonical name is never longer than what was
     * sent. */
    struct slice sent = http_request_header(exchange_request(x), SLICE("stream-forked-from"), NULL);
    char *room = x->head->bytes + (sent.ptr - x->head->bytes);

    memcpy(room, name, create->forked_from.len);
    create->forked_from.ptr = room;
    return 0;
}

int create_prepare(struct exchange *x, struct errmsg *msg)
{
    const struct http_request *request = exchange_request(x);
    struct stream_create_request *create = &x->work->op.create;

    x->work->op.verb = STREAM_CREATE;
    x->ready = run;
    x->finish = finish;
    int code = fields_content_type(request, &create->content_type, msg);

    if (code == 0) {
        code = fields_closed(request, &create->closed, msg);
    }
    if (code == 0) {
        code = fields_expiry(request, &create->expiry, msg);
    }
    return code == 0 ? prepare_fork(x, msg) : code;
}
