/* The jitter takes away at most half of a pause: enough to spread a crowd, never so much that a
 * server in trouble is asked at once. */
#include "client/retry.h"

#include "client/call.h"

#include <math.h>

int retry_check(const struct stream_retry *rules, struct stream_error *ret_error)
{
    if (rules->max_retries < 0) {
        return call_error_set(ret_error, STREAM_ERROR_ARGUMENT,
                              "retry.max_retries is %d; it must be 0 or more", rules->max_retries);
    }
    if (rules->initial_delay_ms < 1) {
        return call_error_set(ret_error, STREAM_ERROR_ARGUMENT,
                              "retry.initial_delay_ms is %d; it must be 1 or more",
                              rules->initial_delay_ms);
    }
    if (rules->max_delay_ms < rules->initial_delay_ms) {
        return call_error_set(ret_error, STREAM_ERROR_ARGUMENT,
                              "retry.max_delay_ms is %d; it must be at least initial_delay_ms, %d",
                              rules->max_delay_ms, rules->initial_delay_ms);
    }
    if (!isfinite(rules->multiplier) || rules->multiplier < 1.0) {
        return call_error_set(ret_error, STREAM_ERROR_ARGUMENT,
                              "retry.multiplier is %g; it must be 1 or more", rules->multiplier);
    }
    if (rules->retry_after_max_ms < 0) {
        return call_error_set(ret_error, STREAM_ERROR_ARGUMENT,
                              "retry.retry_after_max_ms is %d; it must be 0 or more",
                              rules->retry_after_max_ms);
    }
    return STREAM_OK;
}

void retry_reset(struct retry *retry, const struct stream_retry *rules)
{
    *retry = (struct retry){.rules = rules, .delay_ms = rules->initial_delay_ms};
}

bool retry_next(struct retry *retry, long retry_after_ms, uint64_t dice, uint64_t *ret_pause_ms)
{
    const struct stream_retry *rules = retry->rules;

    if (rules->max_retries != STREAM_RETRY_FOREVER && retry->tries >= rules->max_retries) {
        return false;
    }
    double part = (double)(dice >> 11) / 9007199254740992.0; /* 2^53: from 0 to below 1 */
    double pause = retry->delay_ms * (1.0 - part / 2.0);
    double asked = retry_after_ms < rules->retry_after_max_ms ? (double)retry_after_ms
                                                              : (double)rules->retry_after_max_ms;

    retry->tries += retry->tries < INT32_MAX;
    retry->delay_ms *= rules->multiplier;
    if (retry->delay_ms > rules->max_delay_ms) {
        retry->delay_ms = rules->max_delay_ms;
    }
    /* What the server asks for may be shorter than the back-off, but may not make a hot loop. */
    if (retry_after_ms >= 0) {
        double least = pause < rules->initial_delay_ms ? pause : rules->initial_delay_ms;

        pause = asked > least ? asked : least;
    }
    *ret_pause_ms = pause < 1.0 ? 1 : (uint64_t)pause;
    return true;
}
