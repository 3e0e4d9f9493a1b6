/* What would have to be counted in the records, such as houses and threads, is not here: whoever
 * scrapes waits on a worker. */
#include "app/expose.h"

#include "app/app.h"
#include "app/board_keeper.h"
#include "app/upstream.h"
#include "serve/exposition.h"
#include "thread/outbox.h"
#include "thread/poster.h"
#include "thread/recency.h"
#include "thread/store.h"

static void put_entries(struct app *app, struct exposition *e)
{
    struct poster_stats posts;
    uint64_t appended = atomic_load_explicit(&app->appended, memory_order_relaxed);

    poster_get_stats(app->poster, &posts);
    exposition_begin(e, "arbe_thread_entries_total", "counter", "Entries stored.");
    exposition_u64(e, posts.stored + appended);
    exposition_begin(e, "arbe_thread_duplicates_total", "counter",
                     "Entries posted again, of which nothing was stored.");
    exposition_u64(e, posts.duplicates);
    exposition_begin(e, "arbe_thread_posts_refused_total", "counter",
                     "Posts of entries that were refused, by code.");
    for (unsigned i = 0; i < API_CODE_COUNT; i++) {
        uint64_t count = atomic_load_explicit(&app->posts_refused[i], memory_order_relaxed);

        exposition_labelled(e, count, "code=\"%s\"", api_error_code_text((enum api_code)i));
    }
}

static void put_records(struct app *app, struct exposition *e)
{
    exposition_begin(e, "arbe_thread_outbox_waiting", "gauge",
                     "What streams are owed: signals, streams to be made or to go; tried in vain.");
    exposition_u64(e, outbox_waiting(app->outbox));
    exposition_begin(e, "arbe_thread_outbox_oldest_seconds", "gauge",
                     "For how long the thread that is owed something longest has been tried.");
    exposition_seconds(e, outbox_oldest_ms(app->outbox) * 1000);
    exposition_begin(e, "arbe_thread_recency_writes_total", "counter",
                     "Threads whose time of the last entry was written to the records.");
    exposition_u64(e, recency_writes(app->recency));
    exposition_begin(e, "arbe_thread_records_failed", "gauge",
                     "1 when the records are damaged, or their disk failed, until a restart.");
    exposition_u64(e, store_failure(app->store) != 0);
}

static void put_calls(struct app *app, struct exposition *e)
{
    exposition_begin(e, "arbe_thread_calls", "gauge",
                     "Requests that wait for a thread of the application, or run on one.");
    exposition_labelled(e, atomic_load(&app->pool_calls), "pool=\"records\"");
    exposition_labelled(e, atomic_load(&app->stream_calls), "pool=\"streams\"");
    exposition_begin(e, "arbe_thread_relays", "gauge",
                     "Reads of another server's streams (--streams-url) under way.");
    exposition_u64(e, app->upstream == NULL ? 0 : upstream_relays(app->upstream));
}

static void put_board(struct app *app, struct exposition *e)
{
    static const char *const states[] = {
        [T3_READER_CONNECTING] = "connecting",
        [T3_READER_CATCHING_UP] = "catching_up",
        [T3_READER_LIVE] = "live",
        [T3_READER_LOST] = "lost",
        [T3_READER_REFUSED] = "refused",
    };
    struct board_stats stats;

    board_keeper_get_stats(app->board, &stats);
    exposition_begin(e, "arbe_board_rows", "gauge", "Threads of T3 hosts on the board.");
    exposition_u64(e, stats.rows);
    exposition_begin(e, "arbe_board_hosts", "gauge", "T3 hosts that are watched, by state.");
    for (size_t i = 0; i < ARRAY_COUNT(states); i++) {
        exposition_labelled(e, stats.hosts[i], "state=\"%s\"", states[i]);
    }
}

void app_expose(struct app *app, struct exposition *e)
{
    put_entries(app, e);
    put_records(app, e);
    put_calls(app, e);
    put_board(app, e);
}
