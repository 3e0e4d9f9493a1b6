/* Readers: what of them the watch needs beyond arbe/t3_reader.h. */
#ifndef ARBE_T3_READER_INNER_H
#define ARBE_T3_READER_INNER_H

#include "arbe/t3_reader.h"

/* What came cannot be used now, or the next connection not yet, though trying again may help: LOST
 * with that error, and another connection is made after a pause. Nothing while it is LOST or
 * REFUSED already. `error` is copied. */
void t3_reader_lose(struct t3_reader *reader, const struct t3_rpc_error *error);

#endif
