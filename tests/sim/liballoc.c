/* The linker's --wrap sends allocations here. */
#define ALLOC_IMPLEMENTATION
#include "sim/alloc.h"

#include "sim/fakedisk.h"

static struct {
    uint64_t one_in;
    uint64_t random;
    uint64_t failures;
    unsigned paused;
} state;

void alloc_fail(uint64_t one_in, uint64_t seed)
{
    state.one_in = one_in;
    state.random = seed;
}

void alloc_forget(void)
{
    state.failures = 0;
}

void alloc_pause(void)
{
    state.paused++;
}

void alloc_resume(void)
{
    state.paused--;
}

uint64_t alloc_failures(void)
{
    return state.failures;
}

static bool fails(void)
{
    if (state.one_in == 0 || state.paused > 0 || fakedisk_below(&state.random, state.one_in) != 0) {
        return false;
    }
    state.failures++;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails() ? NULL : __real_realloc(old, size);
}
