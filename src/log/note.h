/* Notes: a small table of keys and values beside the streams, for what must be as durable as they
 * are and belongs to none of them. A batch of changes is one record of the log and happens whole or
 * not at all. This file is the codec of a batch.
 *
 *   batch   change ...
 *   change  u8 kind (1 put, 2 delete), u16 key bytes, key; put: u32 value bytes, value
 *
 * Keys are bytes, 1 to NOTE_KEY_BYTES_MAX; that is less than two stream names, so whoever has a key
 * of two names gives one of them a number. Of several changes to a key in a batch the last holds.
 *
 * Pure: bytes in, bytes out. */
#ifndef ARBE_LOG_NOTE_H
#define ARBE_LOG_NOTE_H

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"

struct note_change {
    struct slice key;
    struct slice value; /* of a put; may be empty */
    bool put;           /* false: the key goes, if it is there */
};

/* Appends a change to a batch. What is beyond the caps marks the buffer failed, like a lack of
 * memory; so does a batch that grows beyond the buffer's maximum, for which NOTE_BATCH_BYTES_MAX is
 * a good choice. */
void note_put(struct buf *batch, struct slice key, struct slice value);

/* See note_put. */
void note_delete(struct buf *batch, struct slice key);

/* Takes the next change off the front of *rest, from which its slices borrow. 1: there was one; 0:
 * *rest is empty; ERR_CORRUPT. */
int note_next(struct slice *rest, struct note_change *ret_change) MUST_USE;

/* Proves a whole batch: 1 to NOTE_BATCH_BYTES_MAX bytes. *ret_count: its changes. 0 or
 * ERR_CORRUPT. */
int note_check(struct slice batch, size_t *ret_count) MUST_USE;

/* Whether the batch gives space back, so that it is taken where the log is full: it deletes
 * something, and puts at most one value, of NOTE_TOMB_BYTES_MAX at most, to remember that by. False
 * for one that is not sound. */
bool note_frees(struct slice batch);

#endif
