/* What a scoped client makes of whatever answers in the place of the API: the input once as the
 * body of a refusal, once as a page of entries, and, line by line, as entries that an observer
 * sees; an empty line is the end of its backfill. */
#include "client/scoped_page.c"

#include <assert.h>

#include "base/utf8.h"
#include "client/settle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A text that came from outside ends, and is one line that a terminal shows as it is. */
static void check_shown(const char *text, size_t size)
{
    size_t len = strnlen(text, size);

    assert(len < size);
    assert(utf8_valid((struct slice){text, len}));
    for (size_t i = 0; i < len; i++) {
        assert(utf8_control((struct slice){text + i, len - i}) == 0);
    }
}

static void check_refusal(struct slice body)
{
    struct refusal r;

    refusal_read(body, &r);
    check_shown(r.code, sizeof(r.code));
    check_shown(r.message, sizeof(r.message));
    check_shown(r.suggestion, sizeof(r.suggestion));
    check_shown(r.field, sizeof(r.field));
    assert(r.present == (r.code[0] != '\0'));
}

static void check_entry(const struct scoped_entry *entry, struct slice text)
{
    assert(entry->json >= text.ptr && entry->json + entry->json_len <= text.ptr + text.len);
    assert(entry->payload_len == 0 ||
           (entry->payload > entry->json &&
            entry->payload + entry->payload_len < entry->json + entry->json_len));
    assert(utf8_valid(slice_of(entry->id)));
    assert(utf8_valid(slice_of(entry->author_id)));
    assert(utf8_valid(slice_of(entry->type)));
    assert(entry->type[0] == '\0' || entry->payload_len > 0);
}

static void check_page(struct slice body)
{
    struct scoped_page page = {.entries = NULL};
    char *copy = malloc(body.len + 1);

    assert(copy != NULL);
    memcpy(copy, body.ptr, body.len);
    copy[body.len] = '\0';
    page.answer = (struct scoped_answer){.body = copy, .len = body.len};
    if (read_page(&page, NULL) == STREAM_OK) {
        assert(page.up_to_date || page.next_after[0] != '\0');
        for (size_t i = 0; i < page.count; i++) {
            check_entry(&page.entries[i], (struct slice){copy, body.len});
        }
    }
    scoped_page_finish(&page);
}

static void check_observer(struct slice text, const char *trigger)
{
    struct settle s;
    struct scoped_entry entry;
    struct slice line;

    settle_init(&s, trigger);
    while (slice_split(&text, '\n', &line)) {
        if (line.len == 0) {
            const struct settle_end *end = settle_backfilled(&s);

            assert(end == NULL || end->outcome <= SCOPED_SKIPPED);
        } else if (scoped_entry_read(line.ptr, line.len, &entry) == STREAM_OK) {
            check_entry(&entry, line);
            if (settle_take(&s, &entry)) {
                assert(s.end.outcome <= SCOPED_SKIPPED);
                assert(strcmp(s.end.reason, "") == 0 || utf8_valid(slice_of(s.end.reason)));
            }
        }
        assert(s.open_count <= SETTLE_OPEN_MAX);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = {(const char *)data, size};

    if (size == 0) {
        return 0;
    }
    check_refusal(text);
    check_page(text);
    check_observer(text, NULL);
    check_observer(text, "c1");
    return 0;
}
