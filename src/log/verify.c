/* The order: pages of the catalog, since nothing else is to be believed before; the log, since it
 * completes what the catalog says; the tables against each other and against the log; packs; forks;
 * the manifest, if it is a backup.
 * What cannot be read is told and left out, and the rest is checked all the same. */
#include "log/verify.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "log/catalog_value.h"
#include "log/verify_parts.h"

#define TEXT_BYTES 600u

void verify_tell(struct verify *v, enum verify_level level, const char *file, const char *format,
                 ...)
{
    char text[TEXT_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    v->report.damages += level == VERIFY_DAMAGE;
    v->report.notes += level == VERIFY_NOTE;
    const struct verify_finding f = {.level = level, .file = file, .text = text};
    v->config->found(v->config->context, &f);
}

const char *verify_name(struct slice name, char out[static VERIFY_NAME_BYTES])
{
    size_t room = VERIFY_NAME_BYTES - 6; /* quotes, dots, NUL */
    size_t len = name.len < room ? name.len : room;
    char *at = out;
    *at++ = '"';
    for (size_t i = 0; i < len; i++) {
        char c = name.ptr[i];
        *at++ = c >= ' ' && c <= '~' ? c : '?';
    }
    (void)snprintf(at, 5, "%s\"", len < name.len ? "..." : "");
    return out;
}

void verify_path(const struct verify *v, const char *name, char *out)
{
    (void)snprintf(out, VERIFY_PATH_MAX, "%s/%s", v->config->dir, name);
}

void verify_progress(struct verify *v, uint64_t bytes)
{
    v->done += bytes;
    if (v->config->progress) {
        v->config->progress(v->config->context, v->done, v->total > v->done ? v->total : v->done);
    }
}

/* Tables. */

static void table_failed(struct verify *v, enum catalog_table table, int rc)
{
    if (rc == ERR_NOMEM) {
        v->error = rc;
    } else {
        verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                    "page %llu: %s: the entries of table %s from there on cannot be read",
                    (unsigned long long)v->catalog->fault_page, v->catalog->fault,
                    catalog_table_name(table));
    }
    v->usable[table] = false;
}

int verify_get(struct verify *v, enum catalog_table table, struct slice key,
               struct slice *ret_value)
{
    if (!v->usable[table]) {
        return ERR_IO;
    }
    int rc = key.len > 0 ? btree_cursor_get(&v->finders[table], key, ret_value) : ERR_NOTFOUND;
    if (rc && rc != ERR_NOTFOUND) {
        table_failed(v, table, rc);
        return ERR_IO;
    }
    return rc;
}

int verify_get_stream(struct verify *v, stream_id id, struct stream_meta *ret_meta)
{
    uint8_t key[8];
    struct slice value;
    bytes_put_u64_be(key, id);
    int rc = verify_get(v, TABLE_STREAMS, (struct slice){(const char *)key, sizeof(key)}, &value);
    return rc ? rc : catalog_decode_stream(value, id, ret_meta);
}

bool verify_walk(struct verify *v, enum catalog_table table, struct btree_cursor *c)
{
    *c = (struct btree_cursor){0};
    if (!v->usable[table] || v->error) {
        return false;
    }
    btree_cursor_init(c, v->catalog, &v->tables[table]);
    int rc = btree_cursor_seek(c, (struct slice){0});
    if (rc) {
        table_failed(v, table, rc);
    }
    return rc == 0;
}

int verify_next(struct verify *v, enum catalog_table table, struct btree_cursor *c,
                struct slice *ret_key, struct slice *ret_value)
{
    if (!v->usable[table] || v->error) {
        return 0;
    }
    int rc = btree_cursor_next(c, ret_key, ret_value);
    if (rc < 0) {
        table_failed(v, table, rc);
        rc = 0;
    }
    return rc;
}

/* Opening. */

static int read_state(struct verify *v)
{
    struct slice value;
    int rc = verify_get(v, TABLE_META, SLICE(CATALOG_STATE_KEY), &value);
    rc = rc ? rc : catalog_decode_state(value, &v->state);
    if (rc) {
        verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                    "table meta: the state of the directory is missing or does not match its "
                    "checksum: a server cannot start, and log and packs cannot be told to be its "
                    "own");
        return rc;
    }
    if (v->state.format < CATALOG_FORMAT_FIRST || v->state.format > CATALOG_FORMAT) {
        verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                    "table meta: the format is %u, and this version knows %u to %u: nothing more "
                    "was checked",
                    v->state.format, CATALOG_FORMAT_FIRST, CATALOG_FORMAT);
        return ERR_MISMATCH;
    }
    if (v->state.format > CATALOG_FORMAT_FIRST && v->tables[TABLE_NOTES].flags == TREE_MISSING) {
        verify_missing(v, TABLE_NOTES);
    }
    v->has_state = true;
    v->report.memory = v->state.durable == 0;
    return 0;
}

static int open_catalog(struct verify *v, struct errmsg *msg)
{
    char path[VERIFY_PATH_MAX];
    verify_path(v, CATALOG_FILE, path);
    int rc = btree_file_open(v->sys, path, &v->catalog, msg);
    if (rc == ERR_NOMEM) {
        return rc;
    }
    if (rc) {
        verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                    "the catalog cannot be opened: %s: no stream "
                    "can be found without it",
                    msg->text);
        return 0;
    }
    v->report.catalog_bytes = v->catalog->page_count * v->catalog->page_bytes;
    v->total = v->report.catalog_bytes;
    return 0;
}

/* How far the log must be whole, which only now is not behind the catalog. */
static int take_durable(struct verify *v, struct errmsg *msg)
{
    const struct verify_config *c = v->config;
    return c->running ? c->durable(c->context, &v->durable, msg) : 0;
}

static int note_entry(void *context, const char *name)
{
    bool *any = context;
    *any = *any || strcmp(name, "wal") == 0 || strcmp(name, "packs") == 0 ||
           strcmp(name, "catalog") == 0;
    return 0;
}

/* Whether it looks like a data directory at all. */
static int check_dir(struct verify *v, struct errmsg *msg)
{
    bool any = false;
    if (strlen(v->config->dir) > VERIFY_PATH_MAX - 200) {
        return err_set(msg, ERR_INVALID, "the path of the data directory is longer than %u bytes",
                       VERIFY_PATH_MAX - 200);
    }
    int rc = v->sys->list_dir(v->sys->context, v->config->dir, note_entry, &any);
    if (rc) {
        return err_set(msg, rc, "cannot list %s: %s", v->config->dir, err_file_text(rc));
    }
    return any ? 0
               : err_set(msg, ERR_INVALID,
                         "%s is no data directory: there is neither wal, packs nor catalog in it",
                         v->config->dir);
}

static void finish(struct verify *v)
{
    for (unsigned i = 0; i < TABLE_COUNT; i++) {
        btree_cursor_finish(&v->finders[i]);
    }
    verify_log_finish(v);
    free(v->sources.ids);
    btree_file_close(v->catalog);
}

int verify_run(const struct verify_config *config, struct verify_report *ret_report,
               struct errmsg *msg)
{
    struct verify v = {.config = config, .sys = config->sys};
    map_init(&v.seen);
    int rc = check_dir(&v, msg);
    rc = rc ? rc : open_catalog(&v, msg);
    rc = rc ? rc : take_durable(&v, msg);
    if (rc) {
        finish(&v);
        return rc;
    }
    if (v.catalog) {
        verify_pages(&v);
    }
    if (v.catalog && !v.error && read_state(&v) == 0) {
        verify_log(&v);
        verify_tables(&v);
        verify_packs(&v);
        verify_forks(&v);
    }
    if (!v.error) {
        verify_backup(&v);
    }
    finish(&v);
    if (v.error) {
        return err_set(msg, v.error, "%s", err_text(v.error));
    }
    *ret_report = v.report;
    return 0;
}
