/* The one table of what payloads hold, a row for each field, and the walk that holds a payload
 * against it. An object is walked once: each member finds its row, or passes; rows that must be
 * there and were not met are told of at the end.
 *
 * A string is looked at as far as its row asks: what only passes through (the output of models and
 * tools) may hold half of a surrogate pair, which JavaScript cuts texts into; what is read here or
 * referred to may not. */
#include "thread/payload.h"

#include <assert.h>

#include "base/json_value.h"
#include "base/limits.h"
#include "base/number.h"
#include "base/utf8.h"
#include "thread/entry.h"

/* What is inside payloads follows the types themselves. */
enum shape {
    SHAPE_ATTACHMENT = PAYLOAD_TYPE_COUNT,
    SHAPE_TEXT,
    SHAPE_THINKING,
    SHAPE_TOOL_CALL,
    SHAPE_IMAGE,
    SHAPE_USAGE,
    SHAPE_COST,
};

enum field_kind {
    FIELD_STRING,   /* of any length */
    FIELD_TEXT,     /* 1 to `max` bytes */
    FIELD_ID,       /* 1 to PAYLOAD_ID_BYTES_MAX bytes */
    FIELD_IDS,      /* an array of those */
    FIELD_ENTRY_ID, /* an entry's */
    FIELD_WORD,     /* one of `words` */
    FIELD_WHOLE,    /* a whole number that JavaScript holds exactly */
    FIELD_NUMBER,   /* not negative */
    FIELD_BOOL,
    FIELD_ANY,
    FIELD_MAP,    /* an object of anything */
    FIELD_OBJECT, /* of the shape `of` */
    FIELD_LIST,   /* of objects of the shape `of`, at most `max` */
    FIELD_BLOCKS, /* of objects whose "type" is one of `words` and tells their shape */
};

enum presence {
    NEEDED,
    OPTIONAL, /* null is as if left out */
    TRACE,    /* optional, and a bad one is dropped: valid spend must not be lost */
};

struct field {
    unsigned shape;           /* enum payload_type or enum shape; the rows of one stand together */
    const char *name;         /* of the member */
    enum field_kind kind;     /* of its value */
    enum presence presence;   /* whether it must be there */
    const char *const *words; /* as kind says; ends with NULL */
    unsigned of;              /* as kind says */
    size_t max;               /* as kind says */
};

static const char *const roles[] = {"owner", "member", NULL};
static const char *const chunk_blocks[] = {"text", "thinking", "toolCall", NULL};
static const char *const result_blocks[] = {"text", "image", NULL};
static const char *const statuses[] = {
#define X(name, text) text,
    THREAD_STATUS_LIST(X)
#undef X
        NULL,
};

/* Which shape the type of a block tells. */
static const struct {
    const char *type;
    enum shape shape;
} block_shapes[] = {
    {"text", SHAPE_TEXT},
    {"thinking", SHAPE_THINKING},
    {"toolCall", SHAPE_TOOL_CALL},
    {"image", SHAPE_IMAGE},
};

#define ROW(in, named, value, there, ...)                                                       \
    {                                                                                           \
        .shape = (in), .name = (named), .kind = FIELD_##value, .presence = (there), __VA_ARGS__ \
    }

/* Types of one family that are shaped alike. */
#define ENVIRONMENT_ROWS(type)                                                  \
    ROW(type, "environmentId", ID, NEEDED), ROW(type, "agentId", ID, OPTIONAL), \
        ROW(type, "reason", STRING, OPTIONAL)
#define FILES_ROWS(type)                                                   \
    ROW(type, "path", STRING, NEEDED), ROW(type, "size", WHOLE, OPTIONAL), \
        ROW(type, "mediaType", STRING, OPTIONAL)
#define DISPATCH_ROWS(type)                                                \
    ROW(type, "dispatchId", ID, NEEDED), ROW(type, "agentId", ID, NEEDED), \
        ROW(type, "triggerEntryId", ENTRY_ID, NEEDED)

static const struct field fields[] = {
    ROW(PAYLOAD_CHAT, "text", TEXT, NEEDED, .max = CHAT_TEXT_BYTES_MAX),
    ROW(PAYLOAD_CHAT, "replyTo", ENTRY_ID, OPTIONAL),
    ROW(PAYLOAD_CHAT, "attachments", LIST, OPTIONAL, .of = SHAPE_ATTACHMENT,
        .max = CHAT_ATTACHMENTS_MAX),

    ROW(PAYLOAD_PI_CHUNK, "contentIndex", WHOLE, NEEDED),
    ROW(PAYLOAD_PI_CHUNK, "block", WORD, NEEDED, .words = chunk_blocks),
    ROW(PAYLOAD_PI_CHUNK, "delta", STRING, NEEDED),
    ROW(PAYLOAD_PI_CHUNK, "invocationId", ID, TRACE),
    ROW(PAYLOAD_PI_CHUNK, "message", WHOLE, TRACE),

    ROW(PAYLOAD_PI_ASSISTANT, "content", BLOCKS, NEEDED, .words = chunk_blocks),
    ROW(PAYLOAD_PI_ASSISTANT, "provider", STRING, NEEDED),
    ROW(PAYLOAD_PI_ASSISTANT, "model", STRING, NEEDED),
    ROW(PAYLOAD_PI_ASSISTANT, "usage", OBJECT, NEEDED, .of = SHAPE_USAGE),
    ROW(PAYLOAD_PI_ASSISTANT, "stopReason", STRING, NEEDED),
    ROW(PAYLOAD_PI_ASSISTANT, "errorMessage", STRING, OPTIONAL),
    ROW(PAYLOAD_PI_ASSISTANT, "api", STRING, OPTIONAL),
    ROW(PAYLOAD_PI_ASSISTANT, "timestamp", NUMBER, TRACE),
    ROW(PAYLOAD_PI_ASSISTANT, "durationMs", NUMBER, TRACE),
    ROW(PAYLOAD_PI_ASSISTANT, "invocationId", ID, TRACE),
    ROW(PAYLOAD_PI_ASSISTANT, "message", WHOLE, TRACE),

    ROW(PAYLOAD_PI_TOOL_RESULT, "toolCallId", STRING, NEEDED),
    ROW(PAYLOAD_PI_TOOL_RESULT, "toolName", STRING, NEEDED),
    ROW(PAYLOAD_PI_TOOL_RESULT, "content", BLOCKS, NEEDED, .words = result_blocks),
    ROW(PAYLOAD_PI_TOOL_RESULT, "isError", BOOL, NEEDED),
    ROW(PAYLOAD_PI_TOOL_RESULT, "details", ANY, OPTIONAL),
    ROW(PAYLOAD_PI_TOOL_RESULT, "parentToolCallId", STRING, OPTIONAL),
    ROW(PAYLOAD_PI_TOOL_RESULT, "timestamp", NUMBER, TRACE),
    ROW(PAYLOAD_PI_TOOL_RESULT, "durationMs", NUMBER, TRACE),
    ROW(PAYLOAD_PI_TOOL_RESULT, "invocationId", ID, TRACE),

    ROW(PAYLOAD_PI_COMPACTION, "summary", STRING, NEEDED),
    ROW(PAYLOAD_PI_COMPACTION, "tokensBefore", WHOLE, NEEDED),
    ROW(PAYLOAD_PI_COMPACTION, "firstKeptEntryId", STRING, OPTIONAL),
    ROW(PAYLOAD_PI_COMPACTION, "usage", OBJECT, OPTIONAL, .of = SHAPE_USAGE),
    ROW(PAYLOAD_PI_COMPACTION, "invocationId", ID, TRACE),

    ROW(PAYLOAD_ENTRY_DELETED, "entryId", ENTRY_ID, NEEDED),

    ROW(PAYLOAD_THREAD_RENAMED, "name", STRING, NEEDED),
    ROW(PAYLOAD_THREAD_STATUS_CHANGED, "status", WORD, NEEDED, .words = statuses),
    ROW(PAYLOAD_THREAD_STATUS_CHANGED, "reason", STRING, OPTIONAL),
    ROW(PAYLOAD_THREAD_PI_FAILED, "reason", STRING, NEEDED),
    ROW(PAYLOAD_THREAD_PI_ORPHANED, "reason", STRING, OPTIONAL),

    ROW(PAYLOAD_HOUSE_RENAMED, "name", STRING, NEEDED),
    ROW(PAYLOAD_HOUSE_MEMBER_ADDED, "agentId", ID, NEEDED),
    ROW(PAYLOAD_HOUSE_MEMBER_ADDED, "role", WORD, NEEDED, .words = roles),
    ROW(PAYLOAD_HOUSE_MEMBER_REMOVED, "agentId", ID, NEEDED),

    ENVIRONMENT_ROWS(PAYLOAD_ENVIRONMENT_REQUESTED),
    ENVIRONMENT_ROWS(PAYLOAD_ENVIRONMENT_STARTING),
    ENVIRONMENT_ROWS(PAYLOAD_ENVIRONMENT_READY),
    ENVIRONMENT_ROWS(PAYLOAD_ENVIRONMENT_STOPPED),
    ENVIRONMENT_ROWS(PAYLOAD_ENVIRONMENT_FAILED),

    FILES_ROWS(PAYLOAD_FILES_ADDED),
    FILES_ROWS(PAYLOAD_FILES_CHANGED),
    FILES_ROWS(PAYLOAD_FILES_REMOVED),

    ROW(PAYLOAD_DIRECTOR_DECIDED, "agentIds", IDS, NEEDED),
    ROW(PAYLOAD_DIRECTOR_FAILED, "reason", STRING, NEEDED),
    ROW(PAYLOAD_DIRECTOR_FAILED, "entryId", ENTRY_ID, NEEDED),

    DISPATCH_ROWS(PAYLOAD_DISPATCH_STARTED),
    DISPATCH_ROWS(PAYLOAD_DISPATCH_COMPLETED),
    DISPATCH_ROWS(PAYLOAD_DISPATCH_FAILED),
    ROW(PAYLOAD_DISPATCH_FAILED, "reason", STRING, NEEDED),
    DISPATCH_ROWS(PAYLOAD_DISPATCH_CANCELLED),
    ROW(PAYLOAD_DISPATCH_SKIPPED, "agentId", ID, OPTIONAL),
    ROW(PAYLOAD_DISPATCH_SKIPPED, "triggerEntryId", ENTRY_ID, NEEDED),
    ROW(PAYLOAD_DISPATCH_SKIPPED, "reason", STRING, NEEDED),

    ROW(SHAPE_ATTACHMENT, "name", STRING, NEEDED),
    ROW(SHAPE_ATTACHMENT, "mediaType", STRING, NEEDED),
    ROW(SHAPE_ATTACHMENT, "size", WHOLE, NEEDED),
    ROW(SHAPE_ATTACHMENT, "url", STRING, NEEDED),

    ROW(SHAPE_TEXT, "text", STRING, NEEDED),
    ROW(SHAPE_THINKING, "thinking", STRING, NEEDED),
    ROW(SHAPE_TOOL_CALL, "id", STRING, NEEDED),
    ROW(SHAPE_TOOL_CALL, "name", STRING, NEEDED),
    ROW(SHAPE_TOOL_CALL, "arguments", MAP, NEEDED),
    ROW(SHAPE_IMAGE, "data", STRING, NEEDED),
    ROW(SHAPE_IMAGE, "mimeType", STRING, NEEDED),

    ROW(SHAPE_USAGE, "input", WHOLE, NEEDED),
    ROW(SHAPE_USAGE, "output", WHOLE, NEEDED),
    ROW(SHAPE_USAGE, "cacheRead", WHOLE, OPTIONAL),
    ROW(SHAPE_USAGE, "cacheWrite", WHOLE, OPTIONAL),
    ROW(SHAPE_USAGE, "totalTokens", WHOLE, OPTIONAL),
    ROW(SHAPE_USAGE, "cost", OBJECT, OPTIONAL, .of = SHAPE_COST),
    ROW(SHAPE_COST, "input", NUMBER, OPTIONAL),
    ROW(SHAPE_COST, "output", NUMBER, OPTIONAL),
    ROW(SHAPE_COST, "cacheRead", NUMBER, OPTIONAL),
    ROW(SHAPE_COST, "cacheWrite", NUMBER, OPTIONAL),
    ROW(SHAPE_COST, "total", NUMBER, OPTIONAL),
};

/* --------------------------------------------------------------------------------------- types */

static const char *const type_texts[PAYLOAD_TYPE_COUNT + 1] = {
#define X(name, text) [PAYLOAD_##name] = text,
    PAYLOAD_TYPE_LIST(X)
#undef X
        [PAYLOAD_UNKNOWN] = "unknown",
};

const char *payload_type_text(enum payload_type type)
{
    assert(type <= PAYLOAD_UNKNOWN);
    return type_texts[type];
}

enum payload_type payload_type_parse(struct slice text)
{
    for (enum payload_type i = 0; i < PAYLOAD_TYPE_COUNT; i++) {
        if (slice_equal(text, slice_of(type_texts[i]))) {
            return i;
        }
    }
    return PAYLOAD_UNKNOWN;
}

/* The same for a JSON string. */
static enum payload_type type_of_value(struct slice value)
{
    for (enum payload_type i = 0; i < PAYLOAD_TYPE_COUNT; i++) {
        if (json_string_equal(value, slice_of(type_texts[i]))) {
            return i;
        }
    }
    return PAYLOAD_UNKNOWN;
}

int payload_type_of(struct slice payload, enum payload_type *ret_type)
{
    struct slice value;
    if (json_object_find(payload, SLICE("type"), &value, NULL) != 1 ||
        json_kind(value) != JSON_STRING) {
        return -1;
    }
    *ret_type = type_of_value(value);
    return 0;
}

_Static_assert(PAYLOAD_TYPE_COUNT <= 64, "a set has a bit for each type");

bool payload_types_has(struct payload_types set, enum payload_type type)
{
    assert(type <= PAYLOAD_UNKNOWN);
    return type != PAYLOAD_UNKNOWN && (set.bits >> type & 1) != 0;
}

void payload_types_add(struct payload_types *set, enum payload_type type)
{
    assert(type < PAYLOAD_TYPE_COUNT);
    set->bits |= UINT64_C(1) << type;
}

/* ----------------------------------------------------------------------------- paths, refusals */

/* Where a value stands: a chain from the member up, on the stack. */
struct path {
    const struct path *parent; /* NULL: the payload itself */
    const char *name;          /* of a member; NULL for an element */
    size_t index;              /* of an element */
};

static void write_path(const struct path *p, struct buf *out)
{
    if (!p) {
        buf_append(out, SLICE("payload"));
        return;
    }
    write_path(p->parent, out); /* as deep as the table: no client makes it deeper */
    if (p->name) {
        buf_append_char(out, '.');
        buf_append(out, slice_of(p->name));
    } else {
        buf_append_format(out, "[%zu]", p->index);
    }
}

/* "`path` `said`", at the path. */
static int refuse(struct api_error *e, enum api_code code, const struct path *path,
                  const char *said)
{
    char memory[API_FIELD_BYTES];
    struct buf text;
    buf_init_fixed(&text, memory, sizeof(memory));
    write_path(path, &text);
    memory[text.len] = '\0';
    (void)api_error_set(e, code, "%s %s", memory, said);
    return api_error_set_field(e, "%s", memory);
}

static int refuse_kind(struct api_error *e, const struct path *path, const char *wanted,
                       struct slice value)
{
    char said[API_MESSAGE_BYTES];
    struct buf text;
    buf_init_fixed(&text, said, sizeof(said));
    buf_append_format(&text, "must be %s, not %s", wanted, json_kind_text(json_kind(value)));
    said[text.len] = '\0';
    return refuse(e, API_INVALID_INPUT, path, said);
}

/* `value` is a number, but not one that is wanted; or no number. */
static int refuse_number(struct api_error *e, const struct path *path, const char *wanted,
                         struct slice value)
{
    char said[API_MESSAGE_BYTES];
    struct buf text;
    if (json_kind(value) != JSON_NUMBER) {
        return refuse_kind(e, path, wanted, value);
    }
    buf_init_fixed(&text, said, sizeof(said));
    buf_append_format(&text, "must be %s, not %.*s", wanted, value.len > 32 ? 32 : (int)value.len,
                      value.ptr);
    said[text.len] = '\0';
    return refuse(e, API_INVALID_INPUT, path, said);
}

/* Quotes what was sent, without its end where that is long. */
static int refuse_word(struct api_error *e, const struct path *path, const char *const *words,
                       struct slice value)
{
    char said[API_MESSAGE_BYTES];
    struct buf text;
    if (json_kind(value) != JSON_STRING) {
        return refuse_kind(e, path, "a string", value);
    }
    struct slice quoted = {value.ptr, value.len > 64 ? 64 : value.len};
    buf_init_fixed(&text, said, sizeof(said));
    buf_append(&text, SLICE("must be "));
    for (size_t i = 0; words[i]; i++) {
        const char *before = i == 0 ? "" : words[i + 1] ? ", " : " or ";
        buf_append_format(&text, "%s%s", before, words[i]);
    }
    buf_append_format(&text, ", not %.*s", (int)utf8_valid_prefix(quoted), quoted.ptr);
    said[text.len] = '\0';
    return refuse(e, API_INVALID_INPUT, path, said);
}

/* -------------------------------------------------------------------------------------- values */

static int check_text(const struct path *path, struct slice value, size_t max, struct api_error *e)
{
    char said[API_MESSAGE_BYTES];
    size_t len = 0;
    if (json_kind(value) != JSON_STRING) {
        return refuse_kind(e, path, "a string", value);
    }
    if (json_string_len(value, &len) < 0) {
        return refuse(e, API_INVALID_INPUT, path,
                      "has half of a surrogate pair, which is no character");
    }
    if (len == 0) {
        return refuse(e, API_INVALID_INPUT, path, "must not be empty");
    }
    if (len > max) {
        struct buf text;
        buf_init_fixed(&text, said, sizeof(said));
        buf_append_format(&text, "has %zu bytes; at most %zu are taken", len, max);
        said[text.len] = '\0';
        return refuse(e, max == CHAT_TEXT_BYTES_MAX ? API_TOO_LARGE : API_INVALID_INPUT, path,
                      said);
    }
    return 0;
}

/* The id of any entry there may be, a tombstone too. */
static int check_entry_id(const struct path *path, struct slice value, struct api_error *e)
{
    if (json_kind(value) != JSON_STRING) {
        return refuse_kind(e, path, "a string", value);
    }
    return entry_id_possible((struct slice){value.ptr + 1, value.len - 2})
               ? 0
               : refuse(e, API_INVALID_INPUT, path,
                        "must be an entry's id: letters, digits and . _ ~ -");
}

static int check_word(const struct path *path, struct slice value, const char *const *words,
                      struct api_error *e)
{
    if (json_kind(value) == JSON_STRING) {
        for (size_t i = 0; words[i]; i++) {
            if (json_string_equal(value, slice_of(words[i]))) {
                return 0;
            }
        }
    }
    return refuse_word(e, path, words, value);
}

static int check_ids(const struct path *path, struct slice value, struct api_error *e)
{
    struct json_walk w;
    struct slice one;
    struct path at = {.parent = path};
    if (json_kind(value) != JSON_ARRAY) {
        return refuse_kind(e, path, "an array of ids", value);
    }
    json_walk_begin(&w, value);
    for (; json_walk_element(&w, &one); at.index++) {
        if (check_text(&at, one, PAYLOAD_ID_BYTES_MAX, e) < 0) {
            return -1;
        }
    }
    return 0;
}

/* What a look at an object found besides. */
struct found {
    uint32_t bad;      /* a bit for each row whose member is to be dropped */
    size_t type_count; /* members called "type" that no row knows */
};

static int check_object(const struct path *path, unsigned shape, struct slice object,
                        struct found *ret_found, struct api_error *e);

static int check_list(const struct path *path, const struct field *f, struct slice value,
                      struct api_error *e)
{
    struct json_walk w;
    struct slice one;
    struct path at = {.parent = path};
    if (json_kind(value) != JSON_ARRAY) {
        return refuse_kind(e, path, "an array", value);
    }
    json_walk_begin(&w, value);
    for (; json_walk_element(&w, &one); at.index++) {
        if (at.index == f->max) {
            return refuse(e, API_INVALID_INPUT, path, "has too many elements");
        }
        if (check_object(&at, f->of, one, NULL, e) < 0) {
            return -1;
        }
    }
    return 0;
}

static int check_block(const struct path *path, const char *const *words, struct slice block,
                       struct api_error *e)
{
    struct slice type;
    struct path at = {.parent = path, .name = "type"};
    if (json_kind(block) != JSON_OBJECT) {
        return refuse_kind(e, path, "an object", block);
    }
    int found = json_object_find(block, SLICE("type"), &type, NULL);
    if (found != 1) {
        return refuse(e, API_INVALID_INPUT, &at, found == 0 ? "is missing" : "is given twice");
    }
    if (check_word(&at, type, words, e) < 0) {
        return -1;
    }
    for (size_t i = 0; i < ARRAY_COUNT(block_shapes); i++) {
        if (json_string_equal(type, slice_of(block_shapes[i].type))) {
            return check_object(path, block_shapes[i].shape, block, NULL, e);
        }
    }
    assert(false); /* every word of a list of blocks has a shape */
    return -1;
}

static int check_blocks(const struct path *path, const char *const *words, struct slice value,
                        struct api_error *e)
{
    struct json_walk w;
    struct slice one;
    struct path at = {.parent = path};
    if (json_kind(value) != JSON_ARRAY) {
        return refuse_kind(e, path, "an array", value);
    }
    json_walk_begin(&w, value);
    for (; json_walk_element(&w, &one); at.index++) {
        if (check_block(&at, words, one, e) < 0) {
            return -1;
        }
    }
    return 0;
}

static int check_number(const struct path *path, enum field_kind kind, struct slice value,
                        struct api_error *e)
{
    uint64_t whole;
    double number;
    if (kind == FIELD_WHOLE) {
        return json_number_u64(value, NUMBER_JS_MAX, &whole)
                   ? 0
                   : refuse_number(e, path, "a whole number that is not negative", value);
    }
    return json_number_double(value, &number) && number >= 0
               ? 0
               : refuse_number(e, path, "a number that is not negative", value);
}

/* A value that is of one of two JSON kinds, or of the one given twice. */
static int check_kind(const struct path *path, enum json_kind one, enum json_kind other,
                      const char *wanted, struct slice value, struct api_error *e)
{
    enum json_kind kind = json_kind(value);
    return kind == one || kind == other ? 0 : refuse_kind(e, path, wanted, value);
}

static int check_value(const struct path *path, const struct field *f, struct slice value,
                       struct api_error *e)
{
    switch (f->kind) {
    case FIELD_STRING:
        return check_kind(path, JSON_STRING, JSON_STRING, "a string", value, e);
    case FIELD_TEXT:
        return check_text(path, value, f->max, e);
    case FIELD_ID:
        return check_text(path, value, PAYLOAD_ID_BYTES_MAX, e);
    case FIELD_IDS:
        return check_ids(path, value, e);
    case FIELD_ENTRY_ID:
        return check_entry_id(path, value, e);
    case FIELD_WORD:
        return check_word(path, value, f->words, e);
    case FIELD_WHOLE:
    case FIELD_NUMBER:
        return check_number(path, f->kind, value, e);
    case FIELD_BOOL:
        return check_kind(path, JSON_TRUE, JSON_FALSE, "true or false", value, e);
    case FIELD_MAP:
        return check_kind(path, JSON_OBJECT, JSON_OBJECT, "an object", value, e);
    case FIELD_OBJECT:
        return check_object(path, f->of, value, NULL, e);
    case FIELD_LIST:
        return check_list(path, f, value, e);
    case FIELD_BLOCKS:
        return check_blocks(path, f->words, value, e);
    case FIELD_ANY:
        break;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------- objects */

/* The rows of a shape; none for a type that has no fields. */
struct rows {
    const struct field *first;
    size_t count; /* at most 32 */
};

static struct rows rows_of(unsigned shape)
{
    struct rows rows = {.first = fields};
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++) {
        if (fields[i].shape == shape) {
            rows.first = rows.count == 0 ? &fields[i] : rows.first;
            rows.count++;
        } else if (rows.count > 0) {
            break;
        }
    }
    assert(rows.count <= 32);
    return rows;
}

/* The row of the member `name`; the count of rows when there is none. */
static size_t find_row(const struct rows *rows, struct slice name)
{
    size_t i = 0;
    while (i < rows->count && !json_string_equal(name, slice_of(rows->first[i].name))) {
        i++;
    }
    return i;
}

/* Judges one member. A bad trace field is marked in `bad`. */
static int check_member(const struct path *path, const struct field *f, bool again,
                        struct slice value, bool *ret_bad, struct api_error *e)
{
    struct path at = {.parent = path, .name = f->name};
    struct api_error *tell = f->presence == TRACE ? NULL : e;
    int code = 0;
    if (again) {
        code = refuse(tell, API_INVALID_INPUT, &at, "is given twice");
    } else if (f->presence == NEEDED || json_kind(value) != JSON_NULL) {
        code = check_value(&at, f, value, tell);
    }
    *ret_bad = code < 0 && f->presence == TRACE;
    return *ret_bad ? 0 : code;
}

/* Judges an object by the rows of its shape. ret_found may be NULL. */
static int check_object(const struct path *path, unsigned shape, struct slice object,
                        struct found *ret_found, struct api_error *e)
{
    struct rows rows = rows_of(shape);
    struct json_walk w;
    struct slice name;
    struct slice value;
    uint32_t seen = 0;
    struct found found = {.bad = 0};
    if (json_kind(object) != JSON_OBJECT) {
        return refuse_kind(e, path, "an object", object);
    }
    json_walk_begin(&w, object);
    while (json_walk_member(&w, &name, &value)) {
        size_t i = find_row(&rows, name);
        bool drop = false;
        if (i == rows.count) {
            found.type_count += json_string_equal(name, SLICE("type"));
            continue; /* kept as it is */
        }
        if (check_member(path, &rows.first[i], (seen >> i & 1) != 0, value, &drop, e) < 0) {
            return -1;
        }
        seen |= UINT32_C(1) << i;
        found.bad |= (uint32_t)drop << i;
    }
    for (size_t i = 0; i < rows.count; i++) {
        if (rows.first[i].presence == NEEDED && (seen >> i & 1) == 0) {
            struct path at = {.parent = path, .name = rows.first[i].name};
            return refuse(e, API_INVALID_INPUT, &at, "is missing");
        }
    }
    if (ret_found) {
        *ret_found = found;
    }
    return 0;
}

/* Appends the object without the members whose rows are marked; what stays keeps its bytes. */
static void append_without(struct buf *out, struct slice object, unsigned shape, uint32_t bad)
{
    struct rows rows = rows_of(shape);
    struct json_walk w;
    struct slice name;
    struct slice value;
    char before = '{';
    json_walk_begin(&w, object);
    while (json_walk_member(&w, &name, &value)) {
        size_t i = find_row(&rows, name);
        if (i < rows.count && (bad >> i & 1) != 0) {
            continue;
        }
        buf_append_char(out, before);
        buf_append(out, (struct slice){name.ptr, (size_t)(value.ptr + value.len - name.ptr)});
        before = ',';
    }
    buf_append_char(out, '}');
}

static int check_type(struct slice payload, enum payload_type *ret_type, struct api_error *e)
{
    struct slice value;
    struct path at = {.name = "type"};
    if (json_kind(payload) != JSON_OBJECT) {
        return refuse_kind(e, NULL, "an object", payload);
    }
    int found = json_object_find(payload, SLICE("type"), &value, NULL);
    if (found != 1) {
        return refuse(e, API_INVALID_INPUT, &at, found == 0 ? "is missing" : "is given twice");
    }
    if (json_kind(value) != JSON_STRING) {
        return refuse_kind(e, &at, "a string", value);
    }
    *ret_type = type_of_value(value);
    if (*ret_type == PAYLOAD_UNKNOWN) {
        (void)refuse(e, API_INVALID_INPUT, &at, "is of no type that is known");
        return api_error_suggest(e, "the types are chat, pi.* and signal.*: see docs/api.md");
    }
    return 0;
}

/* One look instead of two at a payload that begins with its type, as nearly all do, and is good.
 * False for any other, of which the two looks then find what is to be said. */
static bool check_at_once(struct slice payload, enum payload_type *ret_type,
                          struct found *ret_found)
{
    struct json_walk w;
    struct slice name;
    struct slice value;
    json_walk_begin(&w, payload);
    if (json_kind(payload) != JSON_OBJECT || !json_walk_member(&w, &name, &value) ||
        !json_string_equal(name, SLICE("type")) || json_kind(value) != JSON_STRING) {
        return false;
    }
    *ret_type = type_of_value(value);
    return *ret_type != PAYLOAD_UNKNOWN &&
           check_object(NULL, *ret_type, payload, ret_found, NULL) == 0 &&
           ret_found->type_count == 1;
}

int payload_check(struct slice payload, enum payload_type *ret_type, struct buf *out,
                  struct api_error *ret_error)
{
    enum payload_type type = PAYLOAD_UNKNOWN;
    struct found found = {.bad = 0};
    if (json_depth(payload) > PAYLOAD_DEPTH_MAX) {
        (void)refuse(ret_error, API_INVALID_INPUT, NULL, "is nested too deeply");
        return api_error_suggest(ret_error, "at most %u arrays and objects may be open at a time",
                                 PAYLOAD_DEPTH_MAX);
    }
    if (!check_at_once(payload, &type, &found) &&
        (check_type(payload, &type, ret_error) < 0 ||
         check_object(NULL, type, payload, &found, ret_error) < 0)) {
        return -1;
    }
    if (found.bad == 0) {
        buf_append(out, payload);
    } else {
        append_without(out, payload, type, found.bad);
    }
    if (out->failed) {
        return api_error_set(ret_error, API_INTERNAL, "out of memory");
    }
    *ret_type = type;
    return 0;
}
