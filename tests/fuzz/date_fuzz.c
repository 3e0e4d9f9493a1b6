/* RFC 3339 dates: what is taken is within bounds and comes back from being formatted. */
#include "base/date.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[DATE_RFC3339_BYTES];
    char http[DATE_HTTP_BYTES];
    int64_t ms = -1;
    int64_t again = -1;

    if (date_parse_rfc3339((struct slice){(const char *)data, size}, &ms)) {
        assert(ms >= 0);
        assert(ms <= DATE_MS_MAX);
        date_format_rfc3339(text, ms);
        assert(date_parse_rfc3339(slice_of(text), &again));
        assert(again == ms);
    } else {
        assert(ms == -1);
    }
    if (size >= sizeof(ms)) {
        memcpy(&ms, data, sizeof(ms));
    }
    date_format_rfc3339(text, ms);
    date_format_http(http, ms);
    assert(strlen(text) == DATE_RFC3339_BYTES - 1);
    assert(strlen(http) == DATE_HTTP_BYTES - 1);
    return 0;
}
