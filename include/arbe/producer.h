/* An idempotent producer of one stream: many small messages, batched and pipelined, each stored
 * exactly once and in the order in which it was given, whatever breaks meanwhile, the server's end
 * included (PROTOCOL.md 5.2.1).
 *
 * Failures that pass are tried again as the client's options say. When its retries are used up, or
 * an answer did not come within request_timeout_ms, the call that waits gives the error and nothing
 * is dropped: the next call goes on from there, with the same batches and numbers. Other failures
 * are for good: fenced, refused, aborted, the stream closed or gone.
 *
 * Threads: one at a time, but for stream_producer_counts and stream_producer_abort. Batches are
 * sent by the client's thread while the caller goes on. */
#ifndef ARBE_PRODUCER_H
#define ARBE_PRODUCER_H

#include "arbe/stream_client.h"

#ifdef __cplusplus
extern "C" {
#endif

struct stream_producer;

struct stream_producer_options {
    int64_t epoch; /* to begin with; raised by 1 at each start of a lasting producer */
    /* 1: takes an epoch at or above that one, by chance, so that no other producer has it; when a
     * newer one is in force at the first batch, one above that. For producers that keep nothing. */
    int auto_claim;
    /* 1: what the server knows from an earlier run with this epoch counts as stored, as when a
     * program gives the same messages in the same batches again. 0: then the messages are somebody
     * else's, and the producer fails with SEQUENCE instead of losing them. */
    int replay;
    size_t max_batch_bytes;  /* a batch is sent when it would grow above this */
    int max_batch_messages;  /* or hold more than this */
    int linger_ms;           /* or when its first message has waited this long; 0: at once */
    int max_in_flight;       /* batches sent and not answered, 1 to 64; further ones wait */
    size_t max_queued_bytes; /* messages not yet stored, 16 more for each; above it appends block */
    /* Of the stream, up to 255 bytes; NULL: asked for by HEAD at the first message. */
    const char *content_type;
    /* Told, on the client's thread, once when the producer fails for good, before any call gives
     * that failure: messages from `first_lost` on (counted from 0 in the order of appends) are not
     * known to be stored. May call stream_producer_counts and nothing else here. NULL: nobody. */
    void (*failed)(void *context, uint64_t first_lost, const struct stream_error *error);
    void *context;
};

/* Defaults: epoch 0, 1 MiB or 1,000 messages a batch, 5 ms, 5 in flight, 64 MiB queued. */
void stream_producer_options_init(struct stream_producer_options *options);

/* Makes a producer named `producer_id` (1 to 256 bytes) for a stream of the client. Nothing is
 * sent. ARGUMENT with a sentence that names the option. */
int stream_producer_new(struct stream_client *client, const char *name, const char *producer_id,
                        const struct stream_producer_options *options,
                        struct stream_producer **ret_producer, struct stream_error *ret_error);

/* Queues one message, copied; for JSON streams it must be one JSON value. Blocks only while too
 * much is queued. After a failure for good every call gives that failure. */
int stream_producer_append(struct stream_producer *producer, const void *data, size_t len,
                           struct stream_error *ret_error);

/* Sends what is queued and waits until all of it is stored. `ret_info` (may be NULL) tells of the
 * newest batch that was stored. Blocks. */
int stream_producer_flush(struct stream_producer *producer, struct stream_info *ret_info,
                          struct stream_error *ret_error);

/* Flushes, then closes the stream together with a last message (len 0: none). Blocks. It may be
 * repeated after success and after an error that is not for good; the last message is that of the
 * first time. CLOSED: somebody else has closed the stream. */
int stream_producer_close(struct stream_producer *producer, const void *data, size_t len,
                          struct stream_info *ret_info, struct stream_error *ret_error);

/* Messages given and stored so far, and the epoch in use; each may be NULL. Any thread. */
void stream_producer_counts(struct stream_producer *producer, uint64_t *ret_appended,
                            uint64_t *ret_stored, int64_t *ret_epoch);

/* Fails the producer with STREAM_ERROR_ABORTED, at once. Any thread; also a signal handler. */
void stream_producer_abort(struct stream_producer *producer);

/* Frees it, before its client; what is not flushed may be lost, and `failed` tells so. Accepts
 * NULL. */
void stream_producer_free(struct stream_producer *producer);

#ifdef __cplusplus
}
#endif

#endif
