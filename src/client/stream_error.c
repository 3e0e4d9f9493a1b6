/* The names of the codes, once. */
#include "arbe/stream_error.h"

const char *stream_error_name(enum stream_error_code code)
{
    switch (code) {
    case STREAM_OK:
        return "OK";
    case STREAM_ERROR_ARGUMENT:
        return "ARGUMENT";
    case STREAM_ERROR_MEMORY:
        return "MEMORY";
    case STREAM_ERROR_ABORTED:
        return "ABORTED";
    case STREAM_ERROR_TIMEOUT:
        return "TIMEOUT";
    case STREAM_ERROR_NETWORK:
        return "NETWORK";
    case STREAM_ERROR_TLS:
        return "TLS";
    case STREAM_ERROR_UNAUTHORIZED:
        return "UNAUTHORIZED";
    case STREAM_ERROR_FORBIDDEN:
        return "FORBIDDEN";
    case STREAM_ERROR_NOT_FOUND:
        return "NOT_FOUND";
    case STREAM_ERROR_GONE:
        return "GONE";
    case STREAM_ERROR_EXISTS:
        return "EXISTS";
    case STREAM_ERROR_CLOSED:
        return "CLOSED";
    case STREAM_ERROR_SEQUENCE:
        return "SEQUENCE";
    case STREAM_ERROR_FENCED:
        return "FENCED";
    case STREAM_ERROR_REJECTED:
        return "REJECTED";
    case STREAM_ERROR_BUSY:
        return "BUSY";
    case STREAM_ERROR_SERVER:
        return "SERVER";
    case STREAM_ERROR_FORMAT:
        return "FORMAT";
    }
    return "UNKNOWN"; /* a number that is no code */
}
