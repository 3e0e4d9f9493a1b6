/* A line is put together on the stack and leaves with one write: logging must work when memory is
 * out, and must not mix the lines of two threads. */
#include "base/logger.h"

#include "base/buf.h"
#include "base/date.h"
#include "base/json.h"
#include "base/limits.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define SENTENCE_BYTES_MAX KIB
/* A pipe takes up to 4096 bytes whole or not at all. A sentence triples at worst (a byte that is
 * not UTF-8 becomes the three of U+FFFD), so every line fits. */
#define LINE_BYTES_MAX   4096
#define WRITABLE_WAIT_MS 100

static const char *level_name(enum logger_level level)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};

    return names[level];
}

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The length of the text that vsnprintf cut at `len`, without a character that was cut apart. */
static size_t whole_characters(const char *text, size_t len)
{
    while (len > 0 && ((unsigned char)text[len - 1] & 0xc0) == 0x80) {
        len--;
    }
    return len > 0 && (unsigned char)text[len - 1] >= 0xc0 ? len - 1 : len;
}

static struct slice sentence(char text[static SENTENCE_BYTES_MAX], const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

static struct slice sentence(char text[static SENTENCE_BYTES_MAX], const char *format, va_list args)
{
    int wanted = vsnprintf(text, SENTENCE_BYTES_MAX, format, args);
    size_t len = wanted < 0 ? 0 : (size_t)wanted;

    if (len >= SENTENCE_BYTES_MAX) {
        len = whole_characters(text, SENTENCE_BYTES_MAX - 1);
    }
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) {
            text[i] = '?';
        }
    }
    return (struct slice){text, len};
}

static void put_line(struct buf *line, enum logger_format format, enum logger_level level,
                     struct slice text)
{
    char time[DATE_RFC3339_BYTES];

    date_format_rfc3339(time, now_ms());
    if (format == LOGGER_JSON) {
        buf_append_format(line, "{\"time\":\"%s\",\"level\":\"%s\",\"message\":", time,
                          level_name(level));
        json_append_string(line, text);
        buf_append(line, SLICE("}\n"));
    } else {
        buf_append_format(line, "%s %-5s ", time, level_name(level));
        buf_append(line, text);
        buf_append_char(line, '\n');
    }
}

void logger_line(const struct logger *l, enum logger_level level, const char *format, ...)
{
    char text[SENTENCE_BYTES_MAX];
    char memory[LINE_BYTES_MAX];
    struct pollfd writable = {.fd = l->fd, .events = POLLOUT};
    struct buf line;
    struct slice said;
    va_list args;
    ssize_t written;

    if (level < l->level) {
        return;
    }
    va_start(args, format);
    said = sentence(text, format, args);
    va_end(args);
    buf_init_fixed(&line, memory, sizeof(memory));
    put_line(&line, l->format, level, said);
    if (poll(&writable, 1, WRITABLE_WAIT_MS) != 1) {
        return;
    }
    do {
        written = write(l->fd, line.ptr, line.len);
    } while (written < 0 && errno == EINTR);
    /* Any other failure has nowhere to be reported. */
}
