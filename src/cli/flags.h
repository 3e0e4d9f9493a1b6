/* Flags from a table: the command line first, then the environment, then the default. Each flag
 * exists once, with its name, what it takes, what it may be, and its line of help; a
 * configuration file can use the same table through flags_set. Values of kind FLAG_TEXT borrow
 * from where they came. */
#ifndef ARBE_CLI_FLAGS_H
#define ARBE_CLI_FLAGS_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum flag_kind {
    FLAG_TEXT,     /* const char * */
    FLAG_COUNT,    /* uint64_t: a plain number */
    FLAG_SIZE,     /* uint64_t: bytes */
    FLAG_DURATION, /* uint64_t: milliseconds */
    FLAG_CHOICE,   /* uint64_t: index into choices */
    FLAG_SWITCH,   /* uint64_t: 1 when given; takes no value on the command line */
};

struct flag {
    const char *name;     /* without the dashes */
    const char *hint;     /* what stands for the value in the help; NULL for a switch */
    const char *fallback; /* as it would be given; NULL: stays zero or NULL */
    const char *help;     /* one line; says what a missing fallback means */
    const char *choices;  /* FLAG_CHOICE: words separated by '|' */
    enum flag_kind kind;
    size_t at;    /* where in the settings the value goes */
    uint64_t min; /* COUNT, SIZE, DURATION */
    uint64_t max; /* likewise */
};

/* What looks a name up in the environment: getenv, or a test's own. */
typedef char *(*flags_env_fn)(const char *name);

/* Fills `settings` from defaults, environment (ARBE_ and the name in capitals, '-' as '_') and
 * arguments. ERR_INVALID with a sentence that names flag, value and what would be accepted. */
int flags_parse(const struct flag *flags, size_t count, void *settings, int argc, char **argv,
                flags_env_fn env, struct errmsg *msg) MUST_USE;

/* Sets one flag to `text`; `source` is how the user knows it ("--listen", "ARBE_LISTEN"). */
int flags_set(const struct flag *flag, void *settings, const char *source, const char *text,
              struct errmsg *msg) MUST_USE;

/* Prints a line or two for each flag. */
void flags_print_help(const struct flag *flags, size_t count, FILE *out);

#endif
