/* Lines on stderr for the operator, as text or JSON. Only cli and serve call it; lower layers
 * return a code and a sentence. One write per line, so lines of several threads do not mix. */
#ifndef ARBE_BASE_LOGGER_H
#define ARBE_BASE_LOGGER_H

#include "base/attr.h"

enum logger_level {
    LOGGER_DEBUG,
    LOGGER_INFO,
    LOGGER_WARN,
    LOGGER_ERROR
};

enum logger_format {
    LOGGER_TEXT,
    LOGGER_JSON
};

struct logger {
    int fd;                    /* where lines go; not owned */
    enum logger_format format; /* --log-format */
    enum logger_level level;   /* lines below it are dropped */
};

/* Writes one line: time, level, sentence. The sentence is cut at 1 KiB and its control characters
 * become '?', so that text from a client cannot forge a line. When nobody reads the descriptor the
 * line is dropped after a short wait: a server must not stand still because its log does. */
void logger_line(const struct logger *l, enum logger_level level, const char *format, ...)
    PRINTF_LIKE(3, 4);

#endif
