/* When a stream ends by itself (PROTOCOL.md 5.1): one comparison for every path. Expires-At is
 * fixed; a TTL slides with reads and writes and stands still while somebody reads live. Whoever
 * meets an expired stream deletes it and goes on as if it were not there. The caller holds the
 * stream's lock. */
#ifndef ARBE_STREAM_EXPIRY_H
#define ARBE_STREAM_EXPIRY_H

#include "base/err.h"
#include "stream/stream.h"

/* The moment from which the stream is expired; INT64_MAX: never as things are. */
int64_t expiry_deadline(const struct stream *s);

/* Whether writers find the stream: 0, ERR_NOTFOUND, or ERR_GONE when forks keep it. An expired one
 * is deleted; *ret_removal is 0 or why that could not be staged. That is also the result, unless
 * the stream has an Expires-At and so is not there whatever becomes of its deletion: ERR_AGAIN,
 * wait for room; ERR_FAILED, ERR_NOSPC, ERR_NOMEM. */
int expiry_check(struct stream *s, int64_t now_ms, int *ret_removal);

/* Whether readers find it: the same by what is durable, and ERR_AGAIN when no record of it is
 * durable yet. */
int expiry_check_visible(struct stream *s, int64_t now_ms);

/* Whether a result of the two above says that the stream is not there. */
static inline bool expiry_absent(int code)
{
    return code == ERR_NOTFOUND || code == ERR_GONE;
}

/* Renews a sliding TTL. Logs it when the log's idea is older than an eighth of the TTL. */
void expiry_touch(struct stream *s, int64_t now_ms);

/* What a logged access may lag behind the true one: added after loading, so that a stream may live
 * longer than its TTL after a restart, never shorter. */
int64_t expiry_slack_ms(uint64_t ttl_seconds);

#endif
