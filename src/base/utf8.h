/* UTF-8 validity (RFC 3629: no surrogates, nothing above U+10FFFF, shortest forms only). Pure, with
 * a fast path over ASCII. */
#ifndef ARBE_BASE_UTF8_H
#define ARBE_BASE_UTF8_H

#include "base/slice.h"

/* The length of the longest prefix of whole, valid characters; equal to s.len when all is valid. */
size_t utf8_valid_prefix(struct slice s);

/* The same for the characters beyond ASCII that `s` begins with; ends at an ASCII byte. For
 * scanners that look at ASCII themselves. */
size_t utf8_multibyte_prefix(struct slice s);

/* Whether all of `s` is valid. */
static inline bool utf8_valid(struct slice s)
{
    return utf8_valid_prefix(s) == s.len;
}

/* The longest beginning of `s` of at most `bytes_max` bytes that is whole, valid characters. */
static inline struct slice utf8_cut(struct slice s, size_t bytes_max)
{
    s.len = s.len > bytes_max ? bytes_max : s.len;
    return (struct slice){s.ptr, utf8_valid_prefix(s)};
}

/* The length of the control character that `s` begins with, 0 when it begins with none: those of
 * ASCII, and U+0080 to U+009F, which terminals obey as well. */
size_t utf8_control(struct slice s);

/* The length of the character that `s` begins with if it changes the order in which a terminal
 * shows text, or ends a line there: U+061C, U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069. 0
 * when it begins with none. */
size_t utf8_reorders(struct slice s);

/* Either of them: what must not reach a terminal in a text that somebody else chose. */
size_t utf8_harmful(struct slice s);

#endif
