/* A pack is DIR/packs/pack-NNNNNNNNNNNNNNNN, N its id in hexadecimal (all numbers little-endian):
 *
 *   0  u64 magic   "arbepak1"
 *   8  u32 format  1
 *  12  u32 zero
 *  16  u8[16] uuid of the data directory
 *  32  u64 id
 *  40  u8[20] zero
 *  60  u32 crc     CRC-32C over bytes 0..59
 *  64  extents, one behind the other, until the end of the file
 *
 * An extent is a header of 48 bytes, the data, the marks. With the headers a pack can be proven and
 * its contents told without the catalog.
 *
 *   0  u32 magic      "ext1"
 *   4  u32 header_crc CRC-32C over bytes 8..47
 *   8  u64 pack id
 *  16  u64 stream id
 *  24  u64 start      offset in the stream
 *  32  u32 len        of the data
 *  36  u32 marks_len
 *  40  u32 crc        CRC-32C over data and marks
 *  44  u32 marks_crc  CRC-32C over the marks
 *
 * A pack counts once a catalog transaction names it; that comes after the pack was synced. A crash
 * before leaves a file that nobody names, which the sweep at the next start removes. A crash
 * between the transaction that forgets a pack and the unlink leaves the same. */
#include "log/pack.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/crc32c.h"
#include "base/limits.h"
#include "log/pack_format.h"

#define WRITER_BUFFER_BYTES MIB
#define WRITER_DIRECT_BYTES (256u * KIB) /* a piece of this size is not copied */
#define WRITER_SYNC_BYTES   (8u * MIB)   /* synced on the way, so that no commit waits behind all */
#define PACK_PATH_MAX       1200u

struct pack_set {
    struct sys *sys;
    uint8_t uuid[16];
    char path[PACK_PATH_MAX - 64];
    pthread_mutex_t lock; /* guards what follows */
    struct map open;      /* struct pack by id */
    struct list idle;     /* struct pack without references, idlest first */
    unsigned holds;       /* pack_set_hold without pack_set_unhold so far */
    bool hold_lost;       /* a file went while it was held */
    pack_id *dropped;     /* owned; packs whose files stay until the last hold ends */
    size_t dropped_count;
    size_t dropped_cap;
};

static void format_path(const struct pack_set *s, pack_id id, char *out)
{
    char name[PACK_NAME_BYTES];
    pack_format_name(id, name);
    int len = snprintf(out, PACK_PATH_MAX, "%s/%s", s->path, name);
    assert(len > 0 && len < (int)PACK_PATH_MAX);
}

/* 0 when the file is pack `id` of this directory. */
static int prove_header(const struct pack_set *s, int fd, pack_id id)
{
    uint8_t found[PACK_HEADER_BYTES];
    uint8_t wanted[PACK_HEADER_BYTES];
    int64_t n = s->sys->pread(s->sys->context, fd, found, sizeof(found), 0);
    if (n < 0) {
        return (int)n;
    }
    pack_encode_header(s->uuid, id, wanted);
    bool same = n == (int64_t)sizeof(found) && memcmp(found, wanted, sizeof(found)) == 0;
    return same ? 0 : ERR_CORRUPT;
}

int pack_set_open(struct sys *sys, const char *dir, const uint8_t uuid[static 16],
                  struct pack_set **ret_set, struct errmsg *msg)
{
    struct pack_set *s = calloc(1, sizeof(*s));
    if (!s) {
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    int len = snprintf(s->path, sizeof(s->path), "%s", dir);
    if (len < 0 || (size_t)len >= sizeof(s->path)) {
        free(s);
        return err_set(msg, ERR_INVALID, "the path of the packs is too long");
    }
    int rc = sys->mkdir(sys->context, dir);
    if (rc) {
        free(s);
        return err_set(msg, rc, "cannot make the directory %s: %s", dir, err_file_text(rc));
    }
    s->sys = sys;
    memcpy(s->uuid, uuid, sizeof(s->uuid));
    pthread_mutex_init(&s->lock, NULL);
    map_init(&s->open);
    list_init(&s->idle);
    *ret_set = s;
    return 0;
}

static struct pack *pack_of_idle(struct list *node)
{
    return container_of(node, struct pack, idle);
}

/* Takes a pack without references out of the set; with the lock held. The caller closes it. */
static void forget(struct pack_set *s, struct pack *p)
{
    assert(p->refs == 0);
    list_remove(&p->idle);
    map_remove(&s->open, &p->node);
}

static void close_pack(struct pack *p)
{
    struct sys *sys = p->set->sys;
    sys->close(sys->context, p->fd);
    free(p);
}

void pack_set_close(struct pack_set *s)
{
    if (!s) {
        return;
    }
    LIST_FOR_EACH(node, &s->idle)
    {
        struct pack *p = pack_of_idle(node);
        forget(s, p);
        close_pack(p);
    }
    assert(s->open.count == 0);
    assert(s->holds == 0);
    free(s->dropped);
    map_finish(&s->open);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* Sweeping. */

struct sweep {
    pack_id *found; /* owned */
    size_t count;
    size_t cap;
};

static int add_found(void *context, const char *name)
{
    struct sweep *w = context;
    pack_id id = 0;
    if (!pack_parse_name(name, &id)) {
        return 0;
    }
    if (w->count == w->cap) {
        size_t cap = w->cap ? w->cap * 2 : 64;
        pack_id *found = realloc(w->found, cap * sizeof(found[0]));
        if (!found) {
            return ERR_NOMEM;
        }
        w->found = found;
        w->cap = cap;
    }
    w->found[w->count++] = id;
    return 0;
}

static bool is_known(const pack_id *known, size_t count, pack_id id)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (known[middle] < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < count && known[low] == id;
}

/* Whether a file that nobody names may go: below 0 an error, 0 no, 1 yes. */
static int is_leftover(struct pack_set *s, const char *path, pack_id id)
{
    struct sys *sys = s->sys;
    int fd = sys->open(sys->context, path, false);
    if (fd < 0) {
        return fd;
    }
    int64_t size = sys->size(sys->context, fd);
    int rc = size < 0 ? (int)size : 1;
    if (size > 0) {
        int proof = prove_header(s, fd, id);
        rc = proof == ERR_CORRUPT ? 0 : proof < 0 ? proof : 1;
    }
    sys->close(sys->context, fd);
    return rc;
}

static int sweep_file(struct pack_set *s, pack_id id, struct pack_sweep *ret_sweep)
{
    char path[PACK_PATH_MAX];
    char aside[PACK_PATH_MAX + 16];
    format_path(s, id, path);
    int leftover = is_leftover(s, path, id);
    if (leftover < 0) {
        return leftover;
    }
    if (leftover) {
        ret_sweep->removed++;
        return s->sys->unlink(s->sys->context, path);
    }
    /* Ids are never given out twice, so no file of that name is lost. */
    (void)snprintf(aside, sizeof(aside), "%s.damaged", path);
    ret_sweep->set_aside++;
    return s->sys->rename(s->sys->context, path, aside);
}

int pack_set_sweep(struct pack_set *s, const pack_id *known, size_t known_count,
                   struct pack_sweep *ret_sweep)
{
    struct sweep w = {0};
    struct pack_sweep result = {.missing = known_count};
    int rc = s->sys->list_dir(s->sys->context, s->path, add_found, &w);
    for (size_t i = 0; i < w.count && rc == 0; i++) {
        if (is_known(known, known_count, w.found[i])) {
            result.missing--;
        } else {
            rc = sweep_file(s, w.found[i], &result);
        }
    }
    free(w.found);
    if (rc == 0) {
        *ret_sweep = result;
    }
    return rc;
}

/* Open packs. */

static uint64_t hash_id(pack_id id)
{
    return id * 0x9e3779b97f4a7c15u; /* spreads consecutive ids over the table */
}

/* References an open pack; with the lock held. */
static struct pack *find_open(struct pack_set *s, pack_id id)
{
    for (struct map_node *n = map_find(&s->open, hash_id(id)); n; n = map_find_next(n)) {
        struct pack *p = container_of(n, struct pack, node);
        if (p->id == id) {
            list_remove(&p->idle);
            p->refs++;
            return p;
        }
    }
    return NULL;
}

struct pack *pack_try_get(struct pack_set *s, pack_id id)
{
    pthread_mutex_lock(&s->lock);
    struct pack *p = find_open(s, id);
    pthread_mutex_unlock(&s->lock);
    return p;
}

/* Opens and proves the file of a pack. */
static int open_pack(struct pack_set *s, pack_id id, struct pack **ret_pack)
{
    struct sys *sys = s->sys;
    char path[PACK_PATH_MAX];
    format_path(s, id, path);
    struct pack *p = malloc(sizeof(*p));
    if (!p) {
        return ERR_NOMEM;
    }
    int fd = sys->open(sys->context, path, false);
    int rc = fd < 0 ? fd : prove_header(s, fd, id);
    if (rc) {
        if (fd >= 0) {
            sys->close(sys->context, fd);
        }
        free(p);
        return rc;
    }
    *p = (struct pack){.id = id, .fd = fd, .set = s, .refs = 1};
    list_init(&p->idle);
    *ret_pack = p;
    return 0;
}

/* Makes `opened` the pack of its id, unless another thread was faster; with the lock held. Returns
 * the one to use; *ret_close, when set, is to be closed without the lock. */
static struct pack *install(struct pack_set *s, struct pack *opened, struct pack **ret_close)
{
    struct pack *p = find_open(s, opened->id);
    if (p) {
        opened->refs = 0;
        *ret_close = opened;
        return p;
    }
    if (s->open.count >= PACK_FDS_MAX && !list_empty(&s->idle)) {
        *ret_close = pack_of_idle(list_first(&s->idle));
        forget(s, *ret_close);
    }
    if (map_insert(&s->open, &opened->node, hash_id(opened->id))) {
        opened->dropped = true; /* No memory to remember it: it serves this reader and is closed. */
    }
    return opened;
}

int pack_get(struct pack_set *s, pack_id id, struct pack **ret_pack)
{
    struct pack *p = pack_try_get(s, id);
    if (p) {
        *ret_pack = p;
        return 0;
    }
    struct pack *opened = NULL;
    int rc = open_pack(s, id, &opened);
    if (rc) {
        return rc;
    }
    struct pack *idlest = NULL;
    pthread_mutex_lock(&s->lock);
    p = install(s, opened, &idlest);
    pthread_mutex_unlock(&s->lock);
    if (idlest) {
        close_pack(idlest);
    }
    *ret_pack = p;
    return 0;
}

void pack_unref(struct pack *p)
{
    if (!p) {
        return;
    }
    struct pack_set *s = p->set;
    pthread_mutex_lock(&s->lock);
    assert(p->refs > 0);
    bool last = --p->refs == 0;
    bool close = last && p->dropped;
    if (last && !close) {
        list_append(&s->idle, &p->idle);
    }
    pthread_mutex_unlock(&s->lock);
    if (close) {
        close_pack(p);
    }
}

static void unlink_pack(struct pack_set *s, pack_id id)
{
    char path[PACK_PATH_MAX];
    format_path(s, id, path);
    (void)s->sys->unlink(s->sys->context, path); /* What stays is removed by the next sweep. */
}

/* Whether the file must stay for now; then it is remembered. */
static bool keep_file(struct pack_set *s, pack_id id)
{
    pthread_mutex_lock(&s->lock);
    bool keep = s->holds > 0;
    if (keep && s->dropped_count == s->dropped_cap) {
        size_t cap = s->dropped_cap ? s->dropped_cap * 2 : 16;
        pack_id *dropped = realloc(s->dropped, cap * sizeof(dropped[0]));
        keep = dropped != NULL;
        s->hold_lost = s->hold_lost || !keep;
        s->dropped = keep ? dropped : s->dropped;
        s->dropped_cap = keep ? cap : s->dropped_cap;
    }
    if (keep) {
        s->dropped[s->dropped_count++] = id;
    }
    pthread_mutex_unlock(&s->lock);
    return keep;
}

void pack_set_hold(struct pack_set *s)
{
    pthread_mutex_lock(&s->lock);
    s->holds++;
    pthread_mutex_unlock(&s->lock);
}

bool pack_set_hold_lost(struct pack_set *s)
{
    pthread_mutex_lock(&s->lock);
    bool lost = s->hold_lost;
    pthread_mutex_unlock(&s->lock);
    return lost;
}

void pack_set_unhold(struct pack_set *s)
{
    pack_id *dropped = NULL;
    size_t count = 0;
    pthread_mutex_lock(&s->lock);
    assert(s->holds > 0);
    if (--s->holds == 0) {
        dropped = s->dropped;
        count = s->dropped_count;
        s->dropped = NULL;
        s->dropped_count = 0;
        s->dropped_cap = 0;
        s->hold_lost = false;
    }
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < count; i++) {
        unlink_pack(s, dropped[i]);
    }
    free(dropped);
}

void pack_set_drop(struct pack_set *s, pack_id id)
{
    if (!keep_file(s, id)) {
        unlink_pack(s, id);
    }
    pthread_mutex_lock(&s->lock);
    struct pack *p = find_open(s, id);
    if (p) {
        map_remove(&s->open, &p->node);
        p->dropped = true;
    }
    pthread_mutex_unlock(&s->lock);
    pack_unref(p);
}

/* Reading. */

/* Reads exactly `len` bytes. */
static int read_exactly(struct pack_set *s, const struct pack *p, uint64_t at, void *out,
                        size_t len)
{
    int64_t n = s->sys->pread(s->sys->context, p->fd, out, len, at);
    if (n < 0) {
        return (int)n;
    }
    return n == (int64_t)len ? 0 : ERR_CORRUPT;
}

/* Proves what precedes an extent in its pack and takes the checksum of its marks from it. */
static int read_marks_crc(struct pack_set *s, const struct pack *p, const struct extent *e,
                          uint32_t *ret_crc)
{
    uint8_t header[PACK_EXTENT_HEADER_BYTES];
    if (e->at < PACK_HEADER_BYTES + PACK_EXTENT_HEADER_BYTES) {
        return ERR_CORRUPT;
    }
    int rc = read_exactly(s, p, e->at - PACK_EXTENT_HEADER_BYTES, header, sizeof(header));
    if (rc) {
        return rc;
    }
    struct pack_extent_header h;
    rc = pack_decode_extent_header(header, &h);
    if (rc || h.pack != e->pack || h.start != e->start || h.len != e->len ||
        h.marks_len != e->marks_len || h.crc != e->crc) {
        return ERR_CORRUPT;
    }
    *ret_crc = h.marks_crc;
    return 0;
}

int pack_read_marks(struct pack_set *s, const struct extent *e, void *out)
{
    struct pack *p = NULL;
    int rc = pack_get(s, e->pack, &p);
    if (rc) {
        return rc;
    }
    uint32_t crc = 0;
    rc = read_marks_crc(s, p, e, &crc);
    rc = rc ? rc : read_exactly(s, p, e->at + e->len, out, e->marks_len);
    if (rc == 0 && crc32c(0, out, e->marks_len) != crc) {
        rc = ERR_CORRUPT;
    }
    pack_unref(p);
    return rc;
}

int pack_read_extent(struct pack_set *s, const struct extent *e, void *data, void *marks)
{
    struct pack *p = NULL;
    int rc = pack_get(s, e->pack, &p);
    if (rc) {
        return rc;
    }
    rc = read_exactly(s, p, e->at, data, e->len);
    rc = rc ? rc : read_exactly(s, p, e->at + e->len, marks, e->marks_len);
    if (rc == 0 && crc32c(crc32c(0, data, e->len), marks, e->marks_len) != e->crc) {
        rc = ERR_CORRUPT;
    }
    pack_unref(p);
    return rc;
}

/* Writing. */

struct pack_writer {
    struct pack_set *set;
    pack_id id;
    int fd;
    bool sync;
    bool finished;
    int error;       /* sticky */
    uint64_t bytes;  /* written or in the buffer */
    uint64_t synced; /* bytes at the last sync */
    size_t len;      /* of the buffer in use */
    char buffer[WRITER_BUFFER_BYTES];
};

pack_id pack_writer_id(const struct pack_writer *w)
{
    return w->id;
}

uint64_t pack_writer_bytes(const struct pack_writer *w)
{
    return w->bytes;
}

static void write_at(struct pack_writer *w, const void *bytes, size_t len, uint64_t at)
{
    struct sys *sys = w->set->sys;
    if (w->error == 0 && len > 0) {
        struct iovec iov = {(void *)(uintptr_t)bytes, len};
        w->error = sys->pwritev(sys->context, w->fd, &iov, 1, at);
    }
    if (w->error == 0 && w->sync && at + len - w->synced >= WRITER_SYNC_BYTES) {
        w->error = sys->fdatasync(sys->context, w->fd);
        w->synced = at + len;
    }
}

static void flush(struct pack_writer *w)
{
    write_at(w, w->buffer, w->len, w->bytes - w->len);
    w->len = 0;
}

static void put(struct pack_writer *w, const void *bytes, size_t len)
{
    if (len > sizeof(w->buffer) - w->len || len >= WRITER_DIRECT_BYTES) {
        flush(w);
    }
    if (len >= WRITER_DIRECT_BYTES) {
        write_at(w, bytes, len, w->bytes);
    } else if (len > 0) {
        memcpy(w->buffer + w->len, bytes, len);
        w->len += len;
    }
    w->bytes += len;
}

/* Creates the file. One of that name is left over from a checkpoint that failed before. */
static int create_file(struct pack_set *s, pack_id id)
{
    struct sys *sys = s->sys;
    char path[PACK_PATH_MAX];
    format_path(s, id, path);
    int fd = sys->open(sys->context, path, true);
    if (fd == ERR_EXISTS) {
        int rc = sys->unlink(sys->context, path);
        fd = rc ? rc : sys->open(sys->context, path, true);
    }
    return fd;
}

int pack_writer_create(struct pack_set *s, pack_id id, bool sync, struct pack_writer **ret_writer)
{
    assert(id != 0);
    struct pack_writer *w = malloc(sizeof(*w));
    if (!w) {
        return ERR_NOMEM;
    }
    int fd = create_file(s, id);
    if (fd < 0) {
        free(w);
        return fd;
    }
    w->set = s;
    w->id = id;
    w->fd = fd;
    w->sync = sync;
    w->finished = false;
    w->error = 0;
    w->bytes = 0;
    w->synced = 0;
    w->len = 0;
    uint8_t header[PACK_HEADER_BYTES];
    pack_encode_header(s->uuid, id, header);
    put(w, header, sizeof(header));
    *ret_writer = w;
    return 0;
}

int pack_writer_add(struct pack_writer *w, stream_id id, uint64_t start, const struct slice *pieces,
                    size_t piece_count, struct slice marks, struct extent *ret_extent)
{
    uint64_t len = 0;
    uint32_t crc = 0;
    for (size_t i = 0; i < piece_count; i++) {
        crc = crc32c(crc, pieces[i].ptr, pieces[i].len);
        len += pieces[i].len;
    }
    assert(!w->finished);
    assert(len > 0 && len <= EXTENT_MESSAGE_BYTES_MAX);
    assert(marks.len <= UINT32_MAX);
    struct extent e = {.start = start,
                       .len = (uint32_t)len,
                       .marks_len = (uint32_t)marks.len,
                       .pack = w->id,
                       .at = w->bytes + PACK_EXTENT_HEADER_BYTES,
                       .crc = crc32c(crc, marks.ptr, marks.len)};
    uint8_t header[PACK_EXTENT_HEADER_BYTES];
    const struct pack_extent_header h = {.pack = w->id,
                                         .id = id,
                                         .start = start,
                                         .len = e.len,
                                         .marks_len = e.marks_len,
                                         .crc = e.crc,
                                         .marks_crc = crc32c(0, marks.ptr, marks.len)};
    pack_encode_extent_header(&h, header);
    put(w, header, sizeof(header));
    for (size_t i = 0; i < piece_count; i++) {
        put(w, pieces[i].ptr, pieces[i].len);
    }
    put(w, marks.ptr, marks.len);
    if (w->error == 0) {
        *ret_extent = e;
    }
    return w->error;
}

int pack_writer_finish(struct pack_writer *w)
{
    struct sys *sys = w->set->sys;
    flush(w);
    if (w->error == 0 && w->sync) {
        w->error = sys->fdatasync(sys->context, w->fd);
        if (w->error == 0) {
            w->error = sys->sync_dir(sys->context, w->set->path);
        }
    }
    w->finished = w->error == 0;
    return w->error;
}

void pack_writer_destroy(struct pack_writer *w)
{
    if (!w) {
        return;
    }
    struct sys *sys = w->set->sys;
    sys->close(sys->context, w->fd);
    if (!w->finished) {
        char path[PACK_PATH_MAX];
        format_path(w->set, w->id, path);
        (void)sys->unlink(sys->context, path); /* What stays is removed by the next sweep. */
    }
    free(w);
}
