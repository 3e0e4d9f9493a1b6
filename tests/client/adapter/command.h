/* One command of a driver: an object in JSON, one line. Texts that are handed out are decoded and
 * live as long as the command's arena. Memory running out ends the program. */
#ifndef ARBE_TESTS_ADAPTER_COMMAND_H
#define ARBE_TESTS_ADAPTER_COMMAND_H

#include "base/arena.h"
#include "base/slice.h"

struct command {
    struct slice object; /* borrowed from the line */
    struct arena *arena; /* of the texts; the caller's */
};

/* Reads a line. False when it is not one JSON object. */
bool command_read(struct command *c, struct slice line, struct arena *arena);

/* The member `name`, of any kind. False when there is none. */
bool command_member(const struct command *c, const char *name, struct slice *ret_value);

/* A string value, decoded and NUL-terminated; NULL when it is no string. */
const char *command_decode(const struct command *c, struct slice value, size_t *ret_len);

/* A member that is a string; NULL when there is none. */
const char *command_text(const struct command *c, const char *name);

/* The same with its length, since NULs may be in it. ptr NULL when there is none. */
struct slice command_bytes(const struct command *c, const char *name);

/* A member that is base64, decoded. ptr NULL when there is none or it is malformed. */
struct slice command_base64(const struct command *c, const char *name);

/* A member that is a number, or `otherwise`. */
double command_number(const struct command *c, const char *name, double otherwise);

/* Whether a member is `true`. */
bool command_flag(const struct command *c, const char *name);

/* A member that is an object, as a command of its own. */
bool command_object(const struct command *c, const char *name, struct command *ret_object);

#endif
