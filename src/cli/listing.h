/* Lists of the API as the commands print them: a record on each line, for people in columns, with
 * --json as it came. */
#ifndef ARBE_CLI_LISTING_H
#define ARBE_CLI_LISTING_H

#include "cli/app_call.h"

/* Writes what a line for people says of a record, without its end. */
typedef void (*listing_line_fn)(struct app_call *call, struct slice record);

/* Prints a list to its end or --limit: path, query and member as app_call_each has them. 0, or an
 * exit code after having said why. */
int listing_print(struct app_call *call, const char *path, const char *const *query,
                  const char *member, listing_line_fn line) MUST_USE;

/* Prints one record as a list of them would. */
void listing_record(struct app_call *call, struct slice record, listing_line_fn line);

/* Writes a text of the record, harmless, padded to `width` bytes, and a space. */
void listing_cell(struct app_call *call, struct slice record, const char *name, size_t width);

/* Writes a name, as it is shown, and a handle: the end of a line about a person or bot. */
void listing_who(struct app_call *call, struct slice record);

#endif
