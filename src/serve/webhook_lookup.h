/* Asks for the addresses of names, each on a thread of its own. getaddrinfo may take as long as the
 * name servers like and cannot be stopped; so a thread is never waited for, only forgotten: it ends
 * when it has its answer, and what it was about is freed then.
 *
 * One thread uses the lookups (the sender's), but for what is behind `wake`. */
#ifndef ARBE_SERVE_WEBHOOK_LOOKUP_H
#define ARBE_SERVE_WEBHOOK_LOOKUP_H

#include "base/err.h"
#include "base/list.h"

#include <netdb.h>
#include <stdint.h>

struct lookups;

typedef int (*lookup_resolve_fn)(const char *host, const char *port, const struct addrinfo *hints,
                                 struct addrinfo **ret_answers);

struct lookup {
    struct list link;         /* of those that have ended */
    struct lookups *lookups;  /* counted */
    void *about;              /* the caller's; NULL once it was forgotten */
    int code;                 /* of getaddrinfo */
    struct addrinfo *answers; /* owned; NULL unless code is 0 */
    char port[8];
    char host[]; /* NUL-terminated */
};

/* `wake` is called when a lookup has ended, on its thread, until lookups_close; also for one that
 * was forgotten, since there is room for another then. */
int lookups_open(lookup_resolve_fn resolve, void (*wake)(void *context), void *context,
                 struct lookups **ret_lookups) MUST_USE;

/* No more wakes. What still runs is freed by the last of its threads. Does not block. */
void lookups_close(struct lookups *l);

/* How many threads there are, also for what was forgotten. */
unsigned lookups_running(struct lookups *l);

/* Starts one. ERR_NOMEM, ERR_AGAIN. */
int lookup_start(struct lookups *l, const char *host, uint16_t port, void *about,
                 struct lookup **ret_lookup) MUST_USE;

/* The caller waits for it no longer. */
void lookup_forget(struct lookup *one);

/* One that has ended and was not forgotten, or NULL. The caller frees it by lookup_free. */
struct lookup *lookups_take(struct lookups *l);

/* Frees what lookups_take gave. Accepts NULL. */
void lookup_free(struct lookup *one);

#endif
