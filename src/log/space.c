/* The reserve is a sixteenth of what is free when it is made, at most RESERVE_BYTES_MAX; below
 * RESERVE_BYTES_MIN it is of no use. Its bytes mean nothing. A crash may leave any part of it. */
#include "log/space.h"

#include "base/err.h"
#include "base/limits.h"

#define RESERVE_BYTES_MAX (4 * MIB)
#define RESERVE_BYTES_MIN (256 * KIB)
#define RESERVE_SHARE     16u

uint64_t space_free(const struct space *s)
{
    int64_t bytes = s->sys->free_bytes(s->sys->context, s->dir);
    return bytes < 0 ? UINT64_MAX : (uint64_t)bytes;
}

void space_make_reserve(struct space *s)
{
    if (s->holds_reserve) {
        return;
    }
    uint64_t bytes = space_free(s) / RESERVE_SHARE;
    bytes = bytes < RESERVE_BYTES_MAX ? bytes : RESERVE_BYTES_MAX;
    if (bytes < RESERVE_BYTES_MIN) {
        return;
    }
    int fd = s->sys->open(s->sys->context, s->path, true);
    if (fd < 0) {
        s->holds_reserve = fd == ERR_EXISTS;
        return;
    }
    int rc = s->sys->allocate(s->sys->context, fd, bytes);
    s->sys->close(s->sys->context, fd);
    if (rc) {
        (void)s->sys->unlink(s->sys->context, s->path); /* what stays is taken for the reserve */
    }
    s->holds_reserve = rc == 0;
}

bool space_give_reserve(struct space *s)
{
    bool held = s->sys->unlink(s->sys->context, s->path) == 0;
    if (held) {
        (void)s->sys->sync_dir(s->sys->context, s->dir); /* some disks give it back only then */
    }
    s->holds_reserve = false;
    return held;
}
