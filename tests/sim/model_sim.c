/* The engine beside a naive model, on the real disk and without crashes: random requests, pages of
 * every size from every place, live readers, forks, expiry, checkpoints and compactions in between,
 * and from time to time the engine is closed and opened again; or all of it in memory mode.
 *
 *   model_sim [--seeds N] [--start S] [--steps K] [-v]      N from a tenth of SIM_SEEDS */
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "sim/world.h"
#include "sim/alloc.h"

static void reopen(struct world *w)
{
    world_close(w, world_chance(w, 2));
    int rc = world_open(w);
    CHECK(rc == 0, "open: %s", err_name(rc));
    world_verify(w);
}

static void run_seed(uint64_t seed, unsigned steps, bool verbose)
{
    struct world *w = malloc(sizeof(*w));
    CHECK(w, "memory");
    world_init(w, seed, true, verbose);
    w->with_expiry = world_chance(w, 2);
    bool memory = world_chance(w, 4);
    w->config.store.durability = memory ? DURABILITY_MEMORY : DURABILITY_SYNC;
    int rc = world_open(w);
    CHECK(rc == 0, "open: %s", err_name(rc));
    for (unsigned i = 0; i < steps; i++) {
        sim_step(i);
        if (!memory && world_chance(w, 200)) {
            reopen(w);
        }
        world_act(w);
        if (w->request_count > 30) {
            world_commit(w);
            world_settle(w);
        }
    }
    world_drain(w);
    if (!memory) {
        reopen(w);
    }
    world_delete_all(w);
    world_close(w, true);
    world_finish(w);
    free(w);
}

int main(int argc, char **argv)
{
    const char *text = getenv("SIM_SEEDS");
    uint64_t seeds = 1 + (text ? strtoull(text, NULL, 10) : 300) / 10;
    struct sim_options o = sim_parse(argc, argv, seeds, 1500);
    for (uint64_t seed = o.start; seed < o.start + o.seeds; seed++) {
        sim_begin(argv[0], seed, o.steps);
        run_seed(seed, o.steps, o.verbose);
        sim_passed();
    }
    return (int)sim_finish();
}
