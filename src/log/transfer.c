/* The catalog is what a server and the verifier look for first, so it is written under another name
 * until all else is durable: a directory that was left half made is refused by both. So are the
 * records, which a server would take for its own where there is nothing else yet. What to take away
 * after a failure is known from the manifest so far. */
#include "log/transfer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/crc32c.h"
#include "log/data_dir.h"

#define CATALOG_NAME  "catalog/data.mdb"
#define PART          ".part"
#define MANIFEST_PART MANIFEST_NAME PART

static const char *const dirs[] = {"wal", "packs", "catalog", "keys"};

int transfer_fail(struct transfer *t, int error, const char *format, ...)
{
    char what[160];
    va_list args;
    if (t->error == 0) {
        va_start(args, format);
        (void)vsnprintf(what, sizeof(what), format, args);
        va_end(args);
        t->error = err_set(t->msg, error, "%s: %s", what, err_file_text(error));
    }
    return t->error;
}

static void path_of(const char *dir, const char *name, char out[static TRANSFER_PATH_MAX])
{
    (void)snprintf(out, TRANSFER_PATH_MAX, "%s/%s", dir, name);
}

void transfer_path(const struct transfer *t, const char *name, char out[static TRANSFER_PATH_MAX])
{
    bool late = strcmp(name, MANIFEST_RECORDS) == 0 || strcmp(name, CATALOG_NAME) == 0;
    (void)snprintf(out, TRANSFER_PATH_MAX, "%s/%s%s", t->config->to, name, late ? PART : "");
}

/* Whether an entry of a directory that should be empty is one of ours, which then must be. */
struct emptiness {
    struct transfer *transfer;
    bool inner; /* looking into one of ours */
    bool full;
};

static int look_at(void *context, const char *name)
{
    struct emptiness *e = context;
    const struct backup_config *c = e->transfer->config;
    bool ours = false;
    for (size_t i = 0; i < ARRAY_COUNT(dirs) && !e->inner; i++) {
        ours = ours || strcmp(name, dirs[i]) == 0;
    }
    if (ours) {
        struct emptiness inner = {.transfer = e->transfer, .inner = true};
        char path[TRANSFER_PATH_MAX];
        path_of(c->to, name, path);
        int rc = c->sys->list_dir(c->sys->context, path, look_at, &inner);
        e->full = e->full || rc != 0 || inner.full;
    } else {
        e->full = e->full || e->inner ||
                  (strcmp(name, "lost+found") != 0 && strcmp(name, "lock") != 0);
    }
    return 0;
}

static int check_empty(struct transfer *t)
{
    const struct backup_config *c = t->config;
    struct emptiness e = {.transfer = t};
    int rc = c->sys->list_dir(c->sys->context, c->to, look_at, &e);
    if (rc) {
        return transfer_fail(t, rc, "cannot list %.100s", c->to);
    }
    if (e.full) {
        t->error = err_set(t->msg, ERR_EXISTS, "%.150s is not empty: name a new directory", c->to);
    }
    return t->error;
}

static int lock_dir(struct transfer *t)
{
    struct sys *sys = t->config->sys;
    char path[TRANSFER_PATH_MAX];
    path_of(t->config->to, "lock", path);
    t->lock_fd = sys->lock(sys->context, path);
    return t->lock_fd < 0 ? transfer_fail(t, t->lock_fd, "cannot lock %.150s", path) : 0;
}

/* Only what stands in it from here on may be taken away again. It is looked at before it is locked,
 * since a directory of somebody else gets no lock from us, and behind that, since a server may have
 * come and gone in between. */
static int claim_dir(struct transfer *t, bool lock)
{
    const struct backup_config *c = t->config;
    int rc = c->sys->mkdir(c->sys->context, c->to);
    if (rc) {
        return transfer_fail(t, rc, "cannot make the directory %.100s", c->to);
    }
    rc = check_empty(t);
    if (lock) {
        rc = rc ? rc : lock_dir(t);
        rc = rc ? rc : check_empty(t);
    }
    t->ours = rc == 0;
    return rc;
}

static int make_dirs(struct transfer *t)
{
    const struct backup_config *c = t->config;
    struct sys *sys = c->sys;
    int rc = 0;
    for (size_t i = 0; i < ARRAY_COUNT(dirs) && rc == 0; i++) {
        char path[TRANSFER_PATH_MAX];
        path_of(c->to, dirs[i], path);
        rc = sys->mkdir(sys->context, path);
    }
    return rc ? transfer_fail(t, rc, "cannot make directories in %.100s", c->to) : 0;
}

int transfer_begin(struct transfer *t, const struct backup_config *config, bool lock,
                   struct errmsg *msg)
{
    *t = (struct transfer){.config = config, .msg = msg, .lock_fd = -1};
    buf_init(&t->manifest, MANIFEST_BYTES_MAX);
    if (strlen(config->to) > DATA_DIR_PATH_BYTES_MAX - 100 ||
        strlen(config->from) > DATA_DIR_PATH_BYTES_MAX - 100) {
        t->error = err_set(msg, ERR_INVALID, "a path is longer than %u bytes",
                           DATA_DIR_PATH_BYTES_MAX - 100);
        return t->error;
    }
    t->bytes = malloc(TRANSFER_READ_BYTES);
    if (!t->bytes) {
        return transfer_fail(t, ERR_NOMEM, "cannot copy");
    }
    int rc = claim_dir(t, lock);
    return rc ? rc : make_dirs(t);
}

int transfer_create(struct transfer *t, const char *name, struct transfer_file *f)
{
    struct sys *sys = t->config->sys;
    char path[TRANSFER_PATH_MAX];
    *f = (struct transfer_file){.fd = -1};
    if (t->error) {
        return t->error;
    }
    (void)snprintf(f->entry.name, sizeof(f->entry.name), "%s", name);
    transfer_path(t, name, path);
    f->fd = sys->open(sys->context, path, true);
    return f->fd < 0 ? transfer_fail(t, f->fd, "cannot make %.100s", path) : 0;
}

static void count(struct transfer *t, struct transfer_file *f, const void *bytes, size_t len)
{
    f->entry.crc = crc32c(f->entry.crc, bytes, len);
    f->entry.bytes += len;
    t->done += len;
    t->config->progress(t->config->context, t->done, t->total > t->done ? t->total : t->done);
}

int transfer_write(struct transfer *t, struct transfer_file *f, const void *bytes, size_t len)
{
    struct sys *sys = t->config->sys;
    struct iovec iov = {(void *)(uintptr_t)bytes, len};
    if (t->error || len == 0) {
        return t->error;
    }
    int rc = sys->pwritev(sys->context, f->fd, &iov, 1, f->entry.bytes);
    if (rc) {
        return transfer_fail(t, rc, "cannot write %.100s/%s", t->config->to, f->entry.name);
    }
    count(t, f, bytes, len);
    return 0;
}

int transfer_close(struct transfer *t, struct transfer_file *f)
{
    struct sys *sys = t->config->sys;
    if (f->fd < 0) {
        return t->error;
    }
    /* Also after an error, so that transfer_end knows of it. */
    manifest_put_file(&t->manifest, &f->entry);
    t->records = t->records || strcmp(f->entry.name, MANIFEST_RECORDS) == 0;
    t->report.files++;
    t->report.bytes += f->entry.bytes;
    int rc = t->error ? 0 : sys->fdatasync(sys->context, f->fd);
    sys->close(sys->context, f->fd);
    f->fd = -1;
    return rc ? transfer_fail(t, rc, "cannot write %.100s/%s", t->config->to, f->entry.name)
              : t->error;
}

/* Copies what is in `from` up to `bytes`, which it must have. */
static int copy_bytes(struct transfer *t, int from, uint64_t bytes, struct transfer_file *f)
{
    struct sys *sys = t->config->sys;
    while (f->entry.bytes < bytes && t->error == 0) {
        uint64_t left = bytes - f->entry.bytes;
        size_t len = left < TRANSFER_READ_BYTES ? (size_t)left : TRANSFER_READ_BYTES;
        int64_t n = sys->pread(sys->context, from, t->bytes, len, f->entry.bytes);
        if (n < (int64_t)len) {
            return transfer_fail(t, n < 0 ? (int)n : ERR_CORRUPT, "cannot read all of %.100s/%s",
                                 t->config->from, f->entry.name);
        }
        (void)transfer_write(t, f, t->bytes, len); /* it sticks */
    }
    return t->error;
}

/* The size of the open file, which must be `bytes`, if that is known. */
static int take_size(struct transfer *t, int fd, const char *name, uint64_t *bytes)
{
    struct sys *sys = t->config->sys;
    int64_t size = sys->size(sys->context, fd);
    if (size < 0) {
        return transfer_fail(t, (int)size, "cannot read %.100s/%s", t->config->from, name);
    }
    if (*bytes != UINT64_MAX && *bytes != (uint64_t)size) {
        t->error = err_set(
            t->msg, ERR_CORRUPT, "%.100s/%s has %llu bytes and should have %llu: it is damaged",
            t->config->from, name, (unsigned long long)size, (unsigned long long)*bytes);
    }
    *bytes = (uint64_t)size;
    return t->error;
}

int transfer_copy(struct transfer *t, const char *name, const struct manifest_file *wanted,
                  uint64_t bytes)
{
    struct sys *sys = t->config->sys;
    char path[TRANSFER_PATH_MAX];
    struct transfer_file f;
    if (t->error) {
        return t->error;
    }
    path_of(t->config->from, name, path);
    int from = sys->open_read(sys->context, path);
    if (from < 0) {
        return transfer_fail(t, from, "cannot open %.150s", path);
    }
    bytes = wanted ? wanted->bytes : bytes;
    int rc = take_size(t, from, name, &bytes);
    rc = rc ? rc : transfer_create(t, name, &f);
    if (rc == 0) {
        (void)copy_bytes(t, from, bytes, &f); /* it sticks */
        if (wanted && t->error == 0 && f.entry.crc != wanted->crc) {
            t->error = err_set(t->msg, ERR_CORRUPT,
                               "%.100s/%s does not match its checksum: it is damaged",
                               t->config->from, name);
        }
        rc = transfer_close(t, &f);
    }
    sys->close(sys->context, from);
    return rc;
}

static int read_through(struct transfer *t, struct transfer_file *f)
{
    struct sys *sys = t->config->sys;
    int64_t n = TRANSFER_READ_BYTES;
    while (n == TRANSFER_READ_BYTES) {
        n = sys->pread(sys->context, f->fd, t->bytes, TRANSFER_READ_BYTES, f->entry.bytes);
        if (n > 0) {
            count(t, f, t->bytes, (size_t)n);
        }
    }
    return n < 0 ? transfer_fail(t, (int)n, "cannot read %.100s/%s", t->config->to, f->entry.name)
                 : 0;
}

int transfer_adopt(struct transfer *t, const char *name)
{
    struct sys *sys = t->config->sys;
    char path[TRANSFER_PATH_MAX];
    struct transfer_file f = {.fd = -1};
    if (t->error) {
        return t->error;
    }
    (void)snprintf(f.entry.name, sizeof(f.entry.name), "%s", name);
    transfer_path(t, name, path);
    f.fd = sys->open(sys->context, path, false);
    if (f.fd < 0) {
        return transfer_fail(t, f.fd, "cannot open %.150s", path);
    }
    (void)read_through(t, &f); /* it sticks */
    return transfer_close(t, &f);
}

static int sync_dirs(struct transfer *t)
{
    const struct backup_config *c = t->config;
    int rc = 0;
    for (size_t i = 0; i < ARRAY_COUNT(dirs) && rc == 0; i++) {
        char path[TRANSFER_PATH_MAX];
        path_of(c->to, dirs[i], path);
        rc = c->sys->sync_dir(c->sys->context, path);
    }
    rc = rc ? rc : c->sys->sync_dir(c->sys->context, c->to);
    rc = rc ? rc : data_dir_sync_entry(c->sys, c->to);
    return rc ? transfer_fail(t, rc, "cannot sync %.100s", c->to) : 0;
}

static int rename_in(struct transfer *t, const char *from, const char *to)
{
    const struct backup_config *c = t->config;
    char old[TRANSFER_PATH_MAX];
    char new[TRANSFER_PATH_MAX];
    path_of(c->to, from, old);
    path_of(c->to, to, new);
    int rc = c->sys->rename(c->sys->context, old, new);
    return rc ? transfer_fail(t, rc, "cannot rename %.100s/%s", c->to, from) : 0;
}

/* The catalog last, without which there is no data directory. */
static int give_names(struct transfer *t)
{
    int rc = t->records ? rename_in(t, MANIFEST_RECORDS PART, MANIFEST_RECORDS) : 0;
    return rc ? rc : rename_in(t, CATALOG_NAME PART, CATALOG_NAME);
}

static int write_manifest(struct transfer *t, const struct manifest_head *head)
{
    struct buf text;
    struct transfer_file f;
    buf_init(&text, MANIFEST_BYTES_MAX);
    manifest_put_head(&text, head);
    buf_append(&text, buf_slice(&t->manifest));
    manifest_put_end(&text);
    if (text.failed || t->manifest.failed) {
        (void)transfer_fail(t, ERR_NOMEM, "cannot write the manifest");
    }
    int rc = transfer_create(t, MANIFEST_PART, &f);
    if (rc == 0) {
        (void)transfer_write(t, &f, text.ptr, text.len); /* it sticks */
        rc = transfer_close(t, &f);
    }
    buf_finish(&text);
    return rc;
}

int transfer_finish(struct transfer *t, const struct manifest_head *head)
{
    int rc = t->error ? t->error : sync_dirs(t);
    rc = rc ? rc : give_names(t);
    rc = rc || !head ? rc : write_manifest(t, head);
    rc = rc ? rc : sync_dirs(t);
    if (rc == 0 && t->config->confirm && (rc = t->config->confirm(t->config->context, t->msg))) {
        t->error = rc;
    }
    rc = rc || !head ? rc : rename_in(t, MANIFEST_PART, MANIFEST_NAME);
    return rc || !head ? rc : sync_dirs(t);
}

static void unlink_in(struct transfer *t, const char *name)
{
    const struct backup_config *c = t->config;
    char path[TRANSFER_PATH_MAX];
    path_of(c->to, name, path);
    (void)c->sys->unlink(c->sys->context, path); /* what stays is no backup, nor a data directory */
}

/* Takes away what the manifest so far names. */
static void take_back(struct transfer *t)
{
    struct slice rest = buf_slice(&t->manifest);
    struct slice line;
    unlink_in(t, MANIFEST_NAME);
    unlink_in(t, MANIFEST_PART);
    unlink_in(t, CATALOG_NAME);
    unlink_in(t, CATALOG_NAME PART);
    unlink_in(t, MANIFEST_RECORDS PART);
    while (slice_split(&rest, '\n', &line) && line.len > 0) {
        struct slice name = line;
        char text[MANIFEST_NAME_BYTES];
        for (unsigned i = 0; i < 3; i++) { /* the fourth word */
            (void)slice_split(&line, ' ', &name);
        }
        (void)snprintf(text, sizeof(text), "%.*s", (int)line.len, line.ptr ? line.ptr : "");
        if (manifest_name_good(slice_of(text))) {
            unlink_in(t, text);
        }
    }
}

void transfer_end(struct transfer *t)
{
    if (t->error && t->ours) {
        take_back(t);
    }
    if (t->lock_fd >= 0) {
        t->config->sys->close(t->config->sys->context, t->lock_fd);
    }
    buf_finish(&t->manifest);
    free(t->bytes);
}
