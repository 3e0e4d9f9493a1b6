/* Bringing app.db to the schema that this program knows: one numbered step after the other, each
 * in a transaction of its own with the number (PRAGMA user_version), so that a crash leaves the
 * number of what is there. A step that was released is never changed; a new one is added. */
#ifndef ARBE_THREAD_MIGRATION_H
#define ARBE_THREAD_MIGRATION_H

#include <sqlite3.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/err.h"

#define MIGRATION_APPLICATION_ID 0x61726265 /* "arbe", at byte 68 of the file */

/* The steps of this program: the first makes schema 1 of an empty file, and so on. */
extern const char *const migrations[];
extern const size_t migration_count;

/* Whether the file may be touched at all: ERR_MISMATCH with a sentence when another program made
 * it, or an arbe that knows more steps than `count`. Changes nothing. */
int migration_check(sqlite3 *db, size_t count, struct errmsg *msg) MUST_USE;

/* Takes the steps that are missing. The file has been checked. */
int migration_run(sqlite3 *db, const char *const *steps, size_t count, struct errmsg *msg) MUST_USE;

#endif
