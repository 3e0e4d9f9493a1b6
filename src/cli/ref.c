/* A reference is meant in every way it can be read: whoever has a name that is the beginning of
 * another one's id is asked which. */
#include "cli/ref.h"

#include "base/uuid.h"

bool ref_is_id(struct slice text)
{
    struct uuid uuid;

    return uuid_parse(text, &uuid);
}

bool ref_is_prefix(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == '-')) {
            return false;
        }
    }
    return text.len >= REF_PREFIX_BYTES_MIN;
}

void ref_begin(struct ref_search *s, struct slice text, struct arena *memory)
{
    *s = (struct ref_search){.text = text, .memory = memory};
}

static bool is_meant(struct slice text, const struct ref_candidate *candidate)
{
    if (text.len == 0) {
        return false;
    }
    if (text.ptr[0] == '@') {
        return slice_equal((struct slice){text.ptr + 1, text.len - 1}, candidate->handle) &&
               candidate->handle.len > 0;
    }
    return slice_equal(text, candidate->name) ||
           (ref_is_prefix(text) && slice_starts_with(candidate->id, text));
}

static bool copy(struct ref_search *s, struct slice *text)
{
    const char *kept = arena_try_copy(s->memory, *text);

    text->ptr = kept;
    return kept != NULL;
}

void ref_offer(struct ref_search *s, const struct ref_candidate *candidate)
{
    struct ref_candidate kept = *candidate;

    if (s->failed || !is_meant(s->text, candidate)) {
        return;
    }
    for (size_t i = 0; i < s->count && i < REF_FOUND_MAX; i++) {
        if (slice_equal(s->found[i].id, candidate->id)) {
            return;
        }
    }
    if (s->count < REF_FOUND_MAX) {
        if (!copy(s, &kept.id) || !copy(s, &kept.name) || !copy(s, &kept.handle)) {
            s->failed = true;
            return;
        }
        s->found[s->count] = kept;
    }
    s->count++;
}
