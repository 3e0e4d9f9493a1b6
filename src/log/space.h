/* Room on the disk of the data directory: how much there is, and a small reserve, DIR/reserve, that
 * is given up when the disk is full so that what frees space has space to do it.
 *
 * For the store's checkpoint thread, and for opening; space_free for any thread. Everything
 * blocks. */
#ifndef ARBE_LOG_SPACE_H
#define ARBE_LOG_SPACE_H

#include "log/sys.h"

struct space {
    struct sys *sys;    /* outlives it */
    const char *dir;    /* the data directory; borrowed */
    const char *path;   /* of the reserve; borrowed */
    bool holds_reserve; /* the file is there */
};

/* Bytes free; UINT64_MAX when nobody can tell. */
uint64_t space_free(const struct space *s);

/* Makes the reserve if there is none and room enough. Failure leaves none, and is no error. */
void space_make_reserve(struct space *s);

/* Gives the reserve up. False: there was none. */
bool space_give_reserve(struct space *s);

#endif
