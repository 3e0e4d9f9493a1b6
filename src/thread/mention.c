/* Text is taken character by character. Beyond ASCII the question is only what is no letter; the
 * table has the blocks of spaces, punctuation and pictures that stand beside a name in practice, so
 * that "@bot…", "“@bot”" and "@助手。" end where a reader thinks they do. */
#include "thread/mention.h"

#include "base/utf8.h"

static const struct {
    uint32_t first;
    uint32_t last;
} separators[] = {
    {0x80, 0xa9},     {0xab, 0xb4},       {0xb6, 0xb9},     {0xbb, 0xbf}, /* but ª µ º */
    {0xd7, 0xd7},     {0xf7, 0xf7},                                       /* × ÷ */
    {0x2000, 0x206f},                                                     /* general punctuation */
    {0x2190, 0x2bff},                                                     /* arrows to pictures */
    {0x3000, 0x3004}, {0x3008, 0x3020},   {0x3030, 0x3030}, {0x30fb, 0x30fb}, /* CJK */
    {0xfe00, 0xfe6f}, /* forms, small forms */
    {0xfeff, 0xff0f}, {0xff1a, 0xff20},   {0xff3b, 0xff40}, {0xff5b, 0xff65}, /* full width */
    {0xfff0, 0xffff}, {0x1f000, 0x1faff},                                     /* pictures */
};

/* A character of a text. */
struct character {
    size_t len;  /* bytes, above 0 */
    bool letter; /* or digit */
};

static uint32_t decode(const char *at, size_t len)
{
    static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = (unsigned char)at[0] & masks[len];
    for (size_t i = 1; i < len; i++) {
        c = c << 6 | ((unsigned char)at[i] & 0x3f);
    }
    return c;
}

/* The first character of a text that is not empty; a byte that begins none is a separator. */
static struct character first_of(struct slice text)
{
    unsigned char lead = (unsigned char)text.ptr[0];
    if (lead < 0x80) {
        unsigned char small = lead | 0x20;
        return (struct character){1,
                                  (lead >= '0' && lead <= '9') || (small >= 'a' && small <= 'z')};
    }
    size_t len = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (len > text.len || utf8_valid_prefix((struct slice){text.ptr, len}) != len) {
        return (struct character){1, false};
    }
    uint32_t c = decode(text.ptr, len);
    for (size_t i = 0; i < sizeof(separators) / sizeof(separators[0]); i++) {
        if (c >= separators[i].first && c <= separators[i].last) {
            return (struct character){len, false};
        }
    }
    return (struct character){len, true};
}

static struct slice skip(struct slice text, size_t count)
{
    return (struct slice){text.ptr + count, text.len - count};
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

size_t mention_handle(struct slice name, char out[static MENTION_HANDLE_BYTES])
{
    size_t len = 0;
    bool gap = false;
    while (name.len > 0) {
        struct character c = first_of(name);
        if (c.letter) {
            size_t more = c.len + (gap && len > 0);
            if (len + more > RECORD_NAME_BYTES_MAX) {
                break;
            }
            if (gap && len > 0) {
                out[len++] = '-';
            }
            for (size_t i = 0; i < c.len; i++) {
                out[len++] = lower(name.ptr[i]);
            }
        }
        gap = !c.letter;
        name = skip(name, c.len);
    }
    out[len] = '\0';
    return len;
}

/* How many bytes of the text can belong to a handle. */
static size_t handle_prefix(struct slice text)
{
    size_t len = 0;
    while (len < text.len) {
        struct character c = first_of(skip(text, len));
        if (!c.letter && text.ptr[len] != '-' && text.ptr[len] != '_') {
            break;
        }
        len += c.len;
    }
    return len;
}

int mention_each(struct slice text, mention_fn each, void *context)
{
    char handle[MENTION_HANDLE_BYTES];
    bool after_word = false;
    while (text.len > 0) {
        struct character c = first_of(text);
        bool at = text.ptr[0] == '@' && !after_word;
        after_word = c.letter || text.ptr[0] == '_';
        text = skip(text, c.len);
        if (!at) {
            continue;
        }
        size_t len = handle_prefix(text);
        /* No handle is longer: what is cut would mention somebody who is not meant. */
        size_t handle_len = len <= RECORD_NAME_BYTES_MAX
                                ? mention_handle((struct slice){text.ptr, len}, handle)
                                : 0;
        int result = handle_len > 0 ? each(context, (struct slice){handle, handle_len}) : 0;
        if (result != 0) {
            return result;
        }
        text = skip(text, len);
        after_word = len > 0;
    }
    return 0;
}

static int is_handle(void *context, struct slice handle)
{
    return slice_equal(handle, *(const struct slice *)context);
}

bool mention_has(struct slice text, struct slice handle)
{
    return mention_each(text, is_handle, &handle) != 0;
}
