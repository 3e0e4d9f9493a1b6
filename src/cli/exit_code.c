/* One switch, so that a new error is given its code. */
#include "cli/exit_code.h"

#include "cli/command.h"
#include "cli/interrupt.h"

int exit_code_of(enum stream_error_code code)
{
    int number = interrupt_signal();

    if (number != 0) {
        return COMMAND_INTERRUPTED + number;
    }
    switch (code) {
    case STREAM_OK:
        return COMMAND_GOOD;
    case STREAM_ERROR_ARGUMENT:
        return COMMAND_USAGE;
    case STREAM_ERROR_NOT_FOUND:
    case STREAM_ERROR_GONE:
        return COMMAND_NOT_FOUND;
    case STREAM_ERROR_EXISTS:
    case STREAM_ERROR_SEQUENCE:
    case STREAM_ERROR_FENCED:
        return COMMAND_CONFLICT;
    case STREAM_ERROR_CLOSED:
        return COMMAND_CLOSED;
    case STREAM_ERROR_UNAUTHORIZED:
    case STREAM_ERROR_FORBIDDEN:
    case STREAM_ERROR_TLS:
        return COMMAND_FORBIDDEN;
    case STREAM_ERROR_TIMEOUT:
    case STREAM_ERROR_NETWORK:
    case STREAM_ERROR_BUSY:
        return COMMAND_LATER;
    case STREAM_ERROR_MEMORY:
    case STREAM_ERROR_ABORTED:
    case STREAM_ERROR_REJECTED:
    case STREAM_ERROR_SERVER:
    case STREAM_ERROR_FORMAT:
        break;
    }
    return COMMAND_FAILED;
}
