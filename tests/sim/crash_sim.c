/* Crashes of the whole engine. Each seed is a history of several lives of one data directory:
 * random requests, commits, checkpoints, housekeeping, clocks that move; then the power fails,
 * between two calls or inside the disk's k-th, or the process is killed, or a call fails, or the
 * disk is full for a while. Each life begins by reading everything that the one before left, and
 * comparing.
 *
 *   crash_sim [--seeds N] [--start S] [--steps K] [-v]      N from SIM_SEEDS when it is not
 * given */
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "sim/world.h"
#include "sim/alloc.h"

enum plan {
    PLAN_PEACE,
    PLAN_CRASH, /* inside a call */
    PLAN_FAULT,
    PLAN_FULL,
    PLAN_MEMORY,
    PLANS
};

static void plan_fault(struct world *w)
{
    static const struct {
        enum fakedisk_call call;
        int code;
    } faults[] = {{CALL_PWRITEV, ERR_IO},  {CALL_FDATASYNC, ERR_IO},  {CALL_CREATE, ERR_IO},
                  {CALL_ALLOCATE, ERR_IO}, {CALL_RENAME, ERR_IO},     {CALL_SYNC_DIR, ERR_IO},
                  {CALL_COMMIT, ERR_IO},   {CALL_PREAD, ERR_IO},      {CALL_UNLINK, ERR_IO},
                  {CALL_OPEN, ERR_IO},     {CALL_PWRITEV, ERR_NOSPC}, {CALL_ALLOCATE, ERR_NOSPC},
                  {CALL_CHANGES, ERR_IO},  {CALL_ANY, ERR_IO}};
    size_t i = world_below(w, ARRAY_COUNT(faults));
    uint64_t index = world_below(w, faults[i].call >= CALL_CHANGES ? 200 : 40);
    bool for_ever = world_chance(w, 3);
    world_trace(w, "plan: call %d fails at %llu%s", (int)faults[i].call, (unsigned long long)index,
                for_ever ? " for ever" : "");
    fakedisk_fail(w->disk, faults[i].call, index, faults[i].code, for_ever);
}

/* Whether power may fail: what the kernel was told survives the process, not the machine. */
static bool power_fails(const struct world *w)
{
    return w->config.store.durability == DURABILITY_SYNC;
}

static enum plan make_plan(struct world *w)
{
    enum plan plan = (enum plan)world_below(w, PLANS);
    plan = plan == PLAN_CRASH && !power_fails(w) ? PLAN_FAULT : plan;
    alloc_forget();
    uint64_t calls;
    switch (plan) {
    case PLAN_CRASH:
        calls = world_chance(w, 3) ? world_below(w, 30) : world_below(w, 400);
        world_trace(w, "plan: a crash in call %llu", (unsigned long long)calls);
        fakedisk_crash_at(w->disk, calls);
        break;
    case PLAN_FAULT:
        plan_fault(w);
        break;
    case PLAN_FULL:
        world_trace(w, "plan: a full disk");
        fakedisk_set_capacity(w->disk, fakedisk_used(w->disk) + world_below(w, 300000));
        break;
    case PLAN_MEMORY:
        world_trace(w, "plan: memory runs out");
        alloc_fail(1 + world_below(w, 300), world_below(w, UINT64_MAX));
        break;
    default:
        break;
    }
    w->trouble = plan != PLAN_PEACE;
    return plan;
}

/* True when the power failed meanwhile. */
static bool live(struct world *w, enum plan plan, unsigned steps, unsigned *step)
{
    for (unsigned i = 0; i < steps; i++) {
        sim_step(++*step);
        world_act(w);
        if (plan == PLAN_FULL && world_chance(w, 200)) {
            world_trace(w, "space is back");
            fakedisk_set_capacity(w->disk, UINT64_MAX);
        }
        if (fakedisk_crashed(w->disk)) {
            return true;
        }
        if (w->request_count > 30) {
            world_commit(w);
            world_settle(w);
        }
    }
    return fakedisk_crashed(w->disk);
}

/* How a life ends: power loss, a killed process, or in good order. */
static void end_life(struct world *w, bool crashed)
{
    alloc_fail(0, 0);
    uint64_t way = crashed ? 0 : world_below(w, 4);
    way += way == 0 && !power_fails(w);
    if (way == 0) {
        world_trace(w, "power loss");
        fakedisk_crash(w->disk, world_below(w, UINT64_MAX));
    } else if (way == 1) {
        world_trace(w, "killed");
        fakedisk_fail(w->disk, CALL_ANY, 0, ERR_IO, true);
    }
    w->dying = way < 2;
    w->trouble = w->trouble || w->dying;
    world_close(w, way == 2);
    if (!w->dying && way >= 2 && power_fails(w) && world_chance(w, 2)) {
        fakedisk_crash(w->disk, world_below(w, UINT64_MAX)); /* after an orderly end */
    }
    fakedisk_restart(w->disk);
    fakedisk_set_capacity(w->disk, UINT64_MAX);
}

static void open_in_peace(struct world *w)
{
    w->trouble = false;
    alloc_forget();
    int rc = world_open(w);
    CHECK(rc == 0, "open: %s", err_name(rc));
    world_verify(w);
}

static void run_seed(uint64_t seed, const struct sim_options *o)
{
    struct world *w = malloc(sizeof(*w));
    CHECK(w, "memory");
    world_init(w, seed, false, o->verbose);
    fakedisk_add_dir(w->disk, "/data");
    w->with_expiry = world_chance(w, 2);
    w->config.store.durability = world_chance(w, 6) ? DURABILITY_OS : DURABILITY_SYNC;
    unsigned step = 0;
    unsigned lives = 2 + (unsigned)world_below(w, 5);
    for (unsigned i = 0; i < lives; i++) {
        world_trace(w, "life %u", i);
        enum plan plan = make_plan(w);
        if (world_open(w)) {
            alloc_fail(0, 0);
            if (power_fails(w) && world_chance(w, 2)) {
                fakedisk_crash(w->disk, seed + i);
            }
            fakedisk_restart(w->disk);
            fakedisk_set_capacity(w->disk, UINT64_MAX);
            open_in_peace(w);
        }
        world_retry(w);
        bool crashed = live(w, plan, 1 + (unsigned)world_below(w, 2 * o->steps / lives), &step);
        end_life(w, crashed);
        if (world_chance(w, 2)) {
            open_in_peace(w);
            end_life(w, false);
        }
    }
    open_in_peace(w);
    world_retry(w);
    world_drain(w);
    world_delete_all(w);
    world_close(w, true);
    world_trace(w, "%llu answers, %llu records", (unsigned long long)w->answers,
                (unsigned long long)w->records);
    world_finish(w);
    free(w);
}

int main(int argc, char **argv)
{
    const char *text = getenv("SIM_SEEDS");
    struct sim_options o = sim_parse(argc, argv, text ? strtoull(text, NULL, 10) : 300, 300);
    for (uint64_t seed = o.start; seed < o.start + o.seeds; seed++) {
        sim_begin(argv[0], seed, o.steps);
        run_seed(seed, &o);
        sim_passed();
    }
    return (int)sim_finish();
}
