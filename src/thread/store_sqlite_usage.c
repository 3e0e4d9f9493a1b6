/* Usage in SQLite. Money is kept in billionths of a dollar: whole numbers add up the same in any
 * order. */
#include "thread/store_usage.h"

#include <math.h>

#include "thread/store_sqlite.h"

#define NUSD_PER_USD 1e9

static const char usage_add[] =
    "INSERT INTO usage_events (house_id, agent_id, thread_id, entry_id, trace_id, capability, seam,"
    " key_source, model, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,"
    " cost_nusd, created_at)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)"
    " ON CONFLICT (thread_id, entry_id) WHERE entry_id IS NOT NULL DO NOTHING";

#define SUMS                                                              \
    " coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0),"   \
    " coalesce(sum(cache_read_tokens), 0),"                               \
    " coalesce(sum(cache_write_tokens), 0), coalesce(sum(cost_nusd), 0)," \
    " coalesce(sum(events), 0) FROM usage_totals WHERE "
#define MOST_FIRST " ORDER BY sum(cost_nusd) DESC, sum(events) DESC, "

/* The three sums of one scope. */
struct scope {
    const char *total;
    const char *by_agent;
    const char *by_model;
};

#define SCOPE(name, column)                                                                \
    static const char name##_total[] = "SELECT NULL," SUMS column " = ?1";                 \
    static const char name##_by_agent[] = "SELECT nullif(agent_id, '')," SUMS column       \
                                          " = ?1 GROUP BY agent_id" MOST_FIRST "agent_id"; \
    static const char name##_by_model[] = "SELECT nullif(model, '')," SUMS column          \
                                          " = ?1 GROUP BY model" MOST_FIRST "model";       \
    static const struct scope name = {name##_total, name##_by_agent, name##_by_model}

SCOPE(of_thread, "thread_id");
SCOPE(of_house, "house_id");

static bool good(const struct usage_record *event)
{
    const int64_t tokens[] = {event->input_tokens, event->output_tokens, event->cache_read_tokens,
                              event->cache_write_tokens};
    for (size_t i = 0; i < ARRAY_COUNT(tokens); i++) {
        if (tokens[i] < 0 || tokens[i] > STORE_TOKENS_MAX) {
            return false;
        }
    }
    return event->cost_usd >= 0 && event->cost_usd <= STORE_COST_USD_MAX; /* and no NaN */
}

static int64_t add(struct txn *t, const struct usage_record *event)
{
    if (!good(event)) {
        txn_refuse(t, ERR_INVALID, "tokens and cost must be between 0 and %lld and %.0f USD",
                   (long long)STORE_TOKENS_MAX, STORE_COST_USD_MAX);
        return 0;
    }
    int64_t cost = llround(event->cost_usd * NUSD_PER_USD);
    return txn_run(t, usage_add,
                   PARAMS(T(event->house_id), T(event->agent_id), T(event->thread_id),
                          T(event->entry_id), T(event->trace_id), T(event->capability),
                          T(event->seam), T(event->key_source), T(event->model),
                          N(event->input_tokens), N(event->output_tokens),
                          N(event->cache_read_tokens), N(event->cache_write_tokens), N(cost),
                          N(event->created_ms)));
}

int store_usage_add(struct thread_store *s, const struct usage_record *events, size_t count,
                    size_t *ret_added, struct errmsg *msg)
{
    struct txn t;
    size_t added = 0;
    store_write(&t, s, NULL, msg);
    for (size_t i = 0; i < count; i++) {
        added += (size_t)add(&t, &events[i]);
    }
    int code = store_end(&t, s);
    if (code == 0) {
        *ret_added = added;
    }
    return code;
}

static void read_total(struct txn *t, sqlite3_stmt *query, struct usage_total *ret_total)
{
    *ret_total = (struct usage_total){
        .id = txn_text(t, query, 0),
        .input_tokens = sqlite3_column_int64(query, 1),
        .output_tokens = sqlite3_column_int64(query, 2),
        .cache_read_tokens = sqlite3_column_int64(query, 3),
        .cache_write_tokens = sqlite3_column_int64(query, 4),
        .cost_usd = (double)sqlite3_column_int64(query, 5) / NUSD_PER_USD,
        .events = sqlite3_column_int64(query, 6),
    };
}

/* All groups. The array doubles; what it grew out of stays in the arena until that goes. */
static struct usage_total *read_groups(struct txn *t, sqlite3_stmt *query, size_t *ret_count)
{
    size_t count = 0;
    size_t room = 8;
    struct usage_total *groups = txn_array(t, room, sizeof(*groups));
    while (txn_step(t, query)) {
        if (count == room) {
            struct usage_total *more = txn_array(t, room * 2, sizeof(*groups));
            if (!more) {
                break;
            }
            memcpy(more, groups, room * sizeof(*groups));
            groups = more;
            room *= 2;
        }
        read_total(t, query, &groups[count++]);
    }
    *ret_count = count;
    return groups;
}

static int sum(struct thread_store *s, const struct scope *scope, struct slice id,
               struct arena *arena, struct usage_sum *ret_sum, struct errmsg *msg)
{
    struct txn t;
    struct usage_sum result = {0};
    store_read(&t, s, arena, msg);
    sqlite3_stmt *query = txn_query(&t, scope->total, PARAMS(T(id)));
    while (txn_step(&t, query)) {
        read_total(&t, query, &result.total);
    }
    query = txn_query(&t, scope->by_agent, PARAMS(T(id)));
    result.by_agent = read_groups(&t, query, &result.agent_count);
    query = txn_query(&t, scope->by_model, PARAMS(T(id)));
    result.by_model = read_groups(&t, query, &result.model_count);
    int code = store_end(&t, s);
    if (code == 0) {
        *ret_sum = result;
    }
    return code;
}

int store_usage_thread(struct thread_store *s, struct slice thread_id, struct arena *arena,
                       struct usage_sum *ret_sum, struct errmsg *msg)
{
    return sum(s, &of_thread, thread_id, arena, ret_sum, msg);
}

int store_usage_house(struct thread_store *s, struct slice house_id, struct arena *arena,
                      struct usage_sum *ret_sum, struct errmsg *msg)
{
    return sum(s, &of_house, house_id, arena, ret_sum, msg);
}
