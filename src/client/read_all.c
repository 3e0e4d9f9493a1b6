/* Reads a stream up to its tail into memory: messages of JSON streams as one array, the bytes of
 * others one behind the other. */
#include "client/call.h"
#include "client/reader.h"

#include "base/buf.h"
#include "base/media_type.h"

#include <stdlib.h>

/* Whether the pieces are messages; known with the first of them. */
static bool is_json(const struct stream_reader *reader)
{
    struct stream_info info;

    stream_reader_info(reader, &info);
    return media_type_is_json(slice_of(info.content_type));
}

static int put(struct buf *out, struct slice bytes, struct stream_error *ret_error)
{
    if (bytes.len > out->max - out->len) {
        return call_error_set(ret_error, STREAM_ERROR_REJECTED,
                              "there is more than the %zu bytes allowed", out->max);
    }
    buf_append(out, bytes);
    return out->failed ? call_error_set(ret_error, STREAM_ERROR_MEMORY, "out of memory")
                       : STREAM_OK;
}

static int gather(struct stream_reader *reader, struct buf *out, struct stream_error *ret_error)
{
    struct stream_piece_view piece;
    int rc;

    while ((rc = stream_reader_next(reader, &piece, ret_error)) == STREAM_OK) {
        if (piece.len > 0 && is_json(reader)) {
            rc = put(out, out->len == 0 ? SLICE("[") : SLICE(","), ret_error);
        }
        if (rc == STREAM_OK) {
            rc = put(out, (struct slice){piece.data, piece.len}, ret_error);
        }
        if (rc != STREAM_OK) {
            return rc;
        }
    }
    if (rc != STREAM_END) {
        return rc;
    }
    if (is_json(reader)) {
        return put(out, out->len == 0 ? SLICE("[]") : SLICE("]"), ret_error);
    }
    return STREAM_OK;
}

/* The room for a NUL, which buf keeps behind what it counts, also where there are no bytes. */
static bool terminate(struct buf *out)
{
    if (out->ptr == NULL) {
        out->ptr = malloc(1);
    }
    if (out->ptr != NULL) {
        out->ptr[out->len] = '\0';
    }
    return out->ptr != NULL;
}

int stream_client_read_all(struct stream_client *client, const char *name, const char *offset,
                           size_t max, char **ret_data, size_t *ret_len,
                           struct stream_info *ret_info, struct stream_error *ret_error)
{
    const struct stream_read_options options = {.offset = offset, .live = STREAM_CATCH_UP};
    struct stream_reader *reader;
    struct buf out;
    int rc = stream_client_read(client, name, &options, &reader, ret_error);

    if (rc != STREAM_OK) {
        return rc;
    }
    reader_set_by_type(reader);
    buf_init(&out, max);
    rc = gather(reader, &out, ret_error);
    if (rc == STREAM_OK && !terminate(&out)) {
        rc = call_error_set(ret_error, STREAM_ERROR_MEMORY, "out of memory");
    }
    if (rc == STREAM_OK) {
        if (ret_info != NULL) {
            stream_reader_info(reader, ret_info);
        }
        *ret_data = out.ptr;
        *ret_len = out.len;
    } else {
        buf_finish(&out);
    }
    stream_reader_free(reader);
    return rc;
}
