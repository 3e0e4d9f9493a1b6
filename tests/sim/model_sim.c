/* The engine beside a naive model, on the real disk and without crashes: random requests, pages of
 * every size from every place, live readers, forks, expiry, checkpoints and compactions in between,
 * and from time to time the engine is closed and opened again; or all of it in memory mode. The
 * verifier looks at the directory while it is closed, and while it is held and the world goes on.
 *
 *   model_sim [--seeds N] [--start S] [--steps K] [-v]      N from a tenth of SIM_SEEDS */
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "log/hold.h"
#include "log/verify.h"
#include "sim/world.h"
#include "sim/alloc.h"

static void on_found(void *context, const struct verify_finding *f)
{
    (void)context;
    CHECK(f->level != VERIFY_DAMAGE, "verify: %s: %s", f->file, f->text);
}

/* What happens while a tool reads. */
static void on_progress(void *context, uint64_t done, uint64_t total)
{
    struct world *w = context;
    (void)done;
    (void)total;
    if (w->engine && world_chance(w, 3) && w->request_count < 30) {
        world_act(w);
    }
}

static struct hold *held;

/* Happens between the look at the catalog and the rest. */
static int on_durable(void *context, log_pos *ret_durable, struct errmsg *msg)
{
    (void)msg;
    on_progress(context, 0, 0);
    *ret_durable = hold_renew(held);
    return 0;
}

static void verify(struct world *w, bool running)
{
    struct verify_report report;
    struct errmsg msg = {{0}};
    const struct verify_config config = {.sys = &w->sys,
                                         .dir = w->dir,
                                         .running = running,
                                         .context = w,
                                         .durable = on_durable,
                                         .found = on_found,
                                         .progress = on_progress};
    int rc = verify_run(&config, &report, &msg);
    CHECK(rc == 0, "verify: %s", msg.text);
}

static void verify_held(struct world *w)
{
    int rc = hold_begin(engine_holds(w->engine), &held);
    CHECK(rc == 0, "hold: %s", err_name(rc));
    on_progress(w, 0, 0);
    verify(w, true);
    CHECK(!hold_broken(held), "the hold was broken");
    hold_end(held);
}

static void reopen(struct world *w)
{
    world_close(w, world_chance(w, 2));
    verify(w, false);
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
        if (world_chance(w, 150)) {
            verify_held(w);
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
    verify(w, false);
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
