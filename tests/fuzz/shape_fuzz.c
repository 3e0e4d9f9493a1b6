/* Shapes of any JSON: bounded, good JSON themselves, and without a byte of a value. Each value that
 * the input holds is added on its own, so that merging is tried too. */
#include "cli/shape.c"

#include "base/json.h"

#include <assert.h>
#include <ctype.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whether a shape says nothing but names and types: what the input could bring in beyond those. */
static void check_text(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        assert(isalnum((unsigned char)text.ptr[i]) ||
               strchr("_{}[]:?|,.\" \n", text.ptr[i]) != NULL);
    }
}

/* Names stand where the contract has objects of that kind, and nowhere else. */
static void check_names(const struct place *at, struct shape_known known)
{
    const struct shape_known each = {known.array ? known.view : VIEW_NONE, false};

    assert((known.view != VIEW_NONE && !known.array) ||
           (at->members == NULL && at->values == NULL));
    assert(!at->map || at->members == NULL);
    for (const struct member *m = at->members; m != NULL; m = m->next) {
        check_names(&m->place,
                    shape_known_member(known.view, (struct slice){m->name, m->name_len}));
    }
    if (at->elements != NULL) {
        check_names(at->elements, each);
    }
    if (at->values != NULL) {
        check_names(at->values, nothing_known);
    }
}

static void check_shape(const struct shape *shape)
{
    struct buf out;
    struct slice value;

    assert(shape->places <= SHAPE_PLACES_MAX);
    check_names(&shape->top, (struct shape_known){VIEW_TOP, false});
    buf_init(&out, 64 * MIB);
    shape_print(shape, 0, &out);
    assert(!out.failed);
    check_text(buf_slice(&out));
    buf_clear(&out);
    shape_json(shape, &out);
    assert(!out.failed && json_text_read(buf_slice(&out), &value, NULL) == 0);
    check_text(buf_slice(&out));
    buf_finish(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice rest = {(const char *)data, size};
    struct shape *shape = shape_create();
    struct slice value;
    long used;

    assert(shape != NULL);
    while (rest.len > 0 && (used = json_scan_value(rest, &value, NULL)) > 0) {
        shape_add(shape, value);
        shape_add_each(shape, value);
        rest = (struct slice){rest.ptr + used, rest.len - (size_t)used};
    }
    check_shape(shape);
    shape_destroy(shape);
    return 0;
}
