/* An envelope is walked once, and each member that is known is taken where it stands. */
#include "thread/entry.h"

#include <assert.h>

#include "base/err.h"
#include "base/json.h"
#include "base/json_value.h"
#include "base/limits.h"
#include "base/number.h"
#include "base/utf8.h"

_Static_assert(sizeof(ENTRY_ID_TOMBSTONE) + ENTRY_ID_BYTES_MAX <= ENTRY_ID_BYTES,
               "a tombstone's id fits");

/* The members of an envelope; ptr NULL where one is missing. */
struct envelope {
    struct slice id;
    struct slice ts;
    struct slice author_id;
    struct slice payload;
};

/* Where a member of that name goes, and the plain name; NULL for any other. */
static struct slice *place_of(struct envelope *v, struct slice name, const char **ret_name)
{
    const struct {
        const char *name;
        struct slice *place;
    } places[] = {
        {"id", &v->id},
        {"ts", &v->ts},
        {"authorId", &v->author_id},
        {"payload", &v->payload},
    };
    for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
        if (json_string_equal(name, slice_of(places[i].name))) {
            *ret_name = places[i].name;
            return places[i].place;
        }
    }
    return NULL;
}

/* "`field` `said`". */
static int refuse(struct api_error *e, const char *field, const char *said)
{
    (void)api_error_set(e, API_INVALID_INPUT, "%s %s", field, said);
    return api_error_set_field(e, "%s", field);
}

static int refuse_kind(struct api_error *e, const char *field, const char *wanted,
                       struct slice value)
{
    (void)api_error_set(e, API_INVALID_INPUT, "%s must be %s, not %s", field, wanted,
                        json_kind_text(json_kind(value)));
    return api_error_set_field(e, "%s", field);
}

/* A member that nobody knows, quoted as it came but for its end where that is long. */
static int refuse_unknown(struct api_error *e, struct slice name)
{
    struct slice plain = {name.ptr + 1, name.len - 2};
    plain.len = plain.len > 64 ? 64 : plain.len;
    plain.len = utf8_valid_prefix(plain);
    (void)api_error_set(e, API_INVALID_INPUT,
                        "%.*s is not known here: an entry has id, authorId and payload",
                        (int)plain.len, plain.ptr);
    return api_error_set_field(e, "%.*s", (int)plain.len, plain.ptr);
}

/* Takes the members of an object; a strict reading refuses those that are unknown. */
static int read_envelope(struct slice object, bool strict, struct envelope *ret_envelope,
                         struct api_error *e)
{
    struct envelope v = {.id = {NULL, 0}};
    struct json_walk w;
    struct slice name;
    struct slice value;
    const char *plain;
    if (json_kind(object) != JSON_OBJECT) {
        return api_error_set(e, API_INVALID_INPUT, "an entry must be an object, not %s",
                             json_kind_text(json_kind(object)));
    }
    json_walk_begin(&w, object);
    while (json_walk_member(&w, &name, &value)) {
        struct slice *place = place_of(&v, name, &plain);
        if (!place && strict) {
            return refuse_unknown(e, name);
        }
        if (place && place->ptr) {
            return refuse(e, plain, "is given twice");
        }
        if (place) {
            *place = value;
        }
    }
    *ret_envelope = v;
    return 0;
}

static int check_payload(struct slice payload, struct api_error *e)
{
    if (!payload.ptr) {
        return refuse(e, "payload", "is missing");
    }
    return json_kind(payload) == JSON_OBJECT ? 0 : refuse_kind(e, "payload", "an object", payload);
}

/* -------------------------------------------------------------------------------------- stored */

/* The text of a stored string, which has no escapes when we wrote it; 1 to `max` bytes. */
static bool stored_text(struct slice value, size_t max, struct slice *ret_text)
{
    if (!value.ptr || json_kind(value) != JSON_STRING) {
        return false;
    }
    struct slice text = {value.ptr + 1, value.len - 2};
    if (text.len == 0 || text.len > max || memchr(text.ptr, '\\', text.len)) {
        return false;
    }
    *ret_text = text;
    return true;
}

static int read_stored(struct slice value, struct entry *ret_entry, struct api_error *e)
{
    struct entry entry = {.author_id = SLICE("")};
    struct envelope v;
    uint64_t ts = 0;
    if (read_envelope(value, false, &v, e) < 0 || check_payload(v.payload, e) < 0) {
        return -1;
    }
    if (!stored_text(v.id, ENTRY_ID_BYTES - 1, &entry.id)) {
        return refuse(e, "id", "must be an entry's id");
    }
    if (!v.ts.ptr || !json_number_u64(v.ts, NUMBER_JS_MAX, &ts)) {
        return refuse(e, "ts", "must be a whole number of milliseconds");
    }
    if (v.author_id.ptr && json_kind(v.author_id) != JSON_NULL &&
        !stored_text(v.author_id, PAYLOAD_ID_BYTES_MAX, &entry.author_id)) {
        return refuse(e, "authorId", "must be an agent's id");
    }
    entry.ts = (int64_t)ts;
    entry.payload = v.payload;
    *ret_entry = entry;
    return 0;
}

static int refuse_json(struct api_error *e, const struct errmsg *msg)
{
    return api_error_set(e, API_MALFORMED_JSON, "%s", msg->text);
}

int entry_parse(struct slice json, struct entry *ret_entry, struct api_error *ret_error)
{
    struct errmsg msg = {.text = ""};
    struct slice value;
    if (json_text_read(json, &value, &msg) < 0) {
        return refuse_json(ret_error, &msg);
    }
    return read_stored(value, ret_entry, ret_error);
}

/* A walk over a page. */
struct page_walk {
    entry_fn each; /* the caller's */
    void *context; /* for each */
    size_t index;  /* of the next message */
};

static int on_message(void *context, struct slice message)
{
    struct page_walk *w = context;
    struct entry entry;
    size_t index = w->index++;
    return read_stored(message, &entry, NULL) == 0 ? w->each(w->context, &entry, index) : 0;
}

int entry_each(struct slice json_array, entry_fn each, void *context)
{
    struct page_walk w = {.each = each, .context = context};
    return json_each_message(json_array, on_message, &w, NULL);
}

/* -------------------------------------------------------------------------------------- posted */

/* The text of a string, decoded into the arena where an escape stands in it. */
static int decode_text(struct slice value, const char *field, struct arena *arena,
                       struct slice *ret_text, struct api_error *e)
{
    struct slice text = {value.ptr + 1, value.len - 2};
    if (json_kind(value) != JSON_STRING) {
        return refuse_kind(e, field, "a string", value);
    }
    if (text.len > 0 && memchr(text.ptr, '\\', text.len)) {
        char *memory = arena_try_alloc(arena, value.len);
        struct buf decoded;
        if (!memory) {
            return api_error_set(e, API_INTERNAL, "out of memory");
        }
        buf_init_fixed(&decoded, memory, value.len);
        if (json_string_decode(value, &decoded) < 0) {
            return refuse(e, field, "has half of a surrogate pair, which is no character");
        }
        text = buf_slice(&decoded);
    }
    *ret_text = text;
    return 0;
}

static bool is_given(struct slice value)
{
    return value.ptr && json_kind(value) != JSON_NULL;
}

static int read_id(struct slice value, struct arena *arena, struct slice *ret_id,
                   struct api_error *e)
{
    if (decode_text(value, "id", arena, ret_id, e) < 0) {
        return -1;
    }
    if (slice_starts_with(*ret_id, SLICE(ENTRY_ID_RESERVED))) {
        return refuse(e, "id", "may not begin with \"" ENTRY_ID_RESERVED "\", which is reserved");
    }
    if (!entry_id_good(*ret_id)) {
        (void)api_error_set(e, API_INVALID_INPUT, "id must be 1 to %u letters, digits and . _ ~ -",
                            ENTRY_ID_BYTES_MAX);
        return api_error_set_field(e, "id");
    }
    return 0;
}

static int read_author(struct slice value, struct arena *arena, struct slice *ret_author,
                       struct api_error *e)
{
    if (decode_text(value, "authorId", arena, ret_author, e) < 0) {
        return -1;
    }
    if (ret_author->len == 0 || ret_author->len > ENTRY_AUTHOR_BYTES_MAX) {
        return refuse(e, "authorId", "must be an agent's id");
    }
    return 0;
}

int entry_read_posted(struct slice value, struct arena *arena, struct entry_posted *ret_posted,
                      struct api_error *ret_error)
{
    struct entry_posted posted = {.id = SLICE(""), .author_id = SLICE("")};
    struct envelope v;
    if (read_envelope(value, true, &v, ret_error) < 0) {
        return -1;
    }
    if (is_given(v.id) && read_id(v.id, arena, &posted.id, ret_error) < 0) {
        return -1;
    }
    if (is_given(v.ts) && json_kind(v.ts) != JSON_NUMBER) {
        return refuse_kind(ret_error, "ts", "a number", v.ts);
    }
    if (is_given(v.author_id) &&
        read_author(v.author_id, arena, &posted.author_id, ret_error) < 0) {
        return -1;
    }
    if (check_payload(v.payload, ret_error) < 0) {
        return -1;
    }
    posted.payload = v.payload;
    *ret_posted = posted;
    return 0;
}

int entry_parse_posted(struct slice json, struct arena *arena, struct entry_posted *ret_posted,
                       struct api_error *ret_error)
{
    struct errmsg msg = {.text = ""};
    struct slice value;
    if (json_text_read(json, &value, &msg) < 0) {
        return refuse_json(ret_error, &msg);
    }
    return entry_read_posted(value, arena, ret_posted, ret_error);
}

/* ----------------------------------------------------------------------------------------- ids */

static bool is_id_char(char c)
{
    char small = (char)(c | 0x20);
    return (c >= '0' && c <= '9') || (small >= 'a' && small <= 'z') || c == '.' || c == '_' ||
           c == '~' || c == '-';
}

bool entry_id_possible(struct slice id)
{
    for (size_t i = 0; i < id.len; i++) {
        if (!is_id_char(id.ptr[i])) {
            return false;
        }
    }
    return id.len > 0 && id.len < ENTRY_ID_BYTES;
}

bool entry_id_good(struct slice id)
{
    /* "." and ".." would be folded away where an id is a part of a URL. */
    return id.len <= ENTRY_ID_BYTES_MAX && entry_id_possible(id) &&
           !slice_starts_with(id, SLICE(ENTRY_ID_RESERVED)) && !slice_equal(id, SLICE(".")) &&
           !slice_equal(id, SLICE(".."));
}

size_t entry_tombstone_id(struct slice id, char out[static ENTRY_ID_BYTES])
{
    size_t prefix = sizeof(ENTRY_ID_TOMBSTONE) - 1;
    assert(entry_id_good(id));
    memcpy(out, ENTRY_ID_TOMBSTONE, prefix);
    memcpy(out + prefix, id.ptr, id.len);
    out[prefix + id.len] = '\0';
    return prefix + id.len;
}

void entry_format(struct buf *out, const struct entry *e)
{
    assert(e->ts >= 0);
    buf_append(out, SLICE("{\"id\":"));
    json_append_string(out, e->id);
    buf_append(out, SLICE(",\"ts\":"));
    buf_append_u64(out, (uint64_t)e->ts);
    if (e->author_id.len > 0) {
        buf_append(out, SLICE(",\"authorId\":"));
        json_append_string(out, e->author_id);
    }
    buf_append(out, SLICE(",\"payload\":"));
    buf_append(out, e->payload);
    buf_append_char(out, '}');
}
