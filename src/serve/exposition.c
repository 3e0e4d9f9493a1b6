/* Whole numbers and seconds with six places are written as they are: no floating point, and so
 * nothing that a locale or a rounding could change. */
#include "serve/exposition.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#define LABELS_BYTES_MAX 256

void exposition_begin(struct exposition *e, const char *name, const char *type, const char *help)
{
    e->name = name;
    buf_append_format(e->out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void exposition_u64(struct exposition *e, uint64_t value)
{
    buf_append_format(e->out, "%s %llu\n", e->name, (unsigned long long)value);
}

void exposition_labelled(struct exposition *e, uint64_t value, const char *format, ...)
{
    char labels[LABELS_BYTES_MAX];
    va_list args;

    va_start(args, format);
    int len = vsnprintf(labels, sizeof(labels), format, args);
    va_end(args);
    assert(len > 0 && (size_t)len < sizeof(labels));
    buf_append_format(e->out, "%s{%s} %llu\n", e->name, labels, (unsigned long long)value);
}

static void append_seconds(struct buf *out, uint64_t us)
{
    buf_append_format(out, "%llu.%06llu", (unsigned long long)(us / 1000000),
                      (unsigned long long)(us % 1000000));
}

void exposition_seconds(struct exposition *e, uint64_t us)
{
    buf_append_format(e->out, "%s ", e->name);
    append_seconds(e->out, us);
    buf_append_char(e->out, '\n');
}

static void append_number(struct buf *out, uint64_t number, bool seconds)
{
    if (seconds) {
        append_seconds(out, number);
    } else {
        buf_append_u64(out, number);
    }
}

static void put(struct exposition *e, const struct histogram_totals *totals, unsigned low,
                unsigned high, bool seconds)
{
    uint64_t all = histogram_count_to(totals, HISTOGRAM_BOUNDS);

    assert(low <= high && high < HISTOGRAM_BOUNDS);
    for (unsigned bound = low; bound <= high; bound++) {
        buf_append_format(e->out, "%s_bucket{le=\"", e->name);
        append_number(e->out, 1ull << bound, seconds);
        buf_append_format(e->out, "\"} %llu\n",
                          (unsigned long long)histogram_count_to(totals, bound));
    }
    buf_append_format(e->out, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum ", e->name,
                      (unsigned long long)all, e->name);
    append_number(e->out, totals->sum, seconds);
    buf_append_format(e->out, "\n%s_count %llu\n", e->name, (unsigned long long)all);
}

void exposition_histogram(struct exposition *e, const struct histogram_totals *totals, unsigned low,
                          unsigned high)
{
    put(e, totals, low, high, false);
}

void exposition_durations(struct exposition *e, const struct histogram_totals *totals, unsigned low,
                          unsigned high)
{
    put(e, totals, low, high, true);
}
