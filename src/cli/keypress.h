/* What somebody types at a terminal, read from the bytes that it sends. Pure. */
#ifndef ARBE_CLI_KEYPRESS_H
#define ARBE_CLI_KEYPRESS_H

#include "base/slice.h"

enum keypress_kind {
    KEYPRESS_TEXT,    /* a character; `text` */
    KEYPRESS_CONTROL, /* Ctrl and a letter; `text` is that, in lower case */
    KEYPRESS_ENTER,
    KEYPRESS_ESCAPE,
    KEYPRESS_BACKSPACE,
    KEYPRESS_UP,
    KEYPRESS_DOWN,
    KEYPRESS_LEFT,
    KEYPRESS_RIGHT,
    KEYPRESS_PAGE_UP,
    KEYPRESS_PAGE_DOWN,
    KEYPRESS_HOME,
    KEYPRESS_END,
    KEYPRESS_UNKNOWN, /* any other key; to be ignored */
};

struct keypress {
    enum keypress_kind kind;
    char text[4]; /* UTF-8 */
    size_t len;   /* of it */
};

/* Takes the first key of `bytes`: how many bytes it is, or 0: it has only begun, or there is none.
 * With `whole` nothing more follows for now: an escape alone is then the key of that name. */
size_t keypress_take(struct slice bytes, bool whole, struct keypress *ret_key);

#endif
