/* Readers: what of them the rest of the client needs beyond arbe/stream_client.h. */
#ifndef ARBE_CLIENT_READER_H
#define ARBE_CLIENT_READER_H

#include "arbe/stream_client.h"
#include "client/refusal.h"

#define READER_CURSOR_BYTES   64   /* with the NUL */
#define READER_SILENCE_MS     5000 /* without a first byte of events AUTO goes over to long-polls */
#define READER_BRIEF_MS       1000 /* events that end so soon and bring nothing are brief */
#define READER_BRIEF_MAX      3    /* brief ones in a row make AUTO go over to long-polls */
#define READER_QUICK_MS       100  /* an answer that comes so soon and brings nothing is quick */
#define READER_QUICK_PAUSE_MS 1000 /* longest pause that quick ones in a row lead to */

/* Before the first `next`: errors say `what` ("cannot follow it"), and what passes is tried again
 * by `rules`. Both are borrowed as long as the reader lives. */
void reader_customise(struct stream_reader *reader, const char *what,
                      const struct stream_retry *rules);

/* Once the reader has ended with an error: what an API refused with, zeroed if it was something
 * else that ended it. Borrowed as long as the reader lives. */
const struct refusal *reader_refusal(const struct stream_reader *reader);

/* NULL when a stream of that name may be read so, else a sentence that says why not. Static
 * storage. */
const char *reader_check(const char *name, const struct stream_read_options *options);

/* Before the first `next`: what the content type says decides between messages and bytes. */
void reader_set_by_type(struct stream_reader *reader);

#endif
