/* A group of commands, such as those of `arbe stream`: one table says of each its name, operands,
 * flags and help, and everything follows from it. Flags stand anywhere among the operands, until
 * "--". One thread. */
#ifndef ARBE_CLI_GROUP_H
#define ARBE_CLI_GROUP_H

#include "cli/flags.h"

struct app_call;
struct board_call;
struct stream_call;
struct t3_call;

/* What runs a command and returns an exit code; all of a group have the same member. */
union group_run {
    int (*stream)(struct stream_call *call);
    int (*app)(struct app_call *call);
    int (*board)(struct board_call *call);
    int (*t3)(struct t3_call *call);
};

struct group_row {
    const char *name;     /* one word, or two: "list", "entries read" */
    const char *operands; /* as the help shows them */
    int operands_min;
    int operands_max;
    const char *ask; /* what is asked when there are too few: "which stream?" */
    union group_run run;
    const struct flag *flags;
    size_t flag_count;
    const char *line; /* of the list of all */
    const char *text; /* of its own help; ends with a line end */
};

struct group {
    const char *name;          /* after "arbe" */
    const char *operands;      /* of the usage of all */
    const char *about;         /* of the help of all; ends with a line end */
    const char *end;           /* likewise, behind all flags */
    const struct flag *shared; /* of every command */
    size_t shared_count;
    const struct group_row *rows;
    size_t row_count;
    const char *miss; /* what is said of a word that is no command, besides; NULL: nothing */
    const struct group_row *bare; /* what the group's name alone asks for, with or without flags; it
                                   * has no name and no operands. NULL: a command is needed */
};

#define GROUP_FLAGS_MAX 32u /* of one command, with the shared ones */

/* What the command line asks for. */
struct group_choice {
    const struct group_row *row; /* NULL: nothing is to be run */
    char **operands;             /* those words behind the command that are no flags */
    int operand_count;           /* as many as the row allows */
};

/* Takes what follows the group's name: fills `settings` from the flags (from their defaults too),
 * and moves the operands to the front of `argv`. Help that is asked for is printed; ret_choice has
 * no row then, and what is returned is the exit code. Wrong usage: COMMAND_USAGE and a sentence in
 * `msg`, for the caller to tell; the row, if it got so far, and the flags before. */
int group_choose(const struct group *group, int argc, char **argv, void *settings,
                 struct group_choice *ret_choice, struct errmsg *msg) MUST_USE;

#endif
