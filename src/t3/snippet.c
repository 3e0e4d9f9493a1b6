/* Characters are taken one by one, white space already as what it becomes, and a grapheme is
 * appended when the next one begins. */
#include "t3/snippet.h"

#include "base/limits.h"

#include <utf8proc.h>

struct snippet {
    struct slice rest;       /* of the text */
    bool begun;              /* a character that is no white space has been taken */
    utf8proc_int32_t held;   /* taken already, but a space comes first */
    struct slice held_bytes; /* empty: none is held */
};

static bool is_white(utf8proc_int32_t c)
{
    if (c < 0x80) {
        return c == ' ' || (c >= '\t' && c <= '\r');
    }
    utf8proc_category_t category = utf8proc_category(c);

    return c == 0x85 || category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
           category == UTF8PROC_CATEGORY_ZP;
}

/* The next character of the text as it stands; what is no UTF-8 ends it. */
static bool take(struct snippet *s, utf8proc_int32_t *ret_c, struct slice *ret_bytes)
{
    if (s->rest.len == 0) {
        return false;
    }
    if ((unsigned char)s->rest.ptr[0] < 0x80) {
        *ret_c = s->rest.ptr[0];
        *ret_bytes = (struct slice){s->rest.ptr, 1};
        s->rest = (struct slice){s->rest.ptr + 1, s->rest.len - 1};
        return true;
    }
    utf8proc_ssize_t len = utf8proc_iterate((const utf8proc_uint8_t *)s->rest.ptr,
                                            (utf8proc_ssize_t)s->rest.len, ret_c);

    if (len <= 0) {
        return false;
    }
    *ret_bytes = (struct slice){s->rest.ptr, (size_t)len};
    s->rest = (struct slice){s->rest.ptr + len, s->rest.len - (size_t)len};
    return true;
}

/* The next character of the one line. */
static bool next(struct snippet *s, utf8proc_int32_t *ret_c, struct slice *ret_bytes)
{
    bool gap = false;

    if (s->held_bytes.len > 0) {
        *ret_c = s->held;
        *ret_bytes = s->held_bytes;
        s->held_bytes.len = 0;
        return true;
    }
    while (take(s, ret_c, ret_bytes)) {
        if (is_white(*ret_c)) {
            gap = s->begun;
            continue;
        }
        if (gap) {
            s->held = *ret_c;
            s->held_bytes = *ret_bytes;
            *ret_c = ' ';
            *ret_bytes = SLICE(" ");
        }
        s->begun = true;
        return true;
    }
    return false;
}

/* Whether a grapheme ends between the two. It does between any two characters of ASCII but CR and
 * LF, which are white space; who is not asked of those has nothing to remember. */
static bool ends_between(utf8proc_int32_t before, utf8proc_int32_t c, utf8proc_int32_t *state)
{
    if (before < 0x80 && c < 0x80) {
        *state = 0;
        return true;
    }
    return utf8proc_grapheme_break_stateful(before, c, state);
}

/* How many characters from here on are graphemes of their own for certain, but perhaps the last:
 * those of ASCII behind one of ASCII, without white space. */
static size_t plain_prefix(const struct snippet *s, utf8proc_int32_t before, size_t most)
{
    size_t len = 0;

    most = s->held_bytes.len > 0 || before >= 0x80 ? 0 : most;
    most = most < s->rest.len ? most : s->rest.len;
    while (len < most && s->rest.ptr[len] > ' ' && s->rest.ptr[len] < 0x7f) {
        len++;
    }
    return len;
}

void t3_snippet_append(struct slice text, size_t graphemes_max, struct buf *out)
{
    struct snippet s = {.rest = text};
    size_t bytes_max = graphemes_max * T3_GRAPHEME_BYTES_MAX;
    size_t start = out->len;
    size_t whole = out->len;
    size_t count = 0;
    utf8proc_int32_t before = 0;
    utf8proc_int32_t state = 0;
    utf8proc_int32_t c;
    struct slice bytes;

    while (next(&s, &c, &bytes)) {
        if (count == 0 || ends_between(before, c, &state)) {
            whole = out->len;
            if (count++ == graphemes_max) {
                break;
            }
        }
        if (out->len - start + bytes.len > bytes_max) {
            out->len = whole;
            break;
        }
        buf_append(out, bytes);
        before = c;
        bytes = (struct slice){s.rest.ptr, plain_prefix(&s, before, graphemes_max - count)};
        if (bytes.len > 0) {
            buf_append(out, bytes);
            count += bytes.len;
            whole = out->len - 1;
            before = s.rest.ptr[bytes.len - 1];
            state = 0;
            s.rest = (struct slice){s.rest.ptr + bytes.len, s.rest.len - bytes.len};
        }
    }
}
