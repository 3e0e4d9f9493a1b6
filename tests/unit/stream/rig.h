/* An engine with one worker and no threads at all, for tests: the pool runs tasks at once, the
 * worker's tasks run when rig_run is called, the log commits when rig_commit is called, and time
 * stands still. A test that includes fake_store.h has a store in memory that it can hold back and
 * make fail; others have the real one in a directory of their own. */
#ifndef ARBE_TESTS_UNIT_STREAM_RIG_H
#define ARBE_TESTS_UNIT_STREAM_RIG_H

#include <assert.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/limits.h"
#include "log/sys.h"
#include "stream/core.h"
#include "stream/engine.h"
#include "stream/op.h"

#include "unit/base/unit.h"

struct rig {
    struct engine_config config;
    struct engine *engine;
    struct engine_worker *worker;
    struct pool *pool;
    struct sys sys;
    struct list tasks; /* posted to the worker */
    char dir[64];
};

static int64_t rig_now_ms = INT64_C(1700000000000);
static uint64_t rig_mono_ms = 1000000;

static int64_t rig_now(void *context)
{
    (void)context;
    return rig_now_ms;
}

static uint64_t rig_mono(void *context)
{
    (void)context;
    return rig_mono_ms;
}

static uint64_t rig_micros(void *context)
{
    (void)context;
    return rig_mono_ms * 1000;
}

static inline void rig_sleep(uint64_t ms)
{
    rig_now_ms += (int64_t)ms;
    rig_mono_ms += ms;
}

static inline void rig_post(void *context, struct task *task)
{
    struct rig *rig = context;
    list_append(&rig->tasks, &task->link);
}

static inline void rig_run(struct rig *rig)
{
    struct list *first;
    while ((first = list_first(&rig->tasks)) != NULL) {
        struct task *task = container_of(first, struct task, link);
        list_remove(first);
        task->run(task);
    }
}

static inline void rig_commit(struct rig *rig)
{
    struct store *store = rig->engine->store;
    (void)store->ops->commit(store); /* a failed log shows in the answers */
    rig_run(rig);
}

static inline void rig_attach(struct rig *rig)
{
    struct errmsg msg = {{0}};
    struct store_report report;
    if (engine_open(&rig->config, &rig->engine, &report, &msg) != 0) {
        fail_msg("engine_open: %s", msg.text);
    }
    assert_int_equal(engine_attach(rig->engine, rig_post, rig, &rig->worker), 0);
}

static inline void rig_open(struct rig *rig)
{
    *rig = (struct rig){.dir = "/tmp/arbe-stream-XXXXXX"};
    assert_non_null(mkdtemp(rig->dir));
    list_init(&rig->tasks);
    sys_posix_init(&rig->sys);
    rig->sys.now_ms = rig_now;
    rig->sys.mono_ms = rig_mono;
    rig->sys.mono_us = rig_micros;
    assert_int_equal(pool_create(0, &rig->pool), 0);
    rig->config = (struct engine_config){
        .store = {.dir = rig->dir,
                  .durability = DURABILITY_OS,
                  .segment_bytes = 4 * MIB,
                  .checkpoint_bytes = 64 * MIB,
                  .staged_bytes_max = 64 * MIB,
                  .sys = &rig->sys},
        .pool = rig->pool,
        .read_page_bytes = 64 * KIB,
        .hot_bytes_max = 64 * MIB,
        .cache_bytes_max = 1 * MIB,
        .idle_ms = 1000,
    };
    rig_attach(rig);
}

static inline void rig_detach(struct rig *rig, bool checkpoint)
{
    rig_run(rig);
    engine_detach(rig->worker);
    (void)engine_close(rig->engine, checkpoint); /* after a failure of the log it says so again */
    list_init(&rig->tasks);
}

static inline void rig_reopen(struct rig *rig, bool checkpoint)
{
    rig_detach(rig, checkpoint);
    rig_attach(rig);
}

static int rig_remove(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static inline void rig_close(struct rig *rig)
{
    rig_detach(rig, false);
    pool_destroy(rig->pool);
    assert_int_equal(nftw(rig->dir, rig_remove, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static inline void rig_done(struct stream_op *op)
{
    *(bool *)op->context = true;
}

/* Runs the operation to its end, committing whatever it takes; returns its code. */
static inline int rig_op(struct rig *rig, struct stream_op *op)
{
    bool done = false;
    op->done = rig_done;
    op->context = &done;
    if (stream_start(rig->worker, op) == STREAM_PENDING) {
        rig_run(rig);
        for (int i = 0; i < 10 && !done; i++) {
            rig_commit(rig);
        }
        assert_true(done);
    }
    return op->result.code;
}

static inline int rig_create(struct rig *rig, struct stream_op *op, const char *name,
                             const char *type, const char *body)
{
    op->verb = STREAM_CREATE;
    op->name = slice_of(name);
    op->create.content_type = slice_of(type);
    op->create.body = slice_of(body);
    return rig_op(rig, op);
}

/* The shortest forms; each returns the code. */
static inline int rig_put(struct rig *rig, const char *name, const char *type, const char *body)
{
    struct stream_op op = {0};
    return rig_create(rig, &op, name, type, body);
}

static inline int rig_post_body(struct rig *rig, const char *name, const char *type,
                                const char *body)
{
    struct stream_op op = {.verb = STREAM_APPEND, .name = slice_of(name)};
    op.append.content_type = slice_of(type);
    op.append.body = slice_of(body);
    return rig_op(rig, &op);
}

static inline int rig_delete(struct rig *rig, const char *name)
{
    struct stream_op op = {.verb = STREAM_DELETE, .name = slice_of(name)};
    return rig_op(rig, &op);
}

static inline int rig_head(struct rig *rig, const char *name)
{
    struct stream_op op = {.verb = STREAM_HEAD, .name = slice_of(name)};
    return rig_op(rig, &op);
}

static inline int rig_fork(struct rig *rig, const char *name, const char *source)
{
    struct stream_op op = {.verb = STREAM_CREATE, .name = slice_of(name)};
    op.create.forked_from = slice_of(source);
    return rig_op(rig, &op);
}

static inline int rig_fork_at(struct rig *rig, const char *name, const char *source, uint64_t at,
                              uint64_t sub_offset)
{
    struct stream_op op = {.verb = STREAM_CREATE, .name = slice_of(name)};
    op.create.forked_from = slice_of(source);
    op.create.has_fork_offset = true;
    op.create.fork_offset = (struct offset){OFFSET_AT, at};
    op.create.has_sub_offset = sub_offset > 0;
    op.create.sub_offset = sub_offset;
    return rig_op(rig, &op);
}

/* Adds the bytes of a page to `out`. */
static inline void rig_collect(const struct stream_page *page, struct buf *out)
{
    size_t bytes = 0;
    for (size_t i = 0; i < page->piece_count; i++) {
        const struct stream_piece *piece = &page->pieces[i];
        char *at = buf_reserve(out, piece->len);
        assert_non_null(at);
        if (piece->block) {
            memcpy(at, piece->ptr, piece->len);
        } else {
            assert_int_equal(pread(piece->pack->fd, at, piece->len, (off_t)piece->at), piece->len);
        }
        buf_advance(out, piece->len);
        bytes += piece->len;
    }
    assert_int_equal(bytes, page->bytes);
    assert_int_equal(page->next - page->start, page->bytes);
}

/* Reads one page from `from`; the page is to be finished by the caller. */
static inline int rig_page(struct rig *rig, struct stream_op *op, const char *name, uint64_t from,
                           bool in_memory)
{
    *op = (struct stream_op){.verb = STREAM_READ, .name = slice_of(name)};
    op->read.from = (struct offset){OFFSET_AT, from};
    op->read.touch = true;
    op->read.in_memory = in_memory;
    return rig_op(rig, op);
}

/* The stream's stored bytes from `from` on, page by page, NUL-terminated; the caller frees. NULL
 * when the first page is refused. */
static inline char *rig_read(struct rig *rig, const char *name, uint64_t from)
{
    struct buf out;
    buf_init(&out, (size_t)1 << 30);
    bool more = true;
    bool in_memory = false;
    while (more) {
        struct stream_op op;
        if (rig_page(rig, &op, name, from, in_memory) != 0) {
            buf_finish(&out);
            return NULL;
        }
        rig_collect(&op.result.page, &out);
        more = !op.result.page.up_to_date;
        from = op.result.page.next;
        in_memory = !in_memory;
        stream_page_finish(&op.result.page);
    }
    buf_append_char(&out, '\0');
    return out.ptr;
}

static inline void rig_expect(struct rig *rig, const char *name, const char *bytes)
{
    char *got = rig_read(rig, name, 0);
    assert_non_null(got);
    assert_string_equal(got, bytes);
    free(got);
}

/* A waiter that counts its wakes. */
struct rig_waiter {
    struct stream_waiter waiter;
    int wakes;
};

static inline void rig_wake(struct stream_waiter *waiter)
{
    container_of(waiter, struct rig_waiter, waiter)->wakes++;
}

#endif
