/* Patches become small trees of their objects; whatever else is in them stays text, which is
 * written again as it came. A place in the configuration is seen through all layers at once (struct
 * view), so that a null in any of them can bring back what the code's defaults have there. */
#include "thread/config.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/json_value.h"

/* Room for four trees of the greatest patches. */
#define ARENA_BYTES_MAX (2u * MIB)

struct node {
    struct node *next;    /* of the same object, in order */
    struct node *members; /* of an object; NULL for any other value, and for {} */
    struct slice key;     /* decoded */
    struct slice value;   /* as it came */
};

/* -------------------------------------------------------------------------------------- parsing */

/* A patch that is being read. */
struct reader {
    struct arena *arena;
    struct api_error *error;
    size_t keys; /* read so far */
};

static int no_memory(struct api_error *e)
{
    return api_error_set(e, API_INTERNAL, "out of memory");
}

static bool is_object(const struct node *n)
{
    return json_kind(n->value) == JSON_OBJECT;
}

static const struct node *find(const struct node *object, struct slice key)
{
    const struct node *n = object ? object->members : NULL;
    while (n && !slice_equal(n->key, key)) {
        n = n->next;
    }
    return n;
}

static int read_key(struct reader *r, struct slice name, struct slice *ret_key)
{
    struct slice key = {name.ptr + 1, name.len - 2};
    if (key.len > 0 && memchr(key.ptr, '\\', key.len)) {
        char *memory = arena_try_alloc(r->arena, name.len);
        struct buf text;
        if (!memory) {
            return no_memory(r->error);
        }
        buf_init_fixed(&text, memory, name.len);
        if (json_string_decode(name, &text) < 0) {
            return api_error_set(r->error, API_INVALID_INPUT,
                                 "a key has half of a surrogate pair, which is no character");
        }
        key = buf_slice(&text);
    }
    *ret_key = key;
    return 0;
}

/* Makes the node of one member, which must be the first of its name. */
static int read_member(struct reader *r, const struct node *object, struct slice name,
                       struct slice value, struct node **ret_node)
{
    struct slice key;
    if (read_key(r, name, &key) < 0) {
        return -1;
    }
    if (find(object, key)) {
        return api_error_set(r->error, API_INVALID_INPUT, "%.*s is given twice", (int)name.len,
                             name.ptr);
    }
    if (++r->keys > CONFIG_KEYS_MAX) {
        return api_error_set(r->error, API_TOO_LARGE, "a configuration has at most %u keys",
                             CONFIG_KEYS_MAX);
    }
    struct node *n = arena_try_alloc(r->arena, sizeof(*n));
    if (!n) {
        return no_memory(r->error);
    }
    *n = (struct node){.key = key, .value = value};
    *ret_node = n;
    return 0;
}

/* Fills in the members of an object and of the objects in it, CONFIG_DEPTH_MAX deep at the most. */
static int read_members(struct reader *r, struct node *object)
{
    struct json_walk w;
    struct slice name;
    struct slice value;
    struct node **end = &object->members;
    json_walk_begin(&w, object->value);
    while (json_walk_member(&w, &name, &value)) {
        struct node *n = NULL;
        if (read_member(r, object, name, value, &n) < 0) {
            return -1;
        }
        if (is_object(n) && read_members(r, n) < 0) {
            return -1;
        }
        *end = n;
        end = &n->next;
    }
    return 0;
}

/* Reads a patch within the bounds; an empty text is as {}. */
static int read_patch(struct slice text, struct arena *arena, struct node *ret_root,
                      struct api_error *e)
{
    struct reader r = {.arena = arena, .error = e};
    struct node root = {.value = SLICE("{}")};
    struct errmsg msg = {.text = ""};
    if (text.len > CONFIG_BYTES_MAX) {
        return api_error_set(e, API_TOO_LARGE, "a configuration has at most %u bytes",
                             CONFIG_BYTES_MAX);
    }
    if (text.len > 0 && json_text_read(text, &root.value, &msg) < 0) {
        return api_error_set(e, API_MALFORMED_JSON, "%s", msg.text);
    }
    if (!is_object(&root)) {
        return api_error_set(e, API_INVALID_INPUT, "a configuration must be an object, not %s",
                             json_kind_text(json_kind(root.value)));
    }
    if (json_depth(root.value) > CONFIG_DEPTH_MAX) {
        return api_error_set(e, API_INVALID_INPUT,
                             "a configuration has at most %u arrays and objects in one another",
                             CONFIG_DEPTH_MAX);
    }
    if (read_members(&r, &root) < 0) {
        return -1;
    }
    *ret_root = root;
    return 0;
}

/* ------------------------------------------------------------------------------------ resolving */

#define LAYERS_MAX 4 /* house, thread, and what each has for one agent */

enum view_kind {
    VIEW_ABSENT,
    VIEW_OBJECT,
    VIEW_VALUE, /* anything else */
};

/* One place of the configuration through all its layers. */
struct view {
    enum view_kind kind;
    const struct node *base; /* the defaults' object there, beneath all; may be NULL */
    const struct node *layers[LAYERS_MAX]; /* objects that merge, the nearest last */
    size_t count;                          /* of them */
    struct slice value;                    /* of VIEW_VALUE */
};

/* What the defaults alone have. */
static struct view default_view(const struct node *base)
{
    if (!base) {
        return (struct view){.kind = VIEW_ABSENT};
    }
    return is_object(base) ? (struct view){.kind = VIEW_OBJECT, .base = base}
                           : (struct view){.kind = VIEW_VALUE, .value = base->value};
}

/* The place `key` within an object's view. */
static struct view view_of(const struct view *object, struct slice key)
{
    const struct node *base = find(object->base, key);
    struct view v = default_view(base);
    for (size_t i = 0; i < object->count; i++) {
        const struct node *n = find(object->layers[i], key);
        if (!n) {
            continue; /* inherits */
        }
        if (json_kind(n->value) == JSON_NULL) {
            v = default_view(base);
        } else if (!is_object(n)) {
            v = (struct view){.kind = VIEW_VALUE, .value = n->value};
        } else {
            if (v.kind != VIEW_OBJECT) {
                v = (struct view){.kind = VIEW_OBJECT,
                                  .base = base && is_object(base) ? base : NULL};
            }
            assert(v.count < LAYERS_MAX);
            v.layers[v.count++] = n;
        }
    }
    return v;
}

/* What dispatch.perAgent has of the agent. */
static struct view agent_view(const struct view *dispatch, struct slice agent_id)
{
    struct view agents = view_of(dispatch, SLICE("perAgent"));
    return view_of(&agents, agent_id);
}

/* Puts that over `dispatch` itself. */
static void add_agent(struct view *dispatch, struct slice agent_id)
{
    struct view agent = agent_view(dispatch, agent_id);
    for (size_t i = 0; i < agent.count; i++) {
        assert(dispatch->count < LAYERS_MAX);
        dispatch->layers[dispatch->count++] = agent.layers[i];
    }
}

/* What is being resolved. */
struct resolving {
    struct buf *out;
    struct slice agent_id; /* empty: nobody */
};

static void append_view(const struct resolving *r, const struct view *v, unsigned depth);

static void append_key(struct buf *out, struct slice key, bool first)
{
    if (!first) {
        buf_append_char(out, ',');
    }
    json_append_string(out, key);
    buf_append_char(out, ':');
}

/* Whether a source before the one with the number `i` has the key; 0 is the base. */
static bool met_before(const struct view *v, size_t i, struct slice key)
{
    for (size_t j = 0; j < i; j++) {
        if (find(j == 0 ? v->base : v->layers[j - 1], key)) {
            return true;
        }
    }
    return false;
}

/* Members in the order of the defaults, then of the layers that name them first. */
static void append_members(const struct resolving *r, const struct view *v, unsigned depth)
{
    bool first = true;
    buf_append_char(r->out, '{');
    for (size_t i = 0; i <= v->count; i++) {
        const struct node *source = i == 0 ? v->base : v->layers[i - 1];
        for (const struct node *n = source ? source->members : NULL; n; n = n->next) {
            struct view member = view_of(v, n->key);
            if (member.kind == VIEW_ABSENT || met_before(v, i, n->key)) {
                continue;
            }
            if (depth == 0 && r->agent_id.len > 0 && member.kind == VIEW_OBJECT &&
                slice_equal(n->key, SLICE("dispatch"))) {
                add_agent(&member, r->agent_id);
            }
            append_key(r->out, n->key, first);
            append_view(r, &member, depth + 1);
            first = false;
        }
    }
    buf_append_char(r->out, '}');
}

static void append_view(const struct resolving *r, const struct view *v, unsigned depth)
{
    assert(depth <= CONFIG_DEPTH_MAX);
    if (v->kind == VIEW_OBJECT) {
        append_members(r, v, depth);
    } else {
        buf_append(r->out, v->value);
    }
}

/* The defaults and both patches, whose memory is the arena's, as one view. */
struct layers {
    struct arena arena;
    struct node base;
    struct node house;
    struct node thread;
    struct view root;
};

/* Fills in `l`, whose arena is to be finished also when this fails. */
static int read_layers(struct layers *l, struct slice house, struct slice thread,
                       struct api_error *e)
{
    arena_init(&l->arena, ARENA_BYTES_MAX);
    if (read_patch(SLICE(CONFIG_DEFAULT), &l->arena, &l->base, e) < 0 ||
        read_patch(house, &l->arena, &l->house, e) < 0 ||
        read_patch(thread, &l->arena, &l->thread, e) < 0) {
        return -1;
    }
    l->root = (struct view){
        .kind = VIEW_OBJECT, .base = &l->base, .layers = {&l->house, &l->thread}, .count = 2};
    return 0;
}

int config_resolve(struct slice house_patch, struct slice thread_patch, struct slice agent_id,
                   struct buf *out, struct api_error *ret_error)
{
    struct resolving r = {.out = out, .agent_id = agent_id};
    struct layers l;
    int code = read_layers(&l, house_patch, thread_patch, ret_error);
    if (code == 0) {
        append_view(&r, &l.root, 0);
        code = out->failed ? no_memory(ret_error) : 0;
    }
    arena_finish(&l.arena);
    return code;
}

/* -------------------------------------------------------------------------------------- merging */

static void append_merged(struct buf *out, const struct node *old, const struct node *new);

/* The value of `old` with `new` over it, either of which may be NULL. Objects are always written
 * anew, so that what is said again changes no byte. */
static void append_value(struct buf *out, const struct node *old, const struct node *new)
{
    const struct node *value = new ? new : old;
    if (!is_object(value)) {
        buf_append(out, value->value);
    } else {
        append_merged(out, old && is_object(old) ? old : NULL, new);
    }
}

static void append_merged(struct buf *out, const struct node *old, const struct node *new)
{
    bool first = true;
    buf_append_char(out, '{');
    for (const struct node *n = old ? old->members : NULL; n; n = n->next) {
        append_key(out, n->key, first);
        append_value(out, n, find(new, n->key));
        first = false;
    }
    for (const struct node *n = new ? new->members : NULL; n; n = n->next) {
        if (!find(old, n->key)) {
            append_key(out, n->key, first);
            append_value(out, NULL, n);
            first = false;
        }
    }
    buf_append_char(out, '}');
}

int config_agent_patch(struct slice house_patch, struct slice thread_patch, struct slice agent_id,
                       struct buf *out, struct api_error *ret_error)
{
    struct layers l;
    int code = read_layers(&l, house_patch, thread_patch, ret_error);
    if (code == 0) {
        struct view dispatch = view_of(&l.root, SLICE("dispatch"));
        struct view agent = agent_view(&dispatch, agent_id);
        assert(agent.count <= 2);
        append_merged(out, agent.count > 0 ? agent.layers[0] : NULL,
                      agent.count > 1 ? agent.layers[1] : NULL);
        code = out->failed ? no_memory(ret_error) : 0;
    }
    arena_finish(&l.arena);
    return code;
}

int config_merge_patch(struct slice old_patch, struct slice new_patch, struct buf *out,
                       struct api_error *ret_error)
{
    struct arena arena;
    struct node old;
    struct node new;
    struct node result;
    struct buf merged;
    arena_init(&arena, ARENA_BYTES_MAX);
    buf_init(&merged, 4 * CONFIG_BYTES_MAX); /* two patches, a key's quotes escaped */
    int code = read_patch(old_patch, &arena, &old, ret_error);
    code = code < 0 ? code : read_patch(new_patch, &arena, &new, ret_error);
    if (code == 0) {
        append_merged(&merged, &old, &new);
        code = merged.failed ? no_memory(ret_error)
                             : read_patch(buf_slice(&merged), &arena, &result, ret_error);
    }
    if (code == 0) {
        buf_append(out, buf_slice(&merged));
        code = out->failed ? no_memory(ret_error) : 0;
    }
    buf_finish(&merged);
    arena_finish(&arena);
    return code;
}

/* ------------------------------------------------------------------------------------- checking */

enum section {
    SECTION_ROOT,
    SECTION_DISPATCH, /* also what perAgent has of an agent */
    SECTION_AGENTS,   /* each member is an agent's */
    SECTION_LLM,
    SECTION_FLAGS, /* whatever it holds */
};

enum key_kind {
    KEY_SECTION, /* an object, as the section `of` */
    KEY_MODE,    /* when a bot answers */
    KEY_WHOLE,   /* a whole number, at most `max` */
    KEY_TEXT,    /* a string of 1 to `max` bytes */
};

/* The keys that the code knows, with the kinds that it can use. */
static const struct key {
    enum section in;
    const char *name;
    enum key_kind kind;
    enum section of;
    unsigned max;
} keys[] = {
    {SECTION_ROOT, "dispatch", KEY_SECTION, SECTION_DISPATCH, 0},
    {SECTION_ROOT, "llm", KEY_SECTION, SECTION_LLM, 0},
    {SECTION_ROOT, "flags", KEY_SECTION, SECTION_FLAGS, 0},
    {SECTION_DISPATCH, "triggerMode", KEY_MODE, SECTION_ROOT, 0},
    {SECTION_DISPATCH, "perAgent", KEY_SECTION, SECTION_AGENTS, 0},
    {SECTION_DISPATCH, "ambientDelayMs", KEY_WHOLE, SECTION_ROOT, 600000},
    {SECTION_DISPATCH, "gateWindow", KEY_WHOLE, SECTION_ROOT, 1000},
    {SECTION_DISPATCH, "cooldownMessages", KEY_WHOLE, SECTION_ROOT, 1000},
    {SECTION_DISPATCH, "entryLimit", KEY_WHOLE, SECTION_ROOT, 10000},
    {SECTION_DISPATCH, "depthCap", KEY_WHOLE, SECTION_ROOT, 100},
    {SECTION_DISPATCH, "fanoutCap", KEY_WHOLE, SECTION_ROOT, 100},
    {SECTION_LLM, "model", KEY_TEXT, SECTION_ROOT, RECORD_NAME_BYTES_MAX},
};

/* Where a member stands: a chain on the stack. */
struct path {
    const struct path *parent;
    struct slice key;
};

static void write_path(const struct path *p, struct buf *out)
{
    if (p->parent) {
        write_path(p->parent, out); /* CONFIG_DEPTH_MAX deep at the most */
        buf_append_char(out, '.');
    }
    buf_append(out, p->key);
}

/* "`path` must be " and what is formatted; a path too long for its field is cut between keys. */
static int PRINTF_LIKE(3, 4)
    refuse(struct api_error *e, const struct path *path, const char *wanted, ...)
{
    char memory[API_FIELD_BYTES];
    char said[API_FIELD_BYTES];
    struct buf text;
    va_list args;
    va_start(args, wanted);
    (void)vsnprintf(said, sizeof(said), wanted, args); /* fits: only numbers are put in */
    va_end(args);
    buf_init_fixed(&text, memory, sizeof(memory));
    write_path(path, &text);
    memory[text.len] = '\0';
    (void)api_error_set(e, API_INVALID_INPUT, "%s must be %s", memory, said);
    return api_error_set_field(e, "%s", memory);
}

static int check_members(const struct node *object, enum section section, const struct path *parent,
                         struct api_error *e);

static bool is_mode(struct slice value)
{
    return json_kind(value) == JSON_STRING && (json_string_equal(value, SLICE("mention")) ||
                                               json_string_equal(value, SLICE("ambient")) ||
                                               json_string_equal(value, SLICE("always")));
}

static int check_section(const struct node *n, enum section section, const struct path *path,
                         struct api_error *e)
{
    return is_object(n) ? check_members(n, section, path, e) : refuse(e, path, "an object");
}

static int check_key(const struct node *n, const struct key *key, const struct path *path,
                     struct api_error *e)
{
    uint64_t number;
    size_t len = 0;
    switch (key->kind) {
    case KEY_SECTION:
        return check_section(n, key->of, path, e);
    case KEY_MODE:
        return is_mode(n->value) ? 0 : refuse(e, path, "mention, ambient or always");
    case KEY_WHOLE:
        return json_number_u64(n->value, key->max, &number)
                   ? 0
                   : refuse(e, path, "a whole number from 0 to %u", key->max);
    case KEY_TEXT:
        break;
    }
    bool good = json_kind(n->value) == JSON_STRING && json_string_len(n->value, &len) == 0 &&
                len > 0 && len <= key->max;
    return good ? 0 : refuse(e, path, "a string of 1 to %u bytes", key->max);
}

static int check_agent(const struct node *n, const struct path *path, struct api_error *e)
{
    if (n->key.len == 0 || n->key.len > ENTRY_AUTHOR_BYTES_MAX) {
        return refuse(e, path->parent, "an object whose keys are ids of agents");
    }
    return check_section(n, SECTION_DISPATCH, path, e);
}

static int check_members(const struct node *object, enum section section, const struct path *parent,
                         struct api_error *e)
{
    for (const struct node *n = object->members; n; n = n->next) {
        struct path path = {.parent = parent, .key = n->key};
        if (json_kind(n->value) == JSON_NULL) {
            continue;
        }
        if (section == SECTION_AGENTS && check_agent(n, &path, e) < 0) {
            return -1;
        }
        for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
            if (keys[i].in == section && slice_equal(n->key, slice_of(keys[i].name)) &&
                check_key(n, &keys[i], &path, e) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

int config_check_patch(struct slice patch, struct api_error *ret_error)
{
    struct arena arena;
    struct node root;
    arena_init(&arena, ARENA_BYTES_MAX);
    int code = read_patch(patch, &arena, &root, ret_error);
    code = code < 0 ? code : check_members(&root, SECTION_ROOT, NULL, ret_error);
    arena_finish(&arena);
    return code;
}

void config_seed_dm(struct slice agent_id, struct buf *out)
{
    buf_append(out, SLICE("{\"dispatch\":{\"perAgent\":{"));
    json_append_string(out, agent_id);
    buf_append(out, SLICE(":{\"triggerMode\":\"always\"}}}}"));
}
