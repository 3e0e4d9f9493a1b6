/* Bins: values below 2 * LATENCY_STEPS have one each; above, each doubling has LATENCY_STEPS of
 * them. */
#include "cli/latency.h"

#include <inttypes.h>
#include <stdio.h>

#define BAR_CHARS 40u

static unsigned bin_of(uint64_t ns)
{
    unsigned shift = 0;

    while ((ns >> shift) >= 2 * LATENCY_STEPS) {
        shift++;
    }
    unsigned bin = shift * LATENCY_STEPS + (unsigned)(ns >> shift);

    return bin < LATENCY_BINS ? bin : LATENCY_BINS - 1;
}

/* The greatest value of a bin. */
static uint64_t top_of(unsigned bin)
{
    unsigned shift = bin < 2 * LATENCY_STEPS ? 0 : bin / LATENCY_STEPS - 1;

    return (((uint64_t)bin - shift * LATENCY_STEPS + 1) << shift) - 1;
}

void latency_add(struct latency *l, uint64_t ns)
{
    l->counts[bin_of(ns)]++;
    l->min = l->count == 0 || ns < l->min ? ns : l->min;
    l->max = ns > l->max ? ns : l->max;
    l->count++;
}

void latency_merge(struct latency *l, const struct latency *more)
{
    if (more->count == 0) {
        return;
    }
    for (unsigned i = 0; i < LATENCY_BINS; i++) {
        l->counts[i] += more->counts[i];
    }
    l->min = l->count == 0 || more->min < l->min ? more->min : l->min;
    l->max = more->max > l->max ? more->max : l->max;
    l->count += more->count;
}

uint64_t latency_quantile(const struct latency *l, double part)
{
    uint64_t wanted = (uint64_t)((double)l->count * part + 0.5);
    uint64_t seen = 0;

    if (l->count == 0) {
        return 0;
    }
    for (unsigned i = 0; i < LATENCY_BINS; i++) {
        seen += l->counts[i];
        if (seen >= wanted && seen > 0) {
            return top_of(i) < l->max ? top_of(i) : l->max;
        }
    }
    return l->max;
}

void latency_format(char *out, size_t size, uint64_t ns)
{
    double value = (double)ns / 1000;
    const char *unit = "us";

    if (value >= 1e6) {
        value /= 1e6;
        unit = "s";
    } else if (value >= 1e3) {
        value /= 1e3;
        unit = "ms";
    }
    (void)snprintf(out, size,
                   value >= 100  ? "%.0f %s"
                   : value >= 10 ? "%.1f %s"
                                 : "%.2f %s",
                   value, unit);
}

static const double parts[] = {0.5, 0.9, 0.99, 0.999};
static const char *const part_names[] = {"p50", "p90", "p99", "p99.9"};

/* Bars for steps of 1, 2, 5, 10, ... microseconds. */
static void print_bars(const struct latency *l, struct out *o)
{
    static const unsigned digits[] = {1, 2, 5};
    uint64_t below = 0;
    unsigned bin = 0;
    uint64_t unit = 1000;

    for (unsigned i = 0; below < l->count && bin < LATENCY_BINS; i++) {
        uint64_t bound = digits[i % 3] * unit;
        uint64_t count = 0;
        char text[32];

        for (; bin < LATENCY_BINS && top_of(bin) <= bound; bin++) {
            count += l->counts[bin];
        }
        below += count;
        unit *= i % 3 == 2 ? 10 : 1;
        if (count == 0) {
            continue;
        }
        size_t bar = (size_t)((double)count / (double)l->count * BAR_CHARS + 0.5);

        latency_format(text, sizeof(text), bound);
        out_format(o, "    to %8s %6.2f%% %s%.*s%s\n", text, (double)count / (double)l->count * 100,
                   out_bold(o), (int)bar, "########################################", out_plain(o));
    }
}

void latency_print(const struct latency *l, struct out *o)
{
    char text[32];

    out_add(o, SLICE("   "));
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        latency_format(text, sizeof(text), latency_quantile(l, parts[i]));
        out_format(o, " %s%s%s %s,", out_dim(o), part_names[i], out_plain(o), text);
    }
    latency_format(text, sizeof(text), l->max);
    out_format(o, " %smax%s %s\n", out_dim(o), out_plain(o), text);
    print_bars(l, o);
    out_end_message(o);
}

void latency_print_json(const struct latency *l, struct out *o)
{
    out_format(o, "{\"count\":%" PRIu64 ",\"min_us\":%.1f", l->count, (double)l->min / 1000);
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        out_format(o, ",\"%s_us\":%.1f", part_names[i],
                   (double)latency_quantile(l, parts[i]) / 1000);
    }
    out_format(o, ",\"max_us\":%.1f}", (double)l->max / 1000);
}
