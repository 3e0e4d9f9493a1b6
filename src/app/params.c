/* Parameters are few: they are looked through one by one. */
#include "app/params.h"

#include "base/number.h"
#include "base/utf8.h"
#include "http/request.h"

#include <stdarg.h>
#include <stdio.h>

#define TOLD_BYTES_MAX 60u /* of a name, in a sentence */

static void refuse(struct params *p, const char *name, const char *format, ...) PRINTF_LIKE(3, 4);

static void refuse(struct params *p, const char *name, const char *format, ...)
{
    char sentence[160];
    va_list args;

    if (p->failed) {
        return;
    }
    p->failed = true;
    va_start(args, format);
    (void)vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    (void)api_error_set(p->error, API_INVALID_INPUT, "%s %s", name, sentence);
    (void)api_error_set_field(p->error, "%s", name);
}

static struct slice decode(struct params *p, struct slice raw, struct arena *memory)
{
    char *out = arena_try_alloc(memory, raw.len + 1);
    long len = out == NULL ? ERR_NOMEM : http_percent_decode(raw, out);

    if (len < 0) {
        refuse(p, "the query", "%s",
               out == NULL ? "is too long" : "has a '%' without two hex digits");
        return (struct slice){NULL, 0};
    }
    return (struct slice){out, (size_t)len};
}

void params_begin(struct params *p, struct slice query, struct arena *memory,
                  struct api_error *error)
{
    struct slice name;
    struct slice value;

    *p = (struct params){.error = error};
    while (!p->failed && http_query_next(&query, &name, &value)) {
        if (p->count == PARAMS_MAX) {
            refuse(p, "the query", "has more than %u parameters", PARAMS_MAX);
            return;
        }
        struct slice key = decode(p, name, memory);

        if (!p->failed && !utf8_valid(key)) {
            refuse(p, "the query", "must be UTF-8");
        }
        for (size_t i = 0; i < p->count && !p->failed; i++) {
            if (slice_equal(p->names[i], key)) {
                refuse(p, "a parameter", "may be given once only");
            }
        }
        p->names[p->count] = key;
        p->values[p->count++] = decode(p, value, memory);
    }
}

static struct slice find(struct params *p, const char *name)
{
    for (size_t i = 0; i < p->count && !p->failed; i++) {
        if (slice_equal(p->names[i], slice_of(name))) {
            p->asked[i] = true;
            return p->values[i].ptr == NULL ? SLICE("") : p->values[i];
        }
    }
    return (struct slice){NULL, 0};
}

struct slice params_text(struct params *p, const char *name, size_t bytes_max)
{
    struct slice value = find(p, name);

    if (value.ptr == NULL) {
        return value;
    }
    if (value.len == 0 || value.len > bytes_max) {
        refuse(p, name, "must have 1 to %zu bytes", bytes_max);
    } else if (!utf8_valid(value)) {
        refuse(p, name, "must be UTF-8");
    }
    return value;
}

uint64_t params_number(struct params *p, const char *name, uint64_t least, uint64_t most,
                       uint64_t otherwise)
{
    struct slice value = find(p, name);
    uint64_t number = 0;

    if (value.ptr == NULL) {
        return otherwise;
    }
    if (!number_parse_u64(value, most, false, &number) || number < least) {
        refuse(p, name, "must be a number from %llu to %llu", (unsigned long long)least,
               (unsigned long long)most);
    }
    return number;
}

bool params_flag(struct params *p, const char *name)
{
    struct slice value = find(p, name);
    bool is_set = slice_equal(value, SLICE("1"));

    if (value.ptr != NULL && !is_set && !slice_equal(value, SLICE("0"))) {
        refuse(p, name, "must be 0 or 1");
    }
    return is_set;
}

int params_end(struct params *p)
{
    for (size_t i = 0; i < p->count && !p->failed; i++) {
        if (!p->asked[i]) {
            struct slice told = utf8_cut(p->names[i], TOLD_BYTES_MAX);

            p->failed = true;
            (void)api_error_set(p->error, API_INVALID_INPUT,
                                "there is no parameter %.*s here; docs/api.md lists them",
                                (int)told.len, told.ptr);
            (void)api_error_set_field(p->error, "%.*s", (int)p->names[i].len, p->names[i].ptr);
        }
    }
    return p->failed ? -1 : 0;
}
