/* A ping that comes due while one waits to be sent is not sent twice, but counts: a server that
 * does not even take bytes answers nothing, either. */
#include "t3/rpc_pings.h"

#include <assert.h>

void rpc_pings_begin(struct rpc_pings *p, int interval_ms, int missed_max, uint64_t now_ms)
{
    assert(interval_ms >= 0);
    *p = (struct rpc_pings){
        .interval_ms = interval_ms,
        .missed_max = missed_max,
        .due_ms = now_ms + (uint64_t)interval_ms,
    };
}

void rpc_pings_heard(struct rpc_pings *p)
{
    p->unanswered = 0;
}

bool rpc_pings_step(struct rpc_pings *p, uint64_t now_ms, bool deaf)
{
    if (p->interval_ms == 0 || now_ms < p->due_ms) {
        return true;
    }
    if (p->unanswered >= p->missed_max && !deaf) {
        return false;
    }
    p->unanswered++;
    p->to_send = true;
    p->due_ms = now_ms + (uint64_t)p->interval_ms;
    return true;
}

bool rpc_pings_take(struct rpc_pings *p)
{
    bool taken = p->to_send;

    p->to_send = false;
    return taken;
}

uint64_t rpc_pings_due_ms(const struct rpc_pings *p)
{
    return p->interval_ms > 0 ? p->due_ms : 0;
}
