/* Writes numbers in the Prometheus text format, version 0.0.4: for each metric a line of help, one
 * of its type, then its samples. A builder over a buffer, whose failures stick. Names, help and
 * labels are the server's own, so nothing is escaped: they have no quotes, backslashes or line
 * ends. */
#ifndef ARBE_SERVE_EXPOSITION_H
#define ARBE_SERVE_EXPOSITION_H

#include "base/buf.h"
#include "base/histogram.h"

#define EXPOSITION_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct exposition {
    struct buf *out;
    const char *name; /* of the metric whose samples follow */
};

/* Begins a metric: its name, "counter", "gauge" or "histogram", and what it tells. */
void exposition_begin(struct exposition *e, const char *name, const char *type, const char *help);

/* A sample without labels. */
void exposition_u64(struct exposition *e, uint64_t value);

/* A sample whose labels the format makes, as in "mode=\"sse\"". */
void exposition_labelled(struct exposition *e, uint64_t value, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* A sample in seconds, all microseconds shown. */
void exposition_seconds(struct exposition *e, uint64_t us);

/* The samples of a histogram with the bounds 2^low to 2^high, which values beyond them fall below
 * or above; high is below HISTOGRAM_BOUNDS. */
void exposition_histogram(struct exposition *e, const struct histogram_totals *totals, unsigned low,
                          unsigned high);

/* The same for one that counted microseconds: bounds and sum are told in seconds. */
void exposition_durations(struct exposition *e, const struct histogram_totals *totals, unsigned low,
                          unsigned high);

#endif
