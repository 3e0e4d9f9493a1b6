/* What was scarce when a library failed that does not tell. Descriptors are looked for by opening
 * some: another thread may take or give back one meanwhile, and then the sentence is another. */
#ifndef ARBE_T3_RPC_SCARCE_H
#define ARBE_T3_RPC_SCARCE_H

#include <stdbool.h>

#define RPC_SCARCE_MAX 2 /* at once */

#define RPC_NO_DESCRIPTOR "no descriptor is left"

/* Whether fewer descriptors than that, at most RPC_SCARCE_MAX, are left to the process or the
 * system. */
bool rpc_scarce_descriptors(int needed);

/* The sentence for what needed so many and got them or memory not. Static storage. */
const char *rpc_scarce_text(int needed);

#endif
