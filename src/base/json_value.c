/* Every question goes again through the slice it is asked about: twice the work of a tree for a
 * value that is read once, and none of its memory. What has been scanned need not be judged again:
 * a walk looks for nothing but where values end. */
#include "base/json_value.h"

#include "base/json.h"
#include "base/utf8.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* A character decoded from an escape, and how many bytes of text it took. */
struct escape {
    uint32_t character; /* LONE_SURROGATE when there is none */
    size_t len;
};

#define LONE_SURROGATE UINT32_MAX
#define UTF8_BYTES     4
#define UNIT_BYTES     6 /* of "\uXXXX" */

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static struct slice skip(struct slice text, size_t count)
{
    return (struct slice){text.ptr + count, text.len - count};
}

static struct slice skip_space(struct slice text)
{
    while (text.len > 0 && is_space(text.ptr[0])) {
        text = skip(text, 1);
    }
    return text;
}

int json_text_read(struct slice text, struct slice *ret_value, struct errmsg *msg)
{
    struct slice value;
    long used = json_scan_value(text, &value, msg);

    if (used < 0) {
        return (int)used;
    }
    if (skip_space(skip(text, (size_t)used)).len > 0) {
        return err_set(msg, ERR_INVALID, "not valid JSON at byte %ld: nothing may follow the value",
                       used);
    }
    *ret_value = value;
    return 0;
}

enum json_kind json_kind(struct slice value)
{
    switch (value.len > 0 ? value.ptr[0] : 'n') {
    case 'n':
        return JSON_NULL;
    case 'f':
        return JSON_FALSE;
    case 't':
        return JSON_TRUE;
    case '"':
        return JSON_STRING;
    case '[':
        return JSON_ARRAY;
    case '{':
        return JSON_OBJECT;
    default:
        return JSON_NUMBER;
    }
}

const char *json_kind_text(enum json_kind kind)
{
    static const char *const texts[] = {
        [JSON_NULL] = "null",        [JSON_FALSE] = "false",     [JSON_TRUE] = "true",
        [JSON_NUMBER] = "a number",  [JSON_STRING] = "a string", [JSON_ARRAY] = "an array",
        [JSON_OBJECT] = "an object",
    };

    assert((size_t)kind < ARRAY_COUNT(texts));
    return texts[kind];
}

void json_walk_begin(struct json_walk *w, struct slice value)
{
    enum json_kind kind = json_kind(value);

    *w = (struct json_walk){{"", 0}};
    if ((kind == JSON_ARRAY || kind == JSON_OBJECT) && value.len >= 2) {
        w->rest = (struct slice){value.ptr + 1, value.len - 2};
    }
}

/* Behind the quote that ends a string, from behind the one that opens it; `end` when none does. */
static const char *string_end(const char *at, const char *end)
{
    for (;;) {
        const char *quote = memchr(at, '"', (size_t)(end - at));
        const char *escapes = quote;

        if (quote == NULL) {
            return end;
        }
        while (escapes > at && escapes[-1] == '\\') {
            escapes--;
        }
        if ((quote - escapes) % 2 == 0) {
            return quote + 1;
        }
        at = quote + 1;
    }
}

/* Behind an array or object, which begins at `at`. */
static const char *container_end(const char *at, const char *end)
{
    size_t depth = 0;

    do {
        char c = *at++;

        if (c == '"') {
            at = string_end(at, end);
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    } while (depth > 0 && at < end);
    return at;
}

/* Behind a number or a word. */
static const char *word_end(const char *at, const char *end)
{
    while (at < end && *at != ',' && *at != ']' && *at != '}' && !is_space(*at)) {
        at++;
    }
    return at;
}

static const char *value_end(const char *at, const char *end)
{
    switch (*at) {
    case '"':
        return string_end(at + 1, end);
    case '{':
    case '[':
        return container_end(at, end);
    default:
        return word_end(at, end);
    }
}

/* The value that the rest begins with, past a separator. */
static bool take_value(struct json_walk *w, char separator, struct slice *ret_value)
{
    struct slice rest = skip_space(w->rest);

    if (rest.len > 0 && rest.ptr[0] == separator) {
        rest = skip_space(skip(rest, 1));
    }
    size_t len = rest.len > 0 ? (size_t)(value_end(rest.ptr, rest.ptr + rest.len) - rest.ptr) : 0;

    w->rest = len == 0 ? SLICE("") : skip(rest, len);
    *ret_value = len == 0 ? *ret_value : (struct slice){rest.ptr, len};
    return len > 0;
}

bool json_walk_element(struct json_walk *w, struct slice *ret_value)
{
    return take_value(w, ',', ret_value);
}

bool json_walk_member(struct json_walk *w, struct slice *ret_name, struct slice *ret_value)
{
    return take_value(w, ',', ret_name) && json_kind(*ret_name) == JSON_STRING &&
           take_value(w, ':', ret_value);
}

int json_object_find(struct slice object, struct slice name, struct slice *ret_value,
                     struct errmsg *msg)
{
    struct json_walk w;
    struct slice member;
    struct slice value;
    struct slice found;
    int count = 0;

    if (json_kind(object) != JSON_OBJECT) {
        return 0;
    }
    json_walk_begin(&w, object);
    while (json_walk_member(&w, &member, &value)) {
        if (!json_string_equal(member, name)) {
            continue;
        }
        if (count++ > 0) {
            return err_set(msg, ERR_INVALID, "\"%.*s\" may be given once only", (int)name.len,
                           name.ptr);
        }
        found = value;
    }
    if (count > 0) {
        *ret_value = found;
    }
    return count;
}

/* What stands between the quotes. */
static struct slice inside(struct slice value)
{
    return value.len < 2 ? SLICE("") : (struct slice){value.ptr + 1, value.len - 2};
}

static uint32_t hex_value(char c)
{
    return (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10) & 15;
}

/* The four digits of "\uXXXX" that `text` begins with, or LONE_SURROGATE when it begins otherwise.
 */
static uint32_t unit_at(struct slice text)
{
    if (text.len < 6 || text.ptr[0] != '\\' || text.ptr[1] != 'u') {
        return LONE_SURROGATE;
    }
    return hex_value(text.ptr[2]) << 12 | hex_value(text.ptr[3]) << 8 |
           hex_value(text.ptr[4]) << 4 | hex_value(text.ptr[5]);
}

static struct escape decode_unit(struct slice text)
{
    uint32_t high = unit_at(text);

    if (high < 0xd800 || (high > 0xdfff && high <= 0xffff)) {
        return (struct escape){high, 6};
    }
    uint32_t low = high < 0xdc00 ? unit_at(skip(text, 6)) : LONE_SURROGATE;

    if (low < 0xdc00 || low > 0xdfff) {
        return (struct escape){LONE_SURROGATE, 0};
    }
    return (struct escape){0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00), 12};
}

/* The escape that `text` begins with, at a backslash. */
static struct escape decode_escape(struct slice text)
{
    static const char named[] = "b\bf\fn\nr\rt\t";

    if (text.len < 2) {
        return (struct escape){LONE_SURROGATE, 0};
    }
    if (text.ptr[1] == 'u') {
        return decode_unit(text);
    }
    for (size_t i = 0; i + 1 < sizeof(named); i += 2) {
        if (named[i] == text.ptr[1]) {
            return (struct escape){(unsigned char)named[i + 1], 2};
        }
    }
    return (struct escape){(unsigned char)text.ptr[1], 2};
}

static size_t encode_utf8(char out[static UTF8_BYTES], uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* The next decoded bytes of what is left of a string: a run without escapes, borrowed, or one
 * character in `bytes`. False at the end, and at a lone surrogate, which leaves something. */
static bool next_piece(struct slice *rest, char bytes[static UTF8_BYTES], struct slice *ret_piece)
{
    if (rest->len == 0) {
        return false;
    }
    if (rest->ptr[0] != '\\') {
        const char *end = memchr(rest->ptr, '\\', rest->len);
        size_t len = end != NULL ? (size_t)(end - rest->ptr) : rest->len;

        *ret_piece = (struct slice){rest->ptr, len};
        *rest = skip(*rest, len);
        return true;
    }
    struct escape escape = decode_escape(*rest);

    if (escape.character == LONE_SURROGATE) {
        return false;
    }
    *ret_piece = (struct slice){bytes, encode_utf8(bytes, escape.character)};
    *rest = skip(*rest, escape.len);
    return true;
}

bool json_string_equal(struct slice value, struct slice text)
{
    struct slice rest = inside(value);
    struct slice piece;
    char bytes[UTF8_BYTES];

    if (rest.len < text.len) {
        return false; /* nothing becomes longer by being decoded */
    }
    while (next_piece(&rest, bytes, &piece)) {
        if (!slice_starts_with(text, piece)) {
            return false;
        }
        text = skip(text, piece.len);
    }
    return rest.len == 0 && text.len == 0;
}

int json_string_decode(struct slice value, struct buf *out)
{
    struct slice rest = inside(value);
    struct slice piece;
    char bytes[UTF8_BYTES];

    while (next_piece(&rest, bytes, &piece)) {
        buf_append(out, piece);
    }
    if (rest.len > 0) {
        return ERR_INVALID;
    }
    return out->failed ? ERR_NOMEM : 0;
}

void json_string_decode_lossy(struct slice value, struct buf *out)
{
    struct slice rest = inside(value);
    struct slice piece;
    char bytes[UTF8_BYTES];

    while (rest.len > 0) {
        if (next_piece(&rest, bytes, &piece)) {
            buf_append(out, piece);
            continue;
        }
        buf_append(out, SLICE("\xef\xbf\xbd"));
        rest = skip(rest, rest.len < UNIT_BYTES ? rest.len : UNIT_BYTES);
    }
}

int json_string_len(struct slice value, size_t *ret_len)
{
    struct slice rest = inside(value);
    struct slice piece;
    char bytes[UTF8_BYTES];
    size_t len = 0;

    while (next_piece(&rest, bytes, &piece)) {
        len += piece.len;
    }
    if (rest.len > 0) {
        return ERR_INVALID;
    }
    *ret_len = len;
    return 0;
}

/* A number as mantissa x 10^exponent, the mantissa without zeros at its end. */
struct decimal {
    uint64_t mantissa;
    int64_t exponent;
    uint64_t zeros; /* read and not in either yet */
    bool over;      /* the mantissa does not fit */
};

static void add_digit(struct decimal *d, unsigned digit)
{
    if (digit == 0) {
        d->zeros += d->mantissa > 0;
        return;
    }
    for (; d->zeros > 0 && !d->over; d->zeros--) {
        d->over = __builtin_mul_overflow(d->mantissa, 10, &d->mantissa);
    }
    d->over = d->over || __builtin_mul_overflow(d->mantissa, 10, &d->mantissa) ||
              __builtin_add_overflow(d->mantissa, digit, &d->mantissa);
}

static struct slice read_digits(struct slice text, struct decimal *d, int64_t *ret_count)
{
    *ret_count = 0;
    while (text.len > 0 && text.ptr[0] >= '0' && text.ptr[0] <= '9') {
        add_digit(d, (unsigned)(text.ptr[0] - '0'));
        text = skip(text, 1);
        (*ret_count)++;
    }
    return text;
}

/* What follows the "e"; an exponent that no number of ours can have is cut off. */
static int64_t read_exponent(struct slice text)
{
    bool negative = text.len > 0 && text.ptr[0] == '-';
    int64_t exponent = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] >= '0' && text.ptr[i] <= '9' && exponent < INT64_MAX / 100) {
            exponent = exponent * 10 + (text.ptr[i] - '0');
        }
    }
    return negative ? -exponent : exponent;
}

bool json_number_u64(struct slice value, uint64_t max, uint64_t *ret_number)
{
    struct decimal d = {0};
    bool negative = value.len > 0 && value.ptr[0] == '-';
    int64_t count;

    if (json_kind(value) != JSON_NUMBER) {
        return false;
    }
    struct slice rest = read_digits(negative ? skip(value, 1) : value, &d, &count);

    if (rest.len > 0 && rest.ptr[0] == '.') {
        rest = read_digits(skip(rest, 1), &d, &count);
        d.exponent = -count;
    }
    if (rest.len > 0) {
        d.exponent += read_exponent(skip(rest, 1));
    }
    d.exponent += (int64_t)d.zeros;
    if (d.mantissa == 0 && !d.over) {
        *ret_number = 0;
        return true;
    }
    if (negative || d.over || d.exponent < 0) {
        return false;
    }
    for (; d.exponent > 0; d.exponent--) {
        if (__builtin_mul_overflow(d.mantissa, 10, &d.mantissa)) {
            return false;
        }
    }
    if (d.mantissa > max) {
        return false;
    }
    *ret_number = d.mantissa;
    return true;
}

bool json_number_double(struct slice value, double *ret_number)
{
    char text[JSON_DOUBLE_BYTES_MAX + 1];
    char *end;

    if (json_kind(value) != JSON_NUMBER || value.len > JSON_DOUBLE_BYTES_MAX) {
        return false;
    }
    memcpy(text, value.ptr, value.len);
    text[value.len] = '\0';
    double number = strtod(text, &end);

    /* Where somebody has set a locale whose numbers have a comma, the end is not reached. */
    if (end != text + value.len || !isfinite(number)) {
        return false;
    }
    *ret_number = number;
    return true;
}

unsigned json_depth(struct slice value)
{
    const char *at = value.ptr;
    const char *end = value.len > 0 ? at + value.len : at; /* nothing may be NULL */
    unsigned depth = 0;
    unsigned deepest = 0;

    while (at < end) {
        char c = *at++;

        if (c == '"') {
            at = string_end(at, end);
        } else if (c == '[' || c == '{') {
            depth++;
            deepest = depth > deepest ? depth : deepest;
        } else if (c == ']' || c == '}') {
            depth -= depth > 0;
        }
    }
    return deepest;
}
