/* What is kept of subscriptions, as notes (log/note.h). Numbers are little-endian, but for those in
 * keys; every value ends with a CRC-32C over its key and all before it.
 *
 *   "sub/" id                    the definition, or the tombstone of one that was deleted
 *   "wake/" number (8, BE)       the state: generation, wake, lease, retry
 *   "link/" number (8, BE) path  a stream and the cursor on it
 *
 * The number is given when a subscription is created and never again, so that what is left of a
 * deleted one means nothing to the next of that id. A link that only the pattern made, and whose
 * cursor never moved, needs no note: at the start, whatever stream matches and has no note is
 * linked before its first byte. docs/format.md has the layout of the values. Pure. */
#ifndef ARBE_STREAM_SUBSCRIPTION_STORE_H
#define ARBE_STREAM_SUBSCRIPTION_STORE_H

#include "base/buf.h"
#include "stream/subscription_change.h"

#define SUBSCRIPTION_KEY_SUB  "sub/"
#define SUBSCRIPTION_KEY_WAKE "wake/"
#define SUBSCRIPTION_KEY_LINK "link/"

/* Adds the whole of a change to a batch. Failures stick to it. */
void subscription_store_change(struct buf *batch, const struct subscription_change *c);

/* Adds the removal of one link of a deleted subscription. */
void subscription_store_unlink(struct buf *batch, uint64_t number, struct slice path);

/* Adds the removal of a tombstone. */
void subscription_store_forget(struct buf *batch, struct slice id);

/* What a note says. Slices borrow from key and value. */
struct subscription_note {
    enum {
        SUBSCRIPTION_NOTE_DEFINITION,
        SUBSCRIPTION_NOTE_TOMBSTONE,
        SUBSCRIPTION_NOTE_STATE,
        SUBSCRIPTION_NOTE_LINK,
    } kind;
    uint64_t number;
    struct slice id;                    /* definition, tombstone */
    int64_t created_ms;                 /* definition; of a tombstone when it was deleted */
    struct subscription_definition def; /* definition; borrows */
    struct subscription_state state;    /* state, but for holder_block; tombstone: the generation */
    struct slice path;                  /* link */
    stream_id stream;                   /* link */
    uint64_t acked;                     /* link */
    uint64_t skip;                      /* link */
    bool is_explicit;                   /* link */
};

/* Reads a note. ERR_CORRUPT: it does not prove itself. */
int subscription_store_read(struct slice key, struct slice value,
                            struct subscription_note *ret_note) MUST_USE;

#endif
