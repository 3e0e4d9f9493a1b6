/* A piece stays the reader's; the cursor remembers how much of it is used. */
#include "cli/cursor.h"

int cursor_begin(struct cursor *c, struct stream_client *client, const char *name,
                 const struct stream_read_options *options, struct stream_error *ret_error)
{
    *c = (struct cursor){.reader = NULL};
    return stream_client_read(client, name, options, &c->reader, ret_error);
}

void cursor_finish(struct cursor *c)
{
    stream_reader_free(c->reader);
    *c = (struct cursor){.reader = NULL};
}

int cursor_fill(struct cursor *c, bool wait, struct stream_error *ret_error)
{
    struct stream_piece_view piece = {0};

    if (c->rest.len > 0) {
        return STREAM_OK;
    }
    int rc = wait ? stream_reader_next(c->reader, &piece, ret_error)
                  : stream_reader_step(c->reader, &piece, ret_error);

    if (rc == STREAM_OK) {
        c->rest = (struct slice){piece.data, piece.len};
        c->next_offset = piece.next_offset;
        c->up_to_date = piece.up_to_date != 0;
        c->closed = piece.closed != 0;
    }
    return rc;
}

void cursor_use(struct cursor *c, size_t count)
{
    c->rest = (struct slice){c->rest.ptr + count, c->rest.len - count};
}

/* The next byte that counts; -1 at the end. */
static int next_byte(struct slice text, size_t *at, bool in_string)
{
    while (*at < text.len) {
        char c = text.ptr[(*at)++];

        if (!in_string && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) {
            continue;
        }
        return (unsigned char)c;
    }
    return -1;
}

bool cursor_same_json(struct slice a, struct slice b)
{
    size_t at_a = 0;
    size_t at_b = 0;
    bool in_string = false;
    bool escaped = false;

    for (;;) {
        int one = next_byte(a, &at_a, in_string);
        int other = next_byte(b, &at_b, in_string);

        if (one != other) {
            return false;
        }
        if (one < 0) {
            return true;
        }
        if (escaped) {
            escaped = false;
        } else if (in_string && one == '\\') {
            escaped = true;
        } else if (one == '"') {
            in_string = !in_string;
        }
    }
}
