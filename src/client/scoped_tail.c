/* A tail is a reader of the stream that the app's proxy shows at api/threads/ID/stream: all that it
 * takes to go on whatever breaks is in reader.c. What is added is decoding, the words of errors,
 * and rules for trying again that are a tail's. */
#include "client/scoped.h"

#include "client/reader.h"

#include <stdio.h>
#include <stdlib.h>

struct scoped_tail {
    struct stream_reader *reader;
    char what[SCOPED_WHAT_BYTES];     /* the words that errors begin with */
    char offset[STREAM_OFFSET_BYTES]; /* the last that was told */
};

static int refuse(const char *what, const char *why, struct scoped_error *ret_error)
{
    return scoped_error_set(ret_error, STREAM_ERROR_ARGUMENT, "%s: %s", what, why);
}

int scoped_client_tail(struct scoped_client *client, const char *thread_id,
                       const struct scoped_tail_options *options, struct scoped_tail **ret_tail,
                       struct scoped_error *ret_error)
{
    static const struct scoped_tail_options defaults = {.from_offset = NULL};
    char name[SCOPED_ID_BYTES + sizeof("api/threads//stream")];
    const char *why;
    int code = scoped_check_id("a thread", thread_id, ret_error);

    if (code != STREAM_OK) {
        return code;
    }
    options = options != NULL ? options : &defaults;
    struct stream_read_options read = {
        .offset = options->from_offset,
        .live = options->catch_up ? STREAM_CATCH_UP : STREAM_LONG_POLL,
        .unit = STREAM_MESSAGES,
        .poll_timeout_ms = options->poll_timeout_ms,
    };
    struct scoped_tail *tail = calloc(1, sizeof(*tail));

    if (tail == NULL) {
        return scoped_error_set(ret_error, STREAM_ERROR_MEMORY, "out of memory");
    }
    (void)snprintf(name, sizeof(name), "api/threads/%s/stream", thread_id);
    (void)snprintf(tail->what, sizeof(tail->what), "cannot follow thread \"%s\"", thread_id);
    why = reader_check(name, &read);
    if (why != NULL) {
        code = refuse(tail->what, why, ret_error);
    } else if (stream_client_read(client->stream, name, &read, &tail->reader, NULL) != STREAM_OK) {
        code = scoped_error_set(ret_error, STREAM_ERROR_MEMORY, "out of memory");
    }
    if (code != STREAM_OK) {
        free(tail);
        return code;
    }
    (void)snprintf(tail->offset, sizeof(tail->offset), "%s", /* its length was checked */
                   read.offset != NULL ? read.offset : "-1");
    reader_customise(tail->reader, tail->what, &client->tail_retry);
    *ret_tail = tail;
    return STREAM_OK;
}

/* What the reader said, as a step of the tail. */
static int take(struct scoped_tail *tail, int rc, const struct stream_piece_view *piece,
                const struct stream_error *error, struct scoped_tail_view *ret_view,
                struct scoped_error *ret_error)
{
    if (rc > STREAM_OK) {
        return scoped_error_fill(ret_error, error, reader_refusal(tail->reader));
    }
    if (rc != STREAM_OK) {
        return rc;
    }
    *ret_view = (struct scoped_tail_view){
        .has_entry = piece->len > 0,
        .up_to_date = piece->up_to_date,
        .closed = piece->closed,
    };
    if (piece->len > 0 &&
        scoped_entry_read(piece->data, piece->len, &ret_view->entry) != STREAM_OK) {
        /* Nothing that we know how to read is still something that is there. */
        ret_view->entry = (struct scoped_entry){.json = piece->data, .json_len = piece->len};
    }
    if (piece->next_offset != NULL) {
        (void)snprintf(tail->offset, sizeof(tail->offset), "%s", piece->next_offset);
        ret_view->next_offset = tail->offset;
    }
    return STREAM_OK;
}

int scoped_tail_next(struct scoped_tail *tail, struct scoped_tail_view *ret_view,
                     struct scoped_error *ret_error)
{
    struct stream_piece_view piece;
    struct stream_error error;
    int rc = stream_reader_next(tail->reader, &piece, &error);

    return take(tail, rc, &piece, &error, ret_view, ret_error);
}

int scoped_tail_step(struct scoped_tail *tail, struct scoped_tail_view *ret_view,
                     struct scoped_error *ret_error)
{
    struct stream_piece_view piece;
    struct stream_error error;
    int rc = stream_reader_step(tail->reader, &piece, &error);

    return take(tail, rc, &piece, &error, ret_view, ret_error);
}

const char *scoped_tail_offset(const struct scoped_tail *tail)
{
    return tail->offset;
}

void scoped_tail_abort(struct scoped_tail *tail)
{
    stream_reader_abort(tail->reader);
}

void scoped_tail_free(struct scoped_tail *tail)
{
    if (tail != NULL) {
        stream_reader_free(tail->reader);
        free(tail);
    }
}
