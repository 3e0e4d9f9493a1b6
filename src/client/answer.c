/* Pages are taken as they are. Of event streams, the parser hands out parts of data events, which
 * go the same way; each data event of a JSON stream is an array of its own.
 *
 * Bytes are gathered in `held` and handed out once they are many, but for the last few: an offset
 * may come right behind them, and they alone may look otherwise when they are asked for again (the
 * bracket that ends a page of JSON; a character or a line end that text events had to cut). */
#include "client/answer.h"

#include "base/json_value.h"

#define HELD_BACK_BYTES 4                  /* as above: at most what stands for one character */
#define DECODE_BYTES    ((size_t)16 * KIB) /* characters of base64 at a time */

void answer_init(struct answer *a, enum stream_unit unit, size_t message_bytes_max)
{
    *a = (struct answer){.unit = unit};
    messages_init(&a->messages, message_bytes_max);
    sse_parser_init(&a->sse);
    buf_init(&a->held, ANSWER_PIECE_BYTES + HELD_BACK_BYTES + DECODE_BYTES);
}

void answer_finish(struct answer *a)
{
    messages_finish(&a->messages);
    sse_parser_finish(&a->sse);
    buf_finish(&a->held);
}

void answer_begin(struct answer *a, bool is_events, bool is_base64)
{
    messages_reset(&a->messages);
    sse_parser_finish(&a->sse);
    sse_parser_init(&a->sse);
    buf_clear(&a->held);
    a->base64 = (struct sse_base64){.bits = 0};
    a->is_events = is_events;
    a->is_base64 = is_events && is_base64;
    a->token = (struct slice){NULL, 0};
    a->given = 0;
    a->units = 0;
    a->skip = a->since;
}

/* The first `len` bytes of what is held are the piece. */
static struct slice give_held(struct answer *a, size_t len)
{
    a->given = len;
    a->since += a->unit == STREAM_BYTES ? len : len > 0 ? 1u : 0u;
    return (struct slice){a->held.ptr, len};
}

/* Bytes of the stream, of which the first may have been handed out before. */
static int hold_bytes(struct answer *a, struct slice bytes)
{
    uint64_t skipped = a->skip < bytes.len ? a->skip : bytes.len;

    a->units += bytes.len;
    a->skip -= skipped;
    bytes.ptr += skipped;
    bytes.len -= (size_t)skipped;
    buf_append(&a->held, bytes);
    return a->held.failed ? ERR_NOMEM : 0;
}

static int hold_part(struct answer *a, struct slice part, struct errmsg *msg)
{
    char decoded[SSE_BASE64_ROOM(DECODE_BYTES)];
    struct slice bytes = part;

    if (a->is_base64) {
        int rc = sse_base64_take(&a->base64, part, decoded, &bytes.len, msg);

        if (rc != 0) {
            return rc;
        }
        bytes.ptr = decoded;
    }
    return hold_bytes(a, bytes);
}

/* Gathers bytes up to a piece. */
static int take_bytes(struct answer *a, struct slice *rest, struct slice *ret_piece,
                      struct errmsg *msg)
{
    while (rest->len > 0) {
        size_t len = rest->len < DECODE_BYTES ? rest->len : DECODE_BYTES;
        int rc = hold_part(a, (struct slice){rest->ptr, len}, msg);

        if (rc != 0) {
            return rc;
        }
        rest->ptr += len;
        rest->len -= len;
        if (a->held.len >= ANSWER_PIECE_BYTES + HELD_BACK_BYTES) {
            *ret_piece = give_held(a, a->held.len - HELD_BACK_BYTES);
            return ANSWER_PIECE;
        }
    }
    return ANSWER_MORE;
}

/* Hands out messages. The last of an array is held, since an offset may come behind it, unless it
 * is so large that it had better go. */
static int take_messages(struct answer *a, struct slice *rest, struct slice *ret_piece,
                         struct errmsg *msg)
{
    struct slice message;
    int rc;

    while ((rc = messages_take(&a->messages, rest, &message, msg)) == 1) {
        a->units++;
        if (a->skip > 0) {
            a->skip--;
        } else if (!messages_done(&a->messages) || message.len > ANSWER_PIECE_BYTES) {
            a->since++;
            *ret_piece = message;
            return ANSWER_PIECE;
        } else {
            buf_append(&a->held, message);
            if (a->held.failed) {
                return ERR_NOMEM;
            }
        }
    }
    return rc;
}

static int take_units(struct answer *a, struct slice *rest, struct slice *ret_piece,
                      struct errmsg *msg)
{
    return a->unit == STREAM_BYTES ? take_bytes(a, rest, ret_piece, msg)
                                   : take_messages(a, rest, ret_piece, msg);
}

static bool array_whole(const struct answer *a)
{
    return a->unit == STREAM_BYTES || messages_done(&a->messages) || messages_blank(&a->messages);
}

/* A data event is whole, and so must be what it holds. */
static int end_data(struct answer *a, struct errmsg *msg)
{
    if (!sse_base64_whole(&a->base64)) {
        return err_set(msg, ERR_INVALID, "the base64 of a data event breaks off");
    }
    if (!array_whole(a)) {
        return err_set(msg, ERR_INVALID, "the JSON array of a data event breaks off");
    }
    a->base64 = (struct sse_base64){.bits = 0};
    messages_reset(&a->messages);
    return 0;
}

static bool is_printable(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] < 0x20 || text.ptr[i] == 0x7f) {
            return false;
        }
    }
    return true;
}

/* A text of a control event that goes into a request one day; empty when it is not there. */
static int control_text(struct slice object, struct slice name, char *out, size_t size,
                        struct errmsg *msg)
{
    struct slice value;
    struct buf text;
    int rc = json_object_find(object, name, &value, msg);

    if (rc != 1) {
        return rc;
    }
    buf_init_fixed(&text, out, size);
    if (json_kind(value) != JSON_STRING || json_string_decode(value, &text) != 0 ||
        !is_printable(buf_slice(&text))) {
        return err_set(msg, ERR_INVALID, "a control event's %.*s is no text of up to %zu bytes",
                       (int)name.len, name.ptr, size - 1);
    }
    out[text.len] = '\0';
    return 0;
}

/* A flag of a control event; absent is false. */
static int control_flag(struct slice object, struct slice name, bool *ret_flag, struct errmsg *msg)
{
    struct slice value;
    int rc = json_object_find(object, name, &value, msg);

    *ret_flag = rc == 1 && json_kind(value) == JSON_TRUE;
    if (rc == 1 && !*ret_flag && json_kind(value) != JSON_FALSE) {
        return err_set(msg, ERR_INVALID, "a control event's %.*s is neither true nor false",
                       (int)name.len, name.ptr);
    }
    return rc < 0 ? rc : 0;
}

static int read_control(struct slice text, struct answer_mark *ret_mark, struct errmsg *msg)
{
    struct answer_mark mark = {.next_offset = ""};
    struct slice object;
    int rc = json_text_read(text, &object, msg);

    if (rc < 0) {
        return err_prefix(msg, rc, "in a control event");
    }
    if (json_kind(object) != JSON_OBJECT) {
        return err_set(msg, ERR_INVALID, "a control event is %s, not an object",
                       json_kind_text(json_kind(object)));
    }
    rc = control_text(object, SLICE("streamNextOffset"), mark.next_offset, sizeof(mark.next_offset),
                      msg);
    if (rc == 0 && mark.next_offset[0] == '\0') {
        return err_set(msg, ERR_INVALID, "a control event has no streamNextOffset");
    }
    if (rc == 0) {
        rc = control_text(object, SLICE("streamCursor"), mark.cursor, sizeof(mark.cursor), msg);
    }
    if (rc == 0) {
        rc = control_flag(object, SLICE("upToDate"), &mark.up_to_date, msg);
    }
    if (rc == 0) {
        rc = control_flag(object, SLICE("streamClosed"), &mark.closed, msg);
    }
    if (rc < 0) {
        return rc;
    }
    mark.up_to_date = mark.up_to_date || mark.closed; /* PROTOCOL.md 5.8 */
    *ret_mark = mark;
    return ANSWER_MARK;
}

/* The next token of an event stream. */
static int take_event(struct answer *a, struct slice *rest, struct slice *ret_piece,
                      struct errmsg *msg)
{
    struct slice bytes = {NULL, 0};
    int token = sse_parser_take(&a->sse, rest, &bytes, msg);

    if (token == SSE_TOKEN_DATA) {
        a->token = bytes;
        if (a->unit == STREAM_MESSAGES && a->held.len > 0 && messages_blank(&a->messages)) {
            /* Another data event, and no offset between them. */
            *ret_piece = give_held(a, a->held.len);
            return ANSWER_PIECE;
        }
    } else if (token == SSE_TOKEN_DATA_END) {
        token = end_data(a, msg);
    } else if (token == SSE_TOKEN_CONTROL) {
        return read_control(bytes, &a->mark, msg);
    }
    return token < 0 ? token : ANSWER_MORE;
}

int answer_take(struct answer *a, struct slice *rest, struct slice *ret_piece, struct errmsg *msg)
{
    int rc = ANSWER_MORE;

    buf_consume(&a->held, a->given);
    a->given = 0;
    if (!a->is_events) {
        return take_units(a, rest, ret_piece, msg);
    }
    while (rc == ANSWER_MORE && (a->token.len > 0 || rest->len > 0)) {
        rc = a->token.len > 0 ? take_units(a, &a->token, ret_piece, msg)
                              : take_event(a, rest, ret_piece, msg);
    }
    return rc;
}

int answer_end_page(const struct answer *a, struct errmsg *msg)
{
    return array_whole(a) ? 0 : err_set(msg, ERR_INVALID, "the JSON array breaks off");
}

struct slice answer_commit(struct answer *a)
{
    buf_consume(&a->held, a->given);
    struct slice piece = give_held(a, a->held.len);

    a->since = a->skip;
    a->units = 0;
    return piece;
}
