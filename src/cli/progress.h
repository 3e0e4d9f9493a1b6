/* A line of progress on a terminal: what, share, bytes, rate, time left. Where stderr is no
 * terminal nothing is shown at all. One thread. */
#ifndef ARBE_CLI_PROGRESS_H
#define ARBE_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *what;    /* borrowed; such as "verify" */
    bool on;             /* stderr is a terminal */
    bool shown;          /* a line is there */
    uint64_t began_ms;   /* monotonic */
    uint64_t updated_ms; /* when the line was last written */
};

/* Begins; shows nothing yet. */
void progress_init(struct progress *p, const char *what);

/* `done` bytes of `total`; 0: nobody knows how many. Writes a few times a second. */
void progress_update(struct progress *p, uint64_t done, uint64_t total);

/* Takes the line away, before anything else is printed and at the end. */
void progress_clear(struct progress *p);

#define PROGRESS_SIZE_BYTES 24u

/* A size for people, such as "1.5 MiB". Returns `out`. */
const char *progress_size(uint64_t bytes, char out[static PROGRESS_SIZE_BYTES]);

#endif
