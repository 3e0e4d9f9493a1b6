/* Headers are looked at strictly: what could be read in two ways shows nobody. */
#include "app/caller.h"

#define COOKIES_MAX 64u /* of one header that are looked at */

static int refuse(struct api_error *error, const char *sentence)
{
    (void)api_error_set(error, API_UNAUTHENTICATED, "%s", sentence);
    return api_error_suggest(error, "send Authorization: Bearer and an API key (arbe_...), or sign "
                                    "in by POST /api/session");
}

/* Authorization: Bearer KEY. */
static bool find_key(struct slice value, struct credentials *ret, struct api_error *error)
{
    struct slice scheme;

    if (!slice_split(&value, ' ', &scheme) || value.ptr == NULL ||
        !slice_equal_nocase(scheme, SLICE("bearer"))) {
        (void)refuse(error, "Authorization must be Bearer and an API key");
        return false;
    }
    value = slice_trim(value);
    if (!api_key_shape_good(value)) {
        (void)refuse(error, "the bearer token is no API key: arbe_ and 64 hexadecimal digits");
        return false;
    }
    *ret = (struct credentials){CALLER_KEY, value};
    return true;
}

/* The value of our cookie; ptr NULL: there is none. More than one is told by *ret_many. */
static struct slice find_cookie(struct slice header, bool *ret_many)
{
    struct slice found = {NULL, 0};
    struct slice pair;

    for (unsigned i = 0; i < COOKIES_MAX && slice_split(&header, ';', &pair); i++) {
        struct slice rest = slice_trim(pair);
        struct slice name;

        if (slice_split(&rest, '=', &name) && rest.ptr != NULL &&
            slice_equal(name, SLICE(CALLER_COOKIE))) {
            *ret_many = *ret_many || found.ptr != NULL;
            found = rest;
        }
    }
    return found;
}

bool credentials_find(const struct http_request *request, struct credentials *ret_credentials,
                      struct api_error *ret_error)
{
    size_t count = 0;
    struct slice value = http_request_header(request, SLICE("authorization"), &count);
    bool many = false;

    *ret_credentials = (struct credentials){.proof = CALLER_NOBODY};
    if (count > 1) {
        (void)refuse(ret_error, "there must be one Authorization field");
        return false;
    }
    if (count == 1) {
        return find_key(value, ret_credentials, ret_error);
    }
    value = http_request_header(request, SLICE("cookie"), &count);
    struct slice token = find_cookie(count == 1 ? value : (struct slice){NULL, 0}, &many);

    if (count > 1 || many) {
        (void)refuse(ret_error, "there must be one session cookie");
        return false;
    }
    if (token.ptr != NULL && !api_token_shape_good(token)) {
        (void)refuse(ret_error, "the session cookie is not one of ours");
        return false;
    }
    if (token.ptr != NULL) {
        *ret_credentials = (struct credentials){CALLER_SESSION, token};
    }
    return true;
}

/* "https://host:port" of a URL: without its path. */
static struct slice origin_of(struct slice url)
{
    size_t slashes = 0;

    for (size_t i = 0; i < url.len; i++) {
        slashes += url.ptr[i] == '/';
        if (slashes == 3) {
            return (struct slice){url.ptr, i};
        }
    }
    return url;
}

int origin_check(const struct http_request *request, struct slice public_url,
                 struct api_error *ret_error)
{
    const struct slice scheme = SLICE("http://");
    size_t count = 0;
    struct slice origin = http_request_header(request, SLICE("origin"), &count);
    struct slice host = http_request_header(request, SLICE("host"), NULL);
    bool good = false;

    if (count == 1 && public_url.len > 0) {
        good = slice_equal_nocase(origin, origin_of(public_url));
    } else if (count == 1 && host.len > 0 && slice_starts_with(origin, scheme)) {
        good = slice_equal_nocase((struct slice){origin.ptr + scheme.len, origin.len - scheme.len},
                                  host);
    }
    if (good) {
        return 0;
    }
    (void)api_error_set(ret_error, API_BAD_ORIGIN,
                        count == 0 ? "a change by a session must say its Origin, as browsers do"
                                   : "the request comes from a page of another origin");
    return api_error_suggest(ret_error, "programs use an API key (Authorization: Bearer) instead "
                                        "of the session cookie");
}

void cookie_format(struct buf *out, struct slice token, uint64_t seconds, bool secure)
{
    buf_append(out, SLICE(CALLER_COOKIE "="));
    buf_append(out, token);
    buf_append_format(out, "; HttpOnly; SameSite=Lax; Path=/; Max-Age=%llu%s",
                      (unsigned long long)seconds, secure ? "; Secure" : "");
}
