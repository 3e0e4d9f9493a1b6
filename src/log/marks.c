/* See marks.h. */
#include "log/marks.h"

#include "base/err.h"
#include "base/limits.h"

size_t marks_put(void *at, uint64_t len, bool append_end)
{
    uint64_t mark = len << 1 | (append_end ? 1 : 0);
    if (mark < 0x80) {
        *(uint8_t *)at = (uint8_t)mark;
        return 1;
    }
    return bytes_put_varint(at, mark);
}

bool marks_next(struct bytes_reader *r, uint64_t *ret_len, bool *ret_append_end)
{
    if (r->failed || r->at == r->end) {
        return false;
    }
    /* One byte is what the many marks of many small messages have. */
    uint64_t mark = *r->at < 0x80 ? *r->at++ : bytes_read_varint(r);
    if (r->failed) {
        return false;
    }
    *ret_len = mark >> 1;
    *ret_append_end = (mark & 1) != 0;
    return true;
}

static struct bytes_reader reader_over(struct slice marks)
{
    const uint8_t *at = (const uint8_t *)marks.ptr;
    /* Adding even zero to a null pointer is undefined. */
    return (struct bytes_reader){.at = at, .end = marks.len > 0 ? at + marks.len : at};
}

bool marks_valid(struct slice marks, uint64_t total)
{
    struct bytes_reader r = reader_over(marks);
    uint64_t sum = 0;
    uint64_t len;
    bool append_end = true;
    while (marks_next(&r, &len, &append_end)) {
        if (len == 0 || len > total - sum) {
            return false;
        }
        sum += len;
    }
    return !r.failed && sum == total;
}

struct marks_cut marks_cut_at(struct slice marks, uint64_t limit)
{
    struct bytes_reader r = reader_over(marks);
    struct marks_cut cut = {0};
    uint64_t len;
    bool append_end;
    while (cut.ceiling <= limit && marks_next(&r, &len, &append_end)) {
        cut.floor = cut.ceiling;
        cut.floor_marks = cut.ceiling_marks;
        cut.ceiling += len;
        cut.ceiling_marks = (size_t)((const char *)r.at - marks.ptr);
    }
    if (cut.ceiling <= limit) {
        cut.floor = cut.ceiling;
        cut.floor_marks = cut.ceiling_marks;
    }
    return cut;
}

struct marks_run marks_fit(struct slice marks, uint64_t bytes_max, size_t marks_max)
{
    struct bytes_reader r = reader_over(marks);
    struct marks_run run = {0};
    uint64_t len;
    bool append_end;
    while (marks_next(&r, &len, &append_end)) {
        size_t marks_len = (size_t)((const char *)r.at - marks.ptr);
        if (len > bytes_max - run.len || marks_len > marks_max) {
            break;
        }
        run.len += len;
        run.marks_len = marks_len;
    }
    return run;
}

struct marks_run marks_first_run(struct slice marks)
{
    struct marks_run run = marks_fit(marks, EXTENT_BYTES_MAX, RUN_MARKS_BYTES_MAX);
    if (run.marks_len == 0) {
        struct marks_cut one = marks_cut_at(marks, 0);
        run = (struct marks_run){one.ceiling, one.ceiling_marks};
    }
    return run;
}
