/* Every place of the text is tried against every place of the secret: both are short, and errors
 * are rare. Whoever quotes uses one writing, so each is tried by itself: one in which what looks
 * like an escape is none, and one in which it is. */
#include "base/redact.h"

#include "base/slice.h"

#include <ctype.h>

/* The number that so many hexadecimal digits are; false for what is none. */
static bool read_hex(const char *text, int digits, unsigned *ret_number)
{
    static const char hex[] = "0123456789abcdef";
    unsigned number = 0;

    for (int i = 0; i < digits; i++) {
        const char *digit = memchr(hex, tolower((unsigned char)text[i]), sizeof(hex) - 1);

        if (digit == NULL) {
            return false; /* also where the text ends */
        }
        number = number * 16 + (unsigned)(digit - hex);
    }
    *ret_number = number;
    return true;
}

/* How many bytes the character takes at the beginning of `text`, as URLs ("%2b") or JSON ("\u002b",
 * "\/") write it, if not as it is. */
static size_t read_escaped(const char *text, unsigned *ret_character)
{
    if (text[0] == '%' && read_hex(text + 1, 2, ret_character)) {
        return 3;
    }
    if (text[0] == '\\' && text[1] == 'u' && read_hex(text + 2, 4, ret_character)) {
        return 6;
    }
    size_t len = text[0] == '\\' && text[1] != '\0' && strchr("\"\\/", text[1]) != NULL ? 2 : 1;

    *ret_character = (unsigned char)text[len - 1];
    return len;
}

/* What text and secret have in common. */
struct part {
    size_t secret_len;
    size_t text_len; /* escapes make it longer */
};

/* The longest part of the secret that stands at the beginning of `text`. */
static struct part find_part(const char *text, const char *secret, bool escaped)
{
    struct part longest = {0};

    for (; *secret != '\0'; secret++) {
        struct part part = {0};

        for (const char *at = text; *at != '\0' && secret[part.secret_len] != '\0';) {
            unsigned character = (unsigned char)*at;
            size_t len = escaped ? read_escaped(at, &character) : 1;

            if (character != (unsigned char)secret[part.secret_len]) {
                break;
            }
            at += len;
            part.secret_len++;
            part.text_len += len;
        }
        longest = part.secret_len > longest.secret_len ? part : longest;
    }
    return longest;
}

void redact(char *text, const char *secret)
{
    size_t secret_len = secret == NULL ? 0 : strlen(secret);
    size_t least = secret_len < REDACT_PART_BYTES ? secret_len : REDACT_PART_BYTES;

    if (secret_len < REDACT_WHOLE_BYTES) {
        return;
    }
    while (*text != '\0') {
        struct part plain = find_part(text, secret, false);
        struct part escaped = find_part(text, secret, true);
        struct part part = escaped.secret_len > plain.secret_len ? escaped : plain;

        if (part.secret_len >= least) {
            memcpy(text, "***", 3); /* it is longer */
            memmove(text + 3, text + part.text_len, strlen(text + part.text_len) + 1);
            text += 3;
        } else {
            text++;
        }
    }
}
