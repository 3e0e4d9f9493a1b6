/* Keeping a login, for `arbe auth login` and whoever else comes by a key. */
#ifndef ARBE_CLI_AUTH_H
#define ARBE_CLI_AUTH_H

#include "cli/app_call.h"

/* Asks the server who the call's key makes one, and keeps URL, key and a house. 0, or an exit code
 * after having said why. */
int auth_keep(struct app_call *call) MUST_USE;

#endif
