/* The scheme is case-insensitive (RFC 9110 section 11.1), the secret is bytes. */
#include "serve/auth.h"

bool auth_is_good(const struct http_request *request, struct slice secret)
{
    size_t count = 0;

    if (secret.len == 0) {
        return true;
    }
    struct slice value = http_request_header(request, SLICE("authorization"), &count);
    struct slice scheme;

    if (count != 1 || !slice_split(&value, ' ', &scheme) || value.ptr == NULL) {
        return false;
    }
    return slice_equal_nocase(scheme, SLICE("bearer")) &&
           slice_equal_constant_time(slice_trim(value), secret);
}
