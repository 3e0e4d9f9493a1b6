/* Any bytes as a request head: whole and byte by byte must agree, and what is accepted must hold
 * what the parser promises. The first byte picks where the input is cut. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "http/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct slice part, struct slice whole)
{
    uintptr_t at = (uintptr_t)part.ptr - (uintptr_t)whole.ptr;

    assert(at <= whole.len);
    assert(part.len <= whole.len - at);
}

/* The copy says the same in memory of its own. */
static void check_copy(const struct http_request *r, struct slice head)
{
    static struct http_request copy;
    char *bytes = malloc(head.len);

    assert(bytes != NULL);
    http_request_copy(r, head, bytes, &copy);

    struct slice own = {bytes, head.len};

    check_inside(copy.method_token, own);
    check_inside(copy.target, own);
    assert(slice_equal(copy.method_token, r->method_token));
    assert(slice_equal(copy.target, r->target));
    assert(copy.header_count == r->header_count);
    for (size_t i = 0; i < copy.header_count; i++) {
        check_inside(copy.headers[i].name, own);
        check_inside(copy.headers[i].value, own);
        assert(slice_equal(copy.headers[i].name, r->headers[i].name));
        assert(slice_equal(copy.headers[i].value, r->headers[i].value));
    }
    free(bytes);
}

/* A target is a path and perhaps a query, whatever its form. */
static void check_target(const struct http_request *r)
{
    struct slice path;
    struct slice query;

    http_target_split(r->target, &path, &query);
    assert(path.len > 0);
    if (query.ptr != NULL) {
        check_inside(query, r->target);
    }
}

/* The promises of request.h about an accepted head. */
static void check_accepted(const struct http_request *r, struct slice head)
{
    assert(r->header_count <= HTTP_HEADERS_MAX);
    assert(head.len <= HTTP_HEAD_BYTES_MAX);
    assert(head.ptr[head.len - 1] == '\n');
    assert(head.ptr[head.len - 2] == '\r');
    assert(r->target.len > 0);
    assert(r->target.len <= HTTP_TARGET_BYTES_MAX);
    check_inside(r->method_token, head);
    check_inside(r->target, head);
    check_target(r);
    check_copy(r, head);
    for (size_t i = 0; i < r->header_count; i++) {
        struct slice value = r->headers[i].value;

        check_inside(r->headers[i].name, head);
        check_inside(value, head);
        assert(r->headers[i].name.len > 0);
        for (size_t at = 0; at < value.len; at++) {
            assert(value.ptr[at] != '\r' && value.ptr[at] != '\n' && value.ptr[at] != '\0');
        }
    }
    if (r->body == HTTP_BODY_CHUNKED) {
        assert(r->minor_version == 1);
        assert(http_request_header(r, SLICE("content-length"), NULL).ptr == NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct http_request whole;
    static struct http_request parts;
    struct http_refusal refusal = {0, NULL};
    struct http_refusal late = {0, NULL};
    size_t scanned = 0;
    struct slice input;
    size_t cut;
    long rc;
    long again;

    if (size < 2) {
        return 0;
    }
    input = (struct slice){(const char *)data + 1, size - 1};
    rc = http_request_parse(input, &scanned, &whole, &refusal);
    if (rc > 0) {
        assert((size_t)rc <= input.len);
        check_accepted(&whole, (struct slice){input.ptr, (size_t)rc});
    } else if (rc < 0) {
        assert(refusal.status >= 400 && refusal.status < 600);
        assert(refusal.sentence != NULL);
    } else {
        assert(input.len < HTTP_HEAD_BYTES_MAX);
    }
    cut = data[0] % input.len;
    scanned = 0;
    again = http_request_parse((struct slice){input.ptr, cut}, &scanned, &parts, &late);
    if (again == 0) {
        again = http_request_parse(input, &scanned, &parts, &late);
    }
    /* In parts a head may be refused later, but never read differently. */
    if (rc > 0) {
        assert(again == rc);
        assert(parts.body == whole.body);
        assert(parts.content_length == whole.content_length);
        assert(parts.header_count == whole.header_count);
    } else {
        assert(again <= 0);
    }
    return 0;
}
