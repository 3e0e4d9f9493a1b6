/* Every place of the text is tried against every place of the secret: both are short, and errors
 * are rare. */
#include "base/redact.h"

#include <string.h>

/* How many bytes at the beginning of `text` stand somewhere in the secret in a row, at most. */
static size_t common_len(const char *text, const char *secret)
{
    size_t longest = 0;

    for (; *secret != '\0'; secret++) {
        size_t len = 0;

        while (text[len] != '\0' && text[len] == secret[len]) {
            len++;
        }
        longest = len > longest ? len : longest;
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
        size_t len = common_len(text, secret);

        if (len >= least) {
            memcpy(text, "***", 3); /* it is longer */
            memmove(text + 3, text + len, strlen(text + len) + 1);
            text += 3;
        } else {
            text++;
        }
    }
}
