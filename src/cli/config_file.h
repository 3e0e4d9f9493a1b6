/* The configuration file: one "name = value" a line, with the names of the flags. Blank lines and
 * lines that begin with '#' say nothing; white space around name and value does not count, a '#'
 * within a value does. A name may stand once. */
#ifndef ARBE_CLI_CONFIG_FILE_H
#define ARBE_CLI_CONFIG_FILE_H

#include "cli/flags.h"

#define CONFIG_FILE_BYTES_MAX (64u * 1024u)

/* Reads the file at `path` into memory of its own, for config_file_apply. Free it when no setting
 * borrows from it any more. ERR_IO when it cannot be read, ERR_INVALID when it is no text file of
 * at most CONFIG_FILE_BYTES_MAX bytes; with a sentence, in which `what` names the file
 * ("configuration file"). */
int config_file_read(const char *path, const char *what, char **ret_text,
                     struct errmsg *msg) MUST_USE;

/* Sets what `text` says; it is cut into lines by this, and settings borrow from it. ERR_INVALID
 * with a sentence that begins with the path and the line. The table has origins. */
int config_file_apply(const char *path, char *text, const struct flag_table *table,
                      struct errmsg *msg) MUST_USE;

#endif
