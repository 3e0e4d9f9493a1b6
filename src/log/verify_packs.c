/* The tables packs and pack_extents are walked side by side, both sorted by pack; with each pack
 * its file is read once from the front. Only what extents refer to is proven: nobody reads the rest
 * of a pack any more, and it may go at any moment. */
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/limits.h"
#include "log/catalog_value.h"
#include "log/marks.h"
#include "log/pack_format.h"
#include "log/verify_parts.h"

#define READ_BYTES      MIB
#define FILE_NAME_BYTES (PACK_NAME_BYTES + 8u)

struct packs {
    struct verify *verify;
    struct btree_cursor index;
    bool any;     /* an entry of the index is at hand */
    pack_id pack; /* of it */
    uint64_t at;  /* likewise */
    stream_id id; /* likewise */
    uint64_t start;
    char *bytes; /* owned; READ_BYTES */
    char *marks; /* owned; of one extent */
    size_t marks_cap;
};

/* The pack being looked at. */
struct pack_file {
    pack_id id;
    char name[FILE_NAME_BYTES]; /* packs/pack-... */
    int fd;                     /* below 0: it cannot be read */
    uint64_t bytes;             /* of the file */
    uint64_t total;             /* as the catalog says */
    uint64_t live;              /* of extents so far */
    uint64_t end;               /* of the last extent */
};

static void next_entry(struct packs *p)
{
    struct slice key;
    struct slice value;
    p->any = false;
    while (!p->any && verify_next(p->verify, TABLE_PACK_EXTENTS, &p->index, &key, &value)) {
        if (catalog_decode_pair_key(key, &p->pack, &p->at) ||
            catalog_decode_pair(value, &p->id, &p->start)) {
            verify_tell(p->verify, VERIFY_DAMAGE, CATALOG_FILE,
                        "table pack_extents: an entry does not decode: compaction of its pack "
                        "fails");
        } else {
            p->any = true;
        }
    }
}

static void open_file(struct packs *p, struct pack_file *f)
{
    struct verify *v = p->verify;
    struct sys *sys = v->sys;
    char path[VERIFY_PATH_MAX];
    char header[PACK_HEADER_BYTES];
    char wanted[PACK_HEADER_BYTES];
    verify_path(v, f->name, path);
    f->fd = sys->open_read(sys->context, path);
    int64_t size = f->fd < 0 ? f->fd : sys->size(sys->context, f->fd);
    if (size < 0) {
        verify_tell(v, VERIFY_DAMAGE, f->name,
                    "it cannot be read (%s): all that streams have in "
                    "it is lost",
                    err_file_text((int)size));
        return;
    }
    f->bytes = (uint64_t)size;
    int64_t n = sys->pread(sys->context, f->fd, header, sizeof(header), 0);
    pack_encode_header(v->state.uuid, f->id, wanted);
    if (n != (int64_t)sizeof(header) || memcmp(header, wanted, sizeof(header)) != 0) {
        verify_tell(v, VERIFY_DAMAGE, f->name,
                    "at 0: its header is not that of this pack of this "
                    "directory: a server does not read it");
    }
    if (f->bytes != f->total) {
        verify_tell(v, VERIFY_DAMAGE, f->name, "it has %llu bytes, and was written with %llu%s",
                    (unsigned long long)f->bytes, (unsigned long long)f->total,
                    f->bytes < f->total ? ": what was behind is lost"
                                        : ": somebody has changed it");
    }
}

static int read_all(struct verify *v, struct pack_file *f, uint64_t at, void *out, size_t len)
{
    int64_t n = v->sys->pread(v->sys->context, f->fd, out, len, at);
    verify_progress(v, n > 0 ? (uint64_t)n : 0);
    return n < 0 ? (int)n : n == (int64_t)len ? 0 : ERR_CORRUPT;
}

/* The checksum of the data; the marks go into p->marks. */
static int read_extent(struct packs *p, struct pack_file *f, const struct extent *e,
                       uint32_t *ret_crc)
{
    uint32_t crc = 0;
    int rc = 0;
    for (uint64_t at = 0; at < e->len && rc == 0; at += READ_BYTES) {
        size_t len = e->len - at < READ_BYTES ? (size_t)(e->len - at) : READ_BYTES;
        rc = read_all(p->verify, f, e->at + at, p->bytes, len);
        crc = rc ? crc : crc32c(crc, p->bytes, len);
    }
    if (rc == 0 && e->marks_len > p->marks_cap) {
        char *marks = realloc(p->marks, e->marks_len);
        if (!marks) {
            p->verify->error = ERR_NOMEM;
            return ERR_NOMEM;
        }
        p->marks = marks;
        p->marks_cap = e->marks_len;
    }
    rc = rc ? rc : read_all(p->verify, f, e->at + e->len, p->marks, e->marks_len);
    *ret_crc = crc;
    return rc;
}

static void tell_extent(struct packs *p, const struct pack_file *f, const struct extent *e,
                        const char *what)
{
    verify_tell(p->verify, VERIFY_DAMAGE, f->name,
                "at %llu: stream %llu, bytes %llu to %llu: %s: reads of them fail",
                (unsigned long long)e->at, (unsigned long long)p->id, (unsigned long long)e->start,
                (unsigned long long)e->start + e->len, what);
}

/* Proves what the file holds of an extent. */
static void check_bytes(struct packs *p, struct pack_file *f, const struct extent *e)
{
    char header[PACK_EXTENT_HEADER_BYTES];
    struct pack_extent_header h;
    uint32_t crc = 0;
    int rc = read_all(p->verify, f, e->at - sizeof(header), header, sizeof(header));
    rc = rc ? rc : pack_decode_extent_header(header, &h);
    if (rc) {
        tell_extent(p, f, e,
                    rc == ERR_CORRUPT ? "the header in front of them does not prove itself"
                                      : err_file_text(rc));
        return;
    }
    if (h.pack != f->id || h.id != p->id || h.start != e->start || h.len != e->len ||
        h.marks_len != e->marks_len || h.crc != e->crc) {
        tell_extent(p, f, e, "the header in front of them speaks of something else");
        return;
    }
    rc = read_extent(p, f, e, &crc);
    if (rc) {
        tell_extent(p, f, e, rc == ERR_CORRUPT ? "the file ends before them" : err_file_text(rc));
        return;
    }
    struct slice marks = {p->marks, e->marks_len};
    bool marks_good = crc32c(0, marks.ptr, marks.len) == h.marks_crc;
    if (!marks_good || crc32c(crc, marks.ptr, marks.len) != e->crc) {
        tell_extent(p, f, e,
                    marks_good ? "they do not match their checksum"
                               : "their marks do not match their checksum");
    } else if (!marks_valid(marks, e->len)) {
        tell_extent(p, f, e, "their marks do not add up to them");
    }
}

/* The entry at hand, which is of the pack `f`. */
static void check_entry(struct packs *p, struct pack_file *f)
{
    struct verify *v = p->verify;
    uint8_t key[CATALOG_PAIR_KEY_BYTES];
    struct slice value;
    struct extent e;
    catalog_encode_pair_key(p->id, p->start, key);
    int rc = verify_get(v, TABLE_EXTENTS, (struct slice){(const char *)key, sizeof(key)}, &value);
    if (rc != ERR_NOTFOUND && (rc || catalog_decode_extent(value, p->start, &e))) {
        return; /* told where extents were walked */
    }
    if (rc == ERR_NOTFOUND || e.pack != f->id || e.at != p->at) {
        verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                    "table pack_extents: pack %llu at %llu is said to be stream %llu from %llu on, "
                    "and that %s: compaction of the pack fails",
                    (unsigned long long)f->id, (unsigned long long)p->at, (unsigned long long)p->id,
                    (unsigned long long)p->start, rc ? "is in no extent" : "is elsewhere");
        return;
    }
    uint64_t footprint = PACK_EXTENT_HEADER_BYTES + (uint64_t)e.len + e.marks_len;
    if (e.at < f->end + PACK_EXTENT_HEADER_BYTES) {
        tell_extent(p, f, &e, "they begin within the header or what is before them");
    }
    f->live += footprint;
    f->end = e.at + e.len + e.marks_len;
    if (f->end > f->total) {
        tell_extent(p, f, &e, "they are said to be behind the end of the pack");
    } else if (f->fd >= 0 && e.at >= PACK_EXTENT_HEADER_BYTES) {
        check_bytes(p, f, &e);
    }
}

static void check_pack(struct packs *p, pack_id id, uint64_t live, uint64_t total)
{
    struct verify *v = p->verify;
    struct pack_file f = {.id = id, .fd = -1, .total = total, .end = PACK_HEADER_BYTES};
    char name[PACK_NAME_BYTES];
    pack_format_name(id, name);
    (void)snprintf(f.name, sizeof(f.name), "packs/%s", name);
    v->report.packs++;
    v->report.pack_bytes += total;
    v->report.live_bytes += live;
    if (id >= v->state.next_pack || id == 0) {
        verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                    "table meta: the next pack is to be %llu, and pack %llu exists: it would be "
                    "written over",
                    (unsigned long long)v->state.next_pack, (unsigned long long)id);
    }
    open_file(p, &f);
    while (p->any && p->pack == id && !v->error) {
        check_entry(p, &f);
        next_entry(p);
    }
    if (f.fd >= 0) {
        v->sys->close(v->sys->context, f.fd);
    }
    if (f.live != live && v->usable[TABLE_PACK_EXTENTS] && v->usable[TABLE_EXTENTS]) {
        verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                    "table packs: pack %llu: %llu bytes are said to be live, and extents hold "
                    "%llu: compaction judges it wrongly%s",
                    (unsigned long long)id, (unsigned long long)live, (unsigned long long)f.live,
                    live < f.live ? ", and may remove it" : "");
    }
}

/* Entries of packs below `id` are of packs that nobody lists. */
static void skip_unlisted(struct packs *p, pack_id id)
{
    pack_id told = 0;
    while (p->any && p->pack < id) {
        if (p->pack != told) {
            verify_tell(p->verify, VERIFY_DAMAGE, CATALOG_FILE,
                        "table packs: pack %llu is missing, and extents are in it: the next start "
                        "removes its file",
                        (unsigned long long)p->pack);
        }
        told = p->pack;
        next_entry(p);
    }
}

static void walk_packs(struct packs *p)
{
    struct verify *v = p->verify;
    struct btree_cursor c;
    struct slice key;
    struct slice value;
    uint64_t live = 0;
    uint64_t total = 0;
    if (verify_walk(v, TABLE_PACKS, &c)) {
        while (verify_next(v, TABLE_PACKS, &c, &key, &value)) {
            if (key.len != 8 || catalog_decode_pair(value, &live, &total)) {
                verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                            "table packs: an entry does not decode: its pack is not compacted");
                continue;
            }
            skip_unlisted(p, bytes_get_u64_be(key.ptr));
            check_pack(p, bytes_get_u64_be(key.ptr), live, total);
        }
        if (v->usable[TABLE_PACKS]) {
            skip_unlisted(p, UINT64_MAX);
        }
    }
    btree_cursor_finish(&c);
}

/* Adds the bytes of the packs to what is to be read. */
static void add_total(struct verify *v)
{
    struct btree_cursor c;
    struct slice key;
    struct slice value;
    uint64_t live = 0;
    uint64_t total = 0;
    if (verify_walk(v, TABLE_PACKS, &c)) {
        while (verify_next(v, TABLE_PACKS, &c, &key, &value)) {
            v->total += catalog_decode_pair(value, &live, &total) == 0 ? live : 0;
        }
    }
    btree_cursor_finish(&c);
}

/* Other files of the directory. */

static int note_file(void *context, const char *name)
{
    struct verify *v = context;
    char file[VERIFY_PATH_MAX];
    pack_id id = 0;
    uint8_t key[8];
    struct slice value;
    (void)snprintf(file, sizeof(file), "packs/%.200s", name);
    if (!pack_parse_name(name, &id)) {
        verify_tell(v, VERIFY_NOTE, file, "it is no pack, and no server minds it");
        return 0;
    }
    bytes_put_u64_be(key, id);
    bool unknown = verify_get(v, TABLE_PACKS, (struct slice){(const char *)key, sizeof(key)},
                              &value) == ERR_NOTFOUND;
    if (unknown && !v->config->running) {
        verify_tell(v, VERIFY_NOTE, file,
                    "the catalog does not name it: it is left over from a crash, and the next "
                    "start removes it");
    }
    return 0;
}

void verify_packs(struct verify *v)
{
    char path[VERIFY_PATH_MAX];
    struct packs p = {.verify = v, .bytes = malloc(READ_BYTES)};
    if (!p.bytes) {
        v->error = ERR_NOMEM;
        return;
    }
    add_total(v);
    if (verify_walk(v, TABLE_PACK_EXTENTS, &p.index)) {
        next_entry(&p);
    }
    walk_packs(&p);
    btree_cursor_finish(&p.index);
    free(p.bytes);
    free(p.marks);
    verify_path(v, "packs", path);
    int rc = v->sys->list_dir(v->sys->context, path, note_file, v);
    if (rc) {
        verify_tell(v, VERIFY_DAMAGE, "packs", "it cannot be listed (%s): no pack can be read",
                    err_file_text(rc));
    }
}
