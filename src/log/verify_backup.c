/* Of a backup: that each file is still what its manifest says. The other parts cannot replace this:
 * in a data directory a record that does not prove itself at the end of the log was never
 * acknowledged, but a backup holds nothing that was not; and restore refuses what has changed, even
 * bytes that nobody reads. */
#include <stdio.h>
#include <stdlib.h>

#include "base/crc32c.h"
#include "base/limits.h"
#include "log/manifest.h"
#include "log/verify_parts.h"

#define READ_BYTES (256u * KIB)
#define REFUSED    "restore refuses this backup"

struct copies {
    struct verify *verify;
    char *bytes; /* READ_BYTES of them; owned */
};

/* The checksum of the file's first bytes. An error of the disk is told. */
static int sum_up(struct copies *c, int fd, const struct manifest_file *file, uint32_t *ret_crc)
{
    struct verify *v = c->verify;
    uint32_t crc = 0;
    for (uint64_t at = 0; at < file->bytes;) {
        uint64_t left = file->bytes - at;
        size_t len = left < READ_BYTES ? (size_t)left : READ_BYTES;
        int64_t n = v->sys->pread(v->sys->context, fd, c->bytes, len, at);
        if (n != (int64_t)len) {
            verify_tell(v, VERIFY_DAMAGE, file->name, "it cannot be read (%s): " REFUSED,
                        err_file_text(n < 0 ? (int)n : ERR_IO));
            return ERR_IO;
        }
        crc = crc32c(crc, c->bytes, len);
        at += len;
        verify_progress(v, len);
    }
    *ret_crc = crc;
    return 0;
}

static void check_open(struct copies *c, int fd, const struct manifest_file *file)
{
    struct verify *v = c->verify;
    int64_t size = v->sys->size(v->sys->context, fd);
    uint32_t crc = 0;
    if (size != (int64_t)file->bytes) {
        verify_tell(v, VERIFY_DAMAGE, file->name,
                    "its size is not that of the manifest, which says %llu: " REFUSED,
                    (unsigned long long)file->bytes);
    } else if (sum_up(c, fd, file, &crc) == 0 && crc != file->crc) {
        verify_tell(v, VERIFY_DAMAGE, file->name,
                    "its bytes do not match their checksum in the manifest: " REFUSED);
    }
}

static int check_file(void *context, const struct manifest_file *file)
{
    struct copies *c = context;
    struct verify *v = c->verify;
    char path[VERIFY_PATH_MAX];
    verify_path(v, file->name, path);
    int fd = v->sys->open_read(v->sys->context, path);
    if (fd < 0) {
        verify_tell(v, VERIFY_DAMAGE, file->name, "it cannot be opened (%s): " REFUSED,
                    err_file_text(fd));
        return 0;
    }
    check_open(c, fd, file);
    v->sys->close(v->sys->context, fd);
    return 0;
}

/* Reads the manifest, and what it names. */
static void check_manifest(struct copies *c, int fd)
{
    struct verify *v = c->verify;
    struct manifest_head head;
    struct errmsg msg = {{0}};
    int64_t size = v->sys->size(v->sys->context, fd);
    size_t len = size < 0 || size > (int64_t)MANIFEST_BYTES_MAX ? 0 : (size_t)size;
    char *text = malloc(len + 1);
    if (!text) {
        v->error = ERR_NOMEM;
        return;
    }
    int64_t n = v->sys->pread(v->sys->context, fd, text, len, 0);
    struct slice read = {text, n < 0 ? 0 : (size_t)n};
    int rc = manifest_read(read, &head, check_file, c, &msg);
    if (rc == ERR_MISMATCH) {
        verify_tell(v, VERIFY_DAMAGE, MANIFEST_NAME, "%s: " REFUSED, msg.text);
    } else if (rc) {
        verify_tell(v, VERIFY_DAMAGE, MANIFEST_NAME, "it was cut or changed: " REFUSED);
    }
    free(text);
}

void verify_backup(struct verify *v)
{
    char path[VERIFY_PATH_MAX];
    verify_path(v, MANIFEST_NAME, path);
    int fd = v->sys->open_read(v->sys->context, path);
    if (fd == ERR_NOTFOUND) {
        return; /* a data directory */
    }
    if (fd < 0) {
        verify_tell(v, VERIFY_DAMAGE, MANIFEST_NAME, "it cannot be opened (%s): " REFUSED,
                    err_file_text(fd));
        return;
    }
    struct copies c = {.verify = v, .bytes = malloc(READ_BYTES)};
    if (c.bytes) {
        check_manifest(&c, fd);
    } else {
        v->error = ERR_NOMEM;
    }
    free(c.bytes);
    v->sys->close(v->sys->context, fd);
}
