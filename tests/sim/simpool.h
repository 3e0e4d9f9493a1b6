/* A pool without threads for simulations, in the place of base/pool.c: a task waits until the test
 * says that it runs, so every order of events can be had, and had again. One thread. */
#ifndef ARBE_TESTS_SIM_SIMPOOL_H
#define ARBE_TESTS_SIM_SIMPOOL_H

#include "base/pool.h"

/* Tasks that wait. */
size_t simpool_count(const struct pool *p);

/* Runs the task at `index`, oldest first; below simpool_count. */
void simpool_run(struct pool *p, size_t index);

#endif
