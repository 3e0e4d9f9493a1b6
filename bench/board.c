/* What the board of T3 threads costs: a shell snapshot of so many threads folded into an empty
 * board, so many times; then single events of all its threads, one apply each.
 *
 * usage: board THREADS SNAPSHOTS    prints a line of JSON: microseconds of processor time of one
 *                                   snapshot and of one event (medians and 99th percentiles), bytes
 *                                   of the snapshot, and bytes of memory that a row takes */
#include "arbe/t3_board.h"

#include "hist.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EVENTS 200000u
#define HOST   "bench"

/* A text that is built. */
struct text {
    char *ptr;
    size_t len;
    size_t cap;
};

static void add(struct text *t, const char *format, ...)
{
    va_list args;

    if (t->cap - t->len < 4096) {
        t->cap = t->cap * 2 + 8192;
        t->ptr = realloc(t->ptr, t->cap);
        if (t->ptr == NULL) {
            abort();
        }
    }
    va_start(args, format);
    t->len += (size_t)vsnprintf(t->ptr + t->len, t->cap - t->len, format, args);
    va_end(args);
}

static const char words[] =
    "I have changed the parser so that it takes both forms, and added a test for each of them. "
    "The suite passes; what is left is the manual page, which still tells the old one. Shall I?";

/* A thread with the members that a server of T3 Code sends. */
static void add_thread(struct text *t, unsigned i)
{
    add(t,
        "{\"id\":\"thread-%08x\",\"projectId\":\"project-%u\",\"title\":\"Thread number %u\","
        "\"createdBy\":\"user\",\"creationSource\":\"web\",\"providerInstanceId\":\"codex\","
        "\"modelSelection\":{\"instanceId\":\"codex\",\"model\":\"gpt-5\",\"options\":[]},"
        "\"runtimeMode\":\"full-access\",\"interactionMode\":\"default\",\"branch\":null,"
        "\"worktreePath\":null,\"lineage\":{\"parentThreadId\":null,\"relationshipToParent\":null,"
        "\"rootThreadId\":\"thread-%08x\"},\"forkedFrom\":null,\"activeProviderThreadId\":null,"
        "\"latestRunId\":\"run-%u\",\"latestRunRequestedAt\":\"2026-11-05T00:%02u:00.000Z\","
        "\"latestRunStartedAt\":\"2026-11-05T00:%02u:01.000Z\",\"latestRunCompletedAt\":null,"
        "\"activeRunId\":\"run-%u\",\"status\":\"running\",\"pendingRuntimeRequest\":null,",
        i, i % 40, i, i, i, i % 60, i % 60, i);
    add(t,
        "\"latestVisibleMessage\":{\"id\":\"message-%u\",\"role\":\"assistant\",\"text\":\"%s\","
        "\"updatedAt\":\"2026-11-05T00:%02u:09.000Z\"},\"latestUserMessageAt\":null,"
        "\"hasActionableProposedPlan\":false,\"itemCount\":%u,\"visibleItemCount\":%u,"
        "\"createdAt\":\"2026-11-01T00:00:00.000Z\",\"updatedAt\":\"2026-11-05T00:%02u:09.000Z\","
        "\"archivedAt\":null,\"settledOverride\":null,\"settledAt\":null,\"deletedAt\":null}",
        i, words, i % 60, i % 90, i % 50, i % 60);
}

static struct text make_snapshot(unsigned threads)
{
    struct text t = {NULL, 0, 0};

    add(&t, "[{\"kind\":\"snapshot\",\"snapshot\":{\"schemaVersion\":2,\"snapshotSequence\":1,"
            "\"projects\":[],\"threads\":[");
    for (unsigned i = 0; i < threads; i++) {
        add(&t, "%s", i == 0 ? "" : ",");
        add_thread(&t, i);
    }
    add(&t, "],\"archivedThreads\":[]}}]");
    return t;
}

/* A turn of events over all threads: a run ends, or a message grows. */
static void write_event(struct text *t, unsigned i, unsigned threads)
{
    unsigned thread = i * 2654435761u % threads;

    t->len = 0;
    add(t,
        "[{\"kind\":\"event\",\"sequence\":%u,\"event\":{\"id\":\"event-%u\",\"threadId\":"
        "\"thread-%08x\",\"occurredAt\":\"2026-11-05T01:00:00.000Z\",",
        i, i, thread);
    if (i % 2 == 0) {
        add(t,
            "\"type\":\"run.updated\",\"payload\":{\"id\":\"run-%u\",\"threadId\":\"thread-%08x\","
            "\"ordinal\":3,\"status\":\"%s\",\"requestedAt\":\"2026-11-05T00:%02u:00.000Z\","
            "\"startedAt\":\"2026-11-05T00:%02u:01.000Z\",\"completedAt\":null}}}]",
            thread, thread, i % 4 == 0 ? "running" : "waiting", thread % 60, thread % 60);
    } else {
        add(t,
            "\"type\":\"message.updated\",\"payload\":{\"id\":\"message-%u\",\"threadId\":"
            "\"thread-%08x\",\"role\":\"assistant\",\"text\":\"%u %s\",\"createdAt\":"
            "\"2026-11-05T00:%02u:05.000Z\",\"updatedAt\":\"2026-11-05T01:00:00.000Z\"}}}]",
            thread, thread, i, words, thread % 60);
    }
}

static void count_change(void *context, const struct t3_board_row *row, int gone)
{
    (void)row;
    (void)gone;
    (*(size_t *)context)++;
}

/* Folds a text; nanoseconds of processor time, so that what else the machine does counts little. */
static uint64_t fold(struct t3_board *board, const struct text *t, size_t *changes)
{
    struct timespec start;
    struct timespec end;
    struct t3_board_counts counts;
    struct t3_board_error error;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    int code = t3_board_apply(board, HOST, t->ptr, t->len, count_change, changes, &counts, &error);
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    if (code != T3_BOARD_OK || counts.skipped > 0 || counts.applied != 1) {
        (void)fprintf(stderr, "board: %s\n", code != T3_BOARD_OK ? error.message : "skipped");
        exit(1);
    }
    return (uint64_t)(end.tv_sec - start.tv_sec) * 1000000000u + (uint64_t)end.tv_nsec -
           (uint64_t)start.tv_nsec;
}

static struct t3_board *make_board(void)
{
    struct t3_board *board;
    struct t3_board_error error;

    if (t3_board_new(NULL, &board, &error) != T3_BOARD_OK) {
        (void)fprintf(stderr, "board: %s\n", error.message);
        exit(1);
    }
    return board;
}

static unsigned read_count(const char *text)
{
    char *end;
    unsigned long count = strtoul(text, &end, 10);

    if (*end != '\0' || count == 0 || count > 1000000) {
        (void)fprintf(stderr, "board: \"%s\" is no count\n", text);
        exit(2);
    }
    return (unsigned)count;
}

int main(int argc, char **argv)
{
    static struct hist snapshots;
    static struct hist events; /* in nanoseconds */
    struct text event = {NULL, 0, 0};
    struct t3_board *board = NULL;
    size_t changes = 0;
    size_t before = 0;

    if (argc != 3) {
        (void)fprintf(stderr, "usage: board THREADS SNAPSHOTS\n");
        return 2;
    }
    unsigned threads = read_count(argv[1]);
    unsigned count = read_count(argv[2]);
    struct text snapshot = make_snapshot(threads);

    for (unsigned i = 0; i < count; i++) {
        t3_board_free(board);
        before = mallinfo2().uordblks;
        board = make_board();
        hist_entry_add(&snapshots, fold(board, &snapshot, &changes) / 1000);
    }
    size_t memory = mallinfo2().uordblks - before;

    for (unsigned i = 0; i < EVENTS; i++) {
        write_event(&event, i, threads);
        hist_entry_add(&events, fold(board, &event, &changes));
    }
    (void)printf("{\"threads\":%u,\"bytes\":%zu,\"snapshot_us\":%llu,\"snapshot_p99_us\":%llu,"
                 "\"event_us\":%.2f,\"event_p99_us\":%.2f,\"row_bytes\":%zu,\"changes\":%zu}\n",
                 threads, snapshot.len, (unsigned long long)hist_percentile_get(&snapshots, 50),
                 (unsigned long long)hist_percentile_get(&snapshots, 99),
                 (double)hist_percentile_get(&events, 50) / 1000,
                 (double)hist_percentile_get(&events, 99) / 1000, memory / threads, changes);
    t3_board_free(board);
    free(snapshot.ptr);
    free(event.ptr);
    return 0;
}
