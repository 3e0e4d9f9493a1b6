/* What a connection and a request may be, for those who make them later: rpc.c asks the same. Pure
 * but for the memory that a URL takes. */
#ifndef ARBE_T3_RPC_CHECK_H
#define ARBE_T3_RPC_CHECK_H

#include "arbe/t3_rpc.h"
#include "base/attr.h"
#include "base/slice.h"

/* T3_RPC_OK, or ARGUMENT with a sentence that names the option which makes no sense. */
int rpc_check_options(const struct t3_rpc_options *options,
                      struct t3_rpc_error *ret_error) MUST_USE;

/* The same of a URL; MEMORY. */
int rpc_check_url(const char *url, struct t3_rpc_error *ret_error) MUST_USE;

/* The same of a method and its payload (NULL: {}), which is without white space then. Borrowed from
 * them. */
int rpc_check_request(const char *method, const char *payload, struct slice *ret_method,
                      struct slice *ret_payload, struct t3_rpc_error *ret_error) MUST_USE;

#endif
