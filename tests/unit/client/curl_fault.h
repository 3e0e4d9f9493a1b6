/* libcurl's allocations, too, fail as unit/base/fault.h says, which stands before this. libcurl
 * allocates on threads of its own as well: fail only what one thread does. */
#ifndef ARBE_TESTS_UNIT_CLIENT_CURL_FAULT_H
#define ARBE_TESTS_UNIT_CLIENT_CURL_FAULT_H

#include <curl/curl.h>
#include <string.h>

static inline char *curl_fault_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);

    return copy != NULL ? memcpy(copy, text, size) : NULL;
}

/* Once, before any other use of libcurl. */
static inline void curl_fault_init(void)
{
    (void)curl_global_init_mem(CURL_GLOBAL_ALL, malloc, free, realloc, curl_fault_strdup, calloc);
}

#endif
