/* The list gives each metric its name, type and help; below it one function for each group writes
 * the samples, in the list's order. A metric without samples yet still shows that it exists. */
#include "serve/metrics.h"

#include "base/limits.h"
#include "base/version.h"

#include <assert.h>

/* Bounds of durations, in powers of two of microseconds: 32 us to 17 s, 1 ms to 537 s. */
#define SHORT_LOW  5u
#define SHORT_HIGH 24u
#define LONG_LOW   10u
#define LONG_HIGH  29u
/* Records of a batch: 1 to 16,384. */
#define RECORDS_LOW  0u
#define RECORDS_HIGH 14u

#define METRIC_LIST(X)                                                                            \
    X(BUILD, "arbe_build_info", "gauge", "The version that runs; always 1.")                      \
    X(REQUESTS, "arbe_http_requests_total", "counter", "Requests answered.")                      \
    X(REQUEST_BYTES, "arbe_http_request_body_bytes_total", "counter",                             \
      "Bytes of request bodies that came whole.")                                                 \
    X(RESPONSE_BYTES, "arbe_http_response_body_bytes_total", "counter",                           \
      "Bytes of response bodies queued for sending.")                                             \
    X(ERRORS, "arbe_errors_total", "counter", "Requests refused, by kind of error.")              \
    X(APPENDS, "arbe_append_duration_seconds", "histogram",                                       \
      "Time from an append's last byte to its answer; accepted ones only.")                       \
    X(CONNECTIONS, "arbe_connections", "gauge", "Connections open.")                              \
    X(CONNECTIONS_LIMIT, "arbe_connections_limit", "gauge",                                       \
      "Connections above which new ones are refused.")                                            \
    X(ACCEPTED, "arbe_connections_accepted_total", "counter", "Connections taken to be served.")  \
    X(REFUSED, "arbe_connections_refused_total", "counter", "Connections refused at the limit.")  \
    X(WAITERS, "arbe_waiters", "gauge", "Live readers, by mode.")                                 \
    X(WAITERS_LIMIT, "arbe_waiters_limit", "gauge",                                               \
      "Live readers above which new ones are refused; 0: any number.")                            \
    X(COMMITS, "arbe_log_commit_duration_seconds", "histogram",                                   \
      "Time to write and sync one batch of the log.")                                             \
    X(COMMIT_RECORDS, "arbe_log_commit_records", "histogram", "Records in one batch of the log.") \
    X(WRITTEN, "arbe_log_written_bytes_total", "counter", "Bytes of the log made durable.")       \
    X(LOG_FILES, "arbe_log_file_bytes", "gauge", "Bytes that the files of the log take.")         \
    X(LOG_FAILED, "arbe_log_failed", "gauge",                                                     \
      "1 when the log has failed and nothing is accepted until a restart.")                       \
    X(CHECKPOINTS, "arbe_checkpoint_duration_seconds", "histogram",                               \
      "Time of one checkpoint that succeeded.")                                                   \
    X(CHECKPOINT_FAILURES, "arbe_checkpoint_failures_total", "counter",                           \
      "Attempts at a checkpoint that failed.")                                                    \
    X(CHECKPOINT_FAILING, "arbe_checkpoint_failing", "gauge",                                     \
      "1 when the last checkpoint failed.")                                                       \
    X(COMPACTIONS, "arbe_compaction_duration_seconds", "histogram",                               \
      "Time of one round of compaction that moved or removed something.")                         \
    X(COMPACTION_FAILURES, "arbe_compaction_failures_total", "counter",                           \
      "Rounds of compaction that failed.")                                                        \
    X(COMPACTED, "arbe_compaction_moved_bytes_total", "counter",                                  \
      "Bytes of streams that compaction wrote anew.")                                             \
    X(PACKS, "arbe_packs", "gauge", "Pack files.")                                                \
    X(PACK_BYTES, "arbe_pack_bytes", "gauge", "Bytes of all pack files.")                         \
    X(PACK_LIVE_BYTES, "arbe_pack_live_bytes", "gauge",                                           \
      "Bytes of pack files that streams still need.")                                             \
    X(STREAMS, "arbe_streams", "gauge", "Streams, those included that are kept for forks.")       \
    X(STREAMS_LIMIT, "arbe_streams_limit", "gauge", "Streams that there may be; 0: any number.")  \
    X(STREAM_BYTES, "arbe_stream_bytes", "gauge", "Bytes that streams hold, as stored.")          \
    X(STREAM_BYTES_LIMIT, "arbe_stream_bytes_limit", "gauge",                                     \
      "Bytes that streams may hold; 0: any number.")                                              \
    X(STREAMS_LOADED, "arbe_streams_loaded", "gauge", "Streams in memory.")                       \
    X(STREAMS_EVICTED, "arbe_streams_evicted_total", "counter",                                   \
      "Streams that left memory, being idle.")                                                    \
    X(BUDGET, "arbe_budget_bytes", "gauge", "Bytes in use of each budget.")                       \
    X(BUDGET_LIMIT, "arbe_budget_limit_bytes", "gauge",                                           \
      "Bytes of each budget; where it is used up, requests wait or get 503.")                     \
    X(SUBSCRIPTIONS, "arbe_subscriptions", "gauge", "Subscriptions.")                             \
    X(LINKS, "arbe_subscription_links", "gauge", "Streams linked to subscriptions.")              \
    X(LEASES, "arbe_subscription_leases", "gauge", "Leases held by workers.")                     \
    X(QUEUE, "arbe_subscription_queue", "gauge",                                                  \
      "Requests and notices that wait for the thread of the subscriptions.")                      \
    X(WAKES, "arbe_subscription_wakes_total", "counter", "Wakes made.")                           \
    X(PENDING, "arbe_subscription_deliveries_pending", "gauge",                                   \
      "Webhooks being sent, and those that wait for a place.")                                    \
    X(DELIVERIES, "arbe_subscription_deliveries_total", "counter",                                \
      "Webhooks by result: answered 2xx, answered otherwise, not answered.")                      \
    X(EVENTS, "arbe_subscription_events_total", "counter",                                        \
      "Wake events by result: written, or failed and tried again.")                               \
    X(LEASES_EXPIRED, "arbe_subscription_leases_expired_total", "counter",                        \
      "Leases that ended by themselves.")                                                         \
    X(LINKS_REFUSED, "arbe_subscription_links_refused_total", "counter",                          \
      "Streams that matched a subscription that was full.")                                       \
    X(WEBHOOKS, "arbe_webhooks", "gauge",                                                         \
      "Webhooks at the sender: under way, or waiting for their turn.")                            \
    X(UNANSWERED, "arbe_webhooks_unanswered_total", "counter",                                    \
      "Webhooks without an answer, by reason.")                                                   \
    X(STARTED, "process_start_time_seconds", "gauge",                                             \
      "When the process started, in seconds since 1970.")                                         \
    X(CPU, "process_cpu_seconds_total", "counter", "Processor time, user and system.")            \
    X(RESIDENT, "process_resident_memory_bytes", "gauge", "Memory in use.")                       \
    X(VIRTUAL, "process_virtual_memory_bytes", "gauge", "Address space in use.")                  \
    X(THREADS, "process_threads", "gauge", "Threads.")                                            \
    X(FDS, "process_open_fds", "gauge", "Open file descriptors.")                                 \
    X(FDS_MAX, "process_max_fds", "gauge", "File descriptors that may be open.")

enum metric {
#define X(id, name, type, help) METRIC_##id,
    METRIC_LIST(X)
#undef X
    METRIC_COUNT
};

static void begin(struct exposition *e, enum metric metric)
{
    static const struct {
        const char *name;
        const char *type;
        const char *help;
    } metrics[METRIC_COUNT] = {
#define X(id, name, type, help) {name, type, help},
        METRIC_LIST(X)
#undef X
    };

    exposition_begin(e, metrics[metric].name, metrics[metric].type, metrics[metric].help);
}

static void put(struct exposition *e, enum metric metric, uint64_t value)
{
    begin(e, metric);
    exposition_u64(e, value);
}

static void put_durations(struct exposition *e, enum metric metric,
                          const struct histogram_totals *us, unsigned low, unsigned high)
{
    begin(e, metric);
    exposition_durations(e, us, low, high);
}

/* Only what has occurred: most methods never get most statuses. */
static void put_requests(struct exposition *e, const struct tally *t)
{
    begin(e, METRIC_REQUESTS);
    for (unsigned method = 0; method < HTTP_METHOD_COUNT; method++) {
        for (unsigned i = 0; i < HTTP_STATUS_COUNT; i++) {
            uint64_t count = counter_get(&t->requests[method][i]);

            if (count > 0) {
                exposition_labelled(e, count, "method=\"%s\",status=\"%d\"",
                                    http_method_name((enum http_method)method), http_status_at(i));
            }
        }
        uint64_t others = counter_get(&t->requests[method][HTTP_STATUS_COUNT]);

        if (others > 0) {
            exposition_labelled(e, others, "method=\"%s\",status=\"other\"",
                                http_method_name((enum http_method)method));
        }
    }
}

static void put_errors(struct exposition *e, const struct tally *t)
{
    begin(e, METRIC_ERRORS);
    for (int i = 0; i < ERR_INDEX_COUNT; i++) {
        exposition_labelled(e, counter_get(&t->errors[i]), "kind=\"%s\"", err_name(-1 - i));
    }
}

static void put_http(struct exposition *e, const struct metrics *m)
{
    struct histogram_totals appends = {0};

    histogram_add_to(&m->tally.append_us, &appends);
    put_requests(e, &m->tally);
    put(e, METRIC_REQUEST_BYTES, counter_get(&m->tally.request_bytes));
    put(e, METRIC_RESPONSE_BYTES, counter_get(&m->tally.response_bytes));
    put_errors(e, &m->tally);
    put_durations(e, METRIC_APPENDS, &appends, SHORT_LOW, SHORT_HIGH);
    put(e, METRIC_CONNECTIONS, m->connections);
    put(e, METRIC_CONNECTIONS_LIMIT, m->connections_max);
    put(e, METRIC_ACCEPTED, counter_get(&m->tally.accepted));
    put(e, METRIC_REFUSED, counter_get(&m->tally.refused));
    begin(e, METRIC_WAITERS);
    exposition_labelled(e, counter_get(&m->tally.long_polls), "mode=\"long_poll\"");
    exposition_labelled(e, counter_get(&m->tally.sse_streams), "mode=\"sse\"");
    put(e, METRIC_WAITERS_LIMIT, m->waiters_max);
}

static void put_log(struct exposition *e, const struct metrics *m)
{
    const struct wal_stats *log = &m->engine.store.log;

    put_durations(e, METRIC_COMMITS, &log->commit_us, SHORT_LOW, SHORT_HIGH);
    begin(e, METRIC_COMMIT_RECORDS);
    exposition_histogram(e, &log->commit_records, RECORDS_LOW, RECORDS_HIGH);
    put(e, METRIC_WRITTEN, log->written_bytes);
    put(e, METRIC_LOG_FILES, log->file_bytes);
    put(e, METRIC_LOG_FAILED, m->health.log_error != 0);
}

static void put_store(struct exposition *e, const struct metrics *m)
{
    const struct store_stats *store = &m->engine.store;

    put_durations(e, METRIC_CHECKPOINTS, &store->checkpoint_us, LONG_LOW, LONG_HIGH);
    put(e, METRIC_CHECKPOINT_FAILURES, store->checkpoint_failures);
    put(e, METRIC_CHECKPOINT_FAILING, m->health.checkpoint_error != 0);
    put_durations(e, METRIC_COMPACTIONS, &store->compaction_us, LONG_LOW, LONG_HIGH);
    put(e, METRIC_COMPACTION_FAILURES, store->compaction_failures);
    put(e, METRIC_COMPACTED, store->compacted_bytes);
    put(e, METRIC_PACKS, store->packs);
    put(e, METRIC_PACK_BYTES, store->pack_bytes);
    put(e, METRIC_PACK_LIVE_BYTES, store->pack_live_bytes);
    put(e, METRIC_STREAMS, m->engine.streams);
    put(e, METRIC_STREAMS_LIMIT, m->engine.streams_max);
    put(e, METRIC_STREAM_BYTES, m->engine.bytes);
    put(e, METRIC_STREAM_BYTES_LIMIT, m->engine.bytes_max);
    put(e, METRIC_STREAMS_LOADED, m->engine.streams_loaded);
    put(e, METRIC_STREAMS_EVICTED, m->engine.evicted);
}

/* How much of a thing there may be, and is. */
struct budget {
    const char *name;
    uint64_t used;
    uint64_t limit;
};

static void put_budgets(struct exposition *e, const struct metrics *m)
{
    const struct engine_stats *engine = &m->engine;
    const struct budget budgets[] = {
        {"bodies", m->body_bytes, m->body_bytes_max},
        {"staged", engine->store.log.staged_bytes, engine->staged_bytes_max},
        {"log", m->health.log_bytes, engine->log_bytes_max},
        {"hot", engine->hot_bytes, engine->hot_bytes_max},
        {"cache", engine->cache_bytes, engine->cache_bytes_max},
        {"notes", engine->note_bytes, NOTES_HOT_BYTES_MAX},
    };

    begin(e, METRIC_BUDGET);
    for (size_t i = 0; i < ARRAY_COUNT(budgets); i++) {
        exposition_labelled(e, budgets[i].used, "budget=\"%s\"", budgets[i].name);
    }
    begin(e, METRIC_BUDGET_LIMIT);
    for (size_t i = 0; i < ARRAY_COUNT(budgets); i++) {
        exposition_labelled(e, budgets[i].limit, "budget=\"%s\"", budgets[i].name);
    }
}

static void put_subscriptions(struct exposition *e, const struct subscriptions_stats *s)
{
    put(e, METRIC_SUBSCRIPTIONS, s->subscriptions);
    put(e, METRIC_LINKS, s->links);
    put(e, METRIC_LEASES, s->leases);
    put(e, METRIC_QUEUE, s->queue);
    put(e, METRIC_WAKES, s->wakes);
    begin(e, METRIC_PENDING);
    exposition_labelled(e, s->deliveries_active, "state=\"active\"");
    exposition_labelled(e, s->deliveries_waiting, "state=\"waiting\"");
    begin(e, METRIC_DELIVERIES);
    exposition_labelled(e, s->deliveries_ok, "result=\"ok\"");
    exposition_labelled(e, s->deliveries_failed, "result=\"failed\"");
    exposition_labelled(e, s->deliveries_lost, "result=\"lost\"");
    begin(e, METRIC_EVENTS);
    exposition_labelled(e, s->events_written, "result=\"ok\"");
    exposition_labelled(e, s->events_failed, "result=\"failed\"");
    put(e, METRIC_LEASES_EXPIRED, s->leases_expired);
    put(e, METRIC_LINKS_REFUSED, s->links_refused);
}

static void put_webhooks(struct exposition *e, const struct webhook_stats *s)
{
    begin(e, METRIC_WEBHOOKS);
    exposition_labelled(e, s->under_way, "state=\"active\"");
    exposition_labelled(e, s->queued, "state=\"waiting\"");
    begin(e, METRIC_UNANSWERED);
    exposition_labelled(e, s->refused, "reason=\"address\"");
    exposition_labelled(e, s->timed_out, "reason=\"timeout\"");
    exposition_labelled(e, s->failed, "reason=\"failed\"");
    exposition_labelled(e, s->aborted, "reason=\"stopping\"");
}

static void put_process(struct exposition *e, const struct metrics *m)
{
    begin(e, METRIC_STARTED);
    exposition_seconds(e, m->started_ms * 1000);
    begin(e, METRIC_CPU);
    exposition_seconds(e, m->process.cpu_us);
    put(e, METRIC_RESIDENT, m->process.resident_bytes);
    put(e, METRIC_VIRTUAL, m->process.virtual_bytes);
    put(e, METRIC_THREADS, m->process.threads);
    put(e, METRIC_FDS, m->process.fds);
    put(e, METRIC_FDS_MAX, m->process.fds_max);
}

void metrics_format(struct buf *out, const struct metrics *m)
{
    struct exposition e = {.out = out};

    begin(&e, METRIC_BUILD);
    exposition_labelled(&e, 1, "version=\"" ARBE_VERSION "\"");
    put_http(&e, m);
    put_log(&e, m);
    put_store(&e, m);
    put_budgets(&e, m);
    put_subscriptions(&e, &m->subscriptions);
    put_webhooks(&e, &m->webhooks);
    put_process(&e, m);
}
