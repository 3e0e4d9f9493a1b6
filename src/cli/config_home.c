/* The XDG base directory specification, as far as one directory needs it. */
#include "cli/config_home.h"

#include <stdio.h>
#include <stdlib.h>

bool config_home_path(const char *name, char *out, size_t size)
{
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");

    if (config != NULL && config[0] == '/') { /* the specification ignores others */
        (void)snprintf(out, size, "%s/arbe/%s", config, name);
    } else if (home != NULL && home[0] != '\0') {
        (void)snprintf(out, size, "%s/.config/arbe/%s", home, name);
    } else {
        return false;
    }
    return true;
}
