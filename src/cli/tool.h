/* The tools of `arbe streams`: sub-commands that work on a data directory instead of serving it.
 * One row of the table in tool.c each, with its operands and its help; parsing, help and the
 * answer to wrong usage are the same for all. What a tool finds out goes to stdout, as text or with
 * --json as one object a line; talk goes to stderr. */
#ifndef ARBE_CLI_TOOL_H
#define ARBE_CLI_TOOL_H

#include <stdbool.h>

#define TOOL_OPERANDS_MAX 2u

/* How a tool was called. */
struct tool_call {
    const char *name;                        /* of the tool */
    const char *operands[TOOL_OPERANDS_MAX]; /* as many as its row says; none is empty */
    bool json;                               /* machines read stdout */
};

/* Whether `word`, the first argument of `arbe streams`, is no flag and so names a tool, if only a
 * wrong one. */
bool tool_is_named(const char *word);

/* Runs the tool that argv[0] names. Returns an exit code. */
int tool_run(int argc, char **argv);

/* Prints a line for each tool on stdout. */
void tool_print_all(void);

/* Says on stderr why the tool could not do it, and returns COMMAND_FAILED. */
int tool_fail(const struct tool_call *call, const char *sentence);

/* Ends stdout: COMMAND_GOOD, or COMMAND_FAILED when not all of it could be written. */
int tool_end_output(void);

/* Checks a data directory without changing it. Returns an exit code, as all of these do. */
int tool_verify(const struct tool_call *call);

/* Copies a data directory that may be served meanwhile. */
int tool_backup(const struct tool_call *call);

/* Makes a data directory of a backup that proves itself. */
int tool_restore(const struct tool_call *call);

/* Tells what a data directory holds. */
int tool_stats(const struct tool_call *call);

/* Lets a new key sign webhooks from soon on, also for a server that runs. */
int tool_rotate_key(const struct tool_call *call);

/* Makes new secrets where those of a directory are lost. */
int tool_replace_keys(const struct tool_call *call);

#endif
