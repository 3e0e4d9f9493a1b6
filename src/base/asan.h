/* What AddressSanitizer is told of memory that is kept for the next use: it takes it for memory in
 * use, and would not see who still writes there. Nothing in other builds. */
#ifndef ARBE_BASE_ASAN_H
#define ARBE_BASE_ASAN_H

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define ASAN_IS_ON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASAN_IS_ON 1
#endif
#endif
#if !defined(ASAN_IS_ON)
#define ASAN_IS_ON 0
#endif

#if ASAN_IS_ON
#include <sanitizer/asan_interface.h>
#endif

/* Whoever touches it from now on is reported. It may be freed as it is. */
static inline void asan_hide(const void *memory, size_t bytes)
{
#if ASAN_IS_ON
    __asan_poison_memory_region(memory, bytes);
#else
    (void)memory;
    (void)bytes;
#endif
}

/* It is in use again. */
static inline void asan_show(const void *memory, size_t bytes)
{
#if ASAN_IS_ON
    __asan_unpoison_memory_region(memory, bytes);
#else
    (void)memory;
    (void)bytes;
#endif
}

#endif
