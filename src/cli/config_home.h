/* Where a user's own files of arbe are: below $XDG_CONFIG_HOME, or below ~/.config. */
#ifndef ARBE_CLI_CONFIG_HOME_H
#define ARBE_CLI_CONFIG_HOME_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the path of arbe's file `name` there, cut when `size` is too small. False when the
 * environment says neither place. */
bool config_home_path(const char *name, char *out, size_t size);

#endif
