/* The text has been scanned, so where a value ends is told by quotes and brackets alone. */
#include "t3/fields.h"

#include "base/bytes.h"
#include "base/json_value.h"
#include "base/limits.h"

#define EACH_BYTE(byte) (UINT64_C(0x0101010101010101) * (byte))

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Past white space, commas and colons: what may stand between two values. */
static const char *skip_between(const char *at, const char *end)
{
    while (at < end && (is_space(*at) || *at == ',' || *at == ':')) {
        at++;
    }
    return at;
}

/* The first quote or backslash from `at` on, or `end`. Eight bytes a step: a byte that was one of
 * the two is 0 after the exclusive or, and taking 1 from it sets its top bit. So does a byte beyond
 * ASCII, which is looked at and passed over. */
static const char *find_mark(const char *at, const char *end)
{
    while (end - at >= 8) {
        uint64_t word = bytes_get_u64(at);
        uint64_t found = (word ^ EACH_BYTE('"')) - EACH_BYTE(1);

        found |= (word ^ EACH_BYTE('\\')) - EACH_BYTE(1);
        found &= EACH_BYTE(0x80);
        if (found == 0) {
            at += 8;
            continue;
        }
        at += __builtin_ctzll(found) / 8;
        if (*at == '"' || *at == '\\') {
            return at;
        }
        at++;
    }
    while (at < end && *at != '"' && *at != '\\') {
        at++;
    }
    return at;
}

/* From an opening quote to behind the closing one. */
static const char *skip_string(const char *at, const char *end)
{
    at++;
    while (at < end) {
        at = find_mark(at, end);
        if (at == end || *at == '"') {
            break;
        }
        at += end - at < 2 ? 1 : 2; /* an escape; what follows its second byte is plain */
    }
    return at < end ? at + 1 : end;
}

/* From an opening bracket to behind the one that closes it. */
static const char *skip_nested(const char *at, const char *end)
{
    size_t depth = 0;

    while (at < end) {
        char c = *at;

        if (c == '"') {
            at = skip_string(at, end);
            continue;
        }
        at++;
        if (c == '{' || c == '[') {
            depth++;
        } else if ((c == '}' || c == ']') && --depth == 0) {
            return at;
        }
    }
    return end;
}

static const char *skip_value(const char *at, const char *end)
{
    if (*at == '"') {
        return skip_string(at, end);
    }
    if (*at == '{' || *at == '[') {
        return skip_nested(at, end);
    }
    while (at < end && *at != ',' && *at != '}' && *at != ']' && !is_space(*at)) {
        at++;
    }
    return at;
}

/* The value that the rest begins with; none at its end and at a closing bracket. */
static bool take(struct slice *rest, struct slice *ret_value)
{
    const char *end = rest->ptr + rest->len;
    const char *at = skip_between(rest->ptr, end);

    *rest = (struct slice){at, (size_t)(end - at)};
    if (at == end || *at == '}' || *at == ']') {
        return false;
    }
    const char *after = skip_value(at, end);

    *ret_value = (struct slice){at, (size_t)(after - at)};
    *rest = (struct slice){after, (size_t)(end - after)};
    return after > at;
}

static struct slice inside(struct slice value)
{
    return value.len < 2 ? SLICE("") : (struct slice){value.ptr + 1, value.len - 2};
}

/* Which of the names the member has; their count: none. Hardly any name is written with escapes. */
static size_t find_name(struct slice member, const struct t3_wanted *wanted)
{
    struct slice plain = inside(member);
    bool escaped = memchr(plain.ptr, '\\', plain.len) != NULL;
    size_t i = 0;

    while (i < wanted->count && !(escaped ? json_string_equal(member, wanted->names[i])
                                          : slice_equal(plain, wanted->names[i]))) {
        i++;
    }
    return i;
}

/* Reads an object from its opening bracket on, in passing. Returns where it ends. */
static const char *read_members(const char *at, const char *end, const struct t3_wanted *wanted,
                                struct slice *ret_values, bool *ret_good)
{
    struct slice rest = {at + 1, (size_t)(end - at) - 1};
    struct slice member;
    struct slice value;

    for (size_t i = 0; i < wanted->count; i++) {
        ret_values[i] = (struct slice){NULL, 0};
    }
    *ret_good = true;
    while (take(&rest, &member) && take(&rest, &value)) {
        size_t i = find_name(member, wanted);

        if (i < wanted->count) {
            *ret_good = *ret_good && ret_values[i].ptr == NULL;
            ret_values[i] = value;
        }
    }
    return rest.len > 0 ? rest.ptr + 1 : end;
}

bool t3_fields_read(struct slice object, const struct t3_wanted *wanted, struct slice *ret_values)
{
    bool good = false;

    if (object.len > 0 && json_kind(object) == JSON_OBJECT) {
        (void)read_members(object.ptr, object.ptr + object.len, wanted, ret_values, &good);
    }
    return good;
}

void t3_elements_begin(struct t3_elements *e, struct slice array)
{
    e->rest = array.len > 0 && json_kind(array) == JSON_ARRAY ? inside(array) : SLICE("");
}

bool t3_elements_next(struct t3_elements *e, struct slice *ret_value)
{
    return take(&e->rest, ret_value);
}

int t3_elements_read(struct t3_elements *e, const struct t3_wanted *wanted,
                     struct slice *ret_values, struct slice *ret_value)
{
    const char *end = e->rest.ptr + e->rest.len;
    const char *at = skip_between(e->rest.ptr, end);
    bool good;

    if (at == end || *at != '{') {
        return t3_elements_next(e, ret_value) ? -1 : 0;
    }
    const char *after = read_members(at, end, wanted, ret_values, &good);

    *ret_value = (struct slice){at, (size_t)(after - at)};
    e->rest = (struct slice){after, (size_t)(end - after)};
    return good ? 1 : -1;
}

bool t3_field_given(struct slice value)
{
    return value.ptr != NULL && json_kind(value) != JSON_NULL;
}

bool t3_field_null(struct slice value)
{
    return value.ptr != NULL && json_kind(value) == JSON_NULL;
}

bool t3_field_string(struct slice value)
{
    return value.ptr != NULL && json_kind(value) == JSON_STRING;
}

bool t3_field_array(struct slice value)
{
    return value.ptr != NULL && json_kind(value) == JSON_ARRAY;
}

bool t3_field_id(struct slice value)
{
    size_t len = 0;

    return t3_field_string(value) && json_string_len(value, &len) == 0 && len > 0 &&
           len <= T3_ID_BYTES_MAX;
}
