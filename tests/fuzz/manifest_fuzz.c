/* Manifests of backups: whatever is taken for one names good files only, and writes itself anew. */
#include "log/manifest.h"

#include <assert.h>

#include "base/crc32c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int add_file(void *context, const struct manifest_file *file)
{
    assert(manifest_name_good(slice_of(file->name)));
    manifest_put_file(context, file);
    return 0;
}

static void read_text(struct slice text)
{
    struct manifest_head head;
    struct errmsg msg = {{0}};
    struct buf files;
    struct buf again;
    buf_init(&files, 1024 * 1024);
    buf_init(&again, 1024 * 1024);
    if (manifest_read(text, &head, add_file, &files, &msg) == 0) {
        manifest_put_head(&again, &head);
        buf_append(&again, buf_slice(&files));
        manifest_put_end(&again);
        assert(again.failed || slice_equal(buf_slice(&again), text));
    } else {
        assert(msg.text[0] != '\0');
        assert(files.len == 0);
    }
    buf_finish(&files);
    buf_finish(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf sealed;
    read_text((struct slice){(const char *)data, size});
    /* With the right end, so that the lines are looked at. */
    buf_init(&sealed, 1024 * 1024);
    buf_append(&sealed, (struct slice){(const char *)data, size});
    manifest_put_end(&sealed);
    if (!sealed.failed) {
        read_text(buf_slice(&sealed));
    }
    buf_finish(&sealed);
    return 0;
}
