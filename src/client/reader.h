/* Readers: what of them the rest of the client needs beyond arbe/stream_client.h. */
#ifndef ARBE_CLIENT_READER_H
#define ARBE_CLIENT_READER_H

#include "arbe/stream_client.h"

#define READER_CURSOR_BYTES   64   /* with the NUL */
#define READER_SILENCE_MS     5000 /* without a first byte of events AUTO goes over to long-polls */
#define READER_BRIEF_MS       1000 /* events that end so soon and bring nothing are brief */
#define READER_BRIEF_MAX      3    /* brief ones in a row make AUTO go over to long-polls */
#define READER_QUICK_MS       100  /* an answer that comes so soon and brings nothing is quick */
#define READER_QUICK_PAUSE_MS 1000 /* longest pause that quick ones in a row lead to */

/* Before the first `next`: what the content type says decides between messages and bytes. */
void reader_set_by_type(struct stream_reader *reader);

#endif
