/* The query of an API request, parameter by parameter: a reader that carries its own refusal, so
 * that a handler asks for all that it knows and checks once, at the end. What is not known is
 * refused: a misspelt filter would otherwise list all. */
#ifndef ARBE_APP_PARAMS_H
#define ARBE_APP_PARAMS_H

#include "base/arena.h"
#include "thread/api_error.h"

#define PARAMS_MAX 12u

struct params {
    struct slice names[PARAMS_MAX];  /* decoded */
    struct slice values[PARAMS_MAX]; /* decoded */
    bool asked[PARAMS_MAX];
    size_t count;
    struct api_error *error; /* where the refusal goes */
    bool failed;             /* sticky: refused */
};

/* Reads `query` (ptr NULL: none). Decoded texts live in `memory`. */
void params_begin(struct params *p, struct slice query, struct arena *memory,
                  struct api_error *error);

/* The value, or one with ptr NULL when it was not given. At most `bytes_max` bytes of UTF-8. */
struct slice params_text(struct params *p, const char *name, size_t bytes_max);

/* A whole number from `least` to `most`, or `otherwise` when it was not given. */
uint64_t params_number(struct params *p, const char *name, uint64_t least, uint64_t most,
                       uint64_t otherwise);

/* Whether "1" was given; nothing else may be, but "0". */
bool params_flag(struct params *p, const char *name);

/* Refuses what nobody asked for. 0, or -1 and *error is set. */
int params_end(struct params *p) MUST_USE;

#endif
