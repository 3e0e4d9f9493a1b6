/* A backup is a directory with the layout of a data directory, and a manifest (manifest.h):
 *
 *   app.db               the records of threads, of a moment before that of the streams
 *   wal/wal-<position>   one segment, with the records from the checkpoint on
 *   catalog/data.mdb     the catalog of one moment
 *   packs/pack-<id>      the packs that it names
 *   keys/...             whatever was there, but for locks
 *   manifest             last of all
 *
 * The records come first: what they name is in the streams by then, or their outbox owes it, and is
 * done again at a start. How they are copied is the caller's business.
 *
 * The catalog is opened, and then the server is asked how far its log is durable: so the log that
 * is copied reaches as far as whatever the catalog's streams have applied.
 *
 * The order is that of how long things can be held: first the log, which grows with every append;
 * then the catalog, of which all pages are copied as they are. Those that the snapshot does not use
 * may be torn, as somebody may be writing them; nothing refers to them. Both root pages become that
 * of the snapshot, so that LMDB finds it whichever it takes. The packs, which do not change, come
 * last and from then on only their removal is held.
 *
 * Those of the log are proven while they are copied, and so is that packs have their headers and
 * sizes; what is inside them is not read twice. `arbe streams verify` on the backup does that. */
#include "log/backup.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/limits.h"
#include "log/btree.h"
#include "log/catalog_env.h"
#include "log/catalog_value.h"
#include "log/log_files.h"
#include "log/pack_format.h"
#include "log/transfer.h"
#include "log/walk.h"

#define CATALOG_NAME "catalog/data.mdb"

struct backup {
    struct transfer transfer;
    const struct backup_config *config;
    struct btree_file *catalog; /* NULL: closed */
    struct catalog_state state;
    log_pos durable; /* of a running server: the log is whole up to here; else 0 */
    struct manifest_head head;
    uint64_t pack_bytes; /* in all */
    int log_error;       /* why a file of the log cannot be read; 0: all can */
};

static void path_in(const struct backup *b, const char *name, char *out)
{
    (void)snprintf(out, TRANSFER_PATH_MAX, "%s/%s", b->config->from, name);
}

/* The records. */

static int take_records(struct backup *b)
{
    const struct backup_config *c = b->config;
    struct transfer *t = &b->transfer;
    char path[TRANSFER_PATH_MAX];
    if (!c->records) {
        return 0;
    }
    transfer_path(t, MANIFEST_RECORDS, path);
    int rc = c->records(c->context, path, t->msg);
    if (rc == 0) {
        return transfer_adopt(t, MANIFEST_RECORDS);
    }
    t->error = rc == ERR_NOTFOUND ? 0 : rc;
    return t->error;
}

/* The catalog's moment. */

static int read_state(struct backup *b)
{
    struct transfer *t = &b->transfer;
    struct btree meta;
    struct btree_cursor c = {0};
    struct slice value;
    int rc = btree_file_table(b->catalog, catalog_table_name(TABLE_META), &meta);
    if (rc == 0) {
        btree_cursor_init(&c, b->catalog, &meta);
        rc = btree_cursor_get(&c, SLICE(CATALOG_STATE_KEY), &value);
    }
    rc = rc ? rc : catalog_decode_state(value, &b->state);
    btree_cursor_finish(&c);
    if (rc) {
        return transfer_fail(t, rc == ERR_NOTFOUND ? ERR_CORRUPT : rc,
                             "cannot read the state in %.100s/" CATALOG_NAME, b->config->from);
    }
    if (b->state.format > CATALOG_FORMAT) {
        t->error = err_set(t->msg, ERR_MISMATCH, "%.100s has format %u; this version knows %u",
                           b->config->from, b->state.format, CATALOG_FORMAT);
    } else if (b->state.durable == 0) {
        t->error = err_set(t->msg, ERR_MISMATCH,
                           "%.100s is of memory mode: its streams end with their process, and "
                           "there is nothing to bring back",
                           b->config->from);
    }
    return t->error;
}

/* Both roots must be good, or it may be an older moment. */
static int open_catalog(struct backup *b, const char *path)
{
    struct transfer *t = &b->transfer;
    struct errmsg why = {{0}};
    int rc = t->error ? t->error : btree_file_open(b->config->sys, path, &b->catalog, &why);
    if (rc && t->error == 0) {
        t->error = err_set(t->msg, rc, "cannot open %.120s: %.100s", path, why.text);
    }
    if (rc == 0 && (b->catalog->root_damaged[0] || b->catalog->root_damaged[1])) {
        return transfer_fail(t, ERR_CORRUPT, "a root page of %.150s is not good", path);
    }
    return t->error;
}

static int open_source(struct backup *b)
{
    char path[TRANSFER_PATH_MAX];
    path_in(b, CATALOG_NAME, path);
    int rc = open_catalog(b, path);
    return rc ? rc : read_state(b);
}

static int take_durable(struct backup *b)
{
    const struct backup_config *c = b->config;
    if (c->running) {
        b->transfer.error = c->durable(c->context, &b->durable, b->transfer.msg);
    }
    return b->transfer.error;
}

/* Called for each pack that the catalog names. */
typedef int (*pack_fn)(struct backup *b, pack_id id, uint64_t bytes);

static int each_pack(struct backup *b, pack_fn each)
{
    struct transfer *t = &b->transfer;
    struct btree packs;
    struct btree_cursor c = {0};
    struct slice key;
    struct slice value;
    uint64_t live = 0;
    uint64_t bytes = 0;
    int rc = btree_file_table(b->catalog, catalog_table_name(TABLE_PACKS), &packs);
    if (rc == 0) {
        btree_cursor_init(&c, b->catalog, &packs);
        rc = btree_cursor_seek(&c, (struct slice){0});
    }
    rc = rc ? rc : btree_cursor_next(&c, &key, &value);
    while (rc > 0 && t->error == 0) {
        rc = key.len == 8 ? catalog_decode_pair(value, &live, &bytes) : ERR_CORRUPT;
        rc = rc ? rc : each(b, bytes_get_u64_be(key.ptr), bytes);
        rc = rc ? rc : btree_cursor_next(&c, &key, &value);
    }
    btree_cursor_finish(&c);
    return rc < 0 ? transfer_fail(t, rc, "cannot read the packs in %.100s/" CATALOG_NAME,
                                  b->config->from)
                  : t->error;
}

static int count_pack(struct backup *b, pack_id id, uint64_t bytes)
{
    (void)id; /* all of them */
    b->pack_bytes += bytes;
    return 0;
}

/* Better now than after an hour. */
static int check_room(struct backup *b)
{
    const struct backup_config *c = b->config;
    struct transfer *t = &b->transfer;
    uint64_t log = c->running ? b->durable - b->state.checkpoint : 0;
    uint64_t rest = b->pack_bytes + b->catalog->page_count * b->catalog->page_bytes + log;
    int64_t room = c->sys->free_bytes(c->sys->context, c->to);
    t->total = t->done + rest;
    if (room >= 0 && (uint64_t)room < rest) {
        t->error = err_set(t->msg, ERR_NOSPC,
                           "no room: the backup takes %llu MiB, and %.100s has %llu MiB left",
                           (unsigned long long)(rest / MIB + 1), c->to,
                           (unsigned long long)((uint64_t)room / MIB));
    }
    return t->error;
}

/* The log. */

/* Of a directory that nobody uses every file counts, for records may be in it. A running server's
 * come and go, and there it shows in the walk whether the log is whole. */
static void on_file(void *context, enum log_fact fact, const char *name, int64_t count)
{
    struct backup *b = context;
    if (fact == LOG_FILE_UNREADABLE && b->log_error == 0) {
        b->log_error = (int)count;
    }
    if (b->config->running || fact == LOG_FILE_UNFINISHED || b->transfer.error) {
        return;
    }
    int error = fact == LOG_FILE_UNREADABLE ? (int)count : ERR_CORRUPT;
    b->transfer.error = err_set(b->transfer.msg, error,
                                "%.100s/wal/%.40s is not good (%s); run arbe streams verify, and "
                                "start the server once on the directory if that helps",
                                b->config->from, name, err_file_text(error));
}

/* Copies the records from the checkpoint on; *ret_end is behind the last one. */
static int copy_records(struct backup *b, struct walk *k, struct transfer_file *f, log_pos *ret_end)
{
    struct transfer *t = &b->transfer;
    log_pos pos = b->state.checkpoint;
    int rc = 0;
    while (rc == 0 && t->error == 0 && !(b->config->running && pos >= b->durable)) {
        struct record record;
        log_pos end = pos;
        rc = walk_prove(k, pos, &record, &end);
        if (rc == 0) {
            const char *bytes = walk_bytes(k, pos, (size_t)(end - pos));
            rc = bytes ? transfer_write(t, f, bytes, (size_t)(end - pos)) : ERR_IO;
        }
        if (rc == 0) {
            t->report.records++;
            pos = end;
        }
    }
    *ret_end = pos;
    return t->error ? t->error : rc == ERR_CORRUPT ? 0 : rc;
}

/* Whether the log may end here. */
static int judge_end(struct backup *b, struct walk *k, log_pos end)
{
    struct transfer *t = &b->transfer;
    uint64_t stranded = 0;
    int rc = b->config->running ? 0 : walk_count_stranded(k, end, &stranded);
    if (rc) {
        return transfer_fail(t, rc, "cannot read the log in %.100s/wal", b->config->from);
    }
    if (end < b->durable && b->log_error) {
        return transfer_fail(t, b->log_error, "cannot read the log in %.100s/wal", b->config->from);
    }
    if (stranded > 0 || end < b->durable) {
        t->error = err_set(t->msg, ERR_CORRUPT,
                           "the log in %.100s/wal is damaged at position %llu; run arbe streams "
                           "verify, and start the server once on the directory if that helps",
                           b->config->from, (unsigned long long)end);
    }
    return t->error;
}

/* A segment of just the right size: the header page, which is known only at the end, the records,
 * and zeros as far as a record's frame and the end of a page. */
static int end_segment(struct backup *b, struct transfer_file *f, log_pos end)
{
    static const char zeros[2 * SEGMENT_HEADER_BYTES];
    uint64_t used = end - b->state.checkpoint;
    uint64_t bytes = (used + SEGMENT_HEADER_BYTES) / SEGMENT_HEADER_BYTES * SEGMENT_HEADER_BYTES +
                     SEGMENT_HEADER_BYTES;
    return transfer_write(&b->transfer, f, zeros, (size_t)(bytes - used));
}

/* Writes the header over the page that was left for it, and takes the checksum anew. */
static int put_header(struct backup *b, struct transfer_file *f)
{
    struct transfer *t = &b->transfer;
    struct sys *sys = b->config->sys;
    struct segment_dir dir = {.sys = sys};
    char page[SEGMENT_HEADER_BYTES];
    memcpy(dir.uuid, b->state.uuid, sizeof(dir.uuid));
    const struct segment s = {.start = b->state.checkpoint,
                              .bytes = f->entry.bytes - SEGMENT_HEADER_BYTES};
    segment_encode_header(&dir, &s, page);
    struct iovec iov = {page, sizeof(page)};
    int rc = t->error ? t->error : sys->pwritev(sys->context, f->fd, &iov, 1, 0);
    uint32_t crc = 0;
    for (uint64_t at = 0; at < f->entry.bytes && rc == 0; at += TRANSFER_READ_BYTES) {
        int64_t n = sys->pread(sys->context, f->fd, t->bytes, TRANSFER_READ_BYTES, at);
        rc = n < 0 ? (int)n : 0;
        crc = n > 0 ? crc32c(crc, t->bytes, (size_t)n) : crc;
    }
    f->entry.crc = crc;
    return rc ? transfer_fail(t, rc, "cannot write %.100s/%s", b->config->to, f->entry.name) : 0;
}

static int write_segment(struct backup *b, struct walk *k)
{
    static const char zeros[SEGMENT_HEADER_BYTES];
    struct transfer *t = &b->transfer;
    struct transfer_file f;
    char name[MANIFEST_NAME_BYTES];
    char file[SEGMENT_PATH_MAX];
    segment_format_name(b->state.checkpoint, file);
    (void)snprintf(name, sizeof(name), "wal/%.100s", file);
    log_pos end = b->state.checkpoint;
    int rc = transfer_create(t, name, &f);
    rc = rc ? rc : transfer_write(t, &f, zeros, sizeof(zeros));
    rc = rc ? rc : copy_records(b, k, &f, &end);
    if (rc && t->error == 0) {
        (void)transfer_fail(t, rc, "cannot read the log in %.100s/wal", b->config->from);
    }
    rc = rc ? rc : judge_end(b, k, end);
    rc = rc ? rc : end_segment(b, &f, end);
    rc = rc ? rc : put_header(b, &f);
    b->head.from = b->state.checkpoint;
    b->head.to = end;
    t->report.position = end;
    return transfer_close(t, &f);
}

static int copy_log(struct backup *b)
{
    struct transfer *t = &b->transfer;
    struct log_files files;
    struct walk k = {0};
    char path[TRANSFER_PATH_MAX];
    path_in(b, "wal", path);
    int rc = log_files_open(&files, b->config->sys, path, b->state.uuid, b->state.checkpoint,
                            on_file, b);
    bool none = list_empty(&files.chain.segments);
    rc = rc || t->error || !none ? rc : b->log_error;
    rc = rc || t->error ? rc : walk_init(&k, &files.chain, b->state.epoch + 1);
    if (rc) {
        (void)transfer_fail(t, rc, "cannot read %.100s", path);
    } else if (t->error == 0 && none && b->state.log_made) {
        t->error = err_set(t->msg, ERR_CORRUPT,
                           "the log file that holds position %llu is missing from %.100s",
                           (unsigned long long)b->state.checkpoint, path);
    } else if (t->error == 0 && b->state.log_made) {
        (void)write_segment(b, &k); /* it sticks */
    }
    walk_finish(&k);
    log_files_finish(&files);
    return t->error;
}

/* The catalog. */

/* The two root pages, both of the snapshot: its own, and one that counts as the one before. */
static void encode_roots(const struct btree_file *f, char *out)
{
    memset(out, 0, 2 * (size_t)f->page_bytes);
    for (uint64_t i = 0; i < 2; i++) {
        char *root = out + i * f->page_bytes;
        memcpy(root, f->meta, sizeof(f->meta));
        bytes_put_u64(root, i);
        bytes_put_u64(root + 144, i == f->txn % 2 || f->txn == 0 ? f->txn : f->txn - 1);
    }
}

static int copy_pages(struct backup *b, struct transfer_file *out)
{
    struct transfer *t = &b->transfer;
    struct btree_file *f = b->catalog;
    struct sys *sys = b->config->sys;
    uint64_t bytes = f->page_count * f->page_bytes;
    encode_roots(f, t->bytes);
    (void)transfer_write(t, out, t->bytes, 2 * (size_t)f->page_bytes); /* it sticks */
    while (out->entry.bytes < bytes && t->error == 0) {
        uint64_t left = bytes - out->entry.bytes;
        size_t len = left < TRANSFER_READ_BYTES ? (size_t)left : TRANSFER_READ_BYTES;
        int64_t n = sys->pread(sys->context, f->fd, t->bytes, len, out->entry.bytes);
        if (n < 0) {
            return transfer_fail(t, (int)n, "cannot read %.100s/" CATALOG_NAME, b->config->from);
        }
        memset(t->bytes + n, 0, len - (size_t)n); /* pages that nothing refers to may be missing */
        (void)transfer_write(t, out, t->bytes, len); /* it sticks */
    }
    return t->error;
}

static int copy_catalog(struct backup *b)
{
    struct transfer *t = &b->transfer;
    struct transfer_file f;
    int rc = transfer_create(t, CATALOG_NAME, &f);
    rc = rc ? rc : copy_pages(b, &f);
    rc = transfer_close(t, &f);
    btree_file_close(b->catalog);
    b->catalog = NULL;
    return rc;
}

/* The packs, as the copy of the catalog names them. */

static int copy_pack(struct backup *b, pack_id id, uint64_t bytes)
{
    char name[PACK_NAME_BYTES];
    char path[MANIFEST_NAME_BYTES];
    pack_format_name(id, name);
    (void)snprintf(path, sizeof(path), "packs/%s", name);
    return transfer_copy(&b->transfer, path, NULL, bytes);
}

static int copy_packs(struct backup *b)
{
    char path[TRANSFER_PATH_MAX];
    transfer_path(&b->transfer, CATALOG_NAME, path);
    int rc = open_catalog(b, path);
    return rc ? rc : each_pack(b, copy_pack);
}

static int copy_key(void *context, const char *name)
{
    struct backup *b = context;
    char path[MANIFEST_NAME_BYTES];
    bool whole = snprintf(path, sizeof(path), "keys/%s", name) < (int)sizeof(path);
    bool passing = strcmp(name, "lock") == 0 || strcmp(name, "keys.pem.new") == 0 ||
                   strcmp(name, "sandbox.key.new") == 0;
    if (passing || !whole || !manifest_name_good(slice_of(path))) {
        return 0;
    }
    return transfer_copy(&b->transfer, path, NULL, UINT64_MAX);
}

static int copy_keys(struct backup *b)
{
    struct transfer *t = &b->transfer;
    struct sys *sys = b->config->sys;
    char path[TRANSFER_PATH_MAX];
    path_in(b, "keys", path);
    int rc = t->error ? t->error : sys->list_dir(sys->context, path, copy_key, b);
    bool none = rc == ERR_NOTFOUND && t->error == 0; /* a server without subscriptions */
    return none || rc == 0 ? t->error : transfer_fail(t, rc, "cannot list %.100s", path);
}

/* The catalog's moment, and whether there is room for it. */
static int look(struct backup *b)
{
    btree_file_close(b->catalog);
    b->catalog = NULL;
    b->pack_bytes = 0;
    int rc = open_source(b);
    rc = rc ? rc : take_durable(b); /* behind the catalog: see above */
    rc = rc ? rc : each_pack(b, count_pack);
    return rc ? rc : check_room(b);
}

static int make(struct backup *b)
{
    const struct backup_config *c = b->config;
    int rc = look(b); /* what cannot come to an end need not begin */
    rc = rc ? rc : take_records(b);
    rc = rc || !b->transfer.records ? rc : look(b);
    rc = rc ? rc : copy_log(b);
    if (rc == 0 && c->log_done) {
        c->log_done(c->context);
    }
    rc = rc ? rc : copy_catalog(b);
    if (rc == 0 && c->catalog_done) {
        c->catalog_done(c->context);
    }
    rc = rc ? rc : copy_keys(b);
    rc = rc ? rc : copy_packs(b);
    memcpy(b->head.uuid, b->state.uuid, sizeof(b->head.uuid));
    return rc ? rc : transfer_finish(&b->transfer, &b->head);
}

int backup_make(const struct backup_config *config, struct backup_report *ret_report,
                struct errmsg *msg)
{
    struct backup b = {.config = config};
    int rc = transfer_begin(&b.transfer, config, false, msg);
    rc = rc ? rc : make(&b);
    btree_file_close(b.catalog);
    if (rc == 0) {
        *ret_report = b.transfer.report;
    }
    transfer_end(&b.transfer);
    return rc;
}
