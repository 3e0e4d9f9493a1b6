/* Any bytes as an entry: posted, stored, and as a page of a log. What is taken keeps its payload,
 * and is the same when it is written and read again. */
#include "thread/entry.h"

#include "base/err.h"
#include "base/json_value.h"
#include "base/limits.h"
#include "base/utf8.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_inside(struct slice part, struct slice whole)
{
    return part.ptr >= whole.ptr && part.ptr + part.len <= whole.ptr + whole.len;
}

static void check_told(int code, const struct api_error *e)
{
    assert(code == 0 || code == -1);
    assert((code == 0) == (e->message[0] == '\0'));
    assert(utf8_valid(slice_of(e->message)) && utf8_valid(slice_of(e->field)));
}

static void check_posted(struct slice text)
{
    struct api_error e = {.code = API_INTERNAL};
    struct entry_posted posted;
    struct arena arena;
    arena_init(&arena, 1u << 20);
    int code = entry_parse_posted(text, &arena, &posted, &e);
    check_told(code, &e);
    if (code == 0) {
        assert(posted.id.len == 0 || entry_id_good(posted.id));
        assert(posted.author_id.len <= ENTRY_AUTHOR_BYTES_MAX && utf8_valid(posted.author_id));
        assert(is_inside(posted.payload, text) && json_kind(posted.payload) == JSON_OBJECT);
    } else {
        assert(e.code == API_MALFORMED_JSON || e.code == API_INVALID_INPUT);
    }
    arena_finish(&arena);
}

/* An entry that was read, written and read again. */
static void check_again(const struct entry *entry)
{
    struct entry again;
    struct buf out;
    buf_init(&out, 64u << 20);
    entry_format(&out, entry);
    assert(!out.failed);
    assert(entry_parse(buf_slice(&out), &again, NULL) == 0);
    assert(slice_equal(again.id, entry->id) && again.ts == entry->ts);
    assert(slice_equal(again.author_id, entry->author_id));
    assert(slice_equal(again.payload, entry->payload));
    buf_finish(&out);
}

static int on_entry(void *context, const struct entry *entry, size_t index)
{
    size_t *next = context;
    assert(index >= *next);
    *next = index + 1;
    check_again(entry);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = size == 0 ? SLICE("") : (struct slice){(const char *)data, size};
    struct api_error e = {.code = API_INTERNAL};
    struct entry entry;
    size_t next = 0;
    check_posted(text);
    int code = entry_parse(text, &entry, &e);
    check_told(code, &e);
    if (code == 0) {
        assert(is_inside(entry.id, text) && is_inside(entry.payload, text));
        check_again(&entry);
    }
    int walked = entry_each(text, on_entry, &next);
    assert(walked == 0 || walked == ERR_INVALID);
    assert(code != 0 || next == 1);
    if (entry_id_good(text)) {
        char tombstone[ENTRY_ID_BYTES];
        size_t len = entry_tombstone_id(text, tombstone);
        assert(entry_id_possible((struct slice){tombstone, len}));
    }
    return 0;
}
