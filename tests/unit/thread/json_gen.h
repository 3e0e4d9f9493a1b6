/* Random JSON for property tests: any value, written in any of the ways that mean the same. */
#ifndef ARBE_TESTS_UNIT_THREAD_JSON_GEN_H
#define ARBE_TESTS_UNIT_THREAD_JSON_GEN_H

#include <stdlib.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/dice.h"

struct gen {
    uint64_t state;
    struct buf out; /* what was written */
};

/* A seed that nobody chose, or that of the environment's SEED; told, so that it can be used again.
 */
static inline void gen_init(struct gen *g)
{
    const char *given = getenv("SEED");
    uint64_t seed = 0;
    if (given) {
        seed = strtoull(given, NULL, 10);
    } else {
        assert_int_equal(getrandom(&seed, sizeof(seed), 0), sizeof(seed));
    }
    print_message("SEED=%llu\n", (unsigned long long)seed);
    *g = (struct gen){.state = seed};
    buf_init(&g->out, 1u << 20);
}

/* A number below `bound`. */
static inline uint64_t gen_below(struct gen *g, uint64_t bound)
{
    return dice_roll(&g->state) % bound;
}

static inline void gen_text(struct gen *g, const char *text)
{
    buf_append(&g->out, (struct slice){text, strlen(text)});
}

static inline void gen_space(struct gen *g)
{
    static const char *const spaces[] = {"", "", "", " ", "\n", "\t\r\n ", "  "};
    gen_text(g, spaces[gen_below(g, ARRAY_COUNT(spaces))]);
}

/* A string of `least` to `most` pieces of one to twelve bytes each; `whole` leaves out halves of
 * surrogate pairs. */
static inline void gen_string(struct gen *g, size_t least, size_t most, bool whole)
{
    static const char *const pieces[] = {
        "a",
        "Z",
        "7",
        " ",
        "/",
        "\xc3\xa9",
        "\xe2\x82\xac",
        "\xf0\x9f\x98\x80",
        "\\n",
        "\\\"",
        "\\\\",
        "\\u0000",
        "\\u0041",
        "\\/",
        "\\ud83d\\ude00",
        "{",
        "]",
        ",",
        ":",
        "@bot",
        "\\ud83d",
        "\\ude00",
    };
    size_t count = least + gen_below(g, most - least + 1);
    gen_text(g, "\"");
    for (size_t i = 0; i < count; i++) {
        gen_text(g, pieces[gen_below(g, ARRAY_COUNT(pieces) - (whole ? 2 : 0))]);
    }
    gen_text(g, "\"");
}

static inline void gen_value(struct gen *g, unsigned depth);

/* Members with names that begin with x, which no schema has. */
static inline void gen_member(struct gen *g, unsigned depth)
{
    gen_space(g);
    buf_append_format(&g->out, "\"x%u\"", (unsigned)gen_below(g, 1000));
    gen_space(g);
    gen_text(g, ":");
    gen_space(g);
    gen_value(g, depth);
    gen_space(g);
}

static inline void gen_container(struct gen *g, bool object, unsigned depth)
{
    size_t count = gen_below(g, 4);
    gen_text(g, object ? "{" : "[");
    gen_space(g);
    for (size_t i = 0; i < count; i++) {
        gen_text(g, i > 0 ? "," : "");
        if (object) {
            gen_member(g, depth - 1);
        } else {
            gen_space(g);
            gen_value(g, depth - 1);
            gen_space(g);
        }
    }
    gen_text(g, object ? "}" : "]");
}

/* Any value, nested `depth` deep at the most. */
static inline void gen_value(struct gen *g, unsigned depth)
{
    static const char *const scalars[] = {"null", "true", "false", "0", "-1.5e+30", "7", "1e999"};
    switch (gen_below(g, depth > 0 ? 5 : 3)) {
    case 0:
    case 1:
        gen_text(g, scalars[gen_below(g, ARRAY_COUNT(scalars))]);
        break;
    case 2:
        gen_string(g, 0, 6, false);
        break;
    case 3:
        gen_container(g, true, depth);
        break;
    default:
        gen_container(g, false, depth);
        break;
    }
}

#endif
