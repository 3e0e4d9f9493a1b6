/* The happy path is SIZE, SIZE_FEED, DATA, DATA_RETURN, DATA_FEED, again SIZE, and after a size of
 * zero LINE, LINE_FEED, DONE. EXTENSION comes between SIZE and SIZE_FEED, trailer fields are NAME
 * and VALUE between LINE and LINE_FEED.
 *
 * Whatever another implementation might read differently is malformed: a bare CR or LF, white space
 * around a size, a sign, a prefix, a size that needs more than 60 bits. */
#include "http/chunk.h"

#include <assert.h>

#include "base/err.h"
#include "base/limits.h"

#define SIZE_DIGITS_MAX 15

enum state {
    STATE_SIZE,        /* in the digits */
    STATE_EXTENSION,   /* after ';' in a size line */
    STATE_SIZE_FEED,   /* the LF of a size line */
    STATE_DATA,        /* in the bytes of a chunk */
    STATE_DATA_RETURN, /* the CR after a chunk */
    STATE_DATA_FEED,   /* the LF after a chunk */
    STATE_LINE,        /* at the start of a trailer line */
    STATE_NAME,        /* in the name of a trailer field */
    STATE_VALUE,       /* in its value */
    STATE_VALUE_FEED,  /* the LF of a trailer line */
    STATE_LAST_FEED,   /* the LF of the empty line at the end */
    STATE_DONE,
};

void chunk_decoder_init(struct chunk_decoder *d)
{
    *d = (struct chunk_decoder){.state = STATE_SIZE};
}

/* The value of a hex digit, or -1. */
static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Text of an extension or a field value: no control character but tab. */
static bool is_text(char c)
{
    unsigned char u = (unsigned char)c;

    return (u >= 0x20 && u != 0x7f) || u == '\t';
}

/* tchar of RFC 9110 section 5.6.2. */
static bool is_name(char c)
{
    unsigned char u = (unsigned char)c;

    return u > 0x20 && u < 0x7f && memchr("\"(),/:;<=>?@[\\]{}", c, 17) == NULL;
}

/* A digit, or what ends the digits. */
static int step_size(struct chunk_decoder *d, char c)
{
    int value = hex_value(c);

    if (value >= 0) {
        if (d->digits == SIZE_DIGITS_MAX) {
            return ERR_INVALID;
        }
        d->digits++;
        d->left = d->left << 4 | (uint64_t)value;
        return STATE_SIZE;
    }
    if (d->digits == 0) {
        return ERR_INVALID;
    }
    return c == '\r' ? STATE_SIZE_FEED : c == ';' ? STATE_EXTENSION : ERR_INVALID;
}

/* The LF of a size line decides what follows. */
static int end_size_line(struct chunk_decoder *d)
{
    bool last = d->left == 0;

    d->digits = 0;
    d->line_bytes = 0;
    return last ? STATE_LINE : STATE_DATA;
}

/* Takes one byte that is no data; the next state, or an error. */
static int step(struct chunk_decoder *d, char c)
{
    switch (d->state) {
    case STATE_SIZE:
        return step_size(d, c);
    case STATE_EXTENSION:
        return c == '\r' ? STATE_SIZE_FEED : is_text(c) ? STATE_EXTENSION : ERR_INVALID;
    case STATE_SIZE_FEED:
        return c == '\n' ? end_size_line(d) : ERR_INVALID;
    case STATE_DATA_RETURN:
        return c == '\r' ? STATE_DATA_FEED : ERR_INVALID;
    case STATE_DATA_FEED:
        return c == '\n' ? STATE_SIZE : ERR_INVALID;
    case STATE_LINE:
        return c == '\r' ? STATE_LAST_FEED : is_name(c) ? STATE_NAME : ERR_INVALID;
    case STATE_NAME:
        return c == ':' ? STATE_VALUE : is_name(c) ? STATE_NAME : ERR_INVALID;
    case STATE_VALUE:
        return c == '\r' ? STATE_VALUE_FEED : is_text(c) ? STATE_VALUE : ERR_INVALID;
    case STATE_VALUE_FEED:
        return c == '\n' ? STATE_LINE : ERR_INVALID;
    case STATE_LAST_FEED:
        return c == '\n' ? STATE_DONE : ERR_INVALID;
    default:
        assert(d->state == STATE_SIZE);
        return ERR_INVALID;
    }
}

/* Whether one more byte is within the caps of lines and trailers. */
static bool count_byte(struct chunk_decoder *d)
{
    if (d->state == STATE_EXTENSION) {
        return ++d->line_bytes <= HTTP_CHUNK_LINE_BYTES_MAX;
    }
    if (d->state >= STATE_LINE) {
        return ++d->trailer_bytes <= HTTP_TRAILER_BYTES_MAX;
    }
    return true;
}

long chunk_decode(struct chunk_decoder *d, struct slice input, struct slice *ret_data,
                  bool *ret_done)
{
    size_t at = 0;

    assert(d->state >= STATE_SIZE && d->state <= STATE_DONE);
    *ret_data = (struct slice){NULL, 0};
    while (at < input.len && d->state != STATE_DATA && d->state != STATE_DONE) {
        int next;

        if (!count_byte(d)) {
            return ERR_TOOBIG;
        }
        next = step(d, input.ptr[at++]);
        if (next < 0) {
            return next;
        }
        d->state = next;
    }
    if (at < input.len && d->state == STATE_DATA) {
        size_t run = input.len - at < d->left ? input.len - at : (size_t)d->left;

        *ret_data = (struct slice){input.ptr + at, run};
        chunk_decoder_skip(d, run);
        at += run;
    }
    *ret_done = d->state == STATE_DONE;
    return (long)at;
}

uint64_t chunk_decoder_left(const struct chunk_decoder *d)
{
    return d->state == STATE_DATA ? d->left : 0;
}

void chunk_decoder_skip(struct chunk_decoder *d, uint64_t count)
{
    assert(d->state == STATE_DATA);
    assert(count <= d->left);
    d->left -= count;
    if (d->left == 0) {
        d->state = STATE_DATA_RETURN;
    }
}
