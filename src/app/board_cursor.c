/* A place is base64url of "MS PICOSECONDS HOST-LENGTH HOST THREAD", without a time
 * "- 0 HOST-LENGTH HOST THREAD", with nothing between host and thread. */
#include "app/board_cursor.h"

#include "base/base64.h"
#include "base/date.h"
#include "base/limits.h"
#include "base/number.h"

#include <stdio.h>

#define EPOCH_DIGITS    16u
#define PICOSECONDS_MAX 999999999u

void board_cursor_format(const struct board_cursor *cursor, char out[static BOARD_CURSOR_BYTES])
{
    (void)snprintf(out, BOARD_CURSOR_BYTES, "%016llx-%llu", (unsigned long long)cursor->epoch,
                   (unsigned long long)cursor->number);
}

static bool parse_hex(struct slice text, uint64_t *ret_value)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t value = 0;

    for (size_t i = 0; i < text.len; i++) {
        const char *digit = memchr(digits, text.ptr[i], sizeof(digits) - 1);

        if (digit == NULL) {
            return false;
        }
        value = value << 4 | (uint64_t)(digit - digits);
    }
    *ret_value = value;
    return true;
}

bool board_cursor_parse(struct slice text, struct board_cursor *ret_cursor)
{
    struct slice epoch;
    struct board_cursor cursor;

    if (!slice_split(&text, '-', &epoch) || epoch.len != EPOCH_DIGITS || text.ptr == NULL ||
        !parse_hex(epoch, &cursor.epoch) ||
        !number_parse_u64(text, UINT64_MAX, false, &cursor.number)) {
        return false;
    }
    *ret_cursor = cursor;
    return true;
}

void board_place_format(const struct board_place *place, struct buf *out)
{
    char memory[BOARD_PLACE_BYTES_MAX];
    char text[BASE64_LEN(BOARD_PLACE_BYTES_MAX)];
    struct buf plain;

    buf_init_fixed(&plain, memory, sizeof(memory));
    if (place->active.len > 0) {
        buf_append_format(&plain, "%lld %lu %zu ", (long long)place->active.ms,
                          (unsigned long)place->active.picoseconds, place->host.len);
    } else {
        buf_append_format(&plain, "- 0 %zu ", place->host.len);
    }
    buf_append(&plain, place->host);
    buf_append(&plain, place->thread_id);
    if (plain.failed) {
        out->failed = true;
        return;
    }
    size_t len = base64url_encode(text, buf_slice(&plain));

    buf_append(out, (struct slice){text, len});
}

/* The next word, which must be a number. */
static bool take_number(struct slice *rest, uint64_t max, uint64_t *ret_value)
{
    struct slice word;

    return slice_split(rest, ' ', &word) && rest->ptr != NULL &&
           number_parse_u64(word, max, false, ret_value);
}

static bool take_time(struct slice *rest, struct t3_instant *ret_time)
{
    uint64_t ms = 0;
    uint64_t picoseconds = 0;

    if (slice_starts_with(*rest, SLICE("- 0 "))) {
        *rest = (struct slice){rest->ptr + 4, rest->len - 4};
        *ret_time = (struct t3_instant){.len = 0};
        return true;
    }
    if (!take_number(rest, (uint64_t)DATE_MS_MAX, &ms) ||
        !take_number(rest, PICOSECONDS_MAX, &picoseconds)) {
        return false;
    }
    /* Of the text only that there is one counts. */
    *ret_time = (struct t3_instant){
        .ms = (int64_t)ms, .picoseconds = (uint32_t)picoseconds, .len = 1, .text = "?"};
    return true;
}

bool board_place_parse(struct slice text, char *memory, struct board_place *ret_place)
{
    struct slice rest = {memory, 0};
    uint64_t host_len = 0;

    if (text.len / 4 * 3 + 2 > BOARD_PLACE_BYTES_MAX ||
        !base64url_decode(text, memory, &rest.len) || !take_time(&rest, &ret_place->active) ||
        !take_number(&rest, T3_HOST_BYTES_MAX, &host_len) || host_len > rest.len) {
        return false;
    }
    ret_place->host = (struct slice){rest.ptr, (size_t)host_len};
    ret_place->thread_id = (struct slice){rest.ptr + host_len, rest.len - (size_t)host_len};
    return true;
}
