/* Lines on stderr for the operator, as text or JSON. Only cli and serve call it; lower layers
 * return a code and a sentence. One write per line, so lines of several threads do not mix. */
#ifndef ARBE_BASE_LOGGER_H
#define ARBE_BASE_LOGGER_H

#include "base/attr.h"
#include "base/slice.h"

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
    enum logger_level level;   /* lines below it are dropped; atomic: see logger_set_level */
};

/* A part of a line that machines look at by its name. */
struct logger_field {
    const char *key;   /* letters, digits, '_' and '-'; static */
    struct slice text; /* ptr NULL: `number` is the value */
    uint64_t number;
    unsigned decimals; /* of `number`, which counts tenths, hundredths and so on; at most 6 */
};

/* Changes the level while other threads log. */
void logger_set_level(struct logger *l, enum logger_level level);

/* Whether lines of that level are written. Any thread; one load. */
bool logger_wants(const struct logger *l, enum logger_level level);

/* Writes one line: time, level, sentence. The sentence is cut at 1 KiB and its characters that are
 * harmful to a terminal (see utf8_harmful) become '?', so that text from a client cannot forge a
 * line. When nobody reads the descriptor the line is dropped after a short wait: a server must not
 * stand still because its log does. */
void logger_line(const struct logger *l, enum logger_level level, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Writes one line: time, level, message, then the fields, as key=value or as members of the JSON
 * object. A text is put in quotes, with what would break the line escaped, unless it is plain. It
 * is cut at LOGGER_FIELD_BYTES_MAX, or shorter where the line would be too long, and then ends in
 * "...". Dropped as in logger_line. */
void logger_fields(const struct logger *l, enum logger_level level, const char *message,
                   const struct logger_field *fields, size_t count);

#define LOGGER_FIELD_BYTES_MAX 512

#endif
