/* The way to an open connection: the addresses of the server's host, one tried after the other, and
 * the sentence when none of them led there. It looks the name up, but neither connects nor has a
 * clock: rpc_link.c does and has. The caller's memory; one thread. */
#ifndef ARBE_T3_RPC_ATTEMPT_H
#define ARBE_T3_RPC_ATTEMPT_H

#include "t3/rpc_lookup.h"
#include "t3/rpc_url.h"

enum rpc_try {
    RPC_TRY_RUNNING, /* also before the first, and after one that led to a connection */
    RPC_TRY_LATE,    /* it took too long while others wait, and is being ended */
    RPC_TRY_FAILED,  /* it has ended, and does not say that the next one would fail too */
};

struct rpc_attempt {
    const struct rpc_url *url;   /* borrowed */
    bool token;                  /* one is sent */
    struct rpc_lookup lookup;    /* of a name; zeroed: none was begun */
    struct addrinfo *literal;    /* of an address, owned; NULL: none */
    const struct addrinfo *next; /* the one to be tried next; NULL: none is known or left */
    enum rpc_try latest;         /* what became of the latest address */
    uint64_t try_ms;             /* for that: its part of the time */
    bool head_sent;              /* it is the server's turn */
    int status;                  /* of the answer to the upgrade; 0: none yet */
    int verify_code;             /* why the certificate is not good; X509_V_OK */
};

/* Why there is no connection. */
struct rpc_failure {
    enum t3_rpc_code code;
    char text[320]; /* for behind the place */
};

/* Nothing was looked up yet. */
void rpc_attempt_init(struct rpc_attempt *attempt, const struct rpc_url *url, bool token);

/* Gives up whatever is under way, and frees. */
void rpc_attempt_finish(struct rpc_attempt *attempt);

/* Looks the host up, if it is a name: `wake` is called once, from another thread, when that has
 * ended. NETWORK, MEMORY. */
int rpc_attempt_begin(struct rpc_attempt *attempt, void (*wake)(void *context), void *context,
                      struct rpc_failure *ret_failure) MUST_USE;

/* Takes what the look-up found: then `next` is the first address; it stays NULL while that is under
 * way. NETWORK, MEMORY. */
int rpc_attempt_look(struct rpc_attempt *attempt, struct rpc_failure *ret_failure) MUST_USE;

/* Goes on to `next`, which is there, and writes it as a number. It has its part of what is left
 * until the deadline, as those behind it have. MEMORY. */
int rpc_attempt_advance(struct rpc_attempt *attempt, uint64_t now_ms, uint64_t deadline_ms,
                        char numeric[static NI_MAXHOST], struct rpc_failure *ret_failure) MUST_USE;

/* Whether the latest address has had its time, and others wait for theirs. */
bool rpc_attempt_is_late(const struct rpc_attempt *attempt, uint64_t now_ms);

/* The latest try has ended, for which libwebsockets has those words; they are all that it tells.
 * True: the next address is to be tried. False, and why there is no connection. */
bool rpc_attempt_fail(struct rpc_attempt *attempt, const char *words,
                      struct rpc_failure *ret_failure) MUST_USE;

#endif
