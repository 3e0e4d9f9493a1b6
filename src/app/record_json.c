/* What is absent is null, so that every object of a kind has the same members. */
#include "app/record_json.h"

#include "base/json.h"
#include "thread/status.h"

static void put_name(struct buf *out, const char *name)
{
    if (out->len > 0 && out->ptr[out->len - 1] != '{') {
        buf_append_char(out, ',');
    }
    buf_append_format(out, "\"%s\":", name);
}

void json_put_text(struct buf *out, const char *name, struct slice text)
{
    put_name(out, name);
    if (text.ptr == NULL) {
        buf_append(out, SLICE("null"));
    } else {
        json_append_string(out, text);
    }
}

void json_put_number(struct buf *out, const char *name, int64_t number)
{
    put_name(out, name);
    buf_append_format(out, "%lld", (long long)number);
}

void json_put_time(struct buf *out, const char *name, int64_t ms)
{
    if (ms == 0) {
        json_put_text(out, name, (struct slice){NULL, 0});
    } else {
        json_put_number(out, name, ms);
    }
}

static struct slice kind_text(enum agent_kind kind)
{
    return kind == AGENT_BOT ? SLICE("bot") : SLICE("human");
}

void json_put_agent(struct buf *out, const struct agent_record *agent)
{
    buf_append_char(out, '{');
    json_put_text(out, "id", agent->id);
    json_put_text(out, "kind", kind_text(agent->kind));
    json_put_text(out, "name", agent->name);
    json_put_text(out, "handle", agent->handle);
    json_put_text(out, "description", agent->description);
    json_put_text(out, "model", agent->model);
    json_put_text(out, "systemPrompt", agent->system_prompt);
    json_put_text(out, "createdBy", agent->created_by);
    json_put_time(out, "createdAt", agent->created_ms);
    json_put_time(out, "deletedAt", agent->deleted_ms);
    buf_append_char(out, '}');
}

void json_put_key(struct buf *out, const struct key_record *key)
{
    buf_append_char(out, '{');
    json_put_text(out, "id", key->id);
    json_put_text(out, "agentId", key->agent_id);
    json_put_text(out, "name", key->name);
    json_put_time(out, "createdAt", key->created_ms);
    json_put_time(out, "lastUsedAt", key->last_used_ms);
    json_put_time(out, "revokedAt", key->revoked_ms);
    buf_append_char(out, '}');
}

void json_put_house(struct buf *out, const struct house_record *house)
{
    buf_append_char(out, '{');
    json_put_text(out, "id", house->id);
    json_put_text(out, "name", house->name);
    json_put_text(out, "primaryThreadId", house->primary_thread_id);
    json_put_text(out, "role", role_text(house->role));
    json_put_time(out, "createdAt", house->created_ms);
    buf_append_char(out, '}');
}

void json_put_member(struct buf *out, const struct member_record *member)
{
    buf_append_char(out, '{');
    json_put_text(out, "agentId", member->agent_id);
    json_put_text(out, "role", role_text(member->role));
    json_put_text(out, "kind", kind_text(member->kind));
    json_put_text(out, "name", member->name);
    json_put_text(out, "handle", member->handle);
    json_put_time(out, "addedAt", member->added_ms);
    buf_append_char(out, '}');
}

static void put_parent(struct buf *out, const struct thread_record *thread)
{
    static const char *const kinds[] = {
        [PARENT_HOUSE] = "house", [PARENT_AGENT] = "agent", [PARENT_THREAD] = "thread"};

    put_name(out, "parent");
    buf_append_char(out, '{');
    json_put_text(out, "kind", slice_of(kinds[thread->parent_kind]));
    json_put_text(out, "id", thread->parent_id);
    buf_append_char(out, '}');
}

void json_put_thread(struct buf *out, const struct thread_record *thread, int64_t ahead_ts)
{
    int64_t last = thread->last_entry_ts > ahead_ts ? thread->last_entry_ts : ahead_ts;

    buf_append_char(out, '{');
    json_put_text(out, "id", thread->id);
    json_put_text(out, "houseId", thread->house_id);
    put_parent(out, thread);
    json_put_text(out, "name", thread->name);
    json_put_time(out, "pinnedAt", thread->pinned_ms);
    put_name(out, "tags");
    buf_append_char(out, '[');
    for (size_t i = 0; i < thread->tag_count; i++) {
        if (i > 0) {
            buf_append_char(out, ',');
        }
        json_append_string(out, thread->tags[i]);
    }
    buf_append_char(out, ']');
    json_put_text(out, "status", slice_of(status_text(thread->status)));
    json_put_text(out, "environmentId", thread->environment_id);
    json_put_time(out, "lastEntryTs", last);
    json_put_text(out, "createdBy", thread->created_by);
    json_put_time(out, "createdAt", thread->created_ms);
    buf_append_char(out, '}');
}

static void put_total(struct buf *out, const char *id_name, const struct usage_total *total)
{
    buf_append_char(out, '{');
    if (id_name != NULL) {
        json_put_text(out, id_name, total->id);
    }
    json_put_number(out, "inputTokens", total->input_tokens);
    json_put_number(out, "outputTokens", total->output_tokens);
    json_put_number(out, "cacheReadTokens", total->cache_read_tokens);
    json_put_number(out, "cacheWriteTokens", total->cache_write_tokens);
    put_name(out, "costUsd");
    buf_append_format(out, "%.9f", total->cost_usd);
    json_put_number(out, "events", total->events);
    buf_append_char(out, '}');
}

static void put_totals(struct buf *out, const char *name, const char *id_name,
                       const struct usage_total *totals, size_t count)
{
    put_name(out, name);
    buf_append_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            buf_append_char(out, ',');
        }
        put_total(out, id_name, &totals[i]);
    }
    buf_append_char(out, ']');
}

void json_put_usage(struct buf *out, const struct usage_sum *sum)
{
    buf_append_char(out, '{');
    put_name(out, "total");
    put_total(out, NULL, &sum->total);
    put_totals(out, "byAgent", "agentId", sum->by_agent, sum->agent_count);
    put_totals(out, "byModel", "model", sum->by_model, sum->model_count);
    buf_append_char(out, '}');
}
