/* What was spent: events that are only ever added. See store.h for what holds for all. */
#ifndef ARBE_THREAD_STORE_USAGE_H
#define ARBE_THREAD_STORE_USAGE_H

#include "thread/store.h"

/* Of one event; sums of them have room for more than anybody spends. */
#define STORE_COST_USD_MAX 1e6
#define STORE_TOKENS_MAX   1000000000000

/* All texts but house_id and capability may be absent. Counts and costs that are negative, above
 * those or no number are ERR_INVALID. */
struct usage_record {
    struct slice house_id;
    struct slice agent_id;
    struct slice thread_id;
    struct slice entry_id; /* with thread_id: an event is added once; absent: always */
    struct slice trace_id;
    struct slice capability; /* llm, sandbox, … */
    struct slice seam;       /* reply, gate, … */
    struct slice key_source; /* server, house, … */
    struct slice model;
    int64_t input_tokens;
    int64_t output_tokens;
    int64_t cache_read_tokens;
    int64_t cache_write_tokens;
    double cost_usd; /* kept in billionths, so that sums are exact */
    int64_t created_ms;
};

struct usage_total {
    struct slice id; /* agent or model; absent: of none, or of all */
    int64_t input_tokens;
    int64_t output_tokens;
    int64_t cache_read_tokens;
    int64_t cache_write_tokens;
    double cost_usd;
    int64_t events;
};

/* Sums of one moment, with what was spent most first; the arrays live in the arena. */
struct usage_sum {
    struct usage_total total;
    struct usage_total *by_agent;
    size_t agent_count;
    struct usage_total *by_model;
    size_t model_count;
};

/* Adds events; those that were added before are passed over. ret_added counts the others. */
int store_usage_add(struct thread_store *s, const struct usage_record *events, size_t count,
                    size_t *ret_added, struct errmsg *msg) MUST_USE;

/* The spend of a thread, from sums that are kept; all zero where there is none. */
int store_usage_thread(struct thread_store *s, struct slice thread_id, struct arena *arena,
                       struct usage_sum *ret_sum, struct errmsg *msg) MUST_USE;

/* The spend of a house, its deleted threads included. */
int store_usage_house(struct thread_store *s, struct slice house_id, struct arena *arena,
                      struct usage_sum *ret_sum, struct errmsg *msg) MUST_USE;

#endif
