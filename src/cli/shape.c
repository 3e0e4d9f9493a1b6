/* A place is where values stand: the whole, the elements of an array, a member. Each knows which
 * types were seen there. Depth is bounded by SHAPE_DEPTH_MAX, and so is recursion. */
#include "cli/shape.h"

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
    size_t places; /* made so far */
};

static void add_value(struct shape *s, struct place *at, struct slice value, unsigned depth);
static void merge(struct shape *s, struct place *into, struct place *from);

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
    void *memory = s->places < SHAPE_PLACES_MAX ? arena_try_alloc(&s->memory, size) : NULL;

    if (memory != NULL) {
        memset(memory, 0, size);
        s->places++;
    }
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

/* What is in there is anybody's, down to the names. */
static bool is_opaque(struct slice name)
{
    static const struct slice names[] = {
        SLICE("args"),  SLICE("arguments"), SLICE("answers"), SLICE("attributes"),
        SLICE("data"),  SLICE("env"),       SLICE("headers"), SLICE("environment"),
        SLICE("input"), SLICE("metadata"),  SLICE("output"),  SLICE("params"),
        SLICE("raw"),   SLICE("rawInput"),  SLICE("result"),  SLICE("rawOutput"),
        SLICE("value"), SLICE("variables"),
    };

    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (slice_equal(name, names[i])) {
            return true;
        }
    }
    return false;
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

static void merge_as_value(struct shape *s, struct place *at, struct place *value)
{
    if (at->values == NULL) {
        at->values = make(s, sizeof(*at->values));
    }
    if (at->values == NULL) {
        at->cut = true;
    } else {
        merge(s, at->values, value);
    }
}

/* Forgets the names of members. */
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
        merge_as_value(s, at, &m->place);
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

static void merge_members(struct shape *s, struct place *into, struct place *from)
{
    struct member *hint = into->members;

    for (struct member *m = from->members; m != NULL; m = m->next) {
        struct member *same = into->map
                                  ? NULL
                                  : member_of(s, into, (struct slice){m->name, m->name_len}, &hint);

        if (same != NULL) {
            same->seen += m->seen;
            hint = same->next;
            merge(s, &same->place, &m->place);
        } else if (into->map) {
            merge_as_value(s, into, &m->place);
        }
    }
}

/* `from` is not used any more: what it has may become part of `into`. */
static void merge(struct shape *s, struct place *into, struct place *from)
{
    into->types |= from->types;
    into->cut = into->cut || from->cut;
    if (from->map) {
        become_map(s, into);
    }
    merge_members(s, into, from);
    into->objects += from->objects;
    if (from->values != NULL) {
        merge_as_value(s, into, from->values);
    }
    if (from->elements != NULL && into->elements == NULL) {
        into->elements = from->elements;
    } else if (from->elements != NULL) {
        merge(s, into->elements, from->elements);
    }
}

/* ------------------------------------------------------------------ values */

static void add_elements(struct shape *s, struct place *at, struct slice array, unsigned depth)
{
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
        add_value(s, at->elements, element, depth + 1);
    }
}

static void add_map_value(struct shape *s, struct place *at, struct slice value, unsigned depth)
{
    if (at->values == NULL) {
        at->values = make(s, sizeof(*at->values));
    }
    if (at->values == NULL) {
        at->cut = true;
    } else {
        add_value(s, at->values, value, depth + 1);
    }
}

/* Only which type it is. */
static void add_opaque(struct place *at, struct slice value)
{
    enum json_kind kind = json_kind(value);

    at->types |= kind == JSON_OBJECT ? TYPE_OBJECT : TYPE_ARRAY;
    at->cut = true;
}

static void add_member(struct shape *s, struct place *at, struct slice quoted, struct slice value,
                       struct member **hint, unsigned depth)
{
    const struct slice name = {quoted.ptr + 1, quoted.len - 2};
    struct member *member = at->map ? NULL : member_of(s, at, name, hint);
    enum json_kind kind = json_kind(value);

    if (member == NULL) {
        if (at->map) {
            add_map_value(s, at, value, depth);
        }
        return;
    }
    member->seen += member->last != at->objects;
    member->last = at->objects;
    *hint = member->next;
    if (is_opaque(name) && (kind == JSON_OBJECT || kind == JSON_ARRAY)) {
        add_opaque(&member->place, value);
    } else {
        add_value(s, &member->place, value, depth + 1);
    }
}

static void add_members(struct shape *s, struct place *at, struct slice object, unsigned depth)
{
    struct member *hint = at->members;
    struct json_walk walk;
    struct slice name;
    struct slice value;

    at->objects++;
    if (depth >= SHAPE_DEPTH_MAX) {
        at->cut = at->cut || object.len > 2;
        return;
    }
    if (!at->map && !has_plain_names(object)) {
        become_map(s, at);
    }
    json_walk_begin(&walk, object);
    while (json_walk_member(&walk, &name, &value)) {
        add_member(s, at, name, value, &hint, depth);
    }
}

static void add_value(struct shape *s, struct place *at, struct slice value, unsigned depth)
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
        add_elements(s, at, value, depth);
        break;
    case JSON_OBJECT:
        at->types |= TYPE_OBJECT;
        add_members(s, at, value, depth);
        break;
    }
}

void shape_add(struct shape *shape, struct slice value)
{
    add_value(shape, &shape->top, value, 0);
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
}
