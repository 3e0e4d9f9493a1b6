/* "\r" begins the line again, "\033[K" clears the rest of it. */
#include "cli/bar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define INTERVAL_MS 100
#define BAR_CHARS   24

int64_t bar_now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* always there */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void bar_init(struct bar *p, bool quiet)
{
    *p = (struct bar){.shown = !quiet && isatty(STDERR_FILENO) == 1};
}

bool bar_is_due(struct bar *p)
{
    if (!p->shown) {
        return false;
    }
    int64_t now = bar_now_ms();

    if (now < p->due_ms) {
        return false;
    }
    p->due_ms = now + INTERVAL_MS;
    return true;
}

void bar_draw(struct bar *p, double fraction, const char *text)
{
    char bar[BAR_CHARS + 1];

    if (!p->shown) {
        return;
    }
    if (fraction < 0) {
        (void)fprintf(stderr, "\r%s\033[K", text);
    } else {
        double whole = fraction > 1 ? 1 : fraction;
        size_t full = (size_t)(whole * BAR_CHARS);

        memset(bar, '-', BAR_CHARS);
        memset(bar, '#', full);
        bar[BAR_CHARS] = '\0';
        (void)fprintf(stderr, "\r[%s] %3.0f%%  %s\033[K", bar, whole * 100, text);
    }
    (void)fflush(stderr);
    p->drawn = true;
}

void bar_clear(struct bar *p)
{
    if (p->drawn) {
        (void)fprintf(stderr, "\r\033[K");
        (void)fflush(stderr);
        p->drawn = false;
    }
}

/* Digits behind the last '_', if that is what an offset ends with. */
static bool position_of(const char *offset, double *ret_position)
{
    const char *digits = strrchr(offset, '_');

    digits = digits == NULL ? offset : digits + 1;
    if (digits[0] == '\0' || digits[strspn(digits, "0123456789")] != '\0') {
        return false;
    }
    *ret_position = strtod(digits, NULL);
    return true;
}

double bar_fraction(const char *offset, const char *tail)
{
    double here = 0;
    double end = 0;

    if (strlen(offset) != strlen(tail) || !position_of(offset, &here) || !position_of(tail, &end) ||
        end <= 0 || here > end) {
        return -1;
    }
    return here / end;
}
