/* A name for each code, and one way to fill in an error. */
#include "t3/rpc_error.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>

const char *t3_rpc_code_name(enum t3_rpc_code code)
{
    static const char *const names[] = {
        [T3_RPC_OK] = "OK",
        [T3_RPC_ERROR_ARGUMENT] = "ARGUMENT",
        [T3_RPC_ERROR_MEMORY] = "MEMORY",
        [T3_RPC_ERROR_LIMIT] = "LIMIT",
        [T3_RPC_ERROR_NETWORK] = "NETWORK",
        [T3_RPC_ERROR_TLS] = "TLS",
        [T3_RPC_ERROR_AUTH] = "AUTH",
        [T3_RPC_ERROR_VERSION] = "VERSION",
        [T3_RPC_ERROR_HTTP] = "HTTP",
        [T3_RPC_ERROR_PROTOCOL] = "PROTOCOL",
        [T3_RPC_ERROR_SCOPE] = "SCOPE",
        [T3_RPC_ERROR_METHOD] = "METHOD",
        [T3_RPC_ERROR_FAILED] = "FAILED",
        [T3_RPC_ERROR_DIED] = "DIED",
        [T3_RPC_ERROR_INTERRUPTED] = "INTERRUPTED",
        [T3_RPC_ERROR_DEFECT] = "DEFECT",
        [T3_RPC_ERROR_TIMEOUT] = "TIMEOUT",
        [T3_RPC_ERROR_CLOSED] = "CLOSED",
    };

    return (size_t)code < ARRAY_COUNT(names) ? names[code] : "UNKNOWN";
}

/* Makes one line of it: a terminal obeys nothing that a server said. */
static void clean(char *text)
{
    struct slice rest = slice_of(text);

    rest.len = utf8_valid_prefix(rest);
    text[rest.len] = '\0';
    while (rest.len > 0) {
        size_t len = utf8_control(rest);

        if (len > 0) {
            memset(text + (rest.ptr - text), ' ', len);
        }
        len = len > 0 ? len : 1;
        rest = (struct slice){rest.ptr + len, rest.len - len};
    }
}

int rpc_error_set(struct t3_rpc_error *error, enum t3_rpc_code code, const char *format, ...)
{
    va_list args;

    if (error == NULL) {
        return (int)code;
    }
    *error = (struct t3_rpc_error){.code = code};
    va_start(args, format);
    (void)vsnprintf(error->message, sizeof(error->message), format, args); /* cut is fine */
    va_end(args);
    clean(error->message);
    return (int)code;
}
