/* What a command's exit code says of an error of the library. */
#ifndef ARBE_CLI_EXIT_CODE_H
#define ARBE_CLI_EXIT_CODE_H

#include "arbe/stream_error.h"

/* One of enum command_exit; after a signal that of the signal, whatever the error. */
int exit_code_of(enum stream_error_code code);

#endif
