/* What the tests of the catalog share: one in a directory of its own on the real disk, with the
 * fake disk's functions for everything but LMDB's own calls. */
#ifndef ARBE_TESTS_UNIT_LOG_CATALOG_FIXTURE_H
#define ARBE_TESTS_UNIT_LOG_CATALOG_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "log/catalog.h"
#include "sim/fakedisk.h"
#include "unit/base/unit.h"

struct catalog_fixture {
    struct fakedisk *disk;
    struct catalog *catalog;
    struct catalog_state state;
    struct errmsg msg;
    char dir[64];
};

static inline void fixture_open(struct catalog_fixture *f)
{
    int rc = catalog_open(fakedisk_sys(f->disk), f->dir, true, NULL, &f->catalog, &f->state,
                          &f->msg);
    if (rc) {
        fail_msg("%s: %s", err_name(rc), f->msg.text);
    }
}

static inline void fixture_init(struct catalog_fixture *f)
{
    *f = (struct catalog_fixture){.disk = fakedisk_create(1)};
    (void)snprintf(f->dir, sizeof(f->dir), "/tmp/arbe-catalog-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    fixture_open(f);
}

static inline void fixture_reopen(struct catalog_fixture *f)
{
    catalog_close(f->catalog);
    fixture_open(f);
}

static inline void fixture_finish(struct catalog_fixture *f)
{
    char path[128];
    catalog_close(f->catalog);
    fakedisk_destroy(f->disk);
    (void)snprintf(path, sizeof(path), "%s/data.mdb", f->dir);
    (void)unlink(path); /* Missing when the environment was never made. */
    (void)snprintf(path, sizeof(path), "%s/lock.mdb", f->dir);
    (void)unlink(path); /* Missing when the environment was never made. */
    assert_int_equal(rmdir(f->dir), 0);
}

static inline struct catalog_txn *fixture_begin(struct catalog_fixture *f)
{
    struct catalog_txn *t = NULL;
    assert_int_equal(catalog_begin(f->catalog, &t), 0);
    return t;
}

/* A plain stream of `tail` bytes. */
static inline struct stream_meta fixture_meta(stream_id id, const char *name, uint64_t tail)
{
    return (struct stream_meta){.id = id,
                                .name = slice_of(name),
                                .content_type = SLICE("text/plain"),
                                .ttl_seconds = UINT64_MAX,
                                .expires_at_ms = INT64_MAX,
                                .tail = tail};
}

static inline void fixture_put(struct catalog_fixture *f, const struct stream_meta *meta)
{
    struct catalog_txn *t = fixture_begin(f);
    catalog_put_stream(t, meta);
    assert_int_equal(catalog_commit(t), 0);
}

/* Names seen by a walk, joined by spaces. */
static inline int fixture_collect(void *context, const struct stream_meta *meta)
{
    char *names = context;
    size_t len = strlen(names);
    (void)snprintf(names + len, 256 - len, "%s%.*s", len ? " " : "", (int)meta->name.len,
                   meta->name.ptr);
    return 0;
}

struct fixture_pack {
    pack_id id;
    uint64_t live;
    uint64_t total;
};

/* Takes the last pack of a walk. */
static inline int fixture_last_pack(void *context, pack_id id, uint64_t live, uint64_t total)
{
    *(struct fixture_pack *)context = (struct fixture_pack){id, live, total};
    return 0;
}

#endif
