/* Contents of files are in libfakefile.c; here are names, descriptors, faults and the calls
 * themselves.
 *
 * Names: `now` and `durable` maps from path to file, and the list of changes in between. A crash
 * keeps a prefix of each directory's changes. */
#include "sim/fakedisk.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "sim/fakefile.h"

#define PATH_CAP 512u
#define FD_FIRST 1000000 /* far from real descriptors, so that a stray system call fails */

struct name {
    char path[PATH_CAP];
    struct fakefile *file;
};

struct names {
    struct name *items; /* owned */
    size_t count;
    size_t cap;
};

enum entry_kind {
    ENTRY_ADD,
    ENTRY_REMOVE,
    ENTRY_RENAME
};

struct entry_change {
    enum entry_kind kind;
    char path[PATH_CAP];
    char to[PATH_CAP];     /* of a rename */
    struct fakefile *file; /* of ENTRY_ADD */
};

struct descriptor {
    struct fakefile *file; /* NULL: closed */
    bool holds_lock;
};

struct fault {
    bool armed;
    bool for_ever;
    bool hit;
    enum fakedisk_call kind;
    uint64_t at; /* call number of that kind */
    int code;
};

struct fakedisk {
    pthread_mutex_t lock;
    struct sys sys;
    struct fakefile_world world;
    struct names now;
    struct names durable;
    struct entry_change *entries; /* owned; directory changes since they were synced */
    size_t entry_count;
    size_t entry_cap;
    struct fakefile **files; /* owned; all there are */
    size_t file_count;
    size_t file_cap;
    struct descriptor *fds; /* owned; never reused, so that a stale one is found out */
    size_t fd_count;
    size_t fd_cap;
    size_t fd_live; /* descriptors before this one are from before a restart */
    uint64_t counts[CALL_COUNTERS];
    struct fault fault;
    uint64_t crash_at; /* call number of CALL_CHANGES */
    bool crashed;
    uint64_t capacity;
    fakedisk_hook_fn hook;
    void *hook_context;
    void (*guard)(bool inside);
    int64_t now_ms;
    uint64_t mono_ms;
};

static uint64_t below(struct fakedisk *d, uint64_t limit)
{
    return fakedisk_below(&d->world.random, limit);
}

/* Names. */

static struct fakefile *names_find(const struct names *n, const char *path)
{
    for (size_t i = 0; i < n->count; i++) {
        if (strcmp(n->items[i].path, path) == 0) {
            return n->items[i].file;
        }
    }
    return NULL;
}

static void names_set(struct names *n, const char *path, struct fakefile *f)
{
    for (size_t i = 0; i < n->count; i++) {
        if (strcmp(n->items[i].path, path) == 0) {
            n->items[i].file = f;
            return;
        }
    }
    n->items = fakefile_grow(n->items, n->count, &n->cap, sizeof(n->items[0]));
    struct name *item = &n->items[n->count++];
    int len = snprintf(item->path, sizeof(item->path), "%s", path);
    assert(len > 0 && len < (int)sizeof(item->path));
    item->file = f;
}

static void names_remove(struct names *n, const char *path)
{
    for (size_t i = 0; i < n->count; i++) {
        if (strcmp(n->items[i].path, path) == 0) {
            n->items[i] = n->items[--n->count];
            return;
        }
    }
}

static void names_copy(struct names *to, const struct names *from)
{
    to->count = 0;
    for (size_t i = 0; i < from->count; i++) {
        names_set(to, from->items[i].path, from->items[i].file);
    }
}

/* The directory of `path`, without the last slash; "/" for those at the top. */
static void parent_of(const char *path, char out[static PATH_CAP])
{
    const char *slash = strrchr(path, '/');
    assert(slash);
    size_t len = slash == path ? 1 : (size_t)(slash - path);
    assert(len < PATH_CAP);
    memcpy(out, path, len);
    out[len] = '\0';
}

static bool in_dir(const char *path, const char *dir)
{
    char parent[PATH_CAP];
    parent_of(path, parent);
    return strcmp(path, "/") != 0 && strcmp(parent, dir) == 0;
}

/* Files. */

static struct fakefile *file_create(struct fakedisk *d, bool is_dir)
{
    struct fakefile *f = fakefile_create(is_dir);
    d->files = fakefile_grow(d->files, d->file_count, &d->file_cap, sizeof(d->files[0]));
    d->files[d->file_count++] = f;
    return f;
}

/* Frees the files that neither a name nor a descriptor leads to any more. */
static void collect_files(struct fakedisk *d)
{
    for (size_t i = 0; i < d->now.count; i++) {
        d->now.items[i].file->marked = true;
    }
    for (size_t i = 0; i < d->durable.count; i++) {
        d->durable.items[i].file->marked = true;
    }
    for (size_t i = 0; i < d->entry_count; i++) {
        if (d->entries[i].file) {
            d->entries[i].file->marked = true;
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < d->file_count; i++) {
        struct fakefile *f = d->files[i];
        if (f->marked || f->open_count > 0) {
            f->marked = false;
            d->files[kept++] = f;
        } else {
            fakefile_destroy(f);
        }
    }
    d->file_count = kept;
}

static uint64_t used(const struct fakedisk *d)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < d->file_count; i++) {
        sum += d->files[i]->allocated;
    }
    return sum;
}

/* Whether `f` may occupy up to `size`, and if so it does. */
static bool occupy(struct fakedisk *d, struct fakefile *f, uint64_t size)
{
    if (size <= f->allocated) {
        return true;
    }
    if (used(d) + (size - f->allocated) > d->capacity) {
        collect_files(d);
    }
    if (used(d) + (size - f->allocated) > d->capacity) {
        return false;
    }
    f->allocated = size;
    return true;
}

/* Directory changes. */

static void note_entry(struct fakedisk *d, const struct entry_change *change)
{
    d->entries = fakefile_grow(d->entries, d->entry_count, &d->entry_cap, sizeof(d->entries[0]));
    d->entries[d->entry_count++] = *change;
}

static void apply_entry(struct names *n, const struct entry_change *c)
{
    struct fakefile *f = NULL;
    switch (c->kind) {
    case ENTRY_ADD:
        names_set(n, c->path, c->file);
        break;
    case ENTRY_REMOVE:
        names_remove(n, c->path);
        break;
    case ENTRY_RENAME:
        f = names_find(n, c->path);
        assert(f);
        names_remove(n, c->path);
        names_set(n, c->to, f);
        break;
    }
}

/* Makes up to `keep` changes of directory `dir` durable and forgets all of it. */
static void settle_dir(struct fakedisk *d, const char *dir, size_t keep)
{
    size_t left = 0;
    for (size_t i = 0; i < d->entry_count; i++) {
        struct entry_change *c = &d->entries[i];
        if (!in_dir(c->path, dir)) {
            d->entries[left++] = *c;
        } else if (keep > 0) {
            apply_entry(&d->durable, c);
            keep--;
        }
    }
    d->entry_count = left;
}

/* Removes what lies in directories that did not survive. */
static void drop_orphans(struct fakedisk *d)
{
    for (size_t i = 0; i < d->durable.count;) {
        char parent[PATH_CAP];
        const char *path = d->durable.items[i].path;
        parent_of(path, parent);
        if (strcmp(path, "/") != 0 && !names_find(&d->durable, parent)) {
            names_remove(&d->durable, path);
            i = 0;
        } else {
            i++;
        }
    }
}

static void settle_entries(struct fakedisk *d)
{
    bool lose = below(d, 4) == 0;
    bool keep = !lose && below(d, 3) == 0;
    while (d->entry_count > 0) {
        char dir[PATH_CAP];
        parent_of(d->entries[0].path, dir);
        size_t count = 0;
        for (size_t i = 0; i < d->entry_count; i++) {
            count += in_dir(d->entries[i].path, dir);
        }
        settle_dir(d, dir, lose ? 0 : keep ? count : below(d, count + 1));
    }
    drop_orphans(d);
}

/* Crash and restart. */

static uint64_t oldest_change(const struct fakedisk *d)
{
    uint64_t oldest = d->world.order;
    for (size_t i = 0; i < d->file_count; i++) {
        uint64_t order = fakefile_oldest(&d->world, d->files[i]);
        oldest = order < oldest ? order : oldest;
    }
    return oldest;
}

static void crash(struct fakedisk *d)
{
    if (d->crashed) {
        return;
    }
    d->crashed = true;
    struct fakefile_fate fate = fakefile_draw_fate(&d->world, oldest_change(d));
    for (size_t i = 0; i < d->file_count; i++) {
        fakefile_settle(&d->world, d->files[i], &fate);
    }
    settle_entries(d);
}

void fakedisk_crash(struct fakedisk *d, uint64_t seed)
{
    pthread_mutex_lock(&d->lock);
    d->world.random ^= seed * 0x9e3779b97f4a7c15u;
    crash(d);
    pthread_mutex_unlock(&d->lock);
}

bool fakedisk_crashed(const struct fakedisk *d)
{
    return d->crashed;
}

/* What the process sees after power came back is what is durable. */
static void reload(struct fakedisk *d)
{
    names_copy(&d->now, &d->durable);
    for (size_t i = 0; i < d->file_count; i++) {
        fakefile_reload(d->files[i]);
    }
}

void fakedisk_restart(struct fakedisk *d)
{
    pthread_mutex_lock(&d->lock);
    if (d->crashed) {
        reload(d);
    }
    d->crashed = false;
    d->crash_at = UINT64_MAX;
    d->fault.armed = false;
    d->fd_live = d->fd_count;
    for (size_t i = 0; i < d->file_count; i++) {
        d->files[i]->open_count = 0;
        d->files[i]->locked = false;
    }
    collect_files(d);
    pthread_mutex_unlock(&d->lock);
}

/* Every call passes here: counts it, and says whether and how it fails. *ret_partly: it fails, but
 * a part of it may happen. Takes the lock; leave gives it back. */
static int enter(struct fakedisk *d, enum fakedisk_call kind, bool changes, const char *path,
                 bool *ret_partly)
{
    if (d->hook) {
        d->hook(d->hook_context, kind, path);
    }
    if (d->guard) {
        d->guard(true);
    }
    pthread_mutex_lock(&d->lock);
    *ret_partly = false;
    uint64_t mine[] = {d->counts[kind]++, changes ? d->counts[CALL_CHANGES]++ : UINT64_MAX,
                       d->counts[CALL_ANY]++};
    if (d->crashed) {
        return ERR_IO;
    }
    struct fault *f = &d->fault;
    if (f->armed) {
        uint64_t number = f->kind == kind           ? mine[0]
                          : f->kind == CALL_CHANGES ? mine[1]
                          : f->kind == CALL_ANY     ? mine[2]
                                                    : UINT64_MAX;
        if (number != UINT64_MAX && (number == f->at || (f->for_ever && number > f->at))) {
            f->hit = true;
            *ret_partly = true;
            return f->code;
        }
    }
    if (changes && mine[1] == d->crash_at) {
        *ret_partly = true;
        return ERR_IO;
    }
    return 0;
}

static void leave(struct fakedisk *d)
{
    if (!d->crashed && d->crash_at != UINT64_MAX && d->counts[CALL_CHANGES] > d->crash_at) {
        crash(d);
    }
    if (d->guard) {
        d->guard(false);
    }
    pthread_mutex_unlock(&d->lock);
}

static struct fakefile *file_of(struct fakedisk *d, int fd)
{
    assert(fd >= FD_FIRST && (size_t)(fd - FD_FIRST) < d->fd_count);
    size_t i = (size_t)(fd - FD_FIRST);
    assert(i >= d->fd_live); /* used after the restart that closed it */
    assert(d->fds[i].file);  /* used after close */
    return d->fds[i].file;
}

static int add_fd(struct fakedisk *d, struct fakefile *f, bool holds_lock)
{
    d->fds = fakefile_grow(d->fds, d->fd_count, &d->fd_cap, sizeof(d->fds[0]));
    d->fds[d->fd_count] = (struct descriptor){.file = f, .holds_lock = holds_lock};
    f->open_count++;
    return FD_FIRST + (int)d->fd_count++;
}

/* Adds a new file or directory; ERR_NOTFOUND when its directory is not there. */
static int add_entry(struct fakedisk *d, const char *path, bool is_dir, struct fakefile **ret_file)
{
    char parent[PATH_CAP];
    parent_of(path, parent);
    struct fakefile *dir = names_find(&d->now, parent);
    if (!dir || !dir->is_dir) {
        return ERR_NOTFOUND;
    }
    struct fakefile *f = file_create(d, is_dir);
    struct entry_change c = {.kind = ENTRY_ADD, .file = f};
    int len = snprintf(c.path, sizeof(c.path), "%s", path);
    assert(len < (int)sizeof(c.path));
    names_set(&d->now, path, f);
    note_entry(d, &c);
    *ret_file = f;
    return 0;
}

static int fake_open(void *context, const char *path, bool create)
{
    struct fakedisk *d = context;
    bool partly;
    int rc = enter(d, create ? CALL_CREATE : CALL_OPEN, create, path, &partly);
    struct fakefile *f = names_find(&d->now, path);
    if (rc == 0 && create) {
        rc = f ? ERR_EXISTS : add_entry(d, path, false, &f);
    } else if (rc == 0) {
        rc = !f ? ERR_NOTFOUND : f->is_dir ? ERR_IO : 0;
    } else if (create && partly && !f && below(d, 2) == 0) {
        (void)add_entry(d, path, false, &f); /* The file is there, the caller does not know. */
    }
    if (rc == 0) {
        rc = add_fd(d, f, false);
    }
    leave(d);
    return rc;
}

static void fake_close(void *context, int fd)
{
    struct fakedisk *d = context;
    pthread_mutex_lock(&d->lock);
    size_t i = (size_t)(fd - FD_FIRST);
    assert(fd >= FD_FIRST && i < d->fd_count);
    if (i >= d->fd_live) {
        struct fakefile *f = file_of(d, fd);
        f->open_count--;
        f->locked = f->locked && !d->fds[i].holds_lock;
        d->fds[i].file = NULL;
    }
    pthread_mutex_unlock(&d->lock);
}

static int fake_pwritev(void *context, int fd, const struct iovec *iov, int count, uint64_t offset)
{
    struct fakedisk *d = context;
    bool partly;
    assert(count > 0 && count <= 1024);
    int rc = enter(d, CALL_PWRITEV, true, NULL, &partly);
    if (d->crashed) {
        leave(d);
        return rc;
    }
    struct fakefile *f = file_of(d, fd);
    size_t total = 0;
    for (int i = 0; i < count; i++) {
        total += iov[i].iov_len;
    }
    size_t write = rc == 0 ? total : partly ? below(d, total + 1) : 0;
    if (write < total) {
        /* A write that breaks off does so between pages, and so between sectors. */
        uint64_t end = (offset + write) / FAKEFILE_SECTOR * FAKEFILE_SECTOR;
        write = end > offset ? (size_t)(end - offset) : 0;
    }
    if (rc == 0 && !occupy(d, f, offset + total)) {
        rc = ERR_NOSPC;
        write = offset < f->allocated ? f->allocated - offset : 0;
    } else if (rc && !occupy(d, f, offset + write)) {
        write = 0;
    }
    for (int i = 0; i < count && write > 0; i++) {
        size_t part = iov[i].iov_len < write ? iov[i].iov_len : write;
        if (part > 0) {
            fakefile_put(&d->world, f, offset, iov[i].iov_base, part);
        }
        offset += part;
        write -= part;
    }
    leave(d);
    return rc;
}

static int64_t fake_pread(void *context, int fd, void *buf, size_t len, uint64_t offset)
{
    struct fakedisk *d = context;
    bool partly;
    int64_t rc = enter(d, CALL_PREAD, false, NULL, &partly);
    if (rc == 0) {
        struct fakefile *f = file_of(d, fd);
        uint64_t left = offset < f->now_size ? f->now_size - offset : 0;
        size_t n = len < left ? len : (size_t)left;
        if (n > 0) {
            memcpy(buf, f->now + offset, n);
        }
        rc = (int64_t)n;
    }
    leave(d);
    return rc;
}

static int fake_fdatasync(void *context, int fd)
{
    struct fakedisk *d = context;
    bool partly;
    int rc = enter(d, CALL_FDATASYNC, true, NULL, &partly);
    if (!d->crashed) {
        struct fakefile *f = file_of(d, fd);
        if (rc == 0) {
            fakefile_sync(f);
        } else if (partly && d->fault.hit) {
            fakefile_fail_sync(&d->world, f);
        } else if (below(d, 2) == 0) {
            fakefile_sync(f); /* A crash right behind it. */
        }
    }
    leave(d);
    return rc;
}

static int fake_allocate(void *context, int fd, uint64_t size_bytes)
{
    struct fakedisk *d = context;
    bool partly;
    int rc = enter(d, CALL_ALLOCATE, true, NULL, &partly);
    if (!d->crashed) {
        struct fakefile *f = file_of(d, fd);
        bool happens = rc == 0 || below(d, 2) == 0;
        if (happens && !occupy(d, f, size_bytes)) {
            rc = rc ? rc : ERR_NOSPC;
        } else if (happens && size_bytes > f->now_size) {
            fakefile_resize(&d->world, f, size_bytes);
        }
    }
    leave(d);
    return rc;
}

static int fake_truncate(void *context, int fd, uint64_t size_bytes)
{
    struct fakedisk *d = context;
    bool partly;
    int rc = enter(d, CALL_TRUNCATE, true, NULL, &partly);
    if (!d->crashed && (rc == 0 || below(d, 2) == 0)) {
        struct fakefile *f = file_of(d, fd);
        fakefile_resize(&d->world, f, size_bytes);
        f->allocated = f->allocated < size_bytes ? f->allocated : size_bytes;
    }
    leave(d);
    return rc;
}

static int64_t fake_size(void *context, int fd)
{
    struct fakedisk *d = context;
    bool partly;
    int64_t rc = enter(d, CALL_SIZE, false, NULL, &partly);
    if (rc == 0) {
        rc = (int64_t)file_of(d, fd)->now_size;
    }
    leave(d);
    return rc;
}

static int64_t fake_free_bytes(void *context, const char *path)
{
    struct fakedisk *d = context;
    (void)path; /* one file system */
    pthread_mutex_lock(&d->lock);
    collect_files(d);
    uint64_t bytes = used(d);
    bytes = bytes < d->capacity ? d->capacity - bytes : 0;
    pthread_mutex_unlock(&d->lock);
    return bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX;
}

static int fake_rename(void *context, const char *from, const char *to)
{
    struct fakedisk *d = context;
    bool partly;
    int rc = enter(d, CALL_RENAME, true, from, &partly);
    if (!d->crashed) {
        struct fakefile *f = names_find(&d->now, from);
        if (!f) {
            rc = rc ? rc : ERR_NOTFOUND;
        } else if (rc == 0 || below(d, 2) == 0) {
            struct entry_change c = {.kind = ENTRY_RENAME};
            (void)snprintf(c.path, sizeof(c.path), "%s", from);
            (void)snprintf(c.to, sizeof(c.to), "%s", to);
            char parent[PATH_CAP];
            parent_of(from, parent);
            assert(in_dir(to, parent) && !f->is_dir);
            apply_entry(&d->now, &c);
            note_entry(d, &c);
        }
    }
    leave(d);
    return rc;
}

static int fake_unlink(void *context, const char *path)
{
    struct fakedisk *d = context;
    bool partly;
    int rc = enter(d, CALL_UNLINK, true, path, &partly);
    if (!d->crashed) {
        struct fakefile *f = names_find(&d->now, path);
        if (!f) {
            rc = rc ? rc : ERR_NOTFOUND;
        } else if (rc == 0 || below(d, 2) == 0) {
            struct entry_change c = {.kind = ENTRY_REMOVE};
            (void)snprintf(c.path, sizeof(c.path), "%s", path);
            apply_entry(&d->now, &c);
            note_entry(d, &c);
        }
    }
    leave(d);
    return rc;
}

static int fake_mkdir(void *context, const char *path)
{
    struct fakedisk *d = context;
    bool partly;
    int rc = enter(d, CALL_MKDIR, true, path, &partly);
    if (!d->crashed && (rc == 0 || below(d, 2) == 0)) {
        struct fakefile *f = names_find(&d->now, path);
        int added = f ? 0 : add_entry(d, path, true, &f);
        rc = rc ? rc : added ? added : f->is_dir ? 0 : ERR_EXISTS;
    }
    leave(d);
    return rc;
}

static int fake_sync_dir(void *context, const char *path)
{
    struct fakedisk *d = context;
    bool partly;
    int rc = enter(d, CALL_SYNC_DIR, true, path, &partly);
    if (!d->crashed) {
        struct fakefile *f = names_find(&d->now, path);
        if (!f || !f->is_dir) {
            rc = rc ? rc : ERR_NOTFOUND;
        } else if (rc == 0 || below(d, 2) == 0) {
            settle_dir(d, path, SIZE_MAX);
            collect_files(d);
        }
    }
    leave(d);
    return rc;
}

/* The names in a directory, copied so that the callback may use the disk. */
static struct names copy_dir(struct fakedisk *d, const char *path)
{
    struct names copy = {0};
    for (size_t i = 0; i < d->now.count; i++) {
        if (in_dir(d->now.items[i].path, path)) {
            names_set(&copy, d->now.items[i].path, d->now.items[i].file);
        }
    }
    for (size_t i = copy.count; i > 1; i--) {
        size_t j = below(d, i);
        struct name swap = copy.items[i - 1];
        copy.items[i - 1] = copy.items[j];
        copy.items[j] = swap;
    }
    return copy;
}

static int fake_list_dir(void *context, const char *path, sys_entry_fn each, void *each_context)
{
    struct fakedisk *d = context;
    bool partly;
    int rc = enter(d, CALL_LIST_DIR, false, path, &partly);
    struct names copy = {0};
    if (rc == 0) {
        rc = names_find(&d->now, path) ? 0 : ERR_NOTFOUND;
        copy = copy_dir(d, path);
    }
    leave(d);
    for (size_t i = 0; i < copy.count && rc == 0; i++) {
        rc = each(each_context, strrchr(copy.items[i].path, '/') + 1);
    }
    free(copy.items);
    return rc;
}

static int fake_lock(void *context, const char *path)
{
    struct fakedisk *d = context;
    bool partly;
    int rc = enter(d, CALL_LOCK, true, path, &partly);
    if (rc == 0) {
        struct fakefile *f = names_find(&d->now, path);
        rc = f ? 0 : add_entry(d, path, false, &f);
        if (rc == 0 && f->locked) {
            rc = ERR_LOCKED;
        }
        if (rc == 0) {
            f->locked = true;
            rc = add_fd(d, f, true);
        }
    }
    leave(d);
    return rc;
}

static int fake_catalog_commit(void *context)
{
    struct fakedisk *d = context;
    bool partly;
    int rc = enter(d, CALL_COMMIT, true, NULL, &partly);
    leave(d);
    return rc;
}

static int64_t fake_now_ms(void *context)
{
    struct fakedisk *d = context;
    pthread_mutex_lock(&d->lock);
    int64_t now = d->now_ms;
    pthread_mutex_unlock(&d->lock);
    return now;
}

static uint64_t fake_mono_ms(void *context)
{
    struct fakedisk *d = context;
    pthread_mutex_lock(&d->lock);
    uint64_t now = d->mono_ms;
    pthread_mutex_unlock(&d->lock);
    return now;
}

static uint64_t fake_mono_us(void *context)
{
    return fake_mono_ms(context) * 1000;
}

static void fake_random(void *context, void *buf, size_t len)
{
    struct fakedisk *d = context;
    pthread_mutex_lock(&d->lock);
    for (size_t i = 0; i < len; i++) {
        ((uint8_t *)buf)[i] = (uint8_t)below(d, 256);
    }
    pthread_mutex_unlock(&d->lock);
}

struct fakedisk *fakedisk_create(uint64_t seed)
{
    struct fakedisk *d = calloc(1, sizeof(*d));
    assert(d);
    pthread_mutex_init(&d->lock, NULL);
    d->world.random = seed;
    d->crash_at = UINT64_MAX;
    d->capacity = UINT64_MAX;
    d->now_ms = INT64_C(1767225600000);
    d->sys = (struct sys){.context = d,
                          .open = fake_open,
                          .close = fake_close,
                          .pwritev = fake_pwritev,
                          .pread = fake_pread,
                          .fdatasync = fake_fdatasync,
                          .allocate = fake_allocate,
                          .truncate = fake_truncate,
                          .size = fake_size,
                          .free_bytes = fake_free_bytes,
                          .rename = fake_rename,
                          .unlink = fake_unlink,
                          .mkdir = fake_mkdir,
                          .sync_dir = fake_sync_dir,
                          .list_dir = fake_list_dir,
                          .lock = fake_lock,
                          .catalog_commit = fake_catalog_commit,
                          .now_ms = fake_now_ms,
                          .mono_ms = fake_mono_ms,
                          .mono_us = fake_mono_us,
                          .random = fake_random};
    struct fakefile *root = file_create(d, true);
    names_set(&d->now, "/", root);
    names_set(&d->durable, "/", root);
    return d;
}

void fakedisk_destroy(struct fakedisk *d)
{
    for (size_t i = 0; i < d->file_count; i++) {
        fakefile_destroy(d->files[i]);
    }
    free(d->files);
    free(d->now.items);
    free(d->durable.items);
    free(d->entries);
    free(d->fds);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

struct sys *fakedisk_sys(struct fakedisk *d)
{
    return &d->sys;
}

void fakedisk_add_dir(struct fakedisk *d, const char *path)
{
    if (names_find(&d->now, path)) {
        return;
    }
    char parent[PATH_CAP];
    parent_of(path, parent);
    fakedisk_add_dir(d, parent);
    struct fakefile *f = file_create(d, true);
    names_set(&d->now, path, f);
    names_set(&d->durable, path, f);
}

uint64_t fakedisk_calls(const struct fakedisk *d, enum fakedisk_call kind)
{
    return d->counts[kind];
}

void fakedisk_fail(struct fakedisk *d, enum fakedisk_call kind, uint64_t index, int code,
                   bool for_ever)
{
    pthread_mutex_lock(&d->lock);
    d->fault = (struct fault){.armed = code != 0,
                              .kind = kind,
                              .at = d->counts[kind] + index,
                              .code = code,
                              .for_ever = for_ever};
    pthread_mutex_unlock(&d->lock);
}

bool fakedisk_fault_hit(const struct fakedisk *d)
{
    return d->fault.hit;
}

void fakedisk_crash_at(struct fakedisk *d, uint64_t index)
{
    pthread_mutex_lock(&d->lock);
    d->crash_at = index == UINT64_MAX ? index : d->counts[CALL_CHANGES] + index;
    pthread_mutex_unlock(&d->lock);
}

void fakedisk_set_capacity(struct fakedisk *d, uint64_t bytes)
{
    pthread_mutex_lock(&d->lock);
    d->capacity = bytes;
    pthread_mutex_unlock(&d->lock);
}

uint64_t fakedisk_used(struct fakedisk *d)
{
    pthread_mutex_lock(&d->lock);
    collect_files(d);
    uint64_t sum = used(d);
    pthread_mutex_unlock(&d->lock);
    return sum;
}

void fakedisk_set_hook(struct fakedisk *d, fakedisk_hook_fn hook, void *context)
{
    d->hook = hook;
    d->hook_context = context;
}

void fakedisk_set_guard(struct fakedisk *d, void (*guard)(bool inside))
{
    d->guard = guard;
}

void fakedisk_advance(struct fakedisk *d, uint64_t ms)
{
    pthread_mutex_lock(&d->lock);
    d->now_ms += (int64_t)ms;
    d->mono_ms += ms;
    pthread_mutex_unlock(&d->lock);
}

void fakedisk_set_now(struct fakedisk *d, int64_t now_ms)
{
    pthread_mutex_lock(&d->lock);
    d->now_ms = now_ms;
    pthread_mutex_unlock(&d->lock);
}

bool fakedisk_file_size(struct fakedisk *d, const char *path, uint64_t *ret_bytes)
{
    struct fakefile *f = names_find(&d->now, path);
    if (f) {
        *ret_bytes = f->now_size;
    }
    return f != NULL;
}

bool fakedisk_peek(struct fakedisk *d, const char *path, uint64_t at, void *out, size_t len)
{
    struct fakefile *f = names_find(&d->now, path);
    if (!f || at > f->now_size || len > f->now_size - at) {
        return false;
    }
    memcpy(out, f->now + at, len);
    return true;
}

bool fakedisk_poke(struct fakedisk *d, const char *path, uint64_t at, const void *bytes, size_t len)
{
    struct fakefile *f = names_find(&d->now, path);
    if (!f) {
        return false;
    }
    fakefile_put(&d->world, f, at, bytes, len);
    fakefile_sync(f);
    return true;
}

bool fakedisk_cut(struct fakedisk *d, const char *path, uint64_t size_bytes)
{
    struct fakefile *f = names_find(&d->now, path);
    if (!f) {
        return false;
    }
    fakefile_resize(&d->world, f, size_bytes);
    fakefile_sync(f);
    return true;
}

bool fakedisk_remove(struct fakedisk *d, const char *path)
{
    bool there = names_find(&d->now, path) != NULL;
    char dir[PATH_CAP];
    parent_of(path, dir);
    settle_dir(d, dir, SIZE_MAX);
    names_remove(&d->now, path);
    names_remove(&d->durable, path);
    return there;
}

void fakedisk_copy(struct fakedisk *d, struct fakedisk *to)
{
    to->now_ms = d->now_ms;
    to->mono_ms = d->mono_ms;
    for (size_t i = 0; i < d->now.count; i++) {
        const struct name *n = &d->now.items[i];
        if (n->file->is_dir) {
            fakedisk_add_dir(to, n->path);
            continue;
        }
        char parent[PATH_CAP];
        parent_of(n->path, parent);
        fakedisk_add_dir(to, parent);
        struct fakefile *f = file_create(to, false);
        names_set(&to->now, n->path, f);
        names_set(&to->durable, n->path, f);
        (void)occupy(to, f, n->file->now_size);
        fakefile_resize(&to->world, f, n->file->now_size);
        if (n->file->now_size > 0) {
            fakefile_put(&to->world, f, 0, n->file->now, n->file->now_size);
        }
        fakefile_sync(f);
    }
}
