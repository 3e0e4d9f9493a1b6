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
