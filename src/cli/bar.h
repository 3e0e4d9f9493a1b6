/* A line on stderr with a bar and a text, for what progress.h, which counts bytes, has no words
 * for; drawn again in place, at most ten times a second. Nothing at all where stderr is no
 * terminal. One thread. */
#ifndef ARBE_CLI_BAR_H
#define ARBE_CLI_BAR_H

#include "base/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bar {
    bool shown;     /* somebody looks */
    bool drawn;     /* the line is there and has to go */
    int64_t due_ms; /* of the monotonic clock: when to draw again */
};

/* `quiet` shows nothing anywhere. */
void bar_init(struct bar *p, bool quiet);

/* Whether it is time to draw. */
bool bar_is_due(struct bar *p);

/* Draws `text`, and a bar before it when `fraction` is 0 to 1; below 0 there is none. */
void bar_draw(struct bar *p, double fraction, const char *text);

/* Takes the line away, before something else is written to the terminal. */
void bar_clear(struct bar *p);

/* How far `offset` lies on the way to `tail`, 0 to 1, judged by their digits where both are of the
 * shape that servers commonly use; below 0 otherwise. A guess, to be shown and not relied on:
 * offsets are opaque. */
double bar_fraction(const char *offset, const char *tail);

/* Milliseconds of the monotonic clock. */
int64_t bar_now_ms(void);

#endif
