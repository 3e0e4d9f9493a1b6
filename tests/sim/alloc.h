/* Memory that runs out. Simulations are linked so that malloc, calloc and realloc of our own
 * objects are the functions of liballoc.c, which fail when told to; libraries, LMDB among them,
 * keep theirs. A file of a simulation includes this after <stdlib.h> so that its own allocations
 * never fail. One thread. */
#ifndef ARBE_TESTS_SIM_ALLOC_H
#define ARBE_TESTS_SIM_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From now on each allocation fails with a chance of one in `one_in`; 0: none does. */
void alloc_fail(uint64_t one_in, uint64_t seed);

/* Between the two none fails; they nest. */
void alloc_pause(void);
void alloc_resume(void);

/* How many have failed since the last alloc_forget. */
uint64_t alloc_failures(void);
void alloc_forget(void);

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

#ifndef ALLOC_IMPLEMENTATION
#define malloc  __real_malloc
#define calloc  __real_calloc
#define realloc __real_realloc
#endif

#endif
