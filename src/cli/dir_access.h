/* Access to a data directory for a tool that reads it: it is either free, and kept from servers for
 * the time by a shared lock, or a server has it and is asked, over DIR/control, to hold still what
 * is there (serve/door.h). A server drops the hold of a tool that it hears nothing of, and all
 * holds when its disk runs full. One thread. */
#ifndef ARBE_CLI_DIR_ACCESS_H
#define ARBE_CLI_DIR_ACCESS_H

#include "base/err.h"
#include "log/record.h"
#include "log/sys.h"

#define DIR_PATH_BYTES 1300u /* of the directory with a short name below it, and NUL */

struct dir_access {
    struct sys sys;
    bool running;     /* a server has it */
    int lock_fd;      /* of a free one; below 0: there is no file to lock, so no server was here */
    int socket;       /* to the server; below 0: none */
    uint64_t kept_ms; /* when the server last heard of us */
    char lost[200];   /* why it holds no more; empty: it does */
};

/* Begins. Errors have a sentence. End it only when it was good. */
int dir_access_begin(const char *dir, struct dir_access *ret_access, struct errmsg *msg) MUST_USE;

/* Refuses a place for a copy that lies in what is copied, or the other way round: the copy would
 * hold itself. ERR_INVALID with a sentence. */
int dir_access_apart(const char *from, const char *to, struct errmsg *msg) MUST_USE;

/* Of a running server: up to where its log is whole by now. To be asked once the catalog was
 * opened, see hold_renew. Errors have a sentence. */
int dir_access_durable(struct dir_access *a, log_pos *ret_durable, struct errmsg *msg) MUST_USE;

/* To be called often: tells the server now and then that we are there. */
void dir_access_keep(struct dir_access *a);

/* What stands in the log was copied; it need not be held any longer. */
void dir_access_log_done(struct dir_access *a);

/* The same for the catalog. */
void dir_access_catalog_done(struct dir_access *a);

/* Whether the server let go before we did, and why: what was read is then worth nothing. */
bool dir_access_lost(struct dir_access *a, struct errmsg *msg);

/* Lets go. */
void dir_access_end(struct dir_access *a);

#endif
