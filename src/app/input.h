/* The JSON object in the body of an API request, member by member: a reader that carries its own
 * refusal, so that a handler asks for all that it knows and checks once, at the end. Members that
 * nobody asked for are refused, since they are misspelt ones. */
#ifndef ARBE_APP_INPUT_H
#define ARBE_APP_INPUT_H

#include "base/arena.h"
#include "base/json_value.h"
#include "thread/api_error.h"

#define INPUT_MEMBERS_MAX 16u

/* What a text may be. */
struct input_text {
    size_t bytes_max; /* after decoding */
    bool required;
    bool null_ok; /* null means: none */
    bool lines;   /* line ends and tabs are fine; other control characters never are */
};

struct input {
    struct slice object;     /* borrowed */
    struct arena *memory;    /* of decoded texts */
    struct api_error *error; /* where the refusal goes */
    struct slice asked[INPUT_MEMBERS_MAX];
    size_t asked_count;
    bool failed; /* sticky: refused */
};

/* Reads a body, which must be one JSON object; an empty one counts as {} when `may_be_empty`. */
void input_begin(struct input *in, struct slice body, bool may_be_empty, struct arena *memory,
                 struct api_error *error);

/* The raw value; ptr NULL when it is not there. */
struct slice input_value(struct input *in, const char *name);

/* Whether the member is there, null included. */
bool input_has(struct input *in, const char *name);

/* The decoded text, ptr NULL when it is not there or null. Lives in `memory`. */
struct slice input_text(struct input *in, const char *name, const struct input_text *rules);

/* A whole number from `least` to `most`; `otherwise` when it is not there. */
uint64_t input_number(struct input *in, const char *name, uint64_t least, uint64_t most,
                      uint64_t otherwise);

/* true or false; `otherwise` when it is not there. */
bool input_flag(struct input *in, const char *name, bool otherwise);

/* A list of texts without repetition, at most `count_max` of at most `bytes_max` bytes. The number
 * of them; the texts go to ret_texts. 0 also when it is not there. */
size_t input_texts(struct input *in, const char *name, size_t count_max, size_t bytes_max,
                   struct slice *ret_texts);

/* Refuses the member with a sentence that goes behind its name. */
void input_refuse(struct input *in, const char *name, const char *format, ...) PRINTF_LIKE(3, 4);

/* Refuses what nobody asked for. 0, or -1 and *error is set. */
int input_end(struct input *in) MUST_USE;

#endif
