/* The notes of the engine: what log/note.h says, as an operation, with what no checkpoint has saved
 * yet kept in memory. See the head of note.c. */
#ifndef ARBE_STREAM_NOTE_H
#define ARBE_STREAM_NOTE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "log/store.h"

struct engine;
struct note_saving;

struct notes {
    pthread_mutex_t lock; /* guards the map and what is in it; like that of a stream */
    struct map map;       /* struct note: keys that changed since they were last saved */
    uint64_t seed;        /* of the hash of keys: clients choose parts of them */
    _Atomic size_t bytes; /* of memory that they take */

    /* Held by whoever reads all notes, and by a checkpoint while it saves some: in between, a note
     * that is saved would be found neither here nor in the catalog. */
    pthread_mutex_t walk;
    struct note_saving *saving; /* of the checkpoint in progress; the store's checkpoint thread */
    size_t saving_count;
    bool collecting; /* it holds `walk` */
};

/* No notes in memory. */
void notes_init(struct notes *n, uint64_t seed);

/* Nothing runs any more. */
void notes_finish(struct notes *n);

/* Applies a record of notes in recovery. ERR_NOMEM. */
int notes_replay(struct engine *e, const struct record_note *r, log_pos end) MUST_USE;

/* Gives what is durable and not saved to the checkpoint. ERR_NOMEM. Blocks. */
int notes_collect(struct engine *e, struct checkpoint *c) MUST_USE;

/* The checkpoint ended; without effect when notes_collect was not called for it. */
void notes_done(struct engine *e, int code);

#endif
