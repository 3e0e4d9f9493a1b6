/* The fault loop over the whole engine: one history of requests, commits, checkpoints and
 * compactions, in which the i-th call of the disk fails, once and for ever, or is the last before
 * the power goes, for every i until the history ends without it. Each time the directory is opened
 * again and read.
 *
 *   fault_sim [--seeds N] [--start S] [--steps K] [-v]
 *
 * N histories, a few by SIM_SEEDS when it is not given. */
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "sim/alloc.h"
#include "sim/world.h"

struct fault {
    enum fakedisk_call call;
    int code; /* 0: the power fails */
    bool for_ever;
};

static const struct fault faults[] = {
    {CALL_CHANGES, 0, false},           {CALL_ANY, ERR_IO, false},
    {CALL_ANY, ERR_IO, true},           {CALL_PWRITEV, ERR_NOSPC, false},
    {CALL_ALLOCATE, ERR_NOSPC, true},   {CALL_CREATE, ERR_NOSPC, true},
    {CALL_FDATASYNC, ERR_NOSPC, false}, {CALL_COMMIT, ERR_NOSPC, false},
};

static bool finished(const struct world *w)
{
    return fakedisk_crashed(w->disk);
}

static void run_history(struct world *w, unsigned steps)
{
    for (unsigned i = 0; i < steps && !finished(w); i++) {
        world_act(w);
        if (w->request_count > 20 && !finished(w)) {
            world_commit(w);
            world_settle(w);
        }
        if (i % 30 == 29 && !finished(w)) {
            world_commit(w);
            world_checkpoint(w);
        }
    }
}

static void open_in_peace(struct world *w)
{
    fakedisk_restart(w->disk);
    w->trouble = false;
    int rc = world_open(w);
    CHECK(rc == 0, "open: %s", err_name(rc));
    world_verify(w);
    world_retry(w);
    world_drain(w);
}

/* True when the fault never came to pass. */
static bool run(uint64_t seed, const struct fault *f, uint64_t index, const struct sim_options *o)
{
    struct world *w = malloc(sizeof(*w));
    CHECK(w, "memory");
    world_init(w, seed, false, o->verbose);
    fakedisk_add_dir(w->disk, "/data");
    world_trace(w, "call %d, number %llu, code %s%s", (int)f->call, (unsigned long long)index,
                err_name(f->code), f->for_ever ? " for ever" : "");
    w->trouble = true;
    if (f->code) {
        fakedisk_fail(w->disk, f->call, index, f->code, f->for_ever);
    } else {
        fakedisk_crash_at(w->disk, index);
    }
    bool opened = world_open(w) == 0;
    if (opened) {
        run_history(w, o->steps);
    }
    bool through = f->code ? !fakedisk_fault_hit(w->disk) : !finished(w);
    if (opened) {
        w->dying = finished(w) || index % 2 == 0;
        if (w->dying) {
            fakedisk_crash(w->disk, index);
        }
        world_close(w, index % 3 == 0);
    }
    open_in_peace(w);
    world_delete_all(w);
    world_close(w, true);
    world_finish(w);
    free(w);
    return through;
}

int main(int argc, char **argv)
{
    const char *text = getenv("SIM_SEEDS");
    uint64_t seeds = 1 + (text ? strtoull(text, NULL, 10) : 300) / 150;
    struct sim_options o = sim_parse(argc, argv, seeds, 300);
    for (uint64_t seed = o.start; seed < o.start + o.seeds; seed++) {
        for (size_t i = 0; i < ARRAY_COUNT(faults); i++) {
            sim_begin(argv[0], seed, o.steps);
            uint64_t index = 0;
            do {
                sim_step((unsigned)index);
            } while (!run(seed, &faults[i], index++, &o));
            sim_passed();
        }
    }
    return (int)sim_finish();
}
