/* At most half of a pause is taken away: enough to spread a crowd, never so much that a server in
 * trouble is asked at once. */
#include "t3/backoff.h"

#include <math.h>
#include <stddef.h>

#define DICE_PARTS 9007199254740992.0 /* 2^53: what a double tells apart between 0 and 1 */

const char *t3_backoff_check(int initial_ms, int max_ms, double multiplier)
{
    if (initial_ms < 1) {
        return "initial_delay_ms must be 1 or more";
    }
    if (max_ms < initial_ms) {
        return "max_delay_ms must be at least initial_delay_ms";
    }
    if (!isfinite(multiplier) || multiplier < 1.0) {
        return "multiplier must be a number of 1 or more";
    }
    return NULL;
}

void t3_backoff_init(struct t3_backoff *backoff, int initial_ms, int max_ms, double multiplier)
{
    *backoff = (struct t3_backoff){
        .initial_ms = initial_ms,
        .max_ms = max_ms,
        .multiplier = multiplier,
        .delay_ms = initial_ms,
    };
}

void t3_backoff_reset(struct t3_backoff *backoff)
{
    backoff->delay_ms = backoff->initial_ms;
}

void t3_backoff_jump(struct t3_backoff *backoff)
{
    backoff->delay_ms = backoff->max_ms;
}

int t3_backoff_next(struct t3_backoff *backoff, uint64_t dice)
{
    double part = (double)(dice >> 11) / DICE_PARTS; /* from 0 to below 1 */
    double pause = backoff->delay_ms * (1.0 - part / 2.0);
    double grown = backoff->delay_ms * backoff->multiplier;

    backoff->delay_ms = grown < backoff->max_ms ? grown : backoff->max_ms;
    return pause < 1.0 ? 1 : (int)pause;
}
