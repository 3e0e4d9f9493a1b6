/* What tools do with app.db, whether or not a process has it open: copy it as it is at one moment,
 * and verify it. They change nothing, and whoever writes goes on meanwhile; its log grows for as
 * long. Blocks; one thread.
 *
 * While a tool works on a store that nobody has open, nobody can open it. */
#ifndef ARBE_THREAD_STORE_TOOL_H
#define ARBE_THREAD_STORE_TOOL_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/err.h"

#define STORE_FILE "app.db" /* its name in a data directory */

struct store_tool {
    const char *path; /* of app.db */
    /* Called often; false ends the work with ERR_AGAIN. */
    bool (*go_on)(void *context);
    void *context;
};

/* Makes the file `to` (mode 0600), which must be new: a database by itself, with everything that
 * was committed before the call. It is not synced, and what an error leaves of it is the caller's
 * to remove. ERR_NOTFOUND: there is no app.db. ERR_MISMATCH: written by a newer arbe, or no file of
 * arbe's. ERR_CORRUPT, ERR_NOSPC, ERR_IO, ERR_AGAIN, ... Errors have a sentence. */
int store_copy(const struct store_tool *tool, const char *to, struct errmsg *msg) MUST_USE;

/* A look at every page and reference, and at what the records promise of each other; `found` is
 * told of all that is wrong, in texts that live during the call. 0 whatever was found.
 * ERR_NOTFOUND: there is no app.db. Other errors, with a sentence, when it could not be looked at.
 * SQLite has no checksums: a text that was changed where no index has it goes unnoticed. */
int store_check(const struct store_tool *tool, void (*found)(void *context, const char *text),
                struct errmsg *msg) MUST_USE;

#endif
