/* Entries, the messages of a thread's stream: {"id", "ts", "authorId"?, "payload"}. Slices borrow
 * from the text they were read from. Pure, but for the allocations of buffers and arenas. */
#ifndef ARBE_THREAD_ENTRY_H
#define ARBE_THREAD_ENTRY_H

#include "base/arena.h"
#include "base/buf.h"
#include "thread/api_error.h"

/* What a client may choose; ids that begin so are the server's. */
#define ENTRY_ID_RESERVED  "arbe."
#define ENTRY_ID_TOMBSTONE "arbe.deleted." /* before the id of what was deleted */

/* Room for any stored id, a tombstone's too, and a NUL. */
#define ENTRY_ID_BYTES 128u

struct entry {
    struct slice id;
    int64_t ts;             /* ms since 1970 */
    struct slice author_id; /* empty: none */
    struct slice payload;   /* the JSON object's bytes as they came */
};

/* Reads a stored one, leniently: what the envelope holds besides is passed over, and any payload is
 * good that is an object. -1 when it is no entry: a member missing, twice or of another kind, an
 * escape in an id (we write none), text that is not JSON. */
int entry_parse(struct slice json, struct entry *ret_entry, struct api_error *ret_error) MUST_USE;

/* What a client posts. */
struct entry_posted {
    struct slice id;        /* empty: the server is to choose one */
    struct slice author_id; /* empty: none given */
    struct slice payload;   /* a scanned object, for payload_check */
};

/* Reads {"id"?, "ts"?, "authorId"?, "payload"} strictly: any other member, one given twice, or one
 * of another kind is refused with its path. "ts" may be any number and is ignored; null is as if
 * left out. Text with escapes is decoded into `arena`. -1: MALFORMED_JSON, INVALID_INPUT, INTERNAL
 * when the arena has no room. */
int entry_parse_posted(struct slice json, struct arena *arena, struct entry_posted *ret_posted,
                       struct api_error *ret_error) MUST_USE;

/* The same for a value that has been scanned, such as one of a batch; api_error_prefix then says
 * which. */
int entry_read_posted(struct slice value, struct arena *arena, struct entry_posted *ret_posted,
                      struct api_error *ret_error) MUST_USE;

/* Appends it as one JSON object. Failure sticks to the buffer. */
void entry_format(struct buf *out, const struct entry *e);

/* Whether a client may choose this id: 1 to ENTRY_ID_BYTES_MAX of A-Z a-z 0-9 . _ ~ -, and not
 * reserved. */
bool entry_id_good(struct slice id);

/* Whether an entry of ours may have this id at all: a good one, or a reserved one, at most
 * ENTRY_ID_BYTES - 1 bytes of the same characters. */
bool entry_id_possible(struct slice id);

/* Writes the id of the tombstone of `id`, NUL-terminated, and returns its length. `id` is one that
 * entry_id_good takes. */
size_t entry_tombstone_id(struct slice id, char out[static ENTRY_ID_BYTES]);

/* Called for each entry of a page with its place among the messages, from 0; a result other than 0
 * ends the walk and is returned. */
typedef int (*entry_fn)(void *context, const struct entry *entry, size_t index);

/* Walks over a page of a thread's stream, a JSON array. Messages that are no entries are passed
 * over. 0, what `each` returned, or ERR_INVALID when the text is not JSON, which may show late. */
int entry_each(struct slice json_array, entry_fn each, void *context) MUST_USE;

#endif
