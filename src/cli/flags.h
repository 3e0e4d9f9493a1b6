/* Flags from a table: defaults, then a configuration file (config_file.h), then the environment,
 * then the command line, each stronger than the ones before. Each flag exists once, with its name,
 * what it takes, what it may be, and its line of help. Values of kind FLAG_TEXT borrow from where
 * they came. */
#ifndef ARBE_CLI_FLAGS_H
#define ARBE_CLI_FLAGS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"

#include <stdbool.h>
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
    FLAG_LIST,     /* struct flag_list: may be given several times */
    FLAG_CONFIG,   /* const char *: the configuration file, which cannot name another */
    FLAG_ACTION,   /* uint64_t: a switch for the command line only: something else to do */
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

/* Where a value came from. */
enum flag_source {
    FLAG_FROM_DEFAULT,
    FLAG_FROM_FILE,
    FLAG_FROM_ENVIRONMENT,
    FLAG_FROM_ARGUMENT,
};

#define FLAG_LIST_MAX 64u /* values of one flag; more are refused */

struct flag_origin {
    enum flag_source source;
    unsigned line; /* of the file */
};

/* Values of FLAG_LIST, in the order given: one for each time that the flag stands on the command
 * line, and the words of an environment variable or of a line of a file. A stronger source replaces
 * the values of a weaker one. Zeroed to begin with. */
struct flag_list {
    struct slice items[FLAG_LIST_MAX]; /* borrowed, as other texts */
    size_t count;
    struct flag_origin origin; /* of all of them; the line is that of the last one */
};

/* A table and what it fills. */
struct flag_table {
    const struct flag *flags;
    size_t count;
    void *settings;
    struct flag_origin *origins; /* `count` of them, for those who want to know; or NULL */
};

/* What looks a name up in the environment: getenv, or a test's own. */
typedef char *(*flags_env_fn)(const char *name);

/* Fill the settings from the defaults; from the environment (ARBE_ and the name in capitals, '-' as
 * '_'); from arguments. ERR_INVALID with a sentence that names flag, value and what would be
 * accepted. */
int flags_set_defaults(const struct flag_table *table, struct errmsg *msg) MUST_USE;
int flags_set_environment(const struct flag_table *table, flags_env_fn env,
                          struct errmsg *msg) MUST_USE;
int flags_set_arguments(const struct flag_table *table, int argc, char **argv,
                        struct errmsg *msg) MUST_USE;

/* Takes the one flag that argv[0] begins with; ret_used says how many arguments it took. As above.
 * A flag of the table is no value, unless it stands behind '='.
 * For commands whose flags stand among other words. */
int flags_take_argument(const struct flag_table *table, int argc, char **argv, int *ret_used,
                        struct errmsg *msg) MUST_USE;

/* Defaults, environment and arguments in that order. */
int flags_parse(const struct flag_table *table, int argc, char **argv, flags_env_fn env,
                struct errmsg *msg) MUST_USE;

/* Refuses a variable of `environment` (as environ) that looks like a misspelt flag: what was
 * meant to close a server must not leave it open. Others beginning with ARBE_ are not ours. */
int flags_check_environment(const struct flag_table *table, char *const *environment,
                            struct errmsg *msg) MUST_USE;

/* Sets the flag that a line of a configuration file names; `source` is how the user knows the line,
 * such as "FILE:12". ERR_INVALID for an unknown name too, with the nearest one. */
int flags_set_named(const struct flag_table *table, struct slice name, const char *text,
                    struct flag_origin origin, const char *source, struct errmsg *msg) MUST_USE;

/* Whether a configuration file may hold the flag. */
bool flags_is_setting(const struct flag *flag);

/* Appends the value of a flag as flags_set_named takes it; nothing for one that is not set. */
void flags_format(const struct flag *flag, const void *settings, struct buf *out);

/* Prints a line or two for each flag. */
void flags_print_help(const struct flag *flags, size_t count, FILE *out);

#endif
