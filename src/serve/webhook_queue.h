/* Who is next: requests wait with the host that they go to, and hosts take turns, so that neither a
 * slow receiver nor one with many requests keeps the others waiting. A host and port has at most
 * `per_host_max` under way, and one that let its last request time out has one. Also remembers what
 * a host's name resolved to. One thread; no clock, no socket. */
#ifndef ARBE_SERVE_WEBHOOK_QUEUE_H
#define ARBE_SERVE_WEBHOOK_QUEUE_H

#include "base/attr.h"
#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"

/* The list that a host is on. */
enum webhook_list {
    WEBHOOK_NOWHERE, /* nothing waits, something is under way */
    WEBHOOK_READY,   /* something waits, and may be sent */
    WEBHOOK_FULL,    /* something waits, and as much as may be is under way */
    WEBHOOK_PUT_OFF, /* something waits, and was put off */
    WEBHOOK_IDLE,    /* neither */
    WEBHOOK_LISTS,
};

struct webhook_host {
    struct map_node by_key; /* in the queue's map */
    struct list turn;       /* on the queue's list `on` */
    enum webhook_list on;
    struct list waiting;        /* of its requests, the oldest first */
    unsigned under_way;         /* requests */
    bool timed_out;             /* the last one did */
    bool put_off;               /* until it is resumed; others have their turns meanwhile */
    bool failing;               /* the last one failed; the sender's */
    char *resolved;             /* addresses, as CURLOPT_RESOLVE has them; owned; may be NULL */
    uint64_t resolved_until_ms; /* monotonic */
    size_t key_len;
    char key[]; /* host and port, in lower case, NUL-terminated */
};

/* Embedded in what is sent. */
struct webhook_place {
    struct list link; /* on `waiting` of its host; the sender's once it is under way */
    struct webhook_host *host;
};

struct webhook_queue {
    struct map hosts;
    struct list lists[WEBHOOK_LISTS]; /* of hosts, the one that came first is first */
    size_t idle_count;
    size_t waiting_count;
    unsigned per_host_max;
    uint64_t seed; /* of the hash */
};

/* An empty queue. `seed` is secret: hosts are named by clients. */
void webhook_queue_init(struct webhook_queue *q, unsigned per_host_max, uint64_t seed);

/* Frees all hosts; nothing may wait or be under way. */
void webhook_queue_finish(struct webhook_queue *q);

/* Puts it last among those that go to `key`. ERR_NOMEM: it is on no list. */
int webhook_queue_push(struct webhook_queue *q, struct webhook_place *place,
                       struct slice key) MUST_USE;

/* The one that webhook_queue_next takes, or NULL. It stays in the queue. */
struct webhook_place *webhook_queue_peek(const struct webhook_queue *q);

/* Takes the next one, which is under way from now on; NULL when none may be sent. */
struct webhook_place *webhook_queue_next(struct webhook_queue *q);

/* The host of the next one has no more turns until it is resumed. */
void webhook_queue_put_off(struct webhook_queue *q);

/* The host that was put off first, or NULL. */
struct webhook_host *webhook_queue_first_put_off(const struct webhook_queue *q);

/* If it was put off, it has the next turn. */
void webhook_queue_resume(struct webhook_queue *q, struct webhook_host *host);

/* Takes out one that waits, whether or not it may be sent, never to be sent; NULL: none waits. */
struct webhook_place *webhook_queue_drain(struct webhook_queue *q);

/* One that was under way has ended. Its host may be gone afterwards. */
void webhook_queue_end(struct webhook_queue *q, struct webhook_place *place, bool timed_out);

#endif
