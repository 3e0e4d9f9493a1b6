/* A place is where values stand: the whole, the elements of an array, a member. Each knows which
 * types were seen there. Depth is bounded by SHAPE_DEPTH_MAX, and so is recursion. */
#include "cli/shape.h"

#include "cli/shape_known.h"

#include "base/arena.h"
#include "base/json_value.h"
#include "base/limits.h"

#include <stdlib.h>
#include <string.h>

#define MEMORY_BYTES_MAX (16u * MIB) /* more than so many places need */
#define DIGITS_MAX       2           /* of a name */

enum type {
    TYPE_STRING = 1,
    TYPE_NUMBER = 2,
    TYPE_BOOLEAN = 4,
    TYPE_ARRAY = 8,
    TYPE_OBJECT = 16,
    TYPE_NULL = 32,
};

struct place {
    unsigned types;      /* bits of enum type */
    bool cut;            /* something of it is not kept */
    bool map;            /* its objects are maps: `values`, and no members */
    uint64_t objects;    /* seen here */
    size_t member_count; /* how many stand in the list */
    struct member *members;
    struct place *elements; /* NULL: none was seen */
    struct place *values;   /* likewise */
};

struct member {
    struct member *next;
    struct place place;
    uint64_t seen; /* in how many objects */
    uint64_t last; /* number of the last one, so that a name that stands twice counts once */
    size_t name_len;
    char name[SHAPE_NAME_BYTES_MAX];
};

struct shape {
    struct place top;
    struct arena memory;
    size_t places;  /* made so far */
    bool exhausted; /* memory ran out below the cap: what is told would lack something */
};

struct shape *shape_create(void)
{
    struct shape *s = calloc(1, sizeof(*s));

    if (s != NULL) {
        arena_init(&s->memory, MEMORY_BYTES_MAX);
    }
    return s;
}

void shape_destroy(struct shape *shape)
{
    if (shape != NULL) {
        arena_finish(&shape->memory);
        free(shape);
    }
}

/* Zeroed memory for a place or a member; NULL beyond the cap. */
static void *make(struct shape *s, size_t size)
{
    bool room = s->places < SHAPE_PLACES_MAX;
    void *memory = room ? arena_try_alloc(&s->memory, size) : NULL;

    if (memory != NULL) {
        memset(memory, 0, size);
        s->places++;
    }
    s->exhausted = s->exhausted || (room && memory == NULL);
    return memory;
}

/* ------------------------------------------------------------------ names */

/* A name value, with its quotes, that says what a member means rather than which one it is. */
static bool is_plain(struct slice name)
{
    int digits = 0;

    if (name.len < 3 || name.len - 2 > SHAPE_NAME_BYTES_MAX) {
        return false;
    }
    for (size_t i = 1; i + 1 < name.len; i++) {
        char c = name.ptr[i];
        bool lower = (c >= 'a' && c <= 'z') || c == '_';
        bool later = i > 1 && ((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'));

        digits += c >= '0' && c <= '9';
        if (!lower && !later) {
            return false;
        }
    }
    return digits <= DIGITS_MAX;
}

static bool has_plain_names(struct slice object)
{
    struct json_walk walk;
    struct slice name;
    struct slice value;
    size_t count = 0;

    json_walk_begin(&walk, object);
    while (json_walk_member(&walk, &name, &value)) {
        if (++count > SHAPE_NAMES_EACH || !is_plain(name)) {
            return false;
        }
    }
    return true;
}

/* ------------------------------------------------------------------ maps */

/* Leaves types: those of elements too. Recursion is as deep as arrays were taken. */
static void forget_names(struct place *at)
{
    at->cut = at->cut || at->members != NULL || at->values != NULL;
    at->map = false;
    at->members = NULL;
    at->values = NULL;
    if (at->elements != NULL) {
        forget_names(at->elements);
    }
}

/* `from` has no names, and is not used any more. */
static void merge(struct place *into, struct place *from)
{
    into->types |= from->types;
    into->cut = into->cut || from->cut;
    if (from->elements != NULL && into->elements == NULL) {
        into->elements = from->elements;
    } else if (from->elements != NULL) {
        merge(into->elements, from->elements);
    }
}

/* The place for values of a map; NULL beyond the cap. */
static struct place *values_of(struct shape *s, struct place *at)
{
    if (at->values == NULL) {
        at->values = make(s, sizeof(*at->values));
    }
    at->cut = at->cut || at->values == NULL;
    return at->values;
}

/* Forgets the names of members, and all below them: if these are data, so may those be. */
static void become_map(struct shape *s, struct place *at)
{
    struct member *members = at->members;

    if (at->map) {
        return;
    }
    at->map = true;
    at->members = NULL;
    at->member_count = 0;
    for (struct member *m = members; m != NULL; m = m->next) {
        struct place *values = values_of(s, at);

        forget_names(&m->place);
        if (values != NULL) {
            merge(values, &m->place);
        }
    }
}

/* ------------------------------------------------------------------ members */

/* The member of that name, which is made where there is none. `*hint` is where it is likely to be:
 * objects of a kind have their members in the same order. NULL: beyond a cap. */
static struct member *member_of(struct shape *s, struct place *at, struct slice name,
                                struct member **hint)
{
    struct member **link = &at->members;

    if (*hint != NULL && slice_equal((struct slice){(*hint)->name, (*hint)->name_len}, name)) {
        return *hint;
    }
    for (; *link != NULL; link = &(*link)->next) {
        if (slice_equal((struct slice){(*link)->name, (*link)->name_len}, name)) {
            return *link;
        }
    }
    if (at->member_count >= SHAPE_NAMES_MAX) {
        become_map(s, at);
        return NULL;
    }
    struct member *fresh = make(s, sizeof(*fresh));

    if (fresh == NULL) {
        at->cut = true;
        return NULL;
    }
    memcpy(fresh->name, name.ptr, name.len);
    fresh->name_len = name.len;
    *link = fresh;
    at->member_count++;
    return fresh;
}

/* ------------------------------------------------------------------ values */

static const struct shape_known nothing_known = {VIEW_NONE, false};

static void add_value(struct shape *s, struct place *at, struct slice value,
                      struct shape_known known, unsigned depth);

static void add_elements(struct shape *s, struct place *at, struct slice array,
                         struct shape_known known, unsigned depth)
{
    const struct shape_known each = {known.array ? known.view : VIEW_NONE, false};
    struct json_walk walk;
    struct slice element;

    json_walk_begin(&walk, array);
    while (json_walk_element(&walk, &element)) {
        if (at->elements == NULL && depth < SHAPE_DEPTH_MAX) {
            at->elements = make(s, sizeof(*at->elements));
        }
        if (at->elements == NULL) {
            at->cut = true;
            return;
        }
        add_value(s, at->elements, element, each, depth + 1);
    }
}

static void add_member(struct shape *s, struct place *at, struct slice quoted, struct slice value,
                       struct member **hint, enum shape_view view, unsigned depth)
{
    const struct slice name = {quoted.ptr + 1, quoted.len - 2};
    struct member *member = at->map ? NULL : member_of(s, at, name, hint);

    if (member != NULL) {
        member->seen += member->last != at->objects;
        member->last = at->objects;
        *hint = member->next;
        add_value(s, &member->place, value, shape_known_member(view, name), depth + 1);
    } else if (at->map && values_of(s, at) != NULL) {
        add_value(s, at->values, value, nothing_known, depth + 1);
    }
}

static void add_members(struct shape *s, struct place *at, struct slice object,
                        enum shape_view view, unsigned depth)
{
    struct member *hint = at->members;
    struct json_walk walk;
    struct slice name;
    struct slice value;

    at->objects++;
    if (depth >= SHAPE_DEPTH_MAX || view == VIEW_NONE) {
        at->cut = at->cut || object.len > 2;
        return;
    }
    if (!at->map && !has_plain_names(object)) {
        become_map(s, at);
    }
    json_walk_begin(&walk, object);
    while (json_walk_member(&walk, &name, &value)) {
        add_member(s, at, name, value, &hint, view, depth);
    }
}

static void add_value(struct shape *s, struct place *at, struct slice value,
                      struct shape_known known, unsigned depth)
{
    switch (json_kind(value)) {
    case JSON_NULL:
        at->types |= TYPE_NULL;
        break;
    case JSON_FALSE:
    case JSON_TRUE:
        at->types |= TYPE_BOOLEAN;
        break;
    case JSON_NUMBER:
        at->types |= TYPE_NUMBER;
        break;
    case JSON_STRING:
        at->types |= TYPE_STRING;
        break;
    case JSON_ARRAY:
        at->types |= TYPE_ARRAY;
        add_elements(s, at, value, known, depth);
        break;
    case JSON_OBJECT:
        at->types |= TYPE_OBJECT;
        add_members(s, at, value, known.array ? VIEW_NONE : known.view, depth);
        break;
    }
}

void shape_add(struct shape *shape, struct slice value)
{
    add_value(shape, &shape->top, value, (struct shape_known){VIEW_TOP, false}, 0);
}

void shape_add_each(struct shape *shape, struct slice array)
{
    struct json_walk walk;
    struct slice element;

    json_walk_begin(&walk, json_kind(array) == JSON_ARRAY ? array : SLICE("[]"));
    while (json_walk_element(&walk, &element)) {
        shape_add(shape, element);
    }
}

/* ------------------------------------------------------------------ for people */

static void print_place(const struct place *at, unsigned indent, struct buf *out);

static void new_line(unsigned indent, struct buf *out)
{
    buf_append_format(out, "\n%*s", (int)indent, "");
}

static void print_object(const struct place *at, unsigned indent, struct buf *out)
{
    if (at->map) {
        buf_append(out, SLICE("{string: "));
        if (at->values == NULL) {
            buf_append(out, SLICE("..."));
        } else {
            print_place(at->values, indent, out);
        }
        buf_append_char(out, '}');
        return;
    }
    if (at->members == NULL) {
        buf_append(out, at->cut ? SLICE("{...}") : SLICE("{}"));
        return;
    }
    buf_append_char(out, '{');
    for (const struct member *m = at->members; m != NULL; m = m->next) {
        new_line(indent + 2, out);
        buf_append_format(out, "%.*s%s: ", (int)m->name_len, m->name,
                          m->seen < at->objects ? "?" : "");
        print_place(&m->place, indent + 2, out);
    }
    if (at->cut) {
        new_line(indent + 2, out);
        buf_append(out, SLICE("..."));
    }
    new_line(indent, out);
    buf_append_char(out, '}');
}

static void print_array(const struct place *at, unsigned indent, struct buf *out)
{
    buf_append_char(out, '[');
    if (at->elements != NULL) {
        print_place(at->elements, indent, out);
    } else if (at->cut) {
        buf_append(out, SLICE("..."));
    }
    buf_append_char(out, ']');
}

static const struct {
    enum type type;
    struct slice name;
} type_names[] = {
    {TYPE_STRING, SLICE("string")},   {TYPE_NUMBER, SLICE("number")},
    {TYPE_BOOLEAN, SLICE("boolean")}, {TYPE_ARRAY, SLICE("array")},
    {TYPE_OBJECT, SLICE("object")},   {TYPE_NULL, SLICE("null")},
};

static void print_place(const struct place *at, unsigned indent, struct buf *out)
{
    bool first = true;

    for (size_t i = 0; i < ARRAY_COUNT(type_names); i++) {
        if ((at->types & type_names[i].type) == 0) {
            continue;
        }
        buf_append(out, first ? SLICE("") : SLICE(" | "));
        first = false;
        if (type_names[i].type == TYPE_ARRAY) {
            print_array(at, indent, out);
        } else if (type_names[i].type == TYPE_OBJECT) {
            print_object(at, indent, out);
        } else {
            buf_append(out, type_names[i].name);
        }
    }
    if (first) {
        buf_append(out, at->cut ? SLICE("...") : SLICE("nothing"));
    }
}

void shape_print(const struct shape *shape, unsigned indent, struct buf *out)
{
    print_place(&shape->top, indent, out);
    out->failed = out->failed || shape->exhausted;
}

/* ------------------------------------------------------------------ for programs */

static void place_json(const struct place *at, struct buf *out);

static void members_json(const struct place *at, struct buf *out)
{
    buf_append(out, SLICE(",\"members\":["));
    for (const struct member *m = at->members; m != NULL; m = m->next) {
        buf_append_format(
            out, "%s{\"name\":\"%.*s\",\"optional\":%s,\"shape\":", m == at->members ? "" : ",",
            (int)m->name_len, m->name, m->seen < at->objects ? "true" : "false");
        place_json(&m->place, out);
        buf_append_char(out, '}');
    }
    buf_append_char(out, ']');
}

static void place_json(const struct place *at, struct buf *out)
{
    const char *comma = "";

    buf_append(out, SLICE("{\"types\":["));
    for (size_t i = 0; i < ARRAY_COUNT(type_names); i++) {
        if ((at->types & type_names[i].type) != 0) {
            buf_append_format(out, "%s\"%s\"", comma, type_names[i].name.ptr);
            comma = ",";
        }
    }
    buf_append_char(out, ']');
    if (at->elements != NULL) {
        buf_append(out, SLICE(",\"elements\":"));
        place_json(at->elements, out);
    }
    if (at->values != NULL) {
        buf_append(out, SLICE(",\"values\":"));
        place_json(at->values, out);
    }
    if ((at->types & TYPE_OBJECT) != 0 && !at->map) {
        members_json(at, out);
    }
    buf_append(out, at->cut ? SLICE(",\"cut\":true}") : SLICE("}"));
}

void shape_json(const struct shape *shape, struct buf *out)
{
    place_json(&shape->top, out);
    out->failed = out->failed || shape->exhausted;
}
