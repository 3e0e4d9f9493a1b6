/* What to write to a terminal that shows one screen so that it shows another: only what differs.
 *
 * The terminal is one that knows ECMA-48 (all that people use do; TERM=dumb does not), in UTF-8,
 * and does not wrap lines by itself. Pure. */
#ifndef ARBE_CLI_PAINT_H
#define ARBE_CLI_PAINT_H

#include "cli/cells.h"

/* Appends the bytes. `before` (NULL: nobody knows what is there) and `after` are of one size.
 * Without `colour` the colours of cells are left out. */
void paint(struct buf *out, const struct cells *before, const struct cells *after, bool colour);

#endif
