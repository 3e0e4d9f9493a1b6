/* Any bytes as an event stream: cut as the first byte says, they give the same tokens as in one
 * piece, and nothing is held beyond the cap. What the server writes is read back exactly: the same
 * bytes as the payload of an event, one that the second byte picks. */
#include "client/sse.h"

#include <assert.h>
#include <stdlib.h>

#include "http/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The tokens, in order, as a text; the parts of one event joined. Returns 0 or the error. */
static int parse(struct slice text, size_t step, struct buf *tokens)
{
    struct sse_parser p;
    int rc = 0;

    sse_parser_init(&p);
    while (text.len > 0 && rc >= 0) {
        size_t len = text.len < step ? text.len : step;
        char *copy = malloc(len);
        struct slice piece = {copy, len};
        struct slice bytes = {NULL, 0};

        assert(copy != NULL);
        memcpy(copy, text.ptr, len);
        while ((rc = sse_parser_take(&p, &piece, &bytes, NULL)) > 0) {
            if (rc == SSE_TOKEN_CONTROL) {
                buf_append(tokens, SLICE("\x01"));
                buf_append(tokens, bytes);
            }
            buf_append(tokens, rc == SSE_TOKEN_DATA ? bytes : SLICE("\x02"));
        }
        assert(rc < 0 || piece.len == 0);
        assert(p.held.cap <= SSE_HELD_BYTES_MAX);
        text = (struct slice){text.ptr + len, text.len - len};
        free(copy);
    }
    sse_parser_finish(&p);
    return rc;
}

static void check_cuts(struct slice text, size_t step)
{
    struct buf whole;
    struct buf cut;

    buf_init(&whole, 64u << 20);
    buf_init(&cut, 64u << 20);
    int rc = parse(text, text.len, &whole);

    assert(parse(text, step, &cut) == rc);
    /* What is handed out before an error may differ: data come as far as they are at hand. */
    assert(rc < 0 || slice_equal(buf_slice(&whole), buf_slice(&cut)));
    buf_finish(&whole);
    buf_finish(&cut);
}

/* Decodes base64 in the same pieces as it comes. */
static void append_decoded(struct sse_base64 *d, struct slice text, struct buf *out)
{
    char *room = buf_reserve(out, SSE_BASE64_ROOM(text.len));
    size_t len;

    assert(room != NULL);
    if (sse_base64_take(d, text, room, &len, NULL) != 0) {
        abort();
    }
    buf_advance(out, len);
}

/* Frames the payload as the server does and takes it apart again. */
static void check_round(enum sse_encoding encoding, struct slice payload, size_t step)
{
    struct sse_parser p;
    struct sse_base64 d = {.bits = 0};
    struct slice rest;
    struct slice bytes;
    struct buf frame;
    struct buf got;
    int rc = 0;
    int ends = 0;

    buf_init(&frame, 64u << 20);
    buf_init(&got, 64u << 20);
    sse_append_data(&frame, encoding, &payload, 1);
    sse_parser_init(&p);
    for (size_t at = 0; at < frame.len; at += step) {
        rest = (struct slice){frame.ptr + at, frame.len - at < step ? frame.len - at : step};
        while ((rc = sse_parser_take(&p, &rest, &bytes, NULL)) > 0) {
            assert(rc != SSE_TOKEN_CONTROL);
            ends += rc == SSE_TOKEN_DATA_END;
            if (rc == SSE_TOKEN_DATA && encoding == SSE_BASE64) {
                append_decoded(&d, bytes, &got);
            } else if (rc == SSE_TOKEN_DATA) {
                buf_append(&got, bytes);
            }
        }
        assert(rc == 0);
    }
    assert(ends == (payload.len > 0));
    assert(sse_base64_whole(&d));
    if (encoding == SSE_BASE64) {
        assert(slice_equal(buf_slice(&got), payload));
    } else if (payload.len > 0 && memchr(payload.ptr, '\r', payload.len) == NULL) {
        assert(got.len >= payload.len);
    }
    sse_parser_finish(&p);
    buf_finish(&frame);
    buf_finish(&got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sse_base64 d = {.bits = 0};
    struct slice text;
    struct buf out;
    size_t len;

    if (size < 3) {
        return 0;
    }
    text = (struct slice){(const char *)data + 2, size - 2};
    check_cuts(text, data[0] + 1u);
    check_round(data[1] % 2 == 0 ? SSE_TEXT : SSE_BASE64, text, data[0] + 1u);
    buf_init(&out, 64u << 20);
    char *room = buf_reserve(&out, SSE_BASE64_ROOM(text.len));

    if (room != NULL && sse_base64_take(&d, text, room, &len, NULL) == 0) {
        assert(len <= SSE_BASE64_ROOM(text.len));
    }
    buf_finish(&out);
    return 0;
}
