/* A store in a directory of its own, for tests of the SQLite back end. */
#ifndef ARBE_TESTS_UNIT_THREAD_STORE_SQLITE_FIXTURE_H
#define ARBE_TESTS_UNIT_THREAD_STORE_SQLITE_FIXTURE_H

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/thread/store_rig.h"
#include "unit/thread/store_sqlite_plans.h"

struct sqlite_fixture {
    char dir[64];
    char path[96];
};

static inline void fixture_init(struct sqlite_fixture *f)
{
    (void)snprintf(f->dir, sizeof(f->dir), "/tmp/arbe-store-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    (void)snprintf(f->path, sizeof(f->path), "%s/app.db", f->dir);
}

static int fixture_remove(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static inline void fixture_finish(struct sqlite_fixture *f)
{
    assert_int_equal(nftw(f->dir, fixture_remove, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* The lists do not wait for a disk. */
static inline struct thread_store_config fixture_config(const struct sqlite_fixture *f)
{
    return (struct thread_store_config){.path = f->path, .lazy = true};
}

static inline void fixture_open(struct store_rig *rig)
{
    struct thread_store_config config = fixture_config(rig->back_end);
    OK(store_open(&config, &rig->store, &rig->msg));
}

static inline int rig_open(void **state)
{
    struct store_rig *rig = calloc(1, sizeof(*rig));
    assert_non_null(rig);
    rig->back_end = calloc(1, sizeof(struct sqlite_fixture));
    assert_non_null(rig->back_end);
    fixture_init(rig->back_end);
    arena_init(&rig->arena, RIG_ARENA_BYTES);
    fixture_open(rig);
    *state = rig;
    return 0;
}

static inline void rig_reopen(struct store_rig *rig)
{
    store_close(rig->store);
    rig->store = NULL;
    fixture_open(rig);
}

static inline void check_plans(const struct thread_store *s)
{
    (void)plans_check(s->writer.handle);
    for (unsigned i = 0; i < s->reader_count; i++) {
        (void)plans_check(s->readers[i].handle);
    }
}

/* Whatever a test ran found its rows by an index. */
static inline int rig_close(void **state)
{
    struct store_rig *rig = *state;
    if (rig->store) {
        check_plans(rig->store);
    }
    store_close(rig->store);
    arena_finish(&rig->arena);
    fixture_finish(rig->back_end);
    free(rig->back_end);
    free(rig);
    return 0;
}

#endif
