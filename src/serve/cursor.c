/* The numbers are those of PROTOCOL.md 10.1. */
#include "serve/cursor.h"

#include "base/number.h"

#define EPOCH_MS           INT64_C(1728432000000) /* 2024-10-09T00:00:00Z */
#define INTERVAL_MS        INT64_C(20000)
#define JITTER_SECONDS_MAX 3600u
#define CURSOR_MAX         (UINT64_MAX - JITTER_SECONDS_MAX) /* beyond it is garbage */

struct cursor cursor_parse(struct slice text)
{
    struct cursor cursor = {.given = false};

    /* A cursor is text to its client, so it may be any number that has a successor here. */
    cursor.given = number_parse_u64(text, CURSOR_MAX, false, &cursor.value);
    return cursor;
}

uint64_t cursor_current(int64_t wall_ms)
{
    return wall_ms < EPOCH_MS ? 0 : (uint64_t)((wall_ms - EPOCH_MS) / INTERVAL_MS);
}

bool cursor_is_ahead(const struct cursor *client, int64_t wall_ms)
{
    return client->given && client->value >= cursor_current(wall_ms);
}

uint64_t cursor_next(const struct cursor *client, int64_t wall_ms, uint64_t random)
{
    if (!cursor_is_ahead(client, wall_ms)) {
        return cursor_current(wall_ms);
    }
    uint64_t seconds = 1 + random % JITTER_SECONDS_MAX;
    uint64_t interval_seconds = (uint64_t)(INTERVAL_MS / 1000);

    /* Jitter below one interval still has to move the cursor. */
    return client->value + (seconds + interval_seconds - 1) / interval_seconds;
}
