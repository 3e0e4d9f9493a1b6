/* Both lists become code here: a switch for the reasons, a length-first comparison for methods. */
#include "http/status.h"

const char *http_status_reason(int status)
{
    switch (status) {
#define X(code, reason) \
    case code:          \
        return reason;
        HTTP_STATUS_LIST(X)
#undef X
    default:
        return "Unknown";
    }
}

enum status_place {
#define X(code, reason) PLACE_##code,
    HTTP_STATUS_LIST(X)
#undef X
};

unsigned http_status_index(int status)
{
    switch (status) {
#define X(code, reason) \
    case code:          \
        return PLACE_##code;
        HTTP_STATUS_LIST(X)
#undef X
    default:
        return HTTP_STATUS_COUNT;
    }
}

int http_status_at(unsigned index)
{
    static const int statuses[] = {
#define X(code, reason) code,
        HTTP_STATUS_LIST(X)
#undef X
    };

    return statuses[index];
}

const char *http_method_name(enum http_method method)
{
    static const char *const names[] = {
        [HTTP_OTHER] = "other",
#define X(name) [HTTP_##name] = #name,
        HTTP_METHOD_LIST(X)
#undef X
    };

    return names[method];
}

enum http_method http_method_of(struct slice token)
{
#define X(name)                             \
    if (slice_equal(token, SLICE(#name))) { \
        return HTTP_##name;                 \
    }
    HTTP_METHOD_LIST(X)
#undef X
    return HTTP_OTHER;
}
