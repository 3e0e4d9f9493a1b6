/* The manifest is proven, then every file while it is copied; the catalog gets its name when all
 * else is there. Meanwhile the directory is locked, so that no server begins on a half. */
#include <stdio.h>
#include <stdlib.h>

#include "log/backup.h"
#include "log/transfer.h"

struct restore {
    struct transfer transfer;
    const struct backup_config *config;
    struct manifest_head head;
    char *text; /* owned; the manifest */
    size_t len;
};

static int read_text(struct restore *r, int fd, const char *path)
{
    struct sys *sys = r->config->sys;
    struct transfer *t = &r->transfer;
    int64_t size = sys->size(sys->context, fd);
    int rc = size < 0 ? (int)size : size > (int64_t)MANIFEST_BYTES_MAX ? ERR_CORRUPT : 0;
    r->len = rc ? 0 : (size_t)size;
    r->text = rc ? NULL : malloc(r->len + 1);
    rc = rc || r->text ? rc : ERR_NOMEM;
    int64_t n = rc ? 0 : sys->pread(sys->context, fd, r->text, r->len, 0);
    rc = rc ? rc : n < 0 ? (int)n : n == size ? 0 : ERR_CORRUPT;
    return rc ? transfer_fail(t, rc, "cannot read %.150s", path) : 0;
}

static int add_bytes(void *context, const struct manifest_file *file)
{
    struct restore *r = context;
    r->transfer.total += file->bytes;
    return 0;
}

static int read_manifest(struct restore *r)
{
    struct sys *sys = r->config->sys;
    struct transfer *t = &r->transfer;
    char path[TRANSFER_PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/" MANIFEST_NAME, r->config->from);
    int fd = sys->open_read(sys->context, path);
    if (fd == ERR_NOTFOUND) {
        t->error = err_set(t->msg, ERR_INVALID,
                           "%.150s is no backup, or one that was not finished: there is no "
                           "manifest in it",
                           r->config->from);
        return t->error;
    }
    if (fd < 0) {
        return transfer_fail(t, fd, "cannot open %.150s", path);
    }
    int rc = read_text(r, fd, path);
    sys->close(sys->context, fd);
    if (rc == 0) {
        struct slice text = {r->text, r->len};
        t->error = manifest_read(text, &r->head, add_bytes, r, t->msg);
        rc = t->error ? err_prefix(t->msg, t->error, "%.100s", r->config->from) : 0;
    }
    return rc;
}

static int copy_file(void *context, const struct manifest_file *file)
{
    struct restore *r = context;
    return transfer_copy(&r->transfer, file->name, file, 0);
}

static int copy_all(struct restore *r)
{
    struct transfer *t = &r->transfer;
    struct slice text = {r->text, r->len};
    int rc = manifest_read(text, &r->head, copy_file, r, t->msg);
    t->error = t->error ? t->error : rc;
    t->report.position = r->head.to;
    return transfer_finish(t, NULL);
}

int backup_restore(const struct backup_config *config, struct backup_report *ret_report,
                   struct errmsg *msg)
{
    /* Read before anything is made. */
    struct restore r = {.config = config, .transfer = {.config = config, .msg = msg}};
    if (strlen(config->from) > TRANSFER_PATH_MAX - 200) {
        return err_set(msg, ERR_INVALID, "the path of the backup is too long");
    }
    int rc = read_manifest(&r);
    uint64_t total = r.transfer.total;
    if (rc == 0) {
        rc = transfer_begin(&r.transfer, config, true, msg);
        r.transfer.total = total;
        rc = rc ? rc : copy_all(&r);
        if (rc == 0) {
            *ret_report = r.transfer.report;
        }
        transfer_end(&r.transfer);
    }
    free(r.text);
    return rc;
}
