/* Every append goes through buf_reserve, the one place where the buffer grows and fails. */
#include "base/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Smaller first allocations would only be grown again at once. */
#define CAP_MIN 64

void buf_finish(struct buf *b)
{
    free(b->ptr);
    buf_init(b, b->max);
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    b->failed = false;
}

/* Grows to hold at least `need` bytes, which is at most max. Doubling keeps the copying linear. */
static bool grow(struct buf *b, size_t need)
{
    size_t cap = b->cap < CAP_MIN / 2 ? CAP_MIN : b->cap * 2;
    char *ptr;

    if (cap < need) {
        cap = need;
    }
    if (cap > b->max) {
        cap = b->max;
    }
    /* One byte more than is counted: printf ends with a NUL even when the text fills max. */
    ptr = cap == SIZE_MAX ? NULL : realloc(b->ptr, cap + 1);
    if (ptr == NULL) {
        return false;
    }
    b->ptr = ptr;
    b->cap = cap;
    return true;
}

char *buf_reserve(struct buf *b, size_t count)
{
    if (b->failed) {
        return NULL;
    }
    assert(b->len <= b->cap);
    if (count > b->cap - b->len || b->ptr == NULL) {
        if (b->len > b->max || count > b->max - b->len || !grow(b, b->len + count)) {
            b->failed = true;
            return NULL;
        }
    }
    return b->ptr + b->len;
}

void buf_advance(struct buf *b, size_t count)
{
    assert(count <= b->cap - b->len);
    b->len += count;
}

void buf_append(struct buf *b, struct slice bytes)
{
    char *at;

    if (bytes.len == 0) {
        return;
    }
    at = buf_reserve(b, bytes.len);
    if (at != NULL) {
        memcpy(at, bytes.ptr, bytes.len);
        b->len += bytes.len;
    }
}

void buf_append_char(struct buf *b, char c)
{
    char *at = buf_reserve(b, 1);

    if (at != NULL) {
        *at = c;
        b->len++;
    }
}

void buf_append_format(struct buf *b, const char *format, ...)
{
    va_list args;
    char *at = buf_reserve(b, 0);
    size_t room;
    int len;

    if (at == NULL) {
        return;
    }
    room = b->cap - b->len;
    va_start(args, format);
    len = vsnprintf(at, room + 1, format, args);
    va_end(args);
    assert(len >= 0);
    if ((size_t)len > room) {
        at = buf_reserve(b, (size_t)len);
        if (at == NULL) {
            return;
        }
        va_start(args, format);
        (void)vsnprintf(at, (size_t)len + 1, format, args); /* same text, same length */
        va_end(args);
    }
    b->len += (size_t)len;
}

void buf_append_u64(struct buf *b, uint64_t value)
{
    char digits[20];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    buf_append(b, (struct slice){digits + at, sizeof(digits) - at});
}

void buf_consume(struct buf *b, size_t count)
{
    assert(count <= b->len);
    if (count > 0 && count < b->len) {
        memmove(b->ptr, b->ptr + count, b->len - count);
    }
    b->len -= count;
}
