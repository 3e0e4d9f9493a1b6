/* Lines are found with memchr and copied whole. A payload that ends in a line end gets a last,
 * empty data line: a reader joins lines by LF, so that the bytes come back exactly (CR and CRLF
 * as LF). A reader strips one space behind the colon, so a line that begins with one gets another;
 * other lines get none, since there are clients that look for "data:" and the line's first byte. */
#include "http/sse.h"

#include <assert.h>

#include "base/base64.h"
#include "base/media_type.h"
#include "base/utf8.h"

/* The room a data event takes beyond its payload when it has one line. */
#define FRAME_BYTES 32

enum sse_encoding sse_encoding_of(struct slice content_type)
{
    if (media_type_is_json(content_type)) {
        return SSE_JSON;
    }
    if (media_type_is_text(content_type)) {
        return SSE_TEXT;
    }
    return SSE_BASE64;
}

/* The next line feed or carriage return of a piece; each is looked for once however they mix. */
struct line_finder {
    const char *at;       /* where the line begins */
    const char *end;      /* of the piece */
    const char *feed;     /* the next LF, or `end` */
    const char *carriage; /* the next CR, or `end` */
};

static const char *find(const char *at, const char *end, char c)
{
    const char *hit = at == end ? NULL : memchr(at, c, (size_t)(end - at));

    return hit == NULL ? end : hit;
}

/* The end of the line that begins at f->at. */
static const char *line_end(struct line_finder *f)
{
    if (f->feed < f->at) {
        f->feed = find(f->at, f->end, '\n');
    }
    if (f->carriage < f->at) {
        f->carriage = find(f->at, f->end, '\r');
    }
    return f->feed < f->carriage ? f->feed : f->carriage;
}

/* Where the payload stands between two pieces. */
struct line_state {
    bool after_cr; /* the piece ended with CR; an LF at the start of the next belongs to it */
    bool fresh;    /* nothing of the line was written yet */
};

/* Appends a part of a line. */
static void append_part(struct buf *out, struct slice part, struct line_state *state)
{
    if (part.len == 0) {
        return;
    }
    if (state->fresh && part.ptr[0] == ' ') {
        buf_append_char(out, ' ');
    }
    state->fresh = false;
    buf_append(out, part);
}

/* Appends a piece, beginning a new data line after each line end. */
static void append_lines(struct buf *out, struct slice piece, struct line_state *state)
{
    struct line_finder f = {.at = piece.ptr, .end = piece.ptr + piece.len};

    if (piece.len == 0) {
        return;
    }
    if (state->after_cr && *f.at == '\n') {
        f.at++;
    }
    state->after_cr = false;
    f.feed = find(f.at, f.end, '\n');
    f.carriage = find(f.at, f.end, '\r');
    for (;;) {
        const char *stop = line_end(&f);

        append_part(out, (struct slice){f.at, (size_t)(stop - f.at)}, state);
        if (stop == f.end) {
            return;
        }
        buf_append(out, SLICE("\ndata:"));
        state->fresh = true;
        f.at = stop + 1;
        if (*stop == '\r') {
            state->after_cr = f.at == f.end;
            f.at += f.at < f.end && *f.at == '\n' ? 1 : 0;
        }
    }
}

/* How many bytes of `text` do not belong to a character. */
static size_t count_strays(struct slice text)
{
    size_t count = 0;
    size_t at = utf8_valid_prefix(text);

    for (; at < text.len; count++) {
        at++;
        at += utf8_valid_prefix((struct slice){text.ptr + at, text.len - at});
    }
    return count;
}

/* Makes what was written from `start` on UTF-8, as an event stream must be (HTML section 9.2.5):
 * each byte that belongs to no character becomes U+FFFD. It works on the lines, which may be joined
 * from several pieces; what stands between them is ASCII and cuts no character. */
static void mend_text(struct buf *out, size_t start)
{
    static const struct slice replacement = {"\xef\xbf\xbd", 3};

    if (out->failed) {
        return;
    }
    size_t good = utf8_valid_prefix((struct slice){out->ptr + start, out->len - start});
    size_t from = start + good;

    if (from == out->len) {
        return;
    }
    size_t more = 2 * count_strays((struct slice){out->ptr + from, out->len - from});

    if (buf_reserve(out, more) == NULL) {
        return;
    }
    /* The rest moves to the end of its new room and is taken from there piece by piece. */
    char *to = out->ptr + from;
    char *end = out->ptr + out->len + more;
    char *at = memmove(to + more, to, out->len - from);

    while (at < end) {
        memcpy(to, replacement.ptr, replacement.len);
        to += replacement.len;
        at++;
        size_t run = utf8_valid_prefix((struct slice){at, (size_t)(end - at)});

        memmove(to, at, run);
        to += run;
        at += run;
    }
    assert(to == end);
    buf_advance(out, more);
}

static void append_text(struct buf *out, const struct slice *pieces, size_t piece_count)
{
    struct line_state state = {.fresh = true};
    size_t start = out->len;

    for (size_t i = 0; i < piece_count; i++) {
        append_lines(out, pieces[i], &state);
    }
    mend_text(out, start);
}

/* Stored messages each end with a comma; the last one makes way for the bracket. */
static void append_json(struct buf *out, const struct slice *pieces, size_t piece_count)
{
    struct line_state state = {.fresh = false};

    buf_append_char(out, '[');
    while (piece_count > 0 && pieces[piece_count - 1].len == 0) {
        piece_count--;
    }
    for (size_t i = 0; i < piece_count; i++) {
        struct slice piece = pieces[i];

        if (i + 1 == piece_count && piece.ptr[piece.len - 1] == ',') {
            piece.len--;
        }
        append_lines(out, piece, &state);
    }
    buf_append_char(out, ']');
}

/* The concatenation as one text: up to two bytes are carried over from piece to piece. */
static void append_base64(struct buf *out, const struct slice *pieces, size_t piece_count,
                          size_t total)
{
    char *at = buf_reserve(out, BASE64_LEN(total));
    char carry[3];
    size_t carried = 0;
    size_t len = 0;

    if (at == NULL) {
        return;
    }
    for (size_t i = 0; i < piece_count; i++) {
        struct slice piece = pieces[i];
        size_t whole;

        while (piece.len > 0 && carried > 0 && carried < sizeof(carry)) {
            carry[carried++] = *piece.ptr++;
            piece.len--;
        }
        if (carried == sizeof(carry)) {
            len += base64_encode(at + len, (struct slice){carry, carried});
            carried = 0;
        }
        whole = piece.len / 3 * 3;
        len += base64_encode(at + len, (struct slice){piece.ptr, whole});
        for (size_t rest = whole; rest < piece.len; rest++) {
            carry[carried++] = piece.ptr[rest];
        }
    }
    len += base64_encode(at + len, (struct slice){carry, carried});
    assert(len == BASE64_LEN(total));
    buf_advance(out, len);
}

void sse_append_data(struct buf *out, enum sse_encoding encoding, const struct slice *pieces,
                     size_t piece_count)
{
    size_t total = 0;

    for (size_t i = 0; i < piece_count; i++) {
        total += pieces[i].len;
    }
    if (total == 0) {
        return;
    }
    /* One allocation for the usual event. */
    (void)buf_reserve(out, (encoding == SSE_BASE64 ? BASE64_LEN(total) : total) + FRAME_BYTES);
    buf_append(out, SLICE("event: data\ndata:"));
    if (encoding == SSE_TEXT) {
        append_text(out, pieces, piece_count);
    } else if (encoding == SSE_JSON) {
        append_json(out, pieces, piece_count);
    } else {
        append_base64(out, pieces, piece_count, total);
    }
    buf_append(out, SLICE("\n\n"));
}

void sse_append_control(struct buf *out, const struct sse_control *control)
{
    /* Offset tokens are ours and need no escapes. */
    buf_append(out, SLICE("event: control\ndata:{\"streamNextOffset\":\""));
    buf_append(out, control->next);
    buf_append_char(out, '"');
    if (!control->closed) {
        buf_append(out, SLICE(",\"streamCursor\":\""));
        buf_append_u64(out, control->cursor);
        buf_append_char(out, '"');
    }
    if (control->up_to_date || control->closed) {
        buf_append(out, SLICE(",\"upToDate\":true"));
    }
    if (control->closed) {
        buf_append(out, SLICE(",\"streamClosed\":true"));
    }
    buf_append(out, SLICE("}\n\n"));
}

void sse_append_heartbeat(struct buf *out)
{
    buf_append(out, SLICE(":\n\n"));
}
