/* Compiler contracts used on prototypes, so that a broken promise is a warning, not a bug report.
 *
 * Only attributes that gcc and clang share stand here. */
#ifndef ARBE_BASE_ATTR_H
#define ARBE_BASE_ATTR_H

#include <stddef.h>

#define MUST_USE                 __attribute__((warn_unused_result))
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))
#define NO_RETURN                __attribute__((noreturn))
#define UNUSED                   __attribute__((unused))

/* The struct of which `pointer` is the field `member`. */
#define container_of(pointer, type, member) \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
