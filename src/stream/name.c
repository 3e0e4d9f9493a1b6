/* Decodes a path in one pass and checks what came out of it in a second: segments and UTF-8 are
 * judged after decoding, so that an escape cannot smuggle what plain text may not say. */
#include "stream/name.h"

#include "base/utf8.h"

#define RESERVED "__ds"

static const char digits[] = "0123456789ABCDEF";

bool name_is_stream_path(struct slice path)
{
    return slice_starts_with(path, SLICE(NAME_ROOT));
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte that the escape at `at` stands for, or below 0 when it is broken. */
static int escaped_byte(struct slice raw, size_t at)
{
    if (raw.len - at < 3) {
        return -1;
    }
    int high = hex_value(raw.ptr[at + 1]);
    int low = hex_value(raw.ptr[at + 2]);

    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* The bytes that `byte`, written as an escape, becomes in a name: itself, or the escape again. */
static size_t put_escaped(char out[static 3], unsigned char byte)
{
    if (byte != '/' && byte != '%') {
        out[0] = (char)byte;
        return 1;
    }
    out[0] = '%';
    out[1] = digits[byte >> 4];
    out[2] = digits[byte & 15];
    return 3;
}

static int too_long(struct errmsg *msg)
{
    return err_set(msg, ERR_TOOBIG, "a stream name has at most %u bytes after percent-decoding",
                   STREAM_NAME_BYTES_MAX);
}

static int decode(struct slice raw, char *out, size_t *ret_len, struct errmsg *msg)
{
    size_t len = 0;
    bool over = false;

    for (size_t i = 0; i < raw.len;) {
        char piece[3] = {raw.ptr[i], 0, 0};
        size_t count = 1;

        if (raw.ptr[i] == '%') {
            int byte = escaped_byte(raw, i);

            if (byte < 0) {
                return err_set(msg, ERR_INVALID,
                               "a '%%' in a stream name must be followed by two hex digits");
            }
            count = put_escaped(piece, (unsigned char)byte);
            i += 3;
        } else {
            i++;
        }
        if ((unsigned char)piece[0] < 0x20 || piece[0] == 0x7f) {
            return err_set(msg, ERR_INVALID, "a stream name may not hold control characters");
        }
        /* A name that is both too long and malformed is told what is malformed. */
        over = over || len + count > STREAM_NAME_BYTES_MAX;
        if (!over) {
            memcpy(out + len, piece, count);
            len += count;
        }
    }
    *ret_len = len;
    return over ? too_long(msg) : 0;
}

static bool is_dots(struct slice segment)
{
    return slice_equal(segment, SLICE(".")) || slice_equal(segment, SLICE(".."));
}

static int check(struct slice name, struct errmsg *msg)
{
    struct slice rest = name;
    struct slice segment;
    bool first = true;

    if (!utf8_valid(name)) {
        return err_set(msg, ERR_INVALID,
                       "a stream name must be valid UTF-8 after percent-decoding");
    }
    while (slice_split(&rest, '/', &segment)) {
        if (is_dots(segment)) {
            return err_set(msg, ERR_INVALID,
                           "a stream name may not have the segments \".\" and \"..\"");
        }
        if (first && slice_equal(segment, SLICE(RESERVED))) {
            return err_set(msg, ERR_NOTFOUND,
                           "names that begin with \"" RESERVED "/\" are reserved by the protocol");
        }
        first = false;
    }
    return 0;
}

int name_parse(struct slice raw, char out[static STREAM_NAME_BYTES_MAX], size_t *ret_len,
               struct errmsg *msg)
{
    size_t len = 0;

    if (raw.len == 0) {
        return err_set(msg, ERR_NOTFOUND, "a stream's name must follow " NAME_ROOT);
    }
    int code = decode(raw, out, &len, msg);

    if (code != 0) {
        return code;
    }
    code = check((struct slice){out, len}, msg);
    if (code == 0) {
        *ret_len = len;
    }
    return code;
}

long name_unescape(struct slice raw, char *out, size_t cap)
{
    size_t len = 0;

    for (size_t i = 0; i < raw.len; len++) {
        int byte = raw.ptr[i] == '%' ? escaped_byte(raw, i) : (unsigned char)raw.ptr[i];

        if (byte < 0) {
            return ERR_INVALID;
        }
        if (len == cap) {
            return ERR_TOOBIG;
        }
        out[len] = (char)byte;
        i += raw.ptr[i] == '%' ? 3 : 1;
    }
    return (long)len;
}

/* Bytes that may stand in a path as they are (RFC 3986 section 3.3). A '%' of a name begins one
 * of the two escapes that a name keeps. */
static bool is_plain(unsigned char c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) {
        return true;
    }
    return c != 0 && c < 0x80 && memchr("-._~!$&'()*+,;=:@/%", c, 19) != NULL;
}

void name_append_escaped(struct buf *out, struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.ptr[i];

        if (is_plain(c)) {
            buf_append_char(out, (char)c);
        } else {
            buf_append_char(out, '%');
            buf_append_char(out, digits[c >> 4]);
            buf_append_char(out, digits[c & 15]);
        }
    }
}
