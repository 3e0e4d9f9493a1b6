/* Keys without a character of their own are sequences of ECMA-48: ESC [ or ESC O, parameters, a
 * last byte. */
#include "cli/keypress.h"

#include "base/attr.h"
#include "base/utf8.h"

#define ESCAPE         0x1b
#define SEQUENCE_BYTES 32u /* a longer one is none */

struct named {
    const char *sequence; /* behind ESC [ or ESC O */
    enum keypress_kind kind;
};

static const struct named names[] = {
    {"A", KEYPRESS_UP},         {"B", KEYPRESS_DOWN},  {"C", KEYPRESS_RIGHT},
    {"D", KEYPRESS_LEFT},       {"H", KEYPRESS_HOME},  {"F", KEYPRESS_END},
    {"1~", KEYPRESS_HOME},      {"7~", KEYPRESS_HOME}, {"4~", KEYPRESS_END},
    {"8~", KEYPRESS_END},       {"M", KEYPRESS_ENTER}, {"5~", KEYPRESS_PAGE_UP},
    {"6~", KEYPRESS_PAGE_DOWN},
};

static enum keypress_kind kind_of(struct slice sequence)
{
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (slice_equal(sequence, slice_of(names[i].sequence))) {
            return names[i].kind;
        }
    }
    return KEYPRESS_UNKNOWN;
}

/* A sequence, which begins with two bytes that say that it is one. */
static size_t take_sequence(struct slice bytes, bool whole, struct keypress *key)
{
    size_t len = 2;

    while (len < bytes.len && len < SEQUENCE_BYTES && bytes.ptr[len] >= 0x20 &&
           bytes.ptr[len] < 0x40) {
        len++;
    }
    if (len == bytes.len && !whole) {
        return len < SEQUENCE_BYTES ? 0 : len;
    }
    len += len < bytes.len ? 1 : 0;
    key->kind = kind_of((struct slice){bytes.ptr + 2, len - 2});
    return len;
}

static size_t take_text(struct slice bytes, bool whole, struct keypress *key)
{
    unsigned char first = (unsigned char)bytes.ptr[0];
    size_t len = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

    if (len > bytes.len) {
        return whole ? bytes.len : 0;
    }
    if (!utf8_valid((struct slice){bytes.ptr, len})) {
        return 1;
    }
    key->kind = KEYPRESS_TEXT;
    memcpy(key->text, bytes.ptr, len);
    key->len = len;
    return len;
}

static size_t take_escape(struct slice bytes, bool whole, struct keypress *key)
{
    if (bytes.len == 1) {
        key->kind = KEYPRESS_ESCAPE;
        return whole ? 1 : 0;
    }
    if (bytes.ptr[1] == '[' || bytes.ptr[1] == 'O') {
        return bytes.len == 2 && !whole ? 0 : take_sequence(bytes, whole, key);
    }
    if (bytes.ptr[1] == ESCAPE) {
        key->kind = KEYPRESS_ESCAPE;
        return 1;
    }
    /* Alt and a key */
    if ((unsigned char)bytes.ptr[1] < 0x80) {
        return 2;
    }
    struct keypress ignored;
    size_t len = take_text((struct slice){bytes.ptr + 1, bytes.len - 1}, whole, &ignored);

    return len > 0 ? len + 1 : 0;
}

static size_t take_control(char byte, struct keypress *key)
{
    if (byte == '\r' || byte == '\n') {
        key->kind = KEYPRESS_ENTER;
    } else if (byte == 0x7f || byte == '\b') {
        key->kind = KEYPRESS_BACKSPACE;
    } else if (byte > 0 && byte <= 26) {
        key->kind = KEYPRESS_CONTROL;
        key->text[0] = (char)('a' + byte - 1);
        key->len = 1;
    }
    return 1;
}

size_t keypress_take(struct slice bytes, bool whole, struct keypress *ret_key)
{
    struct keypress key = {.kind = KEYPRESS_UNKNOWN};
    size_t len = 0;

    if (bytes.len == 0) {
        return 0;
    }
    if (bytes.ptr[0] == ESCAPE) {
        len = take_escape(bytes, whole, &key);
    } else if ((unsigned char)bytes.ptr[0] < 0x20 || bytes.ptr[0] == 0x7f) {
        len = take_control(bytes.ptr[0], &key);
    } else {
        len = take_text(bytes, whole, &key);
    }
    if (len > 0) {
        *ret_key = key;
    }
    return len;
}
