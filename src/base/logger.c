/* A line is put together on the stack and leaves with one write: logging must work when memory is
 * out, and must not mix the lines of two threads. */
#include "base/logger.h"

#include "base/buf.h"
#include "base/date.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/utf8.h"

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

/* Each character that is harmful to a terminal becomes a '?'. What is left of `len`. */
static size_t replace_harmful(char *text, size_t len)
{
    size_t kept = 0;

    for (size_t at = 0; at < len; kept++) {
        size_t harmful = utf8_harmful((struct slice){text + at, len - at});

        text[kept] = harmful > 0 ? '?' : text[at];
        at += harmful > 0 ? harmful : 1;
    }
    return kept;
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
    return (struct slice){text, replace_harmful(text, len)};
}

static void put_head(struct buf *line, enum logger_format format, enum logger_level level)
{
    char time[DATE_RFC3339_BYTES];

    date_format_rfc3339(time, now_ms());
    if (format == LOGGER_JSON) {
        buf_append_format(line, "{\"time\":\"%s\",\"level\":\"%s\",\"message\":", time,
                          level_name(level));
    } else {
        buf_append_format(line, "%s %-5s ", time, level_name(level));
    }
}

static void put_message(struct buf *line, enum logger_format format, struct slice text)
{
    if (format == LOGGER_JSON) {
        json_append_string(line, text);
    } else {
        buf_append(line, text);
    }
}

static void put_line(struct buf *line, enum logger_format format, enum logger_level level,
                     struct slice text)
{
    put_head(line, format, level);
    put_message(line, format, text);
    buf_append(line, format == LOGGER_JSON ? SLICE("}\n") : SLICE("\n"));
}

void logger_set_level(struct logger *l, enum logger_level level)
{
    __atomic_store_n(&l->level, level, __ATOMIC_RELAXED);
}

bool logger_wants(const struct logger *l, enum logger_level level)
{
    return level >= __atomic_load_n(&l->level, __ATOMIC_RELAXED);
}

/* A line goes out whole, or not at all when nobody takes it. */
static void write_line(const struct logger *l, struct slice line)
{
    struct pollfd writable = {.fd = l->fd, .events = POLLOUT};
    ssize_t written;

    if (poll(&writable, 1, WRITABLE_WAIT_MS) != 1) {
        return;
    }
    do {
        written = write(l->fd, line.ptr, line.len);
    } while (written < 0 && errno == EINTR);
    /* Any other failure has nowhere to be reported. */
}

void logger_line(const struct logger *l, enum logger_level level, const char *format, ...)
{
    char text[SENTENCE_BYTES_MAX];
    char memory[LINE_BYTES_MAX];
    struct buf line;
    struct slice said;
    va_list args;

    if (!logger_wants(l, level)) {
        return;
    }
    va_start(args, format);
    said = sentence(text, format, args);
    va_end(args);
    buf_init_fixed(&line, memory, sizeof(memory));
    put_line(&line, l->format, level, said);
    write_line(l, buf_slice(&line));
}

/* Whether a value can stand in a line of text without quotes, and be told from what follows. */
static bool is_plain(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (c <= ' ' || c > '~' || c == '"' || c == '\\') {
            return false;
        }
    }
    return text.len > 0;
}

/* Whether bytes above ASCII are characters, and none of them one that is harmful to a terminal. */
static bool is_readable(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (utf8_harmful((struct slice){text.ptr + i, text.len - i}) > 1) {
            return false;
        }
    }
    return utf8_valid(text);
}

static void put_quoted(struct buf *line, struct slice text)
{
    bool readable = is_readable(text);

    buf_append_char(line, '"');
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];

        if (c < ' ' || c == 0x7f || (c > 0x7f && !readable)) {
            buf_append_format(line, "\\x%02x", c);
        } else if (c == '"' || c == '\\') {
            buf_append_char(line, '\\');
            buf_append_char(line, (char)c);
        } else {
            buf_append_char(line, (char)c);
        }
    }
    buf_append_char(line, '"');
}

static void put_text(struct buf *line, enum logger_format format, struct slice text, size_t max)
{
    char memory[LOGGER_FIELD_BYTES_MAX + 4];
    struct buf cut;

    if (text.len > max) {
        buf_init_fixed(&cut, memory, sizeof(memory));
        buf_append(&cut, (struct slice){text.ptr, whole_characters(text.ptr, max)});
        buf_append(&cut, SLICE("..."));
        text = buf_slice(&cut);
    }
    if (format == LOGGER_JSON) {
        json_append_string(line, text);
    } else if (is_plain(text)) {
        buf_append(line, text);
    } else {
        put_quoted(line, text);
    }
}

static void put_number(struct buf *line, uint64_t number, unsigned decimals)
{
    uint64_t unit = 1;

    for (unsigned i = 0; i < decimals; i++) {
        unit *= 10;
    }
    buf_append_u64(line, number / unit);
    if (decimals > 0) {
        buf_append_format(line, ".%0*llu", (int)decimals, (unsigned long long)(number % unit));
    }
}

/* The line with texts of at most `max` bytes. */
static void put_fields(struct buf *line, enum logger_format format,
                       const struct logger_field *fields, size_t count, size_t max)
{
    for (size_t i = 0; i < count; i++) {
        buf_append_format(line, format == LOGGER_JSON ? ",\"%s\":" : " %s=", fields[i].key);
        if (fields[i].text.ptr == NULL) {
            put_number(line, fields[i].number, fields[i].decimals);
        } else {
            put_text(line, format, fields[i].text, max);
        }
    }
    buf_append(line, format == LOGGER_JSON ? SLICE("}\n") : SLICE("\n"));
}

void logger_fields(const struct logger *l, enum logger_level level, const char *message,
                   const struct logger_field *fields, size_t count)
{
    char memory[LINE_BYTES_MAX];
    struct buf line = {.failed = true};

    if (!logger_wants(l, level)) {
        return;
    }
    for (size_t max = LOGGER_FIELD_BYTES_MAX; line.failed && max > 0; max /= 4) {
        buf_init_fixed(&line, memory, sizeof(memory));
        put_head(&line, l->format, level);
        put_message(&line, l->format, slice_of(message));
        put_fields(&line, l->format, fields, count, max);
    }
    if (!line.failed) {
        write_line(l, buf_slice(&line));
    }
}
