/* A line is walked in three states: its field's name, the optional space behind the colon, and the
 * value. What a value is worth depends on the field: that of "event" is kept, that of "data" is
 * handed out or held, all others are passed over without being kept.
 *
 * Data that come before the name of their event are held until it is known: a short way of writing
 * that the standard allows and no server uses. */
#include "client/sse.h"

#include <assert.h>

enum line_state {
    LINE_NAME,  /* in the name of a field, perhaps before its first byte */
    LINE_SPACE, /* behind the colon: one space does not count */
    LINE_EVENT, /* in the value of "event" */
    LINE_DATA,  /* in the value of "data" */
    LINE_OTHER, /* in a comment or the value of any other field */
};

static const char byte_order_mark[] = "\xef\xbb\xbf";

void sse_parser_init(struct sse_parser *p)
{
    *p = (struct sse_parser){.state = LINE_NAME};
    buf_init(&p->held, SSE_HELD_BYTES_MAX);
}

void sse_parser_finish(struct sse_parser *p)
{
    buf_finish(&p->held);
}

static bool is_end(char c)
{
    return c == '\n' || c == '\r';
}

static struct slice name_of(const struct sse_parser *p)
{
    return (struct slice){p->name, p->name_len};
}

/* A part of a data line's value, or the LF between two lines. 0, or SSE_TOKEN_DATA. */
static int give(struct sse_parser *p, struct slice part, struct slice *ret_bytes,
                struct errmsg *msg)
{
    if (part.len == 0 || p->event == SSE_EVENT_OTHER) {
        return 0;
    }
    if (p->event == SSE_EVENT_DATA) {
        p->given_data = true;
        *ret_bytes = part;
        return SSE_TOKEN_DATA;
    }
    if (part.len > SSE_HELD_BYTES_MAX - p->held.len) {
        return err_set(msg, ERR_TOOBIG, "a control event has more than %d bytes",
                       SSE_HELD_BYTES_MAX);
    }
    buf_append(&p->held, part);
    return p->held.failed ? ERR_NOMEM : 0;
}

/* A line with a data field begins: behind the first one, lines are joined by LF. */
static int begin_data(struct sse_parser *p, struct slice *ret_bytes, struct errmsg *msg)
{
    bool first = !p->has_data;

    p->has_data = true;
    return first ? 0 : give(p, SLICE("\n"), ret_bytes, msg);
}

/* The event is named; the last name counts. What was held of a data event is handed out. */
static int end_event_line(struct sse_parser *p, struct slice *ret_bytes, struct errmsg *msg)
{
    struct slice value = {p->value, p->value_len};
    enum sse_event event = SSE_EVENT_OTHER;

    if (p->value_len <= sizeof(p->value)) {
        event = slice_equal(value, SLICE("data"))      ? SSE_EVENT_DATA
                : slice_equal(value, SLICE("control")) ? SSE_EVENT_CONTROL
                                                       : SSE_EVENT_OTHER;
    }
    p->value_len = 0;
    if (p->given_data && event != SSE_EVENT_DATA) {
        return err_set(msg, ERR_INVALID, "a data event changes its name behind its data");
    }
    p->event = event;
    if (event == SSE_EVENT_DATA && p->held.len > 0) {
        p->given_data = true;
        p->held_out = true;
        *ret_bytes = buf_slice(&p->held);
        return SSE_TOKEN_DATA;
    }
    return 0;
}

/* An empty line: the event is whole, if there is one. */
static int end_event(struct sse_parser *p, struct slice *ret_bytes)
{
    enum sse_event event = p->has_data ? p->event : SSE_EVENT_NONE;

    p->event = SSE_EVENT_NONE;
    p->has_data = false;
    p->given_data = false;
    if (event == SSE_EVENT_CONTROL) {
        p->held_out = true;
        *ret_bytes = buf_slice(&p->held);
        return SSE_TOKEN_CONTROL;
    }
    buf_clear(&p->held);
    return event == SSE_EVENT_DATA ? SSE_TOKEN_DATA_END : 0;
}

/* A line ends in whatever state it is. */
static int end_line(struct sse_parser *p, struct slice *ret_bytes, struct errmsg *msg)
{
    int state = p->state;
    size_t name_len = p->name_len;
    bool is_event = slice_equal(name_of(p), SLICE("event"));
    bool is_data = slice_equal(name_of(p), SLICE("data"));

    p->state = LINE_NAME;
    p->name_len = 0;
    if (state == LINE_NAME && name_len == 0) {
        return end_event(p, ret_bytes);
    }
    if (is_event) {
        return end_event_line(p, ret_bytes, msg);
    }
    /* A field without a colon has the empty value. */
    return state == LINE_NAME && is_data ? begin_data(p, ret_bytes, msg) : 0;
}

/* Letters, digits and the two that names are written with. */
static bool is_name_byte(char c)
{
    char small = (char)(c | 0x20);

    return (small >= 'a' && small <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* One byte of a field's name, or the colon behind it. */
static int take_name(struct sse_parser *p, char c, struct slice *ret_bytes, struct errmsg *msg)
{
    if (c != ':') {
        if (!is_name_byte(c) || p->name_len == sizeof(p->name)) {
            return err_set(msg, ERR_INVALID, "no server-sent events: a line begins with no field");
        }
        p->name[p->name_len++] = c;
        return 0;
    }
    /* Without a name it is a comment. */
    p->state = p->name_len == 0 ? LINE_OTHER : LINE_SPACE;
    return slice_equal(name_of(p), SLICE("data")) ? begin_data(p, ret_bytes, msg) : 0;
}

/* Behind the colon; takes a space. */
static void take_space(struct sse_parser *p, struct slice *rest)
{
    if (*rest->ptr == ' ') {
        rest->ptr++;
        rest->len--;
    }
    p->state = slice_equal(name_of(p), SLICE("data"))    ? LINE_DATA
               : slice_equal(name_of(p), SLICE("event")) ? LINE_EVENT
                                                         : LINE_OTHER;
}

/* The bytes up to the end of the line or of *rest. */
static struct slice take_run(struct slice *rest)
{
    const char *feed = memchr(rest->ptr, '\n', rest->len);
    size_t len = feed == NULL ? rest->len : (size_t)(feed - rest->ptr);
    const char *carriage = memchr(rest->ptr, '\r', len);
    struct slice run = {rest->ptr, carriage == NULL ? len : (size_t)(carriage - rest->ptr)};

    rest->ptr += run.len;
    rest->len -= run.len;
    return run;
}

/* Keeps what fits of the name; its whole length tells whether that is all of it. */
static void keep_event_name(struct sse_parser *p, struct slice part)
{
    size_t room = p->value_len < sizeof(p->value) ? sizeof(p->value) - p->value_len : 0;
    size_t len = part.len < room ? part.len : room;

    if (len > 0) {
        memcpy(p->value + p->value_len, part.ptr, len);
    }
    p->value_len += part.len;
}

/* A byte order mark before everything is passed over. 1: `c` belongs to it; half of one is
 * ERR_INVALID. */
static int take_mark(struct sse_parser *p, char c, struct errmsg *msg)
{
    if (p->mark == 3) {
        return 0;
    }
    if (c == byte_order_mark[p->mark]) {
        p->mark++;
        return 1;
    }
    if (p->mark > 0) {
        return err_set(msg, ERR_INVALID, "no server-sent events: half a byte order mark");
    }
    p->mark = 3;
    return 0;
}

/* One byte, or the run of a value, at a place that is not the end of a line. */
static int take_part(struct sse_parser *p, struct slice *rest, struct slice *ret_bytes,
                     struct errmsg *msg)
{
    struct slice run;

    switch (p->state) {
    case LINE_NAME:
        run = (struct slice){rest->ptr++, 1};
        rest->len--;
        return take_name(p, *run.ptr, ret_bytes, msg);
    case LINE_SPACE:
        take_space(p, rest);
        return 0;
    case LINE_EVENT:
        keep_event_name(p, take_run(rest));
        return 0;
    case LINE_DATA:
        return give(p, take_run(rest), ret_bytes, msg);
    case LINE_OTHER:
        (void)take_run(rest); /* what nobody wants to know */
        return 0;
    default:
        assert(false); /* no other state */
        return 0;
    }
}

int sse_parser_take(struct sse_parser *p, struct slice *rest, struct slice *ret_bytes,
                    struct errmsg *msg)
{
    if (p->held_out) {
        buf_clear(&p->held);
        p->held_out = false;
    }
    while (rest->len > 0) {
        char c = *rest->ptr;
        int rc = p->after_cr && c == '\n' ? 1 : take_mark(p, c, msg);

        p->after_cr = false;
        if (rc < 0) {
            return rc;
        }
        if (rc == 1) {
            rest->ptr++;
            rest->len--;
            rc = 0;
        } else if (is_end(c)) {
            p->after_cr = c == '\r';
            rest->ptr++;
            rest->len--;
            rc = end_line(p, ret_bytes, msg);
        } else {
            rc = take_part(p, rest, ret_bytes, msg);
        }
        if (rc != 0) {
            return rc;
        }
    }
    return SSE_TOKEN_MORE;
}

/* The value of a character, or -1. */
static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* A group of four characters is whole; returns its bytes, or ERR_INVALID. */
static int end_group(struct sse_base64 *d, char *out)
{
    unsigned len = 3 - d->pads;

    /* Bits that belong to no byte are zero: one text for each run of bytes. */
    if ((d->bits & ((1u << (8 * d->pads)) - 1)) != 0) {
        return ERR_INVALID;
    }
    for (unsigned i = 0; i < len; i++) {
        out[i] = (char)(d->bits >> (16 - 8 * i) & 0xff);
    }
    *d = (struct sse_base64){.ended = d->ended};
    return (int)len;
}

int sse_base64_take(struct sse_base64 *d, struct slice text, char *out, size_t *ret_len,
                    struct errmsg *msg)
{
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        int value = base64_value(c);
        int rc = 0;

        if (is_end(c)) {
            continue;
        }
        if (c == '=' && (d->pads > 0 || !d->ended) && d->count >= 2) {
            d->ended = true;
            d->pads++;
            value = 0;
        } else if (d->ended) {
            value = -1;
        }
        if (value >= 0) {
            d->bits = d->bits << 6 | (uint32_t)value;
            d->count++;
            rc = d->count == 4 ? end_group(d, out + len) : 0;
        }
        if (value < 0 || rc < 0) {
            return err_set(msg, ERR_INVALID, "a data event is not valid base64 at byte %zu", i);
        }
        len += (size_t)rc;
    }
    *ret_len = len;
    return 0;
}
