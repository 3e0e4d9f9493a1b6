/* The scanner goes once from left to right. Open arrays and objects are bits on a stack of fixed
 * size, so a hostile text can neither exhaust the call stack nor make it allocate. Inside strings,
 * where most bytes are, eight bytes are looked at in one step. */
#include "base/json.h"

#include "base/bytes.h"
#include "base/limits.h"
#include "base/utf8.h"

#include <assert.h>

#define EACH_BYTE(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Where the scan ends and why it failed. */
struct scan {
    const char *end;    /* one past the text */
    const char *where;  /* the byte that is wrong; set with reason */
    const char *reason; /* static text; NULL while all is well */
};

/* The open arrays (bit 0) and objects (bit 1) around the scanner. */
struct nest {
    unsigned depth;                               /* bits in use */
    unsigned depth_max;                           /* at most JSON_DEPTH_MAX */
    uint64_t objects[(JSON_DEPTH_MAX + 63) / 64]; /* one bit a level; those above depth are stale */
};

static const char *fail(struct scan *s, const char *where, const char *reason)
{
    s->where = where;
    s->reason = reason;
    return NULL;
}

static const char *skip_space(const struct scan *s, const char *at)
{
    /* The first comparison answers for compact text, which is most of it. */
    while (at < s->end && (unsigned char)*at <= ' ' &&
           (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) {
        at++;
    }
    return at;
}

/* The first byte from `at` on that a string cannot simply hold or that needs a look: a quote, a
 * backslash, a control character, a byte beyond ASCII. `end` when there is none.
 *
 * Taking 1 from a byte sets its top bit when the byte was 0 (or is beyond ASCII, which is to be
 * found anyway), and borrows from the next byte only then: so the lowest top bit that is set is
 * exact. */
static const char *skip_plain(const char *at, const char *end)
{
    while (end - at >= 8) {
        uint64_t word = bytes_get_u64(at);
        uint64_t found = (word ^ EACH_BYTE('"')) - EACH_BYTE(1);

        found |= (word ^ EACH_BYTE('\\')) - EACH_BYTE(1);
        found |= word - EACH_BYTE(0x20);
        found = (found | word) & EACH_BYTE(0x80);
        if (found != 0) {
            return at + __builtin_ctzll(found) / 8;
        }
        at += 8;
    }
    while (at < end && (unsigned char)*at >= 0x20 && (unsigned char)*at < 0x80 && *at != '"' &&
           *at != '\\') {
        at++;
    }
    return at;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    char small = (char)(c | 0x20);

    return is_digit(c) || (small >= 'a' && small <= 'f');
}

/* After a backslash: returns the byte after the escape. */
static const char *scan_escape(struct scan *s, const char *at)
{
    if (at == s->end) {
        return fail(s, at, "the text ends inside a string");
    }
    switch (*at) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        return at + 1;
    case 'u':
        for (int i = 1; i <= 4; i++) {
            if (s->end - at <= i || !is_hex(at[i])) {
                return fail(s, at, "\\u must be followed by four hexadecimal digits");
            }
        }
        return at + 5;
    default:
        return fail(s, at, "a backslash must be followed by one of \"\\/bfnrtu");
    }
}

/* After the opening quote: returns the byte after the closing one. */
static const char *scan_string(struct scan *s, const char *at)
{
    while (at != NULL) {
        size_t len;

        at = skip_plain(at, s->end);
        if (at == s->end) {
            return fail(s, at, "the text ends inside a string");
        }
        if (*at == '"') {
            return at + 1;
        }
        if (*at == '\\') {
            at = scan_escape(s, at + 1);
            continue;
        }
        if ((unsigned char)*at < 0x20) {
            return fail(s, at, "a control character in a string must be escaped");
        }
        len = utf8_multibyte_prefix((struct slice){at, (size_t)(s->end - at)});
        at = len > 0 ? at + len : fail(s, at, "a string must be valid UTF-8");
    }
    return NULL;
}

/* One digit or more. */
static const char *scan_digits(struct scan *s, const char *at)
{
    if (at == s->end || !is_digit(*at)) {
        return fail(s, at, "a digit is missing in a number");
    }
    do {
        at++;
    } while (at < s->end && is_digit(*at));
    return at;
}

/* A number of any size: it is kept as text and never converted. */
static const char *scan_number(struct scan *s, const char *at)
{
    if (*at == '-') {
        at++;
    }
    if (at < s->end && *at == '0') {
        at++;
    } else {
        at = scan_digits(s, at);
    }
    if (at != NULL && at < s->end && *at == '.') {
        at = scan_digits(s, at + 1);
    }
    if (at != NULL && at < s->end && (*at | 0x20) == 'e') {
        at++;
        if (at < s->end && (*at == '+' || *at == '-')) {
            at++;
        }
        at = scan_digits(s, at);
    }
    return at;
}

static const char *scan_word(struct scan *s, const char *at, struct slice word)
{
    if ((size_t)(s->end - at) < word.len || memcmp(at, word.ptr, word.len) != 0) {
        return fail(s, at, "expected true, false or null");
    }
    return at + word.len;
}

/* A value that is neither array nor object; `at` is before the end. */
static const char *scan_scalar(struct scan *s, const char *at)
{
    switch (*at) {
    case '"':
        return scan_string(s, at + 1);
    case 't':
        return scan_word(s, at, SLICE("true"));
    case 'f':
        return scan_word(s, at, SLICE("false"));
    case 'n':
        return scan_word(s, at, SLICE("null"));
    case '\xef':
        return fail(s, at, "expected a value; a byte order mark is not allowed");
    default:
        if (*at == '-' || is_digit(*at)) {
            return scan_number(s, at);
        }
        return fail(s, at, "expected a value");
    }
}

/* A member's name and its colon. */
static const char *scan_key(struct scan *s, const char *at)
{
    at = skip_space(s, at);
    if (at == s->end || *at != '"') {
        return fail(s, at, "expected a member name in double quotes");
    }
    at = scan_string(s, at + 1);
    if (at == NULL) {
        return NULL;
    }
    at = skip_space(s, at);
    if (at == s->end || *at != ':') {
        return fail(s, at, "expected ':' after a member name");
    }
    return at + 1;
}

static bool in_object(const struct nest *n)
{
    return (n->objects[(n->depth - 1) / 64] >> ((n->depth - 1) % 64) & 1) != 0;
}

static bool push(struct nest *n, bool object)
{
    uint64_t bit = UINT64_C(1) << (n->depth % 64);
    uint64_t *word = &n->objects[n->depth / 64];

    if (n->depth == n->depth_max) {
        return false;
    }
    *word = object ? *word | bit : *word & ~bit;
    n->depth++;
    return true;
}

/* At an opening bracket: goes in, and past the first member's name. An empty one is left again,
 * which ret_empty tells. */
static const char *scan_open(struct scan *s, struct nest *n, const char *at, bool *ret_empty)
{
    bool object = *at == '{';

    if (!push(n, object)) {
        return fail(s, at, "arrays and objects are nested too deeply");
    }
    at = skip_space(s, at + 1);
    *ret_empty = at < s->end && *at == (object ? '}' : ']');
    if (*ret_empty) {
        n->depth--;
        return at + 1;
    }
    return object ? scan_key(s, at) : at;
}

/* After a value: leaves what ends here and, unless the outermost value is complete, goes past a
 * comma and a member's name to the next value. */
static const char *scan_after_value(struct scan *s, struct nest *n, const char *at)
{
    while (n->depth > 0) {
        bool object = in_object(n);

        at = skip_space(s, at);
        if (at == s->end) {
            return fail(
                s, at, object ? "the text ends inside an object" : "the text ends inside an array");
        }
        if (*at == ',') {
            return object ? scan_key(s, at + 1) : at + 1;
        }
        if (*at != (object ? '}' : ']')) {
            return fail(s, at, object ? "expected ',' or '}'" : "expected ',' or ']'");
        }
        n->depth--;
        at++;
    }
    return at;
}

/* One value at `at`, where white space has been skipped; returns the byte after it, or NULL. */
static const char *scan_value(struct scan *s, const char *at, unsigned depth_max)
{
    struct nest nest;

    nest.depth = 0;
    nest.depth_max = depth_max;
    do {
        bool whole = true;

        at = skip_space(s, at);
        if (at == s->end) {
            return fail(s, at, "the text ends where a value is expected");
        }
        if (*at == '{' || *at == '[') {
            at = scan_open(s, &nest, at, &whole);
        } else {
            at = scan_scalar(s, at);
        }
        if (at != NULL && whole) {
            at = scan_after_value(s, &nest, at);
        }
    } while (at != NULL && nest.depth > 0);
    return at;
}

/* Tells the reason with the position from `start`, counted in bytes from 0. */
static int report(const struct scan *s, const char *start, struct errmsg *msg)
{
    assert(s->reason != NULL);
    return err_set(msg, ERR_INVALID, "not valid JSON at byte %zu: %s", (size_t)(s->where - start),
                   s->reason);
}

/* The empty text as a pointer one may add to. */
static struct slice not_null(struct slice text)
{
    return text.len == 0 ? SLICE("") : text;
}

long json_scan_value(struct slice text, struct slice *ret_value, struct errmsg *msg)
{
    struct slice all = not_null(text);
    struct scan s = {.end = all.ptr + all.len};
    const char *start = skip_space(&s, all.ptr);
    const char *at = scan_value(&s, start, JSON_DEPTH_MAX);

    if (at == NULL) {
        return report(&s, all.ptr, msg);
    }
    *ret_value = (struct slice){start, (size_t)(at - start)};
    return (long)(at - all.ptr);
}

/* A walk over the messages of one text. */
struct walk {
    struct scan scan;
    json_message_fn each; /* the caller's */
    void *context;        /* for each */
    int result;           /* of each; other than 0 ends the walk */
};

/* One message at `at`; returns the byte after it, or NULL when the walk is over. */
static const char *walk_message(struct walk *w, const char *at, unsigned depth_max)
{
    const char *start = skip_space(&w->scan, at);
    const char *end = scan_value(&w->scan, start, depth_max);

    if (end == NULL) {
        return NULL;
    }
    w->result = w->each(w->context, (struct slice){start, (size_t)(end - start)});
    return w->result == 0 ? end : NULL;
}

/* After the opening bracket of the outermost array; returns the byte after the closing one. */
static const char *walk_elements(struct walk *w, const char *at)
{
    at = skip_space(&w->scan, at);
    if (at < w->scan.end && *at == ']') {
        return at + 1;
    }
    for (;;) {
        at = walk_message(w, at, JSON_DEPTH_MAX - 1);
        if (at == NULL) {
            return NULL;
        }
        at = skip_space(&w->scan, at);
        if (at == w->scan.end) {
            return fail(&w->scan, at, "the text ends inside an array");
        }
        if (*at == ']') {
            return at + 1;
        }
        if (*at != ',') {
            return fail(&w->scan, at, "expected ',' or ']'");
        }
        at++;
    }
}

int json_each_message(struct slice text, json_message_fn each, void *context, struct errmsg *msg)
{
    struct slice all = not_null(text);
    struct walk w = {.scan.end = all.ptr + all.len, .each = each, .context = context};
    const char *at = skip_space(&w.scan, all.ptr);

    if (at < w.scan.end && *at == '[') {
        at = walk_elements(&w, at + 1);
    } else {
        at = walk_message(&w, at, JSON_DEPTH_MAX);
    }
    if (w.result != 0) {
        return w.result;
    }
    if (at != NULL) {
        at = skip_space(&w.scan, at);
        if (at == w.scan.end) {
            return 0;
        }
        (void)fail(&w.scan, at, "nothing may follow the value"); /* reported below */
    }
    return report(&w.scan, all.ptr, msg);
}

/* A control character, a quote or a backslash. */
static void append_escape(struct buf *out, char c)
{
    static const char named[] = "\bb\ff\nn\rr\tt\"\"\\\\";

    for (size_t i = 0; i + 1 < sizeof(named); i += 2) {
        if (named[i] == c) {
            buf_append_char(out, '\\');
            buf_append_char(out, named[i + 1]);
            return;
        }
    }
    buf_append_format(out, "\\u%04x", (unsigned)c);
}

void json_append_string(struct buf *out, struct slice s)
{
    const char *at = not_null(s).ptr;
    const char *end = at + s.len;

    buf_append_char(out, '"');
    while (at < end) {
        const char *plain_end = skip_plain(at, end);
        size_t len;

        buf_append(out, (struct slice){at, (size_t)(plain_end - at)});
        at = plain_end;
        if (at == end) {
            break;
        }
        if ((unsigned char)*at < 0x80) {
            append_escape(out, *at);
            at++;
            continue;
        }
        len = utf8_multibyte_prefix((struct slice){at, (size_t)(end - at)});
        if (len > 0) {
            buf_append(out, (struct slice){at, len});
            at += len;
        } else {
            buf_append(out, SLICE("\xef\xbf\xbd"));
            at++;
        }
    }
    buf_append_char(out, '"');
}
