/* See world.h. Failures end here too: what they say names the seed, and how to run it again. */
#include "sim/world.h"

#include <assert.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "stream/core.h"
#include "sim/alloc.h"

/* What a failing program says. Plain data, since it is wanted in a signal handler as well. */
static struct {
    char line[256];
    const char *program;
    uint64_t seed;
    unsigned steps;
    unsigned step;
    unsigned passed;
    char files[2][80]; /* of a catalog in shared memory, and */
    char dir[64];      /* where it is; empty: there is none */
} progress;

static struct world *current; /* the one whose store calls stage_hook */

static void tell(void)
{
    int len = snprintf(progress.line, sizeof(progress.line),
                       "seed %llu, step %u; again: %s --start %llu --seeds 1 --steps %u -v\n"
                       "%u passed, 1 failed\n",
                       (unsigned long long)progress.seed, progress.step, progress.program,
                       (unsigned long long)progress.seed, progress.steps, progress.passed);
    ssize_t n = write(STDOUT_FILENO, progress.line, (size_t)len);
    (void)n; /* There is nothing else to be done about it. */
}

/* The seed brings the catalog back; memory that nobody frees would fill up. */
static void remove_shared(void)
{
    if (progress.dir[0]) {
        (void)unlink(progress.files[0]); /* may not be there yet */
        (void)unlink(progress.files[1]); /* may not be there yet */
        (void)rmdir(progress.dir);
    }
}

static void on_abort(int number)
{
    (void)number;
    tell();
    remove_shared();
}

void sim_begin(const char *program, uint64_t seed, unsigned steps)
{
    progress.program = program;
    progress.seed = seed;
    progress.steps = steps;
    progress.step = 0;
    struct sigaction action = {.sa_handler = on_abort, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGABRT, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
}

void sim_step(unsigned step)
{
    progress.step = step;
}

void sim_passed(void)
{
    progress.passed++;
}

unsigned sim_finish(void)
{
    printf("%u passed, 0 failed\n", progress.passed);
    return 0;
}

void sim_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    (void)fflush(stdout);
    abort();
}

struct sim_options sim_parse(int argc, char **argv, uint64_t seeds, unsigned steps)
{
    struct sim_options o = {.start = 1, .seeds = seeds, .steps = steps};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "0";
        if (strcmp(argv[i], "-v") == 0) {
            o.verbose = true;
            continue;
        }
        if (strcmp(argv[i], "--seeds") == 0) {
            o.seeds = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--start") == 0) {
            o.start = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--steps") == 0) {
            o.steps = (unsigned)strtoul(value, NULL, 10);
        } else {
            sim_fail("unknown option %s", argv[i]);
        }
        i++;
    }
    return o;
}

void world_trace(const struct world *w, const char *format, ...)
{
    if (!w->verbose) {
        return;
    }
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    (void)fflush(stdout);
}

/* Tasks. */

static void post(void *context, struct task *task)
{
    list_append(context, &task->link);
}

static bool run_queue(struct list *queue)
{
    struct list *first = list_first(queue);
    if (!first) {
        return false;
    }
    list_remove(first);
    struct task *task = container_of(first, struct task, link);
    task->run(task);
    return true;
}

bool world_run_task(struct world *w)
{
    unsigned first = (unsigned)world_below(w, WORLD_WORKERS + 1);
    for (unsigned i = 0; i <= WORLD_WORKERS; i++) {
        unsigned at = (first + i) % (WORLD_WORKERS + 1);
        if (at < WORLD_WORKERS && run_queue(&w->queues[at])) {
            return true;
        }
        if (at == WORLD_WORKERS && simpool_count(w->pool) > 0) {
            simpool_run(w->pool, world_below(w, simpool_count(w->pool)));
            return true;
        }
    }
    return false;
}

log_pos world_durable(struct world *w)
{
    return w->real_ops->durable(w->engine->store);
}

/* The disk does not run out of memory. */
static void guard(bool inside)
{
    if (inside) {
        alloc_pause();
    } else {
        alloc_resume();
    }
}

static size_t visible_moment(struct world *w)
{
    return model_moment(&w->model, world_durable(w));
}

void world_check_usage(struct world *w)
{
    struct engine_stats stats;
    engine_get_stats(w->engine, &stats);
    size_t moment = engine_failed(w->engine) ? visible_moment(w) : w->model.moment;
    struct model_usage usage = model_usage(&w->model, moment);
    CHECK(stats.streams == usage.streams && stats.bytes == usage.bytes,
          "%llu streams with %llu bytes are counted, there are %llu with %llu",
          (unsigned long long)stats.streams, (unsigned long long)stats.bytes,
          (unsigned long long)usage.streams, (unsigned long long)usage.bytes);
}

/* What takes room was accepted below the limits. */
static void check_quota(struct world *w, const struct record *record)
{
    const struct engine_config *c = &w->config;
    struct model_usage usage = model_usage(&w->model, w->model.moment);
    bool creates = record->type == RECORD_CREATE;
    bool grows = record->type != RECORD_NOTE && record_body(record).len > 0;
    CHECK(!creates || c->streams_max == 0 || usage.streams <= c->streams_max,
          "stream %llu of %llu is created", (unsigned long long)usage.streams,
          (unsigned long long)c->streams_max);
    CHECK(!grows || c->bytes_max == 0 || usage.bytes <= c->bytes_max,
          "%llu bytes are stored of %llu", (unsigned long long)usage.bytes,
          (unsigned long long)c->bytes_max);
}

static void check_sleepers(struct world *w)
{
    size_t now = visible_moment(w);
    LIST_FOR_EACH(node, &w->sleepers)
    {
        struct sleeper *z = container_of(node, struct sleeper, link);
        const struct model_version *v = model_at(z->model_stream, now);
        CHECK(v && v->life == MODEL_ALIVE && !v->closed && v->tail <= z->waiter.from,
              "a live reader of %s at %llu was not woken: tail %llu, closed %d, life %d",
              z->model_stream->name, (unsigned long long)z->waiter.from,
              (unsigned long long)v->tail, v->closed, (int)v->life);
    }
    struct engine_stats stats;
    engine_get_stats(w->engine, &stats);
    CHECK(stats.waiters == w->sleeper_count, "%llu waiters are counted, there are %zu",
          (unsigned long long)stats.waiters, w->sleeper_count);
}

void world_settle(struct world *w)
{
    while (world_run_task(w)) {
    }
    world_check_usage(w);
    if (alloc_failures() == 0) {
        check_sleepers(w); /* without memory a reader may learn of a change at the next one only */
    }
}

void world_commit(struct world *w)
{
    int rc = w->real_ops->commit(w->engine->store);
    world_trace(w, "commit: %s", err_name(rc));
    CHECK(rc == 0 || w->trouble || w->dying, "commit: %s", err_name(rc));
    CHECK(rc != 0 || visible_moment(w) == w->model.moment, "a good commit left something behind");
}

void world_drain(struct world *w)
{
    for (unsigned i = 0; w->request_count > 0; i++) {
        CHECK(i < 1000, "%zu requests are never answered", w->request_count);
        world_settle(w);
        if (w->request_count > 0) {
            world_commit(w);
        }
        world_settle(w);
    }
}

/* What other threads do while a checkpoint is between two calls of the disk. */
static void during_checkpoint(void *context, enum fakedisk_call call, const char *path)
{
    struct world *w = context;
    (void)path;
    if (!w->saving || w->calm || call == CALL_PREAD || !world_chance(w, 2)) {
        return;
    }
    w->saving = false; /* what happens here makes calls too */
    world_trace(w, "meanwhile");
    for (uint64_t n = 1 + world_below(w, 6); n > 0; n--) {
        switch (world_below(w, 6)) {
        case 0:
            world_commit(w);
            break;
        case 2:
            world_check_list(w);
            break;
        case 1:
            (void)world_run_task(w);
            break;
        default:
            world_start_random(w);
            break;
        }
    }
    w->saving = true;
}

void world_checkpoint(struct world *w)
{
    w->saving = true;
    bool all = visible_moment(w) == w->model.moment;
    size_t before = w->model.moment;
    int rc = w->real_ops->checkpoint(w->engine->store);
    w->saving = false;
    all = all && before == w->model.moment;
    world_trace(w, "checkpoint: %s", err_name(rc));
    CHECK(rc == 0 || w->trouble, "checkpoint: %s", err_name(rc));
    if (rc == 0 && all && alloc_failures() == 0) {
        struct engine_stats stats;
        engine_get_stats(w->engine, &stats);
        CHECK(stats.hot_bytes == 0, "%llu bytes stay hot after a checkpoint of everything",
              (unsigned long long)stats.hot_bytes);
    }
}

int64_t world_now(struct world *w)
{
    return w->sys.now_ms(w->sys.context);
}

void world_advance(struct world *w, uint64_t ms)
{
    world_trace(w, "advance %llu ms", (unsigned long long)ms);
    fakedisk_advance(w->disk, ms);
    LIST_FOR_EACH(node, &w->requests)
    {
        struct request *r = container_of(node, struct request, link);
        struct model_stream *s = model_find(&w->model, r->said.name, w->model.moment);
        if (s) {
            s->accessed_max_ms = world_now(w);
        }
    }
}

/* Requests. */

struct request *request_create(struct world *w, enum stream_verb verb, const char *name)
{
    struct request *r = calloc(1, sizeof(*r));
    assert(r);
    r->world = w;
    r->number = ++w->next_number;
    r->op.verb = verb;
    static char names[WORLD_NAMES][24];
    unsigned number = (unsigned)strtoul(name + 2, NULL, 10);
    assert(number < WORLD_NAMES);
    world_name(names[number], number);
    r->said = (struct model_request){
        .verb = verb, .name = names[number], .body_empty = true, .producer = -1};
    r->op.name = slice_of(names[number]);
    r->op.context = r;
    return r;
}

void request_free(struct request *r)
{
    if (r->op.verb == STREAM_READ) {
        stream_page_finish(&r->op.result.page);
    }
    block_unref(r->block);
    free(r->raw);
    free(r->stored);
    free(r->lens);
    free(r);
}

static void done(struct stream_op *op)
{
    request_answered(op->context);
}

static void trace_start(const struct request *r)
{
    static const char *const verbs[] = {"create", "append", "delete", "head", "read", "notes"};
    const struct model_request *q = &r->said;
    world_trace(r->world, "%u: %s %s %s%s%zu bytes%s p%d:%llu:%llu %s%s from %d:%llu", r->number,
                verbs[r->op.verb], q->name, q->source ? "fork of " : "", q->source ? q->source : "",
                q->stored_len, q->close ? " close" : "", q->producer, (unsigned long long)q->epoch,
                (unsigned long long)q->seq, q->stream_seq ? q->stream_seq : "",
                r->further ? " further" : "",
                r->op.verb == STREAM_READ ? (int)r->op.read.from.kind : 0,
                r->op.verb == STREAM_READ ? (unsigned long long)r->op.read.from.position : 0ull);
}

void request_start(struct request *r)
{
    struct world *w = r->world;
    r->op.done = done;
    r->start_moment = w->model.moment;
    r->start_visible = visible_moment(w);
    r->start_ms = world_now(w);
    struct model_stream *s = model_find(&w->model, r->said.name, w->model.moment);
    if (s && r->op.verb != STREAM_HEAD && r->op.verb != STREAM_NOTE &&
        r->start_ms < model_deadline_max(s)) {
        s->accessed_max_ms = r->start_ms;
    }
    list_append(&w->requests, &r->link);
    w->request_count++;
    trace_start(r);
    unsigned worker = (unsigned)world_below(w, WORLD_WORKERS);
    if (stream_start(w->workers[worker], &r->op) == 0) {
        request_answered(r);
    }
}

void world_retry(struct world *w)
{
    struct list again;
    list_init(&again);
    list_append_all(&again, &w->retries);
    struct list *first;
    while ((first = list_first(&again)) != NULL) {
        struct request *r = container_of(first, struct request, link);
        list_remove(first);
        r->staged = false;
        r->stream = NULL;
        request_start(r);
    }
}

static void forget_retries(struct world *w)
{
    LIST_FOR_EACH(node, &w->retries)
    {
        list_remove(node);
        request_free(container_of(node, struct request, link));
    }
}

static struct request *further_read(struct world *w, struct model_stream *s, struct stream *stream,
                                    uint64_t from)
{
    struct request *r = request_create(w, STREAM_READ, s->name);
    r->further = true;
    r->stream = s;
    r->op.read = (struct stream_read_request){.from = {.kind = OFFSET_AT, .position = from},
                                              .stream = stream,
                                              .in_memory = world_chance(w, 2)};
    r->read_on = true;
    r->will_wait = !world_chance(w, 8);
    return r;
}

void world_read_on(struct request *r, uint64_t from)
{
    struct stream_page *page = &r->op.result.page;
    struct model_stream *s = model_by_id(&r->world->model, page->stream_id);
    struct request *next = further_read(r->world, s, page->stream, from);
    next->will_wait = r->will_wait;
    request_start(next);
}

static void sleeper_free(struct sleeper *z)
{
    z->model_stream->waiters--;
    int64_t now = world_now(z->world);
    if (z->model_stream->waiters == 0) {
        z->model_stream->accessed_min_ms = now;
        z->model_stream->accessed_max_ms = now;
    }
    z->world->sleeper_count--;
    list_remove(&z->link);
    stream_unref(z->stream);
    free(z);
}

static void wake(struct stream_waiter *waiter)
{
    struct sleeper *z = container_of(waiter, struct sleeper, waiter);
    struct world *w = z->world;
    const struct model_version *v = model_at(z->model_stream, visible_moment(w));
    world_trace(w, "  wake %s at %llu", z->model_stream->name, (unsigned long long)waiter->from);
    CHECK(w->dying || v->life != MODEL_ALIVE || v->closed || v->tail > waiter->from,
          "a live reader of %s was woken for nothing", z->model_stream->name);
    struct request *r = w->dying ? NULL : further_read(w, z->model_stream, z->stream, waiter->from);
    if (r) {
        request_start(r);
    }
    sleeper_free(z);
}

void world_sleep(struct request *r)
{
    struct world *w = r->world;
    struct stream_page *page = &r->op.result.page;
    struct sleeper *z = calloc(1, sizeof(*z));
    assert(z);
    z->world = w;
    z->waiter.wake = wake;
    z->waiter.from = page->wait_from;
    z->model_stream = model_by_id(&w->model, page->stream_id);
    z->worker = (unsigned)world_below(w, WORLD_WORKERS);
    int rc = stream_wait(w->workers[z->worker], page->stream, &z->waiter);
    if (rc == ERR_NOMEM && w->trouble) {
        free(z);
        return;
    }
    if (rc != 0) {
        CHECK(rc == STREAM_PENDING, "stream_wait: %s", err_name(rc));
        free(z);
        world_read_on(r, page->wait_from);
        return;
    }
    z->stream = stream_ref(page->stream);
    z->model_stream->waiters++;
    w->sleeper_count++;
    list_append(&w->sleepers, &z->link);
}

static void wake_nobody(struct world *w)
{
    LIST_FOR_EACH(node, &w->sleepers)
    {
        struct sleeper *z = container_of(node, struct sleeper, link);
        stream_unwait(&z->waiter);
        sleeper_free(z);
    }
}

/* The engine's life. */

/* The request that the record is of. Of several that are alike, one that may be accepted. */
static struct request *request_of(struct world *w, const struct record *record)
{
    struct request *wrong = NULL;
    LIST_FOR_EACH(node, &w->requests)
    {
        struct request *r = container_of(node, struct request, link);
        if (request_matches(r, record)) {
            if (request_acceptable(r, record)) {
                return r;
            }
            wrong = r;
        }
    }
    CHECK(!wrong, "request %u is accepted against the rules", wrong->number);
    sim_fail("a record of type %d that nobody asked for", (int)record->type);
}

static int stage_hook(struct store *store, const struct record *record, struct block *block,
                      log_pos *ret_end)
{
    struct world *w = current;
    bool own = record->type == RECORD_TOUCH ||
               (record->type == RECORD_DELETE && record->del.expired);
    int rc = w->real_ops->stage(store, record, block, ret_end);
    if (rc) {
        CHECK(rc == ERR_AGAIN || rc == ERR_BUSY || w->trouble, "stage: %s", err_name(rc));
        return rc;
    }
    alloc_pause();
    struct request *r = own ? NULL : request_of(w, record);
    model_apply(&w->model, record, *ret_end, world_now(w));
    check_quota(w, record);
    if (r) {
        r->staged = true;
        r->staged_moment = w->model.moment;
        r->stream = model_by_id(&w->model, record->id);
    }
    alloc_resume();
    w->records++;
    world_trace(w, "  record %zu: type %d stream %llu end %llu%s", w->model.moment,
                (int)record->type, (unsigned long long)record->id, (unsigned long long)*ret_end,
                own ? " (own)" : "");
    return rc;
}

static void choose_config(struct world *w)
{
    w->config = (struct engine_config){
        .store = {.dir = w->dir,
                  .durability = DURABILITY_SYNC,
                  .segment_bytes = 4096u * (4 + world_below(w, 30)),
                  .checkpoint_bytes = UINT64_MAX,
                  .checkpoint_interval_ms = 0,
                  .staged_bytes_max = 1 * MIB,
                  .sys = &w->sys,
                  .threads = false,
                  .catalog_dir = w->catalog_dir},
        .pool = w->pool,
        .read_page_bytes = world_chance(w, 2) ? 1 * MIB : 1 + (uint32_t)world_below(w, 5000),
        .hot_bytes_max = world_chance(w, 3) ? 100000 : 64 * MIB,
        .cache_bytes_max = world_chance(w, 2) ? world_below(w, 20000) : 64 * MIB,
        .idle_ms = 1 + world_below(w, 3000),
        .sweep_interval_ms = 0};
}

static void make_dirs(struct world *w, bool real_disk)
{
    const char *tmp = getenv("TMPDIR");
    struct stat st;
    const char *base = !real_disk && stat("/dev/shm", &st) == 0 ? "/dev/shm" : tmp ? tmp : "/tmp";
    (void)snprintf(w->catalog_dir, sizeof(w->catalog_dir), "%s/arbe-sim-XXXXXX", base);
    CHECK(mkdtemp(w->catalog_dir), "no directory in %s", base);
    if (!real_disk) {
        (void)snprintf(progress.files[0], sizeof(progress.files[0]), "%s/data.mdb", w->catalog_dir);
        (void)snprintf(progress.files[1], sizeof(progress.files[1]), "%s/lock.mdb", w->catalog_dir);
        (void)snprintf(progress.dir, sizeof(progress.dir), "%s", w->catalog_dir);
    }
    (void)snprintf(w->dir, sizeof(w->dir), "%s", real_disk ? w->catalog_dir : "/data");
}

void world_init(struct world *w, uint64_t seed, bool real_disk, bool verbose)
{
    *w = (struct world){.random = seed * 0x9e3779b97f4a7c15u + 1, .verbose = verbose};
    w->disk = fakedisk_create(seed);
    fakedisk_set_hook(w->disk, during_checkpoint, w);
    fakedisk_set_guard(w->disk, guard);
    w->sys = *fakedisk_sys(w->disk);
    if (real_disk) {
        struct sys real;
        sys_posix_init(&real);
        real.context = w->sys.context; /* which the real functions do not look at */
        real.now_ms = w->sys.now_ms;
        real.mono_ms = w->sys.mono_ms;
        real.mono_us = w->sys.mono_us;
        real.random = w->sys.random;
        w->sys = real;
    }
    make_dirs(w, real_disk);
    int rc = pool_create(0, &w->pool);
    assert(rc == 0);
    for (unsigned i = 0; i < WORLD_WORKERS; i++) {
        list_init(&w->queues[i]);
    }
    list_init(&w->requests);
    list_init(&w->sleepers);
    list_init(&w->retries);
    model_init(&w->model);
    choose_config(w);
    if (real_disk) {
        w->config.store.catalog_dir = NULL;
    }
    current = w;
}

static int remove_entry(void *context, const char *name)
{
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s/%s", (const char *)context, name);
    struct stat st;
    if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        struct sys real;
        sys_posix_init(&real);
        (void)real.list_dir(real.context, path, remove_entry, path);
        (void)rmdir(path);
    } else {
        (void)unlink(path);
    }
    return 0;
}

void world_finish(struct world *w)
{
    assert(!w->engine);
    struct sys real;
    sys_posix_init(&real);
    (void)real.list_dir(real.context, w->catalog_dir, remove_entry, w->catalog_dir);
    (void)rmdir(w->catalog_dir);
    progress.dir[0] = '\0';
    forget_retries(w);
    model_finish(&w->model);
    pool_destroy(w->pool);
    fakedisk_destroy(w->disk);
    current = NULL;
}

/* The state that was recovered is that after some number of records, and after all that were
 * durable. */
static void rewind_to_recovered(struct world *w)
{
    log_pos end = w->engine->store->ops->durable(w->engine->store);
    size_t moment = model_moment(&w->model, end);
    CHECK(moment == 0 || w->model.ends[moment - 1] == end, "the log ends between records");
    CHECK(end >= w->durable, "acknowledged records are lost: %llu of %llu", (unsigned long long)end,
          (unsigned long long)w->durable);
    world_trace(w, "recovered %zu of %zu records", moment, w->model.moment);
    model_rewind(&w->model, moment);
    w->durable = end;
    for (size_t i = 0; i < w->model.count; i++) {
        w->model.streams[i]->waiters = 0;
    }
}

/* Limits come and go with the lives of a directory, and may be below what it has. */
static void choose_limits(struct world *w)
{
    w->config.streams_max = world_chance(w, 3) ? 1 + world_below(w, WORLD_NAMES) : 0;
    w->config.bytes_max = world_chance(w, 3) ? 1 + world_below(w, 100000) : 0;
}

int world_open(struct world *w)
{
    if (world_chance(w, 2)) {
        choose_limits(w);
    }
    struct store_report report;
    struct errmsg msg = {""};
    assert(!w->engine);
    struct engine *e;
    int rc = engine_open(&w->config, &e, &report, &msg);
    world_trace(w, "open: %s %s", err_name(rc), rc ? msg.text : report.text);
    if (rc) {
        CHECK(w->trouble, "open: %s: %s", err_name(rc), msg.text);
        CHECK(msg.text[0], "open: an error without a sentence");
        while (simpool_count(w->pool) > 0) {
            simpool_run(w->pool, 0);
        }
        return rc;
    }
    w->engine = e;
    w->real_ops = e->store->ops;
    w->ops = *e->store->ops;
    w->ops.stage = stage_hook;
    rewind_to_recovered(w);
    world_check_usage(w);
    e->store->ops = &w->ops;
    alloc_pause();
    for (unsigned i = 0; i < WORLD_WORKERS; i++) {
        rc = engine_attach(e, post, &w->queues[i], &w->workers[i]);
        CHECK(rc == 0, "attach: %s", err_name(rc));
    }
    alloc_resume();
    return 0;
}

void world_close(struct world *w, bool checkpoint)
{
    world_trace(w, "close");
    (void)visible_moment(w);
    log_pos durable = world_durable(w);
    w->durable = durable > w->durable ? durable : w->durable;
    if (!w->dying) {
        world_drain(w);
    }
    wake_nobody(w);
    for (unsigned i = 0; w->request_count > 0; i++) {
        CHECK(i < 1000, "%zu requests are not answered though the log failed", w->request_count);
        while (world_run_task(w)) {
        }
        (void)w->real_ops->commit(w->engine->store);
    }
    while (world_run_task(w)) {
    }
    durable = world_durable(w);
    w->durable = durable > w->durable ? durable : w->durable;
    for (unsigned i = 0; i < WORLD_WORKERS; i++) {
        engine_detach(w->workers[i]);
    }
    int rc = engine_close(w->engine, checkpoint);
    CHECK(rc == 0 || w->trouble || w->dying, "close: %s", err_name(rc));
    w->engine = NULL;
    w->dying = false;
}

void world_verify(struct world *w)
{
    world_survey(w);
    for (unsigned i = 0; i < WORLD_NAMES; i++) {
        char name[24];
        world_name(name, i);
        world_start_head(w, name);
        world_start_read(w, name);
    }
    world_drain(w);
}

/* Those that a crash tore, and recovery set aside, are there for good. */
static int count_pack(void *context, const char *name)
{
    *(unsigned *)context += strstr(name, ".damaged") == NULL;
    return 0;
}

/* Nothing keeps a deleted name or its bytes once its forks are gone too. */
void world_delete_all(struct world *w)
{
    w->calm = true;
    wake_nobody(w);
    unsigned first = (unsigned)world_below(w, WORLD_NAMES);
    /* Twice: the deletion of an expired one may have found no room in the log. */
    for (unsigned i = 0; i < 2 * WORLD_NAMES; i++) {
        char name[24];
        world_name(name, (first + i) % WORLD_NAMES);
        world_start_delete(w, name);
        if (i + 1 == WORLD_NAMES) {
            world_drain(w);
        }
    }
    world_drain(w);
    for (size_t i = 0; i < w->model.count; i++) {
        const struct model_version *v = model_at(w->model.streams[i], w->model.moment);
        CHECK(v->life == MODEL_GONE, "%s is still there", w->model.streams[i]->name);
    }
    world_verify(w);
    for (unsigned i = 0; i < 4; i++) {
        world_checkpoint(w);
    }
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/packs", w->dir);
    unsigned packs = 0;
    (void)w->sys.list_dir(w->sys.context, path, count_pack, &packs);
    CHECK(packs == 0 || w->trouble, "%u packs are left of streams that are gone", packs);
    struct engine_stats stats;
    engine_get_stats(w->engine, &stats);
    CHECK(stats.hot_bytes == 0 && stats.cache_bytes == 0 && stats.streams_loaded == 0,
          "%llu hot bytes, %llu in the cache, %llu streams are left",
          (unsigned long long)stats.hot_bytes, (unsigned long long)stats.cache_bytes,
          (unsigned long long)stats.streams_loaded);
}
