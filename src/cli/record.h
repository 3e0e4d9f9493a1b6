/* Reading records of the API: values by name from a JSON object that has been scanned. What is not
 * there, is null or of another kind reads as empty: servers may be newer or older. */
#ifndef ARBE_CLI_RECORD_H
#define ARBE_CLI_RECORD_H

#include "base/arena.h"
#include "base/json_value.h"

#include <stdbool.h>
#include <stdint.h>

/* The value of that name, as it stands; borrowed from `object`. */
struct slice record_value(struct slice object, const char *name);

/* Begins a walk over the elements or members of the value of that name. */
void record_walk(struct json_walk *w, struct slice object, const char *name);

/* A string, decoded, NUL-terminated, as long as `memory` lives; empty too when that is full. */
struct slice record_text(struct slice object, const char *name, struct arena *memory);

/* A whole number; 0 when there is none. */
uint64_t record_number(struct slice object, const char *name);

/* Whether it is true. */
bool record_flag(struct slice object, const char *name);

#define RECORD_TIME_BYTES 20 /* "2026-11-30 13:10" and its NUL, with room */

/* Writes a time in ms since 1970 as the user's clock shows it, NUL-terminated; "-" for 0. */
void record_format_time(char out[static RECORD_TIME_BYTES], uint64_t ms);

#endif
