/* Deletions are few: their ids are looked through one by one. */
#include "cli/backlog.h"

#include "cli/record.h"
#include "thread/payload.h"

#include <stdlib.h>

/* Makes room for one more in an array that doubles; false without memory. */
static bool make_room(void **array, size_t count, size_t *room, size_t size)
{
    size_t wanted = *room == 0 ? 64 : 2 * *room;
    void *grown;

    if (count < *room) {
        return true;
    }
    grown = realloc(*array, wanted * size);
    if (grown == NULL) {
        return false;
    }
    *array = grown;
    *room = wanted;
    return true;
}

/* Remembers whom a tombstone deletes; without memory it is shown as if nobody had deleted it. */
static void note_deletion(struct backlog *b, const struct scoped_entry *entry)
{
    const struct slice payload = {entry->payload, entry->payload_len};
    void *array = b->deleted;
    struct arena memory;

    if (payload_type_parse(slice_of(entry->type)) != PAYLOAD_ENTRY_DELETED ||
        !make_room(&array, b->deleted_count, &b->deleted_room, sizeof(b->deleted[0]))) {
        return;
    }
    b->deleted = array;
    arena_init(&memory, SCOPED_ID_BYTES);
    struct slice id = record_text(payload, "entryId", &memory);

    memset(b->deleted[b->deleted_count], 0, sizeof(b->deleted[0]));
    if (id.len > 0 && id.len < sizeof(b->deleted[0])) {
        memcpy(b->deleted[b->deleted_count++], id.ptr, id.len);
    }
    arena_finish(&memory);
}

bool backlog_add(struct backlog *b, const struct scoped_entry *entry)
{
    void *array = b->entries;

    if (b->bytes + entry->json_len > BACKLOG_BYTES_MAX ||
        !make_room(&array, b->count, &b->room, sizeof(b->entries[0]))) {
        return false;
    }
    b->entries = array;
    char *copy = malloc(entry->json_len + 1);

    if (copy == NULL) {
        return false;
    }
    memcpy(copy, entry->json, entry->json_len);
    b->entries[b->count++] = (struct slice){copy, entry->json_len};
    b->bytes += entry->json_len;
    note_deletion(b, entry);
    return true;
}

static bool is_deleted(const struct backlog *b, const char *id)
{
    for (size_t i = 0; i < b->deleted_count; i++) {
        if (strcmp(b->deleted[i], id) == 0) {
            return true;
        }
    }
    return false;
}

void backlog_release(struct backlog *b, backlog_fn each, void *context)
{
    for (size_t i = 0; i < b->count; i++) {
        struct scoped_entry entry;

        if (each != NULL &&
            scoped_entry_read(b->entries[i].ptr, b->entries[i].len, &entry) == STREAM_OK) {
            each(context, &entry, is_deleted(b, entry.id));
        }
        free((void *)(uintptr_t)b->entries[i].ptr);
    }
    b->count = 0;
    b->bytes = 0;
}

void backlog_finish(struct backlog *b)
{
    backlog_release(b, NULL, NULL);
    free(b->entries);
    free(b->deleted);
    *b = (struct backlog){.entries = NULL};
}
