/* What `arbe streams` and `arbe serve` have in common: settings from all sources, the log, SIGHUP,
 * and exit codes. */
#ifndef ARBE_CLI_SERVING_H
#define ARBE_CLI_SERVING_H

#include "cli/settings.h"
#include "serve/server.h"

struct serving {
    const char *name; /* "arbe streams" */
    enum settings_program program;
    void (*print_help)(void);
    /* Finds out whether the settings can be served, before anything is opened. As settings_load.
     * NULL: nothing is left to find out. */
    int (*check)(const struct settings *settings, struct errmsg *msg);
    /* Runs the server; `config` is whole but for a mount. As server_run. */
    int (*run)(const struct settings *settings, struct serve_config *config, struct errmsg *msg);
};

/* Serves until a signal ends it; `argv` begins after the command's name. An exit code. */
int serving_run(const struct serving *serving, int argc, char **argv);

#endif
