/* Whole messages gather in the buffer and leave it together; a message that outgrows the buffer is
 * written in parts. */
#include "cli/out.h"

#include "base/json.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "cli/interrupt.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BUFFER_BYTES (64u * KIB)
#define PART_BYTES   (4u * KIB) /* of a text, to be escaped */

static bool wants_colour(void)
{
    const char *no = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    return (no == NULL || no[0] == '\0') && term != NULL && term[0] != '\0' &&
           strcmp(term, "dumb") != 0;
}

void out_init(struct out *o)
{
    *o = (struct out){.terminal = isatty(STDOUT_FILENO) == 1};
    o->colour = o->terminal && wants_colour();
    buf_init(&o->buf, 4 * BUFFER_BYTES); /* what is there and the largest that is added */
}

/* How much of `bytes` is still to be written when a signal has come: to the end of the line that is
 * half written. */
static size_t rest_of_line(const struct out *o, struct slice bytes, size_t done)
{
    const char *end;

    if (!o->lines || !o->begun) {
        return 0;
    }
    end = memchr(bytes.ptr + done, '\n', bytes.len - done);
    return end == NULL ? bytes.len - done : (size_t)(end - bytes.ptr) + 1 - done;
}

static void write_all(struct out *o, struct slice bytes)
{
    size_t done = 0;

    while (o->error == 0 && done < bytes.len) {
        size_t len = bytes.len - done;

        if (interrupt_signal() != 0) {
            len = rest_of_line(o, bytes, done);
            if (len == 0) {
                return;
            }
        }
        ssize_t wrote = write(STDOUT_FILENO, bytes.ptr + done, len);

        if (wrote > 0) {
            done += (size_t)wrote;
            o->begun = bytes.ptr[done - 1] != '\n';
        } else if (wrote < 0 && errno != EINTR) {
            o->error = errno;
        }
    }
}

void out_flush(struct out *o)
{
    write_all(o, (struct slice){o->buf.ptr, o->whole});
    buf_consume(&o->buf, o->whole);
    o->whole = 0;
}

void out_flush_some(struct out *o)
{
    size_t len = o->whole < PIPE_BUF ? o->whole : PIPE_BUF;
    ssize_t wrote = len == 0 || o->error != 0 ? 0 : write(STDOUT_FILENO, o->buf.ptr, len);

    if (wrote < 0) {
        o->error = errno == EINTR ? 0 : errno;
    } else if (wrote > 0) {
        o->begun = o->buf.ptr[wrote - 1] != '\n';
        o->whole -= (size_t)wrote;
        buf_consume(&o->buf, (size_t)wrote);
    }
}

bool out_is_over(const struct out *o)
{
    return o->error != 0 || interrupt_signal() != 0;
}

/* Makes room by writing what there is, the beginning of the message at hand included. */
static void spill(struct out *o)
{
    if (o->whole > 0) {
        out_flush(o);
    }
    if (o->buf.len >= BUFFER_BYTES) {
        write_all(o, buf_slice(&o->buf));
        buf_clear(&o->buf);
    }
}

void out_add(struct out *o, struct slice bytes)
{
    if (o->error != 0) {
        return;
    }
    if (bytes.len < BUFFER_BYTES) {
        buf_append(&o->buf, bytes);
    } else {
        out_flush(o);
        write_all(o, buf_slice(&o->buf));
        buf_clear(&o->buf);
        write_all(o, bytes);
    }
    if (o->buf.failed) {
        o->error = ENOMEM;
    } else if (o->buf.len >= BUFFER_BYTES) {
        spill(o);
    }
}

void out_format(struct out *o, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);

    va_end(args);
    if (len > 0) {
        out_add(o,
                (struct slice){text, (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1});
    }
}

void out_add_shown(struct out *o, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        size_t len = utf8_harmful((struct slice){text.ptr + i, text.len - i});

        out_add(o, len > 0 ? SLICE("?") : (struct slice){text.ptr + i, 1});
        i += len > 0 ? len - 1 : 0;
    }
}

/* As much of `text` as is escaped at a time: whole characters. */
static size_t part_of(struct slice text)
{
    size_t len = PART_BYTES;

    if (text.len <= PART_BYTES) {
        return text.len;
    }
    while (len > PART_BYTES - 4 && ((unsigned char)text.ptr[len] & 0xc0) == 0x80) {
        len--;
    }
    return len;
}

void out_add_string(struct out *o, struct slice text)
{
    char memory[6 * PART_BYTES + 3]; /* each byte escaped, two quotes, a NUL */
    struct buf part;

    out_add(o, SLICE("\""));
    while (text.len > 0) {
        size_t len = part_of(text);

        buf_init_fixed(&part, memory, sizeof(memory));
        json_append_string(&part, (struct slice){text.ptr, len});
        out_add(o, (struct slice){part.ptr + 1, part.len - 2});
        text = (struct slice){text.ptr + len, text.len - len};
    }
    out_add(o, SLICE("\""));
}

/* How many bytes of a JSON text can be written as they are. */
static size_t harmless_run(const struct out *o, struct slice json)
{
    size_t run = 0;

    while (run < json.len && json.ptr[run] != '\n' && json.ptr[run] != '\r' &&
           (!o->terminal || utf8_harmful((struct slice){json.ptr + run, json.len - run}) == 0)) {
        run++;
    }
    return run;
}

/* The number of the character that `text` is, of two or three bytes, or one of ASCII. */
static unsigned code_point(struct slice text)
{
    unsigned code = (unsigned char)text.ptr[0];

    code &= text.len == 1 ? 0x7fu : text.len == 2 ? 0x1fu : 0x0fu;
    for (size_t i = 1; i < text.len; i++) {
        code = code << 6 | ((unsigned char)text.ptr[i] & 0x3fu);
    }
    return code;
}

void out_add_json(struct out *o, struct slice json)
{
    for (;;) {
        size_t run = harmless_run(o, json);

        out_add(o, (struct slice){json.ptr, run});
        json = (struct slice){json.ptr + run, json.len - run};
        if (json.len == 0) {
            return;
        }
        size_t len = utf8_harmful(json); /* line ends are control characters, too */

        if ((unsigned char)json.ptr[0] < 0x20) {
            out_add(o, SLICE(" ")); /* white space: in a string it would be no JSON */
        } else {
            out_format(o, "\\u%04x", code_point((struct slice){json.ptr, len}));
        }
        json = (struct slice){json.ptr + len, json.len - len};
    }
}

void out_end_message(struct out *o)
{
    o->whole = o->buf.len;
}

bool out_finish(struct out *o)
{
    out_flush(o);
    int error = o->error;

    buf_finish(&o->buf);
    if (error == EPIPE) {
        interrupt_end_broken_pipe();
    }
    if (error != 0) {
        (void)fprintf(stderr, "arbe: the output could not be written: %s\n", strerror(error));
    }
    return error == 0;
}

const char *out_bold(const struct out *o)
{
    return o->colour ? "\033[1m" : "";
}

const char *out_dim(const struct out *o)
{
    return o->colour ? "\033[2m" : "";
}

const char *out_plain(const struct out *o)
{
    return o->colour ? "\033[0m" : "";
}
