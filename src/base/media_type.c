/* A scanner that walks over tokens and quoted strings. */
#include "base/media_type.h"

#include "base/limits.h"

/* RFC 9110 section 5.6.2. */
static bool is_token_char(char c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) {
        return true;
    }
    return c != '\0' && memchr("!#$%&'*+-.^_`|~", c, 15) != NULL;
}

static bool take_char(struct slice *text, char c)
{
    if (text->len == 0 || text->ptr[0] != c) {
        return false;
    }
    text->ptr++;
    text->len--;
    return true;
}

static bool take_token(struct slice *text)
{
    size_t len = 0;

    while (len < text->len && is_token_char(text->ptr[len])) {
        len++;
    }
    text->ptr += len;
    text->len -= len;
    return len > 0;
}

static void take_space(struct slice *text)
{
    while (take_char(text, ' ') || take_char(text, '\t')) {
    }
}

/* A byte of a quoted string (RFC 9110 section 5.6.4), without those beyond ASCII, which mean
 * nothing certain. */
static bool is_quoted_char(char c)
{
    return c == '\t' || (c >= ' ' && c <= '~');
}

/* A quoted string after its opening quote. */
static bool take_quoted(struct slice *text)
{
    while (text->len > 0) {
        if (take_char(text, '"')) {
            return true;
        }
        if (take_char(text, '\\') && text->len == 0) {
            return false;
        }
        if (!is_quoted_char(text->ptr[0])) {
            return false;
        }
        text->ptr++;
        text->len--;
    }
    return false;
}

/* What follows a ';'. */
static bool take_parameter(struct slice *text)
{
    take_space(text);
    if (text->len == 0 || text->ptr[0] == ';') {
        return true;
    }
    if (!take_token(text) || !take_char(text, '=')) {
        return false;
    }
    return take_char(text, '"') ? take_quoted(text) : take_token(text);
}

bool media_type_valid(struct slice text)
{
    if (text.len > STREAM_CONTENT_TYPE_BYTES_MAX) {
        return false;
    }
    if (!take_token(&text) || !take_char(&text, '/') || !take_token(&text)) {
        return false;
    }
    while (text.len > 0) {
        take_space(&text);
        if (text.len == 0) {
            return true;
        }
        if (!take_char(&text, ';') || !take_parameter(&text)) {
            return false;
        }
    }
    return true;
}

/* The type without parameters. */
static struct slice essence(struct slice type)
{
    struct slice part = {NULL, 0};

    (void)slice_split(&type, ';', &part); /* an empty type has an empty essence */
    return slice_trim(part);
}

bool media_type_equal(struct slice a, struct slice b)
{
    return slice_equal_nocase(essence(a), essence(b));
}

bool media_type_is_json(struct slice type)
{
    return media_type_equal(type, SLICE("application/json"));
}

bool media_type_is_text(struct slice type)
{
    struct slice start = essence(type);

    if (start.len < 5) {
        return false;
    }
    start.len = 5;
    return slice_equal_nocase(start, SLICE("text/"));
}
