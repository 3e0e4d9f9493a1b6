/* date.h cuts to milliseconds; the digits behind them are read here. */
#include "t3/instant.h"

#include "base/buf.h"
#include "base/date.h"
#include "base/json_value.h"
#include "t3/fields.h"

#define DIGITS_OF_MS 3
#define DIGITS_READ  12

/* The digits of the fraction from the fourth on, as picoseconds. */
static uint32_t finer(struct slice text)
{
    const char *point = memchr(text.ptr, '.', text.len);
    const char *end = text.ptr + text.len;
    uint32_t value = 0;

    if (point == NULL) {
        return 0;
    }
    const char *at = point + 1;
    bool in_digits = true;

    for (int digit = 0; digit < DIGITS_READ; digit++, at++) {
        in_digits = in_digits && at < end && *at >= '0' && *at <= '9';
        if (digit >= DIGITS_OF_MS) {
            value = value * 10 + (in_digits ? (uint32_t)(*at - '0') : 0);
        }
    }
    return value;
}

struct t3_instant t3_instant_of(struct slice text)
{
    struct t3_instant t = {.len = 0};

    if (text.len >= T3_INSTANT_BYTES || !date_parse_rfc3339(text, &t.ms)) {
        return (struct t3_instant){.len = 0};
    }
    t.picoseconds = finer(text);
    t.len = (uint8_t)text.len;
    memcpy(t.text, text.ptr, text.len);
    return t;
}

struct t3_instant t3_instant_read(struct slice value)
{
    const struct t3_instant none = {.len = 0};
    char text[T3_INSTANT_BYTES];
    struct buf out;

    if (!t3_field_string(value)) {
        return none;
    }
    buf_init_fixed(&out, text, sizeof(text));
    return json_string_decode(value, &out) == 0 ? t3_instant_of(buf_slice(&out)) : none;
}

int t3_instant_compare(const struct t3_instant *a, const struct t3_instant *b)
{
    if (a->len == 0 || b->len == 0) {
        return (a->len > 0) - (b->len > 0);
    }
    if (a->ms != b->ms) {
        return a->ms < b->ms ? -1 : 1;
    }
    return (a->picoseconds > b->picoseconds) - (a->picoseconds < b->picoseconds);
}

void t3_instant_advance(struct t3_instant *latest, const struct t3_instant *other)
{
    if (t3_instant_compare(other, latest) > 0) {
        *latest = *other;
    }
}

struct slice t3_instant_text(const struct t3_instant *t)
{
    return (struct slice){t->len > 0 ? t->text : NULL, t->len};
}
