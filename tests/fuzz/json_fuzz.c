/* JSON: any bytes, judged a second time by a recursive checker that follows the grammar rule by
 * rule. What is taken must also survive being taken apart into messages and put together again. */
#include "base/json.h"

#include "base/limits.h"
#include "base/utf8.h"

#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The checker's position. Every check returns whether it found its rule and stands behind it. */
struct check {
    const char *at;  /* next byte */
    const char *end; /* one past the last */
    unsigned depth;  /* open arrays and objects */
};

static bool is_next(const struct check *c, const char *any_of)
{
    return c->at < c->end && *c->at != '\0' && strchr(any_of, *c->at) != NULL;
}

static bool take(struct check *c, const char *any_of)
{
    bool found = is_next(c, any_of);

    c->at += found;
    return found;
}

static void take_all(struct check *c, const char *any_of)
{
    while (take(c, any_of)) {
    }
}

static bool check_string(struct check *c)
{
    const char *start = c->at;

    if (!take(c, "\"")) {
        return false;
    }
    while (c->at < c->end && *c->at != '"') {
        if ((unsigned char)*c->at < 0x20) {
            return false;
        }
        if (*c->at++ != '\\') {
            continue;
        }
        if (take(c, "u")) {
            for (int i = 0; i < 4; i++) {
                if (!take(c, "0123456789abcdefABCDEF")) {
                    return false;
                }
            }
        } else if (!take(c, "\"\\/bfnrt")) {
            return false;
        }
    }
    return take(c, "\"") && utf8_valid((struct slice){start, (size_t)(c->at - start)});
}

static bool check_number(struct check *c)
{
    const char *digits = "0123456789";

    (void)take(c, "-"); /* optional */
    if (!take(c, "0")) {
        if (!take(c, "123456789")) {
            return false;
        }
        take_all(c, digits);
    }
    if (take(c, ".")) {
        if (!take(c, digits)) {
            return false;
        }
        take_all(c, digits);
    }
    if (take(c, "eE")) {
        (void)take(c, "+-"); /* optional */
        if (!take(c, digits)) {
            return false;
        }
        take_all(c, digits);
    }
    return true;
}

static bool check_word(struct check *c, struct slice word)
{
    bool found = slice_starts_with((struct slice){c->at, (size_t)(c->end - c->at)}, word);

    c->at += found ? word.len : 0;
    return found;
}

static bool check_value(struct check *c);

static bool check_members(struct check *c, bool object)
{
    const char *closing = object ? "}" : "]";

    c->at++;
    take_all(c, " \t\r\n");
    if (take(c, closing)) {
        return true;
    }
    do {
        take_all(c, " \t\r\n");
        if (object) {
            if (!check_string(c)) {
                return false;
            }
            take_all(c, " \t\r\n");
            if (!take(c, ":")) {
                return false;
            }
        }
        if (!check_value(c)) {
            return false;
        }
    } while (take(c, ","));
    return take(c, closing);
}

/* A value with the white space around it. */
static bool check_value(struct check *c)
{
    bool good;

    take_all(c, " \t\r\n");
    if (is_next(c, "[{")) {
        good = c->depth++ < JSON_DEPTH_MAX && check_members(c, *c->at == '{');
        c->depth--;
    } else if (is_next(c, "\"")) {
        good = check_string(c);
    } else if (is_next(c, "-0123456789")) {
        good = check_number(c);
    } else {
        good = check_word(c, SLICE("true")) || check_word(c, SLICE("false")) ||
               check_word(c, SLICE("null"));
    }
    take_all(c, " \t\r\n");
    return good;
}

/* Each message alone is one whole value; all are joined to an array. */
static int join(void *context, struct slice message)
{
    struct buf *joined = context;
    struct slice value;

    assert(json_scan_value(message, &value, NULL) == (long)message.len);
    assert(slice_equal(value, message));
    buf_append(joined, joined->len == 0 ? SLICE("[") : SLICE(","));
    buf_append(joined, message);
    return 0;
}

static void check_text(struct slice text)
{
    struct check oracle = {.at = text.ptr, .end = text.ptr + text.len};
    struct errmsg msg = {.text = ""};
    struct buf joined;
    struct buf again;
    bool want = check_value(&oracle) && oracle.at == oracle.end;
    int got;

    buf_init(&joined, 64u << 20);
    buf_init(&again, 64u << 20);
    got = json_each_message(text, join, &joined, &msg);
    assert(got == (want ? 0 : ERR_INVALID));
    assert((msg.text[0] == '\0') == want);
    if (want && joined.len > 0) {
        buf_append(&joined, SLICE("]"));
        got = json_each_message(buf_slice(&joined), join, &again, NULL);
        buf_append(&again, SLICE("]"));
        /* One value nested to the cap is too deep once it stands in an array. */
        assert(got == ERR_INVALID || slice_equal(buf_slice(&joined), buf_slice(&again)));
    }
    buf_finish(&joined);
    buf_finish(&again);
}

static void check_writing(struct slice bytes)
{
    struct buf written;
    struct slice value;

    buf_init(&written, 64u << 20);
    json_append_string(&written, bytes);
    assert(!written.failed);
    assert(json_scan_value(buf_slice(&written), &value, NULL) == (long)written.len);
    buf_finish(&written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice input = size == 0 ? SLICE("") : (struct slice){(const char *)data, size};

    check_text(input);
    check_writing(input);
    return 0;
}
