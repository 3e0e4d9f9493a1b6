/* Allocation that fails on demand. A test includes this before the .c it tests, whose malloc,
 * calloc, realloc, strdup and strndup then are these; free stays what it is. With fault_countdown
 * at n, n allocations succeed and all later ones fail; below 0, all succeed. Not thread-safe. */
#ifndef ARBE_TESTS_UNIT_BASE_FAULT_H
#define ARBE_TESTS_UNIT_BASE_FAULT_H

#include "base/attr.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static long fault_countdown = -1;

static inline bool fault_due(void)
{
    if (fault_countdown > 0) {
        fault_countdown--;
        return false;
    }
    return fault_countdown == 0;
}

static inline void *fault_malloc(size_t size)
{
    return fault_due() ? NULL : malloc(size);
}

static inline void *fault_calloc(size_t count, size_t size)
{
    return fault_due() ? NULL : calloc(count, size);
}

static inline void *fault_realloc(void *old, size_t size)
{
    return fault_due() ? NULL : realloc(old, size);
}

static inline char *fault_strdup(const char *text)
{
    return fault_due() ? NULL : strdup(text);
}

static inline char *fault_strndup(const char *text, size_t max)
{
    return fault_due() ? NULL : strndup(text, max);
}

#define malloc  fault_malloc
#define calloc  fault_calloc
#define realloc fault_realloc
#define strdup  fault_strdup
#define strndup fault_strndup

#endif
