/* Batches of notes from hostile bytes: what is sound is what can be written, change by change, and
 * gives the same bytes; what is not yields no change that reaches beyond it. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "log/note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice batch = {(const char *)data, size};
    struct slice rest = batch;
    struct note_change c;
    struct buf again;
    size_t changes = 0;
    size_t count = 0;
    bool deletes = false;
    int more;
    buf_init(&again, size + 1);
    while ((more = note_next(&rest, &c)) > 0) {
        assert(rest.len < size);
        assert(c.key.len >= 1 && c.key.len <= NOTE_KEY_BYTES_MAX);
        if (c.put) {
            note_put(&again, c.key, c.value);
        } else {
            note_delete(&again, c.key);
        }
        deletes = deletes || !c.put;
        changes++;
    }
    assert(!again.failed);
    int code = note_check(batch, &count);
    bool sound = more == 0 && size > 0 && size <= NOTE_BATCH_BYTES_MAX;
    assert((code == 0) == sound);
    if (sound) {
        assert(count == changes);
        assert(again.len == size);
        assert(memcmp(again.ptr, data, size) == 0);
    }
    assert(!note_frees(batch) || (more == 0 && deletes));
    buf_finish(&again);
    return 0;
}
