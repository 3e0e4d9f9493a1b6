/* Secrets that are typed or piped in: never an argument, which everybody on the machine sees. */
#ifndef ARBE_CLI_PROMPT_H
#define ARBE_CLI_PROMPT_H

#include "base/err.h"
#include "base/slice.h"

#define PROMPT_SECRET_BYTES 1024u

/* Reads one line from stdin, without its line end and white space around it, NUL-terminated. On a
 * terminal it asks with `question` on stderr, and does not show what is typed. ERR_INVALID when
 * there is none, it is too long or holds what no header can carry; ERR_STOPPING after a signal;
 * ERR_IO; each with a sentence, in which `what` names it ("an API key"). Blocks. */
int prompt_secret(const char *question, const char *what, char out[static PROMPT_SECRET_BYTES],
                  struct errmsg *msg) MUST_USE;

#endif
