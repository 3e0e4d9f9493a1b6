/* Whether a server still answers: pings at an interval, and how many of them went without an
 * answer. Pure: the caller has the clock. The caller's memory; one thread. */
#ifndef ARBE_T3_RPC_PINGS_H
#define ARBE_T3_RPC_PINGS_H

#include <stdbool.h>
#include <stdint.h>

struct rpc_pings {
    int interval_ms; /* 0: there are none */
    int missed_max;
    uint64_t due_ms; /* the next one */
    int unanswered;
    bool to_send; /* one is due, and not sent yet */
};

/* The connection stands; the first ping is due an interval later. */
void rpc_pings_begin(struct rpc_pings *pings, int interval_ms, int missed_max, uint64_t now_ms);

/* The server has said something, whatever it is. */
void rpc_pings_heard(struct rpc_pings *pings);

/* Makes a ping that is due one to be sent. False: too many went without an answer. With `deaf`,
 * since answers are not read for now, none is missed. */
bool rpc_pings_step(struct rpc_pings *pings, uint64_t now_ms, bool deaf);

/* Whether one is to be sent; then the caller does so. */
bool rpc_pings_take(struct rpc_pings *pings);

/* When the next one is due; 0: never. */
uint64_t rpc_pings_due_ms(const struct rpc_pings *pings);

#endif
