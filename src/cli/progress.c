/* The line is written over itself, and so stands alone in its row until it is cleared. */
#include "cli/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define UPDATE_MS 200u

static uint64_t now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail for this clock */
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

const char *progress_size(uint64_t bytes, char out[static PROGRESS_SIZE_BYTES])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    unsigned unit = 0;

    while (value >= 1024 && unit < 4) {
        value /= 1024;
        unit++;
    }
    (void)snprintf(out, PROGRESS_SIZE_BYTES, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return out;
}

void progress_init(struct progress *p, const char *what)
{
    *p = (struct progress){.what = what, .on = isatty(STDERR_FILENO) == 1, .began_ms = now_ms()};
}

void progress_update(struct progress *p, uint64_t done, uint64_t total)
{
    uint64_t now = p->on ? now_ms() : 0;
    char read[PROGRESS_SIZE_BYTES];
    char all[PROGRESS_SIZE_BYTES];
    char rate[PROGRESS_SIZE_BYTES];

    if (!p->on || now - p->updated_ms < UPDATE_MS) {
        return;
    }
    uint64_t passed_ms = now > p->began_ms ? now - p->began_ms : 1;
    uint64_t per_second = done * 1000 / passed_ms;

    p->updated_ms = now;
    p->shown = true;
    (void)fprintf(stderr, "\r\033[K%s: %s", p->what, progress_size(done, read));
    if (total > 0) {
        (void)fprintf(stderr, " of %s, %u %%", progress_size(total, all),
                      (unsigned)(done >= total ? 100 : done * 100 / total));
    }
    (void)fprintf(stderr, ", %s/s", progress_size(per_second, rate));
    if (total > done && per_second > 0) {
        uint64_t left = (total - done) / per_second;

        (void)fprintf(stderr, ", %llu:%02llu left", (unsigned long long)(left / 60),
                      (unsigned long long)(left % 60));
    }
    (void)fflush(stderr); /* a comfort; nothing depends on it */
}

void progress_clear(struct progress *p)
{
    if (p->shown) {
        (void)fprintf(stderr, "\r\033[K");
        p->shown = false;
    }
}
