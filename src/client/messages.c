/* Two passes over each byte: one finds where a message ends, looking only at quotes, brackets and
 * commas; json_scan_value then judges the whole message. The first pass may count brackets of any
 * kind alike: what does not match fails in the second. */
#include "client/messages.h"

#include <assert.h>

#include "base/json.h"

/* Memory that is kept for the next message that spans pieces. */
#define PART_BYTES_KEPT ((size_t)64 << 10)

void messages_init(struct messages *m, size_t message_bytes_max)
{
    *m = (struct messages){.state = MESSAGES_START, .max = message_bytes_max};
    buf_init(&m->part, message_bytes_max);
}

void messages_finish(struct messages *m)
{
    buf_finish(&m->part);
}

static void drop_part(struct messages *m)
{
    if (m->part.cap > PART_BYTES_KEPT) {
        buf_finish(&m->part);
    }
    buf_clear(&m->part);
    m->handed_out = false;
}

void messages_reset(struct messages *m)
{
    drop_part(m);
    m->state = MESSAGES_START;
    m->depth = 0;
    m->in_string = false;
    m->escaped = false;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static void skip_space(struct slice *rest)
{
    while (rest->len > 0 && is_space(*rest->ptr)) {
        rest->ptr++;
        rest->len--;
    }
}

/* Goes on inside a string; returns the byte behind its closing quote, or `end`. */
static const char *scan_string(struct messages *m, const char *at, const char *end)
{
    while (at < end) {
        char c = *at++;

        if (m->escaped) {
            m->escaped = false;
        } else if (c == '\\') {
            m->escaped = true;
        } else if (c == '"') {
            m->in_string = false;
            return at;
        }
    }
    return at;
}

/* The byte at which the message at hand ends (a comma or a closing bracket), or `end`. */
static const char *scan_message(struct messages *m, const char *at, const char *end)
{
    while (at < end) {
        if (m->in_string) {
            at = scan_string(m, at, end);
            continue;
        }
        switch (*at) {
        case '"':
            m->in_string = true;
            break;
        case '[':
        case '{':
            m->depth++;
            break;
        case ']':
        case '}':
            if (m->depth == 0) {
                return at;
            }
            m->depth--;
            break;
        case ',':
            if (m->depth == 0) {
                return at;
            }
            break;
        default:
            break;
        }
        at++;
    }
    return at;
}

static int too_big(const struct messages *m, struct errmsg *msg)
{
    return err_set(msg, ERR_TOOBIG, "a message has more than the %zu bytes allowed", m->max);
}

/* Keeps the beginning of a message for later pieces. */
static int keep(struct messages *m, struct slice part, struct errmsg *msg)
{
    if (part.len > m->max - m->part.len) {
        return too_big(m, msg);
    }
    buf_append(&m->part, part);
    return m->part.failed ? ERR_NOMEM : 0;
}

/* Judges a message, with white space perhaps behind it. */
static int check(struct slice text, struct slice *ret_message, struct errmsg *msg)
{
    struct slice value;
    long used = json_scan_value(text, &value, msg);

    if (used < 0) {
        return err_prefix(msg, (int)used, "in a message");
    }
    for (size_t i = (size_t)used; i < text.len; i++) {
        if (!is_space(text.ptr[i])) {
            return err_set(msg, ERR_INVALID,
                           "in a message: not valid JSON at byte %zu: expected ',' or ']'", i);
        }
    }
    *ret_message = value;
    return 1;
}

/* Inside a message: takes it whole, or what there is of it. */
static int take_message(struct messages *m, struct slice *rest, struct slice *ret_message,
                        struct errmsg *msg)
{
    const char *end = rest->ptr + rest->len;
    const char *stop = scan_message(m, rest->ptr, end);
    struct slice here = {rest->ptr, (size_t)(stop - rest->ptr)};

    if (stop == end || m->part.len > 0) {
        int rc = keep(m, here, msg);

        if (rc < 0) {
            return rc;
        }
        if (stop == end) {
            *rest = (struct slice){end, 0};
            return 0;
        }
        here = buf_slice(&m->part);
        m->handed_out = true;
    } else if (here.len > m->max) {
        return too_big(m, msg);
    }
    if (*stop == '}') {
        return err_set(msg, ERR_INVALID, "not a JSON array: '}' without '{' behind a message");
    }
    m->state = *stop == ',' ? MESSAGES_NEXT : MESSAGES_DONE;
    *rest = (struct slice){stop + 1, (size_t)(end - stop - 1)};
    return check(here, ret_message, msg);
}

/* Between messages, at a byte that is no white space: goes past a bracket or into a message. */
static int step(struct messages *m, struct slice *rest, struct errmsg *msg)
{
    char c = *rest->ptr;

    switch (m->state) {
    case MESSAGES_START:
        if (c != '[') {
            return err_set(msg, ERR_INVALID, "not a JSON array: expected '[' at the beginning");
        }
        m->state = MESSAGES_FIRST;
        break;
    case MESSAGES_FIRST:
        m->state = c == ']' ? MESSAGES_DONE : MESSAGES_IN;
        break;
    case MESSAGES_NEXT:
        m->state = MESSAGES_IN;
        break;
    case MESSAGES_DONE:
        return err_set(msg, ERR_INVALID, "not a JSON array: nothing may follow the closing ']'");
    case MESSAGES_IN:
    default:
        assert(false); /* not between messages */
    }
    if (m->state != MESSAGES_IN) {
        rest->ptr++;
        rest->len--;
    }
    return 0;
}

int messages_take(struct messages *m, struct slice *rest, struct slice *ret_message,
                  struct errmsg *msg)
{
    if (m->handed_out) {
        drop_part(m);
    }
    while (rest->len > 0) {
        int rc;

        if (m->state == MESSAGES_IN) {
            return take_message(m, rest, ret_message, msg);
        }
        skip_space(rest);
        rc = rest->len == 0 ? 0 : step(m, rest, msg);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}
