/* Errors of the RPC with their sentences, which may hold what a server said: they are one line
 * whatever that was. Pure. */
#ifndef ARBE_T3_RPC_ERROR_H
#define ARBE_T3_RPC_ERROR_H

#include "arbe/t3_rpc.h"
#include "base/attr.h"

/* Fills `error` (NULL: nothing) without an HTTP status, the sentence cut at its size between two
 * characters, control characters in it replaced, and returns `code`. */
int rpc_error_set(struct t3_rpc_error *error, enum t3_rpc_code code, const char *format, ...)
    PRINTF_LIKE(3, 4);

#endif
