/* Each entry is parsed again from what is stored, so that live writing and catching up after a
 * crash are one path. */
#include "app/spend.h"

#include "app/app.h"
#include "base/limits.h"
#include "thread/payload.h"
#include "thread/store_usage.h"

#include <stdio.h>

#define MEMORY_BYTES_MAX (256ull * KIB)

/* "provider/model", in the arena; absent when neither is told. */
static struct slice model_ref(const struct payload_usage *usage, struct arena *memory)
{
    size_t size = usage->provider.len + usage->model.len + 2;
    char *text = arena_try_alloc(memory, size);

    if (text == NULL || usage->model.len == 0) {
        return (struct slice){NULL, 0};
    }
    int len = snprintf(text, size, "%.*s%s%.*s", (int)usage->provider.len, usage->provider.ptr,
                       usage->provider.len > 0 ? "/" : "", (int)usage->model.len, usage->model.ptr);

    return (struct slice){text, (size_t)len};
}

/* Fills a record; false when the entry tells of no spend. */
static bool read_usage(struct slice json, struct arena *memory, struct usage_record *ret)
{
    struct entry entry;
    enum payload_type type = PAYLOAD_UNKNOWN;
    struct payload_usage usage;

    if (entry_parse(json, &entry, NULL) != 0 || payload_type_of(entry.payload, &type) != 0 ||
        payload_usage(entry.payload, type, memory, &usage) != 1) {
        return false;
    }
    ret->agent_id = entry.author_id.len > 0 ? entry.author_id : (struct slice){NULL, 0};
    ret->entry_id = entry.id;
    ret->trace_id = usage.invocation_id.len > 0 ? usage.invocation_id : (struct slice){NULL, 0};
    ret->capability = SLICE("llm");
    ret->seam = type == PAYLOAD_PI_ASSISTANT ? SLICE("reply") : SLICE("compaction");
    ret->key_source = SLICE("sandbox");
    ret->model = model_ref(&usage, memory);
    ret->input_tokens = (int64_t)usage.input_tokens;
    ret->output_tokens = (int64_t)usage.output_tokens;
    ret->cache_read_tokens = (int64_t)usage.cache_read_tokens;
    ret->cache_write_tokens = (int64_t)usage.cache_write_tokens;
    ret->cost_usd = usage.cost_usd;
    ret->created_ms = entry.ts;
    return true;
}

void spend_record(struct app *app, struct slice house_id, struct slice thread_id,
                  const struct post_entry *entries, size_t count)
{
    struct errmsg msg = {{0}};
    size_t added = 0;

    for (size_t i = 0; i < count; i++) {
        struct usage_record record = {.house_id = house_id, .thread_id = thread_id};
        struct arena memory;

        arena_init(&memory, MEMORY_BYTES_MAX);
        if (read_usage(entries[i].json, &memory, &record) &&
            store_usage_add(app->store, &record, 1, &added, &msg) != 0) {
            logger_line(app->config.logger, LOGGER_ERROR,
                        "the spend of entry %.*s of thread %.*s was not recorded: %s",
                        (int)record.entry_id.len, record.entry_id.ptr, (int)thread_id.len,
                        thread_id.ptr, msg.text);
        }
        arena_finish(&memory);
    }
}

void spend_catch_up(struct app *app, struct slice thread_id, const struct post_entry *entry)
{
    struct thread_record thread;
    struct usage_record record = {.created_ms = 0};
    struct arena memory;
    struct errmsg msg = {{0}};

    arena_init(&memory, MEMORY_BYTES_MAX);
    /* Most entries tell of no spend: then the records need not be asked. */
    if (read_usage(entry->json, &memory, &record) &&
        store_thread_get(app->store, thread_id, &memory, &thread, &msg) == 0) {
        spend_record(app, thread.house_id, thread_id, entry, 1);
    }
    arena_finish(&memory);
}
